"""End-to-end tails of two systems: by rate, partitions and percentile, their knees, and limits of the links."""

from . import claims
from .allowed import allowed
from .best_rates import best_rate, best_rates, searched_rate
from .claims import evidence
from .knees import knees
from .latencies import of_benchmark, of_open_loop, of_values
from .pauses import causes, per_second
from .quantiles import benchmark, compare_tails, percentiles, quantiles
from .side_by_side import side_by_side
from .step_curves import step_curve
from .trials import TailTrials, settled, trials
from .verdicts import verdict, verdicts

__all__ = [
    "TailTrials",
    "allowed",
    "benchmark",
    "best_rate",
    "best_rates",
    "causes",
    "claims",
    "compare_tails",
    "evidence",
    "knees",
    "of_benchmark",
    "of_open_loop",
    "of_values",
    "per_second",
    "percentiles",
    "quantiles",
    "searched_rate",
    "settled",
    "side_by_side",
    "step_curve",
    "trials",
    "verdict",
    "verdicts",
]
