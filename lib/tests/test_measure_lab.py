"""Measuring for real: ping and iperf3 between the namespaces of the local lab, also killed in the middle."""

import json
import signal
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from patience import comes_about

from wanbench.measure.campaign.execute import measure
from wanbench.measure.experiments import Iperf3, Ping
from wanbench.measure.labs import matrix_links
from wanbench.measure.labs.local import LocalLab
from wanbench.measure.plan import make_plan
from wanbench.runs import Run, overlaps

REGIONS = ["aws:r-1", "aws:r-2", "gcp:r-3", "gcp:r-4"]
RTTS = {pair: 10.0 + 5 * n for n, pair in enumerate(combinations(REGIONS, 2))}

pytestmark = pytest.mark.lab


def go(folder, *, pairs=None, experiments=None, **arguments) -> Run:
    experiments = experiments or [Ping(count=8, interval_s=0.05)]
    plan = make_plan(pairs=pairs, regions=REGIONS, experiments=experiments, rtt_ms=RTTS)
    lab = LocalLab(REGIONS, matrix_links(RTTS, rate_bps=50e6))
    options = {"data_folder": folder, "campaign": "test"}
    return measure(plan, lab, **{**options, **arguments})


def newest(folder) -> Run | None:
    found = list((Path(folder) / "raw/test").glob("*/journal.jsonl"))
    return Run.open(found[0].parent) if found and found[0].stat().st_size else None


def descendants(process_id: int) -> set[int]:
    out, waiting = set(), [process_id]
    while waiting:
        try:
            tasks = list(Path(f"/proc/{waiting.pop()}/task").iterdir())
            children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
        except OSError:
            continue
        waiting += set(children) - out
        out |= set(children)
    return out


def is_running(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_all_pairs_end_to_end(tmp_path):
    experiments = [Ping(count=5, interval_s=0.05), Iperf3(duration_s=1)]
    run = go(tmp_path, experiments=experiments)
    run.verify()
    assert len(overlaps(run)) == 0
    table = run.tests()
    assert list(table["outcome"]) == ["done"] * 12, list(table["reason"])
    for file in run.raw_files():
        text = (run.folder / file["path"]).read_bytes()
        if file["experiment"] == "ping":
            assert b"5 packets transmitted, 5 received" in text and file["command"][0] == "ping"
        elif file["path"].endswith(".json") and file["experiment"] == "iperf3":
            report = json.loads(text)
            assert report["end"]["sum_sent"]["bytes"] >= 300_000
            assert report["end"]["sum_received"]["bytes"] > 0
        elif file["experiment"] == "iperf3":
            assert file["path"].endswith(".server.txt") and b"receiver" in text
    (counters,) = [file for file in run.raw_files() if file["experiment"] == "links"]
    rows = json.loads((run.folder / counters["path"]).read_bytes())
    assert {(row["from_region"], row["to_region"]) for row in rows} == {
        (a, b) for a in REGIONS for b in REGIONS if a != b
    }
    assert run.lab["kind"] == "local" and run.links()
    lab_opened_again = go(tmp_path, experiments=experiments)
    assert lab_opened_again.folder == run.folder


def test_every_kind_of_transfer(tmp_path):
    kinds = [
        Iperf3(duration_s=1, streams=2, reverse=True, congestion_control="reno"),
        Iperf3(duration_s=1, udp=True, rate_bps=2e6, block_bytes=1200),
        Iperf3(duration_s=1, omit_s=1, window_bytes=65536, rate_bps=5e6, interval_s=0),
    ]
    for number, kind in enumerate(kinds):
        run = go(tmp_path / str(number), pairs=["aws:r-1->gcp:r-3"], experiments=[kind])
        assert list(run.tests()["outcome"]) == ["done"], list(run.tests()["reason"])
        report = json.loads((run.folder / run.raw_files()[0]["path"]).read_bytes())
        start = report["start"]["test_start"]
        assert start["protocol"] == ("UDP" if kind.udp else "TCP") and start["reverse"] == kind.reverse
        assert start["num_streams"] == kind.streams and start["omit"] == kind.omit_s


def test_a_cut_path_is_a_failed_test_with_its_reason_and_lost_echoes(tmp_path):
    ping, iperf3 = Ping(count=2, interval_s=0.05, wait_s=0.2), Iperf3(duration_s=1, connect_timeout_s=2)
    plan = make_plan(regions=REGIONS[:3], experiments=[ping, iperf3], rtt_ms=RTTS)

    class Cut(LocalLab):
        def __enter__(self):
            super().__enter__()
            self.cut("aws:r-1", "aws:r-2")
            return self

    lab = Cut(REGIONS, matrix_links(RTTS))
    run = measure(plan, lab, data_folder=tmp_path, campaign="test", retries=1)
    table = run.tests()
    failed = table[table["outcome"] == "failed"]
    assert {frozenset(ends) for ends in failed[["from_region", "to_region"]].to_numpy()} == {
        frozenset(["aws:r-1", "aws:r-2"])
    }
    assert len(failed) == 4 and set(failed["failed_experiment"]) == {"iperf3"}
    assert failed["reason"].str.contains("unable to connect").all()
    lost = [f for f in run.raw_files() if f["outcome"] == "failed" and f["experiment"] == "ping"]
    assert [f["returncode"] for f in lost] == [1] * 4
    assert b"0 received" in (run.folder / lost[0]["path"]).read_bytes()
    assert (table["outcome"] == "done").sum() == 4


CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {tests!r})
from test_measure_lab import go
go({folder!r})
"""


def test_killed_in_the_middle_nothing_is_lost_and_nothing_stays(tmp_path):
    numbers = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
    children, families = {}, []
    try:
        for number in numbers:
            code = CHILD.format(tests=str(Path(__file__).parent), folder=str(tmp_path / number.name))
            children[number] = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
        waiting = dict(children)

        def all_are_hit():
            """Each as soon as it has measured something, whichever comes first: it must not end before."""
            for number, child in list(waiting.items()):
                run = newest(tmp_path / number.name)
                begun = run and any(a.outcome == "done" for a in run.attempts())
                # While a ping ends, the kernel's list of children can be without others.
                family = descendants(child.pid)
                if child.poll() is not None or (begun and len(family) >= 2):
                    families.extend(family)
                    waiting.pop(number).send_signal(number)
            return not waiting

        assert comes_about(all_are_hit)
        ends = {number: child.wait(30) for number, child in children.items()}
    finally:
        for child in children.values():
            child.kill()
    assert len(families) >= 2 * len(numbers), "unshare and the supervisor of each lab, and perhaps pings"
    assert comes_about(lambda: not any(map(is_running, families)))
    assert ends == {signal.SIGKILL: -9, signal.SIGINT: -2, signal.SIGTERM: 143}
    for number in numbers:
        folder = tmp_path / number.name
        before = newest(folder)
        done = {(a.test_id, a.attempt) for a in before.attempts() if a.outcome == "done"}
        assert not before.finished and 0 < len(done) < 12
        assert (before.events()[-1]["event"] == "interrupted") == (number != signal.SIGKILL)
        run = go(folder)
        run.verify()
        table = run.tests()
        assert run.folder == before.folder and len(overlaps(run)) == 0
        assert table.loc[table["outcome"] == "done", "test_id"].value_counts().tolist() == [1] * 12
        assert "failed" not in set(table["outcome"])
        assert done <= set(zip(table["test_id"], table["attempt"], strict=True))
