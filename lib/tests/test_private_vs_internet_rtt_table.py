"""Table 1 of the source rebuilt, with known round trips."""

import numpy as np
import pytest
from trial_tables import together, trial

from wanbench.errors import ParameterError
from wanbench.pages.private_vs_internet.rtt_table import PUBLISHED, STATISTICS, rtt_table


def tables(n=5, seed=1):
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(2 * n):
        setting, middle, spread = (("internet", 133.0, 25.0), ("private", 62.5, 0.7))[k % 2]
        each = trial(k + 1, setting, 10)
        for echo in each["echoes"]:
            echo["rtt_ms"] = middle + spread * rng.normal() + rng.normal(0, spread / 10)
        rows.append(each)
    return together(rows)


def test_numbers_are_means_over_runs():
    frames = tables()
    found = rtt_table(frames)
    own = frames["echoes"].merge(frames["tests"][["test_id", "setting"]])
    runs = own[own.setting == "internet"].groupby("test_id").rtt_ms
    expected = {"min": runs.min(), "mean": runs.mean(), "max": runs.max(), "mdev": runs.std(ddof=0)}
    for name, values in expected.items():
        each = found.numbers["internet", name]
        assert each.estimate == pytest.approx(values.mean()) and each.n == 5
        assert each.low < values.mean() < each.high
    assert found.numbers["private", "mean"].low < 62.5 < found.numbers["private", "mean"].high


def test_the_published_numbers_stand_beside():
    found = rtt_table(tables())
    assert "in the source 70.8 / 132.9 / 193.2 / 25.1" in str(found)
    assert "132.9" in found._repr_html_()
    assert list(PUBLISHED["private"]) == list(STATISTICS)


def test_extremes_come_with_a_caution():
    found = rtt_table(tables())
    assert "extreme values" in str(found.numbers["internet", "max"])
    assert "extreme values" not in str(found.numbers["internet", "mean"])


def test_one_run_has_no_interval():
    found = rtt_table(tables(n=1))
    assert np.isnan(found.numbers["private", "mean"].low) and "single ping run" in str(found)


def test_other_settings_are_refused():
    frames = tables()
    frames["tests"]["setting"] = frames["tests"].setting + " ping"
    with pytest.raises(ParameterError, match="internet ping, private ping"):
        rtt_table(frames)
