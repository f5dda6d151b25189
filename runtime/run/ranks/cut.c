/* SPDX-License-Identifier: BSD-3-Clause */
/* cut.c - the part of the grid that is a rank's. */
#include "run/ranks/ranks.h"

#include "run/state.h"

#include <stdlib.h>

int mx_run_check_rank(struct mx_run *r, const char *place) {
    const struct mx_problem *b = &r->note.problem;
    const struct mx_run_ranks *q = &r->ranks;
    if (r->recut.asked) return 0;
    if (mx_run_alone(r) && mx_is_cut(b))
        return mx_fail(&r->why, -EINVAL,
                       "%.300s holds %ss %lld to %lld of a run of %d ranks: resume with the -d that the run "
                       "began with, which has the stores of all ranks",
                       place, mx_plane_word(b->flat), (long long)b->first_plane,
                       (long long)(b->first_plane + b->nz - 1), r->note.ranks);
    if (!mx_run_alone(r) && (r->note.ranks != q->ranks || r->note.rank != q->rank))
        return mx_fail(&r->why, -EINVAL,
                       "%.300s is the store of rank %d of %d, and this is rank %d of %d: to resume with "
                       "another number of ranks, every rank must be able to read all stores of the run",
                       place, r->note.rank, r->note.ranks, q->rank, q->ranks);
    return 0;
}

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

int64_t mx_run_planes_of(const struct mx_run *r, int rank) {
    return r->ranks.first[rank + 1] - r->ranks.first[rank];
}

int mx_run_cut(struct mx_run *r) {
    r->whole = r->o.problem;
    if (mx_run_alone(r) && mx_run_ranks_of(r) > 1) { /* what one of them would do */
        r->ranks.ranks = mx_run_ranks_of(r);
        r->ranks.rank = mx_ranks_planner(r->ranks.ranks);
        r->ranks.link_name = r->o.link != NULL ? r->o.link : "local";
        const int err = mx_run_find_place(r);
        if (err < 0) return err;
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
        return mx_fail(&r->why, -EINVAL,
                       "the store of rank %d is damaged: it holds %ss %lld to %lld of %lld, but with %d "
                       "ranks it must hold %lld to %lld",
                       r->ranks.rank, mx_plane_word(b->flat), (long long)b->first_plane,
                       (long long)(b->first_plane + b->nz - 1), (long long)mx_all_planes(b), r->ranks.ranks,
                       (long long)a->first_plane, (long long)(a->first_plane + a->nz - 1));
    return 0;
}
