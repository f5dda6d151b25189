/* SPDX-License-Identifier: BSD-3-Clause */
/* transfers.c - LOADs and STOREs. With an accelerator each has two halves: a LOAD is read into a piece of the
 * staging memory and put, a STORE is got into one and written. Buffers in DRAM that the accelerator reaches
 * by itself have no I/O: their LOADs begin halfway, and their STOREs end there. */
#include "execute/executor.h"
#include "machine/clock.h"

/* Rows are being stored, from DRAM: what else is done with them. */
static int use_store(struct executor *r, struct entry *e) {
    const int err = mx_exec_give_store(r, e);
    if (err == 0) mx_exec_look_at_store(r, e);
    return err;
}

int mx_exec_start_transfer(struct executor *r, struct entry *e) {
    const bool load = e->step.kind == MX_STEP_LOAD;
    if (mx_region_rows(e->step.region) == 0) return e->state = DONE, 0;
    if (e->fed) return mx_exec_start_feed(r, e);
    if (!load && mx_exec_is_only_taken(r, e)) {
        e->begin_ns = mx_clock_ns();
        e->state = RUNNING;
        mx_exec_look_at_store(r, e);
        return mx_exec_take_store(r, e);
    }
    if (mx_exec_is_given(e)) return e->begin_ns = mx_clock_ns(), e->halfway = false, e->state = RUNNING, 0;
    const bool direct = mx_exec_direct(r, e) != NULL;
    if (mx_exec_staged(r)) e->piece = mx_staging_take(&r->staging, load), e->halfway = load && direct;
    const int64_t n = mx_exec_spans(r, e);
    e->begin_ns = mx_clock_ns();
    int err = mx_exec_staged(r) && (!load || direct) ? mx_exec_start_bus(r, e, n) : mx_exec_start_io(r, e, n);
    if (err < 0) return err;
    e->state = RUNNING;
    err = mx_exec_take_store(r, e);
    return err < 0 || load || mx_exec_staged(r) ? err : use_store(r, e);
}

/* Of what is under way of a transfer, the half that it is at: is it through the bus, or I/O? */
static bool on_bus(const struct executor *r, const struct entry *e) {
    return mx_exec_staged(r) && (e->step.kind == MX_STEP_LOAD) == e->halfway;
}

bool mx_exec_half_ended(const struct executor *r, const struct entry *e) {
    const enum mx_accel_queue queue = e->step.kind == MX_STEP_LOAD ? MX_ACCEL_PUT : MX_ACCEL_GET;
    if (e->feed != NULL) return mx_feed_done(e->feed);
    return on_bus(r, e) ? mx_accel_is_done(r->x->accel, queue, e->number) : mx_test(e->ticket);
}

/* Waits for the first half, and starts the second. */
static int pass_half(struct executor *r, struct entry *e) {
    int err = on_bus(r, e) ? mx_exec_finish_bus(r, e) : mx_exec_finish_io(r, e);
    e->halfway = true;
    if (err < 0) return err;
    const int64_t n = mx_exec_spans(r, e);
    if (on_bus(r, e)) return mx_exec_start_bus(r, e, n);
    err = use_store(r, e);
    return err < 0 || mx_exec_direct(r, e) != NULL ? err : mx_exec_start_io(r, e, n);
}

static void end_transfer(struct executor *r, struct entry *e) {
    if (e->step.kind == MX_STEP_STORE) mx_exec_end_look(r, e);
    if (mx_exec_staged(r)) mx_staging_give(&r->staging, e->piece);
    e->state = DONE;
    const bool file = e->fed || (e->step.kind == MX_STEP_STORE && mx_exec_is_only_taken(r, e));
    mx_exec_report_transfer(r, &e->step, false, file, e->begin_ns, mx_clock_ns(),
                            mx_exec_moved_bytes(r, &e->step));
}

/* Goes on with transfers whose first half has ended. */
int mx_exec_pass_halves(struct executor *r) {
    int err = 0;
    for (uint64_t i = r->first; i < r->end && err == 0 && mx_exec_staged(r); i++) {
        struct entry *e = mx_exec_at(r, i);
        if (e->state != RUNNING || !mx_exec_moves(&e->step) || e->halfway) continue;
        if (mx_exec_is_given(e)) {
            if (!mx_staging_is_taken(&r->staging, true) && mx_exec_given_is_here(r, e))
                err = mx_exec_put_given(r, e);
            continue;
        }
        if (!mx_exec_half_ended(r, e) ||
            (r->exchange != NULL && mx_exec_keeps(&e->step) && !mx_exchange_has_room(r->exchange, &e->step)))
            continue;
        if ((err = pass_half(r, e)) < 0) end_transfer(r, e);
    }
    return err;
}

int mx_exec_finish_transfer(struct executor *r, struct entry *e) {
    if (mx_exec_is_given(e) && (!mx_exec_staged(r) || !e->halfway)) return mx_exec_finish_given(r, e);
    int err = mx_exec_staged(r) && !e->halfway ? pass_half(r, e) : 0;
    if (err == 0)
        err = e->feed != NULL ? mx_exec_finish_feed(r, e)
              : on_bus(r, e)  ? mx_exec_finish_bus(r, e)
                              : mx_exec_finish_io(r, e);
    end_transfer(r, e);
    return err;
}
