"""What is found out before anything is launched: regions, zones that have the machine type, the image, and quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wanbench.errors import LabError
from wanbench.measure.labs.rented.hosts import Wanted

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


def survey(gcp: Gcp, wanted: Sequence[Wanted], alongside: Sequence[Wanted] = ()) -> tuple[list[Site], list[str]]:
    """
    Where everything can be launched, and notes; see `RentedLab.survey`. Hosts that are launched `alongside` are in the
    same quotas.
    """
    regions = {each.name: each for each in gcp.pages("regions", "list")}
    up = [name for name, each in regions.items() if each.status == "UP"]
    if off := [each.region for each in wanted if each.region not in up]:
        raise LabError(
            f"Regions that Google Cloud does not have, or that are down: {', '.join(off)}. Nothing was launched."
        )
    of_lab = [*wanted, *alongside]
    types = {name: _zones(gcp, name) for name in dict.fromkeys(each.instance_type for each in of_lab)}
    instance_type = wanted[0].instance_type
    problems, notes, zones_of = [], [], {}
    for each in wanted:
        zones = sorted(zone for zone in types[instance_type] if zone.rpartition("-")[0] == each.region)
        zones_of[each.region] = (each.zone,) if each.zone else tuple(zones)
        if not zones:
            problems.append(f"{each.region} does not offer {instance_type}.")
        elif each.zone is not None and each.zone not in zones:
            problems.append(f"{each.region} offers {instance_type} in {', '.join(zones)}, not in {each.zone}.")
        if regions[each.region].quota_status_warning.code:
            notes.append(f"The quotas of {each.region} cannot be read.")
    all_cpus = 0
    for region in dict.fromkeys(each.region for each in wanted):
        told, needed = {each.metric: each for each in regions[region].quotas}, Counter()
        for each in (each for each in of_lab if each.region == region):
            cpus = each.count * _cpus(types[each.instance_type], region)
            needed += _needed(each, cpus, told)
            all_cpus += cpus
        problems += _lacking(region, needed, told)
    # Hosts of each type have networks of their own.
    everywhere = {
        "CPUS_ALL_REGIONS": all_cpus,
        "NETWORKS": len(types),
        "SUBNETWORKS": len(of_lab),
        "FIREWALLS": 2 * len(types),
    }
    of_project = {each.metric: each for each in gcp.call("projects", "get").quotas}
    problems += _lacking("the project", everywhere, of_project)
    if problems:
        raise LabError(f"Nothing was launched: {' '.join(problems)}")
    image = _image(gcp, next(iter(types[instance_type].values())))
    sites = [
        Site(each, image.name, image.self_link, zones_of[each.region], f"10.{n // 256}.{n % 256}.0/24")
        for n, each in enumerate(wanted)
    ]
    return sites, notes


def _zones(gcp: Gcp, instance_type: str) -> dict[str, Any]:
    """The machine type by each zone that offers it."""
    offered = gcp.pages("machine_types", "aggregated_list", filter=f'name = "{instance_type}"')
    return {each.zone.rpartition("/")[2]: each for each in offered}


def _cpus(types: Mapping[str, Any], region: str) -> int:
    """Processors of a machine type, by the zones that offer it; 0 where none of the region's does."""
    return next((each.guest_cpus for zone, each in types.items() if zone.rpartition("-")[0] == region), 0)


def _needed(wanted: Wanted, cpus: int, told: Mapping[str, Any]) -> Counter:
    """What hosts of a region, with so many processors in all, take of the quotas that it tells."""
    family = wanted.instance_type.partition("-")[0]
    own = f"{family.upper()}_CPUS"
    return Counter(
        {
            own if family not in OF_ALL_FAMILIES and own in told else "CPUS": cpus,
            "INSTANCES": wanted.count,
            "IN_USE_ADDRESSES": wanted.count,
            "SSD_TOTAL_GB": wanted.count * (BOOT_GB + (wanted.volume_gb or 0)),
        }
    )


def _lacking(where: str, needed: Mapping[str, float], told: Mapping[str, Any]) -> list[str]:
    """Quotas that are too small; those that are not told are not checked."""
    return [
        f"{where}: {value:g} {name} are needed, {told[name].usage:g} of the quota of {told[name].limit:g} are in use; "
        "ask for more under IAM & Admin > Quotas."
        for name, value in needed.items()
        if name in told and told[name].usage + value > told[name].limit
    ]


def _image(gcp: Gcp, machine_type):
    family = IMAGE_FAMILIES.get(machine_type.architecture or "X86_64")
    if family is None:
        raise LabError(f"{machine_type.name} is {machine_type.architecture}; allowed: {', '.join(IMAGE_FAMILIES)}.")
    return gcp.call("images", "get_from_family", project=IMAGE_PROJECT, family=family)
