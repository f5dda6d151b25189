/* cmd_info.c - memext info: what memext sees. */
#include "accel/accel.h"
#include "cli/options.h"
#include "engine/engine.h"
#include "grid/grid.h"
#include "machine/machine.h"
#include "observe/report.h"
#include "run/output.h"
#include "run/request.h"
#include "run/store.h"
#include "schedule/schedule.h"
#include "stencil/stencil.h"

#include <memext/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void put(json_t *object, const char *key, json_t *value) { json_object_set_new(object, key, value); }

static json_t *backends(void) {
    json_t *list = json_array();
    for (const struct mx_backend *const *b = mx_backends; *b != NULL; b++) {
        mx_why why = {""};
        int err = (*b)->probe != NULL ? (*b)->probe(NULL, &why) : 0;
        json_t *o = json_object();
        put(o, "name", json_string((*b)->name));
        put(o, "summary", json_string((*b)->summary));
        put(o, "works", json_boolean(err == 0));
        put(o, "why", json_string(why.text));
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
        put(o, "name", json_string((*a)->name));
        put(o, "summary", json_string((*a)->summary));
        put(o, "device", json_string(device));
        put(o, "works", json_boolean(err == 0));
        put(o, "why", json_string(why.text));
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
        put(o, "name", json_string(s->name));
        put(o, "points", json_integer(s->points));
        put(o, "h", json_integer(s->h));
        put(o, "coef", coef);
        put(o, "kernel", json_string(isa));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *algorithms(void) {
    json_t *list = json_array();
    for (const struct mx_algorithm *const *a = mx_algorithms; *a != NULL; a++) {
        json_t *o = json_object();
        put(o, "name", json_string((*a)->name));
        put(o, "aliases", json_string((*a)->aliases));
        put(o, "summary", json_string((*a)->summary));
        put(o, "resumable", json_boolean((*a)->resumable));
        json_array_append_new(list, o);
    }
    return list;
}

static int device(const char *path, mx_why *why, json_t **out) {
    struct mx_storage s;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return mx_fail(why, -errno, "cannot open %s: %s", path, strerror(errno));
    int err = mx_storage_facts(fd, why, &s);
    close(fd);
    if (err < 0) return err;
    json_t *o = json_object();
    put(o, "path", json_string(path));
    put(o, "block_device", json_boolean(s.block_device));
    put(o, "filesystem", json_string(s.filesystem));
    put(o, "bytes", json_integer((json_int_t)s.bytes));
    put(o, "logical_block_bytes", json_integer(s.logical_block_bytes));
    put(o, "direct_offset_align_bytes", json_integer(s.direct_offset_align_bytes));
    put(o, "direct_memory_align_bytes", json_integer(s.direct_memory_align_bytes));
    put(o, "is_memory", json_boolean(s.is_memory));
    *out = o;
    return 0;
}

static const char *text(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

static void print(const struct mx_machine *m, uint64_t limit, uint64_t reserve, json_t *all) {
    char a[32], b[32], c[32];
    size_t i;
    json_t *o;
    printf("machine    %s: %d cores, %d socket%s, %d NUMA node%s\n", m->cpu, m->cores, m->sockets,
           m->sockets == 1 ? "" : "s", m->numa_nodes, m->numa_nodes == 1 ? "" : "s");
    printf("caches     L1 %s, L2 %s a core; L3 %s a socket\n", mx_format_size(m->l1_bytes, a, sizeof a),
           mx_format_size(m->l2_bytes, b, sizeof b), mx_format_size(m->l3_bytes, c, sizeof c));
    printf("memory     %s, cgroup (%s) limit %s; a run may use %s less a reserve of ",
           mx_format_size(m->memory_bytes, a, sizeof a), m->cgroup_kind,
           m->cgroup_limit_bytes > 0 ? mx_format_size(m->cgroup_limit_bytes, b, sizeof b) : "none",
           mx_format_size(limit, c, sizeof c));
    printf("%s\n", mx_format_size(reserve, a, sizeof a));
    json_array_foreach(json_object_get(all, "backends"), i, o) {
        bool works = json_is_true(json_object_get(o, "works"));
        printf("%-10s %-6s %s%s%s\n", i == 0 ? "backends" : "", text(o, "name"), text(o, "summary"),
               works ? "" : " - NOT HERE: ", text(o, "why"));
    }
    json_array_foreach(json_object_get(all, "accelerators"), i, o) {
        const bool works = json_is_true(json_object_get(o, "works"));
        printf("%-10s %-6s %s%s%s\n", i == 0 ? "accels" : "", text(o, "name"), text(o, "summary"),
               works ? ": " : " - NOT HERE: ", text(o, works ? "device" : "why"));
    }
    json_array_foreach(json_object_get(all, "algorithms"), i, o)
        printf("%-10s %-17s %s%s\n", i == 0 ? "algorithms" : "", text(o, "name"), text(o, "summary"),
               json_is_true(json_object_get(o, "resumable")) ? " (resumable)" : "");
    json_array_foreach(json_object_get(all, "stencils"), i, o) {
        printf("%-10s %-7s %lld points, h %lld, kernel %s, coef", i == 0 ? "stencils" : "", text(o, "name"),
               (long long)json_integer_value(json_object_get(o, "points")),
               (long long)json_integer_value(json_object_get(o, "h")), text(o, "kernel"));
        for (size_t k = 0; k < json_array_size(json_object_get(o, "coef")); k++)
            printf(" %g", json_real_value(json_array_get(json_object_get(o, "coef"), k)));
        printf("\n");
    }
    for (const struct mx_init *n = mx_inits; n->name != NULL; n++)
        printf("%-10s %-7s %s\n", n == mx_inits ? "inits" : "", n->name, n->summary);
    if ((o = json_object_get(all, "device")) != NULL)
        printf("device     %s: %s, %s free, O_DIRECT alignment %lld\n", text(o, "path"),
               json_is_true(json_object_get(o, "block_device")) ? "block device" : text(o, "filesystem"),
               mx_format_size((uint64_t)json_integer_value(json_object_get(o, "bytes")), a, sizeof a),
               (long long)json_integer_value(json_object_get(o, "direct_offset_align_bytes")));
}

/* One store, and nothing of the machine. */
static int info_store(const struct mx_options *o, mx_why *why) {
    struct mx_stored *s = calloc(1, sizeof *s);
    int err =
        s != NULL ? mx_stored_look(o->place, why, s) : mx_fail(why, -ENOMEM, "no memory for a store's note");
    if (err == 0 && !o->quiet && (o->json == NULL || strcmp(o->json, "-") != 0)) mx_stored_print(s, stdout);
    if (err == 0 && o->json != NULL) {
        json_t *all = json_object();
        put(all, "memext", json_string(MX_VERSION));
        put(all, "store", mx_stored_json(s));
        err = mx_write_json(all, o->json, why);
    }
    free(s);
    return err;
}

int mx_cmd_info(int argc, char **argv) {
    struct mx_options o;
    struct mx_machine m;
    mx_why why = {""};
    json_t *all = json_object(), *place = NULL;
    int err = mx_options_parse(MX_CMD_INFO, argc, argv, &why, &o);
    if (err == 1) return mx_options_help(MX_CMD_INFO, "memext info"), json_decref(all), 0;
    const struct mx_file_word words[] = {
        {"PATH", o.place, MX_FILE_PLACE}, {"-d", o.path, MX_FILE_PLACE}, {"--json", o.json, MX_FILE_WRITTEN}};
    if (err == 0 && o.place != NULL && o.path != NULL)
        err = mx_fail(&why, -EINVAL,
                      "the word %.200s asks for a store and -d %.200s for a device: give one of them",
                      o.place, o.path);
    if (err == 0) err = mx_output_check_names(words, sizeof words / sizeof words[0], &why);
    if (err == 0 && o.place != NULL) {
        json_decref(all);
        if ((err = info_store(&o, &why)) < 0) fprintf(stderr, "memext info: %s\n", why.text);
        return mx_exit_status(err, false);
    }
    if (err == 0) err = mx_machine_detect(&why, &m);
    if (err == 0 && o.path != NULL) err = device(o.path, &why, &place);
    if (err < 0) {
        fprintf(stderr, "memext info: %s\n", why.text);
        json_decref(all);
        return MX_EXIT_REFUSED;
    }
    uint64_t limit = o.dram_bytes > 0 && o.dram_bytes < mx_machine_dram_bytes(&m) ? o.dram_bytes
                                                                                  : mx_machine_dram_bytes(&m);
    uint64_t reserve = o.dram_bytes > 0 ? 0 : mx_machine_reserve_auto(&m, limit);
    put(all, "memext", json_string(MX_VERSION));
    put(all, "machine", mx_json_machine(&m));
    put(all, "dram_limit_bytes", json_integer((json_int_t)limit));
    put(all, "reserve_bytes", json_integer((json_int_t)reserve));
    put(all, "backends", backends());
    put(all, "accelerators", accelerators());
    put(all, "algorithms", algorithms());
    put(all, "stencils", stencils());
    if (place != NULL) put(all, "device", place);
    if (!o.quiet && (o.json == NULL || strcmp(o.json, "-") != 0)) print(&m, limit, reserve, all);
    if (o.json != NULL)
        err = mx_write_json(all, o.json, &why);
    else
        json_decref(all);
    if (err < 0) fprintf(stderr, "memext info: %s\n", why.text);
    return mx_exit_status(err, false);
}
