"""
Read the figures of an executed notebook, and draw them as SVG and PNG files in two sizes for blogs.

The library's figure functions store in `layout.meta`: `name` (also the file name), `alt`, `caption`, and `csv` (the
numbers drawn, as CSV text). If `name` or `alt` is missing, it is derived from the figure's number or title. Kaleido
draws the files of a whole site with one browser.
"""

import asyncio
import csv
import hashlib
import io
import json
import re
import shutil
import threading
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from html import unescape
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from textwrap import shorten

import kaleido
from choreographer.browsers.chromium import Chromium

from wanbench.errors import WanbenchError
from wanbench.files import replaced_folder

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


SIZES_PX = ((1200, 675), (800, 450))
ENDINGS = ("svg", "png")
SHORTER = (  # What an SVG drawing says at length, and the same in fewer bytes.
    (rb' (?:d|transform)="[^"]*"', lambda place: re.sub(rb"(\.\d\d)\d+", rb"\1", place[0])),
    (rb"rgb\((\d+), (\d+), (\d+)\)", lambda colour: b"#%02x%02x%02x" % tuple(map(int, colour.groups()))),
    (rb"(?<=[ \"])(?:fill|stroke)-opacity: 1;", b""),
    (rb' style="[^"]*"', lambda style: re.sub(rb"([;:]) +", rb"\1", style[0])),
)
KEY = "drawn-from.sha256"
START_S = 60
RENDER_S = 60


class StaticFilesError(WanbenchError, RuntimeError):
    """The SVG and PNG files of a figure could not be drawn."""


def browser() -> str | None:
    """Return the path of the Chromium-based browser that draws SVG and PNG files; None if this machine has none."""
    return Chromium.find_browser(skip_local=False)


def static_names(name: str) -> list[str]:
    """
    Return the names of the SVG and PNG files of the figure `name`.

    >>> static_names("rtt")
    ['rtt-1200x675.svg', 'rtt-1200x675.png', 'rtt-800x450.svg', 'rtt-800x450.png']
    """
    return [f"{name}-{width}x{height}.{ending}" for width, height in SIZES_PX for ending in ENDINGS]


def normalised_svg(svg: bytes) -> bytes:
    """
    Return an SVG drawing with a fixed id instead of a random one, and coordinates of hundredths of a pixel.

    Equal figures thus give equal files, which are a third smaller.
    """
    found = re.search(rb'id="defs-([0-9a-f]{6})"', svg)
    svg = svg.replace(found[1], b"000000") if found else svg
    for pattern, shorter in SHORTER:
        svg = re.sub(pattern, shorter, svg)
    return svg


class Renderer:
    """
    Draw figures with one browser, which starts with the first figure and stops at the end of the `with` block.

    The folder `kept` caches drawings: a figure is drawn again only if the figure, the browser, Plotly or Kaleido has
    changed.
    """

    def __init__(self, kept: Path):
        self.kept, self._kaleido = kept, None
        self._loop = self._thread = None  # a thread, as the browser sends messages between figures, too

    def __enter__(self):
        return self

    def __exit__(self, *exception) -> None:
        self._close()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = None

    def write(self, figure: Figure, folder: Path, page: str) -> list[Path]:
        """
        Write the SVG and PNG files of a figure into a folder, and return their paths.

        The cached copy is in `kept`, under the names of the page and the figure. Raise StaticFilesError if the browser
        is missing, does not start, or cannot draw the figure.
        """
        names = static_names(figure.name)
        drawing = self.kept / page / figure.name
        key = _key(figure)
        if not _is_kept(drawing, key, names):
            with replaced_folder(drawing) as fresh:
                self._draw_all(figure, fresh)
                (fresh / KEY).write_text(key)
        for name in names:
            shutil.copyfile(drawing / name, folder / name)
        return [folder / name for name in names]

    def _draw_all(self, figure: Figure, folder: Path) -> None:
        for path in (folder / name for name in static_names(figure.name)):
            width, height = (int(number) for number in re.findall(r"(\d+)x(\d+)", path.stem)[-1])
            content = self._draw(figure, width, height, path.suffix[1:])
            path.write_bytes(normalised_svg(content) if path.suffix == ".svg" else content)

    def _draw(self, figure: Figure, width: int, height: int, ending: str) -> bytes:
        options = {"format": ending, "width": width, "height": height, "scale": 1}

        def drawn() -> bytes:
            self._start()
            return self._wait(self._kaleido.calc_fig(_drawing(figure), opts=options), RENDER_S)

        try:
            try:
                return drawn()
            except TimeoutError:  # on a busy machine, a browser sometimes never answers
                self._close()
                return drawn()
        except StaticFilesError:
            raise
        except Exception as error:  # Kaleido, choreographer and the browser raise many kinds
            raise StaticFilesError(f"figure {figure.name}: {type(error).__name__}: {error}") from error

    def _close(self) -> None:
        if self._kaleido is not None:
            with suppress(Exception):  # the browser may be gone already
                self._wait(self._kaleido.close(), START_S)
            self._kaleido = None

    def _start(self) -> None:
        if self._kaleido is not None:
            return
        path = browser()
        if path is None:
            raise StaticFilesError("SVG and PNG files need Chromium, and this machine has none.")
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="static figures", daemon=True)
            self._thread.start()
        self._kaleido = self._wait(_opened(path), START_S)

    def _wait(self, coroutine, timeout_s: float):
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout_s)
        except BaseException:
            future.cancel()
            raise


def _drawing(figure: Figure) -> dict:
    """Return the figure without its size, and with fixed uids instead of random ones."""
    layout = {key: value for key, value in figure.layout.items() if key not in ("width", "height")}
    return {"data": [{**trace, "uid": f"{n:06x}"} for n, trace in enumerate(figure.data)], "layout": layout}


def _key(figure: Figure) -> str:
    """Return a hash of everything that affects the SVG and PNG files of a figure."""
    path = browser()
    changed_ns = Path(path).stat().st_mtime_ns if path else None
    drawn_by = [[str(pattern) for pattern, _ in SHORTER], version("kaleido"), version("plotly"), path, changed_ns]
    text = json.dumps([_drawing(figure), SIZES_PX, drawn_by], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _is_kept(drawing: Path, key: str, names: list[str]) -> bool:
    try:
        return (drawing / KEY).read_text() == key and all((drawing / name).is_file() for name in names)
    except FileNotFoundError:
        return False


async def _opened(path: str) -> kaleido.Kaleido:
    page = kaleido.PageGenerator(mathjax=False)
    drawer = kaleido.Kaleido(n=1, page_generator=page, path=path, timeout=RENDER_S)
    await drawer.open()
    return drawer
