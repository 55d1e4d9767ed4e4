"""Estimate quantiles of latencies, far into the tail, with intervals from order statistics."""
