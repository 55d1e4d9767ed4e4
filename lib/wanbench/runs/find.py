"""Find the runs of a data folder, and combine the tests of several."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from . import journal
from .read import TEST_COLUMNS, Run


def overlaps(run: Run) -> pd.DataFrame:
    """
    Pairs of tests that used one region at the same time. There must be none: they would compete.

    Start and end are those of the journal; an interrupted attempt is taken to last until its session's last
    line.

    Returns
    -------
    DataFrame
        Columns region, test_id, attempt, other_test_id, other_attempt, overlap_s.
    """
    spans: dict[str, list[tuple]] = {}
    for a in run.attempts():
        start, end = pd.Timestamp(a.started_at_utc), pd.Timestamp(a.ended_at_utc or a.last_sign_at_utc)
        for region in {a.from_region, a.to_region}:
            spans.setdefault(region, []).append((start, end, a.test_id, a.attempt))
    rows = []
    for region in sorted(spans):
        open_spans: list[tuple] = []
        for span in sorted(spans[region]):
            open_spans = [earlier for earlier in open_spans if earlier[1] > span[0]]
            for earlier in open_spans:
                common = (min(earlier[1], span[1]) - span[0]).total_seconds()
                rows.append((region, *earlier[2:], *span[2:], common))
            open_spans.append(span)
    return pd.DataFrame(rows, columns=["region", "test_id", "attempt", "other_test_id", "other_attempt", "overlap_s"])


def find(data_folder: str | Path, campaign: str | None = None) -> list[Run]:
    """
    All runs under <data folder>/raw, or all of one campaign, oldest first.

    Folders without a journal (a run that ended before its first line) are skipped.
    """
    pattern = f"{campaign or '*'}/*/{journal.NAME}"
    folders = [path.parent for path in (Path(data_folder) / "raw").glob(pattern)]
    return [Run.open(folder) for folder in sorted(folders, key=lambda folder: (folder.name, str(folder)))]


def tests_of(runs: list[Run]) -> pd.DataFrame:
    """The tests of several runs in one table, as `make_plan` needs for `tests_done_before`."""
    tables = [table for run in runs if len(table := run.tests())]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=TEST_COLUMNS)
