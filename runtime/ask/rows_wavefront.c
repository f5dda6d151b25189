/* SPDX-License-Identifier: BSD-3-Clause */
/* rows_wavefront.c - what memext wavefront alone takes; the rest of its options are those of run. */
#include "ask/rows.h"

#define MOST_EXTENT (INT64_C(1) << 31) /* rows and columns, as wavefront/layout.h has it */

const struct mx_option mx_rows_wavefront[] = {
    {"wavefront", 0, MX_GROUP_WAVEFRONT, TUNE | MX_CMD_TUNE_WAVEFRONT, 0, .take = mx_ask_nothing,
     .summary = "Plans for `memext wavefront`, with its options."},
    {"size", 'n', MX_GROUP_WAVEFRONT, LOOPS, LOOPS, 2, .take = mx_ask_counts, FIELD(wavefront.rows),
     LIMITS(1, MOST_EXTENT), .argument = "ROWS COLS", .unit = "cells",
     .summary = "Interior cells of the matrices.",
     .more = "Leave it out if a file of --input gives the size.", .on_resume = MX_RESUME_SAME},
    {"iterations", 'k', MX_GROUP_WAVEFRONT, LOOPS, LOOPS, 1, .take = mx_ask_count,
     FIELD(wavefront.iterations), LIMITS(0, INT64_MAX / 2), .argument = "K",
     .summary = "Iterations of the loop.", .zero = "the result is the input", .on_resume = MX_RESUME_SAME},
    {"layout", 0, MX_GROUP_WAVEFRONT, LOOPS, 0, 1, .take = mx_ask_text, FIELD(wavefront.layout),
     .argument = "L", .value_at = mx_value_layout, .closed = true, .initial = "frontier",
     .summary = "How matrices lie in their Buffers.",
     .more = "* `row`: row after row. The columns of a tile are rounded up to the unit of the device's "
             "transfers.\n"
             "* `block`: tile after tile.\n"
             "* `frontier`: tile after tile, each in five pieces: first row, first column, interior, last "
             "column, last row. The coefficients lie as with `block`.",
     .on_resume = MX_RESUME_SAME},
    {"tile", 0, MX_GROUP_WAVEFRONT, LOOPS, 0, 2, .take = mx_ask_counts, FIELD(wavefront.mb),
     LIMITS(1, MOST_EXTENT), .argument = "MB NB", .unit = "rows, columns", .initial = "the tuner's choice",
     .summary = "Rows and columns of a tile.", .on_resume = MX_RESUME_SAME},
    {"waves", 0, MX_GROUP_WAVEFRONT, LOOPS, 0, 1, .take = mx_ask_count, FIELD(wavefront.waves),
     LIMITS(1, INT64_MAX / 4), .argument = "W", .unit = "iterations", .initial = "the tuner's choice",
     .summary = "Iterations that one pass over the matrices makes.",
     .more = "DRAM holds W + P + 1 rows of tiles of the six matrices, where P is the number of --threads. "
             "Without --tile and --waves the tuner chooses the fastest values within --dram. `memext tune "
             "--wavefront` prints that choice and runs nothing."},
    {"ahead", 0, MX_GROUP_WAVEFRONT, LOOPS, 0, 1, .take = mx_ask_count, FIELD(wavefront.ahead),
     LIMITS(1, 1 << 20), .argument = "TILES", .unit = "tiles", .initial = "two rows of tiles, if DRAM allows",
     .summary = "Tiles that are read ahead."},
    {"unchained", 0, MX_GROUP_WAVEFRONT, LOOPS, 0, .take = mx_ask_flag, FIELD(wavefront.unchained),
     .summary = "Begins a pass only when the one before is complete.",
     .more = "By default a pass begins as soon as its first rows can be read. Use this option to "
             "measure what that gains."},
    {"sequential", 0, MX_GROUP_WAVEFRONT, LOOP, LOOP, .take = mx_ask_flag, FIELD(wavefront.sequential),
     .summary = "Runs the plain loop with all matrices in memory, for comparison.",
     .excludes = "device layout tile waves ahead unchained resume verify timeline trace",
     .because = "the plain loop has no store, tiles or passes"},
    {.name = NULL},
};
