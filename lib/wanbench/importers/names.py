"""
Which region a text means: codes, display names, zones, as the clouds and their pages write them.

Imports `regions`, `errors`. The names stand in `region_names.csv`, each with the page of the cloud that uses it;
codes come from the catalogue, zones from the rules that the clouds state.
"""

from __future__ import annotations

import csv
import difflib
import re
import unicodedata
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ..errors import ParameterError, RawDataError
from ..regions import CLOUDS, catalogue

FILE = Path(__file__).with_name("region_names.csv")
KINDS = ("display", "old", "short", "place", "area")
LONGEST = 200
"""A longer text is no name of a region."""

_COLUMNS = ["region", "name", "kind", "source"]
_RANKS = {"code": 0, "area": 0, "display": 1, "old": 1, "short": 2, "zone": 2, "place": 3}
_WORDS = {
    "aws": "aws",
    "amazon web services": "aws",
    "amazon": "aws",
    "gcp": "gcp",
    "google cloud platform": "gcp",
    "google cloud": "gcp",
    "google": "gcp",
    "microsoft azure": "azure",
    "microsoft": "azure",
    "azure": "azure",
    "ibm cloud": "ibm",
    "ibm": "ibm",
}
_CLOUD = re.compile(rf"({'|'.join(_WORDS)})[\s:/|_.\-–—]+(?=\S)", re.IGNORECASE)
_GEOGRAPHY = re.compile(
    r"\((US|Canada|Mexico|South America|Europe|Middle East|Africa|Asia Pacific)\)\s+(?=\S)", re.IGNORECASE
)
_BREAK = re.compile(r"\s*[()\[\]|/,;:]\s*|\s+[-–—]\s+|\s+")
_DIRECTIONS = {
    "north": "n", "south": "s", "east": "e", "west": "w", "central": "c", "northeast": "ne", "northwest": "nw",
    "southeast": "se", "southwest": "sw", "gov": "g",
}  # fmt: skip


class _Meaning(NamedTuple):
    region: str
    rank: int


def region_names() -> pd.DataFrame:
    """
    The names that clouds give their regions, besides codes and zones: region, name, kind, source.

    kind is "display" (its full name), "old" (one it had), "short" (as tables abbreviate it), "place" (where the
    cloud says it is) or "area" (a part of the world that several regions share, never enough by itself).
    """
    return pd.DataFrame(_rows(), columns=_COLUMNS)


def region_from(text: str, cloud: str | None = None) -> str:
    """
    The region that a text names, as "<cloud>:<code>".

    Known are the names of `regions`, codes ("us-east-1", "eastus"), zones and their ids ("us-east1-b",
    "use1-az1"), names as the clouds write them ("US East (N. Virginia)", "N. Virginia", "East US", "Iowa",
    "Dallas 10", and old ones as "EU (Ireland)"), two of these for one region ("Iowa (us-central1)"), and each
    with its cloud before it ("AWS us-east-1"). Case, spaces, dashes, brackets and accents do not matter; all
    else must be so exactly. What the spelling leaves open (dashes left out) is tried last: "us-east-1" is of
    AWS, "us-east1" of Google, "useast1" nobody can tell.

    Parameters
    ----------
    text : str
    cloud : "aws", "gcp", "azure" or "ibm", optional
        Only regions of this cloud are meant.

    Raises
    ------
    ParameterError
        If it is unknown (with near names), or could mean several regions (with all of them).

    Examples
    --------
    >>> region_from("US East (N. Virginia)"), region_from("asia-east1-b"), region_from("Canada Central", "azure")
    ('aws:us-east-1', 'gcp:asia-east1', 'azure:canadacentral')
    >>> region_from("Canada Central")
    Traceback (most recent call last):
        ...
    wanbench.errors.ParameterError: 'Canada Central' could be aws:ca-central-1 or azure:canadacentral; say which cloud.
    """
    if not isinstance(text, str):
        raise ParameterError(f"The name of a region must be text, not {text!r}.")
    check_cloud(cloud)
    found = candidates(text, cloud)
    if len(found) == 1:
        return found[0]
    if found:
        shown = found if len(found) <= 8 else [*found[:7], f"{len(found) - 7} more"]
        clouds = {name.partition(":")[0] for name in found}
        advice = "; say which cloud." if len(clouds) == len(found) else "."
        raise ParameterError(f"{_shown(text)} could be {' or '.join(shown)}{advice}")
    if apart := _apart(text, cloud):
        raise ParameterError(
            f"{_shown(text)} names two regions: {apart[0]!r} and {apart[1]!r} are not the same."
        )
    of = f" of {cloud}" if cloud else ""
    near = _near(text, cloud)
    hint = f"Near it: {', '.join(near)}." if near else "Known are codes and names as the cloud writes them."
    raise ParameterError(f"Unknown region {_shown(text)}{of}. {hint}")


def cloud_from(text: str) -> str | None:
    """
    The cloud that a text is the name of; None if it is none.

    >>> cloud_from("Google Cloud"), cloud_from("AWS"), cloud_from("us-east-1")
    ('gcp', 'aws', None)
    """
    return _WORDS.get(" ".join(text.lower().split())) if isinstance(text, str) else None


def check_cloud(cloud: str | None) -> None:
    """ParameterError unless it is None or one of `regions.CLOUDS`."""
    if cloud is not None and cloud not in CLOUDS:
        raise ParameterError(f"Unknown cloud {cloud!r}; known are {', '.join(CLOUDS)}.")


def candidates(text: str, cloud: str | None = None) -> list[str]:
    """All regions that a text may mean, by `region_from`'s rules: none if it is unknown, several if it is vague."""
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
        return []
    return list(_candidates(" ".join(text.split()), cloud))


@lru_cache(maxsize=8192)
def _candidates(text, cloud):
    found = _best(_meanings(text, cloud)) or _both(text, cloud)
    if found:
        return found
    if named := _CLOUD.match(text):
        said = _WORDS[named[1].lower()]
        return _candidates(text[named.end() :], said) if cloud in (None, said) else ()
    if area := _GEOGRAPHY.match(text):
        return _candidates(text[area.end() :], "azure") if cloud in (None, "azure") else ()
    return ()


def _best(meanings):
    """A code goes before all else; otherwise each cloud speaks with the name that is most its own."""
    ranks: dict[str, int] = {}
    for region, rank in meanings:
        cloud = region.partition(":")[0]
        ranks[cloud] = min(rank, ranks.get(cloud, rank))
    if 0 in ranks.values():
        ranks = {cloud: rank for cloud, rank in ranks.items() if rank == 0}
    return tuple(sorted({region for region, rank in meanings if ranks.get(region.partition(":")[0]) == rank}))


def _both(text, cloud):
    """The region that two names in one text have in common, as in "Iowa (us-central1)"."""
    for gap in _BREAK.finditer(text):
        left, right = text[: gap.start()], text[gap.end() :]
        common = {one.region for one in _meanings(left, cloud)}
        if common:
            common &= {one.region for one in _meanings(right, cloud)} or set(_both(right, cloud))
        if common:
            return tuple(sorted(common))
    return ()


def _apart(text, cloud):
    """The two names in a text that have no region in common."""
    for gap in _BREAK.finditer(text[:LONGEST]):
        names = text[: gap.start()].strip(), text[gap.end() :].strip(" ()[]")
        if all(_meanings(name, cloud) for name in names):
            return names
    return None


@lru_cache(maxsize=8192)
def _meanings(text, cloud) -> frozenset[_Meaning]:
    """What a text means as one name: as it is spelled or, if nothing is spelled so, without its dashes."""
    spelled = _spelled(text)
    named = _by_name()
    found = named.get(text.lower().strip(), set()) | named.get(spelled, set()) | _zones(spelled)
    found = found or _squeezed().get(spelled.replace("-", ""), set())
    return frozenset(one for one in found if cloud is None or one.region.startswith(f"{cloud}:"))


def _spelled(text):
    """Lower case without accents, every run of other than letters and digits as one dash."""
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return re.sub(r"[\W_]+", "-", plain.casefold()).strip("-")


def _zones(spelled):
    """Zones of regions: the clouds' codes with something after them, AWS's zone ids, IBM's "Dallas 1"."""
    found = set()
    for pattern, clouds in (
        (r"(.+\d)[a-z]", ("aws",)),
        (r"(.+\d)-[a-z]", ("gcp",)),
        (r"(.+)-[123]", ("ibm",)),
        (r"(.+)-[a-z]{3}\d\d-[a-z]", ("ibm",)),
    ):
        if match := re.fullmatch(pattern, spelled, re.ASCII):
            meant = _by_name().get(match[1], set())
            within = {one.region for one in meant if one.rank == 0 and one.region.startswith(clouds)}
            if pattern.endswith("[123]"):
                within |= {one.region for one in meant if one.rank == 2 and one.region.startswith(clouds)}
            found |= within
    if match := re.fullmatch(r"([a-z]+\d)(-az\d+)?", spelled, re.ASCII):
        found |= _zone_ids().get(match[1], set())
    return {_Meaning(region, _RANKS["zone"]) for region in found}


@cache
def _rows() -> list[tuple[str, str, str, str]]:
    try:
        with FILE.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        raise RawDataError(FILE, None, error, "a CSV file of names of regions") from error
    known = set(catalogue()["name"])
    if header != _COLUMNS:
        raise RawDataError(FILE, 1, ",".join(header), f"the columns {', '.join(_COLUMNS)}")
    for number, row in enumerate(rows, 2):
        if len(row) != 4 or row[0] not in known or row[2] not in KINDS or not row[1] or not row[3]:
            raise RawDataError(
                FILE, number, ",".join(row), "a region of the catalogue, name, kind and source"
            )
    return [tuple(row) for row in rows]


@cache
def _by_name() -> dict[str, set[_Meaning]]:
    found: dict[str, set[_Meaning]] = {}

    def add(name, region, kind):
        found.setdefault(name, set()).add(_Meaning(region, _RANKS[kind]))

    for region in catalogue()["name"]:
        add(region, region, "code")
        add(region.partition(":")[2], region, "code")
    metros = {name for region, name, kind, _ in _rows() if region.startswith("ibm:") and kind == "short"}
    for region, name, kind, _ in _rows():
        add(_spelled(name), region, kind)
        if kind == "place" and region.startswith("ibm:") and region[-2:].isdigit():
            number = int(region[-2:])
            if not (
                name in metros and number in (1, 2, 3)
            ):  # IBM's "London 2" is a zone, "London 02" the centre
                add(_spelled(f"{name} {number}"), region, "short")
    return found


@cache
def _squeezed() -> dict[str, set[_Meaning]]:
    found: dict[str, set[_Meaning]] = {}
    for name, meanings in _by_name().items():
        found.setdefault(_spelled(name).replace("-", ""), set()).update(meanings)
    return found


@cache
def _zone_ids() -> dict[str, set[str]]:
    """Of AWS, as its list of zone ids shows: us-east-1 has use1-az1, ap-northeast-1 has apne1-az1."""
    found: dict[str, set[str]] = {}
    for region in catalogue()["name"]:
        area, *words = region.removeprefix("aws:").split("-")
        if region.startswith("aws:") and all(word in _DIRECTIONS for word in words[:-1]):
            short = area + "".join(_DIRECTIONS[word] for word in words[:-1]) + words[-1]
            found.setdefault(short, set()).add(region)
    return found


def _shown(text):
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _near(text, cloud, most=4):
    if len(text) > LONGEST:
        return []
    named = _by_name()
    names = [
        name for name, of in named.items() if any(cloud in (None, one.region.split(":")[0]) for one in of)
    ]
    like = difflib.get_close_matches(_spelled(text), names, n=most, cutoff=0.7)
    regions = [one.region for name in like for one in sorted(named[name])]
    return list(dict.fromkeys(r for r in regions if cloud is None or r.startswith(f"{cloud}:")))[:most]
