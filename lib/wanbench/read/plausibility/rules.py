"""Apply all rules to a set of tables, summarise the flags, and mark the flagged rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from html import escape

import numpy as np
import pandas as pd

from wanbench import tables as declared
from wanbench.checks import check_choice, check_columns, refusal
from wanbench.formatting import count

from . import light
from .coordinates import check_coordinates
from .copies import check_copied_days, check_copies
from .places import check_earth, known_places
from .rates import check_rates
from .rtt_units import check_halved, check_near_answers, check_rtt_units
from .rule import RULES, Flag, round_trips
from .summaries import check_summaries

# Rules for RTTs that are wrong independently of the coordinates, in order.
PLACE_INDEPENDENT = (check_near_answers, check_rtt_units, light.check_early_echoes, check_halved)


def check(tables: Mapping[str, pd.DataFrame], *, regions: pd.DataFrame | None = None) -> pd.DataFrame:
    """
    Return table `flags`: every row, column, table or region that breaks a rule, with the finding and likely cause.

    `tables` are by name, as from `ingest.read_run` or an importer; the rules check pings, echoes, transfers and pairs.
    Pairs with an emulated link (table `links`) are compared with the rate of this link, and not with light. Coordinates
    in table `regions`, given here or among the tables, replace those of the catalogue.
    """
    if not isinstance(tables, Mapping):
        raise refusal("tables", tables, "a mapping of names to tables")
    tables = {name: frame for name, frame in tables.items() if len(frame)}
    links = tables.get("links")
    places = known_places(tables.get("regions"), regions)
    rtts = light.against_light(round_trips(tables), places)
    zero, _ = light.zero_rtts(_without_links(rtts, links))
    _, rtts = light.zero_rtts(rtts)
    flags = _of_round_trips(_without_links(rtts, links), places)
    flags += check_earth(tables.get("regions"), regions) + zero
    flags += check_summaries(tables) + check_copies(tables) + check_copied_days(tables)
    flags += check_rates(tables, rtts, links)
    flags += [flag for rule in RULES.values() if rule.check for flag in rule.check(tables)]
    return declared.from_rows("flags", flags)


def _without_links(rtts: pd.DataFrame, links: pd.DataFrame | None) -> pd.DataFrame:
    if links is None or not len(links):
        return rtts
    joined = set(zip(links.from_region, links.to_region, strict=True))
    linked = [pair in joined for pair in zip(rtts.from_region, rtts.to_region, strict=True)]
    return rtts[~np.array(linked, dtype=bool)].reset_index(drop=True)


def _of_round_trips(rtts: pd.DataFrame, places: pd.DataFrame) -> list[Flag]:
    """Apply each rule to the rows that no earlier rule explains."""
    flags, explained = [], np.zeros(len(rtts), bool)
    misplaced = partial(check_coordinates, places=places)
    later = (misplaced, light.check_opposite, light.check_light, light.check_asymmetry, light.check_triangle)
    for rule in (*PLACE_INDEPENDENT, *later) if len(rtts) else ():
        new, rows = rule(rtts, ~explained)
        flags, explained = flags + new, explained | rows
    return flags


ABOUT = ("rtt", "throughput")
WIDE = ("table", "column", "region")  # Scopes that cover more than one row.
FLAGS = ("scope", "rule", "region", "column_name", "cause")  # Columns of table flags that the functions below need.
# Flags of a region by these rules concern measurements from it and to it; flags by other rules only those from it.
AT_BOTH_ENDS = ("coordinates", "half")


@dataclass(frozen=True, repr=False)
class Report:
    """
    A readable summary of table `flags`.

    The first sentence states the numbers of flags. A sentence per flagged region, column or table follows. The other
    flagged rows have a sentence per rule and cause, which describes the first of these rows.
    """

    flags: pd.DataFrame
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.sentences)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        first, *others = map(escape, self.sentences)
        items = "".join(f"<li>{sentence}</li>" for sentence in others)
        return f"<p>{first}</p>" + (f'<ul class="flags">{items}</ul>' if items else "")


def report(flags: pd.DataFrame) -> Report:
    """Summarise table `flags`."""
    if check_columns("flags", flags, FLAGS).empty:
        return Report(flags, ("The plausibility rules raise no flag.",))
    rows, wide = flags[flags.scope == "row"], flags[flags.scope.isin(WIDE)]
    impossible = int((rows.verdict == "impossible").sum())
    parts = [f"{count(len(rows), 'row')} ({impossible:,} impossible)"] if len(rows) else []
    counts = wide.scope.value_counts()
    parts += [count(int(counts[scope]), scope) for scope in WIDE if scope in counts]
    sentences = [f"The plausibility rules flag {' and '.join(parts)}."]
    explained = set(wide.cause)
    for flag in wide.itertuples(index=False):
        sentences.append(f"{flag.rule} ({flag.verdict}): {flag.found}. Likely cause: {flag.cause}.")
        explained.add(f"{flag.region}: {flag.cause}")
    rest = rows[~rows.cause.isin(explained)]
    for (rule, cause), group in rest.groupby(["rule", "cause"], sort=False):
        also = f", also of {count(len(group) - 1, 'other row')}" if len(group) > 1 else ""
        sentences.append(f"{rule}: {group.found.iloc[0]}. Likely cause{also}: {cause}.")
    return Report(flags, tuple(sentences))


def suspects(pairs: pd.DataFrame, flags: pd.DataFrame, *, about: str | None = None) -> pd.Series:
    """
    Return a mask of the flagged rows of table `pairs`.

    A pair is flagged if there is a flag of a row of any table with the pair's regions in the same order, a flag of its
    sending region, or a flag of either region by a rule in `AT_BOTH_ENDS`. Flags of whole columns and tables are
    ignored, as they would mark every row. With `about` ("rtt" or "throughput"), flags that concern only the other
    quantity are ignored.
    """
    check_choice("about", about, ABOUT, optional=True)
    check_columns("flags", flags, FLAGS)
    check_columns("pairs", pairs, ["from_region", "to_region"])
    flags = concerning(flags, about)
    rows = flags[flags.scope == "row"]
    flagged = set(zip(rows.from_region, rows.to_region, strict=True))
    own = [pair in flagged for pair in zip(pairs.from_region, pairs.to_region, strict=True)]
    regions = flags[(flags.scope == "region") & flags.region.notna()]
    at_both_ends = regions.region[regions.rule.isin(AT_BOTH_ENDS)]
    return pairs.from_region.isin(regions.region) | pairs.to_region.isin(at_both_ends) | np.array(own, dtype=bool)


def concerning(flags: pd.DataFrame, about: str | None) -> pd.DataFrame:
    """Return the flags that concern "rtt" or "throughput"; all flags if `about` is None."""
    if about is None:
        return flags
    rtt = flags.column_name.astype("string").str.contains("rtt").fillna(False).astype(bool)
    other = flags.column_name.notna() & (rtt if about == "throughput" else ~rtt)
    return flags[~other]
