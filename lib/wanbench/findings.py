"""
Findings of a page: sentences and the numbers in them, each saved as a JSON file.

Every page saves its findings at its end, and the front page lists them. Numbers are stored with six significant digits,
so two runs with the same results write the same file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from html import escape
from math import isfinite, nan
from pathlib import Path
from typing import Any

import pandas as pd

from .checks import check_injected, check_kind, check_number, refusal
from .errors import RawDataError
from .files import replace_file
from .folders import FINDINGS_VARIABLE, scratch_folder
from .formatting import SCALES, count, interval, number, rounded

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
NUMBERS = ("estimate", "low", "high")
COUNTS = ("n", "n_regions")


@dataclass(frozen=True)
class Finding:
    """
    A sentence of a page and the numbers in it.

    Attributes
    ----------
    name : str
        Small letters, digits and hyphens; also the name of the finding's file.
    estimate, low, high : float or None
        The estimate and the ends of its interval, in `unit`; None if unknown. An interval without one of its ends is
        unbounded on that side: `low` 1800 and `high` None mean "at least 1800".
    unit : str
        "" for numbers without a unit.
    n, n_regions : int or None
        Number of independent units, such as runs or pairs, and number of regions that they come from.
    method, assumption : str
        How the numbers were computed, and what would invalidate them.
    answer : bool
        Whether the finding answers the question of its page; the front page shows only such findings.
    place : int
        Position among the findings of its page, from 1; 0 if it is on no page.
    cautions : tuple of str
        What a reader must know before quoting the finding, each without a full stop.
    headline : str
        The answer in plain words, for a page's top and the front page; "" if the sentence is plain enough.
    counted : str
        What `n` counts, such as "4 trials"; "" if the sentence says so.
    """

    name: str
    sentence: str
    estimate: float | None
    low: float | None
    high: float | None
    unit: str
    n: int | None
    n_regions: int | None
    method: str
    assumption: str
    page: str = ""
    answer: bool = False
    place: int = 0
    cautions: tuple[str, ...] = ()
    headline: str = ""
    counted: str = ""

    def __post_init__(self):
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise refusal("name of a finding", self.name, "small letters, digits and single hyphens inside")
        for field in ("sentence", "unit", "method", "assumption", "page", "headline", "counted"):
            check_kind(f"finding {self.name}: {field}", getattr(self, field), str)
        object.__setattr__(self, "cautions", tuple(self.cautions))
        for field in (*NUMBERS, *COUNTS):
            value = getattr(self, field)
            if pd.isna(value):
                checked = None
            elif field in NUMBERS:
                checked = rounded(check_number(f"finding {self.name}: {field}", value))
            else:
                value = int(value) if isinstance(value, float) and value.is_integer() else value
                checked = check_number(f"finding {self.name}: {field}", value, 0, whole=True)
            object.__setattr__(self, field, checked)

    def __str__(self) -> str:
        return " ".join([self.sentence, *(f"Caution: {caution}." for caution in self.cautions)])

    def _repr_html_(self, seen: Collection[str] = ()) -> str:
        """Return the finding as HTML, without the cautions in `seen`."""
        about = {"Method": self.method, "Assumption": self.assumption}
        details = "".join(f"<dt>{label}</dt><dd>{escape(text)}</dd>" for label, text in about.items() if text)
        more = f"<details><summary>How this was computed</summary><dl>{details}</dl></details>" if details else ""
        new = [escape(caution) for caution in self.cautions if caution not in seen]
        notes = "".join(f'<p class="caution">Caution: {caution}.</p>' for caution in new)
        return f'<div class="finding"><p>{escape(self.sentence)}</p>{notes}{more}</div>'

    def save(self, folder: str | Path, page: str | None = None) -> Finding:
        """Write the finding to `<folder>/<name>.json`, on the page `page` if given, and return it as written."""
        finding = self if page is None else replace(self, page=page)
        content = {field.name: getattr(finding, field.name) for field in fields(finding)}
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        replace_file(Path(folder) / f"{finding.name}.json", text.encode())
        return finding


def read(path: str | Path) -> Finding:
    """Read one finding from its file; raise RawDataError if the file is invalid."""
    path = Path(path)
    try:
        finding = Finding(**json.loads(path.read_bytes()))
    except (OSError, TypeError, ValueError, RecursionError) as error:
        raise RawDataError(path, None, error, "a finding in JSON") from error
    if finding.name != path.stem:
        raise RawDataError(path, None, finding.name, f"the finding {path.stem}")
    return finding


def read_all(folder: str | Path) -> list[Finding]:
    """Read the findings of a page, in its order; errors are as for `read`."""
    return sorted((read(path) for path in Path(folder).glob("*.json")), key=lambda one: (one.place, one.name))


def load(folder: str | Path) -> pd.DataFrame:
    """Read all findings in a folder as table `findings`, sorted by page and by position on the page."""
    findings = [read(path) for path in sorted(Path(folder).glob("*.json"))]
    dtypes = dict.fromkeys(NUMBERS, "float64") | dict.fromkeys(COUNTS, "Int64") | {"answer": "bool", "place": "int64"}
    columns = {}
    for name in (field.name for field in fields(Finding)):
        values = [getattr(finding, name) for finding in findings]
        values = ["\n".join(cautions) for cautions in values] if name == "cautions" else values
        columns[name] = pd.Series(values, dtype=object).astype(dtypes.get(name, "str"))
    return pd.DataFrame(columns).sort_values(["page", "place", "name"], ignore_index=True)


def html_table(findings: pd.DataFrame) -> str:
    """
    Return the front page's HTML table of findings: sentence, estimate, interval, n, regions and page.

    Cautions are shown only as their number. The name of a page links to `<page>.html`.
    """
    names = ("Finding", "Estimate", "Interval", "n", "Regions", "Page")
    head = "".join(f"<th scope='col'>{name}</th>" for name in names)
    rows = "".join(_html_row(row) for row in findings.itertuples(index=False))
    caption = '<caption class="unseen">Findings</caption>'
    return f'<table class="findings">{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _html_row(row: Any) -> str:
    estimate, low, high = (nan if pd.isna(value) else float(value) for value in (row.estimate, row.low, row.high))
    if isfinite(low) != isfinite(high):
        low, high = (low, float("inf")) if isfinite(low) else (float("-inf"), high)
    value, ends = interval(estimate, low, high, row.unit)
    if not ends and row.unit not in SCALES and isfinite(estimate) and estimate == round(estimate):
        value = f"{number(estimate, 0)} {row.unit}".strip()
    page = escape(row.page)
    if NAME.fullmatch(row.page):
        page = f'<a href="{page}.html">{page}</a>'
    counts = ["" if pd.isna(n) else number(int(n)) for n in (row.n, row.n_regions)]
    cautions = row.cautions.splitlines()
    notes = f"<br><small>{count(len(cautions), 'caution')} on the page</small>" if cautions else ""
    cells = [escape(row.sentence) + notes, escape(value if isfinite(estimate) else ""), escape(ends), *counts, page]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


class Page:
    """
    The findings of one page, each saved when it is added.

    Parameters
    ----------
    name : str
        The notebook's file name without its ending.
    folder : path, optional
        Default: `data/scratch/findings/<name>`, or the site's folder while a page is being published.

    Examples
    --------
    >>> page = Page("02-intercloud-throughput")  # doctest: +SKIP
    >>> page.add(fit.slope.finding("rtt-slope"))  # doctest: +SKIP
    """

    def __init__(self, name: str, folder: str | Path | None = None):
        check_injected()
        self.name = name
        self.folder = Path(folder or os.environ.get(FINDINGS_VARIABLE) or scratch_folder() / "findings" / name)
        self.findings: list[Finding] = []
        self._html: list[str] = []
        self._cautions: dict[str, set[str]] = {}

    def add(self, *findings: Finding | None, about: str = "") -> None:
        """
        Save findings, skipping None, which a section without data returns. The first call deletes the findings of an
        earlier run of the page.

        On a page with several subjects, `about` names the subject: it is put before each sentence, and each caution is
        shown once per subject. Raise ParameterError if the page already has a finding with the same name.
        """
        given = [finding for finding in findings if finding is not None]
        if about:
            given = [replace(finding, sentence=f"{about}: {finding.sentence}") for finding in given]
        if given and not self.findings:
            for path in self.folder.glob("*.json"):
                path.unlink()
        for finding in given:
            if any(earlier.name == finding.name for earlier in self.findings):
                raise refusal("name of a finding", finding.name, f"a name not yet on page {self.name}")
            placed = replace(finding, place=len(self.findings) + 1)
            self.findings.append(placed.save(self.folder, page=self.name))
            stated = self._cautions.setdefault(about, set()) if about else set()
            self._html.append(placed._repr_html_(stated))  # pyright: ignore[reportPrivateUsage]
            stated |= set(placed.cautions)

    def answer(self, finding: Finding, about: str = "", headline: str = "") -> None:
        """
        Add, as `add` does, the finding that answers the page's question; the front page shows it.

        `headline` replaces the finding's own.
        """
        self.add(replace(finding, answer=True, headline=headline or finding.headline), about=about)

    def __str__(self) -> str:
        return "\n".join(str(finding) for finding in self.findings) or f"No finding on {self.name} yet."

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(self._html) or "<p>No finding yet.</p>"
