"""
Judge emulated links: compare requested and delivered RTT, jitter, loss and rate; check cuts and the order of replies.
"""

from collections.abc import Callable
from math import ceil, hypot, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
import scipy

from wanbench.checks import check_choice
from wanbench.formatting import percent, quantity
from wanbench.methods.distance.inflation import order_interval
from wanbench.methods.result import Fields, exact_binomial, t_quantile

from . import verdicts
from .verdicts import Verdicts, answered, groups, judged, link_both_ways, link_of, or_unknown, row_of

LEVEL = 0.99  # Level of all intervals here: 1 in 100 accurate links lies outside by chance
# Allowed error of an RTT: scheduling on two hosts and ping's three digits, plus 1 % of the request
RTT_MS, RTT_SHARE = 1.0, 0.01
# Allowed error of jitter: a standard deviation of some hundred dependent echoes is known to about a tenth
JITTER_MS, JITTER_SHARE = 0.5, 0.1
RATE_SHARE = 0.05  # Allowed error of a rate: TCP fills a link to within a few per cent
CUT_MS = 100.0  # Allowed time from the command to the last reply, as a busy host needs time to start a command
CUT_BEFORE_S = 5.0  # Without replies in this time before a cut, missing replies after it are no evidence of the cut
IP_BYTES = 20
UDP_BYTES = 8
TCP_HEADER_BYTES = 52  # IPv4 20, TCP 20, timestamps 12
IPV6_MORE_BYTES = 20  # by which the header of IPv6 is longer than that of IPv4
FRAGMENT_BYTES = 1480  # IP payload of a packet of 1,500 bytes


def rtt(echoes: pd.DataFrame, links: pd.DataFrame, *, statistic: str = "median") -> Verdicts:
    """
    Judge whether the RTT is within 1 ms + 1 % of the sum of both requested one-way delays.

    Lost echoes and duplicate replies do not count.

    echoes, links: The tables of those names.
    statistic: "median", with an interval from order statistics (Hahn & Meeker 1991). Or "mean", to show that jitter
        adds no delay, with Student's interval for n (1 - r) / (1 + r) echoes, where r is the lag-1 autocorrelation
        (Bartlett 1935). The verdict on a mean is "outside" only if the whole interval is outside the limit, and
        "unknown" if only the estimate is.
    """
    mean = check_choice("statistic", statistic, ("median", "mean")) == "mean"

    def judge(values: np.ndarray, there: Any, back: Any) -> Fields:
        requested = float(there.delay_ms) + float(back.delay_ms)
        allowed = RTT_MS + RTT_SHARE * requested
        if not mean:
            low, high = order_interval(values, LEVEL)
            note = f"mean {quantity(values.mean(), 'ms')}"
            return judged(requested, float(np.median(values)), low, high, allowed, note)
        n, delivered = effective_n(values, of="mean"), float(values.mean())
        half = t_quantile(LEVEL, n - 1) * values.std(ddof=1) / sqrt(n)
        return _if_clear(judged(requested, delivered, delivered - half, delivered + half, allowed), n)

    name, limit = ("mean" if mean else "rtt"), f"{RTT_MS:g} ms + {percent(RTT_SHARE)}"
    return _of_echoes(echoes, links, name, limit, 2 if mean else 1, judge)


def jitter(echoes: pd.DataFrame, links: pd.DataFrame) -> Verdicts:
    """
    Judge whether the standard deviation of the RTT is within 0.5 ms + 10 % of the requested value.

    The requested value is the root of the sum of the squared jitters of both directions. The interval is the chi-square
    interval of a standard deviation of normal values. Jitter is autocorrelated, so n echoes count as n (1 - r^2) / (1 +
    r^2), where r is the lag-1 autocorrelation (Bartlett 1935). The verdict is "outside" only if the whole interval is
    outside the limit, and "unknown" if only the estimate is.
    """

    def judge(values: np.ndarray, there: Any, back: Any) -> Fields:
        requested = hypot(float(there.jitter_ms), float(back.jitter_ms))
        n, delivered, tail = effective_n(values), float(values.std(ddof=1)), (1 - LEVEL) / 2
        low, high = (delivered * sqrt((n - 1) / scipy.stats.chi2.ppf(q, n - 1)) for q in (1 - tail, tail))
        return _if_clear(judged(requested, delivered, low, high, JITTER_MS + JITTER_SHARE * requested), n)

    limit = f"{JITTER_MS:g} ms + {percent(JITTER_SHARE)}"
    return _of_echoes(echoes, links, "jitter", limit, 2, judge)


def _of_echoes(
    echoes: pd.DataFrame, links: pd.DataFrame, name: str, limit: str, minimum: int, judge: Callable[..., Fields]
) -> Verdicts:
    """
    Make one row per direction of a link.

    minimum: Number of answered echoes that a verdict needs.
    judge: Takes the RTTs of these echoes and the links of both directions, and returns columns of the row.
    """
    if minimum > 1:  # the statistic depends on autocorrelation
        verdicts.require_order(echoes, name)
    few = "no echo was answered" if minimum == 1 else "fewer than two echoes were answered"
    rows = []
    for key, group in groups("echoes", echoes):
        requests = link_both_ways(links, key)
        values = answered(group).rtt_ms.to_numpy(dtype=float)
        row = row_of(key, name, "ms", LEVEL, limit, len(values))
        if requests is not None and len(values) >= minimum:
            row |= judge(values, *requests)
        rows.append(or_unknown(row, requests, few))
    return Verdicts.of(rows)


def _if_clear(row: Fields, n: float) -> Fields:
    """
    Return the row; its verdict is "unknown" if the estimate is outside the limit but part of its interval is inside.
    """
    note = f"equivalent to {n:.0f} independent echoes"
    low, high = row["requested"] - row["allowed"], row["requested"] + row["allowed"]
    if row["verdict"] == verdicts.OUTSIDE and row["low"] <= high and row["high"] >= low:
        return row | {"verdict": verdicts.UNKNOWN, "note": f"too few echoes to tell: {note}"}
    return row | {"note": note}


def effective_n(values: np.ndarray, of: str = "variance") -> float:
    """
    Return the effective number of independent values, from the lag-1 autocorrelation r.

    The number is n (1 - r^2) / (1 + r^2) for a variance and n (1 - r) / (1 + r) for a mean, but at least 2. A negative
    r is treated as 0.

    of: "variance" or "mean".

    >>> effective_n(np.array([1.0, 2.0, 1.0, 2.0, 1.5])) <= 5
    True
    """
    centred = values - values.mean()
    total = centred @ centred
    r = max(0.0, float(centred[1:] @ centred[:-1] / total)) if total > 0 else 0.0
    r = r if of == "mean" else r * r
    return max(2.0, len(values) * (1 - r) / (1 + r))


def loss(echoes: pd.DataFrame, links: pd.DataFrame) -> Verdicts:
    """
    Judge whether the requested loss lies inside the 99 % interval of the share of lost echoes (Clopper & Pearson 1934).

    The requested share is 1 - (1 - loss forward)(1 - loss back). About 1 in 100 accurate links is outside by chance. A
    request of 0 allows no loss.
    """
    rows = []
    for key, group in groups("echoes", echoes):
        requests = link_both_ways(links, key)
        sent = group[~group.duplicate.astype(bool)]
        n, lost = len(sent), int(sent.lost.sum())
        row = row_of(key, "loss", "fraction", LEVEL, f"requested value inside the {percent(LEVEL)} interval", n)
        if requests is not None and n:
            there, back = (float(link.loss) for link in requests)
            requested = 1 - (1 - there) * (1 - back)
            low, high = exact_binomial(lost, n, LEVEL)
            row |= judged(requested, lost / n, low, high, note=f"{lost:,} of {n:,} echoes")
        rows.append(or_unknown(row, requests, "no echo was sent"))
    return Verdicts.of(rows)


def rate(transfers: pd.DataFrame, links: pd.DataFrame) -> Verdicts:
    """
    Judge whether the median rate at the receiver, headers included, is within 5 % of the link's rate limit.

    A link's limit applies to whole packets, but iperf3 counts payload. So the throughput of each transfer is multiplied
    by (payload + headers) / payload. Headers are 52 bytes per TCP segment (IPv4, TCP, timestamps), or 28 bytes per UDP
    datagram and 20 more for each fragment after the first. With IPv6 they are 20 bytes longer.
    Directions without a rate limit have no row.
    """
    rows = []
    for key, group in groups("transfers", verdicts.by_sender(transfers[transfers.throughput_bps.notna()])):
        link = link_of(links, key)
        if link is not None and pd.isna(link.rate_bps):
            continue
        values = np.array([wire_bps(row) for row in group.itertuples(index=False)])
        values = values[~np.isnan(values)]
        row = row_of(key, "rate", "bit/s", LEVEL, percent(RATE_SHARE), len(values))
        if link is not None and len(values):
            requested = float(link.rate_bps)
            low, high = order_interval(values, LEVEL)
            note = f"payload {quantity(float(group.throughput_bps.median()), 'bit/s')}, headers added"
            row |= judged(requested, float(np.median(values)), low, high, RATE_SHARE * requested, note)
        rows.append(or_unknown(row, link, "no transfer reports its payload per packet"))
    return Verdicts.of(rows)


def wire_bps(row: Any) -> float:
    """Compute a transfer's throughput with its TCP or UDP and IP headers; NaN if the payload per packet is unknown."""
    udp = row.protocol == "UDP"
    payload = row.block_bytes if udp else row.mss_bytes
    if pd.isna(payload) or payload <= 0:
        return nan
    header = TCP_HEADER_BYTES
    if udp:
        header = UDP_BYTES + IP_BYTES * ceil((payload + UDP_BYTES) / FRAGMENT_BYTES)
    header += IPV6_MORE_BYTES if str(getattr(row, "ip_version", "")) == "6" else 0
    return row.throughput_bps * (payload + header) / payload


def cut(echoes: pd.DataFrame, cuts: pd.DataFrame) -> Verdicts:
    """
    Judge whether the last reply came within 100 ms of the command that cut a link.

    The verdict is "unknown" unless replies arrived in the 5 s before the cut, at most 100 ms apart (median), and an
    echo was lost after the cut. Otherwise missing replies are no evidence of the cut.

    echoes: The table of this name, with `received_at_s` (ping -D).
    cuts: One row per cut: run_id, from_region, to_region, cut_at_s (Unix time of the command), healed_at_s (null if
        never healed).
    """
    rows = []
    for event in cuts.itertuples(index=False):
        key = (event.run_id, event.from_region, event.to_region)
        group = verdicts.matching(echoes, key)
        cut_at, healed_at = float(event.cut_at_s), float(event.healed_at_s)
        end = np.inf if np.isnan(healed_at) else healed_at
        replies = answered(group).dropna(subset="received_at_s").sort_values("received_at_s")
        at = replies.received_at_s.to_numpy(dtype=float)
        before = at[(at >= cut_at - CUT_BEFORE_S) & (at <= cut_at)]
        during, after = at[(at > cut_at) & (at < end)], at[at >= end]
        last = float(during[-1]) if len(during) else cut_at
        lost = _lost_between(group, replies, last, after)
        row = row_of(key, "cut", "ms", nan, f"{CUT_MS:g} ms", lost)
        if len(before) < 2 or np.median(np.diff(before)) * 1000 > CUT_MS:
            note = f"replies before the cut are more than {CUT_MS:g} ms apart"
        elif not lost:
            note = "no echo was lost after the cut"
        else:
            resumed = f"; first reply {1000 * (after[0] - end):.0f} ms after healing" if len(after) else ""
            note = f"{len(during):,} replies after the command{resumed}"
            row |= judged(0.0, 1000 * (last - cut_at), nan, nan, CUT_MS)
        rows.append({**row, "note": note})
    return Verdicts.of(rows)


def order(echoes: pd.DataFrame) -> Verdicts:
    """
    Judge whether replies stayed in order on links whose delay became shorter: no reply may overtake an earlier one.

    The verdict is "unknown" unless the last tenth of the RTTs is shorter than the first tenth by more than the mean
    time between replies: otherwise no reply could overtake another.

    echoes: The table of this name, with `received_at_s` (ping -D).
    """
    verdicts.require_order(echoes, "order")
    rows = []
    for key, group in groups("echoes", echoes):
        replies = answered(group).dropna(subset="received_at_s").sort_values("sequence")
        row = row_of(key, "order", "replies", nan, "0 replies", len(replies))
        tenth, at = ceil(len(replies) / 10), replies.received_at_s
        before, after = replies.rtt_ms.head(tenth).median(), replies.rtt_ms.tail(tenth).median()
        if len(at) and before - after > 1000 * (at.max() - at.min()) / len(at):
            overtaken = int((at < at.cummax().shift()).sum())
            note = f"RTT {quantity(before, 'ms')} at first, {quantity(after, 'ms')} at the end"
            row |= judged(0.0, float(overtaken), nan, nan, 0.0, note)
        rows.append(or_unknown(row, row, "the round trip did not become shorter"))
    return Verdicts.of(rows)


def _lost_between(group: pd.DataFrame, replies: pd.DataFrame, last: float, after: np.ndarray) -> int:
    """
    Count the echoes that a cut lost.

    last: Unix time of the last reply before the link was healed.
    after: Unix times of the replies after it was healed.
    """
    seen = replies[replies.received_at_s <= last].sequence
    resumed = replies[replies.received_at_s >= after[0]].sequence if len(after) else pd.Series(dtype="int64")
    start = seen.max() if len(seen) else -1
    stop = resumed.min() if len(resumed) else np.inf
    return int((group.lost.astype(bool) & (group.sequence > start) & (group.sequence < stop)).sum())
