/* SPDX-License-Identifier: BSD-3-Clause */
/* tune_tools.h - what tests of the tuner share: problems, systems, random numbers. */
#ifndef MX_TUNE_TOOLS_H
#define MX_TUNE_TOOLS_H

#include "tune/tune.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MIB = 1 << 20 };
static const uint64_t GIB = 1ull << 30;

static inline json_t *load(const char *name) {
    char path[128];
    json_error_t error;
    snprintf(path, sizeof path, "tests/data/%s", name);
    json_t *root = json_load_file(path, 0, &error);
    cr_assert(root != NULL, "%s: %s", path, error.text);
    return root;
}

static inline int64_t cell(const json_t *row, size_t i) { return json_integer_value(json_array_get(row, i)); }

static inline struct mx_problem make_problem(int64_t nx, int64_t ny, int64_t nz, int64_t nt, int32_t h,
                                             int64_t element) {
    return (struct mx_problem){.nx = nx,
                               .ny = ny,
                               .nz = nz,
                               .nt = nt,
                               .h = h,
                               .dtype = element == 8 ? MX_F64 : MX_F32,
                               .stencil = "star7",
                               .coef = {0.4, 0.1}};
}

/* Room for Blocks of exactly `room` bytes, bz a multiple of z_step. */
static inline struct mx_tune_request small_request(const struct mx_problem *p, const struct mx_machine *m,
                                                   uint64_t room, int64_t z_step) {
    return (struct mx_tune_request){.problem = p,
                                    .machine = m,
                                    .dram_bytes = room + MX_TUNE_OVERHEAD_BYTES,
                                    .engine = "iblock",
                                    .manual = {.iz = z_step}};
}

static uint32_t seed = 12345;
static inline int64_t pick(int64_t low, int64_t high) { /* [low, high] */
    seed = seed * 1664525u + 1013904223u;
    return low + (int64_t)((uint64_t)(seed >> 4) % (uint64_t)(high - low + 1));
}

static inline double moved(const struct mx_tune_result *r) {
    return (double)r->traffic.read_bytes + (double)r->traffic.write_bytes;
}

/* A system of one field, and the problem as one of it. */
static inline void make_system(struct mx_problem *p, int form, struct mx_system *system) {
    *system = (struct mx_system){
        .name = "test", .form = form, .h = p->h, .n_field = {1, 1}, .identity = 0x1234567890abcdef};
    system->field[0][0] = system->field[1][0] = (struct mx_field_of){"u", p->dtype};
    p->system = system;
}

static inline void expect_words(const char *text, const char *const *words) {
    for (; *words != NULL; words++) cr_expect(strstr(text, *words) != NULL, "'%s' lacks '%s'", text, *words);
}
#define EXPECT_WORDS(text, ...) expect_words(text, (const char *const[]){__VA_ARGS__, NULL})

static inline bool has_sizes(const struct mx_plan *p, int64_t slab, int64_t tile, int64_t ct) {
    return p->slab == slab && p->tile == tile && p->ct == ct;
}

static inline struct mx_plan refined_plan(const struct mx_tune_request *q) {
    struct mx_tune_result r;
    mx_why why = {""};
    cr_assert(mx_tune(q, &why, &r) == 0, "%s", why.text);
    return r.plan;
}

#endif
