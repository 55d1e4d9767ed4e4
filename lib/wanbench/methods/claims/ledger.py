"""
Read the claims of a published source, and set verdicts on them from the source's own numbers.

File `data/published/claims/<source>.csv` lists the claims of a source, paraphrased, with their section; `articles.csv`
says where each source was published. A claim has two verdicts: one from the source's own numbers (`compare` for a
number, `judge` for a sentence), and one from a re-run (module `rules`). They are never merged, because consistent
arithmetic does not show that a measurement agrees. The *working* of a claim is a text with the rule and the numbers
behind its verdicts. Untested claims stay in the table, marked as untested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from html import escape
from itertools import product
from math import isfinite, nan
from pathlib import Path

import pandas as pd

from wanbench.checks import check_choice
from wanbench.errors import ParameterError, RawDataError
from wanbench.files import replace_file
from wanbench.findings import Finding
from wanbench.folders import published_folder
from wanbench.formatting import count, number
from wanbench.methods.result import Estimate, Fields, Result

REPRODUCED = "reproduced"
WITHIN = "inside the interval"
NOT_REPRODUCED = "not reproduced"
UNDECIDED = "undecided"
CANNOT = "cannot be tested here"
UNTESTED = "not tested"
VERDICTS = (REPRODUCED, WITHIN, NOT_REPRODUCED, UNDECIDED)  # The verdicts that a test can give.
KINDS = {"own": "its own numbers", "rerun": "the re-run"}  # What the numbers behind a verdict can come from.
METHODS = {
    "own": "a number is reproduced if the recomputed value rounds to it; a sentence, if the recomputed value is "
    "within the limit given in its row",
    "rerun": "a claim is reproduced if the measured interval lies where the row of the claim requires",
}
ASSUMPTION = "The published data are those that the source describes, and this run is a case to which the claim applies"
SETTING, NOT_HERE = "setting", "not here"
RERUN = ("re-run", "both")
# How a claim was finally tested, for the ledger of all claims.
ARITHMETIC, MEASURED, A_SETTING = "arithmetic checked", "measured again", "a setting"
# How a claim can be tested, and the working that is shown as long as it is untested.
WAYS = {
    "own numbers": "The source's own numbers agree with the claim or not.",
    "re-run": "The source gives no figures for the claim.",
    "both": "The source's own numbers decide the claim in part.",
    SETTING: "The claim states a setting, not a measurement.",
    "fact": "The claim follows from Kafka, a price list or arithmetic alone.",
    NOT_HERE: "A test of the claim needs what this project does not have.",
}


@dataclass(frozen=True)
class Claim:
    """
    One claim of a source.

    claim, section: Short name, and the section of the source.
    says: The statement, paraphrased.
    value, unit: The claimed number as printed, and its unit; "" if the claim has no number.
    page: The page that tests the claim.
    tested_by: How the claim is tested: a key of `WAYS`.
    why: Why the claim is not tested in another way; if "", the text in `WAYS` is shown.
    """

    claim: str
    section: str
    says: str
    value: str
    unit: str
    page: str
    tested_by: str
    why: str = ""

    @property
    def number(self) -> float:
        """The claimed number; NaN if the claim has none."""
        return float(self.value) if self.value else nan

    @property
    def decimals(self) -> int:
        """The number of decimal places of `value` as printed: 2 for "0.92", 0 for "2070", -1 for "1.3e2" (tens)."""
        return -int(Decimal(self.value).as_tuple().exponent)

    @property
    def formatted(self) -> str:
        """
        The claimed number as text, with as many decimal places as are printed.

        >>> [Claim("n", "", "", value, "", "", "").formatted for value in ("0.92", "2070", "-0.70")]
        ['0.92', '2,070', '-0.70']
        """
        return number(self.number, max(self.decimals, 0))

    @property
    def half_step(self) -> float:
        """
        Half a unit of the last printed digit: any number within this distance rounds to the claimed one.

        >>> [Claim("n", "", "", value, "", "", "").half_step for value in ("0.92", "2070", "1.3e2")]
        [0.005, 0.5, 5.0]
        """
        return 0.5 * 10.0**-self.decimals


COLUMNS = tuple(column.name for column in fields(Claim))


@dataclass(frozen=True)
class Article:
    """Where a source was published: title, author and publisher, date and address ("" where unknown)."""

    title: str
    by: str = ""
    publisher: str = ""
    date: str = ""
    address: str = ""

    def _repr_html_(self) -> str:
        title = f"\u201c{escape(self.title)}\u201d"
        if self.address.startswith(("https://", "http://")):
            title = f'<a href="{escape(self.address)}">{title}</a>'
        return ", ".join([title, *(escape(part) for part in (self.by, self.publisher, self.date) if part)]) + "."


def read_articles() -> dict[str, Article]:
    """Return where each source was published, by the name of its file of claims."""
    rows = pd.read_csv(published_folder() / "articles.csv", dtype="str", keep_default_na=False)
    return {row.pop("source"): Article(**row) for row in rows.to_dict("records")}


def articles_on(page: str) -> list[Article]:
    """Return the articles whose claims a page tests."""
    folder = published_folder() / "claims"
    return [
        article
        for source, article in read_articles().items()
        if page in set(pd.read_csv(folder / f"{source}.csv").page)
    ]


@dataclass(repr=False)
class Audit(Result):
    """The claims of one source, and the verdicts on each."""

    source: str
    claims: dict[str, Claim]
    rows: dict[str, Fields] = field(default_factory=dict)
    article: Article | None = None

    TITLE = "Claims of the source"

    def __post_init__(self):
        untested = {"recomputed": nan, "low": nan, "high": nan, "rerun": UNTESTED, "measured": ""}
        for name, claim in self.claims.items():
            own = CANNOT if claim.tested_by == NOT_HERE else UNTESTED
            working = claim.why or WAYS.get(claim.tested_by, "")
            self.rows.setdefault(name, untested | {"own": own, "working": working})

    def number(self, claim: str) -> float:
        """Return the number that the source claims."""
        return self._claim(claim).number

    def from_printed(self, function: Callable[..., float], *names: str, unit: str = "") -> Estimate:
        """
        Compute a value from the printed numbers of several claims, with the range that their rounding allows.

        function: A function of the numbers of the claims `names`, in this order; must be monotone in each number.
        """
        claims = [self._claim(name) for name in names]
        ends = [(one.number - one.half_step, one.number + one.half_step) for one in claims]
        reached = [function(*corner) for corner in product(*ends)]
        return Estimate(
            quantity="value from the printed numbers",
            claim="The printed numbers make {}",
            estimate=function(*(one.number for one in claims)),
            low=min(reached),
            high=max(reached),
            unit=unit,
            n=len(claims),
            basis=count(len(claims), "printed number"),
            method="every printed number at the ends of its last digit",
            assumption="Printed numbers are rounded",
            level=1.0,
        )

    def compare(
        self, claim: str, recomputed: Estimate | float, working: str = "", *, within: Estimate | None = None
    ) -> None:
        """
        Set the verdict on a claimed number by a value that was recomputed from the source's own numbers.

        "reproduced": the recomputed value rounds to the printed number. "inside the interval": the recomputed value
        does not, but some value in its interval does. "undecided": there is no recomputed value (NaN). Otherwise "not
        reproduced".

        claim: The claim's short name.
        recomputed: The recomputed value, in the unit of the claim.
        working: How the value was recomputed; if there is an Estimate, its sentence is added.
        within: An estimate whose interval is used if `recomputed` is a plain number.
        """
        claimed = self._claim(claim)
        if not isfinite(claimed.number):
            raise ParameterError(f"claim {claim} has no number; judge it instead")
        estimate = recomputed if isinstance(recomputed, Estimate) else within
        value = recomputed.estimate if isinstance(recomputed, Estimate) else float(recomputed)
        low, high = (estimate.low, estimate.high) if estimate else (nan, nan)
        step = claimed.half_step * (1 + 1e-9)
        if abs(value - claimed.number) <= step:
            verdict = REPRODUCED
        elif low - step <= claimed.number <= high + step:
            verdict = WITHIN
        else:
            verdict = NOT_REPRODUCED if isfinite(value) else UNDECIDED
        working = f"{working} {estimate.sentence if estimate else ''}".strip()
        self.rows[claim] |= {"own": verdict, "working": working, "recomputed": value, "low": low, "high": high}

    def judge(self, claim: str, holds: bool | None, working: str) -> None:
        """
        Set the verdict of the source's own numbers on a claim without a number (`compare` does so for a number).

        holds: True sets "reproduced", False "not reproduced", None "undecided".
        working: The rule and the numbers behind the verdict, as text.
        """
        self._claim(claim)
        verdict = UNDECIDED if holds is None else REPRODUCED if holds else NOT_REPRODUCED
        self.rows[claim] |= {"own": verdict, "working": working}

    def rerun(self, claim: str, verdict: str, working: str, estimate: Estimate | None = None) -> None:
        """
        Set the verdict on a claim from a re-run, and add `working` to the claim's working.

        With several calls for one claim, the claim is "reproduced" if all verdicts are, "not reproduced" if any verdict
        is, and otherwise "undecided".

        estimate: The measured number, shown next to the claimed one.
        """
        self.note(claim, f"Re-run: {working}")
        both = {check_choice("verdict", verdict, VERDICTS), self.rows[claim]["rerun"]} - {UNTESTED}
        self.rows[claim]["rerun"] = (
            verdict if len(both) == 1 else NOT_REPRODUCED if NOT_REPRODUCED in both else UNDECIDED
        )
        if estimate is not None:
            ends = f"{estimate.kind_of_interval} {estimate.formatted_interval or 'unknown'}"
            shown = self.rows[claim]["measured"], f"{estimate.formatted} ({ends})"
            self.rows[claim]["measured"] = "; ".join(filter(None, shown))

    def note(self, claim: str, text: str) -> None:
        """Add text to the working of a claim."""
        self._claim(claim)
        self.rows[claim]["working"] += f" {text}"

    def on_page(self, page: str) -> Audit:
        """Return the audit of the claims that a page tests; ParameterError if there are none."""
        check_choice(f"page of {self.source}", page, dict.fromkeys(claim.page for claim in self.claims.values()))
        return self.only(*(name for name, claim in self.claims.items() if claim.page == page))

    def only(self, *names: str) -> Audit:
        """Return the audit of the named claims, in this order; ParameterError for an unknown name."""
        claims = {name: self._claim(name) for name in names}
        return Audit(self.source, claims, {name: self.rows[name] for name in claims}, self.article)

    def verdicts(self, kind: str) -> dict[str, int]:
        """
        Count the claims by verdict; leave out verdicts that no claim has.

        kind: "own" or "rerun" (`KINDS`).
        """
        given = [self.rows[name][kind] for name in self.claims]
        return {verdict: given.count(verdict) for verdict in VERDICTS if verdict in given}

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        tested = {kind: counts for kind in KINDS if (counts := self.verdicts(kind))} or {"own": {}}
        return tuple(
            Estimate(
                *(f"claims reproduced by {words}", f"Reproduced by {words}: {{}} of {n}", counts.get(REPRODUCED, 0)),
                *(nan, nan, "claims", n, METHODS[kind], ASSUMPTION),
                basis=count(n, "claim"),
            )
            for kind, counts in tested.items()
            for words, n in [(KINDS[kind], sum(counts.values()))]
        )

    @property
    def sentence(self) -> str:
        settings = sum(claim.tested_by == SETTING for claim in self.claims.values())
        cannot = sum(row["own"] == CANNOT for row in self.rows.values())
        parts = [f"{settings} {'states a setting' if settings == 1 else 'state settings'}"] if settings else []
        parts += [f"{cannot} {CANNOT}"] if cannot else []
        counts = [
            f" By {words}: {', '.join(f'{n} {verdict}' for verdict, n in of_kind.items())}."
            for kind, words in KINDS.items()
            if (of_kind := self.verdicts(kind))
        ]
        noted = f" ({', '.join(parts)})" if parts else ""
        return f"{count(len(self.claims), 'claim')} of {self._named}{noted}.{''.join(counts)}"

    @property
    def headline(self) -> str:
        parts = []
        for kind, words in KINDS.items():
            if of := self.verdicts(kind):
                holds = count(of.get(REPRODUCED, 0) + of.get(WITHIN, 0), "holds", "hold")
                parts.append(f"{holds} by {words} and {count(of.get(NOT_REPRODUCED, 0), 'fails', 'fail')}")
        return f"Of {count(len(self.claims), 'claim')} of {self._named}, {'; '.join(parts)}." if parts else ""

    def finding(self, name: str, page: str = "") -> Finding:
        """Make a finding that counts as an answer of its page, so that a reader sees which claims it bears on."""
        return replace(super().finding(name, page), answer=True)

    def table(self) -> pd.DataFrame:
        rows = [
            {"claim": name, "section": claim.section, "says": claim.says, "claimed": claim.number}
            | {"unit": claim.unit, "tested_by": claim.tested_by}
            | self.rows[name]
            for name, claim in self.claims.items()
        ]
        columns = ["claim", "section", "says", "claimed", "unit", "tested_by", "recomputed", "low", "high"]
        return pd.DataFrame(rows, columns=[*columns, *KINDS, "measured", "working"])

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for row in self.table().itertuples(index=False):
            cells = {"Section": row.section, "The source says": row.says, "Claimed": self._claimed(row.claim)}
            cells["Recomputed"] = self._recomputed(row.claim, row.recomputed, row.unit)
            cells |= {"By its own numbers": "" if row.own == UNTESTED else row.own, "Measured": row.measured}
            cells["By the re-run"] = "" if row.rerun == UNTESTED and row.tested_by not in RERUN else row.rerun
            rows.append(cells | {"Working": row.working})
        return pd.DataFrame(rows)

    def _repr_html_(self) -> str:
        source = f"<p>Source: {self.article._repr_html_()}</p>" if self.article else ""  # pyright: ignore[reportPrivateUsage]
        return source + super()._repr_html_()

    def ledger_rows(self) -> pd.DataFrame:
        """
        Return `formatted_table` with the further columns source, claim, page and `kind`: how the claim was tested.
        """
        about = {name: (claim.page, self._kind(claim, self.rows[name])) for name, claim in self.claims.items()}
        pages, kinds = zip(*about.values(), strict=True)
        return self.formatted_table().assign(source=self.source, claim=list(about), page=pages, kind=kinds)

    def save(self, folder: Path) -> None:
        """Write `ledger_rows` to `claims.csv` among a page's findings, for the ledger of all claims."""
        replace_file(Path(folder) / "claims.csv", self.ledger_rows().to_csv(index=False).encode())

    @staticmethod
    def _kind(claim: Claim, row: Fields) -> str:
        if row["rerun"] in VERDICTS:
            return MEASURED
        if row["own"] in VERDICTS:
            return ARITHMETIC
        return A_SETTING if claim.tested_by == SETTING else CANNOT if row["own"] == CANNOT else UNTESTED

    @property
    def _named(self) -> str:
        return f"“{self.article.title}”" if self.article else "this source"

    def _claimed(self, name: str) -> str:
        claim = self.claims[name]
        return f"{claim.formatted} {claim.unit}".strip() if claim.value else ""

    def _recomputed(self, name: str, value: float, unit: str) -> str:
        """Format the recomputed value with one digit more than the claim, to show whether it rounds to the claim."""
        if not isfinite(value):
            return ""
        places = max(self.claims[name].decimals + 1, 0)
        return f"{number(value, 0 if value == round(value) else places)} {unit}".strip()

    def _claim(self, name: str) -> Claim:
        return self.claims[check_choice(f"claim of {self.source}", name, self.claims)]


def above(estimate: Estimate, bound: float) -> bool | None:
    """Return whether the interval of an estimate lies above `bound`; None if the interval contains it or is missing."""
    if estimate.low > bound:
        return True
    return False if estimate.high < bound else None


def read_claims(source: str, folder: Path | str | None = None) -> Audit:
    """
    Read the claims of a source, all of them marked untested.

    source: The name of its file in `folder`, without the ending ".csv".
    folder: Default: `data/published/claims`.

    Raises ParameterError: there is no such file.
    Raises RawDataError: the file lacks a column, repeats a claim, has a value that is not a number, or has a
    `tested_by` that is not in `WAYS`.
    """
    folder = Path(folder) if folder is not None else published_folder() / "claims"
    check_choice("source", source, sorted(path.stem for path in folder.glob("*.csv")))
    path = folder / f"{source}.csv"
    frame = pd.read_csv(path, dtype="str", keep_default_na=False)
    if tuple(frame.columns) != COLUMNS:
        raise RawDataError(path, 1, ", ".join(frame.columns), f"the columns {', '.join(COLUMNS)}")
    claims = {}
    for line, row in enumerate(frame.itertuples(index=False), start=2):
        claim = Claim(*row)
        try:
            readable = not claim.value or isfinite(claim.number)
        except ValueError:
            readable = False
        if not readable or claim.claim in claims or not claim.claim:
            raise RawDataError(path, line, ", ".join(row), "a new claim with a number or without a value")
        if claim.tested_by not in WAYS:
            raise RawDataError(path, line, claim.tested_by, f"one of {', '.join(WAYS)}")
        claims[claim.claim] = claim
    return Audit(source, claims, article=read_articles().get(source))
