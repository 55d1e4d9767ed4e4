"""Two runs on one machine would measure each other: the second waits for the first, and says so."""

import subprocess
import sys

import pytest

from wanbench.measure.campaign.start import SHARE_VARIABLE, _one_at_a_time

SECOND = "from wanbench.measure.campaign.start import _one_at_a_time\nwith _one_at_a_time(): print('measures')"


@pytest.fixture
def second(monkeypatch, tmp_path):
    monkeypatch.delenv(SHARE_VARIABLE)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return lambda: subprocess.Popen([sys.executable, "-c", SECOND], **pipes)


def test_the_second_run_waits_and_says_so(second):
    with _one_at_a_time():
        process = second()
        assert process.stderr.readline().startswith("Another run measures on this machine: waiting")
        assert process.poll() is None
    assert process.communicate()[0] == "measures\n"


def test_who_shares_the_machine_on_purpose_does_not_wait(second, monkeypatch):
    with _one_at_a_time():
        monkeypatch.setenv(SHARE_VARIABLE, "1")
        assert second().communicate()[0] == "measures\n"
