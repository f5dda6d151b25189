/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/team.h"
#include "machine/clock.h"

#include "machine/machine.h"
#include <errno.h>
#include <memext/backend.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* OMP_WAIT_POLICY=passive: a thread that waits must not take a core from others, as OpenMP has it. */
static bool passive;
static pthread_once_t passive_once = PTHREAD_ONCE_INIT;
static void look_at_policy(void) {
    const char *policy = getenv("OMP_WAIT_POLICY");
    passive = policy != NULL && strcasecmp(policy, "passive") == 0;
}
static bool waits_passively(void) {
    pthread_once(&passive_once, look_at_policy);
    return passive;
}

struct mx_team {
    pthread_mutex_t lock;
    pthread_cond_t job, done;
    _Atomic uint64_t generation; /* jobs given so far; written under lock */
    int running;                 /* threads that mx_team_run waits for */
    bool quit;
    mx_team_fn *fn;
    void *arg;
    int threads, started;
    _Alignas(128) _Atomic int64_t arrived; /* at barriers, ever */
    struct member {
        mx_team *team;
        int number;
        pthread_t id;
    } member[];
};

void mx_wait_round(unsigned *rounds) {
    enum { PAUSES = 2000, YIELDS = 4000, FEW = 50 };
    const bool few = waits_passively();
    ++*rounds;
    if (*rounds < (few ? FEW : PAUSES)) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    } else if (*rounds < (few ? 2 * FEW : YIELDS)) {
        sched_yield();
    } else {
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
}

/* The next job of a run follows in well under a millisecond as a rule. A core that sleeps meanwhile takes
 * long to wake, above all a virtual one: whoever has nothing to do looks for it a while, and gives the core
 * to any other thread that wants it, such as the one that gives out jobs. */
static void look_for_job(mx_team *team, uint64_t seen) {
    enum { LOOK_NS = 500000 };
    if (waits_passively()) return;
    const uint64_t end = mx_clock_ns() + LOOK_NS;
    while (atomic_load_explicit(&team->generation, memory_order_relaxed) == seen && mx_clock_ns() < end)
        sched_yield();
}

static void *member_main(void *arg) {
    struct member *me = arg;
    mx_team *team = me->team;
    mx_machine_place(me->number, me->team->threads);
    for (uint64_t seen = 0;;) {
        if (seen > 0) look_for_job(team, seen);
        pthread_mutex_lock(&team->lock);
        while (team->generation == seen && !team->quit) pthread_cond_wait(&team->job, &team->lock);
        bool quit = team->quit;
        seen = team->generation;
        mx_team_fn *fn = team->fn;
        void *fn_arg = team->arg;
        pthread_mutex_unlock(&team->lock);
        if (quit) return NULL;
        fn(fn_arg, me->number, team->threads);
        pthread_mutex_lock(&team->lock);
        if (team->running > 0 && --team->running == 0) pthread_cond_signal(&team->done);
        pthread_mutex_unlock(&team->lock);
    }
}

static void give_job(mx_team *team, mx_team_fn *fn, void *arg) {
    team->fn = fn;
    team->arg = arg;
    team->generation++;
    pthread_cond_broadcast(&team->job);
}

void mx_team_run(mx_team *team, mx_team_fn *fn, void *arg) {
    pthread_mutex_lock(&team->lock);
    team->running = team->threads;
    give_job(team, fn, arg);
    while (team->running > 0) pthread_cond_wait(&team->done, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

void mx_team_start(mx_team *team, mx_team_fn *fn, void *arg) {
    pthread_mutex_lock(&team->lock);
    give_job(team, fn, arg);
    pthread_mutex_unlock(&team->lock);
}

void mx_team_barrier(mx_team *team) {
    const int64_t n = team->threads;
    int64_t before = atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel);
    unsigned rounds = 0;
    while (atomic_load_explicit(&team->arrived, memory_order_acquire) < (before / n + 1) * n)
        mx_wait_round(&rounds);
}

void mx_team_free(mx_team *team) {
    if (team == NULL) return;
    pthread_mutex_lock(&team->lock);
    team->quit = true;
    pthread_cond_broadcast(&team->job);
    pthread_mutex_unlock(&team->lock);
    for (int i = 0; i < team->started; i++) pthread_join(team->member[i].id, NULL);
    pthread_cond_destroy(&team->job);
    pthread_cond_destroy(&team->done);
    pthread_mutex_destroy(&team->lock);
    free(team);
}

int mx_team_create(int threads, mx_why *why, mx_team **out) {
    size_t bytes = sizeof(mx_team) + (size_t)threads * sizeof(struct member);
    mx_team *team = aligned_alloc(_Alignof(mx_team), (bytes + 127) / 128 * 128);
    if (team == NULL) return mx_fail(why, -ENOMEM, "no memory for a team of %d threads", threads);
    memset(team, 0, bytes);
    team->threads = threads;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->job, NULL);
    pthread_cond_init(&team->done, NULL);
    for (int i = 0; i < threads; i++) {
        team->member[i] = (struct member){.team = team, .number = i};
        int err = mx_thread_start(&team->member[i].id, member_main, &team->member[i]);
        if (err != 0) {
            mx_team_free(team);
            return mx_fail(why, err, "thread %d of %d cannot be started: %s", i + 1, threads,
                           mx_no_thread(err).text);
        }
        team->started++;
    }
    *out = team;
    return 0;
}
