"""
Read the figures of an executed notebook.

The library's figure functions store in `layout.meta`: `name` (also the file name), `alt`, `caption`, and `csv` (the
numbers drawn, as CSV text). If `name` or `alt` is missing, it is derived from the figure's number or title.
"""

import csv
import io
import json
import re
import unicodedata
from dataclasses import dataclass
from html import unescape
from math import isfinite
from textwrap import shorten

import pandas as pd

from .provenance import LICENCE, Source

MIME = "application/vnd.plotly.v1+json"
PAGE_CONFIG = {"displayModeBar": False, "responsive": True}  # `page.js` has the tools, none of which asks a server
SHOWN_ROWS = 100
ALT_CHARACTERS = 250  # More than a screen reader should say in one go.


@dataclass(frozen=True)
class Figure:
    """
    One figure of a page.

    `name` (lower-case letters, digits and hyphens) is unique on the page. `title`, `subtitle`, `alt` and `caption` are
    plain text, and `description` is the whole of an `alt` that was too long. `csv` holds the numbers drawn, with a
    header line. `data` and `layout` are Plotly's.
    """

    name: str
    title: str
    subtitle: str
    alt: str
    description: str
    caption: str
    csv: str | None
    data: list
    layout: dict

    @property
    def height_px(self) -> int | None:
        """Return the height that the figure or its template sets; None if neither does."""
        template = self.layout.get("template", {}).get("layout", {})
        height = self.layout.get("height", template.get("height"))
        return int(height) if isinstance(height, (int, float)) and 0 < height < 10_000 else None

    def script(self) -> str:
        """Return the figure as JSON that is safe inside a script element."""
        layout = {key: value for key, value in self.layout.items() if key != "width"} | {"autosize": True}
        drawing = {"data": _rounded(self.data), "layout": layout, "config": PAGE_CONFIG}
        text = json.dumps(drawing, sort_keys=True, separators=(",", ":"))
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

    def rows(self) -> tuple[list[str], list[list[str]], int]:
        """Return the header, the first `SHOWN_ROWS` rows, and the number of all rows of `csv`."""
        if not self.csv:
            return [], [], 0
        header, *rows = csv.reader(io.StringIO(self.csv))
        return header, rows[:SHOWN_ROWS], len(rows)

    def sidecar(self, source: Source) -> bytes:
        """Return what the CSV file holds (title, source, columns), as JSON in the terms of CSV on the Web."""
        types = {"i": "integer", "u": "integer", "f": "number", "b": "boolean"}
        columns = pd.read_csv(io.StringIO(self.csv)).dtypes.items()
        described = [{"titles": name, "datatype": types.get(kind.kind, "string")} for name, kind in columns]
        facts = {"dc:title": self.title, "dc:description": self.caption, "dc:source": source.line}
        facts |= {"dc:date": source.date, "dc:license": LICENCE, "dc:creator": source.software}
        content = {"@context": "http://www.w3.org/ns/csvw", "url": f"{self.name}.csv"}
        content |= {name: value for name, value in facts.items() if value} | {"tableSchema": {"columns": described}}
        return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def read_figure(content: dict, number: int, taken: set[str]) -> Figure:
    """
    Read a figure from `content`, Plotly's JSON in the output of a cell.

    `number` counts the figures of the page from 1, and names a figure without a name. Add the figure's name to `taken`,
    the names in use.
    """
    layout = dict(content["layout"])
    meta = layout.pop("meta", {})
    heading = layout.get("title", {})
    title = _plain(heading.get("text"))
    described = str(meta.get("alt") or title or f"Figure {number}")
    alt = short_alt(described)
    return Figure(
        name=anchor_for(str(meta.get("name") or f"figure-{number}"), taken),
        title=title,
        subtitle=_plain((heading.get("subtitle") or {}).get("text")),
        alt=alt,
        description=described if alt != described else "",
        caption=str(meta.get("caption") or ""),
        csv=meta.get("csv"),
        data=content["data"],
        layout=layout,
    )


def short_alt(text: str) -> str:
    """
    Return the first sentences of an alt text, at most `ALT_CHARACTERS` long; if even the first is longer, its start.

    >>> short_alt("Two lines rise. " + "They never fall below light. " * 9).count("They")
    8
    """
    sentences = re.split(r"(?<=[.!?]) (?=[A-Z])", text)
    kept = next(k for k in range(len(sentences), -1, -1) if len(" ".join(sentences[:k])) <= ALT_CHARACTERS)
    return " ".join(sentences[:kept]) or shorten(text, ALT_CHARACTERS, placeholder=" …")


def _rounded(value):
    """Return Plotly's data with seven significant digits, more than a screen can show; whole numbers stay."""
    if isinstance(value, float) and isfinite(value) and value != round(value):
        return float(f"{value:.7g}") if abs(value) < 1e6 else round(value, 1)
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, (list, tuple)) else value


def anchor_for(text: str, taken: set[str]) -> str:
    """
    Return a unique anchor for a heading or name for a figure, and add it to `taken`.

    >>> anchor_for("RTT, by distance", set())
    'rtt-by-distance'
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "section"
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}-{number}", number + 1
    taken.add(name)
    return name


def _plain(text: str | None) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text or "")).split())
