"""Labs of rented hosts that are one lab: on several clouds at once, or of several instance types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence

from wanbench.checks import refusal
from wanbench.errors import ParameterError

from .lab import RentedLab
from .tenancy import Tenancy

# Assumed destination of all bytes if hosts are on several clouds: the internet, the more expensive case.
ELSEWHERE = "another cloud:"


def on_clouds(
    clouds: Mapping[str, Callable[..., RentedLab]], regions: Sequence[str], links: Mapping | None = None, **options
) -> Tenancy:
    """
    Make the lab on several clouds, or on one: of one instance type, or of several if `instance_type` is a mapping.

    `clouds` has a subclass of `RentedLab` for each cloud; `options` are its parameters.
    """
    if len(clouds) > 1:
        return several_clouds(clouds, regions, **options)
    [cloud] = clouds.values()
    several = isinstance(options.get("instance_type"), Mapping)
    return several_types(cloud, regions, **options) if several else cloud(regions, links, **options)


def several_clouds(
    clouds: Mapping[str, Callable[..., RentedLab]],
    regions: Sequence[str],
    *,
    seed: int = 0,
    budget_usd: float | None = None,
    yes: bool = False,
    **options,
) -> Tenancy:
    """
    Make one rented lab per cloud. Every cloud charges what its own hosts send.

    `lab_options` of "aws+gcp" are such as ``{"aws": {"instance_type": "t3.small"}, "gcp":
    {"instance_type": "e2-small"}, "budget_usd": 5}``: those of one cloud as a mapping under its name, which may have
    another `hosts_per_region`; others are for all. The budget is for all clouds together.

    ParameterError if one of these is not as described, if a cloud has none of the `regions`, or private addresses are
    asked for: the networks of a run are new, so nothing joins those of two clouds. Give `subnets` that a link joins
    already.
    """
    kind = "+".join(clouds)
    of_cloud = {cloud: [name for name in regions if name.startswith(f"{cloud}:")] for cloud in clouds}
    rented = [name for names in of_cloud.values() for name in names]
    if sorted(rented) != sorted(regions) or not all(of_cloud.values()):
        raise refusal(f"regions of the lab {kind}", list(regions), "regions of all these clouds alone")
    own = {cloud: _own(kind, cloud, options.pop(cloud, None)) for cloud in clouds}
    parts = []
    for cloud, names in of_cloud.items():
        given = options | own[cloud]
        try:
            inspect.signature(RentedLab).bind(names, **given)
        except TypeError as error:
            raise ParameterError(f"lab_options of {cloud} in the lab {kind!r}: {error}.") from None
        parts.append(clouds[cloud](names, **given))
    for part in parts:
        part.sends_to = ELSEWHERE
        if part.private_addresses:
            raise refusal("private_addresses", True, "false for several clouds, as nothing joins their networks")
    return Tenancy(parts, kind, {part.kind: part.settings for part in parts}, budget_usd, yes)


def several_types(
    cloud: Callable[..., RentedLab],
    regions: Sequence[str],
    *,
    instance_type: Mapping[str, int],
    hosts_per_region: int = 1,
    budget_usd: float | None = None,
    yes: bool = False,
    **options,
) -> Tenancy:
    """
    Make a lab with hosts of several instance types in every region of one cloud: those of the first type come first.

    `instance_type` says how many hosts of each type a region has; at least `hosts_per_region` in all. The other
    parameters are those of `RentedLab`.
    """
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
        part.alongside = [hosts for other in parts if other is not part for hosts in other.wanted.values()]
    settings = {**parts[0].settings, "instance_type": dict(instance_type)}
    return Tenancy(parts, parts[0].kind, settings, budget_usd, yes)


def _own(kind, cloud, given):
    if given is None or not isinstance(given, Mapping):
        raise refusal(f"lab_options[{cloud!r}] of the lab {kind}", given, 'options such as {"instance_type": ...}')
    if shared := sorted({"budget_usd", "yes"} & set(given)):
        raise ParameterError(f"lab_options[{cloud!r}] has {', '.join(shared)}; allowed: once, for all clouds.")
    return dict(given)
