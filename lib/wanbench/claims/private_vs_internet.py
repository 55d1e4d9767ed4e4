"""
Source 000: Kafka between two clouds over a VPN and over a private link.

Each claim is tried twice where it can be: does it follow from the source's own numbers, and does it come out when the
test is run again? The working says both; the verdict is that of the re-run where there is one. What the re-run was set
to (the RTTs of its paths, the background, the batches that make Kafka's traffic) is no verdict on the source: such
claims are tried on the source's own numbers only. These are read from its claims, so a corrected digit there is a
corrected verdict here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf, isfinite, sqrt

from ..errors import ParameterError
from ..formatting import count, number, quantity
from ..stats.factorial.result import Factorial
from ..stats.lab.utilisation import Capacity
from ..stats.result import VALUES_INDEPENDENT, Estimate, Interval
from ..stats.time.compare import more_or_less, times
from .ledger import Audit, audit

SOURCE = "000-private-vs-internet"
PATHS = {"vpn": "the VPN", "private": "the private link"}
TABLE_1 = ("min-rtt", "mean-rtt", "max-rtt", "deviation")
TRAFFIC = ("background", "kafka-traffic", "total")
SEGMENT, PACKET, FRAME = 1448, 1500, 1538
"""Bytes of TCP payload, of IP and on the wire of a full packet: 52 of headers, 38 of Ethernet (IEEE 802.3)."""
SET = "No re-run: the lab's paths were set to these RTTs."
ROUNDING_MS = 0.15
"""How far a difference of two times with one decimal each, and a third, may be off."""
IN_FLIGHT = 5
"""Requests that a Kafka producer has unanswered at most (max.in.flight.requests.per.connection)."""


def private_vs_internet(
    *,
    batches: Estimate | None = None,
    packets: Estimate | None = None,
    traffic: Mapping[str, Estimate | Estimate | float] | None = None,
    capacity: Capacity | None = None,
    factorial: Factorial | None = None,
    jitter: str = "jitter_ms",
) -> Audit:
    """
    Every claim of source 000.

    What was not measured is left out, or None; its claims are then tried on the source's own numbers only, and stay
    undecided where these cannot tell.

    Parameters
    ----------
    batches : Estimate
        Batches per second over the private link over those over the VPN: "times".
    packets : Estimate
        The same of packets per second that the brokers receive.
    traffic : mapping
        Mbit/s of "background", "kafka-traffic" and "total" over the private link, at the full rate (`stats.traffic`).
        Shown, and no verdict: background and batches were set.
    capacity : Capacity
        What `stats.utilisation.capacity` found of the links of this comparison.
    factorial : Factorial
        Batches per second on delay, jitter, loss and rate.
    jitter : str
        Its factor that is the variation of latency.

    Raises
    ------
    ParameterError
        For a claim in `traffic` that is none of these.

    Examples
    --------
    >>> rows = private_vs_internet().table().set_index("claim")
    >>> rows.verdict[["total", "more", "thesis"]].tolist()
    ['comes out', 'does not come out', 'the data do not tell']
    """
    found = audit(SOURCE)
    traffic = dict(traffic or {})
    if wrong := [name for name in traffic if name not in TRAFFIC]:
        raise ParameterError(f"no claim {', '.join(map(str, wrong))} here; allowed: {', '.join(TRAFFIC)}")
    _table_1(found)
    _jitter(found)
    _ratio(found, batches, packets)
    _traffic(found, traffic, capacity)
    _thesis(found, factorial, jitter)
    return found


def _said(found: Audit, claim: str) -> float:
    return found.claims[claim].number


def _path(found: Audit, path: str) -> tuple[float, float, float, float]:
    """Least, mean, greatest and deviation of a path's RTTs, as claimed."""
    return tuple(_said(found, f"{path}-{what}") for what in TABLE_1)


def _harmonic(found: Audit, path: str) -> float:
    """
    The harmonic mean of a path's RTTs, in ms: 1 over the mean of 1/RTT, to second order in the deviation.

    The source's deviation is taken as a standard deviation; that of the VPN can be one, and that of the private link
    changes its mean by a ten-thousandth.
    """
    _, mean, _, deviation = _path(found, path)
    return mean / (1 + (deviation / mean) ** 2)


def _table_1(found: Audit) -> None:
    for path in PATHS:
        least, mean, greatest, deviation = _path(found, path)
        follows = least <= mean <= greatest
        ordered = " <= ".join(found.claims[f"{path}-{what}"].written for what in TABLE_1[:3])
        for what in TABLE_1:
            own = f"Own numbers: that {ordered} {'holds' if follows else 'does not hold'}."
            consistent = follows
            if what == "deviation":
                own, consistent = _deviation(least, mean, greatest, deviation)
            found.judge(f"{path}-{what}", None if consistent else False, f"{own} {SET}")


def _deviation(least: float, mean: float, greatest: float, deviation: float) -> tuple[str, bool]:
    """What the claimed deviation can be, and whether it is what it is called: the greatest from the mean."""
    farthest = max(greatest - mean, mean - least)
    most = sqrt(max((greatest - mean) * (mean - least), 0.0))
    return (
        f"Own numbers: the RTT that is farthest from the mean is {number(farthest, 1)} ms off, which is the greatest "
        f"deviation. What is given can{'' if deviation <= most else 'not'} be a standard deviation, as ping's mdev is: "
        f"with this least, mean and greatest RTT none exceeds {number(most, 1)} ms (Bhatia & Davis 2000).",
        abs(farthest - deviation) <= ROUNDING_MS,
    )


def _jitter(found: Audit) -> None:
    deviations = {path: _path(found, path)[3] for path in PATHS}
    units = {found.claims[f"{path}-deviation"].unit for path in PATHS}
    squares = " and ".join(f"{number(value**2)} ms² over {PATHS[path]}" for path, value in deviations.items())
    ratio = deviations["vpn"] / deviations["private"]
    found.judge(
        "jitter",
        units <= {"ms²"},
        "Holds if the jitter that is then given is a variance, in ms². Table 1 gives it in "
        f"{', '.join(sorted(units))}, and ping prints mdev, a standard deviation: the variances would be {squares}, "
        f"{number(ratio**2, 0)} times apart where the table shows {number(ratio, 0)} times.",
    )


def _ratio(found: Audit, batches: Estimate | None, packets: Estimate | None) -> None:
    said, as_times, of_packets = (_said(found, name) for name in ("more", "times", "packets"))
    literally = 1 + said / 100
    predicted = _harmonic(found, "vpn") / _harmonic(found, "private")
    step = found.claims["packets"].half_step
    fits = [each for each in (literally, as_times) if abs(each - of_packets) <= step]
    nearer = min((literally, as_times), key=lambda each: abs(each - predicted))
    shown = " and ".join(times(each) for each in fits) or "neither"
    own = (
        f"Own numbers: {said:g} % more is {times(literally)} as much, and {times(as_times)} as much is "
        f"{more_or_less(as_times)}. About {times(of_packets)} the packets "
        f"{'agrees with ' + shown if fits else 'agrees with neither'}. Throughput that the window limits "
        f"({IN_FLIGHT} requests in flight times batch, over RTT) goes with the mean of 1 / RTT: Table 1 alone predicts "
        f"{times(predicted)}, nearer to {times(nearer)}."
    )
    if batches is None:
        found.judge("more", nearer == literally, f"Holds if this reading is the nearer one. {own}")
        found.judge("times", nearer == as_times, f"Holds if this reading is the nearer one. {own}")
    else:
        rerun = _window_limited(batches, predicted)
        found.compare("more", _percent_more(batches), f"{own} Re-run: {rerun}")
        found.compare("times", batches, f"{own} Re-run: {rerun}")
    proportional = (
        f"Own numbers: if packets go with batches, {times(as_times)} the batches "
        f"{'rounds' if as_times in fits else 'does not round'} to it, {times(literally)} "
        f"{'rounds' if literally in fits else 'does not'}."
    )
    if packets is None:
        found.compare("packets", as_times, proportional)
    else:
        found.compare("packets", packets, f"{proportional} Re-run:")


def _window_limited(batches: Estimate, predicted: float) -> str:
    if not isfinite(batches.low):
        return "the ratio has no interval."
    inside = batches.low <= predicted <= batches.high
    return f"what Table 1 predicts lies {'inside' if inside else 'outside'} the interval."


def _percent_more(batches: Estimate) -> Estimate:
    """The same contrast as so many per cent more."""
    estimate, low, high = (100 * (value - 1) for value in (batches.estimate, batches.low, batches.high))
    return replace(
        batches,
        claim="Batches per second over the private link are {} more",
        estimate=estimate,
        low=low,
        high=high,
        unit="%",
        naive=Interval(VALUES_INDEPENDENT),
        others=(),
    )


def _traffic(found: Audit, traffic: Mapping, capacity: Capacity | None) -> None:
    background, kafka, total = (_said(found, name) for name in TRAFFIC)
    rates = {
        path: 1000 * _said(found, claim) for path, claim in (("vpn", "vpn-rate"), ("private", "same-rate"))
    }
    private_rtt, vpn_rtt = (_harmonic(found, path) for path in ("private", "vpn"))
    slower = kafka * private_rtt / vpn_rtt
    own = {
        "background": f"Own numbers: {number(background / rates['private'] * 100)} % of the private link's rate.",
        "kafka-traffic": f"Own numbers: {number(kafka * private_rtt / 8000)} MB in flight over the private link; as "
        f"much in flight over the VPN is {number(slower, 0)} Mbit/s.",
        "total": f"Own numbers: {number(background)} + {number(kafka)} = {number(background + kafka)}.",
    }
    for claim in TRAFFIC:
        again = (
            f" Re-run, with background and batches that were set: {traffic[claim]}"
            if claim in traffic
            else ""
        )
        if claim == "total":
            found.compare(claim, background + kafka, own[claim] + again)
        else:
            found.judge(claim, None, own[claim] + again)
    found.judge(
        "same-rate",
        None,
        "A setting, and no measurement: neither path was measured without other traffic. The source says that the VPN "
        f"can carry {number(rates['vpn'])} Mbit/s.",
    )
    found.judge("vpn-rate", None, "A figure of the providers, and no measurement of this test.")
    in_packets, on_wire = (total * size / SEGMENT for size in (PACKET, FRAME))
    found.judge(
        "below-rate",
        in_packets < min(rates.values()),
        "Holds if the total, taken as payload of full packets, is in IP packets below the lesser rate: own numbers: "
        f"{number(in_packets, 0)} Mbit/s, and {number(on_wire, 0)} Mbit/s on an Ethernet, of "
        f"{number(min(rates.values()))}. Over the VPN the total was less: with {times(_said(found, 'times'))} the "
        f"batches over the private link, {number(background + kafka / _said(found, 'times'), 0)} Mbit/s.",
    )
    _queues(found, total / min(rates.values()), capacity)


def _queues(found: Audit, share: float, capacity: Capacity | None) -> None:
    waiting = share**2 / (2 * (1 - share)) if share < 1 else inf
    own = f"Own numbers: a mean of {quantity(share, 'fraction')} of the rate; a mean is silent on moments."
    never = None if capacity is None else capacity.never
    found.judge(
        "never-full",
        never,
        own if capacity is None else f"Holds if it was never so. {own} Re-run: {capacity}",
    )
    own = (
        f"Own numbers: at {quantity(share, 'fraction')} of the rate packets of one size that come at random find "
        f"{number(waiting)} others waiting on average (the queue M/D/1, by Pollaczek's and Khinchine's formula)."
    )
    if capacity is None:
        found.judge("no-queue", waiting < 1, f"Holds if fewer than 1 packet would wait. {own}")
        return
    rows = capacity.links[capacity.links.share_at_capacity == 0]
    queued = (rows.greatest_backlog_ms > 0) | (rows.packets_queue_dropped > 0)
    known = rows.greatest_backlog_ms.notna().all() and len(rows)
    found.judge(
        "no-queue",
        False if queued.any() else True if known else None,
        f"Holds if links that were never at capacity never had packets waiting or dropped. {own} Re-run: "
        f"{number(queued.sum())} of {count(len(rows), 'such link')} had.",
    )


def _thesis(found: Audit, factorial: Factorial | None, jitter: str) -> None:
    rates = " and ".join(f"{found.claims[name].written} Gbit/s" for name in ("same-rate", "vpn-rate"))
    apart = _path(found, "vpn")[1] / _path(found, "private")[1]
    own = (
        f"Own numbers: the mean RTTs are {times(apart)} apart, and so are other properties of both paths, while rates "
        f"({rates}) were never set apart on purpose: one comparison of two paths cannot tell latency from bandwidth."
    )
    by_rtt = _harmonic(found, "vpn") / _harmonic(found, "private")
    left = _said(found, "times") / by_rtt
    mean_alone = (
        f"Own numbers: the RTTs of Table 1, by the mean of 1 / RTT, explain {times(by_rtt)}, which leaves a factor of "
        f"{number(left)}."
    )
    if factorial is None:
        found.judge("thesis", None, own)
        found.judge("variations", None, mean_alone)
        return
    verdicts = set(factorial.combinations.verdict) if factorial.thesis is not None else set()
    found.judge(
        "thesis",
        False if "fails" in verdicts else True if "holds" in verdicts else None,
        "Holds if halving the delay gains more than doubling the rate at some levels, and less at none: it was said "
        f"without a bound. {own} Re-run: {factorial.verdict() or 'delay and rate were not both varied.'}"
        + (f" {factorial.shares_sentence()} {factorial.thesis}" if factorial.thesis is not None else ""),
    )
    varied = factorial.doublings | factorial.effects
    doubled = varied.get(jitter)
    if doubled is None:
        found.judge("variations", None, f"{mean_alone} Re-run: {jitter} was not varied.")
        return
    others = varied.get(factorial.delay)
    found.judge(
        "variations",
        True if doubled.high < 1 else False if doubled.low > 1 else None,
        "Holds if the interval of what more variation multiplies batches by lies below 1. "
        f"{mean_alone} Re-run: {doubled}"
        + (f" Of the delay: {others.sentence}" if others is not None else ""),
    )
