/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_module.h - what stands between link/mpi.c and the modules that are built with an MPI
 * (links/mpi/module.c). Only whole numbers and bytes pass: the two were compiled apart. */
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
    /* Under way until test says otherwise; NULL: it could not be posted. Both sides give the same number of
     * bytes. */
    void *(*send)(int peer, int tag, const void *data, size_t bytes);
    void *(*receive)(int peer, int tag, void *data, size_t bytes);
    /* Bytes that a transfer has under way at most, and of a piece. */
    size_t (*window)(size_t *piece_bytes);
    /* 1 = done and freed, -1 = failed and freed, 0 = under way; *moved: pieces of it that went since the last
     * look. */
    int (*test)(void *transfer, int *moved);
    void (*close)(void); /* all ranks */
    /* ---- where something failed */
    void (*tell)(int peer, int tag); /* an empty message, which nobody waits for */
    int (*told)(int tag);            /* 1: one of anybody's has come */
    /* Of a transfer under way: 1 = it has ended and is freed, 0 = not yet, to be asked again or forgotten. */
    int (*give_up)(void *transfer);
    void (*forget)(void *transfer);
    /* Takes what comes and throws it away, so that those who sent it get to an end; how many of the forgotten
     * are under way. */
    int (*drain)(void);
    /* All ranks, as often as one another: the greatest of their values. meet 0 or -1; met: 0 = not all have
     * come, 1 = *most is there, -1 = failed. */
    int (*meet)(int value);
    int (*met)(int *most);
    void (*abort)(int status); /* ends all ranks */
};

#endif
