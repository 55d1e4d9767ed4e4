"""Analyse values in time: autocorrelated series."""
