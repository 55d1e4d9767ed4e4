"""
Source 004: which instance type carries the most Kafka messages per dollar.

The source prints no rate, but its price per hour over its cost per message is one: messages per hour and priced broker,
up to a factor common to all instances (brokers priced, copies stored). Comparing instances needs no such factor. Every
number is read from the claims, so correcting a digit there corrects the verdict.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from math import nan

import pandas as pd

from wanbench.errors import ParameterError
from wanbench.formatting import count, number, quantity
from wanbench.methods.claims.ledger import Audit, read_claims
from wanbench.methods.claims.rules import Rule, apply_rules, under
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Estimate, Result

from .comparisons import compare_all
from .costs import Frontier, SizeCosts
from .over_time import OverTime

SOURCE = "004-price-performance"
INTEL, AMD, GRAVITON = ("m5", "m6i"), ("m6a", "m5a"), ("m6g", "m7g")
INSTANCES = (*INTEL, *AMD, *GRAVITON)
LEADER = "m7g"
RIVAL = "m6i"
"""The next after the leader by cost, and the first by rate."""
PERCENT, MEGA = 100.0, 1e6
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


def evidence(
    costs: SizeCosts, frontier: Frontier | None, times: OverTime, *, plain: str, more_network: str | None = None
) -> dict[str, Estimate]:
    """
    Collect every measured estimate that a claim refers to.

    `more_network` names a setting that differs from `plain` only in having twice the network rate.
    """
    trials = _with_requests(costs.trials, times)
    found = {"cost_lead": costs.lead, "rate_spread": _spread(trials, plain)}
    if frontier is not None:
        low, *_, high = frontier.latencies.settings
        texts = ("largest p99 over smallest", "The largest p99 of a setting is {} the smallest")
        found["producer_latency"] = replace(frontier.latencies.ratios[high, low], quantity=texts[0], claim=texts[1])
    best = costs.rates.settings[-1]
    claim = "With twice the network's rate, {} are {{}} those with the plain one"
    requests = f"Between {best} and {plain}, the ratio of requests is {{}} the ratio of messages"
    sent, waited = "bytes that brokers send", "share of time in IOWait"
    for name, column, setting, title, text in (
        ("network_limit", "brokers_sent_bps", more_network, f"{sent}, twice the network", claim.format(sent)),
        ("network_iowait", "iowait", more_network, f"{waited}, twice the network", claim.format(waited)),
        ("requests_over_messages", "requests_each", best, "requests ratio over messages ratio", requests),
    ):
        pair = trials[trials.setting.isin([setting, plain])]
        with suppress(ParameterError):  # one of the two has no positive value
            ratio = compare_all(pair, column, "").ratios[setting, plain]
            found[name] = replace(ratio, quantity=title, claim=text)
    return found


def _with_requests(trials: pd.DataFrame, times: OverTime) -> pd.DataFrame:
    """Add the mean requests per message of each trial in its counted seconds; NaN without broker metrics."""
    rows = times.rows[(times.rows.quantity == "requests") & (times.rows.at_s > 0)]
    means = rows.groupby(KEY).value.mean().rename("requests").reset_index()
    return trials.merge(means, on=KEY, how="left").assign(
        requests_each=lambda rows: rows.requests / rows.messages_per_s
    )


def _spread(trials: pd.DataFrame, setting: str) -> Estimate:
    """Largest over smallest rate of a setting's repeats: descriptive, without an interval."""
    values = trials.messages_per_s[trials.setting == setting]
    about = {"basis": count(len(values), "trial"), "warnings": ("more repeats would widen the range",)}
    about |= {"method": "largest over smallest of the trials", "assumption": "none: it describes these trials"}
    texts = "largest rate over smallest of one size", f"The largest rate of a repeat of {setting} is {{}} the smallest"
    return Estimate(*texts, float(values.max() / values.min()), nan, nan, "times", len(values), **about)


def price_performance(**measured: Estimate | Result | None) -> Audit:
    """
    Test every claim of source 004, on its own numbers and on a re-run with quantities of `RULES` and `SHOWN`.

    >>> rows = price_performance().table().set_index("claim")
    >>> rows.own[["m6g-less", "m7g-network-bytes", "leader", "clearly"]].tolist()
    ['not reproduced', 'not reproduced', 'reproduced', 'undecided']
    """
    audit = read_claims(SOURCE)
    own_numbers(audit)
    apply_rules(audit, RULES, SHOWN, measured)
    return audit


def own_numbers(audit: Audit) -> None:
    """Test the claims that the source's own numbers can test: numbers by comparison, sentences by a bound."""
    for claim, recomputed, working in _recomputed(audit):
        audit.compare(claim, recomputed, f"Own numbers: {working}")
    for judged in (_setup, _costs, _rates, _disks, _causes, _stability):
        for claim, holds, working in judged(audit):
            audit.judge(claim, holds, working)


def messages_per_s(audit: Audit, name: str) -> float:
    """Messages per second and priced broker, by price and cost per message."""
    return audit.number(f"{name}-exact") / audit.number(f"{name}-billion") * 1e9 / 3600


def _mb_per_s(audit: Audit, name: str) -> float:
    """MB/s of messages per priced broker."""
    return messages_per_s(audit, name) * audit.number("message-size") / MEGA


def _setup(audit: Audit) -> list[tuple[str, bool | None, str]]:
    brokers, partitions = audit.number("nodes"), audit.number("partitions")
    rates = {name: _mb_per_s(audit, name) for name in INSTANCES}
    most = max(audit.number(f"{name}-ebs-bytes") / rates[name] for name in INSTANCES)
    kept_gb = max(rates.values()) * brokers * 60 * audit.number("retention-time") / partitions / 1e3
    of = f"at most in the retention time, of the {number(audit.number('retention'))} GB that this allows."
    audit.note("retention", f"Own numbers: a partition gets {number(kept_gb)} GB {of}")
    working = (
        f"Holds if {number(partitions)} partitions are a multiple of {number(brokers)} brokers: "
        f"{number(partitions / brokers, 1)} each. Otherwise every broker hosts as many only with {number(brokers)} "
        "replicas, which the source does not mention. If the costs per message are those of all brokers, EBS volumes "
        f"could write {number(most, 2)} copies at most; if they are those of one, the cluster costs {number(brokers)} "
        "times what is printed."
    )
    return [("same-partitions", True if partitions % brokers == 0 else None, working)]


def _recomputed(audit: Audit) -> list[tuple[str, float | Estimate, str]]:
    """
    Prices, which are printed twice; "less than Intel", which is computed on the wrong base; bits as bytes; and what
    each costs more than the leader.
    """
    rows, intel = [], audit.number(f"{RIVAL}-exact")
    for name in INSTANCES:
        price, cost = audit.number(f"{name}-exact"), audit.number(f"{name}-billion")
        rows.append((f"{name}-price", price, "the price in the conclusion."))
        for what in ("ebs", "network"):
            bits = audit.number(f"{name}-{what}")
            rows.append((f"{name}-{what}-bytes", bits / 8, f"{number(bits)} Mbit/s over 8."))
        if name in (*AMD, *GRAVITON):
            names = (f"{name}-exact", f"{RIVAL}-exact")
            made = audit.from_printed(lambda one, intel: PERCENT * (1 - one / intel), *names, unit="%")
            other = f"({intel:g} / {price:g} - 1), which is another number."
            more = f"Intel costs {number(PERCENT * (intel / price - 1), 1)} % more {other}"
            rows.append((f"{name}-less", made, f"1 - {price:g} / {intel:g}. {more}"))
        if name != LEADER:
            names = (f"{name}-billion", f"{LEADER}-billion")
            made = audit.from_printed(lambda one, leader: PERCENT * (one / leader - 1), *names, unit="%")
            rows.append((f"{name}-more", made, f"{cost:g} / {audit.number(f'{LEADER}-billion'):g} - 1."))
    return rows


def _costs(audit: Audit) -> list[tuple[str, bool | None, str]]:
    """Costs against the leader's, and what could be added to them before the leader changes."""
    costs, brokers = {name: audit.number(f"{name}-billion") for name in INSTANCES}, audit.number("nodes")
    rows = []
    for name in INSTANCES:
        mb_per_s = _mb_per_s(audit, name)
        copies = audit.number(f"{name}-ebs-bytes") / mb_per_s
        working = (
            f"Own numbers: {audit.number(f'{name}-exact'):g} USD/h over it makes "
            f"{number(messages_per_s(audit, name) / MEGA)} million messages/s, {number(mb_per_s, 0)} MB/s, for each of "
            f"the {number(brokers)} brokers if all are priced, for the whole cluster if one is. EBS volumes can write "
            f"{number(copies, 2)} copies of that if all are priced, {number(brokers * copies, 2)} if one is."
        )
        rows.append((f"{name}-billion", None, working))
    order = sorted(costs, key=costs.get)
    gap = number(PERCENT * (costs[order[1]] / costs[order[0]] - 1), 1)
    lowest = f"Holds if its cost is the lowest. Own numbers: {order[0]}, then {order[1]} with {gap} % more."
    rate, rival = (messages_per_s(audit, name) for name in (LEADER, RIVAL))
    price, other = (audit.number(f"{name}-exact") for name in (LEADER, RIVAL))
    added = (other * rate - price * rival) / (rival - rate)
    clearly = (
        f"Own numbers: {gap} % ahead of {RIVAL}, by {number(audit.number('runs'))} runs whose scatter is "
        f"not printed. Only instances are priced: with {number(added, 3)} USD/h more per broker, such as for its EBS "
        f"volumes, both cost the same, as they do if {LEADER} costs {number(other * rate / rival, 3)} USD/h; beyond "
        f"that {RIVAL} leads."
    )
    return [*rows, ("leader", order[0] == LEADER, lowest), ("clearly", None, clearly)]


def _rates(audit: Audit) -> list[tuple[str, bool | None, str]]:
    """Compare implied rates against the sentences on performance; ratios of instances need no factor."""
    rates = {name: messages_per_s(audit, name) for name in INSTANCES}
    order = sorted(rates, key=rates.get, reverse=True)
    listed = ", ".join(f"{name} {number(rates[name] / MEGA)}" for name in order)
    own = f"Own numbers, by price over cost, in million messages/s: {listed}."
    first, close, produced = order[0] == RIVAL, rates[RIVAL] / rates[LEADER], rates[LEADER] / rates[RIVAL]
    newer = all(SIMILAR * rates[intel] >= rates[arm] for intel, arm in zip(INTEL, GRAVITON, strict=True))
    slower = all(rates[amd] < max(rates[each] for each in (*INTEL, *GRAVITON)) for amd in AMD)
    over = ", ".join(f"{amd} {number(rates[amd] / rates['m6g'], 2)} times" for amd in AMD)
    group = {name: rates[name] for name in (LEADER, RIVAL, "m6a")}
    spread, least = max(group.values()) / min(group.values()), min(group.values())
    ahead = ", ".join(name for name in INSTANCES if name not in group and rates[name] > least) or "none"
    no_network, times = "The source prints no throughput of the network.", f"{number(close, 2)} times the rate of"
    intel = "Holds if the newer Intel is ahead of Graviton3 and the older at most a tenth behind Graviton2."
    more = f"Holds if {LEADER} has the higher rate of messages in: {number(produced, 2)} times that of {RIVAL}."
    apart = (
        f"By messages these differ by {number(spread, 2)} times; and {LEADER} is said to send far more than {RIVAL}."
    )
    return [
        (claim, holds, f"{working} {own}")
        for claim, holds, working in (
            ("ice-lake", first, f"Holds if {RIVAL} has the highest rate."),
            ("best", first, f"Holds if {RIVAL} has the highest rate."),
            ("graviton3-close", None, f"The source gives no bound. {RIVAL} has {times} {LEADER}."),
            ("intel-messages", newer and rates[RIVAL] >= rates[LEADER], intel),
            ("amd-messages", slower, "Holds if both AMD instances are behind the best others."),
            ("older-intel", rates["m5"] < rates[LEADER], f"Holds if m5 is behind {LEADER}."),
            ("amd-graviton2", None, f"The source gives no bound. Over Graviton2: {over}."),
            ("more-produced", produced > 1, more),
            ("same-throughput", None, f"{no_network} {apart}"),
            ("other-bottlenecks", None, f"{no_network} By messages, ahead of the last of the former three: {ahead}."),
            ("merit", None, f"The best x86 has {times} the best ARM; of stability the source gives no numbers."),
        )
    ]


def _disks(audit: Audit) -> list[tuple[str, bool | None, str]]:
    """Can all disks be saturated at the rates that the costs imply?"""
    shares = {name: _mb_per_s(audit, name) / audit.number(f"{name}-ebs-bytes") for name in INSTANCES}
    order = sorted(shares, key=shares.get, reverse=True)
    least = shares[order[-1]] / shares[order[0]]
    each = ", ".join(f"{name} {quantity(shares[name], 'fraction')}" for name in order)
    saturated = (
        f"Holds if each writes at least {quantity(FULL, 'fraction')} of its maximum. Own numbers: one copy per broker "
        f"priced would use {each}; so when {order[0]} is full, {order[-1]} writes {quantity(least, 'fraction')} of its "
        "maximum, whatever is priced and however often a message is stored, and only by reading "
        f"{number(1 / least - 1, 1)} times as much from disk as it writes would it be full."
    )
    ratio = audit.number("m6a-ebs") / audit.number("m5-ebs")
    bound = f"Holds if they differ by at most {SIMILAR:g} times."
    similar = f"{bound} Own numbers: m6a has {number(ratio, 2)} times the EBS throughput of m5."
    return [
        ("saturated", None if least < FULL else True, saturated),
        ("similar-ebs", 1 / SIMILAR <= ratio <= SIMILAR, similar),
    ]


def _causes(audit: Audit) -> list[tuple[str, bool | None, str]]:
    """Causes that the source's own limits of disks and networks contradict."""
    ebs, network = ({name: audit.number(f"{name}-{what}") for name in INSTANCES} for what in ("ebs-bytes", "network"))
    named, better = ("m6a", "m6g", "m5a"), (RIVAL, LEADER)
    spared, rest = ([name for name in INSTANCES if name not in group] for group in (named, better))
    throughputs = ", ".join(f"{name} {number(ebs[name])}" for name in (*named, *spared))
    bandwidths = ", ".join(f"{name} {number(network[name])}" for name in INSTANCES)
    rival, leader = (number(audit.number(f"{name}-network-bytes")) for name in better)
    slower = max(ebs[name] for name in named) < min(ebs[name] for name in spared)
    wider = min(network[name] for name in better) > max(network[name] for name in rest)
    less = "Holds if the three have less EBS throughput than each of the others. Own numbers, in MB/s:"
    more = (
        f"Holds if both have a higher network bandwidth than each of the others. Own numbers, in Mbit/s: {bandwidths}. "
        f"IOWait counts waiting for disks; both have the highest EBS throughput, {number(ebs[LEADER])} MB/s."
    )
    outbound = (
        f"Own numbers: {number(network[LEADER])} against {number(network[RIVAL])} Mbit/s allow it; as printed in "
        f"bytes, {leader} against {rival} MB/s, they would not. That it was the limit is not shown."
    )
    allowed = None if network[LEADER] > network[RIVAL] else False
    judged = ("bottleneck", slower, f"{less} {throughputs}."), ("iowait-network", wider, more)
    return [*judged, ("outbound", allowed, outbound)]


def _stability(audit: Audit) -> list[tuple[str, None, str]]:
    """Who crashed, and who was least loaded: contradictory sentences."""
    types = f"only the {number(audit.number('two-types'))} AMD types could not continuously take the load"
    crashed, another = "all Intel and AMD types crashed several times", "Another sentence contradicts it:"
    rival = f"and {RIVAL} is said to perform best under load."
    return [
        (claim, None, f"{GRAPHS} {working}")
        for claim, working in (
            ("x86-crashed", f"{another} {types}; {rival}"),
            ("two-types", f"{another} {crashed}; {rival}"),
            ("arm-less", f"It is said of user time; of total time, {RIVAL} is said to be the least loaded."),
            ("least-loaded", "It is said of total time; of user time, ARM is said to take less than Intel and AMD."),
        )
    ]
