"""
Methods: estimates with intervals, from tidy tables. One folder per subject; studies combine them.

`result` (what every analysis returns), `regions` (pairs of regions: which are dependent, lines, permutation tests,
jackknives), `distance` (RTT and throughput against distance, predictions), `tcp` (models of throughput), `time` (series
and two arms), `tails` (latency quantiles), `factorial` (designed experiments), `lab` (requested against delivered),
`trials` (Kafka trials), `cost` (what a cluster costs).
Nothing here imports a lab, a study or a page.
"""

from . import cost, lab
from .distance.ceiling import fit_with_ceiling
from .distance.clouds import compare_clouds
from .distance.inflation import path_inflation, physics_check
from .distance.straight_lines import fit_rtt, fit_throughput
from .regions.mantel import mantel
from .regions.sensitivity import with_and_without
from .tcp.window_fit import fit_window
from .time.compare import compare_arms, compare_series
from .trials.limits import limits
from .trials.processors import processor_roles
from .trials.rates import trial_rates
from .trials.two_links import compare_links

__all__ = [
    "compare_arms",
    "compare_clouds",
    "compare_links",
    "compare_series",
    "cost",
    "fit_rtt",
    "fit_throughput",
    "fit_window",
    "fit_with_ceiling",
    "lab",
    "limits",
    "mantel",
    "path_inflation",
    "physics_check",
    "processor_roles",
    "trial_rates",
    "with_and_without",
]
