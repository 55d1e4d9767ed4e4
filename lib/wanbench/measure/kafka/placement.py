"""Place the nodes of a cluster on hosts, and describe the size of its brokers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from wanbench.checks import check_fields, refusal
from wanbench.errors import ParameterError
from wanbench.measure.labs.base import Host, Lab

MOST_BROKERS = 9  # each broker is a Java process, and in a local lab all share one machine
MOST_CONTROLLERS = 5  # a quorum of five survives two failures; Kafka's documentation recommends 3 or 5

CLIENT_PORT = 9092
BROKER_PORT = 9093
CONTROLLER_PORT = 9094
METRICS_PORT = 9404  # the port of Prometheus's exporter for JMX


@dataclass(frozen=True)
class Broker:
    """A broker as clients see it. `metrics_port` is the HTTP port of its metrics, or None if it serves none."""

    node_id: int
    host: Host
    port: int = CLIENT_PORT
    metrics_port: int | None = None


@dataclass(frozen=True)
class NodePlacement:
    """The host of a node, and whether it is a broker, a controller, both, or neither (MirrorMaker)."""

    node_id: int
    host: Host
    is_broker: bool
    is_controller: bool

    @property
    def name(self) -> str:
        return f"{self.kind} {self.node_id} on {self.host.name}"

    @property
    def kind(self) -> str:
        return "broker" if self.is_broker else "controller" if self.is_controller else "mirror"

    @property
    def roles(self) -> str:
        return ",".join(["broker"] * self.is_broker + ["controller"] * self.is_controller)


def place_nodes(
    lab: Lab, brokers: Sequence[str], controllers: str | Sequence[str], first_host: int = 0
) -> tuple[NodePlacement, ...]:
    """
    Place each node on a host: node k of a region (counted from 0) on `lab.host(region, first_host + k)`.

    `brokers` are the regions of the brokers, whose node.ids count from 1. `controllers` are the regions of separate
    controllers, whose node.ids follow, or "combined": up to three brokers are also controllers, in different regions if
    possible. Raise ParameterError if the lab has no such region, or a region has too few hosts.
    """
    _check(lab, "brokers", brokers, 1, MOST_BROKERS, first_host)
    if controllers == "combined":
        order = sorted((brokers[:k].count(region), k + 1) for k, region in enumerate(brokers))
        controller_ids, separate = {number for _, number in order[: 3 if len(brokers) >= 3 else 1]}, ()
    else:
        _check(lab, "controllers", controllers, 1, MOST_CONTROLLERS, first_host)
        if len(controllers) % 2 == 0:
            raise ParameterError(f"there are {len(controllers)} controllers; a quorum needs 1, 3 or 5.")
        controller_ids, separate = {len(brokers) + k for k in range(1, len(controllers) + 1)}, controllers
    hosts = [
        lab.host(region, first_host + some[:k].count(region))
        for some in (brokers, separate)
        for k, region in enumerate(some)
    ]
    return tuple(NodePlacement(n, host, n <= len(brokers), n in controller_ids) for n, host in enumerate(hosts, 1))


def _check(lab: Lab, name: str, regions: Sequence[str], minimum: int, maximum: int, first_host: int) -> None:
    if isinstance(regions, str) or not all(isinstance(region, str) for region in regions):
        raise refusal(name, regions, "a list of regions, one for each node")
    if not minimum <= len(regions) <= maximum:
        raise ParameterError(f"there are {len(regions)} {name}; allowed: {minimum} to {maximum}.")
    for region, wanted in Counter(regions).items():
        if region not in lab.hosts:
            raise ParameterError(f"{name} names the region {region!r}; the lab has {', '.join(lab.hosts)}.")
        if (needed := first_host + wanted) > (there := len(lab.hosts[region])):
            remedy = f"but the lab has {there}: open it with hosts_per_region={needed}"
            raise ParameterError(f"{wanted} {name} in {region} need {needed} hosts there, {remedy}.")


SMALLEST_SHARE = 0.01  # the kernel's minimum quota is 1 ms in its period of 100 ms
MOST_PROCESSORS = 1_024


@dataclass(frozen=True)
class BrokerSize:
    """
    The size of a broker. Brokers whose sizes have the same name must have the same size.

    Parameters
    ----------
    processors : float, optional
        Number of processors, for example 0.5 for half of one; None means no limit. Where the kernel allows it, a
        control group's CPU quota sets the limit: all threads of the broker stop once they have used their share of each
        100 ms. Elsewhere, and only for less than 1 processor, the process is stopped and continued periodically: see
        `wanbench.measure.kafka.programs.process_limit`.
    link_bps : float, optional
        Network rate of the broker's host in bit/s, for a region with one broker: all traffic that leaves the region
        shares this rate, and each link into the region has it. None leaves the links unchanged.
    burst_bps, burst_bytes : float, optional
        Burst credit of each link into the region: see `LinkSettings`. Traffic that leaves the region then shares
        `burst_bps`.
    price_usd_per_hour : float, optional
        Price of one such broker; it does not affect measurements.
    """

    name: str
    processors: float | None = None
    link_bps: float | None = None
    price_usd_per_hour: float | None = None
    burst_bps: float | None = None
    burst_bytes: float | None = None

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise refusal("BrokerSize name", self.name, "one line of text")
        check_fields(
            self,
            ("processors", SMALLEST_SHARE, MOST_PROCESSORS),
            ("link_bps", 1000, 1e12),
            ("price_usd_per_hour", 0, 1e6),
            ("burst_bps", self.link_bps or 1000, 1e12),
            ("burst_bytes", 1, 1e15),
            optional=("processors", "link_bps", "price_usd_per_hour", "burst_bps", "burst_bytes"),
        )
        if None in (self.link_bps, self.burst_bps, self.burst_bytes) and (self.burst_bps or self.burst_bytes):
            raise refusal("BrokerSize burst_bps", self.burst_bps, "with both burst_bytes and link_bps, or None")

    def __str__(self) -> str:
        parts = [f"{self.processors:g} processors"] if self.processors is not None else []
        parts += [f"{self.link_bps / 1e6:g} Mbit/s"] if self.link_bps is not None else []
        burst = f"{(self.burst_bps or 0) / 1e6:g} Mbit/s for {(self.burst_bytes or 0) / 1e6:g} MB of credit"
        parts += [burst] if self.burst_bps else []
        return f"{self.name} ({', '.join(parts) or 'no limit'})"


def sizes_by_broker(sizes: BrokerSize | Sequence[BrokerSize | None], n_brokers: int) -> tuple[BrokerSize | None, ...]:
    """
    Return the size of each broker, in order; `sizes` is one size for all, or a tuple of one (or None) for each broker.
    """
    if isinstance(sizes, BrokerSize):
        return (sizes,) * n_brokers
    if len(sizes) != n_brokers:
        raise refusal("broker_sizes", sizes, f"one size, or one for each of {n_brokers} brokers")
    return tuple(sizes)


def checked_sizes(sizes: object) -> BrokerSize | tuple[BrokerSize | None, ...] | None:
    """
    Return `sizes`, with a list turned into a tuple; raise ParameterError if it is not a size, None, or a sequence of
    these.
    """
    if sizes is None or isinstance(sizes, BrokerSize):
        return sizes
    if isinstance(sizes, list | tuple) and all(isinstance(size, BrokerSize | None) for size in sizes) and any(sizes):
        return tuple(sizes)
    raise refusal("broker_sizes", sizes, "a BrokerSize, a tuple with a BrokerSize or None per broker, or None")
