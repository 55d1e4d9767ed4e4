"""Read a lab's own files: final counters of its links, samples of its links, times of cuts, and costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from wanbench import tables
from wanbench.errors import RawDataError
from wanbench.runs import Run

from .content import read_bytes
from .json_values import is_time, object_of_line, read_json
from .rows import Row, core, fitting

LINK = ["run_id", "from_region", "to_region"]


def read_links(path: str | Path) -> dict[str, pd.DataFrame]:
    """Read a lab session's final counters into table link_counters without run_id; RawDataError for another file."""
    expected = "a JSON list with one object per link"
    rows = read_json(path, list, expected)
    if not all(isinstance(row, dict) for row in rows):
        raise RawDataError(path, None, str(rows)[:200], expected)
    return {"link_counters": fitting(path, "link_counters", [row | {"run_id": None} for row in rows])}


def of_all_sessions(counters: pd.DataFrame, run_id: str) -> pd.DataFrame:
    """
    Sum table link_counters over a run's lab sessions. A sum is null if one session's value is unknown. worst_late_ms is
    the maximum over sessions, and mean_late_ms is null if there are several sessions.
    """
    counters = counters.assign(run_id=run_id)
    if counters.duplicated(LINK).any():
        rules: dict[str, object] = {name: lambda each: each.sum(skipna=False) for name in counters if name not in LINK}
        rules["worst_late_ms"] = "max"
        rules["mean_late_ms"] = lambda values: values.iloc[0] if len(values) == 1 else None
        counters = counters.groupby(LINK, sort=False).agg(rules).reset_index()
    return tables.validate("link_counters", counters)


def read_cut(path: str | Path) -> dict[str, pd.DataFrame]:
    """
    Read the times of one cut into table cuts; raise RawDataError unless the file holds the cut's four times in order.
    """
    names = [column.name for column in core("cuts")]
    content = read_json(path, dict, "the times of a cut in JSON")
    if set(content) != set(names):
        raise RawDataError(path, None, content, f"a JSON object with {', '.join(names)}")
    times = [content[name] for name in names]
    if not all(map(is_time, times)):
        raise RawDataError(path, None, times, "Unix times in seconds")
    times = [float(t) for t in times]
    if times != sorted(times):
        raise RawDataError(path, None, times, "times in the order of the commands")
    return {"cuts": fitting(path, "cuts", [dict(zip(names, times, strict=True))])}


COLUMNS = core("link_samples")
RENAMED = {"link_from": "from_region", "link_to": "to_region"}
LARGEST_BYTES = 2**30
"""Size of nine hours of samples every second of all 72 links between nine regions."""
SAMPLE = 'a JSON object with "answer_ms" and "links", a list of objects'
GROWING = (
    "at_s", "packets_sent", "packets_delivered", "bytes_delivered", "packets_lost", "packets_queue_dropped",
)  # fmt: skip
"""The time, and counters that never decrease from one sample of a link to the next."""


def read_samples(path: str | Path) -> dict[str, pd.DataFrame]:
    """Read samples of links; a RawDataError names a line that is not a sample, or whose time or counters decrease."""
    path = Path(path)
    lines = read_bytes(path, most_bytes=LARGEST_BYTES)[1].split(b"\n")
    if lines.pop():
        raise RawDataError(path, len(lines) + 1, "a truncated line", SAMPLE)
    numbered = [(n, row) for n, line in enumerate(lines, 1) for row in _sample(path, n, line)]
    line_numbers, rows = [n for n, _ in numbered], [row for _, row in numbered]
    frame = fitting(path, "link_samples", rows)
    _check_growth(path, frame, line_numbers)
    return {"link_samples": frame}


def _sample(path: Path, line_number: int, line: bytes) -> list[Row]:
    content = object_of_line(path, line_number, line, SAMPLE).values
    links = content.get("links")
    if not isinstance(links, list) or not all(isinstance(link, dict) for link in links):
        raise RawDataError(path, line_number, line.decode("utf-8", "replace"), SAMPLE)
    answer = {"answer_ms": content.get("answer_ms")}
    return [{c.name: link.get(RENAMED.get(c.name, c.name)) for c in COLUMNS} | answer for link in links]


def _check_growth(path: Path, frame: pd.DataFrame, line_numbers: list[int]) -> None:
    before = frame.groupby(["link_from", "link_to"], sort=False)[[*GROWING]].shift()
    for name in GROWING:
        falls = (frame[name] < before[name]).fillna(False).to_numpy(dtype=bool)
        if falls.any():
            row = frame.iloc[falls.argmax()]
            found = f"{name} {row[name]} of the link from {row.link_from} to {row.link_to}"
            expected = f"at least {before[name].iloc[falls.argmax()]}, the previous value"
            raise RawDataError(path, line_numbers[falls.argmax()], found, expected)


EXPERIMENT, IF_KILLED = "lab_cost", "if-killed-"
_COST = 'a JSON object with "expected" and "spent", each with "items" that have low_usd and high_usd'


@dataclass(frozen=True)
class LabCost:
    """
    Expected and actual cost of a run's rented hosts over all lab sessions, each as (lowest, highest) in US dollars.

    `unknown` names items without a price, which are left out. `killed` is the number of killed sessions. The maximum
    assumes that their hosts ran until they shut themselves down.
    """

    expected_usd: tuple[float, float]
    spent_usd: tuple[float, float]
    unknown: tuple[str, ...] = ()
    killed: int = 0

    def __str__(self) -> str:
        spent, expected = (f"{low:.2f} to {high:.2f}" for low, high in (self.spent_usd, self.expected_usd))
        without = f", without {', '.join(self.unknown)}" if self.unknown else ""
        killed = ", assuming that hosts of killed sessions ran until they shut themselves down" if self.killed else ""
        return f"{spent} USD spent{killed}, {expected} USD expected{without}"


def lab_cost(run: Run) -> LabCost | None:
    """Sum up the cost of a run's lab, with the maximum for killed sessions; None if no hosts were rented."""
    killed = sorted(run.folder.glob(f"{EXPERIMENT}/{IF_KILLED}*.json"))
    files = [run.folder / file["path"] for file in run.raw_files() if file["experiment"] == EXPERIMENT]
    paths = [*killed, *files]
    if not paths:
        return None
    sums, unknown = {"expected": [0.0, 0.0], "spent": [0.0, 0.0]}, {}
    for path in paths:
        content = read_json(path, dict, _COST)
        try:
            for name, total in sums.items():
                for item in content[name]["items"]:
                    low, high = item["low_usd"], item["high_usd"]
                    if low is None or high is None:
                        unknown[str(item["item"])] = None
                    else:
                        total[0] += float(low)
                        total[1] += float(high)
        except (KeyError, TypeError, ValueError):
            raise RawDataError(path, None, str(content)[:200], _COST) from None
    expected, spent = ((low, high) for low, high in sums.values())
    return LabCost(expected, spent, tuple(unknown), len(killed))
