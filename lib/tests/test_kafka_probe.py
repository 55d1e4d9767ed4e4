"""The probe: its settings and programs, what reads them, and on a link of known delay whether it is right."""

import contextlib
import json
import os
import signal
import time
from argparse import Namespace
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import probe_samples as samples
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripted_lab import ScriptedLab

from wanbench import kafka, tables
from wanbench.errors import ParameterError, RawDataError
from wanbench.experiments import ExperimentError, clock
from wanbench.experiments.kafka_probe import KafkaProbe
from wanbench.ingest import kafka_probe, probe_files, probe_histograms
from wanbench.kafka import probe_consumer, probe_producer, probe_record
from wanbench.labs.local import LocalLab
from wanbench.links import LinkSettings
from wanbench.stats import tails

NO_LAB = LocalLab.unavailable()
READ: set[str] = set()
FUZZ = settings(
    max_examples=250,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def whole(name, core):
    """The core columns as a whole table, checked."""
    context = {"run_id": None, "test_id": None, "attempt": None, "from_region": None, "to_region": None}
    rows = [context | {"source_file": "a"} | row for row in core.astype(object).to_dict("records")]
    rows = [{k: None if v is pd.NA or v != v else v for k, v in row.items()} for row in rows]
    return tables.from_rows(name, rows)


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


def probe_of(producer, **words):
    given = {"record_bytes": 64, "topic": "t", "partitions": 1, "stop_file": None, "drain_s": 1.0}
    return probe_producer.Probe([producer], Namespace(**given | words))


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
    said = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line[1] for line in said if line[0] == "failed"] == [0, 1, 2] and said[1][3] == "ValueError: no"
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
    said = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [(line[1], line[2], line[4], line[5], line[6]) for line in said] == [
        (3, 77, 1, 0, True), (None, None, 1, 1, False), (None, None, 1, 2, False),
    ]  # fmt: skip
    assert said[0][3] > 2.7e18


# Settings


@pytest.mark.parametrize(
    "wrong",
    [
        {"interval_s": 0}, {"record_bytes": 10}, {"acks": 1}, {"groups": 0}, {"hold_share": 2}, {"duration_s": "1"},
        {"partitions": True}, {"placement": ((1,), (2,))}, {"placement": ((1, 2),)}, {"producers": 0},
    ],
)  # fmt: skip
def test_settings_are_checked(wrong):
    with pytest.raises(ParameterError, match=f"KafkaProbe {next(iter(wrong))} is"):
        KafkaProbe(**wrong)


def test_what_it_costs_is_expected():
    probe = KafkaProbe(interval_s=0.1, duration_s=10, record_bytes=1000)
    assert probe.records == 100 and 100_000 < probe.expected_bytes(50) < 150_000
    assert 10 < probe.expected_s(50) < 30 and "100 records" in str(probe)


def test_a_lab_without_a_cluster_cannot_be_probed(tmp_path):
    with ScriptedLab(["a", "b"]) as lab, pytest.raises(ExperimentError, match="no Kafka cluster"):
        KafkaProbe().run(lab.host("a"), lab.host("b"), tmp_path, "0001.1")


# Reading


def test_everything_well(tmp_path):
    path = samples.write(
        tmp_path, samples.producer(), samples.consumer([samples.receipt(n, 25 + n) for n in range(4)])
    )
    found = kafka_probe.read(path)
    records = found["probe_records"]
    assert records.latency_ms.tolist() == [25, 26, 27, 28] and not records.clock_limited.any()
    assert (records.acknowledged_at_s - records.sent_at_s).round(6).tolist() == [0.03] * 4
    [row] = found["probes"].to_dict("records")
    assert {name: row[name] for name in row if name.startswith("n_")} == {
        "n_intended": 4, "n_sent": 4, "n_acknowledged": 4, "n_received": 4, "n_missing": 0, "n_duplicates": 0,
        "n_damaged": 0, "n_negative": 0, "n_clock_limited": 0,
    }  # fmt: skip
    for name, core in found.items():
        whole(name, core)


def test_what_goes_wrong_is_counted_and_stays(tmp_path):
    """A lost record, a refused one, one that came twice, one damaged, and two groups of which one missed a record."""
    producer = samples.producer(
        6, sent=[0, 1, 2, 3, 4, 5], acknowledged=[0, 1, 2, 3], failed=[(4, "E: no"), (5, "E: x")]
    )
    first = [
        samples.receipt(0, 20),
        samples.receipt(2, 20, right=False),
        samples.receipt(3, 20),
        samples.receipt(0, 90),
    ]
    second = [samples.receipt(n, 30) for n in (0, 1, 2, 3, 5)]
    found = kafka_probe.read(
        samples.write(tmp_path, producer, samples.consumer(first), samples.consumer(second))
    )
    [row] = found["probes"].to_dict("records")
    assert (row["n_intended"], row["n_sent"], row["n_acknowledged"], row["n_received"]) == (6, 6, 4, 3)
    assert (row["n_missing"], row["n_duplicates"], row["n_damaged"]) == (1, 1, 1)
    records = found["probe_records"].set_index(["sequence", "group"]).sort_index()
    assert records.loc[(0, 0), "latency_ms"].tolist() == [20, 90]
    assert records.loc[(0, 0), "duplicate"].tolist() == [False, True]
    assert records.loc[(2, 0), "damaged"] and records.loc[(2, 0), "latency_ms"] == 20
    never = found["probe_records"].query("sequence == 4")
    assert never.group.isna().all() and never.latency_ms.isna().all() and never.error.tolist() == ["E: no"]
    assert found["probe_records"].query("sequence == 5").group.tolist() == [1]


def test_negative_and_uncertain_latencies_are_marked_and_stay(tmp_path):
    receipts = [samples.receipt(n, ms) for n, ms in enumerate((105.0, 101.0, 99.0, 150.0))]
    path = samples.write(
        tmp_path, samples.producer(), samples.consumer(receipts), clock=(100.0, 3.0, "asked")
    )
    found = kafka_probe.read(path)
    assert found["probe_records"].latency_ms.tolist() == [5, 1, -1, 50]
    assert found["probe_records"].clock_limited.tolist() == [False, True, True, False]
    [row] = found["probes"].to_dict("records")
    assert (row["n_negative"], row["n_clock_limited"], row["clock_offset_ms"]) == (1, 2, 100)
    assert found["histograms"].n.sum() == 4 and found["histograms"].n_negative.sum() == 1


def test_without_clocks_there_is_no_latency(tmp_path):
    path = samples.write(
        tmp_path,
        samples.producer(),
        samples.consumer([samples.receipt(0, 20)]),
        clock=(None, None, "not known"),
    )
    found = kafka_probe.read(path)
    assert found["probe_records"].latency_ms.isna().all() and found["probes"].n_received[0] == 1
    assert found["histograms"].empty


@pytest.mark.parametrize(
    ("stopped_after_ms", "ended", "due"), [(None, True, 10), (45, True, 3), (40, True, 2), (None, False, 2)]
)
def test_only_send_times_that_came_are_intended(tmp_path, stopped_after_ms, ended, due):
    stopped_ns = None if stopped_after_ms is None else samples.START_NS + stopped_after_ms * 1_000_000
    producer = samples.producer(10, sent=[0, 1], stopped_ns=stopped_ns, ended=ended)
    found = kafka_probe.read(samples.write(tmp_path, producer, samples.consumer([samples.receipt(0, 20)])))
    assert found["probes"].n_intended[0] == due == len(found["probe_records"])


def test_a_program_that_was_killed_is_read_up_to_there(tmp_path):
    producer = samples.producer(4, ended=False)[:-7]
    found = kafka_probe.read(
        samples.write(tmp_path, producer, samples.consumer([samples.receipt(0, 20)])[:-9])
    )
    assert found["probes"].n_acknowledged[0] == 3 and found["probes"].n_received[0] == 1


def test_windows_add_up_to_the_whole(tmp_path):
    rng = np.random.default_rng(1)
    latencies = np.round(rng.lognormal(3, 1, 2_000), 3)
    receipts = [samples.receipt(n, ms) for n, ms in enumerate(latencies)]
    found = kafka_probe.read(samples.write(tmp_path, samples.producer(2_000), samples.consumer(receipts)))
    windows = found["histograms"]
    assert windows.window.tolist() == [0, 1, 2, 3] and windows.n.tolist() == [500] * 4
    merged = HdrHistogram(1, 3_600_000_000, 3)
    for text in windows.histogram:
        merged.decode_and_add(text)
    at_once = HdrHistogram.decode(probe_histograms.encoded(latencies * 1_000))
    assert merged.get_total_count() == 2_000
    for q in (0.5, 0.9, 0.99, 0.999):
        exact = np.quantile(latencies, q, method="inverted_cdf") * 1_000
        assert merged.get_value_at_percentile(100 * q) == at_once.get_value_at_percentile(100 * q)
        assert merged.get_value_at_percentile(100 * q) == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda p, f: p.write_text("[]"), "a probe in JSON"),
        (lambda p, f: p.write_text("{"), "a probe in JSON"),
        (lambda p, f: p.write_text('{"format": 2}'), "format 1"),
        (lambda p, f: f.write_bytes(f.read_bytes() + b"x"), "SHA-256"),
        (lambda p, f: f.unlink(), "can be read"),
        (
            lambda p, f: p.write_text(p.read_text().replace("0001.1.producer", "../producer")),
            "beside this one",
        ),
    ],
)
def test_a_damaged_probe_is_refused(tmp_path, change, expected):
    path = samples.write(tmp_path, samples.producer(), samples.consumer([samples.receipt(0, 20)]))
    change(path, tmp_path / "0001.1.producer.jsonl")
    with pytest.raises(RawDataError) as error:
        kafka_probe.read(path)
    assert expected in error.value.expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('["received", 9, 1, 1, 0, 0, true]', "a sequence with the intended time"),
        ('["received", 0, 1, 1, 0, 0, true]', "a sequence with the intended time"),
        ('["received", 0, 1, 1, 0, 0]', "a line of a probe's consumer"),
        ('["received", 0, 1, 1e99, 0, 0, true]', "time, partition"),
        ("nonsense", "a line of JSON"),
        ("NaN", "a line of JSON"),
        ("[" * 100_000, "a line of JSON"),
    ],
)
def test_the_line_at_fault_is_named(tmp_path, line, expected):
    good = samples.consumer([samples.receipt(0, 20)]).splitlines(keepends=True)
    path = samples.write(
        tmp_path, samples.producer(), b"".join([*good[:2], line.encode() + b"\n", *good[2:]])
    )
    with pytest.raises(RawDataError) as error:
        kafka_probe.read(path)
    assert error.value.line_number == 3 and expected in error.value.expected


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def ends_well(path):
    """The files are refused, or read; what is read and differs from the last that was read is made into tables."""
    try:
        about = probe_files.open_probe(path)
        programs = probe_files.Programs.open(path, about)
    except RawDataError:
        return
    said = repr((about, programs.happened, programs.received, programs.due))
    if said not in READ:
        READ.add(said)
        for name, core in kafka_probe.read(path).items():
            whole(name, core)


@FUZZ
@given(st.data())
def test_any_file_ends_in_tables_or_in_a_refusal(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("probe")
    contents = [samples.producer(3), samples.consumer([samples.receipt(n, 20) for n in range(3)])]
    at = data.draw(st.integers(0, 1))
    rows = [json.loads(line) for line in contents[at].splitlines()]
    row = data.draw(st.integers(0, len(rows) - 1))
    if isinstance(rows[row], list) and data.draw(st.booleans()):
        rows[row][data.draw(st.integers(0, len(rows[row]) - 1))] = data.draw(VALUES)
    elif isinstance(rows[row], dict) and data.draw(st.booleans()):
        rows[row][data.draw(st.sampled_from([*rows[row], "stopped_ns"]))] = data.draw(VALUES)
    else:
        rows[row] = data.draw(VALUES)
    contents[at] = samples.lines(rows)
    ends_well(samples.write(folder, *contents))


@FUZZ
@given(st.data())
def test_any_settings_end_in_tables_or_in_a_refusal(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("probe")
    path = samples.write(folder, samples.producer(3), samples.consumer([samples.receipt(0, 20)]))
    about = json.loads(path.read_text())
    place = data.draw(
        st.sampled_from(
            [about, about["clock"], about["files"], about["settings"], about["files"]["producer"]]
        )
    )
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(VALUES)
    path.write_text(json.dumps(about))
    ends_well(path)


# On a lab


@pytest.mark.lab
@pytest.mark.skipif(NO_LAB is not None, reason=NO_LAB or "")
def test_clocks_are_compared_to_within_half_the_round_trip(tmp_path):
    links = {pair: LinkSettings(10) for pair in permutations(("a", "b"), 2)}
    with LocalLab(["a", "b"], links) as lab:
        a, b = lab.host("a"), lab.host("b")
        assert clock.one_clock(a, b)
        offset, files = clock.exchange(a, b, tmp_path, "kafka_probe", "0001.1.before", shift_ms=-1234.5)
        assert abs(offset.offset_ms + 1234.5) <= offset.error_ms and offset.error_ms >= 10
        assert [file.path for file in files] == ["kafka_probe/0001.1.before.clock.txt"]
        lab.cut("a", "b")
        with pytest.raises(ExperimentError, match=r"no answer from 10\.2\.0\.1") as error:
            clock.exchange(a, b, tmp_path, "kafka_probe", "0002.1.before")
        assert [file.path for file in error.value.files][-1] == "kafka_probe/0002.1.before.clock.stderr.txt"


def test_the_error_of_two_readings_covers_both():
    joined = clock.joined(clock.Offset(10.0, 1.0, "a"), clock.Offset(14.0, 2.0, "b"))
    assert (joined.offset_ms - joined.error_ms, joined.offset_ms + joined.error_ms) == (9.0, 16.0)
    unknown = clock.Offset(None, None, "not known")
    assert clock.joined(unknown, joined) is joined and clock.joined(joined, unknown) is joined


@pytest.fixture(scope="module")
def lab():
    """A broker in the target's region, number 1, and one in the source's; 20 ms one way."""
    if reason := NO_LAB or kafka.unavailable():
        pytest.skip(reason)
    links = {pair: LinkSettings(20) for pair in permutations(("source", "target"), 2)}
    with (
        LocalLab(["source", "target"], links) as opened,
        kafka.Cluster(opened, ["target", "source"], profile="functional", heap_mb=256, metrics=False),
    ):
        yield opened


def measured(lab, folder, stem, **settings):
    probe = KafkaProbe(**{"placement": ((1,),), "producers": 4, "interval_s": 0.02} | settings)
    files = probe.run(lab.host("source"), lab.host("target"), folder, stem)
    assert all((folder / file.path).is_file() for file in files)
    return kafka_probe.read(folder / f"kafka_probe/{stem}.probe.json")


@pytest.mark.lab
def test_held_records_show_in_the_tail_and_nowhere_else(lab, tmp_path):
    found = measured(lab, tmp_path, "0001.1", duration_s=4.0, hold_share=0.02, hold_ms=500.0)
    records, [row] = found["probe_records"], found["probes"].to_dict("records")
    assert row["n_intended"] == row["n_received"] == row["n_acknowledged"] == 200
    assert (row["n_duplicates"], row["n_damaged"], row["n_negative"], row["clock_offset_ms"]) == (0, 0, 0, 0)
    assert row["clock_method"] == "one machine, one clock"
    schedule = (tmp_path / "kafka_probe/0001.1.producer.jsonl").read_text().partition("\n")[0]
    held = set(json.loads(schedule)["held"])
    assert len(held) == 4 and set(records[records.latency_ms >= 520].sequence) >= held
    tail = tails.of_records(records, warm_up=0)
    assert tail.quantile(0.5) < 520 <= tail.quantile(0.985)
    assert records.latency_ms.min() >= 20


@pytest.mark.lab
def test_a_replica_across_the_path_adds_its_round_trip(lab, tmp_path):
    found = measured(
        lab,
        tmp_path,
        "0001.1",
        duration_s=3.0,
        interval_s=0.1,
        replication=2,
        placement=((1, 2),),
        record_bytes=100,
    )
    assert found["probes"].n_received[0] == 30 and found["probe_records"].latency_ms.min() >= 60
    waited = (found["probe_records"].acknowledged_at_s - found["probe_records"].sent_at_s) * 1000
    assert waited.min() >= 80


@pytest.mark.lab
def test_a_stopped_broker_shows_in_every_record_of_that_time(lab, tmp_path):
    """Two groups, three partitions and a clock that is ahead: open loop, so what stands still is seen by all."""
    source, target = lab.host("source"), lab.host("target")
    pids = broker_pids(source.cluster.log_folder(1))
    probe = KafkaProbe(
        duration_s=60.0, interval_s=0.02, groups=2, partitions=3, placement=((1,),) * 3, clock_shift_ms=250.0
    )
    with probe.beside(source, target, tmp_path, "0001.1") as files:
        assert not [file for file in files if file.path.endswith("probe.json")]
        time.sleep(1)
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            stopped_s = time.time()
            time.sleep(1)
        finally:
            continued_s = time.time()
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        time.sleep(0.5)
    assert pids and {file.path.partition(".1.")[2] for file in files} >= {
        "probe.json", "producer.jsonl", "consumer-0.jsonl", "consumer-1.jsonl", "before.clock.txt", "after.clock.txt",
    }  # fmt: skip
    found = kafka_probe.read(tmp_path / "kafka_probe/0001.1.probe.json")
    [row] = found["probes"].to_dict("records")
    assert abs(row["clock_offset_ms"] - 250) <= row["clock_error_ms"] and row["n_missing"] == 0
    assert 100 < row["n_intended"] < 3_000 and row["n_received"] == row["n_intended"]
    records = found["probe_records"]
    assert records.group.value_counts().tolist() == [row["n_intended"]] * 2 and set(records.partition) == {
        0,
        1,
        2,
    }
    inside = records[records.intended_at_s.between(stopped_s, continued_s)]
    left_ms = (continued_s - inside.intended_at_s) * 1000
    assert len(inside) > 60 and (inside.latency_ms + row["clock_error_ms"] >= left_ms).all()


@pytest.mark.lab
def test_a_probe_that_cannot_start_says_why(lab, tmp_path):
    with pytest.raises(ExperimentError, match=r"the probe cannot start: .*replication factor"):
        measured(lab, tmp_path, "0001.1", placement=None, replication=3)


@pytest.mark.lab
def test_a_block_that_fails_ends_the_probe_and_keeps_what_it_measured(lab, tmp_path):
    source, target = lab.host("source"), lab.host("target")
    probe = KafkaProbe(duration_s=60.0, placement=((1,),))
    with pytest.raises(ZeroDivisionError), probe.beside(source, target, tmp_path, "0001.1") as files:
        time.sleep(1.5)
        raise ZeroDivisionError
    found = kafka_probe.read(tmp_path / "kafka_probe/0001.1.probe.json")
    assert found["probes"].n_received[0] > 10 and len(files) >= 3
    topics = [topic["name"] for topic in source.cluster.ask(source, "topics")]
    assert not [name for name in topics if name.startswith("probe-")]


def broker_pids(log_folder):
    """Processes of a broker: those whose command names its folder."""
    folder, found = str(Path(log_folder).parent).encode(), []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[0].endswith(b"java") and any(word.startswith(folder) for word in words):
                found.append(int(path.parent.name))
    return found
