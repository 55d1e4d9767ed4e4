"""Compare measured shares of a link's rate with those of source 006, a study of connection splitting (its Figure 4)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.formatting import count, number
from wanbench.methods.claims.ledger import Audit, read_claims
from wanbench.methods.claims.rules import as_printed
from wanbench.methods.result import Estimate, Fields, RowsResult
from wanbench.methods.result.means import share_of
from wanbench.methods.tcp.models import MSS_BYTES

from .cells import ASSUMPTION, METHOD, NAMES, SHADES, block_means
from .model_scores import IP_BYTES

SOURCE = "006-connection-splitting"
ETHERNET_SHARE = IP_BYTES / 1514
"""The source limits the rate of Ethernet frames; the lab's links limit the rate of IP packets."""
START_RTTS = 3  # Handshakes of TCP and TLS 1.3, and the request: round trips before the first byte arrives.
RAMP_S = 2.0  # After this time, slow start is over on all paths of the source.
FAST = 0.5
"""
If a transfer's mean is above this share of the link's capacity, slow start and not loss explains the missing part.
Slower senders write too unevenly to estimate their rate from the last seconds.
"""


def request_shares(transfers: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    Compute the share of the link's rate that the source's request would have used, from each measured transfer.

    The request takes `START_RTTS` round trips, and then the time in which the transfer sent as many bytes as the source
    requests. If the transfer sent fewer, the rest follows at the transfer's mean throughput. If this mean is above the
    share `FAST` of the link's rate, the rest follows at the throughput after `RAMP_S` seconds, at most the capacity.

    `transfers` are rows of `transfer_rows`, measured without omitted seconds (iperf3 -O). Returns these rows with the
    column `share` (0 to 1).
    """
    size, link_bps = read_claims(SOURCE).number("request"), 1e6 * read_claims(SOURCE).number("rate")
    later = tables["intervals"][lambda row: row.start_s >= RAMP_S - 0.05]
    sums = later.assign(seconds=later.end_s - later.start_s).groupby("test_id")[["bytes", "seconds"]].sum()
    steady = transfers.test_id.map(8 * sums.bytes.astype(float) / sums.seconds)
    steady = np.minimum(steady, transfers.rate_bps * MSS_BYTES / IP_BYTES)
    rate = steady.where(transfers.throughput_bps > FAST * link_bps, transfers.throughput_bps)
    sent = transfers.bytes.astype(float)
    left_s = 8 * (size - sent).clip(lower=0) / rate
    seconds = transfers.duration_s * np.minimum(1, size / sent) + left_s + START_RTTS * transfers.rtt_ms / 1000
    return transfers.assign(share=8 * size / seconds / link_bps)


@dataclass(frozen=True, repr=False)
class Agreement(RowsResult):
    """
    Published and measured shares of the link's rate, one row per published cell that was measured.

    Columns of `rows`: `claim`, `algorithm`, `rtt_ms`, `loss` (0 to 1), `claimed` and `share` (published and measured, 0
    to 1), `low` and `high` (the interval of `share`), `n` (blocks), and `inside`: whether some number that rounds to
    the published one lies in the interval.
    """

    TITLE = "Published and measured shares of the link"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The share of cells whose published number lies inside the measured interval, for all algorithms and each."""
        parts = {f"the cells of {NAMES[name]}": part for name, part in self.rows.groupby("algorithm", sort=False)}
        found = []
        for what, part in ({"the published cells": self.rows} | parts).items():
            words = f"of {what} lie inside our intervals"
            about: Fields = {"unit_name": "cell", "quantity": f"share {words}", "claim": f"{{}} {words}"}
            found.append(share_of(int(part.inside.sum()), len(part), **about))
        return tuple(found)

    @property
    def sentence(self) -> str:
        off = (self.rows.share - self.rows.claimed).abs()[~self.rows.inside]
        span = f"{number(off.min())} to {number(off.max())} of the link's rate"
        rest = (
            [f"In the other {count(len(off), 'cell')}, the published and the measured share differ by {span}."]
            if len(off)
            else []
        )
        return " ".join([*(one.sentence for one in self.estimates), *rest])

    def figure(self) -> go.Figure:
        """Draw measured against published shares, with a colour per algorithm."""
        rows = self.rows.assign(up=self.rows.high - self.rows.share, name=self.rows.algorithm.map(NAMES))
        rows["down"] = (rows.share - rows.low).clip(upper=0.9 * rows.share)  # an interval to 0 has no end on a log axis
        ends = {"error_y": "up", "error_y_minus": "down", "hover_data": ["rtt_ms", "loss"]}
        figure = px.scatter(rows, x="claimed", y="share", color="name", color_discrete_map=SHADES, **ends)
        dashes = {"mode": "lines", "line": {"color": theme.LIGHT, "dash": "dash"}, "name": "equal"}
        figure.add_scatter(x=[0.03, 1], y=[0.03, 1], **dashes).update_traces(marker_size=8).update_layout(
            legend_title=""
        )
        figure.update_xaxes(title="published share of the link", **theme.log_axis(rows.claimed, ""))
        figure.update_yaxes(title="measured share of the link", **theme.log_axis(rows.share, ""))
        title = theme.headline(self.estimates[0].sentence, "Published and measured cells")
        subtitle = "Log axes. Points are means over blocks. 95 % intervals are drawn from a tenth of the mean up."
        alt = f"Measured against published shares of a link. {self.sentence}"
        about = {"name": "published-cells", "caption": str(self), "table": self.rows}
        return theme.finish(figure, title=title, subtitle=subtitle, alt=alt, **about)


def agreement(shares: pd.DataFrame) -> Agreement:
    """Compare the mean over blocks of `request_shares` with the published share at the same algorithm, RTT and loss."""
    rows, claims = block_means(shares, ["algorithm", "rtt_ms", "loss"], "share"), read_claims(SOURCE).claims
    names = rows.algorithm + (rows.rtt_ms / 2).map("-{:g}".format) + (100 * rows.loss).map("-{:g}".format)
    rows = rows.assign(claim=names)[names.isin(list(claims))]
    claimed = rows.claim.map(lambda name: claims[name].number)
    step = rows.claim.map(lambda name: claims[name].half_step)
    inside = (rows.low - step <= claimed) & (claimed <= rows.high + step)
    return Agreement(rows.assign(claimed=claimed, inside=inside).reset_index(drop=True))


def connection_splitting(shares: pd.DataFrame | None = None) -> Audit:
    """
    Judge each published share by the measured one, from the result of `request_shares`.

    The verdict is "reproduced" if the whole measured interval is within 10 % of the published number (or within its
    rounding, if that is wider), "not reproduced" if no part of the interval is, and otherwise "undecided". None gives
    no verdicts.

    Examples
    --------
    >>> connection_splitting().verdicts("rerun")
    {}
    """
    audit, words = read_claims(SOURCE), ("share of the link", "A request uses {} of the link")
    for row in agreement(shares).rows.itertuples() if shares is not None else ():
        about = {"n": row.n, "basis": count(row.n, "block"), "method": METHOD, "assumption": ASSUMPTION}
        estimate = Estimate(*words, row.share, row.low, row.high, unit="", **about)
        audit.rerun(row.claim, as_printed(audit.claims[row.claim]).verdict(estimate), estimate.sentence, estimate)
    return audit
