"""Regions whose stated place their own round trips contradict, and the place that these allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .. import regions as catalogue_of_regions
from ..formatting import count, number, quantity
from ..regions import LIGHT_RTT_MS_PER_KM
from . import light
from .geolocation import Area, locate, position
from .positions import great_circle_km
from .rule import IMPOSSIBLE, SUSPECT, Rule

RULE = Rule(
    "coordinates",
    "The place of a region is one that its round trips allow.",
    "the fewest regions that explain the pairs faster than light (greedy set cover) are blamed, if their RTTs do not "
    "allow the stated place, and allow another that fits the distances at least 1.5 times better; two regions that "
    "fit each other's place so are exchanged; or, where no pair is too fast, if exchanged coordinates or a sign fit 3 "
    "times better, and the stated place 2.5 times worse than that of others, whose RTTs follow the distances (misfit "
    "of at most 0.4 in the median)",
    "Gueye et al. 2006, Constraint-based geolocation of internet hosts",
)
OFFSET_MS = 10.0
FEWEST_LANDMARKS, FEWEST_FOR_FIT = 3, 6
GAIN, AS_GOOD, SOFT_GAIN, SOFT_WORSE, SOFT_AS_GOOD = 1.5, 2.0, 3.0, 2.5, 1.3
SOFT_MOST = 0.4
TRIED = 5
SAME_PLACE_KM, FAR_KM = 30.0, 500.0
PIECES = 400


@dataclass(frozen=True)
class _Region:
    """A region with all that its round trips say."""

    name: str
    latitude: float
    longitude: float
    precision_km: float
    landmarks: pd.DataFrame
    usual: float

    def score(self, latitude, longitude) -> np.ndarray:
        """How badly the RTTs fit the distances from these places: spread of the log ratio, and half its middle."""
        away = great_circle_km(
            np.atleast_1d(latitude)[:, None],
            np.atleast_1d(longitude)[:, None],
            self.landmarks.latitude_deg.to_numpy(),
            self.landmarks.longitude_deg.to_numpy(),
        )
        expected = self.usual * LIGHT_RTT_MS_PER_KM * away + OFFSET_MS
        error = np.log((self.landmarks.rtt_ms.to_numpy() + OFFSET_MS) / expected)
        middle = np.median(error, axis=1)
        return np.abs(error - middle[:, None]).mean(axis=1) + np.abs(middle) / 2

    @property
    def stated_score(self) -> float:
        return float(self.score(self.latitude, self.longitude)[0])

    def allowed_by(self, area: Area) -> bool:
        """Whether the stated place, give or take its precision, lies in an area."""
        return bool(area.allows(self.latitude, self.longitude, slack_km=self.precision_km)[0])

    def hypotheses(self) -> dict[str, tuple[float, float]]:
        """Places that a usual mistake would have turned into the stated one, by the mistake."""
        latitude, longitude = self.latitude, self.longitude
        places = {
            "the longitude has the wrong sign": (latitude, -longitude),
            "the latitude has the wrong sign": (-latitude, longitude),
            "latitude and longitude have the wrong signs": (-latitude, -longitude),
        }
        if abs(longitude) <= 90:
            places = {"latitude and longitude are exchanged": (longitude, latitude)} | places
        away = great_circle_km(latitude, longitude, *np.array(list(places.values())).T)
        return {name: place for (name, place), km in zip(places.items(), away, strict=True) if km > FAR_KM}


def check(rtts: pd.DataFrame, open_rows: np.ndarray, places: pd.DataFrame) -> tuple[list[dict], np.ndarray]:
    """Flags of the regions that are placed wrongly, and of the rows that this explains; and which rows."""
    explained = np.zeros(len(rtts), bool)
    usable = rtts[open_rows & rtts.from_region.isin(places.index) & rtts.to_region.isin(places.index)]
    if usable.empty:
        return [], explained
    pairs = _unordered(usable)
    places = places.loc[sorted({*pairs.region_a, *pairs.region_b})]
    places.index = places.index.astype(object)
    blamed = _blamed(pairs, places)
    flags = []
    below = open_rows & (rtts.rtt_ms < rtts.fibre_ms).to_numpy()
    for region, verdict, found, cause, value, bound in blamed:
        table = usable.table.mode().iloc[0]
        flags.append(
            RULE.flag(table, "region", verdict, found, cause, region=region, value=value, bound=bound)
        )
        theirs = below & ~explained & ((rtts.from_region == region) | (rtts.to_region == region)).to_numpy()
        flags += light.flags(rtts[theirs], f"{region}: {cause}")
        explained |= theirs
    return flags, explained


def area_of(region: str, rtts: pd.DataFrame, places: pd.DataFrame, without=()) -> Area | None:
    """Where the round trips of a region let it be; the regions `without` are no landmarks. None: it has no other."""
    landmarks = _landmarks(region, _unordered(rtts), places, without)
    return locate(region, landmarks) if len(landmarks) else None


def _unordered(rtts: pd.DataFrame) -> pd.DataFrame:
    """One row per unordered pair: region_a, region_b, rtt_ms (the least), fibre_ms, light_ms."""
    ends = np.sort(rtts[["from_region", "to_region"]].to_numpy(dtype=object), axis=1)
    frame = pd.DataFrame(
        {"region_a": ends[:, 0], "region_b": ends[:, 1]}
        | {name: rtts[name].to_numpy() for name in ("rtt_ms", "fibre_ms", "light_ms")}
    )
    return frame.groupby(["region_a", "region_b"], as_index=False).agg(
        {"rtt_ms": "min", "fibre_ms": "min", "light_ms": "min"}
    )


def _landmarks(region, pairs, places, without) -> pd.DataFrame:
    first, second = pairs.region_a.to_numpy(dtype=object), pairs.region_b.to_numpy(dtype=object)
    mine = np.flatnonzero((first == region) | (second == region))
    other = np.where(first == region, second, first)[mine]
    place = places.index.get_indexer(other)
    known = (place >= 0) & np.array([name not in without for name in other], dtype=bool)
    frame = places.iloc[place[known]].reset_index(names="region")
    return frame.assign(rtt_ms=pairs.rtt_ms.to_numpy()[mine[known]])


def _region(name, pairs, places, without) -> _Region:
    place = places.loc[name]
    far = pairs.light_ms.to_numpy() > 5
    usual = float(np.median((pairs.rtt_ms / pairs.light_ms).to_numpy()[far])) if far.any() else 1.5
    landmarks = _landmarks(name, pairs, places, without)
    return _Region(
        name,
        float(place.latitude_deg),
        float(place.longitude_deg),
        float(place.precision_km),
        landmarks,
        usual,
    )


def _blamed(pairs: pd.DataFrame, places: pd.DataFrame) -> list[tuple]:
    """Regions placed wrongly with verdict, figure, cause, km off and the radius of the place allowed."""
    names = sorted({*pairs.region_a, *pairs.region_b})
    blamed: dict[str, tuple] = {}
    while True:
        left = pairs[
            (pairs.rtt_ms < pairs.fibre_ms) & ~pairs.region_a.isin(blamed) & ~pairs.region_b.isin(blamed)
        ]
        counts = pd.concat([left.region_a, left.region_b]).value_counts()
        best = _best(counts.head(TRIED), left, pairs, places, set(blamed))
        if best is None:
            break
        region, n, area, score = best
        blamed[region.name] = _told(region, n, area, places, IMPOSSIBLE, score)
    suspected = [*blamed, *counts.head(TRIED).index]
    for first, second in _exchanged(suspected, pairs, places, set(blamed)):
        cause = f"the labels, or the coordinates, of {first.name} and {second.name} are exchanged"
        for region in (first, second):
            area, of_region = locate(region.name, region.landmarks), blamed.get(region.name)
            verdict = SUSPECT if region.allowed_by(area) else IMPOSSIBLE
            told = of_region or _told(region, 0, area, places, verdict, np.inf)
            blamed[region.name] = (*told[:2], cause, *told[3:])
    scores = {name: _region(name, pairs, places, blamed) for name in names if name not in blamed}
    scores = {name: each for name, each in scores.items() if len(each.landmarks) >= FEWEST_FOR_FIT}
    if len(scores) >= FEWEST_FOR_FIT:
        stated = {name: each.stated_score for name, each in scores.items()}
        typical = float(np.median(list(stated.values())))
        for name in sorted(stated, key=stated.get, reverse=True):
            if stated[name] < SOFT_WORSE * typical or typical > SOFT_MOST:
                break
            told = _soft(scores[name], stated[name], typical, places)
            if told:
                blamed[name] = told
    return [(name, *told) for name, told in blamed.items()]


def _best(counts: pd.Series, left, pairs, places, blamed):
    """Of the regions in most pairs that are too fast, the one that another place suits best; None: no such."""
    found = None
    for name, n in counts.items():
        others = left[(left.region_a != name) & (left.region_b != name)]
        doubtful = {*others.region_a, *others.region_b}
        region = _region(name, pairs, places, blamed | doubtful)
        if len(region.landmarks) < FEWEST_LANDMARKS:
            region = _region(name, pairs, places, blamed)
        if len(region.landmarks) < FEWEST_LANDMARKS:
            continue
        area = locate(name, region.landmarks)
        if area.empty or region.allowed_by(area):
            continue
        step = max(1, len(area.points) // PIECES)
        tried = area.points.iloc[::step]
        best = max(float(region.score(tried.latitude_deg, tried.longitude_deg).min()), 1e-3)
        gain = region.stated_score / best
        if gain >= GAIN and (found is None or n * gain > found[0]):
            found = (n * gain, region, int(n), area, best)
    return found[1:] if found else None


def _exchanged(suspected, pairs, places, blamed) -> list[tuple[_Region, _Region]]:
    """Pairs of regions, one of them suspected, each of which fits the other's place and not its own."""
    found, taken = [], set()
    for name in dict.fromkeys(suspected):
        fits = []
        for other in _better_places(name, pairs, places, blamed, taken) if name not in taken else ():
            without = blamed | taken | {name, other}
            first, second = _region(name, pairs, places, without), _region(other, pairs, places, without)
            if min(len(first.landmarks), len(second.landmarks)) < FEWEST_LANDMARKS:
                continue
            if _suits(first, places.loc[other]) and _suits(second, places.loc[name]):
                score = _at(first, places.loc[other]) + _at(second, places.loc[name])
                fits.append((score, first, second))
        if fits:
            _, first, second = min(fits, key=lambda each: each[0])
            found.append((first, second))
            taken |= {first.name, second.name}
    return found


def _better_places(name, pairs, places, blamed, taken) -> list[str]:
    """The regions whose places fit a region best."""
    region = _region(name, pairs, places, blamed | taken)
    if region.landmarks.empty:
        return []
    scores = region.score(places.latitude_deg.to_numpy(), places.longitude_deg.to_numpy())
    best = [k for k in np.argsort(scores) if places.index[k] not in {name, *taken}]
    return [places.index[k] for k in best[: 2 * TRIED]]


def _at(region: _Region, place) -> float:
    return float(region.score(place.latitude_deg, place.longitude_deg)[0])


def _suits(region: _Region, place) -> bool:
    """Whether another place, far from the stated one, is allowed by the RTTs of a region, and fits them better."""
    away = great_circle_km(region.latitude, region.longitude, place.latitude_deg, place.longitude_deg)
    if away < FAR_KM or GAIN * _at(region, place) > region.stated_score:
        return False
    area = locate(region.name, region.landmarks)
    return not area.empty and bool(
        area.allows(place.latitude_deg, place.longitude_deg, slack_km=region.precision_km)[0]
    )


def _soft(region: _Region, stated: float, typical: float, places) -> tuple | None:
    area = locate(region.name, region.landmarks)
    for _, place in region.hypotheses().items():
        score = float(region.score(*place)[0])
        fits = score < SOFT_AS_GOOD * typical and stated > SOFT_GAIN * score
        if fits and not area.empty and area.allows(*place, slack_km=region.precision_km)[0]:
            return _told(region, 0, area, places, SUSPECT, score)
    return None


def _told(region: _Region, n: int, area: Area, places, verdict, score: float) -> tuple:
    """Verdict, figure, cause, km between the stated and the allowed place, and the radius of the latter."""
    away = float(great_circle_km(region.latitude, region.longitude, area.latitude_deg, area.longitude_deg))
    fast = f"{count(n, 'pair')} of {region.name} faster than light in fibre; " if n else ""
    listed = _inside(region.name, area)
    found = (
        f"{region.name} is said to be at {position(region.latitude, region.longitude)}; {fast}its RTTs to "
        f"{count(len(area.discs), 'region')} allow {number(area.area_km2, -3)} km2 around "
        f"{position(area.latitude_deg, area.longitude_deg)}, at most {area.radius_km:,.0f} km from there and "
        f"{away:,.0f} km from the place stated{listed}"
    )
    return verdict, found, _cause(region, area, places, score), away, area.radius_km


def _inside(name: str, area: Area, most: int = 5) -> str:
    """The regions of the catalogue that lie in the area, the nearest to its middle first."""
    known = catalogue_of_regions.catalogue()
    inside = known[area.allows(known.latitude_deg, known.longitude_deg, slack_km=0.0)]
    if inside.empty:
        return ""
    away = great_circle_km(area.latitude_deg, area.longitude_deg, inside.latitude_deg, inside.longitude_deg)
    cities = inside.city.iloc[np.argsort(away)].drop_duplicates()
    more = f" and {len(cities) - most} more" if len(cities) > most else ""
    return f" ({', '.join(cities.head(most))}{more} in it)"


def _cause(region: _Region, area: Area, places: pd.DataFrame, score: float) -> str:
    """What was done to the coordinates, by the places that its RTTs allow."""
    tried = {}
    for name, place in region.hypotheses().items():
        if area.allows(*place, slack_km=region.precision_km)[0]:
            tried[name] = float(region.score(*place)[0])
    own = _catalogued(region, area)
    if tried:
        name = min(tried, key=tried.get)
        if tried[name] < AS_GOOD * score:
            return name
    if abs(region.latitude) < 0.01 and abs(region.longitude) < 0.01:
        return "no coordinates: 0 N 0 E stands for a place that was not known"
    if own:
        return own
    twin = _twin(region, places) or _twin(region, catalogue_of_regions.catalogue().set_index("name"))
    if twin:
        return f"the coordinates are those of {twin}"
    return "wrong coordinates, or the label of another region"


def _catalogued(region: _Region, area: Area) -> str:
    """What is wrong beside the catalogue's coordinates of that name, if these are allowed and far away."""
    known = catalogue_of_regions.catalogue().set_index("name")
    if region.name not in known.index:
        return ""
    own = known.loc[region.name]
    away = float(great_circle_km(region.latitude, region.longitude, own.latitude_deg, own.longitude_deg))
    slack = own.precision_km + region.precision_km
    if (
        away < slack + SAME_PLACE_KM
        or not area.allows(own.latitude_deg, own.longitude_deg, slack_km=slack)[0]
    ):
        return ""
    latitude = abs(region.latitude - own.latitude_deg) > 1
    longitude = abs(region.longitude - own.longitude_deg) > 1
    which = {(True, False): "latitude is", (False, True): "longitude is"}.get(
        (latitude, longitude), "place is"
    )
    twin = _twin(region, known[known.index != region.name])
    as_of = f": the coordinates are those of {twin}" if twin and which == "place is" else ""
    return (
        f"the {which} wrong{as_of}; {own.city}, {quantity(away, 'km')} away at "
        f"{position(own.latitude_deg, own.longitude_deg)}, is where the catalogue has the region, and fits its RTTs"
    )


def _twin(region: _Region, places: pd.DataFrame) -> str | None:
    """Another region at the very place."""
    others = places[places.index != region.name]
    away = great_circle_km(region.latitude, region.longitude, others.latitude_deg, others.longitude_deg)
    near = others.index[np.asarray(away) < SAME_PLACE_KM / 3]
    return str(near[0]) if len(near) else None
