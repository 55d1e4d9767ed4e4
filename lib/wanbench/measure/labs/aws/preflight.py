"""
Find out, before anything is launched, which regions, zones, images, networks and quotas AWS offers, and the prices.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wanbench.errors import LabError
from wanbench.measure.labs.rented.client import CloudError, too_small
from wanbench.measure.labs.rented.costs import BETWEEN_REGIONS, Costs
from wanbench.measure.labs.rented.hosts import Wanted
from wanbench.measure.labs.rented.resources import everywhere

from .clients import Aws

# The public SSM parameter whose value is the newest image of Amazon Linux 2023 for an architecture.
IMAGE = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{}"
ARCHITECTURES = ("x86_64", "arm64")
# Codes of the quotas of running on-demand vCPUs, by the letters of the instance family; other quotas are not checked.
VCPU_QUOTAS = dict.fromkeys("acdhimrtz", "L-1216C47A") | dict.fromkeys(("g", "vt"), "L-DB2E81BA")
VCPU_QUOTAS |= {"p": "L-417A185B", "f": "L-74FC7D96", "x": "L-7295265B"}
# Code of the quota of rules in one security group, and its default, which is used if the quota cannot be read.
RULES_QUOTA, USUAL_RULES = "L-0EA8095F", 60
PRICE_REGION = "us-east-1"  # One of the few regions whose endpoint has the price list of all regions.


@dataclass(frozen=True)
class Site:
    """
    Where and from which image a region's hosts can be launched; `subnets` are (zone, subnet), in order of preference.
    """

    wanted: Wanted
    image: str
    vpc: str
    subnets: tuple[tuple[str, str], ...]


def enabled_regions(aws: Aws, ask: str) -> list[str]:
    """Return the regions that the account may use, by a call to the region `ask`."""
    states = [{"Name": "opt-in-status", "Values": ["opt-in-not-required", "opted-in"]}]
    answer = aws.call("ec2", ask, "describe_regions", AllRegions=False, Filters=states)
    return sorted(region["RegionName"] for region in answer["Regions"])


def survey(aws: Aws, wanted: Sequence[Wanted], alongside: Sequence[Wanted] = ()) -> tuple[list[Site], list[str]]:
    """
    Find out where the `wanted` hosts can be launched, without making anything; return a site per region, and notes.

    Hosts of combined labs, launched `alongside`, count towards the same quotas. A LabError names what is unavailable.
    """
    enabled = enabled_regions(aws, wanted[0].region)
    if off := [hosts.region for hosts in wanted if hosts.region not in enabled]:
        remedy = "Enable them under Account > AWS Regions, or leave them out. Nothing was launched."
        raise LabError(f"AWS regions not enabled in this account: {', '.join(off)}. {remedy}")

    def look(hosts: Wanted) -> tuple[Site | None, list[str], list[str]]:
        try:
            return _site(aws, hosts), *_quotas(aws, hosts, [*wanted, *alongside])
        except LabError as error:
            return None, [str(error)], []

    seen = everywhere(look, wanted)
    if problems := [text for _, texts, _ in seen for text in texts]:
        raise LabError(f"Nothing was launched: {' '.join(dict.fromkeys(problems))}")
    return [site for site, _, _ in seen if site], list(dict.fromkeys(text for *_, notes in seen for text in notes))


def _site(aws: Aws, wanted: Wanted) -> Site:
    region, name = wanted.region, wanted.instance_type
    where = {"LocationType": "availability-zone", "Filters": [{"Name": "instance-type", "Values": [name]}]}
    offered = aws.pages("ec2", region, "describe_instance_type_offerings", "InstanceTypeOfferings", **where)
    zones = sorted(offer["Location"] for offer in offered)
    if not zones:
        raise LabError(f"{region} does not offer {name}.")
    if wanted.zone is not None and wanted.zone not in zones:
        raise LabError(f"{region} offers {name} in {', '.join(zones)}, not in {wanted.zone}.")
    if wanted.subnet:
        there = aws.pages("ec2", region, "describe_subnets", "Subnets", SubnetIds=[wanted.subnet])
    else:
        there = default_subnets(aws, region)
    by_zone = {subnet["AvailabilityZone"]: subnet["SubnetId"] for subnet in there}
    subnets = tuple((zone, by_zone[zone]) for zone in zones if zone in by_zone and wanted.zone in (None, zone))
    if not subnets:
        what = wanted.subnet or "default subnet"
        raise LabError(f"{region} has no {what} in {wanted.zone or ', '.join(zones)}.")
    architecture, _ = _type(aws, wanted)
    image = aws.call("ssm", region, "get_parameter", Name=IMAGE.format(architecture))["Parameter"]["Value"]
    return Site(wanted, image, there[0]["VpcId"], subnets)


def default_subnets(aws: Aws, region: str) -> list[dict[str, Any]]:
    """Return the default subnets of the default VPC, one in each zone; raise LabError if there is no default VPC."""
    vpcs = aws.pages("ec2", region, "describe_vpcs", "Vpcs", Filters=[{"Name": "is-default", "Values": ["true"]}])
    if not vpcs:
        raise LabError(f"{region} has no default VPC; `aws ec2 create-default-vpc --region {region}` makes one.")
    filters = [{"Name": "vpc-id", "Values": [vpcs[0]["VpcId"]]}, {"Name": "default-for-az", "Values": ["true"]}]
    return aws.pages("ec2", region, "describe_subnets", "Subnets", Filters=filters)


def _type(aws: Aws, wanted: Wanted) -> tuple[str, int]:
    """Return the architecture and the number of vCPUs of an instance type."""
    names = [wanted.instance_type]
    [kind] = aws.pages("ec2", wanted.region, "describe_instance_types", "InstanceTypes", InstanceTypes=names)
    supported = kind["ProcessorInfo"]["SupportedArchitectures"]
    architecture = next((name for name in ARCHITECTURES if name in supported), None)
    if architecture is None:
        raise LabError(f"{wanted.instance_type} is {', '.join(supported)}; allowed: {', '.join(ARCHITECTURES)}.")
    return architecture, kind["VCpuInfo"]["DefaultVCpus"]


def _quotas(aws: Aws, wanted: Wanted, of_lab: Sequence[Wanted]) -> tuple[list[str], list[str]]:
    """
    Return sentences about quotas of a region that are unknown, or too small for the whole lab.
    """
    problems, notes, region, rules = [], [], wanted.region, sum(hosts.count for hosts in of_lab) + 2
    if code := VCPU_QUOTAS.get(family := _family(wanted.instance_type)):
        here = [hosts for hosts in of_lab if hosts.region == region and _quota_of(hosts.instance_type) == code]
        what = f"vCPUs of {', '.join(hosts.instance_type for hosts in here)}"
        if (quota := _quota(aws, region, "ec2", code)) is None:
            notes.append(f"The quota of vCPUs in {region} cannot be read and was not checked.")
        else:
            needed = {what: sum(hosts.count * _type(aws, hosts)[1] for hosts in here)}
            used = {what: (_vcpus_running(aws, region, code), quota)}
            problems += too_small(region, needed, used, f"Service Quotas > EC2 ({code})")
    else:
        notes.append(f"The quota for instances of family {family} was not checked.")
    if rules > USUAL_RULES and rules > (quota := _quota(aws, region, "vpc", RULES_QUOTA) or USUAL_RULES):
        problems.append(f"{region}: {rules} rules in one security group are needed, but the quota is {quota:g}.")
    return problems, notes


def _quota(aws: Aws, region: str, service: str, code: str) -> float | None:
    try:
        answer = aws.call("service-quotas", region, "get_service_quota", ServiceCode=service, QuotaCode=code)
    except CloudError:
        return None
    return answer["Quota"]["Value"]


def _vcpus_running(aws: Aws, region: str, code: str) -> int:
    running = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    reservations = aws.pages("ec2", region, "describe_instances", "Reservations", Filters=running)
    hosts = [host for reservation in reservations for host in reservation["Instances"]]
    options = [host.get("CpuOptions", {}) for host in hosts if _quota_of(host["InstanceType"]) == code]
    return sum(option.get("CoreCount", 1) * option.get("ThreadsPerCore", 1) for option in options)


def _quota_of(instance_type: str) -> str | None:
    return VCPU_QUOTAS.get(_family(instance_type))


def _family(instance_type: str) -> str:
    """
    Return the letters of an instance type that determine its quota.

    >>> [_family(name) for name in ("t3.micro", "m7g.large", "inf2.xlarge", "vt1.3xlarge")]
    ['t', 'm', 'inf', 'vt']
    """
    return re.findall("^[a-z]*", instance_type)[0]


def costs(aws: Aws, regions: Sequence[str], *, instance_type: str, **options: Any) -> Costs:
    """Return the costs of hosts in regions of the catalogue, at the prices of AWS's price list if it answers."""
    listed = list_prices(aws, [name.removeprefix("aws:") for name in regions], instance_type)
    notes = [] if listed else ["AWS's price list does not answer; these prices are from older tables."]
    return Costs(regions, instance_type=instance_type, listed=listed, notes=notes, **options)


def list_prices(aws: Aws, regions: Sequence[str], instance_type: str) -> dict[str, tuple[float, float]]:
    """
    Return the lowest and highest on-demand price of each item in US dollars over these regions (AWS's own names).

    Items without a price in one of the regions are left out; the tables of the package then give their prices.
    """
    machine = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}

    def of(region: str) -> tuple[list[float], list[float]]:
        hour = _usd(aws, "AmazonEC2", regionCode=region, instanceType=instance_type, **machine)
        return hour, _usd(aws, "AWSDataTransfer", fromRegionCode=region, transferType="InterRegion Outbound")

    try:
        hours, egress = zip(*everywhere(of, regions), strict=True)
    except CloudError:
        return {}
    prices = {instance_type: hours, BETWEEN_REGIONS: egress}
    return {item: (min(map(min, usd)), max(map(max, usd))) for item, usd in prices.items() if all(map(len, usd))}


def _usd(aws: Aws, service: str, **fields: str) -> list[float]:
    """Return every positive price in US dollars of the products with these fields."""
    filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in fields.items()]
    texts = aws.pages("pricing", PRICE_REGION, "get_products", "PriceList", ServiceCode=service, Filters=filters)
    terms = [term for text in texts for term in json.loads(text).get("terms", {}).get("OnDemand", {}).values()]
    units = [dimension["pricePerUnit"] for term in terms for dimension in term["priceDimensions"].values()]
    return [usd for unit in units if (usd := float(unit.get("USD", 0))) > 0]
