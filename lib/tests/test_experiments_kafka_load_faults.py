"""Faults of a load, with made-up tools on this machine: each is reported, and nothing is lost or left."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from made_up_tools import COUNTED, DIES, ENDS, FOR_EVER, READS, READS_ON, STARVES, STOPPED, Here, MadeUp, fails, run
from patience import comes_about

from wanbench.errors import ClusterError, LabError
from wanbench.measure.experiments.base import ExperimentError
from wanbench.measure.experiments.kafka_load import KafkaLoad


def test_a_producer_that_dies_half_way_is_named_with_its_own_words(tmp_path):
    reason, files = fails(STOPPED, MadeUp(DIES + FOR_EVER, READS_ON), tmp_path)
    assert reason == ("producer-1 on here/0 ended with status 1: org.apache.kafka.common.KafkaException: the cause")
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
        (STOPPED, ENDS, READS, "had sent all its records, 10,000,000, before the scheduled end; raise most_bytes"),
        (STOPPED, FOR_EVER, STARVES, "consumer-0-0 on here/0 ended before the producers did, after 10 s"),
        (COUNTED, FOR_EVER, "sys.exit('no such group')", "consumer-0-0 on here/0 ended with status 1: no such"),
        (
            KafkaLoad(duration_s=1, start_timeout_s=4),
            "print('Connection refused', file=sys.stderr, flush=True)\ntime.sleep(600)",
            READS_ON,
            "producer-0 on here/0 printed no figures within 4 s: Connection refused",
        ),
        (
            KafkaLoad(records=20, duration_s=None, timeout_s=4),
            "print('Connection refused', file=sys.stderr, flush=True)\ntime.sleep(600)",
            READS_ON,
            "producer-0 on here/0 printed no figures within 4 s",
        ),
    ],
    ids=["sent nothing", "sent all", "starved", "refused", "no window", "too slow"],
)
def test_what_a_tool_does_not_do_is_said(tmp_path, load, producer, consumer, expected):
    reason, files = fails(load, MadeUp(producer, consumer), tmp_path)
    assert expected in reason
    assert {"producer-0.txt", "times.json"} <= files


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


def is_ours(pid):
    """Whether this process started it: others may run the same test beside this one."""
    while pid > 1 and pid != os.getpid():
        pid = int(Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[1])
    return pid == os.getpid()


def test_killing_the_tools_from_outside_is_a_death(tmp_path):
    cluster = MadeUp(FOR_EVER, READS_ON)

    def kill_one():
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                arguments = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
                wanted = b"client.id=load-producer-1" in arguments and arguments[1] == b"-c"
                if wanted and b"load-s-0" in arguments and is_ours(int(entry)):
                    os.kill(int(entry), 9)
                    return True
        return False

    thread = threading.Thread(target=comes_about, args=(kill_one,))
    thread.start()
    reason, files = fails(KafkaLoad(producers=2, duration_s=60), cluster, tmp_path)
    thread.join()
    assert reason.startswith("producer-1 on here/0 ended with status 137")
    assert {"producer-0.txt", "producer-1.txt"} <= files
