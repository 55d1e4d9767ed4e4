"""
Source 004: which instance type carries the most Kafka messages per dollar.

The source prints no rate, but its price per hour over its cost per message is one: messages per hour and priced broker,
up to a factor common to all instances (brokers priced, copies stored). Comparing instances needs no such factor. Every
number is read from the claims, so correcting a digit there corrects the verdict.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from wanbench.errors import ParameterError
from wanbench.formatting import count, number, quantity
from wanbench.methods.claims.ledger import Audit, read_claims
from wanbench.methods.claims.rules import Rule, apply_rules, under
from wanbench.methods.result import Estimate, Result

from .comparisons import compare_all
from .costs import Frontier, SizeCosts
from .over_time import OverTime


def evidence(
    costs: SizeCosts, frontier: Frontier | None, times: OverTime, *, plain: str, more_network: str | None = None
) -> dict[str, Estimate]:
    """
    Every measured estimate that a claim refers to.

    Parameters
    ----------
    plain, more_network : str
        A setting, and another that differs from it only in having twice the network rate.
    """
    trials = _with_requests(costs.trials, times)
    found = {"cost_lead": costs.lead, "rate_spread": _spread(trials, plain)}
    if frontier is not None:
        low, *_, high = frontier.latencies.settings
        found["producer_latency"] = replace(
            frontier.latencies.ratios[high, low],
            quantity="largest p99 over smallest",
            claim="The largest p99 of a setting is {} the smallest",
        )
    if more_network is not None:
        for name, column, what in (
            ("network_limit", "brokers_sent_bps", "bytes that brokers send"),
            ("network_iowait", "iowait", "share of time in IOWait"),
        ):
            ratio = _ratio(trials, column, more_network, plain)
            if ratio is not None:
                claim = f"With twice the network's rate, {what} are {{}} those with the plain one"
                found[name] = replace(ratio, quantity=f"{what}, twice the network", claim=claim)
    best, other = costs.rates.settings[-1], plain
    if best != other and (
        ratio := _ratio(trials.assign(each=trials.requests / trials.messages_per_s), "each", best, other)
    ):
        found["requests_over_messages"] = replace(
            ratio,
            quantity="requests ratio over messages ratio",
            claim=f"Between {best} and {other}, the ratio of requests is {{}} the ratio of messages",
        )
    return found


def _with_requests(trials: pd.DataFrame, times: OverTime) -> pd.DataFrame:
    """Mean requests per second of each trial in its counted seconds; NaN without broker metrics."""
    rows = times.rows[(times.rows.quantity == "requests") & (times.rows.at_s > 0)]
    keys = ["run_id", "test_id", "attempt"]
    return trials.merge(rows.groupby(keys).value.mean().rename("requests").reset_index(), on=keys, how="left")


def _ratio(trials: pd.DataFrame, column: str, of: str, over: str) -> Estimate | None:
    """The ratio of two settings; None if either has no positive value."""
    try:
        pair = trials[trials.setting.isin([of, over])]
        return compare_all(pair, column, "").ratios.get((of, over))
    except ParameterError:
        return None


def _spread(trials: pd.DataFrame, setting: str) -> Estimate:
    """Largest over smallest rate of a setting's repeats: descriptive, without an interval."""
    values = trials.messages_per_s[trials.setting == setting]
    return Estimate(
        quantity="largest rate over smallest of one size",
        claim=f"The largest rate of a repeat of {setting} is {{}} the smallest",
        estimate=float(values.max() / values.min()),
        low=float("nan"),
        high=float("nan"),
        unit="times",
        n=len(values),
        basis=count(len(values), "trial"),
        method="largest over smallest of the trials",
        assumption="none: it describes these trials",
        warnings=("more repeats would widen the range",),
    )


SOURCE = "004-price-performance"
INTEL, AMD, GRAVITON = ("m5", "m6i"), ("m6a", "m5a"), ("m6g", "m7g")
INSTANCES = (*INTEL, *AMD, *GRAVITON)
LEADER = "m7g"
RIVAL = "m6i"
"""The next after the leader by cost, and the first by rate."""
CHEAPER = tuple(f"{name}-less" for name in (*AMD, *GRAVITON))
PERCENT = 100.0
BITS = 8.0
HOUR_S, BILLION, MEGA = 3600.0, 1e9, 1e6
SIMILAR = 1.10
"""Within a tenth: the source calls Graviton3 close to Ice Lake, which is 10 % ahead of it by the costs."""
FULL = 0.9
"""A disk that is fully saturated carries at least nine tenths of its maximum."""
GRAPHS = "The source shows a figure without numbers."
RULES = (
    # share of time in IOWait with twice the network's rate over that with the plain one
    Rule("network_iowait", "iowait-network", under(1)),
)
SHOWN = {
    "cost_lead": ("leader", "clearly"),
    "rate_spread": ("runs",),
    "network_limit": ("outbound",),
    "requests_over_messages": ("throttling",),
    "producer_latency": ("producer-latency",),
}
"""Quantities of other broker sizes, which are no verdict on these instances."""


def price_performance(**measured: Estimate | Result | None) -> Audit:
    """
    Every claim of source 004, on its own numbers and on a re-run.

    Parameters
    ----------
    **measured
        The quantities of `RULES` and `SHOWN` that were measured; a trial is the unit of replication.

    Raises
    ------
    ParameterError
        There is no such quantity, or it is no estimate.

    Examples
    --------
    >>> rows = price_performance().table().set_index("claim")
    >>> rows.own[["m6g-less", "m7g-network-bytes", "leader", "clearly"]].tolist()
    ['not reproduced', 'not reproduced', 'reproduced', 'undecided']
    """
    audit = read_claims(SOURCE)
    own_numbers(audit)
    apply_rules(audit, RULES, SHOWN, measured)
    return audit


def own_numbers(audit: Audit) -> None:
    """Test the claims that the source's own numbers can test."""
    _setup(audit)
    _prices(audit)
    _units(audit)
    _costs(audit)
    _rates(audit)
    _disks(audit)
    _causes(audit)
    _stability(audit)


def messages_per_s(audit: Audit, name: str) -> float:
    """Messages per second and priced broker, by price and cost per message."""
    return audit.number(f"{name}-exact") / audit.number(f"{name}-billion") * BILLION / HOUR_S


def _mb_per_s(audit: Audit, name: str) -> float:
    """MB/s of messages per priced broker."""
    return messages_per_s(audit, name) * audit.number("message-size") / MEGA


def _setup(audit: Audit) -> None:
    brokers, partitions = audit.number("nodes"), audit.number("partitions")
    most = max(audit.number(f"{name}-ebs-bytes") / _mb_per_s(audit, name) for name in INSTANCES)
    audit.judge(
        "same-partitions",
        True if partitions % brokers == 0 else None,
        f"Holds if {number(partitions)} partitions are a multiple of {number(brokers)} brokers: "
        f"{number(partitions / brokers, 1)} each. Otherwise every broker hosts as many only with {number(brokers)} "
        "replicas, which the source does not mention. If the costs per message are those of all brokers, EBS volumes "
        f"could write {number(most, 2)} copies at most; if they are those of one, the cluster costs {number(brokers)} "
        "times what is printed.",
    )
    rate = max(_mb_per_s(audit, name) for name in INSTANCES) * brokers
    kept_gb = rate * 60 * audit.number("retention-time") / partitions / 1e3
    audit.note(
        "retention",
        f"Own numbers: a partition gets {number(kept_gb)} GB at most in the retention time, of the "
        f"{number(audit.number('retention'))} GB that this allows.",
    )


def _prices(audit: Audit) -> None:
    """Prices are printed twice; "less than Intel" is computed on the wrong base."""
    for name in INSTANCES:
        exact = audit.number(f"{name}-exact")
        audit.compare(f"{name}-price", exact, "Own numbers: the price in the conclusion.")
    for claim in CHEAPER:
        name = claim.removesuffix("-less")
        made = audit.from_printed(
            lambda one, intel: PERCENT * (1 - one / intel), f"{name}-exact", f"{RIVAL}-exact", unit="%"
        )
        price, intel = audit.number(f"{name}-exact"), audit.number(f"{RIVAL}-exact")
        audit.compare(
            claim,
            made,
            f"Own numbers: 1 - {price:g} / {intel:g}. Intel costs {number(PERCENT * (intel / price - 1), 1)} % more "
            f"({intel:g} / {price:g} - 1), which is another number.",
        )


def _units(audit: Audit) -> None:
    for name in INSTANCES:
        for what in ("ebs", "network"):
            bits, size = f"{name}-{what}", f"{name}-{what}-bytes"
            audit.compare(size, audit.number(bits) / BITS, f"Own numbers: {number(audit.number(bits))} Mbit/s over 8.")


def _costs(audit: Audit) -> None:
    """Costs against the leader's, and what could be added to them before the leader changes."""
    costs = {name: audit.number(f"{name}-billion") for name in INSTANCES}
    brokers = audit.number("nodes")
    for name in INSTANCES:
        audit.judge(
            f"{name}-billion",
            None,
            f"Own numbers: {audit.number(f'{name}-exact'):g} USD/h over it makes "
            f"{number(messages_per_s(audit, name) / MEGA)} million messages/s, "
            f"{number(_mb_per_s(audit, name), 0)} MB/s, for each of the {number(brokers)} brokers if all are priced, "
            f"for the whole cluster if one is. {_copies(audit, name)}",
        )
        if name != LEADER:
            made = audit.from_printed(
                lambda one, leader: PERCENT * (one / leader - 1), f"{name}-billion", f"{LEADER}-billion", unit="%"
            )
            working = f"Own numbers: {costs[name]:g} / {costs[LEADER]:g} - 1."
            audit.compare(f"{name}-more", made, working)
    order = sorted(costs, key=costs.get)
    gap = PERCENT * (costs[order[1]] / costs[order[0]] - 1)
    audit.judge(
        "leader",
        order[0] == LEADER,
        f"Holds if its cost is the lowest. Own numbers: {order[0]}, then {order[1]} with {number(gap, 1)} % more.",
    )
    audit.judge("clearly", None, _clearly(audit, gap))


def _copies(audit: Audit, name: str) -> str:
    """How many copies of the messages its EBS volumes can write, by the number of brokers priced."""
    brokers = audit.number("nodes")
    copies = audit.number(f"{name}-ebs-bytes") / _mb_per_s(audit, name)
    return (
        f"EBS volumes can write {number(copies, 2)} copies of that if all are priced, {number(brokers * copies, 2)} if "
        "one is."
    )


def _clearly(audit: Audit, gap: float) -> str:
    rates = {name: messages_per_s(audit, name) for name in (LEADER, RIVAL)}
    prices = {name: audit.number(f"{name}-exact") for name in (LEADER, RIVAL)}
    tied = prices[RIVAL] * rates[LEADER] / rates[RIVAL]
    added = (prices[RIVAL] * rates[LEADER] - prices[LEADER] * rates[RIVAL]) / (rates[RIVAL] - rates[LEADER])
    return (
        f"Own numbers: {number(gap, 1)} % ahead of {RIVAL}, by {number(audit.number('runs'))} runs whose scatter is "
        f"not printed. Only instances are priced: with {number(added, 3)} USD/h more per broker, such as for its EBS "
        f"volumes, both cost the same, as they do if {LEADER} costs {number(tied, 3)} USD/h; beyond that {RIVAL} leads."
    )


def _rates(audit: Audit) -> None:
    """Implied rates against the sentences on performance; ratios of instances need no factor."""
    rates = {name: messages_per_s(audit, name) for name in INSTANCES}
    order = sorted(rates, key=rates.get, reverse=True)
    own = (
        "Own numbers, by price over cost, in million messages/s: "
        + ", ".join(f"{name} {number(rates[name] / MEGA)}" for name in order)
        + "."
    )
    first = order[0] == RIVAL
    audit.judge("ice-lake", first, f"Holds if {RIVAL} has the highest rate. {own}")
    audit.judge("best", first, f"Holds if {RIVAL} has the highest rate. {own}")
    close = rates[RIVAL] / rates[LEADER]
    audit.judge(
        "graviton3-close",
        None,
        f"The source gives no bound. {RIVAL} has {number(close, 2)} times the rate of {LEADER}. {own}",
    )
    pairs = zip(INTEL, GRAVITON, strict=True)
    newer = all(SIMILAR * rates[intel] >= rates[arm] for intel, arm in pairs)
    audit.judge(
        "intel-messages",
        newer and rates[RIVAL] >= rates[LEADER],
        f"Holds if the newer Intel is ahead of Graviton3 and the older at most a tenth behind Graviton2. {own}",
    )
    slower = all(rates[amd] < max(rates[each] for each in (*INTEL, *GRAVITON)) for amd in AMD)
    audit.judge("amd-messages", slower, f"Holds if both AMD instances are behind the best others. {own}")
    audit.judge("older-intel", rates["m5"] < rates[LEADER], f"Holds if m5 is behind {LEADER}. {own}")
    ratios = {amd: rates[amd] / rates["m6g"] for amd in AMD}
    audit.judge(
        "amd-graviton2",
        None,
        "The source gives no bound. Over Graviton2: "
        f"{', '.join(f'{amd} {number(ratio, 2)} times' for amd, ratio in ratios.items())}. {own}",
    )
    produced = rates[LEADER] / rates[RIVAL]
    audit.judge(
        "more-produced",
        produced > 1,
        f"Holds if {LEADER} has the higher rate of messages in: {number(produced, 2)} times that of {RIVAL}. {own}",
    )
    group = {name: rates[name] for name in (LEADER, RIVAL, "m6a")}
    others = {name: rates[name] for name in INSTANCES if name not in group}
    spread = max(group.values()) / min(group.values())
    ahead = [name for name in others if others[name] > min(group.values())]
    no_network = "The source prints no throughput of the network."
    audit.judge(
        "same-throughput",
        None,
        f"{no_network} By messages these differ by {number(spread, 2)} times; and {LEADER} is said to send far more "
        f"than {RIVAL}. {own}",
    )
    audit.judge(
        "other-bottlenecks",
        None,
        f"{no_network} By messages, ahead of the last of the former three: {', '.join(ahead) or 'none'}. {own}",
    )
    audit.judge(
        "merit",
        None,
        f"The best x86 has {number(close, 2)} times the rate of the best ARM; of stability the source gives no "
        f"numbers. {own}",
    )


def _disks(audit: Audit) -> None:
    """Can all disks be saturated at the rates that the costs imply?"""
    shares = {name: _mb_per_s(audit, name) / audit.number(f"{name}-ebs-bytes") for name in INSTANCES}
    order = sorted(shares, key=shares.get, reverse=True)
    least = shares[order[-1]] / shares[order[0]]
    each = ", ".join(f"{name} {quantity(shares[name], 'fraction')}" for name in order)
    audit.judge(
        "saturated",
        None if least < FULL else True,
        f"Holds if each writes at least {quantity(FULL, 'fraction')} of its maximum. Own numbers: one copy per broker "
        f"priced would use {each}; so when {order[0]} is full, {order[-1]} writes {quantity(least, 'fraction')} of its "
        "maximum, whatever is priced and however often a message is stored, and only by reading "
        f"{number(1 / least - 1, 1)} times as much from disk as it writes would it be full.",
    )
    similar = audit.number("m6a-ebs") / audit.number("m5-ebs")
    audit.judge(
        "similar-ebs",
        1 / SIMILAR <= similar <= SIMILAR,
        f"Holds if they differ by at most {SIMILAR:g} times. Own numbers: m6a has {number(similar, 2)} times the EBS "
        "throughput of m5.",
    )


def _causes(audit: Audit) -> None:
    """Causes that the source's own limits of disks and networks contradict."""
    ebs = {name: audit.number(f"{name}-ebs-bytes") for name in INSTANCES}
    named = ("m6a", "m6g", "m5a")
    spared = [name for name in INSTANCES if name not in named]
    audit.judge(
        "bottleneck",
        max(ebs[name] for name in named) < min(ebs[name] for name in spared),
        "Holds if the three have less EBS throughput than each of the others. Own numbers, in MB/s: "
        + ", ".join(f"{name} {number(ebs[name])}" for name in (*named, *spared))
        + ".",
    )
    network = {name: audit.number(f"{name}-network") for name in INSTANCES}
    better = (RIVAL, LEADER)
    rest = [name for name in INSTANCES if name not in better]
    audit.judge(
        "iowait-network",
        min(network[name] for name in better) > max(network[name] for name in rest),
        f"Holds if both have a higher network bandwidth than each of the others. Own numbers, in Mbit/s: "
        f"{', '.join(f'{name} {number(network[name])}' for name in INSTANCES)}. IOWait counts waiting for disks; both "
        f"have the highest EBS throughput, {number(ebs[LEADER])} MB/s.",
    )
    bits = network[LEADER] > network[RIVAL]
    in_bytes = {name: audit.number(f"{name}-network-bytes") for name in better}
    audit.judge(
        "outbound",
        None if bits else False,
        f"Own numbers: {number(network[LEADER])} against {number(network[RIVAL])} Mbit/s allow it; as printed in "
        f"bytes, {number(in_bytes[LEADER])} against {number(in_bytes[RIVAL])} MB/s, they would not. That it was "
        "the limit is not shown.",
    )


def _stability(audit: Audit) -> None:
    """Who crashed, and who was least loaded: contradictory sentences."""
    crashed = "all Intel and AMD types crashed several times"
    for claim, other in (
        ("x86-crashed", f"only the {number(audit.number('two-types'))} AMD types could not continuously take the load"),
        ("two-types", crashed),
    ):
        working = f"{GRAPHS} Another sentence contradicts it: {other}; and {RIVAL} is said to perform best under load."
        audit.judge(claim, None, working)
    audit.judge(
        "arm-less", None, f"{GRAPHS} It is said of user time; of total time, {RIVAL} is said to be the least loaded."
    )
    audit.judge(
        "least-loaded",
        None,
        f"{GRAPHS} It is said of total time; of user time, ARM is said to take less than Intel and AMD.",
    )
