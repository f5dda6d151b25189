/* SPDX-License-Identifier: BSD-3-Clause */
/* bell.h - one thread that waits for the first of many things to end.
 *
 * A thread that posts work to others, and has several kinds of it under way (transfers, calls of an engine,
 * messages), cannot wait for each of them at a time, and to look again and again costs a timer each time:
 * some 25 us of CPU on a virtual machine. So a thread can have a bell. Whoever ends something that the thread
 * has posted since it opened it rings it, and the thread sleeps until then:
 *
 *     waits                                     ends something
 *     heard = mx_bell_heard(bell)               publishes the end (release)
 *     looks at all that it waits for            mx_bell_ring(bell)
 *     nothing: mx_bell_wait(bell, heard, ns)
 *
 * What ends between the look and the wait has rung, and the wait returns at once. Rings may come for things
 * that nobody waits for: it is a reason to look again and nothing else.
 */
#ifndef MX_BELL_H
#define MX_BELL_H

#include <stdatomic.h>
#include <stdint.h>

struct mx_bell {
    _Atomic uint32_t rung;    /* so many times, modulo 2^32 */
    _Atomic uint32_t waiting; /* whether its thread sleeps, or is about to */
};

/* Gives the calling thread a bell until mx_bell_close has been called as often as mx_bell_open. The thread
 * itself must wait for all that it posts in between: every ring must have come before the thread ends. */
struct mx_bell *mx_bell_open(void);
void mx_bell_close(void);
/* Of the calling thread; NULL where it has none: what it posts ends without a ring. */
struct mx_bell *mx_bell_mine(void);
/* Any thread. NULL allowed. A system call only where the other one sleeps. */
void mx_bell_ring(struct mx_bell *bell);

static inline uint32_t mx_bell_heard(const struct mx_bell *bell) {
    return atomic_load_explicit(&bell->rung, memory_order_acquire);
}
/* Until it is rung once more than `heard`, for at most so long, or until a signal comes. Of its thread alone.
 */
void mx_bell_wait(struct mx_bell *bell, uint32_t heard, int64_t nanoseconds);

#endif
