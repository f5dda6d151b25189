/* SPDX-License-Identifier: BSD-3-Clause */
/* taking.c - states that are handed out (take.h), and that are looked at for cells that are not finite. */
#include "execute/executor.h"

#include <errno.h>
#include <string.h>

/* The least number of levels between two states that are looked at, if these are not committed. If levels are
 * computed one by one in DRAM, a look costs up to half as much as a level, since its rows are no longer in
 * cache. With this distance it costs less than 1 %. */
enum { LOOK_LEVELS = 64 };

/* The array of the system, A or B, that part 0 or 1 of a Buffer is. */
static int array_of_part(const struct executor *r, int32_t part) {
    return r->shape->pairs ? part ^ (int)(r->x->first_level & 1) : 0;
}

/* Of leapfrog the other array holds the step before. */
static bool holds_state(const struct executor *r, int array, int64_t step) {
    return mx_form(r->x->problem) != MX_LEAPFROG || array == (int)(step & 1);
}

/* Frames that are stored as copies of the other end are none of the state's interior. */
static bool is_copy_of_frame(const struct mx_step *s) { return s->buffer_y != 0 || s->buffer_z != 0; }

/* Rows are looked at where they are in cache: by the engine, when it has computed them. An accelerator has
 * them elsewhere; and of a staggered system, both arrays of which are the state, overlapped blocks compute
 * the level before the last in part twice: there they are looked at as they are stored. */
static bool looks_at_stores(const struct executor *r) {
    return mx_exec_staged(r) || (r->x->stores_once && mx_states(r->x->problem) > 1);
}

/* Is the state of this level, with which a sweep ends, one that is looked at? */
static bool wants_look(const struct executor *r, int64_t level) {
    const struct mx_execution *x = r->x;
    const int64_t of_run = mx_exec_steps(r, x->first_level + level);
    const bool last = mx_exec_steps(r, level) == x->problem->nt;
    if (x->commit != NULL || last || level == r->looked_at) return true;
    if (mx_exec_is_taken(r, of_run)) return true;
    return level - r->looked_at >= LOOK_LEVELS;
}

/* state: the step stores rows of the state of this level. */
static void settle_looking(struct executor *r, struct entry *e, int64_t level, bool state) {
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
void mx_exec_add_look(struct executor *r, const struct entry *e, int64_t level,
                      const struct mx_nonfinite *found) {
    struct look *look = &r->look[e->sweep % WINDOW_STEPS];
    if (level == look->level) mx_nonfinite_add(&look->found, found);
}

void mx_exec_settle_taking(struct executor *r, struct entry *e) {
    const struct mx_step *s = &e->step;
    e->take = NULL;
    e->take_step = 0;
    if (s->kind == MX_STEP_ADVANCE) r->sweep_end = r->x->first_level + s->first_level + s->levels;
    const bool told = s->kind == MX_STEP_COMMIT || (s->kind == MX_STEP_STORE && s->time > 0);
    const int64_t level = told ? r->x->first_level + s->time : r->sweep_end;
    const int64_t step = mx_exec_steps(r, level);
    const bool state = mx_exec_keeps(s) && holds_state(r, array_of_part(r, s->part), step);
    settle_looking(r, e, level - r->x->first_level, state && !is_copy_of_frame(s));
    if (r->x->taking[0] == NULL) return;
    const bool store =
        mx_exec_takes_stores(r) && state && (mx_exec_takes_boxes(r, step) || !is_copy_of_frame(s));
    if ((store || s->kind == MX_STEP_COMMIT) && mx_exec_is_taken(r, step)) e->take_step = step;
}

/* Rows of a STORE: in the Block array, or where there is an accelerator in DRAM where they have been got to
 * (mx_exec_spans): a piece of the staging memory, or the Buffer. */
struct mx_view mx_exec_stored_view(const struct executor *r, const struct mx_step *s) {
    struct mx_view view = r->view;
    view.y_offset = s->at.y_offset;
    view.z_offset = s->at.z_offset;
    if (!mx_exec_staged(r)) return view;
    view.base[s->array] = r->spans[0].dram;
    view.plane_pitch_bytes = s->region.z1 - s->region.z0 > 1
                                 ? (char *)r->spans[1].dram - (char *)r->spans[0].dram
                                 : (int64_t)r->spans[0].bytes;
    view.slots[s->array] = s->region.z1 - s->region.z0;
    view.z_offset = -s->region.z0;
    view.y_offset = s->whole_planes ? 0 : -s->region.y0;
    return view;
}

/* While they are being stored: nobody writes them. */
void mx_exec_look_at_store(struct executor *r, struct entry *e) {
    const struct mx_step *s = &e->step;
    if (!e->looked_at) return;
    e->looking = (struct mx_looking){.view = mx_exec_stored_view(r, s),
                                     .view_array = s->array,
                                     .array = array_of_part(r, s->part),
                                     .region = s->region,
                                     .finding = &e->finding};
    if (r->looker != NULL)
        mx_looker_post(r->looker, &e->looking);
    else
        mx_look_at(r->x->problem, r->x->layout, &e->looking);
}

/* Waits for it. */
void mx_exec_end_look(struct executor *r, struct entry *e) {
    if (!e->looked_at) return;
    mx_looker_wait(r->looker, &e->looking);
    mx_nonfinite_add(&r->look[e->sweep % WINDOW_STEPS].found, &e->finding.found);
}

/* Half of the cores where they have nothing to compute; the other half copies. Where the cores compute, this
 * thread looks: one more would take a core from them. */
void mx_exec_open_looking(struct executor *r) {
    if (r->x->finite == NULL || !mx_exec_staged(r) || mx_accel_facts(r->x->accel)->here) return;
    r->looker = mx_looker_start((int32_t)mx_max(r->x->plan->threads / 2, 1), r->x->problem, r->x->layout);
}

/* Of the sweep that ends with e. */
int mx_exec_judge_sweep(struct executor *r, const struct entry *e) {
    struct look *look = &r->look[e->sweep % WINDOW_STEPS];
    const struct look seen = *look;
    *look = (struct look){.level = 0};
    if (r->x->finite == NULL || seen.level != e->step.time) return 0;
    return r->x->finite(r->x->context, mx_exec_steps(r, e->step.time), &seen.found, r->why);
}

/* Its rows, while they are being stored. */
int mx_exec_take_store(struct executor *r, struct entry *e) {
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

/* Does anybody want this plane? */
static bool is_wanted(const struct executor *r, int64_t step, int64_t z) {
    const struct mx_problem *p = r->x->problem;
    bool any = false;
    for (const struct mx_taking *const *t = r->x->taking; *t != NULL; t++)
        any |= mx_taking_is_due(*t, step) && (z - p->h + p->first_plane) % (*t)->stride == 0;
    return any;
}

/* Plane by plane, read when the sweep is complete and nothing writes. */
static int take_array(struct executor *r, const struct entry *e, int32_t part) {
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
    if (r->shape->rows == 0) return mx_take_box(r->x->taking, p, l, &box, r->why);
    box.array = 0;
    box.view = (struct mx_view){.base = {mx_block_data(r->plane)},
                                .slots = {1, 1},
                                .plane_pitch_bytes = pitch,
                                .row_pitch_bytes = l->row_pitch_bytes};
    for (int64_t z = h; z < p->nz + h && err == 0; z++) {
        const struct mx_span span = {(uint64_t)(z * pitch), (uint64_t)pitch, mx_block_data(r->plane)};
        mx_ticket *ticket = NULL;
        if (!is_wanted(r, e->take_step, z)) continue;
        err = mx_buffer_read(buffer, &span, 1, &ticket);
        if (err == 0) err = mx_wait(ticket);
        if (err == -EBADMSG) return mx_field_damaged(buffer, l, "the state", r->why);
        if (err < 0)
            return mx_fail(r->why, err, "reading %s %lld of the state, for what is taken of it, failed: %s",
                           mx_plane_word(p->flat), (long long)z, strerror(-err));
        box.region.z0 = z, box.region.z1 = z + 1;
        err = mx_take_box(r->x->taking, p, l, &box, r->why);
    }
    return err;
}

static int take_now(struct executor *r, const struct entry *e) {
    int err = 0;
    for (int32_t part = 0; part < (r->shape->pairs ? 2 : 1) && err == 0; part++)
        if (holds_state(r, array_of_part(r, part), e->take_step)) err = take_array(r, e, part);
    return err < 0 ? err : mx_take_whole(r->x->taking, e->take_step, r->why);
}

int mx_exec_end_taking(struct executor *r, const struct entry *e) {
    if (e->take_step == 0) return 0;
    if (!mx_exec_takes_stores(r)) return take_now(r, e);
    const int err = mx_taker_end_step(r->taker, e->take_step);
    return err < 0 ? mx_fail(r->why, err, "no memory for a snapshot") : 0;
}

int mx_exec_open_taking(struct executor *r) {
    if (r->x->taking[0] == NULL) return 0;
    if (mx_exec_takes_stores(r))
        return mx_taker_start(r->x->taking, r->x->problem, r->x->layout, r->why, &r->taker);
    const struct mx_block_options o = {.budget = r->x->budget};
    return r->shape->rows > 0
               ? mx_block_create(&o, (uint64_t)r->x->layout->plane_pitch_bytes, r->why, &r->plane)
               : 0;
}
