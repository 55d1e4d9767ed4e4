"""
Select the ordered pairs of regions to test, and schedule concurrent tests.

Tests in the same round run at the same time, and no region is in two of them. Regions are the vertices of a graph, and
ordered pairs its edges; the two directions of a pair are two edges. A round is a matching of this graph, so a schedule
with the fewest rounds is an edge colouring with the fewest colours.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from wanbench.checks import LATER, T, check_number, refusal
from wanbench.errors import ParameterError
from wanbench.regions import catalogue
from wanbench.regions import distance_km as between_km

Pair = tuple[str, str]
_PLANNED = ("aws", "azure", "gcp")
MAX_NAME = 80
"""
Maximum length of a region's name. The name of a raw file holds two regions and up to 90 other characters, and may have
at most 255 characters.
"""
_CATALOGUED = re.compile(r"[a-z][a-z0-9]*:[a-z0-9]+(-[a-z0-9]+)*")
_IN_FILE_NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")


def cloud(region: str) -> str:
    """Return the part of a region's name before the colon."""
    return region.partition(":")[0]


def check_region(name: str) -> str:
    """Return the name unchanged, or raise ParameterError if it is not of the form "<cloud>:<code>"."""
    return _checked(name, _CATALOGUED, "'<cloud>:<code>' in lower case, such as 'aws:eu-west-1'")


def check_any_region(name: str) -> str:
    """
    Return the name unchanged, or raise ParameterError if file names cannot contain it. The region need not be in the
    catalogue.
    """
    return _checked(name, _IN_FILE_NAMES, "letters, digits, '.', '_', ':' and '-', the first a letter or digit")


def _checked(name: object, pattern: re.Pattern[str], allowed: str) -> str:
    if not isinstance(name, str) or len(name) > MAX_NAME or not pattern.fullmatch(name):
        raise refusal("region", name, f"{allowed}, at most {MAX_NAME} characters")
    return name


def pair(given: str | Sequence[str]) -> Pair:
    """
    Make an ordered pair from the text "from->to" or from a sequence of two region names.

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
    pairs: Iterable[str | Sequence[str]] | None = None,
    regions: Iterable[str] | None = None,
    cloud_pairs: Iterable[str] | None = None,
    distance_km: Sequence[float] | None = None,
) -> list[Pair]:
    """
    Return the ordered pairs that satisfy all restrictions.

    Without restrictions, these are all pairs of all regions of AWS, Azure and Google Cloud in the catalogue. Regions of
    IBM Cloud, which are in the catalogue because published data sets contain them, must be named.

    Parameters
    ----------
    pairs : pairs or "from->to" texts, optional
        Select only from these pairs.
    regions : region names, optional
        Select only pairs whose two regions are both in this list.
    cloud_pairs : texts such as "gcp->aws", optional
        Select only pairs that lead from the first cloud to the second; "gcp->gcp" selects pairs within one cloud.
    distance_km : two numbers, optional
        Select only pairs whose geodesic distance is in this range, ends included.

    Raises
    ------
    ParameterError
        If a value is malformed or unknown, or if no pair is left; the message then says how many pairs were left after
        each restriction.
    """
    candidates = selected = _candidates(pairs, regions)
    left = [f"{len(selected)} candidate pairs"]
    if cloud_pairs is not None:
        directed = {_cloud_pair(text) for text in cloud_pairs}
        there = {cloud(region) for p in candidates for region in p}
        if unknown := {name for ends in directed for name in ends} - there:
            unknown = ", ".join(map(repr, sorted(unknown)))
            raise ParameterError(f"No pair has a region of {unknown}; allowed: {', '.join(sorted(there))}.")
        selected = [p for p in candidates if (cloud(p[0]), cloud(p[1])) in directed]
        shown = ", ".join("->".join(ends) for ends in sorted(directed))
        left.append(f"{len(selected)} after cloud pairs {shown}")
    if distance_km is not None:
        if isinstance(distance_km, str) or len(distance_km) != 2:
            raise refusal("distance_km", distance_km, "two numbers, the shortest and the longest distance in km")
        low = check_number("distance_km", distance_km[0], 0)
        high = check_number("distance_km", distance_km[1], low)
        selected = [p for p in selected if low <= between_km(*p) <= high]
        left.append(f"{len(selected)} after distances of {low:g} to {high:g} km")
    if not selected:
        raise ParameterError(f"No pair is left to test: {'; '.join(left)}.")
    return selected


def expected_rtts(pairs: Sequence[Pair], rtt_ms: Mapping[Pair, float]) -> dict[Pair, float]:
    """
    Return the expected RTT of each pair in ms; a pair that is not in `rtt_ms` gets the value of the other direction.
    """
    expected = {}
    for p in pairs:
        value = rtt_ms.get(p, rtt_ms.get((p[1], p[0])))
        if value is None or not 0 <= value < float("inf"):
            raise ParameterError(f"rtt_ms of {p[0]}->{p[1]} is {value!r}; it must be a number of at least 0.")
        expected[p] = float(value)
    return expected


def _candidates(pairs: Iterable[str | Sequence[str]] | None, regions: Iterable[str] | None) -> list[Pair]:
    allowed = []
    if regions is not None:
        regions = [regions] if isinstance(regions, str) else list(regions)
        allowed = sorted({check_region(name) for name in regions})
    if pairs is None:
        if regions is None:
            allowed = sorted(name for name in catalogue()["name"] if cloud(name) in _PLANNED)
        return [(a, b) for a in allowed for b in allowed if a != b]
    explicit = [pair(given) for given in ([pairs] if isinstance(pairs, str) else pairs)]
    twice = [f"{a}->{b}" for (a, b), count in Counter(explicit).items() if count > 1]
    if twice:
        raise ParameterError(f"pairs has {', '.join(sorted(twice))} more than once; allowed: each pair once.")
    return sorted(p for p in explicit if regions is None or set(p) <= set(allowed))


def _cloud_pair(text: str | Sequence[str]) -> tuple[str, ...]:
    ends = tuple(end.strip() for end in text.split("->")) if isinstance(text, str) else tuple(text)
    if len(ends) != 2 or not all(ends):
        raise ParameterError(f"cloud pair is {text!r}; allowed: two clouds, such as 'gcp->aws'.")
    return ends


_TRIES = 20


def lower_bound(pairs: Sequence[Pair], batch: int | None = None) -> int:
    """
    Return a lower bound on the number of rounds, which is the maximum of several bounds.

    The bounds are: the number of tests of the busiest region; the number of all tests divided by `batch`; and, for each
    of some groups of regions, the number of tests within the group divided by half the number of its regions (rounded
    down).

    Examples
    --------
    >>> lower_bound([("a", "b"), ("b", "a"), ("b", "c")])
    3
    >>> lower_bound([("a", "b"), ("c", "d"), ("e", "f")], batch=1)
    3
    """
    neighbours: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for a, b in pairs:
        neighbours[a][b] += 1
        neighbours[b][a] += 1
    bounds = [0, *(sum(others.values()) for others in neighbours.values())]
    if batch:
        bounds.append(-(-len(pairs) // batch))
    left = set(neighbours)
    while left:
        component = _reachable(min(left), neighbours.__getitem__)
        left -= component
        degree = {region: sum(neighbours[region].values()) for region in component}
        tests = sum(degree.values()) // 2
        while len(degree) > 1:
            bounds.append(-(-tests // (len(degree) // 2)))
            smallest = min(degree, key=lambda region: (degree[region], region))
            tests -= degree.pop(smallest)
            for other, count in neighbours[smallest].items():
                if other in degree:
                    degree[other] -= count
    return max(bounds)


def rounds(pairs: Sequence[Pair], *, seed: int = 0, batch: int | None = None) -> list[list[Pair]]:
    """
    Put ordered pairs into rounds such that each region takes part in at most one test of a round.

    All ordered pairs of n regions take 2(n-1) rounds if n is even and 2n if n is odd (the circle method, which uses
    each matching once in each direction). Any other set of pairs takes `lower_bound` rounds or a few per cent more.

    Parameters
    ----------
    pairs : sequence of (from, to)
        The ordered pairs, each once.
    seed : int
        Seed of the random order of pairs and rounds. The same seed gives the same rounds.
    batch : int, optional
        Maximum number of tests in a round; with 1, the pairs are tested one after another. By default there is no
        maximum.

    Examples
    --------
    >>> [len(r) for r in rounds([(a, b) for a in "abcd" for b in "abcd" if a != b])]
    [2, 2, 2, 2, 2, 2]
    """
    chance = random.Random(seed)
    shuffled = sorted(pairs)
    chance.shuffle(shuffled)
    if batch == 1:
        colours = [[pair] for pair in shuffled]
    else:
        regions = sorted({region for pair in pairs for region in pair})
        if len(shuffled) == len(regions) * (len(regions) - 1):
            colours = _circle(regions, chance)
        else:
            colours = _coloured(shuffled, lower_bound(shuffled), chance)
        if batch is not None:
            colours = _levelled(colours, batch)
    chance.shuffle(colours)
    for colour in colours:
        chance.shuffle(colour)
    return colours


def _reachable(start: T, neighbours: Callable[[T], Iterable[T]]) -> set[T]:
    """Return all nodes that a path connects with `start`; `neighbours(node)` returns the adjacent nodes."""
    component, edge = set[T](), [start]
    while edge:
        one = edge.pop()
        if one not in component:
            component.add(one)
            edge.extend(neighbours(one))
    return component


def _circle(regions: Iterable[str], chance: random.Random) -> list[list[Pair]]:
    """Make the rounds by the circle method of round-robin tournaments: one region stays, the others rotate."""
    places: list[str | None] = list(regions)
    chance.shuffle(places)
    if len(places) % 2:
        places.append(None)
    out = []
    for _ in range(len(places) - 1):
        half = len(places) // 2
        matching = [
            (a, b) if chance.random() < 0.5 else (b, a)
            for a, b in zip(places[:half], reversed(places[half:]), strict=True)
            if a is not None and b is not None
        ]
        out += [matching, [(b, a) for a, b in matching]]
        places[1:] = [places[-1], *places[1:-1]]
    return out


def _coloured(pairs: Iterable[Pair], fewest: int, chance: random.Random) -> list[list[Pair]]:
    """
    Put pairs into rounds greedily: each round takes the pairs whose regions have the most tests left.

    Repeat this in up to `_TRIES` other orders until there are only `fewest` rounds; return the fewest rounds found.
    """
    order, best = list(pairs), LATER
    for _ in range(_TRIES):
        found = list(_greedy(order))
        best = found if best is None or len(found) < len(best) else best
        if len(best) <= fewest:
            break
        chance.shuffle(order)
    return best


def _greedy(left: Collection[Pair]) -> Iterator[list[Pair]]:
    while left:
        tests = Counter(region for pair in left for region in pair)
        left = sorted(left, key=lambda pair: sorted((tests[pair[0]], tests[pair[1]]), reverse=True), reverse=True)
        busy, taken, later = set(), [], []
        for pair in left:
            if busy.isdisjoint(pair):
                taken.append(pair)
                busy.update(pair)
            else:
                later.append(pair)
        yield sorted(taken)
        left = later


def _levelled(colours: Sequence[Collection[Pair]], batch: int) -> list[list[Pair]]:
    """
    Spread the pairs over enough colours that no colour has more than `batch` pairs.

    For two colours with unequal numbers of pairs, some path that alternates between them has one more pair of the more
    frequent colour. Exchanging the colours along this path moves one pair to the less frequent colour.
    """
    n_pairs = sum(map(len, colours))
    n_colours = max(len(colours), -(-n_pairs // batch))
    classes = [set(colour) for colour in colours] + [set() for _ in range(n_colours - len(colours))]
    while True:
        large = max(range(n_colours), key=lambda colour: len(classes[colour]))
        small = min(range(n_colours), key=lambda colour: len(classes[colour]))
        if len(classes[large]) <= batch:
            return [sorted(colour) for colour in classes if colour]
        _exchange(classes[large], classes[small])


def _exchange(large: set[Pair], small: set[Pair]) -> None:
    at: dict[str, list[Pair]] = defaultdict(list)
    for pair in [*sorted(large), *sorted(small)]:
        for region in pair:
            at[region].append(pair)
    seen: set[Pair] = set()
    for start in sorted(large):
        if start in seen:
            continue
        component = _reachable(start, lambda pair: [other for region in pair for other in at[region]])
        seen |= component
        from_large, from_small = component & large, component & small
        if len(from_large) > len(from_small):
            large ^= component
            small ^= component
            return
