"""
Reads what the experiment `kafka_open_loop` left: `files` checks what its programs printed, `rows` makes tables of it.
"""

from .rows import read

__all__ = ["read"]
