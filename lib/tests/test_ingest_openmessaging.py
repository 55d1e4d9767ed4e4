"""Results of the OpenMessaging Benchmark: the two schemas that are about, made up and real, and damaged ones."""

import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wanbench import folders, tables
from wanbench.errors import RawDataError
from wanbench.read.ingest import openmessaging

SHARED = folders.root().parent / "shared/data/omb"
OLDER = {
    "workload": "w",
    "driver": "Kafka",
    "publishRate": [100.0, 50.0],
    "consumeRate": [99.0, 51.0],
    "backlog": [-3, 4],
    "publishLatencyAvg": [2.5, 2.0],
    "publishLatency50pct": [2.0, 1.5],
    "publishLatency999pct": [9.125, 8.0],
    "publishLatencyMax": [12.5, 11.0],
    "aggregatedPublishLatency99pct": 7.25,
    "aggregatedPublishLatencyQuantiles": {"50.0": 1.75, "99.9": 9.0, "100.0": 12.5},
    "endToEndLatencyAvg": [3.5, 3.0],
    "endToEndLatency50pct": [3.0, 3.0],
    "endToEndLatencyMax": [14.0, 13.0],
    "aggregatedEndToEndLatencyQuantiles": {"50.0": 3.0, "100.0": 14.0},
}
NEWER = OLDER | {
    "messageSize": 1024,
    "topics": 2,
    "partitions": 6,
    "producersPerTopic": 1,
    "consumersPerTopic": 3,
    "publishErrorRate": [0.0, 0.1],
    "publishDelayLatencyAvg": [200.5, 180.0],
    "publishDelayLatency99pct": [3169, 2000],
    "aggregatedPublishDelayLatencyQuantiles": {"50.0": 43, "100.0": 53280},
}


def written(tmp_path, content):
    path = tmp_path / "result.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def whole(found):
    for name, core in found.items():
        context = {"run_id": None, "test_id": None, "attempt": None, "from_region": None, "to_region": None}
        rows = [
            context | {"source_file": "a"} | {k: None if pd.isna(v) else v for k, v in row.items()}
            for row in core.astype(object).to_dict("records")
        ]
        assert len(tables.from_rows(name, rows)) == len(core)


def quantile(found, what, q, window=None):
    rows = found["quantiles"].query("what == @what and quantile == @q")
    rows = rows[rows.window.isna()] if window is None else rows[rows.window == window]
    return rows.latency_ms.tolist()


@pytest.mark.parametrize("result", [OLDER, NEWER], ids=["older", "newer"])
def test_each_number_is_in_its_place(tmp_path, result):
    found = openmessaging.read(written(tmp_path, result))
    whole(found)
    [run] = found["benchmark_runs"].to_dict("records")
    assert (run["driver"], run["n_windows"]) == ("Kafka", 2)
    assert found["benchmark_windows"].backlog_records.tolist() == [-3, 4]
    assert found["benchmark_windows"].max_end_to_end_ms.tolist() == [14, 13]
    assert quantile(found, "publish", 0.999, 0) == [9.125] and quantile(found, "publish", 0.999, 1) == [8.0]
    assert quantile(found, "publish", 0.999) == [9.0] and quantile(found, "publish", 0.99) == [7.25]
    assert quantile(found, "end to end", 1.0) == [14.0]


def test_sizes_and_the_delay_that_is_in_microseconds(tmp_path):
    found = openmessaging.read(written(tmp_path, NEWER))
    [run] = found["benchmark_runs"].to_dict("records")
    assert (run["record_bytes"], run["topics"], run["partitions"], run["consumers_per_topic"]) == (1024, 2, 6, 3)
    assert quantile(found, "publish delay", 0.99, 0) == [3.169] and quantile(found, "publish delay", 1.0) == [53.28]
    older = openmessaging.read(written(tmp_path, OLDER))["benchmark_runs"]
    assert older.record_bytes.isna().all() and older.topics.isna().all()


def test_no_window_is_averaged_away(tmp_path):
    found = openmessaging.read(written(tmp_path, NEWER))["quantiles"]
    stated = {1.75, 9.0, 12.5, 7.25, 3.0, 14.0, 2.0, 1.5, 9.125, 8.0, 3.169, 0.043, 53.28}
    assert set(found.latency_ms) == stated


@pytest.mark.parametrize("spelled", [str.upper, lambda name: name[0].upper() + name[1:], lambda name: "_".join(name)])
def test_forks_that_spell_names_otherwise(tmp_path, spelled):
    other = {spelled(name): value for name, value in NEWER.items()}
    there, here = (openmessaging.read(written(tmp_path, each)) for each in (other, NEWER))
    for name in here:
        pd.testing.assert_frame_equal(there[name], here[name])


def test_members_of_forks_that_are_not_known_are_passed_over(tmp_path):
    more = {"sent": [1], "histogram": "x", "publishLatencyMin": [0.5], "version": 3}
    there, here = (openmessaging.read(written(tmp_path, each)) for each in (NEWER | more, NEWER))
    for name in here:
        pd.testing.assert_frame_equal(there[name], here[name])


def test_what_was_not_measured_is_null(tmp_path):
    found = openmessaging.read(written(tmp_path, OLDER | {"publishLatencyAvg": ["NaN", None]}))
    assert found["benchmark_windows"].mean_latency_ms.isna().all()
    assert openmessaging.read(written(tmp_path, json.dumps(OLDER).replace("2.5, 2.0]", "NaN, 2.0]", 1)))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "a result in JSON"),
        ("[" * 100_000, "a result in JSON"),
        ([], "an object in JSON"),
        ({"start": {}}, "a list of rates"),
        ('{"publishRate": [1], "publishRate": [2]}', "a result in JSON"),
        ({"publishRate": [1], "publish_rate": [2]}, "only one of these two members"),
        (OLDER | {"publishRate": 3}, "a list of numbers"),
        (OLDER | {"publishRate": ["x"]}, "a number"),
        (OLDER | {"publishRate": [-1.0, 2.0]}, "values that table"),
        (OLDER | {"backlog": [1]}, "2 numbers, one for each window"),
        (NEWER | {"topics": 1.5}, "a whole number"),
        (OLDER | {"workload": 1}, "text"),
        (OLDER | {"aggregatedPublishLatencyQuantiles": {"101": 1}}, "an object that maps percentages"),
        (OLDER | {"aggregatedPublishLatencyQuantiles": {"9e99": 1}}, "an object that maps percentages"),
        (OLDER | {"aggregatedPublishLatencyQuantiles": {"x": 1}}, "an object that maps percentages"),
        (OLDER | {"aggregatedPublishLatencyQuantiles": {"50": 3, "60": 2}}, "do not decrease"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, content, expected):
    with pytest.raises(RawDataError) as error:
        openmessaging.read(written(tmp_path, content))
    assert expected in error.value.expected


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(RawDataError, match="No such file"):
        openmessaging.read(tmp_path / "none.json")


@pytest.mark.skipif(not SHARED.is_dir(), reason="no results of others next to this checkout")
@pytest.mark.parametrize("path", sorted(SHARED.glob("*.json")), ids=lambda path: path.stem[:30])
def test_results_of_others(path):
    result = json.loads(path.read_text())
    found = openmessaging.read(path)
    whole(found)
    quantiles = found["quantiles"]
    assert len(found["benchmark_windows"]) == len(result["publishRate"])
    for what, name in (("publish", "aggregatedPublish"), ("end to end", "aggregatedEndToEnd")):
        for q, digits in ((0.5, "50"), (0.99, "99"), (0.9999, "9999")):
            assert result[f"{name}Latency{digits}pct"] in quantile(found, what, q)
        total = quantiles[(quantiles.what == what) & quantiles.window.isna()]
        assert set(result[f"{name}LatencyQuantiles"].values()) <= set(total.latency_ms)
    assert quantiles.window.max() == len(result["publishRate"]) - 1


WINDOWED = ("Avg", "50pct", "75pct", "95pct", "99pct", "999pct", "9999pct", "Max")
UPSTREAM = ("messageSize", "topics", "partitions", "producersPerTopic", "consumersPerTopic")
DIALECTS = {
    # members of a result by its class TestResult in each repository: sizes, latencies, other lists
    "upstream of 2017": ((), ("publish",), ()),
    "upstream to 2022, Confluent, StreamNative": ((), ("publish", "endToEnd"), ()),
    "upstream of April 2022": ((), ("publish", "publishDelay", "endToEnd"), ()),
    "upstream, AutoMQ": (UPSTREAM, ("publish", "publishDelay", "endToEnd"), ("publishErrorRate",)),
    "Redpanda": (
        (*UPSTREAM, "sampleRateMillis"),
        ("publish", "publishDelay", "endToEnd", "schedule"),
        ("sent", "consumed", "publishFailed", "consumeFailed"),
    ),
}


def made_up(sizes, latencies, lists):
    """A result of three windows in which no number stands twice, and what it states of each latency."""
    numbers = iter(range(10, 10_000))
    rising = lambda n: [float(next(numbers)) for _ in range(n)]  # noqa: E731
    result = {"workload": "w", "driver": "d", "publishRate": rising(3), "consumeRate": rising(3), "backlog": [1, 2, 3]}
    result |= {name: next(numbers) for name in sizes} | {name: rising(3) for name in lists}
    if "sampleRateMillis" in sizes:
        result |= {"version": "x", "beginTime": "2026-01-01", "sampleRateMillis": 2_000}
    stated = {}
    for name in latencies:
        parts = ("Min", "50pct", "75pct", "99pct", "Max") if name == "schedule" else WINDOWED
        result |= {f"{name}Latency{part}": rising(3) for part in parts}
        whole = {str(q): value for q, value in zip((0.0, 50.0, 99.99, 100.0), rising(4), strict=True)}
        capital = f"{name[0].upper()}{name[1:]}"
        result[f"aggregated{capital}LatencyQuantiles"] = whole
        totals = [part for part in parts if name != "schedule"]
        result |= {f"aggregated{capital}Latency{part}": float(next(numbers)) for part in totals}
        kept = [value for key, value in result.items() if key.startswith(f"{name}Latency") and key.endswith("pct")]
        stated[name] = {*whole.values(), *(value for values in kept for value in values)} | {
            result[f"aggregated{capital}Latency{part}"] for part in totals if part.endswith("pct")
        }
    return result, stated


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_latency_of_every_dialect_is_read(tmp_path, dialect):
    sizes, latencies, lists = DIALECTS[dialect]
    result, stated = made_up(sizes, latencies, lists)
    found = openmessaging.read(written(tmp_path, result))
    whole(found)
    names = {"publish": "publish", "publishDelay": "publish delay", "endToEnd": "end to end", "schedule": "send call"}
    assert set(found["quantiles"].what) == {names[name] for name in latencies}
    for name, values in stated.items():
        per_ms = 1_000 if name == "publishDelay" else 1
        rows = found["quantiles"][found["quantiles"].what == names[name]]
        assert set((rows.latency_ms * per_ms).round(6)) == values
    windows, [run] = found["benchmark_windows"], found["benchmark_runs"].to_dict("records")
    assert windows.publish_records_per_s.tolist() == result["publishRate"]
    assert windows.max_latency_ms.tolist() == result["publishLatencyMax"]
    assert run["record_bytes"] == result.get("messageSize") or pd.isna(run["record_bytes"])
    assert run["topics"] == result.get("topics") or pd.isna(run["topics"])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.fuzz
@given(name=st.sampled_from(sorted(NEWER)), value=VALUES, damage=st.tuples(st.integers(0, 400), st.text(max_size=3)))
def test_any_file_ends_in_tables_or_in_a_refusal(tmp_path, name, value, damage):
    at, text = damage
    content = json.dumps(NEWER | {name: value})
    if text:
        content = content[:at] + text + content[at + 1 :]
    path = tmp_path / "result.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    try:
        found = openmessaging.read(path)
    except RawDataError:
        return
    whole(found)
