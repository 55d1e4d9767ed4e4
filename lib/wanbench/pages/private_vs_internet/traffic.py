"""Estimate the traffic of Kafka and the background traffic on a link, scaled up to the full rate."""

from wanbench.checks import check_number
from wanbench.errors import ParameterError
from wanbench.methods.result import LEVEL, Estimate
from wanbench.methods.result.means import mean_of
from wanbench.methods.tcp.models import MSS_BYTES
from wanbench.methods.trials.limits import BITS, PACKET_BYTES
from wanbench.methods.trials.rates import TrialRates, records_per_full_batch

METHOD = "mean of trials; interval from Student's t"
ASSUMPTION = (
    "Trials are independent and their means nearly normal; at the full rate the same number of batches pass per "
    "second, and all are full"
)
BITS_PER_MBIT = 1e6


def traffic(rates: TrialRates, setting: str, *, full_rate_bps: float) -> dict[str, Estimate]:
    """
    Estimate the payload of Kafka and of the background, and the total with headers, in Mbit/s at the full link rate.

    The background is scaled up in proportion to the rate. For Kafka, the number of batches per second is kept, and each
    batch is assumed to be full of uncompressed records at the scaled-up batch.size: small batches are less full than
    large ones (4,096 bytes hold 3 records of 1,000), so scaling bytes in proportion would give too little.

    rates: Trials at one or several link rates; each trial is scaled from its link's rate to the full rate.
    setting: Name or pattern of the setting whose trials are used.
    full_rate_bps: The rate before scaling down.

    Returns the estimates "background", "kafka-traffic" and "total", as far as they were measured.

    Raises ParameterError: no trial of the setting has a link rate.
    """
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
            estimates[name] = mean_of(own, LEVEL, quantity=f"{label} over {setting}", claim=claim, **about)
    return estimates
