"""Kafka trials: one row per trial, what limits it, two links compared, whether the machine was overloaded."""
