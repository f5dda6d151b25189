/* SPDX-License-Identifier: BSD-3-Clause */
/* rows_place.c - where the store lies, how its bytes move, commits and resuming. */
#include "ask/rows.h"

const struct mx_option mx_rows_place[] = {
    {"device", 'd', MX_GROUP_PLACE, BOTH | INFO | LOOP, FIRST | INFO | LOOP, 1, .take = mx_ask_text,
     FIELD(path), .argument = "PATH", .summary = "Directory, file or block device that holds the store.",
     .more =
         "In a directory a store is made and removed after the run. A path where nothing is yet becomes a "
         "new "
         "store only if its name ends in `.memext` or `.store`. Any other is refused, for it may be a "
         "directory "
         "that is missing.\n"
         "The file of a former run is used again with the blocks it has. Most file systems are slower when "
         "blocks are written for the first time.\n"
         "memext refuses a device that is mounted, held or carries a known signature. It refuses a file that "
         "it did not make, and a store with an interrupted or kept result. Two runs never share a place. "
         "Links to files "
         "are not followed, and the store of another user is refused.\n"
         "Pipes, sockets and character devices are refused here and by all options that name files."},
    {"backend", 0, MX_GROUP_PLACE, BOTH | EXPORT | LOOP, FIRST | LOOP, 1, .take = mx_ask_backend,
     FIELD(backend), .argument = "B", .value_at = mx_value_backend, .initial = "uring, or aio where it fails",
     .summary = "How data moves between the store and memory.",
     .more = "* `dram`: anonymous memory, all of it resident: the normal execution. It needs no -d.\n"
             "* `swap`: anonymous memory that Linux moves to swap space. Blocks are locked in DRAM. It "
             "needs no -d.\n"
             "* `mmap`: shared mappings, moved by the page cache.\n"
             "* `aio`: Linux native asynchronous I/O with O_DIRECT.\n"
             "* `uring`: io_uring with O_DIRECT, registered memory and a registered file."},
    {"advice", 0, MX_GROUP_PLACE, RUN | LOOP, 0, 1, .take = mx_ask_advice, .argument = "A",
     .value_at = mx_value_advice, .closed = true, .initial = "none; `memext wavefront` on mmap: schedule",
     .summary = "What Linux is told about mapped memory.",
     .more =
         "It is for backends `mmap` and `swap`. With `schedule` each region is asked for just before it is "
         "needed and dropped when it is done."},
    {"force", 0, MX_GROUP_PLACE, RUN | LOOP, MX_CMD_RUN | LOOP, .take = mx_ask_flag, FIELD(force),
     .summary = "Overwrites what is in the place.",
     .more =
         "That is another run's store, a foreign file, or a device with a known signature. A request that is "
         "refused leaves all of it as it was. Cells of the initial grid are looked at while they are read, "
         "when "
         "the former content is gone already: an initial grid with NaN does not leave it.",
     .excludes = "resume", .because = "--force starts anew and --resume goes on"},
    {"keep", 0, MX_GROUP_PLACE, BOTH | LOOP, MX_CMD_RUN | LOOP, .take = mx_ask_flag, FIELD(keep),
     .summary = "Leaves the store in the directory after the run.",
     .more = "Runs that go on with it by --resume leave it too."},
    {"no-lock", 0, MX_GROUP_PLACE, BOTH | EXPORT | LOOP, 0, .take = mx_ask_flag, FIELD(no_lock),
     .summary = "Continues on file systems that have no locks.",
     .more = "Locks (flock) keep a second memext out of a place. Without locks you must make sure that no "
             "other memext uses the place."},

    {"resume", 0, MX_GROUP_RESUME, RUN | LOOP, MX_CMD_RUN | LOOP, .take = mx_ask_flag, FIELD(resume),
     .summary = "Continues an interrupted run from its last commit.",
     .more = "The problem is that of the store. Options of the problem may be left out. Those that are given "
             "are compared with the store, and a run of another problem is refused with what differs.\nA "
             "file counts as the same if its length, the place of its cells and samples of its content are "
             "the same. A file of more than 256 KiB must also have the same time of change, and the same "
             "name or inode.\nBackend, threads, --dram, plan and algorithm (`redundant` or `stream`) may be "
             "others, here or on another machine. The layout of the stored rows has to allow it. Direct "
             "transfers need rows or planes that are multiples of the device's blocks; `mmap` does not."},
    {"same", 0, MX_GROUP_RESUME, MX_CMD_LIBRARY, .take = mx_ask_flag, FIELD(same),
     .summary = "With resume: the options describe the whole problem.",
     .more =
         "What is not given has its default and is compared with the store like what is given. Programs use "
         "it; the command does not have it.",
     .needs = "resume"},
    {"supersede", 0, MX_GROUP_RESUME, MX_CMD_LIBRARY, .take = mx_ask_flag, FIELD(supersede),
     .summary = "The run begins with what the store in its place holds.",
     .more = "The store stays whole until the first commit of the run, which replaces it. Until then a "
             "program can read it and give its fields as values. The run in it must be done, unless force is "
             "given. Ranks are refused. Programs use it; the command does not have it.",
     .excludes = "resume verify", .because = "the store is gone once the run has committed",
     .needs = "device"},
    {"commit-every", 0, MX_GROUP_RESUME, BOTH, 0, 1, .take = mx_ask_commit_every, .argument = "SECONDS",
     .unit = "seconds", .range = "0 to 2592000", .zero = "a commit after every sweep, with two Buffers",
     .initial = "30 with a third Buffer for more than two sweeps, each under 5 s, if four Buffers fit; else, "
                "and with "
                "ranks, 0",
     .summary = "Time from one commit to the next.",
     .more = "With more than 0 a third Buffer keeps the committed state while the other two take turns. "
             "Sweeps in between cost nothing then.\nAn interrupt commits the last complete sweep. Sweeps of "
             "a plan that the tuner chose take ten minutes at most by prediction.\nWith several ranks, rank "
             "0 decides which sweeps all ranks commit, and the default is 0. An interrupt leaves the last "
             "state that all ranks have committed."},
    {"integrity", 0, MX_GROUP_RESUME, BOTH, 0, .take = mx_ask_flag, FIELD(integrity),
     .summary = "Keeps hashes of stored data and checks all that is loaded.",
     .more = "Each row or plane has a hash (XXH3) beside the data. A device that gives back other data ends "
             "the run with status 3. A read-only field that was copied into the store has a hash for each 4 "
             "KiB. Hashes exist only for the newest state, so a resumed run writes the frames of older "
             "Buffers again."},
    {"verify", 0, MX_GROUP_RESUME, BOTH | LOOP, MX_CMD_RUN | LOOP, .take = mx_ask_flag, FIELD(verify),
     .summary = "Recomputes the grid plainly and compares it bit by bit."},

    {"queue-depth", 0, MX_GROUP_TRANSFERS, RUN | LOOP, 0, 1, .take = mx_ask_count, FIELD(queue_depth),
     LIMITS(1, 4096), .argument = "N", .unit = "requests", .initial = "32",
     .summary = "Transfers in flight at a time."},
    {"request-size", 0, MX_GROUP_TRANSFERS, RUN | LOOP, 0, 1, .take = mx_ask_size, FIELD(request_bytes),
     LIMITS(512, 1u << 30), .argument = "SIZE", .unit = "bytes", .initial = "1 MiB",
     .summary = "Longest single transfer."},
    {"workers", 0, MX_GROUP_TRANSFERS, RUN | LOOP, 0, 1, .take = mx_ask_count, FIELD(workers), LIMITS(1, 64),
     .argument = "N", .unit = "threads", .initial = "the number of cores, at most 4",
     .summary = "Threads that copy, on mapped backends.",
     .more = "With --accel cuda or opencl the default is the number of threads of the plan, at most 64."},
    {"sqpoll", 0, MX_GROUP_TRANSFERS, RUN, 0, .take = mx_ask_flag, FIELD(sqpoll),
     .summary = "uring: a thread of Linux submits."},
    {"iopoll", 0, MX_GROUP_TRANSFERS, RUN, 0, .take = mx_ask_flag, FIELD(iopoll),
     .summary = "uring: polls for completions, which needs a device with poll queues."},
    {"uncached", 0, MX_GROUP_TRANSFERS, RUN, 0, .take = mx_ask_flag, FIELD(uncached),
     .summary = "uring: buffered I/O with RWF_DONTCACHE instead of O_DIRECT."},
    {"no-register", 0, MX_GROUP_TRANSFERS, RUN, 0, .take = mx_ask_flag, FIELD(no_register),
     .summary = "uring: registers neither memory nor the file."},
    {"no-fuse", 0, MX_GROUP_TRANSFERS, BOTH, 0, .take = mx_ask_flag, FIELD(no_fuse),
     .summary = "Writes the initial grid and reads the result in passes of their own.",
     .more = "By default the first sweep reads --input itself or makes the values of --init, and the last "
             "sweep gives checksum and output. That needs backend `uring` or `aio` and algorithm `stream` or "
             "`redundant`. With O_DIRECT the input is read directly where its place allows that.\nRuns with "
             "--integrity, with --accel, or with a kernel that reads the old value use passes of their own. "
             "A grid from a program needs a pass for the input. --until needs one for checksum and output. "
             "The report says under `fused` what was done, or why not, and under `phases` the seconds and "
             "bytes of each. `memext tune` predicts the same.\nSome runs leave only their output: those in a "
             "directory without --keep, --verify, --probes-out, --snapshot and --until. If a sweep should "
             "take less than 30 s, memext may write the last one to the output alone. If it ends before that "
             "file is whole, --resume computes the sweep again. A run whose first sweep reads the input can "
             "be resumed before its first commit only if the input is unchanged."},
    {"lock", 0, MX_GROUP_TRANSFERS, RUN, 0, .take = mx_ask_flag, FIELD(lock),
     .summary = "Locks the Blocks in DRAM, as swap always does."},
    {"fault", 0, MX_GROUP_TRANSFERS, RUN | LOOP, 0, 1, .take = mx_ask_text, FIELD(fault), .argument = "SPEC",
     .summary = "For tests: makes a call or transfers fail.",
     .more = "`call=N` fails the N-th system call that concerns a file; `errno=E` says how. With "
             "`--backend fault:NAME` it describes errors and short or reordered transfers, such as "
             "`seed=7,eio=0.01,short=0.1`."},
    {.name = NULL},
};
