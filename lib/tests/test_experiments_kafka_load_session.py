"""One run of a load, with made-up tools on this machine: faults are reported, and nothing is lost or left."""

import json
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from patience import comes_about

from wanbench.errors import LabError
from wanbench.experiments.base import ExperimentError
from wanbench.experiments.kafka_load import KafkaLoad
from wanbench.experiments.kafka_load_counts import times_that_count
from wanbench.experiments.kafka_load_payload import json_records
from wanbench.experiments.perf_tool_arguments import CONSUMER, PRODUCER
from wanbench.ingest import kafka_load as reader
from wanbench.kafka import ClusterError
from wanbench.labs.base import Host
from wanbench.labs.processes import EnteredProcess, command_error

START = """
import sys, time
number = next(word for word in sys.argv if word.startswith("client.id=")).rpartition("-")[2]
def window(n=10):
    print(f"{n} records sent, 9.9 records/sec (0.01 MB/sec), 1.0 ms avg latency, 2.0 ms max latency.", flush=True)
def summary(n=10, what=""):
    print(f"{n}{what} records sent, 9.900000 records/sec (0.01 MB/sec), 1.00 ms avg latency, 2.00 ms max latency, "
          "1 ms 50th, 2 ms 95th, 2 ms 99th, 2 ms 99.9th.", flush=True)
"""
FOR_EVER = "while True:\n    window()\n    time.sleep(0.05)"
ENDS = "window()\ntime.sleep(0.5)\nwindow()\nsummary(20)"
DIES = """
if number == "1":
    window()
    print("org.apache.kafka.common.KafkaException: the cause", file=sys.stderr)
    print("\\tat org.apache.kafka.tools.ProducerPerformance.main(ProducerPerformance.java:52)", file=sys.stderr)
    print("\\t... 7 more", file=sys.stderr)
    sys.exit(1)
"""
READS = "print('time, threadId')\ntime.sleep(2)"
READS_ON = "print('time, threadId', flush=True)\ntime.sleep(600)"
STARVES = "print('WARNING: Exiting before consuming the expected number of records: timeout')"


class Here(Host):
    """This machine, without a namespace."""

    def __init__(self, folder, name="here/0"):
        self.name, self.region, self.address = name, name.partition("/")[0], "127.0.0.1"
        self._scratch = folder / f"scratch-{name.replace('/', '-')}"
        self._scratch.mkdir()
        self.started = []

    @property
    def scratch(self):
        return str(self._scratch)

    def start(self, command):
        self.started.append(EnteredProcess(command, ["setsid", "--wait"]))
        return self.started[-1]

    def run(self, command, *, timeout_s, ok=(0,)):
        done = self.start(command).wait(timeout_s)
        if ok is not None and done.returncode not in ok:
            raise command_error(done, f"ended with status {done.returncode}")
        return done

    def put(self, source, target):
        Path(target).write_bytes(Path(source).read_bytes())

    def get(self, source, target):
        Path(target).write_bytes(Path(source).read_bytes())


class MadeUp:
    """A cluster whose tools are programs of a few lines."""

    bootstrap, brokers = "10.0.0.1:9092", ()

    def __init__(self, producer, consumer=READS):
        self.sources = {PRODUCER: START + producer, CONSUMER: START + consumer}
        self.topics, self.settings, self.commands, self.there = [], {}, [], set()
        self.death = self.undeletable = None

    def java(self, host, main_class, *arguments, heap_mb, jvm):
        self.commands.append((host.name, main_class, list(arguments)))
        return [sys.executable, "-c", self.sources[main_class], *arguments]

    def client_file(self, host):
        return None

    def create_topic(self, name, partitions, replication, settings, placement=None):
        if name in self.there:
            raise ClusterError(f"TopicAlreadyExistsError: {name}")
        self.topics.append(name)
        self.settings = settings

    def delete_topic(self, name):
        if self.undeletable:
            raise self.undeletable
        self.topics.remove(name)

    def ask(self, host, verb, **arguments):
        raise ClusterError("nobody may look into its logs")

    def check(self):
        if self.death:
            raise self.death


def run(load, cluster, folder, hosts=1):
    here = [Here(folder, f"here/{n}") for n in range(hosts)]
    for host in here:
        host.cluster = cluster
    try:
        return load.run_on(here, here[:1], folder, "s")
    finally:
        assert not [process.command for host in here for process in host.started if process.is_running()]
        assert cluster.topics == [] or cluster.undeletable


def fails(load, cluster, folder):
    with pytest.raises(ExperimentError) as raised:
        run(load, cluster, folder)
    for file in raised.value.files:
        assert (folder / file.path).stat().st_size == file.bytes
    return str(raised.value), {file.path.removeprefix("kafka_load/s.") for file in raised.value.files}


def recorded(folder, what):
    return json.loads((folder / f"kafka_load/s.{what}.json").read_text())


STOPPED = KafkaLoad(producers=2, duration_s=1, warmup_s=0.5, consumers=1)
COUNTED = KafkaLoad(producers=2, records=20, duration_s=None)


def test_a_load_that_is_stopped_keeps_its_windows_and_says_what_is_missing(tmp_path):
    files = run(STOPPED, MadeUp(FOR_EVER), tmp_path)
    assert [file.path.removeprefix("kafka_load/s.") for file in files] == [
        "producer-0.txt", "producer-0.lines.json",
        "producer-1.txt", "producer-1.lines.json",
        "consumer-0-0.txt", "consumer-0-0.lines.json",
        "batches.json", "times.json",
    ]  # fmt: skip
    (times,) = reader.read_times(tmp_path / "kafka_load/s.times.json")["loads"].to_dict("records")
    assert times["counts_from_s"] == pytest.approx(times["all_sending_at_s"] + 0.5)
    assert times["counts_until_s"] == times["asked_to_stop_at_s"] >= times["counts_from_s"] + 0.9
    assert "summary lines and metrics of the producers" in times["missing"]
    lines = recorded(tmp_path, "producer-1.lines")
    printed = (tmp_path / "kafka_load/s.producer-1.txt").read_bytes().splitlines()
    assert len(lines["lines"]) == len(printed) > 10
    assert lines["started_at_s"] <= lines["lines"][0] <= times["all_sending_at_s"]
    assert lines["lines"] == sorted(lines["lines"])
    assert recorded(tmp_path, "batches") == {"left_out": "nobody may look into its logs"}


def test_a_load_by_count_ends_by_itself(tmp_path):
    run(COUNTED, MadeUp(ENDS), tmp_path)
    times = recorded(tmp_path, "times")
    assert times["asked_to_stop_at_s"] is None
    assert times["missing"] == []
    lines = [recorded(tmp_path, f"producer-{n}.lines")["lines"] for n in range(2)]
    assert times["counts_from_s"] == max(each[0] for each in lines)
    assert times["counts_until_s"] == min(each[-1] for each in lines)


def test_with_a_warmup_the_time_counts_from_the_steady_state(tmp_path):
    source = (
        "print('Warmup first 5 records. Steady state results will print after the complete test summary.')\n"
        "window(5)\ntime.sleep(0.3)\nprint('In steady state.')\nwindow()\ntime.sleep(0.3)\nsummary(25)\n"
        "summary(20, ' steady state')"
    )
    run(KafkaLoad(records=20, warmup_records=5, duration_s=None), MadeUp(source), tmp_path)
    times, lines = recorded(tmp_path, "times"), recorded(tmp_path, "producer-0.lines")["lines"]
    assert times["all_sending_at_s"] == lines[1] < times["counts_from_s"] == lines[2]
    assert times["counts_until_s"] == lines[-1]


def test_a_load_too_short_for_its_warmup_has_no_time_that_counts(tmp_path):
    run(
        KafkaLoad(records=20, warmup_records=5, duration_s=None, consumer_groups=0),
        MadeUp("summary()"),
        tmp_path,
    )
    times = recorded(tmp_path, "times")
    assert times["counts_from_s"] is times["counts_until_s"] is None
    assert times["missing"] == ["a time in which all producers sent after their warm-up"]


def test_producers_and_consumers_take_hosts_topics_and_groups_by_turns(tmp_path):
    load = KafkaLoad(topics=2, producers=4, consumer_groups=3, records=20, duration_s=None)
    cluster = MadeUp(ENDS, "pass")
    run(load, cluster, tmp_path, hosts=2)

    def word(arguments, option):
        return arguments[arguments.index(option) + 1]

    producers = [
        (host, word(arguments, "--topic")) for host, kind, arguments in cluster.commands if kind == PRODUCER
    ]
    assert producers == [(f"here/{n % 2}", f"load-s-{n % 2}") for n in range(4)]
    groups = [
        (
            word(arguments, "--topic"),
            word(arguments, "--group").rpartition("-")[0],
            word(arguments, "--num-records"),
        )
        for _, kind, arguments in cluster.commands
        if kind == CONSUMER
    ]
    assert groups == [(f"load-s-{n // 3}", f"load-s-{n // 3}-group-{n}", "40") for n in range(6)]
    assert (tmp_path / "kafka_load/s.consumer-5-5.txt").exists()


def test_topics_keep_what_is_counted_unless_told_otherwise(tmp_path):
    cluster = MadeUp(ENDS)
    run(KafkaLoad(records=20, duration_s=None, topic_settings={"retention.ms": 5000}), cluster, tmp_path)
    assert cluster.settings == {
        "message.timestamp.type": "LogAppendTime",
        "retention.ms": "5000",
        "retention.bytes": "-1",
    }


def test_made_records_are_put_on_a_host_once(tmp_path):
    load = KafkaLoad(
        producers=2, records=20, duration_s=None, payload="json", record_bytes=200, consumer_groups=0
    )
    source = (
        "path = sys.argv[sys.argv.index('--payload-file') + 1]\nprint(open(path).read(), end='')\n" + ENDS
    )
    cluster, host = MadeUp(source), Here(tmp_path)
    host.cluster = cluster
    for stem in ("s", "t"):
        load.run(host, host, tmp_path, stem)
        printed = (tmp_path / f"kafka_load/{stem}.producer-1.txt").read_bytes()
        assert printed.startswith(json_records(200, seed=0))
    assert recorded(tmp_path, "times")["payload"]["records"] == 10_000
    moved = [process.command[-1] for process in host.started if process.command[0] == "mv"]
    assert len([path for path in moved if "/records-" in path]) == 1


def test_a_producer_that_dies_half_way_is_named_with_its_own_words(tmp_path):
    reason, files = fails(STOPPED, MadeUp(DIES + FOR_EVER, READS_ON), tmp_path)
    assert reason == (
        "producer-1 on here/0 ended with status 1: org.apache.kafka.common.KafkaException: the cause"
    )
    assert {"producer-0.txt", "producer-1.txt", "producer-1.stderr.txt", "consumer-0-0.txt"} <= files


def test_so_is_one_of_a_load_by_count(tmp_path):
    reason, files = fails(COUNTED, MadeUp(DIES + "time.sleep(600)", READS_ON), tmp_path)
    assert reason.startswith("producer-1 on here/0 ended with status 1: org.apache.kafka")
    assert {"producer-1.txt", "times.json"} <= files


def test_a_broker_that_has_died_comes_first(tmp_path):
    cluster = MadeUp(DIES + FOR_EVER)
    cluster.death = ClusterError("broker 2 on there/0 died: out of memory.")
    reason, _ = fails(STOPPED, cluster, tmp_path)
    assert reason.startswith("broker 2 on there/0 died: out of memory.")


def test_a_broker_that_dies_is_noticed_while_the_tools_wait(tmp_path):
    cluster = MadeUp("time.sleep(600)", READS_ON)
    timer = threading.Timer(0.5, setattr, (cluster, "death", ClusterError("broker 1 died: disk full.")))
    timer.start()
    assert fails(COUNTED, cluster, tmp_path)[0].startswith("broker 1 died: disk full.")
    timer.join()


@pytest.mark.parametrize(
    "load, producer, consumer, expected",
    [
        (
            COUNTED,
            "print('0 records sent, 0.000000 records/sec (0.00 MB/sec), NaN ms avg latency')\n"
            "print('org.apache.kafka.common.errors.TimeoutException: no broker', file=sys.stderr)",
            READS,
            "sent no record: org.apache.kafka.common.errors.TimeoutException: no broker",
        ),
        (
            STOPPED,
            ENDS,
            READS,
            "had sent all its records, 10,000,000, before the time was over; raise most_bytes",
        ),
        (STOPPED, FOR_EVER, STARVES, "consumer-0-0 on here/0 ended before the producers did, after 10 s"),
        (
            COUNTED,
            FOR_EVER,
            "sys.exit('no such group')",
            "consumer-0-0 on here/0 ended with status 1: no such",
        ),
        (
            KafkaLoad(duration_s=1, start_timeout_s=1),
            "print('Connection refused', file=sys.stderr, flush=True)\ntime.sleep(600)",
            READS_ON,
            "producer-0 on here/0 printed no figures within 1 s: Connection refused",
        ),
        (
            KafkaLoad(records=20, duration_s=None, timeout_s=1),
            "print('Connection refused', file=sys.stderr, flush=True)\ntime.sleep(600)",
            READS_ON,
            "producer-0 on here/0 printed no figures within 1 s",
        ),
    ],
    ids=["sent nothing", "sent all", "starved", "refused", "no window", "too slow"],
)
def test_what_a_tool_does_not_do_is_said(tmp_path, load, producer, consumer, expected):
    reason, files = fails(load, MadeUp(producer, consumer), tmp_path)
    assert expected in reason
    assert {"producer-0.txt", "times.json"} <= files


def test_producers_that_do_not_send_all_in_time_are_a_result_with_how_far_they_fell_behind(
    tmp_path, monkeypatch
):
    def once_both_have_printed(load):
        files = [tmp_path / f"scratch-here-0/s.producer-{n}.lines" for n in range(2)]
        assert comes_about(lambda: all(f.exists() and len(f.read_text().split()) > 3 for f in files))
        return 0.0

    monkeypatch.setattr(KafkaLoad, "time_limit_s", once_both_have_printed)
    load = KafkaLoad(producers=2, target_records_per_s=400, duration_s=60, consumer_groups=0)
    run(load, MadeUp(FOR_EVER), tmp_path)
    (row,) = reader.read_times(tmp_path / "kafka_load/s.times.json")["loads"].to_dict("records")
    assert row["unfinished"] == (
        "2 of 2 producers had not sent all their 24,000 records after 0 s and were stopped: producer-0, producer-1"
    )
    assert row["counts_from_s"] < row["counts_until_s"] == row["asked_to_stop_at_s"]
    for n in range(2):
        found = reader.read(tmp_path / f"kafka_load/s.producer-{n}.txt")
        windows = found["producer_windows"]
        assert len(windows) >= 3 and windows.printed_at_s.notna().all()
        # A window of 10 records at 9.9 records/s lasts 1.0101 s, and 10 records at 400 a second take 0.025 s.
        each_s = 10 / 9.9 - 10 / 400
        assert windows.behind_s.tolist() == pytest.approx([each_s * (k + 1) for k in range(len(windows))])
        assert "stopped" in found["producers"].error[0]


@pytest.mark.parametrize("stopped, until_s", [([], 12.0), ([1], 12.0), ([0], 16.0), ([0, 1], 20.0)])
def test_time_counts_until_the_first_producer_ended_or_was_stopped(stopped, until_s):
    tools = [
        SimpleNamespace(
            line_times=lambda last=last: [(1.0, b"9.9 records/sec (0"), (last, b"9.9 records/sec (0")]
        )
        for last in (12.0, 16.0)
    ]
    found = times_that_count(COUNTED, tools, [tools[n] for n in stopped], 20.0 if stopped else None)
    assert found["counts_until_s"] == until_s


def test_of_producers_that_send_for_longer_than_was_asked_no_more_time_counts(tmp_path):
    tool = SimpleNamespace(line_times=lambda: [(at_s, b"9.9 records/sec (0") for at_s in (1.0, 50.0)])
    load = KafkaLoad(target_records_per_s=400, duration_s=5)
    assert times_that_count(load, [tool], [], None)["counts_until_s"] == 6.0
    assert times_that_count(load, [tool], [tool], 84.0)["counts_until_s"] == 6.0


def test_consumers_can_be_stopped_with_the_producers(tmp_path):
    load = KafkaLoad(duration_s=1, drain=False)
    run(load, MadeUp(FOR_EVER, READS_ON), tmp_path)
    assert any("consumers" in each for each in recorded(tmp_path, "times")["missing"])


def test_a_topic_that_exists_is_left_alone(tmp_path):
    cluster = MadeUp(ENDS)
    cluster.there = {"load-s-1"}
    reason, files = fails(KafkaLoad(topics=2, producers=2, records=20, duration_s=None), cluster, tmp_path)
    assert reason == "TopicAlreadyExistsError: load-s-1"
    assert not files
    assert not cluster.commands


def test_a_topic_that_cannot_be_deleted_is_said(tmp_path):
    cluster = MadeUp(ENDS)
    cluster.undeletable = ClusterError("not allowed")
    reason, files = fails(COUNTED, cluster, tmp_path)
    assert reason == "topic load-s-0 could not be deleted: not allowed"
    assert "producer-1.txt" in files


def test_an_interrupt_stops_everything_and_keeps_what_was_printed(tmp_path):
    cluster = MadeUp(FOR_EVER, READS_ON)
    calls = []

    def interrupted():
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt

    cluster.check = interrupted
    with pytest.raises(KeyboardInterrupt):
        run(STOPPED, cluster, tmp_path)
    assert (tmp_path / "kafka_load/s.producer-0.txt").stat().st_size


def test_a_host_that_is_gone_when_batches_are_counted_costs_nothing_that_was_measured(tmp_path):
    cluster = MadeUp(ENDS)

    def gone(host, verb, **arguments):
        raise LabError("host is gone")

    cluster.ask = gone
    reason, files = fails(COUNTED, cluster, tmp_path)
    assert reason == "batches in the logs cannot be counted: host is gone"
    assert {"producer-0.txt", "producer-1.txt", "batches.json", "times.json"} <= files


def test_without_a_cluster_there_is_no_load(tmp_path):
    host = Here(tmp_path)
    with pytest.raises(ExperimentError, match="the lab of here/0 has no Kafka cluster"):
        COUNTED.run(host, host, tmp_path, "s")
    with pytest.raises(ExperimentError, match="at least one host"):
        COUNTED.run_on([], [host], tmp_path, "s")


def test_killing_the_tools_from_outside_is_a_death(tmp_path):
    cluster = MadeUp(FOR_EVER, READS_ON)

    def kill_one():
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                arguments = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
                if (
                    b"client.id=load-producer-1" in arguments
                    and arguments[1] == b"-c"
                    and b"load-s-0" in arguments
                ):
                    os.kill(int(entry), 9)
                    return True
        return False

    thread = threading.Thread(target=comes_about, args=(kill_one,))
    thread.start()
    reason, files = fails(KafkaLoad(producers=2, duration_s=60), cluster, tmp_path)
    thread.join()
    assert reason.startswith("producer-1 on here/0 ended with status 137")
    assert {"producer-0.txt", "producer-1.txt"} <= files
