/* SPDX-License-Identifier: BSD-3-Clause */
/* isolate.c - code that may crash runs in a child process. */
#include "kernel/private.h"

#include "machine/clock.h"

#include <errno.h>
#include <memext/backend.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A child that is forked while another thread loads an object finds the loader in the middle of it, and ld.so
 * ends it with this status. Those of kernels wait for each other; for others, like imports of Python, the
 * child is tried again, after pauses of 1 to 100 ms, 1.4 s in all. */
enum { LOADER_GAVE_UP = 127, TRIES = 20, SHORT_NS = 1000000, LONG_NS = 100000000 };
static pthread_mutex_t loader = PTHREAD_MUTEX_INITIALIZER;

/* Or another thread has a lock of the loader at that moment, which in the child nobody gives back: the child
 * sleeps for ever. What is tried here computes and does not sleep, so a child that does is ended and tried
 * again. */
enum { LOOK_MS = 100, ASLEEP_MS = 1000, WAKE_TRIES = 3 };

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
    return mx_fail(why, -EINVAL, "%s %s%s%s%s", subject, how, name, report->stage,
                   name[0] != 0 ? report->crash : "");
}

/* ticks: the time that it has computed. */
static bool is_asleep(pid_t child, unsigned long *ticks) {
    char path[32], text[512], state = 0;
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
    FILE *f = fopen(path, "re");
    const size_t n = f != NULL ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f != NULL) fclose(f);
    text[n] = 0;
    const char *behind_name = strrchr(text, ')');
    if (behind_name == NULL || sscanf(behind_name + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                                      &state, &user, &system) != 3)
        return false;
    *ticks = user + system;
    return state == 'S';
}

/* False: it slept, and was ended. */
static bool wait_for(pid_t child, int *status) {
    const int fd = (int)syscall(SYS_pidfd_open, child, 0);
    unsigned long before = 0, ticks = 0;
    uint64_t since = 0;
    bool slept = false;
    for (pid_t ended = 0; ended != child;) {
        ended = waitpid(child, status, slept ? 0 : WNOHANG);
        if (ended == child || (ended < 0 && errno != EINTR)) break;
        struct pollfd end = {.fd = fd, .events = POLLIN};
        poll(&end, 1, fd >= 0 ? LOOK_MS : 1); /* without a descriptor: a short pause */
        const uint64_t now = mx_clock_ns();
        const bool idle = is_asleep(child, &ticks) && ticks == before;
        if (!idle || since == 0) since = idle ? now : 0;
        before = ticks;
        slept = idle && now - since > ASLEEP_MS * UINT64_C(1000000);
        if (slept) kill(child, SIGKILL);
    }
    if (fd >= 0) close(fd);
    return !slept;
}

int mx_isolate(int (*work)(void *context, struct mx_isolated *report), void *context, const char *subject,
               unsigned seconds, mx_why *why) {
    struct mx_isolated *report =
        mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED) return mx_fail(why, -ENOMEM, "%s: no memory to try it out", subject);
    int status = 0, err = 0, slept = 0;
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
            err = mx_fail(why, -errno, "%s cannot be tried out, because no child process can be started: %s",
                          subject, strerror(errno));
            break;
        }
        if (!wait_for(child, &status) && !report->done) {
            if (++slept < WAKE_TRIES) continue;
            err = mx_fail(why, -EINVAL, "%s waits for something instead of computing%s", subject,
                          report->stage);
            break;
        }
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
