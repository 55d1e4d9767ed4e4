"""Fault episodes on a cluster of three brokers in three regions: what is lost, and that everything comes back."""

from itertools import permutations

import pytest

from wanbench.experiments import KafkaFault
from wanbench.experiments.kafka_fault_faults import Fault
from wanbench.ingest import kafka_fault
from wanbench.kafka import Cluster
from wanbench.labs.local import LocalLab
from wanbench.links import LinkSettings

pytestmark = [pytest.mark.lab, pytest.mark.kafka]

REGIONS = ["eu", "us", "asia"]
SETTINGS = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 3000,
    "group.min.session.timeout.ms": 3000,
}
CLIENTS = {"session.timeout.ms": 4000, "heartbeat.interval.ms": 1000}


@pytest.fixture(scope="module")
def lab():
    with LocalLab(REGIONS, dict.fromkeys(permutations(REGIONS, 2), LinkSettings(10))) as opened:
        yield opened


@pytest.fixture(scope="module")
def own_cluster(lab):
    """Not the cluster that tests share: its brokers are killed, frozen and cut off."""
    with Cluster(lab, REGIONS, profile="functional", heap_mb=256, settings=SETTINGS) as started:
        yield started


def run(lab, folder, **changes):
    settings = {
        "before_s": 2.0,
        "fault_s": 6.0,
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
    read_back = [
        found[name].dropna(subset=keys).set_index(keys).index for name in ("fault_receipts", "fault_log")
    ]
    return [len(acknowledged.difference(index)) for index in read_back]


def in_sync(cluster):
    topics = cluster.ask(cluster.lab.host("eu"), "topics", internal=True)
    return all(set(p["isr"]) == set(p["replicas"]) for topic in topics for p in topic["partitions"])


@pytest.mark.parametrize(("fault", "at"), [("cut", "controller"), ("kill", "us"), ("freeze", "consumers")])
def test_with_all_acknowledgements_nothing_is_lost_and_everything_comes_back(
    lab, own_cluster, tmp_path, fault, at
):
    found = run(lab, tmp_path, fault=fault, at=at)
    row = found["faults"].iloc[0]
    assert lost(found) == [0, 0] and row.regions in REGIONS
    assert row.healthy_at_s > row.heal_done_at_s and in_sync(own_cluster) and not lab.cut_pairs
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
    for number, (fault, at) in enumerate([("cut", "us"), ("slow", "asia"), ("freeze", "us"), ("kill", "us")]):
        (folder := tmp_path / str(number)).mkdir()
        links = dict(lab.links)
        with pytest.raises(KeyboardInterrupt):
            run(lab, folder, fault=fault, at=at)
        assert not lab.cut_pairs and lab.links == links and all(own_cluster.runs(node) for node in (1, 2, 3))
    assert own_cluster.ask(lab.host("us"), "cluster")["brokers"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_clients_reach_a_cluster_with_mutual_tls(cluster, tmp_path, protocol):
    found = run(
        cluster.lab,
        tmp_path,
        fault="none",
        client_settings={"group.protocol": protocol},
        before_s=3.0,
        fault_s=2.0,
    )
    assert lost(found) == [0, 0] and found["faults"].group_protocol[0] == protocol
    stable = found["group_samples"].dropna(subset="member")
    assert set(stable.member) == {0, 1, 2} and set(stable.client_region) == set(REGIONS)
