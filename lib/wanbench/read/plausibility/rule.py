"""What a rule is, and how it raises a flag."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

IMPOSSIBLE = "impossible"
SUSPECT = "suspect"


@dataclass(frozen=True)
class Rule:
    """
    A plausibility rule.

    Parameters
    ----------
    name : str
        As in `flags.rule`.
    meaning : str
        What the rule says, in one sentence.
    bound : str
        What the rule allows, with its tolerance.
    reference : str
        The source of the bound.
    """

    name: str
    meaning: str
    bound: str
    reference: str

    def flag(self, table: str, scope: str, verdict: str, found: str, cause: str, **where) -> dict:
        """A row of table `flags`; `where` holds row, from_region, to_region, region, column_name, value, bound."""
        flag = {"table": table, "scope": scope, "verdict": verdict, "rule": self.name}
        return flag | {"found": found, "cause": cause} | where

    def flag_row(
        self, table: str, frame: pd.DataFrame, names: pd.Series, k: int, verdict: str, found: str, cause: str, **where
    ) -> dict:
        """A flag of row k of a table; `names` as from `row_names`, `where` as for `flag`."""
        ends = {"from_region": frame.from_region.iloc[k], "to_region": frame.to_region.iloc[k]}
        return self.flag(table, "row", verdict, found, cause, row=names.iloc[k], **ends, **where)

    def flag_round_trip(self, round_trip, verdict: str, found: str, cause: str, bound: float) -> dict:
        """A flag of one row of `round_trips`."""
        columns = ("row", "from_region", "to_region", "column_name")
        where = {name: getattr(round_trip, name) for name in columns}
        value = round_trip.rtt_ms
        return self.flag(round_trip.table, "row", verdict, found, cause, **where, value=value, bound=bound)
