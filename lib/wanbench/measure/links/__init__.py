"""
The emulated WAN: links with delay, jitter, loss, rate and queue between network namespaces of this machine.

`LinkSettings` describes one direction of a pair of regions; `link` decides what happens to each packet; `relay` moves
the packets, in user space; `lab_supervisor` is the process that owns the namespaces.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from wanbench.checks import check_number
from wanbench.errors import ParameterError

# Default ratio of an emulated path's length to the geodesic, close to the median of measured paths.
PATH_INFLATION = 1.5

JITTER_CORRELATION_S = 0.05  # default correlation time of the delay: a few round trips of a short path

MIN_QUEUE_BYTES = 65_536  # minimum default queue: one burst of a host (64 KiB)

# Minimum default queue, as the time that it takes to drain at the link's rate. On pairs a few milliseconds apart, one
# bandwidth-delay product is smaller than the bursts into which a busy machine's scheduler groups a steady flow: a queue
# that short would measure the machine.
MIN_QUEUE_MS = 20

_BOUNDS = {"delay_ms": (0, 10_000), "jitter_ms": (0, 5_000), "loss": (0, 1), "jitter_correlation_s": (1e-3, 3600)}
_OPTIONAL_BOUNDS = {"rate_bps": (1_000, 1e12), "queue_bytes": (1, 1e11), "mean_loss_burst": (1, 1e6)}


@dataclass(frozen=True)
class LinkSettings:
    """
    The emulated link of one direction of a pair.

    A packet waits in the queue, is sent at the rate, may then be lost, and arrives after the delay. Packets stay in
    order. Sizes are those of IP packets, with IP headers and without link-layer headers.

    Parameters
    ----------
    delay_ms : float
        One-way delay, 0 to 10,000.
    jitter_ms : float
        Standard deviation of the delay, at most half of `delay_ms`, so that the mean delay can be `delay_ms`. The delay
        changes gradually (a first-order autoregression), not independently from packet to packet. As packets stay in
        order, a packet whose delay is much shorter than its predecessor's waits for it. This raises the mean: by 0.2 ms
        if 1,000 packets a second cross a link of 5 ms jitter.
    loss : float
        Share of the packets on the wire that are lost, 0 to 1.
    rate_bps : float or None
        Rate in bits per second; None means no limit other than the machine's speed.
    queue_bytes : int or None
        Maximum number of queued bytes; packets that do not fit are dropped. None stands for the value of
        `queue_in_bytes`. Without a rate there is no queue.
    jitter_correlation_s : float
        Time after which the autocorrelation of the delay has fallen to 1/e.
    mean_loss_burst : float or None
        Mean number of packets in a row that are lost, 1 or more. With None, losses are independent, and the mean is 1 /
        (1 - `loss`). Bursts are those of Gilbert's model (Gilbert 1960; Elliott 1963 generalises it; parameters as in
        Hasslinger & Hohlfeld 2008): a packet is lost in the bad state only, after each packet the bad state ends with
        probability r = 1 / `mean_loss_burst`, and the good one with p = r `loss` / (1 - `loss`), which cannot exceed 1.

    Examples
    --------
    >>> LinkSettings(delay_ms=-1)
    Traceback (most recent call last):
        ...
    wanbench.errors.ParameterError: delay_ms is -1; allowed: a number from 0 to 10000.
    """

    delay_ms: float
    jitter_ms: float = 0.0
    loss: float = 0.0
    rate_bps: float | None = None
    queue_bytes: int | None = None
    jitter_correlation_s: float = JITTER_CORRELATION_S
    mean_loss_burst: float | None = None

    def __post_init__(self):
        for name, bounds in (_BOUNDS | _OPTIONAL_BOUNDS).items():
            value = check_number(name, getattr(self, name), *bounds, optional=name in _OPTIONAL_BOUNDS)
            object.__setattr__(self, name, value)  # a plain number, because JSON cannot hold those of NumPy
        if self.jitter_ms > self.delay_ms / 2:
            raise ParameterError(
                f"jitter_ms is {self.jitter_ms}; allowed: at most half of delay_ms ({self.delay_ms}), because a delay "
                "cannot be negative and its mean must stay."
            )
        if self.mean_loss_burst and self.loss > self.mean_loss_burst / (self.mean_loss_burst + 1):
            raise ParameterError(
                f"loss is {self.loss} with mean_loss_burst {self.mean_loss_burst:g}; allowed: at most mean_loss_burst "
                "/ (mean_loss_burst + 1), because at least one packet arrives between two bursts."
            )


def queue_in_bytes(settings: LinkSettings, back_delay_ms: float | None = None) -> int | None:
    """
    Return the size of a link's queue in bytes; None if the link has no rate, because then no packet waits.

    It is `queue_bytes` if that is set. Otherwise it is one bandwidth-delay product at the pair's nominal RTT, but at
    least 20 ms at the link's rate and at least 65,536 bytes. `back_delay_ms` is the one-way delay of the opposite
    direction; by default it is the same.

    >>> queue_in_bytes(LinkSettings(delay_ms=50, rate_bps=80e6)), queue_in_bytes(LinkSettings(delay_ms=1, rate_bps=1e6))
    (1000000, 65536)
    """
    if settings.rate_bps is None:
        return None
    if settings.queue_bytes is not None:
        return int(settings.queue_bytes)
    back = settings.delay_ms if back_delay_ms is None else back_delay_ms
    product = settings.rate_bps / 8 * max(settings.delay_ms + back, MIN_QUEUE_MS) / 1000
    return max(MIN_QUEUE_BYTES, math.ceil(product))


def gateway_queue_in_bytes(links: Mapping[tuple[str, str], LinkSettings], region: str, rate_bps: float) -> int | None:
    """
    Return the size of a region's gateway queue in bytes: the largest value that `queue_in_bytes` returns for the links
    that leave the region, at the gateway's rate.

    >>> links = {("a", "b"): LinkSettings(10), ("a", "c"): LinkSettings(50), ("c", "a"): LinkSettings(50)}
    >>> gateway_queue_in_bytes(links, "a", 80e6)
    1000000
    """
    queues = []
    for (source, target), settings in links.items():
        if source == region:
            back = links.get((target, source))
            at_rate = replace(settings, rate_bps=rate_bps, queue_bytes=None)
            queues.append(queue_in_bytes(at_rate, back and back.delay_ms))
    return max(queues, default=None)
