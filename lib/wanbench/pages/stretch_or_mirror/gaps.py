"""
Find out why the second cluster of a mirrored pair lacks records that the first had acknowledged.

The names of such gaps:

expired: Missing records have offsets before the start of the first cluster's log: they were deleted before they were
    copied.
recreated: In the first cluster's log, other records have the offsets of acknowledged ones: the topic was deleted and
    created again.
not copied: The first cluster still has all records that are missing in the second.
late: No record is missing, but the consumer group's offsets in the second cluster were old, so that consumers read
    again what the group had read more than `LATE_S` before.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from wanbench.methods.result import Estimate, RowsResult
from wanbench.methods.result.means import share_of

from .losses import FIRST, RECORD, SECOND, account, episodes, within

PLACE = ["partition", "offset"]
NONE = "none"
LATE_S = 6.0


@dataclass(frozen=True, repr=False)
class Gaps(RowsResult):
    """
    The gap of each episode on the mirrored pair, as it was made on purpose and as the analysis named it.

    `rows` has one row per episode: `setting`, `planted` (the gap made), `named` (the gap found), `gone` (number of
    missing records), `reread` (number of records read again) and `reread_s` (age of the oldest of these in s).
    """

    TITLE = "Gaps in the mirrored topic: planted and named"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        planted, right = self.rows.planted != NONE, self.rows.planted == self.rows.named
        rows = (
            ("planted gaps named", right[planted]),
            ("episodes without a gap in which none was named", right[~planted]),
        )
        return tuple(
            share_of(int(each.sum()), len(each), quantity=text, claim=f"share of {text}: {{}}")
            for text, each in rows
            if len(each)
        )

    @property
    def sentence(self) -> str:
        planted = self.rows[self.rows.planted != NONE]
        others = self.rows[self.rows.planted == NONE]
        right, wrong = int((planted.named == planted.planted).sum()), int((others.named != NONE).sum())
        shares = " and ".join(f"{each.quantity}, {each.with_ends}" for each in self.estimates)
        return (
            f"The check named {right} of {len(planted)} planted gaps correctly ({int(planted.gone.sum()):,} missing "
            f"records), and found a gap in {wrong} of {len(others)} episodes without a planted gap. Shares with 95 % "
            f"intervals: {shares}."
        )

    def formatted_table(self) -> pd.DataFrame:
        counts = self.rows.groupby(["planted", "named"], sort=False)
        ages = counts[["gone", "reread", "reread_s"]].agg(["min", "max"])
        texts = {f"{name} ({end})": ages[name, end].map("{:.3g}".format) for name, end in ages}
        return pd.DataFrame({"episodes": counts.size().map(str), **texts}).reset_index()


def gaps(tables: Mapping[str, pd.DataFrame]) -> Gaps:
    """Name the gap of every completed episode on the mirrored pair."""
    rows = []
    for about, records, log, receipts, _ in episodes(tables):
        if (log["log"] == SECOND).any():
            planted = about.gap if isinstance(about.gap, str) else NONE
            counts = account(about, records, log, receipts)
            name = named(records[records.acknowledged_at_s.notna()], log, counts["reread_s"])
            row = {"setting": about.setting, "planted": planted, "named": name, "gone": counts["gone"]}
            rows.append(row | {key: counts[key] for key in ("reread", "reread_s")})
    return Gaps(pd.DataFrame(rows, columns=["setting", "planted", "named", "gone", "reread", "reread_s"]))


def named(acknowledged: pd.DataFrame, log: pd.DataFrame, reread_s: float) -> str:
    """
    Return the name of an episode's gap (see the module), or "none".

    acknowledged: The acknowledged records.
    log: The records of both logs.
    reread_s: Age of the oldest record that was read again, in s.
    """
    missing = acknowledged[~within(acknowledged, log, SECOND)]
    if missing.empty:
        return "late" if reread_s > LATE_S else NONE
    first = log[(log["log"] == FIRST) & log.producer.notna()][[*PLACE, *RECORD]].astype(int)
    there = acknowledged[[*PLACE, *RECORD]].astype(int).merge(first, on=PLACE, suffixes=("", "_there"))
    if ((there.producer != there.producer_there) | (there.sequence != there.sequence_there)).any():
        return "recreated"
    starts = first.groupby("partition").offset.min()
    before = missing.offset.astype(int) < missing.partition.astype(int).map(starts)
    return "expired" if before.any() else "not copied"
