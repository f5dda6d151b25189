/* exchange.h - inside execute/ only, of a rank of several: the layers that neighbours exchange, once a sweep.
 *
 * Message k goes from either end of z to the neighbour there: the planes of the state with which sweep k
 * begins that the neighbour's sweep k needs beyond its end, levels * h of them, of each live array. What is
 * sent is copied from the rows that STOREs move, as they start, and sent when the last row has come; message
 * 0 is read from the Buffer. What is received stays until the last LOAD of it is done, and then the next
 * message may come. So a rank waits for nothing but planes that are not computed yet, and along z each lags
 * behind the one before it by the time that a message takes: once, not in every sweep.
 *
 * Two rooms in DRAM at an end, one to send from and one to receive in, of max_levels * h planes of each
 * array. No rank waits for ever. Who stores the planes of message k + 1 has read all of the neighbour's
 * message k, which was computed from all of its own message k - 1: so that one is used up over there, and
 * message k finds room.
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
    struct mx_exchange_end {
        int64_t planes; /* room; 0 = no neighbour */
        mx_block *block;
        char *out[2], *in[2];                 /* of each array */
        int64_t number, rows;                 /* message that rows are gathered for, and how many have come */
        bool sending;                         /* the one before it is under way */
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

/* A sweep was taken from the schedule: message `number` has so many planes. */
int mx_exchange_ask(struct mx_exchange *e, int64_t number, int64_t planes, mx_why *why);

/* A LOAD of message `number`: taken from the schedule; whether it is here (waited for), 1 or 0; where row y
 * of plane z of an array is; done. */
void mx_exchange_load(struct mx_exchange *e, const struct mx_step *s, int64_t number);
int mx_exchange_here(struct mx_exchange *e, const struct mx_step *s, int64_t number, bool wait, mx_why *why);
const char *mx_exchange_row(const struct mx_exchange *e, const struct mx_step *s, int64_t number, int64_t y,
                            int64_t z);
int mx_exchange_loaded(struct mx_exchange *e, const struct mx_step *s, int64_t number, mx_why *why);

/* A STORE of sweep `sweep` begins, its rows are in `view`. */
int mx_exchange_store(struct mx_exchange *e, const struct mx_step *s, int64_t sweep,
                      const struct mx_view *view, mx_why *why);

#endif
