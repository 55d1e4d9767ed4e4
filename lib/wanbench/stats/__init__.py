"""
Estimates with intervals from tidy tables. Imports `tables`, `findings`, `wording`, `errors`; never a lab.

`distance` (RTT and throughput on distance), `inflation` (path inflation, the physics check), `tcp` (the
window-limited model), `models` (formulas of TCP throughput, compared on left-out regions), `loss`
(the loss that explains a throughput), `recovery` (what was set against what was estimated), `link` and `drops` (requested against delivered), `calibration` (their verdicts together),
`simulate` (surveys with a known answer). Pairs that share a region are never taken as independent: `dyadic` says how.
"""

from .distance import fit_rtt, fit_throughput
from .inflation import path_inflation, physics_check
from .loss import estimate_loss
from .models import compare_models
from .tcp import fit_window

__all__ = [
    "compare_models",
    "estimate_loss",
    "fit_rtt",
    "fit_throughput",
    "fit_window",
    "path_inflation",
    "physics_check",
]
