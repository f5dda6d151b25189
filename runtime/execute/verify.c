/* SPDX-License-Identifier: BSD-3-Clause */
/* verify.c - the plain recomputation. It shares nothing with schedules and engines: levels of time stand one
 * behind the other, each holds 2h+1 whole planes, and a plane of level l+1 is computed by the plain kernel,
 * or row by row by the system's row function, as soon as level l has the planes around it. What does not fit
 * in memory in one pass goes through the scratch Buffer. Where the form reads the old value, the old value of
 * level l+1 is the same plane of level l-1, which is still there. For level 1 it is the other array of the
 * initial state, which stands before level 0.
 *
 * Sides in z. Of ends whose frame copies each level makes its frame planes itself, when it has the planes
 * that they copy. With periodic ones a pass of d levels begins d*h planes before the interior and ends as
 * many behind it, with planes of the other end; level l has (d-l)*h of them. So the last level has the
 * interior alone, and what stands in frames that are copies is not compared: it counts for nothing. */
#include "execute/check.h"
#include "machine/size.h"

#include <errno.h>
#include <string.h>

enum { MOST_LEVELS = 2048 }; /* of a pass: levels recur */

/* Plane z of a field of C into its slot; a file without a frame has fewer planes and rows. */
static int load_fixed(struct check *c, int32_t i, int64_t z) {
    const struct mx_problem *p = c->v->problem;
    const struct mx_fixed_layout *l = &c->v->layout->fixed[i];
    const struct mx_fixed_view *f = &c->fixed[i];
    const int64_t beside = p->h - l->frame, rows = p->ny + 2 * mx_halo_y(p), beside_y = p->flat ? 0 : beside,
                  from = mx_check_in_grid(c, z);
    struct mx_span span;
    mx_ticket *ticket = NULL;
    if (mx_is_profile(p, i)) return 0;
    if (from < beside || from >= p->nz + 2 * p->h - beside) return 0;
    mx_fixed_span(l, from, beside_y, rows - beside_y, &span.offset_bytes, &span.bytes);
    const int64_t first = l->offset_bytes + from * l->plane_pitch_bytes;
    const int64_t shift = ((first % f->align_bytes) + f->align_bytes) % f->align_bytes;
    span.dram = f->base + (z + c->view.z_offset) % f->slots * f->slot_pitch_bytes +
                (int64_t)span.offset_bytes - (first - shift);
    int err = mx_buffer_read(c->v->fixed[i], &span, 1, &ticket);
    if (err == 0) err = mx_wait(ticket);
    if (err == -EBADMSG) return mx_field_damaged(c->v->fixed[i], NULL, p->system->fixed[i].name, c->why);
    if (err < 0)
        return mx_fail(c->why, err, "verification could not read %s %lld of field %s: %s",
                       mx_plane_word(p->flat), (long long)z, p->system->fixed[i].name, strerror(-err));
    return 0;
}

/* Of what the pass before has written, out of order. */
static int read_plane(struct check *c, int i, int64_t z, char *to) {
    mx_buffer *buffer = mx_check_buffer(c, true, c->done, i);
    const uint64_t bytes = (uint64_t)c->v->layout->plane_pitch_bytes;
    const struct mx_span span = {(uint64_t)z * bytes, bytes, to};
    mx_ticket *ticket = NULL;
    int err = mx_buffer_read(buffer, &span, 1, &ticket);
    if (err == 0) err = mx_wait(ticket);
    if (err == -EBADMSG) return mx_field_damaged(buffer, c->v->layout, "the grid", c->why);
    if (err < 0)
        return mx_fail(c->why, err, "verification could not read %s %lld: %s",
                       mx_plane_word(c->v->problem->flat), (long long)z, strerror(-err));
    return 0;
}

/* The first planes of the interior stand behind the last as well: they are kept. */
static int take_again(struct check *c, int i, int64_t z, char *to) {
    const struct mx_problem *p = c->v->problem;
    const int64_t pitch = c->v->layout->plane_pitch_bytes, at = mx_check_in_grid(c, z) - p->h;
    char *kept = c->kept + (i * c->deepest * p->h + at) * pitch;
    if (z >= p->nz + p->h) return memcpy(to, kept, (size_t)pitch), 0;
    int err = read_plane(c, i, mx_check_in_grid(c, z), to);
    if (err == 0 && z >= p->h && at < c->depth * p->h) memcpy(kept, to, (size_t)pitch);
    return err;
}

/* Nothing is known of the frame at a periodic end. */
static int skip_all(struct check *c) {
    int err = mx_check_skip(c, 0);
    return err == 0 && c->pairs ? mx_check_skip(c, 1) : err;
}

/* Plane z of level 0, or (pairs, i = 1) of the array before it, of the first pass or a later one. */
static int take_plane(struct check *c, int i, bool first, struct mx_plane_stream *input, int64_t z) {
    const struct mx_verification *v = c->v;
    char *to = mx_check_plane(c, -i, z), *from;
    if (first && mx_check_array(c, -i) == 0) return v->source(v->source_context, mx_check_in_grid(c, z), to);
    if (first) return v->partner_source(v->partner_context, mx_check_in_grid(c, z), to);
    if (c->ghost) return take_again(c, i, z, to);
    int err = mx_plane_stream_next(input, &from);
    if (err == 1) memcpy(to, from, (size_t)v->layout->plane_pitch_bytes);
    if (err == 1 && i == 0) mx_check_mirror(c, 0, z);
    return err < 0 ? err : 0;
}

static int pass(struct check *c, bool first, struct mx_plane_stream *const input[2]) {
    const struct mx_verification *v = c->v;
    const int64_t h = v->problem->h;
    const struct extent all = c->ghost ? mx_check_extent(c, 0) : (struct extent){0, v->layout->planes};
    int err = 0;
    for (int64_t z = 0; z < h && err == 0 && c->ghost; z++) err = skip_all(c);
    for (int64_t z = all.first; z < all.end && err == 0; z++) {
        for (int32_t i = 0; i < mx_fixed_count(v->problem) && err == 0; i++) err = load_fixed(c, i, z);
        if (err == 0 && c->pairs) err = take_plane(c, 1, first, input[1], z);
        if (err == 0) err = take_plane(c, 0, first, input[0], z);
        if (err == 0) err = mx_check_push(c, 0, z);
    }
    for (int64_t z = 0; z < h && err == 0 && c->ghost; z++) err = skip_all(c);
    return err;
}

static int open_stream(struct check *c, bool scratch, int64_t levels, int i, bool write,
                       struct mx_plane_stream **out) {
    return mx_plane_stream_open(mx_check_buffer(c, scratch, levels, i), c->v->layout, c->v->budget, write,
                                c->why, out);
}

static int sweeps(struct check *c, int64_t deepest) {
    int64_t left = mx_levels_of(c->v->problem, c->v->problem->nt);
    int err = 0;
    for (bool first = true; err == 0 && (first || left > 0); first = false) {
        struct mx_plane_stream *input[2] = {NULL, NULL};
        c->depth = left < deepest ? left : deepest;
        left -= c->depth;
        c->view.z_offset = c->ghost ? c->depth * c->v->problem->h : 0;
        for (int i = 0; i < 1 + c->pairs; i++) {
            c->result[i] = c->scratch[i] = NULL;
            /* Ghosts are read out of order, see take_again. A stream would read ahead what the pass writes.
             */
            if (!first && !c->ghost && err == 0) err = open_stream(c, true, c->done, i, false, &input[i]);
            if (err == 0)
                err = left == 0 ? open_stream(c, false, c->done + c->depth, i, false, &c->result[i])
                                : open_stream(c, true, c->done + c->depth, i, true, &c->scratch[i]);
        }
        if (err == 0) err = pass(c, first, input);
        for (int i = 0; i < 1 + c->pairs; i++) {
            err = mx_plane_stream_close(input[i], err);
            err = mx_plane_stream_close(c->result[i], err);
            err = mx_plane_stream_close(c->scratch[i], err);
        }
        c->done += c->depth;
    }
    return err;
}

static int64_t fixed_plane_bytes(const struct mx_verification *v) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < mx_fixed_count(v->problem); i++)
        bytes += mx_fixed_slot_bytes(&v->layout->fixed[i], v->layout->rows);
    return bytes;
}

static int open_fixed(struct check *c) {
    const struct mx_layout *l = c->v->layout;
    struct mx_block_options options = {.budget = c->v->budget};
    int err = 0;
    c->view.fixed = c->fixed;
    for (int32_t i = 0; i < mx_fixed_count(c->v->problem) && err == 0; i++) {
        const struct mx_fixed_layout *f = &l->fixed[i];
        if (mx_is_profile(c->v->problem, i)) {
            c->fixed[i] = mx_view_of_profile(c->v->problem, i, c->v->problem->system->profile[i].memory);
            continue;
        }
        c->fixed[i] = (struct mx_fixed_view){.slots = c->fixed_slots,
                                             .slot_pitch_bytes = mx_fixed_slot_bytes(f, l->rows),
                                             .row_pitch_bytes = f->row_pitch_bytes,
                                             .offset_bytes = f->offset_bytes,
                                             .file_plane_pitch_bytes = f->plane_pitch_bytes,
                                             .align_bytes = f->align_bytes > 0 ? f->align_bytes : 1};
        if (c->ghost) {
            c->fixed[i].first_plane = c->v->problem->h;
            c->fixed[i].period_planes = c->v->problem->nz;
        }
        err = mx_block_create(&options, (uint64_t)(c->fixed_slots * c->fixed[i].slot_pitch_bytes), c->why,
                              &c->fixed_block[i]);
        if (err == 0) c->fixed[i].base = mx_block_data(c->fixed_block[i]);
    }
    return err;
}

static struct check check_of(const struct mx_verification *v, mx_why *why) {
    struct check c = {.v = v, .reach = 2 * v->problem->h + 1, .pairs = mx_reads_old(v->problem), .why = why};
    if (v->after != NULL) c.sides = v->after->sides;
    c.ghost = mx_sides_periodic(&c.sides, MX_DIM_Z);
    return c;
}

/* Planes that each level of a pass keeps for its end. */
static int64_t kept_planes(const struct check *c) {
    return c->ghost && !c->v->one_pass ? c->v->problem->h * (1 + c->pairs) : 0;
}

/* How many levels a pass may have. */
static int find_deepest(struct check *c) {
    const struct mx_verification *v = c->v;
    const struct mx_problem *p = v->problem;
    const struct mx_layout *l = v->layout;
    int64_t half = l->plane_pitch_bytes > MX_PLANE_GROUP_BYTES ? l->plane_pitch_bytes : MX_PLANE_GROUP_BYTES;
    /* Two streams of two halves for each array; planes of the last level, and of the one before the first; of
     * C what a level reads around its plane. */
    int64_t streams = 4 * half * (1 + c->pairs), fixed = fixed_plane_bytes(v);
    int64_t ends = l->plane_pitch_bytes * (1 + (c->pairs ? c->reach : 0)) +
                   (p->system != NULL ? (p->system->hc + 1) * fixed : 0);
    const int64_t kept = kept_planes(c);
    int64_t level_bytes = (c->reach + kept) * l->plane_pitch_bytes + p->h * fixed;
    int64_t deepest = ((int64_t)v->memory_bytes - streams - ends) / level_bytes;
    const int64_t levels = mx_levels_of(p, p->nt);
    if (deepest > MOST_LEVELS) deepest = MOST_LEVELS;
    if (kept > 0 && deepest > p->nz / p->h) deepest = p->nz / p->h; /* ghosts of one period */
    if (deepest > levels || levels == 0) deepest = levels;
    if (deepest < 1 && levels > 0)
        return mx_fail(c->why, -ENOMEM,
                       "verification needs %s of DRAM, and %s is free: raise --dram, or leave --verify out",
                       mx_size((uint64_t)(streams + level_bytes)).text, mx_size(v->memory_bytes).text);
    if (v->one_pass && levels > MOST_LEVELS)
        return mx_fail(c->why, -ENOTSUP,
                       "with --in-place, verification computes all time levels in one pass, which has at "
                       "most %d; this run has %lld: leave --in-place or --verify out",
                       MOST_LEVELS, (long long)levels);
    if (v->one_pass && deepest < levels)
        return mx_fail(c->why, -ENOMEM,
                       "with --in-place, verification computes all time levels in one pass, which needs %s "
                       "of DRAM; %s is free: raise --dram, or leave --in-place or --verify out",
                       mx_size((uint64_t)(streams + ends + levels * level_bytes)).text,
                       mx_size(v->memory_bytes).text);
    c->deepest = deepest;
    return 0;
}

int mx_verify_fits(const struct mx_verification *v, mx_why *why) {
    struct check c = check_of(v, why);
    return find_deepest(&c);
}

int mx_verify(const struct mx_verification *v, mx_why *why) {
    const struct mx_problem *p = v->problem;
    const struct mx_layout *l = v->layout;
    struct check c = check_of(v, why);
    int err = find_deepest(&c);
    if (err < 0) return err;
    const int64_t deepest = c.deepest, kept = kept_planes(&c);
    if (p->system == NULL) c.kernel = mx_stencil_plain(mx_stencil_find(p->stencil), p->dtype);
    if (p->system != NULL) c.fixed_slots = deepest * p->h + p->system->hc + 1;
    struct mx_block_options options = {.budget = v->budget};
    err = mx_block_create(&options,
                          (uint64_t)((deepest * c.reach + c.reach * (1 + c.pairs)) * l->plane_pitch_bytes),
                          why, &c.block);
    if (err == 0 && kept > 0 && deepest > 0)
        err =
            mx_block_create(&options, (uint64_t)(deepest * kept * l->plane_pitch_bytes), why, &c.kept_block);
    if (c.kept_block != NULL) c.kept = mx_block_data(c.kept_block);
    if (err == 0) err = open_fixed(&c);
    if (err == 0) {
        c.planes = mx_block_data(c.block);
        err = sweeps(&c, deepest);
    }
    for (int i = 0; i < MX_MAX_FIXED; i++) mx_block_free(c.fixed_block[i]);
    mx_block_free(c.kept_block);
    mx_block_free(c.block);
    return err;
}
