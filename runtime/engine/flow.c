#include "engine/flow.h"
#include "engine/team.h"

#include <errno.h>
#include <memext/backend.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = -1, LEAST_LINES = 64, LINES_AHEAD = 6 };

/* Of a line, alone in its pair of cache lines. */
struct progress {
    _Alignas(128) _Atomic int64_t done; /* tiles */
    _Atomic bool held;                  /* by the thread that does its next tile */
};

struct job {
    struct mx_flow_job shape;
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

static int64_t tiles_done(struct progress *line) {
    return atomic_load_explicit(&line->done, memory_order_acquire);
}

/* Whether the slab before has tile `tile` of this column and chunk. The thread has seen all jobs done that
 * come before its oldest. */
static bool slab_before_has(mx_flow *f, int64_t oldest, int64_t number, int64_t at, int64_t tile) {
    const struct job *j = job_of(f, number);
    const int64_t slab_back = j->shape.chunks * j->shape.columns;
    if (at >= slab_back) return tiles_done(&j->line[at - slab_back]) > tile;
    if (number == oldest) return true;
    const struct job *before = job_of(f, number - 1);
    return j->shape.follows && tiles_done(&before->line[before->lines - slab_back + at]) > tile;
}

/* Whether the line has a next tile that can be done now. */
static bool is_ready(mx_flow *f, int64_t oldest, int64_t number, int64_t at) {
    struct job *j = job_of(f, number);
    const int64_t column_back = j->shape.chunks, tile = tiles_done(&j->line[at]);
    const int64_t chunk = at % column_back, column = at / column_back % j->shape.columns;
    return tile < j->shape.tiles && (chunk == 0 || tiles_done(&j->line[at - 1]) > tile) &&
           (column == 0 || tiles_done(&j->line[at - column_back]) > tile) &&
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
    while (first < j->lines && tiles_done(&j->line[first]) == j->shape.tiles) first++;
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

/* A line that is at least two tiles ahead has left what this line's next tile needs of it; one that is done,
 * or nearly so, has left it in DRAM. */
static bool is_ahead(struct progress *line, int64_t tile) { return tiles_done(line) >= tile + 2; }

/* Returns whether the line goes on. One that does not stays held, as nobody wants it again. */
static bool do_next_tile(mx_flow *f, int thread, struct held own) {
    struct job *j = job_of(f, own.job);
    struct progress *at = &j->line[own.line];
    const int64_t n = own.line, chunks = j->shape.chunks, columns = j->shape.columns;
    struct mx_flow_tile t = {.job = own.job,
                             .slab = n / chunks / columns,
                             .column = n / chunks % columns,
                             .chunk = n % chunks,
                             .tile = tiles_done(at)};
    t.more = t.tile + 1 < j->shape.tiles && (t.chunk == 0 || is_ahead(at - 1, t.tile));
    f->fn(f->arg, thread, &t);
    atomic_store_explicit(&at->done, t.tile + 1, memory_order_release);
    return t.tile + 1 < j->shape.tiles;
}

static void tell_done(mx_flow *f, int64_t number) {
    pthread_mutex_lock(&f->lock);
    if (number > atomic_load_explicit(&f->done, memory_order_relaxed))
        atomic_store_explicit(&f->done, number, memory_order_release);
    pthread_cond_signal(&f->one_done);
    pthread_mutex_unlock(&f->lock);
}

/* Leaves jobs that are done behind; returns the oldest that is not, posted + 1 if there is none. */
static int64_t leave_done(mx_flow *f, struct view *my, int64_t posted) {
    for (; my->oldest <= posted; my->oldest++) {
        struct job *j = job_of(f, my->oldest);
        if (first_line(j) < j->lines) break;
        if (atomic_fetch_add_explicit(&j->left, 1, memory_order_acq_rel) == 0) tell_done(f, my->oldest);
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

/* Room for n lines, all at their start. */
static bool lines_ready(struct job *j, int64_t n) {
    if (n > j->capacity) {
        struct progress *line = aligned_alloc(_Alignof(struct progress), (size_t)n * sizeof *line);
        if (line == NULL) return false;
        free(j->line);
        j->line = line;
        j->capacity = n;
    }
    for (int64_t i = 0; i < n; i++) {
        atomic_init(&j->line[i].done, 0);
        atomic_init(&j->line[i].held, false);
    }
    j->lines = n;
    return true;
}

int mx_flow_post(mx_flow *f, const struct mx_flow_job *shape) {
    const int64_t next = mx_flow_next(f);
    struct job *j = job_of(f, next);
    if (!lines_ready(j, shape->tiles > 0 ? shape->slabs * shape->columns * shape->chunks : 0)) return -ENOMEM;
    j->shape = *shape;
    atomic_store_explicit(&j->first, 0, memory_order_relaxed);
    atomic_store_explicit(&j->left, 0, memory_order_relaxed);
    atomic_store_explicit(&f->posted, next, memory_order_release);
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
        ready = lines_ready(&f->job[i], LEAST_LINES) && ready;
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
