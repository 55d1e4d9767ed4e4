"""
Estimates with intervals from tidy tables. Imports `tables`, `findings`, `wording`, `errors`; never a lab.

On distance: `distance` (lines of RTT and throughput), `envelope` (the lower one), `shape` and `ceiling` (which line
throughput follows; near pairs at a ceiling), `charts` (both lines per ordered pair of clouds), `clouds` (pairs of
clouds at equal distance), `permutation` and `covariates` (Mantel, MRQAP), `inflation` (path inflation, the physics
check), `predict` (a pair that was not measured), `precision` (how many regions an interval takes). On TCP: `tcp` (the
window-limited model), `models` (formulas compared on left-out regions), `loss` (the loss that explains a throughput),
`recovery` (what was set against what was estimated). On two arms and on factors: `compare`, `factorial`,
`robust_variance`, `lack_of_fit`. On tails of latency: `tails`, `tail_compare`, `tail_plan` (how long to measure). On
a survey of others: `readings`, `variants`, `repeats`, `scatter`, `nearest`, `sensitivity` (with and without what the
gate doubts). On links: `link`, `drops`, `calibration`, `utilisation`. On trials of Kafka: `trial_rates` (one row per
trial), `trial_steady` (do rates keep their level while they count), `processors` (what trials reached, and how busy
the machine was), `two_links` (private against internet), `scales` (at several link rates), `producer_shares`,
`rtt_table`, `limits` (window, rate, loss), `mechanism` (why the thesis holds where it does), `aliases`. `simulate`
makes surveys with a known answer. Pairs that share a place are never taken as independent: `clusters`, `dyadic` and
`leaveout` say how.
"""

from ..designs import factorial as factorial_design
from . import tails
from .ceiling import fit_with_ceiling
from .charts import charts
from .clouds import compare_clouds
from .compare import compare_arms, compare_series
from .covariates import fit_covariates
from .distance import fit_rtt, fit_throughput
from .elsewhere import check_elsewhere
from .envelope import lower_envelope
from .factorial import fit_factorial
from .inflation import path_inflation, physics_check
from .limits import limits
from .loss import estimate_loss
from .matched import matched
from .mechanism import explain
from .models import compare_models, fit_model
from .nearest import nearest
from .permutation import mantel
from .precision import plan_precision
from .predict import fit_predictor, what_if
from .predict_calibration import calibration as prediction_calibration
from .producer_shares import producer_shares
from .readings import column_readings
from .repeats import repeats
from .rtt_table import rtt_table
from .scales import compare_scales
from .scatter import scatter
from .sensitivity import with_and_without
from .shape import compare_shapes
from .tail_compare import compare_tails
from .tail_plan import plan_tail
from .tcp import fit_window
from .traffic import traffic
from .trial_rates import trial_rates
from .two_links import compare_links
from .variants import survey_readings, variants

__all__ = [
    "charts",
    "check_elsewhere",
    "column_readings",
    "compare_arms",
    "compare_clouds",
    "compare_links",
    "compare_models",
    "compare_scales",
    "compare_series",
    "compare_shapes",
    "compare_tails",
    "estimate_loss",
    "explain",
    "factorial_design",
    "fit_covariates",
    "fit_factorial",
    "fit_model",
    "fit_predictor",
    "fit_rtt",
    "fit_throughput",
    "fit_window",
    "fit_with_ceiling",
    "limits",
    "lower_envelope",
    "mantel",
    "matched",
    "nearest",
    "path_inflation",
    "physics_check",
    "plan_precision",
    "plan_tail",
    "prediction_calibration",
    "producer_shares",
    "repeats",
    "rtt_table",
    "scatter",
    "survey_readings",
    "tails",
    "traffic",
    "trial_rates",
    "variants",
    "what_if",
    "with_and_without",
]
