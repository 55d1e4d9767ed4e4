"""The formulas against their papers, closed forms, limits and a simulation of their rules."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from wanbench.methods.tcp.models import (
    CONVEX,
    DECREASE,
    MSS_BYTES,
    PERIODIC,
    RANDOM,
    SCALE,
    backoff,
    buffer_bytes,
    bytes_sent,
    cubic_bps,
    mathis_bps,
    pftk_bps,
    timeout_share,
    unlimited_window,
    window_limited_bps,
)


def test_a_window_and_its_buffer_are_inverse():
    rtt_ms, window = np.array([1.0, 20.0, 300.0]), 3e6
    rate = window_limited_bps(window, rtt_ms)
    assert_allclose(buffer_bytes(rate, rtt_ms), window)
    assert_allclose(window_limited_bps(window, rtt_ms, 1e9)[0], 1e9)


def reno(loss_after, rounds=200_000):
    """Segments per round trip of a sender that grows by one per round and halves once per loss."""
    window, sent, until = 10.0, 0.0, loss_after()
    for _ in range(rounds):
        sent += window
        until -= window
        if until <= 0:
            window, until = window / 2, loss_after()
        else:
            window += 1
    return sent / rounds


def test_mathis_is_what_a_halving_sender_reaches():
    loss, rng = 1e-4, np.random.default_rng(0)
    assert reno(lambda: 1 / loss) == pytest.approx(PERIODIC / np.sqrt(loss), rel=0.03)
    assert reno(lambda: rng.exponential(1 / loss)) == pytest.approx(RANDOM / np.sqrt(loss), rel=0.03)


def test_mathis_falls_with_the_rtt():
    assert_allclose(mathis_bps(1e-3, 30) / mathis_bps(1e-3, 60), 2)


def test_pftk_tends_to_the_square_root_law_and_to_the_window():
    assert pftk_bps(1e-8, 80) == pytest.approx(mathis_bps(1e-8, 80), rel=0.001)
    assert pftk_bps(0, 80, window_bytes=65_536) == pytest.approx(65_536 * 8 / 0.08, rel=1e-6)
    rates = pftk_bps(np.geomspace(1e-8, 0.5, 200), 80, window_bytes=1e6)
    assert (np.diff(rates) < 0).all()


def test_pftk_by_hand():
    """Equation 32 written out with numbers: p = 0.02, RTT 0.2 s, T0 = 0.4 s, Wm = 6 and 100, b = 1."""
    p, rtt, t0 = 0.02, 0.2, 0.4
    free = 1 + np.sqrt(8 * 0.98 / (3 * 0.02) + 1)
    assert unlimited_window(p) == pytest.approx(free)
    f = 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6
    assert backoff(p) == pytest.approx(f)

    def share(w):
        kept = 1 - p
        return (1 - kept**3) * (1 + kept**3 * (1 - kept ** (w - 3))) / (1 - kept**w)

    assert timeout_share(p, 6.0) == pytest.approx(share(6.0))
    large = (49 + free + share(free) / 0.98) / (rtt * (free / 2 + 1) + share(free) * f * t0 / 0.98)
    small = (49 + 6 + share(6) / 0.98) / (rtt * (6 / 8 + 49 / 6 + 2) + share(6) * f * t0 / 0.98)
    for max_window, packets_per_s in ((100, large), (6, small)):
        got = pftk_bps(p, 200, max_window * MSS_BYTES)
        assert got == pytest.approx(8 * MSS_BYTES * packets_per_s)


def test_cubic_is_what_its_rule_reaches():
    """The window of the cubic region at losses of even distance, integrated from RFC 9438's equation 1."""
    rtt_s, loss = 0.1, 1e-5
    top = 1000.0
    k = np.cbrt(top * (1 - DECREASE) / SCALE)
    times = np.linspace(0, k, 100_001)
    window = SCALE * (times - k) ** 3 + top
    sent = np.trapezoid(window, times) / rtt_s
    assert window[0] == pytest.approx(DECREASE * top)
    assert CONVEX * (rtt_s * sent) ** 0.75 == pytest.approx(sent * rtt_s / k, rel=1e-4)
    assert cubic_bps(loss, 100) * rtt_s / (8 * MSS_BYTES) == pytest.approx(1054, rel=0.001)


def test_cubic_is_the_larger_of_its_regions():
    assert cubic_bps(1e-2, 10) == pytest.approx(mathis_bps(1e-2, 10))
    assert cubic_bps(1e-5, 200) > 2 * mathis_bps(1e-5, 200)
    rates = cubic_bps(np.geomspace(1e-7, 0.3, 100), 50)
    assert (np.diff(rates) < 0).all()


def by_rounds(segments, max_flight, first=10):
    """Whole round trips in which a flight grows until all is sent; the last counts by its share."""
    flight, rounds = min(first, max_flight), 0.0
    while segments > 0:
        part = min(segments, flight)
        rounds, segments, flight = rounds + part / flight, segments - part, min(2 * flight, max_flight)
    return rounds


@pytest.mark.parametrize("max_flight", [8, 40, 160, 1e9])
@pytest.mark.parametrize("segments", [10, 70, 310, 5_110])
def test_slow_start_sends_what_a_count_of_rounds_sends(segments, max_flight):
    rounds = by_rounds(segments, max_flight)
    early, late = (float(bytes_sent(rounds + off, 1000, max_flight * MSS_BYTES)) for off in (-0.6, 0.6))
    assert early <= segments * MSS_BYTES <= late


def test_a_long_transfer_is_at_the_steady_rate_and_a_short_one_is_not():
    assert 8 * bytes_sent(1000, 100, window_bytes=1e6) / 1000 == pytest.approx(window_limited_bps(1e6, 100), rel=0.01)
    assert 8 * bytes_sent(1, 200, window_bytes=3 * 2**20) < 0.4 * window_limited_bps(3 * 2**20, 200)


def test_formulas_take_columns():
    rtt_ms = np.array([[10.0], [100.0]])
    loss = np.array([[1e-4, 1e-3, 1e-2]])
    for rates in (mathis_bps(loss, rtt_ms), pftk_bps(loss, rtt_ms), cubic_bps(loss, rtt_ms)):
        assert rates.shape == (2, 3) and np.isfinite(rates).all()
    assert bytes_sent(10, rtt_ms, np.array([[1e4, 1e5, 1e6]])).shape == (2, 3)


def test_without_loss_only_the_window_limits():
    assert pftk_bps(0, 80) == np.inf
    assert_allclose(
        pftk_bps([0, 0.01], 80, window_bytes=65_536), [8 * 65_536 / 0.08, pftk_bps(0.01, 80, window_bytes=65_536)]
    )
