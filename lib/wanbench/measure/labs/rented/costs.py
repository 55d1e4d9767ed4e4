"""Estimate the cost of a lab of rented hosts, ask the user to agree before anything starts, and keep to a budget."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path

import pandas as pd

from wanbench.errors import LabError, ParameterError
from wanbench.folders import published_folder
from wanbench.measure.labs.base import Host

from .resources import everywhere, tell

HOURS_PER_MONTH = 730
# Name of an environment variable; the value "1" agrees to the cost of labs. `wanbench report --yes` sets it.
YES_VARIABLE = "WANBENCH_YES"
# The folder among a run's raw files in which each session records its lab's expected and actual cost.
COSTS = "lab_cost"

# Prefix of files in this folder that hold the maximum cost of a session. A file remains only if its session was killed.
IF_KILLED = "if-killed-"

BETWEEN_REGIONS = "egress between regions"
TO_INTERNET = "egress to internet"
UNITS = {BETWEEN_REGIONS: "GB", TO_INTERNET: "GB", "volume": "GB-month", "MSK volume": "GB-month"}
"""Units of prices; the prices of all other items, such as instances, are per hour."""
SET_UP_S = 300.0
"""Assumed time that an instance is paid for in addition to measuring: starting, installing tools, stopping."""
Price = float | list[float] | tuple[float, float]  # a price, or the lowest and the highest
Sent = Mapping[tuple[str, str], float]  # bytes by (sending region, receiving region)


@cache
def _price_list() -> pd.DataFrame:
    with (files("wanbench.measure.labs.rented") / "prices.csv").open() as file:
        own = pd.read_csv(file)
    published = pd.read_csv(published_folder() / "prices" / "list-prices.csv")
    is_type = (published.unit == "hour") & ~published["item"].str.contains(" ")
    chosen = published[(is_type | (published["item"] == BETWEEN_REGIONS)) & (published.term == "on demand")]
    ranges = chosen.rename(columns={"provider": "cloud"}).groupby(["cloud", "item"], sort=False, as_index=False)
    listed = ranges.agg(
        low_usd=("price_usd", "min"),
        high_usd=("price_usd", "max"),
        unit=("unit", "last"),
        source=("source", "last"),
        as_of=("as_of", "last"),
    )
    return pd.concat([own, listed[own.columns]], ignore_index=True)


def prices(overrides: Mapping[str, Mapping[str, Price]] | None = None) -> pd.DataFrame:
    """
    Return prices in US dollars, as ranges over the regions of a cloud: columns cloud, item, low_usd, high_usd, unit,
    source, as_of.

    Prices of instance types and of egress between regions come from `data/published/prices`, all others from the
    package's own list; these suffice for a first estimate. `overrides` adds and replaces prices: {cloud: {item:
    price}}, where a price is a number, or (lowest, highest). Items are instance types and "public address" (per hour),
    "volume" (per GB-month), "egress between regions" and "egress to internet" (per GB of 10^9 bytes). An item that is
    not in the table has no known price.
    """
    listed = {(row["cloud"], row["item"]): row for row in _price_list().to_dict("records")}
    for cloud, items in (overrides or {}).items():
        for item, given in items.items():
            low, high = given if isinstance(given, list | tuple) else (given, given)
            if not 0 <= low <= high < math.inf:
                allowed = "a number of at least 0, or two in order"
                raise ParameterError(f"price of {item!r} on {cloud!r} is {given!r}; allowed: {allowed}.")
            row = {"cloud": cloud, "item": item, "low_usd": float(low), "high_usd": float(high)}
            listed[cloud, item] = row | {"unit": UNITS.get(item, "hour"), "source": "parameters", "as_of": ""}
    return pd.DataFrame(list(listed.values()), columns=_price_list().columns)


class BudgetError(LabError):
    """The cost would exceed the budget, or the user does not agree to it."""


@dataclass(frozen=True)
class Estimate:
    """
    The expected or actual cost of a lab of `hosts` hosts, each for `hours`.

    `table`, made by `Costs.of`, has the columns cloud, item, amount, unit, low_usd, high_usd.
    """

    table: pd.DataFrame
    hosts: int
    hours: float

    @property
    def low_usd(self) -> float:
        """Return the minimum cost in US dollars, without items of unknown price."""
        return float(self.table["low_usd"].sum())

    @property
    def high_usd(self) -> float:
        """Return the maximum cost in US dollars, without items of unknown price."""
        return float(self.table["high_usd"].sum())

    @property
    def unknown(self) -> list[str]:
        """Return the items whose amount or price is unknown."""
        return list(dict.fromkeys(self.table.loc[self.table["high_usd"].isna(), "item"]))

    def __str__(self) -> str:
        lines = [f"  {self.hosts} hosts for {self.hours:.2f} hours each"]
        for row in self.table.itertuples():
            amount = "amount unknown" if row.amount != row.amount else f"{row.amount:.4g} {row.unit}"
            usd = "unknown" if row.high_usd != row.high_usd else f"{row.low_usd:.2f} to {row.high_usd:.2f} USD"
            lines.append(f"  {row.cloud} {row.item:<24} {amount:>18}   {usd}")
        and_unknown = f", plus items of unknown cost: {', '.join(self.unknown)}" if self.unknown else ""
        lines.append(f"  total {self.low_usd:.2f} to {self.high_usd:.2f} USD{and_unknown}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        """Return the estimate in JSON types; unknown amounts and prices are None."""
        rows = self.table.astype("object").where(self.table.notna(), None).to_dict("records")
        return {"hosts": self.hosts, "hours": self.hours, "items": rows}


def agree(
    estimate: Estimate,
    *,
    budget_usd: float | None = None,
    spent_before_usd: float = 0.0,
    yes: bool = False,
    notes: Sequence[str] = (),
    ask: Callable[[str], str] = input,
) -> None:
    """
    Show what a lab will cost, and return only if the user agrees: by `yes`, by WANBENCH_YES=1, or by answering `ask`.

    The budget covers this cost and the cost of the run's earlier sessions. Raise BudgetError if the maximum cost
    exceeds the budget, if there is a budget but the cost of an item is unknown, or if the user does not agree.
    """
    print("This lab will cost:", estimate, *(f"  note: {note}" for note in notes), sep="\n", file=sys.stderr)
    if budget_usd is not None:
        if estimate.unknown:
            unknown = f"The price or amount of {', '.join(estimate.unknown)} is unknown"
            unsure = f"so it is not certain that the cost stays within the budget of {budget_usd:.2f} USD"
            raise BudgetError(f"{unknown}, {unsure}; set price_overrides and rate_bps, or no budget.")
        if spent_before_usd + estimate.high_usd > budget_usd:
            before = f"after {spent_before_usd:.2f} USD already spent on this run, " if spent_before_usd else ""
            budget = f"{before}but the budget is {budget_usd:.2f} USD. Nothing was started."
            raise BudgetError(f"This may cost up to {estimate.high_usd:.2f} USD, {budget}")
    if yes or os.environ.get(YES_VARIABLE) == "1":
        return
    try:
        answer = ask("Start it? [yes/no] ")
    except (EOFError, RuntimeError):  # a notebook's kernel without a user raises RuntimeError
        cost = f"{estimate.low_usd:.2f} to {estimate.high_usd:.2f} USD"
        remedy = f"`--yes` (or {YES_VARIABLE}=1) agrees. Nothing was started."
        raise BudgetError(f"This costs {cost}, and there is no terminal to ask for agreement; {remedy}") from None
    if answer.strip().lower() not in ("y", "yes"):
        raise BudgetError("The cost was not agreed to. Nothing was started.")


def spent_before_usd(folder: Path) -> float:
    """
    Return the maximum cost in US dollars of the earlier sessions of the run in a folder, from the files of their labs.

    The hosts of a session that was killed are assumed to have run until they ended themselves. Items of unknown price
    are not included.
    """
    paths = sorted(folder.glob(f"{COSTS}/*.json"))
    items = (item for path in paths for item in json.loads(path.read_text())["spent"]["items"])
    return float(sum(item["high_usd"] or 0.0 for item in items))


def check_budget(spent_usd: float, next_usd: float, budget_usd: float) -> None:
    """Raise BudgetError if the next round, at the cost `next_usd`, would exceed the budget."""
    if spent_usd + next_usd > budget_usd:
        costs = f"about {spent_usd:.2f} USD are spent, the next round may cost up to {next_usd:.2f} USD"
        raise BudgetError(f"Stopped: {costs}, and the budget is {budget_usd:.2f} USD. The measurements are kept.")


class Costs:
    """
    Costs of equal hosts in some regions of one cloud.

    `regions` are names of the catalogue. `per_host_hour` is the amount of each further item that a host uses in an
    hour; by default one public address and the host's volume. A price comes from `overrides` if that has it, otherwise
    from `listed` (the cloud's own price list), otherwise from the package's tables. `notes` are shown when the user is
    asked to agree.
    """

    def __init__(
        self,
        regions: Sequence[str],
        *,
        instance_type: str,
        hosts_per_region: int,
        volume_gb: int | None = None,
        overrides: Mapping[str, Price],
        listed: Mapping[str, tuple[float, float]] | None = None,
        notes: Sequence[str] = (),
        per_host_hour: Mapping[str, float] | None = None,
    ):
        self._cloud = regions[0].partition(":")[0]
        self.notes = list(notes)
        self.prices = prices({self._cloud: {**(listed or {}), **overrides}})
        self._n_hosts = hosts_per_region * len(regions)
        if per_host_hour is None:
            per_host_hour = {"public address": 1.0} | ({"volume": volume_gb / HOURS_PER_MONTH} if volume_gb else {})
        self._per_hour = {instance_type: 1.0} | dict(per_host_hour)

    def of(self, sent_bytes: Sent | None, measuring_s: float, *, set_up_s: float = 0.0) -> Estimate:
        """
        Return the cost of all hosts for `measuring_s` plus `set_up_s`, and of the traffic.

        `sent_bytes` is the traffic by (sending region, receiving region); None if it is unknown. The cloud charges for
        the bytes that leave one of its regions, for another of its regions or for the internet.
        """
        hours = (measuring_s + set_up_s) / 3600
        within = to_internet = math.nan
        if sent_bytes is not None:
            own = f"{self._cloud}:"
            leaving = {ends: n for ends, n in sent_bytes.items() if ends[0].startswith(own) and ends[0] != ends[1]}
            within = sum(n for (_, to), n in leaving.items() if to.startswith(own)) / 1e9
            to_internet = sum(leaving.values()) / 1e9 - within
        amounts = {item: self._n_hosts * hours * n for item, n in self._per_hour.items()}
        amounts |= {BETWEEN_REGIONS: within, TO_INTERNET: to_internet}
        table = pd.DataFrame({"cloud": self._cloud, "item": list(amounts), "amount": list(amounts.values())})
        table["unit"] = [UNITS.get(item, "hour") for item in amounts]
        listed = self.prices[self.prices["cloud"] == self._cloud].set_index("item").reindex(table["item"])
        for end in ("low_usd", "high_usd"):
            table[end] = table["amount"] * listed[end].reset_index(drop=True).where(table["amount"] != 0, 0.0)
        return Estimate(table, self._n_hosts, hours)


class Meter:
    """Count the seconds that hosts have run since the meter was made, and the bytes that they have sent."""

    def __init__(self):
        # The wall clock, because a monotonic clock stops while this machine sleeps.
        self._started, self._ended, self._sent = datetime.now(UTC), None, {}

    def stop(self) -> None:
        """Stop counting, because the hosts are deleted."""
        self._ended = datetime.now(UTC)

    def running_s(self) -> float:
        """Return the seconds since the meter was made, up to now or to when it was stopped."""
        return max(0.0, ((self._ended or datetime.now(UTC)) - self._started).total_seconds())

    def sent(self, hosts: Sequence[Host], target: str) -> dict[tuple[str, str], float]:
        """
        Return the bytes that hosts sent, by (region, target). If a host does not answer, its previous count is used,
        and a message is printed.
        """
        if self._ended is None:
            everywhere(self._count, hosts)
        by_region: dict[tuple[str, str], float] = {}
        for region, sent in self._sent.values():
            by_region[region, target] = by_region.get((region, target), 0.0) + sent
        return by_region

    def _count(self, host: Host) -> None:
        try:
            self._sent[host.name] = (host.region, bytes_sent(host))
        except LabError as error:
            why = "the bytes that this host sent since its last answer are not counted"
            tell(f"wanbench: the costs are too low, because {why}: {error}")


def bytes_sent(host: Host) -> float:
    """Return the bytes that all interfaces of a host except the loopback have sent."""
    lines = host.run(["cat", "/proc/net/dev"], timeout_s=30).stdout.decode().splitlines()[2:]
    parts = (line.partition(":") for line in lines)
    return float(sum(int(rest.split()[8]) for name, _, rest in parts if name.strip() != "lo"))
