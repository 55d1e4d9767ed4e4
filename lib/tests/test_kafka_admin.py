"""Questions to a cluster of three brokers whose every connection is mutual TLS: answers, refusals, watching."""

import dataclasses
import json
from itertools import pairwise
from pathlib import Path

import pytest
from patience import comes_about
from scripted_lab import Scripted

from wanbench.measure.kafka import base as admin
from wanbench.measure.kafka.access import Access, ClientFiles, put_private
from wanbench.measure.kafka.java_commands import PROFILES
from wanbench.measure.kafka.security import Tls
from wanbench.measure.labs.programs import host_python

PRODUCER = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER = "org.apache.kafka.tools.ConsumerPerformance"


@pytest.fixture
def cluster(shared_cluster):
    return shared_cluster


@pytest.fixture
def host(cluster):
    return cluster.lab.host("us")


def partitions(cluster, host, topic):
    [answer] = cluster.ask(host, "topics", names=[topic])
    return answer["partitions"]


def samples(process):
    """What a watch has printed so far; a last line cut short by a stop is left out."""
    printed = process.so_far().stdout
    return [json.loads(line) for line in printed[: printed.rfind(b"\n") + 1].splitlines()]


def produce(cluster, host, topic, records=500, client_file=None):
    arguments = ["--topic", topic, "--num-records", str(records), "--record-size", "100", "--throughput", "-1"]
    arguments += ["--bootstrap-server", cluster.bootstrap, "--command-config", client_file or cluster.client_file(host)]
    arguments += ["--command-property", "acks=all", "max.block.ms=30000"]
    return host.run(
        cluster.java(host, PRODUCER, *arguments, heap_mb=64, jvm=PROFILES["functional"]), timeout_s=240, ok=None
    )


@pytest.mark.lab
@pytest.mark.kafka
def test_a_topic_is_made_changed_and_gone(cluster, host):
    cluster.create_topic("a", partitions=2, replication=3, settings={"retention.ms": 60_000})
    found = partitions(cluster, host, "a")
    assert [each["partition"] for each in found] == [0, 1]
    assert all(each["leader"] == each["replicas"][0] and sorted(each["replicas"]) == [1, 2, 3] for each in found)
    assert cluster.ask(host, "settings", broker=1) == {}
    cluster.delete_topic("a")
    assert "a" not in [each["name"] for each in cluster.ask(host, "topics")]
    cluster.create_topic("a")


@pytest.mark.lab
@pytest.mark.kafka
def test_partitions_lie_where_they_are_put(cluster, host):
    made = cluster.create_topic("placed", placement=[[3, 1], [2, 3]])
    assert [each["replicas"] for each in made["partitions"]] == [[3, 1], [2, 3]]
    assert [each["leader"] for each in made["partitions"]] == [3, 2]


@pytest.mark.lab
@pytest.mark.kafka
def test_a_new_topic_has_its_logs_at_all_brokers(cluster):
    cluster.create_topic("many", partitions=60, replication=3)
    assert [len(list(Path(node.data_folder).glob("many-*"))) for node in cluster._nodes.values()] == [60, 60, 60]


REFUSED = (
    ("create_topic", {"name": "refusals"}, "TopicAlreadyExistsError", "'refusals' already exists"),
    ("create_topic", {"name": "x", "replication": 4}, "InvalidReplicationFactorError", "only 3 broker"),
    ("create_topic", {"name": "x", "settings": {"no.such": 1}}, "InvalidConfigurationError", "no.such"),
    ("create_topic", {"name": "a b"}, "InvalidTopicError", "a b"),
    ("delete_topic", {"name": "none"}, "UnknownTopicOrPartitionError", "none"),
    ("topics", {"names": ["none"]}, "UnknownTopicOrPartitionError", "'none'"),
    ("log_ends", {"topic": "none"}, "UnknownTopicOrPartitionError", "'none'"),
    ("settings", {"broker": 9}, "UnknownBrokerIdError", "9"),
    ("lead", {"replicas": {"refusals": {"0": [9]}}}, "InvalidReplicationAssignmentError", "partition 0"),
    (
        "lead", {"replicas": {"refusals": {"0": [9]}}, "others": True},
        "InvalidReplicationAssignmentError", "partition 0",
    ),
    ("topics", {"colour": "red"}, "TypeError", "colour"),
)  # fmt: skip
ASK_ALL = """
import json, sys
from pathlib import Path
from wanbench.measure.kafka.programs.admin import respond
settings = json.loads(Path(sys.argv[1]).read_text())
print(json.dumps([respond(settings, verb, question) for verb, question in json.loads(sys.argv[2])]))
"""


@pytest.mark.lab
@pytest.mark.kafka
def test_refusals_have_kafkas_name_and_words(cluster, host):
    cluster.create_topic("refusals")
    verb, arguments, kind, message = REFUSED[0]
    with pytest.raises(admin.AnswerError, match=message) as raised:
        cluster.ask(host, verb, **arguments)
    assert raised.value.kind == kind and kind in str(raised.value)
    # One process puts all questions: to start one for each would take most of the time.
    python = host_python(host).executable
    questions = json.dumps([(verb, arguments) for verb, arguments, *_ in REFUSED])
    settings = cluster._open_clients().python(host)
    printed = host.run([python, "-P", "-c", ASK_ALL, settings, questions], timeout_s=240).stdout
    for (verb, arguments, kind, message), answer in zip(REFUSED, json.loads(printed), strict=True):
        with pytest.raises(admin.AnswerError, match=message) as raised:
            answering = Scripted(json.dumps(answer).encode(), b"", 3)
            admin.ask(answering, ClientFiles("b:1", Access()), verb, **arguments)
        assert raised.value.kind == kind and kind in str(raised.value)


@pytest.mark.lab
@pytest.mark.kafka
def test_a_client_without_a_certificate_is_refused(cluster, host):
    known = cluster.security.access()
    for access in (dataclasses.replace(known, identity_pem=None), Access("SSL", authority_pem=known.authority_pem,
                   identity_pem=Tls(mutual=True).access().identity_pem)):  # fmt: skip
        strange = ClientFiles(cluster.bootstrap, access)
        try:
            with pytest.raises(admin.AnswerError, match=r"(?i)alert|certificate") as raised:
                admin.ask(host, strange, "cluster", connect_s=60)
            assert cluster.bootstrap in str(raised.value)
            done = produce(cluster, host, "none", records=1, client_file=strange.java(host))
            assert b"SslAuthenticationException" in done.stdout + done.stderr
        finally:
            strange.remove()


@pytest.mark.lab
@pytest.mark.kafka
def test_a_client_that_does_not_know_the_authority_refuses(cluster, host):
    strange = ClientFiles(cluster.bootstrap, Tls(mutual=True).access())
    try:
        with pytest.raises(admin.AnswerError, match="CERTIFICATE_VERIFY_FAILED"):
            admin.ask(host, strange, "cluster", connect_s=60)
    finally:
        strange.remove()


@pytest.mark.lab
@pytest.mark.kafka
def test_a_partition_moves(cluster, host):
    cluster.create_topic("moves", placement=[[1, 2]])
    for replicas in ([3, 2], [2], [2, 3], [3, 2]):  # moved, taken out, copied again, and only reordered
        answer = cluster.ask(host, "lead", replicas={"moves": {"0": replicas}}, others=True)
        assert answer == {"ordered": 1, "led": 1, "missing": 0}
        [row] = partitions(cluster, host, "moves")
        assert (row["replicas"], row["leader"]) == (replicas, replicas[0])
    assert comes_about(lambda: set(partitions(cluster, host, "moves")[0]["isr"]) == {2, 3}, 240, 0.2)
    assert cluster.ask(host, "elect") == {"changed": 0}


@pytest.mark.lab
@pytest.mark.kafka
def test_records_over_mtls_are_replicated_and_members_of_groups_of_both_protocols_are_watched(cluster, host):
    cluster.create_topic("read", partitions=3, replication=3)
    done = produce(cluster, host, "read", records=600)
    assert b"600 records sent" in done.stdout, done.stderr
    assert all(row["isr"] == [1, 2, 3] for row in partitions(cluster, host, "read"))
    ends = cluster.ask(host, "log_ends", topic="read")
    assert all(row["high_watermark"] == row["end"] for row in ends) and sum(row["end"] for row in ends) == 600
    protocols, readers = ["classic", "consumer"], []
    for protocol in protocols:
        client = Path(cluster.client_file(host)).read_text()
        client += f"group.protocol={protocol}\nauto.commit.interval.ms=200\n"
        arguments = ["--topic", "read", "--num-records", "100000", "--timeout", "240000", "--group", protocol]
        arguments += ["--bootstrap-server", cluster.bootstrap, "--command-config"]
        arguments += [put_private(host, f"{protocol}.properties", client)]
        readers.append(host.start(cluster.java(host, CONSUMER, *arguments, heap_mb=64, jvm=PROFILES["functional"])))
    wanted = [["read", 0], ["read", 1], ["read", 2]]

    def held(process):
        latest = {sample["group"]: sample for sample in samples(process) if "members" in sample}
        return {group: [row["partitions"] for row in sample["members"]] for group, sample in latest.items()}

    try:
        with cluster.watching(host, 600, topics=["read"], members=protocols) as process:
            assert comes_about(lambda: held(process) == {protocol: [wanted] for protocol in protocols}, 240, 0.5), held(
                process
            )
            states = {sample["state"] for sample in samples(process)[-6:] if "members" in sample}
    finally:
        for reader in readers:
            reader.stop()
    assert states == {"Stable"}


@pytest.mark.lab
@pytest.mark.kafka
def test_nobody_at_the_address_is_said_with_the_address(host, cluster):
    nobody = ClientFiles("10.2.0.1:1", Access())
    with pytest.raises(admin.AnswerError, match=r"Unreachable: 10\.2\.0\.1:1: .*ECONNREFUSED") as raised:
        admin.ask(host, nobody, "cluster", connect_s=1)
    assert raised.value.kind == "Unreachable"
    with admin.watching(host, nobody, 1.0) as process:
        process.wait(60)
    nobody.remove()
    assert {sample["error"]["kind"] for sample in samples(process)} == {"Unreachable"}
    assert all("ECONNREFUSED" in sample["error"]["message"] for sample in samples(process))


@pytest.mark.lab
@pytest.mark.kafka
def test_a_watch_sees_topics_as_they_come(cluster, host):
    with cluster.watching(host, 600) as process:
        process.wait_for_output('"topics": []', 120)
        cluster.create_topic("watched", placement=[[2, 1], [3, 1]])
        process.wait_for_output('"watched"', 120)
    seen = [sample for sample in samples(process) if "error" not in sample]
    assert all(sample["brokers"] == [1, 2, 3] and sample["node_id"] in (1, 2, 3) for sample in seen)
    assert seen[0]["topics"] == []
    [topic] = seen[-1]["topics"]
    assert [(row["leader"], row["isr"]) for row in topic["partitions"]] == [(2, [1, 2]), (3, [1, 3])]
    assert all(later["at_s"] > sample["at_s"] for sample, later in pairwise(seen))
