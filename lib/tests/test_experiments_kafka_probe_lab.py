"""The probe on links of known delay: whether it is right, and what becomes of one that cannot go on."""

import contextlib
import json
import os
import re
import signal
import time
from itertools import permutations
from pathlib import Path

import pytest
from patience import comes_about

from wanbench.experiments import ExperimentError, clock
from wanbench.experiments.kafka_load import KafkaLoad
from wanbench.experiments.kafka_probe import KafkaProbe
from wanbench.ingest import kafka_probe
from wanbench.labs.local import LocalLab
from wanbench.links import LinkSettings
from wanbench.stats.tails import latencies


@pytest.mark.lab
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


DELAY_MS = 10
"""
One way, at least, on the links of the shared cluster: its broker 1 is in eu, the target's region, and its broker 2 in
us, the source's.
"""


def measured(lab, folder, stem, **settings):
    probe = KafkaProbe(**{"placement": ((1,),), "producers": 4, "interval_s": 0.02} | settings)
    files = probe.run(lab.host("us"), lab.host("eu"), folder, stem)
    assert all((folder / file.path).is_file() for file in files)
    return kafka_probe.read(folder / f"kafka_probe/{stem}.probe.json")


@pytest.mark.lab
@pytest.mark.kafka
def test_held_records_show_in_the_tail_and_nowhere_else(shared_lab, tmp_path):
    found = measured(shared_lab, tmp_path, "0001.1", duration_s=2.0, hold_share=0.04, hold_ms=500.0)
    records, [row] = found["probe_records"], found["probes"].to_dict("records")
    assert row["n_intended"] == row["n_received"] == row["n_acknowledged"] == 100
    assert (row["n_duplicates"], row["n_damaged"], row["n_negative"], row["clock_offset_ms"]) == (0, 0, 0, 0)
    assert row["clock_method"] == "one machine, one clock"
    lines = map(json.loads, (tmp_path / "kafka_probe/0001.1.producer.jsonl").read_text().splitlines())
    held = set(next(line["held"] for line in lines if "held" in line))
    is_held = records.sequence.isin(held)
    assert len(held) == 4 and (records.latency_ms[is_held] >= 500 + DELAY_MS).all()
    assert records.latency_ms[~is_held].median() < records.latency_ms[is_held].median()
    assert latencies.of_records(records, warm_up=0).quantile(0.97) >= 500 + DELAY_MS
    assert records.latency_ms.min() >= DELAY_MS


@pytest.mark.lab
@pytest.mark.kafka
def test_a_replica_across_the_path_adds_its_round_trip(shared_lab, tmp_path):
    found = measured(
        shared_lab,
        tmp_path,
        "0001.1",
        duration_s=1.5,
        interval_s=0.05,
        replication=2,
        placement=((1, 2),),
        record_bytes=100,
    )
    assert found["probes"].n_received[0] == 30 and found["probe_records"].latency_ms.min() >= 3 * DELAY_MS
    waited = (found["probe_records"].acknowledged_at_s - found["probe_records"].sent_at_s) * 1000
    assert waited.min() >= 4 * DELAY_MS


@pytest.mark.lab
@pytest.mark.kafka
def test_a_stopped_broker_shows_in_every_record_of_that_time(shared_lab, tmp_path):
    """
    Two groups, three partitions and a clock that is ahead: open loop, so what stands still is seen by all.

    On the shared cluster: a second is too short for the other brokers to miss the one that stands still.
    """
    source, target = shared_lab.host("us"), shared_lab.host("eu")
    pids = broker_pids(source.cluster.log_folder(1))
    probe = KafkaProbe(
        duration_s=60.0, interval_s=0.02, groups=2, partitions=3, placement=((1,),) * 3, clock_shift_ms=250.0
    )
    with probe.concurrently(source, target, tmp_path, "0001.1") as files:
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
@pytest.mark.kafka
def test_a_load_leads_where_it_is_placed_and_its_consumers_read_in_their_own_region(shared_lab, tmp_path):
    """Broker 2, in the source's region, leads; the consumer runs in the target's, where broker 1 follows."""
    load = KafkaLoad(
        partitions=1, replication=2, placement=((2, 1),), records=600, duration_s=None, target_records_per_s=200,
        client_rack="region", consumer_windows=False, start_timeout_s=300.0, consumer_timeout_s=120.0,
    )  # fmt: skip
    load.run(shared_lab.host("us"), shared_lab.host("eu"), tmp_path, "s")
    batches = json.loads((tmp_path / "kafka_load/s.batches.json").read_text())["rows"]
    assert {broker for broker, *_ in batches} == {2}
    printed = (tmp_path / "kafka_load/s.consumer-0-0.txt").read_text()
    assert re.findall(r"preferred-read-replica:.*: *(-?[\d.,]+)", printed)[0].startswith("1")


@pytest.mark.lab
@pytest.mark.kafka
def test_a_probe_that_cannot_start_says_why(shared_lab, tmp_path):
    with pytest.raises(ExperimentError, match=r"the probe cannot start: .*replication factor"):
        measured(shared_lab, tmp_path, "0001.1", placement=None, replication=4)


@pytest.mark.lab
@pytest.mark.kafka
def test_a_block_that_fails_ends_the_probe_and_keeps_what_it_measured(shared_lab, tmp_path, monkeypatch):
    source, target = shared_lab.host("us"), shared_lab.host("eu")
    consumers, start = [], target.start
    monkeypatch.setattr(target, "start", lambda *words: consumers.append(start(*words)) or consumers[-1])
    probe = KafkaProbe(duration_s=300.0, interval_s=0.05, placement=((1,),))
    with pytest.raises(ZeroDivisionError), probe.concurrently(source, target, tmp_path, "0001.1") as files:
        assert comes_about(lambda: b"\n[" in consumers[-1].printed()), "a receipt"
        raise ZeroDivisionError
    found = kafka_probe.read(tmp_path / "kafka_probe/0001.1.probe.json")
    assert found["probes"].n_received[0] > 0 and len(files) >= 3
    topics = [topic["name"] for topic in source.cluster.ask(source, "topics")]
    assert not [name for name in topics if name.startswith("probe-")]


def broker_pids(log_folder):
    """Processes of a broker: those whose command names its folder."""
    folder, found = str(Path(log_folder).parent).encode(), []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            arguments = path.read_bytes().split(b"\0")
            if arguments[0].endswith(b"java") and any(word.startswith(folder) for word in arguments):
                found.append(int(path.parent.name))
    return found
