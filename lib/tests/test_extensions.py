"""A stranger's package declares an entry point and is found, without a line changed here."""

import json

import pytest

from wanbench.extensions import extensions

GROUP = "wanbench.tested"


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """Install a package beside wanbench that adds `theirs`, and tries to replace `ours`."""
    (tmp_path / "stranger.py").write_text("def made():\n    return 'made by a stranger'\n")
    metadata = tmp_path / "stranger-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        f"[{GROUP}]\ntheirs = stranger:made\nours = stranger:made\n[wanbench.labs]\nstrange = stranger:made\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


def test_strangers_are_found_and_replace_nothing(stranger):
    known = extensions(GROUP, {"ours": "json:dumps"})
    assert sorted(known) == ["ours", "theirs"]
    assert known["theirs"]() == "made by a stranger"
    assert known["ours"] is json.dumps


def test_nothing_is_imported_before_it_is_asked_for():
    known = extensions(GROUP, {"absent": "no_such_module:thing"})
    assert list(known) == ["absent"] and "other" not in known
    with pytest.raises(ModuleNotFoundError):
        known["absent"]
