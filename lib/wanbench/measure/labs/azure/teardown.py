"""What runs have made on Azure: resource groups, listed in the whole subscription at once, and deleted."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from wanbench.measure.labs.rented import sweep as sweep_cloud
from wanbench.measure.labs.rented.client import clock_at, installed
from wanbench.measure.labs.rented.resources import Resource, Resources

from .clients import MODULES, VARIABLE, Azure

GROUP = "resource group"
SUBSCRIPTION = "the subscription"  # One list shows the groups of all regions: so everything is in one place.


class AzureResources(Resources):
    """A run's groups; Azure deletes a group only with all that is in it. See `Resources`."""

    cloud, title, client_class, place = "azure", "Azure", Azure, SUBSCRIPTION
    timeout_s = 1200.0  # A group is listed until all that was in it is gone, which takes minutes.

    def account(self) -> str:
        return self.client.subscription

    def now(self) -> datetime | None:
        return clock_at(self.client.endpoint)

    def listed(self, region: str, run: str | None = None) -> list[Resource]:
        """
        See `Resources.listed`; the region is `SUBSCRIPTION`, those of what is listed are Azure's. All groups are asked
        for and picked here: a filter that Azure reads otherwise would list nothing, which looks like all being gone.
        """
        groups = [
            Resource(GROUP, group.name, group.location, group.properties.provisioning_state or "", group.tags or {})
            for group in self.client.pages("resource", "resource_groups", "list")
        ]
        return [group for group in groups if group.run and run in (None, group.run)]

    def ask_to_delete(self, resource: Resource) -> None:
        if resource.state != "Deleting":
            how = {"force_deletion_types": "Microsoft.Compute/virtualMachines", "wait": False}
            self.client.call("resource", "resource_groups", "begin_delete", resource.id, **how)


def sweep(*, client: Azure | None = None, **options) -> int:
    """Sweep Azure; see `wanbench.measure.labs.rented.sweep`."""
    return sweep_cloud(AzureResources(client), **options)


def unusable() -> str | None:
    """Why the subscription cannot be asked here; None if it may be. Nothing is asked over the network."""
    if not installed(*MODULES):
        return "the extra azure is not installed"
    if not os.environ.get(VARIABLE):
        return f"{VARIABLE} is not set"
    folder = Path(os.environ.get("AZURE_CONFIG_DIR", "~/.azure")).expanduser()
    if any(map(os.environ.get, ("AZURE_CLIENT_ID", "IDENTITY_ENDPOINT", "MSI_ENDPOINT"))):
        return None
    return None if (folder / "azureProfile.json").exists() else "no credentials of Azure are found"
