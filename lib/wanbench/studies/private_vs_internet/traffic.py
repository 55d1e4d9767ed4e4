"""What a link carried at the rate that it stands for: Kafka, background and both, over trials."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count
from ...stats.result import Estimate
from ...stats.tcp.mathis import MSS_BYTES
from ...stats.trials.limits import BITS, PACKET_BYTES
from ...stats.trials.rates import TrialRates, records_per_full_batch

METHOD = "mean of trials; interval from Student's t"
ASSUMPTION = (
    "Trials are independent, their means nearly normal; at the full rate as many batches pass, all full"
)
BITS_PER_MBIT = 1e6


def traffic(
    found: TrialRates, setting: str, *, full_rate_bps: float, level: float = 0.95
) -> dict[str, Estimate]:
    """
    Payload of Kafka and of the background, and both with headers, in Mbit/s at the rate that the link stands for.

    The background is scaled up with the rate. Kafka is scaled up batch for batch: as many batches a second, each as
    large as batch.size scaled up and full of records, uncompressed. Where small batches are less full than large ones
    (4,096 bytes hold 3 records of 1,000), bytes scaled up with the rate would be too few.

    Parameters
    ----------
    found : TrialRates
        Trials of one link rate or several; each is scaled by its own.
    setting : str
        Pattern of the trials to take.
    full_rate_bps : float
        The rate that the link stands for.

    Returns
    -------
    dict
        "background", "kafka-traffic" and "total", those that were measured.

    Raises
    ------
    ParameterError
        If no such trial has a link rate.
    """
    level = check_level(level)
    rates = found.of(setting).rates
    rates = rates[rates.rate_bps.notna()]
    if rates.empty:
        raise ParameterError(f"no trial of {setting} has a link with a rate")
    scale = full_rate_bps / rates.rate_bps
    up = scale / BITS_PER_MBIT
    sizes = zip(scale * rates.batch_bytes.astype("float64"), rates.record_bytes, strict=True)
    full_batch_bytes = [size * records_per_full_batch(batch, size) for batch, size in sizes]
    kafka = BITS * rates.batches_per_s * full_batch_bytes / BITS_PER_MBIT
    left_empty = kafka - rates.throughput_bps * up
    whole = rates.rx_utilisation * rates.rate_bps * up + left_empty * PACKET_BYTES / MSS_BYTES
    values = {
        "background": ("background", rates.measured_background_bps * up),
        "kafka-traffic": ("Kafka's records", kafka),
        "total": ("both, with headers", whole),
    }
    made = {name: _mean(what, values.dropna(), setting, level) for name, (what, values) in values.items()}
    return {name: contrast for name, contrast in made.items() if contrast is not None}


def _mean(what, values, setting, level) -> Estimate | None:
    if values.empty:
        return None
    n, mean = len(values), float(values.mean())
    half = stats.t.ppf((1 + level) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    return Estimate(
        quantity=f"{what} over {setting}",
        claim=f"Scaled up to the full rate, {what} over {setting} make {{}}",
        estimate=mean,
        low=mean - half,
        high=mean + half,
        unit="Mbit/s",
        n=n,
        basis=count(n, "trial"),
        method=METHOD,
        assumption=ASSUMPTION,
        level=level,
    )
