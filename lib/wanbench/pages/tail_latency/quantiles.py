"""Estimate quantiles of latency distributions and their differences, and draw the percentile plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, hypot, isfinite, log10, nan

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_kind
from wanbench.errors import MissingDataError, ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, percent, quantity
from wanbench.methods.result import Estimate, Fields, Interval, Result
from wanbench.methods.tails import quantile_intervals as order
from wanbench.methods.tails.distribution import FEW_BEYOND, NAIVE, Tail

from .latencies import of_benchmark
from .trials import TailTrials

QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999)
PERCENTILES = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)
"""The percentiles of test 3 of the source."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
METHOD = "the intervals of both quantiles, combined (Zou & Donner 2008); method of each: {}"


@dataclass(frozen=True, repr=False)
class Quantiles(Result):
    """Several quantiles of one latency distribution (`tail`), as Estimates in ms with intervals (`numbers`)."""

    TITLE = "Quantiles of latency"

    tail: Tail
    quantiles: tuple[float, ...]
    numbers: tuple[Estimate, ...]

    @property
    def sentence(self) -> str:
        parts = []
        for q, e in zip(self.quantiles, self.estimates, strict=True):
            ends = f" ({e.formatted_interval})" if e.formatted_interval else ""
            parts.append(f"{order.name(q)} {e.formatted}{ends}")
        level, records = self.estimates[0].formatted_level, count(self.tail.n, "record")
        return f"Latency of “{self.tail.name}” ({records}, {level} intervals): {', '.join(parts)}."

    def __getitem__(self, q: float) -> Estimate:
        return self.estimates[self.quantiles.index(q)]


def quantiles(tail: Tail, at: Sequence[float] = QUANTILES, *, level: float = 0.95) -> Quantiles:
    """Estimate the quantiles `at` of a distribution, each with an interval; raises the errors of `Tail.estimate`."""
    check_kind("tail", tail, Tail)
    at = order.check_quantiles(at)
    return Quantiles(tail, tuple(at), tuple(tail.estimate(q, level=level) for q in at))


@dataclass(frozen=True, repr=False)
class TailComparison(Result):
    """Quantiles of two distributions, and their differences in ms, b minus a."""

    a: Quantiles
    b: Quantiles
    differences: tuple[Estimate, ...]

    TITLE = "Difference of latency by quantile"

    @property
    def agree(self) -> list[bool | None]:
        """
        Whether each difference may be 0, because its interval contains 0.

        None if the difference is unknown, or if its interval contains 0 only because an end is infinite.
        """
        verdicts = []
        for one in self.differences:
            holds, closed = one.low <= 0 <= one.high, isfinite(one.low) and isfinite(one.high)
            verdicts.append(None if not isfinite(one.estimate) or (holds and not closed) else holds)
        return verdicts

    @property
    def sentence(self) -> str:
        named = pd.Series(list(map(order.name, self.a.quantiles)))
        same, unknown = pd.Series(self.agree, dtype=object), self.agree.count(None)
        verbs = (("do not differ significantly", True), ("differ", False))
        parts = [f"{verb} at {', '.join(named[same == word])}" for verb, word in verbs if (same == word).any()]
        parts += [f"cannot be compared at {count(unknown, 'quantile')}"] if unknown else []
        return f"“{self.b.tail.name}” and “{self.a.tail.name}” {' and '.join(parts)}."

    def figure(self) -> go.Figure:
        """Draw the percentile plot of both distributions."""
        return percentile_plot([self.a, self.b], note=self.sentence)


def compare_tails(a: Tail, b: Tail, at: Sequence[float] = QUANTILES, *, level: float = 0.95) -> TailComparison:
    """
    Estimate the differences, b minus a, of the quantiles `at` of two independent distributions, in ms.
    """
    both = [quantiles(tail, at, level=level) for tail in (a, b)]
    differences = []
    for q, one, other in zip(both[0].quantiles, both[0].estimates, both[1].estimates, strict=True):
        value, low, high = difference(*((e.estimate, e.low, e.high) for e in (one, other)))
        naive = difference(*((tail.quantile(q), *tail.independent_interval(q, level)) for tail in (a, b)))
        about: Fields = {"quantity": f"difference of {order.name(q)}, {b.name} minus {a.name}", "unit": "ms"}
        about |= {"claim": f"{order.name(q)} of latency of {b.name} minus that of {a.name} is {{}}", "n": a.n + b.n}
        about |= {"basis": f"{_basis(other, b)} against {_basis(one, a)}", "method": METHOD.format(one.method)}
        about["assumption"] = f"{one.assumption}; both distributions are measured independently of each other"
        about["warnings"] = tuple(dict.fromkeys([*one.warnings, *other.warnings]))
        about["standard_error"] = hypot(one.standard_error, other.standard_error)
        about |= {"estimate": value, "low": low, "high": high, "level": level}
        differences.append(Estimate(naive=Interval(NAIVE, *naive[1:]), **about))
    return TailComparison(both[0], both[1], tuple(differences))


def difference(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> tuple[float, float, float]:
    """
    Subtract a from b, each given as (estimate, low, high); return the difference with its interval (Zou & Donner 2008).

    All three are NaN unless both estimates are finite.

    >>> [round(end, 3) for end in difference((10.0, 9.0, 12.0), (20.0, 16.0, 21.0))]
    [10.0, 5.528, 11.414]
    """
    if not (isfinite(a[0]) and isfinite(b[0])):
        return nan, nan, nan
    value = b[0] - a[0]
    return value, value - hypot(b[0] - b[1], a[2] - a[0]), value + hypot(b[2] - b[0], a[0] - a[1])


def _basis(estimate: Estimate, tail: Tail) -> str:
    return f"{quantity(estimate.estimate, 'ms', estimate.low, estimate.high)} of {count(tail.n, 'record')}"


def benchmark(own: TailTrials, tables: Mapping[str, pd.DataFrame]) -> TailComparison:
    """
    Compare percentiles that the OpenMessaging Benchmark measured with those of open-loop trials on the same cluster.

    own: The open-loop trials.
    tables: Tables of the benchmark's run.

    Raises MissingDataError: the benchmark was not run.
    """
    runs = tables.get("benchmark_runs", pd.DataFrame())
    if not len(runs):
        raise MissingDataError(
            "not run, because the parameter omb_distribution does not name the folder of the OpenMessaging Benchmark."
        )
    first = runs.iloc[0]
    parts = [
        tables[name][(tables[name].source_file == first.source_file) & (tables[name].test_id == first.test_id)]
        for name in ("quantiles", "benchmark_windows")
    ]
    return compare_tails(own.pooled, of_benchmark(*parts), PERCENTILES[:-1])


@dataclass(frozen=True, repr=False)
class Percentiles(Result):
    """Percentiles of two systems at one load (test 3 of the source), and how many records each percentile needs."""

    compared: TailComparison

    TITLE = "Percentiles, and the number of records that each needs"

    @property
    def sides(self) -> tuple[Quantiles, Quantiles]:
        """The percentiles of each system."""
        return self.compared.a, self.compared.b

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(one for side in self.sides for one in side.estimates)

    @property
    def sentence(self) -> str:
        parts = []
        for side in self.sides:
            name, pairs = side.tail.name, list(zip(side.quantiles, side.estimates, strict=True))
            closed = [k for k, (_, one) in enumerate(pairs) if isfinite(one.low) and isfinite(one.high)]
            if not closed:
                parts.append(f"For “{name}” no percentile has an interval with an upper end")
                continue
            q, one = pairs[closed[-1]]
            lacking = [next_.warnings[0] for _, next_ in pairs[closed[-1] + 1 :][:1] if next_.warnings]
            highest = f"For “{name}” the highest percentile whose interval has an upper end is {order.name(q)}"
            parts += [f"{highest}, which is {one.formatted} ({one.formatted_interval})", *lacking]
        return f"{'. '.join(parts)}."

    @property
    def cautions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for side in self.sides for text in side.tail.cautions))

    def formatted_table(self) -> pd.DataFrame:
        rows, level = [], self.estimates[0].level
        for q in self.compared.a.quantiles:
            row = {"percentile": order.name(q), "records needed": f"{order.min_values(q, level):,}"}
            for side in self.sides:
                one, name, n = side[q], side.tail.name, side.tail.n
                worth = number(side.tail.effective_n(q, level), 0) if n * (1 - q) >= FEW_BEYOND else "unknown"
                row |= {name: one.formatted, f"{name}: {one.formatted_level} interval": one.formatted_interval}
                row |= {f"{name}: independent records, of {n:,}": worth}
            rows.append(row)
        return pd.DataFrame(rows)

    def figure(self) -> go.Figure:
        """Draw the percentile plot of both systems."""
        return self.compared.figure()


def percentiles(a: TailTrials, b: TailTrials) -> Percentiles:
    """Compare percentiles of two systems at one load, each from the records of all trials of the system."""
    return Percentiles(compare_tails(a.pooled, b.pooled, PERCENTILES))


def percentile_plot(distributions: Sequence[Quantiles], *, note: str = "") -> go.Figure:
    """
    Draw latency against the share of records that took longer, on a logarithmic axis.

    Lines show the whole distributions. Points show quantiles with their intervals; a triangle marks an interval without
    an upper end.
    """
    drawn = [each for each in distributions if len(each.tail.values_ms)]
    if not drawn:
        raise ParameterError("no distribution has a record that arrived; allowed: at least one.")
    figure, frames = go.Figure(), []
    for k, result in enumerate(drawn):
        colour, dash = theme.SERIES_COLOURS[k % len(theme.SERIES_COLOURS)], DASHES[k % len(DASHES)]
        x, y = _curve(result.tail)
        group: theme.Settings = {"legendgroup": str(k)}
        line = {"color": colour, "dash": dash, "width": 2, "shape": "hv"}
        label = f"{theme.plain(result.tail.name)} ({count(result.tail.n, 'record')})"
        figure.add_scatter(x=x, y=y, mode="lines", name=label, line=line, **group)
        finite = [(q, e) for q, e in zip(result.quantiles, result.estimates, strict=True) if isfinite(e.estimate)]
        rows = [(result.tail.name, q, e.estimate, e.low, e.high) for q, e in finite]
        frame = pd.DataFrame(rows, columns=["of", "quantile", "latency_ms", "low_ms", "high_ms"])
        frames.append(frame)
        if finite:
            symbols = ["circle" if isfinite(e.high) else "triangle-up" for _, e in finite]
            points = (1 - frame["quantile"], frame.latency_ms, frame.low_ms, frame.high_ms)
            marker = {"color": colour, "size": 10, "symbol": symbols}
            style: theme.Settings = {"marker": marker, "showlegend": False, "vertical": True}
            texts = [theme.plain(e.sentence) for _, e in finite]
            primitives.interval_points(figure, *points, text=texts, **style, **group)
    table = pd.concat(frames, ignore_index=True)
    nines = max(1, max(floor(log10(result.tail.n)) for result in distributions))
    ticks = [0.5, *(10.0**-k for k in range(1, nines + 1))]
    figure.update_xaxes(title="share of records with at most this latency (log axis of the remaining share)")
    figure.update_xaxes(type="log", range=[log10(0.7), log10(min(ticks)) - 0.15])
    figure.update_xaxes(tickvals=ticks, ticktext=[order.name(1 - tick) for tick in ticks])
    ends = table[["latency_ms", "low_ms", "high_ms"]].to_numpy().ravel()
    figure.update_yaxes(**theme.log_axis(ends, "ms"), title="latency (ms, log axis)")
    level, last = percent(distributions[0].estimates[0].level), distributions[0].quantiles[-1]
    tails = ", ".join(f"{one.tail.name} {one.estimates[-1].formatted}" for one in distributions)
    return theme.finish(
        figure,
        name="tails",
        title=theme.headline(
            f"{order.name(last)}: {tails}", f"Latency of {' and '.join(r.tail.name for r in distributions)}"
        ),
        subtitle=f"Points: quantiles with their {level} intervals. Triangles: the interval has no upper end.",
        alt=f"Percentile plot of latencies. {' '.join(result.estimates[-1].sentence for result in distributions)}",
        caption=" ".join(result.sentence for result in distributions),
        table=table,
        note=note,
    )


def _curve(tail: Tail) -> tuple[np.ndarray, np.ndarray]:
    """Return the points to draw, thinned where dense: share of records that took longer, and latency in ms."""
    above = 1 - np.concatenate([[0.0], tail.cumulative[:-1]]) / tail.n
    # points are equidistant on the logarithmic axis
    places = np.unique(np.searchsorted(-above, -np.logspace(0, log10(above.min()), theme.MAX_POINTS)))
    places = places[places < len(above)]
    return above[places], tail.values_ms[places]
