"""
Read output of the experiment `kafka_probe`: `files` checks it, `records` follows every record from its intended send
time to its receipts, `histograms` summarises latencies.
"""

from .records import read

__all__ = ["read"]
