"""Count attempts by outcome, and list failures for a page."""

from collections.abc import Mapping

import pandas as pd

OUTCOMES = ("done", "failed", "interrupted")
VERDICTS = ("impossible", "suspect")


class Listing(pd.DataFrame):
    """
    A DataFrame that a page shows without row numbers, or as "none" if empty.

    Operations on it return plain DataFrames.
    """

    @property
    def _constructor(self):
        return pd.DataFrame

    def __repr__(self) -> str:
        return "none" if self.empty else self.to_string(index=False)

    def _repr_html_(self) -> str:
        if self.empty:
            return "<p>none</p>"
        counts = dict.fromkeys(self.select_dtypes("integer").columns, "{:,}".format)
        with pd.option_context("display.max_colwidth", None):
            return self.to_html(index=False, formatters=counts)


def account(tables: Mapping[str, pd.DataFrame]) -> Listing:
    """
    Count tests, attempts by outcome, echoes, transfers, unreadable files and flags, in the columns `what` and `n`.

    `tables` come from `read_run`, or from `tabulate`, which adds the table flags.
    """
    tests, echoes, transfers = (tables[name] for name in ("tests", "echoes", "transfers"))
    sent = echoes[~echoes.duplicate]
    outcomes = {name: int((tests.outcome == name).sum()) for name in OUTCOMES}
    rows = [
        ("tests tried", tests.test_id.nunique()),
        ("attempts", len(tests)),
        *((f"attempts {name}", n) for name, n in outcomes.items() if n),
        ("echoes sent", len(sent)),
        ("echoes lost", int(sent.lost.sum())),
        ("transfers", len(transfers)),
        ("transfers that ended in an error", int(transfers.error.notna().sum())),
        ("files that could not be read", len(tables["unread"])),
    ]
    if "flags" in tables:
        verdicts = tables["flags"].verdict
        rows += [(f"flags of the plausibility rules, {name}", int((verdicts == name).sum())) for name in VERDICTS]
    return Listing(rows, columns=["what", "n"])


def failures(tables: Mapping[str, pd.DataFrame]) -> Listing:
    """List all failed or interrupted attempts and all unreadable files, in the columns `what`, `where` and `why`."""
    tests, unread = tables["tests"], tables["unread"]
    rows = []
    for row in tests[tests.outcome != "done"].itertuples(index=False):
        parts = [part for part in (row.failed_experiment, row.reason) if isinstance(part, str) and part]
        why = ": ".join(parts) or "its end is not in the journal"
        rows.append((f"attempt {row.outcome}", f"{row.test_id}, attempt {row.attempt}", why))
    for row in unread.itertuples(index=False):
        place = row.path if pd.isna(row.line_number) else f"{row.path}, line {row.line_number}"
        rows.append(("file not read", place, f"expected {row.expected}, found {row.found!r}"))
    return Listing(rows, columns=["what", "where", "why"])
