"""The lab of rented hosts on AWS, which makes a key pair, a security group and the hosts in each region."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from wanbench.checks import T
from wanbench.errors import LabError
from wanbench.measure.labs.rented.client import CloudError
from wanbench.measure.labs.rented.costs import Costs
from wanbench.measure.labs.rented.hosts import Instance, Order, in_first_zone, once_running
from wanbench.measure.labs.rented.lab import RentedLab
from wanbench.measure.labs.rented.resources import RUN, Tags, everywhere

from .clients import Aws, without_identities
from .preflight import Site, costs, survey
from .teardown import AwsResources

# Error codes of `run_instances` after which another zone may have capacity.
NO_CAPACITY = ("InsufficientInstanceCapacity", "InsufficientHostCapacity")
NO_CAPACITY += ("InsufficientFreeAddressesInSubnet", "Unsupported")
POLL_S = 2.0
VOLUME_DEVICE = "/dev/sdf"


class AwsLab(RentedLab):
    """
    Hosts on AWS; see `RentedLab`.

    The hosts run Amazon Linux 2023, and volumes are of type gp3. A run makes a key pair and a security group in each
    region.
    """

    kind, user = "aws", "ec2-user"
    python = "python3.11"
    packages = ("iperf3", "iputils", "nftables", "sysstat", "java-21-amazon-corretto-headless", python, f"{python}-pip")
    takes_subnets, volume_device = True, VOLUME_DEVICE
    client_class, resources_class, survey = Aws, AwsResources, staticmethod(survey)

    def costs(self, **wanted: Any) -> Costs:
        return costs(self.client, **wanted)

    def launch(self, site: Site, order: Order) -> list[Instance]:
        group = prepare_region(self.client, site, order.tags, order.public_key, self.operator)
        self.groups[site.wanted.region] = group
        launch(self.client, site, order.tags, group, order.first_start)
        return once_running(partial(_running, self.client, site.wanted.region, order.tags.run), site.wanted, POLL_S)

    def prepare(self, order: Order) -> None:
        self.groups: dict[str, str] = {}

    def let_in(self, order: Order, addresses: Sequence[str]) -> None:
        rule = {"IpProtocol": "-1", "IpRanges": _ranges([f"{address}/32" for address in addresses], "host of the lab")}
        if addresses:
            everywhere(lambda at: allow(self.client, *at, rule), list(self.groups.items()))


def prepare_region(aws: Aws, site: Site, tags: Tags, public_key: str, operator: str) -> str:
    """
    Import the key pair, make the security group, and return the group's id. The group admits SSH from `operator` (a
    CIDR), and everything from its members.

    Repeating a call whose answer was lost makes nothing twice.
    """
    region, name = site.wanted.region, f"wanbench-{tags.run}"
    key = {"PublicKeyMaterial": public_key.encode(), "TagSpecifications": specifications(tags, "key-pair")}
    there = "InvalidKeyPair.Duplicate"
    unless_there(there, lambda: aws.call("ec2", region, "import_key_pair", KeyName=name, **key))
    group = make_group(aws, region, name, "Hosts of one wanbench run, and whoever drives it", site.vpc, tags)
    ssh = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": _ranges([operator], "operator")}
    members = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group, "Description": "this region's hosts"}]}
    allow(aws, region, group, ssh, members)
    return group


def make_group(aws: Aws, region: str, name: str, description: str, vpc: str, tags: Tags) -> str:
    """Make the run's security group unless it exists, and return its id. A new group admits nothing."""
    marks = specifications(tags, "security-group")
    named = {"GroupName": name, "Description": description, "VpcId": vpc, "TagSpecifications": marks}
    made = unless_there("InvalidGroup.Duplicate", lambda: aws.call("ec2", region, "create_security_group", **named))
    if made:
        return made["GroupId"]
    filters = _of_run(tags.run)
    return aws.pages("ec2", region, "describe_security_groups", "SecurityGroups", Filters=filters)[0]["GroupId"]


def allow(aws: Aws, region: str, group: str, *rules: Mapping[str, object]) -> None:
    """Add rules to a security group; rules that it already has are ignored."""
    there = "InvalidPermission.Duplicate"
    for rule in rules:
        given = {"GroupId": group, "IpPermissions": [rule]}
        unless_there(there, lambda given=given: aws.call("ec2", region, "authorize_security_group_ingress", **given))


def launch(aws: Aws, site: Site, tags: Tags, group: str, user_data: str) -> str:
    """
    Launch the region's hosts in the first zone that has capacity for all of them, and return the zone.

    The client token consists of run and zone, so a repeated call launches nothing twice.
    """
    wanted = site.wanted
    interface = {"DeviceIndex": 0, "Groups": [group], "AssociatePublicIpAddress": True, "DeleteOnTermination": True}
    disk = {"VolumeSize": wanted.volume_gb, "VolumeType": "gp3", "DeleteOnTermination": True, "Encrypted": True}
    subnets = dict(site.subnets)

    def launch_in(zone: str) -> None:
        wish = {
            "ImageId": site.image,
            "InstanceType": wanted.instance_type,
            "MinCount": wanted.count,
            "MaxCount": wanted.count,
            "ClientToken": f"{tags.run}-{zone}",
            "KeyName": f"wanbench-{tags.run}",
            "UserData": user_data,
            "InstanceInitiatedShutdownBehavior": "terminate",  # a host that powers itself off is deleted
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            "NetworkInterfaces": [interface | {"SubnetId": subnets[zone]}],
            "BlockDeviceMappings": [{"DeviceName": VOLUME_DEVICE, "Ebs": disk}] if wanted.volume_gb else [],
            "TagSpecifications": specifications(tags, "instance", "volume", "network-interface"),
        }
        aws.call("ec2", wanted.region, "run_instances", **wish)

    return in_first_zone(subnets, launch_in, wanted, NO_CAPACITY)


def _running(aws: Aws, region: str, run: str) -> list[Instance]:
    """Return the hosts that are running and have a public address; raise LabError if a host has ended."""
    reservations = aws.pages("ec2", region, "describe_instances", "Reservations", Filters=_of_run(run))
    hosts = [host for reservation in reservations for host in reservation["Instances"]]
    for host in hosts:
        if (state := host["State"]["Name"]) not in ("pending", "running"):
            reason = without_identities(host.get("StateReason", {}).get("Message", "no reason given"))
            raise LabError(f"A host in {region} is {state}: {reason}")
    up = [host for host in hosts if host["State"]["Name"] == "running" and host.get("PublicIpAddress")]
    fields = ("PublicIpAddress", "PrivateIpAddress")
    return [
        Instance(host["InstanceId"], region, host["Placement"]["AvailabilityZone"], *map(host.get, fields))
        for host in up
    ]


def specifications(tags: Tags, *kinds: str) -> list[dict[str, object]]:
    """Return the value of AWS's parameter TagSpecifications, which tags these kinds of resources."""
    named = tags.values() | {"Name": f"wanbench {tags.campaign}"}
    given = [{"Key": key, "Value": value[:256]} for key, value in named.items()]
    return [{"ResourceType": kind, "Tags": given} for kind in kinds]


def _of_run(run: str) -> list[dict[str, object]]:
    return [{"Name": f"tag:{RUN}", "Values": [run]}]


def _ranges(networks: Iterable[str], description: str) -> list[dict[str, str]]:
    return [{"CidrIp": network, "Description": description} for network in networks]


def unless_there(code: str, ask: Callable[[], T]) -> T | None:
    """
    Return the result of `ask`, or None if AWS answers with `code`, the error code for a resource that already exists.
    """
    try:
        return ask()
    except CloudError as error:
        if error.code != code:
            raise
        return None
