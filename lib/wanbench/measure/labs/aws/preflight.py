"""What is found out before anything is launched: regions that are enabled, zones, images, networks and quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wanbench.errors import LabError
from wanbench.measure.labs.rented.hosts import Wanted
from wanbench.measure.labs.rented.resources import everywhere

from .clients import Aws, AwsError

IMAGE = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{}"
"""The public SSM parameter that AWS keeps at the newest image of Amazon Linux 2023 for an architecture."""
ARCHITECTURES = ("x86_64", "arm64")
VCPU_QUOTAS = {
    **dict.fromkeys("acdhimrtz", "L-1216C47A"),
    "g": "L-DB2E81BA",
    "vt": "L-DB2E81BA",
    "p": "L-417A185B",
    "f": "L-74FC7D96",
    "x": "L-7295265B",
}
"""Quota of running on-demand vCPUs by the letters of the instance family; of others the quota is not looked up."""
RULES_QUOTA, USUAL_RULES = "L-0EA8095F", 60
"""Rules of one security group, in each direction, and how many an account has where the quota cannot be read."""


@dataclass(frozen=True)
class Site:
    """Where the hosts of a region can be launched: (zone, subnet), the first choice first, and from which image."""

    wanted: Wanted
    image: str
    vpc: str
    subnets: tuple[tuple[str, str], ...]


def enabled_regions(aws: Aws, ask: str) -> list[str]:
    """The regions that the account may use, asked in region `ask`."""
    states = ("opt-in-not-required", "opted-in")
    found = aws.call(
        "ec2", ask, "describe_regions", AllRegions=False, Filters=[{"Name": "opt-in-status", "Values": list(states)}]
    )
    return sorted(region["RegionName"] for region in found["Regions"])


def survey(aws: Aws, wanted: Sequence[Wanted], alongside: Sequence[Wanted] = ()) -> tuple[list[Site], list[str]]:
    """
    Where everything can be launched. Hosts that are launched `alongside` are in the same quotas.

    Returns
    -------
    list of Site
        In the order of `wanted`.
    list of str
        What could not be found out, such as a quota that the credentials may not read.

    Raises
    ------
    LabError
        Names every region that is not enabled, every type that a region or zone lacks, every quota that is too small.
    """
    enabled = enabled_regions(aws, wanted[0].region)
    if off := [each.region for each in wanted if each.region not in enabled]:
        raise LabError(
            f"AWS regions not enabled in this account: {', '.join(off)}. Enable them under Account > AWS Regions, "
            "or leave them out. Nothing was launched."
        )

    def look(each):
        try:
            return _site(aws, each), *_quotas(aws, each, [*wanted, *alongside])
        except LabError as error:
            return None, [str(error)], []

    looked = everywhere(look, wanted)
    if problems := [text for _, found, _ in looked for text in found]:
        raise LabError(f"Nothing was launched: {' '.join(dict.fromkeys(problems))}")
    return [site for site, _, _ in looked], list(dict.fromkeys(text for *_, notes in looked for text in notes))


def _site(aws: Aws, wanted: Wanted) -> Site:
    region, name = wanted.region, wanted.instance_type
    offered = aws.pages(
        "ec2",
        region,
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": [name]}],
    )
    zones = sorted(each["Location"] for each in offered)
    if not zones:
        raise LabError(f"{region} does not offer {name}.")
    if wanted.zone is not None and wanted.zone not in zones:
        raise LabError(f"{region} offers {name} in {', '.join(zones)}, not in {wanted.zone}.")
    if wanted.subnet:
        found = aws.pages("ec2", region, "describe_subnets", "Subnets", SubnetIds=[wanted.subnet])
    else:
        found = default_subnets(aws, region)
    by_zone = {each["AvailabilityZone"]: each["SubnetId"] for each in found}
    subnets = tuple((zone, by_zone[zone]) for zone in zones if zone in by_zone and wanted.zone in (None, zone))
    if not subnets:
        what = wanted.subnet or "default subnet"
        raise LabError(f"{region} has no {what} in {wanted.zone or ', '.join(zones)}.")
    architecture = _type(aws, wanted)["architecture"]
    image = aws.call("ssm", region, "get_parameter", Name=IMAGE.format(architecture))["Parameter"]["Value"]
    return Site(wanted, image, found[0]["VpcId"], subnets)


def default_subnets(aws: Aws, region: str) -> list[dict]:
    """The subnets that the default VPC has in its zones, one in each; LabError if there is no such VPC."""
    vpcs = aws.pages("ec2", region, "describe_vpcs", "Vpcs", Filters=[{"Name": "is-default", "Values": ["true"]}])
    if not vpcs:
        raise LabError(f"{region} has no default VPC; `aws ec2 create-default-vpc --region {region}` makes one.")
    filters = [{"Name": "vpc-id", "Values": [vpcs[0]["VpcId"]]}, {"Name": "default-for-az", "Values": ["true"]}]
    return aws.pages("ec2", region, "describe_subnets", "Subnets", Filters=filters)


def _type(aws: Aws, wanted: Wanted) -> Mapping:
    [found] = aws.pages(
        "ec2", wanted.region, "describe_instance_types", "InstanceTypes", InstanceTypes=[wanted.instance_type]
    )
    supported = found["ProcessorInfo"]["SupportedArchitectures"]
    architecture = next((each for each in ARCHITECTURES if each in supported), None)
    if architecture is None:
        raise LabError(f"{wanted.instance_type} is {', '.join(supported)}; allowed: {', '.join(ARCHITECTURES)}.")
    return {"architecture": architecture, "vcpus": found["VCpuInfo"]["DefaultVCpus"]}


def _quotas(aws: Aws, wanted: Wanted, of_lab: Sequence[Wanted]) -> tuple[list[str], list[str]]:
    """Quotas of a region that are too small for the whole lab, and what is not known."""
    problems, notes, region, rules = [], [], wanted.region, sum(each.count for each in of_lab) + 2
    family = _family(wanted.instance_type)
    if code := VCPU_QUOTAS.get(family):
        alike = [each for each in of_lab if VCPU_QUOTAS.get(_family(each.instance_type)) == code]
        here = [each for each in alike if each.region == region]
        needed = sum(each.count * _type(aws, each)["vcpus"] for each in here)
        quota = _quota(aws, region, "ec2", code)
        if quota is None:
            notes.append(f"The quota of vCPUs in {region} cannot be read.")
        elif (used := _vcpus_running(aws, region, code)) + needed > quota:
            problems.append(
                f"{region}: {needed} vCPUs of {', '.join(each.instance_type for each in here)} are needed, "
                f"{used:g} of the quota of {quota:g} "
                f"({code}) are in use; ask for more under Service Quotas > EC2."
            )
    else:
        notes.append(f"No quota is known for instances of family {family}.")
    if rules > USUAL_RULES and rules > (quota := _quota(aws, region, "vpc", RULES_QUOTA) or USUAL_RULES):
        problems.append(f"{region}: {rules} rules of a security group are needed, the quota is {quota:g}.")
    return problems, notes


def _quota(aws, region, service, code):
    try:
        answer = aws.call("service-quotas", region, "get_service_quota", ServiceCode=service, QuotaCode=code)
    except AwsError:
        return None
    return answer["Quota"]["Value"]


def _vcpus_running(aws, region, code):
    reservations = aws.pages(
        "ec2",
        region,
        "describe_instances",
        "Reservations",
        Filters=[{"Name": "instance-state-name", "Values": ["pending", "running"]}],
    )
    running = [instance for each in reservations for instance in each["Instances"]]
    alike = [each for each in running if VCPU_QUOTAS.get(_family(each["InstanceType"])) == code]
    options = [each.get("CpuOptions", {}) for each in alike]
    return sum(each.get("CoreCount", 1) * each.get("ThreadsPerCore", 1) for each in options)


def _family(instance_type: str) -> str:
    """
    The letters that quotas go by.

    >>> [_family(name) for name in ("t3.micro", "m7g.large", "inf2.xlarge", "vt1.3xlarge")]
    ['t', 'm', 'inf', 'vt']
    """
    letters = ""
    for character in instance_type:
        if not character.isalpha():
            break
        letters += character
    return letters
