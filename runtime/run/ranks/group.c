/* SPDX-License-Identifier: BSD-3-Clause */
/* group.c - the ranks of a run: who they are, and what all of them agree on. */
#include "run/ranks/ranks.h"

#include "machine/clock.h"
#include "run/run.h"
#include "run/state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* What a program that opened the run as a library says by a status of its own, memext run tells (MX_EXIT_IO).
 */
enum { FAILED_STATUS = 3 };

/* ------------------------------------------------------------------ who this process is */

void mx_run_make_ranks(struct mx_run *r) {
    struct mx_run_ranks *q = &r->ranks;
    q->observed_fd[0] = q->observed_fd[1] = q->status = q->folder_fd = -1;
}

int32_t mx_run_ranks_of(const struct mx_run *r) {
    if (mx_is_rank(&r->ranks)) return r->ranks.ranks;
    return r->o.dry_run && r->o.ranks > 1 ? (int32_t)r->o.ranks : 1;
}

bool mx_run_alone(const struct mx_run *r) { return !mx_is_rank(&r->ranks); }
bool mx_run_has_no_ranks(const struct mx_run *r) {
    return mx_run_ranks_of(r) == 1 && mx_link_of_process() == NULL;
}
bool mx_run_leads(const struct mx_run *r) { return r->ranks.rank == 0; }
int mx_run_rank(const mx_run *r) { return mx_run_alone(r) ? -1 : r->ranks.rank; }
void mx_run_set_status(mx_run *r, int status) { r->ranks.status = status; }

void mx_run_number(const struct mx_run *r, int32_t *rank, int32_t *ranks) {
    *rank = mx_run_alone(r) ? 0 : r->ranks.rank;
    *ranks = mx_run_alone(r) ? 0 : r->ranks.ranks;
}

void mx_run_one_says(struct mx_run *r) { r->ranks.silent = !mx_run_leads(r); }
void mx_run_each_says(struct mx_run *r) { r->ranks.silent = false; }
bool mx_run_is_silent(const struct mx_run *r) { return r->ranks.silent; }

/* ------------------------------------------------------------------ link */

int mx_run_open_ranks(struct mx_run *r) {
    const struct mx_link_ops *ops = mx_link_of_process();
    struct mx_run_ranks *q = &r->ranks;
    if (r->o.link != NULL && strcmp(r->o.link, "mpi") == 0 &&
        (ops == NULL || strcmp(ops->name, "mpi") != 0) && !r->o.dry_run)
        return mx_fail(&r->why, -ENOTSUP,
                       "--link mpi needs ranks that mpirun has started: use mpirun -n P memext run ..., or "
                       "--ranks P with --link local");
    if (ops == NULL || (r->o.link != NULL && strcmp(r->o.link, ops->name) != 0)) return 0;
    int err = mx_link_open(ops, &r->why, &q->link);
    if (err < 0) return err;
    q->rank = mx_link_rank(q->link);
    q->ranks = mx_link_ranks(q->link);
    q->planner = mx_ranks_planner(q->ranks);
    q->link_name = mx_link_name(q->link);
    if (!r->o.dry_run && mx_option_given(&r->o, "ranks") && r->o.ranks != q->ranks)
        return mx_fail(&r->why, -EINVAL,
                       "--ranks gives %lld, and the launcher has started %d: leave --ranks out, or give "
                       "--link local for ranks of this machine",
                       (long long)r->o.ranks, q->ranks);
    if (q->ranks == 1) { /* a run by itself, but for what mpirun wants at the end */
        mx_link_close(q->link, 0);
        q->link = NULL;
        return 0;
    }
    if (q->rank > 0) {
        r->o.quiet = true;
        r->o.json = NULL;
        q->observed[0] = r->o.timeline != NULL;
        q->observed[1] = r->o.trace != NULL;
        r->o.timeline = r->o.trace = NULL;
    }
    return 0;
}

struct mx_tune_link mx_take_link(const struct mx_options *o, int ranks) {
    struct mx_tune_link link = {.ranks = ranks, .bytes_per_s = o->link_bytes_per_s};
    link.latency_s =
        o->link_bytes_per_s > 0 && o->link_latency_s >= 0 ? o->link_latency_s : MX_DEFAULT_LINK_LATENCY_S;
    return link;
}

int mx_run_measure_link(struct mx_run *r) {
    struct mx_tune_link *l = &r->request.link;
    *l = mx_take_link(&r->o, r->ranks.ranks);
    if (mx_run_alone(r) || r->o.dry_run || l->bytes_per_s > 0) return 0;
    r->ranks.link_measured = true;
    return mx_link_measure(r->ranks.link, &l->bytes_per_s, &l->latency_s, &r->why);
}

/* ------------------------------------------------------------------ what all agree on */

int mx_run_gather(struct mx_run *r, enum mx_channel channel, const void *mine, size_t bytes, void *all,
                  mx_why *why) {
    if (mx_run_alone(r)) return memcpy(all, mine, bytes), 0;
    return mx_link_gather(r->ranks.link, channel, mine, bytes, all, why);
}

static int share(struct mx_run *r, int from, void *data, size_t bytes) {
    return mx_run_alone(r) ? 0 : mx_link_share(r->ranks.link, MX_CHANNEL_RUN, from, data, bytes, &r->why);
}

int mx_run_meet(struct mx_run *r) {
    return mx_run_alone(r) ? 0 : mx_link_meet(r->ranks.link, MX_CHANNEL_RUN, &r->why);
}

int mx_run_meet_to_commit(struct mx_run *r) {
    return mx_run_alone(r) ? 0 : mx_link_meet(r->ranks.link, MX_CHANNEL_COMMIT, NULL);
}

int mx_run_first_waits(struct mx_run *r) { return mx_run_leads(r) ? mx_run_meet(r) : 0; }
int mx_run_others_wait(struct mx_run *r) { return mx_run_leads(r) ? 0 : mx_run_meet(r); }

int mx_run_share_bytes(struct mx_run *r, void *data, size_t bytes) { return share(r, 0, data, bytes); }

int mx_run_agree_any(struct mx_run *r, bool *any) {
    const int32_t ranks = mx_run_ranks_of(r);
    bool *all = calloc((size_t)ranks, sizeof *all);
    if (all == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the ranks");
    int err = mx_run_gather(r, MX_CHANNEL_RUN, any, sizeof *any, all, &r->why);
    for (int i = 0; i < ranks && err == 0; i++) *any |= all[i];
    free(all);
    return err;
}

int mx_run_agree_error(struct mx_run *r, int mine) {
    struct mx_run_ranks *q = &r->ranks;
    const mx_why reason = r->why;
    const int32_t ranks = mx_run_ranks_of(r);
    int first = 0, *all = calloc((size_t)ranks, sizeof *all);
    if (all == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the ranks");
    int err = mx_run_gather(r, MX_CHANNEL_RUN, &mine, sizeof mine, all, &r->why);
    while (err == 0 && first < ranks && all[first] == 0) first++;
    if (err == 0 && first < ranks) {
        err = all[first];
        q->silent = !mx_run_alone(r) && q->rank != first;
        if (q->silent)
            mx_fail(&r->why, err, "rank %d cannot begin; its message says why", first);
        else
            r->why = reason;
    }
    free(all);
    return err;
}

int mx_run_first_finds(struct mx_run *r, int (*find)(struct mx_run *r, uint64_t bytes), uint64_t bytes) {
    int found = mx_run_leads(r) || mx_run_alone(r) ? find(r, bytes) : 0;
    const mx_why reason = r->why;
    const int err = mx_run_share_bytes(r, &found, sizeof found);
    if (err < 0 || found == 0 || mx_run_alone(r)) return err < 0 ? err : found;
    mx_run_one_says(r);
    r->why = reason;
    return found;
}

int mx_run_agree_number(struct mx_run *r, uint64_t *run) {
    while (*run == 0)
        if (getrandom(run, sizeof *run, 0) < 0) *run = mx_clock_ns();
    return mx_run_share_bytes(r, run, sizeof *run);
}

int mx_run_share_plan_limit(struct mx_run *r, int64_t *most_bt) {
    return share(r, r->ranks.planner, most_bt, sizeof *most_bt);
}

/* ------------------------------------------------------------------ norms */

static int64_t most_planes(const struct mx_run_ranks *q) {
    int64_t most = 0;
    for (int i = 0; i < q->ranks; i++)
        if (q->first[i + 1] - q->first[i] > most) most = q->first[i + 1] - q->first[i];
    return most;
}

/* Each rank gives as many planes of each quantity as the largest has, and one number behind them. */
static int gather_planes(const struct mx_run *r, int64_t quantities, const uint64_t *mine, int64_t mine_pitch,
                         uint64_t *all, uint64_t *number, mx_why *why) {
    const struct mx_problem *p = &r->o.problem;
    const int64_t room = most_planes(&r->ranks), n = quantities * room + 1, planes = mx_all_planes(p);
    const int64_t *first = r->ranks.first;
    const int ranks = r->ranks.ranks;
    uint64_t *given = calloc((size_t)n, sizeof *given), *got = calloc((size_t)(n * ranks), sizeof *got);
    int err = given == NULL || got == NULL
                  ? mx_fail(why, -ENOMEM, "no memory for the %ss of the ranks", mx_plane_word(p->flat))
                  : 0;
    for (int64_t q = 0; q < quantities && err == 0; q++)
        memcpy(given + q * room, mine + q * mine_pitch, (size_t)p->nz * sizeof *given);
    if (err == 0) given[n - 1] = *number;
    if (err == 0)
        err = mx_link_gather(r->ranks.link, MX_CHANNEL_RUN, given, (size_t)n * sizeof *given, got, why);
    for (int i = 0; i < ranks && err == 0; i++) {
        for (int64_t q = 0; q < quantities; q++)
            memcpy(all + q * planes + first[i], got + i * n + q * room,
                   (size_t)(first[i + 1] - first[i]) * sizeof *all);
        if (got[(i + 1) * n - 1] > *number) *number = got[(i + 1) * n - 1];
    }
    free(given);
    free(got);
    return err;
}

static int join_norms(void *run, int64_t quantities, double *planes, uint64_t *most, mx_why *why) {
    const struct mx_run *r = run;
    const struct mx_problem *p = &r->o.problem;
    uint64_t *all = (uint64_t *)planes; /* bits, as they are */
    return gather_planes(r, quantities, all + p->first_plane, mx_all_planes(p), all, most, why);
}

mx_run_join_fn *mx_run_joins_norms(const struct mx_run *r) { return mx_run_alone(r) ? NULL : join_norms; }

int mx_run_gather_planes(struct mx_run *r, int64_t quantities, const uint64_t *mine, uint64_t *all) {
    const int64_t nz = r->o.problem.nz;
    uint64_t none = 0;
    if (mx_run_alone(r)) return memcpy(all, mine, (size_t)(quantities * nz) * sizeof *all), 0;
    return gather_planes(r, quantities, mine, nz, all, &none, &r->why);
}

/* ------------------------------------------------------------------ the end */

/* The exit status of this process as the others learn it. */
static int status_of(const struct mx_run_ranks *q) {
    return q->well ? 0 : q->status >= 0 ? q->status : FAILED_STATUS;
}

int mx_run_why_ended(const struct mx_run *r, int err) {
    const bool asked = !mx_run_alone(r) && r->stop; /* and this one was not the first */
    return asked && (err == -ECONNRESET || err == -ECANCELED) ? -EINTR : err;
}

/* What memory the link was at is still there: messages may be on their way to it. */
void mx_run_leave_ranks(struct mx_run *r, void (*clean)(struct mx_run *r)) {
    struct mx_run_ranks *q = &r->ranks;
    if (q->link == NULL || status_of(q) == 0 || !mx_link_leaves(q->link)) return;
    const bool stopped = r->err == -EINTR;
    mx_link_stop(q->link);
    clean(r);
    mx_link_leave(q->link, status_of(q), stopped);
}

void mx_run_close_ranks(struct mx_run *r) {
    struct mx_run_ranks *q = &r->ranks;
    for (int i = 0; i < q->ranks && q->reports != NULL; i++) free(q->reports[i]);
    free(q->reports);
    q->reports = NULL;
    free(q->first);
    q->first = NULL;
    for (int i = 0; i < 2; i++) {
        if (q->observed_fd[i] > 0) close(q->observed_fd[i]);
        q->observed_fd[i] = -1;
    }
    mx_link_close(q->link, status_of(q));
    q->link = NULL;
}
