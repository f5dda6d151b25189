/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/flow.h"
#include "engine/team.h"
#include "machine/bell.h"

#include <errno.h>
#include <memext/backend.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = -1, LEAST_LINES = 64, LINES_AHEAD = 6 };

/* Of a line, alone in its pair of cache lines. */
struct progress {
    _Alignas(128) _Atomic int64_t next; /* tile; those before it are done */
    int64_t end;
    _Atomic bool held; /* by the thread that does its next tile */
};

struct job {
    struct mx_flow_job shape;
    struct mx_bell *bell; /* of the thread that posted it */
    int64_t lines;
    struct progress *line;
    int64_t capacity;      /* lines allocated */
    _Atomic int64_t first; /* lines before it are done */
    _Atomic int32_t left;  /* threads that have seen it done and look at it no more */
};

struct view { /* a thread's own */
    _Alignas(128) int64_t oldest;
};

struct mx_flow {
    mx_team *team;
    int threads;
    mx_flow_fn *fn;
    void *arg;
    struct job job[MX_FLOW_JOBS]; /* job n is job[n % MX_FLOW_JOBS] */
    pthread_mutex_t lock;
    pthread_cond_t one_done;
    _Atomic int64_t done;                 /* the last job that is; written under lock */
    _Alignas(128) _Atomic int64_t posted; /* the last job that is */
    struct view view[];
};

/* A line that a thread holds, or none. */
struct held {
    int64_t job, line;
};
static const struct held NOTHING = {NONE, NONE};

static struct job *job_of(mx_flow *f, int64_t number) { return &f->job[number % MX_FLOW_JOBS]; }

static int64_t next_tile(struct progress *line) {
    return atomic_load_explicit(&line->next, memory_order_acquire);
}

static bool is_done(struct progress *line) { return next_tile(line) == line->end; }

/* Whether the line has done the tiles up to `tile` that it has. */
static bool has_done(struct progress *line, int64_t tile) {
    const int64_t next = next_tile(line);
    return next > tile || next == line->end;
}

/* Whether the slab before has done the tiles up to `tile` of this column and chunk. The thread has seen all
 * jobs done that come before its oldest. */
static bool slab_before_has(mx_flow *f, int64_t oldest, int64_t number, int64_t at, int64_t tile) {
    const struct job *j = job_of(f, number);
    const int64_t chunks = j->shape.chunks, columns = j->shape.columns, slab_back = chunks * columns;
    if (at >= slab_back) return has_done(&j->line[at - slab_back], tile);
    if (number == oldest) return true;
    if (!j->shape.follows) return false;
    const struct job *before = job_of(f, number - 1);
    const int64_t their_chunks = before->shape.chunks;
    const int64_t chunk = at % chunks + j->shape.first_chunk - before->shape.first_chunk;
    const int64_t last_slab = before->lines - their_chunks * columns;
    return chunk >= their_chunks ||
           has_done(&before->line[last_slab + at / chunks * their_chunks + chunk], tile);
}

/* Whether the line has a next tile that can be done now. */
static bool is_ready(mx_flow *f, int64_t oldest, int64_t number, int64_t at) {
    struct job *j = job_of(f, number);
    const int64_t column_back = j->shape.chunks, tile = next_tile(&j->line[at]);
    const int64_t chunk = at % column_back, column = at / column_back % j->shape.columns;
    return tile < j->line[at].end && (chunk == 0 || has_done(&j->line[at - 1], tile)) &&
           (column == 0 || has_done(&j->line[at - column_back], tile)) &&
           slab_before_has(f, oldest, number, at, tile);
}

static bool hold(struct progress *line) {
    return !atomic_load_explicit(&line->held, memory_order_relaxed) &&
           !atomic_exchange_explicit(&line->held, true, memory_order_acquire);
}

static void let_go(mx_flow *f, struct held own) {
    if (own.job == NONE) return;
    atomic_store_explicit(&job_of(f, own.job)->line[own.line].held, false, memory_order_release);
}

/* Lines before this are done, and what they left can be read by the caller. */
static int64_t first_line(struct job *j) {
    const int64_t known = atomic_load_explicit(&j->first, memory_order_acquire);
    int64_t first = known;
    while (first < j->lines && is_done(&j->line[first])) first++;
    if (first > known) atomic_store_explicit(&j->first, first, memory_order_release);
    return first;
}

/* The first line that can go on, now held, within a few of the first that is not done: those further off find
 * less of what they read in L3. own: held by the caller, let go unless it is the one. */
static struct held take_line(mx_flow *f, int64_t oldest, int64_t posted, struct held own) {
    int64_t most = f->threads + LINES_AHEAD;
    for (int64_t number = oldest; number <= posted && most > 0; number++) {
        struct job *j = job_of(f, number);
        for (int64_t i = first_line(j); i < j->lines && most > 0; i++, most--) {
            if (!is_ready(f, oldest, number, i)) continue;
            if (number == own.job && i == own.line) return own;
            if (!hold(&j->line[i])) continue;
            if (is_ready(f, oldest, number, i)) { /* still: its former holder may have gone on meanwhile */
                let_go(f, own);
                return (struct held){number, i};
            }
            let_go(f, (struct held){number, i});
        }
    }
    let_go(f, own);
    return NOTHING;
}

/* A line that is two tiles ahead has left what this line's next tile needs of it. */
static bool is_ahead(struct progress *line, int64_t tile) { return has_done(line, tile + 1); }

/* Returns whether the line goes on. One that does not stays held, as nobody wants it again. */
static bool do_next_tile(mx_flow *f, int thread, struct held own) {
    struct job *j = job_of(f, own.job);
    struct progress *at = &j->line[own.line];
    const int64_t n = own.line, chunks = j->shape.chunks, columns = j->shape.columns;
    struct mx_flow_tile t = {.job = own.job,
                             .slab = n / chunks / columns,
                             .column = n / chunks % columns,
                             .chunk = j->shape.first_chunk + n % chunks,
                             .tile = next_tile(at)};
    const bool goes_on = t.tile + 1 < at->end;
    t.more = goes_on && (n % chunks == 0 || is_ahead(at - 1, t.tile));
    f->fn(f->arg, thread, &t);
    atomic_store_explicit(&at->next, t.tile + 1, memory_order_release);
    return goes_on;
}

static void tell_done(mx_flow *f, int64_t number, struct mx_bell *bell) {
    pthread_mutex_lock(&f->lock);
    if (number > atomic_load_explicit(&f->done, memory_order_relaxed))
        atomic_store_explicit(&f->done, number, memory_order_release);
    pthread_cond_signal(&f->one_done);
    mx_bell_ring(bell);
    pthread_mutex_unlock(&f->lock);
}

/* Leaves jobs that are done behind; returns the oldest that is not, posted + 1 if there is none. */
static int64_t leave_done(mx_flow *f, struct view *my, int64_t posted) {
    for (; my->oldest <= posted; my->oldest++) {
        struct job *j = job_of(f, my->oldest);
        if (first_line(j) < j->lines) break;
        struct mx_bell *bell = j->bell; /* of the job after this one when all have left */
        if (atomic_fetch_add_explicit(&j->left, 1, memory_order_acq_rel) == 0) tell_done(f, my->oldest, bell);
    }
    return my->oldest;
}

static void work(void *arg, int thread, int threads) {
    mx_flow *f = arg;
    struct held own = NOTHING;
    unsigned rounds = 0;
    (void)threads;
    for (;;) {
        const int64_t posted = atomic_load_explicit(&f->posted, memory_order_acquire);
        const int64_t oldest = leave_done(f, &f->view[thread], posted);
        if (oldest > posted) return;
        own = take_line(f, oldest, posted, own);
        if (own.job == NONE)
            mx_wait_round(&rounds);
        else if (!do_next_tile(f, thread, own))
            own = NOTHING;
        if (own.job != NONE) rounds = 0;
    }
}

/* ------------------------------------------------------------------ jobs */

int64_t mx_flow_done(const mx_flow *f) { return atomic_load_explicit(&f->done, memory_order_acquire); }

void mx_flow_wait(mx_flow *f, int64_t number) {
    if (mx_flow_done(f) >= number) return;
    pthread_mutex_lock(&f->lock);
    while (atomic_load_explicit(&f->done, memory_order_relaxed) < number)
        pthread_cond_wait(&f->one_done, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

int64_t mx_flow_next(mx_flow *f) {
    const int64_t next = atomic_load_explicit(&f->posted, memory_order_relaxed) + 1;
    unsigned rounds = 0;
    mx_flow_wait(f, next - MX_FLOW_JOBS);
    while (atomic_load_explicit(&job_of(f, next)->left, memory_order_acquire) < f->threads)
        mx_wait_round(&rounds);
    return next;
}

static bool room_for_lines(struct job *j, int64_t n) {
    if (n <= j->capacity) return true;
    struct progress *line = aligned_alloc(_Alignof(struct progress), (size_t)n * sizeof *line);
    if (line == NULL) return false;
    free(j->line);
    j->line = line;
    j->capacity = n;
    return true;
}

int mx_flow_post(mx_flow *f, const struct mx_flow_job *shape) {
    const int64_t number = mx_flow_next(f), lines = shape->slabs * shape->columns * shape->chunks;
    struct job *j = job_of(f, number);
    if (!room_for_lines(j, lines)) return -ENOMEM;
    for (int64_t i = 0; i < lines; i++) {
        const struct mx_flow_span *span = &shape->span[i % shape->chunks];
        atomic_init(&j->line[i].next, span->first);
        atomic_init(&j->line[i].held, false);
        j->line[i].end = span->end;
    }
    j->shape = *shape;
    j->bell = mx_bell_mine();
    j->lines = lines;
    atomic_store_explicit(&j->first, 0, memory_order_relaxed);
    atomic_store_explicit(&j->left, 0, memory_order_relaxed);
    atomic_store_explicit(&f->posted, number, memory_order_release);
    mx_team_start(f->team, work, f);
    return 0;
}

void mx_flow_free(mx_flow *f) {
    if (f == NULL) return;
    mx_team_free(f->team);
    pthread_cond_destroy(&f->one_done);
    pthread_mutex_destroy(&f->lock);
    for (int i = 0; i < MX_FLOW_JOBS; i++) free(f->job[i].line);
    free(f);
}

int mx_flow_create(int threads, mx_flow_fn *fn, void *arg, mx_why *why, mx_flow **out) {
    const size_t bytes = sizeof(mx_flow) + (size_t)threads * sizeof(struct view);
    mx_flow *f = aligned_alloc(_Alignof(mx_flow), bytes);
    if (f == NULL) return mx_fail(why, -ENOMEM, "no memory for the tiled engine");
    memset(f, 0, bytes);
    f->threads = threads;
    f->fn = fn;
    f->arg = arg;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->one_done, NULL);
    bool ready = true;
    for (int i = 0; i < MX_FLOW_JOBS; i++) {
        ready = room_for_lines(&f->job[i], LEAST_LINES) && ready;
        atomic_init(&f->job[i].left, threads);
    }
    for (int i = 0; i < threads; i++) f->view[i].oldest = 1;
    int err = ready ? mx_team_create(threads, why, &f->team)
                    : mx_fail(why, -ENOMEM, "no memory for the tiled engine");
    if (err != 0) {
        mx_flow_free(f);
        return err;
    }
    *out = f;
    return 0;
}
