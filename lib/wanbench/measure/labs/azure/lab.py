"""The lab of rented hosts on Azure, which makes a resource group with a network, rules and hosts in each region."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from wanbench.checks import refusal
from wanbench.errors import LabError
from wanbench.measure.labs.rented.client import CloudError, too_small
from wanbench.measure.labs.rented.costs import Costs
from wanbench.measure.labs.rented.hosts import Instance, Order, Wanted, in_first_zone
from wanbench.measure.labs.rented.lab import RentedLab
from wanbench.measure.labs.rented.resources import everywhere

from .clients import Azure
from .teardown import AzureResources

PUBLISHER, OFFER = "Canonical", "ubuntu-24_04-lts"
BOOT_GB = 30  # Size of the boot disk, which is that of the image; Azure charges for 32 GB.
ENDS_HOSTS = "Microsoft.DevTestLab"  # The provider of schedules that stop hosts, after which Azure charges no longer.
PROVIDERS = ("Microsoft.Compute", "Microsoft.Network", ENDS_HOSTS)
# Error codes after which another zone may have capacity.
NO_CAPACITY = ("AllocationFailed", "ZonalAllocationFailed", "SkuNotAvailable")
NO_CAPACITY += ("OverconstrainedAllocationRequest", "OverconstrainedZonalAllocationRequest")
# Azure stops a host this long before the host's timer would power it off. For a host that Azure stopped, it charges
# only disks and address; for a host that powered itself off, as much as for a running one.
AHEAD_S = 120
DISK_TYPE = "StandardSSD_LRS"
NETWORK, RULES, SUBNET = "wanbench", "wanbench", "hosts"  # Names inside a resource group.


@dataclass(frozen=True)
class Site:
    """
    Where and from which image a region's hosts can be launched.

    `zones` are in order of preference, or (None,) if the region has no zones. `accelerated` says whether hosts can have
    accelerated networking, and `is_stopped` whether Azure can stop hosts in the region at a time set in advance.
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
        """Return the image's name, "publisher:offer:SKU:version"."""
        return f"{PUBLISHER}:{OFFER}:{self.image_sku}:{self.image_version}"


def charged_gb(size_gb: int) -> int:
    """
    Return the disk size that Azure charges for: the smallest of its sizes that is not below `size_gb`.

    >>> charged_gb(30), charged_gb(32), charged_gb(33)
    (32, 32, 64)
    """
    return max(4, 1 << (size_gb - 1).bit_length())


def survey(azure: Azure, wanted: Sequence[Wanted], alongside: Sequence[Wanted] = ()) -> tuple[list[Site], list[str]]:
    """
    Find out where the `wanted` hosts can be launched, without making anything; return a site per region, and notes.

    Hosts of combined labs, launched `alongside`, count towards the same quotas. A LabError names what is unavailable.
    """
    providers = {name: azure.call("resource", "providers", "get", name) for name in PROVIDERS}
    if off := [name for name, provider in providers.items() if provider.registration_state != "Registered"]:
        remedy = "`az provider register --namespace NAME` registers one. Nothing was launched."
        raise LabError(f"Providers that are not registered in the subscription: {', '.join(off)}; {remedy}")
    regions = _locations(providers["Microsoft.Compute"], "virtualMachines")
    if missing := [hosts.region for hosts in wanted if hosts.region not in regions]:
        raise LabError(f"Regions that Azure does not have: {', '.join(missing)}. Nothing was launched.")
    stopping = _locations(providers[ENDS_HOSTS], "schedules")
    of_lab = [*wanted, *alongside]
    surveyed = everywhere(lambda at: _survey_region(azure, at, wanted[at], of_lab, stopping), range(len(wanted)))
    if problems := [problem for problem in surveyed if isinstance(problem, str)]:
        raise LabError(f"Nothing was launched: {' '.join(problems)}")
    sites = [site for site in surveyed if isinstance(site, Site)]
    charged = "Azure cannot stop hosts; they power themselves off, but Azure then still charges."
    return sites, [f"In {site.wanted.region} {charged}" for site in sites if not site.is_stopped]


def _locations(provider: Any, kind: str) -> set[str]:
    """Return the regions where a provider has a kind of resource, from their display names such as "West Europe"."""
    return {
        place.replace(" ", "").lower()
        for resource_type in provider.resource_types
        if resource_type.resource_type.lower() == kind.lower()
        for place in resource_type.locations or []
    }


def _survey_region(
    azure: Azure, number: int, hosts: Wanted, of_lab: Sequence[Wanted], stopping: set[str]
) -> Site | str:
    """Return where a region's hosts can be launched, or a sentence that says why they cannot."""
    region, size = hosts.region, hosts.instance_type
    skus = azure.pages("compute", "resource_skus", "list", filter=f"location eq '{region}'")
    sizes = {sku.name: sku for sku in skus if sku.resource_type == "virtualMachines"}
    offered = sizes.get(size)
    if offered is None or any(limit.type == "Location" for limit in offered.restrictions or []):
        return f"{region} does not offer {size} to this subscription."
    zones = _zones(offered)
    if hosts.zone is not None and hosts.zone not in zones:
        return f"{region} offers {size} in the zones {', '.join(zones) or '(none)'}, not in {hosts.zone}."
    able = _capabilities(offered)
    if hosts.volume_gb and "SCSI" not in able.get("DiskControllerTypes", "SCSI"):
        return f"{size} attaches volumes only by NVMe, which a lab cannot mount; allowed: other sizes."
    if hosts.subnet and (problem := _subnet_problem(azure, hosts)):
        return problem
    here = [other for other in of_lab if other.region == region and other.instance_type in sizes]
    if lacking := _quotas_too_small(azure, here, sizes):
        return " ".join(lacking)
    sku = _image_sku(able)
    place = (region, PUBLISHER, OFFER, sku)
    versions = azure.call("compute", "virtual_machine_images", "list", *place, top=1, orderby="name desc")
    if not versions:
        return f"{region} has no image {PUBLISHER}:{OFFER}:{sku}."
    accelerated = able.get("AcceleratedNetworkingEnabled") == "True"
    chosen = (hosts.zone,) if hosts.zone else tuple(zones) or (None,)
    cidr = f"10.{number // 256}.{number % 256}.0/24"
    return Site(hosts, sku, versions[0].name, chosen, cidr, accelerated, region in stopping)


def _capabilities(sku: Any) -> dict[str, str]:
    return {capability.name: capability.value for capability in sku.capabilities or []}


def _subnet_problem(azure: Azure, wanted: Wanted) -> str | None:
    """Return why hosts cannot be in a subnet that should exist, or None if they can."""
    group, network, subnet = str(wanted.subnet).split("/")
    try:
        there = azure.call("network", "virtual_networks", "get", group, network)
    except CloudError as error:
        return f"{wanted.region}: the subnet {wanted.subnet} cannot be used: {error}."
    subnets = [other.name for other in there.properties.subnets or []]
    if there.location != wanted.region or subnet not in subnets:
        what = f"is in {there.location}, with the subnets {', '.join(subnets) or '(none)'}"
        return f"{wanted.region}: the subnet {wanted.subnet} cannot be used: its network {what}."
    return None


def _zones(sku: Any) -> list[str]:
    """Return the zones that offer a size to this subscription."""
    zones = {zone for info in sku.location_info or [] for zone in info.zones or []}
    limits = [limit.restriction_info.zones or [] for limit in sku.restrictions or [] if limit.type == "Zone"]
    return sorted(zones.difference(*limits))


def _image_sku(able: Mapping[str, str]) -> str:
    if able.get("CpuArchitectureType", "x64") == "Arm64":
        return "server-arm64"
    return "server" if "V2" in able.get("HyperVGenerations", "V1") else "server-gen1"


def _quotas_too_small(azure: Azure, here: Sequence[Wanted], sizes: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each quota of a region that is too small for all its hosts."""
    region, count, needed = here[0].region, sum(hosts.count for hosts in here), Counter()
    for hosts in here:
        cpus = hosts.count * int(_capabilities(sizes[hosts.instance_type])["vCPUs"])
        needed += Counter({"cores": cpus, sizes[hosts.instance_type].family: cpus})
    # Hosts of each size have a separate network.
    needed += Counter({"VirtualNetworks": len(here), "NetworkSecurityGroups": len(here)})
    of_host = ("virtualMachines", "NetworkInterfaces", "PublicIPAddresses", "StandardSkuPublicIpAddresses")
    needed.update(dict.fromkeys(of_host, count))
    usages = [*azure.pages("compute", "usage", "list", region), *azure.pages("network", "usages", "list", region)]
    used = {usage.name.value.lower(): (usage.current_value, usage.limit) for usage in usages}
    quotas = {name: used[name.lower()] for name in needed if name.lower() in used}
    return too_small(region, needed, quotas, "Quotas in the portal")


def group_name(run: str, region: str) -> str:
    """Return the name of a run's resource group in a region."""
    return f"wanbench-{run}-{region}"


def make_group(azure: Azure, site: Site, order: Order, operator: str) -> None:
    """
    Make the region's resource group and in it a network, which admits only SSH from `operator` (a CIDR).

    All other resources are made in this group, and are deleted with it. For hosts in an existing subnet no network is
    made; the rules then apply to their network interfaces.
    """
    group, place = group_name(order.tags.run, site.wanted.region), _place(site, order)
    azure.call("resource", "resource_groups", "create_or_update", group, place)
    # Azure's default rules, which are last, admit everything from the network and its peers; this rule precedes them.
    nobody = _rule(4096, ["0.0.0.0/0"], "*", "*") | {"access": "Deny"}
    ssh = {"name": "operator", "properties": _rule(100, [operator], "Tcp", "22")}
    rules = {**place, "properties": {"securityRules": [ssh, {"name": "nobody-else", "properties": nobody}]}}
    azure.call("network", "network_security_groups", "begin_create_or_update", group, RULES, rules)
    if site.wanted.subnet:
        return
    rules_id = azure.path(group, "Microsoft.Network/networkSecurityGroups", RULES)
    subnet = {"addressPrefix": site.cidr, "networkSecurityGroup": {"id": rules_id}}
    network = {"addressSpace": {"addressPrefixes": [site.cidr]}, "subnets": [{"name": SUBNET, "properties": subnet}]}
    network = {**place, "properties": network}
    azure.call("network", "virtual_networks", "begin_create_or_update", group, NETWORK, network)


def launch(azure: Azure, site: Site, order: Order, user: str) -> list[Instance]:
    """
    Launch the region's hosts in the first zone that has capacity for all of them; return them once they are running.
    """
    group, hosts = group_name(order.tags.run, site.wanted.region), []

    def launch_in(zone: str | None) -> None:
        names = [f"host-{zone or 'any'}-{number}" for number in range(site.wanted.count)]
        made = everywhere(lambda name: _make_host(azure, site, order, user, zone, name), names)
        if lacking := [error for error in made if isinstance(error, CloudError)]:
            everywhere(lambda name: _drop_host(azure, group, name), names)
            raise lacking[0]
        hosts.extend(made)

    in_first_zone(site.zones, launch_in, site.wanted, NO_CAPACITY)
    return hosts


def let_in(azure: Azure, site: Site, run: str, addresses: Sequence[str]) -> None:
    """Make the region's hosts admit all traffic from these addresses."""
    rule = {"properties": _rule(110, [f"{address}/32" for address in addresses], "*", "*")}
    group = group_name(run, site.wanted.region)
    azure.call("network", "security_rules", "begin_create_or_update", group, RULES, "hosts", rule)


def peer(azure: Azure, site: Site, other: Site, run: str) -> None:
    """Peer the region's network with another, in one direction, so that hosts reach each other's private addresses."""
    group, far = group_name(run, site.wanted.region), group_name(run, other.wanted.region)
    far_id = azure.path(far, "Microsoft.Network/virtualNetworks", NETWORK)
    peering = {"properties": {"remoteVirtualNetwork": {"id": far_id}, "allowVirtualNetworkAccess": True}}
    where = (group, NETWORK, f"to-{other.wanted.region}")
    azure.call("network", "virtual_network_peerings", "begin_create_or_update", *where, peering)


def _make_host(azure: Azure, site: Site, order: Order, user: str, zone: str | None, name: str) -> Instance | CloudError:
    """
    Make a host, and wait until it is running; return its `Instance`, or the CloudError if there is no capacity for it.
    """
    group, place = group_name(order.tags.run, site.wanted.region), _place(site, order)
    wish = {**place, "sku": {"name": "Standard"}, "properties": {"publicIPAllocationMethod": "Static"}}
    public = azure.call("network", "public_ip_addresses", "begin_create_or_update", group, name, wish)
    where = site.wanted.subnet.split("/") if site.wanted.subnet else (group, NETWORK, SUBNET)
    subnet = azure.path(where[0], "Microsoft.Network/virtualNetworks", where[1], "subnets", where[2])
    inside = {"subnet": {"id": subnet}, "publicIPAddress": {"id": public.id}}
    properties: dict[str, Any] = {"ipConfigurations": [{"name": "inside", "properties": inside}]}
    properties["enableAcceleratedNetworking"] = site.accelerated
    if site.wanted.subnet:
        rules = azure.path(group, "Microsoft.Network/networkSecurityGroups", RULES)
        properties["networkSecurityGroup"] = {"id": rules}
    wish = {**place, "properties": properties}
    interface = azure.call("network", "network_interfaces", "begin_create_or_update", group, name, wish)
    host = {**place, "properties": _properties(site, order, user, name, interface.id)}
    if zone:
        host["zones"] = [zone]
    try:
        azure.call("compute", "virtual_machines", "begin_create_or_update", group, name, host)
    except CloudError as error:
        if error.code in NO_CAPACITY:
            return error
        raise
    if site.is_stopped:
        _stop_later(azure, site, order, group, name)
    private_address = interface.properties.ip_configurations[0].properties.private_ip_address
    return Instance(name, site.wanted.region, zone or "", public.properties.ip_address, private_address)


def _stop_later(azure: Azure, site: Site, order: Order, group: str, name: str) -> None:
    """Make Azure stop a host `AHEAD_S` before it expires; the schedule is daily, and hosts expire within a day."""
    at = order.tags.expires_at.astimezone(UTC) - timedelta(seconds=AHEAD_S)
    properties = {
        "status": "Enabled",
        "taskType": "ComputeVmShutdownTask",
        "dailyRecurrence": {"time": max(at, datetime.now(UTC) + timedelta(minutes=1)).strftime("%H%M")},
        "timeZoneId": "UTC",
        "notificationSettings": {"status": "Disabled"},
        "targetResourceId": azure.path(group, "Microsoft.Compute/virtualMachines", name),
    }
    path = azure.path(group, "Microsoft.DevTestLab/schedules", f"shutdown-computevm-{name}")
    schedule = {**_place(site, order), "properties": properties}
    azure.call("resource", "resources", "begin_create_or_update_by_id", path, schedule, api_version="2018-09-15")


def _drop_host(azure: Azure, group: str, name: str) -> None:
    """Delete a host that did not start, with its interface and address, because they all count towards quotas."""
    azure.call("compute", "virtual_machines", "begin_delete", group, name, force_deletion=True)
    azure.call("network", "network_interfaces", "begin_delete", group, name)
    azure.call("network", "public_ip_addresses", "begin_delete", group, name)


def _properties(site: Site, order: Order, user: str, name: str, interface: str) -> dict[str, Any]:
    image = {"publisher": PUBLISHER, "offer": OFFER, "sku": site.image_sku, "version": site.image_version}
    public_key = {"path": f"/home/{user}/.ssh/authorized_keys", "keyData": order.public_key}
    disks: dict[str, Any] = {"imageReference": image, "osDisk": {"name": f"{name}-boot", **_disk("FromImage", BOOT_GB)}}
    if size_gb := site.wanted.volume_gb:
        disks["dataDisks"] = [{"lun": 0, "name": f"{name}-volume", **_disk("Empty", size_gb)}]
    return {
        "hardwareProfile": {"vmSize": site.wanted.instance_type},
        "storageProfile": disks,
        "osProfile": {
            "computerName": name,
            "adminUsername": user,
            "customData": base64.b64encode(order.first_start.encode()).decode(),
            "linuxConfiguration": {"disablePasswordAuthentication": True, "ssh": {"publicKeys": [public_key]}},
        },
        "networkProfile": {"networkInterfaces": [{"id": interface, "properties": {"primary": True}}]},
    }


def _place(site: Site, order: Order) -> dict[str, Any]:
    return {"location": site.wanted.region, "tags": order.tags.values()}


def _disk(made: str, size_gb: int) -> dict[str, Any]:
    managed = {"storageAccountType": DISK_TYPE}
    return {"createOption": made, "diskSizeGB": size_gb, "deleteOption": "Delete", "managedDisk": managed}


def _rule(priority: int, sources: Sequence[str], protocol: str, ports: str) -> dict[str, Any]:
    source = {"sourceAddressPrefixes": list(sources), "sourcePortRange": "*"}
    target = {"destinationAddressPrefix": "*", "destinationPortRange": ports}
    return {"priority": priority, "direction": "Inbound", "access": "Allow", "protocol": protocol, **source, **target}


class AzureLab(RentedLab):
    """
    Hosts on Azure; see `RentedLab`.

    The hosts run Ubuntu 24.04, volumes are standard SSDs, and zones are "1", "2" and "3". An existing subnet is given
    as "GROUP/NETWORK/SUBNET", so that manifests do not contain the subscription. A run makes a resource group in each
    region; with `private_addresses`, their networks are peered. Azure stops a host when its `ttl_s` is over. Raise
    LabError if the extra "azure" is not installed.
    """

    kind, user = "azure", "wanbench"
    packages = ("iperf3", "iputils-ping", "nftables", "sysstat", "openjdk-21-jre-headless", "python3-venv")
    takes_subnets, volume_device = True, "/dev/disk/azure/scsi1/lun0"
    client_class, resources_class, survey = Azure, AzureResources, staticmethod(survey)

    def __init__(self, *arguments: Any, **options: Any):
        for subnet in (options.get("subnets") or {}).values():
            if subnet.count("/") != 2:
                raise refusal("subnets", subnet, "GROUP/NETWORK/SUBNET")
        super().__init__(*arguments, **options)

    def costs(self, *, volume_gb: int | None, **wanted: Any) -> Costs:
        """
        Return the costs of the wanted hosts, as `RentedLab.costs` does, with the boot disk at the price of a volume.
        """
        return Costs(volume_gb=charged_gb(BOOT_GB) + (charged_gb(volume_gb) if volume_gb else 0), **wanted)

    def launch(self, site: Site, order: Order) -> list[Instance]:
        make_group(self.client, site, order, self.operator)
        return launch(self.client, site, order, self.user)

    def let_in(self, order: Order, addresses: Sequence[str]) -> None:
        def work(site: Site) -> None:
            let_in(self.client, site, order.tags.run, addresses)
            for other in self.sites if self.private_addresses else ():
                if other != site:
                    peer(self.client, site, other, order.tags.run)

        everywhere(work, self.sites)
