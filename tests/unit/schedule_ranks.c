/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule_ranks.c - schedules of ranks: neighbours at one end of z, or both. */
#include "schedule_sim.h"

static void count_given(const struct mx_algorithm *a, const struct mx_problem *p, const struct mx_plan *plan,
                        const struct mx_traffic *t, const struct mx_layout *layout) {
    struct mx_schedule *schedule = NULL;
    struct mx_step s;
    int64_t read = 0, write = 0, fixed = 0, last[2] = {0, 0}, sweeps = 0, updates = 0, depth = 0, sent = 0,
            given = 0;
    const int64_t arrays = mx_reads_old(p) ? 2 : 1, h = p->h, plane = layout->plane_pitch_bytes;
    const int ends = (p->sides.side[2][0] == MX_SIDE_NEIGHBOUR) + (p->sides.side[2][1] == MX_SIDE_NEIGHBOUR);
    cr_assert_eq(a->open(p, plan, 0, 0, &schedule), 0);
    depth = schedule->first_given;
    while (schedule->ops->next(schedule, &s) > 0) {
        const struct mx_region r = mx_step_in_buffer(&s);
        const int64_t bytes =
            s.whole_planes ? (r.z1 - r.z0) * plane : mx_region_rows(r) * layout->row_pitch_bytes;
        const bool state = s.array < MX_SEAMS && (s.kind == MX_STEP_LOAD || s.kind == MX_STEP_STORE);
        if (s.kind == MX_STEP_COMMIT) {
            sweeps++;
            sent += depth * ends * arrays * plane;
            depth = s.next_given;
            for (int e = 0; e < 2; e++) /* one LOAD at each end is the last of its sweep */
                cr_assert_eq(last[e], p->sides.side[2][e] == MX_SIDE_NEIGHBOUR ? sweeps : 0);
        }
        if (s.kind == MX_STEP_LOAD && s.array >= MX_FIXED_ARRAY)
            for (int64_t z = r.z0; z < r.z1; z++) {
                uint64_t offset, n;
                mx_fixed_span(&layout->fixed[s.array - MX_FIXED_ARRAY], z, r.y0, r.y1, &offset, &n);
                fixed += (int64_t)n;
            }
        if (s.kind == MX_STEP_LOAD && state && s.neighbour > 0) {
            /* of the neighbour are planes beyond the end, no deeper than it has sent */
            if (s.neighbour == 1) cr_assert(r.z0 >= h - depth && r.z1 <= h);
            if (s.neighbour == 2) cr_assert(r.z0 >= p->nz + h && r.z1 <= p->nz + h + depth);
            cr_assert(p->sides.side[2][s.neighbour - 1] == MX_SIDE_NEIGHBOUR);
            last[s.neighbour - 1] += s.last_given;
            given += mx_region_rows(r) * layout->row_pitch_bytes;
        } else if (state) {
            /* the Buffer has no more than the interior there */
            if (p->sides.side[2][0] == MX_SIDE_NEIGHBOUR) cr_assert(r.z0 >= h);
            if (p->sides.side[2][1] == MX_SIDE_NEIGHBOUR) cr_assert(r.z1 <= p->nz + h);
            *(s.kind == MX_STEP_LOAD ? &read : &write) += bytes;
        }
        for (int32_t l = 0; s.kind == MX_STEP_ADVANCE && l < s.levels; l++) {
            const struct mx_window w = mx_step_window(&s, l);
            if (w.y0 < w.y1 && w.z0 < w.z1) updates += (int64_t)(w.y1 - w.y0) * (w.z1 - w.z0) * p->nx;
        }
    }
    schedule->ops->close(schedule);
    const int64_t first = sent > 0 ? ends * arrays * plane * h * mx_sweep_levels(p, plan->bt) : 0;
    read += first; /* message 0 */
    cr_assert_eq(t->read_bytes - t->seam_read_bytes * (strcmp(plan->seams, "side-file") == 0), read + fixed,
                 "read %ld, moved %ld and %ld", t->read_bytes, read, fixed);
    cr_assert_eq(t->write_bytes - t->seam_write_bytes * (strcmp(plan->seams, "side-file") == 0), write);
    cr_assert_eq(t->sent_bytes, sent);
    if (strcmp(a->name, "stream") == 0) cr_assert_eq(t->given_bytes, given);
    cr_assert_eq(mx_traffic_put_bytes(t), t->read_bytes - first + t->given_bytes);
    cr_assert_eq(t->fixed_read_bytes, fixed);
    cr_assert_eq(t->updates, updates / mx_levels_a_step(p));
}

/* What a step has to look at does not grow with the levels of a sweep: those that a move of the front
 * crosses, one of each h planes of the Block and of the slab, a few at the ends. */
static void check_crossed(const char *name, const char *seams, int64_t by, bool periodic) {
    const struct mx_problem p = {.nx = 4,
                                 .ny = 24,
                                 .nz = 15,
                                 .nt = 6000,
                                 .h = 1,
                                 .stencil = "star7",
                                 .coef = {0.4, 0.1},
                                 .sides.side = {[2] = {periodic ? MX_SIDE_PERIODIC : MX_SIDE_FIXED,
                                                       periodic ? MX_SIDE_PERIODIC : MX_SIDE_FIXED}}};
    struct mx_plan plan = {.by = by, .bz = 8, .bt = periodic ? 15 : 6000, .slab = 3, .engine = "tiled"};
    const struct mx_algorithm *algorithm = mx_algorithm_find(name);
    struct mx_schedule *schedule;
    struct mx_step s;
    mx_why why = {""};
    int64_t windows = 0, pass = 0;
    snprintf(plan.seams, sizeof plan.seams, "%s", seams);
    cr_assert_eq(algorithm->check(&p, &plan, &why), 0, "%s: %s", name, why.text);
    cr_assert_eq(algorithm->open(&p, &plan, 0, 0, &schedule), 0);
    while (schedule->ops->next(schedule, &s) == 1) {
        if (s.kind != MX_STEP_ADVANCE) continue;
        cr_assert(s.first < s.end && s.end <= s.levels && s.end - s.first <= 2 * (p.nz + plan.slab) + 2,
                  "%s: %d to %d", name, s.first, s.end);
        windows += s.end - s.first;
        cr_assert(s.pass >= pass);
        pass = s.pass;
    }
    schedule->ops->close(schedule);
    cr_assert_geq(windows, p.nt, "%s", name);
}

Test(schedule, looks_only_at_the_levels_that_the_front_crosses) {
    check_crossed("stream", "", 24, false);
    check_crossed("stream", "", 24, true);
    check_crossed("stream", "dram", 7, false);
    check_crossed("stream", "side-file", 7, false);
    check_crossed("skewed-min", "", 7, false);
}

/* An engine that takes two levels at a time reads h planes more below a window, of either array, and none
 * that are loaded later: it would wait for them. */
Test(schedule, two_levels_at_a_time_reach_downwards) {
    const struct mx_algorithm *stream = mx_algorithm_find("stream");
    for (int64_t i = 0; i < 60; i++) {
        struct mx_problem p = {.nx = 4, .ny = 24, .nz = 15 + i, .nt = 23, .h = 1 + i % 2, .coef = {0.4, 0.1}};
        struct mx_plan plan = {.by = 24, .bz = p.nz, .bt = 1 + i % 9, .slab = 1 + i % 7, .ahead = 1 + i % 3};
        struct mx_schedule *schedule[2];
        struct mx_step s[2];
        int more[2];
        strcpy(p.stencil, p.h == 1 ? "star7" : "star13");
        for (int k = 0; k < 2; k++) {
            strcpy(plan.engine, k == 0 ? "tiled" : "device");
            cr_assert_eq(stream->open(&p, &plan, 0, 0, &schedule[k]), 0);
        }
        cr_assert_eq(schedule[1]->shape.by_twos, plan.bt >= 4);
        for (;;) {
            for (int k = 0; k < 2; k++) more[k] = schedule[k]->ops->next(schedule[k], &s[k]);
            cr_assert_eq(more[0], more[1]);
            if (more[0] <= 0) break;
            cr_assert_eq(s[0].kind, s[1].kind);
            if (s[0].kind != MX_STEP_ADVANCE) continue;
            const struct mx_planes *one = s[0].touches, *two = s[1].touches;
            const int64_t low = mx_min(one[0].z0, one[1].z0), high = mx_max(one[0].z1, one[1].z1);
            for (int array = 0; array < 2 && plan.bt >= 4; array++) {
                cr_assert_eq(two[array].z0, low - p.h);
                cr_assert_eq(two[array].z1, high);
                cr_assert_leq(two[array].z1 - two[array].z0, schedule[1]->shape.slots[array] + 2 * p.h);
            }
        }
        for (int k = 0; k < 2; k++) schedule[k]->ops->close(schedule[k]);
    }
}

/* Bytes as they are counted by going through the steps: of own Buffers, of C, to neighbours. */
static void check_ranks(const char *name, int n, bool one_block_y, const char *seams) {
    static const uint8_t others[] = {MX_SIDE_FIXED, MX_SIDE_MIRROR, MX_SIDE_NEIGHBOUR};
    const struct mx_algorithm *algorithm = mx_algorithm_find(name);
    int done = 0;
    seed_state = 6364136223846793005u;
    n = mx_cases(n, 2);
    for (int i = 0; i < n; i++) {
        struct mx_problem p;
        struct mx_plan plan;
        struct mx_system system;
        struct mx_layout layout;
        struct mx_traffic t;
        mx_why why = {""};
        random_setting(&p, &plan, one_block_y);
        strcpy(plan.seams, seams);
        if (i % 4 > 0)
            make_system(&p, &plan, i % 4 - 1, &system);
        else
            strcpy(p.stencil, "star7");
        p.nz += 3 * p.h;
        p.all_nz = 3 * p.nz;
        p.least_nz = p.nz;
        p.first_plane = p.nz;
        p.sides.side[2][i % 2] = MX_SIDE_NEIGHBOUR;
        p.sides.side[2][1 - i % 2] = others[draw() % 3];
        if (algorithm->check(&p, &plan, &why) < 0) continue;
        cr_assert_eq(mx_layout_make(&p, 512, algorithm->cuts_y(&p, &plan), &why, &layout), 0);
        for (int32_t k = 0; k < mx_fixed_count(&p); k++) /* C has what lies beyond itself */
            layout.fixed[k].offset_bytes = 1000 * layout.fixed[k].plane_pitch_bytes;
        algorithm->traffic(&p, &plan, &layout, &t);
        count_given(algorithm, &p, &plan, &t, &layout);
        done++;
    }
    cr_assert_gt(done, n / 3);
}

Test(schedule_of_ranks, stream) { check_ranks("stream", 400, true, ""); }

Test(schedule_of_ranks, stream_strips) { check_ranks("stream", 400, false, "dram"); }

Test(schedule_of_ranks, stream_strips_with_a_side_file) { check_ranks("stream", 300, false, "side-file"); }

Test(schedule_of_ranks, redundant) { check_ranks("redundant", 400, false, ""); }

Test(schedule_of_ranks, refusals) {
    struct mx_problem p = {.nx = 8, .ny = 8, .nz = 8, .nt = 9, .h = 1, .all_nz = 16, .least_nz = 8};
    struct mx_plan plan = {.by = 8, .bz = 8, .bt = 9, .slab = 2};
    mx_why why = {""};
    p.sides.side[2][1] = MX_SIDE_NEIGHBOUR;
    cr_assert_eq(mx_algorithm_find("stream")->check(&p, &plan, &why), -EINVAL);
    cr_assert(strstr(why.text, "bt = 8 or less") != NULL, "%s", why.text);
    cr_assert_eq(mx_algorithm_find("skewed")->check(&p, &plan, &why), -ENOTSUP);
    plan.bt = 8;
    cr_assert_eq(mx_algorithm_find("stream")->check(&p, &plan, &why), 0);
}
