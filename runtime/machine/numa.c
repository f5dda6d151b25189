/* SPDX-License-Identifier: BSD-3-Clause */
/* numa.c - places memory and threads. */
#include "machine/machine.h"

#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Nodes that this process may take memory from; returns how many. */
static int list_nodes(int *nodes, int capacity) {
    if (numa_available() < 0) return 1;
    struct bitmask *allowed = numa_get_mems_allowed();
    int n = 0;
    for (int i = 0; i <= numa_max_node() && n < capacity; i++)
        if (numa_bitmask_isbitset(allowed, (unsigned)i)) nodes[n++] = i;
    numa_bitmask_free(allowed);
    return n;
}

/* Preferred, not bound: a full node then costs speed, where a bound range would be killed for memory. */
static int prefer_node(char *from, char *to, int node) {
    struct bitmask *mask = numa_allocate_nodemask();
    if (mask == NULL) return -ENOMEM;
    numa_bitmask_setbit(mask, (unsigned)node);
    long err = mbind(from, (unsigned long)(to - from), MPOL_PREFERRED, mask->maskp, mask->size + 1, 0);
    numa_bitmask_free(mask);
    return err == 0 ? 0 : -errno;
}

int mx_machine_spread(void *base, uint64_t bytes, uint64_t unit_bytes) {
    enum { MOST_NODES = 256 };
    int nodes[MOST_NODES];
    int n = list_nodes(nodes, MOST_NODES);
    if (n <= 1 || unit_bytes == 0 || bytes == 0) return 1;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), units = (bytes + unit_bytes - 1) / unit_bytes;
    char *from = base, *end = (char *)base + (bytes + page - 1) / page * page;
    int used = 0;
    for (int i = 0; i < n && from < end; i++) {
        /* A page on a border between two shares goes to the later one. */
        uint64_t upto = units * (uint64_t)(i + 1) / (uint64_t)n * unit_bytes / page * page;
        char *to = i + 1 == n ? end : (char *)base + upto;
        if (to > end) to = end;
        if (to <= from) continue;
        int err = prefer_node(from, to, nodes[i]);
        if (err != 0) return err;
        from = to;
        used++;
    }
    return used;
}

/* The CPUs that the process may use, one thread of every core before the second threads. Filled once, before
 * the first pin narrows the mask of a thread; constant from then on. */
static struct { int n, cores, cpu[CPU_SETSIZE], node[CPU_SETSIZE]; } pin_order;
static struct { int32_t place, places; } shared = {0, 1};

/* True if a lower-numbered allowed CPU is a thread of the same core. */
static int is_second_thread(int cpu, const cpu_set_t *allowed) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    int second = 0, from, to;
    char separator = ',';
    while (separator == ',' && fscanf(file, "%d", &from) == 1) {
        to = from;
        separator = (char)fgetc(file);
        if (separator == '-' && fscanf(file, "%d", &to) == 1) separator = (char)fgetc(file);
        for (int i = from; i <= to && i < cpu; i++) second |= CPU_ISSET(i, allowed) != 0;
    }
    fclose(file);
    return second;
}

/* libnuma remembers what it has read, without a lock: not for several threads at once. */
static int node_of(int cpu) { return numa_available() < 0 ? 0 : numa_node_of_cpu(cpu); }

static void fill_pin_order(void) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    for (int want = 0; want <= 1; want++) {
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &allowed) && is_second_thread(cpu, &allowed) == want)
                pin_order.cpu[pin_order.n++] = cpu;
        if (want == 0) pin_order.cores = pin_order.n;
    }
    for (int i = 0; i < pin_order.n; i++) pin_order.node[i] = node_of(pin_order.cpu[i]);
}

static void know_pin_order(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_pin_order);
}

void mx_machine_unpin(void) {
    know_pin_order();
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int i = 0; i < pin_order.n; i++) CPU_SET(pin_order.cpu[i], &all);
    if (pin_order.n > 0) sched_setaffinity(0, sizeof all, &all);
}

void mx_machine_pin(int32_t i) {
    know_pin_order();
    if (pin_order.n == 0 || i < 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(pin_order.cpu[i % pin_order.n], &one);
    sched_setaffinity(0, sizeof one, &one);
}

void mx_machine_share(int32_t place, int32_t places) {
    shared.place = place;
    shared.places = places;
}

void mx_machine_place(int32_t i, int32_t n) {
    know_pin_order();
    if (pin_order.n == 0 || i < 0 || n < 1) return;
    const int32_t at = (int32_t)(((int64_t)shared.place * n + i) % pin_order.n);
    if ((int64_t)shared.places * n >= pin_order.cores) {
        mx_machine_pin(at);
        return;
    }
    cpu_set_t of_node;
    CPU_ZERO(&of_node);
    for (int k = 0; k < pin_order.n; k++)
        if (pin_order.node[k] == pin_order.node[at]) CPU_SET(pin_order.cpu[k], &of_node);
    sched_setaffinity(0, sizeof of_node, &of_node);
}
