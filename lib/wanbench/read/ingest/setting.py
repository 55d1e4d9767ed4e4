"""Settings of tests, such as machine types or network tiers, in which one pair may be measured several times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import pandas as pd

from wanbench.checks import refusal
from wanbench.formatting import count

SHOWN = 8
"""Maximum number of settings named in an error."""

PAIR = ["from_region", "to_region"]
TEST = ["run_id", "test_id"]


class MixedSettings(UserWarning):
    """The summary of a pair mixes tests in different settings."""


def mixture(tables: Mapping[str, pd.DataFrame]) -> str | None:
    """A warning if the RTTs, or the throughputs, of a pair come from several settings; None if no pair's do."""
    tests = tables["tests"]
    done = tests[(tests.outcome == "done") & tests.setting.notna()]
    if done.empty:
        return None
    keys = pd.MultiIndex.from_frame(done[TEST])
    several = {}
    for sources in (("echoes", "pings"), ("transfers",)):
        measured = pd.concat([tables[name][TEST] for name in sources]).drop_duplicates()
        part = done[keys.isin(pd.MultiIndex.from_frame(measured))]
        for pair, names in part.groupby(PAIR).setting.unique().items():
            if len(names) > 1:
                several.setdefault(pair, names)
    if not several:
        return None
    (start, end), names = next(iter(several.items()))
    n = tests[PAIR].drop_duplicates().shape[0]
    return (
        f"{len(several):,} of {count(n, 'pair')} mix tests of different settings, as {start} to {end} does "
        f"({' and '.join(map(repr, names[:2]))}); choose some with setting=, or all with setting='*'"
    )


def of_setting(tables: Mapping[str, pd.DataFrame], setting: str | Iterable[str]) -> dict[str, pd.DataFrame]:
    """
    Imported tables with only the tests whose setting matches a pattern, as `summarise_pairs` takes them.

    Table flags keeps the flags of those tests, and all flags whose scope is wider than a row.
    """
    by_test = {name: frame for name, frame in tables.items() if set(TEST) <= set(frame.columns)}
    chosen = selected(by_test, setting)
    kept = dict(tables) | chosen
    if "flags" in tables:
        flags = tables["flags"]
        kept["flags"] = flags[(flags.scope != "row") | flags.row.isin(chosen["tests"].test_id)]
    return kept


def selected(tables: Mapping[str, pd.DataFrame], setting: str | Iterable[str]) -> dict[str, pd.DataFrame]:
    """The tables with only the tests whose setting matches a pattern, and only their data."""
    patterns = [setting] if isinstance(setting, str) else list(setting)
    if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
        raise refusal("setting", setting, "a pattern or several, such as 'PREMIUM *'")
    tests = tables["tests"]
    names = tests.setting.dropna().unique()
    chosen = [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]
    if not chosen:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        listed = "; ".join(sorted(names)[:SHOWN]) or "none"
        raise refusal("setting", setting, f"{listed}{more}")
    tests = tests[tests.setting.isin(chosen)]
    keys = pd.MultiIndex.from_frame(tests[TEST])
    kept = {
        name: frame[pd.MultiIndex.from_frame(frame[TEST]).isin(keys)]
        for name, frame in tables.items()
        if name != "tests"
    }
    return {"tests": tests, **kept}
