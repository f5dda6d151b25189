/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_wavefront.c - memext wavefront, and memext tune --wavefront: options in, exit status out. */
#include "ask/size.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "files/output.h"
#include "machine/machine.h"
#include "observe/report.h"
#include "wavefront/run.h"

#include <memext/backend.h>

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum form { FLAG, TEXT, SIZE, COUNT, COUNT32, RATE, PAIR, MATRIX, ADVICE, HELP };

struct row {
    const char *name;
    int letter;
    enum form form;
    bool tune; /* memext tune --wavefront has it too */
    size_t offset;
    int64_t low, high;
    const char *argument, *help;
};

#define AT(field) offsetof(struct mx_wf_options, field)
static const struct row rows[] = {
    {"size", 'n', PAIR, true, AT(rows), 1, MX_WF_MOST_EXTENT, "ROWS COLS",
     "interior cells of the matrices (with --input: taken from the file)"},
    {"iterations", 'k', COUNT, true, AT(iterations), 0, INT64_MAX / 2, "K", "iterations of the loop"},
    {"device", 'd', TEXT, false, AT(path), 0, 0, "PATH",
     "directory, file or block device that holds the Buffers"},
    {"backend", 0, TEXT, false, AT(backend), 0, 0, "B",
     "dram | swap | mmap | aio | uring (default: uring, else aio)"},
    {"layout", 0, TEXT, true, AT(layout), 0, 0, "L", "row | block | frontier (default frontier)"},
    {"tile", 0, PAIR, true, AT(mb), 1, MX_WF_MOST_EXTENT, "MB NB",
     "rows and columns of a tile (default: tuned)"},
    {"waves", 0, COUNT, true, AT(waves), 1, INT64_MAX / 4, "W",
     "iterations that a pass over the matrices makes (default: tuned)"},
    {"ahead", 0, COUNT, true, AT(ahead), 1, 1 << 20, "TILES", "tiles read ahead (default: two tile rows)"},
    {"unchained", 0, FLAG, true, AT(unchained), 0, 0, NULL,
     "a pass begins only when the one before is complete (to measure what chaining gains)"},
    {"threads", 0, COUNT32, true, AT(threads), 1, 1024, "P", "workers (default: the cores of this process)"},
    {"dram", 0, SIZE, true, AT(dram_bytes), 1 << 20, INT64_MAX, "SIZE",
     "DRAM the run may see (default: the smaller of the machine's and the cgroup's limit)"},
    {"sequential", 0, FLAG, false, AT(sequential), 0, 0, NULL,
     "the plain loop with all six matrices in memory: the line to beat"},
    {"init", 0, TEXT, false, AT(init), 0, 0, "NAME",
     "matrices without an input: random | linear | zero (default random)"},
    {"input", 0, MATRIX, false, AT(inputs), 0, 0, "NAME=FILE.npy",
     "a matrix with its border, NAME is za zr zb zu zv or zz; may be given for each"},
    {"output", 'o', MATRIX, false, AT(outputs), 0, 0, "NAME=FILE.npy",
     "write a matrix with its border; a FILE alone is za"},
    {"overwrite", 0, FLAG, false, AT(overwrite), 0, 0, NULL,
     "replace the files of --output if they are there"},
    {"verify", 0, FLAG, false, AT(verify), 0, 0, NULL,
     "run the sequential loop as well and compare bit by bit"},
    {"resume", 0, FLAG, false, AT(resume), 0, 0, NULL,
     "continue an interrupted run from its last committed pass"},
    {"keep", 0, FLAG, false, AT(keep), 0, 0, NULL, "leave the store in the directory after the run"},
    {"no-lock", 0, FLAG, false, AT(no_lock), 0, 0, NULL,
     "go on where the file system has no locks; nobody else may use the place"},
    {"force", 0, FLAG, false, AT(force), 0, 0, NULL,
     "overwrite what is in the place: another run's store, a foreign file, a device with a known signature"},
    {"dry-run", 0, FLAG, false, AT(dry_run), 0, 0, NULL, "print plan and predictions, touch nothing"},
    {"advice", 0, ADVICE, false, AT(advice), 0, 0, "A",
     "mmap and swap: none | sequential | random | willneed | hugepage | schedule (default schedule on mmap)"},
    {"queue-depth", 0, COUNT32, false, AT(queue_depth), 1, 4096, "N", "requests in flight (default 32)"},
    {"request-size", 0, SIZE, false, AT(request_bytes), 512, 1 << 30, "SIZE",
     "longest single request (default 1 MiB)"},
    {"workers", 0, COUNT32, false, AT(workers), 1, 64, "N", "mapped backends: copying threads"},
    {"read-bw", 0, RATE, true, AT(read_bw), 0, 0, "BYTES/S", "device read bandwidth to plan with"},
    {"write-bw", 0, RATE, true, AT(write_bw), 0, 0, "BYTES/S", "device write bandwidth to plan with"},
    {"rate", 0, RATE, true, AT(rate), 0, 0, "UPDATES/S", "update rate of a worker to plan with"},
    {"fault", 0, TEXT, false, AT(fault), 0, 0, "SPEC", "tests: call=N (system call N fails)"},
    {"timeline", 0, TEXT, false, AT(timeline), 0, 0, "FILE", "samples of the run every 100 ms as JSON lines"},
    {"trace", 0, TEXT, false, AT(trace), 0, 0, "FILE", "block I/O and compute as a Chrome/Perfetto trace"},
    {"json", 0, TEXT, true, AT(json), 0, 0, "FILE|-", "write the report as one JSON object"},
    {"quiet", 'q', FLAG, true, AT(quiet), 0, 0, NULL, "no progress, no summary"},
    {"help", 'h', HELP, true, 0, 0, 0, NULL, "this text"},
};
enum { N_ROWS = sizeof rows / sizeof rows[0], CODE = 256 };

struct command {
    const char *program;
    bool tune;
    struct mx_wf_options o;
    bool have_advice;
    mx_wf_run *run;
    struct mx_progress progress;
    const char *label;
    mx_why why;
};

/* ------------------------------------------------------------------ options */

static int take_count(const struct row *row, const char *word, int64_t *out, mx_why *why) {
    char *end;
    errno = 0;
    const long long value = word != NULL ? strtoll(word, &end, 10) : 0;
    if (word == NULL || end == word || *end != 0 || errno != 0)
        return mx_fail(why, -EINVAL, "--%s %s: '%s' is no whole number", row->name, row->argument,
                       word != NULL ? word : "");
    if (value < row->low || value > row->high)
        return mx_fail(why, -EINVAL, "--%s: %lld is not one of %lld..%lld", row->name, value,
                       (long long)row->low, (long long)row->high);
    *out = value;
    return 0;
}

static int take_size(const struct row *row, uint64_t *out, mx_why *why) {
    if (mx_parse_size(optarg, out) < 0)
        return mx_fail(why, -EINVAL, "--%s '%s' is no size; write it like 512MiB", row->name, optarg);
    if (*out < (uint64_t)row->low || *out > (uint64_t)row->high)
        return mx_fail(why, -EINVAL, "--%s %s is outside of what is possible, %lld bytes at least", row->name,
                       optarg, (long long)row->low);
    return 0;
}

/* NAME=FILE; a word without a matrix's name before a '=' is the file of za. */
static int take_matrix(const struct row *row, const char **files, mx_why *why) {
    const char *file = optarg;
    int m = MX_WF_ZA;
    const char *equal = strchr(optarg, '=');
    if (equal != NULL && memchr(optarg, '/', (size_t)(equal - optarg)) == NULL) {
        for (m = 0; m < MX_WF_MATRICES; m++)
            if (strlen(mx_wf_names[m]) == (size_t)(equal - optarg) &&
                strncmp(optarg, mx_wf_names[m], (size_t)(equal - optarg)) == 0)
                break;
        if (m == MX_WF_MATRICES)
            return mx_fail(why, -EINVAL, "--%s '%.60s': a matrix is za, zr, zb, zu, zv or zz", row->name,
                           optarg);
        file = equal + 1;
    }
    if (file[0] == 0) return mx_fail(why, -EINVAL, "--%s '%.60s' names no file", row->name, optarg);
    if (files[m] != NULL)
        return mx_fail(why, -EINVAL, "--%s is given twice for %s", row->name, mx_wf_names[m]);
    files[m] = file;
    return 0;
}

static int take_advice(struct command *c, mx_why *why) {
    static const char *const names[] = {"none", "sequential", "random", "willneed", "hugepage", "schedule"};
    for (int i = 0; i < 6; i++)
        if (strcmp(optarg, names[i]) == 0) {
            c->o.advice = (enum mx_advice)i;
            c->have_advice = true;
            return 0;
        }
    return mx_fail(why, -EINVAL,
                   "--advice '%s' is not known; it is none, sequential, random, willneed, hugepage or "
                   "schedule",
                   optarg);
}

static int take(struct command *c, const struct row *row, int argc, char **argv) {
    void *field = (char *)&c->o + row->offset;
    int64_t count = 0;
    uint64_t size = 0;
    int err = 0;
    char *end;
    switch (row->form) {
    case FLAG:
        *(bool *)field = true;
        return 0;
    case TEXT:
        *(const char **)field = optarg;
        return 0;
    case SIZE:
        err = take_size(row, &size, &c->why);
        if (err == 0 && row->high <= UINT32_MAX)
            *(uint32_t *)field = (uint32_t)size;
        else if (err == 0)
            *(uint64_t *)field = size;
        return err;
    case COUNT:
        return take_count(row, optarg, field, &c->why);
    case COUNT32:
        err = take_count(row, optarg, &count, &c->why);
        if (err == 0) *(int32_t *)field = (int32_t)count;
        return err;
    case RATE:
        *(double *)field = strtod(optarg, &end);
        if (end != optarg && *end == 0 && *(double *)field > 0 && isfinite(*(double *)field)) return 0;
        return mx_fail(&c->why, -EINVAL, "--%s '%s' is no rate", row->name, optarg);
    case PAIR:
        err = take_count(row, optarg, field, &c->why);
        if (err == 0)
            err = take_count(row, optind < argc ? argv[optind++] : NULL, (int64_t *)field + 1, &c->why);
        return err;
    case MATRIX:
        return take_matrix(row, field, &c->why);
    case ADVICE:
        return take_advice(c, &c->why);
    case HELP:
        return 1;
    }
    return -EINVAL;
}

static void list(const struct command *c, struct option *longs, char *shorts) {
    int n = 0;
    strcpy(shorts, ":");
    for (int i = 0; i < N_ROWS; i++) {
        if (c->tune && !rows[i].tune) continue;
        longs[n++] = (struct option){rows[i].name, rows[i].argument != NULL ? required_argument : no_argument,
                                     NULL, CODE + i};
        if (rows[i].letter != 0) {
            const char letter[3] = {(char)rows[i].letter, rows[i].argument != NULL ? ':' : 0, 0};
            strcat(shorts, letter);
        }
    }
    longs[n] = (struct option){0};
}

static const struct row *row_of(int code) {
    for (int i = 0; i < N_ROWS; i++)
        if (code == CODE + i || (rows[i].letter != 0 && code == rows[i].letter)) return &rows[i];
    return NULL;
}

static int parse(struct command *c, int argc, char **argv) {
    struct option longs[N_ROWS + 1];
    char shorts[2 * N_ROWS + 4];
    c->o.iterations = -1;
    list(c, longs, shorts);
    optind = 0; /* glibc: start afresh */
    opterr = 0;
    for (;;) {
        const int code = getopt_long(argc, argv, shorts, longs, NULL);
        if (code == -1) break;
        const struct row *row = row_of(code);
        if (code == ':')
            return mx_fail(&c->why, -EINVAL, "option '%.60s' needs a value; --help shows its form",
                           argv[optind - 1]);
        if (row == NULL)
            return mx_fail(&c->why, -EINVAL, "option '%.60s' is not known; --help lists the options",
                           argv[optind - 1]);
        int err = take(c, row, argc, argv);
        if (err != 0) return err;
    }
    if (optind < argc)
        return mx_fail(&c->why, -EINVAL, "'%s' is no option; --help lists the options", argv[optind]);
    return 0;
}

/* mmap is advised by the schedule unless something else is asked for. */
static int complete(struct command *c) {
    const char *backend = c->o.backend != NULL ? c->o.backend : "";
    const bool paged = strstr(backend, "mmap") != NULL || strcmp(backend, "swap") == 0;
    if (c->have_advice && !paged)
        return mx_fail(&c->why, -EINVAL,
                       "--advice is for memory that the kernel pages: mmap and swap; leave it out");
    if (!c->have_advice && strstr(backend, "mmap") != NULL) c->o.advice = MX_ADVICE_SCHEDULE;
    return 0;
}

static void help(const struct command *c) {
    printf("usage: %s [options]\n\nLivermore loop 23 out of core: a 2D implicit sweep over one data matrix "
           "(za) and five of coefficients.\n\n",
           c->program);
    for (int i = 0; i < N_ROWS; i++) {
        char left[64], letter[8] = "    ";
        if (c->tune && !rows[i].tune) continue;
        if (rows[i].letter != 0) snprintf(letter, sizeof letter, "-%c, ", rows[i].letter);
        snprintf(left, sizeof left, "%s--%s %s", letter, rows[i].name,
                 rows[i].argument != NULL ? rows[i].argument : "");
        printf("  %-30s %s\n", left, rows[i].help);
    }
    printf("\nSizes take KiB, MiB, GiB, TiB. Exit status: 0 done, 2 usage or a request that cannot be met, 3 "
           "I/O error,\n4 verification failed, 5 interrupted (resumable).\n");
}

/* ------------------------------------------------------------------ the run */

static void on_progress(void *context, const char *label, int64_t done, int64_t total) {
    struct command *c = context;
    if (c->label != label) {
        mx_progress_end(&c->progress);
        mx_progress_begin(&c->progress, c->program, label, "updates", total, c->o.quiet);
        c->label = label;
    }
    mx_progress_update(&c->progress, done);
}

static FILE *summary(const struct command *c) {
    if (c->o.quiet) return NULL;
    return c->o.json != NULL && strcmp(c->o.json, "-") == 0 ? stderr : stdout;
}

static void say(struct command *c, int err) {
    char text[512];
    const char *sentence = c->run != NULL ? mx_wf_run_sentence(c->run) : c->why.text;
    const char *way_on = c->run != NULL ? mx_wf_run_way_on(c->run, text, sizeof text) : "";
    const bool different = err == 0 && c->run != NULL && mx_wf_run_verified(c->run) == 0;
    if (err == -EINTR)
        fprintf(stderr, "%s: interrupted%s%s\n", c->program, way_on[0] != 0 ? "; " : "", way_on);
    else if (err < 0 || different)
        fprintf(stderr, "%s: %s\n", c->program, sentence[0] != 0 ? sentence : strerror(-err));
    if (err < 0 && err != -EINTR && way_on[0] != 0 && mx_wf_run_moving(c->run))
        fprintf(stderr, "%s: %s\n", c->program, way_on);
}

/* A page of a mapping that cannot be had: nothing can be closed in order. */
static void end_at_once(void *context, const char *sentence) {
    struct command *c = context;
    mx_why why;
    fprintf(stderr, "%s: %s\n", c->program, sentence);
    mx_wf_run_abandon(c->run);
    mx_wf_run_report(c->run, -EIO, NULL, &why);
    _exit(MX_EXIT_IO);
}

static int run(struct command *c) {
    int err = mx_wf_run_create(&c->o, &mx_stop, on_progress, c, &c->why, &c->run);
    if (err < 0) return say(c, err), MX_EXIT_REFUSED;
    mx_signals_watch(end_at_once, c);
    err = mx_wf_run_work(c->run, summary(c));
    mx_signals_unwatch();
    mx_progress_end(&c->progress);
    say(c, err);
    int reported = mx_wf_run_report(c->run, err, summary(c), &c->why);
    if (reported < 0) fprintf(stderr, "%s: %s\n", c->program, c->why.text);
    const bool different = err == 0 && mx_wf_run_verified(c->run) == 0;
    const int status =
        different ? MX_EXIT_DIFFERENT : mx_exit_status(err < 0 ? err : reported, mx_wf_run_moving(c->run));
    mx_wf_run_close(c->run);
    return status;
}

int mx_cmd_wavefront(int argc, char **argv) {
    struct command c = {.program = "memext wavefront"};
    int err = parse(&c, argc, argv);
    if (err == 1) return help(&c), MX_EXIT_OK;
    if (err == 0) err = complete(&c);
    if (err < 0) return say(&c, err), MX_EXIT_REFUSED;
    return run(&c);
}

/* ------------------------------------------------------------------ memext tune --wavefront */

static int make_request(struct command *c, struct mx_wf_request *q) {
    const struct mx_wf_options *o = &c->o;
    struct mx_machine machine;
    int layout = MX_WF_FRONTIER, err = mx_machine_detect(&c->why, &machine);
    if (err < 0) return err;
    if (o->layout != NULL)
        for (layout = 0; layout < MX_WF_LAYOUTS && strcmp(o->layout, mx_wf_layouts[layout]) != 0; layout++) {
        }
    if (layout == MX_WF_LAYOUTS)
        return mx_fail(&c->why, -EINVAL, "--layout '%s' is not known; it is row, block or frontier",
                       o->layout);
    if (o->rows == 0 || o->iterations < 0)
        return mx_fail(&c->why, -EINVAL, "say what to plan for: -n ROWS COLS --iterations K");
    const uint64_t visible = mx_machine_dram_bytes(&machine);
    *q = (struct mx_wf_request){.rows = o->rows,
                                .cols = o->cols,
                                .iterations = o->iterations,
                                .layout = (enum mx_wf_layout)layout,
                                .align_bytes = 4096,
                                .dram_bytes = o->dram_bytes > 0
                                                  ? o->dram_bytes
                                                  : visible - mx_machine_reserve_auto(&machine, visible),
                                .threads = o->threads > 0 ? o->threads : machine.cores,
                                .mb = o->mb,
                                .nb = o->nb,
                                .waves = o->waves,
                                .ahead = o->ahead,
                                .unchained = o->unchained,
                                .read_bytes_per_s = o->read_bw,
                                .write_bytes_per_s = o->write_bw,
                                .updates_per_s = o->rate};
    return 0;
}

bool mx_wavefront_is_meant(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--wavefront") == 0) return true;
    return false;
}

/* The word --wavefront itself is left out before the others are read. */
int mx_cmd_tune_wavefront(int argc, char **argv) {
    struct command c = {.program = "memext tune", .tune = true};
    struct mx_wf_request q;
    struct mx_wf_choice choice;
    char **words = calloc((size_t)argc + 1, sizeof *words);
    int n = 0;
    if (words == NULL) return MX_EXIT_REFUSED;
    for (int i = 0; i < argc; i++)
        if (i == 0 || strcmp(argv[i], "--wavefront") != 0) words[n++] = argv[i];
    int err = parse(&c, n, words);
    if (err == 1) {
        c.program = "memext tune --wavefront";
        help(&c);
    }
    if (err == 0) err = make_request(&c, &q);
    if (err == 0) err = mx_wf_tune(&q, &c.why, &choice);
    if (err == 0 && summary(&c) != NULL) mx_wf_print_choice(&q, &choice, summary(&c));
    if (err == 0 && c.o.json != NULL) err = mx_write_json(mx_wf_json_choice(&q, &choice), c.o.json, &c.why);
    if (err < 0) say(&c, err);
    free(words);
    return err == 1 ? MX_EXIT_OK : mx_exit_status(err, false);
}
