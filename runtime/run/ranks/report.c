/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - one report of all ranks. */
#include "run/ranks/ranks.h"

#include "observe/json.h"
#include "run/state.h"

#include <jansson.h>
#include <stdlib.h>

static json_t *summary(const struct mx_run *r) {
    const struct mx_report *p = &r->report;
    json_t *o = json_object();
    mx_json_put_whole(o, "rank", r->ranks.rank);
    mx_json_put_whole(o, "first_plane", r->o.problem.first_plane);
    mx_json_put_whole(o, "planes", r->o.problem.nz);
    mx_json_put_real(o, "seconds", p->seconds);
    mx_json_put_real(o, "init_seconds", p->init_seconds);
    mx_json_put_real(o, "update_s", p->update_s);
    mx_json_put_real(o, "wait_s", p->wait_s);
    mx_json_put_whole(o, "updates", p->updates);
    mx_json_put_whole(o, "read_bytes", (int64_t)p->counters.read_bytes);
    mx_json_put_whole(o, "write_bytes", (int64_t)p->counters.write_bytes);
    mx_json_put_whole(o, "predicted_read_bytes", p->predicted_read_bytes);
    mx_json_put_whole(o, "predicted_write_bytes", p->predicted_write_bytes);
    mx_json_put_whole(o, "sent_bytes", (int64_t)r->ranks.sent_bytes);
    mx_json_put_whole(o, "received_bytes", (int64_t)r->ranks.received_bytes);
    mx_json_put_whole(o, "predicted_sent_bytes", mx_run_sent_bytes(r));
    mx_json_put_whole(o, "snapshot_bytes", p->snapshots.bytes);
    mx_json_put_whole(o, "predicted_snapshot_bytes", p->snapshots.predicted_bytes);
    mx_json_put_whole(o, "block_bytes", (int64_t)p->block_bytes);
    if (p->accel.name[0] != 0) {
        json_object_set_new(o, "device", json_string(p->accel.device));
        if (p->accel.number >= 0) mx_json_put_whole(o, "device_number", p->accel.number);
        mx_json_put_whole(o, "ranks_on_device", p->accel.sharers);
        mx_json_put_whole(o, "host_to_device_bytes", (int64_t)p->accel.put_bytes);
        mx_json_put_whole(o, "device_to_host_bytes", (int64_t)p->accel.get_bytes);
        mx_json_put_whole(o, "predicted_host_to_device_bytes",
                          p->predicted_read_bytes + p->accel.more_put_bytes);
        mx_json_put_whole(o, "predicted_device_to_host_bytes", p->predicted_write_bytes);
    }
    mx_json_put_whole(o, "peak_rss_bytes", (int64_t)mx_usage_peak_rss_bytes());
    return o;
}

static int collect(struct mx_run *r) {
    struct mx_run_ranks *q = &r->ranks;
    if (mx_run_alone(r)) return 0;
    json_t *o = summary(r);
    char *text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    if (q->rank == 0) q->reports = calloc((size_t)q->ranks, sizeof *q->reports);
    int err = text == NULL || (q->rank == 0 && q->reports == NULL)
                  ? mx_fail(&r->why, -ENOMEM, "no memory for the reports of the ranks")
                  : mx_link_collect(q->link, text, q->reports, &r->why);
    free(text);
    return err;
}

int mx_run_end_together(struct mx_run *r) {
    int err = collect(r);
    if (err == 0) err = mx_run_meet(r);
    r->ranks.well = err == 0;
    return err;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Least, middle and greatest of a number of all ranks. */
static json_t *spread(json_t *each, const char *key, double *value) {
    const size_t n = json_array_size(each);
    for (size_t i = 0; i < n; i++)
        value[i] = json_number_value(json_object_get(json_array_get(each, i), key));
    qsort(value, n, sizeof *value, compare);
    json_t *o = json_object();
    mx_json_put_real(o, "min", value[0]);
    mx_json_put_real(o, "median", (value[(n - 1) / 2] + value[n / 2]) / 2);
    mx_json_put_real(o, "max", value[n - 1]);
    return o;
}

static void put_link(const struct mx_run *r, json_t *o) {
    const struct mx_tune_link *l = &r->request.link;
    const bool known = l->bytes_per_s > 0;
    mx_json_put_real(o, "link_bytes_per_s", known ? l->bytes_per_s : MX_DEFAULT_LINK_BYTES_PER_S);
    mx_json_put_real(o, "link_latency_s", known ? l->latency_s : MX_DEFAULT_LINK_LATENCY_S);
    json_object_set_new(o, "link_source",
                        json_string(r->ranks.link_measured      ? "measured"
                                    : r->o.link_bytes_per_s > 0 ? "given"
                                                                : "default"));
    mx_json_put_real(o, "predicted_link_s", r->tuned.seconds.link_s);
    mx_json_put_real(o, "predicted_lag_s", r->tuned.seconds.lag_s);
}

void mx_run_add_ranks(const struct mx_run *r, void *object) {
    static const char *const keys[] = {"seconds",    "update_s",    "wait_s",     "updates",
                                       "read_bytes", "write_bytes", "sent_bytes", "received_bytes"};
    const struct mx_run_ranks *q = &r->ranks;
    if (q->ranks < 2) return;
    json_t *o = json_object(), *each = json_array(), *over = json_object();
    mx_json_put_whole(o, "ranks", q->ranks);
    json_object_set_new(o, "link", json_string(q->link_name));
    mx_json_put_whole(o, "predicted_sent_bytes", mx_run_sent_bytes(r));
    put_link(r, o);
    for (int i = 0; i < q->ranks && q->reports != NULL; i++)
        json_array_append_new(each, json_loads(q->reports[i], 0, NULL));
    double *value = calloc((size_t)q->ranks, sizeof *value);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && q->reports != NULL && value != NULL; i++)
        json_object_set_new(over, keys[i], spread(each, keys[i], value));
    free(value);
    json_object_set_new(o, "each", each);
    json_object_set_new(o, "spread", over);
    json_object_set_new(object, "ranks", o);
}
