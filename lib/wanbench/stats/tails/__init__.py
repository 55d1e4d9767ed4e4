"""Tails of latencies: quantiles with intervals, and two tails compared."""

from .latencies import of_benchmark, of_histograms, of_records, of_values, quantiles
from .open_loop import of_open_loop
from .pauses import causes
from .seconds import per_second

__all__ = [
    "causes",
    "of_benchmark",
    "of_histograms",
    "of_open_loop",
    "of_records",
    "of_values",
    "per_second",
    "quantiles",
]
