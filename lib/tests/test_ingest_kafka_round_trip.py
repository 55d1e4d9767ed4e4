"""EndToEndLatency: its three kinds of lines, and an end that never came."""

import pandas as pd
import pytest
from reading import only

from wanbench import tables
from wanbench.read.ingest import kafka_load

PROGRESS = "0\t147.947586\n1000\t8.03529E-4\n"
MEAN = "Avg latency: 41.2031 ms\n\n"
QUANTILES = "Percentiles: 50th = 40, 99th = 52, 99.9th = 61\n"
DIED = 'Exception in thread "main" java.lang.RuntimeException: poll() timed out before finding a result'


@pytest.mark.parametrize("text", [PROGRESS + MEAN + QUANTILES, (MEAN + QUANTILES).replace("\n", "\r\n")])
@pytest.mark.parametrize("mark", [".", ","])
def test_round_trips(text, mark):
    found = kafka_load.read(text.replace("41.2", f"41{mark}2").encode())
    row = only(found["round_trips"])
    assert row[["mean_latency_ms", "p50_latency_ms", "p99_latency_ms", "p999_latency_ms"]].tolist() == [
        41.2031,
        40,
        52,
        61,
    ]
    assert pd.isna(row.records) and pd.isna(row.error)
    quantiles = found["quantiles"]
    assert quantiles["quantile"].tolist() == [0.5, 0.99, 0.999] and quantiles.latency_ms.tolist() == [40, 52, 61]
    assert set(quantiles.what) == {"round trip"} and quantiles.window.isna().all()
    for name, core in found.items():
        whole = core.assign(**dict.fromkeys([column.name for column in tables.CONTEXT])).assign(source_file="a")
        tables.validate(name, whole)


def test_several_runs():
    found = kafka_load.read((PROGRESS + MEAN + QUANTILES + PROGRESS + MEAN + QUANTILES.replace("61", "99")).encode())
    assert found["round_trips"].p999_latency_ms.tolist() == [61, 99] and len(found["quantiles"]) == 6


def test_a_run_that_died():
    row = only(
        kafka_load.read(f"{PROGRESS}{DIED}\n\tat kafka.tools.EndToEndLatency.main(E.scala)\n".encode())["round_trips"]
    )
    assert row.error == f"no summary: {DIED}" and pd.isna(row.mean_latency_ms)
    row = only(kafka_load.read((PROGRESS + MEAN + QUANTILES[:40]).encode())["round_trips"])
    assert row.mean_latency_ms == 41.2031 and row.error.startswith(
        "no summary: the output is truncated in 'Percentiles"
    )
    for end in range(1, len(QUANTILES) - 1, 3):
        row = only(kafka_load.read((MEAN + QUANTILES[:end]).encode())["round_trips"])
        assert pd.isna(row.p50_latency_ms), QUANTILES[:end]


@pytest.mark.parametrize("point", [".", ","])
def test_percentiles_of_forks_have_decimals(point):
    line = "Percentiles: 50th = 1.2345, 99th = 6.7890, 99.9th = 18.0001".replace("9.9th", "9#9th")
    line = line.replace(".", point).replace("9#9th", "9.9th")
    row = only(kafka_load.read((MEAN + line + "\n").encode())["round_trips"])
    assert (row.p50_latency_ms, row.p99_latency_ms, row.p999_latency_ms) == (1.2345, 6.789, 18.0001)
    assert pd.isna(row.error)
    for end in range(1, len(line)):
        row = only(kafka_load.read((MEAN + line[:end]).encode())["round_trips"])
        assert pd.isna(row.p999_latency_ms), line[:end]


def test_percentiles_out_of_order_are_none():
    row = only(kafka_load.read((MEAN + QUANTILES.replace("52", "12")).encode())["round_trips"])
    assert pd.isna(row.p50_latency_ms) and "99th = 12" in row.error
