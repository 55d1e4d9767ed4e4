"""The sixth study: levels of compression against each other, and the claims of KIP-390."""

import numpy as np
import pandas as pd
import pytest

from wanbench.errors import ParameterError
from wanbench.methods.trials.rates import TrialRates
from wanbench.pages import compression_levels

BYTES = {"gzip 1": 250.0, "gzip 6": 200.0, "gzip 9": 200.0, "none": 1_000.0}
RATES = {"gzip 1": 40e3, "gzip 6": 10e3, "gzip 9": 5e3, "none": 80e3}


@pytest.fixture
def rates():
    """Three blocks in which every setting is equally fast or slow, as if the machine drifted."""
    rows = [
        {"test_id": f"{block}-{name}", "block": block, "setting": name, "records_per_s": RATES[name] * drift}
        | {"mean_latency_ms": 10.0, "log_bytes_per_s": RATES[name] * drift * BYTES[name]}
        for block, drift in enumerate((1.0, 0.5, 2.0))
        for name in BYTES
    ]
    return TrialRates(pd.DataFrame(rows), *[pd.DataFrame()] * 2, rule="all seconds")


def test_a_drift_of_the_machine_falls_out_of_ratios(rates):
    levels = compression_levels.by_level(rates)
    faster, smaller = levels.ratio("gzip 1", "gzip 6"), levels.ratio("gzip 9", "gzip 1", "bytes_per_record")
    assert np.allclose([faster.low, faster.estimate, faster.high], 4) and faster.n == 3
    assert np.allclose([smaller.low, smaller.estimate, smaller.high], 0.8)


def test_levels_are_in_order_and_a_codec_without_levels_has_no_ratio(rates):
    levels = compression_levels.by_level(rates)
    assert levels.rows.setting.tolist() == ["gzip 1", "gzip 6", "gzip 9", "none"] and (levels.rows.n == 3).all()
    assert [one.quantity for one in levels.estimates] == [
        "messages per second: gzip 1 over gzip 9",
        "bytes of a message in the log: gzip 1 over gzip 9",
    ]
    assert (
        "“gzip 1” sends 8.00 times (8.00 to 8.00) the messages per second of “gzip 9”, each 1.250 times"
        in levels.sentence
    )
    assert levels.formatted_table().columns.tolist()[:3] == ["setting", "trials", "messages per second"]
    assert [trace.name for trace in levels.figure().data] == ["gzip", "none"]


def test_an_unknown_setting_or_measure_is_refused(rates):
    levels = compression_levels.by_level(rates)
    with pytest.raises(ParameterError, match=r"setting is 'gzip 2'; allowed: .*gzip 1"):
        levels.ratio("gzip 2", "gzip 1")
    with pytest.raises(ParameterError, match=r"measure is 'size'; allowed: .*bytes_per_record"):
        levels.ratio("gzip 1", "gzip 6", "size")
    with pytest.raises(ParameterError, match="rates has no trial"):
        compression_levels.by_level(TrialRates(pd.DataFrame(), *[pd.DataFrame()] * 2, rule="none"))


def test_what_follows_from_the_sources_table():
    rows = compression_levels.claims.compression_levels().table().set_index("claim")
    assert rows.own["up-to"] == "not reproduced" and rows.recomputed["up-to"] == pytest.approx(56.46, abs=0.01)
    assert rows.own["gzip-rate"] == "not reproduced"  # 56.46 is printed as 56.4
    assert (rows.own[["zstd-rate", "gzip-size", "lz4-size", "codec-first", "lowest-best"]] == "reproduced").all()
    assert "0.36 microseconds" in rows.working["linear-write"] and rows.own["linear-write"] == "undecided"


@pytest.mark.parametrize("factor, verdict", [(1.0, "reproduced"), (3.0, "not reproduced")])
def test_a_rerun_gives_its_own_verdict(rates, factor, verdict):
    levels = compression_levels.by_level(rates)
    ratio = levels.ratio("gzip 1", "gzip 6")
    one = type(ratio)(**{**vars(ratio), "estimate": 1.56 * factor, "low": 1.5 * factor, "high": 1.6 * factor})
    rows = compression_levels.claims.compression_levels(**{"gzip-rate": one}).table().set_index("claim")
    assert rows.rerun["gzip-rate"] == verdict
