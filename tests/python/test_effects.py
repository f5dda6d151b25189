# SPDX-License-Identifier: BSD-3-Clause
"""analysis/effects.py: what an interval promises, counted."""
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as scipy_stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from analysis import effects  # noqa: E402
from analysis.claim import CONFIRMED, LARGER, SMALLER, Part  # noqa: E402
from analysis.effects import Effect  # noqa: E402

NOISES = {
    "normal": lambda rng, shape: 0.1 * rng.normal(size=shape),
    "heavy tails": lambda rng, shape: 0.05 * rng.standard_t(2, size=shape),
    "strays": lambda rng, shape: 0.02 * np.abs(rng.normal(size=shape)) * np.where(rng.random(shape) < 0.15, 20, 1),
    "lopsided": lambda rng, shape: 0.1 * rng.exponential(size=shape),
}
DRIFT = 0.3  # of the machine, from round to round, the same for both of a pair


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("n", [5, 6, 8])
def test_equal_samples_differ_in_at_most_one_of_twenty(noise, n):
    """Two configurations with the same distribution of times, on a machine that drifts: the interval leaves 1 out, to either side, in at most 5 % of 1000 experiments;
    so the claims "smaller" and "larger" together are confirmed in no more. (The signed ranks alone would claim 6.25 % with five pairs, a normal bootstrap more.)"""
    rng, experiments = np.random.default_rng(n), 1000
    drift = np.exp(DRIFT * rng.normal(size=(experiments, n)))
    a, b = (drift * np.exp(NOISES[noise](rng, (experiments, n))) for _ in range(2))
    seen = confirmed = 0
    for x, y in zip(a, b):
        effect = Effect(tuple(x / y))
        low, high = effect.interval()
        seen += low > 1 or high < 1
        confirmed += sum(Part("", effect, band).state() == CONFIRMED for band in (SMALLER, LARGER))
    assert seen == confirmed and seen <= 0.05 * experiments


@pytest.mark.parametrize("n", [5, 8])
def test_a_real_difference_is_seen(n):
    """A quarter faster with a noise of 5 %: seen in nine of ten experiments at least; an interval that sees nothing would pass the test above."""
    rng = np.random.default_rng(1)
    effects_seen = [Effect(tuple(0.75 * np.exp(0.05 * rng.normal(size=n)))).interval()[1] < 1 for _ in range(300)]
    assert np.mean(effects_seen) > 0.9


@pytest.mark.parametrize("n", [6, 8, 11])
def test_the_rank_interval_is_what_scipy_tests(n):
    """It leaves 0 out exactly where scipy.stats.wilcoxon has p <= 0.05."""
    rng = np.random.default_rng(2)
    for _ in range(200):
        v = rng.normal(0.5, 1, n)
        low, high = effects._rank_interval(effects._walsh(v), n, 0.05)
        assert (low > 0 or high < 0) == (scipy_stats.wilcoxon(v, method="exact").pvalue <= 0.05)


def test_too_few_repeats_have_no_interval():
    assert Effect((0.5, 0.5, 0.5, 0.5)).interval() is None and Effect((0.5,)).value == 0.5
    assert Effect((0.5,), exact=True).interval() == (0.5, 0.5)
    assert Effect((2.0,) * 5).interval() == pytest.approx((2.0, 2.0)) and Effect((1.0,) * 5).p == 1.0
    for values in ((), (1.0, 0.0), (-1.0,)):
        with pytest.raises(ValueError):
            Effect(values)


def test_an_interval_of_correlations_stays_below_one():
    """Fisher's z; five values near 1, of which logarithms would give an interval beyond it."""
    effect = Effect((0.86, 0.99, 0.93, 0.97, 1.0), correlation=True)
    low, high = effect.interval(0.001)
    assert -1 < low < 0.9 and 0.99 < high < 1 and Effect((0.86, 0.99, 0.93, 0.97, 1.0)).interval(0.001)[1] > 1
    assert Effect((-0.5, 0.1, -0.2, 0.0, 0.3), correlation=True).value == pytest.approx(-0.05, abs=0.1)
    with pytest.raises(ValueError):
        Effect((1.1,), correlation=True)


def test_an_interval_covers_both_ways_of_looking():
    """Five values: the rank interval is their range, Student's reaches further down."""
    effect = Effect((0.5, 0.52, 0.51, 0.5, 0.49))
    low, high = effect.interval()
    assert low < 0.49 and high >= 0.52 and effect.value == pytest.approx(0.504, abs=0.003) and effect.p == pytest.approx(0.0625)
    wide = effect.interval(0.005)
    assert wide[0] < low and wide[1] > high


def test_median_interval():
    """Order statistics: of 8 values the whole range (2 / 256 lie outside), of 20 the 6th to the 15th, of 5 none."""
    assert effects.median_interval(range(8)) == (3.5, 0.0, 7.0)
    assert effects.median_interval(range(20)) == (9.5, 5.0, 14.0)
    assert effects.median_interval(range(5)) == (2.0, None, None) and effects.median_interval([]) == (None, None, None)


def test_shares_may_be_nothing():
    """Of shares the values count themselves: zeros are values, and no interval reaches below 0. A ratio of 0 is none."""
    effect = Effect((0.0, 0.0, 0.04, 0.0, 0.08, 0.0, 0.04), share=True)
    low, high = effect.interval()
    assert low == 0.0 and 0.02 < high < 0.08 and 0.0 <= effect.value < 0.04 and effect.scatter > 1
    assert Effect((0.5,) * 5, share=True).interval() == pytest.approx((0.5, 0.5)) and Effect((0.5,) * 5, share=True).scatter == 0.0
    with pytest.raises(ValueError):
        Effect((0.0, 1.0))
    with pytest.raises(ValueError):
        Effect((-0.1, 1.0), share=True)


def test_zeros_are_kept_where_a_share_is_meant():
    rows = {0: 0.0, 1: 0.2, 2: None}
    group = type("Group", (), {"done": [type("Run", (), {"round": k, "value": v})() for k, v in rows.items()]})()
    assert effects.by_repeat(group, lambda r: r.value) == {1: 0.2} and effects.by_repeat(group, lambda r: r.value, zeros=True) == {0: 0.0, 1: 0.2}


def test_scatter_is_tested_on_logarithms():
    """Ten times the scatter, and a hundred times the times: the factor is about ten, and the test is sure of it; the same scatter at any length of time is none."""
    rng = np.random.default_rng(4)
    wild, calm = 100 * np.exp(0.2 * rng.normal(size=15)), np.exp(0.02 * rng.normal(size=15))
    times, p = effects.scatters(wild, calm)
    assert 5 < times < 20 and p < 0.005
    assert effects.scatters(100 * calm, calm)[0] == pytest.approx(1.0) and effects.scatters(100 * calm, calm)[1] == pytest.approx(1.0)
    assert effects.scatters((1.0,) * 5, (1.0,) * 5)[1] == 1.0


def test_the_rounds_that_signed_ranks_ask_for():
    """With one round fewer even the widest interval of the ranks misses more often than the level allows."""
    for level in (0.05, 0.05 / 73, 0.05 / 200):
        n = effects.rank_rounds(level)
        assert effects._rank_sums(n)[0] <= level / 2 < effects._rank_sums(n - 1)[0]
