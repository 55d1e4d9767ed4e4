"""Plans of trials: what varies, in which order; what measuring keeps of them; what a trial does around its load."""

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import pytest
from scripted_lab import Reply, ScriptedLab, well

import wanbench
from wanbench.campaign.execute import measure
from wanbench.campaign.trial_plans import (
    BATCH_HEADER_BYTES,
    MOST_RECORD_HEADER_BYTES,
    RECORD_HEADER_BYTES,
    Path,
    thesis,
    two_paths,
)
from wanbench.errors import LabError, ParameterError
from wanbench.experiments import ExperimentError, Iperf3, KafkaLoad, KafkaTrial, Ping
from wanbench.ingest import read_run
from wanbench.links import LinkSettings
from wanbench.plan import Trial, make_trials
from wanbench.runs import write_raw
from wanbench.runs.journal import now_utc
from wanbench.stats.trials.rates import records_per_full_batch

PATHS = [Path("internet", 132.9, 25.1), Path("private", 62.5, 0.7)]
LOAD = KafkaLoad(batch_bytes=80_000, duration_s=5, warmup_s=2)


def plan_of(trials):
    return make_trials(trials, from_region="a", to_region="b")


# Plans


def test_paths_take_turns_at_every_scale():
    trials = two_paths(PATHS, LOAD, rate_bps=1e9, scales={10: 2, 20: 1}, background_share=0.8)
    by_block = {}
    for trial in trials:
        by_block.setdefault(trial.block, []).append(trial)
    assert [len(block) for block in by_block.values()] == [4, 4, 4]
    for block in by_block.values():
        settings = [trial.setting for trial in block]
        assert settings == settings[::-1] and set(settings) == {"internet", "private"}
        assert len({trial.experiments[0].link.rate_bps for trial in block}) == 1
    assert [block[0].experiments[0].link.rate_bps for block in by_block.values()] == [1e8, 5e7, 1e8]


def test_scaling_down_divides_link_background_and_batches_alike():
    for trial in two_paths(PATHS, LOAD, rate_bps=1e9, scales={10: 1, 20: 1}, background_share=0.8):
        [one] = trial.experiments
        scale = 1e9 / one.link.rate_bps
        assert one.background.rate_bps == 0.8 * one.link.rate_bps
        assert one.load.batch_bytes == 80_000 / scale
        assert one.background.duration_s >= one.load.duration_s + one.load.warmup_s + 1
        assert one.ping.count * one.ping.interval_s == one.background.duration_s


@pytest.mark.parametrize("full", [80_000, 81_920, 131_072])
@pytest.mark.parametrize("scale", [1, 5, 10, 20, 40, 80])
def test_batches_are_as_full_at_every_scale(full, scale):
    load = KafkaLoad(batch_bytes=full, duration_s=5)
    for trial in two_paths(PATHS, load, rate_bps=1e9, scales={scale: 1}, background_share=0.8):
        [one] = trial.experiments
        records = records_per_full_batch(one.load.batch_bytes, one.load.record_bytes)
        filled = BATCH_HEADER_BYTES + records * (one.load.record_bytes + RECORD_HEADER_BYTES)
        assert 0.98 < filled / one.load.batch_bytes <= 1
        late = BATCH_HEADER_BYTES + records * (one.load.record_bytes + MOST_RECORD_HEADER_BYTES)
        assert late <= one.load.batch_bytes and 500 < one.load.record_bytes < 1500


def test_records_keep_their_size_where_that_is_asked():
    asked = {"rate_bps": 1e9, "scales": {20: 1}, "background_share": 0.8}
    trials = two_paths(PATHS, LOAD, **asked, fit_records=False)
    assert {trial.experiments[0].load.record_bytes for trial in trials} == {1000}


def test_a_path_gives_each_direction_its_part_of_delay_and_deviation():
    link = PATHS[0].link(1e8)
    assert 2 * link.delay_ms == pytest.approx(132.9)
    assert 2**0.5 * link.jitter_ms == pytest.approx(25.1)
    assert link.rate_bps == 1e8


def test_the_thesis_varies_link_and_producer():
    factors = {
        "delay_ms": [10.0, 40.0],
        "rate_bps": [2e7, 1e8],
        "acks": ["1", "all"],
        "batch_bytes": [16384, 131072],
    }
    trials = thesis(factors, LOAD, replicates=2, seed=3)
    seen = {
        (one.link.delay_ms, one.link.rate_bps, one.load.acks, one.load.batch_bytes)
        for trial in trials
        for one in trial.experiments
    }
    assert len(trials) == 32 and len(seen) == 16
    assert {trial.block for trial in trials} == {1, 2}
    assert len({trial.setting for trial in trials}) == 16
    half = thesis(factors, LOAD, replicates=1, fraction={"acks": ["delay_ms", "rate_bps", "batch_bytes"]})
    assert len(half) == 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scales": {}}, "scales is {}"),
        ({"scales": {0.5: 1}}, "scales of at least 1"),
        ({"background_share": 1.0}, "background_share is 1.0"),
        ({"rate_bps": 0}, "rate_bps is 0"),
        ({"scales": {2000: 1}}, "batch_bytes is 40 at this scale"),
    ],
)
def test_what_cannot_be_planned_is_refused(change, message):
    given = {"rate_bps": 1e9, "scales": {10: 1}, "background_share": 0.8} | change
    with pytest.raises(ParameterError, match=message):
        two_paths(PATHS, LOAD, **given)


@pytest.mark.parametrize("name", ["bandwith", "n_consumers", "run"])
def test_a_factor_that_nothing_has_is_refused(name):
    with pytest.raises(ParameterError, match=f"factors has {name}; allowed: delay_ms"):
        thesis({name: [1, 2]}, LOAD, replicates=1)


def test_pings_and_background_need_a_load_by_time():
    by_count = KafkaLoad(records=100, duration_s=None)
    with pytest.raises(ParameterError, match="one with duration_s"):
        two_paths(PATHS, by_count, rate_bps=1e9, scales={10: 1}, background_share=0.8)


def test_a_plan_of_trials_needs_trials():
    with pytest.raises(ParameterError, match="at least one trial"):
        plan_of([])
    with pytest.raises(ParameterError, match="not a trial with a setting"):
        plan_of([Trial("", (Ping(),))])


# What measuring keeps


def test_trials_of_one_pair_are_measured_in_order_and_resumed(tmp_path):
    trials = [
        Trial(name, (Ping(count=2),), block) for block, name in ((1, "A"), (1, "B"), (2, "B"), (2, "A"))
    ]
    run = measure(
        plan_of(trials), ScriptedLab(["a", "b"]), data_folder=tmp_path, campaign="turns", progress=False
    )
    tests = run.tests()
    assert tests.setting.tolist() == ["A", "B", "B", "A"]
    assert tests.outcome.tolist() == ["done"] * 4
    again = measure(
        plan_of(trials), ScriptedLab(["a", "b"]), data_folder=tmp_path, campaign="turns", progress=False
    )
    assert again.run_id == run.run_id
    other = [Trial("C", trial.experiments, trial.block) for trial in trials]
    assert (
        measure(
            plan_of(other), ScriptedLab(["a", "b"]), data_folder=tmp_path, campaign="turns", progress=False
        ).run_id
        != run.run_id
    )


def test_a_trial_that_fails_is_tried_again_at_the_end(tmp_path):
    asked = []

    def script(host, command):
        asked.append(command)
        return Reply(returncode=2, stderr=b"no") if len(asked) == 1 else well(host, command)

    trials = [Trial(name, (Ping(count=2),)) for name in ("A", "B", "B")]
    lab = ScriptedLab(["a", "b"], script)
    run = measure(plan_of(trials), lab, data_folder=tmp_path, campaign="again", progress=False)
    tests = run.tests()
    assert tests.outcome.tolist() == ["failed", "done", "done", "done"]
    assert tests.setting.tolist() == ["A", "B", "B", "A"]


def test_table_trials_comes_from_the_plan(tmp_path):
    trials = two_paths(PATHS, LOAD, rate_bps=1e9, scales={10: 1}, background_share=0.8)
    plan = plan_of(trials)
    folder = tmp_path / "raw" / "c" / "r"
    folder.mkdir(parents=True)
    start = {
        "schema_version": 1,
        "campaign": "c",
        "run_id": "r",
        "plan": json.loads(json.dumps(plan.as_dict())),
    }
    event = {"event": "run-started", "at_utc": now_utc(), "parameters": {}, "lab": {"kind": "local"}, **start}
    (folder / "journal.jsonl").write_text(json.dumps(event) + "\n")
    table = read_run(folder)["trials"]
    assert table.setting.tolist() == [trial.setting for trial in trials]
    assert table.batch_bytes.unique().tolist() == [8000] and table.rate_bps.unique().tolist() == [1e8]
    assert table.background_bps.unique().tolist() == [8e7] and table.acks.unique().tolist() == ["all"]


# One trial


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
        file = write_raw(
            folder, self.name, f"{stem}.txt", b"x", started_at_utc=now_utc(), ended_at_utc=now_utc()
        )
        if self.fails or self.fails_early:
            raise ExperimentError("the producer died", [file])
        return [file]


@dataclass(frozen=True)
class MadeBeside:
    """Stands for a metric."""

    log: list
    name: ClassVar[str] = "beside"

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


class Links:
    def __init__(self):
        self.set = {}

    def set_link(self, a, b, **settings):
        self.set[a, b] = settings


@pytest.fixture
def hosts():
    lab = ScriptedLab(["a", "b"])
    with lab:
        lab.host("a").links = Links()
        yield lab.host("a"), lab.host("b")


def test_a_trial_sets_both_directions_and_starts_what_is_beside_first(hosts, tmp_path):
    log = []
    link = LinkSettings(20, rate_bps=1e8)
    trial = KafkaTrial(MadeLoad(log), link=link, ping=Ping(count=2), beside=(MadeBeside(log),))
    files = trial.run(*hosts, tmp_path, "t")
    assert log == ["started", "load", "ended"]
    assert {pair: arguments["delay_ms"] for pair, arguments in hosts[0].links.set.items()} == {
        ("a", "b"): 20,
        ("b", "a"): 20,
    }
    assert sorted(file.experiment for file in files) == ["beside", "kafka_load", "ping"]


def test_what_cannot_run_beside_a_load_is_refused_before_it_is_tried():
    with pytest.raises(ParameterError, match=r"beside has ping: 2 echoes .*; allowed: experiments"):
        KafkaTrial(LOAD, beside=(Ping(count=2),))


def test_a_trial_that_fails_keeps_what_was_printed(hosts, tmp_path):
    log = []
    trial = KafkaTrial(MadeLoad(log, fails=True), ping=Ping(count=2), beside=(MadeBeside(log),))
    with pytest.raises(ExperimentError, match="the producer died") as caught:
        trial.run(*hosts, tmp_path, "t")
    assert sorted(file.experiment for file in caught.value.files) == ["beside", "kafka_load", "ping"]


def test_nothing_goes_with_a_load_that_never_sends(hosts, tmp_path):
    trial = KafkaTrial(MadeLoad([], fails_early=True), ping=Ping(count=2))
    with pytest.raises(ExperimentError, match="the producer died") as caught:
        trial.run(*hosts, tmp_path, "t")
    assert [file.experiment for file in caught.value.files] == ["kafka_load"]


def test_a_background_that_fails_fails_the_trial(tmp_path):
    def script(host, command):
        return (
            Reply(returncode=1, stdout=b"{}", stderr=b"refused")
            if command[0] == "iperf3"
            else well(host, command)
        )

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
        trial = KafkaTrial(MadeLoad([]), background=background, beside=(MadeBeside([]),))
        with pytest.raises(ExperimentError, match="host is gone") as caught:
            trial.run(lab.host("a"), lab.host("b"), tmp_path, "t")
    assert {file.experiment for file in caught.value.files} == {"beside", "kafka_load"}


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

    def reconfigure(self, settings=None, security=None):
        self.asked.append((settings, security))


class SpreadLoad(MadeLoad):
    def run_on(self, producers, consumers, folder, stem, *, when_sending=None):
        self.log.extend([host.region for host in hosts] for hosts in (producers, consumers))
        return self.run(producers[0], consumers[0], folder, stem, when_sending=when_sending)


def test_each_trial_asks_for_the_brokers_and_gateways_that_it_wants(hosts, tmp_path):
    source, target = hosts
    source.links, source.cluster = MadeGateways(), MadeCluster(source.lab)
    other = KafkaTrial(MadeLoad([]), broker_settings={"num.io.threads": 4}, security="tls", gateway_bps=1e6)
    other.run(source, target, tmp_path, "1")
    KafkaTrial(MadeLoad([])).run(source, target, tmp_path, "2")
    assert source.cluster.asked == [({"num.io.threads": "4"}, "tls"), ({}, None)]
    assert source.links.asked == [("a", 1e6), ("b", 1e6), ("a", None), ("b", None)]
    KafkaTrial(MadeLoad([])).run(source, target, tmp_path, "3")
    assert len(source.links.asked) == 4, "gateways that are as asked for are left alone"


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
    with pytest.raises(ExperimentError, match="cannot be restarted with other settings, as security asks"):
        KafkaTrial(MadeLoad([]), security="tls").run(source, target, tmp_path, "1")
    with pytest.raises(ExperimentError, match="cannot share a gateway"):
        KafkaTrial(MadeLoad([]), gateway_bps=1e6).run(source, target, tmp_path, "2")
    KafkaTrial(MadeLoad([])).run(source, target, tmp_path, "3")


def test_a_link_can_be_set_only_where_it_is_emulated(tmp_path):
    with ScriptedLab(["a", "b"]) as lab, pytest.raises(ExperimentError, match="no emulated links"):
        KafkaTrial(MadeLoad([]), link=LinkSettings(1)).run(lab.host("a"), lab.host("b"), tmp_path, "t")


def test_everything_is_reached_by_name():
    assert wanbench.campaign.Path is Path
