"""
Test the claims of source 004: which instance type carries the most Kafka messages per dollar.

The source prints no rates, but its price per hour over its cost per message is a rate in messages per hour, up to an
unknown factor that all instance types share (number of brokers in the price, stored copies). Ratios of types do not
need this factor. All numbers of the source are read from its claims file.
"""

from contextlib import suppress
from dataclasses import replace
from math import nan

import pandas as pd

from wanbench.errors import ParameterError
from wanbench.formatting import count, number, quantity
from wanbench.methods.claims.ledger import Audit, read_claims
from wanbench.methods.claims.rules import Rule, apply_rules, under
from wanbench.methods.result import Estimate, Fields, Result

from .comparisons import compare_all
from .costs import Frontier, SizeCosts

SOURCE = "004-price-performance"
INTEL, AMD, GRAVITON = ("m5", "m6i"), ("m6a", "m5a"), ("m6g", "m7g")
INSTANCES = (*INTEL, *AMD, *GRAVITON)
LEADER = "m7g"
RIVAL = "m6i"
"""The instance type with the second lowest cost and the highest rate."""
PERCENT, MEGA = 100.0, 1e6
SIMILAR = 1.10
"""
Ratio up to which two numbers count as similar: the source calls Graviton3 close to Ice Lake, whose rate (price over
cost) is 10 % higher.
"""
FULL = 0.9
"""Share of its maximum rate at or above which a disk counts as saturated."""
GRAPHS = "The source shows only a figure without numbers."
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
    "consumer_latency": ("consumer-latency",),
}
"""Claims next to which a measured quantity is shown, without a verdict, because broker sizes are not instances."""


def evidence(
    costs: SizeCosts, *frontiers: Frontier | None, plain: str, more_network: str | None = None
) -> dict[str, Estimate]:
    """
    Return the measured quantities that test claims, by the names of `price_performance`'s arguments.

    `frontiers` are those of producers' and of end-to-end latency, None if not measured. `plain` names a setting, and
    `more_network` the setting that differs from it only in having twice the network rate.
    """
    trials = costs.trials
    estimates = {"cost_lead": costs.lead, "rate_spread": _spread(trials, plain)}
    for name, of in zip(("producer_latency", "consumer_latency"), frontiers, strict=False):
        if of is not None:
            low, *_, high = of.latencies.settings
            texts = ("largest p99 over smallest", "The largest p99 of a setting is {} the smallest")
            estimates[name] = replace(of.latencies.ratios[high, low], quantity=texts[0], claim=texts[1])
    best = costs.rates.settings[-1]
    claim = "With twice the network rate, {} is {{}} the value with the plain size"
    requests = f"The requests per message of {best} are {{}} those of {plain}"
    sent, waited = "the rate that brokers send", "the share of time in IOWait"
    for name, column, setting, title, text in (
        ("network_limit", "brokers_sent_bps", more_network, f"{sent}, twice the network", claim.format(sent)),
        ("network_iowait", "iowait", more_network, f"{waited}, twice the network", claim.format(waited)),
        ("requests_over_messages", "requests_each", best, "requests ratio over messages ratio", requests),
    ):
        pair = trials[trials.setting.isin([setting, plain])]
        with suppress(ParameterError):  # one of the two has no positive value
            ratio = compare_all(pair, column, "").ratios[str(setting), str(plain)]
            estimates[name] = replace(ratio, quantity=title, claim=text)
    return estimates


def _spread(trials: pd.DataFrame, setting: str) -> Estimate:
    """Return the largest over the smallest messages per second of a setting's trials, without an interval."""
    values = trials.messages_per_s[trials.setting == setting]
    about: Fields = {"basis": count(len(values), "trial"), "warnings": ("more repeats would widen the range",)}
    about |= {"method": "largest over smallest of the trials", "assumption": "none: it describes these trials"}
    texts = "largest over smallest rate of one size", f"The largest rate of a trial of {setting} is {{}} the smallest"
    return Estimate(*texts, float(values.max() / values.min()), nan, nan, "times", len(values), **about)


def price_performance(**measured: Estimate | Result | None) -> Audit:
    """
    Test every claim of source 004, by arithmetic on the numbers that it prints and by measured quantities.

    `measured` has the quantities by their names in `RULES` and `SHOWN`; a claim without one is tested by arithmetic
    only.

    >>> rows = price_performance().table().set_index("claim")
    >>> rows.own[["m6g-less", "m7g-network-bytes", "leader", "clearly"]].tolist()
    ['not reproduced', 'not reproduced', 'reproduced', 'undecided']
    """
    audit = read_claims(SOURCE)
    own_numbers(audit)
    apply_rules(audit, RULES, SHOWN, measured)
    return audit


def own_numbers(audit: Audit) -> None:
    """Test claims by arithmetic on the source's own numbers, and record the verdicts in `audit`."""
    for claim, recomputed, working in _recomputed(audit):
        audit.compare(claim, recomputed, f"The source's numbers: {working}")
    for judged in (_setup, _costs, _rates, _disks, _causes, _stability):
        for claim, holds, working in judged(audit):
            audit.judge(claim, holds, working)


def messages_per_s(audit: Audit, name: str) -> float:
    """Return the messages per second of each priced broker of type `name`: price per hour over cost per message."""
    return audit.number(f"{name}-exact") / audit.number(f"{name}-billion") * 1e9 / 3600


def _mb_per_s(audit: Audit, name: str) -> float:
    """Return the MB/s of messages per priced broker of type `name`."""
    return messages_per_s(audit, name) * audit.number("message-size") / MEGA


def _setup(audit: Audit) -> list[tuple[str, bool | None, str]]:
    brokers, partitions = audit.number("nodes"), audit.number("partitions")
    rates = {name: _mb_per_s(audit, name) for name in INSTANCES}
    most = max(audit.number(f"{name}-ebs-bytes") / rates[name] for name in INSTANCES)
    kept_gb = max(rates.values()) * brokers * 60 * audit.number("retention-time") / partitions / 1e3
    of = f"in the retention time, of the {number(audit.number('retention'))} GB that the setting allows."
    audit.note("retention", f"The source's numbers: a partition gets at most {number(kept_gb)} GB {of}")
    working = (
        f"Holds if {number(partitions)} is a multiple of {number(brokers)} brokers; that is "
        f"{number(partitions / brokers, 1)} partitions per broker. Otherwise brokers hold equally many partitions only "
        f"with {number(brokers)} replicas, which the source does not mention. If the printed cost covers all brokers, "
        f"EBS volumes could write at most {number(most, 2)} copies of a message; if it covers one, the cluster costs "
        f"{number(brokers)} times as much."
    )
    return [("same-partitions", True if partitions % brokers == 0 else None, working)]


def _recomputed(audit: Audit) -> list[tuple[str, float | Estimate, str]]:
    """
    Recompute printed numbers from others: prices, MB/s, "less than Intel", and how far costs exceed the lowest.

    Returns (claim, recomputed number, working) of each.
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
            more = f"The other way round, {RIVAL} (Intel) costs {number(PERCENT * (intel / price - 1), 1)} % more."
            rows.append((f"{name}-less", made, f"1 - {price:g} / {intel:g}. {more}"))
        if name != LEADER:
            names = (f"{name}-billion", f"{LEADER}-billion")
            made = audit.from_printed(lambda one, leader: PERCENT * (one / leader - 1), *names, unit="%")
            rows.append((f"{name}-more", made, f"{cost:g} / {audit.number(f'{LEADER}-billion'):g} - 1."))
    return rows


def _costs(audit: Audit) -> list[tuple[str, bool | None, str]]:
    """Judge the claimed costs, and compute the extra price per broker at which another type becomes the cheapest."""
    costs, brokers = {name: audit.number(f"{name}-billion") for name in INSTANCES}, audit.number("nodes")
    rows = []
    for name in INSTANCES:
        mb_per_s = _mb_per_s(audit, name)
        copies = audit.number(f"{name}-ebs-bytes") / mb_per_s
        working = (
            f"The source's numbers: {audit.number(f'{name}-exact'):g} USD/h divided by this cost is "
            f"{number(messages_per_s(audit, name) / MEGA)} million messages/s, or {number(mb_per_s, 0)} MB/s: per "
            f"broker if the cost includes all {number(brokers)} brokers, for the whole cluster if it includes one. EBS "
            f"volumes can write {number(copies, 2)} copies at that rate in the first case, and "
            f"{number(brokers * copies, 2)} in the second."
        )
        rows.append((f"{name}-billion", None, working))
    order = sorted(costs, key=costs.__getitem__)
    gap = number(PERCENT * (costs[order[1]] / costs[order[0]] - 1), 1)
    lowest = (
        f"Holds if the cost of {LEADER} is the lowest. The source's numbers: {order[0]}, then {order[1]} with {gap} % "
        "more."
    )
    rate, rival = (messages_per_s(audit, name) for name in (LEADER, RIVAL))
    price, other = (audit.number(f"{name}-exact") for name in (LEADER, RIVAL))
    added = (other * rate - price * rival) / (rival - rate)
    clearly = (
        f"The source's numbers: {RIVAL} costs {gap} % more than {LEADER}, from {number(audit.number('runs'))} runs "
        "whose scatter is not printed. The source prices only instances. Both types would tie if each broker cost "
        f"{number(added, 3)} USD/h more, such as for its EBS volumes, or if {LEADER} cost "
        f"{number(other * rate / rival, 3)} USD/h. At a higher price {RIVAL} would lead."
    )
    return [*rows, ("leader", order[0] == LEADER, lowest), ("clearly", None, clearly)]


def _rates(audit: Audit) -> list[tuple[str, bool | None, str]]:
    """Judge the source's sentences on performance by the rates that its costs imply."""
    rates = {name: messages_per_s(audit, name) for name in INSTANCES}
    order = sorted(rates, key=rates.__getitem__, reverse=True)
    listed = ", ".join(f"{name} {number(rates[name] / MEGA)}" for name in order)
    own = f"The source's numbers: price over cost, in million messages/s, is {listed}."
    first, close, produced = order[0] == RIVAL, rates[RIVAL] / rates[LEADER], rates[LEADER] / rates[RIVAL]
    newer = all(SIMILAR * rates[intel] >= rates[arm] for intel, arm in zip(INTEL, GRAVITON, strict=True))
    slower = all(rates[amd] < max(rates[each] for each in (*INTEL, *GRAVITON)) for amd in AMD)
    over = ", ".join(f"{amd} {number(rates[amd] / rates['m6g'], 2)} times" for amd in AMD)
    group = {name: rates[name] for name in (LEADER, RIVAL, "m6a")}
    spread, least = max(group.values()) / min(group.values()), min(group.values())
    ahead = ", ".join(name for name in INSTANCES if name not in group and rates[name] > least) or "none"
    no_network, times = "The source prints no throughput of the network.", f"{number(close, 2)} times the rate of"
    intel = (
        "Holds if m6i (newer Intel) has at least the message rate of m7g (Graviton3), and m6g (Graviton2) at most "
        f"{SIMILAR:g} times that of m5 (older Intel)."
    )
    more = f"Holds if {LEADER} has the higher rate of messages in: {number(produced, 2)} times that of {RIVAL}."
    apart = (
        f"The message rates of these types differ by a factor of {number(spread, 2)}, and the source says that "
        f"{LEADER} sends far more than {RIVAL}."
    )
    return [
        (claim, holds, f"{working} {own}")
        for claim, holds, working in (
            ("ice-lake", first, f"Holds if {RIVAL} has the highest rate."),
            ("best", first, f"Holds if {RIVAL} has the highest rate."),
            ("graviton3-close", None, f"The source gives no bound. {RIVAL} has {times} {LEADER}."),
            ("intel-messages", newer and rates[RIVAL] >= rates[LEADER], intel),
            ("amd-messages", slower, "Holds if both AMD types have lower rates than the best of the other types."),
            ("older-intel", rates["m5"] < rates[LEADER], f"Holds if m5 has a lower rate than {LEADER}."),
            ("amd-graviton2", None, f"The source gives no bound. Over Graviton2: {over}."),
            ("more-produced", produced > 1, more),
            ("same-throughput", None, f"{no_network} {apart}"),
            (
                "other-bottlenecks",
                None,
                f"{no_network} These types have higher message rates than the slowest of the three: {ahead}.",
            ),
            (
                "merit",
                None,
                f"The best x86 type has {times} the best ARM type; the source gives no numbers on stability.",
            ),
        )
    ]


def _disks(audit: Audit) -> list[tuple[str, bool | None, str]]:
    """Judge whether all disks can be saturated at the rates that the costs imply."""
    shares = {name: _mb_per_s(audit, name) / audit.number(f"{name}-ebs-bytes") for name in INSTANCES}
    order = sorted(shares, key=shares.__getitem__, reverse=True)
    least = shares[order[-1]] / shares[order[0]]
    each = ", ".join(f"{name} {quantity(shares[name], 'fraction')}" for name in order)
    saturated = (
        f"Holds if each type's disks write at least {quantity(FULL, 'fraction')} of their maximum. The source's "
        f"numbers: one copy per priced broker would use {each}. So when {order[0]} is saturated, {order[-1]} writes "
        f"{quantity(least, 'fraction')} of its maximum, however many brokers the price covers and copies are stored. "
        f"To be saturated, {order[-1]} would have to read {number(1 / least - 1, 1)} times as much from disk as it "
        "writes."
    )
    ratio = audit.number("m6a-ebs") / audit.number("m5-ebs")
    bound = f"Holds if the EBS throughputs differ by a factor of at most {SIMILAR:g}."
    similar = f"{bound} The source's numbers: m6a has {number(ratio, 2)} times the EBS throughput of m5."
    return [
        ("saturated", None if least < FULL else True, saturated),
        ("similar-ebs", 1 / SIMILAR <= ratio <= SIMILAR, similar),
    ]


def _causes(audit: Audit) -> list[tuple[str, bool | None, str]]:
    """Judge the claimed causes by the source's limits of disks and networks."""
    ebs, network = ({name: audit.number(f"{name}-{what}") for name in INSTANCES} for what in ("ebs-bytes", "network"))
    named, better = ("m6a", "m6g", "m5a"), (RIVAL, LEADER)
    spared, rest = ([name for name in INSTANCES if name not in group] for group in (named, better))
    throughputs = ", ".join(f"{name} {number(ebs[name])}" for name in (*named, *spared))
    bandwidths = ", ".join(f"{name} {number(network[name])}" for name in INSTANCES)
    rival, leader = (number(audit.number(f"{name}-network-bytes")) for name in better)
    slower = max(ebs[name] for name in named) < min(ebs[name] for name in spared)
    wider = min(network[name] for name in better) > max(network[name] for name in rest)
    less = (
        "Holds if m6a, m6g and m5a have less EBS throughput than each of the other types. The source's numbers, in "
        "MB/s:"
    )
    more = (
        f"Holds if {RIVAL} and {LEADER} have a higher network bandwidth than each of the other types. The source's "
        f"numbers, in Mbit/s: {bandwidths}. But IOWait is time waiting for disks, and {RIVAL} and {LEADER} have the "
        f"highest EBS throughput, {number(ebs[LEADER])} MB/s."
    )
    outbound = (
        f"The source's numbers: {number(network[LEADER])} against {number(network[RIVAL])} Mbit/s allow the claim; the "
        f"printed {leader} against {rival} MB/s do not. The source does not show that the network was the limit."
    )
    allowed = None if network[LEADER] > network[RIVAL] else False
    judged = ("bottleneck", slower, f"{less} {throughputs}."), ("iowait-network", wider, more)
    return [*judged, ("outbound", allowed, outbound)]


def _stability(audit: Audit) -> list[tuple[str, None, str]]:
    """Judge the contradictory sentences on which instance types crashed, and which were least loaded."""
    types = f"only the {number(audit.number('two-types'))} AMD types could not sustain the load"
    crashed, another = "all Intel and AMD types crashed several times", "Another sentence contradicts this:"
    rival = f"and {RIVAL} is said to perform best under load."
    return [
        (claim, None, f"{GRAPHS} {working}")
        for claim, working in (
            ("x86-crashed", f"{another} {types}; {rival}"),
            ("two-types", f"{another} {crashed}; {rival}"),
            ("arm-less", f"The claim is about user time; by total time, the source calls {RIVAL} the least loaded."),
            (
                "least-loaded",
                "The claim is about total time; by user time, the source says that ARM needs less than Intel and AMD.",
            ),
        )
    ]
