/* module.c - the part of the link mpi that is compiled with an MPI: one shared object for each
 * (memext-openmpi.so, memext-mpich.so), loaded by link/mpi.c. Nothing waits in here: MPI libraries wait by
 * turning. Callers see to it that one thread at a time is in here. */
#include <mpi.h>

#include <stdlib.h>
#include <string.h>

#include "mpi_module.h"

enum { PIECE_BYTES = 1 << 28 };

/* Transfers of any length are cut: MPI counts in int. */
struct transfer {
    char *data;
    size_t left;
    int peer, tag, sends;
    MPI_Request request;
};

static MPI_Comm comm;
static char name[MPI_MAX_LIBRARY_VERSION_STRING];

static int post(struct transfer *t) {
    const int n = (int)(t->left < PIECE_BYTES ? t->left : PIECE_BYTES);
    const int err = t->sends ? MPI_Isend(t->data, n, MPI_BYTE, t->peer, t->tag, comm, &t->request)
                             : MPI_Irecv(t->data, n, MPI_BYTE, t->peer, t->tag, comm, &t->request);
    t->data += n;
    t->left -= (size_t)n;
    return err == MPI_SUCCESS ? 0 : -1;
}

static void *begin(int peer, int tag, void *data, size_t bytes, int sends) {
    struct transfer *t = malloc(sizeof *t);
    if (t == NULL) return NULL;
    *t = (struct transfer){data, bytes, peer, tag, sends, MPI_REQUEST_NULL};
    if (post(t) == 0) return t;
    free(t);
    return NULL;
}

static void *module_send(int peer, int tag, const void *data, size_t bytes) {
    void *from;
    memcpy(&from, &data, sizeof from);
    return begin(peer, tag, from, bytes, 1);
}

static void *module_receive(int peer, int tag, void *data, size_t bytes) {
    return begin(peer, tag, data, bytes, 0);
}

static int module_test(void *transfer) {
    struct transfer *t = transfer;
    int done = 0;
    int err = MPI_Test(&t->request, &done, MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS && !done) return 0;
    if (err == MPI_SUCCESS && t->left > 0 && (err = post(t)) == MPI_SUCCESS) return 0;
    free(t);
    return err == MPI_SUCCESS ? 1 : -1;
}

static int module_open(int *rank, int *ranks) {
    int provided, length;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) return -1;
    if (provided < MPI_THREAD_SERIALIZED) return MPI_Finalize(), -1;
    if (MPI_Comm_dup(MPI_COMM_WORLD, &comm) != MPI_SUCCESS) return -1;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, rank);
    MPI_Comm_size(comm, ranks);
    MPI_Get_library_version(name, &length);
    name[strcspn(name, ",\n")] = 0;
    return 0;
}

static void module_close(void) {
    MPI_Comm_free(&comm);
    MPI_Finalize();
}

static void module_abort(int status) { MPI_Abort(MPI_COMM_WORLD, status); }

const struct mx_mpi_module mx_mpi_module = {.version = MX_MPI_MODULE_VERSION,
                                            .library = name,
                                            .open = module_open,
                                            .send = module_send,
                                            .receive = module_receive,
                                            .test = module_test,
                                            .close = module_close,
                                            .abort = module_abort};
