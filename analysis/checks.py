# SPDX-License-Identifier: BSD-3-Clause
"""Do the counters agree? memext's own, /proc/self/io, the block device's and CalcTrans, for every run whose process moves its data itself (aio, uring)."""
from dataclasses import dataclass

from analysis.seen import seen

# /proc/self/io counts the same transfers, and a page or two of program text and reports. The block device serves the whole machine:
# metadata of the file system and other processes too.
PROCESS_SLACK_BYTES, PROCESS_SLACK = 1 << 20, 0.001
DEVICE_SLACK_BYTES, DEVICE_SLACK = 16 << 20, 0.02


@dataclass(frozen=True)
class Agreement:
    """One run, one direction."""

    plan: str
    id: str
    way: str
    own: int
    predicted: int
    process: int
    device: object  # bytes, or None without a timeline or for buffered I/O

    @property
    def predicted_equal(self):
        return self.own == self.predicted

    @property
    def process_close(self):
        return abs(self.process - self.own) <= max(PROCESS_SLACK_BYTES, PROCESS_SLACK * self.own)

    @property
    def device_close(self):
        return self.device is None or abs(self.device - self.own) <= max(DEVICE_SLACK_BYTES, DEVICE_SLACK * self.own)

    @property
    def device_short(self):
        """Did the device count fewer bytes than memext? Traffic of other programs cannot explain that."""
        return self.device is not None and self.own - self.device > max(DEVICE_SLACK_BYTES, DEVICE_SLACK * self.own)

    @property
    def good(self):
        return self.predicted_equal and self.process_close and self.device_close


def agreements(results):
    """The Agreements of every completed run on aio or uring that bypassed the page cache, one for each direction."""
    found = []
    for plan in results.values():
        for run in plan.runs:
            report = run.report
            if not run.ok or report.get("backend") not in ("aio", "uring") or not report.get("device", {}).get("bypasses_page_cache") or "kernel" not in report:
                continue
            for way in ("read", "write"):
                device = int(value) if (value := seen(run).get(f"device_{way}_bytes")) is not None else None
                found.append(Agreement(plan.name, f"{run.id} #{run.repeat + 1}", way, report[f"{way}_bytes"], report[f"predicted_{way}_bytes"], report["kernel"][f"storage_{way}_bytes"], device))
    return found
