/* SPDX-License-Identifier: BSD-3-Clause */
/* bell.h - one thread that waits for the first of many things to end.
 *
 * A thread may have several kinds of posted work under way (transfers, calls of an engine, messages). It
 * cannot wait for all of them at once, and repeated looks cost a timer each: about 25 us of CPU on a virtual
 * machine. So a thread can have a bell. Whoever ends work that the thread has posted since it opened the bell
 * rings it, and the thread sleeps until then:
 *
 *     waits                                     ends something
 *     heard = mx_bell_heard(bell)               publishes the end (release)
 *     looks at all that it waits for            mx_bell_ring(bell)
 *     nothing: mx_bell_wait(bell, heard, ns)
 *
 * If something ends between the look and the wait, it has rung, and the wait returns at once. The bell may
 * also ring for work that nobody waits for: a ring only means that the thread should look again.
 */
#ifndef MX_BELL_H
#define MX_BELL_H

#include <stdatomic.h>
#include <stdint.h>

struct mx_bell {
    _Atomic uint32_t rung;    /* how often it was rung, modulo 2^32 */
    _Atomic uint32_t waiting; /* its thread sleeps, or is about to */
};

/* Gives the calling thread a bell until mx_bell_close has been called as often as mx_bell_open. The thread
 * itself must wait for all that it posts in between: every ring must have come before the thread ends. */
struct mx_bell *mx_bell_open(void);
void mx_bell_close(void);
/* Returns the bell of the calling thread; NULL = it has none, so work that it posts ends without a ring. */
struct mx_bell *mx_bell_mine(void);
/* Rings a bell. Any thread. NULL allowed. It makes a system call only if the other thread sleeps. */
void mx_bell_ring(struct mx_bell *bell);

static inline uint32_t mx_bell_heard(const struct mx_bell *bell) {
    return atomic_load_explicit(&bell->rung, memory_order_acquire);
}
/* Waits until the bell was rung more often than `heard`, at most `nanoseconds`, or until a signal comes. Only
 * the bell's own thread may call it.
 */
void mx_bell_wait(struct mx_bell *bell, uint32_t heard, int64_t nanoseconds);

#endif
