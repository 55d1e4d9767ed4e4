"""Which acknowledged records were lost: when they were acknowledged, to which producers, by which leaders."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.formatting import count
from wanbench.methods.result import RowsResult

from .episodes import HIT, Episodes
from .phases import first_changes
from .records import lost_records


@dataclass(frozen=True, repr=False)
class LostWhen(RowsResult):
    """
    One row per setting that lost records: lost, in how many episodes, between which times after the fault they were
    acknowledged, how many to producers of the hit region, and how many in partitions whose leader was then replaced.
    """

    TITLE = "The records that were lost"

    @property
    def sentence(self) -> str:
        """The number of lost records, and how many of them the mechanism explains."""
        rows = self.rows
        return (
            f"Of {count(int(rows.lost.sum()), 'lost record')}, {int(rows.of_replaced_leaders.sum()):,} were in "
            f"partitions whose leader was replaced, and "
            f"{int(rows.to_hit_region.sum()):,} had been sent from the hit region."
        )

    def formatted_table(self) -> pd.DataFrame:
        """As text."""
        rows = self.rows
        return pd.DataFrame(
            {
                "setting": rows.setting,
                "lost": rows.lost.map("{:,}".format),
                "in episodes": rows.episodes.astype(str),
                "acknowledged after the fault": [
                    f"{a:.1f} to {b:.1f} s" for a, b in zip(rows.first_s, rows.last_s, strict=True)
                ],
                "sent from the hit region": rows.to_hit_region.map("{:,}".format),
                "leader replaced later": rows.of_replaced_leaders.map("{:,}".format),
            }
        )


def lost_when(found: Episodes) -> LostWhen:
    """Trace every acknowledged record that is missing from the log; MissingDataError if there is none."""
    rows = []
    for setting, own in found.with_fault().by_setting().items():
        parts = []
        for number, each in enumerate(own):
            lost = lost_records(each.tables["fault_records"], each.tables["fault_log"])
            region = lost.producer.map(lambda producer, each=each: each.regions.get(("producer", int(producer)), ""))
            parts.append(
                pd.DataFrame(
                    {
                        "episode": number,
                        "after_s": lost.acknowledged_at_s - each.fault_at_s,
                        "from_hit": [each.side(name) == HIT for name in region],
                        "replaced": lost.partition.isin(first_changes(each, each.about.ended_at_s).index),
                    }
                )
            )
        lost = pd.concat(parts, ignore_index=True)
        if len(lost):
            rows.append(
                {
                    "setting": setting,
                    "lost": len(lost),
                    "episodes": lost.episode.nunique(),
                    "first_s": lost.after_s.min(),
                    "last_s": lost.after_s.max(),
                    "to_hit_region": int(lost.from_hit.sum()),
                    "of_replaced_leaders": int(lost.replaced.sum()),
                }
            )
    if not rows:
        raise MissingDataError("no acknowledged record was lost from the log.")
    return LostWhen(pd.DataFrame(rows))
