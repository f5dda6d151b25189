/* SPDX-License-Identifier: BSD-3-Clause */
/* supersede.c - a run that begins with the state of the store in its place (option supersede). */
#include "run/open/open.h"

#include "core/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static int refuse(struct mx_run *r, const char *why) {
    return mx_fail(&r->why, -EINVAL, "the run cannot begin with the state in %.300s: %s", r->o.path, why);
}

/* Does a Buffer of this name, or its hashes, hold something of the state? */
static bool holds_state(const struct mx_note *n, const char *name) {
    const size_t length = strcspn(name, ".");
    const char *const of_state[] = {mx_note_buffers[n->buffer], mx_note_partners[n->buffer]};
    for (int i = 0; i < 2; i++)
        if (strlen(of_state[i]) == length && memcmp(name, of_state[i], length) == 0) return true;
    for (int32_t i = 0; i < mx_fixed_count(&n->problem); i++) {
        char fixed[16];
        mx_note_fixed(n->second, i, fixed);
        if (strlen(fixed) == length && memcmp(name, fixed, length) == 0) return true;
    }
    return false;
}

static int check_extents(struct mx_run *r, const struct mx_problem *there) {
    const struct mx_problem *p = &r->o.problem;
    char here[MX_EXTENTS_TEXT], stored[MX_EXTENTS_TEXT];
    if (p->flat == there->flat && p->nx == there->nx && p->ny == there->ny && p->nz == there->nz) return 0;
    return mx_fail(&r->why, -EINVAL,
                   "%.300s holds a grid of %s interior cells, and the run that would begin with its state "
                   "has %s: give the same size, or another place",
                   r->o.path, mx_extents_text(there, stored), mx_extents_text(p, here));
}

static int take(struct mx_run *r, const struct mx_store_facts *store, struct mx_run_superseded *s) {
    mx_why reason = {""};
    if (store->note_bytes == 0) return refuse(r, "the store holds no state");
    if (mx_note_parse(store->note, store->note_bytes, &reason, &s->note) < 0) return refuse(r, reason.text);
    if (s->note.pending) return refuse(r, "the store has no commit yet");
    if (s->note.ranks > 0) return refuse(r, "the store belongs to one rank of several; name another place");
    if (s->note.different) return refuse(r, "its result differs from the plain computation (--verify)");
    s->digest = XXH3_64bits(store->note, store->note_bytes);
    for (uint32_t i = 0; i < store->n_extents; i++)
        if (holds_state(&s->note, store->extents[i].name))
            memcpy(&s->kept[s->n++], &store->extents[i], sizeof s->kept[0]);
    return check_extents(r, &s->note.problem);
}

int mx_run_take_superseded(struct mx_run *r) {
    if (!r->o.supersede) return 0;
    if (!mx_run_alone(r))
        return refuse(r, "several ranks cannot do that; name another place, or leave --ranks out");
    if (r->backend->anonymous) return refuse(r, "the backend has no place; choose another backend");
    struct mx_store_facts *store = calloc(1, sizeof *store);
    r->superseded = calloc(1, sizeof *r->superseded);
    int err = store == NULL || r->superseded == NULL
                  ? mx_fail(&r->why, -ENOMEM, "no memory for the note of a store")
                  : 0;
    if (err == 0) err = mx_store_see(r->o.path, &r->why, store);
    if (err == 0) err = take(r, store, r->superseded);
    free(store);
    if (err == 0 && !r->o.quiet)
        mx_run_remark(r,
                      "begins with step %lld of the run in %.300s, whose store stays until the first commit",
                      (long long)r->superseded->note.time, r->o.path);
    return err;
}

int mx_run_keep_superseded(struct mx_run *r) {
    struct mx_run_superseded *s = r->superseded;
    char text[MX_NOTE_BYTES + 1], name[16];
    const int64_t n = mx_device_former_note(r->device, text, sizeof text);
    if (n <= 0 || XXH3_64bits(text, (size_t)n) != s->digest)
        return mx_fail(&r->why, -EBUSY, "another memext changed %.300s a moment ago: start again",
                       r->report.device.place);
    const char *const seams = "faces";
    for (int32_t i = 0; i < MX_NOTE_MOST_BUFFERS; i++) {
        if (!holds_state(&s->note, mx_note_buffers[i])) mx_device_give_former(r->device, mx_note_buffers[i]);
        if (!holds_state(&s->note, mx_note_partners[i]))
            mx_device_give_former(r->device, mx_note_partners[i]);
    }
    for (int32_t i = 0; i < mx_fixed_count(&s->note.problem); i++)
        mx_device_give_former(r->device, mx_note_fixed(~s->note.second, i, name));
    mx_device_give_former(r->device, seams);
    return 0;
}

/* ------------------------------------------------------------------ room */

/* Extents as they will lie: those that are kept first, of which late ones take no notice. */
struct extents {
    struct mx_extent at[2 * MX_EXTENTS];
    size_t kept, n;
};

static void add(struct extents *e, int64_t bytes, bool late) {
    if (bytes <= 0) return;
    const size_t first = late ? e->kept : 0;
    e->at[e->n] =
        (struct mx_extent){.offset_bytes = mx_extent_fit(e->at + first, e->n - first, (uint64_t)bytes),
                           .bytes = (uint64_t)bytes};
    e->n++;
}

uint64_t mx_run_superseding_bytes(const struct mx_run *r) {
    const struct mx_run_superseded *s = r->superseded;
    const bool late = mx_run_lies_late(r);
    struct extents e = {.n = 0};
    uint64_t end = MX_DATA_OFFSET_BYTES;
    for (int32_t i = 0; i < s->n; i++) e.at[e.n++] = s->kept[i];
    e.kept = e.n;
    for (int32_t i = 0; i < r->n_buffers; i++)
        for (int part = 0; part < (r->tuned.shape.pairs ? 2 : 1); part++)
            add(&e, r->report.layout.buffer_bytes, late && i > 0);
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem); i++)
        if (!r->report.layout.fixed[i].user_file) add(&e, r->report.layout.fixed[i].bytes, false);
    add(&e, r->report.side_file_bytes, late);
    for (size_t i = 0; i < e.n; i++) {
        const uint64_t upto = e.at[i].offset_bytes + e.at[i].bytes;
        if (upto > end) end = upto;
    }
    return end - MX_DATA_OFFSET_BYTES;
}
