/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/info.h"

#include "accel/accel.h"
#include "engine/engine.h"
#include "grid/array.h"
#include "link/link.h"
#include "machine/file.h"
#include "observe/json.h"
#include "observe/report.h"
#include "schedule/schedule.h"
#include "stencil/stencil.h"

#include <memext/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static json_t *backends(void) {
    json_t *list = json_array();
    for (const struct mx_backend *const *b = mx_backends; *b != NULL; b++) {
        mx_why why = {""};
        int err = (*b)->probe != NULL ? (*b)->probe(NULL, &why) : 0;
        json_t *o = json_object();
        mx_json_put(o, "name", json_string((*b)->name));
        mx_json_put(o, "summary", json_string((*b)->summary));
        mx_json_put(o, "works", json_boolean(err == 0));
        mx_json_put(o, "why", json_string(why.text));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *accelerators(void) {
    json_t *list = json_array();
    for (const struct mx_accel_ops *const *a = mx_accels; *a != NULL; a++) {
        mx_why why = {""};
        char device[128] = "";
        const int err = (*a)->probe(device, &why);
        json_t *o = json_object();
        mx_json_put(o, "name", json_string((*a)->name));
        mx_json_put(o, "summary", json_string((*a)->summary));
        mx_json_put(o, "device", json_string(device));
        mx_json_put(o, "works", json_boolean(err == 0));
        mx_json_put(o, "why", json_string(why.text));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *links(void) {
    json_t *list = json_array();
    for (const struct mx_link_ops *const *l = mx_links; *l != NULL; l++) {
        mx_why why = {""};
        const int err = (*l)->probe(&why);
        json_t *o = json_object();
        mx_json_put(o, "name", json_string((*l)->name));
        mx_json_put(o, "summary", json_string((*l)->summary));
        mx_json_put(o, "works", json_boolean(err == 0));
        mx_json_put(o, "why", json_string(why.text));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *stencils(void) {
    json_t *list = json_array();
    for (const struct mx_stencil *s = mx_stencils; s->name != NULL; s++) {
        const char *isa = "plain";
        json_t *o = json_object(), *coef = json_array();
        mx_stencil_kernel(s, MX_F64, &isa);
        for (int i = 0; i < s->n_coef; i++) json_array_append_new(coef, json_real(s->coef[i]));
        mx_json_put(o, "name", json_string(s->name));
        mx_json_put(o, "points", json_integer(s->points));
        mx_json_put(o, "h", json_integer(s->h));
        mx_json_put(o, "coef", coef);
        mx_json_put(o, "kernel", json_string(isa));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *algorithms(void) {
    json_t *list = json_array();
    for (const struct mx_algorithm *const *a = mx_algorithms; *a != NULL; a++) {
        json_t *o = json_object();
        mx_json_put(o, "name", json_string((*a)->name));
        mx_json_put(o, "aliases", json_string((*a)->aliases));
        mx_json_put(o, "summary", json_string((*a)->summary));
        mx_json_put(o, "resumable", json_boolean((*a)->resumable));
        json_array_append_new(list, o);
    }
    return list;
}

/* Of files that arrays are read from. */
static json_t *formats(void) {
    json_t *list = json_array();
    for (const struct mx_array_format *f = mx_array_formats; f->name != NULL; f++) {
        json_t *o = json_object();
        mx_json_put(o, "name", json_string(f->name));
        mx_json_put(o, "summary", json_string(f->summary));
        mx_json_put(o, "built", json_boolean(f->built));
        json_array_append_new(list, o);
    }
    return list;
}

static int device(const char *path, mx_why *why, json_t **out) {
    struct mx_storage s;
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
        return mx_fail(why, -ENOTBLK,
                       "%.400s is not storage but %s; name a directory, a file or a block device", path,
                       mx_file_kind(st.st_mode));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return mx_fail(why, -errno, "cannot open %s: %s", path, strerror(errno));
    int err = mx_storage_facts(fd, why, &s);
    close(fd);
    if (err < 0) return err;
    json_t *o = json_object();
    mx_json_put(o, "path", json_string(path));
    mx_json_put(o, "block_device", json_boolean(s.block_device));
    mx_json_put(o, "filesystem", json_string(s.filesystem));
    mx_json_put(o, "bytes", json_integer((json_int_t)s.bytes));
    mx_json_put(o, "logical_block_bytes", json_integer(s.logical_block_bytes));
    mx_json_put(o, "direct_offset_align_bytes", json_integer(s.direct_offset_align_bytes));
    mx_json_put(o, "direct_memory_align_bytes", json_integer(s.direct_memory_align_bytes));
    mx_json_put(o, "is_memory", json_boolean(s.is_memory));
    *out = o;
    return 0;
}

int mx_info_json(const struct mx_machine *m, const char *path, uint64_t dram_bytes, mx_why *why,
                 json_t **out) {
    const uint64_t visible = mx_machine_dram_bytes(m),
                   limit = dram_bytes > 0 && dram_bytes < visible ? dram_bytes : visible,
                   reserve = dram_bytes > 0 ? 0 : mx_machine_reserve_auto(m, limit);
    json_t *place = NULL;
    const int err = path != NULL ? device(path, why, &place) : 0;
    if (err < 0) return err;
    json_t *all = json_object();
    mx_json_put(all, "memext", json_string(MX_VERSION));
    mx_json_put(all, "machine", mx_json_machine(m));
    mx_json_put(all, "dram_limit_bytes", json_integer((json_int_t)limit));
    mx_json_put(all, "reserve_bytes", json_integer((json_int_t)reserve));
    mx_json_put(all, "backends", backends());
    mx_json_put(all, "accelerators", accelerators());
    mx_json_put(all, "links", links());
    mx_json_put(all, "algorithms", algorithms());
    mx_json_put(all, "stencils", stencils());
    mx_json_put(all, "formats", formats());
    if (place != NULL) mx_json_put(all, "device", place);
    return *out = all, 0;
}

int mx_machine_report(const char *path, mx_why *why, char **out) {
    struct mx_machine m;
    json_t *all = NULL;
    const locale_t before = mx_numbers_begin();
    int err = mx_machine_detect(why, &m);
    if (err == 0) err = mx_info_json(&m, path, 0, why, &all);
    char *text = err == 0 ? json_dumps(all, JSON_INDENT(2)) : NULL;
    mx_numbers_end(before);
    if (err < 0) return err;
    json_decref(all);
    if (text == NULL) return mx_fail(why, -ENOMEM, "no memory for the description of the machine");
    return *out = text, 0;
}
