/* SPDX-License-Identifier: BSD-3-Clause */
/* room.c - a dry run: would the run accept its place, and would its store fit, or those of all its ranks? */
#include "run/open/open.h"

#include "core/device.h"
#include "core/place.h"
#include "core/store.h"
#include "machine/machine.h"
#include "machine/minmax.h"
#include "machine/size.h"
#include "run/ranks/ranks.h"
#include "run/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file system, and the stores on it. */
struct shelf {
    dev_t device;
    char path[PATH_MAX]; /* of the first of them */
    int64_t stores, growth_bytes, room_bytes;
};

/* The place of a rank. */
struct spot {
    char own[PATH_MAX - 16];
    struct mx_storage storage;
    dev_t device;
    int64_t held_bytes, room_bytes; /* of a store that is there; all that its Buffers may have */
};

static const char *parent_of(const char *path, char parent[PATH_MAX]) {
    snprintf(parent, PATH_MAX, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash == NULL) return ".";
    slash[slash == parent] = 0;
    return parent;
}

/* The directory in which the run would make that of a rank. */
static int ask_parent(struct mx_run *r, struct spot *s) {
    char parent[PATH_MAX];
    struct stat st;
    const char *path = parent_of(s->own, parent);
    const int fd = mx_retry(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int err = fd < 0 || access(path, W_OK | X_OK) != 0 || fstat(fd, &st) != 0 ? -errno : 0;
    if (err < 0) mx_fail(&r->why, err, "%.300s cannot be created: %s", s->own, strerror(-err));
    if (err == 0) err = mx_storage_facts(fd, &r->why, &s->storage);
    if (fd >= 0) close(fd);
    if (err == 0) s->device = st.st_dev;
    s->room_bytes = (int64_t)s->storage.bytes - (int64_t)MX_DATA_OFFSET_BYTES;
    return err;
}

static int ask_place(struct mx_run *r, struct spot *s) {
    const struct mx_device_options o = {
        .size = sizeof o, .backend = r->o.backend, .path = s->own, .force = r->o.force || r->recut.left};
    char store[4096], parent[PATH_MAX];
    uint64_t room;
    struct stat st;
    int err = mx_place_ask(&o, r->superseded != NULL, &r->why, store, &s->storage, &room);
    if (err < 0) return err;
    if (stat(s->own, &st) == 0 || stat(parent_of(s->own, parent), &st) == 0) s->device = st.st_dev;
    s->room_bytes = (int64_t)room;
    s->held_bytes = s->room_bytes + (int64_t)MX_DATA_OFFSET_BYTES - (int64_t)s->storage.bytes;
    return 0;
}

static int64_t neighbours(const struct mx_run *r, int rank) {
    const bool ring = r->whole.sides.side[MX_DIM_Z][0] == MX_SIDE_PERIODIC;
    return ring ? 2 : (rank > 0) + (rank < mx_run_ranks_of(r) - 1);
}

/* Of the planes of a field of C that are beside those of a rank, one with fewer neighbours has fewer. */
static int64_t fixed_bytes(const struct mx_run *r, int32_t i, int rank) {
    const struct mx_fixed_layout *f = &r->report.layout.fixed[i];
    const int64_t mine = r->o.problem.nz, its = mx_run_planes_of(r, rank);
    if (f->plane_pitch_bytes == 0) return f->bytes;
    const int64_t own = mx_has_neighbour(&r->o.problem, 0) + mx_has_neighbour(&r->o.problem, 1);
    const int64_t beside = f->bytes - mine * f->plane_pitch_bytes;
    return its * f->plane_pitch_bytes + mx_min(beside, beside * neighbours(r, rank) / own);
}

/* Buffers are planes of one size. */
static int64_t bytes_of(const struct mx_run *r, int rank) {
    const int64_t more = mx_run_planes_of(r, rank) - r->o.problem.nz;
    int64_t bytes =
        (int64_t)mx_run_stored_bytes(r) + more * mx_run_buffers(r) * r->report.layout.plane_pitch_bytes;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem); i++)
        if (!r->report.layout.fixed[i].user_file)
            bytes += fixed_bytes(r, i, rank) - r->report.layout.fixed[i].bytes;
    return bytes;
}

/* Each rank looks by itself whether its Buffers fit, before there is a store of another. */
static int look_at(struct mx_run *r, int rank, struct spot *s, int64_t *need) {
    struct stat st;
    bool make;
    *s = (struct spot){.own = ""};
    int err = mx_run_own_place(r, rank, s->own, sizeof s->own, &make);
    if (err == 0 && !r->o.force) err = mx_run_refuse_leftover(r, rank);
    if (err == 0) err = make && stat(s->own, &st) != 0 ? ask_parent(r, s) : ask_place(r, s);
    if (err == 0) err = mx_device_check_storage(r->backend, &s->storage, s->own, &r->why);
    *need = bytes_of(r, rank);
    if (err < 0 || *need <= s->room_bytes) return err;
    return mx_fail(
        &r->why, -ENOSPC,
        "rank %d: the Buffers need %s, but %.300s has %s for them; free space, name another place, "
        "or choose a smaller problem",
        rank, mx_size((uint64_t)*need).text, s->own, mx_size((uint64_t)mx_max(s->room_bytes, 0)).text);
}

static int put(struct mx_run *r, int rank, struct shelf *shelves, int64_t *n) {
    struct spot spot;
    int64_t need;
    const int err = look_at(r, rank, &spot, &need);
    if (err < 0 || spot.storage.block_device) return err;
    struct shelf *s = shelves;
    while (s < shelves + *n && s->device != spot.device) s++;
    if (s == shelves + *n) {
        *s = (struct shelf){.device = spot.device,
                            .room_bytes = (int64_t)spot.storage.bytes - (int64_t)MX_DATA_OFFSET_BYTES};
        snprintf(s->path, sizeof s->path, "%s", spot.own);
        ++*n;
    }
    s->stores++;
    s->growth_bytes += mx_max(need - spot.held_bytes, 0);
    return 0;
}

/* Of ranks that would all be on this machine: would the run refuse their places, or would their stores not
 * fit? Errors as of mx_place_ask; -EEXIST, -ENOSPC. */
static int ask_places(struct mx_run *r) {
    const int32_t ranks = mx_run_ranks_of(r);
    struct shelf *shelves = calloc((size_t)ranks, sizeof *shelves);
    int64_t n = 0;
    int err = shelves != NULL ? 0 : mx_fail(&r->why, -ENOMEM, "no memory for the ranks");
    for (int i = 0; i < ranks && err == 0; i++) err = put(r, i, shelves, &n);
    for (const struct shelf *s = shelves; s < shelves + n && err == 0; s++)
        if (s->growth_bytes > s->room_bytes)
            err =
                mx_fail(&r->why, -ENOSPC,
                        "the Buffers of %lld ranks need %s more, but the file system of %.300s has %s; free "
                        "space, name another place, or choose a smaller problem",
                        (long long)s->stores, mx_size((uint64_t)s->growth_bytes).text, s->path,
                        mx_size((uint64_t)mx_max(s->room_bytes, 0)).text);
    free(shelves);
    return err;
}

/* All ranks of a dry run, if they were on this machine. */
static bool has_ranks_here(const struct mx_run *r) {
    return mx_run_alone(r) && mx_run_ranks_of(r) > 1 && mx_run_ranks_here(r) == mx_run_ranks_of(r);
}

static int ask_for_room(struct mx_run *r, const struct mx_device_options *d) {
    if (mx_machine_is_described(&r->o) || (!r->backend->anonymous && r->o.path == NULL)) return 0;
    if (r->backend->anonymous || !mx_is_cut(&r->o.problem))
        return mx_device_ask(d, r->superseded != NULL, &r->why);
    return has_ranks_here(r) && !r->o.resume ? ask_places(r) : 0;
}

/* Of another machine, and of ranks on several machines, nothing is known. */
int mx_run_ask_place(struct mx_run *r) {
    const struct mx_options *o = &r->o;
    const struct mx_device_options d = {.size = sizeof d,
                                        .backend = o->backend,
                                        .path = o->path,
                                        .expect_bytes = mx_run_stored_bytes(r),
                                        .force = o->force || r->recut.left};
    int err = mx_run_ask_outputs(r);
    if (err == 0) err = ask_for_room(r, &d);
    if (err == 0 || err == -ENOSPC || !o->plan_only) return err;
    if (!o->quiet) mx_run_remark(r, "the run would be refused now: %s", r->why.text);
    r->why.text[0] = 0;
    return 0;
}
