/* SPDX-License-Identifier: BSD-3-Clause */
#include "grid/grid.h"

#include <math.h>
#include <string.h>

/* splitmix64 (Steele, Lea, Flood 2014) of the cell's number: any cell on its own, no state. */
static double random_value(const struct mx_problem *p, int64_t x, int64_t y, int64_t z) {
    uint64_t n = (uint64_t)((z * (p->ny + 2 * mx_halo_y(p)) + y) * (p->nx + 2 * p->h) + x);
    n += UINT64_C(0x9e3779b97f4a7c15);
    n = (n ^ (n >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    n = (n ^ (n >> 27)) * UINT64_C(0x94d049bb133111eb);
    n ^= n >> 31;
    return (double)(n >> 11) * 0x1p-53;
}

static double zero_value(const struct mx_problem *p, int64_t x, int64_t y, int64_t z) {
    (void)p, (void)x, (void)y, (void)z;
    return 0;
}

static double linear_value(const struct mx_problem *p, int64_t x, int64_t y, int64_t z) {
    return (double)x / (double)(p->nx + 2 * p->h) + 2.0 * (double)y / (double)(p->ny + 2 * mx_halo_y(p)) +
           3.0 * (double)z / (double)(p->nz + 2 * p->h);
}

/* Distance from the grid's centre in units of its extent, -0.5 .. 0.5. */
static double from_centre(int64_t i, int64_t n, int32_t h) {
    return ((double)i + 0.5) / (double)(n + 2 * h) - 0.5;
}

static double gauss_value(const struct mx_problem *p, int64_t x, int64_t y, int64_t z) {
    double dx = from_centre(x, p->nx, p->h), dy = from_centre(y, p->ny, mx_halo_y(p)),
           dz = from_centre(z, p->nz, p->h);
    return exp(-32.0 * (dx * dx + dy * dy + dz * dz));
}

/* A hot frame at low z, cold elsewhere: heat conduction from one wall. */
static double corner_value(const struct mx_problem *p, int64_t x, int64_t y, int64_t z) {
    return x < p->h || y < mx_halo_y(p) || z < p->h ? 1.0 : 0.0;
}

const struct mx_init mx_inits[] = {
    {"random", "uniform in [0,1), a hash of the cell's number", random_value},
    {"gauss", "a Gaussian bump in the middle", gauss_value},
    {"linear", "a linear ramp, which every weighted average keeps", linear_value},
    {"corner", "1 on the low faces of the frame, 0 elsewhere", corner_value},
    {"zero", "0 everywhere", zero_value},
    {NULL, NULL, NULL},
};

const struct mx_init *mx_init_find(const char *name) {
    for (const struct mx_init *i = mx_inits; i->name != NULL; i++)
        if (strcmp(i->name, name) == 0) return i;
    return NULL;
}
