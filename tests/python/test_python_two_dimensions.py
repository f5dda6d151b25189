# SPDX-License-Identifier: BSD-3-Clause
"""Grids of two dimensions in Python, (ny, nx): u[dx, dy], arrays, files, patterns and results of two dimensions."""
import numpy as np
import pytest
from flat import NX, NY, heat, near, put, sided
from package import cache, environment, mx  # noqa: F401 (fixtures)

FIXED = ("fixed", "fixed")


def cells(shape, dtype="f8", seed=1):
    return ((np.random.default_rng(seed).random(shape) - 0.5) * (100 if dtype == "u1" else 1)).astype("i1" if dtype == "u1" else dtype).astype(dtype)


def heat_kernel(mx):
    @mx.kernel(fixed={"k": "f4", "m": "u1"}, params={"dt": 0.1})
    def heat(u, k, m, dt, x, y, t):
        around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
        return u + dt * k * (around - 4 * u) + 1e-3 * (x + 3 * y + t) + 1e-4 * m
    return heat


def wave_kernel(mx):
    @mx.kernel(fixed="v")
    def wave(p, v):
        lap = (p[-2, 0] + p[2, 0]) + (p[0, -2] + p[0, 2]) + p[-1, 1]
        return (2 * p - p.old) + v[1, -1] * (lap - 5 * p)
    return wave


def plain(u, k, m, steps, t=0):
    y, x = np.mgrid[0:u.shape[0] - 2, 0:u.shape[1] - 2]
    for i in range(t, t + steps):
        around = near(u, 1, -1) + near(u, 1, 1) + near(u, 1, 0, -1) + near(u, 1, 0, 1)
        u = put(u.copy(), 1, near(u, 1) + 0.1 * near(k, 1).astype("f8") * (around - 4 * near(u, 1)) + 1e-3 * (x + 3 * y + i) + 1e-4 * near(m, 1), FIXED)
    return u


def begin(h=1, *dtypes):
    return [cells((NY + 2 * h, NX + 2 * h), d, 7 + i) for i, d in enumerate(dtypes)]


@pytest.mark.parametrize("dram", [False, True])
def test_arrays_of_two_dimensions_go_in_and_come_out(mx, quick_place, dram):
    u, k, m = begin(1, "f8", "f4", "u1")
    kernel = heat_kernel(mx)
    where = {"backend": "dram"} if dram else {"device": quick_place}
    with mx.Run(kernel, u=u, k=k, m=m, dram="64MiB", threads=2, verify=True, **where) as run:
        assert kernel.flat and run.shape == (NY, NX) and run.framed_shape == u.shape
        for step in (3, 7):
            report = run.advance(step).report
            assert report["verified"] is True and report["problem"]["dimensions"] == 2
            assert f"{NX} x {NY} cells, {step} steps, heat (u f64; read-only k f32, m u8)" in str(report)
            assert run["u"][...].tobytes() == plain(u, k, m, step).tobytes()
        assert run["k"][...].tobytes() == k.tobytes()
        want = plain(u, k, m, 7)
        assert run["u"].shape == u.shape and run["u"][5, 4] == want[5, 4] and run["u"].ndim == 2
        assert np.array_equal(run["u"][3:9:2, ::-1], want[3:9:2, ::-1]) and np.array_equal(run["u"][-1], want[-1])
        assert np.array_equal(np.asarray(run["u"]), want)
    reference = kernel.reference(7, u=u, k=k, m=m)
    assert reference["u"].tobytes() == want.tobytes()


def test_files_and_numbers_and_arrays_without_frames(mx, quick_place, tmp_path):
    u, k, _ = begin(1, "f8", "f4", "u1")
    m = np.full_like(u, 3, "u1")
    np.save(tmp_path / "u.npy", u)
    np.save(tmp_path / "k.npy", k)
    with mx.Run(heat_kernel(mx), u=tmp_path / "u.npy", k=str(tmp_path / "k.npy"), m=3, device=quick_place, dram="64MiB") as run:
        run.advance(5)
        assert run["u"][...].tobytes() == plain(u, k, m, 5).tobytes()
        run["u"].save(tmp_path / "out.npy")
        assert np.load(tmp_path / "out.npy").tobytes() == plain(u, k, m, 5).tobytes()
    padded = np.pad(u[1:-1, 1:-1], 1, mode="edge")
    for frame, framed in (("edge", padded), (2.5, np.pad(u[1:-1, 1:-1], 1, constant_values=2.5))):
        around = np.pad(k[1:-1, 1:-1], 1, mode="edge") if frame == "edge" else np.pad(k[1:-1, 1:-1], 1, constant_values=2.5)
        with mx.Run(heat_kernel(mx), u=u[1:-1, 1:-1], k=k[1:-1, 1:-1], m=3, frame=frame, device=quick_place, dram="64MiB") as run:
            run.advance(4)
            assert run["u"][...].tobytes() == plain(framed, around, m, 4).tobytes(), frame


def test_patterns_need_a_shape_of_two_numbers(mx, quick_place, tmp_path, monkeypatch):
    kernel = heat_kernel(mx)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "random").mkdir()  # of the same name
    with mx.Run(kernel, u="random", k=1.0, m=2, shape=(NY, NX), device=quick_place, dram="64MiB") as run:
        begun = run["u"][...] if run.advance(0) else None
        run.advance(3)
        assert run["u"][...].tobytes() == plain(begun, np.ones_like(begun, "f4"), np.full_like(begun, 2, "u1"), 3).tobytes()
    with pytest.raises(mx.MemextError, match=r"two integers \(ny, nx\)"):
        mx.Run(kernel, u="random", k=1.0, m=2, shape=(3, NY, NX), device=quick_place)
    with pytest.raises(mx.MemextError, match=r"u has 3 dimensions, but the kernel computes grids of two: give an array \(ny, nx\)"):
        mx.Run(kernel, u=np.zeros((3, 4, 5)), k=1.0, m=2, device=quick_place)
    with pytest.raises(mx.MemextError, match=r"k has the shape \(5, 5\); u says \(4, 5\) interior cells, which is \(6, 7\)"):
        mx.Run(kernel, u=np.zeros((6, 7)), k=np.zeros((5, 5), "f4"), m=2, device=quick_place)
    with pytest.raises(mx.KernelError, match="has neighbours with two offsets and neighbours with three"):
        @mx.kernel
        def mixed(u):
            return u[1, 0] + u[0, 0, 1]


def test_rows_columns_and_numbers_are_read_only_fields(mx, quick_place):
    u, _, m = begin(1, "f8", "f4", "u1")
    row, column = cells((1, NX + 2), "f4", 4), cells((NY + 2, 1), "f4", 5)
    for k in (row, row[0], column):
        with mx.Run(heat_kernel(mx), u=u, k=k, m=m, device=quick_place, dram="64MiB") as run:
            run.advance(4)
            assert run["u"][...].tobytes() == plain(u, np.broadcast_to(np.atleast_2d(k), u.shape), m, 4).tobytes(), k.shape


def test_the_step_before_and_a_run_that_goes_on(mx, quick_place):
    p, old, v = begin(2, "f8", "f8", "f8")
    v = v * 0.1
    kernel = wave_kernel(mx)
    want = kernel.reference(9, p=p, p_old=old, v=v)
    now, before = p, old
    for _ in range(9):
        lap = (near(now, 2, -2) + near(now, 2, 2)) + (near(now, 2, 0, -2) + near(now, 2, 0, 2)) + near(now, 2, -1, 1)
        now, before = put(before.copy(), 2, (2 * near(now, 2) - near(before, 2)) + near(v, 2, 1, -1) * (lap - 5 * near(now, 2)), FIXED), now
    assert want["p"].tobytes() == now.tobytes()
    with mx.Run(kernel, p=p, p_old=old, v=v, device=quick_place, dram="64MiB", keep=True) as run:
        run.advance(4)
    with mx.Run(kernel, p=p, p_old=old, v=v, device=quick_place, dram="64MiB", resume=True, keep=True) as run:
        run.advance(9)
        assert run.step == 9 and run.report["resumed_from"] == 4
        assert run["p"][...].tobytes() == now.tobytes()
    store = mx.open(quick_place)
    assert store.shape == p.shape and store["p"].shape == p.shape
    assert store["p"][...].tobytes() == now.tobytes() and np.array_equal(store["p"][3, ::2], now[3, ::2])


def test_stages_staggered_pairs_and_sides(mx, quick_place):
    eta, u, v = begin(1, "f8", "f8", "f8")

    def momentum(u, v, eta):
        return u.old - 0.2 * (eta[1, 0] - eta), v.old - 0.2 * (eta[0, 1] - eta)

    def continuity(eta, u, v):
        return eta.old - 0.2 * ((u - u[-1, 0]) + (v - v[0, -1]))

    def first(w, u):
        return u + 0.2 * (u[-1, 0] - u)

    def second(u, w):
        return 0.5 * (u + w + 0.2 * (w[0, 1] - w))

    for kernel, given in ((mx.staggered(momentum, continuity), {"u": u, "v": v, "eta": eta}), (mx.stages(first, second), {"u": u, "w": v})):
        with mx.Run(kernel, **given, device=quick_place, dram="64MiB", threads=2) as run:
            run.advance(5)
            want = kernel.reference(5, **given)
            for name in given:
                assert run[name][...].tobytes() == want[name].tobytes(), (kernel.name, name)
    with mx.Run(heat_kernel(mx), u=u, k=1.0, m=0, side=["x=periodic", "y=mirror"], device=quick_place, dram="64MiB") as run:
        run.advance(1)
        framed = np.pad(np.pad(u[1:-1, 1:-1], ((1, 1), (0, 0)), mode="symmetric"), ((0, 0), (1, 1)), mode="wrap")
        want = plain(framed, np.ones_like(u, "f4"), np.zeros_like(u, "u1"), 1)
        assert np.array_equal(run["u"][1:-1, 1:-1], want[1:-1, 1:-1])


def test_reductions_come_with_the_steps(mx, quick_place):
    u, k, m = begin(1, "f8", "f4", "u1")

    @mx.reduce(op="max")
    def top(u):
        return u[1, 1]

    with mx.Run(heat_kernel(mx), u=u, k=k, m=m, reductions=[top], check=2, device=quick_place, dram="64MiB") as run:
        run.advance(4)
        taken = run.report["norms"][-1]  # of the state that the last step is computed from
        assert taken["step"] == 4 and taken["reductions"]["top"]["max"] == near(plain(u, k, m, 3), 1, 1, 1).max()


@pytest.mark.parametrize("sides", [FIXED, ("odd", "mirror"), ("periodic", "periodic")])
def test_changes_between_steps(mx, quick_place, sides):
    """Rows, columns and cells, with the frame; functions of rows; another k. They are seen before they are committed, reduced, and computed with."""
    u, k, m = begin(1, "f8", "f4", "u1")
    u = sided(u, 1, sides)
    rng = np.random.default_rng(3)
    row, new_k = rng.random(NX), rng.random(u.shape).astype("f4")
    options = {"side": [f"x={sides[0]}", f"y={sides[1]}"], "frame": "periodic" if sides[0] == "periodic" else "included"}
    given = {n: a[1:-1, 1:-1] if sides[0] == "periodic" else a for n, a in {"u": u, "k": k, "m": m}.items()}
    if sides[0] == "periodic":
        k, m, new_k = (sided(a.copy(), 1, sides) for a in (k, m, new_k))

    @mx.reduce(op="sum", per="z")
    def weighed(u, k, x, y):
        return (u[1, 0] - u[0, -1]) * k * (x + y)

    def nudged(u, k, dt, x, y, t):
        return u + dt * k * (x + 2 * y + t)

    with mx.Run(heat_kernel(mx), **given, **options, field_copy=True, device=quick_place, dram="64MiB") as run:
        want, steps = u, []
        for step in run.steps(9, check=3):
            steps.append(step)
            want = state_after(want, k, m, 3, sides, step - 3)
            assert np.array_equal(run["u"][...], want)
            run["u"][7, 1:-1] = row
            run["u"][1:-1:2, 5] = 0.25
            run["u"][20:10:-3, 3:5] = np.arange(8).reshape(4, 2)
            want = want.copy()
            want[7, 1:-1], want[1:-1:2, 5], want[20:10:-3, 3:5] = row, 0.25, np.arange(8).reshape(4, 2)
            if sides == FIXED:
                run["u"][0, :] = run["u"][-1]
                want[0] = want[-1]
            run.apply(nudged)
            y, x = np.mgrid[0:NY, 0:NX]
            want = sided(put_inside(want, want[1:-1, 1:-1] + 0.1 * k[1:-1, 1:-1] * (x + 2 * y + step)), 1, sides)
            assert np.array_equal(run["u"][...], want) and np.array_equal(run["u"][5:2:-1, ::2], want[5:2:-1, ::2])
            values = (want[1:-1, 2:] - want[:-2, 1:-1]) * k[1:-1, 1:-1].astype("f8") * (x + y)
            assert np.allclose(run.reduce(weighed), values.sum(axis=1), rtol=1e-12) and len(run.reduce(weighed)) == NY
            if step == 3:
                run["k"] = new_k[1:-1, 1:-1] if sides[0] == "periodic" else new_k
                k = new_k
                assert np.array_equal(run["k"][...], k)
                run.apply(lambda u: np.zeros(3))
                with pytest.raises(mx.MemextError, match="a row of"):
                    run["u"][...]
                run._edits.asked.pop()
        assert steps == [3, 6, 9]
        assert np.array_equal(run["u"][...], want)
        assert all(r["read_bytes"] == r["predicted_read_bytes"] and r["write_bytes"] == r["predicted_write_bytes"] for r in run.reports)


def put_inside(a, values):
    a[1:-1, 1:-1] = values
    return a


def state_after(u, k, m, steps, sides, t):
    for i in range(t, t + steps):
        u = heat({"u": u}, {"k": k, "m": m}, i, sides)["u"]
    return u


def test_a_run_begins_with_the_store_in_its_place(mx, quick_place):
    """A field of two dimensions goes to another equation, and the program that is started again names it when it is gone."""
    @mx.kernel
    def moved(v):
        return v[-1, 0]

    u, k, m = begin(1, "f8", "f4", "u1")
    place = quick_place / "s.memext"
    with mx.Run(heat_kernel(mx), u=u, k=k, m=m, device=place, dram="64MiB", keep=True) as run:
        run.advance(3)
    want = plain(u, k, m, 3)
    for _ in range(2):
        want = put_inside(want.copy(), want[1:-1, :-2])
    for step, resume in ((2, "auto"), (3, True)):
        with mx.Run(moved, v=mx.open(place)["u"], device=place, dram="64MiB", keep=True, resume=resume) as run:
            run.advance(step)
            assert np.array_equal(run["v"][...], want)
        want = put_inside(want.copy(), want[1:-1, :-2])
    assert mx.open(place)["u"].shape == u.shape
    with pytest.raises(mx.MemextError, match="no longer exists"):
        mx.open(place)["u"][0, 0]


def test_what_needs_three_dimensions_is_refused_with_the_way_out(mx, quick_place, tmp_path):
    u, k, m = begin(1, "f8", "f4", "u1")
    np.save(tmp_path / "cube.npy", np.zeros((3, 4, 5)))
    with mx.Run(heat_kernel(mx), u=u, k=k, m=m, device=quick_place, dram="64MiB") as run:
        run.advance(1)
        with pytest.raises(mx.MemextError, match="or x, y, t"):
            run.apply(lambda u, z: 2 * u)
        with pytest.raises(mx.MemextError, match=r"k is given a function that cannot be called with \(x, y\): in grids of two dimensions"):
            run["k"] = lambda x, y, z: x
        with pytest.raises(mx.MemextError, match="k is read-only"):
            run["k"][3] = 1.0
        with pytest.raises(mx.MemextError, match="u has 3 dimensions, but the kernel computes grids of two"):
            mx.Run(heat_kernel(mx), u=mx.open(tmp_path / "cube.npy"), k=1.0, m=0, device=quick_place / "other.memext")
    with pytest.raises(mx.MemextError, match=r"u is given a function that cannot be called with \(x, y\): in grids of two dimensions"):
        mx.Run(heat_kernel(mx), u=lambda x, y, z: x, k=1.0, m=0, shape=(NY, NX), device=quick_place)
    with pytest.raises(mx.MemextError, match="u is a ramp along z, but the kernel computes grids of two dimensions"):
        mx.Run(heat_kernel(mx), u=mx.ramp("z", 0, 1), k=1.0, m=0, shape=(NY, NX), device=quick_place)
    with pytest.raises(mx.MemextError, match=r"field u is given a row of shape \(3,\): give rows of \(55,\)"):
        mx.Run(heat_kernel(mx), u=lambda x, y: x[:3], k=1.0, m=0, shape=(NY, NX), device=quick_place).advance(1)
    with pytest.raises(mx.MemextError, match=r"u is given a function that cannot be called with \(x, y, z\): in grids of three dimensions"):
        mx.Run(u=lambda x, y: x, shape=(4, 5, 6), device=quick_place)


@pytest.mark.parametrize("dram", [False, True])
def test_functions_and_ramps_of_x_and_y(mx, quick_place, dram):
    """As functions of x, y, z are of grids of three dimensions: with the frame, where indices are below 0 and from n on; between steps too."""
    y, x = np.mgrid[-1:NY + 1, -1:NX + 1]
    where = {"backend": "dram"} if dram else {"device": quick_place, "dram": "64MiB"}
    u, m = np.sin(x) + 0.25 * y, (x + y) % 5

    def wavy(x, y):
        return np.sin(x) + 0.25 * y

    for k, cells in ((mx.ramp("x", 0, 1), np.broadcast_to(np.linspace(0, 1, NX + 2), u.shape)), (mx.ramp("y", 1, -1), np.broadcast_to(np.linspace(1, -1, NY + 2)[:, None], u.shape)),
                     (mx.ramp("y", 1, 2, where=(m > 2).astype("u1")), np.where(m > 2, np.linspace(1, 2, NY + 2)[:, None], 0)), (lambda x, y: 0.5, np.full(u.shape, 0.5))):
        with mx.Run(heat_kernel(mx), u=wavy, k=k, m=lambda x, y: (x + y) % 5, shape=(NY, NX), **where) as run:
            run.advance(4)
            assert run["u"][...].tobytes() == plain(u, cells.astype("f4"), m.astype("u1"), 4).tobytes()
            if not dram:
                run["k"] = lambda x, y: x * 0.125 - y
                k_new = (x * 0.125 - y).astype("f4")
                assert np.array_equal(run["k"][...], k_new)
                run.advance(6)
                assert run["u"][...].tobytes() == plain(plain(u, cells.astype("f4"), m.astype("u1"), 4), k_new, m.astype("u1"), 2, 4).tobytes()
    if dram:
        return
    with mx.Run(heat_kernel(mx), u=wavy, k=1.0, m=0, shape=(NY, NX), keep=True, **where, force=True, resume=False) as run:
        run.advance(2)
    with mx.Run(heat_kernel(mx), u=wavy, k=1.0, m=0, shape=(NY, NX), **where, resume=True) as run:
        assert run.advance(3).report["resumed_from"] == 2
    with mx.Run(heat_kernel(mx), u=wavy, k=1.0, m=0, shape=(NY, NX), keep=True, **where) as run:
        run.advance(2)
    with pytest.raises(mx.MemextError, match="other"):
        mx.Run(heat_kernel(mx), u=lambda x, y: np.cos(x), k=1.0, m=0, shape=(NY, NX), **where, resume=True).advance(3)
