"""
Compute upper limits of the throughput of a cluster with replicas and clients in several regions.

- link: Records cross regions to their leaders, to followers and to consumers. The link that would be full first limits
  the payload. With gateways, all links that leave a region share the rate of its gateway.
- window: Producers have a limited number of unacknowledged bytes in flight to each leader.
- replication: Followers have a limited number of bytes in flight from each leader.

Nothing is fitted to measurements. `wanbench.methods.trials.limits` has the limits for producers in one region and all
brokers in another.
"""

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pandas as pd

from wanbench.methods.result import Fields
from wanbench.methods.tcp.models import MSS_BYTES, advertised_window_bytes
from wanbench.methods.trials.limits import BITS, IN_FLIGHT, MAX_REQUEST_BYTES, PACKET_BYTES

Numbers = dict[str, float]
Between = Callable[[str, str], float]  # A number for two regions.
WIRE = PACKET_BYTES / MSS_BYTES
NEAR_MS = 0.2  # RTT within a region: shorter than any link's, but not zero.
# Kafka's defaults of broker settings that limit throughput.
DEFAULTS = {
    "socket.receive.buffer.bytes": 102_400,
    "replica.socket.receive.buffer.bytes": 65_536,
    "num.replica.fetchers": 1,
    "replica.fetch.max.bytes": 1 << 20,
    "replica.fetch.response.max.bytes": 10 << 20,
}


def connection_window_bytes(receive_buffer_bytes: float) -> float:
    """Return the TCP window that a requested receive buffer allows (Linux doubles the request); infinite for -1."""
    return inf if receive_buffer_bytes < 0 else float(advertised_window_bytes(2 * receive_buffer_bytes))


def produced_bytes_per_s(
    request: float, in_flight: float, leader_s: float, replicated_s: float, window: float
) -> float:
    """
    Compute the maximum rate from one producer to one leader, in bytes/s.

    The producer has `in_flight` requests of `request` bytes in flight. The leader answers each after the RTT
    (`leader_s`) and the time to replicate it (`replicated_s`, 0 unless acks=all). It processes one request of a
    connection at a time (Kafka protocol guide, "Network"), so at most one request passes per `replicated_s`. The
    connection carries at most `window` bytes per RTT.

    >>> produced_bytes_per_s(1000.0, 5, 0.1, 0.1, inf)
    10000.0
    """
    in_turn = request / replicated_s if replicated_s else inf
    return min(in_flight * request / (leader_s + replicated_s), in_turn, window / leader_s)


def fetched_bytes_per_s(partitions: int, fetchers: float, rtt_s: float, window: float, fetch: float, answer: float):
    """
    Compute the maximum rate, in bytes/s, at which a follower copies this number of `partitions` from one leader.

    Each of the `fetchers` threads has its own connection, of at most `window` bytes per RTT, and one fetch in flight,
    whose answer has at most `fetch` bytes per partition and `answer` bytes in all. A thread without partitions opens no
    connection.

    >>> round(fetched_bytes_per_s(2, 4, 0.1, 83_886, 1_048_576, 10_485_760))  # two connections
    1677720
    """
    connections = min(fetchers, partitions)
    return connections * min(partitions / connections * fetch, answer, window) / rtt_s


def region_limits(
    trial: Fields, placed: pd.DataFrame, links: pd.DataFrame, *, broker_settings: Fields | None = None
) -> dict[str, float]:
    """
    Compute the highest payload rate that each of "link", "window" and "replication" allows a trial, in bit/s.

    A rate is infinite if there is no limit.

    trial: A row of `TrialRates.rates`, in which None stands for a setting that was not changed. Clients are assumed to
        be in the first `client_regions` regions of the lab.
    placed: The trial's rows of table placements.
    links: Table links.
    broker_settings: Settings, by their names in Kafka, that replace Kafka's defaults (`DEFAULTS`).
    """
    settings = DEFAULTS | {
        name: float(value) for name, value in (broker_settings or {}).items() if name in DEFAULTS and value is not None
    }
    pairs = {(row.from_region, row.to_region): row for row in links[links.run_id == trial["run_id"]].itertuples()}
    regions = list(dict.fromkeys(region for pair in pairs for region in pair))
    clients = regions[: int(trial["client_regions"])] if trial["client_regions"] else None
    senders = _spread(int(trial["producers"]), clients or [trial["from_region"]])
    readers = _spread(int((trial["consumers"] or 0) * (trial["consumer_groups"] or 0)), clients or [trial["to_region"]])
    packed = trial["record_bytes"] * trial["records_per_s"] / trial["log_bytes_per_s"]
    packed = packed if np.isfinite(packed) and packed > 0 else 1.0

    def rtt_s(a: str, b: str) -> float:
        if a == b:
            return NEAR_MS / 1000
        if trial["delay_ms"] is not None and {a, b} == {trial["from_region"], trial["to_region"]}:
            return 2 * trial["delay_ms"] / 1000
        return sum(pairs[pair].delay_ms for pair in ((a, b), (b, a)) if pair in pairs) / 1000

    copies = _copies(placed, senders, readers, trial)
    if trial["gateway_bps"] is None:
        allowed = [_rate(trial, pairs[pair], pair) / share for pair, share in copies.items() if pair in pairs]
    else:
        leaving = [
            sum(share for pair, share in copies.items() if pair[0] == region and pair in pairs) for region in regions
        ]
        allowed = [trial["gateway_bps"] / share for share in leaving if share]
    link = min(allowed, default=inf)
    return {
        "link": link * packed / WIRE,
        "window": _window(trial, placed, senders, settings, rtt_s) * packed,
        "replication": _replication(placed, settings, rtt_s) * packed,
    }


def _rate(trial: Fields, link: Any, pair: tuple[str, str]) -> float:
    own = {trial["from_region"], trial["to_region"]} == set(pair) and trial["rate_bps"] is not None
    rate = trial["rate_bps"] if own else link.rate_bps
    return inf if rate is None or pd.isna(rate) else float(rate)


def _spread(n: int, regions: list[str]) -> dict[str, float]:
    """Return the number of clients in each region if `n` clients are assigned to `regions` in turn."""
    return {region: len(range(k, n, len(regions))) for k, region in enumerate(regions) if k < n}


def _copies(placed: pd.DataFrame, senders: Numbers, readers: Numbers, trial: Fields) -> dict[tuple[str, str], float]:
    """Return the bytes that each link carries per byte appended to the log, by (from, to)."""
    copies: dict[tuple[str, str], float] = {}

    def add(a: str, b: str, share: float) -> None:
        if a != b and share:
            copies[a, b] = copies.get((a, b), 0.0) + share

    partitions = list(placed.groupby("partition"))
    n_senders, n_readers, weight = sum(senders.values()), sum(readers.values()), 1 / len(partitions)
    for _, replicas in partitions:
        leader = replicas.region[replicas.leads].iloc[0] if replicas.leads.any() else replicas.region.iloc[0]
        for region, n in senders.items():
            add(region, leader, weight * n / n_senders)
        for region in replicas.region[~replicas.leads]:
            add(leader, region, weight)
        for region, n in readers.items():
            near = trial["client_rack"] is not None and region in set(replicas.region)
            add(leader, region, 0.0 if near else weight * trial["consumer_groups"] * n / n_readers)
    return copies


def _window(trial: Fields, placed: pd.DataFrame, senders: Numbers, settings: Numbers, rtt_s: Between) -> float:
    """Return the bit/s that all producers together can send to all leaders, by `produced_bytes_per_s`."""
    window = connection_window_bytes(settings["socket.receive.buffer.bytes"])
    in_flight = trial["max_in_flight"] or IN_FLIGHT
    total = 0.0
    for _, led in placed[placed.leads].groupby("broker"):
        leader = led.region.iloc[0]
        followers = placed[placed.partition.isin(led.partition) & ~placed.leads].region.unique()
        waits = trial["acks"] == "all" and len(followers) > 0
        replicated_s = max(rtt_s(leader, region) for region in followers) if waits else 0.0
        # A full request has one batch per partition of the leader, and at most max.request.size bytes.
        request = trial["batch_bytes"] * max(min(len(led), MAX_REQUEST_BYTES // trial["batch_bytes"]), 1.0)
        for region, n in senders.items():
            total += n * produced_bytes_per_s(request, in_flight, rtt_s(region, leader), replicated_s, window)
    return BITS * total


def _replication(placed: pd.DataFrame, settings: Numbers, rtt_s: Between) -> float:
    """Return the bit/s of the whole topic at which the slowest pair of leader and follower just keeps up."""
    window = connection_window_bytes(settings["replica.socket.receive.buffer.bytes"])
    sizes = (settings["replica.fetch.max.bytes"], settings["replica.fetch.response.max.bytes"])
    led = placed[placed.leads][["partition", "broker", "region"]]
    pairs = placed[~placed.leads].merge(led, on="partition", suffixes=("", "_of_leader"))
    slowest = inf
    for (_, _), part in pairs.groupby(["broker", "broker_of_leader"]):
        rtt = rtt_s(part.region.iloc[0], part.region_of_leader.iloc[0])
        allowed = fetched_bytes_per_s(len(part), settings["num.replica.fetchers"], rtt, window, *sizes)
        slowest = min(slowest, allowed * placed.partition.nunique() / len(part))
    return BITS * slowest
