/* SPDX-License-Identifier: BSD-3-Clause */
/* signals.h - interrupts a run by signals, and ends it if a page of memory cannot be read or written
 * (SIGBUS). */
#ifndef MX_SIGNALS_H
#define MX_SIGNALS_H

#include <memext/memext.h>

#include <stdatomic.h>
#include <stdbool.h>

/* Set by the first SIGINT or SIGTERM. Another one, a second or more later, ends the process at once. */
extern atomic_int mx_stop;
/* Call it first in main: from now on a signal ends a command in order. A command that is still preparing has
 * nothing to lose, and may wait for something that never comes. So it ends after a few seconds in any case.
 */
void mx_signals_catch(void);
/* Sets how many seconds preparation may last after a signal, for work that ends by itself (--calibrate). */
void mx_signals_patience(unsigned seconds);
/* Preparation has ended: from now on a signal closes everything in order, however long that takes. */
void mx_signals_prepared(void);
/* For a run that is prepared on another thread: are these seconds over, so that the caller must end it now?
 */
bool mx_signals_late(void);
/* Sets the run that a signal stops too, also if the signal came before; NULL = no run any more. */
void mx_signals_stop(mx_run *run);

/* From now on a SIGBUS calls `end` with a sentence, on a thread that waits for it, while the thread that got
 * the signal stops. `end` does not return. Linux raises SIGBUS if storage cannot read or write a page of a
 * mapping, or if memory is broken. The sentence is in static storage. */
void mx_signals_watch(void (*end)(void *context, const char *sentence), void *context);
/* Ends the watch: a SIGBUS ends the process, as by default. */
void mx_signals_unwatch(void);

#endif
