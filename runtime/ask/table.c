/* SPDX-License-Identifier: BSD-3-Clause */
#include "ask/table.h"

#include "ask/near.h"
#include "ask/rows.h"

#include <memext/backend.h>

#include <errno.h>
#include <string.h>

const struct mx_group_name mx_group_names[MX_GROUPS] = {
    [MX_GROUP_PROBLEM] = {"problem", "The problem"},
    [MX_GROUP_KERNEL] = {"kernel", "Your own kernel"},
    [MX_GROUP_POINTS] = {"points", "Point sources and probes"},
    [MX_GROUP_CHECKS] = {"checks", "Checks and when to end"},
    [MX_GROUP_OUTPUT] = {"output", "Results"},
    [MX_GROUP_PLACE] = {"place", "The place of the store"},
    [MX_GROUP_RESUME] = {"resume", "Commits, resuming, verification"},
    [MX_GROUP_PLAN] = {"plan", "Memory and the plan"},
    [MX_GROUP_TRANSFERS] = {"transfers", "Transfers"},
    [MX_GROUP_RANKS] = {"ranks", "Several processes"},
    [MX_GROUP_ACCEL] = {"accel", "Accelerators"},
    [MX_GROUP_RATES] = {"rates", "Speeds to plan with"},
    [MX_GROUP_MACHINE] = {"machine", "Another machine"},
    [MX_GROUP_WAVEFRONT] = {"wavefront", "The wavefront"},
    [MX_GROUP_REPORT] = {"report", "Reports and help"},
};

static const struct mx_option *const tables[] = {mx_rows_problem, mx_rows_files, mx_rows_place, mx_rows_plan,
                                                 mx_rows_wavefront};
enum { N_TABLES = sizeof tables / sizeof tables[0] };

const struct mx_option *mx_option_at(int i) {
    for (int t = 0; t < N_TABLES; t++)
        for (const struct mx_option *row = tables[t]; row->name != NULL; row++)
            if (i-- == 0) return row;
    return NULL;
}

static int number_of(const struct mx_option *wanted) {
    int i = 0;
    while (mx_option_at(i) != wanted) i++;
    return i;
}

const struct mx_option *mx_option_find(enum mx_command command, const char *name) {
    const struct mx_option *row;
    for (int i = 0; (row = mx_option_at(i)) != NULL; i++)
        if ((row->commands & command) && strcmp(row->name, name) == 0) return row;
    return NULL;
}

int mx_no_option(enum mx_command command, const char *name, size_t length, const char *dashes,
                 const char *way, mx_why *why) {
    struct mx_near near = mx_near_to(name, length);
    const struct mx_option *row;
    for (int i = 0; (row = mx_option_at(i)) != NULL; i++)
        if (row->commands & command) mx_near_offer(&near, row->name);
    return mx_fail(why, -EINVAL, "option '%s%.*s' is not known (%s)%s", dashes,
                   (int)(length < 60 ? length : 60), name, way, mx_near_say(&near, dashes).text);
}

int mx_option_take(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const int i = number_of(row);
    if (row->argument != NULL && value == NULL && !row->optional)
        return mx_fail(why, -EINVAL, "option '%s' needs a value: %s=%s", row->name, row->name, row->argument);
    if (row->argument == NULL && value != NULL)
        return mx_fail(why, -EINVAL, "option '%s' takes no value", row->name);
    if (row->closed && !mx_is_value(row->value_at, value, strlen(value)))
        return mx_no_value(row, value, strlen(value), "", why);
    int err = row->take(row, value, o, why);
    if (err == 0) o->given[i / 64] |= UINT64_C(1) << (i % 64);
    return err;
}

bool mx_option_given(const struct mx_options *o, const char *name) {
    const struct mx_option *row;
    for (int i = 0; (row = mx_option_at(i)) != NULL; i++)
        if (strcmp(row->name, name) == 0 && (o->given[i / 64] >> (i % 64) & 1)) return true;
    return false;
}
