/* SPDX-License-Identifier: BSD-3-Clause */
#include "files/folder.h"
#include "machine/clock.h"
#include "run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a program that opened the run as a library says by a status of its own, memext run tells (MX_EXIT_IO).
 */
enum { FAILED_STATUS = 3 };

/* ------------------------------------------------------------------ the part of a rank */

/* Where each rank begins: as their stores say, or as it is asked for. */
static int make_table(struct mx_run *r) {
    struct mx_run_ranks *q = &r->ranks;
    const int64_t mine = r->note.problem.first_plane;
    q->first = calloc((size_t)q->ranks + 1, sizeof *q->first);
    if (q->first == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the ranks");
    if (!mx_run_has_store(r) || !mx_is_rank(q)) {
        const int err = mx_ranks_table(r->whole.nz, r->o.rank_weights, q->ranks, &r->why, q->first);
        q->silent = err == -EINVAL && mx_is_rank(q) && q->rank > 0; /* all find it wrong */
        return err;
    }
    q->first[q->ranks] = r->whole.nz;
    return mx_link_gather(q->link, MX_CHANNEL_RUN, &mine, sizeof mine, q->first, &r->why);
}

int mx_run_cut(struct mx_run *r) {
    r->whole = r->o.problem;
    if (!mx_is_rank(&r->ranks) && r->o.dry_run && r->o.ranks > 1) { /* what one of them would do */
        r->ranks.ranks = (int)r->o.ranks;
        r->ranks.rank = mx_ranks_planner(r->ranks.ranks);
        r->ranks.link_name = r->o.link != NULL ? r->o.link : "local";
    }
    if (r->ranks.ranks < 2) return 0;
    int err = make_table(r);
    if (err < 0) return err;
    err = mx_ranks_cut(&r->whole, r->ranks.first, r->ranks.rank, r->ranks.ranks, &r->why, &r->o.problem);
    if (err < 0) return r->ranks.silent = mx_is_rank(&r->ranks) && r->ranks.rank > 0, err;
    r->sides = r->o.problem.sides;
    for (int i = 0; i < MX_MAX_FIXED; i++) /* files that are read in place are of the whole grid */
        r->file_layout[i].offset_bytes += r->o.problem.first_plane * r->file_layout[i].plane_pitch_bytes;
    const struct mx_problem *a = &r->o.problem, *b = &r->note.problem;
    if (mx_run_has_store(r) && (a->first_plane != b->first_plane || a->nz != b->nz))
        return mx_fail(
            &r->why, -EINVAL,
            "the store of rank %d holds planes %lld to %lld of %lld, and of %d ranks it has %lld to "
            "%lld: the store is damaged",
            r->ranks.rank, (long long)b->first_plane, (long long)(b->first_plane + b->nz - 1),
            (long long)mx_all_planes(b), r->ranks.ranks, (long long)a->first_plane,
            (long long)(a->first_plane + a->nz - 1));
    return 0;
}

/* ------------------------------------------------------------------ link and place */

int mx_run_open_ranks(struct mx_run *r) {
    const struct mx_link_ops *ops = mx_link_of_process();
    struct mx_run_ranks *q = &r->ranks;
    if (r->o.link != NULL && strcmp(r->o.link, "mpi") == 0 && (ops == NULL || strcmp(ops->name, "mpi") != 0))
        return mx_fail(
            &r->why, -ENOTSUP,
            "--link mpi is for ranks that mpirun has started: mpirun -n P memext run ..., or --ranks "
            "P with the link local");
    if (ops == NULL || (r->o.link != NULL && strcmp(r->o.link, ops->name) != 0)) return 0;
    int err = mx_link_open(ops, &r->why, &q->link);
    if (err < 0) return err;
    q->rank = mx_link_rank(q->link);
    q->ranks = mx_link_ranks(q->link);
    q->planner = mx_ranks_planner(q->ranks);
    q->link_name = mx_link_name(q->link);
    if (q->ranks == 1) { /* a run by itself, but for what mpirun wants at the end */
        mx_link_close(q->link, 0);
        q->link = NULL;
        return 0;
    }
    if (mx_option_given(&r->o, "ranks") && r->o.ranks != q->ranks)
        return mx_fail(&r->why, -EINVAL, "--ranks says %lld, and %d were started; leave it out",
                       (long long)r->o.ranks, q->ranks);
    if (q->rank > 0) {
        r->o.quiet = true;
        r->o.json = NULL;
        q->observed[0] = r->o.timeline != NULL;
        q->observed[1] = r->o.trace != NULL;
        r->o.timeline = r->o.trace = NULL;
    }
    return 0;
}

int mx_run_measure_link(struct mx_run *r) {
    struct mx_tune_link *l = &r->request.link;
    *l = mx_take_link(&r->o, r->ranks.ranks);
    if (!mx_is_rank(&r->ranks) || r->o.dry_run || l->bytes_per_s > 0) return 0;
    r->ranks.link_measured = true;
    return mx_link_measure(r->ranks.link, &l->bytes_per_s, &l->latency_s, &r->why);
}

/* "%r" is the rank; in a directory without it each has one of its own. */
static int check_place(struct mx_run *r) {
    struct stat st;
    const char *path = r->o.path;
    if (path == NULL || strstr(path, "%r") != NULL || (stat(path, &st) == 0 && S_ISDIR(st.st_mode))) return 0;
    return mx_fail(&r->why, -EINVAL,
                   "%.300s would be the place of every rank: give a directory, or one with %%r, which is the "
                   "rank's number",
                   path);
}

int mx_run_take_folder(struct mx_run *r, const char *path) {
    struct mx_run_ranks *q = &r->ranks;
    const int err = mx_folder_take(path, &q->folder_fd);
    if (err < 0) return mx_fail(&r->why, err, "%.300s cannot be made: %s", path, strerror(-err));
    snprintf(q->folder, sizeof q->folder, "%s", path);
    return 0;
}

void mx_run_leave_folders(struct mx_run *r) {
    struct mx_run_ranks *q = &r->ranks;
    if (q->folder_fd >= 0) close(q->folder_fd);
    q->folder_fd = -1;
    if (q->folder[0] != 0 && !r->o.dry_run) mx_folder_leave(q->folder, false);
    q->folder[0] = 0;
}

static int take_place(struct mx_run *r) {
    struct mx_run_ranks *q = &r->ranks;
    const char *path = r->o.path, *at = path != NULL ? strstr(path, "%r") : NULL;
    struct stat st;
    bool make;
    int n;
    if (path == NULL) return 0;
    if (at != NULL) {
        n = snprintf(q->path, sizeof q->path, "%.*s%d%s", (int)(at - path), path, q->rank, at + 2);
        /* A directory that is named so is made; a file is its store's own business. */
        make = n > 0 && at[2] == 0 && (stat(q->path, &st) != 0 || S_ISDIR(st.st_mode));
    } else {
        n = snprintf(q->path, sizeof q->path, "%s/rank-%d", path, q->rank);
        make = !r->o.resume;
    }
    if (n >= (int)sizeof q->path) return mx_fail(&r->why, -ENAMETOOLONG, "the path of -d is too long");
    r->o.path = q->path;
    return make && !r->o.dry_run ? mx_run_take_folder(r, q->path) : 0;
}

int mx_run_check_ranks(struct mx_run *r) {
    if (!mx_is_rank(&r->ranks) && r->o.rank_weights != NULL && !r->o.dry_run)
        return mx_fail(&r->why, -EINVAL,
                       "--rank-weights is for several ranks, and this is one; leave it out");
    if (!mx_is_rank(&r->ranks)) return mx_run_find_state(r);
    r->ranks.silent = r->ranks.rank > 0; /* what all find wrong one says */
    int err = check_place(r);
    if (err == 0) r->ranks.silent = false;
    if (err == 0) err = mx_run_find_state(r);
    return err < 0 || r->recut.found ? err : take_place(r);
}

/* ------------------------------------------------------------------ what all agree on */

int mx_run_meet(struct mx_run *r) {
    return mx_is_rank(&r->ranks) ? mx_link_meet(r->ranks.link, MX_CHANNEL_RUN, &r->why) : 0;
}

int mx_run_share_bytes(struct mx_run *r, void *data, size_t bytes) {
    return mx_is_rank(&r->ranks) ? mx_link_share(r->ranks.link, MX_CHANNEL_RUN, 0, data, bytes, &r->why) : 0;
}

int mx_run_agree_any(struct mx_run *r, bool *any) {
    if (!mx_is_rank(&r->ranks)) return 0;
    bool *all = calloc((size_t)r->ranks.ranks, sizeof *all);
    if (all == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the ranks");
    int err = mx_link_gather(r->ranks.link, MX_CHANNEL_RUN, any, sizeof *any, all, &r->why);
    for (int i = 0; i < r->ranks.ranks && err == 0; i++) *any |= all[i];
    free(all);
    return err;
}

int mx_run_agree_error(struct mx_run *r, int mine) {
    struct mx_run_ranks *q = &r->ranks;
    if (!mx_is_rank(q)) return mine;
    const mx_why reason = r->why;
    int first = 0, *all = calloc((size_t)q->ranks, sizeof *all);
    if (all == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the ranks");
    int err = mx_link_gather(q->link, MX_CHANNEL_RUN, &mine, sizeof mine, all, &r->why);
    while (err == 0 && first < q->ranks && all[first] == 0) first++;
    if (err == 0 && first < q->ranks) {
        err = all[first];
        q->silent = q->rank != first;
        if (q->silent)
            mx_fail(&r->why, err, "rank %d cannot begin, and says why", first);
        else
            r->why = reason;
    }
    free(all);
    return err;
}

int mx_run_agree_number(struct mx_run *r, uint64_t *run) {
    while (*run == 0)
        if (getrandom(run, sizeof *run, 0) < 0) *run = mx_clock_ns();
    return mx_is_rank(&r->ranks) ? mx_link_share(r->ranks.link, MX_CHANNEL_RUN, 0, run, sizeof *run, &r->why)
                                 : 0;
}

int mx_run_share_plan_limit(struct mx_run *r, int64_t *most_bt) {
    return mx_is_rank(&r->ranks) ? mx_link_share(r->ranks.link, MX_CHANNEL_RUN, r->ranks.planner, most_bt,
                                                 sizeof *most_bt, &r->why)
                                 : 0;
}

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
            return q->rank == q->planner ? shared.err
                                         : mx_fail(&r->why, shared.err,
                                                   "rank %d, which plans for all, found no plan", q->planner);
        const int mine = q->rank == q->planner ? 0 : take_plan(r, &shared.plan, shared.planes);
        refused = mine < 0;
        mx_why reason = r->why;
        err = mx_run_agree_any(r, &refused);
        if (err < 0) return err;
        if (!refused) return r->request.most_bt = 0, 0;
        if (shared.last) {
            if (mine < 0) return r->why = reason, mine;
            q->silent = true;
            return mx_fail(&r->why, -EINVAL, "the plan does not do for another rank, which says why");
        }
        r->request.most_bt = shared.plan.bt - shared.plan.bt / 8 - 1;
        if (r->request.most_bt < 1) r->request.most_bt = 1;
    }
    return mx_fail(&r->why, -EINVAL, "no plan does for all ranks");
}

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
    n->history = newest->history;
    if (n->time < newest->time && !same_but_planes(&n->plan, &newest->plan)) {
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
        mx_fail(&r->why, err, "the note of rank %d cannot be handed to the others: %s", newest,
                strerror(-err));
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

/* The step that this rank has in common with all others becomes that of its note. */
static int go_back(struct mx_run *r, int64_t least) {
    struct mx_note *n = &r->note;
    if (n->time > least && n->before_time != least)
        return mx_fail(
            &r->why, -EINVAL,
            "the store of rank %d holds the steps %lld and %lld, and that of another rank %lld: they are "
            "not of one run",
            r->ranks.rank, (long long)n->time, (long long)n->before_time, (long long)least);
    /* This rank was a commit ahead when the run ended: that one is done again. */
    r->ranks.went_back = n->time > least;
    if (r->ranks.went_back) n->buffer = n->before_buffer;
    n->time = least;
    /* A run that had ended there was gone on with. */
    n->checksum[0] = 0;
    n->met = (struct mx_met){.step = 0};
    struct mx_norms_history history = n->history;
    mx_history_up_to(&history, least, MX_HISTORY_MOST, &n->history);
    return 0;
}

int mx_run_agree_state(struct mx_run *r, bool *kept) {
    struct mx_run_ranks *q = &r->ranks;
    struct {
        int64_t time;
        bool kept;
    } mine, *all;
    int newest = 0;
    if (!mx_is_rank(q)) return 0;
    if ((all = calloc((size_t)q->ranks, sizeof *all)) == NULL)
        return mx_fail(&r->why, -ENOMEM, "no memory for the ranks");
    memset(&mine, 0, sizeof mine);
    mine.time = r->note.time, mine.kept = *kept;
    int err = mx_link_gather(q->link, MX_CHANNEL_RUN, &mine, sizeof mine, all, &r->why);
    int64_t least = INT64_MAX;
    for (int i = 0; i < q->ranks && err == 0; i++) {
        if (all[i].time < least) least = all[i].time;
        if (all[i].time > all[newest].time) newest = i;
        *kept |= all[i].kept;
    }
    q->uneven = err == 0 && all[newest].time > least;
    free(all);
    if (err == 0) err = share_note(r, newest);
    return err == 0 && q->uneven ? go_back(r, least) : err;
}

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

/* ------------------------------------------------------------------ who else is on this machine */

enum { MACHINE_BYTES = 64 };

/* What tells this machine, as long as it is up, from all others: containers have names of their own. */
static void name_machine(char out[MACHINE_BYTES]) {
    memset(out, 0, MACHINE_BYTES);
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    const bool read = f != NULL && fgets(out, MACHINE_BYTES, f) != NULL;
    if (f != NULL) fclose(f);
    if (!read) gethostname(out, MACHINE_BYTES - 1);
}

/* Who a rank shares a machine and its cores with. */
struct home {
    char machine[MACHINE_BYTES];
    cpu_set_t cores;
};

static int compare_homes(struct mx_run *r) {
    struct mx_run_ranks *q = &r->ranks;
    struct home mine, *all = calloc((size_t)q->ranks, sizeof *all);
    if (all == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the ranks");
    memset(&mine, 0, sizeof mine);
    name_machine(mine.machine);
    sched_getaffinity(0, sizeof mine.cores, &mine.cores);
    const int err = mx_link_gather(q->link, MX_CHANNEL_RUN, &mine, sizeof mine, all, &r->why);
    q->places = q->core_places = 0;
    for (int i = 0; i < q->ranks && err == 0; i++) {
        if (memcmp(all[i].machine, mine.machine, MACHINE_BYTES) != 0) continue;
        q->place += i < q->rank;
        q->places++;
        if (!CPU_EQUAL(&all[i].cores, &mine.cores)) continue;
        q->core_place += i < q->rank;
        q->core_places++;
    }
    free(all);
    return err;
}

int mx_run_find_place(struct mx_run *r) {
    struct mx_run_ranks *q = &r->ranks;
    const bool local = q->link_name == NULL || strcmp(q->link_name, "local") == 0;
    q->place = q->core_place = local ? q->rank : 0;
    q->places = q->core_places = local && q->ranks > 1 ? q->ranks : 1;
    const int err = local || !mx_is_rank(q) ? 0 : compare_homes(r);
    if (err == 0 && mx_is_rank(q)) mx_machine_share(q->core_place, q->core_places);
    return err;
}

/* ------------------------------------------------------------------ norms */

static int64_t most_planes(const struct mx_run_ranks *q) {
    int64_t most = 0;
    for (int i = 0; i < q->ranks; i++)
        if (q->first[i + 1] - q->first[i] > most) most = q->first[i + 1] - q->first[i];
    return most;
}

/* Each rank gives as many planes of each quantity as the largest has, and the greatest change behind them. */
int mx_run_join_norms(void *run, int64_t quantities, double *planes, uint64_t *most, mx_why *why) {
    const struct mx_run *r = run;
    const struct mx_problem *p = &r->o.problem;
    const int64_t all = p->all_nz, room = most_planes(&r->ranks), n = quantities * room + 1;
    const int64_t *first = r->ranks.first;
    const int ranks = r->ranks.ranks;
    double *mine = calloc((size_t)n, sizeof *mine), *of_all = calloc((size_t)(n * ranks), sizeof *of_all);
    int err =
        mine == NULL || of_all == NULL ? mx_fail(why, -ENOMEM, "no memory for the norms of the ranks") : 0;
    for (int64_t q = 0; q < quantities && err == 0; q++)
        memcpy(mine + q * room, planes + q * all + p->first_plane, (size_t)p->nz * sizeof *mine);
    if (err == 0) memcpy(mine + n - 1, most, sizeof *most);
    if (err == 0)
        err = mx_link_gather(r->ranks.link, MX_CHANNEL_RUN, mine, (size_t)n * sizeof *mine, of_all, why);
    for (int i = 0; i < ranks && err == 0; i++) {
        uint64_t theirs;
        for (int64_t q = 0; q < quantities; q++)
            memcpy(planes + q * all + first[i], of_all + i * n + q * room,
                   (size_t)(first[i + 1] - first[i]) * sizeof *mine);
        memcpy(&theirs, of_all + (i + 1) * n - 1, sizeof theirs);
        if (theirs > *most) *most = theirs;
    }
    free(mine);
    free(of_all);
    return err;
}

/* ------------------------------------------------------------------ one timeline, one trace */

static int open_nameless(struct mx_run *r, int *fd, FILE **out) {
    *out = tmpfile();
    *fd = *out != NULL ? fcntl(fileno(*out), F_DUPFD_CLOEXEC, 3) : -1;
    if (*fd >= 0) return 0;
    const int err = mx_fail(&r->why, -errno, "no temporary file for what rank %d observes: %s", r->ranks.rank,
                            strerror(errno));
    if (*out != NULL) fclose(*out);
    return *out = NULL, err;
}

int mx_run_begin_observed(struct mx_run *r, FILE *out[2]) {
    struct mx_run_ranks *q = &r->ranks;
    int err = 0;
    out[0] = out[1] = NULL;
    if (!mx_is_rank(q)) return 0;
    q->observed[0] |= r->o.timeline != NULL;
    q->observed[1] |= r->o.trace != NULL;
    for (int i = 0; i < 2 && err == 0; i++) err = mx_run_agree_any(r, &q->observed[i]);
    if (err < 0 || (!q->observed[0] && !q->observed[1])) return err;
    for (int i = 0; i < 2 && err == 0; i++)
        if (q->rank > 0 && q->observed[i]) err = open_nameless(r, &q->observed_fd[i], &out[i]);
    if (err == 0) err = mx_run_meet(r);
    for (int i = 0; i < 2 && err < 0; i++) {
        if (out[i] != NULL) fclose(out[i]);
        out[i] = NULL;
    }
    return err;
}

static int join_observed(struct mx_run *r, int which, const char *option, mx_why *why) {
    struct mx_run_ranks *q = &r->ranks;
    const int own = which == 0 ? r->outputs.timeline.fd : r->outputs.trace.fd;
    if (q->rank == 0 && own < 0)
        return mx_fail(why, -EINVAL, "%s is to be given to all ranks, or to rank 0", option);
    int err = q->rank > 0 && lseek(q->observed_fd[which], 0, SEEK_SET) < 0 ? -errno : 0;
    for (int i = 1; i < q->ranks && err == 0; i++)
        if (q->rank == 0 || q->rank == i)
            err = mx_link_pour(q->link, i, q->rank == 0 ? own : q->observed_fd[which], why);
    return err;
}

int mx_run_join_observed(struct mx_run *r, mx_why *why) {
    struct mx_run_ranks *q = &r->ranks;
    if (!mx_is_rank(q)) return 0;
    int err = q->observed[0] ? join_observed(r, 0, "--timeline", why) : 0;
    if (err < 0 || !q->observed[1]) return err;
    err = join_observed(r, 1, "--trace", why);
    if (err == 0 && q->rank == 0 &&
        write(r->outputs.trace.fd, mx_timeline_trace_end, strlen(mx_timeline_trace_end)) < 0)
        err = mx_fail(why, -errno, "the trace cannot be written: %s", strerror(errno));
    return err;
}

/* ------------------------------------------------------------------ one report */

static void put_whole(json_t *o, const char *key, int64_t value) {
    json_object_set_new(o, key, json_integer(value));
}
static void put_real(json_t *o, const char *key, double value) {
    json_object_set_new(o, key, json_real(value));
}

static json_t *summary(const struct mx_run *r) {
    const struct mx_report *p = &r->report;
    json_t *o = json_object();
    put_whole(o, "rank", r->ranks.rank);
    put_whole(o, "first_plane", r->o.problem.first_plane);
    put_whole(o, "planes", r->o.problem.nz);
    put_real(o, "seconds", p->seconds);
    put_real(o, "init_seconds", p->init_seconds);
    put_real(o, "update_s", p->update_s);
    put_real(o, "wait_s", p->wait_s);
    put_whole(o, "updates", p->updates);
    put_whole(o, "read_bytes", (int64_t)p->counters.read_bytes);
    put_whole(o, "write_bytes", (int64_t)p->counters.write_bytes);
    put_whole(o, "predicted_read_bytes", p->predicted_read_bytes);
    put_whole(o, "predicted_write_bytes", p->predicted_write_bytes);
    put_whole(o, "sent_bytes", (int64_t)r->ranks.sent_bytes);
    put_whole(o, "received_bytes", (int64_t)r->ranks.received_bytes);
    put_whole(o, "predicted_sent_bytes", r->tuned.traffic.sent_bytes);
    put_whole(o, "snapshot_bytes", r->snapshots.bytes);
    put_whole(o, "predicted_snapshot_bytes", r->snapshots.predicted_bytes);
    put_whole(o, "block_bytes", (int64_t)p->block_bytes);
    if (p->accel.name[0] != 0) {
        json_object_set_new(o, "device", json_string(p->accel.device));
        if (p->accel.number >= 0) put_whole(o, "device_number", p->accel.number);
        put_whole(o, "ranks_on_device", p->accel.sharers);
        put_whole(o, "host_to_device_bytes", (int64_t)p->accel.put_bytes);
        put_whole(o, "device_to_host_bytes", (int64_t)p->accel.get_bytes);
        put_whole(o, "predicted_host_to_device_bytes", p->predicted_read_bytes + p->accel.more_put_bytes);
        put_whole(o, "predicted_device_to_host_bytes", p->predicted_write_bytes);
    }
    put_whole(o, "peak_rss_bytes", (int64_t)mx_usage_peak_rss_bytes());
    return o;
}

int mx_run_collect_reports(struct mx_run *r) {
    struct mx_run_ranks *q = &r->ranks;
    if (!mx_is_rank(q)) return 0;
    json_t *o = summary(r);
    char *text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    if (q->rank == 0) q->reports = calloc((size_t)q->ranks, sizeof *q->reports);
    int err = text == NULL || (q->rank == 0 && q->reports == NULL)
                  ? mx_fail(&r->why, -ENOMEM, "no memory for the reports of the ranks")
                  : mx_link_collect(q->link, text, q->reports, &r->why);
    free(text);
    return err;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Least, middle and greatest of a number of all ranks. */
static json_t *spread(json_t *each, const char *key, double *value) {
    const size_t n = json_array_size(each);
    for (size_t i = 0; i < n; i++)
        value[i] = json_number_value(json_object_get(json_array_get(each, i), key));
    qsort(value, n, sizeof *value, compare);
    json_t *o = json_object();
    put_real(o, "min", value[0]);
    put_real(o, "median", (value[(n - 1) / 2] + value[n / 2]) / 2);
    put_real(o, "max", value[n - 1]);
    return o;
}

static void put_link(const struct mx_run *r, json_t *o) {
    const struct mx_tune_link *l = &r->request.link;
    const bool known = l->bytes_per_s > 0;
    put_real(o, "link_bytes_per_s", known ? l->bytes_per_s : MX_DEFAULT_LINK_BYTES_PER_S);
    put_real(o, "link_latency_s", known ? l->latency_s : MX_DEFAULT_LINK_LATENCY_S);
    json_object_set_new(o, "link_source",
                        json_string(r->ranks.link_measured      ? "measured"
                                    : r->o.link_bytes_per_s > 0 ? "given"
                                                                : "default"));
    put_real(o, "predicted_link_s", r->tuned.seconds.link_s);
    put_real(o, "predicted_lag_s", r->tuned.seconds.lag_s);
}

void mx_run_add_ranks(const struct mx_run *r, void *object) {
    static const char *const keys[] = {"seconds",    "update_s",    "wait_s",     "updates",
                                       "read_bytes", "write_bytes", "sent_bytes", "received_bytes"};
    const struct mx_run_ranks *q = &r->ranks;
    if (q->ranks < 2) return;
    json_t *o = json_object(), *each = json_array(), *over = json_object();
    put_whole(o, "ranks", q->ranks);
    json_object_set_new(o, "link", json_string(q->link_name));
    put_whole(o, "predicted_sent_bytes", r->tuned.traffic.sent_bytes);
    put_link(r, o);
    for (int i = 0; i < q->ranks && q->reports != NULL; i++)
        json_array_append_new(each, json_loads(q->reports[i], 0, NULL));
    double *value = calloc((size_t)q->ranks, sizeof *value);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && q->reports != NULL && value != NULL; i++)
        json_object_set_new(over, keys[i], spread(each, keys[i], value));
    free(value);
    json_object_set_new(o, "each", each);
    json_object_set_new(o, "spread", over);
    json_object_set_new(object, "ranks", o);
}

static int status_of(const struct mx_run_ranks *q) {
    return q->well ? 0 : q->status >= 0 ? q->status : FAILED_STATUS;
}

/* What memory the link was at is still there: messages may be on their way to it. */
void mx_run_leave_ranks(struct mx_run *r) {
    struct mx_run_ranks *q = &r->ranks;
    if (q->link == NULL || status_of(q) == 0 || !mx_link_leaves(q->link)) return;
    const bool stopped = r->err == -EINTR;
    mx_link_stop(q->link);
    mx_run_abandon(r);
    mx_run_close_former(r);
    mx_run_leave_folders(r);
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
