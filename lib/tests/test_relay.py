"""The relay without devices: segments, and one link on a simulated clock."""

import heapq
import itertools
import os
import random
import struct
import time
from dataclasses import asdict

import numpy as np
import pytest
from scipy import stats

from wanbench.measure.links import LinkSettings, Step, queue_in_bytes
from wanbench.measure.links.link import Bottleneck, Link, piece, shape
from wanbench.measure.links.mtu import too_big
from wanbench.measure.links.queues import OFFLOAD_BYTES, marked
from wanbench.measure.links.relay import Relay

MSS = 1448
HEADER_BYTES = 52
NEEDS_CHECKSUM, TCP_V4, TCP_V6 = 1, 1, 4


def checksum(data: bytes) -> int:
    """RFC 1071, written out: the sum over the whole, not an update of an old one."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(payload: bytes, *, sequence=0xFFFFF000, identification=0xFFFE, flags=0x99, ip_options=b"", v6=False):
    """A TCP packet as a TUN device hands it over: larger than a segment, it is a super-packet."""
    addresses = bytes(range(32)) if v6 else bytes([10, 1, 0, 1, 10, 2, 0, 1])
    ip_bytes = (40 if v6 else 20) + len(ip_options)
    tcp_bytes = HEADER_BYTES - 20
    length = ip_bytes + tcp_bytes + len(payload)
    following = 43 if ip_options else 6  # RFC 8200: a routing header, or TCP
    ip = struct.pack("!IHBB32s", 6 << 28, length - 40, following, 64, addresses) + ip_options
    if not v6:
        ip = ipv4_header(addresses, ip_bytes, length, identification, ip_options)
    pseudo = ~checksum(addresses + struct.pack("!II", length - ip_bytes, 6)) & 0xFFFF
    options = bytes(range(tcp_bytes - 20))
    tcp = struct.pack("!HHIIBBHHH", 5201, 40000, sequence, 7, tcp_bytes // 4 << 4, flags, 500, pseudo, 0)
    is_super = len(payload) > MSS
    kind = is_super and (TCP_V6 if v6 else TCP_V4)
    offload = struct.pack("<BBHHHH", NEEDS_CHECKSUM, kind, 0, MSS if is_super else 0, ip_bytes, 16)
    return offload + ip + tcp + options + payload


def ipv4_header(addresses, ip_bytes, length, identification, ip_options) -> bytes:
    ip = struct.pack("!BBHHHBBH8s", 4 << 4 | ip_bytes // 4, 0, length, identification, 0x4000, 64, 6, 0, addresses)
    ip += ip_options
    return ip[:10] + checksum(ip).to_bytes(2, "big") + ip[12:]


def read(raw: bytes) -> dict:
    """The fields that matter, read independently of the code under test."""
    offload, ip = struct.unpack("<BBHHHH", raw[:OFFLOAD_BYTES]), raw[OFFLOAD_BYTES:]
    v6 = ip[0] >> 4 == 6
    ip_bytes = 40 + 8 * (ip[6] == 43) if v6 else (ip[0] & 15) * 4
    tcp, addresses = ip[ip_bytes:], ip[8:40] if v6 else ip[12:20]
    start = (tcp[12] >> 4) * 4
    return {
        "type": offload[1],
        "segment_bytes": offload[3],
        "length": 40 + int.from_bytes(ip[4:6], "big") if v6 else int.from_bytes(ip[2:4], "big"),
        "true_length": len(ip),
        "identification": int.from_bytes(ip[4:6], "big"),
        "ip_checksum_left": 0 if v6 else checksum(ip[:ip_bytes]),
        "pseudo": int.from_bytes(tcp[16:18], "big"),
        "expected_pseudo": ~checksum(addresses + struct.pack("!II", len(tcp), 6)) & 0xFFFF,
        "sequence": int.from_bytes(tcp[4:8], "big"),
        "flags": tcp[13],
        "payload": tcp[start:],
        "options": tcp[20:start],
    }


@pytest.mark.parametrize(
    ("v6", "ip_options"), [(False, b""), (False, b"\x94\x04\x00\x00"), (True, b""), (True, b"\x06" + bytes(7))]
)
@pytest.mark.parametrize("count", [1, 2, 5, 7])
def test_pieces_are_the_segments_a_network_card_would_send(count, v6, ip_options):
    payload = random.Random(1).randbytes(MSS * 6 + 100)
    whole = packet(payload, ip_options=ip_options, v6=v6)
    segments, header_bytes, segment_bytes = shape(whole)
    assert (segments, segment_bytes) == (7, MSS)
    assert header_bytes == HEADER_BYTES + 20 * v6 + len(ip_options)
    received = b""
    for first in range(0, segments, count):
        part = read(piece(whole, header_bytes, segment_bytes, first, count))
        is_last = first + count >= segments
        assert part["length"] == part["true_length"]
        assert part["ip_checksum_left"] == 0
        assert part["pseudo"] == part["expected_pseudo"]
        assert v6 or part["identification"] == (0xFFFE + first) & 0xFFFF
        assert part["sequence"] == (0xFFFFF000 + first * MSS) & 0xFFFFFFFF
        assert part["flags"] & 0x10, "ACK stays on all"
        assert bool(part["flags"] & 0x09) == is_last, "FIN and PSH only on the last"
        assert bool(part["flags"] & 0x80) == (first == 0), "CWR only on the first"
        assert part["options"] == read(whole)["options"]
        is_super = len(part["payload"]) > MSS
        assert (part["type"], part["segment_bytes"]) == ((TCP_V6 if v6 else TCP_V4, MSS) if is_super else (0, 0))
        received += part["payload"]
    assert received == payload


def link(delay_ms=10.0, seed=0, **settings) -> Link:
    made = Link(target=0, seed=seed)
    settings = LinkSettings(delay_ms, **settings)
    made.set(**asdict(settings) | {"queue_bytes": queue_in_bytes(settings)}, now=0.0)
    return made


def test_a_packet_is_due_after_the_delay():
    [(due, packets, size, raw)] = link(20).accept(packet(b"x"), now=5.0)
    assert due == pytest.approx(5.020)
    assert (packets, size, raw) == (1, HEADER_BYTES + 1, packet(b"x"))


def test_packets_leave_one_after_the_other_at_the_rate():
    slow = link(20, rate_bps=1e6)
    size = HEADER_BYTES + MSS
    dues = [slow.accept(packet(bytes(MSS)), now=0.0)[0][0] for _ in range(10)]
    assert np.diff(dues) == pytest.approx(size * 8 / 1e6)
    assert dues[0] == pytest.approx(0.020 + size * 8 / 1e6)
    assert slow.backlog_bytes(0.0) == pytest.approx(10 * size)


def test_every_segment_of_a_super_packet_pays_for_its_headers():
    fast = link(1, rate_bps=1e9)
    arriving = fast.accept(packet(bytes(MSS * 10)), now=0.0)
    on_the_wire = 10 * (MSS + HEADER_BYTES)
    assert arriving[-1][0] == pytest.approx(0.001 + on_the_wire * 8 / 1e9)
    assert (fast.packets_sent, fast.bytes_sent) == (10, on_the_wire)


def test_no_piece_takes_longer_than_a_millisecond_to_send():
    size = MSS + HEADER_BYTES
    arriving = link(1, rate_bps=40e6).accept(packet(bytes(MSS * 10)), now=0.0)
    assert [packets for _, packets, _, _ in arriving] == [3, 3, 3, 1]
    assert [due for due, *_ in arriving] == pytest.approx([0.001 + count * size * 8 / 40e6 for count in (3, 6, 9, 10)])


def test_what_does_not_fit_into_the_queue_is_dropped_from_the_tail():
    size = MSS + HEADER_BYTES
    full = link(1, rate_bps=1e6, queue_bytes=4 * size + 10)
    arriving = full.accept(packet(bytes(MSS * 10)), now=0.0)
    assert sum(packets for _, packets, _, _ in arriving) == 4
    assert (full.packets_queue_dropped, full.bytes_queue_dropped) == (6, 6 * size)
    assert not full.accept(packet(bytes(MSS)), now=0.0)
    assert len(full.accept(packet(bytes(MSS)), now=size * 8 / 1e6)) == 1, "one has left"


def test_links_at_one_gate_share_its_rate_and_its_queue():
    size, bottleneck = MSS + HEADER_BYTES, Bottleneck()
    bottleneck.set(1e6, 4 * size + 10, now=0.0)
    near, far, apart = link(10, rate_bps=1e9), link(30), link(10)
    for each in (near, far):
        each.share(bottleneck)
    dues = [each.accept(packet(bytes(MSS)), now=0.0)[0][0] for each in (near, far, near, far)]
    left = np.array(dues) - [0.010, 0.030, 0.010, 0.030]
    assert left == pytest.approx(size * 8 / 1e6 * np.arange(1, 5)), "one after the other, and then each its own way"
    assert not near.accept(packet(bytes(MSS)), now=0.0) and not far.accept(packet(bytes(MSS)), now=0.0)
    assert (near.packets_queue_dropped, far.packets_queue_dropped) == (1, 1)
    assert (near.packets_sent, near.in_flight()[0], far.in_flight()[0]) == (3, 2, 2)
    assert near.backlog_bytes(0.0) == far.backlog_bytes(0.0) == pytest.approx(4 * size)
    assert apart.accept(packet(bytes(MSS)), now=0.0)[0][0] == pytest.approx(0.010), (
        "links of another region do not wait"
    )


def test_a_gateway_is_that_of_the_links_that_leave_its_region():
    now = time.monotonic()  # for all that follows: however long it takes, nothing leaves a queue
    relay = Relay()
    relay.links = {pair: link(10) for pair in ((1, 2), (1, 3), (2, 1))}

    def backlogs():
        for each in relay.links.values():
            each.accept(packet(bytes(MSS)), now=now)
        return [each.backlog_bytes(now) > 0 for each in relay.links.values()]

    relay.set_gateway(1, 1000, 10**6)
    assert backlogs() == [True, True, False]
    relay.set_gateway(1, None, None)
    assert backlogs() == [False, False, False]


def test_a_link_that_leaves_a_gate_has_its_own_rate_again():
    size, bottleneck = MSS + HEADER_BYTES, Bottleneck()
    bottleneck.set(1e6, None, now=0.0)
    one = link(10, rate_bps=1e7)
    one.share(bottleneck)
    one.accept(packet(bytes(MSS)), now=0.0)
    one.share(None)
    assert one.accept(packet(bytes(MSS)), now=1.0)[0][0] == pytest.approx(1.010 + size * 8 / 1e7)


def test_an_idle_link_takes_a_packet_larger_than_its_queue():
    tiny = link(1, rate_bps=1e6, queue_bytes=100)
    assert len(tiny.accept(packet(bytes(MSS)), now=0.0)) == 1
    assert not tiny.accept(packet(bytes(MSS)), now=0.001)
    assert len(tiny.accept(packet(bytes(MSS * 3)), now=1.0)) == 1
    assert tiny.packets_queue_dropped == 3


@pytest.mark.parametrize("segments", [1, 30])
def test_each_wire_packet_is_lost_with_the_probability_asked_for(segments):
    lossy, whole, n = link(1, loss=0.01), packet(bytes(MSS * segments)), 30_000 // segments
    kept = sum(packets for k in range(n) for _, packets, _, _ in lossy.accept(whole, now=k / 100))
    low, high = stats.binom.interval(0.99, n * segments, 0.01)
    assert low <= lossy.packets_lost <= high
    assert kept == n * segments - lossy.packets_lost


def test_losses_are_independent_of_each_other():
    lossy, small = link(1, loss=0.2, seed=3), packet(b"")
    lost = np.array([not lossy.accept(small, now=0.0) for _ in range(20_000)])
    after_a_loss = lost[1:][lost[:-1]]
    low, high = stats.binom.interval(0.99, len(after_a_loss), 0.2)
    assert low <= after_a_loss.sum() <= high


@pytest.mark.parametrize("segments", [1, 30])
@pytest.mark.parametrize(
    ("loss", "mean_burst"), [(0.02, 4), (0.05, 1.5), (0.3, 10), (0.2, 1), (0.5, 1), (0.1, 1 / 0.9)]
)
def test_losses_come_in_bursts_of_the_mean_length_asked_for(loss, mean_burst, segments):
    n = 60_000 // segments
    lossy, whole = link(1, loss=loss, mean_loss_burst=mean_burst, seed=segments), packet(bytes(MSS * segments))
    lost = np.ones((n, segments), dtype=bool)
    for k in range(n):
        for _, packets, _, raw in lossy.accept(whole, now=k / 100):
            first = (read(raw)["sequence"] - 0xFFFFF000) % 2**32 // MSS
            lost[k, first : first + packets] = False
    lost = lost.ravel()
    # Losses are a two-state Markov chain: its lag-1 autocorrelation widens the interval of the share of losses.
    ends = 1 / mean_burst
    autocorrelation = 1 - ends - ends * loss / (1 - loss)
    error = np.sqrt(loss * (1 - loss) / len(lost) * (1 + autocorrelation) / (1 - autocorrelation))
    assert lost.mean() == pytest.approx(loss, abs=3.5 * error)
    followed = lost[1:][lost[:-1]]
    low, high = stats.binom.interval(0.999, len(followed), 1 - ends)
    assert low <= followed.sum() <= high
    bursts = np.diff(np.flatnonzero(np.diff(np.concatenate([[0], lost, [0]]))))[::2]
    assert (bursts == 1).mean() == pytest.approx(ends, abs=3.5 * np.sqrt(ends * (1 - ends) / len(bursts)) + 1e-9)


def test_what_remains_of_a_super_packet_is_what_was_not_lost():
    payload = random.Random(2).randbytes(MSS * 40)
    lossy = link(1, loss=0.1, rate_bps=1e8)
    received = {}
    for _, packets, size, raw in lossy.accept(packet(payload, sequence=0), now=0.0):
        part = read(raw)
        assert packets == -(-len(part["payload"]) // MSS)
        assert size == len(part["payload"]) + packets * HEADER_BYTES
        received[part["sequence"]] = part["payload"]
    assert 0 < lossy.packets_lost < 40
    assert all(payload[start : start + len(part)] == part for start, part in received.items())
    assert sum(map(len, received.values())) == (40 - lossy.packets_lost) * MSS


def test_the_same_seed_loses_the_same_packets():
    def lost(seed):
        lossy = link(1, loss=0.3, seed=seed)
        return [not lossy.accept(packet(b""), now=0.0) for _ in range(200)]

    assert lost("a") == lost("a") != lost("b")


def test_jitter_has_the_mean_and_the_deviation_asked_for_and_keeps_the_order():
    shaky = link(50, jitter_ms=4, jitter_correlation_s=0.02)
    sent = np.arange(40_000) * 0.01
    due = np.array([shaky.accept(packet(b""), now=at)[0][0] for at in sent])
    delays_ms = (due - sent) * 1000
    assert (np.diff(due) >= 0).all()
    assert delays_ms.mean() == pytest.approx(50, abs=0.15)
    assert delays_ms.std() == pytest.approx(4, rel=0.03)
    correlation = np.corrcoef(delays_ms[:-1], delays_ms[1:])[0, 1]
    assert correlation == pytest.approx(np.exp(-0.01 / 0.02), abs=0.03)


@pytest.mark.parametrize(("jitter_ms", "longer_ms"), [(2, 0.04), (5, 0.2)])
def test_jitter_stays_jitter_where_a_thousand_packets_a_second_cross_the_link(jitter_ms, longer_ms):
    shaky = link(20, jitter_ms=jitter_ms)
    sent = np.arange(60_000) * 0.001
    delays_ms = (np.array([shaky.accept(packet(b""), now=at)[0][0] for at in sent]) - sent) * 1000
    assert delays_ms.mean() == pytest.approx(20 + longer_ms, abs=0.45)
    assert delays_ms.std() == pytest.approx(jitter_ms, rel=0.1)


def test_packets_close_together_are_not_reordered_by_jitter():
    shaky = link(50, jitter_ms=25, jitter_correlation_s=0.001)
    due = [shaky.accept(packet(b""), now=k * 1e-4)[0][0] for k in range(2000)]
    assert due == sorted(due)


def test_a_new_rate_applies_to_what_is_waiting_already():
    changed = link(0, rate_bps=1e6)
    for _ in range(20):
        changed.accept(packet(bytes(MSS)), now=0.0)
    waiting = changed.backlog_bytes(0.1)
    changed.set(0, rate_bps=2e6, now=0.1)
    assert changed.backlog_bytes(0.1) == pytest.approx(waiting)
    assert changed.backlog_bytes(0.15) == pytest.approx(waiting - 0.05 * 2e6 / 8)
    changed.set(0, now=0.15)
    assert changed.backlog_bytes(0.15) == 0


def test_a_shorter_delay_does_not_overtake():
    changed = link(300)
    first = changed.accept(packet(b"1"), now=0.0)[0][0]
    changed.set(1, now=0.1)
    assert changed.accept(packet(b"2"), now=0.1)[0][0] == first


def test_a_cut_link_takes_nothing_and_counts_it():
    severed = link(1)
    severed.is_cut = True
    assert not severed.accept(packet(bytes(MSS * 5)), now=0.0)
    assert severed.packets_cut == 5


@pytest.mark.parametrize(
    ("heals", "arrives"), [(False, False), (True, True)], ids=["due during the cut", "due after the healing"]
)
def test_what_was_on_its_way_before_a_cut_arrives_only_if_it_is_due_after_the_healing(heals, arrives):
    relay, (device, target) = Relay(), os.pipe()
    relay.links[1, 2] = on_its_way = Link(target)
    [(due, packets, size, raw)] = on_its_way.accept(packet(b"x"), now=0.0)
    relay._heap.append((due, 1, on_its_way, packets, size, raw))
    relay.cut([(1, 2)], True)
    if heals:
        relay.cut([(1, 2)], False)
    relay._deliver(1)
    assert (on_its_way.packets_delivered, on_its_way.packets_cut) == (int(arrives), int(not arrives))
    os.close(target)
    assert os.read(device, 65_536) == (raw if arrives else b"")
    os.close(device)


def run(link, arrivals, changes=(), until_s=1e4):
    """Give a link packets at their times on a simulated clock, and call it when it asks; return what arrives."""
    heap = [(at, number, "packet", raw) for number, (at, raw) in enumerate(arrivals)]
    heap += [(at, -number, "change", settings) for number, (at, settings) in enumerate(changes, 1)]
    heapq.heapify(heap)
    numbers, arrived = itertools.count(len(heap)), []
    while heap and heap[0][0] < until_s:
        at, _, what, content = heapq.heappop(heap)
        if what == "packet":
            coming = link.accept(content, at)
        elif what == "change":
            coming = link.set(**content, now=at)
        else:
            coming = link.wake(at, content)
        for due, packets, size, raw in coming:
            if packets:
                arrived.append((due, packets, size, raw))
            else:
                heapq.heappush(heap, (due, next(numbers), "wake", raw))
    return arrived


FULL = MSS + HEADER_BYTES
RATE_BPS = FULL * 8 * 1000  # a full packet each millisecond


class RfcCoDel:
    """Section 5 of RFC 8289, written out for packets (time of arrival) that leave one each `takes_s`."""

    def __init__(self, arrivals, takes_s, target_s=0.005, interval_s=0.1):
        self.arrivals, self.takes_s, self.target_s, self.interval_s = arrivals, takes_s, target_s, interval_s
        self.first_above = self.drop_next = 0.0
        self.count = self.lastcount = self.taken = 0
        self.dropping, self.dropped = False, []

    def law(self, t):
        return t + self.interval_s / np.sqrt(self.count)

    def dodequeue(self, now):
        number, ok = self.taken, False
        self.taken += 1
        behind = np.searchsorted(self.arrivals, now, side="right") - self.taken
        if now - self.arrivals[number] < self.target_s or behind <= 1:
            self.first_above = 0.0
        elif self.first_above == 0.0:
            self.first_above = now + self.interval_s
        elif now >= self.first_above:
            ok = True
        return number, ok

    def dequeue(self, now):
        number, ok = self.dodequeue(now)
        if self.dropping:
            if not ok:
                self.dropping = False
            while now >= self.drop_next and self.dropping:
                self.dropped.append(number)
                self.count += 1
                number, ok = self.dodequeue(now)
                if ok:
                    self.drop_next = self.law(self.drop_next)
                else:
                    self.dropping = False
        elif ok:
            self.dropped.append(number)
            number, ok = self.dodequeue(now)
            self.dropping = True
            delta, self.count = self.count - self.lastcount, 1
            if delta > 1 and now - self.drop_next < 16 * self.interval_s:
                self.count = delta
            self.drop_next, self.lastcount = self.law(now), self.count
        return number

    def run(self):
        now = 0.0
        while self.taken < len(self.arrivals) - 3:
            now = max(now, self.arrivals[self.taken])
            self.dequeue(now)
            now += self.takes_s
        return self.dropped


@pytest.mark.parametrize("load", [1.02, 1.3])
def test_codel_drops_the_packets_that_the_rfc_drops(load):
    draw, arrivals = random.Random(4), [0.0]
    for number in range(6000):  # two bursts of overload with a pause between them, so that dropping stops and resumes
        arrivals.append(arrivals[-1] + draw.expovariate(1000 * (load if number % 3000 < 2500 else 0.3)))
    queued = link(10, rate_bps=RATE_BPS, queue_bytes=10**8, codel_target_ms=5)
    packets = [(at, packet(bytes(MSS), sequence=number)) for number, at in enumerate(arrivals)]
    arrived = {read(raw)["sequence"] for _, _, _, raw in run(queued, packets)}
    dropped = [number for number in range(len(arrivals)) if number not in arrived]
    expected = RfcCoDel(arrivals, 0.001).run()
    assert len(expected) > 20
    assert dropped[: len(expected)] == expected
    assert queued.packets_queue_dropped == len(dropped)


def test_codel_lets_a_short_burst_pass():
    queued = link(10, rate_bps=RATE_BPS, queue_bytes=10**8, codel_target_ms=5)
    arrived = run(queued, [(0.0, packet(bytes(MSS)))] * 90)  # gone after 90 ms, less than the interval
    assert len(arrived) == 90 and queued.packets_queue_dropped == 0


def with_ecn(raw, ecn):
    """The packet from a sender with these ECN bits, with a correct checksum."""
    changed = bytearray(raw)
    changed[11] |= ecn
    changed[20:22] = b"\0\0"
    changed[20:22] = checksum(bytes(changed[10:30])).to_bytes(2, "big")
    return bytes(changed)


@pytest.mark.parametrize("ecn", [0, 1, 2])
def test_with_ecn_codel_marks_the_packets_of_senders_that_understand_marks(ecn):
    queued = link(10, rate_bps=RATE_BPS, queue_bytes=10**8, codel_target_ms=5, ecn=True)
    load = [(at / 100, with_ecn(packet(bytes(MSS * 20)), ecn)) for at in range(100)]
    arrived = run(queued, load)
    marks = [packets for _, packets, _, raw in arrived if raw[11] & 3 == 3]
    assert all(read(raw)["ip_checksum_left"] == 0 for *_, raw in arrived)
    assert (queued.packets_marked > 20) == bool(ecn) and (queued.packets_queue_dropped > 20) == (not ecn)
    assert marks == [1] * queued.packets_marked, "a mark is on one packet of the wire, not on a super-packet"


def test_a_mark_on_ipv6_is_in_the_traffic_class():
    raw = bytearray(OFFLOAD_BYTES + 40)
    raw[10:12] = b"\x60\x20"  # version 6, ECT(0)
    assert marked(bytes(raw))[10:12] == b"\x60\x30"
    raw[11] = 0x0F  # a flow label is no mark
    assert marked(bytes(raw)) is None


def test_a_queue_by_packets_drops_small_packets_too():
    short = link(10, rate_bps=RATE_BPS, queue_packets=5)
    arrived = run(short, [(0.0, packet(b""))] * 20)
    assert (len(arrived), short.packets_queue_dropped) == (6, 14), "one in transmission, and five that wait"
    apart = run(link(10, rate_bps=RATE_BPS, queue_packets=5), [(at / 1000, packet(bytes(MSS))) for at in range(50)])
    assert len(apart) == 50


def narrow(answers, **settings):
    made = Link(target=0, answer=answers.append)
    made.set(**asdict(LinkSettings(10, mtu_bytes=1400, **settings)), now=0.0)
    return made


@pytest.mark.parametrize("segments", [1, 10])
def test_a_packet_that_is_too_big_is_answered_with_the_mtu(segments):
    answers = []
    one, raw = narrow(answers), packet(bytes(MSS * segments), sequence=77)
    assert not one.accept(raw, now=0.0)
    assert (one.packets_too_big, one.in_flight()[0]) == (segments, 0)
    [answer] = answers
    ip = answer[OFFLOAD_BYTES:]
    assert answer[:OFFLOAD_BYTES] == bytes(OFFLOAD_BYTES)
    assert int.from_bytes(ip[2:4], "big") == len(ip) and ip[9] == 1
    assert checksum(ip[:20]) == checksum(ip[20:]) == 0
    assert ip[12:20] == bytes([10, 1, 255, 255, 10, 1, 0, 1]), "to the packet's sender, from no host"
    assert (ip[20], ip[21], int.from_bytes(ip[26:28], "big")) == (3, 4, 1400)
    assert ip[28:] == raw[OFFLOAD_BYTES : OFFLOAD_BYTES + 28], "it quotes the headers"


def test_a_packet_that_fits_passes_and_a_black_hole_says_nothing():
    answers = []
    one = narrow(answers)
    assert one.accept(packet(bytes(1400 - HEADER_BYTES)), now=0.0) and not one.accept(packet(bytes(1349)), now=0.0)
    hole = narrow(answers, mtu_black_hole=True)
    assert not hole.accept(packet(bytes(MSS)), now=0.0)
    assert len(answers) == 1 and hole.packets_too_big == 1


def test_the_answer_to_ipv6_is_packet_too_big():
    source, target = bytes([0xFD]) + bytes(14) + b"\1", bytes([0xFD]) + bytes(14) + b"\2"
    sent = struct.pack("!IHBB", 6 << 28, 1460, 17, 64) + source + target + bytes(1460)
    ip = too_big(bytes(OFFLOAD_BYTES) + sent, 1300)[OFFLOAD_BYTES:]
    assert (ip[0] >> 4, ip[6], ip[24:40], int.from_bytes(ip[4:6], "big")) == (6, 58, source, len(ip) - 40)
    assert (ip[40], int.from_bytes(ip[44:48], "big"), len(ip)) == (2, 1300, 1280)
    assert checksum(ip[8:40] + struct.pack("!II", len(ip) - 40, 58) + ip[40:]) == 0
    assert ip[48:] == sent[: 1280 - 48]


def test_a_schedule_changes_delay_loss_and_rate_at_its_times_and_begins_again():
    steps = [Step(0, delay_ms=10), Step(1, delay_ms=30, rate_bps=RATE_BPS), Step(2, loss=1), Step(3, loss=0)]
    changing = Link(target=0)
    asked = asdict(LinkSettings(5, schedule=steps, repeat_s=4)) | {"queue_bytes": None}
    sent = np.arange(0.0005, 8, 0.01)
    arrived = run(changing, [(at, packet(bytes(MSS))) for at in sent], [(0.0, asked)], until_s=10)
    delays = dict.fromkeys(sent.round(4), None)
    for due, *_ in arrived:
        at = next(at for at in (due - 0.010, due - 0.031) if round(at, 4) in delays)
        delays[round(at, 4)] = due - at
    for at, delay in delays.items():
        phase = at % 4
        expected = None if 2 <= phase < 3 else 0.010 if at < 1 else 0.031 if phase >= 1 else 0.011
        if expected == 0.011:
            continue  # the rate of the first round stays, as no step takes it back
        assert delay is None if expected is None else delay == pytest.approx(expected)


def test_what_waits_leaves_at_the_rate_that_the_link_has_then():
    queued = Link(target=0)
    steps = [Step(0.0055, rate_bps=RATE_BPS / 10), Step(0.0255, rate_bps=RATE_BPS)]
    asked = asdict(LinkSettings(0, rate_bps=RATE_BPS, schedule=steps)) | {"queue_bytes": None}
    dues = [due for due, *_ in run(queued, [(0.0, packet(bytes(MSS)))] * 10, [(0.0, asked)])]
    # Five packets, half of one, 20 ms at a tenth of the rate (two packets), and the rest.
    expected = [0.001, 0.002, 0.003, 0.004, 0.005, 0.0105, 0.0205, 0.026, 0.027, 0.028]
    assert dues == pytest.approx(expected)


@pytest.mark.parametrize("limits", [{"queue_packets": 40}, {"codel_target_ms": 5, "ecn": True}, {"codel_target_ms": 1}])
def test_counts_add_up_and_packets_stay_in_order_in_a_queue_that_is_served(limits):
    draw, arrivals, changes, at = random.Random(6), [], [], 0.0
    busy = link(10)
    for _ in range(3000):
        at += draw.expovariate(400)
        raw = packet(bytes(draw.randrange(0, 50_000)), sequence=len(arrivals))
        arrivals.append((at, with_ecn(raw, draw.choice([0, 2]))))
        if draw.random() < 0.01:
            settings = {
                "loss": draw.choice([0, 0.02]),
                "rate_bps": draw.choice([None, 5e6, 80e6]),
                "mean_loss_burst": 3,
            }
            changes.append((at, {"delay_ms": 10, "jitter_ms": 2, "queue_bytes": 200_000, **limits, **settings}))
    arrived = run(busy, arrivals, changes)
    assert busy.packets_queue_dropped and busy.packets_lost
    assert bool(busy.packets_marked) == ("ecn" in limits)
    assert busy.in_flight() == (sum(packets for _, packets, _, _ in arrived), sum(size for _, _, size, _ in arrived))
    assert [due for due, *_ in arrived] == sorted(due for due, *_ in arrived)
    assert busy.backlog_bytes(1e9) == busy._queued_packets == 0


def test_the_counts_add_up_whatever_happens():
    draw = random.Random(5)
    busy = link(10, loss=0.02, rate_bps=20e6, queue_bytes=100_000)
    now, arrived_packets, arrived_bytes = 0.0, 0, 0
    for _ in range(3000):
        now += draw.expovariate(400)
        if draw.random() < 0.01:
            busy.is_cut = not busy.is_cut
        if draw.random() < 0.01:
            changes = {"loss": draw.choice([0, 0.02]), "rate_bps": draw.choice([None, 5e6, 80e6])}
            busy.set(10, jitter_ms=2, queue_bytes=100_000, **changes, now=now)
        for _, packets, size, _ in busy.accept(packet(bytes(draw.randrange(0, 50_000))), now):
            arrived_packets += packets
            arrived_bytes += size
    assert busy.packets_queue_dropped and busy.packets_lost and busy.packets_cut
    assert busy.in_flight() == (arrived_packets, arrived_bytes)
