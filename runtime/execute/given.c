/* SPDX-License-Identifier: BSD-3-Clause */
/* given.c - steps of a rank that have to do with its neighbours (exchange.h): LOADs of what they send, and
 * STOREs of what they need. */
#include "execute/executor.h"
#include "machine/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool mx_exec_given_is_here(const struct executor *r, const struct entry *e) {
    return r->given_up || mx_exchange_here(r->exchange, &e->step, e->sweep, false, NULL) != 0;
}

/* If all ranks were asked to end, the end of another rank is not an error of its own. */
int mx_exec_look_at_neighbours(struct executor *r) {
    const int err = r->exchange != NULL ? mx_exchange_look(r->exchange, r->why) : 0;
    return err == -ECONNRESET && r->x->stop != NULL && *r->x->stop ? -EINTR : err;
}

/* A LOAD that takes a copy of it. */
int mx_exec_finish_given(struct executor *r, struct entry *e) {
    const struct mx_step *s = &e->step;
    int err = r->given_up ? -EINTR : mx_exchange_here(r->exchange, s, e->sweep, true, r->why);
    e->state = DONE;
    if (err <= 0) return err == 0 || r->given_up ? 0 : err;
    for (int64_t z = s->region.z0; z < s->region.z1; z++)
        memcpy(mx_exec_row(r, s->array, s->region.y0, z, s->at),
               mx_exchange_row(r->exchange, s, e->sweep, s->region.y0 + s->buffer_y, z),
               (size_t)((s->region.y1 - s->region.y0) * r->view.row_pitch_bytes));
    mx_exec_report(r, s, false, e->begin_ns, mx_clock_ns(), mx_exec_moved_bytes(r, s));
    return mx_exchange_loaded(r->exchange, s, e->sweep, r->why);
}

/* The same with an accelerator, when there is a piece of the staging memory: planes, without what pads them,
 * are copied into that, and put. */
int mx_exec_put_given(struct executor *r, struct entry *e) {
    const struct mx_step *s = &e->step;
    const int64_t n = s->region.z1 - s->region.z0,
                  bytes = (s->region.y1 - s->region.y0) * r->view.row_pitch_bytes;
    int err = mx_exchange_here(r->exchange, s, e->sweep, true, r->why);
    if (err < 0) return e->state = DONE, err;
    e->piece = mx_staging_take(&r->staging, true);
    e->halfway = true;
    for (int64_t i = 0; i < n; i++)
        r->spans[i] =
            (struct mx_span){.bytes = (uint64_t)bytes,
                             .dram = mx_exec_row(r, s->array, s->region.y0, s->region.z0 + i, s->at)};
    mx_staging_turn(&r->staging, e->piece, r->spans, n);
    for (int64_t i = 0; i < n; i++)
        memcpy(r->spans[i].dram,
               mx_exchange_row(r->exchange, s, e->sweep, s->region.y0 + s->buffer_y, s->region.z0 + i),
               (size_t)bytes);
    err = mx_exchange_loaded(r->exchange, s, e->sweep, r->why);
    const int bus = mx_exec_start_bus(r, e, n);
    if (bus == 0) return err;
    mx_staging_give(&r->staging, e->piece);
    return e->state = DONE, bus;
}

/* Rows that a neighbour needs, while they are being stored. */
int mx_exec_give_store(struct executor *r, struct entry *e) {
    const struct mx_step *s = &e->step;
    if (r->exchange == NULL || !mx_exec_keeps(s)) return 0;
    const struct mx_view view = mx_exec_stored_view(r, s);
    return mx_exchange_store(r->exchange, s, e->sweep, &view, r->why);
}

/* Steps of one sweep are of one message. The next one is asked for with the first STORE, long before the end
 * of a sweep is taken from the schedule, for who sends may have to come to terms with who receives. */
int mx_exec_settle_exchange(struct executor *r, struct entry *e) {
    const bool ends = e->step.kind == MX_STEP_COMMIT;
    e->sweep = r->sweeps;
    r->sweeps += ends;
    if (r->exchange == NULL) return 0;
    if (mx_exec_is_given(e)) mx_exchange_load(r->exchange, &e->step, e->sweep);
    if ((!ends && !mx_exec_keeps(&e->step)) || r->x->decides != NULL) return 0;
    return mx_exchange_ask(r->exchange, e->sweep + 1, e->step.next_given, r->why);
}

int mx_exec_open_exchange(struct executor *r) {
    r->exchange = calloc(1, sizeof *r->exchange);
    if (r->exchange == NULL) return mx_fail(r->why, -ENOMEM, "no memory for what neighbours exchange");
    r->out->block_bytes += mx_execute_given_bytes(r->shape, r->x->layout);
    return mx_exchange_open(r->exchange, r->x, r->schedule, r->why);
}
