"""List and delete the resource groups that runs have made on Azure."""

import os
from datetime import datetime
from pathlib import Path
from typing import Any

from wanbench.measure.labs.rented import sweep as sweep_cloud
from wanbench.measure.labs.rented.client import clock_at, installed
from wanbench.measure.labs.rented.resources import Resource, Resources

from .clients import MODULES, VARIABLE, Azure

GROUP = "resource group"
SUBSCRIPTION = "the subscription"  # `Resources.place`: one listing shows the groups of all regions.


class AzureResources(Resources):
    """The resource groups of runs; Azure deletes a group with everything in it. See `Resources`."""

    cloud, title, client_class, place = "azure", "Azure", Azure, SUBSCRIPTION
    timeout_s = 1200.0  # A group is listed until everything in it is deleted, which takes minutes.

    def account(self) -> str:
        return self.client.subscription

    def now(self) -> datetime | None:
        return clock_at(self.client.endpoint)

    def listed(self, region: str, run: str | None = None) -> list[Resource]:
        """
        List the resource groups of a run (of all runs if None) in all regions; see `Resources.listed`.

        `region` is always `SUBSCRIPTION`; each resource returned names its Azure region. All groups are listed and then
        selected here: if Azure misread a filter, an empty list would look like success.
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


def sweep(*, client: Azure | None = None, **options: Any) -> int:
    """Delete what runs left on Azure; see `wanbench.measure.labs.rented.sweep`."""
    return sweep_cloud(AzureResources(client), **options)


def unusable() -> str | None:
    """Return why the subscription cannot be used from here; None if it probably can, as no call checks this."""
    if not installed(*MODULES):
        return "the extra azure is not installed"
    if not os.environ.get(VARIABLE):
        return f"{VARIABLE} is not set"
    folder = Path(os.environ.get("AZURE_CONFIG_DIR", "~/.azure")).expanduser()
    if any(map(os.environ.get, ("AZURE_CLIENT_ID", "IDENTITY_ENDPOINT", "MSI_ENDPOINT"))):
        return None
    return None if (folder / "azureProfile.json").exists() else "there are no credentials of Azure"
