/* SPDX-License-Identifier: BSD-3-Clause */
/* module.c - the part of the link mpi that is compiled with an MPI. There is one shared object for each MPI
 * (memext-openmpi.so, memext-mpich.so), which link/mpi.c loads. No function here waits, since MPI libraries
 * wait by polling, which occupies a core. Callers make sure that only one thread at a time calls functions of
 * this file. */
#include <mpi.h>

#include <stdlib.h>
#include <string.h>

#include "mpi_module.h"

/* Messages go in pieces, several of which are under way at a time. Most MPIs send a message as small as a
 * piece at once. They announce a larger one, wait for an answer and then send it. Over TCP that answer queues
 * in the same stream behind all data in its direction. So two large messages that begin shortly one after the
 * other would take turns. */
enum { PIECE_BYTES = 16 << 10, PIECES = 128 };

/* A transfer of any length, cut into pieces. Pieces of one tag arrive in order. */
struct transfer {
    char *data;  /* of the next piece, */
    size_t left; /* and how much is not posted */
    int peer, tag, sends;
    int first, n; /* pieces under way: request[first % PIECES] ... */
    int given_up;
    struct transfer *next; /* of those forgotten */
    MPI_Request request[PIECES];
};

static MPI_Comm comm;
static char name[MPI_MAX_LIBRARY_VERSION_STRING];

static int post(struct transfer *t) {
    int err = MPI_SUCCESS;
    while (err == MPI_SUCCESS && t->left > 0 && t->n < PIECES) {
        const int bytes = (int)(t->left < PIECE_BYTES ? t->left : PIECE_BYTES);
        MPI_Request *q = &t->request[(t->first + t->n) % PIECES];
        err = t->sends ? MPI_Isend(t->data, bytes, MPI_BYTE, t->peer, t->tag, comm, q)
                       : MPI_Irecv(t->data, bytes, MPI_BYTE, t->peer, t->tag, comm, q);
        if (err != MPI_SUCCESS) break;
        t->data += bytes;
        t->left -= (size_t)bytes;
        t->n++;
    }
    return err == MPI_SUCCESS ? 0 : -1;
}

static void *begin(int peer, int tag, void *data, size_t bytes, int sends) {
    struct transfer *t = malloc(sizeof *t);
    if (t == NULL) return NULL;
    *t = (struct transfer){.data = data, .left = bytes, .peer = peer, .tag = tag, .sends = sends};
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

static size_t module_window(size_t *piece_bytes) {
    *piece_bytes = PIECE_BYTES;
    return (size_t)PIECES * PIECE_BYTES;
}

static int module_test(void *transfer, int *moved) {
    struct transfer *t = transfer;
    int done = 1, err = MPI_SUCCESS;
    *moved = 0;
    while (err == MPI_SUCCESS && t->n > 0 && done) {
        err = MPI_Test(&t->request[t->first], &done, MPI_STATUS_IGNORE);
        if (err != MPI_SUCCESS || !done) break;
        t->first = (t->first + 1) % PIECES;
        t->n--;
        ++*moved;
    }
    if (err == MPI_SUCCESS && *moved > 0 && post(t) < 0) err = MPI_ERR_OTHER;
    if (err == MPI_SUCCESS && t->n > 0) return 0;
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

/* ------------------------------------------------------------------ where something failed */

static struct transfer *forgotten;

static void module_tell(int peer, int tag) {
    static char nothing;
    MPI_Request q;
    if (MPI_Isend(&nothing, 0, MPI_BYTE, peer, tag, comm, &q) == MPI_SUCCESS) MPI_Request_free(&q);
}

static int module_told(int tag) {
    int there = 0;
    return MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS || there;
}

/* Messages that were sent cannot be called back; receives can, as long as nothing has come. */
static int finish(struct transfer *t) {
    int done = 1;
    while (t->n > 0 && done) {
        if (MPI_Test(&t->request[t->first], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) done = 1;
        if (!done) break;
        t->first = (t->first + 1) % PIECES;
        t->n--;
    }
    return t->n == 0;
}

/* Of those forgotten; how many are left. */
static int finish_all(void) {
    int left = 0;
    for (struct transfer **at = &forgotten; *at != NULL;) {
        struct transfer *t = *at;
        if (finish(t)) {
            *at = t->next;
            free(t);
        } else {
            at = &t->next;
            left++;
        }
    }
    return left;
}

static int module_give_up(void *transfer) {
    struct transfer *t = transfer;
    if (!t->given_up) {
        t->given_up = 1;
        t->left = 0;
        for (int i = 0; i < t->n && !t->sends; i++) MPI_Cancel(&t->request[(t->first + i) % PIECES]);
    }
    if (!finish(t)) return 0;
    free(t);
    return 1;
}

static void module_forget(void *transfer) {
    struct transfer *t = transfer;
    t->next = forgotten;
    forgotten = t;
}

static int module_drain(void) {
    static char piece[PIECE_BYTES]; /* no message is longer */
    static MPI_Request q;
    static int taking;
    for (int there = 1; there;) {
        if (taking && (MPI_Test(&q, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS || !there)) break;
        taking = 0;
        MPI_Status of;
        if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &there, &of) != MPI_SUCCESS || !there) break;
        taking = MPI_Irecv(piece, PIECE_BYTES, MPI_BYTE, of.MPI_SOURCE, of.MPI_TAG, comm, &q) == MPI_SUCCESS;
        if (!taking) break;
    }
    return finish_all();
}

static struct {
    int mine, most;
    MPI_Request request;
} meeting;

static int module_meet(int value) {
    meeting.mine = value;
    return MPI_Iallreduce(&meeting.mine, &meeting.most, 1, MPI_INT, MPI_MAX, comm, &meeting.request) ==
                   MPI_SUCCESS
               ? 0
               : -1;
}

static int module_met(int *most) {
    int done = 0;
    if (MPI_Test(&meeting.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return -1;
    *most = meeting.most;
    return done;
}

static void module_abort(int status) { MPI_Abort(MPI_COMM_WORLD, status); }

const struct mx_mpi_module mx_mpi_module = {.version = MX_MPI_MODULE_VERSION,
                                            .library = name,
                                            .open = module_open,
                                            .send = module_send,
                                            .receive = module_receive,
                                            .window = module_window,
                                            .test = module_test,
                                            .close = module_close,
                                            .tell = module_tell,
                                            .told = module_told,
                                            .give_up = module_give_up,
                                            .forget = module_forget,
                                            .drain = module_drain,
                                            .meet = module_meet,
                                            .met = module_met,
                                            .abort = module_abort};
