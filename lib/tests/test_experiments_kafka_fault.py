"""Fault episodes: settings, faults begun and healed, and whole episodes with mock brokers in place of a cluster."""

import json
import re
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from mock_kafka import PARTITIONS, HereHost, MockCluster, RecordingLinks

from wanbench.errors import ParameterError
from wanbench.measure.experiments import ExperimentError, KafkaFault
from wanbench.measure.experiments import kafka_fault_session as session
from wanbench.measure.experiments.kafka_fault import FLAPS, KINDS, Fault, damaged
from wanbench.measure.kafka.programs import clients, fault_consumer, fault_producer
from wanbench.read.ingest import kafka_fault

REGIONS = ["eu", "us", "asia"]

# Settings


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"fault": "flood"}, "fault is 'flood'"),
        ({"at": ""}, "at is ''"),
        ({"at": "eu+eu"}, r"at is 'eu\+eu'"),
        ({"at": "eu+us+asia"}, "at is"),
        ({"at": "controller+eu"}, "a role cannot be joined"),
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
        ("cut-out", {("cut", "eu", "us"), ("cut", "eu", "asia")}, {("heal", "eu", "us"), ("heal", "eu", "asia")}),
        ("cut-in", {("cut", "us", "eu"), ("cut", "asia", "eu")}, {("heal", "us", "eu"), ("heal", "asia", "eu")}),
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


def test_a_flapping_region_is_cut_ten_times_in_equal_intervals(tmp_path):
    fault, links = fault_at(tmp_path, "flap", ["eu"])
    pauses = []
    fault.begin()
    fault.last(9.5, pauses.append)
    fault.heal()
    assert links.told == [("cut_region", "eu"), ("heal_region", "eu")] * FLAPS
    assert pauses == pytest.approx([0.5] * (2 * FLAPS - 1))


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


@pytest.mark.parametrize("error", [ExperimentError("no"), KeyboardInterrupt()])
def test_healing_again_does_what_failed_or_was_interrupted_and_nothing_else(tmp_path, error):
    fault, links = fault_at(tmp_path, "cut", ["us", "eu", "asia"], {("heal_region", "us"): error})
    fault.begin()
    with pytest.raises(type(error)):
        fault.heal()
    healed = [call for call in links.told if call[0] == "heal_region"]
    assert sorted(healed) == [("heal_region", name) for name in ("asia", "eu", "us")]
    links.fails, links.told = {}, []
    fault.heal()
    assert links.told == [("heal_region", "us")]


# Programs


class Answering:
    """A producer whose first delivery to each partition fails."""

    def __init__(self):
        self.sent, self.waiting = [], []

    def produce(self, topic, value, partition, on_delivery):
        error = None if partition in self.sent else "failed"
        self.sent.append(partition)
        self.waiting.append((on_delivery, error))

    def flush(self, timeout_s):
        for told, error in self.waiting:
            told(error, None)
        self.waiting = []
        return 0


def test_a_warm_up_whose_deliveries_fail_is_not_done(monkeypatch):
    arguments = SimpleNamespace(partitions=2, record_bytes=64, topic="t")
    producer = Answering()
    assert fault_producer.Schedule(producer, None, arguments).warm_up() == 0
    assert producer.sent == [0, 1, 0, 1]
    monkeypatch.setattr(clients, "WARM_UP_S", 0.01)
    assert fault_producer.Schedule(Answering(), None, arguments).warm_up() == 2


def test_a_member_reports_positions_of_the_partitions_that_it_has_when_they_change():
    said = []
    lines = SimpleNamespace(write=said.append, flush=lambda: None, now=lambda: 0)
    member = fault_consumer.Member(lines)
    member.report(lambda _: {})
    member.changed("assigned", [SimpleNamespace(partition=n) for n in (1, 2)])
    for _ in range(2):
        member.report(lambda numbers: dict.fromkeys(numbers, 7))
    member.changed("revoked", [SimpleNamespace(partition=1)])
    member.report(lambda _: {})
    assert [line for line in said if isinstance(line, dict)] == [
        {"positions": {}},
        {"positions": {1: 7, 2: 7}},
        {"positions": {2: 7}},
    ]


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
    assert set(found["fault_records"].producer) == {0, 1, 2}
    row = found["faults"].iloc[0]
    times = ["started_at_s", "fault_at_s", "fault_done_at_s", "heal_at_s", "heal_done_at_s", "ended_at_s"]
    assert row[times].is_monotonic_increasing and row.healthy_at_s >= row.heal_done_at_s
    assert (row.regions, row["at"], row.isna().error) == ("us", "controller", True)
    assert {"region": "us", "client": 1} in found["fault_clients"][["region", "client"]].to_dict("records")
    assert set(found["cluster_samples"].region) == set(found["group_samples"].region) == set(REGIONS)
    assert {file.path.rpartition(".")[2] for file in files} <= {"gz", "json", "txt"}


def test_damage_is_visible_in_the_tables(hosts, tmp_path):
    """
    In one region, with one consumer: the mock's groups forget positions in a rebalance. What one episode printed is
    kept with each damage in turn.
    """
    hosts[0].cluster.lab.hosts = {"eu": hosts[:1]}
    made = session.FaultSession(episode(fault="none", at=""), hosts[0], tmp_path, "t")
    made.run()
    assert len(lost(tables_of(tmp_path))) == 0
    wanted = {"drop": (1, 0, 0, 0), "duplicate": (0, 1, 0, 0), "reorder": (0, 0, 1, 0), "alter": (1, 0, 0, 1)}
    for kind in KINDS:
        made.settings, made.folder = replace(made.settings, damage=kind), tmp_path / kind
        made._done_damage = None
        made._keep(None)
        found, keys = tables_of(tmp_path / kind), ["producer", "sequence"]
        received = found["fault_receipts"]
        whole = received.dropna(subset=keys)
        orders = whole.groupby(["producer", "partition"]).sequence
        disordered = sum(not order.is_monotonic_increasing for _, order in orders)
        seen = len(lost(found)), whole.duplicated(keys).sum(), disordered, received.damaged.sum()
        assert seen == wanted[kind] and found["faults"].damage[0] == kind


def test_a_fault_is_healed_after_an_exception_and_what_was_measured_is_kept(hosts, tmp_path):
    hosts[0].links.fails = {("cut_region", "us"): KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        episode().run(hosts[0], hosts[1], tmp_path, "t")
    assert ("heal_region", "us") in hosts[0].links.told
    assert not any(process.is_running() for host in hosts for process in host.started)
    assert "KeyboardInterrupt" in tables_of(tmp_path)["faults"].error[0]


def kill_when_cut(host, program):
    """Have the first program of this name on a host end as soon as a region is cut."""

    def cut_region(region):
        next(p for p in host.started if p.is_running() and any(program in word for word in p.command)).kill()

    host.links.cut_region = cut_region


def test_a_program_that_fails_after_the_fault_began_is_a_result(hosts, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "COMPLETE_S", 0.5)
    for host in hosts:
        host.links = hosts[0].links
    kill_when_cut(hosts[0], "fault_consumer")
    episode(after_s=1).run(hosts[0], hosts[1], tmp_path, "t")
    row = tables_of(tmp_path)["faults"].iloc[0]
    # Either what started the program was killed with it, or it was left to say so: -9 or 9.
    assert re.match("consumer 0 on eu/0 ended with status -?9", row.incomplete) and row.isna().error


def test_an_end_of_the_log_that_is_never_replicated_is_a_result(hosts, tmp_path, monkeypatch):
    hosts[0].cluster.log_ends = [{"partition": 2, "high_watermark": 1, "end": 3}]
    monkeypatch.setattr(session, "REPLICATED_S", 0.5)
    monkeypatch.setattr(session, "COMPLETE_S", 0.5)
    monkeypatch.setattr(session.Health, "unread", lambda health, ends: [3])
    episode().run(hosts[0], hosts[1], tmp_path, "t")
    found = tables_of(tmp_path)
    row = found["faults"].iloc[0]
    assert "not all replicas have the complete log after 0.5 s: 2" in row.incomplete
    assert "did not read partitions 3" in row.incomplete and row.isna().error and len(found["fault_log"])


def test_health_that_does_not_hold_is_not_noted(hosts, tmp_path):
    class Flapping:
        looks = 0

        def look(self):
            self.looks += 1

        def group_since(self):
            if self.looks % 5 == 0:
                self.since = time.time()
                return None
            return self.since

        since = 0.0
        in_sync_since = led_as_preferred_since = flows = lambda self, after_s: after_s

    made = session.FaultSession(episode(after_s=3), hosts[0], tmp_path, "t")
    made._health, made._times = Flapping(), {"heal_done_at_s": time.time(), "fault_done_at_s": 0.0}
    made._await_health()
    assert "healthy_at_s" not in made._times and made._health.looks > 5


def test_a_cluster_that_stays_ill_is_no_error_but_was_not_seen_healthy(hosts, tmp_path):
    """The watchers see one replica too few from the beginning, so the episode cannot even start."""
    hosts[0].cluster.watched_isr = [[1, 2]] * PARTITIONS
    patience, session.READY_S = session.READY_S, 3.0
    try:
        with pytest.raises(ExperimentError, match="after 3 s not each of 4 partitions") as caught:
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
