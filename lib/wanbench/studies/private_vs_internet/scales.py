"""
The same comparison of two links at several link rates: what scaling the link down changes.

A ratio that is the same at each scale, within intervals, speaks for carrying it over to another; it proves nothing
beyond the scales that were measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from math import exp, isfinite, nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, number, percent, quantity
from ...stats.lab.utilisation import AT_CAPACITY
from ...stats.result import Estimate, Result, html, table
from ...stats.time.series import welch_freedom
from ...stats.trials.rates import TrialRates
from ...stats.trials.two_links import SAID, TwoLinks, compare_links

METHOD = "difference of mean log ratios of pairs between two scales, {} with the pair as the unit"
WELCH, POOLED = "t by Welch (1947)", "t with the pooled variance of both scales"
FEW_PAIRS = 4
"""With fewer pairs at a scale, Welch's degrees of freedom leave hardly an interval; the variances are pooled."""
ASSUMPTION = "Pairs are independent of each other, at one scale and across them"
ALIKE = "; they scatter alike at both scales"
AS_FULL = 0.05
"""Parts of batch.size by which batches may differ in how full they are before Kafka's share of the link differs."""


@dataclass(frozen=True, repr=False)
class Scales(Result):
    """
    Two links at several scales.

    Attributes
    ----------
    links : dict
        Scale (such as the link's rate in bit/s) to the comparison there, the greatest first.
    changes : dict
        Scale to Estimate: the ratio there over the ratio at the greatest scale; none where there is one scale only.
    capacity : DataFrame
        Per scale and link: `n_trials`, `rx_utilisation` (mean and `greatest` of trials, headers and background
        included), `queue_dropped_packets`, `at_capacity`: whether any trial used 95 % of the rate, or a queue dropped
        a packet.
    """

    links: dict[float, TwoLinks]
    changes: dict[float, Estimate]
    capacity: pd.DataFrame
    scale: str
    unit: str

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        at = [
            replace(
                each.ratio,
                quantity=f"{each.ratio.quantity}, at {self.said(key)}",
                claim=f"At {self.said(key)}: {each.ratio.claim}",
            )
            for key, each in self.links.items()
        ]
        return (*at, *self.changes.values())

    def said(self, value: float) -> str:
        """A scale in words."""
        return quantity(value, self.unit)

    def table(self) -> pd.DataFrame:
        """One row per number."""
        return table(self.estimates)

    DRAWN_BY = "scales_figure.scales"

    def verdict(self) -> str:
        """Whether the ratio differs from scale to scale, in a sentence."""
        first, *rest = self.links
        if not rest:
            return f"Both links were measured at {self.said(first)} only: what scaling changes is not known."
        said = []
        for key in rest:
            each = self.changes[key]
            ends = f"{percent(each.level)} interval {each.written_interval or 'none'}"
            if not isfinite(each.low):
                word = "whether that is chance, too few pairs say"
            elif each.low <= 1 <= each.high:
                word = "no difference is shown, and none within the interval is ruled out"
            else:
                word = "scaling changes the ratio"
            said.append(
                f"at {self.said(key)} the ratio is {each.written} that at {self.said(first)} ({ends}): {word}"
            )
        whole = "; ".join(said)
        return f"{whole[0].upper()}{whole[1:]}."

    def capacity_sentence(self) -> str:
        """At which scales links were at capacity."""
        known = self.capacity[self.capacity.greatest.notna()]
        if known.empty:
            return "How full the links were was not measured."
        full = known[known.at_capacity]
        most = known.loc[known.greatest.idxmax()]
        reach = f"at most {quantity(most.greatest, 'fraction')} of the rate in any trial"
        if full.empty:
            return f"Links were never at capacity over a trial ({reach}, and queues dropped nothing)."
        listed = "; ".join(
            f"{row.link} at {self.said(row.scale)} ({quantity(row.greatest, 'fraction')}, "
            f"{count(int(row.queue_dropped_packets), 'packet')} dropped)"
            for row in full.itertuples()
        )
        return f"At capacity, or with drops in a queue, were: {listed}."

    def __str__(self) -> str:
        ratios = [
            f"At {self.said(key)} {each.names[1]} has {each.ratio.written} the {SAID.get(each.value, each.value)} of "
            f"{each.names[0]} ({percent(each.ratio.level)} interval {each.ratio.written_interval or 'none'}; "
            f"{each.ratio.basis})."
            for key, each in self.links.items()
        ]
        notes = dict.fromkeys(note for each in self.estimates for note in each.warnings)
        cautions = [f"Caution: {each}." for each in notes]
        return " ".join([*ratios, self.verdict(), self.capacity_sentence(), *cautions]).strip()

    def _repr_html_(self) -> str:
        shown = self.capacity.assign(scale=self.capacity.scale.map(self.said))
        body = shown.to_html(index=False, border=0, float_format=lambda value: number(value), na_rep="")
        said = f"<p>{escape(self.verdict())} {escape(self.capacity_sentence())}</p>"
        return html(self.estimates, f"By {self.scale}") + said + body


def compare_scales(
    found: TrialRates,
    settings: Sequence[str] = ("internet", "private"),
    *,
    names: Sequence[str] | None = None,
    scale: str = "rate_bps",
    unit: str = "bit/s",
    value: str = "batches_per_s",
    level: float = 0.95,
    seed: int = 0,
) -> Scales:
    """
    Compare two links at each scale, and the ratios with each other.

    Parameters
    ----------
    found, settings, names, value
        As in `compare_links`.
    scale : str
        The column of `found.rates` that tells scales apart.
    unit : str
        Its unit.

    Raises
    ------
    ParameterError
        For no scale at which both links were measured.
    """
    level = check_level(level)
    if scale not in found.rates:
        raise ParameterError(f"scale={scale!r}: the trials have {', '.join(map(str, found.rates.columns))}")
    links = {}
    for key in sorted(found.rates[scale].dropna().unique(), reverse=True):
        own = found.at(**{scale: key})
        try:
            links[float(key)] = compare_links(own, settings, names=names, value=value, level=level, seed=seed)
        except ParameterError:
            if own.of(*settings).rates.setting.nunique() > 1:
                raise
    if not links:
        raise ParameterError(f"both links were measured at no {scale} in common")
    first, *rest = links
    changes = {
        key: _change(links[key], links[first], quantity(key, unit), quantity(first, unit), level)
        for key in rest
    }
    return Scales(links, changes, _capacity(links), scale, unit)


def _change(one: TwoLinks, other: TwoLinks, at: str, against: str, level: float) -> Estimate:
    """The ratio of two ratios, out of pairs at each scale."""
    own, others = _fill(one), _fill(other)
    full = ()
    if abs(own - others) > AS_FULL:
        full = (
            f"batches are {quantity(own, 'fraction')} full at {at} and {quantity(others, 'fraction')} at {against}, so "
            "Kafka's share of the link is not the same",
        )
    logs = [np.log(each.pairs.ratio.to_numpy(dtype=float)) for each in (one, other)]
    sizes, half, notes = [len(each) for each in logs], nan, ()
    method, assumption = WELCH, ASSUMPTION
    if min(sizes) > 1:
        value = float(logs[0].mean() - logs[1].mean())
        variance = [each.var(ddof=1) / len(each) for each in logs]
        freedom = welch_freedom(variance, sizes)
        if min(sizes) < FEW_PAIRS:
            method, assumption, freedom = POOLED, ASSUMPTION + ALIKE, sum(sizes) - 2
            pooled = sum((n - 1) * each.var(ddof=1) for n, each in zip(sizes, logs, strict=True)) / freedom
            variance = [pooled / n for n in sizes]
        half = stats.t.ppf((1 + level) / 2, freedom) * sqrt(sum(variance))
    else:
        value = float(np.log(one.ratio.estimate / other.ratio.estimate))
        notes = ("no interval of the change: a scale with fewer than two pairs",)
    return Estimate(
        quantity=f"ratio at {at} over ratio at {against}",
        claim=f"The ratio at {at} is {{}} that at {against}",
        estimate=exp(value),
        low=exp(value - half),
        high=exp(value + half),
        unit="times",
        n=sum(sizes),
        basis=f"{count(sizes[0], 'pair')} against {sizes[1]}",
        method=METHOD.format(method),
        assumption=assumption,
        level=level,
        warnings=(*full, *notes),
    )


def _fill(links: TwoLinks) -> float:
    """Mean size of a batch in the log over batch.size; NaN where either is not known."""
    return float((links.trials.batch_log_bytes / links.trials.batch_bytes.astype("float64")).mean())


def _capacity(links: dict[float, TwoLinks]) -> pd.DataFrame:
    rows = []
    for key, each in links.items():
        for name, part in each.trials.groupby("link", sort=False):
            dropped = part.queue_dropped_packets.astype("float64").sum()
            greatest = float(part.rx_utilisation.max())
            rows.append(
                {
                    "scale": key,
                    "link": name,
                    "n_trials": len(part),
                    "rx_utilisation": float(part.rx_utilisation.mean()),
                    "greatest": greatest,
                    "queue_dropped_packets": int(dropped),
                    "at_capacity": bool(greatest >= AT_CAPACITY or dropped > 0),
                }
            )
    return pd.DataFrame(rows)
