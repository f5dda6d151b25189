/* thread.c - threads of the library, which signals of the program pass by. */
#include "machine/machine.h"

#include <signal.h>

int mx_thread_start(pthread_t *out, void *(*run)(void *), void *argument) {
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) sigdelset(&blocked, own[i]);
    /* The new thread inherits the mask, so that no signal finds it before it could set its own. */
    int err = pthread_sigmask(SIG_SETMASK, &blocked, &before);
    if (err != 0) return -err;
    err = pthread_create(out, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -err;
}
