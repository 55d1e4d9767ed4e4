"""
Measure how often verdicts on two systems are right: `python benchmarks/verdicts.py`.

Three systems run on one cluster over an emulated WAN, in random order: "one", "the same" with equal settings, and
"lingering", whose producers wait 25 ms longer for a batch. With `--version 4.4.0`, a fourth system has this version of
Kafka; for it the brokers restart once in each block of trials. With `--equal`, only the first two run. Three trials of
each system (`--trials`) make one repetition, which is a short form of page 08 at one rate. Each repetition gives a
verdict on p50 and one on p99 of end-to-end latency, as on page 08. For "the same" against "one", verdicts "better" and
"worse" are false alarms; for "lingering" against "one", only "worse" is right.

Prints who used the processors, and how often each verdict was given, with exact 95 % intervals over the repetitions.
Exits with 1 if there are significantly more false alarms than the 5 % that the verdicts allow, or if less than half of
the repetitions show the difference. Trials whose generator was late do not count, so half as many more are measured
(`--spare`), and the first complete repetitions are judged. Newly started brokers are loaded first (`--warm`): it takes
minutes until no trial has a raised p99. An interrupted run is resumed; `--again` measures anew. A trial takes 3.3 s
more than its measured seconds (`--duration`).
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
from measured import record
from scipy import stats

from wanbench.measure import campaign
from wanbench.measure.experiments import HostMetrics, KafkaOpenLoop
from wanbench.measure.kafka import unavailable
from wanbench.measure.labs import matrix_links
from wanbench.measure.plan import make_trials, warmed_up
from wanbench.methods.trials.processors import processor_roles
from wanbench.pages import tail_latency
from wanbench.pages.tail_latency import design
from wanbench.pages.tail_latency.trials import TailTrials
from wanbench.pages.tail_latency.verdicts import verdict
from wanbench.read import ingest

ZONES = ["aws:eu-central-2a", "aws:eu-central-2b", "aws:eu-central-2c"]
SYSTEMS = [{"name": "one"}, {"name": "the same"}, {"name": "lingering", "load": {"linger_ms": 50.0}}]
RATE_RECORDS_PER_S = 3_000.0
"""Half of what the links allow, so no queue grows."""
SPARE = 1.5
"""Blocks measured for each one needed: beside other work, 16 of 20 and 10 of 15 repetitions were complete."""
WARM_S = 8.0
"""Load for newly started brokers, in trials that do not count, as on page 08."""
JVM = ["-Xmn16m"]
"""As on page 08: frequent short garbage collections. Java's default has long ones, which decide p99 of some trials."""
QUANTILES = (0.5, 0.99)


def main() -> int:
    """Measure, judge each repetition, and print the counts; return 1 if verdicts are wrong too often."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--repetitions", type=int, default=5, help="how many (default: %(default)s)")
    options.add_argument("--trials", type=int, default=3, help="of each system in a repetition (default: %(default)s)")
    options.add_argument("--duration", type=float, default=4.0, help="measured s of a trial (default: %(default)s)")
    options.add_argument(
        "--warm", type=float, default=WARM_S, help="s of load for started brokers (default: %(default)s)"
    )
    options.add_argument("--spare", type=float, default=SPARE, help="blocks per block needed (default: %(default)s)")
    options.add_argument("--equal", action="store_true", help='leave out the system "lingering"')
    options.add_argument("--again", action="store_true", help="measure anew what an earlier call has measured")
    options.add_argument("--version", help="of Kafka, for a fourth system (default: none)")
    asked = options.parse_args()
    if reason := unavailable():
        print(reason, file=sys.stderr)
        return 1
    more = [{"name": f"Kafka {asked.version}", "kafka_version": asked.version}] if asked.version else []
    systems = design.read_systems([*SYSTEMS[: 2 if asked.equal else 3], *more])
    load = KafkaOpenLoop(
        RATE_RECORDS_PER_S, record_bytes=1024, partitions=3, linger_ms=25.0, batch_bytes=262_144,
        duration_s=asked.duration, warmup_s=1.0, drain_s=1.0,
    )  # fmt: skip
    steps = {"rate_records_per_s": [RATE_RECORDS_PER_S]}
    blocks = round(asked.repetitions * asked.trials * asked.spare)
    beside = (HostMetrics(),)
    trials = design.systems_by_steps(
        systems, load, steps, replicates=blocks, alongside=beside, client_regions=ZONES, seed=1
    )
    trials = warmed_up(trials, replace(load, duration_s=asked.warm), client_regions=ZONES)
    plan = make_trials(trials, from_region=ZONES[0], to_region=ZONES[1], more_regions=ZONES[2:], seed=1)
    links = matrix_links(dict.fromkeys(combinations(ZONES, 2), 2.0), rate_bps=50e6)
    cluster = {"profile": "functional", "heap_mb": 384, "metrics": False, "pauses": True, "jvm": JVM}
    run = campaign.run(plan, links, lab="local", campaign="verdicts", brokers=ZONES, cluster=cluster, fresh=asked.again)
    names = [system.name for system in systems]
    tables = ingest.tabulate(run.folder)
    print(processor_roles(tables).sentence)
    measured = tail_latency.trials(tables, names)
    print(f"{measured.rows.counts.sum()} of {len(measured.rows)} trials count; of the others the generator was late")
    at = {"rate_records_per_s": RATE_RECORDS_PER_S, "partitions": load.partitions}
    one, *others = (measured.at(name, **at) for name in names)
    seen = {other.name: judged(one, other, asked.trials)[: asked.repetitions] for other in others}
    for name, verdicts in seen.items():
        for q in QUANTILES:
            print(f"{name} against {one.name}, p{100 * q:g}: {counted([row[q] for row in verdicts])}")
    alarms = sum(any(word in ("better", "worse") for word in row.values()) for row in seen["the same"])
    n = len(seen["the same"])
    more = stats.binomtest(alarms, n, 0.05, "greater").pvalue
    print(f"false alarms: in {share(alarms, n)} repetitions (allowed: 5 %; p = {more:.2g} that it is more)")
    record("verdicts on equal systems that are false alarms", alarms, f"of {n}", bound="5 %")
    if asked.equal:
        return int(more < 0.05)
    found, m = sum("worse" in row.values() for row in seen["lingering"]), len(seen["lingering"])
    print(f"the difference was seen in a percentile or both: in {share(found, m)} repetitions")
    record("verdicts that find producers lingering 25 ms longer", found, f"of {m}", bound="at least half")
    return int(more < 0.05 or found < m / 2)


def judged(one: TailTrials, other: TailTrials, trials: int) -> list[dict[float, str]]:
    """Return the verdicts by quantile of each repetition, which has `trials` blocks with counting trials of both."""
    blocks = sorted(set(one.blocks) & set(other.blocks))
    rows = []
    for at in range(0, len(blocks) - trials + 1, trials):
        found = verdict(*(part(each, blocks[at : at + trials]) for each in (one, other)), at=QUANTILES).rows
        rows.append(dict(zip(found["quantile"], found.verdict, strict=True)))
    return rows


def part(trials: TailTrials, blocks: list[int]) -> TailTrials:
    """Return the trials of some blocks."""
    kept = [k for k, block in enumerate(trials.blocks) if block in blocks]
    return TailTrials(trials.name, [trials.tails[k] for k in kept], [trials.blocks[k] for k in kept])


def counted(verdicts: list[str]) -> str:
    """Return how often each verdict was given as text, the most frequent first."""
    words, counts = np.unique(verdicts, return_counts=True)
    return ", ".join(f"{words[k]} {counts[k]} of {len(verdicts)}" for k in np.argsort(-counts)) or "none is complete"


def share(k: int, n: int) -> str:
    """Return `k` of `n` as text, with the exact 95 % interval of the share (Clopper-Pearson)."""
    interval = stats.binomtest(k, n).proportion_ci()
    return f"{k} of {n} (95 % interval {interval.low:.0%} to {interval.high:.0%})"


if __name__ == "__main__":
    sys.exit(main())
