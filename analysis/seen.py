# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of a run's timeline. They come from the timeline, or from the record if pack.py packed it without one."""
import numpy as np

from analysis import timeline
from analysis.stats import variation

_timelines, _seen = {}, {}


def cached_timeline(run):
    path = run.timeline_path
    if path is None:
        return None
    if path not in _timelines:
        _timelines[path] = timeline.read(path)
    return _timelines[path]


def block_periods(run):
    """How many Blocks a run computes: Blocks of a sweep times sweeps."""
    p, q = run.report["problem"], run.report["plan"]
    return -(-p["ny"] // q["by"]) * -(-p["nz"] // q["bz"]) * -(-p["nt"] // q["bt"])


def period(run):
    return run.report["seconds"] / block_periods(run)


# The one measure of a flat bandwidth profile, fixed before the runs that it judges. A Block is read, computed and written, and the slides give every figure "per Block's period". Within a
# period, transfers come and go with every method, and the number of samples depends on its length. So the useful bandwidth is averaged over each period of a Block. It counts bytes that go
# into and out of Blocks, and not those that Linux reads needlessly. The measure is the coefficient of variation of these averages, from 5 % to 95 % of the run: filling and draining are left
# out. A profile needs at least this many periods.
LEAST_PERIODS = 10


def period_means(line, period_s):
    """(middles, mean useful bandwidth, read + write) of the periods that lie between 5 and 95 % of the run. Counters between samples are interpolated."""
    if len(line.samples) < 2 or period_s <= 0:
        return np.empty(0), np.empty(0)
    n = int(0.9 * line.duration_s / period_s + 1e-9)
    edges = 0.05 * line.duration_s + period_s * np.arange(n + 1)
    moved_bytes = np.interp(edges, line.t, sum(line.column(name) for name in timeline.USEFUL))
    return 0.5 * (edges[1:] + edges[:-1]), np.diff(moved_bytes) / period_s


def bandwidth_variation(line, period_s):
    """Coefficient of variation of the means; None if there are too few periods, or nothing was moved."""
    means = period_means(line, period_s)[1]
    return variation(list(means)) if len(means) >= LEAST_PERIODS else None


def io_share(line, cores):
    """The slides' I/O time: the share of a run, from 5 to 95 % of it, in which this process keeps less than 90 % of the cores busy."""
    t, used = line.cpu(cores)
    inside = (t > 0.05 * line.duration_s) & (t < 0.95 * line.duration_s)
    return float((used[inside] < 0.9).mean()) if inside.sum() >= LEAST_PERIODS else None


BUSY = 0.02  # share of the best rate; storage that transfers less is idle


def numbers(run, line):
    """{name: number} of a timeline. Bytes are those of the stencil phase, and rates are in bytes a second. Numbers that the timeline does not have are left out.
    useful_bytes went into and out of Blocks. best_rate is the highest rate of the storage. busy_s is the time in which the storage moved more than BUSY of that rate."""
    if not len(line.samples):
        return {}
    rate = line.rate(*line.traffic())[1]
    best = float(rate.max()) if len(rate) else 0.0
    cores = run.report.get("machine", {}).get("cores")
    found = {
        "duration_s": line.duration_s,
        "sampler_s": line.total("sampler_s") if "sampler_s" in line.header["columns"] else None,
        "device_read_bytes": line.total("device_read_bytes"),
        "device_write_bytes": line.total("device_write_bytes"),
        "useful_bytes": sum(line.total(name) for name in timeline.USEFUL),
        "best_rate": best,
        "busy_s": line.busy(BUSY * best) if best else None,
        "bandwidth_variation": bandwidth_variation(line, period(run)) if {"by", "bz", "bt"} <= set(run.report.get("plan", {})) else None,
        "io_share": io_share(line, cores) if cores else None,
        "sweep_visibility": timeline.sweep_visibility(line),
    }
    return {name: value for name, value in found.items() if value is not None}


def seen(run):
    """The numbers of a run's timeline; {} if there is none."""
    if "seen" in run.record:
        return run.record["seen"]
    path = run.timeline_path
    if path is None:
        return {}
    if path not in _seen:
        _seen[path] = numbers(run, cached_timeline(run))
    return _seen[path]
