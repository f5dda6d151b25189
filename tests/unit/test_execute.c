/* The executor on real devices: for random awkward problems every algorithm on every backend that can carry
 * it gives, to the bit, the grid of the plain loop, and moves exactly the bytes that CalcTrans predicts.
 * Blocks start as NaN: whatever is used without having been loaded would show. */
#include "engine/engine.h"
#include "execute/execute.h"
#include "grid/grid.h"
#include "schedule/schedule.h"
#include "stencil/stencil.h"

#include <memext/backend.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct setting {
    struct mx_problem problem;
    struct mx_plan plan;
    const struct mx_algorithm *algorithm;
    const char *backend;
    enum mx_advice advice;
    const char *fault;
};

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
    if (pick(0, 1)) strcpy(q->faces, MX_FACES_IN_FILE);
}

/* nt plain triple loops over whole arrays: the definition of the result. */
static char *plain(const struct mx_problem *p, const struct mx_layout *l) {
    char *a[2];
    struct mx_fill fill = {.problem = p, .layout = l, .init = &mx_inits[0]};
    mx_kernel_fn *kernel = mx_stencil_plain(mx_stencil_find(p->stencil), p->dtype);
    for (int i = 0; i < 2; i++) {
        a[i] = calloc(1, (size_t)l->buffer_bytes);
        for (int64_t z = 0; z < l->planes; z++) mx_fill_plane(&fill, z, a[i] + z * l->plane_pitch_bytes);
    }
    for (int64_t t = 0; t < p->nt; t++)
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
        (long long)s->plan.slab, (long long)s->plan.ahead, s->plan.engine, s->plan.threads, s->plan.faces);
    return text;
}

struct outcome {
    int err;
    bool ran;
    struct mx_executed done;
};

/* Opens, initialises, executes, compares. Returns what mx_execute returned. */
static struct outcome run(const struct setting *s, const char *dir, int (*commit)(void *, int64_t, int32_t),
                          void *context) {
    char text[400];
    mx_why why = {""};
    struct outcome outcome = {0};
    struct mx_machine machine;
    struct mx_layout layout;
    struct mx_device_facts facts;
    struct mx_traffic traffic;
    mx_device *device = NULL;
    mx_buffer *buffer[2] = {NULL, NULL}, *faces = NULL;
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
    cr_assert(mx_machine_detect(&why, &machine) == 0, "%s", why.text);
    cr_assert(mx_device_open(&o, &why, &device) == 0, "%s: %s", text, why.text);
    mx_device_facts(device, &facts);
    cr_assert(mx_layout_make(&s->problem, facts.mapped ? 64 : facts.offset_align_bytes,
                             s->algorithm->cuts_y(&s->problem, &s->plan), &why, &layout) == 0,
              "%s: %s", text, why.text);
    struct mx_fill fill = {.problem = &s->problem, .layout = &layout, .init = &mx_inits[0]};
    cr_assert(s->algorithm->open(&s->problem, &s->plan, 0, 0, &schedule) == 0, "%s", text);
    static const char *const names[2] = {"a", "b"};
    for (int i = 0; i < 2 && outcome.err == 0; i++) {
        cr_assert(mx_buffer_create(device, names[i], (uint64_t)layout.buffer_bytes, &why, &buffer[i]) == 0,
                  "%s: %s", text, why.text);
        if (i == 0 || schedule->shape.init_both)
            outcome.err = mx_field_write(buffer[i], &layout, NULL, NULL, mx_fill_plane, &fill, &why);
        cr_assert(outcome.err == 0 || s->fault != NULL, "%s: %s", text, why.text);
    }
    int64_t side_file = mx_execute_face_bytes(&schedule->shape, &layout);
    if (side_file > 0)
        cr_assert(mx_buffer_create(device, "faces", (uint64_t)side_file, &why, &faces) == 0, "%s: %s", text,
                  why.text);
    const struct mx_engine_ops *ops = mx_engine_find(s->plan.engine);
    struct mx_engine_options eo = {.problem = &s->problem,
                                   .machine = &machine,
                                   .row_pitch_bytes = layout.row_pitch_bytes,
                                   .threads = s->plan.threads,
                                   .slab = s->plan.slab,
                                   .levels = schedule->shape.max_levels,
                                   .rows = layout.rows,
                                   .planes = s->plan.slab};
    cr_assert(ops->create(&eo, &why, &engine) == 0, "%s: %s", text, why.text);
    struct mx_counters before, after;
    mx_device_counters(device, &before);
    struct mx_execution x = {.problem = &s->problem,
                             .plan = &s->plan,
                             .layout = &layout,
                             .device = device,
                             .buffer = {buffer[0], buffer[1]},
                             .faces = faces,
                             .mapped = facts.mapped,
                             .advise = s->advice == MX_ADVICE_SCHEDULE,
                             .poison = schedule->shape.rows > 0,
                             .commit = commit,
                             .context = context};
    if (outcome.err == 0) outcome.err = mx_execute(&x, schedule, ops, engine, &why, &outcome.done);
    mx_device_counters(device, &after);
    if (s->fault == NULL) {
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
        struct expectation e = {&layout, plain(&s->problem, &layout), 0};
        int32_t result = mx_schedule_final_buffer(s->algorithm, &s->problem, &s->plan);
        outcome.err = mx_field_read(buffer[result], &layout, NULL, NULL, compare_plane, &e, &why);
        cr_assert(outcome.err == 0 || s->fault != NULL, "%s: %s", text, why.text);
        cr_expect(e.wrong_rows == 0, "%s: %lld rows differ from the plain loop", text,
                  (long long)e.wrong_rows);
        free((char *)(uintptr_t)e.grid);
    }
    ops->free(engine);
    schedule->ops->close(schedule);
    for (int i = 0; i < 2; i++) mx_buffer_close(buffer[i]);
    mx_buffer_close(faces);
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

static void run_many(const struct mx_algorithm *algorithm, int settings, uint64_t seed) {
    char dir[256];
    int ran = 0;
#if defined(__SANITIZE_THREAD__)
    settings /= 4;
#endif
    make_dir(dir, sizeof dir);
    state = seed;
    for (int i = 0; i < settings; i++) {
        struct setting s = {.algorithm = algorithm, .backend = random_backend(algorithm)};
        if (strcmp(s.backend, "mmap") == 0) s.advice = (enum mx_advice)pick(0, 5);
        random_problem(&s.problem);
        random_plan(&s);
        ran += run(&s, dir, NULL, NULL).ran;
    }
    rmdir(dir);
    cr_expect(ran > settings / 8, "%s: only %d of %d settings were allowed", algorithm->name, ran, settings);
}

Test(execute, every_algorithm_is_bit_identical_and_moves_what_was_predicted) {
    for (int i = 0; mx_algorithms[i] != NULL; i++) run_many(mx_algorithms[i], 60, 1000 + (uint64_t)i);
}

/* Strips whose faces are in a side file, with sizes that divide nothing: run() compares grid, bytes and DRAM.
 * The faces of DRAM and file are the same; only their bytes are moved besides. */
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
                              .faces = MX_FACES_IN_FILE,
                              .threads = 2};
    strcpy(s.plan.engine, engine);
    return s;
}

Test(execute, faces_in_a_side_file) {
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
            strcpy(s.plan.faces, MX_FACES_IN_DRAM);
            s.algorithm->traffic(&s.problem, &s.plan, &layout, &kept);
            cr_expect(filed.face_read_bytes > 0 &&
                      filed.read_bytes == kept.read_bytes + kept.face_read_bytes);
            cr_expect(filed.write_bytes == kept.write_bytes + kept.face_write_bytes);
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
 * before it are committed. A sweep here has 40 transfers of face slabs, each of one or two requests. */
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
        cr_expect(run(&s, dir, NULL, NULL).err == 0);
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
    char *grid = plain(&s.problem, &layout);
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
