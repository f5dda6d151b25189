/* SPDX-License-Identifier: BSD-3-Clause */
/* forms.c - the forms in which a row function is compiled, and which is the fastest. */
#include "kernel/forms.h"

#include "kernel/sample.h"
#include "machine/clock.h"
#include "machine/machine.h"
#include "machine/minmax.h"

#include <errno.h>
#include <link.h>
#include <math.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NARROW "-mprefer-vector-width=256"
#define WIDE "-mprefer-vector-width=512"
#else
#define NARROW NULL
#define WIDE NULL
#endif
#define BLOCKS "-DMEMEXT_BLOCKS"
#define ROWS_2 "-DMEMEXT_ROWS=2"
#define ROWS_4 "-DMEMEXT_ROWS=4"
#define PLANES_2 "-DMEMEXT_PLANES=2"
#define PLANES_4 "-DMEMEXT_PLANES=4"
const struct mx_form mx_forms[MX_FORMS] = {
    {"1", "1 row in a pass", 1, 1, false, false, {NULL}},
    {"1b", "1 row in a pass, in blocks", 1, 1, true, false, {BLOCKS, WIDE}},
    {"2b", "2 rows in a pass, in blocks", 2, 1, true, false, {ROWS_2, BLOCKS, WIDE}},
    {"4b", "4 rows in a pass, in blocks", 4, 1, true, true, {ROWS_4, BLOCKS, WIDE}},
    {"1x2b", "1 row of 2 planes in a pass, in blocks", 1, 2, true, false, {PLANES_2, BLOCKS, WIDE}},
    {"2x2b", "2 rows of 2 planes in a pass, in blocks", 2, 2, true, true, {ROWS_2, PLANES_2, BLOCKS, WIDE}},
    {"1x4b", "1 row of 4 planes in a pass, in blocks", 1, 4, true, true, {PLANES_4, BLOCKS, WIDE}},
    {"1n", "1 row in a pass, vectors of 32 bytes", 1, 1, false, true, {NARROW}},
    {"1w", "1 row in a pass, vectors of 64 bytes", 1, 1, false, true, {WIDE}},
    {"2n", "2 rows in a pass, vectors of 32 bytes", 2, 1, false, false, {ROWS_2, NARROW}},
    {"2w", "2 rows in a pass, vectors of 64 bytes", 2, 1, false, true, {ROWS_2, WIDE}},
    {"4", "4 rows in a pass, the widest vectors", 4, 1, false, false, {ROWS_4, WIDE}}};

static bool has_avx512(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") != 0;
#else
    return false;
#endif
}

int mx_forms_wanted(mx_why *why, int32_t number[MX_FORMS], int32_t *n) {
    const char *only = getenv(MX_FORM_VARIABLE);
    *n = 0;
    for (int32_t i = 0; i < MX_FORMS; i++) {
        const bool chosen = only != NULL && only[0] != 0 ? strcmp(only, mx_forms[i].name) == 0
                                                         : !mx_forms[i].avx512 || has_avx512();
        if (chosen) number[(*n)++] = i;
    }
    if (*n > 0) return 0;
    return mx_fail(why, -EINVAL,
                   MX_FORM_VARIABLE
                   "=%.20s is not a form of row functions: choose 1, 1b, 2b, 4b, 1x2b, 2x2b, "
                   "1x4b, 1n, 1w, 2n, 2w or 4, or unset it for the fastest",
                   only);
}

/* Of CPU time, for what runs in a child process. */
enum { SECONDS = 2 };

/* ---- which forms are worth compiling */

/* A kernel with more code than this has more values in a row than there are registers, so that several rows
 * at once do not pay; and compilers take seconds for them. One row in blocks pays up to more code, also of
 * two planes. */
enum { MOST_CODE_OF_ROWS = 5000, MOST_CODE_OF_BLOCKS = 12000 };
/* In tiled runs one row was faster than several for six kernels of radius 4 and 8, by 3 to 17 %
 * (docs/notes/kernels.md). On a tile alone several rows sometimes win. */
enum { MOST_RADIUS_OF_ROWS = 3 };
/* Four cells of several fields have more values than there are registers, and compilers take a second for
 * them. Two were faster in tiled runs (docs/notes/kernels.md). */
enum { MOST_FIELDS_OF_FOURS = 1 };

/* Bytes of machine code in a shared object; INT64_MAX if it cannot be read. */
static int64_t code_bytes(const char *path) {
    struct mx_text object = {0};
    mx_why ignored = {""};
    int64_t bytes = INT64_MAX;
    if (mx_text_read(path, "the compiled kernel", &ignored, &object) < 0) return bytes;
    ElfW(Ehdr) head = {.e_phnum = 0};
    if (object.bytes >= sizeof head) {
        memcpy(&head, object.data, sizeof head);
        if (head.e_phoff + (uint64_t)head.e_phnum * sizeof(ElfW(Phdr)) <= object.bytes) bytes = 0;
    }
    for (int i = 0; bytes != INT64_MAX && i < head.e_phnum; i++) {
        ElfW(Phdr) part;
        memcpy(&part, object.data + head.e_phoff + (uint64_t)i * sizeof part, sizeof part);
        if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0) bytes += (int64_t)part.p_filesz;
    }
    free(object.data);
    return bytes;
}

/* What a child process finds: below 0 an error, else the radius, and in bit WITH_FIELDS whether there are
 * more fields than four cells may have. */
enum { WITH_FIELDS = 64 };
static int extent_of(void *context, struct mx_isolated *report) {
    struct mx_system system;
    void *handle;
    const int err = mx_kernel_load(context, "", &report->why, &system, &handle);
    if (err < 0) return err;
    const bool fields = mx_max(system.n_field[0], system.n_field[1]) > MOST_FIELDS_OF_FOURS;
    const int reach = system.flat ? MOST_RADIUS_OF_ROWS + 1 : system.h; /* there a call has one row */
    return reach + (fields ? WITH_FIELDS : 0);
}

struct mx_worth mx_forms_worth(const char *first) {
    mx_why why = {""};
    const int64_t bytes = code_bytes(first);
    struct mx_worth worth = {.blocks = bytes <= MOST_CODE_OF_BLOCKS};
    if (bytes > MOST_CODE_OF_ROWS) return worth;
    const int found =
        mx_isolate(extent_of, (void *)(uintptr_t)first, "the extent of the kernel", SECONDS, &why);
    worth.rows = found >= 0 && found % WITH_FIELDS <= MOST_RADIUS_OF_ROWS;
    worth.fours = found >= 0 && found < WITH_FIELDS;
    return worth;
}

bool mx_form_is_worth(const struct mx_form *form, const struct mx_worth *worth, bool in_blocks) {
    if (form->blocks && !worth->blocks) return false;
    if (form->blocks && form->rows * form->planes > 1 && !in_blocks) return false;
    if (form->blocks && form->rows * form->planes > 2 && !worth->fours) return false;
    return form->rows == 1 || (worth->rows && form->blocks == in_blocks);
}

/* ---- measuring */

/* Each form has the least of some samples, taken in turn, of CPU time: others who compute meanwhile hardly
 * count. */
enum {
    ROUNDS = 25,
    LEAST_ROUNDS = 3,
    ROUNDS_NS = 250000000, /* for ROUNDS; slow kernels have fewer */
    FAR_NS = 20000000,     /* beyond L2, at most: of what takes longer, memory is no bound */
    SAMPLE_NS = 200000,
    ROWS = 8,
    MOST_BYTES = 4 << 20
};

/* A tile like those of an engine: rows of some length, and more of them than L1 holds. */
static void tile_size(const struct mx_system *s, int64_t n[3]) {
    n[0] = 254, n[1] = 16, n[2] = 8;
    if (s->flat) n[1] = 1, n[2] = 128;
    while (n[2] > MX_MAX_DEEP && mx_sample_bytes(s, n) > MOST_BYTES) n[2] /= 2;
    while (n[1] > ROWS && mx_sample_bytes(s, n) > MOST_BYTES) n[1] /= 2;
}

static uint64_t l2_bytes(void) {
    struct mx_machine machine;
    mx_why ignored = {""};
    return mx_machine_detect(&ignored, &machine) == 0 ? machine.l2_bytes : 0;
}

/* A tile that an L2 does not hold. Nor does an L1 hold the rows that a pass of a wide stencil reads in it.
 * Grids that are larger than memory have long rows. */
static void far_size(const struct mx_system *s, const int64_t n[3], uint64_t l2_bytes, int64_t far[3]) {
    enum { LEAST = 1 << 20, MOST = 4 << 20, TIMES = 4, CELLS = 510 };
    const int64_t l2 = mx_min(mx_max((int64_t)l2_bytes, LEAST), MOST);
    const int64_t frames = mx_sample_bytes(s, (const int64_t[3]){CELLS, n[1], 0});
    const int64_t plane = mx_sample_bytes(s, (const int64_t[3]){CELLS, n[1], 1}) - frames;
    far[0] = CELLS, far[1] = n[1];
    far[2] = mx_max(n[2], (TIMES * l2 - frames) / plane / MX_MAX_DEEP * MX_MAX_DEEP);
}

static double cells_of(const struct mx_sample *t) { return (double)(t->n[0] * t->n[1] * t->n[2]); }

/* Nanoseconds of a step of the whole sample. */
static double time_of(const struct mx_sample *t, const struct mx_system *s) {
    const uint64_t begin = mx_thread_cpu_ns();
    uint64_t ns = 0;
    int64_t turns = 0;
    for (; ns < SAMPLE_NS; turns++) {
        for (int level = 0; level < (int)mx_system_levels(s); level++) mx_sample_level(t, s, level, ROWS);
        ns = mx_thread_cpu_ns() - begin;
    }
    return (double)ns / (double)turns;
}

/* In memory that the child process shares. */
struct candidates {
    const char *const *path;
    const int32_t *number; /* of their forms */
    int32_t n;
    uint64_t l2_bytes;
    double cell_ns; /* of the fastest, or of the first */
    struct mx_system system[MX_FORMS];
};

/* Whether a form has the bits of the first one: a compiler may be wrong. */
static bool same_bits(const struct mx_sample *t, const struct mx_system *first, const struct mx_system *s,
                      char *want) {
    static const double ranges[2][2] = {{-2, 2}, {0.25, 1.75}};
    const int64_t bytes = mx_sample_array_bytes(t);
    const int levels = (int)mx_max(mx_system_levels(s), 2); /* one level alone: also from the other array */
    bool same = true;
    for (int i = 0; i < 2 * levels && same; i++) {
        const int level = i % levels, written = 1 - (level & 1);
        mx_sample_fill(t, first, ranges[i / levels]);
        mx_sample_level(t, first, level, ROWS);
        memcpy(want, t->array[written], (size_t)bytes);
        mx_sample_fill(t, first, ranges[i / levels]);
        mx_sample_level(t, s, level, ROWS);
        same = memcmp(want, t->array[written], (size_t)bytes) == 0;
    }
    return same;
}

/* Leaves out what cannot be loaded, and what has other bits. The process ends: nothing is closed. */
static int32_t usable(struct candidates *c, const struct mx_sample *t, int32_t index[MX_FORMS]) {
    char *want = malloc((size_t)mx_sample_array_bytes(t));
    int32_t n = 1;
    void *handle;
    index[0] = 0;
    for (int32_t i = 1; i < c->n && want != NULL; i++) {
        if (mx_kernel_load(c->path[i], "", NULL, &c->system[i], &handle) == 0 &&
            same_bits(t, &c->system[0], &c->system[i], want))
            index[n++] = i;
    }
    return n;
}

/* The least times of the forms `index`, on a tile. */
static void take_times(const struct candidates *c, const struct mx_sample *t, const int32_t *index, int32_t n,
                       double least[MX_FORMS]) {
    const uint64_t begin = mx_thread_cpu_ns();
    for (int round = 0; round < ROUNDS; round++) {
        if (round >= LEAST_ROUNDS && mx_thread_cpu_ns() - begin > ROUNDS_NS) return;
        for (int32_t i = 0; i < n; i++) {
            const double ns = time_of(t, &c->system[index[i]]);
            if (round == 0 || ns < least[i]) least[i] = ns;
        }
    }
}

/* Another form than the first has to need less than this share of its time: such times scatter by 2 %. */
static const double CLEARLY = 0.95;

/* Four rows in a pass read fewer rows for each that they compute than two, and so need less of L2's
 * bandwidth. In tiled runs of kernels of one field, on a processor with an L2 of 2 MiB, that counts more than
 * on a tile alone (docs/notes/kernels.md). There they are taken if they need less than this multiple of the
 * time of two rows, and both are in blocks. */
static const double NEARLY = 1.03;

int32_t mx_forms_choose(const int32_t *number, int32_t n, const double *time, bool prefers_rows) {
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (time[i] / CLEARLY < (best == 0 ? time[0] : time[best] / CLEARLY)) best = i;
    const struct mx_form *two = &mx_forms[number[best]];
    for (int32_t i = 1; i < n && prefers_rows && two->blocks && two->rows == 2 && two->planes == 1; i++) {
        const struct mx_form *four = &mx_forms[number[i]];
        if (four->blocks && four->rows == 4 && four->planes == 1 && time[i] < NEARLY * time[best]) return i;
    }
    return best;
}

/* An engine finds a part of what it reads in L2, and the rest beyond. So each form is timed in both places,
 * and a weighted geometric mean of the two times counts. The wider the stencil, the fewer levels of a tile in
 * time find their planes in L2. */
static double mean_time(double in_l2, double beyond, double share) {
    return pow(in_l2, share) * pow(beyond, 1 - share);
}

/* The share of L2 in the time of a cell, on which plans rest. The factors of tune/rates.c were fitted to
 * times with this share. */
static double share_of_time(int32_t h) { return 2.0 / (2 + h * h); }

/* The share of L2 in the mean that decides. It gives the order of the forms in tiled runs. Blocks of h >= 4
 * prefetch (cell.h). Their time in L2 orders the forms as runs with rows of 254 cells do, and their time
 * beyond L2 as runs with rows of 510 do (docs/notes/kernels.md, "Wide stencils"). */
static double share_of_choice(int32_t h) { return h < 4 ? share_of_time(h) : 8.0 / (h * h); }

static int measure(void *context, struct mx_isolated *report) {
    static const double harmless[2] = {0.5, 1};
    struct candidates *c = context;
    void *handle;
    int64_t n[3], far_n[3];
    struct mx_sample near, far;
    int err = mx_kernel_load(c->path[0], "", &report->why, &c->system[0], &handle);
    if (err < 0) return err;
    tile_size(&c->system[0], n);
    far_size(&c->system[0], n, c->l2_bytes, far_n);
    if ((err = mx_sample_make(&c->system[0], n, &near)) < 0) return err;
    if ((err = mx_sample_make(&c->system[0], far_n, &far)) < 0) return err; /* the process ends */
    int32_t index[MX_FORMS], number[MX_FORMS];
    c->cell_ns = time_of(&near, &c->system[0]) / cells_of(&near); /* in case that there is no time for more */
    const int32_t left = usable(c, &near, index);
    mx_sample_fill(&near, &c->system[0], harmless);
    double in_l2[MX_FORMS], beyond[MX_FORMS], time[MX_FORMS];
    take_times(c, &near, index, left, in_l2);
    const bool slow = in_l2[0] / cells_of(&near) * cells_of(&far) > (double)FAR_NS;
    const struct mx_sample *second = slow ? &near : &far;
    if (slow)
        memcpy(beyond, in_l2, sizeof beyond);
    else
        take_times(c, &far, index, left, beyond);
    for (int32_t i = 0; i < left; i++) {
        in_l2[i] /= cells_of(&near), beyond[i] /= cells_of(second);
        time[i] = mean_time(in_l2[i], beyond[i], share_of_choice((int32_t)far.h));
        number[i] = c->number[index[i]];
    }
    const struct mx_system *s = &c->system[0];
    const bool one_field = s->n_field[0] == 1 && s->n_field[1] == 1;
    const int32_t best = mx_forms_choose(number, left, time, one_field && c->l2_bytes >= MX_LARGE_L2_BYTES);
    c->cell_ns = mean_time(in_l2[best], beyond[best], share_of_time((int32_t)far.h));
    return index[best];
}

int32_t mx_forms_fastest(const char *const *path, const int32_t *number, int32_t n, double *cell_ns) {
    struct candidates *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *cell_ns = 0;
    if (c == MAP_FAILED) return 0;
    mx_why why = {""};
    c->path = path, c->number = number, c->n = n;
    c->l2_bytes = l2_bytes(); /* here, since a child of fork may wait for ever for what hwloc locks */
    const int best = mx_isolate(measure, c, "the fastest form of the kernel", SECONDS, &why);
    if (isfinite(c->cell_ns) && c->cell_ns > 0) *cell_ns = c->cell_ns;
    munmap(c, sizeof *c);
    if (best == -EINTR) return best;
    return best > 0 && best < n ? best : 0;
}
