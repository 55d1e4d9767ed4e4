"""
Published claims, tested on recomputed numbers: `ledger` holds them, and one module per source decides them.

The working of every verdict states its rule and the numbers used.
"""

from .geo_kafka import geo_kafka
from .intercloud_2022 import throughput_across_clouds
from .ledger import Audit, Claim, read_claims
from .price_performance import price_performance
from .private_vs_internet import private_vs_internet
from .rolling_and_degraded import rolling_and_degraded
from .tail_latency import CAVEATS as TAIL_LATENCY_CAVEATS
from .tail_latency import tail_latency

__all__ = [
    "TAIL_LATENCY_CAVEATS",
    "Audit",
    "Claim",
    "geo_kafka",
    "price_performance",
    "private_vs_internet",
    "read_claims",
    "rolling_and_degraded",
    "tail_latency",
    "throughput_across_clouds",
]
