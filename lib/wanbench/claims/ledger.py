"""
Published claims against recomputed numbers: value, recomputed value, verdict, the working. Imports `errors`,
`findings`, `places`, `stats` and `wording`.

The claims of a source stand in `data/published/<source>.csv`, in our words, with the place they are from. A notebook
tries each of them: `compare` where a number is claimed, `judge` where a sentence is. A claim that nobody tried stays
in the table as such.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from html import escape
from math import isfinite, nan
from pathlib import Path

import pandas as pd

from ..errors import ParameterError, RawDataError
from ..findings import Finding
from ..folders import root
from ..formatting import count, number
from ..stats.result import Estimate

COLUMNS = ("claim", "section", "says", "value", "unit", "source")
COMES_OUT, WITHIN, DOES_NOT = "comes out", "inside the interval", "does not come out"
UNDECIDED, UNTRIED = "the data do not tell", "not tried"
VERDICTS = (COMES_OUT, WITHIN, DOES_NOT, UNDECIDED)


@dataclass(frozen=True)
class Claim:
    """One claim: what the source says in our words, and its number as printed ("" where it gives none)."""

    claim: str
    section: str
    says: str
    value: str
    unit: str
    source: str

    @property
    def number(self) -> float:
        """The claimed number; NaN where there is none."""
        return float(self.value) if self.value else nan

    @property
    def written(self) -> str:
        """
        The claimed number with as many digits as are printed.

        >>> [Claim("n", "", "", value, "", "").written for value in ("0.92", "2070", "-0.70")]
        ['0.92', '2,070', '-0.70']
        """
        return number(self.number, max(-Decimal(self.value).as_tuple().exponent, 0))

    @property
    def half_step(self) -> float:
        """
        Half of the last digit that is printed: how far off a number may be that rounds to it.

        >>> [Claim("n", "", "", value, "", "").half_step for value in ("0.92", "2070", "1.3e2")]
        [0.005, 0.5, 5.0]
        """
        return 0.5 * 10.0 ** Decimal(self.value).as_tuple().exponent


@dataclass
class Audit:
    """The claims of one source, and what became of each."""

    source: str
    claims: dict[str, Claim]
    rows: dict[str, dict] = field(default_factory=dict)

    def compare(
        self,
        claim: str,
        recomputed: Estimate | Estimate | float,
        working: str = "",
        *,
        within: Estimate | Estimate | None = None,
    ) -> None:
        """
        Try a claimed number.

        It comes out where the recomputed value rounds to it as printed; it is inside the interval where only the
        interval of the recomputed value holds it. Where no value could be recomputed, the data do not tell.

        Parameters
        ----------
        claim : str
            The claim's short name.
        recomputed : Estimate, Estimate or float
            In the unit of the claim.
        working : str
            How it was recomputed; the sentence of an Estimate or Estimate is added.
        within : Estimate or Estimate, optional
            Whose interval to take where `recomputed` is the source's own figure, which has none.
        """
        claimed = self._claim(claim)
        if not isfinite(claimed.number):
            raise ParameterError(f"claim {claim} has no number; judge it instead")
        is_estimated = isinstance(recomputed, Estimate | Estimate)
        known = recomputed if is_estimated else within
        value = recomputed.estimate if is_estimated else float(recomputed)
        low, high = (known.low, known.high) if known else (nan, nan)
        verdict = DOES_NOT if isfinite(value) else UNDECIDED
        if abs(value - claimed.number) <= claimed.half_step * (1 + 1e-9):
            verdict = COMES_OUT
        elif low <= claimed.number <= high:
            verdict = WITHIN
        said = " ".join(part for part in (working, str(known) if known else "") if part)
        self._note(claim, verdict, said, value, low, high)

    def judge(self, claim: str, holds: bool | None, working: str) -> None:
        """Try a sentence: whether it holds (None: the data do not tell), and the computed words that show it."""
        self._claim(claim)
        verdict = UNDECIDED if holds is None else COMES_OUT if holds else DOES_NOT
        self._note(claim, verdict, working, nan, nan, nan)

    def table(self) -> pd.DataFrame:
        """One row per claim: section, says, claimed, recomputed, low, high, off_by, verdict, working."""
        rows = []
        for name, claim in self.claims.items():
            row = self.rows.get(name, {"verdict": UNTRIED, "working": ""})
            value = row.get("recomputed", nan)
            rows.append(
                {
                    "claim": name,
                    "section": claim.section,
                    "says": claim.says,
                    "claimed": claim.number,
                    "unit": claim.unit,
                    "recomputed": value,
                    "low": row.get("low", nan),
                    "high": row.get("high", nan),
                    "off_by": value - claim.number,
                    "verdict": row["verdict"],
                    "working": row["working"],
                }
            )
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        tried = [row["verdict"] for row in self.rows.values()]
        counted = ", ".join(f"{verdict}: {tried.count(verdict)}" for verdict in VERDICTS if verdict in tried)
        said = f" ({counted})" if counted else ""
        return f"Of {count(len(self.claims), 'claim')} of this source {len(tried)} were tried{said}."

    def _repr_html_(self) -> str:
        head = ("What it says", "Claimed", "Recomputed", "Verdict", "The working")
        cells = "".join(f"<th scope='col'>{name}</th>" for name in head)
        body = "".join(self._html_row(row) for row in self.table().itertuples(index=False))
        table = f'<table class="claims"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>'
        return f"<p>{escape(str(self))}</p>{table}"

    def finding(self, name: str, page: str = "") -> Finding:
        """The finding that counts the verdicts."""
        came_out = sum(row["verdict"] == COMES_OUT for row in self.rows.values())
        return Finding(
            name=name,
            sentence=str(self),
            estimate=came_out,
            low=None,
            high=None,
            unit="claims",
            n=len(self.rows),
            n_regions=None,
            method="each claim recomputed from the source's own data; a number comes out where it rounds to the "
            "printed one",
            assumption="The published data are those that the source speaks of",
            page=page,
        )

    def _claim(self, name: str) -> Claim:
        if name not in self.claims:
            raise ParameterError(f"no claim {name!r} of {self.source}; there are {', '.join(self.claims)}")
        return self.claims[name]

    def _note(self, claim, verdict, working, recomputed, low, high) -> None:
        self.rows[claim] = {
            "verdict": verdict,
            "working": working,
            "recomputed": recomputed,
            "low": low,
            "high": high,
        }

    def _html_row(self, row) -> str:
        claim = self.claims[row.claim]
        claimed = f"{claim.written} {row.unit}".strip() if claim.value else ""
        recomputed = f"{self._written(claim, row.recomputed)} {row.unit}" if isfinite(row.recomputed) else ""
        cells = (row.says, claimed, recomputed, row.verdict, row.working)
        return "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>"

    @staticmethod
    def _written(claim: Claim, value: float) -> str:
        """With one digit more than the claim has, so that a reader sees whether it rounds to it."""
        places = 1 - Decimal(claim.value).as_tuple().exponent
        return number(value, 0 if value == round(value) else max(places, 0))


def audit(source: str, folder: Path | str | None = None) -> Audit:
    """
    The claims of a source, none of them tried yet.

    Parameters
    ----------
    source : str
        Its file in `data/published`, without the ending.

    Raises
    ------
    ParameterError
        There is no such file.
    RawDataError
        It lacks a column, repeats a claim, or has a value that is no number.
    """
    folder = Path(folder) if folder is not None else root() / "data" / "published"
    path = folder / f"{source}.csv"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in folder.glob("*.csv"))) or "none"
        raise ParameterError(f"no published claims {source!r}; there are {known}")
    frame = pd.read_csv(path, dtype="str", keep_default_na=False)
    if tuple(frame.columns) != COLUMNS:
        raise RawDataError(path, 1, ", ".join(frame.columns), f"the columns {', '.join(COLUMNS)}")
    claims = {}
    for line, row in enumerate(frame.itertuples(index=False), start=2):
        claim = Claim(*row)
        try:
            known = not claim.value or isfinite(claim.number)
        except ValueError:
            known = False
        if not known or claim.claim in claims or not claim.claim:
            raise RawDataError(path, line, ", ".join(row), "a new claim with a number or without a value")
        claims[claim.claim] = claim
    return Audit(source, claims)
