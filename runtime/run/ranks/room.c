/* SPDX-License-Identifier: BSD-3-Clause */
/* room.c - a dry run with ranks: would the stores of all of them fit? */
#include "run/ranks/ranks.h"

#include "core/device.h"
#include "core/place.h"
#include "core/store.h"
#include "machine/minmax.h"
#include "machine/size.h"
#include "run/open/open.h"
#include "run/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A file system or block device, and the stores on it. */
struct shelf {
    dev_t device;
    char path[PATH_MAX]; /* of the first of them */
    int64_t stores;
    uint64_t need;
    int64_t room; /* less the superblocks */
};

/* Device of a store, or of the directory where it will be. */
static dev_t device_of(const char *path) {
    char directory[PATH_MAX];
    struct stat st;
    if (stat(path, &st) == 0) return S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
    snprintf(directory, sizeof directory, "%s", path);
    char *slash = strrchr(directory, '/');
    if (slash != NULL) slash[slash == directory] = 0;
    return stat(slash != NULL ? directory : ".", &st) == 0 ? st.st_dev : 0;
}

/* Of a directory that is yet to be made nothing is known but where it will be. */
static int ask(struct mx_run *r, const char *own, bool make, char path[PATH_MAX], struct mx_storage *storage,
               uint64_t *room) {
    struct stat st;
    const bool new_directory = make && stat(own, &st) != 0;
    const struct mx_device_options o = {
        .size = sizeof o, .backend = r->o.backend, .path = path, .force = r->o.force || r->recut.left};
    char store[4096];
    snprintf(path, PATH_MAX, "%s%s", own, new_directory ? ".memext" : "");
    const int err = mx_place_ask(&o, r->superseded != NULL, &r->why, store, storage, room);
    return err < 0 ? err : mx_device_check_storage(r->backend, storage, own, &r->why);
}

/* Buffers are planes of one size. */
static uint64_t bytes_of(const struct mx_run *r, int rank) {
    const int64_t more = r->ranks.first[rank + 1] - r->ranks.first[rank] - r->o.problem.nz;
    int64_t plane = mx_run_buffers(r) * r->report.layout.plane_pitch_bytes;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem); i++)
        if (!r->report.layout.fixed[i].user_file) plane += r->report.layout.fixed[i].plane_pitch_bytes;
    return mx_run_stored_bytes(r) + (uint64_t)(more * plane);
}

static int put(struct mx_run *r, int rank, struct shelf *shelves, int64_t *n) {
    char own[PATH_MAX - 16], path[PATH_MAX];
    bool make;
    struct mx_storage storage;
    uint64_t room;
    int err = mx_run_own_place(r, rank, own, sizeof own, &make);
    if (err == 0) err = ask(r, own, make, path, &storage, &room);
    if (err < 0) return err;
    const dev_t device = device_of(path);
    struct shelf *s = shelves;
    while (s < shelves + *n && s->device != device) s++;
    if (s == shelves + *n) {
        *s = (struct shelf){.device = device, .room = (int64_t)storage.bytes};
        snprintf(s->path, sizeof s->path, "%s", own);
        ++*n;
    }
    s->stores++;
    s->need += bytes_of(r, rank);
    /* The blocks of a store that is replaced, or none. A run may begin where its superblocks have room, and
     * need not have all that is in front of the Buffers. */
    s->room += (int64_t)(room - storage.bytes) + (int64_t)(MX_DATA_OFFSET_BYTES - MX_SLOTS_BYTES);
    return 0;
}

int mx_run_ask_places(struct mx_run *r) {
    const int ranks = r->ranks.ranks;
    struct shelf *shelves = calloc((size_t)ranks, sizeof *shelves);
    int64_t n = 0;
    int err = shelves != NULL ? 0 : mx_fail(&r->why, -ENOMEM, "no memory for the ranks");
    for (int i = 0; i < ranks && err == 0; i++) err = put(r, i, shelves, &n);
    for (int64_t i = 0; i < n && err == 0; i++)
        if ((int64_t)shelves[i].need > shelves[i].room)
            err = mx_fail(&r->why, -ENOSPC,
                          "the Buffers of %lld ranks need %s, but the file system of %.300s has %s; free "
                          "space, name another place, or choose a smaller problem",
                          (long long)shelves[i].stores, mx_size(shelves[i].need).text, shelves[i].path,
                          mx_size((uint64_t)mx_max(shelves[i].room, 0)).text);
    free(shelves);
    return err;
}
