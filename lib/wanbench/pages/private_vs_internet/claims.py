"""
Test the claims of source 000: Kafka between two clouds, over a VPN and over a private link.

Our measurement sets the RTTs, the background traffic and the batches, so it cannot test claims about these; they are
tested by the source's own numbers only. All numbers of the source are read from its claims file.
"""

from collections.abc import Mapping
from math import inf, sqrt

from wanbench.checks import check_choice
from wanbench.formatting import number, quantity
from wanbench.methods.claims.ledger import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Audit, read_claims
from wanbench.methods.claims.rules import NEVER, NO_VERDICT, Rule, apply_rules, main_estimate, over, under
from wanbench.methods.lab.utilisation import Capacity
from wanbench.methods.result import Estimate
from wanbench.methods.result.means import share_of
from wanbench.methods.tcp.models import MSS_BYTES
from wanbench.methods.trials.processors import ProcessorEffect

from .result import Factorial
from .two_links import more_or_less, times

SOURCE = "000-private-vs-internet"
PATHS = {"vpn": "the VPN", "private": "the private link"}
TABLE_1 = ("min-rtt", "mean-rtt", "max-rtt", "deviation")
TRAFFIC = ("background", "kafka-traffic", "total")
PACKET_BYTES = 1500  # A full IP packet: 1,448 bytes of TCP payload (`MSS_BYTES`) and 52 of headers
FRAME_BYTES = 1538  # A full packet on Ethernet: 38 bytes more, with preamble and gap (IEEE 802.3)
NOT_RERUN = "No re-run: the lab's paths were set to this value."
NOT_SET = "No re-run: the lab sets only mean and deviation, so its minimum and maximum do not test the source's."
ROUNDING_MS = 0.15  # Largest rounding error of a sum of three times with one decimal each
JITTER = "jitter_ms"  # The factor that varies the latency
RATIOS = (Rule("batches", "times"), Rule("percent_more", "more"), Rule("packets", "packets"))
RULES = (
    *RATIOS,
    Rule("jitter", "variations", under(1)),  # batches per second with more variation over that with less
    Rule("queued", "no-queue", NEVER),
)
IN_FLIGHT = 5  # Unanswered requests of a Kafka producer (max.in.flight.requests.per.connection)


def private_vs_internet(
    *,
    batches: Estimate | None = None,
    packets: Estimate | None = None,
    machine: ProcessorEffect | None = None,
    traffic: Mapping[str, Estimate | float] | None = None,
    capacity: Capacity | None = None,
    factorial: Factorial | None = None,
) -> Audit:
    """
    Test every claim of source 000, by arithmetic on the numbers that it prints and by measured quantities.

    A claim on a quantity that was not measured (None) is tested by arithmetic only.

    batches: Ratio of the batches per second with the private link to those with the VPN.
    packets: Ratio of the packets per second that brokers receive with the private link to those with the VPN.
    machine: The effect of busy processors (`processor_effect`). If processors were full, both ratios get the verdict
        "undecided", because full processors may have changed them.
    traffic: Mbit/s of "background", "kafka-traffic" and "total" over the private link, at the full rate
        (`traffic.traffic`). They get no verdict, because we set background and batches.
    capacity: Capacity of the links (`utilisation.capacity`). The claim "never full" gets no verdict from it, because
        we set the load.
    factorial: The fit of batches per second on delay, jitter, loss and rate.

    Raises ParameterError: `traffic` has another key.

    >>> rows = private_vs_internet().table().set_index("claim")
    >>> rows.own[["total", "more", "thesis"]].tolist()
    ['reproduced', 'not reproduced', 'undecided']
    """
    audit = read_claims(SOURCE)
    traffic = dict(traffic or {})
    for claim in traffic:
        check_choice("claim of traffic", claim, TRAFFIC)
    _table_1(audit)
    _jitter(audit)
    _ratio(audit)
    _traffic(audit, traffic)
    _thesis(audit, factorial)
    jitter = None if factorial is None else (factorial.doublings | factorial.effects).get(JITTER)
    measured = {"batches": batches, "packets": packets, "jitter": jitter}
    if batches is not None:
        measured["percent_more"] = main_estimate("batches", batches).transformed(
            lambda ratio: 100 * (ratio - 1),
            quantity=batches.quantity,
            claim="Batches per second over the private link are {} more",
            unit="%",
        )
    if capacity is not None:
        rows = capacity.links[(capacity.links.share_at_capacity == 0) & capacity.links.max_backlog_ms.notna()]
        queued = (rows.max_backlog_ms > 0) | (rows.packets_queue_dropped > 0)
        measured["queued"] = share_of(
            int(queued.sum()), len(rows), unit_name="link", quantity="links that queued or dropped packets",
            claim="Of the links that were never at capacity, counted once per test, {} had packets waiting or dropped",
        )  # fmt: skip
        audit.note("never-full", f"{NO_VERDICT} {capacity.sentence}")
    if machine is not None and machine.full:
        full = f"processors were full with {' and '.join(machine.full)}, which biases the ratio."
        for rule in RATIOS:
            if (ratio := measured.pop(rule.measured, None)) is not None:
                audit.rerun(rule.claim, UNDECIDED, f"{full} {ratio.sentence}", ratio)
    apply_rules(audit, RULES, {}, measured)
    return audit


def _path(audit: Audit, path: str) -> tuple[float, ...]:
    """Return the claimed minimum, mean, maximum and deviation of a path's RTTs in ms."""
    return tuple(audit.number(f"{path}-{statistic}") for statistic in TABLE_1)


def _harmonic(audit: Audit, path: str) -> float:
    """
    Return the harmonic mean of a path's RTTs in ms, 1 over the mean of 1/RTT, to second order in the deviation.

    The claimed deviation is used as a standard deviation. For the VPN it can be one; for the private link it changes
    the mean only by a ten-thousandth.
    """
    _, mean, _, deviation = _path(audit, path)
    return mean / (1 + (deviation / mean) ** 2)


def _table_1(audit: Audit) -> None:
    for path in PATHS:
        minimum, mean, maximum, deviation = _path(audit, path)
        is_ordered = minimum <= mean <= maximum
        ordered = " <= ".join(audit.claims[f"{path}-{statistic}"].formatted for statistic in TABLE_1[:3])
        own = f"The source's numbers: {ordered} {'holds' if is_ordered else 'does not hold'}."
        for statistic in TABLE_1[:3]:
            why = NOT_RERUN if statistic == "mean-rtt" else NOT_SET
            audit.judge(f"{path}-{statistic}", None if is_ordered else False, f"{own} {why}")
        own, consistent = _deviation(minimum, mean, maximum, deviation)
        audit.judge(f"{path}-{TABLE_1[3]}", None if consistent else False, f"{own} {NOT_RERUN}")


def _deviation(minimum: float, mean: float, maximum: float, deviation: float) -> tuple[str, bool]:
    """Say whether the claimed deviation can be a standard deviation, and return whether it is the largest deviation."""
    farthest = max(maximum - mean, mean - minimum)
    bound = sqrt(max((maximum - mean) * (mean - minimum), 0.0))
    return (
        f"The source's numbers: the largest deviation of an RTT from the mean is {number(farthest, 1)} ms. The "
        f"claimed deviation can{'' if deviation <= bound else 'not'} be a standard deviation, like ping's mdev: with "
        f"this minimum, mean and maximum a standard deviation is at most {number(bound, 1)} ms (Bhatia & Davis 2000).",
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
        f"Holds if Table 1 gives jitter as a variance, in ms². But its unit is {', '.join(sorted(units))}, and ping "
        f"prints mdev, a standard deviation. The variances would be {squares}, a ratio of {number(ratio**2, 0)} "
        f"instead of {number(ratio, 0)}.",
    )


def _ratio(audit: Audit) -> None:
    """Judge the source's "225 % more" and "2.25 times" by its Table 1 and its numbers of packets."""
    more, as_times, of_packets = (audit.number(name) for name in ("more", "times", "packets"))
    literally = 1 + more / 100
    predicted = _harmonic(audit, "vpn") / _harmonic(audit, "private")
    step = audit.claims["packets"].half_step
    agreeing = [ratio for ratio in (literally, as_times) if abs(ratio - of_packets) <= step]
    nearer = min((literally, as_times), key=lambda ratio: abs(ratio - predicted))
    own = (
        f"The source's numbers: {more:g} % more is {times(literally)} as much, and {times(as_times)} as much is "
        f"{more_or_less(as_times)}. The claimed ratio of packets, about {times(of_packets)}, agrees with "
        f"{' and '.join(map(times, agreeing)) or 'neither'}. Throughput limited by the window ({IN_FLIGHT} requests in "
        "flight times the batch size, divided by the RTT) is proportional to the mean of 1 / RTT: Table 1 alone "
        f"predicts a ratio of {times(predicted)}, nearer to {times(nearer)}."
    )
    rule = "Holds if the ratio that Table 1 predicts is nearer to {} than to {}. "
    audit.judge("more", nearer == literally, rule.format(times(literally), times(as_times)) + own)
    audit.judge("times", nearer == as_times, rule.format(times(as_times), times(literally)) + own)
    audit.compare(
        "packets",
        as_times,
        f"The source's numbers: if packets are proportional to batches, {times(as_times)} "
        f"{'rounds' if as_times in agreeing else 'does not round'} to the claim, and {times(literally)} "
        f"{'rounds' if literally in agreeing else 'does not round'} to it.",
    )


def _traffic(audit: Audit, traffic: Mapping[str, object]) -> None:
    background, kafka, total = (audit.number(name) for name in TRAFFIC)
    private_mbps, vpn_mbps = (1000 * audit.number(claim) for claim in ("same-rate", "vpn-rate"))
    private_ms, vpn_ms = (_harmonic(audit, path) for path in ("private", "vpn"))
    own = {
        "background": f"{number(background / private_mbps * 100)} % of the private link's rate is background.",
        "kafka-traffic": f"{number(kafka * private_ms / 8000)} MB are in flight over the private link; the same "
        f"bytes in flight over the VPN yield a throughput of {number(kafka * private_ms / vpn_ms, 0)} Mbit/s.",
        "total": f"With the producers, {number(background)} + {number(kafka)} = {number(background + kafka)} Mbit/s.",
    }
    for claim in TRAFFIC:
        working = f"The source's numbers: {own[claim]}"
        if claim in traffic:
            working += f" Re-run, where background and batches were set: {traffic[claim]}"
        if claim == "total":
            audit.compare(claim, background + kafka, working)
        elif claim == "background":
            audit.note(claim, working)
        else:
            audit.judge(claim, None, working)
    audit.judge(
        "background-below",
        background < min(private_mbps, vpn_mbps),
        f"Holds if {number(background)} Mbit/s is below the rates of both links, {number(private_mbps)} and "
        f"{number(vpn_mbps)}.",
    )
    lower_mbps = min(private_mbps, vpn_mbps)
    in_packets, on_wire = (total * size / MSS_BYTES for size in (PACKET_BYTES, FRAME_BYTES))
    ratio = audit.number("times")
    below = (
        "Holds if the total, taken as payload of full TCP packets and counted with their headers, is below the rate "
        "of {}. The source's numbers: with headers "
        f"{number(in_packets, 0)} Mbit/s, on Ethernet {number(on_wire, 0)}, while the rate is {number(lower_mbps)} "
        f"Mbit/s. Over the VPN the total was lower: {number(background + kafka / ratio, 0)} Mbit/s, if the private "
        "link carried "
        f"{times(ratio)} the batches."
    )
    audit.judge("below-rate", in_packets < lower_mbps, below.format("the slower link"))
    audit.judge("circuit-below", in_packets < private_mbps, below.format("the private link"))
    _queues(audit, total / lower_mbps)


def _queues(audit: Audit, share: float) -> None:
    waiting = share**2 / (2 * (1 - share)) if share < 1 else inf
    mean = f"{quantity(share, 'fraction')} of the rate"
    audit.judge(
        "never-full",
        None,
        f"The source's numbers: the mean is {mean}, which does not show whether the link was ever full for a moment.",
    )
    audit.judge(
        "no-queue",
        waiting < 1,
        f"Holds if fewer than 1 packet would wait on average. The source's numbers: at {mean}, {number(waiting)} "
        "packets wait if packets of one size arrive at random (M/D/1 queue, Pollaczek-Khinchine formula).",
    )


def _thesis(audit: Audit, factorial: Factorial | None) -> None:
    rates = " and ".join(f"{audit.claims[name].formatted} Gbit/s" for name in ("same-rate", "vpn-rate"))
    ratio = _path(audit, "vpn")[1] / _path(audit, "private")[1]
    own = (
        f"The source's numbers: the mean RTTs of the paths differ by a factor of {number(ratio)}, other properties "
        f"differ too, and the rates ({rates}) were not varied. One comparison of two paths cannot separate latency "
        "from bandwidth."
    )
    by_rtt = _harmonic(audit, "vpn") / _harmonic(audit, "private")
    left = audit.number("times") / by_rtt
    mean_alone = (
        f"The source's numbers: the RTTs of Table 1, by the mean of 1 / RTT, explain a ratio of {times(by_rtt)}, which "
        f"leaves a factor of {number(left)} unexplained."
    )
    audit.judge("thesis", None, own)
    audit.judge("variations", None, mean_alone)
    if factorial is None or factorial.thesis is None:
        return
    verdict = over(1).verdict(factorial.thesis)
    if "fails" in set(factorial.combinations.verdict):
        verdict = NOT_REPRODUCED
    elif verdict == REPRODUCED and "holds" not in set(factorial.combinations.verdict):
        verdict = UNDECIDED
    audit.rerun(
        "thesis",
        verdict,
        "Holds if halving the delay gains more than doubling the rate on average and at some levels of the factors, "
        f"and less at no levels. {factorial.verdict()} {factorial.shares_sentence()} {factorial.thesis.sentence}",
    )
