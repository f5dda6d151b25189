/* SPDX-License-Identifier: BSD-3-Clause */
/* agree.c - all ranks agree on one plan, one state to resume from, and the same commits. */
#include "run/ranks/ranks.h"

#include "run/state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ plan */

/* The plan of another rank, whose planes are as many or one more or less. */
static int take_plan(struct mx_run *r, const struct mx_plan *of_planner, int64_t planes) {
    struct mx_plan plan = *of_planner;
    plan.threads = r->request.threads;
    if (plan.bz >= planes || plan.bz > r->rest.nz) plan.bz = r->rest.nz;
    int err = mx_tune_plan(&r->request, &plan, &r->why, &r->tuned);
    if (err == 0) memcpy(r->tuned.plan.tuner, of_planner->tuner, sizeof r->tuned.plan.tuner);
    return err;
}

int mx_run_agree_plan(struct mx_run *r, int (*make)(struct mx_run *r)) {
    enum { TRIES = 12 };
    struct mx_run_ranks *q = &r->ranks;
    struct {
        struct mx_plan plan;
        int64_t planes;
        int err;
        bool last; /* the planner does not try again */
    } shared;
    if (!mx_is_rank(q)) return make(r);
    for (int i = 0; i < TRIES; i++) {
        bool refused = false;
        memset(&shared, 0, sizeof shared);
        if (q->rank == q->planner) {
            shared.err = make(r);
            shared.plan = r->tuned.plan;
            shared.planes = r->rest.nz;
            const bool free = r->o.plan == NULL && r->o.bt == 0;
            shared.last = i == TRIES - 1 || !free || shared.plan.bt <= mx_levels_a_step(&r->rest);
        }
        int err = mx_link_share(q->link, MX_CHANNEL_RUN, q->planner, &shared, sizeof shared, &r->why);
        if (err < 0) return err;
        r->ranks.silent = shared.err < 0 && q->rank != q->planner;
        if (shared.err < 0)
            return q->rank == q->planner
                       ? shared.err
                       : mx_fail(&r->why, shared.err,
                                 "rank %d, which plans for all ranks, found no plan; its message says why",
                                 q->planner);
        const int mine = q->rank == q->planner ? 0 : take_plan(r, &shared.plan, shared.planes);
        refused = mine < 0;
        mx_why reason = r->why;
        err = mx_run_agree_any(r, &refused);
        if (err < 0) return err;
        if (!refused) return r->request.most_bt = 0, 0;
        if (shared.last) {
            if (mine < 0) return r->why = reason, mine;
            q->silent = true;
            return mx_fail(&r->why, -EINVAL, "another rank cannot use the plan; its message says why");
        }
        r->request.most_bt = shared.plan.bt - shared.plan.bt / 8 - 1;
        if (r->request.most_bt < 1) r->request.most_bt = 1;
    }
    return mx_fail(&r->why, -EINVAL, "no plan fits all ranks");
}

/* ------------------------------------------------------------------ state */

/* Do two plans differ in nothing but the planes of a Block, of which ranks have more or fewer? */
static bool same_but_planes(const struct mx_plan *a, const struct mx_plan *b) {
    char of_a[MX_PLAN_LINE_BYTES], of_b[MX_PLAN_LINE_BYTES];
    struct mx_plan other = *b;
    other.bz = a->bz, other.threads = a->threads;
    return strcmp(mx_plan_print(a, of_a, sizeof of_a), mx_plan_print(&other, of_b, sizeof of_b)) == 0;
}

/* A file that is read in place is where this rank has had it, or, where it has moved, where the newest run
 * found it. */
static void take_moved(struct mx_run_field *f, const struct mx_run_field *newest) {
    if (f->in_place && newest->in_place && access(f->path, R_OK) != 0) *f = *newest;
}

/* What a run can be asked for anew when it goes on comes from the newest note; where the state of this rank
 * is, and the files and the backend that it began with, are its own. */
static void take_note(struct mx_run *r, const struct mx_note *newest) {
    struct mx_note *n = &r->note;
    const bool rows = newest->integrity_unit == newest->layout.row_pitch_bytes;
    n->problem.nt = newest->problem.nt;
    n->commit_every = newest->commit_every;
    n->snapshots = newest->snapshots;
    n->keep = newest->keep;
    n->ignores_nonfinite = newest->ignores_nonfinite;
    n->check = newest->check;
    n->n_until = newest->n_until;
    memcpy(n->until, newest->until, sizeof n->until);
    n->met = newest->met;
    memcpy(n->time_step, newest->time_step, sizeof n->time_step);
    n->n_series = newest->n_series;
    memcpy(n->series, newest->series, sizeof n->series);
    n->n_edits = newest->n_edits;
    memcpy(n->edit, newest->edit, sizeof n->edit);
    n->history = newest->history;
    if (mx_note_moment(n) < mx_note_moment(newest) && !same_but_planes(&n->plan, &newest->plan)) {
        n->plan = newest->plan;
        if (n->plan.bz >= newest->problem.nz || n->plan.bz > n->problem.nz) n->plan.bz = n->problem.nz;
    }
    for (int32_t i = 0; i < n->fields.n && i < newest->fields.n; i++)
        take_moved(&n->fields.field[i], &newest->fields.field[i]);
    if (newest->integrity_unit == 0) n->integrity_unit = 0; /* hashes were asked for, and nothing committed */
    if (n->integrity_unit == 0 && newest->integrity_unit > 0) {
        n->integrity_unit = rows ? n->layout.row_pitch_bytes : n->layout.plane_pitch_bytes;
        r->plain = true;
    }
}

/* A commit that not all ranks came to leaves notes of two runs where it was the first of the later one: that
 * one has what was asked for last. */
static int share_note(struct mx_run *r, int newest) {
    struct {
        struct mx_note note;
        char text[MX_NOTE_BYTES];
    } *b = calloc(1, sizeof *b);
    if (b == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the note of another rank");
    int err = r->ranks.rank == newest ? mx_note_print(&r->note, b->text, sizeof b->text) : 0;
    if (err < 0)
        mx_fail(&r->why, err, "the store description (note) of rank %d cannot be sent to the other ranks: %s",
                newest, strerror(-err));
    else
        err = mx_link_share(r->ranks.link, MX_CHANNEL_RUN, newest, b->text, sizeof b->text, &r->why);
    if (err == 0 && r->ranks.rank != newest) {
        b->text[sizeof b->text - 1] = 0;
        err = mx_note_parse(b->text, strlen(b->text), &r->why, &b->note);
        if (err == 0) take_note(r, &b->note);
    }
    free(b);
    return err;
}

/* What a rank's store says of its state. */
struct state {
    int64_t time, moment;
    bool kept, pending;
    uint64_t sample[MX_MAX_FIELDS];
};

/* The step that this rank has in common with all others becomes that of its note. */
static int go_back(struct mx_run *r, const struct state *least) {
    struct mx_note *n = &r->note;
    const bool ahead = mx_note_moment(n) > least->moment;
    if (ahead && mx_note_moment_before(n) != least->moment)
        return mx_fail(&r->why, -EINVAL,
                       "the store of rank %d holds steps %lld and %lld, and the store of another rank holds "
                       "step %lld, so they belong to different runs: give the -d that the run began with",
                       r->ranks.rank, (long long)n->time, (long long)n->before_time, (long long)least->time);
    /* This rank was a commit ahead when the run ended: that one is done again. */
    r->ranks.went_back = ahead;
    if (ahead) mx_note_go_back(n);
    /* A run that had ended there was gone on with. */
    n->checksum[0] = 0;
    n->met = (struct mx_met){.step = 0};
    struct mx_norms_history history = n->history;
    mx_history_up_to(&history, n->time, MX_HISTORY_MOST, &n->history);
    return 0;
}

/* No Buffer holds step 0 where one rank says so: its sweep is fed again, as those of the others. */
static void take_pending(struct mx_run *r, const struct state *of) {
    if (!of->pending) return;
    r->note.pending = true;
    memcpy(r->note.sample, of->sample, sizeof of->sample);
}

int mx_run_agree_state(struct mx_run *r, bool *kept) {
    struct mx_run_ranks *q = &r->ranks;
    struct state mine, *all;
    int newest = 0, oldest = 0;
    if (!mx_is_rank(q)) return 0;
    if ((all = calloc((size_t)q->ranks, sizeof *all)) == NULL)
        return mx_fail(&r->why, -ENOMEM, "no memory for the ranks");
    memset(&mine, 0, sizeof mine);
    mine.time = r->note.time, mine.moment = mx_note_moment(&r->note), mine.kept = *kept,
    mine.pending = r->note.pending;
    memcpy(mine.sample, r->note.sample, sizeof mine.sample);
    int err = mx_link_gather(q->link, MX_CHANNEL_RUN, &mine, sizeof mine, all, &r->why);
    for (int i = 0; i < q->ranks && err == 0; i++) {
        if (all[i].moment < all[oldest].moment) oldest = i;
        if (all[i].moment > all[newest].moment) newest = i;
        *kept |= all[i].kept;
    }
    const struct state least = all[oldest];
    q->uneven = err == 0 && all[newest].moment > least.moment;
    free(all);
    if (err == 0) err = share_note(r, newest);
    if (err == 0 && q->uneven) err = go_back(r, &least);
    if (err == 0) take_pending(r, &least);
    return err;
}

/* ------------------------------------------------------------------ commits */

int mx_run_agree_commits(struct mx_run *r) {
    struct mx_run_ranks *q = &r->ranks;
    struct {
        double every_s;
        int64_t n_buffers;
    } mine = {r->commit_every_s, r->n_buffers}, *all;
    if (!mx_is_rank(q)) return 0;
    if ((all = calloc((size_t)q->ranks, sizeof *all)) == NULL)
        return mx_fail(&r->why, -ENOMEM, "no memory for the ranks");
    int err = mx_link_gather(q->link, MX_CHANNEL_RUN, &mine, sizeof mine, all, &r->why);
    for (int i = 0; i < q->ranks && err == 0; i++)
        if (all[i].n_buffers > mine.n_buffers || (all[i].n_buffers == mine.n_buffers && i < q->rank))
            mine = all[i];
    free(all);
    if (err == 0) r->commit_every_s = mine.every_s, r->n_buffers = (int32_t)mine.n_buffers;
    return err;
}
