"""
Name the gap in a mirrored topic: why does the second cluster lack records that the first had acknowledged?

expired: The record's offset lies before the start of the first cluster's log, so it was deleted before it was copied.
recreated: Another record has its offset in the first cluster's log, so the topic was deleted and created again.
not copied: The first cluster still has all records that are missing in the second.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wanbench.methods.result import RowsResult

from .losses import FIRST, RECORD, SECOND, _episodes, _in

PLACE = ["partition", "offset"]
NONE = "none"


@dataclass(frozen=True, repr=False)
class Gaps(RowsResult):
    """A row per episode on the mirrored pair: `setting`, the gap `planted`, the gap `named`, and `missing` records."""

    TITLE = "Gaps in the mirrored topic: planted and named"

    @property
    def sentence(self) -> str:
        planted = self.rows[self.rows.planted != NONE]
        others = self.rows[self.rows.planted == NONE]
        right, wrong = int((planted.named == planted.planted).sum()), int((others.named != NONE).sum())
        return (
            f"The check named {right} of {len(planted)} planted gaps correctly ({int(planted.missing.sum()):,} missing "
            f"records), and found a gap in {wrong} of {len(others)} episodes without a planted one."
        )


def gaps(tables) -> Gaps:
    """Name the gap of every completed episode on the mirrored pair."""
    rows = []
    for about, records, log, _ in _episodes(tables):
        if (log["log"] == SECOND).any():
            planted = about.gap if isinstance(about.gap, str) else NONE
            missing = records[records.acknowledged_at_s.notna()]
            missing = missing[~_in(missing, log, SECOND)]
            rows.append(
                {"setting": about.setting, "planted": planted, "named": named(missing, log), "missing": len(missing)}
            )
    return Gaps(pd.DataFrame(rows, columns=["setting", "planted", "named", "missing"]))


def named(missing: pd.DataFrame, log: pd.DataFrame) -> str:
    """Name the gap of an episode from the records that the second cluster lacks, and the logs."""
    if missing.empty:
        return NONE
    first = log[(log["log"] == FIRST) & log.producer.notna()][[*PLACE, *RECORD]].astype(int)
    there = missing[[*PLACE, *RECORD]].astype(int).merge(first, on=PLACE, suffixes=("", "_there"))
    other = (there.producer != there.producer_there) | (there.sequence != there.sequence_there)
    if other.any():
        return "recreated"
    starts = first.groupby("partition").offset.min()
    before = missing.offset.astype(int) < missing.partition.astype(int).map(starts)
    return "expired" if before.any() else "not copied"
