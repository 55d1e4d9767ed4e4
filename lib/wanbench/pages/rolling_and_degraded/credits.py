"""Find disks that slowed because their burst credit was used up, and estimate the credit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import nan
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.formatting import count, quantity
from wanbench.methods.result.over_episodes import OverEpisodes

from .trials import BACK_S, LEVEL, DisturbedTrial, DisturbedTrials


@dataclass(frozen=True, repr=False)
class DiskCredits(OverEpisodes):
    """
    What limited disks had written when p99 rose: one row per episode, with the columns of QUANTITIES.

    p99 is known by the second, so written_bytes is what the disk had written in the middle of the second of the rise.
    later_bytes is what it wrote per second from the end of that second on, and credit_bytes is what it had written at
    that end, less what it would have written at the later rate. This is missing if it is less than `later_bytes`, which
    a second cannot show; and if half or fewer of the rises of a kind show a credit, because all its disks have the same
    one. set_bytes is the credit that was set.
    """

    TITLE = "What limited disks had written when p99 rose: medians over episodes"
    BY = "system"
    QUANTITIES: ClassVar[dict[str, str]] = {
        "written_bytes": "written until p99 rose",
        "credit_bytes": "burst credit",
        "later_bytes": "written per second after that",
    }
    UNITS: ClassVar[dict[str, str]] = dict.fromkeys(QUANTITIES, "bytes")

    @property
    def sentence(self) -> str:
        parts = []
        for name, rows in self.rows.groupby("system", sort=False):
            written, credit = (self.of(str(name), each) for each in ("written_bytes", "credit_bytes"))
            shows = f"a burst credit of {credit.formatted_with_interval}" if credit.n else "no burst credit"
            was_set = f"{quantity(rows.set_bytes.max(), 'bytes')} were set"
            after = f"after {written.formatted_with_interval} were written, which shows {shows}; {was_set}"
            then = after if written.n else "so no burst credit was used up"
            parts.append(f"With “{name}” p99 rose in {written.n} of {count(len(rows), 'episode')}, {then}.")
        return "\n".join(parts)


def disk_credits(measured: DisturbedTrials) -> DiskCredits:
    """
    Compare what each limited disk wrote before and after p99 rose, in the trials that count.

    p99 rises in the first of `BACK_S` consecutive seconds above the undisturbed limit. Raises MissingDataError: no
    trial counts what a limited disk wrote.
    """
    rows = [
        {"system": trial.about.system, "block": trial.about.block, "node_id": action.node_id} | numbers
        for trial in measured.with_kind("disk")
        for action in trial.actions[trial.actions.kind == "disk"].itertuples()
        if (numbers := _numbers(trial, action, measured.limit_ms))
    ]
    if not rows:
        raise MissingDataError("no trial counted what a limited disk wrote.")
    frame = pd.DataFrame(rows)
    of_kind = frame.groupby("system")[["credit_bytes", "written_bytes"]].transform("count")
    few = 2 * of_kind.credit_bytes <= of_kind.written_bytes
    return DiskCredits(frame.assign(credit_bytes=frame.credit_bytes.mask(few)), LEVEL)


def _numbers(trial: DisturbedTrial, action: Any, limit_ms: float) -> dict[str, float]:
    about, begin_s, end_s = json.loads(action.detail), float(action.in_force_at_s), float(action.done_at_s)
    if not about.get("written") or not end_s > begin_s:  # older versions recorded nothing
        return {}
    found = dict.fromkeys(DiskCredits.QUANTITIES, nan) | {"set_bytes": about["disk_credit_bytes"]}
    seconds = trial.by_second(begin_s, end_s)
    rises = seconds.start_s[(seconds.p99_ms > limit_ms)[::-1].rolling(BACK_S).sum()[::-1] == BACK_S]
    if len(rises):
        at_s = np.array([rises.iloc[0] + 0.5, rises.iloc[0] + 1, end_s]) - begin_s
        counted_s, counted = np.array(about["written"], float).T
        middle, end, in_all = np.interp(at_s, counted_s, counted)
        later = (in_all - end) / (at_s[2] - at_s[1])
        credit = end - later * at_s[1]
        found |= {"written_bytes": middle, "later_bytes": later, "credit_bytes": credit if credit >= later else nan}
    return found
