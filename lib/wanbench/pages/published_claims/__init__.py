"""Show the ledger of all claims: which were checked, how, and with what verdict."""

from .all_claims import all_claims

__all__ = ["all_claims"]
