"""
Source 000: Kafka between two clouds over a VPN and over a private link.

Each claim is tested twice if possible: does it follow from the source's own numbers, and does a re-run reproduce it?
The working has both answers; the verdict is the re-run's, if any. The settings of the re-run (the RTTs of its paths,
the background, the batches that make Kafka's traffic) do not decide on the source: such claims are tested on the
source's own numbers only. These are read from its claims, so correcting a digit there corrects the verdict here.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite, sqrt

from ..checks import check_choice
from ..formatting import count, number, quantity
from ..stats.factorial.result import Factorial
from ..stats.lab.utilisation import Capacity
from ..stats.result import Estimate
from ..stats.tcp.mathis import MSS_BYTES
from ..stats.time.compare import more_or_less, times
from .ledger import Audit, read_claims

SOURCE = "000-private-vs-internet"
PATHS = {"vpn": "the VPN", "private": "the private link"}
TABLE_1 = ("min-rtt", "mean-rtt", "max-rtt", "deviation")
TRAFFIC = ("background", "kafka-traffic", "total")
PACKET_BYTES = 1500
"""A full IP packet: 1,448 bytes of TCP payload (`MSS_BYTES`) and 52 of headers."""
FRAME_BYTES = 1538
"""A full packet on an Ethernet: 38 bytes more, with preamble and gap (IEEE 802.3)."""
NOT_RERUN = "No re-run: the lab's paths were set to this value."
NOT_SET = "No re-run: the lab sets only mean and deviation, so its own extremes say nothing of the source's."
ROUNDING_MS = 0.15
"""Largest rounding error of three times with one decimal each, added or subtracted."""
JITTER = "jitter_ms"
"""The factor that varies the latency."""
IN_FLIGHT = 5
"""Unanswered requests that a Kafka producer may have (max.in.flight.requests.per.connection)."""


def private_vs_internet(
    *,
    batches: Estimate | None = None,
    packets: Estimate | None = None,
    traffic: Mapping[str, Estimate | float] | None = None,
    capacity: Capacity | None = None,
    factorial: Factorial | None = None,
) -> Audit:
    """
    Every claim of source 000.

    Omit what was not measured, or pass None: its claims are then tested on the source's own numbers only, and may stay
    open.

    Parameters
    ----------
    batches : Estimate
        Batches per second over the private link over those over the VPN: "times".
    packets : Estimate
        The same of packets per second that the brokers receive.
    traffic : mapping
        Mbit/s of "background", "kafka-traffic" and "total" over the private link, at the full rate
        (`studies.private_vs_internet.traffic`).
        Shown without a verdict: background and batches were set.
    capacity : Capacity
        Capacity of the links of this comparison (`stats.lab.utilisation.capacity`).
    factorial : Factorial
        Batches per second on delay, jitter, loss and rate.

    Raises
    ------
    ParameterError
        For another claim in `traffic`.

    Examples
    --------
    >>> rows = private_vs_internet().table().set_index("claim")
    >>> rows.verdict[["total", "more", "thesis"]].tolist()
    ['reproduced', 'not reproduced', 'undecided']
    """
    audit = read_claims(SOURCE)
    traffic = dict(traffic or {})
    for claim in traffic:
        check_choice("claim of traffic", claim, TRAFFIC)
    _table_1(audit)
    _jitter(audit)
    _ratio(audit, batches, packets)
    _traffic(audit, traffic, capacity)
    _thesis(audit, factorial)
    return audit


def _claimed(audit: Audit, claim: str) -> float:
    """The number that the source claims."""
    return audit.claims[claim].number


def _path(audit: Audit, path: str) -> tuple[float, float, float, float]:
    """Minimum, mean, maximum and deviation of a path's RTTs in ms, as claimed."""
    return tuple(_claimed(audit, f"{path}-{statistic}") for statistic in TABLE_1)


def _harmonic(audit: Audit, path: str) -> float:
    """
    The harmonic mean of a path's RTTs, in ms: 1 over the mean of 1/RTT, to second order in the deviation.

    The source's deviation is taken as a standard deviation; that of the VPN can be one, and that of the private link
    changes its mean by a ten-thousandth.
    """
    _, mean, _, deviation = _path(audit, path)
    return mean / (1 + (deviation / mean) ** 2)


def _table_1(audit: Audit) -> None:
    for path in PATHS:
        minimum, mean, maximum, deviation = _path(audit, path)
        is_ordered = minimum <= mean <= maximum
        ordered = " <= ".join(audit.claims[f"{path}-{statistic}"].written for statistic in TABLE_1[:3])
        own = f"Own numbers: that {ordered} {'holds' if is_ordered else 'does not hold'}."
        for statistic in TABLE_1[:3]:
            why = NOT_RERUN if statistic == "mean-rtt" else NOT_SET
            audit.judge(f"{path}-{statistic}", None if is_ordered else False, f"{own} {why}")
        own, consistent = _deviation(minimum, mean, maximum, deviation)
        audit.judge(f"{path}-{TABLE_1[3]}", None if consistent else False, f"{own} {NOT_RERUN}")


def _deviation(minimum: float, mean: float, maximum: float, deviation: float) -> tuple[str, bool]:
    """What the claimed deviation can be, and whether it is the largest deviation from the mean, as the source says."""
    farthest = max(maximum - mean, mean - minimum)
    bound = sqrt(max((maximum - mean) * (mean - minimum), 0.0))
    return (
        f"Own numbers: the RTT farthest from the mean is {number(farthest, 1)} ms off, which is the largest deviation. "
        f"The claimed one can{'' if deviation <= bound else 'not'} be a standard deviation, as ping's mdev is: with "
        f"this minimum, mean and maximum none exceeds {number(bound, 1)} ms (Bhatia & Davis 2000).",
        abs(farthest - deviation) <= ROUNDING_MS,
    )


def _jitter(audit: Audit) -> None:
    deviations = {path: _path(audit, path)[3] for path in PATHS}
    units = {audit.claims[f"{path}-deviation"].unit for path in PATHS}
    squares = " and ".join(f"{number(value**2)} ms² over {PATHS[path]}" for path, value in deviations.items())
    ratio = deviations["vpn"] / deviations["private"]
    audit.judge(
        "jitter",
        units <= {"ms²"},
        "Holds if the jitter that is then given is a variance, in ms². Table 1 gives it in "
        f"{', '.join(sorted(units))}, and ping prints mdev, a standard deviation: the variances would be {squares}, "
        f"{number(ratio**2, 0)} times apart where the table shows {number(ratio, 0)} times.",
    )


def _ratio(audit: Audit, batches: Estimate | None, packets: Estimate | None) -> None:
    """ "225 % more" and "2.25 times" are two numbers: which one do Table 1, the packets and a re-run agree with?"""
    more, as_times, of_packets = (_claimed(audit, name) for name in ("more", "times", "packets"))
    literally = 1 + more / 100
    predicted = _harmonic(audit, "vpn") / _harmonic(audit, "private")
    step = audit.claims["packets"].half_step
    agreeing = [ratio for ratio in (literally, as_times) if abs(ratio - of_packets) <= step]
    nearer = min((literally, as_times), key=lambda ratio: abs(ratio - predicted))
    own = (
        f"Own numbers: {more:g} % more is {times(literally)} as much, and {times(as_times)} as much is "
        f"{more_or_less(as_times)}. About {times(of_packets)} the packets agrees with "
        f"{' and '.join(map(times, agreeing)) or 'neither'}. Throughput that the window limits ({IN_FLIGHT} requests "
        f"in flight times batch, over RTT) goes with the mean of 1 / RTT: Table 1 alone predicts {times(predicted)}, "
        f"nearer to {times(nearer)}."
    )
    if batches is None:
        audit.judge("more", nearer == literally, f"Holds if this reading is the nearer one. {own}")
        audit.judge("times", nearer == as_times, f"Holds if this reading is the nearer one. {own}")
    else:
        working = f"{own} Re-run: {_against_table_1(batches, predicted)}"
        percent_more = batches.transformed(
            lambda ratio: 100 * (ratio - 1),
            quantity=batches.quantity,
            claim="Batches per second over the private link are {} more",
            unit="%",
        )
        audit.compare("more", percent_more, working)
        audit.compare("times", batches, working)
    proportional = (
        f"Own numbers: if packets go with batches, {times(as_times)} the batches "
        f"{'rounds' if as_times in agreeing else 'does not round'} to it, {times(literally)} "
        f"{'rounds' if literally in agreeing else 'does not'}."
    )
    if packets is None:
        audit.compare("packets", as_times, proportional)
    else:
        audit.compare("packets", packets, f"{proportional} Re-run:")


def _against_table_1(batches: Estimate, predicted: float) -> str:
    if not isfinite(batches.low):
        return "the ratio has no interval."
    inside = batches.low <= predicted <= batches.high
    return f"what Table 1 predicts lies {'inside' if inside else 'outside'} the interval."


def _traffic(audit: Audit, traffic: Mapping, capacity: Capacity | None) -> None:
    background, kafka, total = (_claimed(audit, name) for name in TRAFFIC)
    private_mbps, vpn_mbps = (1000 * _claimed(audit, claim) for claim in ("same-rate", "vpn-rate"))
    private_ms, vpn_ms = (_harmonic(audit, path) for path in ("private", "vpn"))
    own = {
        "background": f"{number(background / private_mbps * 100)} % of the private link's rate.",
        "kafka-traffic": f"{number(kafka * private_ms / 8000)} MB in flight over the private link; as much in flight "
        f"over the VPN is {number(kafka * private_ms / vpn_ms, 0)} Mbit/s.",
        "total": f"{number(background)} + {number(kafka)} = {number(background + kafka)}.",
    }
    for claim in TRAFFIC:
        working = f"Own numbers: {own[claim]}"
        if claim in traffic:
            working += f" Re-run, with background and batches that were set: {traffic[claim]}"
        if claim == "total":
            audit.compare(claim, background + kafka, working)
        else:
            audit.judge(claim, None, working)
    audit.judge(
        "same-rate",
        None,
        "A setting, not a measurement: neither path was measured without other traffic. According to the source, the "
        f"VPN can carry {number(vpn_mbps)} Mbit/s.",
    )
    audit.judge("vpn-rate", None, "A figure of the providers, not a measurement of this test.")
    lower_mbps = min(private_mbps, vpn_mbps)
    in_packets, on_wire = (total * size / MSS_BYTES for size in (PACKET_BYTES, FRAME_BYTES))
    ratio = _claimed(audit, "times")
    audit.judge(
        "below-rate",
        in_packets < lower_mbps,
        "Holds if the total, taken as payload of full packets, is in IP packets below the lower rate: own numbers: "
        f"{number(in_packets, 0)} Mbit/s, and {number(on_wire, 0)} Mbit/s on an Ethernet, of {number(lower_mbps)}. "
        f"Over the VPN the total was less: with {times(ratio)} the batches over the private link, "
        f"{number(background + kafka / ratio, 0)} Mbit/s.",
    )
    _queues(audit, total / lower_mbps, capacity)


def _queues(audit: Audit, share: float, capacity: Capacity | None) -> None:
    waiting = share**2 / (2 * (1 - share)) if share < 1 else inf
    own = f"Own numbers: a mean of {quantity(share, 'fraction')} of the rate; a mean says nothing of moments."
    if capacity is None:
        audit.judge("never-full", None, own)
    else:
        audit.judge(
            "never-full", capacity.never_full, f"Holds if it was never so. {own} Re-run: {capacity.sentence}"
        )
    own = (
        f"Own numbers: at {quantity(share, 'fraction')} of the rate, packets of one size that arrive at random find "
        f"{number(waiting)} others waiting on average (the queue M/D/1, by the Pollaczek-Khinchine formula)."
    )
    if capacity is None:
        audit.judge("no-queue", waiting < 1, f"Holds if fewer than 1 packet would wait. {own}")
        return
    rows = capacity.links[capacity.links.share_at_capacity == 0]
    queued = (rows.max_backlog_ms > 0) | (rows.packets_queue_dropped > 0)
    measured = rows.max_backlog_ms.notna().all() and len(rows)
    audit.judge(
        "no-queue",
        False if queued.any() else True if measured else None,
        f"Holds if links that were never at capacity never had packets waiting or dropped. {own} Re-run: "
        f"{number(queued.sum())} of {count(len(rows), 'such link')}, counted once per test, had.",
    )


def _thesis(audit: Audit, factorial: Factorial | None) -> None:
    rates = " and ".join(f"{audit.claims[name].written} Gbit/s" for name in ("same-rate", "vpn-rate"))
    ratio = _path(audit, "vpn")[1] / _path(audit, "private")[1]
    own = (
        f"Own numbers: the mean RTTs differ by a factor of {number(ratio)}, and so do other properties of both paths, "
        f"while rates ({rates}) were never varied: one comparison of two paths cannot tell latency from bandwidth."
    )
    by_rtt = _harmonic(audit, "vpn") / _harmonic(audit, "private")
    left = _claimed(audit, "times") / by_rtt
    mean_alone = (
        f"Own numbers: the RTTs of Table 1, by the mean of 1 / RTT, explain {times(by_rtt)}, which leaves a factor of "
        f"{number(left)}."
    )
    if factorial is None:
        audit.judge("thesis", None, own)
        audit.judge("variations", None, mean_alone)
        return
    verdicts = set(factorial.combinations.verdict) if factorial.thesis is not None else set()
    audit.judge(
        "thesis",
        False if "fails" in verdicts else True if "holds" in verdicts else None,
        "Holds if halving the delay gains more than doubling the rate at some levels, and less at none: the source "
        f"gives no bound. {own} Re-run: {factorial.verdict() or 'delay and rate were not both varied.'}"
        + (
            f" {factorial.shares_sentence()} {factorial.thesis.sentence}"
            if factorial.thesis is not None
            else ""
        ),
    )
    varied = factorial.doublings | factorial.effects
    doubled = varied.get(JITTER)
    if doubled is None:
        audit.judge("variations", None, f"{mean_alone} Re-run: {JITTER} was not varied.")
        return
    delay = varied.get(factorial.delay)
    audit.judge(
        "variations",
        True if doubled.high < 1 else False if doubled.low > 1 else None,
        "Holds if the interval of the factor by which more variation multiplies batches lies below 1. "
        f"{mean_alone} Re-run: {doubled.sentence}"
        + (f" Of the delay: {delay.sentence}" if delay is not None else ""),
    )
