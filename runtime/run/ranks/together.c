/* SPDX-License-Identifier: BSD-3-Clause */
/* together.c - what several ranks do to one thing: a file, a plane, the sweeps, the first commit. */
#include "run/ranks/ranks.h"

#include "run/state.h"

#include <string.h>

/* ------------------------------------------------------------------ one file */

/* All open the file that the first rank has made. *all: each of them has. */
static int join_file(struct mx_run *r, struct mx_grid_file *file, const struct mx_grid *grid, bool named,
                     bool *all) {
    struct mx_grid_file_place place = {.path = ""};
    const bool first = mx_run_leads(r);
    if (first) mx_grid_file_find(file, named, &place);
    int err = mx_run_share_bytes(r, &place, sizeof place);
    if (err < 0) return err;
    if (named && place.path[0] == 0)
        return mx_fail(&r->why, -ENOTSUP,
                       "several ranks write the result to one file, and %.300s is not a file in a directory: "
                       "name a regular file for the result",
                       file->path);
    err = first || place.path[0] == 0 ? 0 : mx_grid_file_join(file, &place, grid, &r->why);
    bool lacks = err < 0 || place.path[0] == 0;
    *all = !lacks;
    if (named) return err;
    r->why.text[0] = 0;
    err = mx_run_agree_any(r, &lacks);
    if (lacks) mx_grid_file_part(file);
    return *all = !lacks, err;
}

/* On one machine they need no name for it. */
int mx_run_open_joint(struct mx_run *r, struct mx_grid_file *file, struct mx_sink *sink,
                      struct mx_grid *grid) {
    bool all = false;
    int err = mx_run_leads(r) ? sink->open(sink->context, grid, &r->why) : 0;
    if (err != 0 || mx_run_alone(r)) return err;
    if (r->ranks.places == r->ranks.ranks) err = join_file(r, file, grid, false, &all);
    if (err == 0 && !all) err = join_file(r, file, grid, true, &all);
    return err < 0 ? err : mx_run_meet(r); /* a rank that ends from here on takes the file from nobody */
}

/* ------------------------------------------------------------------ one array */

static int rank_of_plane(const struct mx_run_ranks *q, int64_t z) {
    int k = 0;
    while (k + 1 < q->ranks && z >= q->first[k + 1]) k++;
    return k;
}

int mx_run_hand_plane(struct mx_run *r, int64_t z, void *plane, size_t bytes) {
    const struct mx_run_ranks *q = &r->ranks;
    const int from = rank_of_plane(q, z);
    if (from == 0 || (q->rank > 0 && q->rank != from)) return 0;
    const int err = mx_link_hand(q->link, from, plane, bytes, &r->why);
    return err < 0 ? err : 1;
}

/* ------------------------------------------------------------------ sweeps */

static const struct mx_neighbours_ops neighbours = {.send = mx_link_send,
                                                    .more = mx_link_more,
                                                    .receive = mx_link_receive,
                                                    .sent = mx_link_sent,
                                                    .received = mx_link_received,
                                                    .quit = mx_link_quit};

/* By the first rank's clock. */
static int agree(void *context, bool due, mx_why *why) {
    struct mx_run *r = context;
    int64_t word = due;
    const bool says = mx_run_leads(r);
    const int here =
        says ? mx_link_say(r->ranks.link, word, why) : mx_link_heard(r->ranks.link, false, &word, why);
    return here < 0 ? here : says || here > 0 ? word != 0 : -EAGAIN;
}

/* A run may end before the sweep that was decided about last: all hear that nothing follows. */
int mx_run_end_agreeing(struct mx_run *r, const struct mx_execution *x) {
    enum { NOTHING_FOLLOWS = -1 };
    int64_t word = NOTHING_FOLLOWS;
    if (x->agree == NULL) return 0;
    if (mx_run_leads(r)) return mx_link_say(r->ranks.link, word, &r->why);
    int here;
    do here = mx_link_heard(r->ranks.link, true, &word, &r->why);
    while (here > 0 && word != NOTHING_FOLLOWS);
    return here < 0 ? here : 0;
}

void mx_run_take_neighbours(struct mx_run *r, bool commits, struct mx_execution *x) {
    if (mx_run_alone(r)) return;
    x->neighbours = &neighbours;
    x->link = r->ranks.link;
    if (commits && r->n_buffers == MX_BUFFERS) x->agree = agree;
}

int mx_run_leave_neighbours(struct mx_run *r, int err) {
    if (mx_run_alone(r)) return err;
    mx_link_counters(r->ranks.link, &r->ranks.sent_bytes, &r->ranks.received_bytes);
    if (err == -ECONNRESET && strstr(r->why.text, "rank") == NULL)
        mx_fail(&r->why, err, "another rank died during a commit, so this rank stops");
    return err;
}

/* ------------------------------------------------------------------ --resume */

/* A rank that goes back to the state before its newest one says so in its store before it overwrites that,
 * and nobody commits anything else before: what any two stores say are two commits that follow one another.
 * The others have said before that what the run was asked for (agree.c, share_note): as long as the note of
 * one rank alone has that it is the newest, and then all of them have it. */
int mx_run_settle(struct mx_run *r, int (*hashes)(struct mx_run *r), int (*note)(struct mx_run *r)) {
    const struct mx_run_ranks *q = &r->ranks;
    if (mx_run_alone(r) || !mx_run_has_store(r)) return 0;
    int err = hashes(r);
    if (err == 0 && q->uneven && !q->went_back) err = note(r);
    if (err == 0 && q->uneven) err = mx_run_meet(r);
    if (err == 0 && q->went_back) err = note(r);
    return err < 0 ? err : mx_run_meet(r);
}
