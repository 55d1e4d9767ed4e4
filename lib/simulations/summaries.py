"""Summarise tables of coverage: overview, readable tables, settings outside the band, and findings."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pandas as pd

from wanbench.checks import check_choice
from wanbench.findings import Finding
from wanbench.formatting import count, number, span

from . import effects, simulation

BAND = (0.93, 0.97)
"""The range in which the coverage of a 95 % interval should be."""
METHOD = (
    "counted over simulated data sets whose true value is known, each with its own seed; exact interval of a share "
    "(Clopper & Pearson 1934); `make validity` repeats the count"
)
ASSUMPTION = "Real data are like some of the simulated kinds. Effects of another kind would violate this assumption"


def read_all() -> dict[str, pd.DataFrame]:
    """Read the committed tables by subject, in the order of the simulations, except missing ones."""
    return {
        name: simulation.read(name)
        for name in simulation.simulations()
        if (simulation.folder() / f"{name}.csv").is_file()
    }


def overview(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    Return a row per subject, quantity and method.

    It has the lowest and highest coverage, the number of settings within the band, the number of data sets, and the
    largest share of data sets without an interval.
    """
    rows = []
    for subject, table in tables.items():
        for (quantity, method), cases in table.groupby(["quantity", "method"], sort=False):
            within = cases.coverage.between(*BAND)
            rows.append(
                {
                    "subject": subject,
                    "quantity": quantity,
                    "method": method,
                    "coverage (%)": span(100 * cases.coverage.min(), 100 * cases.coverage.max(), 1),
                    "settings within 93 to 97 %": f"{int(within.sum())} of {len(cases)}",
                    "data sets per setting": _data_sets(cases),
                    "without an interval (%), at most": round(
                        100 * float((cases.without_interval / cases.data_sets).max()), 1
                    ),
                }
            )
    return pd.DataFrame(rows)


def by_setting(table: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Return a quantity's coverage (%) as text, with a row per setting and a column per method."""
    rows = table[table.quantity == quantity]
    rows = rows.assign(setting=rows.setting.map(simulation.describe), cell=[_cell(row) for row in rows.itertuples()])
    methods = list(dict.fromkeys(rows.method))
    wide = rows.pivot_table(index="setting", columns="method", values="cell", aggfunc="first", sort=False)
    return wide[methods].fillna("").rename_axis(index=None, columns=None)


def by_quantity(table: pd.DataFrame, titles: Mapping[str, str]) -> pd.DataFrame:
    """Return the coverage (%) of several quantities as text: a row per setting, and a column per title."""
    parts = [by_setting(table, quantity).set_axis([title], axis=1) for quantity, title in titles.items()]
    return pd.concat(parts, axis=1)


def _cell(row) -> str:
    """Format coverage in per cent with its interval, and the share of data sets without an interval."""
    if pd.isna(row.coverage):
        return "no interval"
    share, low, high = (f"{100 * value:.1f}" for value in (row.coverage, row.coverage_low, row.coverage_high))
    none = row.without_interval / row.data_sets
    return f"{share} ({low} to {high})" + (f"; {100 * none:.0f} % left out" if row.without_interval else "")


def ordinary(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of those kinds of data sets for which the intervals are designed."""
    return table[~_is_harder(table)]


def harder(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of data sets for which intervals are not designed: they show when coverage fails."""
    return table[_is_harder(table)]


def _is_harder(table: pd.DataFrame) -> pd.Series:
    kinds = (*effects.BREAKING_KINDS, *effects.NEIGHBOURS, *effects.FEW_BEYOND_KNEE)
    return table.setting.map(lambda text: json.loads(text).get("effects") in kinds).astype(bool)


def outside_band(table: pd.DataFrame, method: str = simulation.MAIN) -> pd.DataFrame:
    """Return the quantities and settings for which a method's coverage is outside `BAND`, lowest coverage first."""
    cases = table[(table.method == method) & ~table.coverage.between(*BAND)].sort_values("coverage")
    cases = cases.assign(setting=cases.setting.map(simulation.describe))
    cases["coverage (%)"] = [_cell(row) for row in cases.itertuples()]
    return cases[["quantity", "setting", "coverage (%)"]].reset_index(drop=True)


def finding(table: pd.DataFrame, quantity: str, name: str, *, subject: str, method: str = simulation.MAIN) -> Finding:
    """
    State the coverage of a quantity's interval over all settings, and the coverage of the naive interval, if any.

    Parameters
    ----------
    subject : str
        The start of the sentence, such as "RTT against distance".
    """
    check_choice("quantity", quantity, dict.fromkeys(table.quantity))
    check_choice("method", method, dict.fromkeys(table.method[table.quantity == quantity]))
    cases = table[(table.quantity == quantity) & (table.method == method)]
    within = int(cases.coverage.between(*BAND).sum())
    naive = table[(table.quantity == quantity) & (table.method == simulation.NAIVE)].coverage
    naive_text = f" The interval that treats pairs as independent does so in {_range(naive)} %." if len(naive) else ""
    low, high = (100 * edge for edge in BAND)
    return Finding(
        name=name,
        sentence=f"{subject}: the 95 % interval of “{quantity}” contains the true value in {_range(cases.coverage)} % "
        f"of simulated data sets ({count(len(cases), 'kind')} of data set, {_data_sets(cases)} of each; the share is "
        f"{low:.0f} to {high:.0f} % for {within} of the kinds).{naive_text}",
        estimate=float(cases.covered.sum() / (cases.data_sets - cases.without_interval).sum()),
        low=float(cases.coverage.min()),
        high=float(cases.coverage.max()),
        headline=f"{subject}: {_range(cases.coverage)} % of the 95 % intervals of “{quantity}” contain the true value. "
        f"The goal is {low:.0f} to {high:.0f} %.",
        unit="fraction",
        counted=count(int(cases.data_sets.sum()), "simulated data set"),
        n=int(cases.data_sets.sum()),
        n_regions=None,
        method=f"{METHOD}; the range given is that over the kinds",
        assumption=ASSUMPTION,
    )


def _data_sets(cases: pd.DataFrame) -> str:
    """Return the number of data sets per kind as text."""
    smallest, largest = cases.data_sets.min(), cases.data_sets.max()
    return number(smallest) if smallest == largest else span(smallest, largest, 0)


def _range(coverage: pd.Series) -> str:
    low, high = 100 * coverage.min(), 100 * coverage.max()
    return f"{low:.1f}" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f} to {high:.1f}"


def agreement(committed: pd.DataFrame, again: pd.DataFrame, name: str) -> Finding:
    """State whether the first data sets, simulated again on this machine, give the counts of the committed table."""
    both = simulation.compare_counts(committed, again)
    same, n = int(both.same.sum()), int(again["first"].iloc[0])
    verdict = "as in the committed table" if same == len(both) else "as in the committed table, but NOT all"
    return Finding(
        name=name,
        sentence=f"{count(n, 'data set')} of the kind “{simulation.describe(again.setting.iloc[0])}”, simulated "
        f"again for this page, give {same} of {len(both)} counts {verdict}.",
        estimate=same / len(both),
        low=None,
        high=None,
        unit="fraction",
        n=n,
        n_regions=None,
        method="the same seeds as in the committed table",
        assumption="Other versions of the numerical libraries may round differently",
    )
