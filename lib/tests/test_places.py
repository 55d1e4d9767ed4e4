"""Where the checkout is, from wherever Python runs."""

import pytest

from wanbench.errors import WanbenchError
from wanbench.places import MARK, data_folder, root


def test_root_is_the_nearest_folder_above(tmp_path, monkeypatch):
    (tmp_path / "outer" / MARK).mkdir(parents=True)
    inner = tmp_path / "outer/inner"
    (inner / MARK).mkdir(parents=True)
    (inner / "notebooks/deep").mkdir(parents=True)
    assert root(inner / "notebooks/deep") == inner
    assert root(tmp_path / "outer") == tmp_path / "outer"
    monkeypatch.chdir(inner / "notebooks")
    assert root() == inner and data_folder() == inner / "data"


def test_no_checkout_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("wanbench.places.MARK", "no-such-folder")
    with pytest.raises(WanbenchError, match="no folder at or above"):
        root(tmp_path)
