"""
The catalogue of public cloud regions, and distances between them. Imports `errors`; anything may import it.

The catalogue (`regions.csv`) holds the regions that AWS, Google Cloud and Azure had opened by October 2026:
the commercial ones, those for China and for the government of the United States, the AWS European Sovereign
Cloud, and those that Azure opens on request. Left out are isolated partitions (aws-iso*), test regions (Azure
EUAP and STG), regions announced but not open, and retired ones. Of IBM Cloud it holds the regions, and the
single data centres ("ibm:dal10"), also closed ones, because published latencies name them. The clouds name a
city, a state or a country, seldom a site: `precision_km` says how far the data centres may lie from the point
given, `source` why that point was taken.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
from geopy.distance import geodesic

from .errors import ParameterError, RawDataError

CLOUDS = ("aws", "gcp", "azure", "ibm")
SPEED_OF_LIGHT_KM_PER_S = 299_792.458  # in vacuum, exact by definition of the metre
FIBRE_INDEX = 1.468  # group index of standard single-mode fibre (ITU-T G.652) at 1550 nm
LIGHT_RTT_MS_PER_KM = 2 * FIBRE_INDEX / SPEED_OF_LIGHT_KM_PER_S * 1000
LIGHT_KM_PER_MS = SPEED_OF_LIGHT_KM_PER_S / 1000
PATH_INFLATION = 1.5  # of the emulated links, if nothing else is asked for: near the median of measured paths

_FILE = Path(__file__).with_name("regions.csv")
_TEXTS = ("cloud", "code", "display_name", "city", "country", "source")
_NUMBERS = {"latitude_deg": (-90.0, 90.0), "longitude_deg": (-180.0, 180.0), "precision_km": (1.0, 2000.0)}


@dataclass(frozen=True)
class Region:
    """
    One public region of a cloud (at IBM also one data centre).

    Attributes
    ----------
    name : str
        "<cloud>:<code>", as in "aws:eu-west-1".
    cloud, code : str
        "aws", "gcp", "azure" or "ibm", and the region's own name there.
    city, country : str
        The place whose coordinates stand here; the country or territory it lies in.
    latitude_deg, longitude_deg : float
        WGS-84; north and east are positive.
    precision_km : float
        How far the data centres may lie from that point.
    source : str
        Where the point comes from, and what the cloud itself says about the place.
    display_name : str
        The name as AWS, Azure and IBM write it, the place as Google does: "Europe (Ireland)", "West Europe",
        "Dallas (us-south)", "Hamina, Finland".
    """

    name: str
    cloud: str
    code: str
    city: str
    country: str
    latitude_deg: float
    longitude_deg: float
    precision_km: float
    source: str
    display_name: str


_COLUMNS = [field.name for field in fields(Region)]


def load(path) -> pd.DataFrame:
    """
    A file of regions, one row each, columns as the attributes of `Region`.

    The file is CSV with a header and a line per region; `name` is not in it, it is made of cloud and code.
    RawDataError names the line of a text that is empty or padded, a number that is none or out of range, an
    unknown cloud, and a region given twice.
    """
    expected = [name for name in _COLUMNS if name != "name"]
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8", skip_blank_lines=False)
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise RawDataError(path, None, f"{type(error).__name__}: {error}", "a CSV file of regions") from error
    if not isinstance(frame.index, pd.RangeIndex):
        raise RawDataError(
            path, None, "lines with more fields", "as many fields in each line as in the header"
        )
    if sorted(frame.columns) != sorted(expected):
        raise RawDataError(path, 1, ",".join(frame.columns), f"the columns {', '.join(expected)}")

    frame = frame.fillna("")

    def refuse(bad, column: str, allowed: str) -> None:
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise RawDataError(path, row + 2, str(frame[column].iloc[row]), f"{column}: {allowed}")

    for column in _TEXTS:
        refuse(
            (frame[column] == "") | (frame[column].str.strip() != frame[column]), column, "text, not padded"
        )
    refuse(~frame["cloud"].isin(CLOUDS), "cloud", " or ".join(CLOUDS))
    refuse(~frame["code"].str.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*"), "code", "lower-case words joined by -")
    numbers = {}
    for column, (least, most) in _NUMBERS.items():
        numbers[column] = pd.to_numeric(frame[column], errors="coerce").astype("float64")
        refuse(~numbers[column].between(least, most), column, f"a number from {least:g} to {most:g}")
    names = frame["cloud"] + ":" + frame["code"]
    refuse(names.duplicated(), "code", "a region not given before")
    return frame.assign(name=names, **numbers)[_COLUMNS]


@lru_cache(maxsize=1)
def _regions() -> dict[str, Region]:
    return {row["name"]: Region(**row) for row in load(_FILE).to_dict("records")}


def catalogue() -> pd.DataFrame:
    """
    All regions, as the table `regions`: the attributes of `Region` but the display name, each a column.

    >>> sorted(catalogue()["cloud"].unique())
    ['aws', 'azure', 'gcp', 'ibm']
    """
    return pd.DataFrame(_regions().values(), columns=_COLUMNS).drop(columns="display_name")


def select(clouds: Iterable[str] | None = None, names: Iterable[str] | None = None) -> pd.DataFrame:
    """
    The rows of the catalogue that belong to these clouds and bear these names; None does not restrict.

    Given names come in the order given, otherwise in that of the catalogue. ParameterError for an unknown
    cloud or region, a name given twice, and a single text in place of several.

    >>> select(clouds=["gcp"], names=["gcp:us-east1", "aws:eu-west-1"])["city"].tolist()
    ['Moncks Corner']
    """
    frame = catalogue()
    if names is not None:
        frame = frame.set_index("name", drop=False).loc[_known(names)].reset_index(drop=True)
    if clouds is not None:
        clouds = _several(clouds, "clouds")
        unknown = [str(cloud) for cloud in clouds if cloud not in CLOUDS]
        if unknown:
            raise ParameterError(f"Unknown cloud {', '.join(unknown)}; known are {', '.join(CLOUDS)}.")
        frame = frame[frame["cloud"].isin(clouds)].reset_index(drop=True)
    return frame


def region(name: str) -> Region:
    """
    The region of this name. ParameterError for an unknown one names those that come near.

    >>> region("gcp:europe-west1").city
    'Saint-Ghislain'
    """
    known = _regions()
    if isinstance(name, str) and name in known:
        return known[name]
    near = _near(name, known) if isinstance(name, str) else []
    hint = f"Near it: {', '.join(near)}." if near else "A name is <cloud>:<code>, as in aws:eu-west-1."
    raise ParameterError(f"Unknown region {name!r} (the catalogue has {len(known)}). {hint}")


def _near(name: str, known: Iterable[str], most: int = 4) -> list[str]:
    """Names near to a wrong one: the same code at any cloud, the region of a zone, then the most alike."""
    asked = name.strip().lower().replace("_", "-")
    code = asked.partition(":")[2] or asked
    same = [
        other
        for other in known
        if code in (other.partition(":")[2], other.partition(":")[2].replace("-", ""))
    ]
    zone = [other for other in known if asked.startswith(other) and len(asked) - len(other) <= 2]
    like = difflib.get_close_matches(asked, known, n=most, cutoff=0.6)
    codes = {other.partition(":")[2]: other for other in known}
    like += [codes[match] for match in difflib.get_close_matches(code, codes, n=most, cutoff=0.6)]
    return list(dict.fromkeys(same + zone + like))[:most]


def _several(values: Iterable[str], what: str) -> list[str]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError(f"{what} must be several texts, as in a list, not {values!r}.")
    return list(values)


def _known(names: Iterable[str]) -> list[str]:
    """The names as a list, each in the catalogue and given once."""
    names = [region(name).name for name in _several(names, "names")]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ParameterError(f"Region given more than once: {', '.join(twice)}.")
    return names


def _geodesic_km(a: str, b: str) -> float:
    points = [(one.latitude_deg, one.longitude_deg) for one in (region(a), region(b))]
    return _between_km(*sorted(points))


@cache
def _between_km(point: tuple[float, float], other: tuple[float, float]) -> float:
    """Many regions share the point of a city, so points are remembered, not names."""
    return geodesic(point, other, ellipsoid="WGS-84").km


def distance_km(a: str, b: str) -> float:
    """
    Length in km of the shortest path over the WGS-84 ellipsoid between two regions, by name.

    The same in both directions; as sure as the precision of its two ends. Computed by geopy after Karney
    (2013), Algorithms for geodesics, https://doi.org/10.1007/s00190-012-0578-z.

    >>> round(distance_km("aws:eu-west-1", "gcp:us-east4"))
    5475
    """
    return _geodesic_km(*sorted((region(a).name, region(b).name)))


def light_rtt_ms(distance_km):
    """
    Round-trip time in ms of light in fibre over a distance in km: 2 d n / c, n = 1.468, c = 299792.458 km/s.

    The floor under any RTT measured through fibre: no cable is shorter than the geodesic. Takes a number, an
    array or a Series, and returns the like; what is not known (NaN) stays so. ParameterError for a
    negative or infinite distance.

    >>> round(light_rtt_ms(1000), 4)
    9.7934
    """
    values = np.asarray(distance_km, dtype="float64")
    bad = values[(values < 0) | np.isinf(values)]
    if bad.size:
        raise ParameterError(f"A distance must be finite and at least 0 km, not {bad.flat[0]:g}.")
    if isinstance(distance_km, pd.Series):
        return distance_km.astype("float64") * LIGHT_RTT_MS_PER_KM
    result = values * LIGHT_RTT_MS_PER_KM
    return float(result) if values.ndim == 0 else result


def pair_distances(names: Iterable[str]) -> pd.DataFrame:
    """
    Every ordered pair of these regions, none with itself: from_region, to_region, distance_km, light_rtt_ms.

    Pairs come in the order of the names, n (n - 1) rows. ParameterError as `select`.

    >>> pair_distances(["aws:eu-west-1", "gcp:us-east4"])["from_region"].tolist()
    ['aws:eu-west-1', 'gcp:us-east4']
    """
    pairs = pd.DataFrame(permutations(_known(names), 2), columns=["from_region", "to_region"], dtype="str")
    distances = [_geodesic_km(min(pair), max(pair)) for pair in pairs.itertuples(index=False)]
    pairs["distance_km"] = np.array(distances, dtype="float64")
    pairs["light_rtt_ms"] = light_rtt_ms(pairs["distance_km"])
    return pairs
