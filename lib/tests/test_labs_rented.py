"""What labs of rented hosts share: sweeping from cloud to cloud; and the role in docs/clouds/gcp.md."""

import _thread
import ast
import re
import threading
import time
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from ipaddress import AddressValueError
from pathlib import Path

import pytest
import yaml
from cloud_stub import serve
from scripted_lab import Reply, ScriptedHost, ScriptedLab

import wanbench
from wanbench import cli
from wanbench.errors import LabError
from wanbench.folders import root
from wanbench.measure.labs import CLOUDS
from wanbench.measure.labs.rented import Resource, Resources, everywhere, leases, sweep
from wanbench.measure.labs.rented import resources as tags
from wanbench.measure.labs.rented.client import clock_at
from wanbench.measure.labs.rented.hosts import HOST_PYTHON, close, make_ready, own_public_address, user_data
from wanbench.measure.labs.rented.sweep import sweep_clouds


def test_sweep_goes_from_cloud_to_cloud(monkeypatch, capsys, tmp_path):
    told = []
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))
    for cloud in CLOUDS:
        monkeypatch.setattr(f"wanbench.measure.labs.{cloud}.unusable", lambda: "it is not looked for")
    assert sweep_clouds() == 1
    assert "gcp: not checked, because it is not looked for." in (shown := capsys.readouterr()).out
    assert "No cloud could be checked" in shown.err
    monkeypatch.setattr("wanbench.measure.labs.gcp.sweep", lambda **options: told.append(options) or 0)
    assert cli.main(["sweep", "gcp", "--yes"]) == 0 and told == [{"yes": True, "everything": False}]
    assert cli.main(["sweep", "elsewhere"]) != 0 and "allowed: aws, gcp" in capsys.readouterr().err
    monkeypatch.setattr("wanbench.measure.labs.gcp.unusable", lambda: None)
    leases.Lease("aws", "7").release(all_gone=False)
    # What a run left on a cloud that cannot be asked is not nothing.
    assert sweep_clouds() == 1 and len(told) == 2
    assert "aws: not checked, because it is not looked for; 1 runs that ended on this" in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))
    monkeypatch.setenv("AWS_PROFILE", "nowhere")
    for cloud in ("gcp", "azure"):
        monkeypatch.setattr(f"wanbench.measure.labs.{cloud}.unusable", lambda: None)
        monkeypatch.setattr(f"wanbench.measure.labs.{cloud}.sweep", lambda **options: told.append(options) or 0)
    assert sweep_clouds() == 1 and len(told) == 4
    assert "aws: boto3 cannot read its configuration" in capsys.readouterr().err


def test_an_interruption_waits_for_what_is_being_launched():
    ended, hurried, submitted = [], [], threading.Event()

    def items():
        yield from ("interrupted", "other")
        submitted.set()

    def work(item):
        submitted.wait()
        for _ in range(3) if item == "interrupted" else ():
            _thread.interrupt_main()
            time.sleep(0.03)
        time.sleep(0.1)
        ended.append(item)

    with pytest.raises(KeyboardInterrupt):
        everywhere(work, items(), hurry=lambda: hurried.append(1))
    assert sorted(ended) == ["interrupted", "other"] and hurried == [1]


def test_a_first_start_makes_the_python_that_kafka_needs_and_fails_only_with_its_timer():
    document = user_data(
        expires_at=datetime.now(UTC), host_key="a", host_key_public="b", packages=("python3.11",), python="python3.11"
    )
    make, install, timer = yaml.safe_load(document)["runcmd"]
    assert make == ["python3.11", "-m", "venv", "/opt/wanbench"] and install[0] == HOST_PYTHON
    assert install[-2:] == [f"{name}=={version(name)}" for name in ("kafka-python", "confluent-kafka")]
    assert timer[:2] == ["systemctl", "enable"]


def test_the_role_in_the_docs_allows_what_the_code_calls():
    verbs = dict.fromkeys(("insert", "bulk_insert"), "create")
    verbs |= {"aggregated_list": "list", "get_from_family": "getFromFamily"}
    called = set()
    for path in (Path(wanbench.__file__).parent / "measure" / "labs" / "gcp").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            by_make = getattr(node.func, "id", "") == "make"
            if by_make or getattr(node.func, "attr", "") in ("call", "pages"):
                service, operation = (getattr(each, "value", None) for each in node.args[by_make : by_make + 2])
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


def test_a_host_gets_its_public_address_by_rules_that_undo_the_clouds_translation():
    done = []

    class Rented(ScriptedHost):
        scratch = "/scratch"

        def put(self, source, target):
            done.append((target, source.read_text()))

    lab = ScriptedLab([], lambda host, command: done.append(command) or Reply())
    host = Rented(lab, "a", 1)
    own_public_address(host, "172.31.0.9", "198.51.100.7")
    address, (target, rules), load = done
    assert address == ["ip", "address", "replace", "198.51.100.7/32", "dev", "lo"]
    assert load == ["nft", "-f", target] and target.startswith("/scratch/")
    arriving, leaving = rules.split("chain leaving")
    # The login over which the rules come must not be translated.
    assert arriving.index("tcp dport 22 accept") < arriving.index("ip daddr 172.31.0.9 dnat to 198.51.100.7")
    assert 'ip saddr 198.51.100.7 oifname != "lo" snat to 172.31.0.9' in leaving
    assert rules.count("{") == rules.count("}") == 3
    for strange in ("198.51.100.7; flush ruleset", "", "2001:db8::1"):
        with pytest.raises(AddressValueError):
            own_public_address(host, "172.31.0.9", strange)
    assert len(done) == 3


def test_what_must_go_goes_though_nobody_listens_any_more(monkeypatch):
    class Gone:
        def write(self, text):
            raise BrokenPipeError

    class Host(ScriptedHost):
        def close(self):
            raise RuntimeError("as nobody thought of")

    monkeypatch.setattr("sys.stderr", Gone())
    assert everywhere(close, [Host(None, "a", 1)]) == [None]


def test_a_host_that_starts_is_not_waited_for_once_the_lab_is_being_left():
    class Starting(ScriptedHost):
        def open(self):
            if not leaving.is_set():
                leaving.set()
                raise LabError("no route to it yet")

    leaving, how = threading.Event(), {"sysctls": {}, "has_volume": False}
    with pytest.raises(LabError, match="no route"):
        make_ready(Starting(None, "a", 1), leaving=leaving, **how)
    with pytest.raises(LabError, match="a is not prepared, because the lab is closing"):
        make_ready(Starting(None, "a", 1), leaving=leaving, **how)


LATER = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Shared(Resources):
    """One that several machines use; `there` are runs, each with one host."""

    cloud, title, poll_s, owner, expires = "aws", "AWS", 0.0, "7", LATER

    def __init__(self, *there):
        self.there, self.time = list(there), datetime.now(UTC)

    def account(self):
        if self.owner is None:
            raise LabError("no answer")
        return self.owner

    def now(self):
        return self.time

    def regions(self):
        return ["here"]

    def listed(self, region, run=None):
        tagged = [{tags.RUN: name, tags.EXPIRES: self.expires} for name in self.there]
        return [Resource("host", each[tags.RUN], region, tags=each) for each in tagged]

    def ask_to_delete(self, each):
        self.there.remove(each.id)


def test_all_that_is_asked_for_is_all_that_was_shown(monkeypatch, tmp_path):
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))
    resources = Shared("old")

    def ask(question):
        resources.there.append("of a campaign that began meanwhile")
        return "yes"

    assert sweep(resources, everything=True, ask=ask, settle_s=0.0) == 0
    assert resources.there == ["of a campaign that began meanwhile"]


def test_a_sweep_of_another_account_leaves_what_is_known_of_the_first(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))
    lease = leases.Lease("aws", "7")
    lease.release(all_gone=False)
    resources = Shared()
    for owner, said in (("8", "another account made them"), (None, "it is unknown whether")):
        resources.owner = owner
        assert sweep(resources, yes=True, settle_s=0.0) == 1
        assert f"1 runs that ended on this machine are kept on record, because {said}" in capsys.readouterr().out
    assert leases.lease_state(lease.run) == leases.FREE
    resources.owner, resources.there = "7", [lease.run]
    assert sweep(resources, yes=True, settle_s=0.0) == 0 and resources.there == []
    assert leases.lease_state(lease.run) == leases.UNKNOWN


def test_things_expire_by_the_clock_of_their_cloud(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))
    resources = Shared("of another machine")
    for hours, said in ((None, "AWS does not tell the time"), (-2, "is 120 minutes ahead of that of AWS"), (0, "")):
        resources.time = None if hours is None else datetime.now(UTC) + timedelta(hours=hours)
        assert sweep(resources, yes=True, settle_s=0.0) == 0 and resources.there
        assert said in capsys.readouterr().out
    resources.time += timedelta(hours=2)
    assert sweep(resources, yes=True, settle_s=0.0) == 0 and not resources.there
    assert "is 120 minutes behind that of AWS" in capsys.readouterr().out


@pytest.mark.parametrize("expires", ["", "soon", "2026-11-25"])
def test_what_has_no_readable_expiry_is_said_and_stays(monkeypatch, tmp_path, capsys, expires):
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))
    resources = Shared("of another machine")
    resources.expires = expires
    assert sweep(resources, yes=True, settle_s=0.0) == 1 and resources.there
    printed = capsys.readouterr().out
    assert "unclear   host" in printed and "1 resource without a readable expiry" in printed and "--all" in printed
    assert sweep(resources, yes=True, everything=True, settle_s=0.0) == 0 and not resources.there


def test_a_server_tells_the_time_whatever_it_answers():
    with serve(None) as address:  # which knows no HEAD
        assert abs(clock_at(address) - datetime.now(UTC)) < timedelta(minutes=1)
    assert clock_at(address) is None
