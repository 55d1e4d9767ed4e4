"""All rules over one set of tables; a summary of the flags, and the flagged rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from html import escape

import numpy as np
import pandas as pd

from wanbench import tables as declared
from wanbench.checks import check_choice, check_columns, check_table, refusal
from wanbench.formatting import count

from . import light
from .coordinates import area_of, check_coordinates
from .copies import check_copied_days, check_copies
from .places import Area, check_earth, known_places
from .rates import check_rates
from .rtt_units import check_halved, check_near_answers, check_rtt_units
from .rule import RULES, round_trips, row_names
from .summaries import check_summaries

# The rules for RTTs that are wrong wherever the regions lie, in order.
WHEREVER = (check_near_answers, check_rtt_units, light.check_early_echoes, check_halved)


def check(
    tables: Mapping[str, pd.DataFrame],
    *,
    regions: pd.DataFrame | None = None,
    links: pd.DataFrame | None = None,
    instances: Mapping | None = None,
) -> pd.DataFrame:
    """
    Table `flags`: every row, column, table or region that breaks a rule, with the finding and the likely cause.

    Raises ParameterError if `tables` is not a mapping, or an instance type is not known.

    Parameters
    ----------
    tables : mapping of DataFrame
        As from `ingest.read_run` or an importer. Checks pings, echoes, transfers and pairs, where they exist, and uses
        tables `regions` and `links` like the arguments of these names.
    regions : DataFrame, optional
        Table `regions`: coordinates that replace the catalogue's.
    links : DataFrame, optional
        Table `links`. Pairs with an emulated link are compared with the link, not with light.
    instances : mapping, optional
        The hosts of a cloud or a region: an instance type (see `instances.csv`) or the rate that it may send in bit/s,
        as in `{"aws": "t3.nano", "gcp:us-east4": 1e9}`.
    """
    if not isinstance(tables, Mapping):
        raise refusal("tables", tables, "a mapping of names to tables")
    tables = {name: frame for name, frame in tables.items() if len(frame)}
    links = tables.get("links") if links is None else links
    places = known_places(tables.get("regions"), regions)
    rtts = light.against_light(round_trips(tables), places)
    zero, _ = light.zero_rtts(_without_links(rtts, links))
    _, rtts = light.zero_rtts(rtts)
    flags = _of_round_trips(_without_links(rtts, links), places)
    flags += check_earth(tables.get("regions"), regions) + zero
    flags += check_summaries(tables) + check_copies(tables) + check_copied_days(tables)
    flags += check_rates(tables, rtts, links, instances)
    flags += [flag for rule in RULES.values() if rule.check for flag in rule.check(tables)]
    return declared.from_rows("flags", flags)


def geolocate(
    tables: Mapping[str, pd.DataFrame], region: str, *, regions: pd.DataFrame | None = None, without: Iterable[str] = ()
) -> Area:
    """
    The area that a region's round trips allow, leaving out RTTs that are wrong wherever the region lies.

    `tables` and `regions` are as for `check`; regions in `without` are no landmarks, because their own place is
    flagged. ParameterError if the region has no round trips with a known place.
    """
    places = known_places(tables.get("regions"), regions)
    _, rtts = light.zero_rtts(light.against_light(round_trips(tables), places))
    mine = (rtts.from_region == region) | (rtts.to_region == region)
    _, explained = _in_turn(WHEREVER, rtts)
    if (area := area_of(region, rtts[mine & ~explained], places, without)) is None:
        raise refusal("region", region, "a region with round trips to regions whose place is known")
    return area


def _without_links(rtts: pd.DataFrame, links: pd.DataFrame | None) -> pd.DataFrame:
    if links is None or not len(links):
        return rtts
    joined = set(zip(links.from_region, links.to_region, strict=True))
    linked = [pair in joined for pair in zip(rtts.from_region, rtts.to_region, strict=True)]
    return rtts[~np.array(linked, dtype=bool)].reset_index(drop=True)


def _in_turn(rules: Iterable[Callable], rtts: pd.DataFrame) -> tuple[list[dict], np.ndarray]:
    """Flags of these rules, each of which looks only at the rows that no earlier one explains; and a mask of these."""
    flags, explained = [], np.zeros(len(rtts), bool)
    for rule in rules:
        new, rows = rule(rtts, ~explained)
        flags, explained = flags + new, explained | rows
    return flags, explained


def _of_round_trips(rtts: pd.DataFrame, places: pd.DataFrame) -> list[dict]:
    if not len(rtts):
        return []
    misplaced = partial(check_coordinates, places=places)
    later = (misplaced, light.check_opposite, light.check_light, light.check_asymmetry, light.check_triangle)
    return _in_turn((*WHEREVER, *later), rtts)[0]


ABOUT = ("rtt", "throughput")
WIDE = ("table", "column", "region")  # Scopes of more than one row.
FLAGS = ("scope", "rule", "region", "column_name", "cause")  # The columns of table flags that every use of it needs.
# The rules that blame a region for what was measured from it and to it; other rules blame it as the sender only.
AT_BOTH_ENDS = ("coordinates", "half")


@dataclass(frozen=True, repr=False)
class Report:
    """
    A readable summary of table `flags`.

    The sentences are first the numbers of flags; then one per flagged region, column or table; then one per rule and
    cause of the rows that none of these explains, with the first such row.
    """

    flags: pd.DataFrame
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        first, *others = map(escape, self.sentences)
        items = "".join(f"<li>{sentence}</li>" for sentence in others)
        return f"<p>{first}</p>" + (f'<ul class="flags">{items}</ul>' if items else "")


def report(flags: pd.DataFrame | Mapping[str, pd.DataFrame]) -> Report:
    """Summarise table `flags`, or that table among others."""
    if isinstance(flags, Mapping):
        flags = check_table("flags", flags)
    if check_columns("flags", flags, FLAGS).empty:
        return Report(flags, ("The plausibility rules raise no flag.",))
    rows, wide = flags[flags.scope == "row"], flags[flags.scope.isin(WIDE)]
    impossible = int((rows.verdict == "impossible").sum())
    parts = [f"{count(len(rows), 'row')} ({impossible:,} impossible)"] if len(rows) else []
    counts = wide.scope.value_counts()
    parts += [count(int(counts[scope]), scope) for scope in WIDE if scope in counts]
    sentences = [f"The plausibility rules flag {', '.join(parts)}."]
    explained = set(wide.cause)
    for flag in wide.itertuples(index=False):
        sentences.append(f"{flag.rule} ({flag.verdict}): {flag.found}. Likely cause: {flag.cause}.")
        explained.add(f"{flag.region}: {flag.cause}")
    rest = rows[~rows.cause.isin(explained)]
    for (rule, cause), group in rest.groupby(["rule", "cause"], sort=False):
        also = f" and {count(len(group) - 1, 'other row')}" if len(group) > 1 else ""
        sentences.append(f"{rule}: {group.found.iloc[0]}{also}: {cause}.")
    return Report(flags, tuple(sentences))


def suspects(frame: pd.DataFrame, flags: pd.DataFrame, *, table: str = "pairs", about: str | None = None) -> pd.Series:
    """
    Mask the flagged rows of a complete table, as `check` read it, with the frame's index.

    A row is flagged by its own flag, by a flag of the region where it starts, and by one of `AT_BOTH_ENDS` of either
    region. A row of `pairs` is flagged if a row of any table with its regions, in its direction, is. Flags of whole
    columns and tables do not count: they would leave no rows. With `about` ("rtt" or "throughput") flags that concern
    only the other one are ignored.
    """
    check_choice("about", about, ABOUT, optional=True)
    check_columns("flags", flags, FLAGS)
    check_columns(table, frame, ["from_region", "to_region"])
    flags = concerning(flags, about)
    return _by_row(frame, flags, table) | _by_region(frame, flags)


def concerning(flags: pd.DataFrame, about: str | None) -> pd.DataFrame:
    """The flags that concern RTT or throughput; all flags for None."""
    if about is None:
        return flags
    rtt = flags.column_name.astype("string").str.contains("rtt").fillna(False).astype(bool)
    other = flags.column_name.notna() & (rtt if about == "throughput" else ~rtt)
    return flags[~other]


def _by_row(frame, flags, table) -> pd.Series:
    rows = flags[flags.scope == "row"]
    if table == "pairs":
        pairs = set(zip(rows.from_region, rows.to_region, strict=True))
        mask = [pair in pairs for pair in zip(frame.from_region, frame.to_region, strict=True)]
        return pd.Series(mask, index=frame.index, dtype=bool)
    names = set(rows.row[rows.table == table])
    return row_names(table, frame).isin(names)


def _by_region(frame, flags) -> pd.Series:
    regions = flags[(flags.scope == "region") & flags.region.notna()]
    placed = set(regions.region[regions.rule.isin(AT_BOTH_ENDS)])
    return frame.from_region.isin(set(regions.region)) | frame.to_region.isin(placed)
