"""How other settings change the cost: follower fetching, compression, regions, replication."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import nan

import pandas as pd

from wanbench.checks import check_choice, check_kind, check_number
from wanbench.methods.cost.deployment import PER, TOTAL, UNITS, Deployment
from wanbench.methods.cost.inputs import Input, as_input
from wanbench.methods.cost.propagation import estimate
from wanbench.methods.cost.region_copies import region_copies
from wanbench.methods.result import Estimate, Result

MODELLED = "no interval: its crossings are computed for evenly spread clients and replicas, not counted"


@dataclass(frozen=True)
class Times:
    """A factor on one of the deployment's inputs: a number, (low, value, high) or an Estimate."""

    factor: object


@dataclass(frozen=True)
class Change:
    """
    One change: inputs by name, each with its new value (a number, range, Estimate or price) or a factor on the old one
    (`Times`).

    `is_modelled`: computed, not measured. Its ratio has no interval, as the error of the model is unknown.
    """

    name: str
    inputs: Mapping[str, object]
    why: str = ""
    is_modelled: bool = False


@dataclass(frozen=True, repr=False)
class CostChanges(Result):
    """
    The cost with each change over the cost without it.

    Attributes
    ----------
    ratios : dict
        Change to Estimate: cost with it over cost without it.
    costs : dict
        Change to the cost with it, in USD per million messages (or per `per`).
    """

    ratios: dict[str, Estimate]
    costs: dict[str, Estimate]
    why: dict[str, str]
    per: str

    TITLE = "What a change does to the price"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The ratios."""
        return tuple(self.ratios.values())

    @property
    def sentence(self) -> str:
        """Every ratio."""
        return " ".join(each.sentence for each in self.estimates)

    def formatted_table(self) -> pd.DataFrame:
        """One row per change."""
        rows = [
            {
                "Change": name,
                f"USD per {self.per}": self.costs[name].formatted,
                "Times the price": ratio.formatted,
                f"{ratio.formatted_level} interval": ratio.formatted_interval,
                f"with {ratio.others[0].method}": ratio.spell(ratio.others[0]),
                "Because": self.why[name],
            }
            for name, ratio in self.ratios.items()
        ]
        return pd.DataFrame(rows)


def cost_changes(base: Deployment, changes: list[Change], *, per: str = "million messages") -> CostChanges:
    """
    The total cost with each change over the cost without it; inputs that both share vary together.

    Parameters
    ----------
    changes : list of Change
        As measured, or from `modelled_changes`.
    per : str
        "hour", "million messages", "GB" or "year".

    Examples
    --------
    >>> small = Deployment(brokers=1, instance_usd_per_hour=1, messages_per_s=1e6 / 3600, message_bytes=1000,
    ...                    region_bytes_per_message=2000, region_usd_per_gb=0.5)
    >>> half = Change("half the bytes", {"region_bytes_per_message": Times(0.5)})
    >>> cost_changes(small, [half]).ratios["half the bytes"].estimate
    0.75
    """
    check_choice("per", per, PER)
    ratios, costs = {}, {}
    for change in check_kind("changes", changes, Iterable):
        inputs, apply = _changed(base, change)
        costs[change.name] = _cost(inputs, apply, per, change.name)
        ratio = estimate(
            lambda values, apply=apply: Deployment.usd(apply(values), TOTAL, per) / Deployment.usd(values, TOTAL, per),
            inputs,
            quantity=f"price with {change.name} over that without",
            claim=f"With {change.name} the price per {per} is {{}} the present one",
            unit="times",
        )
        if change.is_modelled:
            ratio = replace(ratio, low=nan, high=nan, warnings=(MODELLED, *ratio.warnings))
        ratios[change.name] = ratio
    return CostChanges(ratios, costs, {change.name: change.why for change in changes}, per)


def modelled_changes(
    *,
    regions: int,
    replication: int,
    groups: int = 1,
    follower_fetching: bool = True,
    produced: bool = True,
    compressed=None,
) -> list[Change]:
    """
    Changes that were not measured, from the number of times a message crosses regions (`region_copies`).

    Parameters
    ----------
    regions, replication, groups, follower_fetching, produced
        As in the deployment that is changed.
    compressed : number, (low, value, high) or Estimate, optional
        Bytes with compression over those without, to compare with.

    Returns
    -------
    list of Change
        Follower fetching on instead of off, or off instead of on; one region less; one replica less and one more, which
        also changes the disks; compression. The number of brokers stays. With two regions, losing the one with most
        replicas of a partition stops its writes, so that price buys a weaker guarantee.
    """
    now = {"regions": regions, "replication": replication, "follower_fetching": follower_fetching}
    same = {"groups": groups, "produced": produced}
    before = region_copies(**now, **same).total
    check_number("crossings per message", before, 0, above=True)

    def crossing(name: str, disks: float = 1.0, **other) -> Change:
        after = region_copies(**now | other, **same).total
        inputs = {"region_bytes_per_message": Times(after / before)}
        if disks != 1:
            inputs["disk_gb"] = Times(disks)
        return Change(name, inputs, is_modelled=True, why=f"a message crosses {after:.3g} times, not {before:.3g}")

    word = "no follower fetching" if follower_fetching else "follower fetching"
    changes = [crossing(word, follower_fetching=not follower_fetching)]
    if regions > 1:
        changes.append(crossing(f"{regions - 1} regions instead of {regions}", regions=regions - 1))
    for other in (replication - 1, replication + 1):
        if other >= 1:
            changes.append(crossing(f"replication {other}", disks=other / replication, replication=other))
    if compressed is not None:
        inputs = {"region_bytes_per_message": Times(compressed), "disk_gb": Times(compressed)}
        changes.append(Change("compression", inputs, "fewer bytes cross and are stored"))
    return changes


def _changed(base: Deployment, change: Change):
    """Inputs of both sides, and the function from their values to the values of the changed side."""
    added: dict[str, Input] = {}
    factors = {}
    check_kind("base", base, Deployment)
    for name, given in check_kind("a change", change, Change).inputs.items():
        check_choice(f"input of {change.name!r}", name, UNITS)
        is_factor = isinstance(given, Times)
        key = f"{name} with {change.name}"
        unit = "times" if is_factor else UNITS[name]
        added[key] = as_input(key, given.factor if is_factor else given, unit)
        factors[name] = (key, is_factor)

    def apply(values: dict) -> dict:
        new = {name: values[key] * (values[name] if times else 1) for name, (key, times) in factors.items()}
        return values | new

    return base.inputs | added, apply


def _cost(inputs, apply, per: str, name: str) -> Estimate:
    return estimate(
        lambda values: Deployment.usd(apply(values), TOTAL, per),
        inputs,
        quantity=f"cost per {per}, {name}",
        claim=f"With {name} the price per {per} is {{}}",
        unit="USD",
    )
