/* SPDX-License-Identifier: BSD-3-Clause */
/* sides_words.c - sides as words: read, checked, written. */
#include "system/sides.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdio.h>
#include <string.h>

static const char *const side_names[MX_SIDE_KINDS] = {
    [MX_SIDE_FIXED] = "fixed",         [MX_SIDE_MIRROR] = "mirror", [MX_SIDE_PERIODIC] = "periodic",
    [MX_SIDE_NEIGHBOUR] = "neighbour", [MX_SIDE_ODD] = "odd",       [MX_SIDE_MIRROR_NODE] = "mirror-node",
    [MX_SIDE_ODD_NODE] = "odd-node",   [MX_SIDE_EDGE] = "edge",
};

const char *mx_side_name(uint8_t side) { return side < MX_SIDE_KINDS ? side_names[side] : "several kinds"; }

char mx_axis_name(const struct mx_problem *p, int dim) {
    return p->flat && dim == MX_DIM_Z ? 'y' : (char)('x' + dim);
}

/* ------------------------------------------------------------------ reading */

static int side_find(const char *from, size_t length) {
    for (int i = 0; i < MX_SIDE_KINDS; i++)
        if (i != MX_SIDE_NEIGHBOUR && strlen(side_names[i]) == length &&
            memcmp(side_names[i], from, length) == 0)
            return i;
    return -1;
}

/* Of the state's fields, counted over both arrays: names that two arrays have are one field. */
struct words {
    const struct mx_problem *p;
    uint8_t all[3][2], field[2][MX_MAX_FIELDS][3][2];
    const char *all_by[3], *field_by[2][MX_MAX_FIELDS][3]; /* the word that said so, or NULL */
};

static const char *field_name(const struct mx_problem *p, int array, int32_t f) {
    return p->system != NULL ? p->system->field[array][f].name : "u";
}

static bool is_field(const struct words *w, int array, int32_t f, const char *name, size_t length) {
    const char *known = field_name(w->p, array, f);
    return strlen(known) == length && memcmp(known, name, length) == 0;
}

static int no_field(const struct words *w, const char *text, size_t length, mx_why *why) {
    const struct mx_system *s = w->p->system;
    char names[160] = "";
    for (int32_t i = 0; s != NULL && i < s->n_fixed; i++)
        if (strlen(s->fixed[i].name) == length && memcmp(s->fixed[i].name, text, length) == 0)
            return mx_fail(why, -EINVAL,
                           "side '%s': the kernel only reads %s, whose frame comes from its file; sides are "
                           "for state fields",
                           text, s->fixed[i].name);
    for (int array = 0; array < (s != NULL ? mx_system_states(s) : 1); array++)
        for (int32_t f = 0; f < mx_field_count(w->p, array); f++) {
            const size_t at = strlen(names);
            snprintf(names + at, sizeof names - at, "%s%s", at > 0 ? ", " : "", field_name(w->p, array, f));
        }
    return mx_fail(why, -EINVAL, "side '%s' names no state field: the kernel has %s", text, names);
}

/* The kinds after "x=". */
static int take_kinds(const char *text, const char *first, mx_why *why, uint8_t out[2]) {
    const char *comma = strchr(first, ','), *second = comma != NULL ? comma + 1 : first;
    const size_t length[2] = {comma != NULL ? (size_t)(comma - first) : strlen(first), strlen(second)};
    for (int i = 0; i < 2; i++) {
        const int side = side_find(i == 0 ? first : second, length[i]);
        if (side < 0)
            return mx_fail(
                why, -EINVAL,
                "side '%.*s' of '%s' is not known: choose fixed, mirror, odd, mirror-node, odd-node, edge or "
                "periodic, or two of them with a comma between them, as in z=fixed,mirror",
                (int)length[i], i == 0 ? first : second, text);
        out[i] = (uint8_t)side;
    }
    if ((out[0] == MX_SIDE_PERIODIC) != (out[1] == MX_SIDE_PERIODIC))
        return mx_fail(why, -EINVAL,
                       "side '%s' is periodic at one end only: give %c=periodic for both ends, or neither",
                       text, first[-2]);
    return 0;
}

static int say(const struct mx_problem *p, const char **by, uint8_t at[2], const char *text, int d,
               const uint8_t kinds[2], mx_why *why) {
    if (*by != NULL && memcmp(at, kinds, 2) != 0)
        return mx_fail(why, -EINVAL,
                       "the sides in %c are given twice, as '%s' and as '%s': leave one of them out",
                       mx_axis_name(p, d), *by, text);
    memcpy(at, kinds, 2);
    *by = text;
    return 0;
}

static int take_word(struct words *w, const char *text, mx_why *why) {
    const char *colon = strchr(text, ':'), *axis = colon != NULL ? colon + 1 : text;
    const size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    uint8_t kinds[2];
    bool found = false;
    if (axis[0] < 'x' || axis[0] > 'z' || axis[1] != '=')
        return mx_fail(why, -EINVAL,
                       "side '%s' names no axis: begin it with x=, y= or z=, as in x=periodic or "
                       "z=fixed,mirror. For one field put its name before, as in u:z=odd",
                       text);
    if (w->p->flat && axis[0] == 'z')
        return mx_fail(
            why, -EINVAL,
            "side '%s' is for z, and the grid of this kernel has two dimensions, x and y: leave it out",
            text);
    const int d = w->p->flat && axis[0] == 'y' ? MX_DIM_Z : axis[0] - 'x';
    int err = take_kinds(text, axis + 2, why, kinds);
    if (err < 0) return err;
    if (colon == NULL) return say(w->p, &w->all_by[d], w->all[d], text, d, kinds, why);
    for (int array = 0; array < 2; array++)
        for (int32_t f = 0; f < mx_field_count(w->p, array) && err == 0; f++)
            if (is_field(w, array, f, text, length)) {
                found = true;
                err = say(w->p, &w->field_by[array][f][d], w->field[array][f][d], text, d, kinds, why);
            }
    return err < 0 || found ? err : no_field(w, text, length, why);
}

static int check_field(const struct words *w, int array, int32_t f, int d, const uint8_t side[2],
                       const uint8_t first[2], mx_why *why) {
    const char *name = field_name(w->p, array, f);
    for (int end = 0; end < 2; end++)
        if ((MX_SIDES_MINUS >> side[end] & 1) != 0 && !mx_dtype_is_signed(mx_field_dtype(w->p, array, f)))
            return mx_fail(
                why, -EINVAL,
                "%s:%c=%s: field %s is %s, which has no negative values: choose mirror, or a signed type",
                name, mx_axis_name(w->p, d), side_names[side[end]], name,
                mx_dtype_name(mx_field_dtype(w->p, array, f)));
    if ((side[0] == MX_SIDE_PERIODIC) == (first[0] == MX_SIDE_PERIODIC)) return 0;
    return mx_fail(why, -EINVAL,
                   "%c is periodic for some fields but not for %s, and an axis must be periodic for all "
                   "fields or none: give %c=periodic without a field, or leave periodic out",
                   mx_axis_name(w->p, d), side[0] == MX_SIDE_PERIODIC ? field_name(w->p, 0, 0) : name,
                   mx_axis_name(w->p, d));
}

/* One dimension of all fields; those that are alike are said once. */
static int settle(const struct words *w, int d, mx_why *why, struct mx_sides *out) {
    uint8_t first[2] = {0, 0};
    bool differ[2] = {false, false};
    int err = 0;
    for (int array = 0; array < 2; array++)
        for (int32_t f = 0; f < mx_field_count(w->p, array) && err == 0; f++) {
            const uint8_t *side = w->field_by[array][f][d] != NULL ? w->field[array][f][d] : w->all[d];
            if (array == 0 && f == 0) memcpy(first, side, 2);
            err = check_field(w, array, f, d, side, first, why);
            for (int end = 0; end < 2; end++) {
                differ[end] |= side[end] != first[end];
                out->field[array][f][d][end] = side[end];
                out->some[d][end] |= (uint8_t)(1 << side[end]);
            }
        }
    for (int end = 0; end < 2; end++) {
        out->side[d][end] = differ[end] ? MX_SIDE_SEVERAL : first[end];
        if (differ[end]) continue;
        out->some[d][end] = 0;
        for (int32_t i = 0; i < 2 * MX_MAX_FIELDS; i++) out->field[i % 2][i / 2][d][end] = 0;
    }
    return err;
}

int mx_sides_read(const char *const *word, int32_t n, const struct mx_problem *problem, mx_why *why,
                  struct mx_sides *sides) {
    struct words w = {.p = problem};
    struct mx_sides read = {0};
    int err = 0;
    for (int32_t i = 0; i < n && err == 0; i++) err = take_word(&w, word[i], why);
    for (int d = 0; d < 3 && err == 0; d++) err = settle(&w, d, why, &read);
    return err < 0 ? err : (*sides = read, 0);
}

/* ------------------------------------------------------------------ checking */

static int64_t least(uint8_t side, int32_t h) {
    if (side == MX_SIDE_FIXED || side == MX_SIDE_NEIGHBOUR || side == MX_SIDE_EDGE) return 1;
    return h + (MX_SIDES_NODE >> side & 1);
}

int mx_sides_check(const struct mx_sides *sides, const struct mx_problem *p, mx_why *why) {
    for (int d = 0; d < 3; d++)
        for (int side = MX_SIDE_KINDS - 1; side > MX_SIDE_FIXED; side--) {
            const int64_t n = d == MX_DIM_Z ? mx_all_planes(p) : mx_extent_of(p, d),
                          need = least((uint8_t)side, mx_halo_of(p, d));
            if (!mx_sides_any(sides, d, 1 << side) || n >= need) continue;
            return mx_fail(why, -EINVAL,
                           "the grid has %lld cells in %c, and the side %s copies the %d nearest (the "
                           "radius)%s: give it %lld cells or more, or choose fixed or edge for the side",
                           (long long)n, mx_axis_name(p, d), side_names[side], p->h,
                           need > p->h ? " after the outermost cell" : "", (long long)need);
        }
    return 0;
}

/* ------------------------------------------------------------------ writing */

static size_t put_word(char *text, size_t at, const char *field, char axis, const uint8_t side[2]) {
    const bool alike = side[0] == side[1];
    return at + (size_t)snprintf(text + at, MX_SIDES_TEXT - at, "%s%s%s%c=%s%s%s", at > 0 ? " " : "", field,
                                 field[0] != 0 ? ":" : "", axis, side_names[side[0]], alike ? "" : ",",
                                 alike ? "" : side_names[side[1]]);
}

/* Of fields that differ all is said that is not fixed, field by field. */
const char *mx_sides_text(const struct mx_sides *sides, const struct mx_problem *p,
                          char text[MX_SIDES_TEXT]) {
    size_t at = 0;
    text[0] = 0;
    for (int d = 0; d < 3; d++) {
        const uint8_t *side = sides->side[d];
        const bool several = side[0] == MX_SIDE_SEVERAL || side[1] == MX_SIDE_SEVERAL;
        if (!several && !mx_sides_fixed(sides, d)) at = put_word(text, at, "", mx_axis_name(p, d), side);
        for (int array = 0; array < mx_states(p) && several; array++)
            for (int32_t f = 0; f < mx_field_count(p, array); f++) {
                const struct mx_ends e = mx_ends_of(sides, array, f, d);
                if (e.side[0] == MX_SIDE_FIXED && e.side[1] == MX_SIDE_FIXED) continue;
                at = put_word(text, at, field_name(p, array, f), mx_axis_name(p, d), e.side);
            }
    }
    return text;
}

const char *mx_sides_brief(const struct mx_sides *sides, const struct mx_problem *p,
                           char text[MX_SIDES_BRIEF]) {
    char all[MX_SIDES_TEXT];
    mx_sides_text(sides, p, all);
    const bool cut = strlen(all) >= MX_SIDES_BRIEF - 4;
    snprintf(text, MX_SIDES_BRIEF, "%.*s%s", MX_SIDES_BRIEF - 5, all[0] != 0 ? all : "fixed",
             cut ? "..." : "");
    return text;
}
