/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/recut.h"

#include "core/store.h"
#include "files/folder.h"
#include "note/sets.h"
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A store that planes are read from. */
struct mx_former {
    char path[PATH_MAX];
    int64_t first_plane, planes;
    int32_t buffer;
    struct mx_layout layout;
    int64_t integrity_unit;
    uint64_t generation; /* of the store when its note was read */
};

/* ------------------------------------------------------------------ which set */

/* What rank 0 found, for all. */
struct choice {
    int32_t err, ranks, cut, to;
    int32_t newest; /* the first rank with the newest note */
    uint64_t run;
    int64_t time;
    bool other_cut; /* of as many ranks, by other weights */
    mx_why why;
};

/* --rank-weights given with --resume: are the stores cut by others? */
static int compare_cuts(struct mx_run *r, const struct mx_sight *s, const struct mx_seen *found,
                        int32_t ranks, bool *other) {
    *other = false;
    if (found->ranks != ranks || ranks < 2 || r->o.rank_weights == NULL) return 0;
    int64_t *first = calloc((size_t)ranks + 1, sizeof *first);
    int err = first == NULL ? mx_fail(&r->why, -ENOMEM, "no memory for the ranks")
                            : mx_ranks_table(found->all_planes, r->o.rank_weights, ranks, &r->why, first);
    for (int32_t k = 0; k < ranks && err == 0; k++)
        *other |= mx_find_rank(s, found, k)->first_plane != first[k];
    free(first);
    return err;
}

static int look_around(struct mx_run *r, int32_t ranks, struct choice *out) {
    struct mx_sight s;
    const struct mx_seen *found = NULL;
    int err = mx_see_all(r->recut.base, &r->why, &s);
    if (err == 0) err = mx_newest_set(&s, r->recut.base, ranks, &r->why, &found);
    if (err == 0 && found != NULL) {
        *out = (struct choice){.ranks = found->ranks, .cut = found->cut, .run = found->run};
        out->time = mx_common_step(&s, found);
        out->newest = mx_newest_rank(&s, found);
        out->to = found->cut;
        err = compare_cuts(r, &s, found, ranks, &out->other_cut);
        for (int32_t i = 0; i < s.n; i++) {
            if (s.seen[i].cut > out->to) out->to = s.seen[i].cut;
            if (s.seen[i].folder > out->to) out->to = s.seen[i].folder;
        }
        out->to++;
    }
    mx_forget(&s);
    return err;
}

/* Where all ranks have a store of one newest set that is theirs, nothing else is looked at: disks of other
 * machines may not be seen from here. */
struct own {
    uint64_t run;
    int32_t cut;
    bool mine;
};

static int look_at_own(struct mx_run *r, struct own *out) {
    struct mx_sight s = {.stored = calloc(1, sizeof *s.stored)};
    char path[PATH_MAX];
    const struct mx_seen *newest = NULL;
    *out = (struct own){.cut = -1};
    if (s.stored == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the notes of stores");
    if (mx_place_of(r->recut.base, r->ranks.ranks, r->ranks.rank, 0, path) == 0) mx_see_cuts(&s, path);
    if (r->ranks.rank == 0 && mx_is_directory(r->recut.base)) mx_see_cuts(&s, r->recut.base);
    for (int32_t i = 0; i < s.n; i++)
        if (s.seen[i].run != 0 && (newest == NULL || s.seen[i].cut > newest->cut)) newest = &s.seen[i];
    for (int32_t i = 0; i < s.n && newest != NULL; i++)
        if (s.seen[i].run != 0 && s.seen[i].run != newest->run && s.seen[i].ranks == r->ranks.ranks &&
            s.seen[i].rank == r->ranks.rank)
            newest = &s.seen[i]; /* of two runs the one that has as many */
    if (newest != NULL)
        *out = (struct own){.run = newest->run,
                            .cut = newest->cut,
                            .mine = newest->ranks == r->ranks.ranks && newest->rank == r->ranks.rank};
    mx_forget(&s);
    return 0;
}

static int all_have_theirs(struct mx_run *r, struct own *mine, bool *all) {
    const int ranks = r->ranks.ranks;
    struct own *own = calloc((size_t)ranks, sizeof *own);
    *all = false;
    if (own == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the ranks");
    int err = look_at_own(r, mine);
    if (err == 0) err = mx_link_gather(r->ranks.link, MX_CHANNEL_RUN, mine, sizeof *mine, own, &r->why);
    *all = err == 0 && r->o.rank_weights == NULL; /* else it is looked at how they are cut */
    for (int i = 0; i < ranks && *all; i++)
        *all = own[i].mine && own[i].run == own[0].run && own[i].cut == own[0].cut;
    free(own);
    return err;
}

/* Ranks of this run: those that are there, or, of a dry run, that are asked about. */
static int32_t ranks_of(const struct mx_run *r) {
    if (mx_is_rank(&r->ranks)) return r->ranks.ranks;
    return r->o.dry_run && r->o.ranks > 1 ? (int32_t)r->o.ranks : 1;
}

static int share_choice(struct mx_run *r, struct choice *c) {
    int err = 0;
    if (r->ranks.rank == 0) {
        c->err = look_around(r, ranks_of(r), c);
        if (c->err < 0) c->why = r->why;
    }
    if (mx_is_rank(&r->ranks)) err = mx_link_share(r->ranks.link, MX_CHANNEL_RUN, 0, c, sizeof *c, &r->why);
    if (err == 0 && c->err < 0) {
        r->ranks.silent = r->ranks.rank > 0;
        r->why = c->why;
        err = c->err;
    }
    return err;
}

/* A place for a new store of this rank. */
static int make_own(struct mx_run *r) {
    struct mx_run_recut *c = &r->recut;
    char outer[PATH_MAX];
    int err = mx_place_of(c->base, c->ranks, 0, c->cut, outer);
    if (err == 0 && !mx_is_directory(outer)) {
        r->ranks.silent = r->ranks.rank > 0; /* all find it so */
        return mx_fail(
            &r->why, -ENOTSUP,
            "%.300s holds one store, and a run that goes on with another number of ranks needs its former "
            "ones beside the new: resume it with %d, or take directories as places",
            outer, c->ranks);
    }
    if (err == 0) err = mx_place_of(c->base, r->ranks.ranks, r->ranks.rank, 0, outer);
    if (err == 0) err = mx_place_of(c->base, r->ranks.ranks, r->ranks.rank, c->to, c->own);
    if (err < 0) return mx_fail(&r->why, err, "the path of -d is too long");
    if (r->o.dry_run) return 0;
    if (mx_is_rank(&r->ranks) && (err = mx_run_take_folder(r, outer)) < 0) return err;
    err = mx_folder_take(c->own, &c->own_fd);
    return err < 0 ? mx_fail(&r->why, err, "%.300s cannot be made: %s", c->own, strerror(-err)) : 0;
}

static int take_choice(struct mx_run *r, const struct choice *found) {
    struct mx_run_recut *c = &r->recut;
    c->ranks = found->ranks, c->cut = found->cut, c->to = found->cut;
    c->run = found->run, c->time = found->time;
    c->newest = found->newest;
    c->found = true;
    c->asked = found->ranks != ranks_of(r) || found->other_cut;
    if (c->asked) c->to = found->to;
    int err = c->asked ? make_own(r) : mx_place_of(c->base, r->ranks.ranks, r->ranks.rank, c->cut, c->own);
    r->o.path = c->own;
    if (err == 0 && mx_is_rank(&r->ranks))
        err = mx_place_of(c->base, r->ranks.ranks, r->ranks.rank, 0, r->ranks.folder);
    return err;
}

/* A store of a run that --resume would go on with. */
static int refuse_leftover(struct mx_run *r) {
    struct mx_sight s = {.stored = calloc(1, sizeof *s.stored)};
    char path[PATH_MAX];
    int err = s.stored == NULL ? mx_fail(&r->why, -ENOMEM, "no memory for the notes of stores") : 0;
    if (err == 0 && mx_place_of(r->recut.base, r->ranks.ranks, r->ranks.rank, 0, path) == 0)
        mx_see_cuts(&s, path);
    for (int32_t i = 0; i < s.n && err == 0; i++)
        if (s.seen[i].folder > 0 && s.seen[i].run != 0)
            err = mx_fail(&r->why, -EEXIST, "%.300s holds %s; --resume continues it, --force discards it",
                          s.seen[i].path, s.seen[i].finished != 0 ? "a finished run" : "an interrupted run");
    mx_forget(&s);
    return err;
}

/* --force discards whole runs: rank 0 will remove what other ranks had of them. Older ones have no number. */
static int find_discarded(struct mx_run *r) {
    struct mx_run_recut *c = &r->recut;
    struct mx_sight s = {.stored = calloc(1, sizeof *s.stored)};
    char path[PATH_MAX];
    if (s.stored == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the notes of stores");
    if (mx_place_of(c->base, r->ranks.ranks, r->ranks.rank, 0, path) == 0) mx_see_cuts(&s, path);
    for (int32_t i = 0; i < s.n && c->n_discarded < MX_RUNS_DISCARDED; i++)
        if (s.seen[i].run > MX_RANKS_MOST) c->discarded[c->n_discarded++] = s.seen[i].run;
    mx_forget(&s);
    return 0;
}

static bool is_discarded(const struct mx_run *r, const struct mx_seen *e) {
    bool found = false;
    for (int32_t i = 0; i < r->recut.n_discarded; i++) found |= e->run == r->recut.discarded[i];
    return found;
}

int mx_run_find_state(struct mx_run *r) {
    struct mx_run_recut *c = &r->recut;
    struct choice found = {.ranks = 0};
    struct own own;
    bool all = false;
    if (r->o.path == NULL || strlen(r->o.path) >= sizeof c->base) return 0;
    if (!mx_is_directory(r->o.path) && strstr(r->o.path, "%r") == NULL) return 0;
    strcpy(c->base, r->o.path);
    if (!r->o.resume && !r->o.dry_run) return r->o.force ? find_discarded(r) : refuse_leftover(r);
    if (!r->o.resume) return 0;
    int err = mx_is_rank(&r->ranks) ? all_have_theirs(r, &own, &all) : 0;
    if (err == 0 && all) {
        found = (struct choice){.ranks = r->ranks.ranks, .cut = own.cut, .run = own.run};
        return take_choice(r, &found);
    }
    if (err == 0) err = share_choice(r, &found);
    return err < 0 || found.ranks == 0 ? err : take_choice(r, &found);
}

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
        return mx_fail(&r->why, -EINVAL, "%.300s is not the store of rank %d that belongs to the others",
                       f->path, k);
    const bool newest = n->time == r->recut.time;
    if (!newest && (n->ranks == 0 || n->before_time != r->recut.time))
        return mx_fail(&r->why, -EINVAL, "%.300s holds no step %lld, which the others have in common",
                       f->path, (long long)r->recut.time);
    f->first_plane = n->problem.first_plane;
    f->planes = n->problem.nz;
    f->buffer = newest ? n->buffer : n->before_buffer;
    f->layout = n->layout;
    f->integrity_unit = n->integrity_unit;
    f->generation = s->facts.generation;
    return 0;
}

/* The note of a run of one cut becomes that of the next one. */
static void turn_note(struct mx_run *r) {
    struct mx_note *n = &r->note;
    const bool newest = n->time == r->recut.time;
    n->time = n->before_time = r->recut.time;
    n->buffer = n->before_buffer = 0;
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
    if (ranks_of(r) == 1) return 0;
    for (int32_t i = 0; i < n->fields.n && mx_sides_periodic(&n->sides, MX_DIM_Z); i++)
        if (n->fields.field[i].in_place)
            return mx_fail(&r->why, -ENOTSUP,
                           "the run in %.300s reads its field %s in place, which ranks around a periodic z "
                           "cannot do: resume it by itself",
                           r->recut.base, n->fields.field[i].name);
    return 0;
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
                    "%.300s, the store of rank %d of %d, is not seen from here: a run goes on with another "
                    "number of ranks where all see all of its stores",
                    f->path, k, c->ranks);
        if (err == 0) err = take_one(r, s, k, next);
        *kept |= err == 0 && s->facts.finished == 2;
        next += f->planes;
    }
    if (err == 0 && next != mx_all_planes(&r->note.problem))
        err = mx_fail(&r->why, -EINVAL, "the stores in %.300s do not hold the whole grid", c->base);
    free(s);
    if (err == 0) turn_note(r);
    return err;
}

/* ------------------------------------------------------------------ planes */

/* Planes of one array of the state, or of a field of C, from where they are. */
struct reader {
    struct mx_run *r;
    const struct mx_layout *to;
    int part;       /* array A or B */
    int32_t fixed;  /* the field of C; -1 = of the state */
    int64_t before; /* planes of the Buffer that stand before the rank's own frame */
    int32_t open;   /* the store; -1 = none */
    mx_device *device;
    mx_buffer *buffer;
    mx_block *block;
};

static void close_store(struct reader *e) {
    mx_block_free(e->block);
    mx_buffer_close(e->buffer);
    mx_device_close(e->device);
    e->block = NULL, e->buffer = NULL, e->device = NULL;
    e->open = -1;
}

static int64_t pitch_of(const struct reader *e, const struct mx_former *f) {
    return e->fixed < 0 ? f->layout.plane_pitch_bytes : f->layout.fixed[e->fixed].plane_pitch_bytes;
}

/* Another memext may have gone on with the store between the look and the lock. */
static int check_unchanged(struct reader *e, const struct mx_former *f) {
    struct mx_store_facts *now = calloc(1, sizeof *now);
    if (now == NULL) return mx_fail(&e->r->why, -ENOMEM, "no memory for the note of a store");
    now->size = sizeof *now;
    int err = mx_store_look(f->path, &e->r->why, now);
    if (err == 0 && now->generation != f->generation)
        err = mx_fail(&e->r->why, -EBUSY, "%.300s was changed by another memext a moment ago: start again",
                      f->path);
    free(now);
    return err;
}

static int open_device(struct reader *e, const struct mx_former *f, const char *backend) {
    const struct mx_options *o = &e->r->o;
    const struct mx_device_options d = {.size = sizeof d,
                                        .backend = backend,
                                        .path = f->path,
                                        .queue_depth = (uint32_t)o->queue_depth,
                                        .max_request_bytes = (uint32_t)o->request_bytes,
                                        .fault = backend == o->backend ? o->fault : NULL,
                                        .resume = true,
                                        .read_only = true,
                                        .no_lock = o->no_lock,
                                        .keep = true};
    struct mx_device_facts facts = {.size = sizeof facts};
    int err = mx_device_open(&d, &e->r->why, &e->device);
    if (err == 0 && (err = check_unchanged(e, f)) < 0) close_store(e);
    if (err < 0) return err;
    mx_device_facts(e->device, &facts);
    if (pitch_of(e, f) % facts.offset_align_bytes == 0 && f->integrity_unit % facts.offset_align_bytes == 0)
        return 0;
    close_store(e);
    return -ENOTSUP; /* planes are not transferred one by one there */
}

/* A store of an older memext has none of C, and none are made in it. */
static int open_hashes_of_fixed(struct reader *e, const struct mx_former *f) {
    char field[16], name[24];
    mx_buffer *sums = NULL;
    snprintf(name, sizeof name, "%s.sum", mx_note_fixed(e->fixed, field));
    if (pitch_of(e, f) % MX_FIXED_UNIT_BYTES != 0 || mx_buffer_open(e->device, name, NULL, &sums) < 0)
        return 0;
    mx_buffer_close(sums);
    return mx_run_check_fixed(e->r, e->buffer, e->fixed, true);
}

static int open_buffer(struct reader *e, const struct mx_former *f) {
    char field[16];
    const char *name = e->fixed >= 0  ? mx_note_fixed(e->fixed, field)
                       : e->part == 1 ? mx_note_partners[f->buffer]
                                      : mx_note_buffers[f->buffer];
    mx_why *why = &e->r->why;
    int err = mx_buffer_open(e->device, name, why, &e->buffer);
    if (err < 0 || f->integrity_unit == 0) return err;
    if (e->fixed >= 0) return open_hashes_of_fixed(e, f);
    err = mx_buffer_integrity(e->buffer, (uint64_t)f->integrity_unit, e->r->budget, why);
    if (err == 0 && (err = mx_buffer_integrity_load(e->buffer)) < 0)
        mx_fail(why, err, "the hashes of %.300s cannot be read: %s", f->path, strerror(-err));
    return err;
}

static int open_store(struct reader *e, int32_t k) {
    const struct mx_former *f = &e->r->recut.former[k];
    close_store(e);
    const char *backend = e->r->backend->anonymous ? NULL : e->r->o.backend;
    int err = open_device(e, f, backend);
    if (err == -ENOTSUP) err = open_device(e, f, "mmap");
    if (err == 0) err = open_buffer(e, f);
    const struct mx_block_options o = {.size = sizeof o, .budget = e->r->budget, .device = e->device};
    if (err == 0) err = mx_block_create(&o, (uint64_t)pitch_of(e, f), &e->r->why, &e->block);
    if (err < 0) return err;
    e->open = k;
    return 0;
}

/* The rank that had plane z of the whole grid, frame counted; frames are of those at the ends. */
static int32_t owner_of(const struct mx_run *r, int64_t z) {
    const struct mx_run_recut *c = &r->recut;
    int32_t k = 0;
    while (k + 1 < c->ranks && z - r->whole.h >= c->former[k + 1].first_plane) k++;
    return k;
}

static int read_plane(struct reader *e, const struct mx_former *f, int64_t z) {
    const int64_t pitch = pitch_of(e, f), offset = e->fixed < 0 ? 0 : f->layout.fixed[e->fixed].offset_bytes;
    const struct mx_span span = {(uint64_t)(offset + (z - f->first_plane) * pitch), (uint64_t)pitch,
                                 mx_block_data(e->block)};
    mx_ticket *ticket = NULL;
    if (span.offset_bytes + span.bytes > mx_buffer_bytes(e->buffer))
        return mx_fail(&e->r->why, -EIO, "%.300s is shorter than its note says: the store is damaged",
                       f->path);
    int err = mx_buffer_read(e->buffer, &span, 1, &ticket);
    if (err == 0) err = mx_wait(ticket);
    e->r->recut.read_bytes += span.bytes;
    if (err == -EBADMSG) return mx_field_damaged(e->buffer, &f->layout, "the state", &e->r->why);
    return err < 0 ? mx_fail(&e->r->why, err, "plane %lld of %.300s cannot be read: %s",
                             (long long)(z - f->first_plane), f->path, strerror(-err))
                   : 0;
}

static int former_plane(void *context, int64_t z, char *plane) {
    struct reader *e = context;
    const struct mx_run *r = e->r;
    const struct mx_problem *p = &r->whole;
    z += r->o.problem.first_plane - e->before;
    if (mx_sides_periodic(&p->sides, MX_DIM_Z)) z = p->h + mx_wrap(z - p->h, p->nz);
    const int32_t k = owner_of(r, z);
    const struct mx_former *f = &r->recut.former[k];
    int err = mx_run_stopped(r);
    if (err == 0 && e->open != k) err = open_store(e, k);
    if (err == 0) err = read_plane(e, f, z);
    const int64_t from_pitch =
        e->fixed < 0 ? f->layout.row_pitch_bytes : f->layout.fixed[e->fixed].row_pitch_bytes;
    const char *from = err == 0 ? mx_block_data(e->block) : NULL;
    for (int64_t y = 0; y < e->to->rows && err == 0; y++)
        memcpy(plane + y * e->to->row_pitch_bytes, from + y * from_pitch, (size_t)e->to->row_bytes);
    return err;
}

static int read_state(struct mx_run *r) {
    const int32_t n = r->tuned.shape.init_both ? r->n_buffers : 1, parts = r->tuned.shape.pairs ? 2 : 1;
    int err = 0;
    for (int32_t i = 0; i < n * parts && err == 0; i++) {
        struct reader e = {.r = r, .to = &r->report.layout, .part = i / n, .fixed = -1, .open = -1};
        err = mx_run_pass(r, "state", mx_run_buffer(r, i % n, i / n), e.to, former_plane, &e);
        close_store(&e);
    }
    return err;
}

static int read_fixed(struct mx_run *r) {
    int err = 0;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem) && err == 0; i++) {
        struct mx_layout layout;
        if (r->file[i] != NULL || r->report.layout.fixed[i].user_file) continue;
        mx_layout_of_fixed(&r->report.layout, i, &layout);
        layout.planes = layout.buffer_bytes / layout.plane_pitch_bytes;
        struct reader e = {.r = r,
                           .to = &layout,
                           .fixed = i,
                           .before = r->report.layout.fixed[i].offset_bytes / layout.plane_pitch_bytes,
                           .open = -1};
        err = mx_run_pass(r, "fields", r->fixed[i], &layout, former_plane, &e);
        close_store(&e);
    }
    return err;
}

int mx_run_read_former(struct mx_run *r) {
    int err = r->note.pending ? 0 : read_state(r);
    return err == 0 ? read_fixed(r) : err;
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
    const int32_t ranks = ranks_of(r), cut = r->recut.found ? r->recut.to : 0;
    char mine[PATH_MAX];
    for (int32_t k = 0; k < ranks; k++)
        if (mx_place_of(r->recut.base, ranks, k, cut, mine) == 0 && strcmp(mine, path) == 0) return true;
    return false;
}

/* Can nobody go on with the set that it is of, nor get anything out of it? The place of another one of the
 * set is now this run's, or holds a store that nothing was committed to; or the run was done, and was killed
 * while its ranks removed their stores. */
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
