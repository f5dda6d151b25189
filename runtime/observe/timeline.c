/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/timeline.h"
#include "machine/clock.h"
#include "machine/machine.h"
#include "observe/report.h"
#include "observe/usage.h"

#include <memext/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* Linux 6.5 */
#endif

/* The residency of a bin is that of a few slices of it, and looking at all of them may take one part in
 * RESIDENCY_SHARE of one core's time: the kernel takes about 0.1 us for a page that is resident. */
enum { DEFAULT_BINS = 128, SLICES = 2, SLICE_PAGES = 8, RESIDENCY_SHARE = 200 };

struct cache_range {
    uint64_t off, len;
};
struct cache_state {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

struct event {
    const char *name;
    uint64_t begin_ns, end_ns, amount;
    int64_t y[2], z[2];
};

/* Events in memory at a time, twice: one half is filled while the other is written out. */
enum { EVENTS = 8192 };
_Static_assert(2 * EVENTS * sizeof(struct event) <= MX_TIMELINE_EVENT_BYTES,
               "the events need more memory than timeline.h promises");

enum residency { BY_CACHESTAT, BY_MINCORE, BY_NOTHING };

struct mx_timeline {
    struct mx_timeline_options o;
    FILE *file, *trace;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;       /* of the events and `stop` */
    pthread_mutex_t files_lock; /* of both files and the half that is written out; taken before `lock` */
    pthread_cond_t wake;
    bool stop;
    _Atomic int64_t updates;
    struct event events[2][EVENTS];
    int filling; /* half that takes new events */
    size_t n_events;
    uint64_t written; /* events of the run that are in the files */
    uint64_t start_ns, page;
    struct mx_usage start_usage;
    struct mx_counters start_counters;
    uint64_t start_device[2];
    struct mx_usage_files usage;
    int memory,
        device_stat; /* files that stay open: memory.stat, /sys/dev/block/MAJ:MIN/stat; negative = none */
    void *view[MX_TIMELINE_BUFFERS]; /* of the file, for mincore where cachestat is missing */
    int fd;
    enum residency residency;
    uint64_t residency_due_ns;
};

/* ------------------------------------------------------------------ where the figures come from */

static int open_device_stat(const char *place) {
    char path[64];
    struct stat st;
    if (place[0] == 0 || stat(place, &st) < 0) return -1;
    dev_t d = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/stat", major(d), minor(d));
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Bytes read and written by the whole block device (Documentation/block/stat.rst: fields 3 and 7, sectors of
 * 512). */
static void device_bytes(const mx_timeline *t, uint64_t out[2]) {
    char text[256];
    unsigned long long read, written;
    ssize_t n = t->device_stat >= 0 ? pread(t->device_stat, text, sizeof text - 1, 0) : 0;
    out[0] = out[1] = 0;
    if (n <= 0) return;
    text[n] = 0;
    if (sscanf(text, "%*u %*u %llu %*u %*u %*u %llu", &read, &written) == 2)
        out[0] = read * 512, out[1] = written * 512;
}

static enum residency find_residency(mx_timeline *t) {
    struct cache_range range = {t->o.buffer_offset_bytes[0], t->page};
    struct cache_state state;
    if (t->o.mapped[0] != NULL) return BY_MINCORE;
    t->fd = t->o.place[0] != 0 ? open(t->o.place, O_RDONLY | O_CLOEXEC) : -1;
    if (t->fd < 0) return BY_NOTHING;
    if (syscall(SYS_cachestat, t->fd, &range, &state, 0) == 0) return BY_CACHESTAT;
    for (int i = 0; i < t->o.n_buffers; i++) {
        void *view = mmap(NULL, t->o.buffer_bytes[i], PROT_READ, MAP_SHARED, t->fd,
                          (off_t)t->o.buffer_offset_bytes[i]);
        if (view == MAP_FAILED) return BY_NOTHING;
        t->view[i] = view;
    }
    return BY_MINCORE;
}

static uint64_t by_cachestat(const mx_timeline *t, int buffer, uint64_t page, uint64_t pages) {
    struct cache_range range = {t->o.buffer_offset_bytes[buffer] + page * t->page, pages * t->page};
    struct cache_state state;
    return syscall(SYS_cachestat, t->fd, &range, &state, 0) == 0 ? state.cached : 0;
}

static uint64_t by_mincore(const mx_timeline *t, int buffer, uint64_t page, uint64_t pages) {
    char *base = t->o.mapped[buffer] != NULL ? t->o.mapped[buffer] : t->view[buffer];
    unsigned char there[SLICES * SLICE_PAGES];
    uint64_t in = 0;
    if (base == NULL || mincore(base + page * t->page, pages * t->page, there) < 0) return 0;
    for (uint64_t i = 0; i < pages; i++) in += there[i] & 1;
    return in;
}

static int bin_percent(const mx_timeline *t, int buffer, int bin) {
    uint64_t size = t->o.buffer_bytes[buffer] / t->page, n = (uint64_t)t->o.bins, in = 0;
    uint64_t first = size * (uint64_t)bin / n, pages = size * (uint64_t)(bin + 1) / n - first;
    uint64_t slices = pages > SLICES * SLICE_PAGES ? SLICES : 1, each = slices > 1 ? SLICE_PAGES : pages;
    if (pages == 0) return 0;
    for (uint64_t i = 0; i < slices; i++) {
        uint64_t at = first + i * pages / slices;
        in += (t->residency == BY_CACHESTAT ? by_cachestat : by_mincore)(t, buffer, at, each);
    }
    return (int)(100 * (in < slices * each ? in : slices * each) / (slices * each));
}

/* ------------------------------------------------------------------ lines of the file */

static const char *const columns[] = {"t_s",
                                      "user_s",
                                      "system_s",
                                      "sampler_s",
                                      "updates",
                                      "read_bytes",
                                      "write_bytes",
                                      "storage_read_bytes",
                                      "storage_write_bytes",
                                      "device_read_bytes",
                                      "device_write_bytes",
                                      "minor_faults",
                                      "major_faults",
                                      "swap_in_bytes",
                                      "swap_out_bytes",
                                      "reclaimed_bytes",
                                      "refault_bytes",
                                      "anon_bytes",
                                      "cache_bytes",
                                      "dirty_bytes",
                                      "writeback_bytes"};
enum { N_COLUMNS = sizeof columns / sizeof columns[0], N_SECONDS = 4 };

static const char *const names_of_buffers[MX_TIMELINE_BUFFERS] = {"source", "target", "spare"};

static void write_header(mx_timeline *t) {
    static const char *const names[] = {"cachestat", "mincore", "none"};
    struct mx_device_facts facts = {.size = sizeof facts};
    json_t *o = json_object(), *list = json_array(), *buffers = json_array();
    mx_device_facts(t->o.device, &facts);
    json_object_set_new(o, "memext_timeline", json_integer(1));
    json_object_set_new(o, "interval_s", json_real(t->o.interval_s));
    json_object_set_new(o, "start_unix_s", json_integer((json_int_t)time(NULL)));
    if (t->o.ranks > 1) {
        json_object_set_new(o, "rank", json_integer(t->o.rank));
        json_object_set_new(o, "ranks", json_integer(t->o.ranks));
    }
    json_object_set_new(o, "backend", json_string(facts.backend));
    json_object_set_new(o, "problem", mx_json_problem(t->o.problem));
    json_object_set_new(o, "plan", mx_json_plan(t->o.plan));
    for (int i = 0; i < t->o.n_buffers; i++) {
        json_t *b = json_object();
        json_object_set_new(b, "name",
                            json_string(t->o.names[i] != NULL ? t->o.names[i] : names_of_buffers[i]));
        json_object_set_new(b, "offset_bytes", json_integer((json_int_t)t->o.buffer_offset_bytes[i]));
        json_object_set_new(b, "bytes", json_integer((json_int_t)t->o.buffer_bytes[i]));
        json_array_append_new(buffers, b);
    }
    json_object_set_new(o, "buffers", buffers);
    json_object_set_new(o, "bins", json_integer(t->residency == BY_NOTHING ? 0 : t->o.bins));
    json_object_set_new(o, "residency", json_string(names[t->residency]));
    for (int i = 0; i < N_COLUMNS; i++) json_array_append_new(list, json_string(columns[i]));
    json_object_set_new(o, "columns", list);
    json_dumpf(o, t->file, JSON_COMPACT);
    fputc('\n', t->file);
    json_decref(o);
}

static void write_residency(mx_timeline *t, bool last) {
    uint64_t begin_ns = mx_thread_cpu_ns();
    if (t->residency == BY_NOTHING || (mx_clock_ns() < t->residency_due_ns && !last)) return;
    fprintf(t->file, ",\"r\":[");
    for (int b = 0; b < t->o.n_buffers; b++) {
        fprintf(t->file, b == 0 ? "[" : ",[");
        for (int i = 0; i < t->o.bins; i++) fprintf(t->file, i == 0 ? "%d" : ",%d", bin_percent(t, b, i));
        fprintf(t->file, "]");
    }
    fprintf(t->file, "]");
    uint64_t cost_ns = mx_thread_cpu_ns() - begin_ns;
    t->residency_due_ns = mx_clock_ns() + RESIDENCY_SHARE * cost_ns - cost_ns;
}

static void count(const mx_timeline *t, struct mx_counters *out) {
    mx_device_counters(t->o.device, out);
    for (int32_t i = 0; i < t->o.n_files; i++) {
        struct mx_counters c = {.size = sizeof c};
        if (t->o.files[i] == NULL) continue;
        mx_device_counters(t->o.files[i], &c);
        out->read_bytes += c.read_bytes;
    }
}

static void write_sample(mx_timeline *t, bool last) {
    struct mx_usage u = mx_usage_since(&t->usage, &t->start_usage);
    struct mx_counters c = {.size = sizeof c};
    struct mx_memory_stat m;
    uint64_t d[2];
    count(t, &c);
    device_bytes(t, d);
    mx_machine_memory_stat(t->memory, &m);
    uint64_t v[N_COLUMNS - N_SECONDS] = {(uint64_t)atomic_load(&t->updates),
                                         c.read_bytes - t->start_counters.read_bytes,
                                         c.write_bytes - t->start_counters.write_bytes,
                                         u.storage_read_bytes,
                                         u.storage_write_bytes,
                                         d[0] - t->start_device[0],
                                         d[1] - t->start_device[1],
                                         u.minor_faults,
                                         u.major_faults,
                                         u.swap_in_bytes,
                                         u.swap_out_bytes,
                                         u.reclaimed_bytes,
                                         u.refault_bytes,
                                         m.anon_bytes,
                                         m.cache_bytes,
                                         m.dirty_bytes,
                                         m.writeback_bytes};
    fprintf(t->file, "{\"s\":[%.4f,%.3f,%.3f,%.5f", (double)(mx_clock_ns() - t->start_ns) * 1e-9,
            (double)u.user_us * 1e-6, (double)u.system_us * 1e-6, (double)mx_thread_cpu_ns() * 1e-9);
    for (int i = 0; i < N_COLUMNS - N_SECONDS; i++) fprintf(t->file, ",%llu", (unsigned long long)v[i]);
    fprintf(t->file, "]");
    write_residency(t, last);
    fprintf(t->file, "}\n");
}

static double since_start(const mx_timeline *t, uint64_t ns) {
    return ns > t->start_ns ? (double)(ns - t->start_ns) * 1e-9 : 0;
}

static void write_event(const mx_timeline *t, const struct event *e) {
    fprintf(t->file, "{\"e\":\"%s\",\"t\":[%.6f,%.6f],\"y\":[%lld,%lld],\"z\":[%lld,%lld],\"n\":%llu}\n",
            e->name, since_start(t, e->begin_ns), since_start(t, e->end_ns), (long long)e->y[0],
            (long long)e->y[1], (long long)e->z[0], (long long)e->z[1], (unsigned long long)e->amount);
}

/* ------------------------------------------------------------------ the trace */

/* Rows of the trace. Transfers overlap each other, so each is an asynchronous event with an id of its own;
 * the others follow one another. */
static const struct row {
    const char *name, *amount;
    bool overlaps;
} rows[] = {{"sweep", "time_steps", false}, {"advance", "updates", false},  {"copy", "bytes", false},
            {"wait", "bytes", false},       {"commit", "time_steps", true}, {"load", "bytes", true},
            {"store", "bytes", true},       {"load-faces", "bytes", true},  {"store-faces", "bytes", true},
            {"feed", "bytes", true},        {"take", "bytes", true}};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static void trace_event(const mx_timeline *t, const struct event *e, uint64_t id) {
    FILE *f = t->trace;
    int row = 0;
    while (row < N_ROWS - 1 && strcmp(rows[row].name, e->name) != 0) row++;
    const int pid = t->o.rank + 1;
    id += (uint64_t)t->o.rank << 40; /* ids are of all processes together */
    fprintf(f, ",\n{\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,", e->name,
            rows[row].overlaps ? "io" : "run", pid, row, since_start(t, e->begin_ns) * 1e6);
    if (rows[row].overlaps)
        fprintf(f, "\"ph\":\"b\",\"id\":%llu,", (unsigned long long)id);
    else
        fprintf(f, "\"ph\":\"X\",\"dur\":%.3f,", (double)(e->end_ns - e->begin_ns) * 1e-3);
    fprintf(f, "\"args\":{\"y0\":%lld,\"y1\":%lld,\"z0\":%lld,\"z1\":%lld,\"%s\":%llu}}", (long long)e->y[0],
            (long long)e->y[1], (long long)e->z[0], (long long)e->z[1], rows[row].amount,
            (unsigned long long)e->amount);
    if (rows[row].overlaps)
        fprintf(
            f,
            ",\n{\"name\":\"%s\",\"cat\":\"io\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"ph\":\"e\",\"id\":%llu}",
            e->name, pid, row, since_start(t, e->end_ns) * 1e6, (unsigned long long)id);
}

/* Trace Event Format, as Chrome and Perfetto read it: one object with an array that grows as the run goes on.
 */
static void begin_trace(const mx_timeline *t) {
    const int pid = t->o.rank + 1;
    char name[32] = "memext";
    if (t->o.ranks > 1) snprintf(name, sizeof name, "rank %d", t->o.rank);
    fputs(t->o.rank > 0 ? ",\n" : "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", t->trace);
    fprintf(t->trace, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"%s\"}}", pid,
            name);
    for (int i = 0; i < N_ROWS; i++)
        fprintf(t->trace,
                ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s\"}}",
                pid, i, rows[i].name);
}

const char mx_timeline_trace_end[] = "\n]}\n";

static void end_trace(const mx_timeline *t) {
    if (t->o.ranks <= 1) fputs(mx_timeline_trace_end, t->trace);
}

/* ------------------------------------------------------------------ writing out */

/* Writes the events that are new and forgets them. Whoever finds no room calls it as well as the sampler: the
 * halves change places under both locks, so that events keep their order and the computing thread waits for a
 * file only when it has filled one half while the other was being written. */
static void flush_events(mx_timeline *t) {
    pthread_mutex_lock(&t->files_lock);
    pthread_mutex_lock(&t->lock);
    const struct event *events = t->events[t->filling];
    size_t n = t->n_events;
    t->filling = 1 - t->filling;
    t->n_events = 0;
    pthread_mutex_unlock(&t->lock);
    for (size_t i = 0; i < n; i++) {
        if (t->file != NULL) write_event(t, &events[i]);
        if (t->trace != NULL) trace_event(t, &events[i], t->written + i);
    }
    t->written += n;
    pthread_mutex_unlock(&t->files_lock);
}

static void *sampler(void *argument) {
    mx_timeline *t = argument;
    bool stop = false;
    for (uint64_t k = 0; !stop; k++) {
        uint64_t due = t->start_ns + (uint64_t)((double)k * t->o.interval_s * 1e9);
        struct timespec until = {(time_t)(due / 1000000000u), (long)(due % 1000000000u)};
        pthread_mutex_lock(&t->lock);
        while (!t->stop && pthread_cond_timedwait(&t->wake, &t->lock, &until) != ETIMEDOUT) {
        }
        stop = t->stop;
        pthread_mutex_unlock(&t->lock);
        flush_events(t);
        pthread_mutex_lock(&t->files_lock);
        write_sample(t, stop);
        pthread_mutex_unlock(&t->files_lock);
        uint64_t late = (uint64_t)((double)(mx_clock_ns() - t->start_ns) * 1e-9 / t->o.interval_s);
        if (late > k) k = late; /* a slow sample is not made good by a burst */
    }
    return NULL;
}

/* ------------------------------------------------------------------ interface */

/* 0, or -EIO if anything since the opening could not be written. */
static int close_file(FILE **file) {
    int err = *file != NULL && ferror(*file) ? -EIO : 0;
    if (*file != NULL && fclose(*file) == EOF) err = -EIO;
    *file = NULL;
    return err;
}

static void timeline_free(mx_timeline *t) {
    for (int i = 0; i < MX_TIMELINE_BUFFERS; i++)
        if (t->view[i] != NULL) munmap(t->view[i], t->o.buffer_bytes[i]);
    if (t->fd >= 0) close(t->fd);
    if (t->memory >= 0) close(t->memory);
    if (t->device_stat >= 0) close(t->device_stat);
    mx_usage_close(&t->usage);
    close_file(&t->file);
    close_file(&t->trace);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->files_lock);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* *out holds the stream that was given instead of a path. */
static int open_file(const char *what, const char *path, mx_why *why, FILE **out) {
    if (path != NULL) *out = fopen(path, "we");
    if (*out == NULL && path != NULL)
        return mx_fail(why, -errno, "the %s cannot be written to %s: %s", what, path, strerror(errno));
    return 0;
}

static int start_sampler(mx_timeline *t, mx_why *why) {
    t->memory = mx_machine_memory_open();
    t->device_stat = open_device_stat(t->o.place);
    device_bytes(t, t->start_device);
    t->residency = find_residency(t);
    write_header(t);
    int err = mx_thread_start(&t->thread, sampler, t);
    if (err < 0) return mx_fail(why, err, "no thread for the timeline: %s", mx_no_thread(err).text);
    t->running = true;
    return 0;
}

int mx_timeline_start(const struct mx_timeline_options *options, mx_why *why, mx_timeline **out) {
    mx_timeline *t = calloc(1, sizeof *t);
    pthread_condattr_t attributes;
    int err = 0;
    if (t == NULL) return mx_fail(why, -ENOMEM, "no memory for the timeline");
    t->o = *options;
    t->file = options->file;
    t->trace = options->trace;
    if (t->o.n_buffers <= 0) t->o.n_buffers = 2;
    t->fd = t->memory = t->device_stat = -1;
    t->page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (!(t->o.interval_s > 0)) t->o.interval_s = 0.1;
    if (t->o.bins <= 0) t->o.bins = DEFAULT_BINS;
    pthread_mutex_init(&t->lock, NULL);
    pthread_mutex_init(&t->files_lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&t->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    t->usage = mx_usage_open();
    t->start_usage = mx_usage_now(&t->usage);
    t->start_counters.size = sizeof t->start_counters;
    count(t, &t->start_counters);
    t->start_ns = mx_clock_ns();
    err = open_file("timeline", t->o.path, why, &t->file);
    if (err == 0) err = open_file("trace", t->o.trace_path, why, &t->trace);
    if (err == 0 && t->trace != NULL) begin_trace(t);
    if (err == 0 && t->file != NULL) err = start_sampler(t, why);
    if (err < 0) return timeline_free(t), err;
    *out = t;
    return 0;
}

void mx_timeline_updates(mx_timeline *t, int64_t done) {
    if (t != NULL) atomic_store(&t->updates, done);
}

void mx_timeline_event(mx_timeline *t, const char *name, uint64_t begin_ns, uint64_t end_ns,
                       const int64_t y[2], const int64_t z[2], uint64_t amount) {
    if (t == NULL) return;
    pthread_mutex_lock(&t->lock);
    while (t->n_events == EVENTS) {
        pthread_mutex_unlock(&t->lock);
        flush_events(t);
        pthread_mutex_lock(&t->lock);
    }
    t->events[t->filling][t->n_events++] =
        (struct event){name, begin_ns, end_ns, amount, {y[0], y[1]}, {z[0], z[1]}};
    pthread_mutex_unlock(&t->lock);
}

static const char *name_of(const char *path, const char *name) {
    return path != NULL ? path : name != NULL ? name : "its file";
}

int mx_timeline_stop(mx_timeline *t, mx_why *why) {
    if (t == NULL) return 0;
    if (t->running) {
        pthread_mutex_lock(&t->lock);
        t->stop = true;
        pthread_cond_signal(&t->wake);
        pthread_mutex_unlock(&t->lock);
        pthread_join(t->thread, NULL);
    }
    flush_events(t);
    if (t->trace != NULL) end_trace(t);
    int timeline = close_file(&t->file), trace = close_file(&t->trace);
    if (timeline < 0)
        mx_fail(why, timeline, "the timeline could not be written to %s", name_of(t->o.path, t->o.file_name));
    if (timeline == 0 && trace < 0)
        mx_fail(why, trace, "the trace could not be written to %s",
                name_of(t->o.trace_path, t->o.trace_name));
    timeline_free(t);
    return timeline < 0 ? timeline : trace;
}
