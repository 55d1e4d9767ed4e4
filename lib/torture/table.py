"""Show what was recorded: faults by kind and how likely harm is at most, damaged files, growth over surveys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go

from wanbench import folders
from wanbench.errors import MissingDataError, RawDataError
from wanbench.figures import primitives, theme
from wanbench.methods.result import Result, RowsResult
from wanbench.methods.result.means import share_of
from wanbench.read.ingest.readers import READERS, readers

HARMS = {
    "lost": "something measured was lost, or could not be completed",
    "left": "something was left behind",
    "tracebacks": "a traceback was printed",
    "silent": "the exit status or the last lines did not say what happened",
}
ROW_PX, FRAME_PX = 22, 190
FUZZ = ["reader", "pattern", "seed", "processor_min", "files", "wrong"]
SOAK = ["what", "unit", "per_survey", "low", "high", "surveys"]
MEMBERS = {"seed", "jobs", "seconds", "total", "kinds", "not_possible", "harm"}


@dataclass(frozen=True, repr=False)
class Torture(Result):
    """The faults of a recorded torture; `rows` has a row per kind with its number and the counts of harm."""

    rows: pd.DataFrame
    about: Mapping

    TITLE = "Faults by kind"

    @cached_property
    def estimates(self):
        """The share of faults with each harm, of any kind of fault."""
        n = int(self.rows.n.sum())
        return [
            share_of(
                int(self.rows[harm].sum()),
                n,
                unit_name="fault",
                quantity=f"faults after which {words}",
                claim=f"Of {n:,} faults at random moments of small studies, {words} after {{}}",
                assumption="Faults are independent, and like those that a machine in use meets",
            )
            for harm, words in HARMS.items()
        ]

    @property
    def sentence(self) -> str:
        """What was counted, with the highest chance of harm that agrees with it."""
        n, counts = int(self.rows.n.sum()), [int(self.rows[harm].sum()) for harm in HARMS]
        kinds = (self.rows.n > 0).sum()
        highest = 100 * max(one.high for one in self.estimates)
        return (
            f"{n:,} faults of {kinds} kinds at random moments of small studies: after {counts[0]} of them something "
            f"measured was lost, after {counts[1]} something was left behind, after {counts[2]} a traceback was "
            f"printed, after {counts[3]} the output did not say what happened. The chance of each harm is at most "
            f"{highest:.2f} % per fault (95 %)."
        )

    @property
    def headline(self) -> str:
        """How many faults did harm."""
        harmed = int((self.rows[list(HARMS)].max(axis=1)).sum())
        return (
            f"{int(self.rows.n.sum()):,} faults at random moments of small studies, and harm after {harmed:,} of them."
        )

    def formatted_table(self) -> pd.DataFrame:
        """Return a row per kind of fault."""
        return self.rows.rename(columns={"n": "faults", "silent": "without words"})

    def figure(self) -> go.Figure:
        """Draw, for each kind of fault, how many harmed nothing, and how many did harm."""
        harmed = self.rows[list(HARMS)].max(axis=1)
        figure = go.Figure()
        for name, counts, colour in (("no harm", self.rows.n - harmed, theme.WITHIN), ("harm", harmed, theme.OUTSIDE)):
            figure.add_bar(y=list(range(len(self.rows))), x=counts, name=name, orientation="h", marker_color=colour)
        primitives.label_rows(figure, list(self.rows.kind))
        figure.update_xaxes(title="faults")
        figure.update_layout(barmode="stack", legend=theme.LEGEND_ON_TOP, height=FRAME_PX + ROW_PX * len(self.rows))
        return theme.finish(
            figure,
            name="faults-by-kind",
            title=f"{int(self.rows.n.sum()):,} faults, and harm after {int(harmed.sum()):,} of them",
            subtitle="Each fault came at a random moment of a small study, which was then resumed and checked.",
            alt=f"Stacked bars of faults without and with harm, one for each kind of fault. {self.sentence}",
            caption=self.sentence,
            table=self.rows,
        )


class Fuzzing(RowsResult):
    """What `make fuzz` counted; `rows` has a row per reader and seed."""

    TITLE = "Damaged files by reader"

    @property
    def sentence(self) -> str:
        """How many files were read in what time, and how many ended badly."""
        each = self.rows.groupby(["reader", "pattern"]).processor_min.sum()
        total = len({one.read for name in READERS for one in readers(name)})
        return (
            f"{len(each)} of {total} readers read {self.rows.files.sum():,} damaged files in {each.sum():,.0f} minutes "
            f"of processor time, at least {each.min():.3g} each. {self.rows.wrong.sum()} of the files ended otherwise "
            "than in rows or a clear error, took more than 1 s per MB, or more than 10 times their size in memory."
        )


class Soak(RowsResult):
    """What grew while surveys repeated in one process; `rows` has a row per quantity, its slope with an interval."""

    TITLE = "Growth per survey, with 95 % intervals"

    @property
    def sentence(self) -> str:
        """What grows, by how much, and what does not."""
        grows = [
            f"{row.what} by {row.per_survey:.2g} {row.unit} (95 % interval {row.low:.2g} to {row.high:.2g})"
            for row in self.rows[self.rows.low > 0].itertuples()
        ]
        rest = ", ".join(self.rows.what[self.rows.low <= 0])
        words = [f"growth per survey: {', '.join(grows)}"] if grows else []
        words += [f"not shown to grow: {rest}"] if rest else []
        return f"Over the last {self.rows.surveys.min()} surveys of one process: {'; '.join(words)}."


def recorded(result: type[RowsResult], path: Path | None = None) -> RowsResult:
    """
    Read a recorded table of `Fuzzing` or `Soak`, by default the committed one.

    Raise MissingDataError if there is none, and RawDataError if it has other columns.
    """
    soak = "soak.csv", SOAK, ".venv/bin/python benchmarks/soak.py"
    name, columns, command = {Fuzzing: ("fuzz.csv", FUZZ, "make fuzz"), Soak: soak}[result]
    path = path or folders.root() / "data" / "robustness" / name
    if not path.exists():
        raise MissingDataError(f"{path} is missing; `{command}` makes build/{name}.")
    rows = pd.read_csv(path, keep_default_na=False)
    if list(rows) != columns:
        raise RawDataError(path, 1, ", ".join(rows), f"the columns {', '.join(columns)}")
    return result(rows)


def read(path: Path | None = None) -> Torture:
    """
    Read a table of `python -m torture`, by default the committed one.

    Raise MissingDataError if there is none, and RawDataError if it is not such a table.
    """
    path = path or folders.root() / "data" / "robustness" / "torture.json"
    try:
        text = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise MissingDataError(f"{path} is missing; `make torture` makes build/torture.json.") from None
    except ValueError as error:
        raise RawDataError(path, None, error, "JSON") from None
    if not isinstance(text, dict) or not text.keys() >= MEMBERS:
        raise RawDataError(path, None, "another JSON", f"the members {', '.join(sorted(MEMBERS))}")
    rows = [
        {"kind": kind, "n": counts.get("n", 0)} | {harm: counts.get(harm, 0) for harm in HARMS}
        for kind, counts in sorted(text["kinds"].items())
    ]
    return Torture(pd.DataFrame(rows), {name: text[name] for name in ("seed", "jobs", "seconds", "not_possible")})
