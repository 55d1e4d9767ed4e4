"""
Published claims, tested on recomputed numbers: `ledger` holds them, and one module per source decides them.

The working of every verdict states its rule and the numbers used.
"""

from .ledger import Audit, Claim, read_claims

__all__ = ["Audit", "Claim", "read_claims"]
