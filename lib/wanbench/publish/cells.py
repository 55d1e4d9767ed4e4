"""Split an executed notebook into the parts of a page: text, folded code, and output."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass, field

from markupsafe import Markup
from nbconvert.filters.ansi import ansi2html
from nbconvert.filters.highlight import Highlight2HTML
from nbformat import NotebookNode

from wanbench.formatting import count

from . import figures, provenance
from .cleaning import clean
from .figures import Figure
from .formulas import Heading, TextRenderer
from .tags import COVER, LEFT_OUT, tags

EMPTY = Markup("")
PRIORITY = (
    figures.MIME,
    provenance.MIME,
    "text/html",
    "text/markdown",
    "image/svg+xml",
    "image/png",
    "image/jpeg",
    "text/latex",
    "text/plain",
)


@dataclass
class Part:
    """
    One part of a page, in reading order.

    `kind` is "text" (with `html`), "code" (with `html`: the highlighted source) or "output" (with `html`,
    or with `figure`).
    """

    kind: str
    html: Markup = EMPTY
    figure: Figure | None = None


@dataclass
class Parts:
    """All parts of a page, with headings, figures (and the one for the front page) and runs."""

    parts: list[Part] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    cover: Figure | None = None
    runs: list[dict] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The text of the first heading; "" if there is none."""
        return self.headings[0].text if self.headings else ""

    @property
    def lead(self) -> Markup:
        """The first paragraph of text; "" if there is none."""
        for part in self.parts:
            if part.kind == "text" and (found := re.search(r"<p>(.*?)</p>", part.html, re.DOTALL)):
                return Markup(re.sub(r"</?a\b[^>]*>", "", found[1]))
        return EMPTY


def read_cells(notebook: NotebookNode) -> Parts:
    """
    The parts of a page.

    Standard error is dropped: it shows progress, which differs between runs. Code cells without output are joined with
    the next code. Sections that are left out are listed at the end, with their reasons.

    Raises
    ------
    RawDataError
        A figure of the notebook cannot be read.
    """
    renderer = TextRenderer()
    highlight = Highlight2HTML(pygments_lexer="ipython3")
    found = Parts(headings=renderer.headings)
    names: set[str] = set()
    missing: list[str] = []
    for cell in notebook.cells:
        if LEFT_OUT in cell.metadata:
            if reason := cell.metadata[LEFT_OUT]:
                heading = cell.source.strip().splitlines()[0].lstrip("# ")
                missing.append(f"{heading}: {reason}")
        elif cell.cell_type == "markdown":
            found.parts.append(Part("text", Markup(renderer.html_of(cell.source))))
        elif cell.cell_type == "code" and cell.source.strip():
            outputs = [part for output in cell.outputs for part in _read_output(output, found, names)]
            if COVER in tags(cell):
                found.cover = next((part.figure for part in outputs if part.figure), found.cover)
            if _is_provenance(cell):
                continue
            code = Markup(highlight(cell.source))
            if found.parts and found.parts[-1].kind == "code":
                found.parts[-1].html += code
            else:
                found.parts.append(Part("code", code))
            found.parts += outputs
    if missing:
        listed = Markup().join(Markup("<li>{}</li>").format(text) for text in missing)
        note = '<details class="note"><summary>{} left out</summary><ul>{}</ul></details>'
        are = f"{count(len(missing), 'section')} {'is' if len(missing) == 1 else 'are'}"
        found.parts.append(Part("output", Markup(note).format(are, listed)))
    return found


def _is_provenance(cell: NotebookNode) -> bool:
    return any(provenance.MIME in output.get("data", {}) for output in cell.outputs)


def _read_output(output: NotebookNode, found: Parts, names: set[str]) -> list[Part]:
    if output.output_type == "stream":
        return [] if output.name == "stderr" else [_preformatted(output.text)]
    if output.output_type == "error":
        return [_preformatted("\n".join(output.traceback))]
    kind = next((kind for kind in PRIORITY if kind in output.data), None)
    content = output.data.get(kind)
    if kind == figures.MIME:
        figure = figures.read_figure(content, len(found.figures) + 1, names)
        found.figures.append(figure)
        return [Part("output", figure=figure)]
    if kind == provenance.MIME:
        found.runs += content["runs"]
        return []
    return [Part("output", _html_of(kind, content))] if kind else []


def _html_of(kind: str, content: str) -> Markup:
    match kind:
        case "text/html":
            reachable = ' tabindex="0"' if "<table" in content else ""  # so that the keyboard can scroll it
            return Markup(f'<div class="wide"{reachable}>{clean(content)}</div>')
        case "text/markdown" | "text/latex":
            return Markup(clean(TextRenderer().html_of(content)))
        case "image/svg+xml":
            return _image(kind, b64encode(content.encode()).decode())
        case "image/png" | "image/jpeg":
            return _image(kind, content.strip())
    return _preformatted(content).html


def _image(kind: str, base64: str) -> Markup:
    return Markup('<img alt="Output of the code above" src="data:{};base64,{}">').format(kind, base64)


def _preformatted(text: str) -> Part:
    return Part("output", Markup(f'<pre class="printed">{ansi2html(text)}</pre>'))
