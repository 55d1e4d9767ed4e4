import json
import math

import numpy as np
import pandas as pd
import pytest

from wanbench import findings, tables
from wanbench.errors import ParameterError, RawDataError
from wanbench.findings import Finding, Page
from wanbench.publish.site import _answers


def finding(**changes):
    values = {
        "name": "rtt-slope",
        "sentence": "RTT grows by 14.2 ms per 1,000 km.",
        "estimate": 14.23456789,
        "low": 13.9,
        "high": 14.6,
        "unit": "ms per 1,000 km",
        "n": 1035,
        "n_regions": 46,
        "method": "least squares",
        "assumption": "regions are a sample",
    }
    return Finding(**(values | changes))


def test_what_is_saved_is_loaded(tmp_path):
    finding().save(tmp_path, page="02-intercloud-throughput")
    loaded = findings.load(tmp_path)
    assert list(loaded.columns) == tables.table("findings").names
    tables.validate("findings", loaded)
    assert loaded.loc[0, "estimate"] == 14.2346
    assert loaded.loc[0, "page"] == "02-intercloud-throughput"
    assert findings.read(tmp_path / "rtt-slope.json") == finding(page="02-intercloud-throughput")


def test_saving_twice_gives_the_same_bytes_and_leaves_nothing_else(tmp_path):
    finding().save(tmp_path)
    first = (tmp_path / "rtt-slope.json").read_bytes()
    finding(estimate=14.234567891).save(tmp_path)
    assert (tmp_path / "rtt-slope.json").read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["rtt-slope.json"]


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    finding().save(tmp_path)
    before = (tmp_path / "rtt-slope.json").read_bytes()

    def broken(*args):
        raise OSError("disk full")

    monkeypatch.setattr("wanbench.files.os.replace", broken)
    with pytest.raises(OSError, match="disk full"):
        finding(sentence="Another.").save(tmp_path)
    assert (tmp_path / "rtt-slope.json").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, np.float64("nan"), pd.NA])
def test_no_number_becomes_null_in_json(tmp_path, value):
    finding(low=value).save(tmp_path)
    assert json.loads((tmp_path / "rtt-slope.json").read_text())["low"] is None
    assert math.isnan(findings.load(tmp_path).loc[0, "low"])


@pytest.mark.parametrize("name", ["", "Rtt", "a b", "../a", "a--b", "a/b", "ä", None, 3])
def test_names_that_are_no_file_names_fail(name):
    with pytest.raises(ParameterError, match="name of a finding"):
        finding(name=name)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"estimate": "14"}, "estimate"),
        ({"estimate": "many"}, "estimate"),
        ({"estimate": True}, "estimate"),
        ({"n": 2.5}, "n"),
        ({"n": -1}, "n"),
        ({"n_regions": True}, "n_regions"),
        ({"method": None}, "method"),
    ],
)
def test_wrong_values_name_their_field(changes, field):
    with pytest.raises(ParameterError, match=field):
        finding(**changes)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"\xff", b"{" * 100_000, b'{"name": "x"}', b"NaN"],
    ids=["empty", "list", "no keys", "no text", "deep", "few keys", "constant"],
)
def test_a_file_that_is_no_finding_is_named(tmp_path, content):
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(RawDataError, match=r"x\.json: expected"):
        findings.load(tmp_path)


def test_a_renamed_file_is_refused(tmp_path):
    finding().save(tmp_path)
    text = (tmp_path / "rtt-slope.json").read_text()
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(RawDataError, match="the finding other"):
        findings.read(tmp_path / "other.json")


def test_an_empty_folder_is_an_empty_table(tmp_path):
    tables.validate("findings", findings.load(tmp_path))
    assert findings.load(tmp_path / "none").empty


def test_html_is_escaped_and_links_only_to_pages(tmp_path):
    bad = "<script>alert(1)</script>"
    one = finding(sentence=bad, method=bad, unit=bad, page="javascript:alert(1)")
    one.save(tmp_path)
    assert "<script" not in one._repr_html_()
    text = findings.html_table(findings.load(tmp_path))
    assert "<script" not in text and "<a " not in text
    finding(page="02-intercloud").save(tmp_path)
    assert '<a href="02-intercloud.html">02-intercloud</a>' in findings.html_table(findings.load(tmp_path))


def test_a_caution_is_shown_once_per_subject(tmp_path):
    page = Page("p", tmp_path)
    few = [finding(name=name, sentence="It grows.", cautions=("few regions",)) for name in "abc"]
    page.add(*few[:2], about="RTT")
    page.add(few[2], about="Loss")
    assert page._repr_html_().count("few regions") == 2 and str(page).count("few regions") == 3


def test_html_says_open_intervals_and_missing_numbers(tmp_path):
    finding(name="half", estimate=2500, low=1800, high=None, unit="km").save(tmp_path)
    finding(name="none", estimate=None, low=None, high=None, n=None, n_regions=None).save(tmp_path)
    text = findings.html_table(findings.load(tmp_path))
    assert "<td>at least 1,800</td>" in text
    assert "unknown" not in text and "nan" not in text and "&lt;NA" not in text


def test_a_page_takes_no_finding_for_none_and_keeps_the_others(tmp_path):
    page = Page("a-page", tmp_path)
    page.add(None)
    assert str(page) == "No finding on a-page yet." and not list(tmp_path.iterdir())
    page.add(None, finding(), None)
    assert [path.stem for path in tmp_path.iterdir()] == [finding().name]


def test_a_sentence_says_what_it_is_about_where_that_is_given(tmp_path):
    page = Page("a-page", tmp_path)
    page.add(finding(), about="Lab")
    assert str(page) == f"Lab: {finding().sentence}"


def test_findings_come_in_the_order_of_their_page(tmp_path):
    page = Page("a-page", tmp_path)
    page.answer(finding(name="z-gain", sentence="Faster."))
    page.add(finding(name="m-cost"))
    page.answer(finding(name="a-rack", sentence="Local."))
    found = findings.load(tmp_path)
    assert found.name.tolist() == ["z-gain", "m-cost", "a-rack"] and found.place.tolist() == [1, 2, 3]
    assert [one.sentence for one in _answers(tmp_path)] == ["Faster.", "Local."]
    tables.validate("findings", found)
    kept = json.loads((tmp_path / "a-rack.json").read_text())
    del kept["place"]
    (tmp_path / "a-rack.json").write_text(json.dumps(kept))
    assert findings.read(tmp_path / "a-rack.json").place == 0
