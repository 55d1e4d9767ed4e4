"""Response surfaces, on runs of a surface whose best setting is known."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from wanbench.designs import Range, space_filling
from wanbench.errors import ParameterError
from wanbench.pages.geo_kafka.surface import fit_surface

SPACE = {
    "batch_bytes": Range(16_384, 1_048_576, log=True),
    "linger_ms": Range(0.0, 50.0),
    "compression": ["lz4", "none", "zstd"],
}
FACTORS = list(SPACE)
GAINS = {"none": 0.0, "lz4": 0.3, "zstd": 0.5}
BEST_BYTES = 16_384 * 64**0.7


def truth(rows):
    x = 2 * np.log(rows.batch_bytes / 16_384) / np.log(64) - 1
    y = rows.linger_ms / 25 - 1
    return 100 * np.exp(-0.8 * (x - 0.4) ** 2 - 0.5 * (y + 0.2) ** 2 + rows.compression.map(GAINS))


def made(seed=0, runs=36, spread=0.05, centres=4):
    plan = space_filling(SPACE, runs, seed=seed, centres=centres)
    noise = np.random.default_rng(seed + 1000).normal(0, spread, len(plan))
    return plan.assign(mb_per_s=truth(plan) * np.exp(noise))


def fitted(frame, **more):
    return fit_surface(frame, "mb_per_s", FACTORS, **{"linear": ["linger_ms"], "unit": "MB/s"} | more)


@cache
def plain():
    """The surface fitted to `made()`, for all tests that only look at it."""
    return fitted(made())


@cache
def precise():
    """As `plain`, with hardly any noise."""
    return fitted(made(spread=1e-4))


def test_the_best_setting_is_found():
    found = precise()
    assert found.best_setting["batch_bytes"] == pytest.approx(BEST_BYTES, rel=0.02)
    assert found.best_setting["linger_ms"] == pytest.approx(20, abs=0.3)
    assert found.best_setting["compression"] == "zstd"
    assert found.best.estimate == pytest.approx(100 * np.exp(0.5), rel=1e-3)
    assert found.among_best["to"][0] / found.among_best["from"][0] < 1.5


def test_effects_are_those_of_the_surface():
    found = precise()
    assert found.effects["compression"].estimate == pytest.approx(np.exp(0.5), rel=1e-3)


def test_the_interval_and_the_set_hold_what_is_true():
    found = plain()
    at = pd.DataFrame([found.best_setting])
    assert found.best.low < truth(at)[0] < found.best.high
    alone = found.best.others[0]
    assert found.best.low < alone.low < found.best.estimate < alone.high < found.best.high
    good = found.places[found.places.is_among_best]
    assert good.batch_bytes.min() < BEST_BYTES < good.batch_bytes.max() and "zstd" in set(good.compression)
    assert found.places.is_among_best.iloc[-1] and 0 < found.places.is_among_best.mean() < 0.5
    assert found.at(at).high[0] == pytest.approx(found.best.high)


def test_the_surface_is_tested_against_repeated_runs():
    assert "does not fit" not in str(plain())
    frame = made(spread=0.01)
    steps = frame.assign(mb_per_s=frame.mb_per_s * np.where(frame.batch_bytes > BEST_BYTES, 0.3, 1.0))
    found = fitted(steps)
    assert found.lack_of_fit_p < 0.01 and "does not fit" in str(found)
    assert "no run was repeated" in str(fitted(made(centres=0)))


def test_a_best_setting_at_the_edge_is_cautioned():
    frame = made()
    found = fitted(frame.assign(mb_per_s=frame.mb_per_s * (frame.batch_bytes / 16_384) ** 2))
    assert found.best_setting["batch_bytes"] == pytest.approx(frame.batch_bytes.max())
    assert "at the edge of the region (batch size" in str(found)


def test_the_best_response_in_other_blocks_is_as_uncertain_as_blocks_differ():
    logs, block = np.array([-0.2, -0.05, 0.05, 0.2]), np.arange(40) % 4
    frame = made(spread=1e-4).assign(block=block)
    found = fitted(frame.assign(mb_per_s=frame.mb_per_s * np.exp(logs[block])), block="block")
    half = stats.t.ppf(0.975, 3) * logs.std(ddof=1) / 2
    for one in (found.best, found.best.others[0], found.places.iloc[-1]):
        assert np.log([one.low, one.high]) == pytest.approx(
            np.log(found.best.estimate) + half * np.array([-1, 1]), abs=0.01
        )
    alone = fitted(frame.assign(block=0), block="block")
    assert np.isnan(alone.best.low) and "a single block" in " ".join(alone.cautions)


def test_blocks_shift_the_response_and_nothing_else():
    frame = made(spread=1e-4).assign(block=np.arange(40) % 2)
    shifted = frame.assign(mb_per_s=frame.mb_per_s * np.where(frame.block, 2.0, 1.0))
    found, one_block = fitted(shifted, block="block"), precise()
    assert found.best.estimate == pytest.approx(np.sqrt(2) * one_block.best.estimate, rel=0.01)
    assert found.fit.variance < 1e-4


def test_rows_that_cannot_count_are_named():
    frame = made()
    frame.loc[[1, 2], "mb_per_s"] = [0, np.nan]
    assert "2 of 40 runs not used" in str(fitted(frame))


def test_what_cannot_be_fitted_is_refused():
    frame = made()
    with pytest.raises(ParameterError, match="cannot separate 12 terms"):
        fitted(frame[:12])
    with pytest.raises(ParameterError, match="allowed: linear="):
        fit_surface(frame.assign(linger_ms=frame.linger_ms.round(-1) * (frame.order > 3)), "mb_per_s", FACTORS)
    with pytest.raises(ParameterError, match="one level only"):
        fitted(frame.assign(compression="none"))
    with pytest.raises(ParameterError, match="lacks column"):
        fit_surface(frame, "mb_per_s", ["acks"])


def test_every_slice_is_drawn():
    figure = plain().figure()
    assert len(figure.layout.annotations) == 3 and "along" in figure.layout.meta["csv"]
