"""
Coverage of the interval of a loss that was estimated from TCP throughput, on senders simulated in round trips.

Each packet is lost on its own. The simulated senders keep the rules that the model is made of, so this judges the part
of the interval that is chance; the model's own error was measured on an emulated link (`stats.tcp.loss`).
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from ..stats.tcp.cubic import DECREASE, SCALE
from ..stats.tcp.loss import RECOVERY, estimate_loss
from ..stats.tcp.mathis import MSS_BYTES
from .study import MAIN, Outcome

BY_RFC = "cubic after RFC 9438"
"""Whose Reno-friendly region grows by a segment per round trip past cwnd_prior, as Linux's does not."""
TITLE = "The loss of a path from TCP throughput"
SETTINGS = [
    {"congestion_control": name, "loss": loss, "n_transfers": n_transfers}
    for name in ("reno", "cubic")
    for loss in (0.002, 0.01)
    for n_transfers in (1, 5)
]
RTT_MS, DURATION_S, START_UP_ROUNDS = 40.0, 15.0, 400


class Senders:
    """
    Reno or CUBIC (with fast convergence and the Reno-friendly region) in round trips.

    Parameters
    ----------
    congestion_control : str
        "reno", "cubic" (as in Linux) or "cubic after RFC 9438".
    loss : float
        Probability that a packet is lost.
    rtt_s : float
    senders : int
        How many, independent of each other.
    seed : int
    """

    def __init__(self, congestion_control: str, loss: float, rtt_s: float, senders: int, seed: int):
        self.name, self.loss, self.rtt_s = congestion_control, loss, rtt_s
        self.rng = np.random.default_rng(seed)
        self.window = np.full(senders, 1.3 / math.sqrt(loss))
        self.top, self.since_s, self.friendly = self.window.copy(), np.zeros(senders), self.window.copy()
        self.start, self.prior = DECREASE * self.top, self.top.copy()

    def round(self) -> np.ndarray:
        """One round trip; the packets that each sender sent."""
        sent = self.window
        lost = self.rng.random(len(sent)) < -np.expm1(sent * np.log1p(-self.loss))
        if self.name == "reno":
            self.window = np.where(lost, sent / 2, sent + 1)
            return sent
        self.since_s = self.since_s + self.rtt_s
        slow = 3 * (1 - DECREASE) / (1 + DECREASE)
        past = (self.name == BY_RFC) & (self.friendly >= self.prior)
        self.friendly = self.friendly + np.where(past, 1.0, slow)
        bend_s = np.cbrt((self.top - self.start) / SCALE)
        grown = np.maximum(SCALE * (self.since_s - bend_s) ** 3 + self.top, self.friendly)
        top = np.where(sent < self.top, sent * (1 + DECREASE) / 2, sent)
        self.window = np.where(lost, DECREASE * sent, np.maximum(grown, sent))
        self.top, self.since_s = np.where(lost, top, self.top), np.where(lost, 0.0, self.since_s)
        self.friendly = np.where(lost, self.window, self.friendly)
        self.start, self.prior = np.where(lost, self.window, self.start), np.where(lost, sent, self.prior)
        return sent


def transfers(
    congestion_control: str,
    loss: float,
    n: int,
    *,
    seed: int,
    rtt_ms: float = RTT_MS,
    duration_s: float = DURATION_S,
) -> pd.DataFrame:
    """Table `transfers`, as far as a loss needs it: `n` senders after their start-up."""
    senders = Senders(congestion_control, loss, rtt_ms / 1000, n, seed)
    for _ in range(START_UP_ROUNDS):
        senders.round()
    sent = sum(senders.round() for _ in range(round(duration_s * 1000 / rtt_ms)))
    kind = congestion_control.partition(" ")[0]
    sent = sent / (1 + RECOVERY[kind] * math.sqrt(loss))
    again = np.random.default_rng(seed).binomial(sent.astype(int), loss)
    columns = {
        "run_id": "simulated",
        "from_region": "aws:a",
        "to_region": "gcp:b",
        "direction": "forward",
        "protocol": "TCP",
        "streams": 1,
        "duration_s": duration_s,
        "throughput_bps": sent * MSS_BYTES * 8 / duration_s,
        "mean_rtt_ms": rtt_ms,
        "mss_bytes": MSS_BYTES,
        "congestion_control": kind,
        "retransmits": again,
        "error": None,
    }
    return pd.DataFrame(columns)


def trial(seed: int, congestion_control: str, loss: float, n_transfers: int) -> list[Outcome]:
    """Some transfers over one path, and the loss that was set."""
    found = estimate_loss(transfers(congestion_control, loss, n_transfers, seed=seed))
    return [Outcome("loss", MAIN, found.low, found.high, loss)]
