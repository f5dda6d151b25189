/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_rows - row functions of kernels, ns a cell with a tile in L1 and in L2, beside what a core could do
 * at best. Numbers, no verdict.
 *
 *     bench_rows [-r ROUNDS] [-f FORM]... [FILE.c|FILE.so]...
 *
 * ROUNDS: samples of each, taken in turn (default 9). FORM: a value of MEMEXT_ROWS, with which kernels are
 * compiled, "" for the fastest one; default: all that runtime/kernel/forms.c has, and the fastest one. Forms
 * in blocks are left out for a kernel that allows none.
 * Without files: those of the table below, found from the root of the source. A line of the table has the
 * median, the least and the greatest sample. All is CPU time of one thread, so that others on the machine
 * hardly count.
 *
 * The bound is the longest of: all additions and multiplications, all divisions, all stores, and as many
 * loads as there are where every row of a field is loaded once for all its uses in a plane; in vectors of 64
 * bytes or what the core has.
 */
#include "kernel/forms.h"
#include "kernel/kernel.h"
#include "kernel/sample.h"
#include "machine/clock.h"
#include "machine/machine.h"
#include "machine/minmax.h"
#include "rates.h"

#include <memext/backend.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FORMS = 16, MOST_ROUNDS = 101, SAMPLE_NS = 1000000, ROWS = 8, BATCH_CELLS = 50000 };

/* What a cell of each level of a kernel does, by count. loads: planes of fields that it reads, and old
 * values; as_written: all that it reads. */
struct work {
    int additions, multiplications, divisions, stores, loads, as_written;
};
static const struct {
    const char *file;
    int type;
    struct work level[2];
} known[] = {
    {"experiments/bench/rows/star7_f64.c", RATE_F64, {{6, 2, 0, 1, 3, 7}}},
    {"experiments/bench/rows/star7_f32.c", RATE_F32, {{6, 2, 0, 1, 3, 7}}},
    {"experiments/bench/rows/box27_f64.c", RATE_F64, {{26, 4, 0, 1, 3, 27}}},
    {"experiments/bench/rows/box27_f32.c", RATE_F32, {{26, 4, 0, 1, 3, 27}}},
    {"experiments/bench/rows/star8_f64.c", RATE_F64, {{25, 6, 0, 1, 9, 25}}},
    {"experiments/bench/rows/star8_f32.c", RATE_F32, {{25, 6, 0, 1, 9, 25}}},
    {"experiments/bench/rows/wave8_f64.c", RATE_F64, {{26, 7, 0, 1, 11, 27}}},
    {"experiments/bench/rows/wave8_f32.c", RATE_F32, {{26, 7, 0, 1, 11, 27}}},
    {"experiments/bench/rows/star16_f32.c", RATE_F32, {{49, 10, 0, 1, 17, 49}}},
    {"experiments/bench/rows/wave16_f32.c", RATE_F32, {{50, 11, 0, 1, 19, 51}}},
    {"systems/wave.c", RATE_F32, {{28, 10, 1, 1, 12, 28}}},
    {"systems/diffusion.c", RATE_F64, {{18, 13, 0, 1, 6, 14}}},
    {"systems/gray_scott.c", RATE_F64, {{19, 10, 0, 2, 6, 14}}},
    {"systems/fdtd.c", RATE_F32, {{12, 3, 0, 3, 8, 12}, {12, 3, 1, 3, 9, 13}}},
    {"experiments/bench/rows/elastic.c", RATE_F32, {{38, 28, 0, 6, 20, 32}, {36, 22, 0, 3, 25, 42}}},
    {"systems/lattice_boltzmann.c", RATE_F32, {{206, 145, 4, 19, 22, 57}}},
};
enum { KNOWN = sizeof known / sizeof known[0] };

static void check(int err, const char *what, const mx_why *why) {
    if (err >= 0) return;
    fprintf(stderr, "bench_rows: %s: %s\n", what, why->text[0] != 0 ? why->text : strerror(-err));
    exit(2);
}

static void find_rates(struct rates *out, const char **isa) {
    *isa = "plain";
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        *isa = "avx512";
        rates_avx512(out);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        *isa = "avx2";
        rates_avx2(out);
        return;
    }
#endif
    rates_plain(out);
}

static double bound(const double ns[RATE_KINDS], const struct work *w) {
    const int pairs = (int)mx_min(w->additions, w->multiplications);
    double most = pairs * ns[RATE_BOTH] + (w->additions - pairs) * ns[RATE_ADD] +
                  (w->multiplications - pairs) * ns[RATE_MULTIPLY];
    most = mx_max_real(most, w->divisions * ns[RATE_DIVIDE]);
    most = mx_max_real(most, w->stores * ns[RATE_STORE]);
    return mx_max_real(most, w->loads * ns[RATE_LOAD]);
}

/* A tile whose arrays together have about so many bytes: ROWS rows, if not fewer planes than one. */
static void tile_sizes(const struct mx_system *s, int64_t bytes, bool small, int64_t n[3]) {
    n[0] = small ? 64 : 254, n[1] = small ? 4 : ROWS, n[2] = 1;
    while (mx_sample_bytes(s, (const int64_t[3]){n[0], n[1], n[2] + 1}) <= bytes) n[2]++;
}

/* ns a cell of one sample. The clock of a thread takes a microsecond. */
static double time_of(const struct mx_sample *t, const struct mx_system *s, int level) {
    const int64_t cells = t->n[0] * t->n[1] * t->n[2], batch = 1 + BATCH_CELLS / cells;
    int64_t turns = 0;
    const uint64_t begin = mx_thread_cpu_ns();
    while (mx_thread_cpu_ns() - begin < SAMPLE_NS)
        for (int64_t i = 0; i < batch; i++, turns++) mx_sample_level(t, s, level, ROWS);
    return (double)(mx_thread_cpu_ns() - begin) / (double)(turns * cells);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct entry {
    const char *name;
    struct mx_system *system;
    double sample[2][MOST_ROUNDS]; /* L1, L2 */
};

static void time_level(struct entry *e, int n, int level, int rounds, const int64_t cache[2]) {
    for (int where = 0; where < 2; where++) {
        struct mx_sample t;
        int64_t size[3];
        tile_sizes(e[0].system, cache[where], where == 0, size);
        check(mx_sample_make(e[0].system, size, &t), "a tile", &(mx_why){""});
        for (int round = -1; round < rounds; round++)
            for (int i = 0; i < n; i++) {
                const double ns = time_of(&t, e[i].system, level);
                if (round >= 0) e[i].sample[where][round] = ns;
            }
        mx_sample_free(&t);
        for (int i = 0; i < n; i++) qsort(e[i].sample[where], (size_t)rounds, sizeof(double), compare);
    }
}

static void print_level(const struct entry *e, int n, int level, int rounds, double least) {
    const struct mx_system *s = e[0].system;
    for (int i = 0; i < n; i++) {
        printf("%-16s %d  %-10s", s->name, level, e[i].name);
        for (int where = 0; where < 2; where++) {
            const double *v = e[i].sample[where];
            printf("  %7.3f (%.3f .. %.3f)", v[rounds / 2], v[0], v[rounds - 1]);
        }
        if (least > 0)
            printf("  %6.3f  %.2f\n", least, least / e[i].sample[1][rounds / 2]);
        else
            printf("       -     -\n");
    }
    fflush(stdout);
}

static void bench(const char *const *files, int n_files, const char *const *forms, int n_forms, int rounds,
                  const struct rates *rates, const int64_t cache[2]) {
    static struct entry e[MOST_FORMS];
    int n = 0;
    for (int i = 0; i < n_files; i++)
        for (int f = 0; f < n_forms; f++) {
            mx_why why = {""};
            setenv(MX_FORM_VARIABLE, forms[f], 1);
            e[n].name = n_files > 1 ? files[i] : forms[f][0] != 0 ? forms[f] : "chosen";
            const int err = mx_kernel_open(&(struct mx_kernel_options){.path = files[i]}, &why, &e[n].system);
            if (err < 0 && strstr(why.text, "no blocks for") != NULL) continue;
            check(err, files[i], &why);
            n++;
        }
    for (int level = 0; level < (e[0].system->form == MX_STAGGERED ? 2 : 1); level++) {
        double least = 0;
        for (int k = 0; k < KNOWN; k++)
            if (strcmp(known[k].file, files[0]) == 0)
                least = bound(rates->ns[known[k].type], &known[k].level[level]);
        time_level(e, n, level, rounds, cache);
        print_level(e, n, level, rounds, least);
    }
    for (int i = 0; i < n; i++) mx_kernel_close(e[i].system);
}

int main(int argc, char **argv) {
    const char *forms[MOST_FORMS], *files[MOST_FORMS];
    int n_forms = 0, n_files = 0, rounds = 9;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-r") == 0 && i + 1 < argc)
            rounds = (int)mx_min(mx_max(strtol(argv[++i], NULL, 10), 1), MOST_ROUNDS);
        else if (strcmp(argv[i], "-f") == 0 && i + 1 < argc && n_forms < MOST_FORMS)
            forms[n_forms++] = argv[++i];
        else if (n_files < MOST_FORMS)
            files[n_files++] = argv[i];
    const bool all = n_forms == 0;
    for (int i = 0; all && i < MX_FORMS; i++) forms[n_forms++] = mx_forms[i].name;
    if (all) forms[n_forms++] = "";
    struct rates rates = {0};
    struct mx_machine machine;
    mx_why why = {""};
    const char *isa;
    check(mx_machine_detect(&why, &machine), "the machine", &why);
    find_rates(&rates, &isa);
    printf("# %s, %s, L2 of %llu KiB; ns a number: ", machine.cpu, isa,
           (unsigned long long)machine.l2_bytes >> 10);
    for (int t = 0; t < RATE_TYPES; t++)
        printf("%s add %.4f, multiply %.4f, both %.4f, divide %.4f, load %.4f, store %.4f%s",
               t == RATE_F64 ? "f64" : "f32", rates.ns[t][RATE_ADD], rates.ns[t][RATE_MULTIPLY],
               rates.ns[t][RATE_BOTH], rates.ns[t][RATE_DIVIDE], rates.ns[t][RATE_LOAD],
               rates.ns[t][RATE_STORE], t == RATE_F64 ? "; " : "\n");
    printf(
        "# kernel, level, form; ns a cell in L1 and in L2 (median, least .. greatest); bound; bound / L2\n");
    const int64_t cache[2] = {24 << 10, (int64_t)machine.l2_bytes / 2};
    if (n_files > 0 && strstr(files[0], ".so") != NULL)
        bench(files, n_files, forms, 1, rounds, &rates, cache);
    for (int i = 0; i < n_files && strstr(files[0], ".so") == NULL; i++)
        bench(&files[i], 1, forms, n_forms, rounds, &rates, cache);
    for (int i = 0; i < KNOWN && n_files == 0; i++)
        bench(&known[i].file, 1, forms, n_forms, rounds, &rates, cache);
    return 0;
}
