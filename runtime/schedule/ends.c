/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule/ends.h"

#include <errno.h>
#include <memext/backend.h>

static int add(struct mx_piece *out, int n, int64_t lo, int64_t hi, int64_t shift) {
    if (lo >= hi) return n;
    out[n] = (struct mx_piece){lo, hi, shift, 0};
    return n + 1;
}

/* Beyond an end with ghosts: of a neighbour, or of the other end. */
static int add_beyond(const struct mx_problem *p, int dim, int end, int64_t lo, int64_t hi,
                      struct mx_piece *out, int n) {
    const int64_t extent = mx_extent_of(p, dim);
    const bool neighbour = p->sides.side[dim][end] == MX_SIDE_NEIGHBOUR;
    const int more = add(out, n, lo, hi, neighbour ? 0 : end == 0 ? extent : -extent);
    if (more > n && neighbour) out[n].neighbour = end + 1;
    return more;
}

int mx_load_pieces(const struct mx_problem *p, int dim, bool ghost, struct mx_range r,
                   struct mx_piece out[MX_PIECES]) {
    const int64_t first = mx_halo_of(p, dim), end = mx_extent_of(p, dim) + first;
    const bool low = mx_end_ghost(p, ghost, dim, 0), high = mx_end_ghost(p, ghost, dim, 1);
    int pieces = low ? add_beyond(p, dim, 0, r.lo, mx_min(r.hi, first), out, 0) : 0;
    pieces = add(out, pieces, low ? mx_max(r.lo, first) : r.lo, high ? mx_min(r.hi, end) : r.hi, 0);
    return high ? add_beyond(p, dim, 1, mx_max(r.lo, end), r.hi, out, pieces) : pieces;
}

int mx_store_pieces(const struct mx_problem *p, int dim, bool ghost, struct mx_range r,
                    struct mx_piece out[MX_PIECES]) {
    const int64_t n = mx_extent_of(p, dim), h = mx_halo_of(p, dim), first = h, end = n + h;
    if (mx_end_ghost(p, ghost, dim, 0)) r.lo = mx_max(r.lo, first);
    if (mx_end_ghost(p, ghost, dim, 1)) r.hi = mx_min(r.hi, end);
    int pieces = add(out, 0, r.lo, r.hi, 0);
    if (!ghost) return pieces;
    pieces = add(out, pieces, r.lo, mx_min(r.hi, first + h), n);
    return add(out, pieces, mx_max(r.lo, n), r.hi, -n);
}

int64_t mx_copied_layers(const struct mx_problem *p, int dim) {
    const uint8_t *side = p->sides.side[dim];
    return mx_halo_of(p, dim) * (mx_side_is_copy(side[0]) + mx_side_is_copy(side[1]));
}

/* ------------------------------------------------------------------ refusals */

static const char *unit(const struct mx_problem *p, int dim) {
    return dim == MX_DIM_Y ? "row" : mx_plane_word(p->flat);
}

/* The kind at an end that copies the most cells. */
static const char *kind(const struct mx_problem *p, int dim, int end) {
    const int kinds = mx_sides_kinds(&p->sides, dim, end) & MX_SIDES_COPY,
              most = (kinds & MX_SIDES_NODE) != 0 ? kinds & MX_SIDES_NODE : kinds;
    uint8_t side = 0;
    while ((most >> side & 1) == 0) side++;
    return mx_side_name(side);
}

int mx_check_neighbours(const struct mx_problem *p, int64_t levels, mx_why *why) {
    const int64_t n = mx_min(p->least_nz, p->nz), a_step = mx_levels_a_step(p), need = levels * p->h;
    const char *word = mx_plane_word(p->flat);
    if (mx_neighbours(p) == 0 || need <= n) return 0;
    if (a_step * p->h > n)
        return mx_fail(why, -EINVAL,
                       "the smallest rank has %lld %ss, and each step needs %lld %ss of its neighbour: give "
                       "%lld ranks or fewer",
                       (long long)n, word, (long long)(a_step * p->h), word,
                       (long long)mx_max(1, p->all_nz / (a_step * p->h)));
    return mx_fail(why, -EINVAL,
                   "a sweep of %lld levels needs %lld %ss of a neighbour, and a rank has %lld: choose bt = "
                   "%lld or less, or fewer ranks",
                   (long long)levels, (long long)need, word, (long long)n,
                   (long long)(n / p->h / a_step * a_step));
}

int mx_check_no_neighbours(const struct mx_problem *p, const char *what, mx_why *why) {
    if (mx_neighbours(p) == 0) return 0;
    return mx_fail(why, -ENOTSUP,
                   "%s cannot run on several ranks, because it cannot take %ss from neighbours: choose "
                   "--algorithm stream or redundant",
                   what, mx_plane_word(p->flat));
}

int mx_check_ghosts(const struct mx_problem *p, int dim, int64_t levels, mx_why *why) {
    const int64_t n = mx_extent_of(p, dim), a_step = mx_levels_a_step(p);
    if (levels * p->h <= n) return 0;
    if (a_step * p->h > n)
        return mx_fail(why, -EINVAL,
                       "%c=periodic: a step needs %lld %ss of the other end, and the grid has only %lld: "
                       "choose --algorithm direct with --engine iblock on --backend mmap or dram",
                       mx_axis_name(p, dim), (long long)(a_step * p->h), unit(p, dim), (long long)n);
    return mx_fail(why, -EINVAL,
                   "%c=periodic: a sweep of %lld levels needs %lld %ss of the other end, and the grid has "
                   "only %lld: choose bt = %lld or less",
                   mx_axis_name(p, dim), (long long)levels, (long long)(levels * p->h), unit(p, dim),
                   (long long)n, (long long)mx_max(a_step, n / p->h / a_step * a_step));
}

int mx_check_skewed_ends(const struct mx_problem *p, int dim, const struct mx_cut *cut, int64_t levels,
                         mx_why *why) {
    const int64_t low = mx_sides_sources(&p->sides, dim, 0, p->h), least = levels * p->h + low,
                  high = mx_sides_sources(&p->sides, dim, 1, p->h);
    if (cut->count == 1 || mx_sides_periodic(&p->sides, dim)) return 0;
    if (low > 0 && cut->b < least)
        return mx_fail(why, -EINVAL,
                       "%c=%s: the frame at this side copies cells of the first Block or strip, which needs "
                       "(bt + 1) h%s = %lld %ss and has %lld: choose longer Blocks, or all %lld",
                       mx_axis_name(p, dim), kind(p, dim, 0), low > p->h ? " + 1" : "", (long long)least,
                       unit(p, dim), (long long)cut->b, (long long)mx_extent_of(p, dim));
    if (high > 0 && (cut->count - 1) * cut->b + high - p->h > cut->n)
        return mx_fail(why, -EINVAL,
                       "%c=%s: the frame at the upper end copies %lld cells of the last Block, which has "
                       "fewer with Blocks of %lld %ss: choose another length, or all %lld",
                       mx_axis_name(p, dim), kind(p, dim, 1), (long long)high, (long long)cut->b,
                       unit(p, dim), (long long)mx_extent_of(p, dim));
    return 0;
}

int mx_check_lapped_ends(const struct mx_problem *p, int dim, const struct mx_cut *cut, mx_why *why) {
    const int64_t own[2] = {mx_min(cut->b, cut->n), cut->n - (cut->count - 1) * cut->b};
    if (cut->count == 1) return 0;
    for (int end = 0; end < 2; end++) {
        const int64_t need = mx_sides_sources(&p->sides, dim, end, p->h);
        if (own[end] < need)
            return mx_fail(why, -EINVAL,
                           "%c=%s: the frame at this side copies %lld cells of one Block, and with Blocks of "
                           "%lld %ss the %s Block has only %lld: choose another length, or all %lld",
                           mx_axis_name(p, dim), kind(p, dim, end), (long long)need, (long long)cut->b,
                           unit(p, dim), end == 0 ? "first" : "last", (long long)own[end],
                           (long long)mx_extent_of(p, dim));
    }
    return 0;
}

int mx_check_not_periodic(const struct mx_problem *p, const char *what, mx_why *why) {
    for (int d = MX_DIM_Y; d <= MX_DIM_Z; d++)
        if (mx_sides_periodic(&p->sides, d))
            return mx_fail(why, -ENOTSUP,
                           "the side %c=periodic is not possible with %s, which computes one end of the grid "
                           "long before the other: choose --algorithm stream or redundant, or direct with "
                           "--engine iblock on --backend mmap or dram",
                           mx_axis_name(p, d), what);
    return 0;
}
