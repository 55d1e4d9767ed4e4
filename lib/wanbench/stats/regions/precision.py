"""How many regions, tests and minutes an interval of a wanted width takes, from a smaller survey."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite, sqrt

from scipy import stats
from scipy.optimize import brentq

from ...errors import ParameterError
from ...formatting import count, number
from ..result import Estimate, Result

MOST_PLACES = 1e6


@dataclass(frozen=True, repr=False)
class Precision(Result):
    """
    What a wanted precision takes.

    Attributes
    ----------
    half_width : float
        Half the width of the interval, in the unit of the estimate.
    n_regions, n_tests : int
        Regions, each in a place of its own, and their ordered pairs, each tested once.
    minutes : float
        With every region in one test at a time, and n / 2 tests at once.
    """

    half_width: float
    unit: str
    n_regions: int
    n_tests: int
    minutes: float

    def __str__(self) -> str:
        return (
            f"An interval of plus or minus {number(self.half_width)} {self.unit} takes about "
            f"{count(self.n_regions, 'region')} in as many places: {count(self.n_tests, 'test')}, "
            f"{number(self.minutes, 0)} minutes."
        )


def plan_precision(pilot: Estimate, half_width: float, *, test_s: float = 15.0) -> Precision:
    """
    Extrapolate from the standard error of a smaller survey to the survey that makes the interval narrow enough.

    Places are the units, so the standard error falls with the root of their number, or faster where most of the scatter
    is a pair's own. More tests of the same pairs narrow only what differs between tests of a pair, which is seldom what
    counts: `repeats` says how much that is.

    Parameters
    ----------
    pilot : Estimate
        With a standard error, such as the slope of `fit_rtt` or `fit_throughput`.
    half_width : float
        Half the width of the interval that is wanted, in the unit of `pilot`, at its level.
    test_s : float
        Duration of one test.

    Returns
    -------
    Precision
        Its regions are at least 5, the fewest that give an interval.

    Examples
    --------
    >>> from wanbench.stats import fit_rtt
    >>> from wanbench.stats.regions import simulated_surveys
    >>> pilot = fit_rtt(simulated_surveys.survey(12, seed=1, region_ms=5), resamples=10).slope
    >>> now = (pilot.high - pilot.low) / 2
    >>> plan_precision(pilot, now).n_regions, plan_precision(pilot, now / 2).n_regions > 24
    (12, True)
    """
    if not isfinite(pilot.standard_error) or not pilot.standard_error > 0:
        raise ParameterError(f"{pilot.quantity} has no standard error here, so nothing can be extrapolated")
    if not half_width > 0 or not test_s > 0:
        raise ParameterError(f"half_width={half_width!r}, test_s={test_s!r}: both must be more than 0")
    n_pilot = pilot.n_places or pilot.n_regions
    quantile = (pilot.high - pilot.low) / 2 / pilot.standard_error
    freedom = brentq(lambda f: stats.t.ppf((1 + pilot.level) / 2, f) - quantile, 1.0, 1e7)

    def half(n: float) -> float:
        t = stats.t.ppf((1 + pilot.level) / 2, freedom * n / n_pilot)
        return t * pilot.standard_error * sqrt(n_pilot / n)

    if half(MOST_PLACES) > half_width:
        raise ParameterError(f"half_width={half_width!r}: no number of regions there is makes it so narrow")
    n = 5 if half(5) <= half_width else ceil(brentq(lambda n: half(n) - half_width, 5, MOST_PLACES) - 1e-6)
    return Precision(half_width, pilot.unit, n, n * (n - 1), 2 * (n - 1) * test_s / 60)
