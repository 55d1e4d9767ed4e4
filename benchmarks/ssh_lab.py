"""
Hosts by SSH against the same namespaces entered directly. Real sshd's run in a local lab's namespaces; needs root and
openssh-server.

    python benchmarks/ssh_lab.py latency            commands: our connection, ControlMaster, the local lab
    python benchmarks/ssh_lab.py survey             the survey of page 02, on both labs
    python benchmarks/ssh_lab.py kafka              loads of one Kafka study, on both labs by turns
    python benchmarks/ssh_lab.py faults [COUNT]     driver or sshd killed, host cut off or rebooted, at random moments
"""

import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib" / "tests"))

import ssh_driver
import sshd_in_namespaces
from patience import comes_about
from sshd_in_namespaces import OPERATOR, SshdLab

from wanbench import campaign, ingest, plan, stats
from wanbench.experiments import KafkaLoad, KafkaTrial
from wanbench.labs import geodesic_links, matrix_links
from wanbench.labs.ssh import SshLab
from wanbench.runs import find

REGIONS = [
    "aws:eu-west-1",
    "aws:us-east-1",
    "aws:ap-northeast-1",
    "gcp:europe-west2",
    "gcp:us-west1",
    "gcp:asia-southeast1",
    "azure:westeurope",
    "azure:canadacentral",
]
DRIVER_S = 16
"""About what the driver of the tests takes; faults strike within this time."""


def latency(folder):
    for delay_ms in (1, 40):
        where = folder / str(delay_ms)
        where.mkdir()
        with SshdLab(where, matrix_links({("aws:eu-west-1", "aws:us-east-1"): 10.0}), delay_ms) as sshd:
            rows = {"local lab": timed(sshd.lab.host("aws:eu-west-1").run, ["true"], timeout_s=30)}
            with SshLab(["aws:eu-west-1"], inventory=sshd.inventory) as lab:
                host = lab.host("aws:eu-west-1")
                rows["one kept connection"] = timed(host.run, ["true"], timeout_s=30)
            words = host.login.command(["true"], 30)
            socket = ["-S", str(where / "socket")]
            master = subprocess.Popen([words[0], *socket, "-M", "-N", *words[1:-2]], stdin=subprocess.DEVNULL)
            assert comes_about((where / "socket").exists)
            client = [words[0], *socket, *words[1:]]
            rows["ControlMaster"] = timed(subprocess.run, client, stdin=subprocess.DEVNULL, check=True)
            master.terminate()
            master.wait()
        for name, seconds in rows.items():
            print(f"{2 * delay_ms:>3} ms to the host, {name:<20} {seconds * 1000:7.1f} ms a command")


def timed(action, *arguments, times=30, **options):
    """Median duration in s."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        action(*arguments, **options)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def survey(folder):
    links = geodesic_links(REGIONS, path_inflation=1.5, rate_bps=50_000_000)
    wanbench = [str(Path(sys.executable).with_name("wanbench")), "run", "02"]
    settings = {**os.environ, "WANBENCH_DATA": str(folder / "data")}
    with SshdLab(folder, links, 10.0) as sshd:
        words = ["-p", "lab=ssh", "-p", f"lab_options={{inventory: {sshd.inventory}}}", "-p", "campaign=ssh"]
        subprocess.run([*wanbench, *words], env=settings, check=True)
    subprocess.run([*wanbench, "-p", "campaign=local"], env=settings, check=True)
    subprocess.run([*wanbench, "-p", "campaign=again", "-p", "seed=2"], env=settings, check=True)
    pairs = {}
    for name in ("local", "again", "ssh"):
        [run] = find(folder / "data", name)
        tables = ingest.tabulate(run.folder)
        print(name, {key: len(table) for key, table in sorted(tables.items()) if len(table)})
        pairs[name] = ingest.summarise_pairs(tables)
        print(name, stats.fit_rtt(pairs[name]).slope)
    columns = ["from_region", "to_region"]
    indexed = {name: table.set_index(columns).sort_index() for name, table in pairs.items()}
    for other in ("again", "ssh"):
        rtt = indexed[other].rtt_ms - indexed["local"].rtt_ms
        rate = indexed[other].throughput_bps / indexed["local"].throughput_bps
        low, middle, high = rtt.quantile([0.05, 0.5, 0.95])
        print(f"{other} less local, RTT: median {middle:.3f} ms, 90 % of pairs {low:.3f} to {high:.3f} ms")
        low, middle, high = rate.quantile([0.05, 0.5, 0.95])
        print(f"{other} over local, throughput: median {middle:.4f}, 90 % of pairs {low:.4f} to {high:.4f}")


def kafka(folder):
    os.environ["WANBENCH_DATA"] = str(folder / "data")
    regions = ["aws:us-east-2", "aws:eu-west-1"]
    links = matrix_links({tuple(regions): 80.0}, rate_bps=100e6)
    sizes = {"16 KiB": 16_384, "64 KiB": 65_536}
    trials = [
        plan.Trial(
            name,
            (KafkaTrial(KafkaLoad(batch_bytes=size, duration_s=4, warmup_s=2, drain=False)),),
            replicate=replicate,
        )
        for replicate in (1, 2, 3)
        for name, size in sizes.items()
    ]
    whole = plan.make_trials(trials, from_region=regions[0], to_region=regions[1], seed=1)
    options = {"brokers": [regions[1]], "cluster": {"profile": "functional", "heap_mb": 384}}
    with SshdLab(folder, links, 10.0) as sshd:
        run = campaign.carry_out(
            whole, links, lab="ssh", lab_options={"inventory": str(sshd.inventory)}, campaign="ssh", **options
        )
    runs = {"ssh": run, "local": campaign.carry_out(whole, links, lab="local", campaign="local", **options)}
    for name, run in runs.items():
        tables = ingest.tabulate(run.folder)
        print(name, {key: len(table) for key, table in sorted(tables.items()) if len(table)})
        rates = stats.trial_rates(tables).rates
        print(rates[["setting", "batches_per_s", "throughput_bps"]].to_string(index=False))


def faults(folder, count=50):
    rng = random.Random(1)
    links = geodesic_links(ssh_driver.REGIONS, rate_bps=20e6)
    told = {kind: [0, 0] for kind in ("driver", "sshd", "cut", "reboot")}
    with SshdLab(folder, links) as sshd:
        for number in range(count):
            kind, after_s = rng.choice(sorted(told)), rng.uniform(0, DRIVER_S)
            data = folder / f"data-{number}"
            starts = strike(sshd, kind, after_s, data, rng.choice(ssh_driver.REGIONS))
            assert comes_about(lambda: not sshd.left()), sshd.left()
            [run] = find(data)
            run.verify()
            done = sorted(one.test_id for one in run.attempts() if one.outcome == "done")
            assert run.finished and done == sorted(test.id for test in ssh_driver.plan().tests), done
            told[kind][0] += 1
            told[kind][1] += starts > 1
            print(
                f"{number + 1:>3}. {kind} after {after_s:.1f} s: {starts} start(s), nothing left", flush=True
            )
    for kind, (times, resumed) in told.items():
        print(f"{kind}: {times} times, {resumed} of them resumed by another start")


def strike(sshd, kind, after_s, data, region):
    """Run the driver until it has ended well, and spoil its first start; how often it was started."""
    words = [sys.executable, ssh_driver.__file__, str(data), str(sshd.inventory)]
    driver = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    time.sleep(after_s)
    if kind == "driver":
        driver.send_signal(signal.SIGKILL)
    elif kind == "sshd":
        if pids := sshd.sessions(region):
            sshd.lab.host(region).run(["kill", "-9", *pids], timeout_s=30, ok=None)
    elif kind == "cut":
        sshd.lab.cut(OPERATOR, region)
        time.sleep(3 * sshd_in_namespaces.PATIENCE_S)
        sshd.lab.heal(OPERATOR, region)
    else:
        sshd.reboot(region)
    starts, failed = 1, driver.wait()
    while failed:
        assert starts < 4, "it does not end well"
        starts, failed = starts + 1, subprocess.run(words, check=False).returncode
    return starts


if __name__ == "__main__":
    if reason := sshd_in_namespaces.unavailable():
        sys.exit(reason)
    what, *rest = sys.argv[1:] or ["latency"]
    with tempfile.TemporaryDirectory(prefix="wanbench-benchmark-") as name:
        {"latency": latency, "survey": survey, "kafka": kafka, "faults": faults}[what](
            Path(name), *map(int, rest)
        )
