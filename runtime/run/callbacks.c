/* SPDX-License-Identifier: BSD-3-Clause */
/* callbacks.c - sources and sinks of programs. */
#include "run/callbacks.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A struct of a program, as far as both sides know it. */
int mx_run_take_struct(void *to, size_t known, const void *from, const char *what, mx_why *why) {
    uint32_t size;
    memcpy(&size, from, sizeof size);
    if (size < sizeof size || size > 4096)
        return mx_fail(why, -EINVAL, "%s has size %u: set it to the sizeof of the struct", what, size);
    memset(to, 0, known);
    memcpy(to, from, size < known ? size : known);
    return 0;
}

/* Rows of a box, one by one, to or from a program that wants it so. */
static int each_row(int (*row)(void *, const struct mx_grid_box *, mx_why *), void *context,
                    const struct mx_grid_box *box, mx_why *why) {
    int err = 0;
    for (int64_t z = box->z0; z < box->z1 && err == 0; z++)
        for (int64_t y = box->y0; y < box->y1 && err == 0; y++) {
            struct mx_grid_box one = *box;
            one.y0 = y, one.y1 = y + 1, one.z0 = z, one.z1 = z + 1;
            one.data = (char *)box->data + (z - box->z0) * box->plane_pitch_bytes +
                       (y - box->y0) * box->row_pitch_bytes;
            err = row(context, &one, why);
        }
    return err;
}

static int row_source_open(void *context, struct mx_grid *grid, mx_why *why) {
    const struct mx_source *s = context;
    return s->open(s->context, grid, why);
}
static int row_source_region(void *context, const struct mx_grid_box *box, mx_why *why) {
    const struct mx_source *s = context;
    return each_row(s->row, s->context, box, why);
}
static int row_source_identity(void *context, const char *field, uint64_t *out, mx_why *why) {
    const struct mx_source *s = context;
    return s->identity(s->context, field, out, why);
}
static void row_source_close(void *context) {
    const struct mx_source *s = context;
    s->close(s->context);
}
static int row_sink_open(void *context, const struct mx_grid *grid, mx_why *why) {
    const struct mx_sink *s = context;
    return s->open(s->context, grid, why);
}
static int row_sink_region(void *context, const struct mx_grid_box *box, mx_why *why) {
    const struct mx_sink *s = context;
    return each_row(s->row, s->context, box, why);
}
static int row_sink_close(void *context, bool whole, mx_why *why) {
    const struct mx_sink *s = context;
    return s->close(s->context, whole, why);
}

/* Whoever has one or the other: what the rest of the library sees has a function `region`. */
static void source_of_rows(struct mx_source *source, struct mx_source *rows) {
    if (source->region != NULL || source->row == NULL) return;
    *rows = *source;
    source->context = rows;
    source->region = row_source_region;
    if (rows->open != NULL) source->open = row_source_open;
    if (rows->close != NULL) source->close = row_source_close;
    if (rows->identity != NULL) source->identity = row_source_identity;
}
static void sink_of_rows(struct mx_sink *sink, struct mx_sink *rows) {
    if (sink->region != NULL || sink->row == NULL) return;
    *rows = *sink;
    sink->context = rows;
    sink->region = row_sink_region;
    if (rows->open != NULL) sink->open = row_sink_open;
    if (rows->close != NULL) sink->close = row_sink_close;
}

int mx_run_take_source(struct mx_run *r, const struct mx_source *source, mx_why *why) {
    if (source == NULL) return 0;
    if (r->o.input != NULL || r->o.init != NULL)
        return mx_fail(why, -EINVAL,
                       "a source and the option %s exclude each other, since both give the initial grid: "
                       "leave one of them out",
                       r->o.input != NULL ? "input" : "init");
    int err = mx_run_take_struct(&r->source, sizeof r->source, source, "mx_source", why);
    if (err < 0) return err;
    source_of_rows(&r->source, &r->row_source);
    const char *name = r->source.name;
    bool plain = name != NULL && name[0] != 0 && strlen(name) < sizeof r->source_name;
    for (const char *c = name; plain && *c != 0; c++) plain = *c >= 0x20 && *c < 0x7f;
    if (!plain || r->source.region == NULL)
        return mx_fail(
            why, -EINVAL,
            "a source needs a function `region` or `row`, and a name of 1 to 63 printable ASCII characters");
    if (r->source.open == NULL && !r->o.resume && !mx_option_given(&r->o, "size"))
        return mx_fail(why, -EINVAL,
                       "the run has no grid: the source %s does not give its extents; give size=NX NY NZ",
                       name);
    r->source.name = strcpy(r->source_name, name);
    return 0;
}

int mx_run_take_values(struct mx_run *r, const struct mx_edit *edit, mx_why *why) {
    struct mx_run_edit *e = &r->edit;
    const struct mx_source none = {.size = 0};
    int err = mx_run_take_struct(&e->values, sizeof e->values, edit->source != NULL ? edit->source : &none,
                                 "mx_source", why);
    if (err < 0) return err;
    source_of_rows(&e->values, &e->value_rows);
    if (e->values.region == NULL)
        return mx_fail(why, -EINVAL, "to change fields, give a source with a function `region` or `row`");
    e->n_names = 0;
    for (const char *const *name = edit->fields; *name != NULL; name++) {
        if (e->n_names == MX_MAX_FIXED || strlen(*name) >= MX_FIELD_NAME)
            return mx_fail(why, -EINVAL, "'%.40s' is not a read-only field of the run (a run has at most %d)",
                           *name, MX_MAX_FIXED);
        snprintf(e->name[e->n_names++], MX_FIELD_NAME, "%s", *name);
    }
    return 0;
}

int mx_run_take_sink(struct mx_run *r, const struct mx_sink *sink, mx_why *why) {
    if (sink == NULL) return 0;
    if (r->o.outputs.n > 0)
        return mx_fail(why, -EINVAL,
                       "a sink and the option output exclude each other, since both take the result: leave "
                       "one of them out");
    int err = mx_run_take_struct(&r->sink, sizeof r->sink, sink, "mx_sink", why);
    if (err < 0) return err;
    sink_of_rows(&r->sink, &r->row_sink);
    if (r->sink.region == NULL) err = mx_fail(why, -EINVAL, "a sink needs a function `region` or `row`");
    return err;
}
