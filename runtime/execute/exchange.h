/* SPDX-License-Identifier: BSD-3-Clause */
/* exchange.h - inside execute/ only, of a rank of several: the layers that neighbours exchange, once a sweep.
 *
 * Message k goes from either end of z to the neighbour there: the planes of the state with which sweep k
 * begins that the neighbour's sweep k needs beyond its end, levels * h of them, of each live array. What is
 * sent is copied from the rows that STOREs move, as they start; message 0 is read from the Buffer. (Where the
 * first sweep is fed, feed.h, every rank is fed these planes as well, and there is no message 0.) A message
 * goes in pieces of a plane, or a few where they are small, each when its last row has come, and a LOAD waits
 * for the pieces that its planes are in: both STOREs and LOADs move up, so that a rank begins its sweep with
 * the first planes of the one below while that one stores the last ones of its own. What is received stays
 * until the last LOAD of it is done. So a rank waits for nothing but planes that are not computed yet, or
 * that are on their way: of the last message of the rank below what is left of it when that one's sweep ends.
 *
 * Rooms in DRAM of max_levels * h planes of each array: one to send from at an end, one to receive in at the
 * lower one and two at the upper one. What comes from below is sent at the end of a sweep and used at the
 * beginning of the next one. What comes from above is ready at the beginning of a sweep up there and used at
 * the end of the next one here: with one room it would have to wait, and go when the messages from below do.
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
    int arrays; /* live ones: parts of a message */
    int64_t plane_bytes;
    int64_t piece_planes; /* of a piece, but that the last may have fewer */
    struct mx_exchange_end {
        int64_t planes; /* room; 0 = no neighbour */
        mx_block *block;
        char *out[2], *in[2]; /* of each array; `rooms` rooms to receive in */
        int64_t rooms;
        int64_t number; /* message that rows are gathered for: */
        int64_t *rows;  /* [planes]: how many of each plane have come, of all arrays together */
        int64_t whole;  /* planes, from the first on, of which all have */
        bool gathering; /* some have come; it is posted */
        bool sending;   /* the one before it is under way, or this one */
        bool awaited;   /* a STORE waits for the end of that */
        int64_t asked, posted, arrived, used; /* messages that are known, posted, here, used up */
        int64_t depth[MX_MESSAGES_KNOWN];     /* planes of message i, mod that number */
        int64_t loads[MX_MESSAGES_KNOWN];     /* LOADs of it that are not done */
        bool all[MX_MESSAGES_KNOWN];          /* its last LOAD is known */
    } end[2];
};

/* Room, message 0 on its way, and the first receives. 0 or -errno with a sentence, as all below. */
int mx_exchange_open(struct mx_exchange *e, const struct mx_execution *x, const struct mx_schedule *schedule,
                     mx_why *why);
void mx_exchange_close(struct mx_exchange *e);
/* Of a run that ends well, after `sweeps` sweeps: what has been sent here and is not needed is received. */
int mx_exchange_end(struct mx_exchange *e, int64_t sweeps, mx_why *why);

/* Takes up messages that have come, and posts those that find room then. To be called now and then. */
int mx_exchange_look(struct mx_exchange *e, mx_why *why);

/* Message `number` will have so many planes: a step of the sweep before was taken from the schedule. Messages
 * are asked for in their order, each as often as one likes. */
int mx_exchange_ask(struct mx_exchange *e, int64_t number, int64_t planes, mx_why *why);

/* A LOAD of message `number`: taken from the schedule; whether its planes are here (waited for), 1 or 0;
 * where row y of plane z of an array is; done. */
void mx_exchange_load(struct mx_exchange *e, const struct mx_step *s, int64_t number);
int mx_exchange_here(struct mx_exchange *e, const struct mx_step *s, int64_t number, bool wait, mx_why *why);
const char *mx_exchange_row(const struct mx_exchange *e, const struct mx_step *s, int64_t number, int64_t y,
                            int64_t z);
int mx_exchange_loaded(struct mx_exchange *e, const struct mx_step *s, int64_t number, mx_why *why);

/* Whether the rows of a STORE find room: false where it is the first of a message, and the one before is
 * still being sent. Then the next look, or `freed`, is to be waited for. */
bool mx_exchange_has_room(struct mx_exchange *e, const struct mx_step *s);
/* What such a STORE waits for has been sent, or has failed, since it was asked last. */
bool mx_exchange_freed(struct mx_exchange *e);
/* A STORE of sweep `sweep` begins, its rows are in `view`; waits where there is no room. */
int mx_exchange_store(struct mx_exchange *e, const struct mx_step *s, int64_t sweep,
                      const struct mx_view *view, mx_why *why);

#endif
