/* SPDX-License-Identifier: BSD-3-Clause */
/* test_exchange.c - two ranks as threads over the link local, planes as large as pieces of a message: what a
 * neighbour sends is used plane by plane while the rest of the message is not there, and is sent plane by
 * plane while the sender's sweep goes on; a sender that ends in the middle of a message ends the receiver.
 * The same bits as one rank, in DRAM as predicted. */
#include "engine/engine.h"
#include "execute/exchange.h"
#include "link/link.h"
#include "schedule/schedule.h"
#include "stencil/stencil.h"

#include <memext/backend.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NX = 190, NY = 186, NZ = 26, NT = 15, BT = 4, RANKS = 2, SLAB = 1 };
enum { MOST_LOOKS = 4000000 }; /* without anything new: nobody uses what there is */
enum { HANG_S = 300 };

/* What both ranks know of one another. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t used; /* sweeps of rank 1 that have used a plane from below */
    bool late;    /* nobody used one in all of HANG_S */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* A rank. */
struct rank {
    struct mx_problem problem;
    struct mx_plan plan;
    struct mx_local_end *ends;
    int number;
    bool holds;       /* rank 1: takes of each message from below no more than a plane beyond those used */
    bool waits;       /* rank 0: each message goes on when the rank above has used its first plane */
    int64_t stops_at; /* rank 0: the sweep in whose message it ends; -1 = none */
    atomic_int stop;
    mx_link *link;
    int64_t sweep;  /* under way; of LOADs, of STOREs that are over */
    int64_t posted; /* messages from below, so far */
    int64_t used;   /* planes of the newest one */
    int64_t singly; /* LOADs of them that were done when not all of their message was let in */
    int64_t looks;
    char *grid; /* the result, without frame planes */
    int err;
    mx_why why;
    struct mx_executed done;
};

/* ------------------------------------------------------------------ a link that holds back */

static int receive_message(void *context, int end, const struct iovec *part, int n, size_t piece_bytes,
                           mx_why *why) {
    struct rank *r = context;
    if (end == 0) r->posted++, r->used = 0;
    return mx_link_receive(r->link, end, part, n, piece_bytes, why);
}

/* Planes of a message, of which each is a piece. */
static int received_pieces(void *context, int end, int64_t pieces, bool wait, mx_why *why) {
    struct rank *r = context;
    const int64_t all = BT * r->problem.h;
    const bool last = r->posted * BT > NT; /* of a sweep with fewer levels, or that is not used */
    if (end == 0 && r->holds && !wait && !last && (pieces < all ? pieces : all) > r->used + 1) {
        if (++r->looks < MOST_LOOKS) return 0;
        return mx_fail(why, -ETIMEDOUT, "%lld planes of message %lld were used, and no more are asked for",
                       (long long)r->used, (long long)r->posted - 1);
    }
    return mx_link_received(r->link, end, pieces, wait, why);
}

static int send_message(void *context, int end, const struct iovec *part, int n, size_t piece_bytes,
                        int64_t ready, mx_why *why) {
    return mx_link_send(((struct rank *)context)->link, end, part, n, piece_bytes, ready, why);
}
static int more_pieces(void *context, int end, int64_t ready, mx_why *why) {
    return mx_link_more(((struct rank *)context)->link, end, ready, why);
}
static int sent_message(void *context, int end, bool wait, mx_why *why) {
    return mx_link_sent(((struct rank *)context)->link, end, wait, why);
}
static void quit(void *context) { mx_link_quit(((struct rank *)context)->link); }

static const struct mx_neighbours_ops held = {.send = send_message,
                                              .more = more_pieces,
                                              .receive = receive_message,
                                              .sent = sent_message,
                                              .received = received_pieces,
                                              .quit = quit};

/* ------------------------------------------------------------------ what is seen */

static void note_use(struct rank *r, const struct mx_event *e) {
    const int64_t h = r->problem.h;
    if (e->region.z0 >= h) return;
    if (r->used < BT * h - 1) r->singly++;
    r->used += e->region.z1 - e->region.z0;
    r->looks = 0;
    pthread_mutex_lock(&seen.lock);
    seen.used = r->posted;
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
}

/* The first plane of message sweep + 1 was stored: until rank 1 has used it nothing more is computed here. */
static void wait_for_use(struct rank *r, const struct mx_event *e) {
    const int64_t h = r->problem.h, end = r->problem.nz + h, message = r->sweep + 1;
    struct timespec until;
    if (r->number > 0 || !r->waits || e->region.z0 != end - BT * h || (message + 1) * BT > NT) return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HANG_S;
    pthread_mutex_lock(&seen.lock);
    while (seen.used < message + 1 && !seen.late)
        seen.late = pthread_cond_timedwait(&seen.changed, &seen.lock, &until) == ETIMEDOUT;
    pthread_mutex_unlock(&seen.lock);
    if (r->sweep == r->stops_at) r->stop = 1;
}

static void event(void *context, const struct mx_event *e) {
    struct rank *r = context;
    if (e->waiting) return;
    if (e->kind == MX_STEP_LOAD && r->number == 1) note_use(r, e);
    if (e->kind == MX_STEP_STORE) wait_for_use(r, e);
    if (e->kind == MX_STEP_COMMIT && e->sweep) r->sweep++;
}

/* ------------------------------------------------------------------ a rank */

static int fill(void *context, int64_t z, char *plane) {
    const struct rank *r = context;
    const struct mx_problem *p = &r->problem;
    struct mx_layout l;
    int err = mx_layout_make(p, 64, false, NULL, &l);
    for (int64_t y = 0; y < l.rows && err == 0; y++)
        for (int64_t x = 0; x < p->nx + 2 * p->h; x++) {
            const uint64_t i = (uint64_t)(((p->first_plane + z) * l.rows + y) * 1000 + x);
            ((double *)(plane + y * l.row_pitch_bytes))[x] = (double)(i * 2654435761u % 1000003u) / 1000003;
        }
    return err;
}

static int keep(void *context, int64_t z, char *plane) {
    const struct rank *r = context;
    const struct mx_problem *p = &r->problem;
    struct mx_layout l;
    const int err = mx_layout_make(p, 64, false, NULL, &l);
    const int64_t i = z - p->h;
    for (int64_t y = 0; y < p->ny && i >= 0 && i < p->nz && err == 0; y++)
        memcpy(r->grid + ((p->first_plane + i) * NY + y) * NX * (int64_t)sizeof(double),
               plane + (y + p->h) * l.row_pitch_bytes + p->h * (int64_t)sizeof(double), NX * sizeof(double));
    return err;
}

static void compute(struct rank *r) {
    const struct mx_problem *p = &r->problem;
    const struct mx_engine_ops *ops = mx_engine_find("iblock");
    const struct mx_device_options o = {.backend = "dram", .queue_depth = 8, .max_request_bytes = 1 << 20};
    struct mx_machine machine;
    struct mx_layout layout;
    mx_device *device = NULL;
    mx_buffer *buffer[2] = {NULL, NULL};
    struct mx_schedule *schedule = NULL;
    mx_engine *engine = NULL;
    int err = mx_machine_detect(&r->why, &machine);
    if (err == 0) err = mx_layout_make(p, 64, false, &r->why, &layout);
    if (err == 0) err = mx_device_open(&o, &r->why, &device);
    if (err == 0) err = mx_algorithm_find("stream")->open(p, &r->plan, 0, 0, &schedule);
    for (int i = 0; i < 2 && err == 0; i++)
        err =
            mx_buffer_create(device, i == 0 ? "a" : "b", (uint64_t)layout.buffer_bytes, &r->why, &buffer[i]);
    for (int i = 0; i < 2 && err == 0; i++)
        err = mx_field_write(buffer[i], &layout, NULL, NULL, fill, r, &r->why);
    struct mx_engine_options eo = {.problem = p,
                                   .machine = &machine,
                                   .row_pitch_bytes = layout.row_pitch_bytes,
                                   .threads = 1,
                                   .slab = SLAB,
                                   .levels = BT,
                                   .rows = layout.rows,
                                   .planes = SLAB};
    if (err == 0) err = ops->create(&eo, &r->why, &engine);
    if (err == 0 && r->ends != NULL) {
        mx_local_use(r->ends, r->number);
        err = mx_link_open(mx_link_find("local"), &r->why, &r->link);
    }
    if (err == 0 && r->ends != NULL && layout.plane_pitch_bytes < 256 << 10) err = -ERANGE; /* of a piece */
    struct mx_execution x = {.problem = p,
                             .plan = &r->plan,
                             .layout = &layout,
                             .device = device,
                             .buffer = {buffer[0], buffer[1]},
                             .n_buffers = 2,
                             .committed = -1,
                             .neighbours = &held,
                             .link = r,
                             .poison = true,
                             .stop = &r->stop,
                             .event = event,
                             .context = r};
    if (err == 0) err = mx_execute(&x, schedule, ops, engine, &r->why, &r->done);
    if (err == 0 && r->done.block_bytes != mx_execute_block_bytes(&schedule->shape, &layout)) err = -EPROTO;
    if (err == 0) err = mx_field_read(buffer[r->done.result], &layout, NULL, NULL, keep, r, &r->why);
    r->err = err;
    mx_link_close(r->link, err == 0 ? 0 : 3);
    if (engine != NULL) ops->free(engine);
    if (schedule != NULL) schedule->ops->close(schedule);
    for (int i = 0; i < 2; i++) mx_buffer_close(buffer[i]);
    if (device != NULL) mx_device_close(device);
}

static void *work(void *argument) {
    compute(argument);
    return NULL;
}

static void make(struct rank *r, int number, int ranks, char *grid) {
    const struct mx_stencil *s = mx_stencil_find("star7");
    *r = (struct rank){.number = number,
                       .stops_at = -1,
                       .grid = grid,
                       .plan = {.algorithm = "stream",
                                .engine = "iblock",
                                .by = NY,
                                .bt = BT,
                                .slab = SLAB,
                                .ahead = 1,
                                .threads = 1},
                       .problem = {.nx = NX, .ny = NY, .nz = NZ, .nt = NT, .h = s->h, .dtype = MX_F64}};
    struct mx_problem *p = &r->problem;
    snprintf(p->stencil, sizeof p->stencil, "%s", s->name);
    memcpy(p->coef, s->coef, sizeof p->coef);
    r->plan.bz = NZ;
    if (ranks == 1) return;
    p->all_nz = NZ;
    p->nz = p->least_nz = r->plan.bz = NZ / RANKS;
    p->first_plane = number * (NZ / RANKS);
    p->sides.side[MX_DIM_Z][number == 0 ? 1 : 0] = MX_SIDE_NEIGHBOUR;
}

static void run(struct rank rank[RANKS]) {
    mx_why why = {""};
    struct mx_local_end *ends;
    pthread_t thread[RANKS];
    seen.used = 0, seen.late = false;
    cr_assert(mx_local_make(RANKS, &why, &ends) == 0, "%s", why.text);
    for (int i = 0; i < RANKS; i++) rank[i].ends = ends;
    for (int i = 0; i < RANKS; i++) cr_assert_eq(pthread_create(&thread[i], NULL, work, &rank[i]), 0);
    for (int i = 0; i < RANKS; i++) pthread_join(thread[i], NULL);
    free(ends);
}

static size_t grid_bytes(void) { return (size_t)NX * NY * NZ * sizeof(double); }

static char *alone(void) {
    struct rank one;
    make(&one, 0, 1, calloc(1, grid_bytes()));
    compute(&one);
    cr_assert(one.err == 0, "%d %s", one.err, one.why.text);
    return one.grid;
}

static void check_bits(const struct rank rank[RANKS], const char *wanted) {
    for (int i = 0; i < RANKS; i++)
        cr_assert(rank[i].err == 0, "rank %d: %d %s", i, rank[i].err, rank[i].why.text);
    cr_assert_eq(memcmp(rank[0].grid, wanted, grid_bytes()), 0);
}

/* Of every message of BT planes each plane but the last was used while the ones behind it were held back. */
Test(exchange, a_load_waits_for_its_planes_only) {
    char *grid = calloc(1, grid_bytes()), *wanted = alone();
    struct rank rank[RANKS];
    for (int i = 0; i < RANKS; i++) make(&rank[i], i, RANKS, grid);
    rank[1].holds = true;
    run(rank);
    check_bits(rank, wanted);
    cr_assert_geq(rank[1].singly, (NT / BT) * (BT - 1));
    free(wanted);
    free(grid);
}

/* A sweep that stands still behind the first plane of a message: the rank above begins its own with it. */
Test(exchange, planes_go_while_the_sweep_goes_on) {
    char *grid = calloc(1, grid_bytes()), *wanted = alone();
    struct rank rank[RANKS];
    for (int i = 0; i < RANKS; i++) make(&rank[i], i, RANKS, grid);
    rank[0].waits = true;
    run(rank);
    cr_assert_not(seen.late);
    check_bits(rank, wanted);
    free(wanted);
    free(grid);
}

/* The rank below ends when its first plane has been used; the others of the message do not come. */
Test(exchange, an_end_in_the_middle_of_a_message_ends_both) {
    char *grid = calloc(1, grid_bytes());
    for (int at = 0; (at + 2) * BT <= NT; at++) {
        struct rank rank[RANKS];
        for (int i = 0; i < RANKS; i++) make(&rank[i], i, RANKS, grid);
        rank[0].waits = true;
        rank[0].stops_at = at;
        run(rank);
        cr_assert_not(seen.late);
        cr_assert(rank[0].err == -EINTR, "%d %s", rank[0].err, rank[0].why.text);
        cr_assert(rank[1].err == -ECONNRESET, "%d %s", rank[1].err, rank[1].why.text);
        cr_assert(strstr(rank[1].why.text, "rank 0 of 2 has ended") != NULL, "%s", rank[1].why.text);
        cr_assert(rank[1].posted == at + 2 && rank[1].used > 0 && rank[1].used < BT,
                  "%lld planes of message %lld", (long long)rank[1].used, (long long)rank[1].posted - 1);
    }
    free(grid);
}
