"""End-to-end tails of two systems: by rate, partitions and percentile, their knees, and limits of the links."""

from .allowed import allowed
from .benchmark import benchmark
from .best_rates import best_rates
from .evidence import evidence
from .knees import knees
from .percentiles import percentiles
from .settled import settled
from .side_by_side import side_by_side
from .trials import trials

__all__ = [
    "allowed",
    "benchmark",
    "best_rates",
    "evidence",
    "knees",
    "percentiles",
    "settled",
    "side_by_side",
    "trials",
]
