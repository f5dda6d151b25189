/* SPDX-License-Identifier: BSD-3-Clause */
/* rows_problem.c - what is computed: the grid, the kernel, points, norms and criteria. */
#include "ask/rows.h"
#include "grid/grid.h"
#include "tune/tune.h"

const struct mx_option mx_rows_problem[] = {
    {"size", 'n', MX_GROUP_PROBLEM, BOTH, FIRST, 3, .fewest = 2, .take = mx_ask_extents,
     LIMITS(1, MX_MOST_EXTENT), .argument = "NX NY [NZ]", .unit = "cells",
     .summary = "Interior cells of the grid in x, y and z.",
     .more = "Two numbers give a grid of two dimensions, which needs a kernel with `MX_RADII r, r, "
             "0`. Its files have the axes (y, x).\n"
             "Leave -n out if a file of --input gives the size. Raw cells have no size and need -n. NY and "
             "NZ may be up to 2^30.",
     .on_resume = MX_RESUME_SAME},
    {"size", 'n', MX_GROUP_KERNEL, MX_CMD_KERNEL, MX_CMD_KERNEL, 3, .fewest = 2, .take = mx_ask_extents,
     LIMITS(1, MX_MOST_EXTENT), .argument = "NX NY [NZ]", .unit = "cells", .initial = "67 11 9",
     .summary = "Size of the grid that the kernel is meant for.",
     .more = "`check` tries the kernel at cells of this grid, also at both ends of each axis."},
    {"steps", 't', MX_GROUP_PROBLEM, BOTH, FIRST, 1, .take = mx_ask_counts, FIELD(problem.nt),
     LIMITS(0, MX_MOST_STEPS), .argument = "NT", .unit = "steps", .zero = "the result is the initial grid",
     .summary = "Number of time steps.",
     .more = "With --resume, give another NT to end the run earlier or later. The run continues from the "
             "step that the store holds, so NT cannot be smaller than that."},
    {"steps", 't', MX_GROUP_KERNEL, MX_CMD_KERNEL, MX_CMD_KERNEL, 1, .take = mx_ask_counts, FIELD(problem.nt),
     LIMITS(0, MX_MOST_STEPS), .argument = "NT", .unit = "steps", .initial = "7",
     .summary = "Number of time steps that the kernel is meant for."},
    {"time-step", 0, MX_GROUP_PROBLEM, BOTH, 0, 1, .take = mx_ask_text, FIELD(time_step),
     .argument = "SECONDS|PARAM|none", .initial = "the kernel's parameter dt, if it has one",
     .summary = "Length of a step in simulated seconds, for reports only.",
     .more = "The argument is a number or a quotient such as 1/8, or the name of a parameter of the kernel. "
             "With a parameter over time each step has its own length. With `none` reports have no simulated "
             "seconds.\n"
             "The result does not depend on this option. The store remembers its value."},
    {"stencil", 0, MX_GROUP_PROBLEM, BOTH, FIRST, 1, .take = mx_ask_stencil, .argument = "S",
     .value_at = mx_value_stencil, .initial = "star7", .summary = "The built-in stencil to compute.",
     .more = "`star7` reads the cell and its neighbours at faces, `edge19` also those at edges, `box27` also "
             "those at corners. `star13` to `star49` are stars of radius 2 to 8.",
     .on_resume = MX_RESUME_SAME},
    {"coef", 0, MX_GROUP_PROBLEM, BOTH, 0, 1, .take = mx_ask_coef, .argument = "C,F,E,K",
     .initial = "the stencil's own, which `memext info` prints",
     .summary = "Weights of the centre and of face, edge and corner neighbours.",
     .more = "The new value is C times the cell, plus F, E and K times the sums of its neighbours at faces, "
             "edges and corners. In stars, neighbours at distance d have the weight F/d. Weights that are "
             "left out at the end are 0.",
     .on_resume = MX_RESUME_SAME},
    {"dtype", 0, MX_GROUP_PROBLEM, BOTH, FIRST, 1, .take = mx_ask_dtype, .argument = "T",
     .value_at = mx_value_dtype, .initial = "f64",
     .summary = "Type of a cell: 64-bit or 32-bit floating point.",
     .more = "A kernel declares the types of its fields, which may be integers too.",
     .on_resume = MX_RESUME_SAME},
    {"init", 0, MX_GROUP_PROBLEM, BOTH, FIRST, 1, true, .take = mx_ask_init, .argument = "[FIELD=]NAME",
     .value_at = mx_value_init, .initial = "random",
     .summary = "Fills the grid with a pattern (see memext info).",
     .more = "With a kernel, repeat it for each field of the state. A name without `FIELD=` fills every "
             "field that "
             "has no values yet.\n"
             "In a leapfrog kernel, `p.old` is the field `p` one step before. Without values of its own it "
             "equals "
             "`p` at the start.",
     .excludes = "input",
     .because = "each of them gives the initial grid (with a kernel, each field has one or the other)",
     .on_resume = MX_RESUME_SAME},
    {"init", 0, MX_GROUP_WAVEFRONT, LOOP, LOOP, 1, .take = mx_ask_text, FIELD(init), .argument = "NAME",
     .value_at = mx_value_matrix_init, .closed = true, .initial = "random",
     .summary = "Fills the matrices that have no --input.", .excludes = "resume",
     .because = "the store holds the matrices already"},
    {"input", 0, MX_GROUP_PROBLEM, BOTH, FIRST, 1, true, .take = mx_ask_input, .argument = "[FIELD=]GRID.npy",
     .summary = "Reads the initial grid from a file.",
     .more = "The file is a .npy file of numpy with the axes (z, y, x), or (y, x), little-endian and "
             "in C order. Its type is that of the field. It includes the frame unless --frame says "
             "otherwise.\n"
             "Give raw cells as `FILE,TYPE[,offset=BYTES]`, with -n. The section FILES OF ARRAYS "
             "lists the other formats.\n"
             "With a kernel, repeat it for each field of the state. Leave the name out if the state "
             "has one field. memext never writes the file.",
     .on_resume = MX_RESUME_SAME},
    {"input", 0, MX_GROUP_WAVEFRONT, LOOP, LOOP, 1, true, .take = mx_ask_input, .argument = "NAME=FILE.npy",
     .summary = "Reads a matrix with its border from a file.",
     .more = "The names are za, zr, zb, zu, zv and zz. The shape is (ROWS+2, COLS+2). A file without a name "
             "is za.",
     .excludes = "resume", .because = "the store holds the matrices already"},
    {"frame", 0, MX_GROUP_PROBLEM, BOTH, 0, 1, true, .take = mx_ask_frame, .argument = "[FIELD=]KIND",
     .value_at = mx_value_frame, .range = "or a number", .initial = "included",
     .summary = "How memext makes the frame, or that files of --input have it.",
     .more = "The frame surrounds the interior cells, as wide as the radius of the stencil.\n"
             "* `included`: files of --input contain the frame.\n"
             "* `edge`: each cell of the frame takes the value of the nearest interior cell.\n"
             "* `mirror`: the frame is the mirror image of the interior at the face of the outermost "
             "cell. Frame cell -1-i equals cell i.\n"
             "* `periodic`: the frame repeats the cells at the opposite end of the axis.\n"
             "* a number: each cell of the frame has this value.\n"
             "With any kind but `included`, files of --input have nz x ny x nx cells. Files of "
             "--field may have the frame or not.\n"
             "memext makes the frame in x first, then in y over whole rows, then in z over whole "
             "planes. numpy.pad does the same with its modes edge, symmetric, wrap and constant.\n"
             "Repeat the option to give each field its own kind. For fields of the state it has "
             "effect only at fixed sides. For read-only fields it has effect at all sides that are "
             "not periodic.",
     .on_resume = MX_RESUME_SAME},
    {"side", 0, MX_GROUP_PROBLEM, BOTH, FIRST, 1, true, .take = mx_ask_side,
     .argument = "[FIELD:]AXIS=KIND[,KIND]", .value_at = mx_value_side, .initial = "fixed",
     .summary = "Boundary condition at both ends of an axis.",
     .more =
         "AXIS is x, y or z. Two kinds set the lower and the upper end. One kind sets both. Repeat the "
         "option for other axes.\n"
         "* `fixed`: the frame keeps its initial values.\n"
         "* `mirror`: mirror image at the face of the outermost cell, zero normal derivative. Frame cell "
         "-1-i equals cell i.\n"
         "* `odd`: as `mirror`, with the opposite sign.\n"
         "* `mirror-node`: mirror image at the middle of the outermost cell. Frame cell -i equals cell i.\n"
         "* `odd-node`: as `mirror-node`, with the opposite sign, and the outermost cell is 0.\n"
         "* `edge`: every frame cell equals the outermost cell.\n"
         "* `periodic`: the axis is a ring. This kind holds for both ends and for all fields.\n"
         "A side without FIELD holds for all fields of the state. A side with FIELD, such as `vx:z=odd`, "
         "replaces it for that field. The order of the options does not matter. Each field may have another "
         "kind at each end of each axis.\n"
         "The cell that `odd-node` sets to 0 is 0 in the initial state and after every step (or stage of a "
         "step). Sources add nothing to it.\n"
         "An axis needs as many cells as the radius, and one more for `mirror-node` and `odd-node`.\n"
         "Sides other than fixed and periodic copy cells into the frame. In y and z, all cells that such a "
         "frame copies must lie in one Block or strip. memext refuses a Block that is too short, and says "
         "which length is enough.\n"
         "Periodic sides in y and z need algorithm `stream` or `redundant`, or `direct` with --engine iblock "
         "or --accel. `stream` and `redundant` also read and compute ghost layers from the other end, BT "
         "times the radius deep. Predictions count these.\n"
         "At periodic sides in y and z, BT times the radius may be at most the number of cells along that "
         "axis. `stream` with --engine iblock and whole planes needs no ghost layers in y and has no such "
         "limit there.\n"
         "At periodic sides the frame of a read-only field holds the cells of the other end. At other sides "
         "it holds the values of the file.",
     .on_resume = MX_RESUME_SAME},
    {"kernel", 0, MX_GROUP_KERNEL, BOTH, FIRST, 1, .take = mx_ask_text, FIELD(kernel),
     .argument = "FILE.c|FILE.so", .summary = "Computes with your own kernel instead of a built-in stencil.",
     .more = "The section KERNELS says how to write a kernel and how memext compiles it. memext tests the "
             "kernel with the grid and the steps of the run before it changes anything in the store.\n"
             "A store remembers the kernel's file, its parameters and the files of its fields. With --resume "
             "the text of the kernel must be the same, and you may leave these options out.",
     .excludes = "stencil coef dtype", .because = "the kernel defines the computation and its types",
     .on_resume = MX_RESUME_SAME},
    {"param", 0, MX_GROUP_KERNEL, BOTH | MX_CMD_KERNEL, FIRST | MX_CMD_KERNEL, 1, true, .take = mx_ask_words,
     FIELD(params), .argument = "NAME=VALUE", .initial = "the kernel's own value",
     .summary = "Sets a parameter of the kernel, constant or over time. Repeat it for others.",
     .more =
         "VALUE is a number, or a quotient such as 1/8. A .npy file of one dimension gives a value for each "
         "step. Element t, counted from 0, is for the step from t to t + 1. A file of shape (steps, stages) "
         "gives a value for each stage of a kernel. The file may have more values than the run has steps. "
         "--resume compares only the values that were used, so -t may grow with a longer file.",
     .needs = "kernel resume", .on_resume = MX_RESUME_SAME},
    {"edit-param", 0, MX_GROUP_KERNEL, RUN, 0, 1, true, .take = mx_ask_words, FIELD(edit_params),
     .argument = "NAME=VALUE",
     .summary = "Changes a parameter when the run is resumed. Repeat it for others.",
     .more = "The new value holds from the step of the last commit on. The next commit stores it. If "
             "the run ends before that commit, the store is unchanged: give the option again.\n"
             "Without --edit-input, -t must be greater than the step of the last commit. With "
             "--edit-input, memext commits both changes before the next step.\n"
             "If you also give --param for it, its value must be the one that the run began with or the "
             "present one. The "
             "option cannot change a parameter over time: give another file with --param.",
     .needs = "resume"},
    {"edit-input", 0, MX_GROUP_PROBLEM, RUN, 0, 1, true, .take = mx_ask_words, FIELD(edit_inputs),
     .argument = "[FIELD=]GRID.npy", .summary = "Replaces a field when the run is resumed.",
     .more = "The file holds new cells of a field of the state, with the field's type and the grid's shape. "
             "They replace the cells of the last commit. A file with the frame replaces the frame too. A "
             "file without the frame replaces the interior alone. At sides that are not fixed memext makes "
             "the frame from the interior.\n"
             "memext writes the new state to the other Buffer and commits it before the next step. -t may "
             "stay the same. Repeat the option for other fields.\n"
             "You can also replace a read-only field if the store has a copy of it (--field-copy). Its new "
             "values hold from the step of the last commit on.",
     .needs = "resume"},
    {"field", 0, MX_GROUP_KERNEL, BOTH, FIRST, 1, true, .take = mx_ask_words, FIELD(fields),
     .argument = "NAME=FILE", .summary = "File of a field that the kernel only reads. Repeat it for others.",
     .more = "The file is a .npy file of the kernel's type, or has another format of FILES OF ARRAYS. Give "
             "raw cells as `NAME=FILE,TYPE[,offset=BYTES][,frame=yes|no]`. TYPE is f64, f32, u8, u16, u32, "
             "u64, i8, i16, i32 or i64.\n"
             "If the field is constant along an axis, a file that is not raw may have the extent 1 there. "
             "memext then holds the field in DRAM.\n"
             "The file includes the frame. It may come without one if the kernel reads the field only at the "
             "cell itself. Raw files need -n. Their length tells whether they have the frame; if other data "
             "follows the cells, give frame=yes or frame=no.\n"
             "The run reads the file where it is and never writes or locks it. The store has no copy, but "
             "backends `dram` and `swap` hold one in memory. Keep the file unchanged until the run is done. "
             "A run that notices a change commits nothing more and fails.\n"
             "--resume compares length, time of change and samples of the content. The path may differ: if "
             "the file was moved, give its new path. memext copies cells that it cannot read in place into "
             "the store, and says so.",
     .needs = "kernel resume", .on_resume = MX_RESUME_SAME},
    {"field-copy", 0, MX_GROUP_KERNEL, BOTH, .take = mx_ask_flag, FIELD(field_copy),
     .summary = "Copies the files of --field into the store.",
     .more = "The run no longer needs the files once it has begun.", .excludes = "resume",
     .because = "a resumed run keeps its fields where they are", .needs = "kernel"},
    {"in-place", 0, MX_GROUP_KERNEL, BOTH, .take = mx_ask_flag, FIELD(in_place),
     .summary = "Keeps one copy of the state, not two (leapfrog and staggered kernels).",
     .more = "It halves the space, for kernels that read the value they replace. An interrupted run must "
             "start again. With --in-place, --verify computes all steps in one pass. That pass needs DRAM "
             "for some planes of every level, and allows at most 2048 levels.",
     .needs = "kernel resume"},

    {"source", 0, MX_GROUP_POINTS, RUN, 0, 1, true, .take = mx_ask_words, FIELD(point_sources),
     .argument = "FIELD@X,Y,Z=WAVELET.npy",
     .summary = "Adds a time series to one cell. Repeat it for others.",
     .more = "X, Y and Z count interior cells from 0. The file has one dimension, of f64 or f32. Element s "
             "of the file, counted from 0, is added after step s + 1 is computed. Nothing is added after the "
             "last element.\n"
             "The field of a built-in stencil is `u`. The result has the same bits with every plan.",
     .on_resume = MX_RESUME_SAME},
    {"sources", 0, MX_GROUP_POINTS, RUN, 0, 1, .take = mx_ask_text, FIELD(sources), .argument = "FILE",
     .summary = "Text file of point sources, one per line, in the form of --source.",
     .more = "A # begins a comment.", .on_resume = MX_RESUME_SAME},
    {"probes", 0, MX_GROUP_POINTS, RUN, 0, 1, .take = mx_ask_text, FIELD(probes), .argument = "FILE",
     .summary = "Text file of cells to record: `FIELD X Y Z` per line, or `FIELD X Y` on a 2D grid.",
     .needs = "probes-out", .on_resume = MX_RESUME_SAME},
    {"probes-out", 0, MX_GROUP_POINTS, RUN, 0, 1, .take = mx_ask_text, FIELD(probes_out),
     .argument = "TRACES.npy",
     .summary = "File for the values of --probes: a row for each step, a column for each probe.",
     .more = "Row s, counted from 0, is of the state after step s + 1. The values are f64. The file grows "
             "during the run. Each commit makes the rows up to its step durable too.",
     .needs = "probes", .on_resume = MX_RESUME_SAME},

    {"check", 0, MX_GROUP_CHECKS, BOTH, FIRST, 1, .take = mx_ask_count, FIELD(check),
     LIMITS(1, MX_MOST_STEPS), .argument = "EVERY", .unit = "steps", .initial = "100 with --until, else none",
     .summary = "Computes norms of the change every EVERY steps and after the last step.",
     .more = "`max-change` is the greatest difference of an interior cell from the step before, over all "
             "fields. `rms-change` is the root mean square of these differences.\n"
             "A kernel adds its reductions (MX_REDUCES in memext/cell.h): the sum, the maximum or the "
             "minimum of an expression over all cells. For a kernel of several stages (MX_STAGES) only "
             "reductions are computed. These values are of the state one step before the check. memext also "
             "reduces each plane by itself. The spread of a reduction is (greatest - least) / |mean| of the "
             "planes. Sums have the same bits for every plan, engine and number of threads.\n"
             "A sweep ends at each check. Few steps between checks make short sweeps, which move more bytes; "
             "`memext tune --check` says how many.\n"
             "The report keeps at most 96 checks under `norms`. They are evenly spaced, and the newest is "
             "always among them. The progress line shows the newest check."},
    {"until", 0, MX_GROUP_CHECKS, RUN, MX_CMD_RUN, 1, true, .take = mx_ask_words, FIELD(untils),
     .argument = "NAME=VALUE[,above][,floor=F]",
     .summary = "Ends the run when a norm or a reduction is at most VALUE.",
     .more = "NAME is `max-change`, `rms-change`, a reduction R of the kernel, or R-spread, its spread. The "
             "criterion is met when the norm is at most VALUE, or with `,above` at least VALUE.\n"
             "A spread is relative to the mean of the planes, or to the floor F if F is greater.\n"
             "You may repeat it: the first criterion that is met ends the run. `--until none` with --resume "
             "drops the criteria of the store.\n"
             "The state of that step is the result: output, checksum, the values of --probes and --verify "
             "are those of a run with that many steps. The report names the criterion and its step under "
             "`met`. Predictions are for all steps of -t.\n"
             "With --resume the checks and criteria of the store hold, unless you give others. The report "
             "keeps the norms of earlier checks as far as the store has room. A run that a criterion has "
             "ended is complete, and --resume gives its result again. With other criteria, or another -t, "
             "the run continues."},
    {"reduce-stored", 0, MX_GROUP_CHECKS, MX_CMD_LIBRARY, 0, 1, true, .take = mx_ask_words,
     FIELD(reduce_stored), .argument = "NAME",
     .summary = "Computes a reduction of the kernel also for the state that the check leaves.",
     .more = "Without it a check computes reductions of the state one step before. memext uses the "
             "rows as it stores them, so it reads no byte more. The reduction may read only fields of "
             "the state, at the cell itself, and no parameters. `memext info --json` has the result "
             "under `last_check.stored`. It is missing with algorithms that rewrite their Buffers and "
             "with accelerators. Python asks for it by itself where a reduction allows it. Only the "
             "library has this option.",
     .needs = "check"},
    {"nonfinite", 0, MX_GROUP_CHECKS, BOTH, 0, 1, .take = mx_ask_nonfinite, .argument = "end|ignore",
     .value_at = mx_value_nonfinite, .closed = true, .initial = "end",
     .summary = "What to do when cells are NaN or infinite.",
     .more =
         "* `end`: such a state is not committed and ends the run with status 6. If the run commits, its "
         "last commit is finite. The message names the steps, the number of cells and the first of them.\n"
         "* `ignore`: the run continues. The report counts such cells under `nonfinite_cells`.\n"
         "With --resume the default is what the run had before.\n"
         "Only cells that are computed count. The frame and fields that are only read may hold NaN.\n"
         "memext looks for such cells at the end, and after each sweep that it may commit or whose state "
         "--snapshot saves. Runs without commits (backends dram and swap, algorithms that rewrite their "
         "Buffers, --in-place) also look at states that are at least 64 steps apart. Such runs have no "
         "finite state to resume from.\n"
         "An initial grid with such cells is refused with status 6 before the first step. A file that the "
         "first sweep reads is refused during that sweep."},
    {.name = NULL},
};
