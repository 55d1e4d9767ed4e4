"""What a cloud supplies, so that hosts can be rented on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from .costs import Costs
from .hosts import Instance, Order, Site, Wanted
from .resources import Resources


class Cloud(ABC):
    """
    What differs between clouds; `RentedLab` does the rest.

    Attributes
    ----------
    kind : str
        The cloud, as in the names of regions.
    title : str
        The cloud's usual name.
    user : str
        Logs in to the hosts, and may use sudo.
    packages : tuple of str
        Packages of the hosts' distribution: to measure paths (iperf3, ping), to give a host its public address (nft),
        to watch it (sysstat), to run Kafka (Java, Python).
    takes_subnets : bool
        Whether hosts can be in subnets that exist.
    python : str
        The hosts' Python from which `HOST_PYTHON` is made; see `user_data`.
    wanted : dict
        Region (of the catalogue) to what is asked of it.
    """

    kind: str
    title: str
    user: str
    packages: tuple[str, ...] = ()
    takes_subnets = False
    python = "python3"
    wanted: Mapping[str, Wanted]

    @abstractmethod
    def survey(self) -> tuple[list[Site], list[str]]:
        """
        Where everything can be launched, in the order of `wanted`, and notes on what could not be found out.

        Called before anyone is asked, so it makes nothing. LabError names every region that is off, every type that a
        region or zone lacks, and every quota that is too small.
        """

    @abstractmethod
    def resources(self) -> Resources:
        """What runs have made in the account; made anew for every taking down."""

    def places(self) -> list[str]:
        """Where a run's resources are, as `Resources.listed` takes them: the lab's regions, by the cloud's own names."""
        return [each.region for each in self.wanted.values()]

    def costs(self, **wanted) -> Costs:
        """The costs of what is wanted, given as `Costs` takes it; with the cloud's own price list, if it has one."""
        return Costs(**wanted)

    @abstractmethod
    def first_start(self, **given) -> str:
        """The cloud-config document: `user_data`, with `volume` (whether there is one) in place of its device."""

    def prepare(self, order: Order) -> None:  # noqa: B027
        """Make what all regions share, before any of them is worked on."""

    @abstractmethod
    def launch(self, site: Site, order: Order) -> list[Instance]:
        """
        Launch a region's hosts, closed to all but the operator's SSH, and return them once they run.

        Called for all regions at once, from threads. What is made carries the order's tags from the call that makes
        it. LabError if the hosts cannot be had; what is made until then is taken down by `resources`.
        """

    @abstractmethod
    def let_in(self, order: Order, addresses: Sequence[str]) -> None:
        """Open all hosts to these addresses (the lab's hosts), with every protocol."""
