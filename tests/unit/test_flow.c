/* SPDX-License-Identifier: BSD-3-Clause */
/* The flow of tiles itself, with random jobs and no stencil: what runs, in which order, by how many threads.
 *
 * Every tile notes when it began and when it ended, by a clock that all threads share; what must hold is
 * checked afterwards. It also adds up what the tiles that it depends on have left, in plain memory: the clock
 * is relaxed, so the thread sanitizer sees whether the scheduler alone orders those accesses. */
#include "engine/flow.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
enum { FLOWS = 60 };
#else
enum { FLOWS = 400 };
#endif
enum { MOST_JOBS = 24, MOST_CHUNKS = 6, MOST_TILES = 7, MOST_THREADS = 8, PATIENCE_S = 600 };

static uint64_t state = 11;
static int64_t pick(int64_t from, int64_t to) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return from + (int64_t)((state >> 33) % (uint64_t)(to - from + 1));
}

struct tile {
    uint64_t began, ended; /* 0 = never */
    uint64_t sum;          /* of this tile and of all that it depends on, as it found them */
    _Atomic int runs;
    bool more;
};

struct line {
    struct tile tile[MOST_TILES];
};

struct job {
    struct mx_flow_job shape;
    struct mx_flow_span span[MOST_CHUNKS];
    int64_t last_chunk; /* that it, or a job it follows in turn, has */
    struct line *line;
};

struct world {
    mx_flow *flow;
    int n_jobs;
    struct job job[MOST_JOBS + 1]; /* by number, from 1 */
    _Atomic uint64_t clock;
    _Atomic int broken; /* seen by a tile as it ran */
    /* job 1's last tile waits for job 2, and counts what it saw */
    bool last_waits;
    _Atomic int begun_of_second;
};

/* A deadlock ends the test, not the machine's patience. */
static void watch(void) { alarm(PATIENCE_S); }

TestSuite(flow, .init = watch, .timeout = PATIENCE_S + 10);

/* ---- what depends on what, by the words of flow.h */

static int64_t lines_of(const struct job *j) { return j->shape.slabs * j->shape.columns * j->shape.chunks; }

/* chunk as jobs number it, over all jobs alike */
static struct line *line_of(struct job *j, int64_t slab, int64_t column, int64_t chunk) {
    const int64_t k = chunk - j->shape.first_chunk;
    if (slab < 0 || column < 0 || k < 0 || k >= j->shape.chunks) return NULL;
    return &j->line[(slab * j->shape.columns + column) * j->shape.chunks + k];
}

/* The lines that line (slab, column, chunk) of job number n waits for. */
static void lines_before(struct world *w, int64_t n, const struct mx_flow_tile *t, struct line *out[3]) {
    struct job *j = &w->job[n];
    out[0] = line_of(j, t->slab, t->column, t->chunk - 1);
    out[1] = line_of(j, t->slab, t->column - 1, t->chunk);
    out[2] = line_of(j, t->slab - 1, t->column, t->chunk);
    if (t->slab == 0 && j->shape.follows)
        out[2] = line_of(&w->job[n - 1], w->job[n - 1].shape.slabs - 1, t->column, t->chunk);
}

static const struct mx_flow_span *span_of(const struct job *j, int64_t chunk) {
    return &j->span[chunk - j->shape.first_chunk];
}

/* What a tile leaves: 1, and what the last tile left that it needs of each line, its own included. */
static uint64_t sum_of(struct world *w, const struct mx_flow_tile *t) {
    struct job *j = &w->job[t->job];
    struct line *before[3], *own = line_of(j, t->slab, t->column, t->chunk);
    const int64_t chunks[3] = {t->chunk - 1, t->chunk, t->chunk};
    uint64_t sum = 1;
    lines_before(w, t->job, t, before);
    if (t->tile > span_of(j, t->chunk)->first) sum += own->tile[t->tile - 1].sum;
    for (int i = 0; i < 3; i++) {
        if (before[i] == NULL) continue;
        const struct mx_flow_span *s = span_of(j, chunks[i]);
        const int64_t last = t->tile < s->end ? t->tile : s->end - 1;
        if (last >= s->first) sum = sum * 3 + before[i]->tile[last].sum;
    }
    return sum;
}

/* ---- a tile */

static void wait_for_second(struct world *w) {
    while (atomic_load(&w->begun_of_second) == 0) usleep(100); /* watch() ends it where there is none */
}

static void do_tile(void *arg, int thread, const struct mx_flow_tile *t) {
    struct world *w = arg;
    struct line *line = line_of(&w->job[t->job], t->slab, t->column, t->chunk);
    struct tile *at = &line->tile[t->tile];
    at->began = atomic_fetch_add_explicit(&w->clock, 1, memory_order_relaxed) + 1;
    if (atomic_fetch_add_explicit(&at->runs, 1, memory_order_relaxed) != 0) atomic_store(&w->broken, 1);
    if (mx_flow_done(w->flow) >= t->job) atomic_store(&w->broken, 2);
    if (thread < 0 || thread >= MOST_THREADS) atomic_store(&w->broken, 3);
    if (w->last_waits && t->job == 2) atomic_fetch_add(&w->begun_of_second, 1);
    if (w->last_waits && t->job == 1 && t->tile == w->job[1].span[0].end - 1) wait_for_second(w);
    at->more = t->more;
    at->sum = sum_of(w, t);
    at->ended = atomic_fetch_add_explicit(&w->clock, 1, memory_order_relaxed) + 1;
}

/* ---- checks of a flow that has ended */

static bool ended_before(const struct line *line, const struct mx_flow_span *s, int64_t tile,
                         uint64_t began) {
    const int64_t last = tile < s->end ? tile : s->end - 1;
    return line == NULL || last < s->first || (line->tile[last].ended > 0 && line->tile[last].ended < began);
}

static void check_tile(struct world *w, const struct mx_flow_tile *t, uint64_t all_before_ended) {
    struct job *j = &w->job[t->job];
    struct line *before[3], *own = line_of(j, t->slab, t->column, t->chunk);
    const struct tile *at = &own->tile[t->tile];
    const struct mx_flow_span *s = span_of(j, t->chunk);
    lines_before(w, t->job, t, before);
    cr_assert_eq(atomic_load(&at->runs), 1, "job %d: a tile ran %d times", (int)t->job,
                 atomic_load(&at->runs));
    cr_assert(ended_before(own, s, t->tile - 1, at->began), "tiles of a line in order");
    cr_assert(before[0] == NULL || ended_before(before[0], s - 1, t->tile, at->began), "the chunk before");
    cr_assert(ended_before(before[1], s, t->tile, at->began), "the column before");
    cr_assert(ended_before(before[2], s, t->tile, at->began), "the slab before");
    cr_assert(j->shape.follows || at->began > all_before_ended, "a job that follows none came too early");
    cr_assert_eq(at->sum, sum_of(w, t), "a tile saw what was not ready");
    if (!at->more) return;
    cr_assert(t->tile + 1 < s->end, "more, but there is none");
    cr_assert(before[0] == NULL || ended_before(before[0], s - 1, t->tile + 1, at->began),
              "more, but the chunk before has not done its part");
}

/* Returns when the last tile of the job ended, or of one before it. */
static uint64_t check_job(struct world *w, int64_t number, uint64_t all_before_ended) {
    struct job *j = &w->job[number];
    uint64_t end = all_before_ended;
    struct mx_flow_tile t = {.job = number};
    for (t.slab = 0; t.slab < j->shape.slabs; t.slab++)
        for (t.column = 0; t.column < j->shape.columns; t.column++)
            for (t.chunk = j->shape.first_chunk; t.chunk < j->shape.first_chunk + j->shape.chunks; t.chunk++)
                for (t.tile = 0; t.tile < MOST_TILES; t.tile++) {
                    const struct mx_flow_span *s = span_of(j, t.chunk);
                    struct tile *at = &line_of(j, t.slab, t.column, t.chunk)->tile[t.tile];
                    if (t.tile >= s->first && t.tile < s->end)
                        check_tile(w, &t, all_before_ended);
                    else
                        cr_assert_eq(atomic_load(&at->runs), 0, "a tile outside of its span ran");
                    if (at->ended > end) end = at->ended;
                }
    return end;
}

/* ---- random jobs */

static void new_spans(struct job *j) {
    for (int64_t k = 0; k < j->shape.chunks; k++) {
        j->span[k].first = pick(0, MOST_TILES - 1);
        j->span[k].end = pick(0, 9) == 0 ? j->span[k].first : pick(j->span[k].first, MOST_TILES);
    }
}

/* A job that stands to the one before as flow.h asks for: its columns, its spans where both have the chunk, a
 * first chunk that it has too, and no older job under way that has later chunks than it. */
static bool follow(const struct job *before, struct job *j) {
    const struct mx_flow_job *b = &before->shape;
    if (b->slabs == 0 || b->columns == 0 || b->chunks == 0) return false;
    if (b->first_chunk + b->chunks - 1 < before->last_chunk) return false;
    j->shape.columns = b->columns;
    j->shape.slabs = pick(1, 4);
    j->shape.first_chunk = pick(b->first_chunk, b->first_chunk + b->chunks - 1);
    j->shape.chunks = pick(1, MOST_CHUNKS);
    new_spans(j);
    for (int64_t k = 0; k < j->shape.chunks; k++) {
        const int64_t theirs = k + j->shape.first_chunk - b->first_chunk;
        if (theirs < b->chunks) j->span[k] = before->span[theirs];
    }
    return true;
}

static void make_job(struct world *w, int number) {
    struct job *j = &w->job[number], *before = &w->job[number - 1];
    memset(j, 0, sizeof *j);
    j->shape.follows = number > 1 && pick(0, 3) > 0 && follow(before, j);
    if (!j->shape.follows) {
        j->shape = (struct mx_flow_job){.slabs = pick(0, 7) ? pick(1, 4) : pick(0, 30),
                                        .columns = pick(0, 7) ? pick(1, 3) : 0,
                                        .first_chunk = pick(0, 3),
                                        .chunks = pick(1, MOST_CHUNKS)};
        new_spans(j);
    }
    j->last_chunk = j->shape.first_chunk + j->shape.chunks - 1;
    if (j->shape.follows && before->last_chunk > j->last_chunk) j->last_chunk = before->last_chunk;
    j->shape.span = j->span;
    j->line = calloc((size_t)lines_of(j) + 1, sizeof *j->line);
    cr_assert_not_null(j->line);
}

static void check_world(struct world *w) {
    uint64_t ended = 0;
    cr_assert_eq(atomic_load(&w->broken), 0, "broken as it ran: %d", atomic_load(&w->broken));
    for (int n = 1; n <= w->n_jobs; n++) ended = check_job(w, n, ended);
}

static void free_world(struct world *w) {
    mx_flow_free(w->flow);
    for (int n = 1; n <= w->n_jobs; n++) free(w->job[n].line);
}

static void random_flow(int threads) {
    static struct world w;
    memset(&w, 0, sizeof w);
    mx_why why = {0};
    cr_assert_eq(mx_flow_create(threads, do_tile, &w, &why, &w.flow), 0, "%s", why.text);
    w.n_jobs = (int)pick(1, MOST_JOBS);
    int64_t done = 0;
    for (int n = 1; n <= w.n_jobs; n++) {
        make_job(&w, n);
        if (pick(0, 5) == 0) cr_assert_eq(mx_flow_next(w.flow), n);
        cr_assert_eq(mx_flow_post(w.flow, &w.job[n].shape), 0);
        const int64_t now = mx_flow_done(w.flow);
        cr_assert(now >= done && now <= n, "jobs end in order");
        done = now;
        if (pick(0, 5) > 0) continue;
        const int64_t which = pick(1, n);
        mx_flow_wait(w.flow, which);
        cr_assert(mx_flow_done(w.flow) >= which);
        uint64_t ended = 0; /* what is waited for can be read */
        for (int64_t m = 1; m <= which; m++) ended = check_job(&w, m, ended);
    }
    mx_flow_wait(w.flow, w.n_jobs);
    cr_assert_eq(mx_flow_done(w.flow), w.n_jobs);
    check_world(&w);
    free_world(&w);
}

/* Every tile runs once, after all that it depends on; jobs end in order; any number of threads gets through.
 */
Test(flow, random_jobs_are_in_order) {
    for (int i = 0; i < FLOWS; i++) random_flow(1 + i % MOST_THREADS);
}

/* The second job, which follows, begins before the first has ended: its last tile waits for that. */
static void no_stop(int threads) {
    static struct world w;
    memset(&w, 0, sizeof w);
    cr_assert_eq(mx_flow_create(threads, do_tile, &w, NULL, &w.flow), 0);
    w.last_waits = true;
    w.n_jobs = 2;
    for (int n = 1; n <= 2; n++) {
        struct job *j = &w.job[n];
        j->span[0] = (struct mx_flow_span){0, 4};
        j->shape =
            (struct mx_flow_job){.slabs = 1, .columns = 1, .chunks = 1, .span = j->span, .follows = n == 2};
        j->line = calloc(1, sizeof *j->line);
    }
    for (int n = 1; n <= 2; n++) cr_assert_eq(mx_flow_post(w.flow, &w.job[n].shape), 0);
    mx_flow_wait(w.flow, 2);
    check_world(&w);
    const struct tile *last_of_first = &w.job[1].line[0].tile[3],
                      *first_of_second = &w.job[2].line[0].tile[0];
    cr_assert(first_of_second->began < last_of_first->ended);
    free_world(&w);
}

Test(flow, a_job_that_follows_does_not_wait_for_the_end) {
    for (int threads = 2; threads <= MOST_THREADS; threads++) no_stop(threads);
}
