"""
Recompute the cost table independently, from the files of a run folder, sharing only the number formatting.

`python -m wanbench.pages.price_performance.recount <run folder> [<price factor>]` prints it. If it agrees with `costs`,
which goes through ingest and tables, neither lost or double-counted a record. Both use the records in the brokers' logs
from the first whole second to the last in which all producers ran, the geometric mean over trials, and t.
"""

from __future__ import annotations

import gzip
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from scipy.stats import t

from wanbench.formatting import interval
from wanbench.methods.result import RowsResult, text_table

from .costs import SizeCosts

FEWEST_S = 2
"""Minimum whole seconds of a trial, as on the first path."""
CELLS = ("messages/s", "messages/s, interval", "USD per billion", "USD per billion, interval")


def _text(folder: Path, name: str) -> str:
    path = folder / name
    return path.read_text() if path.is_file() else gzip.decompress((folder / f"{name}.gz").read_bytes()).decode()


def _trials(folder: Path) -> list[tuple[str, dict, str]]:
    """Setting, experiment and file stem of the last attempt of each completed trial."""
    events = [json.loads(line) for line in _text(folder, "journal.jsonl").splitlines()]
    started = {e["test_id"]: e["attempt"] for e in events if e["event"] == "test-started"}
    done = {e["test_id"] for e in events if e["event"] == "test-finished"}
    return [
        (test["setting"], test["experiments"][0], f"{test['id']}.{started[test['id']]}")
        for test in events[0]["plan"]["tests"]
        if test["id"] in done
    ]


def _messages_per_s(folder: Path, stem: str) -> float | None:
    times = json.loads(_text(folder / "kafka_load", f"{stem}.times.json"))
    first, last = math.ceil(times["counts_from_s"]), math.floor(times["counts_until_s"])
    if last - first < FEWEST_S:
        return None
    rows = json.loads(_text(folder / "kafka_load", f"{stem}.batches.json"))["rows"]
    return sum(records for *_, second, _, records, _ in rows if first <= second < last) / (last - first)


def recount(
    folder: Path | str, *, price_factor: float | Mapping[str, float] = 1.0
) -> dict[str, tuple[str, str, str, str]]:
    """By setting: messages per second and its interval, USD per billion messages and its interval, as text."""
    folder, logs, usd = Path(folder), {}, {}
    for setting, trial, stem in _trials(folder):
        rate = _messages_per_s(folder, stem)
        if rate is None:
            continue
        logs.setdefault(setting, []).append(math.log(rate))
        sizes = [size for size in trial["broker_sizes"] if size]
        factor = price_factor[setting] if isinstance(price_factor, Mapping) else price_factor
        usd[setting] = factor * sum(size["price_usd_per_hour"] for size in sizes)
    table = {}
    for name, values in logs.items():
        n, mean = len(values), sum(values) / len(values)
        squares = sum((value - mean) ** 2 for value in values)
        half = t.ppf(0.975, n - 1) * math.sqrt(squares / (n - 1) / n) if n > 1 else math.nan
        rates = [math.exp(log) for log in (mean, mean - half, mean + half)]
        rate, rate_ends = interval(*rates, "messages/s")
        cost, cost_ends = interval(*(usd[name] / 3600 / rates[k] * 1e9 for k in (0, 2, 1)), "USD")
        table[name] = (rate.removesuffix(" messages/s"), rate_ends, cost.removesuffix(" USD"), cost_ends)
    return table


@dataclass(frozen=True, repr=False)
class Recount(RowsResult):
    """Cells of the cost table by both paths: setting, cell, `first`, `second`, `agrees`."""

    @property
    def sentence(self) -> str:
        rows, apart = self.rows, self.rows[~self.rows.agrees]
        cells = "; ".join(f"{row.cell} of {row.setting}: {row.first} and {row.second}" for row in apart.itertuples())
        if cells:
            return f"{len(apart)} of {len(rows)} cells differ between the cost table and its recount ({cells})."
        return f"All {len(rows)} cells of the cost table agree with its recount from raw files to the last digit."

    def formatted_table(self) -> pd.DataFrame:
        return text_table(self.rows.assign(agrees=self.rows.agrees.map({True: "yes", False: "no"})))


def recount_agrees(costs: SizeCosts, folder: Path | str, *, price_factor: float | Mapping[str, float] = 1.0) -> Recount:
    """Compare the cost table as shown with its recount from a run folder."""
    again, rows = recount(folder, price_factor=price_factor), []
    for shown in costs.formatted_table().to_dict("records"):
        second = dict(zip(CELLS, again.get(shown["setting"], ("",) * len(CELLS)), strict=True))
        for cell in CELLS:
            row = {"setting": shown["setting"], "cell": cell, "first": shown[cell], "second": second[cell]}
            rows.append(row | {"agrees": shown[cell] == second[cell]})
    return Recount(pd.DataFrame(rows))


if __name__ == "__main__":
    for setting, cells in recount(sys.argv[1], price_factor=float((sys.argv[2:] or ["1"])[0])).items():
        print(setting, *cells, sep=" | ")
