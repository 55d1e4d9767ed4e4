"""Tails of latencies: quantiles with intervals, two tails compared, how long to measure."""

from .latencies import of_benchmark, of_histograms, of_records, of_values, quantiles

__all__ = ["of_benchmark", "of_histograms", "of_records", "of_values", "quantiles"]
