/* SPDX-License-Identifier: BSD-3-Clause */
/* place_ask.c - could a new store be made in a place? Nothing is opened for writing, locked or made. */
#include "core/place_private.h"
#include "core/safety.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file or device that is there. */
static int ask_what_is_there(struct mx_found *f, const struct mx_device_options *o, const struct stat *st,
                             mx_why *why) {
    const bool block = S_ISBLK(st->st_mode);
    int err = access(f->path, R_OK | W_OK) == 0 ? 0 : mx_place_explain(f->path, errno, why);
    if (err == 0)
        err = block ? mx_place_check_device(f, st->st_rdev, why) : mx_place_check_file(f, st, o->force, why);
    if (err < 0) return err;
    const int fd = mx_retry(mx_sys->open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0));
    if (fd < 0) return mx_place_explain(f->path, -fd, why);
    f->place.fd = fd;
    f->place.block_device = block;
    f->place.bytes = (uint64_t)st->st_size;
    if (mx_place_in_use(fd))
        err = mx_fail(why, -EBUSY, "%.400s is in use by another memext; wait for it or name another place",
                      f->path);
    if (err == 0) err = mx_place_examine(f, o, why);
    mx_sys->close(fd);
    return err;
}

/* The directory that a new file would be in. */
static int ask_directory(struct mx_found *f, mx_why *why) {
    char name[4096];
    strcpy(name, f->path);
    char *slash = strrchr(name, '/');
    if (slash != NULL) slash[slash == name] = 0;
    const char *directory = slash != NULL ? name : ".";
    if (access(directory, W_OK | X_OK) != 0) return mx_place_explain(f->path, errno, why);
    const int fd = mx_retry(mx_sys->open(directory, O_RDONLY | O_CLOEXEC | O_DIRECTORY, 0));
    if (fd < 0) return mx_place_explain(f->path, -fd, why);
    const int err = mx_storage_facts(fd, why, &f->storage);
    mx_sys->close(fd);
    return err;
}

int mx_place_ask(const struct mx_device_options *options, bool beside, mx_why *why, char path[4096],
                 struct mx_storage *out, uint64_t *room) {
    struct mx_found *f = calloc(1, sizeof *f);
    struct stat st = {.st_blocks = 0};
    if (f == NULL) return mx_fail(why, -ENOMEM, "no memory for a look at a place");
    f->beside = beside;
    f->place = (struct mx_place){.fd = -1, .path = f->path, .options = options};
    int err = mx_place_check(options->path, why);
    if (err == 0) err = mx_place_name(options->path, why, f->path, &f->directory, &st);
    if (err == 0)
        err = access(f->path, F_OK) == 0 ? ask_what_is_there(f, options, &st, why) : ask_directory(f, why);
    *out = f->storage;
    strcpy(path, f->path);
    *room = mx_place_room_in(&f->storage, (uint64_t)st.st_blocks * 512, 0);
    free(f);
    return err;
}
