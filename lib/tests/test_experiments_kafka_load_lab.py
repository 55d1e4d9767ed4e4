"""Loads of a real cluster: what was sent is what is in its log."""

import json
import os
import re
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from patience import comes_about

from wanbench.measure.experiments.base import ExperimentError
from wanbench.measure.experiments.kafka_load import KafkaLoad
from wanbench.measure.experiments.kafka_load_session import count_batches
from wanbench.measure.experiments.kafka_tools import producer_arguments
from wanbench.read.ingest import kafka_load as reader

PATIENT = {
    "start_timeout_s": 300.0,
    "consumer_timeout_s": 120.0,
    "jvm": ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
}
"""For loads on a real cluster: a busy machine may take half a minute to start Java."""


@pytest.fixture
def cluster(shared_cluster):
    return shared_cluster


@pytest.fixture
def lab(shared_lab):
    return shared_lab


def read(folder, files):
    """What the readers make of a load's files, by the end of their names."""
    found = {}
    for name in (file.path.removeprefix("kafka_load/s.") for file in files):
        path = folder / "kafka_load" / f"s.{name}"
        if re.search(r"(producer|consumer)-[\d-]+\.txt$", name):
            found[name] = reader.read(path)
        elif name == "batches.json":
            found[name] = reader.read_batches(path)
        elif name == "times.json":
            found[name] = reader.read_times(path)
    return found


def tools_left():
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            arguments = Path("/proc", entry, "cmdline").read_bytes()
            if b"load-s-0\0" in arguments and b"kafka.tools" in arguments:
                found.append(int(entry))
    return found


@pytest.mark.lab
@pytest.mark.kafka
def test_two_producers_flat_out_leave_windows_that_overlap_and_batches_by_the_second(lab, cluster, tmp_path):
    load = KafkaLoad(
        producers=2, duration_s=3, warmup_s=1, consumer_groups=1, reporting_interval_s=0.25, drain=False,
        placement=((1,),) * 3, **PATIENT,
    )  # fmt: skip
    files = load.run(lab.host("us"), lab.host("eu"), tmp_path, "s")
    found = read(tmp_path, files)
    (times,) = found["times.json"]["loads"].to_dict("records")
    windows = [found[f"producer-{n}.txt"]["producer_windows"] for n in range(2)]
    assert all((each.printed_at_s.between(times["counts_from_s"], times["counts_until_s"])).any() for each in windows)
    assert all(each.warmup.any() and not each.warmup.all() for each in windows)
    assert times["counts_until_s"] - times["counts_from_s"] > 2.9
    batches = found["batches.json"]["batches"]
    assert set(batches.partition) == {0, 1, 2}
    assert set(batches.broker) == {1}
    sent = sum(each.records.sum() for each in windows)
    assert batches.records.sum() >= sent > 0
    inside = batches[batches.at_s.between(times["all_sending_at_s"], times["counts_until_s"] - 1)]
    assert len(inside) and (inside.batches > 0).all()
    assert cluster.ask(lab.host("us"), "topics") == []
    assert tools_left() == []


@pytest.mark.lab
@pytest.mark.kafka
def test_what_is_read_of_each_topic_is_what_is_counted_in_the_log(lab, cluster, tmp_path):
    load = KafkaLoad(
        producers=2, topics=2, consumer_groups=1, records=1500, warmup_records=500, duration_s=None, payload="json",
        compression="lz4", consumer_windows=False, batch_bytes=32_768, **PATIENT,
    )  # fmt: skip
    files = load.run_on([lab.host("us"), lab.host("asia")], [lab.host("eu")], tmp_path, "s")
    found = read(tmp_path, files)
    for n in range(2):
        (consumer,) = found[f"consumer-{n}-{n}.txt"]["consumers"].to_dict("records")
        assert (consumer["records"], consumer["bytes"]) == (2000, pytest.approx(2e6, rel=1e-3))
    for n in range(2):
        assert found[f"producer-{n}.txt"]["producers"].records.tolist() == [2000, 1500]
    batches = found["batches.json"]["batches"]
    assert batches.groupby("topic").records.sum().to_dict() == {"load-s-0": 2000, "load-s-1": 2000}
    assert batches.bytes.sum() < 0.8 * 4e6, "lz4 has something to gain in JSON"
    hosts = [each["host"] for each in json.loads((tmp_path / "kafka_load/s.times.json").read_text())["producers"]]
    assert hosts == ["us/0", "asia/0"]


@pytest.mark.lab
@pytest.mark.kafka
def test_the_count_is_that_of_kafkas_own_tool(lab, cluster):
    cluster.create_topic("counted", settings={"message.timestamp.type": "CreateTime"}, placement=[[1], [1]])
    host = lab.host("eu")
    load = KafkaLoad(records=700, duration_s=None, compression="gzip", print_metrics=False)
    words = producer_arguments(
        load,
        bootstrap=cluster.bootstrap,
        topic="counted",
        number=0,
        payload=None,
        client_file=cluster.client_file(host),
    )
    host.run(cluster.java(host, "org.apache.kafka.tools.ProducerPerformance", *words, jvm=PATIENT["jvm"]), timeout_s=60)
    counted, fault = count_batches(cluster, lab.host("us"), ["counted"], "CreateTime")
    assert (fault, counted["cut_bytes"], counted["without_leader"]) == (None, 0, [])
    logs = sorted(Path(cluster.log_folder(1)).glob("counted-*/*.log"))
    files = ",".join(map(str, logs))
    dump = cluster.java(host, "org.apache.kafka.tools.DumpLogSegments", "--files", files, jvm=PATIENT["jvm"])
    printed = host.run(dump, timeout_s=60).stdout.decode()
    expected = {}
    for part in printed.split("Dumping ")[1:]:
        number = int(re.search(r"counted-(\d+)", part)[1])
        for line in re.finditer(r" count: (\d+) .*?CreateTime: (\d+) size: (\d+)", part):
            row = expected.setdefault(("counted", number, int(line[2]) // 1000), [0, 0, 0])
            row[:] = row[0] + 1, row[1] + int(line[1]), row[2] + int(line[3])
    assert counted["rows"] == [[1, *key, *counts] for key, counts in sorted(expected.items())]
    assert sum(row[5] for row in counted["rows"]) == 700


@pytest.mark.lab
@pytest.mark.kafka
def test_a_load_that_the_link_cannot_carry_is_a_result(lab, cluster, tmp_path):
    """8 Mbit/s are asked of a link of 2: the rows say how far the producers fell behind, and when."""
    lab.set_link("us", "eu", rate_bps=2e6)
    lab.set_link("eu", "us", rate_bps=2e6)
    load = KafkaLoad(
        producers=2, target_records_per_s=500, duration_s=60, consumer_groups=0, timeout_s=12, reporting_interval_s=0.5,
        placement=((1,),) * 3, **PATIENT,
    )  # fmt: skip
    files = load.run(lab.host("us"), lab.host("eu"), tmp_path, "s")
    found = read(tmp_path, files)
    (times,) = found["times.json"]["loads"].to_dict("records")
    assert times["unfinished"].startswith("2 of 2 producers had not sent all their 30,000 records after 12 s")
    assert times["counts_until_s"] == times["asked_to_stop_at_s"] > times["counts_from_s"]
    windows = [found[f"producer-{n}.txt"]["producer_windows"] for n in range(2)]
    assert all(each.printed_at_s.notna().all() for each in windows)
    assert all(each.behind_s.iloc[-1] > max(1.0, each.behind_s.iloc[0]) for each in windows)
    batches = found["batches.json"]["batches"]
    assert batches.records.sum() >= sum(each.records.sum() for each in windows) > 0
    assert tools_left() == []


@pytest.mark.lab
@pytest.mark.kafka
def test_a_topic_of_that_name_stops_a_load_before_it_begins(lab, cluster, tmp_path):
    cluster.create_topic("load-s-0")
    with pytest.raises(ExperimentError, match=r"load-s-0.*exist"):
        KafkaLoad().run(lab.host("us"), lab.host("eu"), tmp_path, "s")


def dies(load, lab, folder, kill):
    """The error of a load in which `kill` is called once every producer has printed two windows."""
    errors = []

    def run():
        try:
            load.run(lab.host("us"), lab.host("eu"), folder, "s")
        except ExperimentError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert comes_about(lambda: sum(n > 2 for n in lines_of_producers(lab)) == load.producers, 300)
    kill()
    thread.join(300)
    assert not thread.is_alive()
    assert tools_left() == []
    return errors[0]


def lines_of_producers(lab):
    """How many lines each producer has printed, and one more, by its file of times."""
    for path in Path(lab.host("us").scratch).glob("s.producer-*.lines"):
        yield len(path.read_text().splitlines())


@pytest.mark.lab
@pytest.mark.kafka
def test_a_producer_that_dies_half_way_ends_the_load_and_loses_nothing(lab, cluster, tmp_path):
    def kill():
        for process in tools_left():
            command = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
            if command[0].endswith(b"java") and b"client.id=load-producer-1" in command:
                os.kill(process, 9)

    for path in Path(lab.host("us").scratch).glob("s.*.lines"):
        path.unlink()
    error = dies(
        KafkaLoad(producers=2, duration_s=60, target_records_per_s=400, reporting_interval_s=0.25, **PATIENT),
        lab,
        tmp_path,
        kill,
    )
    assert str(error).startswith("producer-1 on us/0 ended with status 137")
    found = read(tmp_path, error.files)
    assert len(found["producer-0.txt"]["producer_windows"]) >= 2
    assert found["batches.json"]["batches"].records.sum() > 0
    assert cluster.ask(lab.host("us"), "topics") == []
