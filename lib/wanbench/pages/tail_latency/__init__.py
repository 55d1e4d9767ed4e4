"""End-to-end tails of two systems: by rate, partitions and percentile, their knees, and limits of the links."""

from . import claims
from .allowed import allowed
from .benchmark import benchmark
from .best_rates import best_rates
from .compare import compare_tails
from .evidence import evidence
from .knee_rate import knee
from .knees import knees
from .latencies import of_benchmark, of_values, quantiles
from .open_loop import of_open_loop
from .pauses import causes
from .percentiles import percentiles
from .repeated import TailTrials, by_step
from .seconds import per_second
from .settled import settled
from .side_by_side import side_by_side
from .system_verdicts import verdict, verdicts
from .tails_best_rates import best_rate, searched_rate
from .trials import trials

__all__ = [
    "TailTrials",
    "allowed",
    "benchmark",
    "best_rate",
    "best_rates",
    "by_step",
    "causes",
    "claims",
    "compare_tails",
    "evidence",
    "knee",
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
    "trials",
    "verdict",
    "verdicts",
]
