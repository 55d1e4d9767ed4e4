"""Compare measured cells with those that a study of connection splitting published (source 006, Figure 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.figures.primitives import interval_points
from wanbench.formatting import count, number
from wanbench.methods.claims.ledger import Audit, read_claims
from wanbench.methods.claims.rules import as_printed
from wanbench.methods.result import Estimate, RowsResult
from wanbench.methods.result.means import share_of
from wanbench.methods.tcp.models import MSS_BYTES

from .cells import NAMES, block_mean
from .model_scores import IP_BYTES

SOURCE = "006-connection-splitting"
ETHERNET_SHARE = IP_BYTES / 1514
"""The source limits the rate of Ethernet frames, and links of the lab that of IP packets."""
START_RTTS = 3  # Handshakes of TCP and TLS 1.3, and the request: round trips before the first byte arrives.
RAMP_S = 2.0  # After this time, slow start is over on all paths of the source.
FAST = 0.5
"""Share of the link above which slow start, and not loss, explains a low mean. A slower sender writes too unevenly."""


def request_shares(transfers: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    Compute, for each transfer, the share of the link that the source's request of a given size would have used.

    The request takes `START_RTTS` round trips, the time of the transfer, and the time of the bytes that are still
    missing. These come at the transfer's mean rate; if that is more than `FAST` of the link, at the sender's rate after
    the first `RAMP_S` seconds, up to the link's capacity. `transfers` are rows of `transfer_rows` that omit no seconds.
    Returns them with the column `share`.
    """
    audit = read_claims(SOURCE)
    size, link_bps = audit.number("request"), 1e6 * audit.number("rate")
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
    Published and measured cells: `claim`, `algorithm`, `rtt_ms`, `loss`, `claimed`, `share`, `low`, `high`,
    `n` (blocks), and `inside`, whether the published number, as rounded, lies in the interval.
    """

    TITLE = "Published and measured shares of the link"

    def agreeing(self, algorithm: str | None = None) -> Estimate:
        """Return the share of the published cells, of one algorithm or of all, that lie inside the intervals."""
        rows = self.rows[self.rows.algorithm.isin([algorithm] if algorithm else NAMES)]
        about = (
            f"of {f'the cells of {NAMES[algorithm]}' if algorithm else 'the published cells'} lie inside our intervals"
        )
        hits, claim = int(rows.inside.sum()), f"{{}} {about}"
        return share_of(hits, len(rows), unit_name="cell", quantity=f"share {about}", claim=claim)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.agreeing(), *(self.agreeing(name) for name in self.rows.algorithm.unique()))

    @property
    def sentence(self) -> str:
        outside = self.rows[~self.rows.inside]
        off = (outside.share - outside.claimed).abs()
        rest = (
            f" The other {count(len(off), 'cell')} differ by {number(off.min())} to {number(off.max())} of the link."
            if len(off)
            else ""
        )
        return " ".join(one.sentence for one in self.estimates) + rest

    def figure(self) -> go.Figure:
        """Draw measured against published shares, with a colour per algorithm."""
        figure = go.Figure()
        for algorithm, part in self.rows.groupby("algorithm"):
            marker = {"color": theme.SERIES_COLOURS[list(NAMES).index(algorithm)], "size": 8}
            where = [f"{rtt / 2:g} ms, {100 * loss:g} % lost" for rtt, loss in zip(part.rtt_ms, part.loss, strict=True)]
            ends = (part.share, part.low.clip(lower=part.share / 10), part.high)
            about = {"text": where, "vertical": True, "name": NAMES[algorithm]}
            interval_points(figure, part.claimed, *ends, marker=marker, **about)
        figure.add_scatter(
            x=[0.03, 1], y=[0.03, 1], mode="lines", line={"color": theme.LIGHT, "dash": "dash"}, name="equal"
        )
        figure.update_xaxes(title="published share of the link", **theme.log_axis(self.rows.claimed, ""))
        figure.update_yaxes(title="measured share of the link", **theme.log_axis(self.rows.share, ""))
        title = theme.headline(self.estimates[0].sentence, "Published and measured cells")
        subtitle = "Log axes. Points are means over blocks. 95 % intervals are drawn from a tenth of the mean up."
        alt = f"Measured against published shares of a link. {self.sentence}"
        about = {"name": "published-cells", "caption": str(self), "table": self.rows}
        return theme.finish(figure, title=title, subtitle=subtitle, alt=alt, **about)


def agreement(shares: pd.DataFrame) -> Agreement:
    """Compare the cells of `request_shares` with the published ones of the same algorithm, delay and loss."""
    claims, rows = read_claims(SOURCE).claims, []
    keys = ["algorithm", "rtt_ms", "loss"]
    for key, part in shares.groupby(keys):
        algorithm, rtt_ms, loss = key
        claim = claims.get(f"{algorithm}-{rtt_ms / 2:g}-{100 * loss:g}")
        if claim is not None:
            mean = block_mean(part, "share")
            inside = mean.low - claim.half_step <= claim.number <= mean.high + claim.half_step
            ends = {"share": mean.estimate, "low": mean.low, "high": mean.high, "n": mean.n, "inside": inside}
            rows.append(dict(zip(keys, key, strict=True)) | {"claim": claim.claim, "claimed": claim.number} | ends)
    return Agreement(pd.DataFrame(rows))


def connection_splitting(shares: pd.DataFrame | None = None) -> Audit:
    """
    Test the published cells on a re-run.

    A cell is "reproduced" if its interval lies within a tenth of the published number, "not reproduced" if it lies
    outside, and else "undecided", also if its interval contains the number.

    Examples
    --------
    >>> connection_splitting().verdicts("rerun")
    {}
    """
    audit = read_claims(SOURCE)
    for row in agreement(shares).rows.itertuples() if shares is not None else ():
        of = shares[(shares.algorithm == row.algorithm) & (shares.rtt_ms == row.rtt_ms) & (shares.loss == row.loss)]
        estimate = block_mean(of, "share", quantity="share of the link", claim="A request uses {} of the link")
        bound = as_printed(audit.claims[row.claim])
        audit.rerun(row.claim, bound.verdict(estimate), estimate.sentence, estimate)
    return audit
