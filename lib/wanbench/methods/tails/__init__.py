"""Tails of latencies: a distribution with its quantiles, and intervals from order statistics."""
