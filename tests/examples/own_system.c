/* own_system.c - a kernel's fields from the program and back to it, in a run that can be stopped and gone on
 * with. own_system UPDATES kernel=systems/diffusion.c "size=60 50 40" steps=30 device=DIR own_system 0 resume
 * device=DIR            (0: to the end; else it stops after about so many updates)
 */
#include <memext/memext.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *at(const struct mx_grid_box *b, int64_t x, int64_t y, int64_t z, size_t cell) {
    return (char *)b->data + (z - b->z0) * b->plane_pitch_bytes + (y - b->y0) * b->row_pitch_bytes +
           (x - b->x0) * (int64_t)cell;
}

/* The conductivity k is a float, the temperature u a double. */
static int give(void *unused, const struct mx_grid_box *b, mx_why *why) {
    (void)unused, (void)why;
    for (int64_t z = b->z0; z < b->z1; z++)
        for (int64_t y = b->y0; y < b->y1; y++)
            for (int64_t x = b->x0; x < b->x1; x++)
                if (strcmp(b->field, "k") == 0)
                    *(float *)at(b, x, y, z, 4) = (float)((x + y + z) % 2 == 0 ? 1 : 0.25);
                else
                    *(double *)at(b, x, y, z, 8) = (double)((31 * x + 17 * y + 7 * z) % 101);
    return 0;
}

static int take(void *sum, const struct mx_grid_box *b, mx_why *why) {
    (void)why;
    for (int64_t z = b->z0; z < b->z1; z++)
        for (int64_t y = b->y0; y < b->y1; y++)
            for (int64_t x = b->x0; x < b->x1; x++) *(double *)sum += *(double *)at(b, x, y, z, 8);
    return 0;
}

int main(int argc, char **argv) {
    const int64_t most = argc > 1 && atoll(argv[1]) > 0 ? atoll(argv[1]) : INT64_MAX;
    double sum = 0;
    struct mx_source source = {.size = sizeof source, .name = "stripes", .region = give};
    struct mx_sink sink = {.size = sizeof sink, .context = &sum, .region = take};
    struct mx_run_options options = {.size = sizeof options, .source = &source, .sink = &sink};
    struct mx_run_progress now = {.size = sizeof now};
    mx_why why = {""};
    mx_run *run = NULL;
    if (argc > 2) options.options = (const char *const *)argv + 2; /* ends with NULL, as argv does */
    int state = mx_run_open(&options, &why, &run);
    if (state == 0) state = mx_run_start(run, &why);
    while (state == 0 && (state = mx_run_wait(run, 0.05, &why, &now)) == 0) {
        printf("%s %lld of %lld %s\n", now.phase, (long long)now.done, (long long)now.total, now.unit);
        if (strcmp(now.unit, "updates") == 0 && now.done >= most) mx_run_stop(run);
    }
    if (state == 1) printf("sum %.17g\n", sum);
    if (state < 0) printf("%s; step %lld is committed\n", why.text, (long long)now.committed_step);
    mx_run_close(run);
    return state != 1;
}
