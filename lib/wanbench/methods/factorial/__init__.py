"""Factorial experiments: factors varied together, effects with intervals, and confounding in fractions."""
