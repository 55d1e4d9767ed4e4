"""Text cells to HTML: headings with anchors, and formulas as MathML, which needs no script and no network."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from html import escape, unescape

from latex2mathml.converter import convert
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath


@dataclass(frozen=True)
class Heading:
    """A heading of a page: level (1 to 6), text without markup, and anchor."""

    level: int
    text: str
    anchor: str


class FormulaError(ValueError):
    """A formula cannot be shown; the message has its source."""


def mathml(source: str, display: str = "inline") -> str:
    """
    LaTeX to MathML; FormulaError if it is not LaTeX or has an unknown command.

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


def anchor_for(text: str, taken: set[str]) -> str:
    """
    A unique anchor for a heading, which is added to those taken.

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


class TextRenderer(IPythonRenderer):
    """Renders the text cells of one page, and collects its headings."""

    def __init__(self):
        super().__init__(escape=False, exclude_anchor_links=True)
        self.headings: list[Heading] = []
        self._taken = {"content", "contents", "provenance"}

    def heading(self, text, level, **attrs):
        """A heading with an anchor."""
        plain = unescape(re.sub(r"<[^>]+>", "", text))
        anchor = anchor_for(plain, self._taken)
        self.headings.append(Heading(level, plain, anchor))
        return f'<h{level} id="{anchor}">{text}</h{level}>\n'

    def table(self, text):
        """A table that scrolls separately where the page is narrow."""
        return f'<div class="wide"><table>{text}</table></div>\n'

    def inline_math(self, body):
        """A formula within a line."""
        return _shown(body, "inline")

    def block_math(self, body):
        """A formula on separate lines."""
        return _shown(body, "block")

    def latex_environment(self, name, body):
        """A formula in a LaTeX environment."""
        return _shown(rf"\begin{{{name}}}{body}\end{{{name}}}", "block")

    def html_of(self, source: str) -> str:
        """HTML of Markdown text."""
        return MarkdownWithMath(renderer=self).render(source)


def _shown(body: str, display: str) -> str:
    try:
        return mathml(body, display)
    except FormulaError:
        return f'<code class="formula">{escape(body)}</code>'
