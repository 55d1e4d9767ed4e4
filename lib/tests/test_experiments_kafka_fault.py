"""Fault episodes: settings, faults begun and healed, and whole episodes with mock brokers in place of a cluster."""

import json

import pytest
from mock_kafka import PARTITIONS, HereHost, MockCluster, RecordingLinks

from wanbench.errors import ParameterError
from wanbench.experiments import ExperimentError, KafkaFault
from wanbench.experiments.kafka_fault_faults import Fault
from wanbench.experiments.kafka_fault_planted import KINDS, damaged
from wanbench.ingest import kafka_fault

REGIONS = ["eu", "us", "asia"]

# Settings


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"fault": "flood"}, "fault is 'flood'"),
        ({"at": ""}, "at is ''"),
        ({"at": "eu+eu"}, r"at is 'eu\+eu'"),
        ({"at": "eu+us+asia"}, "at is"),
        ({"at": "controller+eu"}, "a role stands alone"),
        ({"fault": "none"}, "at is 'eu'"),
        ({"acks": "2"}, "acks is '2'"),
        ({"damage": "burn"}, "damage is 'burn'"),
        ({"records_per_s": 0}, "records_per_s is 0"),
        ({"record_bytes": 3}, "record_bytes is 3"),
        (
            {"topic_settings": {"min.insync.replicas": 4}},
            "min.insync.replicas is '4'; allowed: a whole number from 1 to 3",
        ),
        ({"topic_settings": {"min.insync.replicas": "two"}}, "min.insync.replicas is 'two'"),
        ({"client_settings": {"acks": "1"}}, "acks"),
        ({"client_settings": {"sasl.password": "x"}}, "secret"),
        ({"broker_settings": 3}, "broker_settings"),
    ],
)
def test_wrong_settings_are_refused(wrong, reason):
    with pytest.raises(ParameterError, match=reason):
        KafkaFault(**{"fault": "cut", "at": "eu"} | wrong)


def test_settings_are_json_and_equal_ones_are_equal():
    one = KafkaFault("cut", "eu", topic_settings={"b": 1, "a": True})
    assert one == KafkaFault("cut", "eu", topic_settings={"a": "true", "b": "1"})
    assert one.topic_settings == (("a", "true"), ("b", "1")) and one.broker_settings is None
    assert KafkaFault("none").expected_s(50) > 10


# Faults


def fault_at(tmp_path, kind, regions, fails=()):
    host = HereHost("eu", tmp_path)
    host.links = RecordingLinks(REGIONS, fails)
    return Fault(kind, host, regions, []), host.links


@pytest.mark.parametrize(
    ("kind", "begun", "healed"),
    [
        ("cut", {("cut_region", "eu")}, {("heal_region", "eu")}),
        (
            "cut-out",
            {("cut", "eu", "us"), ("cut", "eu", "asia")},
            {("heal", "eu", "us"), ("heal", "eu", "asia")},
        ),
        (
            "cut-in",
            {("cut", "us", "eu"), ("cut", "asia", "eu")},
            {("heal", "us", "eu"), ("heal", "asia", "eu")},
        ),
        ("none", set(), set()),
    ],
)
def test_a_fault_is_begun_once_and_healed_once(tmp_path, kind, begun, healed):
    fault, links = fault_at(tmp_path, kind, ["eu"])
    fault.begin()
    assert set(links.told) == begun and len(links.told) == len(begun)
    fault.heal()
    fault.heal()
    assert set(links.told) == begun | healed and len(links.told) == len(begun) + len(healed)


def test_slow_links_become_what_they_were(tmp_path):
    fault, links = fault_at(tmp_path, "slow", ["eu"])
    fault.begin()
    fault.heal()
    pairs = [("eu", "us"), ("us", "eu"), ("eu", "asia"), ("asia", "eu")]
    assert sorted(links.told) == sorted(("set_link", *pair) for pair in pairs * 2)


def test_a_fault_that_fails_half_way_is_healed_everywhere(tmp_path):
    fails = {("cut_region", "us"): ExperimentError("no"), ("heal_region", "us"): ExperimentError("still no")}
    fault, links = fault_at(tmp_path, "cut", ["us", "eu"], fails)
    with pytest.raises(ExperimentError, match="no"):
        fault.begin()
    with pytest.raises(ExperimentError, match="still no"):
        fault.heal()
    assert {("heal_region", "us"), ("heal_region", "eu")} <= set(links.told)


# Damage

RECEIPTS = [["received", 0, n, n % 2, n // 2, 1_000 * n, False] for n in range(10)]
PRINTED = b"".join(json.dumps(receipt, separators=(",", ":")).encode() + b"\n" for receipt in RECEIPTS)


@pytest.mark.parametrize("kind", KINDS)
def test_damage_changes_one_record_and_says_which(kind):
    altered, about = damaged(b'{"origin_ns":1}\n' + PRINTED, kind)
    lines = [json.loads(line) for line in altered.splitlines()][1:]
    [hit] = [receipt for receipt in RECEIPTS if receipt[1:3] == [about["producer"], about["sequence"]]]
    numbers = [line[2] for line in lines]
    if kind == "drop":
        assert hit not in lines and len(lines) == 9
    elif kind == "duplicate":
        assert lines.count(hit) == 2 and len(lines) == 11
    elif kind == "alter":
        assert None in numbers and hit not in lines and len(lines) == 10
    else:
        assert sorted(numbers) == list(range(10)) and numbers.index(hit[2]) > numbers.index(hit[2] + 2)


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_no_damage_where_there_is_no_record(kind):
    assert damaged(b'{"origin_ns":1}\n', kind) == (b'{"origin_ns":1}\n', None)


# Episodes


@pytest.fixture
def hosts(tmp_path):
    made = [HereHost(region, tmp_path) for region in REGIONS]
    for host in made:
        host.links = RecordingLinks(REGIONS)
    MockCluster(made)
    yield made
    for host in made:
        for process in host.started:
            process.stop()


def episode(**changes):
    short = {"before_s": 0.5, "fault_s": 0.5, "after_s": 60, "quiet_s": 0.5, "partitions": PARTITIONS}
    short["client_settings"] = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}
    return KafkaFault(**{"fault": "cut", "at": "us", **short} | changes)


def tables_of(folder):
    return kafka_fault.read(folder / "kafka_fault/t.fault.json")


def lost(found):
    """Records that were acknowledged and never received."""
    keys = ["producer", "sequence"]
    acknowledged = found["fault_records"].dropna(subset="acknowledged_at_s").set_index(keys).index
    return acknowledged.difference(found["fault_receipts"].dropna(subset=keys).set_index(keys).index)


def test_an_episode_loses_nothing_where_nothing_fails(hosts, tmp_path):
    files = episode(at="controller").run(hosts[0], hosts[1], tmp_path, "t")
    assert hosts[0].links.told == [("cut_region", "us"), ("heal_region", "us")]
    assert not any(process.is_running() for host in hosts for process in host.started)
    found = tables_of(tmp_path)
    assert len(lost(found)) == 0 and len(found["fault_records"]) > 30
    assert found["fault_records"].acknowledged_at_s.notna().all()
    assert len(found["fault_log"]) == len(found["fault_records"])
    assert set(found["fault_records"].producer) == {0, 1, 2} == set(found["fault_assignments"].consumer)
    row = found["faults"].iloc[0]
    times = ["started_at_s", "fault_at_s", "fault_done_at_s", "heal_at_s", "heal_done_at_s", "ended_at_s"]
    assert row[times].is_monotonic_increasing and row.healthy_at_s >= row.heal_done_at_s
    assert (row.regions, row["at"], row.isna().error) == ("us", "controller", True)
    assert {"region": "us", "client": 1} in found["fault_clients"][["region", "client"]].to_dict("records")
    assert set(found["cluster_samples"].region) == set(found["group_samples"].region) == set(REGIONS)
    assert {file.path.rpartition(".")[2] for file in files} <= {"gz", "json", "txt"}


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_visible_in_the_tables(hosts, tmp_path, kind):
    """In one region, with one consumer: the mock's groups forget positions in a rebalance."""
    hosts[0].cluster.lab.hosts = {"eu": hosts[:1]}
    episode(fault="none", at="", damage=kind).run(hosts[0], hosts[1], tmp_path, "t")
    found, keys = tables_of(tmp_path), ["producer", "sequence"]
    received = found["fault_receipts"]
    whole = received.dropna(subset=keys)
    orders = whole.groupby(["producer", "partition"]).sequence
    disordered = sum(not order.is_monotonic_increasing for _, order in orders)
    seen = len(lost(found)), whole.duplicated(keys).sum(), disordered, received.damaged.sum()
    wanted = {"drop": (1, 0, 0, 0), "duplicate": (0, 1, 0, 0), "reorder": (0, 0, 1, 0), "alter": (1, 0, 0, 1)}
    assert seen == wanted[kind] and found["faults"].damage[0] == kind


def test_a_fault_is_healed_after_an_exception_and_what_was_measured_is_kept(hosts, tmp_path):
    hosts[0].links.fails = {("cut_region", "us"): KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        episode().run(hosts[0], hosts[1], tmp_path, "t")
    assert ("heal_region", "us") in hosts[0].links.told
    assert not any(process.is_running() for host in hosts for process in host.started)
    assert "KeyboardInterrupt" in tables_of(tmp_path)["faults"].error[0]


def test_a_cluster_that_stays_ill_is_no_error_but_was_not_seen_healthy(hosts, tmp_path):
    """The watchers see one replica too few from the beginning, so the episode cannot even start."""
    hosts[0].cluster.watched_isr = [[1, 2]] * PARTITIONS
    import wanbench.experiments.kafka_fault_session as session

    patience, session.READY_S = session.READY_S, 3.0
    try:
        with pytest.raises(ExperimentError, match="not ready after 3 s") as caught:
            episode().run(hosts[0], hosts[1], tmp_path, "t")
    finally:
        session.READY_S = patience
    assert caught.value.files and tables_of(tmp_path)["faults"].healthy_at_s.isna().all()


@pytest.mark.parametrize(
    ("changes", "error", "reason"),
    [
        ({"at": "mars"}, ParameterError, "no region mars; it has eu, us, asia"),
        ({"replication": 4, "at": "eu"}, ParameterError, "replication is 4; allowed: up to 3"),
        ({"fault": "kill"}, ExperimentError, "cannot be killed"),
        ({"fault": "freeze"}, ExperimentError, "cannot be frozen"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(hosts, tmp_path, changes, error, reason):
    with pytest.raises(error, match=reason):
        episode(**changes).run(hosts[0], hosts[1], tmp_path, "t")
    assert not any(host.started for host in hosts) and not hosts[0].links.told


def test_a_lab_that_cannot_cut_is_refused(hosts, tmp_path):
    hosts[0].links = None
    with pytest.raises(ExperimentError, match="no emulated links"):
        episode().run(hosts[0], hosts[1], tmp_path, "t")
    hosts[0].cluster = hosts[1].cluster = None
    with pytest.raises(ExperimentError, match="no Kafka cluster"):
        episode().run(hosts[0], hosts[1], tmp_path, "t")
