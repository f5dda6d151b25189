/* SPDX-License-Identifier: BSD-3-Clause */
/* own_grid.c - a run whose initial grid and result are the program's own, that can be stopped and gone on
 * with. own_grid UPDATES NAME=VALUE...        stops after about so many updates; 0: runs to its end own_grid
 * 90000000 "size=254 190 126" steps=60 device=. own_grid 0 resume device=.
 */
#include <memext/memext.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *row(const struct mx_grid_box *b, int64_t y, int64_t z) {
    return (double *)((char *)b->data + (z - b->z0) * b->plane_pitch_bytes +
                      (y - b->y0) * b->row_pitch_bytes);
}

static int give(void *scale, const struct mx_grid_box *b, mx_why *why) {
    (void)why;
    for (int64_t z = b->z0; z < b->z1; z++)
        for (int64_t y = b->y0; y < b->y1; y++)
            for (int64_t x = b->x0; x < b->x1; x++)
                row(b, y, z)[x - b->x0] = *(double *)scale * (double)((31 * x + 17 * y + 7 * z) % 101);
    return 0;
}

static int take(void *sum, const struct mx_grid_box *b, mx_why *why) {
    (void)why;
    for (int64_t z = b->z0; z < b->z1; z++)
        for (int64_t y = b->y0; y < b->y1; y++)
            for (int64_t x = b->x0; x < b->x1; x++) *(double *)sum += row(b, y, z)[x - b->x0];
    return 0;
}

int main(int argc, char **argv) {
    const int64_t most = argc > 1 && atoll(argv[1]) > 0 ? atoll(argv[1]) : INT64_MAX;
    double scale = 0.25, sum = 0;
    struct mx_source source = {.size = sizeof source, .context = &scale, .name = "ramp", .region = give};
    struct mx_sink sink = {.size = sizeof sink, .context = &sum, .region = take};
    struct mx_run_options options = {.size = sizeof options, .source = &source, .sink = &sink};
    struct mx_run_progress at = {.size = sizeof at};
    mx_why why = {""};
    mx_run *run = NULL;
    if (argc > 2) options.options = (const char *const *)argv + 2; /* ends with NULL, as argv does */

    int state = mx_run_open(&options, &why, &run);
    if (state == 0) state = mx_run_start(run, &why);
    while (state == 0 && (state = mx_run_wait(run, 0.05, &why, &at)) == 0) {
        printf("%s %.1f %%\n", at.phase, at.total > 0 ? 100.0 * (double)at.done / (double)at.total : 0);
        if (strcmp(at.unit, "updates") == 0 && at.done >= most) mx_run_stop(run);
    }
    if (state == 1) printf("sum %.17g\n", sum);
    if (state < 0) printf("%s; step %lld is committed\n", why.text, (long long)at.committed_step);
    mx_run_close(run);
    return state != 1;
}
