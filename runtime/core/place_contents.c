/* SPDX-License-Identifier: BSD-3-Clause */
/* place_contents.c - whose data is in a place, and may it be overwritten? */
#include "core/place_private.h"
#include "core/safety.h"
#include "core/size.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int check_signature(struct mx_found *f, bool force, mx_why *why) {
    char name[64];
    int found = mx_signature_find(f->place.fd, name, sizeof name);
    if (found < 0)
        return mx_fail(why, found, "%.400s cannot be examined for data: %s", f->path, strerror(-found));
    f->signature = found == 1;
    if (found == 0 || force) return 0;
    return mx_fail(why, -EEXIST,
                   "%.300s holds data (signature: %s); name another device, or overwrite it with --force",
                   f->path, name);
}

static int refuse_other_format(const struct mx_found *f, mx_why *why) {
    return mx_fail(
        why, f->place.options->resume ? -ENOTSUP : -EEXIST,
        "%.300s is a store of format %u, but this program knows only format %d; use the memext that "
        "made it%s",
        f->path, f->super.version, MX_STORE_FORMAT,
        f->place.options->resume ? "" : ", or discard it with --force");
}

/* The store is to be resumed. checked: what mx_store_check said, with its sentence in why. */
static int check_resume(const struct mx_found *f, int checked, mx_why *why) {
    if (f->kind == MX_STORE_INTACT) return checked;
    if (f->kind == MX_STORE_OTHER) return refuse_other_format(f, why);
    if (f->kind == MX_STORE_DAMAGED)
        return mx_fail(
            why, -EIO,
            "all superblocks of %.300s are damaged: nothing can be resumed; start anew with --force",
            f->path);
    return mx_fail(why, -ENOENT, "%.400s holds no memext store: nothing to resume", f->path);
}

static int refuse_run(const struct mx_found *f, mx_why *why) {
    static const char *const texts[] = {
        [MX_RUN_UNDER_WAY] = "an interrupted run; continue it with --resume, or discard it with --force",
        [MX_RUN_DONE] = "a finished run; save its result with memext export, or discard it with --force",
        [MX_RUN_KEPT] =
            "a finished run that was kept; save it with memext export, or discard it with --force",
    };
    return mx_fail(why, -EEXIST, "%.300s holds %s", f->path, texts[f->super.finished]);
}

/* A run that was killed before it wrote its first superblock leaves the room that it took, and no data. */
static bool is_room_alone(const struct mx_found *f) {
    posix_fadvise(f->place.fd, 0, 0,
                  POSIX_FADV_DONTNEED); /* pages that were looked at count as data (ext4) */
    return f->directory && f->kind == MX_STORE_NONE && lseek(f->place.fd, 0, SEEK_DATA) < 0 && errno == ENXIO;
}

/* A new store is to be made. */
static int check_overwrite(struct mx_found *f, bool damaged, mx_why *why) {
    bool nothing = f->place.block_device ? f->kind == MX_STORE_NONE : f->place.bytes == 0 || is_room_alone(f);
    if (f->beside && (f->kind != MX_STORE_INTACT || damaged || f->super.note_bytes == 0))
        return mx_fail(why, -ENOENT, "%.300s holds no committed state that a run could begin with", f->path);
    if (f->place.options->force || nothing) return 0;
    if (f->beside) return f->super.finished != MX_RUN_UNDER_WAY ? 0 : refuse_run(f, why);
    if (f->kind == MX_STORE_OTHER) return refuse_other_format(f, why);
    if (f->kind == MX_STORE_DAMAGED || damaged)
        return mx_fail(why, -EEXIST, "%.300s is a damaged memext store; discard it with --force", f->path);
    if (f->kind == MX_STORE_NONE)
        return mx_fail(why, -EEXIST,
                       "%.300s was not made by memext; name another place, or overwrite it with --force",
                       f->path);
    if (f->super.note_bytes == 0) return 0;
    if (f->directory || f->super.finished != MX_RUN_DONE) return refuse_run(f, why);
    f->finished_lost = true;
    return 0;
}

static int check_contents(struct mx_found *f, mx_why *why) {
    int kind = mx_store_read(f->place.fd, &f->super, &f->slot);
    if (kind < 0) return mx_fail(why, kind, "%.400s cannot be read: %s", f->path, strerror(-kind));
    f->kind = (enum mx_store_kind)kind;
    mx_why damage = {""};
    int checked =
        f->kind == MX_STORE_INTACT ? mx_store_check(&f->super, f->place.bytes, f->path, &damage) : 0;
    if (!f->place.options->resume) return check_overwrite(f, checked != 0, why);
    if (checked != 0 && why != NULL) *why = damage;
    return check_resume(f, checked, why);
}

int mx_place_examine(struct mx_found *f, const struct mx_device_options *options, mx_why *why) {
    int err = mx_storage_facts(f->place.fd, why, &f->storage);
    if (err != 0) return err;
    if (f->place.block_device) {
        f->place.bytes = f->storage.bytes;
        if (f->place.bytes <= MX_DATA_OFFSET_BYTES + MX_EXTENT_ALIGN_BYTES)
            return mx_fail(why, -ENOTBLK,
                           "%.300s has only %s, which is too small for a store; name another device", f->path,
                           mx_size(f->place.bytes).text);
        err = check_signature(f, options->force, why);
        if (err != 0) return err;
    }
    return check_contents(f, why);
}
