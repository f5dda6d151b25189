/* mpi.c - ranks that an mpirun has started. The MPI is loaded as a module that was built with it (links/mpi),
 * the one of the launcher: environment variables say which that is. */
#include "link/link.h"
#include "link/mpi_module.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
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

/* Beside the program, and where it is installed; $MEMEXT_MODULES is looked at first. */
static void path_of(const char *module, int where, char path[PATH_MAX]) {
    const char *given = getenv("MEMEXT_MODULES");
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash != NULL) *slash = 0;
    path[0] = 0;
    if (where == 0 && given != NULL) snprintf(path, PATH_MAX, "%.3000s/%s", given, module);
    if (where == 1) snprintf(path, PATH_MAX, "%.3000s/%s", self, module);
    if (where == 2) snprintf(path, PATH_MAX, "%s/%s", MX_MODULE_DIR, module);
}

static bool is_there(const char *module) {
    char path[PATH_MAX];
    for (int where = 0; where < 3; where++) {
        path_of(module, where, path);
        if (path[0] != 0 && access(path, R_OK) == 0) return true;
    }
    return false;
}

static int load(const char *module, mx_why *why, const struct mx_mpi_module **out) {
    char path[PATH_MAX];
    for (int where = 0; where < 3; where++) {
        path_of(module, where, path);
        if (path[0] == 0 || access(path, R_OK) != 0) continue;
        void *handle =
            dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* Open MPI loads parts of its own that look for it */
        if (handle == NULL) return mx_fail(why, -ENOTSUP, "%.200s cannot be loaded: %.300s", path, dlerror());
        const struct mx_mpi_module *m = dlsym(handle, MX_MPI_MODULE_SYMBOL);
        if (m != NULL && m->version == MX_MPI_MODULE_VERSION) return *out = m, 0;
        return mx_fail(why, -ENOTSUP, "%.300s is of another memext: build and install both together", path);
    }
    return mx_fail(
        why, -ENOTSUP,
        "an mpirun has started this process, and memext was built without its MPI (%s is missing): "
        "install packages-mpi.txt and build again, or use --ranks P on one machine",
        module);
}

static int mpi_probe(mx_why *why) {
    char text[128] = "";
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++)
        if (is_there(modules[i]))
            snprintf(text + strlen(text), sizeof text - strlen(text), " %s", modules[i]);
    if (text[0] == 0) return mx_fail(why, -ENOTSUP, "not built: packages-mpi.txt was not installed");
    return 0;
}

/* ------------------------------------------------------------------ transfers */

struct mpi {
    const struct mx_mpi_module *module;
    pthread_mutex_t lock; /* who is in MPI */
    _Atomic bool stopped;
};

static int mpi_open(mx_why *why, void **state, int *rank, int *ranks) {
    const char *module = module_of_launcher();
    if (module == NULL)
        return mx_fail(why, -ENOTSUP,
                       "the link mpi is for processes that mpirun has started: mpirun -n P memext run");
    struct mpi *m = calloc(1, sizeof *m);
    if (m == NULL) return mx_fail(why, -ENOMEM, "no memory for the link mpi");
    int err = load(module, why, &m->module);
    if (err == 0 && m->module->open(rank, ranks) != 0)
        err = mx_fail(why, -EIO, "MPI could not be started for several threads");
    if (err < 0) return free(m), err;
    pthread_mutex_init(&m->lock, NULL);
    return *state = m, 0;
}

/* MPI would turn in its waiting and take a core: looked at often at first and while something moves, else
 * at longer and longer times. */
static int wait_for(struct mpi *m, void *transfer) {
    enum { LOOKS = 200, SHORT_NS = 2000, LONG_NS = 1000000 };
    int done = transfer == NULL ? -1 : 0;
    for (int64_t looks = 0, ns = SHORT_NS; done == 0; looks++) {
        int moved = 0;
        pthread_mutex_lock(&m->lock);
        done = m->module->test(transfer, &moved);
        pthread_mutex_unlock(&m->lock);
        if (done == 0 && atomic_load_explicit(&m->stopped, memory_order_acquire)) return -ECANCELED;
        if (moved) ns = SHORT_NS;
        if (done == 0 && looks > LOOKS) nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
        if (looks > LOOKS && ns < LONG_NS) ns += ns / 8;
    }
    return done > 0 ? 0 : -ECONNRESET;
}

static int move(struct mpi *m, bool send, int peer, int tag, void *data, size_t bytes) {
    pthread_mutex_lock(&m->lock);
    void *transfer =
        send ? m->module->send(peer, tag, data, bytes) : m->module->receive(peer, tag, data, bytes);
    pthread_mutex_unlock(&m->lock);
    return wait_for(m, transfer);
}

/* Pieces that come before they are asked for lie in memory of MPI's, which nobody counts: of more than a few
 * the receiver says when it begins to take them. That goes when its room is free, mostly long before the
 * sender has anything to send. */
enum { UNASKED_BYTES = 256 << 10 };

static int mpi_send(void *state, int peer, enum mx_channel c, const void *data, size_t bytes) {
    char ready;
    void *from;
    memcpy(&from, &data, sizeof from);
    int err = bytes > UNASKED_BYTES ? move(state, false, peer, (int)c + MX_CHANNELS, &ready, 1) : 0;
    return err < 0 ? err : move(state, true, peer, (int)c, from, bytes);
}

static int mpi_receive(void *state, int peer, enum mx_channel c, void *data, size_t bytes) {
    char ready = 1;
    int err = bytes > UNASKED_BYTES ? move(state, true, peer, (int)c + MX_CHANNELS, &ready, 1) : 0;
    return err < 0 ? err : move(state, false, peer, (int)c, data, bytes);
}

static void mpi_stop(void *state) {
    struct mpi *m = state;
    atomic_store_explicit(&m->stopped, true, memory_order_release);
}

static void mpi_close(void *state, int status) {
    struct mpi *m = state;
    if (status == 0)
        m->module->close();
    else
        m->module->abort(status);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

const struct mx_link_ops mx_link_mpi = {.name = "mpi",
                                        .summary = "ranks that mpirun has started: mpirun -n P memext run",
                                        .probe = mpi_probe,
                                        .open = mpi_open,
                                        .send = mpi_send,
                                        .receive = mpi_receive,
                                        .stop = mpi_stop,
                                        .close = mpi_close};
