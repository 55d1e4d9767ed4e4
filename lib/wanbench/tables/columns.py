"""Describe tables and columns, and check values against a column."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from wanbench.errors import ParameterError
from wanbench.formatting import count

KINDS = {
    # type: (pandas dtype, pandas dtype with nulls, Arrow type, what a cell may hold)
    "text": ("str", "str", pa.string(), "text"),
    "count": ("int64", "Int64", pa.int64(), "whole numbers"),
    "number": ("float64", "float64", pa.float64(), "finite numbers"),
    "flag": ("bool", "boolean", pa.bool_(), "True or False"),
    "time": ("datetime64[us, UTC]", "datetime64[us, UTC]", pa.timestamp("us", "UTC"), "times with a time zone"),
}
LARGEST_EXACT_FLOAT = 2**53
"""Larger floats cannot represent every whole number, so they are not accepted as counts."""

_NUMBERS = ("floating", "integer", "mixed-integer-float", "empty")
ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)", re.ASCII)


@dataclass(frozen=True)
class Column:
    """
    One column of a table.

    `type` is a key of `KINDS`, and `unit` may be "". `minimum` and `maximum` limit numbers (None: no limit). If
    `allowed` is not empty, only its texts may be values. Only a `nullable` column may hold nulls.
    """

    name: str
    type: str
    unit: str
    meaning: str
    nullable: bool = False
    minimum: float | None = 0
    maximum: float | None = None
    allowed: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: dict[str, str]) -> Column:
        """Return the column that a row of `columns.csv` declares."""
        return cls(
            row["column"],
            row["type"].removesuffix("?"),
            row["unit"],
            row["meaning"],
            nullable=row["type"].endswith("?"),
            minimum=None if row["minimum"] == "none" else float(row["minimum"] or 0),
            maximum=float(row["maximum"]) if row["maximum"] else None,
            allowed=tuple(filter(None, row["allowed"].split("|"))),
        )

    @property
    def dtype(self) -> str:
        """Return the pandas dtype of the column in a valid table."""
        return KINDS[self.type][1 if self.nullable else 0]

    @property
    def allows(self) -> str:
        """Describe the allowed values in words."""
        allowed = KINDS[self.type][3] if not self.allowed else " or ".join(self.allowed)
        if self.type in ("count", "number"):
            allowed += "" if self.minimum is None else f" from {self.minimum:g}"
            allowed += "" if self.maximum is None else f" to {self.maximum:g}"
        return allowed + (" or null" if self.nullable else "")

    def arrow_field(self) -> pa.Field:
        """Return the Arrow field; its metadata holds `unit` and `meaning`."""
        metadata = {"unit": self.unit, "meaning": self.meaning}
        return pa.field(self.name, KINDS[self.type][2], nullable=self.nullable, metadata=metadata)

    def check(self, values: pd.Series, table: str) -> pd.Series:
        """Convert values without loss to the column's dtype; a ParameterError names the first invalid row."""
        if not len(values):
            return pd.Series([], dtype=self.dtype, name=self.name)
        # With thousands of short columns every step takes time, so steps that would change nothing are skipped.
        index = values.index
        if not (isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None):
            values = values.reset_index(drop=True)
        null = np.asarray(pd.isna(values.array))
        if not self.nullable:
            self._refuse(null, values, table)
        typed, wrong = CONVERTERS[self.type](values, null)
        if wrong is not None:
            self._refuse(np.asarray(wrong, dtype=bool) & ~null, values, table)
        if self.type in ("count", "number"):
            numbers = typed.to_numpy(dtype="float64", na_value=np.nan)
            if self.minimum is not None:
                self._refuse(numbers < self.minimum, values, table)
            if self.maximum is not None:
                self._refuse(numbers > self.maximum, values, table)
        if self.allowed:
            self._refuse(~null & ~typed.isin(self.allowed).to_numpy(), values, table)
        if typed.dtype != self.dtype:
            typed = typed.astype(self.dtype)
        return typed if typed.name == self.name else typed.rename(self.name)

    def _refuse(self, wrong: pd.Series | np.ndarray, values: pd.Series, table: str) -> None:
        rows = np.flatnonzero(wrong)
        if len(rows):
            value = values.iloc[rows[0]]
            value = repr(value) if isinstance(value, str) else str(value)
            value = value if len(value) <= 80 else value[:77] + "..."
            at = f"table {table}, column {self.name}, row {rows[0]} (counted from 0; {count(len(rows), 'invalid row')})"
            raise ParameterError(f"{at} is {value}; allowed: {self.allows}.")


@dataclass(frozen=True)
class Table:
    """A table's name, the meaning of one row, and its columns in order."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def arrow_schema(self) -> pa.Schema:
        """Return the Arrow schema; its fields' metadata hold unit and meaning."""
        fields = [column.arrow_field() for column in self.columns]
        return pa.schema(fields, metadata={"table": self.name, "row": self.row})


Converted = tuple[pd.Series, pd.Series | np.ndarray | None]
"""Typed values, and a mask of wrong values (None if no value is wrong)."""


def _of_objects(
    values: pd.Series, null: np.ndarray, kinds: tuple[str, ...], fits: Callable[[object], bool], dtype: str
) -> Converted:
    """Convert objects at once if pandas infers one of these kinds; otherwise one by one, to find wrong values."""
    if pd.api.types.infer_dtype(values) in kinds:
        try:
            return (values.where(~null, None) if null.any() else values).astype(dtype), None
        except (OverflowError, UnicodeEncodeError):  # a number or a lone surrogate that the type cannot hold
            pass
    wrong = ~values.map(fits).astype(bool)
    return values.where(~(null | wrong), None).astype(dtype), wrong


def _convert_text(values: pd.Series, null: np.ndarray) -> Converted:
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(object)
    if pd.api.types.is_string_dtype(values.dtype) and values.dtype != object:
        return values.astype("str"), None
    return _of_objects(values, null, ("string", "empty"), _is_plain_text, "str")


def _is_plain_text(value: object) -> bool:
    """Tell whether a value is text that UTF-8 can encode; a lone surrogate cannot be encoded."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _convert_count(values: pd.Series, null: np.ndarray) -> Converted:
    if values.dtype == object:
        return _of_objects(values, null, ("integer", "empty"), _is_whole_number, "Int64")
    if pd.api.types.is_float_dtype(values.dtype):
        plain = values.astype("float64")
        wrong = ~((plain % 1 == 0) & (plain.abs() <= LARGEST_EXACT_FLOAT))
        return plain.where(~wrong).astype("Int64"), wrong
    if pd.api.types.is_unsigned_integer_dtype(values.dtype):
        wrong = (values > np.iinfo("int64").max).fillna(False).astype(bool)
        return values.where(~wrong, 0).astype("Int64"), wrong
    return values, None if pd.api.types.is_integer_dtype(values.dtype) else ~null


def _is_whole_number(value: object) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, (int, np.integer)):
        return bool(-(2**63) <= value < 2**63)
    return isinstance(value, (float, np.floating)) and bool(value % 1 == 0 and abs(value) <= LARGEST_EXACT_FLOAT)


def _convert_number(values: pd.Series, null: np.ndarray) -> Converted:
    wrong = None
    if values.dtype == object:
        values, wrong = _of_objects(values, null, _NUMBERS, _is_number, "float64")
    elif not pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_bool_dtype(values.dtype):
        return values, ~null
    plain = values.astype("float64")
    infinite = np.isinf(plain.to_numpy())
    return plain, infinite if wrong is None else wrong | infinite


def _is_number(value: object) -> bool:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return bool(np.isfinite(float(value)))
    except OverflowError:
        return False


def _convert_flag(values: pd.Series, null: np.ndarray) -> Converted:
    if pd.api.types.is_bool_dtype(values.dtype):
        return values.astype("boolean"), None
    return _of_objects(values, null, ("boolean", "empty"), lambda value: isinstance(value, (bool, np.bool_)), "boolean")


def _convert_time(values: pd.Series, null: np.ndarray) -> Converted:
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        return values.dt.tz_convert("UTC"), None
    typed = pd.Series(pd.NaT, index=values.index, dtype="datetime64[us, UTC]")
    if pd.api.types.is_datetime64_dtype(values.dtype) or pd.api.types.is_numeric_dtype(values.dtype):
        return typed, ~null
    stamps = values.map(_as_time, na_action="ignore")
    return pd.to_datetime(stamps.astype(object), utc=True).astype(typed.dtype), stamps.isna()


def _as_time(value: object) -> pd.Timestamp | None:
    try:
        if isinstance(value, str):
            return pd.Timestamp(value).tz_convert("UTC") if ISO_TIME.fullmatch(value) else None
        stamp = pd.Timestamp(value)
        return stamp.tz_convert("UTC") if stamp.tzinfo is not None else None
    except (ValueError, TypeError, OverflowError):
        return None


CONVERTERS = {
    "text": _convert_text,
    "count": _convert_count,
    "number": _convert_number,
    "flag": _convert_flag,
    "time": _convert_time,
}
"""Functions by type: each converts values, given a mask of nulls."""
