/* SPDX-License-Identifier: BSD-3-Clause */
/* predict.c - predicts the seconds of the stencil phase. The executor reads ahead and writes behind while it
 * computes, so the longer of the two decides. Where both are of like length they hinder each other. The ends
 * of each sweep come on top. */
#include "machine/minmax.h"
#include "tune/job.h"

#include <math.h>
#include <string.h>

/* Seconds per launch in which a device computes nothing or little: the start of the launch, and its end, when
 * fewer and fewer groups are left. They do not depend on the number of cells. */
static const double launch_s = 1e-5;

/* Returns the update rate with launches of one level of a slab (of all planes, if the device holds the whole
 * grid). `there`: the rate of long launches. */
static double launched_rate(const struct job *job, const struct mx_plan *plan, double there) {
    const double rows = (double)mx_min(plan->by, job->problem.ny);
    const bool all = strcmp(plan->algorithm, "resident") == 0 || plan->slab > job->problem.nz;
    const double planes = (double)(all ? job->problem.nz : mx_max(plan->slab, 1));
    return there / (1 + launch_s * there / ((double)job->problem.nx * rows * planes));
}

static double update_rate(const struct job *job, const struct mx_plan *plan, const struct mx_shape *shape) {
    const struct mx_rates *r = &job->rates;
    const struct mx_tune_accel *a = job->request->accel;
    double there = r->tiled_updates_per_s;
    if (a != NULL && !a->here) there = MX_DEFAULT_DEVICE_UPDATES_PER_S * mx_rates_share(&job->problem);
    if (a != NULL && a->updates_per_s > 0) there = a->updates_per_s;
    if (a != NULL) return a->here ? mx_job_efficiency(job, plan) * there : launched_rate(job, plan, there);
    const double iblock =
        shape->rows > 0 && shape->max_levels > 1 ? r->slab_updates_per_s : r->iblock_updates_per_s;
    return mx_job_efficiency(job, plan) *
           (strcmp(plan->engine, "tiled") == 0 ? r->tiled_updates_per_s : iblock);
}

/* The core's default (memext.h, mx_device_options). */
static const double most_request_bytes = 1 << 20;

static double io_seconds(const struct mx_rates *r, double read_bytes, double write_bytes) {
    double s = mx_max_real(read_bytes / r->read_bytes_per_s, write_bytes / r->write_bytes_per_s);
    return mx_max_real(s, (read_bytes + write_bytes) / r->mixed_bytes_per_s);
}

/* Requests that so many bytes are moved in: the rows of a Block in each plane by themselves, or where whole
 * planes are moved as many as a front moves on by, in pieces of what a request takes at most. */
static double requests(const struct mx_plan *plan, const struct mx_layout *layout,
                       const struct mx_shape *shape, double bytes) {
    const double rows = (double)mx_min(shape->rows, layout->rows) * (double)layout->row_pitch_bytes;
    const double planes = (double)mx_max(plan->slab, 1) * (double)layout->plane_pitch_bytes;
    const double span = shape->whole_planes ? planes : rows;
    return span > 0 ? bytes / span * ceil(span / most_request_bytes) : 0;
}

/* Blocks that are gone through one after the other have one set of planes: a plane of the next is loaded when
 * that of the one before is stored, and from its load to its store the front moves on by all levels, a slab
 * being loaded as a whole and one stored as a whole. As far as these planes are of all, reading and writing
 * take turns. A ring (stream) goes on from pass to pass. */
static double share_in_turns(const struct job *job, const struct mx_plan *plan,
                             const struct mx_shape *shape) {
    const double between = (double)(shape->max_levels * job->problem.h + 2 * mx_max(plan->slab, 1));
    const double planes = (double)shape->slots[0];
    if (job->strategy->thin_slabs || planes <= 0) return 0;
    return between < planes ? between / planes : 1;
}

/* The first store to a page of a mapped file is a fault, in which the file system reserves and journals the
 * page. ext4 of Linux 6.18 on one core of a virtual machine: 4 us where the page cache has the file in folios
 * of 4 to 64 KiB, 9 to 14 us in folios of 1 MiB. What is read is mapped many pages at a time. */
static const double store_fault_s = 5e-6, page_bytes = 4096;

/* Bytes per second to an accelerator, or from it. */
static double bus_rate(const struct job *job, double given) {
    if (given > 0) return given;
    return job->request->accel->here ? job->rates.copy_bytes_per_s : MX_DEFAULT_BUS_BYTES_PER_S;
}

static double bus_seconds(const struct job *job, const struct mx_traffic *t, double *in_s, double *out_s) {
    const struct mx_tune_accel *a = job->request->accel;
    *in_s = (double)mx_traffic_put_bytes(t) / bus_rate(job, a->put_bytes_per_s);
    *out_s = (double)t->write_bytes / bus_rate(job, a->get_bytes_per_s);
    return mx_max_real(*in_s, *out_s);
}

static bool is_mapped(const struct job *job) {
    return job->request->style == MX_TUNE_MAPPED && !job->resident;
}

/* Is what is left beside the Blocks enough for the kernel to keep all Buffers? By what every plan leaves: a
 * plan that leaves more does not become a better one for that. */
static bool is_cached(const struct job *job, const struct mx_layout *layout, const struct mx_shape *shape) {
    const struct mx_tune_request *q = job->request;
    const uint64_t taken = q->reserve_bytes + job->room_bytes;
    uint64_t bytes = (uint64_t)mx_job_state_buffers(shape) * (uint64_t)layout->buffer_bytes;
    for (int i = 0; i < MX_MAX_FIXED; i++) bytes += (uint64_t)layout->fixed[i].bytes;
    return taken < q->dram_bytes && bytes < q->dram_bytes - taken;
}

/* What the kernel's paging reaches of the device's rate: it reads what is faulted on and writes back what it
 * reclaims, with few requests under way; swap space in clusters of a few pages. Linux 6.18 on a virtual disk
 * of 1.7 GB/s, in a cgroup: 0.8 to 1.1 GB/s of a mapped file, 0.2 to 0.4 of swap space. */
static const double file_paging = 0.55, swap_paging = 0.18;

static double paging_rate(const struct job *job) {
    return job->request->anonymous ? swap_paging : file_paging;
}

/* Where parts of planes are wanted of a mapped file, read-ahead brings in all that lies between them, unless
 * the schedule says what is wanted (advice). */
static double read_ahead(const struct job *job, const struct mx_layout *layout,
                         const struct mx_shape *shape) {
    const bool told = job->request->advised || job->request->anonymous;
    return told || shape->rows <= 0 ? 1 : mx_max_real((double)layout->rows / (double)shape->rows, 1);
}

/* Bytes that the device transfers: a mapped page that is stored to is read first, also where all of it is
 * about to be replaced; but not in the second Buffer of a new store, which nothing has been written to. And
 * `far` times as many are read. */
static double device_seconds(const struct job *job, const struct mx_layout *layout,
                             const struct mx_shape *shape, const struct mx_traffic *t, double far) {
    const double read = (double)t->read_bytes, written = (double)t->write_bytes;
    if (!is_mapped(job)) return io_seconds(&job->rates, read, written);
    if (is_cached(job, layout, shape)) return 0;
    const double fresh = (shape->pairs ? 2 : 1) * (double)layout->buffer_bytes;
    return io_seconds(&job->rates, (read + mx_max_real(written - fresh, 0)) * far, written);
}

/* What Blocks take beside the time of their bytes: of explicit transfers turns and requests, of mapped
 * Buffers what comes with them and slower. */
static double stall_seconds(const struct job *job, const struct mx_plan *plan, const struct mx_layout *layout,
                            const struct mx_shape *shape, const struct mx_traffic *t,
                            const struct mx_seconds *s) {
    const double bytes = (double)t->read_bytes + (double)t->write_bytes;
    /* Of what is computed in that time half goes on beside the writing; the other half waits for what is
     * read. */
    const double turns = mx_max_real(s->io_s - (s->compute_s + s->copy_s) / 2, 0);
    if (is_mapped(job))
        return device_seconds(job, layout, shape, t, read_ahead(job, layout, shape)) / paging_rate(job) -
               s->io_s;
    return turns * share_in_turns(job, plan, shape) +
           requests(plan, layout, shape, bytes) * job->rates.request_s;
}

/* The tiled engine goes on while overlaps are handed over (blk2blk), by threads that take its cores and
 * caches from it: skewed-min in 240 MiB, 510 x 510 x 254, spends 7 times as long on it as alone, half of it
 * at the cost of the computation. */
static const double copies_beside = 3;

/* Blocks of a mapped backend are filled and emptied by cores, as those of dram. */
static double copy_seconds(const struct job *job, const struct mx_plan *plan, const struct mx_shape *shape,
                           const struct mx_traffic *t) {
    const double moved = (double)t->read_bytes + (double)t->write_bytes;
    double bytes = (double)t->seam_read_bytes + (double)t->seam_write_bytes;
    bytes += (double)t->copy_bytes * (strcmp(plan->engine, "tiled") == 0 ? copies_beside : 1);
    const bool copied = is_mapped(job) && shape->rows > 0;
    if (copied || job->request->style == MX_TUNE_RESIDENT) bytes += moved;
    if (job->request->accel != NULL && job->request->accel->here) bytes += moved;
    const double faults = copied ? (double)t->write_bytes / page_bytes * store_fault_s : 0;
    return bytes / job->rates.copy_bytes_per_s + faults / (double)job->threads;
}

/* Buffers larger than DRAM that are worked on directly: every pass over them faults both in, and C, and
 * writes one back, or both where the old value is read. */
static double paging_seconds(const struct job *job, const struct mx_layout *layout,
                             const struct mx_shape *shape) {
    double buffer = (double)layout->buffer_bytes, fixed = 0;
    double passes = (double)mx_sweep_count(&job->problem, shape->max_levels);
    for (int i = 0; i < MX_MAX_FIXED; i++) fixed += (double)layout->fixed[i].bytes;
    if (2 * buffer + fixed < (double)job->room_bytes) return 0;
    return io_seconds(&job->rates, passes * (2 * buffer + fixed), passes * (shape->pairs ? 2 : 1) * buffer) /
           paging_rate(job);
}

/* Buffers in DRAM behind an accelerator: planes of the next sweep are on the bus while the last of this one
 * are computed and come back, for nothing has to be durable first. Such sweeps have ends once. On `host` with
 * a bus far slower than its cores 2, 8 and 24 levels a sweep take 1.00 to 1.01 of what that predicts; ends of
 * each sweep would be 0.88 to 0.93. */
static double sweeps_with_ends(const struct job *job, const struct mx_shape *shape) {
    if (job->request->accel != NULL && job->request->style == MX_TUNE_RESIDENT) return 1;
    return (double)mx_sweep_count(&job->problem, shape->max_levels);
}

/* Ends of the sweeps of a pipeline. Until the front has moved so far that its levels take as long to compute
 * as a plane to read, reading decides; the time of a plane falls short by a - c*l at level l, in all a^2 h /
 * 2c (a = seconds to read a plane, c = to compute one level of it). The same for writing at the other end.
 * And nothing is computed before the first slab is in, nor after the last is complete. */
static double edge_seconds(const struct job *job, const struct mx_plan *plan, const struct mx_layout *layout,
                           const struct mx_shape *shape) {
    const struct mx_problem *p = &job->problem;
    double rows = (double)mx_min(shape->rows, layout->rows), arrays = shape->pairs ? 2 : 1;
    double written = rows * arrays * (double)layout->row_pitch_bytes, taken = written;
    for (int i = 0; i < MX_MAX_FIXED; i++) taken += rows * (double)layout->fixed[i].row_pitch_bytes;
    double read = taken / job->rates.read_bytes_per_s, write = written / job->rates.write_bytes_per_s;
    if (job->request->accel != NULL) {
        const double in = taken / bus_rate(job, job->request->accel->put_bytes_per_s),
                     out = written / bus_rate(job, job->request->accel->get_bytes_per_s);
        const bool dram = job->request->style == MX_TUNE_RESIDENT;
        read = dram ? in : read + in;
        write = dram ? out : write + out;
    }
    if (is_mapped(job)) write += read; /* see device_seconds */
    double level =
        (double)p->nx * (double)shape->rows / (update_rate(job, plan, shape) * (double)mx_job_unit(job));
    double ramp = (read * read + write * write) * p->h / (2 * level);
    double longest = (read + write) * (double)mx_min(shape->max_levels * p->h, p->nz);
    double sweeps = sweeps_with_ends(job, shape);
    double slab = (double)mx_min(mx_max(plan->slab, 1), p->nz);
    return sweeps * ((ramp < longest ? ramp : longest) + slab * (read + write));
}

/* Blocks in an accelerator's memory: the slowest of kernel, bus and device decides. What is loaded as a whole
 * before anything is computed overlaps with nothing. */
static void predict_there(const struct job *job, const struct mx_plan *plan, const struct mx_layout *layout,
                          const struct mx_shape *shape, const struct mx_traffic *t, struct mx_seconds *s) {
    const double busy =
        job->request->accel->here ? s->compute_s + s->copy_s : mx_max_real(s->compute_s, s->copy_s);
    const struct mx_rates *r = &job->rates;
    double in, out;
    s->bus_s = bus_seconds(job, t, &in, &out);
    s->flash_s = s->io_s;
    s->put_bytes_per_s = bus_rate(job, job->request->accel->put_bytes_per_s);
    s->get_bytes_per_s = bus_rate(job, job->request->accel->get_bytes_per_s);
    s->updates_per_s = update_rate(job, plan, shape);
    if (strcmp(plan->algorithm, "resident") == 0) {
        const bool dram = job->request->style == MX_TUNE_RESIDENT;
        if (!dram) in = mx_max_real(in, (double)t->read_bytes / r->read_bytes_per_s);
        if (!dram) out = mx_max_real(out, (double)t->write_bytes / r->write_bytes_per_s);
        s->io_s = in + out;
        s->total_s = in + busy + out;
        return;
    }
    s->io_s = mx_max_real(s->io_s, s->bus_s);
    s->edge_s = edge_seconds(job, plan, layout, shape);
    s->total_s = mx_max_real(mx_max_real(s->io_s, busy) + s->lag_s, s->link_s) + s->edge_s;
}

/* Seconds of transfers beside computing. A front of slabs is one or two slabs ahead of its loads. A load that
 * takes longer than usual is then waited for, although the mean load is faster than computing; and the other
 * way round. The norm of order 3 is 1.26 times the longer one where both are alike, 1.12 where one has three
 * quarters of the other and 1.04 where it has half. Of 42 measured plans of stream on two machines the longer
 * one alone is 18 % off in the median, the norm 14 %; with one slab ahead 15 % and 11 %
 * (docs/notes/predictions.md). The other algorithms have whole Blocks ahead, and are predicted better by the
 * longer one; an accelerator has a pipeline of its own (predict_there). */
double mx_predict_overlap(const struct job *job, double io_s, double compute_s) {
    const double longer = mx_max_real(io_s, compute_s);
    const bool transfers = job->request->style == MX_TUNE_TRANSFER && job->request->accel == NULL;
    if (!job->strategy->thin_slabs || !transfers || longer <= 0) return longer;
    const double share = mx_min_real(io_s, compute_s) / longer;
    return longer * cbrt(1 + share * share * share);
}

/* What a rank waits for when it could begin a sweep with that of the rank below at an end. That one's last
 * planes went while it stored them, one after the other, and are needed while this one's front goes through
 * them, from nothing at the first to half of the levels at the last: a quarter of the work of so many planes.
 * What is left is the last plane, and what the link fell behind in the ones before it. */
static double lag_of_sweep(const struct mx_seconds *s, double sweeps, double planes, double all_planes,
                           double link_plane_s, double latency_s) {
    const double compute = s->compute_s / (sweeps * all_planes);
    const double whole =
        mx_max_real(s->io_s + s->stall_s, s->compute_s + s->copy_s + s->cores_s) + s->hindrance_s;
    const double behind = mx_max_real(link_plane_s - whole / (sweeps * all_planes), 0);
    return mx_max_real(latency_s + link_plane_s + (planes - 1) * behind - planes * compute / 4, 0);
}

/* A message goes each sweep from either end to the neighbour there, plane after plane, and a sweep needs the
 * one of the sweep before: along z each rank lags behind the one below by what is left of it, once, and
 * around a periodic z every sweep waits for that. Where states are committed rank 0 stores nothing of a sweep
 * before the last rank has ended the one before, but may have begun it: in P sweeps that goes around once.
 * Before the first sweep a whole message goes. Where the link decides, its bytes go one after the other, of
 * both ends, and no sweep is shorter than a message; the first and the last message go by themselves. Sent
 * and received bytes pass each other. */
static void predict_link(const struct job *job, const struct mx_shape *shape, const struct mx_traffic *t,
                         struct mx_seconds *s) {
    const struct mx_tune_link *l = &job->request->link;
    const bool ring = mx_sides_periodic(&job->problem.sides, MX_DIM_Z);
    const double rate = l->bytes_per_s > 0 ? l->bytes_per_s : MX_DEFAULT_LINK_BYTES_PER_S;
    const double latency = l->bytes_per_s > 0 ? l->latency_s : MX_DEFAULT_LINK_LATENCY_S;
    const int ends = mx_has_neighbour(&job->problem, 0) + mx_has_neighbour(&job->problem, 1);
    const double sweeps = (double)mx_sweep_count(&job->problem, shape->max_levels);
    if (l->ranks < 2 || ends == 0 || sweeps < 1) return;
    const double message = latency + (double)t->sent_bytes / (sweeps * ends * rate);
    const double ranks = (double)l->ranks, behind = ranks - 1 < sweeps - 1 ? ranks - 1 : sweeps - 1;
    const double planes = (double)(shape->max_levels * job->problem.h);
    const double all_planes = (double)job->problem.nz + ends * (planes - (double)job->problem.h) / 2;
    const double lag = lag_of_sweep(s, sweeps, planes, all_planes, (message - latency) / planes, latency);
    const double ahead = planes * s->compute_s / (sweeps * all_planes) / 2;
    const double around = (sweeps - 1) * ((ranks - 1) * lag - ahead) / ranks;
    const bool commits = job->request->style != MX_TUNE_RESIDENT && !job->request->anonymous;
    s->link_s = mx_max_real(sweeps * message, (double)t->sent_bytes / rate) + 2 * message;
    s->lag_s = message + (ring ? (sweeps - 1) * lag : mx_max_real(behind * lag, commits ? around : 0));
}

struct mx_seconds mx_predict(const struct job *job, const struct mx_plan *plan,
                             const struct mx_layout *layout, const struct mx_shape *shape,
                             const struct mx_traffic *t) {
    struct mx_seconds s = {.compute_s = (double)t->updates / update_rate(job, plan, shape)};
    bool resident = job->request->style == MX_TUNE_RESIDENT;
    s.copy_s = copy_seconds(job, plan, shape, t);
    if (!resident)
        s.io_s =
            shape->rows == 0 ? paging_seconds(job, layout, shape) : device_seconds(job, layout, shape, t, 1);
    if (shape->rows > 0 && !resident) s.edge_s = edge_seconds(job, plan, layout, shape);
    if (shape->rows > 0 && !resident) s.stall_s = stall_seconds(job, plan, layout, shape, t, &s);
    if (shape->rows > 0 && job->request->style == MX_TUNE_TRANSFER) {
        s.cores_s =
            ((double)t->read_bytes + (double)t->write_bytes) * job->rates.byte_core_s / (double)job->threads;
    }
    const double moving = s.io_s + s.stall_s, computing = s.compute_s + s.copy_s + s.cores_s;
    s.hindrance_s = mx_predict_overlap(job, moving, computing) - mx_max_real(moving, computing);
    predict_link(job, shape, t, &s);
    s.total_s = mx_max_real(mx_max_real(moving, computing) + s.hindrance_s + s.lag_s, s.link_s) + s.edge_s;
    if (job->request->accel != NULL) predict_there(job, plan, layout, shape, t, &s);
    return s;
}
