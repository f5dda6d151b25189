/* SPDX-License-Identifier: BSD-3-Clause */
/* prepare.c - a wavefront run before anything is touched: what it may use, where it works, by which plan. */
#include "wavefront/run_private.h"

#include "ask/size.h"
#include "core/store.h"
#include "machine/size.h"
#include "run/open/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, CELL = 8, WORDS = 2 * MX_WF_MATRICES + 4 };

/* ------------------------------------------------------------------ names, place and limits */

static const char *const input_words[MX_WF_MATRICES] = {"--input za", "--input zr", "--input zb",
                                                        "--input zu", "--input zv", "--input zz"};
static const char *const output_words[MX_WF_MATRICES] = {"--output za", "--output zr", "--output zb",
                                                         "--output zu", "--output zv", "--output zz"};

/* Once more when the note is known, with the inputs that it names. */
static int check_names(mx_wf_run *r, bool stored) {
    struct mx_file_word words[WORDS];
    size_t n = 0;
    for (int m = 0; m < MX_WF_MATRICES; m++)
        words[n++] = (struct mx_file_word){input_words[m], stored ? r->note.inputs[m].path : r->inputs[m],
                                           MX_FILE_READ};
    words[n++] = (struct mx_file_word){r->exports ? "PATH" : "-d", r->o.path, MX_FILE_PLACE};
    for (int m = 0; m < MX_WF_MATRICES; m++)
        words[n++] = (struct mx_file_word){output_words[m], r->outputs[m], MX_FILE_NPY};
    words[n++] = (struct mx_file_word){"--json", r->o.json, MX_FILE_WRITTEN};
    words[n++] = (struct mx_file_word){"--timeline", r->o.timeline, MX_FILE_WRITTEN};
    words[n++] = (struct mx_file_word){"--trace", r->o.trace, MX_FILE_WRITTEN};
    return mx_output_check_names(words, n, &r->why);
}

static int take_place(mx_wf_run *r) {
    struct mx_options *o = &r->o;
    if (o->wavefront.sequential) o->backend = "dram"; /* which has no place */
    int err = mx_take_backend(o, &r->why, &r->backend);
    if (err == 0) err = mx_take_place(o, r->backend, &r->why);
    if (err < 0) return err;
    if (!r->backend->anonymous && o->path == NULL && !o->dry_run)
        return mx_fail(&r->why, -EINVAL,
                       "backend %s needs a place for the Buffers: give a directory, file or block device "
                       "with -d PATH",
                       r->backend->name);
    if (r->backend->anonymous && o->resume && !r->exports)
        return mx_fail(&r->why, -EINVAL,
                       "the Buffers of the backend %s end with the process, so there is nothing to resume: "
                       "choose another --backend",
                       r->backend->name);
    if (o->backend == NULL) o->backend = r->backend->name;
    /* mmap is advised by the schedule unless something else is asked for. */
    if (!mx_option_given(o, "advice") && r->backend->face == MX_FACE_MAPPED && !r->backend->anonymous)
        o->advice = MX_ADVICE_SCHEDULE;
    snprintf(r->report.device.backend, sizeof r->report.device.backend, "%s",
             o->wavefront.sequential ? "memory" : r->backend->name);
    return 0;
}

static int take_limits(mx_wf_run *r) {
    struct mx_report *p = &r->report;
    const uint64_t visible = mx_machine_dram_bytes(&p->machine), asked = r->o.dram_bytes;
    if (asked > visible && !r->o.dry_run)
        return mx_fail(&r->why, -EINVAL,
                       "--dram %s is more than the %s that this process may use (the smaller of the "
                       "machine's memory and the limit of its cgroup): lower --dram",
                       mx_size(asked).text, mx_size(visible).text);
    p->dram_limit_bytes = asked > 0 ? asked : visible;
    p->dram_budget_bytes = asked > 0 ? asked : visible - mx_machine_reserve_auto(&p->machine, visible);
    return 0;
}

/* ------------------------------------------------------------------ --resume */

static int check_problem(mx_wf_run *r, const char *place) {
    const struct mx_wf_note *n = &r->note;
    const struct mx_wf_geometry *g = &n->geometry;
    const int64_t rows = r->o.wavefront.rows, cols = r->o.wavefront.cols, mb = r->o.wavefront.mb;
    if (n->different)
        return mx_fail(&r->why, -EINVAL,
                       "the result in %.200s differs from the sequential loop (--verify), so it cannot be %s",
                       place, r->exports ? "exported" : "resumed");
    if ((rows > 0 && (rows != g->rows || cols != g->cols)) ||
        (mx_option_given(&r->o, "iterations") && r->o.wavefront.iterations != n->iterations))
        return mx_fail(&r->why, -EINVAL,
                       "%.200s holds a run of %lld x %lld, %lld iterations; leave -n and --iterations out "
                       "with --resume",
                       place, (long long)g->rows, (long long)g->cols, (long long)n->iterations);
    if ((r->o.wavefront.layout != NULL && strcmp(r->o.wavefront.layout, mx_wf_layouts[g->layout]) != 0) ||
        (mb > 0 && (mb != g->mb || r->o.wavefront.nb != g->nb)))
        return mx_fail(&r->why, -EINVAL,
                       "the Buffers in %.200s have the layout %s and tiles of %lld x %lld; leave --layout "
                       "and --tile out with --resume",
                       place, mx_wf_layouts[g->layout], (long long)g->mb, (long long)g->nb);
    return 0;
}

/* The inputs are needed again by --verify alone. */
static int reopen_inputs(mx_wf_run *r) {
    const char *paths[MX_WF_MATRICES] = {NULL};
    const struct mx_wf_note *n = &r->note;
    const struct mx_wf_init *init = mx_wf_init_find(n->init);
    struct mx_input_identity now;
    for (int m = 0; m < MX_WF_MATRICES && r->o.verify; m++)
        if (n->inputs[m].path[0] != 0) paths[m] = n->inputs[m].path;
    int err = mx_wf_source_open(paths, init != NULL ? init : &mx_wf_inits[0], n->geometry.rows,
                                n->geometry.cols, &r->why, &r->source);
    for (int m = 0; m < MX_WF_MATRICES && err == 0; m++) {
        const struct mx_npy *f = &r->source.files[m];
        if (paths[m] == NULL) continue;
        err = mx_input_look(f->fd, f->data_offset_bytes, paths[m], &r->why, &now);
        if (err == 0 && !mx_input_same(&n->inputs[m].identity, &now, true))
            err = mx_fail(&r->why, -EINVAL, "%.300s has changed", paths[m]);
    }
    if (err == 0) return 0;
    const mx_why reason = r->why;
    return mx_fail(&r->why, -EINVAL,
                   "the result cannot be verified, because an input has changed since the run began "
                   "(%.300s): leave --verify out",
                   reason.text);
}

static int look_at_store(mx_wf_run *r, struct mx_store_facts *s) {
    mx_why reason = {""};
    if (r->o.path == NULL)
        return mx_fail(&r->why, -EINVAL, "--resume needs the place of the store: give it with -d PATH");
    int err = mx_store_see(r->o.path, &r->why, s);
    if (err == -ENOENT)
        return mx_fail(&r->why, err, "%.300s holds no memext store, so there is nothing to resume",
                       r->o.path);
    if (err < 0) return err;
    if (s->note_bytes == 0)
        return mx_fail(&r->why, -EINVAL,
                       "%.300s holds no state to resume, since nothing was committed: start again with "
                       "--force instead of --resume",
                       s->place);
    err = mx_wf_note_parse(s->note, s->note_bytes, &reason, &r->note);
    if (err < 0)
        return mx_fail(&r->why, err, "%.300s cannot be %s: %.150s", s->place,
                       r->exports ? "exported" : "resumed", reason.text);
    err = check_names(r, true);
    if (err < 0) mx_output_drop(&r->json); /* no report goes where an input is */
    return err < 0 ? err : check_problem(r, s->place);
}

static int take_store(mx_wf_run *r) {
    struct mx_store_facts *s = calloc(1, sizeof *s);
    int err =
        s == NULL ? mx_fail(&r->why, -ENOMEM, "no memory for the note of the store") : look_at_store(r, s);
    if (err == 0) err = reopen_inputs(r);
    if (err == 0) {
        const struct mx_backend *former = mx_backend_find(r->note.backend);
        if (r->o.backend == NULL && former != NULL && !former->anonymous &&
            (former->probe == NULL || former->probe(NULL, NULL) == 0))
            r->o.backend = former->name;
        if (s->finished == 2) r->o.keep = true;
        r->o.wavefront.iterations = r->note.iterations;
        r->first = r->note.done;
        r->result = r->note.buffer;
        r->resumed = r->committed = true;
    }
    free(s);
    return err;
}

/* ------------------------------------------------------------------ plan */

/* Before the device is open: pages for transfers; a mapping takes any cell. */
uint32_t mx_wf_alignment(const mx_wf_run *r) {
    if (r->resumed) return r->note.geometry.align_bytes;
    if (r->backend->face == MX_FACE_MAPPED) return CELL;
    return r->device != NULL ? r->report.device.offset_align_bytes : PAGE;
}

int64_t mx_wf_all_bytes(const struct mx_wf_geometry *g) {
    int64_t bytes = mx_wf_buffer_bytes(g, MX_WF_ZA);
    const int64_t scratch = mx_wf_scratch_bytes(g->rows, g->cols, g->align_bytes);
    bytes = 2 * (bytes > scratch ? bytes : scratch);
    for (int m = MX_WF_ZR; m < MX_WF_MATRICES; m++) bytes += mx_wf_buffer_bytes(g, (enum mx_wf_matrix)m);
    return bytes;
}

/* On dram the Buffers are in the budget too. Their size hardly depends on the tile: that of one tile is
 * taken, and what alignment and corners of small tiles add is found at the end. */
static int resident_bytes(mx_wf_run *r, int64_t mb, int64_t nb, uint64_t *out) {
    struct mx_wf_geometry g;
    const struct mx_wf_request *q = &r->request;
    *out = 0;
    if (!mx_wf_is_resident(r)) return 0;
    int err = mx_wf_geometry(q->rows, q->cols, q->layout, mb > 0 ? mb : q->rows, nb > 0 ? nb : q->cols,
                             q->align_bytes, &r->why, &g);
    if (err == 0) *out = (uint64_t)mx_wf_all_bytes(&g);
    return err;
}

int mx_wf_make_plan(mx_wf_run *r) {
    struct mx_wf_request *q = &r->request;
    uint64_t resident;
    q->align_bytes = mx_wf_alignment(r);
    int err = resident_bytes(r, q->mb, q->nb, &resident);
    if (err < 0) return err;
    const uint64_t room = r->report.dram_budget_bytes, overhead = UINT64_C(1) << 20;
    if (resident + overhead >= room && resident > 0)
        return mx_fail(&r->why, -EINVAL,
                       "the run needs more than %s of DRAM, including the Buffers of backend %s, and %s is "
                       "free: choose a smaller problem, or --backend mmap, aio or uring",
                       mx_size(resident + overhead).text, r->backend->name, mx_size(room).text);
    q->dram_bytes = room > resident + overhead ? room - resident - overhead : 0;
    q->program_bytes = resident + overhead + r->report.dram_limit_bytes - room;
    err = mx_wf_tune(q, &r->why, &r->choice);
    if (err == 0 && mx_wf_conversion_bytes(mx_wf_geometry_of(r)) > (int64_t)q->dram_bytes)
        err = mx_fail(&r->why, -EINVAL,
                      "tile rows of %lld x %lld cells do not fit in DRAM while matrices are converted: lower "
                      "--tile, or raise --dram",
                      (long long)r->choice.plan.geometry.mb, (long long)q->cols);
    r->planned = err == 0;
    const struct mx_wf_plan *p = &r->choice.plan;
    r->report.block_bytes = (uint64_t)r->choice.dram_bytes;
    r->report.plan = (struct mx_plan){.algorithm = "wavefront",
                                      .engine = "lanes",
                                      .by = p->geometry.mb,
                                      .bz = 1,
                                      .bt = p->waves,
                                      .threads = p->threads};
    return err;
}

static void make_request(mx_wf_run *r) {
    const struct mx_options *o = &r->o;
    int layout = MX_WF_FRONTIER; /* the table of options knows no others */
    for (int l = 0; l < MX_WF_LAYOUTS && o->wavefront.layout != NULL; l++)
        if (strcmp(o->wavefront.layout, mx_wf_layouts[l]) == 0) layout = l;
    r->request =
        (struct mx_wf_request){.rows = r->source.rows,
                               .cols = r->source.cols,
                               .iterations = o->wavefront.iterations - r->first,
                               .layout = (enum mx_wf_layout)layout,
                               .threads = o->threads > 0 ? (int32_t)o->threads : r->report.machine.cores,
                               .mb = o->wavefront.mb,
                               .nb = o->wavefront.nb,
                               .waves = o->wavefront.waves,
                               .ahead = o->wavefront.ahead,
                               .unchained = o->wavefront.unchained,
                               .read_bytes_per_s = o->read_bw,
                               .write_bytes_per_s = o->write_bw,
                               .updates_per_s = o->rate};
    if (!r->resumed) return;
    r->request.layout = r->note.geometry.layout;
    r->request.mb = r->note.geometry.mb;
    r->request.nb = r->note.geometry.nb;
}

static int open_source(mx_wf_run *r) {
    const struct mx_options *o = &r->o;
    const struct mx_wf_init *init = o->init == NULL ? &mx_wf_inits[0] : mx_wf_init_find(o->init);
    if (!mx_option_given(o, "iterations"))
        return mx_fail(&r->why, -EINVAL,
                       "the number of iterations is missing: give it with -k K (--iterations)");
    int err = mx_wf_source_open(r->inputs, init, o->wavefront.rows, o->wavefront.cols, &r->why, &r->source);
    if (err == 0 && r->source.rows == 0)
        err = mx_fail(&r->why, -EINVAL,
                      "the size of the matrices is missing: give -n ROWS COLS, or an --input");
    return err;
}

/* Reports and bars count updates. */
static int check_countable(mx_wf_run *r) {
    const int64_t rows = r->source.rows, cols = r->source.cols, iterations = r->o.wavefront.iterations;
    if ((double)rows * (double)cols * (double)iterations < 0x1p62) return 0;
    return mx_fail(&r->why, -EOVERFLOW,
                   "%lld iterations of %lld x %lld cells make more updates than memext can count: give fewer "
                   "--iterations",
                   (long long)iterations, (long long)rows, (long long)cols);
}

static int check_sequential(mx_wf_run *r) {
    const uint64_t room = r->report.dram_budget_bytes;
    r->report.block_bytes =
        (uint64_t)(r->source.rows + 2) * (uint64_t)(r->source.cols + 2) * MX_WF_MATRICES * CELL;
    if (r->report.block_bytes <= room) return 0;
    return mx_fail(&r->why, -EINVAL,
                   "--sequential keeps all six matrices in memory and needs %s; %s is free: leave it out, or "
                   "raise --dram",
                   mx_size(r->report.block_bytes).text, mx_size(room).text);
}

static void say_useless(const mx_wf_run *r) {
    static const char *const of_stores[] = {"backend", "advice",      "force",        "keep",
                                            "no-lock", "queue-depth", "request-size", "workers",
                                            "threads", "read-bw",     "write-bw",     "rate"};
    mx_remark *say = r->caller.remark;
    void *context = r->caller.context;
    int given = 0;
    if (say == NULL || r->o.quiet) return;
    for (size_t i = 0; r->o.wavefront.sequential && i < sizeof of_stores / sizeof of_stores[0]; i++)
        mx_say_no_effect(&r->o, of_stores[i], say, context,
                         "with --sequential, where the plain loop runs in memory on one core");
    if (!r->o.wavefront.sequential) mx_say_useless(&r->o, r->backend, r->report.machine.cores, say, context);
    for (int m = 0; m < MX_WF_MATRICES; m++) given += r->inputs[m] != NULL;
    if (given == MX_WF_MATRICES)
        mx_say_no_effect(&r->o, "init", say, context, "if every matrix has an --input");
    if (r->o.outputs.n == 0) mx_say_no_effect(&r->o, "overwrite", say, context, "without --output");
    if (r->planned && r->choice.traffic.passes < 2)
        mx_say_no_effect(&r->o, "unchained", say, context, "in a run of one pass");
}

/* Reports and timelines of other runs speak of grids: rows are y, columns x, and z of events. */
static void describe(mx_wf_run *r) {
    r->report.problem = (struct mx_problem){.nx = r->source.cols,
                                            .ny = r->source.rows,
                                            .nz = 1,
                                            .nt = r->o.wavefront.iterations,
                                            .h = 1,
                                            .stencil = "loop23"};
    r->report.resumed_from = r->report.steps_done = r->first;
}

int mx_wf_prepare(mx_wf_run *r) {
    int err = r->o.fault != NULL ? mx_fault_calls(r->o.fault, &r->why) : 0;
    if (err == 0) err = check_names(r, false);
    if (err == 0 && r->o.json != NULL && !r->exports && strcmp(r->o.json, "-") != 0)
        err = mx_output_open(r->o.json, "the report", MX_OUTPUT_REPLACE, &r->why, &r->json);
    if (err == 0 && r->o.resume) err = take_store(r);
    if (err == 0) err = take_place(r);
    if (err == 0 && !r->resumed) err = open_source(r);
    if (err == 0) err = check_countable(r);
    if (err == 0) err = mx_machine_detect(&r->why, &r->report.machine);
    if (err == 0) err = take_limits(r);
    if (err < 0) return err;
    describe(r);
    make_request(r);
    if (r->exports)
        return r->choice.plan.geometry = r->note.geometry,
               r->request.align_bytes = r->note.geometry.align_bytes, 0;
    err = r->o.wavefront.sequential ? check_sequential(r) : mx_wf_make_plan(r);
    if (err == 0) say_useless(r);
    return err == 0 ? mx_wf_stopped(r) : err;
}
