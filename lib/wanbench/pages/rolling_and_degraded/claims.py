"""
Source 003, second half: latency under rolling upgrades and a degraded broker, and the effect of demotion.

The source shows figures without numbers, so its own numbers decide little. A re-run tests claims about Apache Kafka.
"""

from __future__ import annotations

from wanbench.formatting import number
from wanbench.methods.claims.ledger import Audit, read_claims
from wanbench.methods.claims.rules import DIFFERS, RARE, Rule, apply_rules, over, under
from wanbench.methods.result import Estimate, Result

SOURCE = "003-tail-latency"
PAGE = "09-rolling-and-degraded"
MINUTES = 10.0
"""Within minutes is within fewer than ten."""
AS_BEFORE = 1.5
"""Latency is as before while it is less than half as much again, which shows on a chart with a linear axis."""
PER_HOUR = 60
RULES = (
    Rule("link_disturbed", "disturbances", over(1)),  # p99 with jitter or loss over that without
    Rule("roll", "disruptive", over(AS_BEFORE)),  # p99 while brokers are restarted in sequence over that before
    Rule("roll_clients", "roll-clients", DIFFERS),  # p99 of a roll with one kind of clients over that with another
    Rule("degraded_fenced", "leader-based", under(1 - RARE)),  # share of degradations in which Kafka acted itself
)
SHOWN = {
    "roll_errors": ("rediscover",),
    "roll_spikes": ("roll-every",),
    "roll_worst_s": ("roll-seconds",),
    "degraded": ("spike",),
    "degraded_found": ("statistical", "detects"),
    "demotion": ("brings-down",),
    "demotion_rest": ("demotion",),
    "demotion_led": ("no-leadership",),
    "demotion_restored": ("restores",),
    "demotion_min": ("within-minutes",),  # an episode here lasts seconds, so it cannot take minutes
}
"""Quantities that are not comparable with the claims beside which they stand."""


def rolling_and_degraded(**measured: Estimate | Result | None) -> Audit:
    """
    Every claim of the second half of source 003, on its own numbers and on a re-run.

    Parameters
    ----------
    **measured
        The quantities of `RULES` and `SHOWN` that were measured (`studies.rolling_and_degraded.evidence`); an episode,
        such as one broker's restart, is the unit of replication, and a trial where the quantity is p99 over that
        undisturbed, which the episodes of a trial share.

    Raises
    ------
    ParameterError
        There is no such quantity, or it is no estimate.

    Examples
    --------
    >>> rows = rolling_and_degraded().table().set_index("claim")
    >>> rows.own[["fifth", "within-minutes", "roll-every", "figure-13"]].tolist()
    ['reproduced', 'reproduced', 'cannot be tested here', 'cannot be tested here']
    """
    audit = read_claims(SOURCE)
    per_topic = audit.number("t1-per-topic")
    steady = {name: audit.number(name) for name in ("version", "t1-2cku-topics", "cku2-partitions")}
    audit = audit.on_page(PAGE)
    _own_numbers(audit, per_topic, steady)
    apply_rules(audit, RULES, SHOWN, measured)
    return audit


def _own_numbers(audit: Audit, per_topic: float, steady: dict[str, float]) -> None:
    audit.compare("fifth", 4 + 1, "Own numbers: numbers start at 0.")
    start, end = audit.number("onset"), audit.number("mitigated")
    demoted = PER_HOUR + audit.number("restored") - end
    audit.note("restored", f"It is {number(demoted)} minutes after the demotion.")
    audit.judge(
        "within-minutes",
        0 < end - start < MINUTES,
        f"Holds if it took less than {number(MINUTES)} minutes. Own numbers: about {number(end - start)} minutes.",
    )
    audit.compare("roll-version", steady["version"], "Own numbers: as in the steady-state benchmark.")
    audit.compare("roll-partitions", steady["cku2-partitions"], "Own numbers: as in the steady-state benchmark.")
    partitions, topics = audit.number("roll-partitions"), audit.number("roll-topics")
    shape = (
        f"{number(partitions / topics)} partitions per topic, against {number(per_topic)} in "
        f"{number(steady['t1-2cku-topics'])} topics of the steady-state benchmark"
    )
    audit.note("roll-topics", f"Own numbers: {shape}.")
    audit.judge(
        "roll-same",
        None,
        f"Own numbers: {shape}; with one producer per topic that is {number(topics)} producers. So the workload was "
        "another one, and its throughput, number of brokers and warm-up are not given.",
    )
