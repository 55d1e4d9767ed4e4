"""
What a concurrent probe costs a load: `python benchmarks/kafka_probe_cost.py [--interval-s ...] [--leader 1 2]`.

Three brokers in three regions, 20, 40 and 60 ms apart, and a load at acks=all that the round trips limit: one producer
on the host of broker 1, which leads all of the load's partitions. The load runs with and without a probe, interleaved
(A B B A, ten seconds each), and the ratio of its records a second is printed with its interval, paired by blocks.

Each follower has one fetch at a time on its way to each leader. A record of the probe on the load's leader ends that
fetch, so a batch of the load that comes just after waits for the next one, up to a round trip later. On a leader of its
own, or with one replica, the probe ends no fetch of the load's. Each comparison takes about two minutes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import nullcontext
from itertools import combinations
from pathlib import Path

import pandas as pd

from wanbench.designs import interleaved
from wanbench.experiments.kafka_load import KafkaLoad
from wanbench.experiments.kafka_probe import KafkaProbe
from wanbench.ingest import kafka_load, kafka_probe
from wanbench.kafka import Cluster, unavailable
from wanbench.labs.local import LocalLab
from wanbench.links import LinkSettings
from wanbench.stats import compare_arms

BROKERS = ("west", "middle", "east")
DELAYS_MS = dict(zip(combinations(BROKERS, 2), (10.0, 20.0, 30.0), strict=True))
AUTOTUNED = ("socket.receive.buffer.bytes", "socket.send.buffer.bytes", "replica.socket.receive.buffer.bytes")
PLACEMENTS = {1: (1, 2, 3), 2: (2, 3, 1), 3: (3, 1, 2)}
LOAD = KafkaLoad(
    partitions=3,
    replication=3,
    placement=(PLACEMENTS[1],) * 3,
    topic_settings={"min.insync.replicas": 2},
    consumer_groups=0,
    batch_bytes=4_096,
    warmup_s=2.0,
    duration_s=6.0,
    drain=False,
    print_metrics=False,
)
ALONE, WITH_PROBE = "alone", "with a probe"


def main(arguments=None) -> int:
    """Compare the load with and without a probe, once for each interval and leader of the probe."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument(
        "--interval-s", type=float, nargs="+", default=[1.0, 0.2, 0.05], help="of the probes"
    )
    options.add_argument(
        "--leader", type=int, nargs="+", default=[1, 2], choices=PLACEMENTS, help="of the probes"
    )
    options.add_argument("--replication", type=int, default=3, help="of the probes (default: %(default)s)")
    options.add_argument("--blocks", type=int, default=3, help="blocks of four loads (default: %(default)s)")
    options.add_argument(
        "--fetch-min-bytes", type=int, default=1, help="replica.fetch.min.bytes of the brokers"
    )
    options.add_argument("--fetchers", type=int, default=1, help="num.replica.fetchers of the brokers")
    asked = options.parse_args(arguments)
    if reason := unavailable() or LocalLab.unavailable():
        print(reason, file=sys.stderr)
        return 1
    links = {
        pair: LinkSettings(delay_ms, rate_bps=1e9)
        for (a, b), delay_ms in DELAYS_MS.items()
        for pair in ((a, b), (b, a))
    }
    settings = dict.fromkeys(AUTOTUNED, -1)
    settings |= {"replica.fetch.min.bytes": asked.fetch_min_bytes, "num.replica.fetchers": asked.fetchers}
    print(f"{LOAD}; replica.fetch.min.bytes {asked.fetch_min_bytes}, num.replica.fetchers {asked.fetchers}")
    with (
        LocalLab(BROKERS, links) as lab,
        Cluster(lab, BROKERS, settings=settings, metrics=False),
        tempfile.TemporaryDirectory(prefix="wanbench-probe-cost-") as folder,
    ):
        measured(lab, Path(folder), "warm", None)
        for leader in asked.leader:
            for interval_s in asked.interval_s:
                probe = KafkaProbe(
                    interval_s=interval_s,
                    duration_s=600.0,
                    producers=8,
                    replication=asked.replication,
                    placement=(PLACEMENTS[leader][: asked.replication],),
                    drain_s=2.0,
                )
                compare(lab, Path(folder) / f"{leader}-{interval_s:g}", probe, asked.blocks)
    return 0


def compare(lab, folder, probe, blocks) -> None:
    """Print the load's rates in order, and their ratio with its interval."""
    leader = probe.placement[0][0]
    print(
        f"{1 / probe.interval_s:g} records/s, {probe.replication} replicas, broker {leader} leads", flush=True
    )
    rows = []
    for each in interleaved([ALONE, WITH_PROBE], blocks).itertuples(index=False):
        rate = measured(lab, folder, f"{each.order:04d}", probe if each.setting == WITH_PROBE else None)
        rows.append({"order": each.order, "block": each.block, "arm": each.setting, "records_per_s": rate})
    found = compare_arms(
        pd.DataFrame(rows),
        "records_per_s",
        arms=(ALONE, WITH_PROBE),
        block="block",
        time="order",
        unit="records/s",
    )
    print(f"  {found.means}", flush=True)


def measured(lab, folder, stem, probe) -> float:
    """Records a second that the load had in the log in the seconds that count."""
    host = lab.host(BROKERS[0])
    with probe.concurrently(host, host, folder, stem) if probe else nullcontext():
        LOAD.run(host, host, folder, stem)
    [times] = kafka_load.read_times(folder / f"kafka_load/{stem}.times.json")["loads"].to_dict("records")
    log = kafka_load.read_batches(folder / f"kafka_load/{stem}.batches.json")["batches"]
    counted = log[(log.at_s >= times["counts_from_s"]) & (log.at_s + 1 <= times["counts_until_s"])]
    rate = counted.records.sum() / counted.at_s.nunique()
    latency = ""
    if probe:
        records = kafka_probe.read(folder / f"kafka_probe/{stem}.probe.json")["probe_records"]
        during = records[records.intended_at_s.between(times["counts_from_s"], times["counts_until_s"])]
        latency = f"probe p50 {during.latency_ms.median():4.0f} ms end to end"
    print(f"  {stem} {ALONE if probe is None else WITH_PROBE:15}{rate:8.1f} records/s  {latency}", flush=True)
    return rate


if __name__ == "__main__":
    sys.exit(main())
