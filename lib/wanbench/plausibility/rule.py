"""What a rule is, and how a flag is made of one. Imports nothing of the gate."""

from __future__ import annotations

from dataclasses import dataclass

IMPOSSIBLE, SUSPECT = "impossible", "suspect"


@dataclass(frozen=True)
class Rule:
    """
    A rule of the gate.

    Parameters
    ----------
    name : str
        As it stands in `flags.rule`.
    meaning : str
        What it says, in one sentence.
    bound : str
        What it allows, with its tolerance.
    reference : str
        Where the bound comes from.
    """

    name: str
    meaning: str
    bound: str
    reference: str

    def flag(self, table: str, scope: str, verdict: str, found: str, cause: str, **where) -> dict:
        """A row of table `flags`; `where` holds row, from_region, to_region, region, column_name, value, bound."""
        return {
            "table": table,
            "scope": scope,
            "verdict": verdict,
            "rule": self.name,
            "found": found,
            "cause": cause,
        } | where
