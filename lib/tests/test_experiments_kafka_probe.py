"""The probe's settings and programs: records, the producer's schedule, the consumer's end."""

import json
from argparse import Namespace
from types import SimpleNamespace

import pytest

from wanbench.errors import ParameterError
from wanbench.experiments.kafka_probe import KafkaProbe
from wanbench.kafka.programs import probe_consumer, probe_producer, probe_record

# The record


@pytest.mark.parametrize("byte", range(probe_record.HEAD.size + 8))
def test_a_record_damaged_anywhere_is_known_to_be(byte):
    made = bytearray(probe_record.record(probe_record.PROBE, 5, 123, b"12345678"))
    made[byte] ^= 1
    assert probe_record.opened(bytes(made)) == (None, None, None, False)


# The producer's schedule


class Producer:
    """Answers at once, but what `slow` says takes so long to hand over."""

    def __init__(self, time, slow=None):
        self.time, self.slow, self.sent = time, slow or {}, []

    def send(self, topic, value, partition):
        _, sequence, intended_ns, _ = probe_record.opened(value)
        self.sent.append((self.time.now_ns, sequence, intended_ns, partition))
        self.time.now_ns += self.slow.get(sequence, 0)
        future = SimpleNamespace(add_errback=lambda call: None)
        future.add_callback = lambda call: call(SimpleNamespace(partition=partition, offset=sequence))
        return future


@pytest.fixture
def fake_time(monkeypatch):
    now = SimpleNamespace(now_ns=1_000_000_000)
    monkeypatch.setattr(probe_producer.time, "time_ns", lambda: now.now_ns)
    monkeypatch.setattr(
        probe_producer.time,
        "sleep",
        lambda s: setattr(now, "now_ns", now.now_ns + max(1, round(s * 1e9))),
    )
    return now


def probe_of(producer, **arguments):
    given = {"record_bytes": 64, "topic": "t", "partitions": 1, "stop_file": None, "drain_s": 1.0}
    return probe_producer.Probe([producer], Namespace(**given | arguments))


def test_a_record_that_holds_up_the_producer_delays_none_of_the_intended_times(fake_time, capfd):
    producer = Producer(fake_time, slow={2: 100_000_000})
    probe = probe_of(producer)
    start = fake_time.now_ns + 10_000_000
    probe.send(probe_producer.schedule(20, start, 10_000_000, set(), 0))
    probe.flush()
    assert [sequence for _, sequence, _, _ in producer.sent] == list(range(20))
    assert [intended - start for _, _, intended, _ in producer.sent] == [n * 10_000_000 for n in range(20)]
    late = {
        line[1]: line[3] for line in map(json.loads, capfd.readouterr().out.splitlines()) if line[0] == "sent"
    }
    assert late[2] == 0 and late[3] == pytest.approx(90, abs=1) and late[11] == pytest.approx(10, abs=1)
    assert late[13] < 1


def test_a_held_record_delays_no_other(fake_time):
    producer = Producer(fake_time)
    probe = probe_of(producer, partitions=3)
    start = fake_time.now_ns
    probe.send(probe_producer.schedule(10, start, 10_000_000, {4}, 35_000_000))
    at = {sequence: now - intended for now, sequence, intended, _ in producer.sent}
    assert at.pop(4) == pytest.approx(35e6, abs=1e5) and max(at.values()) < 1e5
    assert {sequence: partition for _, sequence, _, partition in producer.sent}[4] == 1


def test_what_the_cluster_refuses_is_said_and_the_next_is_sent(fake_time, capfd):
    class Refusing(Producer):
        def send(self, topic, value, partition):
            super().send(topic, value, partition)
            raise ValueError("no")

    probe = probe_of(Refusing(fake_time))
    probe.send(probe_producer.schedule(3, fake_time.now_ns, 1_000_000, set(), 0))
    probe.flush()
    printed = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line[1] for line in printed if line[0] == "failed"] == [0, 1, 2] and printed[1][
        3
    ] == "ValueError: no"
    assert not probe.outstanding


def test_the_stop_file_ends_the_schedule(fake_time, tmp_path):
    producer = Producer(fake_time)
    probe = probe_of(producer, stop_file=str(tmp_path / "stop"))
    (tmp_path / "stop").touch()
    probe.send(probe_producer.schedule(1_000, fake_time.now_ns, 10_000_000, set(), 0))
    assert 5 < len(producer.sent) < 20 and probe.stopped_ns


def test_what_came_due_before_the_stop_is_still_sent(fake_time, tmp_path):
    """The record that is held goes out when its time comes; no send time before the stop is left without a record."""
    producer = Producer(fake_time)
    probe = probe_of(producer, stop_file=str(tmp_path / "stop"))
    (tmp_path / "stop").touch()
    start = fake_time.now_ns
    probe.send(probe_producer.schedule(1_000, start, 10_000_000, {3}, 500_000_000))
    due = -(-(probe.stopped_ns - start) // 10_000_000)
    assert sorted(sequence for _, sequence, _, _ in producer.sent) == list(range(due)) and due < 20
    assert producer.sent[-1][:2] == (start + 530_000_000, 3)


class Forgetful:
    """A consumer that gets its partitions from its second subscription alone, as kafka-python now and then."""

    def __init__(self):
        self.calls = []

    def assignment(self):
        return {0, 1} if self.calls == ["unsubscribe", ["t"]] else set()

    def poll(self, timeout_ms):
        return {}

    def unsubscribe(self):
        self.calls.append("unsubscribe")

    def subscribe(self, topics):
        self.calls.append(topics)


def test_a_consumer_without_partitions_joins_its_group_anew(monkeypatch):
    monkeypatch.setattr(probe_consumer, "REJOIN_S", 0.01)
    consumer = Forgetful()
    probe_consumer.join(consumer, "t", 2, probe_consumer.Receipts(2, shift_ns=0))
    assert consumer.calls == ["unsubscribe", ["t"]]


def test_the_consumer_ends_when_every_partition_said_so(capfd):
    def batch(partition, *values):
        return {
            partition: [SimpleNamespace(value=v, partition=partition, offset=n) for n, v in enumerate(values)]
        }

    receipts = probe_consumer.Receipts(2, shift_ns=10**18)
    end = probe_record.record(probe_record.END, 0, 0, b"")
    receipts.take(batch(0, probe_record.record(probe_record.WARM_UP, 0, 0, b""), end))
    assert not receipts.complete
    receipts.take(batch(1, probe_record.record(probe_record.PROBE, 3, 77, b"x"), b"garbage", None, end))
    assert receipts.complete
    receipts.flush()
    printed = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [(line[1], line[2], line[4], line[5], line[6]) for line in printed] == [
        (3, 77, 1, 0, True), (None, None, 1, 1, False), (None, None, 1, 2, False),
    ]  # fmt: skip
    assert printed[0][3] > 2.7e18


# Settings


@pytest.mark.parametrize(
    "wrong",
    [
        {"interval_s": 0}, {"record_bytes": 10}, {"acks": 1}, {"groups": 0}, {"hold_share": 2}, {"duration_s": "1"},
        {"partitions": True}, {"placement": ((1,), (2,))}, {"placement": ((1, 2),)}, {"producers": 0},
        {"client_rack": 1}, {"group_protocol": "consumer"}, {"idempotence": True, "acks": "1"}, {"start_timeout_s": 0},
        {"placement": "near"},
    ],
)  # fmt: skip
def test_settings_are_checked(wrong):
    with pytest.raises(ParameterError, match=f"KafkaProbe {next(iter(wrong))} is"):
        KafkaProbe(**wrong)


def test_what_it_costs_is_expected():
    probe = KafkaProbe(interval_s=0.1, duration_s=10, record_bytes=1000)
    assert probe.records == 100 and 100_000 < probe.expected_bytes(50) < 150_000
    assert 10 < probe.expected_s(50) < 30 and "100 records" in str(probe)


def test_a_placement_is_kept_as_tuples_and_apart_is_named_where_it_is_allowed():
    probe = KafkaProbe(placement=[[1]])
    assert probe.placement == ((1,),) and hash(probe) == hash(KafkaProbe(placement=((1,),)))
    with pytest.raises(ParameterError, match="or 'apart'"):
        KafkaProbe(placement="Apart")
    with pytest.raises(ParameterError, match="placement is"):
        KafkaProbe(placement=((True,),))
