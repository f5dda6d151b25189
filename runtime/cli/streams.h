/* SPDX-License-Identifier: BSD-3-Clause */
/* streams.h - standard output, and what is asked for on standard error: what a command prints arrives, or the
 * command says so and ends with MX_EXIT_IO. */
#ifndef MX_STREAMS_H
#define MX_STREAMS_H

/* First thing in main. A standard stream that is closed would be the next file that is opened. Writing to a
 * closed standard output or error fails from here on; remarks on a closed standard error are lost, as whoever
 * closed it wants. A reader that leaves (a pipe) is an error like others and no signal, for a run has to be
 * closed in order. */
void mx_streams_open(void);
/* Shows what was printed so far; an error counts at the end. */
void mx_streams_flush(void);
/* Around text that was asked for and goes to standard error: what of it is lost counts at the end. */
void mx_streams_begin_asked(void);
void mx_streams_end_asked(void);
/* Last thing in main: the status of a command whose own is `status`, once its standard output is written. */
int mx_streams_end(const char *program, int status);

#endif
