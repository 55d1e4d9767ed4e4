"""Hosts on Google Cloud against a stand-in that knows Google's own types: made, measured on, taken down; faults."""

import gc
import json
import multiprocessing
import os
import platform
import random
import shutil
import signal
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec

import pytest
import yaml

if not find_spec("google") or not find_spec("google.cloud.compute"):
    pytest.skip("the extra gcp is not installed", allow_module_level=True)

import gcp_stub
from aws_driver import HostHere, OpenedHost
from cloud_stub import Current, killed_at_call, serve
from gcp_stub import PROJECT
from google.auth.credentials import AnonymousCredentials
from sshd_in_namespaces import unavailable as no_sshd

from wanbench.errors import LabError, ParameterError
from wanbench.folders import root
from wanbench.measure.campaign import measure
from wanbench.measure.experiments import Iperf3, Ping
from wanbench.measure.labs.gcp import GcpLab, clients, sweep, teardown
from wanbench.measure.labs.gcp.lab import AHEAD_S
from wanbench.measure.labs.rented import leases
from wanbench.measure.labs.rented import resources as tags
from wanbench.measure.labs.rented.costs import BudgetError
from wanbench.measure.links.launch import search_path
from wanbench.measure.plan import make_plan
from wanbench.publish.parameters import read_parameters

REGIONS = ["gcp:europe-west1", "gcp:us-west1"]
PING = Ping(count=2, interval_s=0.01)
SETTLE_S = 0.05


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    """A data folder of its own, and pauses for a stand-in that answers at once."""
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "no-gcloud"))
    monkeypatch.setenv("WANBENCH_OPERATOR_ADDRESS", "192.0.2.7")
    for name in teardown.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(teardown.GcpResources, "poll_s", 0.02)


@pytest.fixture(scope="module")
def address():
    """Of the stand-in; what it knows is `gcp_stub.Cloud`, in the fixture `cloud`."""
    with serve(Current) as served:
        yield served


@pytest.fixture
def cloud(address):
    """A new stand-in."""
    Current.cloud = gcp_stub.Cloud()
    Current.cloud.address = address
    return Current.cloud


@cache
def gcp_at(address):
    return clients.Gcp(
        project=PROJECT, credentials=AnonymousCredentials(), endpoint=address, pause_s=0.01, poll_s=0.005
    )


def gcp_of(cloud):
    return gcp_at(cloud.address)


def lab_on(cloud, regions=REGIONS, **options):
    given = {"instance_type": "e2-small", "yes": True, "connect": OpenedHost, "settle_s": SETTLE_S}
    return GcpLab(regions, client=gcp_of(cloud), **given | options)


def sweep_now(cloud, **options):
    return sweep(**{"client": gcp_of(cloud), "yes": True, "settle_s": SETTLE_S} | options)


def kinds(cloud):
    return Counter(kind for kind, *_ in cloud.made)


def test_a_lab_is_tagged_closed_to_others_and_gone_afterwards(cloud):
    with lab_on(cloud, hosts_per_region=2, zones={"gcp:europe-west1": "europe-west1-c"}, volume_gb=20) as opened:
        made = kinds(cloud)
        assert made == {"instances": 4, "disks": 8, "subnetworks": 2, "firewalls": 2, "networks": 1}
        found = teardown.GcpResources(gcp_of(cloud)).listed(teardown.PROJECT)
        assert len(found) == len(cloud.made) == 17 and {each.tags[tags.CAMPAIGN] for each in found} == {"by-hand"}
        assert not any(tags.is_expired(each.tags, datetime.now(UTC)) for each in found)
        rules = {name.rpartition("-")[2]: each for (kind, _, name), each in cloud.made.items() if kind == "firewalls"}
        assert set(rules["operator"].source_ranges) == {"192.0.2.7/32"}
        assert [(each.I_p_protocol, list(each.ports)) for each in rules["operator"].allowed] == [("tcp", ["22"])]
        hosts = [host for name in REGIONS for host in opened.hosts[name]]
        assert set(rules["hosts"].source_ranges) == {f"{host.address}/32" for host in hosts}
        instance = next(each for (kind, *_), each in cloud.made.items() if kind == "instances")
        assert instance.scheduling.instance_termination_action == "DELETE"
        runs_s = instance.scheduling.max_run_duration.seconds
        assert 0 < runs_s <= opened.ttl_s - AHEAD_S, "Google's limit comes before the lab's, whenever it is set"
        told = {each.key: each.value for each in instance.metadata.items}
        assert told["ssh-keys"].startswith("ubuntu:ssh-ed25519 ") and told["enable-oslogin"] == "FALSE"
        assert told["user-data"].startswith("#cloud-config\n") and "google-wanbench" in told["user-data"]
        described = opened.describe()["hosts"]
        assert {each["zone"] for each in described} == {"europe-west1-c", "us-west1-a"}
        assert PROJECT not in json.dumps(described)
        # Another sweep on this machine leaves a lab that is open.
        assert sweep_now(cloud, everything=True) == 0 and len(cloud.made) == 17
    assert cloud.made == {} and not list(leases.lease_folder().iterdir())
    # Nothing that was asked was against Google's description of its API.
    assert all("already being used" in reason for reason in cloud.refused)


def test_a_killed_driver_leaves_nothing_that_sweep_does_not_find_and_nothing_of_others_is_touched(cloud):
    others = cloud.with_others()

    def drive(killed_at):
        gc.freeze()  # what the parent left to be collected may need threads that a fork does not have
        killed_at_call(clients.Gcp, killed_at)
        with lab_on(cloud):
            pass

    # It makes some 50 calls: it finds out, launches, waits, and takes down.
    for killed_at in random.Random(14).sample(range(6, 32), 3):
        driver = multiprocessing.get_context("fork").Process(target=drive, args=(killed_at,))
        driver.start()
        driver.join()
        assert driver.exitcode == -signal.SIGKILL
        assert cloud.made != others and leases.free_leases("gcp") and not leases.free_leases("aws")
        assert sweep_now(cloud) == 0
        assert cloud.made == others and not list(leases.lease_folder().iterdir())
    assert sweep_now(cloud, everything=True) == 0 and cloud.made == others


def test_what_is_left_out_of_reach_is_an_error_and_sweep_asks(cloud, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(teardown.GcpResources, "timeout_s", 0.1)
    with pytest.raises(LabError, match=r"REMAINS on Google Cloud.*unknown in the project.*UNREACHABLE"), lab_on(cloud):
        cloud.unreachable = "asia-southeast1-a"
    cloud.unreachable = None
    monkeypatch.setattr(teardown.GcpResources, "timeout_s", 60)
    left = len(cloud.made)
    assert sweep_now(cloud, yes=False, ask=lambda question: "no") == 1 and len(cloud.made) == left > 0
    assert "orphaned" in capsys.readouterr().out
    # In another data folder there is no lease: the run may be another machine's.
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path / "elsewhere"))
    assert sweep_now(cloud) == 0 and len(cloud.made) == left
    assert "in use" in capsys.readouterr().out
    assert sweep_now(cloud, everything=True) == 0 and cloud.made == {}


def test_no_secret_and_no_project_in_what_a_run_leaves(cloud, tmp_path, capsys):
    plan = make_plan(regions=REGIONS, experiments=[PING], batch=1)
    run = measure(plan, lab_on(cloud), data_folder=tmp_path, campaign="planted")
    cost = json.loads((run.folder / "lab_cost" / "session-1.json").read_text())
    assert {each["item"] for each in cost["prices"]} >= {"e2-small", "public address", "volume"}
    cloud.project_quotas["NETWORKS"] = 0
    refusals = []
    for fault in (
        (403, f"Required 'compute.regions.list' permission for 'projects/{PROJECT}' (eve@example.org)"),
        None,
    ):
        cloud.faults = [("regions", "list", fault)] if fault else []
        with pytest.raises(LabError) as refused:
            lab_on(cloud).agree_to(None, "c")
        refusals.append(str(refused.value))
    assert "compute.regions.list" in refusals[0] and "NETWORKS" in refusals[1]
    texts = [path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    shown = capsys.readouterr()
    for text in (*texts, *refusals, shown.out, shown.err, repr(lab_on(cloud))):
        assert not [planted for planted in (PROJECT, "eve@example.org", "PRIVATE KEY") if planted in text]
    assert cloud.made == {}


def test_a_budget_refuses_before_anything_is_made(cloud):
    with pytest.raises(BudgetError, match="Nothing was started"):
        plan = make_plan(regions=REGIONS, experiments=[Iperf3()], rate_bps=1e9)
        lab_on(cloud, budget_usd=0.001).agree_to(plan, "b")
    assert cloud.made == {} and not [called for called in cloud.calls if "insert" in called[1]]


@pytest.mark.parametrize(
    "faults, zone",
    [
        ([(429, "Rate Limit Exceeded")] * 2, "b"),
        ([(503, "Backend error")], "b"),
        (["lost"], "b"),
        ([0.3], "b"),
        (["ZONE_RESOURCE_POOL_EXHAUSTED"], "c"),
    ],
)
def test_what_passes_is_tried_again_and_makes_nothing_twice(cloud, monkeypatch, faults, zone):
    monkeypatch.setattr(clients, "TIMEOUT_S", 0.2 if 0.3 in faults else 20)
    cloud.faults = [("instances", "bulk_insert", fault) for fault in faults]
    with lab_on(cloud, REGIONS[:1], hosts_per_region=2) as opened:
        assert {each.zone for each in opened.instances[REGIONS[0]]} == {f"europe-west1-{zone}"}
        assert kinds(cloud)["instances"] == 2 and cloud.faults == []
        assert cloud.calls["instances", "bulk_insert"] == len(faults) + 1
    assert cloud.made == {}


@pytest.mark.parametrize(
    "faults, said",
    [
        (["ZONE_RESOURCE_POOL_EXHAUSTED"] * 2, r"No zone of europe-west1 has 1 x e2-small.*west1-b.*west1-c"),
        (["QUOTA_EXCEEDED"], r"bulkInsert in europe-west1-b: QUOTA_EXCEEDED"),
        ([(403, "Required 'compute.instances.create' permission")], r"403: .*compute\.instances\.create"),
        ([(500, "Internal error")] * clients.MAX_ATTEMPTS, "500: .*Internal error"),
    ],
)  # fmt: skip
def test_what_does_not_pass_is_told_and_nothing_is_left(cloud, faults, said):
    cloud.faults = [("instances", "bulk_insert", fault) for fault in faults]
    with pytest.raises(LabError, match=said) as refused:
        lab_on(cloud, REGIONS[:1]).__enter__()
    assert PROJECT not in str(refused.value)
    assert cloud.made == {} and not list(leases.lease_folder().iterdir())


@pytest.mark.parametrize(
    "options, quotas, said",
    [
        ({"regions": ["gcp:us-west1", "gcp:europe-west9"]}, {}, "does not have, or that are down: europe-west9"),
        ({"instance_type": "n9-vast"}, {}, r"europe-west1 does not offer n9-vast.*us-west1 does not offer"),
        ({"zones": {REGIONS[0]: "europe-west1-a"}}, {}, "in europe-west1-b, europe-west1-c, not in europe-west1-a"),
        ({"hosts_per_region": 3}, {"CPUS": 5}, r"europe-west1: 6 CPUS are needed, but 0 of .* 5.*us-west1: 6"),
        ({"instance_type": "n2-standard-2"}, {"CPUS": 0, "N2_CPUS": 1}, "2 N2_CPUS are needed, but 0 of .* 1"),
        ({"volume_gb": 600}, {}, "610 SSD_TOTAL_GB are needed"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_named_before_anything_is_made(cloud, options, quotas, said):
    cloud.quotas |= quotas
    with pytest.raises(LabError, match=said):
        lab_on(cloud, **{"regions": REGIONS} | options).__enter__()
    assert not [called for called in cloud.calls if "insert" in called[1]]


@pytest.mark.skipif(bool(reason := no_sshd()), reason=str(reason))
def test_the_keys_that_hosts_are_given_open_a_real_sshd(cloud, tmp_path):
    """An sshd of this machine stands for each host, with the host key of its user data and the key of its metadata."""
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)

    def connect(name, region, address, login, sudo):
        folder = tmp_path / region
        folder.mkdir()
        [instance] = [
            each
            for (kind, zone, _), each in cloud.made.items()
            if kind == "instances" and zone.startswith(region.removeprefix("gcp:"))
        ]
        told = {each.key: each.value for each in instance.metadata.items}
        key = folder / "host_key"
        key.touch(0o600)
        key.write_text(yaml.safe_load(told["user-data"])["ssh_keys"]["ed25519_private"])
        user, _, public_key = told["ssh-keys"].partition(":")
        (folder / "authorized").write_text(public_key)
        settings = f"HostKey {key}\nAuthorizedKeysFile {folder / 'authorized'}\nStrictModes no\nUsePAM no\n"
        (folder / "sshd").write_text(f"{settings}PidFile none\nPermitRootLogin prohibit-password\n")
        proxy = [shutil.which("sshd", path=search_path()), "-i", "-f", str(folder / "sshd")]
        assert user == login.user == "ubuntu"
        return HostHere(name, region, "127.0.0.1", replace(login, user="root", proxy_command=proxy))

    plan = make_plan(regions=REGIONS, experiments=[PING], batch=1)
    run = measure(plan, lab_on(cloud, connect=connect), data_folder=tmp_path, campaign="by-ssh")
    assert (run.tests().outcome == "done").all() and run.lab["hosts"][0]["kernel"] == platform.release()
    assert cloud.made == {}


@pytest.mark.parametrize(
    "path, body, said",
    [
        ("global/networks", {"nam": "a"}, 'no field named "nam"'),
        ("global/networks", {"name": "a", "autoCreateSubnetworks": "no"}, "true or false"),
        ("global/firewalls", {"name": "a", "direction": "SIDEWAYS"}, "'direction': 'SIDEWAYS'"),
        (
            "zones/us-west1-a/instances/bulkInsert",
            {"instanceProperties": {"scheduling": {"provisioningModel": "CHEAP"}}},
            "'instanceProperties.scheduling.provisioningModel': 'CHEAP'",
        ),
        ("global/networks?nam=a", {"name": "a"}, 'Unknown name "nam"'),
        ("global/networks", {"name": "A"}, "'resource.name': 'A'"),
    ],
)
def test_the_stand_in_refuses_what_google_does_not_describe(cloud, path, body, said):
    link = f"{cloud.address}/compute/v1/projects/{PROJECT}/{path}"
    request = urllib.request.Request(link, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    assert refused.value.code == 400 and said in json.load(refused.value)["error"]["message"]


def test_a_missing_extra_and_a_missing_project_are_told(monkeypatch):
    with monkeypatch.context() as without:
        without.setattr(clients, "installed", lambda *modules: False)
        with pytest.raises(LabError, match=r"install the extra gcp"):
            GcpLab(REGIONS, instance_type="e2-small")
    with pytest.raises(LabError, match="set GOOGLE_CLOUD_PROJECT"):
        clients.Gcp(credentials=AnonymousCredentials()).call("projects", "get")
    with pytest.raises(ParameterError, match="allowed: regions of gcp"):
        GcpLab(["aws:eu-west-1"], instance_type="e2-small", operator_address="192.0.2.7")


def test_the_preset_makes_a_lab_within_its_budget(cloud):
    given = read_parameters(root() / "papermill-params" / "02-intercloud-throughput" / "gcp.yml")
    plan = make_plan(regions=given["regions"], experiments=[Ping(), Iperf3()], rate_bps=given["rate_bps"])
    opened = lab_on(cloud, plan.regions, **given["lab_options"])
    costs = opened.costs(
        regions=plan.regions, instance_type="e2-small", hosts_per_region=1, volume_gb=None, overrides={}
    )
    estimate = costs.of(plan.sent_bytes(), plan.expected_s(), set_up_s=300)
    assert estimate.unknown == [] and 0 < estimate.high_usd < 5 == opened.budget_usd
