"""What a trial does around its load."""

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from threading import Event
from types import SimpleNamespace
from typing import ClassVar

import pytest
from patience import PATIENCE_S
from scripted_lab import Reply, ScriptedLab, well

from wanbench.errors import LabError, ParameterError
from wanbench.measure.experiments import (
    ExperimentError,
    Iperf3,
    KafkaLoad,
    KafkaOpenLoop,
    KafkaTrial,
    Ping,
    kafka_trial,
)
from wanbench.measure.links import LinkSettings
from wanbench.runs import write_raw
from wanbench.runs.journal import now_utc

LOAD = KafkaLoad(batch_bytes=80_000, duration_s=5, warmup_s=2)


@dataclass(frozen=True)
class MadeLoad:
    """Stands for a load: says what was running when it ran."""

    log: list
    fails: bool = False
    fails_early: bool = False
    name: ClassVar[str] = "kafka_load"
    topics: ClassVar[int] = 1
    partitions: ClassVar[int] = 1
    replication: ClassVar[int] = 1
    topic_settings: ClassVar[tuple] = ()
    producer_settings: ClassVar[tuple] = ()
    consumer_settings: ClassVar[tuple] = ()

    def expected_s(self, rtt_ms, rate_bps=None):
        return 1.0

    def expected_bytes(self, rtt_ms, rate_bps=None):
        return None

    def run_on(self, producers, consumers, folder, stem, *, when_sending=None):
        raise AssertionError("nothing asks for clients in several regions")

    def run(self, source, target, folder, stem, when_sending):
        self.log.append("load")
        if not self.fails_early:
            when_sending()
        file = write_raw(folder, self.name, f"{stem}.txt", b"x", started_at_utc=now_utc(), ended_at_utc=now_utc())
        if self.fails or self.fails_early:
            raise ExperimentError("the producer died", [file])
        return [file]


@dataclass(frozen=True)
class MadeBeside:
    """Stands for a metric."""

    log: list
    name: str = "alongside"

    @contextmanager
    def concurrently(self, source, target, folder, stem):
        self.log.append("started")
        files = []
        try:
            yield files
        finally:
            self.log.append("ended")
            about = {"started_at_utc": now_utc(), "ended_at_utc": now_utc()}
            files.append(write_raw(folder, self.name, f"{stem}.txt", b"y", **about))


@pytest.fixture(autouse=True)
def sampled(monkeypatch):
    """Scripted hosts have no processors: a stand-in for what samples them, and the log of its calls."""
    log = []
    monkeypatch.setattr(kafka_trial, "ProcessorUse", lambda: MadeBeside(log, "processor_use"))
    return log


class Links:
    def __init__(self):
        self.links = dict.fromkeys([("a", "b"), ("b", "a")], LinkSettings(1))
        self.set = []

    def set_link(self, a, b, **settings):
        self.links[a, b] = LinkSettings(**settings)
        self.set.append((a, b, settings["delay_ms"]))


@pytest.fixture
def hosts():
    lab = ScriptedLab(["a", "b"])
    with lab:
        lab.host("a").links = Links()
        yield lab.host("a"), lab.host("b")


def test_a_trial_sets_both_directions_for_its_time_and_starts_what_is_beside_first(hosts, tmp_path, sampled):
    log = []
    link = LinkSettings(20, rate_bps=1e8)
    trial = KafkaTrial(MadeLoad(log), link=link, ping=Ping(count=2), alongside=(MadeBeside(log),))
    files = trial.run(*hosts, tmp_path, "t")
    assert log == ["started", "load", "ended"] and sampled == ["started", "ended"]
    assert hosts[0].links.set == [("a", "b", 20), ("b", "a", 20), ("a", "b", 1), ("b", "a", 1)]
    assert set(hosts[0].links.links.values()) == {LinkSettings(1)}
    assert sorted(file.experiment for file in files) == ["alongside", "kafka_load", "ping", "processor_use"]


def test_what_cannot_run_beside_a_load_is_refused_before_it_is_tried():
    with pytest.raises(ParameterError, match=r"alongside has ping: 2 echoes .*; allowed: experiments"):
        KafkaTrial(LOAD, alongside=(Ping(count=2),))
    with pytest.raises(ParameterError, match=r"trickle is KafkaLoad.*; allowed: a KafkaOpenLoop"):
        KafkaTrial(LOAD, trickle=LOAD)


def test_a_trial_that_fails_keeps_what_was_printed(hosts, tmp_path):
    log = []
    trial = KafkaTrial(MadeLoad(log, fails=True), ping=Ping(count=2), alongside=(MadeBeside(log),))
    with pytest.raises(ExperimentError, match="the producer died") as caught:
        trial.run(*hosts, tmp_path, "t")
    assert sorted(file.experiment for file in caught.value.files) == [
        "alongside",
        "kafka_load",
        "ping",
        "processor_use",
    ]


def made_trickle(log, *, starts=True):
    over = Event()

    class MadeTrickle(KafkaOpenLoop):
        def session(self, cluster, producers, consumers, folder, stem, when_sending):
            def run():
                if starts:
                    when_sending()
                    assert over.wait(PATIENCE_S)
                log.append("trickle")
                about = {"started_at_utc": now_utc(), "ended_at_utc": now_utc()}
                files = [write_raw(folder, "trickle", f"{stem}.txt", b"z", **about)]
                if not starts:
                    raise ExperimentError("no client was ready", files)
                return files

            return SimpleNamespace(run=run, over=over)

    return MadeTrickle(100)


@pytest.mark.parametrize("fails", [False, True])
def test_a_trickle_sends_before_the_load_and_ends_with_it(hosts, tmp_path, fails):
    hosts[0].cluster, log = MadeCluster(hosts[0].lab), []
    trial = KafkaTrial(MadeLoad(log, fails=fails), trickle=made_trickle(log))
    with pytest.raises(ExperimentError, match="the producer died") if fails else nullcontext() as caught:
        files = trial.run(*hosts, tmp_path, "t")
    kept = {file.experiment for file in (caught.value.files if fails else files)}
    assert log == ["load", "trickle"] and kept == {"processor_use", "trickle", "kafka_load"}


def test_a_trickle_that_cannot_start_fails_the_trial(hosts, tmp_path):
    hosts[0].cluster, log = MadeCluster(hosts[0].lab), []
    with pytest.raises(ExperimentError, match="no client was ready") as caught:
        KafkaTrial(MadeLoad(log), trickle=made_trickle(log, starts=False)).run(*hosts, tmp_path, "t")
    assert log == ["trickle"] and "trickle" in {file.experiment for file in caught.value.files}


def test_nothing_goes_with_a_load_that_never_sends(hosts, tmp_path):
    trial = KafkaTrial(MadeLoad([], fails_early=True), ping=Ping(count=2))
    with pytest.raises(ExperimentError, match="the producer died") as caught:
        trial.run(*hosts, tmp_path, "t")
    assert [file.experiment for file in caught.value.files] == ["processor_use", "kafka_load"]


def test_a_background_that_fails_fails_the_trial(tmp_path):
    def script(host, command):
        return Reply(returncode=1, stdout=b"{}", stderr=b"refused") if command[0] == "iperf3" else well(host, command)

    with ScriptedLab(["a", "b"], script) as lab:
        trial = KafkaTrial(MadeLoad([]), background=Iperf3(duration_s=1, udp=True, rate_bps=1e6))
        with pytest.raises(LabError) as caught:
            trial.run(lab.host("a"), lab.host("b"), tmp_path, "t")
    assert "kafka_load" in {file.experiment for file in caught.value.files}


def test_a_host_that_is_gone_costs_nothing_that_was_measured(tmp_path):
    def script(host, command):
        if command[0] == "iperf3":
            raise LabError("host is gone")
        return well(host, command)

    with ScriptedLab(["a", "b"], script) as lab:
        background = Iperf3(duration_s=1, udp=True, rate_bps=1e6)
        trial = KafkaTrial(MadeLoad([]), background=background, alongside=(MadeBeside([]),))
        with pytest.raises(ExperimentError, match="host is gone") as caught:
            trial.run(lab.host("a"), lab.host("b"), tmp_path, "t")
    assert {file.experiment for file in caught.value.files} == {"alongside", "kafka_load", "processor_use"}


class MadeGateways(Links):
    def __init__(self):
        super().__init__()
        self.regions, self.gateways, self.asked = ["a", "b"], {}, []

    def set_gateway(self, region, rate_bps):
        self.gateways[region] = rate_bps
        self.asked.append((region, rate_bps))


class MadeCluster:
    def __init__(self, lab):
        self.lab, self.asked = lab, []

    def reconfigure(self, settings=None, security=None, version=None):
        self.asked.append((settings, security, version))


class SpreadLoad(MadeLoad):
    def run_on(self, producers, consumers, folder, stem, *, when_sending=None):
        self.log.extend([host.region for host in hosts] for hosts in (producers, consumers))
        return self.run(producers[0], consumers[0], folder, stem, when_sending=when_sending)


def test_each_trial_asks_for_the_brokers_and_gateways_that_it_wants(hosts, tmp_path):
    source, target = hosts
    source.links, source.cluster = MadeGateways(), MadeCluster(source.lab)
    other = KafkaTrial(
        MadeLoad([]), broker_settings={"num.io.threads": 4}, security="tls", kafka_version="4.4.0", gateway_bps=1e6
    )
    other.run(source, target, tmp_path, "1")
    KafkaTrial(MadeLoad([])).run(source, target, tmp_path, "2")
    assert source.cluster.asked == [({"num.io.threads": "4"}, "tls", "4.4.0"), ({}, None, None)]
    assert source.links.asked == [("a", 1e6), ("b", 1e6), ("a", None), ("b", None)]
    KafkaTrial(MadeLoad([])).run(source, target, tmp_path, "3")
    assert len(source.links.asked) == 4, "gateways that are as asked for are left alone"


def test_a_path_is_taken_and_what_is_expected_of_it_is_not_set(hosts, tmp_path):
    source, target = hosts
    taken = []
    source.paths = SimpleNamespace(use=taken.append)
    trial = KafkaTrial(MadeLoad([]), link=LinkSettings(10.0), path="private")
    trial.run(source, target, tmp_path, "1")
    assert taken == ["private"]
    source.paths = None
    with pytest.raises(ExperimentError, match="has only one path and cannot use 'private'"):
        trial.run(source, target, tmp_path, "2")


def test_clients_are_spread_over_regions(hosts, tmp_path):
    source, target = hosts
    source.cluster, log = MadeCluster(source.lab), []
    KafkaTrial(SpreadLoad(log), client_regions=["b", "a"]).run(source, target, tmp_path, "1")
    assert log[:2] == [["b", "a"], ["b", "a"]]
    with pytest.raises(ExperimentError, match="client_regions has c; the lab has a, b"):
        KafkaTrial(SpreadLoad(log), client_regions=("a", "c")).run(source, target, tmp_path, "2")


def test_what_a_lab_or_a_cluster_cannot_do_is_an_error(hosts, tmp_path):
    source, target = hosts
    source.cluster = object()
    with pytest.raises(ExperimentError, match="cannot be restarted with other settings, but the trial sets security"):
        KafkaTrial(MadeLoad([]), security="tls").run(source, target, tmp_path, "1")
    with pytest.raises(ExperimentError, match="cannot share a gateway"):
        KafkaTrial(MadeLoad([]), gateway_bps=1e6).run(source, target, tmp_path, "2")
    KafkaTrial(MadeLoad([])).run(source, target, tmp_path, "3")


def test_a_link_can_be_set_only_where_it_is_emulated(tmp_path):
    with ScriptedLab(["a", "b"]) as lab, pytest.raises(ExperimentError, match="no emulated links"):
        KafkaTrial(MadeLoad([]), link=LinkSettings(1)).run(lab.host("a"), lab.host("b"), tmp_path, "t")
