"""What the gate says, for a reader; and which rows of a table it doubts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

import pandas as pd

from ..errors import ParameterError
from ..formatting import count
from .observations import row_names

ABOUT = ("rtt", "throughput")
WIDE = ("table", "column", "region")
AT_BOTH_ENDS = ("coordinates", "half")
"""The rules that blame a region for what was measured from it and to it."""


@dataclass(frozen=True)
class Report:
    """
    Table `flags`, told.

    Attributes
    ----------
    flags : DataFrame
        The table.
    sentences : tuple of str
        First how much is doubted; then a sentence per doubted region, column or table; then, of the rows that none
        of these explains, one per rule and cause, with the first of its rows.
    """

    flags: pd.DataFrame
    sentences: tuple[str, ...]

    def table(self) -> pd.DataFrame:
        """How many flags of each rule, verdict and scope."""
        keys = ["rule", "verdict", "scope"]
        return self.flags.groupby(keys, as_index=False).size().rename(columns={"size": "n"})

    def figure(self):
        """Flags by rule, as bars."""
        from .flags_figure import flags_by_rule

        return flags_by_rule(self.flags)

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def _repr_html_(self) -> str:
        first, *others = map(escape, self.sentences)
        listed = "".join(f"<li>{sentence}</li>" for sentence in others)
        return f"<p>{first}</p>" + (f'<ul class="flags">{listed}</ul>' if listed else "")


def report(flags: pd.DataFrame | Mapping[str, pd.DataFrame]) -> Report:
    """A readable summary of table `flags`, or of that table among others."""
    if isinstance(flags, Mapping):
        if "flags" not in flags:
            raise ParameterError(f"no table flags; given were {', '.join(map(str, flags)) or 'none'}")
        flags = flags["flags"]
    if flags.empty:
        return Report(flags, ("The plausibility gate doubts nothing.",))
    rows, wide = flags[flags.scope == "row"], flags[flags.scope.isin(WIDE)]
    impossible = int((rows.verdict == "impossible").sum())
    parts = [f"{count(len(rows), 'row')} ({impossible:,} impossible)"] if len(rows) else []
    counts = wide.scope.value_counts()
    parts += [count(int(counts[scope]), scope) for scope in WIDE if scope in counts]
    told = [f"The plausibility gate doubts {', '.join(parts)}."]
    told += [_sentence(flag) for flag in wide.itertuples(index=False)]
    known = set(wide.cause) | {
        f"{flag.region}: {flag.cause}"
        for flag in wide.itertuples(index=False)
        if isinstance(flag.region, str)
    }
    rest = rows[~rows.cause.isin(known)]
    for (rule, cause), group in rest.groupby(["rule", "cause"], sort=False):
        also = f" and {count(len(group) - 1, 'other row')}" if len(group) > 1 else ""
        told.append(f"{rule}: {group.found.iloc[0]}{also}: {cause}.")
    return Report(flags, tuple(told))


def _sentence(flag) -> str:
    return f"{flag.rule} ({flag.verdict}): {flag.found}. Likely cause: {flag.cause}."


def suspects(
    frame: pd.DataFrame, flags: pd.DataFrame, *, table: str = "pairs", about: str | None = None
) -> pd.Series:
    """
    Which rows of a table are doubted: a mask with the frame's index.

    A row is, if it or its region is flagged: a region placed wrongly at either end, one whose measurements are
    wrong where the row starts. A row of `pairs` is, if a row of any table that has its regions, in its direction, is.
    Doubts about whole columns are not among them: without a column nothing would be left.

    Parameters
    ----------
    frame : DataFrame
        Table `pairs`, or another, whole and as the gate saw it.
    table : str
        Its name.
    about : "rtt" or "throughput", optional
        Leave out doubts that concern the other alone.
    """
    if about is not None and about not in ABOUT:
        raise ParameterError(f"about is {about!r}; allowed: {', '.join(ABOUT)}")
    flags = concerning(flags, about)
    return _by_row(frame, flags, table) | _by_region(frame, flags)


def concerning(flags: pd.DataFrame, about: str | None) -> pd.DataFrame:
    """The flags that concern RTT, or throughput; all of them for None."""
    if about is None:
        return flags
    rtt = flags.column_name.str.contains("rtt").fillna(False).astype(bool)
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
