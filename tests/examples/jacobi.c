/* SPDX-License-Identifier: BSD-3-Clause */
/* jacobi.c - an out-of-core Jacobi iteration written by hand on Buffers and Blocks.
 *     jacobi BACKEND PATH
 *
 * Two Buffers hold the grid before and after a step. A step streams groups of planes through two lanes: while
 * group g is computed in one lane, the other lane's planes of group g + 1 are being read and its results of
 * group g - 1 written. The result is compared bit by bit with the same iteration in plain arrays.
 */
#include <memext/memext.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cells per side, frame included: planes of 32 KiB, which suits the alignment of every device. */
enum { NX = 64, NY = 64, NZ = 130, PLANE = NX * NY, GROUP = 8, GROUPS = (NZ - 2) / GROUP, STEPS = 5 };
#define PLANE_BYTES (PLANE * sizeof(double))

struct lane {
    mx_block *in, *out; /* GROUP + 2 planes before the step, GROUP planes after it */
    mx_ticket *reading, *writing;
};

/* One step of `planes` planes; in begins one plane below. Frame cells keep their values. */
static void compute(const double *in, double *out, int planes) {
    memcpy(out, in + PLANE, (size_t)planes * PLANE_BYTES);
    for (int z = 0; z < planes; z++)
        for (int y = 1; y < NY - 1; y++)
            for (int x = 1; x < NX - 1; x++) {
                const double *c = in + (z + 1) * PLANE + y * NX + x;
                out[z * PLANE + y * NX + x] =
                    0.4 * c[0] + 0.1 * (c[-1] + c[1] + c[-NX] + c[NX] + c[-PLANE] + c[PLANE]);
            }
}

static int finish(mx_ticket **ticket) {
    int err = mx_wait(*ticket); /* 0 when there is none */
    *ticket = NULL;
    return err;
}

/* Group g is planes [1 + g * GROUP, 1 + (g + 1) * GROUP); it needs one more on either side. */
static int read_group(struct lane *lane, mx_buffer *from, int g) {
    struct mx_span span = {(uint64_t)g * GROUP * PLANE_BYTES, (GROUP + 2) * PLANE_BYTES,
                           mx_block_data(lane->in)};
    return mx_buffer_read(from, &span, 1, &lane->reading);
}

static int write_group(struct lane *lane, mx_buffer *to, int g) {
    struct mx_span span = {(1 + (uint64_t)g * GROUP) * PLANE_BYTES, GROUP * PLANE_BYTES,
                           mx_block_data(lane->out)};
    return mx_buffer_write(to, &span, 1, &lane->writing);
}

static int step(struct lane lanes[2], mx_buffer *from, mx_buffer *to) {
    int err = read_group(&lanes[0], from, 0);
    for (int g = 0; err == 0 && g < GROUPS; g++) {
        struct lane *here = &lanes[g % 2], *other = &lanes[(g + 1) % 2];
        if (g + 1 < GROUPS) err = read_group(other, from, g + 1);
        if (err == 0) err = finish(&here->reading);
        if (err == 0) err = finish(&here->writing); /* group g - 2: its Block is about to be reused */
        if (err != 0) break;
        compute(mx_block_data(here->in), mx_block_data(here->out), GROUP);
        err = write_group(here, to, g);
    }
    for (int i = 0; i < 2; i++) {
        int read_err = finish(&lanes[i].reading), write_err = finish(&lanes[i].writing);
        if (err == 0) err = read_err != 0 ? read_err : write_err;
    }
    return err;
}

/* The whole Buffer from or to an array that suits transfers: a Block's. */
static int copy_whole(mx_buffer *buffer, mx_block *whole, bool write) {
    struct mx_span span = {0, NZ * PLANE_BYTES, mx_block_data(whole)};
    mx_ticket *ticket = NULL;
    int err = (write ? mx_buffer_write : mx_buffer_read)(buffer, &span, 1, &ticket);
    return err != 0 ? err : mx_wait(ticket);
}

static double first_value(int i) { return (double)((unsigned)i * 2654435761u % 1000003u) / 1000003.0; }

static bool equals_plain(const double *result) {
    double *a = calloc(2 * NZ, PLANE_BYTES), *b = a + (size_t)NZ * PLANE;
    bool same = a != NULL;
    if (!same) return false;
    for (int i = 0; i < NZ * PLANE; i++) a[i] = b[i] = first_value(i);
    for (int t = 0; t < STEPS; t++) {
        double *from = t % 2 ? b : a, *to = t % 2 ? a : b;
        compute(from, to + PLANE, NZ - 2);
    }
    same = memcmp(result, STEPS % 2 ? b : a, NZ * PLANE_BYTES) == 0;
    free(a);
    return same;
}

int main(int argc, char **argv) {
    struct mx_device_options place = {.backend = argc > 1 ? argv[1] : NULL, .path = argc > 2 ? argv[2] : "."};
    mx_why why = {""};
    mx_device *device = NULL;
    mx_buffer *grid[2] = {NULL, NULL};
    mx_block *whole = NULL; /* only to begin and to compare; a large grid would go through the lanes */
    struct lane lanes[2] = {{0}};
    bool same = false;

    int err = mx_device_open(&place, &why, &device);
    struct mx_block_options transfers = {.device = device};
    for (int i = 0; err == 0 && i < 2; i++) {
        err = mx_buffer_create(device, i ? "odd" : "even", NZ * PLANE_BYTES, &why, &grid[i]);
        if (err == 0) err = mx_block_create(&transfers, (GROUP + 2) * PLANE_BYTES, &why, &lanes[i].in);
        if (err == 0) err = mx_block_create(&transfers, GROUP * PLANE_BYTES, &why, &lanes[i].out);
    }
    if (err == 0) err = mx_block_create(&transfers, NZ * PLANE_BYTES, &why, &whole);

    for (int i = 0; err == 0 && i < NZ * PLANE; i++) ((double *)mx_block_data(whole))[i] = first_value(i);
    for (int i = 0; err == 0 && i < 2; i++) err = copy_whole(grid[i], whole, true);
    for (int t = 0; err == 0 && t < STEPS; t++) err = step(lanes, grid[t % 2], grid[(t + 1) % 2]);
    if (err == 0) err = copy_whole(grid[STEPS % 2], whole, false);
    if (err == 0) same = equals_plain(mx_block_data(whole));

    if (err != 0)
        fprintf(stderr, "jacobi: %s\n", why.text[0] ? why.text : strerror(-err));
    else
        printf("%d steps: %s\n", STEPS, same ? "equal to the plain iteration" : "DIFFERENT");
    mx_block_free(whole);
    for (int i = 0; i < 2; i++) {
        mx_block_free(lanes[i].in);
        mx_block_free(lanes[i].out);
        mx_buffer_close(grid[i]);
    }
    mx_device_close(device);
    return err == -ENOTSUP ? 77 : err != 0 || !same; /* 77: the backend cannot work here */
}
