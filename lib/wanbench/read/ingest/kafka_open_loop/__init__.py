"""Read output of the experiment `kafka_open_loop`: `files` checks it, `rows` makes tables of it."""

from .rows import read

__all__ = ["read"]
