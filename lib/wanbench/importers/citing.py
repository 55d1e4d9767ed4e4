"""Where imported tables came from, in words. Imports nothing of wanbench but `errors`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

import pandas as pd

from ..errors import ParameterError


@dataclass(frozen=True)
class Citations:
    """One sentence per file: title, version, licence, address, size and SHA-256."""

    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.sentences) or "No file came from elsewhere."

    __repr__ = __str__

    def _repr_html_(self) -> str:
        listed = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.sentences)
        return f'<ul class="sources">{listed}</ul>' if listed else f"<p>{escape(str(self))}</p>"


def cite(tables: Mapping[str, pd.DataFrame]) -> Citations:
    """The files of table `sources`; ParameterError without that table. The path on this machine is not told."""
    if "sources" not in tables:
        raise ParameterError(f"no table sources; given were {', '.join(tables) or 'none'}")
    return Citations(tuple(_sentence(row) for row in tables["sources"].itertuples(index=False)))


def _sentence(row) -> str:
    known = [
        row.title,
        row.version,
        f"licence {row.licence}" if isinstance(row.licence, str) else "licence not known",
        row.address if isinstance(row.address, str) else "address not known",
        f"{row.bytes:,} bytes, SHA-256 {row.sha256}",
    ]
    return "; ".join(part for part in known if isinstance(part, str)) + "."
