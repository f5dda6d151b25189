/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi.c - ranks that an mpirun has started. The MPI is loaded as a module that was built with it (links/mpi),
 * the one of the launcher: environment variables say which that is. */
#include "link/link.h"
#include "link/mpi_module.h"
#include "machine/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool mx_mpi_started(void);

/* What launchers leave in the environment of a rank. Slurm starts both kinds: its PMI is MPICH's, its PMIx
 * Open MPI's. */
static const struct {
    const char *variable, *module;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "memext-openmpi.so"},
    {"PMIX_RANK", "memext-openmpi.so"},
    {"PMI_SIZE", "memext-mpich.so"},
    {"PMI_RANK", "memext-mpich.so"},
};
static const char *const modules[] = {"memext-openmpi.so", "memext-mpich.so"};

static const char *module_of_launcher(void) {
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++)
        if (getenv(launchers[i].variable) != NULL) return launchers[i].module;
    return NULL;
}

bool mx_mpi_started(void) { return module_of_launcher() != NULL; }

/* Where modules are looked for, in this order. A tree that was installed may have been moved: the program
 * knows the way from where it is. */
enum { GIVEN, BESIDE_PROGRAM, FROM_PROGRAM, INSTALLED, N_PLACES };

/* The directory of a file, in place; "" without one. */
static void directory_of(char path[PATH_MAX]) {
    char *slash = strrchr(path, '/');
    *(slash != NULL ? slash : path) = 0;
}

/* Where a module would be; "" where that is nowhere. MEMEXT_MODULES names a directory. */
static void path_of(const char *module, int where, char path[PATH_MAX]) {
    char folder[PATH_MAX] = "";
    const char *given = getenv("MEMEXT_MODULES"), *way = "";
    if (where == GIVEN && given != NULL) snprintf(folder, sizeof folder, "%.3000s", given);
    if (where == BESIDE_PROGRAM || where == FROM_PROGRAM) {
        const ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
        folder[n > 0 ? n : 0] = 0;
        directory_of(folder);
        if (where == FROM_PROGRAM) way = MX_MODULES_FROM_PROGRAM;
    }
    if (where == INSTALLED) snprintf(folder, sizeof folder, "%s", MX_MODULE_DIR);
    path[0] = 0;
    if (folder[0] != 0) snprintf(path, PATH_MAX, "%.3000s%s/%s", folder, way, module);
}

static bool is_there(const char *module) {
    char path[PATH_MAX];
    for (int where = 0; where < N_PLACES; where++) {
        path_of(module, where, path);
        if (path[0] != 0 && access(path, R_OK) == 0) return true;
    }
    return false;
}

static int load(const char *module, mx_why *why, const struct mx_mpi_module **out) {
    char path[PATH_MAX];
    for (int where = 0; where < N_PLACES; where++) {
        path_of(module, where, path);
        if (path[0] == 0 || access(path, R_OK) != 0) continue;
        void *handle =
            dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* Open MPI loads parts of its own that look for it */
        if (handle == NULL) return mx_fail(why, -ENOTSUP, "%.200s cannot be loaded: %.300s", path, dlerror());
        const struct mx_mpi_module *m = dlsym(handle, MX_MPI_MODULE_SYMBOL);
        if (m != NULL && m->version == MX_MPI_MODULE_VERSION) return *out = m, 0;
        return mx_fail(why, -ENOTSUP,
                       "%.300s was built for another version of memext: build and install memext and this "
                       "module together",
                       path);
    }
    return mx_fail(
        why, -ENOTSUP,
        "mpirun has started this process, but memext was built without its MPI (%s is missing): install the "
        "packages in packages-mpi.txt and build memext again, or use --ranks P on one machine",
        module);
}

static int mpi_probe(mx_why *why) {
    char text[128] = "";
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++)
        if (is_there(modules[i]))
            snprintf(text + strlen(text), sizeof text - strlen(text), " %s", modules[i]);
    if (text[0] == 0)
        return mx_fail(
            why, -ENOTSUP,
            "memext was built without MPI: install the packages in packages-mpi.txt and build memext again");
    return 0;
}

/* ------------------------------------------------------------------ transfers */

/* How a transfer of a channel and direction is waited for: as the one before it went. */
struct pace {
    bool fast;  /* it was through while it was looked at without a rest */
    int64_t ns; /* between two looks */
};

/* A transfer that a thread waits for. */
struct wait {
    void *transfer;
    int done;  /* as `test` says */
    int ended; /* it is to be given up: why */
    int window;
    struct pace pace;
    int64_t due_ns; /* of the next look */
    struct wait *next;
};

struct mpi {
    const struct mx_mpi_module *module;
    pthread_mutex_t lock;   /* who is in MPI, and what follows */
    pthread_cond_t changed; /* a transfer has ended, or nobody looks any more */
    pthread_cond_t sooner;  /* who looks is to look earlier */
    struct wait *waiting;   /* those of threads that rest */
    bool looking;           /* one of these threads looks for all */
    struct pace pace[MX_CHANNELS * 2][2];
    int rank, ranks;
    _Atomic bool stopped, told; /* here; another rank has said that it ends */
    bool said;                  /* that this one does; lock */
};

/* MPI's own way to end all ranks, MPI_Abort, ends them wherever they are: files that are to go would stay,
 * and sentences be lost. So a rank that fails tells others by a message: what they wait for will not come,
 * and each cleans up and comes to mpi_leave. */
enum { TAG_ENDS = 2 * MX_CHANNELS };
static const double send_s = 1, receive_s = 5, meet_s = 10, end_most_s = 60;

static void rest(void) { nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL); }

static int mpi_open(mx_why *why, void **state, int *rank, int *ranks) {
    const char *module = module_of_launcher();
    if (module == NULL)
        return mx_fail(why, -ENOTSUP,
                       "--link mpi is for processes that mpirun starts: mpirun -n P memext run");
    struct mpi *m = calloc(1, sizeof *m);
    if (m == NULL) return mx_fail(why, -ENOMEM, "no memory for the link mpi");
    int err = load(module, why, &m->module);
    if (err == 0 && m->module->open(rank, ranks) != 0)
        err =
            mx_fail(why, -EIO,
                    "this MPI does not support several threads (MPI_THREAD_MULTIPLE): install one that does");
    if (err < 0) return free(m), err;
    m->rank = *rank, m->ranks = *ranks;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    pthread_cond_init(&m->sooner, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return *state = m, 0;
}

static int over(const struct mpi *m) {
    if (atomic_load_explicit(&m->stopped, memory_order_acquire)) return -ECANCELED;
    return atomic_load_explicit(&m->told, memory_order_acquire) ? -ECONNRESET : 0;
}

/* The memory of a transfer that is given up is somebody else's soon: MPI is to have done with it, in bounded
 * time. */
static void give_up(struct mpi *m, void *transfer, bool sends) {
    const double end_s = mx_clock_s() + (sends ? send_s : receive_s);
    for (bool done = false; !done;) {
        pthread_mutex_lock(&m->lock);
        done = m->module->give_up(transfer);
        if (!done) m->module->drain();
        if (!done && mx_clock_s() > end_s) m->module->forget(transfer), done = true;
        pthread_mutex_unlock(&m->lock);
        if (!done) rest();
    }
}

/* MPI would turn in its waiting and take a core from who computes. So a transfer is looked at some times
 * without a rest, often where the one before it was through by then, and after that at times: of all threads
 * that wait one looks for all, for each look costs a timer. The time between two looks follows what moves: a
 * look that finds an eighth to a quarter of what may be under way comes neither too early nor too late. */
enum { LOOKS = 200, FEW_LOOKS = 20, SHORT_BYTES = 64 << 10 };
enum { LEAST_REST_NS = 50000, MOST_REST_NS = 1000000, MOST_REST_STILL_NS = 2000000 };

/* Lock held, as in all of these. */
static void look_at(struct mpi *m, struct wait *w, bool *any) {
    int moved = 0;
    w->done = m->module->test(w->transfer, &moved);
    *any |= moved > 0;
    if (moved * 4 > w->window)
        w->pace.ns /= 2;
    else if (moved * 8 < w->window)
        w->pace.ns += w->pace.ns / 2;
    if (w->pace.ns < LEAST_REST_NS) w->pace.ns = LEAST_REST_NS;
    const int64_t most = moved > 0 ? MOST_REST_NS : MOST_REST_STILL_NS;
    if (w->pace.ns > most) w->pace.ns = most;
}

static void look_at_all(struct mpi *m) {
    const int ended = over(m); /* before the look: what had come by then is taken */
    bool moved = false, through = false;
    for (struct wait **at = &m->waiting; *at != NULL;) {
        struct wait *w = *at;
        look_at(m, w, &moved);
        w->ended = w->done == 0 ? ended : 0;
        w->due_ns = (int64_t)mx_clock_ns() + w->pace.ns;
        const bool leaves = w->done != 0 || w->ended < 0;
        through |= leaves;
        if (leaves)
            *at = w->next;
        else
            at = &w->next;
    }
    if (!moved && m->module->told(TAG_ENDS)) m->told = true;
    if (through) pthread_cond_broadcast(&m->changed);
}

static void rest_until_due(struct mpi *m) {
    int64_t due = INT64_MAX;
    for (const struct wait *w = m->waiting; w != NULL; w = w->next)
        if (w->due_ns < due) due = w->due_ns;
    const struct timespec until = {(time_t)(due / 1000000000), (long)(due % 1000000000)};
    if (over(m) == 0) pthread_cond_timedwait(&m->sooner, &m->lock, &until);
}

static void wait_among_others(struct mpi *m, struct wait *w) {
    w->due_ns = (int64_t)mx_clock_ns() + w->pace.ns;
    w->next = m->waiting;
    m->waiting = w;
    if (m->looking) pthread_cond_signal(&m->sooner);
    while (w->done == 0 && w->ended == 0) {
        if (m->looking) {
            pthread_cond_wait(&m->changed, &m->lock);
            continue;
        }
        m->looking = true;
        while (w->done == 0 && w->ended == 0) {
            rest_until_due(m);
            look_at_all(m);
        }
        m->looking = false;
        pthread_cond_broadcast(&m->changed); /* another one is to look */
    }
}

/* Without a rest, but others may come in between. */
static void look_some_times(struct mpi *m, struct wait *w, int looks) {
    while (w->done == 0 && w->ended == 0 && looks-- > 0) {
        const int ended = over(m);
        int moved;
        w->done = m->module->test(w->transfer, &moved);
        if (w->done == 0) w->ended = ended;
        pthread_mutex_unlock(&m->lock);
        pthread_mutex_lock(&m->lock);
    }
    w->pace.fast = w->done != 0;
}

static void *begin(struct mpi *m, bool send, int peer, int tag, void *data, size_t bytes) {
    return send ? m->module->send(peer, tag, data, bytes) : m->module->receive(peer, tag, data, bytes);
}

static int move(struct mpi *m, bool send, int peer, int tag, void *data, size_t bytes) {
    const bool is_short = bytes < SHORT_BYTES; /* it waits for another rank, not for the link */
    size_t piece;
    const size_t window = m->module->window(&piece), most = bytes < window ? bytes : window;
    struct wait w = {.window = (int)((most + piece - 1) / piece)};
    pthread_mutex_lock(&m->lock);
    w.pace = m->pace[tag][send];
    if (w.pace.ns == 0 || is_short) w.pace.ns = LEAST_REST_NS;
    w.ended = over(m);
    if (w.ended == 0 && (w.transfer = begin(m, send, peer, tag, data, bytes)) == NULL) w.done = -1;
    if (w.transfer != NULL) look_some_times(m, &w, is_short || w.pace.fast ? LOOKS : FEW_LOOKS);
    if (w.done == 0 && w.ended == 0) wait_among_others(m, &w);
    m->pace[tag][send] = w.pace;
    pthread_mutex_unlock(&m->lock);
    if (w.done == 0 && w.transfer != NULL) give_up(m, w.transfer, send);
    return w.done == 0 ? w.ended : w.done > 0 ? 0 : -ECONNRESET;
}

/* Pieces that come before they are asked for lie in memory of MPI's, which nobody counts: of more than a few
 * the receiver says when it begins to take them. That goes when its room is free, mostly long before the
 * sender has anything to send. */
enum { UNASKED_BYTES = 256 << 10 };

static int mpi_agree(void *state, int peer, enum mx_channel c, size_t bytes, bool sends) {
    char ready = 1;
    return bytes > UNASKED_BYTES ? move(state, !sends, peer, (int)c + MX_CHANNELS, &ready, 1) : 0;
}

static int mpi_send(void *state, int peer, enum mx_channel c, const void *data, size_t bytes) {
    void *from;
    memcpy(&from, &data, sizeof from);
    return move(state, true, peer, (int)c, from, bytes);
}

static int mpi_receive(void *state, int peer, enum mx_channel c, void *data, size_t bytes) {
    return move(state, false, peer, (int)c, data, bytes);
}

static void mpi_stop(void *state) {
    struct mpi *m = state;
    pthread_mutex_lock(&m->lock);
    atomic_store_explicit(&m->stopped, true, memory_order_release);
    /* To those who wait for this rank; rank 0, for whom all do, tells all. */
    for (int i = 0; i < m->ranks && !m->said; i++) {
        const int apart = (i - m->rank + m->ranks) % m->ranks;
        if (apart != 0 && (m->rank == 0 || i == 0 || apart == 1 || apart == m->ranks - 1))
            m->module->tell(i, TAG_ENDS);
    }
    m->said = true;
    pthread_cond_signal(&m->sooner);
    pthread_mutex_unlock(&m->lock);
}

/* The greatest value of all ranks, that of this one where they do not come in time. */
static bool meet(struct mpi *m, double end_s, int *value) {
    int most = *value, met = m->module->meet(*value);
    while (met == 0) {
        m->module->drain();
        met = m->module->met(&most);
        if (met == 0 && mx_clock_s() > end_s) return false;
        if (met == 0) rest();
    }
    if (met > 0) *value = most;
    return met > 0;
}

/* Whoever has met has cleaned up, so that nobody is ended too early; then MPI may be closed by all, but for
 * messages that it still has. Of a launcher that is asked to end: MPICH's then heeds no exit status but that
 * of MPI_Abort. */
static void mpi_leave(void *state, int status, bool stopped) {
    struct mpi *m = state;
    const double end_s = mx_clock_s() + meet_s;
    fflush(NULL);
    mpi_stop(m);
    pthread_mutex_lock(&m->lock);
    bool met = meet(m, end_s, &status);
    const double sent_s = mx_clock_s() + send_s;
    while (met && m->module->drain() > 0 && mx_clock_s() < sent_s) rest();
    int left = met ? stopped || m->module->drain() > 0 : 1;
    if (met) met = meet(m, end_s, &left);
    signal(SIGALRM, SIG_DFL);
    alarm((unsigned)end_most_s); /* should an MPI wait for ever in these, mpirun ends all */
    if (!met || left) m->module->abort(status);
    m->module->close();
    _exit(status);
}

static void mpi_close(void *state, int status) {
    struct mpi *m = state;
    if (status != 0) mpi_leave(m, status, false);
    m->module->close();
    pthread_cond_destroy(&m->sooner);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

const struct mx_link_ops mx_link_mpi = {.name = "mpi",
                                        .summary = "ranks that mpirun has started: mpirun -n P memext run",
                                        .probe = mpi_probe,
                                        .open = mpi_open,
                                        .agree = mpi_agree,
                                        .send = mpi_send,
                                        .receive = mpi_receive,
                                        .stop = mpi_stop,
                                        .leave = mpi_leave,
                                        .close = mpi_close};
