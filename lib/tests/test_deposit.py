"""A deposit: the run's files with their hashes, described by an RO-Crate that its own validator accepts."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import requests
import rocrate
from rocrate.rocrate import ROCrate
from rocrate_validator import models, services
from rocrate_validator.utils.http import HttpRequester

from wanbench import cli
from wanbench.errors import ParameterError, RawDataError
from wanbench.runs.deposit import deposit

RUN = next((Path(__file__).parent / "samples" / "runs" / "cut").iterdir())


@pytest.fixture(scope="module")
def deposited(tmp_path_factory):
    return deposit(RUN, tmp_path_factory.mktemp("deposit") / "mine")


def test_every_file_is_copied_and_described_with_its_size_and_hash(deposited):
    crate = ROCrate(deposited)
    described = {file.id: (file["sha256"], int(file["contentSize"])) for file in crate.get_by_type("File")}
    files = {str(path.relative_to(RUN)): path.read_bytes() for path in RUN.rglob("*") if path.is_file()}
    assert described == {name: (hashlib.sha256(text).hexdigest(), len(text)) for name, text in files.items()}
    assert all((deposited / name).read_bytes() == text for name, text in files.items())


def test_it_says_what_was_measured_when_by_what_and_under_which_licence(deposited):
    crate, manifest = ROCrate(deposited), json.loads((RUN / "manifest.json").read_text())
    assert manifest["campaign"] in crate.name and "emulated links" in crate.description
    assert crate.datePublished.isoformat() == manifest["ended_at_utc"]
    assert crate.license.id == "https://spdx.org/licenses/Apache-2.0"
    tool = crate.dereference("#measuring")["instrument"]
    assert (tool["name"], tool["version"]) == ("wanbench", manifest["wanbench_version"])


def test_the_validator_of_ro_crate_misses_only_a_publisher_whom_nobody_named(deposited, monkeypatch):
    """The validator asks the network for the terms of RO-Crate, which the package rocrate holds."""
    terms = (Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld").read_bytes()
    asked = set()

    def get(requester, address, **options):
        asked.add(address)
        response = requests.Response()
        response.status_code, response._content = 200, terms
        response.headers["Content-Type"] = "application/ld+json"
        return response

    monkeypatch.setattr(HttpRequester, "get", get, raising=False)
    settings = services.ValidationSettings(
        rocrate_uri=str(deposited), profile_identifier="ro-crate-1.3", requirement_severity=models.Severity.RECOMMENDED
    )
    issues = services.validate(settings).get_issues()
    assert [(issue.severity.name, "`publisher`" in issue.message) for issue in issues] == [("RECOMMENDED", True)]
    assert asked == {json.loads(terms)["@id"]}


def test_the_command_says_where_it_is_and_two_deposits_are_alike(deposited, tmp_path, capsys):
    assert cli.main(["deposit", str(RUN), str(tmp_path / "again")]) == 0
    assert str(tmp_path / "again") in capsys.readouterr().out
    names = [path.relative_to(deposited) for path in deposited.rglob("*") if path.is_file()]
    assert all((deposited / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in names)


@pytest.fixture
def copy(tmp_path):
    return Path(shutil.copytree(RUN, tmp_path / "run"))


def test_a_changed_file_is_refused_and_nothing_is_left(copy, tmp_path):
    next(copy.glob("cut/*")).write_bytes(b"changed")
    with pytest.raises(RawDataError, match="SHA-256"):
        deposit(copy, tmp_path / "target")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_what_cannot_be_deposited_is_refused(copy, tmp_path):
    with pytest.raises(ParameterError, match="exists; allowed: a new folder"):
        deposit(copy, tmp_path)
    with pytest.raises(ParameterError, match="licence is 'mine'; allowed: an address"):
        deposit(copy, tmp_path / "target", "mine")
    (copy / "manifest.json").unlink()
    with pytest.raises(ParameterError, match="unfinished run"):
        deposit(copy, tmp_path / "target")
