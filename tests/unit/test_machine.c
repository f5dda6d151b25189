/* SPDX-License-Identifier: BSD-3-Clause */
/* test_machine - topology, memory limits, reserve rules, NUMA shares, storage facts, bells. */
#include "machine/bell.h"
#include "machine/cgroup.h"
#include "machine/machine.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* ---- a file tree below a temporary root */

static char root[256];

static void make_root(void) {
    const char *base = getenv("MEMEXT_TEST_DIR");
    snprintf(root, sizeof root, "%.200s/machine.XXXXXX", base != NULL ? base : "/tmp");
    cr_assert_not_null(mkdtemp(root));
}

static void remove_root(void) {
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    cr_assert_eq(system(command), 0);
}

static void put(const char *path, const char *text) {
    char full[1024];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; *p != 0; p++)
        if (*p == '/') {
            *p = 0;
            mkdir(full, 0777);
            *p = '/';
        }
    FILE *file = fopen(full, "w");
    cr_assert_not_null(file, "%s", full);
    fputs(text, file);
    fclose(file);
}

TestSuite(cgroup, .init = make_root, .fini = remove_root);

static const char v1_mounts[] =
    "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
    "30 22 0:25 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755\n"
    "31 30 0:26 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw,nsdelegate\n"
    "35 30 0:30 / /sys/fs/cgroup/memory rw shared:14 - cgroup cgroup rw,memory\n";

/* limit = min over the group and all its parents: here the parent's 2 GiB < the group's own 3 GiB. */
Test(cgroup, v1_takes_the_smallest_of_all_parents) {
    struct mx_cgroup c;
    put("/proc/self/mountinfo", v1_mounts);
    put("/proc/self/cgroup", "11:pids:/a/b\n7:cpu,cpuacct:/\n4:memory:/a/b\n0::/user.slice\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2147483648\n");
    put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "3221225472\n");
    mx_cgroup_limit(root, &c);
    cr_assert_str_eq(c.kind, "v1");
    cr_assert_eq(c.limit_bytes, 2 * GIB);
}

/* A page-rounded LONG_MAX is no limit. */
Test(cgroup, v1_without_limit) {
    struct mx_cgroup c;
    put("/proc/self/mountinfo", v1_mounts);
    put("/proc/self/cgroup", "4:memory:/\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    mx_cgroup_limit(root, &c);
    cr_assert_str_eq(c.kind, "v1");
    cr_assert_eq(c.limit_bytes, 0);
}

/* In a container the mount's root is the container's group, and the process's path is told from the host's
 * root: /docker/c1/job below mount root /docker/c1 is <mount>/job. */
/* A container sees its own group alone; what is above it says the kernel in memory.stat. */
Test(cgroup, v1_limit_of_a_parent_that_is_hidden) {
    struct mx_cgroup c;
    put("/proc/self/mountinfo", "700 690 0:30 /docker/c1 /sys/fs/cgroup/memory ro master:14 - cgroup cgroup "
                                "rw,memory\n");
    put("/proc/self/cgroup", "4:memory:/docker/c1\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/memory.stat",
        "cache 4096\nrss 1\nhierarchical_memory_limit 268435456\nhierarchical_memsw_limit 1\ntotal_rss 1\n");
    mx_cgroup_limit(root, &c);
    cr_assert_str_eq(c.kind, "v1");
    cr_assert_eq(c.limit_bytes, UINT64_C(268435456));
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n");
    mx_cgroup_limit(root, &c);
    cr_assert_eq(c.limit_bytes, UINT64_C(134217728));
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit 9223372036854771712\n");
    mx_cgroup_limit(root, &c);
    cr_assert_eq(c.limit_bytes, 0);
}

Test(cgroup, v1_in_a_container) {
    struct mx_cgroup c;
    put("/proc/self/mountinfo", "700 690 0:30 /docker/c1 /sys/fs/cgroup/memory ro master:14 - cgroup cgroup "
                                "rw,memory\n");
    put("/proc/self/cgroup", "4:memory:/docker/c1/job\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "536870912\n");
    mx_cgroup_limit(root, &c);
    cr_assert_eq(c.limit_bytes, 512 * MIB);
}

static const char v2_mounts[] =
    "22 1 259:2 / / rw shared:1 - ext4 /dev/sda1 rw\n"
    "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

/* "max" is no limit; memory.high throttles and counts as one; min over all levels and both files. */
Test(cgroup, v2_max_and_high) {
    struct mx_cgroup c;
    put("/proc/self/mountinfo", v2_mounts);
    put("/proc/self/cgroup", "0::/user.slice/run.scope\n");
    put("/sys/fs/cgroup/user.slice/memory.max", "4294967296\n");
    put("/sys/fs/cgroup/user.slice/memory.high", "max\n");
    put("/sys/fs/cgroup/user.slice/run.scope/memory.max", "max\n");
    put("/sys/fs/cgroup/user.slice/run.scope/memory.high", "3221225472\n");
    mx_cgroup_limit(root, &c);
    cr_assert_str_eq(c.kind, "v2");
    cr_assert_eq(c.limit_bytes, 3 * GIB);
}

Test(cgroup, v2_unlimited) {
    struct mx_cgroup c;
    put("/proc/self/mountinfo", v2_mounts);
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "max\n");
    mx_cgroup_limit(root, &c);
    cr_assert_str_eq(c.kind, "v2");
    cr_assert_eq(c.limit_bytes, 0);
}

/* A path outside the mount (cgroup namespace of somebody else) falls back to the mount's top. */
Test(cgroup, v2_path_outside_the_mount) {
    struct mx_cgroup c;
    put("/proc/self/mountinfo", v2_mounts);
    put("/proc/self/cgroup", "0::/../elsewhere\n");
    put("/sys/fs/cgroup/memory.max", "1073741824\n");
    mx_cgroup_limit(root, &c);
    cr_assert_eq(c.limit_bytes, GIB);
}

/* Blanks in mount points are octal in mountinfo. */
Test(cgroup, v2_blank_in_the_mount_point) {
    struct mx_cgroup c;
    put("/proc/self/mountinfo", "30 22 0:26 / /my\\040groups rw - cgroup2 none rw\n");
    put("/proc/self/cgroup", "0::/\n");
    put("/my groups/memory.max", "1048576\n");
    mx_cgroup_limit(root, &c);
    cr_assert_eq(c.limit_bytes, MIB);
}

Test(cgroup, none) {
    struct mx_cgroup c;
    mx_cgroup_limit(root, &c);
    cr_assert_str_eq(c.kind, "none");
    cr_assert_eq(c.limit_bytes, 0);
}

/* ---- topology */

/* Table II's machine: 2 sockets of 8 cores, L2 256 KiB per core, L3 20 MiB per socket. */
Test(machine, synthetic_two_sockets) {
    struct mx_machine m;
    mx_why why = {""};
    int err = mx_machine_from_topology("synthetic:pack:2 [numa(memory=32GiB)] l3:1(size=20MiB) "
                                       "l2:8(size=256KiB) l1d:1(size=32KiB) core:1 pu:2",
                                       &why, &m);
    cr_assert_eq(err, 0, "%s", why.text);
    cr_assert_eq(m.cores, 16);
    cr_assert_eq(m.sockets, 2);
    cr_assert_eq(m.numa_nodes, 2);
    cr_assert_eq(m.l1_bytes, 32 * KIB);
    cr_assert_eq(m.l2_bytes, 256 * KIB);
    cr_assert_eq(m.l3_bytes, 20 * MIB);
    cr_assert_eq(m.memory_bytes, 64 * GIB);
    cr_assert_eq(mx_machine_dram_bytes(&m), 64 * GIB);
    /* Km = 1 GiB + 128 MiB * 16 = 3 GiB */
    cr_assert_eq(mx_machine_reserve_paper(&m), 3 * GIB);
}

/* Four nodes, and two L3 per socket: l3_bytes is the sum of one socket. */
Test(machine, synthetic_four_nodes) {
    struct mx_machine m;
    mx_why why = {""};
    int err = mx_machine_from_topology(
        "synthetic:pack:2 group:2 [numa(memory=8GiB)] l3:1(size=16MiB) core:4 pu:1", &why, &m);
    cr_assert_eq(err, 0, "%s", why.text);
    cr_assert_eq(m.cores, 16);
    cr_assert_eq(m.sockets, 2);
    cr_assert_eq(m.numa_nodes, 4);
    cr_assert_eq(m.l3_bytes, 32 * MIB);
    cr_assert_eq(m.memory_bytes, 32 * GIB);
}

/* import(export(this machine)) = detect, as far as hwloc tells (all cores allowed). */
Test(machine, xml_round_trip) {
    struct mx_machine here, there;
    mx_why why = {""};
    make_root();
    char path[300];
    snprintf(path, sizeof path, "%s/m.xml", root);
    cr_assert_eq(mx_machine_export(path, &why), 0, "%s", why.text);
    cr_assert_eq(mx_machine_from_topology(path, &why, &there), 0, "%s", why.text);
    cr_assert_eq(mx_machine_detect(&why, &here), 0, "%s", why.text);
    cr_assert_eq(here.sockets, there.sockets);
    cr_assert_eq(here.numa_nodes, there.numa_nodes);
    cr_assert_eq(here.l2_bytes, there.l2_bytes);
    cr_assert_eq(here.l3_bytes, there.l3_bytes);
    cr_assert_geq(there.cores, here.cores);
    cr_assert_gt(there.memory_bytes, 0);
    cr_assert_str_eq(here.cpu, there.cpu);
    remove_root();
}

Test(machine, topology_refusals) {
    struct mx_machine m = {.cores = 77};
    mx_why why = {""};
    cr_assert_eq(mx_machine_from_topology("/nowhere/m.xml", &why, &m), -ENOENT);
    cr_assert_neq(why.text[0], 0);
    cr_assert_eq(mx_machine_from_topology("synthetic:nonsense", &why, &m), -EINVAL);
    cr_assert_eq(mx_machine_from_topology("synthetic:core:99999999 pu:9999", &why, &m), -EINVAL);
    cr_assert_eq(mx_machine_from_topology("/dev/zero", &why, &m), -EINVAL);
    cr_assert_eq(m.cores, 77, "out-pointers are written only on success");
}

/* libhwloc 2.9 reads through a null pointer over this file. Whatever another one makes of it, the program
 * goes on. */
Test(machine, a_damaged_topology_does_no_harm) {
    struct mx_machine m = {.cores = 77};
    mx_why why = {""};
    int err = mx_machine_from_topology("tests/fuzz/corpus/topology/incomplete.xml", &why, &m);
    cr_assert(err == 0 || (err == -EINVAL && why.text[0] != 0 && m.cores == 77), "%d %s", err, why.text);
}

/* cores = cores of the affinity mask: one CPU allowed, one core seen. */
Test(machine, affinity_counts) {
    struct mx_machine m;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    DIR *tasks = opendir("/proc/self/task"); /* the test's process has threads of Criterion's */
    for (struct dirent *task; (task = readdir(tasks)) != NULL;)
        if (task->d_name[0] != '.') sched_setaffinity(atoi(task->d_name), sizeof one, &one);
    closedir(tasks);
    cr_assert_eq(mx_machine_detect(NULL, &m), 0);
    cr_assert_eq(m.cores, 1);
    cr_assert_gt(m.memory_bytes, 64 * MIB);
}

/* auto = clamp(5 % of DRAM, 64 MiB, 2 GiB), at most DRAM/2. */
Test(machine, reserve_auto) {
    static const struct {
        uint64_t dram, reserve;
    } rows[] = {{100 * MIB, 50 * MIB}, {512 * MIB, 64 * MIB}, {10 * GIB, 512 * MIB}, {64 * GIB, 2 * GIB}};
    struct mx_machine m = {.cores = 4};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_assert_eq(mx_machine_reserve_auto(&m, rows[i].dram), rows[i].reserve, "row %zu", i);
}

Test(machine, dram_is_the_smaller_limit) {
    struct mx_machine m = {.memory_bytes = 8 * GIB};
    cr_assert_eq(mx_machine_dram_bytes(&m), 8 * GIB);
    m.cgroup_limit_bytes = GIB;
    cr_assert_eq(mx_machine_dram_bytes(&m), GIB);
    m.cgroup_limit_bytes = 64 * GIB;
    cr_assert_eq(mx_machine_dram_bytes(&m), 8 * GIB);
}

/* 1 <= nodes used <= nodes; memory usable as before, whatever the unit. */
Test(machine, spread_and_pin) {
    struct mx_machine m;
    cr_assert_eq(mx_machine_detect(NULL, &m), 0);
    const uint64_t bytes = 8 * MIB, units[] = {1, 4096, 12345, MIB, 100 * MIB};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        int nodes = mx_machine_spread(p, bytes, units[i]);
        cr_assert(nodes >= 1 && nodes <= m.numa_nodes, "%d nodes", nodes);
        memset(p, 1, bytes);
        munmap(p, bytes);
    }
    for (int32_t i = 0; i < 3 * m.cores; i++) {
        cpu_set_t now;
        mx_machine_pin(i);
        cr_assert_eq(sched_getaffinity(0, sizeof now, &now), 0);
        cr_assert_eq(CPU_COUNT(&now), 1);
    }
    cpu_set_t all;
    mx_machine_unpin();
    cr_assert_eq(sched_getaffinity(0, sizeof all, &all), 0);
    cr_assert_geq(CPU_COUNT(&all), m.cores);
}

/* Processes that share the cores: while threads of all of them are not more than those, each has one of its
 * own. One with fewer threads than cores leaves it to the kernel which, for it does not know who else is
 * there. */
Test(machine, places) {
    struct mx_machine m;
    cr_assert_eq(mx_machine_detect(NULL, &m), 0);
    cpu_set_t now, taken;
    for (int32_t threads = 1; threads <= 3; threads++) {
        const int32_t places = m.cores / threads;
        CPU_ZERO(&taken);
        for (int32_t k = 0; k < places * threads && places * threads == m.cores; k++) {
            mx_machine_share(k / threads, places);
            mx_machine_place(k % threads, threads);
            cr_assert_eq(sched_getaffinity(0, sizeof now, &now), 0);
            cr_assert_eq(CPU_COUNT(&now), 1);
            CPU_OR(&taken, &taken, &now);
            cr_assert_eq(CPU_COUNT(&taken), k + 1, "thread %d of place %d", k % threads, k / threads);
        }
    }
    mx_machine_share(0, 1);
    mx_machine_place(0, 1);
    cr_assert_eq(sched_getaffinity(0, sizeof now, &now), 0);
    if (m.numa_nodes == 1) cr_assert_geq(CPU_COUNT(&now), m.cores);
    mx_machine_unpin();
}

/* ---- storage */

/* Values of names found, times their units, added up; a name is a whole word; an open file is read anew at
 * every call. */
Test(machine, named_figures_of_a_file) {
    static const struct mx_named names[] = {
        {"file", 0, 1}, {"read_bytes:", 8, 1}, {"swapped", 16, 4096}, {"back", 16, 4096}};
    uint64_t out[3] = {0};
    char path[512];
    make_root();
    put("/stat", "file_dirty 7\nfile 5\nread_bytes: 18446744073709551615\nswapped 2\nback 1\nfil 9\n");
    snprintf(path, sizeof path, "%s/stat", root);
    int fd = open(path, O_RDONLY);
    cr_assert_eq(mx_machine_named(fd, names, 4, out), 4);
    cr_assert_eq(out[0], 5);
    cr_assert_eq(out[1], UINT64_MAX);
    cr_assert_eq(out[2], 3 * 4096);
    put("/stat", "file 6\n");
    cr_assert_eq(mx_machine_named(fd, names, 4, out), 1);
    cr_assert_eq(out[0], 11);
    close(fd);
    cr_assert_eq(mx_machine_named(-1, names, 4, out), 0);
    remove_root();
}

/* Of this process's cgroup, or of the machine: all four figures are found, and pages are in use. */
Test(machine, memory_of_the_cgroup) {
    struct mx_memory_stat m;
    int fd = mx_machine_memory_open();
    cr_assert_geq(fd, 0);
    cr_assert_eq(mx_machine_memory_stat(fd, &m), 4);
    cr_assert_gt(m.anon_bytes + m.cache_bytes, 0);
    close(fd);
}

Test(machine, storage_of_a_file) {
    struct mx_storage s;
    mx_why why = {""};
    make_root();
    char path[300];
    snprintf(path, sizeof path, "%s/f", root);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    cr_assert_eq(mx_storage_facts(fd, &why, &s), 0, "%s", why.text);
    cr_assert_not(s.block_device);
    cr_assert_gt(s.bytes, 0);
    cr_assert_neq(s.filesystem[0], 0);
    cr_assert_eq(s.direct_offset_align_bytes == 0, s.direct_memory_align_bytes == 0);
    close(fd);
    remove_root();
}

Test(machine, storage_of_memory) {
    struct mx_storage s;
    int fd = memfd_create("mx", 0);
    cr_assert_eq(mx_storage_facts(fd, NULL, &s), 0);
    cr_assert(s.is_memory);
    cr_assert_str_eq(s.filesystem, "tmpfs");
    cr_assert_eq(s.direct_offset_align_bytes, 0);
    close(fd);
    cr_assert_eq(mx_storage_facts(fd, NULL, &s), -EBADF);
}

/* ---- bells */

struct player {
    pthread_t thread;
    struct mx_bell *bell;
    struct player *other;
    _Atomic bool ready;
    _Atomic int got;
};

enum { TURNS = 20000 };

static const int64_t for_ever = INT64_C(1000000000) * 1000000;

/* Until *value is as much: rung for or not, it is looked at again. */
static void wait_until(struct mx_bell *bell, _Atomic int *value, int much) {
    for (;;) {
        const uint32_t heard = mx_bell_heard(bell);
        if (atomic_load_explicit(value, memory_order_acquire) >= much) return;
        mx_bell_wait(bell, heard, for_ever);
    }
}

static void *play(void *argument) {
    struct player *me = argument;
    me->bell = mx_bell_open();
    atomic_store(&me->ready, true);
    while (!atomic_load(&me->other->ready)) sched_yield();
    for (int i = 1; i <= TURNS; i++) {
        atomic_store_explicit(&me->other->got, i, memory_order_release);
        mx_bell_ring(me->other->bell);
        wait_until(me->bell, &me->got, i);
    }
    return NULL;
}

/* One ring that is lost, and both wait for ever. */
Test(bell, no_ring_is_lost, .timeout = 120) {
    struct player p[2] = {0};
    for (int i = 0; i < 2; i++) {
        p[i].other = &p[1 - i];
        cr_assert_eq(mx_thread_start(&p[i].thread, play, &p[i]), 0);
    }
    for (int i = 0; i < 2; i++) pthread_join(p[i].thread, NULL);
    cr_assert_neq(p[0].bell, p[1].bell);
    cr_assert_eq(p[0].got, TURNS);
    cr_assert_eq(p[1].got, TURNS);
}

Test(bell, a_wait_ends_by_itself) {
    cr_assert_null(mx_bell_mine());
    struct mx_bell *bell = mx_bell_open();
    cr_assert_eq(mx_bell_mine(), bell);
    const uint32_t heard = mx_bell_heard(bell);
    mx_bell_wait(bell, heard, 1000);
    cr_assert_eq(mx_bell_heard(bell), heard);
    mx_bell_ring(bell);
    mx_bell_wait(bell, heard, for_ever); /* it was rung before */
    cr_assert_eq(mx_bell_heard(bell), heard + 1);
    mx_bell_ring(NULL);
    mx_bell_close();
    cr_assert_null(mx_bell_mine());
}
