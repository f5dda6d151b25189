/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel.c - opens a kernel: its text or object, and its parameters. */
#include "kernel/private.h"
#include "system/profile.h"
#include "system/values.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- loading */

/* Floating-point modes (rounding, denormals as zeros) that an object's constructors may change. */
static unsigned modes(void) {
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr() & 0xffc0u;
#else
    return 0;
#endif
}

struct loading {
    const char *name, *path; /* of the kernel, and of the object */
    struct mx_system *system;
    void *handle;
};

static int load_in_child(void *context, struct mx_isolated *report) {
    struct loading *l = context;
    const unsigned before = modes();
    int err = mx_kernel_load(l->path, l->name, &report->why, l->system, &l->handle);
    if (err == 0 && modes() != before)
        err = mx_fail(&report->why, -EINVAL,
                      "loading the kernel %.200s changes the modes of floating-point arithmetic: link it "
                      "without -ffast-math",
                      l->name);
    return err;
}

/* ---- parameters */

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* A parameter over time. */
static int take_series(struct mx_system *s, int32_t param, const char *path, mx_why *why) {
    if (s->n_series == MX_MAX_SERIES)
        return mx_fail(why, -EINVAL,
                       "the parameter %s is too many: at most %d parameters can have a value for each step",
                       s->param_name[param], MX_MAX_SERIES);
    struct mx_series q = {.param = param, .path = realpath(path, NULL)}; /* a store names it */
    if (q.path == NULL)
        return mx_fail(why, -errno, "the parameter %s: %.300s: %s", s->param_name[param], path,
                       strerror(errno));
    int err = mx_values_read_levels(path, "a parameter over time", mx_system_levels(s), why, &q.n, &q.each,
                                    &q.value);
    for (int64_t i = 0; i < q.n * q.each && err == 0; i++)
        if (!isfinite(q.value[i]))
            err = mx_fail(why, -EINVAL, "%.300s: value %lld, for step %lld, is not finite", path,
                          (long long)i, (long long)(i / q.each));
    if (err == 0 && q.n == 0)
        err =
            mx_fail(why, -EINVAL,
                    "%.300s is empty: a parameter that changes over time needs a value for each step", path);
    if (err < 0) {
        free(q.path);
        free(q.value);
        return err;
    }
    s->param[param] = q.value[0];
    s->series[s->n_series++] = q;
    return 0;
}

static int take_param(struct mx_system *s, const char *word, bool *taken, mx_why *why) {
    const char *equals = strchr(word, '=');
    if (equals == NULL || equals == word)
        return mx_fail(why, -EINVAL, "--param '%.100s' is not NAME=VALUE", word);
    const size_t n = (size_t)(equals - word);
    char known[256];
    for (int32_t i = 0; i < s->n_param; i++) {
        if (strlen(s->param_name[i]) != n || memcmp(s->param_name[i], word, n) != 0) continue;
        double value;
        if (taken[i])
            return mx_fail(
                why, -EINVAL,
                "the parameter %s is given twice, the second time as '%.100s': leave one of them out",
                s->param_name[i], word);
        taken[i] = true;
        if (ends_with(equals + 1, ".npy")) return take_series(s, i, equals + 1, why);
        if (!mx_read_number(equals + 1, &value))
            return mx_fail(why, -EINVAL,
                           "the parameter '%.100s': '%.100s' is not a finite number, a quotient such as 1/8, "
                           "or a FILE.npy with a value for each step",
                           word, equals + 1);
        if (mx_number_is_rounded(equals + 1, value))
            return mx_fail(why, -EINVAL,
                           "the parameter '%.100s': a double cannot hold this integer above 2^53; give "
                           "%.0f.0 to accept the nearest one",
                           word, value);
        s->param[i] = value;
        return 0;
    }
    return mx_fail(why, -EINVAL, "the kernel \"%s\" has no parameter '%.*s'; %s%s", s->name,
                   n < 100 ? (int)n : 100, word,
                   s->n_param > 0 ? "its parameters are " : "it has no parameters",
                   mx_param_names(s, known, sizeof known));
}

static int take_params(struct mx_system *s, const struct mx_kernel_options *o, mx_why *why) {
    bool taken[MX_MAX_PARAMS] = {false};
    int err = 0;
    for (int32_t i = 0; i < o->n_params && err == 0; i++) err = take_param(s, o->params[i], taken, why);
    return err;
}

/* ---- opening */

static int no_memory(mx_why *why) {
    return mx_fail(why, -ENOMEM, "no memory for the description of a kernel");
}

static int make_object(struct mx_loaded *l, const struct mx_kernel_options *o, mx_why *why) {
    struct mx_text text, object;
    const bool built = ends_with(o->path, ".so");
    l->stop = o->stop;
    if (!built && !ends_with(o->path, ".c"))
        return mx_fail(
            why, -EINVAL,
            "the kernel '%.300s' is neither FILE.c nor FILE.so; built-in stencils are named with --stencil",
            o->path);
    int err = mx_text_read(o->path, "the kernel", why, &text);
    if (err < 0) return err;
    l->system.identity = XXH3_64bits(text.data, text.bytes);
    if (!built && (err = mx_kernel_include(o->path, why, &text, &l->system.identity)) < 0)
        return free(text.data), err;
    if (built) {
        if (realpath(o->path, l->object.path) == NULL)
            err = mx_fail(why, -errno, "the kernel %.300s cannot be read: %s", o->path, strerror(errno));
        else
            mx_object_functions(&text, l->functions, sizeof l->functions);
    } else if ((err = mx_object_make(o, &text, why, &l->object)) == 0 &&
               (err = mx_text_read(l->object.path, "the compiled kernel", why, &object)) == 0) {
        mx_object_functions(&object, l->functions, sizeof l->functions);
        free(object.data);
    }
    if (err == 0 && !built) {
        l->system.text = l->text = text.data;
        return (l->path = strdup(o->path)) != NULL ? 0 : no_memory(why);
    }
    free(text.data);
    return err;
}

static int open_kernel(struct mx_loaded *l, const struct mx_kernel_options *o, mx_why *why) {
    char subject[220];
    int err = make_object(l, o, why);
    if (err < 0) return err;
    snprintf(subject, sizeof subject, "loading the kernel %.180s", o->path);
    struct loading loading = {.name = o->path, .path = l->object.path, .system = &l->system};
    err = mx_isolate(load_in_child, &loading, subject, 30, why);
    if (err == 0) err = mx_kernel_load(l->object.path, o->path, why, &l->system, &loading.handle);
    l->handle = loading.handle;
    l->system.cell_ns = l->object.cell_ns;
    mx_object_drop(&l->object);
    return err == 0 ? take_params(&l->system, o, why) : err;
}

int mx_kernel_open(const struct mx_kernel_options *o, mx_why *why, struct mx_system **out) {
    struct mx_loaded *l = calloc(1, sizeof *l);
    if (l == NULL) return no_memory(why);
    if (o->messages != NULL && o->messages_bytes > 0) o->messages[0] = 0;
    int err = open_kernel(l, o, why);
    if (err == 0)
        *out = &l->system;
    else
        mx_kernel_close(&l->system);
    return err;
}

/* ---- profiles */

/* What goes before the text, for cell.h: a line for each field of which DRAM has one cell of each row. */
static int add_lines(const struct mx_loaded *l, mx_why *why, struct mx_text *out) {
    enum { LINE = MX_FIELD_NAME + 32 };
    const size_t most = strlen(l->text) + MX_MAX_FIXED * LINE;
    if ((out->data = malloc(most + 1)) == NULL) return no_memory(why);
    out->bytes = 0;
    for (int32_t i = 0; i < l->system.n_fixed; i++)
        if (mx_has_one_cell(&l->system.profile[i]))
            out->bytes += (size_t)snprintf(out->data + out->bytes, LINE, "#define MEMEXT_ALIKE_%s ~, 0\n",
                                           l->system.fixed[i].name);
    out->bytes += (size_t)snprintf(out->data + out->bytes, most + 1 - out->bytes, "%s", l->text);
    return 0;
}

/* All that a system has of its object's code. */
static void take_functions(struct mx_system *to, const struct mx_system *from) {
    memcpy(to->row, from->row, sizeof to->row);
    memcpy(to->deep, from->deep, sizeof to->deep);
    to->deep_planes = from->deep_planes;
    for (int32_t i = 0; i < from->n_reduce; i++) to->reduce[i].value = from->reduce[i].value;
}

static int replace_object(struct mx_loaded *l, const struct mx_text *text, mx_why *why) {
    const struct mx_kernel_options o = {.path = l->path, .stop = l->stop};
    struct mx_system *s = calloc(1, sizeof *s);
    struct mx_object object = {.path = ""};
    void *handle = NULL;
    int err = s != NULL ? mx_object_make(&o, text, why, &object) : no_memory(why);
    if (err == 0) err = mx_kernel_load(object.path, l->path, why, s, &handle);
    mx_object_drop(&object);
    if (err == 0) {
        take_functions(&l->system, s);
        l->object = object;
        l->system.cell_ns = object.cell_ns;
        void *const old = l->handle;
        l->handle = handle, handle = old;
    }
    mx_loader_lock();
    if (handle != NULL) dlclose(handle);
    mx_loader_unlock();
    free(s);
    return err;
}

int mx_kernel_take_profiles(struct mx_system *system, mx_why *why) {
    struct mx_loaded *l = (struct mx_loaded *)system;
    struct mx_text text = {0};
    bool any = false;
    for (int32_t i = 0; i < system->n_fixed; i++) any |= mx_has_one_cell(&system->profile[i]);
    if (!any) return 0;
    int err = add_lines(l, why, &text);
    if (err == 0) err = replace_object(l, &text, why);
    free(text.data);
    return err;
}

/* ---- closing */

void mx_kernel_close(struct mx_system *system) {
    struct mx_loaded *l = (struct mx_loaded *)system;
    if (l == NULL) return;
    mx_object_drop(&l->object);
    mx_loader_lock();
    if (l->handle != NULL) dlclose(l->handle);
    mx_loader_unlock();
    for (int32_t i = 0; i < system->n_fixed; i++) free(system->profile[i].memory);
    for (int32_t i = 0; i < system->n_series; i++) {
        free(system->series[i].path);
        free(system->series[i].value);
    }
    free(l->path);
    free(l->text);
    free(l);
}

struct mx_kernel_facts mx_kernel_facts(const struct mx_system *system) {
    const struct mx_loaded *l = (const struct mx_loaded *)system;
    const bool kept = l->object.cached || !l->object.compiled;
    return (struct mx_kernel_facts){.file = kept ? l->object.path : "",
                                    .compiler = l->object.compiler,
                                    .functions = l->functions,
                                    .form = l->object.form != NULL ? l->object.form : "",
                                    .compiled = l->object.compiled,
                                    .cached = l->object.cached};
}
