/* SPDX-License-Identifier: BSD-3-Clause */
/* phases.c - a run with its store open, phase by phase. */
#include "run/phases.h"
#include "core/device.h"
#include "grid/array.h"
#include "machine/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

/* ------------------------------------------------------------------ commits */

/* What a program says of the values that it gives. */
static int name_given(struct mx_run *r) {
    struct mx_note *n = &r->note;
    int err = 0;
    if (r->source.identity == NULL) return 0;
    if (r->system == NULL) {
        err = r->source.identity(r->source.context, "", &n->identity.sample, &r->why);
        n->identity.sampled = err == 0;
    }
    for (int32_t i = 0; i < n->fields.n && err == 0; i++) {
        struct mx_run_field *f = &n->fields.field[i];
        if (!f->program) continue;
        err = r->source.identity(r->source.context, f->name, &f->identity.sample, &r->why);
        f->identity.sampled = err == 0;
    }
    return err > 0 ? -EIO : err;
}

static int begin_note(struct mx_run *r) {
    struct mx_note *n = &r->note;
    n->problem = r->o.problem;
    n->layout = r->report.layout;
    n->sides = r->whole.sides;
    if (mx_is_rank(&r->ranks)) n->rank = r->ranks.rank, n->ranks = r->ranks.ranks;
    n->started_s = (int64_t)time(NULL);
    n->framed = 0;
    const int numbered = mx_run_agree_number(r, &n->run);
    if (numbered < 0) return numbered;
    if (r->system != NULL) {
        n->system = *r->system;
        n->problem.system = &n->system;
        n->fields = r->fields;
        for (int i = 0; i < n->fields.n; i++) n->fields.field[i].npy.fd = -1;
        if (realpath(r->o.kernel, n->kernel) == NULL)
            return mx_fail(&r->why, -errno, "%.300s cannot be named in the store: %s", r->o.kernel,
                           strerror(errno));
    }
    if (r->o.init != NULL) snprintf(n->init, sizeof n->init, "%s", r->o.init);
    int err = mx_frame_print(&r->o.frames, n->frame, &r->why);
    if (err < 0) return err;
    snprintf(n->raw, sizeof n->raw, "%s", r->input_raw);
    if (r->o.source) {
        snprintf(n->source, sizeof n->source, "%s", r->source.name);
        return name_given(r);
    }
    if (r->o.input == NULL) return 0;
    err = mx_array_real(r->o.input, n->input);
    if (err < 0)
        return mx_fail(&r->why, err, "%.300s cannot be named in the store: %s", r->o.input, strerror(-err));
    return mx_input_look(r->input.npy.fd, r->input.npy.data_offset_bytes, r->o.input, &r->why, &n->identity);
}

/* What a resumed run may have changed. */
static void renew_note(struct mx_run *r) {
    struct mx_note *n = &r->note;
    n->snapshots = r->snapshots.asked;
    n->keep = r->o.keep;
    n->ignores_nonfinite = r->finite.ignored;
    n->dram_bytes = r->o.dram_bytes;
    n->plan = r->report.plan;
    mx_run_note_norms(r);
    n->n_buffers = r->n_buffers;
    n->commit_every = r->commit_every_s;
    for (int32_t i = 0; i < r->fields.n; i++) {
        struct mx_run_field *f = &n->fields.field[i];
        if (!r->fields.field[i].in_place) continue;
        *f = r->fields.field[i]; /* it may be elsewhere now */
        f->npy.fd = -1;
    }
    snprintf(n->backend, sizeof n->backend, "%s", r->backend->name);
    gethostname(n->host, sizeof n->host - 1);
    for (char *c = n->host; *c != 0; c++)
        if (*c < 0x20 || *c > 0x7e) *c = '?';
}

/* Before anything is touched: paths may be longer than a note. */
int mx_run_check_note(struct mx_run *r) {
    enum { MORE_BYTES = 512 }; /* of numbers, a checksum, another plan */
    char text[MX_NOTE_BYTES];
    if (r->resumed || r->backend->anonymous) return 0;
    int err = begin_note(r);
    if (err < 0) return err;
    renew_note(r);
    r->note.pending = r->fuse.source;
    if (mx_note_print(&r->note, text, sizeof text - MORE_BYTES) != -ENOSPC) return 0;
    return mx_fail(&r->why, -ENAMETOOLONG,
                   "a store names the files that its run began with in %d bytes, and these need more: use "
                   "shorter paths",
                   (int)sizeof text - MORE_BYTES);
}

static int write_note(struct mx_run *r) {
    char text[MX_NOTE_BYTES];
    r->note.committed_s = (int64_t)time(NULL);
    int n = mx_note_print(&r->note, text, sizeof text);
    return n < 0 ? n : mx_device_commit(r->device, text, (size_t)n);
}

/* How often that happens is decided by the clock: it is counted by itself, no part of what is predicted. */
static int save_hashes(struct mx_run *r, mx_buffer *buffer) {
    r->report.hash_bytes += mx_buffer_integrity_bytes(buffer);
    r->hashed_bytes += mx_buffer_integrity_bytes(buffer);
    return mx_buffer_integrity_save(buffer);
}

/* Of C, which is never written again: with the first commit. */
static int save_fixed_hashes(struct mx_run *r) {
    int err = 0;
    for (int32_t i = 0; i < MX_MAX_FIXED && err == 0 && !r->fixed_saved; i++)
        if (r->file[i] == NULL && r->fixed[i] != NULL) err = save_hashes(r, r->fixed[i]);
    r->fixed_saved |= err == 0;
    return err;
}

/* time: steps since the beginning of this process's part of the run. Called on a thread of the executor. */
static int commit(void *context, int64_t time, int32_t buffer) {
    struct mx_run *r = context;
    int err = mx_run_agree_finite(r, MX_CHANNEL_COMMIT, r->first_time + time);
    if (err == 0) err = mx_run_field_files_unchanged(r, NULL);
    if (err == 0 && r->note.integrity_unit > 0) err = save_hashes(r, r->buffer[buffer]);
    if (err == 0 && r->note.integrity_unit > 0 && r->tuned.shape.pairs)
        err = save_hashes(r, r->partner[buffer]);
    if (err == 0 && r->note.integrity_unit > 0) err = save_fixed_hashes(r);
    if (err == 0) err = mx_run_sync_traces(r);
    if (err == 0) err = mx_run_sync_snapshots(r, r->first_time + time);
    if (err == 0) err = mx_run_publish_snapshots(r, r->first_time + time);
    if (err < 0) return err;
    const int64_t former = r->note.before_time = r->note.time;
    r->note.before_buffer = r->note.buffer;
    r->note.time = r->first_time + time;
    r->note.buffer = buffer;
    /* Another state than the one that a former run ended with: finish() gives this one's. */
    if (r->note.time != former) r->note.checksum[0] = 0;
    if (r->tuned.shape.in_place) r->note.before_time = r->note.time, r->note.before_buffer = buffer;
    mx_run_note_norms(r);
    r->note.pending = r->fuse.source && r->note.time == 0;
    if (r->tuned.shape.in_place && !r->tuned.shape.init_both) r->note.framed = 0; /* it goes over all */
    if (!r->note.pending) r->note.framed |= UINT32_C(1) << buffer;
    err = write_note(r);
    if (err == 0) r->fuse.unfinished = r->note.pending;
    /* What was committed before may be overwritten when no rank can need it any more. */
    if (err == 0 && mx_is_rank(&r->ranks)) err = mx_link_meet(r->ranks.link, MX_CHANNEL_COMMIT, NULL);
    if (err == 0) mx_run_committed(r);
    if (err < 0) r->note.time = former; /* which is what there is to go on from */
    r->recut.turned |= err == 0;
    return err;
}

/* Steps as above; whether they are committed or not. */
static int take_sweep(void *context, int64_t steps, mx_why *why) {
    struct mx_run *r = context;
    int err = mx_run_write_traces(r, r->first_time + steps, why);
    return err < 0 ? err : mx_run_check(r, r->first_time + steps, why);
}

static bool decides(void *context, int64_t steps) {
    const struct mx_run *r = context;
    return mx_run_may_end(r, r->first_time + steps);
}

/* Levels that may be computed beyond the last sweep that was taken; 0 = any. */
static int64_t most_ahead(const struct mx_run *r) {
    const int64_t traces = r->report.probes > 0 ? mx_levels_of(&r->rest, r->points.capacity) : 0;
    const int64_t norms = r->norms.norms != NULL ? mx_norms_most_ahead(r->norms.norms) : 0;
    return traces == 0 || (norms > 0 && norms < traces) ? norms : traces;
}

static int fail_commit(struct mx_run *r, const char *which, int err) {
    mx_why reason = {""};
    mx_device_error(r->device, &reason);
    return mx_fail(&r->why, err, "the %s commit on %.300s failed: %s", which, r->report.device.place,
                   reason.text[0] != 0 ? reason.text : strerror(-err));
}

/* ------------------------------------------------------------------ progress */

void mx_run_on_progress(void *context, int64_t done) {
    struct mx_run *r = context;
    mx_run_progress_to(r, done);
    mx_timeline_updates(r->timeline, done);
}

/* A pass over all planes with progress. */
struct pass {
    struct mx_run *r;
    const struct mx_layout *layout;
    mx_source_fn *use;
    void *context;
};

static int pass_plane(void *context, int64_t z, char *plane) {
    struct pass *p = context;
    mx_run_progress_to(p->r, (z + 1) * p->layout->plane_pitch_bytes);
    return p->use(p->context, z, plane);
}

int mx_run_pass_layout(struct mx_run *r, const char *label, mx_buffer *buffer, const struct mx_layout *layout,
                       bool write, mx_source_fn *use, void *context) {
    struct pass p = {r, layout, use, context};
    mx_run_begin_phase(r, label, "B", layout->buffer_bytes);
    return (write ? mx_field_write : mx_field_read)(buffer, layout, r->budget, &r->stop, pass_plane, &p,
                                                    &r->why);
}

int mx_run_pass(struct mx_run *r, const char *label, mx_buffer *buffer, const struct mx_layout *layout,
                mx_source_fn *source, void *context) {
    return mx_run_pass_layout(r, label, buffer, layout, true, source, context);
}

static int pass(struct mx_run *r, const char *label, mx_buffer *buffer, bool write, mx_source_fn *use,
                void *context) {
    return mx_run_pass_layout(r, label, buffer, &r->report.layout, write, use, context);
}

/* ------------------------------------------------------------------ initial grid */

/* A plane of the Buffer, as sources and sinks see it, with or without its frame. */
static struct mx_grid_box box_of(const struct mx_run *r, bool frame, int64_t z, char *plane) {
    const struct mx_problem *p = &r->o.problem;
    const struct mx_layout *l = &r->report.layout;
    return (struct mx_grid_box){.size = sizeof(struct mx_grid_box),
                                .x1 = p->nx + (frame ? 2 * p->h : 0),
                                .y1 = p->ny + (frame ? 2 * p->h : 0),
                                .z0 = z,
                                .z1 = z + 1,
                                .row_pitch_bytes = l->row_pitch_bytes,
                                .plane_pitch_bytes = l->plane_pitch_bytes,
                                .data = plane,
                                .field = ""};
}

/* A plane that a sink is to get: *box is it, or false where it gets none of it, since it wants no frame. */
static bool box_out(const struct mx_run *r, enum mx_dtype dtype, int64_t z, char *plane,
                    struct mx_grid_box *box) {
    const struct mx_problem *p = &r->o.problem;
    const int64_t of_all = z + p->first_plane;
    const int64_t h = p->h, corner = h * r->report.layout.row_pitch_bytes + h * mx_dtype_bytes(dtype);
    const bool bare = r->o.bare_output;
    if ((bare || mx_has_neighbour(p, 0)) && z < h) return false;
    if ((bare || mx_has_neighbour(p, 1)) && z >= p->nz + h) return false;
    *box = bare ? box_of(r, false, of_all - h, plane + corner) : box_of(r, true, of_all, plane);
    return true;
}

/* Where ranks go on around a periodic z no rank has the frame there, for it is somebody's interior: whoever
 * has a plane that it copies gives it once more. */
static bool frame_out(const struct mx_run *r, int64_t z, struct mx_grid_box *box) {
    const struct mx_problem *p = &r->o.problem;
    const int64_t all = mx_all_planes(p), i = z - p->h + p->first_plane;
    if (r->o.bare_output || !mx_is_rank(&r->ranks) || !mx_sides_periodic(&r->whole.sides, MX_DIM_Z) ||
        (i >= p->h && i < all - p->h))
        return false;
    box->z0 = i < p->h ? i + all + p->h : i - all + p->h;
    box->z1 = box->z0 + 1;
    return true;
}

static int give_planes(struct mx_run *r, const struct mx_sink *sink, int64_t z, struct mx_grid_box *box) {
    int err = sink->region(sink->context, box, &r->why);
    if (err == 0 && frame_out(r, z, box)) err = sink->region(sink->context, box, &r->why);
    return err > 0 ? -EIO : err;
}

/* A plane as the source has it, with its frame or without. */
static int ask_source(void *context, int64_t z, char *at) {
    struct mx_run *r = context;
    const struct mx_grid_box box = box_of(r, r->made.kind == MX_FRAME_INCLUDED, z, at);
    int err = r->source.region(r->source.context, &box, &r->why);
    return err > 0 ? -EIO : err;
}

int mx_plain_plane(void *context, int64_t z, char *plane) {
    struct mx_run *r = context;
    const struct mx_problem *p = &r->whole;
    if (r->source.region == NULL) return mx_fill_plane(&r->fill, z, plane);
    if (r->made.kind == MX_FRAME_INCLUDED) return ask_source(r, z, plane);
    return mx_frame_fill(&r->made, p, p->dtype, r->report.layout.row_pitch_bytes, z, plane, ask_source, r);
}

int mx_fill_sided(void *context, int64_t z, char *plane) {
    const struct mx_sided *s = context;
    const struct mx_run *r = s->r;
    const struct mx_problem *p = &r->whole;
    z += r->o.problem.first_plane;
    if (mx_sides_all_fixed(&p->sides)) return s->fill(s->context, z, plane);
    int err = s->fill(s->context, mx_side_source(p->sides.side[MX_DIM_Z], p->nz, p->h, z), plane);
    if (err == 0) mx_sides_plane(&r->sides, p, &r->report.layout, s->array, plane);
    return err;
}

/* The source of a Buffer that is to hold the same as another one. */
struct copy {
    struct mx_run *r;
    mx_buffer *buffer;
    struct mx_plane_stream *from;
    const struct mx_layout *layout;
};

static int copy_plane(void *context, int64_t z, char *plane) {
    struct copy *c = context;
    char *from;
    (void)z;
    int err = mx_plane_stream_next(c->from, &from);
    if (err == -EBADMSG) return mx_field_damaged(c->buffer, c->layout, "the grid", &c->r->why);
    if (err != 1) return err < 0 ? err : -EIO;
    memcpy(plane, from, (size_t)c->layout->plane_pitch_bytes);
    return 0;
}

static int copy_buffer(struct mx_run *r, mx_buffer *from, mx_buffer *to) {
    struct copy c = {r, from, NULL, &r->report.layout};
    int err = mx_plane_stream_open(from, c.layout, r->budget, false, &r->why, &c.from);
    if (err == 0) err = pass(r, "frames", to, true, copy_plane, &c);
    return mx_plane_stream_close(c.from, err);
}

uint32_t mx_run_unframed(const struct mx_run *r) {
    if (!mx_run_has_store(r) || r->note.pending || !r->tuned.shape.init_both || r->rest.nt == 0) return 0;
    /* Hashes are kept of the newest state alone: with --integrity the frames of the others are made anew. */
    const uint32_t sound =
        r->note.integrity_unit > 0 || r->o.integrity ? UINT32_C(1) << r->note.buffer : r->note.framed;
    return ((UINT32_C(1) << r->n_buffers) - 1) & ~sound;
}

/* An algorithm that never writes the frame finds it in every Buffer, and in both arrays of pairs. */
static int copy_frames(struct mx_run *r) {
    const uint32_t missing = mx_run_unframed(r);
    int err = 0;
    for (int32_t i = 0; i < mx_run_buffers(r) && err == 0; i++) {
        const int32_t number = i % r->n_buffers, part = i / r->n_buffers;
        if ((missing >> number & 1) != 0)
            err = copy_buffer(r, mx_run_buffer(r, r->note.buffer, part), mx_run_buffer(r, number, part));
    }
    if (err == 0) r->note.framed |= missing;
    return err;
}

struct mx_fields_fill mx_run_fill(struct mx_run *r, int32_t array, int32_t index,
                                  const struct mx_layout *layout) {
    return (struct mx_fields_fill){.fields = &r->fields,
                                   .problem = &r->whole,
                                   .layout = layout,
                                   .threads = r->tuned.plan.threads,
                                   .array = array,
                                   .index = index,
                                   .source = &r->source,
                                   .why = &r->why};
}

static int64_t periodic_source(const struct mx_problem *p, int dim, int64_t i) {
    const int64_t n = mx_extent_of(p, dim);
    return mx_sides_periodic(&p->sides, dim) ? p->h + mx_wrap(i - p->h, n) : i;
}

int mx_fill_sided_field(void *context, int64_t z, char *plane) {
    const struct mx_sided_field *s = context;
    const struct mx_problem *p = &s->run->whole;
    z += s->run->o.problem.first_plane - s->before;
    const int64_t e = mx_dtype_bytes(s->dtype), pitch = s->layout->row_pitch_bytes, all = p->nx + 2 * p->h;
    int err = mx_fields_fill_plane(s->fill, periodic_source(p, MX_DIM_Z, z), plane);
    for (int64_t y = 0; y < s->layout->rows && err == 0 && mx_sides_periodic(&p->sides, MX_DIM_X); y++)
        for (int64_t x = 0; x < all; x = x + 1 == p->h ? p->nx + p->h : x + 1)
            memcpy(plane + y * pitch + x * e, plane + y * pitch + periodic_source(p, MX_DIM_X, x) * e,
                   (size_t)e);
    for (int64_t y = 0; y < s->layout->rows && err == 0; y++) {
        const int64_t from = periodic_source(p, MX_DIM_Y, y);
        if (from != y) memcpy(plane + y * pitch, plane + from * pitch, (size_t)s->layout->row_bytes);
    }
    return err;
}

/* The fields that a kernel only reads, as far as the run has a copy of them. */
static int write_fixed(struct mx_run *r) {
    int err = 0;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem) && err == 0; i++) {
        struct mx_layout layout;
        if (r->file[i] != NULL) continue;
        mx_layout_of_fixed(&r->report.layout, i, &layout);
        struct mx_fields_fill fill = mx_run_fill(r, MX_FIELD_OF_C, i, &layout);
        const int64_t pitch = layout.plane_pitch_bytes;
        struct mx_sided_field sided = {r, &layout, r->system->fixed[i].dtype, &fill,
                                       r->report.layout.fixed[i].offset_bytes / pitch};
        layout.planes = layout.buffer_bytes / pitch;
        err = mx_run_pass_layout(r, "fields", r->fixed[i], &layout, true, mx_fill_sided_field, &sided);
    }
    return err;
}

/* Buffers that get the state which a run begins with: as many as the algorithm wants to find it in. */
static int32_t first_count(const struct mx_run *r) { return r->tuned.shape.init_both ? r->n_buffers : 1; }
static uint32_t first_buffers(const struct mx_run *r) { return (UINT32_C(1) << first_count(r)) - 1; }

/* The note of a store that another cut of the run goes on in. */
static int turn_note(struct mx_run *r) {
    struct mx_note *n = &r->note;
    n->problem = r->o.problem;
    if (r->system != NULL) n->problem.system = &n->system;
    n->layout = r->report.layout;
    n->rank = mx_is_rank(&r->ranks) ? r->ranks.rank : 0;
    n->ranks = mx_is_rank(&r->ranks) ? r->ranks.ranks : 0;
    n->cut = r->recut.to;
    n->framed = 0;
    return mx_run_agree_number(r, &n->run);
}

static int turn(struct mx_run *r) {
    int err = turn_note(r);
    if (err == 0) err = mx_run_read_former(r);
    if (err == 0 && !r->note.pending) r->note.framed = first_buffers(r);
    r->report.phase[MX_PHASE_INIT].read_bytes += (int64_t)r->recut.read_bytes;
    return err;
}

/* Of several Buffers that get the same the first is counted. */
static int write_counted(struct mx_run *r, int32_t number, int part, struct mx_sided *sided,
                         struct mx_nonfinite *found) {
    struct mx_counted_fill counted = {r, part, mx_fill_sided, sided, found};
    mx_buffer *buffer = mx_run_buffer(r, number, part);
    return number == 0 ? pass(r, "initial", buffer, true, mx_fill_counted, &counted)
                       : pass(r, "initial", buffer, true, mx_fill_sided, sided);
}

/* State 0; of pairs in both arrays. */
static int write_initial_grid(struct mx_run *r) {
    const int32_t n = first_count(r), parts = r->tuned.shape.pairs ? 2 : 1;
    struct mx_nonfinite found = {.cells = 0};
    int err = r->recut.asked ? turn(r) : r->resumed ? 0 : begin_note(r);
    if (r->recut.asked && !r->note.pending) return err;
    if (err == 0 && r->system == NULL) {
        struct mx_sided sided = {r, 0, mx_plain_plane, r};
        for (int32_t i = 0; i < n && err == 0; i++) err = write_counted(r, i, 0, &sided, &found);
        if (err == 0) r->note.framed |= first_buffers(r);
        return err < 0 ? err : mx_run_check_initial(r, &found);
    }
    for (int32_t i = 0; i < n * parts && err == 0; i++) {
        struct mx_fields_fill fill = mx_run_fill(r, i / n, 0, &r->report.layout);
        struct mx_sided sided = {r, i / n, mx_fields_fill_plane, &fill};
        err = write_counted(r, i % n, i / n, &sided, &found);
    }
    if (err == 0) r->note.framed |= first_buffers(r);
    if (err == 0) err = mx_run_check_initial(r, &found);
    return err < 0 || r->resumed ? err : write_fixed(r);
}

/* The first sweep reads what the run begins with, and no Buffer holds it. */
static int begin_fused(struct mx_run *r) {
    int err = r->resumed ? 0 : begin_note(r);
    for (int32_t i = 0; i < r->fuse.n; i++) r->note.sample[i] = r->fuse.field[i].field.identity.sample;
    if (err == 0 && r->tuned.shape.init_both) {
        mx_run_begin_phase(r, "initial", "B", r->report.predicted_init_bytes);
        err = mx_run_fuse_frames(r);
        if (err == 0) r->note.framed |= first_buffers(r);
    }
    return err < 0 || r->resumed ? err : write_fixed(r);
}

/* --integrity that begins with this run has no hashes of the state that it goes on from, and a rank may have
 * to come back to it once the notes have that there are hashes: a table is kept in which none is known. */
static int save_no_hashes(struct mx_run *r) {
    const int32_t buffer = r->note.buffer;
    if (!r->plain || r->note.integrity_unit == 0) return 0;
    int err = save_hashes(r, r->buffer[buffer]);
    if (err == 0 && r->tuned.shape.pairs) err = save_hashes(r, r->partner[buffer]);
    return err == 0 ? save_fixed_hashes(r) : err;
}

/* A rank that goes back to the state before its newest one says so in its store before it overwrites that,
 * and nobody commits anything else before: what any two stores say are two commits that follow one another.
 * The others have said before that what the run was asked for (ranks.c, share_note): as long as the note of
 * one rank alone has that it is the newest, and then all of them have it. */
static int settle_state(struct mx_run *r) {
    const struct mx_run_ranks *q = &r->ranks;
    if (!mx_is_rank(q) || !mx_run_has_store(r)) return 0;
    int err = save_no_hashes(r);
    if (err == 0 && q->uneven && !q->went_back) err = write_note(r);
    if (err < 0) return fail_commit(r, "first", err);
    if (q->uneven && (err = mx_run_meet(r)) < 0) return err;
    if (q->went_back && (err = write_note(r)) < 0) return fail_commit(r, "first", err);
    return mx_run_meet(r);
}

/* All that can be refused was: what is in the way goes now, and not before. */
static int take_places(struct mx_run *r) {
    int err = mx_device_take(r->device, &r->why);
    if (err == 0 && r->o.force) mx_run_discard_former(r);
    if (err == 0) mx_run_sweep_left(r);
    if (err == 0) err = mx_run_begin_points(r);
    return err < 0 ? err : mx_run_begin_snapshots(r);
}

static int initialise(struct mx_run *r) {
    uint64_t begin = mx_clock_ns();
    const bool fresh = !mx_run_has_store(r) || r->note.pending;
    int err = take_places(r);
    if (err == 0) err = mx_run_begin_fuse(r);
    r->fill =
        (struct mx_fill){.problem = &r->whole, .layout = &r->report.layout, .threads = r->tuned.plan.threads};
    if (r->o.init != NULL) r->fill.init = mx_init_find(r->o.init);
    if (err == 0 && fresh) err = r->fuse.source ? begin_fused(r) : write_initial_grid(r);
    renew_note(r);
    if (err == 0) err = settle_state(r);
    if (err == 0 && !fresh) err = copy_frames(r);
    /* In place nothing can be resumed once the computation has begun: such a store gets its note at the end.
     */
    bool commits = r->report.device.durable && mx_run_resumable(r);
    if (err == 0 && fresh && commits && (err = commit(r, 0, 0)) < 0) fail_commit(r, "first", err);
    if (err == 0 && r->resumed) mx_run_remove_former(r);
    r->report.init_seconds = mx_seconds_since(begin);
    return err;
}

/* ------------------------------------------------------------------ computation */

static const char *event_name(const struct mx_event *e) {
    static const char *const names[] = {"load", "store", "copy", "advance", "commit"};
    static const char *const seam_names[] = {"load-faces", "store-faces"};
    if (e->waiting) return "wait";
    if (e->sweep) return "sweep";
    if (e->file) return e->kind == MX_STEP_LOAD ? "feed" : "take";
    return e->seams ? seam_names[e->kind] : names[e->kind];
}

static void on_event(void *context, const struct mx_event *e) {
    const struct mx_run *r = context;
    mx_timeline_event(r->timeline, event_name(e), e->begin_ns, e->end_ns,
                      (int64_t[2]){e->region.y0, e->region.y1}, (int64_t[2]){e->region.z0, e->region.z1},
                      e->amount);
}

static int open_stream(struct mx_run *r, const struct mx_output *output, FILE **out) {
    *out = output->fd >= 0 ? mx_output_stream(output) : NULL;
    if (output->fd < 0 || *out != NULL) return 0;
    return mx_fail(&r->why, -errno, "%.300s cannot be written: %s", output->path, strerror(errno));
}

static int start_timeline(struct mx_run *r) {
    const struct mx_report *p = &r->report;
    FILE *of_rank[2];
    int err = mx_run_begin_observed(r, of_rank);
    if (err < 0) return err;
    if (r->outputs.timeline.fd < 0 && r->outputs.trace.fd < 0 && of_rank[0] == NULL && of_rank[1] == NULL)
        return 0;
    mx_output_show(&r->outputs.timeline);
    err = open_stream(r, &r->outputs.timeline, &r->streams[0]);
    if (err == 0) err = open_stream(r, &r->outputs.trace, &r->streams[1]);
    for (int i = 0; i < 2 && err < 0; i++)
        if (of_rank[i] != NULL) fclose(of_rank[i]);
    if (err < 0) return err;
    for (int i = 0; i < 2; i++)
        if (of_rank[i] != NULL) r->streams[i] = of_rank[i];
    struct mx_timeline_options t = {.file = r->streams[0],
                                    .trace = r->streams[1],
                                    .problem = &r->o.problem,
                                    .plan = &p->plan,
                                    .device = r->device,
                                    .files = r->file,
                                    .n_files = MX_MAX_FIXED,
                                    .place = r->backend->anonymous ? "" : p->device.place,
                                    .n_buffers = r->n_buffers,
                                    .rank = r->ranks.rank,
                                    .ranks = mx_is_rank(&r->ranks) ? r->ranks.ranks : 0};
    for (int32_t i = 0; i < r->n_buffers; i++) {
        t.names[i] = mx_note_buffers[i];
        t.buffer_bytes[i] = (uint64_t)p->layout.buffer_bytes;
        t.buffer_offset_bytes[i] = mx_buffer_offset(r->buffer[i]);
        /* What is resident by its backend's word needs no looking at. */
        if (r->backend->anonymous && !r->resident) mx_buffer_map(r->buffer[i], NULL, &t.mapped[i]);
    }
    return mx_timeline_start(&t, &r->why, &r->timeline);
}

/* Streams are closed by the timeline. What was seen of a run that failed is published too. */
static int stop_timeline(struct mx_run *r, int err) {
    mx_why why = {""};
    int observed = mx_timeline_stop(r->timeline, &why);
    r->timeline = NULL;
    if (observed == 0 && err == 0) observed = mx_run_join_observed(r, &why);
    if (observed == 0 && r->outputs.timeline.fd >= 0)
        observed = mx_output_publish(&r->outputs.timeline, "the timeline", &why);
    if (observed == 0 && r->outputs.trace.fd >= 0)
        observed = mx_output_publish(&r->outputs.trace, "the trace", &why);
    if (err == 0 && observed < 0) r->why = why;
    return err < 0 ? err : observed;
}

static int make_engine(struct mx_run *r) {
    const struct mx_plan *p = &r->report.plan;
    struct mx_engine_options e =
        mx_take_engine(&r->rest, &r->report.machine, p, &r->report.layout, &r->tuned.shape);
    e.accel = r->accel;
    r->ops = mx_engine_find(p->engine);
    int err = r->ops->create(&e, &r->why, &r->engine);
    if (err == 0) r->ops->describe(r->engine, &r->report.plan);
    return err;
}

static struct mx_counters counters_since(const struct mx_run *r, const struct mx_counters *s) {
    struct mx_counters n;
    mx_run_counters(r, &n);
    return (struct mx_counters){n.size,
                                n.read_bytes - s->read_bytes,
                                n.write_bytes - s->write_bytes,
                                n.read_requests - s->read_requests,
                                n.write_requests - s->write_requests,
                                n.retries - s->retries,
                                n.short_transfers - s->short_transfers,
                                n.read_ns - s->read_ns,
                                n.write_ns - s->write_ns,
                                n.peak_in_flight};
}

/* On a mapping the kernel moved the data: its own counters. */
static void take_kernel_bytes(struct mx_run *r) {
    struct mx_report *p = &r->report;
    if (p->moves || r->resident) return;
    p->counters.read_bytes = r->backend->anonymous ? p->usage.swap_in_bytes : p->usage.storage_read_bytes;
    p->counters.write_bytes = r->backend->anonymous ? p->usage.swap_out_bytes : p->usage.storage_write_bytes;
}

static void take_measurement(struct mx_run *r, const struct mx_executed *done) {
    struct mx_report *p = &r->report;
    take_kernel_bytes(r);
    p->seconds = (double)done->total_ns * 1e-9;
    p->update_s = (double)done->update_ns * 1e-9;
    p->blk2blk_s = (double)done->copy_ns * 1e-9;
    p->wait_s = (double)done->wait_ns * 1e-9;
    p->updates = done->updates;
    p->block_bytes = (uint64_t)done->block_bytes;
    p->accel.put_bytes = done->put_bytes;
    p->accel.get_bytes = done->get_bytes;
    p->accel.aside_put_bytes = done->aside_put_bytes;
    p->accel.aside_get_bytes = done->aside_get_bytes;
    if (r->accel != NULL) {
        const struct mx_accel_counters c = mx_accel_counters(r->accel);
        p->accel.operations = c.operations;
        p->accel.pinned = c.pinned;
    }
    p->steps_done = r->first_time + done->steps_done;
    r->result = done->result;
}

/* Runs the schedule between two looks at all counters. */
static int execute(struct mx_run *r, const struct mx_execution *x, struct mx_executed *done) {
    struct mx_report *p = &r->report;
    struct mx_counters before;
    mx_run_counters(r, &before);
    struct mx_usage_files files = mx_usage_open();
    struct mx_usage usage = mx_usage_now(&files);
    p->hash_bytes = 0;
    int err = mx_execute(x, r->schedule, r->ops, r->engine, &r->why, done);
    if (mx_is_rank(&r->ranks) && err == -ECONNRESET && strstr(r->why.text, "rank") == NULL)
        mx_fail(&r->why, err, "another rank has ended while all committed, so this one ends too");
    if (mx_is_rank(&r->ranks))
        mx_link_counters(r->ranks.link, &r->ranks.sent_bytes, &r->ranks.received_bytes);
    p->usage = mx_usage_since(&files, &usage);
    mx_usage_close(&files);
    p->counters = counters_since(r, &before);
    p->counters.write_bytes -=
        p->hash_bytes < p->counters.write_bytes ? p->hash_bytes : p->counters.write_bytes;
    const char *snapshots = err < 0 ? mx_run_snapshots_failed(r) : NULL;
    return snapshots != NULL ? mx_fail(&r->why, err, "%s", snapshots) : err;
}

bool mx_run_asks(const struct mx_run *r) {
    return r->points.after.sources != NULL || r->points.after.traces != NULL || r->norms.norms != NULL ||
           !mx_sides_all_fixed(&r->sides);
}

static const struct mx_neighbours_ops neighbours = {.send = mx_link_send,
                                                    .more = mx_link_more,
                                                    .receive = mx_link_receive,
                                                    .sent = mx_link_sent,
                                                    .received = mx_link_received,
                                                    .quit = mx_link_quit};

/* By rank 0's clock. */
static int agree(void *context, bool due, mx_why *why) {
    struct mx_run *r = context;
    int64_t word = due;
    const bool says = r->ranks.rank == 0;
    const int here =
        says ? mx_link_say(r->ranks.link, word, why) : mx_link_heard(r->ranks.link, false, &word, why);
    return here < 0 ? here : says || here > 0 ? word != 0 : -EAGAIN;
}

/* A run may end before the sweep that was decided about last: all hear that nothing follows. */
static int end_agreeing(struct mx_run *r) {
    enum { NOTHING_FOLLOWS = -1 };
    int64_t word = NOTHING_FOLLOWS;
    if (r->ranks.rank == 0) return mx_link_say(r->ranks.link, word, &r->why);
    int here;
    do here = mx_link_heard(r->ranks.link, true, &word, &r->why);
    while (here > 0 && word != NOTHING_FOLLOWS);
    return here < 0 ? here : 0;
}

static int compute(struct mx_run *r) {
    struct mx_report *p = &r->report;
    struct mx_executed done;
    const bool commits = mx_run_resumable(r) && p->device.durable;
    const int64_t first_level = mx_levels_of(&r->o.problem, r->first_time);
    struct mx_execution x = {.problem = &r->rest,
                             .plan = &p->plan,
                             .layout = &p->layout,
                             .device = r->device,
                             .first_level = first_level,
                             .n_buffers = r->n_buffers,
                             .source = r->note.buffer,
                             .committed = commits ? r->note.buffer : -1,
                             .commit_every_s = r->commit_every_s,
                             .seams = r->seams,
                             .budget = r->budget,
                             .accel = r->accel,
                             .neighbours = mx_is_rank(&r->ranks) ? &neighbours : NULL,
                             .link = r->ranks.link,
                             .after = mx_run_asks(r) ? &r->points.after : NULL,
                             .most_ahead = most_ahead(r),
                             .finite = mx_run_finite_state,
                             .stores_once = r->algorithm->resumable,
                             .sweep = take_sweep,
                             .decides = r->norms.n_until > 0 ? decides : NULL,
                             .feeding = r->fuse.source ? &r->fuse.feeding : NULL,
                             .taking = r->snapshots.made                    ? &r->snapshots.taking
                                       : r->fuse.checksum || r->fuse.output ? &r->fuse.taking
                                                                            : NULL,
                             .mapped = p->device.mapped,
                             .advise = r->o.advice == MX_ADVICE_SCHEDULE,
                             .lock = r->o.lock || r->backend->locks_blocks,
                             .stop = &r->stop,
                             .progress = mx_run_on_progress,
                             .context = r,
                             .commit = commits ? commit : NULL};
    if (mx_is_rank(&r->ranks) && commits && r->n_buffers == MX_BUFFERS) x.agree = agree;
    const int odd = (int)(first_level & 1);
    for (int32_t i = 0; i < r->n_buffers; i++) {
        x.buffer[i] = mx_run_buffer(r, i, odd);
        x.partner[i] = r->tuned.shape.pairs ? mx_run_buffer(r, i, 1 - odd) : NULL;
    }
    memcpy(x.fixed, r->fixed, sizeof x.fixed);
    r->result = r->note.buffer;
    p->steps_done = r->first_time;
    if (r->resumed && r->rest.nt == 0) return 0;
    int err = r->algorithm->open(&r->rest, &p->plan, 0, 0, &r->schedule);
    if (err < 0)
        return mx_fail(&r->why, err, "the schedule of %s could not be opened: %s", p->plan.algorithm,
                       strerror(-err));
    if ((err = start_timeline(r)) < 0) return err;
    if (r->timeline != NULL) x.event = on_event;
    mx_run_begin_phase(r, "updates", "updates", r->tuned.traffic.updates);
    err = execute(r, &x, &done);
    if (r->finite.ended) err = -EDOM; /* of ranks one may have heard of the end of another before */
    if (err == 0 && x.agree != NULL) err = end_agreeing(r);
    err = stop_timeline(r, err);
    take_measurement(r, &done);
    return err;
}

/* Snapshots of ranks get their names with a commit; here there is none. */
static int publish_result(struct mx_run *r) {
    int err = mx_run_sync_snapshots(r, r->report.steps_done);
    if (err == 0) err = mx_run_publish_snapshots(r, r->report.steps_done);
    if (err == 0) return 0;
    const char *why = mx_run_snapshots_failed(r);
    return mx_fail(&r->why, err, "%s",
                   why != NULL ? why : "the snapshots of all ranks could not be published");
}

/* The Buffers of an algorithm in place hold a state again: from here on it can be exported, verified and
 * published like any other. */
static int commit_result(struct mx_run *r) {
    const int odd = mx_run_settle_finite(r);
    if (odd < 0) return odd;
    if (!r->report.device.durable) return mx_is_rank(&r->ranks) ? publish_result(r) : 0;
    if (mx_run_resumable(r)) return 0;
    int err = commit(r, r->report.steps_done - r->first_time, r->result);
    return err < 0 ? fail_commit(r, "last", err) : 0;
}

/* ------------------------------------------------------------------ result */

struct digest {
    const struct mx_run *run;
    struct mx_nonfinite *found; /* NULL = the state was counted before */
    XXH3_state_t *state;
    int array; /* whose fields: A (0) or B (1) */
};

static int digest_plane(void *context, int64_t z, char *plane) {
    struct digest *d = context;
    const struct mx_problem *p = &d->run->o.problem;
    const struct mx_layout *l = &d->run->report.layout;
    if (z < p->h || z >= p->nz + p->h) return 0;
    for (int64_t y = p->h; y < p->ny + p->h; y++)
        for (int32_t f = 0; f < mx_field_count(p, d->array); f++) {
            const int64_t element = mx_dtype_bytes(mx_field_dtype(p, d->array, f));
            const char *row = plane + y * l->row_pitch_bytes + l->field_offset_bytes[d->array][f];
            XXH3_64bits_update(d->state, row + p->h * element, (size_t)(p->nx * element));
        }
    if (d->found != NULL)
        mx_nonfinite_rows(p, l, d->array, z, 0, l->rows, plane, l->row_pitch_bytes, d->found);
    return 0;
}

/* The array that holds the state, of staggered systems the first of both. */
static int state_array(const struct mx_run *r) {
    return (int)(mx_levels_of(&r->o.problem, r->report.steps_done) & 1);
}

/* The digest goes from cell to cell: of ranks each goes on where the one below it has ended; for a second
 * array the first rank goes on where the last has. */
static int digest_array(struct mx_run *r, struct digest *d, bool first) {
    mx_link *link = r->ranks.link;
    const unsigned char *secret = d->state->extSecret; /* an address of this process */
    int err = link != NULL && !first ? mx_link_share(link, MX_CHANNEL_RUN, r->ranks.ranks - 1, d->state,
                                                     sizeof *d->state, &r->why)
                                     : 0;
    if (err == 0 && link != NULL) err = mx_link_take_turn(link, d->state, sizeof *d->state, &r->why);
    d->state->extSecret = secret;
    if (err == 0) err = pass(r, "checksum", mx_run_buffer(r, r->result, d->array), false, digest_plane, d);
    return err == 0 && link != NULL ? mx_link_pass_turn(link, d->state, sizeof *d->state, &r->why) : err;
}

static int take_checksum(struct mx_run *r) {
    if (r->fuse.checksum && r->fuse.whole) {
        snprintf(r->report.checksum, sizeof r->report.checksum, "%016llx",
                 (unsigned long long)mx_run_fuse_checksum(r));
        return 0;
    }
    struct mx_nonfinite found = {.cells = 0};
    struct digest d = {r, mx_run_is_counted(r) ? NULL : &found, XXH3_createState(), state_array(r)};
    if (d.state == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the checksum");
    XXH3_64bits_reset(d.state);
    const unsigned char *secret = d.state->extSecret;
    int err = digest_array(r, &d, true);
    if (err == 0 && mx_form(&r->o.problem) == MX_STAGGERED) {
        d.array = 1;
        err = digest_array(r, &d, false);
    }
    if (err == 0 && mx_is_rank(&r->ranks)) /* the last rank has seen all */
        err = mx_link_share(r->ranks.link, MX_CHANNEL_RUN, r->ranks.ranks - 1, d.state, sizeof *d.state,
                            &r->why);
    d.state->extSecret = secret;
    if (err == 0)
        snprintf(r->report.checksum, sizeof r->report.checksum, "%016llx",
                 (unsigned long long)XXH3_64bits_digest(d.state));
    XXH3_freeState(d.state);
    if (err == 0 && d.found != NULL)
        err = mx_run_finite_state(r, r->report.steps_done - r->first_time, &found, &r->why);
    return err;
}

static int hand_over_plane(void *context, int64_t z, char *plane) {
    struct mx_run *r = context;
    struct mx_grid_box box;
    if (!box_out(r, r->o.problem.dtype, z, plane, &box)) return 0;
    return give_planes(r, &r->sink, z, &box);
}

/* The result is whole. */
static int close_sink(struct mx_run *r) {
    r->sink_open = false;
    int err = r->sink.close != NULL ? r->sink.close(r->sink.context, true, &r->why) : 0;
    return err > 0 ? -EIO : err;
}

/* Rank 0 gives the files that all have written to their names, when all have. */
static int meet_before(struct mx_run *r) { return r->ranks.rank == 0 ? mx_run_meet(r) : 0; }
static int meet_after(struct mx_run *r) { return r->ranks.rank > 0 ? mx_run_meet(r) : 0; }

/* A plane of one array, to the files of its fields, or a program's sink. */
struct fields_out {
    struct mx_run *run;
    int array;  /* the fields that are A's or B's by name */
    int stored; /* the array that holds them now: leapfrog's change places with every step */
};

static int hand_over_fields(void *context, int64_t z, char *plane) {
    const struct fields_out *o = context;
    struct mx_run *r = o->run;
    int err = 0;
    for (int32_t i = 0; i < r->fields.n && err == 0; i++) {
        const struct mx_run_field *f = &r->fields.field[i];
        const struct mx_field_sink *s = &r->field_sink[i];
        if ((!s->open && !r->sink_open) || f->array != o->array) continue;
        struct mx_grid_box box;
        char *at = plane + r->report.layout.field_offset_bytes[o->stored][f->index];
        const struct mx_sink *sink = s->open ? &s->sink : &r->sink;
        if (!box_out(r, f->dtype, z, at, &box)) continue;
        box.field = f->name;
        err = give_planes(r, sink, z, &box);
    }
    return err;
}

/* The last sweep may have written all of it. */
static bool is_written(const struct mx_run *r) { return r->fuse.output && r->fuse.whole; }

static int writing_failed(struct mx_run *r) {
    if (r->fuse.output_err < 0) r->why = r->fuse.output_why;
    return r->fuse.output_err;
}

static int hand_over_array(struct mx_run *r, int array) {
    const bool leapfrog = mx_form(&r->o.problem) == MX_LEAPFROG;
    struct fields_out o = {r, array, leapfrog ? array ^ state_array(r) : array};
    bool wanted = false;
    for (int32_t i = 0; i < r->fields.n; i++)
        wanted |= (r->field_sink[i].open || r->sink_open) && r->fields.field[i].array == array;
    if (!wanted) return 0;
    return pass(r, "output", mx_run_buffer(r, r->result, o.stored), false, hand_over_fields, &o);
}

/* All files of a system are whole before the first of them appears. */
static int hand_over_system(struct mx_run *r) {
    int err = is_written(r) ? writing_failed(r) : hand_over_array(r, 0);
    if (err == 0 && !is_written(r)) err = hand_over_array(r, 1);
    if (err == 0) err = meet_before(r);
    for (int32_t i = 0; i < r->fields.n && err == 0; i++) {
        struct mx_field_sink *s = &r->field_sink[i];
        if (!s->open) continue;
        s->open = false;
        err = s->sink.close(s->sink.context, true, &r->why);
    }
    if (err == 0 && r->sink_open) err = close_sink(r);
    return err < 0 ? err : meet_after(r);
}

static int hand_over_grid(struct mx_run *r) {
    int err = is_written(r) ? writing_failed(r)
                            : pass(r, "output", r->buffer[r->result], false, hand_over_plane, r);
    if (err == 0) err = meet_before(r);
    if (err == 0) err = close_sink(r);
    return err < 0 ? err : meet_after(r);
}

/* A result that differs from the plain computation is none. */
static int hand_over_result(struct mx_run *r) {
    if ((!r->sink_open && r->system == NULL) || r->report.verified == 0) return 0;
    int err = r->system != NULL ? hand_over_system(r) : hand_over_grid(r);
    if (err < 0 && err != -EINTR && r->report.device.durable) {
        mx_why reason = r->why;
        mx_fail(&r->why, err,
                r->fuse.only
                    ? "%.300s; the last sweep can be made again: memext run --resume -d %.150s --output FILE"
                    : "%.300s; the result is safe in the store: memext export %.150s -o FILE",
                reason.text[0] != 0 ? reason.text : strerror(-err), r->report.device.place);
    }
    return err;
}

/* What stays of a finished run tells its checksum; a result that differs is neither resumed nor exported. */
static int finish(struct mx_run *r) {
    bool file = r->o.path != NULL && strcmp(r->o.path, r->report.device.place) == 0;
    int err = 0;
    if (!r->report.device.durable) return 0;
    r->note.different = r->report.verified == 0;
    memcpy(r->note.checksum, r->report.checksum, sizeof r->note.checksum);
    if (r->o.keep || file || r->note.different) err = write_note(r);
    if (err == 0 && !r->note.different) err = mx_device_finish(r->device);
    return err < 0 ? fail_commit(r, "last", err) : 0;
}

/* As soon as it is known whether it is finite: with the last sweep, or else when its checksum was taken. */
static int commit_counted(struct mx_run *r) {
    r->finite.committed = mx_run_is_counted(r);
    return r->finite.committed ? commit_result(r) : 0;
}
static int commit_uncounted(struct mx_run *r) { return r->finite.committed ? 0 : commit_result(r); }

/* What was computed from a file that changed is no result. */
static int check_files(struct mx_run *r) { return mx_run_field_files_unchanged(r, &r->why); }

/* Whatever failed: if a file changed, that is why, or reason enough. */
static int explain(struct mx_run *r, int err) {
    mx_why why = {""};
    if (err == 0 || err == -EINTR || mx_run_field_files_unchanged(r, &why) != -ESTALE) return err;
    r->why = why;
    return -ESTALE;
}

/* One phase of the report: how long it takes, and what it moves. */
static int timed(struct mx_run *r, enum mx_report_phases phase, int (*work)(struct mx_run *)) {
    struct mx_report_phase *p = &r->report.phase[phase];
    const uint64_t begin = mx_clock_ns(), hashed = r->hashed_bytes;
    struct mx_counters before, after;
    mx_run_counters(r, &before);
    const int err = work(r);
    mx_run_counters(r, &after);
    p->seconds += mx_seconds_since(begin);
    p->read_bytes += (int64_t)(after.read_bytes - before.read_bytes);
    p->write_bytes += (int64_t)(after.write_bytes - before.write_bytes - (r->hashed_bytes - hashed));
    return err;
}

static int end_traces(struct mx_run *r) {
    int err = mx_run_end_traces(r);
    if (err == 0 && (err = mx_run_sync_traces(r)) < 0)
        mx_fail(&r->why, err, "the traces in %.300s could not be made durable: %s", r->o.probes_out,
                strerror(-err));
    return err;
}

int mx_run_work(struct mx_run *r) {
    static const struct {
        enum mx_report_phases phase;
        int (*work)(struct mx_run *);
    } steps[] = {{MX_PHASE_INIT, initialise},        {MX_PHASE_PREPARE, make_engine},
                 {MX_PHASE_STENCIL, compute},        {MX_PHASE_FINISH, check_files},
                 {MX_PHASE_FINISH, commit_counted},  {MX_PHASE_OUTPUT, mx_run_end_fuse},
                 {MX_PHASE_CHECKSUM, take_checksum}, {MX_PHASE_FINISH, commit_uncounted}};
    int err = 0;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && err == 0; i++) {
        err = mx_run_stopped(r);
        if (err == 0) err = timed(r, steps[i].phase, steps[i].work);
    }
    if (err == 0 && r->o.verify) err = timed(r, MX_PHASE_VERIFY, mx_run_verify);
    if (mx_is_rank(&r->ranks) && r->stop && (err == -ECONNRESET || err == -ECANCELED))
        err = -EINTR; /* all were asked to end, and this one was not the first */
    err = explain(r, err);
    if (mx_run_is_nonfinite(r, err)) mx_run_say_nonfinite(r);
    if (err == 0) err = mx_run_stopped(r);
    if (err == 0) err = timed(r, MX_PHASE_OUTPUT, hand_over_result);
    r->report.phase[MX_PHASE_OUTPUT].write_bytes += r->fuse.written_bytes;
    mx_run_drop_fuse(r);
    if (err == 0) err = timed(r, MX_PHASE_FINISH, end_traces);
    /* Nobody removes a store that another run of all ranks would need. */
    if (err == 0) err = mx_run_collect_reports(r);
    if (err == 0) err = mx_run_meet(r);
    r->ranks.well = err == 0;
    return err < 0 ? err : timed(r, MX_PHASE_FINISH, finish);
}

void mx_run_release(struct mx_run *r) {
    mx_run_leave_ranks(r);
    if (r->schedule != NULL) r->schedule->ops->close(r->schedule);
    if (r->engine != NULL) r->ops->free(r->engine);
    mx_run_release_fuse(r);
    mx_run_close_ranks(r);
    mx_accel_close(r->accel);
    for (int i = 0; i < MX_BUFFERS; i++) {
        mx_buffer_close(r->buffer[i]);
        mx_buffer_close(r->partner[i]);
    }
    for (int i = 0; i < MX_MAX_FIXED; i++) mx_buffer_close(r->fixed[i]);
    mx_buffer_close(r->seams);
    mx_run_close_points(r);
    mx_run_close_norms(r);
    mx_run_close_snapshots(r);
    for (int i = 0; i < MX_MAX_FIXED; i++) mx_device_close(r->file[i]);
    mx_fields_close(&r->fields);
    mx_kernel_close(r->system);
    mx_device_close(r->device);
    mx_run_close_former(r);
    mx_run_leave_folders(r);
    mx_budget_free(r->budget);
    mx_output_drop(&r->outputs.timeline);
    mx_output_drop(&r->outputs.trace);
}
