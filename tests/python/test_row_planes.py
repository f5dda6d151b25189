# SPDX-License-Identifier: BSD-3-Clause
"""Row functions that compute several planes in a call: the bits of one plane in a call, in every engine, and the check that they do."""
import os

import numpy
import pytest

HEAD = '#define MX_NAME "planes"\n#define MX_RADIUS %d\n#define MX_STATE(F) %s\n%s#include <memext/cell.h>\n'
AROUND = "AT({0}, 1, 0, 0) - AT({0}, -1, 0, 0) + AT({0}, 0, 1, 0) - AT({0}, 0, -1, 0) + AT({0}, 0, 0, 1) + AT({0}, -1, 0, -1)"
KERNELS = {
    "jacobi": HEAD % (1, "F(u, double) F(w, double)", "") + f"""MX_CELL
    SET(u, 0.4 * AT(w, 0, 0, 0) + 0.1 * ({AROUND.format("u")}) + 0.001 * (Z % 3) + 0.002 * (Y % 2) - 0.003 * T);
    if (X % 7 != 2) SET(w, 0.5 * AT(w, 0, 0, 0) + 0.1 * ({AROUND.format("w")}));
MX_END
""",
    "leapfrog": HEAD % (4, "F(u, float)", "#define MX_FORM MX_LEAPFROG\n#define MX_FIXED(F) F(k, float)\n#define MX_FIXED_RADIUS 2\n") + f"""MX_CELL
    SET(u, AT(u, 0, 0, 0) - 0.3f * OLD(u) + 0.05f * ({AROUND.format("u")}) + 0.02f * (AT(u, 0, 0, 4) + AT(u, 0, -4, 0) - AT(u, 3, 0, 0) + AT(u, 0, 0, -3))
               + 0.1f * (AT(k, 0, 0, 2) - AT(k, 0, 1, -1) + AT(k, 2, 0, 0)));
MX_END
""",
    "staggered": HEAD % (1, "F(u, float) F(v, float)", "#define MX_PARTNER(F) F(p, float)\n#define MX_FORM MX_STAGGERED\n") + f"""MX_CELL_B
    SET(p, 0.5f * OLD(p) + 0.1f * ({AROUND.format("u")}) - 0.1f * AT(v, 0, 0, 1));
MX_END
MX_CELL_A
    SET(v, OLD(v) - 0.2f * (AT(p, 0, 0, 0) - AT(p, 0, 0, -1)));
    if (Z % 2) SET(u, 0.5f * OLD(u) + 0.1f * ({AROUND.format("p")}));
MX_END
""",
    "stages": HEAD % (2, "F(u, double)", "#define MX_STAGES 3\n") + "".join(f"""MX_CELL_{i}
    SET(u, 0.5 * AT(u, 0, 0, 0) + 0.1 * ({AROUND.format("u")}) + 0.0{i} * AT(u, 0, 0, 2) - 0.01 * AT(u, {i - 2}, -2, 0));
MX_END
""" for i in (1, 2, 3)),
}
FLAT = HEAD.replace("MX_RADIUS %d", "MX_RADII 1, 1, 0") % ("F(u, double)", "") + """MX_CELL
    SET(u, 0.4 * AT(u, 0, 0) + 0.1 * (AT(u, -1, 1) + AT(u, 1, -1) + AT(u, 0, 1) - AT(u, 0, -1)) + 0.001 * (Y % 3));
MX_END
"""
FORMS = ["1x2b", "2x2b", "1x4b"]
BT = {"jacobi": 3, "leapfrog": 2, "staggered": 4, "stages": 3, "flat": 3}  # whole steps
PLANS = {
    "tiled": ["--backend", "dram", "--algorithm", "direct", "--threads", 2],
    "iblock": ["--backend", "dram", "--algorithm", "direct", "--engine", "iblock", "--threads", 2],
    "columns": ["--backend", "dram", "--algorithm", "direct", "--column", 70, "--threads", 2],
    "stream": ["--plan", "stream bt=BT slab=5"],
    "strips": ["--plan", "stream by=9 bt=BT slab=5 faces=side-file"],
    "blocks": ["--algorithm", "redundant", "--block", 17, 16, "BT"],
    "mirror": ["--plan", "stream bt=BT slab=4", "--side", "z=mirror"],
    "periodic": ["--plan", "stream bt=BT slab=5", "--side", "z=periodic", "--side", "y=periodic"],
    "ranks": ["--ranks", 3, "--threads", 1, "--dram", "64MiB", "--plan", "stream bt=BT slab=5"],
}


def in_form(form, caches):
    return {**os.environ, "XDG_CACHE_HOME": str(caches), "MEMEXT_ROWS": form}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("form", FORMS)
def test_every_engine_has_the_bits_of_one_plane_a_call(memext, quick_place, caches, tmp_path, name, form):
    """Odd numbers of planes, rows with ends, the wrap of a ring and of the grid, halos of ranks."""
    path, (nx, ny, nz), h = tmp_path / f"{name}.c", (83, 19, 29), 4
    path.write_text(KERNELS[name])
    words = ["--kernel", path, "-n", nx, ny, nz, "-t", 7, "--init", "random"]
    if "MX_FIXED" in KERNELS[name]:
        numpy.save(tmp_path / "k.npy", numpy.random.default_rng(3).uniform(0.5, 1, (nz + 2 * h, ny + 2 * h, nx + 2 * h)).astype("f4"))
        words += ["--field", f"k={tmp_path / 'k.npy'}"]
    for plan, more in PLANS.items():
        more = [str(word).replace("BT", str(BT[name])) for word in more]
        sides = more[more.index("--side"):] if "--side" in more else []
        wanted = memext.run(*words, *PLANS["iblock"], *sides, env=in_form("1", caches))["checksum"]
        place = ["-d", quick_place] if "dram" not in more else []
        assert memext.run(*words, *more, *place, env=in_form(form, caches))["checksum"] == wanted, (form, plan)


@pytest.mark.parametrize("form", FORMS)
def test_two_dimensions(memext, quick_place, caches, tmp_path, form):
    """There the planes of a call are the user's rows."""
    path = tmp_path / "flat.c"
    path.write_text(FLAT)
    words = ["--kernel", path, "-n", 83, 41, "-t", 9, "--init", "random"]
    wanted = memext.run(*words, *PLANS["iblock"], env=in_form("1", caches))["checksum"]
    for plan in ("tiled", "iblock", "stream"):
        place = ["-d", quick_place] if plan == "stream" else []
        more = [str(word).replace("BT", str(BT["flat"])) for word in PLANS[plan]]
        assert memext.run(*words, *more, *place, env=in_form(form, caches))["checksum"] == wanted, (form, plan)


@pytest.mark.parametrize("form", FORMS)
def test_a_profile_takes_the_functions_of_the_new_object(memext, quick_place, caches, tmp_path, form):
    """A field that is alike along x is compiled for anew: functions of the old object would read beyond its cells."""
    path, (nx, ny, nz) = tmp_path / "profile.c", (83, 11, 13)
    path.write_text(HEAD % (1, "F(u, float)", "#define MX_FIXED(F) F(k, float)\n") + "MX_CELL\n    SET(u, 0.5f * AT(u, 0, 0, 0) + 0.1f * AT(k, 0, 0, 0) * AT(u, 0, 0, 1));\nMX_END\n")
    profile = numpy.random.default_rng(3).uniform(0.5, 1, (nz + 2, ny + 2, 1)).astype("f4")
    numpy.save(tmp_path / "profile.npy", profile)
    numpy.save(tmp_path / "whole.npy", numpy.repeat(profile, nx + 2, 2))
    words = ["--kernel", path, "-n", nx, ny, nz, "-t", 5, "--init", "random"]
    wanted = memext.run(*words, *PLANS["tiled"], "--field", f"k={tmp_path / 'whole.npy'}", env=in_form("1", caches))["checksum"]
    for plan in ("tiled", "stream"):
        place = ["-d", quick_place] if plan == "stream" else []
        more = [str(word).replace("BT", "2") for word in PLANS[plan]]
        assert memext.run(*words, *more, *place, "--field", f"k={tmp_path / 'profile.npy'}", env=in_form(form, caches))["checksum"] == wanted, plan


@pytest.mark.parametrize("form", FORMS)
def test_a_call_for_several_planes_is_checked(memext, caches, tmp_path, form):
    """This kernel computes something else in the second plane of a call."""
    path = tmp_path / "wrong.c"
    path.write_text(HEAD % (1, "F(u, float)", "") + "MX_CELL\n    SET(u, AT(u, 0, 0, 0) + mx_deep);\nMX_END\n")
    refused = memext("kernel", "check", path, env=in_form(form, caches))
    assert refused.returncode == 2 and "depend on how many planes a call computes: u changes" in refused.stderr, refused.stderr
    assert memext("kernel", "check", path, env=in_form("1b", caches)).returncode == 0
