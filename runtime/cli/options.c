#include "cli/options.h"
#include "grid/grid.h"
#include "stencil/stencil.h"

#include <memext/backend.h>

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { FLAG, TEXT, SIZE, COUNT, REAL, SPECIAL };

/* One row an option: where its value goes, what help says. */
struct option_row {
    const char *name;
    int letter; /* short form or 0 */
    unsigned commands;
    enum kind kind;
    size_t offset; /* in struct mx_options */
    uint64_t low, high;
    const char *argument, *help;
};

#define AT(field) offsetof(struct mx_options, field)
#define BOTH (MX_CMD_RUN | MX_CMD_TUNE)
#define EVERY (BOTH | MX_CMD_INFO | MX_CMD_EXPORT)

static const struct option_row rows[] = {
    {"size", 'n', BOTH, SPECIAL, 0, 0, 0, "NX NY NZ",
     "interior cells of the grid (with --input: taken from the file)"},
    {"steps", 't', BOTH, SPECIAL, 0, 0, 0, "NT", "time steps"},
    {"device", 'd', BOTH | MX_CMD_INFO, TEXT, AT(path), 0, 0, "PATH",
     "directory, file or block device that holds the Buffers"},
    {"backend", 0, BOTH | MX_CMD_EXPORT, TEXT, AT(backend), 0, 0, "B",
     "dram | swap | mmap | aio | uring (default: uring, else aio)"},
    {"algorithm", 0, BOTH, TEXT, AT(algorithm), 0, 0, "A",
     "direct | direct-skewed | direct-skewed-opt | redundant | skewed | skewed-y | skewed-min | stream, or "
     "the papers' names"},
    {"tuner", 0, BOTH, TEXT, AT(tuner), 0, 0, "T",
     "blk | naive | manual (default: blk; manual when --block is given)"},
    {"block", 0, BOTH, SPECIAL, 0, 0, 0, "BY BZ BT",
     "Block size in rows, planes and time steps (manual tuner)"},
    {"iblock", 0, BOTH, SPECIAL, 0, 0, 0, "IY IZ", "iBlock size in rows and planes"},
    {"engine", 0, BOTH, TEXT, AT(engine), 0, 0, "E",
     "iblock (the papers') | tiled (temporal blocking in cache)"},
    {"slab", 0, BOTH, COUNT, AT(slab), 1, 1 << 20, "PLANES",
     "planes that one step of a z-pipelined schedule moves on"},
    {"tile", 0, BOTH, SPECIAL, 0, 0, 0, "ROWS LEVELS", "tiled engine: rows of a tile, levels of a chunk"},
    {"column", 0, BOTH, COUNT, AT(column), 1, INT32_MAX, "CELLS",
     "tiled engine: cells in x of a tile; nx or more = whole rows"},
    {"ahead", 0, BOTH, COUNT, AT(ahead), 1, 4096, "SLABS", "slabs read ahead of the computation (default 2)"},
    {"stencil", 0, BOTH, SPECIAL, 0, 0, 0, "S", "star7 | edge19 | box27 | star13 ... star49 (default star7)"},
    {"coef", 0, BOTH, SPECIAL, 0, 0, 0, "C,F,E,K",
     "weights: centre, face, edge, corner (defaults: see memext info)"},
    {"dtype", 0, BOTH, SPECIAL, 0, 0, 0, "T", "f64 | f32 (default f64)"},
    {"dram", 0, BOTH | MX_CMD_INFO, SIZE, AT(dram_bytes), 1 << 20, UINT64_MAX, "SIZE",
     "DRAM the run may see (default: the smaller of the machine's and the cgroup's limit)"},
    {"reserve", 0, BOTH, SPECIAL, 0, 0, 0, "SIZE|paper|auto",
     "DRAM left to the system (default: auto, 0 with --dram; paper: 1 GiB + 128 MiB per core)"},
    {"threads", 0, BOTH, COUNT, AT(threads), 1, 1024, "N",
     "compute threads (default: the cores of this process)"},
    {"plan", 0, MX_CMD_RUN, TEXT, AT(plan), 0, 0, "LINE|FILE", "run this plan, as printed by memext tune"},
    {"advice", 0, MX_CMD_RUN, SPECIAL, 0, 0, 0, "A",
     "mmap and swap: none | sequential | random | willneed | hugepage | schedule (default none)"},
    {"init", 0, MX_CMD_RUN, TEXT, AT(init), 0, 0, "NAME",
     "initial grid: random | gauss | linear | corner | zero (default random)"},
    {"input", 0, BOTH, TEXT, AT(input), 0, 0, "GRID.npy", "initial grid, frame included; -n follows from it"},
    {"output", 'o', MX_CMD_RUN | MX_CMD_EXPORT, TEXT, AT(output), 0, 0, "GRID.npy",
     "write the result, frame included"},
    {"overwrite", 0, MX_CMD_RUN | MX_CMD_EXPORT, FLAG, AT(overwrite), 0, 0, NULL,
     "replace the file of --output if it is there"},
    {"commit-every", 0, MX_CMD_RUN, SPECIAL, 0, 0, 0, "SECONDS",
     "time between commits, with a third Buffer; 0: after every sweep, with two (default: by the length of a "
     "sweep "
     "and the space)"},
    {"integrity", 0, MX_CMD_RUN, FLAG, AT(integrity), 0, 0, NULL,
     "keep hashes of what is stored and check whatever is loaded"},
    {"verify", 0, MX_CMD_RUN, FLAG, AT(verify), 0, 0, NULL, "recompute plainly and compare bit by bit"},
    {"resume", 0, MX_CMD_RUN, FLAG, AT(resume), 0, 0, NULL,
     "continue an interrupted run from its last committed sweep"},
    {"keep", 0, MX_CMD_RUN, FLAG, AT(keep), 0, 0, NULL, "leave the store in the directory after the run"},
    {"force", 0, MX_CMD_RUN, FLAG, AT(force), 0, 0, NULL,
     "overwrite what is in the place: another run's store, a foreign file, a device with a known signature"},
    {"dry-run", 0, MX_CMD_RUN, FLAG, AT(dry_run), 0, 0, NULL, "print plan and predictions, touch nothing"},
    {"queue-depth", 0, MX_CMD_RUN, COUNT, AT(queue_depth), 1, 4096, "N", "requests in flight (default 32)"},
    {"request-size", 0, MX_CMD_RUN, SIZE, AT(request_bytes), 512, 1u << 30, "SIZE",
     "longest single request (default 1 MiB)"},
    {"workers", 0, MX_CMD_RUN, COUNT, AT(workers), 1, 64, "N", "mapped backends: copying threads"},
    {"sqpoll", 0, MX_CMD_RUN, FLAG, AT(sqpoll), 0, 0, NULL, "uring: kernel thread submits"},
    {"iopoll", 0, MX_CMD_RUN, FLAG, AT(iopoll), 0, 0, NULL, "uring: poll for completions"},
    {"uncached", 0, MX_CMD_RUN, FLAG, AT(uncached), 0, 0, NULL, "uring: buffered I/O with RWF_DONTCACHE"},
    {"no-register", 0, MX_CMD_RUN, FLAG, AT(no_register), 0, 0, NULL,
     "uring: no registered memory and files"},
    {"lock", 0, MX_CMD_RUN, FLAG, AT(lock), 0, 0, NULL, "mlock the Blocks (swap always does)"},
    {"fault", 0, MX_CMD_RUN, TEXT, AT(fault), 0, 0, "SPEC",
     "tests: call=N (system call N fails); with --backend fault:NAME e.g. seed=7,eio=0.01,short=0.1"},
    {"timeline", 0, MX_CMD_RUN, TEXT, AT(timeline), 0, 0, "FILE",
     "samples of the run every 100 ms as JSON lines"},
    {"trace", 0, MX_CMD_RUN, TEXT, AT(trace), 0, 0, "FILE",
     "block I/O and compute as a Chrome/Perfetto trace"},
    {"cores", 0, MX_CMD_TUNE, COUNT, AT(cores), 1, 65536, "N", "offline: cores"},
    {"sockets", 0, MX_CMD_TUNE, COUNT, AT(sockets), 1, 1024, "N", "offline: sockets"},
    {"l2", 0, MX_CMD_TUNE, SIZE, AT(l2_bytes), 1024, UINT64_MAX, "SIZE", "offline: L2 cache of a core"},
    {"l3", 0, MX_CMD_TUNE, SIZE, AT(l3_bytes), 1024, UINT64_MAX, "SIZE", "offline: L3 cache of a socket"},
    {"topology", 0, MX_CMD_TUNE, TEXT, AT(topology), 0, 0, "XML", "offline: machine of an hwloc XML file"},
    {"align", 0, MX_CMD_TUNE, SIZE, AT(align_bytes), 1, 1 << 20, "SIZE",
     "offline: alignment of rows on the device (default: element)"},
    {"capacity", 0, MX_CMD_TUNE, SIZE, AT(capacity_bytes), 1, UINT64_MAX, "SIZE",
     "offline: size of the device"},
    {"read-bw", 0, BOTH, REAL, AT(read_bw), 0, 0, "BYTES/S", "device read bandwidth to plan with"},
    {"write-bw", 0, BOTH, REAL, AT(write_bw), 0, 0, "BYTES/S", "device write bandwidth to plan with"},
    {"rate", 0, BOTH, REAL, AT(rate), 0, 0, "UPDATES/S", "update rate to plan with"},
    {"exhaustive", 0, MX_CMD_TUNE, FLAG, AT(exhaustive), 0, 0, NULL, "search every parameter combination"},
    {"calibrate", 0, BOTH, FLAG, AT(calibrate), 0, 0, NULL, "measure bandwidth and update rate again"},
    {"explain", 0, BOTH, FLAG, AT(explain), 0, 0, NULL,
     "say before the run what was tried and why the plan won"},
    {"json", 0, EVERY, TEXT, AT(json), 0, 0, "FILE|-", "write the report as one JSON object"},
    {"quiet", 'q', EVERY, FLAG, AT(quiet), 0, 0, NULL, "no progress, no summary"},
    {"help", 'h', EVERY, SPECIAL, 0, 0, 0, NULL, "this text"},
};
enum { N_ROWS = sizeof rows / sizeof rows[0], CODE = 256 };
_Static_assert(N_ROWS <= 128, "one bit for each option in mx_options.given");

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

int mx_exit_status(int err, bool moving) {
    switch (err) {
    case 0:
        return MX_EXIT_OK;
    case -EIO:
    case -EREMOTEIO:
    case -ENODATA:
    case -EBADMSG:
        return MX_EXIT_IO;
    case -EINTR:
    case -ECANCELED:
        return MX_EXIT_INTERRUPTED;
    case -EINVAL:
    case -ENOMEM:
    case -ENOTSUP:
        return MX_EXIT_REFUSED;
    default:
        return moving ? MX_EXIT_IO : MX_EXIT_REFUSED;
    }
}

static int parse_count(const char *text, int64_t *out) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != 0 || errno != 0) return -EINVAL;
    *out = value;
    return 0;
}

/* Takes n whole numbers: optarg and the words that follow it. */
static int take_counts(int argc, char **argv, const char *option, int n, int64_t low, int64_t *out,
                       mx_why *why) {
    const char *word = optarg;
    for (int i = 0; i < n; i++) {
        if (i > 0) word = optind < argc ? argv[optind++] : NULL;
        if (word == NULL) return mx_fail(why, -EINVAL, "--%s takes %d numbers, %d given", option, n, i);
        if (parse_count(word, &out[i]) < 0)
            return mx_fail(why, -EINVAL, "--%s: '%s' is no whole number (%d numbers are needed)", option,
                           word, n);
        if (out[i] < low)
            return mx_fail(why, -EINVAL, "--%s: %lld is below the smallest value allowed, %lld", option,
                           (long long)out[i], (long long)low);
    }
    return 0;
}

static int take_n(struct mx_options *o, int argc, char **argv, mx_why *why) {
    int64_t v[3];
    int err = take_counts(argc, argv, "size (-n)", 3, 1, v, why);
    if (err < 0) return err;
    o->problem.nx = v[0], o->problem.ny = v[1], o->problem.nz = v[2];
    o->have_n = true;
    return 0;
}

static int take_coef(struct mx_options *o, mx_why *why) {
    const char *p = optarg;
    int n = 0;
    for (; n < 4; n++) {
        char *end;
        o->problem.coef[n] = strtod(p, &end);
        if (end == p || !isfinite(o->problem.coef[n]) || (*end != 0 && *end != ',')) break;
        p = end + (*end == ',');
        if (*end == 0) {
            o->have_coef = true;
            for (n++; n < 4; n++) o->problem.coef[n] = 0;
            return 0;
        }
    }
    return mx_fail(why, -EINVAL,
                   "--coef '%s': give 1 to 4 numbers separated by commas: centre,face,edge,corner", optarg);
}

static int take_commit_every(struct mx_options *o, mx_why *why) {
    const double most = 30.0 * 24 * 3600;
    char *end;
    o->commit_every = strtod(optarg, &end);
    o->have_commit_every = true;
    if (end != optarg && *end == 0 && o->commit_every >= 0 && o->commit_every <= most) return 0;
    return mx_fail(why, -EINVAL, "--commit-every '%s' is no number of seconds from 0 to %.0f", optarg, most);
}

static int take_special(struct mx_options *o, const struct option_row *row, int argc, char **argv,
                        mx_why *why) {
    int64_t v[3];
    int err = 0;
    static const char *const advice[] = {"none", "sequential", "random", "willneed", "hugepage", "schedule"};
    if (strcmp(row->name, "help") == 0) return 1;
    if (strcmp(row->name, "size") == 0) return take_n(o, argc, argv, why);
    if (strcmp(row->name, "coef") == 0) return take_coef(o, why);
    if (strcmp(row->name, "steps") == 0) {
        o->have_t = true;
        return take_counts(argc, argv, "steps (-t)", 1, 0, &o->problem.nt, why);
    }
    if (strcmp(row->name, "block") == 0) {
        if ((err = take_counts(argc, argv, "block", 3, 1, v, why)) < 0) return err;
        o->by = v[0], o->bz = v[1], o->bt = v[2];
        return 0;
    }
    if (strcmp(row->name, "iblock") == 0) {
        if ((err = take_counts(argc, argv, "iblock", 2, 1, v, why)) < 0) return err;
        o->iy = v[0], o->iz = v[1];
        return 0;
    }
    if (strcmp(row->name, "tile") == 0) {
        if ((err = take_counts(argc, argv, "tile", 2, 1, v, why)) < 0) return err;
        o->tile = v[0], o->ct = v[1];
        return 0;
    }
    if (strcmp(row->name, "stencil") == 0) {
        const struct mx_stencil *s = mx_stencil_find(optarg);
        if (s == NULL)
            return mx_fail(
                why, -EINVAL,
                "--stencil '%s' is not known; memext info lists the stencils (star7, edge19, box27, ...)",
                optarg);
        snprintf(o->problem.stencil, sizeof o->problem.stencil, "%s", s->name);
        return 0;
    }
    if (strcmp(row->name, "dtype") == 0) {
        if (strcmp(optarg, "f64") != 0 && strcmp(optarg, "f32") != 0)
            return mx_fail(why, -EINVAL, "--dtype '%s' is not known; it is f64 or f32", optarg);
        o->problem.dtype = strcmp(optarg, "f64") == 0 ? MX_F64 : MX_F32;
        o->have_dtype = true;
        return 0;
    }
    if (strcmp(row->name, "reserve") == 0) {
        o->have_reserve = true;
        if (strcmp(optarg, "paper") == 0) return o->reserve_paper = true, 0;
        if (strcmp(optarg, "auto") == 0) return o->reserve_auto = true, 0;
        if (mx_parse_size(optarg, &o->reserve_bytes) < 0)
            return mx_fail(why, -EINVAL, "--reserve '%s' is neither a size (like 512MiB) nor paper nor auto",
                           optarg);
        return 0;
    }
    if (strcmp(row->name, "commit-every") == 0) return take_commit_every(o, why);
    for (int i = 0; i < 6; i++)
        if (strcmp(optarg, advice[i]) == 0) return o->advice = (enum mx_advice)i, 0;
    return mx_fail(
        why, -EINVAL,
        "--advice '%s' is not known; it is none, sequential, random, willneed, hugepage or schedule", optarg);
}

static int take(struct mx_options *o, const struct option_row *row, int argc, char **argv, mx_why *why) {
    char *field = (char *)o + row->offset, *end;
    int64_t count;
    uint64_t size;
    char low[32], high[32];
    switch (row->kind) {
    case FLAG:
        *(bool *)field = true;
        return 0;
    case TEXT:
        *(const char **)field = optarg;
        return 0;
    case REAL:
        *(double *)field = strtod(optarg, &end);
        if (end == optarg || *end != 0 || !(*(double *)field > 0) || !isfinite(*(double *)field))
            return mx_fail(why, -EINVAL, "--%s '%s' is no positive number", row->name, optarg);
        return 0;
    case COUNT:
        if (parse_count(optarg, &count) < 0 || count < (int64_t)row->low || count > (int64_t)row->high)
            return mx_fail(why, -EINVAL, "--%s '%s' is no whole number from %llu to %llu", row->name, optarg,
                           (unsigned long long)row->low, (unsigned long long)row->high);
        *(int64_t *)field = count;
        return 0;
    case SIZE:
        if (mx_parse_size(optarg, &size) < 0)
            return mx_fail(why, -EINVAL,
                           "--%s '%s' is no size; give bytes or a number with KiB, MiB, GiB or TiB",
                           row->name, optarg);
        if (size < row->low || size > row->high)
            return mx_fail(why, -EINVAL, "--%s %s is outside %s .. %s", row->name, optarg,
                           mx_format_size(row->low, low, sizeof low),
                           mx_format_size(row->high, high, sizeof high));
        *(uint64_t *)field = size;
        return 0;
    case SPECIAL:
        break;
    }
    return take_special(o, row, argc, argv, why);
}

/* What the problem still lacks once all options are read. */
/* Options that exclude each other, and what the second of them would contradict. */
static const struct {
    const char *option, *others, *why;
} exclusive[] = {
    {"dry-run", "resume calibrate", "a dry run touches nothing"},
    {"force", "resume", "--force starts anew and --resume goes on"},
    {"init", "input", "the initial grid is the one or the other"},
};

static int check_exclusive(const struct mx_options *o, mx_why *why) {
    for (size_t i = 0; i < sizeof exclusive / sizeof exclusive[0]; i++) {
        char words[128], *rest;
        if (!mx_option_given(o, exclusive[i].option)) continue;
        snprintf(words, sizeof words, "%s", exclusive[i].others);
        for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
            if (mx_option_given(o, word))
                return mx_fail(why, -EINVAL, "--%s and --%s exclude each other: %s; choose one",
                               exclusive[i].option, word, exclusive[i].why);
    }
    return 0;
}

static int complete_export(const struct mx_options *o, mx_why *why) {
    if (o->place == NULL)
        return mx_fail(why, -EINVAL, "export which store? Give its directory, file or block device");
    if (o->output == NULL) return mx_fail(why, -EINVAL, "export to which file? Give it with -o GRID.npy");
    return 0;
}

static int complete(enum mx_command command, struct mx_options *o, mx_why *why) {
    int err = check_exclusive(o, why);
    if (err < 0 || command == MX_CMD_INFO) return err;
    if (command == MX_CMD_EXPORT) return complete_export(o, why);
    if (o->problem.stencil[0] == 0) strcpy(o->problem.stencil, "star7");
    const struct mx_stencil *s = mx_stencil_find(o->problem.stencil);
    o->problem.h = s->h;
    if (!o->have_coef) memcpy(o->problem.coef, s->coef, sizeof o->problem.coef);
    if (!o->have_n && o->input == NULL && !o->resume)
        return mx_fail(why, -EINVAL,
                       "no grid: give its size with -n NX NY NZ or a file with --input GRID.npy");
    if (!o->have_t && !o->resume) return mx_fail(why, -EINVAL, "no time steps: give them with -t NT");
    if (o->init != NULL && mx_init_find(o->init) == NULL)
        return mx_fail(why, -EINVAL, "--init '%s' is not known; it is random, gauss, linear, corner or zero",
                       o->init);
    if (o->engine != NULL && strcmp(o->engine, "iblock") != 0 && strcmp(o->engine, "tiled") != 0)
        return mx_fail(why, -EINVAL, "--engine '%s' is not known; it is iblock or tiled", o->engine);
    return 0;
}

bool mx_option_given(const struct mx_options *o, const char *name) {
    for (int i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].name, name) == 0) return o->given[i / 64] >> (i % 64) & 1;
    return false;
}

/* getopt says no more than that it does not understand: unknown, or a beginning of several. */
static int explain_unknown(enum mx_command command, const char *word, mx_why *why) {
    char names[256] = "";
    size_t n = 0, length = strcspn(word, "=");
    int matches = 0;
    bool is_long = length > 2 && word[0] == '-' && word[1] == '-';
    for (int i = 0; i < N_ROWS && is_long; i++) {
        if (!(rows[i].commands & command) || strncmp(rows[i].name, word + 2, length - 2) != 0) continue;
        int put = snprintf(names + n, sizeof names - n, "%s--%s", matches++ > 0 ? ", " : "", rows[i].name);
        n = n + (size_t)put < sizeof names ? n + (size_t)put : sizeof names - 1;
    }
    if (matches > 1)
        return mx_fail(why, -EINVAL, "option '%.*s' can be %s: write more of it", (int)length, word, names);
    if (matches == 1)
        return mx_fail(why, -EINVAL, "option '%.*s' (%s) takes no value", (int)length, word, names);
    for (int i = 0; i < N_ROWS && is_long; i++)
        if (strlen(rows[i].name) == length - 2 && strncmp(rows[i].name, word + 2, length - 2) == 0)
            return mx_fail(why, -EINVAL,
                           "option '%.*s' has no effect on this command; --help lists those that have",
                           (int)length, word);
    return mx_fail(why, -EINVAL, "option '%.60s' is not known; --help lists the options", word);
}

/* A letter is told by optopt; of a long option the word before optind is meant. */
static int explain_error(enum mx_command command, int code, const char *word, mx_why *why) {
    const char letter[] = {'-', (char)optopt, 0};
    if (optopt > 0 && optopt < CODE) word = letter;
    if (code == ':')
        return mx_fail(why, -EINVAL, "option '%.60s' needs a value; --help shows its form", word);
    return explain_unknown(command, word, why);
}

static const struct option_row *row_of(int code) {
    for (int i = 0; i < N_ROWS; i++)
        if (code == CODE + i || (rows[i].letter != 0 && code == rows[i].letter)) return &rows[i];
    return NULL;
}

static void list_options(enum mx_command command, struct option *longs, char *shorts) {
    int n = 0;
    for (int i = 0; i < N_ROWS; i++) {
        if (!(rows[i].commands & command)) continue;
        longs[n++] =
            (struct option){rows[i].name, rows[i].argument ? required_argument : no_argument, NULL, CODE + i};
        if (rows[i].letter) {
            char letter[3] = {(char)rows[i].letter, rows[i].argument ? ':' : 0, 0};
            strcat(shorts, letter);
        }
    }
    longs[n] = (struct option){0};
}

/* info and export take one word, the place. */
static int take_place(enum mx_command command, int argc, char **argv, mx_why *why, struct mx_options *out) {
    if (optind < argc && (command & (MX_CMD_INFO | MX_CMD_EXPORT))) out->place = argv[optind++];
    if (optind < argc)
        return mx_fail(why, -EINVAL, "'%s' is no option; --help lists the options", argv[optind]);
    return 0;
}

int mx_options_parse(enum mx_command command, int argc, char **argv, mx_why *why, struct mx_options *out) {
    struct option longs[N_ROWS + 1];
    char shorts[2 * N_ROWS + 4] = ":";
    memset(out, 0, sizeof *out);
    list_options(command, longs, shorts);
    optind = 0; /* glibc: start afresh */
    opterr = 0;
    for (;;) {
        int code = getopt_long(argc, argv, shorts, longs, NULL);
        if (code == -1) break;
        const struct option_row *row = row_of(code);
        if (row == NULL) return explain_error(command, code, argv[optind - 1], why);
        int err = take(out, row, argc, argv, why);
        if (err != 0) return err;
        out->given[(row - rows) / 64] |= UINT64_C(1) << ((row - rows) % 64);
    }
    int err = take_place(command, argc, argv, why, out);
    return err < 0 ? err : complete(command, out, why);
}

void mx_options_help(enum mx_command command, const char *program) {
    printf("usage: %s [options]\n\n", program);
    for (int i = 0; i < N_ROWS; i++) {
        char left[64];
        if (!(rows[i].commands & command)) continue;
        if (rows[i].letter && strlen(rows[i].name) > 0)
            snprintf(left, sizeof left, "-%c, --%s %s", rows[i].letter, rows[i].name,
                     rows[i].argument ? rows[i].argument : "");
        else
            snprintf(left, sizeof left, "    --%s %s", rows[i].name,
                     rows[i].argument ? rows[i].argument : "");
        printf("  %-30s %s\n", left, rows[i].help);
    }
    printf("\nSizes take KiB, MiB, GiB, TiB. Exit status: 0 done, 2 usage or a request that cannot be met, 3 "
           "I/O error,\n"
           "4 verification failed, 5 interrupted (resumable with redundant and stream).\n"
           "skewed, skewed-y, skewed-min and direct-skewed rewrite both Buffers in place: they cannot be "
           "resumed.\n");
}
