"""Plans: which tests to run, in which rounds, and the expected time and data volume."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import count
from typing import Any

import numpy as np

from wanbench import regions as catalogued
from wanbench.checks import T, check_number
from wanbench.errors import ParameterError
from wanbench.formatting import duration
from wanbench.measure.experiments import BrokerActions, Experiment, KafkaOpenLoop, KafkaTrial
from wanbench.measure.links import PATH_INFLATION

from .pairs import check_any_region, expected_rtts, lower_bound, rounds, select_pairs

SETTINGS_SHOWN = 2


@dataclass(frozen=True)
class Test:
    """
    A test of one ordered pair: every experiment of the plan measures the pair once.

    `id` is "<ordinal in the plan>-<from>-<to>" with ':' written as '.'; `round` counts from 1; `rtt_ms` is the expected
    round-trip time. A test made from a `Trial` also has the trial's `setting` and `block`, and its `experiments`, which
    replace those of the plan.
    """

    __test__ = False
    id: str
    round: int
    from_region: str
    to_region: str
    rtt_ms: float
    setting: str | None = None
    block: int | None = None
    experiments: tuple[Any, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the test in JSON types; the fields of trials are left out if the test is not a trial."""
        fields = {name: getattr(self, name) for name in ("id", "round", "from_region", "to_region", "rtt_ms")}
        if self.experiments:
            fields |= {"setting": self.setting, "block": self.block}
            fields["experiments"] = [_described(experiment) for experiment in self.experiments]
        return fields


@dataclass(frozen=True)
class Plan:
    """
    Rounds of tests, which can be inspected before anything is measured; `make_plan` and `make_trials` make plans.

    Attributes
    ----------
    rounds : tuple of tuples of Test
        The tests of one round run at the same time; no region is in two of them.
    experiments : tuple
        Default experiments, in order; a test's own experiments replace them.
    lower_bound : int
        Minimum number of rounds: no schedule of these pairs (with this `batch`) has fewer.
    batch : int or None
        Maximum number of tests in a round.
    rate_bps : float or None
        Expected throughput, from which time and data volume are estimated.
    more_regions : tuple of str
        Regions that are in no pair but are also needed, such as regions of brokers.
    """

    rounds: tuple[tuple[Test, ...], ...]
    experiments: tuple[Experiment, ...]
    seed: int
    lower_bound: int
    batch: int | None = None
    rate_bps: float | None = None
    more_regions: tuple[str, ...] = ()

    @property
    def tests(self) -> tuple[Test, ...]:
        """Return all tests, in the order of the rounds."""
        return tuple(test for tests in self.rounds for test in tests)

    @property
    def regions(self) -> list[str]:
        """Return all regions that the plan needs, sorted by name."""
        of_pairs = {region for test in self.tests for region in (test.from_region, test.to_region)}
        return sorted(of_pairs | set(self.more_regions))

    def experiments_of(self, test: Test) -> tuple[Experiment, ...]:
        """Return the experiments of a test, in order."""
        return test.experiments or self.experiments

    def slots_s(self) -> list[float]:
        """
        Return the expected time of each round in seconds: the time of its longest test. The experiments of a test run
        one after another.
        """
        rate_bps = self.rate_bps
        return [
            max(sum(each.expected_s(test.rtt_ms, rate_bps) for each in self.experiments_of(test)) for test in tests)
            for tests in self.rounds
        ]

    def expected_s(self) -> float:
        """
        Return the expected measuring time in seconds: the sum over the rounds, plus the time to set up each experiment
        that defines `set_up_s`. Opening the lab and retries are not included.
        """
        each: list[Any] = [one for test in self.tests for one in self.experiments_of(test) if hasattr(one, "set_up_s")]
        set_up_s = sum(one.set_up_s(before) for before, one in zip([None, *each], each, strict=False))
        return sum(self.slots_s()) + set_up_s

    def expected_bytes(self) -> float | None:
        """Return the expected data volume of all tests in bytes; None if it depends on an unknown rate."""
        sent = self.sent_bytes()
        return None if sent is None else sum(sent.values())

    def sent_bytes(self) -> dict[tuple[str, str], float] | None:
        """Return the expected bytes by (sending region, receiving region); None if they depend on an unknown rate."""
        sent: dict[tuple[str, str], float] = {}
        for test in self.tests:
            ends, back = (test.from_region, test.to_region), (test.to_region, test.from_region)
            for experiment in self.experiments_of(test):
                n = experiment.expected_bytes(test.rtt_ms, self.rate_bps)
                if n is None:
                    return None
                sender = back if getattr(experiment, "reverse", False) else ends
                sent[sender] = sent.get(sender, 0.0) + n
        return sent

    def as_dict(self) -> dict[str, Any]:
        """Return the plan in JSON types, as the manifest and the journal record it."""
        return {
            "seed": self.seed,
            "batch": self.batch,
            "n_rounds": len(self.rounds),
            "lower_bound": self.lower_bound,
            "rate_bps": self.rate_bps,
            "expected_s": self.expected_s(),
            "expected_bytes": self.expected_bytes(),
            "experiments": [_described(experiment) for experiment in self.experiments],
            "tests": [test.as_dict() for test in self.tests],
        }

    def _facts(self) -> list[tuple[str, str]]:
        settings = {test.setting for test in self.tests if test.experiments}
        of = f"trials of {len(settings)} settings" if settings else f"ordered pairs of {len(self.regions)} regions"
        widest = max(map(len, self.rounds))
        volume = self.expected_bytes()
        return [
            ("tests", f"{len(self.tests)} {of}"),
            ("rounds", f"{len(self.rounds)}, with at most {widest} tests at once ({self.lower_bound} is the minimum)"),
            ("experiments", "; ".join(map(str, self._each_kind()))),
            ("expected time", f"{duration(self.expected_s())} of measuring"),
            ("data volume", "unknown, as rate_bps is not given" if volume is None else f"up to {volume / 1e9:.3g} GB"),
            ("seed", str(self.seed)),
        ]

    def _each_kind(self) -> tuple[Experiment | str, ...]:
        """Return the plan's experiments, and the experiments of the first `SETTINGS_SHOWN` settings of trials."""
        first = {test.setting: test.experiments for test in reversed(self.tests) if test.experiments}
        order = [setting for setting in dict.fromkeys(test.setting for test in self.tests) if setting in first]
        shown = [each for setting in order[:SETTINGS_SHOWN] for each in first[setting]]
        left = len(order) - SETTINGS_SHOWN
        return (*self.experiments, *shown, *([f"and {left} more settings"] if left > 0 else []))

    def __str__(self) -> str:
        return "Plan\n" + "\n".join(f"  {name:<14} {text}" for name, text in self._facts())

    def _repr_html_(self) -> str:
        facts = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for name, text in self._facts()
        )
        pairs = [", ".join(t.setting or f"{t.from_region} → {t.to_region}" for t in tests) for tests in self.rounds]
        shown = [f"<li value='{n}'>{html.escape(text)}</li>" for n, text in enumerate(pairs[:12], start=1)]
        more = f"<p>and {len(pairs) - 12} more</p>" if len(pairs) > 12 else ""
        rounds = f"<details><summary>Rounds</summary><ol>{''.join(shown)}</ol>{more}</details>"
        return f"<table><caption>Plan</caption>{facts}</table>{rounds}"


def make_plan(
    *,
    experiments: Sequence[Experiment],
    pairs: Iterable[str | Sequence[str]] | None = None,
    regions: Iterable[str] | None = None,
    cloud_pairs: Iterable[str] | None = None,
    distance_km: Sequence[float] | None = None,
    batch: int | None = None,
    rtt_ms: Mapping[tuple[str, str], float] | None = None,
    path_inflation: float = PATH_INFLATION,
    rate_bps: float | None = None,
    seed: int = 0,
) -> Plan:
    """
    Plan which pairs to test, and in which rounds. The same parameters and seed give the same plan.

    Parameters
    ----------
    experiments : sequence
        The experiments of every test, for example ``[Ping(), Iperf3()]``.
    pairs, regions, cloud_pairs, distance_km
        Restrictions on the pairs; see `wanbench.measure.plan.select_pairs`.
    batch : int, optional
        Maximum number of tests at the same time; with 1, they run one after another. By default there is no maximum.
    rtt_ms : {(from, to): ms}, optional
        Expected round-trip times; one direction of a pair is enough. By default, they are the round-trip times of light
        in fibre along the geodesic, times `path_inflation`.
    rate_bps : float, optional
        Expected throughput, from which the volume of transfers is estimated.

    Raises
    ------
    ParameterError
        If a value is malformed or unknown, or if the restrictions leave no pair.
    """
    if not experiments:
        raise ParameterError("A plan needs at least one experiment.")
    batch = check_number("batch", batch, 1, whole=True, optional=True)
    path_inflation = check_number("path_inflation", path_inflation, 1, 1e6)
    rate_bps = check_number("rate_bps", rate_bps, 0, 1e15, above=True, optional=True)
    seed = check_number("seed", seed, whole=True)
    selected = select_pairs(pairs=pairs, regions=regions, cloud_pairs=cloud_pairs, distance_km=distance_km)
    if rtt_ms is None:
        rtt_ms = {p: path_inflation * float(catalogued.light_rtt_ms(catalogued.distance_km(*p))) for p in selected}
    rtts, ordinal = expected_rtts(selected, rtt_ms), count(1)
    return Plan(
        rounds=tuple(
            tuple(Test(test_id(next(ordinal), *p), number, *p, rtts[p]) for p in group)
            for number, group in enumerate(rounds(selected, seed=seed, batch=batch), start=1)
        ),
        experiments=tuple(experiments),
        seed=seed,
        lower_bound=lower_bound(selected, batch),
        batch=batch,
        rate_bps=rate_bps,
    )


def test_id(ordinal: int, from_region: str, to_region: str) -> str:
    """Return the `id` of a test, such as "0001-aws.eu-west-1-gcp.us-east1"."""
    return f"{ordinal:04d}-{from_region}-{to_region}".replace(":", ".")


def _described(experiment: Experiment) -> dict[str, Any]:
    return {"name": experiment.name, **dataclasses.asdict(experiment)}


@dataclass(frozen=True)
class Trial:
    """
    One measurement of one setting.

    Trials with the same `setting` are replicates; trials with the same `block` are measured close together in time. If
    the first experiment has the attribute `rtt_ms`, this is the expected round-trip time in ms.
    """

    setting: str
    experiments: tuple[Any, ...]
    block: int | None = None


def make_trials(
    trials: Sequence[Trial],
    *,
    from_region: str,
    to_region: str,
    more_regions: Sequence[str] = (),
    rate_bps: float | None = None,
    seed: int = 0,
) -> Plan:
    """
    Make a plan that measures trials one after another, in the given order.

    `from_region` is the region of the clients and `to_region` that of the servers; raw files are named after them.
    `more_regions` are further regions of the lab, such as those of other brokers. `rate_bps` is the expected
    throughput. `seed` is recorded with the plan, and is the seed of the lab's loss and jitter.
    """
    for region in (from_region, to_region, *more_regions):
        check_any_region(region)
    if not trials:
        raise ParameterError("A plan needs at least one trial.")
    for trial in trials:
        if not isinstance(trial, Trial) or not trial.experiments or not trial.setting:
            raise ParameterError(f"{trial!r} is not a trial with a setting and at least one experiment.")
    rounds = []
    for ordinal, trial in enumerate(trials, start=1):
        name = test_id(ordinal, from_region, to_region)
        rtt_ms = getattr(trial.experiments[0], "rtt_ms", None) or 0.0
        test = Test(name, ordinal, from_region, to_region, rtt_ms, trial.setting, trial.block, tuple(trial.experiments))
        rounds.append((test,))
    return Plan(
        tuple(rounds),
        experiments=(),
        seed=seed,
        lower_bound=len(rounds),
        batch=1,
        rate_bps=rate_bps,
        more_regions=tuple(more_regions),
    )


def warmed_up(trials: Iterable[Trial], load: KafkaOpenLoop, **more: Any) -> list[Trial]:
    """
    Insert a trial with `load`, which does not count, before each Kafka trial whose brokers have just started.

    New brokers are slow until Java has compiled their code (`benchmarks/cold_brokers.py`). Brokers are new in the first
    trial on a cluster, in a trial whose cluster settings differ from those of the trial before, and after a trial that
    restarts all of them. The inserted trials have the same cluster and settings, and the further fields `more`.
    """
    made: list[Trial] = []
    before: dict[str | None, KafkaTrial] = {}
    for trial in trials:
        [one] = trial.experiments
        last = before.get(one.cluster)
        rolled = any(isinstance(part, BrokerActions) and part.rolling for part in last.alongside) if last else False
        if last is None or rolled or last.cluster_settings != one.cluster_settings:
            same = {name: getattr(one, name) for name in ("cluster", "broker_settings", "security", "kafka_version")}
            made.append(Trial("warm-up of the brokers", (KafkaTrial(load, **same, **more),)))
        made.append(trial)
        before[one.cluster] = one
    return made


def shuffled(items: Sequence[T], rng: np.random.Generator) -> list[T]:
    """Return the items in random order."""
    return [items[at] for at in rng.permutation(len(items))]


def alternating(
    groups: Sequence[T], blocks: int, rng: np.random.Generator, rank: Callable[[T], Any]
) -> Iterator[tuple[int, list[T]]]:
    """
    Yield the number of each block and the order of the groups in it.

    Every odd-numbered block has a random order, except the first, which is sorted by the key `rank`; the block after it
    has the reverse order. A steady drift over time then affects all groups equally.
    """
    order: list[T] = []
    for block in range(1, blocks + 1):
        order = order[::-1] if block % 2 == 0 else shuffled(groups, rng)
        order = sorted(order, key=rank) if block == 1 else order
        yield block, order


def check_keys(where: str, given: Iterable[object], allowed: Collection[str] | type[Any]) -> None:
    """
    Raise ParameterError if a key is not allowed; the message begins with `where`. `allowed` are names, or a dataclass
    whose field names are allowed.
    """
    names = [field.name for field in fields(allowed)] if isinstance(allowed, type) else allowed
    of = f"fields of {allowed.__name__}: " if isinstance(allowed, type) else ""
    if unknown := [str(key) for key in given if key not in names]:
        raise ParameterError(f"{where} has {', '.join(unknown)}; allowed: {of}{', '.join(names)}.")


def in_blocks(settings: Mapping[str, object], *, replicates: int, seed: int = 0) -> list[Trial]:
    """
    Make blocks of trials: each block has every setting once, in random order. `settings` maps names to experiments.

    Slow drift cancels when settings are compared within blocks.

    Examples
    --------
    >>> trials = in_blocks({"small": "a", "large": "b"}, replicates=3, seed=1)
    >>> [(trial.block, trial.setting) for trial in trials][:4]
    [(1, 'small'), (1, 'large'), (2, 'small'), (2, 'large')]
    """
    check_number("replicates", replicates, 1, whole=True)
    if not settings:
        raise ParameterError("settings is empty; allowed: at least one by name.")
    rng = np.random.default_rng(seed)
    return [
        Trial(name, (settings[name],), block)
        for block in range(1, replicates + 1)
        for name in shuffled(list(settings), rng)
    ]
