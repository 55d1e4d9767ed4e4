"""
Name, alternative text and numbers of an executed notebook's figures.

A figure function puts these into the figure's `layout.meta`: `name` (also the file name), `alt`, `caption`, and `csv`
(the numbers behind it, as CSV text). Missing ones are derived from the title, except the numbers.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import re
from dataclasses import dataclass
from html import unescape

from wanbench.errors import RawDataError

from .formulas import anchor_for

MIME = "application/vnd.plotly.v1+json"
PAGE_CONFIG = {"displaylogo": False, "responsive": True}
SHOWN_ROWS = 200


@dataclass(frozen=True)
class Figure:
    """
    One figure of a page.

    Parameters
    ----------
    name : str
        Small letters, digits and hyphens; unique on the page.
    title, subtitle, alt, caption : str
        Plain text.
    csv : str or None
        The numbers behind it, with a header line.
    data, layout : list, dict
        Data and layout of the Plotly figure, without the numbers in `layout.meta`.
    frames : tuple
        Frames of an animated figure; `data` and `layout` are those of its static files.
    """

    name: str
    title: str
    subtitle: str
    alt: str
    caption: str
    csv: str | None
    data: list
    layout: dict
    frames: tuple = ()

    @property
    def height_px(self) -> int | None:
        """The figure's own height; None if the page decides."""
        template = self.layout.get("template", {}).get("layout", {})
        height = self.layout.get("height", template.get("height"))
        return int(height) if isinstance(height, (int, float)) and 0 < height < 10_000 else None

    def script(self) -> str:
        """The figure as JSON, safe inside a script element."""
        layout = {key: value for key, value in self.layout.items() if key != "width"} | {"autosize": True}
        config = PAGE_CONFIG | {"toImageButtonOptions": {"filename": self.name}}
        drawing = {"data": self.data, "layout": layout, "config": config}
        if self.frames:
            drawing["frames"] = self.frames
        text = json.dumps(drawing, sort_keys=True, separators=(",", ":"))
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

    def rows(self) -> tuple[list[str], list[list[str]], int]:
        """Header, the first `SHOWN_ROWS` rows, and the total number of rows."""
        if not self.csv:
            return [], [], 0
        header, *rows = csv.reader(io.StringIO(self.csv))
        return header, rows[:SHOWN_ROWS], len(rows)


def read_figure(content: dict, number: int, taken: set[str]) -> Figure:
    """
    The figure in a notebook's output.

    Parameters
    ----------
    content : dict
        Plotly's JSON.
    number : int
        The figure's number on the page, from 1; names it if nothing else does.
    taken : set of str
        Names of the figures before it; its own is added.

    Raises
    ------
    RawDataError
        The content is not a figure, or its numbers are not CSV.
    """
    place = f"figure {number}"
    if not isinstance(content, dict) or not isinstance(content.get("data"), list):
        raise RawDataError(place, None, str(content), "a Plotly figure with data and layout")
    layout = copy.deepcopy(content.get("layout") or {})
    meta = layout.pop("meta", None)
    meta = dict(meta) if isinstance(meta, dict) else {}
    numbers = meta.pop("csv", None)
    if numbers is not None:
        _check_csv(numbers, place)
    if meta:
        layout["meta"] = meta
    heading = layout.get("title")
    heading = heading if isinstance(heading, dict) else {"text": heading}
    title = _plain(heading.get("text"))
    return Figure(
        name=anchor_for(str(meta.get("name") or f"figure-{number}"), taken),
        title=title,
        subtitle=_plain((heading.get("subtitle") or {}).get("text")),
        alt=str(meta.get("alt") or title or f"Figure {number}"),
        caption=str(meta.get("caption") or ""),
        csv=numbers or None,
        data=content["data"],
        layout=layout,
        frames=tuple(content.get("frames") or ()),
    )


def _check_csv(numbers: object, place: str) -> None:
    if not isinstance(numbers, str):
        raise RawDataError(place, None, str(numbers), "CSV text in layout.meta.csv")
    try:
        rows = list(csv.reader(io.StringIO(numbers), strict=True))
    except csv.Error as error:
        raise RawDataError(place, None, str(error), "CSV text in layout.meta.csv") from None
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise RawDataError(place, None, f"rows of {sorted(widths)} fields", "CSV rows of equal length")


def _plain(text: object) -> str:
    """The text of a title, without Plotly's markup."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split()) if isinstance(text, str) else ""
