"""Flag regions whose RTTs contradict their stated coordinates. Module `light` defines `rtts` and `unexplained`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from wanbench import regions as catalogue_of_regions
from wanbench.formatting import count, number, quantity
from wanbench.regions import LIGHT_RTT_MS_PER_KM

from .light import FAR_LIGHT_MS, light_flags
from .places import Angle, Area, great_circle_km, kilometres_to, locate, position
from .rule import IMPOSSIBLE, RULES, SUSPECT, Flagged

COORDINATES = RULES["coordinates"]
# Added to both RTTs before they are compared, so that the last mile of near landmarks matters less.
OFFSET_MS = 10.0
USUAL_INFLATION = 1.5  # RTT over light in fibre; used if no pair is far enough apart to compute it.
MIN_LANDMARKS = 3  # Three discs are needed to bound an area on all sides.
MIN_FOR_FIT = 6  # Minimum of regions, and of landmarks per region, to judge a fit of RTT to distance.
MIN_GAIN = 1.5  # How many times better another place must fit: even a correct place is never the best fit.
AS_GOOD = 2.0  # A common mistake is named as the cause if its place fits at most this many times worse than the best.
SOFT_GAIN = 3.0  # `MIN_GAIN` for regions without a pair faster than light: the fit alone is weaker evidence.
# Without a pair faster than light, a region is examined only if its place fits this many times worse than the median.
SOFT_WORSE = 2.5
SOFT_AS_GOOD = 1.3  # And the corrected place must fit at most this many times worse than the median.
MAX_TYPICAL = 0.4  # If the median misfit is larger, RTTs do not follow the distances.
N_TRIED = 5  # Regions examined per step: those in the most pairs.
SAME_PLACE_KM = 30.0  # Places within this distance are in one city.
FAR_KM = 500.0  # RTTs do not distinguish places that are nearer to each other.
N_POINTS = 400  # Points of an area at which the fit is computed: close enough together to find its minimum.
MAX_CITIES = 5  # Cities that a flag lists.
Blame = tuple[str, str, str, float, float]  # as `_verdict` returns it


@dataclass(frozen=True)
class _Region:
    """A region with its stated coordinates and its landmarks: the regions to which its RTTs were measured."""

    name: str
    latitude: float
    longitude: float
    precision_km: float
    landmarks: pd.DataFrame
    usual: float

    def score(self, latitude: Angle, longitude: Angle) -> np.ndarray:
        """
        Return, for each place, how badly the region's RTTs fit the distances from the place to the landmarks.

        The score is the mean absolute deviation of log(RTT / expected RTT) from its median, plus half the absolute
        median. Disagreement among landmarks counts fully against a place; RTTs that are all too long, or all too short,
        count only half.
        """
        away = kilometres_to(self.landmarks, latitude, longitude)
        expected = self.usual * LIGHT_RTT_MS_PER_KM * away + OFFSET_MS
        error = np.log((self.landmarks.rtt_ms.to_numpy() + OFFSET_MS) / expected)
        middle = np.median(error, axis=1)
        return np.abs(error - middle[:, None]).mean(axis=1) + np.abs(middle) / 2

    @property
    def stated_score(self) -> float:
        return float(self.score(self.latitude, self.longitude)[0])

    def allowed_by(self, area: Area) -> bool:
        """Return whether the stated place lies in an area, or outside it by at most `precision_km`."""
        return bool(area.allows(self.latitude, self.longitude, slack_km=self.precision_km)[0])

    def hypotheses(self) -> dict[str, tuple[float, float]]:
        """Return, for each common mistake, the true (latitude, longitude) if the stated one came from this mistake."""
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


def check_coordinates(rtts: pd.DataFrame, unexplained: np.ndarray, places: pd.DataFrame) -> Flagged:
    """
    Flag regions with wrong coordinates, and their RTTs that are faster than light; return the flags and a mask of these
    RTTs.
    """
    explained = np.zeros(len(rtts), bool)
    usable = rtts[unexplained & rtts.from_region.isin(places.index) & rtts.to_region.isin(places.index)]
    if usable.empty:
        return [], explained
    pairs = _unordered(usable)
    places = places.loc[sorted({*pairs.region_a, *pairs.region_b})]
    places.index = places.index.astype(object)
    blamed = _blamed(pairs, places)
    flags = []
    below = unexplained & (rtts.rtt_ms < rtts.fibre_ms).to_numpy()
    for region, verdict, found, cause, value, bound in blamed:
        table = usable.table.mode().iloc[0]
        flags.append(COORDINATES.flag(table, "region", verdict, found, cause, region=region, value=value, bound=bound))
        theirs = below & ~explained & ((rtts.from_region == region) | (rtts.to_region == region)).to_numpy()
        flags += light_flags(rtts[theirs], f"{region}: {cause}")
        explained |= theirs
    return flags, explained


def _unordered(rtts: pd.DataFrame) -> pd.DataFrame:
    """Return one row per unordered pair: region_a, region_b, and the minimum of rtt_ms, fibre_ms and light_ms."""
    ends = np.sort(rtts[["from_region", "to_region"]].to_numpy(dtype=object), axis=1)
    frame = rtts[["rtt_ms", "fibre_ms", "light_ms"]].assign(region_a=ends[:, 0], region_b=ends[:, 1])
    return frame.groupby(["region_a", "region_b"], as_index=False).min()


def _landmarks(region: str, pairs: pd.DataFrame, places: pd.DataFrame, without: Collection[str]) -> pd.DataFrame:
    first, second = pairs.region_a.to_numpy(dtype=object), pairs.region_b.to_numpy(dtype=object)
    mine = np.flatnonzero((first == region) | (second == region))
    other = np.where(first == region, second, first)[mine]
    place = places.index.get_indexer(other)
    used = (place >= 0) & np.array([name not in without for name in other], dtype=bool)
    kept = place[used]
    columns = {name: places[name].to_numpy()[kept] for name in places}
    return pd.DataFrame({"region": places.index[kept]} | columns | {"rtt_ms": pairs.rtt_ms.to_numpy()[mine[used]]})


def _region(name: str, pairs: pd.DataFrame, places: pd.DataFrame, without: Collection[str]) -> _Region:
    place = places.loc[name]
    light_ms = pairs.light_ms.to_numpy()
    far = light_ms > FAR_LIGHT_MS
    usual = float(np.median(pairs.rtt_ms.to_numpy()[far] / light_ms[far])) if far.any() else USUAL_INFLATION
    lat, lon, within = (float(place[column]) for column in ("latitude_deg", "longitude_deg", "precision_km"))
    return _Region(name, lat, lon, within, _landmarks(name, pairs, places, without), usual)


def _blamed(pairs: pd.DataFrame, places: pd.DataFrame) -> list[tuple[str, str, str, str, float, float]]:
    names = sorted({*pairs.region_a, *pairs.region_b})
    blamed: dict[str, Blame] = {}
    while True:  # greedy set cover: blame the region in the most pairs that are too fast, drop its pairs, and repeat
        left = pairs[(pairs.rtt_ms < pairs.fibre_ms) & ~pairs.region_a.isin(blamed) & ~pairs.region_b.isin(blamed)]
        counts = pd.concat([left.region_a, left.region_b]).value_counts()
        best = _best(counts.head(N_TRIED), left, pairs, places, set(blamed))
        if best is None:
            break
        region, n, area, score = best
        blamed[region.name] = _verdict(region, n, area, places, IMPOSSIBLE, score)
    suspected = [*blamed, *counts.head(N_TRIED).index]
    for first, second in _exchanged(suspected, pairs, places, set(blamed)):
        cause = f"the labels, or the coordinates, of {first.name} and {second.name} are exchanged"
        for region in (first, second):
            area, of_region = locate(region.name, region.landmarks), blamed.get(region.name)
            verdict = SUSPECT if region.allowed_by(area) else IMPOSSIBLE
            flagged = of_region or _verdict(region, 0, area, places, verdict, np.inf)
            blamed[region.name] = (*flagged[:2], cause, *flagged[3:])
    others = [_region(name, pairs, places, blamed) for name in names if name not in blamed]
    others = [region for region in others if len(region.landmarks) >= MIN_FOR_FIT]
    if len(others) >= MIN_FOR_FIT:
        typical = float(np.median([region.stated_score for region in others]))
        for region in sorted(others, key=lambda region: region.stated_score, reverse=True):
            if region.stated_score < SOFT_WORSE * typical or typical > MAX_TYPICAL:
                break
            if flagged := _soft(region, typical, places):
                blamed[region.name] = flagged
    return [(name, *flagged) for name, flagged in blamed.items()]


def _best(counts: pd.Series, left: pd.DataFrame, pairs: pd.DataFrame, places: pd.DataFrame, blamed: set[str]):
    """
    Among regions with many impossibly fast pairs (`counts`), return the one that fits another place best; None if none
    does.
    """
    best = None
    for name, n in counts.items():
        others = left[(left.region_a != name) & (left.region_b != name)]
        uncertain = {*others.region_a, *others.region_b}  # poor landmarks, as they are in other pairs that are too fast
        regions = (_region(name, pairs, places, without) for without in (blamed | uncertain, blamed))
        region = next((region for region in regions if len(region.landmarks) >= MIN_LANDMARKS), None)
        if region is None or (area := locate(name, region.landmarks)).empty or region.allowed_by(area):
            continue
        points = area.points.iloc[:: max(1, len(area.points) // N_POINTS)]
        score = max(float(region.score(points.latitude_deg, points.longitude_deg).min()), 1e-3)
        gain = region.stated_score / score
        if gain >= MIN_GAIN and (best is None or n * gain > best[0]):
            best = (n * gain, region, int(n), area, score)
    return best[1:] if best else None


def _exchanged(
    suspected: list[str], pairs: pd.DataFrame, places: pd.DataFrame, blamed: set[str]
) -> list[tuple[_Region, _Region]]:
    exchanged, taken = [], set()
    for name in dict.fromkeys(suspected):
        fits = []
        for other in _best_places(name, pairs, places, blamed, taken) if name not in taken else ():
            without = blamed | taken | {name, other}
            first, second = _region(name, pairs, places, without), _region(other, pairs, places, without)
            if min(len(first.landmarks), len(second.landmarks)) < MIN_LANDMARKS:
                continue
            if _fits(first, places.loc[other]) and _fits(second, places.loc[name]):
                score = _at(first, places.loc[other]) + _at(second, places.loc[name])
                fits.append((score, first, second))
        if fits:
            _, first, second = min(fits, key=lambda fit: fit[0])
            exchanged.append((first, second))
            taken |= {first.name, second.name}
    return exchanged


def _best_places(name: str, pairs: pd.DataFrame, places: pd.DataFrame, blamed: set[str], taken: set[str]) -> list[str]:
    region = _region(name, pairs, places, blamed | taken)
    if region.landmarks.empty:
        return []
    scores = region.score(places.latitude_deg.to_numpy(), places.longitude_deg.to_numpy())
    best = [k for k in np.argsort(scores) if places.index[k] not in {name, *taken}]
    return [places.index[k] for k in best[: 2 * N_TRIED]]


def _at(region: _Region, place: pd.Series) -> float:
    return float(region.score(place.latitude_deg, place.longitude_deg)[0])


def _fits(region: _Region, place: pd.Series) -> bool:
    """Return whether the RTTs of a region allow a place far from the stated one, and fit that place better."""
    away = great_circle_km(region.latitude, region.longitude, place.latitude_deg, place.longitude_deg)
    if away < FAR_KM or MIN_GAIN * _at(region, place) > region.stated_score:
        return False
    area = locate(region.name, region.landmarks)
    allowed = area.allows(place.latitude_deg, place.longitude_deg, slack_km=region.precision_km)
    return not area.empty and bool(allowed[0])


def _soft(region: _Region, typical: float, places: pd.DataFrame) -> Blame | None:
    """Return a verdict if a common mistake explains the RTTs of a region without impossibly fast pairs, else None."""
    area = locate(region.name, region.landmarks)
    for place in region.hypotheses().values():
        score = float(region.score(*place)[0])
        fits = score < SOFT_AS_GOOD * typical and region.stated_score > SOFT_GAIN * score
        if fits and not area.empty and area.allows(*place, slack_km=region.precision_km)[0]:
            return _verdict(region, 0, area, places, SUSPECT, score)
    return None


def _verdict(region: _Region, n: int, area: Area, places: pd.DataFrame, verdict: str, score: float) -> Blame:
    """Return verdict, finding, cause, km from the stated place to the allowed area's centre, and its radius in km."""
    away = float(great_circle_km(region.latitude, region.longitude, area.latitude_deg, area.longitude_deg))
    fast = f"{count(n, 'pair')} {'is' if n == 1 else 'are'} faster than light in fibre; " if n else ""
    found = (
        f"{region.name} is stated at {position(region.latitude, region.longitude)}; {fast}its RTTs to "
        f"{count(len(area.discs), 'region')} allow only an area of {number(area.area_km2, -3)} km² within "
        f"{area.radius_km:,.0f} km of {position(area.latitude_deg, area.longitude_deg)}, which is {away:,.0f} km from "
        f"the stated place{_cities_inside(area)}"
    )
    return verdict, found, _cause(region, area, places, score), away, area.radius_km


def _cities_inside(area: Area) -> str:
    """Return the catalogue's cities in the area as text, those nearest to its centre first."""
    regions = catalogue_of_regions.catalogue()
    inside = regions[area.allows(regions.latitude_deg, regions.longitude_deg, slack_km=0.0)]
    if inside.empty:
        return ""
    away = great_circle_km(area.latitude_deg, area.longitude_deg, inside.latitude_deg, inside.longitude_deg)
    cities = inside.city.iloc[np.argsort(away)].drop_duplicates()
    more = f" and {len(cities) - MAX_CITIES} more" if len(cities) > MAX_CITIES else ""
    return f" (in the area: {', '.join(cities.head(MAX_CITIES))}{more})"


def _cause(region: _Region, area: Area, places: pd.DataFrame, score: float) -> str:
    scores = {
        name: float(region.score(*place)[0])
        for name, place in region.hypotheses().items()
        if area.allows(*place, slack_km=region.precision_km)[0]
    }
    if scores and min(scores.values()) < AS_GOOD * score:
        return min(scores, key=scores.__getitem__)
    if abs(region.latitude) < 0.01 and abs(region.longitude) < 0.01:
        return "missing coordinates, stated as 0 N 0 E"
    if catalogued := _catalogued(region, area):
        return catalogued
    if twin := _twin(region, places) or _twin(region, catalogue_of_regions.catalogue().set_index("name")):
        return f"the coordinates are those of {twin}"
    return "the coordinates or the label of the region are wrong"


def _catalogued(region: _Region, area: Area) -> str:
    """
    Return a text on the catalogue's coordinates, if these are far from the stated ones and the RTTs allow them; else
    "".
    """
    catalogued = catalogue_of_regions.catalogue().set_index("name")
    if region.name not in catalogued.index:
        return ""
    own = catalogued.loc[region.name]
    away = float(great_circle_km(region.latitude, region.longitude, own.latitude_deg, own.longitude_deg))
    slack = own.precision_km + region.precision_km
    if away < slack + SAME_PLACE_KM or not area.allows(own.latitude_deg, own.longitude_deg, slack_km=slack)[0]:
        return ""
    latitude_off = abs(region.latitude - own.latitude_deg) > 1
    longitude_off = abs(region.longitude - own.longitude_deg) > 1
    which = "place" if latitude_off == longitude_off else "latitude" if latitude_off else "longitude"
    twin = _twin(region, catalogued[catalogued.index != region.name])
    copied = f": the coordinates are those of {twin}" if twin and which == "place" else ""
    return (
        f"the {which} is wrong{copied}; {own.city}, {quantity(away, 'km')} away at "
        f"{position(own.latitude_deg, own.longitude_deg)}, is the catalogue's place and agrees with the RTTs"
    )


def _twin(region: _Region, places: pd.DataFrame) -> str | None:
    others = places[places.index != region.name]
    away = great_circle_km(region.latitude, region.longitude, others.latitude_deg, others.longitude_deg)
    near = others.index[np.asarray(away) < SAME_PLACE_KM / 3]
    return str(near[0]) if len(near) else None
