"""Two interleaved links: ratios with a known answer."""

import re
from functools import cache, partial

import numpy as np
import pytest
from scipy import stats
from trial_tables import together, trial

from wanbench.designs import interleaved
from wanbench.errors import ParameterError
from wanbench.methods.trials.rates import TrialRates, trial_rates
from wanbench.pages.private_vs_internet.two_links import compare_links, more_or_less, times

LINKS = {"internet": 100, "private": 225}


def trials(seed=0, blocks=3, *, drift=0.0, noise=0.02, by_seconds=None, links=LINKS, **settings):
    """A trial's rate is its link's, times what drifts by per trial, times a draw."""
    rng = np.random.default_rng(seed)
    rows = []
    for row in interleaved(list(links), blocks, seed=seed).itertuples():
        level = links[row.setting] * np.exp(drift * row.order + rng.normal(0, noise))
        rows.append(trial(row.order, row.setting, round(100 * level), block=row.block, rng=by_seconds, **settings))
    return rows


def measured(*args, **settings) -> TrialRates:
    return trial_rates(together(trials(*args, **settings)))


@cache
def compared(seed=1, blocks=3, **settings):
    """Trials and their comparison, for tests that change neither."""
    rates = measured(seed, blocks, **settings)
    return rates, compare_links(rates)


def test_the_ratio_is_recovered_in_pairs():
    _, found = compared()
    assert found.ratio.low < 2.25 < found.ratio.high and found.ratio.n == 6
    assert len(found.pairs) == 6
    np.testing.assert_allclose(found.ratio.estimate, found.pairs.b.mean() / found.pairs.a.mean())
    assert found.other_values["records_per_s"].estimate == pytest.approx(found.ratio.estimate, rel=1e-6)
    assert "2.2" in found.sentence and "% more" in found.sentence and "by 1" not in found.sentence


def test_partners_were_measured_next_to_each_other():
    pairs = compared(4, blocks=4, drift=0.02)[1].pairs
    assert len(pairs) == 8 and (np.abs(pairs.order_a - pairs.order_b) == 1).all()
    assert ((pairs.order_b - pairs.order_a).groupby(pairs.block).sum() == 0).all()


def test_a_trial_that_failed_keeps_its_place_in_the_plan():
    """In A B B A without the first B, the second one still belongs to the A that follows it."""
    rows = [
        trial(k, name, 100 + k, block=1) for k, name in enumerate(("internet", "private", "private", "internet"), 1)
    ]
    rows += [
        trial(k, name, 100 + k, block=2) for k, name in enumerate(("private", "internet", "internet", "private"), 5)
    ]
    rows[1]["tests"][0]["outcome"] = "failed"
    pairs = compare_links(trial_rates(together(rows))).pairs
    assert [*zip(pairs.a, pairs.b, strict=True)] == [(104, 103), (106, 105), (107, 108)]
    rows[1]["tests"][0]["outcome"] = "done"
    del rows[1]["producer_windows"], rows[1]["batches"]
    assert len(compare_links(trial_rates(together(rows))).pairs) == 3


def test_a_failure_is_caution_at_its_own_scale_only():
    rows = trials(5, blocks=1) + [
        trial(20 + k, name, 100 + k, block=9, rate_bps=5e7) for k, name in enumerate([*LINKS, *LINKS])
    ]
    rows[-1]["tests"][0]["outcome"] = "failed"
    found = trial_rates(together(rows))
    assert "left out" in str(compare_links(found.at(rate_bps=5e7)))
    assert "left out" not in str(compare_links(found.at(rate_bps=1e8)))
    assert found.at(rate_bps=1e8).left_out.empty and len(found.left_out) == 1


def test_producers_that_send_flat_out_wait_in_their_own_buffers():
    caution = "fill their buffers"
    flat_out, paced = compared()[1], compare_links(measured(1, blocks=1, target_records_per_s=100))
    assert caution in str(flat_out) and not any(caution in each for each in flat_out.ratio.warnings)
    assert caution not in str(paced) and "mean_latency_ms" in paced.other_values


def test_a_trial_in_which_nothing_arrived_is_caution():
    rows = trials(1)
    for row in rows[0]["batches"]:
        row["batches"] = row["records"] = row["bytes"] = 0
    rates = trial_rates(together(rows))
    found = compare_links(rates)
    assert len(found.pairs) == 5
    assert "1 trial without a positive rate of batches left out" in str(found)
    assert "Caution" not in rates.figure().layout.meta["caption"]


def test_the_words_of_the_ratio_are_of_pairs():
    ratio = compare_links(measured(1, blocks=1)).ratio
    assert ratio.n == 2 and "block" not in ratio.basis + ratio.method + ratio.assumption
    assert not any("medians" in each for each in ratio.warnings)


def test_a_trial_without_partner_is_caution_and_so_is_one_left_out_below_the_figure():
    rows = trials(5)
    rows[1]["tests"][0]["outcome"] = "failed"
    rates = trial_rates(together(rows))
    found = compare_links(rates)
    assert "Caution: 1 trial left out (1 that failed)." in rates.figure().layout.meta["caption"]
    assert len(found.pairs) == 5 and len(found.trials) == 11
    assert "1 trial without a partner" in str(found) and "1 that failed" in str(found)


def test_one_trial_each_has_no_interval():
    rows = [trial(1, "internet", 100, rng=np.random.default_rng(1), seconds=30)]
    rows.append(trial(2, "private", 225, rng=np.random.default_rng(2), seconds=30))
    found = compare_links(trial_rates(together(rows)))
    assert np.isnan(found.ratio.low) and "a link has a single trial" in str(found)
    assert found.ratio.estimate == pytest.approx(2.25, rel=0.05)


def test_inside_the_trials():
    found = compare_links(measured(6, noise=0.2, by_seconds=np.random.default_rng(0)))
    naive = found.by_trial.naive
    assert naive.high - naive.low < (found.by_trial.high - found.by_trial.low) / 3


def test_intervals_are_those_of_scipy():
    _, found = compared()
    a, b = found.pairs.a, found.pairs.b
    for one, test in ((found.ratio, stats.ttest_rel), (found.by_trial, partial(stats.ttest_ind, equal_var=False))):
        peer = test(b / b.mean(), a / a.mean()).confidence_interval(0.95)
        assert np.log([one.low, one.high]) - np.log(one.estimate) == pytest.approx(peer)


def test_pairs_take_out_what_both_links_share():
    rows = []
    for number, hour in enumerate((1.0, 2.0, 0.7, 1.4)):
        rows += [trial(2 * number, "internet", 100 * hour, block=number)]
        rows += [trial(2 * number + 1, "private", 225 * hour + number, block=number)]
    found = compare_links(trial_rates(together(rows)))
    assert found.ratio.high - found.ratio.low < 0.1 * (found.by_trial.high - found.by_trial.low)


@pytest.mark.parametrize(
    ("ratio", "is_times", "more"),
    [(2.25, "2.25 times", "125 % more"), (0.5, "0.5", "50 % less"), (1.0, "1", "the same"), (1.025, "1.02", "2.5")],
)
def test_ratios_in_words(ratio, is_times, more):
    assert times(ratio).startswith(is_times) and more_or_less(ratio).startswith(more)


def test_the_sentence_says_times_and_per_cent_of_one_ratio():
    message = compared()[1].sentence
    ratio = float(re.search(r"is ([\d.]+) times that of “internet”", message)[1])
    more = float(re.search(r"which is ([\d.]+) % more", message)[1])
    assert more == pytest.approx(100 * (ratio - 1), abs=1.5) and " against " in message
    same = compare_links(measured(1, links={"internet": 100, "private": 100})).sentence
    assert "though they may be equal" in same


def test_both_links_are_needed():
    with pytest.raises(ParameterError, match="no measured trial of setting private"):
        compare_links(measured(7, 2, links={"internet": 100, "vpn": 225}))


def test_the_figures_show_every_trial():
    found, both = compared()
    drawn = both.figure()
    points = [trace for trace in drawn.data if trace.mode == "markers"]
    assert [len(trace.x) for trace in points[:2]] == [6, 6]
    assert points[2].x[0] == pytest.approx(both.ratio.estimate)
    assert drawn.layout.meta["caption"] == both.sentence
    assert sum(len(trace.x) for trace in found.figure().data if trace.mode == "markers") == 12
