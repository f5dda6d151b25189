/* SPDX-License-Identifier: BSD-3-Clause */
/* rows_plan.c - how it is computed: memory, algorithm, engine, ranks, accelerators, rates, another machine.
 */
#include "ask/rows.h"
#include "link/link.h"
#include "tune/tune.h"

const struct mx_option mx_rows_plan[] = {
    {"dram", 0, MX_GROUP_PLAN, BOTH | INFO | LOOPS, FIRST | INFO | LOOPS, 1, .take = mx_ask_size,
     FIELD(dram_bytes), LIMITS(1 << 20, UINT64_MAX), .argument = "SIZE", .unit = "bytes",
     .initial = "the smaller of the machine's memory and the limit of the memory cgroup; with --resume that "
                "of the run "
                "before",
     .summary = "Memory that the run may use."},
    {"reserve", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_reserve, .argument = "SIZE|paper|auto",
     .value_at = mx_value_reserve, .unit = "bytes", .zero = "nothing is left",
     .initial = "auto; 0 where --dram is given", .summary = "How much of --dram is left to the system.",
     .more = "`paper` is 1 GiB + 128 MiB per core."},
    {"threads", 0, MX_GROUP_PLAN, BOTH | LOOPS, FIRST | LOOPS, 1, .take = mx_ask_count, FIELD(threads),
     LIMITS(1, MX_MOST_THREADS), .argument = "N", .unit = "threads",
     .initial = "the cores of this process, divided among the ranks that may use the same ones",
     .summary = "Threads that compute.",
     .more = "More threads than cores get a remark. If the threads of all ranks take every core, each thread "
             "is bound to one core. Fewer threads are bound only to a NUMA node, so that programs side by "
             "side do not take the same core."},
    {"algorithm", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_algorithm, FIELD(algorithm), .argument = "A",
     .value_at = mx_value_algorithm, .range = "or a name of the papers", .initial = "the tuner's choice",
     .summary = "In which order data moves and is computed.",
     .more =
         "* `stream`: the grid streams once per sweep through BT time levels in DRAM, read once and written "
         "once. It can be resumed. With BY below NY it goes strip by strip. The faces between strips stay in "
         "DRAM, or in a side file in the store where they do not fit.\n"
         "* `redundant`: overlapped Blocks of BT steps each; the halo is recomputed. It can be resumed.\n"
         "* `skewed`, `skewed-y`, `skewed-min`: time-skewed Blocks, nothing recomputed. `skewed-y` hands "
         "over "
         "y overlaps in DRAM. `skewed-min` moves the second array only where Blocks overlap. They rewrite "
         "both "
         "Buffers in place, so they cannot be resumed.\n"
         "* `direct`, `direct-skewed`, `direct-skewed-opt`: on the mapped Buffers, without Blocks. They need "
         "backend dram, swap or mmap.\n"
         "* `resident`: the whole grid in the memory of an accelerator."},
    {"tuner", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_text, FIELD(tuner), .argument = "T",
     .value_at = mx_value_tuner, .closed = true, .initial = "blk; manual when --block is given",
     .summary = "What chooses the plan.",
     .more = "* `blk`: of the plans that fit, the one with the least predicted time. Among algorithms within "
             "2 % of it, the one with the fewest bytes.\n* `naive`: powers of two that fit.\n* `manual`: the "
             "Block of --block."},
    {"block", 0, MX_GROUP_PLAN, BOTH, 0, 3, .take = mx_ask_counts, FIELD(by), LIMITS(1, MX_MOST_EXTENT),
     .argument = "BY BZ BT", .unit = "rows, planes, time steps", .initial = "the tuner's choice",
     .summary = "Size of a Block.", .more = "A Block always holds whole rows along x."},
    {"iblock", 0, MX_GROUP_PLAN, BOTH, 0, 2, .take = mx_ask_counts, FIELD(iy), LIMITS(1, MX_MOST_EXTENT),
     .argument = "IY IZ", .unit = "rows, planes", .initial = "from the size of the L2 cache",
     .summary = "Size of the piece that is worked on in cache."},
    {"engine", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_text, FIELD(engine), .argument = "E",
     .value_at = mx_value_engine, .closed = true, .initial = "the faster one; device with --accel",
     .summary = "How a Block is computed.",
     .more = "* `iblock`: spatial blocking, as in the papers.\n"
             "* `tiled`: temporal blocking in cache as well.\n"
             "* `device`: on the accelerator of --accel."},
    {"slab", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_count, FIELD(slab), LIMITS(1, MX_MOST_SLAB),
     .argument = "PLANES", .unit = "planes", .initial = "the engine's choice",
     .summary = "Planes that one step of a pipelined schedule advances in z.",
     .more = "With more than 8 threads, engine tiled divides these planes into several slabs."},
    {"tile", 0, MX_GROUP_PLAN, BOTH, 0, 2, .take = mx_ask_counts, FIELD(tile), LIMITS(1, MX_MOST_EXTENT),
     .argument = "ROWS LEVELS", .unit = "rows, time levels", .initial = "the engine's choice",
     .summary = "Engine tiled: rows of a tile and time levels of a chunk."},
    {"column", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_count, FIELD(column), LIMITS(1, MX_MOST_COLUMN),
     .argument = "CELLS", .unit = "cells", .initial = "whole rows, where they are short",
     .summary = "Engine tiled: cells in x of a tile.",
     .more = "NX or more means whole rows. That is the default for rows of up to 12 KiB. For your own "
             "kernels and stencils of radius 2 and more the limit is 6 KiB. For a stencil of radius 1, "
             "choose CELLS that fill a multiple of 64 bytes. Only then are tiles that are shorter than a row "
             "updated in place in cache."},
    {"ahead", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_count, FIELD(ahead), LIMITS(1, MX_MOST_AHEAD),
     .argument = "SLABS", .unit = "slabs", .initial = "2",
     .summary = "Slabs that are read ahead of the computation."},
    {"plan", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_text, FIELD(plan), .argument = "LINE|FILE",
     .summary = "Runs a plan that `memext tune` printed.",
     .more = "Its numbers have the limits of their options. `faces=dram` or `faces=side-file` says where "
             "`stream` "
             "keeps the faces between strips. Without it they are in DRAM if they fit."},

    {"ranks", 0, MX_GROUP_RANKS, MX_CMD_RUN | TUNE, 0, 1, .take = mx_ask_count, FIELD(ranks),
     LIMITS(1, MX_RANKS_MOST), .argument = "P", .unit = "processes", .initial = "1, or those of mpirun",
     .summary = "Shares the planes among P processes of this machine.",
     .more = "Each has a store of its own below -d: DIR/rank-N, or with the rank's number in place of %r. "
             "The result is the same bit by bit. --dram and --threads apply to each rank.\nRanks that "
             "`mpirun` has started do not need --ranks. --dry-run and `memext tune` plan for a rank of P. "
             "Only algorithms `stream` and `redundant` run on several ranks.\nAll ranks commit together. "
             "When one dies all end, and --resume goes on with any number of ranks, also one."},
    {"rank-weights", 0, MX_GROUP_RANKS, MX_CMD_RUN | TUNE, 0, 1, .take = mx_ask_text, FIELD(rank_weights),
     .argument = "W,W,...", .initial = "all alike", .summary = "Planes of each rank, in proportion.",
     .more = "Give a number for each rank. With --resume the planes are cut anew."},
    {"link", 0, MX_GROUP_RANKS, MX_CMD_RUN | TUNE, 0, 1, .take = mx_ask_link,
     .argument = "[NAME][,RATE[,LATENCY]]", .value_at = mx_value_link,
     .initial = "mpi where mpirun has started the ranks, else local; the rate is measured",
     .summary = "How ranks reach one another, and how fast.",
     .more =
         "`local` is sockets of this machine. `memext info` says which links are there.\n"
         "RATE and LATENCY are for predictions, as `10Gbit,20us`. RATE is in bit/s (Kbit, Mbit, Gbit) or "
         "bytes/s (KB, MB, GB, KiB, MiB, GiB) each way. LATENCY is the time of a message besides (ns, us, "
         "ms, "
         "s; default 20us).\n"
         "Without a rate ranks measure it when they begin. A dry run and `memext tune` assume 10 Gbit/s."},

    {"accel", 0, MX_GROUP_ACCEL, BOTH, 0, 1, .take = mx_ask_accel, FIELD(accel),
     .argument = "NAME[,KEY=VALUE...]", .value_at = mx_value_accel, .initial = "none",
     .summary = "Computes in the memory of an accelerator.",
     .more =
         "Planes are read into DRAM, put there, advanced, got and written, side by side.\n* `opencl`: a "
         "device of OpenCL 1.2. Its library is loaded when it is asked for.\n* `cuda`: a device of CUDA. "
         "Driver and NVRTC are loaded likewise.\n* `auto`: the first device here that is not a CPU.\n* "
         "`host`: DRAM of this machine as if it were a device's, for tests and models.\n`memext info` lists "
         "the accelerators and says why one cannot be used. The result has the same bits as a run without an "
         "accelerator. Your kernel is compiled for the device from the same file.\nAlgorithm `stream` keeps "
         "its ring there, and `direct` (which is `resident` then) the whole grid. Other algorithms, and "
         "backends mmap and swap, are refused. Sides, sources, probes, norms and snapshots are done there "
         "too.\nKeys:\n* `device=N`: opencl, cuda: the N-th device.\n* `rate=BYTES/S`: host: the rate of "
         "copies each way. Of other accelerators, to plan with.\n* `updates=N/S`: update rate to plan "
         "with.\n* `memory=SIZE`: host: what the device has.\n* `fuse=1|2`: opencl, cuda: how many levels "
         "one launch computes. Two need a Jacobi kernel, one process, whole planes (BY = NY), sides that are "
         "fixed, and no sources, probes or norms. Otherwise one is taken. By default memext takes what turns "
         "out to be faster.\n* `pin=0|1`: cuda, host: with 1 Buffers in DRAM are pinned, so that the device "
         "reads and writes them itself. By default runs of 12 sweeps or more do so.\n* `fault=N`, `late=N`: "
         "for tests: copy or launch number N fails, at once or "
         "when it is done.\nThe report has `accelerator`, `host_to_device_bytes`, `device_to_host_bytes` and "
         "what was predicted of both.\nThe ranks of a machine take its devices in turn, or all take the "
         "device that is named. Ranks that share a device get equal parts of its memory. --device-memory "
         "applies to each rank."},
    {"device-memory", 0, MX_GROUP_ACCEL, BOTH, 0, 1, .take = mx_ask_size, FIELD(device_memory),
     LIMITS(1 << 16, UINT64_MAX), .argument = "SIZE", .unit = "bytes", .initial = "all it has",
     .summary = "Memory of the accelerator that may be used.", .needs = "accel"},

    {"read-bw", 0, MX_GROUP_RATES, BOTH | LOOPS, 0, 1, .take = mx_ask_real, FIELD(read_bw),
     .argument = "BYTES/S", .unit = "bytes per second", .range = "above 0", .initial = "measured or assumed",
     .summary = "Read bandwidth of the device to plan with."},
    {"write-bw", 0, MX_GROUP_RATES, BOTH | LOOPS, 0, 1, .take = mx_ask_real, FIELD(write_bw),
     .argument = "BYTES/S", .unit = "bytes per second", .range = "above 0", .initial = "measured or assumed",
     .summary = "Write bandwidth of the device to plan with."},
    {"mixed-bw", 0, MX_GROUP_RATES, BOTH, 0, 1, .take = mx_ask_real, FIELD(mixed_bw), .argument = "BYTES/S",
     .unit = "bytes per second", .range = "above 0",
     .initial = "measured or assumed; or, if only --read-bw or --write-bw is given, the rate of reads and "
                "writes that alternate",
     .summary = "Bandwidth to plan with where the device reads and writes at once.",
     .more = "It is the sum of both directions. For a device that limits each direction by itself (a network "
             "both "
             "ways, a throttled volume) it is the sum of --read-bw and --write-bw."},
    {"rate", 0, MX_GROUP_RATES, BOTH | LOOPS, 0, 1, .take = mx_ask_real, FIELD(rate), .argument = "UPDATES/S",
     .unit = "cells per second", .range = "above 0", .initial = "measured or assumed",
     .summary = "Speed of the computation to plan with.",
     .more = "Without --rate the tuner guesses the speed of your kernel. `memext wavefront` counts the "
             "updates of a "
             "worker."},
    {"calibrate", 0, MX_GROUP_RATES, BOTH, TUNE, .take = mx_ask_flag, FIELD(calibrate),
     .summary = "Measures bandwidth and update rate again, in about 7 seconds.",
     .more = "First it measures each rate several times, in alternation, for about 4 seconds. The speed of a "
             "shared machine changes, so one measurement is not enough. For about 3 more it looks for a "
             "slab, tile or number of levels that is faster than engine tiled's own choice. The result holds "
             "for this stencil, type and row length.\n`memext tune` says what was found. Later plans for "
             "such rows use it unless --slab, --tile or --column is given."},
    {"calibrate-seconds", 0, MX_GROUP_RATES, TUNE, 0, 1, .take = mx_ask_real, FIELD(calibrate_s),
     .argument = "SECONDS", .unit = "seconds", .range = "above 0, at most 60",
     .summary = "Calibrates in about so long and keeps the known sizes of engine tiled.",
     .more = "1 or 2 seconds say how fast the machine is this minute."},

    {"cores", 0, MX_GROUP_MACHINE, BOTH, TUNE, 1, .take = mx_ask_count, FIELD(cores), LIMITS(1, 65536),
     .argument = "N", .unit = "cores", .initial = "this machine's",
     .summary = "Cores of the machine to plan for.", .excludes = "calibrate",
     .because = "rates are measured on this machine", .needs = "dry-run"},
    {"sockets", 0, MX_GROUP_MACHINE, BOTH, TUNE, 1, .take = mx_ask_count, FIELD(sockets), LIMITS(1, 1024),
     .argument = "N", .unit = "sockets", .initial = "this machine's",
     .summary = "Sockets of the machine to plan for.", .excludes = "calibrate",
     .because = "rates are measured on this machine", .needs = "dry-run"},
    {"l2", 0, MX_GROUP_MACHINE, BOTH, TUNE, 1, .take = mx_ask_size, FIELD(l2_bytes), LIMITS(1024, UINT64_MAX),
     .argument = "SIZE", .unit = "bytes", .initial = "this machine's",
     .summary = "L2 cache of a core to plan for.", .excludes = "calibrate",
     .because = "rates are measured on this machine", .needs = "dry-run"},
    {"l3", 0, MX_GROUP_MACHINE, BOTH, TUNE, 1, .take = mx_ask_size, FIELD(l3_bytes), LIMITS(1024, UINT64_MAX),
     .argument = "SIZE", .unit = "bytes", .initial = "this machine's",
     .summary = "L3 cache of a socket to plan for.", .excludes = "calibrate",
     .because = "rates are measured on this machine", .needs = "dry-run"},
    {"topology", 0, MX_GROUP_MACHINE, BOTH, TUNE, 1, .take = mx_ask_text, FIELD(topology), .argument = "XML",
     .summary = "Plans for the machine that an XML file of hwloc describes.", .excludes = "calibrate",
     .because = "rates are measured on this machine", .needs = "dry-run"},
    {"align", 0, MX_GROUP_MACHINE, BOTH, 0, 1, .take = mx_ask_size, FIELD(align_bytes), LIMITS(1, 1 << 20),
     .argument = "SIZE", .unit = "bytes", .initial = "the place's, or that of a cell without a place",
     .summary = "Alignment of rows on the device to plan for.", .needs = "dry-run"},
    {"capacity", 0, MX_GROUP_MACHINE, BOTH, 0, 1, .take = mx_ask_size, FIELD(capacity_bytes),
     LIMITS(1, UINT64_MAX), .argument = "SIZE", .unit = "bytes", .initial = "the place's, or no limit",
     .summary = "Size of the device to plan for.", .needs = "dry-run"},
    {.name = NULL},
};
