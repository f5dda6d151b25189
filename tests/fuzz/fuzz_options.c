/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines: the first byte chooses the command, the rest are its words, one a line; or a job file. What
 * is accepted is within the limits that help states, and no file is touched while words are read. */
#include "cli/options.h"
#include "fuzz.h"
#include "grid/grid.h"
#include "tune/tune.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

enum { MOST_WORDS = 200 };

/* The linker puts these in the place of the calls (see fuzz.cmake), libFuzzer's own included. */
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, mode_t mode);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
int __real_stat(const char *path, struct stat *out);
int __wrap_stat(const char *path, struct stat *out);
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);

static bool reading_words;

static void no_file(const char *path) {
    if (!reading_words) return;
    fprintf(stderr, "an option touched the file '%s'\n", path);
    abort();
}
int __wrap_open(const char *path, int flags, mode_t mode) {
    return no_file(path), __real_open(path, flags, mode);
}
FILE *__wrap_fopen(const char *path, const char *mode) { return no_file(path), __real_fopen(path, mode); }
int __wrap_stat(const char *path, struct stat *out) { return no_file(path), __real_stat(path, out); }
int __wrap_access(const char *path, int mode) { return no_file(path), __real_access(path, mode); }

static bool within(int64_t value, int64_t most) { return value >= 0 && value <= most; }
static bool speed(double value) { return value >= 0 && isfinite(value); }

static void check(enum mx_command command, const struct mx_options *o) {
    FUZZ_CHECK(within(o->threads, 1024) && within(o->cores, 65536) && within(o->sockets, 1024));
    FUZZ_CHECK(within(o->slab, 1 << 20) && within(o->column, INT32_MAX) && within(o->ahead, 4096));
    FUZZ_CHECK(o->queue_depth <= 4096 && o->request_bytes <= 1u << 30 && o->workers <= 64);
    FUZZ_CHECK(o->by >= 0 && o->bz >= 0 && o->bt >= 0 && o->iy >= 0 && o->iz >= 0 && o->tile >= 0 &&
               o->ct >= 0);
    FUZZ_CHECK(speed(o->read_bw) && speed(o->write_bw) && speed(o->mixed_bw) && speed(o->rate));
    FUZZ_CHECK(o->dram_bytes == 0 || o->dram_bytes >= 1 << 20);
    FUZZ_CHECK(within(o->problem.nt, MX_MOST_STEPS));
    FUZZ_CHECK(o->by <= MX_MOST_EXTENT && o->bt <= MX_MOST_EXTENT && o->iz <= MX_MOST_EXTENT &&
               o->ct <= MX_MOST_EXTENT);
    for (int i = 0; i < 4; i++) FUZZ_CHECK(isfinite(o->problem.coef[i]));
    const int64_t most = INT64_C(1) << 31; /* rows and columns of a wavefront */
    FUZZ_CHECK(within(o->wavefront.rows, most) && within(o->wavefront.nb, most));
    if (mx_option_given(o, "size") && command != MX_CMD_WAVEFRONT)
        FUZZ_CHECK(o->problem.nx > 0 && o->problem.ny > 0 && o->problem.nz > 0);
    if ((command == MX_CMD_RUN || command == MX_CMD_TUNE) &&
        o->kernel == NULL) /* which says it when it is compiled */
        FUZZ_CHECK(o->problem.stencil[0] != 0 && o->problem.h >= 1 && o->problem.h <= MX_MAX_HALO);
}

static void check_end(enum mx_command command, int err, const mx_why *why, const struct mx_options *o) {
    FUZZ_CHECK(err <= 1);
    if (err < 0) fuzz_check_refusal(err, why);
    if (err == 0) check(command, o);
}

/* A job that is accepted gives the same options once more when it is written and read again. */
static void read_job(const char *text, size_t bytes) {
    static struct mx_options options;
    struct mx_asked asked = {.n = 0}, again = {.n = 0};
    mx_why why = {0};
    memset(&options, 0, sizeof options);
    int err = mx_job_parse(text, bytes, &why, &asked);
    if (err < 0) {
        fuzz_check_refusal(err, &why);
        return;
    }
    json_t *job = mx_job_json(&asked);
    char *written = json_dumps(job, 0);
    FUZZ_CHECK(written != NULL && mx_job_parse(written, strlen(written), &why, &again) == 0);
    FUZZ_CHECK(again.n <= asked.n);
    free(written);
    json_decref(job);
    reading_words = true;
    err = mx_asked_take(&asked, &options, &why);
    if (err == 0) err = mx_options_complete(MX_CMD_RUN, &options, &why);
    reading_words = false;
    check_end(MX_CMD_RUN, err, &why, &options);
    mx_asked_free(&asked);
    mx_asked_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const enum mx_command commands[] = {MX_CMD_RUN, MX_CMD_TUNE, MX_CMD_INFO, MX_CMD_KERNEL,
                                               MX_CMD_WAVEFRONT};
    enum { COMMANDS = sizeof commands / sizeof commands[0], JOB = COMMANDS };
    if (bytes == 0) return 0;
    const int kind = data[0] % (COMMANDS + 1);
    char *text = fuzz_text(data + 1, bytes - 1), *rest = text, *word, name[] = "memext";
    if (kind == JOB) return read_job(text, bytes - 1), free(text), 0;
    char *argv[MOST_WORDS + 2] = {name};
    int argc = 1;
    while (argc <= MOST_WORDS && (word = strsep(&rest, "\n")) != NULL) argv[argc++] = word;
    static struct mx_options options;
    mx_why why = {0};
    reading_words = true;
    int err = mx_options_parse(commands[kind], argc, argv, &why, &options);
    reading_words = false;
    check_end(commands[kind], err, &why, &options);
    free(text);
    return 0;
}
