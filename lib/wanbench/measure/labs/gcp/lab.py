"""The lab of rented hosts on Google Cloud, which makes a network with rules, and a subnet and hosts in each region."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from wanbench.errors import LabError
from wanbench.measure.labs.rented.client import CloudError, too_small
from wanbench.measure.labs.rented.costs import Costs
from wanbench.measure.labs.rented.hosts import Instance, Order, Wanted, in_first_zone, once_running
from wanbench.measure.labs.rented.lab import RentedLab
from wanbench.measure.labs.rented.resources import Tags

from .clients import LABEL, Gcp, description, last, name
from .teardown import GcpResources

IMAGE_PROJECT = "ubuntu-os-cloud"
# Google's own name for the newest image of Ubuntu 24.04 by the architecture of a machine type.
IMAGE_FAMILIES = {"X86_64": "ubuntu-2404-lts-amd64", "ARM64": "ubuntu-2404-lts-arm64"}
BOOT_GB = 10
# Families of machine types whose processors count towards the quota CPUS; others have separate quotas.
SHARED_QUOTA = ("e2", "f1", "g1", "n1")
# Error codes after which another zone may have capacity.
NO_CAPACITY = ("ZONE_RESOURCE_POOL_EXHAUSTED", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "STOCKOUT")
# Google deletes a host this long before the host's timer would power it off, because disks of hosts that are off cost.
AHEAD_S = 120
DISK_TYPE = "pd-balanced"
VOLUME_NAME = "wanbench"  # Name of the volume's device on a host.
# Google's agent on the host must not replace the host key that cloud-init sets.
GUEST_AGENT = {"/etc/default/instance_configs.cfg": "[InstanceSetup]\nset_host_keys = false\n"}


@dataclass(frozen=True)
class Site:
    """
    Where and from which image a region's hosts can be launched. `zones` are in order of preference; `image_link` is the
    image's name in calls of the API.
    """

    wanted: Wanted
    image: str
    image_link: str
    zones: tuple[str, ...]
    cidr: str


def survey(gcp: Gcp, wanted: Sequence[Wanted], alongside: Sequence[Wanted] = ()) -> tuple[list[Site], list[str]]:
    """
    Find out where the `wanted` hosts can be launched, without making anything; return a site per region, and notes.

    Hosts of combined labs, launched `alongside`, count towards the same quotas. A LabError names what is unavailable.
    """
    regions = {region.name: region for region in gcp.pages("regions", "list")}
    up = [name for name, region in regions.items() if region.status == "UP"]
    if off := [hosts.region for hosts in wanted if hosts.region not in up]:
        message = f"Regions that Google Cloud does not have, or that are down: {', '.join(off)}. Nothing was launched."
        raise LabError(message)
    of_lab = [*wanted, *alongside]
    types = {name: _zones(gcp, name) for name in dict.fromkeys(hosts.instance_type for hosts in of_lab)}
    instance_type = wanted[0].instance_type
    problems, notes, zones_of = [], [], {}
    for hosts in wanted:
        zones = sorted(zone for zone in types[instance_type] if zone.rpartition("-")[0] == hosts.region)
        zones_of[hosts.region] = (hosts.zone,) if hosts.zone else tuple(zones)
        if not zones:
            problems.append(f"{hosts.region} does not offer {instance_type}.")
        elif hosts.zone is not None and hosts.zone not in zones:
            problems.append(f"{hosts.region} offers {instance_type} in {', '.join(zones)}, not in {hosts.zone}.")
        if regions[hosts.region].quota_status_warning.code:
            notes.append(f"The quotas of {hosts.region} cannot be read and were not checked.")
    all_cpus = 0
    for region in dict.fromkeys(hosts.region for hosts in wanted):
        quotas, needed = _quotas(regions[region]), Counter()
        for hosts in of_lab:
            if hosts.region == region:
                offers = [
                    offer for zone, offer in types[hosts.instance_type].items() if zone.rpartition("-")[0] == region
                ]
                cpus = hosts.count * offers[0].guest_cpus if offers else 0
                needed += _needed(hosts, cpus, quotas)
                all_cpus += cpus
        problems += too_small(region, needed, quotas, "IAM & Admin > Quotas")
    # Hosts of each type have separate networks.
    networks = {"NETWORKS": len(types), "SUBNETWORKS": len(of_lab), "FIREWALLS": 2 * len(types)}
    of_project = networks | {"CPUS_ALL_REGIONS": all_cpus}
    problems += too_small("the project", of_project, _quotas(gcp.call("projects", "get")), "IAM & Admin > Quotas")
    if problems:
        raise LabError(f"Nothing was launched: {' '.join(problems)}")
    image = _image(gcp, next(iter(types[instance_type].values())))
    sites = [
        Site(hosts, image.name, image.self_link, zones_of[hosts.region], f"10.{n // 256}.{n % 256}.0/24")
        for n, hosts in enumerate(wanted)
    ]
    return sites, notes


def _zones(gcp: Gcp, instance_type: str) -> dict[str, Any]:
    """Return the description of a machine type in each zone that offers it, by zone."""
    offered = gcp.pages("machine_types", "aggregated_list", filter=f'name = "{instance_type}"')
    return {last(offer.zone): offer for offer in offered}


def _quotas(described: Any) -> dict[str, tuple[float, float]]:
    return {quota.metric: (quota.usage, quota.limit) for quota in described.quotas}


def _needed(wanted: Wanted, cpus: int, quotas: Mapping[str, object]) -> Counter[str]:
    """Return how much of each quota the hosts of a region need; they have `cpus` processors in all."""
    family = wanted.instance_type.partition("-")[0]
    own = f"{family.upper()}_CPUS"
    return Counter(
        {
            own if family not in SHARED_QUOTA and own in quotas else "CPUS": cpus,
            "INSTANCES": wanted.count,
            "IN_USE_ADDRESSES": wanted.count,
            "SSD_TOTAL_GB": wanted.count * (BOOT_GB + (wanted.volume_gb or 0)),
        }
    )


def _image(gcp: Gcp, machine_type: Any) -> Any:
    family = IMAGE_FAMILIES.get(machine_type.architecture or "X86_64")
    if family is None:
        raise LabError(f"{machine_type.name} is {machine_type.architecture}; allowed: {', '.join(IMAGE_FAMILIES)}.")
    return gcp.call("images", "get_from_family", project=IMAGE_PROJECT, family=family)


def launch(gcp: Gcp, site: Site, order: Order, user: str) -> str:
    """Launch the region's hosts in the first zone that has capacity for all of them, and return the zone."""
    wanted, tags = site.wanted, order.tags
    count = {"count": wanted.count, "min_count": wanted.count}
    properties = _properties(gcp, site, order, user)

    def launch_in(zone: str) -> None:
        wish = {**count, "name_pattern": name(tags.run, zone, "##"), "instance_properties": properties}
        make(gcp, "instances", "bulk_insert_unary", tags, zone, zone=zone, bulk_insert_instance_resource_resource=wish)

    return in_first_zone(site.zones, launch_in, wanted, NO_CAPACITY)


def _running(gcp: Gcp, region: str, run: str, zone: str) -> list[Instance]:
    """Return the hosts that are running and have a public address; raise LabError if a host has ended."""
    hosts = gcp.pages("instances", "list", zone=zone, filter=f"name eq {name(run, zone)}-.*")
    for host in hosts:
        if host.status not in ("PROVISIONING", "STAGING", "RUNNING"):
            reason = gcp.hidden(host.status_message or "no reason given")
            raise LabError(f"A host in {region} is {host.status}: {reason}")
    return [
        Instance(host.name, region, zone, public, host.network_interfaces[0].network_i_p)
        for host in hosts
        if host.status == "RUNNING" and (public := _public(host))
    ]


def make(gcp: Gcp, service: str, operation: str, tags: Tags, what: str = "", **asked: object) -> None:
    """
    Make a resource unless it exists, and wait until it exists; `asked` are the arguments of the API's operation.

    The request's id follows from the run, the service and `what`, so repeating a request whose answer was lost makes
    nothing twice.
    """
    request_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{tags.run}/{service}/{what}"))
    try:
        gcp.wait(gcp.call(service, operation, request_id=request_id, **asked))
    except CloudError as error:
        if error.code != "409":
            raise


def _properties(gcp: Gcp, site: Site, order: Order, user: str) -> dict[str, Any]:
    wanted, tags = site.wanted, order.tags
    marks = {"labels": {LABEL: tags.run}, "description": description(tags)}
    left_s = (tags.expires_at - datetime.now(UTC)).total_seconds()
    disks = [_disk(marks, BOOT_GB, boot=True, source_image=site.image_link)]
    if wanted.volume_gb:
        disks.append(_disk(marks, wanted.volume_gb, device_name=VOLUME_NAME))
    metadata = {
        "ssh-keys": f"{user}:{order.public_key} {user}",
        "user-data": order.first_start,
        "block-project-ssh-keys": "TRUE",
        "enable-oslogin": "FALSE",
    }
    public = {"type_": "ONE_TO_ONE_NAT", "name": "external", "network_tier": "PREMIUM"}
    subnet = f"projects/{gcp.project}/regions/{wanted.region}/subnetworks/{name(tags.run)}"
    return {
        "machine_type": wanted.instance_type,
        **marks,
        "disks": disks,
        "network_interfaces": [{"subnetwork": subnet, "access_configs": [public]}],
        "scheduling": {
            "automatic_restart": False,
            "instance_termination_action": "DELETE",
            "max_run_duration": {"seconds": max(60, int(left_s) - AHEAD_S)},
        },
        "metadata": {"items": [{"key": key, "value": value} for key, value in metadata.items()]},
    }


def _disk(marks: Mapping[str, object], size_gb: int, *, boot: bool = False, device_name: str = "boot", **source: str):
    how = {"auto_delete": True, "mode": "READ_WRITE", "type_": "PERSISTENT", "device_name": device_name}
    disk = {"disk_size_gb": size_gb, "disk_type": DISK_TYPE, **marks, **source}
    return {"boot": boot, **how, "initialize_params": disk}


def _named(tags: Tags, *parts: str) -> dict[str, Any]:
    return {"name": name(tags.run, *parts), "description": description(tags)}


def _network(gcp: Gcp, tags: Tags) -> str:
    return f"projects/{gcp.project}/global/networks/{name(tags.run)}"


def _public(host: Any) -> str:
    return next((access.nat_i_p for interface in host.network_interfaces for access in interface.access_configs), "")


class GcpLab(RentedLab):
    """
    Hosts on Google Cloud; see `RentedLab`.

    The hosts run Ubuntu 24.04, and volumes are of type pd-balanced. A run makes a network, in which hosts also reach
    each other's private addresses. Google deletes a host when its `ttl_s` is over (maxRunDuration). Raise LabError if
    the extra "gcp" is not installed.
    """

    kind, user = "gcp", "ubuntu"
    packages = ("iperf3", "iputils-ping", "nftables", "sysstat", "openjdk-21-jre-headless", "python3-venv")
    volume_device, files = f"/dev/disk/by-id/google-{VOLUME_NAME}", GUEST_AGENT
    client_class, resources_class, survey = Gcp, GcpResources, staticmethod(survey)

    def costs(self, *, volume_gb: int | None, **wanted: Any) -> Costs:
        """
        Return the costs of the wanted hosts, as `RentedLab.costs` does, with the boot disk at the price of a volume.
        """
        return Costs(volume_gb=BOOT_GB + (volume_gb or 0), **wanted)

    def prepare(self, order: Order) -> None:
        """Make the run's own network, which admits only SSH from the operator; the default network admits everybody."""
        routing = {"auto_create_subnetworks": False, "routing_config": {"routing_mode": "REGIONAL"}}
        make(self.client, "networks", "insert_unary", order.tags, network_resource=_named(order.tags) | routing)
        self._admit(order.tags, "operator", [self.operator], {"I_p_protocol": "tcp", "ports": ["22"]})

    def launch(self, site: Site, order: Order) -> list[Instance]:
        gcp, tags, region = self.client, order.tags, site.wanted.region
        subnet = _named(tags) | {"network": _network(gcp, tags), "ip_cidr_range": site.cidr}
        make(gcp, "subnetworks", "insert_unary", tags, region, region=region, subnetwork_resource=subnet)
        zone = launch(gcp, site, order, self.user)
        return once_running(partial(_running, gcp, region, tags.run, zone), site.wanted, gcp.poll_s)

    def let_in(self, order: Order, addresses: Sequence[str]) -> None:
        self._admit(order.tags, "hosts", [f"{address}/32" for address in addresses], {"I_p_protocol": "all"})

    def _admit(self, tags: Tags, who: str, ranges: Sequence[str], allowed: Mapping[str, object]) -> None:
        rule = _named(tags, who) | {"network": _network(self.client, tags), "direction": "INGRESS"}
        rule |= {"source_ranges": ranges, "allowed": [allowed]}
        make(self.client, "firewalls", "insert_unary", tags, who, firewall_resource=rule)
