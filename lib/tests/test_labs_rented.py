"""What labs of rented hosts share: sweeping from cloud to cloud; and the role in docs/clouds/gcp.md."""

import _thread
import ast
import re
import threading
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

import wanbench
from wanbench import cli
from wanbench.folders import root
from wanbench.labs.rented import everywhere, leases
from wanbench.labs.rented.sweep import CLOUDS, sweep_clouds
from wanbench.labs.rented.user_data import HOST_PYTHON, user_data


def test_sweep_goes_from_cloud_to_cloud(monkeypatch, capsys, tmp_path):
    told = []
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))
    for cloud in CLOUDS:
        monkeypatch.setattr(f"wanbench.labs.{cloud}.unusable", lambda: "it is not looked for")
    assert sweep_clouds() == 1
    assert "gcp: not looked at, as it is not looked for." in (shown := capsys.readouterr()).out
    assert "No cloud could be asked" in shown.err
    monkeypatch.setattr("wanbench.labs.gcp.sweep", lambda **options: told.append(options) or 0)
    assert cli.main(["sweep", "gcp", "--yes"]) == 0 and told == [{"yes": True, "everything": False}]
    assert cli.main(["sweep", "elsewhere"]) != 0 and "allowed: aws, gcp" in capsys.readouterr().err
    monkeypatch.setattr("wanbench.labs.gcp.unusable", lambda: None)
    leases.Lease("aws").release(all_gone=False)
    # What a run left on a cloud that cannot be asked is not nothing.
    assert sweep_clouds() == 1 and len(told) == 2
    assert "aws: not looked at, as it is not looked for; 1 runs that ended here" in capsys.readouterr().out


def test_an_interruption_waits_for_what_is_being_launched():
    ended, submitted = [], threading.Event()

    def items():
        yield from ("interrupted", "other")
        submitted.set()

    def work(item):
        submitted.wait()
        if item == "interrupted":
            _thread.interrupt_main()
        time.sleep(0.1)
        ended.append(item)

    with pytest.raises(KeyboardInterrupt):
        everywhere(work, items())
    assert sorted(ended) == ["interrupted", "other"]


def test_a_first_start_makes_the_python_that_kafka_needs_and_fails_only_with_its_timer():
    document = user_data(
        expires_at=datetime.now(UTC),
        host_key="a",
        host_key_public="b",
        packages=("python3.11",),
        python="python3.11",
    )
    make, install, timer = yaml.safe_load(document)["runcmd"]
    assert make == ["python3.11", "-m", "venv", "/opt/wanbench"] and install[0] == HOST_PYTHON
    assert install[-2:] == [f"{name}=={version(name)}" for name in ("kafka-python", "confluent-kafka")]
    assert timer[:2] == ["systemctl", "enable"]


def test_the_role_in_the_docs_allows_what_the_code_calls():
    verbs = dict.fromkeys(("insert", "bulk_insert"), "create")
    verbs |= {"aggregated_list": "list", "get_from_family": "getFromFamily"}
    called = set()
    for path in (Path(wanbench.__file__).parent / "labs" / "gcp").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            by_make = getattr(node.func, "id", "") == "make"
            if by_make or getattr(node.func, "attr", "") in ("call", "pages"):
                service, operation = (
                    getattr(each, "value", None) for each in node.args[by_make : by_make + 2]
                )
                if isinstance(service, str):
                    first, *others = service.split("_")
                    verb = operation.removesuffix("_unary")
                    words = first + "".join(word.capitalize() for word in others)
                    called.add(f"compute.{words}.{verbs.get(verb, verb)}")
    text = (root() / "docs" / "clouds" / "gcp.md").read_text()
    allowed = set(re.findall(r"^- (compute\.\w+\.\w+)$", text, re.MULTILINE))
    # Google asks for these besides, for what an instance is made of and stands on.
    besides = {
        "disks.create",
        "disks.setLabels",
        "instances.setLabels",
        "instances.setMetadata",
        "networks.updatePolicy",
    }
    besides |= {"subnetworks.use", "subnetworks.useExternalIp"}
    assert allowed == called - {"compute.images.getFromFamily"} | {f"compute.{each}" for each in besides}
