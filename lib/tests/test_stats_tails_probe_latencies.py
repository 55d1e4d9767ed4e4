"""Tails of what a probe recorded: held and lost records, warm-up, clocks, publish latency, several probes."""

import numpy as np
import pandas as pd
import probe_samples as samples
import pytest

from wanbench.errors import ParameterError
from wanbench.ingest import kafka_probe
from wanbench.stats.tails import latencies as tails
from wanbench.stats.tails.over_time_figure import over_time


def probe(tmp_path, latencies, **more):
    receipts = [samples.receipt(n, ms) for n, ms in enumerate(latencies) if ms == ms]
    path = samples.write(tmp_path, samples.producer(len(latencies)), samples.consumer(receipts), **more)
    return kafka_probe.read(path)


def test_a_probe_with_held_and_lost_records(tmp_path):
    latencies = np.full(2_000, 25.0) + np.random.default_rng(1).random(2_000)
    latencies[50::100] += 500
    latencies[77] = np.nan
    found = probe(tmp_path, latencies)
    tail = tails.of_records(found["probe_records"], warm_up=0)
    assert tail.n == 2_000 and tail.n_lost == 1
    at = tails.quantiles(tail, (0.5, 0.985, 0.995))
    assert at[0.5].high < 27 and at[0.985].estimate < 27 and at[0.995].low > 500
    again = tails.of_histograms(found["histograms"])
    assert again.quantile(0.5) == pytest.approx(tail.quantile(0.5), rel=2e-3) and again.n == 1_999


def test_seconds_of_warm_up_are_cut(tmp_path):
    latencies = np.concatenate([np.full(100, 300.0), np.full(400, 25.0)])
    records = probe(tmp_path, latencies)["probe_records"]
    assert tails.of_records(records, warm_up=2.0).n == 400
    tail = tails.of_records(records, warm_up="mser")
    assert (tail.n, tail.n_cut) == (400, 100) and "400 records, after 100 of warm-up" in tail.estimate(
        0.5
    ).basis
    with pytest.raises(
        ParameterError, match="warm_up is 60; allowed: a number of seconds that leaves records"
    ):
        tails.of_records(records, warm_up=60)


def test_drift_is_a_caution(tmp_path):
    latencies = np.linspace(25, 60, 2_000) + np.random.default_rng(1).random(2_000)
    found = tails.quantiles(tails.of_records(probe(tmp_path, latencies)["probe_records"], warm_up=0), (0.5,))
    assert "are not stationary" in str(found[0.5]) and "are not stationary" in str(found)


def test_without_clocks_there_are_no_quantiles(tmp_path):
    records = probe(tmp_path, np.full(10, 25.0), clock=(None, None, "not known"))["probe_records"]
    with pytest.raises(ParameterError, match="offset between the clocks"):
        tails.of_records(records)
    with pytest.raises(ParameterError, match="by group 3"):
        tails.of_records(records, group=3)


def test_from_the_actual_send_a_late_producer_does_not_show(tmp_path):
    """The samples are sent 0.1 ms after they are due."""
    records = probe(tmp_path, np.full(100, 25.0))["probe_records"]
    assert tails.of_records(records).quantile(0.5) == 25
    assert tails.of_records(records, since="sent").quantile(0.5) == pytest.approx(24.9, abs=1e-3)
    with pytest.raises(ParameterError, match="since is 'x'; allowed: 'intended', 'sent'"):
        tails.of_records(records, since="x")


def test_a_tail_of_publish_latency_counts_each_record_once_and_what_is_never_acknowledged(tmp_path):
    """Two groups; one record is received by the second alone, one by none, one is never acknowledged."""
    producer = samples.producer(200, acknowledged=range(1, 200))
    groups = [[samples.receipt(n, 60) for n in range(200) if n not in missed] for missed in ((7, 9), (9,))]
    path = samples.write(tmp_path, producer, *map(samples.consumer, groups), clock=(None, None, "not known"))
    records = kafka_probe.read(path)["probe_records"]
    for since, latency_ms in (("intended", 30.1), ("sent", 30.0)):
        tail = tails.of_records(records, what="publish", since=since, warm_up=0)
        assert (tail.n, tail.n_lost) == (200, 1) and tail.quantile(0.99) == pytest.approx(
            latency_ms, abs=1e-3
        )
    both = pd.concat([records.assign(test_id=name) for name in "ab"], ignore_index=True)
    assert tails.of_records(both, what="publish", warm_up=0).n == 400
    with pytest.raises(ParameterError, match="what is 'x'; allowed: 'end to end', 'publish'"):
        tails.of_records(records, what="x")
    none = kafka_probe.read(samples.write(tmp_path, samples.producer(acknowledged=[]), samples.consumer([])))
    with pytest.raises(ParameterError, match="no record was acknowledged"):
        tails.of_records(none["probe_records"], what="publish")


@pytest.mark.parametrize("producers, cautioned", [(1, True), (2, False)])
def test_a_probe_that_queues_on_itself_is_a_caution(tmp_path, producers, cautioned):
    """A record every 20 ms that takes 30 to publish needs two producers."""
    receipts = [samples.receipt(n, 40) for n in range(500)]
    path = samples.write(
        tmp_path,
        samples.producer(500),
        samples.consumer(receipts),
        settings={"producers": producers},
        leaders=(1,),
    )
    found = tails.quantiles(tails.of_records(kafka_probe.read(path)["probe_records"], warm_up=0), (0.5,))
    assert ("publishing takes longer than the interval times the producers" in str(found)) == cautioned


def test_several_probes_are_runs(tmp_path):
    frames = []
    for k in range(3):
        latencies = np.random.default_rng(k).lognormal(3 + k / 10, 0.1, 600)
        frames.append(probe(tmp_path / str(k), latencies)["probe_records"].assign(test_id=str(k)))
    tail = tails.of_records(pd.concat(frames, ignore_index=True), warm_up=0)
    assert tail.n == 1_800 and tail.parts.kind == "runs" and [len(run) for run in tail.runs] == [600] * 3
    assert tail.effective_n(0.5) < 20


def test_latency_over_time_shows_what_was_never_received(tmp_path):
    latencies = np.full(300, 25.0)
    latencies[[10, 11]] = np.nan
    latencies[200] = 900
    figure = over_time(probe(tmp_path, latencies)["probe_records"])
    received, never = figure.data
    assert len(received.x) == 298 and max(received.y) == 900
    assert np.round(never.x, 6).tolist() == [0.2, 0.22] and never.name == "never received"
