/* SPDX-License-Identifier: BSD-3-Clause */
/* execute_commits.c - commits, errors, damage and interruptions of the executor, and verification. */
#include "execute_setting.h"

struct commits {
    int64_t times[64];
    int n, fail_at;
};

static int take_commit(void *context, int64_t time, int32_t buffer) {
    struct commits *c = context;
    (void)buffer;
    c->times[c->n++] = time;
    return c->n == c->fail_at ? -EIO : 0;
}

/* One commit a sweep, in order: times = 3, 6, 9, 11. */
Test(execute, commits_follow_sweeps) {
    char dir[256];
    make_dir(dir, sizeof dir);
    struct setting s = stream_setting("uring");
    struct commits c = {.fail_at = -1};
    struct outcome o = run(&s, dir, take_commit, &c);
    cr_expect(o.ran && o.err == 0 && c.n == 4);
    static const int64_t expected[4] = {3, 6, 9, 11};
    for (int i = 0; i < c.n && i < 4; i++)
        cr_expect(c.times[i] == expected[i], "commit %d is of step %lld", i, (long long)c.times[i]);
    cr_expect(o.done.steps_done == 11);
    rmdir(dir);
}

/* A commit that fails ends the run with its error, and no later one is tried. */
Test(execute, a_failed_commit_ends_the_run) {
    char dir[256];
    make_dir(dir, sizeof dir);
    struct setting s = stream_setting("aio");
    s.fault = ""; /* expect failure */
    struct commits c = {.fail_at = 2};
    struct outcome o = run(&s, dir, take_commit, &c);
    cr_expect(o.ran && o.err == -EIO && c.n == 2, "err %d after %d commits", o.err, c.n);
    rmdir(dir);
}

/* Under injected faults the run ends with the error or with the right grid, never with a wrong one (run()
 * compares). */
Test(execute, faults_end_the_run_or_do_no_harm) {
    static const char *const faults[] = {"seed=%d,short=0.3,reorder=1", "seed=%d,eio=0.02",
                                         "seed=%d,delay_us=200,reorder=1,short=0.1"};
    char dir[256], spec[64];
    int failed = 0, done = 0;
    make_dir(dir, sizeof dir);
    for (int i = 0; i < 30; i++) {
        struct setting s = stream_setting(i % 2 ? "fault:aio" : "fault:uring");
        snprintf(spec, sizeof spec, faults[i % 3], i + 1);
        s.fault = spec;
        struct outcome o = run(&s, dir, NULL, NULL);
        failed += o.err != 0;
        done += o.err == 0;
        cr_expect(o.err == 0 || o.err == -EIO, "fault '%s' gave %d", spec, o.err);
    }
    cr_expect(failed > 0 && done > 0, "%d failed, %d done", failed, done);
    rmdir(dir);
}

/* An I/O error in the side file, which lies behind the two Buffers of at most 2 MiB, ends the run; sweeps
 * before it are committed. A sweep here has 40 transfers of seam slabs, each of one or two requests. */
Test(execute, a_fault_in_the_side_file_ends_the_run) {
    static const struct {
        const char *fault;
        int least, most; /* commits */
    } cases[] = {{"from=6291456,fail_after=1", 0, 0}, {"from=6291456,fail_after=100", 1, 2}};
    char dir[256];
    make_dir(dir, sizeof dir);
    for (int i = 0; i < 4; i++) {
        struct setting s = side_file_setting(0, i % 2 ? "fault:aio" : "fault:uring", "tiled");
        struct commits c = {.fail_at = -1};
        s.problem.ny = 13, s.problem.nz = s.plan.bz = 29, s.plan.bt = 1;
        s.fault = cases[i / 2].fault;
        struct outcome o = run(&s, dir, take_commit, &c);
        cr_expect(o.ran && o.err == -EIO && c.n >= cases[i / 2].least && c.n <= cases[i / 2].most,
                  "%s: %d after %d commits", s.fault, o.err, c.n);
        cr_expect(o.done.steps_done == c.n);
    }
    rmdir(dir);
}

/* ------------------------------------------------------------------ integrity */

static void spoil(const char *place, uint64_t at) {
    char byte;
    int fd = open(place, O_RDWR | O_CLOEXEC);
    cr_assert(fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1);
    byte = (char)(byte ^ 16);
    cr_assert(pwrite(fd, &byte, 1, (off_t)at) == 1 && fdatasync(fd) == 0);
    close(fd);
}

static int spoil_commit(void *context, int64_t time, int32_t buffer) {
    struct watch *w = context;
    char link[64], place[600] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", w->fd);
    cr_assert(readlink(link, place, sizeof place - 1) > 0);
    w->times[w->n++] = time;
    if (time == w->spoil_time) spoil(place, w->offset[buffer] + w->spoil_at);
    return 0;
}

/* One bit of a Buffer changes between the sweep that wrote it and the one that reads it. With two Buffers
 * that one cannot pass the commit, and the planes at the end are out of its reach. Pass: -EBADMSG; the
 * sentence names Buffer, plane and row; nothing more is committed. Without integrity nobody knows. */
Test(execute, a_bit_that_changed_on_the_device_ends_the_run) {
    static const char *const backends[] = {"uring", "aio", "fault:uring"};
    char dir[256], plane[64];
    make_dir(dir, sizeof dir);
    for (int i = 0; i < 6; i++) {
        struct setting s = stream_setting(backends[i % 3]);
        struct watch w = {.spoil_time = 6};
        struct mx_layout layout;
        const bool rows = i >= 3;
        if (rows) s.plan.by = 7;
        cr_assert(mx_layout_make(&s.problem, 4096, rows, NULL, &layout) == 0);
        w.spoil_at = (uint64_t)(39 * layout.plane_pitch_bytes + 11 * layout.row_pitch_bytes + 100);
        s.fault = "";
        s.integrity = true;
        s.watch = &w;
        struct outcome o = run(&s, dir, spoil_commit, &w);
        snprintf(plane, sizeof plane, "(plane 39, row %d)", rows ? 11 : 0);
        cr_expect(o.err == -EBADMSG && strstr(o.why.text, plane) != NULL &&
                      strstr(o.why.text, "of Buffer 0") != NULL,
                  "%s: %d %s", s.backend, o.err, o.why.text);
        cr_expect(w.n == 2 && o.done.committed_steps == 6 && o.done.steps_done == 6, "%d commits", w.n);
        watch_close(&w);
    }
    rmdir(dir);
}

/* While a sweep is being made durable, more than half of the next one reaches its Buffer, if there are three.
 * Pass: no commit is held in vain. */
Test(execute, a_commit_does_not_stop_the_next_sweep) {
    char dir[256];
    make_dir(dir, sizeof dir);
    for (int i = 0; i < 2; i++) {
        struct setting s = stream_setting(i ? "fault:aio" : "fault:uring");
        struct watch w = {.hold_bytes = 1};
        struct mx_layout layout;
        s.n_buffers = 3;
        s.committed = 1;
        s.watch = &w;
        s.fault = "";
        cr_assert(mx_layout_make(&s.problem, 4096, false, NULL, &layout) == 0);
        w.hold_bytes = (uint64_t)layout.buffer_bytes / 2;
        struct outcome o = run(&s, dir, watch_commit, &w);
        cr_expect(o.err == 0 && w.n == 4 && w.wrong == 0 && w.changed == 0 && w.held_out == 0,
                  "error %d, %d commits, %d wrong, %d changed, %d held in vain", o.err, w.n, w.wrong,
                  w.changed, w.held_out);
        watch_close(&w);
    }
    rmdir(dir);
}

/* A run that is stopped commits the newest complete sweep: the last sweep that is reported complete is the
 * last commit, and what it and the ones before it committed is right and untouched. */
Test(execute, an_interruption_commits_the_newest_sweep) {
    char dir[256], text[400], spec[96];
    int stopped = 0, late = 0;
    make_dir(dir, sizeof dir);
    state = 815;
    for (int i = 0; i < 64; i++) {
        struct setting s = watched_setting(i / 8 % 4, i >= 32);
        struct watch w = {.hold_stores = (int32_t)pick(0, 1) * 1000, .stop_at = (int)pick(1, 40)};
        random_watch(&s, i, spec, sizeof spec);
        s.watch = &w;
        struct outcome o = run(&s, dir, watch_commit, &w);
        describe(&s, text, sizeof text);
        stopped += o.err == -EINTR;
        late += o.err == -EINTR && s.n_buffers == 3 && s.commit_every_s == 1e9 && w.n == 1;
        cr_expect(o.ran && (o.err == 0 || o.err == -EINTR) && w.wrong == 0 && w.changed == 0,
                  "%s: error %d, %d wrong commits, durable state changed %d times", text, o.err, w.wrong,
                  w.changed);
        cr_expect(o.done.steps_done == w.last_sweep && o.done.committed_steps == w.last_sweep,
                  "%s: sweep %lld, done %lld, committed %lld", text, (long long)w.last_sweep,
                  (long long)o.done.steps_done, (long long)o.done.committed_steps);
        cr_expect(w.n == 0 ? w.last_sweep == 0
                           : w.times[w.n - 1] == w.last_sweep && o.done.result == w.durable,
                  "%s", text);
        watch_close(&w);
    }
    cr_expect(stopped > 16 && late > 2, "%d stopped, %d committed by that alone", stopped, late);
    rmdir(dir);
}

/* Another error commits nothing more, and the state before it is untouched. */
Test(execute, an_error_commits_nothing_more) {
    char dir[256], text[400], spec[96];
    make_dir(dir, sizeof dir);
    state = 99;
    for (int i = 0; i < 32; i++) {
        struct setting s = watched_setting(i / 8 % 4, i % 16 >= 8);
        struct watch w = {.hold_stores = (int32_t)pick(0, 1) * 1000, .fail_at = (int)pick(1, 3)};
        random_watch(&s, i, spec, sizeof spec);
        s.watch = &w;
        struct outcome o = run(&s, dir, watch_commit, &w);
        describe(&s, text, sizeof text);
        cr_expect(o.ran && w.wrong == 0 && w.changed == 0 && w.n <= w.fail_at &&
                      (o.err == -EIO) == (w.n == w.fail_at),
                  "%s: error %d after %d commits, %d wrong, %d changed", text, o.err, w.n, w.wrong,
                  w.changed);
        cr_expect(o.err == 0 || o.done.committed_steps == (w.n > 1 ? w.times[w.n - 2] : 0), "%s", text);
        watch_close(&w);
    }
    rmdir(dir);
}

/* ------------------------------------------------------------------ verification */

/* mx_verify accepts the right grid, in one pass and in several through the scratch Buffer, and one wrong bit
 * makes it name that cell. */
Test(execute, verification_finds_a_single_bit) {
    char dir[256];
    make_dir(dir, sizeof dir);
    mx_why why = {""};
    struct setting s = stream_setting("uring");
    struct mx_layout layout;
    mx_device *device;
    mx_buffer *result, *scratch;
    struct mx_device_options o = {.backend = "uring", .path = dir, .force = true};
    cr_assert(mx_layout_make(&s.problem, 4096, true, &why, &layout) == 0);
    cr_assert(mx_device_open(&o, &why, &device) == 0, "%s", why.text);
    cr_assert(mx_buffer_create(device, "r", (uint64_t)layout.buffer_bytes, &why, &result) == 0);
    cr_assert(mx_buffer_create(device, "s", (uint64_t)layout.buffer_bytes, &why, &scratch) == 0);
    char *grid = plain(&s.problem, &layout, NULL);
    struct mx_block_options bo = {0};
    mx_block *block;
    cr_assert(mx_block_create(&bo, (uint64_t)layout.buffer_bytes, &why, &block) == 0);
    memcpy(mx_block_data(block), grid, (size_t)layout.buffer_bytes);
    struct mx_span span = {0, (uint64_t)layout.buffer_bytes, mx_block_data(block)};
    mx_ticket *ticket;
    cr_assert(mx_buffer_write(result, &span, 1, &ticket) == 0 && mx_wait(ticket) == 0);
    struct mx_fill fill = {.problem = &s.problem, .layout = &layout, .init = &mx_inits[0]};
    struct mx_verification v = {.problem = &s.problem,
                                .layout = &layout,
                                .source = mx_fill_plane,
                                .source_context = &fill,
                                .device = device,
                                .result = result,
                                .scratch = scratch};
    static const uint64_t memories[] = {UINT64_C(1) << 30, (40u << 20) + (200u << 12) + 5 * 3 * (22u << 12)};
    for (int i = 0; i < 2; i++) {
        v.memory_bytes = memories[i];
        cr_expect(mx_verify(&v, &why) == 0, "%s", why.text);
    }
    ((char *)mx_block_data(block))[17 * layout.plane_pitch_bytes + 9 * layout.row_pitch_bytes + 8 * 12] ^= 1;
    cr_assert(mx_buffer_write(result, &span, 1, &ticket) == 0 && mx_wait(ticket) == 0);
    cr_expect(mx_verify(&v, &why) == 1 && strstr(why.text, "x 12, y 9, z 17") != NULL, "%s", why.text);
    v.memory_bytes = 1 << 20;
    cr_expect(mx_verify(&v, &why) == -ENOMEM && strstr(why.text, "--dram") != NULL);
    free(grid);
    mx_block_free(block);
    mx_buffer_close(result);
    mx_buffer_close(scratch);
    mx_device_close(device);
    rmdir(dir);
}
