"""The file of a campaign, when it is due, and the text that repeats it."""

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from wanbench.cli import main
from wanbench.errors import ParameterError
from wanbench.folders import DATA_VARIABLE
from wanbench.measure.campaign.schedule import PERIODS, read_schedule

GOOD = "campaign: daily\nnotebook: 02\nevery: 1d\nparameters:\n  ping_count: 5\n"


def written(folder, text=GOOD):
    path = folder / "daily.yml"
    path.write_text(text)
    return path


def test_a_file_is_read_and_02_stays_a_name(tmp_path):
    one = read_schedule(written(tmp_path))
    assert (one.campaign, one.notebook, one.every, one.parameters) == ("daily", "02", "1d", {"ping_count": 5})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (("every: 1d", "every: 7h"), "every is '7h'; allowed: .*1d"),
        (("every: 1d\n", ""), "every is missing; a campaign needs campaign, notebook, every"),
        (("every", "often"), "a key is 'often'; allowed: .*every"),
        (("ping_count", "campaign"), "parameters name campaign"),
        (("parameters:\n  ping_count: 5", "parameters: [5]"), r"parameters is \[5\]; allowed: a mapping"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, change, match):
    with pytest.raises(ParameterError, match=match):
        read_schedule(written(tmp_path, GOOD.replace(*change)))


def test_a_repetition_is_due_half_a_period_after_the_last_began(tmp_path):
    one, run = read_schedule(written(tmp_path)), tmp_path / "daily/20260102T000000Z-abc"
    assert one.is_due(tmp_path)
    run.mkdir(parents=True)
    (run / "journal.jsonl").touch()
    assert not one.is_due(tmp_path, datetime(2026, 1, 2, 11, 59, tzinfo=UTC))
    assert one.is_due(tmp_path, datetime(2026, 1, 2, 12, 1, tzinfo=UTC))


@pytest.mark.parametrize("every", PERIODS)
def test_every_period_is_one_that_systemd_repeats_evenly(tmp_path, every):
    one = read_schedule(written(tmp_path, GOOD.replace("1d", every)))
    text = one.text("systemd", tmp_path)
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on this machine")
    (calendar,) = [line.partition("=")[2] for line in text.splitlines() if line.startswith("OnCalendar=")]
    command = ["systemd-analyze", "calendar", "--iterations=3", "--base-time=2026-01-01 00:00:00 UTC", calendar]
    shown = subprocess.run(command, capture_output=True, text=True, env={"TZ": "UTC", "PATH": "/usr/bin:/bin"})
    assert shown.returncode == 0, shown.stderr
    times = [line.split()[-3:-1] for line in shown.stdout.splitlines() if "Next elapse:" in line or "Iter. #" in line]
    at = [datetime.fromisoformat(" ".join(time)) for time in times]
    assert len(at) == 3 and at[2] - at[1] == at[1] - at[0] == one.period


def test_the_text_names_this_checkout_file_and_data(tmp_path, monkeypatch):
    monkeypatch.setenv(DATA_VARIABLE, "/data/100%")
    one = read_schedule(written(tmp_path))
    cron, units = one.text("cron", tmp_path / "a b"), one.text("systemd", tmp_path / "a b")
    assert cron.startswith(f"0 0 * * * cd '{tmp_path / 'a b'}' && /usr/bin/env ")
    assert (
        r"/data/100\%" in cron
        and cron.endswith(f"campaign {tmp_path / 'daily.yml'}\n")
        and "%" not in cron.replace(r"\%", "")
    )
    assert f"WorkingDirectory={tmp_path / 'a b'}\n" in units and "/data/100%% " in units and "Persistent=true" in units


def test_the_command_prints_a_schedule_and_measures_nothing_that_is_not_due(tmp_path, monkeypatch, capsys):
    path = written(tmp_path)
    assert main(["campaign", str(path), "--schedule", "cron"]) == 0
    assert capsys.readouterr().out == read_schedule(path).text("cron", Path(__file__).parents[2])
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    run = tmp_path / "raw/daily" / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-abc"
    run.mkdir(parents=True)
    (run / "journal.jsonl").touch()
    assert main(["campaign", str(path)]) == 0
    assert capsys.readouterr().out.startswith("Nothing is due: daily is measured every 1d.")
    assert main(["campaign", str(written(tmp_path, GOOD.replace("02", "03")))]) == 2
    assert "has no parameter campaign; allowed: a notebook that measures" in capsys.readouterr().err
