#include "engine/ahead.h"

static void add_run(struct mx_ahead_list *list, const char *from, int64_t bytes) {
    if (list->runs == MX_MOST_RUNS) return;
    list->run[list->runs++] = (struct mx_run){from, bytes};
    list->bytes += bytes;
}

void mx_ahead_add(struct mx_ahead_list *list, const struct mx_work *work, const struct mx_view *view,
                  int array, struct mx_box box, const struct mx_window *window) {
    const int64_t y0 = mx_max(box.y0, window->y0), rows = mx_min(box.y1, window->y1) - y0;
    const int64_t z0 = mx_max(box.z0, window->z0), z1 = mx_min(box.z1, window->z1);
    const int64_t pitch = view->row_pitch_bytes, from = box.x0 * work->cell_bytes;
    const int64_t bytes = (box.x1 - box.x0) * work->cell_bytes;
    const bool whole = box.x1 - box.x0 == work->nx;
    if (bytes <= 0) return;
    for (int64_t z = z0; z < z1 && rows > 0; z++) {
        const char *row = mx_view_row(view, array, y0, z) + from;
        if (whole)
            add_run(list, row, (rows - 1) * pitch + bytes);
        else
            for (int64_t r = 0; r < rows; r++) add_run(list, row + r * pitch, bytes);
    }
}

struct mx_ahead mx_ahead_over(const struct mx_ahead_list *list, int64_t cells) {
    return (struct mx_ahead){.run = list->run,
                             .end = list->run + list->runs,
                             .bytes_per_cell = cells > 0 ? (double)list->bytes / (double)cells : 0};
}
