"""Fault episodes on a cluster of three brokers in three regions: what is lost, and that everything comes back."""

import pytest
from patience import comes_about

from wanbench.measure.experiments import KafkaFault
from wanbench.measure.experiments.kafka_fault import Fault
from wanbench.measure.kafka.java_commands import PROFILES
from wanbench.read.ingest import kafka_fault

pytestmark = [pytest.mark.lab, pytest.mark.kafka]

REGIONS = ["eu", "us", "asia"]
CLIENTS = {"session.timeout.ms": 4000, "heartbeat.interval.ms": 1000}


@pytest.fixture
def lab(own_cluster):
    return own_cluster.lab


def run(lab, folder, **changes):
    settings = {
        "before_s": 1.0,
        "fault_s": 8.0,
        "quiet_s": 0.0,
        "after_s": 120.0,
        "topic_settings": {"min.insync.replicas": 2},
    }
    episode = KafkaFault(**settings | {"client_settings": CLIENTS} | changes)
    episode.run(lab.host("eu"), lab.host("us"), folder, "t")
    return kafka_fault.read(folder / "kafka_fault/t.fault.json")


def lost(found):
    """Records that were acknowledged and never received, or are not in the log."""
    keys = ["producer", "sequence"]
    acknowledged = found["fault_records"].dropna(subset="acknowledged_at_s").set_index(keys).index
    assert len(acknowledged) > 100
    read_back = [found[name].dropna(subset=keys).set_index(keys).index for name in ("fault_receipts", "fault_log")]
    return [len(acknowledged.difference(index)) for index in read_back]


def in_sync(cluster):
    topics = cluster.ask(cluster.lab.host("eu"), "topics", internal=True)
    return all(set(p["isr"]) == set(p["replicas"]) for topic in topics for p in topic["partitions"])


@pytest.mark.parametrize(("fault", "at"), [("cut", "controller"), ("kill", "us")])
def test_with_all_acknowledgements_nothing_is_lost_and_everything_comes_back(lab, own_cluster, tmp_path, fault, at):
    found = run(lab, tmp_path, fault=fault, at=at)
    row = found["faults"].iloc[0]
    assert lost(found) == [0, 0] and row.regions in REGIONS
    assert row.healthy_at_s > row.heal_done_at_s and in_sync(own_cluster)
    assert all(own_cluster.runs(node) for node in (1, 2, 3))
    hit = 1 + REGIONS.index(row.regions)
    samples = found["cluster_samples"].dropna(subset="isr")
    seen = samples[samples.region != row.regions]
    assert (~seen.isr.str.contains(str(hit))).any()
    assert "fenced" in set(found["controller_events"].kind)


def test_a_fault_is_healed_when_something_else_fails(lab, own_cluster, tmp_path, monkeypatch):
    begin = Fault.begin

    def failing(fault):
        begin(fault)
        raise KeyboardInterrupt

    monkeypatch.setattr(Fault, "begin", failing)
    links = dict(lab.links)
    with pytest.raises(KeyboardInterrupt):
        run(lab, tmp_path, fault="freeze", at="us", before_s=0.5)
    assert lab.links == links and all(own_cluster.runs(node) for node in (1, 2, 3))
    assert own_cluster.ask(lab.host("us"), "cluster")["brokers"]


def test_the_end_of_a_log_is_above_the_high_watermark_until_replicas_have_it(lab, own_cluster):
    host, topic = lab.host("eu"), "log-ends"
    own_cluster.ask(host, "create_topic", name=topic, placement=[[1, 2]])
    arguments = ["--topic", topic, "--num-records", "50", "--record-size", "100", "--throughput", "-1"]
    # Not the frozen broker: a client that happens to ask it first waits for half a minute.
    arguments += ["--bootstrap-server", f"{host.address}:9092", "--command-property", "acks=1"]
    if (file := own_cluster.client_file(host)) is not None:
        arguments += ["--command-config", file]
    producer = "org.apache.kafka.tools.ProducerPerformance"
    produce = own_cluster.java(host, producer, *arguments, heap_mb=64, jvm=PROFILES["functional"])
    own_cluster.freeze(2)
    try:
        host.run(produce, timeout_s=60)
        [row] = own_cluster.ask(host, "log_ends", topic=topic)
    finally:
        own_cluster.thaw(2)
    assert row["end"] == 50 >= row["high_watermark"]
    wanted = [{"partition": 0, "high_watermark": 50, "end": 50}]
    assert comes_about(lambda: own_cluster.ask(host, "log_ends", topic=topic) == wanted)
