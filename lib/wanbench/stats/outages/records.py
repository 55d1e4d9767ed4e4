"""
What became of every acknowledged record: is it in the log, was it delivered, once, intact and in order?

A record is known by its producer and its sequence number. Every fault of a record has one name:

lost                   acknowledged, and in no replica's log
undelivered            acknowledged and in the log, but no consumer received it
damaged_in_log         the copy in the log fails its checksum
damaged_in_delivery    intact in the log, and every receipt of it fails the checksum
duplicates_in_log      further copies in the log
duplicates_in_delivery further receipts of one offset
order_in_log           stands behind a record of its producer and partition with a higher sequence number
order_in_delivery      the same, in the order in which one consumer received records
"""

from __future__ import annotations

import pandas as pd

from ...checks import check_columns

RECORD, PLACE = ["producer", "sequence"], ["partition", "offset"]
NAMES = {
    "lost": "lost from the log",
    "undelivered": "in the log, never delivered",
    "damaged_in_log": "damaged in the log",
    "damaged_in_delivery": "delivered damaged",
    "duplicates_in_log": "duplicates in the log",
    "duplicates_in_delivery": "delivered again",
    "order_in_log": "out of order in the log",
    "order_in_delivery": "delivered out of order",
}


def account(records: pd.DataFrame, receipts: pd.DataFrame, log: pd.DataFrame) -> dict[str, int]:
    """
    Counts of the faults of records, by the names above, and `acknowledged`, `never_delivered`, `lost_after_delivery`.

    Parameters
    ----------
    records : DataFrame
        One row per record that was sent: producer, sequence, partition, offset, acknowledged_at_s (null: never).
    receipts : DataFrame
        One row per receipt, each consumer's in the order of receipt: consumer, producer, sequence (null where damage
        hides them), partition, offset, received_at_s, damaged.
    log : DataFrame
        One row per record read back: partition, offset, producer, sequence (null where damaged), damaged.

    Returns
    -------
    dict
        `never_delivered` are acknowledged records that no consumer received intact or damaged, in the log or not;
        `lost_after_delivery` are those of `lost` that a consumer had received before they vanished.
    """
    check_columns("records", records, [*RECORD, *PLACE, "acknowledged_at_s"])
    check_columns("receipts", receipts, ["consumer", *RECORD, *PLACE, "received_at_s", "damaged"])
    check_columns("log", log, [*PLACE, *RECORD, "damaged"])
    kept, spoilt = _split(log)
    received, spoilt_receipts = _split(receipts)
    acknowledged = records[records.acknowledged_at_s.notna()]
    in_log, damaged_in_log = _in_log(acknowledged, kept, spoilt)
    lost = ~in_log & ~damaged_in_log
    delivered = _among(acknowledged, received, RECORD)
    # a damaged receipt names its offset at least; the log says which record stands there
    places = kept.drop_duplicates(RECORD)[[*RECORD, *PLACE]]
    stand = acknowledged[RECORD].merge(places, on=RECORD, how="left")
    spoilt_on_the_way = pd.Series(_among(stand, spoilt_receipts, PLACE).to_numpy(), index=acknowledged.index)
    spoilt_on_the_way &= in_log & ~delivered
    return {
        "acknowledged": len(acknowledged),
        "lost": int(lost.sum()),
        "undelivered": int((in_log & ~delivered & ~spoilt_on_the_way).sum()),
        "damaged_in_log": len(spoilt),
        "damaged_in_delivery": int(spoilt_on_the_way.sum()),
        "duplicates_in_log": int(kept.duplicated(RECORD).sum()),
        "duplicates_in_delivery": int(receipts.duplicated(PLACE).sum()),
        "order_in_log": violations(
            kept.sort_values(PLACE).drop_duplicates(RECORD), ["producer", "partition"]
        ),
        "order_in_delivery": _order_of_receipts(received),
        "never_delivered": int((~delivered & ~spoilt_on_the_way & ~damaged_in_log).sum()),
        "lost_after_delivery": int((lost & delivered).sum()),
    }


def lost_records(records: pd.DataFrame, log: pd.DataFrame) -> pd.DataFrame:
    """The rows of acknowledged records that the log lacks."""
    acknowledged = records[records.acknowledged_at_s.notna()]
    in_log, damaged_in_log = _in_log(acknowledged, *_split(log))
    return acknowledged[~in_log & ~damaged_in_log]


def violations(rows: pd.DataFrame, within: list[str]) -> int:
    """
    Rows whose sequence is below an earlier one of the same group.

    >>> violations(pd.DataFrame({"producer": 0, "sequence": [0, 2, 1, 3]}), ["producer"])
    1
    """
    if rows.empty:
        return 0
    sequence = rows.sequence.astype("int64")
    return int((sequence < sequence.groupby([rows[name] for name in within]).cummax()).sum())


def _order_of_receipts(received: pd.DataFrame) -> int:
    """Only first receipts count: what is received again after a rebalance is a duplicate, not out of order."""
    first = received.sort_values("received_at_s", kind="stable").drop_duplicates(RECORD).index
    return violations(received[received.index.isin(first)], ["consumer", "producer", "partition"])


def _in_log(
    acknowledged: pd.DataFrame, kept: pd.DataFrame, spoilt: pd.DataFrame
) -> tuple[pd.Series, pd.Series]:
    in_log = _among(acknowledged, kept, RECORD)
    return in_log, ~in_log & _among(acknowledged, spoilt, PLACE)


def _split(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    damaged = rows.damaged.astype(bool) | rows.producer.isna() | rows.sequence.isna()
    return rows[~damaged], rows[damaged]


def _among(rows: pd.DataFrame, others: pd.DataFrame, names: list[str]) -> pd.Series:
    """Which rows have their key among those of others; a key with a gap is in none."""
    keys = pd.MultiIndex.from_frame(rows[names].astype("Float64").fillna(-1).astype("int64"))
    known = pd.MultiIndex.from_frame(others[names].dropna().astype("int64"))
    return pd.Series(keys.isin(known), index=rows.index)
