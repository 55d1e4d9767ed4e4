"""Factorial experiments: factors as columns of a design, and robust inference for least squares."""
