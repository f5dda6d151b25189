/* SPDX-License-Identifier: BSD-3-Clause */
/* former.c - the stores of the cut that a run goes on from: what their notes say, and their end. */
#include "run/ranks/recut_private.h"

#include "core/store.h"
#include "files/folder.h"
#include "note/sets.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------------ notes */

const char *mx_run_noted_place(const struct mx_run *r) {
    return r->recut.former != NULL ? r->recut.former[r->recut.newest].path : r->o.path;
}

int mx_run_name_former(struct mx_run *r) {
    struct mx_run_recut *c = &r->recut;
    int err = 0;
    if (!c->asked) return 0;
    c->former = calloc((size_t)c->ranks, sizeof *c->former);
    if (c->former == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the stores of %d ranks", c->ranks);
    for (int32_t k = 0; k < c->ranks && err == 0; k++)
        err = mx_place_of(c->base, c->ranks, k, c->cut, c->former[k].path);
    return err < 0 ? mx_fail(&r->why, err, "the path of -d is too long") : 0;
}

const char *mx_run_committed_place(const struct mx_run *r) {
    const struct mx_run_recut *c = &r->recut;
    const bool here = !mx_is_rank(&r->ranks) && (!c->asked || c->turned);
    return here || c->base[0] == 0 ? r->report.device.place : c->base;
}

static int take_one(struct mx_run *r, const struct mx_stored *s, int32_t k, int64_t next_plane) {
    struct mx_former *f = &r->recut.former[k];
    const struct mx_note *n = &s->note;
    if (!s->have_note || n->run != r->note.run || n->cut != r->note.cut || n->ranks != r->note.ranks ||
        n->rank != k || n->problem.first_plane != next_plane)
        return mx_fail(&r->why, -EINVAL,
                       "%.300s is not the store of rank %d in the same run as the other stores: give the -d "
                       "that the run began with",
                       f->path, k);
    const bool newest = mx_note_moment(n) == r->recut.moment;
    if (!newest && (n->ranks == 0 || mx_note_moment_before(n) != r->recut.moment))
        return mx_fail(&r->why, -EINVAL,
                       "%.300s does not hold step %lld, which the other stores have in common: give the "
                       "stores as the run left them, or start again with --force",
                       f->path, (long long)r->recut.time);
    f->first_plane = n->problem.first_plane;
    f->planes = n->problem.nz;
    f->buffer = newest ? n->buffer : n->before_buffer;
    f->second = newest ? n->second : n->before_second;
    f->layout = n->layout;
    f->integrity_unit = n->integrity_unit;
    f->generation = s->facts.generation;
    if (n->pending) { /* the step in common is 0 then, and no Buffer holds it */
        r->note.pending = true;
        memcpy(r->note.sample, n->sample, sizeof n->sample);
    }
    return 0;
}

/* The note of a run of one cut becomes that of the next one. */
static void turn_note(struct mx_run *r) {
    struct mx_note *n = &r->note;
    const bool newest = mx_note_moment(n) == r->recut.moment;
    if (!newest) mx_note_go_back(n);
    n->before_time = n->time, n->before_edits = n->edits, n->before_edited = n->edited;
    n->buffer = n->before_buffer = 0;
    n->second = n->before_second = 0;
    n->checksum[0] = 0;
    r->o.integrity |= n->integrity_unit > 0;
    n->integrity_unit = 0;
    n->fixed_beyond = 0;
    n->n_buffers = 0;
    if (newest) return;
    n->met = (struct mx_met){.step = 0};
    struct mx_norms_history history = n->history;
    mx_history_up_to(&history, n->time, MX_HISTORY_MOST, &n->history);
}

/* What the run has that several ranks cannot do. */
static int check_ability(struct mx_run *r) {
    const struct mx_note *n = &r->note;
    if (mx_run_ranks_of(r) == 1) return 0;
    for (int32_t i = 0; i < n->fields.n && mx_sides_periodic(&n->sides, MX_DIM_Z); i++)
        if (n->fields.field[i].in_place && n->fields.field[i].alike == 0)
            return mx_fail(&r->why, -ENOTSUP,
                           "the run in %.300s reads its field %s in place, which several ranks cannot do "
                           "with %c=periodic: resume it with one rank",
                           r->recut.base, n->fields.field[i].name, mx_axis_name(&n->problem, MX_DIM_Z));
    return 0;
}

/* A store that has only a note is read by nobody, so that no lock of its state would be met. The kernel may
 * hold that of a killed process a little longer. */
static int wait_for_begun(struct mx_run *r, const struct mx_former *f, struct mx_stored *s) {
    enum { MOST_WAITS = 500, WAIT_NS = 10000000 };
    int err = 0;
    for (int i = 0; err == 0 && r->recut.pending && s->facts.in_use; i++) {
        if (i == MOST_WAITS)
            return mx_fail(&r->why, -EBUSY, "%.300s is in use by another memext: wait until that one ends",
                           f->path);
        nanosleep(&(struct timespec){0, WAIT_NS}, NULL);
        err = mx_stored_look(f->path, &r->why, s);
    }
    return err;
}

int mx_run_take_former(struct mx_run *r, bool *kept) {
    struct mx_run_recut *c = &r->recut;
    struct mx_stored *s = calloc(1, sizeof *s);
    int64_t next = 0;
    int err = s == NULL ? mx_fail(&r->why, -ENOMEM, "no memory for the notes of stores") : check_ability(r);
    for (int32_t k = 0; k < c->ranks && err == 0; k++) {
        struct mx_former *f = &c->former[k];
        err = mx_stored_look(f->path, &r->why, s);
        if (err == -ENOENT)
            mx_fail(&r->why, err,
                    "%.300s, the store of rank %d of %d, cannot be opened from this rank: to resume with "
                    "another number of ranks, every rank must be able to read all stores of the run",
                    f->path, k, c->ranks);
        if (err == 0) err = wait_for_begun(r, f, s);
        if (err == 0) err = take_one(r, s, k, next);
        *kept |= err == 0 && s->facts.finished == 2;
        next += f->planes;
    }
    if (err == 0 && next != mx_all_planes(&r->note.problem))
        err = mx_fail(&r->why, -EINVAL,
                      "the stores in %.300s do not hold the whole grid: give the -d that the run began with",
                      c->base);
    free(s);
    if (err == 0 && r->note.pending != c->pending) /* a run that was alive has gone on */
        err = mx_fail(&r->why, -EBUSY, "another memext changed %.300s a moment ago: start again", c->base);
    if (err == 0) turn_note(r);
    return err;
}

int64_t mx_run_former_bytes(const struct mx_run *r) {
    const struct mx_former *f = r->recut.former;
    const struct mx_layout *l = &r->report.layout;
    int64_t bytes = 0;
    if (!r->recut.asked) return 0;
    if (!r->note.pending)
        bytes = (r->tuned.shape.init_both ? r->n_buffers : 1) * (r->tuned.shape.pairs ? 2 : 1) * l->planes *
                f[0].layout.plane_pitch_bytes;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem); i++)
        if (!l->fixed[i].user_file)
            bytes +=
                l->fixed[i].bytes / l->fixed[i].plane_pitch_bytes * f[0].layout.fixed[i].plane_pitch_bytes;
    return bytes;
}

/* ------------------------------------------------------------------ the end of a cut */

static bool is_discarded(const struct mx_run *r, const struct mx_seen *e) {
    bool found = false;
    for (int32_t i = 0; i < r->recut.n_discarded; i++) found |= e->run == r->recut.discarded[i];
    return found;
}

void mx_run_remove_former(struct mx_run *r) {
    const struct mx_run_recut *c = &r->recut;
    struct mx_sight s;
    if (!c->found || r->ranks.rank > 0 || mx_see_all(r->recut.base, &r->why, &s) < 0) return;
    for (int32_t i = 0; i < s.n; i++) {
        const struct mx_seen *e = &s.seen[i];
        const bool other = e->run != 0 && (e->run == c->run || e->run == r->note.run) && e->cut != c->to;
        if (other) mx_remove_store(e);
    }
    mx_forget(&s);
    mx_run_sweep_left(r);
}

/* Is it the place of a rank of this run? Another process may be opening its store. */
static bool is_of_this_run(const struct mx_run *r, const char *path) {
    const int32_t ranks = mx_run_ranks_of(r), cut = r->recut.found ? r->recut.to : 0;
    char mine[PATH_MAX];
    for (int32_t k = 0; k < ranks; k++)
        if (mx_place_of(r->recut.base, ranks, k, cut, mine) == 0 && strcmp(mine, path) == 0) return true;
    return false;
}

/* Is the set of this store useless, since nobody can resume or export it? That is so if the place of another
 * store of the set is now this run's, or holds a store without a commit; or if the run was done, and was
 * killed while its ranks removed their stores. */
static bool is_dead(const struct mx_run *r, const struct mx_sight *s, const struct mx_seen *e) {
    char path[PATH_MAX];
    if (e->run == 0 || (r->recut.found && e->run == r->recut.run)) return false;
    if (mx_place_of(r->recut.base, e->ranks, e->rank, e->cut, path) < 0 || strcmp(path, e->path) != 0)
        return false; /* of a run in a directory of its own */
    const struct mx_seen *first = mx_find_rank(s, e, 0);
    if (e->finished == MX_RUN_DONE && (first == NULL || !mx_is_whole(s, first))) return true;
    for (int32_t k = 0; k < e->ranks; k++) {
        if (mx_place_of(r->recut.base, e->ranks, k, e->cut, path) < 0) continue;
        if (is_of_this_run(r, path)) return true;
        for (int32_t i = 0; i < s->n; i++)
            if (s->seen[i].begun && strcmp(s->seen[i].path, path) == 0) return true;
    }
    return false;
}

void mx_run_sweep_left(struct mx_run *r) {
    struct mx_sight s;
    mx_why none;
    if (r->recut.base[0] == 0 || r->ranks.rank > 0) return;
    if (mx_see_all(r->recut.base, &none, &s) == 0)
        for (int32_t i = 0; i < s.n; i++) {
            const struct mx_seen *e = &s.seen[i];
            if ((e->begun || is_discarded(r, e) || is_dead(r, &s, e)) && !is_of_this_run(r, e->path))
                mx_remove_store(e);
        }
    mx_forget(&s);
    mx_leave_folders(r->recut.base);
}

void mx_run_discard_former(struct mx_run *r) {
    struct mx_sight s = {.stored = calloc(1, sizeof *s.stored)};
    char path[PATH_MAX];
    if (s.stored != NULL && !r->recut.found && r->recut.base[0] != 0 && !r->o.resume &&
        mx_place_of(r->recut.base, r->ranks.ranks, r->ranks.rank, 0, path) == 0)
        mx_see_cuts(&s, path);
    for (int32_t i = 0; i < s.n; i++)
        if (s.seen[i].folder > 0) mx_remove_store(&s.seen[i]);
    mx_forget(&s);
}

void mx_run_close_former(struct mx_run *r) {
    struct mx_run_recut *c = &r->recut;
    free(c->former);
    c->former = NULL;
    if (c->own_fd >= 0) close(c->own_fd);
    c->own_fd = -1;
    /* Its store has been removed, or was never made. */
    if (c->own[0] != 0 && c->to > 0 && !r->o.dry_run) mx_folder_leave(c->own, true);
}
