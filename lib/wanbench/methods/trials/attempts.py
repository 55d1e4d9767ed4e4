"""Which attempt of each planned trial counts."""

from __future__ import annotations

import pandas as pd

from wanbench.methods.lab.utilisation import KEY


def attempts_of(tests: pd.DataFrame, trials: pd.DataFrame) -> tuple[pd.DataFrame, list[dict]]:
    """
    The attempts that count, in the order measured (`order`, from 1), and the others with their reason.

    Both have the levels of their trial. The last successful attempt of a trial counts. A failure that was retried with
    success is in neither.

    Parameters
    ----------
    tests, trials : DataFrame
        The tables of those names.
    """
    test = ["run_id", "test_id"]
    rows = trials.merge(tests[[*test, "attempt", "outcome", "started_at_utc"]], on=test, how="left")
    reason = pd.Series(None, index=rows.index, dtype=object)
    reason[rows.outcome != "done"] = "that " + rows.outcome.fillna("never began").replace(
        {"interrupted": "were interrupted"}
    )
    done = rows[rows.outcome == "done"].sort_values([*test, "attempt"])
    reason[done.index[done.duplicated(test, keep="last")]] = "that were repeated later"
    retried = rows.set_index(test).index.isin(done.set_index(test).index)
    reason[retried & (rows.outcome != "done")] = None
    out = rows[reason.notna()].assign(reason=reason[reason.notna()])
    kept = done[~done.duplicated(test, keep="last")]
    kept = kept.sort_values(["started_at_utc", *test], kind="stable").reset_index(drop=True)
    kept = kept.drop(columns="outcome").assign(attempt=kept.attempt.astype("int64"), order=kept.index + 1)
    levels = [name for name in trials.columns if name not in KEY]
    return kept, out[[*KEY, *levels, "reason"]].to_dict("records")
