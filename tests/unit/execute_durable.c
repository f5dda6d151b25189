/* SPDX-License-Identifier: BSD-3-Clause */
/* execute_durable.c - what is durable stays what it is.
 *
 * A run is watched from outside, through the file of the store. At a commit the Buffer holds, to the bit, the
 * plain result of that time. From then on, until the next commit has returned, no byte of it changes: it is
 * compared whenever a STORE has ended and when the next commit begins. */
#include "execute_setting.h"

const atomic_int *watch_stop(const struct watch *w) { return &w->stop; }

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

int64_t wrong_rows(const struct mx_layout *l, const char *a, const char *b) {
    int64_t n = 0;
    for (int64_t z = 0; z < l->planes; z++)
        for (int64_t y = 0; y < l->rows; y++) {
            const int64_t at = z * l->plane_pitch_bytes + y * l->row_pitch_bytes;
            n += memcmp(a + at, b + at, (size_t)l->row_bytes) != 0;
        }
    return n;
}

void watch_open(struct watch *w, const struct setting *s, const struct mx_layout *layout, const char *place,
                mx_buffer *const *buffers) {
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

void watch_close(struct watch *w) {
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

void watch_event(void *context, const struct mx_event *e) {
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

int watch_commit(void *context, int64_t time, int32_t buffer) {
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

struct setting watched_setting(int kind, bool tiny) {
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

void random_watch(struct setting *s, int i, char *spec, size_t capacity) {
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
    for (int i = 0; i < 64; i += mx_case_step()) {
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
