"""Settings of broker actions and detections, what a view makes of samples, and what the readers make of the files."""

import gzip
import hashlib
import json
from dataclasses import asdict

import pytest

from wanbench.change_detection import DetectorSettings
from wanbench.errors import ParameterError, RawDataError
from wanbench.measure.experiments import BrokerAction, BrokerActions, KafkaOpenLoop, KafkaTrial
from wanbench.measure.experiments.base import ConcurrentExperiment
from wanbench.measure.experiments.broker_actions_session import ClusterView
from wanbench.pages.rolling_and_degraded.design import Detection
from wanbench.read.ingest import broker_actions, detection

DEMOTE = BrokerAction("demote", 1)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kind": "stop"}, "kind"),
        ({"kind": "slow", "node_id": 1, "share": 1.0}, "share"),
        ({"kind": "slow", "node_id": 1, "disk_credit_bytes": 1e6}, "with 'disk' only"),
        ({"kind": "disk", "node_id": 1}, "disk_bytes_per_s is None; allowed: a rate"),
        ({"kind": "disk", "node_id": 1, "disk_bytes_per_s": 9e3}, "disk_bytes_per_s"),
        ({"kind": "link", "node_id": 1}, "changes nothing"),
        ({"kind": "slow", "node_id": 1, "loss": 0.1}, "kind 'link' only"),
        ({"kind": "rebalance", "node_id": 1}, "node_id"),
        ({"kind": "restart", "node_id": 1, "throttle_bytes_per_s": 1e6}, "'reassign' only"),
        ({"kind": "kill", "node_id": 1, "for_s": 0}, "for_s"),
        ({"kind": "kill", "node_id": "1"}, "node_id"),
    ],
)
def test_actions_that_cannot_be_are_refused(settings, said):
    with pytest.raises(ParameterError, match=said):
        BrokerAction(**settings)


@pytest.mark.parametrize(
    ("actions", "rolling"),
    [
        ((), False),
        (("demote",), False),
        ((DEMOTE,), True),
        ((BrokerAction("demote"),), False),
        ((BrokerAction("rebalance"),), True),
        ((BrokerAction("reassign"),), True),
    ],
)
def test_schedules_that_cannot_be_are_refused(actions, rolling):
    with pytest.raises(ParameterError):
        BrokerActions(actions, rolling=rolling)


def test_both_stand_beside_a_load_and_their_settings_are_json():
    beside = (BrokerActions((DEMOTE, BrokerAction("restore", 1, 5))), Detection())
    assert all(isinstance(each, ConcurrentExperiment) and each.waits_for_load for each in beside)
    trial = KafkaTrial(KafkaOpenLoop(100), alongside=beside)
    assert json.loads(json.dumps(asdict(trial)))["alongside"][0]["actions"][0]["kind"] == "demote"
    assert "demote broker 1 at 0 s, restore broker 1 at 5 s" in str(trial)


def test_what_is_expected_grows_with_the_actions():
    one = BrokerActions((BrokerAction("kill", for_s=5),), rolling=True)
    assert one.expected_s(0) > 15 and one.expected_bytes(0) == 0
    assert BrokerActions((BrokerAction("slow", 1, at_s=10, for_s=20),)).expected_s(0) == 30


@pytest.mark.parametrize("wrong", [{"detector": "cusum"}, {"interval_s": 5.0}, {"demote_on_alarm": 1}])
def test_detections_that_cannot_be_are_refused(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        Detection(**wrong)


class Printed:
    """A watcher that has printed these samples."""

    def __init__(self, samples):
        self.samples = samples

    def new_lines(self):
        taken, self.samples = self.samples, []
        return taken


def sample(at_s, isr=(1, 2), brokers=(1, 2), leader=1):
    row = {"partition": 0, "leader": leader, "replicas": [1, 2], "isr": list(isr)}
    return {
        "at_s": at_s, "took_s": 0.01, "node_id": 1, "brokers": list(brokers),
        "topics": [{"name": "t", "partitions": [row]}],
    }  # fmt: skip


def failed(at_s):
    return {"at_s": at_s, "took_s": 1.0, "error": {"kind": "Gone", "message": "nobody"}}


def test_healthy_is_what_holds_for_a_while():
    view = ClusterView(Printed([sample(n / 2) for n in range(1, 5)]), [1, 2])
    view.look()
    assert view.healthy_since(0.0) == 0.5 and view.healthy_since(0.6) == 1.0
    assert view.healthy_since(1.8) is None  # not for long enough yet


@pytest.mark.parametrize("ill", [sample(2.0, isr=[1]), sample(2.0, brokers=[1]), sample(2.0, leader=None), failed(2.0)])
def test_health_begins_anew_after_what_is_not_healthy(ill):
    after = [sample(2.5 + n / 2) for n in range(4)]
    view = ClusterView(Printed([sample(0.5), sample(1.0), sample(1.5), ill, *after]), [1, 2])
    view.look()
    assert view.healthy_since(0.0) == 2.5


def kept(folder, stem, role, lines):
    """A file of lines, as the sessions keep it, and how the first file names it."""
    packed = gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines), mtime=0)
    (folder / f"{stem}.{role}-0.jsonl.gz").write_bytes(packed)
    return {
        "role": role, "number": 0, "region": "eu", "host": "eu/0", "started_at_s": 1.0, "ended_at_s": 2.0,
        "killed": False,
        "file": {"name": f"{stem}.{role}-0.jsonl.gz", "sha256": hashlib.sha256(packed).hexdigest()},
    }  # fmt: skip


def actions_file(folder, view, **changes):
    row = {
        "number": 1, "node_id": 2, "kind": "slow", "for_s": 5.0, "asked_at_s": 10.0, "began_at_s": 10.1,
        "in_force_at_s": 10.2, "done_at_s": 15.2, "healthy_at_s": None, "leaders_moved": 0,
        "how": {"by": "cgroup v1", "share": 0.1}, "error": None,
    }  # fmt: skip
    about = {
        "format": 1,
        "settings": {"rolling": False},
        "actions": [row | changes],
        "programs": [kept(folder, "1", "watch", [json.loads(line) for line in view.lines])],
    }
    path = folder / "1.actions.json"
    path.write_text(json.dumps(about))
    return path


def test_actions_and_samples_are_read_as_they_were_written(tmp_path):
    view = ClusterView(Printed([sample(1.0), sample(1.5), sample(2.0, isr=[1]), failed(2.5)]), [1, 2])
    view.look()
    found = broker_actions.read(actions_file(tmp_path, view))
    [row] = found["broker_actions"].to_dict("records")
    assert (row["node_id"], row["kind"], row["for_s"], row["rolling"]) == (2, "slow", 5.0, False)
    assert json.loads(row["detail"])["by"] == "cgroup v1"
    samples = found["cluster_samples"]
    assert samples.isr.fillna("").tolist() == ["1,2", "1,2", "1", ""]
    assert samples.topic.iloc[0] == "t" and samples.error.iloc[3] == "Gone: nobody"


@pytest.mark.parametrize("wrong", [{"kind": "explode"}, {"asked_at_s": -1}, {"node_id": 1.5}, {"number": None}])
def test_damaged_actions_are_refused(tmp_path, wrong):
    view = ClusterView(Printed([sample(1.0)]), [1, 2])
    view.look()
    with pytest.raises(RawDataError):
        broker_actions.read(actions_file(tmp_path, view, **wrong))


PROBED = [
    {"program": "detection probe", "format": 1, "origin_ns": 10**18, "nodes": "1,2", "client": ["2.5.0", 1]},
    {"ready": 5},
    [0, 1000, 8000],
    ["error", 3, "FAIL", "broken"],
    [1, 2000, None, "late"],
    [0, 3000, 9000],
    [1, 2000, 1500000, "after"],
    [1, 4000, None, "late"],
    {"ended": 9, "due": 4},
]


def detection_file(folder, lines=PROBED, **changes):
    alarm = {
        "at_s": 1e9, "broker": 2, "statistic": 4.0, "limit": 4.0, "since_s": 1e9 - 3, "ratio": 3.0, "n_alarmed": 1,
        "named_at_s": 1e9 + 0.2, "demoted_at_s": None, "leaders_moved": None, "error": None,
        "baseline": {"centre": 2.3, "spread": 0.2, "phi": 0.1, "n": 60, "allowance": 1.0, "limit": 4.0},
    }  # fmt: skip
    about = {
        "format": 1, "settings": asdict(Detection()), "nodes": [1, 2], "began_at_s": 1e9, "ended_at_s": 1e9 + 100,
        "alarms": [alarm], "faults": [], "programs": [kept(folder, "1", "probe", lines)],
    }  # fmt: skip
    path = folder / "1.detection.json"
    path.write_text(json.dumps(about | changes))
    return path


def test_a_detection_is_read_with_every_latency_once(tmp_path):
    found = detection.read(detection_file(tmp_path))
    rows = found["detection_latencies"]
    assert rows.node_id.tolist() == [1, 2, 1, 2] and rows.late.tolist() == [False, True, False, True]
    assert rows.latency_ms.tolist()[:3] == [8.0, 1500.0, 9.0] and rows.latency_ms.isna().tolist()[3]
    assert rows.known_at_s.iloc[1] == pytest.approx(1e9 + 1.002)
    assert rows.error.fillna("").tolist() == ["", "", "", "no answer"]
    [run] = found["detection_runs"].to_dict("records")
    assert DetectorSettings(learn_s=run["learn_s"]) == Detection().detector
    [alarm] = found["detections"].to_dict("records")
    assert (alarm["node_id"], alarm["ratio"]) == (2, 3.0)


@pytest.mark.parametrize("line", [[2, 0, 5], [0, -1, 5], [0, 1, None], [0, 1, 5, 7], {}, [0, 1]])
def test_damaged_latencies_are_refused(tmp_path, line):
    if line == {}:
        detection.read(detection_file(tmp_path, [*PROBED, line]))
        return
    with pytest.raises(RawDataError):
        detection.read(detection_file(tmp_path, [*PROBED, line]))


def test_damaged_alarms_are_refused(tmp_path):
    with pytest.raises(RawDataError):
        detection.read(detection_file(tmp_path, alarms=[{"broker": 1}]))
