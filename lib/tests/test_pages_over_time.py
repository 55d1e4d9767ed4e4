"""Page 14: changes of pairs, hours and weekdays, routes, and a lab whose RTT changes when only the test knows."""

import json
import random
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from run_folders import A, B, claimed, finish, start
from scripted_lab import PING_TEXT, Reply, ScriptedLab

from wanbench.errors import MissingDataError, ParameterError
from wanbench.measure.experiments import ExperimentError, Ping
from wanbench.measure.labs import LocalLab
from wanbench.measure.links import LinkSettings
from wanbench.pages import over_time
from wanbench.pages.intercloud_throughput.design import Route
from wanbench.pages.over_time.levels import find_changes, medians_per_step
from wanbench.pages.over_time.rhythm import rhythm
from wanbench.read import ingest

REGIONS = ["aws:eu-west-1", "aws:us-east-1", "gcp:us-west1"]
MTR = Path(__file__).parent / "samples/mtr/handmade.json"
START = pd.Timestamp("2025-01-06", tz="UTC")


def made_of(changes, days=120, per_day=4, daily=0.0, weekend=0.0):
    """Tests of pairs; `changes` has the day and the ratio of each pair's change, or None."""
    at = pd.date_range(START, periods=days * per_day, freq=pd.Timedelta("1D") / per_day)
    rng, parts = np.random.default_rng(0), []
    for (start_region, end_region), change in changes.items():
        logs = (
            rng.normal(0, 0.004, len(at)) + daily * np.sin(2 * np.pi * at.hour / 24) + weekend * (at.day_of_week >= 5)
        )
        if change:
            logs = logs + np.log(change[1]) * (at >= START + pd.Timedelta(days=change[0]))
        about = {"from_region": start_region, "to_region": end_region, "at_utc": at, "rtt_ms": 80 * np.exp(logs)}
        parts.append(pd.DataFrame(about).assign(throughput_bps=np.nan))
    return pd.concat(parts, ignore_index=True)


def test_each_pair_has_its_last_level_and_the_day_since_which_it_holds():
    tests = made_of({("a", "b"): (80, 1.2), ("b", "a"): None, ("a", "c"): (40, 0.9)})
    found = over_time.changes_of_pairs(tests)
    rows = found.rows.set_index(["from_region", "to_region"])
    assert [(at - START).days for at in rows.valid_since] == [80, 40, 0] and rows.changes.tolist() == [1, 1, 0]
    assert rows.low["a", "b"] < 1.2 < rows.high["a", "b"] and rows.level["b", "a"] == pytest.approx(80, rel=0.01)
    assert found.headline == "The RTT of 2 of 3 pairs changed for good; no pair has changed since 2025-03-27."
    first = found.finding("x")
    assert first.estimate == pytest.approx(rows.ratio["a", "b"], rel=1e-4) and "from a to b: 1.20" in found.sentence
    assert [len(trace.x) for trace in found.figure().data if trace.mode == "lines"] == [2] * 5


def test_a_measure_that_nobody_measured_is_said_to_be_missing():
    with pytest.raises(MissingDataError, match="No test has a throughput"):
        over_time.changes_of_pairs(made_of({("a", "b"): None}), "throughput_bps")
    with pytest.raises(ParameterError, match="measure is 'loss'; allowed: 'rtt_ms'"):
        over_time.changes_of_pairs(made_of({("a", "b"): None}), "loss")


def test_hours_and_weekdays_are_recovered_and_a_change_is_not_taken_for_one():
    tests = made_of({("a", "b"): (60, 1.3), ("b", "a"): None}, daily=0.02, weekend=-0.03)
    rows = rhythm(tests, over_time.changes_of_pairs(tests)).rows.set_index("at")
    for at, true in (("06 h", 0.02), ("18 h", -0.02), ("00 h", 0.0), ("Sat", -0.03 * 5 / 7), ("Mon", 0.03 * 2 / 7)):
        assert rows.low[at] <= np.exp(true) <= rows.high[at], at
    assert rows.n["06 h"] == 120 and rows.n["Sat"] == 17
    steady = made_of({("a", "b"): None})
    flat = rhythm(steady, over_time.changes_of_pairs(steady))
    assert "0 of 4 hours differ" in flat.sentence and "0 of 7 weekdays differ" in flat.sentence


def test_tests_at_one_hour_of_a_few_days_show_no_rhythm():
    tests = made_of({("a", "b"): None}, days=10, per_day=1)
    sentence = rhythm(tests, over_time.changes_of_pairs(tests)).sentence
    assert sentence.count("The tests do not show whether the RTT depends on") == 2


def test_a_simulated_year_says_that_it_is_one():
    made = over_time.open_campaign("", regions=REGIONS)
    assert "simulated" in str(made) and made.runs == () and "simulated" in made.say("x")
    assert made.values.equals(over_time.open_campaign("", regions=REGIONS).values)
    assert len(made.values.groupby(["from_region", "to_region"])) == 6
    with pytest.raises(MissingDataError, match="no test recorded a route"):
        over_time.route_changes(made.tables, over_time.changes_of_pairs(made.values))


def recorded(folder, routes):
    """Make a run per route, each with one ping and one output of mtr (None: mtr was not installed)."""
    for k, router in enumerate(routes):
        with claimed(folder, plan={"tests": [], "experiments": [], "seed": k, "n_rounds": 1}) as writer:
            writer.start({"kind": "scripted", "tools": {}, "links": []})
            writer.record({"event": "round-started", "round": 1}, start())
            done, text = finish(writer, text=PING_TEXT), b""
            if router:
                report = json.loads(MTR.read_text())
                report["report"]["hubs"][0]["host"] = router
                text = json.dumps(report).encode()
            times = {"started_at_utc": "2025-01-01T00:00:00Z", "ended_at_utc": "2025-01-01T00:00:01Z"}
            done["files"].append(writer.keep("route", "0001-a-b.1.json", text, **times).as_dict())
            writer.record(done)
            writer.finish()


def test_all_runs_of_a_campaign_are_read_with_their_routes(tmp_path, monkeypatch):
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))
    recorded(tmp_path, ["192.0.2.1", "192.0.2.1", "192.0.2.9", None])
    opened = over_time.open_campaign("c1", regions=[])
    assert opened.values.rtt_ms.tolist() == [9.0] * 4 and opened.about == "" and len(opened.runs) == 2
    assert opened.values[["from_region", "to_region"]].drop_duplicates().values.tolist() == [[A, B]]
    tables = opened.tables
    assert (
        tables["routes"].route.nunique() == 2 and tables["routes"].n_hops.nunique() == 1 and len(tables["routes"]) == 3
    )
    changes = over_time.changes_of_pairs(opened.values, step="1us")
    assert "1 pair had too few values" in str(changes)
    found = over_time.route_changes(tables, changes)
    assert found.rows.changes.tolist() == [1] and found.rows.routes.tolist() == [2]
    assert found.sentence.startswith("The usual route changed 1 time over 1 pair")


def test_a_route_is_kept_as_mtr_prints_it_and_a_host_without_mtr_is_no_failure(tmp_path):
    def replies(text, code=0):
        return lambda host, command: Reply(text, b"mtr: no socket\n" if code else b"", code)

    for k, (text, rows) in enumerate([(MTR.read_bytes(), 1), (b"", 0)]):
        with ScriptedLab([A, B], replies(text)) as lab:
            (file,) = Route(cycles=2).run(lab.host(A), lab.host(B), tmp_path, f"{k}")
        assert (
            file.command[-4:] == ("1", "--report-cycles", "2", "10.0.0.2")
            and (tmp_path / file.path).read_bytes() == text
        )
        read = ingest.readers.reader_in_run("route", f"{k}.json").read(tmp_path / file.path)
        assert len(read.get("routes", ())) == rows
    with ScriptedLab([A, B], replies(b"", 1)) as lab, pytest.raises(ExperimentError, match="status 1: mtr: no socket"):
        Route().run(lab.host(A), lab.host(B), tmp_path, "x")


@pytest.mark.lab
@pytest.mark.slow
def test_the_lab_changes_its_rtt_when_only_the_test_knows(tmp_path):
    rng = random.SystemRandom()
    waits, delays = [rng.uniform(7, 10), rng.uniform(7, 10)], [10.0, rng.choice([10.6, 9.4]), 10.0]
    with LocalLab([A, B], {(A, B): LinkSettings(10), (B, A): LinkSettings(10)}) as lab:
        changed = []

        def change():
            for wait_s, delay in zip(waits, delays[1:], strict=True):
                time.sleep(wait_s)
                lab.set_link(A, B, delay_ms=delay)
                lab.set_link(B, A, delay_ms=delay)
                changed.append(pd.Timestamp.now("UTC"))

        worker = threading.Thread(target=change)
        worker.start()
        (file, *_) = Ping(count=560, interval_s=0.05).run(lab.host(A), lab.host(B), tmp_path, "0001")
        worker.join()
    echoes = ingest.read_files([tmp_path / file.path], "ping")["echoes"]
    at = pd.to_datetime(echoes.received_at_s, unit="s", utc=True)
    found = find_changes(medians_per_step(at, echoes.rtt_ms, "200ms"), step="200ms")
    rows = found.rows[
        (found.rows.ratio - 1).abs() > 0.02
    ]  # on a busy machine, some echoes are late by less for a while
    assert len(rows) == 2, f"{changed}: {found.rows}"
    for since, when in zip(rows.since, changed, strict=True):
        assert abs(since - when) < pd.Timedelta("1s")
    true = delays[1] / delays[0]
    assert list(rows.ratio) == pytest.approx([true, 1 / true], rel=0.02)
