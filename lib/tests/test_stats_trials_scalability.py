"""The Universal Scalability Law, on trials that follow it, that grow linearly, and that follow another law."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from wanbench.errors import ParameterError
from wanbench.pages.geo_kafka.scalability import fit_scalability
from wanbench.pages.geo_kafka.scalability_fit import usl

PRODUCERS = (1, 2, 4, 8, 16, 32)


def made(gamma=10.0, alpha=0.05, beta=0.002, *, seed=0, replicates=3, spread=0.02, drift=0.0):
    rng, rows = np.random.default_rng(seed), []
    for block, own in enumerate(rng.normal(0, drift, replicates)):
        for n in PRODUCERS:
            rows.append((n, block, usl(n, gamma, alpha, beta) * np.exp(own + rng.normal(0, spread))))
    return pd.DataFrame(rows, columns=["producers", "block", "mb_per_s"])


def test_the_parameters_and_the_peak_are_found_again():
    found = fit_scalability(made(spread=1e-4), "mb_per_s", unit="MB/s")
    truth = {"gamma": 10, "alpha": 0.05, "beta": 0.002, "peak_producers": np.sqrt(0.95 / 0.002)}
    truth |= {"peak": usl(truth["peak_producers"], 10, 0.05, 0.002), "efficiency": usl(32, 1, 0.05, 0.002) / 32}
    for name, value in truth.items():
        one = getattr(found, name)
        assert one.estimate == pytest.approx(value, rel=0.005) and one.low < one.estimate < one.high
    assert not found.is_linear_possible and "is not linear" in str(found) and "The peak is" in str(found)


def test_ends_are_those_of_the_likelihood_profile():
    frame = made()
    found, n, log = fit_scalability(frame, "mb_per_s"), frame.producers.to_numpy(), np.log(frame.mb_per_s)

    def least(alpha):
        def squares(theta):
            return ((log - np.log(usl(n, np.exp(theta[0]), alpha, theta[1]))) ** 2).sum()

        return optimize.minimize(
            squares, [np.log(10), 0.002], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13}
        ).fun

    allowed = least(found.alpha.estimate) * (1 + stats.f.ppf(0.95, 1, len(n) - 3) / (len(n) - 3))
    for end in (found.alpha.low, found.alpha.high):
        assert least(end) == pytest.approx(allowed, rel=0.1)


def test_linear_growth_has_no_peak_within_reach():
    found = fit_scalability(made(alpha=0.0, beta=0.0, seed=1), "mb_per_s")
    assert found.is_linear_possible and "not shown to differ from linear" in str(found)
    assert np.isinf(found.peak_producers.high) and found.peak_producers.low > 32
    assert found.alpha.low == found.beta.low == 0 and found.efficiency.high == 1


def test_a_boundary_fit_is_said_as_such():
    found = fit_scalability(made(alpha=0.1, beta=0.0, spread=1e-3, seed=2), "mb_per_s", unit="MB/s")
    if found.beta.estimate == 0:
        assert "There is no peak" in str(found)
    assert np.isinf(found.peak_producers.high) and not found.is_linear_possible
    frame = made(alpha=0.1, beta=0.0, spread=0.0, replicates=2)
    frame["mb_per_s"] *= np.where(frame.block == 0, 0.99, 1 / 0.99)
    exact = fit_scalability(frame, "mb_per_s", unit="MB/s")
    assert exact.beta.estimate == 0 and "levels off at 100" in str(exact)


def test_a_peak_beyond_the_trials_is_cautioned():
    found = fit_scalability(made(alpha=0.02, beta=2e-4, spread=1e-3), "mb_per_s")
    assert found.peak_producers.estimate == pytest.approx(70, rel=0.05) and "it is extrapolated" in str(found)


def test_what_blocks_have_in_common_is_removed():
    frame = made(drift=0.3)
    wide, narrow = (fit_scalability(frame, "mb_per_s", block=block) for block in (None, "block"))
    assert wide.alpha.high - wide.alpha.low > 3 * (narrow.alpha.high - narrow.alpha.low)
    assert narrow.peak_producers.low < np.sqrt(0.95 / 0.002) < narrow.peak_producers.high


def test_the_peak_in_other_blocks_is_covered_where_blocks_differ():
    truth, covered = usl(np.sqrt(0.95 / 0.002), 10, 0.05, 0.002), []
    for seed in range(40):
        found = fit_scalability(made(seed=seed, drift=0.1), "mb_per_s", block="block")
        covered += [found.peak.low < truth < found.peak.high, found.gamma.low < 10 < found.gamma.high]
    assert np.mean(covered) > 0.85  # 0.2 if blocks are taken as all there are


def test_a_single_block_gives_no_interval_of_levels():
    found = fit_scalability(made(replicates=1), "mb_per_s", block="block")
    assert np.isnan([found.peak.low, found.peak.high, found.gamma.low]).all()
    assert found.alpha.low < 0.05 < found.alpha.high
    assert "a single block" in " ".join(found.cautions)
    assert "(no interval)" in found.sentence


def test_another_law_is_cautioned():
    frame = made()
    assert "does not fit" not in str(fit_scalability(frame, "mb_per_s"))
    steps = np.minimum(10.0 * frame.producers, 60.0) * np.exp(np.random.default_rng(0).normal(0, 0.02, len(frame)))
    assert "the law does not fit" in str(fit_scalability(frame.assign(mb_per_s=steps), "mb_per_s"))


def test_what_cannot_be_fitted_is_refused():
    with pytest.raises(ParameterError, match="3 or more different numbers"):
        fit_scalability(made()[lambda rows: rows.producers < 3], "mb_per_s")
    with pytest.raises(ParameterError, match="cannot determine 3 parameters"):
        fit_scalability(made(replicates=1)[:3], "mb_per_s")


def test_rows_that_cannot_count_are_named():
    frame = made()
    frame.loc[0, "mb_per_s"] = np.nan
    assert "1 of 18 trials not used" in str(fit_scalability(frame, "mb_per_s"))


def test_trials_on_a_machine_of_two_cores():
    # 128 kB batches, RTT 30 to 70 ms: 3, 6, 12 and 18 producers reached 27, 48, 72 and 78 MB/s (the last: CPU full)
    frame = pd.DataFrame({"producers": [3, 6, 12, 18], "mb_per_s": [27.0, 48.0, 72.0, 78.0]})
    found = fit_scalability(frame, "mb_per_s", unit="MB/s")
    assert 0.3 < found.efficiency.estimate < 0.7 and not found.is_linear_possible


def test_every_number_is_drawn():
    figure = fit_scalability(made(), "mb_per_s", unit="MB/s").figure()
    assert figure.layout.meta["csv"].startswith("producers,fitted") and len(figure.data) == 4
