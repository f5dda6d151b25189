/* SPDX-License-Identifier: BSD-3-Clause */
/* json.h - puts values into JSON objects. */
#ifndef MX_OBSERVE_JSON_H
#define MX_OBSERVE_JSON_H

#include <jansson.h>
#include <math.h>
#include <stdint.h>

/* Puts a value, which the object then owns. NULL becomes null: a text that is missing or not UTF-8. */
static inline void mx_json_put(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value != NULL ? value : json_null());
}

static inline void mx_json_put_whole(json_t *object, const char *key, int64_t value) {
    mx_json_put(object, key, json_integer(value));
}
static inline void mx_json_put_real(json_t *object, const char *key, double value) {
    mx_json_put(object, key, json_real(value));
}

/* Returns a path as JSON; a path that is not UTF-8 becomes null. */
static inline json_t *mx_json_path(const char *path) {
    json_t *text = json_string(path);
    return text != NULL ? text : json_null();
}

/* Returns a number as JSON; NaN and infinities become null. */
static inline json_t *mx_json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

#endif
