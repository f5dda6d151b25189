/* SPDX-License-Identifier: BSD-3-Clause */
/* local.c - ranks of one machine: a socket pair for every two ranks and channel. */
#include "link/link.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOCAL_MOST = 64 };

struct mx_local_end {
    int rank, ranks;
    _Atomic bool stopped;
    int *fd; /* [ranks * MX_CHANNELS]; -1 to itself */
};

static _Thread_local struct mx_local_end *of_thread;
static struct mx_local_end *of_process;

static void close_end(struct mx_local_end *e) {
    for (int i = 0; e->fd != NULL && i < e->ranks * MX_CHANNELS; i++)
        if (e->fd[i] >= 0) close(e->fd[i]);
    free(e->fd);
    e->fd = NULL;
}

/* Between any two ranks; words come from rank 0. */
static bool has_channel(int lower, int c) { return c != MX_CHANNEL_WORDS || lower == 0; }

static int fail_sockets(int ranks, int err, mx_why *why) {
    return mx_fail(why, err,
                   "--ranks %d needs %d sockets: %s; choose fewer ranks, or raise the limit of open "
                   "files (ulimit -n)",
                   ranks, ranks * (ranks - 1) * (MX_CHANNELS - 1) + 2 * (ranks - 1), strerror(-err));
}

int mx_local_make(int ranks, mx_why *why, struct mx_local_end **out) {
    if (ranks < 1 || ranks > LOCAL_MOST)
        return mx_fail(why, -EINVAL,
                       "--ranks %d: the link local allows 1 to %d ranks; start more with mpirun", ranks,
                       LOCAL_MOST);
    struct mx_local_end *ends = calloc((size_t)ranks, sizeof *ends);
    int err = ends == NULL ? -ENOMEM : 0;
    for (int i = 0; i < ranks && err == 0; i++) {
        ends[i].rank = i, ends[i].ranks = ranks;
        ends[i].fd = malloc((size_t)(ranks * MX_CHANNELS) * sizeof *ends[i].fd);
        if (ends[i].fd == NULL) err = -ENOMEM;
        for (int k = 0; k < ranks * MX_CHANNELS && err == 0; k++) ends[i].fd[k] = -1;
    }
    for (int i = 0; i < ranks; i++)
        for (int k = i + 1; k < ranks; k++)
            for (int c = 0; c < MX_CHANNELS && err == 0; c++) {
                int pair[2];
                if (!has_channel(i, c)) continue;
                if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
                    err = -errno;
                    break;
                }
                ends[i].fd[k * MX_CHANNELS + c] = pair[0];
                ends[k].fd[i * MX_CHANNELS + c] = pair[1];
            }
    if (err == 0) return *out = ends, 0;
    for (int i = 0; i < ranks && ends != NULL; i++) close_end(&ends[i]);
    free(ends);
    return fail_sockets(ranks, err, why);
}

void mx_local_use(struct mx_local_end *ends, int rank) { of_thread = &ends[rank]; }

/* ------------------------------------------------------------------ processes */

static volatile sig_atomic_t n_children;
static pid_t child[LOCAL_MOST];

/* A rank that somebody has stopped is to hear of it too. */
static void forward(int signal) {
    for (int i = 0; i < n_children; i++)
        if (child[i] > 0) kill(child[i], signal), kill(child[i], SIGCONT);
}

/* A rank ends when the process that started it has. */
static void be_rank(struct mx_local_end *ends, int rank, pid_t parent) {
    for (int i = 0; i < ends[0].ranks; i++)
        if (i != rank) close_end(&ends[i]);
    of_process = &ends[rank];
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) raise(SIGTERM);
}

/* Hashes of the sentences that ranks have said, in memory that all of them share. When it is full, sentences
 * are said by each. */
enum { SAID_MOST = 4096 / sizeof(uint64_t) };
static _Atomic uint64_t *said;

static void share_said(void) {
    void *p = mmap(NULL, SAID_MOST * sizeof *said, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    said = p != MAP_FAILED ? p : NULL;
}

bool mx_local_says_first(const char *sentence) {
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (const char *c = sentence; *c != 0; c++) hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    for (int i = 0; said != NULL && i < SAID_MOST; i++) {
        uint64_t other = 0;
        if (atomic_compare_exchange_strong(&said[i], &other, hash)) return true;
        if (other == hash) return false;
    }
    return true;
}

static int wait_for(int ranks) {
    int worst = 0;
    for (int left = ranks; left > 0;) {
        int status;
        const pid_t pid = waitpid(-1, &status, 0);
        if (pid < 0 && errno == EINTR) continue;
        if (pid < 0) break;
        for (int i = 0; i < ranks; i++) {
            if (child[i] != pid) continue;
            const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            child[i] = 0;
            left--;
            if (code > worst) worst = code;
            if (code > 0) forward(SIGCONT); /* all end then, and nobody waits for one that was stopped */
        }
    }
    return worst;
}

int mx_local_fork(int ranks, mx_why *why, int *status) {
    struct mx_local_end *ends;
    const struct sigaction pass = {.sa_handler = forward};
    const pid_t parent = getpid();
    struct sigaction before[2];
    int err = mx_local_make(ranks, why, &ends);
    if (err < 0) return err;
    share_said();
    for (int i = 0; i < ranks; i++) {
        const pid_t pid = fork();
        if (pid == 0) return be_rank(ends, i, parent), 0;
        if (pid < 0) err = -errno;
        if (pid < 0) break;
        child[i] = pid;
        n_children = i + 1;
    }
    /* Those from the keyboard reach the ranks by themselves: one is as good as two. */
    sigaction(SIGINT, &pass, &before[0]);
    sigaction(SIGTERM, &pass, &before[1]);
    for (int i = 0; i < ranks; i++) close_end(&ends[i]);
    free(ends);
    if (err < 0) forward(SIGKILL);
    *status = wait_for(n_children);
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGTERM, &before[1], NULL);
    return err < 0 ? mx_fail(why, err, "rank %d of %d could not be started: %s; choose fewer ranks",
                             (int)n_children, ranks, strerror(-err))
                   : 1;
}

/* ------------------------------------------------------------------ the link */

static int local_probe(mx_why *why) {
    (void)why;
    return 0;
}

static int local_open(mx_why *why, void **state, int *rank, int *ranks) {
    struct mx_local_end *e = of_thread != NULL ? of_thread : of_process;
    if (e == NULL)
        return mx_fail(why, -ENOTSUP,
                       "--link local is for processes that memext run --ranks P starts: give --ranks");
    *rank = e->rank, *ranks = e->ranks;
    return *state = e, 0;
}

static int fd_of(const struct mx_local_end *e, int peer, enum mx_channel c) {
    return e->fd[peer * MX_CHANNELS + (int)c];
}

static int broken(const struct mx_local_end *e) {
    return atomic_load_explicit(&e->stopped, memory_order_acquire) ? -ECANCELED : -ECONNRESET;
}

static int local_send(void *state, int peer, enum mx_channel c, const void *data, size_t bytes) {
    const struct mx_local_end *e = state;
    const char *at = data;
    while (bytes > 0) {
        const ssize_t n = send(fd_of(e, peer, c), at, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return broken(e);
        at += n, bytes -= (size_t)n;
    }
    return 0;
}

static int local_receive(void *state, int peer, enum mx_channel c, void *data, size_t bytes) {
    const struct mx_local_end *e = state;
    char *at = data;
    while (bytes > 0) {
        const ssize_t n = recv(fd_of(e, peer, c), at, bytes, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return broken(e);
        at += n, bytes -= (size_t)n;
    }
    return 0;
}

static void local_stop(void *state) {
    struct mx_local_end *e = state;
    atomic_store_explicit(&e->stopped, true, memory_order_release);
    for (int i = 0; i < e->ranks * MX_CHANNELS; i++)
        if (e->fd[i] >= 0) shutdown(e->fd[i], SHUT_RDWR);
}

static void local_close(void *state, int status) {
    (void)status;
    close_end(state);
}

static bool is_local(void) { return of_thread != NULL || of_process != NULL; }

const struct mx_link_ops mx_link_local = {.name = "local",
                                          .summary = "processes of one machine: --ranks P",
                                          .probe = local_probe,
                                          .open = local_open,
                                          .send = local_send,
                                          .receive = local_receive,
                                          .stop = local_stop,
                                          .close = local_close};

/* ------------------------------------------------------------------ which it is */

extern const struct mx_link_ops mx_link_mpi;
bool mx_mpi_started(void);

const struct mx_link_ops *mx_link_of_process(void) {
    if (is_local()) return &mx_link_local;
    return mx_mpi_started() ? &mx_link_mpi : NULL;
}
