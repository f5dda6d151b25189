/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/cut.h"
#include "system/sides.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>

static int take_weights(const char *text, int ranks, mx_why *why, double *sum) {
    double all = 0;
    int n = 0;
    for (const char *at = text; n < ranks && at != NULL; n++) {
        char *end;
        const double w = strtod(at, &end);
        if (end == at || !(w > 0) || w > 1e9 || (*end != ',' && *end != 0)) break;
        sum[n] = all += w;
        at = *end == ',' ? end + 1 : NULL;
        if (at == NULL && n + 1 == ranks) return 0;
    }
    return mx_fail(
        why, -EINVAL,
        "--rank-weights '%.60s': give %d positive numbers, one for each rank, with commas between them", text,
        ranks);
}

int mx_ranks_table(int64_t nz, const char *weights, int ranks, mx_why *why, int64_t *first) {
    const int64_t least = nz / ranks, more = nz % ranks;
    for (int i = 0; i <= ranks; i++) first[i] = i * least + (i < more ? i : more);
    if (weights == NULL) return 0;
    double *sum = calloc((size_t)ranks, sizeof *sum);
    int err = sum == NULL ? mx_fail(why, -ENOMEM, "no memory for the ranks")
                          : take_weights(weights, ranks, why, sum);
    for (int i = 1; i < ranks && err == 0; i++)
        first[i] = (int64_t)((double)nz * sum[i - 1] / sum[ranks - 1] + 0.5);
    free(sum);
    return err;
}

/* The ranks at the ends have what the frames there copy. */
static int check_ends(const struct mx_problem *whole, const int64_t *first, int ranks, mx_why *why) {
    for (int end = 0; end < 2; end++) {
        const int rank = end == 0 ? 0 : ranks - 1;
        const int64_t planes = first[rank + 1] - first[rank],
                      need = mx_sides_sources(&whole->sides, MX_DIM_Z, end, whole->h);
        if (planes < need)
            return mx_fail(why, -EINVAL,
                           "the frame at the %s end of %c copies %lld %ss, and rank %d has %lld: give fewer "
                           "ranks, or other --rank-weights",
                           end == 0 ? "lower" : "upper", mx_axis_name(whole, MX_DIM_Z), (long long)need,
                           mx_plane_word(whole->flat), rank, (long long)planes);
    }
    return 0;
}

int mx_ranks_cut(const struct mx_problem *whole, const int64_t *first, int rank, int ranks, mx_why *why,
                 struct mx_problem *out) {
    const bool ring = mx_sides_periodic(&whole->sides, MX_DIM_Z);
    struct mx_problem p = *whole;
    uint8_t *side = p.sides.side[MX_DIM_Z];
    int64_t least = whole->nz;
    if (ranks < 2) return *out = p, 0;
    for (int i = 0; i < ranks; i++)
        if (first[i + 1] - first[i] < least) least = first[i + 1] - first[i];
    const int64_t needed = whole->h * mx_levels_a_step(whole), most = whole->nz / needed;
    char way[64] = "no --ranks";
    if (most > 1) snprintf(way, sizeof way, "%lld ranks or fewer, or other --rank-weights", (long long)most);
    if (least < needed)
        return mx_fail(why, -EINVAL,
                       "of %lld %ss among %d ranks the smallest rank has %lld, and a step needs %lld of a "
                       "neighbour: give %s",
                       (long long)whole->nz, mx_plane_word(whole->flat), ranks, (long long)least,
                       (long long)needed, way);
    const int err = check_ends(whole, first, ranks, why);
    if (err < 0) return err;
    p.all_nz = whole->nz;
    p.least_nz = least;
    p.first_plane = first[rank];
    p.nz = first[rank + 1] - first[rank];
    if (rank > 0 || ring) side[0] = MX_SIDE_NEIGHBOUR;
    if (rank < ranks - 1 || ring) side[1] = MX_SIDE_NEIGHBOUR;
    return *out = p, 0;
}
