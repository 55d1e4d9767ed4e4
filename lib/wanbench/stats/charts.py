"""RTT and throughput on distance for all pairs and for each ordered pair of clouds: five charts for two clouds."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ..errors import ParameterError
from .distance import RttFit, ThroughputFit, fit_rtt, fit_throughput
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

    def __getitem__(self, name: str) -> Chart:
        try:
            return self.charts[name]
        except KeyError:
            why = f" ({self.left_out[name]})" if name in self.left_out else ""
            raise ParameterError(f"no chart {name!r}{why}; there are {', '.join(self.charts)}") from None

    def table(self) -> pd.DataFrame:
        """Per chart: correlations, RTT slope, half-distance and TCP window, each with its interval."""
        rows = []
        for name, chart in self.charts.items():
            parts = {
                "RTT r": chart.rtt.pearson,
                "RTT slope": chart.rtt.slope,
                "log throughput r": chart.throughput.pearson,
                "half-distance": chart.throughput.half_distance,
                "TCP window W": chart.window.window,
            }
            row = {"chart": name, "pairs": chart.rtt.slope.n_pairs, "regions": chart.rtt.slope.n_regions}
            for label, part in parts.items():
                row |= {
                    label: part.written,
                    f"{label}, interval": part.written_interval or "none",
                }
            rows.append(row)
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        return "\n".join(f"{name}: {chart}" for name, chart in self.charts.items())

    def _repr_html_(self) -> str:
        return self.table().to_html(index=False, border=0)


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
    return Charts(found, left_out)
