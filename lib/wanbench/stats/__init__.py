"""
Estimates with intervals from tidy tables. Imports `tables`, `findings`, `wording`, `errors`; never a lab.

`distance` (RTT and throughput on distance), `envelope` (its lower envelope), `permutation` and `covariates` (Mantel,
MRQAP), `clouds` (pairs of clouds at equal distance), `shape` and `ceiling` (which line throughput follows; near pairs
at a ceiling), `inflation` (path inflation, the physics check), `tcp` (the window-limited model), `models` (formulas
of TCP throughput, compared on left-out regions), `loss` (the loss that explains a throughput), `recovery` (what was
set against what was estimated), `link` and `drops` (requested against delivered), `calibration` (their verdicts
together), `simulate` (surveys with a known answer). Pairs that share a region are never taken as independent:
`dyadic` says how.
"""

from .ceiling import fit_with_ceiling
from .clouds import compare_clouds
from .covariates import fit_covariates
from .distance import fit_rtt, fit_throughput
from .envelope import lower_envelope
from .inflation import path_inflation, physics_check
from .loss import estimate_loss
from .models import compare_models
from .permutation import mantel
from .sensitivity import with_and_without
from .shape import compare_shapes
from .tcp import fit_window

__all__ = [
    "compare_clouds",
    "compare_models",
    "compare_shapes",
    "estimate_loss",
    "fit_covariates",
    "fit_rtt",
    "fit_throughput",
    "fit_window",
    "fit_with_ceiling",
    "lower_envelope",
    "mantel",
    "path_inflation",
    "physics_check",
    "with_and_without",
]
