"""RTT and throughput on distance for all pairs and for each ordered pair of clouds: five charts for two clouds."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ..errors import ParameterError
from ..wording import percent
from .distance import RttFit, ThroughputFit, fit_rtt, fit_throughput
from .estimate import Estimate
from .tcp import WindowFit, fit_window

ALL = "all"
WINDOW_RESAMPLES = 500


@dataclass(frozen=True)
class Chart:
    """One chart: its pairs (table `pairs`), the two lines through them, and the window model."""

    name: str
    pairs: pd.DataFrame
    rtt: RttFit
    throughput: ThroughputFit
    window: WindowFit

    def figure(self):
        """Both panels: RTT, and throughput on a log axis, against distance."""
        from ..figures.charts import distance_chart

        return distance_chart(self)

    def __str__(self) -> str:
        return f"{self.rtt.pearson} {self.throughput.pearson}"


@dataclass(frozen=True)
class Charts:
    """`charts` maps "all" and each ordered pair of clouds ("aws->gcp") to its Chart; `left_out` says why not others."""

    charts: dict[str, Chart]
    left_out: dict[str, str]
    level: float = 0.95

    def __getitem__(self, name: str) -> Chart:
        try:
            return self.charts[name]
        except KeyError:
            why = f" ({self.left_out[name]})" if name in self.left_out else ""
            raise ParameterError(f"no chart {name!r}{why}; there are {', '.join(self.charts)}") from None

    def table(self) -> pd.DataFrame:
        """One row per quantity, one column per chart: the value and its interval, in words."""
        columns = {}
        for name, chart in self.charts.items():
            slope = chart.rtt.slope
            columns[name] = {
                "pairs, regions": f"{slope.n_pairs:,}, {slope.n_regions}",
                "RTT against distance, r": _cell(chart.rtt.pearson),
                "RTT slope": _cell(slope),
                "log throughput against distance, r": _cell(chart.throughput.pearson),
                "half-distance": _cell(chart.throughput.half_distance),
                "TCP window W": _cell(chart.window.window),
                "capacity C": _cell(chart.window.capacity),
            }
        return (
            pd.DataFrame(columns)
            .rename_axis(f"value ({percent(self.level)} interval by region)")
            .reset_index()
        )

    def __str__(self) -> str:
        return "\n".join(f"{name}: {chart}" for name, chart in self.charts.items())

    def _repr_html_(self) -> str:
        return self.table().to_html(index=False, border=0)


def _cell(part: Estimate) -> str:
    return f"{part.written} ({part.written_interval})" if part.written_interval else part.written


def charts(
    pairs: pd.DataFrame, *, level: float = 0.95, resamples: int = 4_000, seed: int = 0, clouds: tuple = ()
) -> Charts:
    """
    Fit both lines and the window model to all pairs, and to the pairs of each ordered pair of clouds.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`.
    clouds : sequence of str
        Only these ordered pairs of clouds ("aws->gcp"); by default all there are.
    """
    groups = {ALL: pairs}
    joined = pairs.from_cloud + "->" + pairs.to_cloud
    for name in clouds or sorted(joined.unique()):
        groups[name] = pairs[joined == name]
    found, left_out = {}, {}
    for name, part in groups.items():
        try:
            found[name] = Chart(
                name,
                part,
                fit_rtt(part, level=level, resamples=resamples, seed=seed),
                fit_throughput(part, level=level, resamples=resamples, seed=seed),
                fit_window(part, level=level, resamples=min(resamples, WINDOW_RESAMPLES), seed=seed),
            )
        except ParameterError as error:
            if name == ALL:
                raise
            left_out[name] = str(error)
    return Charts(found, left_out, level)
