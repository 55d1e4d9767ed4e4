"""Launching hosts: in each region a resource group, and in it a network, its rules, and the hosts."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from wanbench.errors import LabError
from wanbench.measure.labs.rented.hosts import Instance, Order
from wanbench.measure.labs.rented.resources import everywhere

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
Azure stops a host this long before the host's own timer would power it off. Azure charges for a host that
powered itself off as if it ran, but for one that Azure stopped only its disks and its address.
"""
SCHEDULES_VERSION = "2018-09-15"
DISK_TYPE = "StandardSSD_LRS"
NETWORK, RULES, SUBNET = "wanbench", "wanbench", "hosts"
"""Names inside a resource group."""


def group_name(run: str, region: str) -> str:
    """The resource group of a run in a region."""
    return f"wanbench-{run}-{region}"


def make_group(azure: Azure, site: Site, order: Order, operator: str) -> None:
    """
    Make the region's resource group and in it a network, closed to all but SSH from `operator` (a CIDR).

    All that follows is in this group, and goes with it. Hosts in a subnet that exists have the rules on their own
    interfaces instead.
    """
    region, tags = site.wanted.region, order.tags.values()
    group = group_name(order.tags.run, region)
    place = {"location": region, "tags": tags}
    azure.call("resource", "resource_groups", "create_or_update", group, place)
    # Azure's own last rules let in all of the network and what is joined to it; this one comes before them.
    nobody = _rule(4096, ["0.0.0.0/0"], "*", "*") | {"access": "Deny"}
    named = {"operator": _rule(100, [operator], "Tcp", "22"), "nobody-else": nobody}
    listed = [{"name": name, "properties": rule} for name, rule in named.items()]
    rules = {**place, "properties": {"securityRules": listed}}
    azure.call("network", "network_security_groups", "begin_create_or_update", group, RULES, rules)
    if site.wanted.subnet:
        return
    subnet = {
        "addressPrefix": site.cidr,
        "networkSecurityGroup": {"id": azure.path(group, "Microsoft.Network/networkSecurityGroups", RULES)},
    }
    network = {"addressSpace": {"addressPrefixes": [site.cidr]}, "subnets": [{"name": SUBNET, "properties": subnet}]}
    whole = {**place, "properties": network}
    azure.call("network", "virtual_networks", "begin_create_or_update", group, NETWORK, whole)


def launch(azure: Azure, site: Site, order: Order, user: str) -> list[Instance]:
    """
    Launch the region's hosts in the first zone that has them all, and return them once they run. LabError tells what
    each zone said if none has.
    """
    group, told = group_name(order.tags.run, site.wanted.region), []
    for zone in site.zones:
        names = [f"host-{zone or 'any'}-{number}" for number in range(site.wanted.count)]
        made = everywhere(lambda name, zone=zone: _make_host(azure, site, order, user, zone, name), names)
        if not (lacking := [each for each in made if isinstance(each, AzureError)]):
            return made
        told.append(f"{f'Zone {zone}' if zone else 'All of it'}: {lacking[0]}")
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


def _make_host(azure: Azure, site: Site, order: Order, user: str, zone: str | None, name: str):
    """Make a host and wait until it runs: an `Instance`, or the error if there is no capacity for it."""
    region, tags = site.wanted.region, order.tags.values()
    group, place = group_name(order.tags.run, region), {"location": region, "tags": tags}
    wish = {**place, "sku": {"name": "Standard"}, "properties": {"publicIPAllocationMethod": "Static"}}
    public = azure.call("network", "public_ip_addresses", "begin_create_or_update", group, name, wish)
    where = site.wanted.subnet.split("/") if site.wanted.subnet else (group, NETWORK, SUBNET)
    subnet = azure.path(where[0], "Microsoft.Network/virtualNetworks", where[1], "subnets", where[2])
    inside = {"subnet": {"id": subnet}, "publicIPAddress": {"id": public.id}}
    wish = {**place, "properties": {"ipConfigurations": [{"name": "inside", "properties": inside}]}}
    wish["properties"]["enableAcceleratedNetworking"] = site.accelerated
    if site.wanted.subnet:
        rules = azure.path(group, "Microsoft.Network/networkSecurityGroups", RULES)
        wish["properties"]["networkSecurityGroup"] = {"id": rules}
    interface = azure.call("network", "network_interfaces", "begin_create_or_update", group, name, wish)
    host = {**place, "properties": _properties(site, order, user, name, interface.id)}
    if zone:
        host["zones"] = [zone]
    try:
        azure.call("compute", "virtual_machines", "begin_create_or_update", group, name, host)
    except AzureError as error:
        if error.code in NO_CAPACITY:
            return error
        raise
    if site.is_stopped:
        _stop_later(azure, site, order, group, name)
    private_address = interface.properties.ip_configurations[0].properties.private_ip_address
    return Instance(name, region, zone or "", public.properties.ip_address, private_address)


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
    """Delete a host that did not start, and what was made for it: all of it counts towards quotas."""
    azure.call("compute", "virtual_machines", "begin_delete", group, name, force_deletion=True)
    azure.call("network", "network_interfaces", "begin_delete", group, name)
    azure.call("network", "public_ip_addresses", "begin_delete", group, name)


def _properties(site: Site, order: Order, user: str, name: str, interface: str) -> dict:
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
            "linuxConfiguration": {"disablePasswordAuthentication": True, "ssh": {"publicKeys": [public_key]}},
        },
        "networkProfile": {"networkInterfaces": [{"id": interface, "properties": {"primary": True}}]},
    }


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
