/* SPDX-License-Identifier: BSD-3-Clause */
/* files.c - are files what they were, and what did all devices move? */
#include "run/work/work.h"

#include "core/device.h"
#include "machine/minmax.h"

int mx_run_field_files_unchanged(struct mx_run *r, mx_why *why) {
    int err = 0;
    for (int32_t i = 0; i < r->fields.n && err == 0; i++) {
        struct mx_run_field *f = &r->fields.field[i];
        if (f->in_place && f->alike == 0 && f->npy.fd >= 0) err = mx_field_unchanged(f, why);
    }
    return err == 0 ? mx_run_fuse_unchanged(r, why) : err;
}

void mx_run_counters(const struct mx_run *r, struct mx_counters *out) {
    out->size = sizeof *out;
    mx_device_counters(r->device, out);
    for (int i = 0; i < MX_MAX_FIXED; i++) {
        struct mx_counters c = {.size = sizeof c};
        if (r->file[i] == NULL) continue;
        mx_device_counters(r->file[i], &c);
        out->read_bytes += c.read_bytes;
        out->read_requests += c.read_requests;
        out->retries += c.retries;
        out->short_transfers += c.short_transfers;
        out->read_ns = mx_max_u64(out->read_ns, c.read_ns);
        out->peak_in_flight += c.peak_in_flight;
    }
    mx_run_fuse_counters(r, out);
}
