"""The lab of rented hosts on Google Cloud."""

from __future__ import annotations

from collections.abc import Sequence

from wanbench.measure.labs.rented import Instance, Order, RentedLab
from wanbench.measure.labs.rented.costs import Costs
from wanbench.measure.labs.rented.user_data import user_data

from .clients import Gcp
from .launch import VOLUME_NAME, launch, let_in, make_subnet, prepare_network, wait_until_running
from .preflight import BOOT_GB, Site, survey
from .teardown import PROJECT, GcpResources

GUEST_AGENT = {"/etc/default/instance_configs.cfg": "[InstanceSetup]\nset_host_keys = false\n"}
"""Google's agent on the host must leave the host key that cloud-init sets."""


class GcpLab(RentedLab):
    """
    Hosts on Google Cloud; parameters and what else holds are those of `RentedLab`.

    Its images are of Ubuntu 24.04, its volumes pd-balanced. A run has a network of its own, over which hosts also reach
    each other's private addresses. Google deletes a host when its time is over (maxRunDuration). LabError if the extra
    gcp is not installed.
    """

    kind, title, user = "gcp", "Google Cloud", "ubuntu"
    packages = ("iperf3", "iputils-ping", "nftables", "sysstat", "openjdk-21-jre-headless", "python3-venv")

    def __init__(self, *arguments, gcp: Gcp | None = None, **options):
        super().__init__(*arguments, **options)
        self._gcp = gcp or Gcp()

    def survey(self) -> tuple[list[Site], list[str]]:
        """See `RentedLab.survey`."""
        return survey(self._gcp, list(self.wanted.values()), self.alongside)

    def resources(self) -> GcpResources:
        """See `RentedLab.resources`."""
        return GcpResources(self._gcp)

    def places(self) -> list[str]:
        """See `RentedLab.places`."""
        return [PROJECT]

    def costs(self, *, volume_gb: int | None, **wanted) -> Costs:
        """See `RentedLab.costs`; the disk from which a host starts is paid for like a volume."""
        return Costs(volume_gb=BOOT_GB + (volume_gb or 0), **wanted)

    def first_start(self, *, volume: bool, **given) -> str:
        """See `RentedLab.first_start`."""
        device = f"/dev/disk/by-id/google-{VOLUME_NAME}" if volume else None
        return user_data(volume_device=device, files=GUEST_AGENT, **given)

    def prepare(self, order: Order) -> None:
        """See `RentedLab.prepare`."""
        prepare_network(self._gcp, order.tags, self.operator)

    def launch(self, site: Site, order: Order) -> list[Instance]:
        """See `RentedLab.launch`."""
        make_subnet(self._gcp, site, order.tags)
        zone = launch(self._gcp, site, order, self.user)
        return wait_until_running(self._gcp, site, order.tags.run, zone)

    def let_in(self, order: Order, addresses: Sequence[str]) -> None:
        """See `RentedLab.let_in`."""
        ranges = [f"{address}/32" for address in addresses]
        let_in(self._gcp, order.tags, "hosts", ranges, {"I_p_protocol": "all"})
