"""
Draw figures as pictures: SVG, PNG and PDF files with headings that fit, a source line, and metadata on what they show.

Kaleido draws the figures of a whole site with one browser, which also converts the framed drawings.
"""

import asyncio
import hashlib
import json
import re
import threading
import zlib
from base64 import b64decode
from contextlib import suppress
from html import escape
from importlib.metadata import version
from pathlib import Path
from textwrap import wrap

import kaleido
from choreographer.browsers.chromium import Chromium

from wanbench.errors import WanbenchError
from wanbench.figures import theme
from wanbench.files import replaced_folder

from .figures import Figure
from .provenance import LICENCE, Source

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
MIN_WIDTH_PX, MAX_SCALE = 900, 1.5  # A drawing narrower than this has no room for its labels; larger text looks coarse.
TITLE_PX, SUBTITLE_PX, CHARACTER_EM = 22, 17, 0.62  # Heights of lines of a heading; width of a character of the font.
PNG_START = b"\x89PNG\r\n\x1a\n"


def canvas(figure: Figure, size: tuple[int, int], line: str) -> tuple[int, int, float]:
    """
    Return width, height and scale of the drawing of a figure in a picture of `size`, above its source line.

    The drawing is at least as high as the figure wants to be, and at least `MIN_WIDTH_PX` wide, so that no text is cut.
    """
    width, height = size[0], size[1] - _strip_px(size, line)
    scale = min(MAX_SCALE, height / (figure.height_px or theme.HEIGHT_PX), width / MIN_WIDTH_PX)
    return round(width / scale), round(height / scale), scale


def fitted(figure: Figure, width: int) -> dict:
    """Return the layout of a figure without its size, with title and subtitle wrapped to `width` in pixels."""
    layout = {key: value for key, value in figure.layout.items() if key not in ("width", "height")}
    if not figure.title:
        return layout
    heading = layout["title"]
    texts = (heading.get("text"), (heading.get("subtitle") or {}).get("text"))
    sizes = (18, 12)
    plain = (figure.title, figure.subtitle)
    lines = [wrap(text, int((width - 28) / (CHARACTER_EM * px))) for text, px in zip(plain, sizes, strict=True)]
    before = [len((text or "").split("<br>")) if text else 0 for text in texts]
    title, subtitle = ("<br>".join(map(theme.plain, part)) for part in lines)
    title = texts[0] if len(lines[0]) == 1 else title
    layout["title"] = heading | {"text": title, "subtitle": (heading.get("subtitle") or {}) | {"text": subtitle}}
    more = TITLE_PX * (len(lines[0]) - before[0]) + SUBTITLE_PX * (len(lines[1]) - before[1])
    usual = layout.get("template", {}).get("layout", {}).get("margin", {})
    margin = usual | layout.get("margin", {})
    layout["margin"] = layout.get("margin", {}) | {"t": margin.get("t", 100) + more}
    return layout


def framed(svg: bytes, figure: Figure, size: tuple[int, int], line: str) -> bytes:
    """Put an SVG drawing made for `canvas` into a picture of `size`, above the source line."""
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
    chunks = b"".join(
        _chunk(b"iTXt", name.encode() + b"\0\0\0\0\0" + value.encode()) for name, value in facts.items() if value
    )
    end = len(PNG_START) + 25  # the header: length, type, 13 bytes, checksum
    return png[:end] + chunks + png[end:]


def _chunk(kind: bytes, content: bytes) -> bytes:
    return len(content).to_bytes(4) + kind + content + zlib.crc32(kind + content).to_bytes(4)


class StaticFilesError(WanbenchError, RuntimeError):
    """The SVG and PNG files of a figure could not be drawn."""


def browser() -> str | None:
    """Return the path of the Chromium-based browser that draws pictures; None if this machine has none."""
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

    The folder `kept` caches pictures: a figure is drawn again only if the figure, its source line, this module, the
    browser, Plotly or Kaleido has changed.
    """

    def __init__(self, kept: Path | None = None):
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

    def write(self, figure: Figure, folder: Path, page: str, source: Source) -> list[Path]:
        """
        Write the SVG and PNG files of a figure into a folder, and return their paths.

        The cached copy is in `kept`, under the names of the page and the figure. Raise StaticFilesError if the browser
        is missing, does not start, or cannot draw the figure.
        """
        names = static_names(figure.name)
        drawing = self.kept / page / figure.name
        key = _key(figure, source.line)
        if not _is_kept(drawing, key, names):
            with replaced_folder(drawing) as fresh:
                for width, height in SIZES_PX:
                    for ending, picture in self.draw(figure, (width, height), ENDINGS, source.line).items():
                        (fresh / f"{figure.name}-{width}x{height}.{ending}").write_bytes(picture)
                (fresh / KEY).write_text(key)
        for name in names:
            (folder / name).write_bytes(stamped((drawing / name).read_bytes(), name[-3:], figure, source))
        return [folder / name for name in names]

    def draw(self, figure: Figure, size: tuple[int, int], endings, line: str) -> dict[str, bytes]:
        """Draw a figure above its source line, and return a picture for each of the `endings` svg, png and pdf."""

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

    def _wait(self, coroutine, timeout_s: float):
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout_s)
        except BaseException:
            future.cancel()
            raise


def _key(figure: Figure, line: str) -> str:
    """Return a hash of everything that affects the pictures of a figure, except for their metadata."""
    path, code = browser(), hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    drawn_by = [version("kaleido"), version("plotly"), path, Path(path).stat().st_mtime_ns if path else None, code]
    text = json.dumps([figure.data, figure.layout, line, SIZES_PX, drawn_by], sort_keys=True)
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


async def _pictures(drawer: kaleido.Kaleido, figure: Figure, size, endings, line: str) -> dict[str, bytes]:
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
