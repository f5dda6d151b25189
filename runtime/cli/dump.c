/* SPDX-License-Identifier: BSD-3-Clause */
/* dump.c - memext --options: the table of options as JSON, of which docs/make_options.py makes the manual's
 * section, the completions and Python's keywords. */
#include "cli/options.h"

#include "observe/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    enum mx_command command;
    const char *name;
} commands[] = {{MX_CMD_RUN, "run"},
                {MX_CMD_TUNE, "tune"},
                {MX_CMD_INFO, "info"},
                {MX_CMD_EXPORT, "export"},
                {MX_CMD_KERNEL, "kernel"},
                {MX_CMD_VIEW, "view"},
                {MX_CMD_WAVEFRONT, "wavefront"},
                {MX_CMD_TUNE_WAVEFRONT, "tune --wavefront"},
                {MX_CMD_LIBRARY, "library"}};

static void put_text(json_t *o, const char *key, const char *text) {
    mx_json_put(o, key, text != NULL ? json_string(text) : json_null());
}

static json_t *names_of(unsigned set) {
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (set & commands[i].command) json_array_append_new(list, json_string(commands[i].name));
    return list;
}

/* A limit as text: JSON has no number for all of them. */
static json_t *limit(uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return json_string(text);
}

static json_t *json_option(const struct mx_option *row) {
    const char letter[] = {(char)row->letter, 0};
    json_t *o = json_object(), *values = json_array();
    put_text(o, "name", row->name);
    put_text(o, "letter", row->letter != 0 ? letter : NULL);
    put_text(o, "group", mx_group_names[row->group].name);
    mx_json_put(o, "commands", names_of(row->commands));
    mx_json_put(o, "first", names_of(row->first));
    mx_json_put(o, "words", json_integer(row->words));
    mx_json_put(o, "fewest", json_integer(row->fewest > 0 ? row->fewest : row->words));
    mx_json_put(o, "repeats", json_boolean(row->repeats));
    mx_json_put(o, "optional", json_boolean(row->optional));
    put_text(o, "argument", row->argument);
    put_text(o, "summary", row->summary);
    put_text(o, "more", row->more);
    for (int i = 0; row->value_at != NULL && row->value_at(i) != NULL; i++)
        json_array_append_new(values, json_string(row->value_at(i)));
    mx_json_put(o, "values", values);
    mx_json_put(o, "closed", json_boolean(row->closed));
    put_text(o, "unit", row->unit);
    put_text(o, "range", row->range);
    mx_json_put(o, "low", row->high > 0 ? limit(row->low) : json_null());
    mx_json_put(o, "high", row->high > 0 ? limit(row->high) : json_null());
    put_text(o, "zero", row->zero);
    put_text(o, "default", row->initial);
    mx_json_put(o, "fixed_on_resume", json_boolean(row->on_resume == MX_RESUME_SAME));
    put_text(o, "excludes", row->excludes);
    put_text(o, "because", row->because);
    put_text(o, "needs", row->needs);
    return o;
}

int mx_options_dump(void) {
    json_t *all = json_object(), *groups = json_array(), *options = json_array();
    const struct mx_option *row;
    for (int g = 0; g < MX_GROUPS; g++) {
        json_t *group = json_object();
        put_text(group, "name", mx_group_names[g].name);
        put_text(group, "title", mx_group_names[g].title);
        json_array_append_new(groups, group);
    }
    for (int i = 0; (row = mx_option_at(i)) != NULL; i++) json_array_append_new(options, json_option(row));
    mx_json_put(all, "groups", groups);
    mx_json_put(all, "options", options);
    char *text = json_dumps(all, JSON_INDENT(1));
    json_decref(all);
    if (text != NULL) puts(text);
    free(text);
    return text != NULL ? MX_EXIT_OK : MX_EXIT_REFUSED;
}
