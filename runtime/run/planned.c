/* SPDX-License-Identifier: BSD-3-Clause */
/* planned.c - what a report says of a run that is planned and not begun: the plan, the others that it was
 * chosen from, and the rates that predicted seconds rest on. */
#include "run/run.h"

#include "observe/json.h"
#include "run/state.h"

#include <stdlib.h>
#include <string.h>

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

static void put_prediction(json_t *o, const struct mx_run *r, const struct mx_tune_candidate *c) {
    const int64_t more = mx_parts_read_bytes(r, c->algorithm, &c->shape, &c->layout);
    mx_json_put(o, "predicted_read_bytes", whole(c->traffic.read_bytes + more));
    mx_json_put(o, "predicted_write_bytes", whole(c->traffic.write_bytes));
    mx_json_put(o, "predicted_init_bytes", whole(c->traffic.init_write_bytes));
    if (c->traffic.sent_bytes > 0) mx_json_put(o, "predicted_sent_bytes", whole(c->traffic.sent_bytes));
    mx_json_put(o, "predicted_updates", whole(c->traffic.updates));
    mx_json_put(o, "predicted_seconds", json_real(c->seconds.total_s));
    mx_json_put(o, "predicted_time", json_seconds(&c->seconds));
    mx_json_put(o, "dram_used_bytes", bytes(c->dram_bytes));
    mx_json_put(o, "side_file_bytes", whole(mx_execute_seam_bytes(&c->shape, &c->layout)));
}

static json_t *json_candidate(const struct mx_run *r, const struct mx_tune_candidate *c) {
    char line[MX_PLAN_LINE_BYTES];
    json_t *o = json_object();
    mx_json_put(o, "algorithm", json_string(c->algorithm));
    mx_json_put(o, "fits", json_boolean(c->fits));
    mx_json_put(o, "evaluated", whole(c->n_evaluated));
    if (c->fits) {
        mx_json_put(o, "plan", mx_json_plan(&c->plan));
        mx_json_put(o, "plan_line", json_string(mx_plan_print(&c->plan, line, sizeof line)));
        put_prediction(o, r, c);
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
    mx_json_put(o, "device_source", json_string(mx_rates_source_name(r->device_source)));
    mx_json_put(o, "compute_source", json_string(mx_rates_source_name(r->compute_source)));
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

static json_t *json_search(const struct mx_tune_result *r) {
    json_t *o = json_object();
    mx_json_put(o, "seconds", json_real((double)r->search_ns * 1e-9));
    mx_json_put(o, "evaluated", whole(r->n_evaluated));
    return o;
}

/* The whole log of Naive-Tune, named as in the slides. */
static json_t *json_naive(const struct mx_tune_request *q, const struct mx_tune_result *r) {
    struct mx_naive_log n;
    if (strcmp(r->tuner, "naive") != 0 ||
        mx_naive_tune(q->problem, q->machine, r->visible_bytes, r->reserve_bytes, NULL, &n) < 0)
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
static json_t *json_accel_rates(const struct mx_seconds *s, const struct mx_tune_accel *there) {
    json_t *o = json_object();
    mx_json_put(o, "updates_per_s", json_real(s->updates_per_s));
    mx_json_put(o, "put_bytes_per_s", json_real(s->put_bytes_per_s));
    mx_json_put(o, "get_bytes_per_s", json_real(s->get_bytes_per_s));
    mx_json_put(o, "bus_source", json_string(mx_rates_source_name(there->bus_source)));
    mx_json_put(o, "kernel_source", json_string(mx_rates_source_name(there->kernel_source)));
    return o;
}

void mx_run_add_planned(const struct mx_run *r, void *object) {
    const struct mx_tune_result *t = &r->tuned;
    char line[MX_PLAN_LINE_BYTES];
    json_t *o = object, *list, *naive;
    if (r->algorithm == NULL || r->moving) return;
    list = json_array(), naive = json_naive(&r->request, t);
    mx_json_put(o, "tuner", json_string(t->tuner));
    mx_json_put(o, "plan_line", json_string(mx_plan_print(&t->plan, line, sizeof line)));
    if (t->traffic.sent_bytes > 0) mx_json_put(o, "predicted_sent_bytes", whole(mx_run_sent_bytes(r)));
    mx_json_put(o, "predicted_time", json_seconds(&t->seconds));
    mx_json_put(o, "dram_used_bytes", bytes(t->dram_bytes));
    mx_json_put(o, "dram_for_blocks_bytes", bytes(t->room_bytes));
    if (r->accel != NULL)
        mx_json_put(o, "device_memory_bytes",
                    r->there.memory_bytes < (uint64_t)INT64_MAX ? bytes(r->there.memory_bytes) : json_null());
    if (r->accel != NULL) mx_json_put(o, "device_used_bytes", bytes(t->device_bytes));
    if (r->accel != NULL) mx_json_put(o, "accelerator_rates", json_accel_rates(&t->seconds, &r->there));
    mx_json_put(o, "search", json_search(t));
    mx_json_put(o, "rates", json_rates(&t->rates));
    if (r->request.link.ranks > 1) mx_json_put(o, "link", json_link(&r->request.link));
    for (int i = 0; i < t->n_candidates; i++)
        json_array_append_new(list, json_candidate(r, &t->candidates[i]));
    mx_json_put(o, "candidates", list);
    if (naive != NULL) mx_json_put(o, "naive_log", naive);
}

int mx_run_explain(mx_run *r, mx_why *why, char **out) {
    pthread_mutex_lock(&r->lock);
    const bool planned = r->state != MX_RUN_AT_WORK && r->algorithm != NULL;
    pthread_mutex_unlock(&r->lock);
    if (!planned) return mx_fail(why, -EINVAL, "the run has no plan yet: call mx_run_prepare first");
    *out = mx_tune_explain(&r->request, &r->tuned);
    return *out != NULL ? 0 : mx_fail(why, -ENOMEM, "no memory for the explanation of a plan");
}
