/* SPDX-License-Identifier: BSD-3-Clause */
/* load.c - loads the object of a kernel and reads its description. */
#include "kernel/private.h"

#include <dlfcn.h>
#include <errno.h>
#include <memext/backend.h>
#include <stdio.h>
#include <string.h>

/* The types of cell.h are those of the library; MX_DTYPES: none. */
static const enum mx_dtype type_of[MX_CELL_TYPES] = {
    [MX_CELL_F64] = MX_F64, [MX_CELL_F32] = MX_F32, [MX_CELL_U8] = MX_U8,
    [MX_CELL_U16] = MX_U16, [MX_CELL_I16] = MX_I16, [MX_CELL_OTHER] = (enum mx_dtype)MX_DTYPES,
    [MX_CELL_I8] = MX_I8,   [MX_CELL_I32] = MX_I32, [MX_CELL_U32] = MX_U32,
    [MX_CELL_I64] = MX_I64, [MX_CELL_U64] = MX_U64};

/* ---- the description */

static bool is_name(const char *name, size_t capacity) {
    const size_t n = name != NULL ? strnlen(name, capacity) : 0;
    return n > 0 && n < capacity;
}

static int check_versions(const struct mx_kernel *k, const char *path, mx_why *why) {
    if (k->version != MX_CELL_VERSION)
        return mx_fail(why, -EINVAL,
                       "%.200s was built with version %u of memext/cell.h, and this memext has version %d: "
                       "build it again with the header of this memext",
                       path, k->version, MX_CELL_VERSION);
    if (k->size != sizeof *k || k->row_size != sizeof(struct mx_row) ||
        k->field_size != sizeof(struct mx_cell_field) || k->param_size != sizeof(struct mx_cell_param) ||
        k->reduce_size != sizeof(struct mx_cell_reduce))
        return mx_fail(why, -EINVAL,
                       "%.200s was built with a memext/cell.h that does not match this memext (its "
                       "structures have %u, %u, %u, %u and %u bytes, not %zu, %zu, %zu, %zu and %zu): build "
                       "it again with the header of this memext",
                       path, k->size, k->row_size, k->field_size, k->param_size, k->reduce_size, sizeof *k,
                       sizeof(struct mx_row), sizeof(struct mx_cell_field), sizeof(struct mx_cell_param),
                       sizeof(struct mx_cell_reduce));
    bool more = k->flags != 0;
    for (size_t i = 0; i < sizeof k->more / sizeof k->more[0]; i++) more |= k->more[i] != NULL;
    const int32_t most_levels = k->form == MX_STAGGERED ? 2 : k->form == MX_JACOBI ? MX_MAX_STAGES : 1;
    more |= k->deep != NULL && (k->deep->planes < 2 || k->deep->planes > MX_MAX_DEEP);
    if (more || k->n_levels < 1 + (k->form == MX_STAGGERED) || k->n_levels > most_levels ||
        k->radius[1] != k->radius[0] || (k->radius[2] != k->radius[0] && k->radius[2] != 0))
        return mx_fail(why, -ENOTSUP,
                       "%.200s needs something that this memext (%s) does not have. It was built with a "
                       "newer memext/cell.h: use the memext of that header",
                       path, MX_VERSION);
    if (!is_name(k->name, sizeof((struct mx_system *)0)->name))
        return mx_fail(why, -EINVAL, "the kernel in %.200s needs a name (MX_NAME) of 1 to 63 characters",
                       path);
    return 0;
}

static const char *name_of_cell(const struct mx_kernel *k, int32_t level, char out[24]) {
    snprintf(out, 24, "MX_CELL_%d", level + 1);
    if (k->form == MX_STAGGERED) return level == 0 ? "MX_CELL_B" : "MX_CELL_A";
    return k->n_levels > 1 ? out : "MX_CELL";
}

static int check_counts(const struct mx_kernel *k, mx_why *why) {
    const struct {
        const char *what, *macro;
        int32_t value, low, high;
    } counts[] = {{"its form", "MX_FORM", k->form, MX_JACOBI, MX_STAGGERED},
                  {"its radius", "MX_RADIUS", k->radius[0], 1, MX_MAX_HALO},
                  {"the radius of its read-only fields", "MX_FIXED_RADIUS", k->fixed_radius, 0, k->radius[0]},
                  {"the number of its state fields", "MX_STATE", k->n_state, 1, MX_MAX_FIELDS},
                  {"the number of its partner fields", "MX_PARTNER", k->n_partner, k->form == MX_STAGGERED,
                   k->form == MX_STAGGERED ? MX_MAX_FIELDS : 0},
                  {"the number of its read-only fields", "MX_FIXED", k->n_fixed, 0, MX_MAX_FIXED},
                  {"the number of its parameters", "MX_PARAMS", k->n_param, 0, MX_MAX_PARAMS},
                  {"the number of its reductions", "MX_REDUCES", k->n_reduce, 0, MX_MAX_REDUCES}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i].value < counts[i].low || counts[i].value > counts[i].high)
            return mx_fail(why, -EINVAL, "the kernel \"%s\" gives %s (%s) as %d: it must be %d to %d%s",
                           k->name, counts[i].what, counts[i].macro, counts[i].value, counts[i].low,
                           counts[i].high,
                           strcmp(counts[i].macro, "MX_PARTNER") != 0 ? ""
                           : k->form == MX_STAGGERED                  ? "; MX_STAGGERED needs at least one"
                                                     : "; only MX_STAGGERED has partner fields");
    if (k->real_bytes != 8 && k->real_bytes != 4)
        return mx_fail(why, -EINVAL,
                       "the kernel \"%s\" has an MX_REAL of %d bytes: it must be double or float", k->name,
                       k->real_bytes);
    char cell[24];
    for (int32_t i = 0; i < k->n_levels; i++)
        if (k->level[i] == NULL)
            return mx_fail(why, -EINVAL,
                           "the kernel \"%s\" has no part %s ... MX_END, which computes its cells: write it",
                           k->name, name_of_cell(k, i, cell));
    for (int32_t i = 0; k->deep != NULL && i < k->n_levels; i++)
        if (k->deep->level == NULL || k->deep->level[i] == NULL)
            return mx_fail(why, -EINVAL,
                           "the kernel \"%s\" has functions for several planes, but none for %s: build it "
                           "again with the header of this memext",
                           k->name, name_of_cell(k, i, cell));
    return 0;
}

static int copy_fields(const struct mx_kernel *k, const struct mx_cell_field *from, int32_t n,
                       const char *macro, struct mx_field_of *to, mx_why *why) {
    for (int32_t i = 0; i < n; i++) {
        if (!is_name(from[i].name, MX_FIELD_NAME))
            return mx_fail(why, -EINVAL,
                           "field %d of %s of the kernel \"%s\" needs a name of 1 to %d characters", i, macro,
                           k->name, MX_FIELD_NAME - 1);
        const int type = from[i].type < MX_CELL_TYPES ? (int)type_of[from[i].type] : MX_DTYPES;
        if (type == MX_DTYPES || from[i].bytes != mx_dtype_bytes((enum mx_dtype)type))
            return mx_fail(
                why, -EINVAL,
                "field %s of %s of the kernel \"%s\" has the type %.60s: it must be double, float, or one of "
                "int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t and uint64_t",
                from[i].name, macro, k->name, from[i].type_name != NULL ? from[i].type_name : "(unknown)");
        to[i].dtype = (enum mx_dtype)type;
        strcpy(to[i].name, from[i].name);
    }
    return 0;
}

static int check_duplicates(const struct mx_system *s, mx_why *why) {
    const char *names[2 * MX_MAX_FIELDS + MX_MAX_FIXED];
    int n = 0;
    for (int array = 0; array < mx_system_states(s); array++)
        for (int32_t i = 0; i < s->n_field[array]; i++) names[n++] = s->field[array][i].name;
    for (int32_t i = 0; i < s->n_fixed; i++) names[n++] = s->fixed[i].name;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                return mx_fail(why, -EINVAL, "the kernel \"%s\" has two fields named %s", s->name, names[i]);
    for (int i = 0; i < s->n_param; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(s->param_name[i], s->param_name[j]) == 0)
                return mx_fail(why, -EINVAL, "the kernel \"%s\" has two parameters named %s", s->name,
                               s->param_name[i]);
    for (int i = 0; i < s->n_reduce; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(s->reduce[i].name, s->reduce[j].name) == 0)
                return mx_fail(why, -EINVAL, "the kernel \"%s\" has two reductions named %s", s->name,
                               s->reduce[i].name);
    return 0;
}

static int copy_params(const struct mx_kernel *k, struct mx_system *s, mx_why *why) {
    for (int32_t i = 0; i < k->n_param; i++) {
        if (!is_name(k->param[i].name, MX_FIELD_NAME))
            return mx_fail(why, -EINVAL,
                           "parameter %d of the kernel \"%s\" needs a name of 1 to %d characters", i, k->name,
                           MX_FIELD_NAME - 1);
        strcpy(s->param_name[i], k->param[i].name);
        s->param[i] = k->param[i].value;
    }
    return 0;
}

static int copy_reduces(const struct mx_kernel *k, struct mx_system *s, mx_why *why) {
    for (int32_t i = 0; i < k->n_reduce; i++) {
        const struct mx_cell_reduce *from = &k->reduce[i];
        if (!is_name(from->name, MX_FIELD_NAME))
            return mx_fail(why, -EINVAL,
                           "reduction %d of the kernel \"%s\" needs a name of 1 to %d characters", i, k->name,
                           MX_FIELD_NAME - 1);
        if (from->kind != MX_SUM && from->kind != MX_MAX && from->kind != MX_MIN)
            return mx_fail(why, -EINVAL,
                           "the reduction %s of the kernel \"%s\" must be MX_SUM, MX_MAX or MX_MIN",
                           from->name, k->name);
        if (from->value == NULL)
            return mx_fail(why, -EINVAL, "the kernel \"%s\" has no part MX_REDUCE(%s) ... MX_END", k->name,
                           from->name);
        strcpy(s->reduce[i].name, from->name);
        s->reduce[i].kind = (int32_t)from->kind;
        s->reduce[i].value = from->value;
    }
    s->n_reduce = k->n_reduce;
    return 0;
}

static int copy_description(const struct mx_kernel *k, const char *path, struct mx_system *s, mx_why *why) {
    int err = check_versions(k, path, why);
    if (err == 0) err = check_counts(k, why);
    if (err < 0) return err;
    const bool staggered = k->form == MX_STAGGERED;
    snprintf(s->name, sizeof s->name, "%s", k->name);
    s->form = k->form, s->h = k->radius[0], s->hc = k->fixed_radius;
    s->flat = k->radius[2] == 0 && k->radius[0] > 0;
    s->n_field[0] = k->n_state, s->n_field[1] = staggered ? k->n_partner : k->n_state;
    s->n_fixed = k->n_fixed, s->n_param = k->n_param;
    s->stages = !staggered && k->n_levels > 1 ? k->n_levels : 0;
    s->deep_planes = k->deep != NULL ? (int32_t)k->deep->planes : 1;
    for (int32_t i = 0; i < k->n_levels; i++) {
        s->row[i] = k->level[i];
        if (k->deep != NULL) s->deep[i] = k->deep->level[i];
    }
    err = copy_fields(k, k->state, k->n_state, "MX_STATE", s->field[0], why);
    if (err == 0)
        err = staggered ? copy_fields(k, k->partner, k->n_partner, "MX_PARTNER", s->field[1], why)
                        : copy_fields(k, k->state, k->n_state, "MX_STATE", s->field[1], why);
    if (err == 0) err = copy_fields(k, k->fixed, k->n_fixed, "MX_FIXED", s->fixed, why);
    if (err == 0) err = copy_params(k, s, why);
    if (err == 0) err = copy_reduces(k, s, why);
    return err == 0 ? check_duplicates(s, why) : err;
}

int mx_kernel_load(const char *path, const char *name, mx_why *why, struct mx_system *out, void **handle) {
    mx_loader_lock();
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    mx_loader_unlock();
    if (*handle == NULL)
        return mx_fail(why, -EINVAL, "the kernel %.150s cannot be loaded: %.300s", name, dlerror());
    const struct mx_kernel *k = dlsym(*handle, "mx_kernel");
    if (k == NULL)
        return mx_fail(why, -EINVAL,
                       "%.200s describes no kernel: a kernel defines MX_NAME, MX_RADIUS and MX_STATE and "
                       "includes memext/cell.h",
                       name);
    return copy_description(k, name, out, why);
}
