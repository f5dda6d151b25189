# SPDX-License-Identifier: BSD-3-Clause
"""The timeline of a run (runtime/observe/timeline.h): samples, residency, events."""
import gzip
import json
from dataclasses import dataclass

import numpy as np

VERSION = 1
NEEDED_COLUMNS = ("t_s", "user_s", "system_s", "updates", "read_bytes", "write_bytes", "storage_read_bytes", "storage_write_bytes",
                  "device_read_bytes", "device_write_bytes", "major_faults", "swap_in_bytes", "swap_out_bytes")  # fmt: skip
# Bytes that the schedule moves between Buffers and Blocks, through any cache: the bytes that the computation needs.
USEFUL = ("read_bytes", "write_bytes")
EVENTS = ("advance", "load", "store", "copy", "wait", "commit", "sweep", "load-faces", "store-faces", "feed", "take")


class TimelineError(ValueError):
    pass


@dataclass
class Timeline:
    header: dict
    samples: np.ndarray  # [n, columns]
    residency: np.ndarray  # [n, Buffers, bins] in per cent, or empty; the first two Buffers are source and target, and a third keeps the committed state
    events: list  # dicts e, t, y, z, n
    looks: np.ndarray = None  # [n] booleans: did this sample look at the residency? The other samples repeat the last look

    def column(self, name):
        return self.samples[:, self.header["columns"].index(name)]

    @property
    def t(self):
        return self.column("t_s")

    @property
    def duration_s(self):
        return float(self.t[-1]) if len(self.samples) else 0.0

    def total(self, name):
        return float(self.column(name)[-1]) if len(self.samples) else 0.0

    def rate(self, *names):
        """(middles of the intervals, growth of the counters per second, summed)."""
        t = self.t
        dt = np.diff(t)
        keep = dt > 1e-6
        grown = sum(np.diff(self.column(n)) for n in names)
        return (0.5 * (t[1:] + t[:-1]))[keep], grown[keep] / dt[keep]

    def traffic(self):
        """Names of the counters of real storage traffic: those of the device, or those of swap if the Buffers are anonymous memory. Unlike USEFUL, they count needless reads too."""
        if self.header["backend"] == "swap":
            return "swap_in_bytes", "swap_out_bytes"
        return "device_read_bytes", "device_write_bytes"

    def busy(self, least):
        """Seconds in which the storage transfers more than `least` bytes a second."""
        t, rate = self.rate(*self.traffic())
        dt = np.diff(self.t)
        return float(dt[dt > 1e-6][rate > least].sum())

    def cpu(self, cores):
        """(times, share of all cores that this process keeps busy, 0..1)."""
        t, used = self.rate("user_s", "system_s")
        return t, used / max(1, cores)

    def planes(self):
        """Planes of a Buffer, frame included."""
        p = self.header["problem"]
        return p["nz"] + 2 * p["h"]

    def of_kind(self, *kinds):
        return [e for e in self.events if e["e"] in kinds]

    @property
    def wait_s(self):
        return sum(e["t"][1] - e["t"][0] for e in self.of_kind("wait"))


def parse(lines, where="timeline"):
    lines = iter(lines)
    header = _json(where, 1, next(lines, ""))
    if header.get("memext_timeline") != VERSION:
        raise TimelineError(f"{where}: the version of the timeline is {header.get('memext_timeline')!r}, and this analysis reads version {VERSION} only")
    missing = [c for c in NEEDED_COLUMNS if c not in header.get("columns", [])]
    if missing:
        raise TimelineError(f"{where}: the timeline lacks the columns {', '.join(missing)}")
    buffers = len(header.get("buffers", [])) or 2
    samples, residency, events, looks = [], [], [], []
    for number, line in enumerate(lines, 2):
        if not line.endswith("\n"):
            break  # the run was killed while it wrote this line
        record = _json(where, number, line)
        if "s" in record:
            if len(record["s"]) != len(header["columns"]):
                raise TimelineError(f"{where}:{number}: the sample has {len(record['s'])} values, and the header has {len(header['columns'])} columns")
            samples.append(record["s"])
            looks.append(bool(record.get("r")))
            # A sample without a look, which would have cost too much, repeats the last look.
            residency.append(record.get("r") or (residency[-1] if residency else [[0] * header["bins"]] * buffers if header.get("bins") else []))
        elif record.get("e") in EVENTS:
            events.append(record)
        else:
            raise TimelineError(f"{where}:{number}: the line is neither a sample nor a known event")
    events.sort(key=lambda e: e["t"][0])
    shape = (len(samples), buffers, header["bins"]) if header.get("bins") else (0, buffers, 0)
    return Timeline(header, np.array(samples, float).reshape(-1, len(header["columns"])), np.array(residency, float).reshape(shape), events, np.array(looks, bool))


def _json(where, number, line):
    try:
        return json.loads(line)
    except ValueError as error:
        raise TimelineError(f"{where}:{number}: {error}") from error


def read_all(path):
    """The timelines of a file, gzip or plain: that of the run, or one for each rank."""
    opener = gzip.open if str(path).endswith(".gz") else open
    parts = []
    with opener(path, "rt") as file:
        for line in file:
            if line.startswith('{"memext_timeline"') or not parts:
                parts.append([])
            parts[-1].append(line)
    return [parse(part, str(path)) for part in parts or [[]]]


def read(path):
    """The timeline of a file, gzip or plain; if there are several ranks, that of rank 0."""
    return read_all(path)[0]


def is_whole(timeline, event):
    """Does this step compute the whole grid? Then each thread goes through its own share of the planes."""
    return event["e"] == "advance" and event["z"][1] - event["z"][0] >= timeline.planes() - 2 * timeline.header["problem"]["h"]


def sweep_visibility(timeline):
    """How far the residency follows the sweep: the correlation between the position of the computation and the centre of the pages that entered
    the page cache. The larger value of the two Buffers counts. If every thread has a share of the planes, positions count within the shares. None
    if one of the positions does not move."""
    events = timeline.of_kind("advance")
    seen = timeline.residency[timeline.looks] if len(timeline.residency) else timeline.residency
    if len(seen) < 4 or not events:
        return None
    shares = max(1, timeline.header["plan"].get("threads", 1)) if all(is_whole(timeline, e) for e in events) else 1
    t, where = _position(timeline, events)
    looked = timeline.t[timeline.looks]
    middle = 0.5 * (looked[1:] + looked[:-1])
    best = None
    for b in range(2):
        grown = np.clip(np.diff(seen[:, b, :], axis=0), 0, None)
        weight = grown.sum(axis=1)
        keep = weight > 0
        if keep.sum() < 4:
            continue
        place = (np.arange(grown.shape[1]) + 0.5) / grown.shape[1] * shares % 1.0
        centre = (grown[keep] * place).sum(axis=1) / weight[keep]
        at = np.interp(middle[keep], t, where)
        if centre.std() < 1e-9 or at.std() < 1e-9:
            continue
        c = float(np.corrcoef(centre, at)[0, 1])
        best = c if best is None else max(best, c)
    return best


def _position(timeline, events):
    """(times, positions 0..1) of the computation: the middles of the steps, or both ends if a step computes the whole grid."""
    if all(is_whole(timeline, e) for e in events):
        return np.array([x for e in events for x in e["t"]]), np.array([0.0, 1.0] * len(events))
    t = np.array([0.5 * (e["t"][0] + e["t"][1]) for e in events])
    z = np.array([0.5 * (e["z"][0] + e["z"][1]) for e in events])
    return t, z / timeline.planes()
