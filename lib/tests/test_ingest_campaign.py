"""All runs of a campaign are one set of tables, and only new or changed runs are read."""

import json
import os
import shutil

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import wanbench
from wanbench.errors import ParameterError
from wanbench.folders import samples_folder
from wanbench.read.ingest import read_run, run, tabulate_campaign

RECORDING = next(iter(sorted(samples_folder().glob("raw/survey-quick/*/"))))


@pytest.fixture
def read(tmp_path, monkeypatch):
    """The names of the run folders that were read, in a data folder with two runs of a campaign."""
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))
    for day in (1, 2):
        add(tmp_path, day)
    read = []

    read_tables = run.tabulate

    def tabulate(folder, target=None):
        read.append(folder.name)
        return read_tables(folder, target)

    monkeypatch.setattr(run, "tabulate", tabulate)
    return read


def add(data, day):
    """Add the recording with four of its tests as an unfinished run of a day."""
    folder = data / "raw" / "daily" / f"202601{day:02}T000000Z-0000000{day}"
    folder.mkdir(parents=True)
    events = [json.loads(line) for line in (RECORDING / "journal.jsonl").read_text().splitlines()]
    events = [events[0] | {"campaign": "daily", "run_id": folder.name}, *events[1:10]]
    (folder / "journal.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    for name in ("ping", "iperf3"):
        shutil.copytree(RECORDING / name, folder / name)
    return folder


def test_a_run_is_read_once(read, tmp_path):
    names = [folder.name for folder in sorted((tmp_path / "raw" / "daily").iterdir())]
    found = tabulate_campaign("daily")
    assert read == names
    assert_frame_equal(
        found["tests"],
        pd.concat([read_run(tmp_path / "raw" / "daily" / name)["tests"] for name in names], ignore_index=True),
    )
    assert_frame_equal(tabulate_campaign("daily")["echoes"], found["echoes"])
    assert read == names
    third = add(tmp_path, 3)
    assert sorted(set(tabulate_campaign("daily")["tests"].run_id)) == [*names, third.name]
    assert read == [*names, third.name]


def test_a_run_that_changed_is_read_again_and_one_whose_files_were_only_copied_is_not(read, tmp_path):
    first, second = sorted((tmp_path / "raw" / "daily").iterdir())
    before = tabulate_campaign("daily")["echoes"]
    os.utime(first / "journal.jsonl", (0, 0))
    journal = second / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:8]))
    read.clear()
    after = tabulate_campaign("daily")["echoes"]
    assert read == [second.name] and len(after) < len(before)


def test_another_reader_or_a_torn_record_or_again_reads_all(read, tmp_path, monkeypatch):
    tabulate_campaign("daily")
    read.clear()
    tabulate_campaign("daily", again=True)
    assert len(read) == 2
    record = next((tmp_path / "tables").glob("*/*/*/ingested.json"))
    record.write_text(record.read_text()[:10])
    tabulate_campaign("daily")
    assert len(read) == 3
    monkeypatch.setattr(run, "_readers", lambda: "0" * 64)
    tabulate_campaign("daily")
    assert len(read) == 5


def test_duckdb_queries_the_same_files(read):
    found = tabulate_campaign("daily")
    counted = found.query("select date, run_id, count(*) as n from echoes group by all order by all")
    assert counted.n.to_list() == found["echoes"].groupby("run_id").size().to_list()
    assert counted.date.astype(str).to_list() == ["2026-01-01", "2026-01-02"]
    with pytest.raises(ParameterError, match=r"sql: .*nowhere"):
        found.query("select * from nowhere")


def test_an_unknown_campaign_is_an_error_that_names_the_known_ones(read):
    with pytest.raises(ParameterError, match="daily"):
        tabulate_campaign("weekly")
    with pytest.raises(KeyError):
        tabulate_campaign("daily")["faults"]
    assert wanbench.read.ingest.tabulate_campaign is tabulate_campaign
