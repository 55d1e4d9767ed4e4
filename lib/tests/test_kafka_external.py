"""
A cluster that already runs, with names, passwords and TLS: reached by what the environment holds, alone and in a
campaign beside the lab's own, and nothing secret stands anywhere afterwards.
"""

import contextlib
import json
import os
import threading
import traceback
from itertools import combinations
from pathlib import Path

import pytest
from sasl_plain import SaslPlain

from wanbench.errors import ClusterError, ParameterError
from wanbench.measure.campaign import start
from wanbench.measure.experiments import HostMetrics, KafkaLoad
from wanbench.measure.kafka import Cluster
from wanbench.measure.kafka.base import AnswerError
from wanbench.measure.kafka.external import ExternalCluster
from wanbench.measure.kafka.java_commands import PROFILES
from wanbench.measure.labs import LocalLab, matrix_links
from wanbench.measure.plan import make_trials
from wanbench.pages.tail_latency.design.systems import read_systems, systems_by_steps
from wanbench.read.ingest import tabulate
from wanbench.runs import write_raw

PRODUCER = "org.apache.kafka.tools.ProducerPerformance"
MARK = 'zQ7marked-pass word"9'
OTHER_MARK = "wR3wrong-marked"
pytestmark = [pytest.mark.lab, pytest.mark.kafka]

REGIONS = ["here", "there", "elsewhere"]
LINKS = matrix_links(dict.fromkeys(combinations(REGIONS, 2), 4), rate_bps=5e7)
THEIRS, OURS = "10.1.0.1:9092", "10.2.0.1:9092"
SMALL = {"profile": "functional", "heap_mb": 256, "metrics": False, "start_timeout_s": 300}


class StaysOpen(LocalLab):
    """A lab that a campaign can open and close while it stays open."""

    depth = 0

    def __enter__(self):
        self.depth += 1
        return self if self.depth > 1 else super().__enter__()

    def __exit__(self, *exception):
        self.depth -= 1
        return None if self.depth else super().__exit__(*exception)


@pytest.fixture(scope="module")
def no_names(tmp_path_factory):
    """The flag that has Java ask no name server: with SASL it looks for the name of every address that connects."""
    hosts = tmp_path_factory.mktemp("names") / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    return [f"-Djdk.net.hosts.file={hosts}"]


@pytest.fixture(scope="module")
def running(tmp_path_factory, no_names):
    """
    A cluster that is not ours: its bootstrap address and the file of its authority, and the lab it is in.

    Not the cluster that tests share: it has users, passwords and rights.
    """
    users = SaslPlain({"boss": "boss-word", "ada": MARK, "guest": MARK}, ["boss", "ada"], encrypted=True)
    with StaysOpen(REGIONS, LINKS) as lab, Cluster(lab, ["here"], security=users, jvm=no_names, **SMALL) as cluster:
        for hosts in lab.hosts.values():  # whoever uses it does not know that it is in the same lab
            for host in hosts:
                host.cluster = None
        authority = tmp_path_factory.mktemp("brought") / "authority.pem"
        authority.write_bytes(users.tls.authority_pem)
        cluster.create_topic("private")
        yield lab, cluster.bootstrap, authority


@pytest.fixture
def environment(monkeypatch):
    monkeypatch.setenv("OUR_PASSWORD", MARK)
    monkeypatch.setenv("WRONG_PASSWORD", OTHER_MARK)


def external(running, **arguments):
    lab, bootstrap, authority = running
    given = {"mechanism": "PLAIN", "user": "ada", "password_from": "OUR_PASSWORD", "authority_file": authority}
    return ExternalCluster(lab, bootstrap, **given | arguments)


class Eyes:
    """Looks through the command lines of every process, as long as it is open."""

    def __enter__(self):
        self.found, self.looked, self._end = set(), 0, threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._end.set()
        self._thread.join()

    def _look(self):
        while not self._end.is_set():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError):
                    arguments = Path("/proc", pid, "cmdline").read_bytes()
                    self.looked += (
                        b"wanbench.measure.kafka.programs.admin" in arguments or b"ProducerPerformance" in arguments
                    )
                    if is_marked(arguments):
                        self.found.add(arguments)
            self._end.wait(0.05)


def is_marked(content):
    content = content if isinstance(content, bytes) else str(content).encode()
    return b"zQ7marked" in content or b"wR3wrong" in content


def messages(error):
    return "".join(traceback.format_exception(error)) + repr(error) + repr(error.__dict__)


def test_nothing_secret_stands_anywhere(running, no_names, environment, tmp_path, capfd):
    lab, bootstrap, _ = running
    host = lab.host("here")
    with Eyes() as eyes, external(running, settings={"client.dns.lookup": "use_all_dns_ips"}) as cluster:
        cluster.create_topic("marked")
        cluster.check()
        shown = [repr(cluster), str(vars(cluster)), json.dumps(cluster.describe())]
        arguments = ["--topic", "marked", "--num-records", "2000", "--record-size", "100", "--throughput", "-1"]
        arguments += ["--bootstrap-server", bootstrap, "--command-config", cluster.client_file(host), "--print-metrics"]
        done = host.run(
            cluster.java(host, PRODUCER, *arguments, jvm=[*no_names, *PROFILES["functional"]]), timeout_s=90
        )
        assert b"2000 records sent" in done.stdout
        times = {"started_at_utc": done.started_at_utc, "ended_at_utc": done.ended_at_utc}
        write_raw(tmp_path, "kafka_load", "a.txt", done.stdout + done.stderr, command=done.command, **times)
        manifest = [file.as_dict() for file in cluster.keep(tmp_path, "a")]
        (tmp_path / "manifest.json").write_text(json.dumps([manifest, cluster.describe()]))
        private = [cluster.client_file(host), cluster._open_clients().python(host)]
        assert {Path(path).stat().st_mode & 0o777 for path in private} == {0o600}
        assert all("zQ7marked" in Path(path).read_text() for path in private)
        cluster.delete_topic("marked")
        with pytest.raises(AnswerError) as missing:
            cluster.delete_topic("marked")
        shown.append(messages(missing.value))
    assert eyes.looked
    assert not eyes.found
    assert not any(map(is_marked, shown))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 3
    assert not [path for path in files if is_marked(path.read_bytes())]
    assert not any(map(is_marked, capfd.readouterr()))
    assert not any(Path(path).exists() for path in private)


def test_it_has_the_face_of_a_cluster(running, environment, tmp_path):
    lab, bootstrap, _ = running
    host = lab.host("here")
    with external(running) as cluster:
        assert host.cluster is cluster
        assert cluster.bootstrap == bootstrap
        [broker] = cluster.brokers
        assert (broker.node_id, broker.host.address, broker.port) == (1, "10.1.0.1", 9092)
        assert broker.metrics_port is None
        assert [each["name"] for each in cluster.ask(host, "topics")] == ["private"]
        answer = cluster.describe()
        assert answer["brokers"] == [{"node_id": 1, "rack": "here"}]
        assert bootstrap not in json.dumps(answer)
        assert "ada" not in json.dumps(answer)
        [kept] = cluster.keep(tmp_path, "t")
        assert kept.path == "kafka_cluster/t.external.json"
        for cannot in (
            lambda: cluster.stop(1),
            lambda: cluster.kill(1),
            lambda: cluster.start(1),
            lambda: cluster.log_folder(1),
            lambda: broker.host.run(["true"], timeout_s=1),
            lambda: broker.host.scratch,
        ):
            with pytest.raises(ClusterError, match="outside the lab"):
                cannot()
        with pytest.raises(ClusterError, match="already has a cluster"), external(running):
            pass
    assert host.cluster is None
    with pytest.raises(ClusterError, match="not entered"):
        cluster.client_file(host)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"password_from": "WRONG_PASSWORD"}, r"user 'ada', mechanism PLAIN, SASL_SSL.*nvalid username or password"),
        ({"user": "nobody"}, r"user 'nobody'.*[Ii]nvalid username or password"),
        ({"mechanism": "SCRAM-SHA-256"}, r"SCRAM-SHA-256.*UnsupportedSaslMechanism"),
        ({"authority_file": None}, r"CERTIFICATE_VERIFY_FAILED"),
    ],
)  # fmt: skip
def test_who_is_not_let_in_is_told_why(running, environment, arguments, message):
    with Eyes() as eyes, pytest.raises(ClusterError, match=message) as raised, external(running, **arguments):
        pass
    assert running[1] in str(raised.value)
    assert not is_marked(messages(raised.value))
    assert not eyes.found
    assert running[0].host("here").cluster is None


def test_nobody_there_is_said_with_the_address(running, environment, monkeypatch):
    monkeypatch.setattr("wanbench.measure.kafka.external.CONNECT_S", 1.0)
    lab, _, authority = running
    arguments = {"mechanism": "PLAIN", "user": "ada", "password_from": "OUR_PASSWORD", "authority_file": authority}
    with pytest.raises(ClusterError, match=r"10\.1\.0\.1:1: .*ECONNREFUSED") as raised:
        ExternalCluster(lab, "10.1.0.1:1", **arguments).__enter__()
    assert raised.value.kind == "Unreachable"
    assert not is_marked(messages(raised.value))


def test_a_topic_without_rights_is_said(running, environment):
    with external(running, user="guest") as cluster:
        host = running[0].host("here")
        with pytest.raises(AnswerError, match="mine") as raised:
            cluster.create_topic("mine")
        assert raised.value.kind == "TopicAuthorizationFailedError"
        assert "user 'guest'" in str(raised.value)
        with pytest.raises(AnswerError, match=r"TopicAuthorizationFailedError: topic 'private'"):
            cluster.ask(host, "topics", names=["private"])
        assert not is_marked(messages(raised.value))


def test_everything_may_come_from_the_environment(running, environment, monkeypatch):
    lab, bootstrap, authority = running
    monkeypatch.setenv("OUR_SERVERS", bootstrap)
    monkeypatch.setenv("OUR_USER", "ada")
    arguments = {"mechanism": "PLAIN", "user_from": "OUR_USER", "password_from": "OUR_PASSWORD"}
    with ExternalCluster(lab, bootstrap_from="OUR_SERVERS", authority_file=authority, **arguments) as cluster:
        cluster.check()


def test_a_campaign_has_the_labs_cluster_and_an_external_one_side_by_side(
    running, no_names, environment, tmp_path, monkeypatch, capfd
):
    lab, bootstrap, authority = running
    monkeypatch.setattr(start, "LABS", {"local": lambda regions, links, **options: lab})
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("OUR_SERVERS", bootstrap)
    monkeypatch.setenv("OUR_USER", "ada")
    far = {"bootstrap_from": "OUR_SERVERS", "mechanism": "PLAIN", "user_from": "OUR_USER"}
    far |= {"password_from": "OUR_PASSWORD", "authority_file": str(authority)}
    compared = read_systems(
        [{"name": "ours", "load": {"linger_ms": 0}}, {"name": "theirs", "load": {"linger_ms": 10}, "cluster": "far"}]
    )
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *no_names)
    load = KafkaLoad(partitions=1, target_records_per_s=200, duration_s=2, warmup_s=1, jvm=quick, start_timeout_s=300)
    steps = {"target_records_per_s": [100]}
    trials = systems_by_steps(compared, load, steps, replicates=1, alongside=(HostMetrics(interval_s=1),))
    run = start.run(
        make_trials(trials, from_region="elsewhere", to_region="there", more_regions=["here"]),
        LINKS,
        lab="local",
        campaign="side-by-side",
        parameters={"external": {"far": far}},
        brokers=["there"],
        cluster=SMALL,
        external={"far": far},
        retries=0,
    )
    assert run.finished and run.tests().outcome.tolist() == ["done"] * 2, run.tests().reason.tolist()
    run.verify()
    about = json.dumps(run.lab["external"])
    assert run.lab["external"]["far"]["brokers"] == [{"node_id": 1, "rack": "here"}]
    assert THEIRS == bootstrap not in about and "ada" not in about
    kept = {file["path"] for file in run.raw_files()}
    assert {"kafka_cluster/session-1.far.external.json", "kafka_cluster/session-1.broker-1.server.log.gz"} <= kept

    tables = tabulate(run.folder, tmp_path / "tables")
    assert tables["unread"].empty
    found = tables["trials"].merge(tables["producers"], on="test_id")
    assert set(zip(found.system, found.cluster.fillna(""), found.linger_ms, strict=True)) == {
        ("ours", "", 0),
        ("theirs", "far", 10),
    }
    assert set(found.setting) == {trial.setting for trial in trials} and (found.records > 0).all()
    for test in tables["trials"].itertuples():
        commands = json.dumps([file for file in run.raw_files() if test.test_id in file["path"]])
        assert (THEIRS in commands) == (test.system == "theirs")
        assert (OURS in commands) == (test.system == "ours")

    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 20 and not [path for path in files if is_marked(path.read_bytes())]
    assert not any(map(is_marked, capfd.readouterr()))


class NoLab:
    hosts: dict = {}  # noqa: RUF012


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"bootstrap": "a"}, "bootstrap: address"),
        ({"bootstrap": None}, "bootstrap: address"),
        ({"bootstrap_from": "OUR_PASSWORD"}, "both bootstrap and bootstrap_from"),
        ({"password_from": MARK}, "name of an environment variable"),
        ({"password_from": "zQ7marked"}, "not set"),
        ({"password_from": None}, "needs a user and a password"),
        ({"settings": {"sasl.jaas.config": MARK}}, "password_from"),
        ({"settings": {"client.dns.lookup": "a\nb"}}, "one line"),
        ({"settings": {"security.protocol": "PLAINTEXT"}}, "sets security.protocol itself"),
        ({"key_file": "a"}, "must be given together"),
        ({"authority_file": "/nowhere"}, "authority_file cannot be read"),
        ({"protocol": "PLAINTEXT"}, "no mechanism"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(environment, arguments, message):
    given = {"bootstrap": "a:9092", "mechanism": "PLAIN", "user": "ada", "password_from": "OUR_PASSWORD"}
    with pytest.raises(ParameterError, match=message) as raised:
        ExternalCluster(NoLab(), **given | arguments)
    assert not is_marked(str(raised.value))


def test_a_client_may_be_told_how_to_check_names(environment):
    wanted = {"ssl.endpoint.identification.algorithm": ""}
    given = {"bootstrap": "a:9092", "mechanism": "PLAIN", "user": "ada", "password_from": "OUR_PASSWORD"}
    assert ExternalCluster(NoLab(), **given, settings=wanted).settings == wanted
