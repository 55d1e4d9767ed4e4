"""Analyse pairs of regions, which are dependent because they share regions: lines, variances, spatial correlation."""
