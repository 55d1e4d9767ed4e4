"""A cluster of MSK: agreed to, made, handed on, deleted and swept up after; no account anywhere."""

import io
import os
from pathlib import Path

import pytest
from aws_stubs import Stubbed
from botocore.stub import ANY

from wanbench.errors import LabError, ParameterError
from wanbench.measure.kafka.external import external_clusters
from wanbench.measure.labs.aws import clients, msk, sweep, teardown
from wanbench.measure.labs.aws.msk import MskCluster
from wanbench.measure.labs.rented import leases
from wanbench.measure.labs.rented.costs import BudgetError

ACCOUNT = "123456789012"
BOOTSTRAP = "b-1.x.kafka.us-east-1.amazonaws.com:9094,b-2.x.kafka.us-east-1.amazonaws.com:9094"
SUBNETS = [{"SubnetId": f"s-{zone}", "AvailabilityZone": f"us-east-1{zone}", "VpcId": "vpc-1"} for zone in "dabc"]
VPC = ("describe_vpcs", {"Vpcs": [{"VpcId": "vpc-1"}]})
IN_VPC = ("describe_subnets", {"Subnets": SUBNETS})
NO_GROUP = ("describe_security_groups", {"SecurityGroups": []})
NO_CLUSTER = ("list_clusters_v2", {"ClusterInfoList": []})


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    given = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_MAX_ATTEMPTS": "1"}
    given |= {"AWS_DEFAULT_REGION": "us-east-1", "WANBENCH_DATA": str(tmp_path), "AWS_CONFIG_FILE": os.devnull}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("WANBENCH_YES", raising=False)
    monkeypatch.setattr(msk, "SETTLE_S", 0.0)
    monkeypatch.setattr(teardown.MskResources, "poll_s", 0.0)
    # The id of the run is known beforehand, so that listings can name it.
    monkeypatch.setattr(leases.uuid, "uuid4", lambda: type("Id", (), {"hex": "0123456789abcdef"}))


def cluster_in(state, **more):
    arn = f"arn:aws:kafka:us-east-1:{ACCOUNT}:cluster/wanbench-0123456789abcdef/1"
    tags = {"wanbench:run": "0123456789abcdef"}
    one = {"ClusterName": "wanbench-0123456789abcdef", "ClusterArn": arn, "State": state, "Tags": tags} | more
    longer = one | {"ClusterName": one["ClusterName"] + "-2", "Tags": {}}
    return "list_clusters_v2", {"ClusterInfoList": [longer, one]}


def group():
    tags = [{"Key": "wanbench:run", "Value": "0123456789abcdef"}]
    return "describe_security_groups", {"SecurityGroups": [{"GroupId": "sg-1", "Tags": tags}]}


def account(kafka=(), ec2=()):
    made = [VPC, IN_VPC, ("create_security_group", {"GroupId": "sg-1"})]
    rule = {"IpProtocol": "tcp", "FromPort": 9094, "ToPort": 9094}
    rule["IpRanges"] = [{"CidrIp": "172.31.0.0/16", "Description": "clients"}]
    opened = ("authorize_security_group_ingress", {}, {"GroupId": "sg-1", "IpPermissions": [rule]})
    return Stubbed(kafka=kafka, ec2=[*made, opened, *ec2])


def cluster(aws, **options):
    given = {"client_networks": ["172.31.0.0/16"], "yes": True, "campaign": "c" * 300}
    return MskCluster("aws:us-east-1", aws=aws, **given | options)


def test_a_cluster_is_made_handed_on_and_deleted(capsys, tmp_path):
    asked = {"ClusterName": "wanbench-0123456789abcdef", "Tags": ANY, "Provisioned": ANY}
    arn = {"ClusterArn": f"arn:aws:kafka:us-east-1:{ACCOUNT}:cluster/wanbench-0123456789abcdef/1"}
    aws = account(
        kafka=[
            ("create_cluster_v2", ("ConflictException", "there"), asked),
            cluster_in("CREATING"),
            cluster_in("ACTIVE"),
            ("get_bootstrap_brokers", {"BootstrapBrokerStringTls": BOOTSTRAP}, arn),
            cluster_in("ACTIVE"),
            cluster_in("ACTIVE"),
            ("delete_cluster", {}, arn),
            cluster_in("DELETING"),
            NO_CLUSTER,
            NO_CLUSTER,
        ],
        ec2=[
            group(),
            ("delete_security_group", ("DependencyViolation", "in use")),
            group(),
            ("delete_security_group", {}),
            NO_GROUP,
            NO_GROUP,
        ],
    )
    with cluster(aws) as made:
        assert made.external == {"bootstrap": BOOTSTRAP, "protocol": "SSL"}
        reached = external_clusters(None, {"msk": made.external})["msk"]
        told = str((made.settings, reached.describe(), made.watched("msk"), vars(reached)["bootstrap"]))
        assert made.watched().brokers == 3 and leases.lease_state("0123456789abcdef") == leases.HELD
    for stubber in aws.stubbers.values():
        stubber.assert_no_pending_responses()
    assert not list(leases.lease_folder().iterdir()) and made.external == {}
    shown = capsys.readouterr()
    written = "".join(path.read_text() for path in Path(tmp_path).rglob("*") if path.is_file())
    assert ACCOUNT not in told + shown.out + shown.err + written and "arn:" not in told
    assert "kafka.t3.small" in shown.err and "0.41 to 0.41 USD" in shown.err


def test_a_cluster_that_fails_is_deleted_and_what_remains_is_an_error(monkeypatch):
    why = {"StateInfo": {"Message": f"no capacity for {ACCOUNT}"}}
    kafka = [("create_cluster_v2", {}), cluster_in("FAILED", **why), NO_CLUSTER, NO_CLUSTER]
    with (
        pytest.raises(LabError, match=r"is FAILED: no capacity for \(account\)"),
        cluster(account(kafka, [NO_GROUP] * 2)),
    ):
        pytest.fail("it was entered")
    assert not leases.free_leases("msk")
    monkeypatch.setattr(teardown.MskResources, "timeout_s", -1.0)
    refused = ("delete_cluster", ("BadRequestException", "not yet"))
    kafka = [("create_cluster_v2", {}), *[cluster_in("FAILED")] * 3, refused]
    with (
        pytest.raises(LabError, match=r"REMAINS on AWS: MSK cluster wanbench-.*not yet"),
        cluster(account(kafka, [NO_GROUP])),
    ):
        pytest.fail("it was entered")
    assert leases.free_leases("msk") and not leases.free_leases("aws")


def test_nothing_is_made_without_consent_or_beyond_the_budget(monkeypatch):
    for options, said in (
        ({"budget_usd": 0.4}, "the budget is 0.40"),
        ({"budget_usd": 9, "instance_type": "kafka.m9.huge"}, "price or amount of kafka.m9.huge is unknown"),
        ({"brokers": 4}, "4 brokers cannot be spread evenly over 3 zones"),
    ):
        aws = Stubbed(ec2=[VPC, IN_VPC])
        with pytest.raises(LabError, match=said), cluster(aws, **options):
            pytest.fail("it was entered")
    without = Stubbed(ec2=[("describe_vpcs", {"Vpcs": []})])
    with pytest.raises(LabError, match="us-east-1 has no default VPC; `aws ec2 create"), cluster(without):
        pytest.fail("it was entered")
    aws = Stubbed(ec2=[VPC, IN_VPC])
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(BudgetError, match="there is no terminal"), cluster(aws, yes=False):
        pytest.fail("it was entered")
    assert not leases.lease_folder().exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"client_networks": ["0.0.0.0/0"]}, "private IPv4 networks"),
        ({"client_networks": ["10.0.0.0/8"]}, "private IPv4 networks"),
        ({"client_networks": []}, "private IPv4 networks"),
        ({"ttl_s": 60}, "ttl_s"),
        ({"brokers": 1}, "brokers"),
    ],
)
def test_parameters_that_are_refused(given, said):
    with pytest.raises(ParameterError, match=said):
        cluster(None, **given)


def test_sweep_finds_and_deletes_what_a_killed_driver_left(monkeypatch, capsys):
    from moto import mock_aws

    def killed(self, *exception):
        os.close(self._lease._file)

    monkeypatch.setattr(clients, "TIMEOUT_S", 300)
    with mock_aws():
        aws = clients.Aws()
        # moto's clusters are never made: a cluster that is waited for stands for one that is used.
        monkeypatch.setattr(MskCluster, "__exit__", lambda *given: None)
        with pytest.raises(LabError, match="CREATING"), monkeypatch.context() as patched:
            patched.setattr(teardown.MskResources, "timeout_s", -1.0)
            (opened := cluster(aws, campaign="killed")).__enter__()
        there = {each.kind: each.tags for each in teardown.MskResources(aws).listed("us-east-1")}
        assert {each["wanbench:campaign"] for each in there.values()} == {"killed"} and len(there) == 2
        options = {"client": aws, "yes": True, "regions": ["us-east-1"], "settle_s": 0}
        assert sweep(**options, everything=True) == 0, "its driver holds it"
        opened._expiry.cancel()
        killed(opened)
        assert sweep(**options) == 0
        assert aws.call("kafka", "us-east-1", "list_clusters_v2")["ClusterInfoList"] == []
        assert teardown.MskResources(aws).regions() and not list(leases.lease_folder().iterdir())
    shown = capsys.readouterr().out
    assert "Amazon MSK: deleted 2 resources" in shown and ACCOUNT not in shown


def test_without_the_permission_to_list_clusters_hosts_are_swept_all_the_same(capsys):
    denied = ("list_clusters_v2", ("AccessDeniedException", "no"))
    assert sweep(client=Stubbed(kafka=[denied]), regions=[]) == 0
    assert "not checked, because kafka:ListClustersV2 is not allowed" in capsys.readouterr().out
    leases.Lease("msk", ACCOUNT).release(all_gone=False)
    assert sweep(client=Stubbed(kafka=[denied]), regions=[]) == 1
