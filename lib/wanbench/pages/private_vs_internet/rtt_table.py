"""
Round-trip times per setting as in ping's summary, min / mean / max / mdev, with intervals from repeated runs.

mdev, as in Linux ping, is the standard deviation over the echoes of one run (divisor n).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import nan, sqrt

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy import stats

from wanbench.checks import check_level, refusal
from wanbench.figures import primitives, theme
from wanbench.formatting import count, percent
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Estimate, Interval, Result
from wanbench.methods.result.means import mean_of
from wanbench.methods.trials.concurrent import round_trips

OFFSET = 0.13  # Offset of a setting from the middle of its statistic.
STATISTICS = {
    "min": ("min_rtt_ms", "minimum RTT of a ping run"),
    "mean": ("mean_rtt_ms", "mean RTT of a ping run"),
    "max": ("max_rtt_ms", "maximum RTT of a ping run"),
    "mdev": ("mdev_rtt_ms", "mdev of a ping run"),
}
# Table 1 of "Measuring the Impact of Latency in Multi-Cloud Transactional Systems" (PacketFabric): site-to-site VPN
# over the internet, and a private circuit; one long ping each.
PUBLISHED = {
    "internet": {"min": 70.8, "mean": 132.9, "max": 193.2, "mdev": 25.1},
    "private": {"min": 62.1, "mean": 62.5, "max": 68.1, "mdev": 0.7},
}
METHOD = "t over ping runs, with the run as the unit"
ASSUMPTION = "Runs are independent and equally long; pings, sent at even intervals, see the same RTTs as the traffic"
EXTREME = "min and max are extreme values: they are more extreme the more echoes a run has ({} here)"
NAIVE = "echoes as independent"
COLUMNS = [
    *("setting", "statistic", "measured_ms", "low_ms", "high_ms"),
    *("published_ms", "published_in_interval", "n_runs"),
]


@dataclass(frozen=True, repr=False)
class RttTable(Result):
    """
    RTTs of pings per setting.

    numbers: (setting, statistic) to Estimate, of "min", "mean", "max", "mdev": the mean over ping runs.
    runs: One row per ping run: `setting`, `n_echoes`, `n_lost_echoes`, and the four in ms.
    """

    numbers: dict[tuple[str, str], Estimate]
    runs: pd.DataFrame

    TITLE = "RTT (ms) as measured and as the source printed it"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(self.numbers.values())

    @property
    def settings(self) -> list[str]:
        """The settings, in order."""
        return list(dict.fromkeys(setting for setting, _ in self.numbers))

    @property
    def sentence(self) -> str:
        listed = []
        for setting in self.settings:
            four = " / ".join(self.numbers[setting, name].formatted.removesuffix(" ms") for name in STATISTICS)
            source = " / ".join(f"{value:g}" for value in PUBLISHED.get(setting, {}).values())
            printed = f"; the source printed {source}" if source else ""
            basis = self.numbers[setting, "mean"].basis
            listed.append(f"{setting}: min / mean / max / mdev of {four} ms ({basis}{printed}).")
        return " ".join(listed)

    def table(self) -> pd.DataFrame:
        rows = []
        for (setting, name), number in self.numbers.items():
            published = PUBLISHED.get(setting, {}).get(name, nan)
            inside = bool(number.low <= published <= number.high) if np.isfinite(published * number.low) else None
            measured = (number.estimate, number.low, number.high)
            rows.append((setting, name, *measured, published, inside, number.n))
        return pd.DataFrame(rows, columns=COLUMNS)

    def formatted_table(self) -> pd.DataFrame:
        level = percent(self.estimates[0].level)
        rows = {"RTT": list(STATISTICS)}
        for setting in self.settings:
            own = [self.numbers[setting, name] for name in STATISTICS]
            printed = PUBLISHED.get(setting, {})
            rows[f"{setting}: measured"] = [number.formatted.removesuffix(" ms") for number in own]
            rows[f"{setting}: {level} interval"] = [number.formatted_interval for number in own]
            rows[f"{setting}: source"] = [f"{printed.get(name, '')}" for name in STATISTICS]
        return pd.DataFrame(rows)

    def figure(self) -> go.Figure:
        figure = go.Figure()
        marks = theme.arm_marks(self.settings)
        for k, setting in enumerate(self.settings):
            shade, symbol = marks[setting]
            runs = self.runs[self.runs.setting == setting]
            side = OFFSET * (2 * k - len(self.settings) + 1)
            for at, (statistic, (column, _)) in enumerate(STATISTICS.items()):
                small = {"mode": "markers", "marker": {"size": 5, "color": shade, "opacity": 0.45}, "showlegend": False}
                hover = "one run: %{y:.2f} ms<extra></extra>"
                x = at + side + 0.06 + theme.spread(len(runs), 0.06)
                figure.add_scatter(x=x, y=runs[column], hovertemplate=hover, **small)
                printed = PUBLISHED.get(setting, {}).get(statistic)
                if printed:
                    line = {"mode": "lines", "line": {"color": shade, "width": 2, "dash": "dot"}}
                    line |= {"hovertemplate": "published: %{y} ms<extra></extra>", "showlegend": at == 0}
                    x, name = [at + side - 0.09, at + side + 0.09], f"{theme.plain(setting)}, as the source printed"
                    figure.add_scatter(x=x, y=[printed] * 2, name=name, **line)
            numbers = [self.numbers[setting, name] for name in STATISTICS]
            x = [at + side for at in range(len(STATISTICS))]
            large = {"marker": {"size": 11, "color": shade, "symbol": symbol}, "name": theme.plain(setting)}
            primitives.estimate_points(figure, x, numbers, vertical=True, **large)
        figure.update_xaxes(tickvals=list(range(len(STATISTICS))), ticktext=[f"RTT {name}" for name in STATISTICS])
        published = [value for name in self.settings for value in PUBLISHED.get(name, {}).values()]
        shown = self.runs[[column for column, _ in STATISTICS.values()]].to_numpy().ravel()
        figure.update_yaxes(title="ms (log axis)", **theme.log_axis([*shown, *published], ""))
        level = percent(self.estimates[0].level)
        return theme.finish(
            figure,
            name="rtt-table",
            title="Round-trip times of pings",
            subtitle=f"Large: mean over runs, bars: its {level} interval; small: one run; dotted: the source.",
            alt=f"Round-trip times per setting. {self}",
            caption=str(self),
            table=self.table(),
        )


def rtt_table(
    tables: Mapping[str, pd.DataFrame], settings: Sequence[str] = ("internet", "private"), *, level: float = 0.95
) -> RttTable:
    """
    Min, mean, max and mdev of RTT per setting, from the echoes of tests that were done.

    tables: Tables tests (with the column `setting`) and echoes.
    settings: Settings or patterns, such as "internet*"; the table shows them without asterisks.

    Raises ParameterError for a setting without echoes.
    """
    level = check_level(level)
    done = tables["tests"]
    done = done[done.outcome == "done"]
    runs = round_trips(tables["echoes"]).merge(done[[*KEY, "setting"]], on=KEY)
    silent = int(runs.mean_rtt_ms.isna().sum())
    runs = runs[runs.mean_rtt_ms.notna()]
    parts, numbers = [], {}
    for pattern in settings:
        name = pattern.strip("*").strip() or pattern
        own = runs[[fnmatchcase(str(setting), pattern) for setting in runs.setting]]
        if own.empty:
            measured = ", ".join(dict.fromkeys(map(str, runs.setting))) or "none"
            raise refusal("setting", pattern, f"settings of tests with answered echoes ({measured})")
        notes = [f"{count(silent, 'test')} without an answered echo left out"] if silent else []
        for statistic in STATISTICS:
            extreme = [EXTREME.format(_range(own.n_echoes))] if statistic in ("min", "max") else []
            numbers[name, statistic] = _number(own, statistic, name, level, (*extreme, *notes))
        parts.append(own.assign(setting=name))
    return RttTable(numbers, pd.concat(parts, ignore_index=True))


def _number(own, statistic: str, name: str, level: float, notes: tuple[str, ...]) -> Estimate:
    column, label = STATISTICS[statistic]
    values = own[column].to_numpy(dtype=float)
    if len(values) < 2:
        notes = (*notes, f"no interval for {name}: a single ping run")
    naive = Interval(NAIVE)
    if statistic == "mean":
        answered = own.n_echoes - own.n_lost_echoes
        variance = float((own.mdev_rtt_ms**2 / answered).mean()) / len(values)
        half, mean = stats.norm.ppf((1 + level) / 2) * sqrt(variance), float(values.mean())
        naive = Interval(NAIVE, mean - half, mean + half)
    names = {"quantity": f"{statistic} of RTT, {name}", "claim": f"Over {name} the {label} is {{}}", "unit": "ms"}
    about = {
        "basis": f"{count(len(values), 'run')} of {_range(own.n_echoes)} echoes",
        "naive": naive,
        "warnings": notes,
    }
    return mean_of(values, level, method=METHOD, assumption=ASSUMPTION, **names, **about)


def _range(counts: pd.Series) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
