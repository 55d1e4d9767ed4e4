"""Regions, tests and minutes for an interval of a wanted width, extrapolated from a smaller survey."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite, sqrt

from scipy import stats
from scipy.optimize import brentq

from ...checks import check_number, refusal
from ...errors import ParameterError
from ...formatting import count, number
from ..result import Estimate, Result
from .unordered_pairs import FEWEST_FOR_INTERVAL

MAXIMUM_PLACES = 1e6
"""Far more places than there are: an interval that needs more is out of reach."""


@dataclass(frozen=True, repr=False)
class Precision(Result):
    """
    The survey that a wanted precision needs.

    Attributes
    ----------
    half_width : float
        Half the width of the interval, in `unit`, that of the estimate.
    n_regions, n_tests : int
        Number of regions, each in a separate place, and of their ordered pairs, each tested once.
    minutes : float
        Duration, with every region in one test at a time and n / 2 tests at once.
    """

    half_width: float
    unit: str
    n_regions: int
    n_tests: int
    minutes: float

    @property
    def sentence(self) -> str:
        return (
            f"An interval of plus or minus {number(self.half_width)} {self.unit} needs about "
            f"{count(self.n_regions, 'region')} in as many places: {count(self.n_tests, 'test')}, "
            f"{number(self.minutes, 0)} minutes."
        )


def plan_precision(pilot: Estimate, half_width: float, *, test_s: float = 15.0) -> Precision:
    """
    Extrapolate from the standard error of a smaller survey to the survey with a narrow enough interval.

    Places are the units, so the standard error falls with the root of their number, or faster if most of the scatter
    belongs to single pairs. More tests of the same pairs reduce only the variation between tests of a pair, which
    seldom matters: `repeats` measures it.

    Parameters
    ----------
    pilot : Estimate
        With a standard error, such as the slope of `fit_rtt` or `fit_throughput`.
    half_width : float
        Wanted half width of the interval, in the unit and at the level of `pilot`.
    test_s : float
        Duration of one test.

    Returns
    -------
    Precision
        With at least 5 regions, the minimum for an interval.

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
        raise ParameterError(f"{pilot.quantity} has no standard error to extrapolate from.")
    check_number("half_width", half_width, 0, above=True)
    check_number("test_s", test_s, 0, above=True)
    n_pilot = pilot.n_places or pilot.n_regions
    quantile = (pilot.high - pilot.low) / 2 / pilot.standard_error
    freedom = brentq(lambda f: stats.t.ppf((1 + pilot.level) / 2, f) - quantile, 1.0, 1e7)

    def half(n: float) -> float:
        # The degrees of freedom, too, grow with the number of places.
        t = stats.t.ppf((1 + pilot.level) / 2, freedom * n / n_pilot)
        return t * pilot.standard_error * sqrt(n_pilot / n)

    if half(MAXIMUM_PLACES) > half_width:
        raise refusal(
            "half_width", half_width, f"at least {number(half(MAXIMUM_PLACES))} {pilot.unit} from this pilot"
        )
    n = FEWEST_FOR_INTERVAL
    if half(n) > half_width:
        n = ceil(brentq(lambda n: half(n) - half_width, n, MAXIMUM_PLACES) - 1e-6)
    return Precision(half_width, pilot.unit, n, n * (n - 1), 2 * (n - 1) * test_s / 60)
