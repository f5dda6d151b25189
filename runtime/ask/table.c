/* SPDX-License-Identifier: BSD-3-Clause */
#include "ask/table.h"
#include "ask/take.h"
#include "grid/grid.h"
#include "link/link.h"
#include "tune/tune.h"

#include <errno.h>
#include <string.h>

#define AT(field) offsetof(struct mx_options, field)
#define RUN (MX_CMD_RUN | MX_CMD_LIBRARY)
#define BOTH (RUN | MX_CMD_TUNE)
#define EVERY (MX_CMD_RUN | MX_CMD_TUNE | MX_CMD_INFO | MX_CMD_EXPORT)

const struct mx_option mx_option_rows[] = {
    {"size", 'n', BOTH, 3, mx_ask_counts, AT(problem.nx), 1, MX_MOST_EXTENT, "NX NY NZ",
     "interior cells of the grid (with --input: taken from the file)"},
    {"steps", 't', BOTH, 1, mx_ask_counts, AT(problem.nt), 0, MX_MOST_STEPS, "NT",
     "time steps; with --resume another number than before if the run is to end earlier or go on"},
    {"device", 'd', BOTH | MX_CMD_INFO, 1, mx_ask_text, AT(path), 0, 0, "PATH",
     "directory, file or block device that holds the Buffers"},
    {"backend", 0, BOTH | MX_CMD_EXPORT, 1, mx_ask_text, AT(backend), 0, 0, "B",
     "dram | swap | mmap | aio | uring (default: uring, else aio)"},
    {"algorithm", 0, BOTH, 1, mx_ask_text, AT(algorithm), 0, 0, "A",
     "direct | direct-skewed | direct-skewed-opt | redundant | skewed | skewed-y | skewed-min | stream | "
     "resident, or "
     "the papers' names"},
    {"tuner", 0, BOTH, 1, mx_ask_text, AT(tuner), 0, 0, "T",
     "blk | naive | manual (default: blk; manual when --block is given)"},
    {"block", 0, BOTH, 3, mx_ask_counts, AT(by), 1, MX_MOST_EXTENT, "BY BZ BT",
     "Block size in rows, planes and time steps (manual tuner)"},
    {"iblock", 0, BOTH, 2, mx_ask_counts, AT(iy), 1, MX_MOST_EXTENT, "IY IZ",
     "iBlock size in rows and planes"},
    {"engine", 0, BOTH, 1, mx_ask_text, AT(engine), 0, 0, "E",
     "iblock (the papers') | tiled (temporal blocking in cache); device with --accel"},
    {"slab", 0, BOTH, 1, mx_ask_count, AT(slab), 1, MX_MOST_SLAB, "PLANES",
     "planes that one step of a z-pipelined schedule moves on"},
    {"tile", 0, BOTH, 2, mx_ask_counts, AT(tile), 1, MX_MOST_EXTENT, "ROWS LEVELS",
     "tiled engine: rows of a tile, levels of a chunk"},
    {"column", 0, BOTH, 1, mx_ask_count, AT(column), 1, MX_MOST_COLUMN, "CELLS",
     "tiled engine: cells in x of a tile; nx or more = whole rows"},
    {"ahead", 0, BOTH, 1, mx_ask_count, AT(ahead), 1, MX_MOST_AHEAD, "SLABS",
     "slabs read ahead of the computation (default 2)"},
    {"stencil", 0, BOTH, 1, mx_ask_stencil, 0, 0, 0, "S",
     "star7 | edge19 | box27 | star13 ... star49 (default star7)"},
    {"coef", 0, BOTH, 1, mx_ask_coef, 0, 0, 0, "C,F,E,K",
     "weights: centre, face, edge, corner (defaults: see memext info)"},
    {"dtype", 0, BOTH, 1, mx_ask_dtype, 0, 0, 0, "T", "f64 | f32 (default f64)"},
    {"dram", 0, BOTH | MX_CMD_INFO, 1, mx_ask_size, AT(dram_bytes), 1 << 20, UINT64_MAX, "SIZE",
     "DRAM the run may see (default: the smaller of the machine's and the cgroup's limit)"},
    {"reserve", 0, BOTH, 1, mx_ask_reserve, 0, 0, 0, "SIZE|paper|auto",
     "DRAM left to the system (default: auto, 0 with --dram; paper: 1 GiB + 128 MiB per core)"},
    {"threads", 0, BOTH, 1, mx_ask_count, AT(threads), 1, MX_MOST_THREADS, "N",
     "compute threads (default: the cores of this process)"},
    {"ranks", 0, MX_CMD_RUN | MX_CMD_TUNE, 1, mx_ask_count, AT(ranks), 1, MX_RANKS_MOST, "P",
     "processes of this machine that share the planes, or how many of mpirun's there are (tune: to plan "
     "for)"},
    {"rank-weights", 0, MX_CMD_RUN | MX_CMD_TUNE, 1, mx_ask_text, AT(rank_weights), 0, 0, "W,W,...",
     "planes of each rank, in proportion (default: all alike)"},
    {"link", 0, MX_CMD_RUN | MX_CMD_TUNE, 1, mx_ask_link, 0, 0, 0, "[NAME][,RATE[,LATENCY]]",
     "how ranks reach one another: local | mpi (default: mpi where mpirun has started them, else local); "
     "what the link does, as 10Gbit,20us (default: measured)"},
    {"accel", 0, BOTH, 1, mx_ask_text, AT(accel), 0, 0, "NAME[,KEY=VALUE...]",
     "compute in the memory of an accelerator: host | opencl | cuda | auto (memext info lists them)"},
    {"device-memory", 0, BOTH, 1, mx_ask_size, AT(device_memory), 1 << 16, UINT64_MAX, "SIZE",
     "memory of the accelerator that may be used (default: all it has)"},
    {"plan", 0, RUN, 1, mx_ask_text, AT(plan), 0, 0, "LINE|FILE", "run this plan, as printed by memext tune"},
    {"advice", 0, RUN, 1, mx_ask_advice, 0, 0, 0, "A",
     "mmap and swap: none | sequential | random | willneed | hugepage | schedule (default none)"},
    {"kernel", 0, BOTH, 1, mx_ask_text, AT(kernel), 0, 0, "FILE.c|FILE.so",
     "compute with this kernel (memext/cell.h) instead of a built-in stencil"},
    {"param", 0, BOTH, 1, mx_ask_words, AT(params), 0, 0, "NAME=VALUE",
     "value of a parameter of the kernel; may be repeated"},
    {"field", 0, BOTH, 1, mx_ask_words, AT(fields), 0, 0, "NAME=FILE",
     "field that the kernel only reads: a .npy file, or raw cells: "
     "NAME=FILE,TYPE[,offset=BYTES][,frame=yes|no]; "
     "repeated"},
    {"field-copy", 0, BOTH, 0, mx_ask_flag, AT(field_copy), 0, 0, NULL,
     "copy files of --field into the store instead of reading them where they are"},
    {"in-place", 0, BOTH, 0, mx_ask_flag, AT(in_place), 0, 0, NULL,
     "kernels that read the old value: one pair of Buffers instead of two; such a run cannot be resumed"},
    {"side", 0, BOTH, 1, mx_ask_words, AT(sides), 0, 0, "x=KIND[,KIND]",
     "what the frame is on both sides, or on each, in x, y or z: fixed | mirror | periodic (default fixed)"},
    {"source", 0, RUN, 1, mx_ask_words, AT(point_sources), 0, 0, "FIELD@X,Y,Z=FILE.npy",
     "add the file's numbers, one a step, to this cell after its update (field u without a kernel); "
     "repeated"},
    {"sources", 0, RUN, 1, mx_ask_text, AT(sources), 0, 0, "FILE", "a file of such sources, one a line"},
    {"probes", 0, RUN, 1, mx_ask_text, AT(probes), 0, 0, "FILE",
     "record cells after every step: a file with FIELD X Y Z in each line"},
    {"probes-out", 0, RUN, 1, mx_ask_text, AT(probes_out), 0, 0, "TRACES.npy",
     "where to: a row a step, a column for each probe, f64; grows while the run goes on"},
    {"check", 0, BOTH, 1, mx_ask_count, AT(check), 1, MX_MOST_STEPS, "EVERY",
     "norms of the change, and a kernel's own (MX_REDUCE), every so many steps and after the last"},
    {"until", 0, RUN, 1, mx_ask_words, AT(untils), 0, 0, "NAME=VALUE[,above][,floor=F]",
     "end at the first check where max-change, rms-change, or a NAME or NAME-spread of the kernel is at most "
     "VALUE (,above: at least); a spread is relative to the mean of the planes, or to the floor F where that "
     "is greater (--check 100 if not given). Repeat it: the first criterion met ends the run; none drops "
     "those "
     "of the store"},
    {"nonfinite", 0, BOTH, 1, mx_ask_nonfinite, 0, 0, 0, "end|ignore",
     "end: a state with cells that are NaN or infinite is not committed and ends the run with status 6; "
     "ignore: they are there on purpose, and only counted (default end; with --resume as before)"},
    {"snapshot", 0, BOTH, 1, mx_ask_snapshot, 0, 0, 0, "EVERY:DIR[:STRIDE]",
     "every EVERY steps the state (every STRIDE-th cell in x, y and z) as .npy files in a directory, written "
     "while the run goes on"},
    {"snapshot-fields", 0, BOTH, 1, mx_ask_text, AT(snapshot_fields), 0, 0, "NAME,...",
     "fields of --snapshot (default: all of the state)"},
    {"frame", 0, BOTH, 1, mx_ask_words, AT(frames), 0, 0, "[FIELD=]KIND",
     "files of --input come without a frame (--field: may), and it is made: edge | mirror | periodic | a "
     "number; included: they have it (default); repeated"},
    {"init", 0, BOTH, 1, mx_ask_init, AT(init), 0, 0, "[FIELD=]NAME",
     "initial grid: random | gauss | linear | corner | zero (default random); with a kernel per field"},
    {"input", 0, BOTH, 1, mx_ask_input, AT(input), 0, 0, "[FIELD=]GRID.npy",
     "initial grid, frame included unless --frame says otherwise; -n follows from it; with a kernel per "
     "field; or raw cells: FILE,TYPE[,offset=BYTES]"},
    {"output", 'o', BOTH | MX_CMD_EXPORT, 1, mx_ask_output, AT(output), 0, 0, "[FIELD=]GRID.npy",
     "write the result, frame included; with a kernel per field"},
    {"output-frame", 0, BOTH | MX_CMD_EXPORT, 1, mx_ask_output_frame, 0, 0, 0, "included|none",
     "whether files of --output have the frame (default: included)"},
    {"overwrite", 0, BOTH | MX_CMD_EXPORT, 0, mx_ask_flag, AT(overwrite), 0, 0, NULL,
     "replace the file of --output if it is there"},
    {"commit-every", 0, BOTH, 1, mx_ask_commit_every, 0, 0, 0, "SECONDS",
     "time between commits, with a third Buffer; 0: after every sweep, with two (default: by the length of a "
     "sweep and the space; of ranks 0)"},
    {"integrity", 0, BOTH, 0, mx_ask_flag, AT(integrity), 0, 0, NULL,
     "keep hashes of what is stored and check whatever is loaded"},
    {"verify", 0, BOTH, 0, mx_ask_flag, AT(verify), 0, 0, NULL, "recompute plainly and compare bit by bit"},
    {"resume", 0, RUN, 0, mx_ask_flag, AT(resume), 0, 0, NULL,
     "continue an interrupted run from its last committed sweep"},
    {"same", 0, MX_CMD_LIBRARY, 0, mx_ask_flag, AT(same), 0, 0, NULL,
     "with resume: the options say all of the problem, and what is not given has its default"},
    {"keep", 0, BOTH, 0, mx_ask_flag, AT(keep), 0, 0, NULL, "leave the store in the directory after the run"},
    {"force", 0, RUN, 0, mx_ask_flag, AT(force), 0, 0, NULL,
     "overwrite what is in the place: another run's store, a foreign file, a device with a known signature"},
    {"no-lock", 0, BOTH | MX_CMD_EXPORT, 0, mx_ask_flag, AT(no_lock), 0, 0, NULL,
     "go on where the file system has no locks; nobody else may use the place"},
    {"dry-run", 0, RUN, 0, mx_ask_flag, AT(dry_run), 0, 0, NULL, "print plan and predictions, touch nothing"},
    {"queue-depth", 0, RUN, 1, mx_ask_count, AT(queue_depth), 1, 4096, "N",
     "requests in flight (default 32)"},
    {"request-size", 0, RUN, 1, mx_ask_size, AT(request_bytes), 512, 1u << 30, "SIZE",
     "longest single request (default 1 MiB)"},
    {"workers", 0, RUN, 1, mx_ask_count, AT(workers), 1, 64, "N", "mapped backends: copying threads"},
    {"sqpoll", 0, RUN, 0, mx_ask_flag, AT(sqpoll), 0, 0, NULL, "uring: kernel thread submits"},
    {"iopoll", 0, RUN, 0, mx_ask_flag, AT(iopoll), 0, 0, NULL, "uring: poll for completions"},
    {"uncached", 0, RUN, 0, mx_ask_flag, AT(uncached), 0, 0, NULL, "uring: buffered I/O with RWF_DONTCACHE"},
    {"no-register", 0, RUN, 0, mx_ask_flag, AT(no_register), 0, 0, NULL,
     "uring: no registered memory and files"},
    {"no-fuse", 0, BOTH, 0, mx_ask_flag, AT(no_fuse), 0, 0, NULL,
     "write the initial grid before the first sweep, and read the result after the last, in passes of their "
     "own"},
    {"lock", 0, RUN, 0, mx_ask_flag, AT(lock), 0, 0, NULL, "mlock the Blocks (swap always does)"},
    {"fault", 0, RUN, 1, mx_ask_text, AT(fault), 0, 0, "SPEC",
     "tests: call=N (system call N fails); with --backend fault:NAME e.g. seed=7,eio=0.01,short=0.1"},
    {"timeline", 0, RUN, 1, mx_ask_text, AT(timeline), 0, 0, "FILE",
     "samples of the run every 100 ms as JSON lines"},
    {"trace", 0, RUN, 1, mx_ask_text, AT(trace), 0, 0, "FILE",
     "block I/O and compute as a Chrome/Perfetto trace"},
    {"cores", 0, MX_CMD_TUNE, 1, mx_ask_count, AT(cores), 1, 65536, "N", "offline: cores"},
    {"sockets", 0, MX_CMD_TUNE, 1, mx_ask_count, AT(sockets), 1, 1024, "N", "offline: sockets"},
    {"l2", 0, MX_CMD_TUNE, 1, mx_ask_size, AT(l2_bytes), 1024, UINT64_MAX, "SIZE",
     "offline: L2 cache of a core"},
    {"l3", 0, MX_CMD_TUNE, 1, mx_ask_size, AT(l3_bytes), 1024, UINT64_MAX, "SIZE",
     "offline: L3 cache of a socket"},
    {"topology", 0, MX_CMD_TUNE, 1, mx_ask_text, AT(topology), 0, 0, "XML",
     "offline: machine of an hwloc XML file"},
    {"align", 0, MX_CMD_TUNE, 1, mx_ask_size, AT(align_bytes), 1, 1 << 20, "SIZE",
     "offline: alignment of rows on the device (default: element)"},
    {"capacity", 0, MX_CMD_TUNE, 1, mx_ask_size, AT(capacity_bytes), 1, UINT64_MAX, "SIZE",
     "offline: size of the device"},
    {"read-bw", 0, BOTH, 1, mx_ask_real, AT(read_bw), 0, 0, "BYTES/S", "device read bandwidth to plan with"},
    {"write-bw", 0, BOTH, 1, mx_ask_real, AT(write_bw), 0, 0, "BYTES/S",
     "device write bandwidth to plan with"},
    {"mixed-bw", 0, BOTH, 1, mx_ask_real, AT(mixed_bw), 0, 0, "BYTES/S",
     "device bandwidth of reads and writes together, the sum of both, to plan with (default, where one of "
     "the others is given: they take turns)"},
    {"rate", 0, BOTH, 1, mx_ask_real, AT(rate), 0, 0, "UPDATES/S", "update rate to plan with"},
    {"exhaustive", 0, MX_CMD_TUNE, 0, mx_ask_flag, AT(exhaustive), 0, 0, NULL,
     "search every parameter combination"},
    {"calibrate", 0, BOTH, 0, mx_ask_flag, AT(calibrate), 0, 0, NULL,
     "measure bandwidth and update rate again"},
    {"calibrate-seconds", 0, MX_CMD_TUNE, 1, mx_ask_real, AT(calibrate_s), 0, 0, "SECONDS",
     "--calibrate in about so long, with the sizes of the tiled engine that are known"},
    {"explain", 0, MX_CMD_RUN | MX_CMD_TUNE, 0, mx_ask_flag, AT(explain), 0, 0, NULL,
     "say before the run what was tried and why the plan won"},
    {"json", 0, EVERY, 1, mx_ask_text, AT(json), 0, 0, "FILE|-", "write the report as one JSON object"},
    {"quiet", 'q', EVERY, 0, mx_ask_flag, AT(quiet), 0, 0, NULL, "no progress, no summary"},
    {"help", 'h', EVERY, 0, mx_ask_help, 0, 0, 0, NULL, "this text"},
    {.name = NULL},
};
enum { N_ROWS = sizeof mx_option_rows / sizeof mx_option_rows[0] - 1 };
_Static_assert(N_ROWS <= MX_OPTIONS_MOST, "one bit for each option in mx_options.given");

const struct mx_option *mx_option_find(enum mx_command command, const char *name) {
    for (const struct mx_option *row = mx_option_rows; row->name != NULL; row++)
        if ((row->commands & command) && strcmp(row->name, name) == 0) return row;
    return NULL;
}

int mx_option_take(const struct mx_option *row, const char *value, struct mx_options *o, mx_why *why) {
    const size_t i = (size_t)(row - mx_option_rows);
    if (row->words > 0 && value == NULL)
        return mx_fail(why, -EINVAL, "option '%s' needs a value: %s=%s", row->name, row->name, row->argument);
    if (row->words == 0 && value != NULL)
        return mx_fail(why, -EINVAL, "option '%s' takes no value", row->name);
    int err = row->take(row, value, o, why);
    if (err == 0) o->given[i / 64] |= UINT64_C(1) << (i % 64);
    return err;
}

bool mx_option_given(const struct mx_options *o, const char *name) {
    for (int i = 0; i < N_ROWS; i++)
        if (strcmp(mx_option_rows[i].name, name) == 0) return o->given[i / 64] >> (i % 64) & 1;
    return false;
}
