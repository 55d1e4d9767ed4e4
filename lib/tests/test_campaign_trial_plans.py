"""Plans of trials over two paths, and of the thesis: what varies, and in which order."""

import pytest

from wanbench.errors import ParameterError
from wanbench.measure.experiments import KafkaLoad, Ping
from wanbench.measure.plan import Trial, make_trials
from wanbench.methods.trials.rates import records_per_full_batch
from wanbench.pages.private_vs_internet.design import (
    BATCH_HEADER_BYTES,
    MOST_RECORD_HEADER_BYTES,
    RECORD_HEADER_BYTES,
    Path,
    thesis,
    two_paths,
)

PATHS = [Path("internet", 132.9, 25.1), Path("private", 62.5, 0.7)]
LOAD = KafkaLoad(batch_bytes=80_000, duration_s=5, warmup_s=2)


def plan_of(trials):
    return make_trials(trials, from_region="a", to_region="b")


def test_paths_take_turns_at_every_scale():
    trials = two_paths(PATHS, LOAD, rate_bps=1e9, scales={10: 2, 20: 1}, background_share=0.8)
    by_block = {}
    for trial in trials:
        by_block.setdefault(trial.block, []).append(trial)
    assert [len(block) for block in by_block.values()] == [4, 4, 4]
    for block in by_block.values():
        settings = [trial.setting for trial in block]
        assert settings == settings[::-1] and set(settings) == {"internet", "private"}
        assert len({trial.experiments[0].link.rate_bps for trial in block}) == 1
    assert [block[0].experiments[0].link.rate_bps for block in by_block.values()] == [1e8, 5e7, 1e8]


def test_scaling_down_divides_link_background_and_batches_alike():
    for trial in two_paths(PATHS, LOAD, rate_bps=1e9, scales={10: 1, 20: 1}, background_share=0.8):
        [one] = trial.experiments
        scale = 1e9 / one.link.rate_bps
        assert one.background.rate_bps == 0.8 * one.link.rate_bps
        assert one.load.batch_bytes == 80_000 / scale
        assert one.background.duration_s >= one.load.duration_s + one.load.warmup_s + 1
        assert one.ping.count * one.ping.interval_s == one.background.duration_s


@pytest.mark.parametrize("full", [80_000, 81_920, 131_072])
@pytest.mark.parametrize("scale", [1, 5, 10, 20, 40, 80])
def test_batches_are_as_full_at_every_scale(full, scale):
    load = KafkaLoad(batch_bytes=full, duration_s=5)
    for trial in two_paths(PATHS, load, rate_bps=1e9, scales={scale: 1}, background_share=0.8):
        [one] = trial.experiments
        records = records_per_full_batch(one.load.batch_bytes, one.load.record_bytes)
        filled = BATCH_HEADER_BYTES + records * (one.load.record_bytes + RECORD_HEADER_BYTES)
        assert 0.98 < filled / one.load.batch_bytes <= 1
        late = BATCH_HEADER_BYTES + records * (one.load.record_bytes + MOST_RECORD_HEADER_BYTES)
        assert late <= one.load.batch_bytes and 500 < one.load.record_bytes < 1500


def test_records_keep_their_size_where_that_is_asked():
    asked = {"rate_bps": 1e9, "scales": {20: 1}, "background_share": 0.8}
    trials = two_paths(PATHS, LOAD, **asked, fit_records=False)
    assert {trial.experiments[0].load.record_bytes for trial in trials} == {1000}


def test_a_path_gives_each_direction_its_part_of_delay_and_deviation():
    link = PATHS[0].link(1e8)
    assert 2 * link.delay_ms == pytest.approx(132.9)
    assert 2**0.5 * link.jitter_ms == pytest.approx(25.1)
    assert link.rate_bps == 1e8


def test_the_thesis_varies_link_and_producer():
    factors = {"delay_ms": [10.0, 40.0], "rate_bps": [2e7, 1e8], "acks": ["1", "all"], "batch_bytes": [16384, 131072]}
    trials = thesis(factors, LOAD, replicates=2, seed=3)
    seen = {
        (one.link.delay_ms, one.link.rate_bps, one.load.acks, one.load.batch_bytes)
        for trial in trials
        for one in trial.experiments
    }
    assert len(trials) == 32 and len(seen) == 16
    assert {trial.block for trial in trials} == {1, 2}
    assert len({trial.setting for trial in trials}) == 16
    half = thesis(factors, LOAD, replicates=1, fraction={"acks": ["delay_ms", "rate_bps", "batch_bytes"]})
    assert len(half) == 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scales": {}}, "scales is {}"),
        ({"scales": {0.5: 1}}, "scales of at least 1"),
        ({"background_share": 1.0}, "background_share is 1.0"),
        ({"rate_bps": 0}, "rate_bps is 0"),
        ({"scales": {2000: 1}}, "batch_bytes is 40 at this scale"),
    ],
)
def test_what_cannot_be_planned_is_refused(change, message):
    given = {"rate_bps": 1e9, "scales": {10: 1}, "background_share": 0.8} | change
    with pytest.raises(ParameterError, match=message):
        two_paths(PATHS, LOAD, **given)


@pytest.mark.parametrize("name", ["bandwith", "n_consumers", "run"])
def test_a_factor_that_nothing_has_is_refused(name):
    with pytest.raises(ParameterError, match=f"factors has {name}; allowed: delay_ms"):
        thesis({name: [1, 2]}, LOAD, replicates=1)


def test_pings_and_background_need_a_load_by_time():
    by_count = KafkaLoad(records=100, duration_s=None)
    with pytest.raises(ParameterError, match="a load with duration_s"):
        two_paths(PATHS, by_count, rate_bps=1e9, scales={10: 1}, background_share=0.8)


def test_a_plan_of_trials_needs_trials():
    with pytest.raises(ParameterError, match="at least one trial"):
        plan_of([])
    with pytest.raises(ParameterError, match="not a trial with a setting"):
        plan_of([Trial("", (Ping(),))])
