"""
Labs: sets of hosts on which commands run.

Code outside this folder works with every kind of lab. An installed package can add a kind of lab by an entry point: a
subclass of `base.Lab` (see `LABS`) or, for a new cloud, a subclass of `rented.RentedLab` (see `CLOUDS`).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import combinations
from types import ModuleType
from typing import Any

import pandas as pd

from wanbench.checks import check_columns, check_number
from wanbench.errors import ParameterError
from wanbench.extensions import extensions
from wanbench.measure.links import PATH_INFLATION, LinkSettings
from wanbench.regions import distance_km, light_rtt_ms

from .base import Lab
from .local import LocalLab

__all__ = ["CLOUDS", "LABS", "MIN_RTT_MS", "LocalLab", "geodesic_links", "matrix_links", "separate_links"]


def _rented(clouds: str, *arguments: Any, **options: Any) -> Lab:
    on_clouds = import_module(".rented.several", __name__).on_clouds
    return on_clouds({name: CLOUDS[name].lab_class for name in clouds.split("+")}, *arguments, **options)


# Modules of the clouds that rent out hosts, by name. Each has `lab_class` (a subclass of `rented.RentedLab`), `sweep`,
# and `unusable`, which returns why the account cannot be used from here.
CLOUDS: Mapping[str, ModuleType] = extensions(
    "wanbench.clouds", {name: f"wanbench.measure.labs.{name}" for name in ("aws", "gcp", "azure")}
)
# Every kind of lab by name ("aws+azure": hosts on both). Each takes regions and links, `hosts_per_region`, `sysctls`
# and `seed`, and options of its own.
LABS: Mapping[str, Callable[..., Lab]] = extensions(
    "wanbench.labs",
    {
        "local": LocalLab,
        "ssh": "wanbench.measure.labs.ssh:SshLab",
        **{
            "+".join(clouds): partial(_rented, "+".join(clouds))
            for number in range(1, len(CLOUDS) + 1)
            for clouds in combinations(sorted(CLOUDS), number)
        },
    },
)
MIN_RTT_MS = 0.5  # Minimum RTT of two regions: even two data centres in one city are not on the same switch.


def geodesic_links(
    regions: Sequence[str], *, path_inflation: float = PATH_INFLATION, jitter_ms: float = 0.0, **settings: Any
) -> dict[tuple[str, str], LinkSettings]:
    """
    Link all regions with delays that follow from their distances.

    The RTT is the round-trip time of light in fibre along the geodesic (`wanbench.regions.light_rtt_ms`), times
    `path_inflation` (at least 1, because no cable is shorter), and at least 0.5 ms. The delay of each direction is half
    of the RTT.

    Parameters
    ----------
    regions : sequence of str
        Names of regions in the catalogue.
    jitter_ms : float
        Jitter of each direction, at most half of the delay.
    **settings
        The other fields of `LinkSettings`: `rate_bps`, `queue_bytes`, `loss`, `jitter_correlation_s`.

    Returns
    -------
    dict
        The `LinkSettings` of all ordered pairs of different regions.
    """
    check_number("path_inflation", path_inflation, 1)
    rtt_ms = {pair: float(light_rtt_ms(distance_km(*pair))) * path_inflation for pair in combinations(regions, 2)}
    return matrix_links(rtt_ms, jitter_ms=jitter_ms, **settings)


def matrix_links(
    rtt_ms: Mapping[tuple[str, str], float] | pd.DataFrame,
    *,
    jitter_ms: float = 0.0,
    min_rtt_ms: float = MIN_RTT_MS,
    **settings: Any,
) -> dict[tuple[str, str], LinkSettings]:
    """
    Link regions with delays that follow from given round-trip times.

    Parameters
    ----------
    rtt_ms : mapping of (from, to) to float, or DataFrame
        Round-trip times; a table has the columns from_region, to_region and rtt_ms. The delay of each direction is half
        of the value for that direction. If only one direction of a pair has a value, it is used for both.
    jitter_ms : float
        Jitter of each direction; it is reduced to half of the delay where it is larger.
    min_rtt_ms : float
        Minimum round-trip time; it replaces smaller values, such as 0.
    **settings
        The other fields of `LinkSettings`.

    Examples
    --------
    >>> links = matrix_links({("a", "b"): 40.0}, rate_bps=1e8)
    >>> links["b", "a"].delay_ms
    20.0
    """
    if not isinstance(rtt_ms, Mapping):
        check_columns("rtt_ms", rtt_ms, ("from_region", "to_region", "rtt_ms"))
        pairs = list(zip(rtt_ms["from_region"], rtt_ms["to_region"], strict=True))
        if twice := [pair for pair in pairs if pairs.count(pair) > 1]:
            raise ParameterError(f"table rtt_ms has the pair {', '.join(twice[0])} twice.")
        rtt_ms = dict(zip(pairs, rtt_ms["rtt_ms"], strict=True))
    links = {}
    both_ways = {**rtt_ms, **{pair[::-1]: rtt for pair, rtt in rtt_ms.items() if pair[::-1] not in rtt_ms}}
    for (source, target), value in both_ways.items():
        if source == target:
            raise ParameterError(f"rtt_ms has the pair {source}, {target}; allowed: two different regions.")
        check_number(f"rtt_ms of {source} to {target}", value, 0)
        delay_ms = max(float(value), min_rtt_ms) / 2
        links[source, target] = LinkSettings(delay_ms, jitter_ms=min(jitter_ms, delay_ms / 2), **settings)
    return links


def separate_links(settings: Sequence[LinkSettings]) -> dict[tuple[str, str], LinkSettings]:
    """
    Make one link per setting, each between two invented regions, with equal settings in both directions.

    Examples
    --------
    >>> sorted(separate_links([LinkSettings(10), LinkSettings(20)]))[:2]
    [('lab:a1', 'lab:b1'), ('lab:a2', 'lab:b2')]
    """
    links = {}
    for number, link in enumerate(settings, start=1):
        ends = f"lab:a{number}", f"lab:b{number}"
        links |= {ends: link, ends[::-1]: link}
    return links
