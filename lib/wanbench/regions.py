"""
The catalogue of public cloud regions, and the distances between them.

The catalogue (`regions.csv`) holds the regions that AWS, Google Cloud and Azure had opened by October 2026:
commercial, Chinese, United States government and AWS European Sovereign Cloud regions, and regions that Azure opens on
request. It omits isolated partitions (aws-iso*), test regions (Azure EUAP and STG), regions announced but not open,
and retired regions. For IBM Cloud it holds the regions and also single data centres ("ibm:dal10"), open or closed,
because published latencies name them. Clouds publish a city, a state or a country, seldom a site. Column `precision_km`
is the maximum distance from the given coordinates to the data centres; `source` explains the choice of coordinates.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .checks import check_choice, check_columns, refusal
from .errors import ParameterError

SPEED_OF_LIGHT_KM_PER_S = 299_792.458  # in vacuum, exact by definition of the metre
FIBRE_INDEX = 1.468  # group index of standard single-mode fibre (ITU-T G.652) at 1550 nm
LIGHT_RTT_MS_PER_KM = 2 * FIBRE_INDEX / SPEED_OF_LIGHT_KM_PER_S * 1000
LIGHT_KM_PER_MS = SPEED_OF_LIGHT_KM_PER_S / 1000
MAX_SUGGESTIONS = 4  # similar names in an error: more would hide the message


@dataclass(frozen=True)
class Cloud:
    """A cloud's usual name, its colour in all figures, and its other names in lower case."""

    name: str
    colour: str
    aliases: tuple[str, ...] = ()


CLOUDS = {
    "aws": Cloud("AWS", "#C44E00", ("amazon web services", "amazon")),
    "gcp": Cloud("Google Cloud", "#009E73", ("google cloud platform", "google")),
    "azure": Cloud("Azure", "#0072B2", ("microsoft azure", "microsoft")),
    "ibm": Cloud("IBM Cloud", "#6B0F1A", ("ibm",)),
}
"""The clouds of the catalogue, by the prefix of their regions' names."""


def cloud_title(cloud: str) -> str:
    """
    Return the usual name of a cloud; a cloud that is not in the catalogue keeps its name.

    >>> cloud_title("gcp"), cloud_title("oci")
    ('Google Cloud', 'oci')
    """
    return CLOUDS[cloud].name if cloud in CLOUDS else cloud


@dataclass(frozen=True)
class Region:
    """
    A public region of a cloud (for IBM Cloud, also a single data centre).

    Attributes
    ----------
    name : str
        "<cloud>:<code>", such as "aws:eu-west-1".
    city, country : str
        City at the coordinates, and its country or territory.
    latitude_deg, longitude_deg : float
        WGS-84; north and east are positive.
    precision_km : float
        Maximum distance of a data centre from the coordinates.
    source : str
        Where the coordinates come from, and what the cloud publishes about the location.
    display_name : str
        The cloud's own label: "Europe (Ireland)", "West Europe", "Dallas (us-south)", "Hamina, Finland".
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


@cache
def _regions() -> dict[str, Region]:
    frame = pd.read_csv(Path(__file__).with_name("regions.csv"), keep_default_na=False, dtype={"precision_km": float})
    frame["name"] = frame["cloud"] + ":" + frame["code"]
    return {row["name"]: Region(**row) for row in frame.to_dict("records")}


def catalogue() -> pd.DataFrame:
    """
    Return all regions as table `regions`: a column per attribute of `Region`, except the display name.

    >>> sorted(catalogue()["cloud"].unique())
    ['aws', 'azure', 'gcp', 'ibm']
    """
    return pd.DataFrame(_regions().values(), columns=_COLUMNS).drop(columns="display_name")


def select(clouds: Iterable[str] | None = None, names: Iterable[str] | None = None) -> pd.DataFrame:
    """
    Return the catalogue's regions that are in these clouds and have these names; None allows all.

    The rows are in the order of `names`, or else of the catalogue.

    Raise ParameterError for an unknown cloud or region, a repeated name, or a string instead of a list.

    >>> select(clouds=["gcp"], names=["gcp:us-east1", "aws:eu-west-1"])["city"].tolist()
    ['Moncks Corner']
    """
    frame = catalogue()
    if names is not None:
        names = [region(name).name for name in _listed("names", names)]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ParameterError(f"names holds {', '.join(repeated)} more than once; allowed: each region once.")
        frame = frame.set_index("name", drop=False).loc[names].reset_index(drop=True)
    if clouds is not None:
        chosen = [check_choice("clouds", cloud, CLOUDS) for cloud in _listed("clouds", clouds)]
        frame = frame[frame["cloud"].isin(chosen)].reset_index(drop=True)
    return frame


def region(name: str) -> Region:
    """
    Return the region with this name. The ParameterError for an unknown name suggests similar names.

    >>> region("gcp:europe-west1").city
    'Saint-Ghislain'
    """
    by_name = _regions()
    if isinstance(name, str) and name in by_name:
        return by_name[name]
    similar = _similar_names(name, by_name) if isinstance(name, str) else []
    hint = f" such as {', '.join(similar)}" if similar else ", <cloud>:<code>, such as aws:eu-west-1"
    raise refusal("region", name, f"one of the {len(by_name)} regions in the catalogue{hint}")


def _similar_names(name: str, names: Iterable[str]) -> list[str]:
    """Suggest names for an unknown name: the same code in any cloud, the region of a zone, or a similar spelling."""
    wanted = name.strip().lower().replace("_", "-")
    code = wanted.partition(":")[2] or wanted
    codes = {other: other.partition(":")[2] for other in names}
    same = [other for other, its_code in codes.items() if code in (its_code, its_code.replace("-", ""))]
    zone = [other for other in names if wanted.startswith(other) and len(wanted) - len(other) <= 2]
    close = difflib.get_close_matches(wanted, names, n=MAX_SUGGESTIONS, cutoff=0.6)
    by_code = {its_code: other for other, its_code in codes.items()}
    close += [by_code[match] for match in difflib.get_close_matches(code, by_code, n=MAX_SUGGESTIONS, cutoff=0.6)]
    return list(dict.fromkeys(same + zone + close))[:MAX_SUGGESTIONS]


def _listed(name: str, values: Iterable[str]) -> list[str]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise refusal(name, values, "a list of names")
    return list(values)


def geodesic_km(point: tuple[float, float], other: tuple[float, float]) -> float:
    """
    Compute the length in km of the shortest path over the WGS-84 ellipsoid between two points (latitude, longitude in
    degrees), by geopy's implementation of Karney (2013), https://doi.org/10.1007/s00190-012-0578-z.

    Both directions give exactly the same number. Raise ValueError for a latitude beyond the poles.
    """
    return _geodesic_km(*sorted((tuple(point), tuple(other))))


@cache
def _geodesic_km(point: tuple[float, ...], other: tuple[float, ...]) -> float:
    from geopy.distance import geodesic  # it loads geocoders and a client for HTTP: 0.2 s of each start

    return float(geodesic(point, other, ellipsoid="WGS-84").km)


def distance_km(a: str, b: str) -> float:
    """
    Compute the length in km of the shortest path over the WGS-84 ellipsoid between two regions, given by name.

    Its uncertainty is the sum of both regions' `precision_km`.

    >>> round(distance_km("aws:eu-west-1", "gcp:us-east4"))
    5475
    """
    return geodesic_km(*((end.latitude_deg, end.longitude_deg) for end in (region(a), region(b))))


def add_distances(pairs: pd.DataFrame) -> pd.DataFrame:
    """
    Return the table with a further column `distance_km`: the distance between its columns from_region and to_region.

    Raise ParameterError if a region is not in the catalogue.

    >>> add_distances(pd.DataFrame({"from_region": ["aws:eu-west-1"], "to_region": ["gcp:us-east4"]})).round()
         from_region     to_region  distance_km
    0  aws:eu-west-1  gcp:us-east4       5475.0
    """
    check_columns("pairs", pairs, ("from_region", "to_region"))
    ends = zip(pairs.from_region, pairs.to_region, strict=True)
    return pairs.assign(distance_km=[distance_km(*pair) for pair in ends])


def light_rtt_ms(distance_km: Any) -> float | np.ndarray | pd.Series:
    """
    Compute the round-trip time in ms of light in fibre over a distance d in km: 2 d n / c with n = 1.468 and
    c = 299792.458 km/s.

    No RTT through fibre can be smaller, because no cable is shorter than the geodesic. `distance_km` is a number, an
    array or a Series, and the result is of the same kind; NaN stays NaN. Raise ParameterError for a negative or
    infinite distance.

    >>> round(light_rtt_ms(1000), 4)
    9.7934
    """
    values = np.asarray(distance_km, dtype="float64")
    bad = values[(values < 0) | np.isinf(values)]
    if bad.size:
        raise refusal("distance_km", float(bad.flat[0]), "a finite distance of at least 0 km")
    if isinstance(distance_km, pd.Series):
        return distance_km.astype("float64") * LIGHT_RTT_MS_PER_KM
    result = values * LIGHT_RTT_MS_PER_KM
    return float(result) if values.ndim == 0 else result
