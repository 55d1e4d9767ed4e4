"""Pauses in real logs of a broker and of its JVM, and in damaged ones."""

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from wanbench.errors import RawDataError
from wanbench.read import ingest
from wanbench.read.ingest import broker_pauses
from wanbench.read.ingest.readers import reader_in_run

SAMPLES = Path(__file__).parent / "samples" / "kafka_cluster"
SAME_PAUSE_S = 0.005
"""So far apart may the recorded logs give the begin of one pause: as a collection, and as the safepoint around it."""
JVM, KAFKA = SAMPLES / "broker-1.jvm.log", SAMPLES / "broker-1.server.log"


def test_the_jvm_s_log_has_collections_and_safepoints():
    found = broker_pauses.read(JVM)["broker_pauses"]
    assert found.kind.value_counts().to_dict() == {"safepoint": 35, "gc": 7}
    [full] = found[found.text == "Pause Full (Diagnostic Command)"].to_dict("records")
    ended = datetime(2026, 11, 22, 20, 18, 33, 717_000, tzinfo=UTC).timestamp()
    assert full["duration_ms"] == 187.098 and full["node_id"] == 1 and full["kind"] == "gc"
    assert full["at_s"] == pytest.approx(ended - 0.187098, abs=1e-6)
    [same] = found[found.text == "G1CollectFull"].to_dict("records")
    assert same["duration_ms"] == 188.744857 and abs(same["at_s"] - full["at_s"]) < SAME_PAUSE_S


def test_kafka_s_log_has_rolls_and_snapshots():
    found = broker_pauses.read(KAFKA)["broker_pauses"]
    assert found.kind.value_counts().to_dict() == {"roll": 6, "snapshot": 6}
    assert found.duration_ms.max() == 72 and set(found.text) == {"t-0", "t-1", "t-2"}


def test_a_run_keeps_them_by_name_compressed_or_not(tmp_path):
    for name in ("session-1.broker-12.jvm.log.gz", "session-1.controller-4.server-2.log.gz"):
        assert reader_in_run("kafka_cluster", name).read is broker_pauses.read
    assert reader_in_run("kafka_cluster", "session-1.broker-1.settings.json") is None
    path = tmp_path / "session-1.broker-12.jvm-2.log.gz"
    path.write_bytes(gzip.compress(JVM.read_bytes()))
    assert set(broker_pauses.read(path)["broker_pauses"].node_id) == {12}


def test_a_log_of_nothing_or_cut_short_is_read_as_far_as_it_goes(tmp_path):
    whole = JVM.read_bytes()
    for cut in (0, len(whole) - 1, whole.index(b"\n") + 30):
        path = tmp_path / "log"
        path.write_bytes(whole[:cut])
        frame = broker_pauses.read(path)["broker_pauses"]
        assert len(frame) <= 41 and frame.node_id.isna().all()


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (b"[gc       ] GC(0)", b"[gc,heap  ] GC(0)", 3),
        (b"39.064ms", b"39.064", 3),
        (b"Total: 90627 ns", b"Total: none", 2),
        (b"Total: 90627 ns", b"Total: " + b"9" * 40 + b" ns", 2),
        (b"2026-11-22T20:16:31.170", b"2026-99-22T20:16:31.170", 3),
        (b"[2026-11-22T20:16:29.119+0000][gc] Using G1", b"# gc log of something", 1),
        (b"[2026-11-22T20:16:30.388+0000]", b"[1.388s]", 2),
    ],
)
def test_a_foreign_line_is_named(tmp_path, before, after, line):
    path = tmp_path / "a.jvm.log"
    assert before in JVM.read_bytes()
    path.write_bytes(JVM.read_bytes().replace(before, after, 1))
    with pytest.raises(RawDataError) as error:
        broker_pauses.read(path)
    assert error.value.line_number == line
    found = ingest.read_files([path, KAFKA], "kafka_cluster")
    assert len(found["unread"]) == 1 and len(found["broker_pauses"]) == 12


def test_a_damaged_archive_is_refused(tmp_path):
    path = tmp_path / "a.jvm.log.gz"
    path.write_bytes(gzip.compress(JVM.read_bytes())[:-20])
    with pytest.raises(RawDataError, match="gzip"):
        broker_pauses.read(path)
