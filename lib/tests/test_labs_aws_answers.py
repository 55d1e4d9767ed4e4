"""
What moto cannot answer (quotas, prices, capacity, client tokens), by botocore's stubber, which refuses requests and
answers that AWS's own description of its API does not allow; and the policy in docs/clouds/aws.md against the calls.
"""

import ast
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from aws_stubs import Stubbed
from botocore.stub import ANY

import wanbench
from wanbench import cli
from wanbench.errors import LabError, ParameterError
from wanbench.folders import root
from wanbench.measure.experiments import Iperf3, Ping
from wanbench.measure.labs.aws import AwsLab, preflight
from wanbench.measure.labs.aws import lab as launch
from wanbench.measure.labs.aws.preflight import list_prices
from wanbench.measure.labs.rented import costs as spending
from wanbench.measure.labs.rented.client import CloudError
from wanbench.measure.labs.rented.costs import Meter
from wanbench.measure.labs.rented.hosts import user_data
from wanbench.measure.labs.rented.resources import Tags
from wanbench.measure.plan import make_plan
from wanbench.publish.parameters import read_parameters

ASKED_BY_MSK = {
    "ec2:DescribeRouteTables", "ec2:DescribeVpcAttribute", "ec2:DescribeVpcEndpoints", "iam:CreateServiceLinkedRole",
    "kms:CreateGrant", "kms:DescribeKey",
}  # fmt: skip
"""What MSK asks of whoever makes a cluster, besides what the code calls."""
TAGS = Tags("0123456789abcdef", "stubbed", "ada", datetime(2030, 1, 1, tzinfo=UTC))
WANTED = preflight.Wanted("eu-west-1", "m5.large", 2)
SITE = preflight.Site(WANTED, "ami-1", "vpc-1", (("eu-west-1a", "subnet-a"), ("eu-west-1b", "subnet-b")))


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_MAX_ATTEMPTS": "1"}.items():
        monkeypatch.setenv(name, value)


def test_no_capacity_is_tried_in_another_zone_and_then_told():
    none = ("InsufficientInstanceCapacity", "no m5.large here, 123456789012")
    given = "ImageId InstanceType MinCount MaxCount KeyName UserData NetworkInterfaces"
    asked = dict.fromkeys([*given.split(), "BlockDeviceMappings", "TagSpecifications"], ANY)
    asked["InstanceInitiatedShutdownBehavior"] = "terminate"
    asked["MetadataOptions"] = {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}  # IMDSv2 only
    by_zone = [asked | {"ClientToken": f"{TAGS.run}-eu-west-1{zone}"} for zone in "ab"]
    aws = Stubbed(ec2=[("run_instances", none, by_zone[0]), ("run_instances", {"Instances": []}, by_zone[1])])
    assert launch.launch(aws, SITE, TAGS, "sg-1", "#cloud-config\n") == "eu-west-1b"
    aws = Stubbed(ec2=[("run_instances", none, each) for each in by_zone])
    with pytest.raises(LabError, match=r"No zone of eu-west-1 has 2 x m5.large.*no m5.large here, \(account\)"):
        launch.launch(aws, SITE, TAGS, "sg-1", "#cloud-config\n")
    aws = Stubbed(ec2=[("run_instances", ("UnauthorizedOperation", "You may not."), by_zone[0])])
    with pytest.raises(CloudError, match="You may not"):
        launch.launch(aws, SITE, TAGS, "sg-1", "#cloud-config\n")


def test_what_a_lost_answer_made_is_found_again():
    group = {"SecurityGroups": [{"GroupId": "sg-7"}]}
    aws = Stubbed(
        ec2=[
            ("import_key_pair", ("InvalidKeyPair.Duplicate", "there")),
            ("create_security_group", ("InvalidGroup.Duplicate", "there")),
            ("describe_security_groups", group),
            ("authorize_security_group_ingress", ("InvalidPermission.Duplicate", "there")),
            ("authorize_security_group_ingress", {"Return": True}),
        ]
    )
    assert launch.prepare_region(aws, SITE, TAGS, "ssh-ed25519 AAAA", "192.0.2.7/32") == "sg-7"
    aws.stubbers["ec2"].assert_no_pending_responses()


def regions(*names):
    return "describe_regions", {"Regions": [{"RegionName": name} for name in names]}


def test_a_region_that_is_off_is_named_before_anything_is_launched():
    with pytest.raises(LabError, match=r"not enabled in this account: eu-west-1\..*Nothing was launched"):
        preflight.survey(Stubbed(ec2=[regions("us-east-1")]), [WANTED])


def test_a_subnet_that_exists_is_looked_up_alone():
    wanted = preflight.Wanted("eu-west-1", "c5.large", subnet="subnet-9")
    m5 = {"ProcessorInfo": {"SupportedArchitectures": ["x86_64"]}, "VCpuInfo": {"DefaultVCpus": 2}}
    subnet = {"SubnetId": "subnet-9", "AvailabilityZone": "eu-west-1b", "VpcId": "vpc-9"}
    aws = Stubbed(
        ec2=[
            ("describe_instance_type_offerings", {"InstanceTypeOfferings": [{"Location": "eu-west-1b"}]}),
            ("describe_subnets", {"Subnets": [subnet]}, {"SubnetIds": ["subnet-9"]}),
            ("describe_instance_types", {"InstanceTypes": [m5]}),
        ],
        ssm=[("get_parameter", {"Parameter": {"Value": "ami-1"}})],
    )
    site = preflight._site(aws, wanted)
    assert (site.vpc, site.subnets) == ("vpc-9", (("eu-west-1b", "subnet-9"),))


def test_quotas_count_what_runs_already():
    m5 = {"ProcessorInfo": {"SupportedArchitectures": ["x86_64"]}, "VCpuInfo": {"DefaultVCpus": 2}}
    running = [
        {"InstanceType": "c5.xlarge", "CpuOptions": {"CoreCount": 2, "ThreadsPerCore": 2}},
        {"InstanceType": "p4d.24xlarge", "CpuOptions": {"CoreCount": 48, "ThreadsPerCore": 2}},
    ]

    subnet = {"SubnetId": "s-b", "AvailabilityZone": "eu-west-1b", "VpcId": "vpc-1"}

    def survey(quota, *alongside):
        aws = Stubbed(
            ec2=[
                regions("eu-west-1"),
                ("describe_instance_type_offerings", {"InstanceTypeOfferings": [{"Location": "eu-west-1b"}]}),
                ("describe_vpcs", {"Vpcs": [{"VpcId": "vpc-1"}]}),
                ("describe_subnets", {"Subnets": [subnet]}),
                *[("describe_instance_types", {"InstanceTypes": [m5]})] * (2 + len(alongside)),
                ("describe_instances", {"Reservations": [{"Instances": running}]}),
            ],
            ssm=[("get_parameter", {"Parameter": {"Value": "ami-1"}})],
            service_quotas=[("get_service_quota", quota, {"ServiceCode": "ec2", "QuotaCode": "L-1216C47A"})],
        )
        return preflight.survey(aws, [WANTED], alongside)

    [site], notes = survey({"Quota": {"Value": 8.0}})
    assert site.subnets == (("eu-west-1b", "s-b"),) and site.image == "ami-1" and notes == []
    with pytest.raises(LabError, match=r"4 vCPUs of m5\.large are needed, but 4 of the quota of 7"):
        survey({"Quota": {"Value": 7.0}})
    with pytest.raises(LabError, match=r"10 vCPUs of m5\.large, c5\.large are needed, but 4 of the quota of 13"):
        survey({"Quota": {"Value": 13.0}}, preflight.Wanted("eu-west-1", "c5.large", 3))
    _, notes = survey(("AccessDeniedException", "no"))
    assert notes == ["The quota of vCPUs in eu-west-1 cannot be read and was not checked."]


def product(*usd):
    dimensions = {str(n): {"unit": "Hrs", "pricePerUnit": {"USD": f"{each}"}} for n, each in enumerate(usd)}
    return json.dumps({"product": {}, "terms": {"OnDemand": {"a": {"priceDimensions": dimensions}}}})


def test_the_price_list_comes_first_and_dated_tables_stand_for_the_rest(monkeypatch):
    monkeypatch.setattr(
        "wanbench.measure.labs.aws.preflight.everywhere", lambda work, items: [work(each) for each in items]
    )
    answers = [[product(0.096)], [product(0.02, 0.0)], [product(0.153)], []]
    aws = Stubbed(pricing=[("get_products", {"PriceList": each}) for each in answers])
    found = list_prices(aws, ["us-east-1", "sa-east-1"], "m5.large")
    assert found == {"m5.large": (0.096, 0.153)}
    prices = spending.prices({"aws": found}).set_index(["cloud", "item"])
    assert prices.loc[("aws", "m5.large"), "high_usd"] == 0.153
    assert prices.loc[("aws", "egress between regions"), "high_usd"] == 0.138
    assert list_prices(Stubbed(pricing=[("get_products", ("500", "no"))]), ["us-east-1"], "m5.large") == {}


def test_an_estimate_says_what_is_not_known_and_asks(monkeypatch, capsys):
    monkeypatch.delenv(spending.YES_VARIABLE, raising=False)
    costs = spending.Costs(
        ["aws:eu-west-1", "aws:us-east-1"],
        instance_type="t3.small",
        hosts_per_region=2,
        overrides={},
        per_host_hour={"volume": 0.5},
    )
    costs.prices = costs.prices.query("item != 'volume'")
    estimate = costs.of({("aws:eu-west-1", "aws:us-east-1"): 5e9}, 3300, set_up_s=300)
    assert estimate.unknown == ["volume"]
    assert estimate.high_usd == pytest.approx(4 * 0.024 + 5 * 0.138)
    spending.agree(estimate, ask=lambda question: "yes")
    assert "4 hosts for 1.00 hours each" in (shown := capsys.readouterr().err) and "5 GB" in shown
    with pytest.raises(spending.BudgetError, match="not agreed to"):
        spending.agree(estimate, ask=lambda question: "")
    with pytest.raises(spending.BudgetError, match="volume is unknown"):
        spending.agree(estimate, budget_usd=99, yes=True)
    with pytest.raises(spending.BudgetError, match="there is no terminal"):
        spending.agree(estimate, ask=lambda question: (_ for _ in ()).throw(EOFError()))
    monkeypatch.setenv(spending.YES_VARIABLE, "1")
    spending.agree(estimate)
    known = spending.Estimate(estimate.table.head(1).assign(low_usd=1.0, high_usd=2.0), 4, 1.0)
    spending.agree(known, budget_usd=2.5, spent_before_usd=0.5)
    spending.check_budget(0.5, 2.0, 2.5)
    for before_usd, budget_usd in ((0.0, 1.9), (0.6, 2.5)):
        with pytest.raises(spending.BudgetError, match="Nothing was started"):
            spending.agree(known, budget_usd=budget_usd, spent_before_usd=before_usd)
        with pytest.raises(spending.BudgetError, match="Stopped: about"):
            spending.check_budget(before_usd, 2.0, budget_usd)


def test_a_host_gets_its_key_and_its_end():
    text = user_data(
        expires_at=datetime(2030, 1, 1, 12, tzinfo=UTC),
        host_key="KEY\n",
        host_key_public="ssh-ed25519 A",
        volume_device="/dev/sdf",
    )
    assert text.startswith("#cloud-config\n") and len(text) < 16_384
    config = yaml.safe_load(text)
    assert config["ssh_keys"] == {"ed25519_private": "KEY\n", "ed25519_public": "ssh-ed25519 A"}
    timer = next(each["content"] for each in config["write_files"] if each["path"].endswith(".timer"))
    assert "OnCalendar=2030-01-01 12:00:00 UTC\n" in timer
    assert config["bootcmd"][0][:5] == ["cloud-init-per", "once", "wanbench-expiry", "shutdown", "-P"]


@pytest.mark.parametrize(
    "given, said",
    [
        ({"operator_address": "0.0.0.0/0"}, "operator_address"),
        ({"operator_address": "everyone"}, "operator_address"),
        ({"operator_address": "192.168.1.7"}, "the public IPv4 address"),
        ({"operator_address": "127.0.0.1"}, "the public IPv4 address"),
        ({"operator_address": "169.254.169.254"}, "the public IPv4 address"),
        ({"operator_address": "100.64.0.9"}, "the public IPv4 address"),
        ({"operator_address": "0.0.0.0"}, "the public IPv4 address"),
        ({"operator_address": "255.255.255.255"}, "the public IPv4 address"),
        ({"regions": ["gcp:us-west1"]}, "gcp:us-west1"),
        ({"zones": {"aws:us-east-1": "us-east-1a"}}, "zones"),
        ({"ttl_s": 60}, "ttl_s"),
    ],
)
def test_parameters_that_are_refused(given, said):
    options = {"regions": ["aws:eu-west-1"], "instance_type": "t3.micro", "operator_address": "192.0.2.7"} | given
    with pytest.raises(ParameterError, match=said):
        AwsLab(**options)


def test_the_policy_in_the_docs_allows_what_the_code_calls_and_no_more():
    called = set()
    for path in (Path(wanbench.__file__).parent / "measure" / "labs" / "aws").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("call", "pages"):
                service, _, operation = node.args[:3]
                words = "".join(word.capitalize() for word in operation.value.split("_"))
                called.add(f"{service.value.replace('-', '')}:{words}")
    text = (root() / "docs" / "clouds" / "aws.md").read_text()
    policies = map(json.loads, re.findall(r"```json\n(.*?)```", text, re.DOTALL))
    allowed = {action for policy in policies for statement in policy["Statement"] for action in statement["Action"]}
    # Tags are set by the call that makes a resource, which needs these permissions besides.
    # Everybody may ask who they are.
    assert allowed - ASKED_BY_MSK == called - {"sts:GetCallerIdentity"} | {"ec2:CreateTags", "kafka:TagResource"}


def test_the_command_sweep_hands_on_what_it_is_told(monkeypatch):
    told = []
    monkeypatch.setattr("wanbench.measure.labs.aws.sweep", lambda **options: told.append(options) or 1)
    assert cli.main(["sweep", "--yes"]) == 1 and cli.main(["sweep", "--all"]) == 1
    assert told == [{"yes": True, "everything": False}, {"yes": False, "everything": True}]


def test_the_preset_makes_a_lab_within_its_budget(monkeypatch):
    given = read_parameters(root() / "papermill-params" / "02-intercloud-throughput" / "aws.yml")
    monkeypatch.setattr("wanbench.measure.labs.aws.preflight.list_prices", lambda *asked: {})
    plan = make_plan(regions=given["regions"], experiments=[Ping(), Iperf3()], rate_bps=given["rate_bps"])
    opened = AwsLab(plan.regions, operator_address="192.0.2.7", **given["lab_options"])
    costs = preflight.costs(None, plan.regions, instance_type="t3.small", hosts_per_region=1, overrides={})
    assert 0 < costs.of(plan.sent_bytes(), plan.expected_s(), set_up_s=300).high_usd < 5 == opened.budget_usd


def test_hosts_must_live_as_long_as_their_plan_and_cost_what_they_do_when_one_is_lost(monkeypatch, capsys):
    monkeypatch.setattr("wanbench.measure.labs.aws.preflight.list_prices", lambda *asked: {})
    monkeypatch.setattr(AwsLab, "survey", lambda *asked: ([], []))
    names = ["aws:eu-west-1", "aws:us-east-1"]
    options = {"instance_type": "t3.small", "operator_address": "192.0.2.7"}
    plan = make_plan(regions=names, experiments=[Ping(count=1000, interval_s=1)])
    with pytest.raises(ParameterError, match=r"ttl_s.* is 900; allowed: at least the \d{4} s that the plan takes"):
        AwsLab(names, ttl_s=900, **options).estimate(plan, "by-hand")
    lab = AwsLab(names, **options)
    lab.estimate(plan, "by-hand")

    class Lost:
        name = region = names[1]

        def run(self, command, **how):
            raise LabError("it does not answer")

    class There(Lost):
        name = region = names[0]

        def run(self, command, **how):
            return SimpleNamespace(stdout=b"\n\n lo: 0 0 0 0 0 0 0 0 9\n eth0: 0 0 0 0 0 0 0 0 3000000000\n")

    lab.own_hosts = {names[0]: [There()], names[1]: [Lost()]}
    lab._meter = Meter()
    lab._meter._started -= timedelta(hours=2)
    spent = lab.spent().table.set_index("item").amount
    assert spent["t3.small"] == pytest.approx(4, rel=0.01) and spent["egress between regions"] == 3
    assert "the costs are too low" in capsys.readouterr().err
