/* SPDX-License-Identifier: BSD-3-Clause */
/* writer.h - a file that is written while a run goes on, by threads of its own, in long pieces.
 *
 * Bytes are copied into pieces of DRAM and written when these are full, or when what comes next lies
 * elsewhere in the file. A file that is written from its first byte to its last can bypass the page cache
 * (O_DIRECT); others go through it, and writing back begins at once, so that little is left for fsync.
 */
#ifndef MX_FILES_WRITER_H
#define MX_FILES_WRITER_H

#include <memext/backend.h>

enum { MX_WRITER_PIECES = 4 };

struct mx_writer;
/* fd stays the caller's. direct: all comes in order, from byte 0 on; where O_DIRECT is refused it is done
 * without. piece_bytes: a multiple of 64 KiB; the writer takes MX_WRITER_PIECES of them from the budget. */
int mx_writer_open(int fd, bool direct, uint64_t piece_bytes, mx_budget *budget, mx_why *why,
                   struct mx_writer **out);
/* Bytes at this place of the file; one thread at a time. Errors are told by mx_writer_close. */
void mx_writer_put(struct mx_writer *writer, uint64_t at, const void *data, uint64_t bytes);
/* Bytes that were put. */
uint64_t mx_writer_bytes(const struct mx_writer *writer);
/* whole: writes what is left; the file ends at its last byte. Waits, frees. 0 or the first error. NULL: 0. */
int mx_writer_close(struct mx_writer *writer, bool whole);

#endif
