/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_module.h - the interface between link/mpi.c and the modules that are built with an MPI
 * (links/mpi/module.c). It passes only integers and bytes, since the two are compiled separately. */
#ifndef MX_MPI_MODULE_H
#define MX_MPI_MODULE_H

#include <stddef.h>

enum { MX_MPI_MODULE_VERSION = 4 };
#define MX_MPI_MODULE_SYMBOL "mx_mpi_module"

struct mx_mpi_module {
    int version;
    const char *library; /* "Open MPI 4.1.4" */
    /* 0, or -1: MPI could not be started. */
    int (*open)(int *rank, int *ranks);
    /* Begin a transfer, which is under way until `test` says otherwise. NULL: it could not be posted. Both
     * sides give the same number of bytes. */
    void *(*send)(int peer, int tag, const void *data, size_t bytes);
    void *(*receive)(int peer, int tag, void *data, size_t bytes);
    /* Returns the most bytes that a transfer has under way; *piece_bytes: of one piece. */
    size_t (*window)(size_t *piece_bytes);
    /* 1 = done and freed, -1 = failed and freed, 0 = under way. *moved: pieces that were moved since the last
     * call. */
    int (*test)(void *transfer, int *moved);
    void (*close)(void); /* all ranks */
    /* ---- after something has failed */
    void (*tell)(int peer, int tag); /* sends an empty message, which nobody waits for */
    int (*told)(int tag);            /* 1: such a message of any rank has come */
    /* Gives up a transfer under way: 1 = it has ended and is freed, 0 = not yet: call it again, or `forget`.
     */
    int (*give_up)(void *transfer);
    void (*forget)(void *transfer);
    /* Receives messages and drops them, so that their senders can end. Returns how many forgotten transfers
     * are under way. */
    int (*drain)(void);
    /* All ranks call meet equally often; the result is the greatest of their values. meet: 0 or -1. met: 0 =
     * not all ranks have called meet, 1 = *most is the result, -1 = failed. */
    int (*meet)(int value);
    int (*met)(int *most);
    void (*abort)(int status); /* ends all ranks */
};

#endif
