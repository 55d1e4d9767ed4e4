"""Analyse Kafka trials: one row per trial, what limits its rate, whether the machine was overloaded."""
