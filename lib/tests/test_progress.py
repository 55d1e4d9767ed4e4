"""Progress on stderr, in few lines."""

import pytest

from wanbench.measure.campaign.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("wanbench.measure.campaign.progress.time.monotonic", lambda: now[0])
    return now


def drive(clock, seconds_per_test, total=100, failed_from=10**9):
    progress = Progress(total)
    for n in range(1, total + 1):
        clock[0] += seconds_per_test
        failed = max(n - failed_from, 0)
        progress.update(done=n - failed, failed=failed, left_s=(total - n) * seconds_per_test)
    progress.close()


def test_a_short_run_says_how_it_ended_and_no_more(clock, capsys):
    drive(clock, 0.05)
    assert capsys.readouterr().err == "100 of 100 tests done, 0 failed, 0 left\n"


def test_a_line_each_tenth_but_not_more_than_every_ten_seconds(clock, capsys):
    drive(clock, 0.5)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "20 of 100 tests done, 0 failed, 80 left, about 40 s left" and len(lines) == 5
    drive(clock, 1.5)
    assert len(capsys.readouterr().err.splitlines()) == 10


def test_a_line_a_minute_when_tests_are_slow(clock, capsys):
    drive(clock, 30)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 50 and "about 49.0 min left" in lines[0]


def test_failed_tests_are_told(clock, capsys):
    drive(clock, 0.1, total=10, failed_from=7)
    assert capsys.readouterr().err == "7 of 10 tests done, 3 failed, 0 left\n"


def test_nothing_new_says_nothing(clock, capsys):
    Progress(5, done=5).close()
    assert capsys.readouterr().err == ""
