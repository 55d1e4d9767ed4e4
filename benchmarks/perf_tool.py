"""
Compare the latency and processor use of our open-loop load and of Kafka's own tool: `python benchmarks/perf_tool.py`.

One producer and one consumer group run on the cluster and links of page 08: by `KafkaOpenLoop`, and at the same rate by
Kafka's ProducerPerformance and ConsumerPerformance, interleaved in blocks. For each rate, it prints p50 and p99
of the latency until the acknowledgement, and the share of the processors that brokers and clients used, as means over
the blocks with their ranges. The tool counts latency from when a record was handed to its client, the open-loop load
from when the record was due. Requests differ as well: a request of Kafka's client has a batch for each partition, a
request of librdkafka has one batch.
"""

from __future__ import annotations

import argparse
import sys
from itertools import combinations

import pandas as pd

from wanbench.designs import interleaved
from wanbench.measure import campaign
from wanbench.measure.experiments import KafkaLoad, KafkaOpenLoop, KafkaTrial
from wanbench.measure.kafka import unavailable
from wanbench.measure.labs import matrix_links
from wanbench.measure.plan import Trial, make_trials
from wanbench.methods.trials.processors import by_trial
from wanbench.pages.tail_latency.latencies import of_open_loop
from wanbench.read import ingest

ZONES = ["aws:eu-central-2a", "aws:eu-central-2b", "aws:eu-central-2c"]
SAME = {"record_bytes": 1024, "partitions": 3, "replication": 3, "linger_ms": 25.0, "batch_bytes": 262_144}
SAME |= {"duration_s": 6.0, "warmup_s": 3.0}


def main() -> int:
    """Measure both in turn, and print a row for each rate and tool."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--rates", type=float, nargs="+", default=[2000.0, 4000.0], help="records/s")
    options.add_argument("--blocks", type=int, default=2, help="of two trials each (default: %(default)s)")
    asked = options.parse_args()
    if reason := unavailable():
        print(reason, file=sys.stderr)
        return 1
    loads = {
        f"{rate:,.0f} records/s, {tool}": load
        for rate in asked.rates
        for tool, load in (
            ("open loop", KafkaOpenLoop(rate, groups=1, **SAME)),
            ("perf tool", KafkaLoad(target_records_per_s=rate, payload="random", **SAME)),
        )
    }
    order = interleaved(list(loads), asked.blocks).itertuples()
    trials = [Trial("warm-up", (KafkaTrial(next(iter(loads.values()))),))]
    trials += [Trial(row.setting, (KafkaTrial(loads[row.setting]),), row.block) for row in order]
    plan = make_trials(trials, from_region=ZONES[0], to_region=ZONES[1], more_regions=ZONES[2:])
    links = matrix_links(dict.fromkeys(combinations(ZONES, 2), 2.0), rate_bps=50e6)
    cluster = {"profile": "functional", "heap_mb": 384, "metrics": False}
    run = campaign.run(plan, links, lab="local", campaign="perf-tool", brokers=ZONES, cluster=cluster, fresh=True)
    tables = ingest.tabulate(run.folder)
    rows = tables["tests"].merge(by_trial(tables), on=["run_id", "test_id", "attempt"])
    rows = rows[rows.setting.isin(list(loads))]
    latencies = [latency(tables, test_id) for test_id in rows.test_id]
    rows = rows.assign(p50_ms=[p50 for p50, _ in latencies], p99_ms=[p99 for _, p99 in latencies])
    shown = rows.groupby("setting")[["p50_ms", "p99_ms", "brokers", "clients", "busy"]].agg(text)
    print(shown.to_string())
    return 0


def latency(tables: dict[str, pd.DataFrame], test_id: str) -> tuple[float, float]:
    """Return p50 and p99 (ms) of a test's latency until the acknowledgement, as its load reports them."""
    own = tables["producers"][tables["producers"].test_id == test_id]
    if len(own):
        return own.p50_latency_ms.iloc[-1], own.p99_latency_ms.iloc[-1]  # the warm-up's summary comes first
    histograms = tables["open_loop_histograms"]
    tail = of_open_loop(histograms[histograms.test_id == test_id], what="publish")
    return tail.quantile(0.5), tail.quantile(0.99)


def text(values: pd.Series) -> str:
    """Return the mean and the range as text."""
    return f"{values.mean():.3g} ({values.min():.3g} to {values.max():.3g})"


if __name__ == "__main__":
    sys.exit(main())
