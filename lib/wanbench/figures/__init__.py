"""
What figures share: the template (`theme`), drawing primitives (`primitives`), maps (`map`, `coastline`), and the
schedule of a run (`schedule`).

The figure of a result is in the same folder as the result, as `<name>_figure.py`. Every figure has in
`layout.meta`: `name` (file stem), `alt`, `caption`, and `csv`, the numbers drawn. Figures read no file but
the coastline.
"""

from .theme import SIZES

__all__ = ["SIZES"]
