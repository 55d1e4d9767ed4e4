"""Hosts on Azure against a stand-in that knows its packages' models: made, measured on, taken down; faults."""

import base64
import gc
import json
import multiprocessing
import os
import platform
import random
import shutil
import signal
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import yaml

pytest.importorskip("azure.mgmt.network", reason="the extra azure is not installed")

import azure_stub
from aws_driver import HostHere, OpenedHost
from azure.core.exceptions import ClientAuthenticationError
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure_stub import SUBSCRIPTION
from cloud_stub import Current, killed_at_call, serve
from sshd_in_namespaces import unavailable as no_sshd

from wanbench import cli
from wanbench.errors import LabError, ParameterError
from wanbench.folders import root
from wanbench.measure.campaign import measure
from wanbench.measure.experiments import Iperf3, Ping
from wanbench.measure.labs.azure import AzureLab, clients, sweep, teardown
from wanbench.measure.labs.azure import lab as lab_module
from wanbench.measure.labs.rented import leases
from wanbench.measure.labs.rented import resources as tags
from wanbench.measure.labs.rented.client import CloudError
from wanbench.measure.labs.rented.costs import BudgetError
from wanbench.measure.labs.rented.sweep import sweep_clouds
from wanbench.measure.links.launch import search_path
from wanbench.measure.plan import make_plan
from wanbench.publish.parameters import read_parameters

REGIONS = ["azure:westeurope", "azure:eastus"]
OBJECT = "0b1ec700-0000-4000-8000-00000000beef"
PING = Ping(count=2, interval_s=0.01)
SETTLE_S = 0.05


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    """A data folder of its own, and pauses for a stand-in that answers at once."""
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("AZURE_CONFIG_DIR", str(tmp_path / "no-az"))
    monkeypatch.setenv("WANBENCH_OPERATOR_ADDRESS", "192.0.2.7")
    monkeypatch.delenv(clients.VARIABLE, raising=False)
    monkeypatch.setattr(teardown.AzureResources, "poll_s", 0.02)


@pytest.fixture(scope="module")
def address():
    """Of the stand-in; what it knows is `azure_stub.Cloud`, in the fixture `cloud`."""
    with serve(Current) as served:
        yield served


@pytest.fixture
def cloud(address):
    """A new stand-in."""
    Current.cloud = azure_stub.Cloud()
    Current.cloud.address = address
    return Current.cloud


def azure_of(cloud):
    return clients.Azure(
        subscription=SUBSCRIPTION,
        credential=object(),
        endpoint=cloud.address,
        pause_s=0.01,
        poll_s=0.005,
        authentication_policy=SansIOHTTPPolicy(),
    )


def lab_on(cloud, regions=REGIONS, **options):
    given = {"instance_type": "Standard_B2s", "yes": True, "connect": OpenedHost, "settle_s": SETTLE_S}
    return AzureLab(regions, client=azure_of(cloud), **given | options)


def sweep_now(cloud, **options):
    return sweep(**{"client": azure_of(cloud), "yes": True, "settle_s": SETTLE_S} | options)


def of_kind(cloud, kind):
    return [each for path, each in cloud.made.items() if path.split("/")[-2] == kind.lower()]


def test_a_lab_is_tagged_closed_to_others_and_gone_afterwards(cloud):
    zones = {"azure:westeurope": "2"}
    with lab_on(cloud, hosts_per_region=2, zones=zones, volume_gb=20, private_addresses=True) as opened:
        kinds = ("resourcegroups", "virtualMachines", "schedules", "networkSecurityGroups", "virtualNetworkPeerings")
        assert [len(of_kind(cloud, kind)) for kind in kinds] == [2, 4, 4, 2, 2]
        found = teardown.AzureResources(azure_of(cloud)).listed(teardown.SUBSCRIPTION)
        assert len(found) == 2 and {each.tags[tags.CAMPAIGN] for each in found} == {"by-hand"}
        assert not any(tags.is_expired(each.tags, datetime.now(UTC)) for each in found)
        operator, nobody = of_kind(cloud, "networkSecurityGroups")[0]["properties"]["securityRules"]
        assert nobody["properties"]["access"] == "Deny" and nobody["properties"]["priority"] == 4096
        assert operator["properties"]["sourceAddressPrefixes"] == ["192.0.2.7/32"]
        assert operator["properties"]["destinationPortRange"] == "22"
        hosts = [host for name in REGIONS for host in opened.hosts[name]]
        for rule in of_kind(cloud, "securityRules"):
            assert rule["properties"]["sourceAddressPrefixes"] == [f"{host.address}/32" for host in hosts]
        assert {host.address[:3] for host in hosts} == {"10."}
        machine = of_kind(cloud, "virtualMachines")[0]["properties"]
        document = base64.b64decode(machine["osProfile"]["customData"]).decode()
        assert document.startswith("#cloud-config\n") and "/dev/disk/azure/scsi1/lun0" in document
        disks = [machine["storageProfile"]["osDisk"], *machine["storageProfile"]["dataDisks"]]
        assert [disk["deleteOption"] for disk in disks] == ["Delete", "Delete"]
        # Azure stops hosts before they power themselves off.
        expires = datetime.strptime(found[0].tags[tags.EXPIRES], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        stops = of_kind(cloud, "schedules")[0]["properties"]
        assert stops["dailyRecurrence"]["time"] == (expires - timedelta(minutes=2)).strftime("%H%M")
        described = opened.describe()["hosts"]
        assert [each["zone"] for each in described] == ["2", "2", "1", "1"]
        assert SUBSCRIPTION not in json.dumps(described)
        # Another sweep on this machine leaves a lab that is open.
        assert sweep_now(cloud, everything=True) == 0 and len(of_kind(cloud, "virtualMachines")) == 4
    assert cloud.made == {} and not list(leases.lease_folder().iterdir())
    # Nothing that was asked was against the models.
    assert cloud.refused == []


def test_a_killed_driver_leaves_nothing_that_sweep_does_not_find_and_nothing_of_others_is_touched(cloud):
    others = cloud.with_others()

    def drive(killed_at):
        gc.freeze()  # what the parent left to be collected may need threads that a fork does not have
        killed_at_call(clients.Azure, killed_at)
        with lab_on(cloud):
            pass

    # It makes some 30 calls: it finds out, launches, and takes down.
    for killed_at in random.Random(14).sample(range(14, 29), 3):
        driver = multiprocessing.get_context("fork").Process(target=drive, args=(killed_at,))
        driver.start()
        driver.join()
        assert driver.exitcode == -signal.SIGKILL
        assert cloud.made != others and leases.free_leases("azure") and not leases.free_leases("gcp")
        assert sweep_now(cloud) == 0
        assert cloud.made == others and not list(leases.lease_folder().iterdir())
    assert sweep_now(cloud, everything=True) == 0 and cloud.made == others


def test_what_is_left_out_of_reach_is_an_error_and_sweep_asks(cloud, monkeypatch, capsys, tmp_path):
    somebodys = {"name": "production", "location": "eastus", "tags": {"env": "prod"}, "properties": {}}
    cloud.made["resourcegroups/production"] = somebodys
    monkeypatch.setattr(teardown.AzureResources, "timeout_s", 0.1)
    locked = (409, "ScopeLocked", f"The scope '/subscriptions/{SUBSCRIPTION}' cannot be deleted: it is locked.")
    with (
        pytest.raises(LabError, match=r"REMAINS on Azure.*resource group wanbench-\w+-eastus.*ScopeLocked"),
        lab_on(cloud),
    ):
        cloud.faults = [("DELETE", "resourcegroups", locked)] * 100
    cloud.faults = []
    monkeypatch.setattr(teardown.AzureResources, "timeout_s", 60)
    left = len(cloud.made)
    assert sweep_now(cloud, yes=False, ask=lambda question: "no") == 1 and len(cloud.made) == left > 0
    assert "orphaned" in capsys.readouterr().out
    # In another data folder there is no lease: the run may be another machine's.
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path / "elsewhere"))
    assert sweep_now(cloud) == 0 and len(cloud.made) == left
    assert "in use" in capsys.readouterr().out
    cloud.faults = [("GET", "resourcegroups", (403, "AuthorizationFailed", "no"))]
    assert sweep_now(cloud) == 1 and "unknown   the subscription" in capsys.readouterr().out
    assert sweep_now(cloud, everything=True) == 0 and list(cloud.made.values()) == [somebodys]


def test_no_secret_and_no_subscription_in_what_a_run_leaves(cloud, tmp_path, capsys):
    plan = make_plan(regions=REGIONS, experiments=[PING], batch=1)
    run = measure(plan, lab_on(cloud), data_folder=tmp_path, campaign="planted")
    cost = json.loads((run.folder / "lab_cost" / "session-1.json").read_text())
    assert {each["item"] for each in cost["prices"]} >= {"Standard_B2s", "public address", "volume"}
    cloud.quotas["cores"] = 1
    refusals = []
    told = f"The client 'eve@example.org' with object id '{OBJECT}' may not read '/subscriptions/{SUBSCRIPTION}'"
    for faults in ([("GET", "providers", (403, "AuthorizationFailed", told))], []):
        cloud.faults = faults
        with pytest.raises(LabError) as refused:
            lab_on(cloud).agree_to(None, "c")
        refusals.append(str(refused.value))
    assert "AuthorizationFailed" in refusals[0] and "cores" in refusals[1]
    texts = [path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    shown = capsys.readouterr()
    planted = (SUBSCRIPTION, OBJECT, "eve@example.org", "PRIVATE KEY")
    for text in (*texts, *refusals, shown.out, shown.err, repr(lab_on(cloud))):
        assert not [each for each in planted if each in text]
    assert cloud.made == {}


def test_a_budget_refuses_before_anything_is_made(cloud):
    with pytest.raises(BudgetError, match="Nothing was started"):
        plan = make_plan(regions=REGIONS, experiments=[Iperf3()], rate_bps=1e9)
        lab_on(cloud, budget_usd=0.001).agree_to(plan, "b")
    assert not [called for called in cloud.calls if called[0] == "PUT"]


HOST = ("PUT", "virtualMachines")
RULE = ("PUT", "securityRules")


@pytest.mark.parametrize(
    "faults, zone",
    [
        ([(*HOST, (429, "TooManyRequests", "slower"))] * 2, "1"),
        ([(*HOST, (503, "ServiceUnavailable", "?")), ("GET", "operations", (500, "InternalServerError", "?"))], "1"),
        ([(*HOST, "lost")], "1"),
        ([(*HOST, 0.3)], "1"),
        ([(*RULE, (409, "AnotherOperationInProgress", "busy")), (*RULE, "RetryableError")], "1"),
        ([(*HOST, "ZonalAllocationFailed")], "2"),
        ([(*HOST, (409, "SkuNotAvailable", "none"))], "2"),
    ],
)  # fmt: skip
def test_what_passes_is_tried_again_and_makes_nothing_twice(cloud, monkeypatch, faults, zone):
    monkeypatch.setattr(clients, "TIMEOUT_S", 0.2 if (*HOST, 0.3) in faults else 20)
    cloud.faults = list(faults)
    with lab_on(cloud, REGIONS[:1], hosts_per_region=2) as opened:
        assert {each.zone for each in opened.instances[REGIONS[0]]} == {zone}
        for kind in ("virtualMachines", "networkInterfaces", "publicIPAddresses", "securityRules"):
            assert len(of_kind(cloud, kind)) == (1 if kind == "securityRules" else 2)
        assert cloud.faults == []
    assert cloud.made == {}


@pytest.mark.parametrize(
    "faults, said",
    [
        ([(*HOST, "AllocationFailed")] * 2, r"No zone of westeurope has 1 x .*AllocationFailed.*AllocationFailed"),
        ([(*HOST, (409, "OperationNotAllowed", "exceeding approved standardBSFamily Cores quota"))], "Cores quota"),
        ([(*HOST, "InternalExecutionError")], "InternalExecutionError"),
        ([(*HOST, (403, "AuthorizationFailed", "no action virtualMachines/write"))], "AuthorizationFailed: no action"),
        ([(*HOST, (500, "InternalServerError", "?"))] * (clients.RETRIES + 1), "InternalServerError"),
        ("never done", "is not done after 0 s"),
    ],
)  # fmt: skip
def test_what_does_not_pass_is_told_and_nothing_is_left(cloud, monkeypatch, faults, said):
    if faults == "never done":
        monkeypatch.setattr(clients, "OPERATION_S", 0)
        faults = []
    cloud.faults = list(faults)
    with pytest.raises(LabError, match=said) as refused:
        lab_on(cloud, REGIONS[:1]).__enter__()
    assert SUBSCRIPTION not in str(refused.value) and "eve@" not in str(refused.value)
    assert cloud.made == {} and not list(leases.lease_folder().iterdir())


@pytest.mark.parametrize(
    "options, state, said",
    [
        ({"regions": ["azure:westeurope", "azure:moonbase"]}, {}, "Azure does not have: moonbase"),
        ({"instance_type": "Standard_X9"}, {}, r"westeurope does not offer Standard_X9.*eastus does not offer"),
        ({"zones": {REGIONS[0]: "3"}}, {}, "in the zones 1, 2, not in 3"),
        ({"instance_type": "Standard_D2pls_v6", "volume_gb": 9}, {}, "only by NVMe"),
        ({"hosts_per_region": 6}, {}, r"westeurope: 12 standardBSFamily are needed, but 0 of .* 10.*eastus: 12"),
        ({}, {"quotas": azure_stub.COMPUTE_QUOTAS | {"StandardSkuPublicIpAddresses": 0} | {
            "PublicIPAddresses": 9, "NetworkInterfaces": 9}}, "1 StandardSkuPublicIpAddresses are needed"),
        ({}, {"unregistered": ("Microsoft.DevTestLab",)}, "not registered in the subscription: Microsoft.DevTestLab;"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_named_before_anything_is_made(cloud, options, state, said):
    for name, value in state.items():
        setattr(cloud, name, value)
    with pytest.raises(LabError, match=said):
        lab_on(cloud, **{"regions": REGIONS} | options).__enter__()
    assert not [called for called in cloud.calls if called[0] == "PUT"]


def test_a_region_without_zones_and_without_schedules_is_noted(cloud, capsys):
    cloud.not_stopping = ("norwaywest",)
    with lab_on(cloud, ["azure:norwaywest"], instance_type="Standard_D2pls_v6") as opened:
        assert opened.describe()["hosts"][0]["zone"] == "" and "server-arm64" in opened.describe()["hosts"][0]["image"]
        assert of_kind(cloud, "schedules") == []
    assert "In norwaywest Azure cannot stop hosts" in capsys.readouterr().err
    assert cloud.made == {}


@pytest.mark.skipif(bool(reason := no_sshd()), reason=str(reason))
def test_the_keys_that_hosts_are_given_open_a_real_sshd(cloud, tmp_path):
    """An sshd of this machine stands for each host, with the host key of its custom data and its operator's key."""
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)

    def connect(name, region, address, login, sudo):
        folder = tmp_path / region
        folder.mkdir()
        [system] = [
            each["properties"]["osProfile"]
            for each in of_kind(cloud, "virtualMachines")
            if each["location"] == region.removeprefix("azure:")
        ]
        [public_key] = system["linuxConfiguration"]["ssh"]["publicKeys"]
        assert public_key["path"] == f"/home/{login.user}/.ssh/authorized_keys"
        key = folder / "host_key"
        key.touch(0o600)
        document = yaml.safe_load(base64.b64decode(system["customData"]))
        key.write_text(document["ssh_keys"]["ed25519_private"])
        (folder / "authorized").write_text(public_key["keyData"])
        settings = f"HostKey {key}\nAuthorizedKeysFile {folder / 'authorized'}\nStrictModes no\nUsePAM no\n"
        (folder / "sshd").write_text(f"{settings}PidFile none\nPermitRootLogin prohibit-password\n")
        proxy = [shutil.which("sshd", path=search_path()), "-i", "-f", str(folder / "sshd")]
        return HostHere(name, region, "127.0.0.1", replace(login, user="root", proxy_command=proxy))

    plan = make_plan(regions=REGIONS, experiments=[PING], batch=1)
    run = measure(plan, lab_on(cloud, connect=connect), data_folder=tmp_path, campaign="by-ssh")
    assert (run.tests().outcome == "done").all() and run.lab["hosts"][0]["kernel"] == platform.release()
    assert cloud.made == {}


class _None:
    """What azure-identity is where nobody has logged in."""

    @staticmethod
    def get_token(*scopes, **options):
        raise ClientAuthenticationError(f"no token of the tenant {OBJECT}")


def test_a_missing_extra_subscription_and_credentials_are_told(monkeypatch):
    with monkeypatch.context() as without:
        without.setattr(clients, "installed", lambda *modules: False)
        with pytest.raises(LabError, match=r"install the extra azure"):
            AzureLab(REGIONS, instance_type="Standard_B2s")
    with pytest.raises(LabError, match="set AZURE_SUBSCRIPTION_ID"):
        clients.Azure(credential=object()).call("resource", "providers", "get", "Microsoft.Compute")
    with pytest.raises(CloudError, match="no working credentials of Azure; `az login` makes some"):
        azure = clients.Azure(subscription=SUBSCRIPTION, credential=_None(), endpoint="https://127.0.0.1:1")
        azure.call("resource", "providers", "get", "Microsoft.Compute")
    with pytest.raises(ParameterError, match="allowed: regions of azure"):
        AzureLab(["aws:eu-west-1"], instance_type="Standard_B2s", operator_address="192.0.2.7")


def test_sweep_covers_azure(monkeypatch, capsys):
    told = []
    for other in ("aws", "gcp"):
        monkeypatch.setattr(f"wanbench.measure.labs.{other}.unusable", lambda: "it is not looked for")
    assert sweep_clouds() == 1
    assert "azure: not checked, because AZURE_SUBSCRIPTION_ID is not set" in capsys.readouterr().out
    monkeypatch.setenv(clients.VARIABLE, SUBSCRIPTION)
    assert teardown.unusable() == "there are no credentials of Azure"
    monkeypatch.setenv("AZURE_CLIENT_ID", "an-id")
    monkeypatch.setattr("wanbench.measure.labs.azure.sweep", lambda **options: told.append(options) or 0)
    assert cli.main(["sweep", "azure", "--yes"]) == 0 and sweep_clouds() == 0
    assert told == [{"yes": True, "everything": False}, {}]


def test_the_preset_makes_a_lab_within_its_budget(cloud, monkeypatch):
    given = read_parameters(root() / "papermill-params" / "02-intercloud-throughput" / "azure.yml")
    plan = make_plan(regions=given["regions"], experiments=[Ping(), Iperf3()], rate_bps=given["rate_bps"])
    codes = [name.removeprefix("azure:") for name in plan.regions]
    monkeypatch.setattr(azure_stub, "REGIONS", {code: code for code in codes})
    monkeypatch.setattr(azure_stub, "ZONES", {code: ["1"] for code in codes})
    opened = lab_on(cloud, plan.regions, **given["lab_options"])
    opened.agree_to(plan, given["campaign"])
    estimate = opened._estimate
    assert estimate.unknown == [] and 0 < estimate.high_usd < 5 == opened.budget_usd
    assert lab_module.charged_gb(30) * 8 / 730 * estimate.hours == pytest.approx(estimate.table.amount[2])
    print(estimate)
