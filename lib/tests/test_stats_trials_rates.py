"""What trials reached, out of tables with a known answer."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from trial_tables import CONTEXT, START_S, together, trial

from wanbench.errors import MissingDataError, ParameterError
from wanbench.methods.trials import concurrent, counted_seconds
from wanbench.methods.trials.rates import BY_LINES, BY_LOG, trial_rates
from wanbench.methods.trials.steadiness import steadiness


def rates_of(*trials, **settings):
    return trial_rates(together(trials), **settings)


@cache
def plain():
    """Tables and rates of one trial, for tests that change neither."""
    tables = together([trial(1, "internet", 100, rtt_ms=132.9)])
    return tables, trial_rates(tables)


def test_rates_are_those_of_the_counted_seconds():
    found = rates_of(trial(1, "internet", 100), trial(2, "private", 225))
    rates = found.rates.set_index("setting")
    np.testing.assert_allclose(rates.batches_per_s, [100, 225])
    np.testing.assert_allclose(rates.records_per_s, [1500, 3375])
    np.testing.assert_allclose(rates.throughput_bps, [12e6, 27e6])
    assert (rates.counted_by == BY_LOG).all() and (rates.batch_log_bytes == 15_500).all()
    assert rates.order.tolist() == [1, 2] and rates.delay_ms.notna().all()
    assert found.left_out.empty and not found.cautions
    assert "“internet” 100 (1 trial)" in str(found)


def test_the_window_is_when_all_producers_ran_and_none_warmed_up():
    """Producer 2 of 3 starts a second late: its warm-up ends at 4 s, and the first one ends at 15 s."""
    row = plain()[1].rates.iloc[0]
    began = START_S + 100
    assert (row.start_s, row.end_s, row.n_seconds) == (began + 4, began + 15, 11)
    assert row.window_rule == counted_seconds.RULE_PRODUCERS
    assert row.share_counted == pytest.approx(11 / 16.5)


def test_what_the_load_noted_comes_first():
    rows = trial(1, "internet", 100)
    began = START_S + 100
    noted = {"started_at_s": began - 2, "ended_at_s": began + 20, "counts_from_s": began + 6.2}
    noted["counts_until_s"] = began + 14.9
    rows["loads"] = [{key: rows["producers"][0][key] for key in CONTEXT} | noted]
    row = trial_rates(together([rows])).rates.iloc[0]
    assert (row.start_s, row.end_s) == (began + 7, began + 14) and row.window_rule == counted_seconds.RULE_LOAD
    rows["loads"][0]["counts_from_s"] = None
    assert trial_rates(together([rows])).rates.window_rule[0] == counted_seconds.RULE_PRODUCERS


def test_an_empty_second_counts_as_one():
    rows = trial(1, "internet", 100)
    stall = START_S + 108
    rows["batches"] = [row for row in rows["batches"] if row["at_s"] != stall]
    found = trial_rates(together([rows]))
    assert found.rates.batches_per_s[0] == pytest.approx(1000 / 11)
    assert found.seconds.batches[found.seconds.at_s == stall].tolist() == [0]


def test_replicas_are_not_counted_twice():
    rows = trial(1, "internet", 100)
    rows["batches"] += [row | {"broker": 2} for row in rows["batches"] if row["at_s"] < START_S + 110]
    assert trial_rates(together([rows])).rates.batches_per_s[0] == pytest.approx(100)


def test_without_lines_the_log_says_when():
    found = rates_of(trial(1, "internet", 100, lines=False), warmup_s=4)
    row = found.rates.iloc[0]
    assert row.window_rule == counted_seconds.RULE_LOG
    assert (row.start_s, row.end_s) == (START_S + 104, START_S + 116), "its last second is not whole"
    assert row.batches_per_s == pytest.approx(100) and "no producer reported when it ran" in str(found)


def test_without_a_log_the_lines_count_and_say_so():
    found = rates_of(trial(1, "internet", 96, log=False))
    row = found.rates.iloc[0]
    assert row.counted_by == BY_LINES
    assert row.records_per_s == pytest.approx(1440)
    assert row.batches_per_s == pytest.approx(90)  # 16 records of 1,009 bytes fit into 16,384
    assert "their batches are not measured" in str(found) and np.isnan(row.batch_log_bytes)


def test_without_flags_the_warmup_is_cut_by_time():
    rows = trial(1, "internet", 100)
    for line in rows["producer_windows"]:
        line["warmup"] = None
    assert trial_rates(together([rows]), warmup_s=5).rates.start_s[0] == START_S + 106


def test_what_gave_no_rate_is_counted():
    short = trial(4, "private", 225, seconds=2)
    silent = trial(5, "private", 225, lines=False, log=False)
    two_of_three = trial(6, "private", 225)
    two_of_three["producer_windows"] = [row for row in two_of_three["producer_windows"] if row["producer"]]
    planned = {"trials": trial(7, "private", 225)["trials"]}
    found = rates_of(
        trial(1, "internet", 100),
        trial(2, "private", 225, outcome="failed"),
        trial(3, "private", 225, outcome="interrupted"),
        short, silent, two_of_three, planned,
    )  # fmt: skip
    assert found.rates.test_id.str[:4].tolist() == ["0001"]
    why = found.left_out.set_index(found.left_out.test_id.str[:4]).reason
    assert why["0002"] == "that failed" and why["0003"] == "that were interrupted"
    assert "whole seconds" in why["0004"] and "neither" in why["0005"]
    assert "only 2 of 3 producers" in why["0006"] and why["0007"] == "that never began"
    assert "6 trials left out" in str(found)


def test_the_last_done_attempt_counts():
    failed, again = trial(1, "internet", 50, outcome="failed"), trial(1, "internet", 100, attempt=2)
    again["trials"] = []
    again["tests"][0]["started_at_utc"] += pd.Timedelta(300, "s")
    found = rates_of(failed, again, trial(2, "private", 225))
    assert found.rates.attempt.tolist() == [1, 2] and found.left_out.empty
    assert found.rates.setting.tolist() == ["private", "internet"], "in the order measured"
    twice = trial(1, "internet", 80, attempt=2)
    twice["trials"] = []
    found = rates_of(trial(1, "internet", 100), twice)
    assert found.rates.batches_per_s.tolist() == [80]
    assert found.left_out.reason.tolist() == ["that were repeated later"]


def test_latency_is_of_all_records_or_of_none():
    rows = trial(1, "internet", 100, producers=2, shares=[0.25, 0.75])
    row = trial_rates(together([rows])).rates.iloc[0]
    assert row.mean_latency_ms == pytest.approx(70.75, abs=0.1)
    for line in rows["producer_windows"]:
        line["mean_latency_ms"] = None
    rows["producers"][0]["records"], rows["producers"][1]["records"] = 300, 100
    row = trial_rates(together([rows])).rates.iloc[0]
    assert row.mean_latency_ms == pytest.approx(70.25)
    rows["producers"][1]["mean_latency_ms"] = None
    row = trial_rates(together([rows])).rates.iloc[0]
    assert np.isnan(row.mean_latency_ms)


def test_what_ran_concurrently():
    row = plain()[1].rates.iloc[0]
    assert row.n_echoes == 40
    assert (row.min_rtt_ms, row.max_rtt_ms) == (131.9, 133.9)
    assert row.mean_rtt_ms == pytest.approx(132.9) and row.mdev_rtt_ms == pytest.approx(1.0)
    assert row.measured_background_bps == 80e6 and row.background_packets_per_s == 1000
    assert (row.rx_packets_per_s, row.tx_packets_per_s) == (10_000, 2_000)
    assert row.rx_own_packets_per_s == 9_000
    assert (row.rx_utilisation, row.tx_utilisation) == pytest.approx((0.8, 0.16))


def background_until(rows, last_s):
    """Intervals of a second from the start of the trial up to `last_s`, of 80 Mbit/s."""
    began = START_S + 100
    rows["transfers"][0] |= {"started_at_utc": pd.Timestamp(began, unit="s", tz="UTC")}
    about = {key: rows["transfers"][0][key] for key in CONTEXT}
    rows["intervals"] = [
        about
        | {"direction": "forward", "stream": 0, "start_s": float(k), "end_s": k + 1.0, "bytes": 10_000_000}
        | {"omitted": False}
        for k in range(last_s)
    ]
    return rows


def test_the_background_is_that_of_the_counted_seconds():
    """The seconds 4 to 15 count."""
    found = trial_rates(together([background_until(trial(1, "internet", 100), 16)]))
    row = found.rates.iloc[0]
    assert row.background_covered == 1 and row.measured_background_bps == pytest.approx(80e6)
    assert row.background_wire_bps == pytest.approx(80e6 * (1 + 28 / 10_000)) and not found.cautions
    found = trial_rates(together([background_until(trial(1, "internet", 100), 11)]))
    row = found.rates.iloc[0]
    assert row.background_covered == pytest.approx(8 / 11)  # the start may have been up to a second later
    assert row.measured_background_bps == pytest.approx(80e6)
    assert "did not cover all counted seconds" in str(found)


def test_without_its_background_a_trial_is_another_setting():
    rows = [background_until(trial(1, "internet", 100), 7), trial(2, "private", 225)]
    found = trial_rates(together(rows))
    assert found.rates.setting.tolist() == ["private"] and set(found.seconds.setting) == {"private"}
    assert found.left_out.reason.tolist() == ["whose background traffic covered too few counted seconds"]


def test_mdev_is_that_of_ping():
    values = np.array([62.1, 62.2, 62.9, 68.1])
    rows = trial(1, "private", 100)
    rows["echoes"] = [rows["echoes"][k] | {"rtt_ms": value} for k, value in enumerate(values)]
    rows["echoes"] += [
        rows["echoes"][0] | {"sequence": 9, "rtt_ms": None, "lost": True},
        rows["echoes"][0] | {"rtt_ms": 500.0, "duplicate": True},
    ]
    found = concurrent.round_trips(together([rows])["echoes"]).iloc[0]
    assert found.mdev_rtt_ms == pytest.approx(np.sqrt((values**2).mean() - values.mean() ** 2))
    assert found.n_echoes == 5


def test_settings_can_be_chosen():
    found = rates_of(trial(1, "internet 100", 100), trial(2, "private 100", 225), trial(3, "other", 5))
    chosen = found.of("internet*", "private*")
    assert chosen.rates.setting.tolist() == ["internet 100", "private 100"]
    assert set(chosen.seconds.setting) == {"internet 100", "private 100"}
    with pytest.raises(MissingDataError, match="internet 100, private 100, other"):
        found.of("vpn")


def test_levels_can_be_chosen():
    tables = together([trial(1, "internet", 100, rate_bps=1e8), trial(2, "internet", 200, rate_bps=2e8)])
    found = trial_rates(tables)
    chosen = found.at(rate_bps=2e8)
    assert chosen.rates.batches_per_s.tolist() == [200] and chosen.seconds.test_id.nunique() == 1
    assert chosen.part(tables["link_samples"]).test_id.unique().tolist() == chosen.rates.test_id.tolist()
    with pytest.raises(ParameterError, match="no measured trial has rate_bps 5"):
        found.at(rate_bps=5)
    with pytest.raises(ParameterError, match="speed"):
        found.at(speed=5)


def test_rows_are_marked_that_lie_in_the_counted_seconds():
    """Those are the seconds from START_S + 104 to START_S + 115."""
    found = plain()[1]
    key = {name: found.rates[name][0] for name in ("run_id", "test_id", "attempt")}
    spans = pd.DataFrame([{**key, "start_s": START_S + s, "end_s": START_S + s + 2} for s in (103, 104, 113, 114)])
    marked = found.marked(spans)
    assert marked.counts.tolist() == [False, True, True, False] and set(marked.setting) == {"internet"}
    at = pd.to_datetime([START_S + 104, START_S + 105, START_S + 115, START_S + 116], unit="s", utc=True)
    metrics = pd.DataFrame([key] * 4).assign(at_utc=at, interval_s=1.0)
    assert found.marked(metrics).counts.tolist() == [False, True, True, False]
    assert found.marked(metrics.assign(test_id="other")).empty


def rising(ordinal, setting, by, **more):
    """A trial whose log grows by so much a second."""
    rows = trial(ordinal, setting, 100, **more)
    for row in rows["batches"]:
        row["batches"] += by * (row["at_s"] - START_S - 100 * ordinal)
        row["records"], row["bytes"] = 15 * row["batches"], 15_500 * row["batches"]
    return rows


def test_rates_that_still_rise_are_table():
    steady, rises = [rising(k, "steady", 0) for k in (1, 2, 3)], [rising(k, "rises", 2) for k in (4, 5, 6)]
    found = rates_of(*steady, *rises, *(rising(k, "falls", -2) for k in (7, 8)))
    table = found.settled().rows.set_index("setting")
    assert table.later_over_earlier["steady"] == pytest.approx(1) and table.n_trials.tolist() == [3, 3, 2]
    earlier, later = (sum(50 + 2 * s for s in part) for part in (range(4, 9), range(10, 15)))
    assert table.later_over_earlier["rises"] == pytest.approx(later / earlier)
    rose, fell = found.cautions
    assert "of “rises” rates still rose" in rose and "3 trials" in rose and "of “falls” rates still fell" in fell
    assert fell in str(found) and not found.of("steady").cautions and not rates_of(rises[0]).cautions


def test_trials_too_few_to_show_whether_rates_settled_have_no_interval_and_say_so():
    about = {"run_id": "run", "attempt": 1, "second": range(4)}
    batches = {"a": [(100, 100, 99, 100), (100, 100, 130, 130)], "b": [(100, 100, 100, 101), (100, 100, 101, 100)]}
    seconds = pd.concat(
        pd.DataFrame(about | {"test_id": f"{name}{k}", "setting": name, "batches": each})
        for name, trials in batches.items()
        for k, each in enumerate(trials)
    )
    found = steadiness(seconds)
    assert found.rows.set_index("setting").low.isna().to_dict() == {"a": True, "b": False}
    assert "not shown for 1 setting: 2 trials of a setting cannot show it" in found.sentence
    assert found.formatted_table().iloc[0, -1] == "too few trials" and "“b”" in found.sentence
    alone = steadiness(seconds[seconds.setting == "a"]).sentence
    assert alone.startswith("Whether the warm-up was long enough is not shown for 1 setting")


def test_whether_rates_settled_is_judged_for_all_settings_together():
    rng = np.random.default_rng(0)
    batches = rng.normal(1_000, 50, (80, 11))
    about = {"run_id": "run", "attempt": 1, "second": range(11)}
    seconds = pd.concat(
        pd.DataFrame(about | {"test_id": f"{k}", "setting": f"s{k % 20}", "batches": each})
        for k, each in enumerate(batches)
    )
    found = steadiness(seconds)
    assert len(found.rows) == 20 and not found.cautions
    alone = steadiness(seconds[seconds.setting == "s1"])
    assert alone.rows.high[0] < found.rows.set_index("setting").high["s1"]


@pytest.mark.parametrize("grows_s, cautioned", [(0.05, False), (0.5, True)])
def test_producers_that_fall_behind_are_a_caution(grows_s, cautioned):
    """The rate of producer 1 falls short; its 11th window is the last in the counted seconds of all."""
    rows = trial(1, "internet", 100)
    for row in rows["producer_windows"]:
        row["behind_s"] = grows_s * (row["window"] + 1) if row["producer"] == 1 else 0.03
    found = trial_rates(together([rows]))
    last = max(row["window"] for row in rows["producer_windows"]) - 1
    assert found.rates.behind_s[0] == pytest.approx(max(0.03, grows_s * (last + 1)))
    assert (
        any("in 1 trial acknowledgements lagged behind the target rate" in each for each in found.cautions) == cautioned
    )
    assert np.isnan(plain()[1].rates.behind_s[0]), "no rate was asked"


def test_tables_may_be_missing():
    rows = plain()[0]
    few = {name: rows[name] for name in ("tests", "trials", "producer_windows", "batches")}
    row = trial_rates(few).rates.iloc[0]
    assert row.batches_per_s == pytest.approx(100) and np.isnan(row.mean_rtt_ms)
    with pytest.raises(ParameterError, match="table trials is missing; there are tests"):
        trial_rates({"tests": rows["tests"]})


def test_nothing_measured_is_said():
    found = rates_of(trial(1, "internet", 100, outcome="failed"))
    assert found.rates.empty and "No trial was measured" in str(found) and found._repr_html_()
