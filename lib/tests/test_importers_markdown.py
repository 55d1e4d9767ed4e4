"""Latency matrices in Markdown, shaped as IBM's and Microsoft's pages are. All numbers are made up."""

import pandas as pd
import pytest

from wanbench import tables
from wanbench.errors import ParameterError, RawDataError
from wanbench.read.importers import read_markdown
from wanbench.read.ingest import summarise_pairs

TABBED = """---
title: made up
---
# Round trips

Some words | with a bar, and no table.

| Region | Paired region | Place |
|:--|---|--:|
| East US | West US | Virginia |

### [Americas](#tab/Americas)

| Source | North Central US | Central US |
|--|:-:|--|
|Australia Central|197|181|
|**Central US**|10||

### [Europe](#tab/Europe)

| **Source**&nbsp; | [North Europe](https://example.org/a) | `France Central` |
|---|---|---|
| Australia Central | 251 ms | 243<br/>|
| Central US | 90.5 | 95 |
| Germany North[^1] | 0.024 s |  |
| | | |

[^1]: a note

```text
| Source | North Europe |
|---|---|
| West US | 1 |
```
"""


MONTHLY = """## 1 Feb 2030
{: #a}

### Between regions
{: #b}
| Average latency (ms) | Dallas | Washington DC | Sao Paulo |
| --- | :---: | :---: | :---: |
| **Dallas** |   | 34 | 146 |
| **Washington DC** |  35 |  | 119 |
| **Sao Paulo** |  147 | 118 |  |
{: caption="Table 1. January 2030" caption-side="bottom"}

### Between zones
| Average latency (ms) | us-south-dal10-a | us-south-dal12-a |
| --- | :---: | :---: |
| **us-south-dal10-a** |  0.1 | 1.5 |
| **us-south-dal12-a** |  1.5 | 0.1 |
{: caption="Table 2. January 2030" caption-side="bottom"}

## 1 Jan 2030 ##
| Average latency (ms) | Dallas | Washington DC |
| --- | :---: | :---: |
| **Dallas** |   | 36 |
| **Washington DC** |  35 |  |

| Service | Dallas | Washington DC |
| --- | --- | --- |
| Queues | 4 | 5 |
"""


@pytest.fixture
def with_flags():
    """Let this test raise flags."""


@pytest.fixture(autouse=True)
def without_flags(request, monkeypatch):
    """The plausibility rules take time; only tests with the fixture `with_flags` run them."""
    if "with_flags" not in request.fixturenames:
        monkeypatch.setattr(
            "wanbench.read.plausibility.check", lambda found, regions=None: tables.from_rows("flags", [])
        )


def rows(found, column):
    pings = found["pings"]
    codes = [pings[name].str.partition(":")[2] for name in ("from_region", "to_region")]
    return list(zip(*codes, pings[column], strict=True))


def test_a_matrix_in_several_tabs_is_one(tmp_path, with_flags):
    path = tmp_path / "latency.md"
    path.write_text(TABBED)
    found = read_markdown(path, cloud="azure", statistic="p50", about={"title": "made up"})
    assert rows(found, "median_rtt_ms") == [
        ("australiacentral", "northcentralus", 197.0),
        ("australiacentral", "centralus", 181.0),
        ("centralus", "northcentralus", 10.0),
        ("australiacentral", "northeurope", 251.0),
        ("australiacentral", "francecentral", 243.0),
        ("centralus", "northeurope", 90.5),
        ("centralus", "francecentral", 95.0),
        ("germanynorth", "northeurope", 24.0),
    ]
    for name, frame in found.items():
        pd.testing.assert_frame_equal(tables.validate(name, frame), frame)
    assert found["tests"].setting.isna().all()
    assert found["pings"].test_id.tolist()[0] == "latency.md:16:2"
    assert "197" in TABBED.split("\n")[15]
    unread = found["unread"].to_dict("records")
    assert [row["line_number"] for row in unread if "skipped" in row["expected"]] == [8]
    assert "azure:francecentral and azure:germanynorth" in unread[-1]["found"] and len(unread) == 2
    assert found["sources"].title.tolist() == ["made up"]
    pairs = summarise_pairs(found, rtt="median")
    assert len(pairs) == 8 and pairs.distance_km.notna().all()


def test_months_are_repeated_measurements_told_apart_by_their_heading():
    found = read_markdown(MONTHLY, cloud="ibm")
    pings, tests = found["pings"], found["tests"]
    assert len(pings) == 8 and (pings.source_file == "(text)").all()
    twice = pings[(pings.from_region == "ibm:us-south") & (pings.to_region == "ibm:us-east")]
    assert twice.mean_rtt_ms.tolist() == [34.0, 36.0] and twice.test_id.is_unique
    assert tests.setting.unique().tolist() == ["1 Feb 2030; Between regions; Table 1. January 2030", "1 Jan 2030"]
    remarks = found["unread"]["found"].tolist()
    assert "values from a region to itself: 4, 0.1 to 1.5 ms" in remarks
    assert "the first column: Queues" in remarks and len(remarks) == 2
    ends = ["from_region", "to_region"]
    pairs = summarise_pairs(found, rtt="mean", setting="*").set_index(ends)
    assert pairs.rtt_ms["ibm:us-south", "ibm:us-east"] == 35 and pairs.n_tests.max() == 2
    pairs = summarise_pairs(found, rtt="mean", setting="1 Jan 2030").set_index(ends)
    assert pairs.rtt_ms["ibm:us-south", "ibm:us-east"] == 36 and len(pairs) == 2


def test_transposed_and_units():
    text = "| RTT in s | East US | West US |\n|-|-|-|\n| East US | | 0.06 |\n| West US | 65 ms | |\n"
    found = read_markdown(text, statistic="min", transposed=True)
    assert rows(found, "min_rtt_ms") == [("westus", "eastus", 60.0), ("eastus", "westus", 65.0)]


def test_bars_and_marks_within_cells():
    text = (
        "a \\| b | AWS \\| us-east-1 | *EU (Ireland)* {: .x}\n"
        "--- | :-: | ---\n"
        "__us-east-1__ | | 67 \n"
        "![flag](x.png) | `0.7` ms | 12 \n"
        "`eu-west-1` | ***68*** | ~~5~~ \n"
    )
    found = read_markdown(text, statistic="mean")
    assert rows(found, "mean_rtt_ms") == [("us-east-1", "eu-west-1", 67.0), ("eu-west-1", "us-east-1", 68.0)]
    assert found["unread"][["line_number", "found"]].values.tolist() == [[4, "flag"], [5, "~~5~~"]]


def test_quoted_tables_are_read_and_commented_ones_are_not():
    text = (
        "<!-- made up\n\n| x | East US |\n|-|-|\n| West US | 1 |\n-->\n"
        "> ## 2030\n> | x | East US |\n> |---|---|\n> | West US | 61 |\n<!-- open\n"
        "| x | East US |\n|-|-|\n| West US 2 | 70 |\n"
    )
    found = read_markdown(text, statistic="mean")
    assert rows(found, "mean_rtt_ms") == [("westus", "eastus", 61.0), ("westus2", "eastus", 70.0)]
    assert found["pings"].test_id.tolist() == ["(text):10:2", "(text):14:2"]


def test_the_path_may_be_text_or_a_file(tmp_path):
    path = tmp_path / "latency.md"
    path.write_text(MONTHLY)
    from_file, from_text = read_markdown(str(path), cloud="ibm"), read_markdown(MONTHLY, cloud="ibm")
    assert from_file["sources"].sha256.tolist() == from_text["sources"].sha256.tolist()
    assert rows(from_file, "mean_rtt_ms") == rows(from_text, "mean_rtt_ms")
    for wrong in (7, None, MONTHLY.encode()):
        with pytest.raises(ParameterError, match="path_or_text is"):
            read_markdown(wrong)
    with pytest.raises(RawDataError, match="a file that can be read"):
        read_markdown("no-such-file.md")


@pytest.mark.parametrize(
    "text, message",
    [
        ("# Nothing\n", "expected a Markdown table with names of regions.*found 'no table'"),
        ("| a | b |\n|-|-|\n| c | 1 |\n", "text\\):1: .*1 other tables, at lines 1"),
        ("| a | East US |\n|-|-|\n| East US | 1 |\n", "no time between two regions"),
        ("```\n| a | East US |\n|-|-|\n| West US | 1 |\n", "no table"),
        ("| a | East US |\n| West US | 1 |\n", "no table"),
        ("| a | East US |\n|-|-|\n| West US | soon |\n", "text\\):3: .*a time.*'soon"),
        ("| Loss (%) | East US |\n|-|-|\n| West US | 1 |\n", "1 other tables"),
        ("|" * 700 + "\n" + "|-" * 700 + "|\n", "at most 600 rows and 600 columns"),
        ("| a |\n|-|\n" + "| b |\n" * 700, "at most 600 rows"),
        ("| a |\n|-|\n\n" * 2100, "at most 2000 tables"),
    ],
)
def test_what_holds_no_matrix_is_refused(text, message):
    with pytest.raises(RawDataError, match=message):
        read_markdown(text, statistic="mean")


def test_nobody_says_the_statistic():
    with pytest.raises(ParameterError, match="the corner of the table, 'Source'"):
        read_markdown(TABBED, cloud="azure")
