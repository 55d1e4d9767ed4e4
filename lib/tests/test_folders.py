"""Where the checkout is, from wherever Python runs."""

import pytest

from wanbench.errors import ParameterError, WanbenchError
from wanbench.folders import ROOT_MARK, data_folder, kafka_jars, root


def test_root_is_the_nearest_folder_above(tmp_path, monkeypatch):
    (tmp_path / "outer" / ROOT_MARK).mkdir(parents=True)
    inner = tmp_path / "outer/inner"
    (inner / ROOT_MARK).mkdir(parents=True)
    (inner / "notebooks/deep").mkdir(parents=True)
    assert root(inner / "notebooks/deep") == inner
    assert root(tmp_path / "outer") == tmp_path / "outer"
    monkeypatch.chdir(inner / "notebooks")
    assert root() == inner and data_folder() == inner / "data"


def test_an_address_is_no_data_folder(monkeypatch):
    monkeypatch.setenv("WANBENCH_DATA", "s3://bucket/data")
    with pytest.raises(ParameterError, match="WANBENCH_DATA is s3://bucket/data; allowed: a folder"):
        data_folder()


def test_no_checkout_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("wanbench.folders.ROOT_MARK", "no-such-folder")
    with pytest.raises(WanbenchError, match="no folder at or above"):
        root(tmp_path)


def test_kafkas_jars_are_in_the_checkout_unless_somebody_says_where(tmp_path, monkeypatch):
    (tmp_path / ROOT_MARK).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WANBENCH_KAFKA", raising=False)
    assert kafka_jars() == tmp_path / ".kafka/jars"
    monkeypatch.setenv("WANBENCH_KAFKA", "elsewhere")
    assert kafka_jars() == tmp_path / "elsewhere"
    monkeypatch.setenv("WANBENCH_KAFKA", "/opt/kafka/libs")
    assert str(kafka_jars()) == "/opt/kafka/libs"
    monkeypatch.setenv("WANBENCH_KAFKA", "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/kafka_2.13-4.3.1.jar").touch()
    assert kafka_jars("4.3.1") == tmp_path / "elsewhere" and kafka_jars("4.4.0") == tmp_path / ".kafka/4.4.0/jars"
