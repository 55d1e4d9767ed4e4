"""
The emulated WAN: links with delay, jitter, loss, rate, queue and MTU between network namespaces of this machine.

`LinkSettings` describes one direction of a pair of regions; `link` decides what happens to each packet, with CoDel in
`queues` and ICMP in `mtu`; `relay` moves the packets, in user space; `lab_supervisor` is the process that owns the
namespaces.
"""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from wanbench.checks import check_flag, check_kind, check_number, refusal
from wanbench.errors import ParameterError, RawDataError

# Default ratio of an emulated path's length to the geodesic, close to the median of measured paths.
PATH_INFLATION = 1.5

JITTER_CORRELATION_S = 0.05  # default correlation time of the delay: a few round trips of a short path

MIN_QUEUE_BYTES = 65_536  # minimum default queue: one burst of a host (64 KiB)

# Minimum default queue, as the time that it takes to drain at the link's rate. On pairs a few milliseconds apart, one
# bandwidth-delay product is smaller than the bursts into which a busy machine's scheduler groups a steady flow: a queue
# that short would measure the machine.
MIN_QUEUE_MS = 20

DEVICE_MTU_BYTES = 1500

_BOUNDS = {"delay_ms": (0, 10_000), "jitter_ms": (0, 5_000), "loss": (0, 1), "jitter_correlation_s": (1e-3, 3600)}
_OPTIONAL_BOUNDS = {
    "rate_bps": (1_000, 1e12),
    "queue_bytes": (1, 1e11),
    "mean_loss_burst": (1, 1e6),
    "queue_packets": (1, 1e9),
    "codel_target_ms": (0.1, 1_000),
    "codel_interval_ms": (1, 10_000),
    "repeat_s": (1e-3, 1e6),
    "mtu_bytes": (576, DEVICE_MTU_BYTES),
    "burst_rate_bps": (1_000, 1e12),
    "burst_bytes": (1, 1e15),
}
CODEL_INTERVAL_MS = 100.0  # the RFC's: about the longest usual RTT


@dataclass(frozen=True)
class Step:
    """
    A change of a link's settings, `at_s` seconds after the link's schedule begins; None leaves a setting unchanged.

    >>> Step(5, rate_bps=1e6)
    Step(at_s=5, delay_ms=None, loss=None, rate_bps=1000000.0)
    """

    at_s: float
    delay_ms: float | None = None
    loss: float | None = None
    rate_bps: float | None = None

    def __post_init__(self):
        bounds = {"at_s": (0, 1e6), "delay_ms": _BOUNDS["delay_ms"], "loss": (0, 1)}
        for name, allowed in (bounds | {"rate_bps": _OPTIONAL_BOUNDS["rate_bps"]}).items():
            object.__setattr__(self, name, check_number(name, getattr(self, name), *allowed, optional=name != "at_s"))


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
        Hasslinger & Hohlfeld 2008): packets are lost in the bad state only. After each packet the bad state ends with
        probability r = 1 / `mean_loss_burst`, and the good state with p = r `loss` / (1 - `loss`), which cannot exceed
        1.
    queue_packets : int or None
        Maximum number of queued packets, in addition to `queue_bytes`.
    codel_target_ms, codel_interval_ms : float or None
        With a target (RFC 8289 recommends 5), CoDel drops packets from the head of the queue, ever more often, once
        packets have waited longer than the target for an interval. The interval is 100 ms by default.
    ecn : bool or None
        Whether CoDel marks packets (RFC 3168) instead of dropping them, if their sender understands marks. Hosts
        understand marks with the sysctl `net.ipv4.tcp_ecn` = 1.
    schedule : sequence of Step, or None
        Changes of the link, in the order of their times. The schedule begins when the lab opens, and again with each
        `LocalLab.set_link`. `read_schedule` reads a schedule from a file.
    repeat_s : float or None
        Time after which the schedule begins again; None means that the last step stays.
    mtu_bytes : int or None
        Largest packet, 576 (with IPv6: 1,280) to 1,500, which is the default and the hosts' own limit. A larger packet
        is dropped, and its sender gets an ICMP message with the MTU (RFC 1191, RFC 8201). Links do not split packets,
        even if the sender permits this.
    mtu_black_hole : bool or None
        Whether packets that are too big vanish without a message, as behind a firewall that drops ICMP.
    burst_rate_bps, burst_bytes : float or None
        Burst credit, as clouds give to small instances (a token bucket): the link sends at the higher rate
        `burst_rate_bps` until it has carried `burst_bytes` more than at `rate_bps`, its baseline. Whatever it carries
        less than its baseline it earns again. Each `LocalLab.set_link` fills the credit.

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
    queue_packets: int | None = None
    codel_target_ms: float | None = None
    codel_interval_ms: float | None = None
    ecn: bool | None = None
    schedule: Sequence[Step] | None = None
    repeat_s: float | None = None
    mtu_bytes: int | None = None
    mtu_black_hole: bool | None = None
    burst_rate_bps: float | None = None
    burst_bytes: float | None = None

    def __post_init__(self):
        for name, bounds in (_BOUNDS | _OPTIONAL_BOUNDS).items():
            is_optional, is_whole = name in _OPTIONAL_BOUNDS, name in ("queue_packets", "mtu_bytes")
            value = check_number(name, getattr(self, name), *bounds, whole=is_whole, optional=is_optional)
            object.__setattr__(self, name, value)  # a plain number, because JSON cannot hold those of NumPy
        if self.schedule is not None:
            object.__setattr__(self, "schedule", tuple(self.schedule))
        check_schedule(self.schedule or (), self.repeat_s)
        check_flag("mtu_black_hole", self.mtu_black_hole, optional=True)
        if check_flag("ecn", self.ecn, optional=True) and self.codel_target_ms is None:
            raise ParameterError("ecn is True without codel_target_ms; allowed: with it, as CoDel marks.")
        if self.jitter_ms > min((self.delay_ms, *_given("delay_ms", self.schedule))) / 2:
            why = "because a delay cannot be negative and its mean must stay"
            allowed = f"at most half of delay_ms ({self.delay_ms}) and of the schedule's delays, {why}"
            raise refusal("jitter_ms", self.jitter_ms, allowed)
        burst = self.burst_rate_bps, self.burst_bytes
        served = self.schedule or self.queue_packets or self.codel_target_ms
        if any(burst) and (None in burst or served or (burst[0] or 0) < (self.rate_bps or math.inf)):
            allowed = "both, a rate_bps of at most burst_rate_bps, and no schedule, queue_packets or codel_target_ms"
            raise refusal("burst_rate_bps and burst_bytes", burst, allowed)
        loss = max((self.loss, *_given("loss", self.schedule)))
        if self.mean_loss_burst and loss > self.mean_loss_burst / (self.mean_loss_burst + 1):
            why = "because at least one packet arrives between two bursts"
            given = f"{loss} with mean_loss_burst {self.mean_loss_burst:g}"
            raise ParameterError(f"loss is {given}; allowed: at most mean_loss_burst / (mean_loss_burst + 1), {why}.")


def _given(name: str, schedule: Iterable[Step] | None) -> list[float]:
    return [value for step in schedule or () if (value := getattr(step, name)) is not None]


def check_schedule(schedule: Sequence[Step], repeat_s: float | None = None) -> None:
    """Check that the times of a schedule's steps increase and are below `repeat_s`."""
    before = -1.0
    for number, step in enumerate(schedule, 1):
        check_kind(f"step {number} of the schedule", step, Step)
        if step.at_s <= before:
            raise refusal(f"at_s of step {number} of the schedule", step.at_s, f"more than {before:g}, the step before")
        before = step.at_s
    if repeat_s is not None and (not schedule or repeat_s <= before):
        raise refusal("repeat_s", repeat_s, f"with a schedule, more than the time of its last step ({before:g})")


def read_schedule(path: str | Path) -> tuple[Step, ...]:
    """
    Read a schedule, or the trace of a path, from a CSV file.

    Its columns are `at_s` and any of `delay_ms`, `loss` and `rate_bps`, with the meaning of `Step`; an empty cell means
    unchanged. Raise RawDataError if a column is unknown or missing, a cell is not a number in the range of `Step`, or
    the times do not increase.
    """
    names, steps = [field.name for field in fields(Step)], []
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        rows = csv.reader(file)
        head = [name.strip() for name in next(rows, [])]
        if "at_s" not in head or len(set(head)) < max(2, len(head)) or set(head) - set(names):
            raise RawDataError(path, 1, ",".join(head), "at_s and one or more of delay_ms, loss and rate_bps")
        for row in rows:
            expected = f"{len(head)} numbers, {','.join(head)}, at a later time than the row before"
            try:
                cells = {name: float(cell) for name, cell in zip(head, row, strict=True) if cell.strip()}
                steps.append(Step(**cells))
                check_schedule(steps[-2:])
            except (ValueError, TypeError, csv.Error) as error:
                found = error if isinstance(error, ParameterError) else ",".join(row)
                raise RawDataError(path, rows.line_num, found, expected) from None
    if not steps:
        raise RawDataError(path, None, "no row", "one row or more")
    return tuple(steps)


def queue_in_bytes(settings: LinkSettings, back_delay_ms: float | None = None) -> int | None:
    """
    Return the size of a link's queue in bytes; None if the link has no rate, because then no packet waits.

    The size is `queue_bytes` if that is set. Otherwise it is one bandwidth-delay product at the pair's nominal RTT, but
    at least what the link sends in 20 ms, and at least 65,536 bytes. The highest rate of a schedule counts.
    `back_delay_ms` is the one-way delay of the opposite direction, by default the same.

    >>> queue_in_bytes(LinkSettings(delay_ms=50, rate_bps=80e6)), queue_in_bytes(LinkSettings(delay_ms=1, rate_bps=1e6))
    (1000000, 65536)
    """
    rates = [settings.rate_bps or 0, settings.burst_rate_bps or 0, *_given("rate_bps", settings.schedule)]
    if not any(rates):
        return None
    if settings.queue_bytes is not None:
        return int(settings.queue_bytes)
    back = settings.delay_ms if back_delay_ms is None else back_delay_ms
    product = max(rates) / 8 * max(settings.delay_ms + back, MIN_QUEUE_MS) / 1000
    return max(MIN_QUEUE_BYTES, math.ceil(product))


def gateway_queue_in_bytes(links: Mapping[tuple[str, str], LinkSettings], region: str, rate_bps: float) -> int | None:
    """
    Return the size in bytes of the queue that all links leaving a region share (see `LocalLab.set_gateway`): the
    largest value of `queue_in_bytes` for these links, at the gateway's rate.

    >>> links = {("a", "b"): LinkSettings(10), ("a", "c"): LinkSettings(50), ("c", "a"): LinkSettings(50)}
    >>> gateway_queue_in_bytes(links, "a", 80e6)
    1000000
    """
    queues = []
    for (source, target), settings in links.items():
        if source == region:
            back = links.get((target, source))
            at_rate = LinkSettings(settings.delay_ms, rate_bps=rate_bps)
            queues.append(queue_in_bytes(at_rate, back and back.delay_ms))
    return max(queues, default=None)
