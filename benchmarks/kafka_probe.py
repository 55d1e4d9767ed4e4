"""
Whether the Kafka probe is right, on links of known delay: `python benchmarks/kafka_probe.py [name ...]`.

Without names: all of delay, replicas, held, stopped, clock. Takes about three minutes; needs Kafka and a local lab.
`cost`, by name only: what a concurrent probe costs a load, about a quarter of an hour; see kafka_probe_cost.py.
`constant` is what the probe measures beyond the time on the path, which is half of ping's median round trip per
crossing. Figures are of this machine and of what else it does meanwhile.
"""

import os
import sys
import tempfile
import time
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path

import numpy as np

from wanbench import kafka
from wanbench.experiments import Ping
from wanbench.experiments.kafka_probe import KafkaProbe
from wanbench.ingest import kafka_probe, ping
from wanbench.labs.local import LocalLab
from wanbench.links import LinkSettings
from wanbench.stats.tails import latencies as tails

FROM, TO = "source", "target"
PRODUCERS = 8


@contextmanager
def cluster():
    """A lab of two regions with a broker in each: number 1 in the target's, number 2 in the source's."""
    links = {pair: LinkSettings(20) for pair in permutations((FROM, TO), 2)}
    with LocalLab([FROM, TO], links) as lab, kafka.Cluster(lab, [TO, FROM], metrics=False):
        yield lab


class Bench:
    """Probes and pings between the two regions, each into a separate folder."""

    def __init__(self, lab, folder):
        self.lab, self.source, self.target = lab, lab.host(FROM), lab.host(TO)
        self.folder = Path(folder)
        self.runs = 0

    def delay(self, delay_ms):
        """Set the one-way delay; returns half of ping's median round trip."""
        for pair in permutations((FROM, TO), 2):
            self.lab.set_link(*pair, delay_ms=delay_ms)
        [file] = Ping(count=100, interval_s=0.01).run(self.source, self.target, self.folder, self._stem())
        echoes = ping.read(self.folder / file.path)["echoes"].to_pandas()
        return float(echoes.rtt_ms.median()) / 2

    def probe(self, *, meanwhile=None, **settings):
        """The tables of a probe."""
        settings = {
            "interval_s": 0.02,
            "duration_s": 12.0,
            "placement": ((1,),),
            "producers": PRODUCERS,
        } | settings
        settings["replication"] = len(settings["placement"][0])
        probe, stem = KafkaProbe(**settings), self._stem()
        if meanwhile is None:
            probe.run(self.source, self.target, self.folder, stem)
        else:
            with probe.concurrently(self.source, self.target, self.folder, stem):
                meanwhile()
        return kafka_probe.read(self.folder / f"kafka_probe/{stem}.probe.json")

    def _stem(self):
        self.runs += 1
        return f"{self.runs:04}.1"


def row(label, path_ms, found, name):
    """One line: quantiles with intervals, and the constant of p50."""
    at = tails.quantiles(tails.of_records(found["probe_records"], name=name), (0.5, 0.99, 0.999))
    middle = at[0.5]
    minimum = found["probe_records"].latency_ms.min()
    cells = [f"{each.estimate:8.2f} ({each.written_interval})" for each in at.estimates]
    ends = f"{middle.low - path_ms:.2f} to {middle.high - path_ms:.2f}"
    print(f"{label:24}{path_ms:8.2f}{minimum:8.2f}  {'  '.join(f'{cell:28}' for cell in cells)}", end="")
    print(f"{middle.estimate - path_ms:6.2f} ({ends})")


def head(title):
    print(f"{title}; ms\n{'':24}{'path':>8}{'minimum':>8}  {'p50':28}  {'p99':28}  {'p99.9':28}constant")


def delay(bench):
    head("One broker and the consumer in the target's region, acks all of one replica")
    for delay_ms in (5, 20, 40):
        path_ms = bench.delay(delay_ms)
        row(f"one way {delay_ms} ms", path_ms, bench.probe(), f"{delay_ms} ms")
    print()


def replicas(bench):
    head(
        "The same with a second replica in the source's region, a record every 200 ms: the path is crossed three times"
    )
    for delay_ms in (20, 40):
        path_ms = 3 * bench.delay(delay_ms)
        found = bench.probe(placement=((1, 2),), interval_s=0.2, duration_s=20.0)
        row(f"one way {delay_ms} ms", path_ms, found, f"{delay_ms} ms")
    print()


def held(bench):
    head("1 % of the records held by 500 ms after their intended time")
    path_ms = bench.delay(20)
    found = bench.probe(hold_share=0.01, hold_ms=500.0, duration_s=30.0)
    row("one way 20 ms", path_ms, found, "1 % held")
    latencies = np.sort(found["probe_records"].latency_ms)
    for q in (0.98, 0.985, 0.9875, 0.9925, 0.995, 0.999):
        print(f"  p{100 * q:g}: {latencies[int(np.ceil(q * len(latencies))) - 1]:.1f} ms")
    print(f"  {(latencies > 500).sum()} of {len(latencies)} records took longer than 500 ms\n")


def stopped(bench):
    from_s = []

    def stop():
        pids = broker_pids(bench.lab, 1)
        time.sleep(2)
        signal_all(pids, "STOP")
        from_s.append(time.time())
        time.sleep(1)
        from_s.append(time.time())
        signal_all(pids, "CONT")
        time.sleep(2)

    bench.delay(20)
    found = bench.probe(meanwhile=stop, duration_s=60.0)
    records = found["probe_records"]
    inside = records[records.intended_at_s.between(from_s[0], from_s[1])]
    left_ms = (from_s[1] - inside.intended_at_s) * 1000
    print("The broker stopped for 1 s: every record of that second waits for what is left of it")
    print(
        f"  intended in that second: {len(inside)} records, {int(inside.latency_ms.isna().sum())} never received"
    )
    print(f"  of them took longer than what was left of it: {int((inside.latency_ms >= left_ms).sum())}")
    rest = records[~records.sequence.isin(inside.sequence)]
    slow = int((rest.latency_ms > 200).sum())
    print(
        f"  median of these {inside.latency_ms.median():.0f} ms, of the others {rest.latency_ms.median():.1f} ms"
    )
    print(f"  of the others took longer than 200 ms: {slow}\n")


def broker_pids(lab, node_id):
    """Processes of a broker: those whose command names its folder."""
    folder = str(Path(lab.host(FROM).cluster.log_folder(node_id)).parent).encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if arguments[0].endswith(b"java") and any(one.startswith(folder) for one in arguments):
            found.append(int(path.parent.name))
    return found


def signal_all(pids, name):
    import signal

    for pid in pids:
        os.kill(pid, getattr(signal, f"SIG{name}"))


def clock(bench):
    print("The target's programs read a clock that is 250 ms ahead")
    path_ms = bench.delay(20)
    found = bench.probe(clock_shift_ms=250.0, duration_s=6.0)
    [about] = found["probes"].to_dict("records")
    middle = found["probe_records"].latency_ms.median()
    print(f"  offset {about['clock_offset_ms']:.3f} ms, at most {about['clock_error_ms']:.3f} ms off")
    print(
        f"  p50 {middle:.2f} ms over a path of {path_ms:.2f} ms; {about['n_clock_limited']} records clock-limited\n"
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["cost"]:
        import kafka_probe_cost

        sys.exit(kafka_probe_cost.main([]))
    if reason := LocalLab.unavailable() or kafka.unavailable():
        sys.exit(f"The probe cannot be tried: {reason}")
    parts = {"delay": delay, "replicas": replicas, "held": held, "stopped": stopped, "clock": clock}
    if unknown := set(sys.argv[1:]) - set(parts):
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(parts)}, and cost alone")
    with cluster() as lab, tempfile.TemporaryDirectory(prefix="wanbench-probe-") as folder:
        bench = Bench(lab, folder)
        for name in sys.argv[1:] or parts:
            parts[name](bench)
