/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.c - threads of the library: they get no signals of the program, and write numbers with a decimal
 * point. */
#include "machine/machine.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static locale_t plain;
static pthread_once_t plain_once = PTHREAD_ONCE_INIT;
static void make_plain(void) { plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

/* Without memory for a locale of its own the thread keeps the program's. */
locale_t mx_numbers_begin(void) {
    pthread_once(&plain_once, make_plain);
    return uselocale(plain);
}

void mx_numbers_end(locale_t before) { uselocale(before); }

struct task {
    void *(*run)(void *);
    void *argument;
};

static void *enter(void *given) {
    const struct task task = *(struct task *)given;
    free(given);
    mx_numbers_begin();
    return task.run(task.argument);
}

int mx_thread_start(pthread_t *out, void *(*run)(void *), void *argument) {
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked, before;
    struct task *task = malloc(sizeof *task);
    if (task == NULL) return -ENOMEM;
    *task = (struct task){run, argument};
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) sigdelset(&blocked, own[i]);
    /* The new thread inherits the mask, so that no signal finds it before it could set its own. */
    int err = pthread_sigmask(SIG_SETMASK, &blocked, &before);
    if (err == 0) {
        err = pthread_create(out, NULL, enter, task);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (err != 0) free(task);
    return -err;
}

/* ---- threads that cannot be started */

/* Is there no room for the stack of a thread in the address space? */
static bool address_space_is_full(const struct rlimit *limit) {
    pthread_attr_t attributes;
    size_t stack = 8 << 20;
    if (limit->rlim_cur == RLIM_INFINITY) return false;
    if (pthread_attr_init(&attributes) == 0) {
        pthread_attr_getstacksize(&attributes, &stack);
        pthread_attr_destroy(&attributes);
    }
    void *base = mmap(NULL, stack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (base == MAP_FAILED) return true;
    munmap(base, stack);
    return false;
}

struct mx_no_thread mx_no_thread(int err) {
    struct mx_no_thread out;
    struct rlimit space = {RLIM_INFINITY, RLIM_INFINITY}, processes = {RLIM_INFINITY, RLIM_INFINITY};
    getrlimit(RLIMIT_AS, &space);
    getrlimit(RLIMIT_NPROC, &processes);
    if ((err == -EAGAIN || err == -ENOMEM) && address_space_is_full(&space))
        snprintf(out.text, sizeof out.text,
                 "the address space of %llu KiB is full; raise its limit (ulimit -v)",
                 (unsigned long long)(space.rlim_cur >> 10));
    else if (err == -EAGAIN && processes.rlim_cur != RLIM_INFINITY)
        snprintf(out.text, sizeof out.text,
                 "this user may have %llu processes and threads; raise the limit (ulimit -u), or that of "
                 "the cgroup (pids.max), or lower --threads",
                 (unsigned long long)processes.rlim_cur);
    else if (err == -EAGAIN)
        snprintf(out.text, sizeof out.text,
                 "no more threads are allowed here; raise the limit of the cgroup (pids.max), or lower "
                 "--threads");
    else
        snprintf(out.text, sizeof out.text, "%s", strerror(-err));
    return out;
}

struct tried {
    pthread_t thread;
    pid_t id;
    sem_t *end;
};

static void *wait_for_the_end(void *argument) {
    struct tried *t = argument;
    t->id = gettid();
    while (sem_wait(t->end) != 0 && errno == EINTR) {
    }
    return NULL;
}

/* A thread that was joined counts against the limits (ulimit -u) until the kernel has let it go. */
static void wait_until_gone(const struct tried *t) {
    pthread_join(t->thread, NULL);
    while (tgkill(getpid(), t->id, 0) == 0) sched_yield();
}

/* How many more threads can be at work at a time with this one, up to `most`. */
static int32_t try_threads(int32_t most) {
    struct tried *tried = calloc((size_t)most, sizeof *tried);
    sem_t end;
    int32_t n = 0;
    if (tried == NULL || sem_init(&end, 0, 0) != 0) {
        free(tried);
        return 0;
    }
    for (int32_t i = 0; i < most; i++) tried[i].end = &end;
    while (n < most && mx_thread_start(&tried[n].thread, wait_for_the_end, &tried[n]) == 0) n++;
    for (int32_t i = 0; i < n; i++) sem_post(&end);
    for (int32_t i = 0; i < n; i++) wait_until_gone(&tried[i]);
    sem_destroy(&end);
    free(tried);
    return n;
}

/* OpenMP keeps the threads of a loop for the next one of the same thread, but for those that a smaller one
 * does not need. */
int32_t mx_loop_threads(int32_t wanted) {
    static _Thread_local int32_t kept = 1;
    if (wanted < 2) return 1;
    if (wanted > kept) wanted = 1 + try_threads(wanted - 1);
    if (wanted > 1) kept = wanted;
    return wanted;
}
