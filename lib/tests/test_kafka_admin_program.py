"""Questions to a cluster, without one: what its program prints, what is asked again, what is refused beforehand."""

import json
import pickle
import subprocess

import pytest
from kafka.errors import KafkaConnectionError, UnknownBrokerIdError, UnknownTopicOrPartitionError
from scripted_lab import Scripted

from wanbench.errors import ClusterError, ParameterError
from wanbench.measure.kafka import base as admin
from wanbench.measure.kafka.access import Access, ClientFiles
from wanbench.measure.kafka.base import BaseCluster
from wanbench.measure.kafka.programs import admin as admin_program

FILES = ClientFiles("b:1", Access())


@pytest.mark.parametrize(
    "printed, message",
    [
        ((b"",), "it printed nothing"),
        ((b"", b"Traceback\nNo module named kafka", 1), "status 1: No module named kafka"),
        ((b"not JSON",), "not JSON"),
        ((b"[1, 2]",), "status 0"),
        ((b'{"error": 7}',), "status 0"),
        ((b"\xff\xfe",), "status 0"),
    ],
)
def test_a_program_that_dies_is_said(printed, message):
    with pytest.raises(ClusterError, match=message):
        admin.ask(Scripted(*printed), FILES, "cluster")


def test_the_answer_is_the_last_line():
    assert admin.ask(Scripted(b'noise\n{"answer": [1]}\n'), FILES, "cluster") == [1]


def test_a_password_is_hidden_in_what_is_said_of_errors_and_changes_no_answer(capsys):
    admin_program.print_line({"answer": ["kafka-1"]}, "kafka")
    admin_program.print_line({"error": {"kind": "X", "message": "not with kafka"}}, "kafka")
    admin_program.print_line({"error": {"kind": "X", "message": 'not with "x"'}}, '"x"')
    admin_program.print_line({"at_s": 1.0, "topics": [{"name": "kafka"}]}, "kafka")
    answer, error, quoted, sample = map(json.loads, capsys.readouterr().out.splitlines())
    assert answer == {"answer": ["kafka-1"]} and sample["topics"] == [{"name": "kafka"}]
    assert error["error"]["message"] == quoted["error"]["message"] == "not with (hidden)"


def test_a_controller_that_the_client_does_not_know_yet_is_asked_again(monkeypatch):
    clients = iter(["that knows two brokers", "that knows all"])

    def create(client):
        if client == "that knows two brokers":
            raise UnknownBrokerIdError(2)
        return client

    monkeypatch.setattr(admin_program, "Admin", lambda settings, **waits: next(clients))
    monkeypatch.setitem(admin_program.VERBS, "create_topic", create)
    assert admin_program.respond({}, "create_topic", {}) == {"answer": "that knows all"}
    clients = iter(["that knows two brokers"])
    late = admin_program.respond({}, "create_topic", {"connect_s": -1.0})
    assert late["error"]["kind"] == "UnknownBrokerIdError"


class Brokers:
    """Brokers 1 and 2, which show in each answer how many replicas of the topic "t" they hold; None does not answer."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def requests(self, asked):
        held = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [self.answer(held[node - 1]) for node, _ in asked]

    def answer(self, n):
        if n is None:
            return KafkaConnectionError("refused")
        rows = [{"partition_index": k} for k in range(n)]
        return {"results": [{"topics": [{"name": "t", "partitions": rows}]}] if n >= 0 else []}


TWO_REPLICAS_EACH = {"name": "t", "partitions": [{"partition": k, "replicas": [1, 2]} for k in range(2)]}


@pytest.mark.parametrize("answers", [[(0, 0), (2, 1), (2, 2)], [(1, None), (2, None)], [(1, -1), (2, -1)]])
def test_a_topic_is_ready_once_each_broker_that_answers_holds_its_replicas(answers, monkeypatch):
    monkeypatch.setattr(admin_program, "POLL_S", 0)
    brokers = Brokers(*answers)
    admin_program._await_replicas(brokers, TWO_REPLICAS_EACH)
    assert brokers.answers == [answers[-1]]


def test_a_topic_whose_replicas_never_come_is_refused(monkeypatch):
    monkeypatch.setattr(admin_program, "POLL_S", 0)
    monkeypatch.setattr(admin_program, "WAIT_S", 0)
    with pytest.raises(admin_program.Refused, match="no more replicas: 1 of 2 at broker 2 after 0 s"):
        admin_program._await_replicas(Brokers((2, 1)), TWO_REPLICAS_EACH)


def test_a_topic_is_deleted_although_the_broker_that_was_asked_goes_away(monkeypatch):
    ends = [KafkaConnectionError("refused"), UnknownTopicOrPartitionError("gone")]

    def delete(client, name):
        raise ends.pop(0)

    monkeypatch.setattr(admin_program, "Admin", lambda settings, **waits: "a client")
    monkeypatch.setitem(admin_program.VERBS, "delete_topic", delete)
    assert admin_program.respond({}, "delete_topic", {"name": "t"}) == {"answer": None}
    ends = [UnknownTopicOrPartitionError("never there")]
    refused = admin_program.respond({}, "delete_topic", {"name": "t"})
    assert refused["error"]["kind"] == "UnknownTopicOrPartitionError"


def test_verbs_are_known_here_and_there():
    program = "from wanbench.measure.kafka.programs import admin as admin_program; print(*admin_program.VERBS)"
    done = subprocess.run([__import__("sys").executable, "-c", program], capture_output=True, check=True)
    assert sorted(done.stdout.decode().split()) == sorted(admin.VERBS)
    with pytest.raises(ParameterError, match="create_topic"):
        admin.ask(Scripted(b""), FILES, "destroy")


def test_secrets_are_no_words_of_a_question():
    secret = {"listener.name.client.plain.sasl.jaas.config": 'password="hunter2"'}
    with pytest.raises(ParameterError, match="must not contain secrets") as caught:
        admin.ask(Scripted(b'{"answer": null}'), FILES, "create_topic", name="a", settings=secret)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("arguments", [{"partitions": 0}, {"partitions": 1.0}, {"replication": True}])
def test_numbers_that_are_none_are_refused(arguments):
    with pytest.raises(ParameterError, match="whole number"):
        BaseCluster.create_topic(None, "a", **arguments)


def test_an_error_keeps_its_kind_over_a_pickle():
    error = pickle.loads(pickle.dumps(admin.AnswerError("said", "TopicAlreadyExistsError")))
    assert (str(error), error.kind) == ("said", "TopicAlreadyExistsError")


@pytest.mark.parametrize(
    "arguments, reason",
    [
        ({"duration_s": 0}, "duration_s is 0; allowed: a number above 0"),
        ({"interval_s": 0.1}, "interval_s is 0.1; allowed: a number of at least 0.25"),
        ({"internal": 1}, "internal is 1; allowed: True or False"),
    ],
)
def test_what_a_watch_cannot_be_asked_is_refused(arguments, reason):
    with (
        pytest.raises(ParameterError, match=reason),
        admin.watching(Scripted(b""), FILES, **{"duration_s": 1.0} | arguments),
    ):
        pytest.fail("the watch started")
