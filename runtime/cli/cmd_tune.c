/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_tune.c - memext tune: the plan for a problem on this machine or a described one. Prints a file that
 * `memext run --plan` takes: comments and one plan line. */
#include "ask/size.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "execute/execute.h"
#include "files/field_words.h"
#include "files/output.h"
#include "files/raw.h"
#include "kernel/kernel.h"
#include "machine/machine.h"
#include "observe/json.h"
#include "observe/report.h"
#include "run/open/request.h"
#include "run/parts/norms.h"
#include "run/parts/snapshots.h"
#include "run/ranks/ranks.h"
#include "run/run.h"
#include "system/sides.h"
#include "tune/tune.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Plans until the DRAM of snapshots is that of the plan: each takes at most a plane more. */
enum { MOST_PLANS = 8 };

struct tune {
    struct mx_options o;
    mx_why why;
    struct mx_machine machine;
    struct mx_tune_request request;
    struct mx_tune_result result;
    const struct mx_backend *backend;
    struct mx_system *system; /* of --kernel, or NULL */
    mx_accel *accel;          /* of --accel, or NULL */
    struct mx_tune_accel there;
    struct mx_run_fields fields;
    struct mx_run_snapshots snapshots;
    struct mx_fixed_layout fixed[MX_MAX_FIXED]; /* of files that would be read in place */
    bool offline;                               /* another machine, described by options or a topology file */
    /* Of this machine and a place: what `memext run` would be, planned by it and not begun, so that a plan
     * and its bytes are those of that run. Else NULL: the plan of sweeps that begin and end in Buffers. */
    struct mx_run *run;
};

/* ------------------------------------------------------------------ what is asked */

/* This machine; or that of --topology; or what --cores, --sockets, --l2 and --l3 say, the rest as here. */
static int take_machine(struct tune *t) {
    const struct mx_options *o = &t->o;
    struct mx_machine *m = &t->machine;
    bool described = o->cores > 0 || o->sockets > 0 || o->l2_bytes > 0 || o->l3_bytes > 0;
    t->offline = described || o->topology != NULL;
    int err = o->topology != NULL ? mx_machine_from_topology(o->topology, &t->why, m)
                                  : mx_machine_detect(&t->why, m);
    if (err < 0) return err;
    if (described) {
        m->cpu[0] = 0;
        if (o->topology == NULL) m->sockets = m->numa_nodes = 1;
    }
    if (o->cores > 0) m->cores = (int32_t)o->cores;
    if (o->sockets > 0) m->sockets = m->numa_nodes = (int32_t)o->sockets;
    if (o->l2_bytes > 0) m->l2_bytes = o->l2_bytes;
    if (o->l3_bytes > 0) m->l3_bytes = o->l3_bytes;
    if (m->sockets <= m->cores) return 0;
    return mx_fail(&t->why, -EINVAL, "%d sockets with %d cores: there must be a core in every socket",
                   m->sockets, m->cores);
}

static int take_dram(struct tune *t) {
    const struct mx_options *o = &t->o;
    struct mx_tune_request *q = &t->request;
    q->dram_bytes = o->dram_bytes > 0 ? o->dram_bytes : mx_machine_dram_bytes(&t->machine);
    if (q->dram_bytes == 0)
        return mx_fail(&t->why, -EINVAL,
                       "the topology file does not say how much DRAM there is: give it with --dram");
    q->reserve_bytes = o->reserve_bytes;
    q->reserve_paper = o->reserve_paper;
    if (o->reserve_paper) q->reserve_bytes = mx_machine_reserve_paper(&t->machine);
    if (o->reserve_auto || (!mx_option_given(o, "reserve") && o->dram_bytes == 0))
        q->reserve_bytes = mx_machine_reserve_auto(&t->machine, q->dram_bytes);
    return 0;
}

/* The kernel, and extents: of -n, or of the files of fields, which are looked at alone. Fields need no values
 * here. */
static int take_system(struct tune *t) {
    if (t->o.kernel == NULL) return 0;
    int err = mx_take_kernel(&t->o, NULL, &t->why, &t->system);
    if (err < 0) return err;
    mx_fields_of(t->system, &t->fields);
    err = mx_fields_take_files(&t->fields, &t->o, t->system, &t->why);
    if (err == 0) err = mx_fields_open(&t->fields, &t->o.problem, false, &t->why);
    return err == 0 ? mx_try_kernel(&t->o, t->system, &t->why) : err;
}

/* A file that cannot be read in place would be copied. */
static void lay_files(struct tune *t) {
    for (int32_t i = 0; i < t->fields.n; i++) {
        const struct mx_run_field *f = &t->fields.field[i];
        if (f->array != MX_FIELD_OF_C || f->npy.fd < 0 || t->backend->anonymous || t->o.field_copy) continue;
        if (mx_fields_check_sides(t->system, &t->o.problem.sides, t->backend, NULL) < 0) continue;
        mx_field_lay_in_place(f, &t->o.problem, mx_field_align(f, t->backend), NULL, &t->fixed[f->index]);
    }
    t->request.fixed = t->fixed;
    mx_fields_close(&t->fields);
}

/* What a rank with the most neighbours would do; --dram and --cores are of each. */
static int take_part(struct tune *t) {
    const struct mx_problem whole = t->o.problem;
    const int ranks = t->o.ranks > 1 ? (int)t->o.ranks : 1;
    int64_t *first = calloc((size_t)ranks + 1, sizeof *first);
    int err = first == NULL ? mx_fail(&t->why, -ENOMEM, "no memory for the ranks")
                            : mx_ranks_table(whole.nz, t->o.rank_weights, ranks, &t->why, first);
    if (err == 0) err = mx_ranks_cut(&whole, first, mx_ranks_planner(ranks), ranks, &t->why, &t->o.problem);
    free(first);
    if (ranks > 1) t->request.blocks_only = true;
    if (ranks > 1) t->request.resumable = !t->o.in_place;
    t->request.link = mx_take_link(&t->o, ranks);
    return err;
}

static int check_names(struct tune *t) {
    char input[PATH_MAX], raw[MX_RAW_TEXT];
    if (t->o.input != NULL) mx_raw_split(t->o.input, input, raw);
    const struct mx_file_word words[] = {{"--input", t->o.input != NULL ? input : NULL, MX_FILE_READ},
                                         {"--kernel", t->o.kernel, MX_FILE_READ},
                                         {"--topology", t->o.topology, MX_FILE_READ},
                                         {"-d", t->o.path, MX_FILE_PLACE},
                                         {"--json", t->o.json, MX_FILE_WRITTEN}};
    return mx_output_check_names(words, sizeof words / sizeof words[0], &t->why);
}

/* The report is not written over a file of a field. */
static int check_field_names(struct tune *t) {
    struct mx_file_word words[MX_FIELDS_MOST + 1];
    size_t n = 0;
    for (int32_t i = 0; i < t->fields.n; i++)
        words[n++] = (struct mx_file_word){t->fields.field[i].array == MX_FIELD_OF_C ? "--field" : "--input",
                                           t->fields.field[i].path, MX_FILE_READ};
    words[n++] = (struct mx_file_word){"--json", t->o.json, MX_FILE_WRITTEN};
    return mx_output_check_names(words, n, &t->why);
}

static int take_sides(struct tune *t) {
    int err = mx_sides_read(t->o.sides.word, t->o.sides.n, &t->why, &t->o.problem.sides);
    return err < 0 ? err : mx_sides_check(&t->o.problem.sides, &t->o.problem, &t->why);
}

/* Without a place rows are unpadded, as the papers reckon. */
static int take_place(struct tune *t) {
    struct mx_tune_request *q = &t->request;
    uint64_t capacity = 0;
    int err = mx_take_backend(&t->o, &t->why, &t->backend);
    if (err == 0) err = mx_take_place(&t->o, t->backend, &t->why);
    if (err < 0) return err;
    mx_take_request(&t->o, &t->machine, q);
    q->extra_dram_bytes = mx_take_norms_bytes(&t->o.problem, q->threads);
    q->style = mx_style_of(t->backend);
    q->anonymous = t->backend->anonymous;
    q->offset_align_bytes = mx_place_align(&t->o, t->backend, &capacity);
    if (t->o.align_bytes > 0) q->offset_align_bytes = (uint32_t)t->o.align_bytes;
    q->capacity_bytes = t->o.capacity_bytes > 0 ? t->o.capacity_bytes : capacity;
    return 0;
}

/* Their steps end sweeps, and they take DRAM. */
static int take_snapshots(struct tune *t) {
    int err = mx_snapshots_plan(&t->o, &t->o.problem, &t->fields, &t->why, &t->snapshots);
    if (err < 0) return err;
    t->o.problem.due[1] = t->snapshots.asked.every;
    t->request.extra_dram_bytes += mx_snapshots_bytes(&t->snapshots);
    return 0;
}

/* Of algorithms that rewrite their Buffers snapshots are read, a plane at a time, as run counts it. */
static int make_plan(struct tune *t) {
    int err = mx_tune(&t->request, &t->why, &t->result);
    for (int again = 0; again < MOST_PLANS && err == 0; again++) {
        const uint64_t before = mx_snapshots_bytes(&t->snapshots);
        if (mx_snapshots_fit(&t->snapshots, t->result.plan.algorithm, &t->result.layout)) break;
        t->request.extra_dram_bytes += mx_snapshots_bytes(&t->snapshots) - before;
        err = mx_tune(&t->request, &t->why, &t->result);
    }
    return err;
}

static int take_rates(struct tune *t) {
    if (t->offline && t->o.calibrate)
        return mx_fail(&t->why, -EINVAL,
                       "--calibrate measures this machine; it cannot measure the one described by "
                       "--cores, --sockets, --l2, --l3 or --topology");
    int err =
        mx_take_rates(&t->o, t->backend, &t->machine, t->request.dram_bytes, &t->why, &t->request.rates);
    if (err == 0 && t->o.calibrate && t->why.text[0] != 0 && !t->o.quiet)
        fprintf(stderr, "memext tune: %s\n", t->why.text);
    return err;
}

/* ------------------------------------------------------------------ JSON */

static json_t *whole(int64_t value) { return json_integer((json_int_t)value); }
static json_t *bytes(uint64_t value) { return json_integer((json_int_t)value); }

static json_t *json_seconds(const struct mx_seconds *s) {
    json_t *o = json_object();
    mx_json_put(o, "io_s", json_real(s->io_s));
    mx_json_put(o, "compute_s", json_real(s->compute_s));
    mx_json_put(o, "copy_s", json_real(s->copy_s));
    mx_json_put(o, "stall_s", json_real(s->stall_s));
    mx_json_put(o, "cores_s", json_real(s->cores_s));
    mx_json_put(o, "edge_s", json_real(s->edge_s));
    mx_json_put(o, "bus_s", json_real(s->bus_s));
    mx_json_put(o, "flash_s", json_real(s->flash_s));
    mx_json_put(o, "link_s", json_real(s->link_s));
    mx_json_put(o, "lag_s", json_real(s->lag_s));
    mx_json_put(o, "total_s", json_real(s->total_s));
    return o;
}

/* What the run counts besides: what the first and the last sweep leave out and take with them. */
static void put_run(json_t *o, const struct tune *t) {
    static const char *const keys[] = {"fused", "phases", "commits"};
    const struct mx_report *r = &t->run->report;
    json_t *all = mx_report_json(r);
    mx_json_put(o, "predicted_read_bytes", whole(r->predicted_read_bytes));
    mx_json_put(o, "predicted_write_bytes", whole(r->predicted_write_bytes));
    mx_json_put(o, "predicted_init_bytes", whole(r->predicted_init_bytes));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        json_object_set(o, keys[i], json_object_get(all, keys[i]));
    json_decref(all);
}

static void put_prediction(json_t *o, const struct mx_traffic *t, const struct mx_seconds *s, uint64_t dram,
                           int64_t side_file, int64_t read_again) {
    mx_json_put(o, "predicted_read_bytes", whole(t->read_bytes + read_again));
    mx_json_put(o, "predicted_write_bytes", whole(t->write_bytes));
    mx_json_put(o, "predicted_init_bytes", whole(t->init_write_bytes));
    if (t->sent_bytes > 0) mx_json_put(o, "predicted_sent_bytes", whole(t->sent_bytes));
    mx_json_put(o, "predicted_updates", whole(t->updates));
    mx_json_put(o, "predicted_seconds", json_real(s->total_s));
    mx_json_put(o, "predicted_time", json_seconds(s));
    mx_json_put(o, "dram_used_bytes", bytes(dram));
    mx_json_put(o, "side_file_bytes", whole(side_file));
}

static int64_t read_again(const struct tune *t, const char *algorithm, const struct mx_layout *layout) {
    const struct mx_run_snapshots *s = t->run != NULL ? &t->run->parts.snapshots : &t->snapshots;
    return mx_snapshots_read_bytes(s, &t->o.problem, algorithm, layout);
}

static json_t *json_candidate(const struct tune *t, const struct mx_tune_candidate *c) {
    char line[MX_PLAN_LINE_BYTES];
    json_t *o = json_object();
    mx_json_put(o, "algorithm", json_string(c->algorithm));
    mx_json_put(o, "fits", json_boolean(c->fits));
    mx_json_put(o, "evaluated", whole(c->n_evaluated));
    if (c->fits) {
        mx_json_put(o, "plan", mx_json_plan(&c->plan));
        mx_json_put(o, "plan_line", json_string(mx_plan_print(&c->plan, line, sizeof line)));
        put_prediction(o, &c->traffic, &c->seconds, c->dram_bytes,
                       mx_execute_seam_bytes(&c->shape, &c->layout), read_again(t, c->algorithm, &c->layout));
    } else {
        mx_json_put(o, "why", json_string(c->why));
        mx_json_put(o, "smallest_dram_bytes", bytes(c->smallest_dram_bytes));
    }
    return o;
}

/* Sizes are 0 where the engine's own choice stands; own, tried and gain are those of a search made now. */
static json_t *json_refined(const struct mx_refined *r) {
    json_t *o = json_object();
    mx_json_put(o, "slab", whole(r->sizes.slab));
    mx_json_put(o, "tile", whole(r->sizes.tile));
    mx_json_put(o, "ct", whole(r->sizes.ct));
    mx_json_put(o, "nx", whole(r->nx));
    if (r->own.slab == 0) return o;
    mx_json_put(o, "own_slab", whole(r->own.slab));
    mx_json_put(o, "own_tile", whole(r->own.tile));
    mx_json_put(o, "own_ct", whole(r->own.ct));
    mx_json_put(o, "tried", whole(r->tried));
    mx_json_put(o, "gain", json_real(r->gain));
    return o;
}

static json_t *json_rates(const struct mx_rates *r) {
    static const char *const sources[] = {"default", "cached", "measured", "given"};
    json_t *o = json_object();
    mx_json_put(o, "read_bytes_per_s", json_real(r->read_bytes_per_s));
    mx_json_put(o, "write_bytes_per_s", json_real(r->write_bytes_per_s));
    mx_json_put(o, "mixed_bytes_per_s", json_real(r->mixed_bytes_per_s));
    mx_json_put(o, "request_s", json_real(r->request_s));
    mx_json_put(o, "byte_core_s", json_real(r->byte_core_s));
    mx_json_put(o, "copy_bytes_per_s", json_real(r->copy_bytes_per_s));
    mx_json_put(o, "iblock_updates_per_s", json_real(r->iblock_updates_per_s));
    mx_json_put(o, "slab_updates_per_s", json_real(r->slab_updates_per_s));
    mx_json_put(o, "tiled_updates_per_s", json_real(r->tiled_updates_per_s));
    mx_json_put(o, "tiled_sizes", json_refined(&r->refined));
    mx_json_put(o, "device_source", json_string(sources[r->device_source]));
    mx_json_put(o, "compute_source", json_string(sources[r->compute_source]));
    return o;
}

static json_t *json_link(const struct mx_tune_link *l) {
    json_t *o = json_object();
    const bool known = l->bytes_per_s > 0;
    mx_json_put(o, "ranks", whole(l->ranks));
    mx_json_put(o, "bytes_per_s", json_real(known ? l->bytes_per_s : MX_DEFAULT_LINK_BYTES_PER_S));
    mx_json_put(o, "latency_s", json_real(known ? l->latency_s : MX_DEFAULT_LINK_LATENCY_S));
    mx_json_put(o, "source", json_string(known ? "given" : "default"));
    return o;
}

static json_t *json_layout(const struct mx_layout *l) {
    json_t *o = json_object();
    mx_json_put(o, "row_pitch_bytes", whole(l->row_pitch_bytes));
    mx_json_put(o, "plane_pitch_bytes", whole(l->plane_pitch_bytes));
    mx_json_put(o, "buffer_bytes", whole(l->buffer_bytes));
    return o;
}

static json_t *json_search(const struct mx_tune_result *r) {
    json_t *o = json_object();
    mx_json_put(o, "seconds", json_real((double)r->search_ns * 1e-9));
    mx_json_put(o, "evaluated", whole(r->n_evaluated));
    return o;
}

/* The whole log of Naive-Tune, named as in the slides. */
static json_t *json_naive(const struct tune *t) {
    struct mx_naive_log n;
    const struct mx_tune_result *r = &t->result;
    if (strcmp(r->tuner, "naive") != 0 ||
        mx_naive_tune(&t->o.problem, &t->machine, r->visible_bytes, r->reserve_bytes, NULL, &n) < 0)
        return NULL;
    json_t *o = json_object();
    const struct {
        const char *key;
        int64_t value;
    } rows[] = {{"usable_size", n.usable_bytes},
                {"b_ym", n.b_ym},
                {"by", n.by},
                {"bz", n.bz},
                {"block_size", n.block_bytes},
                {"remain_size", n.remain_bytes},
                {"max_bt", n.max_bt},
                {"update_ite", n.iterations},
                {"bt", n.bt},
                {"final_block_size", n.final_block_bytes},
                {"final_remain_size", n.final_remain_bytes},
                {"usable_cache_size", n.cache_usable_bytes},
                {"first_iz", n.first_iz},
                {"first_iz_bytes", n.first_iz_bytes},
                {"iz", n.iz},
                {"iz_bytes", n.iz_bytes},
                {"remain_cache_size", n.cache_left_bytes}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        mx_json_put(o, rows[i].key, whole(rows[i].value));
    return o;
}

/* Of the plan: kernel, and bus both ways at once. */
static json_t *json_accel_rates(const struct tune *t) {
    static const char *const sources[] = {"default", "cached", "measured", "given"};
    const struct mx_seconds *s = &t->result.seconds;
    json_t *o = json_object();
    mx_json_put(o, "updates_per_s", json_real(s->updates_per_s));
    mx_json_put(o, "put_bytes_per_s", json_real(s->put_bytes_per_s));
    mx_json_put(o, "get_bytes_per_s", json_real(s->get_bytes_per_s));
    mx_json_put(o, "bus_source", json_string(sources[t->there.bus_source]));
    mx_json_put(o, "kernel_source", json_string(sources[t->there.kernel_source]));
    return o;
}

static json_t *json_result(const struct tune *t) {
    const struct mx_tune_result *r = &t->result;
    char line[MX_PLAN_LINE_BYTES];
    json_t *o = json_object(), *list = json_array(), *naive = json_naive(t);
    mx_json_put(o, "problem", mx_json_problem(&t->o.problem));
    mx_json_put(o, "machine", mx_json_machine(&t->machine));
    mx_json_put(o, "tuner", json_string(r->tuner));
    mx_json_put(o, "plan", mx_json_plan(&r->plan));
    mx_json_put(o, "plan_line", json_string(mx_plan_print(&r->plan, line, sizeof line)));
    mx_json_put(o, "layout", json_layout(&r->layout));
    put_prediction(o, &r->traffic, &r->seconds, r->dram_bytes, mx_execute_seam_bytes(&r->shape, &r->layout),
                   read_again(t, r->plan.algorithm, &r->layout));
    if (t->run != NULL) put_run(o, t);
    mx_json_put(o, "dram_limit_bytes", bytes(r->visible_bytes));
    mx_json_put(o, "dram_budget_bytes", bytes(r->visible_bytes - r->reserve_bytes));
    mx_json_put(o, "dram_for_blocks_bytes", bytes(r->room_bytes));
    const bool accel = t->accel != NULL || (t->run != NULL && t->run->accel != NULL);
    if (accel) mx_json_put(o, "device_memory_bytes", bytes(t->there.memory_bytes));
    if (accel) mx_json_put(o, "device_used_bytes", bytes(r->device_bytes));
    if (accel) mx_json_put(o, "accelerator_rates", json_accel_rates(t));
    mx_json_put(o, "search", json_search(r));
    mx_json_put(o, "rates", json_rates(&r->rates));
    if (t->request.link.ranks > 1) mx_json_put(o, "link", json_link(&t->request.link));
    for (int i = 0; i < r->n_candidates; i++)
        json_array_append_new(list, json_candidate(t, &r->candidates[i]));
    mx_json_put(o, "candidates", list);
    if (naive != NULL) mx_json_put(o, "naive_log", naive);
    return o;
}

/* ------------------------------------------------------------------ text */

static void print_comment(const char *text) {
    for (const char *end; *text != 0; text = *end != 0 ? end + 1 : end) {
        end = text + strcspn(text, "\n");
        printf("#%s%.*s\n", end > text ? " " : "", (int)(end - text), text);
    }
}

static void print_size(const char *name, int64_t size, int64_t own) {
    printf(" %s %lld", name, (long long)size);
    if (size != own) printf(" (own choice %lld)", (long long)own);
}

/* What a search for sizes of the tiled engine found. */
static void print_refined(const struct mx_refined *r) {
    const struct mx_tiled_sizes *own = &r->own, *now = r->sizes.slab > 0 ? &r->sizes : own;
    if (own->slab == 0) {
        printf("# tiled engine: own choice of sizes; the DRAM or the rows are too little to try others\n");
        return;
    }
    printf("# tiled engine:");
    print_size("slab", now->slab, own->slab);
    putchar(',');
    print_size("tile", now->tile, own->tile);
    putchar(',');
    print_size("ct", now->ct, own->ct);
    if (now == own)
        printf(" (own choice; %d tried)\n", r->tried);
    else
        printf(": %.2f times as fast; %d tried\n", r->gain, r->tried);
}

static void print_summary(const struct tune *t) {
    const struct mx_tune_result *r = &t->result;
    const struct mx_report *run = t->run != NULL ? &t->run->report : NULL;
    char a[32], b[32], c[32], d[32];
    printf("# reads %s, writes %s; %s of DRAM of %s; about %.1f s; %lld plans looked at in %.2f ms\n",
           mx_format_size((uint64_t)(run != NULL ? run->predicted_read_bytes : r->traffic.read_bytes), a,
                          sizeof a),
           mx_format_size((uint64_t)(run != NULL ? run->predicted_write_bytes : r->traffic.write_bytes), b,
                          sizeof b),
           mx_format_size(r->dram_bytes, c, sizeof c), mx_format_size(r->room_bytes, d, sizeof d),
           r->seconds.total_s, (long long)r->n_evaluated, (double)r->search_ns * 1e-6);
}

static int report(struct tune *t) {
    char line[MX_PLAN_LINE_BYTES];
    bool standard = t->o.json != NULL && strcmp(t->o.json, "-") == 0;
    if (!standard) {
        char *text = t->o.explain ? mx_tune_explain(&t->request, &t->result) : NULL;
        if (text != NULL) print_comment(text);
        if (text == NULL && !t->o.quiet) print_summary(t);
        if (t->o.calibrate && !(t->o.calibrate_s > 0) && !t->o.quiet)
            print_refined(&t->request.rates.refined);
        printf("%s\n", mx_plan_print(&t->result.plan, line, sizeof line));
        free(text);
    }
    return t->o.json != NULL ? mx_write_json(json_result(t), t->o.json, &t->why) : 0;
}

/* ------------------------------------------------------------------ as a run has it */

/* Ranks plan as one of several, which a run alone is not. */
static bool is_a_run(const struct tune *t) {
    const struct mx_options *o = &t->o;
    const struct mx_backend *b = o->backend != NULL ? mx_backend_find(o->backend) : NULL;
    const bool described = o->cores > 0 || o->sockets > 0 || o->l2_bytes > 0 || o->l3_bytes > 0 ||
                           o->topology != NULL || o->align_bytes > 0 || o->capacity_bytes > 0;
    return !described && o->ranks <= 1 && (o->path != NULL || (b != NULL && b->anonymous));
}

static void say(void *context, const char *sentence) {
    (void)context;
    fprintf(stderr, "memext tune: %s\n", sentence);
}

static int plan_run(struct tune *t) {
    t->o.dry_run = true;
    int err = mx_run_make(&t->o, &t->run);
    if (err < 0) return mx_fail(&t->why, err, "no memory for a run");
    t->run->remark = say;
    t->run->plan_only = true;
    if ((err = mx_run_prepare(t->run, &t->why)) < 0) return err;
    t->run->report.problem = t->o.problem = t->run->whole;
    t->machine = t->run->report.machine;
    t->there = t->run->there;
    t->request = t->run->request;
    t->result = t->run->tuned;
    return 0;
}

/* What a run is asked besides its plan changes what is predicted of one. */
static int check_plan_alone(struct tune *t) {
    static const char *const words[] = {"init",      "output", "output-frame", "no-fuse",  "commit-every",
                                        "integrity", "verify", "keep",         "overwrite"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (mx_option_given(&t->o, words[i]))
            return mx_fail(&t->why, -EINVAL,
                           "--%s needs a store on this machine: add -d PATH and describe no other machine "
                           "(%s), or leave "
                           "--%s out",
                           words[i],
                           "--cores, --sockets, --l2, --l3, --topology, --align, --capacity, --ranks",
                           words[i]);
    return 0;
}

static int plan_alone(struct tune *t) {
    int err = check_plan_alone(t);
    if (err == 0) err = mx_take_input(&t->o, &t->why);
    if (err == 0) err = take_system(t);
    if (err == 0 && t->system != NULL) err = check_field_names(t);
    if (err == 0) err = mx_layout_check(&t->o.problem, &t->why);
    if (err == 0) err = take_sides(t);
    if (err == 0) err = take_machine(t);
    if (err == 0) err = take_dram(t);
    if (err == 0) err = take_place(t);
    if (err == 0) err = take_snapshots(t);
    if (err == 0) lay_files(t);
    if (err == 0) err = take_part(t);
    if (err == 0) err = take_rates(t);
    if (err == 0) err = mx_take_accel(&t->o, 0, 0, &t->why, &t->accel, &t->there, &t->request);
    return err == 0 ? make_plan(t) : err;
}

int mx_cmd_tune(int argc, char **argv) {
    if (mx_wavefront_is_meant(argc, argv)) return mx_cmd_tune_wavefront(argc, argv);
    struct tune *t = calloc(1, sizeof *t);
    if (t == NULL) return MX_EXIT_REFUSED;
    int err = mx_options_parse(MX_CMD_TUNE, argc, argv, &t->why, &t->o);
    if (err == 1) {
        const int status = mx_options_help(MX_CMD_TUNE, t->o.topic);
        free(t);
        return status;
    }
    if (t->o.calibrate) mx_signals_patience(MX_CALIBRATE_PATIENCE_S);
    if (err == 0) err = check_names(t);
    if (err == 0) err = is_a_run(t) ? plan_run(t) : plan_alone(t);
    if (err == 0) err = report(t);
    if (err < 0) fprintf(stderr, "memext tune: %s\n", t->why.text);
    mx_run_close(t->run);
    mx_snapshots_forget(&t->snapshots);
    mx_fields_close(&t->fields);
    mx_kernel_close(t->system);
    mx_accel_close(t->accel);
    free(t);
    return mx_exit_status(err, false);
}
