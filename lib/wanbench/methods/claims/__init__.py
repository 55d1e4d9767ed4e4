"""
Judge published claims: `ledger` has the claims with their verdicts, `rules` sets verdicts from a re-run.

Each verdict has a working: a string that states its rule and the numbers used.
"""

from .ledger import Audit, Claim, read_claims

__all__ = ["Audit", "Claim", "read_claims"]
