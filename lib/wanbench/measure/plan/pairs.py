"""
Select the ordered pairs of regions to test, and schedule concurrent tests.

A round is a matching of the graph whose vertices are regions and whose edges are the pairs (both directions of a pair
are two edges), so the fewest rounds are an edge colouring of that graph.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from wanbench.checks import refusal
from wanbench.errors import ParameterError
from wanbench.regions import catalogue

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
    """Return the name if it has the form "<cloud>:<code>", which is also safe in file names."""
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
    *, pairs: Iterable | None = None, regions: Iterable[str] | None = None, cloud_pairs: Iterable[str] | None = None
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
    cloud_pairs : texts such as "gcp->aws", optional
        The pair leads from the first cloud to the second; "gcp->gcp" lies within one.

    Raises
    ------
    ParameterError
        For a malformed or unknown value, and when nothing is left, saying after which restriction.
    """
    candidates = selected = _candidates(pairs, regions)
    left = [f"{len(selected)} candidate pairs"]
    if cloud_pairs is not None:
        directed = {_cloud_pair(text) for text in cloud_pairs}
        there = {cloud(region) for p in candidates for region in p}
        if unknown := {name for ends in directed for name in ends} - there:
            unknown = ", ".join(map(repr, sorted(unknown)))
            raise ParameterError(f"No region of {unknown}; the clouds here are {', '.join(sorted(there))}.")
        selected = [p for p in candidates if (cloud(p[0]), cloud(p[1])) in directed]
        shown = ", ".join("->".join(ends) for ends in sorted(directed))
        left.append(f"{len(selected)} after cloud pairs {shown}")
    if not selected:
        raise ParameterError(f"No pair is left to test: {'; '.join(left)}.")
    return selected


def expected_rtts(pairs: Sequence[Pair], rtt_ms: Mapping[Pair, float]) -> dict[Pair, float]:
    """The expected RTT of each pair, in either direction."""
    expected = {}
    for p in pairs:
        value = rtt_ms.get(p, rtt_ms.get(p[::-1]))
        if value is None or not 0 <= value < float("inf"):
            raise ParameterError(f"rtt_ms of {p[0]}->{p[1]} is {value!r}; it must be a number of at least 0.")
        expected[p] = float(value)
    return expected


def _candidates(pairs, regions):
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
        raise ParameterError(f"Given more than once: {', '.join(sorted(twice))}.")
    return sorted(p for p in explicit if regions is None or set(p) <= set(allowed))


def _cloud_pair(text):
    ends = tuple(end.strip() for end in text.split("->")) if isinstance(text, str) else tuple(text)
    if len(ends) != 2 or not all(ends):
        raise ParameterError(f"cloud pair is {text!r}; allowed: two clouds, such as 'gcp->aws'.")
    return ends


_STEPS_PER_PAIR = 5
_TRIES = 20


def lower_bound(pairs: Sequence[Pair], batch: int | None = None) -> int:
    """
    A lower bound on the number of rounds: the maximum of the tests of the busiest region, of the tests divided by
    `batch`, and, over groups of regions, of the tests inside a group divided by how many fit into a round.

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
    Put ordered pairs into rounds in which every region takes part in at most one test.

    All directed pairs of n regions take 2(n-1) rounds for even n and 2n for odd n (the circle method, each matching
    used once in each direction); any other set of pairs is coloured by alternating paths, in `lower_bound` rounds or,
    rarely, one more.

    Parameters
    ----------
    pairs : sequence of (from, to)
        Each ordered pair once.
    seed : int
        Decides who meets when, and the order of the rounds. The same seed gives the same rounds.
    batch : int, optional
        Maximum number of tests in a round; 1 tests the pairs one after another. None: as many as fit.

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


def _reachable(start, neighbours) -> set:
    """What is connected with `start`; `neighbours` of a thing are those next to it."""
    component, edge = set(), [start]
    while edge:
        one = edge.pop()
        if one not in component:
            component.add(one)
            edge.extend(neighbours(one))
    return component


def _circle(regions, chance):
    """Circle method of round-robin tournaments: one region stays in place and the others rotate."""
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


class _Colouring:
    """Pairs with their colours; `at[region][colour]` is the pair of that colour there."""

    def __init__(self, n_colours):
        self.n_colours = n_colours
        self.at: dict[str, dict[int, Pair]] = defaultdict(dict)

    def missing(self, region):
        return [colour for colour in range(self.n_colours) if colour not in self.at[region]]

    def set(self, pair, colour):
        for region in pair:
            self.at[region][colour] = pair

    def unset(self, pair, colour):
        for region in pair:
            del self.at[region][colour]

    def path(self, region, first, second):
        """The pairs along the walk from `region` over colours first, second, first, ...; and its end."""
        walk, colour, other = [], first, second
        while colour in self.at[region]:
            pair = self.at[region][colour]
            walk.append((pair, colour))
            region = pair[1] if pair[0] == region else pair[0]
            colour, other = other, colour
        return walk, region

    def swap(self, path, first, second):
        for pair, colour in path:
            self.unset(pair, colour)
        for pair, colour in path:
            self.set(pair, first + second - colour)


def _coloured(pairs, n_colours, chance):
    """
    Colour edges one by one. If no colour is free at both ends, exchange the colours of an alternating (Kempe) path; if
    that fails, take the colour of a neighbouring edge and continue with that edge. When the allowed steps are
    exhausted, restart in another order; after some tries, with one more colour. Twice the maximum degree always
    suffices, so this ends.
    """
    order = list(pairs)
    while True:
        for _ in range(_TRIES):
            if colouring := _attempt(order, n_colours, chance):
                used: dict[int, set[Pair]] = defaultdict(set)
                for colour, pair in (item for colours in colouring.at.values() for item in colours.items()):
                    used[colour].add(pair)
                return [sorted(used[colour]) for colour in sorted(used)]
            chance.shuffle(order)
        n_colours += 1


def _attempt(order, n_colours, chance):
    colouring = _Colouring(n_colours)
    waiting = order[::-1]
    for _ in range(_STEPS_PER_PAIR * (len(order) + 10)):
        if not waiting:
            return colouring
        loose = _place(colouring, waiting.pop(), chance)
        if loose is not None:
            waiting.append(loose)
    return None


def _place(colouring, pair, chance):
    """Give the pair a colour; returns the pair that lost it, if any."""
    a, b = pair
    at_a, at_b = colouring.missing(a), colouring.missing(b)
    common = set(at_a) & set(at_b)
    if common:
        colouring.set(pair, min(common))
        return None
    for first in chance.sample(at_a, len(at_a)):
        for second in chance.sample(at_b, len(at_b)):
            path, end = colouring.path(b, first, second)
            if end != a:
                colouring.swap(path, first, second)
                colouring.set(pair, first)
                return None
    if not at_a and not at_b:
        return pair
    free, other = (at_b, a) if at_b and (not at_a or chance.random() < 0.5) else (at_a, b)
    colour = chance.choice(free)
    loose = colouring.at[other][colour]
    colouring.unset(loose, colour)
    colouring.set(pair, colour)
    return loose


def _levelled(colours, batch):
    """
    Spread the pairs evenly over enough colours that none has more than `batch`: of two unequal colours, some
    alternating path has one more pair of the larger; exchanging it moves one pair.
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


def _exchange(large, small):
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
