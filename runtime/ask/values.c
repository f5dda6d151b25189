/* SPDX-License-Identifier: BSD-3-Clause */
#include "ask/values.h"

#include "accel/accel.h"
#include "ask/near.h"
#include "grid/grid.h"
#include "link/link.h"
#include "schedule/schedule.h"
#include "stencil/stencil.h"
#include "tune/tune.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ the values */

/* Of a list that ends with NULL. */
static const char *of_list(const char *const *list, int i) {
    for (int k = 0; k < i; k++)
        if (list[k] == NULL) return NULL;
    return list[i];
}
#define LIST(name, ...)                                                                                      \
    const char *name(int i) {                                                                                \
        static const char *const list[] = {__VA_ARGS__, NULL};                                               \
        return of_list(list, i);                                                                             \
    }
/* Of a table whose last row, which has no name, is told by `end`. */
#define TABLE(function, table, end, name)                                                                    \
    const char *function(int i) {                                                                            \
        for (int k = 0; k < i; k++)                                                                          \
            if (table[k] end) return NULL;                                                                   \
        return table[i] end ? NULL : table[i] name;                                                          \
    }

LIST(mx_value_dtype, "f64", "f32")
LIST(mx_value_frame, "included", "edge", "mirror", "periodic")
LIST(mx_value_side, "fixed", "mirror", "odd", "mirror-node", "odd-node", "edge", "periodic")
LIST(mx_value_nonfinite, "end", "ignore")
LIST(mx_value_output_frame, "included", "none")
LIST(mx_value_advice, "none", "sequential", "random", "willneed", "hugepage", "schedule")
LIST(mx_value_reserve, "auto", "paper")
LIST(mx_value_engine, "iblock", "tiled", "device")
LIST(mx_value_layout, "row", "block", "frontier")
LIST(mx_value_matrix_init, "random", "linear", "zero")
TABLE(mx_value_stencil, mx_stencils, .name == NULL, .name)
TABLE(mx_value_init, mx_inits, .name == NULL, .name)
TABLE(mx_value_tuner, mx_tuners, .name == NULL, .name)
TABLE(mx_value_backend, mx_backends, == NULL, ->name)
TABLE(mx_value_algorithm, mx_algorithms, == NULL, ->name)
TABLE(mx_value_link, mx_links, == NULL, ->name)
TABLE(of_accels, mx_accels, == NULL, ->name)

const char *mx_value_accel(int i) { return i == 0 ? "auto" : of_accels(i - 1); }

/* ------------------------------------------------------------------ words that are none */

bool mx_is_value(mx_value_at *value_at, const char *word, size_t length) {
    const char *name;
    for (int i = 0; (name = value_at(i)) != NULL; i++)
        if (strlen(name) == length && memcmp(name, word, length) == 0) return true;
    return false;
}

int mx_no_value(const struct mx_option *row, const char *word, size_t length, const char *others,
                mx_why *why) {
    char names[256] = "";
    size_t n = 0;
    struct mx_near near = mx_near_to(word, length);
    const char *name;
    for (int i = 0; (name = row->value_at(i)) != NULL; i++) {
        const char *comma = i == 0 ? "" : row->value_at(i + 1) != NULL || others[0] != 0 ? ", " : " or ";
        const int put = snprintf(names + n, sizeof names - n, "%s%s", comma, name);
        if (n + (size_t)put < sizeof names) n += (size_t)put;
        mx_near_offer(&near, name);
    }
    return mx_fail(why, -EINVAL, "--%s '%.*s' is not known; choose %s%s%s", row->name,
                   (int)(length < 60 ? length : 60), word, names, others, mx_near_say(&near, "").text);
}
