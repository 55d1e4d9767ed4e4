"""All pairwise ratios of settings, with simultaneous intervals, from few trials in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import isfinite, nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_columns, check_level
from ...errors import ParameterError
from ...formatting import count
from ...stats.factorial.gain_map import critical
from ...stats.factorial.terms import with_blocks
from ...stats.result import Estimate
from ...stats.trials.means import ratio_estimate

NAMES = {
    "messages_per_s": "rate of messages",
    "usd_per_billion": "cost per billion messages",
    "p99_ms": "p99",
}
"""Readable names of columns; others keep their own."""
ASSUMPTION = (
    "All settings have the same relative, log-normal scatter; trials are independent, apart from what those of a block "
    "have in common"
)


@dataclass(frozen=True)
class Comparisons:
    """
    Ratios of a positive response between settings.

    Attributes
    ----------
    settings : tuple of str
        In order of the response, the smallest first.
    means : dict
        Setting to Estimate of its geometric mean, with a t interval from the pooled scatter within settings. The
        scatter includes differences between blocks, so the interval is that of a mean in other blocks.
    ratios : dict
        (setting, other) to Estimate of setting over other, for both orders. Differences between blocks are removed, and
        the intervals are simultaneous over all pairs.
    """

    response: str
    settings: tuple[str, ...]
    means: dict[str, Estimate]
    ratios: dict[tuple[str, str], Estimate]
    level: float

    def shown_lower(self, setting: str, other: str) -> bool:
        """Whether the setting's response is significantly lower than the other's."""
        return self.ratios[setting, other].high < 1

    def ties(self, setting: str) -> tuple[str, ...]:
        """The settings that are neither significantly lower nor higher."""
        return tuple(
            other
            for other in self.settings
            if other != setting
            and not self.shown_lower(setting, other)
            and not self.shown_lower(other, setting)
        )

    def rank(self, setting: str) -> tuple[int, int]:
        """The best and the worst possible rank of a setting, 1 for the lowest response."""
        others = [other for other in self.settings if other != setting]
        better = sum(self.shown_lower(other, setting) for other in others)
        worse = sum(self.shown_lower(setting, other) for other in others)
        return 1 + better, len(self.settings) - worse


def compare_all(
    frame: pd.DataFrame, response: str, unit: str, *, level: float = 0.95, claim: str = "{name} has {{}}"
) -> Comparisons:
    """
    Compare all settings two by two.

    Parameters
    ----------
    frame : DataFrame
        Trials with setting, block and the response; rows without a response do not count.
    unit : str
        Unit of the response.
    claim : str
        The sentence about a mean, with {name} for the setting.

    Raises
    ------
    ParameterError
        If fewer than two settings have a trial.
    """
    level = check_level(level)
    check_columns("frame", frame, ["setting", "block", response])
    trials = frame[np.isfinite(frame[response].astype(float)) & (frame[response] > 0)].reset_index(drop=True)
    logs = np.log(trials[response].to_numpy(dtype=float))
    by_setting = trials.assign(log=logs).groupby("setting").log
    names = tuple(by_setting.mean().sort_values(kind="stable").index)
    if len(names) < 2:
        raise ParameterError(
            f"{response} is known for {', '.join(names) or 'no setting'}; allowed: two settings or more."
        )
    indicators = (trials.setting.to_numpy()[:, None] == np.array(names)).astype(float)
    pooled, freedom = _spread(indicators, logs)
    reach = stats.t.ppf((1 + level) / 2, freedom) if freedom > 0 else nan
    means, no_repeat = {}, () if freedom > 0 else ("no interval: no setting was measured twice",)
    for name in names:
        own = by_setting.get_group(name)
        means[name] = ratio_estimate(
            float(own.mean()),
            float(reach * pooled / sqrt(len(own))),
            unit=unit,
            quantity=f"{NAMES.get(response, response)}, {name}",
            claim=claim.format(name=name),
            n=len(own),
            basis=count(len(own), "trial"),
            method="geometric mean; t, variance of the logarithm pooled within settings "
            f"({freedom} degrees of freedom)",
            assumption=ASSUMPTION,
            level=level,
            warnings=no_repeat,
        )
    return Comparisons(
        response, names, means, _ratios(trials, names, indicators, logs, response, level), level
    )


def _spread(design: np.ndarray, logs: np.ndarray) -> tuple[float, int]:
    """Residual standard deviation of a least-squares fit, and its degrees of freedom."""
    rest = logs - design @ np.linalg.lstsq(design, logs, rcond=None)[0]
    freedom = len(logs) - int(np.linalg.matrix_rank(design))
    return (sqrt(float(rest @ rest) / freedom) if freedom > 0 else nan), freedom


def _ratios(trials, names, indicators, logs, response, level) -> dict:
    design = with_blocks(indicators, trials.block if trials.block.notna().all() else None)
    if np.linalg.matrix_rank(design) < design.shape[1]:
        design = indicators
    spread, freedom = _spread(design, logs)
    inverse = np.linalg.inv(design.T @ design)
    params = inverse @ design.T @ logs
    pairs = list(combinations(range(len(names)), 2))
    contrasts = np.zeros((len(pairs), design.shape[1]))
    for row, (a, b) in enumerate(pairs):
        contrasts[row, a], contrasts[row, b] = 1.0, -1.0
    single = stats.t.ppf((1 + level) / 2, freedom) if freedom > 0 else nan
    # one comparison needs no draws; with several, draws may fall a little short of the exact value of one
    together = (
        max(critical(contrasts, inverse, freedom, level), single)
        if len(pairs) > 1 and freedom > 0
        else single
    )
    found, what = {}, NAMES.get(response, response)
    for (a, b), contrast in zip(pairs, contrasts, strict=True):
        half = float(together * spread * sqrt(contrast @ inverse @ contrast)) if freedom > 0 else nan
        for of, over, sign in ((names[a], names[b], 1), (names[b], names[a], -1)):
            sizes = [int((trials.setting == name).sum()) for name in (of, over)]
            found[of, over] = ratio_estimate(
                sign * float(contrast @ params),
                half,
                quantity=f"{what}, {of} over {over}",
                claim=f"With {of}, the {what} is {{}} that with {over}",
                n=sum(sizes),
                basis=f"{count(sizes[0], 'trial')} against {sizes[1]}",
                method="least squares of the logarithm on setting and block, variance pooled; largest |t| of "
                f"{count(len(pairs), 'pair')} by draws (as Tukey's), {freedom} degrees of freedom",
                assumption=ASSUMPTION,
                level=level,
                warnings=() if isfinite(half) else ("no interval: no setting was measured twice",),
            )
    return found
