"""What runs have made on Google Cloud: listed in the whole project at once, deleted, and swept up on confirmation."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from wanbench.measure.labs.rented import sweep as shared
from wanbench.measure.labs.rented.clock import clock_at
from wanbench.measure.labs.rented.extras import installed
from wanbench.measure.labs.rented.resources import POLL_S, TIMEOUT_S, Resource, Resources

from .clients import MODULE, Gcp, GcpError
from .tags import name, tags_of

INSTANCE, DISK, RULE, SUBNET, NETWORK = "instance", "disk", "firewall rule", "subnet", "network"
PROJECT = "the project"
"""A network is in no region, and one list shows the instances of all: so everything is in one place."""
VARIABLES = ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT")


class GcpResources(Resources):
    """See `Resources`."""

    cloud, title = "gcp", "Google Cloud"

    def __init__(self, gcp: Gcp | None = None):
        self._gcp, self.timeout_s, self.poll_s = gcp or Gcp(), TIMEOUT_S, POLL_S

    def account(self) -> str:
        """See `Resources.account`."""
        return self._gcp.project

    def now(self) -> datetime | None:
        """See `Resources.now`."""
        return clock_at(self._gcp.endpoint)

    def regions(self) -> list[str]:
        """See `PROJECT`."""
        return [PROJECT]

    def listed(self, region: str, run: str | None = None) -> list[Resource]:
        """See `Resources.listed`; the region is `PROJECT`, those of what is listed are Google's."""
        gcp, named = self._gcp, f"name eq {name(run or '')}.*"
        found = {
            INSTANCE: gcp.pages("instances", "aggregated_list", filter=named),
            DISK: gcp.pages("disks", "aggregated_list", filter=named),
            RULE: gcp.pages("firewalls", "list", filter=named),
            SUBNET: gcp.pages("subnetworks", "aggregated_list", filter=named),
            NETWORK: gcp.pages("networks", "list", filter=named),
        }
        listed = [
            Resource(kind, each.name, _where(kind, each), _state(kind, each), tags_of(each))
            for kind, several in found.items()
            for each in several
        ]
        return [each for each in listed if each.run and run in (None, each.run)]

    def delete(self, each: Resource) -> str | None:
        """See `Resources.delete`."""
        gcp = self._gcp
        try:
            if each.kind == INSTANCE and each.state != "STOPPING":
                gcp.call("instances", "delete_unary", zone=each.region, instance=each.id)
            elif each.kind == DISK and each.state == "READY":
                gcp.call("disks", "delete_unary", zone=each.region, disk=each.id)
            elif each.kind == RULE:
                gcp.call("firewalls", "delete_unary", firewall=each.id)
            elif each.kind == SUBNET:
                gcp.call("subnetworks", "delete_unary", region=each.region, subnetwork=each.id)
            elif each.kind == NETWORK:
                gcp.call("networks", "delete_unary", network=each.id)
        except GcpError as error:
            return None if error.code == "404" else str(error)
        return None


def _where(kind, described) -> str:
    """The zone or region, as it is needed to delete what is there."""
    if kind in (INSTANCE, DISK):
        return described.zone.rpartition("/")[2]
    return described.region.rpartition("/")[2] if kind == SUBNET else "global"


def _state(kind, described) -> str:
    if kind == DISK and described.users:
        return "in use"  # it goes with its instance
    return described.status if kind in (INSTANCE, DISK) else ""


def sweep(*, gcp: Gcp | None = None, **options) -> int:
    """See `wanbench.measure.labs.rented.sweep`."""
    return shared(GcpResources(gcp), **options)


def unusable() -> str | None:
    """Why the project cannot be asked here; None if it may be. Nothing is asked over the network."""
    if not installed(MODULE):
        return "the extra gcp is not installed"
    folder = Path(os.environ.get("CLOUDSDK_CONFIG", "~/.config/gcloud")).expanduser()
    if any(os.environ.get(name) for name in VARIABLES):
        return None
    if (folder / "application_default_credentials.json").exists():
        return None
    return f"neither {' nor '.join(VARIABLES)} is set and gcloud left no credentials"
