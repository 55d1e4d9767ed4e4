"""What went on beside the load of a trial: pings, background traffic, packets on the link, probes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import hmean

from ...formatting import count
from ..lab import utilisation
from .window import KEY

SEGMENT_BYTES = 1448
"""Payload of a TCP segment of 1,500 bytes with timestamps, taken where iperf3 states none."""
STARTED_WITHIN_S = 1.0
FEWEST_ECHOES = 2
"""In the counted seconds; one echo says nothing of how the RTT varied."""
UDP_HEADERS_BYTES, TCP_HEADERS_BYTES = 28, 52
"""With IPv4's 20; TCP's with timestamps."""


def round_trips(echoes: pd.DataFrame) -> pd.DataFrame:
    """
    Per test: n_echoes, n_lost_echoes, and min, mean, max and mdev of the RTTs in ms.

    mdev is what ping calls so: the root of the mean square less the square of the mean, over the echoes of the test
    (the standard deviation with n, not n - 1, below). Second replies to an echo do not count.
    """
    first = echoes[~echoes.duplicate]
    groups = first.groupby(KEY)
    found = pd.DataFrame({"n_echoes": groups.size(), "n_lost_echoes": groups.lost.sum().astype("int64")})
    rtt = groups.rtt_ms
    for name in ("min", "mean", "max"):
        found[f"{name}_rtt_ms"] = getattr(rtt, name)()
    found["mdev_rtt_ms"] = rtt.std(ddof=0)
    return found.reset_index()


def harmonic_rtts(echoes: pd.DataFrame, ends: pd.DataFrame) -> pd.DataFrame:
    """
    Per test: harmonic_rtt_ms, the harmonic mean of the RTTs of echoes received in the counted seconds.

    Of all echoes where fewer than two were, or no echo says when. A request that waits for its answer passes once per
    round trip, so the rate of such requests goes with the mean of 1/RTT, which is more than 1 over the mean RTT.

    Parameters
    ----------
    echoes : DataFrame
        The table of that name.
    ends : DataFrame
        As in `on_the_link`.
    """
    known = echoes[~echoes.duplicate & echoes.rtt_ms.notna()].merge(ends[[*KEY, "start_s", "end_s"]], on=KEY)
    inside = known[known.received_at_s.between(known.start_s, known.end_s)].groupby(KEY).rtt_ms
    counted = inside.agg(hmean).where(inside.size() >= FEWEST_ECHOES)
    every = known.groupby(KEY).rtt_ms.agg(hmean)
    return counted.reindex(every.index).fillna(every).rename("harmonic_rtt_ms").reset_index()


def background(transfers: pd.DataFrame, intervals: pd.DataFrame, ends: pd.DataFrame) -> pd.DataFrame:
    """
    Per test, in the counted seconds: measured_background_bps (payload towards the brokers), background_packets_per_s,
    background_wire_bps (with IP and UDP or TCP headers), and background_covered, the part of these seconds in which it
    went on (null where iperf3's intervals do not say when they were; the other figures are then of its whole time).

    The rate is that while it went on. iperf3 gives its start in whole seconds, rounded down, so it may have gone on for
    up to a second more than these say: it is taken to.

    Parameters
    ----------
    transfers, intervals : DataFrame
        The tables of those names.
    ends : DataFrame
        As in `on_the_link`.
    """
    sent = transfers[transfers.direction.fillna("forward") == "forward"]
    whole = sent[KEY].assign(
        measured_background_bps=sent.throughput_bps.astype("float64"),
        _payload=np.where(sent.protocol == "UDP", sent.block_bytes, sent.mss_bytes),
        _headers=np.where(sent.protocol == "UDP", UDP_HEADERS_BYTES, TCP_HEADERS_BYTES),
    )
    whole["_payload"] = whole._payload.astype("float64").fillna(SEGMENT_BYTES)
    groups = whole.groupby(KEY)
    found = groups[["_payload", "_headers"]].mean()
    found["measured_background_bps"] = groups.measured_background_bps.sum(min_count=1)
    own = intervals[intervals.direction == "forward"]
    timed = utilisation.background(sent, own).merge(ends, on=KEY, suffixes=("_of", ""))
    both_s = np.minimum(timed.end_s_of, timed.end_s) - np.maximum(timed.start_s_of, timed.start_s)
    timed = timed.assign(_s=np.maximum(both_s, 0.0))
    timed = timed.assign(_bits=timed._s * timed.background_bps).groupby(KEY)
    began, over = timed.start_s_of.min(), timed.end_s_of.max() + STARTED_WITHIN_S
    start, end = timed.start_s.first(), timed.end_s.first()
    covered = (np.minimum(over, end) - np.maximum(began, start)) / (end - start)
    found["background_covered"] = covered.clip(lower=0.0, upper=1.0)
    inside = timed._bits.sum() / timed._s.sum().where(timed._s.sum() > 0)
    found["measured_background_bps"] = inside.reindex(found.index).fillna(found.measured_background_bps)
    found["background_packets_per_s"] = found.measured_background_bps / 8 / found._payload
    headers = 8 * found._headers * found.background_packets_per_s
    found["background_wire_bps"] = found.measured_background_bps + headers
    return found.drop(columns=["_payload", "_headers"]).reset_index()


def probes(rows: pd.DataFrame) -> pd.DataFrame:
    """Per test: probe_records_per_s, of all probes that started."""
    began = rows[rows.error.isna()]
    rates = began[KEY].assign(probe_records_per_s=1 / began.interval_s.astype("float64"))
    return rates.groupby(KEY, as_index=False).sum()


def cautions(rates: pd.DataFrame) -> list[str]:
    """Of trials with a probe."""
    n = int(rates.probe_records_per_s.notna().sum())
    said = f"in {count(n, 'trial')} a probe ran beside the load and slows it: they compare with others that had one"
    return [said] if n else []


def on_the_link(samples: pd.DataFrame, ends: pd.DataFrame) -> pd.DataFrame:
    """
    Per test: what the link carried a second in the counted seconds, and how full it was.

    `rx_packets_per_s` arrived at the brokers' region from the producers', `tx_packets_per_s` the other way;
    `rx_utilisation` and `tx_utilisation` are bits delivered (headers included) over the link's rate;
    `queue_dropped_packets` were dropped because a queue was full, both ways.

    Parameters
    ----------
    samples : DataFrame
        Table link_samples: counters since the lab opened.
    ends : DataFrame
        Per test: KEY, from_region, to_region, start_s, end_s. Of a test with fewer than two samples between these, all
        samples are taken.
    """
    rows = samples.drop(columns=["from_region", "to_region"]).merge(ends, on=KEY)
    found = []
    for key, part in rows.groupby(KEY):
        row = dict(zip(KEY, key, strict=True)) | {"queue_dropped_packets": 0}
        for way, ends_at in (("rx", "to_region"), ("tx", "from_region")):
            start_at = "from_region" if ends_at == "to_region" else "to_region"
            own = part[(part.link_to == part[ends_at]) & (part.link_from == part[start_at])]
            inside = own[own.at_s.between(own.start_s, own.end_s)]
            own = (inside if len(inside) > 1 else own).sort_values("at_s")
            if len(own) < 2 or own.at_s.iloc[-1] <= own.at_s.iloc[0]:
                continue
            passed = own.iloc[-1][["at_s", "packets_delivered", "bytes_delivered", "packets_queue_dropped"]]
            passed = passed - own.iloc[0][passed.index]
            row[f"{way}_packets_per_s"] = passed.packets_delivered / passed.at_s
            rate = float(own.rate_bps.iloc[0]) if pd.notna(own.rate_bps.iloc[0]) else np.nan
            row[f"{way}_utilisation"] = 8 * passed.bytes_delivered / passed.at_s / rate
            row["queue_dropped_packets"] += int(passed.packets_queue_dropped)
        found.append(row)
    names = ["rx_packets_per_s", "tx_packets_per_s", "rx_utilisation", "tx_utilisation"]
    frame = pd.DataFrame(found, columns=[*KEY, *names, "queue_dropped_packets"])
    return frame.astype(dict.fromkeys(names, "float64"))
