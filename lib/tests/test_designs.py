"""Plans of experiments: factorial, fractions, interleaved."""

import numpy as np
import pandas as pd
import pytest

from wanbench.designs import factorial, interleaved
from wanbench.errors import ParameterError

FACTORS = {"delay_ms": [5, 20, 80], "loss": [1e-4, 1e-3], "rate_bps": [1e7, 1e8]}
TWO = {name: [1.0, 2.0] for name in "abcd"}


def test_every_combination_once_per_replicate():
    plan = factorial(FACTORS, replicates=3, seed=2)
    assert len(plan) == 36 and (plan.groupby(list(FACTORS)).size() == 3).all()
    assert plan.order.tolist() == list(range(1, 37))
    assert (plan.groupby("replicate").size() == 12).all()
    pd.testing.assert_frame_equal(plan, factorial(FACTORS, replicates=3, seed=2))
    orders = [plan[plan.replicate == k][list(FACTORS)].to_numpy().tolist() for k in (1, 2)]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1])


def test_levels_may_be_text():
    plan = factorial({"acks": ["1", "all"], "batch_bytes": [16_384, 131_072]}, replicates=1)
    assert sorted(plan.acks) == ["1", "1", "all", "all"]
    assert plan.batch_bytes.dtype == float


def test_a_half_fraction_is_orthogonal():
    plan = factorial(TWO, replicates=1, fraction={"d": ["a", "b", "c"]})
    signs = 2 * plan[list("abcd")].to_numpy() - 3
    assert len(plan) == 8
    np.testing.assert_array_equal(signs.T @ signs, 8 * np.eye(4))
    np.testing.assert_array_equal(signs[:, 3], signs[:, :3].prod(axis=1))


def test_quarter_of_six_factors_separates_main_effects_from_products():
    six = {name: [1.0, 2.0] for name in "abcde"} | {"f": ["1", "all"]}
    fraction = {"e": ["a", "b", "c"], "f": ["b", "c", "d"]}
    plan = factorial(six, replicates=1, fraction=fraction)
    assert len(plan) == 16
    signs = np.column_stack([2 * plan[list("abcde")].to_numpy() - 3, np.where(plan.f == "all", 1, -1)])
    np.testing.assert_array_equal(signs.T @ signs, 16 * np.eye(6))
    products = {(j, k): signs[:, j] * signs[:, k] for j in range(6) for k in range(j)}
    assert all((signs.T @ each == 0).all() for each in products.values())


@pytest.mark.parametrize(
    "factors, settings, message",
    [
        (FACTORS, {"fraction": {"delay_ms": ["loss"]}}, "two levels"),
        (TWO, {"fraction": {"d": ["a", "a"]}}, "two levels"),
        ({"delay_ms": [1, 1]}, {}, "two or more different numbers"),
        ({"acks": ["1", 2]}, {}, "two or more different texts"),
        ({"acks": "1a"}, {}, "two or more different texts"),
        ({"order": [1, 2]}, {}, "factor is 'order'; allowed: any name but order"),
        ({}, {}, "at least one factor"),
        (TWO, {"replicates": 0}, "replicates is 0"),
        (TWO, {"replicates": 10_000}, "no more than 100,000 runs"),
    ],
)
def test_impossible_designs_are_refused(factors, settings, message):
    with pytest.raises(ParameterError, match=message):
        factorial(factors, **settings)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("settings", [["A", "B"], ["A", "B", "C"]])
def test_drift_adds_the_same_to_every_setting(seed, settings):
    plan = interleaved(settings, 4, seed=seed)
    assert len(plan) == 8 * len(settings) and plan.order.tolist() == list(range(1, len(plan) + 1))
    for _, block in plan.groupby("block"):
        names = block.setting.tolist()
        assert names == names[::-1] and set(names[: len(settings)]) == set(settings)
        assert block.groupby("setting").order.sum().nunique() == 1
    if len(settings) == 2:
        squares = plan.assign(square=plan.order**2)
        assert squares[squares.block <= 2].groupby("setting").square.sum().nunique() == 1


def test_blocks_begin_with_either_setting():
    starts = {interleaved(["A", "B"], 1, seed=seed).setting[0] for seed in range(20)}
    assert starts == {"A", "B"}
    pd.testing.assert_frame_equal(interleaved(["A", "B"], 3, seed=5), interleaved(["A", "B"], 3, seed=5))


@pytest.mark.parametrize("settings, blocks", [(["A"], 1), (["A", "A"], 1), ("AB", 2), (["A", "B"], 0)])
def test_impossible_interleaving_is_refused(settings, blocks):
    with pytest.raises(ParameterError):
        interleaved(settings, blocks)
