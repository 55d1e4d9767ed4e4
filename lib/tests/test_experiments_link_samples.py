"""Counters of links over time: sampled on a lab, read back, and what sampling costs."""

import json
import socket
import statistics
import time
from contextlib import suppress
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import comes_about
from scripted_lab import ScriptedLab

from wanbench import tables
from wanbench.errors import LabError, ParameterError, RawDataError
from wanbench.measure.experiments import ExperimentError, Iperf3
from wanbench.measure.experiments.sampling import LinkSamples
from wanbench.measure.labs.local import LocalLab
from wanbench.measure.links import LinkSettings
from wanbench.measure.links.control import Server
from wanbench.measure.links.link import Link
from wanbench.measure.links.relay import Relay
from wanbench.methods.lab import utilisation
from wanbench.read.ingest import lab

SAMPLE = Path(__file__).parent / "samples" / "links" / "relay_iperf3-50-mbit.samples.jsonl"
PAIRS = [("a", "b"), ("b", "a"), ("a", "c")]


def read(path):
    frame = lab.read_samples(path)["link_samples"]
    context = {column.name: None for column in tables.CONTEXT} | {"source_file": path.name, "test_id": "t"}
    return tables.validate("link_samples", frame.assign(**context))


class Links:
    """Three links that carry 1,000 bytes in ten packets between two questions."""

    def __init__(self, lasts=10**9):
        self.links = {pair: LinkSettings(1, rate_bps=1e6) for pair in PAIRS}
        self.lasts, self.asked = lasts, []

    def counters(self, pairs):
        self.asked.append(list(pairs))
        if len(self.asked) > self.lasts:
            raise LabError("the lab's supervisor is gone")
        n = len(self.asked)
        counted = {"packets_sent": 10 * n, "bytes_sent": 1000 * n, "packets_delivered": 10 * n, "bytes_lost": 0}
        counted |= {"bytes_delivered": 1000 * n, "packets_lost": 0, "packets_queue_dropped": 0, "bytes_backlog": 0}
        counted |= {"packets_cut": 0, "packets_device_dropped": 0, "mean_late_ms": None, "rate_bps": 1e6}
        return [{"from_region": a, "to_region": b, **counted} for a, b in pairs]


def sampled(folder, links, body=lambda: None, **settings):
    with ScriptedLab(["a", "b", "c"]) as lab:
        source, target = lab.host("a"), lab.host("b")
        source.links = links
        with LinkSamples(interval_s=0.05, **settings).concurrently(source, target, folder, "s") as files:
            body()
    return files


def test_the_pair_is_sampled_at_once_on_time_and_at_the_end(tmp_path):
    links = Links()
    (file,) = sampled(tmp_path, links, lambda: comes_about(lambda: len(links.asked) >= 3))
    assert (file.path, file.experiment) == ("links/s.samples.jsonl.gz", "links")
    frame = read(tmp_path / file.path)
    assert set(zip(frame.link_from, frame.link_to, strict=True)) == {("a", "b"), ("b", "a")}
    assert len(links.asked) >= 4 and len(frame) == 2 * len(links.asked)
    assert set(frame.rate_bps) == {1e6} and (frame.answer_ms >= 0).all()
    assert frame.packets_sent.tolist() == [10 * n for n in range(1, len(links.asked) + 1) for _ in range(2)]


def test_all_links_can_be_sampled_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("wanbench.measure.experiments.sampling._AT_ONCE", 2)
    (file,) = sampled(tmp_path, links := Links(), which="all")
    assert links.asked[:2] == [PAIRS[:2], PAIRS[2:]] and len(read(tmp_path / file.path)) == 6


def test_even_a_block_that_is_over_at_once_has_two_samples(tmp_path):
    (file,) = sampled(tmp_path, Links())
    assert len(utilisation.windows(read(tmp_path / file.path))) == 2


def test_what_runs_in_it_fails_as_itself_and_the_samples_are_kept(tmp_path):
    def fail():
        comes_about(lambda: links.asked)
        raise KeyboardInterrupt

    links = Links()
    with pytest.raises(KeyboardInterrupt):
        sampled(tmp_path, links, fail)
    assert len(read(tmp_path / "links/s.samples.jsonl.gz")) >= 4


def test_a_lab_that_goes_away_is_said_and_the_samples_are_kept(tmp_path):
    links = Links(lasts=2)
    with pytest.raises(ExperimentError, match="stopped after 2 samples: the lab's supervisor is gone") as failure:
        sampled(tmp_path, links, lambda: comes_about(lambda: len(links.asked) == 3))
    assert [file.path for file in failure.value.files] == ["links/s.samples.jsonl.gz"]
    assert len(read(tmp_path / "links/s.samples.jsonl.gz")) == 4


def test_so_is_whatever_else_ends_the_sampling(tmp_path):
    links = Links()
    links.counters = lambda pairs: None
    with pytest.raises(ExperimentError, match="stopped after 0 samples: 'NoneType'"):
        sampled(tmp_path, links, lambda: time.sleep(0.1))


def test_hosts_without_emulated_links_are_refused(tmp_path):
    with pytest.raises(ExperimentError, match="no emulated links"):
        sampled(tmp_path, None)
    links = Links()
    links.links = {("a", "c"): LinkSettings(1)}
    with pytest.raises(ExperimentError, match="no link between a and b"):
        sampled(tmp_path, links)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinkSamples(interval_s=0), "interval_s is 0"),
        (lambda: LinkSamples(which="some"), "allowed: 'pair', 'all'"),
        (lambda: LinkSamples(duration_s="1"), "duration_s is '1'"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_recording_says_what_is_known_of_it():
    frame = read(SAMPLE)
    assert len(frame) == 12 and set(frame.rate_bps) == {50e6}
    there = frame[frame.link_from == "a"]
    assert there.bytes_delivered.iloc[-1] > 24_078_792, "what iperf3 received, and headers"
    balance = there.packets_sent - there.packets_delivered - there.packets_queue_dropped
    assert (balance >= 0).all()


@pytest.mark.parametrize(
    ("old", "new", "line_number", "message"),
    [
        ('{"answer_ms"', '["answer_ms"', 1, "a JSON object"),
        ('"links": [{', '"links": [7, {', 1, "a list of objects"),
        ('"packets_sent": 1778', '"packets_sent": -1', None, "column packets_sent, row 2 .* is -1"),
        ('"packets_sent": 1778', '"packets_sent": "many"', None, "column packets_sent, row 2 .* is 'many'"),
        ('"packets_delivered": 5870', '"packets_delivered": 3', 3, "at least 1701"),
        ('"at_s": 1795283208', '"at_s": 1595283208', 2, "at_s"),
        ('"from_region": "a"', '"from_region": null', None, "column link_from, row 0"),
        ('"rate_bps": 50000000.0', '"rate_bps": Infinity', None, "column rate_bps, row 0"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, old, new, line_number, message):
    text = SAMPLE.read_text()
    assert old in text
    path = tmp_path / "x.samples.jsonl"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(RawDataError, match=message) as error:
        lab.read_samples(path)
    assert error.value.line_number == line_number


def test_a_last_line_without_an_end_is_refused(tmp_path):
    path = tmp_path / "x.samples.jsonl"
    path.write_bytes(SAMPLE.read_bytes()[:-20])
    with pytest.raises(RawDataError, match="a truncated line"):
        lab.read_samples(path)


@pytest.mark.fuzz
@given(st.data())
def test_damaged_files_end_in_rows_or_in_an_error(tmp_path_factory, data):
    content = SAMPLE.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    put = data.draw(st.sampled_from([b"", b"\x00", b"9" * 30, b"null", b'"', b"{", b"]", b"\xff", b"-1", b"1e999"]))
    path = tmp_path_factory.mktemp("damaged", numbered=True) / "x.samples.jsonl"
    path.write_bytes(content[:at] + put + content[at + data.draw(st.integers(0, 40)) :])
    with suppress(RawDataError):
        read(path)


@pytest.mark.parametrize("n", [2, 6, 72])
def test_cost_of_counting(n):
    """How long the relay carries no packets while it answers; printed with -s."""
    relay = Relay()
    relay.links = {(number, 200): Link(0, number) for number in range(n)}
    asking, answering = socket.socketpair()
    server = Server(answering, {"counters": lambda *, pairs: relay.counters(map(tuple, pairs))})
    request = (json.dumps({"id": 1, "verb": "counters", "pairs": list(relay.links)}) + "\n").encode()
    took_ms, size = [], 0
    with asking, answering:
        for _ in range(200):
            asking.sendall(request)
            began = time.perf_counter()
            server.ready()
            took_ms.append(1000 * (time.perf_counter() - began))
            answer = b""
            while not answer.endswith(b"\n"):
                answer += asking.recv(1 << 20)
            size = len(json.loads(answer)["result"])
    print(f"\n{n} links: median {statistics.median(took_ms):.3f} ms, longest {max(took_ms):.3f} ms")
    assert size == n


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """
    Samples of three regions: a sends to b as fast as the link goes, and a quarter as fast to c.

    The queues hold a second's worth: after a pause of the machine, the sender or the relay catches up with a burst.
    """
    folder, regions = tmp_path_factory.mktemp("loaded"), ["a", "b", "c"]
    links = {pair: LinkSettings(2, rate_bps=20e6, queue_bytes=2_500_000) for pair in permutations(regions, 2)}
    with LocalLab(regions, links) as lab:
        a, b, c = (lab.host(region) for region in regions)
        with LinkSamples(interval_s=0.5, which="all").concurrently(a, b, folder, "full"):
            Iperf3(duration_s=2).run(a, b, folder, "full")
        with LinkSamples(interval_s=0.5).concurrently(a, c, folder, "quarter"):
            Iperf3(duration_s=2, rate_bps=5e6, block_bytes=16_384).run(a, c, folder, "quarter")
    return {name: read(folder / f"links/{name}.samples.jsonl.gz") for name in ("full", "quarter")}


@pytest.mark.lab
@pytest.mark.timing
def test_a_link_that_is_full_is_seen_to_be(loaded):
    found = utilisation.capacity(loaded["full"])
    table = found.links.set_index(["link_from", "link_to"])
    full = table.loc["a", "b"]
    assert 0.95 <= full.max_utilisation < 1.5, "more than 1: after a pause the relay catches up"
    assert full.share_at_capacity > 0 and "at capacity (" in found.sentence
    assert table.loc["b", "a"].max_utilisation < 0.3, "acknowledgements only"
    assert table.loc["a", "c"].packets_sent == 0 and len(table) == 6


@pytest.mark.lab
@pytest.mark.timing
def test_a_link_that_is_a_quarter_full_is_seen_to_be(loaded):
    frame = loaded["quarter"]
    assert set(frame.link_from) | set(frame.link_to) == {"a", "c"}
    each_second = frame.groupby(["link_from", "link_to"]).nth(slice(None, None, 2))
    found = utilisation.capacity(each_second)
    row = found.links[found.links.link_from == "a"].iloc[0]
    assert 0.1 < row.max_utilisation < 0.8 and row.share_at_capacity == 0
    assert row.packets_queue_dropped == 0 and "none was at capacity" in found.sentence
