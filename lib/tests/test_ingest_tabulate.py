"""Tables of a run are kept as Parquet, whole; what became of everything is counted."""

import shutil

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import wanbench
from wanbench.folders import samples_folder

RECORDING = next(iter(sorted(samples_folder().glob("raw/survey-quick/*/"))))


def test_what_is_written_reads_back(tmp_path):
    found = wanbench.read.ingest.tabulate(RECORDING, tmp_path)
    assert len(found["echoes"]) == 56 * 20
    for name, frame in found.items():
        assert_frame_equal(wanbench.tables.read(name, tmp_path), frame)


def test_the_default_place_is_below_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))
    wanbench.read.ingest.tabulate(RECORDING)
    day = f"{RECORDING.name[:4]}-{RECORDING.name[4:6]}-{RECORDING.name[6:8]}"
    folder = tmp_path / "tables" / "campaign=survey-quick" / f"date={day}" / f"run={RECORDING.name}"
    assert (folder / "echoes.parquet").is_file()


@pytest.fixture
def damaged(tmp_path):
    """The recording with one ping that says something else, and one that is gone."""
    folder = tmp_path / "run"
    shutil.copytree(RECORDING, folder)
    first, second, *_ = sorted((folder / "ping").iterdir())
    first.write_text("hello")
    second.unlink()
    return folder


def test_damaged_files_are_rows_and_the_others_are_read(damaged):
    found = wanbench.read.ingest.read_run(damaged)
    assert len(found["unread"]) == 2
    assert len(found["echoes"]) == 54 * 20
    counts = wanbench.read.ingest.account(found).set_index("what").n
    assert counts["files that could not be read"] == 2
    assert counts["echoes sent"] == 54 * 20
    short = wanbench.read.ingest.failures(found)
    assert list(short.what) == ["file not read"] * 2
    assert short.why.str.contains("SHA-256").any()


def test_failed_attempts_are_failures_with_their_reason():
    found = wanbench.read.ingest.read_run(RECORDING)
    none = wanbench.read.ingest.failures(found)
    assert none.empty and (repr(none), none._repr_html_()) == ("none", "<p>none</p>")
    tests = found["tests"].copy()
    tests.loc[0, ["outcome", "failed_experiment", "reason"]] = ["failed", "iperf3", "unable to connect"]
    tests.loc[1, "outcome"] = "interrupted"
    short = wanbench.read.ingest.failures(found | {"tests": tests})
    assert list(short.what) == ["attempt failed", "attempt interrupted"]
    assert list(short.why) == ["iperf3: unable to connect", "its end is not in the journal"]
    assert isinstance(short, pd.DataFrame) and "unable to connect" in short._repr_html_()
    assert type(short[short.what == "none of these"]) is pd.DataFrame
