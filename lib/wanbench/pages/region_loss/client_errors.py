"""Errors that clients reported, by kind."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wanbench.formatting import count
from wanbench.methods.result import RowsResult, text_table

from .episodes import HIT, SURVIVING, Episodes


@dataclass(frozen=True, repr=False)
class ClientErrors(RowsResult):
    """One row per setting, role, side and kind: n, episodes with it, median time after the fault."""

    n_episodes: int

    TITLE = "Errors of clients"

    @property
    def sentence(self) -> str:
        """The total number of errors, and the most frequent kind."""
        if self.rows.empty:
            return f"No client reported an error in {count(self.n_episodes, 'episode')}."
        kinds = self.rows.groupby("kind").n.sum().sort_values(ascending=False)
        return (
            f"Clients reported {count(int(kinds.sum()), 'error')} of {count(len(kinds), 'kind')} in "
            f"{count(self.n_episodes, 'episode')}; the most frequent is {kinds.index[0]} ({kinds.iloc[0]:,})."
        )

    def formatted_table(self) -> pd.DataFrame:
        """As text."""
        heads = [
            "setting",
            "clients",
            "where",
            "error",
            "errors",
            "episodes with it",
            "median time after the fault (s)",
        ]
        where = self.rows.side.map({HIT: "hit region", SURVIVING: "other regions"})
        return text_table(self.rows.assign(side=where)).set_axis(heads, axis=1)


def client_errors(found: Episodes) -> ClientErrors:
    """Count errors by kind, separately for clients inside and outside the hit regions."""
    parts = []
    for each in found.with_fault():
        rows = each.tables["fault_errors"]
        side = [each.side(each.regions.get((row.role, int(row.client)), "")) for row in rows.itertuples()]
        parts.append(
            rows.assign(setting=each.setting, side=side, episode=str(each.key), after_s=rows.at_s - each.fault_at_s)
        )
    together = pd.concat(parts, ignore_index=True)
    groups = together.groupby(["setting", "role", "side", "kind"], sort=False)
    rows = groups.agg(n=("kind", "size"), episodes=("episode", "nunique"), median_after_fault_s=("after_s", "median"))
    return ClientErrors(rows.reset_index(), n_episodes=len(parts))
