/* SPDX-License-Identifier: BSD-3-Clause */
/* The executor on real devices: for random awkward problems every algorithm on every backend that can carry
 * it gives, to the bit, the grid of the plain loop, and moves exactly the bytes that CalcTrans predicts.
 * Blocks start as NaN: whatever is used without having been loaded would show. */
#include "effort.h"
#include "engine/engine.h"
#include "execute/execute.h"
#include "grid/grid.h"
#include "random_points.h"
#include "schedule/schedule.h"
#include "stencil/stencil.h"

#include <memext/backend.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct setting {
    struct mx_problem problem;
    struct mx_plan plan;
    const struct mx_algorithm *algorithm;
    const char *backend;
    enum mx_advice advice;
    const char *fault;
    int32_t n_buffers; /* 0 = 2 */
    int32_t source;    /* Buffer of the initial grid */
    int32_t committed; /* 1 = as if it was committed already */
    double commit_every_s;
    bool integrity;
    struct watch *watch;          /* NULL = nobody watches */
    struct random_points *points; /* NULL = none; then `commit` has no context */
};

/* What is seen of a run from outside, see below. */
struct watch;
static void watch_open(struct watch *w, const struct setting *s, const struct mx_layout *layout,
                       const char *place, mx_buffer *const *buffers);
static void watch_event(void *context, const struct mx_event *event);
static const atomic_int *watch_stop(const struct watch *w);

static uint64_t state = 12345;

static int64_t pick(int64_t low, int64_t high) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1));
}

static void make_dir(char *path, size_t capacity) {
    const char *base = getenv("MEMEXT_TEST_DIR");
    snprintf(path, capacity, "%s/mx-execute-XXXXXX", base != NULL ? base : "build");
    cr_assert(mkdtemp(path) != NULL, "no test directory under %s", path);
}

static void random_problem(struct mx_problem *p) {
    static const char *const names[] = {"star7", "star7", "edge19", "box27", "star13", "star25"};
    const struct mx_stencil *s = mx_stencil_find(names[pick(0, 5)]);
    memset(p, 0, sizeof *p);
    snprintf(p->stencil, sizeof p->stencil, "%s", s->name);
    memcpy(p->coef, s->coef, sizeof p->coef);
    p->h = s->h;
    p->nx = pick(0, 3) ? pick(1, 40) : 1;
    p->ny = pick(0, 5) ? pick(1, 40) : 1;
    p->nz = pick(0, 5) ? pick(1, 40) : 1;
    p->nt = pick(0, 13);
    p->dtype = pick(0, 2) ? MX_F64 : MX_F32;
}

static void random_plan(struct setting *s) {
    const struct mx_problem *p = &s->problem;
    struct mx_plan *q = &s->plan;
    memset(q, 0, sizeof *q);
    snprintf(q->algorithm, sizeof q->algorithm, "%s", s->algorithm->name);
    snprintf(q->engine, sizeof q->engine, "%s", pick(0, 1) ? "tiled" : "iblock");
    snprintf(q->tuner, sizeof q->tuner, "manual");
    q->by = pick(0, 2) ? pick(1, p->ny) : p->ny;
    q->bz = pick(0, 2) ? pick(1, p->nz) : p->nz;
    q->bt = pick(1, 9);
    q->slab = pick(1, 9);
    q->ahead = pick(1, 4);
    q->threads = (int32_t)pick(1, 3);
    if (strcmp(q->algorithm, "stream") != 0) return;
    q->bz = p->nz;
    if (pick(0, 1)) strcpy(q->seams, MX_SEAMS_IN_FILE);
}

static char *cell_of(const struct mx_problem *p, const struct mx_layout *l, char *array,
                     const struct test_point *t) {
    return array + (t->z + p->h) * l->plane_pitch_bytes + (t->y + p->h) * l->row_pitch_bytes +
           (t->x + p->h) * mx_dtype_bytes(p->dtype);
}

/* Of a step, once all its cells are computed. */
static void plain_points(struct random_points *rp, const struct mx_layout *l, int64_t step, char *array) {
    const struct mx_problem *p = rp->problem;
    for (int i = 0; i < TEST_POINTS; i++) {
        double amplitude;
        char *cell = cell_of(p, l, array, &rp->source[i]);
        if (!source_adds(rp, i, step, &amplitude)) continue;
        if (p->dtype == MX_F64)
            *(double *)cell += amplitude;
        else
            *(float *)cell = (float)((double)*(float *)cell + amplitude);
    }
    for (int i = 0; i < TEST_POINTS; i++) {
        const char *cell = cell_of(p, l, array, &rp->probe[i]);
        rp->expected[step][i] = p->dtype == MX_F64 ? *(const double *)cell : (double)*(const float *)cell;
    }
}

/* The initial grid with the frames of its sides. */
static int fill_sided(void *context, int64_t z, char *plane) {
    const struct mx_fill *fill = context;
    const struct mx_problem *p = fill->problem;
    const int err = mx_fill_plane(context, mx_side_source(p->sides.side[MX_DIM_Z], p->nz, p->h, z), plane);
    if (err == 0) mx_sides_plane(&p->sides, p, fill->layout, 0, plane);
    return err;
}

/* All frames of an array, once all cells of a level are computed. */
static void plain_sides(const struct mx_problem *p, const struct mx_layout *l, char *array) {
    if (mx_sides_all_fixed(&p->sides)) return;
    for (int64_t z = 0; z < l->planes; z++)
        mx_sides_plane(&p->sides, p, l, 0, array + z * l->plane_pitch_bytes);
    for (int64_t z = 0; z < l->planes; z++) {
        const int64_t from = mx_side_source(p->sides.side[MX_DIM_Z], p->nz, p->h, z);
        if (from != z)
            memcpy(array + z * l->plane_pitch_bytes, array + from * l->plane_pitch_bytes,
                   (size_t)l->plane_pitch_bytes);
    }
}

/* nt plain triple loops over whole arrays: the definition of the result. */
static char *plain(const struct mx_problem *p, const struct mx_layout *l, struct random_points *points) {
    char *a[2];
    struct mx_fill fill = {.problem = p, .layout = l, .init = &mx_inits[0]};
    mx_kernel_fn *kernel = mx_stencil_plain(mx_stencil_find(p->stencil), p->dtype);
    for (int i = 0; i < 2; i++) {
        a[i] = calloc(1, (size_t)l->buffer_bytes);
        for (int64_t z = 0; z < l->planes; z++) fill_sided(&fill, z, a[i] + z * l->plane_pitch_bytes);
    }
    for (int64_t t = 0; t < p->nt; t++) {
        for (int64_t z = p->h; z < p->nz + p->h; z++)
            for (int64_t y = p->h; y < p->ny + p->h; y++) {
                int64_t row = z * l->plane_pitch_bytes + y * l->row_pitch_bytes;
                const char *src[2 * MX_MAX_HALO + 1];
                for (int64_t d = -p->h; d <= p->h; d++)
                    src[d + p->h] = a[t & 1] + row + d * l->plane_pitch_bytes;
                struct mx_patch patch = {.dst = a[(t + 1) & 1] + row,
                                         .src = src,
                                         .row_pitch_bytes = l->row_pitch_bytes,
                                         .rows = 1,
                                         .h = p->h,
                                         .nx = p->nx,
                                         .x0 = p->h,
                                         .x1 = p->nx + p->h};
                kernel(&patch, p->coef);
            }
        if (points != NULL) plain_points(points, l, t, a[(t + 1) & 1]);
        plain_sides(p, l, a[(t + 1) & 1]);
    }
    free(a[(p->nt + 1) & 1]);
    return a[p->nt & 1];
}

struct expectation {
    const struct mx_layout *layout;
    const char *grid;
    int64_t wrong_rows;
};

static int compare_plane(void *context, int64_t z, char *plane) {
    struct expectation *e = context;
    const struct mx_layout *l = e->layout;
    for (int64_t y = 0; y < l->rows; y++)
        e->wrong_rows +=
            memcmp(plane + y * l->row_pitch_bytes,
                   e->grid + z * l->plane_pitch_bytes + y * l->row_pitch_bytes, (size_t)l->row_bytes) != 0;
    return 0;
}

static const char *describe(const struct setting *s, char *text, size_t capacity) {
    snprintf(
        text, capacity,
        "%s on %s: %s %s n %lld %lld %lld nt %lld by %lld bz %lld bt %lld slab %lld ahead %lld %s threads %d "
        "faces %s",
        s->algorithm->name, s->backend, s->problem.stencil, s->problem.dtype == MX_F64 ? "f64" : "f32",
        (long long)s->problem.nx, (long long)s->problem.ny, (long long)s->problem.nz,
        (long long)s->problem.nt, (long long)s->plan.by, (long long)s->plan.bz, (long long)s->plan.bt,
        (long long)s->plan.slab, (long long)s->plan.ahead, s->plan.engine, s->plan.threads, s->plan.seams);
    return text;
}

/* Units as small as the layout and the transfers allow. */
static void check_data(const struct setting *s, const struct mx_layout *l, mx_buffer *buffer, bool seams) {
    mx_why why = {""};
    const bool rows = seams || s->algorithm->cuts_y(&s->problem, &s->plan);
    if (!s->integrity) return;
    cr_assert(mx_buffer_integrity(buffer, (uint64_t)(rows ? l->row_pitch_bytes : l->plane_pitch_bytes), NULL,
                                  &why) == 0,
              "%s", why.text);
}

static int take_sweep(void *context, int64_t steps, mx_why *why) { return take_points(context, steps, why); }

struct outcome {
    int err;
    bool ran;
    mx_why why;
    struct mx_executed done;
};

/* Of hundreds of runs hwloc looks at the machine once. */
static const struct mx_machine *this_machine(void) {
    static struct mx_machine machine;
    mx_why why = {""};
    if (machine.cores == 0) cr_assert(mx_machine_detect(&why, &machine) == 0, "%s", why.text);
    return &machine;
}

/* Opens, initialises, executes, compares. Returns what mx_execute returned. */
static struct outcome run(const struct setting *s, const char *dir, int (*commit)(void *, int64_t, int32_t),
                          void *context) {
    char text[400];
    mx_why why = {""};
    struct outcome outcome = {0};
    struct mx_layout layout;
    struct mx_device_facts facts = {.size = sizeof facts};
    struct mx_traffic traffic;
    mx_device *device = NULL;
    mx_buffer *buffer[3] = {NULL, NULL, NULL}, *seams = NULL;
    const int32_t n_buffers = s->n_buffers > 0 ? s->n_buffers : 2;
    struct mx_schedule *schedule = NULL;
    mx_engine *engine = NULL;
    struct mx_device_options o = {.backend = s->backend,
                                  .path = dir,
                                  .queue_depth = 8,
                                  .max_request_bytes = 16384,
                                  .force = true,
                                  .advice = s->advice,
                                  .fault = s->fault};
    describe(s, text, sizeof text);
    if (s->algorithm->check(&s->problem, &s->plan, &why) < 0) return outcome;
    outcome.ran = true;
    cr_assert(mx_device_open(&o, &why, &device) == 0, "%s: %s", text, why.text);
    mx_device_facts(device, &facts);
    cr_assert(mx_layout_make(&s->problem, facts.mapped ? 64 : facts.offset_align_bytes,
                             s->algorithm->cuts_y(&s->problem, &s->plan), &why, &layout) == 0,
              "%s: %s", text, why.text);
    struct mx_fill fill = {.problem = &s->problem, .layout = &layout, .init = &mx_inits[0]};
    cr_assert(s->algorithm->open(&s->problem, &s->plan, 0, 0, &schedule) == 0, "%s", text);
    static const char *const names[3] = {"a", "b", "c"};
    for (int i = 0; i < n_buffers && outcome.err == 0; i++) {
        cr_assert(mx_buffer_create(device, names[i], (uint64_t)layout.buffer_bytes, &why, &buffer[i]) == 0,
                  "%s: %s", text, why.text);
        check_data(s, &layout, buffer[i], false);
        if (i == s->source || schedule->shape.init_both)
            outcome.err = mx_field_write(buffer[i], &layout, NULL, NULL, fill_sided, &fill, &why);
        cr_assert(outcome.err == 0 || s->fault != NULL, "%s: %s", text, why.text);
    }
    int64_t side_file = mx_execute_seam_bytes(&schedule->shape, &layout);
    if (side_file > 0)
        cr_assert(mx_buffer_create(device, "faces", (uint64_t)side_file, &why, &seams) == 0, "%s: %s", text,
                  why.text);
    if (side_file > 0) check_data(s, &layout, seams, true);
    const struct mx_engine_ops *ops = mx_engine_find(s->plan.engine);
    struct mx_engine_options eo = {.problem = &s->problem,
                                   .machine = this_machine(),
                                   .row_pitch_bytes = layout.row_pitch_bytes,
                                   .threads = s->plan.threads,
                                   .slab = s->plan.slab,
                                   .levels = schedule->shape.max_levels,
                                   .rows = layout.rows,
                                   .planes = s->plan.slab};
    cr_assert(ops->create(&eo, &why, &engine) == 0, "%s: %s", text, why.text);
    struct mx_counters before = {.size = sizeof before}, after = {.size = sizeof after};
    mx_device_counters(device, &before);
    struct mx_execution x = {.problem = &s->problem,
                             .plan = &s->plan,
                             .layout = &layout,
                             .device = device,
                             .buffer = {buffer[0], buffer[1], buffer[2]},
                             .n_buffers = s->n_buffers,
                             .source = s->source,
                             .committed = s->committed ? s->source : -1,
                             .commit_every_s = s->commit_every_s,
                             .seams = seams,
                             .mapped = facts.mapped,
                             .advise = s->advice == MX_ADVICE_SCHEDULE,
                             .poison = schedule->shape.rows > 0,
                             .commit = commit,
                             .context = context};
    if (s->watch != NULL) {
        watch_open(s->watch, s, &layout, facts.place, buffer);
        x.event = watch_event;
        x.stop = watch_stop(s->watch);
    }
    if (s->points != NULL) {
        ask_for_points(s->points, &layout, &(struct mx_sides){0}, schedule->shape.max_levels, pick(0, 4), &x);
        x.sweep = take_sweep;
        x.context = s->points;
    }
    struct mx_after asked = {.problem = &s->problem, .layout = &layout, .sides = s->problem.sides};
    memcpy(asked.ghost, schedule->shape.ghost, sizeof asked.ghost);
    if (!mx_sides_all_fixed(&asked.sides)) x.after = &asked;
    if (outcome.err == 0) outcome.err = mx_execute(&x, schedule, ops, engine, &why, &outcome.done);
    mx_device_counters(device, &after);
    if (s->fault == NULL || (s->watch != NULL && outcome.err == 0)) {
        cr_expect(outcome.err == 0, "%s: %s", text, why.text);
        s->algorithm->traffic(&s->problem, &s->plan, &layout, &traffic);
        cr_expect((int64_t)(after.read_bytes - before.read_bytes) == traffic.read_bytes,
                  "%s: read %lld, predicted %lld", text, (long long)(after.read_bytes - before.read_bytes),
                  (long long)traffic.read_bytes);
        cr_expect((int64_t)(after.write_bytes - before.write_bytes) == traffic.write_bytes,
                  "%s: written %lld, predicted %lld", text,
                  (long long)(after.write_bytes - before.write_bytes), (long long)traffic.write_bytes);
        cr_expect(outcome.done.updates == traffic.updates, "%s: %lld updates, predicted %lld", text,
                  (long long)outcome.done.updates, (long long)traffic.updates);
        int64_t block_bytes = mx_execute_block_bytes(&schedule->shape, &layout);
        cr_expect(outcome.done.block_bytes == block_bytes, "%s: %lld bytes of DRAM, predicted %lld", text,
                  (long long)outcome.done.block_bytes, (long long)block_bytes);
    }
    if (outcome.err == 0) {
        struct expectation e = {&layout, plain(&s->problem, &layout, s->points), 0};
        int32_t result = outcome.done.result;
        if (n_buffers == 2)
            cr_expect(result == (s->source ^ mx_schedule_final_buffer(s->algorithm, &s->problem, &s->plan)));
        cr_expect(outcome.done.steps_done == s->problem.nt);
        outcome.err = mx_field_read(buffer[result], &layout, NULL, NULL, compare_plane, &e, &why);
        cr_assert(outcome.err == 0 || s->fault != NULL, "%s: %s", text, why.text);
        cr_expect(e.wrong_rows == 0, "%s: %lld rows differ from the plain loop", text,
                  (long long)e.wrong_rows);
        free((char *)(uintptr_t)e.grid);
        const int64_t traces = s->points != NULL ? wrong_traces(s->points, s->problem.nt) : 0;
        cr_expect(traces == 0, "%s: %lld values of probes differ", text, (long long)traces);
    }
    outcome.why = why;
    ops->free(engine);
    schedule->ops->close(schedule);
    for (int i = 0; i < 3; i++) mx_buffer_close(buffer[i]);
    mx_buffer_close(seams);
    mx_device_close(device);
    return outcome;
}

/* Backends without a swap file or privileges; swap is anonymous memory like dram and has its own end-to-end
 * test. */
static const char *random_backend(const struct mx_algorithm *a) {
    static const char *const blocks[] = {"uring", "aio", "mmap", "uring", "aio", "dram"};
    static const char *const direct[] = {"mmap", "dram"};
    return a->needs_mapped ? direct[pick(0, 1)] : blocks[pick(0, 5)];
}

/* Of a few kinds, some that the algorithm can do with; more often in x alone, so that there are tiles of
 * which nothing else is asked. */
static void random_sides(const struct mx_algorithm *algorithm, struct setting *s) {
    const bool x_alone = pick(0, 1);
    for (int i = 0; i < 40; i++) {
        memset(&s->problem.sides, 0, sizeof s->problem.sides);
        for (int d = 0; d < (x_alone || i > 30 ? 1 : 3); d++) {
            uint8_t *side = s->problem.sides.side[d];
            if (mx_extent_of(&s->problem, d) < s->problem.h) continue;
            if (pick(0, 2) == 0)
                side[0] = side[1] = MX_SIDE_PERIODIC;
            else
                side[0] = (uint8_t)pick(0, 1), side[1] = (uint8_t)pick(0, 1);
        }
        if (algorithm->check(&s->problem, &s->plan, NULL) == 0) return;
        if (i % 2 == 1) random_plan(s);
    }
}

enum asked { NOTHING, POINTS, SIDES };

static void run_many(const struct mx_algorithm *algorithm, int settings, uint64_t seed, enum asked asked) {
    char dir[256];
    int ran = 0;
    settings = mx_cases(settings, 2);
    make_dir(dir, sizeof dir);
    state = seed;
    for (int i = 0; i < settings; i++) {
        struct setting s = {.algorithm = algorithm, .backend = random_backend(algorithm)};
        if (strcmp(s.backend, "mmap") == 0) s.advice = (enum mx_advice)pick(0, 5);
        random_problem(&s.problem);
        random_plan(&s);
        s.integrity = i % 3 == 0 && !algorithm->needs_mapped;
        struct random_points rp;
        if (asked == SIDES) random_sides(algorithm, &s);
        if (asked == POINTS) make_points(s.points = &rp, &s.problem, pick);
        ran += run(&s, dir, NULL, NULL).ran;
        if (asked == POINTS) free_points(&rp);
    }
    rmdir(dir);
    cr_expect(ran > settings / 8, "%s: only %d of %d settings were allowed", algorithm->name, ran, settings);
}

Test(execute, every_algorithm_is_bit_identical_and_moves_what_was_predicted) {
    for (int i = 0; mx_algorithms[i] != NULL; i++)
        run_many(mx_algorithms[i], 60, 1000 + (uint64_t)i, NOTHING);
}

/* Sources are added and probes recorded, also by tiles that are else computed in place. */
Test(execute, points_are_those_of_the_plain_loop) {
    for (int i = 0; mx_algorithms[i] != NULL; i++) run_many(mx_algorithms[i], 30, 2000 + (uint64_t)i, POINTS);
}

/* Frames are made and ghost layers read, also by tiles that are computed in place. */
Test(execute, sides_are_those_of_the_plain_loop) {
    for (int i = 0; mx_algorithms[i] != NULL; i++) run_many(mx_algorithms[i], 40, 3000 + (uint64_t)i, SIDES);
}

/* Strips whose seams are in a side file, with sizes that divide nothing: run() compares grid, bytes and DRAM.
 * The seams of DRAM and file are the same; only their bytes are moved besides. */
static const struct {
    const char *stencil;
    int64_t ny, nz, nt, by, bt, slab, ahead;
} side_files[] = {
    {"star7", 37, 41, 13, 5, 4, 3, 2},  {"star7", 11, 7, 9, 1, 9, 1, 1},   {"box27", 2, 40, 11, 1, 3, 9, 4},
    {"star7", 23, 31, 12, 22, 5, 2, 2}, {"star13", 29, 23, 7, 7, 3, 5, 3}, {"star13", 19, 13, 11, 1, 4, 3, 1},
    {"star25", 31, 37, 5, 13, 2, 4, 1}, {"star25", 17, 3, 6, 1, 5, 2, 2},
};

static struct setting side_file_setting(size_t i, const char *backend, const char *engine) {
    struct setting s = {.algorithm = mx_algorithm_find("stream"), .backend = backend};
    const struct mx_stencil *st = mx_stencil_find(side_files[i].stencil);
    s.problem = (struct mx_problem){.nx = 13,
                                    .ny = side_files[i].ny,
                                    .nz = side_files[i].nz,
                                    .nt = side_files[i].nt,
                                    .h = st->h,
                                    .dtype = MX_F64};
    strcpy(s.problem.stencil, st->name);
    memcpy(s.problem.coef, st->coef, sizeof s.problem.coef);
    s.plan = (struct mx_plan){.algorithm = "stream",
                              .tuner = "manual",
                              .by = side_files[i].by,
                              .bz = side_files[i].nz,
                              .bt = side_files[i].bt,
                              .slab = side_files[i].slab,
                              .ahead = side_files[i].ahead,
                              .seams = MX_SEAMS_IN_FILE,
                              .threads = 2};
    strcpy(s.plan.engine, engine);
    return s;
}

Test(execute, seams_in_a_side_file) {
    static const char *const backends[] = {"uring", "aio", "mmap", "dram", "fault:aio"};
    static const char *const engines[] = {"tiled", "iblock"};
    char dir[256];
    make_dir(dir, sizeof dir);
    for (size_t i = 0; i < 2 * sizeof side_files / sizeof side_files[0]; i++)
        for (size_t b = 0; b < sizeof backends / sizeof backends[0]; b++) {
            struct setting s = side_file_setting(i / 2, backends[b], engines[i % 2]);
            struct mx_layout layout;
            struct mx_traffic filed, kept;
            cr_expect(run(&s, dir, NULL, NULL).ran);
            cr_assert(mx_layout_make(&s.problem, 512, true, NULL, &layout) == 0);
            s.algorithm->traffic(&s.problem, &s.plan, &layout, &filed);
            strcpy(s.plan.seams, MX_SEAMS_IN_DRAM);
            s.algorithm->traffic(&s.problem, &s.plan, &layout, &kept);
            cr_expect(filed.seam_read_bytes > 0 &&
                      filed.read_bytes == kept.read_bytes + kept.seam_read_bytes);
            cr_expect(filed.write_bytes == kept.write_bytes + kept.seam_write_bytes);
        }
    rmdir(dir);
}

/* ------------------------------------------------------------------ errors and commits */

struct commits {
    int64_t times[64];
    int n, fail_at;
};

static int take_commit(void *context, int64_t time, int32_t buffer) {
    struct commits *c = context;
    (void)buffer;
    c->times[c->n++] = time;
    return c->n == c->fail_at ? -EIO : 0;
}

static struct setting stream_setting(const char *backend) {
    struct setting s = {.algorithm = mx_algorithm_find("stream"), .backend = backend};
    const struct mx_stencil *st = mx_stencil_find("star7");
    s.problem = (struct mx_problem){
        .nx = 30, .ny = 20, .nz = 40, .nt = 11, .h = 1, .dtype = MX_F64, .stencil = "star7"};
    memcpy(s.problem.coef, st->coef, sizeof s.problem.coef);
    s.plan = (struct mx_plan){.algorithm = "stream",
                              .engine = "iblock",
                              .tuner = "manual",
                              .by = 20,
                              .bz = 40,
                              .bt = 3,
                              .slab = 4,
                              .ahead = 2,
                              .threads = 1};
    return s;
}

/* One commit a sweep, in order: times = 3, 6, 9, 11. */
Test(execute, commits_follow_sweeps) {
    char dir[256];
    make_dir(dir, sizeof dir);
    struct setting s = stream_setting("uring");
    struct commits c = {.fail_at = -1};
    struct outcome o = run(&s, dir, take_commit, &c);
    cr_expect(o.ran && o.err == 0 && c.n == 4);
    static const int64_t expected[4] = {3, 6, 9, 11};
    for (int i = 0; i < c.n && i < 4; i++)
        cr_expect(c.times[i] == expected[i], "commit %d is of step %lld", i, (long long)c.times[i]);
    cr_expect(o.done.steps_done == 11);
    rmdir(dir);
}

/* A commit that fails ends the run with its error, and no later one is tried. */
Test(execute, a_failed_commit_ends_the_run) {
    char dir[256];
    make_dir(dir, sizeof dir);
    struct setting s = stream_setting("aio");
    s.fault = ""; /* expect failure */
    struct commits c = {.fail_at = 2};
    struct outcome o = run(&s, dir, take_commit, &c);
    cr_expect(o.ran && o.err == -EIO && c.n == 2, "err %d after %d commits", o.err, c.n);
    rmdir(dir);
}

/* Under injected faults the run ends with the error or with the right grid, never with a wrong one (run()
 * compares). */
Test(execute, faults_end_the_run_or_do_no_harm) {
    static const char *const faults[] = {"seed=%d,short=0.3,reorder=1", "seed=%d,eio=0.02",
                                         "seed=%d,delay_us=200,reorder=1,short=0.1"};
    char dir[256], spec[64];
    int failed = 0, done = 0;
    make_dir(dir, sizeof dir);
    for (int i = 0; i < 30; i++) {
        struct setting s = stream_setting(i % 2 ? "fault:aio" : "fault:uring");
        snprintf(spec, sizeof spec, faults[i % 3], i + 1);
        s.fault = spec;
        struct outcome o = run(&s, dir, NULL, NULL);
        failed += o.err != 0;
        done += o.err == 0;
        cr_expect(o.err == 0 || o.err == -EIO, "fault '%s' gave %d", spec, o.err);
    }
    cr_expect(failed > 0 && done > 0, "%d failed, %d done", failed, done);
    rmdir(dir);
}

/* An I/O error in the side file, which lies behind the two Buffers of at most 2 MiB, ends the run; sweeps
 * before it are committed. A sweep here has 40 transfers of seam slabs, each of one or two requests. */
Test(execute, a_fault_in_the_side_file_ends_the_run) {
    static const struct {
        const char *fault;
        int least, most; /* commits */
    } cases[] = {{"from=6291456,fail_after=1", 0, 0}, {"from=6291456,fail_after=100", 1, 2}};
    char dir[256];
    make_dir(dir, sizeof dir);
    for (int i = 0; i < 4; i++) {
        struct setting s = side_file_setting(0, i % 2 ? "fault:aio" : "fault:uring", "tiled");
        struct commits c = {.fail_at = -1};
        s.problem.ny = 13, s.problem.nz = s.plan.bz = 29, s.plan.bt = 1;
        s.fault = cases[i / 2].fault;
        struct outcome o = run(&s, dir, take_commit, &c);
        cr_expect(o.ran && o.err == -EIO && c.n >= cases[i / 2].least && c.n <= cases[i / 2].most,
                  "%s: %d after %d commits", s.fault, o.err, c.n);
        cr_expect(o.done.steps_done == c.n);
    }
    rmdir(dir);
}

/* Short transfers in random order, delays: the right grid. */
Test(execute, a_side_file_under_disorder) {
    char dir[256];
    make_dir(dir, sizeof dir);
    for (size_t i = 0; i < sizeof side_files / sizeof side_files[0]; i++) {
        struct setting s = side_file_setting(i, i % 2 ? "fault:aio" : "fault:uring", "tiled");
        s.fault = "seed=5,short=0.3,reorder=1,delay_us=300";
        s.integrity = i % 2 == 0;
        cr_expect(run(&s, dir, NULL, NULL).err == 0);
    }
    rmdir(dir);
}

/* ------------------------------------------------------------------ what is durable stays what it is
 *
 * A run is watched from outside, through the file of the store. At a commit the Buffer holds, to the bit, the
 * plain result of that time. From then on, until the next commit has returned, no byte of it changes: it is
 * compared whenever a STORE has ended and when the next commit begins. */

struct watch {
    const struct setting *setting;
    const struct mx_layout *layout;
    int fd;
    uint64_t offset[3];
    char *now; /* a Buffer as it is in the file */
    pthread_mutex_t lock;
    pthread_cond_t stored;
    int32_t durable;    /* Buffer of the last commit, -1 = none */
    char *durable_copy; /* what it held then */
    int64_t times[64];  /* of commits */
    int n, fail_at;
    int32_t hold_stores; /* a commit lasts until so many STOREs have ended, or for 20 ms; */
    uint64_t hold_bytes; /* or until so many bytes of the next sweep were stored, or for minutes; each sweep
                            stores a Buffer and is committed */
    int64_t stores;      /* events so far */
    uint64_t bytes;      /* of these */
    int64_t last_sweep;  /* time of the last that was reported complete */
    int stop_at;         /* after so many ADVANCEs; 0 = never */
    int advances;
    atomic_int stop;
    int64_t spoil_time; /* spoil_commit: the byte spoil_at of the Buffer committed then */
    uint64_t spoil_at;
    int wrong, changed,
        held_out; /* the findings: what a commit saw, what a STORE did, commits held in vain */
};

static const atomic_int *watch_stop(const struct watch *w) { return &w->stop; }

static void read_file(const struct watch *w, int32_t buffer, char *to) {
    const size_t bytes = (size_t)w->layout->buffer_bytes, whole = (bytes + 4095) / 4096 * 4096;
    ssize_t n = pread(w->fd, to, whole, (off_t)w->offset[buffer]);
    cr_assert(n >= (ssize_t)bytes, "%zd of %zu bytes of the file: %s", n, bytes, strerror(errno));
}

static char *aligned(const struct mx_layout *l) {
    void *memory = NULL;
    cr_assert(posix_memalign(&memory, 4096, (size_t)l->buffer_bytes + 4096) == 0);
    return memory;
}

static int64_t wrong_rows(const struct mx_layout *l, const char *a, const char *b) {
    int64_t n = 0;
    for (int64_t z = 0; z < l->planes; z++)
        for (int64_t y = 0; y < l->rows; y++) {
            const int64_t at = z * l->plane_pitch_bytes + y * l->row_pitch_bytes;
            n += memcmp(a + at, b + at, (size_t)l->row_bytes) != 0;
        }
    return n;
}

static void watch_open(struct watch *w, const struct setting *s, const struct mx_layout *layout,
                       const char *place, mx_buffer *const *buffers) {
    w->setting = s;
    w->layout = layout;
    w->fd = open(place, O_RDONLY | O_DIRECT | O_CLOEXEC);
    cr_assert(w->fd >= 0, "%s: %s", place, strerror(errno));
    for (int i = 0; i < 3 && buffers[i] != NULL; i++) w->offset[i] = mx_buffer_offset(buffers[i]);
    w->now = aligned(layout);
    w->durable_copy = aligned(layout);
    w->durable = s->committed ? s->source : -1;
    if (s->committed) read_file(w, s->source, w->durable_copy);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->stored, NULL);
}

static void watch_close(struct watch *w) {
    close(w->fd);
    free(w->now);
    free(w->durable_copy);
    pthread_cond_destroy(&w->stored);
    pthread_mutex_destroy(&w->lock);
}

/* Lock held. */
static bool durable_is_intact(struct watch *w) {
    if (w->durable < 0) return true;
    read_file(w, w->durable, w->now);
    return memcmp(w->now, w->durable_copy, (size_t)w->layout->buffer_bytes) == 0;
}

static void watch_event(void *context, const struct mx_event *e) {
    struct watch *w = context;
    if (e->waiting) return;
    if (e->sweep) w->last_sweep = (int64_t)e->amount;
    if (e->kind == MX_STEP_ADVANCE && ++w->advances == w->stop_at) w->stop = 1;
    if (e->kind != MX_STEP_STORE) return;
    pthread_mutex_lock(&w->lock);
    w->changed += !durable_is_intact(w);
    w->stores++;
    w->bytes += e->amount;
    pthread_cond_signal(&w->stored);
    pthread_mutex_unlock(&w->lock);
}

/* Lock held, the commit counted. Lets the run go on under a commit that lasts. Part of the next sweep may
 * have been stored before this one ended, and all of it before this thread comes here. */
static void hold(struct watch *w) {
    const int64_t stores = w->stores + w->hold_stores;
    const uint64_t bytes = (uint64_t)w->n * (uint64_t)w->layout->buffer_bytes + w->hold_bytes;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += w->hold_bytes > 0 ? 600 : 0;
    until.tv_nsec += w->hold_bytes > 0 ? 0 : 20000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    while (w->stores < stores || w->bytes < bytes)
        if (pthread_cond_timedwait(&w->stored, &w->lock, &until) == ETIMEDOUT) {
            w->held_out++;
            return;
        }
}

static int watch_commit(void *context, int64_t time, int32_t buffer) {
    struct watch *w = context;
    struct mx_problem p = w->setting->problem;
    p.nt = time;
    char *expected = plain(&p, w->layout, NULL), *content = aligned(w->layout);
    pthread_mutex_lock(&w->lock);
    w->changed += !durable_is_intact(w);
    w->wrong += buffer == w->durable || (w->n > 0 && time <= w->times[w->n - 1]);
    w->times[w->n++] = time;
    read_file(w, buffer, content);
    w->wrong += wrong_rows(w->layout, content, expected) != 0;
    if (time < w->setting->problem.nt) hold(w);
    const bool fails = w->n == w->fail_at;
    if (!fails) {
        /* What is committed is what the Buffer held when this began. */
        memcpy(w->durable_copy, content, (size_t)w->layout->buffer_bytes);
        w->durable = buffer;
        w->changed += !durable_is_intact(w);
    }
    pthread_mutex_unlock(&w->lock);
    free(content);
    free(expected);
    return fails ? -EIO : 0;
}

/* redundant, and stream whole, in strips, and in strips with a side file; sizes that divide nothing, and
 * small ones, where several sweeps are in the window at once. */
static struct setting watched_setting(int kind, bool tiny) {
    struct setting s = {.algorithm = mx_algorithm_find(kind == 0 ? "redundant" : "stream"),
                        .backend = pick(0, 1) ? "fault:aio" : "fault:uring"};
    const struct mx_stencil *st = mx_stencil_find(pick(0, 2) ? "star7" : "star13");
    s.problem = (struct mx_problem){.nx = pick(1, 20),
                                    .ny = tiny ? pick(2, 5) : pick(8, 20),
                                    .nz = tiny ? pick(1, 5) : pick(8, 20),
                                    .nt = pick(7, 13),
                                    .h = st->h,
                                    .dtype = pick(0, 1) ? MX_F64 : MX_F32};
    strcpy(s.problem.stencil, st->name);
    memcpy(s.problem.coef, st->coef, sizeof s.problem.coef);
    s.plan = (struct mx_plan){.tuner = "manual",
                              .by = kind == 1 ? s.problem.ny : pick((s.problem.ny + 2) / 4, s.problem.ny - 1),
                              .bz = kind == 0 ? pick((s.problem.nz + 3) / 4, s.problem.nz) : s.problem.nz,
                              .bt = pick(1, 3),
                              .slab = pick(1, 4),
                              .ahead = pick(1, 3),
                              .threads = (int32_t)pick(1, 2)};
    strcpy(s.plan.algorithm, s.algorithm->name);
    strcpy(s.plan.engine, pick(0, 1) ? "tiled" : "iblock");
    strcpy(s.plan.seams, kind == 3 ? MX_SEAMS_IN_FILE : "");
    return s;
}

static int sweeps_of(const struct setting *s) { return (int)((s->problem.nt + s->plan.bt - 1) / s->plan.bt); }

static const double intervals_s[] = {0, 1e-9, 3e-3, 1e9};

static void random_watch(struct setting *s, int i, char *spec, size_t capacity) {
    snprintf(spec, capacity, "seed=%d,reorder=1,delay_us=%d,short=0.1", i + 1, i % 3 * 100);
    s->fault = spec;
    s->n_buffers = 2 + i % 2;
    s->source = (int32_t)pick(0, s->n_buffers - 1);
    s->committed = (int32_t)pick(0, 2) > 0;
    s->commit_every_s = intervals_s[i / 2 % 4];
    s->integrity = i / 4 % 2 == 1;
}

/* Every sweep is committed with two Buffers and where the interval is nothing, the last one alone where it is
 * for ever, and else some in order and the last one; the bytes are those of CalcTrans (run() compares). */
Test(execute, a_committed_state_rests) {
    char dir[256], text[400], spec[96];
    make_dir(dir, sizeof dir);
    state = 4711;
    for (int i = 0; i < 64; i++) {
        struct setting s = watched_setting(i / 8 % 4, i >= 32);
        struct watch w = {.hold_stores = (int32_t)pick(0, 1) * 1000};
        random_watch(&s, i, spec, sizeof spec);
        s.watch = &w;
        struct outcome o = run(&s, dir, watch_commit, &w);
        describe(&s, text, sizeof text);
        const int sweeps = sweeps_of(&s);
        const double every = s.n_buffers == 2 ? 0 : s.commit_every_s;
        cr_expect(o.ran && o.err == 0 && w.wrong == 0 && w.changed == 0,
                  "%s: error %d, %d wrong commits, durable state changed %d times", text, o.err, w.wrong,
                  w.changed);
        cr_expect(every > 1e-9 || w.n == sweeps, "%s: %d commits of %d sweeps", text, w.n, sweeps);
        cr_expect(every < 1e9 || w.n == 1, "%s: %d commits", text, w.n);
        cr_expect(w.n > 0 && w.times[w.n - 1] == s.problem.nt && o.done.committed_steps == s.problem.nt);
        watch_close(&w);
    }
    rmdir(dir);
}

/* ------------------------------------------------------------------ integrity */

static void spoil(const char *place, uint64_t at) {
    char byte;
    int fd = open(place, O_RDWR | O_CLOEXEC);
    cr_assert(fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1);
    byte = (char)(byte ^ 16);
    cr_assert(pwrite(fd, &byte, 1, (off_t)at) == 1 && fdatasync(fd) == 0);
    close(fd);
}

static int spoil_commit(void *context, int64_t time, int32_t buffer) {
    struct watch *w = context;
    char link[64], place[600] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", w->fd);
    cr_assert(readlink(link, place, sizeof place - 1) > 0);
    w->times[w->n++] = time;
    if (time == w->spoil_time) spoil(place, w->offset[buffer] + w->spoil_at);
    return 0;
}

/* One bit of a Buffer changes between the sweep that wrote it and the one that reads it. With two Buffers
 * that one cannot pass the commit, and the planes at the end are out of its reach. Pass: -EBADMSG; the
 * sentence names Buffer, plane and row; nothing more is committed. Without integrity nobody knows. */
Test(execute, a_bit_that_changed_on_the_device_ends_the_run) {
    static const char *const backends[] = {"uring", "aio", "fault:uring"};
    char dir[256], plane[64];
    make_dir(dir, sizeof dir);
    for (int i = 0; i < 6; i++) {
        struct setting s = stream_setting(backends[i % 3]);
        struct watch w = {.spoil_time = 6};
        struct mx_layout layout;
        const bool rows = i >= 3;
        if (rows) s.plan.by = 7;
        cr_assert(mx_layout_make(&s.problem, 4096, rows, NULL, &layout) == 0);
        w.spoil_at = (uint64_t)(39 * layout.plane_pitch_bytes + 11 * layout.row_pitch_bytes + 100);
        s.fault = "";
        s.integrity = true;
        s.watch = &w;
        struct outcome o = run(&s, dir, spoil_commit, &w);
        snprintf(plane, sizeof plane, "(plane 39, row %d)", rows ? 11 : 0);
        cr_expect(o.err == -EBADMSG && strstr(o.why.text, plane) != NULL &&
                      strstr(o.why.text, "of Buffer 0") != NULL,
                  "%s: %d %s", s.backend, o.err, o.why.text);
        cr_expect(w.n == 2 && o.done.committed_steps == 6 && o.done.steps_done == 6, "%d commits", w.n);
        watch_close(&w);
    }
    rmdir(dir);
}

/* While a sweep is being made durable, more than half of the next one reaches its Buffer, if there are three.
 * Pass: no commit is held in vain. */
Test(execute, a_commit_does_not_stop_the_next_sweep) {
    char dir[256];
    make_dir(dir, sizeof dir);
    for (int i = 0; i < 2; i++) {
        struct setting s = stream_setting(i ? "fault:aio" : "fault:uring");
        struct watch w = {.hold_bytes = 1};
        struct mx_layout layout;
        s.n_buffers = 3;
        s.committed = 1;
        s.watch = &w;
        s.fault = "";
        cr_assert(mx_layout_make(&s.problem, 4096, false, NULL, &layout) == 0);
        w.hold_bytes = (uint64_t)layout.buffer_bytes / 2;
        struct outcome o = run(&s, dir, watch_commit, &w);
        cr_expect(o.err == 0 && w.n == 4 && w.wrong == 0 && w.changed == 0 && w.held_out == 0,
                  "error %d, %d commits, %d wrong, %d changed, %d held in vain", o.err, w.n, w.wrong,
                  w.changed, w.held_out);
        watch_close(&w);
    }
    rmdir(dir);
}

/* A run that is stopped commits the newest complete sweep: the last sweep that is reported complete is the
 * last commit, and what it and the ones before it committed is right and untouched. */
Test(execute, an_interruption_commits_the_newest_sweep) {
    char dir[256], text[400], spec[96];
    int stopped = 0, late = 0;
    make_dir(dir, sizeof dir);
    state = 815;
    for (int i = 0; i < 64; i++) {
        struct setting s = watched_setting(i / 8 % 4, i >= 32);
        struct watch w = {.hold_stores = (int32_t)pick(0, 1) * 1000, .stop_at = (int)pick(1, 40)};
        random_watch(&s, i, spec, sizeof spec);
        s.watch = &w;
        struct outcome o = run(&s, dir, watch_commit, &w);
        describe(&s, text, sizeof text);
        stopped += o.err == -EINTR;
        late += o.err == -EINTR && s.n_buffers == 3 && s.commit_every_s == 1e9 && w.n == 1;
        cr_expect(o.ran && (o.err == 0 || o.err == -EINTR) && w.wrong == 0 && w.changed == 0,
                  "%s: error %d, %d wrong commits, durable state changed %d times", text, o.err, w.wrong,
                  w.changed);
        cr_expect(o.done.steps_done == w.last_sweep && o.done.committed_steps == w.last_sweep,
                  "%s: sweep %lld, done %lld, committed %lld", text, (long long)w.last_sweep,
                  (long long)o.done.steps_done, (long long)o.done.committed_steps);
        cr_expect(w.n == 0 ? w.last_sweep == 0
                           : w.times[w.n - 1] == w.last_sweep && o.done.result == w.durable,
                  "%s", text);
        watch_close(&w);
    }
    cr_expect(stopped > 16 && late > 2, "%d stopped, %d committed by that alone", stopped, late);
    rmdir(dir);
}

/* Another error commits nothing more, and the state before it is untouched. */
Test(execute, an_error_commits_nothing_more) {
    char dir[256], text[400], spec[96];
    make_dir(dir, sizeof dir);
    state = 99;
    for (int i = 0; i < 32; i++) {
        struct setting s = watched_setting(i / 8 % 4, i % 16 >= 8);
        struct watch w = {.hold_stores = (int32_t)pick(0, 1) * 1000, .fail_at = (int)pick(1, 3)};
        random_watch(&s, i, spec, sizeof spec);
        s.watch = &w;
        struct outcome o = run(&s, dir, watch_commit, &w);
        describe(&s, text, sizeof text);
        cr_expect(o.ran && w.wrong == 0 && w.changed == 0 && w.n <= w.fail_at &&
                      (o.err == -EIO) == (w.n == w.fail_at),
                  "%s: error %d after %d commits, %d wrong, %d changed", text, o.err, w.n, w.wrong,
                  w.changed);
        cr_expect(o.err == 0 || o.done.committed_steps == (w.n > 1 ? w.times[w.n - 2] : 0), "%s", text);
        watch_close(&w);
    }
    rmdir(dir);
}

/* ------------------------------------------------------------------ verification */

/* mx_verify accepts the right grid, in one pass and in several through the scratch Buffer, and one wrong bit
 * makes it name that cell. */
Test(execute, verification_finds_a_single_bit) {
    char dir[256];
    make_dir(dir, sizeof dir);
    mx_why why = {""};
    struct setting s = stream_setting("uring");
    struct mx_layout layout;
    mx_device *device;
    mx_buffer *result, *scratch;
    struct mx_device_options o = {.backend = "uring", .path = dir, .force = true};
    cr_assert(mx_layout_make(&s.problem, 4096, true, &why, &layout) == 0);
    cr_assert(mx_device_open(&o, &why, &device) == 0, "%s", why.text);
    cr_assert(mx_buffer_create(device, "r", (uint64_t)layout.buffer_bytes, &why, &result) == 0);
    cr_assert(mx_buffer_create(device, "s", (uint64_t)layout.buffer_bytes, &why, &scratch) == 0);
    char *grid = plain(&s.problem, &layout, NULL);
    struct mx_block_options bo = {0};
    mx_block *block;
    cr_assert(mx_block_create(&bo, (uint64_t)layout.buffer_bytes, &why, &block) == 0);
    memcpy(mx_block_data(block), grid, (size_t)layout.buffer_bytes);
    struct mx_span span = {0, (uint64_t)layout.buffer_bytes, mx_block_data(block)};
    mx_ticket *ticket;
    cr_assert(mx_buffer_write(result, &span, 1, &ticket) == 0 && mx_wait(ticket) == 0);
    struct mx_fill fill = {.problem = &s.problem, .layout = &layout, .init = &mx_inits[0]};
    struct mx_verification v = {.problem = &s.problem,
                                .layout = &layout,
                                .source = mx_fill_plane,
                                .source_context = &fill,
                                .device = device,
                                .result = result,
                                .scratch = scratch};
    static const uint64_t memories[] = {UINT64_C(1) << 30, (40u << 20) + (200u << 12) + 5 * 3 * (22u << 12)};
    for (int i = 0; i < 2; i++) {
        v.memory_bytes = memories[i];
        cr_expect(mx_verify(&v, &why) == 0, "%s", why.text);
    }
    ((char *)mx_block_data(block))[17 * layout.plane_pitch_bytes + 9 * layout.row_pitch_bytes + 8 * 12] ^= 1;
    cr_assert(mx_buffer_write(result, &span, 1, &ticket) == 0 && mx_wait(ticket) == 0);
    cr_expect(mx_verify(&v, &why) == 1 && strstr(why.text, "x 12, y 9, z 17") != NULL, "%s", why.text);
    v.memory_bytes = 1 << 20;
    cr_expect(mx_verify(&v, &why) == -ENOMEM && strstr(why.text, "--dram") != NULL);
    free(grid);
    mx_block_free(block);
    mx_buffer_close(result);
    mx_buffer_close(scratch);
    mx_device_close(device);
    rmdir(dir);
}
