"""One lab over two clouds, against their stand-ins: hosts of both admit each other, one consent, both always gone."""

import json
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

# Not compute_v1, which is loaded lazily by now: to look for it would load all of it, in every process.
if not find_spec("google") or not find_spec("google.cloud.compute"):
    pytest.skip("the extra gcp is not installed", allow_module_level=True)
pytest.importorskip("azure.mgmt.network", reason="the extra azure is not installed")

import azure_stub
import gcp_stub
from aws_driver import OpenedHost
from azure.core.pipeline.policies import SansIOHTTPPolicy
from cloud_stub import serve
from google.auth.credentials import AnonymousCredentials

from wanbench.errors import LabError, ParameterError
from wanbench.measure.campaign import measure
from wanbench.measure.campaign.start import _lab
from wanbench.measure.experiments import Iperf3, Ping
from wanbench.measure.labs import azure, gcp
from wanbench.measure.labs.azure import AzureLab
from wanbench.measure.labs.gcp import GcpLab
from wanbench.measure.labs.rented import leases, on_clouds, several_clouds
from wanbench.measure.labs.rented.costs import BudgetError, spent_before_usd
from wanbench.measure.labs.rented.tenancy import Tenancy
from wanbench.measure.plan import make_plan
from wanbench.read.ingest.lab import lab_cost
from wanbench.runs import find

REGIONS = ["gcp:europe-west1", "azure:eastus"]
OWN = {"gcp": {"instance_type": "e2-small"}, "azure": {"instance_type": "Standard_B2s"}}
HURRIED = {"pause_s": 0.01, "poll_s": 0.005}


class Moment:
    """The stand-in of the moment, at one address for all tests."""

    cloud = None

    def answer(self, *asked):
        return self.cloud.answer(*asked)


@pytest.fixture(scope="module")
def kinds():
    """By cloud: what its stand-in is put into, and the class of labs on it."""
    moments = {"gcp": Moment(), "azure": Moment()}
    with serve(moments["gcp"]) as of_gcp, serve(moments["azure"]) as of_azure:
        to_gcp = gcp.clients.Gcp(
            project=gcp_stub.PROJECT, credentials=AnonymousCredentials(), endpoint=of_gcp, **HURRIED
        )
        to_azure = azure.clients.Azure(
            subscription=azure_stub.SUBSCRIPTION,
            credential=object(),
            endpoint=of_azure,
            authentication_policy=SansIOHTTPPolicy(),
            **HURRIED,
        )
        yield moments, {"azure": partial(AzureLab, client=to_azure), "gcp": partial(GcpLab, client=to_gcp)}


@pytest.fixture
def clouds(kinds, monkeypatch, tmp_path):
    """New stand-ins of both clouds, by name, and `lab(**options)` on them."""
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("WANBENCH_OPERATOR_ADDRESS", "192.0.2.7")
    for resources in (gcp.teardown.GcpResources, azure.teardown.AzureResources):
        monkeypatch.setattr(resources, "poll_s", 0.02)
    moments, classes = kinds
    made = {"gcp": gcp_stub.Cloud(), "azure": azure_stub.Cloud()}
    made["azure"].addresses = 100  # not those of the other cloud
    for name, moment in moments.items():
        moment.cloud = made[name]
    hurried = {"connect": OpenedHost, "settle_s": 0.05, "yes": True}
    made["azure lab"] = partial(classes["azure"], **hurried, **OWN["azure"])
    made["lab"] = partial(several_clouds, classes, REGIONS, **hurried, **OWN)
    return made


def gone(clouds):
    return not clouds["gcp"].made and not clouds["azure"].made and not list(leases.lease_folder().iterdir())


def test_hosts_of_both_admit_each_other_under_one_consent_and_both_are_gone(clouds, tmp_path, capsys):
    seen = {}

    class Looking(Ping):
        def run(self, source, target, folder, stem):
            rules = [each for (kind, *_), each in clouds["gcp"].made.items() if kind == "firewalls"]
            seen["gcp"] = {address for rule in rules for address in rule.source_ranges}
            paths = [path for path in clouds["azure"].made if "securityrules" in path]
            [rule] = [clouds["azure"].made[path] for path in paths]
            seen["azure"] = set(rule["properties"]["sourceAddressPrefixes"])
            seen["hosts"] = {f"{host.address}/32" for hosts in lab.hosts.values() for host in hosts}
            return super().run(source, target, folder, stem)

    plan = make_plan(regions=REGIONS, experiments=[Looking(count=2, interval_s=0.01)], batch=1)
    two = {"instance_type": "e2-small", "hosts_per_region": 2}
    lab = clouds["lab"](budget_usd=5, gcp=two)
    run = measure(plan, lab, data_folder=tmp_path, campaign="both")
    assert seen["gcp"] == seen["hosts"] | {"192.0.2.7/32"} and seen["azure"] == seen["hosts"]
    assert len(seen["hosts"]) == 3 and gone(clouds)
    assert capsys.readouterr().err.count("This lab will cost") == 1
    assert run.lab["kind"] == "azure+gcp"
    types = {host["region"]: host["instance_type"] for host in run.lab["hosts"]}
    assert types == {"gcp:europe-west1": "e2-small", "azure:eastus": "Standard_B2s"}
    cost = json.loads((run.folder / "lab_cost" / "session-1.json").read_text())
    # What hosts sent is taken to have left their cloud: 2 GB of each, and there are two on Google Cloud.
    spent = {(row["cloud"], row["item"]): row["amount"] for row in cost["spent"]["items"]}
    assert spent["gcp", "egress to internet"] == 2 * spent["azure", "egress to internet"] == pytest.approx(4.0)
    assert {price["cloud"] for price in cost["prices"]} == {"gcp", "azure"}


def test_the_problems_of_all_clouds_are_named_together():
    def part(problem):
        def estimate(plan, campaign):
            raise LabError(problem)

        return SimpleNamespace(title=problem, path_names=(), sysctls={}, estimate=estimate)

    lab = Tenancy([part("No project is known."), part("No subscription is known.")], "gcp+azure", {}, None, True)
    with pytest.raises(LabError, match=r"No project is known\. No subscription is known\."):
        lab.estimate(None, "test")


def test_one_budget_over_both_refuses_before_anything_is_made(clouds):
    plan = make_plan(regions=REGIONS, experiments=[Iperf3()], rate_bps=1e9)
    lab = clouds["lab"]()
    parts = [part.estimate(plan, "b")[0].high_usd for part in lab.parts]
    whole, _ = lab.estimate(plan, "b")
    assert whole.high_usd == pytest.approx(sum(parts)) and whole.hosts == 2
    with pytest.raises(BudgetError, match="Nothing was started"):
        clouds["lab"](budget_usd=(max(parts) + sum(parts)) / 2).agree_to(plan, "b")
    assert gone(clouds) if leases.lease_folder().exists() else not clouds["gcp"].made


@pytest.mark.parametrize(
    "cloud, fault, said",
    [
        ("azure", ("PUT", "virtualMachines", (403, "Denied", "not by this role")), "not by this role"),
        ("gcp", ("instances", "bulk_insert", "QUOTA_EXCEEDED"), "QUOTA_EXCEEDED"),
    ],
)
def test_one_cloud_that_fails_takes_the_other_down_too_and_the_run_says_what_that_cost(
    clouds, cloud, fault, said, tmp_path
):
    clouds[cloud].faults = [fault]
    plan = make_plan(regions=REGIONS, experiments=[Ping(count=2, interval_s=0.01)], batch=1)
    options = {"data_folder": tmp_path, "campaign": "both"}
    with pytest.raises(LabError, match=said):
        measure(plan, clouds["lab"](), **options)
    asked = clouds["gcp"].calls["networks", "insert"], clouds["azure"].calls["PUT", "virtualNetworks"]
    assert all(asked) and gone(clouds)
    [failed] = find(tmp_path)
    cost = lab_cost(failed)
    assert cost.spent_usd[1] > 0 and cost.expected_usd == (0, 0) and spent_before_usd(failed.folder) > 0
    assert said in failed.events()[-1]["reason"]
    run = measure(plan, clouds["lab"](), **options)
    assert run.folder == failed.folder and len(run.lab["hosts"]) == 2 and run.manifest["sessions"] == 2
    assert lab_cost(run).spent_usd[1] > cost.spent_usd[1] and lab_cost(run).expected_usd[1] > 0


def test_a_killed_session_counts_as_if_its_hosts_had_run_until_they_ended_themselves(clouds, tmp_path, monkeypatch):
    plan = make_plan(regions=REGIONS, experiments=[Ping(count=2, interval_s=0.01)], batch=1)
    options = {"data_folder": tmp_path, "campaign": "killed"}
    clouds["gcp"].faults = [("instances", "bulk_insert", "QUOTA_EXCEEDED")]
    with monkeypatch.context() as killed:
        killed.setattr(Tenancy, "keep_costs", lambda *_: [])  # a killed driver does not reach it
        with pytest.raises(LabError, match="QUOTA_EXCEEDED"):
            measure(plan, clouds["lab"](), **options)
    [folder] = (tmp_path / "raw" / "killed").iterdir()
    at_most = clouds["lab"]()
    at_most.agree_to(plan, "killed")
    assert spent_before_usd(folder) == pytest.approx(at_most.at_most().high_usd)
    with pytest.raises(BudgetError, match="already spent on this run"):
        measure(plan, clouds["lab"](budget_usd=spent_before_usd(folder)), **options)
    run = measure(plan, clouds["lab"](), **options)
    cost = lab_cost(run)
    assert run.folder == folder and cost.killed == 1 and "shut themselves down" in str(cost)
    assert cost.spent_usd[0] < spent_before_usd(folder) < cost.spent_usd[1] + 1e-9
    assert [path.name for path in sorted((folder / "lab_cost").iterdir())] == ["if-killed-1.json", "session-1.json"]
    run.verify()


def test_what_remains_on_either_is_named_with_its_cloud(clouds, monkeypatch):
    monkeypatch.setattr(gcp.teardown.GcpResources, "timeout_s", 0.1)
    zone = "asia-southeast1-a"
    with (
        pytest.raises(LabError, match=r"REMAINS on Azure and Google Cloud.*Google Cloud: unknown in the project"),
        clouds["lab"](),
    ):
        clouds["gcp"].unreachable = zone
    assert not clouds["azure"].made and leases.free_leases() == leases.free_leases("gcp") != []


def test_hosts_in_subnets_that_exist_take_the_path_that_a_trial_names(clouds):
    regions = ["azure:westeurope", "azure:eastus"]
    subnets = dict(zip(regions, ("ours/east/hosts", "ours/west/hosts"), strict=True))
    made = clouds["azure"].made
    networks = [f"resourcegroups/ours/providers/microsoft.network/virtualnetworks/{name}" for name in ("east", "west")]
    with pytest.raises(LabError, match=r"Nothing was launched: .*ours/east/hosts cannot be used: .*NotFound"):
        clouds["azure lab"](regions, subnets=subnets).__enter__()
    inside = {"properties": {"subnets": [{"name": "hosts"}]}}
    theirs = {path: {"location": at[6:], **inside} for path, at in zip(networks, regions, strict=True)}
    made |= theirs
    with pytest.raises(LabError, match="its network is in westeurope, with the subnets hosts"):
        clouds["azure lab"](regions[1:], subnets={regions[1]: subnets[regions[0]]}).__enter__()
    assert made == theirs
    with clouds["azure lab"](regions, subnets=subnets) as lab:
        assert [path for path in made if "virtualnetworks" in path] == networks
        interfaces = [each for path, each in made.items() if "networkinterfaces/" in path]
        inside = [each["properties"]["ipConfigurations"][0]["properties"]["subnet"]["id"] for each in interfaces]
        assert {each.partition("resourceGroups/")[2] for each in inside} == {
            f"ours/providers/Microsoft.Network/virtualNetworks/{name}/subnets/hosts" for name in ("east", "west")
        }
        assert all("networkSecurityGroup" in each["properties"] for each in interfaces)
        private = {instance.private_address for each in lab.instances.values() for instance in each}
        [rule, _] = [each for path, each in made.items() if "securityrules" in path]
        admitted = {f"{host.address}/32" for hosts in lab.hosts.values() for host in hosts}
        admitted |= {f"{each}/32" for each in private}
        assert set(rule["properties"]["sourceAddressPrefixes"]) == admitted
        one, other = (lab.host(region) for region in regions)
        there = lab.instances[regions[1]][0].private_address
        for path in lab.path_names:
            one.files.clear()
            one.paths.use(path)
            sent_on = f"ip daddr {other.address} dnat to {there}"
            assert (sent_on in one.files["/scratch/path.nft"]) == (path == "private")
            assert f"ip daddr {one.address}" not in one.files["/scratch/path.nft"]
    assert clouds["azure"].made == theirs


def test_hosts_of_several_types_are_one_lab(clouds):
    types = {"Standard_B2s": 1, "Standard_D2pls_v6": 2}
    options = {"client": clouds["azure lab"].keywords["client"], "connect": OpenedHost, "settle_s": 0.05}
    with on_clouds({"azure": AzureLab}, ["azure:eastus"], instance_type=types, yes=True, **options) as lab:
        hosts = lab.hosts["azure:eastus"]
        assert [host.name for host in hosts] == [f"azure:eastus/{number}" for number in range(3)]
        found = [(host["name"], host["instance_type"]) for host in lab.describe()["hosts"]]
        assert [kind for _, kind in found] == ["Standard_B2s", *["Standard_D2pls_v6"] * 2]
        rules = [each for path, each in clouds["azure"].made.items() if "securityrules" in path]
        admitted = {f"{host.address}/32" for host in hosts}
        assert [set(rule["properties"]["sourceAddressPrefixes"]) for rule in rules] == [admitted] * 2
        sent = {("azure:eastus", "azure:westeurope"): 1e9}
        assert lab.cost_of(sent, 0).table.query("item == 'egress between regions'").amount.sum() == 1
    assert gone(clouds)


def test_types_that_share_a_quota_are_counted_together_before_anything_is_made(clouds):
    # Each type alone would fit.
    gcp_lab, azure_lab = (clouds["lab"].args[0][name] for name in ("gcp", "azure"))
    clouds["gcp"].quotas |= {"CPUS": 4, "N2_CPUS": 2}
    clouds["azure"].quotas |= {"cores": 20, "standardBSFamily": 5}
    of_gcp = partial(on_clouds, {"gcp": gcp_lab}, REGIONS[:1], yes=True)
    of_gcp(instance_type={"e2-small": 2, "n2-standard-2": 1}).estimate(None, "a")
    with pytest.raises(LabError, match="europe-west1: 6 CPUS are needed, but 0 of the quota of 4"):
        of_gcp(instance_type={"e2-small": 2, "e2-medium": 1}).estimate(None, "a")
    clouds["gcp"].project_quotas["NETWORKS"] = 1
    with pytest.raises(LabError, match="the project: 2 NETWORKS are needed"):
        of_gcp(instance_type={"e2-small": 1, "n2-standard-2": 1}).estimate(None, "a")
    with pytest.raises(LabError, match="eastus: 6 standardBSFamily are needed, but 0 of the quota of 5"):
        types = {"Standard_B2s": 2, "Standard_D2pls_v6": 1}
        on_clouds({"azure": azure_lab}, REGIONS[1:], instance_type=types, yes=True).estimate(None, "a")
    assert not clouds["gcp"].made and not clouds["azure"].made


@pytest.mark.parametrize(
    "regions, options, said",
    [
        (["aws:eu-west-1"], {}, "regions of these clouds, at least one of each"),
        (["aws:eu-west-1", "gcp:us-west1"], {"gcp": None}, r"lab_options\['gcp'\] of the lab aws\+gcp"),
        (["aws:eu-west-1", "gcp:us-west1"], {"instance_typ": "a"}, "unexpected keyword argument 'instance_typ'"),
        (["aws:eu-west-1", "gcp:us-west1"], {"gcp": {"yes": True, **OWN["gcp"]}}, "once, for all clouds"),
        (["aws:eu-west-1", "gcp:us-west1"], {"private_addresses": True}, "no link joins their networks"),
        (
            ["aws:eu-west-1", "gcp:us-west1"],
            {"gcp": {"subnets": {"gcp:us-west1": "own"}, **OWN["gcp"]}},
            "subnets of the lab on Google Cloud is .*; allowed: none on this cloud",
        ),
    ],
)  # fmt: skip
def test_options_that_cannot_be_are_refused(monkeypatch, regions, options, said):
    monkeypatch.setenv("WANBENCH_OPERATOR_ADDRESS", "192.0.2.7")
    given = {"aws": {"instance_type": "t3.small"}, "gcp": OWN["gcp"]} | options
    with pytest.raises(ParameterError, match=said):
        _lab("aws+gcp", regions, {}, **given)
