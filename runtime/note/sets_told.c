/* SPDX-License-Identifier: BSD-3-Clause */
/* sets_told.c - describes sets of stores, for people and programs. */
#include "note/sets.h"

#include "note/note_private.h"

#include "machine/size.h"
#include "observe/json.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool mx_are_sets(const struct mx_sight *s, const char *base) {
    return s->n > 1 || (s->n == 1 && strcmp(s->seen[0].path, base) != 0);
}

/* Is it told as one of the stores of `first`? */
static bool is_of(const struct mx_seen *e, const struct mx_seen *first) {
    return e->run == first->run && e->cut == first->cut && e->ranks == first->ranks;
}

static bool is_left(const struct mx_sight *s, const struct mx_seen *e) {
    bool left = true;
    for (int32_t i = 0; i < s->n; i++) left &= !mx_set_counts(s, &s->seen[i]) || !is_of(e, &s->seen[i]);
    return left;
}

/* A store as it is now. */
static int look_again(const struct mx_sight *s, const struct mx_seen *first, int32_t rank, mx_why *why) {
    struct mx_stored *t = s->stored;
    const struct mx_note *n = &t->note;
    const int err = mx_stored_look(mx_find_rank(s, first, rank)->path, why, t);
    if (err < 0) return err;
    t->note.pending = mx_set_is_pending(s, first);
    if (t->have_note && (n->run == 0 || n->run == first->run) && n->cut == first->cut) return 0;
    return mx_fail(why, -EBUSY, "another memext changed %.300s a moment ago: start again", t->facts.place);
}

/* The same with the state that all of its set have. */
static int look_at(const struct mx_sight *s, const struct mx_seen *first, int32_t rank, mx_why *why) {
    struct mx_note *n = &s->stored->note;
    const int err = look_again(s, first, rank, why);
    if (err < 0 || mx_note_moment(n) == mx_common_moment(s, first)) return err;
    n->met = (struct mx_met){.step = 0}, n->checksum[0] = 0, n->timed = false;
    mx_note_go_back(n);
    mx_note_settle_edits(n);
    return 0;
}

static int print_ranks(const struct mx_sight *s, const struct mx_seen *first, mx_why *why, FILE *to) {
    int err = 0;
    for (int32_t k = 0; k < first->ranks && err == 0; k++) {
        const struct mx_seen *e = mx_find_rank(s, first, k);
        if ((err = look_at(s, first, k, why)) < 0) break;
        fprintf(to, "rank %-5d %ss %lld to %lld, step %lld", k, mx_plane_word(s->stored->note.problem.flat),
                (long long)e->first_plane, (long long)(e->first_plane + s->stored->note.problem.nz - 1),
                (long long)e->time);
        if (e->before_time < e->time && first->ranks > 1) fprintf(to, " and %lld", (long long)e->before_time);
        if (e->before_time == e->time && e->before_moment < e->moment)
            fprintf(to, " before and after the last edit");
        fprintf(to, ", %s, %s\n", mx_size(s->stored->facts.file_bytes).text, s->stored->facts.place);
    }
    return err;
}

/* One set; its note is the newest, which has what the run was asked for last, of the whole grid. */
static int print_set(const struct mx_sight *s, const struct mx_seen *first, const char *base,
                     uint64_t dram_bytes, mx_why *why, FILE *to) {
    struct mx_stored *t = s->stored;
    char name[MX_SET_NAME_BYTES];
    const struct mx_seen *newest = mx_find_rank(s, first, mx_newest_rank(s, first));
    int err = look_at(s, first, newest->rank, why);
    if (err < 0) return err;
    const bool busy = t->facts.in_use || t->note.different;
    struct mx_note *note =
        busy ? NULL : malloc(sizeof *note); /* the stores of the ranks are looked at next */
    fprintf(to, "set        %s, %d %s, grid cut %d, %s\n", base, first->ranks,
            first->ranks > 1 ? "ranks" : "rank", first->cut, mx_stored_state(t));
    t->note.problem.nz = first->all_planes;
    t->note.problem.first_plane = 0;
    mx_note_show(&t->note, to);
    if (note != NULL) *note = t->note;
    if (note != NULL && note->problem.system != NULL) note->problem.system = &note->system;
    err = print_ranks(s, first, why, to);
    if (err == 0 && note != NULL)
        mx_note_show_ways(note, first->ranks, base, mx_set_name(s, first, base, name), dram_bytes, to);
    free(note);
    return err;
}

int mx_sets_print(const struct mx_sight *s, const char *base, uint64_t dram_bytes, mx_why *why, FILE *to) {
    int err = 0;
    for (int32_t i = 0; i < s->n && err == 0; i++)
        if (mx_set_counts(s, &s->seen[i])) err = print_set(s, &s->seen[i], base, dram_bytes, why, to);
    for (int32_t i = 0; i < s->n && err == 0; i++) {
        const struct mx_seen *e = &s->seen[i];
        if (!is_left(s, e)) continue;
        if (e->run == 0)
            fprintf(to, "left over  %s, %s\n", e->path, e->foreign ? "not a store" : "empty");
        else
            fprintf(to,
                    "left over  %s: rank %d of %d, grid cut %d, step %lld; it is not a whole set, since "
                    "stores of other ranks are missing\n",
                    e->path, e->rank, e->ranks, e->cut, (long long)e->time);
    }
    return err;
}

static int json_set(const struct mx_sight *s, const struct mx_seen *first, mx_why *why, json_t **out) {
    struct mx_stored *t = s->stored;
    json_t *o = json_object(), *stores = json_array();
    int err = look_at(s, first, mx_newest_rank(s, first), why);
    mx_json_put(o, "ranks", json_integer(first->ranks));
    mx_json_put(o, "cut", json_integer(first->cut));
    mx_json_put(o, "planes", json_integer(first->all_planes));
    mx_json_put(o, "step", json_integer(mx_common_step(s, first)));
    if (err == 0) {
        mx_json_put(o, "state", json_string(mx_stored_state(t)));
        mx_json_put(o, "steps", json_integer(t->note.problem.nt));
        mx_json_put(o, "edits", json_integer(t->note.edits));
        mx_json_put(o, "edited_step", t->note.edits > 0 ? json_integer(t->note.edited) : json_null());
        mx_json_put(o, "complete", json_boolean(mx_note_complete(&t->note)));
    }
    for (int32_t k = 0; k < first->ranks && err == 0; k++) {
        if ((err = look_again(s, first, k, why)) < 0) break;
        json_array_append_new(stores, mx_stored_json(t));
    }
    mx_json_put(o, "stores", stores);
    if (err < 0) json_decref(o);
    return err < 0 ? err : (*out = o, 0);
}

int mx_sets_json(const struct mx_sight *s, const char *base, mx_why *why, json_t **out) {
    json_t *all = json_object(), *sets = json_array(), *left = json_array(), *one;
    int err = 0;
    mx_json_put(all, "place", json_string(base));
    mx_json_put(all, "sets", sets);
    mx_json_put(all, "left", left);
    for (int32_t i = 0; i < s->n && err == 0; i++)
        if (mx_set_counts(s, &s->seen[i]) && (err = json_set(s, &s->seen[i], why, &one)) == 0)
            json_array_append_new(sets, one);
    for (int32_t i = 0; i < s->n && err == 0; i++)
        if (is_left(s, &s->seen[i])) json_array_append_new(left, json_string(s->seen[i].path));
    if (err < 0) json_decref(all);
    return err < 0 ? err : (*out = all, 0);
}
