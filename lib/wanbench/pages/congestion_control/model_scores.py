"""Score models of TCP throughput on cells that were left out of their fit."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.formatting import count
from wanbench.methods.result import Estimate, RowsResult, text_table
from wanbench.methods.result.means import half_width
from wanbench.methods.tcp import models

from .cells import NAMES, Cells

IP_BYTES = 1500  # Size of a full packet, of which `MSS_BYTES` are payload.
FACTORS = np.array(sorted(np.linspace(-4, 4, 1601), key=abs))
"""
Logarithms of the factors that a fit tries, in steps of 0.5 %; among equally good factors, the fit chooses the nearest
to 1.
"""
MODELS = {
    "window": lambda rtt_ms, loss, rate: models.window_limited_bps(models.buffer_bytes(rate, 100), rtt_ms),
    "Mathis": lambda rtt_ms, loss, rate: models.mathis_bps(loss, rtt_ms, models.RANDOM),
    "PFTK": lambda rtt_ms, loss, rate: models.pftk_bps(loss, rtt_ms),
    "CUBIC": lambda rtt_ms, loss, rate: models.cubic_bps(loss, rtt_ms),
    "BBR's pacing": lambda rtt_ms, loss, rate: rate * (1 - loss),
}
"""
Models by name. Each model returns a throughput in bit/s, which is then multiplied by a fitted factor and limited to the
capacity. "window": the same window at all RTTs, here 100 ms times the rate. "Mathis": Mathis et al. 1997, with the
constant of Ott, Kemperman & Mathis 1996. "PFTK": Padhye et al. 1998, eq. 32. "CUBIC": RFC 9438, section 5. "BBR's
pacing": a sender that is paced at the link's rate and does not slow down after a loss (Cardwell et al. 2016).
"""
METHOD = (
    "one factor per model and congestion control, which minimises the mean absolute error of log throughput on the "
    "other cells; mean over the left-out cells, interval from Student's t"
)
ASSUMPTION = "Errors of cells are independent, although their fits share cells"
BEST, TIED, WORSE = "best", "tied with the best", "worse"


@dataclass(frozen=True, repr=False)
class ModelScores(RowsResult):
    """
    Errors of each model when it predicts cells (a congestion control on a path) that its fit did not use.

    Columns of `rows`: `algorithm`, `model`, `error` (typical factor between predicted and measured throughput, 1 is
    perfect) with its interval `low` to `high`, `n` (cells), `factor` (fitted to all cells) and `verdict`.
    """

    TITLE = "Error on left-out cells, by congestion control and model"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The errors of the best model of each congestion control."""
        found = []
        for row in self.rows[self.rows.verdict == BEST].itertuples():
            claim = f"{row.model} predicts {NAMES[row.algorithm]} best, with a typical error of {{}}"
            about = {"unit": "fraction", "n": row.n, "basis": count(row.n, "cell"), "method": METHOD}
            ends, what = (row.error - 1, row.low - 1, row.high - 1), f"error of {row.model} for {NAMES[row.algorithm]}"
            found.append(Estimate(what, claim, *ends, **about, assumption=ASSUMPTION))
        return tuple(found)

    @property
    def sentence(self) -> str:
        parts = []
        for one, (_, part) in zip(self.estimates, self.rows.groupby("algorithm", sort=False), strict=True):
            tied = part.model[part.verdict == TIED]
            parts.append(one.sentence + (f" Tied with this model: {', '.join(tied)}." if len(tied) else ""))
        return " ".join(parts)

    def formatted_table(self) -> pd.DataFrame:
        return text_table(self.rows.assign(algorithm=self.rows.algorithm.map(NAMES)))


def score_models(cells: Cells) -> ModelScores:
    """
    Score each model for each congestion control.

    Only cells with independent losses and a queue of one bandwidth-delay product are used. Cells without loss are left
    out, because every loss model predicts the capacity there. The predicted throughput of a cell is the smaller of the
    link's capacity and the model's value times a factor, which is fitted to all other cells. Raises MissingDataError: a
    congestion control has fewer than three cells.
    """
    used = cells.rows.query("loss > 0 and burst == 1 and queue == 1")
    rows = []
    for algorithm, part in used.groupby("algorithm"):
        if len(part) < 3:
            raise MissingDataError("Models need three cells with independent losses and a queue of one BDP.")
        measured, capacity = np.log(part.throughput_bps), np.log(part.rate_bps * models.MSS_BYTES / IP_BYTES)
        errors, factors = {}, {}
        for name, model in MODELS.items():
            curve = np.log(model(*(part[column].to_numpy() for column in ("rtt_ms", "loss", "rate_bps"))))
            misses = np.abs(np.minimum(curve + FACTORS[:, None], capacity.to_numpy()) - measured.to_numpy())
            total = misses.sum(axis=1, keepdims=True)
            errors[name] = misses[(total - misses).argmin(axis=0), np.arange(len(part))]
            factors[name] = float(np.exp(FACTORS[total.argmin()]))
        best = min(errors, key=lambda name: errors[name].mean())
        for name, error in sorted(errors.items(), key=lambda item: item[1].mean()):
            mean, half, gap = error.mean(), half_width(error, 0.95), error - errors[best]
            verdict = BEST if name == best else WORSE if gap.mean() > half_width(gap, 0.95) else TIED
            ends = np.exp([mean, max(mean - half, 0.0), mean + half])
            rows.append((algorithm, name, *ends, len(error), factors[name], verdict))
    columns = ["algorithm", "model", "error", "low", "high", "n", "factor", "verdict"]
    return ModelScores(pd.DataFrame(rows, columns=columns))
