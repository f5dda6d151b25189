# SPDX-License-Identifier: BSD-3-Clause
"""A plan file: what to run, in which variants, at which scale.

    name = "fig05"                       # results/<scale>/fig05/raw.jsonl
    title = "..."                        # shown while it runs and in the report
    repeats = {quick = 1, full = 5}      # of every run; a round runs each once, in an order of its own
    counted = true                       # nothing in it is timed: one repeat at any scale
    pilot = true                         # the night decides numbers with it: five rounds say how many it needs (experiments/night.py)
    kernel = "linux"                     # settings of the kernel (ARMS) of the runs with a memory limit: Linux's read-ahead, dirty limits scaled to the limit; default: this machine's own
    timeout_s = {quick = 60, full = 7200}

    [scale.quick]                        # values for {placeholders}, by scale; [scale.all] holds for every scale
    n = "510 512 256"
    [scale.full]
    n = "2046 2048 1024"
    [scale.thorough]                     # may be left out: [scale.quick] with these values instead, and 9 repeats at least
    [scale.night]                        # likewise, upon [scale.thorough]

    [[run]]
    id = "{backend}-{advice}"            # unique after expansion
    command = "{memext} run -n {n} -d {data} --backend {backend} --json {json} --timeline {timeline}"
    matrix = {backend = ["mmap", "swap"], advice = ["none", "random"]}   # every combination
    cases = [{size = "1GiB", nt = 4}]                                    # times each of these tables
    limit = "{dram}"                     # memory of the command (experiments/limit-memory); "" = no limit
    swap = "2GiB"                        # with a temporary swap file; "zram 2GiB": with compressed memory as swap space
    high = "64MiB"                       # memory.high of its cgroup, below the limit (cgroup v2; skipped elsewhere)
    file_system = "xfs 3GiB"             # {data} is on a new file system of this kind, in a file on storage (loopfs.py; skipped without mkfs.xfs)
    knobs = {read_ahead_kb = "128"}      # kernel settings while the run lasts (knobs.py)
    kernel = "machine"                   # the plan's `kernel` for this run, whether it has a limit or not; another one than the plan's is an arm beside it, told by the parameter `arm`
    scales = ["full"]                    # only there; default: everywhere ("quick" is not "thorough", "thorough" is "night" as well)
    repeats, timeout_s                   # override the plan's

A `memext run` commits after each sweep, so that runs of seconds and of hours do the same: --commit-every 0 is added where its algorithm and backend commit.

A string in place of a list in `matrix` or `cases` names a list in the scale table. Values may contain placeholders.
Filled in by the runner: {memext} the command, {data} an empty directory on storage, removed afterwards, {json} and
{timeline} files that it collects after the run.
"""
import hashlib
import itertools
import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import tomllib

RUNNER_WORDS = ("memext", "data", "json", "timeline", "root")
# A scale that is another one with more of it: what its own table does not say is that one's.
BASE = {"thorough": "quick", "night": "thorough"}
THOROUGH_REPEATS = 9  # at least, where the plan does not say: enough for a rank test of pairs to decide
PLAN_KEYS = {"name", "title", "repeats", "counted", "pilot", "kernel", "timeout_s", "scale", "run"}
RUN_KEYS = {"id", "command", "matrix", "cases", "limit", "high", "swap", "file_system", "knobs", "kernel", "scales", "repeats", "timeout_s", "labels"}

# What a machine's own settings would decide in the place of what is compared. Linux reads 128 KiB ahead of a file and 2^3 pages ahead of a fault from swap space; a disk may bring another size
# (virtual ones do). Its dirty limits, 10 and 20 %, are shares of the memory that may become dirty: with cgroup v1 of the whole machine's, which a run in some MiB never reaches. This project
# takes the same shares of the limit of the run instead, as bytes. That is its own choice and not what Linux does. With cgroup v2 Linux applies the ratios to the cgroup itself, and would take
# bytes as a share of the whole machine's memory: there they are left alone (knobs.py). A run without a limit keeps the machine's. DAMON, which may page out what is cold, is off.
AHEAD = {"read_ahead_kb": "128", "vm.page-cluster": "3"}
DIRTY = {"vm.dirty_background_bytes": 0.10, "vm.dirty_bytes": 0.20}  # shares of the limit
QUIET = {"damon": "off"}
ARMS = {
    "linux": {**AHEAD, **DIRTY, **QUIET},
    "machine": {},
    "machine-ahead": {**DIRTY, **QUIET},  # this machine's read-ahead alone
    "machine-dirty": {**AHEAD, **QUIET},  # its dirty limits alone
}
PLANS = Path(__file__).resolve().parents[1] / "plans"
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


class PlanError(ValueError):
    """A plan file that cannot be run. The message names the file, the fault and the way out."""


@dataclass(frozen=True)
class Run:
    """One configuration. `words` still holds the runner's own placeholders."""

    plan: str
    id: str
    words: tuple
    params: dict = field(hash=False)
    limit: str = ""
    swap: str = ""
    high: str = ""
    file_system: str = ""
    knobs: dict = field(default_factory=dict, hash=False)
    usual: dict = field(default_factory=dict, hash=False)  # settings of its arm, which a machine may lack
    repeats: int = 1
    timeout_s: float = 60.0

    def key(self, program):
        """What a result depends on: the command, its limits and settings, and the program that ran."""
        later = [self.high, self.file_system] if self.high or self.file_system else []  # keys of runs without them stay as they were
        text = json.dumps([self.words, self.limit, self.swap, self.knobs, self.usual, program, *later], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Plan:
    name: str
    title: str
    scale: str
    path: Path
    runs: tuple
    pilot: bool = False


def size_bytes(size):
    """Of "512MiB"; 0 of what is no size."""
    match = re.fullmatch(r"([0-9.]+) ?([KMGT]iB|)", size or "")
    return float(match[1]) * UNITS[match[2]] if match else 0


def arm_settings(path, arm, limit):
    """{setting: value} of an arm, for a run with this memory limit."""
    if arm not in ARMS:
        raise PlanError(f"{path}: kernel = '{arm}' is not known; the values are {', '.join(ARMS)}")
    page, memory = 4096, size_bytes(limit)
    return {name: value if isinstance(value, str) else str(int(value * memory) // page * page) for name, value in ARMS[arm].items() if isinstance(value, str) or memory}


def load(path, scale):
    """The plan of one file at one scale. Raises PlanError."""
    path = Path(path)
    try:
        raw = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"{path}: {error}") from error
    _only(path, "the plan", raw, PLAN_KEYS)
    for key in ("name", "title", "scale", "run"):
        if key not in raw:
            raise PlanError(f"{path}: the plan has no key '{key}'")
    upon = [*_below(scale)][::-1]  # the base first
    if not has(path, scale):
        raise PlanError(f"{path}: the plan has no table [scale.{upon[0]}]; its scales are {', '.join(sorted(raw['scale']))}")
    values = dict(raw["scale"].get("all", {}))
    for name in upon:
        values.update(raw["scale"].get(name, {}))
    runs = []
    for entry in raw["run"]:
        runs += _expand(path, raw, entry, values, scale)
    seen = set()
    for run in runs:
        if run.id in seen:
            raise PlanError(f"{path}: two runs have the id '{run.id}'; put a parameter that differs into id")
        seen.add(run.id)
    return Plan(raw["name"], raw["title"], scale, path, tuple(runs), bool(raw.get("pilot")))


def _below(scale):
    """The scale, the scale that it extends, and so on."""
    while scale:
        yield scale
        scale = BASE.get(scale)


def has(path, scale):
    """Does a plan file have this scale? Some have one scale only."""
    try:
        return not {*_below(scale)}.isdisjoint(tomllib.loads(Path(path).read_text()).get("scale", {}))
    except (OSError, tomllib.TOMLDecodeError):
        return True  # load says what is wrong


def _only(path, what, table, allowed):
    unknown = set(table) - allowed
    if unknown:
        raise PlanError(f"{path}: {what} has unknown keys: {', '.join(sorted(unknown))}; the keys are {', '.join(sorted(allowed))}")


# What has nothing to commit: algorithms that rewrite their Buffers in place, and Buffers that end with the process.
IN_PLACE = ("direct", "direct-skewed", "direct-skewed-opt", "skewed", "skewed-y", "skewed-min")
ANONYMOUS = ("dram", "swap")


def _with_commits(words):
    def of(option):
        return words[words.index(option) + 1] if option in words[:-1] else ""

    starts = [i for i, word in enumerate(words[:-1]) if word == "{memext}" and words[i + 1] == "run"]
    if not starts or "--commit-every" in words or of("--algorithm") in IN_PLACE or of("--backend") in ANONYMOUS:
        return words
    at = starts[0] + 2
    return [*words[:at], "--commit-every", "0", *words[at:]]


def _expand(path, raw, entry, values, scale):
    _only(path, f"run '{entry.get('id', '?')}'", entry, RUN_KEYS)
    if "id" not in entry or "command" not in entry:
        raise PlanError(f"{path}: a run has no id or no command; give it both")
    if not {scale, "thorough" if scale == "night" else scale} & set(entry.get("scales", [scale])):
        return
    for params in _variants(path, entry, values):
        known = {**values, **params}

        def text(template):
            return fill(path, str(template), known)

        limit, usual = text(entry.get("limit", "")), raw.get("kernel", "machine")
        arm = text(entry["kernel"]) if "kernel" in entry else usual if limit else "machine"
        beside = {"arm": arm} if "kernel" in entry and arm != usual else {}
        yield Run(
            plan=raw["name"],
            id=text(entry["id"]),
            words=tuple(_with_commits(shlex.split(text(entry["command"])))),
            params={**{k: text(v) if isinstance(v, str) else v for k, v in known.items() if not isinstance(v, (list, dict))}, **beside},
            limit=limit,
            swap=text(entry.get("swap", "")),
            high=text(entry.get("high", "")),
            file_system=text(entry.get("file_system", "")),
            knobs={k: text(v) for k, v in entry.get("knobs", {}).items()},
            usual=arm_settings(path, arm, limit),
            repeats=1 if raw.get("counted") else _repeats(entry.get("repeats", raw.get("repeats", 1)), scale),
            timeout_s=float(_at_scale(entry.get("timeout_s", raw.get("timeout_s", 60)), scale)),
        )


def _at_scale(value, scale):
    if not isinstance(value, dict):
        return value
    return next(value[name] for name in _below(scale) if name in value)


def _repeats(value, scale):
    given = int(_at_scale(value, scale))
    said = isinstance(value, dict) and scale in value
    return max(given, THOROUGH_REPEATS) if scale in BASE and not said else given


def _variants(path, entry, values):
    """Every case times every combination of the matrix, as dicts of parameters."""
    cases = _list(path, entry.get("cases", [{}]), values)
    axes = [(name, _list(path, choices, values)) for name, choices in entry.get("matrix", {}).items()]
    for case in cases:
        for combination in itertools.product(*(choices for _, choices in axes)):
            params = {**entry.get("labels", {}), **case}
            for (name, _), choice in zip(axes, combination):
                params.update(choice if isinstance(choice, dict) else {name: choice})
            yield params


def _list(path, value, values):
    if isinstance(value, str):
        if not isinstance(values.get(value), list):
            raise PlanError(f"{path}: '{value}' is not a list in the table of the scale")
        return values[value]
    return value


def fill(path, template, values, depth=5):
    """Replaces {placeholders}, also those in the values; the runner's own stay."""
    known = {**values, **{word: "{" + word + "}" for word in RUNNER_WORDS}}
    for _ in range(depth):
        try:
            filled = template.format_map(known)
        except KeyError as error:
            raise PlanError(f"{path}: '{template}' needs {error}, which neither the run nor its scale gives") from error
        if filled == template:
            return filled
        template = filled
    raise PlanError(f"{path}: '{template}' refers to itself")
