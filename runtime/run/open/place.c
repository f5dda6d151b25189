/* SPDX-License-Identifier: BSD-3-Clause */
/* place.c - what a run may use: its DRAM, its place, its accelerator. */
#include "run/open/open.h"

#include "ask/effect.h"
#include "core/device.h"
#include "engine/accel_room.h"
#include "machine/machine.h"
#include "machine/minmax.h"
#include "machine/size.h"
#include "system/profile.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ limits */

/* Sm and Km of the run. */
int mx_run_take_limits(struct mx_run *r) {
    const struct mx_machine *m = &r->report.machine;
    uint64_t visible = mx_machine_dram_bytes(m), limit = r->o.dram_bytes > 0 ? r->o.dram_bytes : visible;
    const int32_t here = mx_run_ranks_here(r);
    /* Ranks that mpirun started may have limits of their own, in containers: what they share for certain is
     * the machine's memory. */
    const bool apart = mx_run_ranks_apart(r);
    const uint64_t of_memory = m->memory_bytes / (uint64_t)here, of_limit = visible / (uint64_t)here,
                   share = apart ? (visible < of_memory ? visible : of_memory) : of_limit;
    char shared[80] = "";
    if (r->resumed && !mx_option_given(&r->o, "dram") && limit > share) limit = share;
    if (r->o.dram_bytes == 0) limit = of_limit;
    if (here > 1)
        snprintf(shared, sizeof shared, "; %d ranks on this machine share %s", here,
                 mx_size(apart ? m->memory_bytes : visible).text);
    if (limit > share && !mx_machine_is_described(&r->o)) {
        mx_fail(&r->why, -EINVAL,
                "--dram %s is more than the %s that this process may use (the smaller of the machine's "
                "memory and the limit of its cgroup%s): lower --dram",
                mx_size(limit).text, mx_size(share).text, shared);
        if (!r->o.dry_run) return -EINVAL;
        if (!r->o.quiet) mx_run_remark(r, "the run would be refused on this machine: %s", r->why.text);
        r->why.text[0] = 0;
    }
    uint64_t reserve = r->o.reserve_bytes;
    if (r->o.reserve_paper) reserve = mx_machine_reserve_paper(m);
    if (r->o.reserve_auto || (!mx_option_given(&r->o, "reserve") && r->o.dram_bytes == 0))
        reserve = mx_machine_reserve_auto(m, limit);
    if (reserve >= limit)
        return mx_fail(
            &r->why, -EINVAL,
            "the reserve of %s (--reserve) leaves nothing of %s of DRAM: lower --reserve or raise --dram",
            mx_size(reserve).text, mx_size(limit).text);
    r->report.dram_limit_bytes = limit;
    r->report.dram_budget_bytes = limit - reserve;
    r->request.dram_bytes = limit;
    r->request.reserve_bytes = reserve;
    r->request.reserve_paper = r->o.reserve_paper;
    return 0;
}

/* ------------------------------------------------------------------ place */

static bool is_mapped(const struct mx_backend *b) { return b->face == MX_FACE_MAPPED; }

int mx_run_take_place(struct mx_run *r) {
    int err = mx_take_backend(&r->o, &r->why, &r->backend);
    const bool to_be_made = !mx_run_alone(r) && r->o.dry_run; /* a directory of its own */
    if (err == 0 && !to_be_made) err = mx_take_place(&r->o, r->backend, &r->why);
    if (err < 0) return err;
    if (!r->backend->anonymous && r->o.path == NULL && !r->o.dry_run)
        return mx_fail(&r->why, -EINVAL,
                       "the run needs a place for its store: give a directory, file or block device on a "
                       "disk with -d PATH");
    if (r->backend->anonymous && r->o.resume)
        return mx_fail(&r->why, -ENOTSUP,
                       "the Buffers of the backend %s end with the process, so there is nothing to resume: "
                       "choose another --backend",
                       r->backend->name);
    if (r->o.backend == NULL) r->o.backend = r->backend->name;
    r->resident = mx_style_of(r->backend) == MX_TUNE_RESIDENT;
    return 0;
}

static void say(void *run, const char *sentence) { mx_run_remark(run, "%s", sentence); }

/* What changes nothing, or nothing for the better, is told, and the run goes on. */
void mx_run_say_useless(struct mx_run *r) {
    if (r->o.quiet) return;
    mx_say_useless(&r->o, r->backend, r->report.machine.cores, say, r);
}

void mx_run_say_planned(struct mx_run *r) {
    static const char *const of_tiled[] = {"tile", "column"};
    const int32_t cores = r->report.machine.cores;
    const char *engine = r->tuned.plan.engine;
    /* An accelerator that is here computes in tiles too. With --resume options of the plan ask for a new one.
     */
    const bool on_device = r->accel != NULL && !mx_accel_facts(r->accel)->here;
    const bool tiled = engine[0] == 0 || (strcmp(engine, "iblock") != 0 && !on_device) || r->o.resume;
    if (r->o.quiet) return;
    for (size_t i = 0; i < sizeof of_tiled / sizeof of_tiled[0] && !tiled; i++)
        mx_say_no_effect(&r->o, of_tiled[i], say, r, "with engine %s: it is for engine tiled", engine);
    if (mx_run_has_no_ranks(r))
        mx_say_no_effect(&r->o, "link", say, r, "in a run of one process: it is for several ranks");
    if (r->o.threads <= cores) /* else it was said already */
        mx_say_many_threads("the plan has threads=", r->tuned.plan.threads, cores, say, r);
}

uint64_t mx_run_stored_bytes(const struct mx_run *r) {
    if (r->superseded != NULL) return mx_run_superseding_bytes(r);
    uint64_t bytes = (uint64_t)mx_run_buffers(r) * (uint64_t)r->report.layout.buffer_bytes +
                     (uint64_t)r->report.side_file_bytes;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem); i++)
        if (!r->report.layout.fixed[i].user_file)
            bytes += (uint64_t)r->report.layout.fixed[i].bytes *
                     (1 + ((r->edit.fixed | r->note.second | r->note.before_second) >> i & 1));
    return bytes;
}

int mx_run_check_extents(struct mx_run *r) {
    const int32_t n = mx_run_arrays(r, r->n_buffers),
                  fewer = mx_run_arrays(r, (int32_t)mx_min(r->n_buffers, 2));
    const bool hashes = mx_run_has_hashes(r);
    if (n <= MX_STORE_EXTENTS) return 0;
    if (fewer <= MX_STORE_EXTENTS)
        return mx_fail(&r->why, -EINVAL,
                       "a store has room for %d arrays, and this run needs %d, because commits every %g s "
                       "keep a third Buffer: give --commit-every 0",
                       MX_STORE_EXTENTS, n, r->commit_every_s);
    return mx_fail(&r->why, -EINVAL,
                   "a store has room for %d arrays, and this run needs %d%s, because it would copy %d "
                   "read-only fields into the store: give those as .npy files that can be read in place%s",
                   MX_STORE_EXTENTS, n, hashes ? ", half of them for the hashes" : "",
                   mx_run_copied_fields(r), hashes ? ", or leave --integrity out" : "");
}

/* ------------------------------------------------------------------ accelerator */

static int open_accel(struct mx_run *r) {
    if (!r->resident && is_mapped(r->backend))
        return mx_fail(&r->why, -ENOTSUP,
                       "backend %s maps its Buffers, and an accelerator needs transfers: choose --backend "
                       "uring, aio or dram, or leave --accel %.40s out",
                       r->backend->name, r->o.accel);
    int number, ranks;
    mx_run_home(r, &number, &ranks);
    int err = mx_take_accel(&r->o, number, ranks, &r->why, &r->accel, &r->there, &r->request);
    if (err < 0) return err;
    const struct mx_accel_facts *f = mx_accel_facts(r->accel);
    struct mx_report_accel *p = &r->report.accel;
    const struct mx_system *system = r->o.problem.system;
    if (!f->here && system != NULL && system->text == NULL)
        return mx_fail(&r->why, -ENOTSUP,
                       "the kernel \"%s\" is given as a compiled file, and an accelerator needs its source: "
                       "give FILE.c with --kernel, or leave --accel out",
                       system->name);
    if (!f->here) { /* points and norms have some of its memory */
        const uint64_t extra =
            mx_parts_accel_bytes(r) + mx_accel_series_bytes(&r->rest) + mx_profile_bytes(&r->rest);
        if (extra >= f->memory_bytes)
            return mx_fail(&r->why, -ENOMEM,
                           "sources, probes, norms, parameters over time and small read-only fields need "
                           "%.1f MiB of the accelerator's memory, which has %.1f MiB: leave some of them "
                           "out, or leave --accel %.40s out",
                           (double)extra / 1048576, (double)f->memory_bytes / 1048576, r->o.accel);
        r->there.memory_bytes -= extra;
    }
    snprintf(p->name, sizeof p->name, "%s", f->name);
    snprintf(p->device, sizeof p->device, "%s", f->device);
    p->number = f->number;
    p->sharers = f->sharers;
    p->memory_bytes = f->memory_bytes;
    return 0;
}

/* Ranks find the same wrong, or some of them, whose device it is: one says so. */
int mx_run_take_accel(struct mx_run *r) {
    return r->o.accel == NULL ? 0 : mx_run_agree_error(r, open_accel(r));
}
