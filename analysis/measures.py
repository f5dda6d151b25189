# SPDX-License-Identifier: BSD-3-Clause
"""The measures of a run: times, rates, bytes on storage."""
from analysis.seen import seen

GIB = 1 << 30
# Floating-point operations of an update. 10 for 7 points is the slides' own count (5945.38 Mflops in 1847.55 s). The other stencils
# are counted in the same way: additions and multiplications of the formula.
FLOPS = {"star7": 10, "edge19": 21, "box27": 30}
# What follows the backend's name in the names of the versions in Fig. 12.
VERSIONS = {"direct-skewed": "1", "direct-skewed-opt": "1+opt", "skewed": "2", "skewed-y": "3y", "skewed-min": "5y"}


def size_bytes(text):
    """ "1.5GiB" -> bytes."""
    for unit, factor in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)):
        if text.endswith(unit):
            return float(text[: -len(unit)]) * factor
    return float(text)


def per_step(run):
    return run.seconds_per_step


def seconds(run):
    return run.seconds


def gupdates(run):
    return run.rate * 1e-9


def counted_by(report, *names):
    """Counters of Linux, with None for each that the report does not have."""
    k = report.get("kernel") or {}
    return tuple(v if (v := k.get(name)) is not None and v >= 0 else None for name in names)


def counted(run, *names):
    return counted_by(run.report, *names)


def moved_by(report, memory_bytes, device_write_bytes=None):
    """(bytes read, bytes written) on storage in the stencil phase; None if they were not counted. Reads are those of this process: Linux counts faults and read-ahead for the process that causes them. Linux
    writes the dirty pages of a mapping when it likes, and only the block device's counter shows these writes (device_write_bytes, from the timeline; None = not counted). On swap, these are the swap
    counters of Linux. If the Buffers exceed `memory_bytes` (0: unknown), a count of 0 for swap, or for writes of a mapping, means that nothing was counted."""
    exceeds = 0 < memory_bytes < 2 * report["layout"]["buffer_bytes"]
    if report["backend"] == "swap":
        ways = counted_by(report, "swap_in_bytes", "swap_out_bytes")
        return (None, None) if ways == (0, 0) and exceeds else ways
    read, wrote = counted_by(report, "storage_read_bytes", "storage_write_bytes")
    if report["backend"] == "mmap":
        wrote = None if device_write_bytes == 0 and exceeds else device_write_bytes
    return read, wrote


def moved(run):
    """(bytes read, bytes written) on storage by a run, as moved_by counts them."""
    return moved_by(run.report, size_bytes(run.limit) if run.limit else 0, seen(run).get("device_write_bytes"))


def moved_read(run):
    return moved(run)[0]


def moved_write(run):
    return moved(run)[1]


def gib(of):
    """A measure in GiB, made from one in bytes."""
    return lambda run: None if (v := of(run)) is None else v / GIB


def amplification(run):
    """Bytes that were moved / bytes that the schedule needed."""
    needed, real = sum(run.needed_bytes), moved(run)
    return sum(real) / needed if needed and None not in real else None


def wait_share(run):
    return run.report["time"]["wait_s"] / run.report["seconds"] if run.report["seconds"] else None


def mflops(run):
    return run.rate * FLOPS[run.report["problem"]["stencil"]] * 1e-6


def written_with_both_buffers(run):
    """Bytes written with the initial grid, as the slides count: both Buffers are written before the first step."""
    wrote = moved_write(run)
    return None if wrote is None else wrote + run.buffers_bytes


def version(backend, algorithm):
    """The name of a version in Fig. 12."""
    return f"{backend}{VERSIONS[algorithm]}" if algorithm in VERSIONS else f"{backend}, algorithm-1"


def search_seconds(run):
    return run.report["search"]["seconds"]


def table2_rows(plan, published):
    """(id, memext's value, published value, are they equal?) for every offline plan."""
    for name, value in published.values.items():
        group = plan.groups.get(name)
        if group is None or not group.done:
            yield name, group.failure if group else "not run", value["value"], False
            continue
        report = group.done[0].report
        if name == "slides-bytes":
            ours = report["predicted_read_bytes"] / GIB
            yield name, ours, value["value"], abs(ours - value["value"]) < 0.005
        else:
            ours = [report["plan"][k] for k in ("by", "bz", "bt", "iy", "iz")]
            yield name, ours, value["value"], ours == value["value"]


def of_kernel(name, unit=GIB):
    return lambda r: None if (v := counted(r, name)[0]) is None else v / unit


def system_s(run):
    return counted(run, "system_s")[0]


def kernel_bytes(run):
    """Bytes that the process moved on storage, as Linux counted them: not memext's own count."""
    return run.report["kernel"]["storage_read_bytes"] + run.report["kernel"]["storage_write_bytes"]


ON_MAPPING, THROUGH_BLOCKS = ("direct-skewed", "direct-skewed-opt"), ("skewed", "skewed-y", "skewed-min")


def dram_bytes(run):
    return run.report["dram_used_bytes"]


def typical_block_bytes(run):
    """Bytes of both Blocks by the papers' typical sizes, half of eq. 2g', which also counts the Blocks that are written: by and bz, a frame at both sides, and bt halos of overlap."""
    p, q, h = run.report["problem"], run.report["plan"], run.report["problem"]["h"]
    more = q["bt"] * h + 2 * h
    return 2 * (p["nx"] + 2 * h) * (q["by"] + more) * (q["bz"] + more) * (8 if p["dtype"] == "f64" else 4)


SHORT = {"skewed-min": "aio5y", "skewed-y": "aio3y"}


def io_seconds(run):
    return run.report["time"]["buf2blk_s"] + run.report["time"]["blk2buf_s"]


def update_of_transfers(run):
    """Seconds of computing / of buf2blk, blk2buf and blk2blk."""
    t = run.report["time"]
    moving = t["buf2blk_s"] + t["blk2buf_s"] + t["blk2blk_s"]
    return t["update_s"] / moving if moving > 0 else None


def predicted_bytes(run):
    return run.report["predicted_read_bytes"] + run.report["predicted_write_bytes"]


def bench_rate(run):
    return run.report["normal"]


def wave_key(group, name):
    """A parameter of a wavefront: from the plan in the first report, else from the options. tile: [MB, NB]."""
    report = group.done[0].report if group.done else {}
    a_plan = report.get("plan", {})
    if name == "tile" and "mb" in a_plan:
        return [a_plan["mb"], a_plan["nb"]]
    found = a_plan.get(name, group[name])
    return [int(x) for x in found.replace("x", " ").split()] if name == "tile" and isinstance(found, str) else found
