"""What the parameters of a local lab may be: ParameterError, with what is allowed, for any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wanbench.errors import ParameterError
from wanbench.links import LinkSettings

MOST = 254
"""Regions of a lab, and hosts of a region, at the most: each is one byte of an address."""


def checked_regions(regions: Sequence[str]) -> tuple[str, ...]:
    """The regions, if they are names, each once, and no more than there are addresses for."""
    if isinstance(regions, str) or not all(isinstance(region, str) and region for region in regions):
        raise ParameterError(f"regions is {regions!r}; it must be a list of names.")
    if len(set(regions)) != len(regions):
        raise ParameterError(f"regions has a name twice: {', '.join(regions)}.")
    if not 1 <= len(regions) <= MOST:
        raise ParameterError(f"a local lab has 1 to {MOST} regions; given were {len(regions)}.")
    return tuple(regions)


def checked_links(
    links: Mapping[tuple[str, str], LinkSettings], regions: Sequence[str]
) -> dict[tuple[str, str], LinkSettings]:
    """The links, if each joins two of the regions."""
    for pair, settings in links.items():
        if not isinstance(settings, LinkSettings):
            raise ParameterError(f"the link {pair!r} is {settings!r}; it must be LinkSettings.")
        if not isinstance(pair, tuple) or len(pair) != 2 or pair[0] == pair[1] or set(pair) - set(regions):
            raise ParameterError(f"a link joins two of {', '.join(regions)}; given was {pair!r}.")
    return dict(links)


def checked_whole(name: str, value: object, least: int, most: int) -> int:
    """The value of a parameter, if it is a whole number from the least to the most."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ParameterError(f"{name} is {value!r}; allowed is a whole number from {least} to {most}.")
    return value
