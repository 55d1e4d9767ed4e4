"""
What figures share: the template (`theme`), maps (`map`, `coastline`) and the schedule of a run (`schedule`).

The figure of a result stands beside the result, as `<name>_figure.py`. Every figure carries in `layout.meta`: `name`
(file stem), `alt`, `caption`, and `csv`, the numbers behind it. No figure reads a file.
"""

from .map import region_map
from .schedule import rounds
from .theme import SIZES

__all__ = ["SIZES", "region_map", "rounds"]
