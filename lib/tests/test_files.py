"""Errors of the disk name the path that was to be written."""

import errno
import os

import pytest

from wanbench.files import replace_file, replaced_folder
from wanbench.runs.journal import Journal
from wanbench.runs.raw import write_raw

TIMES = {"started_at_utc": "", "ended_at_utc": ""}


@pytest.fixture
def full_disk(monkeypatch):
    """Writing and flushing fail as on a full disk: with an error that holds no path."""

    def fail(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    monkeypatch.setattr("pathlib.Path.write_bytes", fail)


def test_a_full_disk_is_an_error_with_the_path(tmp_path, full_disk):
    with pytest.raises(OSError, match=r"No space left on device: '.*/index\.html'"):
        replace_file(tmp_path / "index.html", b"")
    with (
        pytest.raises(OSError, match=r"No space left on device: '.*/figures'"),
        replaced_folder(tmp_path / "figures") as folder,
    ):
        (folder / "a.csv").write_bytes(b"")
    with pytest.raises(OSError, match=r"No space left on device: '.*/ping/1\.txt'"):
        write_raw(tmp_path, "ping", "1.txt", b"", **TIMES)
    with pytest.raises(OSError, match=r"No space left on device: '.*/journal\.jsonl'"):
        Journal(tmp_path / "journal.jsonl").append({"event": "run-finished"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.jsonl", "ping"]
