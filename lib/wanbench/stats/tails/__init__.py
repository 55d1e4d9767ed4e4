"""Tails of latencies: quantiles with intervals, and two tails compared."""

from .latencies import of_benchmark, of_histograms, of_records, of_values, quantiles
from .open_loop import of_open_loop

__all__ = ["of_benchmark", "of_histograms", "of_open_loop", "of_records", "of_values", "quantiles"]
