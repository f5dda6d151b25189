/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.h - what memext knows of the machine: hwloc topology, DRAM limits, NUMA placement, storage facts.
 */
#ifndef MX_MACHINE_H
#define MX_MACHINE_H

#include <locale.h>
#include <memext/memext.h>
#include <pthread.h>

struct mx_machine {
    int32_t cores, sockets,
        numa_nodes;              /* cores: those that this process may use, or those of a description */
    uint64_t l1_bytes, l2_bytes; /* per core */
    uint64_t l3_bytes;           /* per socket; 0 = none */
    uint64_t memory_bytes;       /* physical */
    uint64_t cgroup_limit_bytes; /* of this process's memory cgroup and its parents, v1 or v2; 0 = none */
    char cgroup_kind[8];         /* "v1" "v2" "none" */
    char cpu[96];                /* model name, "" if unknown */
};

/* An L2 of so many bytes and more (Sapphire Rapids) has larger tiles and other row functions than one of 1
 * MiB: docs/notes/kernels.md, "An L2 of 2 MiB". */
enum { MX_LARGE_L2_BYTES = 2 << 20 };

/* Describes this machine, by hwloc, the affinity mask and the cgroup. */
int mx_machine_detect(mx_why *why, struct mx_machine *out);
/* The same, but only memory_bytes and the fields of the cgroup: reads a few small files, and no topology. */
int mx_machine_detect_memory(mx_why *why, struct mx_machine *out);
/* Describes a machine by an hwloc XML file, or by a synthetic description ("pack:2 l3:1 core:8 pu:1") if path
 * starts with "synthetic:". The memory comes from the XML. */
int mx_machine_from_topology(const char *path, mx_why *why, struct mx_machine *out);

/* Returns the DRAM that this process may use: the smaller of physical memory and the cgroup's limit. */
uint64_t mx_machine_dram_bytes(const struct mx_machine *machine);
/* Return the DRAM reserved for the system, by the rule "auto" (see machine.c) or "paper" (1 GiB + 128 MiB per
 * core). */
uint64_t mx_machine_reserve_auto(const struct mx_machine *machine, uint64_t dram_bytes);
uint64_t mx_machine_reserve_paper(const struct mx_machine *machine);

/* One figure of a file with lines "NAME VALUE", as Linux writes them. */
struct mx_named {
    const char *name;
    size_t field; /* offset of an uint64_t in *out */
    uint64_t unit;
};
/* Reads an open file from its start and adds value x unit to the field of every name that occurs. Returns how
 * many were found; 0 where fd is negative. */
int mx_machine_named(int fd, const struct mx_named *wanted, size_t n, void *out);

/* Memory of this process's cgroup now, or of the whole machine if there is no cgroup (/proc/meminfo). */
struct mx_memory_stat {
    uint64_t anon_bytes, cache_bytes, dirty_bytes, writeback_bytes;
};
int mx_machine_memory_open(void); /* a file descriptor to close, or negative */
int mx_machine_memory_stat(int fd, struct mx_memory_stat *out);

/* NUMA: bind [base, base+bytes) in equal shares, each a multiple of unit_bytes, to the nodes in turn. No
 * effect, no error on one node. Returns the number of nodes used or -errno. */
int mx_machine_spread(void *base, uint64_t bytes, uint64_t unit_bytes);
/* Pins the calling thread to the i-th allowed core (mod cores). Best effort. */
void mx_machine_pin(int32_t i);
/* This process is one of `places` (>= 1) that share its allowed cores and work at the same time, as ranks do:
 * number `place` of them. Call it before threads are placed; without it the process counts as the only one.
 */
void mx_machine_share(int32_t place, int32_t places);
/* Binds the calling thread as the i-th of n computing threads of this process. If the threads of all places
 * take every core, the thread is bound to a core of its own. If cores are left, it is bound to the NUMA node
 * of that core. Linux then chooses a free core, since another program may use the first one. */
void mx_machine_place(int32_t i, int32_t n);
/* Lets the calling thread run on all allowed cores again: threads inherit the pin of their maker. */
void mx_machine_unpin(void);

/* Starts a thread that gets no signals of the program: it blocks all signals except those that its own
 * instructions raise (SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS). The library starts all its threads
 * in this way. -errno. */
int mx_thread_start(pthread_t *out, void *(*run)(void *), void *argument);
/* Returns why a thread could not be started, with the limit that forbids it: text after the colon of a
 * sentence. */
struct mx_no_thread {
    char text[160];
};
struct mx_no_thread mx_no_thread(int err);
/* Returns how many of `wanted` threads a loop of OpenMP may use here, at least 1. OpenMP's library ends the
 * process if it cannot start a thread. */
int32_t mx_loop_threads(int32_t wanted);

/* Set and restore the locale of numbers. A program may use a locale whose decimal point is a comma, as
 * graphical programs do. The library reads and writes numbers with a point: always in its own threads, and in
 * the caller's thread between these two calls. */
locale_t mx_numbers_begin(void);
void mx_numbers_end(locale_t before);

/* Writes the topology of this machine as hwloc XML, for mx_machine_from_topology elsewhere. */
int mx_machine_export(const char *path, mx_why *why);

/* Storage facts of an opened file or block device. */
struct mx_storage {
    bool block_device;
    uint64_t bytes; /* size of the device, or free space (bytes for this user) of the file's file system */
    uint32_t logical_block_bytes, physical_block_bytes;
    uint32_t direct_offset_align_bytes,
        direct_memory_align_bytes; /* STATX_DIOALIGN; 0 = O_DIRECT refused or unknown */
    char filesystem[24];           /* "ext4", "tmpfs", ...; "" for a block device */
    bool is_memory;                /* tmpfs, ramfs: no storage */
};
int mx_storage_facts(int fd, mx_why *why, struct mx_storage *out);
/* Reads the one figure that changes: the free space of a file's file system. -errno leaves *bytes unchanged.
 */
int mx_storage_free(int fd, uint64_t *bytes);

#endif
