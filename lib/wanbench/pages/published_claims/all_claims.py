"""Collect the claims that pages have tested, with the verdict of each, into one table and one figure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from html import escape
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_choice
from wanbench.figures import theme
from wanbench.folders import findings_folder
from wanbench.formatting import count
from wanbench.methods.claims import ledger
from wanbench.methods.claims.ledger import Article, read_articles, read_claims
from wanbench.methods.result import RowsResult, table_html

COLOURS = {
    ledger.REPRODUCED: theme.WITHIN,
    ledger.WITHIN: "#62B9EA",
    ledger.NOT_REPRODUCED: theme.OUTSIDE,
    ledger.UNDECIDED: "#D9A300",
}
UNTESTED_COLOUR = "#C5CCD3"
OWN, RERUN = "By its own numbers", "By the re-run"


@dataclass(frozen=True, repr=False)
class AllClaims(RowsResult):
    """Every claim of every source, one row each, with its kind and verdicts; `articles` describes the sources."""

    articles: dict[str, Article]

    TITLE = "All claims"

    def counts(self, column: str) -> dict[str, int]:
        """Count the claims with each verdict in one column of `rows`, `OWN` (arithmetic) or `RERUN` (measured)."""
        given = self.rows[column].value_counts()
        return {verdict: int(given.get(verdict, 0)) for verdict in ledger.VERDICTS}

    @property
    def sentence(self) -> str:
        """Say how many claims hold, fail and stay undecided, by the sources' own numbers and when measured again."""
        kinds = self.rows.kind.value_counts()
        own, again = self.counts(OWN), self.counts(RERUN)
        holds, holds_again = (by[ledger.REPRODUCED] + by[ledger.WITHIN] for by in (own, again))
        both = (self.rows[OWN].isin(ledger.VERDICTS) & self.rows[RERUN].isin(ledger.VERDICTS)).sum()
        left = [f"{kinds.get(kind, 0)} {words}" for kind, words in LEFT.items() if kinds.get(kind, 0)]
        return (
            f"Of {count(len(self.rows), 'claim')} in {count(self.rows.source.nunique(), 'published source')}, "
            f"{sum(own.values())} can be recomputed from the source's own numbers. Of these, {holds} hold, "
            f"{own[ledger.NOT_REPRODUCED]} do not, and {own[ledger.UNDECIDED]} are undecided. "
            f"{sum(again.values())} claims were measured again, including {both} of the recomputed ones. Of these "
            f"{sum(again.values())}, {holds_again} hold, {again[ledger.NOT_REPRODUCED]} do not, and "
            f"{again[ledger.UNDECIDED]} are undecided. Of the other claims, {', '.join(left)}."
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        """Say to which conditions measured verdicts apply, and on which page too many claims may hold."""
        return (
            "All re-runs used emulated links and two processors. Verdicts apply to those conditions, not to the "
            "authors' systems. Page 15 chose its settings after pilot runs, so too many of its claims may hold",
        )

    def formatted_table(self) -> pd.DataFrame:
        """Return the rows that the page shows, with the names of articles instead of files."""
        names = {source: article.title for source, article in self.articles.items()}
        rows = self.rows.assign(source=self.rows.source.map(names))
        return rows.drop(columns="claim").rename(columns={"source": "Article", "kind": "Kind", "page": "Page"})

    def _repr_html_(self) -> str:
        listed = "".join(f"<li>{article._repr_html_()}</li>" for article in self.articles.values())  # pyright: ignore[reportPrivateUsage]
        table = table_html(self.formatted_table(), self.TITLE).replace(
            'class="estimates"', 'class="estimates ledger"', 1
        )
        return f"<p>{escape(self.sentence)}</p><ol>{listed}</ol>{table}"

    def figure(self) -> go.Figure:
        """Draw how many claims of each source have each verdict: the measured verdict if there is one."""
        final = self.rows[RERUN].where(self.rows[RERUN].isin(ledger.VERDICTS), self.rows[OWN])
        final = final.where(final.isin(ledger.VERDICTS), "not tested")
        names = {source: article.publisher or article.title for source, article in self.articles.items()}
        table = pd.crosstab(self.rows.source.map(names), final).reindex(list(names.values()), fill_value=0)
        figure = go.Figure()
        for verdict, shade in (COLOURS | {"not tested": UNTESTED_COLOUR}).items():
            if verdict in table:
                figure.add_bar(y=table.index, x=table[verdict], orientation="h", name=verdict, marker_color=shade)
        figure.update_layout(barmode="stack", legend={"orientation": "h", "y": -0.2})
        figure.update_xaxes(title="claims")
        figure.update_yaxes(autorange="reversed")
        failed = int(table.get(ledger.NOT_REPRODUCED, pd.Series(0)).sum())
        return theme.finish(
            figure,
            name="verdicts-by-source",
            title=f"{failed} of {final.isin(ledger.VERDICTS).sum()} published claims with a verdict do not hold",
            subtitle="Claims by publisher, with the verdict of a re-run or, without a re-run, that of the "
            "article's own numbers.",
            alt=f"Bars of claims by publisher and verdict. {self.sentence}",
            caption="Not tested: settings, and claims that need hardware or services that are not available here.",
            table=table.reset_index(names="publisher"),
        )


LEFT = {
    ledger.A_SETTING: "state the authors' settings",
    ledger.CANNOT: "need what is not available here",
    ledger.UNTESTED: "were not tested",
}
COLUMNS = ["source", "claim", "Section", "The source says", "Claimed", "Recomputed"]
COLUMNS += [OWN, "Measured", RERUN, "kind", "page", "Working"]


def all_claims(sources: Collection[str] = (), folder: Path | str | None = None) -> AllClaims:
    """
    Collect the claims of every source from the findings of the pages that tested them.

    A claim whose page has not been made is listed as not tested.

    sources: Names of sources, the keys of `read_articles`; default: all.
    folder: The folder of findings, with one folder per page; default: `data/findings`.
    """
    folder = Path(folder) if folder is not None else findings_folder()
    articles = read_articles()
    for source in sources:
        check_choice("source", source, articles)
    articles = {source: article for source, article in articles.items() if not sources or source in sources}
    text = {"dtype": "str", "keep_default_na": False}
    tested = [pd.read_csv(path, **text) for path in sorted(folder.glob("[!.]*/claims.csv"))]
    known = {(row.source, row.claim) for rows in tested for row in rows.itertuples()}
    for source in articles:
        audit = read_claims(source)
        missing = [name for name in audit.claims if (source, name) not in known]
        if missing:
            rows = audit.only(*missing).ledger_rows()
            tested.append(
                rows.assign(Working="The page that tests this claim has not been made; run 'wanbench report'.")
            )
    rows = pd.concat(tested, ignore_index=True).reindex(columns=COLUMNS).fillna("")
    rows = rows[rows.source.isin(articles)]
    order = {source: place for place, source in enumerate(articles)}
    return AllClaims(
        rows.sort_values("source", key=lambda names: names.map(order), kind="stable", ignore_index=True), articles
    )
