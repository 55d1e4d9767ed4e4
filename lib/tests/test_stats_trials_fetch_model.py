"""Limits of replication, by hand and on trials."""

import numpy as np
import pandas as pd
import pytest

from wanbench.errors import ParameterError
from wanbench.stats.trials.fetch_model import compare_fetch_model, fetch_limits
from wanbench.stats.trials.in_flight import connection_window_bytes

BASE = {
    "rtt_ms": 40.0,
    "follower_rtt_ms": 60.0,
    "batch_bytes": 131_072,
    "producers": 3,
    "partitions": 9,
    "brokers": 3,
    "replication": 3,
    "replica_receive_buffer_bytes": -1,
    "broker_receive_buffer_bytes": -1,
}


def limits_of(**changes):
    return fetch_limits(pd.DataFrame([BASE | changes])).iloc[0]


def test_requests_wait_for_the_leader_and_for_its_slowest_follower():
    # 3 producers x 3 leaders x 5 requests x 3 batches, per 100 ms
    assert limits_of().by_producers == pytest.approx(135 * 131_072 / 0.1)
    assert limits_of(acks="1").by_producers == pytest.approx(135 * 131_072 / 0.04)
    assert limits_of(max_in_flight=1).by_producers == pytest.approx(27 * 131_072 / 0.1)
    buffered = limits_of(broker_receive_buffer_bytes=102_400).by_producers
    assert buffered == pytest.approx(9 * 0.64 * 204_800 / 0.04)


def test_a_broker_takes_one_request_of_a_connection_at_a_time():
    # 3 producers x 3 leaders x 3 batches, per 60 ms of replication, however many are in flight
    assert limits_of().by_acks == pytest.approx(27 * 131_072 / 0.06) and limits_of().limit == "acks"
    assert limits_of(max_in_flight=1).limit == "producers" and np.isinf(limits_of(acks="1").by_acks)
    assert limits_of(rtt_ms=400.0).limit == "producers"


def test_a_fetch_returns_so_much_per_partition_and_round_trip():
    # each leader sends 3 partitions to each follower: 3 MiB per 60 ms, for 3 leaders
    assert limits_of().by_fetch == pytest.approx(3 * 3 * 2**20 / 0.06)
    assert limits_of(fetch_max_bytes=2**17).by_fetch == pytest.approx(3 * 3 * 2**17 / 0.06)
    assert limits_of(partitions=90).by_fetch == pytest.approx(3 * 10 * 2**20 / 0.06)
    assert limits_of(partitions=90, fetchers=3).by_fetch == pytest.approx(3 * 30 * 2**20 / 0.06)


def test_the_receive_buffer_bounds_what_is_in_flight():
    buffer = {"replica_receive_buffer_bytes": 65_536}
    window = float(connection_window_bytes(65_536))
    assert limits_of(**buffer).by_buffer == pytest.approx(3 * window / 0.06)
    assert limits_of(**buffer, fetchers=2).by_buffer == pytest.approx(6 * window / 0.06)
    assert limits_of(**buffer, fetchers=8).by_buffer == pytest.approx(9 * window / 0.06)
    assert limits_of(**buffer).limit == "buffer" and np.isinf(limits_of().by_buffer)
    plain = fetch_limits(pd.DataFrame([{name: BASE[name] for name in list(BASE)[:7]}])).iloc[0]
    assert plain.by_buffer == pytest.approx(3 * window / 0.06)


def test_copies_share_links_and_connections():
    assert limits_of(link_rate_bps=8e6).by_rate == pytest.approx(3e6)
    assert limits_of(link_rate_bps=8e6, replication=2).by_rate == pytest.approx(6e6)
    for alone in ({"acks": "1"}, {"acks": 0}, {"replication": 1}):
        assert np.isinf(limits_of(**alone)[["by_fetch", "by_buffer", "by_rate"]].to_numpy(dtype=float)).all()


def made(factor=0.6, exponent=1.0, spread=0.02, seed=0):
    rng = np.random.default_rng(seed)
    rows = [BASE | {"batch_bytes": 2**k} for k in range(14, 19)] * 2
    frame = fetch_limits(pd.DataFrame(rows))
    unit = frame.predicted.max()
    level = factor * unit * (frame.predicted / unit) ** exponent * np.exp(rng.normal(0, spread, len(frame)))
    return pd.DataFrame(rows).assign(bytes_per_s=level)


def test_measured_is_compared_with_the_limit_that_holds():
    found = compare_fetch_model(made())
    one = found.reached["acks"]
    assert list(found.reached) == ["acks"] and one.low < 0.6 < one.high and one.high / one.low < 1.1
    assert one.basis == "10 trials at 5 settings"
    assert found.exponent.low < 1 < found.exponent.high and "shape is that of the model" in str(found)
    bent = compare_fetch_model(made(exponent=0.7))
    assert bent.exponent.high < 1 and "shape is not that of the model" in str(bent)


def test_what_cannot_be_is_cautioned_and_what_cannot_count_is_named():
    assert "reached more than the limits allow" in str(compare_fetch_model(made(factor=1.5)))
    frame = made()
    frame.loc[0, "bytes_per_s"] = 0
    assert "1 of 10 trials not in use" in str(compare_fetch_model(frame))
    alone = compare_fetch_model(made()[:1])
    assert "a single setting" in str(alone) and "no exponent" in str(alone)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rtt_ms": 0.0}, "column rtt_ms is 0.0; allowed: numbers above 0"),
        ({"replica_receive_buffer_bytes": -2}, "or -1"),
        ({"replication": 4}, "no more copies than brokers"),
    ],
)
def test_impossible_settings_are_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        limits_of(**changes)


def test_trials_on_a_two_core_machine():
    # trial on a 2-core machine: RTT 30, 40 and 70 ms, 3 producers, acks=all, buffers left to the kernel; MB/s
    trials = [
        *((kilobytes, 9, 3, mb) for kilobytes, mb in ((16, 3.2), (32, 6.9), (64, 14), (128, 26), (256, 46))),
        *((16, partitions, 3, mb) for partitions, mb in ((18, 7.0), (36, 13.5), (72, 25))),
        *((128, 9, producers, mb) for producers, mb in ((6, 48), (12, 72))),
    ]
    frame = pd.DataFrame(trials, columns=["kilobytes", "partitions", "producers", "mb_per_s"])
    rtt = {"rtt_ms": 3 / (1 / 30 + 1 / 40 + 1 / 70), "follower_rtt_ms": 70.0, "link_rate_bps": 1e9}
    fixed = {name: BASE[name] for name in ("brokers", "replication", "replica_receive_buffer_bytes")}
    frame = frame.assign(**fixed, **rtt, broker_receive_buffer_bytes=-1, batch_bytes=1024 * frame.kilobytes)
    found = compare_fetch_model(frame.assign(bytes_per_s=1e6 * frame.mb_per_s))
    # only with 12 producers, more than a fetch returns
    assert (found.trials.limit[:-1] == "acks").all() and (found.trials.reached < 1).all()
    # proportional to batch, partitions and producers as the model says, at the half that fetches leave that never wait
    assert 0.4 < found.reached["acks"].estimate < 0.6
    assert 0.9 < found.exponent.estimate < 1.1


def test_default_buffers_on_a_two_core_machine():
    # trial on a 2-core machine, batch 128 KiB, fetchers with their default buffer: 4 to 6.3 MB/s
    found = limits_of(
        batch_bytes=131_072, producers=1, follower_rtt_ms=70.0, replica_receive_buffer_bytes=65_536
    )
    assert found.limit == "buffer" and 3e6 < found.predicted < 5e6


def test_every_number_is_drawn():
    figure = compare_fetch_model(made()).figure(note="A check.")
    assert len(figure.data) == 2 and "by_buffer" in figure.layout.meta["csv"]
