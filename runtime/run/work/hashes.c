/* SPDX-License-Identifier: BSD-3-Clause */
/* hashes.c - hashes of --integrity, with the commits of what they are of. */
#include "run/work/work.h"

#include <string.h>

int mx_run_no_hashes(struct mx_run *r, const char *buffer, int err) {
    return mx_fail(&r->why, err,
                   "the store is damaged: the hashes of the Buffer \"%s\" of %.300s %s%s; start again with "
                   "--force instead of --resume",
                   buffer, r->report.device.place, err == -EBADMSG ? "have changed" : "cannot be read: ",
                   err == -EBADMSG ? "" : strerror(-err));
}

int mx_run_check_fixed(struct mx_run *r, mx_buffer *buffer, int32_t field, bool saved) {
    char name[16];
    int err = mx_buffer_integrity(buffer, MX_FIXED_UNIT_BYTES, r->budget, &r->why);
    if (err == 0 && saved) err = mx_buffer_integrity_load(buffer);
    if (err == -ENODATA)
        err = 0; /* of an older memext, which kept none: they are taken with the first look */
    return err == 0 || r->why.text[0] != 0
               ? err
               : mx_run_no_hashes(r, mx_note_fixed(r->note.second, field, name), err);
}

/* How often that happens is decided by the clock: it is counted by itself, no part of what is predicted. */
int mx_run_save_hashes(struct mx_run *r, mx_buffer *buffer) {
    r->report.hash_bytes += mx_buffer_integrity_bytes(buffer);
    r->hashed_bytes += mx_buffer_integrity_bytes(buffer);
    return mx_buffer_integrity_save(buffer);
}

/* Of C, which is never written again: with the first commit. */
int mx_run_save_fixed_hashes(struct mx_run *r) {
    int err = 0;
    for (int32_t i = 0; i < MX_MAX_FIXED && err == 0 && !r->fixed_saved; i++)
        if (r->file[i] == NULL && r->fixed[i] != NULL) err = mx_run_save_hashes(r, r->fixed[i]);
    r->fixed_saved |= err == 0;
    return err;
}
