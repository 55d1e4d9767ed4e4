"""What became of everything that was tried: counts, and the rows a reader must see."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd


def account(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    How many of each: tests by outcome, echoes sent and lost, transfers, files that could not be read.

    Parameters
    ----------
    tables : mapping of DataFrame
        As `read_run` gives them; with table flags, as `tabulate` does, those are counted too.

    Returns
    -------
    DataFrame
        Columns what, n.
    """
    tests, echoes, transfers = (tables[name] for name in ("tests", "echoes", "transfers"))
    sent = echoes[~echoes.duplicate]
    rows = [
        ("tests planned that were tried", tests.test_id.nunique()),
        ("attempts at them", len(tests)),
        *((f"attempts {outcome}", int((tests.outcome == outcome).sum())) for outcome in _outcomes(tests)),
        ("echoes sent", len(sent)),
        ("echoes lost", int(sent.lost.sum())),
        ("transfers", len(transfers)),
        ("transfers that ended in an error", int(transfers.error.notna().sum())),
        ("files that could not be read", len(tables["unread"])),
    ]
    if "flags" in tables:
        rows += [
            (f"flags of the plausibility gate, {verdict}", n) for verdict, n in _verdicts(tables["flags"])
        ]
    return pd.DataFrame(rows, columns=["what", "n"])


def shortfalls(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    Every attempt that failed or was interrupted, and every file that could not be read, one row each.

    Returns
    -------
    DataFrame
        Columns what, where, why; empty where nothing fell short.
    """
    tests, unread = tables["tests"], tables["unread"]
    short = tests[tests.outcome != "done"]
    rows = [
        (f"attempt {row.outcome}", f"{row.test_id}, attempt {row.attempt}", _why(row))
        for row in short.itertuples(index=False)
    ]
    rows += [
        (
            "file not read",
            row.path if pd.isna(row.line_number) else f"{row.path}, line {row.line_number}",
            f"expected {row.expected}, found {row.found!r}",
        )
        for row in unread.itertuples(index=False)
    ]
    return pd.DataFrame(rows, columns=["what", "where", "why"])


def _outcomes(tests):
    return [name for name in ("done", "failed", "interrupted") if (tests.outcome == name).any()]


def _verdicts(flags):
    return [(verdict, int((flags.verdict == verdict).sum())) for verdict in ("impossible", "suspect")]


def _why(row):
    parts = [part for part in (row.failed_experiment, row.reason) if isinstance(part, str) and part]
    return ": ".join(parts) or "no end in the journal"
