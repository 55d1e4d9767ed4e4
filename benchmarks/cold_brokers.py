"""
Measure how long brokers that have just started answer late: `python benchmarks/cold_brokers.py`.

Three brokers over an emulated WAN restart again and again (`--restarts`). After every second restart they first get the
same load for 8 s, as `wanbench.measure.plan.warmed_up` arranges on page 08; after the others the load counts at once.
Prints p99 of end-to-end latency for each second of the load, as the median over restarts. Exits with 1 if a second of
the warmed brokers is above twice the median of their last ten seconds. Takes 4 minutes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
from measured import record

from wanbench.measure.experiments import KafkaOpenLoop, KafkaTrial
from wanbench.measure.kafka import Cluster, unavailable
from wanbench.measure.labs import matrix_links
from wanbench.measure.labs.local import LocalLab
from wanbench.methods.tails import distribution
from wanbench.read.ingest import kafka_open_loop

ZONES = ["aws:eu-central-2a", "aws:eu-central-2b", "aws:eu-central-2c"]
WARM_S = 8.0  # as on page 08
LAST = 10
"""How many seconds at the end stand for warm brokers."""


def main() -> int:
    """Restart, load, and print p99 by second; return 1 if warmed brokers answer late."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--restarts", type=int, default=6, help="how many, half of them warmed (default: %(default)s)")
    asked = options.parse_args()
    if reason := unavailable():
        print(reason, file=sys.stderr)
        return 1
    load = KafkaOpenLoop(
        3_000, record_bytes=1024, linger_ms=25.0, batch_bytes=262_144, duration_s=20.0, warmup_s=0.0, drain_s=1.0
    )
    links = matrix_links(dict.fromkeys(combinations(ZONES, 2), 2.0), rate_bps=50e6)
    seen: dict[bool, list[list[float]]] = {False: [], True: []}
    with LocalLab(ZONES, links) as lab, Cluster(lab, ZONES, profile="functional", metrics=False):
        for restart in range(asked.restarts):
            warms = bool(restart % 2)
            settings = {"num.io.threads": 7 + restart % 2}
            trial = KafkaTrial(load, client_regions=ZONES, broker_settings=settings)
            if warms:
                p99_by_second(replace(trial, load=replace(load, duration_s=WARM_S)), lab)
            seen[warms].append(p99_by_second(trial, lab))
            print(f"restart {restart + 1}, {'warmed' if warms else 'at once'}: p99 by second (ms) {seen[warms][-1]}")
    cold, warmed = (np.median(seen[warms], axis=0) for warms in (False, True))
    for name, by_second in (("at once", cold), ("warmed", warmed)):
        print(f"{name}: median over restarts of p99 by second (ms): {', '.join(f'{ms:.0f}' for ms in by_second)}")
        warm = {"peer": f"median of its last {LAST} s", "of_peer": steady(by_second)}
        record(f"p99 in the first second after brokers restart, {name}", by_second[0], "ms", **warm)
    return int((warmed > 2 * steady(warmed)).any())


def p99_by_second(trial: KafkaTrial, lab: LocalLab) -> list[float]:
    """Run a trial, and return p99 of end-to-end latency in ms for each second, over all groups."""
    with tempfile.TemporaryDirectory() as folder:
        trial.run(lab.host(ZONES[0]), lab.host(ZONES[1]), Path(folder), "1")
        rows = kafka_open_loop.read(Path(folder) / "kafka_open_loop/1.load.json")["open_loop_histograms"]
    rows = rows[rows.what == "end to end"]
    return [round(float(p99(part.histogram)) / 1_000, 1) for _, part in rows.groupby("window")]


def p99(histograms) -> float:
    """Return p99 in us of the records in some histograms together."""
    us, counts = distribution.summed(distribution.decoded(text) for text in histograms)
    return us[np.searchsorted(counts.cumsum(), 0.99 * counts.sum())]


def steady(by_second: np.ndarray) -> float:
    """Return the median of the last seconds."""
    return float(np.median(by_second[-LAST:]))


if __name__ == "__main__":
    sys.exit(main())
