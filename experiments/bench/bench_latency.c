/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_latency.c - how long a cache line takes from one core to another.
 *
 *     bench_latency
 *
 * Two threads, each on a core of its own, hand a counter to and fro in one cache line. A time is that of one
 * way, in nanoseconds: the median of BATCHES batches of TURNS turns each. The first core that this process
 * may use is measured with each of the others, and the largest of these times counts.
 *
 *         core 0 --- counter = 1 --->  core 1
 *                <-- counter = 2 ---             and so on: two ways each turn
 *
 * Measured on an AMD EPYC (Zen 4): 25 ns if the cores share an L3, 160 ns if they do not. The cores of a
 * virtual machine are threads of its host, which may move them at any time. Then this time changes, and with
 * it the speed of threads that work on the same data.
 *
 * Prints one JSON object: "cores" that this process may use, and "ns", null where there is only one core. */
#include "machine/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 9, TURNS = 1000, MOST_CORES = 1024 };

static struct {
    _Alignas(128) atomic_int value;
    char rest[124];
} line;

static void check(int err, const char *what) {
    if (err == 0) return;
    fprintf(stderr, "bench_latency: %s: %s\n", what, strerror(err));
    exit(1);
}

static void stay_on(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    check(pthread_setaffinity_np(pthread_self(), sizeof set, &set), "pthread_setaffinity_np");
}

/* Waits until the counter has this value, and then passes it on, one larger. */
static void answer(int value) {
    while (atomic_load_explicit(&line.value, memory_order_acquire) != value) {
    }
    atomic_store_explicit(&line.value, value + 1, memory_order_release);
}

static void *other_core(void *core) {
    stay_on(*(const int *)core);
    for (int turn = 0; turn < (BATCHES + 1) * TURNS; turn++) answer(2 * turn + 1);
    return NULL;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One way between this thread's core and another one, in ns. */
static double one_way_ns(int core) {
    double ns[BATCHES + 1];
    pthread_t thread;
    atomic_store(&line.value, 0);
    check(pthread_create(&thread, NULL, other_core, &core), "pthread_create");
    for (int batch = 0, turn = 0; batch <= BATCHES; batch++) {
        double begin = mx_clock_s();
        for (int k = 0; k < TURNS; k++, turn++) answer(2 * turn);
        ns[batch] = (mx_clock_s() - begin) * 1e9 / (2 * TURNS);
    }
    check(pthread_join(thread, NULL), "pthread_join");
    qsort(ns + 1, BATCHES, sizeof ns[0], ascending); /* in the first batch the other thread starts */
    return ns[1 + BATCHES / 2];
}

int main(void) {
    cpu_set_t allowed;
    int core[MOST_CORES], n = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) check(errno, "sched_getaffinity");
    for (int k = 0; k < MOST_CORES && k < CPU_SETSIZE; k++)
        if (CPU_ISSET(k, &allowed)) core[n++] = k;
    if (n < 2) {
        printf("{\"cores\": %d, \"ns\": null}\n", n);
        return 0;
    }
    double most = 0.0;
    stay_on(core[0]);
    for (int k = 1; k < n; k++) {
        double ns = one_way_ns(core[k]);
        if (ns > most) most = ns;
    }
    printf("{\"cores\": %d, \"ns\": %.1f}\n", n, most);
    return 0;
}
