"""
Check what became of every acknowledged record: is it in the log, and was it delivered once, intact and in order?

A record is identified by its producer and sequence number. The log is read back from each partition's leader after
healing. These are the kinds of faults:

lost                   acknowledged, and not in the log
undelivered            acknowledged and in the log, but it reached no consumer
damaged_in_log         the copy in the log fails its checksum
damaged_in_delivery    acknowledged, intact in the log, and every receipt of it fails the checksum
duplicates_in_log      further copies in the log
duplicates_in_delivery further intact receipts, of the same copy or of another one
order_in_log           follows a record of the same producer and partition that has a higher sequence number
order_in_delivery      the same, in the order in which one consumer received records
displaced              in the log, but at another offset than acknowledged; there is another record at that offset
unsent                 in the log or received, but never sent

To test this check, some episodes have consumers' output that is damaged on purpose (planted damage): the check must
report the right kind of fault.
"""

from dataclasses import dataclass

import pandas as pd

from wanbench.checks import check_columns
from wanbench.errors import MissingDataError
from wanbench.formatting import count
from wanbench.methods.result import RowsResult

from .episodes import Episodes

RECORD, PLACE = ["producer", "sequence"], ["partition", "offset"]
NAMES = {
    "lost": "lost from the log",
    "undelivered": "undelivered (in the log, never received)",
    "damaged_in_log": "damaged in the log",
    "damaged_in_delivery": "delivered only in damaged form",
    "duplicates_in_log": "duplicates in the log",
    "duplicates_in_delivery": "delivered again",
    "order_in_log": "out of order in the log",
    "order_in_delivery": "delivered out of order",
    "displaced": "not at its acknowledged offset",
    "unsent": "sent by no producer",
}
MORE = {
    "damaged_receipts": "damaged receipts, of any record",
    "lost_after_delivery": "of those lost: received before they vanished",
    "overwritten": "of those lost: another record has their offset",
}
"""Further counts of records; a record counted here may also be counted under one of the faults."""


EXPECTED = {
    "drop": "undelivered",
    "duplicate": "duplicates_in_delivery",
    "reorder": "order_in_delivery",
    "alter": "damaged_in_delivery",
}
"""Maps each planted damage to the kind of fault that the checker must report, once, and without any other fault."""


def account(records: pd.DataFrame, receipts: pd.DataFrame, log: pd.DataFrame) -> dict[str, int]:
    """
    Count acknowledged records, records with each kind of fault, and the further counts in `MORE`.

    The arguments are those of `faulty`.
    """
    rows = faulty(records, receipts, log)
    received, spoilt = _split(receipts)
    counts = {"acknowledged": int(records.acknowledged_at_s.notna().sum())}
    counts |= {name: len(part) for name, part in rows.items()} | {"damaged_receipts": len(spoilt)}
    counts["lost_after_delivery"] = int(_among(rows["lost"], received, RECORD).sum())
    return counts | {"overwritten": int(_among(rows["lost"], _split(log)[0], PLACE).sum())}


def faulty(records: pd.DataFrame, receipts: pd.DataFrame, log: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """
    Return the records with each kind of fault, by its name, with producer and sequence number if known.

    `records` has one row per record that was sent (acknowledged_at_s is null if it never was acknowledged), `receipts`
    one per receipt, in order for each consumer, and `log` one per record read back. In damaged receipts and copies,
    producer and sequence may be null.
    """
    check_columns("records", records, [*RECORD, *PLACE, "acknowledged_at_s"])
    check_columns("receipts", receipts, ["consumer", *RECORD, *PLACE, "received_at_s", "damaged"])
    check_columns("log", log, [*PLACE, *RECORD, "damaged"])
    kept, spoilt = _split(log)
    received, spoilt_receipts = _split(receipts)
    acknowledged = records[records.acknowledged_at_s.notna()]
    in_log = _among(acknowledged, kept, RECORD)
    delivered = _among(acknowledged, received, RECORD)
    # a damaged receipt at least names its offset; the log says which record stands there
    places = kept.drop_duplicates(RECORD)[[*RECORD, *PLACE]]
    stand = acknowledged[RECORD].merge(places, on=RECORD, how="left")
    spoilt_on_the_way = _among(stand, spoilt_receipts, PLACE).to_numpy() & in_log & ~delivered
    at_its_place = _among(acknowledged, kept, [*RECORD, *PLACE])
    seen = pd.concat([kept[RECORD], received[RECORD]]).drop_duplicates()
    in_order = kept.sort_values(PLACE).drop_duplicates(RECORD)
    # after a rebalance, receiving again is a duplicate, not out of order
    first = received.sort_values("received_at_s", kind="stable").drop_duplicates(RECORD).index
    first_receipts = received[received.index.isin(first)]
    return {
        "lost": acknowledged[~in_log & ~_among(acknowledged, spoilt, PLACE)],
        "undelivered": acknowledged[in_log & ~delivered & ~spoilt_on_the_way],
        "damaged_in_log": spoilt,
        "damaged_in_delivery": acknowledged[spoilt_on_the_way],
        "duplicates_in_log": kept[kept.duplicated(RECORD)],
        "duplicates_in_delivery": received[received.duplicated(RECORD)],
        "order_in_log": _behind(in_order, ["producer", "partition"]),
        "order_in_delivery": _behind(first_receipts, ["consumer", "producer", "partition"]),
        "displaced": acknowledged[in_log & ~at_its_place & _among(acknowledged, kept, PLACE)],
        "unsent": seen[~_among(seen, records, RECORD)],
    }


def _behind(rows: pd.DataFrame, within: list[str]) -> pd.DataFrame:
    """Return the rows whose sequence number is below an earlier one of the same group (by the columns `within`)."""
    if rows.empty:
        return rows
    sequence = rows.sequence.astype("int64")
    return rows[sequence < sequence.groupby([rows[name] for name in within]).cummax()]


def _split(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    damaged = rows.damaged.astype(bool) | rows.producer.isna() | rows.sequence.isna()
    return rows[~damaged], rows[damaged]


def _among(rows: pd.DataFrame, others: pd.DataFrame, names: list[str]) -> pd.Series:
    """Return for each row whether its values in the columns `names` occur together in `others`; no if one is null."""
    keys = pd.MultiIndex.from_frame(rows[names].astype("Float64").fillna(-1).astype("int64"))
    known = pd.MultiIndex.from_frame(others[names].dropna().astype("int64"))
    return pd.Series(keys.isin(known), index=rows.index)


@dataclass(frozen=True, repr=False)
class Checked(RowsResult):
    """
    What the check reports of damage made on purpose: one row per episode with such damage.

    Columns of `rows`: `done` (the damage), `reported` (the faults found), `right` and `known`.

    A report is right if it has a single record, with the kind of fault that the damage causes and no other. If it is
    on record which one was damaged, the report must name that one; `known` says that it does.
    """

    TITLE = "Faults planted to test the checker"

    @property
    def sentence(self) -> str:
        right, known = int(self.rows.right.sum()), int(self.rows.known.sum())
        at = f" {known} of the reports name the record that was damaged." if known else ""
        planted = count(len(self.rows), "planted fault")
        return f"The checker reported {right} of {planted} correctly, that is once and as no other fault.{at}"

    def formatted_table(self) -> pd.DataFrame:
        cells = {"Planted": self.rows.done, "Reported": self.rows.reported}
        return pd.DataFrame(cells | {"Correct": self.rows.right.map({True: "yes", False: "no"})})


def check_checker(episodes: Episodes) -> Checked:
    """
    Compare the damage made on purpose in some episodes with the faults that `faulty` reports.

    These episodes have no other fault, so nothing else must be reported. Raises MissingDataError: there is no such
    episode.
    """
    rows = []
    for each in episodes:
        damage = each.about.get("damage")
        if damage not in EXPECTED:
            continue
        faults = faulty(*(each.tables[f"fault_{name}"] for name in ("records", "receipts", "log")))
        named = {name: len(part) for name, part in faults.items() if len(part)}
        text = ", ".join(f"{n} {NAMES[name]}" for name, n in named.items()) or "nothing"
        right = named == {EXPECTED[damage]: 1}
        planted = [each.about.get(f"damaged_{name}") for name in RECORD]
        known = right and not pd.isna(planted).any()
        if known:
            right = faults[EXPECTED[damage]][RECORD].iloc[0].tolist() == planted
        rows.append({"done": damage, "reported": text, "right": right, "known": known and right})
    if not rows:
        raise MissingDataError("no episode of this run has planted damage.")
    return Checked(pd.DataFrame(rows))
