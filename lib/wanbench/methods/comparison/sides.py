"""Read the two sides of a comparison: what was measured in each, and how their set-ups differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from wanbench import findings
from wanbench.checks import refusal
from wanbench.errors import ParameterError
from wanbench.folders import data_folder, samples_folder
from wanbench.formatting import count, number
from wanbench.methods.result.estimate import t_quantile
from wanbench.methods.tails import distribution
from wanbench.methods.time import series
from wanbench.methods.trials.rates import KEY, largest_quantiles, trial_rates
from wanbench.read import ingest
from wanbench.runs import Run, journal
from wanbench.runs.read import run_folders

TRIAL_VALUES = {
    "records_per_s": ("records received by the brokers", "records/s"),
    "mean_latency_ms": ("mean latency of acknowledgements", "ms"),
    "p50_ms": ("p50 of latency", "ms"),
    "p99_ms": ("p99 of latency", "ms"),
}
TRIALS, PAIRS, FAULTS = "Kafka trials", "pairs of regions", "faults"
QUANTILES = {"p50_ms": 0.5, "p99_ms": 0.99}
MEDIAN_OVER_MEAN = np.pi / 2  # Variance of the median of many normal values, over that of their mean.
ALLOWED = "a run folder, a folder of findings, a run id, a campaign, or CAMPAIGN@DATE such as survey@2026-11-21"
SHOWN = 70  # Longest text of a value that differs, so that a table of them fits a page.
# What a manifest says of a set-up. What follows from it (tests of the plan) or belongs to one session is left out.
ABOUT = ("wanbench_version", "git_commit", "parameters", "plan", "lab", "tools")
OfFaults = Callable[[Mapping[str, pd.DataFrame]], tuple[pd.DataFrame, Iterable[str]]]
NOT_ABOUT = ("plan.tests", "plan.expected", "plan.lower_bound", "lab.tools", "lab.lateness", "lab.clock", "lab.granted")


@dataclass(frozen=True)
class Side:
    """One side of a comparison: its runs, or else the table of its findings, and notes on what is missing from them."""

    name: str
    runs: tuple[Run, ...] = ()
    findings: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()


def side(text: str) -> Side:
    """
    Find what `text` names: a folder (of a run, a campaign, a site or findings), a run id, a campaign, or CAMPAIGN@DATE.

    Names are looked up in the data folder, then among the committed recordings. A date may be a month or a year.

    Raises ParameterError: nothing has this name.
    """
    folder = Path(text)
    if folder.is_dir():
        if journals := sorted([*folder.glob(journal.NAME), *folder.glob(f"*/{journal.NAME}")]):
            return Side(text, tuple(Run.open(path.parent) for path in journals))
        written = [path.relative_to(folder) for path in [*folder.glob("*.json"), *folder.glob("**/findings/**/*.json")]]
        whole = [path for path in written if not any(part[0] == "." for part in path.parts)]  # Hidden: not yet made.
        if folders := sorted({folder / path.parent for path in whole}):
            found = pd.concat([_findings(path, folder) for path in folders], ignore_index=True)
            return Side(text, findings=found, notes=_not_done(folder))
        raise refusal(text, "a folder without a journal or findings", ALLOWED)
    name, _, date = text.partition("@")
    known = [folder for at in (data_folder(), samples_folder()) for folder in run_folders(at)]
    runs = [Run.open(folder) for folder in known if name in (folder.name, folder.parent.name)]
    if not runs:
        campaigns = sorted({folder.parent.name for folder in known})
        raise refusal("run", text, f"{ALLOWED}; campaigns are {', '.join(campaigns)}")
    dated = {run.run_id: run for run in reversed(runs) if run.facts()["started_at_utc"].startswith(date)}
    if not dated:
        days = sorted({run.facts()["started_at_utc"][:10] for run in runs})
        raise refusal("run", text, f"{name} was measured on {', '.join(days)}")
    return Side(text, tuple(dated[key] for key in sorted(dated)))


def _findings(path: Path, folder: Path) -> pd.DataFrame:
    """Read the findings in a folder. In the folder of a batch, put the name of the job before the name of each page."""
    found, (job, *inner) = findings.load(path), (*path.relative_to(folder).parts, "")
    return found.assign(page=f"{job}/" + found.page.fillna("")) if inner[:1] == ["page"] else found


def _not_done(folder: Path) -> tuple[str, ...]:
    """Name the jobs in the folder of a batch that are not done; what an earlier command made of them is compared."""
    jobs = {path.parent.name: json.loads(path.read_bytes()) for path in sorted(folder.glob("*/state.json"))}
    left = {name: job["reason"] or job["state"] for name, job in jobs.items() if job["state"] != "done"}
    told = ", ".join(f"{name} ({why})" for name, why in left.items())
    return (f"{count(len(left), 'job')} of {folder} not done: {told}",) if left else ()


def differences(a: Side, b: Side) -> pd.DataFrame:
    """
    List the parts of the set-ups that differ: parameters, plan, lab and versions, with columns `what`, `a` and `b`.
    """
    known = [[_flat({name: run.facts().get(name) for name in ABOUT}) for run in side.runs] for side in (a, b)]
    rows = []
    for name in dict.fromkeys(name for flats in known for flat in flats for name in flat):
        given = [sorted({json.dumps(flat.get(name)) for flat in flats}) for flats in known]
        if given[0] != given[1] and not name.startswith(NOT_ABOUT):
            rows.append((name, *(_shown(*texts) for texts in zip(given, reversed(given), strict=True))))
    return pd.DataFrame(rows, columns=["what", "a", "b"])


def _flat(value: Mapping[str, object] | list[object], name: str = "") -> dict[str, list[object]]:
    """Return all plain values under their dotted names; the items of a list share a name."""
    parts = value.items() if isinstance(value, Mapping) else ((None, item) for item in value)
    flat: dict[str, list[object]] = {}
    for key, item in parts:
        inner = name if key is None else f"{name}.{key}".lstrip(".")
        nested = isinstance(item, (Mapping, list))
        for path, values in (_flat(item, inner) if nested else {inner: [item]}).items():
            flat.setdefault(path, []).extend(values)
    return flat


def _shown(own: list[str], other: list[str]) -> str:
    """Return the values of one side as text; of a long list, only values that the other side lacks."""
    lists = [json.loads(text) or [] for text in (own[0], other[0])]
    own_only = [value for k, value in enumerate(lists[0]) if lists[1][k : k + 1] != [value]]
    text = ", ".join(map(str, own_only if len(lists[0]) > 1 else lists[0])) or "none"
    more = f" (and in {len(own) - 1} more ways in other runs)" if len(own) > 1 else ""
    return (text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({number(len(own_only))} values)") + more


def measured(a: Side, b: Side, of_faults: OfFaults | None = None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """
    Return the measured values of both sides, and notes on what could not be read or compared.

    The values have columns `side` (0 or 1), `quantity`, `unit`, `key` (an ordered pair of regions or a setting),
    `first`, `second` (the regions of the key; for trials, both are the setting), `run_id`, `block`, `value`, `variance`
    (of the value's logarithm, from the scatter within a series of pings; NaN if unknown) and `freedom` (the variance's
    degrees of freedom). `of_faults` is a function of the tables of a run with faults that returns values and notes.

    Raises ParameterError: the sides measured different kinds of experiments, or nothing can be compared.
    """
    parts, kinds, notes = [], [], []
    for k, one in enumerate((a, b)):
        tables = [ingest.read_run(run.folder) for run in one.runs]
        unread = pd.concat([run["unread"] for run in tables])
        if len(unread):
            first = unread.iloc[0]
            notes.append(f"{count(len(unread), 'raw file')} of {one.name} not read ({first.path}: {first.found})")
        kinds.append({_kind(run) for run in tables})
        for run in tables:
            values, told = of_faults(run) if of_faults and _kind(run) == FAULTS else (values_of(run), ())
            parts.append(values.assign(side=k))
            notes += [f"{one.name}: {note}" for note in told]
    if len(kinds[0] | kinds[1]) > 1:
        what = [f"{one.name} measured {' and '.join(sorted(kind))}" for one, kind in zip((a, b), kinds, strict=True)]
        raise ParameterError(f"{', '.join(what)}; allowed: two sides with the same experiment.")
    values = pd.concat(parts, ignore_index=True)
    if values.empty:
        raise ParameterError(f"{a.name} and {b.name} have no RTT, throughput or load of Kafka that could be compared.")
    return values, tuple(notes)


def _kind(run: Mapping[str, pd.DataFrame]) -> str:
    return next((kind for kind, table in ((FAULTS, "faults"), (TRIALS, "trials")) if len(run.get(table, ()))), PAIRS)


def values_of(run: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the measured values in the tables of one run, with the columns of `measured` except `side`."""
    return _of_trials(run) if len(run.get("trials", ())) else _of_pairs(run)


def _of_pairs(run: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    pairs = ingest.summarise_pairs(run, "median", setting="*" if run["tests"].setting.notna().any() else None)
    about = {"run_id": run["tests"].run_id.iloc[0] if len(run["tests"]) else "", "block": ""}
    ends = {"first": pairs.from_region, "second": pairs.to_region}
    about |= {"key": pairs.from_region + " to " + pairs.to_region} | ends
    echoes = run["echoes"][~run["echoes"].lost & ~run["echoes"].duplicate].dropna(subset="rtt_ms")
    tests = pd.DataFrame(
        [(*test[:2], *scatter(part)) for test, part in echoes.groupby(ingest.pairs.TEST, dropna=False).rtt_ms],
        columns=[*ingest.pairs.PAIR, "variance", "freedom"],
    ).groupby(ingest.pairs.PAIR)
    known = pd.DataFrame({"variance": tests.variance.mean() / tests.size(), "freedom": tests.freedom.sum()})
    rtt = pd.DataFrame(about | {"quantity": "RTT", "unit": "ms", "value": pairs.rtt_ms})
    rtt = rtt.join(known, on=["first", "second"])
    rate = {"quantity": "throughput", "unit": "bit/s", "value": pairs.throughput_bps}
    return pd.concat([rtt, pd.DataFrame(about | rate)]).dropna(subset="value")


def scatter(rtts: pd.Series) -> tuple[float, float]:
    """
    Return the variance of log(median) of a series of autocorrelated RTTs, and the variance's degrees of freedom; both
    are NaN if the series is too short.
    """
    if len(rtts) < series.MIN_VALUES:
        return np.nan, np.nan
    effective = series.effective_n(len(rtts), series.fit_autoregression(rtts.to_numpy(float), np.random.default_rng(0)))
    return MEDIAN_OVER_MEAN * rtts.var() / effective / rtts.mean() ** 2, effective - 1


def _of_trials(run: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the values of each trial; in a run with blocks, only of trials in a block (others warm the brokers up)."""
    rates = trial_rates(run).rates[[*KEY, "records_per_s", "mean_latency_ms"]]
    if len(run.get("producers", ())):
        rates = rates.merge(largest_quantiles(run["producers"]), on=KEY, how="left")
    if len(run.get("open_loop_histograms", ())):
        rates = pd.concat([rates, _open_loops(run)])
    trials = run["trials"][["run_id", "test_id", "setting", "block"]]
    trials = trials[trials.block.notna()] if trials.block.notna().any() else trials.assign(block="")
    rows = trials.merge(rates, on=["run_id", "test_id"])
    long = rows.melt(["run_id", "block", "setting"], [name for name in TRIAL_VALUES if name in rows], "name")
    about = {"quantity": long.name.map(lambda name: TRIAL_VALUES[name][0]), "key": long.setting.astype(str)}
    about |= {"unit": long.name.map(lambda name: TRIAL_VALUES[name][1]), "value": long.value.astype(float)}
    ends = {"first": about["key"], "second": about["key"], "variance": np.nan, "freedom": np.nan}
    return long[["run_id", "block"]].assign(**about | ends).dropna(subset="value")


def _open_loops(run: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the rate of each open-loop load, and quantiles of its end-to-end latency from when records were due."""
    loads = run["open_loop_loads"].set_index(KEY).acknowledged_records_per_s.rename("records_per_s")
    shown = run["open_loop_histograms"]
    rows = []
    for key, part in shown[(shown.what == "end to end") & ~shown.warm_up].groupby(KEY):
        us, counts = distribution.summed(map(distribution.decoded, part.histogram))
        tail = distribution.Tail("", us / 1_000, counts, int(part.n_lost.sum()))
        rows.append(dict(zip(KEY, key, strict=True)) | {name: tail.quantile(q) for name, q in QUANTILES.items()})
    latencies = pd.DataFrame(rows, columns=[*KEY, *QUANTILES]).replace(np.inf, np.nan)
    return loads[~loads.index.duplicated()].reset_index().merge(latencies, on=KEY, how="outer")


def of_findings(sides: Iterable[Side]) -> pd.DataFrame:
    """
    Return the findings that have a positive number and interval on both sides, a row per `key` ("page/name").

    Columns for side 0 (and 1): `log_0` (logarithm of the number), its standard error `error_0` and degrees of freedom
    `freedom_0`, and `unit_0`. They treat the interval as Student's at 95 % on the logarithm, with n - 1 degrees of
    freedom (normal without n).
    """
    frames = []
    for k, one in enumerate(sides):
        rows = pd.DataFrame(one.findings).assign(key=lambda found: found.page.fillna("") + "/" + found.name)
        rows = rows[(rows[list(findings.NUMBERS)] > 0).all(axis=1)].drop_duplicates("key").set_index("key")
        freedom = (rows.n.astype(float) - 1).where(lambda f: f > 0, np.inf)
        half = np.log(rows.high.astype(float) / rows.low.astype(float)) / 2
        about = {"log": np.log(rows.estimate.astype(float)), "error": half / t_quantile(0.95, freedom)}
        frames.append(pd.DataFrame(about | {"freedom": freedom, "unit": rows.unit}).add_suffix(f"_{k}"))
    both = frames[0].join(frames[1], how="inner")
    return both[both.unit_0 == both.unit_1].reset_index()
