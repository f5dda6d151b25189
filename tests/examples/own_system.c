/* own_system.c - a kernel's fields from the program and back to it, in a run that can be stopped and resumed:
 *     own_system UPDATES kernel=systems/diffusion.c "size=60 50 40" steps=30 device=DIR (it stops after them)
 *     own_system 0 resume device=DIR                                                     (0: to the end) */
#include <memext/memext.h>
#include <stdio.h>
#include <stdlib.h>

/* Row y of plane z: planes come whole. */
#define ROW(type) ((type *)((char *)b->data + (z - b->z0) * b->plane_pitch_bytes + y * b->row_pitch_bytes))

static int give(void *unused, const struct mx_grid_box *b, mx_why *why) {
    (void)unused, (void)why;
    for (int64_t z = b->z0; z < b->z1; z++)
        for (int64_t y = 0; y < b->y1; y++)
            for (int64_t x = 0; x < b->x1; x++)
                if (b->field[0] == 'k') /* conductivity; else the temperature u */
                    ROW(float)[x] = (x + y + z) % 2 == 0 ? 1.0F : 0.25F;
                else
                    ROW(double)[x] = (double)((31 * x + 17 * y + 7 * z) % 101);
    return 0;
}

static int take(void *sum, const struct mx_grid_box *b, mx_why *why) {
    (void)why;
    for (int64_t z = b->z0; z < b->z1; z++)
        for (int64_t y = 0; y < b->y1; y++)
            for (int64_t x = 0; x < b->x1; x++) *(double *)sum += ROW(double)[x];
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    double sum = 0;
    mx_run *run = NULL;
    mx_why why = {""};
    struct mx_source from = {.size = sizeof from, .name = "stripes", .region = give};
    struct mx_sink to = {.size = sizeof to, .context = &sum, .region = take};
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
