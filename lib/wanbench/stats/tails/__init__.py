"""Tails of latencies: quantiles with intervals, and two tails compared."""

from .latencies import of_benchmark, of_histograms, of_records, of_values, quantiles

__all__ = ["of_benchmark", "of_histograms", "of_records", "of_values", "quantiles"]
