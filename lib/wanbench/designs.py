"""
Plan experiments: factorial, interleaved and space-filling designs.

Sources: Box, Hunter & Hunter 2005, chapter 6 (two-level fractions); McKay, Beckman & Conover 1979 (Latin hypercubes).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isfinite, prod

import numpy as np
import pandas as pd
from scipy.stats import qmc

from .checks import check_flag, check_number, refusal
from .errors import ParameterError

# No campaign can measure more runs; a larger design is a mistake in `factors` or `replicates`.
MAXIMUM_RUNS = 100_000
RESERVED = ("order", "replicate", "block", "setting")  # columns of the plans, so no factor may have these names


@dataclass(frozen=True)
class Range:
    """
    A continuous factor of `space_filling`, with values from `low` to `high`.

    With `log`, values are spread evenly on a logarithmic scale and the centre is the geometric mean; use it for factors
    that act by ratio, such as a batch size. With `whole`, values are rounded to whole numbers.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        check_flag("log", self.log)
        check_flag("whole", self.whole)
        for name in ("low", "high"):
            value = check_number(name, getattr(self, name), whole=self.whole)
            if not isfinite(value):
                raise refusal(name, value, "a finite number")
        if not self.low < self.high:
            raise refusal("high", self.high, f"a number above low, {self.low:g}")
        if self.log and self.low <= 0:
            raise refusal("low", self.low, "a number above 0, as the range is filled in logarithms")

    def at(self, share):
        """Return the values at these positions in the range, from 0 (`low`) to 1 (`high`)."""
        share = np.asarray(share, dtype=float)
        if self.log:
            values = np.exp((1 - share) * np.log(self.low) + share * np.log(self.high))
        else:
            values = (1 - share) * self.low + share * self.high
        # Rounding errors of exp may leave the range.
        values = np.clip(values, self.low, self.high)
        return np.rint(values).astype(int) if self.whole else values


def factorial(
    factors: Mapping[str, Sequence[float | str]], *, replicates: int = 2, fraction: Mapping | None = None, seed: int = 0
) -> pd.DataFrame:
    """
    Plan a factorial design: one row per run, with `order` (from 1), `replicate` (from 1), and a column per factor.

    Every replicate is a block that holds all combinations once, in random order, so that drift favours none of them.

    Parameters
    ----------
    factors : mapping of sequences
        The levels of each factor, lowest first, all numbers (in the factor's unit) or all text: `{"delay_ms": [10, 40,
        160], "acks": ["1", "all"]}`.
    replicates : int
        How often each combination is measured; with 1, pure error cannot be estimated.
    fraction : mapping
        Generators of a two-level fraction, which halves the number of runs for each generator. `{"rate_bps":
        ["delay_ms", "jitter_ms", "loss"]}` sets the rate to its second level if an even number of the three other
        factors are at their first level. Main effects are then aliased with interactions.
    seed : int
        Random seed of the run order.

    Raises
    ------
    ParameterError
        For fewer than two levels, mixed kinds of levels, impossible generators, or too many runs.

    Examples
    --------
    >>> plan = factorial({"delay_ms": [10, 100], "acks": ["1", "all"]}, replicates=2, seed=1)
    >>> len(plan), plan.groupby(["delay_ms", "acks"]).size().unique().tolist()
    (8, [2])
    """
    check_number("replicates", replicates, 1, whole=True)
    _check_factors(factors)
    fraction = _checked_generators(factors, fraction)
    free = [name for name in factors if name not in fraction]
    _check_runs(replicates * prod(len(factors[name]) for name in free))
    rows = []
    for signs in product(*(range(len(factors[name])) for name in free)):
        at = dict(zip(free, signs, strict=True))
        for name, parents in fraction.items():
            at[name] = int(sum(1 - at[parent] for parent in parents) % 2 == 0)
        rows.append({name: _level(factors[name][at[name]]) for name in factors})
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(rows)) for _ in range(replicates)]
    plan = (
        pd.DataFrame(rows).iloc[np.concatenate(orders)].assign(replicate=np.repeat(range(1, replicates + 1), len(rows)))
    )
    return _numbered(plan)[["order", "replicate", *factors]]


def _numbered(plan: pd.DataFrame) -> pd.DataFrame:
    plan = plan.reset_index(drop=True)
    plan.insert(0, "order", np.arange(1, len(plan) + 1))
    return plan


def interleaved(settings: Sequence[str], blocks: int, *, seed: int = 0) -> pd.DataFrame:
    """
    Plan runs that alternate between settings: one row per run, with `order` (from 1), `block` (from 1) and `setting`.

    A block holds the settings in some order and then in reverse order (A B B A), so a linear drift affects all settings
    equally. Every second block mirrors the block before it (B A A B), so a quadratic drift affects them equally, too.
    The order is drawn anew, from `seed`, for every two blocks. Raise ParameterError for fewer than two settings, a
    repeated setting, or fewer than one block.

    >>> " ".join(interleaved(["A", "B"], 4, seed=0).setting)
    'A B B A B A A B A B B A B A A B'
    """
    settings = [] if isinstance(settings, str) else list(settings)
    if len(settings) < 2 or len(set(settings)) != len(settings):
        raise refusal("settings", settings, "two or more different names")
    check_number("blocks", blocks, 1, whole=True)
    _check_runs(2 * blocks * len(settings))
    rng = np.random.default_rng(seed)
    rows, first = [], settings
    for block in range(1, blocks + 1):
        first = [settings[k] for k in rng.permutation(len(settings))] if block % 2 else first[::-1]
        rows += [(block, name) for name in (*first, *first[::-1])]
    return _numbered(pd.DataFrame(rows, columns=["block", "setting"]))


def space_filling(
    factors: Mapping[str, Range | Sequence[float | str]], runs: int, seed: int = 0, *, centres: int = 4
) -> pd.DataFrame:
    """
    Plan a space-filling design (a Latin hypercube of low centred discrepancy): one row per run, with `order` (from 1),
    `replicate` (from 1) and a column per factor.

    A factor is a `Range` or a list of levels. Each `Range` takes `runs` different values (fewer if rounded to whole
    numbers), evenly spread, so that a curved surface can be fitted, which two levels do not allow. Levels are used
    equally often, or nearly so. Each combination is measured once. In addition the centre (the middle of every range
    and the first of every list of levels) is measured `centres` times, evenly spaced over the plan; these replicates
    show pure error and drift. `seed` draws the points and their order. Raise ParameterError for an invalid factor or
    too many runs.

    >>> plan = space_filling({"batch_bytes": Range(16_384, 1_048_576, log=True), "acks": ["1", "all"]}, 8, seed=1)
    >>> len(plan), plan.acks.value_counts().to_dict(), int(plan.replicate.max())
    (12, {'1': 8, 'all': 4}, 4)
    """
    _check_factors({name: (0, 1) if isinstance(values, Range) else values for name, values in factors.items()})
    check_number("runs", runs, 1, whole=True)
    check_number("centres", centres, 0, whole=True)
    _check_runs(runs + centres)
    rng = np.random.default_rng(seed)
    points = qmc.LatinHypercube(len(factors), optimization="random-cd", rng=rng).random(runs)
    points = points[rng.permutation(runs)]
    filled = pd.DataFrame({name: _at(factors[name], points[:, k]) for k, name in enumerate(factors)})
    middle = {name: _at(of, np.array([0.5 if isinstance(of, Range) else 0.0])) for name, of in factors.items()}
    centre = pd.concat([pd.DataFrame(middle)] * centres, ignore_index=True) if centres else filled.iloc[:0]
    plan = pd.concat([filled, centre], ignore_index=True)
    plan["replicate"] = plan.groupby(list(factors)).cumcount() + 1
    # A centre point comes first and another last, so that they cover the whole campaign.
    between = np.linspace(0, runs, centres) if centres > 1 else [runs / 2] * centres
    places = np.concatenate([np.arange(runs) + 0.5, between])
    return _numbered(plan.iloc[np.argsort(places, kind="stable")])[["order", "replicate", *factors]]


def _at(values, share: np.ndarray):
    if isinstance(values, Range):
        return values.at(share)
    levels = list(map(_level, values))
    return [levels[min(int(one * len(levels)), len(levels) - 1)] for one in share]


def _level(value):
    return value if isinstance(value, str) else float(value)


def _check_runs(n: int) -> None:
    if n > MAXIMUM_RUNS:
        raise ParameterError(f"the design has {n:,} runs; allowed: no more than {MAXIMUM_RUNS:,} runs.")


def _check_factors(factors) -> None:
    if not factors:
        raise refusal("factors", factors, "at least one factor")
    for name, levels in factors.items():
        values = [] if isinstance(levels, str) else list(levels)
        numbers = all(isinstance(level, (int, float)) and not isinstance(level, bool) for level in values)
        texts = all(isinstance(level, str) and level for level in values)
        good = texts or (numbers and all(map(isfinite, values)))
        if len(values) < 2 or not good or len(set(values)) != len(values):
            raise refusal(f"factor {name}", levels, "two or more different numbers, or two or more different texts")
        if name in RESERVED:
            raise refusal("factor", name, f"any name but {', '.join(RESERVED)}")


def _checked_generators(factors, fraction) -> dict[str, list[str]]:
    fraction = {name: list(parents) for name, parents in (fraction or {}).items()}
    free = [name for name in factors if name not in fraction]
    two_levels = {name for name in factors if len(factors[name]) == 2}
    for name, parents in fraction.items():
        usable = [other for other in free if other in two_levels]
        if name not in two_levels or not parents or not set(parents) <= set(usable) or len(set(parents)) < len(parents):
            allowed = f"different factors of two levels without a generator ({', '.join(usable)})"
            raise refusal(f"fraction of {name}", parents, allowed)
    return fraction
