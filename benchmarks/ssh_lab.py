"""
Compare hosts reached by SSH with the same network namespaces entered directly.

An sshd runs in each namespace of a local lab. This needs root and openssh-server.

    python benchmarks/ssh_lab.py latency            commands by our connection, by ControlMaster, in the local lab
    python benchmarks/ssh_lab.py survey             page 02's survey, on both labs
    python benchmarks/ssh_lab.py kafka              Kafka loads, on both labs in turn
    python benchmarks/ssh_lab.py nine               page 06's preset ssh-nine-brokers, with small loads
    python benchmarks/ssh_lab.py faults [COUNT [SEED]]
                                                    kill the driver or an sshd, cut off or reboot a host, at random
"""

import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib" / "tests"))

import numpy as np
import ssh_driver
import sshd_in_namespaces
import yaml
from measured import record
from patience import comes_about
from scipy.stats import ttest_ind
from sshd_in_namespaces import OPERATOR, SshdLab

from wanbench import methods
from wanbench.measure import campaign, plan
from wanbench.measure.experiments import KafkaLoad, KafkaTrial
from wanbench.measure.labs import geodesic_links, matrix_links
from wanbench.measure.labs.ssh import SshLab
from wanbench.read import ingest
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
DRIVER_S = 9
"""About the time that the driver of the tests takes; faults occur within it."""


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
        ours, peer_s = rows["one kept connection"], rows["ControlMaster"]
        what = f"a command on a host {2 * delay_ms} ms away by SSH"
        record(what, 1000 * ours, "ms", peer="ControlMaster", of_peer=1000 * peer_s)


def timed(action, *arguments, times=30, **options):
    """Return the median duration (s) of an action."""
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
        print(name, methods.fit_rtt(pairs[name]).slope)
    columns = ["from_region", "to_region"]
    indexed = {name: table.set_index(columns).sort_index() for name, table in pairs.items()}
    for other in ("again", "ssh"):
        rtt = indexed[other].rtt_ms - indexed["local"].rtt_ms
        rate = indexed[other].throughput_bps / indexed["local"].throughput_bps
        low, middle, high = rtt.quantile([0.05, 0.5, 0.95])
        print(f"{other} less local, RTT: median {middle:.3f} ms, 90 % of pairs {low:.3f} to {high:.3f} ms")
        if other == "ssh":
            record("RTT of a pair over SSH less on the local lab, median", middle, "ms")
        low, middle, high = rate.quantile([0.05, 0.5, 0.95])
        print(f"{other} over local, throughput: median {middle:.4f}, 90 % of pairs {low:.4f} to {high:.4f}")


def kafka(folder):
    os.environ["WANBENCH_DATA"] = str(folder / "data")
    regions = ["aws:us-east-2", "aws:eu-west-1"]
    links = matrix_links({tuple(regions): 80.0}, rate_bps=100e6)
    sizes = {"cold start": 16_384, "16 KiB": 16_384, "64 KiB": 65_536}
    trials = [
        plan.Trial(name, (KafkaTrial(KafkaLoad(batch_bytes=sizes[name], duration_s=6, warmup_s=2, drain=False)),))
        for name in ("cold start", "16 KiB", "64 KiB", "64 KiB", "16 KiB")
    ]
    whole = plan.make_trials(trials, from_region=regions[0], to_region=regions[1], seed=1)
    options = {"brokers": [regions[1]], "cluster": {"profile": "functional", "heap_mb": 384}, "fresh": True}
    logs = {"ssh": [], "local": []}
    with SshdLab(folder, links, 10.0) as sshd:
        of = {"ssh": {"lab_options": {"inventory": str(sshd.inventory)}}, "local": {}}
        for kind in ("ssh", "local", "local", "ssh"):
            run = campaign.run(whole, links, lab=kind, campaign=kind, **of[kind], **options)
            tables = ingest.tabulate(run.folder)
            print(kind, {key: len(table) for key, table in sorted(tables.items()) if len(table)})
            logs[kind].append(methods.trial_rates(tables).rates)
    for name in list(sizes)[1:]:
        of_kind = {kind: np.log(by_setting(rates, name)) for kind, rates in logs.items()}
        test = ttest_ind(of_kind["ssh"], of_kind["local"], equal_var=False)
        low, high = np.exp(test.confidence_interval(0.95))
        ratio = np.exp(of_kind["ssh"].mean() - of_kind["local"].mean())
        rates = {kind: np.exp(values).round(1).tolist() for kind, values in of_kind.items()}
        means = {kind: np.exp(values.mean()) for kind, values in of_kind.items()}
        record(f"Kafka load over SSH, {name}", means["ssh"], "batches/s", peer="local lab", of_peer=means["local"])
        print(f"{name}: ssh over local {ratio:.3f} (95 % interval {low:.3f} to {high:.3f}), batches/s {rates}")


def by_setting(rates, name):
    """Return the batches/s of all trials of one setting."""
    return np.concatenate([one[one.setting == name].batches_per_s.to_numpy() for one in rates])


def nine(folder):
    top = Path(__file__).resolve().parents[1]
    preset = top / "papermill-params/06-geo-kafka/ssh-nine-brokers.yml"
    given = yaml.safe_load(preset.read_text())
    links = matrix_links(dict.fromkeys(combinations(given["regions"], 2), given["rtt_ms"]), rate_bps=100e6)
    small = {
        "rate_mbps": 100,
        "sysctls": {},
        "cluster": {"profile": "functional", "heap_mb": 256, "metrics": False, "start_timeout_s": 600},
        "producers": 3,
        "duration_s": 5,
        "warmup_s": 5,
        "replicates": 1,
        "factors": {"compression": ["lz4"], "consumer_groups": [1]},
    }
    with SshdLab(folder, links, 1.0, hosts_per_region=5) as sshd:
        file = folder / "nine.yml"
        file.write_text(yaml.safe_dump(given | small | {"lab_options": {"inventory": str(sshd.inventory)}}))
        words = [str(Path(sys.executable).with_name("wanbench")), "run", "06", "-f", str(file)]
        settings = {**os.environ, "WANBENCH_DATA": str(folder / "data")}
        for more in (["--dry"], []):
            subprocess.run([*words, *more], env=settings, cwd=top, check=True)
        assert comes_about(lambda: not sshd.left()), sshd.left()
    [run] = find(folder / "data")
    tables = ingest.tabulate(run.folder)
    print({key: len(table) for key, table in sorted(tables.items()) if len(table)})
    print(methods.trial_rates(tables).rates[["setting", "producers", "n_seconds", "records_per_s"]])


def faults(folder, count=50, seed=1):
    rng = random.Random(seed)
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
            failed = sum(one.outcome == "failed" for one in run.attempts())
            told[kind][1] += starts > 1 or failed > 0
            print(
                f"{number + 1:>3}. {kind} after {after_s:.1f} s: {starts} start(s), {failed} failed, nothing left",
                flush=True,
            )
    record("surveys over SSH complete after a fault, nothing left", count, f"of {count}", bound="all")
    for kind, (times, struck) in told.items():
        print(f"{kind}: {times} times, {struck} of them in the middle of a test or of opening")


def strike(sshd, kind, after_s, data, region):
    """Disturb a driver's first start after some time, and start it again until it ends well; return the starts."""
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
        studies = {"latency": latency, "survey": survey, "kafka": kafka, "nine": nine, "faults": faults}
        studies[what](Path(name), *map(int, rest))
