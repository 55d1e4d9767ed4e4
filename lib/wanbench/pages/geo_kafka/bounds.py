"""
Compute four upper limits (bounds) of each trial's throughput, and how much of the lowest one the trial reached.

The bounds of links, windows and replication are computed from settings and placement (`region_limits`). The bound of
the machine is extrapolated from the measurement: the throughput with the same processor time per byte, if no processor
were idle. A trial's share of this bound equals the utilisation of the processors, so it is not reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, nan

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.errors import MissingDataError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, percent, quantity
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import LEVEL, Estimate, Result, text_table
from wanbench.methods.result.means import geometric_mean
from wanbench.methods.trials.processors import mean_use
from wanbench.methods.trials.rates import TrialRates
from wanbench.pages.geo_kafka.curves import VALUE, Curves
from wanbench.pages.geo_kafka.factor_columns import BROKER
from wanbench.pages.geo_kafka.region_limits import region_limits

SYMBOLS = ("square", "circle", "diamond", "triangle-up")
NAMES = ("link", "window", "replication", "machine")
# Bounds are named together with the lowest one if that is at least this share of them: they are exact to some 10 %.
NEAR = 0.9
EXPLAINED = 0.5  # A trial that reaches less of its lowest bound is limited by something else.
MACHINE = NAMES[-1]
METHOD = "geometric mean over trials; Student's t on logarithms, with trials as independent units"
ASSUMPTION = "Records are spread evenly over partitions; links have the requested rate and delay"


@dataclass(frozen=True, repr=False)
class Bounds(Result):
    """
    The bounds of each trial, and the shares of the links' bound and of the lowest bound that the trial reached.

    trials: One row per trial: its key (`KEY`), setting, cell (its combination of levels), measured (payload, bit/s);
        link, window, replication, machine (the four bounds, bit/s; infinite if there is none), allowed (the lowest
        bound), limit (its name), limits (names of this bound and of bounds close above it), reached (measured over
        allowed; NaN if limit is the machine), reached_link (measured over link); and, over the counted seconds (in
        which all producers ran), busy_percent, iowait_percent of the processors and fullest_link (mean utilisation of
        the fullest link, 0 to 1).
    """

    trials: pd.DataFrame

    TITLE = "Means over trials: measured payload and its limits, in Mbit/s"

    @property
    def sentence(self) -> str:
        counts = self.trials.limits.value_counts()
        listed = ", ".join(f"{name} {n}" for name, n in counts.items())
        return (
            f"Number of trials by lowest limit: {listed}. A limit within {percent(1 - NEAR)} of a trial's lowest limit "
            "counts too."
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        beyond = int((self.trials.reached > 1.05).sum())  # whole seconds cut batches at both ends
        unknown = int(np.isinf(self.trials.machine).sum())
        notes = [f"{count(beyond, 'trial')} reached more than a limit allows, so an assumption does not hold"] * bool(
            beyond
        )
        notes += [f"{count(unknown, 'trial')} without processor metrics, so their limit by machine is unknown"] * bool(
            unknown
        )
        return (*notes, *super().cautions)

    def of(self, setting: str) -> Share:
        """Estimate how near the trials of one setting came to the links' bound and to their lowest bound."""
        part = self.trials[self.trials.setting == setting]
        if part.empty:
            raise MissingDataError(f"no trial of {setting!r} has limits.")

        def share(values: pd.Series, bound: str, rate: str) -> Estimate:
            names = {
                "quantity": f"{setting}: share of {bound}",
                "claim": f"“{setting}” reaches {{}} of what {rate} allows",
            }
            about = {"unit": "fraction", "method": METHOD, "assumption": ASSUMPTION}
            return geometric_mean(values, LEVEL, **names, **about)

        link = share(part.reached_link, "the links' limit", "the links' rate")
        lowest = share(part.reached.dropna(), "the lowest limit", "its lowest limit")
        return Share(setting, link, lowest if lowest.n else None, part)

    def table(self) -> pd.DataFrame:
        frame = self.trials.assign(**{name: self.trials[name] / 1e6 for name in ("measured", *NAMES, "allowed")})
        groups = frame.groupby("setting", sort=False)
        columns = ["measured", *NAMES, "reached", "busy_percent", "fullest_link"]
        means = groups[columns].mean()
        means.insert(0, "n_trials", groups.size())
        means.insert(1, "limits", groups.limits.agg(lambda limits: limits.mode().iloc[0]))
        return means.reset_index()

    def formatted_table(self) -> pd.DataFrame:
        heads = {"n_trials": "trials", "limits": "lowest limit", "reached": "share of the lowest limit"}
        heads |= {"busy_percent": "processors busy (%)", "fullest_link": "fullest link, share of its rate"}
        return text_table(self.table()).rename(columns=heads)

    def figure(self) -> go.Figure:
        trials, figure = self.trials, go.Figure()
        ends = [trials.measured.min(), trials.allowed.max()]
        line = {"mode": "lines", "line": primitives.REFERENCE, "hoverinfo": "skip"}
        figure.add_scatter(x=ends, y=ends, name="measured = allowed", **line)
        for name, shade, symbol in zip(NAMES, theme.SERIES_COLOURS, SYMBOLS, strict=False):
            part = trials[trials.limit == name]
            if len(part):
                marker = {"size": 9, "color": shade, "symbol": symbol, "opacity": 0.8}
                style = {"mode": "markers", "name": f"{name} ({count(len(part), 'trial')})", "marker": marker}
                hover = "%{text}<br>allowed %{x:.3s}bit/s, measured %{y:.3s}bit/s<extra></extra>"
                text = [theme.plain(name) for name in part.setting]
                figure.add_scatter(x=part.allowed, y=part.measured, text=text, hovertemplate=hover, **style)
        axis = theme.log_axis(trials.allowed, "bit/s")
        figure.update_xaxes(title="payload that the lowest limit allows (log axis)", **axis)
        figure.update_yaxes(title="payload measured (log axis)", **theme.log_axis([*trials.measured, *ends], "bit/s"))
        counts = trials.limits.value_counts()
        first = counts.index[0]
        return theme.finish(
            figure,
            name="bounds",
            title=f"The {first} limits {int(counts.iloc[0])} of {count(len(trials), 'trial')}",
            subtitle="One point per trial, coloured by the limit that is lowest for it. The limits by link, window and "
            "replication are computed from settings. The limit by machine is computed from the utilisation of the "
            "processors, so a point limited by the machine lies away from the line only because processors were not "
            "fully used.",
            alt=f"Measured against allowed throughput. {self}",
            caption=str(self),
            table=trials[["setting", "test_id", *NAMES, "allowed", "limit", "measured"]],
        )


@dataclass(frozen=True, repr=False)
class Share(Result):
    """
    How near the trials of one setting came to their bounds.

    `trials` has the rows of `Bounds.trials` for this setting. `link` is measured payload over the links' bound, and
    `lowest` measured payload over the lowest bound (None if the lowest bound is the machine's in every trial).
    """

    setting: str
    link: Estimate
    lowest: Estimate | None
    trials: pd.DataFrame

    TITLE = "Shares of the limits"

    @property
    def sentence(self) -> str:
        part, unexplained = self.trials, ""
        lowest = (
            f"In every trial the {MACHINE} is the lowest limit; a trial's share of it equals the utilisation "
            "of the processors."
        )
        if self.lowest is not None:
            lowest = f"The lowest limit is the {part.limits.mode().iloc[0]}. {self.lowest.sentence}"
            unexplained = " So none of the four limits explains the throughput." if self.lowest.high < EXPLAINED else ""
        finite = [name for name in NAMES if np.isfinite(part[name]).all()]
        allowed = ", ".join(f"{name} {quantity(part[name].mean(), 'bit/s')}" for name in finite)
        return (
            f"{self.link.sentence} {lowest} Limits on payload: "
            f"{allowed}. The processors of the busiest machine were {number(part.busy_percent.mean(), 0)} % busy (mean "
            f"over trials). The fullest link carried {quantity(part.fullest_link.mean(), 'fraction')} of its rate."
            f"{unexplained}"
        )


def bounds(curves: Curves, rates: TrialRates, tables: Mapping[str, pd.DataFrame]) -> Bounds:
    """
    Compute the four bounds of every trial in `curves`, and the shares that the trial reached.

    tables: Tables of the run: links and placements; also metrics (of sysstat) and link_samples, if sampled.

    Raises MissingDataError: the run has no placement of replicas, or its lab has no emulated links.
    """
    for name in ("placements", "links"):
        if name not in tables or tables[name].empty:
            raise MissingDataError(f"the run has no table {name}, which the limits need.")
    placed = dict(list(rates.part(tables["placements"]).groupby(KEY)))
    rows = []
    for trial in curves.frame.to_dict("records"):
        own = placed.get(tuple(trial[name] for name in KEY))
        if own is not None:
            brokers = {name.removeprefix(BROKER): trial[name] for name in curves.columns if name.startswith(BROKER)}
            about = {name: trial[name] for name in (*KEY, "setting", "cell")} | {"measured": trial[VALUE]}
            rows.append(about | region_limits(trial, own, tables["links"], broker_settings=brokers))
    if not rows:
        raise MissingDataError("no trial records the placement of its replicas.")
    frame = pd.DataFrame(rows).merge(mean_use(rates, tables), on=KEY, how="left")
    busy = frame.busy_percent / 100
    frame["machine"] = (frame.measured / busy).where(busy > 0, inf)
    allowed = frame[list(NAMES)].to_numpy(dtype=float)
    frame["allowed"], frame["limit"] = allowed.min(axis=1), np.array(NAMES)[allowed.argmin(axis=1)]
    near = allowed <= frame.allowed.to_numpy()[:, None] / NEAR
    frame["limits"] = [" and ".join(np.array(NAMES)[row]) for row in near]
    frame["reached"] = (frame.measured / frame.allowed).where(frame.limit != MACHINE, nan)
    frame["reached_link"] = frame.measured / frame.link
    return Bounds(frame)
