"""
Round-trip times per setting as ping sums them up, min / mean / max / mdev, each with an interval from repeated runs.

mdev is what Linux's ping calls so: the root of the mean square less the square of the mean, over the echoes of one
run; it is a standard deviation, not a mean one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from html import escape
from math import nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, percent
from ...stats.result import Estimate, Interval, Result, table
from ...stats.trials.concurrent import round_trips
from ...stats.trials.window import KEY

STATISTICS = {
    "min": ("min_rtt_ms", "least RTT of a ping run"),
    "mean": ("mean_rtt_ms", "mean RTT of a ping run"),
    "max": ("max_rtt_ms", "greatest RTT of a ping run"),
    "mdev": ("mdev_rtt_ms", "mdev of a ping run"),
}
PUBLISHED = {
    "internet": {"min": 70.8, "mean": 132.9, "max": 193.2, "mdev": 25.1},
    "private": {"min": 62.1, "mean": 62.5, "max": 68.1, "mdev": 0.7},
}
"""
Table 1 of "Measuring the Impact of Latency in Multi-Cloud Transactional Systems" (PacketFabric): site-to-site VPN over
the internet, and a private circuit; one long ping each.
"""
METHOD = "t over ping runs, with the run as the unit"
ASSUMPTION = (
    "Runs are independent and as long as each other; pings, sent at even intervals, meet what traffic does"
)
EXTREME = "min and max are extreme values: they lie the further out the more echoes a run has ({} here)"
NAIVE = "echoes as independent"


@dataclass(frozen=True, repr=False)
class RttTable(Result):
    """
    Attributes
    ----------
    numbers : dict
        (setting, statistic) to Estimate, of "min", "mean", "max", "mdev": the mean over ping runs.
    runs : DataFrame
        One row per ping run: `setting`, `n_echoes`, `n_lost_echoes`, and the four in ms.
    published : dict
        Setting to statistic to ms: what the source printed.
    """

    numbers: dict[tuple[str, str], Estimate]
    runs: pd.DataFrame
    published: dict[str, dict[str, float]]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(self.numbers.values())

    @property
    def settings(self) -> list[str]:
        return list(dict.fromkeys(setting for setting, _ in self.numbers))

    def table(self) -> pd.DataFrame:
        """One row per setting and statistic: measured, low, high, published, whether that lies in the interval."""
        rows = []
        for (setting, name), each in self.numbers.items():
            said = self.published.get(setting, {}).get(name, nan)
            inside = None if not np.isfinite(said * each.low) else bool(each.low <= said <= each.high)
            rows.append(
                {
                    "setting": setting,
                    "statistic": name,
                    "measured_ms": each.estimate,
                    "low_ms": each.low,
                    "high_ms": each.high,
                    "published_ms": said,
                    "published_in_interval": inside,
                    "n_runs": each.n,
                }
            )
        return pd.DataFrame(rows)

    def rows(self) -> pd.DataFrame:
        """All numbers as `Estimate.row`."""
        return table(self.estimates)

    DRAWN_BY = "rtt_table_figure.rtt_table"

    def __str__(self) -> str:
        said = []
        for setting in self.settings:
            four = " / ".join(self.numbers[setting, name].written.removesuffix(" ms") for name in STATISTICS)
            printed = self.published.get(setting)
            beside = (
                f"; the source printed {' / '.join(f'{printed[name]:g}' for name in STATISTICS)}"
                if printed
                else ""
            )
            basis = self.numbers[setting, "mean"].basis
            said.append(f"{setting}: min / mean / max / mdev of {four} ms ({basis}{beside}).")
        notes = dict.fromkeys(note for each in self.estimates for note in each.warnings)
        return " ".join([*said, *(f"Caution: {each}." for each in notes)])

    def _repr_html_(self) -> str:
        level = percent(self.estimates[0].level)
        head = "".join(
            f"<th scope='col'>{escape(name)}</th>"
            for name in (
                "Statistic (ms)",
                *(
                    f"{s}: {part}"
                    for s in self.settings
                    for part in ("measured", f"{level} interval", "source")
                ),
            )
        )
        body = ""
        for name in STATISTICS:
            cells = [f"RTT {name}"]
            for setting in self.settings:
                each = self.numbers[setting, name]
                said = self.published.get(setting, {}).get(name)
                cells += [
                    each.written.removesuffix(" ms"),
                    each.written_interval or "none",
                    f"{said:g}" if said else "",
                ]
            body += "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        notes = dict.fromkeys(note for each in self.estimates for note in each.warnings)
        below = "".join(f"<p>Caution: {escape(note)}.</p>" for note in notes)
        counts = "; ".join(f"{s}: {self.numbers[s, 'mean'].basis}" for s in self.settings)
        return (
            f'<table class="estimates"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
            f"<p>{escape(counts)}. {escape(METHOD[0].upper() + METHOD[1:])}.</p>{below}"
        )


def rtt_table(
    tables: Mapping[str, pd.DataFrame],
    settings: Sequence[str] | Mapping[str, str] = ("internet", "private"),
    *,
    published: Mapping[str, Mapping[str, float]] | None = None,
    level: float = 0.95,
) -> RttTable:
    """
    Min, mean, max and mdev of RTT per setting, from the echoes of tests that were done.

    Parameters
    ----------
    tables : mapping
        Tables tests (its column `setting` tells which) and echoes.
    settings : sequence or mapping of str
        Settings in use; a mapping gives the pattern of each: {"internet": "internet ping*"}.
    published : mapping
        What to show beside, by setting and statistic; default `PUBLISHED`.

    Raises
    ------
    ParameterError
        For a setting without echoes.
    """
    level = check_level(level)
    patterns = settings if isinstance(settings, Mapping) else {name: name for name in settings}
    published = PUBLISHED if published is None else published
    done = tables["tests"]
    done = done[done.outcome == "done"]
    runs = round_trips(tables["echoes"]).merge(done[[*KEY, "setting"]], on=KEY)
    silent = runs[runs.mean_rtt_ms.isna()]
    runs = runs[runs.mean_rtt_ms.notna()]
    parts, numbers = [], {}
    for name, pattern in patterns.items():
        own = runs[[fnmatchcase(str(each), pattern) for each in runs.setting]]
        if own.empty:
            known = ", ".join(dict.fromkeys(map(str, runs.setting))) or "none"
            raise ParameterError(f"no echo was answered in a test of setting {pattern}; there are {known}")
        notes = [EXTREME.format(_range(own.n_echoes))]
        if len(silent):
            notes.append(f"{count(len(silent), 'test')} without an answered echo not in use")
        for statistic, (column, said) in STATISTICS.items():
            extreme = notes if statistic in ("min", "max") else notes[1:]
            numbers[name, statistic] = _number(own, column, statistic, said, name, level, tuple(extreme))
        parts.append(own.assign(setting=name))
    frame = pd.concat(parts, ignore_index=True)
    return RttTable(numbers, frame, {name: dict(published.get(name, {})) for name in patterns})


def _number(own, column, statistic, said, name, level, notes) -> Estimate:
    values = own[column].to_numpy(dtype=float)
    half = nan
    if len(values) > 1:
        half = stats.t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / sqrt(len(values))
    else:
        notes = (*notes, f"no interval for {name}: a single ping run")
    naive = Interval(NAIVE)
    if statistic == "mean":
        total = own.n_echoes - own.n_lost_echoes
        wide = stats.norm.ppf((1 + level) / 2) * sqrt(
            float((own.mdev_rtt_ms**2 / total).mean()) / len(values)
        )
        naive = Interval(NAIVE, values.mean() - wide, values.mean() + wide)
    return Estimate(
        quantity=f"{statistic} of RTT, {name}",
        claim=f"Over {name} the {said} is {{}}",
        estimate=float(values.mean()),
        low=float(values.mean() - half),
        high=float(values.mean() + half),
        unit="ms",
        n=len(values),
        basis=f"{count(len(values), 'run')} of {_range(own.n_echoes)} echoes",
        method=METHOD,
        assumption=ASSUMPTION,
        level=level,
        naive=naive,
        warnings=notes,
    )


def _range(counts: pd.Series) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
