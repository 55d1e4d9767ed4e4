"""
Published claims and their verdicts: `ledger` holds the claims, `rules` gives verdicts on them from a re-run.

Each verdict has a working: a string that states its rule and the numbers used.
"""

from .ledger import Audit, Claim, read_claims

__all__ = ["Audit", "Claim", "read_claims"]
