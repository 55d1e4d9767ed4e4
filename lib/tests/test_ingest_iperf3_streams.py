"""iperf3: streams whole and broken off, and several documents, with other text between them, in one file."""

import json

import pandas as pd
import pytest
from iperf3_recorded import FOLDER, RECORDED, changed
from reading import read_iperf3

from wanbench.errors import RawDataError
from wanbench.read.ingest import iperf3_output

STREAM = (FOLDER / "handmade-stream.json").read_bytes()
N_STREAMS = 3
INTERRUPTED = b'{"event":"error","data":"interrupt - the client has terminated"}\n'
STREAM_LINES = STREAM.splitlines(keepends=True)


def test_a_stream_says_the_same_as_a_document():
    from_stream = read_iperf3(FOLDER / "handmade-stream.json")
    from_document = read_iperf3(FOLDER / "v3.12_tcp_p3_omit1_cubic.json")
    pd.testing.assert_frame_equal(
        from_stream[0].drop(columns="tool_version"), from_document[0].drop(columns="tool_version")
    )
    pd.testing.assert_frame_equal(from_stream[1], from_document[1])
    assert from_stream[1].omitted.sum() == 6 and set(from_stream[1].stream) == {0, 1, 2}


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8, 0.99])
def test_a_stream_that_breaks_off_keeps_its_intervals(share):
    data = STREAM[: int(share * STREAM.rindex(b"\n", 0, -1))]
    transfers, intervals = read_iperf3(data)
    n_whole = data[: data.rindex(b"\n")].count(b'"event": "interval"')
    _, known = read_iperf3(STREAM)
    assert len(intervals) == N_STREAMS * n_whole
    pd.testing.assert_frame_equal(intervals, known[: len(intervals)])
    assert transfers.error[0].startswith("the stream is truncated in ") and transfers.throughput_bps.isna().all()


def test_a_stream_that_breaks_off_hides_no_later_test():
    torn = STREAM[: len(STREAM) // 2].rstrip(b"\n")
    transfers, intervals = read_iperf3(torn + b"\n" + STREAM)
    assert transfers.error.isna().tolist() == [False, True]
    assert len(intervals) > len(read_iperf3(STREAM)[1]) and intervals.stream.max() == 2 * N_STREAMS - 1


@pytest.mark.parametrize(
    ("behind", "error"),
    [
        (INTERRUPTED, "interrupt - the client has terminated"),
        (STREAM_LINES[-1], "the stream is truncated in "),
        (STREAM_LINES[3] + STREAM_LINES[-1], "the stream is truncated in "),
        (STREAM_LINES[3], "the stream is truncated in "),
        (STREAM_LINES[-1] + INTERRUPTED, "interrupt - the client has terminated"),
        (STREAM_LINES[3][:90] + b"\n" + INTERRUPTED, "interrupt - the client has terminated"),
    ],
    ids=["error", "end", "interval, end", "interval", "end, error", "torn again, error"],
)
@pytest.mark.parametrize("later", [b"", STREAM], ids=["alone", "before another"])
def test_what_comes_behind_the_break_of_a_stream_is_of_the_same_test(behind, error, later):
    torn = b"".join(STREAM_LINES[:2]) + STREAM_LINES[2][:90] + b"\n"
    transfers, intervals = read_iperf3(torn + behind + later)
    known, known_intervals = read_iperf3(STREAM)
    broken = transfers[transfers.error.notna()]
    assert len(broken) == 1 and broken.error.iloc[0].startswith(error)
    assert broken.throughput_bps.isna().all() == (STREAM_LINES[-1] not in behind), "figures of its end stay"
    assert len(transfers) == 1 + len(known) * bool(later)
    assert len(intervals) == N_STREAMS + len(known_intervals) * bool(later)


def test_the_end_of_a_test_whose_start_is_torn_is_of_no_other():
    with pytest.raises(RawDataError):
        read_iperf3(STREAM + STREAM_LINES[0][:90] + b"\n" + b"".join(STREAM_LINES[1:]))


def test_a_document_behind_the_break_of_a_stream_is_another_test():
    torn = b"".join(STREAM_LINES[:2]) + STREAM_LINES[2][:90] + b"\n"
    transfers, _ = read_iperf3(torn + json.dumps(RECORDED).encode())
    assert transfers.error.isna().tolist() == [False, True]


def test_damage_within_a_stream_is_refused():
    damaged = STREAM.replace(b'"event": "interval", ', b'"event": "interval" ', 1)
    with pytest.raises(RawDataError, match="Expecting ',' delimiter") as error:
        read_iperf3(damaged)
    assert error.value.line_number == 2


def test_a_stream_that_never_began_is_a_failed_test():
    data = b'{"event": "error", "data": "unable to connect: refused"}\n{"event": "end", "data": {}}\n'
    transfers, intervals = read_iperf3(data)
    assert transfers.error.tolist() == ["unable to connect: refused"] and intervals.empty


def test_line_numbers_of_documents_behind_text():
    data = b"banner\n\n" + json.dumps(RECORDED).encode() + b"\nwords\n" + changed(("end", "sum_sent"), 5)
    with pytest.raises(RawDataError) as error:
        read_iperf3(data)
    assert error.value.line_number == 5


@pytest.mark.parametrize(
    ("before", "between", "after"),
    [("", "", ""), ("", ", ", ""), ("[", ",", "]"), ("[\n", "\n, ", "\n]"), ("\ufeff", "\r\n\ufeff", "\n")],
)
def test_no_document_of_several_is_passed_over(before, between, after):
    one, other = json.dumps(RECORDED), json.dumps(RECORDED, indent=1)
    transfers, _ = read_iperf3((before + one + between + other + after).encode())
    assert len(transfers) == 2 and transfers.throughput_bps.nunique() == 1


def test_an_error_behind_a_document_without_summary_is_its_own():
    ended = json.dumps(RECORDED | {"end": {}}) + "\n"
    said = "iperf3: error - control socket has closed unexpectedly"
    transfers, intervals = read_iperf3((ended + said + "\n").encode())
    assert transfers.error[0] == said.removeprefix("iperf3: ") and transfers.throughput_bps.isna().all()
    assert len(intervals) == len(RECORDED["intervals"])
    transfers, _ = read_iperf3((json.dumps(RECORDED) + "\n" + said).encode())
    assert pd.isna(transfers.error[0]), "a test that ended well does not have the error of the next"
    with pytest.raises(RawDataError, match="end without a summary"):
        read_iperf3(ended.encode())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("name", ["v3.12_tcp.json", "handmade-stream.json", "handmade-not-a-number.json"])
def test_files_that_a_redirect_recoded(name, encoding):
    text = (FOLDER / name).read_text()
    for there, here in zip(
        read_iperf3(text.replace("\n", "\r\n").encode(encoding)), read_iperf3(text.encode()), strict=True
    ):
        pd.testing.assert_frame_equal(there, here)


def test_bare_nan_in_texts_is_left_alone():
    data = (FOLDER / "handmade-not-a-number.json").read_bytes()
    [(line_number, document)] = iperf3_output.json_documents("a", data.decode())
    assert line_number == 1 and document["title"] == 'a nan, an "inf" and -nan, in words'
    assert document["end"]["sum"]["jitter_ms"] != document["end"]["sum"]["jitter_ms"]


@pytest.mark.parametrize("between", ["][", "]\n[", "],[", "] , ["])
def test_lists_of_documents_one_after_the_other(between):
    document = json.dumps(RECORDED)
    transfers, _ = read_iperf3(f"[{document}{between}{document}]".encode())
    assert len(transfers) == 2


def test_documents_inside_those_of_a_script():
    known = read_iperf3(json.dumps(RECORDED).encode())
    inside = {"timestamp": "20260105_100000", "data": {"bandwidth": "1K", "results": RECORDED}}
    for wrapped in (inside, [inside], {"runs": [{"n": 1}, inside]}):
        for found, expected in zip(read_iperf3(json.dumps(wrapped).encode()), known, strict=True):
            pd.testing.assert_frame_equal(found, expected)
    inside["data"]["results"] = {"start": {}, "end": {}}
    with pytest.raises(RawDataError) as error:
        read_iperf3(json.dumps([inside]).encode())
    assert error.value.found == "start, end"
