"""
What a page found: a sentence and the numbers in it, one JSON file per finding. Imports `errors` and
`wording`.

Every page ends by saving its findings; the front page lists them. Files are written whole or not at all, with
floats of six significant digits, so that a difference between two runs reads as one.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import dataclass, fields, replace
from html import escape
from math import isfinite, nan
from pathlib import Path

import pandas as pd

from .errors import ParameterError, RawDataError
from .folders import data_folder
from .formatting import interval, number, rounded

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
NUMBERS = ("estimate", "low", "high")
COUNTS = ("n", "n_regions")


@dataclass(frozen=True)
class Finding:
    """
    A sentence of a page and the numbers in it.

    Parameters
    ----------
    name : str
        Short name in small letters, digits and hyphens; the file is called so, hence it is unique on the
        site.
    sentence : str
        What was found, computed from the numbers.
    estimate, low, high : float or None
        The estimate and its interval, in `unit`. None for a number that is not known. Where only one end of
        the interval is None, the interval is open there: `low` 1800 and `high` None is "at least 1800".
    unit : str
        Unit of the three; "" for a pure number.
    n, n_regions : int or None
        Units of replication, and the regions they come from.
    method, assumption : str
        How the numbers were computed, and what would break them.
    page : str
        The page that says it.
    answer : bool
        Whether it answers the question of its page: the front page shows it.
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

    def __post_init__(self):
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise ParameterError(
                f"finding name {self.name!r}: allowed are small letters, digits and single hyphens inside"
            )
        for field in ("sentence", "unit", "method", "assumption", "page"):
            if not isinstance(getattr(self, field), str):
                raise ParameterError(
                    f"finding {self.name}: {field} must be text, not {getattr(self, field)!r}"
                )
        if not self.sentence.strip():
            raise ParameterError(f"finding {self.name}: its sentence is empty")
        for field in NUMBERS:
            object.__setattr__(self, field, _number(getattr(self, field), f"finding {self.name}: {field}"))
        for field in COUNTS:
            object.__setattr__(self, field, _count(getattr(self, field), f"finding {self.name}: {field}"))

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        details = "".join(
            f"<dt>{label}</dt><dd>{escape(text)}</dd>"
            for label, text in (("Method", self.method), ("Assumption", self.assumption))
            if text
        )
        more = (
            f"<details><summary>How this was computed</summary><dl>{details}</dl></details>"
            if details
            else ""
        )
        return f'<div class="finding"><p>{escape(self.sentence)}</p>{more}</div>'

    def save(self, folder, page: str | None = None) -> Finding:
        """Write `<folder>/<name>.json` in one step, `page` noted in it if given; returns what was written."""
        finding = self if page is None else replace(self, page=page)
        content = {field.name: getattr(finding, field.name) for field in fields(finding)}
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{finding.name}-", suffix=".tmp")
        try:
            with open(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(temporary, 0o644)
            os.replace(temporary, folder / f"{finding.name}.json")
        except BaseException:
            os.unlink(temporary)
            raise
        return finding


def _number(value, place: str) -> float | None:
    if value is None or value is pd.NA:
        return None
    try:
        if isinstance(value, (bool, str)):
            raise TypeError
        return rounded(float(value))
    except (TypeError, ValueError):
        raise ParameterError(f"{place} must be a number or None, not {value!r}") from None


def _count(value, place: str) -> int | None:
    if value is None or value is pd.NA:
        return None
    try:
        whole = int(value)
    except (TypeError, ValueError, OverflowError):
        whole = -1
    if isinstance(value, (bool, str)) or whole != value or whole < 0:
        raise ParameterError(f"{place} must be a whole number from 0 or None, not {value!r}")
    return whole


def read(path) -> Finding:
    """Read one finding; RawDataError names the file and what is wrong in it."""
    path = Path(path)
    names = [field.name for field in fields(Finding)]
    try:
        content = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
        if isinstance(content, dict):
            content.setdefault("answer", False)  # findings of earlier versions had no such mark
        if not isinstance(content, dict) or set(content) != set(names):
            found = ", ".join(map(str, content)) if isinstance(content, dict) else content
            raise RawDataError(path, None, found, f"a finding with the keys {', '.join(names)}")
        finding = Finding(**content)
    except RawDataError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise RawDataError(path, None, error, "a finding in JSON") from error
    if finding.name != path.stem:
        raise RawDataError(path, None, finding.name, f"the finding {path.stem}")
    return finding


def _refuse_constant(text: str):
    raise ValueError(f"{text} is no JSON number")


def load(folder) -> pd.DataFrame:
    """The findings of a folder, one row each, by page and name; columns as in table `findings`."""
    found = [read(path) for path in sorted(Path(folder).glob("*.json"))]
    columns = {field.name: [getattr(each, field.name) for each in found] for field in fields(Finding)}
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})
    for name in NUMBERS:
        frame[name] = frame[name].astype("float64")
    for name in COUNTS:
        frame[name] = frame[name].astype("Int64")
    frame["answer"] = frame["answer"].astype("bool")
    for name in set(frame.columns) - {*NUMBERS, *COUNTS, "answer"}:
        frame[name] = frame[name].astype("str")
    return frame.sort_values(["page", "name"], ignore_index=True)


def html_table(findings: pd.DataFrame, *, links: bool = True) -> str:
    """
    An HTML table of findings for the front page: sentence, estimate, interval, n, page; all values escaped.

    With `links` the name of a page (letters, digits, hyphens) leads to `<page>.html`.
    """
    head = "".join(
        f"<th scope='col'>{name}</th>" for name in ("Finding", "Estimate", "Interval", "n", "Regions", "Page")
    )
    rows = "".join(_html_row(row, links) for row in findings.itertuples(index=False))
    return f'<table class="findings"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _html_row(row, links: bool) -> str:
    estimate, low, high = (
        nan if pd.isna(value) else float(value) for value in (row.estimate, row.low, row.high)
    )
    if isfinite(low) != isfinite(high):
        low, high = (low, float("inf")) if isfinite(low) else (float("-inf"), high)
    value, ends = interval(estimate, low, high, row.unit)
    if not ends and isfinite(estimate) and estimate == round(estimate):
        value = f"{number(estimate, 0)} {row.unit}".strip()
    page = escape(row.page)
    if links and NAME.fullmatch(row.page):
        page = f'<a href="{page}.html">{page}</a>'
    counts = ["" if pd.isna(n) else number(n) for n in (row.n, row.n_regions)]
    cells = [escape(row.sentence), escape(value if isfinite(estimate) else ""), escape(ends), *counts, page]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


class Page:
    """
    The findings of one page, saved as they are added.

    Parameters
    ----------
    name : str
        The notebook's file name without its ending.
    folder : path, optional
        Default: `data/findings/<name>` of the checkout.

    Examples
    --------
    >>> page = Page("02-intercloud-throughput")  # doctest: +SKIP
    >>> page.add(fit.slope.finding("rtt-slope"))  # doctest: +SKIP
    """

    def __init__(self, name: str, folder=None):
        self.name = name
        self.folder = Path(folder) if folder is not None else data_folder() / "findings" / name
        self.findings: list[Finding] = []

    def add(self, *findings: Finding | None, about: str = "") -> None:
        """
        Save findings; the first takes the place of all that an earlier run of the page left.

        `about` says in front of each sentence what it speaks of, where a page has several subjects. None is no
        finding: a section whose data are not here can hand it over. ParameterError if the page has one of that name
        already.
        """
        findings = [finding for finding in findings if finding is not None]
        if about:
            findings = [replace(finding, sentence=f"{about}: {finding.sentence}") for finding in findings]
        if findings and not self.findings:
            for path in self.folder.glob("*.json"):
                path.unlink()
        for finding in findings:
            if any(earlier.name == finding.name for earlier in self.findings):
                raise ParameterError(
                    f"page {self.name} has a finding {finding.name!r} already; names are unique"
                )
            self.findings.append(finding.save(self.folder, page=self.name))

    def answer(self, finding: Finding, about: str = "") -> None:
        """Add the finding that answers the question of the page, as `add` does; the front page shows it."""
        self.add(replace(finding, answer=True), about=about)

    def __str__(self) -> str:
        return "\n".join(str(finding) for finding in self.findings) or f"No finding on {self.name} yet."

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(finding._repr_html_() for finding in self.findings) or "<p>No finding yet.</p>"
