"""
Statistical methods: functions that take tidy tables and return estimates with intervals. One folder per subject.

`result` (what every analysis returns), `regions` (pairs of regions and their dependence: regression, permutation tests,
jackknives), `distance` (RTT and throughput against distance), `tcp` (models of throughput), `time` (autocorrelated
series), `tails` (latency quantiles), `factorial` (designed experiments), `lab` (whether a lab delivered what was
requested), `trials` (Kafka trials), `cost` (what a cluster costs), `claims` (verdicts on a source's claims).

Nothing here imports a lab or a page.
"""

from . import cost, lab
from .distance.inflation import path_inflation, physics_check
from .distance.straight_lines import fit_rtt, fit_throughput
from .regions.sensitivity import with_and_without
from .tcp.window_fit import fit_window
from .trials.limits import limits
from .trials.processors import processor_roles
from .trials.rates import trial_rates

__all__ = [
    "cost",
    "fit_rtt",
    "fit_throughput",
    "fit_window",
    "lab",
    "limits",
    "path_inflation",
    "physics_check",
    "processor_roles",
    "trial_rates",
    "with_and_without",
]
