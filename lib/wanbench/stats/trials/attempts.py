"""Which attempt of each planned trial counts."""

from __future__ import annotations

import pandas as pd

from .window import KEY


def attempts_of(tests: pd.DataFrame, trials: pd.DataFrame) -> tuple[pd.DataFrame, list[dict]]:
    """
    The attempts that count, in the order of measuring (`order`, from 1), and those that do not, with the reason; both
    with their levels.

    Of a trial counts the last attempt that ended as done. A failure that a later attempt made good is neither.

    Parameters
    ----------
    tests, trials : DataFrame
        The tables of those names.
    """
    test = ["run_id", "test_id"]
    state = tests[[*test, "attempt", "outcome", "started_at_utc"]]
    both = trials.merge(state, on=test, how="left")
    reason = pd.Series(None, index=both.index, dtype=object)
    reason[both.outcome != "done"] = "that " + both.outcome.fillna("never began").replace(
        {"interrupted": "were interrupted"}
    )
    done = both[both.outcome == "done"].sort_values([*test, "attempt"])
    reason[done.index[done.duplicated(test, keep="last")]] = "that were measured again later"
    retried = both.set_index(test).index.isin(done.set_index(test).index)
    reason[retried & (both.outcome != "done")] = None  # a failure that a later attempt made good
    out = both[reason.notna()].assign(reason=reason[reason.notna()])
    kept = done[~done.duplicated(test, keep="last")]
    kept = kept.sort_values(["started_at_utc", *test], kind="stable").reset_index(drop=True)
    kept = kept.drop(columns="outcome").assign(attempt=kept.attempt.astype("int64"), order=kept.index + 1)
    return kept, out[[*KEY, *(name for name in trials.columns if name not in KEY), "reason"]].to_dict(
        "records"
    )
