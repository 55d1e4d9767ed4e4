"""The relay without devices: segments, and one link on a simulated clock."""

import os
import random
import time

import numpy as np
import pytest
from scipy import stats
from wire_packets import HEADER_BYTES, MSS, TCP_V4, TCP_V6, link, packet, read

from wanbench.measure.links.link import Bottleneck, Link, piece, shape
from wanbench.measure.links.relay import Relay


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


def test_burst_credit_is_spent_at_the_higher_rate_then_earned_back():
    size = HEADER_BYTES + MSS
    bursting = link(0, rate_bps=8e6, burst_rate_bps=32e6, burst_bytes=300_000, queue_bytes=20 * size)
    arrived = []
    for at in np.arange(0, 1.0, size / 8e6):  # offered: 8 MB/s
        arrived += bursting.accept(packet(bytes(MSS)), now=at)
    by = [sum(bytes_ for due, _, bytes_, _ in arrived if low <= due < high) for low, high in ((0, 0.09), (0.2, 0.9))]
    assert by == pytest.approx([4e6 * 0.09, 1e6 * 0.7], rel=0.02)  # credit lasts for 300 kB / (4 - 1 MB/s) = 0.1 s
    total = sum(bytes_ for _, _, bytes_, _ in arrived)
    assert total == pytest.approx(300_000 + 1e6 * 1.0, abs=25 * size)
    [again] = bursting.accept(packet(bytes(MSS)), now=1.5)
    assert again[0] - 1.5 == pytest.approx(size / 4e6)


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
