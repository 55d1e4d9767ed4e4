"""What a lab of rented hosts goes through, on one cloud or several: agreed to, launched, joined, taken down."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from wanbench.errors import LabError
from wanbench.measure.labs.base import Lab
from wanbench.measure.labs.rented.costs import COSTS, IF_KILLED, Estimate, agree, check_budget, spent_before_usd
from wanbench.measure.labs.ssh import SshLab
from wanbench.measure.labs.ssh.inventory import Entry, Inventory
from wanbench.measure.plan.plan import Plan
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .hosts import Paths
from .resources import uninterrupted


class Tenancy(Lab):
    """
    Hosts that are rented on entering and given back on leaving, whatever happened.

    `title` names the cloud, or clouds; `budget_usd` refuses or stops what would exceed it; `yes` agrees to the costs.

    Subclasses supply, in the order in which they are called:

    - `estimate(plan, campaign)`: check that all is available; returns its `Estimate`, and notes for whoever is asked
    - `at_most()`: its highest cost, that of hosts that nobody takes down before they end themselves
    - `rent()`: launch all hosts, closed to all but the operator's SSH
    - `addresses()`, `admit(addresses)`: how the hosts reach each other; open all hosts to these addresses
    - `reach()`: log in to all hosts once they are ready; `private_hosts()` then gives them with their private addresses
    - `rented_as()`: zone, type and image of the hosts of each region; no account and no id of an instance
    - `cost_of(sent_bytes, measuring_s)`, `spent()`, `prices()`: what so much traffic and time costs, what the lab has
      cost so far, and the prices of both
    - `give_back()`: take down everything that this lab made; returns what remains. Safe to call twice.

    Raises
    ------
    BudgetError
        On entering: see `wanbench.measure.labs.rented.costs.agree`.
    LabError
        On entering, if hosts cannot be had. On leaving, if anything remains; it lists what.
    """

    title: str
    budget_usd: float | None
    yes: bool
    _ssh = _estimate = _folder = _if_killed = None
    _campaign = "by-hand"
    _spent_before_usd = 0.0

    def agree_to(self, plan: Plan | None, campaign: str, folder: Path | None = None) -> None:
        self._campaign, self._folder = campaign, folder
        self._spent_before_usd = spent_before_usd(folder) if folder else 0.0
        self._estimate, notes = self.estimate(plan, campaign)
        agree(
            self._estimate,
            budget_usd=self.budget_usd,
            spent_before_usd=self._spent_before_usd,
            yes=self.yes,
            notes=notes,
        )

    def before_round(self, expected_s: float, sent_bytes: Mapping[tuple[str, str], float] | None) -> None:
        if self.budget_usd is not None:
            following = self.cost_of(sent_bytes, expected_s)
            spent_usd = self._spent_before_usd + self.spent().high_usd
            check_budget(spent_usd, following.high_usd, self.budget_usd)

    def __enter__(self) -> Tenancy:
        if self._ssh is not None:
            raise LabError("the lab is open already.")
        if self._estimate is None:
            self.agree_to(None, self._campaign)
        try:
            self._say_what_it_costs_if_killed()
            self.rent()
            self.admit(self.addresses())
            self.reach()
            entries = [Entry(host, None, None) for hosts in self.hosts.values() for host in hosts]
            self._ssh = SshLab(
                list(self.hosts),
                hosts_per_region=None,
                sysctls=self.sysctls,
                inventory=Inventory(f"the hosts on {self.title}", tuple(entries)),
            )
            self._ssh.__enter__()
            if self.path_names:
                paths = Paths(self.private_hosts())
                for host, _ in self.private_hosts():
                    host.paths = paths
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *exception) -> None:
        self._ssh = None
        if left := uninterrupted(self.give_back, self.title):
            raise LabError(
                f"REMAINS on {self.title}, and costs money: {'; '.join(left)}. `wanbench sweep` tries again."
            )

    def keep(self, folder: Path, stem: str) -> list[RawFile]:
        return self.keep_costs(folder, stem)

    def keep_costs(self, folder: Path, stem: str) -> list[RawFile]:
        """See `Lab.keep_costs`. A session that failed to open its lab records no expected cost."""
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

    def _say_what_it_costs_if_killed(self) -> None:
        """A killed session cannot say what it cost; this file does, until `keep_costs` removes it."""
        if self._folder is not None:
            number = 1 + sum(1 for _ in self._folder.glob(f"{COSTS}/{IF_KILLED}*"))
            self._if_killed = self._costs_file(self._folder, f"{IF_KILLED}{number}", self.at_most(), opened=True)

    def _costs_file(self, folder: Path, stem: str, spent: Estimate, *, opened: bool) -> RawFile:
        costs = {
            "expected": self._estimate.as_dict() | ({} if opened else {"items": []}),
            "spent": spent.as_dict(),
            "prices": self.prices(),
        }
        content = json.dumps(costs, indent=1).encode() + b"\n"
        ends = {"started_at_utc": now_utc(), "ended_at_utc": now_utc()}
        return write_raw(folder, COSTS, f"{stem}.json", content, **ends)

    def describe(self) -> dict:
        facts = self._ssh.describe()
        rented = [about for region in self.rented_as().values() for about in region]
        hosts = [host | more for host, more in zip(facts["hosts"], rented, strict=True)]
        return {**facts, **self.settings, "kind": self.kind, "hosts": hosts}


# Assumed destination of all bytes if hosts are on several clouds: the internet, the more expensive case.
ELSEWHERE = "another cloud:"
