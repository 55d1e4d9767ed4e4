"""Apply broker sizes while a block runs, and remove them afterwards, whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from wanbench.errors import LabError, ParameterError
from wanbench.measure.kafka.placement import BrokerSize, sizes_by_broker
from wanbench.measure.labs.base import Host

from .base import ExperimentError, cluster_of, links_of
from .broker_slowness import Slowness

NO_DISK_RATE = (
    "a disk rate cannot be given: the throttle of control groups v1 holds back direct writes only, while a broker "
    "writes through the page cache; that of v2 (io.max) is not used yet"
)


@contextmanager
def sized(source: Host, sizes: BrokerSize | tuple[BrokerSize | None, ...]) -> Iterator[None]:
    """
    Apply these broker sizes while the block runs.

    A broker that died meanwhile is restarted, so that the next trial finds a complete cluster. The lab's supervisor deletes
    the control groups of a killed lab.

    Raises
    ------
    ExperimentError
        If the cluster, the links or the kernel cannot apply the sizes.
    """
    cluster = cluster_of(source)
    if not hasattr(cluster, "pid_file"):
        raise ExperimentError(f"{cluster!r} runs elsewhere: its brokers cannot be given a size")
    try:
        each = sizes_by_broker(sizes, len(cluster.brokers))
    except ParameterError as error:
        raise ExperimentError(str(error)) from error
    wanted = [(broker, size) for broker, size in zip(cluster.brokers, each, strict=True) if size is not None]
    if any(size.disk_bps is not None for _, size in wanted):
        raise ExperimentError(NO_DISK_RATE)
    with ExitStack() as undoing:
        undoing.callback(_revive, cluster)  # the last of all: a broker starts slowly under a quota
        for broker, size in wanted:
            if size.link_bps is not None:
                _set_links(broker, size.link_bps, cluster, undoing)
        for broker, size in wanted:
            if size.processors is not None:
                _set_share(broker, size.processors, cluster, undoing)
        yield


def _set_links(broker, rate_bps, cluster, undoing) -> None:
    links, region = links_of(broker.host), broker.host.region
    if not hasattr(links, "set_gateway"):
        raise ExperimentError(f"the links of {broker.host.name} cannot be given a rate")
    if sum(other.host.region == region for other in cluster.brokers) > 1:
        raise ExperimentError(f"link_bps needs a region with one broker; {region} has several")
    undoing.callback(links.set_gateway, region, links.gateways.get(region))
    links.set_gateway(region, rate_bps)
    for pair, link in dict(links.links).items():
        if pair[1] == region:
            undoing.callback(links.set_link, *pair, rate_bps=link.rate_bps)
            links.set_link(*pair, rate_bps=rate_bps)


def _set_share(broker, processors, cluster, undoing) -> None:
    slowness = Slowness(cluster, broker.node_id, processors)
    undoing.callback(slowness.end)
    if slowness.by_cycles and processors >= 1:
        raise ExperimentError(
            f"broker {broker.node_id} cannot be given {processors:g} processors: there is no quota here, and duty "
            f"cycles allow less than one"
        )


def _revive(cluster) -> None:
    for broker in cluster.brokers:
        if not cluster.runs(broker.node_id):
            with suppress(LabError):
                cluster.start(broker.node_id)
