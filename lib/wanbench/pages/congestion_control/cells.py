"""Summarise transfers by congestion control and path: throughput, its fall with the RTT, and ratios within blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.checks import check_choice
from wanbench.errors import MissingDataError, ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, percent
from wanbench.methods.result import Estimate, RowsResult
from wanbench.methods.result.means import geometric_mean, mean_of
from wanbench.runs import Run

PATH = ["loss", "burst", "queue"]  # What a path has besides its RTT; `burst` is 1 for independent losses.
NAMES = {"cubic": "CUBIC", "bbr": "BBR", "reno": "Reno"}
METHOD = "mean over blocks; interval from Student's t, for ratios on logarithms"
SLOPES = "mean over blocks of the least-squares slope of log throughput on log RTT; Student's t"
ASSUMPTION = "Blocks are independent, and transfers at the same time do not slow each other down"
FEWEST_RTTS = 2  # A slope, and a line of the figure, needs two RTTs.
PANELS, ROW_PX = 4, 220  # Panels side by side that leave room for their titles, and height of a further row.


def transfer_rows(run: Run, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    Join each transfer of a run with its path and its block.

    Returns the columns of table transfers, `algorithm`, `block`, `rtt_ms` (nominal), `loss` (0 to 1), `burst` (mean
    number of packets lost in a row), `queue` (in bandwidth-delay products), `rate_bps`. MissingDataError if none ended.
    """
    blocks = {test["id"]: test["block"] for test in run.plan["tests"]}
    links = tables["links"].assign(rtt_ms=lambda row: 2 * row.delay_ms)
    product = links.rate_bps / 8 * links.rtt_ms / 1000
    links = links.assign(queue=(links.queue_bytes / product).round(2), burst=links.mean_loss_burst.fillna(1.0))
    kept = tables["transfers"].dropna(subset="throughput_bps")
    if kept.empty:
        raise MissingDataError("No transfer ended, so there is nothing to compare.")
    rows = kept.merge(links[["from_region", "to_region", "rtt_ms", *PATH, "rate_bps"]], on=["from_region", "to_region"])
    return rows.assign(algorithm=rows.congestion_control, block=rows.test_id.map(blocks))


def bbr_over_cubic(rows: pd.DataFrame, measure: str, where: str) -> Estimate:
    """
    Estimate the ratio of a measure with BBR to that with CUBIC, from the blocks that have both.

    `rows` has the columns `block`, `measure`, and `algorithm`, or `setting` for Kafka's trials. `where` names the
    rows in sentences. ParameterError if no block has both.
    """
    named = rows.assign(algorithm=rows.algorithm if "algorithm" in rows else rows.setting)
    pairs = named.pivot_table(index="block", columns="algorithm", values=measure)
    pairs = pairs.reindex(columns=["bbr", "cubic"]).dropna()
    if pairs.empty:
        raise ParameterError(f"rows {where} have no block with both 'bbr' and 'cubic', which a ratio needs.")
    about = {"quantity": f"BBR over CUBIC {where}", "claim": f"BBR carries {{}} what CUBIC does {where}"}
    ratio = geometric_mean(pairs.bbr / pairs.cubic, 0.95, **about, method=METHOD, assumption=ASSUMPTION)
    return replace(ratio, basis=count(len(pairs), "block"))


@dataclass(frozen=True, repr=False)
class Cells(RowsResult):
    """
    Throughput by congestion control and path.

    `rows` has one row per cell: `algorithm`, `rtt_ms`, the columns of `PATH`, `rate_bps`, `n` (blocks), and
    `throughput_bps` with the ends `low` and `high` of its interval. `transfers` has one row per transfer. `at` is the
    loss and the RTT in ms for which `ratio` answers.
    """

    transfers: pd.DataFrame
    at: tuple[float, float]

    TITLE = "Throughput by congestion control and path"

    @property
    def ratio(self) -> Estimate:
        """BBR's throughput over CUBIC's, with independent losses and a queue of one bandwidth-delay product."""
        loss, rtt_ms = self.at
        part = _plain(self.transfers, loss).query("rtt_ms == @rtt_ms")
        rate = f"{part.rate_bps.iloc[0] / 1e6:.3g} Mbit/s" if len(part) else "no link"
        return bbr_over_cubic(part, "throughput_bps", f"at {rtt_ms:g} ms and {percent(loss)} loss on {rate}")

    @property
    def slopes(self) -> tuple[Estimate, ...]:
        """Slopes of log throughput on log RTT, per algorithm, at the loss of `at`; -1 halves it as the RTT doubles."""
        part, estimates = _plain(self.transfers, self.at[0]), []
        for algorithm in NAMES:
            of = part[part.algorithm == algorithm]
            means = of.pivot_table(index="block", columns="rtt_ms", values="throughput_bps").dropna()
            means = means[(means > 0).all(axis=1)]  # a transfer that stalled has no logarithm
            enough = means.shape[1] >= FEWEST_RTTS
            slopes = (
                np.polyfit(np.log(means.columns), np.log(means.to_numpy().T), 1)[0] if len(means) and enough else []
            )
            if len(slopes):
                claim = f"{NAMES[algorithm]}'s throughput goes with the RTT to the power of {{}}"
                about = {"quantity": f"slope of {NAMES[algorithm]}", "claim": claim, "unit": "", "method": SLOPES}
                assumption = f"{ASSUMPTION}; and a power of the RTT describes the fall"
                estimates.append(mean_of(slopes, 0.95, unit_name="block", **about, assumption=assumption))
        return tuple(estimates)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.ratio, *self.slopes)

    @property
    def sentence(self) -> str:
        falls = ", ".join(
            f"{one.quantity.removeprefix('slope of ')} {one.formatted} ({one.formatted_interval or 'no interval'})"
            for one in self.slopes
        )
        return f"{self.ratio.sentence} There, throughput goes with the RTT to the power of: {falls}."

    @property
    def headline(self) -> str:
        where = self.ratio.quantity.removeprefix("BBR over CUBIC at ")
        return f"With losses, yes: at {where}, BBR carries {self.ratio.formatted} what CUBIC does."

    def formatted_table(self) -> pd.DataFrame:
        rows = self.rows
        rates = [
            f"{mean / 1e6:.3g} ({max(low, 0) / 1e6:.3g} to {high / 1e6:.3g})"
            for mean, low, high in zip(rows.throughput_bps, rows.low, rows.high, strict=True)
        ]
        cells = rows.assign(rate=rates, path=_panel_names(rows), n=rows.n.astype(str))
        return cells.pivot(index=["path", "rtt_ms"], columns="algorithm", values="rate").reset_index().rename(
            columns={"path": "Path", "rtt_ms": "RTT in ms"} | {name: f"{NAMES[name]}, Mbit/s" for name in NAMES}
        )  # fmt: skip

    def figure(self) -> go.Figure:
        """Draw throughput against RTT, both on log axes, with a panel per kind of path and a line per algorithm."""
        rows = self.rows.assign(panel=_panel_names(self.rows))
        rows = rows[rows.groupby("panel").rtt_ms.transform("nunique") >= FEWEST_RTTS]
        panels = list(dict.fromkeys(rows.panel))
        n_rows = ceil(len(panels) / PANELS)
        titles = {"subplot_titles": panels, "vertical_spacing": 0.25, "horizontal_spacing": 0.03}
        figure = make_subplots(n_rows, min(len(panels), PANELS), shared_yaxes="all", **titles)
        shades = dict(zip(NAMES, theme.SERIES_COLOURS, strict=False))
        for (panel, algorithm), part in rows.groupby(["panel", "algorithm"], sort=False):
            part = part[part.throughput_bps > 0]
            low_end = part.low.clip(lower=part.throughput_bps / 10)  # an interval to 0 has no end on a log axis
            rate, low, high = part.throughput_bps / 1e6, low_end / 1e6, part.high / 1e6
            bar = primitives.interval_bar(rate, low, high, color=shades[algorithm])
            style = {
                "mode": "lines+markers",
                "marker": {"color": shades[algorithm], "size": 8},
                "legendgroup": algorithm,
            }
            style |= {"name": NAMES[algorithm], "showlegend": panel == panels[0]}
            row, column = divmod(panels.index(panel), PANELS)
            figure.add_scatter(x=part.rtt_ms, y=rate, error_y=bar, row=row + 1, col=column + 1, **style)
        figure.update_xaxes(title="RTT in ms", **theme.log_axis(rows.rtt_ms, ""))
        figure.update_yaxes(**theme.log_axis(rows.throughput_bps[rows.throughput_bps > 0] / 1e6, ""))
        figure.update_yaxes(title="throughput in Mbit/s", col=1)
        figure.update_layout(height=theme.HEIGHT_PX + ROW_PX * (n_rows - 1))
        subtitle = (
            "Log axes. Means over blocks, 95 % intervals above mean / 10. BDP: queue in bandwidth-delay products."
        )
        title = theme.headline(self.headline, "Throughput against RTT by congestion control")
        alt = f"Throughput against RTT for each congestion control and kind of path. {self.sentence}"
        about = {"name": "throughput-against-rtt", "headroom_px": theme.PANEL_TITLES_PX, "table": self.rows}
        return theme.finish(figure, title=title, subtitle=subtitle, alt=alt, caption=str(self), **about)


def block_mean(rows: pd.DataFrame, measure: str, **about) -> Estimate:
    """Estimate the mean of a measure over blocks; stalled transfers count as 0. `about` are fields of `Estimate`."""
    words = {"quantity": measure, "claim": "The mean is {}", "unit": "", "method": METHOD, "assumption": ASSUMPTION}
    return mean_of(rows.groupby("block")[measure].mean(), 0.95, unit_name="block", **words | about)


def _plain(rows: pd.DataFrame, loss: float) -> pd.DataFrame:
    """Return the rows with independent losses of this share and a queue of one bandwidth-delay product."""
    check_choice("loss", loss, rows.loss.unique())
    return rows[(rows.loss == loss) & (rows.burst == 1) & (rows.queue == 1)]


def _panel_names(rows: pd.DataFrame) -> list[str]:
    return [
        (f"{percent(loss)} lost" if loss else f"no loss, {queue:g} BDP")
        + (f", {burst:g} in a row" if burst > 1 else "")
        for loss, burst, queue in zip(rows.loss, rows.burst, rows.queue, strict=True)
    ]


def by_path(transfers: pd.DataFrame, *, loss: float, rtt_ms: float) -> Cells:
    """
    Summarise transfers, as `transfer_rows` returns them, by congestion control and path.

    `loss` and `rtt_ms` select the path for which the ratio of BBR to CUBIC is stated, and `loss` that of the slopes.
    """
    check_choice("rtt_ms", rtt_ms, transfers.rtt_ms.unique())
    rows = []
    keys = ["algorithm", *PATH, "rtt_ms"]
    for key, part in transfers.groupby(keys):
        mean = block_mean(part, "throughput_bps")
        ends = {"throughput_bps": mean.estimate, "low": mean.low, "high": mean.high, "n": mean.n}
        rows.append(dict(zip(keys, key, strict=True)) | ends | {"rate_bps": part.rate_bps.iloc[0]})
    frame = pd.DataFrame(rows).sort_values([*PATH, "rtt_ms"]).reset_index(drop=True)
    return Cells(frame, transfers, (loss, rtt_ms))
