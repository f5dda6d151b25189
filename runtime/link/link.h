/* SPDX-License-Identifier: BSD-3-Clause */
/* link.h - how the ranks of a run reach one another. What they exchange is decided elsewhere
 * (execute/exchange.h, run/ranks.h): here bytes go from rank to rank, whole and in order.
 *
 * A link is one `const struct` of functions: blocking transfers that several threads may be in at a time,
 * each in a channel and direction of its own. Posting, collectives and counting are done once for all links.
 *
 *     local   processes or threads of one machine, over socket pairs: for tests, and for a machine by itself
 *     mpi     ranks that mpirun (or srun, ...) has started; a module beside the program, loaded when it is
 * asked for, so that a program that was built with it runs where there is no MPI
 */
#ifndef MX_LINK_H
#define MX_LINK_H

#include <memext/backend.h>
#include <memext/memext.h>

#include <sys/uio.h>

enum { MX_RANKS_MOST = 4096 };

/* Every pair of ranks has one ordered stream of bytes in each channel and direction. */
enum mx_channel {
    MX_CHANNEL_RUN,    /* collectives of the run's thread */
    MX_CHANNEL_COMMIT, /* those of the thread that commits */
    MX_CHANNEL_UP,     /* layers to the rank above, */
    MX_CHANNEL_DOWN,   /* and below */
    MX_CHANNEL_WORDS,  /* what rank 0 says to the others */
};
enum { MX_CHANNELS = 5 };

struct mx_link_ops {
    const char *name, *summary;
    /* 0, or < 0 with a sentence: why it cannot be used in this process. */
    int (*probe)(mx_why *why);
    int (*open)(mx_why *why, void **state, int *rank, int *ranks);
    /* NULL, or called by both sides before a transfer, with its number of bytes. Bytes that arrive before the
     * receiver waits for them lie in memory that nobody counts. So for more than a few bytes, the sender
     * returns only when the receiver has begun to take them. The receiver returns at once. Errors as below.
     */
    int (*agree)(void *state, int peer, enum mx_channel channel, size_t bytes, bool sends);
    /* Return when the bytes may be changed, or are there. -ECONNRESET: that rank is gone; -ECANCELED: stop
     * was called. */
    int (*send)(void *state, int peer, enum mx_channel channel, const void *data, size_t bytes);
    int (*receive)(void *state, int peer, enum mx_channel channel, void *data, size_t bytes);
    /* Ends all transfers under way and to come, here and, since nothing comes from here any more, over there.
     * Any thread. */
    void (*stop)(void *state);
    /* NULL, or ends this process, which has failed and has cleaned up. It waits until all other ranks have
     * called it too, or for some seconds. The exit status is the worst of all ranks. stopped: a signal asked
     * for the end. */
    void (*leave)(void *state, int status, bool stopped);
    /* status 0: every rank closes so, and nothing is under way. Else the others are to end too, and where
     * there is a function `leave`, that is called. */
    void (*close)(void *state, int status);
};

extern const struct mx_link_ops *const mx_links[]; /* NULL-terminated */
const struct mx_link_ops *mx_link_find(const char *name);
/* The link that this process was started with (by mpirun, or as one of several processes by mx_local_fork);
 * NULL = it is by itself. */
const struct mx_link_ops *mx_link_of_process(void);

typedef struct mx_link mx_link;

/* ring: the last rank is below the first. */
int mx_link_open(const struct mx_link_ops *ops, mx_why *why, mx_link **out);
void mx_link_close(mx_link *link, int status); /* NULL allowed; 0: all ended well */
/* Does mx_link_leave end this process? */
bool mx_link_leaves(const mx_link *link);
/* To be called when a rank ends with a status other than 0, after its files have their final state. With link
 * mpi it waits for the other ranks and does not return. With link local it does nothing. NULL allowed. */
void mx_link_leave(mx_link *link, int status, bool stopped);
void mx_link_stop(mx_link *link); /* NULL allowed; also waits until no message is under way */
const char *mx_link_name(const mx_link *link);
int mx_link_rank(const mx_link *link);
int mx_link_ranks(const mx_link *link);

/* ---- collectives: called by all ranks, in the same order in a channel. 0, or < 0 with a sentence: a rank is
 * gone. */

/* `bytes` of every rank, in their order, to every rank. all: [ranks * bytes]. */
int mx_link_gather(mx_link *link, enum mx_channel channel, const void *mine, size_t bytes, void *all,
                   mx_why *why);
/* Of the rank `from`, to all. */
int mx_link_share(mx_link *link, enum mx_channel channel, int from, void *data, size_t bytes, mx_why *why);
/* Nobody returns before all have called. */
int mx_link_meet(mx_link *link, enum mx_channel channel, mx_why *why);
/* Bytes of any number from every rank to rank 0, which gets ranks of them in text[], each with a closing 0,
 * to be freed; others get nothing. */
int mx_link_collect(mx_link *link, const char *mine, char **text, mx_why *why);
/* `bytes` of the rank `from`, to rank 0 (from > 0): of both the same number. */
int mx_link_hand(mx_link *link, int from, void *data, size_t bytes, mx_why *why);
/* The file of a rank, from where it stands to its end, to rank 0, which writes it behind what its own has. */
int mx_link_pour(mx_link *link, int from, int fd, mx_why *why);

/* What a link does between two neighbours, one pair at a time on each rank and the worst of all: measured in
 * some 0.1 s, before any messages, both directions at once: that is how sweeps use it. Where it fails the
 * link is stopped. */
int mx_link_measure(mx_link *link, double *bytes_per_s, double *latency_s, mx_why *why);

/* ---- messages to neighbours, at end 0 (below) and 1 (above), as execute.h asks for them (context: a link)
 */

/* Piece i of a message are bytes i * piece_bytes and so on of each of its n parts, one part after the other;
 * pieces go one after the other, and both ranks cut alike. */
int mx_link_send(void *link, int end, const struct iovec *part, int n, size_t piece_bytes, int64_t ready,
                 mx_why *why);
int mx_link_more(void *link, int end, int64_t ready, mx_why *why);
int mx_link_receive(void *link, int end, const struct iovec *part, int n, size_t piece_bytes, mx_why *why);
int mx_link_sent(void *link, int end, bool wait, mx_why *why);
int mx_link_received(void *link, int end, int64_t pieces, bool wait, mx_why *why);
void mx_link_quit(void *link); /* mx_link_stop */
/* Bytes of messages that have been sent to neighbours, and received, so far. */
void mx_link_counters(mx_link *link, uint64_t *sent, uint64_t *received);

/* ---- what rank 0 decides for all as it goes: one number after the other, which nobody waits for that does
 * not want to */

/* Of rank 0, to all others; 0. */
int mx_link_say(mx_link *link, int64_t word, mx_why *why);
/* Of the others: 1 = *word is the next one, 0 = it has not come yet (not with `wait`). What was said is to be
 * heard before the link is closed with status 0. */
int mx_link_heard(mx_link *link, bool wait, int64_t *word, mx_why *why);

/* ---- local */

/* Makes this process `ranks` of them: forks, and returns 0 in each rank, whose link is local then. In the
 * process that called it waits until all have ended and returns 1 and the exit status: the worst of theirs,
 * where one that was killed counts as 128 + the signal. To be called before there are threads. */
int mx_local_fork(int ranks, mx_why *why, int *status);
/* The same for threads of one process, for tests: ends [ranks], for mx_local_use on the thread that opens the
 * link. */
struct mx_local_end;
int mx_local_make(int ranks, mx_why *why, struct mx_local_end **ends);
void mx_local_use(struct mx_local_end *ends, int rank);

#endif
