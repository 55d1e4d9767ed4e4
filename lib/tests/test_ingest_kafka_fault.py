"""Reading a fault episode: every record due is a row, and a malformed file is refused with its line."""

import fault_samples as samples
import pandas as pd
import pytest

from wanbench import tables
from wanbench.errors import RawDataError
from wanbench.read.ingest import kafka_fault
from wanbench.read.ingest.rows import joined

CONTEXT = {column.name: None for column in tables.CONTEXT} | {"source_file": "t.fault.json"}


@pytest.fixture
def read(tmp_path):
    def reading(**changes):
        return kafka_fault.read(samples.write(tmp_path, **changes))

    return reading


def test_all_tables_are_valid(read):
    found = read()
    assert set(found) == {
        "faults", "fault_clients", "fault_records", "fault_receipts", "fault_log", "fault_errors", "cluster_samples",
        "group_samples", "controller_events",
    }  # fmt: skip
    for name, rows in found.items():
        assert len(joined(name, [(rows, CONTEXT)])) == len(rows) > 0


def test_the_fault_is_a_row_with_its_settings_and_times(read):
    [row] = read()["faults"].to_dict("records")
    assert (row["fault"], row["at"], row["regions"], row["min_insync"]) == ("cut", "eu", "eu", 2)
    assert row["session_timeout_ms"] == 6000 and row["broker_settings"] == "" and row["group_protocol"] == "classic"
    assert row["heal_at_s"] - row["fault_at_s"] == 1
    assert pd.isna(row["damaged_sequence"])


def test_what_was_damaged_on_purpose_is_named(read):
    [row] = read(damage={"kind": "drop", "producer": 0, "sequence": 3})["faults"].to_dict("records")
    assert (row["damaged_producer"], row["damaged_sequence"]) == (0, 3)


def test_what_makes_an_episode_incomplete_is_read_and_may_be_missing(read):
    assert read()["faults"].incomplete.isna().all()
    assert read(incomplete="producer 0 did not end")["faults"].incomplete[0] == "producer 0 did not end"


def test_every_record_that_came_due_is_a_row(read):
    rows = read()["fault_records"]
    assert rows.sequence.tolist() == [0, 1, 2, 3] and rows.partition.tolist() == [0, 1, 0, 1]
    assert (rows.intended_at_s - 1_790_000_002).round(6).tolist() == [0, 0.1, 0.2, 0.3]
    assert rows.acknowledged_at_s.notna().tolist() == [True, False, False, False]
    assert rows.sent_at_s.notna().tolist() == [True, True, True, False]
    assert rows.error.fillna("").tolist() == ["", "_MSG_TIMED_OUT", "", ""]
    assert rows.offset[0] == 5


def test_a_damaged_record_keeps_its_place_alone(read):
    found = read()
    assert found["fault_receipts"].damaged.tolist() == [False, True]
    for name in ("fault_receipts", "fault_log"):
        [row] = found[name][found[name].damaged].to_dict("records")
        assert (row["partition"], row["offset"]) == (1, 3)
    assert found["fault_log"].producer.isna().tolist() == [False, True]


def test_a_sample_that_says_the_same_again_is_expanded(read):
    rows = read()["cluster_samples"]
    assert rows.partition.fillna(-1).tolist() == [0, 1, 0, 1, -1, 0, 1]
    assert rows.isr.fillna("?").tolist() == ["1,2", "1,2", "1,2", "1,2", "?", "1", ""]
    assert rows.leader.fillna(0).tolist() == [1, 2, 1, 2, 0, 1, 0]
    assert rows.error[4] == "RequestTimedOutError: no answer" and rows.n_isr.fillna(-1).tolist()[-1] == 0


def test_groups_have_a_row_per_member_and_one_where_there_is_none(read):
    rows = read()["group_samples"]
    assert rows.member.fillna(-1).tolist() == [0, -1, -1] and rows.client_region[0] == "eu"
    assert rows.state.fillna("?").tolist() == ["Stable", "Empty", "?"] and "NodeNotReady" in rows.error[2]


def test_events_of_the_topic_and_of_brokers_come_from_the_nodes_logs(read):
    rows = read()["controller_events"]
    assert rows.kind.tolist() == ["elected", "fenced", "elected", "isr-shrunk", "unfenced", "isr-grown", "isr-grown"]
    assert rows.broker.fillna(0).tolist() == [1, 2, 1, 0, 2, 0, 0] and rows.partition.fillna(-1).tolist() == [
        -1,
        -1,
        1,
        0,
        -1,
        0,
        1,
    ]
    assert rows.at_s[1] - rows.at_s[0] == 1 and "session has timed out" in rows.text[1]
    with pytest.raises(RawDataError, match="a line of a node's log"):
        read(log_lines=samples.LOG_LINES + "at kafka.Broker.run\n")


def test_changes_and_errors_of_clients(read):
    found = read()
    [error] = found["fault_errors"].to_dict("records")
    assert (error["role"], error["kind"]) == ("producer", "_TRANSPORT")


def test_a_last_line_that_was_cut_short_is_left_out(read):
    lines = b'{"program":"fault consumer","format":1,"origin_ns":1}\n["received",0,0,0,5,7,false]\n["rece'
    assert len(read(text={("consumer", 0): lines})["fault_receipts"]) == 1


def test_an_episode_whose_programs_never_started_is_a_row_with_its_error(read):
    found = read(
        top={"programs": []}, times={}, error="the cluster is not healthy", hit=[], **{"settings": samples.SETTINGS}
    )
    assert found["faults"].error[0] == "the cluster is not healthy"


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        (("producer", 0), ["sent", -1, 5]),
        (("producer", 0), ["sent", 1, 10**15]),
        (("producer", 0), ["sent", True, 5]),
        (("producer", 0), ["acknowledged", 0, 5, 2, 0]),
        (("producer", 0), ["failed", 0, 5, 7]),
        (("producer", 0), ["lost", 0, 5]),
        (("producer", 0), {"due": 10**12}),
        (("producer", 0), {"start_ns": -1, "interval_ns": 5}),
        (("producer", 0), "text"),
        (("producer", 0), []),
        (("consumer", 0), ["received", 0, 0, 2, 5, 7, False]),
        (("consumer", 0), ["received", 0, None, 1, 5, 7, False]),
        (("consumer", 0), ["received", 0, 0, 1, 5, 7, True]),
        (("consumer", 0), ["assigned", 7, [2]]),
        (("consumer", 0), ["error", 7, "x"]),
        (("log", 0), [0, 5, 0, 0]),
        (("log", 0), [5, 5, 0, 0, False]),
        (("watch", 0), [1.0, 1.0, 1, [[1, [1]], [1, [1]], [1, [1]]]]),
        (("watch", 0), [1.0, 1.0, 1, [[1, "1"]]]),
        (("watch", 0), [1.0, 1.0, None, None]),
        (("groups", 0), [1.0, "g", "Stable", [[0]]]),
        (("groups", 0), [1.0, "g", "Stable", None]),
    ],
)
def test_a_malformed_line_is_refused_with_its_number(read, key, bad):
    lines = samples.EPISODE[key]
    with pytest.raises(RawDataError) as caught:
        read(programs={key: [*lines, bad]})
    assert caught.value.line_number == len(lines) + 1 and f"{key[0]}-0" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"format": 2}, "format"),
        ({"programs": [{"role": "spy"}]}, "programs"),
        ({"programs": [{"role": "log", "file": {"name": "../x", "sha256": "0"}}]}, "file"),
        ({"settings": samples.SETTINGS | {"topic_settings": {"a": 1}}}, "topic_settings"),
        ({"settings": samples.SETTINGS | {"topic_settings": [["min.insync.replicas", "two"]]}}, "min.insync"),
        ({"settings": samples.SETTINGS | {"acks": "2"}}, "acks"),
        ({"hit": "eu"}, "hit"),
        ({"times": {"fault_at_s": -1}}, "fault_at_s"),
    ],
)
def test_a_malformed_episode_is_refused(read, change, wrong):
    with pytest.raises(RawDataError, match=wrong):
        read(top=change)


def test_a_file_that_was_changed_is_refused(tmp_path):
    path = samples.write(tmp_path)
    (tmp_path / "t.log-0.jsonl.gz").write_bytes(b"")
    with pytest.raises(RawDataError, match="SHA-256"):
        kafka_fault.read(path)
    (tmp_path / "t.log-0.jsonl.gz").unlink()
    with pytest.raises(RawDataError, match="log-0"):
        kafka_fault.read(path)
