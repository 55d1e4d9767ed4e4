"""Combine labs of rented hosts: on several clouds, or of several instance types."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wanbench.checks import refusal
from wanbench.errors import ParameterError

from .lab import RentedLab
from .tenancy import Tenancy

# Assumed destination of all bytes if hosts are on several clouds: the internet, which is the more expensive case.
ELSEWHERE = "another cloud:"


def on_clouds(
    clouds: Mapping[str, Callable[..., RentedLab]], regions: Sequence[str], links: object = None, **options: Any
) -> Tenancy:
    """
    Make a lab on one or several clouds. On one cloud, `instance_type` may be a mapping; see `several_types`.

    `clouds` maps each cloud's name to its subclass of `RentedLab`. `options` are the parameters of that class for one
    cloud, and those of `several_clouds` for several.
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
    **options: Any,
) -> Tenancy:
    """
    Make a lab that combines one rented lab on each cloud. Each cloud charges for the bytes that its own hosts send.

    The options of one cloud are a mapping under the cloud's name; other options are for all clouds. For example, the
    `lab_options` of "aws+gcp" are ``{"aws": {"instance_type": "t3.small"}, "gcp": {"instance_type": "e2-small"},
    "budget_usd": 5}``. The clouds may differ in `hosts_per_region`. The budget is for all clouds together.

    Raise ParameterError if an option is not as described, if a cloud has none of the `regions`, or if
    `private_addresses` is set: no link joins the networks that a run makes on two clouds. Use existing `subnets` that a
    link joins instead.
    """
    kind = "+".join(clouds)
    of_cloud = {cloud: [name for name in regions if name.startswith(f"{cloud}:")] for cloud in clouds}
    rented = [name for names in of_cloud.values() for name in names]
    if sorted(rented) != sorted(regions) or not all(of_cloud.values()):
        raise refusal(f"regions of the lab {kind}", list(regions), "regions of these clouds, at least one of each")
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
            raise refusal("private_addresses", True, "false for several clouds, because no link joins their networks")
    return Tenancy(parts, kind, {part.kind: part.settings for part in parts}, budget_usd, yes)


def several_types(
    cloud: Callable[..., RentedLab],
    regions: Sequence[str],
    *,
    instance_type: Mapping[str, int],
    hosts_per_region: int = 1,
    budget_usd: float | None = None,
    yes: bool = False,
    **options: Any,
) -> Tenancy:
    """
    Make a lab on one cloud with hosts of several instance types in every region.

    `instance_type` maps each type to the number of such hosts in a region, at least `hosts_per_region` in all; the
    hosts of a region have the order of this mapping. The other parameters are those of `RentedLab`.
    """
    parts, number = [], 0
    for name, count in instance_type.items():
        part = cloud(regions, hosts_per_region=count, instance_type=name, **options)
        part.number_from(number)
        part.is_charged = not parts  # only the first part pays for the bytes that a plan sends
        number += count
        parts.append(part)
    if number < hosts_per_region:
        raise refusal("instance_type", dict(instance_type), f"at least {hosts_per_region} hosts in a region")
    for part in parts:
        part.alongside = [hosts for other in parts if other is not part for hosts in other.wanted.values()]
    settings = {**parts[0].settings, "instance_type": dict(instance_type)}
    return Tenancy(parts, parts[0].kind, settings, budget_usd, yes)


def _own(kind: str, cloud: str, given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise refusal(f"lab_options[{cloud!r}] of the lab {kind}", given, 'options such as {"instance_type": ...}')
    if shared := sorted({"budget_usd", "yes"} & set(given)):
        raise ParameterError(f"lab_options[{cloud!r}] has {', '.join(shared)}; allowed: only once, for all clouds.")
    return dict(given)
