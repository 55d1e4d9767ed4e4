"""The lab of rented hosts on Azure."""

from __future__ import annotations

from collections.abc import Sequence

from wanbench.checks import refusal
from wanbench.measure.labs.rented import Instance, Order, RentedLab
from wanbench.measure.labs.rented.costs import Costs
from wanbench.measure.labs.rented.resources import everywhere
from wanbench.measure.labs.rented.user_data import user_data

from .clients import Azure
from .launch import join, launch, let_in, make_group
from .preflight import BOOT_GB, Site, survey
from .teardown import SUBSCRIPTION, AzureResources

VOLUME_DEVICE = "/dev/disk/azure/scsi1/lun0"


class AzureLab(RentedLab):
    """
    Hosts on Azure; parameters and what else holds are those of `RentedLab`.

    Its images are of Ubuntu 24.04, its volumes standard SSDs, its zones "1", "2" and "3". A subnet that exists is named
    "GROUP/NETWORK/SUBNET", so that no id of a subscription is in a manifest. A run has a resource group in
    each region, and with `private_addresses` its networks are peered. Azure stops a host when its time is over.
    LabError if the extra azure is not installed.
    """

    kind, title, user = "azure", "Azure", "wanbench"
    packages = ("iperf3", "iputils-ping", "nftables", "sysstat", "openjdk-21-jre-headless", "python3-venv")
    takes_subnets = True

    def __init__(self, *arguments, azure: Azure | None = None, **options):
        super().__init__(*arguments, **options)
        for each in self.wanted.values():
            if each.subnet and each.subnet.count("/") != 2:
                raise refusal("subnets", each.subnet, "GROUP/NETWORK/SUBNET")
        self._azure = azure or Azure()

    def survey(self) -> tuple[list[Site], list[str]]:
        """See `RentedLab.survey`."""
        return survey(self._azure, list(self.wanted.values()), self.alongside)

    def resources(self) -> AzureResources:
        """See `RentedLab.resources`."""
        return AzureResources(self._azure)

    def places(self) -> list[str]:
        """See `RentedLab.places`."""
        return [SUBSCRIPTION]

    def costs(self, *, volume_gb: int | None, **wanted) -> Costs:
        """See `RentedLab.costs`; the disk from which a host starts is paid for like a volume."""
        return Costs(volume_gb=charged_gb(BOOT_GB) + (charged_gb(volume_gb) if volume_gb else 0), **wanted)

    def first_start(self, *, volume: bool, **given) -> str:
        """See `RentedLab.first_start`."""
        return user_data(volume_device=VOLUME_DEVICE if volume else None, **given)

    def launch(self, site: Site, order: Order) -> list[Instance]:
        """See `RentedLab.launch`."""
        make_group(self._azure, site, order, self.operator)
        return launch(self._azure, site, order, self.user)

    def let_in(self, order: Order, addresses: Sequence[str]) -> None:
        """See `RentedLab.let_in`."""

        def work(site):
            let_in(self._azure, site, order.tags.run, addresses)
            if self.private_addresses:
                join(self._azure, site, order.tags.run, [other for other in self._sites if other != site])

        everywhere(work, self._sites)


def charged_gb(size_gb: int) -> int:
    """
    Azure charges for a disk as for the next larger of its sizes.

    >>> charged_gb(30), charged_gb(32), charged_gb(33)
    (32, 32, 64)
    """
    return max(4, 1 << (size_gb - 1).bit_length())
