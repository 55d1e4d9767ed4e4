"""Estimate the ratios between all pairs of settings, with simultaneous intervals, from few trials in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import floor, isfinite, nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from wanbench.checks import LATER, check_columns
from wanbench.errors import ParameterError
from wanbench.formatting import count
from wanbench.methods.factorial.inference import robust_variance
from wanbench.methods.factorial.terms import with_blocks
from wanbench.methods.result import Estimate, Fields
from wanbench.methods.result.means import half_width, ratio_estimate

NAMES = {"messages_per_s": "rate of messages", "usd_per_billion": "cost per billion messages", "p99_ms": "p99"}
NAMES["end_to_end_p99_ms"] = "p99 end to end"
"""Names of columns in sentences."""
LEVEL = 0.95
ASSUMPTION = (
    "The relative scatter of a setting is log-normal, and trials are independent except for effects of their block. "
    "Trials of one setting after the same restart, counted as different blocks, would violate this"
)
MEANS = "geometric mean; interval from Student's t on the logarithms of the setting's trials, blocks included"
METHOD = (
    "least squares of the logarithm on setting and block; studentized range over all pairs. The interval is the wider "
    "of two: from the scatter of each setting (Games & Howell 1976), and from the pooled scatter (Tukey), because "
    "three trials may agree by chance"
)


@dataclass(frozen=True)
class Comparisons:
    """
    Ratios of a positive response between all pairs of settings.

    settings: The settings in ascending order of the mean response.
    means: The geometric mean of each setting. Its interval is from this setting's trials, so it includes differences
        between blocks.
    ratios: Maps (setting, other), in both orders, to the ratio of `setting` to `other`. Differences between blocks are
        removed, and intervals are simultaneous over all pairs.
    """

    response: str
    settings: tuple[str, ...]
    means: dict[str, Estimate]
    ratios: dict[tuple[str, str], Estimate]

    def is_lower(self, setting: str, other: str) -> bool:
        """Return whether the response of `setting` is significantly lower than that of `other`."""
        return self.ratios[setting, other].high < 1

    def ties(self, setting: str) -> tuple[str, ...]:
        """Return the settings that do not differ significantly from `setting`."""
        others = [other for other in self.settings if other != setting]
        return tuple(o for o in others if not self.is_lower(setting, o) and not self.is_lower(o, setting))

    def rank(self, setting: str) -> tuple[int, int]:
        """Return the best and the worst possible rank of a setting, 1 for the lowest response."""
        others = [other for other in self.settings if other != setting]
        better = sum(self.is_lower(other, setting) for other in others)
        worse = sum(self.is_lower(setting, other) for other in others)
        return 1 + better, len(self.settings) - worse


def compare_all(frame: pd.DataFrame, response: str, unit: str, *, claim: str = "{name} has {{}}") -> Comparisons:
    """
    Compare a response between all pairs of settings.

    `frame` has one row per trial, with setting, block and the column `response` in `unit`; rows without a positive
    response are ignored. `claim` is the sentence about a mean: {name} stands for the setting, and {{}} for the mean.

    Raises ParameterError: fewer than two settings have a trial.
    """
    check_columns("frame", frame, ["setting", "block", response])
    trials = frame[np.isfinite(frame[response].astype(float)) & (frame[response] > 0)].reset_index(drop=True)
    trials = trials.assign(log=np.log(trials[response].to_numpy(dtype=float)))
    unit_name = "trial"
    if trials.block.notna().all() and trials.duplicated(["setting", "block"]).any():
        # Trials of one setting within a block share its restart: they count as one.
        unit_name = "block"
        trials = trials.groupby(["setting", "block"], as_index=False).log.mean()
    names = tuple(trials.groupby("setting").log.mean().sort_values(kind="stable").index)
    if len(names) < 2:
        known = ", ".join(names) or "no setting"
        raise ParameterError(f"only {known} has {response}; allowed: two settings or more.")
    means = {}
    for name in names:
        logs = trials.log[trials.setting == name]
        half = float(half_width(logs.to_numpy(), LEVEL))
        about: Fields = {"quantity": f"{NAMES.get(response, response)}, {name}", "claim": claim.format(name=name)}
        about |= {"n": len(logs), "basis": count(len(logs), unit_name), "method": MEANS, "assumption": ASSUMPTION}
        about["unit"], about["warnings"] = unit, () if isfinite(half) else (f"no interval: a single {unit_name}",)
        means[name] = ratio_estimate(float(logs.mean()), half, level=LEVEL, **about)
    return Comparisons(response, names, means, _ratios(trials, names, unit_name, response))


@cache
def _critical(k: int, freedom: float) -> float:
    """Return how many standard errors simultaneous intervals of all differences of k means extend to each side."""
    return float(stats.studentized_range.ppf(LEVEL, k, freedom)) / sqrt(2)


def _ratios(
    trials: pd.DataFrame, names: tuple[str, ...], unit_name: str, response: str
) -> dict[tuple[str, str], Estimate]:
    logs, sizes = trials.log.to_numpy(), trials.setting.value_counts()
    indicators = (trials.setting.to_numpy()[:, None] == np.array(names)).astype(float)
    design = with_blocks(indicators, trials.block if trials.block.notna().all() else None)
    separable = np.linalg.matrix_rank(design) == design.shape[1]
    design = design if separable else indicators
    freedom = len(logs) - design.shape[1]
    params = np.linalg.lstsq(design, logs, rcond=None)[0]
    rest = logs - design @ params
    robust = robust_variance(design, rest, trials.setting) if freedom > 0 else LATER
    ratios, what = {}, NAMES.get(response, response)
    for a, b in combinations(range(len(names)), 2):
        notes, half = (), nan
        if min(sizes[names[a]], sizes[names[b]]) < 2:
            notes = (f"no interval: a single {unit_name}",)
        elif not separable or freedom < 1:
            notes = ("no interval: settings share no blocks, so their difference may be one of blocks",)
        else:
            contrast = np.zeros(design.shape[1])
            contrast[[a, b]] = 1.0, -1.0
            pooled = rest @ rest / freedom * robust.inverse
            half = max(
                _critical(len(names), floor(10 * degrees) / 10) * sqrt(max(contrast @ cover @ contrast, 0.0))
                for degrees, cover in ((robust.freedom(contrast), robust.covariance), (freedom, pooled))
            )
        for of, over, sign in ((names[a], names[b], 1), (names[b], names[a], -1)):
            about: Fields = {"n": int(sizes[of] + sizes[over]), "level": LEVEL, "warnings": notes}
            about["basis"] = f"{count(sizes[of], unit_name)} against {sizes[over]}"
            about |= {"method": METHOD, "assumption": ASSUMPTION}
            texts: Fields = {
                "quantity": f"{what}, {of} over {over}",
                "claim": f"With “{of}”, the {what} is {{}} that with “{over}”",
            }
            ratios[of, over] = ratio_estimate(sign * float(params[a] - params[b]), half, **about, **texts)
    return ratios
