"""Figures as SVG and PNG files in blog sizes: one browser, by Kaleido, for all figures of a site."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shutil
import threading
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import kaleido
from choreographer.browsers.chromium import Chromium

from wanbench.errors import WanbenchError
from wanbench.files import replaced_folder

from .figures import Figure

SIZES_PX = ((1200, 675), (800, 450))
ENDINGS = ("svg", "png")
KEY = "drawn-from.sha256"
START_S = 60
RENDER_S = 60


class StaticFilesError(WanbenchError, RuntimeError):
    """The static files of a figure could not be made."""


def browser() -> str | None:
    """The path of the Chromium-based browser that draws static figures; None if this machine has none."""
    return Chromium.find_browser(skip_local=False)


def static_names(name: str) -> list[str]:
    """
    The names of a figure's files.

    >>> static_names("rtt")
    ['rtt-1200x675.svg', 'rtt-1200x675.png', 'rtt-800x450.svg', 'rtt-800x450.png']
    """
    return [f"{name}-{width}x{height}.{ending}" for width, height in SIZES_PX for ending in ENDINGS]


def normalised_svg(svg: bytes) -> bytes:
    """The drawing with the plot's random id replaced, so that equal figures give equal files."""
    found = re.search(rb'id="defs-([0-9a-f]{6})"', svg)
    return svg.replace(found[1], b"000000") if found else svg


class Renderer:
    """
    Draws figures in one browser, which starts with the first figure; a context manager that stops it.

    Parameters
    ----------
    kept : Path or None
        A folder for copies of what was drawn, so that a figure is drawn again only when it, the browser or
        Kaleido has changed; None draws every time.
    """

    def __init__(self, kept: Path | None = None):
        self.kept = kept
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._kaleido = None

    def __enter__(self) -> Renderer:
        return self

    def __exit__(self, *exception) -> None:
        self._close()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = None

    def write(self, figure: Figure, folder: Path, page: str = "") -> list[Path]:
        """
        Write all static files of a figure into a folder.

        Parameters
        ----------
        figure : Figure
        folder : Path
        page : str
            The page it stands on; with the figure's name, the name of its kept copy.

        Raises
        ------
        StaticFilesError
            The browser is missing, does not start, or cannot draw the figure.
        """
        names = static_names(figure.name)
        if self.kept is None:
            self._draw_all(figure, folder)
        else:
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
            except TimeoutError:  # on a busy machine, browsers were seen that never answer
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
            raise StaticFilesError("static figures need Chromium, and this machine has none.")
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="static figures", daemon=True)
            self._thread.start()
        page = kaleido.PageGenerator(mathjax=False)
        drawer = self._wait(_opened(page, path), START_S)
        self._kaleido = drawer

    def _wait(self, coroutine, timeout_s: float):
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout_s)
        except BaseException:
            future.cancel()
            raise


def _drawing(figure: Figure) -> dict:
    """The figure for Plotly, without what only a screen can use; with fixed uids, which would otherwise be random."""
    left_out = ("width", "height", "meta", "sliders", "updatemenus")
    layout = {key: value for key, value in figure.layout.items() if key not in left_out}
    return {"data": [{**trace, "uid": f"{n:06x}"} for n, trace in enumerate(figure.data)], "layout": layout}


def _key(figure: Figure) -> str:
    """A hash of everything that affects a figure's static files."""
    path = browser()
    drawn_by = [version("kaleido"), version("plotly"), path, Path(path).stat().st_mtime_ns if path else None]
    text = json.dumps([_drawing(figure), SIZES_PX, drawn_by], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _is_kept(drawing: Path, key: str, names: list[str]) -> bool:
    try:
        return (drawing / KEY).read_text() == key and all((drawing / name).is_file() for name in names)
    except FileNotFoundError:
        return False


async def _opened(page: kaleido.PageGenerator, path: str) -> kaleido.Kaleido:
    drawer = kaleido.Kaleido(n=1, page_generator=page, path=path, timeout=RENDER_S)
    await drawer.open()
    return drawer
