"""Searches for a rate: settings, verdicts on steps, and searches over a made-up system whose limit is known."""

from math import sqrt

import pytest
from mock_kafka import PARTITIONS, HereHost, MockCluster

from wanbench.errors import CommandError, ParameterError
from wanbench.measure.experiments import ExperimentError, KafkaOpenLoop, KafkaTrial
from wanbench.pages.tail_latency.design import kafka_rate_search
from wanbench.pages.tail_latency.design.kafka_rate_search import KafkaRateSearch, judged
from wanbench.read.ingest import kafka_open_loop

LOAD = KafkaOpenLoop(1, groups=2, duration_s=3, warmup_s=1)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"load": 5}, "load is 5"),
        ({"quantile": 0.0}, "quantile is 0"),
        ({"quantile": 1}, "quantile is 1"),
        ({"steps": 0}, "steps is 0"),
        ({"what": "round trip"}, "what is 'round trip'"),
        ({"lowest_records_per_s": 800}, "allowed: less than 800"),
        ({"load": KafkaOpenLoop(1, most_bytes=1e6)}, "most_bytes allows"),
        ({"objective_ms": 0}, "objective_ms is 0"),
    ],
)
def test_wrong_settings_are_refused(wrong, reason):
    settings = {"load": LOAD, "objective_ms": 50, "lowest_records_per_s": 100, "highest_records_per_s": 800}
    with pytest.raises(ParameterError, match=reason):
        KafkaRateSearch(**settings | wrong)


def test_it_stands_as_the_load_of_a_trial():
    search = KafkaRateSearch(LOAD, 50, 100, 900)
    trial = KafkaTrial(search)
    assert trial.expected_s(10.0) > 7 * 4 and trial.expected_bytes(10.0) == 7 * 300 * 4 * 2_048
    assert (search.first_rate, search.replication) == (300, 3)


# Verdicts


def second(number, latency_us=(20_000,), late=0, n_due=100, backlog=5, late_group=0):
    """A second of 100 records: what a producing process and each of two groups print of it."""
    each = n_due // len(latency_us)
    values = sorted((us, each) for us in latency_us)
    flat = [value for pair in values for value in pair]
    sent = {"second": number, "n_due": n_due, "backlog": backlog, "late": [late, n_due], "publish": flat}
    return sent, {"second": number, "latency": flat, "late": [late_group, n_due]}


def verdict(*seconds, objective_ms=50, **settings):
    search = KafkaRateSearch(LOAD, objective_ms, 50, 900, **settings)
    sent, received = zip(*seconds, strict=True)
    return judged(search, search.at(100), [list(sent)], [list(received)] * 2)


STEADY = [second(n) for n in range(4)]


def test_a_step_meets_its_objective_by_the_quantile_after_the_warm_up():
    slow_at_first = [second(0, (900_000,)), *STEADY[1:]]
    found = verdict(*slow_at_first)
    assert found["met"] is True and found["value_ms"] == 20 and (found["n"], found["n_lost"]) == (600, 0)
    assert verdict(*STEADY, objective_ms=19)["met"] is False
    half_slow = [second(n, (20_000, 80_000)) for n in range(4)]
    assert verdict(*half_slow)["value_ms"] == 80 and verdict(*half_slow)["met"] is False
    assert verdict(*half_slow, quantile=0.5)["met"] is True
    assert verdict(*half_slow, what="publish")["n"] == 300


def test_lost_records_and_a_growing_backlog_fail_a_step():
    lost = [*STEADY[:3], (STEADY[3][0], {"second": 3, "latency": [20_000, 99], "late": []})]
    found = verdict(*lost)
    assert found["n_lost"] == 2 and found["met"] is False and found["value_ms"] == 20
    growing = [second(n, backlog=20 * n) for n in range(4)]
    found = verdict(*growing)
    assert found["backlog_grew"] and found["met"] is False
    nothing = [(sent, {"second": n, "latency": [], "late": []}) for n, (sent, _) in enumerate(STEADY)]
    assert verdict(*nothing)["value_ms"] is None and verdict(*nothing)["met"] is False


def test_a_step_in_which_the_generator_fell_behind_says_nothing():
    for late in ({"late": 300}, {"late_group": 300}):
        found = verdict(*(second(n, **late) for n in range(4)))
        assert found["fell_behind"] and found["met"] is None


# Searches


class MadeUp:
    """A session whose system meets the objective up to `limit` records/s; the generator falls behind from `behind`
    on, and at `late` steps."""

    limit, behind, fails, late = 1_000.0, float("inf"), float("inf"), ()

    def __init__(self, load, cluster, producers, consumers, folder, stem, when_sending, *, step):
        self.load, self.when_sending, self.files = load, when_sending or (lambda: None), [f"{stem} {step}"]
        self.step = step

    def run(self):
        self.when_sending()
        if self.load.rate_records_per_s >= self.fails:
            raise CommandError("no broker")

    def printed(self):
        rate = self.load.rate_records_per_s
        us = 90_000 if rate > self.limit else 20_000
        late = 300 if rate >= self.behind or self.step in self.late else 0
        sent, received = zip(*(second(n, (us,), late) for n in range(4)), strict=True)
        return [list(sent)], [list(received)] * 2


@pytest.fixture
def system(monkeypatch):
    made = type("System", (MadeUp,), {})
    monkeypatch.setattr(kafka_rate_search, "OpenLoopSession", made)
    monkeypatch.setattr(kafka_rate_search, "SETTLE_S", 0)
    return made


def searched(tmp_path, low, high, **settings):
    host = HereHost("eu", tmp_path)
    MockCluster([host])
    files, began = [], []
    search = KafkaRateSearch(LOAD, 50, low, high, **settings)
    try:
        files = search.run(host, host, tmp_path, "s", when_sending=lambda: began.append(1))
    finally:
        steps = kafka_open_loop.read_search(tmp_path / "kafka_rate_search/s.search.json")["rate_search_steps"]
        assert began == [1] and (not files or len(files) == len(steps) + 1)
    return search, steps


@pytest.mark.parametrize("limit", [230.0, 1_000.0, 3_333.0])
def test_the_limit_is_between_the_ends_of_the_bracket(system, tmp_path, limit):
    system.limit = limit
    search, steps = searched(tmp_path, 100, 6_400)
    last = steps.iloc[-1]
    assert len(steps) == 7 and steps.step.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert last.met_until_records_per_s <= limit < last.failed_from_records_per_s
    assert last.failed_from_records_per_s / last.met_until_records_per_s == pytest.approx(search.factor, rel=0.01)
    assert steps.rate_records_per_s[0] == sqrt(100 * 6_400) and set(steps.ended) == {"all steps were made"}


def test_beyond_the_range_the_bracket_is_open(system, tmp_path):
    system.limit = 1e9
    _, steps = searched(tmp_path, 100, 800, steps=3)
    assert steps.met.all() and steps.failed_from_records_per_s.isna().all()
    assert 600 < steps.met_until_records_per_s.iloc[-1] < 800


def test_below_the_range_too(system, tmp_path):
    system.limit = 1.0
    _, steps = searched(tmp_path, 100, 800, steps=3)
    assert not steps.met.any() and steps.met_until_records_per_s.isna().all()


def test_a_generator_that_falls_behind_twice_at_a_rate_ends_the_search(system, tmp_path):
    system.behind = 2_000
    _, steps = searched(tmp_path, 100, 40_000)
    assert steps.rate_records_per_s.tolist() == [2_000, 2_000] and steps.met.isna().all()
    assert steps.fell_behind.all() and set(steps.ended) == {"the generator fell behind"}


def test_a_generator_that_falls_behind_once_repeats_the_rate(system, tmp_path):
    system.limit, system.late = 230.0, (1,)
    _, steps = searched(tmp_path, 100, 6_400)
    assert steps.rate_records_per_s[:2].tolist() == [800, 800]
    assert steps.met.isna().tolist() == [True, *6 * [False]]
    assert set(steps.ended) == {"all steps were made"}


def test_a_step_that_fails_ends_the_search_and_the_others_are_kept(system, tmp_path):
    system.limit, system.fails = 1e9, 1_500
    with pytest.raises(ExperimentError, match="no broker") as error:
        searched(tmp_path, 100, 6_400)
    assert len(error.value.files) == 3
    steps = kafka_open_loop.read_search(tmp_path / "kafka_rate_search/s.search.json")["rate_search_steps"]
    assert steps.met.tolist() == [True] and set(steps.ended) == {"no broker"}


def test_a_search_over_mock_brokers_keeps_every_step_and_agrees_with_the_reader(tmp_path):
    """A machine with other work may end it early; what is there must fit together."""
    hosts = [HereHost(region, tmp_path) for region in ("eu", "us")]
    MockCluster(hosts)
    load = KafkaOpenLoop(
        1, partitions=PARTITIONS, replication=1, groups=1, record_bytes=100, duration_s=3, warmup_s=1, drain_s=60
    )
    KafkaRateSearch(load, 3e6, 20, 80, steps=2).run(*hosts, tmp_path, "s")
    steps = kafka_open_loop.read_search(tmp_path / "kafka_rate_search/s.search.json")["rate_search_steps"]
    assert steps.rate_records_per_s[0] == 40 and not steps.n_lost.any()
    for row in steps.to_dict("records"):
        found = kafka_open_loop.read(tmp_path / f"kafka_open_loop/s.step-{row['step']}.load.json")
        [about] = found["open_loop_loads"].to_dict("records")
        assert (about["step"], about["rate_records_per_s"]) == (row["step"], row["rate_records_per_s"])
        assert about["fell_behind"] == row["fell_behind"]
        kept = found["open_loop_histograms"].query("what == 'end to end' and not warm_up")
        assert (kept.n + kept.n_lost).sum() == row["n"]
