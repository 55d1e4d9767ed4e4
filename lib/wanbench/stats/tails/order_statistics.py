"""
Intervals for a quantile from the order statistics of a sample, whatever the distribution (Hahn & Meeker 1991, section
5.2): how many values lie below a quantile is binomial, so ranks that enclose it can be had from n alone.

Where the values depend on each other, n is their effective number, which need not be whole; then the binomial tail is
taken by the incomplete beta function, and the ranks are stretched back to the sample's.
"""

from __future__ import annotations

from math import ceil, floor, isnan, log, nan, sqrt

from scipy import optimize, stats

from ...errors import ParameterError


def check_quantile(q: float) -> float:
    """The quantile; ParameterError unless it lies between 0 and 1."""
    if isinstance(q, bool) or not isinstance(q, int | float) or not 0 < q < 1:
        raise ParameterError(f"quantile {q!r}: it lies between 0 and 1, such as 0.99")
    return float(q)


def name(q: float) -> str:
    """
    A quantile as people call it.

    >>> name(0.5), name(0.999), name(0.9999999)
    ('p50', 'p99.9', 'p99.99999')
    """
    return f"p{round(100 * q, 9):.12g}"


def rank(n: float, q: float) -> int:
    """
    Rank of the smallest value that a share of at least q does not exceed, from 1.

    >>> rank(1000, 0.5), rank(1000, 0.999), rank(3, 0.5)
    (500, 999, 2)
    """
    return max(1, ceil(n * q - 1e-9))


def ranks(n: int, q: float, level: float, effective_n: float | None = None) -> tuple[int | None, int | None]:
    """
    Ranks (from 1) of the values at either end of an interval for the quantile; None where n is too small for one.

    The interval covers with at least the level if the values are independent.

    >>> ranks(1000, 0.5, 0.95), ranks(1000, 0.999, 0.95), ranks(3688, 0.999, 0.95)
    ((469, 532), (997, None), (3680, 3688))
    >>> ranks(1000, 0.5, 0.95, effective_n=100)
    (403, 598)
    """
    tail = (1 - level) / 2
    if effective_n is None or effective_n >= n:
        low = int(stats.binom.ppf(tail, n, q))
        high = int(stats.binom.ppf(1 - tail, n, q)) + 1
        return (low or None), (high if high <= n else None)
    low, high = (position(effective_n, q, part) for part in (1 - tail, tail))
    stretch = (n + 1) / (effective_n + 1)
    found_low = None if isnan(low) else floor(low * stretch)
    found_high = None if isnan(high) or high > effective_n else min(ceil(high * stretch), n)
    return found_low or None, found_high


def fewest(q: float, level: float) -> int:
    """
    The fewest independent values with which a quantile has an interval with two ends.

    >>> fewest(0.99, 0.95), fewest(0.999, 0.95), fewest(0.9999, 0.95)
    (368, 3688, 36887)
    """
    tail = (1 - level) / 2
    return max(ceil(log(tail) / log(q)), ceil(log(tail) / log(1 - q)))


def position(n: float, q: float, part: float) -> float:
    """Where among n values, whole or not, the share `part` of all samples has the quantile above; NaN: nowhere."""

    def apart(position):
        return stats.beta.cdf(q, position, n - position + 1) - part

    # far from the middle of a large n the beta function has no value
    middle, far = n * q, 10 + 12 * sqrt(n * q * (1 - q))
    ends = max(1e-9, middle - far), min(n + 1 - 1e-9, middle + far)
    if apart(ends[0]) * apart(ends[1]) > 0:
        return nan
    return float(optimize.brentq(apart, *ends, xtol=1e-9))
