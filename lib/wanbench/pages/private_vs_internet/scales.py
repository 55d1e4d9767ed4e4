"""
Compare two links at several link rates, to see whether scaling the link down changes the result.

Equal ratios at all measured scales suggest, but do not prove, the same ratio at other scales.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite, nan, sqrt

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.errors import MissingDataError, ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, percent, quantity
from wanbench.methods.lab.utilisation import AT_CAPACITY
from wanbench.methods.result import LEVEL, Estimate, Result
from wanbench.methods.result.estimate import t_quantile
from wanbench.methods.result.means import ratio_estimate, welch_half_width
from wanbench.methods.trials.rates import MEASURED, TrialRates

from .two_links import SETTINGS, TwoLinks, compare_links

METHOD = "difference of mean log ratios of pairs between two scales, {} with the pair as the unit"
WELCH = "t by Welch (1947)"
POOLED = "t with the pooled variance of both scales"
# Minimum number of pairs per scale for Welch's interval; with fewer, its few degrees of freedom make it useless
MIN_PAIRS = 4
ASSUMPTION = "Pairs are independent of each other, at one scale and across them"
EQUAL_SCATTER = "; they scatter equally at both scales"
# Difference in the fill of batches, as a share of batch.size, up to which Kafka's share of the link counts as equal
FILL_TOLERANCE = 0.05


@dataclass(frozen=True, repr=False)
class Scales(Result):
    """
    Two links compared at several scales.

    comparisons: The comparison at each link rate in bit/s, the highest rate first.
    changes: The ratio at each lower rate over the ratio at the highest rate.
    utilisation: Per `rate_bps` and `link`: `n_trials`, `mean_utilisation` and `max_utilisation` of trials (towards the
        brokers, with headers and background), `queue_dropped_packets`, and `at_capacity`: whether a trial used 95 % of
        the rate, or a queue dropped a packet.
    """

    comparisons: dict[float, TwoLinks]
    changes: dict[float, Estimate]
    utilisation: pd.DataFrame

    TITLE = "By the link's rate"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        ratios = [(label(rate), links.ratio) for rate, links in self.comparisons.items()]
        named = [replace(one, quantity=f"{one.quantity}, at {at}", claim=f"At {at}: {one.claim}") for at, one in ratios]
        return (*named, *self.changes.values())

    @property
    def sentence(self) -> str:
        ratios = []
        for rate, links in self.comparisons.items():
            (a, b), one, value = links.names, links.ratio, MEASURED[links.value][0]
            ends = f"{percent(one.level)} interval {one.formatted_interval or 'none'}; {one.basis}"
            ratios.append(f"At {label(rate)} “{b}” has {one.formatted} the {value} of “{a}” ({ends}).")
        return " ".join([*ratios, self.verdict, self.capacity_sentence])

    @property
    def verdict(self) -> str:
        """Say whether the ratio depends on the scale."""
        first = label(next(iter(self.comparisons)))
        listed = []
        for rate, change in self.changes.items():
            if not isfinite(change.low):
                verdict = "too few pairs to tell whether that is chance"
            elif change.low <= 1 <= change.high:
                verdict = "no significant difference, but any within the interval is possible"
            else:
                verdict = "scaling changes the ratio"
            ends = f"{percent(change.level)} interval {change.formatted_interval or 'none'}"
            listed.append(f"at {label(rate)} the ratio is {change.formatted} that at {first} ({ends}): {verdict}")
        text = "; ".join(listed)
        return f"{text[0].upper()}{text[1:]}."

    @property
    def capacity_sentence(self) -> str:
        """Say at which scales links were at capacity."""
        known = self.utilisation.dropna(subset="max_utilisation")
        if known.empty:
            return "Link utilisation was not measured."
        full = known[known.at_capacity]
        if full.empty:
            most = f"at most {quantity(known.max_utilisation.max(), 'fraction')} of the rate in any trial"
            return f"Links were never at capacity over a trial ({most}, and queues dropped nothing)."
        listed = "; ".join(
            f"{row.link} at {label(row.rate_bps)} ({quantity(row.max_utilisation, 'fraction')}, "
            f"{count(int(row.queue_dropped_packets), 'packet')} dropped)"
            for row in full.itertuples()
        )
        return f"These links were at capacity, or dropped packets: {listed}."

    def figure(self) -> go.Figure:
        titles = ["ratio at each scale", "link utilisation (share of its rate)"]
        figure = make_subplots(rows=1, cols=2, horizontal_spacing=0.14, subplot_titles=titles)
        left, right = {"row": 1, "col": 1}, {"row": 1, "col": 2}
        labels = [label(rate) for rate in self.comparisons]
        ratios = [links.ratio for links in self.comparisons.values()]
        for k, links in enumerate(self.comparisons.values()):
            x, small = k + 0.14 + theme.spread(len(links.pairs), 0.1), {"size": 6, "color": theme.LIGHT, "opacity": 0.6}
            hover = {"hovertemplate": "one pair: %{y:.3g} times<extra></extra>", "showlegend": False}
            figure.add_scatter(x=x, y=links.pairs.ratio, mode="markers", marker=small, **hover, **left)
        marker, columns = {"size": 12, "color": theme.FIT}, range(len(ratios))
        primitives.estimate_points(figure, columns, ratios, marker=marker, vertical=True, showlegend=False, **left)
        marks = theme.arm_marks(self.utilisation.link)
        for k, (name, part) in enumerate(self.utilisation.groupby("link", sort=False)):
            shade, symbol = marks[str(name)]
            mean, style = part.mean_utilisation, {"marker": {"size": 11, "color": shade, "symbol": symbol}, **right}
            at = [list(self.comparisons).index(rate) + 0.08 * (2 * k - 1) for rate in part.rate_bps]
            ends = (mean, mean, part.max_utilisation)
            primitives.interval_points(figure, at, *ends, vertical=True, name=theme.plain(name), **style)
        for panel in (left, right):
            primitives.reference_line(figure, y=1, **panel)
        ticks = {"tickvals": list(range(len(labels))), "ticktext": labels, "range": [-0.5, len(labels) - 0.5]}
        figure.update_xaxes(title="rate of the link", **ticks)
        figure.update_yaxes(title="times", rangemode="tozero", **left)
        most = max(1.0, *self.utilisation.max_utilisation.fillna(0.0))
        figure.update_yaxes(tickformat=".0%", range=[0, 1.08 * most], **right)
        level = percent(ratios[0].level)
        shown = [f"{one.formatted} at {at}" for at, one in zip(labels, ratios, strict=True)]
        return theme.finish(
            figure,
            name="scales",
            title=theme.headline("; ".join(shown), "The same comparison at several scales of the link"),
            subtitle=f"Left: the ratio with its {level} interval (large), single pairs (small). Right: mean "
            "over trials towards the brokers, background and headers included; bars reach the "
            "fullest trial. Dashed: no difference; full link.",
            alt=f"Ratios by scale. {self}",
            caption=f"{self.verdict} {self.capacity_sentence}",
            table=self.table(),
            headroom_px=theme.PANEL_TITLES_PX,
        )


def label(rate_bps: float) -> str:
    """Format the rate of a scale."""
    return quantity(rate_bps, "bit/s")


def compare_scales(rates: TrialRates, *, seed: int = 0) -> Scales:
    """
    Compare two links at each link rate, and the ratios at these rates with each other.

    Raises MissingDataError: fewer than two rates have trials of both links.
    """
    links = {}
    for rate in sorted(rates.rates.rate_bps.dropna().unique(), reverse=True):
        own = rates.at(rate_bps=rate)
        try:
            links[float(rate)] = compare_links(own, seed=seed)
        except ParameterError:
            # A rate at which only one link was measured is skipped; with both links, the error has another cause.
            if own.of(*SETTINGS).rates.setting.nunique() > 1:
                raise
    if len(links) < 2:
        raise MissingDataError("both links were measured at fewer than two rates, so the effect of scaling is unknown.")
    first, *rest = links
    changes = {rate: _change(links, rate, first) for rate in rest}
    return Scales(links, changes, _utilisation(links))


def _change(links: dict[float, TwoLinks], rate: float, first: float) -> Estimate:
    """Estimate the ratio at `rate` over the ratio at `first`, from the pairs at each."""
    here, there = label(rate), label(first)
    both, notes = (links[rate], links[first]), ()
    fills = [_fill(one) for one in both]
    if abs(fills[0] - fills[1]) > FILL_TOLERANCE:
        notes = (
            f"batches are {quantity(fills[0], 'fraction')} full at {here} and {quantity(fills[1], 'fraction')} at "
            f"{there}, so Kafka's share of the link differs",
        )
    logs = [np.log(one.pairs.ratio.to_numpy(dtype=float)) for one in both]
    sizes, half = [len(own) for own in logs], nan
    method, assumption = WELCH, ASSUMPTION
    if min(sizes) > 1:
        log = float(logs[0].mean() - logs[1].mean())
        half = welch_half_width(logs, LEVEL)
        if min(sizes) < MIN_PAIRS:
            method, assumption = POOLED, ASSUMPTION + EQUAL_SCATTER
            pooled = sum((n - 1) * own.var(ddof=1) for n, own in zip(sizes, logs, strict=True)) / (sum(sizes) - 2)
            half = t_quantile(LEVEL, sum(sizes) - 2) * sqrt(sum(pooled / n for n in sizes))
    else:
        log = float(np.log(both[0].ratio.estimate / both[1].ratio.estimate))
        notes += ("no interval of the change: a scale has fewer than two pairs",)
    names = {
        "quantity": f"ratio at {here} over ratio at {there}",
        "claim": f"The ratio at {here} is {{}} that at {there}",
    }
    about = {"n": sum(sizes), "basis": f"{count(sizes[0], 'pair')} against {sizes[1]}", "warnings": notes}
    method = METHOD.format(method)
    return ratio_estimate(log, half, **names, method=method, assumption=assumption, level=LEVEL, **about)


def _fill(links: TwoLinks) -> float:
    """Return the mean size of a batch in the log over batch.size; NaN if unknown."""
    return float((links.trials.batch_log_bytes / links.trials.batch_bytes.astype("float64")).mean())


def _utilisation(links: dict[float, TwoLinks]) -> pd.DataFrame:
    groups = pd.concat([one.trials for one in links.values()]).groupby(["rate_bps", "link"], sort=False)
    names = {"n_trials": "size", "mean_utilisation": "mean", "max_utilisation": "max"}
    used = {name: ("rx_utilisation", how) for name, how in names.items()}
    rows = groups.agg(**used, queue_dropped_packets=("queue_dropped_packets", "sum"))
    full = (rows.max_utilisation >= AT_CAPACITY) | (rows.queue_dropped_packets > 0)
    return rows.assign(at_capacity=full).reset_index()
