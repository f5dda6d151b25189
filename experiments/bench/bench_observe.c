/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_observe.c - what --timeline costs: the same run many times over in one process, observed and not.
 *
 *     bench_observe [--rounds N] [--control] -- -n 510 510 254 -t 16 --backend dram     (options of memext
 * run)
 *
 * A round is eight runs, plain (A) and observed (B) as ABBABAAB, so a machine that becomes slower or faster
 * by degrees meets both alike; one process with the same memory leaves out what differs between processes.
 * Its ratio is that of the faster half of either: what disturbs a run only ever makes it slower. The observed
 * runs have the observer of memext run: its sampler, interval, columns, residency and events. Its start and
 * end, which come once in a run, are outside of the times and stated by themselves. --control: B is plain
 * too, which shows the noise. Prints one JSON object; "slower" is in parts of the plain time, with the
 * standard error of the median of the rounds.
 */
#include "cli/options.h"
#include "engine/engine.h"
#include "execute/execute.h"
#include "machine/clock.h"
#include "observe/timeline.h"
#include "run/open/request.h"
#include "run/work/engine.h"
#include "schedule/schedule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ROUNDS = 1000, RUNS = 8, EACH = RUNS / 2, SETTLE_NS = 30000000 };
static const bool second[RUNS] = {false, true, true, false, true, false, false, true};

struct bench {
    struct mx_options o;
    struct mx_machine machine;
    const struct mx_backend *backend;
    struct mx_tune_result tuned;
    mx_device *device;
    struct mx_device_facts facts;
    mx_budget *budget;
    mx_buffer *buffer[2];
    const struct mx_engine_ops *ops;
    mx_engine *engine;
    mx_timeline *timeline;
    bool control;
    char file[64]; /* of the timeline */
};

struct one {
    double wall_s, cpu_s, sampler_s, ends_s; /* ends: start and end of the observer */
};

static void check(int err, const mx_why *why) {
    if (err >= 0) return;
    fprintf(stderr, "bench_observe: %s\n", why->text[0] != 0 ? why->text : strerror(-err));
    exit(1);
}

/* ---- as memext run does it */

static void plan(struct bench *b) {
    struct mx_tune_request q = {.style = mx_style_of(b->backend)};
    mx_why why = {""};
    q.dram_bytes = b->o.dram_bytes > 0 ? b->o.dram_bytes : mx_machine_dram_bytes(&b->machine);
    mx_take_request(&b->o, &b->machine, &q);
    q.offset_align_bytes = mx_place_align(&b->o, b->backend, NULL);
    if (q.offset_align_bytes == 0) q.offset_align_bytes = 64;
    check(mx_take_rates(&b->o, b->backend, &b->machine, q.dram_bytes, &why, &q.rates), &why);
    check(mx_tune(&q, &why, &b->tuned), &why);
    check(mx_budget_create(q.dram_bytes, 0, &why, &b->budget), &why);
    if (mx_execute_seam_bytes(&b->tuned.shape, &b->tuned.layout) > 0) {
        fprintf(stderr, "bench_observe: this plan keeps faces in a side file; take a smaller plane\n");
        exit(2);
    }
}

static void open_buffers(struct bench *b) {
    static const char *const names[2] = {"source", "target"};
    struct mx_layout *l = &b->tuned.layout;
    mx_why why = {""};
    struct mx_device_options d = {.backend = b->backend->name,
                                  .path = b->o.path,
                                  .expect_bytes = 2 * (uint64_t)l->buffer_bytes,
                                  .advice = b->o.advice};
    check(mx_device_open(&d, &why, &b->device), &why);
    mx_device_facts(b->device, &b->facts);
    struct mx_fill fill = {.problem = &b->o.problem, .layout = l, .init = mx_init_find(mx_inits[0].name)};
    for (int i = 0; i < 2; i++) {
        check(mx_buffer_create(b->device, names[i], (uint64_t)l->buffer_bytes, &why, &b->buffer[i]), &why);
        check(mx_field_write(b->buffer[i], l, b->budget, NULL, mx_fill_plane, &fill, &why), &why);
    }
}

static void make_engine(struct bench *b) {
    struct mx_plan *p = &b->tuned.plan;
    mx_why why = {""};
    struct mx_engine_options e =
        mx_take_engine(&b->o.problem, &b->machine, p, &b->tuned.layout, &b->tuned.shape);
    b->ops = mx_engine_find(p->engine);
    check(b->ops->create(&e, &why, &b->engine), &why);
    b->ops->describe(b->engine, p);
}

static void on_progress(void *context, int64_t done) {
    mx_timeline_updates(((struct bench *)context)->timeline, done);
}

static void on_event(void *context, const struct mx_event *e) {
    mx_timeline_event(((struct bench *)context)->timeline, e->waiting ? "wait" : "advance", e->begin_ns,
                      e->end_ns, (int64_t[2]){e->region.y0, e->region.y1},
                      (int64_t[2]){e->region.z0, e->region.z1}, e->amount);
}

static void start_timeline(struct bench *b) {
    struct mx_timeline_options t = {.path = b->file,
                                    .problem = &b->o.problem,
                                    .plan = &b->tuned.plan,
                                    .device = b->device,
                                    .place = b->backend->anonymous ? "" : b->facts.place};
    mx_why why = {""};
    for (int i = 0; i < 2; i++) {
        t.buffer_bytes[i] = (uint64_t)b->tuned.layout.buffer_bytes;
        t.buffer_offset_bytes[i] = mx_buffer_offset(b->buffer[i]);
        if (b->backend->anonymous && mx_style_of(b->backend) != MX_TUNE_RESIDENT)
            mx_buffer_map(b->buffer[i], NULL, &t.mapped[i]);
    }
    check(mx_timeline_start(&t, &why, &b->timeline), &why);
}

/* ---- one run */

static double cpu_s(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

/* The fourth value of the last sample: see timeline.h. */
static double sampler_s(const char *path) {
    static char line[1 << 16];
    double last = 0, s;
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "{\"s\":[%*f,%*f,%*f,%lf", &s) == 1) last = s;
    if (f != NULL) fclose(f);
    return last;
}

static struct one run(struct bench *b, bool observe) {
    const struct mx_algorithm *algorithm = mx_algorithm_find(b->tuned.plan.algorithm);
    struct mx_execution x = {.problem = &b->o.problem,
                             .plan = &b->tuned.plan,
                             .layout = &b->tuned.layout,
                             .device = b->device,
                             .buffer = {b->buffer[0], b->buffer[1]},
                             .n_buffers = 2,
                             .committed = -1,
                             .budget = b->budget,
                             .mapped = b->facts.mapped,
                             .lock = b->backend->locks_blocks,
                             .progress = on_progress,
                             .event = observe ? on_event : NULL,
                             .context = b};
    struct mx_schedule *schedule;
    struct mx_executed done;
    struct one one = {0};
    mx_why why = {""};
    const uint64_t begin_ns = mx_clock_ns();
    if (observe) start_timeline(b);
    one.ends_s = 1e-9 * (double)(mx_clock_ns() - begin_ns);
    nanosleep(&(struct timespec){0, SETTLE_NS}, NULL); /* the first sample, which start brings */
    check(algorithm->open(&b->o.problem, &b->tuned.plan, 0, 0, &schedule), &why);
    const double cpu = cpu_s();
    check(mx_execute(&x, schedule, b->ops, b->engine, &why, &done), &why);
    one.cpu_s = cpu_s() - cpu;
    one.wall_s = 1e-9 * (double)done.total_ns;
    schedule->ops->close(schedule);
    const uint64_t end_ns = mx_clock_ns();
    check(mx_timeline_stop(b->timeline, &why), &why);
    b->timeline = NULL;
    if (observe) one.ends_s += 1e-9 * (double)(mx_clock_ns() - end_ns);
    if (observe) one.sampler_s = sampler_s(b->file);
    return one;
}

/* ---- statistics */

static int ascending(const void *a, const void *b) {
    double d = *(const double *)a - *(const double *)b;
    return (d > 0) - (d < 0);
}

static double quantile(const double *sorted, int n, double q) {
    double at = q * (n - 1);
    int i = (int)at;
    return i + 1 < n ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

/* Median of the rounds' ratios less 1 and its standard error, as of a normal distribution with the same
 * quartiles. */
static void say(const char *name, const double *ratio, int n) {
    static double sorted[MOST_ROUNDS];
    memcpy(sorted, ratio, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    double spread = (quantile(sorted, n, 0.75) - quantile(sorted, n, 0.25)) / 1.349;
    printf(", \"%s_slower\": %.5f, \"%s_error\": %.5f", name, quantile(sorted, n, 0.5) - 1, name,
           sqrt(M_PI / 2 / n) * spread);
}

static double faster_half(double *times) {
    double sum = 0;
    qsort(times, EACH, sizeof *times, ascending);
    for (int i = 0; i < EACH / 2; i++) sum += times[i];
    return sum;
}

struct sums {
    double plain_s, observed_s, sampler_s, ends_s;
};

static void round_of_runs(struct bench *b, struct sums *sums, double *wall, double *cpu) {
    double w[2][EACH], c[2][EACH];
    int n[2] = {0, 0};
    for (int k = 0; k < RUNS; k++) {
        const int kind = second[k];
        const struct one one = run(b, kind && !b->control);
        w[kind][n[kind]] = one.wall_s, c[kind][n[kind]++] = one.cpu_s;
        *(kind ? &sums->observed_s : &sums->plain_s) += one.wall_s;
        sums->sampler_s += one.sampler_s, sums->ends_s += one.ends_s;
    }
    *wall = faster_half(w[1]) / faster_half(w[0]);
    *cpu = faster_half(c[1]) / faster_half(c[0]);
}

static void measure(struct bench *b, int rounds) {
    static double wall[MOST_ROUNDS], cpu[MOST_ROUNDS];
    struct sums sums = {.plain_s = 0};
    const struct mx_plan *p = &b->tuned.plan;
    const double runs = (double)EACH * rounds;
    run(b, false), run(b, !b->control); /* warm up */
    for (int i = 0; i < rounds; i++) round_of_runs(b, &sums, &wall[i], &cpu[i]);
    printf("{\"backend\": \"%s\", \"algorithm\": \"%s\", \"engine\": \"%s\", \"bt\": %lld, \"threads\": %d, "
           "\"control\": %s, \"rounds\": %d, \"run_s\": %.4f",
           b->backend->name, p->algorithm, p->engine, (long long)p->bt, p->threads,
           b->control ? "true" : "false", rounds, sums.plain_s / runs);
    say("wall", wall, rounds);
    say("cpu", cpu, rounds);
    printf(", \"sampler_share_of_a_core\": %.5f, \"start_and_end_s\": %.5f, \"ratios\": [",
           sums.sampler_s / (sums.observed_s + runs * 1e-9 * SETTLE_NS), sums.ends_s / runs);
    for (int i = 0; i < rounds; i++) printf("%s%.4f", i > 0 ? ", " : "", wall[i]);
    printf("]}\n");
}

int main(int argc, char **argv) {
    static struct bench b;
    mx_why why = {""};
    int rounds = 40, first = 1;
    if (argc > first + 1 && strcmp(argv[first], "--rounds") == 0) rounds = atoi(argv[first + 1]), first += 2;
    if (argc > first && strcmp(argv[first], "--control") == 0) b.control = true, first++;
    if (argc <= first || strcmp(argv[first], "--") != 0 || rounds < 2 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: bench_observe [--rounds N: 2 to %d] [--control] -- OPTIONS OF memext run\n",
                MOST_ROUNDS);
        return 2;
    }
    check(mx_options_parse(MX_CMD_RUN, argc - first, argv + first, &why, &b.o), &why);
    check(mx_take_backend(&b.o, &why, &b.backend), &why);
    check(mx_machine_detect(&why, &b.machine), &why);
    snprintf(b.file, sizeof b.file, "/tmp/bench_observe.%d", (int)getpid());
    plan(&b);
    open_buffers(&b);
    make_engine(&b);
    measure(&b, rounds);
    unlink(b.file);
    b.ops->free(b.engine);
    for (int i = 0; i < 2; i++) mx_buffer_close(b.buffer[i]);
    mx_device_close(b.device);
    return 0;
}
