/* SPDX-License-Identifier: BSD-3-Clause */
/* prepare.c - a wavefront run before anything is touched: what it may use, where it works, by which plan; and
 * its store. */
#include "core/place.h"
#include "wavefront/run_private.h"

#include "core/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PAGE = 4096, CELL = 8, WORDS = 2 * MX_WF_MATRICES + 5 };

static const char *const input_words[MX_WF_MATRICES] = {"--input za", "--input zr", "--input zb",
                                                        "--input zu", "--input zv", "--input zz"};
static const char *const output_words[MX_WF_MATRICES] = {"--output za", "--output zr", "--output zb",
                                                         "--output zu", "--output zv", "--output zz"};

/* ------------------------------------------------------------------ place and limits */

static int take_backend(mx_wf_run *r) {
    const char *name = r->o.backend;
    if (name != NULL) {
        r->backend = mx_backend_find(strncmp(name, "fault:", 6) == 0 ? name + 6 : name);
        if (r->backend == NULL)
            return mx_fail(&r->why, -EINVAL,
                           "--backend '%s' is not known; it is dram, swap, mmap, aio or uring", name);
    } else {
        for (const struct mx_backend *const *b = mx_backends; *b != NULL; b++)
            if ((*b)->face == MX_FACE_TRANSFER && ((*b)->probe == NULL || (*b)->probe(NULL, NULL) == 0))
                r->backend = *b;
        if (r->backend == NULL)
            return mx_fail(&r->why, -ENOTSUP,
                           "neither aio nor uring works here; memext info says why. Try --backend mmap");
        r->o.backend = r->backend->name;
    }
    if (!r->backend->anonymous && r->o.path != NULL && !r->o.resume) {
        const int err = mx_place_check(r->o.path, &r->why);
        if (err < 0) return err;
    }
    if (!r->backend->anonymous && r->o.path == NULL && !r->o.dry_run)
        return mx_fail(&r->why, -EINVAL,
                       "backend %s needs a place for the Buffers: give a directory, file or block device "
                       "with -d PATH",
                       r->backend->name);
    if (r->backend->anonymous && r->o.resume)
        return mx_fail(&r->why, -EINVAL,
                       "the Buffers of the backend %s end with the process: nothing to resume",
                       r->backend->name);
    return 0;
}

static int take_limits(mx_wf_run *r) {
    const uint64_t visible = mx_machine_dram_bytes(&r->machine);
    r->dram_limit_bytes = r->o.dram_bytes > 0 ? r->o.dram_bytes : visible;
    if (r->dram_limit_bytes > visible && !r->o.dry_run)
        return mx_fail(&r->why, -EINVAL,
                       "--dram of %llu MiB is more than the %llu MiB that this process may use (the smaller "
                       "of the machine's memory and its cgroup's limit)",
                       (unsigned long long)(r->dram_limit_bytes >> 20), (unsigned long long)(visible >> 20));
    if (r->o.dram_bytes == 0) r->reserve_bytes = mx_machine_reserve_auto(&r->machine, visible);
    return 0;
}

static bool is_resident(const mx_wf_run *r) { return r->backend->anonymous && !r->backend->locks_blocks; }

/* ------------------------------------------------------------------ --resume */

static int check_problem(mx_wf_run *r, const char *place) {
    const struct mx_wf_note *n = &r->note;
    const struct mx_wf_geometry *g = &n->geometry;
    if (n->different)
        return mx_fail(&r->why, -EINVAL,
                       "the result in %.200s was verified and differs from the sequential loop: it is not "
                       "resumed",
                       place);
    if ((r->o.rows > 0 && (r->o.rows != g->rows || r->o.cols != g->cols)) ||
        (r->o.iterations >= 0 && r->o.iterations != n->iterations))
        return mx_fail(&r->why, -EINVAL,
                       "%.200s holds a run of %lld x %lld, %lld iterations; leave -n and --iterations out "
                       "with --resume",
                       place, (long long)g->rows, (long long)g->cols, (long long)n->iterations);
    if ((r->o.layout != NULL && strcmp(r->o.layout, mx_wf_layouts[g->layout]) != 0) ||
        (r->o.mb > 0 && (r->o.mb != g->mb || r->o.nb != g->nb)))
        return mx_fail(&r->why, -EINVAL,
                       "the Buffers in %.200s are in layout %s, tiles of %lld x %lld; leave --layout and "
                       "--tile out with --resume",
                       place, mx_wf_layouts[g->layout], (long long)g->mb, (long long)g->nb);
    for (int m = 0; m < MX_WF_MATRICES; m++)
        if (r->o.inputs[m] != NULL || r->o.init != NULL)
            return mx_fail(&r->why, -EINVAL,
                           "%.200s holds a run with its own inputs; leave --input and --init out with "
                           "--resume",
                           place);
    return 0;
}

/* The inputs are needed again by --verify alone. */
static int reopen_inputs(mx_wf_run *r) {
    const char *paths[MX_WF_MATRICES] = {NULL};
    const struct mx_wf_note *n = &r->note;
    for (int m = 0; m < MX_WF_MATRICES && r->o.verify; m++) {
        struct stat st;
        const char *path = n->inputs[m].path;
        if (path[0] == 0) continue;
        if (stat(path, &st) != 0 || (uint64_t)st.st_size != n->inputs[m].bytes ||
            st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec != n->inputs[m].modified_ns)
            return mx_fail(&r->why, -EINVAL,
                           "%.300s is not there any more as it was when the run began: the result cannot be "
                           "verified; leave --verify out",
                           path);
        paths[m] = path;
    }
    const struct mx_wf_init *init = mx_wf_init_find(n->init);
    if (init == NULL) init = &mx_wf_inits[0];
    return mx_wf_source_open(paths, init, n->geometry.rows, n->geometry.cols, &r->why, &r->source);
}

static int check_names(mx_wf_run *r, bool stored) {
    struct mx_file_word words[WORDS];
    size_t n = 0;
    for (int m = 0; m < MX_WF_MATRICES; m++) {
        const char *input = stored ? r->note.inputs[m].path : r->o.inputs[m];
        words[n++] = (struct mx_file_word){input_words[m], input, MX_FILE_READ};
    }
    words[n++] = (struct mx_file_word){"-d", r->o.path, MX_FILE_PLACE};
    for (int m = 0; m < MX_WF_MATRICES; m++)
        words[n++] = (struct mx_file_word){output_words[m], r->o.outputs[m], MX_FILE_NPY};
    words[n++] = (struct mx_file_word){"--json", r->o.json, MX_FILE_WRITTEN};
    words[n++] = (struct mx_file_word){"--timeline", r->o.timeline, MX_FILE_WRITTEN};
    words[n++] = (struct mx_file_word){"--trace", r->o.trace, MX_FILE_WRITTEN};
    return mx_output_check_names(words, n, &r->why);
}

static int take_store(mx_wf_run *r) {
    struct mx_store_facts *s = calloc(1, sizeof *s);
    mx_why reason = {""};
    int err = s == NULL ? mx_fail(&r->why, -ENOMEM, "no memory for the note of the store")
              : r->o.path == NULL
                  ? mx_fail(&r->why, -EINVAL, "--resume needs the place of the store: give it with -d PATH")
                  : mx_store_look(r->o.path, &r->why, s);
    if (err == -ENOENT) mx_fail(&r->why, err, "%.300s holds no memext store: nothing to resume", r->o.path);
    if (err == 0 && s->note_bytes == 0)
        err = mx_fail(&r->why, -EINVAL,
                      "%.300s holds no state that could be resumed: nothing was committed; start again "
                      "without --resume",
                      s->place);
    if (err == 0 && (err = mx_wf_note_parse(s->note, s->note_bytes, &reason, &r->note)) < 0)
        mx_fail(&r->why, err, "%.300s cannot be resumed: %.150s", s->place, reason.text);
    if (err == 0 && (err = check_names(r, true)) < 0)
        mx_output_drop(&r->json); /* no report goes where an input is */
    if (err == 0) err = check_problem(r, s->place);
    if (err == 0) err = reopen_inputs(r);
    if (err == 0) {
        const struct mx_backend *former = mx_backend_find(r->note.backend);
        if (r->o.backend == NULL && former != NULL && !former->anonymous &&
            (former->probe == NULL || former->probe(NULL, NULL) == 0))
            r->o.backend = former->name;
        if (s->finished == 2) r->o.keep = true;
        r->o.iterations = r->note.iterations;
        r->first = r->note.done;
        r->resumed = r->committed = true;
    }
    free(s);
    return err;
}

/* ------------------------------------------------------------------ plan */

/* Before the device is open: pages for transfers; a mapping takes any cell. */
static uint32_t alignment(const mx_wf_run *r) {
    if (r->resumed) return r->note.geometry.align_bytes;
    if (r->backend->face == MX_FACE_MAPPED) return CELL;
    return r->device != NULL ? r->device_facts.offset_align_bytes : PAGE;
}

static int64_t all_bytes(const struct mx_wf_geometry *g) {
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
    if (!is_resident(r)) return 0;
    int err = mx_wf_geometry(q->rows, q->cols, q->layout, mb > 0 ? mb : q->rows, nb > 0 ? nb : q->cols,
                             q->align_bytes, &r->why, &g);
    if (err == 0) *out = (uint64_t)all_bytes(&g);
    return err;
}

static int make_plan(mx_wf_run *r) {
    struct mx_wf_request *q = &r->request;
    uint64_t resident;
    q->align_bytes = alignment(r);
    int err = resident_bytes(r, q->mb, q->nb, &resident);
    if (err < 0) return err;
    const uint64_t room = r->dram_limit_bytes - r->reserve_bytes, overhead = UINT64_C(1) << 20;
    if (resident + overhead >= room && resident > 0)
        return mx_fail(
            &r->why, -EINVAL,
            "the Buffers of backend %s are in DRAM and need %llu MiB, and there are %llu MiB; take "
            "a smaller problem, or mmap, aio or uring",
            r->backend->name, (unsigned long long)(resident >> 20), (unsigned long long)(room >> 20));
    if (overhead >= room)
        return mx_fail(&r->why, -EINVAL, "%llu KiB of DRAM are too little for any run; give more --dram",
                       (unsigned long long)(room >> 10));
    q->dram_bytes = room - resident - overhead;
    err = mx_wf_tune(q, &r->why, &r->choice);
    if (err == 0 && mx_wf_conversion_bytes(mx_wf_geometry_of(r)) > (int64_t)q->dram_bytes)
        err = mx_fail(&r->why, -EINVAL,
                      "tile rows of %lld x %lld cells are too large for the conversion; "
                      "take a lower --tile",
                      (long long)r->choice.plan.geometry.mb, (long long)q->cols);
    r->planned = err == 0;
    return err;
}

static int make_request(mx_wf_run *r) {
    const struct mx_wf_options *o = &r->o;
    int layout = MX_WF_FRONTIER;
    if (o->layout != NULL)
        for (layout = 0; layout < MX_WF_LAYOUTS && strcmp(o->layout, mx_wf_layouts[layout]) != 0; layout++) {
        }
    if (layout == MX_WF_LAYOUTS)
        return mx_fail(&r->why, -EINVAL, "--layout '%s' is not known; it is row, block or frontier",
                       o->layout);
    r->request = (struct mx_wf_request){.rows = r->source.rows,
                                        .cols = r->source.cols,
                                        .iterations = o->iterations - r->first,
                                        .layout = (enum mx_wf_layout)layout,
                                        .threads = o->threads > 0 ? o->threads : r->machine.cores,
                                        .mb = o->mb,
                                        .nb = o->nb,
                                        .waves = o->waves,
                                        .ahead = o->ahead,
                                        .unchained = o->unchained,
                                        .read_bytes_per_s = o->read_bw,
                                        .write_bytes_per_s = o->write_bw,
                                        .updates_per_s = o->rate};
    if (r->resumed) {
        r->request.layout = r->note.geometry.layout;
        r->request.mb = r->note.geometry.mb;
        r->request.nb = r->note.geometry.nb;
    }
    return 0;
}

static int open_source(mx_wf_run *r) {
    const struct mx_wf_options *o = &r->o;
    const struct mx_wf_init *init = o->init == NULL ? &mx_wf_inits[0] : mx_wf_init_find(o->init);
    if (init == NULL)
        return mx_fail(&r->why, -EINVAL, "--init '%s' is not known; it is random, linear or zero", o->init);
    if (o->iterations < 0) return mx_fail(&r->why, -EINVAL, "say how many iterations: --iterations K");
    int err = mx_wf_source_open(o->inputs, init, o->rows, o->cols, &r->why, &r->source);
    if (err == 0 && r->source.rows == 0)
        err = mx_fail(&r->why, -EINVAL, "say how large the matrices are: -n ROWS COLS, or give an --input");
    return err;
}

static int check_sequential(mx_wf_run *r) {
    const struct mx_wf_options *o = &r->o;
    if (!o->sequential) return 0;
    if (o->resume || o->verify || o->path != NULL || o->layout != NULL || o->mb > 0 || o->waves > 0)
        return mx_fail(&r->why, -EINVAL,
                       "--sequential is the plain loop in memory: it has no place, layout, tiles or waves, "
                       "and nothing to resume or verify; leave those options out");
    const uint64_t need = (uint64_t)(r->source.rows + 2) * (uint64_t)(r->source.cols + 2) * 6 * CELL;
    const uint64_t room = r->dram_limit_bytes - r->reserve_bytes;
    if (need <= room) return 0;
    return mx_fail(&r->why, -EINVAL,
                   "--sequential keeps all six matrices in memory, %llu MiB, and there are %llu MiB; leave "
                   "it out, or give more --dram",
                   (unsigned long long)(need >> 20), (unsigned long long)(room >> 20));
}

int mx_wf_prepare(mx_wf_run *r) {
    int err = r->o.fault != NULL ? mx_fault_calls(r->o.fault, &r->why) : 0;
    if (err == 0) err = check_names(r, false);
    if (err == 0 && r->o.json != NULL && strcmp(r->o.json, "-") != 0)
        err = mx_output_open(r->o.json, "the report", MX_OUTPUT_REPLACE, &r->why, &r->json);
    if (err == 0 && r->o.sequential) {
        if (r->o.backend == NULL) r->o.backend = "dram";
        r->o.layout = NULL;
    }
    if (err == 0 && r->o.resume) err = take_store(r);
    if (err == 0) err = take_backend(r);
    if (err == 0 && !r->resumed) err = open_source(r);
    if (err == 0) err = mx_machine_detect(&r->why, &r->machine);
    if (err == 0) err = take_limits(r);
    if (err == 0) err = make_request(r);
    if (err == 0) err = check_sequential(r);
    if (err == 0 && !r->o.sequential) err = make_plan(r);
    return err == 0 ? mx_wf_stopped(r) : err;
}

/* ------------------------------------------------------------------ outputs */

int mx_wf_open_outputs(mx_wf_run *r) {
    const unsigned flags = MX_OUTPUT_SEEK | (r->o.overwrite ? MX_OUTPUT_REPLACE : 0);
    const uint64_t bytes = (uint64_t)(r->source.rows + 2) * (uint64_t)(r->source.cols + 2) * CELL + 128;
    int err = 0;
    for (int m = 0; m < MX_WF_MATRICES && err == 0; m++) {
        if (r->o.outputs[m] == NULL) continue;
        err = mx_output_open(r->o.outputs[m], output_words[m] + 2, flags, &r->why, &r->outputs[m]);
        if (err == 0) err = mx_output_reserve(&r->outputs[m], bytes, output_words[m] + 2, &r->why);
    }
    if (err == 0 && r->o.timeline != NULL)
        err = mx_output_open(r->o.timeline, "the timeline", MX_OUTPUT_REPLACE, &r->why, &r->timeline_file);
    if (err == 0 && r->o.trace != NULL)
        err = mx_output_open(r->o.trace, "the trace", MX_OUTPUT_REPLACE, &r->why, &r->trace_file);
    return err;
}

/* ------------------------------------------------------------------ device and Buffers */

int mx_wf_check_room(mx_wf_run *r) {
    const struct mx_device_options d = {.size = sizeof d,
                                        .backend = r->o.backend,
                                        .path = r->o.path,
                                        .expect_bytes = (uint64_t)all_bytes(mx_wf_geometry_of(r)),
                                        .force = r->o.force};
    const bool asked = !r->o.sequential && !r->resumed && (r->backend->anonymous || r->o.path != NULL);
    return asked ? mx_device_ask(&d, &r->why) : 0;
}

static int open_device(mx_wf_run *r) {
    const struct mx_wf_options *o = &r->o;
    struct mx_device_options d = {.size = sizeof d,
                                  .backend = o->backend,
                                  .path = o->path,
                                  .expect_bytes = r->resumed ? 0 : (uint64_t)all_bytes(mx_wf_geometry_of(r)),
                                  .queue_depth = o->queue_depth,
                                  .max_request_bytes = o->request_bytes,
                                  .workers = o->workers,
                                  .advice = o->advice,
                                  .force = o->force,
                                  .resume = o->resume,
                                  .keep = o->keep,
                                  .fault = o->fault,
                                  .no_lock = o->no_lock};
    int err = mx_device_open_waiting(&d, &r->why, &r->device);
    if (err == 0) mx_device_facts(r->device, &r->device_facts);
    return err;
}

/* What the run begins with may lie in the store that it would replace. */
static int check_inputs(mx_wf_run *r) {
    struct stat st;
    for (int m = 0; m < MX_WF_MATRICES; m++)
        if (r->o.inputs[m] != NULL && stat(r->o.inputs[m], &st) == 0 && mx_device_is(r->device, &st))
            return mx_fail(
                &r->why, -EINVAL,
                "%s %.300s lies in the store that this run would replace: name another place with -d",
                input_words[m], r->o.inputs[m]);
    return 0;
}

/* The store is locked now: is it still the one that was looked at? */
static int check_note(mx_wf_run *r) {
    char text[MX_NOTE_BYTES + 1];
    struct mx_wf_note *now = malloc(sizeof *now);
    int64_t n = mx_device_note(r->device, text, sizeof text);
    int err = now == NULL ? -ENOMEM : n > 0 ? mx_wf_note_parse(text, (size_t)n, NULL, now) : -EBUSY;
    const bool same = err == 0 && now->done == r->note.done && now->buffer == r->note.buffer &&
                      now->started_s == r->note.started_s && now->iterations == r->note.iterations;
    free(now);
    if (!same)
        return mx_fail(&r->why, -EBUSY, "%.300s was changed by another memext a moment ago: start again",
                       r->device_facts.place);
    const uint32_t ours = r->note.geometry.align_bytes, need = r->device_facts.offset_align_bytes;
    if (ours % need == 0) return 0;
    return mx_fail(&r->why, -EINVAL,
                   "the tiles in %.300s lie at multiples of %u bytes, and backend %s transfers multiples of "
                   "%u; take --backend mmap",
                   r->device_facts.place, ours, r->device_facts.backend, need);
}

static int open_buffer(mx_wf_run *r, const char *name, uint64_t bytes, mx_buffer **out) {
    if (!r->resumed) return mx_buffer_create(r->device, name, bytes, &r->why, out);
    int err = mx_buffer_open(r->device, name, &r->why, out);
    if (err == 0 && mx_buffer_bytes(*out) < bytes)
        err = mx_fail(&r->why, -EIO,
                      "the Buffer \"%s\" of %.300s is shorter than its note says: the store is damaged", name,
                      r->device_facts.place);
    return err;
}

/* Either Buffer of the data is large enough for the scratch of a comparison. */
static int open_buffers(mx_wf_run *r) {
    static const char *const names[2] = {"za-0", "za-1"};
    const struct mx_wf_geometry *g = mx_wf_geometry_of(r);
    const int64_t scratch = mx_wf_scratch_bytes(g->rows, g->cols, g->align_bytes);
    int64_t data = mx_wf_buffer_bytes(g, MX_WF_ZA);
    if (data < scratch) data = scratch;
    int err = 0;
    for (int i = 0; i < 2 && err == 0; i++) err = open_buffer(r, names[i], (uint64_t)data, &r->data[i]);
    for (int m = MX_WF_ZR; m < MX_WF_MATRICES && err == 0; m++)
        err = open_buffer(r, mx_wf_names[m], (uint64_t)mx_wf_buffer_bytes(g, (enum mx_wf_matrix)m),
                          &r->fixed[m]);
    return err;
}

int mx_wf_open_store(mx_wf_run *r) {
    int err = open_device(r);
    if (err == 0) err = r->resumed ? check_note(r) : check_inputs(r);
    /* The device's alignment may be another one than it looked from outside. */
    if (err == 0 && alignment(r) != r->request.align_bytes) err = make_plan(r);
    if (err == 0) err = mx_budget_create(r->dram_limit_bytes, r->reserve_bytes, &r->why, &r->budget);
    return err < 0 ? err : open_buffers(r);
}
