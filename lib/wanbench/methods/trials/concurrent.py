"""
Summarise what was measured during a trial's load: pings, background traffic, packets on the link.

The counted seconds of a trial are those in which all producers ran after their warm-up (module `counted_seconds`).
"""

import numpy as np
import pandas as pd

from wanbench.methods.lab import utilisation
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.tcp.models import MSS_BYTES

MAX_START_DELAY_S = 1.0  # iperf3 gives its start in whole seconds, rounded down.
MIN_ECHOES = 2  # Minimum number of echoes in the counted seconds; a single echo does not show how the RTT varied.
UDP_HEADERS_BYTES = 28  # IPv4 20, UDP 8.
TCP_HEADERS_BYTES = 52  # IPv4 20, TCP 20, timestamps 12.
LINK_COLUMNS = ["rx_packets_per_s", "tx_packets_per_s", "rx_utilisation", "tx_utilisation"]


def round_trips(echoes: pd.DataFrame) -> pd.DataFrame:
    """
    Return, for each test, n_echoes, and min, mean, max and mdev of the RTTs in ms.

    mdev is defined as in ping: the standard deviation with n, not n - 1, in the denominator. Duplicate replies do not
    count.

    echoes: The table of that name.
    """
    groups = echoes[~echoes.duplicate].groupby(KEY)
    rtts = {f"{name}_rtt_ms": ("rtt_ms", name) for name in ("min", "mean", "max")}
    result = groups.agg(n_echoes=("lost", "size"), **rtts)
    result["mdev_rtt_ms"] = groups.rtt_ms.std(ddof=0)
    return result.reset_index()


def harmonic_rtts(echoes: pd.DataFrame, spans: pd.DataFrame) -> pd.DataFrame:
    """
    Return, for each test, harmonic_rtt_ms: the harmonic mean of the RTTs of echoes received in the counted seconds.

    All echoes are used if fewer than two were received in these seconds, or if times are unknown. Requests in a closed
    loop complete once per round trip, so their rate is proportional to the mean of 1/RTT, which exceeds 1/(mean RTT).

    echoes: The table of that name.
    spans: As in `link_load`.
    """
    known = echoes[~echoes.duplicate & echoes.rtt_ms.notna()].merge(spans[[*KEY, "start_s", "end_s"]], on=KEY)
    inside = known[known.received_at_s.between(known.start_s, known.end_s)].groupby(KEY).rtt_ms
    counted = inside.agg(_harmonic_mean).where(inside.size() >= MIN_ECHOES)
    every = known.groupby(KEY).rtt_ms.agg(_harmonic_mean)
    return counted.reindex(every.index).fillna(every).rename("harmonic_rtt_ms").reset_index()


def _harmonic_mean(values: pd.Series) -> float:
    if values.empty:
        return np.nan
    with np.errstate(divide="ignore"):
        return 1.0 / np.mean(1.0 / values.to_numpy())


def background(transfers: pd.DataFrame, intervals: pd.DataFrame, spans: pd.DataFrame) -> pd.DataFrame:
    """
    Compute the background traffic of each test in the counted seconds.

    transfers, intervals: The tables of those names.
    spans: As in `link_load`.

    Returns DataFrame: measured_background_bps (payload towards the brokers, while the traffic was running),
        background_packets_per_s, background_wire_bps (with IP and UDP or TCP headers), and background_covered: the
        largest share of the counted seconds that the traffic can have covered, as iperf3 rounds its start to seconds.
        Without times of iperf3's intervals, background_covered is null and the other columns describe the whole
        transfer.
    """
    sent = transfers[transfers.direction.fillna("forward") == "forward"]
    udp = sent.protocol == "UDP"
    whole = sent[KEY].assign(
        measured_background_bps=sent.throughput_bps.astype("float64"),
        _payload=sent.block_bytes.where(udp, sent.mss_bytes).astype("float64").fillna(MSS_BYTES),
        _headers=np.where(udp, UDP_HEADERS_BYTES, TCP_HEADERS_BYTES),
    )
    groups = whole.groupby(KEY)
    result = groups[["_payload", "_headers"]].mean()
    result["measured_background_bps"] = groups.measured_background_bps.sum(min_count=1)
    forward = intervals[intervals.direction == "forward"]
    timed = utilisation.background(sent, forward).merge(spans, on=KEY, suffixes=("_of", ""))
    overlap_s = np.minimum(timed.end_s_of, timed.end_s) - np.maximum(timed.start_s_of, timed.start_s)
    timed = timed.assign(_s=np.maximum(overlap_s, 0.0))
    timed = timed.assign(_bits=timed._s * timed.background_bps).groupby(KEY)
    began, over = timed.start_s_of.min(), timed.end_s_of.max() + MAX_START_DELAY_S
    start, end = timed.start_s.first(), timed.end_s.first()
    covered = (np.minimum(over, end) - np.maximum(began, start)) / (end - start)
    result["background_covered"] = covered.clip(lower=0.0, upper=1.0)
    inside = timed._bits.sum() / timed._s.sum().where(timed._s.sum() > 0)
    result["measured_background_bps"] = inside.reindex(result.index).fillna(result.measured_background_bps)
    result["background_packets_per_s"] = result.measured_background_bps / 8 / result._payload
    headers_bps = 8 * result._headers * result.background_packets_per_s
    result["background_wire_bps"] = result.measured_background_bps + headers_bps
    return result.drop(columns=["_payload", "_headers"]).reset_index()


def link_load(samples: pd.DataFrame, spans: pd.DataFrame) -> pd.DataFrame:
    """
    Compute the load of the link between producers and brokers in the counted seconds of each test.

    samples: Table link_samples: counters since the lab opened.
    spans: Per test: KEY (run_id, test_id, attempt), from_region, to_region, start_s, end_s. All samples of a test are
        used if fewer than two lie between start_s and end_s.

    Returns DataFrame: KEY; rx_packets_per_s (delivered to the brokers' region), tx_packets_per_s (from that region);
        rx_utilisation and tx_utilisation (bits delivered, headers included, over the link's rate).
    """
    merged = samples.drop(columns=["from_region", "to_region"]).merge(spans, on=KEY)
    names = ("link_from", "link_to", "from_region", "to_region")
    ends = {name: merged[name].to_numpy(dtype=object) for name in names}
    ways = {
        "rx": (ends["link_to"] == ends["to_region"]) & (ends["link_from"] == ends["from_region"]),
        "tx": (ends["link_to"] == ends["from_region"]) & (ends["link_from"] == ends["to_region"]),
    }
    at_s, rate_bps = (merged[name].to_numpy(dtype="float64") for name in ("at_s", "rate_bps"))
    inside = merged.at_s.between(merged.start_s, merged.end_s).to_numpy()
    counters = [merged[name].to_numpy() for name in ("packets_delivered", "bytes_delivered")]
    rows = []
    for key, part in sorted(merged.groupby(KEY).indices.items()):
        row = dict(zip(KEY, key, strict=True))
        for way, of_way in ways.items():
            own = part[of_way[part]]
            within = own[inside[own]]
            own = within if len(within) > 1 else own
            own = own[np.argsort(at_s[own])]
            if len(own) < 2 or at_s[own[-1]] <= at_s[own[0]]:
                continue
            first, last = own[0], own[-1]
            spent_s = at_s[last] - at_s[first]
            packets, size = (float(each[last] - each[first]) for each in counters)
            row[f"{way}_packets_per_s"] = packets / spent_s
            row[f"{way}_utilisation"] = 8 * size / spent_s / rate_bps[first]
        rows.append(row)
    return pd.DataFrame(rows, columns=[*KEY, *LINK_COLUMNS]).astype(dict.fromkeys(LINK_COLUMNS, "float64"))
