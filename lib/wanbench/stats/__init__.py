"""
Methods: estimates with intervals, from tidy tables. One folder per subject; studies combine them.

`result` (what every analysis returns), `regions` (pairs of regions: which are dependent, lines, permutation tests,
jackknives), `distance` (RTT and throughput against distance, predictions), `tcp` (models of throughput), `time` (series
and two arms), `tails` (latency quantiles), `factorial` (designed experiments), `lab` (requested against delivered),
`trials` (Kafka trials), `cost` (what a cluster costs), `outages` (losses and outages by faults).
Nothing here imports a lab, a study or a page.
"""

from . import cost, lab, outages, tails
from .distance.ceiling import fit_with_ceiling
from .distance.clouds import compare_clouds
from .distance.envelope import lower_envelope
from .distance.inflation import path_inflation, physics_check
from .distance.prediction import fit_predictor, what_if
from .distance.prediction_coverage import prediction_coverage
from .distance.shape import compare_shapes
from .distance.straight_lines import fit_rtt, fit_throughput
from .factorial.fit import fit_factorial
from .factorial.surface import fit_surface
from .regions.link_map import link_map
from .regions.permutation import mantel
from .regions.sensitivity import with_and_without
from .tails.compare import compare_tails
from .tcp import compare_models, fit_model
from .tcp.loss import estimate_loss
from .tcp.window_fit import fit_window
from .time.compare import compare_arms, compare_series
from .time.detection import detection
from .trials.against_baseline import against_baseline
from .trials.client_rack import client_rack
from .trials.limits import limits
from .trials.placement import placement
from .trials.processor_roles import processor_roles
from .trials.rates import trial_rates
from .trials.scalability import fit_scalability
from .trials.two_links import compare_links

__all__ = [
    "against_baseline",
    "client_rack",
    "compare_arms",
    "compare_clouds",
    "compare_links",
    "compare_models",
    "compare_series",
    "compare_shapes",
    "compare_tails",
    "cost",
    "detection",
    "estimate_loss",
    "fit_factorial",
    "fit_model",
    "fit_predictor",
    "fit_rtt",
    "fit_scalability",
    "fit_surface",
    "fit_throughput",
    "fit_window",
    "fit_with_ceiling",
    "lab",
    "limits",
    "link_map",
    "lower_envelope",
    "mantel",
    "outages",
    "path_inflation",
    "physics_check",
    "placement",
    "prediction_coverage",
    "processor_roles",
    "tails",
    "trial_rates",
    "what_if",
    "with_and_without",
]
