"""Split an executed notebook into the parts of its page: text with formulas as MathML, code, and sanitised output."""

import re
from base64 import b64encode
from dataclasses import dataclass, field
from html import escape, unescape

from latex2mathml.converter import convert
from markupsafe import Markup
from nbconvert.filters.ansi import ansi2html
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat import NotebookNode

from wanbench.formatting import count

from . import provenance
from .figures import MIME, Figure, anchor_for, read_figure
from .notebooks import APPENDIX, COVER, LEFT_OUT, heading_level, tags


@dataclass(frozen=True)
class Heading:
    """A heading of a page: level (1 to 6), text without markup, and anchor."""

    level: int
    text: str
    anchor: str


class FormulaError(ValueError):
    """A formula cannot be converted to MathML; the message quotes it."""


def mathml(source: str, display: str = "inline") -> str:
    """
    Convert LaTeX to MathML. Raise FormulaError if the text is not LaTeX or uses an unknown command.

    >>> mathml("x")
    '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow><mi>x</mi></mrow></math>'
    """
    try:
        shown = convert(source.strip(), display=display)
    except Exception as error:  # latex2mathml raises many kinds, IndexError among them
        raise FormulaError(f"{source.strip()!r} is not a formula: {type(error).__name__}.") from None
    if unknown := re.search(r"\\[A-Za-z]+", shown):
        raise FormulaError(f"{source.strip()!r} is not a formula: the command {unknown[0]} is not known.")
    return shown


class TextRenderer(IPythonRenderer):
    """Render the Markdown cells of one page, and collect their headings."""

    def __init__(self):
        super().__init__(escape=False, exclude_anchor_links=True)
        self.headings: list[Heading] = []
        self.latest = "Table"
        self._taken = {"content", "contents", "provenance"}

    def heading(self, text: str, level: int, **attrs: object) -> str:
        """Render a heading with an anchor, and add it to `headings`."""
        plain = unescape(re.sub(r"<[^>]+>", "", text))
        anchor = anchor_for(plain, self._taken)
        self.latest = plain
        self.headings.append(Heading(level, plain, anchor))
        link = f' <a class="anchor" href="#{anchor}" tabindex="-1" aria-hidden="true">#</a>' if level > 1 else ""
        return f'<h{level} id="{anchor}">{text}{link}</h{level}>\n'

    def table(self, text: str) -> str:
        """Render a table that scrolls on its own on narrow screens."""
        return f'<div class="wide">{_captioned(f"<table>{text}</table>", self.latest)}</div>\n'

    def inline_math(self, body: str) -> str:
        """Render a formula within a line of text."""
        return _shown(body, "inline")

    def block_math(self, body: str) -> str:
        """Render a formula on lines of its own."""
        return _shown(body, "block")

    def latex_environment(self, name: str, body: str) -> str:
        """Render a formula in a LaTeX environment."""
        return _shown(rf"\begin{{{name}}}{body}\end{{{name}}}", "block")

    def html_of(self, source: str) -> str:
        """Convert the Markdown of a cell to HTML."""
        return MarkdownWithMath(renderer=self).render(source)


def _captioned(html: str, heading: str) -> str:
    """Caption each uncaptioned table with the heading above it, for screen readers and as the label of the fold."""
    return BARE_TABLE.sub(lambda table: f'{table[0]}<caption class="unseen">{escape(heading)}</caption>', html)


def _shown(body: str, display: str) -> str:
    try:
        return mathml(body, display)
    except FormulaError:
        return f'<code class="formula">{escape(body)}</code>'


TEXT_TAGS = """
    a abbr b blockquote br caption code col colgroup dd del details div dl dt em h2 h3 h4 h5 h6 hr i ins kbd
    li mark ol p pre q s samp small span strong sub summary sup table tbody td tfoot th thead time tr u ul var
"""
FORMULA_TAGS = """
    math mfrac mi mn mo mover mpadded mphantom mroot mrow mspace msqrt mstyle msub msubsup msup mtable mtd
    mtext mtr munder munderover
"""
ATTRIBUTES = {
    "*": ["class", "title", "lang", "dir", "style"],
    "a": ["href"],
    "col": ["span"],
    "details": ["open"],
    "li": ["value"],
    "math": ["display", "xmlns"],
    "mi": ["mathvariant"],
    "mo": ["stretchy", "fence", "form", "separator", "lspace", "rspace"],
    "mspace": ["width", "linebreak"],
    "mtable": ["displaystyle", "rowspacing", "columnspacing"],
    "mtd": ["columnalign"],
    "ol": ["start"],
    "td": ["colspan", "rowspan", "headers"],
    "th": ["colspan", "rowspan", "headers", "scope"],
    "time": ["datetime"],
}
STYLE_ELEMENT = re.compile(r"<style\b[^>]*>.*?</style\s*>", re.DOTALL | re.IGNORECASE)

EMPTY_HEAD = re.compile(r"<th((?:\s[^>]*)?)>\s*</th>")
EMPTY_BODY = re.compile(r"<tbody>\s*</tbody>")
NUMBER_CELL = re.compile(r"<td>(-?[0-9][0-9,]*(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?|NaN)</td>")

_cleaner = SanitizeHTML(tags=[*TEXT_TAGS.split(), *FORMULA_TAGS.split()], attributes=ATTRIBUTES)
_text_attributes = {"*": [*ATTRIBUTES["*"], "id", "tabindex", "aria-hidden"], "img": ["src", "alt", "width", "height"]}
_text_cleaner = SanitizeHTML(tags=[*_cleaner.tags, "h1", "img"], attributes=ATTRIBUTES | _text_attributes)


def clean(html: str) -> str:
    """
    Make the HTML of an output safe, and prepare its tables for the style sheet.

    Escape unsafe elements, and drop style elements, which pandas adds to tables.

    >>> clean('<b>4 ms</b><script>alert()</script>')
    '<b>4 ms</b>&lt;script&gt;alert()&lt;/script&gt;'

    Mark table cells that contain only a number, so that the style sheet can align them.

    >>> clean('<table><tbody><tr><td>3.2</td><td>aws</td></tr></tbody></table>')
    '<table><tbody><tr><td class="number">3.2</td><td>aws</td></tr></tbody></table>'

    Turn column headings without text, such as that of an index, into ordinary cells. Write "none" into a table without
    rows.

    >>> clean('<table><tbody></tbody></table>')
    '<table><tbody><tr><td colspan="99">none</td></tr></tbody></table>'
    """
    harmless = _cleaner.sanitize_html_tags(STYLE_ELEMENT.sub("", html))
    headed = EMPTY_HEAD.sub("<td></td>", harmless)
    numbered = NUMBER_CELL.sub(r'<td class="number">\1</td>', headed)
    return EMPTY_BODY.sub('<tbody><tr><td colspan="99">none</td></tr></tbody>', numbered)


BARE_TABLE = re.compile(r"<table[^>]*>(?!\s*<caption)")
FIRST_HEADING = re.compile(r"<h[1-6][^>]*>.*?</h[1-6]>", re.DOTALL)
CAPTION = re.compile(r"<caption[^>]*>([^<]*)</caption>")
SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[^a-z])")
OPEN_ROWS, OPEN_TABLES = 12, 8  # What a reader takes in of a table, and of a page, without asking for more.
EMPTY = Markup("")
FORMATS = "text/html text/markdown image/svg+xml image/png image/jpeg text/latex text/plain"
PRIORITY = (MIME, provenance.MIME, *FORMATS.split())


@dataclass
class Part:
    """
    One part of a page: its kind ("text", "code" or "output"), and its HTML or, for a figure, the figure.

    `caption` is the figure's caption without the sentences that the page already shows above.
    """

    kind: str
    html: Markup = EMPTY
    figure: Figure | None = None
    caption: str = ""


@dataclass
class Section:
    """A section that the page shows folded below the article."""

    heading: Heading
    parts: list[Part] = field(default_factory=list)


@dataclass
class Parts:
    """The parts of a page in order; its headings, figures and runs; and `cover`, the figure for the front page."""

    parts: list[Part] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    appendix: list[Section] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    cover: Figure | None = None
    runs: list[provenance.Facts] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Return the text of the first heading, or "" without headings."""
        return self.headings[0].text if self.headings else ""

    @property
    def lead(self) -> Markup:
        """Return the first paragraph of text without its links, or "" without text."""
        for part in self.parts:
            if part.kind == "text" and (match := re.search(r"<p>(.*?)</p>", part.html, re.DOTALL)):
                return Markup(re.sub(r"</?a\b[^>]*>", "", match[1]))  # nosec B704  # links are taken from cleaned HTML
        return EMPTY


def read_cells(notebook: NotebookNode) -> Parts:
    """
    Split a notebook into the parts of its page.

    Drop standard error, because it shows progress, which differs between runs. Join a code cell that has no output with
    the next code cell. At the end, list the optional sections that were left out for lack of data, with the reasons.
    """
    renderer = TextRenderer()
    highlight = Highlight2HTML(pygments_lexer="ipython3")
    page = Parts(headings=renderer.headings)
    names: set[str] = set()
    missing: list[str] = []
    target, folded_level = page.parts, 0
    for cell in notebook.cells:
        if LEFT_OUT in cell.metadata:
            if reason := cell.metadata[LEFT_OUT]:
                heading = cell.source.strip().splitlines()[0].lstrip("# ")
                missing.append(f"{heading}: {reason}")
        elif cell.cell_type == "markdown":
            html = _text_cleaner.sanitize_html_tags(renderer.html_of(cell.source))
            if 0 < heading_level(cell) <= folded_level:
                target, folded_level = page.parts, 0
            if APPENDIX in tags(cell):
                page.appendix.append(Section(renderer.headings.pop()))
                target, folded_level = page.appendix[-1].parts, heading_level(cell)
                html = FIRST_HEADING.sub("", html, count=1)
            target.append(Part("text", Markup(html)))  # nosec B704  # cleaned
        elif cell.cell_type == "code" and cell.source.strip():
            outputs = [part for output in cell.outputs for part in _read_output(output, page, names, renderer.latest)]
            if COVER in tags(cell):
                page.cover = next((part.figure for part in outputs if part.figure), page.cover)
            if any(provenance.MIME in output.get("data", {}) for output in cell.outputs):
                continue
            code = Markup(highlight(cell.source))  # nosec B704  # highlight escapes
            if target and target[-1].kind == "code":
                target[-1].html += code
            else:
                target.append(Part("code", code))
            target += outputs
    if missing:
        listed = Markup().join(Markup("<li>{}</li>").format(text) for text in missing)
        note = '<details class="note"><summary>{} left out</summary><ul>{}</ul></details>'
        are = f"{count(len(missing), 'section')} {'is' if len(missing) == 1 else 'are'}"
        page.parts.append(Part("output", Markup(note).format(are, listed)))  # nosec B704  # a literal
    _fold_tables(page.parts)
    for parts in (page.parts, *(section.parts for section in page.appendix)):
        _write_captions(parts)
    return page


def _fold_tables(parts: list[Part]) -> None:
    """Fold tables of more than `OPEN_ROWS` rows, and shorter ones after the first `OPEN_TABLES` of these."""
    shown = 0
    for part in parts:
        if part.kind == "output" and (rows := part.html.count("</tr>")) and 'ledger">' not in part.html:
            shown += rows <= OPEN_ROWS
            if rows > OPEN_ROWS or shown > OPEN_TABLES:
                title = CAPTION.search(part.html)
                label = f"{unescape(title[1]) if title else 'Table'} ({count(rows - 1, 'row')})"
                part.html = Markup('<details class="table"><summary>{}</summary>{}</details>').format(label, part.html)


def _write_captions(parts: list[Part]) -> None:
    """Write each figure's caption without the sentences that an unfolded output above it states."""
    stated = ""
    for part in parts:
        if part.figure:
            sentences = re.split(SENTENCE_END, part.figure.caption)
            part.caption = " ".join(sentence for sentence in sentences if sentence not in stated)
        elif part.kind == "output" and not part.html.startswith("<details"):
            stated += f" {part.html.striptags()}"


def _read_output(output: NotebookNode, page: Parts, names: set[str], heading: str) -> list[Part]:
    if output.output_type == "stream":
        return [] if output.name == "stderr" else [_preformatted(output.text)]
    if output.output_type == "error":
        return [_preformatted("\n".join(output.traceback))]
    kind = next((kind for kind in PRIORITY if kind in output.data), None)
    content = output.data.get(kind)
    if kind == MIME:
        figure = read_figure(content, len(page.figures) + 1, names)
        page.figures.append(figure)
        return [Part("output", figure=figure)]
    if kind == provenance.MIME:
        page.runs += content["runs"]
        return []
    return [Part("output", _html_of(kind, content, heading))] if kind else []


def _html_of(kind: str, content: str, heading: str) -> Markup:
    if kind == "text/html":
        return Markup(f'<div class="wide">{_captioned(clean(content), heading)}</div>')  # nosec B704  # cleaned
    if kind in ("text/markdown", "text/latex"):
        return Markup(clean(TextRenderer().html_of(content)))  # nosec B704  # cleaned
    if kind.startswith("image/"):
        base64 = b64encode(content.encode()).decode() if kind == "image/svg+xml" else content.strip()
        return Markup('<img alt="Output of the code above" src="data:{};base64,{}">').format(kind, base64)
    return _preformatted(content).html


def _preformatted(text: str) -> Part:
    return Part("output", Markup(f'<pre class="printed">{ansi2html(text)}</pre>'))  # nosec B704  # ansi2html escapes
