"""Cutting or changing a link under echoes: the experiments, what reads them, and the verdicts from both."""

import json

import pandas as pd
import pytest
from scripted_lab import ScriptedLab

import wanbench
from wanbench.errors import ParameterError, RawDataError
from wanbench.measure.experiments import ExperimentError
from wanbench.measure.links import LinkSettings
from wanbench.methods.lab import link_verdicts
from wanbench.pages.lab_calibration.design import Cut, Shorten, plan_of
from wanbench.pages.lab_calibration.drops import by_part, lateness, link_drops
from wanbench.read.ingest import lab
from wanbench.read.plausibility.rule import round_trips

TIMES = {"cut_at_s": 10.0, "cut_answered_at_s": 10.01, "healed_at_s": 11.0, "healed_answered_at_s": 11.01}


def written(tmp_path, content):
    path = tmp_path / "0001.cut.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_times_are_read(tmp_path):
    assert lab.read_cut(written(tmp_path, TIMES))["cuts"].to_dict("records") == [TIMES]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[" * 100_000,
        [],
        {"cut_at_s": 1.0},
        TIMES | {"more": 1},
        TIMES | {"cut_at_s": "10"},
        TIMES | {"cut_at_s": True},
        TIMES | {"cut_at_s": float("nan")},
        TIMES | {"healed_at_s": 9.0},
        TIMES | {"healed_at_s": 1e300},
    ],
)
def test_anything_else_is_refused(tmp_path, content):
    with pytest.raises(RawDataError, match="expected"):
        lab.read_cut(written(tmp_path, content))


def test_settings_are_checked():
    with pytest.raises(ParameterError, match="cut_s is 0"):
        Cut(cut_s=0)
    with pytest.raises(ParameterError, match="interval_s is 0"):
        Cut(interval_s=0)


def test_a_lab_without_emulated_links_cannot_cut(tmp_path):
    with ScriptedLab(["aws:r-1", "gcp:r-2"]) as lab, pytest.raises(ExperimentError, match="no emulated links"):
        Cut().run(lab.host("aws:r-1"), lab.host("gcp:r-2"), tmp_path, "0001.1")


def test_each_link_is_planned_once():
    plan, _ = plan_of([{"cut": ([LinkSettings(5), LinkSettings(20, rate_bps=1e6)], Cut())}])
    tested = {(test.from_region, test.to_region): test.rtt_ms for test in plan.tests}
    assert tested == {("lab:a1", "lab:b1"): 10.0, ("lab:a2", "lab:b2"): 40.0}


@pytest.mark.lab
@pytest.mark.timing
def test_a_cut_is_measured_and_judged(tmp_path, monkeypatch):
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))
    experiment = Cut(before_s=0.4, cut_s=0.5, after_s=0.4)
    plan, links = plan_of([{"cut": ([LinkSettings(5), LinkSettings(20)], experiment)}])
    run = wanbench.measure.campaign.run(plan, links, lab="local", campaign="cut")
    tables = wanbench.read.ingest.tabulate(run.folder)
    assert run.finished and len(tables["cuts"]) == 2 and tables["unread"].empty
    verdicts = link_verdicts.cut(tables["echoes"], tables["cuts"]).rows
    assert list(verdicts.verdict) == ["within", "within"]
    assert (verdicts.n > 10).all()  # echoes that the cut swallowed
    counted = link_drops(tables["link_counters"], tables["links"]).rows
    assert (tables["link_counters"].packets_cut > 0).any() and set(counted.verdict) == {"within"}
    late = lateness(by_part(run, tables)).rows
    assert list(late.part) == ["cut"] and late.packets_delivered[0] > 100
    pairs = wanbench.read.ingest.summarise_pairs(tables)
    assert pairs.n_echoes.sum() == 0  # echoes under a cut say nothing about a path


@pytest.mark.lab
@pytest.mark.timing
def test_a_delay_that_becomes_shorter_reorders_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))
    experiment = Shorten(10, before_s=0.5, after_s=0.5)
    plan, links = plan_of([{"shorten": ([LinkSettings(150)], experiment)}])
    run = wanbench.measure.campaign.run(plan, links, lab="local", campaign="shorten")
    tables = wanbench.read.ingest.tabulate(run.folder)
    assert run.finished and tables["unread"].empty
    [verdict] = link_verdicts.order(tables["echoes"]).rows.verdict
    assert verdict == "within"
    assert wanbench.read.ingest.summarise_pairs(tables).n_echoes.sum() == 0
    assert round_trips(tables).empty


def test_settings_of_shorten_are_checked(tmp_path):
    with pytest.raises(ParameterError, match="delay_ms is -1"):
        Shorten(-1)
    with ScriptedLab(["aws:r-1", "gcp:r-2"]) as lab, pytest.raises(ExperimentError, match="no emulated links"):
        Shorten(10).run(lab.host("aws:r-1"), lab.host("gcp:r-2"), tmp_path, "0001.1")


def counters(**changes):
    row = {"run_id": "r", "from_region": "a", "to_region": "b", "packets_sent": 100, "packets_lost": 0}
    row |= {"packets_queue_dropped": 5, "packets_device_dropped": 0, **changes}
    return pd.DataFrame([row])


def links(**changes):
    row = {"run_id": "r", "from_region": "a", "to_region": "b", "rate_bps": 1e6, "loss": 0.0, **changes}
    return pd.DataFrame([row])


@pytest.mark.parametrize(
    ("counted", "asked", "verdict"),
    [
        (counters(), links(), "within"),
        (counters(), links(rate_bps=None), "outside"),
        (counters(packets_lost=1), links(), "outside"),
        (counters(packets_lost=1), links(loss=0.01), "within"),
        (counters(packets_device_dropped=1), links(), "outside"),
    ],
)
def test_drops_belong_to_the_queue_of_a_link_with_a_rate(counted, asked, verdict):
    result = link_drops(counted, asked)
    found = result.rows
    assert list(found.verdict) == [verdict] and found.dropped_share[0] == pytest.approx(0.05)
    assert f"{int(verdict == 'outside')} of 1 direction dropped packets where none should" in str(result)


def test_counters_of_an_unknown_link_are_an_error():
    with pytest.raises(ParameterError, match="no link from a to b"):
        link_drops(counters(), links(to_region="c"))
