/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/ranks/recut_private.h"

#include "core/store.h"
#include "files/folder.h"
#include "note/sets.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ which set */

/* What rank 0 found, for all. */
struct choice {
    int32_t err, ranks, cut, to;
    int32_t newest; /* the first rank with the newest note */
    uint64_t run;
    int64_t time, moment;
    bool other_cut; /* of as many ranks, by other weights */
    bool pending;   /* no Buffer holds that step */
    mx_why why;
};

/* --rank-weights given with --resume: are the stores cut by others? */
static int compare_cuts(struct mx_run *r, const struct mx_sight *s, const struct mx_seen *found,
                        int32_t ranks, bool *other) {
    *other = false;
    if (found->ranks != ranks || ranks < 2 || r->o.rank_weights == NULL) return 0;
    int64_t *first = calloc((size_t)ranks + 1, sizeof *first);
    int err = first == NULL ? mx_fail(&r->why, -ENOMEM, "no memory for the ranks")
                            : mx_ranks_table(found->all_planes, r->o.rank_weights, ranks, &r->why, first);
    for (int32_t k = 0; k < ranks && err == 0; k++)
        *other |= mx_find_rank(s, found, k)->first_plane != first[k];
    free(first);
    return err;
}

static int look_around(struct mx_run *r, int32_t ranks, struct choice *out) {
    struct mx_sight s;
    const struct mx_seen *found = NULL;
    int err = mx_see_all(r->recut.base, &r->why, &s);
    if (err == 0) err = mx_newest_set(&s, r->recut.base, ranks, &r->why, &found);
    if (err == 0 && found != NULL) {
        *out = (struct choice){.ranks = found->ranks, .cut = found->cut, .run = found->run};
        out->time = mx_common_step(&s, found);
        out->moment = mx_common_moment(&s, found);
        out->newest = mx_newest_rank(&s, found);
        out->pending = mx_set_is_pending(&s, found);
        out->to = found->cut;
        err = compare_cuts(r, &s, found, ranks, &out->other_cut);
        for (int32_t i = 0; i < s.n; i++) {
            if (s.seen[i].cut > out->to) out->to = s.seen[i].cut;
            if (s.seen[i].folder > out->to) out->to = s.seen[i].folder;
        }
        out->to++;
    }
    mx_forget(&s);
    return err;
}

/* Where all ranks have a store of one newest set that is theirs, nothing else is looked at: disks of other
 * machines may not be seen from here. */
struct own {
    uint64_t run;
    int32_t cut;
    bool mine;
};

static int look_at_own(struct mx_run *r, struct own *out) {
    struct mx_sight s = {.stored = calloc(1, sizeof *s.stored)};
    char path[PATH_MAX];
    const struct mx_seen *newest = NULL;
    *out = (struct own){.cut = -1};
    if (s.stored == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the notes of stores");
    if (mx_place_of(r->recut.base, r->ranks.ranks, r->ranks.rank, 0, path) == 0) mx_see_cuts(&s, path);
    if (r->ranks.rank == 0 && mx_is_directory(r->recut.base)) mx_see_cuts(&s, r->recut.base);
    for (int32_t i = 0; i < s.n; i++)
        if (s.seen[i].run != 0 && (newest == NULL || s.seen[i].cut > newest->cut)) newest = &s.seen[i];
    for (int32_t i = 0; i < s.n && newest != NULL; i++)
        if (s.seen[i].run != 0 && s.seen[i].run != newest->run && s.seen[i].ranks == r->ranks.ranks &&
            s.seen[i].rank == r->ranks.rank)
            newest = &s.seen[i]; /* of two runs the one that has as many */
    if (newest != NULL)
        *out = (struct own){.run = newest->run,
                            .cut = newest->cut,
                            .mine = newest->ranks == r->ranks.ranks && newest->rank == r->ranks.rank};
    mx_forget(&s);
    return 0;
}

static int all_have_theirs(struct mx_run *r, struct own *mine, bool *all) {
    const int ranks = r->ranks.ranks;
    struct own *own = calloc((size_t)ranks, sizeof *own);
    *all = false;
    if (own == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the ranks");
    int err = look_at_own(r, mine);
    if (err == 0) err = mx_link_gather(r->ranks.link, MX_CHANNEL_RUN, mine, sizeof *mine, own, &r->why);
    *all = err == 0 && r->o.rank_weights == NULL; /* else it is looked at how they are cut */
    for (int i = 0; i < ranks && *all; i++)
        *all = own[i].mine && own[i].run == own[0].run && own[i].cut == own[0].cut;
    free(own);
    return err;
}

static int share_choice(struct mx_run *r, struct choice *c) {
    if (mx_run_leads(r)) {
        c->err = look_around(r, mx_run_ranks_of(r), c);
        if (c->err < 0) c->why = r->why;
    }
    int err = mx_run_share_bytes(r, c, sizeof *c);
    if (err == 0 && c->err < 0) {
        mx_run_one_says(r);
        r->why = c->why;
        err = c->err;
    }
    return err;
}

/* A place for a new store of this rank. */
static int make_own(struct mx_run *r) {
    struct mx_run_recut *c = &r->recut;
    char outer[PATH_MAX];
    int err = mx_place_of(c->base, c->ranks, 0, c->cut, outer);
    if (err == 0 && !mx_is_directory(outer)) {
        mx_run_one_says(r);
        return mx_fail(
            &r->why, -ENOTSUP,
            "%.300s is a single store. A resume with another number of ranks keeps the old stores beside the "
            "new ones: resume with %d ranks, or begin the run with directories as places",
            outer, c->ranks);
    }
    if (err == 0) err = mx_place_of(c->base, r->ranks.ranks, r->ranks.rank, 0, outer);
    if (err == 0) err = mx_place_of(c->base, r->ranks.ranks, r->ranks.rank, c->to, c->own);
    if (err < 0) return mx_fail(&r->why, err, "the path of -d is too long");
    if (r->o.dry_run) return 0;
    if (mx_is_rank(&r->ranks) && (err = mx_run_take_folder(r, outer)) < 0) return err;
    err = mx_folder_take(c->own, &c->own_fd);
    return err < 0 ? mx_fail(&r->why, err, "%.300s cannot be created: %s", c->own, strerror(-err)) : 0;
}

static int take_choice(struct mx_run *r, const struct choice *found) {
    struct mx_run_recut *c = &r->recut;
    c->ranks = found->ranks, c->cut = found->cut, c->to = found->cut;
    c->run = found->run, c->time = found->time, c->moment = found->moment;
    c->newest = found->newest;
    c->pending = found->pending;
    c->found = true;
    c->asked = found->ranks != mx_run_ranks_of(r) || found->other_cut;
    if (c->asked) c->to = found->to;
    int err = c->asked ? make_own(r) : mx_place_of(c->base, r->ranks.ranks, r->ranks.rank, c->cut, c->own);
    r->o.path = c->own;
    if (err == 0 && mx_is_rank(&r->ranks))
        err = mx_place_of(c->base, r->ranks.ranks, r->ranks.rank, 0, r->ranks.folder);
    return err;
}

int mx_run_refuse_leftover(struct mx_run *r, int rank) {
    struct mx_sight s = {.stored = calloc(1, sizeof *s.stored)};
    char path[PATH_MAX];
    int err = s.stored == NULL ? mx_fail(&r->why, -ENOMEM, "no memory for the notes of stores") : 0;
    if (err == 0 && mx_place_of(r->recut.base, r->ranks.ranks, rank, 0, path) == 0) mx_see_cuts(&s, path);
    for (int32_t i = 0; i < s.n && err == 0; i++)
        if (s.seen[i].folder > 0 && s.seen[i].run != 0)
            err = mx_fail(&r->why, -EEXIST, "%.300s holds %s; --resume continues it, --force discards it",
                          s.seen[i].path, s.seen[i].finished != 0 ? "a finished run" : "an interrupted run");
    mx_forget(&s);
    return err;
}

/* --force discards whole runs: rank 0 will remove what other ranks had of them. Older ones have no number. */
static int find_discarded(struct mx_run *r) {
    struct mx_run_recut *c = &r->recut;
    struct mx_sight s = {.stored = calloc(1, sizeof *s.stored)};
    char path[PATH_MAX];
    if (s.stored == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the notes of stores");
    if (mx_place_of(c->base, r->ranks.ranks, r->ranks.rank, 0, path) == 0) mx_see_cuts(&s, path);
    for (int32_t i = 0; i < s.n && c->n_discarded < MX_RUNS_DISCARDED; i++)
        if (s.seen[i].run > MX_RANKS_MOST) c->discarded[c->n_discarded++] = s.seen[i].run;
    mx_forget(&s);
    return 0;
}

/* Is there a store in the place of a new run that has only a note? Its input was read in the first sweep, and
 * its run is done, or other ranks have no matching store. Nobody can resume or export it. */
static bool is_left_empty(struct mx_run *r, const char *base) {
    struct mx_sight s;
    mx_why none;
    char path[PATH_MAX];
    const struct mx_seen *own = NULL;
    bool left = false;
    if (mx_place_of(base, mx_run_ranks_of(r), r->ranks.rank, 0, path) < 0 || mx_see_all(base, &none, &s) < 0)
        return false;
    for (int32_t i = 0; i < s.n; i++)
        if (strcmp(s.seen[i].path, path) == 0 && s.seen[i].pending) own = &s.seen[i];
    if (own != NULL) {
        const struct mx_seen *first = mx_find_rank(&s, own, 0);
        left = own->finished == MX_RUN_DONE || (own->ranks > 1 && (first == NULL || !mx_is_whole(&s, first)));
    }
    mx_forget(&s);
    return left;
}

int mx_run_find_state(struct mx_run *r) {
    struct mx_run_recut *c = &r->recut;
    struct choice found = {.ranks = 0};
    struct own own;
    bool all = false;
    if (r->o.path == NULL || strlen(r->o.path) >= sizeof c->base) return 0;
    if (!mx_is_directory(r->o.path) && strstr(r->o.path, "%r") == NULL) return 0;
    strcpy(c->base, r->o.path);
    c->left = !r->o.resume && is_left_empty(r, c->base);
    if (!r->o.resume && !r->o.dry_run)
        return r->o.force ? find_discarded(r) : mx_run_refuse_leftover(r, r->ranks.rank);
    if (!r->o.resume) return 0;
    int err = mx_is_rank(&r->ranks) ? all_have_theirs(r, &own, &all) : 0;
    if (err == 0 && all) {
        found = (struct choice){.ranks = r->ranks.ranks, .cut = own.cut, .run = own.run};
        return take_choice(r, &found);
    }
    if (err == 0) err = share_choice(r, &found);
    return err < 0 || found.ranks == 0 ? err : take_choice(r, &found);
}

int mx_run_check_ranks(struct mx_run *r) {
    if (mx_run_alone(r) && r->o.rank_weights != NULL && !r->o.dry_run)
        return mx_fail(&r->why, -EINVAL,
                       "--rank-weights needs several ranks, and this run has one: leave --rank-weights out");
    if (mx_run_alone(r)) return mx_run_find_state(r);
    mx_run_one_says(r);
    int err = mx_run_agree_error(r, mx_run_check_own_place(r));
    if (err == 0) mx_run_each_says(r);
    if (err == 0) err = mx_run_find_state(r);
    return err < 0 || r->recut.found ? err : mx_run_take_own_place(r);
}
