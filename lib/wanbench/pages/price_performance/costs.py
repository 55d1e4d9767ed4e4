"""Rank settings by the cost of a billion messages, where settings may tie, and compare cost with p99 latency."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.errors import MissingDataError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, percent
from wanbench.methods.result import Estimate, Result, RowsResult

from .comparisons import LEVEL, Comparisons, compare_all
from .trials import SizeTrials

RATE, COST = "messages_per_s", "usd_per_billion"


PANELS = {RATE: "messages per second", COST: "USD per billion messages"}
ENDS = ("", "_low", "_high")
LATENCIES = {"p99_ms": "p99 from send to acknowledgement", "end_to_end_p99_ms": "p99 from due time to receipt"}
DOMINATED, NOT_SHOWN, FIRST = "dominated", "not shown to be dominated", "on the frontier of the means"
STYLES = {FIRST: (theme.WITHIN, "diamond"), NOT_SHOWN: (theme.UNKNOWN, "circle"), DOMINATED: (theme.OUTSIDE, "x")}


@dataclass(frozen=True, repr=False)
class SizeCosts(Result):
    """Messages per second (`rates`) and USD per billion messages (`costs`) of each setting."""

    measured: SizeTrials
    rates: Comparisons
    costs: Comparisons

    TITLE = "Cost per billion messages"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(each.means[name] for each in (self.costs, self.rates) for name in self.costs.settings)

    @property
    def headline(self) -> str:
        cheapest = [name for name in self.costs.settings if self.costs.rank(name)[0] == 1]
        tied = f"{', '.join(f'“{name}”' for name in cheapest)} tie as the cheapest"
        lead = tied if cheapest[1:] else f"“{cheapest[0]}” is the cheapest"
        return f"{lead}: a billion messages cost {self.costs.means[cheapest[0]].formatted}."

    @property
    def sentence(self) -> str:
        costs, names = self.costs, self.costs.settings
        listed = ", ".join(f"“{name}” {costs.means[name].formatted}" for name in names)
        leaders = [f"“{name}”" for name in names if costs.rank(name)[0] == 1]
        tie = f"The cheapest is one of {', '.join(leaders)}, which tie"
        lead = tie if leaders[1:] else f"{leaders[0]} is significantly the cheapest"
        return (
            f"Cost of a billion messages: {listed}. {lead} (simultaneous {percent(LEVEL)} intervals of "
            f"the cost ratios of {count(len(costs.ratios) // 2, 'pair')} of sizes; {count(len(self.trials), 'trial')})."
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        lost = ", ".join(f"{name} {n:,}" for name, n in self.failed.items())
        failed = (f"costs do not include failed trials ({lost})",) if lost else ()
        return (*super().cautions, *self.measured.cautions, *failed)

    @property
    def trials(self) -> pd.DataFrame:
        return self.measured.trials

    @property
    def failed(self) -> pd.Series:
        """The number of failed attempts of each setting."""
        return self.measured.failed.setting.value_counts()

    @property
    def lead(self) -> Estimate:
        """The ratio of the second lowest cost to the lowest."""
        first, second = self.costs.settings[:2]
        return self.costs.ratios[second, first]

    def price_that_ties(self, setting: str, other: str) -> Estimate:
        """Estimate the price in USD per hour at which messages with `setting` would cost as much as with `other`."""
        now = float(self.trials.usd_per_hour[self.trials.setting == setting].iloc[0])
        claim = f"“{setting}” would cost as much per message as “{other}” at a price of {{}} instead of {now:g}"
        about = {"quantity": f"price at which {setting} ties with {other}", "claim": claim, "unit": "USD/hour"}
        return self.ratio(other, setting).transformed(lambda ratio: now * ratio, **about)

    def ratio(self, setting: str, other: str, of: str = COST) -> Estimate:
        """
        Return the cost per message with `setting` over that with `other`; for of="messages_per_s", the ratio of rates.

        Raises MissingDataError: one of the two has no trials.
        """
        each = self.costs if of == COST else self.rates
        if (setting, other) not in each.ratios:
            raise MissingDataError(f"no trials of {setting} and {other}; there are {', '.join(each.settings)}.")
        return each.ratios[setting, other]

    def table(self) -> pd.DataFrame:
        rows = []
        for name in self.costs.settings:
            rate, cost = self.rates.means[name], self.costs.means[name]
            best, worst = self.costs.rank(name)
            usd_per_hour = float(self.trials.usd_per_hour[self.trials.setting == name].iloc[0])
            row = {"setting": name, "trials": cost.n, "failed": int(self.failed.get(name, 0))}
            row |= {"usd_per_hour": usd_per_hour} | _with_ends(RATE, rate) | _with_ends(COST, cost)
            row["rank"] = f"{best}" if best == worst else f"{best} to {worst}"
            rows.append(row | {"ties": ", ".join(self.costs.ties(name))})
        return pd.DataFrame(rows)

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for row in self.table().itertuples():
            failed = f" ({row.failed:,} failed)" if row.failed else ""
            cells = {"setting": row.setting, "trials": f"{row.trials:,}{failed}"}
            cells |= {"USD per hour": number(row.usd_per_hour)} | _formatted(
                self.rates.means[row.setting], "messages/s"
            )
            cells |= _formatted(self.costs.means[row.setting], "USD per billion")
            rows.append(cells | {"rank": row.rank, "tied with": row.ties})
        return pd.DataFrame(rows)

    def figure(self) -> go.Figure:
        """Draw rate and cost in a row per setting, the cheapest first, with trials and intervals."""
        titles = list(PANELS.values())
        figure = make_subplots(1, 2, shared_yaxes=True, horizontal_spacing=0.06, subplot_titles=titles)
        names = list(self.costs.settings)
        y = self.trials.setting.map(names.index).to_numpy() + theme.spread(len(self.trials), 0.3)
        points = {"mode": "markers", "marker": {"size": 6, "color": theme.LIGHT, "opacity": 0.7}, "name": "trials"}
        points["hovertemplate"] = "one trial: %{x:,.4g}<extra></extra>"
        means: theme.Settings = {
            "marker": {"size": 10, "color": theme.FIT, "symbol": "diamond"},
            "name": "geometric mean",
        }
        for column, (response, each) in enumerate(((RATE, self.rates), (COST, self.costs)), 1):
            where: theme.Settings = {"row": 1, "col": column}
            legend: theme.Settings = {"showlegend": column == 1}
            figure.add_scatter(x=self.trials[response], y=y, **points, **legend, **where)
            estimates = [each.means[name] for name in names]
            primitives.estimate_points(figure, list(range(len(names))), estimates, **means, **legend, **where)
            figure.update_xaxes(title=PANELS[response], rangemode="tozero", **where)
            primitives.label_rows(figure, [theme.plain(name) for name in names], **where)
        first, last = (f"{self.costs.means[name].formatted} with {name}" for name in (names[0], names[-1]))
        return theme.finish(
            figure,
            name="cost-per-billion",
            title=theme.headline(f"A billion messages cost {first} to {last}", "What a billion messages cost"),
            subtitle="Small points: trials. Bars: interval of a setting's mean. "
            "The table compares the trials of two sizes block by block.",
            alt=f"Rates and costs by setting. {self}",
            caption=str(self),
            table=self.table(),
            headroom_px=theme.PANEL_TITLES_PX,
        )


def cost_per_billion(trials: SizeTrials) -> SizeCosts:
    """
    Compute the cost of a billion messages with each setting: price per hour over messages per hour.

    Two settings tie if the interval of their cost ratio, simultaneous over all pairs, contains 1.
    """
    rates = compare_all(trials.trials, RATE, "messages/s", claim="With {name} the brokers receive {{}}")
    costs = compare_all(trials.trials, COST, "USD", claim="With {name} a billion messages cost {{}}")
    return SizeCosts(trials, rates, costs)


def _with_ends(name: str, one: Estimate) -> dict[str, float]:
    return {name: one.estimate, f"{name}_low": one.low, f"{name}_high": one.high}


def _formatted(one: Estimate, name: str) -> dict[str, str]:
    """Return two cells of a table, the estimate and its interval as text, by their column names."""
    text = one.formatted.removesuffix(" messages/s").removesuffix(" USD")
    return {name: text, f"{name}, interval": one.formatted_interval}


@dataclass(frozen=True, repr=False)
class Frontier(RowsResult):
    """
    Cost per message and p99 latency, a column of LATENCIES, of each setting with intervals, and a `verdict`.

    "dominated": some other setting (column `by`) has a significantly lower cost and a significantly lower p99.
    "on the frontier of the means": no other setting has both a lower mean cost and a lower mean p99. Otherwise "not
    shown to be dominated".
    """

    costs: Comparisons
    latencies: Comparisons

    TITLE = "Cost against p99"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(self.latencies.means.values())

    @property
    def sentence(self) -> str:
        groups = self.rows.groupby("verdict", sort=True).setting
        parts = [f"{verdict.capitalize()}: {', '.join(f'“{name}”' for name in part)}." for verdict, part in groups]
        listed = ", ".join(f"{one.formatted} with “{name}”" for name, one in self.latencies.means.items())
        return (
            f"The {LATENCIES[self.latencies.response]} is {listed}. {' '.join(parts)} "
            "A size is dominated if another has a significantly lower cost per message and a "
            f"significantly lower p99 ({percent(LEVEL)} intervals, simultaneous over all pairs)."
        )

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for row in self.rows.itertuples():
            cost, p99 = self.costs.means[row.setting], self.latencies.means[row.setting]
            cells = {"setting": row.setting} | _formatted(cost, "USD per billion") | _formatted(p99, "p99")
            rows.append(cells | {"verdict": f"{row.verdict} by {row.by}" if row.by else row.verdict})
        return pd.DataFrame(rows)

    def figure(self) -> go.Figure:
        """Draw cost against p99 with intervals, one point per setting."""
        figure, rows, p99 = go.Figure(), self.rows, self.latencies.response
        first = rows[rows.verdict == FIRST].sort_values(COST)
        line = {"mode": "lines", "name": "frontier of the means", "line": primitives.REFERENCE}
        figure.add_scatter(x=first[COST], y=first[p99], **line)
        style = {"mode": "markers+text"}
        sides = rows[COST].rank(method="first").mod(2).map({1.0: "top right", 0.0: "bottom right"})
        style["hovertemplate"] = "%{text}: %{x:,.4g} USD, %{y:,.4g} ms<extra></extra>"
        for verdict, (shade, symbol) in STYLES.items():
            part = rows[rows.verdict == verdict]
            if len(part):
                bars = {
                    f"error_{axis}": primitives.interval_bar(*(part[f"{name}{end}"] for end in ENDS), color=shade)
                    for axis, name in (("x", COST), ("y", p99))
                }
                more = {"name": verdict, "marker": {"size": 11, "color": shade, "symbol": symbol}} | bars
                figure.add_scatter(
                    x=part[COST],
                    y=part[p99],
                    text=part.setting.map(theme.plain),
                    textposition=sides[part.index],
                    **style,
                    **more,
                )
        ends = {name: rows[[f"{name}{end}" for end in ENDS]].to_numpy().ravel() for name in (COST, p99)}
        figure.update_xaxes(title="USD per billion messages (log axis)", **theme.log_axis(ends[COST], ""))
        figure.update_yaxes(title=f"{LATENCIES[p99]} (log axis)", **theme.log_axis(ends[p99], "ms"))
        return theme.finish(
            figure,
            name=f"cost-against-{p99.removesuffix('_ms').replace('_', '-')}",
            title=f"{int((rows.verdict == DOMINATED).sum())} of {len(rows)} settings are dominated in cost and p99",
            subtitle="Further left is cheaper, lower is faster. Bars: intervals of each setting. "
            "Dominated: another size is significantly cheaper and faster.",
            alt=f"Settings by cost and p99. {self}",
            caption=str(self),
            table=rows,
        )


def frontier(costs: SizeCosts, latency: str = "p99_ms") -> Frontier:
    """
    Compare settings by cost per billion messages and by a latency, a column of LATENCIES.

    Raises MissingDataError: fewer than two settings have this latency. (A tool that is killed prints none.)
    """
    if costs.trials[costs.trials[latency].notna()].setting.nunique() < 2:
        raise MissingDataError(f"fewer than two sizes have a {LATENCIES[latency]}: this run did not measure it.")
    latencies = compare_all(costs.trials, latency, "ms", claim=f"With {{name}} the {LATENCIES[latency]} is {{{{}}}}")
    both, rows = [name for name in costs.costs.settings if name in latencies.means], []
    for name in both:
        others = [other for other in both if other != name]
        by = [o for o in others if costs.costs.is_lower(o, name) and latencies.is_lower(o, name)]
        cost, p99 = costs.costs.means[name], latencies.means[name]
        means = [(costs.costs.means[o].estimate, latencies.means[o].estimate) for o in others]
        below = any(usd <= cost.estimate and ms <= p99.estimate for usd, ms in means)
        row = {"setting": name} | _with_ends(COST, cost) | _with_ends(latency, p99)
        rows.append(row | {"verdict": DOMINATED if by else NOT_SHOWN if below else FIRST, "by": ", ".join(by)})
    return Frontier(pd.DataFrame(rows), costs.costs, latencies)
