"""Medians and spread of repeated runs."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Stat:
    """Median, smallest and largest of n values."""

    median: float
    low: float
    high: float
    n: int

    @property
    def spread(self):
        """(largest - smallest) / median."""
        return (self.high - self.low) / self.median if self.median else 0.0

    def scaled(self, factor):
        ends = sorted((self.low * factor, self.high * factor))
        return Stat(self.median * factor, ends[0], ends[1], self.n)


def median(values):
    ordered = sorted(values)
    n = len(ordered)
    if n == 0:
        raise ValueError("no median of no values")
    return ordered[n // 2] if n % 2 else 0.5 * (ordered[n // 2 - 1] + ordered[n // 2])


def stat(values):
    """A Stat, or None where there are no values."""
    values = [float(v) for v in values if v is not None]
    return Stat(median(values), min(values), max(values), len(values)) if values else None


def apart(a, b):
    """Do the ranges of two Stats not touch?"""
    return a.high < b.low or b.high < a.low


def variation(values):
    """Coefficient of variation: standard deviation / mean; None where the mean is 0."""
    n = len(values)
    mean = sum(values) / n if n else 0.0
    if mean <= 0:
        return None
    return (sum((v - mean) ** 2 for v in values) / n) ** 0.5 / mean
