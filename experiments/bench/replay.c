/* SPDX-License-Identifier: BSD-3-Clause */
/* replay.c - the tiled engine's own scheduler in virtual time: what it would do on more cores than are here.
 *
 * The calls are those of a schedule (stream, or one call for a grid in DRAM), the engine is
 * runtime/engine/tiled*.c with runtime/engine/flow.c: lines, tiles, spans, what waits for what and who takes
 * what are theirs. Replaced (ld --wrap) are the threads of runtime/engine/team.c, each of which is a context
 * of this one thread here, and the kernels, which compute nothing: a tile takes the time that this program
 * reckons. The first tile to end in virtual time goes on first. Nothing depends on the machine it runs on.
 *
 * Time of a tile, from figures measured on one core (--real, experiments/cores.py):
 *
 *     cells in place * place_ns + other cells * two_ns + lines that are not in the group's L3 * line_ns
 *
 * A group of cores has an L3. What a tile reads beside its own cells was left by the tile of the slab, chunk
 * or column before: it is in L3 if that one was done in the same group, and what the group has touched since
 * fits there with it; with another group if the same holds there; else it comes from DRAM, to which as many
 * bytes return. Bytes of all tiles under way come at no more than the machine's DRAM, and each group's link,
 * can give: tiles that need any go on at the share of their speed that is left.
 *
 * --real runs the same calls on real threads, with data, and measures. --check notes the level of every row
 * and that nobody reads or replaces what another thread is at.
 *
 * Not simulated: transfers (as if always in time), the operating system, SMT, NUMA, clocks that fall with the
 * number of cores at work, contention for the counters of lines.
 */
#include "engine/flow.h"
#include "engine/resident.h"
#include "engine/team.h"
#include "engine/work.h"
#include "grid/grid.h"
#include "schedule/schedule.h"
#include "stencil/stencil.h"
#include "tune/tune.h"

#include <getopt.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

enum { MOST_CORES = 1024, MOST_UNDER_WAY = MX_FLOW_JOBS, STACK_BYTES = 256 << 10, LINE_BYTES = 64 };
enum { MOST_BOXES = 4096, LEFT_SLOTS = 1 << 20 };

_Noreturn static void end(const char *sentence) {
    fprintf(stderr, "replay: %s\n", sentence);
    exit(1);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ------------------------------------------------------------------ what is asked for */

static struct asked {
    struct mx_problem problem;
    struct mx_plan plan;
    struct mx_machine machine;
    int cores, group, under_way, seconds;
    bool in_dram;     /* one call for the whole grid */
    bool real, in_l3; /* in_l3: all planes at the same place */
    bool check;
    double place_ns, two_ns, line_ns; /* of a cell, of a line */
    double bytes_per_ns, group_bytes_per_ns, core_bytes_per_ns;
    double l3_share; /* of an L3 that holds what was touched last */
} asked = {.problem = {.nx = 510, .ny = 510, .nz = 510, .nt = 128},
           .plan = {.engine = "tiled", .seams = MX_SEAMS_IN_DRAM},
           .machine = {.l1_bytes = 32 << 10, .l2_bytes = 512 << 10, .l3_bytes = 32 << 20},
           .cores = 2,
           .group = 8,
           .under_way = 2,
           .place_ns = 0.27,
           .two_ns = 0.45,
           .line_ns = 1.0,
           .bytes_per_ns = 160,
           .group_bytes_per_ns = 50,
           .core_bytes_per_ns = 20,
           .l3_share = 0.75};

/* ------------------------------------------------------------------ a tile, as its kernels are called */

struct tile_work {
    double place_cells, two_cells;
    double first_bytes, slab_bytes, row_bytes; /* left by the chunk, by the slab, by the tile before */
    int thread;
    int boxes;
    struct {
        struct mx_box box;
        int to;
    } box[MOST_BOXES]; /* --check: what it writes */
};
static _Thread_local struct tile_work *doing;

/* ------------------------------------------------------------------ --check */

static struct {
    int64_t rows, planes;
    int64_t *level;   /* [plane][row], done */
    int16_t *busy[2]; /* thread + 1 that is at it in virtual time */
    int64_t broken, computed;
} seen;

static int64_t at_row(int64_t y, int64_t z) { return z * seen.rows + y; }

static bool is_inside(int64_t y, int64_t z) {
    const int64_t h = asked.problem.h;
    return y >= h && y < asked.problem.ny + h && z >= h && z < asked.problem.nz + h;
}

static void look_at(int64_t y, int64_t z, int64_t level, int from, bool own) {
    const int64_t at = at_row(y, z), have = seen.level[at];
    const int16_t by = seen.busy[from][at];
    seen.broken += have != level && (own || have != level + 1);
    seen.broken += by != 0 && by != doing->thread + 1;
    if (own) seen.broken += seen.busy[1 - from][at] != 0 && seen.busy[1 - from][at] != doing->thread + 1;
}

static void check_box(struct mx_box b, int64_t level, int from) {
    const int64_t h = asked.problem.h;
    if (seen.level == NULL) return;
    if (doing->boxes == MOST_BOXES) end("a tile of too many boxes");
    for (int64_t z = b.z0 - h; z < b.z1 + h; z++)
        for (int64_t y = b.y0 - h; y < b.y1 + h; y++)
            if (is_inside(y, z)) look_at(y, z, level, from, y >= b.y0 && y < b.y1 && z >= b.z0 && z < b.z1);
    for (int64_t z = b.z0; z < b.z1; z++)
        for (int64_t y = b.y0; y < b.y1; y++) {
            seen.level[at_row(y, z)] = level + 1;
            seen.busy[1 - from][at_row(y, z)] = (int16_t)(doing->thread + 1);
            seen.computed++;
        }
    doing->box[doing->boxes].box = b;
    doing->box[doing->boxes++].to = 1 - from;
}

static void leave_boxes(const struct tile_work *w) {
    for (int i = 0; i < w->boxes; i++) {
        const struct mx_box b = w->box[i].box;
        for (int64_t z = b.z0; z < b.z1; z++)
            for (int64_t y = b.y0; y < b.y1; y++) seen.busy[w->box[i].to][at_row(y, z)] = 0;
    }
}

static void check_make(void) {
    const int64_t h = asked.problem.h;
    seen.rows = asked.problem.ny + 2 * h, seen.planes = asked.problem.nz + 2 * h;
    const size_t n = (size_t)(seen.rows * seen.planes);
    seen.level = calloc(n, sizeof *seen.level);
    for (int i = 0; i < 2; i++) seen.busy[i] = calloc(n, sizeof *seen.busy[i]);
    if (seen.level == NULL || seen.busy[0] == NULL || seen.busy[1] == NULL) end("no memory for --check");
}

static void check_end(void) {
    const struct mx_problem *p = &asked.problem;
    for (int64_t z = 0; z < seen.planes; z++)
        for (int64_t y = 0; y < seen.rows; y++)
            seen.broken += seen.level[at_row(y, z)] != (is_inside(y, z) ? p->nt : 0);
    seen.broken += seen.computed != p->ny * p->nz * p->nt;
}

/* ------------------------------------------------------------------ kernels (ld --wrap) */

void __real_mx_work_box(const struct mx_work *work, const struct mx_advance *a, int32_t l, struct mx_box box,
                        struct mx_ahead *ahead);
void __wrap_mx_work_box(const struct mx_work *work, const struct mx_advance *a, int32_t l, struct mx_box box,
                        struct mx_ahead *ahead);
void __real_mx_resident_level(const struct mx_resident *resident, const struct mx_work *work,
                              const struct mx_view *view, int thread, const struct mx_resident_level *level,
                              struct mx_ahead *ahead);
void __wrap_mx_resident_level(const struct mx_resident *resident, const struct mx_work *work,
                              const struct mx_view *view, int thread, const struct mx_resident_level *level,
                              struct mx_ahead *ahead);
void __real_mx_seam_insert(const struct mx_work *work, const struct mx_advance *a, int32_t level,
                           struct mx_box box);
void __wrap_mx_seam_insert(const struct mx_work *work, const struct mx_advance *a, int32_t level,
                           struct mx_box box);
void __real_mx_seam_save(const struct mx_work *work, const struct mx_advance *a, int32_t level,
                         struct mx_box box);
void __wrap_mx_seam_save(const struct mx_work *work, const struct mx_advance *a, int32_t level,
                         struct mx_box box);

static void count_box(const struct mx_work *work, struct mx_box b) {
    struct tile_work *w = doing;
    const bool first = w->place_cells + w->two_cells == 0;
    const double row = (double)((b.x1 - b.x0) * mx_dtype_bytes(work->problem->dtype));
    const double rows = (double)(b.y1 - b.y0), planes = (double)(b.z1 - b.z0), h2 = 2.0 * work->h;
    w->slab_bytes += row * rows * h2;
    w->row_bytes += row * planes * h2;
    if (first) w->first_bytes += 2 * row * rows * planes;
}

static double cells_of(struct mx_box b) {
    return (double)((b.x1 - b.x0) * (b.y1 - b.y0)) * (double)(b.z1 - b.z0);
}

void __wrap_mx_work_box(const struct mx_work *work, const struct mx_advance *a, int32_t l, struct mx_box box,
                        struct mx_ahead *ahead) {
    count_box(work, box);
    doing->two_cells += cells_of(box);
    check_box(box, a->first_level + l, (a->parity + l) & 1);
    if (asked.real) __real_mx_work_box(work, a, l, box, ahead);
}

void __wrap_mx_resident_level(const struct mx_resident *resident, const struct mx_work *work,
                              const struct mx_view *view, int thread, const struct mx_resident_level *level,
                              struct mx_ahead *ahead) {
    struct mx_box box = level->box;
    box.x0 = work->h, box.x1 = work->h + work->nx;
    count_box(work, box);
    doing->place_cells += cells_of(box);
    check_box(box, level->level, level->from);
    if (asked.real) __real_mx_resident_level(resident, work, view, thread, level, ahead);
}

void __wrap_mx_seam_insert(const struct mx_work *work, const struct mx_advance *a, int32_t level,
                           struct mx_box box) {
    if (asked.real) __real_mx_seam_insert(work, a, level, box);
}

void __wrap_mx_seam_save(const struct mx_work *work, const struct mx_advance *a, int32_t level,
                         struct mx_box box) {
    if (asked.real) __real_mx_seam_save(work, a, level, box);
}

/* ------------------------------------------------------------------ what tiles leave in L3 */

struct left {
    uint64_t key; /* of a tile */
    int group;
    double touched; /* bytes that the group had touched when it was done */
};

static struct {
    struct left *left; /* [LEFT_SLOTS], by key; a newer one replaces an older one */
    double touched[MOST_CORES];
    int64_t slab[MX_FLOW_JOBS + 1]; /* number of a job's first slab among all, by job */
    int64_t next_slab;
} l3;

static uint64_t key_of(int64_t slab, int64_t column, int64_t chunk, int64_t tile) {
    return (uint64_t)slab << 40 | (uint64_t)(column & 0xff) << 32 | (uint64_t)(chunk & 0xfff) << 20 |
           (uint64_t)(tile & 0xfffff);
}

static struct left *left_at(uint64_t key) {
    return &l3.left[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 44 & (LEFT_SLOTS - 1)];
}

enum where { HERE, ELSEWHERE, DRAM };

static enum where where_is(uint64_t key, int group) {
    const struct left *l = left_at(key);
    const double room = asked.l3_share * (double)asked.machine.l3_bytes;
    if (l->key != key || l3.touched[l->group] - l->touched > room) return DRAM;
    return l->group == group ? HERE : ELSEWHERE;
}

static void leave(uint64_t key, int group, double bytes) {
    l3.touched[group] += bytes;
    *left_at(key) = (struct left){key, group, l3.touched[group]};
}

/* ------------------------------------------------------------------ virtual threads */

enum state { PARKED, SPINNING, BUSY };

struct thread {
    ucontext_t context;
    char *stack;
    enum state state;
    uint64_t generation; /* of the work that it has begun */
    double left_ns;      /* of the tile that it is at, alone on the machine */
    double dram, link;   /* bytes a ns that it needs meanwhile, of DRAM and of the group's link */
    struct tile_work work;
};

static struct {
    struct thread *thread;
    int threads, running; /* -1: the one that posts */
    ucontext_t poster;
    mx_team_fn *fn;
    void *arg;
    uint64_t generation;
    /* of thread time, in ns: */
    double now, busy, useful, slowed;
    double here_bytes, elsewhere_bytes, dram_bytes, place_cells, two_cells;
    int64_t tiles;
} sim = {.running = -1};

static void leave_to_poster(struct thread *t) { swapcontext(&t->context, &sim.poster); }

static void resume(int i) {
    sim.running = i;
    swapcontext(&sim.poster, &sim.thread[i].context);
    sim.running = -1;
}

static void thread_main(void) {
    struct thread *t = &sim.thread[sim.running];
    for (;;) {
        t->state = PARKED;
        if (t->generation == sim.generation) leave_to_poster(t);
        if (t->generation == sim.generation) continue;
        t->generation = sim.generation;
        sim.fn(sim.arg, (int)(t - sim.thread), sim.threads);
    }
}

/* Whoever finds nothing to do finds it for all who look after him. */
static void look_all(bool every) {
    for (int i = 0; i < sim.threads; i++) {
        struct thread *t = &sim.thread[i];
        if (t->state == BUSY || (t->state == PARKED && t->generation == sim.generation)) continue;
        resume(i);
        if (t->state == SPINNING && !every) return;
    }
}

static double slowest(double need, double have) { return need > have && have > 0 ? have / need : 1; }

/* Shares of their speed that are left to threads of each group. */
static void shares(double share[MOST_CORES]) {
    double all = 0, of[MOST_CORES] = {0};
    for (int i = 0; i < sim.threads; i++)
        if (sim.thread[i].state == BUSY) {
            all += sim.thread[i].dram;
            of[i / asked.group] += sim.thread[i].link;
        }
    for (int g = 0; g <= (sim.threads - 1) / asked.group; g++)
        share[g] = fmin(slowest(all, asked.bytes_per_ns), slowest(of[g], asked.group_bytes_per_ns));
}

/* To the end of the first tile that ends. */
static void go_on(void) {
    double share[MOST_CORES], step = INFINITY;
    int first = -1;
    shares(share);
    for (int i = 0; i < sim.threads; i++) {
        const struct thread *t = &sim.thread[i];
        const double speed = t->link > 0 ? share[i / asked.group] : 1;
        if (t->state == BUSY && t->left_ns / speed < step) step = t->left_ns / speed, first = i;
    }
    if (first < 0) end("no tile can go on: the scheduler stands still");
    sim.now += step;
    for (int i = 0; i < sim.threads; i++) {
        struct thread *t = &sim.thread[i];
        if (t->state != BUSY) continue;
        const double speed = t->link > 0 ? share[i / asked.group] : 1;
        t->left_ns -= step * speed;
        sim.busy += step;
        sim.slowed += step * (1 - speed);
    }
    sim.thread[first].left_ns = 0;
    resume(first);
    look_all(false);
}

int __real_mx_team_create(int threads, mx_why *why, mx_team **out);
int __wrap_mx_team_create(int threads, mx_why *why, mx_team **out);
void __real_mx_team_free(mx_team *team);
void __wrap_mx_team_free(mx_team *team);
void __real_mx_team_start(mx_team *team, mx_team_fn *fn, void *arg);
void __wrap_mx_team_start(mx_team *team, mx_team_fn *fn, void *arg);
void __real_mx_wait_round(unsigned *rounds);
void __wrap_mx_wait_round(unsigned *rounds);

int __wrap_mx_team_create(int threads, mx_why *why, mx_team **out) {
    if (asked.real) return __real_mx_team_create(threads, why, out);
    sim.thread = calloc((size_t)threads, sizeof *sim.thread);
    sim.threads = threads;
    if (sim.thread == NULL) return -ENOMEM;
    for (int i = 0; i < threads; i++) {
        struct thread *t = &sim.thread[i];
        t->stack = malloc(STACK_BYTES);
        if (t->stack == NULL || getcontext(&t->context) != 0) return -ENOMEM;
        t->context.uc_stack.ss_sp = t->stack;
        t->context.uc_stack.ss_size = STACK_BYTES;
        makecontext(&t->context, thread_main, 0);
        resume(i);
    }
    *out = NULL;
    return 0;
}

void __wrap_mx_team_free(mx_team *team) {
    if (asked.real) __real_mx_team_free(team);
    for (int i = 0; i < sim.threads; i++) free(sim.thread[i].stack);
    free(sim.thread);
    sim.threads = 0;
}

void __wrap_mx_team_start(mx_team *team, mx_team_fn *fn, void *arg) {
    if (asked.real) {
        __real_mx_team_start(team, fn, arg);
        return;
    }
    sim.fn = fn;
    sim.arg = arg;
    sim.generation++;
    look_all(false);
}

/* Inside a thread: nothing to do now. The one that posts waits until every thread has looked. */
void __wrap_mx_wait_round(unsigned *rounds) {
    if (asked.real) {
        __real_mx_wait_round(rounds);
    } else if (sim.running >= 0) {
        sim.thread[sim.running].state = SPINNING;
        leave_to_poster(&sim.thread[sim.running]);
    } else {
        if (*rounds > 0) go_on();
        ++*rounds;
        look_all(true);
    }
}

/* ------------------------------------------------------------------ tiles in virtual time */

static struct {
    mx_flow_fn *fn;
    void *arg;
    int64_t posted;
} flow;

/* --real: what each thread has measured. */
static struct measured {
    _Alignas(128) double place_s, place_cells, two_s, two_cells;
    struct tile_work work;
} * measured;

struct share_of_tile {
    double bytes;
    enum where where;
};

static void reckon(struct thread *t, int group, const struct mx_flow_tile *tile, int64_t slab) {
    const struct tile_work *w = &t->work;
    const struct share_of_tile part[3] = {
        {w->slab_bytes, where_is(key_of(slab - 1, tile->column, tile->chunk, tile->tile), group)},
        {w->row_bytes, where_is(key_of(slab, tile->column, tile->chunk, tile->tile - 1), group)},
        {w->first_bytes,
         tile->chunk > 0 ? where_is(key_of(slab, tile->column, tile->chunk - 1, tile->tile), group) : DRAM}};
    double bytes[3] = {0}; /* by where */
    for (int i = 0; i < 3; i++) bytes[part[i].where] += part[i].bytes;
    const double cells_ns = w->place_cells * asked.place_ns + w->two_cells * asked.two_ns;
    const double dram = 2 * bytes[DRAM], link = dram + bytes[ELSEWHERE];
    const double lines = (bytes[DRAM] + bytes[ELSEWHERE]) / LINE_BYTES;
    double ns = cells_ns + lines * asked.line_ns;
    if (asked.core_bytes_per_ns > 0) ns = fmax(ns, link / asked.core_bytes_per_ns);
    t->left_ns = ns;
    t->dram = ns > 0 ? dram / ns : 0;
    t->link = ns > 0 ? link / ns : 0;
    sim.useful += cells_ns;
    sim.here_bytes += bytes[HERE], sim.elsewhere_bytes += bytes[ELSEWHERE], sim.dram_bytes += dram;
    sim.place_cells += w->place_cells, sim.two_cells += w->two_cells;
    sim.tiles++;
    leave(key_of(slab, tile->column, tile->chunk, tile->tile), group, w->first_bytes + w->slab_bytes);
}

static void do_real_tile(int thread, const struct mx_flow_tile *tile) {
    struct measured *m = &measured[thread];
    m->work.place_cells = m->work.two_cells = 0;
    doing = &m->work;
    const double begin = now_s();
    flow.fn(flow.arg, thread, tile);
    const double seconds = now_s() - begin;
    if (m->work.two_cells == 0) m->place_s += seconds, m->place_cells += m->work.place_cells;
    if (m->work.place_cells == 0) m->two_s += seconds, m->two_cells += m->work.two_cells;
}

static void do_tile(void *arg, int thread, const struct mx_flow_tile *tile) {
    (void)arg;
    if (asked.real) {
        do_real_tile(thread, tile);
        return;
    }
    struct thread *t = &sim.thread[thread];
    t->work.place_cells = t->work.two_cells = 0;
    t->work.first_bytes = t->work.slab_bytes = t->work.row_bytes = 0;
    t->work.boxes = 0;
    t->work.thread = thread;
    doing = &t->work;
    flow.fn(flow.arg, thread, tile);
    reckon(t, thread / asked.group, tile, l3.slab[tile->job % (MX_FLOW_JOBS + 1)] + tile->slab);
    t->state = BUSY;
    leave_to_poster(t);
    if (seen.level != NULL) leave_boxes(&t->work);
}

int __real_mx_flow_create(int threads, mx_flow_fn *fn, void *arg, mx_why *why, mx_flow **out);
int __wrap_mx_flow_create(int threads, mx_flow_fn *fn, void *arg, mx_why *why, mx_flow **out);
int __real_mx_flow_post(mx_flow *f, const struct mx_flow_job *job);
int __wrap_mx_flow_post(mx_flow *f, const struct mx_flow_job *job);

int __wrap_mx_flow_create(int threads, mx_flow_fn *fn, void *arg, mx_why *why, mx_flow **out) {
    flow.fn = fn;
    flow.arg = arg;
    return __real_mx_flow_create(threads, do_tile, NULL, why, out);
}

void __real_mx_flow_wait(mx_flow *f, int64_t number);
void __wrap_mx_flow_wait(mx_flow *f, int64_t number);

void __wrap_mx_flow_wait(mx_flow *f, int64_t number) {
    while (!asked.real && mx_flow_done(f) < number) go_on();
    __real_mx_flow_wait(f, number);
}

/* Slabs of a job that follows are numbered on from those of the one before. */
int __wrap_mx_flow_post(mx_flow *f, const struct mx_flow_job *job) {
    flow.posted++;
    if (!job->follows) l3.next_slab += 2;
    l3.slab[flow.posted % (MX_FLOW_JOBS + 1)] = l3.next_slab;
    l3.next_slab += job->slabs;
    return __real_mx_flow_post(f, job);
}

/* ------------------------------------------------------------------ calls */

struct under_way {
    int64_t call;
    struct mx_step step;
};

static struct {
    const struct mx_engine_ops *ops;
    mx_engine *engine;
    struct mx_shape shape;
    struct mx_view view;
    char *seams;
    int64_t seam_slab_bytes, calls, done;
    struct under_way under_way[MOST_UNDER_WAY];
} run;

static void wait_for(int64_t call) { run.ops->wait(run.engine, call); }

/* Whether all planes of both have slots of their own, and neither reads a seam that the other writes. */
static bool go_together(const struct mx_step *a, const struct mx_step *b) {
    for (int i = 0; i < 2; i++) {
        const struct mx_planes p = a->touches[i], q = b->touches[i];
        if (p.z0 >= p.z1 || q.z0 >= q.z1) continue;
        const int64_t z0 = mx_min(p.z0 + a->at.z_offset, q.z0 + b->at.z_offset);
        const int64_t z1 = mx_max(p.z1 + a->at.z_offset, q.z1 + b->at.z_offset);
        if (z1 - z0 > run.shape.slots[i]) return false;
    }
    return (a->seam_in < 0 || a->seam_in != b->seam_out) && (a->seam_out < 0 || a->seam_out != b->seam_in) &&
           (a->seam_out < 0 || a->seam_out != b->seam_out);
}

static void make_room(const struct mx_step *step) {
    while (run.calls - run.done >= asked.under_way) wait_for(++run.done);
    for (int64_t c = run.calls; c > run.done; c--)
        if (!go_together(step, &run.under_way[c % MOST_UNDER_WAY].step)) {
            while (run.done < c) wait_for(++run.done);
            return;
        }
}

static void seam_of(const struct mx_step *s, int64_t slot, const int32_t *y, const int32_t *n,
                    struct mx_seam *seam) {
    if (slot < 0) return;
    *seam = (struct mx_seam){.base = run.seams + slot * run.seam_slab_bytes,
                             .planes_per_level = run.shape.seam_planes,
                             .seam_rows = run.shape.seam_rows,
                             .front = s->front,
                             .first_z = s->seam_z,
                             .n_planes = s->seam_nz,
                             .first_y = y,
                             .n_rows = n};
}

/* Tables of a pass, which the schedule has only until its next step. They are never given back: a pass has
 * one set. */
static void keep_tables(struct mx_step *s) {
    static struct {
        int64_t pass;
        bool seams;
        struct mx_window *window;
        int32_t *seam;
    } last;
    const size_t n = (size_t)s->levels + 1;
    const int32_t **seam[6] = {&s->seam_z,    &s->seam_nz,    &s->seam_in_y,
                               &s->seam_in_n, &s->seam_out_y, &s->seam_out_n};
    if (last.window == NULL || last.pass != s->pass || last.seams != (s->seam_z != NULL)) {
        last.pass = s->pass, last.seams = s->seam_z != NULL;
        last.window = malloc(n * sizeof *last.window);
        last.seam = calloc(6 * n, sizeof *last.seam);
        if (last.window == NULL || last.seam == NULL) end("no memory for the tables of a pass");
        memcpy(last.window, s->window, (n - 1) * sizeof *last.window);
        for (size_t i = 0; i < 6; i++)
            if (*seam[i] != NULL) memcpy(last.seam + i * n, *seam[i], n * sizeof(int32_t));
    }
    s->window = last.window;
    for (size_t i = 0; i < 6 && last.seams; i++) *seam[i] = last.seam + i * n;
}

static void post_step(struct mx_step *s) {
    keep_tables(s);
    make_room(s);
    struct mx_advance a = {.view = run.view,
                           .first_level = s->first_level,
                           .parity = s->parity,
                           .levels = s->levels,
                           .window = s->window,
                           .front = s->front,
                           .first = s->first,
                           .end = s->end};
    a.view.y_offset = s->at.y_offset;
    a.view.z_offset = s->at.z_offset;
    seam_of(s, s->seam_in, s->seam_in_y, s->seam_in_n, &a.seam_in);
    seam_of(s, s->seam_out, s->seam_out_y, s->seam_out_n, &a.seam_out);
    run.calls = run.ops->post(run.engine, &a);
    run.under_way[run.calls % MOST_UNDER_WAY] = (struct under_way){run.calls, *s};
}

static void stream(const struct mx_algorithm *algorithm) {
    struct mx_schedule *schedule = NULL;
    int more = algorithm->open(&asked.problem, &asked.plan, 0, 0, &schedule);
    if (more < 0) end("the schedule cannot be opened");
    for (;;) {
        struct mx_step s = {.seam_in = -1, .seam_out = -1};
        more = schedule->ops->next(schedule, &s);
        if (more <= 0) break;
        if (s.kind == MX_STEP_ADVANCE) post_step(&s);
    }
    if (more < 0) end("the schedule failed");
    while (run.done < run.calls) wait_for(++run.done);
    schedule->ops->close(schedule);
}

static void one_call_a_sweep(void) {
    const struct mx_problem *p = &asked.problem;
    const int32_t h = p->h;
    struct mx_window *window = calloc((size_t)p->nt, sizeof *window);
    if (window == NULL) end("no memory for windows");
    for (int64_t l = 0; l < p->nt; l++)
        window[l] = (struct mx_window){h, (int32_t)p->ny + h, h, (int32_t)p->nz + h};
    for (int64_t l = 0; l < p->nt; l += asked.plan.bt) {
        const struct mx_advance a = {.view = run.view,
                                     .first_level = l,
                                     .parity = (int32_t)(l & 1),
                                     .levels = (int32_t)mx_min(asked.plan.bt, p->nt - l),
                                     .window = window};
        wait_for(run.done = run.calls = run.ops->post(run.engine, &a));
    }
    free(window);
}

/* ------------------------------------------------------------------ set-up */

/* Addresses; only --real writes there. */
static char *memory(int64_t bytes) {
    char *base = mmap(NULL, (size_t)bytes + (2 << 20), asked.real ? PROT_READ | PROT_WRITE : PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) end("no memory for the grid");
    if (asked.real) {
        madvise(base, (size_t)bytes, MADV_HUGEPAGE);
        memset(base, 0, (size_t)bytes);
    }
    return base;
}

static void make_run(const struct mx_algorithm *algorithm) {
    const struct mx_problem *p = &asked.problem;
    struct mx_plan *plan = &asked.plan;
    struct mx_layout layout;
    mx_why why = {""};
    if (plan->bt == 0) plan->bt = p->nt;
    if (plan->by == 0) plan->by = p->ny;
    plan->bz = p->nz;
    plan->threads = asked.cores;
    if (mx_layout_make(p, 4096, !asked.in_dram && plan->by < p->ny, &why, &layout) != 0) end(why.text);
    struct mx_engine_options o = mx_plan_engine(plan, p, &asked.machine, layout.row_pitch_bytes);
    o.levels = plan->bt, o.rows = plan->by, o.planes = p->nz;
    run.ops = mx_engine_find("tiled");
    if (plan->slab == 0) plan->slab = run.ops->slab(&o);
    if (!asked.in_dram) {
        o.slab = plan->slab;
        if (algorithm->check(p, plan, &why) != 0) end(why.text);
        algorithm->shape(p, plan, &run.shape);
    } else {
        run.shape = (struct mx_shape){.rows = layout.rows, .slots = {layout.planes, layout.planes}};
    }
    if (run.ops->create(&o, &why, &run.engine) != 0) end(why.text);
    const int64_t plane = mx_plane_pitch_in_dram(run.shape.rows * layout.row_pitch_bytes);
    run.view = (struct mx_view){.slots = {run.shape.slots[0], run.shape.slots[1]},
                                .plane_pitch_bytes = asked.in_l3 ? 0 : plane,
                                .row_pitch_bytes = layout.row_pitch_bytes};
    for (int i = 0; i < 2; i++) run.view.base[i] = memory(plane * (asked.in_l3 ? 1 : run.view.slots[i]));
    run.seam_slab_bytes =
        run.shape.max_levels * run.shape.seam_planes * run.shape.seam_rows * layout.row_pitch_bytes;
    if (run.shape.seam_slots > 0) run.seams = memory(run.shape.seam_slots * run.seam_slab_bytes);
    run.ops->describe(run.engine, plan);
}

static void print_real(double seconds) {
    struct measured all = {0};
    for (int i = 0; i < asked.cores; i++) {
        all.place_s += measured[i].place_s, all.place_cells += measured[i].place_cells;
        all.two_s += measured[i].two_s, all.two_cells += measured[i].two_cells;
    }
    printf(", \"place_ns\": %.4f, \"two_ns\": %.4f, \"waiting\": %.4f",
           all.place_cells > 0 ? 1e9 * all.place_s / all.place_cells : 0,
           all.two_cells > 0 ? 1e9 * all.two_s / all.two_cells : 0,
           1 - (all.place_s + all.two_s) / (seconds * asked.cores));
}

static void print_simulated(double cells) {
    const double all = sim.now * sim.threads;
    printf(", \"tiles\": %lld, \"useful\": %.4f, \"slowed\": %.4f, \"waiting\": %.4f, \"lines\": %.4f, "
           "\"dram_bytes\": %.4f, \"elsewhere_bytes\": %.4f, \"whole\": %.4f",
           (long long)sim.tiles, sim.useful / all, sim.slowed / all, 1 - sim.busy / all,
           (sim.dram_bytes / 2 + sim.elsewhere_bytes) / LINE_BYTES / cells, sim.dram_bytes / cells,
           sim.elsewhere_bytes / cells, sim.place_cells / cells);
}

static void print(double seconds) {
    const struct mx_problem *p = &asked.problem;
    const struct mx_plan *plan = &asked.plan;
    const double cells = (double)p->nx * (double)p->ny * (double)p->nz * (double)p->nt;
    printf("{\"cores\": %d, \"nx\": %lld, \"ny\": %lld, \"nz\": %lld, \"nt\": %lld, \"in_dram\": %s, \"bt\": "
           "%lld, \"by\": %lld, \"slab\": %lld, \"tile\": %lld, \"ct\": %lld, \"column\": %lld, \"calls\": "
           "%lld, \"planes\": %lld, \"seconds\": %.6f, \"gups\": %.4f",
           asked.cores, (long long)p->nx, (long long)p->ny, (long long)p->nz, (long long)p->nt,
           asked.in_dram ? "true" : "false", (long long)plan->bt, (long long)plan->by, (long long)plan->slab,
           (long long)plan->tile, (long long)plan->ct, (long long)plan->column, (long long)run.calls,
           (long long)(run.shape.slots[0] + run.shape.slots[1]), seconds, 1e-9 * cells / seconds);
    if (asked.real)
        print_real(seconds);
    else
        print_simulated(cells);
    if (seen.level != NULL)
        printf(", \"computed_rows\": %lld, \"broken\": %lld", (long long)seen.computed,
               (long long)seen.broken);
    printf("}\n");
}

static const char usage[] =
    "usage: replay [--nx N --ny N --nz N --nt LEVELS] [--dtype f64|f32] [--stencil NAME] [--cores N] "
    "[--group CORES]\n"
    "  [--in-dram] [--bt LEVELS --by ROWS --slab N --tile N --ct N --column N --ahead N --under-way CALLS]\n"
    "  [--place-ns NS --two-ns NS --line-ns NS] [--gbs GB/s --group-gbs GB/s --core-gbs GB/s: 0 = no bound]\n"
    "  [--l2 BYTES --l3 BYTES] [--check] [--real [--in-l3]]";

struct number {
    const char *name;
    int64_t *at;
    double *real;
};

static int64_t cores, group, under_way, l2_bytes, l3_bytes;
static const struct number numbers[] = {{"nx", &asked.problem.nx, NULL},
                                        {"ny", &asked.problem.ny, NULL},
                                        {"nz", &asked.problem.nz, NULL},
                                        {"nt", &asked.problem.nt, NULL},
                                        {"bt", &asked.plan.bt, NULL},
                                        {"by", &asked.plan.by, NULL},
                                        {"slab", &asked.plan.slab, NULL},
                                        {"tile", &asked.plan.tile, NULL},
                                        {"ct", &asked.plan.ct, NULL},
                                        {"column", &asked.plan.column, NULL},
                                        {"cores", &cores, NULL},
                                        {"group", &group, NULL},
                                        {"under-way", &under_way, NULL},
                                        {"l2", &l2_bytes, NULL},
                                        {"l3", &l3_bytes, NULL},
                                        {"place-ns", NULL, &asked.place_ns},
                                        {"two-ns", NULL, &asked.two_ns},
                                        {"line-ns", NULL, &asked.line_ns},
                                        {"gbs", NULL, &asked.bytes_per_ns},
                                        {"group-gbs", NULL, &asked.group_bytes_per_ns},
                                        {"core-gbs", NULL, &asked.core_bytes_per_ns}};
enum { NUMBERS = sizeof numbers / sizeof numbers[0], WORDS = NUMBERS };

static void options(int argc, char **argv) {
    struct option names[NUMBERS + 8] = {0};
    const char *stencil = "star7";
    int n = 0;
    for (; n < NUMBERS; n++) names[n] = (struct option){numbers[n].name, 1, 0, n + 1000};
    static const struct option words[] = {{"in-dram", 0, 0, 'd'}, {"real", 0, 0, 'r'},
                                          {"in-l3", 0, 0, 'l'},   {"check", 0, 0, 'c'},
                                          {"dtype", 1, 0, 't'},   {"stencil", 1, 0, 's'}};
    memcpy(&names[n], words, sizeof words);
    cores = asked.cores, group = asked.group, under_way = asked.under_way;
    l2_bytes = (int64_t)asked.machine.l2_bytes, l3_bytes = (int64_t)asked.machine.l3_bytes;
    asked.problem.dtype = MX_F64;
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (c == 'd') asked.in_dram = true;
        if (c == 'r') asked.real = true;
        if (c == 'l') asked.in_l3 = true;
        if (c == 'c') asked.check = true;
        if (c == 't') asked.problem.dtype = strcmp(optarg, "f32") == 0 ? MX_F32 : MX_F64;
        if (c == 's') stencil = optarg;
        if (c == '?') end(usage);
        if (c < 1000) continue;
        const struct number *number = &numbers[c - 1000];
        if (number->at != NULL) *number->at = atoll(optarg);
        if (number->real != NULL) *number->real = atof(optarg);
    }
    const struct mx_stencil *s = mx_stencil_find(stencil);
    asked.cores = (int)cores, asked.group = (int)group, asked.under_way = (int)under_way;
    asked.machine.l2_bytes = (uint64_t)l2_bytes, asked.machine.l3_bytes = (uint64_t)l3_bytes;
    asked.machine.cores = asked.cores;
    if (s == NULL || optind < argc || cores < 1 || cores > MOST_CORES || group < 1 || under_way < 1 ||
        under_way > MOST_UNDER_WAY || asked.problem.nx < 1 || asked.problem.nt < 1)
        end(usage);
    asked.problem.h = s->h;
    strcpy(asked.problem.stencil, s->name);
    memcpy(asked.problem.coef, s->coef, sizeof asked.problem.coef);
}

int main(int argc, char **argv) {
    options(argc, argv);
    const struct mx_algorithm *algorithm = mx_algorithm_find("stream");
    l3.left = calloc(LEFT_SLOTS, sizeof *l3.left);
    measured = aligned_alloc(_Alignof(struct measured), (size_t)asked.cores * sizeof *measured);
    if (l3.left == NULL || measured == NULL) end("no memory");
    memset(measured, 0, (size_t)asked.cores * sizeof *measured);
    l3.next_slab = 2;
    if (asked.check && !asked.real) check_make();
    make_run(algorithm);
    const double begin = now_s();
    if (asked.in_dram)
        one_call_a_sweep();
    else
        stream(algorithm);
    const double seconds = asked.real ? now_s() - begin : 1e-9 * sim.now;
    if (seen.level != NULL) check_end();
    print(seconds);
    run.ops->free(run.engine);
    return seen.broken > 0;
}
