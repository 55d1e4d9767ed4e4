"""Which latency of a probe's records is meant, and whether the probe made its records wait for each other."""

from __future__ import annotations

import pandas as pd

from ...errors import ParameterError
from ...formatting import number

PROBE = ("run_id", "test_id", "attempt", "source_file")
"""The columns that tell one probe from another, where a table has them."""
WHAT = ("end to end", "publish")
SINCE = ("intended", "sent")
QUEUED = 0.5
"""Beyond this part of queued records the median is one that waited: the probe measures its own rate."""


def timed(records: pd.DataFrame, what: str, group: int, since: str, name: str) -> pd.DataFrame:
    """
    The records of a probe that have the latency asked for, each once, with that as `latency_ms`.

    Parameters
    ----------
    records : DataFrame
        Table probe_records.
    what : "end to end" or "publish"
        Until receipt by a consumer group, or until the producer has the acknowledgement.
    since : "intended" or "sent"
        From which send time on.

    Raises
    ------
    ParameterError
        If there are none, or the clocks leave them unknown.
    """
    if what not in WHAT:
        raise ParameterError(f"what is {what!r}; allowed is {', '.join(WHAT)}")
    if since not in SINCE:
        raise ParameterError(f"since is {since!r}; allowed is {', '.join(SINCE)}")
    if what == "publish":
        keys = [key for key in (*PROBE, "sequence") if key in records]
        seen = records[records.publish_latency_ms.notna()].drop_duplicates(keys)
        if seen.empty:
            raise ParameterError(f"{name}: no record was acknowledged")
        seen = seen.assign(latency_ms=seen.publish_latency_ms.astype("float64"))
    else:
        seen = records[(records.group == group).fillna(False) & ~records.duplicate]
        if seen.empty:
            raise ParameterError(f"{name}: no record was received by group {group}")
        if seen.latency_ms.isna().any():
            raise ParameterError(f"{name}: the offset between the clocks is not known, so no latency is")
    if since == "sent":
        late_ms = (seen.sent_at_s - seen.intended_at_s) * 1_000
        seen = seen.assign(latency_ms=seen.latency_ms - late_ms.fillna(0.0))
    return seen


def queueing(records: pd.DataFrame) -> tuple[str, ...]:
    """
    A caution where most records were sent before the one ahead of them on their connection was answered.

    That is so where the time to publish one exceeds the interval times the number of producers.
    """
    known = records.queued.dropna()
    share = float(known.mean()) if len(known) else 0.0
    if share <= QUEUED:
        return ()
    return (
        f"{number(100 * share, 0)} % of the probe's records waited for the one ahead of them on the same connection, "
        "because publishing takes longer than the interval times the producers: the latency depends on the probe's own "
        "rate; use a longer interval or more producers",
    )
