# SPDX-License-Identifier: BSD-3-Clause
"""Mutants: small changes that break one feature each, which tests have to find (run.py beside this file). A change is a file, a text that stands in it once, and
the text in its place. Those of MUTANTS are for the random campaign. FOLDERS has one in each of more folders, with what finds it in a short run."""
from dataclasses import dataclass


@dataclass
class Mutant:
    name: str
    what: str  # is broken
    file: str
    old: str
    new: str
    by: tuple = ()  # a C test, or files and cases of Python tests; () = the campaign


MUTANTS = [
    Mutant("stage-order", "a stage is computed by the function of the next one", "runtime/engine/work.c", "mx_planes_of(p->system, level, deep);",
           "mx_planes_of(p->system, p->system->stages > 1 ? level + 1 : level, deep);"),
    Mutant("profile-pitch", "rows of a profile are found at another pitch than they are laid at", "runtime/system/profile.c",
           ".row_pitch_bytes = (alike & MX_ALIKE_Y) != 0 ? 0 : row,", ".row_pitch_bytes = (alike & MX_ALIKE_Y) != 0 ? 0 : cells,"),
    Mutant("odd-node", "the frame of odd-node begins at the outermost cell", "runtime/system/sides.c", "        inward = beyond + 1;",
           "        inward = beyond + (side[high] != MX_SIDE_ODD_NODE);"),
    Mutant("series-late", "a parameter over time comes one step late", "runtime/engine/work.c", ".param = mx_params_at(s, a->first_level + l, c.param),",
           ".param = mx_params_at(s, mx_max(0, a->first_level + l - mx_levels_a_step(p)), c.param),"),
    Mutant("wraps", "a whole number that does not fit becomes the greatest", "runtime/include/memext/cell.h", "{ return (type)v; }",
           "{ return (int64_t)v > (int64_t)0x7fff && (int64_t)v > (int64_t)(type)v ? (type)-1 : (type)v; }"),
    Mutant("not-set", "a cell that does not SET a field takes the value of the next one", "runtime/include/memext/cell.h", "#define MX_KEPT_OF_MX_JACOBI(name) AT(name, 0, 0, 0)",
           "#define MX_KEPT_OF_MX_JACOBI(name) AT(name, 1, 0, 0)"),
    Mutant("resume-parity", "a pair of arrays that is gone on with from an odd step is taken for one of an even step", "runtime/run/work/compute.c",
           "    const int odd = (int)(first_level & 1);", "    const int odd = 0 * (int)first_level;"),
    Mutant("ranks-second-field", "the last row of what a neighbour is given lacks its second half", "runtime/execute/exchange.c",
           "(size_t)((s->region.y1 - s->region.y0) * pitch));", "(size_t)((s->region.y1 - s->region.y0) * pitch - pitch / 2));"),
    Mutant("bytes-of-a-field", "the bytes that are predicted forget the last read-only field", "runtime/schedule/walk_sums.c", "for (int32_t i = 0; i < mx_fixed_count(p); i++) {",
           "for (int32_t i = 0; i < mx_fixed_count(p) - 1; i++) {"),
    Mutant("reach-of-a-second-field", "the second read-only field is read one plane less far", "runtime/engine/work.c", "c->fixed[i * fixed_planes + d] = p->fixed[i][plane + d] +",
           "c->fixed[i * fixed_planes + d] = p->fixed[i][plane + (i > 0 && s->hc > 0 && d == 0 ? 1 : d)] +"),
    Mutant("source-at-every-stage", "a point source acts after every stage", "runtime/system/points.h", "return !mx_has_stages(p) || (level + 1) % mx_levels_a_step(p) == 0;",
           "return p != NULL && level >= 0;"),
    Mutant("side-of-a-second-field", "all fields have the frame in x of the first one", "runtime/engine/after.c", "        if (f == 0 || apart) {", "        if (f == 0 || (apart && f < 0)) {"),
    Mutant("lanes", "lanes of a sum are added from the last one on", "runtime/system/norms.c", "    for (int k = 0; k < LANES; k++) value = with(kind, value, lane[k]);",
           "    for (int k = LANES; k-- > 0;) value = with(kind, value, lane[k]);"),
    Mutant("minus", "minus a whole number is its complement", "runtime/system/sides.c", "(type)(minus ? 0u - v : v);", "(type)(minus ? ~v : v);"),
    Mutant("index-of-ranks", "rows of a rank of a flat grid are counted from its own first one", "runtime/engine/work.c", "            if (ghosts) name_ghosts(p, &c->row);",
           "            if (ghosts && !p->flat) name_ghosts(p, &c->row);"),
    Mutant("wavelet", "the first value of a wavelet is left out", "runtime/engine/after.c", "if (cell != NULL && mx_source_amplitude(w->a->sources, i, step, &amplitude))",
           "if (cell != NULL && step > 0 && mx_source_amplitude(w->a->sources, i, step, &amplitude))"),
]  # fmt: skip

FOLDERS = [
    Mutant("failed-flush", "what a failed write has lost is forgotten by the next flush", "backends/mmap/mmap.c", "    int err = s->failed;\n    pthread_mutex_unlock(&s->lock);\n    for (int i = 0; i < MOST_MAPPINGS",
           "    int err = 0;\n    pthread_mutex_unlock(&s->lock);\n    for (int i = 0; i < MOST_MAPPINGS", ("conformance",)),
    Mutant("newest-slot", "a commit overwrites the newest superblock", "runtime/core/store.c", "    *slot = newest / 2;", "    *slot = newest % 2;", ("conformance",)),
    Mutant("memory-high", "a limit of cgroup v2 that throttles is not seen", "runtime/machine/cgroup.c", '{"memory.max", "memory.high", NULL}', '{"memory.max", NULL, NULL}', ("machine",)),
    Mutant("big-endian", "numbers of four bytes and less may be big endian", "runtime/grid/array.c", "head->big_endian && mx_dtype_bytes(head->dtype) > 1", "head->big_endian && mx_dtype_bytes(head->dtype) > 4",
           ("tests/python/test_formats.py", "tests/python/test_format_cases.py")),
    Mutant("weight", "the weight of a distance is rounded before it is divided", "runtime/stencil/plain.inc", "(CELL)(coef[1] / d)", "((CELL)coef[1] / d)", ("stencil",)),
    Mutant("compiler", "an object of another version of the compiler is taken", "runtime/kernel/cache.c", "    XXH3_128bits_update(state, c->version.data, c->version.bytes);\n", "", ("tests/python/test_kernel.py",)),
    Mutant("last-part", "what a copy to a device has beyond whole lines is left out", "runtime/accel/host.c", "#endif\n    memcpy(to, from, bytes);", "    return;\n#endif\n    memcpy(to, from, bytes);", ("accel",)),
    Mutant("room", "a plan that is given may take twice the room that there is", "runtime/tune/given.c", "    if (x->dram_bytes < c->room_bytes) return 0;", "    if (x->dram_bytes < 2 * c->room_bytes) return 0;", ("tests/python/test_tune_command.py", "tests/python/test_refusals.py")),
    Mutant("pages", "the pages that went to swap space are counted as bytes", "runtime/observe/usage.c", "vmstat_names[i].field, (uint64_t)sysconf(_SC_PAGESIZE)}", "vmstat_names[i].field, 1}", ("tests/python/test_report.py",)),
    Mutant("mode", "a file that is replaced loses its permissions", "runtime/files/output.c", "    if (o->mode != 0 && fchmod(o->fd, o->mode) != 0) return -errno;\n", "", ("tests/python/test_outputs.py",)),
    Mutant("since", "the note says that a parameter has its value from one step later on", "runtime/note/params.c", "\"since\", e->since);", "\"since\", e->since + 1);", ("tests/python/test_edits.py",)),
    Mutant("status", "the status of ranks is that of the last one that ends", "runtime/link/local.c", "            if (code > worst) worst = code;", "            worst = code;", ("tests/python/test_ranks_ends.py",)),
    Mutant("excludes", "options that exclude each other are taken", "runtime/ask/rules.c", "        if (mx_option_given(o, word))\n            return mx_fail(why, -EINVAL, \"--%s and --%s exclude",
           "        if (mx_option_given(o, word) && row->needs != NULL)\n            return mx_fail(why, -EINVAL, \"--%s and --%s exclude", ("tests/python/test_options.py",)),
    Mutant("seams", "the seams in DRAM are not counted", "runtime/steps/bytes.c", "    bytes += (mx_wide)shape->seam_slots * mx_seam_slab_bytes(shape, layout);\n", "", ("tests/python/test_report.py",)),
    Mutant("lost-output", "what cannot be printed is no error", "runtime/cli/streams.c", "    if (!lost && !asked_lost && flush_error == 0) return status;", "    if (!lost || !asked_lost || flush_error == 0) return status;", ("tests/python/test_streams.py",)),
]  # fmt: skip
