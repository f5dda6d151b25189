/* SPDX-License-Identifier: BSD-3-Clause */
/* usage.h - Linux's counters of this process and of swap, to be subtracted from one another. */
#ifndef MX_USAGE_H
#define MX_USAGE_H

#include <stdint.h>

struct mx_usage {
    uint64_t storage_read_bytes, storage_write_bytes; /* /proc/self/io: I/O that this process caused; writes
                                                         count when pages become dirty */
    /* /proc/vmstat, of the whole machine: swap; pages that Linux reclaimed; pages that were read again after
     * they had been reclaimed */
    uint64_t swap_in_bytes, swap_out_bytes, reclaimed_bytes, refault_bytes;
    uint64_t major_faults, minor_faults;
    uint64_t user_us, system_us; /* CPU time of all threads */
};

/* File descriptors that stay open, so that reading the counters costs little; negative = the file cannot be
 * read. */
struct mx_usage_files {
    int io, vmstat;
};
struct mx_usage_files mx_usage_open(void);
void mx_usage_close(struct mx_usage_files *files);

struct mx_usage mx_usage_now(const struct mx_usage_files *files); /* fields that cannot be read are 0 */
struct mx_usage mx_usage_since(const struct mx_usage_files *files, const struct mx_usage *start);
uint64_t mx_usage_peak_rss_bytes(void); /* VmHWM */

#endif
