/* SPDX-License-Identifier: BSD-3-Clause */
/* json.h - values put into JSON objects. */
#ifndef MX_OBSERVE_JSON_H
#define MX_OBSERVE_JSON_H

#include <jansson.h>
#include <math.h>
#include <stdint.h>

/* Takes the value over. NULL, of a text that is no UTF-8 or that there is none of, is null. */
static inline void mx_json_put(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value != NULL ? value : json_null());
}

static inline void mx_json_put_whole(json_t *object, const char *key, int64_t value) {
    mx_json_put(object, key, json_integer(value));
}
static inline void mx_json_put_real(json_t *object, const char *key, double value) {
    mx_json_put(object, key, json_real(value));
}

/* Paths are bytes: one that is no UTF-8 is null. */
static inline json_t *mx_json_path(const char *path) {
    json_t *text = json_string(path);
    return text != NULL ? text : json_null();
}

/* JSON has no NaN. */
static inline json_t *mx_json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

#endif
