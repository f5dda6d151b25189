/* SPDX-License-Identifier: BSD-3-Clause */
/* writer.h - writes a file during a run, on separate threads, in long pieces.
 *
 * Bytes are copied into pieces of DRAM. A piece is written when it is full, or when the next bytes belong
 * elsewhere in the file. A file that is written from its first byte to its last can bypass the page cache
 * (O_DIRECT); others go through it, and writing back begins at once, so that little is left for fsync.
 */
#ifndef MX_FILES_WRITER_H
#define MX_FILES_WRITER_H

#include <memext/backend.h>

enum { MX_WRITER_PIECES = 4 };

struct mx_writer;
/* Opens a writer; fd belongs to the caller. direct: all bytes come in order, from byte 0 on; if O_DIRECT is
 * refused, the page cache is used. piece_bytes: a multiple of 64 KiB; the writer takes MX_WRITER_PIECES of
 * them from the budget. */
int mx_writer_open(int fd, bool direct, uint64_t piece_bytes, mx_budget *budget, mx_why *why,
                   struct mx_writer **out);
/* Writes bytes at offset `at` of the file. One thread at a time. mx_writer_close returns errors. */
void mx_writer_put(struct mx_writer *writer, uint64_t at, const void *data, uint64_t bytes);
/* Returns the bytes that were put. */
uint64_t mx_writer_bytes(const struct mx_writer *writer);
/* Waits for all writes, and frees the writer. whole: writes the rest first, and cuts the file after its last
 * byte. 0 or the first error. NULL: 0. */
int mx_writer_close(struct mx_writer *writer, bool whole);

#endif
