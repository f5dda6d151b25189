/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/open/identity.h"

#include "files/field_words.h"
#include "grid/array.h"
#include "run/open/request.h"
#include "run/work/work.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* An option counts if it was given, or if what is not given says something as well. */
static bool says(const struct mx_run *r, const char *option) {
    return r->o.same || mx_option_given(&r->o, option);
}

/* `leave` names the options that could be left out. */
static int differs(struct mx_run *r, const char *place, const char *leave, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static int differs(struct mx_run *r, const char *place, const char *leave, const char *format, ...) {
    char what[sizeof r->why.text], way[160];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (r->o.same)
        snprintf(way, sizeof way, "%s", MX_SAME_WAY);
    else
        snprintf(way, sizeof way, "leave %s out with --resume, or start again with --force", leave);
    return mx_fail(&r->why, r->o.same ? -EEXIST : -EINVAL, "%.300s holds a run %.600s; %s", place, what, way);
}

/* ------------------------------------------------------------------ the equation */

/* A kernel, or the options of one, where the store has none, and the other way round. */
static int same_kind(struct mx_run *r, const char *place) {
    const struct mx_system *s = r->note.problem.system;
    const bool params = r->o.params.n > 0, edits = r->o.edit_params.n > 0, fields = r->o.fields.n > 0;
    if (s == NULL && (r->o.kernel != NULL || params || edits || fields))
        return differs(r, place,
                       r->o.kernel != NULL ? "--kernel"
                       : params            ? "--param"
                       : edits             ? "--edit-param"
                                           : "--field",
                       "of the built-in %s", r->note.problem.stencil);
    if (s == NULL) return 0;
    const bool built_in = mx_option_given(&r->o, "stencil") || mx_option_given(&r->o, "coef") ||
                          mx_option_given(&r->o, "dtype");
    if (built_in || (r->o.same && r->o.kernel == NULL))
        return differs(r, place, "--stencil, --coef and --dtype", "of the kernel \"%s\"", s->name);
    return 0;
}

static bool same_extents(const struct mx_problem *asked, const struct mx_problem *stored) {
    struct mx_problem p = *asked;
    mx_take_rows(&p, stored->flat);
    return p.flat == stored->flat && p.nx == stored->nx && p.ny == stored->ny &&
           p.nz == mx_all_planes(stored);
}

int mx_run_same_equation(struct mx_run *r, const char *place) {
    const struct mx_problem *a = &r->o.problem, *b = &r->note.problem;
    const double *c = b->coef;
    char stored[MX_EXTENTS_TEXT], asked[MX_EXTENTS_TEXT];
    const bool typed = r->o.same && r->o.input == NULL && !r->o.source; /* else the file says it */
    int err = same_kind(r, place);
    if (err < 0) return err;
    if (mx_option_given(&r->o, "size") && !same_extents(a, b))
        return differs(r, place, "-n", "of %s, %lld steps; -n gives another size, %s",
                       mx_extents_text(b, stored), (long long)b->nt, mx_extents_text(a, asked));
    if (mx_option_given(&r->o, "steps") && a->nt != b->nt && r->note.probes != 0 && !r->comparing)
        return differs(r, place, "-t",
                       "of %lld steps, and its file of traces (--probes-out) has no room for %lld steps",
                       (long long)b->nt, (long long)a->nt);
    if (b->system != NULL) return 0;
    if (says(r, "stencil") && strcmp(a->stencil, b->stencil) != 0)
        return differs(r, place, "--stencil", "of %s, not of %s", b->stencil, a->stencil);
    if (says(r, "coef") && memcmp(a->coef, b->coef, sizeof a->coef) != 0)
        return differs(r, place, "--coef",
                       "with the weights %.15g,%.15g,%.15g,%.15g, not %.15g,%.15g,%.15g,%.15g", c[0], c[1],
                       c[2], c[3], a->coef[0], a->coef[1], a->coef[2], a->coef[3]);
    if ((mx_option_given(&r->o, "dtype") || typed) && a->dtype != b->dtype)
        return differs(r, place, "--dtype", "in %s, not in %s", mx_dtype_name(b->dtype),
                       mx_dtype_name(a->dtype));
    return 0;
}

/* The values that were used must be those that are given; more may follow. */
static int same_series(struct mx_run *r, const char *place) {
    const struct mx_system *now = r->system;
    for (int32_t i = 0; i < now->n_param; i++) {
        const char *name = now->param_name[i];
        const struct mx_series *q = mx_series_of(now, i);
        const struct mx_note_series *then = mx_note_series(&r->note, name);
        if (q == NULL && then == NULL) continue;
        if (q == NULL)
            return differs(r, place, "--param",
                           "with a value of the parameter %s for each step, not with one value", name);
        if (then == NULL)
            return differs(r, place, "--param",
                           "with one value of the parameter %s, not with a value for each step", name);
        if (q->n < then->steps)
            return differs(
                r, place, "--param",
                "that has used %lld values of the parameter %s, one for each step, and %.300s has %lld",
                (long long)then->steps, name, q->path, (long long)q->n);
        if (XXH3_64bits(q->value, (size_t)(then->steps * mx_series_each(q)) * sizeof *q->value) != then->hash)
            return differs(r, place, "--param",
                           "that used other values of the parameter %s than the first %lld of %.300s", name,
                           (long long)then->steps, q->path);
    }
    return 0;
}

int mx_run_same_kernel(struct mx_run *r, const char *place) {
    const struct mx_system *then = &r->note.system, *now = r->system;
    if (now->identity != then->identity && r->o.same)
        return differs(r, place, "--kernel", "of the kernel \"%s\", whose text differs from that of %.200s",
                       then->name, r->o.kernel);
    if (now->identity != then->identity)
        return mx_fail(&r->why, -EINVAL,
                       "%.200s is not the kernel \"%s\" that the run in %.200s began with: its text has "
                       "changed. Give the original file with --kernel",
                       r->o.kernel, then->name, place);
    const int err = same_series(r, place);
    if (err < 0) return err;
    for (int32_t i = 0; i < now->n_param; i++)
        for (int32_t k = 0; k < then->n_param; k++) {
            const struct mx_note_edit *e = mx_note_edit(&r->note, then->param_name[k]);
            const double began =
                e != NULL && (r->o.same || now->param[i] != then->param[k]) ? e->began : then->param[k];
            if (mx_series_of(now, i) == NULL && strcmp(now->param_name[i], then->param_name[k]) == 0 &&
                memcmp(&now->param[i], &began, sizeof began) != 0)
                return differs(r, place, "--param", "with the parameter %s=%.15g, not %.15g",
                               then->param_name[k], began, now->param[i]);
        }
    return 0;
}

/* ------------------------------------------------------------------ frames, sides, points */

int mx_run_same_frames(struct mx_run *r, const char *place) {
    char text[MX_FRAME_TEXT];
    const char *then = r->note.frame[0] != 0 ? r->note.frame : "included";
    const int err = mx_frame_print(&r->o.frames, text, &r->why);
    if (err < 0 || !says(r, "frame") || strcmp(text, r->note.frame) == 0) return err;
    return differs(r, place, "--frame", "that began with --frame %.100s, not %.100s", then,
                   text[0] != 0 ? text : "included");
}

int mx_run_same_sides(struct mx_run *r, const struct mx_sides *given) {
    const struct mx_sides *then = &r->note.sides;
    char a[MX_SIDES_BRIEF], b[MX_SIDES_BRIEF];
    if (!says(r, "side") || memcmp(given, then, sizeof *given) == 0) return 0;
    return differs(r, r->o.path, "--side", "with the sides '%s', not '%s'",
                   mx_sides_brief(then, &r->o.problem, a), mx_sides_brief(given, &r->o.problem, b));
}

int mx_run_same_points(struct mx_run *r) {
    const char *place = r->o.path;
    if (r->sources_identity != r->note.sources) {
        if (r->o.same)
            return differs(r, place, "", r->note.sources == 0 ? "without sources" : "with other sources");
        return mx_fail(&r->why, -EINVAL,
                       r->note.sources == 0
                           ? "%.300s holds a run without sources; leave --source and --sources out with "
                             "--resume"
                           : "%.300s holds a run with other sources: give the same --source and --sources "
                             "with --resume",
                       place);
    }
    if (r->probes_identity == r->note.probes) return 0;
    if (r->o.same) return differs(r, place, "", r->note.probes == 0 ? "without probes" : "with other probes");
    return mx_fail(&r->why, -EINVAL,
                   r->note.probes == 0
                       ? "%.300s holds a run without probes; leave --probes out with --resume"
                       : "%.300s holds a run with other probes: give the same --probes and --probes-out "
                         "with --resume",
                   place);
}

/* ------------------------------------------------------------------ what fields begin with */

enum { WORDS = 300 };

static const char *describe(const struct mx_run *r, const struct mx_run_field *f, char text[WORDS]) {
    if (f->program)
        snprintf(text, WORDS, "%.200s", r->note.source[0] != 0 ? r->note.source : "values of a program");
    else if (f->init != NULL)
        snprintf(text, WORDS, "--init %s", f->init->name);
    else if (f->path[0] != 0)
        snprintf(text, WORDS, "%.200s%s%.80s", f->path, f->inside[0] != 0 ? ":" : "", f->inside);
    else
        snprintf(text, WORDS, "the values of the current state");
    return text;
}

static int other_field(struct mx_run *r, const char *place, const struct mx_run_field *then,
                       const struct mx_run_field *now) {
    const char *leave = then->array == MX_FIELD_OF_C ? "--field" : "--input and --init";
    char a[WORDS], b[WORDS];
    return differs(r, place, leave, "that began with other values: %s came from %s, not from %s", then->name,
                   describe(r, then, a), now->program ? r->source.name : describe(r, now, b));
}

static int same_program(struct mx_run *r, const char *place, const struct mx_run_field *then,
                        const char *field) {
    uint64_t now = 0;
    if (!then->program || strcmp(r->source.name, r->note.source) != 0) {
        const struct mx_run_field given = {.program = true};
        return other_field(r, place, then, &given);
    }
    if (r->source.identity == NULL || !then->identity.sampled) return 0;
    int err = r->source.identity(r->source.context, field, &now, &r->why);
    if (err != 0) return err < 0 ? err : -EIO;
    return now == then->identity.sample
               ? 0
               : differs(r, place, "the source",
                         "that began with other values: %s had other values (%s %016llx, not %016llx)",
                         then->name, r->source.name, (unsigned long long)then->identity.sample,
                         (unsigned long long)now);
}

static int same_file(struct mx_run *r, const char *place, const struct mx_run_field *then,
                     struct mx_run_field *now) {
    struct mx_problem problem = r->o.problem;
    const struct mx_problem all = problem;
    if (then->path[0] == 0) return other_field(r, place, then, now);
    int err = mx_field_look(now, &problem, &r->why);
    if (err < 0) return err;
    const bool one = strcmp(then->path, now->path) == 0;
    bool same = mx_input_same(&then->identity, &now->identity,
                              one || then->in_place || then->identity.inode == now->identity.inode);
    same &= !then->identity.sampled || then->frame == now->frame || then->made.kind != MX_FRAME_INCLUDED;
    same &= then->alike == now->alike;
    same &= problem.nx == all.nx && problem.ny == all.ny && problem.nz == all.nz;
    if (same) return 0;
    if (!one || strcmp(then->inside, now->inside) != 0) return other_field(r, place, then, now);
    return differs(r, place, then->array == MX_FIELD_OF_C ? "--field" : "--input",
                   "that began with other values: %.200s, the file of %s, has changed since", now->path,
                   then->name);
}

static int same_field(struct mx_run *r, const char *place, const struct mx_run_field *then,
                      struct mx_run_field *now) {
    if (now->program) return same_program(r, place, then, then->name);
    if (now->path[0] != 0) return same_file(r, place, then, now);
    if (now->init == NULL && now->same_as < 0) return 0; /* nothing is said of it */
    const bool same = then->path[0] == 0 && !then->program && then->init == now->init &&
                      (then->same_as < 0) == (now->same_as < 0);
    return same ? 0 : other_field(r, place, then, now);
}

/* The one field of a built-in stencil, as one of a kernel. */
static void stored_grid(const struct mx_note *n, struct mx_run_field *f) {
    *f = (struct mx_run_field){
        .name = "u", .dtype = n->problem.dtype, .same_as = -1, .identity = n->identity, .npy.fd = -1};
    f->init = n->init[0] != 0 ? mx_init_find(n->init) : NULL;
    f->program = n->source[0] != 0;
    f->frame = n->frame[0] == 0;
    char file[PATH_MAX];
    if (n->input[0] == 0) return;
    snprintf(f->inside, sizeof f->inside, "%s", mx_array_split(n->input, file));
    snprintf(f->path, sizeof f->path, "%.*s", MX_FIELD_PATH - 1, file);
}

static int given_grid(struct mx_run *r, struct mx_run_field *f) {
    const struct mx_options *o = &r->o;
    *f = (struct mx_run_field){.name = "u", .dtype = r->note.problem.dtype, .same_as = -1, .npy.fd = -1};
    f->program = o->source;
    if (o->init != NULL) f->init = mx_init_find(o->init);
    if (o->same && !o->source && o->input == NULL && o->init == NULL) f->init = &mx_inits[0];
    int err = o->input != NULL ? mx_field_take_path(f, o->input, r->input_raw, &r->why) : 0;
    return err < 0 ? err : mx_frame_take(&o->frames, &r->why, &f->made);
}

static int same_grid(struct mx_run *r, const char *place) {
    struct mx_run_field *both = calloc(2, sizeof *both);
    if (both == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the fields of a run");
    stored_grid(&r->note, &both[0]);
    int err = given_grid(r, &both[1]);
    both[0].made = both[1].made;
    if (err == 0) err = same_field(r, place, &both[0], &both[1]);
    free(both);
    return err;
}

static int same_fields(struct mx_run *r, const char *place) {
    struct mx_run_fields *now = calloc(1, sizeof *now);
    if (now == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the fields of a run");
    mx_fields_of(r->system, now);
    int err = (r->o.same ? mx_fields_take : mx_fields_take_some)(now, &r->o, r->o.source, r->system, &r->why);
    for (int32_t i = 0; i < now->n && err == 0; i++)
        err = same_field(r, place, &r->note.fields.field[i], &now->field[i]);
    free(now);
    return err;
}

/* A program's initial grid is nobody else's to verify. */
static int check_verify(struct mx_run *r, const char *place) {
    if (!r->o.verify || r->note.source[0] == 0 || r->o.source) return 0;
    return mx_fail(&r->why, -EINVAL,
                   "%.300s holds a run that began with the source %s of a program, and only that program can "
                   "verify it: leave --verify out",
                   place, r->note.source);
}

int mx_run_same_beginning(struct mx_run *r, const char *place) {
    const int err = r->system != NULL ? same_fields(r, place) : same_grid(r, place);
    return err < 0 ? err : check_verify(r, place);
}
