/* SPDX-License-Identifier: BSD-3-Clause */
/* isolate.c - code that may crash runs in a child process. */
#include "kernel/private.h"

#include <errno.h>
#include <memext/backend.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A child that is forked while another thread loads an object finds the loader in the middle of it, and ld.so
 * ends it with this status. Those of kernels wait for each other; for others, like imports of Python, the
 * child is tried again, after pauses of 1 to 100 ms, 1.4 s in all. */
enum { LOADER_GAVE_UP = 127, TRIES = 20, SHORT_NS = 1000000, LONG_NS = 100000000 };
static pthread_mutex_t loader = PTHREAD_MUTEX_INITIALIZER;

void mx_loader_lock(void) { pthread_mutex_lock(&loader); }
void mx_loader_unlock(void) { pthread_mutex_unlock(&loader); }

/* The parent's handlers are not the child's: it is to die of what it does, without a core file, and with the
 * parent. */
static void settle(pid_t parent, unsigned seconds) {
    static const int own[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL, SIGABRT, SIGTRAP,
                              SIGXCPU, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGALRM};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) signal(own[i], SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    const struct rlimit no_core = {0, 0}, cpu = {seconds, seconds + 1};
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_CPU, &cpu);
}

static int died(const struct mx_isolated *report, int status, const char *subject, unsigned seconds,
                mx_why *why) {
    const char *how = "ended its process", *name = "";
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT)
            return mx_fail(why, -EINTR, "%s: interrupted", subject);
        if (signal == SIGXCPU || signal == SIGKILL)
            return mx_fail(why, -EINVAL, "%s did not end within %u seconds%s", subject, seconds,
                           report->stage);
        how = "crashes with SIG", name = sigabbrev_np(signal) != NULL ? sigabbrev_np(signal) : "?";
    }
    return mx_fail(why, -EINVAL, "%s %s%s%s", subject, how, name, report->stage);
}

int mx_isolate(int (*work)(void *context, struct mx_isolated *report), void *context, const char *subject,
               unsigned seconds, mx_why *why) {
    struct mx_isolated *report =
        mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED) return mx_fail(why, -ENOMEM, "%s: no memory to try it out", subject);
    int status = 0, err = 0;
    for (int again = 0;; again++) {
        mx_loader_lock();
        const pid_t parent = getpid(), child = fork();
        mx_loader_unlock();
        if (child == 0) {
            settle(parent, seconds);
            report->result = work(context, report);
            report->done = true;
            _exit(0);
        }
        if (child < 0) {
            err = mx_fail(why, -errno, "%s cannot be tried out: no child process (%s)", subject,
                          strerror(errno));
            break;
        }
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
        if (!report->done && WIFEXITED(status) && WEXITSTATUS(status) == LOADER_GAVE_UP && again < TRIES) {
            const long ns = again < 7 ? (long)SHORT_NS << again : LONG_NS;
            nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
            continue;
        }
        if (!report->done)
            err = died(report, status, subject, seconds, why);
        else if ((err = report->result) < 0 && why != NULL)
            *why = report->why;
        break;
    }
    munmap(report, sizeof *report);
    return err;
}
