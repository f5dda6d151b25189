# SPDX-License-Identifier: BSD-3-Clause
"""The forms of row functions, of which the fastest is kept: the same bits in all of them, over any rows; and which one is kept."""
import ctypes
import json
import os
import pathlib
import random
import re
import shutil

import pytest
from conftest import LONG, ROOT, thinned
from drawn_kernels import Kernel
from kernel_rows import Rows

FORMS = ("1", "1n", "1w", "2n", "2w", "4")
BLOCKS = ("1b", "2b", "4b", "1x2b", "2x2b", "1x4b")
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
GOOD = """#if defined(MEMEXT_ROWS) || defined(MEMEXT_PLANES)
#define ROWS 1
#else
#define ROWS 0
#endif
#define MX_NAME "good"
#define MX_RADIUS 1
#define MX_STATE(F) F(u, double)
#include <memext/cell.h>
MX_CELL
    %s
MX_END
"""


@pytest.fixture
def compiled(tmp_path, memext):
    """Compiles a kernel in a form (None: the fastest): (the object, what is said of the form)."""
    def run(path, form, verb="build", **environment):
        env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), **environment}
        env.pop("MEMEXT_ROWS", None)
        if form is not None:
            env["MEMEXT_ROWS"] = form
        return memext("kernel", verb, path, env=env)
    return run


def object_of(done):
    assert done.returncode == 0, done.stderr
    return re.search(r"(?:kept as|in the cache,) (\S+)", done.stdout)[1]


def same_everywhere(compiled, path, seed, forms=FORMS, long=False, **environment):
    """`long`: most rows are long enough for blocks, and all of them begin and end anywhere."""
    r = random.Random(seed)
    made = {form: Rows(object_of(compiled(path, form, **environment))) for form in forms}
    calls = [(level, r.randrange(1000), r.choice((1, 2, 3, 4, 5, 8, 9)), x0, x0 + r.randint(1, min(70, Rows.CELLS - x0)) if not long else r.randint(x0 + 30, Rows.CELLS))
             for level in range(made["1"].kernel.n_levels) for x0 in (0, *r.sample(range(1, 100), 9))]
    if made["1"].kernel.n_reduce:
        calls += [(None, r.randrange(1000), 1, x0, x0 + r.randint(1, 70)) for x0 in r.sample(range(40), 3)]
    for call in calls:
        want = made["1"].call(*call)
        for form in forms[1:]:
            assert made[form].call(*call) == want, (seed, form, call)


@pytest.mark.parametrize("first", range(0, 400 if LONG else 2, 2))
def test_random_kernels_have_the_same_bits_in_all_forms(compiled, tmp_path, first):
    for seed in range(first, first + 2):
        path = tmp_path / f"random-{seed}.c"
        path.write_text(Kernel(f"rows {seed}", radii=(1, 1, 2, 4, 8), flat=False, fixed=2).text())
        same_everywhere(compiled, path, seed, FORMS if LONG else ("1", "2n", "2w", "4"), CC=COMPILERS[seed % len(COMPILERS)] + (" -mno-avx512f" if LONG and seed % 3 == 0 else ""))


@pytest.mark.parametrize("first", range(0, 400 if LONG else 16, 4))
def test_random_kernels_have_the_same_bits_in_blocks(compiled, tmp_path, first):
    """Whole numbers, conditions, tables, offsets that are no constants, two dimensions: a block computes what the plain loop does."""
    for seed in range(first, first + 4):
        path = tmp_path / f"random-{seed}.c"
        path.write_text(Kernel(f"blocks {seed}", radii=(1, 1, 2, 4, 8), fixed=2, size=(4, 8)[seed // 2 % 2]).text())  # with each compiler
        environment = {"CC": COMPILERS[seed % len(COMPILERS)] + (" -mno-avx512f" if seed // 4 % 2 else "")}
        if "no blocks for so many neighbours" in compiled(path, "1b", **environment).stderr:
            continue  # many fields of radius 8
        same_everywhere(compiled, path, seed, ("1", *BLOCKS) if LONG else ("1", BLOCKS[seed % len(BLOCKS)]), long=True, **environment)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("type_name", ["double", "float"])
def test_blocks_read_a_whole_vector_beside(compiled, tmp_path, type_name, compiler):
    """A radius of 8 is a whole vector of doubles with AVX-512, and of floats with AVX2: the neighbours are another vector."""
    path = tmp_path / "far.c"
    path.write_text(GOOD.replace("double", type_name).replace("MX_RADIUS 1", "MX_RADIUS 8") % "SET(u, AT(u, 8, 0, 0) + 3 * AT(u, -8, 0, 0) + 5 * AT(u, 7, 0, 0) + 7 * AT(u, -7, 1, 0));")
    for narrow in ("", " -mno-avx512f"):
        same_everywhere(compiled, path, 1, ("1", *BLOCKS), long=True, CC=compiler + narrow)


class Noted(Rows):
    """Row functions over memory that is remembered, and the rows that they ask for: (of what, field, plane, row)."""
    def __init__(self, path):
        super().__init__(path)
        self.made = []

    def memory(self, *of):
        self.made.append(super().memory(*of))
        return self.made[-1]

    def asked_for(self):
        """{(of what, field, plane, row): the bytes in the row at which lines are asked for}."""
        n, found = ctypes.c_long.in_dll(self.library, "n_asked").value, {}
        asked = (ctypes.c_uint64 * 16384).in_dll(self.library, "asked")
        assert n <= len(asked)
        for at in asked[:n]:
            hits = [((kind, i // planes, i % planes, (at - b.ctypes.data) // pitch), (at - b.ctypes.data) % pitch)
                    for kind, (blocks, pitch) in zip(("read", "fixed", "written"), self.made)
                    for planes in [len(blocks) // (1 if kind == "fixed" else 2)]
                    for i, b in enumerate(blocks) if 0 <= at - b.ctypes.data < b.nbytes]
            assert len(hits) == 1, "a line beside the memory of the call"
            found.setdefault(hits[0][0], []).append(hits[0][1])
        return found


@pytest.mark.parametrize("radius", [3, 4])
@pytest.mark.parametrize("form", ["1b", "1x2b", "1x4b"])
def test_blocks_of_wide_stencils_ask_for_the_rows_of_the_next_pass(compiled, tmp_path, radius, form):
    """They ask for the last planes read of each field, for those of C, and for those written. Others ask for nothing."""
    path = tmp_path / "ask.c"
    text = GOOD.replace("MX_RADIUS 1", f"MX_RADIUS {radius}").replace("F(u, double)", "F(u, double) F(w, double)")
    noting = """#define MX_FIXED(F) F(k, double)
#define MX_FIXED_RADIUS 1
__attribute__((visibility("default"))) const void *asked[16384];
__attribute__((visibility("default"))) long n_asked;
#define __builtin_prefetch(at, ...) (asked[n_asked++ & 16383] = (at))
#include"""
    path.write_text(text.replace("#include", noting) % f"SET(u, AT(k, 0, 1, 0) * AT(u, 0, 0, {radius}) + AT(w, 1, 0, 0)); SET(w, AT(u, 0, -1, 0));")
    noted = Noted(object_of(compiled(path, form)))
    noted.call(0, 1, 4, 0, Rows.CELLS)
    found = noted.asked_for()
    want = {(kind, field, first + plane, radius + row + 1) for kind, fields, first in (("read", 2, 2 * radius), ("fixed", 1, 2), ("written", 2, 0))
            for field in range(fields) for plane in range(Rows.PLANES) for row in range(4)}
    assert set(found) == (want if radius >= 4 else set())
    for at in found.values():  # once in each block of a row
        steps = {b - a for a, b in zip(at, at[1:])}
        assert at == next(iter(found.values())) and len(at) > 4 and len(steps) == 1 and steps <= {16, 32, 64}


def test_blocks_are_refused_where_cells_have_different_sizes(compiled, tmp_path):
    """Forms in blocks are left out then; forced, one says why."""
    path = tmp_path / "mixed.c"
    path.write_text(GOOD.replace("#include", "#define MX_FIXED(F) F(k, float)\n#include") % "SET(u, AT(u, 0, 0, 0) + AT(k, 0, 0, 0));")
    done = compiled(path, "2b")
    assert done.returncode == 2 and "no blocks for fields of different sizes" in done.stderr, done.stderr
    assert compiled(path, None).returncode == 0


THERE = [*sorted((ROOT / "systems").glob("*.c")), *sorted((ROOT / "experiments/bench/rows").glob("*.c"))]


@pytest.mark.parametrize("path", thinned(THERE, lambda path: THERE.index(path) % 3 == 0), ids=lambda path: path.stem)
def test_kernels_that_are_there_have_the_same_bits_in_all_forms(compiled, caches, path):
    same_everywhere(compiled, path, 1, FORMS if LONG else ("1", "2n", "4"), XDG_CACHE_HOME=str(caches))


IN_BLOCKS = [path for path in THERE if path.stem not in ("diffusion", "ising", "lattice_boltzmann", "life", "shallow_water")]


@pytest.mark.parametrize("path", thinned(IN_BLOCKS, lambda path: IN_BLOCKS.index(path) % 3 == 1), ids=lambda path: path.stem)
def test_kernels_that_are_there_have_the_same_bits_in_blocks(compiled, caches, path):
    same_everywhere(compiled, path, 1, ("1", *BLOCKS), long=True, XDG_CACHE_HOME=str(caches))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_narrow_number_stays_narrow(compiled, tmp_path, compiler):
    """Left to itself, gcc 12 leaves (double)(float)x out in the last cells of a row. `check` compares rows with pieces of them."""
    cell = "const float w = AT(u, 0, 1, 0); const double v = AT(u, -1, 1, 0) - w / (2 + AT(u, -1, 0, 0)); SET(u, v / (1 + fabs(v)));"
    (tmp_path / "k.c").write_text(GOOD % cell)
    for form in FORMS:
        done = compiled(tmp_path / "k.c", form, "check", CC=compiler)
        assert done.returncode == 0, (form, done.stderr)


def test_a_pass_of_two_rows_is_seen(compiled, tmp_path):
    """The comparison above fails where a form computes something else."""
    path = tmp_path / "wrong.c"
    path.write_text(GOOD % "SET(u, AT(u, 0, 0, 0) + ROWS);")
    for form in ("2n", "2b", "4b", "2x2b"):
        with pytest.raises(AssertionError):
            same_everywhere(compiled, path, 1, ("1", form))


def test_all_rows_of_a_pass_are_checked(compiled, tmp_path):
    """A check takes more rows than a pass: this kernel computes something else in the fourth row of one."""
    path = tmp_path / "far.c"
    path.write_text(GOOD % "const int64_t far = mx_among == 3 ? 2 : 0; SET(u, AT(u, far, 0, 0));")
    assert compiled(path, "2n", "check").returncode == 0
    done = compiled(path, "4", "check")
    assert done.returncode == 2 and "depend on how many rows a call computes" in done.stderr, done.stderr


def test_a_form_with_other_bits_is_not_kept(compiled, tmp_path):
    """Compilers may be wrong; this kernel is, where two rows are computed together."""
    path = tmp_path / "wrong.c"
    path.write_text(GOOD % "SET(u, AT(u, 0, 0, 0) + ROWS);" + "\n")
    slow = tmp_path / "slow.c"
    slow.write_text(path.read_text().replace("SET(u,", "volatile double d = 1; for (int i = 0; i < 20 && !ROWS; i++) d = d / 3; SET(u,"))
    for kernel in (path, slow):
        done = compiled(kernel, None)
        assert done.returncode == 0 and "chosen here: 1 row in a pass" in done.stdout, done.stdout + done.stderr  # in vectors of any width


def test_the_fastest_is_kept_and_found_again(compiled, tmp_path):
    path = tmp_path / "good.c"
    path.write_text(GOOD % "SET(u, 0.5 * AT(u, 0, 0, 0) + 0.25 * (AT(u, 0, 1, 0) + AT(u, 0, -1, 0)));")
    first, again = compiled(path, None), compiled(path, None)
    assert "compiled by" in first.stdout and "found in the cache" in again.stdout
    form = re.search(r"^good: chosen here: [124] rows?( of [24] planes)? in a pass(, vectors of (32|64) bytes|, the widest vectors|, in blocks)?$", first.stdout, re.M)
    assert form and form[0] in again.stdout and object_of(first) == object_of(again)
    assert object_of(compiled(path, "2n")) != object_of(first), "an object of one form was taken for the fastest"
    assert "2 rows in a pass, vectors of 32 bytes" in compiled(path, "2n").stdout
    assert not list((tmp_path / "cache/memext/kernels").glob(".build-*"))


TIME = re.compile(r"^good: a step of a cell takes a core (\S+) ns, in tiles$", re.M)


def test_the_time_of_a_step_is_kept_and_plans_are_made_with_it(compiled, memext, tmp_path):
    path, other = tmp_path / "good.c", tmp_path / "much.c"
    path.write_text(GOOD % "SET(u, 0.5 * AT(u, 0, 0, 0));")
    other.write_text(GOOD % MUCH)
    times = {}
    for kernel in (path, other):
        first, again = compiled(kernel, None), compiled(kernel, None)
        times[kernel] = float(TIME.search(first.stdout)[1])
        assert TIME.search(again.stdout)[0] == TIME.search(first.stdout)[0]
    assert times[other] > 20 * times[path] > 0  # 200 calls of libm against a multiplication
    assert not TIME.search(compiled(path, "2n").stdout), "a form that was asked for is not timed"
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "MEMEXT_ROWS": ""}
    for kernel, ns in times.items():
        rates = json.loads(memext("tune", "--kernel", kernel, "-n", 254, 254, 254, "-t", 8, "--threads", 2, "--json", "-", env=env).stdout)["rates"]
        assert rates["compute_source"] == "timed" and rates["device_source"] == "default"
        assert rates["tiled_updates_per_s"] == pytest.approx(2e9 / (ns + 16 * 0.012), rel=0.01)  # ns has three digits
        assert rates["iblock_updates_per_s"] <= rates["tiled_updates_per_s"]
    described = memext("tune", "--kernel", path, "-n", 254, 254, 254, "-t", 8, "--cores", 64, "--dram", "1GiB", "--json", "-", env=env)
    assert json.loads(described.stdout)["rates"]["compute_source"] == "default", "what was timed here tells nothing of another machine"
    built = object_of(compiled(path, None))
    user = tmp_path / "user.so"
    user.write_bytes(pathlib.Path(built).read_bytes())
    assert json.loads(memext("tune", "--kernel", user, "-n", 254, 254, 254, "-t", 8, "--json", "-", env=env).stdout)["rates"]["compute_source"] == "default"


def test_a_form_that_does_not_compile_is_left_out(compiled, tmp_path):
    compiler, path = tmp_path / "compiler", tmp_path / "good.c"
    compiler.write_text('#!/bin/sh\ncase "$*" in *MEMEXT_ROWS*|*MEMEXT_PLANES*|*vector-width*|*MEMEXT_BLOCKS*) exit 1;; esac\nexec cc "$@"\n')
    compiler.chmod(0o755)
    path.write_text(GOOD % "SET(u, AT(u, 0, 0, 0));")
    done = compiled(path, None, CC=str(compiler))
    assert done.returncode == 0 and "chosen here: 1 row in a pass\n" in done.stdout, done.stdout + done.stderr


WIDE = GOOD.replace("MX_RADIUS 1", "MX_RADIUS %d")
SUM = "SET(u, 0.5 * AT(u, 0, 0, 0) + 0.25 * (AT(u, 0, 1, 0) + AT(u, 0, -1, 0)));"

MUCH = "double s = 0; " + " ".join(f"s += sin(AT(u, 0, 0, 0) + {i}) * exp(AT(u, 0, 1, 0) - {i});" for i in range(100)) + " SET(u, s);"


@pytest.mark.parametrize("radius, code, several", [(1, SUM, True), (3, SUM, True), (4, SUM, False), (1, MUCH, False)],
                         ids=["small", "radius-3", "radius-4", "much-code"])
@pytest.mark.parametrize("seconds", [0, 0.4], ids=["fast-compiler", "slow-compiler"])
def test_radius_and_code_decide_which_forms_are_compiled(compiled, tmp_path, radius, code, several, seconds):
    """The compiler's own time does not: it depends on the load of the machine, and the cache keeps what it decides."""
    compiler, path, log = tmp_path / "compiler", tmp_path / "k.c", tmp_path / "log"
    busy = f"import time; end = {seconds}; exec('while time.process_time() < end: pass')"
    compiler.write_text(f"""#!/bin/sh
case "$*" in *"-x c"*) echo "$*" >>'{log}'; python3 -c "{busy}";; esac
exec cc "$@"
""")
    compiler.chmod(0o755)
    path.write_text(WIDE % (radius, code))
    done = compiled(path, None, CC=str(compiler))
    assert done.returncode == 0, done.stderr
    calls = log.read_text().splitlines()
    assert any("MEMEXT_ROWS" not in call for call in calls)
    assert any("MEMEXT_ROWS=" in call for call in calls) == several, calls
    for rows in (2, 4) if "avx512f" in pathlib.Path("/proc/cpuinfo").read_text() else (2,):
        assert any(f"MEMEXT_ROWS={rows}" in call and "MEMEXT_BLOCKS" in call for call in calls) == several, calls


def test_a_kernel_that_crashes_is_refused_in_its_own_words(compiled, tmp_path):
    path = tmp_path / "bad.c"
    path.write_text(GOOD % "SET(u, *(volatile double *)(X == NX - 1 ? 8 : (intptr_t)&AT(u, 0, 0, 0)));")
    done = compiled(path, None, "check")
    assert done.returncode == 2 and "crashes with SIGSEGV" in done.stderr and "fastest" not in done.stderr, done.stderr


def test_a_kernel_that_does_not_end_is_not_measured_for_long(compiled, tmp_path):
    path = tmp_path / "endless.c"
    path.write_text(GOOD % "for (volatile int64_t i = 0; i >= 0;) i = 0; SET(u, 0);")
    done = compiled(path, None)
    assert done.returncode == 0 and "chosen here: 1 row in a pass\n" in done.stdout, done.stdout + done.stderr


def test_an_unknown_form_is_refused(compiled, tmp_path):
    path = tmp_path / "good.c"
    path.write_text(GOOD % "SET(u, AT(u, 0, 0, 0));")
    done = compiled(path, "3")
    assert done.returncode == 2 and "MEMEXT_ROWS=3" in done.stderr and "1, 1b, 2b, 4b, 1x2b, 2x2b, 1x4b, 1n, 1w, 2n, 2w or 4" in done.stderr and "unset it" in done.stderr
