/* SPDX-License-Identifier: BSD-3-Clause */
/* own_system.c - a kernel's fields from the program and back to it, in a run that can be stopped and resumed:
 *     own_system UPDATES kernel=systems/diffusion.c "size=60 50 40" steps=30 device=DIR (it stops after them)
 *     own_system 0 resume device=DIR                                                     (0: to the end) */
#include <memext/memext.h>
#include <stdio.h>
#include <stdlib.h>

static int give(void *unused, const struct mx_grid_box *row, mx_why *why) {
    (void)unused, (void)why;
    for (int64_t x = 0; x < row->x1; x++)
        if (row->field[0] == 'k') /* conductivity; else the temperature u */
            ((float *)row->data)[x] = (x + row->y0 + row->z0) % 2 == 0 ? 1.0F : 0.25F;
        else
            ((double *)row->data)[x] = (double)((31 * x + 17 * row->y0 + 7 * row->z0) % 101);
    return 0;
}

static int take(void *sum, const struct mx_grid_box *row, mx_why *why) {
    (void)why;
    for (int64_t x = 0; x < row->x1; x++) *(double *)sum += ((double *)row->data)[x];
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    double sum = 0;
    mx_run *run = NULL;
    mx_why why = {""};
    struct mx_source from = {.size = sizeof from, .name = "stripes", .row = give};
    struct mx_sink to = {.size = sizeof to, .context = &sum, .row = take};
    struct mx_run_options o = {.size = sizeof o, .options = (void *)&argv[2], .source = &from, .sink = &to};
    struct mx_run_progress now = {.size = sizeof now};
    int state = mx_run_open(&o, &why, &run);
    if (state == 0) state = mx_run_start(run, &why);
    while (state == 0 && (state = mx_run_wait(run, 0.05, &why, &now)) == 0) {
        printf("%s %lld of %lld %s\n", now.phase, (long long)now.done, (long long)now.total, now.unit);
        if (atoll(argv[1]) > 0 && now.unit[0] == 'u' && now.done >= atoll(argv[1])) mx_run_stop(run);
    }
    if (state == 1) printf("sum %.17g\n", sum);
    if (state < 0) printf("%s; step %lld is committed\n", why.text, (long long)now.committed_step);
    mx_run_close(run);
    return state != 1;
}
