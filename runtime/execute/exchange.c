/* SPDX-License-Identifier: BSD-3-Clause */
#include "execute/exchange.h"
#include "engine/work.h"
#include "machine/minmax.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* Pieces of less would cost a link more than they are worth. */
enum { LEAST_PIECE_BYTES = 256 << 10 };

/* Planes that the room to send holds, frame counted: those of this rank at this end. */
static int64_t first_plane(const struct mx_exchange *e, int end) {
    const struct mx_problem *p = e->x->problem;
    return end == 0 ? p->h : p->nz + p->h - e->end[end].planes;
}

/* A message of so many planes: the ones at the very end. */
static int parts_out(const struct mx_exchange *e, int end, int64_t planes, struct iovec part[2]) {
    const struct mx_exchange_end *n = &e->end[end];
    const int64_t skip = end == 0 ? 0 : (n->planes - planes) * e->plane_bytes;
    for (int i = 0; i < e->arrays; i++)
        part[i] = (struct iovec){n->out[i] + skip, (size_t)(planes * e->plane_bytes)};
    return e->arrays;
}

static int64_t depth_of(const struct mx_exchange *e, int end, int64_t number) {
    return e->end[end].depth[number % MX_MESSAGES_KNOWN];
}

/* ------------------------------------------------------------------ receiving */

static size_t piece_bytes(const struct mx_exchange *e) { return (size_t)(e->piece_planes * e->plane_bytes); }

/* Where message `number` is received. */
static char *room_of(const struct mx_exchange *e, int end, int array, int64_t number) {
    const struct mx_exchange_end *n = &e->end[end];
    return n->in[array] + number % n->rooms * n->planes * e->plane_bytes;
}

static int post_receive(struct mx_exchange *e, int end, mx_why *why) {
    struct mx_exchange_end *n = &e->end[end];
    struct iovec part[2];
    if (n->posted != n->arrived || n->posted >= n->used + n->rooms || n->posted == n->asked) return 0;
    const int64_t bytes = depth_of(e, end, n->posted) * e->plane_bytes;
    for (int i = 0; i < e->arrays; i++)
        part[i] = (struct iovec){room_of(e, end, i, n->posted), (size_t)bytes};
    const int err = e->x->neighbours->receive(e->x->link, end, part, e->arrays, piece_bytes(e), why);
    if (err == 0) n->posted++;
    return err;
}

static int look_at(struct mx_exchange *e, int end, mx_why *why) {
    struct mx_exchange_end *n = &e->end[end];
    if (n->posted == n->arrived) return 0;
    const int done = e->x->neighbours->received(e->x->link, end, INT64_MAX, false, why);
    if (done <= 0) return done;
    n->arrived++;
    return post_receive(e, end, why);
}

int mx_exchange_look(struct mx_exchange *e, mx_why *why) {
    const int err = look_at(e, 0, why);
    return err < 0 ? err : look_at(e, 1, why);
}

int mx_exchange_ask(struct mx_exchange *e, int64_t number, int64_t planes, mx_why *why) {
    int err = 0;
    for (int end = 0; end < 2 && err == 0; end++) {
        struct mx_exchange_end *n = &e->end[end];
        if (n->planes == 0 || planes == 0 || n->asked > number) continue;
        n->depth[number % MX_MESSAGES_KNOWN] = planes;
        n->asked = number + 1;
        err = post_receive(e, end, why);
    }
    return err;
}

void mx_exchange_load(struct mx_exchange *e, const struct mx_step *s, int64_t number) {
    struct mx_exchange_end *n = &e->end[s->neighbour - 1];
    n->loads[number % MX_MESSAGES_KNOWN]++;
    if (s->last_given) n->all[number % MX_MESSAGES_KNOWN] = true;
}

static int64_t first_received(const struct mx_exchange *e, int end, int64_t number) {
    const struct mx_problem *p = e->x->problem;
    return end == 0 ? p->h - depth_of(e, end, number) : p->nz + p->h;
}

int mx_exchange_here(struct mx_exchange *e, const struct mx_step *s, int64_t number, bool wait, mx_why *why) {
    const int end = s->neighbour - 1;
    struct mx_exchange_end *n = &e->end[end];
    if (n->arrived > number) return 1;
    if (n->posted <= number && !wait) return 0;
    if (n->posted <= number)
        return mx_fail(why, -EPROTO,
                       "internal error (a step uses planes of a neighbour before the planes of an earlier "
                       "step are done); please report it");
    const int64_t planes = s->region.z1 - first_received(e, end, number);
    return e->x->neighbours->received(e->x->link, end, (planes + e->piece_planes - 1) / e->piece_planes, wait,
                                      why);
}

const char *mx_exchange_row(const struct mx_exchange *e, const struct mx_step *s, int64_t number, int64_t y,
                            int64_t z) {
    const int end = s->neighbour - 1;
    return room_of(e, end, s->part, number) + (z - first_received(e, end, number)) * e->plane_bytes +
           y * e->x->layout->row_pitch_bytes;
}

int mx_exchange_loaded(struct mx_exchange *e, const struct mx_step *s, int64_t number, mx_why *why) {
    struct mx_exchange_end *n = &e->end[s->neighbour - 1];
    const int64_t at = number % MX_MESSAGES_KNOWN;
    if (--n->loads[at] > 0 || !n->all[at]) return 0;
    n->all[at] = false;
    n->used = number + 1;
    const int err = look_at(e, s->neighbour - 1, why);
    return err < 0 ? err : post_receive(e, s->neighbour - 1, why);
}

/* ------------------------------------------------------------------ sending */

static int wait_sent(struct mx_exchange *e, int end, mx_why *why) {
    struct mx_exchange_end *n = &e->end[end];
    const int done = n->sending ? e->x->neighbours->sent(e->x->link, end, true, why) : 1;
    if (done < 0) return done;
    n->sending = false;
    return 0;
}

/* Of a message of so many planes the first `whole`. */
static int64_t pieces_of(const struct mx_exchange *e, int64_t whole, int64_t planes) {
    return whole == planes ? INT64_MAX : whole / e->piece_planes;
}

static int post_send(struct mx_exchange *e, int end, int64_t planes, int64_t ready, mx_why *why) {
    struct mx_exchange_end *n = &e->end[end];
    struct iovec part[2];
    const int parts = parts_out(e, end, planes, part);
    const int err = e->x->neighbours->send(e->x->link, end, part, parts, piece_bytes(e), ready, why);
    n->sending |= err == 0;
    return err;
}

/* The first rows of a message: the room is free when the one before has gone. The link is told at once, for
 * it may have to come to terms with the receiver. */
static int begin_message(struct mx_exchange *e, int end, int64_t planes, mx_why *why) {
    struct mx_exchange_end *n = &e->end[end];
    int err = wait_sent(e, end, why);
    if (err == 0) err = post_send(e, end, planes, 0, why);
    if (err < 0) return err;
    memset(n->rows, 0, (size_t)n->planes * sizeof *n->rows);
    n->whole = 0;
    n->gathering = true;
    return 0;
}

/* Planes of which all rows have come may go. */
static int pass_on(struct mx_exchange *e, int end, int64_t planes, mx_why *why) {
    struct mx_exchange_end *n = &e->end[end];
    const int64_t before = pieces_of(e, n->whole, planes);
    while (n->whole < planes && n->rows[n->whole] == e->arrays * e->x->problem->ny) n->whole++;
    const int64_t ready = pieces_of(e, n->whole, planes);
    if (n->whole == planes) n->gathering = false, n->number++;
    return ready > before ? e->x->neighbours->more(e->x->link, end, ready, why) : 0;
}

/* The planes that a STORE has of those that go to the neighbour at an end; behind the last of these. */
static int64_t planes_for(const struct mx_exchange *e, int end, const struct mx_step *s, int64_t *z0,
                          int64_t *z1) {
    const struct mx_problem *p = e->x->problem;
    const int64_t planes = s->next_given, last = end == 0 ? p->h + planes : p->nz + p->h;
    *z0 = mx_max(s->region.z0, last - planes);
    *z1 = mx_min(s->region.z1, last);
    return last;
}

/* Frames that are stored as copies of the other end are none of it. */
static bool goes_nowhere(const struct mx_step *s) {
    return s->next_given == 0 || s->buffer_y != 0 || s->buffer_z != 0;
}

/* What a STORE has of the planes at an end. */
static int gather(struct mx_exchange *e, int end, const struct mx_step *s, int64_t sweep,
                  const struct mx_view *view, mx_why *why) {
    struct mx_exchange_end *n = &e->end[end];
    const struct mx_problem *p = e->x->problem;
    const int64_t planes = s->next_given, pitch = e->x->layout->row_pitch_bytes;
    const int64_t in0 = mx_max(s->region.y0, mx_halo_y(p)), in1 = mx_min(s->region.y1, p->ny + mx_halo_y(p));
    int64_t z0, z1;
    const int64_t last = planes_for(e, end, s, &z0, &z1), zero = first_plane(e, end);
    if (z0 >= z1) return 0;
    if (n->number != sweep + 1)
        return mx_fail(why, -EPROTO,
                       "internal error (sweep %lld gives rows to a neighbour before message %lld is sent); "
                       "please report it",
                       (long long)sweep, (long long)n->number);
    int err = n->gathering ? 0 : begin_message(e, end, planes, why);
    for (int64_t z = z0; z < z1 && err == 0; z++) {
        memcpy(n->out[s->part] + (z - zero) * e->plane_bytes + s->region.y0 * pitch,
               mx_view_row(view, s->array, s->region.y0, z), (size_t)((s->region.y1 - s->region.y0) * pitch));
        if (in0 < in1) n->rows[z - (last - planes)] += in1 - in0;
    }
    return err == 0 ? pass_on(e, end, planes, why) : err;
}

int mx_exchange_store(struct mx_exchange *e, const struct mx_step *s, int64_t sweep,
                      const struct mx_view *view, mx_why *why) {
    int err = 0;
    if (goes_nowhere(s)) return 0;
    for (int end = 0; end < 2 && err == 0; end++)
        if (e->end[end].planes > 0) err = gather(e, end, s, sweep, view, why);
    return err;
}

static bool has_gone(struct mx_exchange *e, int end) {
    return e->x->neighbours->sent(e->x->link, end, false, NULL) != 0;
}

bool mx_exchange_has_room(struct mx_exchange *e, const struct mx_step *s) {
    if (goes_nowhere(s)) return true;
    for (int end = 0; end < 2; end++) {
        struct mx_exchange_end *n = &e->end[end];
        int64_t z0, z1;
        planes_for(e, end, s, &z0, &z1);
        if (n->planes == 0 || n->gathering || !n->sending || z0 >= z1 || has_gone(e, end)) continue;
        n->awaited = true;
        return false;
    }
    return true;
}

bool mx_exchange_freed(struct mx_exchange *e) {
    bool some = false;
    for (int end = 0; end < 2; end++) {
        struct mx_exchange_end *n = &e->end[end];
        if (!n->awaited || !has_gone(e, end)) continue;
        n->awaited = false;
        some = true;
    }
    return some;
}

/* ------------------------------------------------------------------ from the beginning to the end */

static int open_end(struct mx_exchange *e, int end, mx_why *why) {
    struct mx_exchange_end *n = &e->end[end];
    const int64_t room = e->shape->given[end] * e->plane_bytes, rooms = 1 + mx_given_rooms(end);
    const struct mx_block_options o = {.budget = e->x->budget, .device = e->x->mapped ? NULL : e->x->device};
    n->rows = calloc((size_t)e->shape->given[end], sizeof *n->rows);
    if (n->rows == NULL) return mx_fail(why, -ENOMEM, "no memory for what neighbours exchange");
    int err = mx_block_create(&o, (uint64_t)(rooms * e->arrays * room), why, &n->block);
    if (err < 0) return err;
    n->planes = e->shape->given[end];
    n->rooms = mx_given_rooms(end);
    for (int i = 0; i < e->arrays; i++) {
        n->out[i] = (char *)mx_block_data(n->block) + rooms * i * room;
        n->in[i] = n->out[i] + room;
    }
    return 0;
}

/* All planes that there is room for: STOREs do not bring all of a plane. */
static int read_state(struct mx_exchange *e, int end, mx_why *why) {
    struct mx_exchange_end *n = &e->end[end];
    const struct mx_execution *x = e->x;
    int err = 0;
    for (int i = 0; i < e->arrays && err == 0; i++) {
        const struct mx_span span = {(uint64_t)(first_plane(e, end) * e->plane_bytes),
                                     (uint64_t)(n->planes * e->plane_bytes), n->out[i]};
        mx_buffer *buffer = i == 1 ? x->partner[x->source] : x->buffer[x->source];
        mx_ticket *ticket = NULL;
        err = mx_buffer_read(buffer, &span, 1, &ticket);
        if (err == 0) err = mx_wait(ticket);
        if (err == -EBADMSG) return mx_field_damaged(buffer, x->layout, "cells for a neighbour", why);
        if (err < 0)
            mx_fail(why, err, "reading %lld %ss for a neighbour failed: %s", (long long)n->planes,
                    mx_plane_word(x->problem->flat), strerror(-err));
    }
    return err;
}

/* Of a run that is fed: what STOREs do not bring of these planes is their frame, where the algorithm never
 * writes one. */
static int feed_frames(struct mx_exchange *e, int end, mx_why *why) {
    struct mx_exchange_end *n = &e->end[end];
    const struct mx_execution *x = e->x;
    const struct mx_problem *p = x->problem;
    const int64_t pitch = x->layout->row_pitch_bytes, h = mx_halo_y(p), high = p->ny + h;
    int err = 0;
    for (int64_t i = 0; i < n->planes && e->shape->init_both && h > 0 && err == 0; i++) {
        const int64_t z = first_plane(e, end) + i;
        char *plane = n->out[0] + i * e->plane_bytes;
        err = x->feeding->rows(x->feeding->context, 0, z, 0, h, plane, pitch, why);
        if (err == 0)
            err =
                x->feeding->rows(x->feeding->context, 0, z, high, high + h, plane + high * pitch, pitch, why);
    }
    return err;
}

int mx_exchange_open(struct mx_exchange *e, const struct mx_execution *x, const struct mx_schedule *schedule,
                     mx_why *why) {
    *e = (struct mx_exchange){.x = x,
                              .shape = &schedule->shape,
                              .arrays = schedule->shape.pairs ? 2 : 1,
                              .plane_bytes = x->layout->plane_pitch_bytes,
                              .piece_planes = (LEAST_PIECE_BYTES - 1) / x->layout->plane_pitch_bytes + 1};
    int err = 0;
    if (schedule->shape.given[0] + schedule->shape.given[1] > 0 && x->neighbours == NULL)
        return mx_fail(why, -EINVAL,
                       "internal error (a rank of several has no link to its neighbours); please report it");
    for (int end = 0; end < 2 && err == 0; end++)
        if (schedule->shape.given[end] > 0 && schedule->first_given > 0) err = open_end(e, end, why);
    if (err == 0 && x->feeding == NULL) err = mx_exchange_ask(e, 0, schedule->first_given, why);
    for (int end = 0; end < 2 && err == 0; end++) {
        struct mx_exchange_end *n = &e->end[end];
        n->number = 1;
        if (x->feeding != NULL)
            n->asked = n->posted = n->arrived = n->used = 1, err = feed_frames(e, end, why);
        if (n->planes == 0 || x->feeding != NULL) continue;
        err = read_state(e, end, why);
        if (err == 0) err = post_send(e, end, schedule->first_given, INT64_MAX, why);
    }
    return err;
}

int mx_exchange_end(struct mx_exchange *e, int64_t sweeps, mx_why *why) {
    int err = 0;
    for (int end = 0; end < 2 && err == 0; end++) {
        struct mx_exchange_end *n = &e->end[end];
        while (n->planes > 0 && n->arrived < mx_min(n->asked, sweeps + 1) && err >= 0) {
            n->used = n->arrived;
            err = n->posted > n->arrived ? 0 : post_receive(e, end, why);
            if (err == 0) err = e->x->neighbours->received(e->x->link, end, INT64_MAX, true, why);
            n->arrived++;
        }
        err = err < 0 ? err : wait_sent(e, end, why);
    }
    return err;
}

void mx_exchange_close(struct mx_exchange *e) {
    bool busy = false;
    for (int end = 0; end < 2; end++) busy |= e->end[end].sending || e->end[end].posted > e->end[end].arrived;
    if (busy) e->x->neighbours->quit(e->x->link);
    for (int end = 0; end < 2; end++) mx_block_free(e->end[end].block), free(e->end[end].rows);
}
