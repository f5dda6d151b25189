/* SPDX-License-Identifier: BSD-3-Clause */
/* execute_setting.c - runs of random problems and plans, compared with the plain loop. */
#include "execute_setting.h"

uint64_t state = 12345;

int64_t pick(int64_t low, int64_t high) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1));
}

void make_dir(char *path, size_t capacity) {
    const char *base = getenv("MEMEXT_TEST_DIR");
    snprintf(path, capacity, "%s/mx-execute-XXXXXX", base != NULL ? base : "build");
    cr_assert(mkdtemp(path) != NULL, "no test directory under %s", path);
}

void random_problem(struct mx_problem *p) {
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

void random_plan(struct setting *s) {
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
    const struct mx_ends ends = mx_ends_of(&p->sides, 0, 0, MX_DIM_Z);
    const int err = mx_fill_plane(context, mx_side_source(ends.side, p->nz, p->h, z), plane);
    if (err == 0) mx_sides_plane(&p->sides, p, fill->layout, 0, z, plane);
    return err;
}

static void negate(char *cell, int64_t bytes) {
    if (bytes == 8)
        *(double *)cell = -*(double *)cell;
    else
        *(float *)cell = -*(float *)cell;
}

/* Zeros, before probes see them. */
static void plain_zeros(const struct mx_problem *p, const struct mx_layout *l, char *array) {
    const int64_t bytes = mx_dtype_bytes(p->dtype), h = p->h;
    for (int64_t i = 0; i < p->nx * p->ny * p->nz; i++) {
        const int64_t at[3] = {i % p->nx, i / p->nx % p->ny, i / p->nx / p->ny};
        if (test_zero(&p->sides, p, 0, 0, at))
            memset(array + (at[2] + h) * l->plane_pitch_bytes + (at[1] + h) * l->row_pitch_bytes +
                       (at[0] + h) * bytes,
                   0, (size_t)bytes);
    }
}

/* All frames of an array, once all cells of a level are computed. */
static void plain_sides(const struct mx_problem *p, const struct mx_layout *l, char *array) {
    const int64_t bytes = mx_dtype_bytes(p->dtype), h = p->h, n[2] = {p->nx + 2 * h, p->ny + 2 * h};
    const int64_t pitch[3] = {bytes, l->row_pitch_bytes, l->plane_pitch_bytes};
    for (int d = 0; d < 3 && !mx_sides_all_fixed(&p->sides); d++)
        for (int64_t i = 0; i < n[0] * n[1] * (p->nz + 2 * h); i++) {
            const int64_t at[3] = {i % n[0], i / n[0] % n[1], i / n[0] / n[1]};
            bool minus;
            const int64_t from =
                test_image(p->sides.side[d][at[d] >= h], mx_extent_of(p, d), h, at[d], &minus);
            char *to = array + at[0] * pitch[0] + at[1] * pitch[1] + at[2] * pitch[2];
            if (from == at[d]) continue;
            memcpy(to, to + (from - at[d]) * pitch[d], (size_t)bytes);
            if (minus) negate(to, bytes);
        }
}

char *plain(const struct mx_problem *p, const struct mx_layout *l, struct random_points *points) {
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
        plain_zeros(p, l, a[(t + 1) & 1]);
        plain_sides(p, l, a[(t + 1) & 1]);
    }
    free(a[(p->nt + 1) & 1]);
    return a[p->nt & 1];
}

static int compare_plane(void *context, int64_t z, char *plane) {
    struct expectation *e = context;
    const struct mx_layout *l = e->layout;
    for (int64_t y = 0; y < l->rows; y++)
        e->wrong_rows +=
            memcmp(plane + y * l->row_pitch_bytes,
                   e->grid + z * l->plane_pitch_bytes + y * l->row_pitch_bytes, (size_t)l->row_bytes) != 0;
    return 0;
}

const char *describe(const struct setting *s, char *text, size_t capacity) {
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

/* Of hundreds of runs hwloc looks at the machine once. */
static const struct mx_machine *this_machine(void) {
    static struct mx_machine machine;
    mx_why why = {""};
    if (machine.cores == 0) cr_assert(mx_machine_detect(&why, &machine) == 0, "%s", why.text);
    return &machine;
}

struct outcome run(const struct setting *s, const char *dir, int (*commit)(void *, int64_t, int32_t),
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

struct setting stream_setting(const char *backend) {
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
