"""
Source 003, second half: latency under rolling upgrades and a degraded broker, and the effect of demotion.

The source shows figures without numbers, so its own numbers decide little; a re-run's estimate, if given, decides
claims about Apache Kafka and about demotion. Confluent Cloud cannot be tested here.
"""

from __future__ import annotations

from ..formatting import number
from ..stats.result import Estimate, Result
from .ledger import Audit, read_claims
from .printed import RERUN_ONLY, SETTING, claimed, leave_untested
from .rules import (
    Rule,
    all_or_none,
    always,
    estimates_by_name,
    none,
    other_than_1,
    over,
    some,
    try_rules,
    under,
)

SOURCE = "003-tail-latency"
PAGE = "09-rolling-and-degraded"
MINUTES = 10.0
"""Within minutes is within fewer than ten."""
SEVERAL_S = 2.0
"""Multiple seconds are two or more."""
AS_BEFORE = 1.5
"""Latency is as before while it is less than half as much again, which shows on a chart with a linear axis."""
RELIABLY = 0.9
"""A detector is reliable if it finds at least nine in ten; the source gives no bound."""
PER_HOUR = 60

READ_OFF = "A time that the source gives of one event."
KORA = "Needs Confluent Cloud's engine, Kora."
PROVIDER = "Needs what the provider knows of its own fleet and customers."
LEFT = {
    "disruptions": KORA,
    "seamless-tuning": KORA,
    "health-checks": PROVIDER,
    "distinction": PROVIDER,
    "fluctuations": PROVIDER,
    "only-steady": "An opinion about other benchmarks, of which the source names none.",
    "balancer-cpu": f"{KORA} Its former balancer is described, not measured.",
    "balancer-slow": f"{KORA} Its former balancer is described, not measured.",
    "balancer-variables": KORA,
    "figure-10": f"{KORA} Figure 10 has no numbers.",
    "all-the-time": PROVIDER,
    "demotion-safe": "No trial here takes a zone away while a broker is demoted.",
    "still-copied": f"{KORA} In Apache Kafka a replica that keeps up is in sync, and records wait for it.",
    "redundancy": f"{KORA} Apache Kafka does not move offline replicas by itself.",
    "nobody": PROVIDER,
    "thousands": PROVIDER,
    "kora-changes": f"{KORA} The source measures none of these changes by itself.",
    "roll-kora": KORA,
    "figure-13": f"{KORA} Figure 13 has no numbers.",
    "half": "An opinion.",
    "overnight": PROVIDER,
    "shrink": PROVIDER,
    "tenant": "A trial here has one load, so no tenant changes beside another.",
    "twice": "A broker leads again once the controller looks, every 300 s; rolls here end before that.",
}
BY_LEADER = (
    "Latency is kept here for all partitions together, and each of three brokers follows every partition."
)
SAME_CLIENTS = "A re-run needs two rolls that differ in their clients alone, as those of the preset `full`."
SETTINGS = ("brokers", "roll-cku")
TIMES = ("onset", "mitigated")
UNTOLD = (
    "disturbances", "detects", "demotion", "restores", "spike",
    "leader-based", "statistical", "no-leadership", "brings-down", "disruptive", "rediscover",
    "roll-every",
)  # fmt: skip
HIGHER, LOWER = "Holds if the interval lies above 1.", "Holds if the interval lies below 1."
OTHER_CAUSE = "The source's broker had slow storage; here it is slow for another reason."
EVERY, NEVER = "Holds if it was so in every one.", "Holds if there was none."
RULES = {
    "link_disturbed": (Rule("disturbances", over(1), HIGHER),),
    "roll": (Rule("disruptive", over(AS_BEFORE), f"Holds if the interval lies above {AS_BEFORE:g} times."),),
    "roll_errors": (Rule("rediscover", some, "Holds if there were some."),),
    "roll_spikes": (Rule("roll-every", always, EVERY),),
    "roll_worst_s": (
        Rule("roll-seconds", over(SEVERAL_S), f"Holds if the interval lies above {SEVERAL_S:g} s."),
    ),
    "roll_clients": (Rule("roll-clients", other_than_1, "Holds if the interval does not contain 1."),),
    "degraded": (Rule("spike", over(1), f"{HIGHER} {OTHER_CAUSE}"),),
    "degraded_fenced": (Rule("leader-based", none, NEVER),),
    "degraded_found": (
        Rule("statistical", all_or_none, "Holds if a statistical detector found every one, fails if none."),
        Rule("detects", over(RELIABLY), f"Holds if the interval lies above {RELIABLY:.0%}, as “reliably”."),
    ),
    "demotion": (Rule("brings-down", under(1), LOWER),),
    "demotion_rest": (
        Rule("demotion", under(AS_BEFORE), f"Holds if the interval lies below {AS_BEFORE:g} times."),
    ),
    "demotion_led": (Rule("no-leadership", none, NEVER),),
    "demotion_restored": (Rule("restores", always, EVERY),),
    "demotion_min": (
        Rule("within-minutes", under(MINUTES), f"Holds if the interval lies below {MINUTES:g} minutes."),
    ),
}
"""By parameter of `rolling_and_degraded`: the claims that an estimate tries by a bound."""


def rolling_and_degraded(
    *,
    link_disturbed: Estimate | Result | None = None,
    roll: Estimate | Result | None = None,
    roll_errors: Estimate | Result | None = None,
    roll_spikes: Estimate | Result | None = None,
    roll_worst_s: Estimate | Result | None = None,
    roll_clients: Estimate | Result | None = None,
    degraded: Estimate | Result | None = None,
    degraded_fenced: Estimate | Result | None = None,
    degraded_found: Estimate | Result | None = None,
    demotion: Estimate | Result | None = None,
    demotion_rest: Estimate | Result | None = None,
    demotion_led: Estimate | Result | None = None,
    demotion_restored: Estimate | Result | None = None,
    demotion_min: Estimate | Result | None = None,
) -> Audit:
    """
    Every claim of the second half of source 003. Leave out what was not measured.

    Each is an Estimate, or a Result whose first estimate is one; an episode (one broker's roll, one degradation) is the
    unit of replication. Ratios of latencies are "times", shares "fraction".

    Parameters
    ----------
    link_disturbed : Estimate or Result
        p99 with jitter, loss or a failed zone over that without.
    roll : Estimate or Result
        p99 while brokers are restarted in sequence over that before.
    roll_errors : Estimate or Result
        Share of restarts in which clients had errors or fetched metadata again because a leader had moved.
    roll_spikes : Estimate or Result
        Share of restarts with a spike of latency while the broker goes.
    roll_worst_s : Estimate or Result
        Largest latency of a restart, in s.
    roll_clients : Estimate or Result
        p99 during a roll with one client's version or settings over that with another's.
    degraded : Estimate or Result
        p99 during a broker's degradation over that before.
    degraded_fenced : Estimate or Result
        Share of the degradations in which Kafka itself fenced the broker or moved its leaders.
    degraded_found : Estimate or Result
        Share of the degradations that a statistical detector found.
    demotion, demotion_rest : Estimate or Result
        p99 of all partitions after demotion, over that during the degradation; over that before it.
    demotion_led, demotion_restored : Estimate or Result
        Share of the demotions in which the broker still led a partition; after which it led as many again.
    demotion_min : Estimate or Result
        Minutes from the start of a degradation to the end of its effect.

    Raises
    ------
    ParameterError
        What should be an Estimate or a Result is neither.

    Examples
    --------
    >>> rows = rolling_and_degraded().table().set_index("claim")
    >>> rows.verdict[["fifth", "within-minutes", "roll-every", "figure-13"]].tolist()
    ['reproduced', 'reproduced', 'undecided', 'cannot be tried here']
    """
    estimates = estimates_by_name(dict(locals()), RULES)
    audit = read_claims(SOURCE)
    per_topic = claimed(audit, "t1-per-topic")
    steady = {name: claimed(audit, name) for name in ("version", "t1-2cku-topics", "cku2-partitions")}
    audit = audit.on_page(PAGE)
    _own_numbers(audit, per_topic, steady)
    try_rules(audit, RULES, estimates)
    return audit


def _own_numbers(audit: Audit, per_topic: float, steady: dict[str, float]) -> None:
    leave_untested(audit, LEFT, SETTINGS, UNTOLD)
    for claim in TIMES:
        audit.judge(claim, None, READ_OFF)
    brokers, fifth = claimed(audit, "brokers"), claimed(audit, "fifth")
    audit.compare(
        "fifth", 4 + 1, f"Own numbers: numbers start at 0; the cluster has {number(brokers)} brokers."
    )
    audit.judge("roll-clients", None, f"{RERUN_ONLY} {SAME_CLIENTS}")
    audit.leave(
        "neighbours",
        f"{BY_LEADER} Own numbers: with three replicas a partition shares its replicas in sync with two brokers; in a "
        f"cluster of {number(brokers)} with many partitions the broker numbered {number(fifth - 1)} shares some with "
        f"all {number(brokers - 1)} others. Two are affected if each broker leads one partition of the health check "
        "and the next two follow.",
    )
    start, end = claimed(audit, "onset"), claimed(audit, "mitigated")
    demoted = PER_HOUR + claimed(audit, "restored") - end
    audit.judge("restored", None, f"{READ_OFF} It is {number(demoted)} minutes after the demotion.")
    audit.judge(
        "within-minutes",
        0 < end - start < MINUTES,
        f"Holds if it took less than {number(MINUTES)} minutes. Own numbers: about {number(end - start)} minutes.",
    )
    audit.compare("roll-version", steady["version"], "Own numbers: as in the steady-state benchmark.")
    audit.compare(
        "roll-partitions", steady["cku2-partitions"], "Own numbers: as in the steady-state benchmark."
    )
    partitions, topics = claimed(audit, "roll-partitions"), claimed(audit, "roll-topics")
    shape = (
        f"{number(partitions / topics)} partitions per topic, against {number(per_topic)} in "
        f"{number(steady['t1-2cku-topics'])} topics of the steady-state benchmark"
    )
    audit.judge("roll-topics", None, f"{SETTING} Own numbers: {shape}.")
    audit.judge(
        "roll-same",
        None,
        f"Own numbers: {shape}; with one producer per topic that is {number(topics)} producers. So the workload was "
        "another one, and its throughput, number of brokers and warm-up are not given.",
    )
    audit.judge("roll-seconds", None, RERUN_ONLY)
