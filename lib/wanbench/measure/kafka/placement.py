"""Where the nodes of a cluster run, and how large its brokers are."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from wanbench.checks import check_fields, refusal
from wanbench.errors import ParameterError
from wanbench.measure.labs.base import Host, Lab

MOST_BROKERS = 9  # maximum, as each is a Java process, and in a local lab they share one machine
MOST_CONTROLLERS = 5  # a quorum of five survives two failures; Kafka's documentation advises 3 or 5

CLIENT_PORT = 9092
BROKER_PORT = 9093
CONTROLLER_PORT = 9094
METRICS_PORT = 9404  # the port of Prometheus's exporter for JMX


@dataclass(frozen=True)
class Broker:
    """A broker as its clients see it; `metrics_port` serves its metrics over HTTP on the host's address."""

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
        return f"{'broker' if self.is_broker else 'controller'} {self.node_id} on {self.host.name}"

    @property
    def roles(self) -> str:
        return ",".join(["broker"] * self.is_broker + ["controller"] * self.is_controller)


def place_nodes(lab: Lab, brokers: Sequence[str], controllers: str | Sequence[str]) -> tuple[NodePlacement, ...]:
    """
    Place each node on a host: the first of a region on `lab.host(region, 0)`, the second on `lab.host(region, 1)`.

    `brokers` are the region of each broker; number i has the node.id i + 1. `controllers` are the region of each
    controller that is nothing else, with the node.ids that follow; or "combined": up to three of the brokers are
    controllers as well, in different regions if there are as many. ParameterError if these are not regions of the lab,
    or a region has too few hosts.
    """
    _check(lab, "brokers", brokers, 1, MOST_BROKERS)
    if controllers == "combined":
        order = sorted((brokers[:k].count(region), k + 1) for k, region in enumerate(brokers))
        controller_ids, separate = {number for _, number in order[: 3 if len(brokers) >= 3 else 1]}, ()
    else:
        _check(lab, "controllers", controllers, 1, MOST_CONTROLLERS)
        if len(controllers) % 2 == 0:
            raise ParameterError(f"there are {len(controllers)} controllers; a quorum needs 1, 3 or 5.")
        controller_ids, separate = {len(brokers) + k for k in range(1, len(controllers) + 1)}, controllers
    hosts = [lab.host(region, some[:k].count(region)) for some in (brokers, separate) for k, region in enumerate(some)]
    return tuple(NodePlacement(n, host, n <= len(brokers), n in controller_ids) for n, host in enumerate(hosts, 1))


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


SMALLEST_SHARE = 0.01  # the kernel's minimum quota is 1 ms in its period of 100 ms
MOST_PROCESSORS = 1_024


@dataclass(frozen=True)
class BrokerSize:
    """
    The size of a broker; brokers of one name have one size.

    Parameters
    ----------
    processors : float, optional
        Number of processors, 0.5 is half of one; None: no limit. The limit is a quota of a control group where the
        kernel has one, which stops all threads of the broker once they have used up their share of 100 ms;
        otherwise, and only below 1, the process is stopped and continued: see
        `wanbench.measure.kafka.programs.processor_share`.
    link_bps : float, optional
        Rate of the host's network, in bit/s: all that leaves its region shares it, and each link into the region
        has it. For a region with one broker. None: the links stay as they are.
    disk_bps : float, optional
        Rate of the disk, in bit/s of data. No lab can give it yet: a trial that asks for it is refused, with why.
    price_usd_per_hour : float, optional
        Price of one such broker. It does not affect measurements.
    """

    name: str
    processors: float | None = None
    link_bps: float | None = None
    disk_bps: float | None = None
    price_usd_per_hour: float | None = None

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise refusal("BrokerSize name", self.name, "one line of text")
        check_fields(
            self,
            ("processors", SMALLEST_SHARE, MOST_PROCESSORS),
            ("link_bps", 1000, 1e12),
            ("disk_bps", 1000, 1e12),
            ("price_usd_per_hour", 0, 1e6),
            optional=("processors", "link_bps", "disk_bps", "price_usd_per_hour"),
        )

    def __str__(self) -> str:
        parts = [f"{self.processors:g} processors"] if self.processors is not None else []
        parts += [f"{self.link_bps / 1e6:g} Mbit/s"] if self.link_bps is not None else []
        parts += [f"disk {self.disk_bps / 1e6:g} Mbit/s"] if self.disk_bps is not None else []
        return f"{self.name} ({', '.join(parts) or 'no limit'})"


def sizes_by_broker(sizes, n_brokers: int) -> tuple[BrokerSize | None, ...]:
    """Return the size of each broker, in order; `sizes` is one for all, or a tuple with one or None for each."""
    if isinstance(sizes, BrokerSize):
        return (sizes,) * n_brokers
    if len(sizes) != n_brokers:
        raise refusal("broker_sizes", sizes, f"one size, or one for each of {n_brokers} brokers")
    return tuple(sizes)


def checked_sizes(sizes):
    """One size, a tuple of sizes and None (lists become tuples), or None; ParameterError for anything else."""
    if sizes is None or isinstance(sizes, BrokerSize):
        return sizes
    known = isinstance(sizes, list | tuple) and all(size is None or isinstance(size, BrokerSize) for size in sizes)
    if known and any(sizes):
        return tuple(sizes)
    raise refusal("broker_sizes", sizes, "a BrokerSize, a tuple with a BrokerSize or None per broker, or None")
