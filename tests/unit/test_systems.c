/* SPDX-License-Identifier: BSD-3-Clause */
/* Systems of fields through the executor: random ones by every algorithm on every backend, with both engines,
 * give to the bit the arrays of a plain loop over cells, and move exactly the bytes that CalcTrans predicts;
 * some grids have two dimensions;
 * of half of them sources are added and probes recorded. Some fields of C are profiles. Of most the state is
 * taken every 1 to 3 steps. Of half of them norms are taken, some of these runs end at one of their checks,
 * and of all the state is right then. DRAM starts as NaN: whatever is used without having been loaded would
 * show. The same in memory of accelerators.
 */
#include "accel/accel.h"
#include "core/device.h"
#include "effort.h"
#include "engine/engine.h"
#include "execute/execute.h"
#include "grid/grid.h"
#include "random_norms.h"
#include "random_points.h"
#include "random_sides.h"
#include "random_system.h"
#include "schedule/schedule.h"
#include "system/profile.h"

#include <memext/backend.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t state = 1;

static int64_t pick(int64_t low, int64_t high) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1));
}

/* ------------------------------------------------------------------ the plain loop */

enum { MOST_STEPS = 7 };

struct oracle {
    const struct random_system *rs;
    const struct mx_problem *p;
    const struct mx_sides *sides;
    struct random_points *points;     /* NULL = none */
    int64_t n[3];                     /* x, y, z with the frame */
    double *array[MOST_STEPS + 1][2]; /* after so many steps: A and B, [field][z][y][x] */
    double *fixed;                    /* [field of C][z][y][x] */
};

static int64_t cells_of(const struct oracle *o) { return o->n[0] * o->n[1] * o->n[2]; }

static double *cell(const struct oracle *o, double *of, int64_t field, int64_t x, int64_t y, int64_t z) {
    return &of[((field * o->n[2] + z) * o->n[1] + y) * o->n[0] + x];
}

/* As a cell of the type holds it. */
static double rounded(enum mx_dtype dtype, double v) {
    double room;
    store_cell(dtype, &room, 0, v);
    return load_cell(dtype, &room, 0);
}

static double stored(enum mx_dtype dtype, const struct update *u, double sum) {
    double room;
    store_sum(dtype, u, &room, 0, sum);
    return load_cell(dtype, &room, 0);
}

/* Of whole numbers minus the lowest is itself, and minus 0 is 0. */
static double minus(enum mx_dtype dtype, double v) {
    if (test_is_real(dtype)) return -v;
    return test_types[dtype].bytes < 8 && v == -1 / test_types[dtype].unit ? v : 0 - v;
}

static double updated(const struct oracle *o, const struct update *u, double *from, double *old, int64_t x,
                      int64_t y, int64_t z, int64_t level) {
    const int32_t h = o->p->h;
    double room[MX_MAX_PARAMS];
    const int64_t step = level / mx_levels_a_step(o->p);
    double sum =
        place_and_time(x - h, y - mx_halo_y(o->p), z - h, step, mx_params_at(&o->rs->system, level, room)[0]);
    for (int32_t i = 0; i < u->taps; i++) {
        const struct tap *t = &u->tap[i];
        sum =
            sum + t->weight * *cell(o, t->fixed ? o->fixed : from, t->field, x + t->dx, y + t->dy, z + t->dz);
    }
    if (u->old_weight != 0) sum = sum + u->old_weight * *cell(o, old, u->old_field, x, y, z);
    return sum;
}

static void plain_level(const struct oracle *o, int64_t level, double *from, double *to) {
    const struct mx_system *s = &o->rs->system;
    const int odd = (int)(level & 1), written = 1 - odd;
    const int64_t h = o->p->h, hy = mx_halo_y(o->p), of_step = level % mx_levels_a_step(o->p);
    for (int64_t z = h; z < o->n[2] - h; z++)
        for (int64_t y = hy; y < o->n[1] - hy; y++)
            for (int64_t x = h; x < o->n[0] - h; x++) {
                double value[TEST_FIELDS];
                for (int32_t f = 0; f < s->n_field[written]; f++)
                    value[f] = stored(s->field[written][f].dtype, &o->rs->update[of_step][f],
                                      updated(o, &o->rs->update[of_step][f], from, to, x, y, z, level));
                for (int32_t f = 0; f < s->n_field[written]; f++) *cell(o, to, f, x, y, z) = value[f];
            }
}

static void plain_sources(const struct oracle *o, int64_t level, double *to) {
    const int64_t h = o->p->h;
    double amplitude;
    for (int i = 0; i < TEST_POINTS; i++) {
        const struct test_point *s = &o->points->source[i];
        if (!source_adds(o->points, i, level, &amplitude)) continue;
        double *at = cell(o, to, s->field, s->x + h, s->y + mx_halo_y(o->p), s->z + h);
        *at = rounded(mx_field_dtype(o->p, level % 2 == 0, s->field), *at + amplitude);
    }
}

static void plain_probes(const struct oracle *o, int64_t level, double *to) {
    const int64_t h = o->p->h, step = level / mx_levels_a_step(o->p);
    for (int i = 0; i < TEST_POINTS; i++) {
        const struct test_point *q = &o->points->probe[i];
        if (probe_sees(o->points, i, level))
            o->points->expected[step][i] = *cell(o, to, q->field, q->x + h, q->y + mx_halo_y(o->p), q->z + h);
    }
}

static void plain_zeros(const struct oracle *o, int array, double *of) {
    const int64_t h = o->p->h;
    for (int32_t f = 0; f < o->rs->system.n_field[array]; f++)
        for (int64_t z = 0; z < o->p->nz; z++)
            for (int64_t y = 0; y < o->p->ny; y++)
                for (int64_t x = 0; x < o->p->nx; x++)
                    if (test_zero(o->sides, o->p, array, f, (int64_t[3]){x, y, z}))
                        *cell(o, of, f, x + h, y + mx_halo_y(o->p), z + h) = 0;
}

static void copy_cell(const struct oracle *o, double *of, int64_t field, const int64_t to[3],
                      const int64_t from[3]) {
    *cell(o, of, field, to[0], to[1], to[2]) = *cell(o, of, field, from[0], from[1], from[2]);
}

/* All frames of an array, x first, then y, then z. */
static void plain_sides(const struct oracle *o, int array, double *of) {
    for (int d = 0; d < 3; d++)
        for (int32_t f = 0; f < o->rs->system.n_field[array]; f++) {
            const struct mx_ends ends = mx_ends_of(o->sides, array, f, d);
            const int64_t h = mx_halo_of(o->p, d);
            for (int64_t i = 0; i < cells_of(o); i++) {
                const int64_t to[3] = {i % o->n[0], i / o->n[0] % o->n[1], i / o->n[0] / o->n[1]};
                int64_t from[3] = {to[0], to[1], to[2]};
                bool odd;
                from[d] = test_image(ends.side[to[d] >= h], mx_extent_of(o->p, d), h, to[d], &odd);
                if (from[d] == to[d]) continue;
                copy_cell(o, of, f, to, from);
                double *at = cell(o, of, f, to[0], to[1], to[2]);
                if (odd) *at = minus(mx_field_dtype(o->p, array, f), *at);
            }
        }
}

/* Of C, whose frame at a periodic side is what stands at the other end. */
static void periodic_fixed(const struct oracle *o) {
    const int64_t extent[3] = {o->p->nx, o->p->ny, o->p->nz};
    for (int d = 0; d < 3; d++)
        for (int64_t i = 0; i < cells_of(o) && mx_sides_periodic(o->sides, d); i++) {
            const int64_t to[3] = {i % o->n[0], i / o->n[0] % o->n[1], i / o->n[0] / o->n[1]};
            int64_t from[3] = {to[0], to[1], to[2]};
            const int64_t h = mx_halo_of(o->p, d);
            from[d] = (to[d] - h + extent[d]) % extent[d] + h;
            for (int64_t f = 0; f < o->rs->system.n_fixed; f++) copy_cell(o, o->fixed, f, to, from);
        }
}

/* A profile's cells are alike along axes, those of the frame too. */
static void profile_fixed(const struct oracle *o) {
    for (int32_t f = 0; f < o->rs->system.n_fixed; f++)
        for (int d = 0; d < 3; d++)
            for (int64_t i = 0; i < cells_of(o) && (o->rs->system.profile[f].alike >> d & 1) != 0; i++) {
                const int64_t to[3] = {i % o->n[0], i / o->n[0] % o->n[1], i / o->n[0] / o->n[1]};
                int64_t from[3] = {to[0], to[1], to[2]};
                from[d] = 0;
                copy_cell(o, o->fixed, f, to, from);
            }
}

static double *copy_of(const struct oracle *o, const double *from) {
    const size_t bytes = (size_t)(TEST_FIELDS * cells_of(o)) * sizeof(double);
    return memcpy(malloc(bytes), from, bytes);
}

static double *random_array(const struct oracle *o, const struct mx_field_of *field, int32_t n) {
    double *a = calloc((size_t)(TEST_FIELDS * cells_of(o)), sizeof(double));
    for (int32_t f = 0; f < n; f++)
        for (int64_t i = 0; i < cells_of(o); i++) {
            const int64_t number = pick(-100, 100);
            double v = rounded(field[f].dtype, (double)number / 128 + (double)(i % 97) / 1000);
            if (!test_is_real(field[f].dtype)) /* most of the type's range */
                v = floor((double)(test_types[field[f].dtype].is_signed ? number : number + 100) / 201 /
                          test_types[field[f].dtype].unit);
            a[f * cells_of(o) + i] = v;
        }
    return a;
}

static void make_oracle(struct oracle *o, const struct random_system *rs, const struct mx_problem *p,
                        struct random_points *points, const struct mx_sides *sides) {
    const struct mx_system *s = &rs->system;
    *o = (struct oracle){.rs = rs,
                         .p = p,
                         .points = points,
                         .sides = sides,
                         .n = {p->nx + 2 * p->h, p->ny + 2 * mx_halo_y(p), p->nz + 2 * p->h}};
    o->array[0][0] = random_array(o, s->field[0], s->n_field[0]);
    /* of jacobi B's frame is A's, and the rest of no account */
    o->array[0][1] =
        s->form == MX_JACOBI ? copy_of(o, o->array[0][0]) : random_array(o, s->field[1], s->n_field[1]);
    for (int i = 0; i < 2; i++) plain_zeros(o, i, o->array[0][i]), plain_sides(o, i, o->array[0][i]);
    o->fixed = random_array(o, s->fixed, s->n_fixed);
    profile_fixed(o);
    periodic_fixed(o);
    const int64_t levels = mx_levels_a_step(p);
    for (int64_t t = 0; t < p->nt; t++) {
        for (int i = 0; i < 2; i++) o->array[t + 1][i] = copy_of(o, o->array[t][i]);
        for (int64_t l = t * levels; l < (t + 1) * levels; l++) {
            const int to = 1 - (int)(l & 1);
            plain_level(o, l, o->array[t + 1][1 - to], o->array[t + 1][to]);
            if (points != NULL) plain_sources(o, l, o->array[t + 1][to]);
            plain_zeros(o, to, o->array[t + 1][to]);
            if (points != NULL) plain_probes(o, l, o->array[t + 1][to]);
            plain_sides(o, to, o->array[t + 1][to]);
        }
    }
}

static void free_oracle(struct oracle *o) {
    for (int64_t t = 0; t <= o->p->nt; t++) free(o->array[t][0]), free(o->array[t][1]);
    free(o->fixed);
}

/* ---- norms of step t, by all cells */

struct of_step {
    const struct oracle *o;
    int64_t t;
    int32_t field;
    struct update update; /* what value_of_row computes */
};

/* The array of the state after so many steps. */
static double *state_after(const struct oracle *o, int64_t steps) {
    return o->array[steps][steps * mx_levels_a_step(o->p) & 1];
}

static double change_of(void *context, int64_t x, int64_t y, int64_t z) {
    const struct of_step *s = context;
    const int64_t h = s->o->p->h, hy = mx_halo_y(s->o->p);
    const enum mx_dtype dtype = s->o->rs->system.field[0][s->field].dtype;
    const double d = *cell(s->o, state_after(s->o, s->t), s->field, x + h, y + hy, z + h) -
                     *cell(s->o, state_after(s->o, s->t - 1), s->field, x + h, y + hy, z + h);
    return test_is_real(dtype) ? rounded(dtype, d) : d;
}

static double square_of_change(void *context, int64_t x, int64_t y, int64_t z) {
    const double d = change_of(context, x, y, z);
    return d * d;
}

static double value_of(void *context, int64_t x, int64_t y, int64_t z) {
    const struct of_step *s = context;
    const int64_t h = s->o->p->h;
    double *read = s->o->rs->system.form == MX_STAGGERED ? s->o->array[s->t][1] : state_after(s->o, s->t - 1);
    return updated(s->o, &s->update, read, NULL, x + h, y + mx_halo_y(s->o->p), z + h,
                   (s->t - 1) * mx_levels_a_step(s->o->p) + mx_reduced_level(&s->o->rs->system));
}

static struct norms_numbers plain_norms(const struct oracle *o, int64_t t) {
    const struct mx_problem *p = o->p;
    struct of_step s = {.o = o, .t = t, .update = o->rs->update[o->rs->system.form == MX_STAGGERED][0]};
    struct norms_numbers e = {.reduce = {0, -INFINITY, INFINITY}};
    double squares = 0, plane[TEST_REDUCES][64];
    s.update.old_weight = 0;
    for (s.field = 0; s.field < o->rs->system.n_field[0]; s.field++) {
        squares += in_order(p, square_of_change, &s, NULL);
        for (int64_t i = 0; i < p->nx * p->ny * p->nz; i++)
            e.max_change =
                fmax(e.max_change, fabs(change_of(&s, i % p->nx, i / p->nx % p->ny, i / p->nx / p->ny)));
    }
    e.rms_change = pow(squares / (double)(s.field * p->nx * p->ny * p->nz), 0.5);
    e.reduce[0] = in_order(p, value_of, &s, plane[0]);
    for (int64_t z = 0; z < p->nz; z++) plane[1][z] = -INFINITY, plane[2][z] = INFINITY;
    for (int64_t i = 0; i < p->nx * p->ny * p->nz; i++) {
        const int64_t z = i / p->nx / p->ny;
        const double value = value_of(&s, i % p->nx, i / p->nx % p->ny, z);
        plane[1][z] = fmax(plane[1][z], fabs(value - 0.01));
        plane[2][z] = fmin(plane[2][z], value);
        e.reduce[1] = fmax(e.reduce[1], plane[1][z]);
        e.reduce[2] = fmin(e.reduce[2], plane[2][z]);
    }
    for (int i = 0; i < TEST_REDUCES; i++) e.spread[i] = spread_of(plane[i], p->nz);
    return e;
}

/* ------------------------------------------------------------------ its arrays on Buffers */

/* Planes of A, B or one field of C: given, or compared. */
struct planes {
    const struct oracle *o;
    const struct mx_layout *layout;
    const struct mx_field_of *field;
    const int64_t *offset; /* of the fields in a row */
    int32_t n;
    double *values;
    int64_t wrong;
};

static int give_plane(void *context, int64_t z, char *plane) {
    const struct planes *s = context;
    memset(plane, 0xee, (size_t)s->layout->plane_pitch_bytes);
    for (int64_t y = 0; y < s->o->n[1]; y++)
        for (int32_t f = 0; f < s->n; f++)
            for (int64_t x = 0; x < s->o->n[0]; x++)
                store_cell(s->field[f].dtype, plane + y * s->layout->row_pitch_bytes + s->offset[f], x,
                           *cell(s->o, s->values, f, x, y, z));
    return 0;
}

static int compare_plane(void *context, int64_t z, char *plane) {
    struct planes *s = context;
    for (int64_t y = 0; y < s->o->n[1]; y++)
        for (int32_t f = 0; f < s->n; f++)
            for (int64_t x = 0; x < s->o->n[0]; x++) {
                double expected = *cell(s->o, s->values, f, x, y, z);
                double found =
                    load_cell(s->field[f].dtype, plane + y * s->layout->row_pitch_bytes + s->offset[f], x);
                s->wrong += memcmp(&expected, &found, sizeof found) != 0;
            }
    return 0;
}

static struct planes planes_of(const struct oracle *o, const struct mx_layout *layout, int array,
                               double *values) {
    const struct mx_system *s = &o->rs->system;
    return (struct planes){
        o, layout, s->field[array], layout->field_offset_bytes[array], s->n_field[array], values, 0};
}

/* ------------------------------------------------------------------ a run */

struct setting {
    struct random_system rs;
    struct mx_problem problem;
    struct mx_plan plan;
    const struct mx_algorithm *algorithm;
    const char *backend;
    enum mx_advice advice;
    bool integrity, commits, points;
    struct mx_sides sides;
    int32_t n_buffers, source;
    double commit_every_s;
    int64_t stop_at;   /* a check that ends the run; 0 = none does */
    const char *accel; /* the arrays are in memory of this one; NULL = in DRAM */
};

struct bench {
    const struct setting *s;
    struct oracle oracle;
    struct random_points points;
    struct random_norms norms;
    struct mx_after after; /* without points */
    struct mx_layout layout;
    mx_device *device;
    struct mx_device_facts facts;
    struct mx_schedule *schedule;
    mx_buffer *buffer[3], *partner[3], *fixed[TEST_FIXED], *seams;
    mx_device *file[TEST_FIXED]; /* of fields of C that are files, read in place */
    const char *dir;
    mx_accel *accel;
    int64_t commits, last_commit, wrong_commits;
    struct {
        int64_t last, wrong; /* step of the state that was looked at last */
        int64_t end_at;      /* states from this step on are bad; 0 = none is */
    } finite;
    struct {
        struct mx_taking taking;
        bool asked;
        int64_t last;          /* the step that was taken last */
        uint8_t *seen;         /* [array][z][y]: rows of the step that is being taken */
        int64_t wrong;         /* cells, and rows that came twice, not at all or out of order */
        int64_t rows, steps;   /* of this step; steps that are whole */
        _Atomic int64_t calls; /* under way */
    } taken;
    char text[400];
};

static const char *describe(const struct setting *s, char *text, size_t capacity) {
    const struct mx_system *y = &s->rs.system;
    char sides[MX_SIDES_BRIEF];
    snprintf(
        text, capacity,
        "%s on %s: form %d stages %d h %d%s hc %d fields %d %d C %d n %lld %lld %lld nt %lld by %lld bz %lld "
        "bt %lld "
        "slab %lld ahead %lld %s threads %d faces %s%s%s due %lld %lld stop at %lld buffers %d source %d %s",
        s->algorithm->name, s->backend, y->form, y->stages, y->h, y->flat ? " flat" : "", y->hc,
        y->n_field[0], y->n_field[1], y->n_fixed, (long long)s->problem.nx, (long long)s->problem.ny,
        (long long)s->problem.nz, (long long)s->problem.nt, (long long)s->plan.by, (long long)s->plan.bz,
        (long long)s->plan.bt, (long long)s->plan.slab, (long long)s->plan.ahead, s->plan.engine,
        s->plan.threads, s->plan.seams, s->plan.in_place ? " in place" : "", s->points ? " points" : "",
        (long long)s->problem.due[0], (long long)s->problem.due[1], (long long)s->stop_at, s->n_buffers,
        s->source, s->accel != NULL ? s->accel : mx_sides_brief(&s->sides, &s->problem, sides));
    return text;
}

static void check_data(const struct bench *b, mx_buffer *buffer, int64_t unit) {
    mx_why why = {""};
    if (b->s->integrity)
        cr_assert(mx_buffer_integrity(buffer, (uint64_t)unit, NULL, &why) == 0, "%s", why.text);
}

static mx_buffer *new_buffer(struct bench *b, const char *name, int i, int64_t bytes) {
    mx_buffer *out = NULL;
    mx_why why = {""};
    char numbered[16];
    snprintf(numbered, sizeof numbered, "%s%d", name, i);
    cr_assert(mx_buffer_create(b->device, numbered, (uint64_t)bytes, &why, &out) == 0, "%s: %s", b->text,
              why.text);
    return out;
}

static void write_planes(struct bench *b, mx_buffer *buffer, struct planes planes) {
    mx_why why = {""};
    cr_assert(mx_field_write(buffer, planes.layout, NULL, NULL, give_plane, &planes, &why) == 0, "%s: %s",
              b->text, why.text);
}

static int64_t wrong_cells(struct bench *b, mx_buffer *buffer, struct planes planes) {
    mx_why why = {""};
    cr_assert(mx_field_read(buffer, planes.layout, NULL, NULL, compare_plane, &planes, &why) == 0, "%s: %s",
              b->text, why.text);
    return planes.wrong;
}

static void open_state(struct bench *b) {
    const struct mx_shape *shape = &b->schedule->shape;
    const int64_t unit = b->s->algorithm->cuts_y(&b->s->problem, &b->s->plan) ? b->layout.row_pitch_bytes
                                                                              : b->layout.plane_pitch_bytes;
    for (int i = 0; i < b->s->n_buffers; i++)
        for (int part = 0; part < (shape->pairs ? 2 : 1); part++) {
            mx_buffer **at = part ? &b->partner[i] : &b->buffer[i];
            *at = new_buffer(b, part ? "p" : "s", i, b->layout.buffer_bytes);
            check_data(b, *at, unit);
            if (i == b->s->source || shape->init_both)
                write_planes(b, *at, planes_of(&b->oracle, &b->layout, part, b->oracle.array[0][part]));
        }
}

/* The file itself, which is gone from its directory once it is open: nothing but the device needs it. */
static void open_file(struct bench *b, int32_t i, struct mx_fixed_file *file, const char *image) {
    const struct mx_device_options o = {.backend = b->s->backend,
                                        .path = "a field",
                                        .queue_depth = 4,
                                        .max_request_bytes = 16384,
                                        .advice = b->s->advice};
    struct mx_device_facts facts = {.size = sizeof facts};
    mx_why why = {""};
    char path[300];
    snprintf(path, sizeof path, "%s/field-%d", b->dir, i);
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    cr_assert(fd >= 0 && mx_write_all(fd, image, (size_t)file->bytes, 0) == 0);
    cr_assert(mx_device_open_file(fd, &o, &why, &b->file[i]) == 0, "%s: %s", b->text, why.text);
    cr_assert(mx_buffer_open(b->file[i], MX_FILE_BUFFER, &why, &b->fixed[i]) == 0, "%s: %s", b->text,
              why.text);
    close(fd);
    unlink(path);
    mx_device_facts(b->file[i], &facts);
    file->align_bytes = facts.offset_align_bytes;
    cr_assert(mx_layout_fixed_file(&b->s->problem, i, file, &why, &b->layout.fixed[i]) == 0, "%s", why.text);
}

/* A file that somebody made: cells without gaps from some byte on, with the frame or without, rubbish around.
 */
static void make_file(struct bench *b, int32_t i) {
    const struct oracle *o = &b->oracle;
    const struct mx_system *s = &o->rs->system;
    const enum mx_dtype dtype = s->fixed[i].dtype;
    const int64_t bytes = mx_dtype_bytes(dtype), h = b->s->problem.h;
    const bool frame = s->hc > 0 || pick(0, 1);
    const int64_t skip = frame ? 0 : h, skip_y = frame ? 0 : mx_halo_y(o->p), offset = bytes * pick(0, 700);
    const int64_t n[3] = {o->n[0] - 2 * skip, o->n[1] - 2 * skip_y, o->n[2] - 2 * skip};
    struct mx_fixed_file file = {dtype, offset, offset + bytes * n[0] * n[1] * n[2] + pick(0, 900), frame,
                                 b->facts.offset_align_bytes};
    struct mx_block_options options = {0};
    mx_block *block = NULL;
    mx_ticket *ticket = NULL;
    mx_why why = {""};
    cr_assert(mx_layout_fixed_file(&b->s->problem, i, &file, &why, &b->layout.fixed[i]) == 0, "%s", why.text);
    const uint64_t all = ((uint64_t)file.bytes + 4095) / 4096 * 4096;
    cr_assert(mx_block_create(&options, all, &why, &block) == 0, "%s", why.text);
    char *image = mx_block_data(block);
    memset(image, 0xff, all);
    for (int64_t c = 0; c < n[0] * n[1] * n[2]; c++)
        store_cell(dtype, image + offset, c,
                   *cell(o, o->fixed, i, c % n[0] + skip, c / n[0] % n[1] + skip_y, c / n[0] / n[1] + skip));
    if (strcmp(b->s->backend, "dram") != 0 && pick(0, 2)) {
        open_file(b, i, &file, image);
        mx_block_free(block);
        return;
    }
    b->fixed[i] = new_buffer(b, "f", i, (int64_t)all);
    const struct mx_span span = {0, all, image};
    cr_assert(mx_buffer_write(b->fixed[i], &span, 1, &ticket) == 0 && mx_wait(ticket) == 0);
    mx_block_free(block);
}

/* What DRAM has of a profile. */
static void make_profile(struct bench *b, int32_t i) {
    const struct mx_problem *p = &b->s->problem;
    const enum mx_dtype dtype = p->system->fixed[i].dtype;
    struct mx_profile *q = (struct mx_profile *)(uintptr_t)&p->system->profile[i];
    mx_profile_lay(p, dtype, q->alike, q);
    q->memory = malloc((size_t)q->bytes);
    memset(q->memory, 0xff, (size_t)q->bytes);
    const struct mx_profile_range rows = mx_profile_rows(p, q->alike),
                                  planes = mx_profile_planes(p, q->alike);
    for (int64_t z = planes.first; z < planes.end; z++)
        for (int64_t y = rows.first; y < rows.end; y++)
            for (int64_t x = 0; x < b->oracle.n[0]; x++)
                store_cell(dtype,
                           q->memory + q->first_bytes + z * q->plane_pitch_bytes + y * q->row_pitch_bytes, x,
                           *cell(&b->oracle, b->oracle.fixed, i, x, mx_profile_source(p, MX_DIM_Y, y), z));
}

static void open_fixed(struct bench *b) {
    static const int64_t none = 0;
    for (int32_t i = 0; i < b->oracle.rs->system.n_fixed; i++) {
        struct mx_layout l;
        if (mx_is_profile(&b->s->problem, i)) {
            make_profile(b, i);
            continue;
        }
        if (pick(0, 1) && !b->schedule->shape.ghost[MX_DIM_Y]) {
            make_file(b, i);
            continue;
        }
        mx_layout_of_fixed(&b->layout, i, &l);
        b->fixed[i] = new_buffer(b, "c", i, b->layout.fixed[i].bytes);
        check_data(b, b->fixed[i], b->layout.fixed[i].align_bytes);
        write_planes(b, b->fixed[i],
                     (struct planes){&b->oracle, &l, &b->oracle.rs->system.fixed[i], &none, 1,
                                     b->oracle.fixed + i * cells_of(&b->oracle), 0});
    }
}

/* Of a pair both arrays count. */
static int64_t wrong_state(struct bench *b, int32_t buffer, int64_t steps) {
    const int newest = (int)(steps * mx_levels_a_step(&b->s->problem)) & 1;
    double *const *array = b->oracle.array[steps];
    int64_t wrong = 0;
    if (!b->schedule->shape.pairs)
        return wrong_cells(b, b->buffer[buffer], planes_of(&b->oracle, &b->layout, newest, array[newest]));
    for (int i = 0; i < 2; i++)
        wrong += wrong_cells(b, i ? b->partner[buffer] : b->buffer[buffer],
                             planes_of(&b->oracle, &b->layout, i, array[i]));
    return wrong;
}

static int take_commit(void *context, int64_t time, int32_t buffer) {
    struct bench *b = context;
    b->commits++;
    b->wrong_commits += time <= b->last_commit || time > b->s->problem.nt;
    b->last_commit = time;
    b->wrong_commits += wrong_state(b, buffer, time) != 0;
    return 0;
}

static int take_sweep(void *context, int64_t steps, mx_why *why) {
    struct bench *b = context;
    int err = b->s->points ? take_points(&b->points, steps, why) : 0;
    if (err == 0 && b->norms.norms != NULL && mx_norms_is_check(b->norms.norms, steps)) {
        struct mx_norms_result r;
        const struct norms_numbers expected = plain_norms(&b->oracle, steps);
        err = mx_norms_take(b->norms.norms, steps, why, &r);
        if (err == 0) compare_norms(&b->norms, &r, &expected);
    }
    return err < 0 ? err : steps == b->s->stop_at;
}

/* What is stored or handed out has nothing of the poison that Blocks begin with. A state may be said to be
 * bad. */
static int look_at_state(void *context, int64_t steps, const struct mx_nonfinite *found, mx_why *why) {
    struct bench *b = context;
    b->finite.wrong += found->cells != 0 || steps <= b->finite.last;
    if (b->finite.end_at > 0 && steps >= b->finite.end_at) return mx_fail(why, -EDOM, "this state is bad");
    b->finite.last = steps;
    return 0;
}

static void ask_for_looks(struct bench *b, struct mx_execution *x) {
    const struct setting *s = b->s;
    x->finite = look_at_state;
    x->stores_once = s->algorithm->resumable;
    if (x->stores_once && s->stop_at == 0 && s->problem.nt > 0 && pick(0, 4) == 0)
        b->finite.end_at = pick(1, s->problem.nt);
}

/* Where a state was bad the newest one before it is committed, whatever was under way. */
static void check_looks(struct bench *b, int err, const struct mx_executed *done, const mx_why *why) {
    const bool bad = b->finite.end_at > 0;
    cr_expect(err == (bad ? -EDOM : 0), "%s: %s", b->text, why->text);
    cr_expect(b->finite.wrong == 0, "%s: a state up to %lld", b->text, (long long)b->finite.last);
    if (!bad && err == 0 && b->s->stop_at == 0)
        cr_expect(b->finite.last == done->steps_done, "%s: %lld", b->text, (long long)b->finite.last);
    if (!bad || !b->s->commits) return; /* without commits not all are looked at */
    cr_expect(done->steps_done == b->finite.last && b->wrong_commits == 0 && b->taken.wrong == 0, "%s",
              b->text);
    if (done->steps_done == 0) return;
    cr_expect(b->last_commit == done->steps_done && wrong_state(b, done->result, done->steps_done) == 0,
              "%s: step %lld is committed", b->text, (long long)b->last_commit);
}

/* Any check might be the last. */
static bool decides(void *context, int64_t steps) {
    const struct bench *b = context;
    return mx_norms_is_check(b->norms.norms, steps);
}

static void ask_for_norms(struct bench *b, struct mx_execution *x) {
    const struct setting *s = b->s;
    if (s->problem.due[0] == 0) return;
    make_norms(&b->norms, &s->problem, &b->layout, s->plan.threads, pick);
    b->after = s->points ? b->points.after
                         : (struct mx_after){.problem = &s->problem, .layout = &b->layout, .sides = s->sides};
    b->after.norms = b->norms.norms;
    const int64_t most = mx_norms_most_ahead(b->norms.norms);
    if (x->most_ahead == 0 || x->most_ahead > most) x->most_ahead = most;
    x->after = &b->after;
    x->sweep = take_sweep;
    if (s->stop_at > 0) x->decides = decides;
}

static int64_t checks_of(const struct setting *s, int64_t steps) {
    if (s->problem.due[0] == 0) return 0;
    return steps / s->problem.due[0] + (steps == s->problem.nt && steps % s->problem.due[0] != 0);
}

/* ---- states that are taken: every wanted row once, with the cells of its step */

static int64_t arrays_taken(const struct bench *b) { return b->s->rs.system.form == MX_STAGGERED ? 2 : 1; }

/* Multiples of `every`, or the ends of sweeps, of which this problem has others. */
static bool is_next(const struct bench *b, int64_t step) {
    const int64_t every = b->taken.taking.every;
    return every > 0 ? step == b->taken.last + every : step > b->taken.last;
}

static int64_t states_wanted(const struct bench *b, int64_t steps) {
    struct mx_problem p = b->s->problem;
    p.nt = steps;
    if (!b->taken.asked) return 0;
    return p.due[1] > 0 ? steps / p.due[1] : mx_sweep_count(&p, b->schedule->shape.max_levels);
}

static int take_rows(void *context, int64_t step, const struct mx_state_rows *rows, mx_why *why) {
    struct bench *b = context;
    const struct mx_problem *p = &b->s->problem;
    const int array = rows->array;
    const int64_t z = rows->z;
    const int form = b->s->rs.system.form,
              newest = form == MX_STAGGERED ? array : (int)(step * mx_levels_a_step(p) & 1);
    const int32_t h = p->h, hy = mx_halo_y(p);
    (void)why;
    b->taken.wrong += b->taken.calls++ != 0 || !is_next(b, step) ||
                      (form == MX_LEAPFROG && array != newest) || (form == MX_JACOBI && array != 0);
    for (int64_t y = rows->y0; y < rows->y1; y++) {
        uint8_t *seen = &b->taken.seen[(array * b->layout.planes + z) * b->layout.rows + y];
        b->taken.wrong += (*seen)++ != 0 || y < hy || y >= p->ny + hy || z < h || z >= p->nz + h;
        b->taken.rows += (z - h) % b->taken.taking.stride == 0;
        for (int32_t f = 0; f < mx_field_count(p, array); f++) {
            const char *row =
                rows->rows + (y - rows->y0) * rows->row_pitch_bytes + b->layout.field_offset_bytes[array][f];
            for (int64_t x = h; x < p->nx + h; x++) {
                const double wanted = *cell(&b->oracle, b->oracle.array[step][newest], f, x, y, z);
                const double got = load_cell(mx_field_dtype(p, array, f), row, x);
                b->taken.wrong += memcmp(&wanted, &got, sizeof got) != 0;
            }
        }
    }
    b->taken.calls--;
    return 0;
}

static int take_whole(void *context, int64_t step, mx_why *why) {
    struct bench *b = context;
    const struct mx_problem *p = &b->s->problem;
    const int64_t stride = b->taken.taking.stride;
    (void)why;
    b->taken.wrong += b->taken.rows != arrays_taken(b) * p->ny * ((p->nz + stride - 1) / stride);
    b->taken.wrong += !is_next(b, step);
    b->taken.last = step;
    b->taken.steps++;
    b->taken.rows = 0;
    memset(b->taken.seen, 0, (size_t)(2 * b->layout.planes * b->layout.rows));
    return 0;
}

static void ask_for_states(struct bench *b, struct mx_execution *x) {
    b->taken.asked = b->s->problem.due[1] > 0 || pick(0, 2) == 0;
    if (!b->taken.asked) return;
    b->taken.seen = calloc((size_t)(2 * b->layout.planes * b->layout.rows), 1);
    b->taken.taking = (struct mx_taking){.every = b->s->problem.due[1],
                                         .stride = pick(0, 1) ? 1 : pick(2, 5),
                                         .rows = take_rows,
                                         .whole = take_whole,
                                         .context = b};
    x->taking[0] = &b->taken.taking;
}

/* What Buffers that are rewritten in place are read for it. */
static int64_t bytes_taken(const struct bench *b) {
    const struct mx_taking *t = &b->taken.taking;
    const bool from_stores = b->s->algorithm->resumable && b->accel == NULL;
    if (!b->taken.asked || from_stores || !b->s->algorithm->uses_blocks) return 0;
    return b->taken.steps * arrays_taken(b) * ((b->s->problem.nz + t->stride - 1) / t->stride) *
           b->layout.plane_pitch_bytes;
}

static void open_bench(struct bench *b, const char *dir) {
    const struct setting *s = b->s;
    mx_why why = {""};
    struct mx_device_options o = {.backend = s->backend,
                                  .path = dir,
                                  .queue_depth = 8,
                                  .max_request_bytes = 16384,
                                  .force = true,
                                  .advice = s->advice};
    const struct mx_accel_options accel = {.spec = s->accel};
    if (s->accel != NULL) cr_assert(mx_accel_open(&accel, &why, &b->accel) == 0, "%s: %s", b->text, why.text);
    if (s->points) make_points(&b->points, &s->problem, pick);
    make_oracle(&b->oracle, &s->rs, &s->problem, s->points ? &b->points : NULL, &s->sides);
    cr_assert(mx_device_open(&o, &why, &b->device) == 0, "%s: %s", b->text, why.text);
    b->facts.size = sizeof b->facts;
    mx_device_facts(b->device, &b->facts);
    cr_assert(mx_layout_make(&s->problem, b->facts.mapped ? 64 : b->facts.offset_align_bytes,
                             s->algorithm->cuts_y(&s->problem, &s->plan), &why, &b->layout) == 0,
              "%s: %s", b->text, why.text);
    cr_assert(s->algorithm->open(&s->problem, &s->plan, 0, 0, &b->schedule) == 0, "%s", b->text);
    open_fixed(b);
    open_state(b);
    const int64_t side_file = mx_execute_seam_bytes(&b->schedule->shape, &b->layout);
    if (side_file == 0) return;
    b->seams = new_buffer(b, "faces", 0, side_file);
    check_data(b, b->seams, b->layout.row_pitch_bytes);
}

static void close_bench(struct bench *b) {
    b->schedule->ops->close(b->schedule);
    for (int i = 0; i < 3; i++) {
        mx_buffer_close(b->buffer[i]);
        mx_buffer_close(b->partner[i]);
        mx_buffer_close(b->fixed[i]);
        mx_device_close(b->file[i]);
        free(b->s->rs.system.profile[i].memory);
    }
    mx_buffer_close(b->seams);
    mx_device_close(b->device);
    mx_accel_close(b->accel);
    free_oracle(&b->oracle);
    if (b->s->points) free_points(&b->points);
    mx_norms_free(b->norms.norms);
}

static mx_engine *open_engine(const struct bench *b, const struct mx_engine_ops *ops) {
    static struct mx_machine machine;
    mx_engine *engine = NULL;
    mx_why why = {""};
    machine = (struct mx_machine){
        .cores = 2, .sockets = 1, .l1_bytes = 48 << 10, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_engine_options o = {.problem = &b->s->problem,
                                  .machine = &machine,
                                  .row_pitch_bytes = b->layout.row_pitch_bytes,
                                  .threads = b->s->plan.threads,
                                  .slab = b->s->plan.slab,
                                  .tile = b->s->plan.tile,
                                  .column = b->s->plan.column,
                                  .levels = b->schedule->shape.max_levels,
                                  .rows = b->layout.rows,
                                  .planes = b->s->plan.slab,
                                  .accel = b->accel};
    cr_assert(ops->create(&o, &why, &engine) == 0, "%s: %s", b->text, why.text);
    return engine;
}

static void same_traffic(const struct bench *b, const struct mx_counters *before,
                         const struct mx_executed *done) {
    struct mx_counters after = {.size = sizeof after};
    struct mx_traffic t;
    mx_device_counters(b->device, &after);
    b->s->algorithm->traffic(&b->s->problem, &b->s->plan, &b->layout, &t);
    int64_t read = (int64_t)(after.read_bytes - before->read_bytes) - bytes_taken(b);
    for (int i = 0; i < TEST_FIXED; i++) {
        struct mx_counters file = {.size = sizeof file};
        if (b->file[i] != NULL) mx_device_counters(b->file[i], &file);
        read += (int64_t)file.read_bytes;
    }
    const int64_t written = (int64_t)(after.write_bytes - before->write_bytes);
    const int64_t dram = mx_execute_block_bytes(&b->schedule->shape, &b->layout);
    if (b->commits == 0)
        cr_expect(read == t.read_bytes, "%s: read %lld, predicted %lld", b->text, (long long)read,
                  (long long)t.read_bytes);
    cr_expect(written == t.write_bytes, "%s: written %lld, predicted %lld", b->text, (long long)written,
              (long long)t.write_bytes);
    cr_expect(done->updates == t.updates, "%s: %lld updates, predicted %lld", b->text,
              (long long)done->updates, (long long)t.updates);
    cr_expect(done->block_bytes == dram, "%s: %lld bytes of DRAM, predicted %lld", b->text,
              (long long)done->block_bytes, (long long)dram);
    if (b->accel == NULL) return;
    cr_expect((int64_t)done->put_bytes == t.read_bytes, "%s: put %lld, predicted %lld", b->text,
              (long long)done->put_bytes, (long long)t.read_bytes);
    cr_expect((int64_t)done->get_bytes == t.write_bytes, "%s: got %lld, predicted %lld", b->text,
              (long long)done->get_bytes, (long long)t.write_bytes);
}

/* Another value that a cell of any type has: 255 and one more is 255. */
static void another(double *cell) { *cell += *cell > 0 ? -1 : 1; }

/* The plain recomputation finds the run's arrays right; with another start, or with another cell in the
 * partner, it does not. Memory is short, so that some of it takes several passes. */
static void verify(struct bench *b, int32_t result) {
    const bool pairs = b->schedule->shape.pairs;
    const int newest = (int)mx_levels_of(&b->s->problem, b->s->problem.nt) & 1;
    mx_buffer *scratch[2] = {new_buffer(b, "v", 0, b->layout.buffer_bytes),
                             pairs ? new_buffer(b, "v", 1, b->layout.buffer_bytes) : NULL};
    struct planes start[2];
    for (int i = 0; i < 2; i++) start[i] = planes_of(&b->oracle, &b->layout, i, b->oracle.array[0][i]);
    struct mx_verification v = {.problem = &b->s->problem,
                                .layout = &b->layout,
                                .source = give_plane,
                                .source_context = &start[0],
                                .partner_source = give_plane,
                                .partner_context = &start[1],
                                .device = b->device,
                                .result = b->buffer[result],
                                .partner = b->partner[result],
                                .scratch = scratch[0],
                                .scratch_partner = scratch[1],
                                .fixed = {b->fixed[0], b->fixed[1], b->fixed[2]},
                                .after = b->s->points ? &b->points.after : NULL};
    mx_why why = {""};
    int err = -ENOMEM;
    for (v.memory_bytes = (uint64_t)pick(16, 34) << 20; err == -ENOMEM; v.memory_bytes += 1 << 18)
        err = mx_verify(&v, &why);
    cr_expect(err == 0, "%s: verify: %d %s", b->text, err, why.text);
    const struct mx_problem *p = &b->s->problem;
    if (p->nt == 0) {
        mx_buffer_close(scratch[0]);
        mx_buffer_close(scratch[1]);
        return;
    }
    if (mx_sides_all_fixed(
            &b->s->sides)) { /* one cell of the frame of the newest array, which stays as it is */
        another(&start[pairs ? newest : 0].values[cells_of(&b->oracle) - 1]);
    } else { /* one cell of the result */
        struct planes planes = planes_of(&b->oracle, &b->layout, newest, b->oracle.array[p->nt][newest]);
        another(cell(&b->oracle, planes.values, 0, p->h, mx_halo_y(p), p->h + p->nz - 1));
        write_planes(b, pairs && newest ? b->partner[result] : b->buffer[result], planes);
    }
    v.memory_bytes = (uint64_t)64 << 20;
    err = mx_verify(&v, &why);
    cr_expect(err == 1 && strstr(why.text, "differs") != NULL, "%s: verify of another cell: %d", b->text,
              err);
    mx_buffer_close(scratch[0]);
    mx_buffer_close(scratch[1]);
}

/* Opens, initialises, executes, compares; false if the plan is none. */
static bool run(const struct setting *s, const char *dir) {
    struct bench b = {.s = s, .dir = dir, .facts.size = sizeof b.facts};
    struct mx_executed done;
    struct mx_counters before = {.size = sizeof before};
    mx_why why = {""};
    if (s->algorithm->check(&s->problem, &s->plan, &why) < 0) return false;
    describe(s, b.text, sizeof b.text);
    systems_row = &s->rs;
    open_bench(&b, dir);
    const struct mx_engine_ops *ops = mx_engine_find(s->plan.engine);
    mx_engine *engine = open_engine(&b, ops);
    struct mx_execution x = {.problem = &s->problem,
                             .plan = &s->plan,
                             .layout = &b.layout,
                             .device = b.device,
                             .buffer = {b.buffer[0], b.buffer[1], b.buffer[2]},
                             .partner = {b.partner[0], b.partner[1], b.partner[2]},
                             .fixed = {b.fixed[0], b.fixed[1], b.fixed[2]},
                             .n_buffers = s->n_buffers,
                             .source = s->source,
                             .committed = -1,
                             .commit_every_s = s->commit_every_s,
                             .seams = b.seams,
                             .accel = b.accel,
                             .mapped = b.facts.mapped,
                             .advise = s->advice == MX_ADVICE_SCHEDULE,
                             .poison = b.schedule->shape.rows > 0,
                             .commit = s->commits ? take_commit : NULL,
                             .context = &b};
    ask_for_looks(&b, &x);
    if (s->points) {
        ask_for_points(&b.points, &b.layout, &s->sides, b.schedule->shape.max_levels, pick(0, 4), &x);
        memcpy(b.points.after.ghost, b.schedule->shape.ghost, sizeof b.points.after.ghost);
        x.sweep = take_sweep;
    }
    ask_for_states(&b, &x);
    ask_for_norms(&b, &x);
    const int64_t steps = s->stop_at > 0 ? s->stop_at : s->problem.nt;
    mx_device_counters(b.device, &before);
    const int err = mx_execute(&x, b.schedule, ops, engine, &why, &done);
    check_looks(&b, err, &done, &why);
    if (err == 0) {
        if (s->stop_at == 0) same_traffic(&b, &before, &done);
        cr_expect(done.steps_done == steps, "%s: %lld steps", b.text, (long long)done.steps_done);
        cr_expect(done.ended == (s->stop_at > 0), "%s", b.text);
        cr_expect(!s->commits || steps == 0 || b.last_commit == steps, "%s", b.text);
        cr_expect(b.norms.wrong == 0 && b.norms.checks == checks_of(s, steps),
                  "%s: %lld of %lld norms differ from the plain loop", b.text, (long long)b.norms.wrong,
                  (long long)b.norms.checks);
        cr_expect(b.wrong_commits == 0, "%s: %lld of %lld commits are wrong", b.text,
                  (long long)b.wrong_commits, (long long)b.commits);
        const int64_t states = states_wanted(&b, done.steps_done);
        cr_expect(
            b.taken.wrong == 0 && b.taken.steps == states,
            "%s: taken every %lld steps, stride %lld: %lld of %lld states, %lld cells or rows are wrong",
            b.text, (long long)s->problem.due[1], (long long)b.taken.taking.stride, (long long)b.taken.steps,
            (long long)states, (long long)b.taken.wrong);
        const int64_t wrong = wrong_state(&b, done.result, steps);
        cr_expect(wrong == 0, "%s: %lld cells differ from the plain loop", b.text, (long long)wrong);
        const int64_t traces = s->points ? wrong_traces(&b.points, steps) : 0;
        cr_expect(traces == 0, "%s: %lld values of probes differ", b.text, (long long)traces);
        if (s->stop_at == 0 && pick(0, 7) == 0) verify(&b, done.result);
    }
    free(b.taken.seen);
    ops->free(engine);
    const uint64_t left = b.accel != NULL ? mx_accel_used_bytes(b.accel) : 0;
    cr_expect(left == 0, "%s: %llu bytes were left there", b.text, (unsigned long long)left);
    close_bench(&b);
    return true;
}

/* ------------------------------------------------------------------ settings */

static void random_plan(struct setting *s) {
    const struct mx_problem *p = &s->problem;
    const int64_t step = mx_levels_a_step(p);
    struct mx_plan *q = &s->plan;
    const bool stream = strcmp(s->algorithm->name, "stream") == 0,
               resident = strcmp(s->algorithm->name, "resident") == 0;
    snprintf(q->algorithm, sizeof q->algorithm, "%s", s->algorithm->name);
    snprintf(q->engine, sizeof q->engine, "%s", pick(0, 2) ? "tiled" : "iblock");
    snprintf(q->tuner, sizeof q->tuner, "manual");
    q->by = pick(0, 2) ? pick(1, p->ny) : p->ny;
    q->bz = pick(0, 2) ? pick(1, p->nz) : p->nz;
    q->bt = step * pick(1, step == 2 ? 3 : 5);
    q->slab = pick(1, 9);
    q->tile = pick(0, 9);
    q->column = pick(0, 1) * pick(1, 20);
    q->ahead = pick(1, 4);
    q->threads = (int32_t)pick(1, 3);
    if (resident) q->in_place = mx_reads_old(p) && pick(0, 3) == 0;
    if (!stream) return;
    q->bz = p->nz;
    q->in_place = mx_reads_old(p) && pick(0, 3) == 0;
    if (pick(0, 1)) strcpy(q->seams, MX_SEAMS_IN_FILE);
}

static const char *random_backend(const struct mx_algorithm *a) {
    static const char *const blocks[] = {"uring", "aio", "mmap", "uring", "aio", "dram"};
    static const char *const direct[] = {"mmap", "dram"};
    return a->needs_mapped ? direct[pick(0, 1)] : blocks[pick(0, 5)];
}

/* Any that the algorithm can do with, if need be in another plan. */
static void random_sides(struct setting *s) {
    for (int i = 0; i < 40; i++) {
        test_sides(&s->problem, i < 39 ? 3 : 0, pick, &s->sides);
        s->problem.sides = s->sides;
        if (s->algorithm->check(&s->problem, &s->plan, NULL) == 0) return;
        if (i % 2 == 1) random_plan(s);
    }
}

static void random_setting(struct setting *s, const struct mx_algorithm *algorithm, bool sides) {
    *s = (struct setting){.algorithm = algorithm, .backend = random_backend(algorithm)};
    if (strcmp(s->backend, "mmap") == 0) s->advice = (enum mx_advice)pick(MX_ADVICE_NONE, MX_ADVICE_SCHEDULE);
    random_system(&s->rs, pick);
    for (int32_t i = 0; i < s->rs.system.n_fixed; i++) /* along y or z, and maybe along other axes */
        if (pick(0, 2) == 0) s->rs.system.profile[i].alike = (uint8_t)(pick(1, 3) << 1 | pick(0, 1));
    const int64_t most = s->rs.system.n_field[0] + s->rs.system.n_field[1] > 5 ? 12 : 18;
    if (pick(0, 3) == 0) make_flat(&s->rs);
    const int64_t ny = s->rs.system.flat ? 1 : pick(1, most);
    s->problem = problem_of(&s->rs, pick(1, most), ny, pick(1, most), pick(0, MOST_STEPS));
    random_plan(s);
    s->points = sides || pick(0, 1);
    if (sides) random_sides(s);
    struct mx_shape shape;
    mx_why why = {""};
    if (algorithm->check(&s->problem, &s->plan, &why) < 0) return;
    algorithm->shape(&s->problem, &s->plan, &shape);
    s->n_buffers = shape.in_place ? (shape.pairs ? 1 : 2) : (int32_t)pick(2, 3);
    s->source = shape.in_place ? 0 : (int32_t)pick(0, s->n_buffers - 1);
    s->commits = !shape.in_place && pick(0, 1);
    s->commit_every_s = pick(0, 1) ? 1e-3 : 0;
    s->integrity = pick(0, 2) == 0 && !algorithm->needs_mapped;
    if (pick(0, 1)) s->problem.due[0] = pick(1, 4);
    if (s->problem.due[0] > 0 && s->problem.nt > 0 && pick(0, 2) == 0) {
        const int64_t at = s->problem.due[0] * pick(1, 3);
        s->stop_at = at < s->problem.nt ? at : s->problem.nt;
    }
}

static void many(const char *name, int settings, uint64_t seed, bool sides) {
    const struct mx_algorithm *algorithm = mx_algorithm_find(name);
    const char *base = getenv("MEMEXT_TEST_DIR");
    char dir[256];
    int ran = 0;
    settings = mx_cases(settings, 2);
    snprintf(dir, sizeof dir, "%s/mx-systems-XXXXXX", base != NULL ? base : "build");
    cr_assert(mkdtemp(dir) != NULL, "no test directory under %s", dir);
    state = seed;
    for (int i = 0; i < settings; i++) {
        struct setting s;
        random_setting(&s, algorithm, sides);
        s.problem.due[1] = i % 4;
        ran += run(&s, dir);
    }
    rmdir(dir);
    cr_expect(ran > settings / 8, "%s: only %d of %d settings were allowed", name, ran, settings);
}

/* In memory of an accelerator. */
static void many_there(const char *name, const char *accel, int settings, uint64_t seed, bool sides) {
    const char *base = getenv("MEMEXT_TEST_DIR");
    char dir[256];
    int ran = 0;
    settings = mx_cases(settings, 2);
    snprintf(dir, sizeof dir, "%s/mx-systems-XXXXXX", base != NULL ? base : "build");
    cr_assert(mkdtemp(dir) != NULL, "no test directory under %s", dir);
    state = seed;
    for (int i = 0; i < settings; i++) {
        struct setting s;
        random_setting(&s, mx_algorithm_find(name), sides);
        s.accel = accel;
        s.problem.due[1] = i % 3;
        if (i % 2 == 0 && strcmp(name, "stream") == 0) s.plan.by = (s.problem.ny + 1) / 2; /* strips, seams */
        strcpy(s.plan.engine, "device");
        char *text = text_of_system(&s.rs);
        s.rs.system.text = text;
        ran += run(&s, dir);
        free(text);
    }
    rmdir(dir);
    cr_expect(ran > settings / 8, "%s: only %d of %d settings were allowed", name, ran, settings);
}

Test(systems, on_host) {
    many_there("stream", "host", 40, 21, false);
    many_there("stream", "host,rate=1GB/s", 10, 22, false);
    many_there("resident", "host", 15, 23, false);
    many_there("stream", "host", 60, 24, true);
    many_there("resident", "host", 25, 25, true);
}

/* On a device that compiles kernels: each setting is compiled anew. */
static void on_device(const char *accel, int settings) {
    mx_accel *a;
    mx_why why;
    const struct mx_accel_options o = {.spec = accel};
    if (mx_accel_open(&o, &why, &a) < 0) cr_skip_test("%s", why.text);
    mx_accel_close(a);
    many_there("stream", accel, settings, 31, false);
    many_there("resident", accel, settings, 32, false);
    many_there("stream", accel, settings, 33, true);
    many_there("resident", accel, settings, 34, true);
}

Test(systems, on_opencl) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    cr_skip_test("the sanitizers take what PoCL and its compiler do for ours");
#endif
    on_device("opencl", 3);
}
Test(systems, on_cuda) { on_device("cuda", 20); }

Test(systems, direct) { many("direct", 40, 1, false); }
Test(systems, resident) { many("resident", 25, 9, false); }
Test(systems, redundant) { many("redundant", 60, 2, false); }
Test(systems, stream) { many("stream", 100, 3, false); }
Test(systems, skewed) {
    for (int i = 0; mx_algorithms[i] != NULL; i++)
        if (strstr(mx_algorithms[i]->name, "skewed") != NULL)
            many(mx_algorithms[i]->name, 25, 4 + (uint64_t)i, false);
}

/* Mirror and periodic sides, sources and probes: frames and ghost layers. */
Test(sides_of_systems, direct) { many("direct", 25, 11, true); }
Test(sides_of_systems, resident) { many("resident", 25, 19, true); }
Test(sides_of_systems, redundant) { many("redundant", 60, 12, true); }
Test(sides_of_systems, stream) { many("stream", 120, 13, true); }
Test(sides_of_systems, skewed) {
    for (int i = 0; mx_algorithms[i] != NULL; i++)
        if (strstr(mx_algorithms[i]->name, "skewed") != NULL)
            many(mx_algorithms[i]->name, 12, 14 + (uint64_t)i, true);
}
