# SPDX-License-Identifier: BSD-3-Clause
"""Size and certainty of a difference: ratios of paired repeats, with an interval.

Repeats are taken in rounds, so the k-th repeats of two configurations ran close to each other and share what drifts slowly on the machine. Their ratio is the effect; each round gives one. The interval covers
two others, both of the logarithms: that of the signed ranks (Hodges and Lehmann's interval, which scipy.stats.wilcoxon tests), which assumes nothing but a symmetric distribution, and Student's t. With five
pairs the first alone would miss the truth in 6.25 % of cases. Together they claim a difference between equals in at most 5 % of cases (tests/python/test_effects.py counts).
"""
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import stats as scipy_stats

LEVEL = 0.05
LEAST_PAIRS = 5
LEAST_SECONDS = 2.0  # a run must take this long for its time to decide anything


@lru_cache(maxsize=None)
def _rank_sums(n):
    """P(T <= t) of the signed-rank sum of n differences that are symmetric about 0."""
    ways = np.zeros(n * (n + 1) // 2 + 1)
    ways[0] = 1
    for k in range(1, n + 1):
        ways[k:] = ways[k:] + ways[: len(ways) - k]
    return np.cumsum(ways) / 2.0**n


@lru_cache(maxsize=None)
def _pairs(n):
    return np.triu_indices(n)


def _walsh(values):
    """Sorted means of all pairs, pairs of a value with itself included."""
    v = np.asarray(values, float)
    i, j = _pairs(len(v))
    return np.sort((v[i] + v[j]) / 2)


def _rank_interval(walsh, n, level):
    """The narrowest interval of the signed ranks at this level, or the widest one if there are too few values."""
    cut = int(np.searchsorted(_rank_sums(n), level / 2, side="right"))  # P(T <= cut - 1) <= level / 2
    k = max(cut - 1, 0)
    return walsh[k], walsh[-1 - k]


@lru_cache(maxsize=None)
def _t_quantile(n, level):
    return float(scipy_stats.t.ppf(1 - level / 2, n - 1))


def _t_interval(values, level):
    v = np.asarray(values, float)
    wide = _t_quantile(len(v), level) * v.std(ddof=1) / math.sqrt(len(v))
    return v.mean() - wide, v.mean() + wide


MOST_CORRELATED = 1 - 1e-6  # Fisher's z of 1 is infinite


@dataclass(frozen=True)
class Effect:
    """A positive number (most often a ratio) from several repeats. exact: the number was counted, not timed, so one repeat decides, and the interval is the range. share: the number is a share, which may be 0;
    its interval is computed from the values themselves, not from their logarithms. correlation: the number is a correlation, from -1 to 1; its interval is computed from Fisher's z, so it stays below 1."""

    values: tuple
    exact: bool = False
    share: bool = False
    correlation: bool = False

    def __post_init__(self):
        least = -1.0 if self.correlation else 0.0
        if not self.values or min(self.values) < least or (min(self.values) == 0 and not self.share and not self.correlation) or (self.correlation and max(self.values) > 1):
            raise ValueError(f"an effect needs positive values, or correlations from -1 to 1, not {self.values} (internal error)")

    @property
    def _scaled(self):
        if self.correlation:
            return np.arctanh(np.clip(self.values, -MOST_CORRELATED, MOST_CORRELATED))
        return np.asarray(self.values, float) if self.share else np.log(self.values)

    def _back(self, value):
        if self.correlation:
            return float(np.tanh(value))
        return max(0.0, float(value)) if self.share else float(np.exp(value))

    @property
    def n(self):
        return len(self.values)

    @property
    def value(self):
        """Hodges and Lehmann's estimate, from the logarithms; for a share, from the values."""
        return self._back(np.median(_walsh(self._scaled)))

    @property
    def scatter(self):
        """Standard deviation of the logarithms: 0.2 is about 20 %. For a share: standard deviation / mean."""
        if self.n < 2:
            return 0.0
        spread = float(np.std(self._scaled, ddof=1))
        return spread / float(np.mean(self.values)) if self.share and spread else spread

    @property
    def enough(self):
        return self.exact or self.n >= LEAST_PAIRS

    def interval(self, level=LEVEL):
        """(low, high), or None if there are too few repeats for an interval."""
        if not self.enough:
            return None
        if self.exact:
            return min(self.values), max(self.values)
        (a, b), (c, d) = _rank_interval(_walsh(self._scaled), self.n, level), _t_interval(self._scaled, level)
        return self._back(min(a, c)), self._back(max(b, d))

    @property
    def p(self):
        """Two-sided p of scipy's signed-rank test against 1; 1 if no value differs from 1."""
        logs = np.log(self.values)
        return float(scipy_stats.wilcoxon(logs).pvalue) if np.any(logs != 0) else 1.0

    def say(self, form="{:.3g}", level=LEVEL):
        ends = self.interval(level)
        spread = f" [{form.format(ends[0])} to {form.format(ends[1])}]" if ends and not self.exact else ""
        return form.format(self.value) + spread


MOST_PAIRS = 1000


def pairs_needed(scatter, half_width, level=LEVEL):
    """Number of pairs that Student's interval at this level needs to reach less than half_width to either side. scatter and half_width are of logarithms. From LEAST_PAIRS to MOST_PAIRS."""
    for n in range(LEAST_PAIRS, MOST_PAIRS):
        if _t_quantile(n, level) * scatter / math.sqrt(n) < half_width:
            return n
    return MOST_PAIRS


def median_interval(values, level=LEVEL):
    """(median, low, high) by order statistics, which assume nothing about the distribution. low and high are None if there are too few values: at LEVEL, fewer than six."""
    v = np.sort(np.asarray(values, float))
    k = int(scipy_stats.binom.ppf(level / 2, len(v), 0.5)) if len(v) else 0  # P(fewer than k below the median) <= level / 2
    while k > 0 and scipy_stats.binom.cdf(k - 1, len(v), 0.5) > level / 2:
        k -= 1
    return (float(np.median(v)), float(v[k - 1]), float(v[-k])) if k > 0 else (float(np.median(v)) if len(v) else None, None, None)


def rank_rounds(level):
    """Number of rounds from which on the signed ranks have an interval at this level. With fewer rounds, Student's interval decides alone, which assumes normal logarithms."""
    return math.ceil(1 - math.log2(level))


def scatters(a, b):
    """(mean distance of a's logarithms from their median / that of b's, two-sided p that both scatter equally): Levene's test with medians, as Brown and Forsythe proposed."""
    a, b = np.log(a), np.log(b)
    far = [float(np.mean(np.abs(v - np.median(v)))) for v in (a, b)]
    return (far[0] / far[1] if far[1] else math.inf), (float(scipy_stats.levene(a, b, center="median").pvalue) if max(far) else 1.0)


def by_repeat(group, of, zeros=False):
    """{round: value} of the completed runs of a group. Values that were not counted are left out; so are zeros, unless zeros=True."""
    found = {r.round: of(r) for r in group.done} if group is not None else {}
    return {k: float(v) for k, v in found.items() if v is not None and (v > 0 or (zeros and v == 0))}


def quotient(a, b):
    """Quotients of two {round: value}, in the rounds that both have."""
    return {k: a[k] / b[k] for k in a if k in b}
