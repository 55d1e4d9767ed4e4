"""Write the index of all sections of all pages, a script in which `assets/search.js` searches without a server."""

import json
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path

from wanbench.files import replace_file

LEFT_OUT = frozenset({"script", "style", "svg", "pre", "nav", "table", "button"})
HEADINGS = frozenset({"h1", "h2", "h3", "h4"})


class SectionTexts(HTMLParser):
    """
    Split the main part of a page at its headings and folded sections, without code and tables.

    `sections` holds a list [anchor, heading, text] for each section; the first is the page's title, with anchor "".
    """

    def __init__(self, html: str):
        super().__init__()
        self.sections: list[list[str]] = [["", "", ""]]
        self._out_of, self._heading = [], False
        self.feed(html[html.index("<main") : html.index("</main>")])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """
        Start a section at a heading or at a folded section with an anchor; start to skip code, tables and the like.
        """
        given = dict(attrs)
        if tag in LEFT_OUT or given.get("class") == "anchor":
            self._out_of.append(tag)
        elif tag in HEADINGS or (tag == "details" and "id" in given):
            self._heading = tag in HEADINGS
            if tag != "h1":
                self.sections.append([given.get("id") or "", "", ""])
        elif tag == "summary" and not self.sections[-1][1]:
            self._heading = True

    def handle_endtag(self, tag: str) -> None:
        """End the heading or the skipped element that the tag closes."""
        if self._out_of and tag == self._out_of[-1]:
            self._out_of.pop()
        elif tag in HEADINGS or tag == "summary":
            self._heading = False

    def handle_data(self, data: str) -> None:
        """Add text to the heading or the body of the section."""
        if not self._out_of:
            self.sections[-1][1 if self._heading else 2] += data


def section_entries(path: Path) -> Iterator[list[str]]:
    """Yield a list [file, title of the page, anchor, heading, text] for each section of a page."""
    sections = SectionTexts(path.read_text("utf-8")).sections
    for anchor, heading, text in sections:
        yield [path.name, sections[0][1].strip(), anchor, *(" ".join(part.split()) for part in (heading, text))]


def write_search_index(folder: Path, pages: Sequence[str]) -> Path:
    """Write `assets/search-index.js` for these pages of a site, and return its path."""
    entries = [entry for name in pages for entry in section_entries(folder / f"{name}.html")]
    path = folder / "assets/search-index.js"
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    replace_file(path, f"const SEARCH_INDEX = [\n{lines}\n];\n".encode())
    return path
