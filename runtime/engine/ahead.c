/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/ahead.h"

static void add_run(struct mx_ahead_list *list, const char *from, int64_t bytes) {
    if (list->runs == MX_MOST_RUNS) return;
    list->run[list->runs++] = (struct mx_ahead_run){from, bytes};
    list->bytes += bytes;
}

void mx_ahead_add(struct mx_ahead_list *list, const struct mx_work *work, const struct mx_advance *a,
                  int32_t level, struct mx_box box, const struct mx_window *window) {
    const struct mx_view *view = &a->view;
    const struct mx_row_fields *fields = &work->fields[mx_read_by(a->first_level + level)];
    const int64_t y0 = mx_max(box.y0, window->y0), rows = mx_min(box.y1, window->y1) - y0;
    const int64_t z0 = mx_max(box.z0, window->z0), z1 = mx_min(box.z1, window->z1);
    const int64_t pitch = view->row_pitch_bytes, cells = box.x1 - box.x0;
    const bool whole = cells == work->nx;
    if (cells <= 0) return;
    for (int64_t z = z0; z < z1 && rows > 0; z++) {
        const char *row = mx_view_row(view, (a->parity + level) & 1, y0, z);
        if (whole) {
            const int64_t from = box.x0 * fields->cell_bytes[0];
            const int64_t end = fields->end_bytes - work->h * fields->cell_bytes[fields->n - 1];
            add_run(list, row + from, (rows - 1) * pitch + end - from);
            continue;
        }
        for (int64_t r = 0; r < rows; r++)
            for (int32_t f = 0; f < fields->n; f++) {
                const int64_t cell = fields->cell_bytes[f];
                add_run(list, row + r * pitch + fields->offset_bytes[f] + box.x0 * cell, cells * cell);
            }
    }
}

void mx_ahead_add_fixed(struct mx_ahead_list *list, const struct mx_work *work, const struct mx_advance *a,
                        struct mx_box box, const struct mx_window *window) {
    const struct mx_system *s = work->problem->system;
    const int64_t y0 = mx_max(box.y0, window->y0), rows = mx_min(box.y1, window->y1) - y0;
    const int64_t z0 = mx_max(box.z0, window->z0), z1 = mx_min(box.z1, window->z1);
    const bool whole = box.x1 - box.x0 == work->nx;
    if (s == NULL || box.x1 <= box.x0) return;
    for (int32_t i = 0; i < s->n_fixed; i++) {
        const int64_t cell = mx_dtype_bytes(s->fixed[i].dtype), cells = (box.x1 - box.x0) * cell;
        const int64_t pitch = a->view.fixed[i].row_pitch_bytes;
        if (mx_view_is_profile(&a->view.fixed[i])) continue; /* small: it stays in a cache */
        for (int64_t z = z0; z < z1 && rows > 0; z++) {
            const char *from = mx_view_fixed_row(&a->view, i, y0, z) + box.x0 * cell;
            if (whole)
                add_run(list, from, (rows - 1) * pitch + cells);
            else
                for (int64_t r = 0; r < rows; r++) add_run(list, from + r * pitch, cells);
        }
    }
}

struct mx_ahead mx_ahead_over(const struct mx_ahead_list *list, int64_t cells) {
    return (struct mx_ahead){.run = list->run,
                             .end = list->run + list->runs,
                             .to_l2 = list->to_l2,
                             .bytes_per_cell = cells > 0 ? (double)list->bytes / (double)cells : 0};
}
