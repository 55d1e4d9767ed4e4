"""
Intervals of quantiles from order statistics, for any distribution (Hahn & Meeker 1991, section 5.2).

The number of independent values below a quantile is binomial, so n alone determines two ranks that enclose the
quantile. For dependent values the effective number replaces n. As this number need not be an integer, the incomplete
beta function replaces the binomial sum, and the ranks are scaled to the size of the sample.
"""

from collections.abc import Iterable
from functools import lru_cache
from math import ceil, floor, isnan, log, nan, sqrt

from scipy import optimize, special, stats

from wanbench.checks import refusal


def check_quantile(q: object) -> float:
    """Return a quantile as a float; ParameterError if it is not between 0 and 1."""
    if isinstance(q, bool) or not isinstance(q, int | float) or not 0 < q < 1:
        raise refusal("quantile", q, "a number between 0 and 1, such as 0.99")
    return float(q)


def check_quantiles(at: float | Iterable[float]) -> list[float]:
    """Return one quantile or several as a list; ParameterError if one is invalid or there is none."""
    result = list(at) if isinstance(at, Iterable) and not isinstance(at, str) else [at]
    if not result:
        raise refusal("at", at, "one quantile or more, such as 0.99")
    return [check_quantile(q) for q in result]


def name(q: float) -> str:
    """
    Return the usual name of a quantile.

    >>> name(0.5), name(0.999), name(0.9999999)
    ('p50', 'p99.9', 'p99.99999')
    """
    return f"p{round(100 * q, 9):.12g}"


def rank(n: float, q: float) -> int:
    """
    Return the rank, from 1, of the smallest value that at least a share q of n values does not exceed.

    >>> rank(1000, 0.5), rank(1000, 0.999), rank(3, 0.5)
    (500, 999, 2)
    """
    return max(1, ceil(n * q - 1e-9))


def ranks(n: int, q: float, level: float, effective_n: float | None = None) -> tuple[int | None, int | None]:
    """
    Return the ranks, from 1, of the two values that enclose a quantile; None for an end if n is too small.

    The interval covers the quantile with at least the probability `level` if the values are independent.

    effective_n: The effective number of values if they are dependent.

    >>> ranks(1000, 0.5, 0.95), ranks(1000, 0.999, 0.95), ranks(3688, 0.999, 0.95)
    ((469, 532), (997, None), (3680, 3688))
    >>> ranks(1000, 0.5, 0.95, effective_n=100)
    (403, 598)
    """
    tail = (1 - level) / 2
    if effective_n is None or effective_n >= n:
        return _ranks_of_independent(n, q, tail)
    low, high = (position(effective_n, q, share) for share in (1 - tail, tail))
    stretch = (n + 1) / (effective_n + 1)
    low_rank = 0 if isnan(low) else floor(low * stretch)
    high_rank = None if isnan(high) or high > effective_n else min(ceil(high * stretch), n)
    return low_rank or None, high_rank


@lru_cache(maxsize=1024)
def _ranks_of_independent(n: int, q: float, tail: float) -> tuple[int | None, int | None]:
    low = int(stats.binom.ppf(tail, n, q))
    high = int(stats.binom.ppf(1 - tail, n, q)) + 1
    return (low or None), (high if high <= n else None)


def min_values(q: float, level: float) -> int:
    """
    Return the smallest number of independent values that gives a quantile an interval with two ends.

    >>> min_values(0.99, 0.95), min_values(0.999, 0.95), min_values(0.9999, 0.95)
    (368, 3688, 36887)
    """
    tail = (1 - level) / 2
    return max(ceil(log(tail) / log(q)), ceil(log(tail) / log(1 - q)))


def position(n: float, q: float, share: float) -> float:
    """
    Return the position among n ordered values at which the value is below the quantile in a share `share` of samples;
    NaN if there is no such position.

    n and the position need not be integers.
    """

    def excess(position: float):
        return float(special.betainc(position, n - position + 1, q)) - share

    # the beta function underflows far from the middle of a large n, so search within 12 standard deviations
    middle, far = n * q, 10 + 12 * sqrt(n * q * (1 - q))
    ends = max(1e-9, middle - far), min(n + 1 - 1e-9, middle + far)
    return nan if excess(ends[0]) * excess(ends[1]) > 0 else float(optimize.brentq(excess, *ends, xtol=1e-9))
