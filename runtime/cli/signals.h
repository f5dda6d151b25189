/* SPDX-License-Identifier: BSD-3-Clause */
/* signals.h - how a run is interrupted, and what becomes of it when a page of memory cannot be had. */
#ifndef MX_SIGNALS_H
#define MX_SIGNALS_H

#include <memext/memext.h>

#include <stdatomic.h>
#include <stdbool.h>

/* Set by the first SIGINT or SIGTERM; another one, a second or more later, ends the process at once. */
extern atomic_int mx_stop;
/* First thing in main: from here on an interrupt ends a command in order. One that still prepares, and has
 * not ended after a few seconds, has nothing to lose and may wait for something that never comes: it ends
 * then. */
void mx_signals_catch(void);
/* Preparing may take so many seconds after a signal, where what is done then ends by itself (--calibrate). */
void mx_signals_patience(unsigned seconds);
/* What was prepared is closed in order from here on, however long that takes. */
void mx_signals_prepared(void);
/* Of a run that is prepared on another thread: the seconds are over, and the caller is to end it now. */
bool mx_signals_late(void);
/* The run that it stops as well, also if it came before; NULL = none any more. */
void mx_signals_stop(mx_run *run);

/* From now on a SIGBUS calls `end` on a thread that waits for it, with a sentence, while the thread that met
 * it stands still; `end` does not return. A mapping raises it when the storage below cannot give or take a
 * page, any memory when it is broken. The sentence is in static storage. */
void mx_signals_watch(void (*end)(void *context, const char *sentence), void *context);
/* The watch is over: a SIGBUS ends the process as it does by itself. */
void mx_signals_unwatch(void);

#endif
