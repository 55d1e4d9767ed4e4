"""Analyse factorial experiments: code factors as columns of a design, with robust inference for least squares."""
