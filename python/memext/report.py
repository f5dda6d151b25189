# SPDX-License-Identifier: BSD-3-Clause
"""The plan and the measurements of a run, as dictionaries that print themselves, and tables for pandas."""
from __future__ import annotations

import html
import json
from typing import Any

from . import _core


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        from .errors import MemextError
        raise MemextError("tables need the package pandas, which is not installed: pip install pandas") from None
    return pandas


def flat(value: dict, before: str = "") -> dict[str, Any]:
    """{"plan": {"bt": 8}} -> {"plan.bt": 8}"""
    out: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            out.update(flat(item, f"{before}{key}."))
        else:
            out[f"{before}{key}"] = item
    return out


def _types(problem: dict) -> str:
    """The type of all fields, or the type of each field if they differ."""
    kernel = problem.get("kernel")
    groups = [] if kernel is None else [{**kernel["state"], **kernel.get("partner", {})}, kernel["fixed"]]
    if len({kind for group in groups for kind in group.values()} | {problem["dtype"]}) == 1:
        return problem["dtype"]
    return f"({'; read-only '.join(', '.join(f'{name} {kind}' for name, kind in group.items()) for group in groups if group)})"


class Report(dict):
    """The library's report as a dict: problem, machine, plan and predictions; after a run also its measurements. docs/report.md lists the keys."""

    def rows(self) -> list[tuple[str, str]]:
        p, q = self["problem"], self["plan"]
        what = p["kernel"]["name"] if p.get("kernel") else p["stencil"]
        extents = " x ".join(str(p[axis]) for axis in ("nx", "ny", "nz")[:p["dimensions"]])
        rows = [("problem", f"{extents} cells, {p['nt']} steps, {what} {_types(p)}"),
                ("plan", f"{q['algorithm']}, engine {q['engine']}, by {q['by']} bz {q['bz']} bt {q['bt']}, {q['threads']} threads"),
                ("DRAM", f"{_core.size_text(self['dram_budget_bytes'])} for the run"),
                ("predicted", f"read {_core.size_text(self['predicted_read_bytes'])}, write {_core.size_text(self['predicted_write_bytes'])}, "
                              f"initialisation {_core.size_text(self['predicted_init_bytes'])}; about {self['predicted_seconds']:.3g} s")]
        if "seconds" in self:
            rows += [("backend", f"{self['backend']} on {self['device']['place']}"),
                     ("moved", f"read {_core.size_text(self['read_bytes'])}, write {_core.size_text(self['write_bytes'])}"),
                     ("time", f"{self['seconds']:.3f} s, {self['updates_per_second'] / 1e9:.4f} Gupdates/s, waiting {self['wait_share']:.1%}"),
                     ("status", self["status"] + (f": {self['error']}" if self["error"] else ""))]
        return rows

    def __str__(self) -> str:
        return "\n".join(f"{name:<10} {text}" for name, text in self.rows())

    def _repr_html_(self) -> str:
        return table_html(self.rows())

    def frame(self) -> Any:
        """Returns the report as one row of a pandas DataFrame, with columns such as plan.bt and time.wait_s."""
        return _pandas().DataFrame([{k: v for k, v in flat(self).items() if not isinstance(v, list)}])


class Plan(Report):
    """A report without measurements: nothing was computed or written."""


def table_html(rows: list[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><th style='text-align:left'>{html.escape(a)}</th><td style='text-align:left'>{html.escape(b)}</td></tr>" for a, b in rows)
    return f"<table>{cells}</table>"


def timeline(path: Any) -> tuple[Any, Any]:
    """Returns a timeline file (option timeline=FILE) as two pandas DataFrames, (samples, events).

    samples has a row for every 0.1 s of the run: t_s, the seconds since its begin, and counters, whose names say their units. events has a row for each
    load, computation, store and commit: what, begin_s, end_s (seconds), y0, y1, z0, z1 (cells), n. Several ranks add a column `rank` to both."""
    samples, events, columns, rank = [], [], [], {}
    with open(_core.regular(path)) as file:
        for line in file:
            item = json.loads(line)
            if "s" in item:
                samples.append([*item["s"], *rank.values()])
            elif "e" in item:
                events.append({"what": item["e"], "begin_s": item["t"][0], "end_s": item["t"][1], "y0": item["y"][0], "y1": item["y"][1],
                               "z0": item["z"][0], "z1": item["z"][1], "n": item.get("n", 0), **rank})
            else:
                rank = {"rank": item["rank"]} if "rank" in item else {}
                columns = [*item.get("columns", columns), *rank]
    pandas = _pandas()
    return pandas.DataFrame(samples, columns=columns or None), pandas.DataFrame(events)
