"""The stages of a lab of rented hosts, on one cloud or several: agree to the cost, launch, prepare, delete."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, Self

import pandas as pd

from wanbench.checks import LATER, T, check_flag, check_number, refusal
from wanbench.errors import LabError
from wanbench.measure.labs.base import Host, Lab
from wanbench.measure.labs.rented.costs import COSTS, IF_KILLED, Estimate, Sent, agree, check_budget, spent_before_usd
from wanbench.measure.labs.ssh import SshLab
from wanbench.measure.labs.ssh.inventory import Entry, Inventory
from wanbench.measure.plan.plan import Plan
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .hosts import Paths
from .resources import everywhere, uninterrupted


class Tenancy(Lab):
    """
    A lab of hosts that are launched on entry and deleted on exit, even after an error.

    One or several `parts`, each a `RentedLab`, form one lab with one budget; the user agrees to the cost of all at
    once. A `RentedLab` is a `Tenancy` whose only part is itself. Parts launch concurrently, and all hosts admit each
    other and the operator. If one part fails, the others are deleted as soon as they have launched. A run that would
    exceed `budget_usd` is refused or stopped; `yes` agrees to the cost.

    Raises
    ------
    BudgetError
        On entry; see `wanbench.measure.labs.rented.costs.agree`.
    LabError
        On entry, if hosts cannot be launched. On exit, if resources remain; the message lists them.
    """

    _ssh = _estimate = _folder = _if_killed = LATER
    _campaign = "by-hand"
    _spent_before_usd = 0.0

    def __init__(self, parts: Sequence[Any], kind: str, settings: dict[str, Any], budget_usd: float | None, yes: bool):
        self.parts, self.kind, self.settings = list(parts), kind, settings
        self.title = " and ".join(dict.fromkeys(part.title for part in parts))
        if len(ways := {part.path_names for part in parts}) > 1:
            raise refusal("subnets", ways, "for all parts of a lab, or for none")
        [self.path_names] = ways
        self.sysctls = parts[0].sysctls
        self.budget_usd = check_number("budget_usd", budget_usd, 0, optional=True)
        self.yes = check_flag("yes", yes)

    @property
    def hosts(self) -> dict[str, list[Host]]:  # pyright: ignore[reportIncompatibleVariableOverride]  # read only
        return by_region(part.own_hosts for part in self.parts)

    def estimate(self, plan: Plan | None, campaign: str) -> tuple[Estimate, list[str]]:
        """
        Check that all hosts are available, and return the cost of the plan, and notes on that cost. If `plan` is None,
        the cost assumes that hosts run until they end themselves. A LabError has the problems of all parts.
        """

        def estimate(part: Any) -> Any:
            try:
                return part.estimate(plan, campaign)
            except LabError as error:
                return error

        results = everywhere(estimate, self.parts)
        if problems := [str(result) for result in results if isinstance(result, LabError)]:
            raise LabError(" ".join(dict.fromkeys(problems)))
        estimates, notes = zip(*results, strict=True)
        return together(estimates), list(dict.fromkeys(chain(*notes)))

    def cost_of(self, sent_bytes: Sent | None, measuring_s: float) -> Estimate:
        """Return the cost of an amount of traffic and time."""
        return together([part.cost_of(sent_bytes, measuring_s) for part in self.parts])

    def spent(self) -> Estimate:
        """Return the cost of the hosts and of their traffic so far."""
        return together(everywhere(lambda part: part.spent(), self.parts))

    def at_most(self) -> Estimate:
        """Return the maximum cost, which assumes that hosts run until they end themselves."""
        return together([part.at_most() for part in self.parts])

    def agree_to(self, plan: Plan | None, campaign: str, folder: Path | None = None) -> None:
        self._campaign, self._folder = campaign, folder
        self._spent_before_usd = spent_before_usd(folder) if folder else 0.0
        self._estimate, notes = self.estimate(plan, campaign)
        before_usd = self._spent_before_usd
        agree(self._estimate, budget_usd=self.budget_usd, spent_before_usd=before_usd, yes=self.yes, notes=notes)

    def before_round(self, expected_s: float, sent_bytes: Sent | None) -> None:
        if self.budget_usd is not None:
            following = self.cost_of(sent_bytes, expected_s)
            check_budget(self._spent_before_usd + self.spent().high_usd, following.high_usd, self.budget_usd)

    def __enter__(self) -> Self:
        if self._ssh is not None:
            raise LabError("the lab is open already.")
        if self._estimate is None:
            self.agree_to(None, self._campaign)
        try:
            self._record_maximum_cost()
            everywhere(lambda part: part.rent(), self.parts, hurry=self._leave)
            addresses = [address for part in self.parts for address in part.addresses()]
            everywhere(lambda part: part.let_in(part.order, addresses), self.parts)
            everywhere(lambda part: part.reach(), self.parts, hurry=self._leave)
            entries = [Entry(host, None, None) for host in self.all_hosts()]  # pyright: ignore[reportArgumentType]
            inventory = Inventory(f"the hosts on {self.title}", tuple(entries))
            self._ssh = SshLab(list(self.hosts), hosts_per_region=None, sysctls=self.sysctls, inventory=inventory)
            self._ssh.__enter__()
            if self.path_names:
                pairs = [pair for part in self.parts for pair in part.pairs()]
                paths = Paths([(host, instance.private_address) for host, instance in pairs])
                for host, _ in pairs:
                    host.paths = paths
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._ssh = LATER
        if left := uninterrupted(self._give_back, self.title):
            remains = f"REMAINS on {self.title}, and costs money: {'; '.join(left)}"
            raise LabError(f"{remains}. `wanbench sweep` tries again to delete this.")

    def _leave(self) -> None:
        everywhere(lambda part: part.leave(), self.parts)

    def _give_back(self) -> list[str]:
        def work(part: Any) -> list[str]:
            where = f"{part.title}: " if len(self.parts) > 1 else ""
            try:
                return [where + text for text in part.give_back()]
            except Exception as error:  # the other cloud's answer must not be lost
                return [f"{where}unknown, because of an error: {error}"]

        return list(chain(*everywhere(work, self.parts)))

    def keep(self, folder: Path, stem: str) -> list[RawFile]:
        return self.keep_costs(folder, stem)

    def keep_costs(self, folder: Path, stem: str) -> list[RawFile]:
        """Write the files of `keep` that record costs; if the lab failed to open, they have no expected cost."""
        if self._estimate is None:
            return []
        spent = self.spent()
        kept = [self._costs_file(folder, stem, spent, opened=self._ssh is not None)] if spent.hours else []
        if self._if_killed is not None:
            (folder / self._if_killed.path).unlink(missing_ok=True)
            self._if_killed = None
            with suppress(OSError):  # not empty
                (folder / COSTS).rmdir()
        return kept

    def _record_maximum_cost(self) -> None:
        """Write a file with the maximum cost, in case this session is killed; if not, `keep_costs` removes it."""
        if self._folder is not None:
            number = 1 + sum(1 for _ in self._folder.glob(f"{COSTS}/{IF_KILLED}*"))
            self._if_killed = self._costs_file(self._folder, f"{IF_KILLED}{number}", self.at_most(), opened=True)

    def _costs_file(self, folder: Path, stem: str, spent: Estimate, *, opened: bool) -> RawFile:
        expected = self._estimate.as_dict() | ({} if opened else {"items": []})
        prices = [price for part in self.parts for price in part.prices()]
        costs = {"expected": expected, "spent": spent.as_dict(), "prices": prices}
        content = json.dumps(costs, indent=1).encode() + b"\n"
        return write_raw(folder, COSTS, f"{stem}.json", content, started_at_utc=now_utc(), ended_at_utc=now_utc())

    def describe(self) -> dict[str, Any]:
        facts = self._ssh.describe()
        rented = chain(*by_region(part.rented_as() for part in self.parts).values())
        hosts = [host | more for host, more in zip(facts["hosts"], rented, strict=True)]
        return {**facts, **self.settings, "kind": self.kind, "hosts": hosts}


def by_region(mappings: Iterable[Mapping[str, list[T]]]) -> dict[str, list[T]]:
    """Merge mappings of lists: for each region, join its lists from all mappings, in order."""
    merged: dict[str, list[T]] = {}
    for region, items in chain(*(mapping.items() for mapping in mappings)):
        merged.setdefault(region, []).extend(items)
    return merged


def together(estimates: Sequence[Estimate]) -> Estimate:
    """Add up estimates; `hours` is the maximum over them."""
    table = pd.concat([estimate.table for estimate in estimates], ignore_index=True)
    return Estimate(table, sum(one.hosts for one in estimates), max(one.hours for one in estimates))
