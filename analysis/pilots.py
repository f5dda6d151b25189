# SPDX-License-Identifier: BSD-3-Clause
"""How many rounds the pilots asked for, and how many were run. experiments/night.py writes the numbers into repeats.json, and pack.py into the last session of a plan."""

from analysis.effects import MOST_PAIRS

HEAD = ["plan", "rounds in the pilot", "comparisons with a number", "rounds that the most scattered one needs", "rounds that the plan's time allowed", "rounds that were run", "comparisons that need more"]

EXPLAINED = (
    "The first rounds of these plans are a pilot. It shows how much each ratio scatters. From the scatter follows the number of rounds after which an interval fits into the band of the published number. "
    "Each plan is given a time before it starts, by default 50 minutes. If it is too short, fewer rounds are run. "
    "Then a finding is decided only if its interval lies far enough from the ends of the band. A longer measurement may decide the others."
)


def said(plan):
    """What experiments/night.py fixed for a plan, or None: plans without a pilot, and those that were run in another way."""
    return next((s["repeats"] for s in reversed(plan.sessions) if isinstance(s.get("repeats"), dict)), None)


def made(plan):
    """Rounds in which every configuration was run to its end."""
    return min((len({r.round for r in g.done}) for g in plan.groups.values()), default=0)


def rows(found):
    """A row of HEAD for each plan that had a pilot."""
    lines = []
    for plan in found.values():
        if (fixed := said(plan)) is None:
            continue
        needed = [wanted["pairs"] for wanted in fixed["comparisons"].values()]
        rounds = made(plan)
        most = max(needed, default=0)
        most_needed = "" if not needed else f"{MOST_PAIRS} or more" if most >= MOST_PAIRS else most
        lines.append([plan.name, fixed["rounds_of_the_pilot"], len(needed), most_needed, fixed["room"], rounds, sum(n > rounds for n in needed)])
    return lines
