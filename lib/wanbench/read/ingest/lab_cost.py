"""Read actual and expected costs of a run's rented hosts (lab_cost/*.json)."""

from __future__ import annotations

from dataclasses import dataclass

from wanbench.errors import RawDataError

from .json_values import read_json

EXPERIMENT, IF_KILLED = "lab_cost", "if-killed-"
_EXPECTED = 'a JSON object with "expected" and "spent", each with "items" that have low_usd and high_usd'


@dataclass(frozen=True)
class LabCost:
    """US dollars over all sessions of a run, lowest and highest; items of unknown price are left out and named."""

    expected_usd: tuple[float, float]
    spent_usd: tuple[float, float]
    unknown: tuple[str, ...] = ()
    killed: int = 0
    """Number of killed sessions; each counts as if its hosts had run until they ended themselves."""

    def __str__(self) -> str:
        spent, expected = (f"{low:.2f} to {high:.2f}" for low, high in (self.spent_usd, self.expected_usd))
        without = f", without {', '.join(self.unknown)}" if self.unknown else ""
        killed = ", the most if hosts of killed sessions ran until they ended themselves" if self.killed else ""
        return f"{spent} USD spent{killed}, {expected} USD expected{without}"


def lab_cost(run) -> LabCost | None:
    """
    The cost of a run's lab; None if no hosts are rented.

    For a killed session, only an upper limit of its cost is known.

    Raises
    ------
    RawDataError
        A file is not what a lab writes.
    """
    killed = sorted(run.folder.glob(f"{EXPERIMENT}/{IF_KILLED}*.json"))
    files = [run.folder / file["path"] for file in run.raw_files() if file["experiment"] == EXPERIMENT]
    paths = [*killed, *files]
    if not paths:
        return None
    sums, unknown = {"expected": [0.0, 0.0], "spent": [0.0, 0.0]}, {}
    for path in paths:
        content = read_json(path, dict, _EXPECTED)
        try:
            for name, total in sums.items():
                for item in content[name]["items"]:
                    low, high = item["low_usd"], item["high_usd"]
                    if low is None or high is None:
                        unknown[str(item["item"])] = None
                    else:
                        total[0] += float(low)
                        total[1] += float(high)
        except (KeyError, TypeError, ValueError):
            raise RawDataError(path, None, str(content)[:200], _EXPECTED) from None
    return LabCost(tuple(sums["expected"]), tuple(sums["spent"]), tuple(unknown), len(killed))
