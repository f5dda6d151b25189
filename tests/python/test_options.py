# SPDX-License-Identifier: BSD-3-Clause
"""One table of options: what help, the manual, completion, job files and Python say of it, and that nothing else is said."""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys

import numpy
import pytest
from conftest import ROOT

COMMANDS = ("run", "tune", "info", "export", "kernel", "view", "wavefront", "tune --wavefront")
SMALL = ["-n", 14, 12, 10, "-t", 3]
BASH, ZSH = ROOT / "cmake" / "completion" / "memext", ROOT / "cmake" / "completion" / "_memext"


@pytest.fixture(scope="module")
def table(memext):
    """{command: {option: its row}}"""
    done = memext("--options")
    assert done.returncode == 0 and done.stderr == ""
    rows = json.loads(done.stdout)["options"]
    return {command: {row["name"]: row for row in rows if command in row["commands"]} for command in (*COMMANDS, "library")}


def options_of(text):
    return set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*)", text))


def entries(text):
    """Options that have an entry of their own: the first on its line, behind a letter at most."""
    return set(re.findall(r"^ +(?:-\w, +)?--([a-z][a-z0-9-]*)(?=[ \[]|$)", text, re.M))


# ------------------------------------------------------------------ all say the same

def test_what_is_made_from_the_table_is_as_it_is_made_now(memext):
    """docs/memext.1, the completions and python/memext/options.py are what docs/make_options.py writes."""
    done = subprocess.run([sys.executable, ROOT / "docs" / "make_options.py", "--check", memext.program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_rows(table):
    """Every row has what all readers need; names are of one row a command; what they refer to is there."""
    rows = {id(row): row for of_command in table.values() for row in of_command.values()}.values()
    assert len(rows) > 90
    names = {row["name"] for row in rows}
    for row in rows:
        name = row["name"]
        assert row["summary"].endswith(".") and len(row["summary"]) <= 90, name
        assert (row["argument"] is None) == (row["words"] == 0 and not row["optional"]), name
        assert {*(row["excludes"] or "").split(), *(row["needs"] or "").split()} <= names, name
        assert (row["excludes"] is None) == (row["because"] is None), name
        assert row["values"] or not row["closed"], name
        for sentence in re.split(r"(?<=[.:;]) ", re.sub(r"\n\* ", "\n", row["more"] or "").replace("\n", ". ")):
            assert len(sentence.split()) <= 25, (name, sentence)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_all(memext, table, command):
    """{entries of --help all} == {options of the command}; the first page has fewer, and fits on one."""
    every, first = memext(*command.split(), "--help", "all"), memext(*command.split(), "--help")
    assert every.returncode == first.returncode == 0 and every.stderr == first.stderr == ""
    assert entries(every.stdout) == table[command].keys()
    wanted = {name for name, row in table[command].items() if command in row["first"]}
    assert entries(first.stdout) == wanted and len(first.stdout.splitlines()) <= 75 and max(map(len, first.stdout.splitlines())) <= 100


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_group(memext, table, command):
    """Groups together are all; an unknown one is refused with the list and the nearest name."""
    groups = {row["group"] for row in table[command].values()}
    texts = {group: memext(*command.split(), "--help", group) for group in groups}
    assert all(done.returncode == 0 for done in texts.values())
    assert {group: entries(done.stdout) for group, done in texts.items()} == {
        group: {name for name, row in table[command].items() if row["group"] == group} for group in groups}
    assert memext(*command.split(), f"--help={min(groups)}").stdout == texts[min(groups)].stdout or command == "view"
    assert memext("help", command.split()[0]).stdout == memext(command.split()[0], "--help").stdout
    memext.refused("--help", "all", naming="memext run --help all")
    memext.refused(*command.split(), "--help", "reprot", naming=[*groups, "did you mean report?"])


def manual_text():
    page = (ROOT / "docs" / "memext.1").read_text()
    return re.sub(r"\\f.", "", page.replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\"))


def test_manual(table):
    """{entries of the section OPTIONS} == {options of all commands}; no other option is named anywhere in the page."""
    section = manual_text().split(".SH OPTIONS\n")[1].split("\\\" END")[0]
    found = re.findall(r"^\.TP\n(?:-\w, )?--([a-z][a-z0-9-]*)(?: .*)?$", section, re.M)
    wanted = sorted(name for row in {id(row): row for of_command in table.values() for row in of_command.values()}.values() for name in [row["name"]])
    assert len(found) == len(set(found)) + len(wanted) - len(set(wanted)) or set(found) == set(wanted)
    assert set(found) == set(wanted)
    assert options_of(manual_text()) - set(wanted) == {"version"}


def bash(line, point=None):
    """What bash offers for the last word of a line."""
    words = re.findall(r"=|[^\s=]+", line) + ([""] if line.endswith(" ") else [])
    script = f'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD={len(words) - 1}; _memext memext; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script, "bash", BASH, *words], capture_output=True, text=True, cwd=ROOT / "systems", check=True)
    assert done.stderr == ""
    return {word for word in done.stdout.split("\n") if word}


@pytest.mark.parametrize("command", COMMANDS)
def test_bash_options(table, command):
    assert {word.removeprefix("--") for word in bash(f"memext {command} --")} == table[command].keys()


def test_bash_values(table):
    """Commands, values that the table knows, files; after a blank and after =; for the papers' programs too."""
    assert bash("memext ") == {*COMMANDS[:-1], "--help", "--version"} and bash("memext wa") == {"wavefront"}
    for command in COMMANDS:
        for name, row in table[command].items():
            if row["values"] and command != "view":
                assert bash(f"memext {command} --{name} ") >= set(row["values"]), name
                assert bash(f"memext {command} --{name}=") >= set(row["values"]), name
    assert bash("memext run --backend=ur") == bash("memext run --backend ur") == bash("stencil7p --backend ur") == {"uring"}
    assert bash("memext tune --wavefront --layout b") == {"block"} and bash("memext kernel ch") == {"check"}
    assert bash("memext run --kernel diffusion") >= {"diffusion.c"} and bash("memext run --kernel=diffusion") >= {"diffusion.c"}
    assert "all" in bash("memext run --help ")


def test_zsh(table):
    """The file parses, and gives _arguments the options of the command."""
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed")
    assert subprocess.run(["zsh", "-n", ZSH], capture_output=True, text=True, check=True).stderr == ""
    script = '_arguments() { print -l -- "$@"; }; _describe() { print -l -- $commands; }; words=(memext ${=1} ""); CURRENT=$#words; service=memext; source $2'
    for command in COMMANDS:
        done = subprocess.run(["zsh", "-f", "-c", script, "zsh", command, ZSH], capture_output=True, text=True, check=True)
        assert done.stderr == "" and set(re.findall(r"(?:^|\))\*?--([a-z0-9-]+)\[", done.stdout, re.M)) == table[command].keys(), command
        for name, row in table[command].items():
            if row["values"]:
                assert re.search(rf"--{name}\[.*:\({re.escape(' '.join(row['values']))}\)", done.stdout), name


def test_python(table):
    """Keywords of Run, and what it has another way for, are the options that programs have."""
    spec = importlib.util.spec_from_file_location("memext_options", ROOT / "python" / "memext" / "options.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.OPTIONS.keys() | module.OWN.keys() == {name.replace("-", "_") for name in table["library"]}
    assert not module.OPTIONS.keys() & module.OWN.keys()
    listed = [line.split("=")[0].strip() for line in module.documented().splitlines()]
    assert listed == list(module.OPTIONS)


def test_every_option_is_taken(memext, table):
    """No row but has a reader: none is 'not known' to its command."""
    for command in ("run", "tune", "info", "export", "kernel", "wavefront", "tune --wavefront"):
        for name, row in table[command].items():
            if name not in ("help", "wavefront"):
                done = memext(*command.split(), f"--{name}" + ("=" if row["argument"] and row["words"] < 2 else ""), "--help")
                assert "not known (" not in done.stderr and "belongs to other commands" not in done.stderr and done.returncode in (0, 2), (command, name, done.stderr)


# ------------------------------------------------------------------ what was meant

@pytest.mark.parametrize("words, meant", [
    (["run", "--drma", "1GiB"], "did you mean --dram?"), (["run", "--outptu=x"], "did you mean --output?"), (["tune", "--exhastive"], "did you mean --exhaustive?"),
    (["run", *SMALL, "--backend", "urnig"], "did you mean uring?"), (["run", *SMALL, "--backend", "fault:urnig"], "did you mean uring?"),
    (["run", *SMALL, "--algorithm", "steam"], "did you mean stream?"), (["run", *SMALL, "--engine", "tield"], "did you mean tiled?"),
    (["run", *SMALL, "--tuner", "niave"], "did you mean naive?"), (["run", *SMALL, "--stencil", "satr7"], "did you mean star7?"), (["run", *SMALL, "--stencil", "./heat.c"], "give it with --kernel"),
    (["run", *SMALL, "--dtype", "f46"], "did you mean f64?"), (["run", *SMALL, "--init", "guass"], "did you mean gauss?"),
    (["run", *SMALL, "--side", "x=priodic"], "did you mean periodic?"), (["run", *SMALL, "--frame", "miror"], "did you mean mirror?"),
    (["run", *SMALL, "--advice", "sequental"], "did you mean sequential?"), (["run", *SMALL, "--nonfinite", "ingore"], "did you mean ignore?"),
    (["run", *SMALL, "--accel", "cdua"], "did you mean cuda?"), (["export", "x", "-o", "y.npy", "--output-frame", "nnoe"], "did you mean none?"),
    (["run", *SMALL, "--reserve", "papre"], "did you mean paper?"), (["wavefront", "-n", 9, 9, "-k", 1, "--layout", "bolck"], "did you mean block?"),
    (["kernel", "chek", "x.c"], "did you mean check?"), (["rnu"], "did you mean run?"),
])  # fmt: skip
def test_did_you_mean(memext, words, meant):
    memext.refused(*words, naming=meant)


@pytest.mark.parametrize("words", [["run", "--colour"], ["run", *SMALL, "--backend", "tape"], ["run", *SMALL, "--dtype", "i7"], ["compute"]])
def test_nothing_is_near(memext, words):
    assert "did you mean" not in memext.refused(*words, naming="no").stderr


MACHINE = {"cores": [4], "sockets": [1], "l2": ["1MiB"], "l3": ["8MiB"], "topology": ["x.xml"], "align": [512], "capacity": ["1GiB"]}


def test_contradictions_are_refused(memext, table):
    """Each pair of the table, with the reason."""
    value = {"size": [14, 12, 10], "init": ["zero"], "input": ["x.npy"], "kernel": ["x.c"], "stencil": ["star7"], "coef": ["1"], "dtype": ["f64"], "field": ["k=x.npy"], **MACHINE}
    for name, row in table["run"].items():
        for other in (row["excludes"] or "").split():
            needed = ["--kernel", "x.c"] if row["needs"] not in (None, "dry-run") else []
            done = memext("run", *SMALL, f"--{name}", *value.get(name, []), f"--{other}", *value.get(other, []), *needed)
            assert done.returncode == 2 and f"--{name} and --{other} exclude each other: {row['because']}" in done.stderr, done.stderr


def test_needs_are_refused(memext, table):
    value = {"param": ["a=1"], "edit-param": ["a=1"], "edit-input": ["x.npy"], "field": ["k=x.npy"], "probes": ["x"], "probes-out": ["x.npy"], "snapshot-fields": ["u"], "device-memory": ["1MiB"], **MACHINE}
    for name, row in table["run"].items():
        if row["needs"]:
            done = memext("run", *SMALL, f"--{name}", *value.get(name, []))
            assert done.returncode == 2 and f"--{name} needs --{row['needs'].split()[0]}" in done.stderr, done.stderr


# ------------------------------------------------------------------ job files

def test_a_job_is_the_command_line(memext, place, tmp_path):
    """Saved and run again: the same result; what the line says itself wins; --write-job touches nothing else."""
    job, out = tmp_path / "job.json", tmp_path / "out.npy"
    words = [*SMALL, "-d", place, "--side", "x=periodic", "--side", "z=mirror,fixed", "--dram", "32MiB", "--threads", 2, "--coef", "0.3,0.1", "--algorithm", "stream",
             "--until", "max-change=1e-300", "--check", 2, "--commit-every", 0.5, "-o", out]
    done = memext("run", *words, "--write-job", job)
    assert done.returncode == 0 and done.stdout == "" and not out.exists() and os.listdir(place) == []
    saved = json.loads(job.read_text())
    assert saved["size"] == [14, 12, 10] and saved["steps"] == 3 and saved["threads"] == 2 and saved["side"] == ["x=periodic", "z=mirror,fixed"]
    plain = memext.run(*words)
    out.unlink()
    again = memext.run(job)
    assert again["checksum"] == plain["checksum"] and again["problem"] == plain["problem"] and out.exists()
    done = memext("run", job, "--write-job", "-")
    assert json.loads(done.stdout) == saved
    longer = memext.run(job, "-t", 5, "--overwrite")
    assert longer["problem"]["nt"] == 5 and longer["checksum"] != plain["checksum"]
    done = memext("run", job, "--side", "x=mirror", "--write-job", "-")
    assert json.loads(done.stdout)["side"] == "x=mirror"
    memext.refused("run", job, "--write-job", job, naming=["job.json", "there already"])


@pytest.mark.parametrize("option", ["--json", "--output", "--timeline", "--trace", "--probes-out"])
def test_a_job_is_an_input(memext, tmp_path, option):
    """No output of the run takes its place."""
    job, probes = tmp_path / "job.npy", tmp_path / "probes"
    probes.write_text("u 1 1 1\n")
    memext("run", *SMALL, "--backend", "dram", "--probes", probes, "--probes-out", tmp_path / "traces.npy", "--write-job", job)
    before = job.read_bytes()
    memext.refused("run", job, option, job, "--overwrite", naming=["file of the job"])
    assert job.read_bytes() == before


def test_a_job_replaces_no_input(memext, place, tmp_path):
    """--write-job with --overwrite: neither what the run reads nor a store."""
    memext.run(*SMALL, "-d", place, "--keep")
    grid, kernel = tmp_path / "u.npy", tmp_path / "kernel.c"
    memext("export", place, "-o", grid)
    kernel.write_text((ROOT / "systems" / "diffusion.c").read_text())
    line = ["--kernel", kernel, "--input", f"u={grid}", "--init", "k=random", "-t", 1, "-d", place]
    for path in grid, kernel, place / "memext.store":
        before = path.read_bytes()
        assert memext("run", *line, "--write-job", path, "--overwrite").returncode == 2 and path.read_bytes() == before
    before = (place / "memext.store").read_bytes()
    assert memext("run", *SMALL, "-d", tmp_path, "--write-job", place / "memext.store", "--overwrite").returncode == 2
    assert (place / "memext.store").read_bytes() == before


def test_ways_to_write_a_job(memext, tmp_path):
    """Numbers, texts, lists and objects say the same; false is as if it were not there."""
    ways = [{"size": [14, 12, 10], "steps": 3, "coef": [0.3, 0.1], "side": {"x": "periodic", "z": "fixed,mirror"}, "dram": 1 << 25, "backend": "dram", "verify": False},
            {"size": "14 12 10", "steps": "3", "coef": "0.3,0.1", "side": ["x=periodic", "z=fixed,mirror"], "dram": "32MiB", "backend": "dram"}]
    sums = []
    for number, way in enumerate(ways):
        (tmp_path / f"{number}.json").write_text(json.dumps(way))
        sums.append(memext.run(tmp_path / f"{number}.json")["checksum"])
    assert sums[0] == sums[1]


@pytest.mark.parametrize("text, naming", [
    ("", "line 1"), ("[]", "one JSON object"), ('{"size": [1, 2, 3], "size": 4}', "duplicate"), ('{"drma": "1GiB"}', ["drma", "did you mean dram?"]),
    ('{"verify": 1}', "verify: give true or false"), ('{"dram": true}', "dram: give a text or a number"), ('{"dram": {"a": 1}}', "dram: give a text or a number"),
    ('{"side": [["x"]]}', "side: give a text or a number"), ('{"help": "all"}', "help"), ('{"write-job": "x"}', "write-job"), ('{"backend": "urnig"}', "did you mean uring?"),
    ('{"steps": 1e400}', "line 1"), ('{"steps": null}', "steps"), ('{"size": [3]}', "2 or 3 numbers"),
])  # fmt: skip
def test_wrong_jobs(memext, tmp_path, text, naming):
    (tmp_path / "job.json").write_text(text)
    memext.refused("run", tmp_path / "job.json", naming=[*([naming] if isinstance(naming, str) else naming)])


def test_a_job_that_cannot_be_read(memext, tmp_path):
    memext.refused("run", tmp_path / "none.json", naming=["none.json", "No such file"])
    memext.refused("run", tmp_path, naming="directory")
    (tmp_path / "long.json").write_text("{" + " " * (1 << 20) + "}")
    memext.refused("run", tmp_path / "long.json", naming="1 MiB")
    os.mkfifo(tmp_path / "pipe")
    memext.refused("run", tmp_path / "pipe", naming="pipe")
    memext.refused("run", "a.json", "b.json", naming="b.json")


# ------------------------------------------------------------------ the manual's examples

def examples():
    """[[command, ...] of each example]"""
    text = manual_text().split(".SH EXAMPLES\n")[1].split(".SH")[0]
    return [re.sub(r"\\\n *", "", block).strip().splitlines() for block in re.findall(r"^\.nf\n(.*?)^\.fi$", text, re.M | re.S)]


def test_there_are_ten_examples():
    assert len(examples()) == 10


@pytest.mark.parametrize("number", range(10))
def test_examples_of_the_manual(memext, quick_place, number):
    """Each runs as it is printed, in a directory of its own."""
    environment = {**os.environ, "PATH": f"{memext.program.parent}:{os.environ['PATH']}"}
    for command in examples()[number]:
        command = re.sub(r"^python3", sys.executable, command.replace("SYSTEMS", str(ROOT / "systems")))
        done = subprocess.run(command, shell=True, cwd=quick_place, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, (command, done.stderr)
    files = {path.name: numpy.load(path).shape for path in quick_place.glob("*.npy")}
    assert files == {3: {"ones.npy": (30, 30, 30), "smooth.npy": (32, 32, 32)}, 5: {"step10.npy": (32, 32, 32), "step20.npy": (32, 32, 32)},
                     6: {"rock.npy": (32, 32, 32), "diffused.npy": (32, 32, 32)}}.get(number, {})
