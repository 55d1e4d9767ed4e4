"""Files that GitHub and archives read: the citation, the workflows, the container."""

import json
import re
from pathlib import Path

import pytest
import yaml

from wanbench import __version__

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text()))


def test_the_citation_names_this_version_and_what_the_format_demands():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["cff-version"] == "1.2.0" and cited["message"] and cited["title"]
    assert cited["authors"] and all(
        set(author) <= {"name", "family-names", "given-names"} for author in cited["authors"]
    )
    assert (cited["version"], cited["license"], cited["type"]) == (__version__, "Apache-2.0", "software")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_pin_actions_by_commit_ask_for_few_rights_and_call_make(path):
    text = path.read_text()
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    for step in steps:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"]) if "uses" in step else step["run"]
    assert len(re.findall(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", text, re.M)) == text.count("uses:")
    assert set(re.findall(r"\bmake ([a-z]+)", text)) <= TARGETS


def test_the_container_sets_itself_up():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert container["postCreateCommand"] == "make setup" and "setup" in TARGETS
    assert "--device=/dev/net/tun" in container["runArgs"]
