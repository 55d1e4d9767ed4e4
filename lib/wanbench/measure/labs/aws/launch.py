"""Launching hosts in one region: key pair, security group, instances, and at last the rules that let hosts meet."""

from __future__ import annotations

import time
from collections.abc import Sequence

from wanbench.errors import LabError
from wanbench.measure.labs.rented.hosts import Instance

from .clients import Aws, AwsError, without_identities
from .preflight import Site
from .tags import RUN, Tags, specifications
from .user_data import VOLUME_DEVICE

NO_CAPACITY = {
    "InsufficientInstanceCapacity",
    "InsufficientHostCapacity",
    "InsufficientFreeAddressesInSubnet",
    "Unsupported",
}
"""Answers of `run_instances` after which another zone may have what this one lacks."""
START_TIMEOUT_S = 300
POLL_S = 2.0


def prepare_region(aws: Aws, site: Site, tags: Tags, public_key: str, operator: str) -> str:
    """
    Import the key pair and make the security group, open to SSH from `operator` (a CIDR) and to its own members.

    A call that is repeated because its answer was lost makes nothing twice. Returns the group's id.
    """
    region, name = site.wanted.region, f"wanbench-{tags.run}"
    unless_there(
        "InvalidKeyPair.Duplicate",
        lambda: aws.call(
            "ec2",
            region,
            "import_key_pair",
            KeyName=name,
            PublicKeyMaterial=public_key.encode(),
            TagSpecifications=specifications(tags, "key-pair"),
        ),
    )
    group = make_group(aws, region, name, "Hosts of one wanbench run, and whoever drives it", site.vpc, tags)
    allow(
        aws,
        region,
        group,
        {
            "IpProtocol": "tcp",
            "FromPort": 22,
            "ToPort": 22,
            "IpRanges": [{"CidrIp": operator, "Description": "operator"}],
        },
        {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group, "Description": "this region's hosts"}]},
    )
    return group


def make_group(aws: Aws, region: str, name: str, description: str, vpc: str, tags: Tags) -> str:
    """Make the run's security group, closed to all, unless it is there; its id."""
    named = {"GroupName": name, "Description": description, "VpcId": vpc}
    named["TagSpecifications"] = specifications(tags, "security-group")
    made = unless_there("InvalidGroup.Duplicate", lambda: aws.call("ec2", region, "create_security_group", **named))
    return made["GroupId"] if made else _group_of(aws, region, tags.run)


def allow(aws: Aws, region: str, group: str, *rules: dict) -> None:
    """Open a security group further, one rule after the other; rules that are there already are left."""
    for rule in rules:
        unless_there(
            "InvalidPermission.Duplicate",
            lambda rule=rule: aws.call(
                "ec2", region, "authorize_security_group_ingress", GroupId=group, IpPermissions=[rule]
            ),
        )


def allow_hosts(aws: Aws, region: str, group: str, addresses: Sequence[str]) -> None:
    """Let hosts with these addresses in, with every protocol: what is measured may be ping, iperf3 or Kafka."""
    if addresses:
        ranges = [{"CidrIp": f"{address}/32", "Description": "host of the lab"} for address in addresses]
        allow(aws, region, group, {"IpProtocol": "-1", "IpRanges": ranges})


def launch(aws: Aws, site: Site, tags: Tags, group: str, user_data: str) -> str:
    """
    Launch the region's hosts, in the first zone that has them all. Returns the zone.

    The client token is made of run, region and zone: the same call again makes nothing more.

    Raises
    ------
    LabError
        No zone has the capacity; names what each said.
    """
    wanted, told = site.wanted, []
    for zone, subnet in site.subnets:
        try:
            aws.call(
                "ec2",
                wanted.region,
                "run_instances",
                ImageId=site.image,
                InstanceType=wanted.instance_type,
                MinCount=wanted.count,
                MaxCount=wanted.count,
                ClientToken=f"{tags.run}-{zone}",
                KeyName=f"wanbench-{tags.run}",
                UserData=user_data,
                InstanceInitiatedShutdownBehavior="terminate",
                MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
                NetworkInterfaces=[
                    {
                        "DeviceIndex": 0,
                        "SubnetId": subnet,
                        "Groups": [group],
                        "AssociatePublicIpAddress": True,
                        "DeleteOnTermination": True,
                    }
                ],
                BlockDeviceMappings=_volumes(wanted.volume_gb),
                TagSpecifications=specifications(tags, "instance", "volume", "network-interface"),
            )
            return zone
        except AwsError as error:
            if error.code not in NO_CAPACITY:
                raise
            told.append(str(error))
    raise LabError(f"No zone of {wanted.region} has {wanted.count} x {wanted.instance_type}: {' '.join(told)}")


def wait_until_running(aws: Aws, site: Site, run: str, timeout_s: float = START_TIMEOUT_S) -> list[Instance]:
    """The region's hosts once all run and have a public address; LabError if one ends before, or time runs out."""
    wanted, deadline = site.wanted, time.monotonic() + timeout_s
    while True:
        reservations = aws.pages(
            "ec2",
            wanted.region,
            "describe_instances",
            "Reservations",
            Filters=[{"Name": f"tag:{RUN}", "Values": [run]}],
        )
        found = [instance for each in reservations for instance in each["Instances"]]
        if ended := [each for each in found if each["State"]["Name"] not in ("pending", "running")]:
            reason = without_identities(ended[0].get("StateReason", {}).get("Message", "no reason given"))
            raise LabError(f"A host in {wanted.region} is {ended[0]['State']['Name']}: {reason}")
        ready = [each for each in found if each["State"]["Name"] == "running" and each.get("PublicIpAddress")]
        if len(ready) >= wanted.count:
            return [
                Instance(
                    each["InstanceId"],
                    wanted.region,
                    each["Placement"]["AvailabilityZone"],
                    each["PublicIpAddress"],
                    each["PrivateIpAddress"],
                )
                for each in sorted(ready, key=lambda each: each["InstanceId"])
            ]
        if time.monotonic() > deadline:
            raise LabError(f"{len(ready)} of {wanted.count} hosts in {wanted.region} run after {timeout_s:g} s.")
        time.sleep(POLL_S)


def _volumes(volume_gb):
    if volume_gb is None:
        return []
    disk = {"VolumeSize": volume_gb, "VolumeType": "gp3", "DeleteOnTermination": True, "Encrypted": True}
    return [{"DeviceName": VOLUME_DEVICE, "Ebs": disk}]


def _group_of(aws, region, run):
    found = aws.pages(
        "ec2", region, "describe_security_groups", "SecurityGroups", Filters=[{"Name": f"tag:{RUN}", "Values": [run]}]
    )
    return found[0]["GroupId"]


def unless_there(code, ask):
    """The answer, or None if AWS says with this code that it is there already."""
    try:
        return ask()
    except AwsError as error:
        if error.code != code:
            raise
        return None
