"""Actions on the brokers of a cluster of their own: they happen, they are noted, and everything is as before."""

import json
from pathlib import Path

import pytest

from wanbench.change_detection import DetectorSettings
from wanbench.measure.experiments import BrokerAction, BrokerActions, KafkaOpenLoop, KafkaTrial
from wanbench.measure.kafka.leadership import leaders, partitions, under_replicated
from wanbench.pages.rolling_and_degraded.design import Detection
from wanbench.pages.tail_latency.latencies import of_open_loop
from wanbench.read.ingest import broker_actions, detection, kafka_open_loop

pytestmark = [pytest.mark.lab, pytest.mark.kafka]

TOPIC = "watched-by-actions"


@pytest.fixture
def lab(own_cluster):
    return own_cluster.lab


@pytest.fixture(scope="module", autouse=True)
def topic(own_cluster):
    own_cluster.create_topic(TOPIC, 3, 3, placement=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])


def seen(lab, cluster):
    return cluster.ask(lab.host("eu"), "topics", names=[TOPIC])


def orders(view):
    return [row["replicas"] for _, row in partitions(view)]


def carried_out(lab, folder, *actions, **settings):
    part = BrokerActions(actions, patience_s=180, duration_s=400, **settings)
    part.run(lab.host("eu"), lab.host("us"), folder, "t")
    found = broker_actions.read(folder / "broker_actions/t.actions.json")
    rows = found["broker_actions"]
    assert rows.error.isna().all(), rows.error.dropna().tolist()
    assert (rows.healthy_at_s >= rows.done_at_s).all() and (rows.done_at_s >= rows.began_at_s).all()
    return rows, found["cluster_samples"]


def test_a_broker_is_demoted_restarted_and_restored_and_leads_as_before(lab, own_cluster, tmp_path):
    before = seen(lab, own_cluster)
    actions = (BrokerAction(kind, 2) for kind in ("demote", "restart", "restore"))
    rows, samples = carried_out(lab, tmp_path, *actions)
    assert rows.kind.tolist() == ["demote", "restart", "restore"]
    assert rows.leaders_moved.iloc[0] >= 1  # its own partition of the topic, and Kafka's own
    after = seen(lab, own_cluster)
    assert orders(after) == orders(before) and leaders(after) == leaders(before)
    assert not under_replicated(after) and all(own_cluster.runs(node) for node in (1, 2, 3))
    ours = samples[samples.topic == TOPIC]
    demoted = ours[ours.at_s.between(rows.done_at_s.iloc[0], rows.began_at_s.iloc[1])]
    assert 2 not in set(demoted.leader) and (ours.n_isr == 2).any()


def test_kafkas_tool_empties_a_broker_and_fills_it_again_at_most_as_fast_as_its_throttle(lab, own_cluster, tmp_path):
    own_cluster.create_topic("moved", 3, 2, placement=[[1, 2], [2, 3], [3, 1]])
    actions = (BrokerAction("reassign", node, throttle_bytes_per_s=1e6) for node in (3, None))
    rows, samples = carried_out(lab, tmp_path, *actions)
    ours = samples[samples.topic == "moved"]
    emptied = ours[ours.at_s.between(rows.done_at_s.iloc[0], rows.began_at_s.iloc[1])]
    assert len(emptied) and not emptied.isr.str.contains("3").any()
    last = ours[ours.at_s < rows.done_at_s.iloc[1] + 1]
    assert sorted(last.groupby("partition").isr.last()) == ["1,2", "1,3", "2,3"]
    assert '"unmovable": 3' in rows.detail.iloc[0] and not under_replicated(seen(lab, own_cluster))
    assert not any("throttled" in name for name in own_cluster.ask(lab.host("eu"), "settings", broker=1))
    own_cluster.delete_topic("moved")


def test_what_passes_is_over_and_what_the_end_interrupts_is_undone(lab, own_cluster, tmp_path):
    before, links = seen(lab, own_cluster), dict(lab.links)
    flushed = {"topic_settings": {"flush.messages": 1}}
    load = KafkaOpenLoop(50, record_bytes=100, groups=1, duration_s=8, warmup_s=1, **flushed)
    actions = (
        BrokerAction("slow", 2, 0, 3, share=0.3),
        BrokerAction("disk", 1, 0, 4, disk_bytes_per_s=1e4),
        BrokerAction("link", 3, 0, 600, delay_ms=30.0),
        BrokerAction("skew", 1, 5),
        BrokerAction("restart", 1, 600),
    )
    trial = KafkaTrial(load, alongside=(BrokerActions(actions, patience_s=180),))
    trial.run(lab.host("us"), lab.host("eu"), tmp_path, "t")
    rows = broker_actions.read(tmp_path / "broker_actions/t.actions.json")["broker_actions"]
    assert rows.error.iloc[4] == "the load ended before the action was due"
    [slow, disk] = map(json.loads, rows.detail.iloc[:2])
    limits_disks = rows.error.isna().iloc[1] or "the kernel does not allow it" not in rows.error.iloc[1]
    if limits_disks:
        assert disk["by"] in ("cgroup v1", "cgroup v2") and disk["disk_bytes_per_s"] == 1e4
        # each record takes a page of 4 KiB or more of the disk
        received = kafka_open_loop.read(tmp_path / "kafka_open_loop/t.load.json")["open_loop_histograms"]
        assert of_open_loop(received).quantile(0.8) > 500
    assert rows.began_at_s.notna().tolist() == [True, True, True, True, False]
    # on a busy machine the load may end before all leaders have moved
    assert rows.done_at_s.notna().tolist() in [[True, limits_disks, True, moved, False] for moved in (True, False)]
    assert rows.detail.str.contains("cut_short").tolist()[:3] == [False, False, True]
    assert "by" in slow and dict(lab.links) == links
    after = seen(lab, own_cluster)
    assert orders(after) == orders(before) and leaders(after) == leaders(before)
    listed = [Path(lab.host(region).scratch, "control-groups") for region in ("eu", "us")]
    assert not any(Path(group).exists() for file in listed if file.exists() for group in file.read_text().split())


def test_the_broker_that_is_cut_back_is_named_and_demoted(lab, own_cluster, tmp_path):
    """
    Far links make a broker slow: 10 ms one way become 200, for 8 s; what lets every broker wait for less than 3 s, as a
    busy machine does, is no alarm. It leads all that it can by then, and what two parts of a trial have changed is
    in the end as it was before the first.
    """
    before = seen(lab, own_cluster)
    load = KafkaOpenLoop(20, record_bytes=100, groups=1, duration_s=17, warmup_s=1)
    actions = BrokerAction("skew", 3, 1), BrokerAction("link", 3, 9, 8, delay_ms=200.0)
    far = BrokerActions(actions, patience_s=180)
    detector = DetectorSettings(learn_s=6, window_s=0.3, shift=8.0, least_windows=10)
    trial = KafkaTrial(load, alongside=(Detection(detector, demote_on_alarm=True, settle_s=1), far))
    trial.run(lab.host("us"), lab.host("eu"), tmp_path, "t")
    found = detection.read(tmp_path / "detection/t.detection.json")
    [run] = found["detection_runs"].to_dict("records")
    assert run["brokers"] == "1,2,3" and len(found["detection_latencies"]) > 400 and not isinstance(run["error"], str)
    alarms = found["detections"]
    _, action = broker_actions.read(tmp_path / "broker_actions/t.actions.json")["broker_actions"].to_dict("records")
    named = alarms[(alarms.node_id == 3) & (alarms.at_s > action["in_force_at_s"])]
    assert len(named) and named.demoted_at_s.notna().any() and named.leaders_moved.max() >= 1
    after = seen(lab, own_cluster)
    assert orders(after) == orders(before) and leaders(after) == leaders(before)
