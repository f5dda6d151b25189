/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_info.c - memext info: what memext sees. */
#include "ask/size.h"
#include "cli/options.h"
#include "files/output.h"
#include "grid/grid.h"
#include "machine/machine.h"
#include "machine/size.h"
#include "note/sets.h"
#include "observe/report.h"
#include "run/info.h"
#include "wavefront/note.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t bytes_of(const json_t *object, const char *key) {
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

static void print(const struct mx_machine *m, json_t *all) {
    const uint64_t limit = bytes_of(all, "dram_limit_bytes"), reserve = bytes_of(all, "reserve_bytes");
    static const char missing[] = " - does not work here: ";
    size_t i;
    json_t *o;
    printf("machine    %s: %d cores, %d socket%s, %d NUMA node%s\n", m->cpu, m->cores, m->sockets,
           m->sockets == 1 ? "" : "s", m->numa_nodes, m->numa_nodes == 1 ? "" : "s");
    printf("caches     L1 %s, L2 %s per core; L3 %s per socket\n", mx_size(m->l1_bytes).text,
           mx_size(m->l2_bytes).text, mx_size(m->l3_bytes).text);
    printf("memory     %s, cgroup (%s) limit %s; a run may use %s less a reserve of ",
           mx_size(m->memory_bytes).text, m->cgroup_kind,
           m->cgroup_limit_bytes > 0 ? mx_size(m->cgroup_limit_bytes).text : "none", mx_size(limit).text);
    printf("%s\n", mx_size(reserve).text);
    json_array_foreach(json_object_get(all, "backends"), i, o) {
        bool works = json_is_true(json_object_get(o, "works"));
        printf("%-10s %-6s %s%s%s\n", i == 0 ? "backends" : "", text(o, "name"), text(o, "summary"),
               works ? "" : missing, text(o, "why"));
    }
    json_array_foreach(json_object_get(all, "accelerators"), i, o) {
        const bool works = json_is_true(json_object_get(o, "works"));
        printf("%-10s %-6s %s%s%s\n", i == 0 ? "accels" : "", text(o, "name"), text(o, "summary"),
               works ? ": " : missing, text(o, works ? "device" : "why"));
    }
    json_array_foreach(json_object_get(all, "links"), i, o) {
        const bool works = json_is_true(json_object_get(o, "works"));
        printf("%-10s %-6s %s%s%s\n", i == 0 ? "links" : "", text(o, "name"), text(o, "summary"),
               works ? "" : missing, text(o, "why"));
    }
    json_array_foreach(json_object_get(all, "algorithms"), i, o)
        printf("%-10s %-17s %s\n", i == 0 ? "algorithms" : "", text(o, "name"), text(o, "summary"));
    json_array_foreach(json_object_get(all, "stencils"), i, o) {
        printf("%-10s %-7s %lld points, radius %lld, code %s, coef", i == 0 ? "stencils" : "",
               text(o, "name"), (long long)json_integer_value(json_object_get(o, "points")),
               (long long)json_integer_value(json_object_get(o, "h")), text(o, "kernel"));
        for (size_t k = 0; k < json_array_size(json_object_get(o, "coef")); k++)
            printf(" %g", json_real_value(json_array_get(json_object_get(o, "coef"), k)));
        printf("\n");
    }
    for (const struct mx_init *n = mx_inits; n->name != NULL; n++)
        printf("%-10s %-7s %s\n", n == mx_inits ? "inits" : "", n->name, n->summary);
    json_array_foreach(json_object_get(all, "formats"), i, o)
        printf("%-10s %-7s %s%s\n", i == 0 ? "files" : "", text(o, "name"), text(o, "summary"),
               json_is_true(json_object_get(o, "built"))
                   ? ""
                   : " - not built in: install libhdf5 (packages-hdf5.txt) and build memext again");
    if ((o = json_object_get(all, "device")) != NULL) {
        const uint64_t align = bytes_of(o, "direct_offset_align_bytes"); /* 0 of a directory */
        printf("device     %s: %s, %s free, O_DIRECT alignment %s\n", text(o, "path"),
               json_is_true(json_object_get(o, "block_device")) ? "block device" : text(o, "filesystem"),
               mx_size((uint64_t)json_integer_value(json_object_get(o, "bytes"))).text,
               align > 0 ? mx_size(align).text : "not known");
    }
}

/* The report is no file that the run in this store reads. w: NULL, or the note of a wavefront. */
static int check_report(const struct mx_options *o, const struct mx_stored *s, const struct mx_wf_note *w,
                        mx_why *why) {
    struct mx_file_word words[MX_NOTE_FILES + MX_WF_MATRICES + 1];
    if (o->json == NULL || strcmp(o->json, "-") == 0) return 0;
    size_t n = s->have_note ? mx_note_files(&s->note, words) : 0;
    for (int m = 0; w != NULL && m < MX_WF_MATRICES; m++)
        words[n++] = (struct mx_file_word){"the run's --input", w->inputs[m].path, MX_FILE_READ};
    words[n++] = (struct mx_file_word){"--json", o->json, MX_FILE_WRITTEN};
    return mx_output_check_names(words, n, why);
}

static int check_reports(const struct mx_options *o, const struct mx_sight *s, mx_why *why) {
    mx_why none;
    struct mx_stored *stored = calloc(1, sizeof *stored);
    int err = stored == NULL ? mx_fail(why, -ENOMEM, "no memory for a store's note") : 0;
    for (int32_t i = 0; i < s->n && err == 0; i++)
        if (mx_stored_look(s->seen[i].path, &none, stored) == 0) err = check_report(o, stored, NULL, why);
    free(stored);
    return err;
}

/* What ranks were given with -d. 1: it is none. */
static int info_sets(const struct mx_options *o, mx_why *why) {
    struct mx_sight s;
    json_t *sets = NULL;
    if (!mx_is_base(o->place)) return 1;
    int err = mx_see_all(o->place, why, &s);
    if (err == 0 && !mx_are_sets(&s, o->place)) err = 1;
    if (err == 0) err = check_reports(o, &s, why);
    if (err == 0 && !o->quiet && (o->json == NULL || strcmp(o->json, "-") != 0))
        err = mx_sets_print(&s, o->place, o->dram_bytes, why, stdout);
    if (err == 0 && o->json != NULL && (err = mx_sets_json(&s, o->place, why, &sets)) == 0) {
        json_object_set_new(sets, "memext", json_string(MX_VERSION));
        err = mx_write_json(sets, o->json, why);
    }
    mx_forget(&s);
    return err;
}

/* One store, and nothing of the machine. */
static int info_store(const struct mx_options *o, mx_why *why) {
    struct mx_stored *s = calloc(1, sizeof *s);
    int err =
        s != NULL ? mx_stored_look(o->place, why, s) : mx_fail(why, -ENOMEM, "no memory for a store's note");
    struct mx_wf_note *w = err == 0 && s->wavefront ? calloc(1, sizeof *w) : NULL;
    if (w != NULL && mx_wf_note_parse(s->facts.note, s->facts.note_bytes, &s->why, w) < 0) free(w), w = NULL;
    if (err == 0) err = check_report(o, s, w, why);
    if (err == 0 && !o->quiet && (o->json == NULL || strcmp(o->json, "-") != 0)) {
        mx_stored_print(s, o->place, o->dram_bytes, stdout);
        if (w != NULL) mx_wf_note_show(w, o->place, s->facts.in_use, stdout);
    }
    if (err == 0 && o->json != NULL) {
        json_t *all = json_object();
        json_object_set_new(all, "memext", json_string(MX_VERSION));
        json_t *store = mx_stored_json(s);
        if (w != NULL) json_object_set_new(store, "wavefront", mx_wf_note_json(w));
        json_object_set_new(all, "store", store);
        err = mx_write_json(all, o->json, why);
    }
    free(w);
    free(s);
    return err;
}

int mx_cmd_info(int argc, char **argv) {
    struct mx_options o;
    struct mx_machine m;
    mx_why why = {""};
    json_t *all = NULL;
    int err = mx_options_parse(MX_CMD_INFO, argc, argv, &why, &o);
    if (err == 1) return mx_options_help(MX_CMD_INFO, o.topic);
    const struct mx_file_word words[] = {
        {"PATH", o.place, MX_FILE_PLACE}, {"-d", o.path, MX_FILE_PLACE}, {"--json", o.json, MX_FILE_WRITTEN}};
    if (err == 0 && o.place != NULL && o.path != NULL)
        err = mx_fail(&why, -EINVAL, "%.200s names a store and -d %.200s a device: give only one of them",
                      o.place, o.path);
    if (err == 0) err = mx_output_check_names(words, sizeof words / sizeof words[0], &why);
    if (err == 0 && o.place != NULL) {
        err = info_sets(&o, &why);
        if (err == 1) err = info_store(&o, &why);
        if (err < 0) fprintf(stderr, "memext info: %s\n", why.text);
        return mx_exit_status(err, false);
    }
    if (err == 0) err = mx_machine_detect(&why, &m);
    if (err == 0) err = mx_info_json(&m, o.path, o.dram_bytes, &why, &all);
    if (err < 0) {
        fprintf(stderr, "memext info: %s\n", why.text);
        return MX_EXIT_REFUSED;
    }
    if (!o.quiet && (o.json == NULL || strcmp(o.json, "-") != 0)) print(&m, all);
    if (o.json != NULL)
        err = mx_write_json(all, o.json, &why);
    else
        json_decref(all);
    if (err < 0) fprintf(stderr, "memext info: %s\n", why.text);
    return mx_exit_status(err, false);
}
