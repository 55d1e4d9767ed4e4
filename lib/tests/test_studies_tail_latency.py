"""The study of two systems' tails, on simulated trials with a known answer."""

import pandas as pd
import pytest
from tail_tables import NAMES, campaign

from wanbench import claims
from wanbench.errors import MissingDataError, ParameterError
from wanbench.studies import tail_latency

BEHIND = {"fell_behind": True, "late_p99_ms": 300.0}


@pytest.fixture(scope="module")
def tables():
    return campaign(rates=(500, 1500, 2500, 4000, 5500))


@pytest.fixture(scope="module")
def trials(tables):
    return tail_latency.trials(tables, NAMES)


@pytest.fixture(scope="module")
def by_rate(trials):
    return tail_latency.side_by_side(trials, "rate_records_per_s", partitions=6)


def test_all_trials_count_and_steps_beyond_capacity_are_named(trials):
    assert "36 trials of 36 count. plain fell behind in 3 of 3 trials at 2,500 records/s" in str(trials)
    assert "near fell behind in 3 of 3 trials at 4,000" in str(trials)
    assert trials.highest_kept(partitions=6) == 1500
    assert len(trials.shown()) == 12


def test_a_trial_whose_generator_was_late_is_named_and_in_no_curve():
    found = tail_latency.trials(campaign(rates=(500, 1500), more_partitions=(), changes={1: BEHIND}), NAMES)
    assert "1 not, because the generator fell behind its schedule" in found.sentence
    assert "plain, 500/s, 6 in block 1" in found.cautions[0]
    table = tail_latency.side_by_side(found, "rate_records_per_s", partitions=6)
    assert [len(each.tails) for each in table.steps[0].tails] == [2, 3]
    assert len(found.table()) == 12


def test_a_step_at_which_one_system_never_counts_is_missing_and_said():
    late = dict.fromkeys((1, 5, 9), BEHIND)
    found = tail_latency.trials(campaign(rates=(500, 1500), more_partitions=(), changes=late), NAMES)
    table = tail_latency.side_by_side(found, "rate_records_per_s", partitions=6)
    assert table.missing == [500] and "counts at 500 records/s" in str(table)


def test_verdicts_are_those_that_were_made(by_rate):
    assert [step.verdict for step in by_rate.steps] == ["worse", "worse", "better", "better", "better"]
    assert by_rate.steps[0].ratio.estimate == pytest.approx(1 / 1.5, rel=0.1)
    assert by_rate.steps[-1].ratio.low < 1.5**6 / 1.5 < by_rate.steps[-1].ratio.high
    assert by_rate.steps[2].kept_up == (False, True)
    assert "plain fell behind in at least one trial at 2,500, 4,000, 5,500 records/s" in str(by_rate)


def test_the_table_has_the_layout_of_the_source(by_rate):
    shown = by_rate.shown()
    assert list(shown) == [
        "ingress",
        "records/s",
        "p99 of plain",
        "p99 of near",
        "plain over near",
        "near is",
    ]
    assert shown.ingress[0] == "1.02 MB/s" and shown["near is"].tolist()[-1] == "better"
    assert "*" in shown["p99 of plain"].iloc[-1] and "*" not in shown["p99 of plain"].iloc[0]


def test_partitions_are_compared_at_one_rate(trials):
    table = tail_latency.side_by_side(trials, "partitions", rate_records_per_s=1500.0)
    assert [step.step for step in table.steps] == [6, 60]
    assert table.steps[1].a.estimate > table.steps[0].a.estimate
    with pytest.raises(MissingDataError, match="no step of partitions"):
        tail_latency.side_by_side(trials, "partitions", rate_records_per_s=7.0)


def test_percentiles_say_how_many_records_each_needs(trials):
    pair = [trials.at(name, rate_records_per_s=1500.0, partitions=6) for name in NAMES]
    found = tail_latency.percentiles(*pair)
    assert found.rows.needed.tolist()[:6] == [6, 36, 72, 368, 3688, 36887]
    assert "plain: 18,000 records are worth" in found.shown()
    assert "p99.9 of plain has no upper limit" in found.sentence


def test_links_allow_each_system_what_its_bytes_imply(trials, tables):
    found = tail_latency.allowed(trials, tables, partitions=6)
    assert found.rates["plain"].estimate == pytest.approx(2000, rel=0.01)
    assert found.rates["near"].estimate == pytest.approx(3000, rel=0.01)
    assert (
        "In 3 of 3 trials at 4,000 records/s it fell behind: the fullest link then carried" in found.sentence
    )
    assert set(found.trials.link) == {"a:west to b:east"}
    with pytest.raises(MissingDataError, match="links were not sampled"):
        tail_latency.allowed(trials, {})


def test_evidence_is_what_was_made_and_the_ledger_takes_it(trials, by_rate):
    by_partitions = tail_latency.side_by_side(trials, "partitions", rate_records_per_s=1500.0)
    found = tail_latency.evidence(by_rate, by_partitions)
    assert found["throughput_growth"].estimate == pytest.approx(2.75**6, rel=0.1)
    assert found["other_throughput_growth"].estimate == pytest.approx((5.5 / 3) ** 6, rel=0.1)
    assert found["ratio_growth"].estimate == pytest.approx(1.5**6, rel=0.15)
    audit = claims.tail_latency(**found)
    assert audit.table().set_index("claim").rerun["kafka-throughput"] == "reproduced"


def test_figures_are_drawn(by_rate, trials):
    assert len(by_rate.figure().data) >= 6
    pair = [trials.at(name, rate_records_per_s=1500.0, partitions=6) for name in NAMES]
    assert tail_latency.percentiles(*pair).figure().data


def test_what_is_missing_is_named(tables, trials):
    with pytest.raises(ParameterError, match="table open_loop_loads is missing"):
        tail_latency.trials({name: each for name, each in tables.items() if name != "open_loop_loads"}, NAMES)
    with pytest.raises(MissingDataError, match="no trial of other"):
        tail_latency.trials(tables, ["other"])
    with pytest.raises(MissingDataError, match="counts at rate 3, partitions 6"):
        trials.at("plain", rate_records_per_s=3.0, partitions=6)


def test_the_knee_lies_where_capacity_was_made_to_end(trials, tables):
    links = tail_latency.allowed(trials, tables, partitions=6)
    found = tail_latency.knees(trials, links, partitions=6)
    assert 1500 < found.knees["plain"].knee.estimate < 2500 < found.knees["near"].knee.estimate < 4000
    assert "The links allow it" in found.sentence and found.figure().data
    left_out = "plain: steps above 4,000 records/s, where the system never keeps up, are left out of the fit"
    assert left_out in found.cautions
    assert [len(curve.rates) for curve in found.curves.values()] == [5, 5]
    with pytest.raises(MissingDataError, match="no knee of plain"):
        tail_latency.knees(trials, partitions=60)


def test_the_highest_rate_by_steps_and_by_search_agree(trials, tables):
    rates = [(1000.0, True), (2500.0, False), (1600.0, True), (2000.0, True), (2200.0, False)]
    search = pd.DataFrame(rates, columns=["rate_records_per_s", "met"]).assign(run_id="run", test_id="search")
    row = pd.DataFrame([{"run_id": "run", "test_id": "search", "system": "plain"}])
    more = {"rate_search_steps": search, "trials": pd.concat([tables["trials"], row], ignore_index=True)}
    found = tail_latency.best_rates(trials, tables | more, 25.0, partitions=6)
    # interpolated between two steps that lie far apart: the truth is 2,115, and the steps around it hold it
    assert found.stepped["plain"].rate.estimate == pytest.approx(1700, rel=0.03)
    assert found.agree("plain") and "near" not in found.searched
    row = found.shown().iloc[0]
    assert (row["steps around it"], row["met and failed"]) == ("1,500 to 2,500", "2,000 to 2,200")
    found = tail_latency.best_rates(
        trials, tables | more | {"rate_search_steps": search.assign(met=None)}, 25.0, partitions=6
    )
    assert not found.searched and "not known, as the generator was late in each (1 search)" in found.sentence


def test_trials_without_a_drift_show_none(trials, tables):
    found = tail_latency.settled(trials, tables)
    assert found.low < 1 < found.high and found.n == int(trials.rows.kept_up.sum())
    steady = tables["open_loop_histograms"]
    with pytest.raises(MissingDataError, match="two counted seconds"):
        tail_latency.settled(trials, {"open_loop_histograms": steady[steady.window < 3]})


def test_without_a_distribution_the_benchmark_is_left_out(trials):
    with pytest.raises(MissingDataError, match="omb_distribution"):
        tail_latency.benchmark(trials.at("plain", rate_records_per_s=1500.0, partitions=6), {})


def test_a_percentile_of_lost_records_is_named_as_such(tables):
    lost = tables["open_loop_histograms"].copy()
    lost["n_lost"] = (lost.n // 10).astype(lost.n_lost.dtype)
    found = tail_latency.trials(tables | {"open_loop_histograms": lost}, NAMES)
    table = tail_latency.side_by_side(found, "rate_records_per_s", partitions=6)
    assert "beyond the time waited" in table.shown()["p99 of plain"][0] and "unknown" not in table.sentence
    assert table.figure().data


def test_busy_processors_are_those_of_the_seconds_that_count(trials, tables):
    first = trials.rows.iloc[0]
    rows = [
        {key: first[key] for key in ("run_id", "test_id", "attempt")}
        | {"source": "sysstat", "host": "h", "subject": "cpu all", "metric": metric, "value": value}
        | {"at_utc": pd.Timestamp(first.start_s + at, unit="s", tz="UTC")}
        for at, idle in ((1, 0.0), (3, 60.0), (5, 40.0))
        for metric, value in (("idle", idle), ("iowait", 0.0))
    ]
    found = tail_latency.allowed(trials, tables | {"metrics": pd.DataFrame(rows)}, partitions=6)
    assert found.trials.set_index("test_id").busy_percent[first.test_id] == 50
