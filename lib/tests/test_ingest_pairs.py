"""Pairs of imports: rows of pings, own coordinates, settings."""

import warnings

import numpy as np
import pandas as pd
import pytest

from wanbench import regions, tables
from wanbench.errors import ParameterError
from wanbench.read import ingest

A, B, C = "aws:eu-west-1", "gcp:us-east1", "azure:eastus"


def imported(*rows):
    """Tables of tests, each (from, to, setting, columns of pings or None, throughput or None)."""
    tests, pings, transfers = [], [], []
    for number, (start, end, setting, ping, rate) in enumerate(rows):
        test = {"run_id": "r", "test_id": f"t{number}", "attempt": 1, "from_region": start, "to_region": end}
        tests.append(test | {"outcome": "done", "setting": setting})
        if ping is not None:
            pings.append(test | {"source_file": "a.csv"} | ping)
        if rate is not None:
            transfers.append(
                test | {"source_file": "a.csv", "direction": "forward", "protocol": "TCP", "throughput_bps": rate}
            )
    found = {"tests": tests, "pings": pings, "transfers": transfers}
    return {name: tables.from_rows(name, rows) for name, rows in found.items()}


def test_rows_of_pings_count_like_tests():
    found = imported(
        (A, B, None, {"mean_rtt_ms": 10.0, "min_rtt_ms": 9.0, "n_sent": 5, "n_lost": 1}, None),
        (A, B, None, {"mean_rtt_ms": 30.0, "n_sent": 5}, 1e6),
        (A, B, None, {"mean_rtt_ms": 12.0, "n_sent": 5, "n_lost": 0}, 3e6),
        (B, A, None, {"mean_rtt_ms": 11.0, "n_sent": 4, "n_lost": 2}, None),
    )
    pairs = ingest.summarise_pairs(found, rtt="mean").set_index("from_region")
    assert pairs.rtt_ms.to_dict() == {A: 12.0, B: 11.0} and pairs.n_tests.to_dict() == {A: 3, B: 1}
    assert pairs.throughput_bps[A] == 2e6 and np.isnan(pairs.throughput_bps[B])
    assert pairs.n_echoes.tolist() == [15, 4] and pairs.n_lost.tolist() == [pd.NA, 2]
    assert ingest.summarise_pairs(found, rtt="min").rtt_ms.tolist()[0] == 9.0


def test_a_statistic_that_a_source_lacks_is_an_error():
    found = imported((A, B, None, {"mean_rtt_ms": 10.0, "median_rtt_ms": 9.5}, None))
    with pytest.raises(ParameterError, match=r"rtt is 'min'; allowed for the pings of a\.csv: mean, median"):
        ingest.summarise_pairs(found)
    assert ingest.summarise_pairs(found, rtt="median").rtt_ms[0] == 9.5


def test_echoes_and_pings_of_one_pair():
    found = imported((A, B, None, {"min_rtt_ms": 10.0, "n_sent": 3, "n_lost": 0}, None))
    test = {"run_id": "other", "test_id": "t", "attempt": 1, "from_region": A, "to_region": B}
    echoes = [
        test | {"source_file": "ping/x.txt", "sequence": n, "rtt_ms": rtt, "lost": False, "duplicate": False}
        for n, rtt in enumerate((20.0, 24.0))
    ]
    cut = [echoes[0] | {"source_file": f"{folder}/x.txt", "rtt_ms": 1.0} for folder in ("cut", "shorten")]
    found["echoes"] = tables.from_rows("echoes", echoes + cut)
    [pair] = ingest.summarise_pairs(found).to_dict("records")
    assert (pair["rtt_ms"], pair["n_echoes"], pair["n_lost"]) == (15.0, 5, 0)


def test_a_test_counts_once_however_many_transfers_it_has():
    found = imported(*((A, B, None, None, rate) for rate in (1e6, 6e6, 100e6, 2e6)))
    frame = found["transfers"]
    more = [frame.iloc[[1]].assign(throughput_bps=rate) for rate in (5e6, 7e6)]
    found["transfers"] = pd.concat([frame, *more], ignore_index=True)
    found["tests"] = pd.concat([found["tests"], found["tests"].head(1).assign(attempt=2)], ignore_index=True)
    [pair] = ingest.summarise_pairs(found | {"pings": tables.from_rows("pings", [])}).to_dict("records")
    assert pair["throughput_bps"] == 4e6 and pair["n_tests"] == 4, "the median of 1, 2, 6 and 100"
    assert pair["n_transfers"] == 6 and pd.isna(pair["retransmits"]), "of no transfer they are known"


def test_own_coordinates_replace_the_catalogues():
    found = imported(*((start, end, None, {"min_rtt_ms": 50.0}, None) for start, end in ((A, B), (B, C), ("x:y", A))))
    place = {"cloud": "x", "code": "y", "source": "mine", "latitude_deg": 0.0}
    own = tables.from_rows(
        "regions", [place | {"name": B, "longitude_deg": 0.0}, place | {"name": "x:y", "longitude_deg": 10.0}]
    )
    ours = ingest.summarise_pairs(found).set_index("from_region").distance_km
    theirs = ingest.summarise_pairs(found, regions=own).set_index("from_region")
    assert ours[A] == regions.distance_km(A, B) and np.isnan(ours["x:y"])
    ireland = np.radians([regions.region(A).latitude_deg, regions.region(A).longitude_deg])
    sphere_km = 6371 * np.arccos(np.cos(ireland).prod())  # to 0, 0
    assert theirs.distance_km[A] == pytest.approx(sphere_km, rel=0.006)
    assert theirs.distance_km.notna().all() and theirs.light_rtt_ms[A] == regions.light_rtt_ms(theirs.distance_km[A])
    equator = imported((B, "x:y", None, {"min_rtt_ms": 50.0}, None))
    [pair] = ingest.summarise_pairs(equator, regions=own).to_dict("records")
    assert pair["distance_km"] == pytest.approx(1113.195, abs=0.001), "ten degrees of the WGS-84 equator"
    with pytest.raises(ParameterError, match="table regions holds x:y more than once"):
        ingest.summarise_pairs(equator, regions=pd.concat([own, own.tail(1)]))


MIXED = (
    (A, B, "small to small", {"min_rtt_ms": 10.0}, 1e6),
    (A, B, "large to small", {"min_rtt_ms": 20.0}, 5e6),
    (B, A, "small to small", {"min_rtt_ms": 11.0}, None),
    (B, A, "large to large", None, 7e6),
)


def test_mixed_settings_are_said():
    found = imported(*MIXED)
    with pytest.warns(ingest.MixedSettings, match=rf"1 of 2 pairs mix .*as {A} to {B} does .*'small to small'"):
        assert ingest.summarise_pairs(found).n_tests.tolist() == [2, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ingest.summarise_pairs(found, setting="*").rtt_ms.tolist() == [15.0, 11.0]
        ingest.summarise_pairs(imported(*MIXED[2:]))  # RTT of one setting, throughput of another: nothing is mixed


def test_only_chosen_settings():
    found = imported(*MIXED)
    pairs = ingest.summarise_pairs(found, setting="small *").set_index("from_region")
    assert pairs.rtt_ms.to_dict() == {A: 10.0, B: 11.0} and pairs.throughput_bps[A] == 1e6
    assert ingest.summarise_pairs(found, setting=["large to small", "large to large"]).n_tests.tolist() == [1, 1]
    with pytest.raises(
        ParameterError, match=r"setting is 'tiny'; allowed: large to large; large to small; small to small"
    ):
        ingest.summarise_pairs(found, setting="tiny")
    with pytest.raises(ParameterError, match="allowed: a pattern or several"):
        ingest.summarise_pairs(found, setting=[])


def test_what_is_needed():
    found = imported(*MIXED)
    with pytest.raises(ParameterError, match="needs table tests"):
        ingest.summarise_pairs({"pings": found["pings"]})
    with pytest.raises(ParameterError, match="needs table echoes"):
        ingest.summarise_pairs({name: found[name] for name in ("tests", "transfers")})


def test_a_row_per_test_keeps_pair_and_time_of_tests_with_a_transfer_only():
    found = imported(
        (A, B, None, {"mean_rtt_ms": 80.0}, 1e8), (B, C, None, None, 2e8), (C, A, None, {"mean_rtt_ms": 90.0}, None)
    )
    at = pd.Timestamp("2022-02-01T00:00Z")
    found["transfers"]["started_at_utc"] = pd.Series([at] * 2, dtype=found["transfers"].started_at_utc.dtype)
    tests = ingest.per_test(found).set_index("test_id")
    assert tests.loc[["t0", "t1", "t2"], ["from_region", "to_region"]].values.tolist() == [[A, B], [B, C], [C, A]]
    assert tests.throughput_bps["t1"] == 2e8 and np.isnan(tests.rtt_ms["t1"]) and tests.rtt_ms["t2"] == 90.0
    assert tests.started_at_utc["t1"] == at and pd.isna(tests.started_at_utc["t2"])
    assert tests.distance_km["t1"] == pytest.approx(regions.distance_km(B, C))
    assert tests.from_cloud.to_dict() == {"t0": "aws", "t1": "gcp", "t2": "azure"}


def test_a_row_per_test_takes_coordinates_and_names_what_is_missing():
    found = imported((A, B, None, {"mean_rtt_ms": 80.0}, 1e8))
    place = {"name": A, "cloud": "aws", "code": "x", "latitude_deg": 0.0, "longitude_deg": 0.0, "source": ""}
    moved = ingest.per_test(found, regions=tables.from_rows("regions", [place]))
    assert moved.distance_catalogue_km[0] == pytest.approx(regions.distance_km(A, B))
    assert abs(moved.distance_km[0] - moved.distance_catalogue_km[0]) > 1000
    with pytest.raises(ParameterError, match="missing: transfers"):
        ingest.per_test({name: found[name] for name in ("tests", "pings")})
    with pytest.raises(ParameterError, match="rtt is 'max'; allowed: 'min', 'mean', 'median'"):
        ingest.per_test(found, rtt="max")
    twice = found | {"pings": pd.concat([found["pings"]] * 2, ignore_index=True)}
    with pytest.raises(ParameterError, match="table pings has more than one row per test"):
        ingest.per_test(twice)


def test_tables_of_one_setting_keep_what_those_tests_gave_and_their_flags():
    tests = pd.DataFrame(
        {"run_id": "r", "test_id": ["1", "2"], "setting": ["PREMIUM a to PREMIUM b", "STANDARD a to PREMIUM b"]}
    )
    pings = pd.DataFrame({"run_id": "r", "test_id": ["1", "2"], "mean_rtt_ms": [1.0, 2.0]})
    flags = pd.DataFrame({"scope": ["row", "row", "column"], "row": ["1", "2", None]})
    sources = pd.DataFrame({"path": ["grid.csv"]})
    chosen = ingest.of_setting({"tests": tests, "pings": pings, "flags": flags, "sources": sources}, "PREMIUM*")
    assert chosen["pings"].mean_rtt_ms.tolist() == [1.0]
    assert chosen["flags"].scope.tolist() == ["row", "column"]
    assert chosen["sources"] is sources
    with pytest.raises(ParameterError, match="setting is 'GOLD'; allowed: PREMIUM a"):
        ingest.of_setting({"tests": tests, "pings": pings}, "GOLD")
