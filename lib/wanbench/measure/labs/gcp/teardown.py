"""List and delete the resources that runs have made on Google Cloud."""

import os
from datetime import datetime
from pathlib import Path
from typing import Any

from wanbench.measure.labs.rented import sweep as sweep_cloud
from wanbench.measure.labs.rented.client import clock_at, installed
from wanbench.measure.labs.rented.resources import Resource, Resources

from .clients import MODULE, Gcp, last, name, tags_of

INSTANCE, DISK, RULE, SUBNET, NETWORK = "instance", "disk", "firewall rule", "subnet", "network"
# `Resources.place`: networks belong to no region, and one listing shows the instances of all regions.
PROJECT = "the project"
VARIABLES = ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT")


class GcpResources(Resources):
    """The resources of runs in all regions; see `Resources`."""

    cloud, title, client_class, place = "gcp", "Google Cloud", Gcp, PROJECT

    def account(self) -> str:
        return self.client.project

    def now(self) -> datetime | None:
        return clock_at(self.client.endpoint)

    def listed(self, region: str, run: str | None = None) -> list[Resource]:
        """
        List the resources of a run (of all runs if None) in all regions; see `Resources.listed`.

        `region` is always `PROJECT`; each resource returned names its Google region.
        """
        gcp, named = self.client, f"name eq {name(run or '')}.*"
        by_kind = {
            INSTANCE: gcp.pages("instances", "aggregated_list", filter=named),
            DISK: gcp.pages("disks", "aggregated_list", filter=named),
            RULE: gcp.pages("firewalls", "list", filter=named),
            SUBNET: gcp.pages("subnetworks", "aggregated_list", filter=named),
            NETWORK: gcp.pages("networks", "list", filter=named),
        }
        resources = [
            Resource(kind, item.name, _place_of(kind, item), _state_of(kind, item), tags_of(item))
            for kind, items in by_kind.items()
            for item in items
        ]
        return [resource for resource in resources if resource.run and run in (None, resource.run)]

    def ask_to_delete(self, resource: Resource) -> None:
        gcp, kind = self.client, resource.kind
        if kind == INSTANCE and resource.state != "STOPPING":
            gcp.call("instances", "delete_unary", zone=resource.region, instance=resource.id)
        elif kind == DISK and resource.state == "READY":
            gcp.call("disks", "delete_unary", zone=resource.region, disk=resource.id)
        elif kind == RULE:
            gcp.call("firewalls", "delete_unary", firewall=resource.id)
        elif kind == SUBNET:
            gcp.call("subnetworks", "delete_unary", region=resource.region, subnetwork=resource.id)
        elif kind == NETWORK:
            gcp.call("networks", "delete_unary", network=resource.id)


def _place_of(kind: str, item: Any) -> str:
    """Return the resource's zone or region, which is needed to delete it."""
    return last(item.zone) if kind in (INSTANCE, DISK) else last(item.region) if kind == SUBNET else "global"


def _state_of(kind: str, item: Any) -> str:
    if kind == DISK and item.users:
        return "in use"  # it is deleted with its instance
    return item.status if kind in (INSTANCE, DISK) else ""


def sweep(*, client: Gcp | None = None, **options: Any) -> int:
    """Delete what runs left on Google Cloud; see `wanbench.measure.labs.rented.sweep`."""
    return sweep_cloud(GcpResources(client), **options)


def unusable() -> str | None:
    """Return why the project cannot be used from here; None if it probably can, as no call checks this."""
    if not installed(MODULE):
        return "the extra gcp is not installed"
    folder = Path(os.environ.get("CLOUDSDK_CONFIG", "~/.config/gcloud")).expanduser()
    if any(map(os.environ.get, VARIABLES)) or (folder / "application_default_credentials.json").exists():
        return None
    return f"neither {' nor '.join(VARIABLES)} is set, and there are no credentials of gcloud"
