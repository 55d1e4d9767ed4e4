"""Gives the brokers of a cluster their sizes while a block runs, and takes them back whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ..errors import LabError, ParameterError
from ..kafka.broker_size import BrokerSize, sizes_by_broker
from ..kafka.programs import processor_share
from ..labs.base import Host
from ..labs.programs import program_command
from .base import ExperimentError, cluster_of, links_of

_START_S = 30.0
"""For Python to start on a busy host."""
NO_DISK_RATE = (
    "a disk rate cannot be given: the throttle of control groups v1 holds back direct writes only, while a broker "
    "writes through the page cache; that of v2 (io.max) is not used yet"
)


@contextmanager
def sized(source: Host, sizes: BrokerSize | tuple[BrokerSize | None, ...]) -> Iterator[None]:
    """
    Brokers have these sizes while the block runs.

    In the end a broker that died meanwhile is started again, so that the next trial finds the cluster whole. A
    control group of a lab that was killed is deleted by the lab's keeper.

    Raises
    ------
    ExperimentError
        If the cluster, the links or the kernel cannot give them.
    """
    cluster = cluster_of(source)
    if not hasattr(cluster, "pid_file"):
        raise ExperimentError(f"{cluster!r} runs elsewhere: its brokers cannot be given a size")
    try:
        wanted = dict(zip(cluster.brokers, sizes_by_broker(sizes, len(cluster.brokers)), strict=True))
    except ParameterError as error:
        raise ExperimentError(str(error)) from error
    wanted = {broker: size for broker, size in wanted.items() if size is not None}
    if any(size.disk_bps is not None for size in wanted.values()):
        raise ExperimentError(NO_DISK_RATE)
    with ExitStack() as undoing:
        for broker, size in wanted.items():
            if size.link_bps is not None:
                _set_links(broker, size.link_bps, cluster, undoing)
        for broker, size in wanted.items():
            if size.processors is not None:
                _set_share(broker, size.processors, cluster, undoing)
        undoing.callback(_revive, cluster)  # while they are slow: what a broker died of is over with the load
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
    program = program_command(broker.host, Path(processor_share.__file__))
    share = ["--pid-file", cluster.pid_file(broker.node_id), "--share", f"{processors:g}"]
    if processors >= 1:  # stopping and continuing a process gives it at most one
        share += ["--way", processor_share.V1]
    process = broker.host.start([*program, *share])
    undoing.callback(process.stop)
    try:
        process.wait_for_output('"by"', _START_S)
    except LabError as error:
        raise ExperimentError(
            f"broker {broker.node_id} cannot be given {processors:g} processors: {error}"
        ) from None


def _revive(cluster) -> None:
    for broker in cluster.brokers:
        if not cluster.runs(broker.node_id):
            with suppress(LabError):
                cluster.start(broker.node_id)
