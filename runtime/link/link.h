/* SPDX-License-Identifier: BSD-3-Clause */
/* link.h - moves bytes between the ranks of a run, complete and in order. What ranks exchange is decided
 * elsewhere (execute/exchange.h, run/ranks/ranks.h).
 *
 * A link is one `const struct` of functions. Its transfers block. Several threads may be in them at a time,
 * each in a channel and direction of its own. Posted messages, collectives and counting are done here, once
 * for all links.
 *
 *     local   processes or threads of one machine, over socket pairs: for tests, and for a single machine
 *     mpi     ranks that mpirun (or srun, ...) has started. It is a module beside the program, loaded when
 *             a user asks for it, so that the program also runs on machines without MPI
 */
#ifndef MX_LINK_H
#define MX_LINK_H

#include <memext/backend.h>
#include <memext/memext.h>

#include <sys/uio.h>

enum { MX_RANKS_MOST = 4096 };

/* Every pair of ranks has one ordered stream of bytes for each channel and direction. */
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
    /* Says whether the link can be used in this process: 0, or < 0 with a sentence. */
    int (*probe)(mx_why *why);
    int (*open)(mx_why *why, void **state, int *rank, int *ranks);
    /* NULL, or both sides call it before a transfer, with its number of bytes. Bytes that arrive before the
     * receiver waits for them occupy memory that is not in any budget. So for more than a few bytes, the
     * sender returns only when the receiver has begun to wait. The receiver returns at once. Errors as below.
     */
    int (*agree)(void *state, int peer, enum mx_channel channel, size_t bytes, bool sends);
    /* send returns when the bytes may be changed, receive when they have arrived. -ECONNRESET: that rank has
     * ended; -ECANCELED: stop was called. */
    int (*send)(void *state, int peer, enum mx_channel channel, const void *data, size_t bytes);
    int (*receive)(void *state, int peer, enum mx_channel channel, void *data, size_t bytes);
    /* Ends all transfers of this rank, now and later. The other ranks' transfers with it then fail too. Any
     * thread. */
    void (*stop)(void *state);
    /* NULL, or ends this process, which has failed and has cleaned up. It waits until all other ranks have
     * called it too, at most for some seconds. The exit status is the worst of all ranks. stopped: a signal
     * asked for the end. */
    void (*leave)(void *state, int status, bool stopped);
    /* Closes the link. status 0: every rank closes with 0, and nothing is under way. Otherwise the other
     * ranks must end too, and `leave` is called if there is one. */
    void (*close)(void *state, int status);
};

extern const struct mx_link_ops *const mx_links[]; /* NULL-terminated */
const struct mx_link_ops *mx_link_find(const char *name);
/* Returns the link that this process was started with (by mpirun, or by mx_local_fork); NULL = the process
 * runs alone. */
const struct mx_link_ops *mx_link_of_process(void);

typedef struct mx_link mx_link;

/* Opens a link. Its ranks form a ring: the last rank is below the first (for a periodic z). */
int mx_link_open(const struct mx_link_ops *ops, mx_why *why, mx_link **out);
void mx_link_close(mx_link *link, int status); /* NULL allowed; status 0: all ended well */
/* Does mx_link_leave end this process? */
bool mx_link_leaves(const mx_link *link);
/* Call it when a rank ends with a status other than 0, after its files have their final state. With the link
 * mpi it waits for the other ranks and does not return. With the link local it does nothing. NULL allowed. */
void mx_link_leave(mx_link *link, int status, bool stopped);
void mx_link_stop(mx_link *link); /* NULL allowed; also waits until no message is under way */
const char *mx_link_name(const mx_link *link);
int mx_link_rank(const mx_link *link);
int mx_link_ranks(const mx_link *link);

/* ---- collectives: all ranks call them, in the same order in a channel. 0, or < 0 with a sentence: a rank
 * has ended. */

/* Gives every rank the `bytes` bytes of all ranks, in the order of ranks. all: [ranks * bytes]. */
int mx_link_gather(mx_link *link, enum mx_channel channel, const void *mine, size_t bytes, void *all,
                   mx_why *why);
/* Gives every rank the data of the rank `from`. */
int mx_link_share(mx_link *link, enum mx_channel channel, int from, void *data, size_t bytes, mx_why *why);
/* Returns when all ranks have called it. */
int mx_link_meet(mx_link *link, enum mx_channel channel, mx_why *why);
/* Gives rank 0 the texts of all ranks, of any length: text[ranks], each of which it frees. Other ranks get
 * nothing. */
int mx_link_collect(mx_link *link, const char *mine, char **text, mx_why *why);
/* Sends `bytes` bytes from the rank `from` (> 0) to rank 0. Both call it with the same number. */
int mx_link_hand(mx_link *link, int from, void *data, size_t bytes, mx_why *why);
/* Sends a file of the rank `from`, from its current position to its end, to rank 0, which appends it to its
 * own file. */
int mx_link_pour(mx_link *link, int from, int fd, mx_why *why);

/* Measures the link between neighbours in about 0.1 s, before any messages: bytes per second and latency,
 * both directions at once, as sweeps use it. Each rank measures one pair at a time, and the result is the
 * worst pair of all. If it fails, the link is stopped. */
int mx_link_measure(mx_link *link, double *bytes_per_s, double *latency_s, mx_why *why);

/* ---- messages to neighbours, at end 0 (below) and 1 (above): the functions of mx_neighbours_ops
 * (execute.h), whose context is a link
 */

/* Piece i of a message is the bytes from i * piece_bytes on of each of its n parts, part after part. Pieces
 * are sent in order, and both ranks cut messages in the same way. */
int mx_link_send(void *link, int end, const struct iovec *part, int n, size_t piece_bytes, int64_t ready,
                 mx_why *why);
int mx_link_more(void *link, int end, int64_t ready, mx_why *why);
int mx_link_receive(void *link, int end, const struct iovec *part, int n, size_t piece_bytes, mx_why *why);
int mx_link_sent(void *link, int end, bool wait, mx_why *why);
int mx_link_received(void *link, int end, int64_t pieces, bool wait, mx_why *why);
void mx_link_quit(void *link); /* mx_link_stop */
/* Returns the bytes of messages that were sent to neighbours, and received from them, so far. */
void mx_link_counters(mx_link *link, uint64_t *sent, uint64_t *received);

/* ---- decisions of rank 0 for all ranks during the run: one number after another, which the others may wait
 * for */

/* Rank 0 sends a number to all others. 0, or < 0 with a sentence. */
int mx_link_say(mx_link *link, int64_t word, mx_why *why);
/* Other ranks read the next number: 1 = *word is it, 0 = it has not come yet (not with `wait`). They must
 * read all numbers before they close the link with status 0. */
int mx_link_heard(mx_link *link, bool wait, int64_t *word, mx_why *why);

/* ---- local */

/* Forks this process into `ranks` ranks with the link local. In each rank it returns 0. In the calling
 * process it waits until all ranks have ended, and returns 1 with the worst of their exit statuses in
 * *status; a rank that was killed counts as 128 + the signal. Call it before the process has threads. */
int mx_local_fork(int ranks, mx_why *why, int *status);
/* Is this the first of the ranks of mx_local_fork that says this sentence? Others need not repeat it. true in
 * a process that was not forked so. */
bool mx_local_says_first(const char *sentence);
/* The same for threads of one process, for tests: makes ends[ranks]. A thread calls mx_local_use before it
 * opens the link. */
struct mx_local_end;
int mx_local_make(int ranks, mx_why *why, struct mx_local_end **ends);
void mx_local_use(struct mx_local_end *ends, int rank);

#endif
