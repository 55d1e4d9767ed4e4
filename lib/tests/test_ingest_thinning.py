"""Old logs of ping become counts: quantiles stay exact, the lost order is reported, and nothing is deleted unasked."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal, assert_series_equal

from wanbench import cli
from wanbench.errors import MissingDataError, ParameterError, RawDataError
from wanbench.methods.lab.link_verdicts import jitter, rtt
from wanbench.read.ingest import ping, read_run, tabulate_campaign, thinning
from wanbench.runs import Run
from wanbench.runs.deposit import deposit

JITTER = next((Path(__file__).parent / "samples" / "runs" / "jitter").iterdir())
ORDER = ["sequence", "received_at_s"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The recorded pings of links with jitter, in a data folder."""
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))
    return shutil.copytree(JITTER, tmp_path / "raw" / "jitter" / JITTER.name)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def in_any_order(echoes):
    names = ["from_region", "to_region", "rtt_ms", "lost", "ttl"]
    return echoes.drop(columns=[*ORDER, "source_file"]).sort_values(names, ignore_index=True)


def test_all_but_the_order_is_as_before(run):
    before, bytes_before = read_run(run), contents(run)
    n, size, left = thinning.thin(run)
    assert n == 3 and left < size / 5
    after = read_run(run)
    assert_frame_equal(in_any_order(after["echoes"]), in_any_order(before["echoes"]))
    assert after["echoes"][ORDER].isna().all(axis=None)
    assert after["unread"].empty
    texts = {path: text for path, text in bytes_before.items() if path.startswith("ping/") and path.endswith(".txt")}
    assert not texts.keys() & contents(run).keys()
    said = json.loads((run / "thinned.json").read_text())
    listed = json.loads((run / "manifest.json").read_text())["files"]
    assert said.keys() == texts.keys() and all(said[path]["sha256"] == listed[path] for path in texts)
    assert "3 raw files were replaced by counts 20" in str(Run.open(run))


def test_counts_of_parts_of_a_log_add_up_to_those_of_the_whole(run, tmp_path):
    echoes = pa.concat_tables([ping.read(path)["echoes"] for path in sorted((run / "ping").glob("*.txt"))])
    whole = thinning._counts(echoes).to_pandas()
    parts = pd.concat([thinning._counts(echoes.slice(at, 500)).to_pandas() for at in range(0, len(echoes), 500)])
    names = [name for name in whole if name != "n"]
    added = parts.groupby(names, dropna=False).n.sum()
    assert_series_equal(added, whole.groupby(names, dropna=False).n.sum())
    assert added.sum() == len(echoes)


def test_what_needs_the_order_says_that_the_run_was_thinned(run):
    thinning.thin(run)
    tables = read_run(run)
    with pytest.raises(MissingDataError, match=f"jitter needs the order of echoes, but run {run.name} was thinned"):
        jitter(tables["echoes"], tables["links"])
    assert set(rtt(tables["echoes"], tables["links"]).rows.verdict) == {"within"}


def test_a_thinned_run_is_whole_is_read_again_and_can_be_deposited(run, tmp_path):
    before = tabulate_campaign("jitter")["echoes"]
    thinning.thin(run)
    assert tabulate_campaign("jitter")["echoes"].sequence.isna().all() and before.sequence.notna().all()
    Run.open(run).verify()
    assert contents(deposit(run, tmp_path / "deposit")).items() >= contents(run).items()
    counts = next(run.glob("ping/*.counts.parquet"))
    counts.write_bytes(counts.read_bytes()[:-9])
    with pytest.raises(RawDataError, match="SHA-256"):
        Run.open(run).verify()
    assert read_run(run)["unread"].path.to_list() == [str(counts.relative_to(run))]


def test_an_interrupted_thinning_can_be_repeated(run, monkeypatch):
    before, unlink = contents(run), type(run).unlink

    def fails(path, missing_ok=False):
        if path.suffix == ".txt":
            raise KeyboardInterrupt
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(type(run), "unlink", fails)
    with pytest.raises(KeyboardInterrupt):
        thinning.thin(run)
    assert contents(run).items() >= before.items()
    Run.open(run).verify()
    monkeypatch.undo()
    assert thinning.thin(run)[0] == 0 and not list(run.glob("ping/0*.1.txt"))
    Run.open(run).verify()


@pytest.mark.parametrize(
    ("arguments", "answer", "status", "thinned"),
    [
        (["jitter", "--older-than", "1d"], "n", 1, False),
        (["jitter", "--older-than", "1d"], "y", 0, True),
        (["jitter", "--older-than", "1d", "--yes"], None, 0, True),
        (["jitter", "--older-than", "36500d", "--yes"], None, 0, False),
        (["jitter", "--older-than", "month", "--yes"], None, 2, False),
        (["nowhere", "--yes"], None, 2, False),
    ],
)
def test_the_command_asks_and_leaves_younger_runs(run, monkeypatch, capsys, arguments, answer, status, thinned):
    monkeypatch.setattr("builtins.input", lambda question: answer)
    journal = run / "journal.jsonl"
    assert cli.main(["thin", *arguments]) == status
    assert (run / "thinned.json").exists() is thinned and journal.exists()


def test_only_finished_and_sound_runs_are_thinned(run):
    path = next(run.glob("ping/*.txt"))
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(RawDataError, match="SHA-256"):
        thinning.thin(run)
    (run / "manifest.json").unlink()
    with pytest.raises(ParameterError, match="unfinished"):
        thinning.thin(run)
    assert not (run / "thinned.json").exists()
