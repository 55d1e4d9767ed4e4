"""
Published claims and their verdicts: `ledger` holds the claims, `rules` decides them by what was measured again.

The working of every verdict states its rule and the numbers used.
"""

from .ledger import Audit, Claim, read_claims

__all__ = ["Audit", "Claim", "read_claims"]
