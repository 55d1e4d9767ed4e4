"""A cluster of three brokers in three regions: it serves, its brokers stop, die and come back, and nothing is left."""

import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from patience import comes_about

from wanbench.errors import ClusterError
from wanbench.measure.experiments.base import ExperimentError
from wanbench.measure.experiments.sampling import BrokerMetrics
from wanbench.measure.kafka import Cluster
from wanbench.measure.kafka.java_commands import PROFILES
from wanbench.read.ingest import broker_metrics, broker_pauses

pytestmark = [pytest.mark.lab, pytest.mark.kafka]


@pytest.fixture
def cluster(own_cluster):
    return own_cluster


@pytest.fixture
def lab(own_cluster):
    return own_cluster.lab


def javas():
    """Command lines of the Java processes on this machine whose arguments name a lab's folder."""
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            arguments = Path("/proc", process, "cmdline").read_bytes()
            if arguments.startswith(b"java\0") and b"wanbench-local-" in arguments:
                yield arguments.decode(errors="replace")


def samples(process):
    """What a watch has printed so far; a last line cut short by a stop is left out."""
    printed = process.so_far().stdout
    return [json.loads(line) for line in printed[: printed.rfind(b"\n") + 1].splitlines()]


def in_sync(cluster, topic):
    [answer] = cluster.ask(cluster.lab.host("asia"), "topics", names=[topic])
    return [sorted(partition["isr"]) for partition in answer["partitions"]]


def test_it_serves_from_every_region(lab, cluster):
    assert cluster.bootstrap == "10.1.0.1:9092,10.2.0.1:9092,10.3.0.1:9092"
    assert all(host.cluster is cluster for hosts in lab.hosts.values() for host in hosts)
    brokers = [(1, "eu", False), (2, "us", False), (3, "asia", False)]

    def seen():
        found = cluster.ask(lab.host("us"), "cluster")["brokers"]
        return sorted((each["node_id"], each["rack"], each["is_fenced"]) for each in found)

    assert comes_about(lambda: seen() == brokers), seen()
    answer = cluster.ask(lab.host("us"), "cluster")
    assert answer["controller"] in (1, 2, 3)
    cluster.check()


def test_records_pass_from_a_java_producer_to_a_java_consumer(lab, cluster):
    cluster.create_topic("passing", partitions=3, replication=3, settings={"min.insync.replicas": 2})
    servers = ["--bootstrap-server", cluster.bootstrap, "--topic", "passing"]
    host = lab.host("us", 1)
    produce = cluster.java(
        host,
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "passing", "--num-records", "20000", "--record-size", "100", "--throughput", "-1"),
        *("--command-property", f"bootstrap.servers={cluster.bootstrap}", "acks=all"),
        jvm=PROFILES["functional"],
    )
    assert b"20000 records sent" in host.run(produce, timeout_s=60).stdout
    arguments = [*servers, "--num-records", "20000"]
    consume = cluster.java(host, "org.apache.kafka.tools.ConsumerPerformance", *arguments, jvm=PROFILES["functional"])
    assert b", 20000, " in host.run(consume, timeout_s=60).stdout.splitlines()[-1]
    partitions = lab.host("eu").run(["ls", cluster.log_folder(1)], timeout_s=10).stdout.split()
    assert {b"passing-0", b"passing-1", b"passing-2"} <= set(partitions)


def test_a_topic_that_exists_or_does_not_is_an_error_in_kafkas_words(cluster):
    cluster.create_topic("once")
    with pytest.raises(ClusterError, match=r"create_topic 'once'.*Topic 'once' already exists"):
        cluster.create_topic("once")
    cluster.delete_topic("once")
    with pytest.raises(ClusterError, match=r"delete_topic 'once'.*UnknownTopicOrPartition"):
        cluster.delete_topic("once")


def test_metrics_are_served_on_the_brokers_host(lab, cluster):
    broker = cluster.brokers[1]
    ask = f"import urllib.request as u; print(u.urlopen('http://{broker.host.address}:{broker.metrics_port}/metrics').read().decode())"
    text = broker.host.run([sys.executable, "-c", ask], timeout_s=30).stdout.decode()
    named = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")}
    assert {
        "kafka_records_in_total", "kafka_bytes_in_total", "kafka_bytes_out_total", "kafka_requests_total",
        "kafka_request_time_ms", "kafka_under_replicated_partitions", "kafka_isr_shrinks_total",
        "process_cpu_seconds_total", "jvm_memory_used_bytes", "jvm_gc_collection_seconds_sum",
    } <= named  # fmt: skip
    for part in ("Total", "Local", "Remote", "RequestQueue"):
        for request in ("Produce", "FetchConsumer", "FetchFollower"):
            assert f'kafka_request_time_ms{{part="{part}",quantile="0.99",request="{request}"}}' in text
    [active] = [line for line in text.splitlines() if line.startswith("kafka_leaders ")]
    assert float(active.split()[1]) > 0
    assert 'kafka_topic_records_in_total{topic="passing"}' in text


def test_what_it_leaves_in_a_run_folder_says_what_each_broker_was_set_to(cluster, tmp_path):
    files = cluster.keep(tmp_path, "session-1")
    names = {file.path for file in files}
    assert {f"kafka_cluster/session-1.broker-{n}.server.log.gz" for n in (1, 2, 3)} <= names
    log = gzip.decompress((tmp_path / "kafka_cluster/session-1.broker-1.server.log.gz").read_bytes()).decode()
    assert "Kafka Server started" in log and " INFO " in log
    pauses = broker_pauses.read(tmp_path / "kafka_cluster/session-1.broker-1.jvm.log.gz")["broker_pauses"]
    assert set(pauses.kind) >= {"safepoint"} and set(pauses.node_id) == {1}
    assert {f"kafka_cluster/session-1.broker-{n}.jvm.log.gz" for n in (2, 3)} <= names
    settings = json.loads((tmp_path / "kafka_cluster/session-1.broker-3.settings.json").read_text())
    for kind in ("given", "effective"):
        assert settings[kind]["num.io.threads"] == "4"
        assert settings[kind]["broker.rack"] == "asia"
        assert settings[kind]["auto.create.topics.enable"] == "false"
    assert settings["effective"]["num.network.threads"] == "3"


def test_what_it_says_of_itself_is_json(cluster):
    answer = json.loads(json.dumps(cluster.describe()))
    assert [node["roles"] for node in answer["nodes"]] == ["broker,controller"] * 3
    assert answer["settings"]["num.io.threads"] == "4" and answer["started_in_s"] > 0
    assert answer["kafka"].startswith("4.")


def up(lab, folder):
    """Whether each broker answered its last scrape, by its host; None if a busy machine took too long to end one."""
    folder = Path(tempfile.mkdtemp(dir=folder))
    metrics = BrokerMetrics(interval_s=30, timeout_s=30, duration_s=2)
    last = {}
    try:
        files = metrics.run(lab.host("us"), lab.host("asia"), folder, "s")
    except ExperimentError:
        return None
    for file in files:
        frame = broker_metrics.read(folder / file.path)["metrics"]
        last |= frame[frame.metric == "up"].groupby("host").value.last().to_dict()
    return last


def test_a_broker_stops_dies_and_comes_back_and_metrics_say_that_it_is_down(lab, cluster, tmp_path):
    cluster.create_topic("steady", partitions=1, replication=3)
    cluster.stop(1)
    with pytest.raises(ClusterError, match="broker 1 on eu/0 is not running"):
        cluster.kill(1)
    assert comes_about(lambda: in_sync(cluster, "steady") == [[2, 3]])
    with pytest.raises(ClusterError, match="broker 2 on us/0 runs already"):
        cluster.start(2)
    cluster.start(1)
    cluster.kill(3)
    try:
        cluster.check()
        assert comes_about(lambda: up(lab, tmp_path) == {"eu/0": 1, "us/0": 1, "asia/0": 0})
    finally:
        cluster.start(3)
    assert comes_about(lambda: in_sync(cluster, "steady") == [[1, 2, 3]])
    with pytest.raises(ClusterError, match="no node 9; it has 1, 2, 3"):
        cluster.stop(9)


def test_a_watch_sees_a_region_cut_and_says_when_nobody_answered(lab, cluster):
    cluster.create_topic("watched", partitions=3, replication=3)
    outside, inside = lab.host("us"), lab.host("eu")
    options = {"topics": ["watched"]}
    with cluster.watching(outside, 600, **options) as here, cluster.watching(inside, 600, **options) as there:
        here.wait_for_output('"isr": [1, 2, 3]', 120)
        there.wait_for_output('"isr": [1, 2, 3]', 120)
        lab.cut_region("eu")
        cluster.freeze(1)  # or it might go on answering the watch in its own region
        try:
            assert len(in_sync(cluster, "watched")) == 3
            here.wait_for_output('"isr": [2, 3]', 120)
            there.wait_for_output('"error"', 120)
        finally:
            cluster.thaw(1)
            lab.heal_region("eu")
    seen = samples(here)
    in_sync_replicas = [
        [partition["isr"] for partition in topic["partitions"]] for sample in seen for topic in sample.get("topics", ())
    ]
    assert in_sync_replicas[0] == [[1, 2, 3]] * 3
    assert any([2, 3] in replicas for replicas in in_sync_replicas)
    assert any("error" in sample for sample in samples(there))
    assert all(("error" in sample) != ("topics" in sample) for sample in seen)
    assert comes_about(lambda: in_sync(cluster, "watched") == [[1, 2, 3]] * 3, 240)


def test_a_second_cluster_on_the_same_hosts_is_refused(lab, cluster):
    with pytest.raises(ClusterError, match="already has a cluster"):
        Cluster(lab, ["eu"]).__enter__()
    hosts = [host for of_region in lab.hosts.values() for host in of_region]
    for host in hosts:
        host.cluster = None
    try:
        with pytest.raises(ClusterError, match=r"on eu/0 cannot be created: .*File exists"):
            Cluster(lab, ["eu"]).__enter__()
    finally:
        for host in hosts:
            host.cluster = cluster
    assert lab.host("eu").run(["test", "-d", cluster.log_folder(1)], timeout_s=10).returncode == 0
    cluster.check()


SCRIPT = """
from wanbench.measure.kafka import Cluster
from wanbench.measure.labs.local import LocalLab
with LocalLab(["eu"], {}) as lab:
    print(lab.host("eu").scratch, flush=True)
    with Cluster(lab, ["eu"], profile="functional", metrics=False):
        print("serves", flush=True)
"""


@pytest.mark.parametrize("name", ["INT", "KILL"])
def test_an_interrupted_start_leaves_nothing(name):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        folder = Path(process.stdout.readline().strip()).parent
        assert folder.name.startswith("wanbench-local-")
        assert comes_about(
            lambda: any(str(folder) in arguments and "kafka.Kafka" in arguments for arguments in javas())
        )
        process.send_signal(getattr(signal, f"SIG{name}"))
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert out == "" and process.returncode != 0
    assert name == "KILL" or err.strip().endswith("KeyboardInterrupt")
    assert comes_about(lambda: not any(str(folder) in arguments for arguments in javas()))
    assert comes_about(lambda: not folder.exists())
