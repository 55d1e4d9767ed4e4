"""
Test the second half of source 003: latency under rolling upgrades and a degraded broker, and the effect of demotion.

The source's figures have no numbers, so arithmetic decides few claims. Measured quantities test claims about Apache
Kafka.
"""

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
import pandas as pd

from wanbench.formatting import count, number
from wanbench.methods.claims.ledger import Audit, read_claims
from wanbench.methods.claims.rules import DIFFERS, RARE, Rule, apply_rules, over, under
from wanbench.methods.result import Estimate, Fields, Result
from wanbench.methods.result.means import geometric_mean, median_of, share_of

from .degraded import MIN_DEMOTED, Degraded
from .detection import Detected
from .restarts import Restarts

SOURCE = "003-tail-latency"
PAGE = "09-rolling-and-degraded"
MINUTES = 10.0
"""Minutes below which the claim "within minutes" holds."""
AS_BEFORE = 1.5
"""A ratio of latencies below this counts as no change: it would hardly be visible on a chart with a linear axis."""
PER_HOUR = 60
RULES = (
    Rule("link_disturbed", "disturbances", over(1)),  # p99 with jitter or loss over that without
    Rule("roll", "disruptive", over(AS_BEFORE)),  # p99 while brokers are restarted in sequence over that before
    Rule("roll_clients", "roll-clients", DIFFERS),  # p99 of a roll with one kind of clients over that with another
    Rule("degraded_disk", "spike", over(AS_BEFORE)),  # p99 while a disk is slowed over that before
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
"""Measured quantities that are shown next to a claim but cannot decide it, because the two are not comparable."""


def evidence(
    restarted: Restarts | None = None,
    slowed: Degraded | None = None,
    detected: Detected | None = None,
    *,
    roll: str | None = None,
    kind: str | None = None,
    other_clients: tuple[str, str] | None = None,
) -> dict[str, Estimate]:
    """
    Return every measured quantity that tests a claim, by its name in `RULES` or `SHOWN`.

    Parameters
    ----------
    roll, kind : str, optional
        Names of the roll (a restart of every broker in turn) that represents the source's upgrade, and of the kind of
        slowness that represents its degraded disk.
    other_clients : pair of str, optional
        Names of two rolls that differ only in the settings of their clients.
    """
    made: dict[str, Estimate | None] = {}
    if restarted is not None:
        made |= _of_restarts(restarted.rows[restarted.rows.setting == roll])
        made["roll_clients"] = _of_clients(restarted.rows, other_clients) if other_clients else None
    if slowed is not None:
        made |= _of_slowness(slowed.rows[slowed.rows.system == kind])
        made["demotion"] = slowed.demotions.get(str(kind))
        far = slowed.rows[~slowed.rows.demotes & (slowed.rows.kind == "link")]
        made["link_disturbed"] = _of_trials(far, "early_ms", "before_ms", "p99 on disturbed links")
    if detected is not None:
        made["degraded_found"] = detected.share
    return {name: one for name, one in made.items() if one is not None and one.n and not np.isnan(one.estimate)}


def differ_in_clients(rolls: Mapping[str, Mapping[str, Any]]) -> tuple[str, str] | None:
    """
    Return the names of two rolls that differ only in client settings, or None; the second has Kafka's defaults.

    >>> kill = {"kind": "kill"}
    >>> differ_in_clients({"kill": kill, "new": kill | {"load": {"consumer_settings": {"fetch.min.bytes": 9}}}})
    ('new', 'kill')
    """
    for name, one in rolls.items():
        load = one.get("load", {})
        rest = {key: value for key, value in one.items() if key != "load"}
        plain = next((other for other, given in rolls.items() if given == rest), None)
        if load and set(load) <= {"producer_settings", "consumer_settings"} and plain is not None:
            return name, plain
    return None


def _of_clients(rows: pd.DataFrame, pair: tuple[str, str]) -> Estimate | None:
    """Estimate the ratio of p99 during restarts of a broker in the first roll to that in the second, within blocks."""
    wide = rows.pivot_table(index=["block", "node_id"], columns="setting", values="p99_ms").reindex(columns=pair)
    return _ratio((wide[pair[0]] / wide[pair[1]]).dropna(), f"p99 of “{pair[0]}” divided by that of “{pair[1]}”")


def _of_restarts(rows: pd.DataFrame) -> dict[str, Estimate | None]:
    if rows.empty:
        return {}
    worst = float(rows.worst_ms.max() / 1e3)
    forced = rows.leaders_moved.dropna().astype(float) > 0
    beyond, slowest = "p99 above the undisturbed limit", "slowest record of all controlled restarts"
    claim = "p99 exceeded the undisturbed limit in {} of the controlled restarts"
    about: Fields = {"quantity": f"controlled restarts with {beyond}", "claim": claim, "unit_name": "restart"}
    most: Fields = {
        "method": "maximum, which is a lower bound of what restarts can cause",
        "assumption": "none, as it was observed",
    }
    most |= {"claim": "The slowest record of all controlled restarts took {}", "basis": count(len(rows), "restart")}
    return {
        "roll": _of_trials(rows, "p99_ms", "undisturbed_p99_ms", "p99 of a controlled restart"),
        "roll_spikes": share_of(int((rows.back_s > 0).sum()), len(rows), **about),
        "roll_errors": _share(forced, "restarts that forced clients to find other leaders"),
        "roll_worst_s": Estimate(slowest, estimate=worst, low=worst, high=inf, unit="s", n=len(rows), **most),
    }


def _of_slowness(rows: pd.DataFrame) -> dict[str, Estimate | None]:
    without, demoted = rows[~rows.demotes], rows[rows.demotes & rows.demoted_s.notna()]
    early = demoted[demoted.late_demoted >= MIN_DEMOTED]
    arm = rows[rows.demotes & (rows.late_demoted[rows.demotes].mean() >= MIN_DEMOTED)]
    moved, disks = without.led_late < without.led_before, (rows.kind == "disk").all()
    name = "degraded_disk" if disks else "degraded"
    slowed = f"p99 while {'a disk is' if disks else 'a processor or links are'} slowed"
    until = "rom the start of a slowness until p99 was within the undisturbed limit again"
    about: Fields = {"unit": "min", "quantity": f"f{until}", "claim": f"F{until}, with demotion, it took {{}}"}
    return {
        name: _of_trials(without, "early_ms", "before_ms", slowed),
        "degraded_fenced": _share(moved, "episodes of slowness in which Kafka itself moved the broker's leaders"),
        "demotion_rest": _of_trials(early, "late_ms", "before_ms", "p99 after demotion"),
        "demotion_led": _share(demoted.led_late > 0, "demotions in which the broker still led a partition"),
        "demotion_restored": _share(
            demoted.led_after >= demoted.led_before, "demotions after which the broker led again"
        ),
        "demotion_min": median_of(arm.back_s / 60, arm.back_censored, **about),
    }


def _of_trials(rows: pd.DataFrame, above: str, below: str, what: str) -> Estimate | None:
    """
    Estimate the ratio of column `above` to column `below`, with trials as units.

    The episodes of one trial are averaged first, because they share an undisturbed p99 and its error.
    """
    logs = np.log((rows[above] / rows[below]).astype(float)).groupby(rows.block)
    means = logs.apply(lambda own: float(np.exp(own.to_numpy().mean())))
    return _ratio(means, f"{what} over the undisturbed p99", "trial", f"{what} is {{}} the undisturbed p99")


def _ratio(values: pd.Series, quantity: str, unit: str = "episode", claim: str = "") -> Estimate | None:
    """Estimate the geometric mean of `values`, ratios of episodes or trials; None if one is missing, 0 or infinite."""
    if not len(values) or not np.isfinite(values).all() or (values <= 0).any():
        return None
    about: Fields = {"quantity": quantity, "claim": claim or f"{quantity[0].upper()}{quantity[1:]} is {{}}"}
    about["method"] = f"Student's t on the logarithms of the ratios, with {unit}s as independent units"
    about["assumption"] = f"{unit.capitalize()}s are independent and identically distributed"
    return geometric_mean(values, 0.95, unit_name=unit, **about)


def _share(hits: pd.Series, quantity: str) -> Estimate | None:
    if not len(hits):
        return None
    return share_of(int(hits.sum()), len(hits), quantity=quantity, claim=f"The share of {quantity} is {{}}")


def rolling_and_degraded(**measured: Estimate | Result | None) -> Audit:
    """
    Test every claim of the second half of source 003, by arithmetic on its numbers and by measured quantities.

    `measured` has the quantities that `evidence` returns. Their unit of replication is an episode, such as one broker's
    restart; for ratios to a trial's undisturbed p99, it is the trial.

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
    audit.compare("fifth", 4 + 1, "The source's numbers: the numbers of brokers start at 0.")
    start, end = audit.number("onset"), audit.number("mitigated")
    demoted = PER_HOUR + audit.number("restored") - end
    audit.note("restored", f"Leadership was restored {number(demoted)} minutes after the demotion.")
    bound = f"Holds if mitigation took less than {number(MINUTES)} minutes."
    audit.judge(
        "within-minutes",
        0 < end - start < MINUTES,
        f"{bound} The source's numbers: about {number(end - start)} minutes.",
    )
    for claim, value in (("roll-version", steady["version"]), ("roll-partitions", steady["cku2-partitions"])):
        audit.compare(claim, value, "The source's numbers: as in the steady-state benchmark.")
    partitions, topics = audit.number("roll-partitions"), audit.number("roll-topics")
    shape = (
        f"{number(partitions / topics)} partitions per topic, against {number(per_topic)} in "
        f"{number(steady['t1-2cku-topics'])} topics of the steady-state benchmark"
    )
    audit.note("roll-topics", f"The source's numbers: {shape}.")
    producers = f"{shape}; with one producer per topic that is {number(topics)} producers"
    other = "the workload differed, and the source does not state its throughput, number of brokers and warm-up."
    audit.judge("roll-same", None, f"The source's numbers: {producers}. So {other}")
