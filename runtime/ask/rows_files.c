/* SPDX-License-Identifier: BSD-3-Clause */
/* rows_files.c - what a run leaves: results, snapshots, reports. */
#include "ask/rows.h"

const struct mx_option mx_rows_files[] = {
    {"output", 'o', MX_GROUP_OUTPUT, BOTH | EXPORT, FIRST | EXPORT, 1, true, .take = mx_ask_output,
     .argument = "[FIELD=]GRID.npy", .summary = "Writes the result to a .npy file.",
     .more = "With a kernel, repeat it for each field that you want. The file includes the frame unless "
             "--output-frame none is given. The file is always .npy: memext refuses a name such as x.h5. "
             "From the store of a wavefront, `memext export` writes matrices, under the names of `memext "
             "wavefront --output`.\n"
             "memext checks the file and reserves its space before it computes. The file appears under its "
             "name when it is complete and on the disk, and --verify has found no difference. If memext "
             "cannot write it, the result stays in the store, for `memext export`."},
    {"output", 'o', MX_GROUP_OUTPUT, MX_CMD_VIEW, MX_CMD_VIEW, 1, .argument = "PNG",
     .initial = "the name of STORE or FILE with .png, in the current directory",
     .summary = "The picture to write."},
    {"output", 'o', MX_GROUP_WAVEFRONT, LOOP, LOOP, 1, true, .take = mx_ask_output,
     .argument = "NAME=FILE.npy", .summary = "Writes a matrix with its border to a file.",
     .more = "The names are those of --input. A file without a name is za."},
    {"dataset", 0, MX_GROUP_OUTPUT, MX_CMD_VIEW, MX_CMD_VIEW, 1, .argument = "NAME", .initial = "all",
     .summary = "Draws one field of a store, or one dataset of a file."},
    {"output-frame", 0, MX_GROUP_OUTPUT, BOTH | EXPORT, EXPORT, 1, .take = mx_ask_output_frame,
     .argument = "included|none", .value_at = mx_value_output_frame, .closed = true, .initial = "included",
     .summary = "Whether files of --output contain the frame."},
    {"overwrite", 0, MX_GROUP_OUTPUT, BOTH | EXPORT | LOOP, MX_CMD_RUN | EXPORT | LOOP, .take = mx_ask_flag,
     FIELD(overwrite), .summary = "Replaces results that exist already.",
     .more = "Without it memext refuses existing files of --output and --probes-out and existing snapshots. "
             "It always replaces the files of --json, --timeline and --trace, each of them in one step."},
    {"snapshot", 0, MX_GROUP_OUTPUT, BOTH, MX_CMD_RUN, 1, .take = mx_ask_snapshot,
     .argument = "EVERY:DIR[:STRIDE]", .initial = "none",
     .summary = "Saves the state as .npy files every EVERY steps.",
     .more = "The files of step 100 are called DIR/FIELD-000100.npy. The initial state has none. They hold "
             "the interior, or its cells 0, STRIDE, 2 STRIDE and so on in x, y and z. If the name of DIR "
             "ends in a colon and a number, give STRIDE as well.\n"
             "memext writes them while it computes, and waits only if their disk is slower. Algorithms that "
             "rewrite their Buffers in place wait until a snapshot is written.\n"
             "The files of a step appear when all of them are on the disk, before memext commits that step. "
             "A resumed run writes the snapshots after its committed step again, with the same bits. If DIR "
             "was moved, give the option with its new path.\n"
             "memext makes DIR if its parent directory exists. DIR is for one run alone: the file "
             "`memext.snapshots` in it names the run. Without --overwrite memext refuses a directory that "
             "holds anything else. With it memext removes the snapshots of another run, and leaves other "
             "files. It always refuses a foreign file with the name of one of its snapshots.\n"
             "The report has the cost under `snapshots`. When the disk is full the run ends with status 3 "
             "and can be resumed. `memext tune --snapshot` counts the shorter sweeps and the DRAM that "
             "snapshots need. It does not look at DIR.",
     .on_resume = MX_RESUME_SAME},
    {"snapshot-fields", 0, MX_GROUP_OUTPUT, BOTH, 0, 1, .take = mx_ask_text, FIELD(snapshot_fields),
     .argument = "NAME,...", .initial = "all of the state", .summary = "Fields that --snapshot saves.",
     .more = "A built-in stencil has the field `u`.", .needs = "snapshot", .on_resume = MX_RESUME_SAME},

    {"dry-run", 0, MX_GROUP_REPORT, RUN | LOOP, MX_CMD_RUN | LOOP, .take = mx_ask_flag, FIELD(dry_run),
     .summary = "Prints the plan and the predicted bytes and touches nothing.",
     .excludes = "resume calibrate", .because = "a dry run changes and measures nothing"},
    {"explain", 0, MX_GROUP_REPORT, MX_CMD_RUN | TUNE, TUNE, .take = mx_ask_flag, FIELD(explain),
     .summary = "Says which plans were tried and why one won."},
    {"exhaustive", 0, MX_GROUP_REPORT, TUNE, 0, .take = mx_ask_flag, FIELD(exhaustive),
     .summary = "Searches all plans, also those that cannot win, to check the tuner. It is slower."},
    {"json", 0, MX_GROUP_REPORT, EVERY, FIRST | INFO | LOOPS, 1, .take = mx_ask_text, FIELD(json),
     .argument = "FILE|-", .summary = "Writes the report as one JSON object; - is the standard output."},
    {"timeline", 0, MX_GROUP_REPORT, RUN | LOOP, 0, 1, .take = mx_ask_text, FIELD(timeline),
     .argument = "FILE", .summary = "Records samples of the run every 100 ms as JSON lines.",
     .more = "The section THE TIMELINE describes the lines."},
    {"trace", 0, MX_GROUP_REPORT, RUN | LOOP, 0, 1, .take = mx_ask_text, FIELD(trace), .argument = "FILE",
     .summary = "Records I/O and computation for Perfetto or Chrome.",
     .more = "Open the file at ui.perfetto.dev or chrome://tracing."},
    {"write-job", 0, MX_GROUP_REPORT, MX_CMD_RUN, 0, 1, .take = mx_ask_text, FIELD(write_job),
     .argument = "FILE|-", .summary = "Saves the options as a job file and runs nothing.",
     .more = "The section JOB FILES describes the file. memext refuses a file that exists unless "
             "--overwrite is given."},
    {"quiet", 'q', MX_GROUP_REPORT, EVERY, MX_CMD_RUN, .take = mx_ask_flag, FIELD(quiet),
     .summary = "Prints neither progress nor a summary.",
     .more = "Without it progress is a bar on a terminal. If the standard error is no terminal, it is one "
             "line per minute."},
    {"help", 'h', MX_GROUP_REPORT, EVERY | MX_CMD_KERNEL | MX_CMD_VIEW, EVERY | MX_CMD_KERNEL | MX_CMD_VIEW,
     .optional = true, .take = mx_ask_help, FIELD(topic), .argument = "[all|GROUP]",
     .summary = "Prints the most important options, all of them, or a group."},
    {.name = NULL},
};
