"""Launching hosts: a network and its rules for the run, a subnet and the instances in each region."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from wanbench.errors import LabError
from wanbench.measure.labs.rented.hosts import Instance, Order
from wanbench.measure.labs.rented.tags import Tags

from .clients import Gcp, GcpError
from .preflight import BOOT_GB, Site
from .tags import LABEL, description, name

NO_CAPACITY = ("ZONE_RESOURCE_POOL_EXHAUSTED", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "STOCKOUT")
"""Errors after which another zone may have what this one lacks."""
AHEAD_S = 120
"""
Google deletes a host this long before the host's own timer would power it off: one that is off still costs
its disks.
"""
START_TIMEOUT_S = 300.0
DISK_TYPE = "pd-balanced"
VOLUME_NAME = "wanbench"
"""The name under which a host sees its volume."""


def prepare_network(gcp: Gcp, tags: Tags, operator: str) -> None:
    """
    Make the run's own network, closed to all but SSH from `operator` (a CIDR).

    A project's default network is not used: its rules let everybody in by SSH.
    """
    network = {
        "name": name(tags.run),
        "description": description(tags),
        "auto_create_subnetworks": False,
        "routing_config": {"routing_mode": "REGIONAL"},
    }
    make(gcp, "networks", "insert_unary", tags, network_resource=network)
    let_in(gcp, tags, "operator", [operator], {"I_p_protocol": "tcp", "ports": ["22"]})


def let_in(gcp: Gcp, tags: Tags, who: str, ranges: Sequence[str], allowed: dict) -> None:
    """A rule of the run's network that lets these addresses in."""
    rule = {
        "name": name(tags.run, who),
        "description": description(tags),
        "network": _network(gcp, tags),
        "direction": "INGRESS",
        "source_ranges": list(ranges),
        "allowed": [allowed],
    }
    make(gcp, "firewalls", "insert_unary", tags, who, firewall_resource=rule)


def make_subnet(gcp: Gcp, site: Site, tags: Tags) -> None:
    """The region's subnet of the run's network."""
    region = site.wanted.region
    subnet = {
        "name": name(tags.run),
        "description": description(tags),
        "network": _network(gcp, tags),
        "ip_cidr_range": site.cidr,
    }
    make(gcp, "subnetworks", "insert_unary", tags, region, region=region, subnetwork_resource=subnet)


def launch(gcp: Gcp, site: Site, order: Order, user: str) -> str:
    """
    Launch the region's hosts, in the first zone that has them all. Returns the zone.

    Raises
    ------
    LabError
        No zone has the capacity; names what each said.
    """
    wanted, tags, told = site.wanted, order.tags, []
    for zone in site.zones:
        wish = {
            "count": wanted.count,
            "min_count": wanted.count,
            "name_pattern": name(tags.run, zone, "##"),
            "instance_properties": _properties(gcp, site, order, user),
        }
        asked = {"zone": zone, "bulk_insert_instance_resource_resource": wish}
        try:
            make(gcp, "instances", "bulk_insert_unary", tags, zone, **asked)
            return zone
        except GcpError as error:
            if error.code not in NO_CAPACITY:
                raise
            told.append(str(error))
    raise LabError(f"No zone of {wanted.region} has {wanted.count} x {wanted.instance_type}: {' '.join(told)}")


def wait_until_running(gcp: Gcp, site: Site, run: str, zone: str) -> list[Instance]:
    """The region's hosts once all run and have a public address; LabError if one ends before, or time runs out."""
    wanted, deadline = site.wanted, time.monotonic() + START_TIMEOUT_S
    while True:
        found = gcp.pages("instances", "list", zone=zone, filter=f"name eq {name(run, zone)}-.*")
        if ended := [each for each in found if each.status not in ("PROVISIONING", "STAGING", "RUNNING")]:
            reason = gcp.hidden(ended[0].status_message or "no reason given")
            raise LabError(f"A host in {wanted.region} is {ended[0].status}: {reason}")
        ready = [each for each in found if each.status == "RUNNING" and _public(each)]
        if len(ready) >= wanted.count:
            return [
                Instance(each.name, wanted.region, zone, _public(each), each.network_interfaces[0].network_i_p)
                for each in sorted(ready, key=lambda each: each.name)
            ]
        if time.monotonic() > deadline:
            raise LabError(f"{len(ready)} of {wanted.count} hosts in {wanted.region} run after {START_TIMEOUT_S:g} s.")
        time.sleep(gcp.poll_s)


def make(gcp: Gcp, service: str, operation: str, tags: Tags, what: str = "", **asked) -> None:
    """
    Make something, unless it is there, and return once it is.

    The request's id follows from the run and from what is made, and so do all names: a request that is repeated because
    its answer was lost makes nothing twice.
    """
    request_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{tags.run}/{service}/{what}"))
    try:
        gcp.wait(gcp.call(service, operation, request_id=request_id, **asked))
    except GcpError as error:
        if error.code != "409":
            raise


def _properties(gcp: Gcp, site: Site, order: Order, user: str) -> dict:
    wanted, tags = site.wanted, order.tags
    marks = {"labels": {LABEL: tags.run}, "description": description(tags)}
    left_s = (tags.expires_at - datetime.now(UTC)).total_seconds()
    disks = [_disk(marks, BOOT_GB, boot=True, image=site.image_link)]
    if wanted.volume_gb:
        disks.append(_disk(marks, wanted.volume_gb, device_name=VOLUME_NAME))
    link = f"projects/{gcp.project}"
    return {
        "machine_type": wanted.instance_type,
        **marks,
        "disks": disks,
        "network_interfaces": [
            {
                "subnetwork": f"{link}/regions/{wanted.region}/subnetworks/{name(tags.run)}",
                "access_configs": [{"type_": "ONE_TO_ONE_NAT", "name": "external", "network_tier": "PREMIUM"}],
            }
        ],
        "scheduling": {
            "automatic_restart": False,
            "instance_termination_action": "DELETE",
            "max_run_duration": {"seconds": max(60, int(left_s) - AHEAD_S)},
        },
        "metadata": {
            "items": [
                {"key": "ssh-keys", "value": f"{user}:{order.public_key} {user}"},
                {"key": "user-data", "value": order.first_start},
                {"key": "block-project-ssh-keys", "value": "TRUE"},
                {"key": "enable-oslogin", "value": "FALSE"},
            ]
        },
    }


def _disk(marks, size_gb, *, boot=False, image=None, device_name="boot") -> dict:
    params = {"disk_size_gb": size_gb, "disk_type": DISK_TYPE, **marks}
    if image:
        params["source_image"] = image
    return {
        "boot": boot,
        "auto_delete": True,
        "mode": "READ_WRITE",
        "type_": "PERSISTENT",
        "device_name": device_name,
        "initialize_params": params,
    }


def _network(gcp: Gcp, tags: Tags) -> str:
    return f"projects/{gcp.project}/global/networks/{name(tags.run)}"


def _public(instance) -> str:
    return next((how.nat_i_p for each in instance.network_interfaces for how in each.access_configs), "")
