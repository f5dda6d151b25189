/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/signals.h"

#include "cli/options.h"

#include "machine/clock.h"
#include "machine/machine.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef BUS_MCEERR_AR
#define BUS_MCEERR_AR 4
#define BUS_MCEERR_AO 5
#endif

atomic_int mx_stop;

enum { USUAL_PATIENCE_S = 3, LAST_PATIENCE_S = 3 };

static _Atomic time_t stopped_s;
static _Atomic(mx_run *) to_stop;
/* Until a command moves data, from when on it looks at mx_stop again and again. */
static atomic_int preparing = 1, late;
static atomic_uint patience_s = USUAL_PATIENCE_S;

/* timeout(1) and batch systems signal a process and then its whole group, so that one wish comes twice at
 * once; a second one that comes later means it. */
static void on_stop(int number) {
    const time_t now_s = (time_t)(mx_clock_ns() / 1000000000u);
    if (mx_stop && now_s - stopped_s > 1) {
        signal(number, SIG_DFL);
        raise(number);
    }
    if (!mx_stop) {
        stopped_s = now_s;
        if (preparing) alarm(patience_s);
    }
    mx_stop = 1;
    mx_run_stop(to_stop);
}

/* Whoever prepares a run on another thread closes what there is of it; all others have nothing to close. */
static void on_late(int number) {
    static const char sentence[] = "memext: interrupted while it prepared\n";
    (void)number;
    if (!preparing) return;
    if (to_stop != NULL && !late) {
        late = 1;
        alarm(LAST_PATIENCE_S);
        return;
    }
    if (write(STDERR_FILENO, sentence, sizeof sentence - 1) < 0) late = 1;
    _exit(MX_EXIT_INTERRUPTED);
}

void mx_signals_patience(unsigned seconds) { patience_s = seconds; }

void mx_signals_prepared(void) {
    preparing = 0;
    alarm(0);
}

bool mx_signals_late(void) { return late; }

void mx_signals_stop(mx_run *run) {
    to_stop = run;
    if (mx_stop) mx_run_stop(run);
}

void mx_signals_catch(void) {
    struct sigaction a = {.sa_handler = on_stop};
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    a.sa_handler = on_late;
    sigaction(SIGALRM, &a, NULL);
}

/* ---- SIGBUS: the handler may do next to nothing, so it wakes a thread that may do everything */

static struct {
    sem_t met;
    pthread_t thread;
    bool started;
    atomic_bool over;
    void (*end)(void *context, const char *sentence);
    void *context;
    int code; /* si_code of the first one */
    char sentence[256];
} watch;

static atomic_flag taken = ATOMIC_FLAG_INIT;

static void on_bus_error(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    if (!atomic_flag_test_and_set(&taken)) {
        watch.code = info->si_code;
        sem_post(&watch.met);
    }
    for (;;) pause(); /* the process ends while this thread waits */
}

static void describe(void) {
    bool broken = watch.code == BUS_MCEERR_AR || watch.code == BUS_MCEERR_AO;
    snprintf(watch.sentence, sizeof watch.sentence, "%s",
             broken ? "a page of memory is broken (hardware memory error), so the run must end; what was "
                      "committed is intact"
                    : "a page of a mapped file could not be read or written: the file was cut short, or its "
                      "storage failed or is full; what was "
                      "committed is intact as far as the storage is");
}

static void *wait_for_it(void *argument) {
    (void)argument;
    while (sem_wait(&watch.met) != 0 && errno == EINTR) {
    }
    if (atomic_load(&watch.over)) return NULL;
    describe();
    watch.end(watch.context, watch.sentence);
    return NULL;
}

void mx_signals_watch(void (*end)(void *context, const char *sentence), void *context) {
    struct sigaction a = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    mx_signals_prepared();
    watch.end = end;
    watch.context = context;
    atomic_store(&watch.over, false);
    if (sem_init(&watch.met, 0, 0) != 0) return;
    watch.started = mx_thread_start(&watch.thread, wait_for_it, NULL) == 0;
    sigemptyset(&a.sa_mask);
    if (watch.started) sigaction(SIGBUS, &a, NULL);
}

void mx_signals_unwatch(void) {
    if (!watch.started) return;
    signal(SIGBUS, SIG_DFL);
    atomic_store(&watch.over, true);
    sem_post(&watch.met);
    pthread_join(watch.thread, NULL);
    sem_destroy(&watch.met);
    watch.started = false;
}
