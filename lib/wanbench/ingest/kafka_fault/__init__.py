"""
Reads what the experiment `kafka_fault` left: `files` checks what its programs printed, `episode` makes tables of it.
"""

from .episode import read

__all__ = ["read"]
