"""Find when the route between two regions changed, and whether the RTT changed with it."""

from dataclasses import dataclass

import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.formatting import count
from wanbench.methods.result import RowsResult
from wanbench.read.ingest import CampaignTables

from .pair_changes import PAIR, PairChanges

QUERY = """
SELECT from_region, to_region, started_at_utc AS at_utc, route
FROM routes JOIN (SELECT run_id, test_id, attempt, started_at_utc FROM tests) USING (run_id, test_id, attempt)
ORDER BY started_at_utc
"""


@dataclass(frozen=True, repr=False)
class RouteChanges(RowsResult):
    """
    Changes of the usual route, one row per pair: `steps` (of time, with a route), `routes` (number of different ones),
    `changes`, and `with_rtt` (number of changes at most one step from a change of the RTT's level).
    """

    TITLE = "Changes of route"

    @property
    def sentence(self) -> str:
        rows, total = self.rows, int(self.rows.changes.sum())
        return (
            f"The usual route changed {count(total, 'time')} over {count(len(rows), 'pair')}; at "
            f"{int(rows.with_rtt.sum())} of these changes, the level of the RTT changed within one step of time."
        )


def route_changes(tables: CampaignTables | None, changes: PairChanges) -> RouteChanges:
    """
    Compare each pair's most frequent route in a step of time, such as a day, with that in the step before.

    `changes` has the changes of RTT, and the length of a step.

    Raises
    ------
    MissingDataError
        The campaign recorded no route.
    """
    if tables is None or "routes" not in tables:
        raise MissingDataError("no test recorded a route (page 02 with -p route=true, on hosts with mtr).")
    found, size, rows = tables.query(QUERY), pd.Timedelta(changes.step), []
    for pair, part in found.groupby(PAIR):
        usual = part.groupby(part.at_utc.dt.floor(size)).route.agg(lambda routes: routes.mode().iloc[0])
        moved = usual.index[1:][(usual != usual.shift()).to_numpy()[1:]]
        levels = changes.series[pair].rows.since[1:] if pair in changes.series else []
        near = sum(any(abs(at - since) <= size for since in levels) for at in moved)
        counted = {"steps": len(usual), "routes": usual.nunique(), "changes": len(moved), "with_rtt": near}
        rows.append(dict(zip(PAIR, pair, strict=True)) | counted)
    return RouteChanges(pd.DataFrame(rows).sort_values("changes", ascending=False, ignore_index=True))
