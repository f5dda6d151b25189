/* SPDX-License-Identifier: BSD-3-Clause */
/* execute.c - steps in order, transfers out of order.
 *
 * The executor holds a window of steps in program order. ADVANCEs are calls of the engine, LOADs and STOREs
 * tickets of the transfer queue, and both work by themselves; COPYs are done here. A step starts as soon as
 * no unfinished earlier step touches the same Block rows or Buffer region with a write among them: LOADs as
 * early as that rule allows (read-ahead), STOREs finish whenever they do (write-behind). ADVANCEs start in
 * order, the next one while one is under way (engine.h), so that the threads pass from one to the other
 * without a stop. Nothing here knows an algorithm.
 *
 * Buffers. The schedule says which of two Buffers a step reads or writes; which Buffer that is, is settled
 * when the step is taken from the schedule. A sweep writes the one that is neither its source nor the last
 * one that was chosen to be committed. With three Buffers that is one alone, and a state that is committed,
 * or being made durable, rests untouched while sweeps go on in the other two. With two the target can only be
 * the Buffer that was committed before, so its STOREs wait until the newer state is durable. Where the form
 * reads the old value each of them is a pair of Buffers, one for either array, which go through all this
 * together. Fields of C have a ring and a Buffer each, and are only read.
 */
#include "execute/exchange.h"
#include "machine/clock.h"
#include "machine/minmax.h"

#include "core/device.h"
#include "engine/work.h"
#include "machine/bell.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of the Blocks that ADVANCEs under way are in, and one more. */
enum { REACHES = 4 };
/* Of states that are not committed so many levels lie between two that are looked at, at least. Level by
 * level in DRAM a look costs up to half as much as a level, for its rows are no longer in cache: less than a
 * percent then. */
enum { LOOK_LEVELS = 64 };
enum { WINDOW_STEPS = 512, WINDOW_ADVANCES = 8, ADVANCES_UNDER_WAY = 2 };
/* Whatever ends rings the bell, but for accelerators: halves of their transfers have to be passed on. */
enum { LOOK_AGAIN_NS = 20000000, LOOK_AGAIN_STAGED_NS = 50000 };

enum state { WAITING, RUNNING, DONE };

/* What the schedule has of the levels of a pass, copied: it owns its tables only until the next step. */
struct tables {
    int64_t pass, users;
    struct mx_window *window; /* [levels] */
    int32_t *seam;            /* 6 tables of levels + 1 */
};

struct entry {
    struct mx_step step;
    enum state state;
    mx_ticket *ticket; /* LOAD, STORE under way */
    int64_t call;      /* ADVANCE under way: its number */
    /* With an accelerator. LOAD: read into the piece, put; STORE: got into it, written; COPY. */
    int32_t piece;         /* of the staging memory */
    bool halfway;          /* the second half is under way */
    int64_t number;        /* in the accelerator's queue */
    int64_t cells;         /* ADVANCE under way */
    struct tables *tables; /* ADVANCE */
    bool durable;          /* COMMIT: the sweep is to be made durable */
    int32_t source;        /* COMMIT: Buffer that the sweep read, given up when the sweep is complete */
    int32_t frees;         /* COMMIT: Buffer that is given up when this is durable; -1 = none */
    int64_t sweep;         /* that the step is of, from 0 */
    int64_t take_step;    /* STORE, COMMIT: of a sweep that ends with this step, which is taken; 0 = is not */
    struct mx_take *take; /* STORE under way: its rows */
    bool looked_at;       /* ADVANCE, STORE: cells that are not finite are looked for in its rows */
    struct mx_finding finding; /* ADVANCE that is */
    bool fed;                  /* LOAD: not from its Buffer */
    struct mx_feed *feed;      /* such a one under way */
    uint64_t begin_ns;
};

struct committer {
    pthread_t thread;
    bool started;
    _Atomic bool ended;
    struct mx_bell *bell; /* of who waits for it; NULL = nobody */
    int result;
    uint64_t begin_ns, end_ns;
    const struct mx_execution *x;
    int64_t time;
    int32_t buffer;
};

struct run {
    const struct mx_execution *x;
    struct mx_schedule *schedule;
    const struct mx_engine_ops *ops;
    mx_engine *engine;
    mx_why *why;
    struct mx_executed *out;
    struct mx_bell *bell; /* of this thread, rung by all that it has under way */
    const struct mx_shape *shape;
    struct mx_view view;                      /* base, slots, pitches */
    struct mx_fixed_view fixed[MX_MAX_FIXED]; /* view.fixed, where there is C */
    mx_block *block[2], *seam_block, *fixed_block[MX_MAX_FIXED], *staging_block;
    int64_t seam_slab_bytes;
    char *seam_base;
    struct entry *entries; /* ring of WINDOW_STEPS */
    struct tables *newest; /* of the ADVANCE that was taken from the schedule last; NULL = none */
    uint64_t first, end;   /* oldest unfinished, next to generate */
    int64_t advances;      /* ADVANCE steps that have not started */
    int64_t under_way;     /* ADVANCE steps */
    int64_t cells;         /* computed, of all levels */
    uint64_t advanced_ns;  /* when the last one that is done ended */
    uint64_t sweep_ns;     /* when the sweep under way began */
    bool exhausted;
    int due;   /* the sweep that the newest COMMIT ends: durable or not; -EAGAIN: that is not known, */
    bool held; /* and so that COMMIT stands at `end` and is not in the window yet */
    /* Of the sweep that the schedule is in: the Buffer that it calls its source, and the Buffers that are its
     * source and target in truth. */
    int32_t called, source, target;
    int32_t committed;              /* Buffer of the last sweep that is durable or to be made so; -1 = none */
    uint64_t decided_ns;            /* when it was chosen */
    struct mx_after after[REACHES]; /* x->after with the reach of one Block after the other */
    int64_t reaches;                /* Blocks so far */
    struct mx_span *spans;          /* scratch of one transfer */
    int64_t n_spans;
    struct mx_staging staging; /* with an accelerator, whose memory the arrays are in then */
    struct committer committer;
    struct mx_taker *taker;
    struct mx_feeder *feeder;
    bool first_sweep;      /* the schedule is in it */
    mx_block *plane;       /* of states that are taken from Buffers */
    int64_t sweep_end;     /* level of the run that the sweep of the newest ADVANCE ends with */
    int64_t sweeps, taken; /* that were taken from the schedule; that are complete */
    /* Of sweeps that are not complete, by number, the newest state that was looked at, and its level: a ring
     * of WINDOW_STEPS, for each has its COMMIT there, or will. */
    struct look {
        int64_t level;
        struct mx_nonfinite found;
    } * look;
    int64_t looked_at;            /* level of the state that was looked at last */
    struct mx_exchange *exchange; /* NULL = no neighbours */
    bool given_up;                /* what neighbours send is not waited for any more */
};

static int64_t steps_of(const struct run *r, int64_t levels) {
    return levels / mx_levels_a_step(r->x->problem);
}

static struct entry *at(const struct run *r, uint64_t i) { return &r->entries[i % WINDOW_STEPS]; }

/* ------------------------------------------------------------------ geometry of the Block arrays */

static bool is_fixed(int32_t array) { return array >= MX_FIXED_ARRAY; }

static int64_t slots(const struct run *r, int32_t array) {
    if (is_fixed(array)) return r->shape->fixed_slots;
    return array == MX_SEAMS ? r->shape->seam_slots : r->view.slots[array];
}

static int64_t slot_of(const struct run *r, int32_t array, int64_t z, int64_t z_offset) {
    return (z + z_offset) % slots(r, array);
}

static char *row_address(const struct run *r, int32_t array, int64_t y, int64_t z, struct mx_placement p) {
    bool seams = array == MX_SEAMS;
    char *base = seams ? r->seam_base : r->view.base[array];
    return base +
           slot_of(r, array, z, p.z_offset) * (seams ? r->seam_slab_bytes : r->view.plane_pitch_bytes) +
           (y + p.y_offset) * r->view.row_pitch_bytes;
}

/* Where the byte at this offset of the file of a field of C goes, of the region's plane z (system.h,
 * mx_fixed_span). Rows from the other end stand where the ghosts are: they are whole units of the device
 * (mx_layout_make). */
static char *fixed_address(const struct run *r, const struct mx_step *s, int64_t offset, int64_t z) {
    const int32_t field = s->array - MX_FIXED_ARRAY;
    const struct mx_fixed_view *v = &r->fixed[field];
    const int64_t first =
        v->offset_bytes + (z + s->buffer_z) * v->file_plane_pitch_bytes - s->at.y_offset * v->row_pitch_bytes;
    const int64_t shift = ((first % v->align_bytes) + v->align_bytes) % v->align_bytes;
    return v->base + slot_of(r, s->array, z, s->at.z_offset) * v->slot_pitch_bytes + offset -
           s->buffer_y * v->row_pitch_bytes - (first - shift);
}

/* ------------------------------------------------------------------ what a step touches */

/* What ADVANCEs read of every field of C alike; LOADs of different fields have nothing to do with one
 * another.
 */
enum { ALL_FIXED = MX_FIXED_ARRAY + MX_MAX_FIXED };

/* Rows x slots of one Block array, slots modulo its ring. */
struct touch {
    int32_t array;
    bool write;
    int64_t y0, y1, slot, n_slots;
};

static struct touch touch_of(const struct run *r, int32_t array, bool write, struct mx_region g,
                             struct mx_placement p) {
    int64_t n = g.z1 - g.z0, all = slots(r, array);
    return (struct touch){array,
                          write,
                          g.y0 + p.y_offset,
                          g.y1 + p.y_offset,
                          slot_of(r, array, g.z0, p.z_offset),
                          n < all ? n : all};
}

static struct touch touch_planes(const struct run *r, const struct mx_step *s, int32_t array, bool write,
                                 struct mx_planes z) {
    struct mx_region g = {s->region.y0, s->region.y1, z.z0, mx_max(z.z0, z.z1)};
    return touch_of(r, array, write, g, s->at);
}

static int touch_slab(int64_t slot, bool write, struct touch *t) {
    if (slot < 0) return 0;
    *t = (struct touch){MX_SEAMS, write, 0, INT64_MAX, slot, 1};
    return 1;
}

/* A LOAD of C fills more of its slots than its rows. */
static struct touch touch_fixed(const struct run *r, int32_t array, bool write, int64_t z0, int64_t z1,
                                struct mx_placement p) {
    struct touch t = touch_of(r, array, write, (struct mx_region){0, 0, z0, mx_max(z0, z1)}, p);
    t.y0 = INT64_MIN, t.y1 = INT64_MAX;
    return t;
}

enum { MOST_TOUCHES = 7 };

static int touches(const struct run *r, const struct mx_step *s, struct touch t[MOST_TOUCHES]) {
    int n = 0;
    switch (s->kind) {
    case MX_STEP_LOAD:
        t[n++] = is_fixed(s->array) ? touch_fixed(r, s->array, true, s->region.z0, s->region.z1, s->at)
                                    : touch_of(r, s->array, true, s->region, s->at);
        break;
    case MX_STEP_STORE:
        t[n++] = touch_of(r, s->array, false, s->region, s->at);
        break;
    case MX_STEP_COPY:
        t[n++] = touch_of(r, s->array, false, s->region, s->at);
        t[n++] = touch_of(r, s->to_array, true, s->region, s->to);
        break;
    case MX_STEP_ADVANCE:
        for (int32_t i = 0; i < 2; i++) {
            t[n++] = touch_planes(r, s, i, true, s->writes[i]);
            t[n++] = touch_planes(r, s, i, false, s->touches[i]);
        }
        if (s->fixed.z0 < s->fixed.z1 && r->shape->fixed_slots > 0)
            t[n++] = touch_fixed(r, ALL_FIXED, false, s->fixed.z0, s->fixed.z1, s->at);
        n += touch_slab(s->seam_in, false, &t[n]);
        n += touch_slab(s->seam_out, true, &t[n]);
        break;
    case MX_STEP_COMMIT:
        break;
    }
    return n;
}

static bool slots_meet(int64_t a, int64_t na, int64_t b, int64_t nb, int64_t ring) {
    if (na <= 0 || nb <= 0) return false;
    int64_t d = (b - a) % ring;
    if (d < 0) d += ring;
    return d < na || ring - d < nb;
}

static bool same_array(int32_t a, int32_t b) {
    return a == b || (is_fixed(a) && is_fixed(b) && (a == ALL_FIXED || b == ALL_FIXED));
}

static bool blocks_meet(const struct run *r, const struct mx_step *a, const struct mx_step *b) {
    struct touch ta[MOST_TOUCHES], tb[MOST_TOUCHES];
    int na = touches(r, a, ta), nb = touches(r, b, tb);
    for (int i = 0; i < na; i++)
        for (int j = 0; j < nb; j++)
            if (same_array(ta[i].array, tb[j].array) && (ta[i].write || tb[j].write) && ta[i].y0 < tb[j].y1 &&
                tb[j].y0 < ta[i].y1 &&
                slots_meet(ta[i].slot, ta[i].n_slots, tb[j].slot, tb[j].n_slots, slots(r, ta[i].array)))
                return true;
    return false;
}

static bool moves(const struct mx_step *s) { return s->kind == MX_STEP_LOAD || s->kind == MX_STEP_STORE; }

static bool buffers_meet(const struct mx_step *a, const struct mx_step *b) {
    const struct mx_region p = mx_step_in_buffer(a), q = mx_step_in_buffer(b);
    return a->neighbour == 0 && b->neighbour == 0 && a->buffer == b->buffer && a->part == b->part &&
           p.y0 < q.y1 && q.y0 < p.y1 && p.z0 < q.z1 && q.z0 < p.z1;
}

/* A STORE that a commit makes durable; seams are of no use to a later run. */
static bool keeps(const struct mx_step *s) { return s->kind == MX_STEP_STORE && s->buffer != MX_SEAMS; }

static bool ends_fit(struct mx_planes a, struct mx_planes b, int64_t slots) {
    const bool both = a.z0 < a.z1 && b.z0 < b.z1;
    return !both || mx_max(a.z1, b.z1) - mx_min(a.z0, b.z0) <= slots;
}

/* Two ADVANCEs in the same placement: the engine sees what one needs of the other. Only that planes of both
 * do not share a slot is ours to see. */
static bool can_be_under_way_together(const struct run *r, const struct mx_step *a, const struct mx_step *b) {
    if (r->shape->rows == 0) return true;
    if (a->at.y_offset != b->at.y_offset || a->at.z_offset != b->at.z_offset) return !blocks_meet(r, a, b);
    return ends_fit(a->touches[0], b->touches[0], slots(r, 0)) &&
           ends_fit(a->touches[1], b->touches[1], slots(r, 1));
}

/* Nowhere but to who takes it. */
static bool is_only_taken(const struct run *r, const struct entry *e) {
    return e->take_step > 0 && r->x->taking->only;
}

/* Does it compute levels that are too far from the sweeps that were taken? */
static bool is_too_far(const struct run *r, const struct mx_step *advance) {
    const int64_t taken = r->out->steps_done * mx_levels_a_step(r->x->problem);
    return r->x->most_ahead > 0 && advance->first_level + advance->levels > taken + r->x->most_ahead;
}

/* May the run end with this sweep, and is not known to go on? */
static bool is_undecided(const struct run *r, const struct entry *commit) {
    return commit->state == WAITING && r->x->decides != NULL &&
           r->x->decides(r->x->context, steps_of(r, commit->step.time));
}

/* Would it overwrite the state that this sweep ends with? Of mapped Buffers that are worked on directly
 * ADVANCEs do. */
static bool overwrites(const struct run *r, const struct mx_step *later, const struct mx_step *commit) {
    if (r->shape->rows == 0) return later->kind == MX_STEP_ADVANCE;
    return keeps(later) && (r->shape->in_place || later->buffer == commit->buffer);
}

/* One state is taken after the other; and from Buffers that are rewritten in place before that is done. */
static bool waits_for_taking(const struct run *r, const struct entry *later, const struct entry *commit) {
    if (commit->take_step == 0 || commit->state != WAITING) return false;
    if (r->x->taking->from_stores) return later->step.kind == MX_STEP_STORE && later->take_step > 0;
    return keeps(&later->step) || (r->shape->rows == 0 && later->step.kind == MX_STEP_ADVANCE);
}

/* A sweep may overwrite the source of the one before it only when that one is complete, for until then the
 * source is the newest complete state there is; and a committed state only when a newer one is durable. */
static bool waits_for_commit(const struct run *r, const struct entry *later, const struct entry *commit) {
    const int32_t buffer = later->step.buffer;
    if (waits_for_taking(r, later, commit)) return true;
    if (later->step.kind == MX_STEP_STORE && later->step.next_given > 0 && is_undecided(r, commit))
        return true;
    if (later->step.kind == MX_STEP_COMMIT) return later->durable || commit->state == WAITING;
    if (is_only_taken(r, later)) return false;
    if (overwrites(r, &later->step, &commit->step) && is_undecided(r, commit)) return true;
    if (later->step.kind == MX_STEP_ADVANCE) return commit->state == WAITING && is_too_far(r, &later->step);
    if (!keeps(&later->step) || r->x->commit == NULL) return false;
    if (r->shape->in_place) return true;
    return (commit->state == WAITING && buffer == commit->source) ||
           (commit->durable && buffer == commit->frees);
}

/* Whole boxes are handed out in the order of the schedule. */
static bool waits_its_turn(const struct run *r, const struct entry *later, const struct entry *earlier) {
    return later->take_step > 0 && earlier->take_step > 0 && earlier->state == WAITING &&
           r->x->taking->box != NULL && later->step.kind == MX_STEP_STORE &&
           earlier->step.kind == MX_STEP_STORE;
}

/* Must `later` wait for `earlier`, which comes before it in program order and is unfinished? */
static bool depends(const struct run *r, const struct entry *later_entry, const struct entry *earlier_entry) {
    const struct mx_step *later = &later_entry->step, *earlier = &earlier_entry->step;
    const bool advances = earlier->kind == MX_STEP_ADVANCE;
    if (earlier->kind == MX_STEP_COMMIT) return waits_for_commit(r, later_entry, earlier_entry);
    if (later->kind == MX_STEP_COMMIT) return keeps(earlier) || advances;
    if (later->neighbour > 0 && earlier->neighbour == later->neighbour &&
        earlier_entry->sweep < later_entry->sweep)
        return true; /* the message that it is of has no room yet */
    if (r->exchange != NULL && later->kind == MX_STEP_STORE && earlier->kind == MX_STEP_STORE &&
        keeps(earlier) && earlier_entry->sweep < later_entry->sweep)
        return true; /* rows of one message come before those of the next */
    if (later->kind == MX_STEP_ADVANCE && advances) return !can_be_under_way_together(r, later, earlier);
    if (r->shape->rows == 0 || waits_its_turn(r, later_entry, earlier_entry)) return true;
    if (moves(later) && moves(earlier) && (later->kind == MX_STEP_STORE || earlier->kind == MX_STEP_STORE) &&
        buffers_meet(later, earlier))
        return true;
    return blocks_meet(r, later, earlier);
}

/* ------------------------------------------------------------------ events */

static void report_of(const struct run *r, const struct mx_step *s, bool waiting, bool file,
                      uint64_t begin_ns, uint64_t end_ns, uint64_t amount) {
    if (r->x->event == NULL) return;
    struct mx_event e = {.kind = s->kind,
                         .waiting = waiting,
                         .begin_ns = begin_ns,
                         .end_ns = end_ns,
                         .amount = amount,
                         .region = moves(s) ? mx_step_in_buffer(s) : s->region,
                         .seams = s->buffer == MX_SEAMS,
                         .file = file};
    r->x->event(r->x->context, &e);
}

static void report(const struct run *r, const struct mx_step *s, bool waiting, uint64_t begin_ns,
                   uint64_t end_ns, uint64_t amount) {
    report_of(r, s, waiting, false, begin_ns, end_ns, amount);
}

static void report_sweep(struct run *r, const struct mx_step *s) {
    uint64_t now = mx_clock_ns();
    struct mx_event e = {.kind = MX_STEP_COMMIT,
                         .sweep = true,
                         .begin_ns = r->sweep_ns,
                         .end_ns = now,
                         .amount = (uint64_t)steps_of(r, s->time),
                         .region = {0, r->x->layout->rows, 0, r->x->layout->planes}};
    r->sweep_ns = now;
    if (r->x->event != NULL) r->x->event(r->x->context, &e);
}

static uint64_t moved_bytes(const struct run *r, const struct mx_step *s) {
    const struct mx_region g = mx_step_in_buffer(s);
    if (is_fixed(s->array))
        return (uint64_t)mx_fixed_span_sum(&r->x->layout->fixed[s->array - MX_FIXED_ARRAY], g.z0, g.z1, g.y0,
                                           g.y1);
    if (s->whole_planes) return (uint64_t)((s->region.z1 - s->region.z0) * r->x->layout->plane_pitch_bytes);
    return (uint64_t)(mx_region_rows(s->region) * r->view.row_pitch_bytes);
}

/* ------------------------------------------------------------------ transfers */

static bool staged(const struct run *r) { return r->x->accel != NULL; }

/* What a LOAD or STORE moves, in words. */
static const char *describe(const struct run *r, const struct mx_step *s, char *text, size_t capacity) {
    const struct mx_region g = mx_step_in_buffer(s);
    char of[64];
    if (s->buffer == MX_SEAMS) {
        snprintf(text, capacity, "face slab %lld of the side file", (long long)s->region.z0);
        return text;
    }
    if (is_fixed(s->buffer))
        snprintf(of, sizeof of, "field %s", r->x->problem->system->fixed[s->buffer - MX_FIXED_ARRAY].name);
    else
        snprintf(of, sizeof of, "Buffer %d%s", s->buffer, s->part ? ", its partner" : "");
    snprintf(text, capacity, "rows %lld..%lld of planes %lld..%lld of %s", (long long)g.y0, (long long)g.y1,
             (long long)g.z0, (long long)g.z1, of);
    return text;
}

static mx_buffer *buffer_of(const struct run *r, const struct mx_step *s) {
    if (s->buffer == MX_SEAMS) return r->x->seams;
    if (is_fixed(s->buffer)) return r->x->fixed[s->buffer - MX_FIXED_ARRAY];
    return s->part ? r->x->partner[s->buffer] : r->x->buffer[s->buffer];
}

static void fixed_spans(struct run *r, const struct mx_step *s) {
    const struct mx_fixed_layout *l = &r->x->layout->fixed[s->array - MX_FIXED_ARRAY];
    const struct mx_region g = mx_step_in_buffer(s);
    for (int64_t z = s->region.z0; z < s->region.z1; z++) {
        struct mx_span *span = &r->spans[z - s->region.z0];
        mx_fixed_span(l, z + s->buffer_z, g.y0, g.y1, &span->offset_bytes, &span->bytes);
        span->dram = fixed_address(r, s, (int64_t)span->offset_bytes, z);
    }
}

/* Of A and B, and of seams. */
static void state_spans(struct run *r, const struct mx_step *s) {
    const struct mx_layout *l = r->x->layout;
    const int64_t pitch = s->buffer == MX_SEAMS ? r->seam_slab_bytes : l->plane_pitch_bytes;
    for (int64_t z = s->region.z0; z < s->region.z1; z++) {
        struct mx_span *span = &r->spans[z - s->region.z0];
        int64_t y = s->whole_planes ? 0 : s->region.y0;
        span->offset_bytes = (uint64_t)((z + s->buffer_z) * pitch + (y + s->buffer_y) * l->row_pitch_bytes);
        span->bytes = (uint64_t)(s->whole_planes ? l->plane_pitch_bytes
                                                 : (s->region.y1 - s->region.y0) * l->row_pitch_bytes);
        span->dram = row_address(r, s->array, y, z, s->at);
    }
}

/* ------------------------------------------------------------------ states that are taken */

/* The array of the system, A or B, that part 0 or 1 of a Buffer is. */
static int array_of_part(const struct run *r, int32_t part) {
    return r->shape->pairs ? part ^ (int)(r->x->first_level & 1) : 0;
}

/* Of leapfrog the other array holds the step before. */
static bool holds_state(const struct run *r, int array, int64_t step) {
    return mx_form(r->x->problem) != MX_LEAPFROG || array == (int)(step & 1);
}

/* Frames that are stored as copies of the other end are none of the state's interior. */
static bool is_copy_of_frame(const struct mx_step *s) { return s->buffer_y != 0 || s->buffer_z != 0; }

/* Rows are looked at where they are in cache: by the engine, when it has computed them. An accelerator has
 * them elsewhere; and of a staggered system, both arrays of which are the state, overlapped blocks compute
 * the level before the last in part twice: there they are looked at as they are stored. */
static bool looks_at_stores(const struct run *r) {
    return staged(r) || (r->x->stores_once && mx_levels_a_step(r->x->problem) > 1);
}

/* Is the state of this level, with which a sweep ends, one that is looked at? */
static bool wants_look(const struct run *r, int64_t level) {
    const struct mx_execution *x = r->x;
    const int64_t of_run = steps_of(r, x->first_level + level);
    const bool last = steps_of(r, level) == x->problem->nt;
    if (x->commit != NULL || last || level == r->looked_at) return true;
    if (x->taking != NULL && of_run % x->taking->every == 0) return true;
    return level - r->looked_at >= LOOK_LEVELS;
}

/* state: the step stores rows of the state of this level. */
static void settle_looking(struct run *r, struct entry *e, int64_t level, bool state) {
    const bool advance = e->step.kind == MX_STEP_ADVANCE, stores = looks_at_stores(r);
    struct look *look = &r->look[r->sweeps % WINDOW_STEPS];
    e->looked_at = false;
    if (r->x->finite == NULL || (stores ? !state || !r->x->stores_once : !advance)) return;
    e->looked_at = stores || wants_look(r, level);
    if (!e->looked_at) return;
    r->looked_at = level;
    if (level > look->level) *look = (struct look){.level = level};
    e->finding.found.cells = 0;
}

/* What an ADVANCE, or a STORE, has of it; of several ADVANCEs one after the other the last one counts. */
static void add_look(struct run *r, const struct entry *e, int64_t level, const struct mx_nonfinite *found) {
    struct look *look = &r->look[e->sweep % WINDOW_STEPS];
    if (level == look->level) mx_nonfinite_add(&look->found, found);
}

static void settle_taking(struct run *r, struct entry *e) {
    const struct mx_step *s = &e->step;
    const struct mx_taking *t = r->x->taking;
    e->take = NULL;
    e->take_step = 0;
    if (s->kind == MX_STEP_ADVANCE) r->sweep_end = r->x->first_level + s->first_level + s->levels;
    const bool told = s->kind == MX_STEP_COMMIT || (s->kind == MX_STEP_STORE && s->time > 0);
    const int64_t level = told ? r->x->first_level + s->time : r->sweep_end;
    const int64_t step = steps_of(r, level);
    const bool state = keeps(s) && holds_state(r, array_of_part(r, s->part), step);
    settle_looking(r, e, level - r->x->first_level, state && !is_copy_of_frame(s));
    if (t == NULL) return;
    const bool store = t->from_stores && state && (t->box != NULL || !is_copy_of_frame(s));
    if ((store || s->kind == MX_STEP_COMMIT) && step % t->every == 0) e->take_step = step;
}

/* Rows of a STORE: in the Block array, or where there is an accelerator in the piece of the staging memory
 * that they have been got to (spans_of). */
static struct mx_view stored_view(const struct run *r, const struct mx_step *s) {
    struct mx_view view = r->view;
    view.y_offset = s->at.y_offset;
    view.z_offset = s->at.z_offset;
    if (!staged(r)) return view;
    view.base[s->array] = r->spans[0].dram;
    view.plane_pitch_bytes = (int64_t)r->spans[0].bytes;
    view.slots[s->array] = s->region.z1 - s->region.z0;
    view.z_offset = -s->region.z0;
    view.y_offset = s->whole_planes ? 0 : -s->region.y0;
    return view;
}

/* While they are being stored: nobody writes them. */
static void look_at_store(struct run *r, const struct entry *e) {
    const struct mx_step *s = &e->step;
    if (!e->looked_at) return;
    const struct mx_view view = stored_view(r, s);
    for (int64_t z = s->region.z0; z < s->region.z1; z++)
        mx_nonfinite_rows(r->x->problem, r->x->layout, array_of_part(r, s->part), z, s->region.y0,
                          s->region.y1, mx_view_row(&view, s->array, s->region.y0, z), view.row_pitch_bytes,
                          &r->look[e->sweep % WINDOW_STEPS].found);
}

/* Of the sweep that ends with e. */
static int judge_sweep(struct run *r, const struct entry *e) {
    struct look *look = &r->look[e->sweep % WINDOW_STEPS];
    const struct look seen = *look;
    *look = (struct look){.level = 0};
    if (r->x->finite == NULL || seen.level != e->step.time) return 0;
    return r->x->finite(r->x->context, steps_of(r, e->step.time), &seen.found, r->why);
}

/* Its rows, while they are being stored. */
static int take_store(struct run *r, struct entry *e) {
    const struct mx_step *s = &e->step;
    struct mx_taken_box box = {.view = r->view,
                               .array = s->array,
                               .of = array_of_part(r, s->part),
                               .region = s->region,
                               .buffer_y = s->buffer_y,
                               .buffer_z = s->buffer_z,
                               .step = e->take_step};
    if (e->take_step == 0) return 0;
    box.view.y_offset = s->at.y_offset;
    box.view.z_offset = s->at.z_offset;
    e->take = mx_taker_post(r->taker, &box);
    return e->take != NULL ? 0 : mx_fail(r->why, -ENOMEM, "no memory for a snapshot");
}

/* Plane by plane, read when the sweep is complete and nothing writes. */
static int take_array(struct run *r, const struct entry *e, int32_t part) {
    const struct mx_layout *l = r->x->layout;
    const struct mx_problem *p = r->x->problem;
    const int64_t h = p->h, pitch = l->plane_pitch_bytes;
    mx_buffer *buffer = part ? r->x->partner[e->step.buffer] : r->x->buffer[e->step.buffer];
    struct mx_taken_box box = {.view = r->view,
                               .array = r->shape->pairs ? part : e->step.buffer,
                               .of = array_of_part(r, part),
                               .region = {0, l->rows, 0, l->planes},
                               .step = e->take_step};
    int err = 0;
    if (r->shape->rows == 0) return mx_take_box(r->x->taking, p, &box, r->why);
    box.array = 0;
    box.view = (struct mx_view){.base = {mx_block_data(r->plane)},
                                .slots = {1, 1},
                                .plane_pitch_bytes = pitch,
                                .row_pitch_bytes = l->row_pitch_bytes};
    const int64_t stride = r->x->taking->stride, first = (stride - p->first_plane % stride) % stride;
    for (int64_t z = h + first; z < p->nz + h && err == 0; z += stride) {
        const struct mx_span span = {(uint64_t)(z * pitch), (uint64_t)pitch, mx_block_data(r->plane)};
        mx_ticket *ticket = NULL;
        err = mx_buffer_read(buffer, &span, 1, &ticket);
        if (err == 0) err = mx_wait(ticket);
        if (err == -EBADMSG) return mx_field_damaged(buffer, l, "a snapshot", r->why);
        if (err < 0)
            return mx_fail(r->why, err, "reading plane %lld for a snapshot failed: %s", (long long)z,
                           strerror(-err));
        box.region.z0 = z, box.region.z1 = z + 1;
        err = mx_take_box(r->x->taking, p, &box, r->why);
    }
    return err;
}

static int take_now(struct run *r, const struct entry *e) {
    const struct mx_taking *t = r->x->taking;
    int err = 0;
    for (int32_t part = 0; part < (r->shape->pairs ? 2 : 1) && err == 0; part++)
        if (holds_state(r, array_of_part(r, part), e->take_step)) err = take_array(r, e, part);
    return err < 0 ? err : t->whole(t->context, e->take_step, r->why);
}

static int end_taking(struct run *r, const struct entry *e) {
    if (e->take_step == 0) return 0;
    if (!r->x->taking->from_stores) return take_now(r, e);
    const int err = mx_taker_end_step(r->taker, e->take_step);
    return err < 0 ? mx_fail(r->why, err, "no memory for a snapshot") : 0;
}

static int open_taking(struct run *r) {
    if (r->x->taking == NULL) return 0;
    if (r->x->taking->from_stores) return mx_taker_start(r->x->taking, r->x->problem, r->why, &r->taker);
    const struct mx_block_options o = {.budget = r->x->budget};
    return r->shape->rows > 0
               ? mx_block_create(&o, (uint64_t)r->x->layout->plane_pitch_bytes, r->why, &r->plane)
               : 0;
}

/* The spans of a step, between its Buffer and what `dram` points to: a Block array, or with an accelerator
 * the piece of staging memory that stands between them. Returns how many. */
static int64_t spans_of(struct run *r, const struct entry *e) {
    const struct mx_step *s = &e->step;
    const int64_t n = s->region.z1 - s->region.z0;
    assert(n <= r->n_spans);
    (is_fixed(s->array) ? fixed_spans : state_spans)(r, s);
    if (staged(r)) mx_staging_turn(&r->staging, e->piece, r->spans, n);
    return n;
}

static int start_io(struct run *r, struct entry *e, int64_t n) {
    const struct mx_step *s = &e->step;
    const bool load = s->kind == MX_STEP_LOAD;
    char what[160];
    int err = (load ? mx_buffer_read : mx_buffer_write)(buffer_of(r, s), r->spans, (size_t)n, &e->ticket);
    if (err < 0)
        return mx_fail(r->why, err, "%s %s could not be started: %s", load ? "reading" : "writing",
                       describe(r, s, what, sizeof what), strerror(-err));
    return 0;
}

/* Between the staging memory and the accelerator. */
static int start_bus(struct run *r, struct entry *e, int64_t n) {
    const bool load = e->step.kind == MX_STEP_LOAD;
    e->number = (load ? mx_accel_put : mx_accel_get)(r->x->accel, r->staging.spans, (size_t)n);
    return e->number < 0 ? mx_accel_error(r->x->accel, r->why) : 0;
}

static int start_feed(struct run *r, struct entry *e) {
    struct mx_view view = r->view;
    view.y_offset = e->step.at.y_offset;
    view.z_offset = e->step.at.z_offset;
    e->begin_ns = mx_clock_ns();
    e->feed = mx_feeder_post(r->feeder, &e->step, &view);
    if (e->feed == NULL) return mx_fail(r->why, -ENOMEM, "no memory to feed the first sweep");
    e->state = RUNNING;
    return 0;
}

static int finish_feed(struct run *r, struct entry *e) {
    mx_why why = {""};
    const int err = mx_feeder_finish(r->feeder, e->feed, &why);
    e->feed = NULL;
    return err < 0 ? mx_fail(r->why, err, "%s", why.text) : 0;
}

/* ------------------------------------------------------------------ what neighbours send */

static bool is_given(const struct entry *e) { return e->step.kind == MX_STEP_LOAD && e->step.neighbour > 0; }

static bool given_is_here(const struct run *r, const struct entry *e) {
    return r->given_up || mx_exchange_here(r->exchange, &e->step, e->sweep, false, NULL) != 0;
}

/* Where all ranks are asked to end, the end of another is none of its own. */
static int look_at_neighbours(struct run *r) {
    const int err = r->exchange != NULL ? mx_exchange_look(r->exchange, r->why) : 0;
    return err == -ECONNRESET && r->x->stop != NULL && *r->x->stop ? -EINTR : err;
}

/* A LOAD that takes a copy of it. */
static int finish_given(struct run *r, struct entry *e) {
    const struct mx_step *s = &e->step;
    int err = r->given_up ? -EINTR : mx_exchange_here(r->exchange, s, e->sweep, true, r->why);
    e->state = DONE;
    if (err <= 0) return err == 0 || r->given_up ? 0 : err;
    for (int64_t z = s->region.z0; z < s->region.z1; z++)
        memcpy(row_address(r, s->array, s->region.y0, z, s->at),
               mx_exchange_row(r->exchange, s, e->sweep, s->region.y0 + s->buffer_y, z),
               (size_t)((s->region.y1 - s->region.y0) * r->view.row_pitch_bytes));
    report(r, s, false, e->begin_ns, mx_clock_ns(), moved_bytes(r, s));
    return mx_exchange_loaded(r->exchange, s, e->sweep, r->why);
}

/* The same with an accelerator, when there is a piece of the staging memory: planes, without what pads them,
 * are copied into that, and put. */
static int put_given(struct run *r, struct entry *e) {
    const struct mx_step *s = &e->step;
    const int64_t n = s->region.z1 - s->region.z0,
                  bytes = (s->region.y1 - s->region.y0) * r->view.row_pitch_bytes;
    int err = mx_exchange_here(r->exchange, s, e->sweep, true, r->why);
    if (err < 0) return e->state = DONE, err;
    e->piece = mx_staging_take(&r->staging, true);
    e->halfway = true;
    for (int64_t i = 0; i < n; i++)
        r->spans[i] =
            (struct mx_span){.bytes = (uint64_t)bytes,
                             .dram = row_address(r, s->array, s->region.y0, s->region.z0 + i, s->at)};
    mx_staging_turn(&r->staging, e->piece, r->spans, n);
    for (int64_t i = 0; i < n; i++)
        memcpy(r->spans[i].dram,
               mx_exchange_row(r->exchange, s, e->sweep, s->region.y0 + s->buffer_y, s->region.z0 + i),
               (size_t)bytes);
    err = mx_exchange_loaded(r->exchange, s, e->sweep, r->why);
    const int bus = start_bus(r, e, n);
    if (bus == 0) return err;
    mx_staging_give(&r->staging, e->piece);
    return e->state = DONE, bus;
}

/* Rows that a neighbour needs, while they are being stored. */
static int give_store(struct run *r, struct entry *e) {
    const struct mx_step *s = &e->step;
    if (r->exchange == NULL || !keeps(s)) return 0;
    const struct mx_view view = stored_view(r, s);
    return mx_exchange_store(r->exchange, s, e->sweep, &view, r->why);
}

/* Rows are being stored, from DRAM: what else is done with them. */
static int use_store(struct run *r, struct entry *e) {
    const int err = give_store(r, e);
    if (err == 0) look_at_store(r, e);
    return err;
}

static int start_transfer(struct run *r, struct entry *e) {
    const bool load = e->step.kind == MX_STEP_LOAD;
    if (mx_region_rows(e->step.region) == 0) return e->state = DONE, 0;
    if (e->fed) return start_feed(r, e);
    if (!load && is_only_taken(r, e)) {
        e->begin_ns = mx_clock_ns();
        e->state = RUNNING;
        look_at_store(r, e);
        return take_store(r, e);
    }
    if (is_given(e)) return e->begin_ns = mx_clock_ns(), e->halfway = false, e->state = RUNNING, 0;
    if (staged(r)) e->piece = mx_staging_take(&r->staging, load), e->halfway = false;
    const int64_t n = spans_of(r, e);
    e->begin_ns = mx_clock_ns();
    int err = staged(r) && !load ? start_bus(r, e, n) : start_io(r, e, n);
    if (err < 0) return err;
    e->state = RUNNING;
    err = take_store(r, e);
    return err < 0 || load || staged(r) ? err : use_store(r, e);
}

static int damaged(const struct run *r, const struct mx_step *s) {
    const bool state = s->buffer != MX_SEAMS && !is_fixed(s->buffer);
    char what[160];
    return mx_field_damaged(buffer_of(r, s), state ? r->x->layout : NULL, describe(r, s, what, sizeof what),
                            r->why);
}

static int finish_io(struct run *r, struct entry *e) {
    int err = mx_wait(e->ticket);
    char what[160];
    mx_why taking = {""};
    const int taken = mx_taker_finish(r->taker, e->take, &taking);
    e->ticket = NULL;
    e->take = NULL;
    if (err == 0) return taken < 0 ? mx_fail(r->why, taken, "%s", taking.text) : 0;
    if (err == -EBADMSG) return damaged(r, &e->step);
    return mx_fail(r->why, err, "%s %s failed: %s", e->step.kind == MX_STEP_LOAD ? "reading" : "writing",
                   describe(r, &e->step, what, sizeof what),
                   err == -EAGAIN ? mx_no_thread(err).text : strerror(-err));
}

static int finish_bus(struct run *r, struct entry *e) {
    const enum mx_accel_queue queue = e->step.kind == MX_STEP_LOAD ? MX_ACCEL_PUT : MX_ACCEL_GET;
    int err = mx_accel_wait(r->x->accel, queue, e->number);
    return err < 0 ? mx_accel_error(r->x->accel, r->why) : 0;
}

/* Of what is under way of a transfer, the half that it is at: is it through the bus, or I/O? */
static bool on_bus(const struct run *r, const struct entry *e) {
    return staged(r) && (e->step.kind == MX_STEP_LOAD) == e->halfway;
}

static bool half_ended(const struct run *r, const struct entry *e) {
    const enum mx_accel_queue queue = e->step.kind == MX_STEP_LOAD ? MX_ACCEL_PUT : MX_ACCEL_GET;
    if (e->feed != NULL) return mx_feed_done(e->feed);
    return on_bus(r, e) ? mx_accel_is_done(r->x->accel, queue, e->number) : mx_test(e->ticket);
}

/* Waits for the first half, and starts the second. */
static int pass_half(struct run *r, struct entry *e) {
    int err = on_bus(r, e) ? finish_bus(r, e) : finish_io(r, e);
    e->halfway = true;
    if (err < 0) return err;
    const int64_t n = spans_of(r, e);
    if (on_bus(r, e)) return start_bus(r, e, n);
    err = use_store(r, e);
    return err < 0 ? err : start_io(r, e, n);
}

static void end_transfer(struct run *r, struct entry *e) {
    if (staged(r)) mx_staging_give(&r->staging, e->piece);
    e->state = DONE;
    const bool file = e->fed || (e->step.kind == MX_STEP_STORE && is_only_taken(r, e));
    report_of(r, &e->step, false, file, e->begin_ns, mx_clock_ns(), moved_bytes(r, &e->step));
}

/* Goes on with transfers whose first half has ended. */
static int pass_halves(struct run *r) {
    int err = 0;
    for (uint64_t i = r->first; i < r->end && err == 0 && staged(r); i++) {
        struct entry *e = at(r, i);
        if (e->state != RUNNING || !moves(&e->step) || e->halfway) continue;
        if (is_given(e)) {
            if (!mx_staging_is_taken(&r->staging, true) && given_is_here(r, e)) err = put_given(r, e);
            continue;
        }
        if (!half_ended(r, e) ||
            (r->exchange != NULL && keeps(&e->step) && !mx_exchange_has_room(r->exchange, &e->step)))
            continue;
        if ((err = pass_half(r, e)) < 0) end_transfer(r, e);
    }
    return err;
}

static int finish_transfer(struct run *r, struct entry *e) {
    if (is_given(e) && (!staged(r) || !e->halfway)) return finish_given(r, e);
    int err = staged(r) && !e->halfway ? pass_half(r, e) : 0;
    if (err == 0)
        err = e->feed != NULL ? finish_feed(r, e) : on_bus(r, e) ? finish_bus(r, e) : finish_io(r, e);
    end_transfer(r, e);
    return err;
}

/* ------------------------------------------------------------------ commits */

static void *commit_thread(void *argument) {
    struct committer *c = argument;
    c->begin_ns = mx_clock_ns();
    c->result = c->x->commit(c->x->context, c->time, c->buffer);
    c->end_ns = mx_clock_ns();
    atomic_store_explicit(&c->ended, true, memory_order_release);
    mx_bell_ring(c->bell);
    return NULL;
}

/* Step e ends a sweep of which everything is in its Buffer. */
static int take_sweep(struct run *r, const struct entry *e) {
    const int64_t steps = steps_of(r, e->step.time);
    int err = judge_sweep(r, e);
    if (err < 0) return err;
    err = r->x->sweep != NULL ? r->x->sweep(r->x->context, steps, r->why) : 0;
    if (err < 0) return err;
    r->taken++;
    r->out->ended = err > 0;
    /* Of a run that may end here nobody asks for more than what was sent before it was decided. */
    if (r->exchange != NULL && r->x->decides != NULL)
        err = mx_exchange_ask(r->exchange, r->taken, e->step.next_given, r->why);
    if (err < 0) return err;
    report_sweep(r, &e->step);
    r->out->steps_done = steps;
    r->out->result = e->step.buffer;
    return end_taking(r, e);
}

static int start_commit(struct run *r, struct entry *e) {
    struct committer *c = &r->committer;
    int err = take_sweep(r, e);
    if (err < 0) return err;
    if (!e->durable || r->out->ended) return e->state = DONE, 0; /* at the end commit_newest */
    *c = (struct committer){
        .x = r->x, .bell = r->bell, .time = steps_of(r, e->step.time), .buffer = e->step.buffer};
    err = mx_thread_start(&c->thread, commit_thread, c);
    if (err != 0)
        return mx_fail(r->why, err, "no thread for the commit of step %lld: %s", (long long)c->time,
                       mx_no_thread(err).text);
    c->started = true;
    e->state = RUNNING;
    return 0;
}

static int take_commit(struct run *r, const struct mx_step *s) {
    const struct committer *c = &r->committer;
    report(r, s, false, c->begin_ns, c->end_ns, (uint64_t)c->time);
    if (c->result < 0)
        return mx_fail(r->why, c->result, "the commit of time step %lld failed: %s", (long long)c->time,
                       strerror(-c->result));
    r->out->committed_steps = c->time;
    return 0;
}

static int finish_commit(struct run *r, struct entry *e) {
    pthread_join(r->committer.thread, NULL);
    r->committer.started = false;
    e->state = DONE;
    return take_commit(r, &e->step);
}

/* Sweeps that were completed by what was under way when the run was stopped. */
static int take_completed(struct run *r) {
    for (uint64_t i = r->first; i < r->end && !r->out->ended; i++) {
        const struct entry *e = at(r, i);
        if (e->state == DONE) continue;
        if (keeps(&e->step) || e->step.kind == MX_STEP_ADVANCE || is_only_taken(r, e)) break;
        const int err = e->step.kind == MX_STEP_COMMIT ? take_sweep(r, e) : 0;
        if (err < 0) return err;
    }
    return 0;
}

/* The run has ended before its last step, and nothing is under way: the newest complete sweep is made
 * durable, for the STOREs of the sweep after it go to another Buffer, and those of the one after that wait
 * (waits_for_commit). */
static int commit_newest(struct run *r) {
    struct mx_step s = {.kind = MX_STEP_COMMIT};
    const bool nowhere =
        r->x->taking != NULL && r->x->taking->only && r->out->steps_done == r->x->problem->nt;
    if (r->x->commit == NULL || r->shape->in_place || nowhere ||
        r->out->steps_done <= r->out->committed_steps)
        return 0;
    s.buffer = r->out->result;
    r->committer = (struct committer){.x = r->x, .time = r->out->steps_done, .buffer = s.buffer};
    commit_thread(&r->committer);
    return take_commit(r, &s);
}

/* ------------------------------------------------------------------ compute */

static void copy_plane(const struct run *r, const struct mx_step *s, int64_t z) {
    memmove(row_address(r, s->to_array, s->region.y0, z, s->to),
            row_address(r, s->array, s->region.y0, z, s->at),
            (size_t)((s->region.y1 - s->region.y0) * r->view.row_pitch_bytes));
}

/* In memory of the accelerator: as many planes at a time as follow one another in both rings. */
static int start_copy(struct run *r, struct entry *e) {
    const struct mx_step *s = &e->step;
    const int64_t pitch = r->view.plane_pitch_bytes;
    e->begin_ns = mx_clock_ns();
    e->state = RUNNING;
    e->number = 0;
    for (int64_t z = s->region.z0, n; z < s->region.z1 && mx_region_rows(s->region) > 0; z += n) {
        n = mx_min(s->region.z1 - z,
                   mx_min(slots(r, s->array) - slot_of(r, s->array, z, s->at.z_offset),
                          slots(r, s->to_array) - slot_of(r, s->to_array, z, s->to.z_offset)));
        const struct mx_accel_copy c = {.to = row_address(r, s->to_array, s->region.y0, z, s->to),
                                        .from = row_address(r, s->array, s->region.y0, z, s->at),
                                        .to_pitch = pitch,
                                        .from_pitch = pitch,
                                        .bytes = (s->region.y1 - s->region.y0) * r->view.row_pitch_bytes,
                                        .n = n};
        const int64_t number = mx_accel_copy(r->x->accel, MX_ACCEL_COPY, &c);
        if (number < 0) return mx_accel_error(r->x->accel, r->why);
        e->number = number;
    }
    return 0;
}

static int finish_copy(struct run *r, struct entry *e) {
    const int err = mx_accel_wait(r->x->accel, MX_ACCEL_COPY, e->number);
    const uint64_t end = mx_clock_ns();
    e->state = DONE;
    r->out->copy_ns += end - e->begin_ns;
    report(r, &e->step, false, e->begin_ns, end, moved_bytes(r, &e->step));
    return err < 0 ? mx_accel_error(r->x->accel, r->why) : 0;
}

static void do_copy(struct run *r, struct entry *e) {
    const struct mx_step *s = &e->step;
    uint64_t begin = mx_clock_ns();
    if (mx_region_rows(s->region) > 0) {
        /* Frames are a few rows; only the hand-over of y overlaps is worth a team of threads. */
        bool large = moved_bytes(r, s) > (1u << 20) && r->x->plan->threads > 1;
        if (large) {
#pragma omp parallel for schedule(static) num_threads(mx_loop_threads(r->x->plan->threads))
            for (int64_t z = s->region.z0; z < s->region.z1; z++) copy_plane(r, s, z);
        } else {
            for (int64_t z = s->region.z0; z < s->region.z1; z++) copy_plane(r, s, z);
        }
    }
    uint64_t end = mx_clock_ns();
    r->out->copy_ns += end - begin;
    e->state = DONE;
    report(r, s, false, begin, end, moved_bytes(r, s));
}

static int64_t window_cells(const struct run *r, const struct mx_step *s) {
    int64_t rows = 0;
    for (int32_t l = s->first; l < s->end; l++) {
        const struct mx_window w = mx_step_window(s, l);
        if (w.y1 > w.y0 && w.z1 > w.z0) rows += (int64_t)(w.y1 - w.y0) * (w.z1 - w.z0);
    }
    return rows * r->x->problem->nx;
}

static void seam_of(const struct run *r, const struct mx_step *s, int64_t slot, const int32_t *y,
                    const int32_t *n, struct mx_seam *seam) {
    if (slot < 0 || r->seam_base == NULL) return;
    *seam = (struct mx_seam){.base = r->seam_base + slot * r->seam_slab_bytes,
                             .planes_per_level = r->shape->seam_planes,
                             .seam_rows = r->shape->seam_rows,
                             .front = s->front,
                             .first_z = s->seam_z,
                             .n_planes = s->seam_nz,
                             .first_y = y,
                             .n_rows = n};
}

static const struct mx_step *next_advance(const struct run *r, uint64_t i) {
    while (++i < r->end)
        if (at(r, i)->step.kind == MX_STEP_ADVANCE) return &at(r, i)->step;
    return NULL;
}

/* Of an algorithm that works on the mapped Buffers: the one that array i is. */
static mx_buffer *mapped_buffer(const struct run *r, int i) {
    return i == 1 && r->shape->pairs ? r->x->partner[0] : r->x->buffer[i];
}

static void advise_planes(const struct run *r, int64_t z0, int64_t z1, enum mx_advice advice) {
    int64_t pitch = r->x->layout->plane_pitch_bytes;
    if (z0 >= z1) return;
    for (int i = 0; i < 2; i++)
        mx_buffer_advise(mapped_buffer(r, i), (uint64_t)(z0 * pitch), (uint64_t)((z1 - z0) * pitch), advice);
    for (int32_t i = 0; i < mx_fixed_count(r->x->problem); i++) {
        const struct mx_fixed_layout *f = &r->x->layout->fixed[i];
        const int64_t from = mx_max(f->offset_bytes + z0 * f->plane_pitch_bytes, 0);
        const int64_t to = mx_min(f->offset_bytes + z1 * f->plane_pitch_bytes, f->bytes);
        if (from < to) mx_buffer_advise(r->x->fixed[i], (uint64_t)from, (uint64_t)(to - from), advice);
    }
}

/* Mapped Buffers that a schedule works on directly: while ADVANCE i computes, the planes that the next
 * one adds are read; planes that the next one has left behind are given up. */
static void advise_around(const struct run *r, uint64_t i, bool before) {
    const struct mx_step *s = &at(r, i)->step, *next = next_advance(r, i);
    if (!r->x->advise || r->shape->rows != 0 || next == NULL) return;
    if (before)
        advise_planes(
            r, next->region.z0 > s->region.z0 ? mx_max(s->region.z1, next->region.z0) : next->region.z0,
            next->region.z1, MX_ADVICE_WILLNEED);
    else if (next->region.z0 > s->region.z0)
        advise_planes(r, s->region.z0, mx_min(next->region.z0, s->region.z1), MX_ADVICE_DROP);
}

/* What is asked of the rows of an ADVANCE: as of the one before, if that is in the same Block, so that
 * engines see that calls belong together. */
static const struct mx_after *after_of(struct run *r, const struct mx_region *block) {
    const struct mx_reach reach = {block->y0, block->y1, {block->z0, block->z0}, {block->z1, block->z1}};
    if (r->x->after == NULL || block->y1 == 0) return r->x->after;
    struct mx_after *last = &r->after[r->reaches % REACHES];
    if (r->reaches > 0 && memcmp(&last->reach, &reach, sizeof reach) == 0) return last;
    last = &r->after[++r->reaches % REACHES];
    *last = *r->x->after;
    last->reach = reach;
    return last;
}

static void start_advance(struct run *r, uint64_t i) {
    struct entry *e = at(r, i);
    const struct mx_step *s = &e->step;
    struct mx_advance a = {.view = r->view,
                           .first_level = r->x->first_level + s->first_level,
                           .parity = s->parity,
                           .levels = s->levels,
                           .window = s->window,
                           .front = s->front,
                           .first = s->first,
                           .end = s->end,
                           .after = after_of(r, &s->block)};
    a.view.y_offset = s->at.y_offset;
    a.view.z_offset = s->at.z_offset;
    seam_of(r, s, s->seam_in, s->seam_in_y, s->seam_in_n, &a.seam_in);
    seam_of(r, s, s->seam_out, s->seam_out_y, s->seam_out_n, &a.seam_out);
    e->cells = window_cells(r, s);
    if (e->looked_at) a.finding = &e->finding;
    e->begin_ns = mx_clock_ns();
    e->call = r->ops->post(r->engine, &a);
    e->state = RUNNING;
    r->advances--;
    r->under_way++;
    advise_around(r, i, true);
}

/* Its time is what the one before left of it. */
static void finish_advance(struct run *r, uint64_t i) {
    struct entry *e = at(r, i);
    const uint64_t begin = e->begin_ns > r->advanced_ns ? e->begin_ns : r->advanced_ns, end = mx_clock_ns();
    if (e->looked_at) add_look(r, e, e->step.first_level + e->step.levels, &e->finding.found);
    r->out->update_ns += end - begin;
    r->cells += e->cells;
    const int64_t before = r->out->updates;
    r->out->updates = steps_of(r, r->cells);
    r->advanced_ns = end;
    r->under_way--;
    e->state = DONE;
    report(r, &e->step, false, begin, end, (uint64_t)(r->out->updates - before));
    advise_around(r, i, false);
    if (r->x->progress != NULL) r->x->progress(r->x->context, r->out->updates);
}

/* ------------------------------------------------------------------ the window */

static void drop_tables(struct tables *t) {
    if (t == NULL || --t->users > 0) return;
    free(t->window);
    free(t->seam);
    free(t);
}

static struct tables *copy_tables(const struct mx_step *s) {
    const size_t n = (size_t)s->levels + 1;
    const int32_t *from[6] = {s->seam_z,    s->seam_nz,    s->seam_in_y,
                              s->seam_in_n, s->seam_out_y, s->seam_out_n};
    struct tables *t = calloc(1, sizeof *t);
    if (t == NULL) return NULL;
    t->pass = s->pass;
    t->users = 1;
    t->window = malloc(n * sizeof *t->window);
    if (s->seam_z != NULL) t->seam = calloc(6 * n, sizeof *t->seam);
    if (t->window == NULL || (s->seam_z != NULL && t->seam == NULL)) return drop_tables(t), NULL;
    memcpy(t->window, s->window, (size_t)s->levels * sizeof *t->window);
    for (size_t i = 0; i < 6 && t->seam != NULL; i++)
        if (from[i] != NULL) memcpy(t->seam + i * n, from[i], n * sizeof *t->seam);
    return t;
}

/* Whether the tables of the newest step are those of this one: of a pass some ADVANCEs have seams, and some,
 * at its ends, have none. */
static bool has_tables(const struct tables *t, const struct mx_step *s) {
    return t != NULL && t->pass == s->pass && (t->seam != NULL || s->seam_z == NULL);
}

static int keep_tables(struct run *r, struct entry *e) {
    struct mx_step *s = &e->step;
    const size_t n = (size_t)s->levels + 1;
    drop_tables(e->tables);
    e->tables = NULL;
    if (s->kind != MX_STEP_ADVANCE) return 0;
    if (!has_tables(r->newest, s)) {
        drop_tables(r->newest);
        if ((r->newest = copy_tables(s)) == NULL) return -ENOMEM;
    }
    e->tables = r->newest;
    e->tables->users++;
    s->window = e->tables->window;
    const bool seams = s->seam_z != NULL;
    const int32_t **seam[6] = {&s->seam_z,    &s->seam_nz,    &s->seam_in_y,
                               &s->seam_in_n, &s->seam_out_y, &s->seam_out_n};
    for (size_t i = 0; i < 6 && seams; i++) *seam[i] = e->tables->seam + i * n;
    return 0;
}

/* ------------------------------------------------------------------ which Buffer it is */

static int32_t free_buffer(const struct run *r, int32_t source, int32_t committed) {
    if (r->x->n_buffers < MX_BUFFERS) return 1 - source;
    for (int32_t i = 0; i < MX_BUFFERS; i++)
        if (i != source && i != committed) return i;
    return -1; /* never: of three, one is neither of two */
}

/* Whether the sweep that is taken from the schedule, and ends with this level, is to be durable. */
static int is_due(struct run *r, int64_t time) {
    const uint64_t now = mx_clock_ns();
    const bool may_rest =
        r->x->n_buffers == MX_BUFFERS && !r->shape->in_place && steps_of(r, time) < r->x->problem->nt;
    if (r->x->commit == NULL) return 0;
    int due = !may_rest || (double)(now - r->decided_ns) * 1e-9 >= r->x->commit_every_s;
    if (may_rest && r->x->agree != NULL) due = r->x->agree(r->x->context, due, r->why);
    if (due > 0) r->decided_ns = now;
    return due;
}

/* Of the step at `end`: 1 = it may be taken up, 0 = what all ranks decide about it is not known yet. */
static int settle_due(struct run *r) {
    const struct mx_step *s = &at(r, r->end)->step;
    if (s->kind != MX_STEP_COMMIT) return 1;
    if (!r->held || r->due == -EAGAIN) r->due = is_due(r, s->time);
    r->held = true;
    return r->due == -EAGAIN ? 0 : r->due < 0 ? r->due : 1;
}

/* The end of a sweep was taken from the schedule. The Buffer committed before is given up when this sweep
 * is durable, which is why the next sweep does not write it yet: it may start before. */
static void end_sweep(struct run *r, struct entry *e) {
    const int32_t next = free_buffer(r, r->target, r->committed);
    e->durable = !is_only_taken(r, e) && r->due > 0;
    e->source = r->source;
    e->frees = r->x->n_buffers < MX_BUFFERS ? r->source : r->committed;
    if (r->shape->in_place) return;
    e->step.buffer = r->target;
    if (e->durable) r->committed = r->target;
    r->called = 1 - r->called;
    r->source = r->target;
    r->target = next;
}

static void settle_buffer(struct run *r, struct entry *e) {
    struct mx_step *s = &e->step;
    e->fed = r->feeder != NULL && r->first_sweep && s->kind == MX_STEP_LOAD && s->buffer < MX_SEAMS;
    e->feed = NULL;
    if (s->kind == MX_STEP_COMMIT) r->first_sweep = false, end_sweep(r, e);
    if (moves(s) && s->buffer < MX_SEAMS && !r->shape->in_place)
        s->buffer = s->buffer == r->called ? r->source : r->target;
}

/* Steps of one sweep are of one message. The next one is asked for with the first STORE, long before the end
 * of a sweep is taken from the schedule, for who sends may have to come to terms with who receives. */
static int settle_exchange(struct run *r, struct entry *e) {
    const bool ends = e->step.kind == MX_STEP_COMMIT;
    e->sweep = r->sweeps;
    r->sweeps += ends;
    if (r->exchange == NULL) return 0;
    if (is_given(e)) mx_exchange_load(r->exchange, &e->step, e->sweep);
    if ((!ends && !keeps(&e->step)) || r->x->decides != NULL) return 0;
    return mx_exchange_ask(r->exchange, e->sweep + 1, e->step.next_given, r->why);
}

/* ------------------------------------------------------------------ filling and emptying the window */

static int fill_window(struct run *r) {
    int64_t advances = r->x->plan->ahead + 1 > WINDOW_ADVANCES ? r->x->plan->ahead + 1 : WINDOW_ADVANCES;
    while (!r->exhausted && r->advances < advances && r->end - r->first < WINDOW_STEPS) {
        struct entry *e = at(r, r->end);
        if (!r->held) {
            memset(&e->step, 0, sizeof e->step);
            e->step.seam_in = e->step.seam_out = -1;
            int more = r->schedule->ops->next(r->schedule, &e->step);
            if (more < 0) return mx_fail(r->why, more, "the schedule failed: %s", strerror(-more));
            if (more == 0) return r->exhausted = true, 0;
        }
        const int known = settle_due(r);
        if (known <= 0) return known;
        r->held = false;
        if (keep_tables(r, e) < 0) return mx_fail(r->why, -ENOMEM, "no memory for the windows of a step");
        settle_taking(r, e);
        settle_buffer(r, e);
        if (settle_exchange(r, e) < 0) return -EIO;
        e->state = WAITING;
        e->ticket = NULL;
        r->advances += e->step.kind == MX_STEP_ADVANCE;
        r->end++;
    }
    return 0;
}

/* Whether a step that has been started is through. */
static bool has_ended(const struct run *r, const struct entry *e) {
    if (e->step.kind == MX_STEP_ADVANCE) return r->ops->done(r->engine) >= e->call;
    if (e->step.kind == MX_STEP_COMMIT)
        return atomic_load_explicit(&r->committer.ended, memory_order_acquire);
    if (e->step.kind == MX_STEP_COPY) return mx_accel_is_done(r->x->accel, MX_ACCEL_COPY, e->number);
    if (is_given(e) && !staged(r)) return given_is_here(r, e);
    return (e->halfway || !staged(r)) && half_ended(r, e) && mx_take_done(e->take);
}

/* Takes up the end of step i, which has been started; waits for it. */
static int finish(struct run *r, uint64_t i) {
    struct entry *e = at(r, i);
    assert(e->state == RUNNING);
    if (e->step.kind == MX_STEP_COMMIT) return finish_commit(r, e);
    if (e->step.kind == MX_STEP_COPY) return finish_copy(r, e);
    if (e->step.kind != MX_STEP_ADVANCE) return finish_transfer(r, e);
    r->ops->wait(r->engine, e->call);
    finish_advance(r, i);
    return staged(r) ? mx_accel_error(r->x->accel, r->why) : 0;
}

/* Takes up what has finished meanwhile, without waiting. */
static int collect(struct run *r) {
    int err = pass_halves(r);
    if (err == 0) err = look_at_neighbours(r);
    for (uint64_t i = r->first; i < r->end && err == 0; i++)
        if (at(r, i)->state == RUNNING && has_ended(r, at(r, i))) err = finish(r, i);
    while (r->first < r->end && at(r, r->first)->state == DONE) r->first++;
    return err;
}

/* The oldest transfer of a kind that is under way: they have all of its pieces of the staging memory. */
static uint64_t oldest_staged(const struct run *r, enum mx_step_kind kind) {
    uint64_t i = r->first;
    while (at(r, i)->state != RUNNING || at(r, i)->step.kind != kind) i++;
    return i;
}

/* First unfinished step before i that step i must wait for, or a transfer that has the staging memory
 * which it needs; i itself if there is none. */
static uint64_t blocker(const struct run *r, uint64_t i) {
    for (uint64_t j = r->first; j < i; j++)
        if (at(r, j)->state != DONE && depends(r, at(r, i), at(r, j))) return j;
    return staged(r) && moves(&at(r, i)->step) && !is_given(at(r, i)) &&
                   mx_region_rows(at(r, i)->step.region) > 0 &&
                   mx_staging_is_taken(&r->staging, at(r, i)->step.kind == MX_STEP_LOAD)
               ? oldest_staged(r, at(r, i)->step.kind)
               : i;
}

static int start(struct run *r, uint64_t i) {
    struct entry *e = at(r, i);
    if (moves(&e->step)) return start_transfer(r, e);
    if (e->step.kind == MX_STEP_COMMIT) return start_commit(r, e);
    if (e->step.kind == MX_STEP_COPY && staged(r)) return start_copy(r, e);
    if (e->step.kind == MX_STEP_COPY) do_copy(r, e);
    if (e->step.kind == MX_STEP_ADVANCE) start_advance(r, i);
    return 0;
}

/* The first ADVANCE that has not started; end if the window has none. */
static uint64_t waiting_advance(const struct run *r) {
    uint64_t i = r->first;
    while (i < r->end && (at(r, i)->step.kind != MX_STEP_ADVANCE || at(r, i)->state != WAITING)) i++;
    return i;
}

/* For what neighbours get of a STORE: while it has none, everything else goes on. With an accelerator that is
 * asked when the rows are in the staging memory. */
static bool has_room(const struct run *r, const struct entry *e) {
    return r->exchange == NULL || !keeps(&e->step) || staged(r) || is_only_taken(r, e) ||
           mx_exchange_has_room(r->exchange, &e->step);
}

/* Starts every step that depends on nothing unfinished; an ADVANCE last, for there are engines that
 * return only when it is done. *some: whether something was started. */
static int start_ready(struct run *r, bool *some) {
    int err = 0;
    *some = false;
    for (uint64_t i = r->first; i < r->end && err == 0 && !r->out->ended; i++) {
        const struct entry *e = at(r, i);
        if (e->state != WAITING || e->step.kind == MX_STEP_ADVANCE || blocker(r, i) != i || !has_room(r, e))
            continue;
        err = start(r, i);
        *some = true;
    }
    const uint64_t next = waiting_advance(r);
    if (err < 0 || r->out->ended || next == r->end || r->under_way >= ADVANCES_UNDER_WAY ||
        blocker(r, next) != next)
        return err;
    *some = true;
    return start(r, next);
}

/* The step under way that the next ADVANCE, or if there is none the oldest step, waits for. */
static uint64_t awaited(const struct run *r) {
    uint64_t i = waiting_advance(r);
    if (i == r->end) i = r->first;
    while (at(r, i)->state == WAITING) {
        const uint64_t j = blocker(r, i);
        if (j == i) break; /* an ADVANCE that waits for its turn only */
        i = j;
    }
    return i;
}

static uint64_t oldest_advance(const struct run *r) {
    uint64_t i = r->first;
    while (at(r, i)->step.kind != MX_STEP_ADVANCE || at(r, i)->state != RUNNING) i++;
    return i;
}

/* With an accelerator or neighbours: until something has ended, whatever it is, or all ranks agree on the
 * next commit, for then something else can start, which others may be waiting for; halves are passed on
 * meanwhile. What ended is taken up by who collects. */
static bool waits_for_any(const struct run *r) { return staged(r) || r->exchange != NULL; }

static int wait_for_any(struct run *r) {
    for (;;) {
        const uint32_t heard = mx_bell_heard(r->bell);
        int err = pass_halves(r);
        if (err == 0) err = look_at_neighbours(r);
        if (err < 0) return err;
        for (uint64_t i = r->first; i < r->end; i++)
            if (at(r, i)->state == RUNNING && has_ended(r, at(r, i))) return 0;
        if (r->exchange != NULL && mx_exchange_freed(r->exchange)) return 0;
        if (r->held && settle_due(r) != 0) return r->due < 0 ? r->due : 0;
        /* What others send may never come. */
        if (r->exchange != NULL && r->x->stop != NULL && *r->x->stop) return -EINTR;
        mx_bell_wait(r->bell, heard, staged(r) ? LOOK_AGAIN_STAGED_NS : LOOK_AGAIN_NS);
    }
}

/* Nothing is computed: waits for what the next ADVANCE waits for. */
static int wait_idle(struct run *r) {
    if (r->first == r->end) return wait_for_any(r); /* a COMMIT that is held */
    const uint64_t i = awaited(r), begin = mx_clock_ns();
    int err = 0;
    if (waits_for_any(r))
        err = wait_for_any(r);
    else
        err = finish(r, i);
    uint64_t end = mx_clock_ns();
    r->out->wait_ns += end - begin;
    report(r, &at(r, i)->step, true, begin, end, 0);
    return err;
}

/* An ADVANCE is under way: waits for the end of it, or of what the next one waits for. */
static int wait_busy(struct run *r) {
    const uint64_t a = oldest_advance(r), i = awaited(r);
    const bool transfer = r->under_way < ADVANCES_UNDER_WAY && at(r, i)->state == RUNNING &&
                          at(r, i)->step.kind != MX_STEP_ADVANCE;
    if (waits_for_any(r)) return wait_for_any(r);
    while (transfer) {
        const uint32_t heard = mx_bell_heard(r->bell);
        if (has_ended(r, at(r, a)) || has_ended(r, at(r, i))) break;
        mx_bell_wait(r->bell, heard, LOOK_AGAIN_NS);
    }
    return finish(r, transfer && !has_ended(r, at(r, a)) ? i : a);
}

/* After the last step, an interruption or an error: nothing may be under way when the Blocks are freed.
 * The first error counts, with its sentence, and an interruption is none. Ranks that end so do not wait for
 * others, which a commit under way would: its end is then that the exchange was given up. */
static int drain(struct run *r, int err) {
    mx_why *why = r->why;
    r->given_up = true;
    const bool quits = err < 0 && r->exchange != NULL;
    if (quits) r->x->neighbours->quit(r->x->link);
    for (uint64_t i = r->first; i < r->end; i++) {
        const bool failed = err < 0 && err != -EINTR;
        if (failed) r->why = NULL;
        int mine = at(r, i)->state == RUNNING ? finish(r, i) : 0;
        if (mine < 0 && !failed && !(quits && mine == -ECANCELED)) err = mine;
    }
    r->why = why;
    if (err < 0 && r->exchange != NULL) return err; /* what all ranks have committed last stays */
    if (err == -EINTR || r->out->ended) {
        const int taken = take_completed(r);
        if (taken < 0) err = taken;
    }
    if (err != -EINTR && err != -EDOM && (err < 0 || !r->out->ended)) return err;
    const int committed = commit_newest(r);
    if (committed < 0) return committed;
    return r->out->ended && err != -EDOM ? 0 : err;
}

static int loop(struct run *r) {
    int err = fill_window(r);
    while (err == 0 && (r->first < r->end || r->held) && !r->out->ended) {
        bool some;
        if (r->x->stop != NULL && *r->x->stop) return -EINTR;
        err = start_ready(r, &some);
        if (err == 0 && !some) err = r->under_way > 0 ? wait_busy(r) : wait_idle(r);
        if (err == 0) err = collect(r);
        if (err == 0) err = fill_window(r);
    }
    return err;
}

/* ------------------------------------------------------------------ set-up */

static int make_block(struct run *r, int64_t bytes, int64_t unit, mx_device *device, mx_block **out) {
    struct mx_block_options o = {.budget = r->x->budget,
                                 .lock = r->x->lock,
                                 .node_split_bytes = (uint64_t)unit,
                                 .device = r->x->mapped ? NULL : device};
    r->out->block_bytes += bytes;
    return mx_block_create(&o, (uint64_t)bytes, r->why, out);
}

/* An array: a Block, or memory of the accelerator. Poison: whatever is used without having been loaded
 * shows.
 */
static int make_array(struct run *r, int64_t bytes, int64_t unit, const char *what, mx_device *device,
                      mx_block **block, char **base) {
    int err = staged(r) ? mx_staging_array(&r->staging, bytes, what, r->why, base)
                        : make_block(r, bytes, unit, device, block);
    if (err < 0) return err;
    if (staged(r)) r->out->block_bytes += bytes;
    if (staged(r)) return r->x->poison ? mx_staging_poison(&r->staging, *base, bytes, r->why) : 0;
    *base = mx_block_data(*block);
    if (r->x->poison) memset(*base, 0xff, mx_block_bytes(*block));
    return 0;
}

static int open_fixed(struct run *r, int32_t field) {
    const struct mx_fixed_layout *l = &r->x->layout->fixed[field];
    struct mx_fixed_view *v = &r->fixed[field];
    int err = 0;
    if (r->x->fixed[field] == NULL)
        return mx_fail(r->why, -EINVAL, "there is no Buffer and no file for field %s",
                       r->x->problem->system->fixed[field].name);
    *v = (struct mx_fixed_view){.slots = r->shape->rows == 0 ? r->x->layout->planes : r->shape->fixed_slots,
                                .row_pitch_bytes = l->row_pitch_bytes,
                                .offset_bytes = l->offset_bytes,
                                .file_plane_pitch_bytes = l->plane_pitch_bytes,
                                .align_bytes = mx_max(l->align_bytes, 1)};
    if (r->shape->ghost[MX_DIM_Z]) {
        v->first_plane = r->x->problem->h;
        v->period_planes = r->x->problem->nz;
    }
    r->view.fixed = r->fixed;
    if (r->shape->rows == 0) {
        void *base = NULL;
        err = mx_buffer_map(r->x->fixed[field], r->why, &base);
        if (err < 0) return err;
        v->base = (char *)base + l->offset_bytes;
        v->slot_pitch_bytes = l->plane_pitch_bytes;
        v->align_bytes = 1;
        return 0;
    }
    v->slot_pitch_bytes = mx_fixed_slot_bytes(l, r->shape->rows);
    return make_array(r, v->slots * v->slot_pitch_bytes, v->slot_pitch_bytes, "a read-only field",
                      mx_buffer_device(r->x->fixed[field]), &r->fixed_block[field], &v->base);
}

static int open_staging(struct run *r) {
    const int64_t piece = mx_execute_piece_bytes(r->x->problem, r->shape, r->x->layout, r->x->plan);
    if (r->shape->rows == 0)
        return mx_fail(r->why, -EINVAL,
                       "an algorithm that works on mapped Buffers cannot use an accelerator");
    int err = make_block(r, MX_STAGING_PIECES * piece, piece, r->x->device, &r->staging_block);
    if (err < 0) return err;
    r->out->block_bytes -= MX_STAGING_PIECES * piece;
    return mx_staging_open(&r->staging, r->x->accel, r->x->budget, mx_block_data(r->staging_block), piece,
                           r->n_spans, r->why);
}

static int open_arrays(struct run *r) {
    const struct mx_layout *l = r->x->layout;
    int err = staged(r) ? open_staging(r) : 0;
    if (err < 0) return err;
    r->view.row_pitch_bytes = l->row_pitch_bytes;
    for (int32_t i = 0; i < mx_fixed_count(r->x->problem) && err == 0; i++) err = open_fixed(r, i);
    if (r->shape->rows == 0) {
        r->view.plane_pitch_bytes = l->plane_pitch_bytes;
        for (int i = 0; i < 2 && err == 0; i++) {
            void *base = NULL;
            err = mx_buffer_map(mapped_buffer(r, i), r->why, &base);
            r->view.base[i] = base;
            r->view.slots[i] = l->planes;
        }
        return err;
    }
    r->view.plane_pitch_bytes = mx_block_plane_pitch(r->shape, l);
    if (!r->x->mapped) {
        struct mx_device_facts facts = {
            .size = sizeof facts}; /* memory_align is 4 to 512 on all but rare devices */
        mx_device_facts(r->x->device, &facts);
        if (r->view.plane_pitch_bytes % facts.memory_align_bytes != 0)
            r->view.plane_pitch_bytes = mx_block_plane_bytes(r->shape, l);
    }
    for (int i = 0; i < 2 && err == 0; i++) {
        r->view.slots[i] = r->shape->slots[i];
        err = make_array(r, r->shape->slots[i] * r->view.plane_pitch_bytes, r->view.plane_pitch_bytes,
                         i == 0 ? "the first ring of planes" : "the second ring of planes", r->x->device,
                         &r->block[i], &r->view.base[i]);
    }
    r->seam_slab_bytes = mx_seam_slab_bytes(r->shape, l);
    if (err == 0 && r->shape->seams_in_file && r->x->seams == NULL)
        err = mx_fail(r->why, -EINVAL, "the plan keeps faces in a side file, and there is none");
    if (err == 0 && r->seam_slab_bytes > 0)
        err = make_array(r, r->shape->seam_slots * r->seam_slab_bytes, r->seam_slab_bytes, "faces",
                         r->x->device, &r->seam_block, &r->seam_base);
    return err;
}

static int open_exchange(struct run *r) {
    r->exchange = calloc(1, sizeof *r->exchange);
    if (r->exchange == NULL) return mx_fail(r->why, -ENOMEM, "no memory for what neighbours exchange");
    r->out->block_bytes += mx_execute_given_bytes(r->shape, r->x->layout);
    return mx_exchange_open(r->exchange, r->x, r->schedule, r->why);
}

static void close_run(struct run *r) {
    for (int i = 0; i < WINDOW_STEPS && r->entries != NULL; i++) drop_tables(r->entries[i].tables);
    drop_tables(r->newest);
    for (int i = 0; i < WINDOW_STEPS && r->entries != NULL; i++)
        pthread_mutex_destroy(&r->entries[i].finding.lock);
    free(r->entries);
    free(r->look);
    free(r->spans);
    if (staged(r)) mx_staging_close(&r->staging);
    if (r->exchange != NULL) mx_exchange_close(r->exchange);
    free(r->exchange);
    mx_block_free(r->staging_block);
    for (int i = 0; i < MX_MAX_FIXED; i++) mx_block_free(r->fixed_block[i]);
    mx_block_free(r->plane);
    mx_block_free(r->seam_block);
    mx_block_free(r->block[1]);
    mx_block_free(r->block[0]);
}

int mx_execute(const struct mx_execution *x, struct mx_schedule *schedule, const struct mx_engine_ops *ops,
               mx_engine *engine, mx_why *why, struct mx_executed *out) {
    struct run r = {.x = x,
                    .schedule = schedule,
                    .sweep_ns = mx_clock_ns(),
                    .ops = ops,
                    .engine = engine,
                    .why = why,
                    .out = out,
                    .bell = mx_bell_open(),
                    .shape = &schedule->shape,
                    .first_sweep = true,
                    .source = x->source,
                    .committed = x->committed,
                    .decided_ns = mx_clock_ns()};
    memset(out, 0, sizeof *out);
    out->result = x->source;
    r.target = free_buffer(&r, x->source, x->committed);
    r.n_spans = mx_max(x->layout->planes, 1);
    r.entries = calloc(WINDOW_STEPS, sizeof *r.entries);
    r.spans = calloc((size_t)r.n_spans, sizeof *r.spans);
    r.look = calloc(WINDOW_STEPS, sizeof *r.look);
    for (int i = 0; i < WINDOW_STEPS && r.entries != NULL; i++)
        pthread_mutex_init(&r.entries[i].finding.lock, NULL);
    int err = r.entries == NULL || r.spans == NULL || r.look == NULL
                  ? mx_fail(why, -ENOMEM, "no memory for the executor's window")
                  : open_arrays(&r);
    if (err == 0 && x->feeding != NULL) err = mx_feeder_start(x->feeding, why, &r.feeder);
    if (err == 0) err = open_taking(&r);
    if (err == 0 && schedule->first_given > 0) err = open_exchange(&r);
    if (err == 0) {
        const struct mx_accel_counters before =
            staged(&r) ? mx_accel_counters(x->accel) : (struct mx_accel_counters){0};
        uint64_t begin = mx_clock_ns();
        err = mx_taker_stop(r.taker, drain(&r, loop(&r)), why);
        if (err == 0 && r.exchange != NULL) err = mx_exchange_end(r.exchange, r.taken, why);
        out->total_ns = mx_clock_ns() - begin;
        if (staged(&r)) {
            const struct mx_accel_counters now = mx_accel_counters(x->accel);
            out->put_bytes = now.put_bytes - before.put_bytes;
            out->get_bytes = now.get_bytes - before.get_bytes;
            out->aside_put_bytes = now.aside_put_bytes - before.aside_put_bytes;
            out->aside_get_bytes = now.aside_get_bytes - before.aside_get_bytes;
        }
    }
    mx_feeder_stop(r.feeder);
    close_run(&r);
    mx_bell_close();
    return err;
}
