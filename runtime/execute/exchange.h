/* SPDX-License-Identifier: BSD-3-Clause */
/* exchange.h - inside execute/ only, for a rank of several: exchanges layers with the neighbours, once a
 * sweep.
 *
 * Message k goes from each end of z to the neighbour there. It holds planes of the state with which sweep k
 * begins: those that the neighbour's sweep k needs beyond its end, levels * h planes of each live array. Rows
 * are copied when the STOREs that move them start. Message 0 is read from the Buffer. (If the first sweep is
 * fed, feed.h, every rank is also fed these planes, and there is no message 0.)
 *
 * A message goes in pieces of one plane, or a few if planes are small. A piece is sent when its last row has
 * come. A LOAD waits for the pieces that hold its planes. Both STOREs and LOADs ascend in z. So a rank begins
 * its sweep with the first planes of the rank below while that one still stores the last planes of its own.
 * What is received stays until the last LOAD of it is done. So a rank waits only for planes that are not yet
 * computed or are on their way. From the rank below, that is the part of the last message that has not
 * arrived when that rank's sweep ends.
 *
 * DRAM has rooms of max_levels * h planes of each array: at each end one room to send from, at the lower end
 * one room to receive in, at the upper end two. A message from below is sent at the end of a sweep and used
 * at the beginning of the next one. A message from above is sent at the beginning of a sweep there and used
 * at the end of the next one here. With one room it would have to wait, and be sent at the same time as the
 * messages from below.
 *
 * No rank waits for ever. Downwards: let rank R store message k + 1 for rank B below it. R has then read all
 * of B's message k, and B computed that from all of R's message k - 1. So B has used up message k - 1 and has
 * room for message k. Upwards: before R gathers rows of message k + 1 for rank A above it, message k must
 * have gone. For that A must have begun sweep k - 1. A in turn waits only for what the rank above A does in
 * sweep k - 2, and so on.
 */
#ifndef MX_EXCHANGE_H
#define MX_EXCHANGE_H

#include "execute/execute.h"

enum { MX_MESSAGES_KNOWN = 1024 }; /* more than a window of steps has COMMITs */

struct mx_exchange {
    const struct mx_execution *x;
    const struct mx_shape *shape;
    int arrays; /* live arrays, which are the parts of a message */
    int64_t plane_bytes;
    int64_t piece_planes; /* planes of a piece; the last piece may have fewer */
    struct mx_exchange_end {
        int64_t planes; /* planes that a room holds; 0 = there is no neighbour */
        mx_block *block;
        char *out[2], *in[2]; /* memory of each array: to send from, and `rooms` rooms to receive in */
        int64_t rooms;
        int64_t number; /* the message that rows are gathered for */
        int64_t *rows;  /* [planes]: rows of each plane that have come, of all arrays together */
        int64_t whole;  /* planes, counted from the first, whose rows have all come */
        bool gathering; /* some rows have come, and the message is posted */
        bool sending;   /* this message or the one before it is being sent */
        bool awaited;   /* a STORE waits until that message is sent */
        int64_t asked, posted, arrived,
            used;                         /* number of messages that are known, posted, received, used up */
        int64_t depth[MX_MESSAGES_KNOWN]; /* planes of message i, at i % MX_MESSAGES_KNOWN */
        int64_t loads[MX_MESSAGES_KNOWN]; /* LOADs of the message that are not done */
        bool all[MX_MESSAGES_KNOWN];      /* the last LOAD of the message is known */
    } end[2];
};

/* Allocates the rooms, sends message 0, and posts the first receives. Returns 0 or -errno with a sentence,
 * like all functions below that return int. */
int mx_exchange_open(struct mx_exchange *e, const struct mx_execution *x, const struct mx_schedule *schedule,
                     mx_why *why);
void mx_exchange_close(struct mx_exchange *e);
/* Call it when a run ends well after `sweeps` sweeps: receives messages that were sent to this rank and are
 * not needed. */
int mx_exchange_end(struct mx_exchange *e, int64_t sweeps, mx_why *why);

/* Handles messages that have come, and posts receives that have room now. Call it regularly. */
int mx_exchange_look(struct mx_exchange *e, mx_why *why);

/* Says that message `number` will have `planes` planes, once the schedule has given a step of the sweep
 * before. Call it in the order of messages; it may be called several times for one message. */
int mx_exchange_ask(struct mx_exchange *e, int64_t number, int64_t planes, mx_why *why);

/* For a LOAD of message `number`. load: it was taken from the schedule. here: have its planes arrived, 1 or 0
 * (with `wait` it waits)? row: where row y of plane z is. loaded: the LOAD is done. */
void mx_exchange_load(struct mx_exchange *e, const struct mx_step *s, int64_t number);
int mx_exchange_here(struct mx_exchange *e, const struct mx_step *s, int64_t number, bool wait, mx_why *why);
const char *mx_exchange_row(const struct mx_exchange *e, const struct mx_step *s, int64_t number, int64_t y,
                            int64_t z);
int mx_exchange_loaded(struct mx_exchange *e, const struct mx_step *s, int64_t number, mx_why *why);

/* Is there room for the rows of a STORE? false: it is the first of a message, and the message before is still
 * being sent. Then wait for mx_exchange_freed, or try again after the next look. */
bool mx_exchange_has_room(struct mx_exchange *e, const struct mx_step *s);
/* Has the message that such a STORE waits for been sent, or failed, since the last call? */
bool mx_exchange_freed(struct mx_exchange *e);
/* A STORE of sweep `sweep` begins: copies its rows from `view`, and waits if there is no room. */
int mx_exchange_store(struct mx_exchange *e, const struct mx_step *s, int64_t sweep,
                      const struct mx_view *view, mx_why *why);

#endif
