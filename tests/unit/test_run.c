/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs as a library (memext.h, "runs"): what is not seen from a program that goes well. Most of it is on
 * backend dram, where nothing but memory is touched. Examples and stores: tests/python/test_run_library.py.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <memext/backend.h>
#include <memext/memext.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NX = 10, NY = 9, NZ = 8 };

/* A source and sink that count and fail where they are told to. */
struct ends {
    int64_t fail_at, given, taken; /* planes */
    int opened, closed, thrown_away, published;
    bool extents;     /* the source has some of its own */
    bool changes;     /* the source gives other numbers the second time; */
    atomic_int looks; /* the sink is closed when the run has been looked at once more */
    bool signals_out; /* a signal could reach the thread that called */
    mx_run *stop;
};

static int source_open(void *context, struct mx_grid *grid, mx_why *why) {
    struct ends *e = context;
    (void)why;
    cr_expect(grid->size == sizeof *grid && grid->frame == 1);
    if (e->extents) grid->nx = NX + 2, grid->ny = NY + 2, grid->nz = NZ + 2;
    return e->opened++, 0;
}

static int give(void *context, const struct mx_grid_box *box, mx_why *why) {
    struct ends *e = context;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    e->signals_out |= !sigismember(&blocked, SIGINT) || !sigismember(&blocked, SIGTERM);
    cr_expect(box->z0 == e->given % (NZ + 2) && box->z1 == box->z0 + 1 && box->x1 == NX + 2 &&
              box->y1 == NY + 2);
    if (e->given++ == e->fail_at)
        return snprintf(why->text, sizeof why->text, "the tape is torn"), -EREMOTEIO;
    if (e->stop != NULL) mx_run_stop(e->stop);
    for (int64_t y = 0; y < NY + 2; y++)
        for (int64_t x = 0; x < NX + 2; x++)
            ((double *)((char *)box->data + y * box->row_pitch_bytes))[x] =
                (double)(x + y + box->z0 + (e->changes ? e->given / (NZ + 3) : 0));
    return 0;
}

static void source_close(void *context) { ((struct ends *)context)->closed++; }

static int take(void *context, const struct mx_grid_box *box, mx_why *why) {
    (void)why;
    cr_expect_eq(box->z0, ((struct ends *)context)->taken);
    return ((struct ends *)context)->taken++, 0;
}

static int sink_close(void *context, bool whole, mx_why *why) {
    struct ends *e = context;
    const int looks = atomic_load_explicit(&e->looks, memory_order_relaxed);
    while (e->changes && atomic_load_explicit(&e->looks, memory_order_relaxed) < looks + 2) sched_yield();
    (void)why;
    return whole ? e->published++ : e->thrown_away++, 0;
}

static struct mx_source counted(struct ends *e) {
    return (struct mx_source){.size = sizeof(struct mx_source),
                              .context = e,
                              .name = "counted",
                              .open = source_open,
                              .region = give,
                              .close = source_close};
}

static mx_run *open_run(struct ends *e, const char *more) {
    const char *const words[] = {e->extents ? "threads=1" : "size=10 9 8", "steps=3", "backend=dram", more,
                                 NULL};
    struct mx_source source = counted(e);
    struct mx_sink sink = {.size = sizeof sink, .context = e, .region = take, .close = sink_close};
    struct mx_run_options o = {.size = sizeof o, .options = words, .source = &source, .sink = &sink};
    mx_why why = {""};
    mx_run *run = NULL;
    cr_assert_eq(mx_run_open(&o, &why, &run), 0, "%s", why.text);
    return run;
}

/* All planes pass once each way (twice in, with --verify), ends are closed once, no signal can meet a thread.
 */
Test(run, a_grid_goes_in_and_out) {
    struct ends e = {.fail_at = -1, .extents = true};
    mx_why why = {""};
    struct mx_run_progress p = {.size = sizeof p};
    mx_run *run = open_run(&e, "verify");
    cr_expect_eq(mx_run_poll(run, &why, &p), 0);
    cr_expect(p.phase[0] == 0 && p.committed_step == -1);
    cr_assert_eq(mx_run_prepare(run, &why), 0, "%s", why.text);
    cr_expect(e.opened == 1 && e.given == 0);
    cr_assert_eq(mx_run_start(run, &why), 0, "%s", why.text);
    cr_expect_eq(mx_run_wait(run, -1, &why, &p), 1, "%s", why.text);
    cr_expect(p.size == sizeof p && strcmp(p.phase, "output") == 0 && p.done == p.total, "%s", p.phase);
    cr_expect_eq(mx_run_start(run, &why), -EALREADY);
    cr_expect(e.given >= 2 * (NZ + 2) && e.given % (NZ + 2) == 0 && e.taken == NZ + 2);
    cr_expect(e.opened == 1 && e.closed == 1 && e.published == 1 && e.thrown_away == 0 && !e.signals_out);
    char *report = NULL;
    cr_assert_eq(mx_run_report(run, &why, &report), 0);
    cr_expect(strstr(report, "\"status\": \"done\"") != NULL &&
              strstr(report, "\"input\": \"counted\"") != NULL);
    free(report);
    mx_run_close(run);
    cr_expect(e.closed == 1 && e.published + e.thrown_away == 1);
}

/* It may be looked at whenever one likes; that the result differs is told when it has ended. */
Test(run, is_looked_at_all_the_time) {
    struct ends e = {.fail_at = -1, .changes = true};
    struct mx_run_progress p = {.size = sizeof p};
    mx_why why = {""};
    mx_run *run = open_run(&e, "verify");
    int err = mx_run_start(run, &why);
    while (err == 0) {
        err = mx_run_poll(run, &why, &p);
        atomic_fetch_add_explicit(&e.looks, 1, memory_order_relaxed); /* which orders nothing */
    }
    cr_expect_eq(err, -EUCLEAN, "%d %s", err, why.text);
    cr_expect(strstr(why.text, "differs from the plain computation") != NULL, "%s", why.text);
    cr_expect(e.closed == 1 && e.published == 0 && e.thrown_away == 1);
    mx_run_close(run);
}

/* The source's error and sentence end the run; the sink learns that there is no result. */
Test(run, an_error_of_the_source_ends_it) {
    struct ends e = {.fail_at = 4};
    mx_why why = {""};
    char *report = NULL;
    mx_run *run = open_run(&e, NULL);
    cr_assert_eq(mx_run_start(run, &why), 0, "%s", why.text);
    cr_expect_eq(mx_run_wait(run, -1, &why, NULL), -EREMOTEIO);
    cr_expect_str_eq(why.text, "the tape is torn");
    cr_expect(e.taken == 0 && e.closed == 1 && e.thrown_away == 1 && e.published == 0);
    cr_assert_eq(mx_run_report(run, &why, &report), 0);
    cr_expect(strstr(report, "\"status\": \"failed\"") != NULL && strstr(report, "the tape is torn") != NULL);
    free(report);
    mx_run_close(run);
}

/* Stopped by the source itself, in the middle of the initial grid. */
Test(run, stop_from_within) {
    struct ends e = {.fail_at = -1};
    mx_why why = {""};
    mx_run *run = open_run(&e, NULL);
    e.stop = run;
    cr_assert_eq(mx_run_start(run, &why), 0, "%s", why.text);
    cr_expect_eq(mx_run_wait(run, -1, &why, NULL), -EINTR);
    cr_expect(e.given < NZ + 2 && e.thrown_away == 1 && strstr(why.text, "stopped") != NULL, "%s", why.text);
    mx_run_close(run);
    mx_run_stop(NULL), mx_run_close(NULL);
}

Test(run, never_started) {
    struct ends e = {.fail_at = -1};
    mx_why why = {""};
    mx_run_close(open_run(&e, NULL));
    cr_expect(e.opened == 0 && e.closed == 0 && e.thrown_away == 0);
    mx_run *run = open_run(&e, "dry-run");
    cr_assert_eq(mx_run_prepare(run, &why), 0, "%s", why.text);
    cr_expect_eq(mx_run_start(run, &why), -EINVAL);
    mx_run_close(run);
    cr_expect(e.thrown_away == 0 && e.published == 0, "a dry run opens no sink");
}

/* A program of before the last field of progress gets what it has room for; a struct without size is refused.
 */
Test(run, structs_of_other_versions) {
    struct ends e = {.fail_at = -1};
    struct mx_run_progress p = {.size = offsetof(struct mx_run_progress, committed_step),
                                .committed_step = 77};
    struct mx_run_options o = {.size = 0};
    mx_run *run = open_run(&e, NULL);
    mx_why why = {""};
    cr_assert_eq(mx_run_start(run, &why), 0);
    cr_expect_eq(mx_run_wait(run, -1, &why, &p), 1, "%s", why.text);
    cr_expect(p.committed_step == 77 && p.n_phases > 0);
    mx_run_close(run);
    cr_expect_eq(mx_run_open(&o, &why, &run), -EINVAL);
    cr_expect(strstr(why.text, "size") != NULL, "%s", why.text);
}

/* The step in the superblocks of the store in this directory, -1 without one. */
static long long stored_step(const char *directory) {
    mx_why why = {""};
    char *text = NULL;
    long long step = -1;
    if (mx_store_report(directory, &why, &text) < 0) return -1;
    const char *at = strstr(text, "\"step\":");
    if (at != NULL) step = atoll(at + strlen("\"step\":"));
    free(text);
    return step;
}

/* Each write of a superblock fails once, in a run of three sweeps that are committed one by one. Pass: the
 * step that the run tells as committed is the one that its store has. */
Test(run, a_commit_that_failed_is_not_told) {
    char directory[256], device[280], file[280], spec[64];
    const char *base = getenv("MEMEXT_TEST_DIR");
    int failed = 0, before_the_end = 0;
    snprintf(directory, sizeof directory, "%s/mx-run-XXXXXX", base != NULL ? base : "build");
    cr_assert(mkdtemp(directory) != NULL, "no test directory under %s", directory);
    snprintf(device, sizeof device, "device=%s", directory);
    snprintf(file, sizeof file, "%s/memext.store", directory);
    const char *const words[] = {"size=10 9 8", "steps=9", device,           "backend=aio",
                                 "keep",        "force",   "commit-every=0", "plan=redundant by=9 bz=8 bt=3",
                                 NULL};
    for (int call = 1; call < 100; call++) {
        struct mx_run_options o = {.size = sizeof o, .options = words};
        struct mx_run_progress p = {.size = sizeof p};
        mx_why why = {""};
        mx_run *run = NULL;
        snprintf(spec, sizeof spec, "call=%d,calls_from=pwrite", call);
        cr_assert_eq(mx_fault_calls(spec, &why), 0, "%s", why.text);
        int err = mx_run_open(&o, &why, &run);
        if (err == 0) err = mx_run_start(run, &why);
        if (err == 0) err = mx_run_wait(run, -1, &why, &p);
        const bool reached = mx_fault_calls_made() >= (uint64_t)call;
        cr_assert_eq(mx_fault_calls(NULL, NULL), 0);
        if (err < 0 && run != NULL && mx_run_poll(run, &why, &p) < 0 && p.committed_step >= 0) {
            failed++;
            before_the_end += p.committed_step < 9;
            cr_expect_eq(p.committed_step, stored_step(directory),
                         "call %d: step %lld is told, the store has %lld", call, (long long)p.committed_step,
                         stored_step(directory));
        }
        mx_run_close(run);
        unlink(file);
        if (!reached) break;
    }
    cr_expect(failed >= 3 && before_the_end >= 2, "%d failed behind the first commit, %d before the last",
              failed, before_the_end);
    rmdir(directory);
}

/* So it is with what is older than runs, where 0 stands for the first version. */
Test(run, facts_of_other_versions) {
    struct mx_budget_facts all = {.size = sizeof all},
                           old = {.size = offsetof(struct mx_budget_facts, peak_bytes), .peak_bytes = 77},
                           none = {.size = 0};
    mx_budget *budget = NULL;
    cr_assert_eq(mx_budget_create(1 << 20, 4096, NULL, &budget), 0);
    mx_budget_facts(budget, &all), mx_budget_facts(budget, &old), mx_budget_facts(budget, &none);
    cr_expect(all.limit_bytes == 1 << 20 && all.size == sizeof all);
    cr_expect(old.limit_bytes == 1 << 20 && old.reserve_bytes == 4096 && old.peak_bytes == 77);
    cr_expect(none.limit_bytes == 1 << 20 && none.size == 0);
    mx_budget_free(budget);
}

static int change_nothing(void *context, const struct mx_grid_box *box, int32_t n, mx_why *why) {
    (void)context, (void)box, (void)n, (void)why;
    return 0;
}

static int run_in(const char *place, struct ends *e, const char *more, const char *steps, mx_why *why) {
    char device[300];
    snprintf(device, sizeof device, "device=%s", place);
    const char *const words[] = {"size=10 9 8", steps, device, "backend=mmap", "keep", more, NULL};
    struct mx_source source = counted(e);
    struct mx_run_options o = {.size = sizeof o, .options = words, .source = &source};
    struct mx_run_progress p = {.size = sizeof p};
    mx_run *run = NULL;
    int err = mx_run_open(&o, why, &run);
    if (err < 0) return err;
    err = mx_run_start(run, why);
    if (err == 0) err = mx_run_wait(run, -1, why, &p);
    mx_run_close(run);
    return err;
}

/* The note and the place of the Buffers of the newest superblock, and bytes of the whole file. */
static struct mx_store_facts *facts_of(const char *place) {
    mx_why why = {""};
    struct mx_store_facts *f = calloc(1, sizeof *f);
    f->size = sizeof *f;
    cr_assert_eq(mx_store_look(place, &why, f), 0, "%s", why.text);
    return f;
}

/* A run that supersedes the one in its place: an error before its first commit leaves that store as it was,
 * and none of its state is written over; after it the store is the new run's. */
Test(run, one_store_follows_another) {
    char place[256], file[280];
    const char *base = getenv("MEMEXT_TEST_DIR");
    mx_why why = {""};
    struct ends e = {.fail_at = -1};
    snprintf(place, sizeof place, "%s/mx-run-XXXXXX", base != NULL ? base : "build");
    cr_assert(mkdtemp(place) != NULL, "no test directory under %s", place);
    snprintf(file, sizeof file, "%s/memext.store", place);
    cr_expect_eq(run_in(place, &e, "supersede", "steps=3", &why), -ENOENT, "%s", why.text);
    cr_assert_eq(run_in(place, &e, "no-fuse", "steps=3", &why), 1, "%s", why.text);
    struct mx_store_facts *former = facts_of(place);
    for (int64_t plane = 0; plane < NZ + 2; plane += 3) {
        e = (struct ends){.fail_at = plane};
        cr_expect_eq(run_in(place, &e, "supersede", "steps=4", &why), -EREMOTEIO, "%s", why.text);
        struct mx_store_facts *now = facts_of(place);
        cr_expect(now->n_extents == former->n_extents && now->finished == former->finished &&
                  strstr((char *)now->note, "\"step\":3") != NULL && now->file_bytes == former->file_bytes);
        cr_expect(memcmp(now->extents, former->extents, sizeof now->extents) == 0);
        free(now);
    }
    e = (struct ends){.fail_at = -1};
    cr_assert_eq(run_in(place, &e, "supersede", "steps=4", &why), 1, "%s", why.text);
    struct mx_store_facts *now = facts_of(place);
    cr_expect(strstr((char *)now->note, "\"step\":4") != NULL &&
              strstr((char *)now->note, "\"former\"") != NULL);
    cr_expect_eq(run_in(place, &e, "supersede", "steps=0", &why), 1, "%s", why.text);
    free(now);
    free(former);
    unlink(file);
    rmdir(place);
}

/* A run that begins has no state; one that is prepared is past it; a struct without a function says nothing.
 */
Test(run, edits_that_cannot_be) {
    struct mx_edit edit = {.size = sizeof edit, .planes = change_nothing}, none = {.size = sizeof none},
                   bad = {.size = 2};
    struct ends e = {.fail_at = -1};
    mx_why why = {""};
    mx_run *run = open_run(&e, NULL);
    cr_expect_eq(mx_run_edit(run, &edit, &why), -EINVAL);
    cr_expect(strstr(why.text, "resume") != NULL, "%s", why.text);
    cr_expect_eq(mx_run_edit(run, &bad, &why), -EINVAL);
    mx_run_close(run);
    const char *const words[] = {"device=/nonexistent-place", "resume", NULL};
    struct mx_run_options o = {.size = sizeof o, .options = words};
    cr_assert_eq(mx_run_open(&o, &why, &run), 0, "%s", why.text);
    cr_expect_eq(mx_run_edit(run, &none, &why), -EINVAL);
    cr_expect(strstr(why.text, "planes") != NULL, "%s", why.text);
    cr_expect_eq(mx_run_edit(run, &edit, &why), 0);
    cr_expect_lt(mx_run_prepare(run, &why), 0);
    cr_expect_eq(mx_run_edit(run, &edit, &why), -EALREADY);
    mx_run_close(run);
}
