"""
Published claims against recomputed numbers: value, recomputed value, verdict, the working.

The claims of a source are in `data/published/<source>.csv`, paraphrased, with their section. A study tests each of
them: `compare` for a number, `judge` for a sentence, `leave` if this project cannot test it. Untested claims stay in
the table as such.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from decimal import Decimal
from math import isfinite, nan
from pathlib import Path

import pandas as pd

from ..checks import check_choice
from ..errors import ParameterError, RawDataError
from ..folders import root
from ..formatting import count, number
from ..stats.result import Estimate, Result

REPRODUCED = "reproduced"
WITHIN = "inside the interval"
NOT_REPRODUCED = "not reproduced"
UNDECIDED = "undecided"
CANNOT = "cannot be tried here"
UNTRIED = "not tried"
VERDICTS = (REPRODUCED, WITHIN, NOT_REPRODUCED, UNDECIDED, CANNOT)
WAYS = {
    "own numbers": "do the source's own numbers agree with it?",
    "re-run": "does a measurement of the same kind show it?",
    "both": "the one and the other",
    "setting": "it says what was set, which can only contradict other numbers",
    "fact": "it follows from Kafka or from arithmetic alone",
    "not here": "it needs what this project does not have",
}
"""How a claim can be tried."""


@dataclass(frozen=True)
class Claim:
    """
    One claim: the source's statement, paraphrased, and its number as printed ("" where it gives none).

    For a source repeated by several pages, a claim also names the page that tests it, and how (`WAYS`).
    """

    claim: str
    section: str
    says: str
    value: str
    unit: str
    source: str
    page: str = ""
    tried_by: str = ""

    @property
    def number(self) -> float:
        """The claimed number; NaN where there is none."""
        return float(self.value) if self.value else nan

    @property
    def decimals(self) -> int:
        """Decimal places of the number as printed; negative for "1.3e2"."""
        return -Decimal(self.value).as_tuple().exponent

    @property
    def written(self) -> str:
        """
        The claimed number with as many digits as are printed.

        >>> [Claim("n", "", "", value, "", "").written for value in ("0.92", "2070", "-0.70")]
        ['0.92', '2,070', '-0.70']
        """
        return number(self.number, max(self.decimals, 0))

    @property
    def half_step(self) -> float:
        """
        Half of the last printed digit: numbers within this round to the claimed one.

        >>> [Claim("n", "", "", value, "", "").half_step for value in ("0.92", "2070", "1.3e2")]
        [0.005, 0.5, 5.0]
        """
        return 0.5 * 10.0**-self.decimals


COLUMNS = tuple(column.name for column in fields(Claim))
OPTIONAL = ("page", "tried_by")


@dataclass(repr=False)
class Audit(Result):
    """The claims of one source, and the verdict on each."""

    source: str
    claims: dict[str, Claim]
    rows: dict[str, dict] = field(default_factory=dict)

    TITLE = "Claims of the source"

    def compare(
        self, claim: str, recomputed: Estimate | float, working: str = "", *, within: Estimate | None = None
    ) -> None:
        """
        Test a claimed number.

        It is reproduced if the recomputed value rounds to it as printed, and inside the interval if only the interval
        contains it. Without a recomputed value it stays open.

        Parameters
        ----------
        claim : str
            The claim's short name.
        recomputed : Estimate or float
            In the unit of the claim.
        working : str
            How it was recomputed; the sentence of an Estimate is added.
        within : Estimate, optional
            Whose interval to take where `recomputed` is the source's own figure, which has none.
        """
        claimed = self._claim(claim)
        if not isfinite(claimed.number):
            raise ParameterError(f"claim {claim} has no number; judge it instead")
        estimate = recomputed if isinstance(recomputed, Estimate) else within
        value = recomputed.estimate if isinstance(recomputed, Estimate) else float(recomputed)
        low, high = (estimate.low, estimate.high) if estimate else (nan, nan)
        if abs(value - claimed.number) <= claimed.half_step * (1 + 1e-9):
            verdict = REPRODUCED
        elif low <= claimed.number <= high:
            verdict = WITHIN
        else:
            verdict = NOT_REPRODUCED if isfinite(value) else UNDECIDED
        self._note(
            claim, verdict, f"{working} {estimate.sentence if estimate else ''}".strip(), value, low, high
        )

    def judge(self, claim: str, holds: bool | None, working: str) -> None:
        """Set the verdict on a claim: whether it holds (None: open), and the working."""
        self._claim(claim)
        self._note(claim, UNDECIDED if holds is None else REPRODUCED if holds else NOT_REPRODUCED, working)

    def leave(self, claim: str, why: str) -> None:
        """State why a claim cannot be tested here."""
        self._claim(claim)
        self._note(claim, CANNOT, why)

    def on_page(self, page: str) -> Audit:
        """Only the claims that a page tests; ParameterError if there are none."""
        check_choice(
            f"page of {self.source}", page, dict.fromkeys(claim.page for claim in self.claims.values())
        )
        return self.only(*(name for name, claim in self.claims.items() if claim.page == page))

    def only(self, *names: str) -> Audit:
        """Only these claims, in this order; ParameterError if there is no such claim."""
        claims = {name: self._claim(name) for name in names}
        return Audit(self.source, claims, {name: self.rows[name] for name in claims if name in self.rows})

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The number of reproduced claims, of those that can be tested."""
        verdicts = [row["verdict"] for row in self.rows.values() if row["verdict"] != CANNOT]
        reproduced = verdicts.count(REPRODUCED)
        return (
            Estimate(
                quantity="reproduced claims",
                claim=f"Reproduced: {{}} of {len(verdicts)}",
                estimate=reproduced,
                low=nan,
                high=nan,
                unit="claims",
                n=len(verdicts),
                basis=count(len(verdicts), "claim"),
                method="each claim recomputed from what the source publishes, where a number is reproduced if it "
                "rounds to the printed one, or tried on a run of ours by the bound that its row states",
                assumption="What is published is what the source describes, and our run is a case of its claim",
            ),
        )

    @property
    def sentence(self) -> str:
        verdicts = [row["verdict"] for row in self.rows.values()]
        counts = [f"{verdicts.count(each)} {each}" for each in VERDICTS if each in verdicts]
        if untried := len(self.claims) - len(verdicts):
            counts.append(f"{untried} {UNTRIED}")
        return f"{count(len(self.claims), 'claim')} of this source: {', '.join(counts)}."

    def table(self) -> pd.DataFrame:
        """One row per claim: section, says, claimed, unit, recomputed, low, high, verdict, working, off_by."""
        untried = {"recomputed": nan, "low": nan, "high": nan, "verdict": UNTRIED, "working": ""}
        rows = []
        for name, claim in self.claims.items():
            source = {"claim": name, "section": claim.section, "says": claim.says, "claimed": claim.number}
            rows.append(source | {"unit": claim.unit} | self.rows.get(name, untried))
        columns = ["claim", "section", "says", "claimed", "unit", *untried]
        table = pd.DataFrame(rows, columns=columns)
        return table.assign(off_by=table.recomputed - table.claimed)

    def shown(self) -> pd.DataFrame:
        rows = [
            {
                "The source says": row.says,
                "Claimed": self._claimed(row.claim),
                "Recomputed": self._recomputed(row),
                "Verdict": row.verdict,
                "Working": row.working,
            }
            for row in self.table().itertuples(index=False)
        ]
        return pd.DataFrame(rows)

    def _claimed(self, name: str) -> str:
        claim = self.claims[name]
        return f"{claim.written} {claim.unit}".strip() if claim.value else ""

    def _recomputed(self, row) -> str:
        """With one digit more than the claim, to show whether it rounds to it."""
        if not isfinite(row.recomputed):
            return ""
        places = max(self.claims[row.claim].decimals + 1, 0)
        return f"{number(row.recomputed, 0 if row.recomputed == round(row.recomputed) else places)} {row.unit}".strip()

    def _claim(self, name: str) -> Claim:
        return self.claims[check_choice(f"claim of {self.source}", name, self.claims)]

    def _note(self, claim, verdict, working, recomputed=nan, low=nan, high=nan) -> None:
        numbers = {"recomputed": recomputed, "low": low, "high": high}
        self.rows[claim] = numbers | {"verdict": verdict, "working": working}


def above(estimate: Estimate, bound: float) -> bool | None:
    """Whether an interval lies above a bound; None if it contains the bound, or is missing."""
    if estimate.low > bound:
        return True
    return False if estimate.high < bound else None


def read_claims(source: str, folder: Path | str | None = None) -> Audit:
    """
    The claims of a source, all untested.

    Parameters
    ----------
    source : str
        Its file in `data/published`, without the ending.

    Raises
    ------
    ParameterError
        There is no such file.
    RawDataError
        It lacks a column, repeats a claim, or has a value that is not a number.
    """
    folder = Path(folder) if folder is not None else root() / "data" / "published"
    check_choice("source", source, sorted(path.stem for path in folder.glob("*.csv")))
    path = folder / f"{source}.csv"
    frame = pd.read_csv(path, dtype="str", keep_default_na=False)
    if tuple(frame.columns) not in (COLUMNS, COLUMNS[: -len(OPTIONAL)]):
        wanted = f"the columns {', '.join(COLUMNS)}; the last {len(OPTIONAL)} may be absent"
        raise RawDataError(path, 1, ", ".join(frame.columns), wanted)
    claims = {}
    for line, row in enumerate(frame.itertuples(index=False), start=2):
        claim = Claim(*row)
        try:
            readable = not claim.value or isfinite(claim.number)
        except ValueError:
            readable = False
        if not readable or claim.claim in claims or not claim.claim:
            raise RawDataError(path, line, ", ".join(row), "a new claim with a number or without a value")
        if claim.tried_by and claim.tried_by not in WAYS:
            raise RawDataError(path, line, claim.tried_by, f"one of {', '.join(WAYS)}")
        claims[claim.claim] = claim
    return Audit(source, claims)
