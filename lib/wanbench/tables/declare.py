"""What a table is, and how one is declared."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from .columns import Column


@dataclass(frozen=True)
class Table:
    """A table's name, what one row of it is, and its columns in order."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema, with unit and meaning of each field in its metadata."""
        fields = [column.arrow_field() for column in self.columns]
        return pa.schema(fields, metadata={"table": self.name, "row": self.row})


TABLES: dict[str, Table] = {}


def column(name: str, type: str, unit: str, meaning: str, **bounds) -> Column:
    """A column; a type that ends in "?" may be null."""
    return Column(name, type.removesuffix("?"), unit, meaning, nullable=type.endswith("?"), **bounds)


def declare(name: str, row: str, *columns: Column) -> None:
    """Declare a table: its name, what one row of it is, its columns in order."""
    TABLES[name] = Table(name, row, columns)
