"""
Labs: sets of hosts on which commands run.

`plan`, `experiments`, `measure` and notebooks may import it; it imports `errors`, `links` and `regions`.
Nothing outside this folder knows which kind of lab it is on.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from wanbench.errors import ParameterError
from wanbench.labs.local import LocalLab
from wanbench.links import LinkSettings

__all__ = ["LEAST_RTT_MS", "LocalLab", "geodesic_links", "matrix_links"]

LEAST_RTT_MS = 0.5
"""No pair of regions is given less than this: two data centres of one city are not on one switch."""


def geodesic_links(
    regions: Sequence[str],
    *,
    path_inflation: float = 1.5,
    extra_ms: float = 0.0,
    jitter_ms: float = 0.0,
    **settings: Any,
) -> dict[tuple[str, str], LinkSettings]:
    """
    Links between all regions whose delay follows from the distance.

    The round trip is that of light in fibre along the geodesic (`wanbench.regions.light_rtt_ms`), times
    `path_inflation`, plus `extra_ms`, and at least 0.5 ms; each direction takes half of it.

    Parameters
    ----------
    regions : sequence of str
        Names of the catalogue.
    path_inflation : float
        How much longer the path is than the geodesic, at least 1: no cable is shorter.
    extra_ms : float
        Round-trip time that every pair has on top, for equipment.
    jitter_ms : float
        Of each direction; never more than half of its delay.
    **settings
        The other fields of `LinkSettings`: `rate_bps`, `queue_bytes`, `loss`, `jitter_correlation_s`.

    Returns
    -------
    dict
        All ordered pairs of different regions to their `LinkSettings`.
    """
    from wanbench.regions import distance_km, light_rtt_ms

    _check_number("path_inflation", path_inflation, 1)
    _check_number("extra_ms", extra_ms, 0)
    rtt_ms = {
        pair: float(light_rtt_ms(distance_km(*pair))) * path_inflation + extra_ms
        for pair in combinations(regions, 2)
    }
    return matrix_links(rtt_ms, jitter_ms=jitter_ms, **settings)


def matrix_links(
    rtt_ms, *, jitter_ms: float = 0.0, least_rtt_ms: float = LEAST_RTT_MS, **settings: Any
) -> dict[tuple[str, str], LinkSettings]:
    """
    Links whose delay follows from round-trip times that the user supplies.

    Parameters
    ----------
    rtt_ms : mapping of (from, to) to float, or DataFrame
        Round-trip times; a table has the columns from_region, to_region and rtt_ms. A pair given in one
        direction only holds for both; each direction takes half of its own value.
    jitter_ms : float
        Of each direction; never more than half of its delay.
    least_rtt_ms : float
        Smaller values, such as 0, are raised to this.
    **settings
        The other fields of `LinkSettings`.

    Returns
    -------
    dict
        Ordered pairs to their `LinkSettings`.

    Examples
    --------
    >>> links = matrix_links({("a", "b"): 40.0}, rate_bps=1e8)
    >>> links["b", "a"].delay_ms
    20.0
    """
    if not isinstance(rtt_ms, Mapping):
        missing = [
            name
            for name in ("from_region", "to_region", "rtt_ms")
            if name not in getattr(rtt_ms, "columns", ())
        ]
        if missing:
            raise ParameterError(f"the RTT table lacks {', '.join(missing)}.")
        columns = (list(rtt_ms[name]) for name in ("from_region", "to_region", "rtt_ms"))
        table = {}
        for source, target, value in zip(*columns, strict=True):
            if (source, target) in table:
                raise ParameterError(f"the RTT table has the pair {source}, {target} twice.")
            table[source, target] = value
        rtt_ms = table
    links = {}
    both_ways = {**rtt_ms, **{pair[::-1]: rtt for pair, rtt in rtt_ms.items() if pair[::-1] not in rtt_ms}}
    for (source, target), value in both_ways.items():
        if source == target:
            raise ParameterError(f"{source} is paired with itself.")
        _check_number(f"rtt_ms of {source} to {target}", value, 0)
        delay_ms = max(float(value), least_rtt_ms) / 2
        links[source, target] = LinkSettings(delay_ms, jitter_ms=min(jitter_ms, delay_ms / 2), **settings)
    return links


def _check_number(name, value, least):
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not value >= least:
        raise ParameterError(f"{name} is {value!r}; it must be a number of at least {least}.")
