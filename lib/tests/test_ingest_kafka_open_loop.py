"""Files of open-loop loads: what their tables say, and damaged files that are refused."""

import gzip
import hashlib
import json

import pytest
from run_folders import claimed

from wanbench import methods, tables
from wanbench.errors import RawDataError
from wanbench.measure.experiments import KafkaOpenLoop, KafkaTrial
from wanbench.measure.plan import Trial, make_trials
from wanbench.methods.tails.distribution import decoded
from wanbench.read.ingest import kafka_open_loop
from wanbench.read.ingest.readers import reader_in_run
from wanbench.read.ingest.trials import trials

SETTINGS = {
    "rate_records_per_s": 4.0, "record_bytes": 100, "topics": 1, "partitions": 3, "replication": 1, "producers": 1,
    "groups": 1, "consumers": 1, "batch_bytes": 16_384, "linger_ms": 5, "idempotence": True, "payload": "random",
    "acks": "all", "compression": "none", "warmup_s": 1.0, "duration_s": 2.0,
}  # fmt: skip
SECOND = {
    "n_due": 2, "n_handed": 2, "n_answered": 2, "n_failed": 0, "n_sent_in": 2, "n_acknowledged_in": 2, "backlog": 1,
    "blocked_us": 500, "late_max_us": 900,
}  # fmt: skip
LATE = [[0, 1, 9, 1], [0, 2], [0, 1, 400, 1]]
"""Lateness of two processes together: in the last second a record of each is 40 ms late."""


def packed(lines):
    return gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines), mtime=0)


def write(folder, producing=None, consuming=None, **more):
    """A load at 4 records/s for 3 s by two processes; the group misses one record, and has one twice."""
    producing = producing or [
        {"program": "open-loop producer", "format": 1, "client": "2.16.0"},
        {"ready": 1},
        {"error": ["_TRANSPORT", "gone", 2]},
        *({"second": n, **SECOND, "late": LATE[n], "publish": [10_000 * (n + 1), 2]} for n in range(3)),
        {"ended": 1},
    ]
    consuming = consuming or [
        {"program": "open-loop consumer", "format": 1, "client": "2.16.0"},
        *(
            {
                "second": n, "n_received": 4 - (n == 2), "n_duplicates": int(n == 1), "n_negative": 0,
                "n_received_in": 3 - (n == 2), "latency": [20_000, 4 - (n == 2)],
            }
            for n in range(3)
        ),
        {"ended": 1},
    ]  # fmt: skip
    named = {"producers": [], "consumers": []}
    for role, number, lines in (("producer", 0, producing), ("producer", 1, producing), ("consumer", 0, consuming)):
        content = packed(lines)
        name = f"s.{role}-{number}.jsonl.gz"
        (folder / name).write_bytes(content)
        file = {"name": name, "sha256": hashlib.sha256(content).hexdigest()}
        named[f"{role}s"].append({"file": file})
    named["consumers"][0]["clock"] = {"offset_ms": -3.0, "error_ms": 0.25, "method": "read"}
    about = {"format": 1, "settings": SETTINGS, "start_s": 1_000.0, "error": None, **named, **more}
    (folder / "s.load.json").write_text(json.dumps(about))
    return folder / "s.load.json"


def test_processes_are_added_up_and_the_warm_up_is_marked(tmp_path):
    found = kafka_open_loop.read(write(tmp_path))
    [row] = found["open_loop_loads"].to_dict("records")
    assert (row["n_intended"], row["n_sent"], row["n_acknowledged"], row["n_failed"]) == (12, 12, 12, 0)
    assert (row["n_received_per_group_min"], row["n_duplicates"], row["backlog_records"]) == (11, 1, 2)
    rates = [row[f"{name}_records_per_s"] for name in ("sent", "acknowledged", "received")]
    assert rates == [4, 4, 2.5] and row["blocked_s"] == pytest.approx(0.003)
    assert (row["clock_offset_ms"], row["clock_error_ms"], row["clock_method"]) == (-3, 0.25, "read")
    assert (row["client_errors"] == "_TRANSPORT 4" and row["error"] is None) or row["error"] != row["error"]
    histograms = found["open_loop_histograms"]
    publish, received = (histograms[histograms.what == what] for what in ("publish", "end to end"))
    assert publish.group.isna().all() and received.group.tolist() == [0] * 3
    assert publish.n.tolist() == [4] * 3 and received.n_lost.tolist() == [0, 0, 1]
    values, counts = decoded(publish.histogram.iloc[2])
    assert values[0] == pytest.approx(30_000, rel=1e-3) and counts.tolist() == [4]


def test_the_generator_fell_behind_if_it_was_late_for_more_than_one_in_a_hundred(tmp_path):
    """2 of the 8 records that count are 40 ms late; acknowledgements take 20 ms at the median."""
    [row] = kafka_open_loop.read(write(tmp_path))["open_loop_loads"].to_dict("records")
    assert row["fell_behind"] and row["late_p99_ms"] == pytest.approx(40)
    lines = [
        {"program": "open-loop producer", "format": 1},
        *({"second": n, **SECOND, "late": LATE[n], "publish": [2_000_000, 2]} for n in range(3)),
    ]
    found = kafka_open_loop.read(write(tmp_path, producing=lines))
    assert not found["open_loop_loads"].fell_behind[0], "40 ms are little beside 2 s"
    assert not found["open_loop_histograms"].fell_behind.any()


def test_a_group_that_lets_records_wait_is_a_generator_that_fell_behind(tmp_path):
    """Half of the records wait for the group's program for 15 ms, beside a median of 20 ms; producers are on time."""
    seconds = [{"second": n, "n_received": 4, "n_duplicates": 0, "n_negative": 0, "n_received_in": 4} for n in range(3)]
    for late, behind in ([0, 2, 150, 2], True), ([0, 2, 40, 2], False):
        lines = [{**second, "latency": [20_000, 4], "late": late} for second in seconds]
        lines = [{"program": "open-loop consumer", "format": 1}, *lines]
        sent = [{"second": n, **SECOND, "late": [0, 2], "publish": [20_000, 2]} for n in range(3)]
        sent = [{"program": "open-loop producer", "format": 1}, *sent]
        [row] = kafka_open_loop.read(write(tmp_path, sent, lines))["open_loop_loads"].to_dict("records")
        assert row["fell_behind"] == behind and row["late_p99_ms"] == pytest.approx(late[2] / 10)


def test_a_load_that_never_started_is_a_row_without_seconds(tmp_path):
    lines = [{"program": "open-loop producer", "format": 1}]
    found = kafka_open_loop.read(write(tmp_path, producing=lines, start_s=None, error="no broker", consumers=[]))
    [row] = found["open_loop_loads"].to_dict("records")
    assert (row["error"] == "no broker" and row["n_sent"] == 0 and row["fell_behind"] is None) or not row["fell_behind"]
    assert found["open_loop_histograms"].empty


def test_what_a_group_has_nothing_of_is_lost(tmp_path):
    whole = json.loads(write(tmp_path).read_text())["consumers"][0]
    (tmp_path / "s.consumer-0.jsonl.gz").rename(tmp_path / "whole.jsonl.gz")
    whole["file"]["name"] = "whole.jsonl.gz"
    path = write(tmp_path, consuming=[{"program": "open-loop consumer", "format": 1}])
    about = json.loads(path.read_text())
    path.write_text(json.dumps(about | {"consumers": [whole, *about["consumers"]]}))
    found = kafka_open_loop.read(path)
    received = found["open_loop_histograms"].query("what == 'end to end' and group == 1")
    assert received.n.tolist() == [0] * 3 and received.n_lost.tolist() == [4] * 3
    [row] = found["open_loop_loads"].to_dict("records")
    assert (row["n_received_per_group_min"], row["received_records_per_s"]) == (0, 1.25)


PROGRAM = {"program": "open-loop producer", "format": 1}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([{"program": "ping"}], "first line of an open-loop producer"),
        ([PROGRAM, [1]], "JSON object"),
        ([PROGRAM, {"second": -1}], "whole number from 0"),
        ([PROGRAM, {"second": 10**9}], "a second below"),
        ([PROGRAM, {"second": 0, "late": [1], "publish": []}], "alternating values and counts"),
        ([PROGRAM, {"second": 0, "late": [1, -1], "publish": []}], "whole numbers from 0"),
        ([PROGRAM, {"second": 0, "late": [], "publish": [True, 1]}], "whole numbers from 0"),
        ([PROGRAM, {"second": 0, "n_due": "2", "late": [], "publish": []}], "whole number"),
        ([PROGRAM, {"error": "oh"}], "name, text and number"),
    ],
)
def test_lines_that_no_program_prints_are_refused(tmp_path, lines, reason):
    with pytest.raises(RawDataError, match=reason):
        kafka_open_loop.read(write(tmp_path, producing=lines))


def test_files_that_do_not_belong_are_refused(tmp_path):
    path = write(tmp_path)
    (tmp_path / "s.producer-1.jsonl.gz").write_bytes(b"other")
    with pytest.raises(RawDataError, match="as recorded by the experiment"):
        kafka_open_loop.read(path)
    (tmp_path / "s.producer-1.jsonl.gz").unlink()
    with pytest.raises(RawDataError, match=r"producer-1.*a file that can be read"):
        kafka_open_loop.read(path)
    with pytest.raises(RawDataError, match="in the same folder"):
        kafka_open_loop.read(write(tmp_path, producers=[{"file": {"name": "../x", "sha256": "0"}}]))
    for wrong in ({"format": 2}, {"settings": {}}, {"settings": SETTINGS | {"duration_s": 1e9}}):
        with pytest.raises(RawDataError):
            kafka_open_loop.read(write(tmp_path, **wrong))


def test_the_reader_is_found_by_the_name_of_the_load_s_file():
    assert reader_in_run("kafka_open_loop", "s.load.json").read is kafka_open_loop.read
    assert reader_in_run("kafka_open_loop", "s.producer-0.jsonl.gz") is None


def test_trials_with_open_loop_loads_have_their_settings_and_break_no_rates(tmp_path):
    load = KafkaOpenLoop(
        900, topics=3, producers=2, consumer_settings={"socket.receive.buffer.bytes": 4_096}, client_rack="region"
    )
    plan = make_trials([Trial("x", (KafkaTrial(load),), 1)], from_region="a", to_region="b")
    with claimed(tmp_path, plan=json.loads(json.dumps(plan.as_dict()))) as writer:
        writer.start({"kind": "scripted"})
        found = trials(writer.finish())
    [row] = found["trials"].to_dict("records")
    assert (row["producers"], row["consumer_groups"], row["target_records_per_s"]) == (6, 3, 150)
    assert (row["client_receive_buffer_bytes"], row["client_rack"], row["acks"]) == (4_096, "region", "all")
    test = {name: row[name] for name in ("run_id", "test_id", "from_region", "to_region")}
    test |= {"attempt": 1, "outcome": "done", "started_at_utc": "2026-01-01T00:00:00Z"}
    found["tests"] = tables.from_rows("tests", [{**filler("tests"), **test}])
    rates = methods.trial_rates(found)
    assert rates.rates.empty and len(rates.left_out) == 1 and rates.sentence == "No trial was measured."
    assert len(rates.table()) == 0 and rates.cautions


def filler(name):
    """A value for each column of a table that may not be null."""
    by_type = {"text": "x", "count": 1, "number": 1.0, "flag": False, "time": "2026-01-01T00:00:00Z"}
    return {
        column.name: (column.allowed or (by_type[column.type],))[0]
        for column in tables.table(name).columns
        if not column.nullable
    }
