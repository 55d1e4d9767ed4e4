"""Rounds: every pair once, no region twice, as few as can be, the same for the same seed."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wanbench.measure.plan.pairs import lower_bound, rounds

PAIRS = st.integers(2, 9).flatmap(
    lambda n: st.lists(
        st.sampled_from(list(itertools.permutations([f"r{i}" for i in range(n)], 2))), unique=True, min_size=1
    )
)


def everyone_meets(n):
    return list(itertools.permutations([f"aws:r-{i:02d}" for i in range(n)], 2))


def assert_valid(found, pairs):
    assert sorted(pair for group in found for pair in group) == sorted(pairs)
    for group in found:
        assert group
        regions = [region for pair in group for region in pair]
        assert len(regions) == len(set(regions))


@pytest.mark.parametrize("n", range(2, 21))
def test_all_pairs_take_as_few_rounds_as_a_round_robin(n):
    pairs = everyone_meets(n)
    found = rounds(pairs, seed=n)
    assert_valid(found, pairs)
    assert len(found) == (2 * (n - 1) if n % 2 == 0 else 2 * n) == lower_bound(pairs)


@pytest.mark.parametrize("n", [5, 6, 9, 12])
@pytest.mark.parametrize("batch", [1, 2, 3, 4, 7])
def test_batches_of_all_pairs_reach_the_lower_bound(n, batch):
    pairs = everyone_meets(n)
    found = rounds(pairs, seed=1, batch=batch)
    assert_valid(found, pairs)
    assert max(map(len, found)) <= batch
    assert len(found) == lower_bound(pairs, batch)


def test_the_46_regions_of_the_full_survey():
    pairs = everyone_meets(46)
    found = rounds(pairs, seed=7)
    assert_valid(found, pairs)
    assert len(found) == 90
    assert {len(group) for group in found} == {23}


@pytest.mark.fuzz
@given(PAIRS, st.integers(0, 5))
def test_any_pairs_come_within_one_round_of_the_lower_bound(pairs, seed):
    found = rounds(pairs, seed=seed)
    assert_valid(found, pairs)
    assert lower_bound(pairs) <= len(found) <= lower_bound(pairs) + 1


@pytest.mark.fuzz
@given(PAIRS, st.integers(1, 5), st.integers(0, 3))
def test_any_pairs_in_batches(pairs, batch, seed):
    found = rounds(pairs, seed=seed, batch=batch)
    assert_valid(found, pairs)
    assert max(map(len, found)) <= batch
    assert len(found) <= lower_bound(pairs, batch) + 1


@given(PAIRS, st.integers(0, 3), st.one_of(st.none(), st.integers(1, 4)))
@pytest.mark.fuzz
def test_the_seed_and_nothing_else_decides(pairs, seed, batch):
    assert rounds(pairs, seed=seed, batch=batch) == rounds(list(reversed(pairs)), seed=seed, batch=batch)


def test_another_seed_gives_another_order():
    pairs = everyone_meets(8)
    assert len({str(rounds(pairs, seed=seed)) for seed in range(20)}) == 20


def test_directions_are_mixed_in_a_round():
    found = rounds(everyone_meets(20), seed=3)
    ups = [sum(a < b for a, b in group) for group in found]
    assert min(ups) > 0 or max(ups) < 10
    assert sum(ups) == 190


@pytest.mark.parametrize(
    "pairs, expected",
    [
        ([], 0),
        ([("a", "b"), ("b", "a")], 2),
        ([("a", "b"), ("c", "d")], 1),
        (list(itertools.permutations("abc", 2)), 6),
        # A full group of five less one pair, tied to a sixth region: the group alone needs ten rounds.
        ([p for p in itertools.permutations("abcde", 2) if p != ("a", "b")] + [("b", "f")], 10),
        # Two groups that do not meet: the larger decides.
        (list(itertools.permutations("abc", 2)) + list(itertools.permutations("wxyz", 2)), 6),
    ],
)
def test_lower_bound(pairs, expected):
    assert lower_bound(pairs) == expected
    assert len(rounds(pairs)) == expected
