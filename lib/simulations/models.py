"""
Simulation: the packet loss of a path, estimated from throughputs of simulated TCP senders.

Packets are lost independently. The simulated senders follow the rules of the model, so that the simulation tests only
the random part of the interval; the error of the model was measured on an emulated link (`methods.tcp.loss`).
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from wanbench.methods.tcp.models import DECREASE, MSS_BYTES, SCALE
from wanbench.pages.intercloud_throughput.loss import RECOVERY, estimate_loss

from .simulation import MAIN, Outcome

BY_RFC = "cubic after RFC 9438"
"""Above cwnd_prior, its Reno-friendly window grows by a segment per round trip, unlike that of Linux."""
SETTINGS = [
    {"congestion_control": name, "loss": loss, "n_transfers": n_transfers}
    for name in ("reno", "cubic")
    for loss in (0.002, 0.01)
    for n_transfers in (1, 5)
]
RTT_MS = 40.0
DURATION_S = 15.0
START_UP_ROUNDS = 400
"""Round trips before packets are counted, so that windows no longer depend on their initial values."""


class Senders:
    """
    Senders with Reno or CUBIC (with fast convergence and the Reno-friendly region), simulated by round trips.

    Parameters
    ----------
    congestion_control : str
        "reno", "cubic" (as in Linux) or "cubic after RFC 9438".
    loss : float
        Probability that a packet is lost.
    rtt_s : float
    senders : int
        Number of independent senders.
    seed : int
    """

    def __init__(self, congestion_control: str, loss: float, rtt_s: float, senders: int, seed: int):
        self.name, self.loss, self.rtt_s = congestion_control, loss, rtt_s
        self.rng = np.random.default_rng(seed)
        self.window = np.full(senders, 1.3 / math.sqrt(loss))
        self.top, self.since_s, self.friendly = self.window.copy(), np.zeros(senders), self.window.copy()
        self.start, self.prior = DECREASE * self.top, self.top.copy()

    def round(self) -> np.ndarray:
        """Simulate one round trip, and return the number of packets that each sender sent."""
        sent = self.window
        lost = self.rng.random(len(sent)) < -np.expm1(sent * np.log1p(-self.loss))
        if self.name == "reno":
            self.window = np.where(lost, sent / 2, sent + 1)
            return sent
        self.since_s = self.since_s + self.rtt_s
        slow = 3 * (1 - DECREASE) / (1 + DECREASE)
        past = (self.name == BY_RFC) & (self.friendly >= self.prior)
        self.friendly = self.friendly + np.where(past, 1.0, slow)
        # K of RFC 9438, 4.2: the time to grow back to the window before the last loss
        bend_s = np.cbrt((self.top - self.start) / SCALE)
        grown = np.maximum(SCALE * (self.since_s - bend_s) ** 3 + self.top, self.friendly)
        top = np.where(sent < self.top, sent * (1 + DECREASE) / 2, sent)
        self.window = np.where(lost, DECREASE * sent, np.maximum(grown, sent))
        self.top, self.since_s = np.where(lost, top, self.top), np.where(lost, 0.0, self.since_s)
        self.friendly = np.where(lost, self.window, self.friendly)
        self.start, self.prior = np.where(lost, self.window, self.start), np.where(lost, sent, self.prior)
        return sent


def transfers(
    congestion_control: str, loss: float, n: int, *, seed: int, rtt_ms: float = RTT_MS, duration_s: float = DURATION_S
) -> pd.DataFrame:
    """Simulate `n` senders after start-up, and return the columns of table `transfers` that a loss estimate needs."""
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
    """Simulate transfers over one path; the truth is the configured loss."""
    result = estimate_loss(transfers(congestion_control, loss, n_transfers, seed=seed))
    return [Outcome("loss", MAIN, result.low, result.high, loss)]
