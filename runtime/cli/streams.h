/* SPDX-License-Identifier: BSD-3-Clause */
/* streams.h - makes sure that output arrives: standard output, and requested text on standard error. If it
 * does not, the command says so and ends with MX_EXIT_IO. */
#ifndef MX_STREAMS_H
#define MX_STREAMS_H

/* Call it first in main. It opens closed standard streams, since the next opened file would take their
 * number. From now on, writing to a closed standard output or error fails; remarks on a closed standard error
 * are lost, as intended. If the reader of a pipe leaves, that is an error and not a signal, since a run must
 * be closed in order. */
void mx_streams_open(void);
/* Shows what was printed so far; an error counts at the end. */
void mx_streams_flush(void);
/* Call these around text that was asked for and goes to standard error: an error counts at the end. */
void mx_streams_begin_asked(void);
void mx_streams_end_asked(void);
/* Call it last in main: writes standard output, and returns the exit status of a command whose own is
 * `status`. */
int mx_streams_end(const char *program, int status);

#endif
