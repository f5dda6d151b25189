# SPDX-License-Identifier: BSD-3-Clause
"""A cell that a kernel does not SET keeps its value: the bits are those of the same kernel with the other branch written out, by every plan, backend,
accelerator and resume. Coordinates that a kernel sees are those of the grid."""
import pytest
from conftest import thinned
from test_accel import works

HEAD = '#define MX_NAME "kept"\n#define MX_RADIUS 1\n'
JACOBI = HEAD + "#define MX_STATE(F) F(u, double) F(v, float)\n#define MX_PARAMS(P) P(top, 0.5)\n"
NEAR = "double s = 0.25 * (AT(u,1,0,0) + AT(u,-1,0,0)) + 0.125 * (AT(u,0,1,0) + AT(u,0,-1,0) + AT(u,0,0,1) + AT(u,0,0,-1));\n"
LEAPFROG = HEAD + "#define MX_FORM MX_LEAPFROG\n#define MX_STATE(F) F(u, double)\n"
STAGGERED = HEAD + "#define MX_FORM MX_STAGGERED\n#define MX_STATE(F) F(e, double)\n#define MX_PARTNER(F) F(b, float)\n"
CELL = "#include <memext/cell.h>\nMX_CELL\n%sMX_END\n"
PAIR = "#include <memext/cell.h>\nMX_CELL_B\n%sMX_END\nMX_CELL_A\n%sMX_END\n"

# A kernel with a way on which something is not SET, and the same with everything written out.
KERNELS = {
    "plane": (JACOBI + CELL % (NEAR + "if (Z <= 7) SET(u, s);\nSET(v, (float)s);\n"),
              JACOBI + CELL % (NEAR + "SET(u, Z <= 7 ? s : AT(u,0,0,0));\nSET(v, (float)s);\n")),
    "time": (JACOBI + CELL % (NEAR + "if (T < 4 || X != 5) { SET(u, s); } else SET(v, AT(v,0,0,1));\n"),
             JACOBI + CELL % (NEAR + "int c = T < 4 || X != 5;\nSET(u, c ? s : AT(u,0,0,0));\nSET(v, c ? AT(v,0,0,0) : AT(v,0,0,1));\n")),
    "value": (JACOBI + CELL % (NEAR + "if (s > PARAM(top)) SET(u, s - 0.25);\nif (AT(v,0,0,0) < 0.5f) SET(v, AT(v,1,0,0) * 0.5f);\n"),
              JACOBI + CELL % (NEAR + "SET(u, s > PARAM(top) ? s - 0.25 : AT(u,0,0,0));\nSET(v, AT(v,0,0,0) < 0.5f ? AT(v,1,0,0) * 0.5f : AT(v,0,0,0));\n")),
    "return": (JACOBI + CELL % (NEAR + "if (Y % 3 == 1) return;\nSET(u, s);\nif (X > 20) return;\nSET(v, (float)s);\n"),
               JACOBI + CELL % (NEAR + "int c = Y % 3 != 1;\nSET(u, c ? s : AT(u,0,0,0));\nSET(v, c && X <= 20 ? (float)s : AT(v,0,0,0));\n")),
    "never": (JACOBI + CELL % (NEAR + "SET(u, s + AT(v,0,0,0));\n"), JACOBI + CELL % (NEAR + "SET(u, s + AT(v,0,0,0));\nSET(v, AT(v,0,0,0));\n")),
    "twice": (JACOBI + CELL % (NEAR + "SET(u, 1);\nif (X & 1) SET(u, s);\nSET(v, 3);\nSET(v, (float)s);\n"),
              JACOBI + CELL % (NEAR + "SET(u, X & 1 ? s : 1);\nSET(v, (float)s);\n")),
    "leapfrog": (LEAPFROG + CELL % (NEAR + "if (AT(u,0,0,0) > 0.4) SET(u, s - 0.5 * OLD(u));\n"),
                 LEAPFROG + CELL % (NEAR + "SET(u, AT(u,0,0,0) > 0.4 ? s - 0.5 * OLD(u) : AT(u,0,0,0));\n")),
    "staggered": (STAGGERED + PAIR % ("if (Z != 3) SET(b, OLD(b) - 0.5f * (float)(AT(e,1,0,0) - AT(e,0,0,0)));\n",
                                      "if (AT(b,0,0,0) > 0) return;\nSET(e, OLD(e) - 0.5 * (AT(b,0,0,0) - AT(b,-1,0,0)));\n"),
                  STAGGERED + PAIR % ("SET(b, Z != 3 ? OLD(b) - 0.5f * (float)(AT(e,1,0,0) - AT(e,0,0,0)) : OLD(b));\n",
                                      "SET(e, AT(b,0,0,0) > 0 ? OLD(e) : OLD(e) - 0.5 * (AT(b,0,0,0) - AT(b,-1,0,0)));\n")),
}
PLANS = ["stream by=28 bt=4", "stream by=9 bt=2", "redundant by=9 bz=7 bt=2", "stream by=28 bt=2 engine=iblock", "redundant by=28 bz=30 bt=6 engine=tiled"]
GRID = ["-n", 33, 28, 30, "-t", 12, "--init", "random", "--dram", "90MiB"]


@pytest.fixture
def written(tmp_path):
    def write(text, name="kernel.c"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.mark.parametrize("name", KERNELS)
def test_kept(memext, quick_place, written, name):
    """checksum of every plan == that of the written-out kernel; a run that is killed between goes on with the same bits."""
    short, full = written(KERNELS[name][0]), written(KERNELS[name][1], "full.c")
    done = memext("kernel", "check", short, "-n", 33, 28, 30, "-t", 12)
    assert done.returncode == 0, done.stderr
    wanted = memext.run("--kernel", full, *GRID, "--backend", "dram", "--algorithm", "direct")["checksum"]
    for plan in PLANS:
        result = memext.run("--kernel", short, *GRID, "-d", quick_place, "--plan", plan, "--force", "--verify")
        assert result["checksum"] == wanted and result["verified"] is True, plan
    first = memext.run("--kernel", short, *GRID, "-t", 6, "-d", quick_place, "--plan", PLANS[1], "--keep", "--force")
    assert first["steps_done"] == 6
    assert memext.run("--resume", "-t", 12, "-d", quick_place, "--ranks", 2)["checksum"] == wanted


ELSEWHERE = [(name, accel) for accel in ("opencl", "cuda") for name in ("return", "leapfrog", "staggered")]


# OpenCL compiles each for seconds.
@pytest.mark.parametrize("name, accel", thinned([*((name, "host") for name in KERNELS), *ELSEWHERE], lambda name, accel: accel != "opencl" or name == "return"))
def test_kept_by_accelerators(memext, quick_place, written, name, accel):
    short, full = written(KERNELS[name][0]), written(KERNELS[name][1], "full.c")
    wanted = memext.run("--kernel", full, *GRID, "--backend", "dram", "--algorithm", "direct")["checksum"]
    words = ["--kernel", short, *GRID, "-d", quick_place, "--force", "--accel", accel]
    if not works(memext, accel)["works"]:
        pytest.skip(works(memext, accel)["why"])
    for plan in PLANS[:2]:
        assert memext.run(*words, "--plan", plan)["checksum"] == wanted, plan


TABLE = """static const double table[%d] = {%s};
MX_CELL
    SET(u, AT(u, 0, 0, 0) + table[%s] * (AT(u, 1, 0, 0) - AT(u, -1, 0, 0)));
MX_END
"""


@pytest.mark.parametrize("index, entries", [("X", 33), ("Y", 28), ("Z", 30), ("T", 12)])
def test_tables_along_an_axis(memext, written, index, entries):
    """A table with an entry for every index is never read beyond its end while the kernel is tried out; a table that is too short is found before the run."""
    head = HEAD + "#define MX_STATE(F) F(u, double)\n#include <memext/cell.h>\n"
    values = ", ".join(f"{i / 64}" for i in range(entries))
    right = written(head + TABLE % (entries, values, index))
    build = memext.run("--kernel", right, *GRID, "--backend", "dram", "--algorithm", "direct")
    assert build["status"] == "done"
    assert memext("kernel", "check", right, "-n", 33, 28, 30, "-t", 12).returncode == 0
    guarded = written(head + f"#include <stdlib.h>\nstatic double at(int64_t i) {{ if (i < 0 || i >= {entries}) abort(); return (double)i; }}\n"
                      f"MX_CELL\n SET(u, AT(u,0,0,0) + at({index}));\nMX_END\n", "guarded.c")
    assert memext("kernel", "check", guarded, "-n", 33, 28, 30, "-t", 12).returncode == 0
    memext.refused("kernel", "check", guarded, "-n", 80, 29, 31, "-t", 13, naming="SIGABRT")
    tuned = memext("tune", "--kernel", guarded, *GRID, "--calibrate-seconds", 0.05)
    assert tuned.returncode == 0, tuned.stderr  # rates are measured on more planes and steps than there are
    longer = {"X": ["-n", 34, 28, 30], "Y": ["-n", 33, 29, 30], "Z": ["-n", 33, 28, 31], "T": ["-n", 33, 28, 30, "-t", 13]}[index]
    memext.refused("run", "--kernel", guarded, *GRID, *longer, "--backend", "dram", naming="SIGABRT")
    assert memext.run("--kernel", guarded, *GRID, "--backend", "dram")["status"] == "done"  # which has an entry for each, and no more


@pytest.mark.parametrize("index", "XYZT")
@pytest.mark.parametrize("end", ["first", "last"])
def test_both_ends_are_looked_at(memext, written, index, end):
    """A kernel that fails at one end of an axis of a grid that is larger than what is tried at once."""
    n = {"X": 500, "Y": 300, "Z": 200, "T": 40}
    bad = f"{index} == {0 if end == 'first' else n[index] - 1}"
    kernel = written(HEAD + "#define MX_STATE(F) F(u, double)\n#include <memext/cell.h>\n#include <stdlib.h>\n"
                     f"static double at(int bad, double u) {{ if (bad) abort(); return u; }}\nMX_CELL\n SET(u, at({bad}, AT(u,0,0,0)));\nMX_END\n")
    memext.refused("kernel", "check", kernel, "-n", n["X"], n["Y"], n["Z"], "-t", n["T"], naming="SIGABRT")


def test_numbers_of_check(memext, written):
    kernel = written(KERNELS["plane"][0])
    for words, naming in [(["-n", 0, 1, 1], "0 is below"), (["-n", 5], "needs 2 or 3 numbers, 1 given"), (["-n", 5, 5], "gives two dimensions, and the kernel \"kept\" reads cells in x, y and z: give -n NX NY NZ"), (["-t", "x"], "'x'"), (["-n", 1, 1, "99999999999999999999"], "'99999999999999999999' is not an integer")]:
        memext.refused("kernel", "check", kernel, *words, naming=naming)
    for n in [(1, 1, 1), (2, 1, 9), (1, 40, 1), (10**6, 2, 10**6)]:
        assert memext("kernel", "check", kernel, "-n", *n).returncode == 0, n
