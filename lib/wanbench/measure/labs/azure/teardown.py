"""What runs have made on Azure: resource groups, listed in the whole subscription at once, and deleted."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from wanbench.measure.labs.rented import sweep as shared
from wanbench.measure.labs.rented.clock import clock_at
from wanbench.measure.labs.rented.resources import POLL_S, Resource, Resources

from .clients import VARIABLE, Azure, AzureError, installed

GROUP = "resource group"
SUBSCRIPTION = "the subscription"
"""One list shows the groups of all regions: so everything is in one place."""
TIMEOUT_S = 1200.0
"""A group is listed until all that was in it is gone, which takes minutes."""


class AzureResources(Resources):
    """See `Resources`. A run's resources are all in its groups, and Azure deletes a group only with all that is in it."""

    cloud, title = "azure", "Azure"

    def __init__(self, azure: Azure | None = None):
        self._azure, self.timeout_s, self.poll_s = azure or Azure(), TIMEOUT_S, POLL_S

    def account(self) -> str:
        """See `Resources.account`."""
        return self._azure.subscription

    def now(self) -> datetime | None:
        """See `Resources.now`."""
        return clock_at(self._azure.endpoint)

    def regions(self) -> list[str]:
        """See `SUBSCRIPTION`."""
        return [SUBSCRIPTION]

    def listed(self, region: str, run: str | None = None) -> list[Resource]:
        """
        See `Resources.listed`; the region is `SUBSCRIPTION`, those of what is listed are Azure's. All groups are asked for
        and picked here, as a filter that Azure reads otherwise would list nothing, which looks like all being gone.
        """
        found = [
            Resource(GROUP, each.name, each.location, each.properties.provisioning_state or "", each.tags or {})
            for each in self._azure.pages("resource", "resource_groups", "list")
        ]
        return [each for each in found if each.run and run in (None, each.run)]

    def delete(self, each: Resource) -> str | None:
        """See `Resources.delete`."""
        if each.state == "Deleting":
            return None
        try:
            self._azure.call(
                "resource",
                "resource_groups",
                "begin_delete",
                each.id,
                force_deletion_types="Microsoft.Compute/virtualMachines",
                wait=False,
            )
        except AzureError as error:
            return None if error.status == 404 else str(error)
        return None


def sweep(*, azure: Azure | None = None, **options) -> int:
    """See `wanbench.measure.labs.rented.sweep`."""
    return shared(AzureResources(azure), **options)


def unusable() -> str | None:
    """Why the subscription cannot be asked here; None if it may be. Nothing is asked over the network."""
    if not installed():
        return "the extra azure is not installed"
    if not os.environ.get(VARIABLE):
        return f"{VARIABLE} is not set"
    folder = Path(os.environ.get("AZURE_CONFIG_DIR", "~/.azure")).expanduser()
    told = any(os.environ.get(name) for name in ("AZURE_CLIENT_ID", "IDENTITY_ENDPOINT", "MSI_ENDPOINT"))
    if told or (folder / "azureProfile.json").exists():
        return None
    return "no credentials of Azure are found"
