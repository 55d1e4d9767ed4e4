"""
Measure which rate the generator of open-loop loads sustains: `python benchmarks/open_loop.py [records/s ...]`.

librdkafka's mock brokers, in this process, stand in for the cluster. They keep nothing and have no disk or network, so
any delay is by the generator, the consumers or the machine. A mock broker keeps 5 MB of a partition, answers a fetch
with one batch, and lets a fetch of an empty log wait for all of its time; so batches are large and that time is short.
Each rate runs for 10 s after a warm-up of 3 s, with records of 2 KB, one producer and three consumer
groups. Prints a line for each rate; without arguments, rates are 2,000 to 40,000 records/s.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "lib" / "tests"))

from measured import record
from mock_kafka import PARTITIONS, HereHost, MockCluster

from wanbench.measure.experiments import ExperimentError, KafkaOpenLoop
from wanbench.pages.tail_latency.latencies import of_open_loop
from wanbench.read.ingest import kafka_open_loop

RATES = (2_000.0, 5_000.0, 10_000.0, 20_000.0, 40_000.0)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hosts = [HereHost(region, folder) for region in ("eu", "us")]
        cluster = MockCluster(hosts)
        for number, rate in enumerate(map(float, sys.argv[1:] or RATES)):
            settings = {"batch_bytes": 262_144, "consumer_settings": {"fetch.wait.max.ms": 10}}
            load = KafkaOpenLoop(rate, partitions=PARTITIONS, replication=1, duration_s=10, warmup_s=3, **settings)
            try:
                load.run(*hosts, folder, str(number))
            except ExperimentError as error:
                print(f"{rate:,.0f} records/s: {error}")
                continue
            tables = kafka_open_loop.read(folder / f"kafka_open_loop/{number}.load.json")
            [row] = tables["open_loop_loads"].to_dict("records")
            tail = of_open_loop(tables["open_loop_histograms"], what="publish")
            print(
                f"{rate:,.0f} records/s: sent {row['sent_records_per_s']:,.0f}, received "
                f"{row['received_records_per_s']:,.0f} per group; late p99 {row['late_p99_ms']:.1f} ms, max "
                f"{row['late_max_ms']:.0f} ms, fell behind {row['fell_behind']}, blocked {row['blocked_s']:.1f} s; "
                f"publish p50 {tail.quantile(0.5):.1f} ms, p99 {tail.quantile(0.99):.1f} ms",
                flush=True,
            )
            what = f"open-loop load of {rate:,.0f} records/s of 2 KB on mock brokers"
            record(f"{what}: 99 % sent within", row["late_p99_ms"], "ms after they are due")
            received, sent = row["received_records_per_s"], row["sent_records_per_s"]
            record(f"{what}: received by each of three groups", received, "records/s", peer="sent", of_peer=sent)
        del cluster


if __name__ == "__main__":
    main()
