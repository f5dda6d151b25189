/* SPDX-License-Identifier: BSD-3-Clause */
/* The timeline and the trace of a run: what they hold, and how much memory they take for it. */
#include "machine/clock.h"
#include "observe/timeline.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static const struct mx_problem problem = {.nx = 8, .ny = 8, .nz = 8, .nt = 1, .h = 1, .stencil = "star7"};
static const struct mx_plan plan = {.algorithm = "direct", .engine = "iblock"};
static char folder[256], line_path[300], trace_path[300];

static void make_folder(void) {
    const char *base = getenv("MEMEXT_TEST_DIR");
    snprintf(folder, sizeof folder, "%.200s/mx-observe-XXXXXX", base != NULL ? base : "build");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(line_path, sizeof line_path, "%s/timeline", folder);
    snprintf(trace_path, sizeof trace_path, "%s/trace", folder);
}

static void remove_folder(void) {
    unlink(line_path), unlink(trace_path);
    cr_assert_eq(rmdir(folder), 0);
}

TestSuite(timeline, .init = make_folder, .fini = remove_folder);

static mx_device *device(void) {
    mx_device *d;
    cr_assert_eq(mx_device_open(&(struct mx_device_options){.backend = "dram"}, NULL, &d), 0);
    return d;
}

static mx_timeline *start(mx_device *d, const char *line, const char *trace) {
    mx_timeline *t;
    mx_why why = {{0}};
    struct mx_timeline_options o = {
        .path = line, .trace_path = trace, .problem = &problem, .plan = &plan, .device = d, .place = ""};
    cr_assert_eq(mx_timeline_start(&o, &why, &t), 0, "%s", why.text);
    return t;
}

/* `n` events, every second one of a kind that overlaps others (two objects in the trace). */
static void report(mx_timeline *t, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t at_ns = mx_clock_ns();
        mx_timeline_event(t, i % 2 == 0 ? "advance" : "load", at_ns, at_ns, (int64_t[2]){0, i},
                          (int64_t[2]){i, 0}, 1);
    }
}

/* One of the files, read while it is written; every SAMPLEth line of it is parsed. */
enum { SAMPLE = 1024 };
struct reader {
    const char *path;
    pthread_t thread;
    int64_t lines, of_events, broken;
};

static bool parses(const char *line) {
    json_t *o = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
    json_decref(o);
    return o != NULL;
}

static void *read_lines(void *argument) {
    struct reader *r = argument;
    char line[4096];
    FILE *f = fopen(r->path, "r");
    for (; fgets(line, sizeof line, f) != NULL; r->lines++) {
        bool event = strncmp(line, "{\"e\"", 4) == 0 ||
                     (strncmp(line, "{\"name\"", 7) == 0 && strstr(line, "\"args\":{\"y0") != NULL);
        r->of_events += event;
        if (event && r->lines % SAMPLE == 0) r->broken += !parses(line);
    }
    fclose(f);
    return NULL;
}

static void start_reader(struct reader *r, const char *path) {
    r->path = path;
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(pthread_create(&r->thread, NULL, read_lines, r), 0);
}

static uint64_t peak_bytes(void) {
    char line[256];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "VmHWM: %llu kB", &kib) == 1) break;
    fclose(f);
    return kib * 1024;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MANY = 200 * 1000, SLACK_MIB = 64 }; /* sanitizers keep memory of their own, and time */
#else
enum { MANY = 1000 * 1000, SLACK_MIB = 2 };
#endif

/* Of the events of a run of weeks all are in both files, and the memory has grown by no more than the bound
 * of the header and some MiB of code, stacks and buffers of the files; all of them at once would be 64 MB.
 */
Test(timeline, events_without_end_take_no_memory) {
    mx_device *d = device();
    struct reader line = {0}, trace = {0};
    start_reader(&line, line_path), start_reader(&trace, trace_path);
    mx_timeline *t = start(d, line_path, trace_path);
    uint64_t before = peak_bytes();
    report(t, MANY);
    uint64_t grown = peak_bytes() - before;
    cr_assert_eq(mx_timeline_stop(t, NULL), 0);
    pthread_join(line.thread, NULL), pthread_join(trace.thread, NULL);
    mx_device_close(d);
    cr_assert_eq(line.of_events, MANY);
    cr_assert_eq(trace.of_events, MANY);
    cr_assert_eq(line.broken + trace.broken, 0);
    cr_assert_leq(grown, MX_TIMELINE_EVENT_BYTES + SLACK_MIB * MIB, "%llu bytes", (unsigned long long)grown);
}

/* Without a timeline nobody flushes but the thread that finds no room: all events of several buffers are
 * there, the file is one JSON object, and every id of an overlapping event begins and ends once. */
Test(timeline, a_trace_alone_is_one_object) {
    enum { N = 50001 };
    mx_device *d = device();
    mx_timeline *t = start(d, NULL, trace_path);
    report(t, N);
    cr_assert_eq(mx_timeline_stop(t, NULL), 0);
    mx_device_close(d);
    json_error_t error;
    json_t *o = json_load_file(trace_path, 0, &error), *e;
    cr_assert_not_null(o, "%s", error.text);
    size_t i, of[128] = {0};
    json_int_t last = -1;
    json_array_foreach(json_object_get(o, "traceEvents"), i, e) {
        const char *ph = json_string_value(json_object_get(e, "ph"));
        json_int_t id = json_integer_value(json_object_get(e, "id"));
        of[(unsigned char)ph[0] & 127]++;
        if (ph[0] == 'b') cr_assert_gt(id, last);
        if (ph[0] == 'b') last = id;
        if (ph[0] == 'e') cr_assert_eq(id, last);
    }
    cr_assert_eq(of['X'], (N + 1) / 2);
    cr_assert_eq(of['b'], N / 2);
    cr_assert_eq(of['e'], N / 2);
    json_decref(o);
}

struct writer {
    mx_timeline *timeline;
    pthread_t thread;
};

static void *report_some(void *argument) {
    report(((struct writer *)argument)->timeline, 100000);
    return NULL;
}

/* Events of several threads at once, each of which finds the buffer full at times, beside the sampler: none
 * is lost, every line parses. */
Test(timeline, threads_that_flush_lose_nothing) {
    mx_device *d = device();
    mx_timeline *t = start(d, line_path, NULL);
    struct writer w[3];
    for (int i = 0; i < 3; i++) {
        w[i].timeline = t;
        cr_assert_eq(pthread_create(&w[i].thread, NULL, report_some, &w[i]), 0);
    }
    for (int i = 0; i < 3; i++) pthread_join(w[i].thread, NULL);
    cr_assert_eq(mx_timeline_stop(t, NULL), 0);
    mx_device_close(d);
    char line[4096];
    int64_t events = 0, broken = 0;
    FILE *f = fopen(line_path, "re");
    while (fgets(line, sizeof line, f) != NULL)
        events += strncmp(line, "{\"e\"", 4) == 0, broken += !parses(line);
    fclose(f);
    cr_assert_eq(events, 300000);
    cr_assert_eq(broken, 0);
}

/* A file that takes nothing: the end says so, and the events that could not be written are not kept either.
 */
Test(timeline, a_full_disk_is_said) {
    mx_device *d = device();
    mx_why why;
    mx_timeline *t = start(d, NULL, "/dev/full");
    report(t, 20000);
    cr_assert_eq(mx_timeline_stop(t, &why), -EIO);
    cr_assert_not_null(strstr(why.text, "/dev/full"));
    mx_device_close(d);
}

/* A trace that cannot be opened is refused before the run. */
Test(timeline, a_trace_that_cannot_be_opened_is_refused_at_the_start) {
    mx_device *d = device();
    mx_timeline *t;
    mx_why why;
    struct mx_timeline_options o = {
        .trace_path = "/nowhere/trace", .problem = &problem, .plan = &plan, .device = d, .place = ""};
    cr_assert_eq(mx_timeline_start(&o, &why, &t), -ENOENT);
    cr_assert_not_null(strstr(why.text, "/nowhere/trace"));
    mx_device_close(d);
}
