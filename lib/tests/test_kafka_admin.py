"""Questions to a cluster of three brokers whose every connection is mutual TLS: answers, refusals, watching."""

import dataclasses
import json
from itertools import pairwise
from pathlib import Path

import pytest
from patience import comes_about
from scripted_lab import Scripted

from wanbench.measure.kafka.admin import ask as admin
from wanbench.measure.kafka.security.access import Access, ClientFiles
from wanbench.measure.kafka.security.kinds import Tls
from wanbench.measure.kafka.security.private_files import put_private

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


def produce(cluster, host, topic, records=500, client_file=None):
    arguments = ["--topic", topic, "--num-records", str(records), "--record-size", "100", "--throughput", "-1"]
    arguments += ["--bootstrap-server", cluster.bootstrap, "--command-config", client_file or cluster.client_file(host)]
    arguments += ["--command-property", "acks=all", "max.block.ms=30000"]
    return host.run(cluster.java(host, PRODUCER, *arguments, heap_mb=64), timeout_s=240, ok=None)


@pytest.mark.lab
@pytest.mark.kafka
def test_a_topic_is_made_changed_and_gone(cluster, host):
    cluster.create_topic("a", partitions=2, replication=3, settings={"retention.ms": 60_000})
    found = partitions(cluster, host, "a")
    assert [each["partition"] for each in found] == [0, 1]
    assert all(each["leader"] == each["replicas"][0] and sorted(each["replicas"]) == [1, 2, 3] for each in found)
    assert cluster.ask(host, "settings", of="topic", name="a")["retention.ms"]["value"] == "60000"
    cluster.ask(host, "change", of="topic", name="a", settings={"retention.ms": None, "segment.bytes": 2**20})
    changed = cluster.ask(host, "settings", of="topic", name="a")
    assert {name: each["value"] for name, each in changed.items()} == {"segment.bytes": "1048576"}
    cluster.delete_topic("a")
    assert "a" not in [each["name"] for each in cluster.ask(host, "topics")]
    cluster.create_topic("a")


@pytest.mark.lab
@pytest.mark.kafka
def test_partitions_lie_where_they_are_put(cluster, host):
    files = cluster._open_clients()
    made = admin.create_topic(host, files, "placed", placement=[[3, 1], [2, 3]])
    assert [each["replicas"] for each in made["partitions"]] == [[3, 1], [2, 3]]
    assert [each["leader"] for each in made["partitions"]] == [3, 2]


REFUSED = (
    ("create_topic", {"name": "refusals"}, "TopicAlreadyExistsError", "'refusals' already exists"),
    ("create_topic", {"name": "x", "replication": 4}, "InvalidReplicationFactorError", "only 3 broker"),
    ("create_topic", {"name": "x", "settings": {"no.such": 1}}, "InvalidConfigurationError", "no.such"),
    ("create_topic", {"name": "a b"}, "InvalidTopicError", "a b"),
    ("delete_topic", {"name": "none"}, "UnknownTopicOrPartitionError", "none"),
    ("topics", {"names": ["none"]}, "UnknownTopicOrPartitionError", "'none'"),
    ("settings", {"of": "topic", "name": "none"}, "UnknownTopicOrPartitionError", "none"),
    ("settings", {"of": "planet", "name": "x"}, "ValueError", "planet"),
    ("change", {"of": "topic", "name": "refusals", "settings": {"retention.ms": "soon"}},
     "InvalidConfigurationError", "soon"),
    ("reassign", {"topic": "refusals", "replicas": {"9": [1]}}, "UnknownTopicOrPartitionError", "partition 9"),
    ("reassign", {"topic": "refusals", "replicas": {"0": [9]}}, "InvalidReplicationAssignmentError", "partition 0"),
    ("elect", {"topic": "none"}, "UnknownTopicOrPartitionError", "'none'"),
    ("groups", {"names": ["none"]}, "GroupIdNotFoundError", "'none'"),
    ("topics", {"colour": "red"}, "UnknownArgument", "topics takes names, internal, not colour"),
)  # fmt: skip
ASK_ALL = """
import json, sys
from pathlib import Path
from wanbench.measure.kafka.admin.program import answered
settings = json.loads(Path(sys.argv[1]).read_text())
print(json.dumps([answered(settings, verb, question) for verb, question in json.loads(sys.argv[2])]))
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
    python, *_ = admin.command(host, cluster._open_clients(), "topics", {})
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
    admin.create_topic(host, cluster._open_clients(), "moves", placement=[[1, 2]])
    assert cluster.ask(host, "reassign", topic="moves", replicas={"0": [3, 2]}) == {"moving": 1}
    assert comes_about(lambda: partitions(cluster, host, "moves")[0]["replicas"] == [3, 2], 240, 0.2)
    assert comes_about(lambda: cluster.ask(host, "reassignments") == [], 240, 0.2)
    assert set(partitions(cluster, host, "moves")[0]["isr"]) == {2, 3}
    assert cluster.ask(host, "elect", topic="moves")["changed"] in (0, 1)
    assert comes_about(lambda: partitions(cluster, host, "moves")[0]["leader"] == 3, 240, 0.2)
    for replicas in ([2], [3, 2]):  # taken out, and copied again before it leads
        answer = cluster.ask(host, "lead", replicas={"moves": {"0": replicas}}, others=True, wait_s=40)
        assert answer == {"ordered": 1, "led": 1, "missing": 0}


@pytest.mark.lab
@pytest.mark.kafka
def test_records_over_mtls_are_replicated_and_groups_of_both_protocols_tell_members_offsets_and_lag(cluster, host):
    cluster.create_topic("read", partitions=3, replication=3)
    done = produce(cluster, host, "read", records=600)
    assert b"600 records sent" in done.stdout, done.stderr
    assert all(each["isr"] == [1, 2, 3] for each in partitions(cluster, host, "read"))
    protocols, readers = ["classic", "consumer"], []
    for protocol in protocols:
        client = Path(cluster.client_file(host)).read_text()
        client += f"group.protocol={protocol}\nauto.commit.interval.ms=200\n"
        arguments = ["--topic", "read", "--num-records", "100000", "--timeout", "240000", "--group", protocol]
        arguments += ["--bootstrap-server", cluster.bootstrap, "--command-config"]
        arguments += [put_private(host, f"{protocol}.properties", client)]
        readers.append(host.start(cluster.java(host, CONSUMER, *arguments, heap_mb=64)))

    def described():
        try:
            return cluster.ask(host, "groups", names=protocols)
        except admin.AnswerError as error:
            assert error.kind in ("GroupIdNotFoundError", "UnknownTopicOrPartitionError")
            return []

    def offsets(group):
        return cluster.ask(host, "offsets", group=group)

    def has_read(group):
        return [each["lag"] for each in offsets(group)] == [0, 0, 0]

    try:
        assert comes_about(lambda: [len(group["members"]) for group in described()] == [1, 1], 240, 0.5)
        assert all(comes_about(lambda group=group: has_read(group), 240, 0.5) for group in protocols)
        answers = described()
    finally:
        for reader in readers:
            reader.stop()
    assert [(each["protocol"], each["state"]) for each in answers] == [(each, "Stable") for each in protocols]
    for answer in answers:
        [member] = answer["members"]
        assert member["partitions"] == [["read", 0], ["read", 1], ["read", 2]]
        assert member["host"] == host.address
    produce(cluster, host, "read", records=60)
    for group in protocols:
        left = offsets(group)
        assert sum(each["lag"] for each in left) == 60 and sum(each["end"] for each in left) == 660


@pytest.mark.lab
@pytest.mark.kafka
def test_nobody_at_the_address_is_said_with_the_address(host, cluster):
    nobody = ClientFiles("10.2.0.1:1", Access())
    with pytest.raises(admin.AnswerError, match=r"Unreachable: 10\.2\.0\.1:1: .*ECONNREFUSED") as raised:
        admin.ask(host, nobody, "cluster", connect_s=1)
    assert raised.value.kind == "Unreachable"
    with admin.watching(host, nobody, 1.0) as process:
        samples = admin.samples(process.wait(60).stdout)
    nobody.remove()
    assert {sample["error"]["kind"] for sample in samples} == {"Unreachable"}
    assert all("ECONNREFUSED" in sample["error"]["message"] for sample in samples)


@pytest.mark.lab
@pytest.mark.kafka
def test_a_watch_sees_topics_as_they_come_and_groups(cluster, host):
    with cluster.watching(host, 600, groups=True, request_s=30) as process:
        process.wait_for_output('"topics": []', 120)
        cluster.create_topic("watched", placement=[[2, 1], [3, 1]])
        process.wait_for_output('"watched"', 120)
    samples = [sample for sample in admin.samples(process.stop().stdout) if "error" not in sample]
    assert all(sample["brokers"] == [1, 2, 3] and not sample["silent"] for sample in samples)
    assert samples[0]["topics"] == [] and samples[0]["groups"] is not None
    [topic] = samples[-1]["topics"]
    assert [(row["leader"], row["isr"]) for row in topic["partitions"]] == [(2, [1, 2]), (3, [1, 3])]
    assert all(later["at_s"] > sample["at_s"] for sample, later in pairwise(samples))
