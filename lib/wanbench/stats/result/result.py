"""The base of everything that an analysis returns: estimates, a sentence, cautions, rows, a figure, a finding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from importlib import import_module
from numbers import Real
from typing import ClassVar

import pandas as pd

from ...findings import Finding
from ...formatting import number
from .estimate import Estimate


class Result:
    """
    What an analysis returns.

    A subclass gives `estimates`, and overrides what differs: `sentence` where the first estimate does not say it all,
    `cautions` where there are some that no estimate carries, `table` and `shown` where its rows are not its estimates.
    Text, HTML, finding and figure follow.

    Attributes
    ----------
    TITLE : str
        Caption of the table on a page.
    DRAWN_BY : str
        "<module>.<function>" of the same room that draws it; "" if nothing does. The module is loaded when the figure
        is asked for, so that a result does not depend on what draws it.
    """

    TITLE: ClassVar[str] = ""
    DRAWN_BY: ClassVar[str] = ""

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Every estimate of the result, the main one first."""
        return ()

    @property
    def sentence(self) -> str:
        """What came out, without cautions."""
        return self.estimates[0].sentence

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader must know before quoting the result, each once."""
        return tuple(dict.fromkeys(each for estimate in self.estimates for each in estimate.warnings))

    def table(self) -> pd.DataFrame:
        """One row per estimate; columns as `Estimate.row`."""
        return pd.DataFrame([estimate.row() for estimate in self.estimates])

    def shown(self) -> pd.DataFrame | None:
        """The rows that a page shows, as text; None for no table."""
        return estimates_shown(self.estimates) if self.estimates else None

    def __str__(self) -> str:
        return " ".join([self.sentence, *(f"Caution: {each}." for each in self.cautions)]).strip()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        said = f"<p>{escape(self.sentence)}</p>" if self.sentence else ""
        shown = self.shown()
        return said + ("" if shown is None else table_html(shown, self.TITLE)) + cautions_html(self.cautions)

    def finding(self, name: str, page: str = "") -> Finding:
        """The finding whose sentence is `str` of the result, and whose numbers are those of its first estimate."""
        return replace(self.estimates[0].finding(name, page), sentence=str(self))

    def figure(self, *, note: str = "", **options):
        """The figure of the result; `note` is added to its caption. AttributeError if it has none."""
        if not self.DRAWN_BY:
            raise AttributeError(f"{type(self).__name__} has no figure")
        return self.drawn_by(self.DRAWN_BY, note=note, **options)

    def drawn_by(self, name: str, *args, **options):
        """What "<module>.<function>" of the same room draws of the result."""
        module, _, function = name.partition(".")
        room = type(self).__module__.rpartition(".")[0]
        return getattr(import_module(f"{room}.{module}"), function)(self, *args, **options)


@dataclass(frozen=True, repr=False)
class RowsResult(Result):
    """A result whose numbers are the rows of a table; a subclass gives the sentence."""

    rows: pd.DataFrame

    def table(self) -> pd.DataFrame:
        """`rows`."""
        return self.rows

    def shown(self) -> pd.DataFrame:
        """`rows` as text."""
        return text_table(self.rows)


def text_table(frame: pd.DataFrame) -> pd.DataFrame:
    """
    The cells of a table as text: numbers as `number` writes them, "" for a missing one.

    >>> text_table(pd.DataFrame({"n": [2070], "mean": [0.12345], "sd": [None], "link": ["a"]})).values.tolist()
    [['2,070', '0.123', '', 'a']]
    """

    def text(value) -> str:
        if pd.isna(value):
            return ""
        return number(value) if isinstance(value, Real) and not isinstance(value, bool) else str(value)

    return frame.map(text)


def estimates_shown(estimates) -> pd.DataFrame:
    """Estimates as text, a row each: quantity, estimate, interval, the interval that takes all as independent."""
    levels = dict.fromkeys(each.written_level for each in estimates)
    rows = [
        (each.quantity, each.written, each.written_interval, each.written_naive, each.counted)
        for each in estimates
    ]
    heads = ("Quantity", "Estimate", f"{', '.join(levels)} interval", "Taken as independent", "From")
    return pd.DataFrame(rows, columns=heads)


def table_html(frame: pd.DataFrame, title: str = "") -> str:
    """A table of texts as HTML, everything escaped; an empty cell reads "none", and so does an empty table."""
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    if frame.empty:
        return f'<table class="estimates">{caption}<tbody><tr><td>none</td></tr></tbody></table>'
    head = "".join(f"<th scope='col'>{escape(str(name))}</th>" for name in frame.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell)) or 'none'}</td>" for cell in row) + "</tr>"
        for row in frame.itertuples(index=False, name=None)
    )
    return f'<table class="estimates">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def cautions_html(cautions) -> str:
    """A paragraph for each caution."""
    return "".join(f'<p class="caution">Caution: {escape(each)}.</p>' for each in cautions)


def html(estimates, title: str = "") -> str:
    """Estimates as an HTML table, cautions below."""
    estimates = list(estimates)
    notes = dict.fromkeys(warning for each in estimates for warning in each.warnings)
    return table_html(estimates_shown(estimates), title) + cautions_html(notes)


def table(estimates) -> pd.DataFrame:
    """One row per estimate; columns as `Estimate.row`."""
    return pd.DataFrame([estimate.row() for estimate in estimates])
