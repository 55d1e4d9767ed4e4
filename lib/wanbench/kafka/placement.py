"""Which node of a cluster runs on which host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ParameterError
from ..labs.base import Host, Lab

MOST_BROKERS = 9
MOST_CONTROLLERS = 5
COMBINED_CONTROLLERS = 3
"""So many brokers, at the most, are controllers as well."""

CLIENT_PORT, BROKER_PORT, CONTROLLER_PORT, METRICS_PORT = 9092, 9093, 9094, 9404


@dataclass(frozen=True)
class Broker:
    """
    A broker as its clients see it.

    `metrics_port` serves its metrics over HTTP on the host's address; None where it has none.
    """

    node_id: int
    host: Host
    port: int = CLIENT_PORT
    metrics_port: int | None = None


@dataclass(frozen=True)
class Seat:
    """Where a node sits, and what it does there."""

    node_id: int
    host: Host
    is_broker: bool
    is_controller: bool

    @property
    def name(self) -> str:
        """How people call it: "broker 1 on eu/0"."""
        return f"{'broker' if self.is_broker else 'controller'} {self.node_id} on {self.host.name}"

    @property
    def roles(self) -> str:
        """As Kafka writes them."""
        return ",".join(["broker"] * self.is_broker + ["controller"] * self.is_controller)


def seats(lab: Lab, brokers: Sequence[str], controllers: str | Sequence[str]) -> tuple[Seat, ...]:
    """
    Give each node its host: the first of a region on `lab.host(region, 0)`, the second on `lab.host(region, 1)`.

    Parameters
    ----------
    brokers : sequence of str
        The region of each broker; broker number i has the node.id i + 1.
    controllers : "combined", or a sequence of str
        "combined": up to three of the brokers are controllers as well, in different regions if there are as many. Or
        the region of each controller that is nothing else; their node.ids follow those of the brokers.

    Raises
    ------
    ParameterError
        If these are not regions of the lab, or a region has too few hosts.
    """
    _check(lab, "brokers", brokers, 1, MOST_BROKERS)
    if controllers == "combined":
        combined, apart = _combined(brokers), ()
    else:
        _check(lab, "controllers", controllers, 1, MOST_CONTROLLERS)
        if len(controllers) % 2 == 0:
            raise ParameterError(f"there are {len(controllers)} controllers; a quorum needs 1, 3 or 5.")
        combined, apart = set(), controllers
    placed = [
        Seat(index + 1, host, True, index in combined) for index, host in enumerate(_hosts(lab, brokers))
    ]
    placed += [
        Seat(len(placed) + index, host, False, True) for index, host in enumerate(_hosts(lab, apart), 1)
    ]
    return tuple(placed)


def _check(lab, name, regions, least, most):
    if isinstance(regions, str) or not all(isinstance(region, str) for region in regions):
        raise ParameterError(f"{name} is {regions!r}; it must be a list of regions, one for each.")
    if not least <= len(regions) <= most:
        raise ParameterError(f"there are {len(regions)} {name}; allowed are {least} to {most}.")
    for region, wanted in Counter(regions).items():
        if region not in lab.hosts:
            known = ", ".join(lab.hosts)
            raise ParameterError(f"{name} names the region {region!r}; the lab has {known}.")
        if wanted > (there := len(lab.hosts[region])):
            raise ParameterError(
                f"{wanted} {name} in {region} need as many hosts there, and the lab has {there}: "
                f"open it with hosts_per_region={wanted}."
            )


def _hosts(lab, regions):
    taken = Counter()
    for region in regions:
        yield lab.host(region, taken[region])
        taken[region] += 1


def _combined(brokers):
    taken, turn = Counter(), []
    for index, region in enumerate(brokers):
        turn.append((taken[region], index))
        taken[region] += 1
    wanted = COMBINED_CONTROLLERS if len(brokers) >= COMBINED_CONTROLLERS else 1
    return {index for _, index in sorted(turn)[:wanted]}
