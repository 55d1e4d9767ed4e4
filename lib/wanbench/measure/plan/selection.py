"""Select the ordered pairs of regions to test."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from wanbench.checks import refusal
from wanbench.errors import ParameterError
from wanbench.regions import catalogue, distance_km

Pair = tuple[str, str]
_PLANNED = ("aws", "azure", "gcp")
MAX_NAME = 80
"""Characters of a region's name: the name of a raw file has two of them, 90 others, and at most 255 in all."""
_CATALOGUED = re.compile(r"[a-z][a-z0-9]*:[a-z0-9]+(-[a-z0-9]+)*")
_IN_FILE_NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")


def cloud(region: str) -> str:
    """The part of a region's name before the colon."""
    return region.partition(":")[0]


def check_region(name: str) -> str:
    """
    Return the name if it has the form "<cloud>:<code>", which is also safe in file names.

    Examples
    --------
    >>> check_region("aws:eu-west-1")
    'aws:eu-west-1'
    """
    return _checked(name, _CATALOGUED, "'<cloud>:<code>' in lower case, such as 'aws:eu-west-1'")


def check_any_region(name: str) -> str:
    """Return the name of a region, in or out of the catalogue, if raw files can be named after it."""
    return _checked(name, _IN_FILE_NAMES, "letters, digits, '.', '_', ':' and '-', the first a letter or digit")


def _checked(name, pattern, allowed):
    if not isinstance(name, str) or len(name) > MAX_NAME or not pattern.fullmatch(name):
        raise refusal("region", name, f"{allowed}, at most {MAX_NAME} characters")
    return name


def pair(given: str | Sequence[str]) -> Pair:
    """
    An ordered pair from "from->to" or from a sequence of two region names.

    Examples
    --------
    >>> pair("aws:eu-west-1->gcp:us-east1")
    ('aws:eu-west-1', 'gcp:us-east1')
    """
    ends = [end.strip() for end in given.split("->")] if isinstance(given, str) else list(given)
    if len(ends) != 2:
        raise ParameterError(f"pair is {given!r}; allowed: two regions, such as 'aws:eu-west-1->gcp:us-east1'.")
    from_region, to_region = map(check_region, ends)
    if from_region == to_region:
        raise ParameterError(f"pair is {given!r}; allowed: two different regions.")
    return from_region, to_region


def select_pairs(
    *,
    pairs: Iterable | None = None,
    regions: Iterable[str] | None = None,
    clouds: str | Iterable[str] | None = None,
    cloud_pairs: Iterable[str] | None = None,
    min_distance_km: float | None = None,
    max_distance_km: float | None = None,
    max_regions: int | None = None,
    seed: int = 0,
) -> list[Pair]:
    """
    The ordered pairs that pass all given restrictions; by default all pairs of all catalogued regions of AWS, Azure and
    Google Cloud (those of IBM Cloud, known from others' publications, must be named).

    Parameters
    ----------
    pairs : pairs or "from->to" texts, optional
        Exactly these are the candidates.
    regions : region names, optional
        The candidates are all ordered pairs of these (or those of `pairs` that lie among them).
    clouds : cloud or clouds, optional
        Both regions belong to these.
    cloud_pairs : texts such as "gcp->aws", optional
        The pair leads from the first cloud to the second; "gcp->gcp" lies within one.
    min_distance_km, max_distance_km : float, optional
        Limits of the geodesic distance, both allowed.
    max_regions : int, optional
        At most this many regions take part. The clouds take turns, in an order shuffled by `seed`; each draws
        at random among its regions, first among regions that form a pair with one already drawn.
    seed : int
        For `max_regions`.

    Raises
    ------
    ParameterError
        For a malformed or unknown value, and when nothing is left, saying after which restriction.
    """
    found = _candidates(pairs, regions)
    left = [f"{len(found)} candidate pairs"]

    def keep(description, allowed):
        nonlocal found
        found = [p for p in found if allowed(p)]
        left.append(f"{len(found)} after {description}")

    if clouds is not None:
        wanted = {clouds} if isinstance(clouds, str) else set(clouds)
        _check_clouds(wanted, found)
        keep(f"clouds {', '.join(sorted(wanted))}", lambda p: {cloud(p[0]), cloud(p[1])} <= wanted)
    if cloud_pairs is not None:
        directed = {_cloud_pair(text) for text in cloud_pairs}
        _check_clouds({name for ends in directed for name in ends}, _candidates(pairs, regions))
        shown = ", ".join("->".join(ends) for ends in sorted(directed))
        keep(f"cloud pairs {shown}", lambda p: (cloud(p[0]), cloud(p[1])) in directed)
    if min_distance_km is not None or max_distance_km is not None:
        low_km, high_km = _distances(min_distance_km, max_distance_km)
        keep(f"distance {low_km:g} to {high_km:g} km", lambda p: low_km <= distance_km(*p) <= high_km)
    if max_regions is not None:
        if not isinstance(max_regions, int) or isinstance(max_regions, bool) or max_regions < 2:
            raise ParameterError(f"max_regions is {max_regions!r}; allowed: 2 or more, as a pair needs 2.")
        drawn = _draw_regions(found, max_regions, seed)
        keep(f"drawing {max_regions} regions", lambda p: p[0] in drawn and p[1] in drawn)
    if not found:
        raise ParameterError(f"No pair is left to test: {'; '.join(left)}.")
    return found


def tests_done(table: pd.DataFrame | None) -> Counter[Pair]:
    """
    Number of measurements of each pair, from a table of tests (`from_region`, `to_region`, and `outcome`, if present:
    only "done" counts).
    """
    if table is None:
        return Counter()
    absent = {"from_region", "to_region"} - set(table.columns)
    if absent:
        raise ParameterError(
            f"The table of tests done lacks {', '.join(sorted(absent))}; it has {list(table.columns)}."
        )
    if "outcome" in table.columns:
        table = table[table["outcome"] == "done"]
    return Counter(zip(table["from_region"], table["to_region"], strict=True))


def expected_rtts(pairs: Sequence[Pair], rtt_ms: Mapping[Pair, float] | None, light_rtt_ms) -> dict[Pair, float]:
    """The expected RTT of each pair: from `rtt_ms` (either direction), or else from `light_rtt_ms(pair)`."""
    if rtt_ms is None:
        return {p: float(light_rtt_ms(p)) for p in pairs}
    out = {}
    for p in pairs:
        value = rtt_ms.get(p, rtt_ms.get(p[::-1]))
        if value is None or not value >= 0 or value == float("inf"):
            raise ParameterError(f"rtt_ms of {p[0]}->{p[1]} is {value!r}; it must be a number of at least 0.")
        out[p] = float(value)
    return out


def _candidates(pairs, regions):
    if regions is not None:
        regions = [regions] if isinstance(regions, str) else list(regions)
        known = sorted({check_region(name) for name in regions})
    if pairs is None:
        if regions is None:
            known = sorted(name for name in catalogue()["name"] if cloud(name) in _PLANNED)
        return [(a, b) for a in known for b in known if a != b]
    explicit = [pair(given) for given in ([pairs] if isinstance(pairs, str) else pairs)]
    twice = [f"{a}->{b}" for (a, b), count in Counter(explicit).items() if count > 1]
    if twice:
        raise ParameterError(f"Given more than once: {', '.join(sorted(twice))}.")
    if regions is None:
        return sorted(explicit)
    return sorted(p for p in explicit if p[0] in known and p[1] in known)


def _check_clouds(wanted, pairs):
    known = {cloud(region) for p in pairs for region in p}
    if unknown := wanted - known:
        raise ParameterError(
            f"No region of {', '.join(map(repr, sorted(unknown)))}; the clouds here are {', '.join(sorted(known))}."
        )


def _cloud_pair(text):
    ends = tuple(end.strip() for end in text.split("->")) if isinstance(text, str) else tuple(text)
    if len(ends) != 2 or not all(ends):
        raise ParameterError(f"cloud pair is {text!r}; allowed: two clouds, such as 'gcp->aws'.")
    return ends


def _distances(low, high):
    low = 0.0 if low is None else low
    high = float("inf") if high is None else high
    if not 0 <= low <= high:
        raise ParameterError(
            f"distance_km is {low!r} to {high!r}; allowed: from 0, the second no smaller than the first."
        )
    return low, high


def _draw_regions(pairs, most, seed):
    chance = random.Random(seed)
    neighbours: dict[str, set[str]] = {}
    for a, b in pairs:
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
    waiting: dict[str, list[str]] = {}
    for region in sorted(neighbours):
        waiting.setdefault(cloud(region), []).append(region)
    turns = sorted(waiting)
    chance.shuffle(turns)
    drawn: set[str] = set()
    while len(drawn) < most and waiting:
        for name in turns:
            if len(drawn) == most or name not in waiting:
                continue
            joined = [region for region in waiting[name] if neighbours[region] & drawn]
            region = chance.choice(joined or waiting[name])
            drawn.add(region)
            waiting[name].remove(region)
            if not waiting[name]:
                del waiting[name]
    return drawn
