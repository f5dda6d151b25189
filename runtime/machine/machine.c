/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.c - topology by hwloc, memory by sysconf and the cgroup. */
#include "machine/machine.h"

#include "machine/cgroup.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <memext/backend.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* Objects of a type that this process may use. */
static int count_allowed(hwloc_topology_t topology, hwloc_const_cpuset_t allowed, hwloc_obj_type_t type) {
    int n = 0;
    hwloc_obj_t obj = NULL;
    while ((obj = hwloc_get_next_obj_by_type(topology, type, obj)) != NULL)
        n += obj->cpuset != NULL && hwloc_bitmap_intersects(obj->cpuset, allowed);
    return n;
}

static uint64_t cache_bytes(hwloc_topology_t topology, hwloc_obj_type_t type) {
    hwloc_obj_t obj = hwloc_get_next_obj_by_type(topology, type, NULL);
    return obj != NULL ? obj->attr->cache.size : 0;
}

/* All L3 of the first socket: processors of several dies have several. */
static uint64_t l3_of_a_socket(hwloc_topology_t topology) {
    hwloc_obj_t package = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PACKAGE, NULL);
    uint64_t bytes = 0;
    hwloc_obj_t obj = NULL;
    while ((obj = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_L3CACHE, obj)) != NULL)
        if (package == NULL || hwloc_bitmap_intersects(obj->cpuset, package->cpuset))
            bytes += obj->attr->cache.size;
    return bytes;
}

static void read_cpu_name(hwloc_topology_t topology, char *out, size_t capacity) {
    hwloc_obj_t package = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PACKAGE, NULL);
    const char *name = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    if (name == NULL) name = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "CPUModel");
    snprintf(out, capacity, "%s", name ? name : "");
}

static void describe(hwloc_topology_t topology, hwloc_const_cpuset_t allowed, struct mx_machine *out) {
    int cores = count_allowed(topology, allowed, HWLOC_OBJ_CORE);
    if (cores == 0) cores = count_allowed(topology, allowed, HWLOC_OBJ_PU);
    int sockets = count_allowed(topology, allowed, HWLOC_OBJ_PACKAGE);
    int nodes = count_allowed(topology, allowed, HWLOC_OBJ_NUMANODE);
    out->cores = cores > 0 ? cores : 1;
    out->sockets = sockets > 0 ? sockets : 1;
    out->numa_nodes = nodes > 0 ? nodes : 1;
    out->l1_bytes = cache_bytes(topology, HWLOC_OBJ_L1CACHE);
    out->l2_bytes = cache_bytes(topology, HWLOC_OBJ_L2CACHE);
    out->l3_bytes = l3_of_a_socket(topology);
    read_cpu_name(topology, out->cpu, sizeof out->cpu);
}

int mx_machine_detect_memory(mx_why *why, struct mx_machine *out) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page <= 0)
        return mx_fail(why, -ENOSYS, "Linux does not say how much memory this machine has (sysconf)");
    struct mx_cgroup cgroup;
    mx_cgroup_limit("", &cgroup);
    *out = (struct mx_machine){.memory_bytes = (uint64_t)pages * (uint64_t)page,
                               .cgroup_limit_bytes = cgroup.limit_bytes};
    memcpy(out->cgroup_kind, cgroup.kind, sizeof out->cgroup_kind);
    return 0;
}

/* Of what hwloc can tell only what is looked at here, as the system tells it: to ask the processors
 * themselves hwloc moves this thread from one to the next, and waits for each. */
static void take_little(hwloc_topology_t topology) {
    static const hwloc_obj_type_t types[] = {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_CORE, HWLOC_OBJ_L1CACHE,
                                             HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE};
    unsigned long flags = 0;
#if HWLOC_API_VERSION >= 0x00020500
    flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
#endif
#if HWLOC_API_VERSION >= 0x00020800
    flags |=
        HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
#endif
    hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        hwloc_topology_set_type_filter(topology, types[i], HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_flags(topology, flags);
}

/* hwloc asks on which cores it may run until it gets an answer, for ever where a filter of system calls (of a
 * container, of systemd) forbids the question: so it is asked here first, with as much room as hwloc has. */
static int check_affinity(mx_why *why) {
    enum { MOST_CORES = 1 << 20 };
    int err = -EINVAL;
    for (size_t cores = CPU_SETSIZE; err == -EINVAL && cores <= MOST_CORES; cores *= 2) {
        cpu_set_t *set = CPU_ALLOC(cores);
        if (set == NULL) return mx_fail(why, -ENOMEM, "no memory for a set of cores");
        err = sched_getaffinity(0, CPU_ALLOC_SIZE(cores), set) == 0 ? 0 : -errno;
        CPU_FREE(set);
    }
    if (err == 0) return 0;
    return mx_fail(
        why, -ENOSYS,
        "Linux does not say on which cores this process may run (sched_getaffinity: %s): a filter of a "
        "container or service may forbid this system call; allow it",
        strerror(-err));
}

static int load_topology(bool little, mx_why *why, hwloc_topology_t *out) {
    hwloc_topology_t topology;
    const int err = check_affinity(why);
    if (err < 0) return err;
    if (hwloc_topology_init(&topology) != 0) return mx_fail(why, -ENOMEM, "hwloc cannot be started");
    if (little) take_little(topology);
    if (hwloc_topology_load(topology) != 0) {
        hwloc_topology_destroy(topology);
        return mx_fail(why, -ENOSYS, "hwloc cannot read the topology of this machine");
    }
    *out = topology;
    return 0;
}

static int detect(bool little, mx_why *why, struct mx_machine *out) {
    struct mx_machine machine;
    hwloc_topology_t topology = NULL;
    hwloc_bitmap_t allowed = NULL;
    int err = mx_machine_detect_memory(why, &machine);
    if (err == 0) err = load_topology(little, why, &topology);
    if (err != 0) return err;
    allowed = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology));
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();
    if (allowed == NULL || bound == NULL) {
        err = mx_fail(why, -ENOMEM, "no memory for a set of cores");
        goto end;
    }
    if (hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) == 0 && !hwloc_bitmap_iszero(bound))
        hwloc_bitmap_and(allowed, allowed, bound);
    describe(topology, allowed, &machine);
    *out = machine;
end:
    hwloc_bitmap_free(bound);
    hwloc_bitmap_free(allowed);
    hwloc_topology_destroy(topology);
    return err;
}

/* Where the system does not tell of caches the processors are asked after all. */
int mx_machine_detect(mx_why *why, struct mx_machine *out) {
    const int err = detect(true, why, out);
    return err == 0 && out->l2_bytes == 0 ? detect(false, why, out) : err;
}

static const char synthetic[] = "synthetic:";

/* hwloc builds whatever a description asks for, in one piece of memory per object: a slip of the keyboard
 * ("core:99999999") would take minutes and all memory. Objects of all levels of a synthetic description;
 * anything beyond MOST_OBJECTS is as bad. */
enum { MOST_OBJECTS = 1 << 18, MOST_XML_BYTES = 16 << 20, MOST_READING_S = 20 };

static uint64_t count_objects(const char *text) {
    const int saved = errno;
    uint64_t width = 1, all = 0;
    char before = ' ';
    for (const char *p = text; *p != 0 && all <= MOST_OBJECTS; before = *p++) {
        if (*p == '(') p += strcspn(p, ")"); /* attributes of an object */
        if (*p == 0) break;
        if (!isdigit((unsigned char)*p) || (before != ':' && !isspace((unsigned char)before))) continue;
        uint64_t arity = strtoull(p, NULL, 0);
        width = arity <= MOST_OBJECTS ? width * arity : MOST_OBJECTS + 1;
        all += width;
    }
    errno = saved;
    return all;
}

static int check_file(const char *path, mx_why *why) {
    struct stat st;
    if (access(path, R_OK) != 0 || stat(path, &st) != 0) {
        int err = -errno;
        return mx_fail(why, err, "%s: %s", path, strerror(-err));
    }
    if (S_ISREG(st.st_mode) && st.st_size <= MOST_XML_BYTES) return 0;
    return mx_fail(why, -EINVAL, "--topology %s is not a file of at most %d MiB", path, MOST_XML_BYTES >> 20);
}

static int set_source(hwloc_topology_t topology, const char *path, mx_why *why) {
    size_t n = sizeof synthetic - 1;
    if (strncmp(path, synthetic, n) == 0) {
        if (count_objects(path + n) > MOST_OBJECTS)
            return mx_fail(why, -EINVAL,
                           "--topology \"synthetic:%.80s\" describes a machine of more than %d objects: "
                           "describe a smaller one",
                           path + n, MOST_OBJECTS);
        if (hwloc_topology_set_synthetic(topology, path + n) == 0) return 0;
        return mx_fail(
            why, -EINVAL,
            "--topology \"synthetic:%s\" is not a synthetic topology; an example: \"synthetic:pack:2 "
            "[numa(memory=32GB)] l3:1 l2:8 core:1 pu:1\"",
            path + n);
    }
    int err = check_file(path, why);
    if (err != 0) return err;
    if (hwloc_topology_set_xml(topology, path) == 0) return 0;
    return mx_fail(why, -EINVAL,
                   "--topology %s is not an XML file of hwloc: make one with lstopo --of xml FILE", path);
}

/* What the reading process tells: that hwloc has done its part, then the rest. */
struct reading {
    int err;
    mx_why why;
    struct mx_machine machine;
};

static int read_topology(const char *path, int tell, struct reading *r) {
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) return mx_fail(&r->why, -ENOMEM, "hwloc cannot be started");
    int err = set_source(topology, path, &r->why);
    if (err == 0 && hwloc_topology_load(topology) != 0)
        err = mx_fail(&r->why, -EINVAL,
                      "--topology %s: hwloc cannot load this file: make another with lstopo --of xml FILE",
                      path);
    if (err == 0 && write(tell, "", 1) != 1) err = -errno;
    if (err != 0) return err;
    memcpy(r->machine.cgroup_kind, "none", 5);
    describe(topology, hwloc_topology_get_topology_cpuset(topology), &r->machine);
    r->machine.memory_bytes = hwloc_get_root_obj(topology)->total_memory;
    return 0;
}

/* The other process: no memory is shared with the rest of the program, so nothing is cleaned up. */
static void reading_process(const char *path, int tell) {
    struct reading r = {.err = 0};
    setrlimit(RLIMIT_CPU, &(struct rlimit){MOST_READING_S, MOST_READING_S});
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    r.err = read_topology(path, tell, &r);
    if (r.err != 0 && write(tell, "", 1) != 1) _exit(1);
    _exit(write(tell, &r, sizeof r) == (ssize_t)sizeof r ? 0 : 1);
}

/* Bytes that came before the other process ended. */
static size_t read_all_told(int from, void *to, size_t bytes) {
    size_t got = 0;
    while (got < bytes) {
        ssize_t n = read(from, (char *)to + got, bytes - got);
        if (n == 0 || (n < 0 && errno != EINTR)) break;
        if (n > 0) got += (size_t)n;
    }
    return got;
}

/* libhwloc (2.9) can crash or go on for hours when an XML file contradicts itself. A file may come from
 * anybody, so hwloc reads it in a process of its own, whose end is one more way of being refused. */
int mx_machine_from_topology(const char *path, mx_why *why, struct mx_machine *out) {
    struct reading r;
    const int saved = errno;
    char loaded = 1;
    int ends[2], err = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return mx_fail(why, -errno, "no pipe to a process that reads --topology: %s", strerror(errno));
    pid_t reader = fork();
    if (reader == 0) reading_process(path, ends[1]);
    if (reader < 0) err = mx_fail(why, -errno, "no process to read --topology %s: %s", path, strerror(errno));
    close(ends[1]);
    const bool told = reader > 0 && read_all_told(ends[0], &loaded, 1) == 1;
    const bool whole = told && read_all_told(ends[0], &r, sizeof r) == sizeof r;
    close(ends[0]);
    while (reader > 0 && waitpid(reader, NULL, 0) < 0 && errno == EINTR) {
    }
    errno = saved;
    if (err != 0) return err;
    if (!told)
        return mx_fail(why, -EINVAL,
                       "--topology %s: hwloc crashed or took too long over this file, so it is damaged",
                       path);
    if (!whole)
        return mx_fail(why, -EPROTO, "--topology %s: the machine in this file cannot be described", path);
    if (r.err != 0) return mx_fail(why, r.err, "%s", r.why.text);
    *out = r.machine;
    return 0;
}

int mx_machine_export(const char *path, mx_why *why) {
    hwloc_topology_t topology = NULL;
    int err = load_topology(false, why, &topology);
    if (err != 0) return err;
    if (hwloc_topology_export_xml(topology, path, 0) != 0)
        err = mx_fail(why, -EIO, "%s: the topology cannot be written to this file", path);
    hwloc_topology_destroy(topology);
    return err;
}

uint64_t mx_machine_dram_bytes(const struct mx_machine *machine) {
    uint64_t limit = machine->cgroup_limit_bytes;
    return limit != 0 && limit < machine->memory_bytes ? limit : machine->memory_bytes;
}

/* The rule "auto": 5 % of the DRAM that the run sees, at least 64 MiB (the program itself, its threads'
 * stacks and the kernel's per-request memory) and at most 2 GiB; never more than half of the DRAM. */
uint64_t mx_machine_reserve_auto(const struct mx_machine *machine, uint64_t dram_bytes) {
    (void)machine;
    uint64_t reserve = dram_bytes / 20;
    if (reserve < 64 * MIB) reserve = 64 * MIB;
    if (reserve > 2 * GIB) reserve = 2 * GIB;
    return reserve < dram_bytes / 2 ? reserve : dram_bytes / 2;
}

/* The rule "paper": 1 GiB and 128 MiB per core. */
uint64_t mx_machine_reserve_paper(const struct mx_machine *machine) {
    return GIB + 128 * MIB * (uint64_t)machine->cores;
}
