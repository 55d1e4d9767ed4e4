"""
Published claims, each tried on recomputed numbers: `ledger` holds them, and one module per source says what decides.

The rule of every verdict stands in the working, with the numbers it was applied to.
"""

from .intercloud_2022 import throughput_across_clouds
from .ledger import Audit, Claim, audit
from .private_vs_internet import private_vs_internet

__all__ = ["Audit", "Claim", "audit", "private_vs_internet", "throughput_across_clouds"]
