"""
Draw figures as SVG, PNG and PDF files, for a page or on their own, or write them as a snippet of HTML.

Kaleido draws every figure of a site as SVG, all with one browser. Each drawing is framed with its source line; the same
browser then converts it to PNG or PDF.
"""

import asyncio
import hashlib
import json
import re
import threading
from base64 import b64decode
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import kaleido
import plotly
from choreographer.browsers.chromium import Chromium

from wanbench.checks import LATER, refusal
from wanbench.errors import ParameterError, WanbenchError
from wanbench.figures import theme
from wanbench.files import replace_file, replaced_folder
from wanbench.runs import origin

from . import figures
from .cells import read_cells
from .figures import Figure, canvas, fitted, framed, script_json, stamped
from .notebooks import did_you_mean, find_notebook, read_notebook
from .provenance import Source, source_of

# Pages show the small size, for which the form without pixels is enough; `wanbench figure` draws any size in any form.
SIZES_PX = {(1200, 675): ("svg", "png"), (800, 450): ("svg",)}
SHORTER = (  # What an SVG drawing says at length, and the same in fewer bytes.
    (rb' (?:d|transform)="[^"]*"', lambda place: re.sub(rb"(\.\d\d)\d+", rb"\1", place[0])),
    (rb"rgb\((\d+), (\d+), (\d+)\)", lambda colour: b"#%02x%02x%02x" % tuple(map(int, colour.groups()))),
    (rb"(?<=[ \"])(?:fill|stroke)-opacity: 1;", b""),
    (rb' style="[^"]*"', lambda style: re.sub(rb"([;:]) +", rb"\1", style[0])),
)
POINT = re.compile(rb'<path class="point"(?: transform="([^"]*)"| d="([^"]*)"| style="([^"]*)"){3}/>')
KEY = "drawn-from.sha256"
START_S = 60
RENDER_S = 60
EXPORT_PX = {"blog": (1200, 675), "wide": (1600, 600), "square": (1080, 1080), "slide": (1920, 1080)}
LIBRARY = "plotly.min.js"


class StaticFilesError(WanbenchError, RuntimeError):
    """The SVG and PNG files of a figure could not be drawn."""


def browser() -> str | None:
    """Return the path of the Chromium-based browser that draws pictures; None if this machine has none."""
    return Chromium.find_browser(skip_local=False)


def static_names(name: str) -> list[str]:
    """
    Return the names of the SVG and PNG files of the figure `name`.

    >>> static_names("rtt")
    ['rtt-1200x675.svg', 'rtt-1200x675.png', 'rtt-800x450.svg']
    """
    return [f"{name}-{width}x{height}.{ending}" for (width, height), endings in SIZES_PX.items() for ending in endings]


def normalised_svg(svg: bytes) -> bytes:
    """
    Return an SVG drawing with a fixed id instead of a random one, and coordinates cut to hundredths of a pixel.

    Equal figures thus give equal files, half as large as Plotly's.
    """
    found = re.search(rb'id="defs-([0-9a-f]{6})"', svg)
    svg = svg.replace(found[1], b"000000") if found else svg
    for pattern, shorter in SHORTER:
        svg = re.sub(pattern, shorter, svg)
    return _reused(svg)


def _reused(svg: bytes) -> bytes:
    """Define each symbol that marks ten or more points once, and refer to it at every point."""
    many = [mark for mark, n in Counter(found[1:] for found in POINT.findall(svg)).items() if n > 9]
    if not many:
        return svg
    names = {mark: b"mark%d" % number for number, mark in enumerate(many)}
    defined = b"".join(b'<path id="%s" d="%s" style="%s"/>' % (names[mark], *mark) for mark in many)

    def placed(point: re.Match[bytes]) -> bytes:
        name = names.get((point[2], point[3]))
        return b'<use xlink:href="#%s" transform="%s"/>' % (name, point[1]) if name else point[0]

    head, _, rest = POINT.sub(placed, svg).partition(b">")
    return head + b"><defs>" + defined + b"</defs>" + rest


class Renderer:
    """
    Draw figures with one browser, which starts with the first figure and stops at the end of the `with` block.

    The folder `kept` caches pictures: a figure is drawn again only if the figure, its source line, this module, the
    browser, Plotly or Kaleido has changed.
    """

    def __init__(self, kept: Path = LATER):
        self.kept, self._kaleido = kept, None
        self._loop = self._thread = LATER  # a thread, as the browser sends messages between figures, too

    def __enter__(self):
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = LATER

    def write(self, figure: Figure, folder: Path, page: str, source: Source) -> list[Path]:
        """
        Write the SVG and PNG files of a figure into a folder, and return their paths.

        The cached copy is in `kept`, under the names of the page and the figure. Raise StaticFilesError if the browser
        is missing, does not start, or cannot draw the figure.
        """
        names = static_names(figure.name)
        drawing = self.kept / page / figure.name
        key = _key(figure, source.line, names)
        if not _is_kept(drawing, key, names):
            with replaced_folder(drawing) as fresh:
                for (width, height), endings in SIZES_PX.items():
                    for ending, picture in self.draw(figure, (width, height), endings, source.line).items():
                        (fresh / f"{figure.name}-{width}x{height}.{ending}").write_bytes(picture)
                (fresh / KEY).write_text(key)
        for name in names:
            (folder / name).write_bytes(stamped((drawing / name).read_bytes(), name[-3:], figure, source))
        return [folder / name for name in names]

    def draw(self, figure: Figure, size: tuple[int, int], endings: Sequence[str], line: str) -> dict[str, bytes]:
        """
        Draw a figure above its source line at `size` (width, height in pixels), and return the pictures by ending.

        `endings` are the formats: svg, png, pdf.
        """

        def drawn() -> dict[str, bytes]:
            self._start()
            return self._wait(_pictures(self._kaleido, figure, size, endings, line), RENDER_S)

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

    def _wait(self, coroutine: Coroutine[Any, Any, Any], timeout_s: float) -> Any:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout_s)
        except BaseException:
            future.cancel()
            raise


def _key(figure: Figure, line: str, names: list[str]) -> str:
    """Return a hash of everything that affects the pictures of a figure, except metadata."""
    path = browser()
    code = [Path(file).read_text("utf-8") for file in (__file__, figures.__file__)]
    drawn_by = [version("kaleido"), version("plotly"), path, Path(path).stat().st_mtime_ns if path else None, code]
    text = json.dumps([figure.data, figure.layout, line, names, drawn_by], sort_keys=True)
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


async def _pictures(
    drawer: kaleido.Kaleido, figure: Figure, size: tuple[int, int], endings: Sequence[str], line: str
) -> dict[str, bytes]:
    width, height, _ = canvas(figure, size, line)
    # fixed uids instead of random ones
    data = [{**trace, "uid": f"{n:06x}"} for n, trace in enumerate(figure.data)]
    options = {"format": "svg", "width": width, "height": height, "scale": 1}
    drawn = await drawer.calc_fig({"data": data, "layout": fitted(figure, width)}, opts=options)
    svg = framed(normalised_svg(drawn), figure, size, line)
    return {one: svg if one == "svg" else await _converted(drawer, svg, one, size, figure.title) for one in endings}


TO_PNG = """(async () => {{
  const image = new Image(), canvas = document.createElement("canvas");
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent({svg});
  await image.decode();
  [canvas.width, canvas.height] = {size};
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/png").split(",")[1];
}})()"""
TO_PAGE = "document.title = {title}; document.body.style.margin = 0; document.body.innerHTML = {svg};"


async def _converted(drawer: kaleido.Kaleido, svg: bytes, ending: str, size: tuple[int, int], title: str) -> bytes:
    """Return an SVG drawing as PNG or PDF."""
    script = TO_PNG if ending == "png" else TO_PAGE
    texts = {name: json.dumps(value) for name, value in (("svg", svg.decode()), ("size", size), ("title", title))}
    tab = await drawer.create_tab("about:blank")
    asked = {"expression": script.format(**texts), "awaitPromise": True, "returnByValue": True}
    answer = (await tab.send_command("Runtime.evaluate", asked))["result"]
    if "exceptionDetails" in answer:
        raise StaticFilesError(f"the browser cannot draw the picture: {answer['exceptionDetails']}")
    if ending == "png":
        content = answer["result"]["value"]
    else:
        paper = {"paperWidth": size[0] / 96, "paperHeight": size[1] / 96, "printBackground": True, "pageRanges": "1"}
        margins = dict.fromkeys(("marginTop", "marginBottom", "marginLeft", "marginRight"), 0)
        content = (await tab.send_command("Page.printToPDF", paper | margins))["result"]["data"]
    await drawer.close_tab(tab.target_id)
    return b64decode(content)


def find_figure(path: str, root: Path, title: str | None = None, *, dark: bool = False) -> tuple[Figure, Source]:
    """
    Find a figure by "PAGE/NAME" in the page's executed notebook, and return it with its source.

    `title` replaces the figure's own; with `dark`, the figure has colours for a dark background. Raise ParameterError,
    which lists what exists, if there is no such page or figure, or the page was not made yet.
    """
    page, _, name = path.partition("/")
    if not (page and name):
        raise refusal("figure", path, "PAGE/NAME, such as 02/throughput-against-distance")
    stem = find_notebook(page, root).stem
    executed = root / "build" / "notebooks" / f"{stem}.ipynb"
    if not executed.is_file():
        raise ParameterError(f"page {stem} is not made yet; make it first: wanbench report {stem}")
    notebook = read_notebook(executed)
    cells = read_cells(notebook)
    named = {figure.name: figure for figure in cells.figures}
    if name not in named:
        allowed = ", ".join(named) or "none, the page has no figures"
        raise ParameterError(f"page {stem} has no figure {name!r}{did_you_mean(name, named)}; allowed: {allowed}.")
    figure = named[name]
    if title is not None:
        heading = figure.layout.get("title", {}) | {"text": theme.plain(title)}
        figure = replace(figure, title=title, layout=figure.layout | {"title": heading})
    if dark:
        figure = replace(figure, data=theme.recoloured(figure.data), layout=theme.recoloured(figure.layout))
    return figure, source_of(stem, notebook, cells.runs, origin())


def export(figure: Figure, source: Source, size: str, ending: str, path: Path) -> list[Path]:
    """
    Write a figure to `path`, with its source line, and return the paths written.

    `ending` is the format: "svg", "png", "pdf" or "html". `size` is a key of `EXPORT_PX`.
    """
    if ending == "html":
        replace_file(path, snippet(figure, source, EXPORT_PX[size]).encode())
        return [path, put_library(path)]
    with Renderer() as renderer:
        picture = renderer.draw(figure, EXPORT_PX[size], (ending,), source.line)[ending]
    replace_file(path, picture if ending == "pdf" else stamped(picture, ending, figure, source))
    return [path]


def put_library(path: Path) -> Path:
    """Write the script `LIBRARY` next to a file that has a snippet, and return its path."""
    library = path.with_name(LIBRARY)
    replace_file(library, (Path(str(plotly.__file__)).parent / "package_data" / LIBRARY).read_bytes())
    return library


def snippet(figure: Figure, source: Source, size: tuple[int, int]) -> str:
    """Return HTML that draws a figure with the script `LIBRARY`, with the source in the drawing and below it."""
    cited = replace(figure, subtitle=f"{figure.subtitle} {source.line}.".strip())
    layout = fitted(cited, size[0]) | {"width": size[0], "height": max(size[1], figure.height_px or 0)}
    drawing = {"data": figure.data, "layout": layout, "config": {"displayModeBar": False}}
    place = f"wanbench-{figure.name}"
    return f"""<figure style="margin: 0; overflow-x: auto">
<div id="{place}" role="img" aria-label="{escape(figure.alt)}" style="height: {layout["height"]}px"></div>
<figcaption>{escape(figure.caption)} <small>{escape(source.line)}.</small></figcaption>
<script src="{LIBRARY}"></script>
<script>Plotly.newPlot("{place}", {script_json(drawing)});</script>
</figure>
"""
