"""Designed experiments: factors varied together, effects with intervals, and what a fraction confounds."""
