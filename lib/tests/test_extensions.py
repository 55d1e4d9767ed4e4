"""A stranger's package declares entry points and is found, without a line changed here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import wanbench
from wanbench.extensions import extensions

GROUP = "wanbench.tested"
LAB = """
from wanbench.measure.labs.local import LocalLab


class Strange(LocalLab):
    kind = "strange"


def made():
    return "made by a stranger"
"""


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """Install a package beside wanbench that adds a lab, a cloud and `theirs`, and tries to replace `ours`."""
    (tmp_path / "stranger.py").write_text(LAB)
    metadata = tmp_path / "stranger-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        f"[{GROUP}]\ntheirs = stranger:made\nours = stranger:made\n"
        "[wanbench.labs]\nstrange = stranger:Strange\nlocal = stranger:made\n[wanbench.clouds]\noci = stranger\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


def test_strangers_are_found_and_replace_nothing(stranger):
    both = extensions(GROUP, {"ours": "json:dumps"})
    assert sorted(both) == ["ours", "theirs"]
    assert both["theirs"]() == "made by a stranger"
    assert both["ours"] is json.dumps


def test_nothing_is_imported_before_it_is_asked_for():
    absent = extensions(GROUP, {"absent": "no_such_module:thing"})
    assert list(absent) == ["absent"] and "other" not in absent
    with pytest.raises(ModuleNotFoundError):
        absent["absent"]


def test_a_strangers_lab_and_cloud_are_opened_by_name(stranger, tmp_path):
    script = """
from wanbench.measure.campaign.start import _lab
from wanbench.measure.labs import CLOUDS, LABS
print(_lab("strange", ["a", "b"], {}).kind, _lab("local", ["a", "b"], {}).kind, "aws+oci" in LABS, CLOUDS["oci"].made())
"""
    library = str(Path(wanbench.__file__).parents[1])
    path = os.pathsep.join([library, str(tmp_path)])
    shown = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "strange local True made by a stranger\n"
