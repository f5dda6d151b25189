/* SPDX-License-Identifier: BSD-3-Clause */
/* job.c - options of a run as a JSON object, and back. */
#include "ask/asked.h"
#include "ask/take.h"

#include <memext/backend.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER = 40, LONGEST = 1 << 16 };

/* ------------------------------------------------------------------ reading */

/* What a job cannot ask for. */
static bool of_command_line(const struct mx_option *row) {
    return row->take == mx_ask_help || strcmp(row->name, "write-job") == 0;
}

/* A text or a number as text; NULL: it is neither. */
static const char *scalar(const json_t *value, char number[NUMBER]) {
    if (json_is_string(value)) return json_string_value(value);
    if (json_is_integer(value))
        return snprintf(number, NUMBER, "%" PRId64, (int64_t)json_integer_value(value)), number;
    for (int digits = 15; json_is_real(value) && digits <= 17; digits++) {
        snprintf(number, NUMBER, "%.*g", digits, json_real_value(value));
        if (digits == 17 || strtod(number, NULL) == json_real_value(value)) return number;
    }
    return NULL;
}

static int wrong(const struct mx_option *row, mx_why *why) {
    if (row->argument == NULL) return mx_fail(why, -EINVAL, "%s: give true or false in a job", row->name);
    return mx_fail(why, -EINVAL, "%s: give a text or a number%s: %s", row->name,
                   row->repeats     ? ", a list of them or an object of names"
                   : row->words > 1 ? ", or a list of them"
                                    : "",
                   row->argument);
}

/* name (or NULL) and value as NAME=VALUE. */
static int add_text(struct mx_asked *out, const struct mx_option *row, const char *name, const json_t *value,
                    mx_why *why) {
    char number[NUMBER];
    const char *text = scalar(value, number);
    if (text == NULL) return wrong(row, why);
    const size_t room = strlen(text) + (name != NULL ? strlen(name) : 0) + 2;
    char *own = malloc(room);
    if (own == NULL) return mx_fail(why, -ENOMEM, "no memory for the job");
    snprintf(own, room, "%s%s%s", name != NULL ? name : "", name != NULL ? "=" : "", text);
    return mx_asked_add(out, row, own, own, why);
}

/* The parts of one value: numbers, with a blank or a comma between them. */
static int add_joined(struct mx_asked *out, const struct mx_option *row, const json_t *list, mx_why *why) {
    char number[NUMBER], *own = calloc(1, LONGEST);
    size_t n = 0, i;
    const json_t *part;
    if (own == NULL) return mx_fail(why, -ENOMEM, "no memory for the job");
    json_array_foreach(list, i, part) {
        const char *text = scalar(part, number);
        if (text == NULL || n + strlen(text) + 2 > LONGEST) return free(own), wrong(row, why);
        n += (size_t)snprintf(own + n, LONGEST - n, "%s%s", i == 0 ? "" : row->words > 1 ? " " : ",", text);
    }
    return mx_asked_add(out, row, own, own, why);
}

static int add_object(struct mx_asked *out, const struct mx_option *row, json_t *object, mx_why *why) {
    const char *name;
    json_t *value;
    int err = 0;
    json_object_foreach(object, name, value) {
        err = add_text(out, row, name, value, why);
        if (err < 0) break;
    }
    return err;
}

static int add_value(struct mx_asked *out, const struct mx_option *row, json_t *value, mx_why *why) {
    if (row->argument == NULL && json_is_boolean(value))
        return json_is_true(value) ? mx_asked_add(out, row, NULL, NULL, why) : 0;
    if (row->argument == NULL) return wrong(row, why);
    if (json_is_object(value) && row->repeats) return add_object(out, row, value, why);
    if (!json_is_array(value)) return add_text(out, row, NULL, value, why);
    if (!row->repeats) return add_joined(out, row, value, why);
    int err = 0;
    for (size_t i = 0; i < json_array_size(value) && err == 0; i++)
        err = add_text(out, row, NULL, json_array_get(value, i), why);
    return err;
}

int mx_job_parse(const char *text, size_t bytes, mx_why *why, struct mx_asked *out) {
    json_error_t where;
    json_t *job = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where), *value;
    const char *key;
    struct mx_asked asked = {.n = 0};
    int err = 0;
    if (job == NULL) return mx_fail(why, -EINVAL, "line %d is not JSON: %.120s", where.line, where.text);
    if (!json_is_object(job)) err = mx_fail(why, -EINVAL, "a job is one JSON object of options");
    json_object_foreach(job, key, value) {
        const struct mx_option *row = mx_option_find(MX_CMD_RUN, key);
        err = row == NULL || of_command_line(row)
                  ? mx_no_option(MX_CMD_RUN, key, strlen(key), "", "memext run --help all lists them", why)
                  : add_value(&asked, row, value, why);
        if (err < 0) break;
    }
    json_decref(job);
    if (err < 0) return mx_asked_free(&asked), err;
    return *out = asked, 0;
}

/* ------------------------------------------------------------------ writing */

static json_t *whole_or_text(const char *word, size_t length) {
    char text[NUMBER], again[NUMBER];
    snprintf(text, sizeof text, "%.*s", (int)(length < NUMBER ? length : NUMBER - 1), word);
    const long long number = strtoll(text, NULL, 10);
    snprintf(again, sizeof again, "%lld", number);
    return strcmp(text, again) == 0 ? json_integer(number) : json_stringn(word, length);
}

static json_t *value_of(const struct mx_asked_option *o) {
    if (o->row->argument == NULL) return json_true();
    if (o->row->take == mx_ask_count) return whole_or_text(o->value, strlen(o->value));
    if (o->row->take != mx_ask_counts && o->row->take != mx_ask_extents) return json_string(o->value);
    json_t *list = json_array();
    for (const char *p = o->value + strspn(o->value, " "); *p != 0; p += strspn(p, " ")) {
        const size_t n = strcspn(p, " ");
        json_array_append_new(list, whole_or_text(p, n));
        p += n;
    }
    if (json_array_size(list) != 1) return list;
    json_t *one = json_incref(json_array_get(list, 0));
    json_decref(list);
    return one;
}

json_t *mx_job_json(const struct mx_asked *a) {
    json_t *job = json_object();
    for (int32_t i = 0; i < a->n; i++) {
        const struct mx_option *row = a->option[i].row;
        json_t *former = json_object_get(job, row->name);
        if (of_command_line(row)) continue;
        if (!row->repeats || former == NULL) {
            json_object_set_new(job, row->name, value_of(&a->option[i]));
            continue;
        }
        if (!json_is_array(former)) {
            json_t *list = json_array();
            json_array_append(list, former);
            json_object_set_new(job, row->name, list);
            former = list;
        }
        json_array_append_new(former, value_of(&a->option[i]));
    }
    return job;
}
