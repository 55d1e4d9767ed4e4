"""
Reads what the experiment `kafka_probe` left: `files` checks what its two programs printed, `records` follows every
record from its intended send time to its receipts, `histograms` sums up their latencies.
"""

from .records import read

__all__ = ["read"]
