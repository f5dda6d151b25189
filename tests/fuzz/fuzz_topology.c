/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptions of machines: an input that begins with "synthetic:" is hwloc's short form, any other is the
 * text of an XML file. libhwloc itself breaks down over some, in a process of its own: that is a refusal.
 * What is accepted is a machine that the tuner can plan for. */
#include "fuzz.h"
#include "machine/machine.h"

#include <errno.h>

static void check(const struct mx_machine *m) {
    FUZZ_CHECK(m->cores >= 1 && m->sockets >= 1 && m->numa_nodes >= 1);
    FUZZ_CHECK(memchr(m->cpu, 0, sizeof m->cpu) != NULL);
    FUZZ_CHECK(strcmp(m->cgroup_kind, "none") == 0 && m->cgroup_limit_bytes == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const char synthetic[] = "synthetic:";
    char path[64], *text = NULL;
    int fd = -1;
    if (bytes >= sizeof synthetic - 1 && memcmp(data, synthetic, sizeof synthetic - 1) == 0)
        text = fuzz_text(data, bytes);
    else
        fd = fuzz_file(data, bytes, path);
    struct mx_machine machine;
    mx_why why = {0};
    int err = mx_machine_from_topology(text != NULL ? text : path, &why, &machine);
    if (err != 0) fuzz_check_refusal(err, &why);
    FUZZ_CHECK(err != -EPROTO); /* hwloc had done its part: what broke down is memext's */
    if (err == 0) check(&machine);
    free(text);
    if (fd >= 0) close(fd);
    return 0;
}
