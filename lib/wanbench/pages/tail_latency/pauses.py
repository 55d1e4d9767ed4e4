"""
Do the slowest seconds coincide with broker pauses more often than others? A tail's cause as a number.

The slowest seconds are ranked within each trial, so that a slow trial with many pauses does not by itself suggest a
cause. Shifting all pauses together around the trial, as on a circle, keeps the autocorrelation of pauses and latencies,
and breaks only their association (random toroidal shifts: Lotwick & Silverman 1982, J. R. Stat. Soc. B 44, 406).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import ceil, exp, inf, log, nan, sqrt

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from scipy import stats

from wanbench.checks import check_choice, check_columns, check_number
from wanbench.errors import MissingDataError, ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, p_value
from wanbench.methods.result import Estimate, Interval, Result, exact_binomial
from wanbench.methods.tails.distribution import Tail, decoded

from .quantiles import difference

QUANTILES = {"p50_ms": 0.5, "p99_ms": 0.99, "max_ms": 1 - 1e-9}
NAMES = ("median", "p99", "maximum")
KINDS = ("gc", "safepoint", "roll", "snapshot")
SLOWEST = 0.1
"""Share of the seconds of each trial that are slow."""
LEAST_MS = 20.0
"""Shorter pauses do not count: young collections of an idle broker would make seconds with a pause common."""
FEW = 5
"""With fewer slow seconds a share is meaningless: the exact interval of 0 of 5 reaches 52 %."""
ALPHA, LEVEL = 0.05, 0.95
METHOD = (
    "Wilson's interval with the effective number of seconds (Korn & Graubard 1998): n over the ratio of the share's "
    "variance under shifts of the pauses to the binomial one; two shares combined (Zou & Donner 2008)"
)
ASSUMPTION = (
    "Brokers' and clients' clocks agree to well within a second; seconds of a trial are stationary; "
    "coincidence is not cause: a burst of load may cause both"
)
ROW_PX = 26
"""Height of a row of pauses."""
MIN_PX = 3
"""Width of a mark of a pause that is too short to be seen as a bar."""


@dataclass(frozen=True, repr=False)
class Causes(Result):
    """
    Shares of seconds with a pause: of the slow less that of the others, both shares, and their ratio.

    `p` is the share of `n_shifts` random shifts of the pauses, the unshifted data included, with at least as large an
    excess.
    """

    excess: Estimate
    slow: Estimate
    others: Estimate
    ratio: Estimate
    p: float
    n_shifts: int
    seconds: pd.DataFrame
    pauses: pd.DataFrame

    TITLE = "Slow seconds with a pause of a broker in them"

    @property
    def beyond_chance(self) -> bool:
        """Whether slow seconds coincide with pauses more often than by chance, at 5 %."""
        return self.p <= ALPHA

    @property
    def sentence(self) -> str:
        verdict = f"{'' if self.beyond_chance else 'not shown to be '}more often than by chance"
        return (
            f"{self.slow.formatted} of the {count(self.slow.n, 'slowest second')} have a pause of at least "
            f"{number(LEAST_MS)} ms in them, against {self.others.formatted} of the {count(self.others.n, 'other')}"
            f": {verdict} ({p_value(self.p)}, {count(self.n_shifts, 'shift')} of the pauses)."
        )

    def figure(self, *, note: str = "") -> go.Figure:
        """Draw the seconds of the first trial, and below them the pauses that count, a row per node and kind."""
        seconds, keys = self.seconds, _trial_keys(self.seconds)
        seconds = next(iter(seconds.groupby(keys, dropna=False, sort=False)))[1] if keys else seconds
        seconds = seconds.sort_values("start_s")
        start_s, end_s = seconds.start_s.min(), (seconds.start_s + seconds.length_s).max()
        middle = seconds.start_s + seconds.length_s / 2 - start_s
        figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.06)
        styles = zip(QUANTILES, NAMES, theme.SERIES_COLOURS, ("solid", "dash", "dot"), strict=False)
        for column, name, colour, dash in styles:
            y, line = seconds[column].where(np.isfinite(seconds[column])), {"color": colour, "dash": dash, "width": 2}
            figure.add_scatter(x=middle, y=y, mode="lines+markers", name=name, line=line, marker={"size": 4})
        arrived = np.isfinite(seconds.max_ms)
        highest, lost = seconds.loc[seconds.max_ms.where(arrived, -1).idxmax()], int((~arrived).sum())
        gone = f"; {count(lost, 'second')} with lost records without a maximum" if lost else ""
        counted = f"{count(len(seconds), 'second')}, {count(int(seconds.n.sum()), 'record')}{gone}"
        slowest = f"the slowest record took {number(highest.max_ms)} ms, in second {highest.start_s - start_s:.0f}"
        marks = _marks(self.pauses, start_s, end_s)
        _draw_marks(figure, marks)
        paused = "No pause of a broker in this time."
        if len(marks):
            longest = marks.loc[marks.duration_ms.idxmax()]
            most = f"the longest {number(longest.duration_ms)} ms ({longest.pause_of})"
            paused = f"{count(len(marks), 'pause')} of brokers in this time, {most}."
        figure.update_yaxes(title="latency from intended send to receipt (ms)", rangemode="tozero", row=1, col=1)
        table = seconds[list(QUANTILES)].assign(intended_s=middle)[["intended_s", *QUANTILES]]
        return theme.finish(
            figure,
            name="latency-over-time",
            title="Latency and pauses of brokers over time",
            subtitle=f"Lines: median, p99 and maximum of the records due in each second. {counted}. Below: pauses of "
            "brokers, from start to end.",
            alt=f"Latency per second over time. {counted}; {slowest}. {paused}",
            caption=f"{counted}. {paused}",
            table=pd.concat([table, marks], ignore_index=True),
            note=note or self.sentence,
        )


def _marks(pauses: pd.DataFrame, start_s: float, end_s: float) -> pd.DataFrame:
    """Return the pauses within the time shown, each with the name of its row."""
    inside = pauses[(pauses.at_s <= end_s) & (pauses.at_s + pauses.duration_ms / 1_000 >= start_s)]
    inside = inside.sort_values(["kind", "node_id", "at_s"])
    nodes = ["?" if pd.isna(node) else int(node) for node in inside.node_id]
    label = [f"{kind}, node {node}" for kind, node in zip(inside.kind, nodes, strict=True)]
    times = {"pause_at_s": inside.at_s - start_s, "duration_ms": inside.duration_ms, "text": inside.text}
    return pd.DataFrame({"pause_of": label} | times)


def _draw_marks(figure: go.Figure, marks: pd.DataFrame) -> None:
    rows, where = list(dict.fromkeys(marks.pause_of)), {"row": 2, "col": 1, "showlegend": False}
    for k, row in enumerate(rows):
        part = marks[marks.pause_of == row]
        colour = theme.SERIES_COLOURS[k % len(theme.SERIES_COLOURS)]
        hover = [f"{number(ms)} ms, {theme.plain(text)}" for ms, text in zip(part.duration_ms, part.text, strict=True)]
        # three points per pause, the last one missing, make one trace of separate bars
        until_s = part.pause_at_s + part.duration_ms / 1_000
        ends = np.column_stack([part.pause_at_s, until_s, np.full(len(part), np.nan)])
        line = {"color": colour, "width": ROW_PX // 2}
        figure.add_scatter(x=ends.ravel(), y=[k] * ends.size, mode="lines", line=line, hoverinfo="skip", **where)
        marker = {"symbol": "line-ns", "size": ROW_PX // 2, "line": {"color": colour, "width": MIN_PX}}
        about = {"mode": "markers", "marker": marker, "text": hover, "hovertemplate": "%{text}<extra></extra>"}
        figure.add_scatter(x=part.pause_at_s, y=[k] * len(part), **about, **where)
    below = ROW_PX * max(1, len(rows)) + 40
    share = below / (theme.HEIGHT_PX - 100 + below)
    figure.update_layout(height=theme.HEIGHT_PX + below, yaxis_domain=[share + 0.04, 1], yaxis2_domain=[0, share])
    primitives.label_rows(figure, rows or ["no pause"], row=2, col=1)
    figure.update_xaxes(title="intended send time (s since the first)", row=2, col=1)


def per_second(frame: pd.DataFrame) -> pd.DataFrame:
    """
    Compute median, 99th percentile and maximum of the end-to-end latency of the first group by intended second.

    `frame` is table open_loop_histograms; seconds of the warm-up are left out. The result has a row per second in which
    records were due: run_id, test_id and attempt if the frame has them, start_s, length_s, n (including lost records),
    p50_ms, p99_ms, max_ms. A quantile is infinite if lost records reach it. MissingDataError if there is no second.
    """
    check_columns("open_loop_histograms", frame, ("what", "group", "warm_up", "n_lost", "histogram"))
    kept = (frame.what == "end to end") & ~frame.warm_up.astype(bool) & (frame.group == 0).fillna(False).astype(bool)
    names, found = [*_trial_keys(frame), "start_s", "length_s"], []
    for row in frame[kept].to_dict("records"):
        tail = Tail("", *decoded(row["histogram"]), row["n_lost"])
        if tail.n:
            values = {name: tail.quantile(q) / 1_000 for name, q in QUANTILES.items()}
            found.append({name: row[name] for name in names} | {"n": tail.n} | values)
    if not found:
        raise MissingDataError("no second has an end-to-end latency of group 0.")
    return pd.DataFrame(found).sort_values(names[:-1], ignore_index=True)


def _trial_keys(frame: pd.DataFrame) -> list[str]:
    return [key for key in ("run_id", "test_id", "attempt") if key in frame]


def with_pause(second: np.ndarray, at: np.ndarray, length: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """
    Tell whether each second overlaps a pause: one row per shift.

    `second` has the ordinals of the observed seconds, from 0; `at` and `length` are in seconds since the start of
    second 0; `shifts` are the seconds by which all pauses are late; what leaves at the end comes back at the start.

    >>> with_pause(np.arange(4), np.array([0.9, 3.5]), np.array([0.2, 0.1]), np.array([0.0, 1.0])).astype(int)
    array([[1, 1, 0, 1],
           [1, 1, 1, 0]])
    """
    size = int(second.max()) + 1
    ends = np.minimum(at + length, size)
    at = np.maximum(at, 0.0)
    at, length = at[ends > at], (ends - at)[ends > at]
    starts = (at + shifts[:, None]) % size
    first = np.minimum(np.floor(starts).astype(int), size - 1)
    last = np.maximum(np.ceil(starts + length).astype(int) - 1, first)
    # +1 where a pause begins to cover seconds and -1 after, over two turns of the circle
    steps, rows = np.zeros((len(shifts), 2 * size + 1), dtype=int), np.arange(len(shifts))[:, None]
    np.add.at(steps, (rows, first), 1)
    np.add.at(steps, (rows, last + 1), -1)
    covered = steps.cumsum(axis=1) > 0
    return (covered[:, :size] | covered[:, size : 2 * size])[:, second]


def causes(
    latencies: pd.DataFrame,
    pauses: pd.DataFrame | None,
    *,
    over_ms: float | None = None,
    kinds: Collection[str] = KINDS,
    shifts: int = 999,
    seed: int = 0,
) -> Causes:
    """
    Compare the share of the slowest seconds, by p99, that contain a pause with that of all other seconds.

    `latencies` is table open_loop_histograms, or the result of `per_second`; `pauses` is table broker_pauses, matched
    by run_id if both have it. Seconds above `over_ms` are slow, by default the slowest tenth. MissingDataError if
    `pauses` is None, as for brokers outside the lab; ParameterError if no second is slow or all are.
    """
    if pauses is None:
        raise MissingDataError("the brokers' logs are not known: they run outside the lab.")
    check_number("over_ms", over_ms, 0, optional=True)
    check_number("shifts", shifts, 99, 100_000, whole=True)
    for kind in kinds:
        check_choice("kinds", kind, KINDS)
    check_columns("broker_pauses", pauses, ("node_id", "at_s", "duration_ms", "kind", "text"))
    made = {"start_s", "length_s", "p99_ms"} <= set(latencies.columns)
    seconds = (latencies if made else per_second(latencies)).reset_index(drop=True)
    counted = pauses[(pauses.duration_ms >= LEAST_MS) & pauses.kind.isin(list(kinds))]
    slow, trials, latency = np.zeros(len(seconds), bool), _trials(seconds, counted), seconds.p99_ms.to_numpy()
    for rows, *_ in trials:
        slowest = rows[np.argsort(-latency[rows], kind="stable")[: ceil(SLOWEST * len(rows) - 1e-9)]]
        slow[slowest if over_ms is None else rows[latency[rows] > over_ms]] = True
    if not slow.any() or slow.all():
        raise ParameterError(f"{slow.sum()} of {len(slow)} seconds are slow; allowed: some, and not all: see over_ms.")
    random = np.random.default_rng(check_number("seed", seed, 0, whole=True))
    flags = np.zeros((shifts + 1, len(seconds)), bool)
    for rows, second, part, zero in trials:
        moved = np.r_[0.0, random.uniform(0, second.max() + 1, shifts)]
        if len(part):
            at, length = part.at_s.to_numpy() - zero, part.duration_ms.to_numpy() / 1_000
            flags[:, rows] = with_pause(second, at, length, moved)
    shares = np.array([flags[:, slow].mean(axis=1), flags[:, ~slow].mean(axis=1)])
    # the observed arrangement, the first, counts as one of the shifts, so p is never 0
    excess, sizes = shares[0] - shares[1], (int(slow.sum()), int((~slow).sum()))
    met = counted.loc[list(dict.fromkeys(index for _, _, part, _ in trials for index in part.index))]
    warnings = (f"{count(sizes[0], 'slow second')}: fewer than {FEW} are too few",) if sizes[0] < FEW else ()
    warnings += () if len(met) else (f"no pause of at least {number(LEAST_MS)} ms in any second",)
    estimates = _estimates(shares, sizes, len(trials), warnings)
    return Causes(*estimates, float((excess >= excess[0] - 1e-12).mean()), shifts, seconds, met)


def _trials(seconds: pd.DataFrame, pauses: pd.DataFrame) -> list[tuple]:
    """Find per trial: its rows, the indices of its seconds, the pauses that overlap it, and its start."""
    keys, found = _trial_keys(seconds), []
    groups = seconds.groupby(keys, dropna=False, sort=False) if keys else seconds.groupby(lambda _: 0)
    for rows in groups.indices.values():
        part = seconds.iloc[rows]
        zero, length = part.start_s.min(), float(part.length_s.iloc[0])
        if not np.isclose(length, 1.0) or not (part.length_s == length).all():
            raise ParameterError(f"length_s is {length:g}; allowed: windows of 1 s.")
        second = np.round(part.start_s.to_numpy() - zero).astype(int)
        near = pauses[(pauses.at_s < zero + second.max() + 1) & (pauses.at_s + pauses.duration_ms / 1_000 > zero)]
        if "run_id" in pauses and "run_id" in part and part.run_id.notna().all():
            near = near[near.run_id.isna() | (near.run_id == part.run_id.iloc[0])]
        found.append((rows, second, near, zero))
    return found


def _estimates(shares: np.ndarray, sizes: tuple[int, int], n_trials: int, warnings: tuple[str, ...]) -> list[Estimate]:
    basis = f"{count(sizes[0], 'slow second')} and {count(sizes[1], 'other')} of {count(n_trials, 'trial')}"
    about = {"method": METHOD, "assumption": ASSUMPTION, "basis": basis, "level": LEVEL}
    # (value, low, high) of the slow and of the other seconds, and by taking seconds as independent
    slow, others = ((float(row[0]), *_wilson(row, n)) for row, n in zip(shares, sizes, strict=True))
    bare = [(float(row[0]), *exact_binomial(round(row[0] * n), n, LEVEL)) for row, n in zip(shares, sizes, strict=True)]

    def estimate(quantity, claim, ends, unit, n, naive, warnings=()):
        naive = Interval("seconds taken as independent", *naive[1:])
        return Estimate(quantity, claim, *ends, unit, n, naive=naive, warnings=warnings, **about)

    both, name, more = sum(sizes), "{} seconds with a pause", "slow seconds contain a pause"
    claim = "the share of {} seconds with a pause is {{}}"
    excess = (f"{more} more often than others by {{}}", difference(others, slow), "fraction", both)
    ratio = (f"{more} {{}} times as often as others", _ratio(slow, others), "", both, _ratio(*bare))
    return [
        estimate(f"excess of {name.format('slow')}", *excess, difference(bare[1], bare[0]), warnings),
        estimate(name.format("slow"), claim.format("slow"), slow, "fraction", sizes[0], bare[0]),
        estimate(name.format("other"), claim.format("other"), others, "fraction", sizes[1], bare[1]),
        estimate("ratio of the shares", *ratio),
    ]


def _wilson(shares: np.ndarray, n: int) -> tuple[float, float]:
    """Wilson's interval (1927) of the first share, with n divided by the design effect estimated from the shifts."""
    mean = shares[1:].mean()
    binomial = mean * (1 - mean) / n
    effective = n / max(1.0, shares[1:].var() / binomial) if binomial > 0 else float(n)
    z2, p = stats.norm.ppf((1 + LEVEL) / 2) ** 2, shares[0]
    middle, half = p + z2 / (2 * effective), sqrt(z2 * (p * (1 - p) + z2 / (4 * effective)) / effective)
    low, high = ((middle + sign * half) / (1 + z2 / effective) for sign in (-1, 1))
    return max(0.0, float(low)), min(1.0, float(high))


def _ratio(slow: tuple, others: tuple) -> tuple[float, float, float]:
    """Return the ratio with its interval, combined on the log scale; open above if the other seconds have no pause."""
    if not others[0]:
        return (inf, slow[1] / others[2], inf) if slow[0] and others[2] else (nan, nan, nan)
    if not slow[0]:
        return 0.0, 0.0, slow[2] / others[1] if others[1] else inf
    both = [[log(end) if end > 0 else -inf for end in ends] for ends in (others, slow)]
    return tuple(exp(end) for end in difference(*both))
