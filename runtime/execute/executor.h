/* SPDX-License-Identifier: BSD-3-Clause */
/* executor.h - inside execute/ only: the window of steps, and the functions of the executor's files. See
 * execute.c. */
#ifndef MX_EXECUTOR_H
#define MX_EXECUTOR_H

#include "engine/work.h"
#include "execute/exchange.h"
#include "execute/looker.h"
#include "machine/bell.h"

#include <pthread.h>
#include <stdatomic.h>

/* How many values of `after` with a reach are kept (compute.c). ADVANCES_UNDER_WAY calls can be in as many
 * Blocks, and the next Block needs one more: that is 3, and one is spare. */
enum { REACHES = 4 };

enum { WINDOW_STEPS = 512, WINDOW_ADVANCES = 8, ADVANCES_UNDER_WAY = 2 };

enum state { WAITING, RUNNING, DONE };

/* A copy of the schedule's tables for the levels of a pass, since the schedule keeps them only until the next
 * step. */
struct tables {
    int64_t pass, users;
    struct mx_window *window; /* [levels] */
    int32_t *seam;            /* 6 tables of levels + 1 */
};

struct entry {
    struct mx_step step;
    enum state state;
    mx_ticket *ticket; /* LOAD, STORE under way */
    int64_t call;      /* ADVANCE under way: its number */
    /* With an accelerator. A LOAD is read into the piece and then put; a STORE is got into the piece and then
     * written. */
    int32_t piece;         /* of the staging memory */
    bool halfway;          /* the second half is under way */
    int64_t number;        /* in the accelerator's queue */
    int64_t cells;         /* ADVANCE under way */
    struct tables *tables; /* ADVANCE */
    bool durable;          /* COMMIT: the sweep is to be made durable */
    int32_t source;    /* COMMIT: the Buffer that the sweep read, which is free when the sweep is complete */
    int32_t frees;     /* COMMIT: the Buffer that is free when this commit is durable; -1 = none */
    int64_t sweep;     /* the sweep that the step belongs to, from 0 */
    int64_t take_step; /* STORE, COMMIT: the step that its sweep ends with, if that state is handed out; 0 =
                          it is not */
    struct mx_take *take;      /* STORE under way: the handing out of its rows */
    bool looked_at;            /* ADVANCE, STORE: its rows are searched for cells that are not finite */
    struct mx_finding finding; /* of an ADVANCE or STORE that is looked at */
    struct mx_looking looking; /* of a STORE that is looked at, under way */
    bool fed;                  /* LOAD: fed (feed.h), not read from its Buffer */
    struct mx_feed *feed;      /* a fed LOAD under way */
    uint64_t begin_ns;
};

struct committer {
    pthread_t thread;
    bool started;
    _Atomic bool ended;
    struct mx_bell *bell; /* of the thread that waits for it; NULL = nobody */
    int result;
    uint64_t begin_ns, end_ns;
    const struct mx_execution *x;
    int64_t time;
    int32_t buffer;
};

struct executor {
    const struct mx_execution *x;
    struct mx_schedule *schedule;
    const struct mx_engine_ops *ops;
    mx_engine *engine;
    mx_why *why;
    struct mx_executed *out;
    struct mx_bell *bell; /* of this thread; everything that it has under way rings it */
    const struct mx_shape *shape;
    struct mx_view view;                      /* base, slots, pitches */
    struct mx_fixed_view fixed[MX_MAX_FIXED]; /* view.fixed, where there is C */
    mx_block *block[2], *seam_block, *fixed_block[MX_MAX_FIXED], *staging_block;
    int64_t seam_slab_bytes;
    char *seam_base;
    struct entry *entries; /* ring of WINDOW_STEPS */
    struct tables *newest; /* tables of the ADVANCE that was taken from the schedule last; NULL = none */
    uint64_t first, end;   /* oldest unfinished step, next step to take from the schedule */
    int64_t advances;      /* ADVANCE steps that have not started */
    int64_t under_way;     /* ADVANCE steps */
    int64_t cells;         /* cells computed, of all levels */
    uint64_t advanced_ns;  /* when the last ADVANCE that is done ended */
    uint64_t sweep_ns;     /* when the sweep under way began */
    bool exhausted;
    int due;   /* is the sweep of the newest COMMIT made durable? 1, 0, or -EAGAIN = not known yet */
    bool held; /* it is not known: that COMMIT is at `end` and not yet in the window */
    /* Of the schedule's current sweep: the Buffer that the schedule calls its source, and the Buffers that
     * really are its source and target. */
    int32_t called, source, target;
    int32_t committed;              /* Buffer of the last sweep that is durable or will be; -1 = none */
    uint64_t decided_ns;            /* when that sweep was chosen */
    struct mx_after after[REACHES]; /* x->after with the reaches of the last Blocks */
    int64_t reaches;                /* Blocks so far, each with a reach of its own */
    struct mx_span *spans;          /* spans of one transfer */
    int64_t n_spans;
    struct mx_staging staging; /* with an accelerator, whose memory then holds the arrays */
    /* With an accelerator: memory of Buffers and their partners that the accelerator reaches directly. NULL:
     * their LOADs and STOREs pass through the staging memory. */
    char *direct[2][MX_BUFFERS];
    struct committer committer;
    struct mx_taker *taker;
    struct mx_looker *looker; /* NULL: rows of STOREs are not looked at, or this thread looks at them */
    struct mx_feeder *feeder;
    bool first_sweep;      /* the schedule is in the first sweep */
    mx_block *plane;       /* a plane of states that are read from Buffers to be handed out */
    int64_t sweep_end;     /* level of the run with which the newest ADVANCE's sweep ends */
    int64_t sweeps, taken; /* sweeps that were taken from the schedule; sweeps that are complete */
    /* Of each sweep that is not complete, the newest state that was looked at, and its level. It is a ring of
     * WINDOW_STEPS by the number of the sweep, since each of these sweeps has a COMMIT in the window. */
    struct look {
        int64_t level;
        struct mx_nonfinite found;
    } * look;
    int64_t looked_at;            /* level of the state that was looked at last */
    struct mx_exchange *exchange; /* NULL = no neighbours */
    bool given_up;                /* messages of neighbours are not waited for any more */
};

static inline int64_t mx_exec_steps(const struct executor *r, int64_t levels) {
    return levels / mx_levels_a_step(r->x->problem);
}

static inline struct entry *mx_exec_at(const struct executor *r, uint64_t i) {
    return &r->entries[i % WINDOW_STEPS];
}

static inline bool mx_exec_staged(const struct executor *r) { return r->x->accel != NULL; }

static inline bool mx_exec_is_fixed(int32_t array) { return array >= MX_FIXED_ARRAY; }

static inline int64_t mx_exec_slots(const struct executor *r, int32_t array) {
    if (mx_exec_is_fixed(array)) return r->shape->fixed_slots;
    return array == MX_SEAMS ? r->shape->seam_slots : r->view.slots[array];
}

static inline int64_t mx_exec_slot(const struct executor *r, int32_t array, int64_t z, int64_t z_offset) {
    return (z + z_offset) % mx_exec_slots(r, array);
}

static inline char *mx_exec_row(const struct executor *r, int32_t array, int64_t y, int64_t z,
                                struct mx_placement p) {
    bool seams = array == MX_SEAMS;
    char *base = seams ? r->seam_base : r->view.base[array];
    return base +
           mx_exec_slot(r, array, z, p.z_offset) * (seams ? r->seam_slab_bytes : r->view.plane_pitch_bytes) +
           (y + p.y_offset) * r->view.row_pitch_bytes;
}

static inline bool mx_exec_moves(const struct mx_step *s) {
    return s->kind == MX_STEP_LOAD || s->kind == MX_STEP_STORE;
}

/* Is it a STORE that a commit makes durable? Seams are not needed by a later run. */
static inline bool mx_exec_keeps(const struct mx_step *s) {
    return s->kind == MX_STEP_STORE && s->buffer != MX_SEAMS;
}

/* Is it a LOAD of a neighbour's message? In the first sweep of a run that is fed, these planes are fed too.
 */
static inline bool mx_exec_is_given(const struct entry *e) {
    return e->step.kind == MX_STEP_LOAD && e->step.neighbour > 0 && !e->fed;
}

/* Returns the memory of a transfer's Buffer if the accelerator reaches it directly, else NULL. */
static inline char *mx_exec_direct(const struct executor *r, const struct entry *e) {
    const struct mx_step *s = &e->step;
    if (mx_exec_is_fixed(s->buffer) || s->buffer == MX_SEAMS || mx_exec_is_given(e)) return NULL;
    return r->direct[s->part][s->buffer];
}

/* Are states that are handed out taken from STOREs (or else read from Buffers)? */
static inline bool mx_exec_takes_stores(const struct executor *r) {
    return r->x->stores_once && r->x->accel == NULL;
}
/* Is the state of this step handed out? In whole boxes? And is it not stored besides? */
static inline bool mx_exec_is_taken(const struct executor *r, int64_t step) {
    bool any = false;
    for (const struct mx_taking *const *t = r->x->taking; *t != NULL; t++) any |= mx_taking_is_due(*t, step);
    return any;
}
static inline bool mx_exec_takes_boxes(const struct executor *r, int64_t step) {
    bool any = false;
    for (const struct mx_taking *const *t = r->x->taking; *t != NULL; t++)
        any |= (*t)->box != NULL && mx_taking_is_due(*t, step);
    return any;
}
static inline bool mx_exec_keeps_nothing(const struct executor *r, int64_t step) {
    bool any = false;
    for (const struct mx_taking *const *t = r->x->taking; *t != NULL; t++)
        any |= (*t)->only && mx_taking_is_due(*t, step);
    return any;
}

/* Is a STORE only handed out, and not stored? */
static inline bool mx_exec_is_only_taken(const struct executor *r, const struct entry *e) {
    return e->take_step > 0 && mx_exec_keeps_nothing(r, e->take_step);
}

/* For an algorithm that works on mapped Buffers: returns the Buffer that is array i. */
static inline mx_buffer *mx_exec_mapped(const struct executor *r, int i) {
    return i == 1 && r->shape->pairs ? r->x->partner[0] : r->x->buffer[i];
}

/* ---- hazards.c */

/* Must `later` wait for `earlier`, which comes before it in program order and is unfinished? */
bool mx_exec_depends(const struct executor *r, const struct entry *later_entry,
                     const struct entry *earlier_entry);

/* ---- events.c: events for traces. file: of a transfer without a Buffer. */

void mx_exec_report_transfer(const struct executor *r, const struct mx_step *s, bool waiting, bool file,
                             uint64_t begin_ns, uint64_t end_ns, uint64_t amount);
void mx_exec_report(const struct executor *r, const struct mx_step *s, bool waiting, uint64_t begin_ns,
                    uint64_t end_ns, uint64_t amount);
void mx_exec_report_sweep(struct executor *r, const struct mx_step *s);
uint64_t mx_exec_moved_bytes(const struct executor *r, const struct mx_step *s);

/* ---- taking.c. When a step comes from the schedule, settle_taking decides whether its rows are handed out
 * or looked at. For a STORE both happen while it is stored. At the end of a sweep judge_sweep reports what
 * was found, and end_taking hands out what STOREs did not. */

void mx_exec_add_look(struct executor *r, const struct entry *e, int64_t level,
                      const struct mx_nonfinite *found);
void mx_exec_settle_taking(struct executor *r, struct entry *e);
struct mx_view mx_exec_stored_view(const struct executor *r, const struct mx_step *s);
void mx_exec_look_at_store(struct executor *r, struct entry *e);
void mx_exec_end_look(struct executor *r, struct entry *e);
int mx_exec_judge_sweep(struct executor *r, const struct entry *e);
int mx_exec_take_store(struct executor *r, struct entry *e);
int mx_exec_end_taking(struct executor *r, const struct entry *e);
int mx_exec_open_taking(struct executor *r);
void mx_exec_open_looking(struct executor *r);

/* ---- halves.c. mx_exec_spans fills r->spans for a step, and returns their number. */

int64_t mx_exec_spans(struct executor *r, const struct entry *e);
int mx_exec_start_io(struct executor *r, struct entry *e, int64_t n);
int mx_exec_start_bus(struct executor *r, struct entry *e, int64_t n);
int mx_exec_start_feed(struct executor *r, struct entry *e);
int mx_exec_finish_feed(struct executor *r, struct entry *e);
int mx_exec_finish_io(struct executor *r, struct entry *e);
int mx_exec_finish_bus(struct executor *r, struct entry *e);

/* ---- given.c: LOADs of what neighbours have sent, STOREs of what they need. */

bool mx_exec_given_is_here(const struct executor *r, const struct entry *e);
int mx_exec_look_at_neighbours(struct executor *r);
int mx_exec_finish_given(struct executor *r, struct entry *e);
int mx_exec_put_given(struct executor *r, struct entry *e);
int mx_exec_give_store(struct executor *r, struct entry *e);
int mx_exec_settle_exchange(struct executor *r, struct entry *e);
int mx_exec_open_exchange(struct executor *r);

/* ---- transfers.c: LOADs and STOREs. half_ended: has the current half ended? */

int mx_exec_start_transfer(struct executor *r, struct entry *e);
bool mx_exec_half_ended(const struct executor *r, const struct entry *e);
int mx_exec_pass_halves(struct executor *r);
int mx_exec_finish_transfer(struct executor *r, struct entry *e);

/* ---- commits.c: ends of sweeps. take_completed and commit_newest are for runs that end before their last
 * step. */

int mx_exec_start_commit(struct executor *r, struct entry *e);
int mx_exec_finish_commit(struct executor *r, struct entry *e);
int mx_exec_take_completed(struct executor *r);
int mx_exec_commit_newest(struct executor *r);

/* ---- compute.c: ADVANCEs, by their numbers in the window; COPYs in the accelerator's memory or (do_copy) in
 * DRAM. */

int mx_exec_start_copy(struct executor *r, struct entry *e);
int mx_exec_finish_copy(struct executor *r, struct entry *e);
void mx_exec_do_copy(struct executor *r, struct entry *e);
void mx_exec_start_advance(struct executor *r, uint64_t i);
void mx_exec_finish_advance(struct executor *r, uint64_t i);

/* ---- arrays.c */

int mx_exec_open_arrays(struct executor *r);

/* ---- fill.c. settle_due, for the step at `end`: 1 = it may enter the window, 0 = the decision of all ranks
 * about it is not known yet. */

void mx_exec_drop_tables(struct tables *t);
int32_t mx_exec_free_buffer(const struct executor *r, int32_t source, int32_t committed);
int mx_exec_settle_due(struct executor *r);
int mx_exec_fill(struct executor *r);

#endif
