from importlib import import_module

from wanbench.importers.fetching import NotFetchedError

module = import_module("wanbench.importers.at_hand")


def test_a_file_that_cannot_be_had_is_none_and_why_is_printed(monkeypatch, capsys, tmp_path):
    def fetch(name):
        if name == "absent":
            raise NotFetchedError("absent was not fetched: put it there")
        return tmp_path / name

    monkeypatch.setattr(module, "fetch", fetch)
    assert module.at_hand("here", "absent") == [tmp_path / "here", None]
    assert capsys.readouterr().out == "absent was not fetched: put it there\n"
