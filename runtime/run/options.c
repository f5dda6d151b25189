/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/options.h"
#include "grid/grid.h"
#include "link/link.h"
#include "run/fields.h"
#include "stencil/stencil.h"
#include "tune/tune.h"

#include <memext/backend.h>

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ sizes */

static const struct {
    const char *suffix;
    double factor;
} units[] = {{"", 1},
             {"B", 1},
             {"KiB", 1024.0},
             {"MiB", 1048576.0},
             {"GiB", 1073741824.0},
             {"TiB", 1099511627776.0},
             {"K", 1024.0},
             {"M", 1048576.0},
             {"G", 1073741824.0},
             {"T", 1099511627776.0},
             {"KB", 1e3},
             {"MB", 1e6},
             {"GB", 1e9},
             {"TB", 1e12}};

int mx_parse_size(const char *text, uint64_t *out) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || !isfinite(value) || value < 0) return -EINVAL;
    while (isspace((unsigned char)*end)) end++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcasecmp(end, units[i].suffix) != 0) continue;
        double bytes = value * units[i].factor;
        if (bytes >= 9.2e18) return -EINVAL;
        *out = (uint64_t)bytes;
        return 0;
    }
    return -EINVAL;
}

const char *mx_format_size(uint64_t bytes, char *buffer, size_t capacity) {
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1024 && unit < 5) value /= 1024, unit++;
    snprintf(buffer, capacity, unit == 0 ? "%.0f %s" : "%.2f %s", value, names[unit]);
    return buffer;
}

/* ------------------------------------------------------------------ how values are read */

static void *field_of(const struct mx_option *row, struct mx_options *o) { return (char *)o + row->offset; }

static int take_flag(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    (void)value, (void)why;
    return *(bool *)field_of(row, o) = true, 0;
}

static int take_help(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    (void)row, (void)value, (void)o, (void)why;
    return 1;
}

static int take_text(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    (void)why;
    return *(const char **)field_of(row, o) = value, 0;
}

/* ---- options that may be given several times */

static int take_word(const struct mx_option *row, const char *value, struct mx_words *words, mx_why *why) {
    if (words->n == MX_WORDS_MOST)
        return mx_fail(why, -EINVAL, "--%s is given more than %d times", row->name, MX_WORDS_MOST);
    return words->word[words->n++] = value, 0;
}

static int take_words(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    return take_word(row, value, field_of(row, o), why);
}

/* The plain form of one field, and the named one of a system's. */
static int take_input(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    return o->input = value, take_word(row, value, &o->inputs, why);
}
static int take_init(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    return o->init = value, take_word(row, value, &o->inits, why);
}
static int take_output(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    return o->output = value, take_word(row, value, &o->outputs, why);
}

static int take_real(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    double *field = field_of(row, o);
    char *end;
    *field = strtod(value, &end);
    if (end != value && *end == 0 && *field > 0 && isfinite(*field)) return 0;
    return mx_fail(why, -EINVAL, "--%s '%s' is no positive number", row->name, value);
}

static int parse_count(const char *text, int64_t *out) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != 0 || errno != 0) return -EINVAL;
    *out = value;
    return 0;
}

/* One whole number within the row's limits. */
static int take_count(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    int64_t count;
    if (parse_count(value, &count) < 0 || count < (int64_t)row->low || count > (int64_t)row->high)
        return mx_fail(why, -EINVAL, "--%s '%s' is no whole number from %llu to %llu", row->name, value,
                       (unsigned long long)row->low, (unsigned long long)row->high);
    return *(int64_t *)field_of(row, o) = count, 0;
}

/* As many whole numbers as the row has words, into fields that follow one another. */
enum { MOST_CALIBRATE_S = 60 };
enum { MOST_WORDS = 4, LONGEST_NUMBER = 64 };

static int take_counts(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    int64_t counts[MOST_WORDS];
    char name[32], word[LONGEST_NUMBER];
    const char letter[] = {(char)row->letter, 0};
    snprintf(name, sizeof name, row->letter != 0 ? "--%s (-%s)" : "--%s", row->name, letter);
    int n = 0;
    for (const char *p = value + strspn(value, " "); *p != 0; p += strspn(p, " "), n++) {
        const size_t length = strcspn(p, " ");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), p);
        if (n == row->words || length >= sizeof word || parse_count(word, &counts[n]) < 0)
            return mx_fail(why, -EINVAL, "%s: '%s' is no whole number (%d numbers are needed)", name, word,
                           row->words);
        if (counts[n] < (int64_t)row->low)
            return mx_fail(why, -EINVAL, "%s: %lld is below the smallest value allowed, %lld", name,
                           (long long)counts[n], (long long)row->low);
        if (row->high > 0 && counts[n] > (int64_t)row->high)
            return mx_fail(why, -EINVAL, "%s: %lld is above the largest value allowed, %lld", name,
                           (long long)counts[n], (long long)row->high);
        p += length;
    }
    if (n < row->words) return mx_fail(why, -EINVAL, "%s takes %d numbers, %d given", name, row->words, n);
    memcpy(field_of(row, o), counts, (size_t)n * sizeof *counts);
    return 0;
}

static int take_size(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    uint64_t size;
    char low[32], high[32];
    if (mx_parse_size(value, &size) < 0)
        return mx_fail(why, -EINVAL, "--%s '%s' is no size; give bytes or a number with KiB, MiB, GiB or TiB",
                       row->name, value);
    if (size < row->low || size > row->high)
        return mx_fail(why, -EINVAL, "--%s %s is outside %s .. %s", row->name, value,
                       mx_format_size(row->low, low, sizeof low),
                       mx_format_size(row->high, high, sizeof high));
    return *(uint64_t *)field_of(row, o) = size, 0;
}

/* A number and its unit, which is one of a table; -1 = it is none. */
struct unit {
    const char *name;
    double value;
};

static double with_unit(const char *text, size_t length, const struct unit *units, size_t n) {
    char *end;
    const double value = strtod(text, &end);
    const size_t left = (size_t)(text + length - end);
    if (end == text || end > text + length || !(value >= 0) || !isfinite(value)) return -1;
    for (size_t i = 0; i < n; i++)
        if (strlen(units[i].name) == left && strncmp(end, units[i].name, left) == 0)
            return value * units[i].value;
    return -1;
}

static double link_rate(const char *text, size_t length) {
    static const struct unit units[] = {{"bit", 0.125},  {"Kbit", 125},      {"Mbit", 125e3},
                                        {"Gbit", 125e6}, {"Tbit", 125e9},    {"B", 1},
                                        {"KB", 1e3},     {"MB", 1e6},        {"GB", 1e9},
                                        {"KiB", 1024},   {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
    return with_unit(text, length, units, sizeof units / sizeof units[0]);
}

static double link_latency(const char *text, size_t length) {
    static const struct unit units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    return with_unit(text, length, units, sizeof units / sizeof units[0]);
}

/* [NAME,]RATE[,LATENCY], or NAME. */
static int take_link(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const char *word = value;
    size_t length = strcspn(word, ",");
    (void)row;
    o->link_latency_s = -1;
    for (const struct mx_link_ops *const *l = mx_links; *l != NULL; l++)
        if (strlen((*l)->name) == length && strncmp((*l)->name, word, length) == 0) o->link = (*l)->name;
    if (o->link != NULL && word[length] == 0) return 0;
    if (o->link != NULL) word += length + 1, length = strcspn(word, ",");
    o->link_bytes_per_s = link_rate(word, length);
    if (word[length] == ',') o->link_latency_s = link_latency(word + length + 1, strlen(word + length + 1));
    if (o->link_bytes_per_s > 0 && (word[length] == 0 || o->link_latency_s >= 0)) return 0;
    return mx_fail(
        why, -EINVAL,
        "--link '%.60s' is neither local nor mpi, nor what a link does: give [NAME,]RATE[,LATENCY], as "
        "10Gbit,20us or mpi,100Mbit",
        value);
}

static int take_coef(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const char *p = value;
    (void)row;
    for (int n = 0; n < 4; n++) {
        char *end;
        o->problem.coef[n] = strtod(p, &end);
        if (end == p || !isfinite(o->problem.coef[n]) || (*end != 0 && *end != ',')) break;
        p = end + (*end == ',');
        if (*end == 0) {
            for (n++; n < 4; n++) o->problem.coef[n] = 0;
            return 0;
        }
    }
    return mx_fail(why, -EINVAL,
                   "--coef '%s': give 1 to 4 numbers separated by commas: centre,face,edge,corner", value);
}

static int take_commit_every(const struct mx_option *row, const char *value, struct mx_options *o,
                             mx_why *why) {
    const double most = 30.0 * 24 * 3600;
    char *end;
    (void)row;
    o->commit_every = strtod(value, &end);
    if (end != value && *end == 0 && o->commit_every >= 0 && o->commit_every <= most) return 0;
    return mx_fail(why, -EINVAL, "--commit-every '%s' is no number of seconds from 0 to %.0f", value, most);
}

static int take_stencil(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const struct mx_stencil *s = mx_stencil_find(value);
    (void)row;
    if (s == NULL)
        return mx_fail(
            why, -EINVAL,
            "--stencil '%s' is not known; memext info lists the stencils (star7, edge19, box27, ...)", value);
    snprintf(o->problem.stencil, sizeof o->problem.stencil, "%s", s->name);
    return 0;
}

static int take_dtype(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    (void)row;
    if (strcmp(value, "f64") != 0 && strcmp(value, "f32") != 0)
        return mx_fail(why, -EINVAL, "--dtype '%s' is not known; it is f64 or f32", value);
    o->problem.dtype = strcmp(value, "f64") == 0 ? MX_F64 : MX_F32;
    return 0;
}

static int take_reserve(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    (void)row;
    if (strcmp(value, "paper") == 0) return o->reserve_paper = true, 0;
    if (strcmp(value, "auto") == 0) return o->reserve_auto = true, 0;
    if (mx_parse_size(value, &o->reserve_bytes) == 0) return 0;
    return mx_fail(why, -EINVAL, "--reserve '%s' is neither a size (like 512MiB) nor paper nor auto", value);
}

/* EVERY:DIR[:STRIDE]. What stands behind a second colon is STRIDE, and nothing else: else a word too many
 * would become the name of a directory. */
static int take_snapshot(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const int64_t most = INT64_C(1) << 40;
    char number[LONGEST_NUMBER];
    if (o->snapshot_directory != NULL)
        return mx_fail(why, -EINVAL,
                       "--%s is given twice, as '%.200s' and as '%.200s': leave one of them out", row->name,
                       o->snapshot_directory, value);
    const char *colon = strchr(value, ':'), *last = strrchr(value, ':');
    snprintf(number, sizeof number, "%.*s", colon != NULL ? (int)(colon - value) : 0, value);
    if (colon == NULL || parse_count(number, &o->snapshot_every) < 0 || o->snapshot_every < 1 ||
        o->snapshot_every > most)
        return mx_fail(why, -EINVAL,
                       "--%s '%.200s' does not begin with a number of steps from 1 on and a colon: %s",
                       row->name, value, row->argument);
    o->snapshot_stride = 1;
    if (last != colon && (parse_count(last + 1, &o->snapshot_stride) < 0 || o->snapshot_stride < 1 ||
                          o->snapshot_stride > most))
        return mx_fail(
            why, -EINVAL,
            "--%s '%.200s': behind the last colon stands of how many cells one is taken, a number from 1 "
            "on; where the directory has a colon in its name, give that as well: EVERY:DIR:1",
            row->name, value);
    o->snapshot_directory = colon + 1;
    o->snapshot_length = last != colon ? (size_t)(last - colon - 1) : strlen(colon + 1);
    if (o->snapshot_length > 0) return 0;
    return mx_fail(why, -EINVAL, "--%s '%.200s' names no directory: %s", row->name, value, row->argument);
}

static int take_output_frame(const struct mx_option *row, const char *value, struct mx_options *o,
                             mx_why *why) {
    (void)row;
    if (strcmp(value, "included") != 0 && strcmp(value, "none") != 0)
        return mx_fail(why, -EINVAL, "--output-frame '%s' is not known; it is included or none", value);
    return o->bare_output = strcmp(value, "none") == 0, 0;
}

static int take_nonfinite(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    (void)row;
    if (strcmp(value, "end") != 0 && strcmp(value, "ignore") != 0)
        return mx_fail(why, -EINVAL, "--nonfinite '%.60s' is not known; it is end or ignore", value);
    return o->nonfinite = value, 0;
}

static int take_advice(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    static const char *const advice[] = {"none", "sequential", "random", "willneed", "hugepage", "schedule"};
    (void)row;
    for (int i = 0; i < 6; i++)
        if (strcmp(value, advice[i]) == 0) return o->advice = (enum mx_advice)i, 0;
    return mx_fail(
        why, -EINVAL,
        "--advice '%s' is not known; it is none, sequential, random, willneed, hugepage or schedule", value);
}

/* ------------------------------------------------------------------ the table */

#define AT(field) offsetof(struct mx_options, field)
#define RUN (MX_CMD_RUN | MX_CMD_LIBRARY)
#define BOTH (RUN | MX_CMD_TUNE)
#define EVERY (MX_CMD_RUN | MX_CMD_TUNE | MX_CMD_INFO | MX_CMD_EXPORT)

const struct mx_option mx_option_rows[] = {
    {"size", 'n', BOTH, 3, take_counts, AT(problem.nx), 1, MX_MOST_EXTENT, "NX NY NZ",
     "interior cells of the grid (with --input: taken from the file)"},
    {"steps", 't', BOTH, 1, take_counts, AT(problem.nt), 0, MX_MOST_STEPS, "NT",
     "time steps; with --resume another number than before if the run is to end earlier or go on"},
    {"device", 'd', BOTH | MX_CMD_INFO, 1, take_text, AT(path), 0, 0, "PATH",
     "directory, file or block device that holds the Buffers"},
    {"backend", 0, BOTH | MX_CMD_EXPORT, 1, take_text, AT(backend), 0, 0, "B",
     "dram | swap | mmap | aio | uring (default: uring, else aio)"},
    {"algorithm", 0, BOTH, 1, take_text, AT(algorithm), 0, 0, "A",
     "direct | direct-skewed | direct-skewed-opt | redundant | skewed | skewed-y | skewed-min | stream | "
     "resident, or "
     "the papers' names"},
    {"tuner", 0, BOTH, 1, take_text, AT(tuner), 0, 0, "T",
     "blk | naive | manual (default: blk; manual when --block is given)"},
    {"block", 0, BOTH, 3, take_counts, AT(by), 1, MX_MOST_EXTENT, "BY BZ BT",
     "Block size in rows, planes and time steps (manual tuner)"},
    {"iblock", 0, BOTH, 2, take_counts, AT(iy), 1, MX_MOST_EXTENT, "IY IZ", "iBlock size in rows and planes"},
    {"engine", 0, BOTH, 1, take_text, AT(engine), 0, 0, "E",
     "iblock (the papers') | tiled (temporal blocking in cache); device with --accel"},
    {"slab", 0, BOTH, 1, take_count, AT(slab), 1, MX_MOST_SLAB, "PLANES",
     "planes that one step of a z-pipelined schedule moves on"},
    {"tile", 0, BOTH, 2, take_counts, AT(tile), 1, MX_MOST_EXTENT, "ROWS LEVELS",
     "tiled engine: rows of a tile, levels of a chunk"},
    {"column", 0, BOTH, 1, take_count, AT(column), 1, MX_MOST_COLUMN, "CELLS",
     "tiled engine: cells in x of a tile; nx or more = whole rows"},
    {"ahead", 0, BOTH, 1, take_count, AT(ahead), 1, MX_MOST_AHEAD, "SLABS",
     "slabs read ahead of the computation (default 2)"},
    {"stencil", 0, BOTH, 1, take_stencil, 0, 0, 0, "S",
     "star7 | edge19 | box27 | star13 ... star49 (default star7)"},
    {"coef", 0, BOTH, 1, take_coef, 0, 0, 0, "C,F,E,K",
     "weights: centre, face, edge, corner (defaults: see memext info)"},
    {"dtype", 0, BOTH, 1, take_dtype, 0, 0, 0, "T", "f64 | f32 (default f64)"},
    {"dram", 0, BOTH | MX_CMD_INFO, 1, take_size, AT(dram_bytes), 1 << 20, UINT64_MAX, "SIZE",
     "DRAM the run may see (default: the smaller of the machine's and the cgroup's limit)"},
    {"reserve", 0, BOTH, 1, take_reserve, 0, 0, 0, "SIZE|paper|auto",
     "DRAM left to the system (default: auto, 0 with --dram; paper: 1 GiB + 128 MiB per core)"},
    {"threads", 0, BOTH, 1, take_count, AT(threads), 1, MX_MOST_THREADS, "N",
     "compute threads (default: the cores of this process)"},
    {"ranks", 0, MX_CMD_RUN | MX_CMD_TUNE, 1, take_count, AT(ranks), 1, MX_RANKS_MOST, "P",
     "processes of this machine that share the planes, or how many of mpirun's there are (tune: to plan "
     "for)"},
    {"rank-weights", 0, MX_CMD_RUN | MX_CMD_TUNE, 1, take_text, AT(rank_weights), 0, 0, "W,W,...",
     "planes of each rank, in proportion (default: all alike)"},
    {"link", 0, MX_CMD_RUN | MX_CMD_TUNE, 1, take_link, 0, 0, 0, "[NAME][,RATE[,LATENCY]]",
     "how ranks reach one another: local | mpi (default: mpi where mpirun has started them, else local); "
     "what the link does, as 10Gbit,20us (default: measured)"},
    {"accel", 0, BOTH, 1, take_text, AT(accel), 0, 0, "NAME[,KEY=VALUE...]",
     "compute in the memory of an accelerator: host | opencl | cuda | auto (memext info lists them)"},
    {"device-memory", 0, BOTH, 1, take_size, AT(device_memory), 1 << 16, UINT64_MAX, "SIZE",
     "memory of the accelerator that may be used (default: all it has)"},
    {"plan", 0, RUN, 1, take_text, AT(plan), 0, 0, "LINE|FILE", "run this plan, as printed by memext tune"},
    {"advice", 0, RUN, 1, take_advice, 0, 0, 0, "A",
     "mmap and swap: none | sequential | random | willneed | hugepage | schedule (default none)"},
    {"kernel", 0, BOTH, 1, take_text, AT(kernel), 0, 0, "FILE.c|FILE.so",
     "compute with this kernel (memext/cell.h) instead of a built-in stencil"},
    {"param", 0, BOTH, 1, take_words, AT(params), 0, 0, "NAME=VALUE",
     "value of a parameter of the kernel; may be repeated"},
    {"field", 0, BOTH, 1, take_words, AT(fields), 0, 0, "NAME=FILE",
     "field that the kernel only reads: a .npy file, or raw cells: "
     "NAME=FILE,TYPE[,offset=BYTES][,frame=yes|no]; "
     "repeated"},
    {"field-copy", 0, BOTH, 0, take_flag, AT(field_copy), 0, 0, NULL,
     "copy files of --field into the store instead of reading them where they are"},
    {"in-place", 0, BOTH, 0, take_flag, AT(in_place), 0, 0, NULL,
     "kernels that read the old value: one pair of Buffers instead of two; such a run cannot be resumed"},
    {"side", 0, BOTH, 1, take_words, AT(sides), 0, 0, "x=KIND[,KIND]",
     "what the frame is on both sides, or on each, in x, y or z: fixed | mirror | periodic (default fixed)"},
    {"source", 0, RUN, 1, take_words, AT(point_sources), 0, 0, "FIELD@X,Y,Z=FILE.npy",
     "add the file's numbers, one a step, to this cell after its update (field u without a kernel); "
     "repeated"},
    {"sources", 0, RUN, 1, take_text, AT(sources), 0, 0, "FILE", "a file of such sources, one a line"},
    {"probes", 0, RUN, 1, take_text, AT(probes), 0, 0, "FILE",
     "record cells after every step: a file with FIELD X Y Z in each line"},
    {"probes-out", 0, RUN, 1, take_text, AT(probes_out), 0, 0, "TRACES.npy",
     "where to: a row a step, a column for each probe, f64; grows while the run goes on"},
    {"check", 0, BOTH, 1, take_count, AT(check), 1, MX_MOST_STEPS, "EVERY",
     "norms of the change, and a kernel's own (MX_REDUCE), every so many steps and after the last"},
    {"until", 0, RUN, 1, take_words, AT(untils), 0, 0, "NAME=VALUE[,above][,floor=F]",
     "end at the first check where max-change, rms-change, or a NAME or NAME-spread of the kernel is at most "
     "VALUE (,above: at least); a spread is relative to the mean of the planes, or to the floor F where that "
     "is greater (--check 100 if not given). Repeat it: the first criterion met ends the run; none drops "
     "those "
     "of the store"},
    {"nonfinite", 0, BOTH, 1, take_nonfinite, 0, 0, 0, "end|ignore",
     "end: a state with cells that are NaN or infinite is not committed and ends the run with status 6; "
     "ignore: they are there on purpose, and only counted (default end; with --resume as before)"},
    {"snapshot", 0, BOTH, 1, take_snapshot, 0, 0, 0, "EVERY:DIR[:STRIDE]",
     "every EVERY steps the state (every STRIDE-th cell in x, y and z) as .npy files in a directory, written "
     "while the run goes on"},
    {"snapshot-fields", 0, BOTH, 1, take_text, AT(snapshot_fields), 0, 0, "NAME,...",
     "fields of --snapshot (default: all of the state)"},
    {"frame", 0, BOTH, 1, take_words, AT(frames), 0, 0, "[FIELD=]KIND",
     "files of --input come without a frame (--field: may), and it is made: edge | mirror | periodic | a "
     "number; included: they have it (default); repeated"},
    {"init", 0, BOTH, 1, take_init, AT(init), 0, 0, "[FIELD=]NAME",
     "initial grid: random | gauss | linear | corner | zero (default random); with a kernel per field"},
    {"input", 0, BOTH, 1, take_input, AT(input), 0, 0, "[FIELD=]GRID.npy",
     "initial grid, frame included unless --frame says otherwise; -n follows from it; with a kernel per "
     "field; or raw cells: FILE,TYPE[,offset=BYTES]"},
    {"output", 'o', BOTH | MX_CMD_EXPORT, 1, take_output, AT(output), 0, 0, "[FIELD=]GRID.npy",
     "write the result, frame included; with a kernel per field"},
    {"output-frame", 0, BOTH | MX_CMD_EXPORT, 1, take_output_frame, 0, 0, 0, "included|none",
     "whether files of --output have the frame (default: included)"},
    {"overwrite", 0, BOTH | MX_CMD_EXPORT, 0, take_flag, AT(overwrite), 0, 0, NULL,
     "replace the file of --output if it is there"},
    {"commit-every", 0, BOTH, 1, take_commit_every, 0, 0, 0, "SECONDS",
     "time between commits, with a third Buffer; 0: after every sweep, with two (default: by the length of a "
     "sweep and the space; of ranks 0)"},
    {"integrity", 0, BOTH, 0, take_flag, AT(integrity), 0, 0, NULL,
     "keep hashes of what is stored and check whatever is loaded"},
    {"verify", 0, BOTH, 0, take_flag, AT(verify), 0, 0, NULL, "recompute plainly and compare bit by bit"},
    {"resume", 0, RUN, 0, take_flag, AT(resume), 0, 0, NULL,
     "continue an interrupted run from its last committed sweep"},
    {"same", 0, MX_CMD_LIBRARY, 0, take_flag, AT(same), 0, 0, NULL,
     "with resume: the options say all of the problem, and what is not given has its default"},
    {"keep", 0, BOTH, 0, take_flag, AT(keep), 0, 0, NULL, "leave the store in the directory after the run"},
    {"force", 0, RUN, 0, take_flag, AT(force), 0, 0, NULL,
     "overwrite what is in the place: another run's store, a foreign file, a device with a known signature"},
    {"no-lock", 0, BOTH | MX_CMD_EXPORT, 0, take_flag, AT(no_lock), 0, 0, NULL,
     "go on where the file system has no locks; nobody else may use the place"},
    {"dry-run", 0, RUN, 0, take_flag, AT(dry_run), 0, 0, NULL, "print plan and predictions, touch nothing"},
    {"queue-depth", 0, RUN, 1, take_count, AT(queue_depth), 1, 4096, "N", "requests in flight (default 32)"},
    {"request-size", 0, RUN, 1, take_size, AT(request_bytes), 512, 1u << 30, "SIZE",
     "longest single request (default 1 MiB)"},
    {"workers", 0, RUN, 1, take_count, AT(workers), 1, 64, "N", "mapped backends: copying threads"},
    {"sqpoll", 0, RUN, 0, take_flag, AT(sqpoll), 0, 0, NULL, "uring: kernel thread submits"},
    {"iopoll", 0, RUN, 0, take_flag, AT(iopoll), 0, 0, NULL, "uring: poll for completions"},
    {"uncached", 0, RUN, 0, take_flag, AT(uncached), 0, 0, NULL, "uring: buffered I/O with RWF_DONTCACHE"},
    {"no-register", 0, RUN, 0, take_flag, AT(no_register), 0, 0, NULL,
     "uring: no registered memory and files"},
    {"no-fuse", 0, BOTH, 0, take_flag, AT(no_fuse), 0, 0, NULL,
     "write the initial grid before the first sweep, and read the result after the last, in passes of their "
     "own"},
    {"lock", 0, RUN, 0, take_flag, AT(lock), 0, 0, NULL, "mlock the Blocks (swap always does)"},
    {"fault", 0, RUN, 1, take_text, AT(fault), 0, 0, "SPEC",
     "tests: call=N (system call N fails); with --backend fault:NAME e.g. seed=7,eio=0.01,short=0.1"},
    {"timeline", 0, RUN, 1, take_text, AT(timeline), 0, 0, "FILE",
     "samples of the run every 100 ms as JSON lines"},
    {"trace", 0, RUN, 1, take_text, AT(trace), 0, 0, "FILE",
     "block I/O and compute as a Chrome/Perfetto trace"},
    {"cores", 0, MX_CMD_TUNE, 1, take_count, AT(cores), 1, 65536, "N", "offline: cores"},
    {"sockets", 0, MX_CMD_TUNE, 1, take_count, AT(sockets), 1, 1024, "N", "offline: sockets"},
    {"l2", 0, MX_CMD_TUNE, 1, take_size, AT(l2_bytes), 1024, UINT64_MAX, "SIZE",
     "offline: L2 cache of a core"},
    {"l3", 0, MX_CMD_TUNE, 1, take_size, AT(l3_bytes), 1024, UINT64_MAX, "SIZE",
     "offline: L3 cache of a socket"},
    {"topology", 0, MX_CMD_TUNE, 1, take_text, AT(topology), 0, 0, "XML",
     "offline: machine of an hwloc XML file"},
    {"align", 0, MX_CMD_TUNE, 1, take_size, AT(align_bytes), 1, 1 << 20, "SIZE",
     "offline: alignment of rows on the device (default: element)"},
    {"capacity", 0, MX_CMD_TUNE, 1, take_size, AT(capacity_bytes), 1, UINT64_MAX, "SIZE",
     "offline: size of the device"},
    {"read-bw", 0, BOTH, 1, take_real, AT(read_bw), 0, 0, "BYTES/S", "device read bandwidth to plan with"},
    {"write-bw", 0, BOTH, 1, take_real, AT(write_bw), 0, 0, "BYTES/S", "device write bandwidth to plan with"},
    {"mixed-bw", 0, BOTH, 1, take_real, AT(mixed_bw), 0, 0, "BYTES/S",
     "device bandwidth of reads and writes together, the sum of both, to plan with (default, where one of "
     "the others is given: they take turns)"},
    {"rate", 0, BOTH, 1, take_real, AT(rate), 0, 0, "UPDATES/S", "update rate to plan with"},
    {"exhaustive", 0, MX_CMD_TUNE, 0, take_flag, AT(exhaustive), 0, 0, NULL,
     "search every parameter combination"},
    {"calibrate", 0, BOTH, 0, take_flag, AT(calibrate), 0, 0, NULL,
     "measure bandwidth and update rate again"},
    {"calibrate-seconds", 0, MX_CMD_TUNE, 1, take_real, AT(calibrate_s), 0, 0, "SECONDS",
     "--calibrate in about so long, with the sizes of the tiled engine that are known"},
    {"explain", 0, MX_CMD_RUN | MX_CMD_TUNE, 0, take_flag, AT(explain), 0, 0, NULL,
     "say before the run what was tried and why the plan won"},
    {"json", 0, EVERY, 1, take_text, AT(json), 0, 0, "FILE|-", "write the report as one JSON object"},
    {"quiet", 'q', EVERY, 0, take_flag, AT(quiet), 0, 0, NULL, "no progress, no summary"},
    {"help", 'h', EVERY, 0, take_help, 0, 0, 0, NULL, "this text"},
    {.name = NULL},
};
enum { N_ROWS = sizeof mx_option_rows / sizeof mx_option_rows[0] - 1 };
_Static_assert(N_ROWS <= MX_OPTIONS_MOST, "one bit for each option in mx_options.given");

const struct mx_option *mx_option_find(enum mx_command command, const char *name) {
    for (const struct mx_option *row = mx_option_rows; row->name != NULL; row++)
        if ((row->commands & command) && strcmp(row->name, name) == 0) return row;
    return NULL;
}

int mx_option_take(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const size_t i = (size_t)(row - mx_option_rows);
    if (row->words > 0 && value == NULL)
        return mx_fail(why, -EINVAL, "option '%s' needs a value: %s=%s", row->name, row->name, row->argument);
    if (row->words == 0 && value != NULL)
        return mx_fail(why, -EINVAL, "option '%s' takes no value", row->name);
    int err = row->take(row, value, o, why);
    if (err == 0) o->given[i / 64] |= UINT64_C(1) << (i % 64);
    return err;
}

bool mx_option_given(const struct mx_options *o, const char *name) {
    for (int i = 0; i < N_ROWS; i++)
        if (strcmp(mx_option_rows[i].name, name) == 0) return o->given[i / 64] >> (i % 64) & 1;
    return false;
}

/* ------------------------------------------------------------------ what they say together */

/* Options that exclude each other, and what the second of them would contradict. */
static const struct {
    const char *option, *others, *why;
} exclusive[] = {
    {"dry-run", "resume calibrate", "a dry run touches nothing"},
    {"force", "resume", "--force starts anew and --resume goes on"},
    {"field-copy", "resume", "fields stay where the run has them since it began"},
    {"init", "input", "the initial grid is the one or the other"},
    {"kernel", "stencil coef dtype", "the kernel says what is computed and with which types"},
};

static int check_exclusive(const struct mx_options *o, mx_why *why) {
    for (size_t i = 0; i < sizeof exclusive / sizeof exclusive[0]; i++) {
        char words[128], *rest;
        if (!mx_option_given(o, exclusive[i].option)) continue;
        if (o->kernel != NULL && strcmp(exclusive[i].option, "init") == 0) continue; /* of different fields */
        snprintf(words, sizeof words, "%s", exclusive[i].others);
        for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
            if (mx_option_given(o, word))
                return mx_fail(why, -EINVAL, "--%s and --%s exclude each other: %s; choose one",
                               exclusive[i].option, word, exclusive[i].why);
    }
    return 0;
}

/* Of which field a word is: "" where it names none. */
static void field_of_word(const char *word, char name[MX_FIELD_NAME + 4]) {
    name[0] = 0;
    mx_field_word(word, name);
}

/* Nobody knows which of two is meant. Without a kernel there is one field, whatever a '=' in a file's name
 * says. */
static int check_repeated(const struct mx_options *o, mx_why *why) {
    const struct {
        const char *option;
        const struct mx_words *words;
    } lists[] = {{"input", &o->inputs},
                 {"init", &o->inits},
                 {"output", &o->outputs},
                 {"field", &o->fields},
                 {"frame", &o->frames}};
    const bool one_field = o->kernel == NULL && !o->resume && o->place == NULL;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (int32_t k = 1; k < lists[i].words->n; k++)
            for (int32_t j = 0; j < k; j++) {
                char a[MX_FIELD_NAME + 4], b[MX_FIELD_NAME + 4];
                field_of_word(lists[i].words->word[j], a);
                field_of_word(lists[i].words->word[k], b);
                if (!one_field && strcmp(a, b) != 0) continue;
                return mx_fail(why, -EINVAL,
                               "--%s is given twice%s%s, as '%.100s' and as '%.100s': leave one of them out",
                               lists[i].option, one_field || a[0] == 0 ? "" : " for ", one_field ? "" : a,
                               lists[i].words->word[j], lists[i].words->word[k]);
            }
    return 0;
}

static int complete_export(const struct mx_options *o, mx_why *why) {
    if (o->place == NULL)
        return mx_fail(why, -EINVAL, "export which store? Give its directory, file or block device");
    if (o->output == NULL) return mx_fail(why, -EINVAL, "export to which file? Give it with -o GRID.npy");
    return 0;
}

/* What is computed, what the grid is: of a kernel that is known when it has been opened. */
static int complete_system(struct mx_options *o, mx_why *why) {
    static const char *const of_kernels[] = {"param", "field", "field-copy", "in-place"};
    for (size_t i = 0; i < sizeof of_kernels / sizeof *of_kernels; i++)
        if (o->kernel == NULL && !o->resume && mx_option_given(o, of_kernels[i]))
            return mx_fail(why, -EINVAL, "--%s is for kernels: give one with --kernel FILE.c", of_kernels[i]);
    o->problem.due[0] = o->check; /* of a run once more, when its store is known */
    if (o->kernel == NULL) return 0;
    o->input = o->init = o->output = NULL;
    return 0;
}

int mx_options_complete(enum mx_command command, struct mx_options *o, mx_why *why) {
    int err = check_exclusive(o, why);
    if (err == 0) err = check_repeated(o, why);
    if (err < 0 || command == MX_CMD_INFO) return err;
    if (command == MX_CMD_EXPORT) return complete_export(o, why);
    if (o->frames.n > 0 && o->inputs.n + o->fields.n == 0 && !o->source && !o->resume)
        return mx_fail(
            why, -EINVAL,
            "--frame is about files that have none, and there is no file: give one with --input, or "
            "leave --frame out");
    if (command != MX_CMD_LIBRARY && mx_option_given(o, "output-frame") && o->outputs.n == 0)
        return mx_fail(why, -EINVAL, "--output-frame is for --output FILE: give one, or leave it out");
    if ((err = complete_system(o, why)) < 0) return err;
    if (o->problem.stencil[0] == 0 && o->kernel == NULL) strcpy(o->problem.stencil, "star7");
    if (o->kernel == NULL) {
        const struct mx_stencil *s = mx_stencil_find(o->problem.stencil);
        o->problem.h = s->h;
        if (!mx_option_given(o, "coef")) memcpy(o->problem.coef, s->coef, sizeof o->problem.coef);
    }
    if (!mx_option_given(o, "size") && o->inputs.n == 0 && !o->source && !o->resume)
        return mx_fail(why, -EINVAL,
                       "no grid: give its size with -n NX NY NZ or a file with --input GRID.npy");
    if ((o->probes != NULL) != (o->probes_out != NULL))
        return mx_fail(
            why, -EINVAL, "--%s needs --%s: a file that names the probes, and one for their traces",
            o->probes != NULL ? "probes" : "probes-out", o->probes != NULL ? "probes-out" : "probes");
    if (o->snapshot_fields != NULL && o->snapshot_every == 0)
        return mx_fail(why, -EINVAL,
                       "--snapshot-fields is for --snapshot EVERY:DIR: give it, or leave this out");
    if (o->same && !o->resume)
        return mx_fail(why, -EINVAL,
                       "--same compares the problem with the store's that --resume goes on with: give both");
    if (!mx_option_given(o, "steps") && !o->resume)
        return mx_fail(why, -EINVAL, "no time steps: give them with -t NT");
    const bool of_store =
        o->resume && o->init != NULL && strchr(o->init, '=') != NULL; /* which may have a kernel */
    if (o->init != NULL && !of_store && mx_init_find(o->init) == NULL)
        return mx_fail(why, -EINVAL, "--init '%s' is not known; it is random, gauss, linear, corner or zero",
                       o->init);
    if (o->calibrate_s > MOST_CALIBRATE_S)
        return mx_fail(why, -EINVAL,
                       "--calibrate-seconds %g is too long: %d at most, of which the rates get no better",
                       o->calibrate_s, MOST_CALIBRATE_S);
    o->calibrate |= o->calibrate_s > 0;
    if (o->device_memory > 0 && o->accel == NULL)
        return mx_fail(why, -EINVAL, "--device-memory is that of an accelerator: give one with --accel");
    if (o->engine != NULL && strcmp(o->engine, "iblock") != 0 && strcmp(o->engine, "tiled") != 0 &&
        !(o->accel != NULL && strcmp(o->engine, "device") == 0))
        return mx_fail(why, -EINVAL,
                       "--engine '%s' is not known; it is iblock or tiled, or with --accel device",
                       o->engine);
    return 0;
}
