"""
Measure what the library adds to the cost of a Kafka load: `python benchmarks/kafka_load.py`.

A cluster has three brokers in three regions; a producer in a fourth region is 20 ms from each (one way). The same load
runs in three ways, interleaved (A B C C B A ...):

- by `KafkaLoad`;
- typed by hand with the class archive: Kafka's perf tool starts directly in the region's namespace, with its arguments
  written here and the same flags of Java as by `KafkaLoad`, which include the archive of classes that this library
  makes;
- typed by hand in plain Java: the same without the archive, as on a machine that never had this library.

The throughput of the first over that of the second is what the library costs. The first over the third can be more than
1, because with the archive Java loads its classes sooner.

The throughput is what the tool prints at its end. Batches are so small that little but the requests in flight per RTT
limits it, so that repeated loads differ little; `--batch-bytes` with larger batches shows what the processors add. The
benchmark prints both ratios with their intervals, paired by blocks. It exits with 1 if the whole interval of what the
library costs is beyond the target of 3 %. A block of six loads takes more than a minute.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
from measured import record

from wanbench.designs import interleaved
from wanbench.measure.experiments.kafka_load import KafkaLoad
from wanbench.measure.kafka import Cluster, unavailable
from wanbench.measure.labs.local import LocalLab
from wanbench.measure.links import LinkSettings
from wanbench.pages.private_vs_internet.two_links import more_or_less, paired_ratio
from wanbench.read.ingest import kafka_load as reader

TARGET = 0.03
HOME, BROKERS = "home", ("west", "middle", "east")
DELAY_MS = 20.0
RATE_BPS = 1e9
PRODUCER = "org.apache.kafka.tools.ProducerPerformance"
HAND, PLAIN, LIBRARY = "typed by hand, class archive", "typed by hand, plain java", "KafkaLoad"
ARCHIVE_FLAGS = ("-XX:SharedArchiveFile=", "-Xlog:cds")
"""How the flags begin that have Java use the archive of classes."""


def main() -> int:
    """Measure, and print both ratios; return 1 if the target is missed."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--blocks", type=int, default=4, help="blocks of six loads (default: %(default)s)")
    options.add_argument("--records", type=int, default=60_000, help="of each load (default: %(default)s)")
    options.add_argument("--batch-bytes", type=int, default=16_384, help="batch.size (default: %(default)s)")
    options.add_argument("--seed", type=int, default=0, help="of the order (default: %(default)s)")
    asked = options.parse_args()
    if reason := unavailable() or LocalLab.unavailable():
        print(reason, file=sys.stderr)
        return 1
    load = KafkaLoad(
        records=asked.records,
        duration_s=None,
        batch_bytes=asked.batch_bytes,
        linger_ms=5,
        consumer_groups=0,
        print_metrics=False,
    )
    print(load)
    regions = [HOME, *BROKERS]
    links = dict.fromkeys(permutations(regions, 2), LinkSettings(DELAY_MS, rate_bps=RATE_BPS))
    plan = interleaved([HAND, PLAIN, LIBRARY], asked.blocks, seed=asked.seed)
    settings = {"socket.receive.buffer.bytes": -1, "socket.send.buffer.bytes": -1}
    with LocalLab(regions, links) as lab, Cluster(lab, BROKERS, settings=settings) as cluster:
        rows = list(measured(plan, load, lab, cluster))
    loads = pd.DataFrame(rows)
    by_arm = loads.pivot(index="block", columns="arm", values="throughput_bps")
    for arm in (PLAIN, HAND):
        claim = f"The mean throughput of “{LIBRARY}” is {{}} that of “{arm}”"
        ratio = paired_ratio(by_arm[arm], by_arm[LIBRARY], quantity="ratio of throughputs", claim=claim, unit="times")
        print(ratio)
    ours, by_hand = (np.exp(np.log(by_arm[arm]).mean()) / 8e6 for arm in (LIBRARY, HAND))
    peer = {"peer": "the perf tool by hand, same class archive", "of_peer": by_hand}
    record("throughput of a Kafka load run by the library", ours, "MB/s", bound="within 3 % of its peer", **peer)
    met = ratio.low >= 1 - TARGET and ratio.high <= 1 + TARGET
    beyond = ratio.high < 1 - TARGET or ratio.low > 1 + TARGET
    outcome = "met" if met else "missed" if beyond else "neither met nor missed: the interval is too wide"
    print(
        f"Target, {LIBRARY} within {TARGET:.0%} of {HAND}: {outcome} (the estimate is {more_or_less(ratio.estimate)})."
    )
    return int(beyond)


def measured(plan, load, lab, cluster):
    """Run the loads in order, and yield a row for each but the first, which warms the brokers up."""
    with tempfile.TemporaryDirectory() as folder:
        for order, block, arm in [(0, None, LIBRARY), *plan[["order", "block", "setting"]].itertuples(index=False)]:
            began = time.monotonic()
            if arm == LIBRARY:
                printed = by_library(load, lab, Path(folder), order)
            else:
                printed = by_hand(load, lab, cluster, order, archive=arm == HAND)
            (rate,) = reader.read(printed)["producers"].throughput_bps
            took_s = time.monotonic() - began
            print(f"{order:3} {arm:29} {rate / 8e6:7.3f} MB/s  {took_s:5.1f} s", flush=True)
            if block is not None:
                yield {"order": order, "block": int(block), "arm": arm, "throughput_bps": rate}


def by_library(load, lab, folder, order) -> bytes:
    """Run the load by the library; return what the producer tool printed."""
    files = load.run(lab.host(HOME), lab.host("east"), folder, f"{order:04d}")
    (path,) = (file.path for file in files if file.path.endswith("producer-0.txt"))
    return (folder / path).read_bytes()


def by_hand(load, lab, cluster, order, *, archive) -> bytes:
    """Run the producer tool as a person would in a terminal of the region; return what it printed."""
    topic = f"hand-{order:04d}"
    settings = {"message.timestamp.type": "LogAppendTime", "retention.ms": -1, "retention.bytes": -1}
    cluster.create_topic(topic, partitions=load.partitions, replication=load.replication, settings=settings)
    java = cluster.java(lab.host(HOME), PRODUCER)
    if not archive:
        java = [word for word in java if not word.startswith(ARCHIVE_FLAGS)]
    command = [
        *java,
        "--bootstrap-server", cluster.bootstrap,
        "--topic", topic,
        "--num-records", str(load.records),
        "--throughput", "-1",
        "--record-size", "1000",
        "--reporting-interval", "1000",
        "--command-property", "acks=all", "linger.ms=5", f"batch.size={load.batch_bytes}",
    ]  # fmt: skip
    done = subprocess.run([*lab.entering(HOME), *command], capture_output=True, timeout=300, check=True)
    cluster.delete_topic(topic)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
