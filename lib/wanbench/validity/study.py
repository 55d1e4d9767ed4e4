"""
Runs a study: one method or several on many simulated data sets with a known answer, and counts how often their
intervals hold it.

A study is a module of this package with

- `TITLE`: what it asks, as a noun phrase,
- `SETTINGS`: a list of dicts of plain data, one per kind of data set,
- `trial(seed, **setting)`: a list of `Outcome`, the same for the same seed,
- `DATASETS` (optional): how many data sets per setting unless told otherwise, a number or a function of the setting.

Data set k of every setting has the seed `seed + k`, so any row of a committed table can be made again, alone.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pandas as pd

from ..errors import ParameterError, RawDataError
from ..folders import root
from ..stats.result import Estimate, exact_binomial

DATASETS = 1_000
FIRST = 20
"""The first data sets of a setting, counted apart: few enough to be made again by a test."""
BLOCK = 20
MAIN, NAIVE = "the interval given", "pairs as independent"
"""The methods that every `Estimate` has: its own interval, and the one that takes pairs as independent."""
CASE = ["setting", "quantity", "method"]
COLUMNS = [
    *CASE,
    "seed",
    "data_sets",
    "without_interval",
    "covered",
    "coverage",
    "coverage_low",
    "coverage_high",
    "below",
    "above",
    "median_width",
    "first",
    "first_covered",
]


@dataclass(frozen=True)
class Outcome:
    """
    One interval on one data set.

    Parameters
    ----------
    quantity, method : str
        What the interval is of, and how it was computed.
    low, high : float
        Its ends; NaN where the method gave none, infinite where it is open.
    truth : float
        What it should hold.
    """

    quantity: str
    method: str
    low: float
    high: float
    truth: float


def outcomes(quantity: str, estimate: Estimate, truth: float) -> list[Outcome]:
    """The main interval of an estimate, the naive one and the others, each judged by the same truth."""
    each = [
        (MAIN, estimate.low, estimate.high),
        (NAIVE, estimate.naive.low, estimate.naive.high),
        *((other.method, other.low, other.high) for other in estimate.others),
    ]
    return [Outcome(quantity, method, low, high, truth) for method, low, high in each]


def studies() -> dict[str, ModuleType]:
    """The studies of this package by subject: the name of their module."""
    package = importlib.import_module(__package__)
    names = sorted(each.name for each in pkgutil.iter_modules(package.__path__) if each.name != "__main__")
    modules = {name: importlib.import_module(f"{__package__}.{name}") for name in names}
    wanted = ("TITLE", "SETTINGS", "trial")
    return {name: module for name, module in modules.items() if all(hasattr(module, one) for one in wanted)}


def run(
    study: ModuleType,
    *,
    datasets: int | None = None,
    seed: int = 0,
    processes: int = 1,
    settings: Sequence[dict] | None = None,
    report: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """
    The table of a study: one row per setting, quantity and method.

    Parameters
    ----------
    datasets : int
        Per setting; default the study's own numbers, else 1,000.
    seed : int
        Of the first data set; the others follow by ones.
    processes : int
        How many at once. The table does not depend on it.
    settings : sequence of dict
        Some of the study's settings; default all.
    report : callable
        Gets a line per finished setting.

    Returns
    -------
    DataFrame
        `setting` is JSON; `coverage` is `covered` over the data sets that gave an interval, with the limits of
        its 95 % Clopper-Pearson interval; `below` and `above` count the intervals that missed, lying below the
        truth and above it; `median_width` is of those with an interval; `first_covered` counts within the
        first `first` data sets.
    """
    own = datasets if datasets is not None else getattr(study, "DATASETS", DATASETS)
    settings = study.SETTINGS if settings is None else settings
    numbers = [own(setting) if callable(own) else own for setting in settings]
    for name, value in (*(("datasets", n) for n in numbers), ("processes", processes)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError(f"{name}={value!r}: a whole number from 1 is needed")
    blocks = [[range(k, min(k + BLOCK, n)) for k in range(0, n, BLOCK)] for n in numbers]
    jobs = [
        (study.__name__, seed + k[0], len(k), setting)
        for setting, parts in zip(settings, blocks, strict=True)
        for k in parts
    ]
    frames = []
    with ProcessPoolExecutor(processes) if processes > 1 else _Here() as pool:
        done = pool.map(_block, jobs)
        for setting, parts, n in zip(settings, blocks, numbers, strict=True):
            outcomes = [one for _ in parts for one in next(done)]
            frames.append(summarise(outcomes, setting, n, seed))
            if report:
                report(f"{study.__name__.rpartition('.')[2]}: {describe(setting)}: {n:,} data sets")
    return pd.concat(frames, ignore_index=True)


class _Here:
    """Does in this process, one after the other, what a pool of processes would."""

    map = staticmethod(map)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


def _block(job: tuple[str, int, int, dict]) -> list[list[Outcome]]:
    """The outcomes of data sets with consecutive seeds; the study is named, so that a process can import it."""
    name, first, n, setting = job
    study = importlib.import_module(name)
    return [list(study.trial(seed, **setting)) for seed in range(first, first + n)]


def summarise(outcomes: Iterable[list[Outcome]], setting: dict, datasets: int, seed: int) -> pd.DataFrame:
    """The rows of one setting from the outcomes of its data sets, in the order of their seeds."""
    flat = [
        (one.quantity, one.method, k, one.low, one.high, one.truth)
        for k, each in enumerate(outcomes)
        for one in each
    ]
    frame = pd.DataFrame(flat, columns=["quantity", "method", "k", "low", "high", "truth"])
    frame["given"] = frame.low.notna() & frame.high.notna()
    frame["covered"] = frame.given & (frame.low <= frame.truth) & (frame.truth <= frame.high)
    rows = []
    for (quantity, method), case in frame.groupby(["quantity", "method"], sort=False):
        given = case[case.given]
        covered = int(given.covered.sum())
        low, high = exact_binomial(covered, len(given))
        rows.append(
            {
                "setting": json.dumps(setting),
                "quantity": quantity,
                "method": method,
                "seed": seed,
                "data_sets": datasets,
                "without_interval": datasets - len(given),
                "covered": covered,
                "coverage": covered / len(given) if len(given) else float("nan"),
                "coverage_low": low,
                "coverage_high": high,
                "below": int((given.high < given.truth).sum()),
                "above": int((given.low > given.truth).sum()),
                "median_width": (given.high - given.low).median(),
                "first": min(FIRST, datasets),
                "first_covered": int(case.covered[case.k < FIRST].sum()),
            }
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def describe(setting: dict | str) -> str:
    """
    A setting, or its JSON, in words.

    >>> describe({"n_regions": 8, "effects": "on the slope", "phi": 0.3})
    '8 regions, on the slope, phi 0.3'
    """
    if isinstance(setting, str):
        setting = json.loads(setting)
    return ", ".join(map(_in_words, *zip(*setting.items(), strict=True))) if setting else "all alike"


def _in_words(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    first, _, rest = name.partition("_")
    words = name.replace("_", " ")
    return f"{value} {rest.replace('_', ' ')}" if first == "n" and rest else f"{words} {value}"


def folder() -> Path:
    """Where the committed tables lie: `data/validity` of the checkout."""
    return root() / "data" / "validity"


def write(table: pd.DataFrame, subject: str, into=None) -> Path:
    """Write `<subject>.csv` in one step, the command that makes it in its first line."""
    into = Path(into) if into is not None else folder()
    into.mkdir(parents=True, exist_ok=True)
    seed, datasets = int(table.seed.iloc[0]), table.data_sets.unique()
    number = f" --datasets {datasets[0]}" if len(datasets) == 1 else ""
    command = f"python -m wanbench.validity --only {subject}{number} --seed {seed}"
    handle, temporary = tempfile.mkstemp(dir=into, prefix=f".{subject}-", suffix=".tmp")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(f"# {command}\n")
            table.to_csv(file, index=False, float_format="%.6g", lineterminator="\n")
        os.chmod(temporary, 0o644)
        os.replace(temporary, into / f"{subject}.csv")
    except BaseException:
        os.unlink(temporary)
        raise
    return into / f"{subject}.csv"


def read(subject: str, out_of=None) -> pd.DataFrame:
    """The table of a subject as `write` left it; RawDataError where it is missing or lacks columns."""
    path = (Path(out_of) if out_of is not None else folder()) / f"{subject}.csv"
    try:
        table = pd.read_csv(path, comment="#")
    except (OSError, ValueError) as error:
        raise RawDataError(path, None, error, "a table written by `make validity`") from None
    if list(table.columns) != COLUMNS:
        found = ", ".join(map(str, table.columns))
        raise RawDataError(path, 2, found, f"the columns {', '.join(COLUMNS)}")
    return table


def agrees(committed: pd.DataFrame, again: pd.DataFrame) -> pd.DataFrame:
    """
    The first data sets, made again, beside what the committed table counts: columns of a case, `committed`,
    `again`, `same`.

    `again` is a table over exactly the first data sets of some settings. ParameterError where the committed
    table lacks one of its cases.
    """
    both = again[[*CASE, "first", "first_covered"]].merge(
        committed[[*CASE, "first", "first_covered"]], on=CASE, how="left", suffixes=("_again", "")
    )
    if both.first_covered.isna().any() or (both["first"] != both["first_again"]).any():
        lacking = both[both.first_covered.isna() | (both["first"] != both["first_again"])].iloc[0]
        raise ParameterError(
            f"the committed table does not count the first {lacking.first_again} data sets of "
            f"{describe(lacking.setting)}, {lacking.quantity}, {lacking.method}; make it anew with `make validity`"
        )
    found = both[CASE].assign(committed=both.first_covered.astype(int), again=both.first_covered_again)
    return found.assign(same=found.committed == found.again)
