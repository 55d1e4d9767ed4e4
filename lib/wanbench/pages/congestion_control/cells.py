"""Estimate TCP throughput by congestion control and path, its slope over the RTT, and the ratio of BBR to CUBIC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from wanbench.checks import check_choice
from wanbench.errors import MissingDataError, ParameterError
from wanbench.figures import theme
from wanbench.formatting import count, percent
from wanbench.methods.result import Estimate, RowsResult
from wanbench.methods.result.means import geometric_mean, half_width, mean_of
from wanbench.methods.tcp.models import buffer_bytes
from wanbench.runs import Run

PATH = ["loss", "burst", "queue"]  # What a path has besides its RTT; `burst` is 1 for independent losses.
NAMES = {"cubic": "CUBIC", "bbr": "BBR", "reno": "Reno"}
SHADES = dict(zip(NAMES.values(), theme.SERIES_COLOURS, strict=False))
METHOD = "mean over blocks; interval from Student's t, for ratios on logarithms"
SLOPES = "mean over blocks of the least-squares slope of log throughput on log RTT; Student's t"
ASSUMPTION = "Blocks are independent, and transfers at the same time do not slow each other down"
PANELS, ROW_PX = 4, 220  # Panels side by side that leave room for their titles, and height of a further row.


def transfer_rows(run: Run, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    Return the finished transfers of a run, each with the settings of its path and its block.

    Adds to table transfers the columns `algorithm`, `block`, `rtt_ms` (nominal), `loss` (0 to 1), `burst` (mean number
    of packets lost in a row), `queue` (in bandwidth-delay products) and `rate_bps`. Raises MissingDataError: no
    transfer finished.
    """
    links = tables["links"].assign(
        rtt_ms=lambda row: 2 * row.delay_ms,
        queue=lambda row: (row.queue_bytes / buffer_bytes(row.rate_bps, row.rtt_ms)).round(2),
        burst=lambda row: row.mean_loss_burst.fillna(1.0),
    )
    kept, ends = tables["transfers"].dropna(subset="throughput_bps"), ["from_region", "to_region"]
    if kept.empty:
        raise MissingDataError("No transfer ended, so there is nothing to compare.")
    rows = kept.merge(links[[*ends, "rtt_ms", *PATH, "rate_bps"]], on=ends)
    blocks = {test["id"]: test["block"] for test in run.plan["tests"]}
    return rows.assign(algorithm=rows.congestion_control, block=rows.test_id.map(blocks))


def bbr_over_cubic(rows: pd.DataFrame, measure: str, where: str) -> Estimate:
    """
    Estimate the ratio of a column (`measure`) with BBR to that with CUBIC: geometric mean over the blocks with both.

    Column `algorithm` of `rows` (or `setting`, for trials of Kafka) says "bbr" or "cubic", and `block` the block.
    `where` ends the estimate's sentence, such as "at 1 % loss". Raises ParameterError: no block has both.
    """
    pairs = rows.pivot_table(index="block", columns="algorithm" if "algorithm" in rows else "setting", values=measure)
    pairs = pairs.reindex(columns=["bbr", "cubic"]).dropna()
    if pairs.empty:
        raise ParameterError(f"rows {where} have no block with both 'bbr' and 'cubic', which a ratio needs.")
    about = {"quantity": f"BBR over CUBIC {where}", "claim": f"BBR carries {{}} what CUBIC does {where}"}
    ratio = geometric_mean(pairs.bbr / pairs.cubic, 0.95, **about, method=METHOD, assumption=ASSUMPTION)
    return replace(ratio, basis=count(len(pairs), "block"))


def block_means(rows: pd.DataFrame, keys: Sequence[str], measure: str) -> pd.DataFrame:
    """
    Average the column `measure` over blocks, for each combination of values in the columns `keys`.

    Returns one row per combination: the keys, the mean, the ends `low` and `high` of its 95 % interval, and `n`, the
    number of blocks. A stalled transfer counts with its throughput of 0.
    """
    blocks = rows.groupby([*keys, "block"])[measure].mean().groupby(keys)
    mean, half = blocks.mean(), blocks.agg(half_width, level=0.95)
    return pd.DataFrame({measure: mean, "low": mean - half, "high": mean + half, "n": blocks.size()}).reset_index()


@dataclass(frozen=True, repr=False)
class Cells(RowsResult):
    """
    Throughput of each cell, which is one congestion control on one path.

    `rows` has one row per cell: `algorithm`, `rtt_ms`, the columns of `PATH`, `rate_bps`, `n` (blocks), and
    `throughput_bps` with the ends `low` and `high` of its interval. `transfers` has one row per transfer. `at` is the
    loss (0 to 1) and the RTT (ms) at which `ratio` compares the algorithms.
    """

    transfers: pd.DataFrame
    at: tuple[float, float]

    TITLE = "Throughput by congestion control and path"

    @property
    def ratio(self) -> Estimate:
        """BBR's throughput over CUBIC's for `at`, independent losses and a queue of one bandwidth-delay product."""
        part = self._at_loss.query("rtt_ms == @self.at[1]")
        return bbr_over_cubic(part, "throughput_bps", f"at {self._where} on {part.rate_bps.max() / 1e6:.3g} Mbit/s")

    @property
    def slopes(self) -> tuple[Estimate, ...]:
        """Each algorithm's slope of log throughput over log RTT, at the loss in `at`; -1: proportional to 1/RTT."""
        estimates, about = [], {"unit": "", "unit_name": "block", "method": SLOPES}
        about["assumption"] = f"{ASSUMPTION}; and a power of the RTT describes the fall"
        for name in NAMES:
            of = self._at_loss[self._at_loss.algorithm == name].replace({"throughput_bps": {0: np.nan}})
            means = np.log(of.pivot_table(index="block", columns="rtt_ms", values="throughput_bps").dropna())
            if means.shape[1] > 1 and len(means):
                claim = f"{NAMES[name]}'s throughput is proportional to the RTT to the power of {{}}"
                slopes = np.polyfit(np.log(means.columns), means.T, 1)[0]
                estimates.append(mean_of(slopes, 0.95, quantity=f"slope of {NAMES[name]}", claim=claim, **about))
        return tuple(estimates)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.ratio, *self.slopes)

    @property
    def sentence(self) -> str:
        falls = ", ".join(f"{one.quantity.removeprefix('slope of ')} {one.with_ends}" for one in self.slopes)
        return f"{self.ratio.sentence} There, throughput follows a power of the RTT: {falls} (95 % intervals)."

    @property
    def headline(self) -> str:
        where = self.ratio.quantity.removeprefix("BBR over CUBIC at ")
        return f"With losses, yes: at {where}, BBR carries {self.ratio.formatted} what CUBIC does."

    @property
    def _at_loss(self):
        """The transfers at the loss in `at`, with independent losses and a queue of one bandwidth-delay product."""
        rows = self.transfers
        return rows[(rows.loss == self.at[0]) & (rows.burst == 1) & (rows.queue == 1)]

    @property
    def _where(self):
        return f"{self.at[1]:g} ms and {percent(self.at[0])} loss"

    def formatted_table(self) -> pd.DataFrame:
        rates = (self.rows[["throughput_bps", "low", "high"]] / 1e6).clip(lower=0).to_numpy()
        cells = self.rows.assign(rate=["{:.3g} ({:.3g} to {:.3g})".format(*row) for row in rates])
        cells = cells.assign(Path=_panel_names(cells)).rename(columns={"rtt_ms": "RTT in ms"})
        wide = cells.pivot(index=["Path", "RTT in ms"], columns="algorithm", values="rate").reset_index()
        return wide.rename(columns={name: f"{NAMES[name]}, Mbit/s" for name in NAMES})

    def figure(self) -> go.Figure:
        """Draw throughput against RTT, both on log axes, with a panel per kind of path and a line per algorithm."""
        rows = self.rows.assign(panel=_panel_names(self.rows), rate=self.rows.throughput_bps / 1e6)
        rows = rows[(rows.groupby("panel").rtt_ms.transform("nunique") > 1) & (rows.rate > 0)]
        rows["up"], rows["down"] = rows.high / 1e6 - rows.rate, rows.rate - rows.low / 1e6
        rows["down"] = rows.down.clip(upper=0.9 * rows.rate)  # an interval to 0 has no end on a log axis
        by = {"facet_col": "panel", "facet_col_wrap": PANELS, "facet_row_spacing": 0.25, "markers": True}
        by |= {"color": rows.algorithm.map(NAMES), "color_discrete_map": SHADES}
        figure = px.line(rows, x="rtt_ms", y="rate", error_y="up", error_y_minus="down", **by)
        figure.for_each_annotation(lambda one: one.update(text=one.text.partition("=")[2]))
        figure.update_xaxes(title="RTT in ms", showticklabels=True, **theme.log_axis(rows.rtt_ms, ""))
        figure.update_yaxes(**theme.log_axis(rows.rate, ""))
        figure.update_yaxes(title="throughput in Mbit/s", col=1)
        figure.update_layout(legend_title="", height=theme.HEIGHT_PX + ROW_PX * ((rows.panel.nunique() - 1) // PANELS))
        subtitle = (
            "Log axes. Points: means over blocks. 95 % intervals are drawn from a tenth of the mean up. BDP: the "
            "queue in bandwidth-delay products."
        )
        title = f"At {self._where}, BBR carries {self.ratio.formatted} what CUBIC does"
        title = theme.headline(title, "Throughput against RTT by congestion control")
        alt = f"Throughput against RTT for each congestion control and kind of path. {self.sentence}"
        about = {"name": "throughput-against-rtt", "headroom_px": theme.PANEL_TITLES_PX, "table": self.rows}
        return theme.finish(figure, title=title, subtitle=subtitle, alt=alt, caption=str(self), **about)


def _panel_names(rows: pd.DataFrame) -> list[str]:
    return [
        (f"{percent(loss)} lost" if loss else f"no loss, {queue:g} BDP")
        + (f", {burst:g} in a row" if burst > 1 else "")
        for loss, burst, queue in zip(rows.loss, rows.burst, rows.queue, strict=True)
    ]


def by_path(transfers: pd.DataFrame, *, loss: float, rtt_ms: float) -> Cells:
    """
    Estimate throughput by congestion control and path, from the result of `transfer_rows`.

    The ratio of BBR to CUBIC is computed at `loss` (0 to 1) and `rtt_ms`, the slopes at `loss` over all RTTs.
    """
    check_choice("loss", loss, transfers.loss.unique())
    check_choice("rtt_ms", rtt_ms, transfers.rtt_ms.unique())
    rows = block_means(transfers, ["algorithm", *PATH, "rtt_ms", "rate_bps"], "throughput_bps")
    return Cells(rows.sort_values([*PATH, "rtt_ms"]).reset_index(drop=True), transfers, (loss, rtt_ms))
