"""Clusters that cannot start say why in the broker's own message; parameters are checked before it starts."""

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from patience import comes_about

from wanbench.errors import ClusterError, CommandError, ParameterError
from wanbench.folders import kafka_jars
from wanbench.measure.kafka import Cluster, KafkaLab, unavailable
from wanbench.measure.kafka.base import AnswerError
from wanbench.measure.kafka.node import Node
from wanbench.measure.kafka.placement import NodePlacement
from wanbench.measure.kafka.security import Tls
from wanbench.measure.labs.base import Completed
from wanbench.measure.labs.local import LocalLab
from wanbench.measure.links import LinkSettings

LINKS = {("eu", "us"): LinkSettings(1), ("us", "eu"): LinkSettings(1)}
QUICK = {"profile": "functional", "heap_mb": 256, "metrics": False}
SOON = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}
"""A broker that was killed may come back after its session."""


def with_kafka(test):
    return pytest.mark.lab(pytest.mark.kafka(test))


@pytest.fixture(scope="module")
def lab():
    with LocalLab(["eu", "us"], LINKS) as opened:
        yield opened


@pytest.fixture
def closed():
    return LocalLab(["eu", "us"], LINKS, hosts_per_region=3)


def processes_that_name(folder):
    """Command lines on this machine that name a folder."""
    lines = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            lines.append(Path("/proc", process, "cmdline").read_bytes())
    return [line for line in lines if folder.encode() in line]


def starting(lab, **options):
    """The error of a cluster that cannot start, which must be all that is left of it."""
    with pytest.raises(ClusterError) as caught, Cluster(lab, ["eu"], **{**QUICK, **options}):
        pytest.fail("the cluster started")
    assert lab.host("eu").cluster is None
    left = lab.host("eu").run(["ls", lab.host("eu").scratch], timeout_s=10).stdout.decode()
    assert "kafka-1\n" not in left
    assert len(str(caught.value)) < 600 and "\n" not in str(caught.value)
    return caught.value


@with_kafka
def test_a_setting_that_the_broker_refuses_is_told_in_its_own_words(lab):
    error = starting(lab, settings={"num.io.threads": "many"})
    assert "broker 1 on eu/0" in str(error)
    assert "Invalid value many for configuration num.io.threads" in str(error)


@with_kafka
def test_a_broker_that_dies_while_it_starts_is_told_in_its_own_words(lab):
    error = starting(lab, settings={"metric.reporters": "no.such.Reporter"})
    assert "broker 1 on eu/0 ended with status 1" in str(error)
    assert "no.such.Reporter" in str(error)
    assert b"KafkaConfig values" in error.log


@with_kafka
def test_a_jvm_flag_that_java_refuses_is_told_in_its_words(lab):
    error = starting(lab, jvm=["-XX:+UseNoSuchCollector"])
    assert "broker 1 on eu/0 ended with status 1" in str(error)
    assert "Unrecognized VM option 'UseNoSuchCollector'" in str(error)


@with_kafka
def test_a_port_in_use_is_named(lab):
    server = lab.host("eu").start(["iperf3", "-s", "-p", "9094", "--forceflush"])
    try:
        server.wait_for_output("listening", 20)
        assert "Address already in use" in str(starting(lab))
    finally:
        server.stop()


@with_kafka
def test_a_cluster_that_comes_up_too_slowly_is_given_up(lab):
    assert "does not serve after 0.1 s" in str(starting(lab, start_timeout_s=0.1))


@with_kafka
def test_without_java_a_sentence_says_how_to_get_it(lab, tmp_path, monkeypatch):
    for program in ("nsenter", "unshare", "setsid", "sh", "mkdir", "install", "mv", "rm", "ls", "test", "kill"):
        (tmp_path / program).symlink_to(shutil.which(program))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no working Java on eu/0" in str(starting(lab))
    assert "apt-get install openjdk-17-jre-headless" in str(starting(lab))


@with_kafka
def test_a_setting_that_kafka_does_not_know_is_an_error(lab):
    assert "has no broker setting num.oi.threads" in str(starting(lab, settings={"num.oi.threads": 4}))


@with_kafka
def test_settings_and_security_can_change_while_topics_stay(lab):
    without = {"eligible.leader.replicas.version": 0}
    with Cluster(lab, ["eu"], settings={"num.io.threads": 3, **SOON}, features=without, **QUICK) as cluster:
        assert b"feature group.version to 1" in cluster.log(1)
        assert b"feature eligible.leader.replicas.version to" not in cluster.log(1)
        cluster.create_topic("t")
        other = "4.4.0" if kafka_jars("4.4.0").is_dir() else None  # not part of `make setup`
        assert cluster.reconfigure({"num.network.threads": 5}, "tls", other)
        assert not cluster.reconfigure({"num.network.threads": 5}, "tls", other)
        assert f"Kafka version: {other or cluster.describe()['kafka']}".encode() in cluster.log(1)
        settings = cluster.ask(lab.host("us"), "settings", broker=1, everything=True)
        assert settings["num.network.threads"] == "5" and settings["num.io.threads"] == "3"
        assert [topic["name"] for topic in cluster.ask(lab.host("us"), "topics")] == ["t"]
        assert b"SSL" in Path(cluster.client_file(lab.host("us"))).read_bytes()
        with pytest.raises(ParameterError, match="the cluster sets node"):
            cluster.reconfigure({"node.id": 4})
        cluster.freeze(1)
        with pytest.raises(AnswerError) as silent:
            cluster.ask(lab.host("us"), "cluster", connect_s=1, request_s=1)
        assert silent.value.kind == "Unreachable" and "10.1.0.1:9092: no connection" in str(silent.value)
        cluster.thaw(1)
        assert cluster.ask(lab.host("us"), "cluster")["controller"] == 1


@with_kafka
def test_controllers_may_be_nodes_of_their_own_clients_use_tls_and_all_is_gone_when_the_broker_died(lab):
    options = {"controllers": ["us"], "security": "mtls", **QUICK}
    with Cluster(lab, ["eu"], **options) as cluster:
        answer = cluster.ask(lab.host("us"), "cluster")
        assert [each["node_id"] for each in answer["brokers"]] == [1]
        assert answer["controller"] == 2
        assert [broker.metrics_port for broker in cluster.brokers] == [None]
        assert cluster.client_file(lab.host("us")).startswith(lab.host("us").scratch)
        cluster.create_topic("t")
        cluster.kill(2)
        with pytest.raises(ClusterError, match="controller 2 on us/0 is not running"):
            cluster.stop(2)
        cluster.start(2)
        host = lab.host("eu")
        host.run(
            ["kill", "-ABRT", host.run(["cat", cluster.pid_file(1)], timeout_s=10).stdout.decode().strip()],
            timeout_s=10,
        )
        assert comes_about(lambda: not cluster.runs(1))
        with pytest.raises(ClusterError, match="broker 1 on eu/0 ended with status"):
            cluster.check()
        for ask in (lambda: cluster.ask(lab.host("us"), "cluster"), lambda: cluster.delete_topic("t")):
            with pytest.raises(AnswerError, match="no broker of the cluster is running"):
                ask()
    for host in (lab.host("eu"), lab.host("us")):
        assert not processes_that_name(host.scratch) and host.cluster is None
        left = host.run(["ls", host.scratch], timeout_s=10).stdout.decode().split()
        assert set(left) <= {"tools_log4j2.properties"}, "no key and no client's settings are left"


def test_what_tells_a_lab_with_a_cluster_from_another_is_json(closed):
    answers = [KafkaLab(closed, ["eu"], security=kind).cluster_settings for kind in ("plain", Tls(), Tls(mutual=True))]
    assert len({json.dumps(each) for each in answers}) == 3


def java(folder, text):
    path = folder / "java"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_no_java_no_right_java_and_no_jars_are_each_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert unavailable().startswith("Java is not installed on this machine: apt-get install openjdk-17")
    java(tmp_path, "echo 'Unable to locate a Java Runtime.' >&2; exit 1")
    assert "it printed 'Unable to locate a Java Runtime.'" in unavailable()
    java(tmp_path, "echo 'openjdk version \"11.0.2\" 2019' >&2")
    assert unavailable().startswith("Java on this machine is 11, and brokers of Kafka 4 need 17: apt-get")
    java(tmp_path, "echo 'openjdk version \"21.0.2\" 2024' >&2")
    monkeypatch.setenv("WANBENCH_KAFKA", str(tmp_path / "nowhere"))
    assert "kafka_2.13 and kafka-tools missing" in unavailable() and "make setup" in unavailable()
    (tmp_path / "nowhere").mkdir()
    for name in ("kafka_2.13", "kafka-tools"):
        (tmp_path / "nowhere" / f"{name}-4.3.1.jar").touch()
    assert unavailable() is None


def test_too_few_hosts_say_how_to_get_more():
    lab = LocalLab(["eu", "us"], LINKS)
    with pytest.raises(ParameterError, match=r"2 brokers in eu need 2 hosts.*has 1.*hosts_per_region=2"):
        Cluster(lab, ["eu", "us", "eu"])
    with pytest.raises(ParameterError, match="3 controllers in us need 3 hosts"):
        Cluster(lab, ["eu"], controllers=["us"] * 3)


@pytest.mark.parametrize(
    "brokers, options, message",
    [
        ([], {}, "there are 0 brokers; allowed: 1 to 9"),
        (["eu"] * 10, {}, "there are 10 brokers"),
        ("eu", {}, "allowed: a list of regions"),
        (["mars"], {}, "names the region 'mars'; the lab has eu, us"),
        (["eu"], {"controllers": ["eu", "us"]}, "2 controllers; a quorum needs 1, 3 or 5"),
        (["eu"], {"controllers": "apart"}, "allowed: a list of regions"),
        (["eu"], {"settings": {"node.id": 4}}, "the cluster sets node.id itself"),
        (["eu"], {"settings": {"Num Threads": 4}}, "names like num.network.threads"),
        (["eu"], {"settings": {"a.b": "1\n2"}}, "allowed: one line"),
        (["eu"], {"settings": ["a.b"]}, "allowed: a mapping of names"),
        (["eu"], {"profile": "fast"}, "allowed: 'load', 'functional'"),
        (["eu"], {"heap_mb": 8}, "heap_mb is 8; allowed: a whole number from 64"),
        (["eu"], {"jvm": "-XX:+UseZGC"}, "allowed: a list of flags"),
        (["eu"], {"jvm": ["kafka.Kafka"]}, "allowed: a list of flags"),
        (["eu"], {"security": "none"}, "allowed: 'plain', 'tls', 'mtls'"),
        (["eu"], {"start_timeout_s": -1}, "start_timeout_s is -1"),
    ],
)
def test_what_is_not_as_it_must_be_fails_before_anything_starts(closed, brokers, options, message):
    with pytest.raises(ParameterError, match=message):
        Cluster(closed, brokers, **options)


def placed(lab, brokers, **options):
    return [(node.node_id, node.host.name, node.roles) for node in Cluster(lab, brokers, **options).placements]


def test_brokers_of_a_region_get_hosts_of_their_own_and_controllers_spread(closed):
    assert placed(closed, ["eu", "eu", "us"]) == [
        (1, "eu/0", "broker,controller"),
        (2, "eu/1", "broker,controller"),
        (3, "us/0", "broker,controller"),
    ]
    four = placed(closed, ["eu", "eu", "eu", "us"])
    assert [roles for _, _, roles in four] == ["broker,controller", "broker,controller", "broker", "broker,controller"]
    assert [roles for _, _, roles in placed(closed, ["eu", "us"])] == ["broker,controller", "broker"]
    assert placed(closed, ["us"], controllers=["eu", "eu", "us"]) == [
        (1, "us/0", "broker"),
        (2, "eu/0", "controller"),
        (3, "eu/1", "controller"),
        (4, "us/0", "controller"),
    ]


def test_a_cluster_that_is_not_started_says_so(closed):
    cluster = Cluster(closed, ["eu"])
    for ask in (
        lambda: cluster.stop(1),
        lambda: cluster.client_file(closed.host("eu")),
        lambda: cluster.java(closed.host("eu"), "kafka.Kafka"),
        lambda: cluster.create_topic("t"),
    ):
        with pytest.raises(ClusterError, match="not started"):
            ask()
    cluster.__exit__(None, None, None)


class Deaf:
    """A host on which a process runs that no command reaches."""

    name, scratch, address, region = "eu/0", "/scratch", "10.0.0.1", "eu"

    def __init__(self):
        self.stopped = 0

    def start(self, command):
        return self

    def wait(self, timeout_s):
        raise CommandError("it runs")

    def stop(self):
        self.stopped += 1

    def get(self, source, target):
        target.write_text("12\n")

    def run(self, command, *, timeout_s, ok):
        raise CommandError("no answer")


class Ended(Deaf):
    """A host on which every process has ended by itself, as one that was killed from outside."""

    def wait(self, timeout_s):
        return Completed(("java",), 137, b"", b"Killed\n", "", "")


def started(host, closed, monkeypatch):
    monkeypatch.setattr(Node, "command", ["java"])
    cluster = Cluster(closed, ["eu"])
    node = Node(NodePlacement(1, host, True, True), jars=None, heap_mb=64, flags=(), metrics=False, pauses=False)
    node.start()
    cluster._nodes = {1: node}
    return cluster, node


def test_a_broker_that_died_can_be_started_again(closed, monkeypatch):
    cluster, node = started(Ended(), closed, monkeypatch)
    cluster.start(1, wait=False)
    assert node.starts == 2


@pytest.mark.parametrize("end", [Cluster.stop, Cluster.kill])
def test_a_broker_that_died_is_not_ended_again(closed, monkeypatch, end):
    cluster, _ = started(Ended(), closed, monkeypatch)
    with pytest.raises(ClusterError, match="broker 1 on eu/0 ended with status 137"):
        end(cluster, 1)


def test_a_broker_that_runs_is_not_started_again(closed, monkeypatch):
    cluster, _ = started(Deaf(), closed, monkeypatch)
    with pytest.raises(ClusterError, match="broker 1 on eu/0 runs already"):
        cluster.start(1, wait=False)


def test_a_node_that_cannot_be_signalled_is_stopped_nevertheless(monkeypatch):
    monkeypatch.setattr(Node, "command", ["java"])
    node = Node(
        NodePlacement(1, host := Deaf(), True, True), jars=None, heap_mb=64, flags=(), metrics=False, pauses=False
    )
    node.start()
    with pytest.raises(CommandError, match="no answer"):
        node.kill()
    assert host.stopped == 1
