"""What is found out before anything is launched: regions, zones that have the machine type, the image, and quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import LabError
from ..rented.hosts import Wanted
from .clients import Gcp

IMAGE_PROJECT = "ubuntu-os-cloud"
IMAGE_FAMILIES = {"X86_64": "ubuntu-2404-lts-amd64", "ARM64": "ubuntu-2404-lts-arm64"}
"""Google's own name for the newest image of Ubuntu 24.04 by the architecture of a machine type."""
BOOT_GB = 10
OF_ALL_FAMILIES = ("e2", "f1", "g1", "n1")
"""Families of machine types whose processors count towards the quota CPUS; others have one of their own."""


@dataclass(frozen=True)
class Site:
    """Where the hosts of a region can be launched: zones, the first choice first; `image_link` is for the API."""

    wanted: Wanted
    image: str
    image_link: str
    zones: tuple[str, ...]
    cidr: str


def survey(gcp: Gcp, wanted: Sequence[Wanted]) -> tuple[list[Site], list[str]]:
    """Where everything can be launched, and notes; see `RentedLab.survey`."""
    regions = {each.name: each for each in gcp.pages("regions", "list")}
    up = [name for name, each in regions.items() if each.status == "UP"]
    if off := [each.region for each in wanted if each.region not in up]:
        raise LabError(
            f"Regions that Google Cloud does not have, or that are down: {', '.join(off)}. Nothing was launched."
        )
    instance_type = wanted[0].instance_type
    offered = gcp.pages("machine_types", "aggregated_list", filter=f'name = "{instance_type}"')
    types = {each.zone.rpartition("/")[2]: each for each in offered}
    problems, notes, quotas, zones_of = [], [], {}, {}
    for each in wanted:
        zones = sorted(zone for zone in types if zone.rpartition("-")[0] == each.region)
        zones_of[each.region] = (each.zone,) if each.zone else tuple(zones)
        if not zones:
            problems.append(f"{each.region} does not offer {instance_type}.")
        elif each.zone is not None and each.zone not in zones:
            problems.append(
                f"{each.region} offers {instance_type} in {', '.join(zones)}, not in {each.zone}."
            )
        else:
            quotas[each.region] = _needed(each, types[zones[0]].guest_cpus)
        if regions[each.region].quota_status_warning.code:
            notes.append(f"The quotas of {each.region} cannot be read.")
    for region, needed in quotas.items():
        problems += _lacking(region, needed, regions[region].quotas)
    everywhere = {
        "CPUS_ALL_REGIONS": sum(each["CPUS"] for each in quotas.values()),
        "NETWORKS": 1,
        "SUBNETWORKS": len(wanted),
        "FIREWALLS": 2,
    }
    problems += _lacking("the project", everywhere, gcp.call("projects", "get").quotas)
    if problems:
        raise LabError(f"Nothing was launched: {' '.join(problems)}")
    image = _image(gcp, next(iter(types.values())))
    sites = [
        Site(each, image.name, image.self_link, zones_of[each.region], f"10.{n // 256}.{n % 256}.0/24")
        for n, each in enumerate(wanted)
    ]
    return sites, notes


def _needed(wanted: Wanted, cpus: int) -> dict[str, int]:
    """What hosts of a region take of its quotas."""
    family = wanted.instance_type.partition("-")[0]
    processors = {"CPUS": wanted.count * cpus}
    if family not in OF_ALL_FAMILIES:
        processors[f"{family.upper()}_CPUS"] = wanted.count * cpus
    return {
        **processors,
        "INSTANCES": wanted.count,
        "IN_USE_ADDRESSES": wanted.count,
        "SSD_TOTAL_GB": wanted.count * (BOOT_GB + (wanted.volume_gb or 0)),
    }


def _lacking(where: str, needed: Mapping[str, float], quotas: Sequence[Any]) -> list[str]:
    """Quotas that are too small; those that are not told are not checked."""
    told = {each.metric: each for each in quotas}
    if any(name in told for name in needed if name.endswith("_CPUS")):
        needed = {name: value for name, value in needed.items() if name != "CPUS"}
    return [
        f"{where}: {value:g} {name} are needed, {told[name].usage:g} of the quota of {told[name].limit:g} are in use; "
        "ask for more under IAM & Admin > Quotas."
        for name, value in needed.items()
        if name in told and told[name].usage + value > told[name].limit
    ]


def _image(gcp: Gcp, machine_type):
    family = IMAGE_FAMILIES.get(machine_type.architecture or "X86_64")
    if family is None:
        raise LabError(
            f"{machine_type.name} is {machine_type.architecture}; allowed: {', '.join(IMAGE_FAMILIES)}."
        )
    return gcp.call("images", "get_from_family", project=IMAGE_PROJECT, family=family)
