"""
What figures share: the look (`theme`), and drawing primitives with a world map (`primitives`).

Every figure has in `layout.meta`: `name` (file stem), `alt`, `caption`, and `csv`, the numbers drawn. Figures read no
file but the coastline.
"""
