"""
Run a simulation: generate many data sets with a known answer, and count how often intervals contain it.

A simulation is a module of this package with

- `SETTINGS`: a list of dicts of plain data, one per kind of data set,
- `trial(seed, **setting)`: a function that returns a list of `Outcome`, always the same for a seed,
- `DATASETS` (optional): the default number of data sets per setting, or a function that returns it for a setting.

Data set k of every setting has the seed `seed + k`, so that each row of a committed table can be reproduced separately.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pandas as pd

from wanbench.checks import check_number
from wanbench.errors import ParameterError, RawDataError
from wanbench.files import replace_file
from wanbench.folders import root
from wanbench.methods.result import Estimate, exact_binomial

DATASETS = 1_000
"""Data sets per setting: enough to know a coverage near 95 % to within 1.4 percentage points."""
FIRST_DATASETS = 20
"""Number of first data sets of a setting that are also counted separately, few enough for a test to repeat them."""
BLOCK = 20
"""Data sets per job of a process: a job takes seconds, so that no process waits long for the last one."""
MAIN = "the interval given"
"""Method name of an estimate's own interval."""
NAIVE = "pairs as independent"
"""Method name of the interval that assumes independent pairs."""
CASE = ["setting", "quantity", "method"]
COUNTS = ["seed", "data_sets", "without_interval", "covered", "coverage", "coverage_low", "coverage_high"]
COLUMNS = [*CASE, *COUNTS, "below", "above", "median_width", "first", "first_covered"]


@dataclass(frozen=True)
class Outcome:
    """
    One interval for one data set.

    Parameters
    ----------
    quantity, method : str
        The quantity that the interval estimates, and the method that computed it.
    low, high : float
        Its ends; NaN if the method gave no interval, infinite if an end is open.
    truth : float
        The value that it should contain.
    """

    quantity: str
    method: str
    low: float
    high: float
    truth: float


def outcomes(quantity: str, estimate: Estimate, truth: float) -> list[Outcome]:
    """Return the main, the naive and all other intervals of an estimate as outcomes with the same truth."""
    intervals = [(MAIN, estimate), (NAIVE, estimate.naive), *((one.method, one) for one in estimate.others)]
    return [Outcome(quantity, method, one.low, one.high, truth) for method, one in intervals]


def simulations() -> dict[str, ModuleType]:
    """Return the simulations of this package by subject, the name of their module."""
    package = importlib.import_module(__package__)
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    modules = {name: importlib.import_module(f"{__package__}.{name}") for name in names if name != "__main__"}
    return {name: module for name, module in modules.items() if hasattr(module, "trial")}


def run(
    simulation: ModuleType,
    *,
    datasets: int | None = None,
    seed: int = 0,
    processes: int = 1,
    settings: Sequence[dict] | None = None,
    report: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """
    Run a simulation, and return its table with a row per setting, quantity and method.

    Parameters
    ----------
    datasets : int
        Data sets per setting. Default: `DATASETS` of the simulation, or else 1,000.
    seed : int
        Seed of the first data set; each further one adds 1.
    processes : int
        Number of concurrent processes. The table does not depend on it.
    settings : sequence of dict
        Settings to run. Default: all settings of the simulation.
    report : callable
        Called with a line of text after each setting.

    Returns
    -------
    DataFrame
        `setting` is JSON. `coverage` is `covered` divided by the number of data sets with an interval; `coverage_low`
        and `coverage_high` are its 95 % Clopper-Pearson interval. `below` and `above` are the numbers of intervals
        below and above the truth. `median_width` is the median over data sets with an interval. `first_covered` is
        `covered` among the first `first` data sets.
    """
    own = datasets if datasets is not None else getattr(simulation, "DATASETS", DATASETS)
    settings = simulation.SETTINGS if settings is None else settings
    numbers = [own(setting) if callable(own) else own for setting in settings]
    for n in numbers:
        check_number("datasets", n, 1, whole=True)
    check_number("processes", processes, 1, whole=True)
    blocks = [[range(k, min(k + BLOCK, n)) for k in range(0, n, BLOCK)] for n in numbers]
    jobs = [
        (simulation.__name__, seed + block[0], len(block), setting)
        for setting, parts in zip(settings, blocks, strict=True)
        for block in parts
    ]
    frames = []
    with ProcessPoolExecutor(processes) if processes > 1 else nullcontext() as pool:
        done = pool.map(_block, jobs) if pool else map(_block, jobs)
        for setting, parts, n in zip(settings, blocks, numbers, strict=True):
            by_dataset = [outcomes for _ in parts for outcomes in next(done)]
            frames.append(summarise(by_dataset, setting, n, seed))
            if report:
                report(f"{simulation.__name__.rpartition('.')[2]}: {describe(setting)}: {n:,} data sets")
    return pd.concat(frames, ignore_index=True)


def _block(job: tuple[str, int, int, dict]) -> list[list[Outcome]]:
    """Return the outcomes of data sets with consecutive seeds; a job names its module, as modules cannot be pickled."""
    name, first, n, setting = job
    simulation = importlib.import_module(name)
    return [list(simulation.trial(seed, **setting)) for seed in range(first, first + n)]


def summarise(by_dataset: Iterable[list[Outcome]], setting: dict, datasets: int, seed: int) -> pd.DataFrame:
    """Return the rows of one setting from the outcomes of its data sets, in the order of their seeds."""
    flat = [
        (one.quantity, one.method, k, one.low, one.high, one.truth)
        for k, outcomes in enumerate(by_dataset)
        for one in outcomes
    ]
    frame = pd.DataFrame(flat, columns=["quantity", "method", "k", "low", "high", "truth"])
    frame["given"] = frame.low.notna() & frame.high.notna()
    frame["covered"] = frame.given & (frame.low <= frame.truth) & (frame.truth <= frame.high)
    rows = []
    for (quantity, method), case in frame.groupby(["quantity", "method"], sort=False):
        given = case[case.given]
        n, covered = len(given), int(given.covered.sum())
        below, above = int((given.high < given.truth).sum()), int((given.low > given.truth).sum())
        share, ends = covered / n if n else float("nan"), exact_binomial(covered, n)
        counts = (seed, datasets, datasets - n, covered, share, *ends, below, above)
        first = int(case.covered[case.k < FIRST_DATASETS].sum())
        width = (given.high - given.low).median()
        rows.append((json.dumps(setting), quantity, method, *counts, width, min(FIRST_DATASETS, datasets), first))
    return pd.DataFrame(rows, columns=COLUMNS)


def describe(setting: dict | str) -> str:
    """
    Format a setting, or its JSON, as text.

    >>> describe({"n_regions": 8, "effects": "on the slope", "phi": 0.3})
    '8 regions, on the slope, phi 0.3'
    """
    if isinstance(setting, str):
        setting = json.loads(setting)
    return ", ".join(_item_text(name, value) for name, value in setting.items())


def _item_text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    label = name.replace("_", " ")
    return f"{value} {label.removeprefix('n ')}" if label.startswith("n ") else f"{label} {value}"


def folder() -> Path:
    """Return the folder of the committed tables, `data/validity` of the checkout."""
    return root() / "data" / "validity"


def write(table: pd.DataFrame, subject: str, into=None) -> Path:
    """Write `<subject>.csv` atomically, with the command that makes it in the first line, and return its path."""
    path = (Path(into) if into is not None else folder()) / f"{subject}.csv"
    seed, datasets = int(table.seed.iloc[0]), table.data_sets.unique()
    number = f" --datasets {datasets[0]}" if len(datasets) == 1 else ""
    command = f"python -m simulations --only {subject}{number} --seed {seed}"
    text = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    replace_file(path, f"# {command}\n{text}".encode())
    return path


def read(subject: str, out_of=None) -> pd.DataFrame:
    """Read the table of a subject that `write` wrote; raise RawDataError if it is missing or has other columns."""
    path = (Path(out_of) if out_of is not None else folder()) / f"{subject}.csv"
    try:
        table = pd.read_csv(path, comment="#")
    except (OSError, ValueError) as error:
        raise RawDataError(path, None, error, "a table written by `make validity`") from None
    if list(table.columns) != COLUMNS:
        raise RawDataError(path, 2, ", ".join(map(str, table.columns)), f"the columns {', '.join(COLUMNS)}")
    return table


def compare_counts(committed: pd.DataFrame, again: pd.DataFrame) -> pd.DataFrame:
    """
    Compare counts of the first data sets in the committed table and in `again`, a table of only these data sets.

    Return a row per setting, quantity and method with the counts `committed` and `again`, and `same`. Raise
    ParameterError if the committed table lacks a row.
    """
    both = again[[*CASE, "first", "first_covered"]].merge(
        committed[[*CASE, "first", "first_covered"]], on=CASE, how="left", suffixes=("_again", "")
    )
    missing = both[both.first_covered.isna() | (both["first"] != both["first_again"])]
    if len(missing):
        lacking = missing.iloc[0]
        raise ParameterError(
            f"the committed table does not count the first {lacking.first_again} data sets of "
            f"{describe(lacking.setting)}, {lacking.quantity}, {lacking.method}; make it again with `make validity`."
        )
    counts = both[CASE].assign(committed=both.first_covered.astype(int), again=both.first_covered_again)
    return counts.assign(same=counts.committed == counts.again)
