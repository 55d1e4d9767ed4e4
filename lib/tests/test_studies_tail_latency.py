"""The study of two systems' tails, on simulated trials with a known answer."""

from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from latency_samples import encoded
from tail_tables import NAMES, campaign

import wanbench
from wanbench import findings
from wanbench.errors import MissingDataError, ParameterError
from wanbench.measure.experiments import KafkaOpenLoop
from wanbench.methods import tails
from wanbench.pages import tail_latency
from wanbench.publish.notebooks import optional_section

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
    assert "36 of 36 trials count. “plain” fell behind in 3 of 3 trials at 2,500 records/s and 6" in str(trials)
    assert "“near” fell behind in 3 of 3 trials at 4,000" in str(trials)
    assert trials.highest_kept(partitions=6) == 1500 and trials.highest_kept(1500, partitions=6) == 500
    assert len(trials.formatted_table()) == 12


def test_a_trial_whose_generator_was_late_is_named_and_in_no_curve():
    found = tail_latency.trials(campaign(rates=(500, 1500), more_partitions=(), changes={1: BEHIND}), NAMES)
    assert "1 did not count, because the generator fell behind its schedule" in found.sentence
    assert "“plain, 500/s, 6” in block 1" in found.cautions[0]
    table = tail_latency.side_by_side(found, "rate_records_per_s", partitions=6)
    assert [len(each.tails) for each in table.steps[0].tails] == [2, 3]
    assert len(found.table()) == 12


def test_a_step_at_which_one_system_never_counts_is_missing_and_said():
    late = dict.fromkeys((1, 5, 9), BEHIND)
    found = tail_latency.trials(campaign(rates=(500, 1500), more_partitions=(), changes=late), NAMES)
    table = tail_latency.side_by_side(found, "rate_records_per_s", partitions=6)
    assert table.missing == [500] and "counts at 500 records/s" in str(table)
    assert "p99 of “near” and of “plain” cannot be compared at any number of records/s" not in str(table)
    few = tail_latency.trials(campaign(rates=(500, 1500), more_partitions=(), blocks=2), NAMES)
    table = tail_latency.side_by_side(few, "rate_records_per_s", partitions=6)
    assert "cannot be compared at any number of records/s, because trials are too few or too short (at most 2" in str(
        table
    )


def test_a_trial_whose_start_was_still_draining_is_named_and_in_no_curve():
    tables = campaign(rates=(500, 1500), more_partitions=())
    rows = tables["open_loop_histograms"]
    of = {test_id: part.index for test_id, part in rows.groupby("test_id")}
    first, second = list(of)[:2]
    falling, level = np.array([900, 800, 600, 400, 300, 200.0]), np.array([900, 900, 40, 40, 38, 41.0])
    for test_id, medians in ((first, falling), (second, level)):  # the second has settled in its warm-up
        rows.loc[of[test_id], "histogram"] = [
            encoded(np.full(500, 1000 * medians[k])) for k in rows.window[of[test_id]]
        ]
    found = tail_latency.trials(tables, NAMES)
    assert "1 did not count, because the backlog from its start was still draining" in found.sentence
    assert found.rows.test_id[~found.rows.counts].tolist() == [first]
    assert tail_latency.settled(found, tables).n == 11


def test_a_system_that_falls_behind_is_said_to_do_so_at_its_number_of_partitions():
    slow = {3: {"acknowledged_records_per_s": 300.0}}
    tables = campaign(rates=(500,), more_partitions=(60,), at_rate=500, changes=slow)
    found = tail_latency.trials(tables, NAMES)
    assert "“plain” fell behind in 1 of 3 trials at 500 records/s and 60 partitions." in found.sentence
    assert "fell behind" not in tail_latency.allowed(found, tables, partitions=6).sentence
    assert set(tail_latency.allowed(found, tables, partitions=6).trials.partitions) == {6}


SLOW = {"acknowledged_records_per_s": 9.0}


@pytest.mark.parametrize(
    ("first", "change", "count"),
    [
        (1, BEHIND, "0 of 30 trials count. 30 did not count, because the generator fell behind"),
        (2, BEHIND, "1 of 30 trials count"),
        (1, SLOW, "30 of 30 trials count. “plain” fell behind"),
    ],
)
def test_a_page_without_useful_trials_leaves_its_sections_out(tmp_path, monkeypatch, first, change, count):
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))
    path = Path(__file__).parents[2] / "notebooks" / "08-tail-latency.ipynb"
    notebook = nbformat.read(path, as_version=4)
    made = {"tables": campaign(changes=dict.fromkeys(range(first, 31), change)), "names": NAMES}
    made |= {"load": KafkaOpenLoop(1500, partitions=6), "objective_ms": 50.0, "is_emulated": True}
    made |= {"wanbench": wanbench, "tail_latency": tail_latency, "tails": tails, "provenance": str, "run": None}
    made["page"] = findings.Page("08-tail-latency")
    made["tables"]["broker_pauses"] = pd.DataFrame(columns=["run_id", "at_s", "duration_ms"])
    left_out, start = set(), next(k for k, cell in enumerate(notebook.cells) if "measured = " in cell.source)
    for k, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and k >= start and k not in left_out:
            try:
                exec(cell.source, made)
            except MissingDataError:
                assert optional_section(notebook, k), f"cell {k} ends the page"
                left_out |= set(optional_section(notebook, k))
    assert count in str(made["measured"]) and "claims of “" in str(made["page"])


def test_verdicts_are_those_that_were_made(by_rate):
    assert [step.verdict for step in by_rate.steps] == ["worse", "worse", "better", "better", "better"]
    assert by_rate.steps[0].ratio.estimate == pytest.approx(1 / 1.5, rel=0.1)
    assert by_rate.steps[-1].ratio.low < 1.5**6 / 1.5 < by_rate.steps[-1].ratio.high
    assert by_rate.steps[2].kept_up == (False, True)
    assert by_rate.headline.startswith("p99 of the latency of “near”, against that of “plain”, is better at ")
    assert by_rate.headline.endswith(" records/s, and worse at 500 and 1,500 records/s.")
    assert "“plain” fell behind in at least one trial at 2,500, 4,000, 5,500 records/s" in str(by_rate)


def test_a_curve_with_its_lowest_point_inside_says_so(by_rate):
    steps = [
        replace(step, b=replace(step.b, estimate=ms))
        for step, ms in zip(by_rate.steps, (100.0, 60.0, 70.0, 90.0, 200.0), strict=True)
    ]
    said = replace(by_rate, steps=steps).sentence
    assert "“near” goes from 100.0 ms (" in said and "with the lowest value, 60" in said and said.count("lowest") == 1


def test_the_table_has_the_layout_of_the_source(by_rate):
    shown = by_rate.formatted_table()
    assert list(shown) == ["ingress", "records/s", "p99 of plain", "p99 of near", "plain over near", "near is"]
    assert shown.ingress[0] == "1.02 MB/s" and shown["near is"].tolist()[-1] == "better"
    assert "*" in shown["p99 of plain"].iloc[-1] and "*" not in shown["p99 of plain"].iloc[0]


def test_partitions_are_compared_at_one_rate(trials):
    table = tail_latency.side_by_side(trials, "partitions", rate_records_per_s=1500.0)
    assert [step.step for step in table.steps] == [6, 60]
    assert table.headline.startswith("From 6 to 60 partitions, p99 of “plain” goes from ")
    assert table.steps[1].a.estimate > table.steps[0].a.estimate
    with pytest.raises(MissingDataError, match="no step of partitions"):
        tail_latency.side_by_side(trials, "partitions", rate_records_per_s=7.0)
    with pytest.raises(MissingDataError, match="only one number of partitions"):
        tail_latency.side_by_side(trials, "partitions", rate_records_per_s=4000.0)


def test_percentiles_say_how_many_records_each_needs(trials):
    pair = [trials.at(name, rate_records_per_s=1500.0, partitions=6) for name in NAMES]
    found = tail_latency.percentiles(*pair)
    needed = found.formatted_table()["records needed"].tolist()
    assert needed == ["6", "36", "72", "368", "3,688", "36,887"]
    assert "plain: independent records, of 18,000" in found.formatted_table()
    assert "p99.9 of plain has no upper end" in found.sentence


def test_links_allow_each_system_what_its_bytes_imply(trials, tables):
    found = tail_latency.allowed(trials, tables, partitions=6)
    assert found.rates["plain"].estimate == pytest.approx(2000, rel=0.01)
    assert found.rates["near"].estimate == pytest.approx(3000, rel=0.01)
    assert (
        "The system fell behind in 3 of 3 trials at 4,000 records/s. In these trials the fullest link carried"
        in found.sentence
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
    audit = tail_latency.claims.tail_latency(**found)
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


def test_the_knee_lies_where_capacity_was_made_to_end():
    tables = campaign(rates=(500, 1000, 1500, 2500, 4000, 5500), more_partitions=(60,))
    trials = tail_latency.trials(tables, NAMES)
    links = tail_latency.allowed(trials, tables, partitions=6)
    found = tail_latency.knees(trials, links, partitions=6)
    assert 1500 < found.knees["plain"].knee.estimate < 2500 < found.knees["near"].knee.estimate < 4000
    assert "The links allow this system" in found.sentence and found.figure().data
    [ratio] = found.ratio
    near, plain = (found.knees[name].knee for name in ("near", "plain"))
    assert ratio.estimate == pytest.approx(near.estimate / plain.estimate) and ratio.low < ratio.estimate < ratio.high
    assert f"The rate at the knee of “near” is {ratio.formatted} the rate at the knee of “plain”" in found.sentence
    assert "The links allow “near” " in found.sentence
    assert (
        "“plain”: steps from 4,000 records/s on are left out, because at a lower step the system never keeps up"
        in found.cautions
    )
    assert [len(one.curve.rates) for one in found.knees.values()] == [4, 5]
    with pytest.raises(MissingDataError, match="no knee of plain"):
        tail_latency.knees(trials, partitions=60)


def test_a_knee_with_processors_nearer_to_full_than_links_gets_a_caution():
    tables = campaign(rates=(500, 1000, 1500, 2500, 4000, 5500), more_partitions=())
    trials = tail_latency.trials(tables, NAMES)
    links = tail_latency.allowed(trials, tables, partitions=6)
    busy = links.trials.system.map({"plain": 50.0, "near": 93.0}).where(links.trials.rate_records_per_s > 2500, 60.0)
    links = replace(links, trials=links.trials.assign(utilisation=0.7, busy_percent=busy))
    found = tail_latency.knees(trials, links, partitions=6)
    assert [text for text in found.cautions if "processors" in text] == [
        "“near”: at 4,000 records/s the processors were 93 % busy and the fullest link carried 70 % of its rate, so "
        "the processors may cause this knee"
    ]


def test_too_few_steps_up_to_the_first_that_is_too_fast_give_no_knee(trials):
    found = tail_latency.knees(trials, partitions=6)  # plain never keeps up at the third of five steps
    assert (
        "System “plain”: p99 has no knee, because p99 is known only at 500, 1,500, 2,500 records/s; a knee needs "
        "4 steps." in found.sentence
    )
    assert np.isnan(found.knees["plain"].knee.estimate) and np.isfinite(found.knees["near"].knee.estimate)
    assert found.figure().data and found.formatted_table().knee[0] == "unknown"
    assert found.ratio == ()


def test_the_highest_rate_lies_between_two_steps(trials):
    found = tail_latency.best_rates(trials, 25.0, partitions=6)
    # interpolated between two steps that lie far apart: the truth is 2,115, and the steps around it hold it
    assert found.stepped["plain"].rate.estimate == pytest.approx(1700, rel=0.03)
    assert found.formatted_table()["steps around it"].iloc[0] == "1,500 to 2,500"
    assert "System “near”: the highest rate with p99 within 1 ms is not established by its steps (" in (
        tail_latency.best_rates(trials, 1.0, partitions=6).sentence
    )


def test_trials_without_a_drift_show_none(trials, tables):
    found = tail_latency.settled(trials, tables)
    assert found.low < 1 < found.high and found.n == int(trials.rows.kept_up.sum())
    steady = tables["open_loop_histograms"]
    with pytest.raises(MissingDataError, match="two counted seconds"):
        tail_latency.settled(trials, {"open_loop_histograms": steady[steady.window < 3]})


def test_rates_of_reading_again_are_compared_within_blocks(tables):
    loads = tables["open_loop_loads"].copy()
    with pytest.raises(MissingDataError, match="read all records again"):
        tail_latency.rereads(tail_latency.trials(tables, NAMES))
    systems = loads[["test_id"]].merge(tables["trials"], on="test_id")
    loads["reread_records_per_s"] = (1_000.0 * systems.block * np.where(systems.system == "near", 0.5, 1.0)).to_numpy()
    found = tail_latency.rereads(tail_latency.trials(tables | {"open_loop_loads": loads}, NAMES))
    assert (found.estimate, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5)) and found.n == 3
    assert "0.500 times the rate with “near” as with “plain”" in found.sentence


def test_without_a_distribution_the_benchmark_is_left_out(trials):
    with pytest.raises(MissingDataError, match="omb_distribution"):
        tail_latency.benchmark(trials.at("plain", rate_records_per_s=1500.0, partitions=6), {})


def test_a_percentile_of_lost_records_is_named_as_such(tables):
    lost = tables["open_loop_histograms"].copy()
    lost["n_lost"] = (lost.n // 10).astype(lost.n_lost.dtype)
    found = tail_latency.trials(tables | {"open_loop_histograms": lost}, NAMES)
    table = tail_latency.side_by_side(found, "rate_records_per_s", partitions=6)
    assert "not received in time" in table.formatted_table()["p99 of plain"][0] and "unknown" not in table.sentence
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
