/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule/walk.h"

#include <string.h>

const struct mx_algorithm *const mx_algorithms[] = {
    &mx_algorithm_direct,
    &mx_algorithm_direct_skewed,
    &mx_algorithm_direct_skewed_opt,
    &mx_algorithm_redundant,
    &mx_algorithm_skewed,
    &mx_algorithm_skewed_y,
    &mx_algorithm_skewed_min,
    &mx_algorithm_stream,
    &mx_algorithm_resident,
    NULL,
};

/* Is `name` one of the words of `list`? */
static bool is_word(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *at = list; n > 0 && *at != 0;) {
        size_t length = strcspn(at, " ");
        if (length == n && memcmp(at, name, n) == 0) return true;
        at += length;
        at += strspn(at, " ");
    }
    return false;
}

const struct mx_algorithm *mx_algorithm_find(const char *name) {
    for (int i = 0; mx_algorithms[i] != NULL; i++)
        if (strcmp(mx_algorithms[i]->name, name) == 0 || is_word(mx_algorithms[i]->aliases, name))
            return mx_algorithms[i];
    return NULL;
}

int32_t mx_schedule_final_buffer(const struct mx_algorithm *algorithm, const struct mx_problem *problem,
                                 const struct mx_plan *plan) {
    struct mx_shape shape;
    algorithm->shape(problem, plan, &shape);
    if (shape.pairs && shape.in_place) return 0;
    return (int32_t)((shape.in_place ? mx_levels_of(problem, problem->nt)
                                     : mx_sweep_count(problem, shape.max_levels)) &
                     1);
}

static void count_step(const struct mx_step *s, struct mx_step_counts *n) {
    int64_t rows = mx_region_rows(s->region);
    n->steps[s->kind]++;
    if (s->kind == MX_STEP_LOAD)
        *(s->array >= MX_FIXED_ARRAY ? &n->fixed_rows
          : s->neighbour > 0         ? &n->given_rows
                                     : &n->read_rows) += rows;
    if (s->kind == MX_STEP_STORE) n->write_rows += rows;
    if (s->kind == MX_STEP_COPY) *(s->frame ? &n->frame_rows : &n->copy_rows) += rows;
    if (s->kind != MX_STEP_ADVANCE) return;
    n->seam_reads += s->seam_in >= 0;
    n->seam_writes += s->seam_out >= 0;
    for (int32_t l = s->first; l < s->end; l++) {
        const struct mx_window w = mx_step_window(s, l);
        n->window_rows += mx_region_rows((struct mx_region){w.y0, w.y1, w.z0, w.z1});
    }
}

int mx_schedule_count(const struct mx_algorithm *algorithm, const struct mx_problem *problem,
                      const struct mx_plan *plan, struct mx_step_counts *out) {
    struct mx_step_counts n = {0};
    struct mx_schedule *schedule = NULL;
    struct mx_step step;
    int more, err = algorithm->open(problem, plan, 0, 0, &schedule);
    if (err < 0) return err;
    while ((more = schedule->ops->next(schedule, &step)) > 0) count_step(&step, &n);
    schedule->ops->close(schedule);
    if (more == 0) *out = n;
    return more;
}
