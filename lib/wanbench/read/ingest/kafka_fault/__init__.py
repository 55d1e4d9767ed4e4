"""Read output of the experiment `kafka_fault`: `files` checks it, `episode` makes tables of it."""

from .episode import read

__all__ = ["read"]
