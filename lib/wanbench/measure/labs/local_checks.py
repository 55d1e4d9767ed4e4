"""Checks of the parameters of a local lab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wanbench.errors import ParameterError
from wanbench.measure.links import LinkSettings

MAX_COUNT = 254
"""Regions of a lab, and hosts of a region: each is one byte of an address."""


def checked_regions(regions: Sequence[str]) -> tuple[str, ...]:
    """The regions; ParameterError unless they are different names, no more than there are addresses."""
    if isinstance(regions, str) or not all(isinstance(region, str) and region for region in regions):
        raise ParameterError(f"regions is {regions!r}; allowed: a list of names.")
    if len(set(regions)) != len(regions):
        raise ParameterError(f"regions is {regions!r}; allowed: each name once.")
    if not 1 <= len(regions) <= MAX_COUNT:
        raise ParameterError(f"regions has {len(regions)} names; allowed: 1 to {MAX_COUNT}.")
    return tuple(regions)


def checked_links(
    links: Mapping[tuple[str, str], LinkSettings], regions: Sequence[str]
) -> dict[tuple[str, str], LinkSettings]:
    """The links; ParameterError unless each joins two of the regions."""
    for pair, settings in links.items():
        if not isinstance(settings, LinkSettings):
            raise ParameterError(f"link {pair!r} is {settings!r}; allowed: LinkSettings.")
        if not isinstance(pair, tuple) or len(pair) != 2 or pair[0] == pair[1] or set(pair) - set(regions):
            raise ParameterError(f"link is {pair!r}; allowed: two different regions of {', '.join(regions)}.")
    return dict(links)
