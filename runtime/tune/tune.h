/* SPDX-License-Identifier: BSD-3-Clause */
/* tune.h - finds a plan for a problem on a machine: the tuners (blk, naive, manual), plans as text, and the
 * rates for predicted seconds.
 *
 *     struct mx_tune_request request = {.problem = &problem, .machine = &machine, .dram_bytes = ..., ...};
 *     struct mx_tune_result result;
 *     err = mx_tune(&request, &why, &result);      // result.plan, result.layout: what the run needs
 *
 * Terms and constraints: Midorikawa, "Blk-Tune", iWAPT 2016, sections IV to VI. Nothing here prints; planning
 * touches no device (only mx_calibrate_device does).
 */
#ifndef MX_TUNE_H
#define MX_TUNE_H

#include "engine/engine.h"
#include "machine/machine.h"
#include "schedule/schedule.h"
#include "steps/step.h"

#include <stdio.h>

/* DRAM that a run needs besides its Blocks: code, libraries, queues, stacks of threads. It is not counted
 * with the papers' reserve, whose Km covers it. */
#define MX_TUNE_OVERHEAD_BYTES (UINT64_C(24) << 20)

/* On mapped backends the kernel needs DRAM of its own to page Buffers in and out: a quarter of what the run
 * may use, 32 MiB at least, is left to it (not under the papers' reserve). */
enum { MX_TUNE_CACHE_SHARE = 4 };
#define MX_TUNE_CACHE_BYTES (UINT64_C(32) << 20)

/* ------------------------------------------------------------------ rates */

enum mx_rates_source { MX_RATES_DEFAULT, MX_RATES_TIMED, MX_RATES_CACHED, MX_RATES_MEASURED, MX_RATES_GIVEN };
/* "default" "timed" "cached" "measured" "given". Timed: from tiles that were computed when a kernel was
 * compiled (struct mx_system, cell_ns). */
const char *mx_rates_source_name(enum mx_rates_source source);

/* Sizes of the tiled engine: planes of a slab, rows of a tile, levels of a chunk. */
struct mx_tiled_sizes {
    int64_t slab, tile, ct;
};

/* What a search for better sizes than the engine's own choice found (mx_refine_tiled). */
struct mx_refined {
    struct mx_tiled_sizes sizes; /* 0 = not refined: the engine's own choice */
    int64_t nx;                  /* cells of the rows on which they were measured */
    double raised;               /* factor by which they raised the update rate, kept with them; 0 = 1 */
    /* Set by a search in this process; 0 if sizes come from the cache, or there was no search. */
    struct mx_tiled_sizes own; /* the engine's choice */
    int32_t tried;             /* other sizes that were compared with it */
    double gain;               /* update rate with `sizes`, divided by that with the engine's own choice */
};

/* The rates from which seconds are predicted. Bytes and updates per second, sustained, all threads together;
 * 0 = unknown (mx_rates_complete fills it). */
struct mx_rates {
    double read_bytes_per_s, write_bytes_per_s;
    double mixed_bytes_per_s; /* reads and writes under way together: sum of both */
    double request_s;   /* device time of a request besides that of its bytes, with many requests under way */
    double byte_core_s; /* core seconds that a transferred byte takes from the computation; of these two 0 =
                           none */
    double copy_bytes_per_s;                          /* DRAM to DRAM (blk2blk) */
    double iblock_updates_per_s, tiled_updates_per_s; /* iblock: a level of a grid that no cache holds */
    double slab_updates_per_s; /* iblock in Blocks: several levels of a slab of planes, one after the other,
                                  of which caches hold more */
    enum mx_rates_source device_source, compute_source;
    struct mx_refined refined; /* the sizes with which tiled_updates_per_s was measured; kept with it */
};

/* Rates that mx_rates_complete uses if nothing was measured or given: one mainstream NVMe drive and an update
 * rate per core, both conservative. */
#define MX_DEFAULT_READ_BYTES_PER_S 2.0e9
#define MX_DEFAULT_WRITE_BYTES_PER_S 1.2e9
#define MX_DEFAULT_IBLOCK_UPDATES_PER_S_AND_CORE 3.0e8
#define MX_DEFAULT_TILED_UPDATES_PER_S_AND_CORE 2.0e9
#define MX_DEFAULT_COPY_BYTES_PER_S_AND_CORE 3.0e9
/* In tiles, where data comes from cache, kernels of users reach this share of the rate that their bytes
 * suggest: they compute more per byte, and are compiled, not written by hand. (One core, AVX2, rows in cache:
 * 0.3 to 0.7.) So do built-in stencils of radius 2 and more, which have tiles in two arrays. (Two cores,
 * AVX-512: star13 in f64 0.3 to 0.4 of star7.) */
#define MX_DEFAULT_TILED_SHARE 0.4
/* Where the time of a cell in tiles is known (struct mx_system, cell_ns), a core takes in engine tiled that
 * time, or longer by this factor where the radius is 2 or more, and so many nanoseconds for each byte of the
 * cell that a step reads and writes (mx_rates_share). For 16 kernels of radius 1 to 8 the median error is 8 %
 * (docs/notes/predictions.md). */
#define MX_TIMED_WIDE_FACTOR 1.45
#define MX_TIMED_BYTE_NS 0.012

/* Fills the fields that are 0: from fields that are set if one follows from another (mixed = the harmonic
 * mean of read and write, slab = iblock), otherwise from the defaults above. threads >= 1. */
void mx_rates_complete(struct mx_rates *rates, int32_t threads);

/* Returns the guessed rate of a user's kernel, as a share of that of a built-in stencil. It is guessed from
 * the bytes that a step of one cell reads and writes (star7 in f64: 16). 1 without a system. */
double mx_rates_share(const struct mx_problem *problem);
/* For systems, and stencils of radius 2 and more: fills compute rates that are 0. That of engine tiled comes
 * from cell_ns (struct mx_system), or else, where that is 0, from the defaults and these shares. Call it
 * before mx_rates_complete. */
void mx_rates_of_problem(struct mx_rates *rates, const struct mx_problem *problem, int32_t threads,
                         double cell_ns);

/* The cache of measured rates: ${XDG_CACHE_HOME:-~/.cache}/memext/rates.json, one object {"device": {KEY:
 * rates}, "compute": {KEY: rates}}. A KEY contains everything that the figures depend on, so that a changed
 * machine or device finds no entry. */
int mx_rates_path(char *path, size_t capacity_bytes, mx_why *why);
/* Makes the key of a device: backend, file system or device number, size. */
int mx_rates_device_key(const char *backend, const char *path, char *key, size_t capacity_bytes, mx_why *why);
/* Makes the key of compute rates: CPU, caches, threads, stencil and element or the system's name and
 * identity, class of row length. */
void mx_rates_compute_key(const struct mx_machine *machine, const struct mx_problem *problem, int32_t threads,
                          char *key, size_t capacity_bytes);
/* Fills the fields that the cache knows, and sets the sources. Either key may be NULL. Returns 0 even if
 * nothing is known; a damaged cache counts as empty. */
int mx_rates_load(const char *cache_path, const char *device_key, const char *compute_key,
                  struct mx_rates *rates);
/* Stores the measured fields (device ones under device_key, compute ones under compute_key) by writing a new
 * file and renaming it. */
int mx_rates_store(const char *cache_path, const char *device_key, const char *compute_key,
                   const struct mx_rates *rates, mx_why *why);

/* Measures sequential reads, writes and both together, in long and in short requests, through the public
 * device API, in about `seconds` on `bytes` of the place (0 = 2 s, 256 MiB). The speed of a device varies
 * over time, so all are measured in turns, and medians count. If `seconds` is given and *rates has an earlier
 * request_s and mixed_bytes_per_s, request_s is not measured: it is scaled by the old mixed rate over the new
 * one. Opens a store of its own at options->path and removes it; refuses (-EBUSY, -EEXIST) what
 * mx_device_open refuses. Never call it on a place whose content matters. Fills the device rates of *rates. A
 * block device is only read, and not as a store: the read rate is filled and the others stay. Then *why says
 * so, although 0 is returned. */
int mx_calibrate_device(const struct mx_device_options *options, double seconds, uint64_t bytes, mx_why *why,
                        struct mx_rates *rates);
/* Returns the DRAM in which engines are measured on a machine: 128 MiB, or three times all its L3 caches if
 * that is more, but at most `most` and a quarter of the DRAM that the process sees. */
uint64_t mx_calibration_bytes(const struct mx_machine *machine, uint64_t most);
/* Is that so much that caches do not keep it from level to level (twice all L3 caches)? Rates that were
 * measured in less are those of a cache. */
bool mx_calibration_leaves_caches(const struct mx_machine *machine, uint64_t bytes);

/* Measures the update rate of both engines and the copy rate, on a grid with the problem's rows. It measures
 * in turns and takes medians. It uses at most memory_bytes of DRAM (0 = 128 MiB) and about `seconds` (0 = 2
 * s). */
int mx_calibrate_compute(const struct mx_problem *problem, const struct mx_machine *machine, int32_t threads,
                         double seconds, uint64_t memory_bytes, mx_why *why, struct mx_rates *rates);

/* Searches sizes of the tiled engine that are faster than its own choice by more than the noise, in about
 * `seconds` (0 = 3 s). It measures on a ring of planes with the problem's rows that is too large for cache.
 * It uses at most memory_bytes of DRAM (0 = 256 MiB or twice the L3, which is also the most that it uses).
 * Fills rates->refined, and raises rates->tiled_updates_per_s by the gain. Returns 0 also if nothing could be
 * tried, because the rows or the memory allow no such ring: refined.own is 0 then. */
int mx_refine_tiled(const struct mx_problem *problem, const struct mx_machine *machine, int32_t threads,
                    double seconds, uint64_t memory_bytes, mx_why *why, struct mx_rates *rates);
/* Are there refined sizes for rows of the problem's length? */
bool mx_refined_for(const struct mx_refined *refined, const struct mx_problem *problem);

/* Does what --calibrate does. It measures the compute rates, refines the sizes of the tiled engine, measures
 * the device if `device` is not NULL, and stores everything in the cache and in *rates. If the path is a
 * file, its directory is measured, so that the file is not touched. The compute rates take
 * mx_calibration_bytes of DRAM, and the search for sizes at most that or 256 MiB, whichever is more; neither
 * takes more than `most`. Compute rates that are those of a cache are not stored, and *why says so, although
 * 0 is returned. seconds 0 = about 7 s. With another value the measurement takes about that time in all (more
 * with large L3 caches), and does not search for sizes: the refined sizes in *rates stay, with their measured
 * gain. This tells how fast the machine is now, compared with before. A cache that cannot be written is not
 * an error. For a block device see mx_calibrate_device. */
int mx_rates_renew(const struct mx_device_options *device, const struct mx_problem *problem,
                   const struct mx_machine *machine, int32_t threads, uint64_t most, double seconds,
                   mx_why *why, struct mx_rates *rates);

/* ------------------------------------------------------------------ rates of accelerators */

/* Rates of the bus, both ways at once, and of the kernel; 0 = unknown. The kernel of a `here` device is the
 * tiled engine. */
struct mx_accel_rates {
    double put_bytes_per_s, get_bytes_per_s, updates_per_s;
    enum mx_rates_source source;
};
/* Measures an accelerator in about `seconds` (0 = 0.6 s), in up to half of its memory, at most 1 GiB. The
 * accelerator remembers errors (accel.h). */
int mx_calibrate_accel(const struct mx_problem *problem, const struct mx_machine *machine, int32_t threads,
                       struct mx_accel *accel, double seconds, mx_why *why, struct mx_accel_rates *out);

/* Keys in the cache, {"accel": {KEY: rates}}: of the bus, and of a kernel (mx_rates_compute_key). */
struct mx_accel_keys {
    char bus[192], kernel[704];
};
struct mx_accel_facts;
void mx_accel_rates_keys(const struct mx_machine *machine, const struct mx_problem *problem, int32_t threads,
                         const struct mx_accel_facts *facts, struct mx_accel_keys *out);
void mx_accel_rates_load(const char *cache_path, const struct mx_accel_keys *keys,
                         struct mx_accel_rates *out);
/* A cache that cannot be written is no error. */
void mx_accel_rates_store(const char *cache_path, const struct mx_accel_keys *keys,
                          const struct mx_accel_rates *rates);
/* Takes rates from the cache; with `measure` measures them and stores them there. */
int mx_accel_rates_take(const struct mx_problem *problem, const struct mx_machine *machine, int32_t threads,
                        struct mx_accel *accel, bool measure, mx_why *why, struct mx_accel_rates *out);

/* ------------------------------------------------------------------ request and result */

/* How the backend gives access to Buffers. */
enum mx_tune_style {
    MX_TUNE_TRANSFER, /* aio, uring: Blocks, explicit transfers */
    MX_TUNE_MAPPED,   /* mmap, swap: Buffers are memory that the kernel pages */
    MX_TUNE_RESIDENT, /* dram: Buffers are in DRAM and count against it */
};

/* An accelerator whose memory holds the Blocks; 0 rates = defaults. */
struct mx_tune_accel {
    char device[128];
    uint64_t memory_bytes; /* that Blocks may take there */
    bool here;             /* its memory is DRAM and counts as DRAM, and the cores of this machine compute */
    double put_bytes_per_s, get_bytes_per_s, updates_per_s;
    enum mx_rates_source bus_source, kernel_source;
};
#define MX_DEFAULT_BUS_BYTES_PER_S 1.2e10
#define MX_DEFAULT_DEVICE_UPDATES_PER_S 2.0e10

/* The link of a rank to its neighbours; bytes_per_s 0 = the default. */
struct mx_tune_link {
    int32_t ranks;                 /* 0 or 1 = there is none */
    double bytes_per_s, latency_s; /* each way; of a message */
};
#define MX_DEFAULT_LINK_BYTES_PER_S 1.25e9
#define MX_DEFAULT_LINK_LATENCY_S 2e-5

struct mx_tune_request {
    const struct mx_problem *problem;
    const struct mx_machine *machine; /* cores, sockets, caches of the tuner's rules */
    uint64_t dram_bytes;              /* Sm: DRAM the run may see; 0 = mx_machine_dram_bytes */
    uint64_t reserve_bytes;           /* Km: left to the system */
    bool reserve_paper;               /* Km = 1 GiB + 128 MiB per core, and no overhead is counted besides */
    const char *algorithm;            /* name or alias; NULL = the fastest of those that the style allows */
    const char *tuner;  /* "blk" "naive" "manual"; NULL = manual if a Block size is given, else blk */
    const char *engine; /* "iblock" "tiled"; NULL = the faster one by rates */
    enum mx_tune_style style;
    bool advised; /* mapped: the schedule advises what comes next, so that Linux does not read ahead by itself
                   */
    bool anonymous;        /* mapped: on swap space, not in a file */
    struct mx_plan manual; /* by, bz, bt: the manual tuner's Block (0 = simulate the papers' manual choice);
                              iy, iz, slab, tile, ct, column, ahead, in_place: override the tuner where not
                              0 */
    uint32_t offset_align_bytes;    /* of the device: rows or planes are padded to it; 0 = offline: unpadded
                                       rows, as in the papers */
    uint64_t capacity_bytes;        /* of the device; 0 = unknown */
    struct mx_rates rates;          /* 0 fields = defaults */
    const struct mx_layout *layout; /* layout of an existing store, which the plan must use; NULL = free */
    bool blocks_only;               /* only algorithms that move data between Buffers and Blocks */
    bool whole_planes;              /* partial planes must not be transferred */
    bool resumable;                 /* only algorithms whose finished sweeps are commits */
    int64_t fixed_unit_bytes; /* transfers of the run's own Buffers of C are multiples of this, a power of
                                 two; 0 = any */
    const struct mx_fixed_layout
        *fixed; /* [mx_fixed_count], of a system: how fields of C lie that the layout does not choose itself,
                   such as files of the user; row_pitch_bytes 0 = the layout chooses. NULL = none */
    int64_t most_bt;                   /* levels of a sweep at most; 0 = no bound. For blk */
    uint64_t extra_dram_bytes;         /* DRAM that the run needs besides Blocks (hashes of --integrity) */
    const struct mx_tune_accel *accel; /* NULL = Blocks are in DRAM */
    struct mx_tune_link link;          /* with several ranks, of which the problem is one's part */
    bool exhaustive; /* search every combination instead of the reduced, equally exact set */
    bool elsewhere;  /* the machine is described: what was timed on this one tells nothing */
    int32_t threads; /* 0 = machine->cores */
};

/* Predicted duration of the stencil phase. total_s = max(io + stall, compute + copy + cores) where they
 * overlap, for stream up to 1.26 times that (mx_predict_overlap), plus what never overlaps; of ranks
 * max(that + lag, link). */
struct mx_seconds {
    double io_s, compute_s, copy_s;
    double stall_s; /* I/O time beyond that of the bytes. With Blocks: the cost of requests, and that reading
                       and writing take turns from Block to Block. With mapped Buffers: the extra bytes of
                       read-ahead, and the slow paging of the kernel */
    double cores_s; /* that transfers take away from the computation */
    double hindrance_s; /* of stream: so much longer than the longer of both transfers and computing take */
    double bus_s;       /* to and from an accelerator, the longer one; io_s is at least that */
    double flash_s;     /* with an accelerator: io_s without the bus */
    double put_bytes_per_s, get_bytes_per_s, updates_per_s; /* with an accelerator: what these rest on */
    double edge_s; /* filling and draining the pipeline of stream, once a sweep */
    double link_s; /* of a rank: its messages on the link, which go while it computes */
    double lag_s;  /* of a rank: time that the last rank waits for messages, one after the other */
    double total_s;
};

enum { MX_TUNE_MAX_CANDIDATES = 12 };

/* The best plan of one algorithm, or why there is none. */
struct mx_tune_candidate {
    char algorithm[20];
    bool fits;
    struct mx_plan plan;
    struct mx_layout layout;
    struct mx_shape shape;
    struct mx_traffic traffic;
    struct mx_seconds seconds;
    uint64_t dram_bytes;   /* Block arrays, seams, and on dram the Buffers */
    uint64_t device_bytes; /* with an accelerator: Block arrays and seams there; dram_bytes is what stages
                              them then */
    uint64_t
        smallest_dram_bytes; /* where !fits: the smallest --dram that would do, 0 = no plan at any size */
    int64_t n_evaluated;
    char why[320]; /* where !fits */
};

struct mx_tune_result {
    struct mx_plan plan; /* complete: engine, slab, ahead, threads, tuner are set */
    struct mx_layout layout;
    struct mx_shape shape;
    struct mx_traffic traffic; /* predicted bytes: read_bytes, write_bytes, init_write_bytes */
    struct mx_seconds seconds;
    uint64_t dram_bytes;   /* what the plan takes for Blocks (and resident Buffers) */
    uint64_t device_bytes; /* and in an accelerator's memory */
    uint64_t room_bytes;   /* what it may take: dram - reserve - overhead */
    uint64_t visible_bytes, reserve_bytes, overhead_bytes;
    struct mx_rates rates; /* complete */
    int64_t z_step;        /* bz is a multiple of this, or nz */
    int64_t n_evaluated;
    uint64_t search_ns;                                          /* CPU time */
    struct mx_tune_candidate candidates[MX_TUNE_MAX_CANDIDATES]; /* the winner first, then by seconds, then
                                                                    those that do not fit */
    int32_t n_candidates;
    char tuner[12];
};

/* Finds the best plan. -EINVAL (the request; a fixed layout that the device cannot transfer), -ENOMEM (no
 * plan fits: *why names the smallest DRAM that would do), -ENOSPC (the device is too small), -ENOTSUP (the
 * algorithm does not work with this backend).
 */
int mx_tune(const struct mx_tune_request *request, mx_why *why, struct mx_tune_result *out);

/* The tuners; the only place that names them. */
struct mx_tuner {
    const char *name, *summary;
};
extern const struct mx_tuner mx_tuners[]; /* ends with name NULL */

/* Returns the name of an algorithm with an accelerator: direct becomes resident, which loads everything into
 * the accelerator's memory. NULL: NULL. */
const char *mx_tune_there(const char *algorithm);

/* Handles a given plan (--plan): fills fields that are 0, checks it as the manual tuner does, and predicts
 * it.
 */
int mx_tune_plan(const struct mx_tune_request *request, const struct mx_plan *plan, mx_why *why,
                 struct mx_tune_result *out);

/* ------------------------------------------------------------------ rules (for tests and reports) */

struct mx_iblock {
    int64_t iy, iz;
};
/* Step 1 of Blk-Tune (section V-A): min |k*nx*iy*iz*Esz - Sc2*Nc|, where iz is a multiple of Nc. Of equal
 * choices the smallest iy wins. iy <= max_iy and iz <= max_iz (0 = no limit; iz is at least Nc). */
struct mx_iblock mx_iblock_blk(int64_t nx, int64_t element_bytes, int64_t cores, uint64_t l2_bytes,
                               int64_t max_iy, int64_t max_iz);

/* The whole log of Naive-Tune (slides "Auto-Tune Example", CCGrid 2015 [3]). Bytes as logged. */
struct mx_naive_log {
    int64_t usable_bytes;              /* usable_size */
    int64_t b_ym;                      /* side of the largest square of x columns */
    int64_t by, bz;                    /* spatial Block size */
    int64_t block_bytes, remain_bytes; /* before bt is chosen */
    int64_t max_bt, iterations, bt;
    int64_t final_rows, final_planes; /* by + 2 bt h, bz + 2 bt h */
    int64_t final_block_bytes, final_remain_bytes;
    int64_t cache_usable_bytes;       /* L3 less 1 KiB */
    int64_t first_iz, first_iz_bytes; /* iz as a power of two, and what all its iBlocks take */
    int64_t iz, iz_bytes;             /* final: multiple of the cores of a socket */
    int64_t iblock_bytes;             /* of one core */
    int64_t cache_left_bytes;
};
/* dram_bytes: Sm as visible. -ENOMEM: no Block of two steps fits. */
int mx_naive_tune(const struct mx_problem *problem, const struct mx_machine *machine, uint64_t dram_bytes,
                  uint64_t reserve_bytes, mx_why *why, struct mx_naive_log *out);

/* ------------------------------------------------------------------ plans as text */

enum { MX_PLAN_LINE_BYTES = 384 };
/* The largest numbers of a plan, in a line and as options. EXTENT: rows, planes, levels; a Block larger than
 * the grid is the grid. */
#define MX_MOST_EXTENT (INT64_C(1) << 40)
enum { MX_MOST_SLAB = 1 << 20, MX_MOST_COLUMN = INT32_MAX, MX_MOST_AHEAD = 4096, MX_MOST_THREADS = 1024 };
/* One line without newline: "skewed-min engine=iblock by=1025 bz=1280 bt=500 iy=1 iz=128 threads=16
 * tuner=blk"; fields that are 0 are left out. Returns line. */
const char *mx_plan_print(const struct mx_plan *plan, char *line, size_t capacity_bytes);
/* Reads such a line; the algorithm may be an alias. -EINVAL names the wrong word. */
int mx_plan_parse(const char *line, mx_why *why, struct mx_plan *out);
/* Checks that every number is within the limits of its option, as mx_tune_plan requires. -EINVAL. */
int mx_plan_check(const struct mx_plan *plan, mx_why *why);
/* Reads a plan from a line, or from a file: its first line that is neither empty nor a comment (#). */
int mx_plan_read(const char *line_or_file, mx_why *why, struct mx_plan *out);

/* Returns the report of --explain as text, which the caller frees with free(). NULL = no memory. */
char *mx_tune_explain(const struct mx_tune_request *request, const struct mx_tune_result *result);

/* Returns the options of the engine for a plan, without the sizes of its calls: levels, rows and planes are
 * 0. */
struct mx_engine_options mx_plan_engine(const struct mx_plan *plan, const struct mx_problem *problem,
                                        const struct mx_machine *machine, int64_t row_pitch_bytes);

#endif
