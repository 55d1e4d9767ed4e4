"""
Read the figures of an executed notebook, and fit their drawings into pictures with a source line and metadata.

The library's figure functions store in `layout.meta`: `name` (also the file name), `alt`, `caption`, and `csv` (the
numbers drawn, as CSV text). If `name` or `alt` is missing, it is derived from the figure's number or title.
"""

import csv
import io
import json
import re
import unicodedata
import zlib
from dataclasses import dataclass
from html import escape, unescape
from math import isfinite
from textwrap import wrap

import pandas as pd

from wanbench.figures import theme

from .provenance import LICENCE, Source

MIME = "application/vnd.plotly.v1+json"
PAGE_CONFIG = {"displayModeBar": False, "responsive": True}  # `page.js` has the tools, none of which asks a server
SHOWN_ROWS = 100


@dataclass(frozen=True)
class Figure:
    """
    One figure of a page.

    `name` (lower-case letters, digits and hyphens) is unique on the page. `title`, `subtitle`, `alt` and `caption` are
    plain text. `csv` holds the numbers drawn, with a header line. `data` and `layout` are Plotly's.
    """

    name: str
    title: str
    subtitle: str
    alt: str
    caption: str
    csv: str | None
    data: list[theme.Settings]
    layout: theme.Settings

    @property
    def height_px(self) -> int | None:
        """Return the height in pixels that the figure or its template sets; None if neither does."""
        template = self.layout.get("template", {}).get("layout", {})
        height = self.layout.get("height", template.get("height"))
        return int(height) if isinstance(height, (int, float)) and 0 < height < 10_000 else None

    def script(self) -> str:
        """Return the figure as JSON that is safe inside a script element."""
        layout = {key: value for key, value in self.layout.items() if key != "width"} | {"autosize": True}
        drawing = {"data": _rounded(self.data), "layout": layout, "config": PAGE_CONFIG}
        return script_json(drawing)

    def rows(self) -> tuple[list[str], list[list[str]], int]:
        """Return the header, the first `SHOWN_ROWS` rows, and the number of all rows of `csv`."""
        if not self.csv:
            return [], [], 0
        header, *rows = csv.reader(io.StringIO(self.csv))
        return header, rows[:SHOWN_ROWS], len(rows)

    def sidecar(self, source: Source) -> bytes:
        """Describe the CSV file (title, source, columns with types) in JSON, in the vocabulary of CSV on the Web."""
        types = {"i": "integer", "u": "integer", "f": "number", "b": "boolean"}
        columns = pd.read_csv(io.StringIO(self.csv)).dtypes.items()
        described = [{"titles": name, "datatype": types.get(kind.kind, "string")} for name, kind in columns]
        facts = {"dc:title": self.title, "dc:description": self.caption, "dc:source": source.line}
        facts |= {"dc:date": source.date, "dc:license": LICENCE, "dc:creator": source.software}
        content = {"@context": "http://www.w3.org/ns/csvw", "url": f"{self.name}.csv"}
        content |= {name: value for name, value in facts.items() if value} | {"tableSchema": {"columns": described}}
        return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def script_json(value: object) -> str:
    """
    Return a value as JSON that is safe inside a script element.

    >>> script_json({"title": "</script>"})
    '{"title":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def read_figure(content: theme.Settings, number: int, taken: set[str]) -> Figure:
    """
    Read a figure from `content`, Plotly's JSON in the output of a cell.

    `number` is the figure's position on the page, from 1; a figure without a name is named after it. Add the name to
    `taken`, the names in use.
    """
    layout = dict(content["layout"])
    meta = layout.pop("meta", {})
    heading = layout.get("title", {})
    title = _plain(heading.get("text"))
    return Figure(
        name=anchor_for(str(meta.get("name") or f"figure-{number}"), taken),
        title=title,
        subtitle=_plain((heading.get("subtitle") or {}).get("text")),
        alt=theme.shortened(str(meta.get("alt") or title or f"Figure {number}")),
        caption=str(meta.get("caption") or ""),
        csv=meta.get("csv"),
        data=content["data"],
        layout=layout,
    )


def _rounded(value: object) -> object:
    """Return Plotly's data with seven significant digits, more than a screen can show; whole numbers stay."""
    if isinstance(value, float) and isfinite(value) and value != round(value):
        return float(f"{value:.7g}") if abs(value) < 1e6 else round(value, 1)
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, (list, tuple)) else value


def anchor_for(text: str, taken: set[str]) -> str:
    """
    Return a unique anchor for a heading, or a unique name for a figure, and add it to `taken`.

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


MIN_WIDTH_PX, MAX_SCALE = 900, 1.5  # A drawing narrower than this has no room for its labels; larger text looks coarse.
TITLE_PX, SUBTITLE_PX, RAISED_PX = 24, 17, 13  # Heights of lines of a heading.
CHARACTER_EM = 0.62  # The mean width of a character.
PNG_START = b"\x89PNG\r\n\x1a\n"


def canvas(figure: Figure, size: tuple[int, int], line: str) -> tuple[int, int, float]:
    """
    Return the width and height at which to draw a figure, and the scale that fits the drawing into a picture.

    `size` is the width and height of the picture, in pixels like all sizes; `line` is the source line below the
    drawing. The drawing is at least as high as the figure requires and at least `MIN_WIDTH_PX` wide, so no text is cut.
    """
    width, height = size[0], size[1] - _strip_px(size, line)
    scale = min(MAX_SCALE, height / (figure.height_px or theme.HEIGHT_PX), width / MIN_WIDTH_PX)
    return round(width / scale), round(height / scale), scale


def fitted(figure: Figure, width: int) -> theme.Settings:
    """Return a figure's layout without width and height, and with title and subtitle wrapped to `width` pixels."""
    layout = {key: value for key, value in figure.layout.items() if key not in ("width", "height")}
    if not figure.title:
        return layout
    heading = layout["title"]
    subheading = heading.get("subtitle") or {}
    title, subtitle = (
        wrap(text, int((width - 28) / (CHARACTER_EM * px))) for text, px in ((figure.title, 18), (figure.subtitle, 12))
    )
    texts = {"subtitle": subheading | {"text": "<br>".join(map(theme.plain, subtitle))}}
    more = SUBTITLE_PX * (len(subtitle) - (subheading.get("text") or "").count("<br>") - 1) if subtitle else 0
    if len(title) > 1:  # Plotly draws the first of several lines higher than a single one
        texts |= {"text": "<br>".join(map(theme.plain, title)), "pad": {"t": 14 + RAISED_PX, "l": 14}}
        more += TITLE_PX * (len(title) - 1) + RAISED_PX
    usual = layout.get("template", {}).get("layout", {}).get("margin", {})
    margin = layout.get("margin", {})
    layout |= {"title": heading | texts, "margin": margin | {"t": (usual | margin).get("t", 100) + more}}
    return layout


def framed(svg: bytes, figure: Figure, size: tuple[int, int], line: str) -> bytes:
    """Put an SVG drawing, drawn at the size that `canvas` returns, into a picture of `size`, above the source line."""
    width, height = size
    strip, font = _strip_px(size, line), _font_px(size)
    look = figure.layout.get("template", {}).get("layout", {})
    paper = figure.layout.get("paper_bgcolor", look.get("paper_bgcolor", "white"))
    muted = look.get("title", {}).get("subtitle", {}).get("font", {}).get("color", theme.MUTED)
    drawn = svg.decode()
    drawn = drawn[drawn.index("<svg") :]
    across, high, _ = canvas(figure, size, line)
    inner = re.sub(r' (width|height|viewBox)="[^"]*"', "", drawn[: drawn.index(">")])
    place = f' x="0" y="0" width="{width}" height="{height - strip}" viewBox="0 0 {across} {high}"'
    texts = "".join(
        f'<text x="14" y="{height - strip + (n + 1) * 1.4 * font:.0f}">{escape(text)}</text>'
        for n, text in enumerate(_source_lines(size, line))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<rect width="{width}" height="{height}" fill="{escape(paper)}"/>{inner}{place}{drawn[drawn.index(">") :]}'
        f'<g class="source" font-family="{theme.FONT}" font-size="{font}" fill="{escape(muted)}">{texts}</g></svg>'
    ).encode()


def _font_px(size: tuple[int, int]) -> int:
    return max(11, round(size[0] / 100))


def _source_lines(size: tuple[int, int], line: str) -> list[str]:
    return wrap(line, int((size[0] - 28) / (CHARACTER_EM * _font_px(size))))


def _strip_px(size: tuple[int, int], line: str) -> int:
    return round((1.4 * len(_source_lines(size, line)) + 0.7) * _font_px(size)) if line else 0


def stamped(picture: bytes, ending: str, figure: Figure, source: Source) -> bytes:
    """Write title, description, source, date, licence and software into a picture, an SVG or PNG file."""
    return _stamped_svg(picture, figure, source) if ending == "svg" else _stamped_png(picture, figure, source)


def _stamped_svg(svg: bytes, figure: Figure, source: Source) -> bytes:
    text = svg.decode()
    end = text.index(">")
    facts = {"title": figure.title, "description": figure.alt, "source": source.line, "date": source.date}
    facts |= {"rights": LICENCE, "creator": source.software}
    core = "".join(f"<dc:{name}>{escape(value)}</dc:{name}>" for name, value in facts.items() if value)
    head = (
        f"<title>{escape(figure.title or figure.name)}</title><desc>{escape(figure.alt)}</desc><metadata>"
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f'<rdf:Description rdf:about="">{core}</rdf:Description></rdf:RDF></metadata>'
    )
    return f'{text[:end]} role="img">{head}{text[end + 1 :]}'.encode()


def _stamped_png(png: bytes, figure: Figure, source: Source) -> bytes:
    facts = {"Title": figure.title or figure.name, "Description": figure.alt, "Source": source.line}
    facts |= {"Creation Time": source.date, "Copyright": LICENCE, "Software": source.software}
    texts = [b"iTXt" + name.encode() + b"\0\0\0\0\0" + value.encode() for name, value in facts.items() if value]
    chunks = b"".join((len(text) - 4).to_bytes(4) + text + zlib.crc32(text).to_bytes(4) for text in texts)
    end = len(PNG_START) + 25  # the header: length, type, 13 bytes, checksum
    return png[:end] + chunks + png[end:]
