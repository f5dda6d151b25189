/* SPDX-License-Identifier: BSD-3-Clause */
/* random_sides.h - sides at random, field by field, as users say them; and what they mean, by a definition of
 * its own: which cell a frame cell is, with which sign, and which cells are 0. */
#ifndef RANDOM_SIDES_H
#define RANDOM_SIDES_H

#include "system/sides.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

typedef int64_t pick_fn(int64_t from, int64_t to);

/* Cell i of n, frames of h counted: the cell that it copies, itself where it copies none. */
static inline int64_t test_image(uint8_t kind, int64_t n, int64_t h, int64_t i, bool *minus) {
    const int64_t at = i - h; /* of the interior */
    *minus = false;
    if (at >= 0 && at < n) return i;
    *minus = kind == MX_SIDE_ODD || kind == MX_SIDE_ODD_NODE;
    if (kind == MX_SIDE_MIRROR || kind == MX_SIDE_ODD) return h + (at < 0 ? -1 - at : 2 * n - 1 - at);
    if (kind == MX_SIDE_MIRROR_NODE || kind == MX_SIDE_ODD_NODE) return h + (at < 0 ? -at : 2 * n - 2 - at);
    if (kind == MX_SIDE_EDGE) return h + (at < 0 ? 0 : n - 1);
    if (kind == MX_SIDE_PERIODIC) return h + (at < 0 ? at + n : at - n);
    return i;
}

/* Interior cell (x, y, z), from 0, of a field is 0. */
static inline bool test_zero(const struct mx_sides *s, const struct mx_problem *p, int array, int32_t f,
                             const int64_t at[3]) {
    for (int d = 0; d < 3; d++) {
        const struct mx_ends e = mx_ends_of(s, array, f, d);
        if ((at[d] == 0 && e.side[0] == MX_SIDE_ODD_NODE) ||
            (at[d] == mx_extent_of(p, d) - 1 && e.side[1] == MX_SIDE_ODD_NODE))
            return true;
    }
    return false;
}

static inline bool test_unsigned(const struct mx_problem *p) {
    bool any = false;
    for (int a = 0; a < 2; a++)
        for (int32_t f = 0; f < mx_field_count(p, a); f++) {
            const enum mx_dtype t = mx_field_dtype(p, a, f);
            any |= t == MX_U8 || t == MX_U16 || t == MX_U32 || t == MX_U64;
        }
    return any;
}

/* Those without a minus have no odd sides. */
static inline uint8_t test_kind(const struct mx_problem *p, int d, pick_fn *pick, bool old) {
    static const uint8_t all[] = {MX_SIDE_FIXED, MX_SIDE_MIRROR, MX_SIDE_EDGE,        MX_SIDE_MIRROR,
                                  MX_SIDE_ODD,   MX_SIDE_FIXED,  MX_SIDE_MIRROR_NODE, MX_SIDE_ODD_NODE};
    const int64_t n = mx_extent_of(p, d);
    if (old) return n < p->h ? MX_SIDE_FIXED : (uint8_t)pick(MX_SIDE_FIXED, MX_SIDE_MIRROR);
    const uint8_t kind = all[n < p->h ? 2 * pick(0, 1) : n == p->h ? pick(0, 5) : pick(0, 7)];
    if (!test_unsigned(p)) return kind;
    return kind == MX_SIDE_ODD ? MX_SIDE_MIRROR : kind == MX_SIDE_ODD_NODE ? MX_SIDE_MIRROR_NODE : kind;
}

enum { TEST_WORDS = 128 };
struct test_words {
    char text[TEST_WORDS][96];
    const char *word[TEST_WORDS];
    int32_t n;
};

static inline void test_word(const struct mx_problem *p, struct test_words *w, const char *field, int d,
                             const uint8_t side[2]) {
    char *text = w->text[w->n];
    const bool once = side[0] == side[1];
    snprintf(text, sizeof w->text[0], "%s%s%c=%s%s%s", field, field[0] != 0 ? ":" : "", mx_axis_name(p, d),
             mx_side_name(side[0]), once ? "" : ",", once ? "" : mx_side_name(side[1]));
    w->word[w->n++] = text;
}

static inline void test_axis(const struct mx_problem *p, int d, pick_fn *pick, struct test_words *w,
                             uint8_t kind[2][MX_MAX_FIELDS][3][2]) {
    const int fate = (int)pick(0, 5); /* periodic twice, the kinds of old once, as before; else any */
    const bool old = fate == 2, apart = fate > 3 && p->system != NULL;
    uint8_t side[2] = {MX_SIDE_PERIODIC, MX_SIDE_PERIODIC};
    if (fate > 1 || mx_extent_of(p, d) < p->h)
        side[0] = test_kind(p, d, pick, old), side[1] = test_kind(p, d, pick, old);
    const bool first = pick(0, 1); /* what is said of all stands before or after what is said of one */
    if (first) test_word(p, w, "", d, side);
    for (int a = 0; a < 2; a++)
        for (int32_t f = 0; f < mx_field_count(p, a); f++) {
            uint8_t *own = kind[a][f][d];
            memcpy(own, side, 2);
            if (a == 1 && mx_form(p) != MX_STAGGERED) memcpy(own, kind[0][f][d], 2);
            if (!apart || pick(0, 1) || (a == 1 && mx_form(p) != MX_STAGGERED)) continue;
            own[0] = test_kind(p, d, pick, false), own[1] = test_kind(p, d, pick, false);
            test_word(p, w, p->system->field[a][f].name, d, own);
        }
    if (!first) test_word(p, w, "", d, side);
}

/* Of the first `dims` dimensions. */
static inline void test_sides(const struct mx_problem *p, int dims, pick_fn *pick, struct mx_sides *out) {
    static uint8_t kind[2][MX_MAX_FIELDS][3][2];
    static struct test_words w;
    mx_why why = {""};
    w.n = 0;
    memset(kind, 0, sizeof kind);
    for (int d = 0; d < dims; d++)
        if (!p->flat || d != MX_DIM_Y) test_axis(p, d, pick, &w, kind);
    cr_assert_eq(mx_sides_read(w.word, w.n, p, &why, out), 0, "%s", why.text);
    cr_assert_eq(mx_sides_check(out, p, &why), 0, "%s", why.text);
    for (int a = 0; a < 2; a++)
        for (int32_t f = 0; f < mx_field_count(p, a); f++)
            for (int d = 0; d < 3; d++) {
                const struct mx_ends e = mx_ends_of(out, a, f, d);
                cr_assert_eq(memcmp(e.side, kind[a][f][d], 2), 0, "array %d field %d axis %d", a, f, d);
            }
}

#endif
