/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.c - threads of the library, which signals of the program pass by, and whose numbers are written with
 * a point. */
#include "machine/machine.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

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
