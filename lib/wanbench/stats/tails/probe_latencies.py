"""Select the requested latency of a probe's records, and check whether records queued in the probe."""

from __future__ import annotations

import pandas as pd

from ...checks import check_choice
from ...errors import ParameterError
from ...formatting import number

PROBE = ("run_id", "test_id", "attempt", "source_file")
"""The columns that identify a probe, if the table has them."""
WHAT = ("end to end", "publish")
SINCE = ("intended", "sent")
MOSTLY_QUEUED = 0.5
"""Above this share of queued records the median record waited: the probe measures its own rate."""


def with_latency(records: pd.DataFrame, what: str, group: int, since: str, name: str) -> pd.DataFrame:
    """
    The records that have the requested latency, once each, with that latency as `latency_ms`.

    Parameters
    ----------
    records : DataFrame
        Table probe_records.
    what : "end to end" or "publish"
        Until receipt by a consumer group, or until acknowledgement to the producer.
    since : "intended" or "sent"
        The send time from which latency counts.

    Raises
    ------
    ParameterError
        If there is no such record, or its latency is unknown because the offset between the clocks is.
    """
    check_choice("what", what, WHAT)
    check_choice("since", since, SINCE)
    if what == "publish":
        keys = [key for key in (*PROBE, "sequence") if key in records]
        rows = records[records.publish_latency_ms.notna()].drop_duplicates(keys)
        if rows.empty:
            raise ParameterError(f"{name}: no record was acknowledged.")
        rows = rows.assign(latency_ms=rows.publish_latency_ms.astype("float64"))
    else:
        rows = records[(records.group == group).fillna(False) & ~records.duplicate]
        if rows.empty:
            raise ParameterError(f"{name}: no record was received by group {group}.")
        if rows.latency_ms.isna().any():
            raise ParameterError(f"{name}: latencies are unknown, as is the offset between the clocks.")
    if since == "sent":
        late_ms = (rows.sent_at_s - rows.intended_at_s) * 1_000
        rows = rows.assign(latency_ms=rows.latency_ms - late_ms.fillna(0.0))
    return rows


def queueing_cautions(records: pd.DataFrame) -> tuple[str, ...]:
    """
    A caution if most records were sent while the previous one on their connection was unanswered.

    That happens if publishing a record takes longer than the interval times the number of producers.
    """
    queued = records.queued.dropna()
    share = float(queued.mean()) if len(queued) else 0.0
    if share <= MOSTLY_QUEUED:
        return ()
    return (
        f"{number(100 * share, 0)} % of the probe's records waited for the previous one on the same connection, "
        "because publishing takes longer than the interval times the producers: the latency depends on the probe's own "
        "rate; use a longer interval or more producers",
    )
