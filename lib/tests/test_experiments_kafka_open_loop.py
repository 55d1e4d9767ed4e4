"""Open-loop loads: settings, the schedule with made-up clients, and whole loads with mock brokers as the cluster."""

import json
import threading
import time
from collections import Counter
from types import SimpleNamespace

import pytest
from mock_kafka import PARTITIONS, HereHost, MockCluster

from wanbench.errors import ParameterError
from wanbench.measure.experiments import ExperimentError, KafkaLoad, KafkaOpenLoop, KafkaTrial, Ping, kafka_trial
from wanbench.measure.experiments import kafka_open_loop_session as session
from wanbench.measure.experiments.base import Load
from wanbench.measure.kafka.programs import open_loop_consumer, open_loop_producer
from wanbench.measure.kafka.programs.clients import HEAD, NS, RECORD, WARM_UP, bucket, elapsed_ns
from wanbench.read.ingest import kafka_open_loop

# Settings


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"rate_records_per_s": 0}, "rate_records_per_s is 0"),
        ({"record_bytes": 25}, "record_bytes is 25"),
        ({"acks": 2}, "acks is '2'"),
        ({"acks": 1, "idempotence": True}, "idempotence is True with acks '1'"),
        ({"transaction_ms": 100}, "transaction_ms is 100 without idempotence"),
        ({"transaction_ms": 2e3, "drain_s": 1, "idempotence": True}, "transaction_ms is 2000 with drain_s 1"),
        ({"joins_at_s": 3}, "joins_at_s is 3 with 1 consumers"),
        ({"consumers": 4}, "consumers is 4; allowed: at most 3"),
        ({"topics": 100}, "has 400 clients"),
        ({"placement": [[1]] * 3}, "KafkaOpenLoop placement"),
        ({"payload": "json", "record_bytes": 100}, "JSON records have at least 150"),
        ({"rate_records_per_s": 1e6, "duration_s": 1_000}, "would send 1,005,000,000 records"),
        ({"most_bytes": 1_000}, "most_bytes allows 1,000"),
        ({"producer_settings": {"linger.ms": 1}}, "give linger_ms"),
        ({"consumer_settings": {"sasl.password": "x"}}, "secret"),
    ],
)
def test_wrong_settings_are_refused(wrong, reason):
    with pytest.raises(ParameterError, match=reason):
        KafkaOpenLoop(**{"rate_records_per_s": 100} | wrong)


def test_it_stands_as_the_load_of_a_trial():
    load = KafkaOpenLoop(100, producer_settings={"retries": 3, "a": True})
    assert load == KafkaOpenLoop(100, producer_settings={"a": "true", "retries": "3"})
    assert isinstance(load, Load) and isinstance(KafkaLoad(), Load) and not isinstance(Ping(), Load)
    trial = KafkaTrial(load)
    assert trial.expected_bytes(80.0) == 2_500 * 2_048 and trial.expected_s(80.0) > 25
    with pytest.raises(ParameterError, match="KafkaTrial load"):
        KafkaTrial(Ping())


# The schedule


class Client:
    """A producer whose queue holds so many records, each acknowledged when `poll` is called `lag` times."""

    def __init__(self, room=10**9):
        self.room, self.waiting, self.sent = room, [], []
        self.open = True

    def produce(self, topic, value, partition, on_delivery):
        if len(self.waiting) >= self.room:
            raise BufferError
        self.sent.append((*HEAD.unpack_from(value), partition))
        self.waiting.append(on_delivery)

    def poll(self, timeout_s):
        time.sleep(0.002)
        while self.open and self.waiting:
            self.waiting.pop(0)(None, None)


class TransactionalClient(Client):
    """A client whose transactions take `commit_s`, in which it takes no record; the commits in `failing` fail."""

    def __init__(self, commit_s, failing=()):
        super().__init__()
        self.commit_s, self.failing, self.commits, self.aborts, self.begun = commit_s, failing, 0, 0, False

    def init_transactions(self):
        assert not self.begun

    def begin_transaction(self):
        assert not self.begun
        self.begun = True

    def produce(self, *record, **about):
        assert self.begun
        super().produce(*record, **about)

    def commit_transaction(self, timeout_s):
        self.begun, self.commits = False, self.commits + 1
        time.sleep(self.commit_s)
        if self.commits in self.failing:
            raise RuntimeError("fenced")

    def abort_transaction(self, timeout_s):
        self.aborts += 1


def process(rate, length_s, producers, in_all=None, drain_s=0.3, transaction_s=0.0):
    arguments = SimpleNamespace(
        number=0, partitions=3, rate=rate, length_s=length_s, drain_s=drain_s,
        producers_in_all=in_all or len(producers),
    )  # fmt: skip
    made = open_loop_producer.Process(arguments, [b"body"])
    for number, client in producers.items():
        made.producers.append(open_loop_producer.Producer(number, "t", client, made, transaction_s))
    return made


def run(made):
    made.run(time.time_ns() + 10_000_000)
    made.drain()
    *seconds, ended = made.report()
    return seconds, ended


def test_no_record_is_skipped_and_each_keeps_its_time():
    clients = {1: Client(), 3: Client()}
    made = process(400.0, 0.5, clients, in_all=4)
    [second], ended = run(made)
    for number, client in clients.items():
        assert [sequence for _, _, sequence, *_ in client.sent] == list(range(number, 200, 4))
        assert all(due == made.start_ns + elapsed_ns(n, 400.0) for _, _, n, due, *_ in client.sent)
        assert {kind for kind, *_ in client.sent} == {RECORD}
        assert max(Counter(partition for *_, partition in client.sent).values()) == 17, "in turn"
    assert ended["n_due"] == ended["n_handed"] == second["n_due"] == second["n_answered"] == 100
    assert sum(second["publish"][1::2]) == sum(second["late"][1::2]) == 100 and second["n_failed"] == 0


def test_a_stall_of_the_loop_is_the_generator_s(monkeypatch):
    """The loop oversleeps once by 200 ms: the records of that time are sent late, and say so."""
    made, naps, sleep = process(100.0, 1.0, {0: Client()}), [], time.sleep

    def nap(nap_s):
        naps.append(nap_s)
        sleep(0.2 if len(naps) == 5 else nap_s)

    monkeypatch.setattr(open_loop_producer.time, "sleep", nap)
    made.producers[0].client.poll = lambda _: (
        [made.producers[0].client.waiting.pop(0)(None, None)]
        if (sleep(0.001) or made.producers[0].client.waiting)
        else None
    )
    [second], _ = run(made)
    late = sum(n for value, n in zip(second["late"][::2], second["late"][1::2], strict=True) if value > 50)
    assert late >= 12 and second["late_max_us"] > 150_000
    slow = sum(n for value, n in zip(second["publish"][::2], second["publish"][1::2], strict=True) if value > 5_000)
    assert slow >= 12, "latency counts from when they were due"


def test_a_full_queue_is_the_system_s_and_holds_up_no_other_producer(monkeypatch):
    """By a clock that only the loop's sleeps move, so that a busy machine holds nothing up."""
    began_ns, loop = time.time_ns(), threading.get_ident()
    now_ns, waits_ns = [began_ns], []

    class Full(Client):
        def poll(self, timeout_s):
            assert threading.get_ident() != loop, "the loop waits for a full queue"
            time.sleep(0.002)

    class Prompt(Client):
        def produce(self, *record, on_delivery, **about):
            super().produce(*record, on_delivery=on_delivery, **about)
            self.waiting.pop()(None, None)
            waits_ns.append(now_ns[0] - self.sent[-1][3])

    def sleep(for_s):
        now_ns[0] += round(for_s * NS)
        assert now_ns[0] < began_ns + 60 * NS, "the loop does not end"

    monkeypatch.setattr(open_loop_producer, "time", SimpleNamespace(time_ns=lambda: now_ns[0], sleep=sleep))
    full, other = Full(room=5), Prompt()
    made = process(200.0, 1.0, {0: full, 1: other})
    [second], ended = run(made)
    assert len(full.sent) == 5 and len(other.sent) == 100
    assert max(waits_ns) < 1_000_000 and second["late_max_us"] < 1_000, "less than a tick"
    assert ended["n_due"] == 200 and ended["n_handed"] == 105 and second["n_answered"] == 100
    assert second["blocked_us"] == pytest.approx(950_000, rel=0.01), "since the sixth record of the full queue"
    assert second["backlog"] == 100
    assert sum(second["late"][1::2]) == 200, "how late the loop was is known of those that wait, too"


def test_records_count_as_acknowledged_when_their_transaction_is_committed():
    client = TransactionalClient(commit_s=0.05)
    made = process(200.0, 1.0, {0: client}, transaction_s=0.2)
    [second], ended = run(made)
    assert second["n_answered"] == ended["n_handed"] == 200 and second["n_failed"] == 0 and client.commits >= 3
    assert second["blocked_us"] > 50_000, "records wait while a transaction is committed"
    slow = sum(n for value, n in zip(second["publish"][::2], second["publish"][1::2], strict=True) if value > 50_000)
    assert slow > 100


def test_records_of_an_aborted_transaction_have_failed():
    client = TransactionalClient(commit_s=0.01, failing=(1, 2))
    made = process(200.0, 1.0, {0: client}, transaction_s=0.2)
    error, second, ended = (lines := made.run(time.time_ns()) or made.drain() or made.report())
    assert error["error"][:2] == ["RuntimeError", "fenced"] and client.aborts == 2 and len(lines) == 3
    assert second["n_failed"] == error["error"][2] > 20
    assert second["n_failed"] + second["n_answered"] == ended["n_handed"] == 200


def test_what_fails_is_counted():
    class Refusing(Client):
        def produce(self, *_, **__):
            raise ValueError("no")

    lines, ended = run(process(100.0, 0.1, {0: Refusing()}))
    assert lines[0] == {"error": ["ValueError", "no", 10]}
    assert lines[1]["n_failed"] == 10 and not lines[1]["n_answered"] and ended["n_handed"] == 10


def test_only_first_receipts_count():
    def message(sequence, intended_ns, process=0, kind=RECORD):
        value = HEAD.pack(kind, process, sequence, intended_ns, 0) + b"x"
        return SimpleNamespace(error=lambda: None, value=lambda: value, topic=lambda: "t", partition=lambda: 1)

    receipts = open_loop_consumer.Receipts(10.0, 20, [0, 5_000_000])
    receipts.take([message(3, 0), message(12, 0, process=1)], 10_000_000, 7_000_000)
    receipts.take([message(3, 0), message(4, 10 * NS)], NS, 0)
    receipts.take([message(0, 0, kind=WARM_UP), SimpleNamespace(error=lambda: None, value=lambda: b"?")], NS, 0)
    first, second, *_, ended = receipts.report()
    assert first["latency"] == [0, 1, 10_000 - 10_000 % 8, 1] and first["n_negative"] == 1
    assert (first["n_duplicates"], second["latency"], ended["n_received"]) == (1, [bucket(5_000), 1], 3)
    assert receipts.warm == {("t", 1)} and second["n_received_in"] == 1
    assert first["late"] == [0, 1, 70, 1] and second["late"] == [70, 1]


def test_a_record_waits_for_the_program_since_its_queue_was_last_empty(monkeypatch):
    """Two full batches lie in the queue, each takes 10 ms to count; a record for which `poll` waited is not late."""
    now = [0]
    monkeypatch.setattr(open_loop_consumer.time, "time_ns", lambda: now[0])
    queue, waited = [["a"] * open_loop_consumer.BATCH] * 2 + [["b"], [], []], []
    receipts = SimpleNamespace(stopped=False)

    def take(messages, at_ns, waited_ns):
        waited.append((len(messages), waited_ns))
        now[0] += 10_000_000
        receipts.stopped = not queue

    def poll(_):
        now[0] += 50_000_000
        return "c"

    receipts.take = take
    open_loop_consumer.receive(SimpleNamespace(consume=lambda *_: queue.pop(0), poll=poll), receipts)
    assert waited[:3] == [(500, 0), (500, 10_000_000), (1, 20_000_000)] and waited[3:] == [(1, 0)] * 2


# Whole loads


@pytest.fixture
def hosts(tmp_path):
    made = [HereHost(region, tmp_path) for region in ("eu", "us")]
    MockCluster(made)
    return made


SMALL = {
    "partitions": PARTITIONS, "replication": 1, "groups": 2, "record_bytes": 100, "duration_s": 1, "warmup_s": 1,
    "linger_ms": 1, "drain_s": 60,
}  # fmt: skip


def test_a_load_over_several_hosts_leaves_its_tables(hosts, tmp_path):
    load = KafkaOpenLoop(50, topics=2, producers=2, consumers=2, **SMALL)
    began = [time.time()]
    files = load.run_on(hosts, hosts, tmp_path, "s", when_sending=lambda: began.append(time.time()))
    names = sorted(file.path for file in files)
    assert [name for name in names if "stderr" not in name] == [
        f"kafka_open_loop/s.{what}"
        for what in (
            "consumer-0.jsonl.gz", "consumer-1.jsonl.gz", "load.json", "producer-0.jsonl.gz", "producer-1.jsonl.gz",
        )
    ]  # fmt: skip
    found = kafka_open_loop.read(tmp_path / "kafka_open_loop/s.load.json")
    [row] = found["open_loop_loads"].to_dict("records")
    assert row["n_intended"] == row["n_sent"] == row["n_acknowledged"] == row["n_received_per_group_min"] == 100
    assert row["clock_method"] == session.ONE_CLOCK and row["n_failed"] == row["n_duplicates"] == 0
    assert len(began) == 2 and began[0] < row["start_s"] < time.time()
    histograms = found["open_loop_histograms"]
    assert histograms.groupby(["what", "group"], dropna=False).n.sum().tolist() == [100] * 3
    assert not any(process.is_running() for host in hosts for process in host.started)


def test_a_trickle_ends_with_the_load_beside_it_and_loses_nothing(hosts, tmp_path):
    trickle = KafkaOpenLoop(50, **SMALL | {"duration_s": 1000, "groups": 1, "placement": [[1]] * PARTITIONS})
    with kafka_trial._trickling(trickle, hosts[0].cluster, hosts[:1], hosts[:1], tmp_path, "s") as files:
        time.sleep(1.3)
    assert "kafka_open_loop/s.load.json" in [file.path for file in files]
    [row] = kafka_open_loop.read(tmp_path / "kafka_open_loop/s.load.json")["open_loop_loads"].to_dict("records")
    assert row["n_intended"] == row["n_sent"] == row["n_acknowledged"] == row["n_received_per_group_min"] >= 65
    assert row["warmup_s"] + row["duration_s"] == pytest.approx(row["n_sent"] / 50) and row["n_sent"] < 40_000
    assert not any(process.is_running() for host in hosts for process in host.started)


def test_a_load_whose_programs_fail_says_why_and_is_a_row(hosts, tmp_path):
    load = KafkaOpenLoop(50, **SMALL, producer_settings={"no.such.setting": 1})
    with pytest.raises(ExperimentError, match=r"producer 0 on eu/0 ended with status 1.*no.such.setting") as error:
        load.run(*hosts, tmp_path, "s")
    assert "kafka_open_loop/s.load.json" in [file.path for file in error.value.files]
    [row] = kafka_open_loop.read(tmp_path / "kafka_open_loop/s.load.json")["open_loop_loads"].to_dict("records")
    assert "no.such.setting" in row["error"] and row["n_sent"] == 0
    assert not any(process.is_running() for host in hosts for process in host.started)


def test_clients_that_are_not_ready_in_time_are_named(hosts, tmp_path):
    load = KafkaOpenLoop(50, **SMALL | {"partitions": PARTITIONS + 1}, start_timeout_s=1)
    with pytest.raises(ExperimentError, match="not ready within 1 s: producer 0 on eu/0"):
        load.run(*hosts, tmp_path, "s")
    assert not any(process.is_running() for host in hosts for process in host.started)


def test_an_interrupt_stops_every_program_and_keeps_what_there_is(hosts, tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        KafkaOpenLoop(50, **SMALL).run(*hosts, tmp_path, "s", when_sending=interrupt)
    about = json.loads((tmp_path / "kafka_open_loop/s.load.json").read_text())
    assert about["error"].startswith("KeyboardInterrupt") and about["start_s"]
    assert not any(process.is_running() for host in hosts for process in host.started)
    assert kafka_open_loop.read(tmp_path / "kafka_open_loop/s.load.json")["open_loop_loads"].error.notna().all()


def test_a_clock_that_is_ahead_is_taken_off(hosts, tmp_path, monkeypatch):
    """The target's clock seems 10 minutes ahead; before it was read 1 ms less: that is the uncertainty."""
    readings = iter([session.Offset(600_000.0, 0.1, "read"), session.Offset(600_001.0, 0.1, "read")])
    monkeypatch.setattr(session, "share_clock", lambda *_: False)
    monkeypatch.setattr(session, "exchange", lambda *_, **__: (next(readings), []))
    KafkaOpenLoop(50, **SMALL | {"groups": 1}).run(*hosts, tmp_path, "s")
    found = kafka_open_loop.read(tmp_path / "kafka_open_loop/s.load.json")
    [row] = found["open_loop_loads"].to_dict("records")
    assert (row["clock_offset_ms"], row["clock_error_ms"]) == (600_000, pytest.approx(1.1))
    received = found["open_loop_histograms"].query("what == 'end to end'")
    assert received.n_negative.sum() == received.n.sum() == 100, "both read one clock here"
