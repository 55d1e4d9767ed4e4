"""What went on beside the load of a trial: pings, background traffic, packets on the link."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .trial_window import KEY

SEGMENT_BYTES = 1448
"""Payload of a TCP segment of 1,500 bytes with timestamps, taken where iperf3 states none."""


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


def background(transfers: pd.DataFrame) -> pd.DataFrame:
    """
    Per test: measured_background_bps (payload towards the brokers) and background_packets_per_s.

    The packets are those that iperf3 states for UDP; for TCP the segments that the payload fills, which is a little
    too few.
    """
    sent = transfers[transfers.direction.fillna("forward") == "forward"]
    full = sent.mss_bytes.astype("float64").fillna(SEGMENT_BYTES)
    counted = sent.packets.astype("float64") / sent.duration_s
    packets = counted.where(sent.protocol == "UDP", sent.throughput_bps / 8 / full)
    rows = sent[KEY].assign(
        measured_background_bps=sent.throughput_bps.astype("float64"), background_packets_per_s=packets
    )
    return rows.groupby(KEY).sum(min_count=1).reset_index()


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
