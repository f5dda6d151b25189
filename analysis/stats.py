# SPDX-License-Identifier: BSD-3-Clause
"""Medians and spread of repeated runs. effects.py has the intervals that decide a verdict."""
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Stat:
    """Median, smallest and largest of n values. `failed` more repeats have no value."""

    median: float
    low: float
    high: float
    n: int
    failed: int = 0

    @property
    def spread(self):
        """(largest - smallest) / median."""
        return (self.high - self.low) / self.median if self.median else 0.0

    def scaled(self, factor):
        ends = sorted((self.low * factor, self.high * factor))
        return replace(self, median=self.median * factor, low=ends[0], high=ends[1])

    def over(self, base):
        """The quotient of two positive Stats, with the uncertainty of both: from smallest / largest to largest / smallest."""
        if base is self:
            return replace(self, median=1.0, low=1.0, high=1.0)
        return Stat(self.median / base.median, self.low / base.high, self.high / base.low, min(self.n, base.n), self.failed + base.failed)


def median(values):
    ordered = sorted(values)
    n = len(ordered)
    if n == 0:
        raise ValueError("an empty list has no median (internal error)")
    return ordered[n // 2] if n % 2 else 0.5 * (ordered[n // 2 - 1] + ordered[n // 2])


def stat(values):
    """A Stat of the values that are not None; None if there are no such values."""
    values = [float(v) for v in values if v is not None]
    if not values:
        return None
    return Stat(median(values), min(values), max(values), len(values))


def variation(values):
    """Coefficient of variation: standard deviation / mean. None if the mean is not positive."""
    n = len(values)
    mean = sum(values) / n if n else 0.0
    if mean <= 0:
        return None
    return (sum((v - mean) ** 2 for v in values) / n) ** 0.5 / mean
