"""Probes of a cluster and a machine that are slow to answer: what is waited for, and what becomes of the trial."""

import json
import re

import probe_samples as samples
import pytest
from scripted_lab import Reply, ScriptedHost, ScriptedLab, ScriptedProcess

from wanbench.errors import CommandError
from wanbench.experiments import ExperimentError, KafkaLoad, KafkaTrial, kafka_probe_session
from wanbench.experiments.kafka_probe import KafkaProbe
from wanbench.ingest import kafka_probe
from wanbench.kafka.admin.ask import AnswerError
from wanbench.kafka.programs import probe_consumer, probe_record
from wanbench.runs import write_raw


class Program(ScriptedProcess):
    """What it prints comes at once; whoever waits for more has to wait."""

    def wait_for_output(self, text, timeout_s):
        if text.encode() not in self._reply.stdout:
            self._killed.wait(timeout_s if self._reply.lasts_s is None else 0)
            raise CommandError(f"{self.command[0]} did not print {text!r}")

    def wait(self, timeout_s):
        try:
            return super().wait(timeout_s)
        except CommandError as error:
            error.completed = self._completed(0)
            raise


class ProbedHost(ScriptedHost):
    scratch = "/scratch"

    def start(self, command):
        process = Program(command, self.lab.script(self, command))
        self.lab.processes.append(process)
        return process

    def put(self, source, target):
        pass


class SlowCluster:
    """Answers in the order of `answers`: the topic, or an error to raise; after these, what is right."""

    bootstrap, brokers = "", ()

    def __init__(self, answers=(), leaders=()):
        self.answers, self.asked, self.deleted, self.leaders = list(answers), [], [], leaders

    def ask(self, host, verb, **arguments):
        self.asked.append((verb, arguments))
        if verb == "cluster":
            return {"brokers": [{"node_id": n} for n in (1, 2, 3)]}
        if verb == "topics" and "names" not in arguments:
            return [{"partitions": [{"partition": 0, "leader": leader}]} for leader in self.leaders]
        if self.answers and verb == "create_topic":
            raise self.answers.pop(0)
        about = {"name": arguments.get("name"), "partitions": [{"partition": 0, "leader": 1}]}
        return [about] if verb == "topics" else about

    def python_client_file(self, host):
        return "/scratch/client.json"

    def delete_topic(self, name):
        self.deleted.append(name)

    def check(self):
        pass


SCHEDULE = samples.producer(ended=False)
READY = samples.lines([{"program": "probe consumer", "format": 1, "ready": {}}])
COORDINATOR = samples.lines([{"waits_for": "a connection"}, {"waits_for": "the group's coordinator"}])
READY_TO_SEND = samples.lines([{"waits_for": "acknowledgements"}]) + SCHEDULE


@pytest.fixture
def probed(monkeypatch):
    """(source, target, cluster), of hosts whose programs print what is given and then end, or never (None)."""
    monkeypatch.setattr(kafka_probe_session, "REPORT_S", 0.3)

    def made(consumer=READY, producer=READY_TO_SEND, cluster=None, lasts_s=0.0):
        def script(host, command):
            if "probe_consumer" in str(command):
                return Reply(consumer, lasts_s=lasts_s, stderr=b"no such module")
            if "probe_producer" in str(command):
                return Reply(producer, lasts_s=lasts_s)
            return Reply(b"the same kernel")

        lab = ScriptedLab(["a", "b"], script)
        hosts = [ProbedHost(lab, region, n) for n, region in enumerate("ab", 1)]
        for host in hosts:
            host.cluster = cluster or SlowCluster()
        return *hosts, hosts[0].cluster

    return made


@pytest.mark.parametrize(
    "answers, waited_for",
    [
        ({"consumer": COORDINATOR}, "consumer 0 on b waits for the group's coordinator"),
        ({"consumer": b""}, "consumer 0 on b waits for its program to start"),
        (
            {"producer": samples.lines([{"waits_for": 'a "b" (c)'}])},
            'producer on a waits for a "b" (c)',
        ),
    ],
)
def test_a_probe_that_is_not_ready_in_time_names_what_it_waited_for_and_what_it_was_beside_goes_on(
    probed, tmp_path, capfd, answers, waited_for
):
    source, target, cluster = probed(**answers, lasts_s=None)
    probe, went_on = KafkaProbe(start_timeout_s=1), []
    with probe.concurrently(source, target, tmp_path, "0001.1") as files:
        went_on.append(True)
    why = f"after 1 s the probe's {waited_for}"
    [row] = kafka_probe.read(tmp_path / "kafka_probe/0001.1.probe.json")["probes"].to_dict("records")
    assert went_on and row["error"] == why and row["n_intended"] == 0
    assert any(file.path.endswith("0001.1.probe.json") for file in files) and len(cluster.deleted) == 1
    assert f"Kafka: the probe's {waited_for}" in capfd.readouterr().err, "before the time was over"
    with pytest.raises(ExperimentError, match=f"the probe cannot start: {re.escape(why)}") as alone:
        probe.run(source, target, tmp_path, "0002.1")
    assert any(file.path.endswith("0002.1.probe.json") for file in alone.value.files)


def test_a_trial_goes_on_without_a_probe_that_is_not_ready(probed, tmp_path, monkeypatch):
    source, target, _ = probed(consumer=COORDINATOR, lasts_s=None)
    times = {"started_at_utc": "", "ended_at_utc": ""}
    left = write_raw(tmp_path, "kafka_load", "a.txt", b"", **times)
    monkeypatch.setattr(KafkaLoad, "run", lambda *load_hosts_and_place, when_sending: [left])
    files = KafkaTrial(KafkaLoad(), beside=(KafkaProbe(start_timeout_s=1),)).run(
        source, target, tmp_path, "0001.1"
    )
    assert {"kafka_load/a.txt", "kafka_probe/0001.1.probe.json"} <= {file.path for file in files}


def test_a_probes_program_that_ends_ends_the_start_with_its_last_words(probed, tmp_path):
    source, target, _ = probed(consumer=b"")
    probe = KafkaProbe()
    with (
        pytest.raises(
            ExperimentError, match=r"cannot start: the probe's consumer 0 on b ended .* no such module"
        ),
        probe.concurrently(source, target, tmp_path, "0001.1"),
    ):
        pytest.fail("it started")
    [row] = kafka_probe.read(tmp_path / "kafka_probe/0001.1.probe.json")["probes"].to_dict("records")
    assert "no such module" in row["error"]


@pytest.mark.parametrize("kinds", [["Timeout"], ["Timeout", "TopicAlreadyExistsError"], ["Unreachable"] * 3])
def test_a_cluster_that_does_not_answer_is_asked_again_for_the_topic(probed, tmp_path, kinds):
    cluster = SlowCluster([AnswerError(f"create_topic: {kind}", kind) for kind in kinds])
    source, target, _ = probed(cluster=cluster)
    with KafkaProbe(drain_s=0).concurrently(source, target, tmp_path, "0001.1") as files:
        pass
    assert len({arguments.get("name") for verb, arguments in cluster.asked if verb == "create_topic"}) == 1
    assert len(files) >= 2 and len(cluster.deleted) == 1


def test_a_cluster_that_refuses_the_topic_is_not_asked_again(probed, tmp_path):
    cluster = SlowCluster([AnswerError("create_topic: no", "TopicAlreadyExistsError")])
    source, target, _ = probed(cluster=cluster)
    with pytest.raises(ExperimentError, match="the probe cannot start: create_topic: no"):
        KafkaProbe().run(source, target, tmp_path, "0001.1")


@pytest.mark.parametrize(
    "leaders, partitions, placed",
    [((1,), 1, [[2, 1, 3]]), ((1, 1), 3, [[2, 1, 3], [3, 1, 2], [2, 1, 3]]), ((3, 2), 1, [[1, 2, 3]])],
)
def test_apart_means_led_by_brokers_that_lead_no_other_topic(probed, tmp_path, leaders, partitions, placed):
    cluster = SlowCluster(leaders=leaders)
    source, target, _ = probed(cluster=cluster)
    settings = {"placement": "apart", "replication": 3, "partitions": partitions, "drain_s": 0}
    with KafkaProbe(**settings, topic_settings={"min.insync.replicas": 2}).concurrently(
        source, target, tmp_path, "s"
    ):
        pass
    [arguments] = [arguments for verb, arguments in cluster.asked if verb == "create_topic"]
    assert arguments["placement"] == placed and arguments["settings"] == {"min.insync.replicas": "2"}


def test_apart_from_a_load_on_every_broker_cannot_be(probed, tmp_path):
    source, target, _ = probed(cluster=SlowCluster(leaders=(1, 2, 3)))
    with pytest.raises(ExperimentError, match="each of the brokers 1, 2, 3 leads a partition"):
        KafkaProbe(placement="apart").run(source, target, tmp_path, "s")


@pytest.mark.parametrize("rack, given", [(None, None), ("region", "b"), ("r-1", "r-1")])
def test_the_programs_are_given_rack_and_idempotence(probed, tmp_path, rack, given):
    source, target, _ = probed()
    with KafkaProbe(client_rack=rack, idempotence=bool(rack), drain_s=0).concurrently(
        source, target, tmp_path, "s"
    ):
        pass
    consumer, producer = (
        next(p.command for p in source.lab.processes if f"probe_{what}" in str(p.command))
        for what in ("consumer", "producer")
    )
    assert ("--idempotence" in producer) == bool(rack)
    assert probe_consumer.read_arguments(consumer[4:]).rack == (given or "")


def test_what_is_retriable_is_tried_again_and_told(capfd, monkeypatch):
    monkeypatch.setattr(probe_record.time, "sleep", lambda s: None)
    answers = [type("Timeout", (Exception,), {"retriable": True})("slow"), 7]

    def attempt():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert probe_record.insist(attempt, "a connection") == 7
    printed = [json.loads(line)["waits_for"] for line in capfd.readouterr().out.splitlines()]
    assert printed == ["a connection", "a connection (Timeout: slow)"]
    answers[:] = [ValueError("wrong")]
    with pytest.raises(ValueError, match="wrong"):
        probe_record.insist(attempt, "a connection")


def test_a_lab_without_a_cluster_cannot_be_probed(tmp_path):
    with ScriptedLab(["a", "b"]) as lab, pytest.raises(ExperimentError, match="no Kafka cluster"):
        KafkaProbe().run(lab.host("a"), lab.host("b"), tmp_path, "0001.1")
