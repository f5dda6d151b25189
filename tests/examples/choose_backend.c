/* SPDX-License-Identifier: BSD-3-Clause */
/* choose_backend.c - takes the first backend of a list that works here and says why the others do not.
 *     choose_backend PATH [BACKEND ...]
 */
#include <memext/memext.h>

#include <errno.h>
#include <stdio.h>

/* Opens the device with the first backend of a NULL-terminated list that can work here. A backend that cannot
 * is no error; a wrong path or a full disk is, for every backend alike. */
static int open_first(const char *path, char **backends, mx_why *why, mx_device **out) {
    int err = -ENOTSUP;
    for (; *backends != NULL && err == -ENOTSUP; backends++) {
        struct mx_device_options options = {.backend = *backends, .path = path};
        err = mx_device_open(&options, why, out);
        if (err != 0) printf("%s: %s\n", *backends, why->text);
    }
    return err;
}

static const char *yes_no(bool yes) { return yes ? "yes" : "no"; }

int main(int argc, char **argv) {
    char *preferred[] = {"uring", "aio", "mmap", NULL};
    const char *path = argc > 1 ? argv[1] : ".";
    mx_device *device = NULL;
    mx_why why = {""};
    int err = open_first(path, argc > 2 ? argv + 2 : preferred, &why, &device);
    if (err != 0) {
        fprintf(stderr, "choose_backend: no backend of the list works on %s\n", path);
        return 1;
    }
    struct mx_device_facts facts = {.size = sizeof facts};
    mx_device_facts(device, &facts);
    printf("using %s on %s\n", facts.backend, facts.place);
    printf("  alignment of transfers: %u bytes, of memory: %u bytes\n", facts.offset_align_bytes,
           facts.memory_align_bytes);
    printf("  bypasses the page cache: %s, outlives the process: %s, can be mapped: %s\n",
           yes_no(facts.bypasses_page_cache), yes_no(facts.durable), yes_no(facts.mapped));
    if (facts.note[0] != 0) printf("  note: %s\n", facts.note);
    mx_device_close(device);
    return 0;
}
