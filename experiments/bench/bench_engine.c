/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_engine.c - update rates of kernels and engines in DRAM and cache, no I/O. Prints one JSON object.
 *
 *   peak_l1, peak_l2   the best of several kernels alone, every thread on its own small arrays: memext's
 *                      own, that for tiles in place, and simple ones (peak.h), of the instruction sets that
 *                      MX_ISA allows; the rate of each is printed too. Of a kernel of a user its row
 *                      function as engines call it
 *   normal             the whole grid in DRAM, level by level (engine iblock)
 *   tiled              the whole grid in DRAM, engine tiled, bt levels per call
 *   ring               as a stream run: two rings of about bt planes, slab by slab through bt levels
 *
 * Modes are measured in turn, so that ratios come from the same minutes; every figure is the median of the
 * repeats, in 1e9 updates per second.
 */
#include "engine/work.h"
#include "grid/grid.h"
#include "kernel/kernel.h"
#include "peak.h"
#include "stencil/stencil.h"

#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum mode { PEAK_L1, PEAK_L2, NORMAL, TILED, RING, MODES };
static const char *const mode_names[MODES] = {"peak_l1", "peak_l2", "normal", "tiled", "ring"};
enum { MOST_REPEATS = 101, MOST_PEAKS = 16 };

/* A kernel that may be the machine's best: on patches, or on tiles in place. */
struct candidate {
    const char *name;
    mx_kernel_fn *kernel;
    mx_tile_fn *tile;
    bool simple; /* wants cell h, not cell 0, at the start of a line */
};

struct bench {
    struct mx_problem problem;
    struct mx_machine machine;
    const struct mx_stencil *stencil; /* NULL: a kernel of a user */
    struct mx_system *system;         /* it, or NULL */
    struct mx_layout layout;
    struct mx_fixed_view fixed[MX_MAX_FIXED];
    int64_t bt, pad_bytes, plane_pad_bytes, array_offset_bytes, row_pitch, plane_pitch;
    int32_t threads, repeats;
    struct mx_plan plan; /* slab, tile, ct: 0 = the engine's choice */
    double seconds;      /* least time of one measurement */
    bool wanted[MODES];
    char *base[2];
    int64_t array_planes;
    struct mx_window *window;
    struct candidate peak[MOST_PEAKS];
    int32_t peaks;
    double peak_rate[2][MOST_PEAKS][MOST_REPEATS]; /* in L1, in L2 */
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- memory: huge pages, touched by the threads that will use it */

struct touch {
    char *from;
    int64_t bytes;
    int32_t core;
};

static void *touch_part(void *arg) {
    struct touch *t = arg;
    mx_machine_pin(t->core);
    memset(t->from, 0, (size_t)t->bytes);
    return NULL;
}

static char *array_make(int64_t bytes, int32_t threads) {
    const int64_t huge = 2 << 20;
    bytes = (bytes + huge - 1) / huge * huge;
    char *base = aligned_alloc((size_t)huge, (size_t)bytes);
    if (base == NULL) {
        fprintf(stderr, "no memory for %lld bytes\n", (long long)bytes);
        exit(1);
    }
    madvise(base, (size_t)bytes, MADV_HUGEPAGE);
    struct touch touch[64];
    pthread_t id[64];
    for (int32_t i = 0; i < threads; i++) {
        touch[i] = (struct touch){base + bytes / threads * i, bytes / threads, i};
        pthread_create(&id[i], NULL, touch_part, &touch[i]);
    }
    for (int32_t i = 0; i < threads; i++) pthread_join(id[i], NULL);
    return base;
}

/* ---- C: of zeros, like the rest: rates do not depend on what kernels compute, and nothing is subnormal */

static void fixed_make(struct bench *b) {
    for (int32_t i = 0; i < mx_fixed_count(&b->problem); i++) {
        const struct mx_fixed_layout *f = &b->layout.fixed[i];
        const int64_t plane = mx_plane_pitch_in_dram(f->plane_pitch_bytes);
        b->fixed[i] = (struct mx_fixed_view){.base = array_make(b->array_planes * plane, b->threads),
                                             .slots = b->array_planes,
                                             .slot_pitch_bytes = plane,
                                             .row_pitch_bytes = f->row_pitch_bytes,
                                             .align_bytes = 1};
    }
}

/* ---- peak */

struct small {
    const struct bench *b;
    const struct candidate *peak;
    int32_t core;
    int64_t nx, ny, nz;
    double updates, seconds;
};

static const struct {
    const char *isa;
    peak_find *find;
} simple[] = {
#if defined(__x86_64__)
    {"avx512", peak_find_avx512},
    {"avx2", peak_find_avx2},
#endif
    {"plain", peak_find_plain},
};

static void find_peaks(struct bench *b) {
    const enum mx_dtype dtype = b->problem.dtype;
    const char *isa;
    struct candidate *c = b->peak;
    *c++ = (struct candidate){"own", .kernel = mx_stencil_kernel(b->stencil, dtype, &isa)};
    if (mx_stencil_tile(b->stencil, dtype) != NULL)
        *c++ = (struct candidate){"own in place", .tile = mx_stencil_tile(b->stencil, dtype)};
    bool allowed = false;
    for (size_t i = 0; i < sizeof simple / sizeof simple[0] && b->problem.h == 1; i++) {
        allowed = allowed || strcmp(simple[i].isa, isa) == 0;
        if (!allowed || !mx_stencil_has_isa(simple[i].isa)) continue;
        struct candidate one = {.simple = true};
        for (int k = 0; (one.kernel = simple[i].find(b->stencil, dtype, k, &one.name)) != NULL; k++)
            *c++ = one;
    }
    b->peaks = (int32_t)(c - b->peak);
}

/* The arrays are level by level, in the order of the tiled engine's innermost loop. */
static void *peak_part(void *arg) {
    struct small *s = arg;
    mx_machine_pin(s->core);
    const struct bench *b = s->b;
    const int32_t h = b->problem.h;
    const int64_t element = mx_dtype_bytes(b->problem.dtype), lead = s->peak->simple ? 64 - h * element : 0;
    const int64_t row = ((s->nx + 2 * h) * element + 63) / 64 * 64 + 64;
    const int64_t plane = row * (s->ny + 2 * h) + 64, n = s->nz + 2 * h;
    char *base = array_make(2 * plane * n + 64, 1);
    char *planes[2][128];
    struct mx_tile_rows tile_rows[128];
    for (int64_t z = 0; z < n; z++) {
        for (int i = 0; i < 2; i++) planes[i][z] = base + lead + (i * n + z) * plane + h * row;
        char *first = base + z * plane;
        tile_rows[z] = (struct mx_tile_rows){first, first + 2 * row, first + s->ny * row};
    }
    const struct mx_tile tile = {.src = tile_rows,
                                 .dst = tile_rows + 2,
                                 .rows = (int32_t)s->ny,
                                 .planes = (int32_t)s->nz,
                                 .row_pitch_bytes = row,
                                 .nx = s->nx};
    int64_t steps = 0;
    const double start = now();
    do {
        for (int k = 0; k < 100; k++, steps++) {
            struct mx_patch p = {.src = (const char *const *)planes[steps & 1],
                                 .dst = planes[!(steps & 1)][h],
                                 .dst_planes = &planes[!(steps & 1)][h],
                                 .planes = (int32_t)s->nz,
                                 .row_pitch_bytes = row,
                                 .rows = (int32_t)s->ny,
                                 .h = h,
                                 .nx = s->nx,
                                 .x0 = h,
                                 .x1 = s->nx + h};
            if (s->peak->tile != NULL)
                s->peak->tile(&tile, b->problem.coef);
            else
                s->peak->kernel(&p, b->problem.coef);
        }
        s->seconds = now() - start;
    } while (s->seconds < b->seconds / 4);
    s->updates = (double)(steps * s->nx * s->ny * s->nz);
    free(base);
    return NULL;
}

/* The same of a kernel of a user: row functions, called by the loop that engines have. */
static void *peak_system_part(void *arg) {
    struct small *s = arg;
    mx_machine_pin(s->core);
    struct mx_problem p = s->b->problem;
    const int64_t h = p.h, slots = s->nz + 2 * h;
    struct mx_layout l;
    struct mx_fixed_view fixed[MX_MAX_FIXED];
    p.nx = s->nx, p.ny = s->ny, p.nz = s->nz;
    if (mx_layout_make(&p, 64, false, NULL, &l) != 0) exit(2);
    const struct mx_engine_options o = {.problem = &p, .row_pitch_bytes = l.row_pitch_bytes, .threads = 1};
    struct mx_work work;
    if (mx_work_make(&o, NULL, &work) != 0) exit(2);
    const int64_t pitch = l.row_pitch_bytes * l.rows + 64;
    char *base = array_make(2 * pitch * slots, 1);
    for (int32_t i = 0; i < mx_fixed_count(&p); i++) {
        const int64_t plane = l.fixed[i].row_pitch_bytes * l.rows + 64;
        fixed[i] = (struct mx_fixed_view){.base = array_make(plane * slots, 1),
                                          .slots = slots,
                                          .slot_pitch_bytes = plane,
                                          .row_pitch_bytes = l.fixed[i].row_pitch_bytes,
                                          .align_bytes = 1};
    }
    struct mx_advance a = {.levels = 2};
    a.view = (struct mx_view){.base = {base, base + pitch * slots},
                              .slots = {slots, slots},
                              .plane_pitch_bytes = pitch,
                              .row_pitch_bytes = l.row_pitch_bytes,
                              .fixed = fixed};
    const struct mx_box all = {h, h + p.nx, h, h + p.ny, h, h + p.nz};
    int64_t steps = 0;
    const double start = now();
    do {
        for (int32_t k = 0; k < 10; k++, steps++) mx_work_box(&work, &a, k & 1, all, NULL);
        s->seconds = now() - start;
    } while (s->seconds < s->b->seconds / 4);
    s->updates = (double)(steps * p.nx * p.ny * p.nz) / (double)mx_levels_a_step(&p);
    free(base);
    for (int32_t i = 0; i < mx_fixed_count(&p); i++) free(fixed[i].base);
    return NULL;
}

/* Of a system all arrays together take as much as star7 in f64: fewer planes and rows for more fields. */
static void shrink(const struct bench *b, struct small *s, bool l1) {
    const int64_t h2 = 2 * b->problem.h, room = l1 ? 24 << 10 : 384 << 10;
    const int64_t cell =
        mx_cell_bytes(&b->problem, 0) + mx_cell_bytes(&b->problem, 1) + mx_fixed_cell_bytes(&b->problem);
    s->nx = 128 - h2, s->ny = s->nz = 2;
    while (cell * 128 * (s->ny + 1 + h2) * (s->nz + 1 + h2) < room) s->ny++, s->nz++;
}

static double peak_of(const struct bench *b, const struct candidate *c, bool l1) {
    struct small part[64];
    pthread_t id[64];
    double rate = 0;
    const int64_t wide = b->problem.dtype == MX_F64 ? 1 : 2;
    for (int32_t i = 0; i < b->threads; i++) {
        part[i] = (struct small){
            .b = b, .peak = c, .core = i, .nx = (l1 ? 62 : 126) * wide, .ny = l1 ? 6 : 12, .nz = l1 ? 2 : 12};
        if (b->system != NULL) shrink(b, &part[i], l1);
        pthread_create(&id[i], NULL, b->system != NULL ? peak_system_part : peak_part, &part[i]);
    }
    for (int32_t i = 0; i < b->threads; i++) {
        pthread_join(id[i], NULL);
        rate += part[i].updates / part[i].seconds;
    }
    return rate;
}

static double peak(struct bench *b, bool l1, int32_t repeat) {
    if (b->system != NULL) return peak_of(b, NULL, l1);
    double best = 0;
    for (int32_t i = 0; i < b->peaks; i++) {
        const double rate = peak_of(b, &b->peak[i], l1);
        b->peak_rate[!l1][i][repeat] = rate;
        if (rate > best) best = rate;
    }
    return best;
}

/* ---- engines */

static mx_engine *engine_make(const struct bench *b, const struct mx_engine_ops *ops, int64_t levels,
                              int64_t planes, struct mx_engine_options *o) {
    mx_engine *engine = NULL;
    mx_why why = {0};
    *o = (struct mx_engine_options){.problem = &b->problem,
                                    .machine = &b->machine,
                                    .row_pitch_bytes = b->row_pitch,
                                    .threads = b->threads,
                                    .slab = b->plan.slab,
                                    .tile = b->plan.tile,
                                    .ct = b->plan.ct,
                                    .column = b->plan.column,
                                    .levels = levels,
                                    .rows = b->problem.ny,
                                    .planes = planes};
    if (ops->create(o, &why, &engine) != 0) {
        fprintf(stderr, "%s\n", why.text);
        exit(1);
    }
    return engine;
}

/* C has as many slots as there is memory for; a ring's planes are wherever they are asked for. */
static struct mx_advance advance_of(const struct bench *b, int64_t slots) {
    struct mx_advance a = {.levels = (int32_t)b->bt, .window = b->window};
    a.view = (struct mx_view){.base = {b->base[0], b->base[1]},
                              .slots = {slots, slots},
                              .plane_pitch_bytes = b->plane_pitch,
                              .row_pitch_bytes = b->row_pitch,
                              .fixed = b->fixed};
    return a;
}

static double whole(const struct bench *b, const char *name, int64_t levels) {
    const struct mx_engine_ops *ops = mx_engine_find(name);
    const struct mx_problem *p = &b->problem;
    struct mx_engine_options o;
    mx_engine *engine = engine_make(b, ops, levels, p->nz, &o);
    struct mx_advance a = advance_of(b, p->nz + 2 * p->h);
    a.levels = (int32_t)levels;
    for (int64_t l = 0; l < levels; l++)
        b->window[l] = (struct mx_window){p->h, (int32_t)p->ny + p->h, p->h, (int32_t)p->nz + p->h};
    int64_t calls = 0;
    double start = now(), seconds;
    do {
        mx_engine_advance(ops, engine, &a);
        calls++;
        seconds = now() - start;
    } while (seconds < b->seconds);
    ops->free(engine);
    return (double)(calls * levels / mx_levels_a_step(p) * p->nx * p->ny * p->nz) / seconds;
}

/* Slab after slab, far from both ends of the grid, two calls under way as in a run. */
static double ring(const struct bench *b) {
    const struct mx_engine_ops *ops = mx_engine_find("tiled");
    const struct mx_problem *p = &b->problem;
    struct mx_engine_options o;
    mx_engine *engine = engine_make(b, ops, b->bt, 0, &o);
    const int64_t slab = ops->slab(&o), h = p->h;
    struct mx_advance a = advance_of(b, b->bt * h + 3 * slab + 2 * h);
    if (a.view.slots[0] > b->array_planes) exit(2);
    int64_t updates = 0, calls = 0, z = b->bt * h + h;
    double start = now(), seconds;
    do {
        struct mx_window *window = b->window + calls % 2 * b->bt;
        for (int32_t l = 0; l < b->bt; l++)
            window[l] = (struct mx_window){(int32_t)h, (int32_t)(p->ny + h), (int32_t)(z - l * h),
                                           (int32_t)(z + slab - l * h)};
        a.window = window;
        calls = ops->post(engine, &a);
        ops->wait(engine, calls - 1);
        z += slab;
        updates += slab * b->bt * p->nx * p->ny;
        seconds = now() - start;
    } while (seconds < b->seconds);
    ops->wait(engine, calls);
    seconds = now() - start;
    ops->free(engine);
    return (double)updates / (double)mx_levels_a_step(p) / seconds;
}

static double measure(struct bench *b, enum mode mode, int32_t repeat) {
    return mode <= PEAK_L2  ? peak(b, mode == PEAK_L1, repeat)
           : mode == NORMAL ? whole(b, "iblock", 4)
           : mode == TILED  ? whole(b, "tiled", b->bt)
                            : ring(b);
}

static int ascending(const void *a, const void *b) {
    double d = *(const double *)a - *(const double *)b;
    return (d > 0) - (d < 0);
}

static double median(double *rate, int32_t n) {
    qsort(rate, (size_t)n, sizeof rate[0], ascending);
    return rate[n / 2];
}

static void print_peaks(struct bench *b, int in_l2) {
    for (int32_t i = 0; i < b->peaks; i++)
        printf("%s\"%s\": %.3f", i > 0 ? ", " : "", b->peak[i].name,
               1e-9 * median(b->peak_rate[in_l2][i], b->repeats));
}

static void run(struct bench *b) {
    static double rate[MODES][MOST_REPEATS];
    for (int32_t r = 0; r < b->repeats; r++)
        for (int m = 0; m < MODES; m++)
            if (b->wanted[m]) rate[m][r] = measure(b, m, r);
    struct mx_engine_options o;
    mx_engine *engine =
        engine_make(b, mx_engine_find("tiled"), b->bt, b->wanted[RING] ? 0 : b->problem.nz, &o);
    struct mx_plan plan = {0};
    mx_engine_find("tiled")->describe(engine, &plan);
    mx_engine_find("tiled")->free(engine);
    const char *isa = "";
    if (b->stencil != NULL) mx_stencil_kernel(b->stencil, b->problem.dtype, &isa);
    printf(
        "{\"stencil\": \"%s\", \"dtype\": \"%s\", \"isa\": \"%s\", \"nx\": %lld, \"ny\": %lld, \"nz\": %lld, "
        "\"bt\": %lld, \"threads\": %d, \"row_pitch_bytes\": %lld, \"plane_pitch_bytes\": %lld, \"slab\": "
        "%lld, "
        "\"tile\": %lld, \"ct\": %lld, \"column\": %lld",
        b->system != NULL ? b->system->name : b->stencil->name, b->problem.dtype == MX_F64 ? "f64" : "f32",
        isa, (long long)b->problem.nx, (long long)b->problem.ny, (long long)b->problem.nz, (long long)b->bt,
        b->threads, (long long)b->row_pitch, (long long)b->plane_pitch, (long long)plan.slab,
        (long long)plan.tile, (long long)plan.ct, (long long)plan.column);
    for (int m = 0; m < MODES; m++)
        if (b->wanted[m]) {
            printf(", \"%s\": %.3f", mode_names[m], 1e-9 * median(rate[m], b->repeats));
            if (m > PEAK_L2 || b->system != NULL) continue;
            printf(", \"%s_of\": {", mode_names[m]);
            print_peaks(b, m == PEAK_L2);
            printf("}");
        }
    printf("}\n");
}

static void kernel_open(struct bench *b, const char *path) {
    const struct mx_kernel_options o = {.path = path};
    mx_why why = {0};
    if (mx_kernel_open(&o, &why, &b->system) == 0) return;
    fprintf(stderr, "%s\n", why.text);
    exit(2);
}

static void options(int argc, char **argv, struct bench *b) {
    static const struct option names[] = {{"nx", 1, 0, 'x'},
                                          {"ny", 1, 0, 'y'},
                                          {"nz", 1, 0, 'z'},
                                          {"bt", 1, 0, 'b'},
                                          {"stencil", 1, 0, 's'},
                                          {"dtype", 1, 0, 'd'},
                                          {"threads", 1, 0, 't'},
                                          {"slab", 1, 0, 'S'},
                                          {"tile", 1, 0, 'T'},
                                          {"ct", 1, 0, 'C'},
                                          {"modes", 1, 0, 'm'},
                                          {"repeats", 1, 0, 'r'},
                                          {"seconds", 1, 0, 'e'},
                                          {"pad", 1, 0, 'p'},
                                          {"plane-pad", 1, 0, 'P'},
                                          {"column", 1, 0, 'X'},
                                          {"array-offset", 1, 0, 'O'},
                                          {"kernel", 1, 0, 'k'},
                                          {0}};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        const long long v = optarg ? atoll(optarg) : 0;
        switch (c) {
        case 'x':
            b->problem.nx = v;
            break;
        case 'y':
            b->problem.ny = v;
            break;
        case 'z':
            b->problem.nz = v;
            break;
        case 'b':
            b->bt = v;
            break;
        case 's':
            b->stencil = mx_stencil_find(optarg);
            break;
        case 'k':
            kernel_open(b, optarg);
            break;
        case 'd':
            b->problem.dtype = strcmp(optarg, "f32") == 0 ? MX_F32 : MX_F64;
            break;
        case 't':
            b->threads = (int32_t)v;
            break;
        case 'S':
            b->plan.slab = v;
            break;
        case 'T':
            b->plan.tile = v;
            break;
        case 'C':
            b->plan.ct = v;
            break;
        case 'X':
            b->plan.column = v;
            break;
        case 'r':
            b->repeats = v < MOST_REPEATS ? (int32_t)v : MOST_REPEATS;
            break;
        case 'e':
            b->seconds = atof(optarg);
            break;
        case 'p':
            b->pad_bytes = v;
            break;
        case 'P':
            b->plane_pad_bytes = v;
            break;
        case 'O':
            b->array_offset_bytes = v;
            break;
        case 'm':
            for (int m = 0; m < MODES; m++) b->wanted[m] = strstr(optarg, mode_names[m]) != NULL;
            break;
        default:
            fprintf(stderr,
                    "usage: bench_engine [--nx N --ny N --nz N --bt LEVELS --stencil NAME --dtype f64|f32 "
                    "--kernel FILE.c --threads N]\n  [--slab N --tile N --ct N] [--modes "
                    "peak_l1,peak_l2,normal,tiled,ring] "
                    "[--repeats N] [--seconds S]\n  [--column N] [--pad BYTES: added to the row pitch] "
                    "[--plane-pad BYTES: added to the plane pitch] [--array-offset BYTES: of the second "
                    "array]\n");
            exit(2);
        }
    }
}

int main(int argc, char **argv) {
    static struct bench b = {
        .problem = {.nx = 510, .ny = 510, .nz = 510}, .bt = 128, .repeats = 3, .seconds = 0.5, .threads = 2};
    for (int m = 0; m < MODES; m++) b.wanted[m] = true;
    b.stencil = mx_stencil_find("star7");
    if (mx_machine_detect(NULL, &b.machine) == 0) b.threads = b.machine.cores;
    options(argc, argv, &b);
    if ((b.stencil == NULL && b.system == NULL) || b.threads < 1 || b.threads > 64 || b.bt < 1) return 2;
    if (b.system != NULL) {
        b.stencil = NULL;
        b.problem.system = b.system;
        b.problem.h = b.system->h;
        b.problem.dtype = b.system->field[0][0].dtype;
    } else {
        b.problem.h = b.stencil->h;
        strcpy(b.problem.stencil, b.stencil->name);
        memcpy(b.problem.coef, b.stencil->coef, sizeof b.problem.coef);
    }
    if (b.stencil != NULL) find_peaks(&b);
    const int64_t h = b.problem.h;
    if (mx_layout_make(&b.problem, 4096, false, NULL, &b.layout) != 0) return 2;
    b.row_pitch = b.layout.row_pitch_bytes + b.pad_bytes;
    b.plane_pitch =
        mx_plane_pitch_in_dram((b.row_pitch * b.layout.rows + 4095) / 4096 * 4096) + b.plane_pad_bytes;
    b.array_planes = 2 * h;
    if (b.wanted[NORMAL] || b.wanted[TILED]) b.array_planes = most(b.array_planes, b.problem.nz + 2 * h);
    if (b.wanted[RING]) b.array_planes = most(b.array_planes, b.bt * h + 3 * 64 + 2 * h);
    b.window = calloc(2 * (size_t)most(b.bt, 16), sizeof *b.window);
    for (int i = 0; i < 2; i++)
        b.base[i] = array_make(b.array_planes * b.plane_pitch + b.array_offset_bytes, b.threads) +
                    i * b.array_offset_bytes;
    fixed_make(&b);
    run(&b);
    mx_kernel_close(b.system);
    return 0;
}
