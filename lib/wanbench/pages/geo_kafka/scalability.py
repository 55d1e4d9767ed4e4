"""
Fit the Universal Scalability Law (Gunther 2007), which shows whether throughput grows linearly with the number of
producers, and where it peaks.

    X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1))

- gamma: throughput of one producer
- alpha: contention, the serial share of the work; alone it limits throughput to gamma/alpha
- beta: coherency, the cost per pair of producers; with it throughput peaks at N* = sqrt((1 - alpha)/beta)

The fit is least squares on logarithms, because scatter is proportional to throughput. Intervals are by profile
likelihood: the range of a quantity over all parameters whose sum of squares an F test does not reject. The bootstrap is
not used: with two or three trials per number of producers it underestimates the scatter, and it fails if a parameter is
at its bound of 0 (Andrews 2000). In these cases the profile interval is wide, and infinite if there may be no peak.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, isinf, isnan

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_columns
from wanbench.errors import ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, p_value, percent
from wanbench.methods.factorial.terms import IN_OTHER_BLOCKS, ONE_BLOCK, usable_runs
from wanbench.methods.result import LEVEL, Estimate, Fields, Result, reasons
from wanbench.pages.geo_kafka.scalability_fit import MIN_LEVELS, Fit

UNFIT_BELOW = 0.05  # There is a caution if the p-value of lack of fit is below this: one false alarm in twenty.
ASSUMPTION = (
    "Throughput follows the law up to log-normal scatter, with the same relative size at every number of producers; "
    "trials are independent, except for a factor that those of a block share, and equal in all else"
)


@dataclass(frozen=True, repr=False)
class Scalability(Result):
    """
    The Universal Scalability Law, fitted to trials.

    efficiency: Fitted throughput at the largest measured number of producers, over that number times gamma.
    peak_producers: Number of producers at the peak (N*), at least 1; infinite if beta is 0.
    peak: Throughput at the peak; if beta is 0, the asymptote gamma/alpha, which is infinite for linear growth.
    gamma, alpha, beta: The parameters of the law (see the module).
    is_linear_possible: Whether linear growth (alpha = beta = 0) agrees with the trials.
    lack_of_fit_p: P-value of an F test of the law against separate means; NaN without repeated trials.
    curve: The fitted curve: `producers`, `fitted`, `low`, `high` (individual interval), `linear` (linear growth).
    trials, left_out: The rows in use, with the throughput as `_response`; and the rows left out, with a `reason`.
    """

    efficiency: Estimate
    peak_producers: Estimate
    peak: Estimate
    gamma: Estimate
    alpha: Estimate
    beta: Estimate
    is_linear_possible: bool
    lack_of_fit_p: float
    curve: pd.DataFrame
    trials: pd.DataFrame
    left_out: pd.DataFrame
    throughput: str
    producers: str
    unit: str
    notes: tuple[str, ...] = ()

    TITLE = "The Universal Scalability Law"

    @property
    def sentence(self) -> str:
        most = int(self.trials[self.producers].max())
        shown = "is not shown to differ from linear" if self.is_linear_possible else "is not linear"
        one = self.efficiency
        growth = (
            f"Growth of {self.throughput} with {self.producers} {shown}. With {most}, it is {one.formatted} of linear "
            f"growth ({percent(LEVEL)} interval {one.formatted_interval or 'none'}; {one.counted})."
        )
        return f"{growth} {self._peak_sentence(most)}"

    def _peak_sentence(self, most: int) -> str:
        at, top = self.peak_producers, self.peak
        if isinf(at.estimate):
            level = f" and levels off at {top.formatted}" if isfinite(top.estimate) else ""
            known = (
                f" A peak at fewer than {number(at.low, 0)} {self.producers} is ruled out." if isfinite(at.low) else ""
            )
            return f"There is no peak: the best fit has beta = 0{level}.{known}"
        where = "" if at.estimate <= most else f", beyond the {most} measured"
        written = f"The peak is {top.formatted} ({top.formatted_interval or 'no interval'}) at {at.formatted}{where}"
        if isinf(at.high):
            return (
                f"{written}, but the trials are also compatible with growth without a peak. A peak at fewer than "
                f"{number(at.low, 0)} {self.producers} is ruled out."
            )
        return f"{written} ({at.formatted_interval or 'no interval'})."

    @property
    def cautions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.notes, *super().cautions]))

    def figure(self) -> go.Figure:
        trials, curve = self.trials, self.curve
        figure = go.Figure()
        primitives.band(figure, curve.producers, curve.low, curve.high)
        x, law = trials[self.producers], {"color": theme.FIT, "width": 2}
        for y, name, line in ((curve.fitted, "fitted law", law), (curve.linear, "linear growth", primitives.REFERENCE)):
            figure.add_scatter(x=curve.producers, y=y, mode="lines", name=name, line=line)
        points = {"mode": "markers", "name": "trials", "marker": {"size": 8, "color": theme.WITHIN, "opacity": 0.8}}
        figure.add_scatter(x=x, y=trials._response, hovertemplate="%{x:.4g}: %{y:.4g}<extra></extra>", **points)
        figure.update_xaxes(title=theme.plain(f"{self.producers} (log axis)"), **theme.log_axis(x, ""))
        axis = theme.log_axis([*trials._response, *curve.linear, *curve.low], self.unit)
        unit = f", {self.unit}" if self.unit else ""
        figure.update_yaxes(title=theme.plain(f"{self.throughput}{unit} (log axis)"), **axis)
        most = int(x.max())
        growth = f"{most} {self.producers} reach {self.efficiency.formatted} of linear growth"
        return theme.finish(
            figure,
            name="scalability",
            title=theme.headline(growth, f"{self.throughput} against {self.producers}"),
            subtitle="Points: trials. Line: the Universal Scalability Law. Band: its "
            f"{percent(LEVEL)} interval, for each number of {self.producers} separately. Dashed: linear growth, "
            "starting from the law's value at 1.",
            alt=f"Throughput against producers. {self}",
            caption=str(self),
            table=curve,
        )


def fit_scalability(
    frame: pd.DataFrame, throughput: str, producers: str = "producers", *, block: str | None = None, unit: str = ""
) -> Scalability:
    """
    Fit the Universal Scalability Law to trials.

    frame: One row per trial.
    throughput, producers: Names of columns of positive numbers; at least three different numbers of producers.
    block: The column of blocks. Each block multiplies throughput by a factor, and the intervals of the peak and of
        gamma include the variation between blocks.
    unit: Unit of the throughput, for texts.

    Raises ParameterError: there are fewer than three numbers of producers, or no more trials than parameters.

    >>> from wanbench.pages.geo_kafka.scalability_fit import usl
    >>> n = np.repeat([1, 2, 4, 8, 16, 32], 2)
    >>> rate = usl(n, 10, 0.05, 0.002) * np.tile([0.99, 1.01], 6)
    >>> result = fit_scalability(pd.DataFrame({"producers": n, "rate": rate}), "rate")
    >>> round(result.peak_producers.estimate), result.is_linear_possible
    (22, False)
    """
    check_columns("frame", frame, [throughput, producers, *([block] if block else [])])
    trials, left_out, _ = usable_runs(frame, throughput, [producers], [], block)
    n = trials[producers].to_numpy(dtype=float)
    if len(np.unique(n)) < MIN_LEVELS or n.min() < 1:
        raise ParameterError(
            f"{producers} has the levels {', '.join(f'{value:g}' for value in np.unique(n))}; allowed: {MIN_LEVELS} or "
            "more different numbers, none below 1, as the law has three parameters."
        )
    fit = Fit(n, np.log(trials._response.to_numpy()), trials._block if block else None, LEVEL)
    alphas, betas, slack = fit.allowed()
    ends = fit.ends(alphas, betas, slack)
    law = f"the Universal Scalability Law{f' and {block}' if block else ''}"
    method = f"least squares of logarithms on {law}, profile likelihood with F(1, {fit.freedom})"
    basis = f"{count(len(n), 'trial')} at {len(np.unique(n))} numbers of {producers}"
    about: Fields = {"n": len(n), "basis": basis, "assumption": ASSUMPTION, "method": method}
    levels: Fields = {"method": method + ("" if block is None else IN_OTHER_BLOCKS)}
    levels["warnings"] = (ONE_BLOCK,) if isnan(fit.block_half) else ()
    most = n.max()
    many = f"{most:g} {producers}"
    texts = {
        "efficiency": (f"share of linear growth at {many}", f"{many} reach {{}} of linear growth", "fraction"),
        "peak_producers": (f"{producers} at the peak", f"{throughput} peaks at {{}}", producers),
        "peak": (f"largest {throughput}", f"The largest {throughput} is {{}}", unit),
        "gamma": (f"{throughput} of one", f"One of the {producers} reaches {{}}", unit),
        "alpha": ("alpha (contention)", "Contention alpha is {}", ""),
        "beta": ("beta (consistency)", "Consistency beta is {}", ""),
    }
    estimates: dict[str, Estimate] = {}
    for name, (quantity, claim, its_unit) in texts.items():
        shared = about | levels if name in ("peak", "gamma") else about
        estimates[name] = Estimate(quantity, claim, **ends[name], unit=its_unit, **shared)
    p = fit.lack_of_fit()
    notes = _notes(estimates, most, p, left_out, len(frame), producers)
    linear = bool(((alphas == 0) & (betas == 0)).any())
    names = {"throughput": throughput, "producers": producers, "unit": unit}
    rows = {"curve": fit.curve(alphas, betas, slack), "trials": trials, "left_out": left_out}
    found = {"is_linear_possible": linear, "lack_of_fit_p": p, "notes": notes}
    return Scalability(**estimates, **rows, **names, **found)


def _notes(
    estimates: dict[str, Estimate], most: float, p: float, left_out: pd.DataFrame, n_rows: int, producers: str
) -> tuple[str, ...]:
    notes, at = [], estimates["peak_producers"].estimate
    if p < UNFIT_BELOW:
        notes.append(
            f"the law does not fit: the means at each number of {producers} deviate from it by more than repeated "
            f"trials do ({p_value(p)}); throughput that grows faster than linearly, or stops growing at a limit, "
            "has this effect"
        )
    if isfinite(at) and at > most:
        notes.append(f"the peak lies beyond the {most:g} {producers} measured: it is extrapolated")
    if len(left_out):
        notes.append(f"{len(left_out)} of {count(n_rows, 'trial')} not used: {reasons(left_out)}")
    return tuple(notes)
