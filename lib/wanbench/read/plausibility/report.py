"""A readable summary of flags, and the flagged rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

import pandas as pd

from wanbench.checks import check_choice, check_columns, check_table
from wanbench.formatting import count

from .observations import row_names

ABOUT = ("rtt", "throughput")
WIDE = ("table", "column", "region")
"""Scopes of more than one row."""
FLAGS = ("scope", "rule", "region", "column_name", "cause")
"""The columns of table flags that every use of it needs."""
AT_BOTH_ENDS = ("coordinates", "half")
"""The rules that blame a region for what was measured from it and to it; other rules blame it as the sender only."""


@dataclass(frozen=True, repr=False)
class Report:
    """
    A readable summary of table `flags`.

    Attributes
    ----------
    flags : DataFrame
        The table.
    sentences : tuple of str
        First the numbers of flags; then one sentence per flagged region, column or table; then one per rule and cause
        of the rows that none of these explains, with the first such row.
    """

    flags: pd.DataFrame
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        first, *others = map(escape, self.sentences)
        items = "".join(f"<li>{sentence}</li>" for sentence in others)
        return f"<p>{first}</p>" + (f'<ul class="flags">{items}</ul>' if items else "")


def report(flags: pd.DataFrame | Mapping[str, pd.DataFrame]) -> Report:
    """A readable summary of table `flags`, or of that table among others."""
    if isinstance(flags, Mapping):
        flags = check_table("flags", flags)
    if check_columns("flags", flags, FLAGS).empty:
        return Report(flags, ("The plausibility rules raise no flag.",))
    rows, wide = flags[flags.scope == "row"], flags[flags.scope.isin(WIDE)]
    impossible = int((rows.verdict == "impossible").sum())
    parts = [f"{count(len(rows), 'row')} ({impossible:,} impossible)"] if len(rows) else []
    counts = wide.scope.value_counts()
    parts += [count(int(counts[scope]), scope) for scope in WIDE if scope in counts]
    sentences = [f"The plausibility rules flag {', '.join(parts)}."]
    explained = set(wide.cause)
    for flag in wide.itertuples(index=False):
        sentences.append(f"{flag.rule} ({flag.verdict}): {flag.found}. Likely cause: {flag.cause}.")
        explained.add(f"{flag.region}: {flag.cause}")
    rest = rows[~rows.cause.isin(explained)]
    for (rule, cause), group in rest.groupby(["rule", "cause"], sort=False):
        also = f" and {count(len(group) - 1, 'other row')}" if len(group) > 1 else ""
        sentences.append(f"{rule}: {group.found.iloc[0]}{also}: {cause}.")
    return Report(flags, tuple(sentences))


def suspects(frame: pd.DataFrame, flags: pd.DataFrame, *, table: str = "pairs", about: str | None = None) -> pd.Series:
    """
    The flagged rows of a table, as a mask with the frame's index.

    A row is flagged by its own flag, by a flag of the region where it starts, and by one of `AT_BOTH_ENDS` of
    either region. A row of `pairs` is flagged if a row of any table with its regions, in its direction, is. Flags of
    whole columns and tables do not count: they would leave no rows.

    Parameters
    ----------
    frame : DataFrame
        Table `pairs`, or another, complete, as `check` read it.
    table : str
        Its name.
    about : "rtt" or "throughput", optional
        Ignore flags that concern only the other one.
    """
    check_choice("about", about, ABOUT, optional=True)
    check_columns("flags", flags, FLAGS)
    check_columns(table, frame, ["from_region", "to_region"])
    flags = concerning(flags, about)
    return _by_row(frame, flags, table) | _by_region(frame, flags)


def concerning(flags: pd.DataFrame, about: str | None) -> pd.DataFrame:
    """The flags that concern RTT or throughput; all flags for None."""
    if about is None:
        return flags
    rtt = flags.column_name.astype("string").str.contains("rtt").fillna(False).astype(bool)
    other = flags.column_name.notna() & (rtt if about == "throughput" else ~rtt)
    return flags[~other]


def _by_row(frame, flags, table) -> pd.Series:
    rows = flags[flags.scope == "row"]
    if table == "pairs":
        pairs = set(zip(rows.from_region, rows.to_region, strict=True))
        mask = [pair in pairs for pair in zip(frame.from_region, frame.to_region, strict=True)]
        return pd.Series(mask, index=frame.index, dtype=bool)
    names = set(rows.row[rows.table == table])
    return row_names(table, frame).isin(names)


def _by_region(frame, flags) -> pd.Series:
    regions = flags[(flags.scope == "region") & flags.region.notna()]
    placed = set(regions.region[regions.rule.isin(AT_BOTH_ENDS)])
    return frame.from_region.isin(set(regions.region)) | frame.to_region.isin(placed)
