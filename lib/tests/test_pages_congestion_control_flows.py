"""CompetingFlows: what runs when, what is kept, and what tables make of it, on a real lab too."""

import json

import pytest
from scripted_lab import Reply, ScriptedLab, well

from wanbench.errors import MissingDataError, ParameterError
from wanbench.measure import campaign
from wanbench.measure.experiments import ExperimentError, Iperf3, Ping
from wanbench.measure.links import LinkSettings
from wanbench.measure.plan import in_blocks, make_trials
from wanbench.pages.congestion_control.competition import fairness, latency_under_load
from wanbench.pages.congestion_control.design import CompetingFlows
from wanbench.read import ingest

A, B = "aws:eu-west-1", "gcp:us-east1"
UP, DOWN = Iperf3(duration_s=2, omit_s=1), Iperf3(duration_s=2, omit_s=1, reverse=True)
PING = Ping(count=10, interval_s=0.1)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"flows": ()}, "flows is .*allowed: one or more flows"),
        ({"flows": (UP, Iperf3(duration_s=3, omit_s=1))}, "equal duration_s"),
        ({"flows": (Iperf3(duration_s=2),)}, "omit_s of at least 1"),
        ({"flows": (PING,)}, "flows is .*allowed: a tuple of Iperf3"),
        ({"flows": (UP,), "ping": Ping(count=100)}, r"ping is .*allowed: a Ping that takes at most 1\.5 s"),
        ({"flows": (UP,), "ping": PING, "off_s": -1}, "off_s is -1"),
    ],
)
def test_settings_are_checked(settings, said):
    with pytest.raises(ParameterError, match=said):
        CompetingFlows(**settings)


def test_what_is_expected_counts_both_directions():
    both = CompetingFlows(flows=(UP, UP, DOWN), ping=PING)
    assert both.expected_bytes(1.0) is None
    assert both.expected_bytes(0.0, 8e6) == pytest.approx(2 * 8e6 * 3 / 8, rel=0.03)
    assert both.expected_s(100) == pytest.approx(PING.expected_s(100) + UP.expected_s(100))


def test_a_flow_that_fails_fails_the_test_and_all_files_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("wanbench.pages.congestion_control.design._AFTER_START_S", -1.0)

    def script(host, command):
        fails = "-c" in command and "-R" in command
        return Reply(json.dumps({"error": "no route"}).encode(), returncode=1) if fails else well(host, command)

    flows = CompetingFlows(flows=(UP, DOWN), on_off=(UP,), off_s=0.01, ping=PING)
    with ScriptedLab([A, B], script) as lab, pytest.raises(ExperimentError, match="no route") as failure:
        flows.run(lab.host(A), lab.host(B), tmp_path, "1-a-b.1")
    assert all(process.stopped for process in lab.processes if "-s" in process.command[:2])
    kept = {file.path for file in failure.value.files}
    assert {"ping/1-a-b.1.idle.txt", "ping/1-a-b.1.loaded.txt"} <= kept
    assert {f"iperf3/1-a-b.1.{name}.json" for name in ("flow-1", "flow-2", "burst-1-1")} <= kept
    assert kept == {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*") if path.is_file()}


@pytest.mark.lab
@pytest.mark.slow
def test_flows_fill_the_queue_share_the_rate_and_come_and_go(tmp_path, monkeypatch):
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))
    link = LinkSettings(10, rate_bps=20e6, queue_bytes=250_000)  # a full queue takes 100 ms to drain
    flows = CompetingFlows(flows=(UP, UP, DOWN), on_off=(Iperf3(duration_s=1, rate_bps=1e6),), off_s=0.2, ping=PING)
    plan = make_trials(in_blocks({"both ways": flows}, replicates=2), from_region=A, to_region=B, rate_bps=20e6)
    run = campaign.run(plan, {(A, B): link, (B, A): link}, lab="local", campaign="competing")
    tables = ingest.read_run(run.folder)
    assert (tables["tests"].outcome == "done").all() and tables["unread"].empty
    delay = latency_under_load(tables["echoes"])
    assert delay.n == 2 and 20 < delay.estimate < 250, "queues of both directions, at most 100 ms each"
    share = fairness(tables["transfers"])
    assert share.n == 2 and 0.5 < share.estimate <= share.high <= 1
    with pytest.raises(MissingDataError, match="two or more reverse flows"):
        fairness(tables["transfers"], direction="reverse")
    bursts = tables["transfers"][tables["transfers"].source_file.str.contains("burst")]
    assert bursts.groupby("test_id").size().min() >= 2 and bursts.throughput_bps.max() < 1.2e6
    forward = tables["transfers"][tables["transfers"].source_file.str.contains("flow-[12]")]
    assert forward.groupby("test_id").throughput_bps.sum().max() < 20e6
