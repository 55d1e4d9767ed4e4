"""What a lab of rented hosts costs: shown and agreed to before anything starts, and held to a budget while it runs."""

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
# An environment variable; "1" stands for a yes to what a lab costs. `wanbench report --yes` sets it.
YES_VARIABLE = "WANBENCH_YES"
# The folder among a run's raw files in which each session records its lab's expected and actual cost.
COSTS = "lab_cost"

# Prefix of files there with the maximum cost of a session; a file stays only if its session was killed.
IF_KILLED = "if-killed-"

BETWEEN_REGIONS = "egress between regions"
TO_INTERNET = "egress to internet"
UNITS = {BETWEEN_REGIONS: "GB", TO_INTERNET: "GB", "volume": "GB-month", "MSK volume": "GB-month"}
"""Units of prices; instances and other time-based items are priced per hour."""
SET_UP_S = 300.0
"""
Assumed time that an instance is paid for besides measuring: starting, installing tools, stopping.
"""


@cache
def _price_list() -> pd.DataFrame:
    with (files(__package__) / "prices.csv").open() as file:
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


def prices(overrides: Mapping[str, Mapping[str, float]] | None = None) -> pd.DataFrame:
    """
    Prices in US dollars, as ranges over the regions of a cloud: columns cloud, item, low_usd, high_usd, unit, source,
    as_of.

    The package's list, and instance types and egress between regions in `data/published/prices`, are for a first
    estimate. Missing prices are
    unknown unless `overrides` gives them: {cloud: {item: price}}, where a price is a number, or (lowest, highest).
    Items are instance types and "public address" (per hour), "volume" (per GB-month), "egress between regions" and
    "egress to internet" (per GB of 10^9 bytes).
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
    """What is asked for would cost more than its budget allows, or what it costs is not agreed to."""


@dataclass(frozen=True)
class Estimate:
    """
    What a lab is going to cost, or has cost, with `hours` of each host.

    `table` has cloud, item, amount, unit, low_usd, high_usd, as `Costs.of` makes it.
    """

    table: pd.DataFrame
    hosts: int
    hours: float

    @property
    def low_usd(self) -> float:
        """The least it may cost, without items of unknown price."""
        return float(self.table["low_usd"].sum())

    @property
    def high_usd(self) -> float:
        """The most, without items of unknown price."""
        return float(self.table["high_usd"].sum())

    @property
    def unknown(self) -> list[str]:
        """Items whose amount or price is not known."""
        return list(dict.fromkeys(self.table.loc[self.table["high_usd"].isna(), "item"]))

    def __str__(self) -> str:
        lines = [f"  {self.hosts} hosts for {self.hours:.2f} hours each"]
        for row in self.table.itertuples():
            amount = "amount not known" if row.amount != row.amount else f"{row.amount:.4g} {row.unit}"
            usd = "not known" if row.high_usd != row.high_usd else f"{row.low_usd:.2f} to {row.high_usd:.2f} USD"
            lines.append(f"  {row.cloud} {row.item:<24} {amount:>18}   {usd}")
        and_unknown = f", and what is not known: {', '.join(self.unknown)}" if self.unknown else ""
        lines.append(f"  total {self.low_usd:.2f} to {self.high_usd:.2f} USD{and_unknown}")
        return "\n".join(lines)

    def as_dict(self) -> dict:
        """In JSON types; what is not known is None."""
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
    Show what a lab will cost, and return only if that is agreed to: by `yes`, by WANBENCH_YES=1, or by an answer.

    The budget covers this cost and what earlier sessions of the run have spent. BudgetError if the highest estimate, or
    an unknown item, does not fit it, or nobody agrees.
    """
    print("What this lab costs:", estimate, *(f"  note: {note}" for note in notes), sep="\n", file=sys.stderr)
    if budget_usd is not None:
        if estimate.unknown:
            raise BudgetError(
                f"The price or amount of {', '.join(estimate.unknown)} is not known, so the budget of "
                f"{budget_usd:.2f} USD cannot be kept; give price_overrides and rate_bps, or no budget."
            )
        if spent_before_usd + estimate.high_usd > budget_usd:
            before = f"{spent_before_usd:.2f} USD are spent on this run already, " if spent_before_usd else ""
            raise BudgetError(
                f"Up to {estimate.high_usd:.2f} USD are expected, {before}the budget is {budget_usd:.2f} USD. "
                "Nothing was started."
            )
    if yes or os.environ.get(YES_VARIABLE) == "1":
        return
    try:
        answer = ask("Start it? [yes/no] ")
    except (EOFError, RuntimeError):  # a notebook's kernel without a user raises RuntimeError
        raise BudgetError(
            f"This costs {estimate.low_usd:.2f} to {estimate.high_usd:.2f} USD and nobody can be asked here; "
            f"`--yes` (or {YES_VARIABLE}=1) agrees to it. Nothing was started."
        ) from None
    if answer.strip().lower() not in ("y", "yes"):
        raise BudgetError("Not agreed to. Nothing was started.")


def spent_before_usd(folder: Path) -> float:
    """
    What earlier sessions of the run in this folder have spent at most, by the files that their labs left.

    A session that was killed counts as if its hosts had run until they ended themselves; an item of unknown price does
    not count.
    """
    paths = sorted(folder.glob(f"{COSTS}/*.json"))
    items = (item for path in paths for item in json.loads(path.read_text())["spent"]["items"])
    return float(sum(item["high_usd"] or 0.0 for item in items))


def check_budget(spent_usd: float, next_usd: float, budget_usd: float) -> None:
    """BudgetError if what comes next would exceed the budget; what is done is kept, and the next call goes on."""
    if spent_usd + next_usd > budget_usd:
        raise BudgetError(
            f"About {spent_usd:.2f} USD are spent, the next round takes up to {next_usd:.2f}, and the budget is "
            f"{budget_usd:.2f} USD: stopped here. What is measured is kept."
        )


class Costs:
    """
    Costs of equal hosts in some regions of one cloud (names of the catalogue).

    `per_host_hour` is what an hour of a host uses in addition to its instance type; by default a public address, and
    its volume. In the table `prices`, `overrides` replace `listed` (the cloud's own list), which replace the dated
    tables. `notes` are shown to whoever is asked to agree.
    """

    def __init__(
        self,
        regions: Sequence[str],
        *,
        instance_type: str,
        hosts_per_region: int,
        volume_gb: int | None = None,
        overrides: Mapping[str, float],
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

    def of(
        self, sent_bytes: Mapping[tuple[str, str], float] | None, measuring_s: float, *, set_up_s: float = 0.0
    ) -> Estimate:
        """
        Cost of each host for `measuring_s` plus `set_up_s`, and of traffic by (sending region, receiving region), None
        if unknown: the cloud charges for what leaves a region of its own, within the cloud or to the internet.
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
    """What hosts have sent, and for how long they have run, since it was made."""

    def __init__(self):
        # By the wall clock: a monotonic one stands still while this machine sleeps, and hosts do not.
        self._started, self._ended, self._sent = datetime.now(UTC), None, {}

    def stop(self) -> None:
        """The hosts are gone: neither time nor bytes are counted any more."""
        self._ended = datetime.now(UTC)

    def running_s(self) -> float:
        """Time in s from when it was made until now, or until it was stopped."""
        return max(0.0, ((self._ended or datetime.now(UTC)) - self._started).total_seconds())

    def sent(self, hosts: Sequence[Host], target: str) -> dict[tuple[str, str], float]:
        """Bytes by (region, target). A silent host counts with its last answer, and a message says so."""
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
            why = "what it sent since it was last asked is not counted"
            tell(f"wanbench: the costs are too low, as {why}: {error}")


def bytes_sent(host: Host) -> float:
    """Bytes that all interfaces of a host but the loopback have sent."""
    lines = host.run(["cat", "/proc/net/dev"], timeout_s=30).stdout.decode().splitlines()[2:]
    parts = (line.partition(":") for line in lines)
    return float(sum(int(rest.split()[8]) for name, _, rest in parts if name.strip() != "lo"))
