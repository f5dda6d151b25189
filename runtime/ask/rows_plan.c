/* SPDX-License-Identifier: BSD-3-Clause */
/* rows_plan.c - how it is computed: memory, algorithm, engine, ranks, accelerators, rates, another machine.
 */
#include "ask/rows.h"
#include "link/link.h"
#include "tune/tune.h"

const struct mx_option mx_rows_plan[] = {
    {"dram", 0, MX_GROUP_PLAN, BOTH | INFO | LOOPS, FIRST | INFO | LOOPS, 1, .take = mx_ask_size,
     FIELD(dram_bytes), LIMITS(1 << 20, UINT64_MAX), .argument = "SIZE", .unit = "bytes",
     .initial = "the machine's memory, or its cgroup limit if that is less",
     .summary = "Memory that the run may use.",
     .more = "Ranks on one machine share the default. With --dram each has SIZE, and together they may have "
             "no more than the machine and its cgroup allow. With --resume the default is what the run had "
             "before."},
    {"reserve", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_reserve, .argument = "SIZE|paper|auto",
     .value_at = mx_value_reserve, .range = "or a size", .unit = "bytes", .zero = "no reserve",
     .initial = "0 if --dram is given, else auto",
     .summary = "Part of --dram that memext leaves to the system.",
     .more = "`auto` is 5 % of --dram, at least 64 MiB and at most 2 GiB, but never more than half of "
             "--dram. `paper` is the reserve of the Blk-Tune paper (SEE ALSO): 1 GiB + 128 MiB per core."},
    {"threads", 0, MX_GROUP_PLAN, BOTH | LOOPS, FIRST | LOOPS, 1, .take = mx_ask_count, FIELD(threads),
     LIMITS(1, MX_MOST_THREADS), .argument = "N", .unit = "threads",
     .initial = "the cores that this process may use, divided among the ranks that share them",
     .summary = "Threads that compute.",
     .more = "memext warns if there are more threads than cores. If the threads of all ranks take "
             "every core, each thread is bound to one core. Fewer threads are bound only to a NUMA "
             "node, so that programs side by side do not take the same core."},
    {"algorithm", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_algorithm, FIELD(algorithm), .argument = "A",
     .value_at = mx_value_algorithm, .range = "or an alias", .initial = "the tuner's choice",
     .summary = "The order in which memext moves and computes the data.",
     .more = "* `stream`: reads the grid once and writes it once per sweep. Planes pass through DRAM, where "
             "BT time levels (steps, or stages of a step) are computed. It can be resumed. If BY (--block) "
             "is below NY, it divides y into strips of BY rows, and computes strip by strip. The rows that "
             "strips share (faces) stay in DRAM, or in a side file if they do not fit.\n"
             "* `redundant`: Blocks that overlap, each computed for BT time levels. Each Block computes the "
             "cells of the overlap again. It can be resumed.\n"
             "* `skewed`: Blocks that shift from level to level, so that nothing is computed twice. It reads "
             "and writes both Buffers.\n"
             "* `skewed-y`: as `skewed`, but overlaps in y stay in DRAM.\n"
             "* `skewed-min`: as `skewed-y`, but of the second Buffer it reads and writes only the planes "
             "that Blocks share in z.\n"
             "* `direct`: works on the mapped Buffers, without Blocks. It computes step after step over the "
             "whole grid. With --engine tiled it computes BT levels at a time.\n"
             "* `direct-skewed`: the shifted pieces of `skewed` on the mapped Buffers. It computes one level "
             "of a whole piece, then the next level.\n"
             "* `direct-skewed-opt`: as `direct-skewed`, but the threads share slabs of planes. All levels "
             "move through a piece together, each a few planes behind the one before.\n"
             "* `resident`: loads the whole grid into DRAM, or into the memory of an accelerator, computes "
             "there, and stores it. It can be resumed.\n"
             "The `skewed` and `direct` algorithms rewrite both Buffers in place, so an interrupted run must "
             "start again. Those named `direct` need backend dram, swap or mmap, or --accel.\n"
             "The papers under SEE ALSO call these algorithms by other names, which you may use: "
             "`algorithm-1` is `redundant`, `algorithm-2` and `aio2` are `skewed`. `aio3y` is `skewed-y`, "
             "`aio5y` is `skewed-min`, `mmap1` is `direct-skewed`, and `mmap1+opt` is `direct-skewed-opt`."},
    {"tuner", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_text, FIELD(tuner), .argument = "T",
     .value_at = mx_value_tuner, .closed = true, .initial = "blk; manual when --block is given",
     .summary = "What chooses the plan.",
     .more = "* `blk`: of the plans that fit, the one with the least predicted time. Among algorithms within "
             "2 % of it, the one with the fewest bytes.\n* `naive`: the largest Block that fits with BY and "
             "BZ powers of two, then as many steps as fit.\n* `manual`: the "
             "Block of --block."},
    {"block", 0, MX_GROUP_PLAN, BOTH, 0, 3, .take = mx_ask_counts, FIELD(by), LIMITS(1, MX_MOST_EXTENT),
     .argument = "BY BZ BT", .unit = "rows, planes, time levels", .initial = "the tuner's choice",
     .summary = "Size of a Block: BY rows, BZ planes, BT time levels (steps, or stages of a step).",
     .more = "A Block always holds whole rows along x."},
    {"iblock", 0, MX_GROUP_PLAN, BOTH, 0, 2, .take = mx_ask_counts, FIELD(iy), LIMITS(1, MX_MOST_EXTENT),
     .argument = "IY IZ", .unit = "rows, planes", .initial = "from the size of the L2 cache",
     .summary = "Engine iblock: rows and planes of the pieces of a Block that are computed in cache."},
    {"engine", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_text, FIELD(engine), .argument = "E",
     .value_at = mx_value_engine, .closed = true, .initial = "the faster one; device with --accel",
     .summary = "How a Block is computed.",
     .more = "* `iblock`: spatial blocking: one level at a time, in pieces that fit in cache.\n"
             "* `tiled`: temporal blocking too: several levels at a time in cache.\n"
             "* `device`: on the accelerator of --accel."},
    {"slab", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_count, FIELD(slab), LIMITS(1, MX_MOST_SLAB),
     .argument = "PLANES", .unit = "planes", .initial = "the engine's choice",
     .summary = "Planes that are computed at a time, on the way through a Block in z.",
     .more = "With more than 8 threads, engine tiled divides these planes into several slabs."},
    {"tile", 0, MX_GROUP_PLAN, BOTH, 0, 2, .take = mx_ask_counts, FIELD(tile), LIMITS(1, MX_MOST_EXTENT),
     .argument = "ROWS LEVELS", .unit = "rows, time levels", .initial = "the engine's choice",
     .summary = "Engine tiled: rows of a tile, and time levels that are computed in cache at a time."},
    {"column", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_count, FIELD(column), LIMITS(1, MX_MOST_COLUMN),
     .argument = "CELLS", .unit = "cells", .initial = "whole rows if they are short",
     .summary = "Engine tiled: cells in x of a tile.",
     .more = "NX or more means whole rows. Rows of up to 12 KiB (6 KiB for your own kernels and for radius 2 "
             "or more) are not divided by default. For radius 1, choose CELLS that fill a multiple of 64 "
             "bytes: only then does memext update such a tile in place in cache."},
    {"ahead", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_count, FIELD(ahead), LIMITS(1, MX_MOST_AHEAD),
     .argument = "SLABS", .unit = "slabs", .initial = "2",
     .summary = "Slabs that are read ahead of the computation."},
    {"plan", 0, MX_GROUP_PLAN, BOTH, 0, 1, .take = mx_ask_text, FIELD(plan), .argument = "LINE|FILE",
     .summary = "Runs a plan that `memext tune` printed: its line as one word, or a file.",
     .more = "The line is the one without a #. Its numbers have the limits of the options for them (by, bz "
             "and bt: --block; slab: --slab). `faces=dram` or `faces=side-file` says where `stream` keeps "
             "the faces between strips. Without `faces` they are in DRAM if they fit."},

    {"ranks", 0, MX_GROUP_RANKS, MX_CMD_RUN | TUNE, 0, 1, .take = mx_ask_count, FIELD(ranks),
     LIMITS(1, MX_RANKS_MOST), .argument = "P", .unit = "processes", .initial = "1, or those of mpirun",
     .summary = "Shares the planes among P processes of this machine.",
     .more = "Each rank has a store of its own. If -d names a directory DIR, the store is in DIR/rank-N. If "
             "-d names files or block devices, write %r for the number of the rank. The result is the same "
             "bit by bit. --dram and --threads apply to each rank.\n"
             "Leave --ranks out if `mpirun` starts the ranks. --dry-run and `memext tune` plan for one rank "
             "of P. Only algorithms `stream` and `redundant` run on several ranks.\n"
             "All ranks commit together. If one dies, all end. --resume continues with any number of ranks, "
             "also with one."},
    {"rank-weights", 0, MX_GROUP_RANKS, MX_CMD_RUN | TUNE, 0, 1, .take = mx_ask_text, FIELD(rank_weights),
     .argument = "W,W,...", .initial = "equal",
     .summary = "Relative shares of the planes, one number for each rank.",
     .more = "If you give it with --resume, memext divides the planes again."},
    {"link", 0, MX_GROUP_RANKS, MX_CMD_RUN | TUNE, 0, 1, .take = mx_ask_link,
     .argument = "[NAME,]RATE[,LATENCY] | NAME", .value_at = mx_value_link,
     .initial = "mpi if mpirun has started the ranks, else local; the rate is measured",
     .summary = "How ranks reach one another, and how fast.",
     .more = "`local` uses sockets of this machine, `mpi` the MPI of mpirun. `memext info` lists the "
             "links.\n"
             "RATE and LATENCY are for predictions: `10Gbit,20us` is an example. RATE is in bit/s "
             "(Kbit, Mbit, Gbit) or bytes/s (KB, MB, GB, KiB, MiB, GiB) each way. LATENCY is the time that "
             "each message takes in addition to its bytes (ns, us, ms, s; default 20us).\n"
             "Without RATE the ranks measure the link when they begin. A dry run and `memext tune` "
             "assume 10 Gbit/s."},

    {"accel", 0, MX_GROUP_ACCEL, BOTH, 0, 1, .take = mx_ask_accel, FIELD(accel),
     .argument = "NAME[,KEY=VALUE...]", .value_at = mx_value_accel, .initial = "none",
     .summary = "Computes in the memory of an accelerator.",
     .more =
         "memext reads planes into DRAM, copies them to the device, computes, copies them back and writes "
         "them. All of this happens at the same time.\n"
         "* `opencl`: a device of OpenCL 1.2. memext loads the library when it needs it.\n"
         "* `cuda`: a device of CUDA. memext loads the driver and NVRTC when it needs them.\n"
         "* `auto`: the first device here that is not a CPU.\n"
         "* `host`: DRAM of this machine in the place of a device's memory, for tests and models.\n"
         "`memext info` lists the accelerators and says why one cannot be used. The result has the same bits "
         "as a run without an accelerator. memext compiles your kernel for the device from the same file.\n"
         "Algorithm `stream` keeps its ring of planes on the device. `direct` keeps the whole grid there, "
         "and is then called `resident`. Other algorithms, and backends mmap and swap, are refused. Sides, "
         "sources, probes, norms and snapshots work on the device too.\n"
         "Keys:\n"
         "* `device=N`: the device with number N, counted from 0 (opencl, cuda).\n"
         "* `rate=BYTES/S`: the rate of copies each way. With host it limits them; with opencl and cuda it "
         "is only for plans.\n"
         "* `updates=N/S`: the update rate, for plans.\n"
         "* `memory=SIZE`: the memory of the device (host).\n"
         "* `fuse=1|2`: how many levels one launch computes (opencl, cuda). Two need a Jacobi kernel, one "
         "process, whole planes (BY = NY), fixed sides, and no sources, probes or norms. Otherwise it is "
         "one. Where two are possible, the default is the faster number, which memext measures.\n"
         "* `pin=0|1`: `pin=1` pins the Buffers of --backend dram, so that the device reads and writes them "
         "itself (cuda, host). By default runs of 12 sweeps or more do so.\n"
         "* `fault=N`, `late=N`: for tests: copy or launch number N fails, at once or when it is done.\n"
         "The report has `accelerator`, `host_to_device_bytes`, `device_to_host_bytes` and the predictions "
         "of both.\n"
         "With D devices, rank r of a machine uses device r modulo D, or all use the one that `device=N` "
         "names. Ranks that share a device get equal parts of its memory. --device-memory applies to each "
         "rank."},
    {"device-memory", 0, MX_GROUP_ACCEL, BOTH, 0, 1, .take = mx_ask_size, FIELD(device_memory),
     LIMITS(1 << 16, UINT64_MAX), .argument = "SIZE", .unit = "bytes", .initial = "all of it",
     .summary = "Memory of the accelerator that may be used.", .needs = "accel"},

    {"read-bw", 0, MX_GROUP_RATES, BOTH | LOOPS, 0, 1, .take = mx_ask_real, FIELD(read_bw),
     .argument = "BYTES/S", .unit = "bytes per second", .range = "above 0", .initial = "measured or assumed",
     .summary = "Read bandwidth of the drive, for predictions."},
    {"write-bw", 0, MX_GROUP_RATES, BOTH | LOOPS, 0, 1, .take = mx_ask_real, FIELD(write_bw),
     .argument = "BYTES/S", .unit = "bytes per second", .range = "above 0", .initial = "measured or assumed",
     .summary = "Write bandwidth of the drive, for predictions."},
    {"mixed-bw", 0, MX_GROUP_RATES, BOTH, 0, 1, .take = mx_ask_real, FIELD(mixed_bw), .argument = "BYTES/S",
     .unit = "bytes per second", .range = "above 0", .initial = "measured or assumed",
     .summary = "Bandwidth of the drive while it reads and writes at the same time, for predictions.",
     .more = "It is the sum of both directions. If a device limits each direction separately (a "
             "network, a throttled volume), give the sum of --read-bw and --write-bw. If only one of "
             "these two is given, the default is the rate of a device that reads and writes by turns."},
    {"rate", 0, MX_GROUP_RATES, BOTH | LOOPS, 0, 1, .take = mx_ask_real, FIELD(rate), .argument = "UPDATES/S",
     .unit = "cells per second", .range = "above 0", .initial = "measured or assumed",
     .summary = "Speed of the computation, for predictions.",
     .more = "Without --rate, and without a calibration with your kernel, the tuner takes the time of tiles "
             "that memext computed after it had compiled the kernel. For a .so, and for a described machine, "
             "it guesses the speed. For `memext wavefront` it is the speed of one thread."},
    {"calibrate", 0, MX_GROUP_RATES, BOTH, TUNE, .take = mx_ask_flag, FIELD(calibrate),
     .summary = "Measures bandwidth and update rate in about 7 seconds, for later plans too.",
     .more =
         "First it measures each rate several times, in alternation, for about 4 seconds. The "
         "speed of a shared machine changes, so one measurement is not enough. Then it looks for a faster "
         "slab, tile or number of levels of engine tiled, for about 3 seconds. It does so for built-in "
         "stencils alone. The result holds for this stencil, type and row length.\n"
         "It measures rates in 128 MiB, or in three times the L3 caches if that is more. It looks "
         "for sizes in up to 256 MiB, or twice the L3 caches. A quarter of the memory is the most "
         "for both, and `memext run` also keeps its --dram, and 64 MiB beside it. Rates that were "
         "measured in less than twice the L3 caches are those of a cache. memext uses them once, "
         "does not keep them for later plans, and says so.\n"
         "`memext tune` prints the result. Later plans for such rows use it unless --slab, --tile "
         "or --column is given."},
    {"calibrate-seconds", 0, MX_GROUP_RATES, TUNE, 0, 1, .take = mx_ask_real, FIELD(calibrate_s),
     .argument = "SECONDS", .unit = "seconds", .range = "above 0, at most 60",
     .summary = "Measures the rates alone, for about SECONDS, and looks for no new sizes of tiles.",
     .more = "1 or 2 seconds are enough to see how fast the machine is at present."},

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
     .summary = "Plans for the machine that an XML file of hwloc describes (there: lstopo FILE.xml).",
     .excludes = "calibrate", .because = "rates are measured on this machine", .needs = "dry-run"},
    {"align", 0, MX_GROUP_MACHINE, BOTH, 0, 1, .take = mx_ask_size, FIELD(align_bytes), LIMITS(1, 1 << 20),
     .argument = "SIZE", .unit = "bytes", .initial = "that of the place; without a place, the size of a cell",
     .summary = "Alignment of rows on the drive to plan for.", .needs = "dry-run"},
    {"capacity", 0, MX_GROUP_MACHINE, BOTH, 0, 1, .take = mx_ask_size, FIELD(capacity_bytes),
     LIMITS(1, UINT64_MAX), .argument = "SIZE", .unit = "bytes",
     .initial = "that of the place; without a place, no limit", .summary = "Size of the drive to plan for.",
     .needs = "dry-run"},
    {.name = NULL},
};
