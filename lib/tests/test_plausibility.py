"""The plausibility rules name the fault in tables with one known fault each, and raise no flag on clean tables."""

import numpy as np
import pandas as pd
import pytest
from simulations import clean_tables, planted_faults

import wanbench
from wanbench import tables
from wanbench.errors import ParameterError
from wanbench.read import plausibility
from wanbench.read.plausibility import places, rate_units, rules
from wanbench.read.plausibility.rule import tail_bound


@pytest.mark.parametrize("fault", planted_faults.FAULTS)
def test_a_planted_fault_is_named_with_its_cause(fault):
    planted = planted_faults.plant(fault, 3, n_regions=14)
    flags = plausibility.check(planted.tables)
    assert planted.named(flags), flags[["scope", "rule", "region", "cause"]].drop_duplicates().to_string()


@pytest.mark.parametrize("form", clean_tables.FORMS)
def test_clean_tables_raise_nothing(form):
    flags = plausibility.check(clean_tables.clean(0, form=form, n_regions=12))
    assert flags.empty, flags.found.iloc[0]


@pytest.mark.parametrize(("seed", "n_regions"), [(0, 8), (4, 16)])
def test_two_regions_whose_labels_are_exchanged_are_named(seed, n_regions):
    made = clean_tables.clean(seed, form="grid", n_regions=n_regions, invented=True)
    at = made["regions"].set_index("name")[["latitude_deg", "longitude_deg"]]
    first = at.index[seed]
    away = places.great_circle_km(*at.loc[first], at.latitude_deg, at.longitude_deg)
    second = away.sort_values().index[len(at) * 2 // 3]
    other = {first: second, second: first}
    frame = made["pings"].copy()
    for end in ("from_region", "to_region"):
        frame[end] = frame[end].map(lambda name: other.get(name, name))
    flags = plausibility.check(made | {"pings": frame})
    blamed = flags[flags.scope == "region"]
    assert set(blamed.region) == {first, second} and set(blamed.rule) == {"coordinates"}
    assert blamed.cause.str.fullmatch("the labels, or the coordinates, of .* are exchanged").all()


def test_settings_without_two_machines_say_nothing_of_the_receiver(recwarn):
    row = transfer(throughput_bps=6e9, run_id="r", test_id="t", attempt=1)
    test = {"run_id": "r", "test_id": "t", "attempt": 1, "from_region": "aws:eu-west-1", "outcome": "done"}
    test |= {"to_region": "aws:us-east-1", "setting": "t3.nano"}
    with_tests = {"tests": tables.from_rows("tests", [test])}
    for way, n in (("forward", 1), ("reverse", 0)):
        with_tests["transfers"] = tables.from_rows("transfers", [row | {"direction": way}])
        assert len(plausibility.check(with_tests)) == n
    assert not recwarn.list


def test_flags_are_a_valid_table_and_nothing_is_dropped():
    planted = planted_faults.plant("coordinates exchanged", 1, n_regions=12)
    before = {name: frame.copy() for name, frame in planted.tables.items()}
    flags = plausibility.check(planted.tables)
    pd.testing.assert_frame_equal(tables.validate("flags", flags), flags)
    for name, frame in before.items():
        pd.testing.assert_frame_equal(planted.tables[name], frame)


def test_no_tables_no_flags():
    assert plausibility.check({}).empty
    assert list(plausibility.check({}).columns) == tables.table("flags").names
    with pytest.raises(ParameterError, match="mapping of names to tables"):
        plausibility.check([])


def ping(start, end, min_rtt_ms, **columns):
    return {"from_region": start, "to_region": end, "source_file": "a.csv", "min_rtt_ms": min_rtt_ms} | columns


def pings(*rows):
    return {"pings": tables.from_rows("pings", rows)}


def test_below_vacuum_is_impossible_and_below_fibre_suspect():
    rows = [ping("aws:eu-west-1", "aws:us-east-1", rtt) for rtt in (30.0, 45.0, 70.0)]
    flags = plausibility.check(pings(*rows))
    assert list(flags.verdict) == ["impossible", "suspect"]
    assert flags.bound[0] == pytest.approx(flags.bound[1] / 1.468)
    apart = wanbench.regions.distance_km("aws:eu-west-1", "aws:us-east-1")
    spare = sum(wanbench.regions.region(name).precision_km for name in ("aws:eu-west-1", "aws:us-east-1"))
    assert flags.bound[1] == pytest.approx((apart - spare) * 2 * 1.468 / 299.792458)
    assert "where light in vacuum takes at least" in flags.found[0]


def test_within_the_precision_of_both_places_nothing_is_too_fast():
    rows = [ping("aws:eu-central-1", "azure:germanywestcentral", 0.05)]
    assert plausibility.check(pings(*rows)).empty


def test_pairs_of_emulated_links_are_not_judged_by_geography():
    rows = pings(ping("aws:eu-west-1", "aws:us-east-1", 10.0))
    link = {"run_id": "r", "delay_ms": 5.0, "jitter_ms": 0.0, "loss": 0.0}
    link |= {"from_region": "aws:eu-west-1", "to_region": "aws:us-east-1"}
    assert len(plausibility.check(rows)) == 1
    assert plausibility.check(rows | {"links": tables.from_rows("links", [link])}).empty


def transfer(**columns):
    row = {"from_region": "aws:eu-west-1", "to_region": "aws:us-east-1", "source_file": "a.csv"}
    return row | {"direction": "forward", "protocol": "TCP", "streams": 1} | columns


def test_a_rate_above_two_windows_per_round_trip():
    rate = 2 * 8 * 65_536 / 0.080
    rows = [transfer(throughput_bps=rate * factor, window_bytes=65_536) for factor in (0.99, 1.01)]
    rows += [rows[1] | {"streams": 2}, rows[1] | {"protocol": "UDP"}]
    tested = pings(ping("aws:us-east-1", "aws:eu-west-1", 80.0)) | {"transfers": tables.from_rows("transfers", rows)}
    flags = plausibility.check(tested)
    assert list(flags.rule) == ["window"]
    assert flags.bound[0] == pytest.approx(rate)
    assert flags.row[0] == "a.csv, row 2"


def test_bytes_in_no_time_are_impossible():
    rows = [transfer(throughput_bps=1e8, bytes=125_000_000, duration_s=taken) for taken in (10.0, 0.0)]
    rows += [transfer(throughput_bps=0.0, bytes=0, duration_s=0.0)]
    flags = plausibility.check({"transfers": tables.from_rows("transfers", rows)})
    assert list(flags.row) == ["a.csv, row 2"] and flags.rule[0] == "bytes" and "took 0 s" in flags.found[0]


@pytest.mark.parametrize(
    ("direction", "setting", "verdicts"),
    [
        ("forward", "unknown to unknown", []),
        ("forward", "PREMIUM t3.nano to unknown", ["suspect"]),
        ("forward", "e2-small to t3.nano", ["impossible"]),
        ("reverse", "e2-small to t3.nano", ["suspect"]),
        ("reverse", "e2-small to unknown", []),
    ],
)
def test_the_instance_of_the_sender_limits_the_rate(direction, setting, verdicts):
    row = transfer(throughput_bps=6e9, run_id="r", test_id="t", attempt=1, direction=direction)
    test = {"run_id": "r", "test_id": "t", "attempt": 1, "from_region": "aws:eu-west-1", "outcome": "done"}
    test |= {"to_region": "aws:us-east-1", "setting": setting}
    rows = {"transfers": tables.from_rows("transfers", [row]), "tests": tables.from_rows("tests", [test])}
    flags = plausibility.check(rows)
    assert list(flags.verdict) == verdicts and set(flags.rule) <= {"instance"}


@pytest.mark.parametrize(
    ("columns", "wrong"),
    [
        ({"mean_rtt_ms": 81.0, "max_rtt_ms": 82.0, "sd_rtt_ms": 0.7, "n_sent": 10}, ""),
        ({"mean_rtt_ms": 79.0, "max_rtt_ms": 82.0}, "min_rtt_ms cannot exceed mean_rtt_ms"),
        ({"p95_rtt_ms": 90.0, "p99_rtt_ms": 85.0}, "p95_rtt_ms cannot exceed p99_rtt_ms"),
        ({"mean_rtt_ms": 81.0, "max_rtt_ms": 82.0, "sd_rtt_ms": 9.0}, "spread other than"),
        ({"mean_rtt_ms": 85.0, "max_rtt_ms": 100.0, "sd_rtt_ms": 0.1, "n_sent": 10}, "spread other than"),
        ({"n_sent": 5, "n_lost": 6}, "n_lost cannot exceed n_sent"),
    ],
)
def test_summaries(columns, wrong):
    flags = plausibility.check(pings(ping("aws:eu-west-1", "aws:us-east-1", 80.0, **columns)))
    assert len(flags) == bool(wrong)
    if wrong:
        assert flags.rule[0] == "summary" and wrong in flags.cause[0]


def test_columns_in_different_units_are_told_from_exchanged_ones():
    made = clean_tables.clean(4, form="grid", n_regions=10)
    flags = plausibility.check(made | {"pings": made["pings"].assign(max_rtt_ms=made["pings"].max_rtt_ms / 1000)})
    of_columns = flags[flags.scope == "column"]
    assert of_columns.cause.str.contains("factor 1,000: max_rtt_ms is in seconds").any()


def test_the_mdev_of_ping_may_exceed_the_spread_by_its_cut_mean():
    columns = {"mean_rtt_ms": 105.976, "max_rtt_ms": 106.069, "sd_rtt_ms": 0.297}
    assert plausibility.check(pings(ping("aws:eu-north-1", "azure:eastus", 105.897, **columns))).empty


def test_copies_need_the_same_time_or_many_digits():
    at = "2026-01-01T00:00:00Z"
    same = [ping("aws:eu-west-1", "aws:us-east-1", 80.0) for _ in range(2)]
    assert plausibility.check(pings(*same)).empty
    assert list(plausibility.check(pings(*[row | {"started_at_utc": at} for row in same])).rule) == ["copies"]
    whole = {"mean_rtt_ms": 81.234, "max_rtt_ms": 85.012}
    assert list(plausibility.check(pings(*[row | whole for row in same])).row) == ["a.csv, row 2"]


def repeated(decimals, columns, times=None, n=20):
    """Tests of 30 pairs, n each, whose RTTs are rounded; all of a pair at the same time, or without one."""
    rng = np.random.default_rng(7)
    regions = wanbench.regions.catalogue().name.head(6)
    rows = []
    for a, b in ((a, b) for a in regions for b in regions if a != b):
        path = 300 + wanbench.regions.distance_km(a, b) / 60
        for _ in range(n):
            echoes = np.sort(path + rng.exponential(1.0, len(columns))).round(decimals)
            rows.append(ping(a, b, None, started_at_utc=times) | dict(zip(columns, echoes, strict=True)))
    return rows


@pytest.mark.parametrize("times", [None, "2026-01-01T00:00:00Z"])
@pytest.mark.parametrize("decimals", [0, 1])
@pytest.mark.parametrize("columns", [("mean_rtt_ms",), ("min_rtt_ms", "mean_rtt_ms", "max_rtt_ms")])
def test_rounded_measurements_of_one_day_are_no_copies(columns, decimals, times):
    rows = repeated(decimals, columns, times)
    assert plausibility.check(pings(*rows)).empty


@pytest.mark.parametrize("times", [None, "2026-01-01T00:00:00Z"])
def test_one_copy_among_fine_measurements_of_one_day_is_found(times):
    fine = repeated(6, ("min_rtt_ms", "mean_rtt_ms", "max_rtt_ms"), times)
    assert list(plausibility.check(pings(*fine, fine[40])).rule) == ["copies"]


def test_steady_echoes_of_three_digits_are_no_copies():
    rng = np.random.default_rng(2)
    rows = [
        {"from_region": "aws:eu-west-1", "to_region": "aws:us-east-1", "source_file": "a"}
        | {"run_id": "r", "test_id": f"{test}", "attempt": 1, "lost": False, "duplicate": False}
        | {"sequence": k, "rtt_ms": 145.0 + (rng.random() < 0.02)}
        for test in range(9)
        for k in range(1, 21)
    ]
    assert plausibility.check({"echoes": tables.from_rows("echoes", rows)}).empty


def test_no_time_at_all_between_far_regions_is_impossible():
    rows = [ping("aws:eu-west-1", "aws:us-east-1", 0.0), ping("aws:us-east-1", "azure:eastus", 0.0)]
    flags = plausibility.check(pings(*rows))
    assert list(flags.row) == ["a.csv, row 1"] and list(flags.verdict) == ["impossible"]
    assert "0 ms" in flags.cause[0] and flags.rule[0] == "light"


def test_copied_echoes_are_found():
    made = clean_tables.clean(5, form="lab", n_regions=8)
    first = made["echoes"][made["echoes"].test_id == made["echoes"].test_id[0]]
    copy = first.assign(test_id="9999-copy")
    flags = plausibility.check(made | {"echoes": pd.concat([made["echoes"], copy], ignore_index=True)})
    assert list(flags.rule) == ["copies"] and flags.row[0] == "9999-copy"


def test_an_asymmetric_pair_is_suspect():
    made = clean_tables.clean(8, form="grid", n_regions=14)
    frame = made["pings"].copy()
    a, b = frame.loc[frame.min_rtt_ms.idxmax(), ["from_region", "to_region"]]
    rows = (frame.from_region == a) & (frame.to_region == b)
    frame.loc[rows, ["min_rtt_ms", "mean_rtt_ms", "max_rtt_ms"]] *= 2.5
    flags = plausibility.check(made | {"pings": frame})
    assert set(flags.rule) == {"asymmetry"} and set(flags.from_region) == {a}


def test_directions_may_differ_by_a_factor_2_or_by_10_ms():
    steady = [
        ping(*ends, 100.0 + k / 100 * (ends[0] < ends[1]))
        for k in range(1, 25)
        for ends in ((f"x:{k}", f"y:{k}"), (f"y:{k}", f"x:{k}"))
    ]
    for there, back, n in ((100.0, 198.0, 0), (100.0, 202.0, 1), (3.0, 12.8, 0), (3.0, 13.2, 1)):
        flags = plausibility.check(pings(*steady, ping("x:a", "x:b", there), ping("x:b", "x:a", back)))
        assert list(flags.rule) == ["asymmetry"] * n and list(flags.from_region) == ["x:b"] * n


@pytest.mark.parametrize(("leg_ms", "allowed_ms", "flagged_ms"), [(50.0, 335.0, 345.0), (5.0, 108.0, 112.0)])
def test_a_pair_far_above_its_detour_is_suspect(leg_ms, allowed_ms, flagged_ms):
    """More than 3 times as long, with 20 ms on both sides, and 100 ms longer; without places no other rule applies."""
    legs = [ping("x:a", "x:c", leg_ms), ping("x:c", "x:b", leg_ms), ping("x:c", "x:d", leg_ms)]
    assert plausibility.check(pings(*legs, ping("x:b", "x:a", allowed_ms))).empty
    flags = plausibility.check(pings(*legs, ping("x:b", "x:a", flagged_ms)))
    assert list(flags.rule) == ["triangle"] and flags.bound[0] == 2 * leg_ms
    assert (flags.from_region[0], flags.to_region[0]) == ("x:b", "x:a")


def test_a_satellite_or_detour_within_a_city_is_no_unit():
    made = clean_tables.clean(3, form="grid", n_regions=14)
    a, b = "aws:ap-northeast-1", "gcp:asia-northeast1"
    rows = [ping(a, b, 560.0), ping(b, a, 561.0)]
    both = made | {"pings": pd.concat([made["pings"], tables.from_rows("pings", rows)], ignore_index=True)}
    assert "unit of RTT" not in set(plausibility.check(both).rule)
    rows[0]["min_rtt_ms"] = 0.6
    both["pings"] = pd.concat([made["pings"], tables.from_rows("pings", rows)], ignore_index=True)
    flags = plausibility.check(both)
    assert "unit of RTT" in set(flags.rule) and flags.cause.str.contains("microseconds").any()


def test_rtts_that_do_not_follow_distance_blame_no_place():
    rng = np.random.default_rng(1)
    for seed in range(2):
        made = clean_tables.clean(seed, form="survey", n_regions=12)["pings"]
        ends = [tuple(sorted(pair)) for pair in zip(made.from_region, made.to_region, strict=True)]
        more = {pair: rng.uniform(400, 800) for pair in set(ends)}
        slow = made.assign(mean_rtt_ms=made.mean_rtt_ms + np.array([more[pair] for pair in ends]))
        assert plausibility.check({"pings": slow}).empty


@pytest.mark.parametrize("both", [False, True])
def test_a_single_wrong_rtt_blames_no_region(both):
    made = clean_tables.clean(6, form="grid", n_regions=16)
    frame = made["pings"].copy()
    a, b = frame[frame.min_rtt_ms > 150][["from_region", "to_region"]].iloc[0]
    rows = (frame.from_region == a) & (frame.to_region == b)
    rows |= (frame.from_region == b) & (frame.to_region == a) & both
    columns = ["min_rtt_ms", "mean_rtt_ms", "max_rtt_ms", "sd_rtt_ms"]
    frame.loc[rows, columns] = frame.loc[rows, columns] / 10
    flags = plausibility.check(made | {"pings": frame})
    assert set(flags.scope) == {"row"} and len(flags) == rows.sum() and set(flags.rule) == {"light"}
    back = ((frame.from_region == b) & (frame.to_region == a)).any() and not both
    assert flags.cause.str.contains("opposite direction is possible").all() == back


def test_pairs_alone_can_be_checked():
    pairs = wanbench.read.ingest.summarise_pairs(
        clean_tables.clean(2, form="lab", n_regions=8) | {"tests": _no_tests()}
    )
    assert plausibility.check({"pairs": pairs}).empty
    pairs.loc[0, "rtt_ms"] = 0.01
    assert len(plausibility.check({"pairs": pairs})) == 1


def _no_tests():
    return tables.from_rows("tests", [])


def test_precision_that_is_not_stated_is_the_catalogues():
    stated = tables.from_rows(
        "regions",
        [
            {"name": name, "cloud": "aws", "code": "x", "latitude_deg": 1.0, "longitude_deg": 2.0}
            | {"precision_km": precision, "source": ""}
            for name, precision in (("aws:eu-west-1", None), ("aws:new", None), ("aws:vague", 7000.0))
        ],
    )
    known = places.known_places(stated).precision_km
    own = wanbench.regions.region("aws:eu-west-1").precision_km
    assert list(known[["aws:eu-west-1", "aws:new", "aws:vague"]]) == [own, 50.0, 600.0]


def test_rounded_rates_are_no_blocks():
    rng = np.random.default_rng(0)
    for step, block in ((1e6, None), (1e9, None), (1.0, None), (131072.0, 131072), (65536.0, 65536)):
        values = pd.Series(rng.integers(1, 900, 200) * step)
        found = rate_units.common_block(values)
        assert (found is None) if block is None else found % block == 0


def test_the_reach_of_a_tail_is_that_of_its_law():
    rng = np.random.default_rng(1)
    beyond = [(values := 1 + rng.pareto(2.0, 2000)).max() > tail_bound(values, expected=0.1) for _ in range(400)]
    assert 0.03 < np.mean(beyond) < 0.2
    assert tail_bound(np.arange(5.0)) == np.inf


def test_every_rule_is_declared_once():
    assert len(plausibility.RULES) == 18
    for name, rule in plausibility.RULES.items():
        assert rule.name == name and all(isinstance(text, str) for text in (rule.meaning, rule.bound, rule.reference))


def test_a_rule_of_another_package_is_applied(monkeypatch):
    def check(tables):
        return [rule.flag("pings", "table", "suspect", "rows", "made up", value=len(tables["pings"]), bound=0)]

    rule = plausibility.Rule("theirs", "Nothing is measured.", "no row", "made up", check)
    monkeypatch.setattr(rules, "RULES", {**plausibility.RULES, "theirs": rule})
    flags = plausibility.check(pings(ping("aws:eu-west-1", "aws:us-east-1", 80.0)))
    assert flags[["rule", "found", "value"]].values.tolist() == [["theirs", "rows", 1.0]]


def test_coordinates_off_the_earth_are_named_and_do_not_stop_the_rules():
    tables = clean_tables.clean(3, form="pings", n_regions=8)
    known = wanbench.regions.catalogue().set_index("name", drop=False)
    name, other = tables["pings"][["from_region", "to_region"]].iloc[0]
    exchanged = known.loc[[name]].assign(latitude_deg=139.7, longitude_deg=35.7)
    wild = known.loc[[other]].assign(longitude_deg=5e5)
    found = plausibility.check(dict(tables, regions=pd.concat([exchanged, wild])))
    causes = found.set_index("region").cause
    assert causes[name] == "latitude and longitude are exchanged"
    assert "not degrees" in causes[other] and set(found.rule) == {"earth"}


@pytest.mark.parametrize("seed", range(2))
def test_halved_rtts_of_one_region_accuse_no_other(seed):
    made = clean_tables.clean(seed, form="grid", n_regions=24)
    region = made["regions"].name[seed]
    frame = made["pings"].copy()
    rows = (frame.from_region == region) | (frame.to_region == region)
    columns = ["min_rtt_ms", "mean_rtt_ms", "max_rtt_ms", "sd_rtt_ms"]
    frame.loc[rows, columns] = frame.loc[rows, columns] / 2
    flags = plausibility.check(made | {"pings": frame})
    assert set(flags.region.dropna()) <= {region}
    assert not (plausibility.suspects(frame, flags) & ~rows).any()
