"""Placement of a cluster's nodes on hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from wanbench.checks import refusal
from wanbench.errors import ParameterError
from wanbench.measure.labs.base import Host, Lab

MOST_BROKERS = 9
"""Maximum, as each is a Java process, and in a local lab they share one machine."""
MOST_CONTROLLERS = 5
"""A quorum of five survives two failures; Kafka's documentation advises 3 or 5."""
COMBINED_CONTROLLERS = 3
"""Maximum of brokers that are also controllers."""

CLIENT_PORT = 9092
BROKER_PORT = 9093
CONTROLLER_PORT = 9094
METRICS_PORT = 9404
"""The port of Prometheus's exporter for JMX."""


@dataclass(frozen=True)
class Broker:
    """
    A broker as its clients see it.

    `metrics_port` serves its metrics over HTTP on the host's address; None without metrics.
    """

    node_id: int
    host: Host
    port: int = CLIENT_PORT
    metrics_port: int | None = None


@dataclass(frozen=True)
class NodePlacement:
    """The host and roles of a node."""

    node_id: int
    host: Host
    is_broker: bool
    is_controller: bool

    @property
    def name(self) -> str:
        """Its name in messages: "broker 1 on eu/0"."""
        return f"{'broker' if self.is_broker else 'controller'} {self.node_id} on {self.host.name}"

    @property
    def roles(self) -> str:
        """The value of process.roles, such as "broker,controller"."""
        return ",".join(["broker"] * self.is_broker + ["controller"] * self.is_controller)


def place_nodes(lab: Lab, brokers: Sequence[str], controllers: str | Sequence[str]) -> tuple[NodePlacement, ...]:
    """
    Place each node on a host: the first of a region on `lab.host(region, 0)`, the second on `lab.host(region, 1)`.

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
        combined, separate = _combined(brokers), ()
    else:
        _check(lab, "controllers", controllers, 1, MOST_CONTROLLERS)
        if len(controllers) % 2 == 0:
            raise ParameterError(f"there are {len(controllers)} controllers; a quorum needs 1, 3 or 5.")
        combined, separate = set(), controllers
    placed = [
        NodePlacement(number, host, True, number in combined) for number, host in enumerate(_hosts(lab, brokers), 1)
    ]
    placed += [
        NodePlacement(number, host, False, True) for number, host in enumerate(_hosts(lab, separate), len(placed) + 1)
    ]
    return tuple(placed)


def _check(lab, name, regions, minimum, maximum):
    if isinstance(regions, str) or not all(isinstance(region, str) for region in regions):
        raise refusal(name, regions, "a list of regions, one for each node")
    if not minimum <= len(regions) <= maximum:
        raise ParameterError(f"there are {len(regions)} {name}; allowed: {minimum} to {maximum}.")
    for region, wanted in Counter(regions).items():
        if region not in lab.hosts:
            raise ParameterError(f"{name} names the region {region!r}; the lab has {', '.join(lab.hosts)}.")
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
    """Node ids of the brokers that are controllers: the first broker of each region, then the second, and so on."""
    taken, order = Counter(), []
    for number, region in enumerate(brokers, 1):
        order.append((taken[region], number))
        taken[region] += 1
    wanted = COMBINED_CONTROLLERS if len(brokers) >= COMBINED_CONTROLLERS else 1
    return {number for _, number in sorted(order)[:wanted]}
