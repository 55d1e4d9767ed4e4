"""What reads a probe: nothing is dropped, what goes wrong is counted, damaged files are refused."""

import json

import numpy as np
import pandas as pd
import probe_samples as samples
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from wanbench import tables
from wanbench.errors import RawDataError
from wanbench.ingest import kafka_probe
from wanbench.ingest.kafka_probe import files as probe_files
from wanbench.ingest.kafka_probe import histograms

READ: set[str] = set()


def whole(name, core):
    """The core columns as a whole table, checked."""
    context = {"run_id": None, "test_id": None, "attempt": None, "from_region": None, "to_region": None}
    rows = [context | {"source_file": "a"} | row for row in core.astype(object).to_dict("records")]
    rows = [{k: None if v is pd.NA or v != v else v for k, v in row.items()} for row in rows]
    return tables.from_rows(name, rows)


def test_everything_well(tmp_path):
    path = samples.write(
        tmp_path,
        samples.producer(),
        samples.consumer([samples.receipt(n, 25 + n) for n in range(4)]),
        settings={"producers": 2},
    )
    found = kafka_probe.read(path)
    records = found["probe_records"]
    assert records.latency_ms.tolist() == [25, 26, 27, 28] and not records.clock_limited.any()
    assert (records.acknowledged_at_s - records.sent_at_s).round(6).tolist() == [0.03] * 4
    assert records.publish_latency_ms.tolist() == pytest.approx([30.1] * 4)
    [row] = found["probes"].to_dict("records")
    assert {name: row[name] for name in row if name.startswith("n_")} == {
        "n_intended": 4, "n_sent": 4, "n_acknowledged": 4, "n_received": 4, "n_missing": 0, "n_duplicates": 0,
        "n_damaged": 0, "n_negative": 0, "n_clock_limited": 0, "n_queued": 0,
    }  # fmt: skip
    for name, core in found.items():
        whole(name, core)


def test_what_goes_wrong_is_counted_and_stays(tmp_path):
    """A lost record, a refused one, one that came twice, one damaged, and two groups of which one missed a record."""
    producer = samples.producer(
        6, sent=[0, 1, 2, 3, 4, 5], acknowledged=[0, 1, 2, 3], failed=[(4, "E: no"), (5, "E: x")]
    )
    first = [
        samples.receipt(0, 20),
        samples.receipt(2, 20, right=False),
        samples.receipt(3, 20),
        samples.receipt(0, 90),
    ]
    second = [samples.receipt(n, 30) for n in (0, 1, 2, 3, 5)]
    found = kafka_probe.read(
        samples.write(tmp_path, producer, samples.consumer(first), samples.consumer(second))
    )
    [row] = found["probes"].to_dict("records")
    assert (row["n_intended"], row["n_sent"], row["n_acknowledged"], row["n_received"]) == (6, 6, 4, 3)
    assert (row["n_missing"], row["n_duplicates"], row["n_damaged"]) == (1, 1, 1)
    records = found["probe_records"].set_index(["sequence", "group"]).sort_index()
    assert records.loc[(0, 0), "latency_ms"].tolist() == [20, 90]
    assert records.loc[(0, 0), "duplicate"].tolist() == [False, True]
    assert records.loc[(2, 0), "damaged"] and records.loc[(2, 0), "latency_ms"] == 20
    never = found["probe_records"].query("sequence == 4")
    assert never.group.isna().all() and never.latency_ms.isna().all() and never.error.tolist() == ["E: no"]
    assert found["probe_records"].query("sequence == 5").group.tolist() == [1]


@pytest.mark.parametrize(
    "settings, leaders, publish_ms, queued",
    [
        ({"producers": 1}, (1,), 19, []),
        ({"producers": 1}, (1,), 21, [1, 2, 3]),
        ({"producers": 2}, (1,), 39, []),
        ({"producers": 2}, (1,), 41, [2, 3]),
        ({"producers": 1}, (1, 2), 39, []),
        ({"producers": 1}, (1, 2), 41, [2, 3]),
        ({"producers": 1}, (1, 1), 39, [1, 2, 3]),
        ({"producers": 1}, (None,), 21, [1, 2, 3]),
        ({}, (1,), 41, None),
    ],
)
def test_a_record_that_waits_for_the_one_ahead_on_its_connection_is_marked(
    tmp_path, settings, leaders, publish_ms, queued
):
    """The interval is 20 ms; a connection is that of a producer to a leader."""
    path = samples.write(
        tmp_path,
        samples.producer(publish_ms=publish_ms),
        samples.consumer([]),
        settings=settings,
        leaders=leaders,
    )
    found = kafka_probe.read(path)
    records, n_queued = found["probe_records"], found["probes"].n_queued[0]
    if queued is None:
        assert records.queued.isna().all() and pd.isna(n_queued)
    else:
        assert records[records.queued].sequence.tolist() == queued and n_queued == len(queued)


def test_behind_a_record_without_an_answer_the_next_waits_and_behind_a_failed_one_it_does_not(tmp_path):
    producer = samples.producer(5, acknowledged=[0, 2], failed=[(3, "E: no")], publish_ms=5)
    path = samples.write(tmp_path, producer, settings={"producers": 1}, leaders=(1,))
    found = kafka_probe.read(path)["probe_records"]
    assert found[found.queued].sequence.tolist() == [2, 4]


def test_a_probe_that_did_not_start_is_a_row_with_the_reason(tmp_path):
    why = "after 300 s the probe's consumer 0 on eu/0 waits for a connection to the cluster"
    for files in ({"producer": None, "consumers": []}, {}):
        path = samples.write(
            tmp_path, b"", samples.consumer([]), settings={"interval_s": 0.2}, not_started=why, files=files
        )
        found = kafka_probe.read(path)
        [row] = found["probes"].to_dict("records")
        assert (row["error"], row["interval_s"], row["n_intended"], row["n_received"]) == (why, 0.2, 0, 0)
        assert found["probe_records"].empty and found["histograms"].empty
        for name, core in found.items():
            whole(name, core)


def test_what_a_program_waited_for_before_it_was_ready_is_not_read(tmp_path):
    waits = samples.lines([{"waits_for": "a connection to the cluster"}])
    path = samples.write(
        tmp_path, waits + samples.producer(), waits + samples.consumer([samples.receipt(0, 5)])
    )
    assert kafka_probe.read(path)["probes"].n_received.tolist() == [1]


def test_negative_and_uncertain_latencies_are_marked_and_stay(tmp_path):
    receipts = [samples.receipt(n, ms) for n, ms in enumerate((105.0, 101.0, 99.0, 150.0))]
    path = samples.write(
        tmp_path, samples.producer(), samples.consumer(receipts), clock=(100.0, 3.0, "asked")
    )
    found = kafka_probe.read(path)
    assert found["probe_records"].latency_ms.tolist() == [5, 1, -1, 50]
    assert found["probe_records"].clock_limited.tolist() == [False, True, True, False]
    [row] = found["probes"].to_dict("records")
    assert (row["n_negative"], row["n_clock_limited"], row["clock_offset_ms"]) == (1, 2, 100)
    assert found["histograms"].n.sum() == 4 and found["histograms"].n_negative.sum() == 1


def test_without_clocks_there_is_no_latency(tmp_path):
    path = samples.write(
        tmp_path,
        samples.producer(),
        samples.consumer([samples.receipt(0, 20)]),
        clock=(None, None, "not known"),
    )
    found = kafka_probe.read(path)
    assert found["probe_records"].latency_ms.isna().all() and found["probes"].n_received[0] == 1
    assert found["histograms"].empty


@pytest.mark.parametrize(
    ("stopped_after_ms", "ended", "due"), [(None, True, 10), (45, True, 3), (40, True, 2), (None, False, 2)]
)
def test_only_send_times_that_came_are_intended(tmp_path, stopped_after_ms, ended, due):
    stopped_ns = None if stopped_after_ms is None else samples.START_NS + stopped_after_ms * 1_000_000
    producer = samples.producer(10, sent=[0, 1], stopped_ns=stopped_ns, ended=ended)
    found = kafka_probe.read(samples.write(tmp_path, producer, samples.consumer([samples.receipt(0, 20)])))
    assert found["probes"].n_intended[0] == due == len(found["probe_records"])


def test_a_program_that_was_killed_is_read_up_to_there(tmp_path):
    producer = samples.producer(4, ended=False)[:-7]
    found = kafka_probe.read(
        samples.write(tmp_path, producer, samples.consumer([samples.receipt(0, 20)])[:-9])
    )
    assert found["probes"].n_acknowledged[0] == 3 and found["probes"].n_received[0] == 1


def test_windows_add_up_to_the_whole(tmp_path):
    rng = np.random.default_rng(1)
    latencies = np.round(rng.lognormal(3, 1, 2_000), 3)
    receipts = [samples.receipt(n, ms) for n, ms in enumerate(latencies)]
    found = kafka_probe.read(samples.write(tmp_path, samples.producer(2_000), samples.consumer(receipts)))
    windows = found["histograms"]
    assert windows.window.tolist() == [0, 1, 2, 3] and windows.n.tolist() == [500] * 4
    merged = HdrHistogram(1, 3_600_000_000, 3)
    for text in windows.histogram:
        merged.decode_and_add(text)
    at_once = HdrHistogram.decode(histograms.encoded(latencies * 1_000))
    assert merged.get_total_count() == 2_000
    for q in (0.5, 0.9, 0.99, 0.999):
        exact = np.quantile(latencies, q, method="inverted_cdf") * 1_000
        assert merged.get_value_at_percentile(100 * q) == at_once.get_value_at_percentile(100 * q)
        assert merged.get_value_at_percentile(100 * q) == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda p, f: p.write_text("[]"), "a probe in JSON"),
        (lambda p, f: p.write_text("{"), "a probe in JSON"),
        (lambda p, f: p.write_text('{"format": 2}'), "format 1"),
        (lambda p, f: f.write_bytes(f.read_bytes() + b"x"), "SHA-256"),
        (lambda p, f: f.unlink(), "can be read"),
        (
            lambda p, f: p.write_text(p.read_text().replace("0001.1.producer", "../producer")),
            "in the same folder",
        ),
    ],
)
def test_a_damaged_probe_is_refused(tmp_path, change, expected):
    path = samples.write(tmp_path, samples.producer(), samples.consumer([samples.receipt(0, 20)]))
    change(path, tmp_path / "0001.1.producer.jsonl")
    with pytest.raises(RawDataError) as error:
        kafka_probe.read(path)
    assert expected in error.value.expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('["received", 9, 1, 1, 0, 0, true]', "a sequence with the intended time"),
        ('["received", 0, 1, 1, 0, 0, true]', "a sequence with the intended time"),
        ('["received", 0, 1, 1, 0, 0]', "a line of a probe's consumer"),
        ('["received", 0, 1, 1e99, 0, 0, true]', "time, partition"),
        ("nonsense", "a line of JSON"),
        ("NaN", "a line of JSON"),
        ("[" * 100_000, "a line of JSON"),
    ],
)
def test_the_line_at_fault_is_named(tmp_path, line, expected):
    good = samples.consumer([samples.receipt(0, 20)]).splitlines(keepends=True)
    path = samples.write(
        tmp_path, samples.producer(), b"".join([*good[:2], line.encode() + b"\n", *good[2:]])
    )
    with pytest.raises(RawDataError) as error:
        kafka_probe.read(path)
    assert error.value.line_number == 3 and expected in error.value.expected


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def ends_well(path):
    """The files are refused, or read; what is read and differs from the last that was read is made into tables."""
    try:
        about = probe_files.open_probe(path)
        programs = probe_files.Programs.open(path, about)
    except RawDataError:
        return
    content = repr((about, programs.happened, programs.received, programs.due))
    if content not in READ:
        READ.add(content)
        for name, core in kafka_probe.read(path).items():
            whole(name, core)


@pytest.mark.fuzz
@given(st.data())
def test_any_file_ends_in_tables_or_in_a_refusal(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("probe")
    contents = [samples.producer(3), samples.consumer([samples.receipt(n, 20) for n in range(3)])]
    at = data.draw(st.integers(0, 1))
    rows = [json.loads(line) for line in contents[at].splitlines()]
    row = data.draw(st.integers(0, len(rows) - 1))
    if isinstance(rows[row], list) and data.draw(st.booleans()):
        rows[row][data.draw(st.integers(0, len(rows[row]) - 1))] = data.draw(VALUES)
    elif isinstance(rows[row], dict) and data.draw(st.booleans()):
        rows[row][data.draw(st.sampled_from([*rows[row], "stopped_ns"]))] = data.draw(VALUES)
    else:
        rows[row] = data.draw(VALUES)
    contents[at] = samples.lines(rows)
    ends_well(samples.write(folder, *contents))


@pytest.mark.fuzz
@given(st.data())
def test_any_settings_end_in_tables_or_in_a_refusal(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("probe")
    path = samples.write(folder, samples.producer(3), samples.consumer([samples.receipt(0, 20)]))
    about = json.loads(path.read_text())
    place = data.draw(
        st.sampled_from(
            [about, about["clock"], about["files"], about["settings"], about["files"]["producer"]]
        )
    )
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(VALUES)
    path.write_text(json.dumps(about))
    ends_well(path)
