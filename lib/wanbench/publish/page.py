"""Write one page of the site from an executed notebook: its HTML and the files of its figures."""

import json
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import jinja2
from markupsafe import Markup

from wanbench import __version__
from wanbench.files import replace_file, replaced_folder
from wanbench.runs import origin

from .cells import Heading, Part, read_cells
from .execute import Executed
from .figures import Figure, Renderer, StaticFilesError, static_names
from .notebooks import kind

PACKAGES = ("numpy", "pandas", "pyarrow", "scipy", "plotly", "papermill", "nbconvert")


@dataclass(frozen=True)
class Page:
    """
    The values that the template of a page shows.

    `lead` is the first paragraph. `drawn` has the names of the figures with SVG and PNG files, `cover` the name of the
    figure for the front page. `static_note` says why such files are missing. `commit` is that of the checkout.
    """

    name: str
    title: str
    lead: Markup
    headings: tuple[Heading, ...]
    parts: tuple[Part, ...]
    figures: tuple[Figure, ...]
    drawn: frozenset[str]
    cover: str
    kind: str
    parameters: tuple[tuple[str, object, str], ...]
    runs: tuple[dict, ...]
    replay_reason: str | None
    remark: str | None
    static_note: str | None
    versions: tuple[tuple[str, str], ...]
    commit: str | None
    local_changes: bool
    static_names: Callable[[str], list[str]] = static_names


def versions() -> tuple[tuple[str, str], ...]:
    """Return names and versions of wanbench, Python and the main packages."""
    own = (("wanbench", __version__), ("Python", platform.python_version()))
    return (*own, *((name, version(name)) for name in PACKAGES))


def templates() -> jinja2.Environment:
    """Return the environment of the HTML templates, which escape every value that is not Markup."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("wanbench.publish", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["tojson_plain"] = lambda value: json.dumps(value, ensure_ascii=False)
    environment.tests["numeric"] = _numeric
    return environment


def make_page(executed: Executed, site: Path, renderer: Renderer | None, *, replay_reason=None, remark=None) -> Page:
    """
    Write a page and the files of its figures below the folder `site`, and return the page.

    `renderer` draws the SVG and PNG files; without it there are none, and the page says so. The top of the page shows
    `replay_reason` (why the page shows the committed recording) and `remark`.
    """
    cells = read_cells(executed.notebook)
    drawn, note = set(), None
    if cells.figures and renderer is None:
        note = "The figures on this page have no SVG and PNG files: the machine that made it has no Chromium."
    with replaced_folder(site / "figures" / executed.name) as folder:
        for figure in cells.figures:
            if figure.csv:
                (folder / f"{figure.name}.csv").write_bytes(figure.csv.encode())
            if renderer is None or note:
                continue
            try:
                renderer.write(figure, folder, executed.name)
                drawn.add(figure.name)
            except StaticFilesError as error:
                note = f"Not all figures on this page have SVG and PNG files: {error}"
    made_from = origin()
    covers = [cells.cover] if cells.cover else cells.figures
    page = Page(
        name=executed.name,
        title=cells.title or executed.name,
        lead=cells.lead,
        **{name: tuple(getattr(cells, name)) for name in ("headings", "parts", "figures", "runs")},
        drawn=frozenset(drawn),
        cover=next((figure.name for figure in covers if figure.name in drawn), ""),
        kind=kind(executed.notebook),
        parameters=executed.parameters,
        replay_reason=replay_reason,
        remark=remark,
        static_note=note,
        versions=versions(),
        commit=made_from["git_commit"],
        local_changes=bool(made_from["git_dirty"]),
    )
    html = templates().get_template("page.html").render(page=page)
    replace_file(site / f"{page.name}.html", html.encode())
    return page


def _numeric(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True
