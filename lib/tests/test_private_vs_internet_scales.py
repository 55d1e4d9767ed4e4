"""Two links at two scales: ratios that agree and ratios that do not."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats
from trial_tables import together, trial

from wanbench.designs import interleaved
from wanbench.errors import MissingDataError
from wanbench.methods.trials.rates import trial_rates
from wanbench.pages.private_vs_internet.scales import compare_scales


def measured(ratios, seed=0, *, drops=0, blocks=3):
    """Two links at a rate each, the second `ratio` times as fast as the first; 100 batches/s per 100 Mbit/s."""
    made = _measured(tuple(ratios.items()), seed, drops, blocks)
    return replace(made, rates=made.rates.copy())


@cache
def _measured(ratios, seed, drops, blocks):
    rng, rows = np.random.default_rng(seed), []
    for k, (rate_bps, ratio) in enumerate(ratios):
        for row in interleaved(["internet", "private"], blocks, seed=seed).itertuples():
            level = rate_bps / 1e6 * (ratio if row.setting == "private" else 1) * np.exp(rng.normal(0, 0.02))
            each = trial(
                100 * k + row.order, row.setting, round(100 * level), block=10 * k + row.block, rate_bps=rate_bps
            )
            for sample in each["link_samples"]:
                sample["bytes_delivered"] = int(sample["bytes_delivered"] * rate_bps / 1e8)
            if row.order == 1 and k == 0:
                each["link_samples"][10]["packets_queue_dropped"] = drops
            rows.append(each)
    return trial_rates(together(rows))


def test_the_same_ratio_at_both_scales():
    found = compare_scales(measured({2e8: 2.25, 1e8: 2.25}))
    assert "% full at" not in str(found)
    assert list(found.comparisons) == [2e8, 1e8]
    change = found.changes[1e8]
    assert change.low < 1 < change.high and "no significant difference" in found.verdict
    assert "At 200 Mbit/s" in str(found) and "never at capacity" in found.capacity_sentence
    np.testing.assert_allclose(found.utilisation.mean_utilisation, 0.8, rtol=1e-3)


def test_a_ratio_that_changes_by_welch_over_pairs_which_the_figure_shows():
    found = compare_scales(measured({2e8: 2.25, 1e8: 1.5}, 1))
    change = found.changes[1e8]
    assert change.low < 1.5 / 2.25 < change.high and change.high < 1
    assert "scaling changes the ratio" in found.verdict
    logs = [np.log(each.pairs.ratio) for each in found.comparisons.values()]
    assert found.changes[1e8].estimate == pytest.approx(np.exp(logs[1].mean() - logs[0].mean()))
    assert found.changes[1e8].n == 12
    drawn = found.figure()
    assert [len(trace.x) for trace in drawn.data[:2]] == [6, 6]
    assert drawn.data[2].y == tuple(each.ratio.estimate for each in found.comparisons.values())
    assert found._repr_html_()


def test_batches_that_are_not_as_full_and_drops_are_cautioned():
    rows = measured({2e8: 2.25, 1e8: 2.25}, drops=7)
    rows.rates["batch_bytes"] = rows.rates.batch_bytes.where(rows.rates.rate_bps > 1e8, 31_000)
    rows.rates.loc[0, "rx_utilisation"] = 0.97
    message = "batches are 50.0 % full at 100 Mbit/s and 94.6 % at 200 Mbit/s, so Kafka's share of the link differs"
    found = compare_scales(rows)
    assert message in str(found) and message in found._repr_html_().replace("&#x27;", "'")
    assert "any within the interval is possible" in found.verdict
    assert "at capacity, or dropped" in found.capacity_sentence and "97" in found.capacity_sentence


def test_few_pairs_share_their_variance():
    found = compare_scales(measured({2e8: 2.25, 1e8: 2.25}, 3, blocks=1))
    change = found.changes[1e8]
    logs = [np.log(each.pairs.ratio) for each in found.comparisons.values()]
    half = stats.t.ppf(0.975, 2) * np.sqrt((logs[0].var() + logs[1].var()) / 2)
    assert np.log(change.high / change.estimate) == pytest.approx(half) and "pooled" in change.method
    assert "scatter equally" in change.assumption


def test_one_scale_cannot_be_compared():
    with pytest.raises(MissingDataError, match="fewer than two rates"):
        compare_scales(measured({2e8: 2.25}, blocks=1))
