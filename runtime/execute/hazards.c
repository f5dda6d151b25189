/* SPDX-License-Identifier: BSD-3-Clause */
/* hazards.c - which steps wait for which: those that touch the same rows of the Block arrays or of a Buffer
 * with a write among them, and what may not overwrite a state that is still needed. */
#include "execute/executor.h"
#include "machine/minmax.h"

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

static struct touch touch_of(const struct executor *r, int32_t array, bool write, struct mx_region g,
                             struct mx_placement p) {
    int64_t n = g.z1 - g.z0, all = mx_exec_slots(r, array);
    return (struct touch){array,
                          write,
                          g.y0 + p.y_offset,
                          g.y1 + p.y_offset,
                          mx_exec_slot(r, array, g.z0, p.z_offset),
                          n < all ? n : all};
}

static struct touch touch_planes(const struct executor *r, const struct mx_step *s, int32_t array, bool write,
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
static struct touch touch_fixed(const struct executor *r, int32_t array, bool write, int64_t z0, int64_t z1,
                                struct mx_placement p) {
    struct touch t = touch_of(r, array, write, (struct mx_region){0, 0, z0, mx_max(z0, z1)}, p);
    t.y0 = INT64_MIN, t.y1 = INT64_MAX;
    return t;
}

enum { MOST_TOUCHES = 7 };

static int touches(const struct executor *r, const struct mx_step *s, struct touch t[MOST_TOUCHES]) {
    int n = 0;
    switch (s->kind) {
    case MX_STEP_LOAD:
        t[n++] = mx_exec_is_fixed(s->array)
                     ? touch_fixed(r, s->array, true, s->region.z0, s->region.z1, s->at)
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
    return a == b || (mx_exec_is_fixed(a) && mx_exec_is_fixed(b) && (a == ALL_FIXED || b == ALL_FIXED));
}

static bool blocks_meet(const struct executor *r, const struct mx_step *a, const struct mx_step *b) {
    struct touch ta[MOST_TOUCHES], tb[MOST_TOUCHES];
    int na = touches(r, a, ta), nb = touches(r, b, tb);
    for (int i = 0; i < na; i++)
        for (int j = 0; j < nb; j++)
            if (same_array(ta[i].array, tb[j].array) && (ta[i].write || tb[j].write) && ta[i].y0 < tb[j].y1 &&
                tb[j].y0 < ta[i].y1 &&
                slots_meet(ta[i].slot, ta[i].n_slots, tb[j].slot, tb[j].n_slots,
                           mx_exec_slots(r, ta[i].array)))
                return true;
    return false;
}

static bool buffers_meet(const struct mx_step *a, const struct mx_step *b) {
    const struct mx_region p = mx_step_in_buffer(a), q = mx_step_in_buffer(b);
    return a->neighbour == 0 && b->neighbour == 0 && a->buffer == b->buffer && a->part == b->part &&
           p.y0 < q.y1 && q.y0 < p.y1 && p.z0 < q.z1 && q.z0 < p.z1;
}

static bool ends_fit(struct mx_planes a, struct mx_planes b, int64_t slots) {
    const bool both = a.z0 < a.z1 && b.z0 < b.z1;
    return !both || mx_max(a.z1, b.z1) - mx_min(a.z0, b.z0) <= slots;
}

/* Two ADVANCEs in the same placement: the engine sees what one needs of the other. Only that planes of both
 * do not share a slot is ours to see. */
static bool can_be_under_way_together(const struct executor *r, const struct mx_step *a,
                                      const struct mx_step *b) {
    if (r->shape->rows == 0) return true;
    if (a->at.y_offset != b->at.y_offset || a->at.z_offset != b->at.z_offset) return !blocks_meet(r, a, b);
    return ends_fit(a->touches[0], b->touches[0], mx_exec_slots(r, 0)) &&
           ends_fit(a->touches[1], b->touches[1], mx_exec_slots(r, 1));
}

/* Does it compute levels that are too far from the sweeps that were taken? */
static bool is_too_far(const struct executor *r, const struct mx_step *advance) {
    const int64_t taken = r->out->steps_done * mx_levels_a_step(r->x->problem);
    return r->x->most_ahead > 0 && advance->first_level + advance->levels > taken + r->x->most_ahead;
}

/* May the run end with this sweep, and is not known to go on? */
static bool is_undecided(const struct executor *r, const struct entry *commit) {
    return commit->state == WAITING && r->x->decides != NULL &&
           r->x->decides(r->x->context, mx_exec_steps(r, commit->step.time));
}

/* Would it overwrite the state that this sweep ends with? Of mapped Buffers that are worked on directly
 * ADVANCEs do. */
static bool overwrites(const struct executor *r, const struct mx_step *later, const struct mx_step *commit) {
    if (r->shape->rows == 0) return later->kind == MX_STEP_ADVANCE;
    return mx_exec_keeps(later) && (r->shape->in_place || later->buffer == commit->buffer);
}

/* One state is taken after the other; and from Buffers that are rewritten in place before that is done. */
static bool waits_for_taking(const struct executor *r, const struct entry *later,
                             const struct entry *commit) {
    if (commit->take_step == 0 || commit->state != WAITING) return false;
    if (mx_exec_takes_stores(r)) return later->step.kind == MX_STEP_STORE && later->take_step > 0;
    return mx_exec_keeps(&later->step) || (r->shape->rows == 0 && later->step.kind == MX_STEP_ADVANCE);
}

/* A sweep may overwrite the source of the one before it only when that one is complete, for until then the
 * source is the newest complete state there is; and a committed state only when a newer one is durable. */
static bool waits_for_commit(const struct executor *r, const struct entry *later,
                             const struct entry *commit) {
    const int32_t buffer = later->step.buffer;
    if (waits_for_taking(r, later, commit)) return true;
    if (later->step.kind == MX_STEP_STORE && later->step.next_given > 0 && is_undecided(r, commit))
        return true;
    if (later->step.kind == MX_STEP_COMMIT) return later->durable || commit->state == WAITING;
    if (mx_exec_is_only_taken(r, later)) return false;
    if (overwrites(r, &later->step, &commit->step) && is_undecided(r, commit)) return true;
    if (later->step.kind == MX_STEP_ADVANCE) return commit->state == WAITING && is_too_far(r, &later->step);
    if (!mx_exec_keeps(&later->step) || r->x->commit == NULL) return false;
    if (r->shape->in_place) return true;
    return (commit->state == WAITING && buffer == commit->source) ||
           (commit->durable && buffer == commit->frees);
}

/* Whole boxes are handed out in the order of the schedule. */
static bool waits_its_turn(const struct executor *r, const struct entry *later, const struct entry *earlier) {
    return later->take_step > 0 && earlier->take_step > 0 && earlier->state == WAITING &&
           mx_exec_takes_boxes(r, later->take_step) && later->step.kind == MX_STEP_STORE &&
           earlier->step.kind == MX_STEP_STORE;
}

/* Must `later` wait for `earlier`, which comes before it in program order and is unfinished? */
bool mx_exec_depends(const struct executor *r, const struct entry *later_entry,
                     const struct entry *earlier_entry) {
    const struct mx_step *later = &later_entry->step, *earlier = &earlier_entry->step;
    const bool advances = earlier->kind == MX_STEP_ADVANCE;
    if (earlier->kind == MX_STEP_COMMIT) return waits_for_commit(r, later_entry, earlier_entry);
    if (later->kind == MX_STEP_COMMIT) return mx_exec_keeps(earlier) || advances;
    if (later->neighbour > 0 && earlier->neighbour == later->neighbour &&
        earlier_entry->sweep < later_entry->sweep)
        return true; /* the message that it is of has no room yet */
    if (r->exchange != NULL && later->kind == MX_STEP_STORE && earlier->kind == MX_STEP_STORE &&
        mx_exec_keeps(earlier) && earlier_entry->sweep < later_entry->sweep)
        return true; /* rows of one message come before those of the next */
    if (later->kind == MX_STEP_ADVANCE && advances) return !can_be_under_way_together(r, later, earlier);
    if (r->shape->rows == 0 || waits_its_turn(r, later_entry, earlier_entry)) return true;
    if (mx_exec_moves(later) && mx_exec_moves(earlier) &&
        (later->kind == MX_STEP_STORE || earlier->kind == MX_STEP_STORE) && buffers_meet(later, earlier))
        return true;
    return blocks_meet(r, later, earlier);
}
