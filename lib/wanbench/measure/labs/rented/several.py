"""Labs of rented hosts that are one lab: on several clouds at once, or of several instance types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

import pandas as pd

from wanbench.checks import check_flag, check_number, refusal
from wanbench.errors import ParameterError
from wanbench.measure.labs.base import Host
from wanbench.measure.plan.plan import Plan

from .costs import Estimate
from .lab import RentedLab
from .resources import everywhere
from .tenancy import Tenancy

# Assumed destination of all bytes if hosts are on several clouds: the internet, the more expensive case.
ELSEWHERE = "another cloud:"


class Several(Tenancy):
    """
    Several labs of rented hosts as one, under one consent and one budget. All hosts admit each other, and the operator.

    They launch side by side. If one fails, the others are taken down as soon as they have launched; what remains
    anywhere is said.
    """

    def _join(self, parts: Sequence[RentedLab], budget_usd: float | None, yes: bool) -> None:
        self._parts = list(parts)
        self.title = " and ".join(dict.fromkeys(part.title for part in self._parts))
        if len(ways := {part.path_names for part in self._parts}) > 1:
            raise refusal("subnets", ways, "for all parts of a lab, or for none")
        [self.path_names] = ways
        self.sysctls = self._parts[0].sysctls
        self.budget_usd = check_number("budget_usd", budget_usd, 0, optional=True)
        self.yes = check_flag("yes", yes)

    @property
    def hosts(self) -> dict[str, list[Host]]:
        return _by_region(part.hosts for part in self._parts)

    def estimate(self, plan: Plan | None, campaign: str) -> tuple[Estimate, list[str]]:
        estimates, notes = zip(*everywhere(lambda part: part.estimate(plan, campaign), self._parts), strict=True)
        return _together(estimates), list(dict.fromkeys(chain(*notes)))

    def cost_of(self, sent_bytes: Mapping[tuple[str, str], float] | None, measuring_s: float) -> Estimate:
        return _together([part.cost_of(sent_bytes, measuring_s) for part in self._parts])

    def spent(self) -> Estimate:
        return _together(everywhere(RentedLab.spent, self._parts))

    def at_most(self) -> Estimate:
        return _together([part.at_most() for part in self._parts])

    def prices(self) -> list[dict]:
        return [price for part in self._parts for price in part.prices()]

    def rent(self) -> None:
        """Launch everywhere; returns, or raises the first error, once every cloud has launched or failed."""
        everywhere(RentedLab.rent, self._parts, hurry=self._leave)

    def addresses(self) -> list[str]:
        return [address for part in self._parts for address in part.addresses()]

    def admit(self, addresses: Sequence[str]) -> None:
        everywhere(lambda part: part.admit(addresses), self._parts)

    def reach(self) -> None:
        everywhere(RentedLab.reach, self._parts, hurry=self._leave)

    def _leave(self) -> None:
        everywhere(RentedLab.leave, self._parts)

    def private_hosts(self) -> list[tuple[Host, str]]:
        return [each for part in self._parts for each in part.private_hosts()]

    def give_back(self) -> list[str]:
        def work(part):
            try:
                return [f"{part.title}: {text}" for text in part.give_back()]
            except Exception as error:  # the other cloud's answer must not be lost
                return [f"{part.title}: not known: {error}"]

        return [text for left in everywhere(work, self._parts) for text in left]

    def rented_as(self) -> dict[str, list[dict]]:
        return _by_region(part.rented_as() for part in self._parts)


class SeveralClouds(Several):
    """
    One rented lab per cloud. Every cloud charges what its own hosts send.

    `lab_options` of "aws+gcp" are such as ``{"aws": {"instance_type": "t3.small"}, "gcp":
    {"instance_type": "e2-small"}, "budget_usd": 5}``.

    `clouds` has a subclass of `RentedLab` for each cloud, `regions` at least one region for each. `options` are the
    further parameters of `RentedLab`: those of one cloud as a mapping under its name, which may have another
    `hosts_per_region`; others are for all. The budget is for all clouds together.

    ParameterError if one of these is not as described, or private addresses are asked for: the networks of a run are
    new, so nothing joins those of two clouds. Give `subnets` that a link joins already.
    """

    def __init__(
        self,
        clouds: Mapping[str, Callable[..., RentedLab]],
        regions: Sequence[str],
        links: Mapping | None = None,
        *,
        hosts_per_region: int = 1,
        sysctls: Mapping[str, str] | None = None,
        seed: int = 0,
        budget_usd: float | None = None,
        yes: bool = False,
        **options,
    ):
        self.kind = "+".join(clouds)
        of_cloud = {cloud: [name for name in regions if name.startswith(f"{cloud}:")] for cloud in clouds}
        rented = [name for names in of_cloud.values() for name in names]
        if sorted(rented) != sorted(regions) or not all(of_cloud.values()):
            raise refusal(f"regions of the lab {self.kind}", list(regions), "regions of all these clouds alone")
        own = {cloud: _own(self.kind, cloud, options.pop(cloud, None)) for cloud in clouds}
        common = options | {"hosts_per_region": hosts_per_region, "sysctls": sysctls}
        for cloud, names in of_cloud.items():
            try:
                inspect.signature(RentedLab).bind(names, **common | own[cloud])
            except TypeError as error:
                raise ParameterError(f"lab_options of {cloud} in the lab {self.kind!r}: {error}.") from None
        parts = [clouds[cloud](names, **common | own[cloud]) for cloud, names in of_cloud.items()]
        for part in parts:
            part.sends_to = ELSEWHERE
            if part.private_addresses:
                raise refusal("private_addresses", True, "false for several clouds, as nothing joins their networks")
        self._join(parts, budget_usd, yes)
        self.settings = {part.kind: part.settings for part in parts}


class SeveralTypes(Several):
    """
    Hosts of several instance types in every region of one cloud: those of the first type come first.

    `instance_type` says how many hosts of each type a region has; at least `hosts_per_region` in all. The other
    parameters are those of `RentedLab`.
    """

    def __init__(
        self,
        cloud: Callable[..., RentedLab],
        regions: Sequence[str],
        links: Mapping | None = None,
        *,
        instance_type: Mapping[str, int],
        hosts_per_region: int = 1,
        budget_usd: float | None = None,
        yes: bool = False,
        **options,
    ):
        parts, number = [], 0
        for name, count in instance_type.items():
            part = cloud(regions, hosts_per_region=count, instance_type=name, **options)
            part.number_from(number)
            part.is_charged = not parts  # for what a plan sends, once
            number += count
            parts.append(part)
        if number < hosts_per_region:
            raise refusal("instance_type", dict(instance_type), f"at least {hosts_per_region} hosts in a region")
        for part in parts:
            part.alongside = [each for other in parts if other is not part for each in other.wanted.values()]
        self.kind = parts[0].kind
        self._join(parts, budget_usd, yes)
        self.settings = {**parts[0].settings, "instance_type": dict(instance_type)}


def on_clouds(clouds: Mapping[str, Callable[..., RentedLab]], *arguments, **options) -> Tenancy:
    """
    Make the lab on several clouds, or on one: of one instance type, or of several if `instance_type` is a mapping.
    """
    if len(clouds) > 1:
        return SeveralClouds(clouds, *arguments, **options)
    [cloud] = clouds.values()
    several = isinstance(options.get("instance_type"), Mapping)
    return SeveralTypes(cloud, *arguments, **options) if several else cloud(*arguments, **options)


def _by_region(each: Iterable[Mapping[str, list]]) -> dict[str, list]:
    found: dict[str, list] = {}
    for mapping in each:
        for region, items in mapping.items():
            found.setdefault(region, []).extend(items)
    return found


def _own(kind, cloud, given):
    if given is None or not isinstance(given, Mapping):
        raise refusal(f"lab_options[{cloud!r}] of the lab {kind}", given, 'options such as {"instance_type": ...}')
    if shared := sorted({"budget_usd", "yes"} & set(given)):
        raise ParameterError(f"lab_options[{cloud!r}] has {', '.join(shared)}; allowed: once, for all clouds.")
    return dict(given)


def _together(estimates: Sequence[Estimate]) -> Estimate:
    """The cost of all; hours are those of the cloud whose hosts run longest."""
    table = pd.concat([each.table for each in estimates], ignore_index=True)
    return Estimate(table, sum(each.hosts for each in estimates), max(each.hours for each in estimates))
