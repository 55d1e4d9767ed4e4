"""Write one page of the site from an executed notebook: its HTML and the files of its figures."""

import json
import platform
from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import jinja2
from markupsafe import Markup

from wanbench import __version__
from wanbench.files import replace_file, replaced_folder
from wanbench.findings import Finding
from wanbench.methods.claims.ledger import Audit, articles_on
from wanbench.runs import origin

from .cells import Parts, clean, read_cells
from .execute import Executed
from .jobs import Job
from .notebooks import DEMONSTRATION, kind, title_tags
from .pictures import Renderer, StaticFilesError, browser, static_names
from .provenance import Facts, source_of

PACKAGES = ("numpy", "pandas", "pyarrow", "scipy", "plotly", "papermill", "nbconvert")


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


def make_page(
    executed: Executed, site: Path, renderer: Renderer | None, job: Job, answers: Sequence[Finding] = ()
) -> SimpleNamespace:
    """
    Write a page and the files of its figures below the folder `site`, and return the values that its template shows.

    `renderer` draws the SVG and PNG files; without it the page says that there are none. The top of the page shows
    `answers` (the findings that answer its question), and why the job shows the committed recording, and its remark.

    Among the values, `lead` is the first paragraph, `where` and `days` say where and on which days the data were
    measured, and `basis` says so in a sentence. `sources` are the articles whose claims the page tests. `drawn` has the
    names of the figures with SVG and PNG files, `cover` the name of the figure for the front page, and `static_note`
    says why such files are missing. `source_line` is printed below every drawing.
    """
    cells = read_cells(executed.notebook)
    made_from, drawn, note = origin(), set(), None
    source = source_of(executed.name, executed.notebook, cells.runs, made_from)
    if cells.figures and renderer is None:
        why = "a batch draws none: wanbench run does" if browser() else "the machine that made the page has no Chromium"
        note = f"The figures on this page have no SVG and PNG files, because {why}."
    with replaced_folder(site / "figures" / executed.name) as folder:
        for figure in cells.figures:
            if figure.csv:
                (folder / f"{figure.name}.csv").write_bytes(figure.csv.encode())
                (folder / f"{figure.name}.json").write_bytes(figure.sidecar(source))
            if renderer is None or note:
                continue
            try:
                renderer.write(figure, folder, executed.name, source)
                drawn.add(figure.name)
            except StaticFilesError as error:
                note = f"Not all figures on this page have SVG and PNG files: {error}"
    where = _where(cells.runs)
    demonstrates = DEMONSTRATION in title_tags(executed.notebook) and Path(job.source).stem == "quick"
    days = tuple(sorted({run["started_at_utc"][:10] for run in cells.runs if run["started_at_utc"]}))
    shown = {name: getattr(cells, name) for name in ("headings", "parts", "appendix", "figures", "runs")}
    page = SimpleNamespace(
        name=executed.name,
        title=cells.title or executed.name,
        lead=cells.lead,
        **shown,
        answers=answers,
        where=where,
        days=days,
        basis=_basis(where, days, job.replay_reason, demonstrates),
        sources=articles_on(executed.name),
        drawn=drawn,
        cover=_cover(cells, drawn),
        kind=kind(executed.notebook),
        parameters=executed.parameters,
        replay_reason=job.replay_reason,
        remark=job.remark,
        static_note=note,
        source_line=source.line,
        static_names=static_names,
        versions=versions(),
        commit=made_from["git_commit"],
        local_changes=bool(made_from["git_dirty"]),
    )
    html = templates().get_template("page.html").render(page=page)
    replace_file(site / f"{page.name}.html", html.encode())
    return page


def write_claims_page(audit: Audit, path: Path) -> Path:
    """Write a stand-alone page for the claims of an article, with the style inside, and return its path."""
    claims = Markup(clean(audit._repr_html_()))  # pyright: ignore[reportPrivateUsage]  # nosec B704  # cleaned
    return write_alone("claims.html", path, title=audit.article.title if audit.article else audit.source, claims=claims)


def write_alone(template: str, path: Path, **shown: object) -> Path:
    """Write a page outside any site from a template and the values `shown`, with the style inside; return its path."""
    # A file of this package.
    style = Markup(files("wanbench.publish").joinpath("assets/site.css").read_text("utf-8"))  # nosec B704
    html = templates().get_template(template).render(style=style, version=__version__, **shown)
    replace_file(path, html.encode())
    return path


def _where(runs: list[Facts]) -> str:
    local = all(run["lab"].startswith("local") for run in runs)
    labs = "on emulated links on one machine" if local else f"on hosts: {', '.join(run['lab'] for run in runs)}"
    return labs if runs else ""


def _basis(where: str, days: tuple[str, ...], replay_reason: str | None, is_demonstration: bool) -> str:
    if not where:
        return "This page measures nothing: its data are published, recorded, simulated, or findings of other pages."
    measured = f"Measured {where}, on {' and '.join(dict.fromkeys((days[0], days[-1]))) if days else 'an unknown day'}."
    if is_demonstration:
        measured = (
            "This page is a demonstration: its trials are few and short, so they decide few questions. The preset "
            f"“full” has more and longer trials. {measured}"
        )
    return f"{measured} This page shows that recording. {replay_reason}" if replay_reason else measured


_TALLEST_PX = 1_000
"""A cover is 450 px high: its text would be half as large as in a figure of this height, and hard to read."""


def _cover(cells: Parts, drawn: set[str]) -> str:
    wanted = [cells.cover] if cells.cover else [one for one in cells.figures if (one.height_px or 0) <= _TALLEST_PX]
    return next((figure.name for figure in wanted if figure.name in drawn), "")


def _numeric(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True
