"""Citations of the files that imported tables came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

import pandas as pd

from wanbench.checks import check_table


@dataclass(frozen=True, repr=False)
class Citations:
    """One sentence per file: title, version, licence, address, size and SHA-256."""

    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.sentences) or "No file came from elsewhere."

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.sentences)
        return f'<ul class="sources">{items}</ul>' if items else f"<p>{escape(str(self))}</p>"


def cite(tables: Mapping[str, pd.DataFrame]) -> Citations:
    """The files in table `sources`, without their paths on this machine; ParameterError without that table."""
    sources = check_table("sources", tables)
    return Citations(tuple(_sentence(row) for row in sources.itertuples(index=False)))


def _sentence(row) -> str:
    parts = [
        row.title,
        row.version,
        f"licence {row.licence}" if isinstance(row.licence, str) else "licence not known",
        row.address if isinstance(row.address, str) else "address not known",
        f"{row.bytes:,} bytes, SHA-256 {row.sha256}",
    ]
    return "; ".join(part for part in parts if isinstance(part, str)) + "."
