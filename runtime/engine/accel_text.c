/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_text.c - what a device's compiler gets: the numbers of a run, memext/cell_device.h and the cell of
 * the user's kernel; the built-in stencils are written as such cells, by the expression of stencil/stencil.c.
 */
#include "engine/accel_text.h"
#include "engine/accel_room.h"
#include "engine/after.h"
#include "system/profile.h"

#include <ctype.h>
#include <errno.h>
#include <memext/backend.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char mx_cell_device_text[];

static void add_name(struct mx_accel_names *out, const char *kernel, const char *tail) {
    snprintf(out->text[out->n], sizeof out->text[out->n], "mx_%s%s", kernel, tail);
    out->name[out->n] = out->text[out->n];
    out->n++;
}

/* Returns how many kernels of a kind other than reductions there are: a cell for each level of a step, and
 * otherwise one for each array with fields of its own. */
static int64_t kernels_of(const struct mx_problem *p, int kernel) {
    return kernel == MX_ACCEL_CELL ? mx_levels_a_step(p) : mx_states(p);
}

void mx_accel_names(const struct mx_problem *p, const struct mx_after *after, bool fused,
                    struct mx_accel_names *out) {
    static const char *const kernels[] = {"cell", "sources", "probes", "frame", "image"};
    out->n = 0;
    for (int i = 0; i < (after != NULL ? MX_ACCEL_CHANGE : MX_ACCEL_CELL + 1); i++)
        for (int64_t level = 0; level < kernels_of(p, i); level++) {
            char tail[16] = "";
            if (mx_states(p) == 2) snprintf(tail, sizeof tail, level == 0 ? "_b" : "_a");
            if (i == MX_ACCEL_CELL && mx_has_stages(p)) snprintf(tail, sizeof tail, "_%d", (int)level + 1);
            add_name(out, kernels[i], tail);
        }
    if (fused) add_name(out, "fused", "");
    if (after == NULL) return;
    add_name(out, "change", "");
    if (after->norms == NULL) return;
    const struct mx_norms_options *o = mx_norms_asked(after->norms);
    for (int32_t i = 0; i < o->n_reduce; i++) add_name(out, "reduce_", o->reduce[i].name);
}

int32_t mx_accel_kernel(const struct mx_problem *p, enum mx_accel_kernel kernel, int64_t level) {
    int64_t before = 0;
    for (int k = 0; k < (int)kernel && k < MX_ACCEL_CHANGE; k++) before += kernels_of(p, k);
    if (kernel >= MX_ACCEL_CHANGE) return (int32_t)before + (int32_t)kernel - MX_ACCEL_CHANGE;
    return (int32_t)(before + level % kernels_of(p, kernel));
}

bool mx_accel_fuses(const struct mx_problem *p) {
    enum { GROUP_BYTES = 48 << 10 }; /* that a kernel may have without asking */
    const int64_t h = p->h, cells = (2 * h + 2) * MX_ACCEL_GROUP_X * MX_ACCEL_GROUP_Y;
    return mx_takes_two_levels(p) && MX_ACCEL_GROUP_Y >= 4 * h && cells * mx_cell_bytes(p, 0) <= GROUP_BYTES;
}

/* Groups that a device of CUDA is to have under way at a time on each of its processors: four of this size
 * have all of its places, with 32 registers for a work item. They are enough for the columns of a star, 4
 * bytes each, while they are short; where a cell needs more, fewer groups are faster. And planes that the
 * loop has written out, so that what moves on from one to the next is renamed. Measured on an H200. */
struct pace {
    int groups, planes;
};
static struct pace pace(const struct mx_problem *p) {
    const int64_t columns = 2 * (2 * (int64_t)p->h + 1) * mx_cell_bytes(p, 0) / 4;
    const bool is_star = p->system == NULL && mx_stencil_find(p->stencil)->n_coef <= 2;
    if (!is_star || columns > 20) return (struct pace){2, 1};
    return columns <= 12 ? (struct pace){4, 8} : (struct pace){3, 4};
}

/* ---- built-in stencils */

static void weight(FILE *f, const struct mx_problem *p, int i, double value) {
    if (p->dtype == MX_F32)
        fprintf(f, "#define W%d (%.8ef)\n", i, (double)(float)value);
    else
        fprintf(f, "#define W%d (%.16e)\n", i, value);
}

static void star(FILE *f, const struct mx_problem *p) {
    weight(f, p, 0, p->coef[0]);
    for (int d = 1; d <= p->h; d++) weight(f, p, d, p->coef[1] / d);
    fprintf(f, "MX_CELL\n    CELL sum = W0 * P(0, 0, 0);\n");
    for (int d = 1; d <= p->h; d++)
        fprintf(f,
                "    sum = sum + W%d * ((P(-%d, 0, 0) + P(%d, 0, 0)) + ((P(0, -%d, 0) + P(0, %d, 0)) + "
                "(P(0, 0, -%d) + P(0, 0, %d))));\n",
                d, d, d, d, d, d, d);
    fprintf(f, "    SET(u, sum);\nMX_END\n");
}

static void box(FILE *f, const struct mx_problem *p, int32_t n_coef) {
    for (int i = 0; i < n_coef; i++) weight(f, p, i, p->coef[i]);
    fprintf(f, "#define ZZ(x, y) (P(x, y, -1) + P(x, y, 1))\n"
               "#define C1(x) ((P(x, -1, 0) + P(x, 1, 0)) + ZZ(x, 0))\n"
               "#define C2(x) (ZZ(x, -1) + ZZ(x, 1))\n"
               "MX_CELL\n"
               "    CELL sum = W0 * P(0, 0, 0) + W1 * ((P(-1, 0, 0) + P(1, 0, 0)) + C1(0));\n"
               "    sum = sum + W2 * ((C1(-1) + C1(1)) + C2(0));\n");
    if (n_coef > 3) fprintf(f, "    sum = sum + W3 * (C2(-1) + C2(1));\n");
    fprintf(f, "    SET(u, sum);\nMX_END\n");
}

static void stencil_cell(FILE *f, const struct mx_problem *p) {
    const struct mx_stencil *s = mx_stencil_find(p->stencil);
    const char *type = p->dtype == MX_F32 ? "float" : "double";
    fprintf(f,
            "#define MX_NAME \"%s\"\n#define MX_RADIUS %d\n#define MX_STATE(F) F(u, %s)\n"
            "#include <memext/cell.h>\n#define CELL %s\n#define P(x, y, z) AT(u, x, y, z)\n",
            p->stencil, p->h, type, type);
    if (s->n_coef > 2)
        box(f, p, s->n_coef);
    else
        star(f, p);
}

/* ---- the numbers of a run */

static void number(FILE *f, const char *what, const char *name, int64_t value) {
    fprintf(f, "#define MX_D_%s%s ((int64_t)%lldL)\n", what, name, (long long)value);
}

static void numbers(FILE *f, const struct mx_work *w, const struct mx_view *v) {
    const struct mx_problem *p = w->problem;
    const struct mx_system *s = p->system;
    number(f, "NX", "", p->nx);
    number(f, "NY", "", p->ny);
    number(f, "NZ", "", mx_all_planes(p));
    number(f, "DEEP", "", MX_ACCEL_DEEP);
    number(f, "FIRST_PLANE", "", p->first_plane);
    number(f, "ROW_PITCH", "", v->row_pitch_bytes);
    number(f, "PLANE_PITCH", "", v->plane_pitch_bytes);
    if (s == NULL) number(f, "OFFSET_", "u", 0);
    for (int array = 0; s != NULL && array < mx_system_states(s); array++)
        for (int32_t i = 0; i < s->n_field[array]; i++)
            number(f, "OFFSET_", s->field[array][i].name, w->fields[array].offset_bytes[i]);
    for (int32_t i = 0; i < mx_fixed_count(p); i++) {
        const struct mx_fixed_view *c = &v->fixed[i];
        number(f, "PITCH_", s->fixed[i].name, c->row_pitch_bytes);
        number(f, "PROFILE_", s->fixed[i].name, mx_view_is_profile(c));
        number(f, "STEP_", s->fixed[i].name, !mx_has_one_cell(&s->profile[i]));
        number(f, "SLOT_PITCH_", s->fixed[i].name, c->slot_pitch_bytes);
        number(f, "GHOSTS_", s->fixed[i].name, c->period_planes > 0);
        number(f, "ORIGIN_", s->fixed[i].name, c->offset_bytes);
        number(f, "FILE_PITCH_", s->fixed[i].name, c->file_plane_pitch_bytes);
        number(f, "ALIGN_", s->fixed[i].name, c->align_bytes);
    }
    if (s != NULL && s->n_series > 0) fprintf(f, "#define MX_D_SERIES\n");
    for (int32_t i = 0; s != NULL && i < s->n_param; i++) {
        const struct mx_series *q = mx_series_of(s, i);
        if (q != NULL && q->each > 1)
            fprintf(f, "#define MX_D_VALUE_%s (mx_series[%lldL + mx_t * %d + mx_of_step])\n",
                    s->param_name[i], (long long)mx_accel_series_at(p, (int32_t)(q - s->series)), q->each);
        else if (q != NULL)
            fprintf(f, "#define MX_D_VALUE_%s (mx_series[%lldL + mx_t])\n", s->param_name[i],
                    (long long)mx_accel_series_at(p, (int32_t)(q - s->series)));
        else
            fprintf(f, "#define MX_D_VALUE_%s (%.16e)\n", s->param_name[i], s->param[i]);
    }
}

/* Fields by number, for points. */
static void after_numbers(FILE *f, const struct mx_problem *p) {
    const struct mx_system *s = p->system;
    fprintf(f, "#define MX_D_AFTER\n");
    if (s == NULL) number(f, "INDEX_", "u", 0);
    for (int array = 0; s != NULL && array < mx_system_states(s); array++)
        for (int32_t i = 0; i < s->n_field[array]; i++) number(f, "INDEX_", s->field[array][i].name, i);
}

/* ---- all of it */

/* What an #include line includes, "" where it is none. */
static void included(const char *line, char *name, size_t capacity) {
    name[0] = 0;
    while (*line == ' ' || *line == '\t') line++;
    if (*line++ != '#') return;
    while (*line == ' ' || *line == '\t') line++;
    if (strncmp(line, "include", 7) != 0) return;
    line += 7;
    while (*line == ' ' || *line == '\t') line++;
    if (*line != '<' && *line != '"') return;
    const size_t n = strcspn(line + 1, ">\"\n");
    snprintf(name, capacity, "%.*s", (int)(n < capacity ? n : capacity - 1), line + 1);
}

/* Where a constant of the file begins, after `static`; NULL where the line is none. To OpenCL those are in
 * memory of their own, which it has to be told. */
static const char *constant(const char *line) {
    const char *at = line + strspn(line, " \t"), *const_at;
    if (strncmp(at, "static", 6) != 0) return NULL;
    const_at = at + 6 + strspn(at + 6, " \t");
    if (const_at == at + 6 || strncmp(const_at, "const", 5) != 0 || strchr(" \t", const_at[5]) == NULL)
        return NULL;
    const size_t before_value = strcspn(const_at, "=;(\n");
    return const_at[before_value] == '(' ? NULL : const_at; /* a function */
}

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Behind the number that begins here. */
static const char *after_number(const char *at, const char *end) {
    for (at++; at < end && (in_word(*at) || *at == '.'); at++)
        if (strchr("eEpP", *at) != NULL && at + 1 < end && strchr("+-", at[1]) != NULL) at++;
    return at < end ? at : end;
}

/* Behind the text in quotes that begins here, at the end of its line at the latest. */
static const char *after_quotes(const char *at, const char *end) {
    const char quote = *at;
    for (at++; at < end && *at != quote; at++) at += *at == '\\' && at + 1 < end;
    return at < end ? at + 1 : end;
}

/* A number with one `l` in its suffix where it has two. */
static void write_number(FILE *f, const char *from, const char *end) {
    const char *suffix = end;
    while (suffix > from && strchr("uUlL", suffix[-1]) != NULL) suffix--;
    bool is_long = false;
    fwrite(from, 1, (size_t)(suffix - from), f);
    for (; suffix < end; suffix++) {
        const bool l = *suffix == 'l' || *suffix == 'L';
        if (!l || !is_long) fputc(*suffix, f);
        is_long |= l;
    }
}

/* Is this word `long`, with another one behind it? Then that is where the second one begins. */
static const char *second_long(const char *from, const char *word_end, const char *end) {
    const char *next = word_end;
    while (next < end && (*next == ' ' || *next == '\t')) next++;
    const bool both = word_end - from == 4 && strncmp(from, "long", 4) == 0 && next > word_end &&
                      end - next > 4 && strncmp(next, "long", 4) == 0 && !in_word(next[4]);
    return both ? next : NULL;
}

/* Part of a line. `long` of devices has 64 bits. What is `long long` to C, also as the suffix of a number,
 * has 128 in OpenCL, where sums would not wrap: it becomes long. */
static void write_line(FILE *f, const char *at, const char *end) {
    for (const char *next; at < end; at = next) {
        next = at + 1;
        if (isdigit((unsigned char)*at) || (*at == '.' && next < end && isdigit((unsigned char)*next))) {
            next = after_number(at, end);
            write_number(f, at, next);
            continue;
        }
        if (*at == '"' || *at == '\'') next = after_quotes(at, end);
        while (in_word(*at) && next < end && in_word(*next)) next++;
        const char *second = second_long(at, next, end);
        if (second != NULL)
            next = second;
        else
            fwrite(at, 1, (size_t)(next - at), f);
    }
}

/* The cell's file with cell_device.h where it includes cell.h; functions of other headers a device has
 * anyway.
 */
static void insert(FILE *f, const char *cell) {
    char name[64];
    for (const char *line = cell, *end; *line != 0; line = end) {
        end = strchr(line, '\n');
        end = end != NULL ? end + 1 : line + strlen(line);
        included(line, name, sizeof name);
        const char *value = constant(line);
        if (value != NULL) fprintf(f, "MX_D_TABLE ");
        if (value == NULL) value = line;
        if (name[0] == 0)
            write_line(f, value, end);
        else if (strcmp(name, "memext/cell.h") == 0)
            fprintf(f, "%s\n", mx_cell_device_text);
        else
            fprintf(f, "\n");
    }
}

int mx_accel_text(const struct mx_work *w, const struct mx_view *v, const struct mx_after *after, bool fused,
                  mx_why *why, char **out) {
    const struct mx_problem *p = w->problem;
    char *cell = NULL, *text = NULL;
    size_t bytes;
    if (p->system != NULL && p->system->text == NULL)
        return mx_fail(why, -ENOTSUP,
                       "the kernel \"%s\" is given as a compiled file, and an accelerator needs its source: "
                       "give FILE.c with --kernel, or leave --accel out",
                       p->system->name);
    FILE *f = p->system == NULL ? open_memstream(&cell, &bytes) : NULL;
    if (f != NULL) stencil_cell(f, p);
    if (f != NULL) fclose(f);
    f = open_memstream(&text, &bytes);
    if (f == NULL || (p->system == NULL && cell == NULL)) {
        if (f != NULL) fclose(f);
        free(cell);
        free(text);
        return mx_fail(why, -ENOMEM, "no memory for the text of a kernel");
    }
    /* Functions and tables of the user may stand before what cell_device.h says. */
    fprintf(f, "#if defined(__OPENCL_C_VERSION__)\n#pragma OPENCL FP_CONTRACT OFF\n#ifdef cl_khr_fp64\n"
               "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif\n#define MX_D_TABLE __constant\n#else\n"
               "#define MX_D_TABLE static\n#endif\n");
    numbers(f, w, v);
    if (after != NULL) after_numbers(f, p);
    if (fused) {
        fprintf(f, "#define MX_D_FUSED\n");
        fprintf(f, "#define MX_D_GROUP_X %d\n#define MX_D_GROUP_Y %d\n", MX_ACCEL_GROUP_X, MX_ACCEL_GROUP_Y);
        fprintf(f, "#define MX_D_GROUPS %d\n#define MX_D_PLANES_AT_ONCE %d\n", pace(p).groups,
                pace(p).planes);
        number(f, "TILE_", "Z", MX_ACCEL_TILE_Z);
    }
    insert(f, p->system != NULL ? p->system->text : cell);
    if (fused) fprintf(f, "\nMX_D_KERNELS\n");
    fclose(f);
    free(cell);
    return *out = text, 0;
}
