/* SPDX-License-Identifier: BSD-3-Clause */
/* stored.c - reductions of the state that a check ends with, taken from its rows as they are stored (option
 * reduce-stored). No byte is read for them. What a kernel's check takes is of the state one step before
 * (norms.c). The reductions read fields of the state at the cell itself alone. */
#include "run/parts/parts.h"

#include "run/state.h"

#include <math.h>
#include <string.h>

static int find(const struct mx_system *s, const char *name) {
    for (int32_t i = 0; s != NULL && i < s->n_reduce; i++)
        if (strcmp(s->reduce[i].name, name) == 0) return i;
    return -1;
}

static int refuse(struct mx_run *r, const char *name, const char *why) {
    return mx_fail(&r->why, -EINVAL, "reduce-stored=%.100s: %s; leave it out", name, why);
}

static int take(struct mx_run *r) {
    struct mx_run_stored *s = &r->parts.stored;
    const struct mx_words *words = &r->o.reduce_stored;
    const struct mx_system *system = r->o.problem.system;
    for (int32_t i = 0; i < words->n; i++) {
        const int k = find(system, words->word[i]);
        if (k < 0) return refuse(r, words->word[i], "the kernel has no reduction of this name");
        if (mx_form(&r->o.problem) == MX_STAGGERED)
            return refuse(r, words->word[i],
                          "a staggered kernel never stores its two arrays at the same time");
        if (!mx_run_alone(r)) return refuse(r, words->word[i], "a rank has only a part of the state");
        if (r->report.check == 0)
            return refuse(r, words->word[i], "it needs the option check, which says at which steps");
        s->number[s->n] = k;
        s->reduce[s->n++] = system->reduce[k];
    }
    return 0;
}

static struct mx_norms_options options_of(const struct mx_run *r, int64_t row_bytes) {
    const struct mx_run_stored *s = &r->parts.stored;
    return (struct mx_norms_options){.problem = &r->o.problem,
                                     .every = r->report.check,
                                     .threads = 1,
                                     .row_bytes = row_bytes,
                                     .n_reduce = s->n,
                                     .reduce = s->reduce};
}

static uint64_t dram_bytes(const struct mx_run *r) {
    const struct mx_problem *p = &r->o.problem;
    if (r->parts.stored.n == 0) return 0;
    const struct mx_norms_options o = options_of(r, (p->nx + 2 * p->h) * mx_cell_bytes(p, 0));
    return (uint64_t)mx_norms_bytes(&o);
}

/* As the kernel gets a row: all its neighbours are the row itself, and the fields of C, which it does not
 * read. */
static int take_rows(void *context, int64_t step, const struct mx_state_rows *stored, mx_why *why) {
    const struct mx_run *r = context;
    const struct mx_problem *p = &r->o.problem;
    const struct mx_system *s = p->system;
    const int64_t *offset_bytes = stored->layout->field_offset_bytes[stored->array];
    const char *rows = stored->rows;
    const void *in[MX_MAX_FIELDS * (2 * MX_MAX_HALO + 1)], *fixed[MX_MAX_FIXED * (2 * MX_MAX_HALO + 1)];
    int64_t fixed_pitch[MX_MAX_FIXED] = {0};
    double param[MX_MAX_PARAMS] = {0};
    (void)why;
    for (int64_t y = stored->y0; y < stored->y1; y++, rows += stored->row_pitch_bytes) {
        int32_t n = 0;
        for (int32_t f = 0; f < s->n_field[stored->array]; f++)
            for (int32_t d = 0; d <= 2 * s->h; d++) in[n++] = rows + offset_bytes[f];
        for (int32_t i = 0; i < s->n_fixed * (2 * s->hc + 1); i++) fixed[i] = rows;
        const struct mx_row row = {.in = in,
                                   .fixed = fixed,
                                   .row_pitch = stored->row_pitch_bytes,
                                   .fixed_pitch = fixed_pitch,
                                   .rows = 1,
                                   .param = param,
                                   .x0 = p->h,
                                   .x1 = p->nx + p->h,
                                   .y = y - mx_halo_y(p),
                                   .z = mx_plane_of(p, stored->z),
                                   .t = step,
                                   .nx = p->nx,
                                   .ny = p->ny,
                                   .nz = mx_all_planes(p)};
        const struct mx_norm_row one = {.level = (step - 1) * mx_levels_a_step(p),
                                        .y = y - mx_halo_y(p),
                                        .z = stored->z - p->h,
                                        .x0 = p->h,
                                        .x1 = p->nx + p->h,
                                        .now = rows,
                                        .old = rows,
                                        .field_offset_bytes = offset_bytes,
                                        .r = &row};
        mx_norms_row(r->parts.stored.norms, &one);
    }
    return 0;
}

/* Algorithms that rewrite their Buffers, and accelerators, would read the state once more: there a program
 * does that itself. */
static int open_stored(struct mx_run *r) {
    struct mx_run_stored *s = &r->parts.stored;
    const bool stores = r->algorithm->resumable && r->algorithm->uses_blocks && !r->tuned.shape.in_place;
    if (s->n == 0 || r->rest.nt == 0 || !stores || r->accel != NULL) return 0;
    const struct mx_norms_options o = options_of(r, r->report.layout.row_pitch_bytes);
    int err = mx_norms_make(&o, &r->why, &s->norms);
    if (err < 0) return err;
    s->taking = (struct mx_taking){.every = r->report.check, .stride = 1, .rows = take_rows, .context = r};
    return mx_parts_hand_out(r, &s->taking);
}

/* All its rows are stored, and so they were handed over. */
static int swept(struct mx_run *r, int64_t step, mx_why *why) {
    struct mx_run_stored *s = &r->parts.stored;
    struct mx_norms_result result;
    if (s->norms == NULL || step % r->report.check != 0) return 0;
    const int err = mx_norms_take(s->norms, step, why, &result);
    if (err < 0) return err;
    pthread_mutex_lock(&r->lock);
    s->step = step;
    for (int32_t i = 0; i < s->n; i++) s->value[s->number[i]] = result.reduce[i];
    pthread_mutex_unlock(&r->lock);
    return 0;
}

static void note(struct mx_run *r) {
    struct mx_run_stored *s = &r->parts.stored;
    struct mx_note *n = &r->note;
    pthread_mutex_lock(&r->lock);
    const bool known = s->norms != NULL && s->step == n->time && s->step > 0;
    n->n_stored = known ? r->o.problem.system->n_reduce : 0;
    for (int32_t i = 0; i < n->n_stored; i++) n->stored[i] = NAN;
    for (int32_t i = 0; i < s->n && n->n_stored > 0; i++) n->stored[s->number[i]] = s->value[s->number[i]];
    pthread_mutex_unlock(&r->lock);
}

static void close_stored(struct mx_run *r) {
    mx_norms_free(r->parts.stored.norms);
    r->parts.stored.norms = NULL;
}

const struct mx_part mx_part_stored = {
    .name = "stored",
    .take = take,
    .dram_bytes = dram_bytes,
    .open = open_stored,
    .swept = swept,
    .note = note,
    .close = close_stored,
};
