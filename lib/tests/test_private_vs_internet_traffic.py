"""What a link that was scaled down stands for: Kafka batch for batch, the background with the rate."""

import pytest
from trial_tables import together, trial

from wanbench.errors import ParameterError
from wanbench.methods.trials.rates import trial_rates
from wanbench.pages.private_vs_internet.traffic import traffic

FULL = {"full_rate_bps": 1e9}


def measured(scale, record_bytes, records_per_batch, batches_per_s=120):
    """Trials on a link of 1 Gbit/s that was scaled down, with batches of 81,920 bytes scaled down alike."""
    rows = []
    for ordinal in (1, 2):
        levels = {"rate_bps": 1e9 / scale, "batch_bytes": 81_920 // scale, "record_bytes": record_bytes}
        each = trial(ordinal, "private", batches_per_s, **levels)
        for row in each["batches"]:
            row["records"] = records_per_batch * row["batches"]
            row["bytes"] = row["records"] * (record_bytes + 9) + 61 * row["batches"]
        for row in each["link_samples"]:
            row["bytes_delivered"] = int(row["bytes_delivered"] / scale)
        rows.append(each)
    return trial_rates(together(rows))


@pytest.mark.parametrize(
    ("scale", "record_bytes", "records_per_batch"),
    [(1, 1000, 81), (20, 1000, 3), (40, 1000, 1), (10, 1004, 8), (20, 996, 4), (40, 981, 2)],
)
def test_kafka_is_scaled_up_batch_for_batch(scale, record_bytes, records_per_batch):
    found = traffic(measured(scale, record_bytes, records_per_batch), "private", **FULL)
    assert found["kafka-traffic"].estimate == pytest.approx(120 * 81 * 1000 * 8 / 1e6, rel=0.01)
    assert found["background"].estimate == pytest.approx(800)
    as_rate = 120 * records_per_batch * record_bytes * 8 * scale / 1e6
    missing = found["kafka-traffic"].estimate - as_rate
    carried = 80  # Mbit/s: 10,000 packets of 1,000 bytes a second, scaled down and up again
    assert found["total"].estimate == pytest.approx(carried + missing * 1500 / 1448, rel=0.01)


def test_a_link_without_a_rate_stands_for_none():
    found = measured(20, 996, 4)
    found.rates["rate_bps"] = None
    with pytest.raises(ParameterError, match="no trial of private has a link with a rate"):
        traffic(found, "private", **FULL)
