"""Pairs of regions, which share regions and so are dependent: lines, variances, permutation tests, sensitivity."""
