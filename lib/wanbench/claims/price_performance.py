"""
Source 004: which instance type carries the most Kafka messages per dollar.

Each claim is tested on the source's own numbers (`price_performance_own`) and on a re-run's estimate, if given. The
instances themselves cannot be tested here, but the causes that the source names (disks, network, IOWait) can. Costs of
a re-run's broker sizes are shown for comparison.
"""

from __future__ import annotations

from ..stats.result import Estimate, Result
from .ledger import Audit, read_claims
from .price_performance_own import own_numbers
from .rules import Rule, all_or_none, estimates_by_name, over, try_rules, under

SOURCE = "004-price-performance"
PAGE = "10-price-performance"
LITTLE = 1.5
"""Latencies that differ by less than half as much again differ little: a chart with a linear axis hardly shows it."""
HALF = 0.5
"""Most of a time is more than half of it."""
HIGHER, LOWER = "Holds if the interval lies above 1.", "Holds if the interval lies below 1."
RULES = {
    "unresponsive": (
        Rule("iowait-grows", all_or_none, "Holds if it was so in every one, fails if in none."),
    ),
    "disk_iowait": (Rule("ebs-limits", over(1), HIGHER),),
    "disk_limit": (Rule("bottleneck", over(1), HIGHER),),
    "network_iowait": (Rule("iowait-network", under(1), LOWER),),
    "requests": (Rule("same-requests", under(1), LOWER),),
    "requests_over_messages": (Rule("throttling", over(1), HIGHER),),
    "producer_latency": (
        Rule("producer-latency", under(LITTLE), f"Holds if the interval lies below {LITTLE:g} times."),
    ),
    "iowait_share": (Rule("iowait-total", over(HALF), "Holds if the interval lies above one half."),),
}
"""By parameter of `price_performance`: the claims that an estimate tries by a bound."""
SHOWN = {"cost_lead": ("leader", "clearly"), "rate_spread": ("runs",), "network_limit": ("outbound",)}
"""By parameter: the claims next to which an estimate is shown."""
NO_VERDICT = "Re-run, of other broker sizes, which is no verdict on these instances:"


def price_performance(
    *,
    unresponsive: Estimate | Result | None = None,
    disk_iowait: Estimate | Result | None = None,
    disk_limit: Estimate | Result | None = None,
    network_iowait: Estimate | Result | None = None,
    network_limit: Estimate | Result | None = None,
    requests: Estimate | Result | None = None,
    requests_over_messages: Estimate | Result | None = None,
    producer_latency: Estimate | Result | None = None,
    iowait_share: Estimate | Result | None = None,
    cost_lead: Estimate | Result | None = None,
    rate_spread: Estimate | Result | None = None,
) -> Audit:
    """
    Every claim of source 004. Leave out what was not measured.

    Each is an Estimate, or a Result whose first estimate is one; a trial is the unit of replication. "Throughput" is
    that of producers without a limit of their rate. Ratios are "times", shares "fraction".

    Parameters
    ----------
    unresponsive : Estimate or Result
        Share of the trials with saturated disks in which brokers stopped to acknowledge.
    disk_iowait, network_iowait : Estimate or Result
        Share of time in IOWait with half the disk's rate over that with all of it; with twice the network's rate over
        that with the plain one.
    disk_limit, network_limit : Estimate or Result
        Throughput with twice the disk's rate over that with the plain one; bytes that brokers send with twice the
        network's rate over those with the plain one, shown without a verdict.
    requests : Estimate or Result
        Requests per second with a higher latency of the brokers over those with the plain one.
    requests_over_messages : Estimate or Result
        Ratio of requests per second between the best and another size, over that ratio of messages per second.
    producer_latency : Estimate or Result
        Largest p99 of producers over the smallest, between sizes under full load.
    iowait_share : Estimate or Result
        IOWait as a share of the busy time with saturated disks.
    cost_lead : Estimate or Result
        Cost per message of the second cheapest size over that of the cheapest; shown without a verdict.
    rate_spread : Estimate or Result
        Largest messages per second of one size's repeats over the smallest; shown without a verdict.

    Raises
    ------
    ParameterError
        What should be an Estimate or a Result is neither.

    Examples
    --------
    >>> rows = price_performance().table().set_index("claim")
    >>> rows.verdict[["m6g-less", "m7g-network-bytes", "leader", "clearly"]].tolist()
    ['not reproduced', 'not reproduced', 'reproduced', 'undecided']
    """
    estimates = estimates_by_name(dict(locals()), (*RULES, *SHOWN))
    audit = read_claims(SOURCE)
    own_numbers(audit)
    try_rules(audit, RULES, estimates)
    for name, claims in SHOWN.items():
        for claim in claims if name in estimates else ():
            audit.rows[claim]["working"] += f" {NO_VERDICT} {estimates[name].sentence}"
    return audit
