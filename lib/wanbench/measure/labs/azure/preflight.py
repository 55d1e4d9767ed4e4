"""What is found out before anything is launched: regions, zones that have the size, the image, and quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wanbench.errors import LabError
from wanbench.measure.labs.rented.hosts import Wanted
from wanbench.measure.labs.rented.resources import everywhere

from .clients import Azure, AzureError

PUBLISHER, OFFER = "Canonical", "ubuntu-24_04-lts"
BOOT_GB = 30
"""Size of the disk from which a host starts: that of the image; Azure charges for 32 GB."""
ENDS_HOSTS = "Microsoft.DevTestLab"
"""The provider whose schedules stop hosts so that Azure no longer charges for them."""
PROVIDERS = ("Microsoft.Compute", "Microsoft.Network", ENDS_HOSTS)


@dataclass(frozen=True)
class Site:
    """
    Where the hosts of a region can be launched: zones, the first choice first, None where the region has none.

    `image_version` is of `image_sku`; `accelerated` is whether the size's network interface can be given to the host
    itself; `is_stopped` is whether Azure can stop hosts there at a given time.
    """

    wanted: Wanted
    image_sku: str
    image_version: str
    zones: tuple[str | None, ...]
    cidr: str
    accelerated: bool
    is_stopped: bool

    @property
    def image(self) -> str:
        """The image's name."""
        return f"{PUBLISHER}:{OFFER}:{self.image_sku}:{self.image_version}"


def survey(azure: Azure, wanted: Sequence[Wanted], alongside: Sequence[Wanted] = ()) -> tuple[list[Site], list[str]]:
    """
    Where everything can be launched, and notes; see `RentedLab.survey`. Hosts that are launched `alongside` are in the
    same quotas.
    """
    providers = {name: azure.call("resource", "providers", "get", name) for name in PROVIDERS}
    if off := [name for name, told in providers.items() if told.registration_state != "Registered"]:
        raise LabError(
            f"Providers that the subscription has not registered: {', '.join(off)}; `az provider register "
            "--namespace NAME` does, once. Nothing was launched."
        )
    regions = _locations(providers["Microsoft.Compute"], "virtualMachines")
    if missing := [each.region for each in wanted if each.region not in regions]:
        raise LabError(f"Regions that Azure does not have: {', '.join(missing)}. Nothing was launched.")
    stopping = _locations(providers[ENDS_HOSTS], "schedules")
    of_lab = [*wanted, *alongside]
    looked = everywhere(lambda each: _survey_region(azure, *each, of_lab, stopping), list(enumerate(wanted)))
    if problems := [each for each in looked if isinstance(each, str)]:
        raise LabError(f"Nothing was launched: {' '.join(problems)}")
    notes = [
        f"In {each.wanted.region} nothing but the hosts themselves ends them; Azure charges for hosts that are off."
        for each in looked
        if not each.is_stopped
    ]
    return looked, notes


def _locations(provider: Any, kind: str) -> set[str]:
    """Regions where a provider has a kind of resource; it tells them as displayed: "West Europe"."""
    return {
        place.replace(" ", "").lower()
        for each in provider.resource_types
        if each.resource_type.lower() == kind.lower()
        for place in each.locations or []
    }


def _survey_region(azure: Azure, number: int, each: Wanted, of_lab: Sequence[Wanted], stopping: set[str]) -> Site | str:
    """Where a region's hosts can be launched, or why they cannot."""
    region, size = each.region, each.instance_type
    skus = azure.pages("compute", "resource_skus", "list", filter=f"location eq '{region}'")
    sizes = {sku.name: sku for sku in skus if sku.resource_type == "virtualMachines"}
    found = sizes.get(size)
    if found is None or any(limit.type == "Location" for limit in found.restrictions or []):
        return f"{region} does not offer {size} to this subscription."
    zones = _zones(found)
    if each.zone is not None and each.zone not in zones:
        return f"{region} offers {size} in the zones {', '.join(zones) or '(none)'}, not in {each.zone}."
    able = _able(found)
    if each.volume_gb and "SCSI" not in able.get("DiskControllerTypes", "SCSI"):
        return f"{size} has volumes by NVMe only, which a lab does not mount; allowed: other sizes."
    if each.subnet and (problem := _subnet_problem(azure, each)):
        return problem
    here = [other for other in of_lab if other.region == region and other.instance_type in sizes]
    if lacking := _lacking_in(azure, here, sizes):
        return " ".join(lacking)
    sku = _image_sku(able)
    versions = azure.call(
        "compute", "virtual_machine_images", "list", region, PUBLISHER, OFFER, sku, top=1, orderby="name desc"
    )
    if not versions:
        return f"{region} has no image {PUBLISHER}:{OFFER}:{sku}."
    return Site(
        each,
        sku,
        versions[0].name,
        (each.zone,) if each.zone else tuple(zones) or (None,),
        f"10.{number // 256}.{number % 256}.0/24",
        able.get("AcceleratedNetworkingEnabled") == "True",
        region in stopping,
    )


def _able(sku: Any) -> dict[str, str]:
    return {capability.name: capability.value for capability in sku.capabilities or []}


def _subnet_problem(azure: Azure, wanted: Wanted) -> str | None:
    """Why hosts cannot be in a subnet that should exist; None if they can."""
    group, network, subnet = wanted.subnet.split("/")
    try:
        found = azure.call("network", "virtual_networks", "get", group, network)
    except AzureError as error:
        return f"{wanted.region}: the subnet {wanted.subnet} cannot be used: {error}."
    there = [each.name for each in found.properties.subnets or []]
    if found.location != wanted.region or subnet not in there:
        what = f"is in {found.location}, with the subnets {', '.join(there) or '(none)'}"
        return f"{wanted.region}: the subnet {wanted.subnet} cannot be used: its network {what}."
    return None


def _zones(sku: Any) -> list[str]:
    """Zones that offer a size to this subscription."""
    there = {zone for info in sku.location_info or [] for zone in info.zones or []}
    for limit in sku.restrictions or []:
        if limit.type == "Zone":
            there -= set(limit.restriction_info.zones or [])
    return sorted(there)


def _image_sku(able: Mapping[str, str]) -> str:
    if able.get("CpuArchitectureType", "x64") == "Arm64":
        return "server-arm64"
    return "server" if "V2" in able.get("HyperVGenerations", "V1") else "server-gen1"


def _lacking_in(azure: Azure, here: Sequence[Wanted], sizes: Mapping[str, Any]) -> list[str]:
    """Quotas of a region that are too small for all its hosts; those that are not told are not checked."""
    region, hosts, needed = here[0].region, sum(each.count for each in here), Counter()
    for each in here:
        cpus = each.count * int(_able(sizes[each.instance_type])["vCPUs"])
        needed += Counter({"cores": cpus, sizes[each.instance_type].family: cpus})
    # Hosts of each size have a network of their own.
    needed += Counter({"VirtualNetworks": len(here), "NetworkSecurityGroups": len(here)})
    for name in ("virtualMachines", "NetworkInterfaces", "PublicIPAddresses", "StandardSkuPublicIpAddresses"):
        needed[name] = hosts
    told = [*azure.pages("compute", "usage", "list", region), *azure.pages("network", "usages", "list", region)]
    used = {each.name.value.lower(): each for each in told}
    return [
        f"{region}: {value} {name} are needed, {each.current_value} of the quota of {each.limit} are in use; "
        "ask for more under Quotas in the portal."
        for name, value in needed.items()
        if (each := used.get(name.lower())) is not None and each.current_value + value > each.limit
    ]
