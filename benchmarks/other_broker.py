"""
Compare tansu, a broker of another make that speaks Kafka's protocol, with Kafka: `python benchmarks/other_broker.py`.

`scripts/other-broker.sh` builds tansu. One broker of each make runs on the same host of a local lab, and clients on a
host 2 ms away. Each trial sends one open-loop load to one of three systems: Kafka, tansu, and tansu with consumers
whose `fetch.wait.max.ms` is 10. The last one is there because tansu 0.6.0 waits half of this time, by default 250 ms,
before it answers a fetch, even if it has records.

Alike are host, disk, links, clients, topics of three partitions and one replica, and acks=all. Neither broker waits for
the disk before it acknowledges: Kafka leaves that to the operating system, and tansu sets SQLite's journal to WAL and
`synchronous` to normal. Not alike: Kafka keeps batches as they come, and tansu stores each record as a row of SQLite.
The broker that a trial does not use keeps running, and its processor time counts under "brokers".

For each rate, prints whether the systems kept up, verdicts on percentiles of the latency until the acknowledgement
("publish") and until the receipt ("end to end") as on page 08, and processors by role. With `--support`, it prints
instead what each broker answers to requests and features that wanbench uses. Trials take five minutes, `--support` two.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from wanbench.errors import LabError
from wanbench.folders import data_folder, root
from wanbench.measure.campaign import measure
from wanbench.measure.experiments import KafkaOpenLoop, KafkaTrial
from wanbench.measure.experiments.base import reaching
from wanbench.measure.kafka import unavailable
from wanbench.measure.kafka.lab import KafkaLab
from wanbench.measure.labs import LocalLab, matrix_links
from wanbench.measure.plan import Trial, make_trials
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.trials.processors import processor_roles
from wanbench.pages import tail_latency
from wanbench.pages.tail_latency import design
from wanbench.pages.tail_latency.latencies import of_open_loop
from wanbench.pages.tail_latency.trials import TailTrials
from wanbench.pages.tail_latency.verdicts import verdicts
from wanbench.read import ingest
from wanbench.read.ingest import kafka_open_loop

CLIENTS, BROKERS = "aws:eu-central-2a", "aws:eu-central-2b"
PORT = 9192  # none of the ports of Kafka's broker
START_S = 30.0
KAFKA, TANSU, FETCHING = "Kafka", "tansu", "tansu, fetches of 10 ms"
FETCHES = {"consumer_settings": {"fetch.wait.max.ms": 10}}
SYSTEMS = [{"name": KAFKA}, {"name": TANSU, "cluster": TANSU}, {"name": FETCHING, "cluster": TANSU, "load": FETCHES}]
LOAD = KafkaOpenLoop(
    200.0, record_bytes=1024, partitions=3, replication=1, groups=1, linger_ms=25.0, batch_bytes=262_144,
    duration_s=6.0, warmup_s=2.0, drain_s=2.0,
)  # fmt: skip
FEATURES = {
    "plain producer, group of one": {},
    "idempotent producer": {"idempotence": True},
    "transactions": {"idempotence": True, "transaction_ms": 100.0},
    "group of two, one joins later": {"consumers": 2, "joins_at_s": 2.0},
    "group of KIP-848": {"consumer_settings": {"group.protocol": "consumer"}},
    "share group": {"share_groups": True},
    "compression lz4": {"compression": "lz4"},
}
REQUESTS = {"cluster": (), "topics": (), "settings": ("broker",), "log_ends": ("topic",)}
REQUESTS |= {"delete_records": ("topic",), "elect": ()}
SHOWN = ["row", "quantile", "a_ms", "b_ms", "ratio", "low", "high", "n_blocks", "verdict"]


class LabWithTansu(LocalLab):
    """A local lab in which tansu runs on the first host of `BROKERS`; when the lab is closed, tansu is stopped."""

    def __init__(self, program: Path, storage: str, *arguments, **options):
        super().__init__(*arguments, **options)
        self.program, self.storage = str(program), storage
        self.address = f"{self.host(BROKERS).address}:{PORT}"

    def __enter__(self):
        super().__enter__()
        try:
            host, url = self.host(BROKERS), f"tcp://{self.address}"
            self.version = host.run([self.program, "--version"], timeout_s=START_S).stdout.decode().split()[-1]
            listening = ["--listener-url", url, "--advertised-listener-url", url, "--storage-engine", self.storage]
            self.tansu = host.start(["env", f"--chdir={host.scratch}", self.program, "broker", *listening])
            self.tansu.wait_for_output("ready in", START_S)
        except BaseException:
            self.__exit__()
            raise
        return self

    def describe(self):
        about = super().describe()
        return {**about, "tools": {**about["tools"], "tansu": f"{self.version} on {self.storage}"}}


def main() -> int:
    """Measure, and print tables; return 1 if something is missing."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--rates", type=float, nargs="+", default=[200.0, 1_000.0], help="records/s")
    options.add_argument("--blocks", type=int, default=3, help="trials of each system and rate (default: %(default)s)")
    options.add_argument("--support", action="store_true", help="try features and requests instead")
    options.add_argument("--storage", default="sqlite:///tansu.db", help="of tansu (default: %(default)s)")
    options.add_argument("--tansu", type=Path, default=root() / ".kafka/tansu/bin/tansu", help="(default: %(default)s)")
    asked = options.parse_args()
    missing = None if asked.tansu.is_file() else f"{asked.tansu} is missing; scripts/other-broker.sh builds it"
    if reason := unavailable() or LocalLab.unavailable() or missing:
        print(reason, file=sys.stderr)
        return 1
    links = matrix_links({(CLIENTS, BROKERS): 2.0}, rate_bps=100e6)
    inner = LabWithTansu(asked.tansu.resolve(), asked.storage, [CLIENTS, BROKERS], links)
    external = {TANSU: {"bootstrap": inner.address, "protocol": "PLAINTEXT"}}
    lab = KafkaLab(inner, [BROKERS], external=external, metrics=False)
    if asked.support:
        try_features(lab)
    else:
        compare(lab, asked.rates, asked.blocks)
    return 0


def compare(lab: KafkaLab, rates: list[float], blocks: int) -> None:
    """Measure trials of all systems in random order, and print what is to be compared."""
    first = replace(LOAD, rate_records_per_s=max(rates))
    trials = [Trial("warm-up", (KafkaTrial(first, client_regions=[CLIENTS], cluster=name),)) for name in (None, TANSU)]
    systems, steps = design.read_systems(SYSTEMS), {"rate_records_per_s": rates}
    trials += design.systems_by_steps(systems, LOAD, steps, replicates=blocks, client_regions=[CLIENTS], seed=1)
    plan = make_trials(trials, from_region=CLIENTS, to_region=BROKERS, seed=1)
    run = measure(plan, lab, data_folder=data_folder(), campaign="other-broker", fresh=True)
    tables = ingest.tabulate(run.folder)
    names = [system.name for system in systems]
    measured = tail_latency.trials(tables, names)
    print(measured.formatted_table().to_string(index=False))
    for other in names[1:]:
        both = {}
        for what in ("publish", "end to end"):
            for rate in rates:
                pair = tuple(tails(measured, tables, name, rate, what) for name in (KAFKA, other))
                both |= {f"{what}, {rate:g}/s": pair} if all(pair) else {}
        print(f"\n{other} (b) against {KAFKA} (a):")
        if both:
            print(verdicts(both, at=(0.5, 0.99)).rows[SHOWN].to_string(index=False, float_format="{:.3g}".format))
        else:
            print("no trials of both count")
    print(f"\n{processor_roles(tables).formatted_table().to_string(index=False)}")


def tails(measured, tables, system: str, rate: float, what: str) -> TailTrials | None:
    """Return a system's latencies at a rate, until the acknowledgement or the receipt; None if no trial counts."""
    rows = measured.stepped(system, rate_records_per_s=rate)
    histograms = tables["open_loop_histograms"].merge(rows[[*KEY, "block"]], on=KEY)
    found = {block: of_open_loop(part, what=what, name=system) for block, part in histograms.groupby("block")}
    return TailTrials(system, found.values(), found.keys()) if found else None


def try_features(lab: KafkaLab) -> None:
    """Print what each broker answers to every feature and request."""
    with lab, tempfile.TemporaryDirectory() as folder:
        for name in (None, TANSU):
            host = reaching(lab.host(CLIENTS), name)
            for number, (feature, changes) in enumerate(FEATURES.items()):
                load = replace(LOAD, duration_s=4.0, start_timeout_s=20.0, **changes)
                stem = f"{name or KAFKA}-{number}"
                try:
                    load.run(host, host, Path(folder), stem)
                    failure = ""
                except LabError as error:
                    failure = f"; {error}"
                read = kafka_open_loop.read(Path(folder, load.name, f"{stem}.load.json"))["open_loop_loads"].iloc[0]
                counts = f"{read.n_acknowledged:g} acknowledged, {read.n_received_per_group_min:g} received"
                noted = f"; {read.client_errors}" if isinstance(read.client_errors, str) else ""
                print(f"{name or KAFKA}: {feature}: of {read.n_intended:g} records {counts}{noted}{failure}"[:500])
            host.cluster.create_topic("asked", partitions=3)
            for verb, needed in REQUESTS.items():
                given = {"broker": host.cluster.brokers[0].node_id, "topic": "asked"}
                try:
                    answer = host.cluster.ask(host, verb, **{key: given[key] for key in needed})
                except LabError as error:
                    answer = error
                print(f"{name or KAFKA}: request {verb!r}: {answer}"[:300], flush=True)
            with suppress(LabError):  # tansu refuses some requests by closing the connection
                host.cluster.delete_topic("asked")


if __name__ == "__main__":
    sys.exit(main())
