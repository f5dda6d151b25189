/* SPDX-License-Identifier: BSD-3-Clause */
#include "ask/effect.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void mx_say_no_effect(const struct mx_options *o, const char *name, mx_remark *say, void *context,
                      const char *format, ...) {
    char sentence[1200];
    va_list args;
    if (!mx_option_given(o, name)) return;
    int n = snprintf(sentence, sizeof sentence, "--%s has no effect ", name);
    va_start(args, format);
    vsnprintf(sentence + n, sizeof sentence - (size_t)n, format, args);
    va_end(args);
    say(context, sentence);
}

static bool is_uring(const struct mx_backend *b) { return strcmp(b->name, "uring") == 0; }
static bool is_paged(const struct mx_backend *b) {
    return b->face == MX_FACE_MAPPED && !(b->anonymous && !b->locks_blocks);
}
static bool is_mapped(const struct mx_backend *b) { return b->face == MX_FACE_MAPPED; }
static bool is_stored(const struct mx_backend *b) { return !b->anonymous; }

/* Options that do nothing with some backends. */
static const struct {
    const char *option;
    bool (*useful)(const struct mx_backend *backend);
    const char *why;
} backend_options[] = {
    {"sqpoll", is_uring, "it is for backend uring"},
    {"iopoll", is_uring, "it is for backend uring"},
    {"uncached", is_uring, "it is for backend uring"},
    {"no-register", is_uring, "it is for backend uring"},
    {"advice", is_paged, "it is for memory that Linux pages, on mmap and swap"},
    {"workers", is_mapped, "it is the number of threads that copy, on dram, swap and mmap"},
    {"keep", is_stored, "the Buffers of this backend end with the process"},
    {"force", is_stored, "this backend has no store, so nothing is overwritten"},
    {"commit-every", is_stored, "the Buffers of this backend end with the process"},
};

void mx_say_useless(const struct mx_options *o, const struct mx_backend *backend, int32_t cores,
                    mx_remark *say, void *context) {
    char sentence[400];
    if (backend->anonymous && o->path != NULL) {
        snprintf(sentence, sizeof sentence,
                 "-d %.200s has no effect: backend %s keeps its Buffers in memory; leave -d out", o->path,
                 backend->name);
        say(context, sentence);
    }
    if (o->accel != NULL && strstr(o->accel, ",pin=1") != NULL &&
        (!is_mapped(backend) || is_paged(backend))) {
        snprintf(sentence, sizeof sentence,
                 "pin=1 of --accel has no effect on backend %s: it is for Buffers in DRAM (--backend dram)",
                 backend->name);
        say(context, sentence);
    }
    for (size_t i = 0; i < sizeof backend_options / sizeof backend_options[0]; i++)
        if (!backend_options[i].useful(backend))
            mx_say_no_effect(o, backend_options[i].option, say, context, "on backend %s: %s", backend->name,
                             backend_options[i].why);
    if (o->resume)
        mx_say_no_effect(o, "calibrate", say, context,
                         "with --resume: the rates are those that were measured before, or assumed");
    mx_say_many_threads("--threads ", o->threads, cores, say, context);
}

void mx_say_many_threads(const char *given, int64_t threads, int32_t cores, mx_remark *say, void *context) {
    char sentence[200];
    if (threads <= cores) return;
    snprintf(sentence, sizeof sentence,
             "%s%lld: this process may use %d cores only, and more threads wait for one another; leave %s "
             "out, or give "
             "%d or fewer",
             given, (long long)threads, cores,
             strncmp(given, "--", 2) == 0 ? "--threads" : "threads=", cores);
    say(context, sentence);
}
