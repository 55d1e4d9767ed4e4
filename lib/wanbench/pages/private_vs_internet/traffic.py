"""Traffic on a link, scaled up to the full rate: Kafka, background and both, over trials."""

from __future__ import annotations

from wanbench.checks import check_level, check_number
from wanbench.errors import ParameterError
from wanbench.methods.result import Estimate
from wanbench.methods.result.means import mean_of
from wanbench.methods.tcp.models import MSS_BYTES
from wanbench.methods.trials.limits import BITS, PACKET_BYTES
from wanbench.methods.trials.rates import TrialRates, records_per_full_batch

METHOD = "mean of trials; interval from Student's t"
ASSUMPTION = (
    "Trials are independent, their means nearly normal; at the full rate the same number "
    "of batches passes per second, all full"
)
BITS_PER_MBIT = 1e6


def traffic(rates: TrialRates, setting: str, *, full_rate_bps: float, level: float = 0.95) -> dict[str, Estimate]:
    """
    Payload of Kafka and of the background, and both with headers, in Mbit/s at the full rate of the link.

    The background is scaled up with the rate. Kafka is scaled per batch: the same batches per second, each of the
    scaled batch.size, full of uncompressed records. Small batches are less full than large ones (4,096 bytes hold 3
    records of 1,000), so bytes scaled up with the rate would be too few.

    rates: Trials at one or several link rates; each is scaled by its own rate.
    setting: Pattern of the trials to take.
    full_rate_bps: The full rate, before scaling down.

    Returns dict: "background", "kafka-traffic" and "total", if they were measured.

    Raises ParameterError: no such trial has a link rate.
    """
    level = check_level(level)
    trials = rates.of(setting).rates
    trials = trials[trials.rate_bps.notna()]
    if trials.empty:
        raise ParameterError(f"no trial of {setting} has a link with a rate")
    scale = check_number("full_rate_bps", full_rate_bps, 0, above=True) / trials.rate_bps
    up = scale / BITS_PER_MBIT
    sizes = zip(scale * trials.batch_bytes.astype("float64"), trials.record_bytes, strict=True)
    full_batch_bytes = [size * records_per_full_batch(batch, size) for batch, size in sizes]
    kafka = BITS * trials.batches_per_s * full_batch_bytes / BITS_PER_MBIT
    left_empty = kafka - trials.throughput_bps * up
    whole = trials.rx_utilisation * trials.rate_bps * up + left_empty * PACKET_BYTES / MSS_BYTES
    values = {
        "background": ("background", trials.measured_background_bps * up),
        "kafka-traffic": ("Kafka's records", kafka),
        "total": ("both, with headers", whole),
    }
    about, estimates = {"unit": "Mbit/s", "method": METHOD, "assumption": ASSUMPTION}, {}
    for name, (label, of_trials) in values.items():
        if len(own := of_trials.dropna()):
            claim = f"Scaled up to the full rate, {label} over {setting} make {{}}"
            estimates[name] = mean_of(own, level, quantity=f"{label} over {setting}", claim=claim, **about)
    return estimates
