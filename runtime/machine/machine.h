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
        numa_nodes;              /* cores: allowed to this process (online) or of the description (offline) */
    uint64_t l1_bytes, l2_bytes; /* per core */
    uint64_t l3_bytes;           /* per socket; 0 = none */
    uint64_t memory_bytes;       /* physical */
    uint64_t cgroup_limit_bytes; /* of this process's memory cgroup and its parents, v1 or v2; 0 = none */
    char cgroup_kind[8];         /* "v1" "v2" "none" */
    char cpu[96];                /* model name, "" if unknown */
};

/* This machine, by hwloc, the affinity mask and the cgroup. */
int mx_machine_detect(mx_why *why, struct mx_machine *out);
/* The same, memory_bytes and the cgroup's fields only: a few small files are read, no topology. */
int mx_machine_detect_memory(mx_why *why, struct mx_machine *out);
/* An hwloc XML file, or a synthetic description ("pack:2 l3:1 core:8 pu:1") when path starts with
 * "synthetic:". memory from the XML. */
int mx_machine_from_topology(const char *path, mx_why *why, struct mx_machine *out);

/* min(physical, cgroup). */
uint64_t mx_machine_dram_bytes(const struct mx_machine *machine);
/* Reserve left to the system, by rule: "auto" (stated in machine.c) or "paper" (1 GiB + 128 MiB per core). */
uint64_t mx_machine_reserve_auto(const struct mx_machine *machine, uint64_t dram_bytes);
uint64_t mx_machine_reserve_paper(const struct mx_machine *machine);

/* One figure of a file with lines "NAME VALUE", as the kernel writes them. */
struct mx_named {
    const char *name;
    size_t field; /* offset of an uint64_t in *out */
    uint64_t unit;
};
/* Reads an open file from its start and adds value x unit to the field of every name that occurs. Returns how
 * many were found; 0 where fd is negative. */
int mx_machine_named(int fd, const struct mx_named *wanted, size_t n, void *out);

/* Memory of this process's cgroup now, or of the whole machine where it has none (/proc/meminfo). */
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
 * number `place` of them. Before threads are placed; not told, it is by itself. */
void mx_machine_share(int32_t place, int32_t places);
/* Binds the calling thread as the i-th of n computing threads of this process. If the threads of all places
 * take every core, the thread is bound to a core of its own. If cores are left, it is bound to the NUMA node
 * of that core. The kernel then chooses a free core, since another program may use the first one. */
void mx_machine_place(int32_t i, int32_t n);
/* Lets the calling thread run on all allowed cores again: threads inherit the pin of their maker. */
void mx_machine_unpin(void);

/* A thread that no signal of the program is delivered to: all are blocked in it but those that its own
 * instructions raise (SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS). Every thread of the library is
 * started by this. -errno. */
int mx_thread_start(pthread_t *out, void *(*run)(void *), void *argument);
/* Why a thread could not be started, with the limit that forbids it: what follows a colon in a sentence. */
struct mx_no_thread {
    char text[160];
};
struct mx_no_thread mx_no_thread(int err);
/* How many of `wanted` threads a loop of OpenMP may ask for here: its library ends the process where it
 * cannot start one. 1 at least. */
int32_t mx_loop_threads(int32_t wanted);

/* A program may have set a locale whose decimal point is a comma, as graphical ones do. Numbers that the
 * library reads and writes have a point: in its threads always, in the caller's between these two. */
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
/* The figure of it that changes: free space of a file's file system. -errno, and *bytes as it was. */
int mx_storage_free(int fd, uint64_t *bytes);

#endif
