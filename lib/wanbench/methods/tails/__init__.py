"""Tails of latencies: distributions with their quantiles, and intervals from order statistics."""
