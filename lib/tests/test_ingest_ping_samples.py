"""ping: every sample, on the fast path and the careful one, and the shared files in detail."""

import json
from pathlib import Path

import pandas as pd
import pytest
from ping_logs import FOLDER, outcome
from reading import read_echoes

from wanbench import tables
from wanbench.errors import RawDataError
from wanbench.read.ingest.rows import core as core_columns

pytestmark = pytest.mark.usefixtures("short_logs_are_recognised")
SAMPLES = sorted(FOLDER.glob("*.txt"))
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "ping"


def as_table(core):
    """The core columns as a whole table echoes, checked."""
    return tables.validate(
        "echoes",
        tables.from_rows("echoes", [])
        .reindex(core.index)
        .assign(source_file="a.txt", **{name: core[name] for name in core.columns}),
    )


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_sample(sample, fast):
    refused = sample.with_suffix(".refused")
    if refused.exists():
        line_number, expected = refused.read_text().rstrip("\n").split("\n")
        with pytest.raises(RawDataError) as error:
            read_echoes(sample, fast=fast)
        assert (str(error.value.line_number), error.value.expected) == (line_number, expected)
        assert error.value.path == str(sample)
        return
    core = read_echoes(sample, fast=fast)
    columns = {column.name: column.dtype for column in core_columns("echoes")}
    expected = pd.read_csv(sample.with_suffix(".csv"), dtype=columns)
    pd.testing.assert_frame_equal(core, expected, check_exact=True)
    as_table(core)


def test_every_dialect_has_samples():
    names = " ".join(path.stem for path in SAMPLES)
    for dialect in (
        "iputils-", "busybox-", "toybox-", "fping-", "macos_", "freebsd_", "inetutils_", "windows_", "ipv6",
    ):  # fmt: skip
        assert dialect in names


@pytest.mark.parametrize(
    ("name", "rows", "lost", "duplicates", "minimum", "mean", "maximum", "unit"),
    [
        ("alpine-linux-3.13_ping-ip", 1, 0, 0, 1.637, 1.637, 1.637, 0.001),
        ("centos-7.7_ping-ip-O-D", 20, 0, 0, 0.041, 0.048, 0.081, 0.001),
        ("centos-7.7_ping-missing-hostname", 1, 0, 0, 0.040, 0.040, 0.040, 0.001),
        ("freebsd12_ping-ip-p", 3, 0, 0, 0.034, 0.037, 0.042, 0.001),
        ("osx-10.14.6_ping-ip-dup", 15, 0, 13, 0.235, 226.389, 1084.262, 0.001),
        ("ubuntu-18.04_ping6-ip-O-D-p", 20, 5, 0, 21.405, 45.041, 159.380, 0.5),
        ("ubuntu-22.04_ping-dest-unreachable", 3, 3, 0, None, None, None, 0),
    ],
)
def test_shared_files(name, rows, lost, duplicates, minimum, mean, maximum, unit):
    """Counts and times as the footers say; `unit` is what the lines were rounded to."""
    path = SHARED / f"{name}.out"
    if not path.exists():
        pytest.skip("the shared data is not here")
    core = read_echoes(path)
    assert (len(core), core.lost.sum(), core.duplicate.sum()) == (rows, lost, duplicates)
    peer = json.loads(path.with_suffix(".json").read_text())["responses"]
    replies = [reply for reply in peer if reply["type"] == "reply"]
    rtts = sorted(core.rtt_ms.dropna())
    assert rtts == sorted(reply["time_ms"] for reply in replies)
    assert sorted(core.sequence[~core.lost]) == sorted(reply["icmp_seq"] for reply in replies)
    times = [reply["timestamp"] for reply in peer if reply.get("timestamp")]
    assert sorted(core.received_at_s.dropna()) == sorted(times)
    if minimum is not None:
        found = (core.rtt_ms.min(), core.rtt_ms.mean(), core.rtt_ms.max())
        assert found == pytest.approx((minimum, mean, maximum), abs=unit)
    else:
        assert core.error.tolist() == ["Destination Host Unreachable"] * 3
        assert core.responder.tolist() == ["10.0.0.1"] * 3


def test_all_shared_files_are_tested():
    if not SHARED.exists():
        pytest.skip("the shared data is not here")
    marks = test_shared_files.pytestmark[0].args[1]
    assert {case[0] for case in marks} == {path.stem for path in SHARED.glob("*.out")}


def test_every_cut_of_every_sample_ends_in_a_table_or_a_refusal():
    for sample in SAMPLES:
        data = sample.read_bytes()
        for cut in range(0, len(data), 97):
            careful, fast = outcome(data[:cut], fast=False), outcome(data[:cut], fast=True)
            assert careful == fast
