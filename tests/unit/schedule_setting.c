/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule_setting.c - one problem and plan, interpreted and counted. */
#include "schedule_sim.h"

static double some_value(void) { return (double)between(-1000000, 1000000) * 1e-6; }

/* A field of C: in a Buffer of its own, aligned, or in a file of any offset, with a frame or without. */
static void make_fixed(struct sim *s, int32_t i) {
    static const uint32_t aligns[] = {1, 64, 512, 4096};
    const struct mx_problem *p = s->p;
    const bool own = draw() % 2, framed = own || p->system->hc > 0 || draw() % 2;
    const int64_t element = mx_dtype_bytes(p->system->fixed[i].dtype), h = framed ? 0 : p->h;
    const int64_t rows = p->ny + 2 * p->h, planes = p->nz + 2 * p->h;
    struct mx_fixed_layout f = {.frame = framed ? p->h : 0,
                                .align_bytes = aligns[draw() % 4],
                                .lead_bytes = h * element,
                                .user_file = !own,
                                .row_bytes = (p->nx + 2 * p->h - 2 * h) * element};
    f.row_pitch_bytes = own ? (f.row_bytes + 63) / 64 * 64 : f.row_bytes;
    f.plane_pitch_bytes = (rows - 2 * h) * f.row_pitch_bytes;
    if (own) f.plane_pitch_bytes = (f.plane_pitch_bytes + f.align_bytes - 1) / f.align_bytes * f.align_bytes;
    const int64_t data = own ? 0 : element * between(0, 300);
    f.offset_bytes = data - h * (f.plane_pitch_bytes + f.row_pitch_bytes + element);
    f.bytes = data + (planes - 2 * h) * f.plane_pitch_bytes + (own ? 0 : between(0, 100));
    s->layout.fixed[i] = f;
    s->fixed[i] = make_field(rows, planes);
    for (int64_t z = h; z < planes - h; z++)
        for (int64_t y = h; y < rows - h; y++) *cell(&s->fixed[i], y, z) = some_value();
    s->fixed_array[i] = make_field(s->shape.rows, s->shape.fixed_slots);
}

static void set_up(struct sim *s) {
    int64_t rows = s->p->ny + 2 * s->p->h, planes = s->p->nz + 2 * s->p->h, plane = rows * PITCH + PLANE_PAD;
    s->algorithm->shape(s->p, s->plan, &s->shape);
    s->last_store = -1;
    cr_assert_eq(s->shape.pairs, mx_reads_old(s->p));
    cr_assert_eq(s->shape.fixed_slots > 0, s->shape.rows > 0 && mx_fixed_count(s->p) > 0);
    s->layout = (struct mx_layout){.rows = rows,
                                   .planes = planes,
                                   .row_bytes = PITCH,
                                   .row_pitch_bytes = PITCH,
                                   .plane_pitch_bytes = plane,
                                   .buffer_bytes = planes * plane};
    for (int i = 0; i < 2; i++) {
        s->reference[i] = make_field(rows, planes);
        for (int part = 0; part < 2; part++) s->buffer[i][part] = make_field(rows, planes);
    }
    for (int part = 0; part <= s->shape.pairs; part++) {
        for (int64_t i = 0; i < rows * planes; i++) s->buffer[0][part].v[i] = some_value();
        copy_field(&s->reference[part], &s->buffer[0][part]);
        if (s->shape.init_both) copy_field(&s->buffer[1][part], &s->buffer[0][part]);
    }
    for (int i = 0; i < 2; i++) {
        s->slots[i] = s->shape.rows == 0 ? planes : s->shape.slots[i];
        if (s->shape.rows != 0)
            s->array[i] = make_field(s->shape.rows, s->slots[i]);
        else
            s->array[i] = s->shape.pairs ? s->buffer[0][i] : s->buffer[i][0];
    }
    for (int32_t i = 0; i < mx_fixed_count(s->p); i++) make_fixed(s, i);
    s->slots[2] = s->shape.fixed_slots > 0 ? s->shape.fixed_slots : 1;
    int64_t slab = s->shape.max_levels * s->shape.seam_planes;
    s->seams = make_field(s->shape.seam_rows, s->shape.seam_slots * slab);
    s->side_file = make_field(s->shape.seam_rows, s->shape.seams_in_file ? s->shape.seam_slabs * slab : 0);
}

static void tear_down(struct sim *s) {
    for (int i = 0; i < 2; i++) {
        if (s->shape.rows != 0) free(s->array[i].v);
        for (int part = 0; part < 2; part++) free(s->buffer[i][part].v);
        free(s->reference[i].v);
    }
    for (int32_t i = 0; i < mx_fixed_count(s->p); i++) {
        free(s->fixed[i].v);
        free(s->fixed_array[i].v);
    }
    free(s->seams.v);
    free(s->side_file.v);
}

/* Runs the schedule from first_time on; stops after `commits` COMMITs if that is positive. Returns the last
 * COMMIT's Buffer. */
static int32_t run(struct sim *s, int64_t first_time, int32_t first_buffer, int64_t commits) {
    struct mx_schedule *schedule = NULL;
    struct mx_step t;
    int32_t buffer = first_buffer;
    int more = s->algorithm->open(s->p, s->plan, first_time, first_buffer, &schedule);
    cr_assert_eq(more, 0);
    cr_assert_eq(schedule->shape.rows, s->shape.rows);
    cr_assert_eq(schedule->shape.slots[0], s->shape.slots[0]);
    cr_assert_eq(schedule->shape.slots[1], s->shape.slots[1]);
    while ((more = schedule->ops->next(schedule, &t)) > 0) {
        note(s, &t);
        if (t.kind == MX_STEP_LOAD || t.kind == MX_STEP_STORE) transfer(s, &t);
        if (t.kind == MX_STEP_COPY) copy(s, &t);
        if (t.kind == MX_STEP_ADVANCE) advance(s, &t);
        if (t.kind == MX_STEP_COMMIT) {
            commit(s, &t);
            buffer = t.buffer;
            if (--commits == 0) break;
        }
    }
    cr_assert_geq(more, 0);
    schedule->ops->close(schedule);
    return buffer;
}

static void check_traffic(const struct sim *s) {
    struct mx_traffic t;
    struct mx_step_counts n;
    s->algorithm->traffic(s->p, s->plan, &s->layout, &t);
    cr_assert_eq(t.read_bytes, s->moved.read_bytes, "read %ld, moved %ld", t.read_bytes, s->moved.read_bytes);
    cr_assert_eq(t.write_bytes, s->moved.write_bytes, "written %ld, moved %ld", t.write_bytes,
                 s->moved.write_bytes);
    cr_assert_eq(t.copy_bytes, s->moved.copy_bytes);
    cr_assert_eq(t.fixed_read_bytes, s->moved.fixed_read_bytes);
    int64_t updates = s->moved.updates / mx_levels_a_step(s->p);
    cr_assert_eq(t.updates, updates, "updates %ld, done %ld", t.updates, updates);
    cr_assert_eq(t.seam_read_bytes, s->moved.seam_read_bytes);
    cr_assert_eq(t.seam_write_bytes, s->moved.seam_write_bytes);
    int64_t initial = (s->shape.init_both ? 2 : 1) * (s->shape.pairs ? 2 : 1);
    cr_assert_eq(t.init_write_bytes, initial * s->layout.buffer_bytes);
    cr_assert_eq(mx_schedule_count(s->algorithm, s->p, s->plan, &n), 0);
    cr_assert_eq(n.window_rows * s->p->nx / mx_levels_a_step(s->p), t.updates);
    cr_assert_eq(n.copy_rows * PITCH, t.copy_bytes);
}

/* A run that ends after some COMMIT and goes on with fresh Blocks gives the same. */
static void check_resume(struct sim *s, int64_t commits) {
    int32_t buffer = run(s, 0, 0, commits);
    for (int64_t k = 0; k < s->seams.rows * s->seams.planes; k++) s->seams.v[k] = NAN;
    for (int64_t k = 0; k < s->side_file.rows * s->side_file.planes; k++) s->side_file.v[k] = NAN;
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < s->shape.rows * s->slots[i]; k++) s->array[i].v[k] = NAN;
    for (int32_t i = 0; i < mx_fixed_count(s->p); i++)
        for (int64_t k = 0; k < s->shape.rows * s->shape.fixed_slots; k++) s->fixed_array[i].v[k] = NAN;
    const int64_t levels = mx_levels_of(s->p, s->p->nt);
    if (s->committed < levels) run(s, s->committed, buffer, 0);
    cr_assert_eq(s->committed, levels);
}

void check(const struct mx_algorithm *algorithm, const struct mx_problem *p, const struct mx_plan *plan) {
    static struct sim s;
    memset(&s, 0, sizeof s);
    s.algorithm = algorithm;
    s.p = p;
    s.plan = plan;
    mx_why why = {{0}};
    cr_assert_eq(algorithm->check(p, plan, &why), 0, "%s", why.text);
    set_up(&s);
    int32_t buffer = run(&s, 0, 0, 0);
    cr_assert_eq(s.committed, mx_levels_of(p, p->nt));
    cr_assert_eq(buffer, mx_schedule_final_buffer(algorithm, p, plan));
    if (strcmp(algorithm->name, "stream") != 0 && p->nt > 0 && s.shape.rows > 0) {
        cr_assert_eq(s.used_slots, s.shape.slots[0]);
        cr_assert_eq(s.used_rows, s.shape.rows);
    }
    check_traffic(&s);
    /* A ring that holds the whole grid (small grids) is shorter than read-ahead and write-behind ask for. */
    bool whole = s.shape.slots[0] >= p->nz + 2 * p->h || s.shape.slots[1] >= p->nz + 2 * p->h;
    if (strcmp(algorithm->name, "stream") == 0 && plan->by >= p->ny && !whole)
        check_overlap(&s, plan->ahead > 0 ? plan->ahead : 2);
    tear_down(&s);
    if (!algorithm->resumable || s.shape.in_place) return;
    memset(&s, 0, sizeof s);
    s.algorithm = algorithm, s.p = p, s.plan = plan;
    set_up(&s);
    check_resume(&s, between(1, 3));
    tear_down(&s);
}

void random_setting(struct mx_problem *p, struct mx_plan *plan, bool one_block_y) {
    static const int32_t halos[] = {1, 1, 1, 2, 2, 3, 4, 8};
    memset(p, 0, sizeof *p);
    memset(plan, 0, sizeof *plan);
    p->h = halos[draw() % 8];
    p->nx = 5;
    p->ny = between(1, 12 + 4 * p->h);
    p->nz = between(1, 20 + 4 * p->h);
    p->nt = between(0, 17);
    plan->bt = between(1, draw() % 8 == 0 ? 30 : 9);
    plan->by = one_block_y ? p->ny + between(0, 3) : between(1, p->ny + 2);
    plan->bz = between(1, p->nz + 2);
    plan->slab = between(1, 7);
    plan->ahead = between(0, 3);
    strcpy(plan->engine, draw() % 2 ? "tiled" : "iblock");
    p->done = draw() % 2 ? 0 : between(0, 40);
    for (int i = 0; i < 2; i++) p->due[i] = draw() % 3 > 0 ? 0 : between(1, 20);
}

void make_system(struct mx_problem *p, struct mx_plan *plan, int form, struct mx_system *system) {
    static const enum mx_dtype types[] = {MX_F64, MX_F32, MX_U8, MX_U16, MX_I16};
    *system = (struct mx_system){.name = "test", .form = form, .h = p->h, .n_field = {1, 1}};
    system->hc = draw() % 2 ? 0 : (int32_t)between(0, p->h);
    system->n_fixed = draw() % 3 == 0 ? 0 : (int32_t)between(1, 3);
    for (int32_t i = 0; i < system->n_fixed; i++) system->fixed[i].dtype = types[draw() % 5];
    p->system = system;
    if (form == MX_STAGGERED) plan->bt += plan->bt & 1;
}
