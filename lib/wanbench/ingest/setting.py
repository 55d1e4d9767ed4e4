"""Settings of tests: what sets measurements of one pair apart. Imports `errors` and `wording`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import pandas as pd

from ..errors import ParameterError
from ..formatting import count

SHOWN = 8
PAIR = ["from_region", "to_region"]
TEST = ["run_id", "test_id"]


class MixedSettings(UserWarning):
    """Pairs are summarised over tests that were made in different settings."""


def settings(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    Every setting in table tests: setting, n_tests, n_pairs (ordered), most tests first.

    Tests without a setting, as those of a lab, are a row whose setting is null.
    """
    tests = tables["tests"]
    groups = tests.assign(pair=tests.from_region + " " + tests.to_region).groupby("setting", dropna=False)
    found = groups.pair.agg(n_tests="size", n_pairs="nunique").reset_index()
    return found.sort_values(["n_tests", "setting"], ascending=[False, True], ignore_index=True)


def mixed(tables: Mapping[str, pd.DataFrame]) -> str | None:
    """What to say if the RTTs, or the throughputs, of pairs come from several settings; None if none do."""
    tests = tables["tests"]
    done = tests[(tests.outcome == "done") & tests.setting.notna()]
    if done.empty:
        return None
    keys = pd.MultiIndex.from_frame(done[TEST])
    several = {}
    for names in (("echoes", "pings"), ("transfers",)):
        gave = pd.concat([tables[name][TEST] for name in names]).drop_duplicates()
        part = done[keys.isin(pd.MultiIndex.from_frame(gave))]
        for pair, found in part.groupby(PAIR).setting.unique().items():
            if len(found) > 1:
                several.setdefault(pair, found)
    if not several:
        return None
    (start, end), found = next(iter(several.items()))
    n = tests[PAIR].drop_duplicates().shape[0]
    return (
        f"{len(several):,} of {count(n, 'pair')} mix tests of different settings, as {start} to {end} does "
        f"({' and '.join(map(repr, found[:2]))}); choose some with setting=, or all with setting='*'"
    )


def of_setting(tables: Mapping[str, pd.DataFrame], setting: str | Iterable[str]) -> dict[str, pd.DataFrame]:
    """
    Imported tables with only the tests whose setting matches a pattern, as `summarise_pairs` takes them.

    Table flags keeps what concerns those tests, and what is wider than a row.
    """
    by_test = {name: frame for name, frame in tables.items() if set(TEST) <= set(frame.columns)}
    chosen = taken(by_test, setting)
    kept = dict(tables) | chosen
    if "flags" in tables:
        flags = tables["flags"]
        kept["flags"] = flags[(flags.scope != "row") | flags.row.isin(chosen["tests"].test_id)]
    return kept


def taken(tables: Mapping[str, pd.DataFrame], setting: str | Iterable[str]) -> dict[str, pd.DataFrame]:
    """The tables with only the tests whose setting matches a pattern, and only what those tests gave."""
    patterns = [setting] if isinstance(setting, str) else list(setting)
    if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
        raise ParameterError(f"setting is {setting!r}; allowed is a pattern or several, as 'PREMIUM *'")
    tests = tables["tests"]
    known = tests.setting.dropna().unique()
    chosen = [name for name in known if any(fnmatchcase(name, pattern) for pattern in patterns)]
    if not chosen:
        more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
        listed = "; ".join(sorted(known)[:SHOWN]) or "none"
        raise ParameterError(
            f"no test has the setting {' or '.join(map(repr, patterns))}; there are: {listed}{more}"
        )
    tests = tests[tests.setting.isin(chosen)]
    keys = pd.MultiIndex.from_frame(tests[TEST])
    kept = {
        name: frame[pd.MultiIndex.from_frame(frame[TEST]).isin(keys)]
        for name, frame in tables.items()
        if name != "tests"
    }
    return {"tests": tests, **kept}
