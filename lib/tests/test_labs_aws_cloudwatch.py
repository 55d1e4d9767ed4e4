"""Metrics of CloudWatch: asked for page by page, throttled, late or refused; kept without ids; read into tables."""

import json
import os
import signal
import threading
from datetime import UTC, datetime

import pytest
from botocore.stub import ANY, Stubber
from measuring import REGIONS, go, plan_of
from scripted_lab import ScriptedLab

from wanbench.errors import ParameterError
from wanbench.measure.campaign import execute
from wanbench.measure.labs.aws import clients, cloudwatch
from wanbench.measure.labs.aws.cloudwatch import CloudWatch, Watched
from wanbench.methods.lab.utilisation import circuit_windows
from wanbench.read import ingest
from wanbench.read.ingest import cloudwatch as reader

VPN = Watched("vpn", "eu-west-1", "vpn-0abc", "tunnel to Azure")
ACCOUNT = "123456789012"
NOW_S = 1_600_000_123


@pytest.fixture
def aws(monkeypatch):
    """An account whose answers are given in order, and pauses that take no time."""
    for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cloudwatch, "POLL_S", 0.0)
    monkeypatch.setattr(cloudwatch, "now_utc", lambda: datetime.fromtimestamp(NOW_S, UTC).isoformat())
    account = clients.Aws()
    with Stubber(account.client("cloudwatch", "eu-west-1")) as stubber:
        account.stubber = stubber
        yield account


def opened(periods, period_s=300):
    """A session that began so many whole periods before the last one ended, and the starts of these periods."""
    now = NOW_S // period_s * period_s
    starts = [now - n * period_s for n in range(periods, 0, -1)]
    return datetime.fromtimestamp(starts[0] + 1, UTC).isoformat(), starts


def answer(starts, *values, number=0, **more):
    times = [datetime.fromtimestamp(at, UTC) for at in starts]
    results = [
        {"Id": f"q{number}", "Label": "x", "Timestamps": times, "Values": list(values), "StatusCode": "Complete"} | more
    ]
    return {"MetricDataResults": results}


def joined(*answers):
    return {"MetricDataResults": [each for one in answers for each in one["MetricDataResults"]]}


def kept(folder, aws, *resources, at, patience_s=60):
    [file] = CloudWatch(resources, aws=aws, patience_s=patience_s).keep(folder, "session-1.1", at)
    assert file.path == "cloudwatch/session-1.1-1.cloudwatch.json"
    return folder / file.path


def test_pages_are_joined_after_throttling_and_lateness(aws, tmp_path):
    at, starts = opened(2)
    aws.stubber.add_client_error("get_metric_data", "Throttling", "Rate exceeded")
    aws.stubber.add_response(
        "get_metric_data", joined(answer(starts[:1], 1.0), answer([], number=1), answer([], number=2))
    )
    asked = dict.fromkeys(("MetricDataQueries", "StartTime", "EndTime"), ANY) | {"ScanBy": "TimestampAscending"}
    first = answer(starts[:1], 3_000_000.0) | {"NextToken": "more"}
    aws.stubber.add_response("get_metric_data", first, asked)
    rest = joined(
        answer(starts[1:], 6_000_000.0), answer(starts, 1.0, 2.0, number=1), answer(starts, 1.0, 1.0, number=2)
    )
    aws.stubber.add_response("get_metric_data", rest, asked | {"NextToken": "more"})
    path = kept(tmp_path, aws, VPN, at=at)
    aws.stubber.assert_no_pending_responses()
    assert "vpn-0abc" not in path.read_text()
    tables = ingest.read_files([path], "cloudwatch")
    metrics = tables["metrics"]
    assert tables["unread"].empty and metrics[metrics.metric == reader.MISSING].value.sum() == 0
    assert metrics[metrics.metric == "TunnelDataIn"].value.tolist() == [3e6, 6e6]
    windows = circuit_windows(metrics, capacity_bps=1e6)
    into = windows[windows.link_from == "tunnel to Azure"]
    assert into.carried_bps.tolist() == [80_000, 160_000] and into.utilisation.tolist() == [0.08, 0.16]
    assert into.start_s.tolist() == starts


def test_missing_data_points_are_said(aws, tmp_path, capsys):
    at, starts = opened(3, 60)
    instance = Watched("instance", "eu-west-1", "i-0abc", "eu-west-1/0", period_s=60)
    aws.stubber.add_response("get_metric_data", answer(starts[::2], 5.0, 7.0))
    metrics = reader.read(kept(tmp_path, aws, instance, at=at, patience_s=0))["metrics"]
    assert metrics[metrics.metric == "CPUUtilization"].value.tolist() == [5.0, 7.0]
    missing = metrics[metrics.metric == reader.MISSING].set_index("subject").value
    assert missing["eu-west-1/0 CPUUtilization"] == 1 and missing["eu-west-1/0 NetworkIn"] == 3
    assert "lacks" in capsys.readouterr().err and set(metrics.host) == {"eu-west-1/0"}


def test_a_refusal_is_written_down_without_the_account(aws, tmp_path, capsys):
    at, _ = opened(1)
    text = f"User: arn:aws:iam::{ACCOUNT}:user/eve is not authorized"
    aws.stubber.add_client_error("get_metric_data", "AccessDenied", text)
    path = kept(tmp_path, aws, VPN, at=at)
    unread = ingest.read_files([path], "cloudwatch")["unread"]
    assert "no metrics of tunnel to Azure" in unread.found[0] and "AccessDenied" in unread.found[0]
    assert ACCOUNT not in path.read_text() + capsys.readouterr().err


def test_what_a_run_keeps_is_hashed_and_in_its_tables(aws, tmp_path):
    watched = [CloudWatch([VPN], aws=aws)]
    run = go(tmp_path, ScriptedLab(REGIONS), plan_of(), watched=watched)
    run.verify()
    assert [each["path"] for each in run.raw_files()][-1] == "cloudwatch/session-1.1-1.cloudwatch.json"
    assert set(ingest.read_run(run.folder)["metrics"].subject) >= {"tunnel to Azure TunnelDataIn"}


def test_an_interruption_ends_the_wait_and_keeps_what_there_is(aws, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cloudwatch, "POLL_S", 60.0)
    at, starts = opened(2)
    told, pressed = aws.pages, threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))

    def asked(*arguments, **how):
        if not pressed.ident:
            pressed.start()
        return told(*arguments, **how)

    monkeypatch.setattr(aws, "pages", asked)
    monkeypatch.setattr(execute, "now_utc", lambda: at)
    aws.stubber.add_response("get_metric_data", answer(starts[:1], 7.0))
    aws.stubber.add_response("get_metric_data", answer(starts, 8.0, 9.0))
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, ScriptedLab(REGIONS), plan_of(), watched=[CloudWatch([VPN, VPN], aws=aws)])
    assert "CloudWatch lacks 5 data points of tunnel to Azure" in capsys.readouterr().err
    # All is measured: the next call only finishes the run.
    run = go(tmp_path, lab := ScriptedLab(REGIONS), plan_of())
    assert run.finished and not lab.opened
    metrics = ingest.read_run(run.folder)["metrics"]
    assert metrics[metrics.metric == "TunnelDataIn"].value.tolist() == [7.0, 8.0, 9.0]


def test_brokers_are_asked_one_by_one():
    series = Watched("msk", "eu-west-1", "wanbench-1", "msk", brokers=3).series()
    packets = [each for each in series if each["metric"] == "NetworkRxPackets"]
    assert [each["dimensions"] for each in packets] == [
        {"Cluster Name": "wanbench-1", "Broker ID": str(node)} for node in (1, 2, 3)
    ]
    tunnel = Watched("vpn", "eu-west-1", "192.0.2.1", "t").series()[0]
    assert tunnel["dimensions"] == {"TunnelIpAddress": "192.0.2.1"}


def test_a_session_shorter_than_a_period_asks_nothing(aws, tmp_path):
    at = datetime.fromtimestamp(NOW_S - 1, UTC).isoformat()
    assert reader.read(kept(tmp_path, aws, VPN, at=at))["metrics"].value.sum() == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "s3"}, "allowed: 'msk', 'instance'"),
        ({"id": f"arn:aws:kafka:eu-west-1:{ACCOUNT}:cluster/x"}, "without the account"),
        ({"name": f"of {ACCOUNT}"}, "without the account"),
        ({"period_s": 90}, "a multiple of 60"),
        ({"kind": "msk"}, "brokers is 0"),
    ],
)
def test_what_is_refused(given, said):
    with pytest.raises(ParameterError, match=said) as refused:
        Watched(**{"kind": "vpn", "region": "eu-west-1", "id": "vpn-1", "name": "t"} | given)
    assert ACCOUNT not in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[[1, 2.0]]", "[[1, 2.0], [1, 2.0]]", "after the previous one"),
        ("[[1, 2.0]]", '[[1, "2"]]', "after the previous one"),
        ("[[1, 2.0]]", "7", "a list of pairs"),
        ('"metric"', '"metrics"', "without metric"),
        ('"missing": 0', '"missing": -1', "a whole number from 0"),
        ('"period_s": 60', '"period_s": 0', "without period_s"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, old, new, said):
    series = {
        "metric": "m",
        "statistic": "Sum",
        "unit": "",
        "period_s": 60,
        "node_id": None,
        "missing": 0,
        "points": [[1, 2.0]],
    }
    text = json.dumps({"name": "n", "kind": "vpn", "error": None, "series": [series]})
    path = tmp_path / "x.cloudwatch.json"
    path.write_text(text)
    assert len(reader.read(path)["metrics"]) == 2
    assert old in text
    path.write_text(text.replace(old, new))
    unread = ingest.read_files([path], "cloudwatch")["unread"]
    assert said in unread.expected[0] + unread.found[0]
