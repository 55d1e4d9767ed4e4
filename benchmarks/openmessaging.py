"""
Compare the OpenMessaging Benchmark with our open-loop load: `WANBENCH_OMB=FOLDER python benchmarks/openmessaging.py`.

A cluster has three brokers in three regions, with RTTs of 20, 40 and 60 ms. Two engines in the first region run the
same workload in turn (A B, B A, ...): the benchmark with its local worker, and the `KafkaOpenLoop` that `to_open_loop`
makes of the same workload and driver. The workload is one topic of three partitions and three replicas, acks=all, one
consumer group, records of 1 kB, and the benchmark's settings for latency.

Prints quantiles of each run with their intervals, then for each quantile the ratio of the engines, paired by blocks; a
run is the unit. The engines count latency differently. The benchmark's end-to-end latency is in whole milliseconds from
the actual send; that of the open-loop load is from when a record was due. The benchmark's producer fills a batch for
one partition before it turns to the next, so at a low rate one leader at a time has all records; `--in-turn` removes
this difference. With several requests in flight, the benchmark's latency is more than twice ours, but not with
`--in-flight 1` (`OpenMessaging` says why). A run takes 15 to 50 s more than its warm-up and its measured time (whole
minutes). `--folder` keeps the files of all runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pandas as pd
from measured import record

from wanbench.measure.kafka import Cluster, unavailable
from wanbench.measure.labs.local import LocalLab
from wanbench.measure.links import LinkSettings
from wanbench.pages.private_vs_internet.two_links import paired_ratio
from wanbench.pages.tail_latency.design.openmessaging import OpenMessaging
from wanbench.pages.tail_latency.design.openmessaging_files import Driver, Workload
from wanbench.pages.tail_latency.design.openmessaging_open_loop import to_open_loop
from wanbench.pages.tail_latency.latencies import of_benchmark, of_open_loop
from wanbench.pages.tail_latency.quantiles import quantiles
from wanbench.read.ingest import kafka_open_loop, openmessaging

REGIONS = ("west", "middle", "east")
RTT_MS = {("west", "middle"): 20.0, ("middle", "east"): 40.0, ("west", "east"): 60.0}
RATE_BPS = 1e9
AT = (0.5, 0.95, 0.99, 0.999)
BENCHMARK, LIBRARY = "OpenMessaging", "KafkaOpenLoop"
DRIVER = Driver(
    topicConfig="min.insync.replicas=2\n",
    producerConfig="acks=all\nlinger.ms=1\nbatch.size=131072\n",
    consumerConfig="auto.offset.reset=earliest\nenable.auto.commit=false\nmax.partition.fetch.bytes=10485760\n",
)

IN_TURN = "partitioner.class=org.apache.kafka.clients.producer.RoundRobinPartitioner\n"


def main() -> int:
    """Measure both engines in turn, and print quantiles and ratios."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--blocks", type=int, default=2, help="blocks of two runs (default: %(default)s)")
    options.add_argument("--rate", type=int, default=200, help="records/s (default: %(default)s)")
    options.add_argument("--minutes", type=int, default=1, help="that count (default: %(default)s)")
    options.add_argument("--warmup", type=int, default=1, help="minutes before (default: %(default)s)")
    options.add_argument(
        "--in-turn", action="store_true", help="have the benchmark's records go to the partitions in turn, as ours do"
    )
    options.add_argument("--in-flight", type=int, default=5, help="requests of both engines (default: %(default)s)")
    options.add_argument("--folder", type=Path, help="for what the engines leave (default: a temporary one)")
    asked = options.parse_args()
    distribution = os.environ.get("WANBENCH_OMB")
    if reason := unavailable() or LocalLab.unavailable() or (not distribution and "WANBENCH_OMB is not set"):
        print(reason, file=sys.stderr)
        return 1
    workload = Workload(
        name="comparison",
        topics=1,
        partitionsPerTopic=3,
        messageSize=1_000,
        subscriptionsPerTopic=1,
        producersPerTopic=1,
        consumerPerSubscription=1,
        producerRate=asked.rate,
        testDurationMinutes=asked.minutes,
        warmupDurationMinutes=asked.warmup,
        useRandomizedPayloads=True,
        randomBytesRatio=1.0,
        randomizedPayloadPoolSize=1_000,
    )
    more = f"max.in.flight.requests.per.connection={asked.in_flight}\n" + IN_TURN * asked.in_turn
    driver = replace(DRIVER, producerConfig=DRIVER.producerConfig + more)
    engines = {
        BENCHMARK: OpenMessaging(distribution, workload, driver),
        LIBRARY: to_open_loop(workload, driver, ignoring=["partitioner.class"]),
    }
    links = {}
    for (a, b), rtt_ms in RTT_MS.items():
        links[a, b] = links[b, a] = LinkSettings(rtt_ms / 2, rate_bps=RATE_BPS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        with LocalLab(REGIONS, links) as lab, Cluster(lab, REGIONS):
            rows = [row for run in plan(asked.blocks) for row in measured(engines, lab.host(REGIONS[0]), folder, *run)]
    table = pd.DataFrame(rows)
    numbers = dict.fromkeys(("latency_ms", "low_ms", "high_ms"), "{:.0f}".format)
    print(table.to_string(index=False, formatters=numbers))
    for what in ("publish", "end to end"):
        for q in AT:
            some = table[(table.what == what) & (table["quantile"] == q)]
            by_engine = some.pivot(index="block", columns="engine", values="latency_ms")
            claim = f"The mean latency of “{LIBRARY}” is {{}} that of “{BENCHMARK}”"
            about = {"quantity": "ratio of latencies", "claim": claim, "unit": "times"}
            print(f"{what}, quantile {q:g}: {paired_ratio(by_engine[BENCHMARK], by_engine[LIBRARY], **about)}")
        medians = table[(table.what == what) & (table["quantile"] == 0.5)].groupby("engine").latency_ms.mean()
        name = f"median latency, {what}, of the open-loop load, {asked.in_flight} in flight"
        record(name, medians[LIBRARY], "ms", peer="OpenMessaging Benchmark", of_peer=medians[BENCHMARK])
    return 0


def plan(blocks: int):
    """Yield order, block and engine of each run: A B, B A, A B, ..."""
    for block in range(blocks):
        for place, engine in enumerate((BENCHMARK, LIBRARY)[:: 1 if block % 2 == 0 else -1]):
            yield 2 * block + place, block, engine


def measured(engines, host, folder, order, block, engine):
    """Make a run, and yield a row for each kind of latency and each quantile."""
    stem = f"{order:04d}"
    engines[engine].run(host, host, folder, stem)
    for what in ("publish", "end to end"):
        tail = tail_of(engine, what, folder, stem)
        found = quantiles(tail, AT)
        for q in AT:
            estimate = found[q]
            yield {
                "order": order, "block": block, "engine": engine, "what": what, "records": tail.n, "quantile": q,
                "latency_ms": estimate.estimate, "low_ms": estimate.low, "high_ms": estimate.high,
            }  # fmt: skip
        print(f"{order} {engine} {what}: {found.sentence}", flush=True)


def tail_of(engine, what, folder, stem):
    """Return the distribution of a run's latencies."""
    if engine == BENCHMARK:
        tables = openmessaging.read(folder / f"openmessaging/{stem}.result.json")
        return of_benchmark(tables["quantiles"], tables["benchmark_windows"], what=what)
    tables = kafka_open_loop.read(folder / f"kafka_open_loop/{stem}.load.json")
    return of_open_loop(tables["open_loop_histograms"], what=what, name="KafkaOpenLoop")


if __name__ == "__main__":
    sys.exit(main())
