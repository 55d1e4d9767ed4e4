"""
Requested against delivered: the verdicts on an emulated link.

Each function takes tidy tables and returns rows of one shape (see `calibration`), so that they concatenate.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, hypot, nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...formatting import percent, quantity
from ..distance.inflation import order_interval
from ..result import exact_binomial
from .calibration import (
    OUTSIDE,
    UNKNOWN,
    WITHIN,
    answered,
    both_ways,
    groups,
    judged,
    link_of,
    matching,
    or_unknown,
    row_of,
    table_of,
)

IP_UDP_BYTES, TCP_HEADER_BYTES = (20, 8), 52
FRAGMENT_BYTES = 1480


def rtt(
    echoes: pd.DataFrame,
    links: pd.DataFrame,
    *,
    by: Sequence[str] = ("run_id",),
    level: float = 0.99,
    allowed_ms: float = 1.0,
    allowed_share: float = 0.01,
) -> pd.DataFrame:
    """
    Median RTT of the echoes against the sum of the two one-way delays.

    The interval of the median comes from order statistics (Hahn & Meeker 1991). Within the limit if the
    median is off by no more than `allowed_ms` + `allowed_share` of the request (1 ms + 1 %). The note has
    the mean.

    Parameters
    ----------
    echoes, links : DataFrame
        Tables of these names. Lost echoes and extra replies have no part in this.
    by : sequence of str
        Columns of both tables that, with from_region and to_region, say which request an echo belongs to.
    """
    rows = []
    for key, ends, group in groups(echoes, by):
        requests = both_ways(links, key, ends, by)
        values = answered(group).rtt_ms.to_numpy(dtype=float)
        row = row_of(
            key, ends, "rtt", "ms", level, f"{allowed_ms:g} ms + {percent(allowed_share)}", len(values)
        )
        if requests is not None and len(values):
            requested = sum(float(link.delay_ms) for link in requests)
            low, high = order_interval(values, level)
            delivered, allowed = float(np.median(values)), allowed_ms + allowed_share * requested
            note = f"mean {quantity(values.mean(), 'ms')}"
            row |= judged(requested, delivered, low, high, allowed, note)
        rows.append(or_unknown(row, requests, "no echo was answered"))
    return table_of(rows)


def jitter(
    echoes: pd.DataFrame,
    links: pd.DataFrame,
    *,
    by: Sequence[str] = ("run_id",),
    level: float = 0.99,
    allowed_ms: float = 0.5,
    allowed_share: float = 0.1,
) -> pd.DataFrame:
    """
    Standard deviation of the RTT against that requested: the root of the sum of squares of both directions.

    The interval is that of a standard deviation of normal values (chi-square). Jitter wanders, so echoes
    close together say less: they count as n (1 - r^2) / (1 + r^2), with r the correlation of one with the
    next (Bartlett 1935). Outside the limit only if the whole interval is; "unknown" if the estimate alone is.
    """
    rows = []
    for key, ends, group in groups(echoes, by):
        requests = both_ways(links, key, ends, by)
        values = answered(group).rtt_ms.to_numpy(dtype=float)
        limit = f"{allowed_ms:g} ms + {percent(allowed_share)}"
        row = row_of(key, ends, "jitter", "ms", level, limit, len(values))
        if requests is not None and len(values) > 1:
            requested = hypot(*(float(link.jitter_ms) for link in requests))
            freedom, delivered = effective_n(values) - 1, float(values.std(ddof=1))
            tail = (1 - level) / 2
            low, high = (delivered * sqrt(freedom / stats.chi2.ppf(q, freedom)) for q in (1 - tail, tail))
            allowed = allowed_ms + allowed_share * requested
            note = f"as good as {freedom + 1:.0f} independent echoes"
            row |= judged(requested, delivered, low, high, allowed, note)
            row |= _too_few(row)
        rows.append(or_unknown(row, requests, "fewer than two echoes were answered"))
    return table_of(rows)


def mean_rtt(
    echoes: pd.DataFrame,
    links: pd.DataFrame,
    *,
    by: Sequence[str] = ("run_id",),
    level: float = 0.99,
    allowed_ms: float = 1.0,
    allowed_share: float = 0.01,
) -> pd.DataFrame:
    """
    Mean RTT of links with jitter against the sum of the two one-way delays: jitter must not become delay.

    Student's interval, in which echoes count as n (1 - r) / (1 + r), with r the correlation of one with the
    next (Bartlett 1935). Outside the limit only if the whole interval is; "unknown" if the estimate alone is.
    """
    rows = []
    for key, ends, group in groups(echoes, by):
        requests = both_ways(links, key, ends, by)
        values = answered(group).rtt_ms.to_numpy(dtype=float)
        limit = f"{allowed_ms:g} ms + {percent(allowed_share)}"
        row = row_of(key, ends, "mean", "ms", level, limit, len(values))
        if requests is not None and len(values) > 1:
            requested, delivered = sum(float(link.delay_ms) for link in requests), float(values.mean())
            n = effective_n(values, of="mean")
            half = stats.t.ppf((1 + level) / 2, n - 1) * values.std(ddof=1) / sqrt(n)
            note = f"as good as {n:.0f} independent echoes"
            allowed = allowed_ms + allowed_share * requested
            row |= judged(requested, delivered, delivered - half, delivered + half, allowed, note)
            row |= _too_few(row)
        rows.append(or_unknown(row, requests, "fewer than two echoes were answered"))
    return table_of(rows)


def _too_few(row: dict) -> dict:
    """What changes in a row whose estimate is outside the limit, but not its whole interval."""
    low, high = row["requested"] - row["allowed"], row["requested"] + row["allowed"]
    if row["verdict"] == OUTSIDE and row["low"] <= high and row["high"] >= low:
        return {"verdict": UNKNOWN, "note": f"too few echoes to tell: {row['note']}"}
    return {}


def effective_n(values: np.ndarray, of: str = "variance") -> float:
    """
    How many independent values say as much about a variance, n (1 - r^2) / (1 + r^2), or a mean, n (1 - r) / (1 + r).

    At least 2, and at most n: neighbours that differ more than by chance count for no more than independent ones.

    >>> effective_n(np.array([1.0, 2.0, 1.0, 2.0, 1.5])) <= 5
    True
    """
    centred = values - values.mean()
    total = centred @ centred
    r = max(0.0, float(centred[1:] @ centred[:-1] / total)) if total > 0 else 0.0
    r = r if of == "mean" else r * r
    return max(2.0, len(values) * (1 - r) / (1 + r))


def loss(
    echoes: pd.DataFrame, links: pd.DataFrame, *, by: Sequence[str] = ("run_id",), level: float = 0.99
) -> pd.DataFrame:
    """
    Share of echoes lost against 1 - (1 - loss there)(1 - loss back).

    Within the limit if the request lies inside the exact binomial interval (Clopper & Pearson 1934) of what
    was delivered; of true links, about 1 in 100 lies outside at the level 99 %. A request of 0 allows none.
    """
    check_level(level)
    rows = []
    for key, ends, group in groups(echoes, by):
        requests = both_ways(links, key, ends, by)
        sent = group[~group.duplicate.astype(bool)]
        n, lost = len(sent), int(sent.lost.sum())
        row = row_of(key, ends, "loss", "fraction", level, f"request inside the {percent(level)} interval", n)
        if requests is not None and n:
            there, back = (float(link.loss) for link in requests)
            requested = 1 - (1 - there) * (1 - back)
            low, high = exact_binomial(lost, n, level)
            row |= judged(requested, lost / n, low, high, nan, f"{lost:,} of {n:,} echoes")
            row["verdict"] = WITHIN if low <= requested <= high else OUTSIDE
        rows.append(or_unknown(row, requests, "no echo was sent"))
    return table_of(rows)


def rate(
    transfers: pd.DataFrame,
    links: pd.DataFrame,
    *,
    by: Sequence[str] = ("run_id",),
    level: float = 0.99,
    allowed_share: float = 0.05,
    header_bytes: float | None = None,
    frame_bytes: float = 0.0,
) -> pd.DataFrame:
    """
    Rate at the receiver, headers added, against the rate limit of the sending direction.

    A link's limit counts whole packets, iperf3 counts payload. So each transfer's throughput is scaled by
    (payload + headers) / payload: 52 bytes per TCP segment (IPv4, TCP, timestamps), 28 per UDP datagram and
    20 more for each further fragment. Directions without a limit have no row. The median is judged.

    Parameters
    ----------
    transfers, links : DataFrame
        Tables of these names.
    header_bytes : float, optional
        Per packet, in place of the above; 0 judges the payload rate.
    frame_bytes : float
        More bytes per packet that the link counts: 14 where it counts Ethernet frames.
    """
    known = transfers[transfers.throughput_bps.notna() & transfers.direction.notna()]
    forward = known.direction == "forward"
    known = known.assign(
        from_region=known.from_region.where(forward, known.to_region),
        to_region=known.to_region.where(forward, known.from_region),
        wire_bps=[_wire_bps(row, header_bytes, frame_bytes) for row in known.itertuples(index=False)],
    )
    rows = []
    for key, ends, group in groups(known, by):
        link = link_of(links, key, ends, by)
        if link is not None and pd.isna(link.rate_bps):
            continue
        values = group.wire_bps.dropna().to_numpy(dtype=float)
        row = row_of(key, ends, "rate", "bit/s", level, percent(allowed_share), len(values))
        if link is not None and len(values):
            requested = float(link.rate_bps)
            low, high = order_interval(values, level)
            payload = quantity(float(group.throughput_bps.median()), "bit/s")
            note = f"payload {payload}, headers added"
            row |= judged(requested, float(np.median(values)), low, high, allowed_share * requested, note)
        rows.append(or_unknown(row, link, "no transfer says its payload per packet"))
    return table_of(rows)


def _wire_bps(row, header_bytes: float | None, frame_bytes: float) -> float:
    """Throughput with headers; NaN where the payload per packet is not known."""
    if header_bytes == 0 and frame_bytes == 0:
        return row.throughput_bps
    udp = row.protocol == "UDP"
    payload = row.block_bytes if udp else row.mss_bytes
    if pd.isna(payload) or payload <= 0:
        return nan
    packets = ceil((payload + IP_UDP_BYTES[1]) / FRAGMENT_BYTES) if udp else 1
    header = header_bytes
    if header is None:
        header = IP_UDP_BYTES[1] + IP_UDP_BYTES[0] * packets if udp else TCP_HEADER_BYTES
    return row.throughput_bps * (payload + header + packets * frame_bytes) / payload


def cut(
    echoes: pd.DataFrame,
    cuts: pd.DataFrame,
    *,
    by: Sequence[str] = ("run_id",),
    allowed_ms: float = 100.0,
    before_s: float = 5.0,
) -> pd.DataFrame:
    """
    Time from the command that cut a link to the last reply seen before it was healed.

    Parameters
    ----------
    echoes : DataFrame
        Table of this name, with `received_at_s` (ping -D).
    cuts : DataFrame
        One row per cut: the columns of `by`, from_region, to_region, cut_at_s (Unix time when the command was
        given), healed_at_s (null: never).
    before_s : float
        Replies must arrive within this time before the cut, closer together than `allowed_ms`; and an echo
        must have been lost after it. Else the silence proves nothing and the verdict is "unknown".
    """
    rows = []
    for event in cuts.itertuples(index=False):
        key, ends = {name: getattr(event, name) for name in by}, (event.from_region, event.to_region)
        group = matching(echoes, {**key, "from_region": ends[0], "to_region": ends[1]})
        cut_at, healed_at = float(event.cut_at_s), float(event.healed_at_s)
        end = healed_at if not np.isnan(healed_at) else np.inf
        replies = answered(group).dropna(subset="received_at_s").sort_values("received_at_s")
        at = replies.received_at_s.to_numpy(dtype=float)
        before = at[(at >= cut_at - before_s) & (at <= cut_at)]
        during, after = at[(at > cut_at) & (at < end)], at[at >= end]
        last = float(during[-1]) if len(during) else cut_at
        lost = _lost_between(group, replies, last, after)
        row = row_of(key, ends, "cut", "ms", nan, f"{allowed_ms:g} ms", lost)
        note = ""
        if len(before) < 2 or np.median(np.diff(before)) * 1000 > allowed_ms:
            note = f"replies before the cut are not closer together than {allowed_ms:g} ms"
        elif not lost:
            note = "no echo was lost after the cut"
        else:
            resumed = f"; first reply {1000 * (after[0] - end):.0f} ms after healing" if len(after) else ""
            note = f"{len(during):,} replies after the command{resumed}"
            row |= judged(0.0, 1000 * (last - cut_at), nan, nan, allowed_ms)
        rows.append({**row, "note": note})
    return table_of(rows)


def order(echoes: pd.DataFrame, *, by: Sequence[str] = ("run_id",)) -> pd.DataFrame:
    """
    Replies that arrived after a reply to a later echo, of links whose delay became shorter meanwhile; none may.

    "unknown" unless the last tenth of the RTTs is shorter than the first by more than the mean time between
    replies: with less, no echo can overtake the one before.

    Parameters
    ----------
    echoes : DataFrame
        Table of this name, with `received_at_s` (ping -D).
    """
    rows = []
    for key, ends, group in groups(echoes, by):
        replies = answered(group).dropna(subset="received_at_s").sort_values("sequence")
        row = row_of(key, ends, "order", "replies", nan, "none", len(replies))
        tenth, at = ceil(len(replies) / 10), replies.received_at_s
        before, after = replies.rtt_ms.head(tenth).median(), replies.rtt_ms.tail(tenth).median()
        if len(at) and before - after > 1000 * (at.max() - at.min()) / len(at):
            overtaken = int((at < at.cummax().shift()).sum())
            note = f"RTT {quantity(before, 'ms')} at first, {quantity(after, 'ms')} at the end"
            row |= judged(0.0, float(overtaken), nan, nan, 0.0, note)
        rows.append(row if row["note"] else row | {"note": "the round trip did not become shorter"})
    return table_of(rows)


def _lost_between(group: pd.DataFrame, replies: pd.DataFrame, last: float, after: np.ndarray) -> int:
    """Lost echoes with a sequence number after the last reply of the cut, before the first one after it."""
    seen = replies[replies.received_at_s <= last].sequence
    resumed = replies[replies.received_at_s >= after[0]].sequence if len(after) else pd.Series(dtype="int64")
    start = seen.max() if len(seen) else -1
    stop = resumed.min() if len(resumed) else np.inf
    return int((group.lost.astype(bool) & (group.sequence > start) & (group.sequence < stop)).sum())
