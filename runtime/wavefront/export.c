/* SPDX-License-Identifier: BSD-3-Clause */
/* export.c - the newest complete state of a store as files: a resumed run that reads, and computes nothing.
 */
#include "wavefront/run_private.h"

#include "core/device.h"
#include "observe/json.h"

#include <errno.h>

/* The default backend may be forbidden here, or transfer larger pieces than the store was made for. */
static int open_store(mx_wf_run *r, bool any) {
    int err = mx_wf_open_store(r);
    if (!any || (err != -ENOTSUP && err != -EINVAL)) return err;
    mx_device_close(r->device);
    r->device = NULL;
    mx_budget_free(r->budget); /* the next attempt makes one */
    r->budget = NULL;
    r->o.backend = "mmap";
    return mx_wf_open_store(r);
}

int mx_wf_run_export(mx_wf_run *r) {
    const bool any = r->o.backend == NULL;
    r->o.path = r->o.place;
    r->o.resume = r->o.keep = r->exports = true;
    int err = mx_wf_prepare(r);
    if (err == 0) err = mx_wf_open_outputs(r);
    if (err == 0) err = open_store(r, any);
    if (err < 0) return err;
    r->moving = true;
    return mx_wf_publish(r);
}

void mx_wf_run_say_exported(const mx_wf_run *r, FILE *to) {
    const int64_t border = r->o.bare_output ? 0 : 2;
    for (int m = 0; m < MX_WF_MATRICES; m++)
        if (r->outputs[m] != NULL)
            fprintf(to, "%s: %s, iteration %lld of %lld%s, shape (%lld, %lld), %s\n", r->results[m].path,
                    mx_wf_names[m], (long long)r->note.done, (long long)r->note.iterations,
                    r->note.done < r->note.iterations ? " (incomplete)" : "",
                    (long long)(r->source.rows + border), (long long)(r->source.cols + border),
                    r->o.bare_output ? "without the border" : "border included");
}

void mx_wf_run_put_exported(const mx_wf_run *r, json_t *report, json_t *store) {
    json_t *outputs = json_object();
    for (int m = 0; m < MX_WF_MATRICES; m++)
        if (r->outputs[m] != NULL) mx_json_put(outputs, mx_wf_names[m], mx_json_path(r->results[m].path));
    mx_json_put(report, "outputs", outputs);
    mx_json_put(store, "wavefront", mx_wf_note_json(&r->note));
}
