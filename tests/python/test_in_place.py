# SPDX-License-Identifier: BSD-3-Clause
"""Files of fields that a kernel only reads, used where they are: every type, odd sizes and offsets, with and without a frame; what was read is
what the copy would have been, and nothing of the file changes. Files that change, move or go."""
import hashlib
import json
import os
import shutil
import signal
import subprocess

import numpy as np
import pytest
from conftest import needs_root, wait_until

H, N = 1, (19, 23, 21)  # frame; interior x, y, z
SHAPE = tuple(n + 2 * H for n in reversed(N))
INNER = (slice(H, -H),) * 3
TYPES = {"a": "f8", "b": "f4", "c": "u1", "d": "u2", "e": "i2"}
NAMES = {"f8": "f64", "f4": "f32", "u1": "u8", "u2": "u16", "i2": "i16"}
KERNEL = """
#define MX_NAME "types"
#define MX_RADIUS 1
#define MX_FIXED_RADIUS {radius}
#define MX_STATE(F) F(u, double)
#define MX_FIXED(F) F(a, double) F(b, float) F(c, uint8_t) F(d, uint16_t) F(e, int16_t)
#include <memext/cell.h>
MX_CELL
    const double s = AT(u, -1, 0, 0) + AT(u, 1, 0, 0) + AT(u, 0, -1, 0) + AT(u, 0, 1, 0) + AT(u, 0, 0, -1) + AT(u, 0, 0, 1);
    const double k = AT(a, {radius}, 0, 0) + AT(b, 0, {radius}, 0) + AT(c, 0, 0, {radius}) + AT(d, 0, 0, -{radius}) + AT(e, 0, -{radius}, 0);
    SET(u, 0.125 * s + 1e-7 * k);
MX_END
"""
PLANS = {"stream": ["--plan", "stream by=23 bt=4"], "strips": ["--plan", "stream by=9 bt=2 slab=2"], "redundant": ["--algorithm", "redundant", "--block", 7, 8, 2],
         "skewed": ["--algorithm", "skewed", "--block", 17, 16, 2], "direct": ["--algorithm", "direct", "--block", 6, 5, 1]}
COMMITS = ["--plan", "stream by=23 bt=1", "--commit-every", 0]


def step(u, fixed, radius):
    """One step of the kernel, in its order."""
    def at(f, x=0, y=0, z=0):
        return f[H + z:f.shape[0] - H + z, H + y:f.shape[1] - H + y, H + x:f.shape[2] - H + x].astype("f8")

    r = radius
    s = at(u, -1) + at(u, 1) + at(u, 0, -1) + at(u, 0, 1) + at(u, 0, 0, -1) + at(u, 0, 0, 1)
    k = at(fixed["a"], r) + at(fixed["b"], 0, r) + at(fixed["c"], 0, 0, r) + at(fixed["d"], 0, 0, -r) + at(fixed["e"], 0, -r)
    new = u.copy()
    new[INNER] = 0.125 * s + 1e-7 * k
    return new


def identity(path):
    s = os.stat(path)
    return hashlib.sha256(path.read_bytes()).hexdigest(), s.st_size, s.st_ino, s.st_mtime_ns, s.st_ctime_ns, s.st_mode, s.st_nlink


class Fields:
    """Values, and files that hold them: `files` by field, `words` for the command."""

    def __init__(self, folder, radius):
        self.folder, self.radius = folder, radius
        rng = np.random.default_rng(3)
        self.u = rng.random(SHAPE)
        self.fixed = {f: (rng.random(SHAPE) if t[0] == "f" else rng.integers(-500 if t == "i2" else 0, 200, SHAPE)).astype(t) for f, t in TYPES.items()}
        self.kernel, self.states = folder / "types.c", [self.u]
        self.kernel.write_text(KERNEL.format(radius=radius))
        np.save(folder / "u.npy", self.u)
        bare = radius == 0
        self.files, self.words = {}, {}
        self.npy("a", False)
        self.raw("b", False, 4 * 13, b"and more of it", ",frame=yes")
        self.raw("c", bare, 3, b"!" * 5000 if bare else b"", ",frame=no" if bare else "")
        self.npy("d", bare)
        self.raw("e", False, 2, b"", "")
        link = folder / "link"
        link.symlink_to(self.files["e"])
        self.words["e"] = f"e={link},i16,offset=2"

    def values(self, field, bare):
        return self.fixed[field][INNER] if bare else self.fixed[field]

    def npy(self, field, bare):
        self.files[field] = self.folder / f"{field}.npy"
        np.save(self.files[field], self.values(field, bare))
        self.words[field] = f"{field}={self.files[field]}"

    def raw(self, field, bare, offset, tail, frame):
        self.files[field] = self.folder / f"{field}.raw"
        self.files[field].write_bytes(os.urandom(offset) + self.values(field, bare).tobytes() + tail)
        self.words[field] = f"{field}={self.files[field]},{NAMES[TYPES[field]]},offset={offset}{frame}"

    def run(self, nt, words=None):
        return ["--kernel", self.kernel, "-n", *N, "-t", nt, "--input", self.folder / "u.npy", *self.fields(words)]

    def fields(self, words=None):
        return [w for f in TYPES for w in ("--field", (words or self.words)[f])]

    def wanted(self, nt):
        while len(self.states) <= nt:
            self.states.append(step(self.states[-1], self.fixed, self.radius))
        return self.states[nt].tobytes()

    def identities(self):
        return {f: identity(p) for f, p in self.files.items()}


@pytest.fixture(scope="module")
def made(tmp_path_factory, build):
    """Shared by tests that leave the files alone. On storage: /tmp may be memory."""
    folder = build / f"test-in-place-{os.getpid()}"
    folder.mkdir()
    fields = {}
    for radius in 0, 1:
        (folder / str(radius)).mkdir()
        fields[radius] = Fields(folder / str(radius), radius)
    yield fields
    shutil.rmtree(folder)


@pytest.fixture
def own(place):
    """Files that a test may change, beside its store."""
    (place / "files").mkdir()
    return Fields(place / "files", 0)


@pytest.fixture
def store(place):
    (place / "store").mkdir()
    return place / "store"


def look(memext, store):
    done = memext("info", store, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["store"]


def extents(memext, store):
    return [e["name"] for e in look(memext, store)["extents"]]


# ------------------------------------------------------------------ results

@pytest.mark.parametrize("radius", [0, 1])
@pytest.mark.parametrize("backend, plans", [("uring", ["stream", "strips", "redundant"]), ("aio", ["stream", "strips", "redundant"]),
                                            ("mmap", ["stream", "redundant", "skewed", "direct"]), ("dram", ["direct", "stream"])])
def test_the_bits_of_the_plain_loop(memext, made, quick_place, tmp_path, radius, backend, plans):
    """By all plans; bytes moved are those predicted; the files are as they were, and the store has no copy of them (dram has)."""
    f, before = made[radius], made[radius].identities()
    for nt, plan in enumerate(plans, 3):
        place = ["-d", quick_place, "--keep", "--force"] if backend != "dram" else []
        done = memext.run(*f.run(nt), "-o", tmp_path / "u.npy", "--overwrite", "--backend", backend, *place, *PLANS[plan], "--threads", 2,
                          *(["--verify"] if plan == "stream" else []))
        assert np.load(tmp_path / "u.npy").tobytes() == f.wanted(nt), plan
        assert {k: v["in_place"] for k, v in done["files"].items()} == dict.fromkeys(TYPES, backend != "dram")
        if backend in ("uring", "aio"):
            assert (done["read_bytes"], done["write_bytes"]) == (done["predicted_read_bytes"], done["predicted_write_bytes"]), plan
        if backend != "dram":
            assert not [e for e in extents(memext, quick_place) if e.startswith("field")]
        assert f.identities() == before, plan


def test_copies_where_they_are_asked_for_or_needed(memext, made, own, store, tmp_path):
    """--field-copy; an offset that is no multiple of the cells: a remark says so, the other fields stay where they are."""
    f = made[0]
    done = memext.run(*f.run(3), "--field-copy", "-d", store, "--keep", "-o", tmp_path / "u.npy")
    assert np.load(tmp_path / "u.npy").tobytes() == f.wanted(3) and not any(v["in_place"] for v in done["files"].values())
    assert {"field-0", "field-4"} <= set(extents(memext, store)) and look(memext, store)["fields_in_place"] == []
    own.raw("b", True, 5, b"", "")
    done = memext.run(*own.run(3), "-d", store, "--force", "--keep", "-o", tmp_path / "u.npy", "--overwrite")
    assert np.load(tmp_path / "u.npy").tobytes() == own.wanted(3)
    assert [k for k, v in done["files"].items() if not v["in_place"]] == ["b"] and [e for e in extents(memext, store) if "field" in e] == ["field-1"]
    assert "b.raw is copied" in done.err and "byte 5" in done.err


def test_other_file_systems(memext, made, quick_place, store, tmp_path):
    """Files on another one than the store, and on memory, where O_DIRECT is refused; the same file for two fields."""
    f, words = made[0], dict(made[0].words)
    elsewhere = quick_place / "a.npy"
    elsewhere.write_bytes(f.files["a"].read_bytes())
    words["a"] = f"a={elsewhere}"
    shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path
    memory = os.path.join(shm, f"memext-test-{os.getpid()}-b.raw")
    shutil.copyfile(f.files["b"], memory)
    words["b"] = words["b"].replace(str(f.files["b"]), memory)
    try:
        for backend in "uring", "aio", "mmap":
            done = memext.run(*f.run(3, words), "-d", store, "--backend", backend, "-o", tmp_path / "u.npy", "--overwrite")
            assert np.load(tmp_path / "u.npy").tobytes() == f.wanted(3) and all(v["in_place"] for v in done["files"].values())
            if backend != "mmap":
                assert done["read_bytes"] == done["predicted_read_bytes"]
                assert shm == tmp_path or done["files"]["b"] == {"path": memory, "in_place": True, "page_cache": True, "align_bytes": 1}
    finally:
        os.unlink(memory)
    twice = store.parent / "twice.c"
    twice.write_text(KERNEL.format(radius=0).replace("F(b, float)", "F(b, double)"))
    done = memext.run("--kernel", twice, *f.run(2, {**f.words, "b": f"b={f.files['a']}"})[2:], "-d", store, "-o", tmp_path / "u.npy", "--overwrite")
    wanted = f.u
    for _ in range(2):
        wanted = step(wanted, {**f.fixed, "b": f.fixed["a"]}, 0)
    assert np.load(tmp_path / "u.npy").tobytes() == wanted.tobytes() and done["files"]["b"]["path"] == done["files"]["a"]["path"]


@needs_root
def test_a_read_only_mount(memext, own, store, tmp_path):
    """Nothing of the files' place can be written, and nothing has to be."""
    readonly = ["unshare", "--mount", "sh", "-c", f"mount --bind {own.folder} {own.folder} && mount -o remount,ro,bind {own.folder} && exec \"$@\"", "sh"]
    done = memext.run(*own.run(3), "-d", store, "-o", tmp_path / "u.npy", prefix=readonly)
    assert np.load(tmp_path / "u.npy").tobytes() == own.wanted(3) and all(v["in_place"] for v in done["files"].values())


def test_plans(memext, made, store):
    """--dry-run and tune count what a run reads; neither leaves anything."""
    f = made[0]
    planned = memext("run", *f.run(4), "-d", store, "--dry-run")
    assert planned.returncode == 0 and planned.stdout.count("read in place") == 5, planned.stdout + planned.stderr
    assert not [*store.iterdir()]
    done = memext.run(*f.run(4), "-d", store, "--threads", 2, "--no-fuse")
    report = json.loads(memext("tune", *f.run(4), "-d", store, "--threads", 2, "--no-fuse", "--json", "-").stdout)
    assert report["predicted_read_bytes"] == done["predicted_read_bytes"] == done["read_bytes"]
    assert done["predicted_init_bytes"] == memext.run(*f.run(4), "-d", store, "--field-copy", "--no-fuse", "--dry-run")["predicted_init_bytes"] - sum(
        e["bytes"] for e in fixed_extents(memext, f, store))


def fixed_extents(memext, f, store):
    memext.run(*f.run(1), "-d", store, "--field-copy", "--keep")
    found = [e for e in look(memext, store)["extents"] if e["name"].startswith("field")]
    (store / "memext.store").unlink()
    return found


# ------------------------------------------------------------------ stores

def begun(memext, f, store, nt, *words):
    """A run with a commit after every sweep, which has made one."""
    process = subprocess.Popen([str(w) for w in (memext.program, "run", *f.run(nt), "-d", store, "--quiet", *COMMITS, *words)], stderr=subprocess.PIPE, text=True)
    file = store / "memext.store"
    assert wait_until(lambda: file.exists() and memext("info", store, "--json", "-").returncode == 0 and look(memext, store)["step"] > 0,
                      "a commit", process)
    return process


def stopped(memext, f, store, nt):
    """A run that a dead device ended between two commits: the step that its store holds."""
    least, most, n = 4, None, 64
    while True:
        done = memext("run", *f.run(nt), "-d", store, "--backend", "fault:uring", "--fault", f"fail_after={n}", "--quiet", "--force", *COMMITS)
        assert done.returncode in (0, 3), done.stderr
        at = look(memext, store)["step"] if (store / "memext.store").exists() else 0
        if done.returncode == 3 and 0 < at < nt:
            return at
        least, most = (least, n) if done.returncode == 0 or at == nt else (n, most)
        assert least + 1 != most, "a run ends before its first commit, or has none"
        n = 2 * n if most is None else (least + most) // 2


@pytest.mark.parametrize("backend, after", [("mmap", "uring"), ("uring", "mmap")])
def test_after_kill(memext, made, store, tmp_path, backend, after):
    f, before, nt = made[0], made[0].identities(), 1501
    process = begun(memext, f, store, nt, "--backend", backend)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=600)
    done = memext.run("--resume", "-d", store, "--backend", after, "--plan", "stream by=23 bt=5", "-o", tmp_path / "u.npy")
    assert np.load(tmp_path / "u.npy").tobytes() == f.wanted(nt) and done["resumed_from"] > 0
    assert all(v["in_place"] for v in done["files"].values()) and f.identities() == before
    if after == "uring":
        assert done["read_bytes"] == done["predicted_read_bytes"]


def test_a_file_that_changes_while_it_is_read(memext, own, store, tmp_path):
    """No state that was computed from it is committed: what is in the store is still right."""
    process = begun(memext, own, store, 200000, "--backend", "uring")
    with open(own.files["b"], "r+b") as file:
        file.write(b"x")
    said = process.communicate(timeout=900)[1]
    assert process.returncode == 3 and "b.raw changed while the run read it in place as field b" in said, said
    at = look(memext, store)["step"]
    memext("export", store, "-o", tmp_path / "u.npy")
    assert np.load(tmp_path / "u.npy").tobytes() == own.wanted(at)


def test_what_becomes_of_files_between_runs(memext, own, store, tmp_path):
    """Changed, even with its time put back, cut short, gone: refused with what would help, and export works. Moved: it is found by --field."""
    nt, b = 9, own.files["b"]
    at = stopped(memext, own, store, nt)
    whole, times = b.read_bytes(), (b.stat().st_atime_ns, b.stat().st_mtime_ns)
    resume = ["run", "--resume", "-d", store, "--quiet"]
    shown = memext("info", store)
    assert shown.stdout.count(", read in place") == 5 and look(memext, store)["fields_in_place"] == list(TYPES)

    def put(data, keep_time=True):
        b.write_bytes(data)
        if keep_time:
            os.utime(b, ns=times)

    before = (store / "memext.store").read_bytes()
    for data, keep in ((whole[:-1] + b"?", False), (whole[:-1] + b"?", True), (whole[:-1], True), (whole + b"1", True), (whole[:100], True)):
        put(data, keep)
        memext.refused(*resume, naming=["b.raw", "--field b=FILE"] if len(data) != 100 else ["b.raw"])
    b.unlink()
    memext.refused(*resume, naming=["b.raw", "No such file"])
    assert memext("export", store, "-o", tmp_path / "u.npy").returncode == 0
    assert np.load(tmp_path / "u.npy").tobytes() == own.wanted(at)
    moved = own.folder / "moved"
    put(whole)
    b.rename(moved)
    where = own.words["b"].replace(str(b), str(moved))
    memext.refused(*resume, "--field", where.replace("offset=52", "offset=48"), naming=["moved", "other values"])
    memext.refused(*resume, "--field", where, "--field-copy", naming=["field-copy"])
    assert (store / "memext.store").read_bytes() == before
    done = memext.run(*resume[1:], "--field", where, "-o", tmp_path / "u.npy", "--overwrite", "--keep")
    assert np.load(tmp_path / "u.npy").tobytes() == own.wanted(nt) and done["resumed_from"] == at
    assert look(memext, store)["fields"]["b"] == str(moved)
    for path in own.files.values():  # of a run that is done nothing is read any more
        path.unlink(missing_ok=True)
    memext.run(*resume[1:], "-o", tmp_path / "u.npy", "--overwrite")
    assert np.load(tmp_path / "u.npy").tobytes() == own.wanted(nt)
    memext.refused(*resume, "--verify", naming=["No such file"])


def test_a_store_with_copies_goes_on(memext, own, store, tmp_path):
    """As stores from before files were read in place have them: the files are not needed."""
    memext("run", *own.run(9), "-d", store, "--backend", "fault:uring", "--fault", "fail_after=200", "--quiet", "--field-copy", *COMMITS)
    at = look(memext, store)["step"]
    words = own.fields()[2:4]
    memext.refused("run", "--resume", "-d", store, *(w.replace("offset=52", "offset=48") for w in words), naming=["other values", "b.raw"])
    for path in own.files.values():
        path.unlink()
    done = memext.run("--resume", "-d", store, "--backend", "mmap", "-o", tmp_path / "u.npy")
    assert np.load(tmp_path / "u.npy").tobytes() == own.wanted(9) and done["resumed_from"] == at


def test_refusals(memext, own, store):
    """Too short, not a file, what a run writes: nothing is touched."""
    short, before = own.folder / "short", own.identities()
    short.write_bytes(own.files["e"].read_bytes()[:-1])
    for field, word, naming in [("e", f"e={short},i16,offset=2,frame=yes", ["short"]), ("c", f"c={own.folder},u8", ["not a regular file"]),
                                ("a", f"a={own.files['d']}", ["d.npy", "u16"]), ("a", "a=/dev/null,f64", ["not a regular file"])]:
        memext.refused("run", *own.run(3, {**own.words, field: word}), "-d", store, naming=naming)
    for words in ["-o", own.files["b"], "--overwrite"], ["--json", own.folder / "link"], ["--timeline", own.files["a"]]:
        memext.refused("run", *own.run(3), "-d", store, *words, naming=["never written"])
    memext.refused("run", *own.run(3), "-d", own.files["c"], "--force", naming=["c.raw"])
    assert own.identities() == before and not [*store.iterdir()]
