"""Show a result of an analysis: estimates with intervals, a sentence and cautions, as text, table and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from html import escape
from numbers import Real
from typing import ClassVar

import pandas as pd

from wanbench.figures import theme
from wanbench.findings import Finding
from wanbench.formatting import number
from wanbench.methods.result.estimate import (
    LEVEL,
    PAIRS_INDEPENDENT,
    VALUES_INDEPENDENT,
    Estimate,
    Fields,
    Interval,
    exact_binomial,
    t_interval,
    t_quantile,
    tails,
)

__all__ = ["LEVEL", "PAIRS_INDEPENDENT", "VALUES_INDEPENDENT", "Estimate", "Fields", "Interval", "Result", "RowsResult"]
__all__ += ["cautions_html", "exact_binomial", "formatted_estimates", "reasons", "t_interval", "t_quantile"]
__all__ += ["table_html", "tails", "text_table"]


class Result:
    """
    Base class of results, which makes text, HTML and a finding from the estimates of a result.

    A subclass overrides: `estimates`, unless the fields of the result have its estimates, in this order; `sentence`,
    unless the first estimate is the whole answer; `cautions`, if there are more than the estimates' own; `table` and
    `formatted_table`, unless there is a row per estimate; `TITLE`, the caption of the table. A result that can be drawn
    has a method `figure`, which also accepts `title` and `theme` (see `theme.styled`).
    """

    TITLE: ClassVar[str] = ""

    def __init_subclass__(cls):
        super().__init_subclass__()
        for name in {"figure", "map"} & vars(cls).keys():
            setattr(cls, name, theme.styled(vars(cls)[name]))

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Return the estimates, the main one first; by default those in all fields, also in mappings and tuples."""
        values = [getattr(self, each.name) for each in fields(self)] if is_dataclass(self) else []
        groups = [[*value.values()] if isinstance(value, Mapping) else value for value in values]
        several = [value if isinstance(value, list | tuple) else [value] for value in groups]
        return tuple(value for group in several for value in group if isinstance(value, Estimate))

    @property
    def sentence(self) -> str:
        """Return the answer, without cautions."""
        return self.estimates[0].sentence

    @property
    def cautions(self) -> tuple[str, ...]:
        """Warnings to read before quoting the result; by default those of its estimates, each once."""
        return tuple(dict.fromkeys(text for estimate in self.estimates for text in estimate.warnings))

    @property
    def headline(self) -> str:
        """Return the answer in plain words, for the top of a page; "" if the sentence is plain enough."""
        return ""

    def table(self) -> pd.DataFrame:
        """Return a row per estimate, as `Estimate.row`."""
        return pd.DataFrame([estimate.row() for estimate in self.estimates])

    def formatted_table(self) -> pd.DataFrame | None:
        """Return the table that a page shows, as text; None for no table."""
        return formatted_estimates(self.estimates) if self.estimates else None

    def __str__(self) -> str:
        return " ".join([self.sentence, *(f"Caution: {text}." for text in self.cautions)]).strip()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        paragraph = f"<p>{escape(self.sentence)}</p>" if self.sentence else ""
        rows = self.formatted_table()
        rows_html = "" if rows is None else table_html(rows, self.TITLE)
        return paragraph + rows_html + cautions_html(self.cautions)

    def finding(self, name: str, page: str = "") -> Finding:
        """Make a finding from the sentence and the cautions, with the numbers of the first estimate, if any."""
        text = {"sentence": self.sentence.strip(), "cautions": self.cautions, "headline": self.headline}
        if self.estimates:
            return replace(self.estimates[0].finding(name, page), **text)
        no_numbers = dict.fromkeys(("estimate", "low", "high", "n", "n_regions"))
        return Finding(name=name, **text, **no_numbers, unit="", method="", assumption="", page=page)


@dataclass(frozen=True, repr=False)
class RowsResult(Result):
    """A result whose numbers are in the table `rows`; a subclass adds the sentence that states the result."""

    rows: pd.DataFrame

    def table(self) -> pd.DataFrame:
        """Return `rows`."""
        return self.rows

    def formatted_table(self) -> pd.DataFrame:
        """Return `rows` as text."""
        return text_table(self.rows)


def text_table(frame: pd.DataFrame) -> pd.DataFrame:
    """
    Convert the cells of a table to text: numbers by `formatting.number`, missing values to "".

    >>> text_table(pd.DataFrame({"n": [2070], "mean": [0.12345], "sd": [None], "link": ["a"]})).values.tolist()
    [['2,070', '0.123', '', 'a']]
    """

    def text(value: object) -> str:
        if pd.isna(value):
            return ""
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        return number(value) if is_number else str(value)  # pyright: ignore[reportArgumentType]

    return frame.map(text)


def reasons(left_out: pd.DataFrame) -> str:
    """Return as text how many rows were left out for each `reason`, such as "3 without rtt_ms"."""
    return ", ".join(f"{n:,} {reason}" for reason, n in sorted(left_out.reason.value_counts().items()))


def formatted_estimates(estimates: Sequence[Estimate]) -> pd.DataFrame:
    """Return a row of text per estimate: quantity, estimate, interval, naive interval (if any has one), basis."""
    levels = dict.fromkeys(one.formatted_level for one in estimates)
    rows = [
        (one.quantity, one.formatted, one.formatted_interval, one.formatted_naive, one.counted) for one in estimates
    ]
    heads = ("Quantity", "Estimate", f"{', '.join(levels)} interval", "Naive interval", "From")
    frame = pd.DataFrame(rows, columns=heads)
    return frame if (frame[heads[3]] != "").any() else frame.drop(columns=heads[3])


def table_html(frame: pd.DataFrame, title: str = "") -> str:
    """Return an HTML table of text, escaped. Empty cells, and a table without rows, are shown as "none"."""
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    if frame.empty:
        return f'<table class="estimates">{caption}<tbody><tr><td>none</td></tr></tbody></table>'
    head = "".join(f"<th scope='col'>{escape(str(name))}</th>" for name in frame.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell)) or 'none'}</td>" for cell in row) + "</tr>"
        for row in frame.itertuples(index=False, name=None)
    )
    return f'<table class="estimates">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def cautions_html(cautions: Iterable[str]) -> str:
    """Return an HTML paragraph per caution."""
    return "".join(f'<p class="caution">Caution: {escape(text)}.</p>' for text in cautions)
