/* SPDX-License-Identifier: BSD-3-Clause */
/* rows_place.c - where the store lies, how its bytes move, commits and resuming. */
#include "ask/rows.h"

const struct mx_option mx_rows_place[] = {
    {"device", 'd', MX_GROUP_PLACE, BOTH | INFO | LOOP, FIRST | INFO | LOOP, 1, .take = mx_ask_text,
     FIELD(path), .argument = "PATH", .summary = "Directory, file or block device that holds the store.",
     .more = "If PATH is a directory, memext makes a store in it and removes the store after the run. A path "
             "that does not exist becomes a new store only if its name ends in `.memext` or `.store`. memext "
             "refuses any other, because it may be a directory that is missing.\n"
             "Where memext replaces a store, it keeps the disk blocks of the file. Most file systems are "
             "slower when blocks are written for the first time.\n"
             "memext refuses a device that is mounted or in use. Without --force it also refuses a device "
             "that holds data: a partition table, a file system or the like that memext recognizes. Without "
             "--force it refuses a file of another user, a file that it did not make, and a store with an "
             "interrupted or kept result. Two runs never share a place. Links to files are not followed.\n"
             "Pipes, sockets and character devices are refused here and by all options that name files."},
    {"backend", 0, MX_GROUP_PLACE, BOTH | EXPORT | LOOP, FIRST | LOOP, 1, .take = mx_ask_backend,
     FIELD(backend), .argument = "B", .value_at = mx_value_backend,
     .initial = "uring, or aio if uring does not work here",
     .summary = "How data moves between the store and memory.",
     .more = "* `dram`: anonymous memory, all of it resident, for grids that fit in memory. It needs "
             "no -d.\n"
             "* `swap`: anonymous memory that Linux moves to swap space. Blocks are locked in DRAM. "
             "It needs no -d.\n"
             "* `mmap`: shared mappings, moved by the page cache.\n"
             "* `aio`: Linux native asynchronous I/O with O_DIRECT.\n"
             "* `uring`: the interface io_uring with O_DIRECT, registered memory and a registered "
             "file."},
    {"advice", 0, MX_GROUP_PLACE, RUN | LOOP, 0, 1, .take = mx_ask_advice, .argument = "A",
     .value_at = mx_value_advice, .closed = true,
     .initial = "none; schedule for `memext wavefront` with --backend mmap",
     .summary = "What memext tells Linux about mapped memory: values of madvise, or schedule.",
     .more = "It is for backends `mmap` and `swap`. With `schedule` memext asks for each region just "
             "before it needs it, and drops the region when it is done with it."},
    {"force", 0, MX_GROUP_PLACE, RUN | LOOP, MX_CMD_RUN | LOOP, .take = mx_ask_flag, FIELD(force),
     .summary = "Overwrites a store, file or device of -d that memext would refuse.",
     .more = "That is another run's store, a file of another user or one that memext did not make, or a "
             "device that holds data. Other files of a directory stay. A request that memext refuses leaves "
             "all of it as it was, with one exception: an initial grid with NaN. memext finds NaN only while "
             "it reads the grid, and the old content is gone by then.",
     .excludes = "resume", .because = "--force starts a new run and --resume continues one"},
    {"keep", 0, MX_GROUP_PLACE, BOTH | LOOP, MX_CMD_RUN | LOOP, .take = mx_ask_flag, FIELD(keep),
     .summary = "Leaves the store in the directory after the run.",
     .more = "A later run that continues it with --resume leaves the store too."},
    {"no-lock", 0, MX_GROUP_PLACE, BOTH | EXPORT | LOOP, 0, .take = mx_ask_flag, FIELD(no_lock),
     .summary = "Accepts a place on a file system without locks.",
     .more = "Locks (flock) keep a second memext away from a store. Without locks you must make sure "
             "that no other memext uses the store."},

    {"resume", 0, MX_GROUP_RESUME, RUN | LOOP, MX_CMD_RUN | LOOP, .take = mx_ask_flag, FIELD(resume),
     .summary = "Continues an interrupted run, or a kept one to more steps.",
     .more = "An interrupted run continues from its last commit. The problem is that of the store, so you "
             "may leave the options of the problem out. memext compares those that you give with the store. "
             "It refuses a run of another problem, and says what differs.\n"
             "A file of --input or --field counts as the same if length, position of the cells and samples "
             "of the content are. A file of more than 256 KiB must also have the same time of change, and "
             "the same name or inode.\n"
             "Backend, threads, --dram, plan and algorithm (`redundant` or `stream`) may change, here or on "
             "another machine. memext refuses a change that the layout of the stored rows does not allow. "
             "Direct transfers (`uring`, `aio`) need rows or planes that are multiples of the device's "
             "blocks; `mmap` does not."},
    {"same", 0, MX_GROUP_RESUME, MX_CMD_LIBRARY, .take = mx_ask_flag, FIELD(same),
     .summary = "With resume: the options describe the whole problem.",
     .more = "An option that is not given has its default. memext compares that default with the "
             "store too. Only the library has this option.",
     .needs = "resume"},
    {"supersede", 0, MX_GROUP_RESUME, MX_CMD_LIBRARY, .take = mx_ask_flag, FIELD(supersede),
     .summary = "The run starts from values of a store, and replaces that store.",
     .more = "The old store stays complete until the first commit of the new run, which replaces it. "
             "Until then a program can read its fields and give them as values. The run of the old "
             "store must be complete, unless force is given. Several ranks are refused. Only the "
             "library has this option.",
     .excludes = "resume verify", .because = "the first commit of the run replaces the store",
     .needs = "device"},
    {"commit-every", 0, MX_GROUP_RESUME, BOTH, 0, 1, .take = mx_ask_commit_every, .argument = "SECONDS",
     .unit = "seconds", .range = "0 to 2592000", .zero = "a commit after every sweep, with two Buffers",
     .initial = "30 for short sweeps, else 0",
     .summary = "Time from one commit to the next; 0 means after every sweep.",
     .more = "If SECONDS is above 0, the store has a third Buffer. It keeps the last committed state while "
             "sweeps go back and forth between the other two. Sweeps between two commits then have no cost "
             "of commits.\n"
             "The default is 30 if the run has more than two sweeps, each below 5 s, and the place has room "
             "for four Buffers. One of the four stays free. Otherwise, and with several ranks, it is 0. A "
             "resumed run keeps its interval.\n"
             "An interrupt commits the last complete sweep. Whatever SECONDS is, the tuner chooses sweeps "
             "that it predicts to take at most ten minutes.\n"
             "With several ranks, rank 0 decides which sweeps all ranks commit. An interrupt leaves the last "
             "state that all ranks have committed."},
    {"integrity", 0, MX_GROUP_RESUME, BOTH, 0, .take = mx_ask_flag, FIELD(integrity),
     .summary = "Keeps hashes of stored data and checks all data that is loaded.",
     .more = "Each row or plane has a hash (XXH3) beside the data. If data that is read differs from what "
             "was written, the run ends with status 3. A read-only field that was copied into the store has "
             "a hash for each 4 KiB. Hashes exist only for the newest state. A resumed run may therefore "
             "begin with copies of that state to the other Buffers."},
    {"verify", 0, MX_GROUP_RESUME, BOTH | LOOP, MX_CMD_RUN | LOOP, .take = mx_ask_flag, FIELD(verify),
     .summary = "Computes the result again without Blocks and compares bit by bit.",
     .more = "This can take several times as long as the run."},

    {"queue-depth", 0, MX_GROUP_TRANSFERS, RUN | LOOP, 0, 1, .take = mx_ask_count, FIELD(queue_depth),
     LIMITS(1, 4096), .argument = "N", .unit = "requests", .initial = "32",
     .summary = "Transfers in flight at a time."},
    {"request-size", 0, MX_GROUP_TRANSFERS, RUN | LOOP, 0, 1, .take = mx_ask_size, FIELD(request_bytes),
     LIMITS(4096, 1u << 30), .argument = "SIZE", .unit = "bytes", .initial = "1 MiB",
     .summary = "Longest single transfer."},
    {"workers", 0, MX_GROUP_TRANSFERS, RUN | LOOP, 0, 1, .take = mx_ask_count, FIELD(workers), LIMITS(1, 64),
     .argument = "N", .unit = "threads", .initial = "the number of cores, at most 4",
     .summary = "Threads that copy data, with backends dram, swap and mmap.",
     .more = "With --accel cuda or opencl the default is the number of threads of the plan, at most 64."},
    {"sqpoll", 0, MX_GROUP_TRANSFERS, RUN, 0, .take = mx_ask_flag, FIELD(sqpoll),
     .summary = "uring: a thread of Linux submits the requests, which takes a core."},
    {"iopoll", 0, MX_GROUP_TRANSFERS, RUN, 0, .take = mx_ask_flag, FIELD(iopoll),
     .summary = "uring: polls for completions, which needs a device with poll queues."},
    {"uncached", 0, MX_GROUP_TRANSFERS, RUN, 0, .take = mx_ask_flag, FIELD(uncached),
     .summary = "uring: buffered I/O with RWF_DONTCACHE instead of O_DIRECT."},
    {"no-register", 0, MX_GROUP_TRANSFERS, RUN, 0, .take = mx_ask_flag, FIELD(no_register),
     .summary = "uring: registers neither memory nor the file (for a low limit of locked memory)."},
    {"no-fuse", 0, MX_GROUP_TRANSFERS, BOTH, 0, .take = mx_ask_flag, FIELD(no_fuse),
     .summary = "Writes the initial grid and reads the result in separate passes.",
     .more =
         "By default the first sweep reads --input itself or makes the values of --init. The last sweep also "
         "computes the checksum and writes the output. Both need backend `uring` or `aio` and algorithm "
         "`stream` or `redundant`. With O_DIRECT memext reads the input directly if the position of its "
         "cells allows that.\n"
         "Runs with --integrity, with --accel, or with a kernel that reads the old value use separate "
         "passes. If a program gives the grid (library), the input has its own pass. With --until, checksum "
         "and output have one. The report says under `fused` what was fused, or why not, and under `phases` "
         "the seconds and bytes of each phase. `memext tune` predicts fused runs in the same way.\n"
         "Without --keep, --verify, --probes-out, --snapshot and --until, a run in a directory leaves only "
         "its output. If a sweep should take less than 30 s, memext may then write the last sweep to the "
         "output file and not to the store. If the run ends before that file is complete, --resume computes "
         "the sweep again. A run whose first sweep reads the input can be resumed before its first commit "
         "only if the input is unchanged."},
    {"lock", 0, MX_GROUP_TRANSFERS, RUN, 0, .take = mx_ask_flag, FIELD(lock),
     .summary = "Locks the Blocks in DRAM, as --backend swap always does."},
    {"fault", 0, MX_GROUP_TRANSFERS, RUN | LOOP, 0, 1, .take = mx_ask_text, FIELD(fault), .argument = "SPEC",
     .summary = "For tests: makes a call or transfers fail.",
     .more = "`call=N,errno=E` makes the N-th system call on a file fail with the error number E. With "
             "`--backend fault:NAME` it describes errors and short or reordered transfers, such as "
             "`seed=7,eio=0.01,short=0.1`."},
    {.name = NULL},
};
