"""Launching hosts: in each region a resource group, and in it a network, its rules, and the hosts."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from ...errors import LabError
from ..rented.estate import everywhere
from ..rented.hosts import Instance, Order
from .clients import Azure, AzureError
from .preflight import BOOT_GB, OFFER, PUBLISHER, Site

NO_CAPACITY = (
    "AllocationFailed",
    "OverconstrainedAllocationRequest",
    "OverconstrainedZonalAllocationRequest",
    "SkuNotAvailable",
    "ZonalAllocationFailed",
)
"""Errors after which another zone may have what this one lacks."""
AHEAD_S = 120
"""
Azure stops a host so long before the host's own timer would power it off: for one that has powered itself off Azure
charges as if it ran, for one that Azure has stopped only its disks and its address.
"""
SCHEDULES_VERSION = "2018-09-15"
NETWORK_VERSION = "2022-11-01"
"""Of the network interfaces that come with a host."""
DISK_TYPE = "StandardSSD_LRS"
NETWORK, RULES, SUBNET = "wanbench", "wanbench", "hosts"
"""Names inside a resource group."""


def group_name(run: str, region: str) -> str:
    """
    The resource group of a run in a region.

    >>> group_name("0123456789abcdef", "westeurope")
    'wanbench-0123456789abcdef-westeurope'
    """
    return f"wanbench-{run}-{region}"


def make_group(azure: Azure, site: Site, order: Order, operator: str) -> None:
    """
    Make the region's resource group and in it a network, closed to all but SSH from `operator` (a CIDR).

    All that follows is in this group, and goes with it.
    """
    region, tags = site.wanted.region, order.tags.values()
    group = group_name(order.tags.run, region)
    place = {"location": region, "tags": tags}
    azure.call("resource", "resource_groups", "create_or_update", group, place)
    rule = _rule(100, [operator], "Tcp", "22")
    rules = {**place, "properties": {"securityRules": [{"name": "operator", "properties": rule}]}}
    azure.call("network", "network_security_groups", "begin_create_or_update", group, RULES, rules)
    subnet = {
        "addressPrefix": site.cidr,
        "networkSecurityGroup": {"id": azure.path(group, "Microsoft.Network/networkSecurityGroups", RULES)},
    }
    network = {
        "addressSpace": {"addressPrefixes": [site.cidr]},
        "subnets": [{"name": SUBNET, "properties": subnet}],
    }
    whole = {**place, "properties": network}
    azure.call("network", "virtual_networks", "begin_create_or_update", group, NETWORK, whole)


def launch(azure: Azure, site: Site, order: Order, user: str) -> list[Instance]:
    """
    Launch the region's hosts, in the first zone that has them all, and return them once they run.

    Raises
    ------
    LabError
        No zone has the capacity; names what each said.
    """
    group, told = group_name(order.tags.run, site.wanted.region), []
    for zone in site.zones:
        names = [f"host-{zone or 'any'}-{number}" for number in range(site.wanted.count)]
        asked = everywhere(lambda name, zone=zone: _make_host(azure, site, order, user, zone, name), names)
        if not (lacking := [text for text in asked if text]):
            return _instances(azure, site, group, zone or "", names)
        told.append(f"{f'zone {zone}' if zone else 'the region'}: {lacking[0]}")
        everywhere(lambda name: _drop_host(azure, group, name), names)
    raise LabError(f"{site.wanted.region} has no capacity. {' '.join(told)}")


def let_in(azure: Azure, site: Site, run: str, addresses: Sequence[str]) -> None:
    """Open the region's hosts to these addresses."""
    rule = {"properties": _rule(110, [f"{address}/32" for address in addresses], "*", "*")}
    group = group_name(run, site.wanted.region)
    azure.call("network", "security_rules", "begin_create_or_update", group, RULES, "hosts", rule)


def join(azure: Azure, site: Site, run: str, others: Sequence[Site]) -> None:
    """Peer the region's network with those of others, so that private addresses are reached; one way."""
    for other in others:
        far = group_name(run, other.wanted.region)
        properties = {
            "remoteVirtualNetwork": {"id": azure.path(far, "Microsoft.Network/virtualNetworks", NETWORK)},
            "allowVirtualNetworkAccess": True,
        }
        azure.call(
            "network",
            "virtual_network_peerings",
            "begin_create_or_update",
            group_name(run, site.wanted.region),
            NETWORK,
            f"to-{other.wanted.region}",
            {"properties": properties},
        )


def _make_host(azure: Azure, site: Site, order: Order, user: str, zone: str | None, name: str) -> str | None:
    """Make a host and wait until it runs; if there is no capacity for it, what Azure says."""
    group = group_name(order.tags.run, site.wanted.region)
    host = {
        "location": site.wanted.region,
        "tags": order.tags.values(),
        "properties": _properties(azure, site, order, user, group, name),
    }
    if zone:
        host["zones"] = [zone]
    try:
        azure.call("compute", "virtual_machines", "begin_create_or_update", group, name, host)
    except AzureError as error:
        if error.code in NO_CAPACITY:
            return str(error)
        raise
    if site.is_stopped:
        _stop_later(azure, site, order, group, name)
    return None


def _stop_later(azure: Azure, site: Site, order: Order, group: str, name: str) -> None:
    """Have Azure stop a host before its time is over: daily at that minute, the first time within a day."""
    at = order.tags.expires_at.astimezone(UTC) - timedelta(seconds=AHEAD_S)
    schedule = {
        "location": site.wanted.region,
        "tags": order.tags.values(),
        "properties": {
            "status": "Enabled",
            "taskType": "ComputeVmShutdownTask",
            "dailyRecurrence": {"time": max(at, datetime.now(UTC) + timedelta(minutes=1)).strftime("%H%M")},
            "timeZoneId": "UTC",
            "notificationSettings": {"status": "Disabled"},
            "targetResourceId": azure.path(group, "Microsoft.Compute/virtualMachines", name),
        },
    }
    path = azure.path(group, "Microsoft.DevTestLab/schedules", f"shutdown-computevm-{name}")
    version = SCHEDULES_VERSION
    azure.call("resource", "resources", "begin_create_or_update_by_id", path, schedule, api_version=version)


def _drop_host(azure: Azure, group: str, name: str) -> None:
    """Delete a host that did not start, and with it what was made for it: it counts towards quotas."""
    try:
        azure.call("compute", "virtual_machines", "begin_delete", group, name, force_deletion=True)
    except AzureError as error:
        if error.status != 404:
            raise


def _instances(azure: Azure, site: Site, group: str, zone: str, names: Sequence[str]) -> list[Instance]:
    addresses = {
        each.id.lower(): each.properties.ip_address
        for each in azure.pages("network", "public_ip_addresses", "list", group)
    }
    found = {}
    for each in azure.pages("network", "network_interfaces", "list", group):
        if each.properties.virtual_machine:
            inside = each.properties.ip_configurations[0].properties
            public = addresses.get(inside.public_ip_address.id.lower())
            found[each.properties.virtual_machine.id.rpartition("/")[2]] = (public, inside.private_ip_address)
    if without := [name for name in names if not all(found.get(name, [None]))]:
        raise LabError(f"Hosts in {site.wanted.region} have no address: {', '.join(without)}.")
    return [Instance(name, site.wanted.region, zone, *found[name]) for name in names]


def _properties(azure: Azure, site: Site, order: Order, user: str, group: str, name: str) -> dict:
    image = {"publisher": PUBLISHER, "offer": OFFER, "sku": site.image_sku, "version": site.image_version}
    public_key = {"path": f"/home/{user}/.ssh/authorized_keys", "keyData": order.public_key}
    disks = {"imageReference": image, "osDisk": {"name": f"{name}-boot", **_disk("FromImage", BOOT_GB)}}
    if size_gb := site.wanted.volume_gb:
        disks["dataDisks"] = [{"lun": 0, "name": f"{name}-volume", **_disk("Empty", size_gb)}]
    return {
        "hardwareProfile": {"vmSize": site.wanted.instance_type},
        "storageProfile": disks,
        "osProfile": {
            "computerName": name,
            "adminUsername": user,
            "customData": base64.b64encode(order.first_start.encode()).decode(),
            "linuxConfiguration": {
                "disablePasswordAuthentication": True,
                "ssh": {"publicKeys": [public_key]},
            },
        },
        "networkProfile": {
            "networkApiVersion": NETWORK_VERSION,
            "networkInterfaceConfigurations": [_interface(azure, site, group, name)],
        },
    }


def _interface(azure: Azure, site: Site, group: str, name: str) -> dict:
    """A network interface with a public address, which come and go with their host."""
    address = {
        "name": f"{name}-address",
        "sku": {"name": "Standard", "tier": "Regional"},
        "properties": {"publicIPAllocationMethod": "Static", "deleteOption": "Delete"},
    }
    subnet = azure.path(group, "Microsoft.Network/virtualNetworks", NETWORK, "subnets", SUBNET)
    inside = {"primary": True, "subnet": {"id": subnet}, "publicIPAddressConfiguration": address}
    properties = {
        "primary": True,
        "deleteOption": "Delete",
        "enableAcceleratedNetworking": site.accelerated,
        "ipConfigurations": [{"name": "inside", "properties": inside}],
    }
    return {"name": f"{name}-interface", "properties": properties}


def _disk(made: str, size_gb: int) -> dict:
    return {
        "createOption": made,
        "diskSizeGB": size_gb,
        "deleteOption": "Delete",
        "managedDisk": {"storageAccountType": DISK_TYPE},
    }


def _rule(priority: int, sources: Sequence[str], protocol: str, ports: str) -> dict:
    return {
        "priority": priority,
        "direction": "Inbound",
        "access": "Allow",
        "protocol": protocol,
        "sourceAddressPrefixes": list(sources),
        "sourcePortRange": "*",
        "destinationAddressPrefix": "*",
        "destinationPortRange": ports,
    }
