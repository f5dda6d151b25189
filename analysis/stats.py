"""Medians and spread of repeated runs."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Stat:
    """Median, smallest and largest of n values, and the median of their distances from the median, which one stray value does not widen."""

    median: float
    low: float
    high: float
    n: int
    deviation: float = 0.0

    @property
    def spread(self):
        """(largest - smallest) / median."""
        return (self.high - self.low) / self.median if self.median else 0.0

    def scaled(self, factor):
        ends = sorted((self.low * factor, self.high * factor))
        return Stat(self.median * factor, ends[0], ends[1], self.n, self.deviation * abs(factor))


def median(values):
    ordered = sorted(values)
    n = len(ordered)
    if n == 0:
        raise ValueError("no median of no values")
    return ordered[n // 2] if n % 2 else 0.5 * (ordered[n // 2 - 1] + ordered[n // 2])


def stat(values):
    """A Stat, or None where there are no values."""
    values = [float(v) for v in values if v is not None]
    if not values:
        return None
    middle = median(values)
    return Stat(middle, min(values), max(values), len(values), median(abs(v - middle) for v in values))


def apart(a, b, single=0.05):
    """Are two medians farther from each other than the spread of the repeats, i.e. twice the larger median deviation? Single runs have none: they count as apart when they differ by more than that part."""
    away = abs(a.median - b.median)
    if a.n == 1 and b.n == 1:
        return away > single * max(abs(a.median), abs(b.median))
    return away > 2 * max(a.deviation, b.deviation)


def variation(values):
    """Coefficient of variation: standard deviation / mean; None where the mean is 0."""
    n = len(values)
    mean = sum(values) / n if n else 0.0
    if mean <= 0:
        return None
    return (sum((v - mean) ** 2 for v in values) / n) ** 0.5 / mean
