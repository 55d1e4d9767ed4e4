"""
Find the region that a string names, by code, display name or zone, as clouds write them.

`region_names.csv` has the names, and for each the cloud's page that uses it. Codes come from the catalogue; names of
zones follow the rules of each cloud.
"""

import difflib
import re
import unicodedata
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from wanbench.checks import check_choice, refusal
from wanbench.errors import ParameterError
from wanbench.regions import CLOUDS, catalogue

FILE = Path(__file__).with_name("region_names.csv")
KINDS = ("display", "old", "short", "place", "area")
# The form of our region names, also for clouds that are not in the catalogue.
REGION = re.compile(r"[a-z0-9]+:[a-z0-9]+(?:[-_.][a-z0-9]+)*")
MAX_SUGGESTIONS = 4  # Similar names that an error lists: more would hide the message.
MAX_LENGTH = 200  # A longer text is not the name of a region.
AS_WRITTEN = "codes and names as the cloud writes them"
MAX_LISTED = 8  # Regions that an error message lists.

_RANKS = {"code": 0, "area": 0, "display": 1, "old": 1, "short": 2, "zone": 2, "place": 3}
_CLOUD_NAMES = {alias: name for name, cloud in CLOUDS.items() for alias in (name, cloud.name.lower(), *cloud.aliases)}
_CLOUD = re.compile(rf"({'|'.join(sorted(_CLOUD_NAMES, key=len, reverse=True))})[\s:/|_.\-–—]+(?=\S)", re.IGNORECASE)
_GEOGRAPHY = re.compile(r"(?i)\((US|Canada|Mexico|South America|Europe|Middle East|Africa|Asia Pacific)\)\s+(?=\S)")
_BREAK = re.compile(r"\s*[()\[\]|/,;:]\s*|\s+[-–—]\s+|\s+")


class _Meaning(NamedTuple):
    region: str
    rank: int


def region_names() -> pd.DataFrame:
    """
    Return the names of regions other than codes and zones, in the columns region, name, kind and source.

    kind is "display" (full name), "old" (former name), "short" (abbreviation in tables), "place" (location, according
    to the cloud) or "area" (a part of the world with several regions, which names no single region).
    """
    return pd.read_csv(FILE, dtype="str", keep_default_na=False)


def region_from(text: str, cloud: str | None = None) -> str:
    """
    Return the region that a string names, as "<cloud>:<code>".

    The text can be a name of the catalogue, a code ("us-east-1", "eastus"), a zone ("us-east1-b"),
    a name as clouds write it ("US East (N. Virginia)", "N. Virginia", "East US", "Iowa", "Dallas 10", and
    former names such as "EU (Ireland)"), two names of one region ("Iowa (us-central1)"), or any of these after the name
    of the cloud ("AWS us-east-1"). Case, spaces, dashes, brackets and accents do not matter; everything else must
    match. Dashes are ignored only if nothing else matches: "us-east-1" belongs to AWS and "us-east1" to Google, but
    "useast1" is ambiguous.

    With `cloud` ("aws", "gcp", "azure" or "ibm"), only this cloud's regions are considered. Raise ParameterError if no
    region has the name (the error lists similar names), or if several have it (the error lists these regions).

    >>> region_from("US East (N. Virginia)"), region_from("asia-east1-b"), region_from("Canada Central", "azure")
    ('aws:us-east-1', 'gcp:asia-east1', 'azure:canadacentral')
    >>> region_from("Canada Central")
    Traceback (most recent call last):
        ...
    wanbench.errors.ParameterError: region is 'Canada Central': aws:ca-central-1 or azure:canadacentral; name the cloud.
    """
    if not isinstance(text, str):
        raise refusal("region", text, "text that names a region")
    check_choice("cloud", cloud, CLOUDS, optional=True)
    regions = candidates(text, cloud)
    if len(regions) == 1:
        return regions[0]
    if regions:
        more = [f"{len(regions) - MAX_LISTED + 1} more"] if len(regions) > MAX_LISTED else []
        listed = [*regions[: MAX_LISTED - 1], *more] if more else regions
        clouds = {name.partition(":")[0] for name in regions}
        advice = "; name the cloud." if len(clouds) == len(regions) else "."
        raise ParameterError(f"region is {_shortened(text)}: {' or '.join(listed)}{advice}")
    its_cloud = f" of {cloud}" if cloud else ""
    similar = _similar(text, cloud)
    hint = f"similar{its_cloud}: {', '.join(similar)}" if similar else f"allowed{its_cloud}: {AS_WRITTEN}"
    raise ParameterError(f"region is {_shortened(text)}, which is unknown; {hint}.")


def candidates(text: str, cloud: str | None = None) -> list[str]:
    """Return all regions that a string can mean according to the rules of `region_from`."""
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_LENGTH:
        return []
    return list(_candidates(" ".join(text.split()), cloud))


@lru_cache(maxsize=8192)
def _candidates(text: str, cloud: str | None) -> tuple[str, ...]:
    regions = _best(_meanings(text, cloud)) or _both(text, cloud)
    if regions:
        return regions
    if prefix := _CLOUD.match(text):
        named = _CLOUD_NAMES[prefix[1].lower()]
        return _candidates(text[prefix.end() :], named) if cloud in (None, named) else ()
    if area := _GEOGRAPHY.match(text):
        return _candidates(text[area.end() :], "azure") if cloud in (None, "azure") else ()
    return ()


def _best(meanings: frozenset[_Meaning]) -> tuple[str, ...]:
    """Return the regions with the best kind of name: a code if there is one, or else each cloud's most formal name."""
    ranks: dict[str, int] = {}
    for region, rank in meanings:
        cloud = region.partition(":")[0]
        ranks[cloud] = min(rank, ranks[cloud]) if cloud in ranks else rank
    if 0 in ranks.values():
        ranks = {cloud: rank for cloud, rank in ranks.items() if rank == 0}
    return tuple(sorted({region for region, rank in meanings if ranks.get(region.partition(":")[0]) == rank}))


def _both(text: str, cloud: str | None) -> tuple[str, ...]:
    """Return the regions that have both names in a string, such as "Iowa (us-central1)"."""
    for gap in _BREAK.finditer(text):
        left, right = text[: gap.start()], text[gap.end() :]
        common = {one.region for one in _meanings(left, cloud)}
        if common:
            common &= {one.region for one in _meanings(right, cloud)} or set(_both(right, cloud))
        if common:
            return tuple(sorted(common))
    return ()


@lru_cache(maxsize=8192)
def _meanings(text: str, cloud: str | None) -> frozenset[_Meaning]:
    """Return the meanings of a string as a single name: as written or, if there are none, with dashes ignored."""
    spelled = _spelled(text)
    named = _by_name()
    meanings = named.get(text.lower().strip(), set()) | named.get(spelled, set()) | _zones(spelled)
    meanings = meanings or _without_dashes().get(spelled.replace("-", ""), set())
    return frozenset(one for one in meanings if cloud is None or one.region.startswith(f"{cloud}:"))


def _spelled(text: str) -> str:
    """Return a string in lower case without accents, with dashes instead of spaces and signs."""
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return re.sub(r"[\W_]+", "-", plain.casefold()).strip("-")


def _zones(spelled: str) -> set[_Meaning]:
    """Return the regions of a zone: a code with a suffix, or a name of IBM such as "Dallas 1"."""
    regions = set()
    for pattern, clouds in (
        (r"(.+\d)[a-z]", ("aws",)),
        (r"(.+\d)-[a-z]", ("gcp",)),
        (r"(.+)-[123]", ("ibm",)),
        (r"(.+)-[a-z]{3}\d\d-[a-z]", ("ibm",)),
    ):
        if match := re.fullmatch(pattern, spelled, re.ASCII):
            meant = _by_name().get(match[1], set())
            ranks = (0, 2) if pattern.endswith("[123]") else (0,)
            regions |= {one.region for one in meant if one.rank in ranks and one.region.startswith(clouds)}
    return {_Meaning(region, _RANKS["zone"]) for region in regions}


@cache
def _by_name() -> dict[str, set[_Meaning]]:
    meanings: dict[str, set[_Meaning]] = {}

    def add(name: str, region: str, kind: str) -> None:
        meanings.setdefault(name, set()).add(_Meaning(region, _RANKS[kind]))

    for region in catalogue()["name"]:
        add(region, region, "code")
        add(region.partition(":")[2], region, "code")
    rows = list(region_names().itertuples(index=False, name=None))
    metros = {name for region, name, kind, _ in rows if region.startswith("ibm:") and kind == "short"}
    for region, name, kind, _ in rows:
        add(_spelled(name), region, kind)
        if kind == "place" and region.startswith("ibm:") and region[-2:].isdigit():
            number = int(region[-2:])
            if not (name in metros and number in (1, 2, 3)):  # "London 2" is a zone, "London 02" a data centre
                add(_spelled(f"{name} {number}"), region, "short")
    return meanings


@cache
def _without_dashes() -> dict[str, set[_Meaning]]:
    squeezed: dict[str, set[_Meaning]] = {}
    for name, meanings in _by_name().items():
        squeezed.setdefault(_spelled(name).replace("-", ""), set()).update(meanings)
    return squeezed


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _similar(text: str, cloud: str | None) -> list[str]:
    if len(text) > MAX_LENGTH:
        return []
    named = _by_name()
    own = f"{cloud}:" if cloud else ""
    names = [name for name, meanings in named.items() if any(one.region.startswith(own) for one in meanings)]
    like = difflib.get_close_matches(_spelled(text), names, n=MAX_SUGGESTIONS, cutoff=0.7)
    regions = dict.fromkeys(one.region for name in like for one in sorted(named[name]))
    return [region for region in regions if region.startswith(own)][:MAX_SUGGESTIONS]
