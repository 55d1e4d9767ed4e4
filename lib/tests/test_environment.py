"""The lock, lib/pyproject.toml and environment.yml describe one environment."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
SYSTEM = {"python", "pip", "make", "iperf"}  # in environment.yml only: not Python packages of ours


def read_lock(text):
    """[(name, version, marker or None, number of hashes)], one per package line of a requirements file."""
    lines = [
        line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    entries = []
    for line in lines:
        match = re.fullmatch(r"([A-Za-z0-9._-]+)==([^\s;]+)(?: ; (.*?))?((?: +--hash=sha256:[0-9a-f]{64})*) *", line)
        assert match, f"not a pinned package: {line[:100]!r}"
        name, version, marker, hashes = match.groups()
        entries.append((canonicalize_name(name), version, marker and Marker(marker), hashes.count("--hash=")))
    return entries


def locked_versions(entries, python):
    """{name: version} that the lock installs on Linux with this Python, such as "3.11.9"."""
    machine = {
        "python_version": ".".join(python.split(".")[:2]),
        "python_full_version": python,
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "platform_machine": "x86_64",
    }
    chosen = {}
    for name, version, marker, _ in entries:
        if marker is None or marker.evaluate(machine):
            assert name not in chosen, f"{name} is locked twice for Python {python}"
            chosen[name] = version
    return chosen


def direct_dependencies():
    project = tomllib.loads((ROOT / "lib/pyproject.toml").read_text())["project"]
    listed = project["dependencies"] + [
        requirement for extra in project["optional-dependencies"].values() for requirement in extra
    ]
    return {canonicalize_name(Requirement(requirement).name) for requirement in listed}


def conda_versions(text):
    """{name: version or None} of the conda and pip parts of an environment.yml together."""
    versions = {}
    for entry in yaml.safe_load(text)["dependencies"]:
        for requirement in entry["pip"] if isinstance(entry, dict) else [entry]:
            if requirement.startswith("--editable"):
                continue
            name, _, version = re.sub(r"\[.*\]| ;.*", "", requirement).replace("==", "=").partition("=")
            name = canonicalize_name(name.strip())
            assert name not in versions, f"{name} is listed twice"
            versions[name] = version.strip() or None
    return versions


@pytest.fixture(scope="module")
def lock():
    return read_lock((ROOT / "requirements.txt").read_text())


@pytest.fixture(scope="module")
def conda():
    return conda_versions((ROOT / "environment.yml").read_text())


def test_every_locked_package_has_hashes(lock):
    assert len(lock) > 50
    assert [name for name, _, _, hashes in lock if hashes == 0] == []


def test_lock_names_no_host_and_no_index():
    text = (ROOT / "requirements.txt").read_text()
    assert not re.search(r"https?:|file:|--(extra-)?index-url|--find-links|--trusted-host|@", text)


@pytest.mark.parametrize("python", ["3.11.2", "3.11.9", "3.12.3", "3.13.1"])
def test_every_direct_dependency_is_locked_once(lock, python):
    assert direct_dependencies() - set(locked_versions(lock, python)) == set()


def test_environment_yml_pins_each_direct_dependency_as_the_lock_does(lock, conda):
    locked = locked_versions(lock, conda["python"] + ".9")
    assert {name: conda.get(name) for name in direct_dependencies()} == {
        name: locked[name] for name in direct_dependencies()
    }


def test_environment_yml_lists_nothing_else(conda):
    assert set(conda) - direct_dependencies() == SYSTEM


def test_environment_yml_installs_this_package_in_place():
    pip = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"][-1]["pip"]
    assert "--editable ./lib" in pip


def test_readers_notice_what_they_should():
    pinned = "numpy==2.4.6 ; python_full_version < '3.12' \\\n    --hash=sha256:" + "0" * 64 + "\n"
    pinned += "numpy==2.5.5 ; python_full_version >= '3.12'\n    # via x\n"
    assert [(name, version, hashes) for name, version, _, hashes in read_lock(pinned)] == [
        ("numpy", "2.4.6", 1),
        ("numpy", "2.5.5", 0),
    ]
    assert locked_versions(read_lock(pinned), "3.11.9") == {"numpy": "2.4.6"}
    assert locked_versions(read_lock(pinned), "3.13.1") == {"numpy": "2.5.5"}
    with pytest.raises(AssertionError, match="not a pinned package"):
        read_lock("numpy>=2\n")
    with pytest.raises(AssertionError, match="listed twice"):
        conda_versions("dependencies: [numpy=1, {pip: [numpy==2]}]")
