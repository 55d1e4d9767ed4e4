"""
Check parameters and tables, and raise ParameterError if they are invalid.

The error says the name, what was given and what is allowed. A check of a single value returns the value.
"""

import ast
import re
import sys
from collections.abc import Collection, Hashable, Iterable, Mapping
from math import inf
from numbers import Integral, Real
from typing import Any, TypeVar, cast

from .errors import LATER as LATER
from .errors import ParameterError

T = TypeVar("T")  # the type of the value, which a check returns
FEWEST_RESAMPLES = 40  # with fewer, the ends of a 95 % interval are the smallest and the largest resample


def check_number(
    name: str,
    value: T,
    low: float = -inf,
    high: float = inf,
    *,
    whole: bool = False,
    optional: bool = False,
    above: bool = False,
) -> T:
    """
    Check that a value is a number from `low` to `high`, not a bool and not NaN; return a plain int or float.

    With `above`, `low` itself is not allowed; with `whole`, only whole numbers are allowed; with `optional`, None is
    allowed, too.

    >>> check_number("count", 3, 1, 10, whole=True)
    3
    >>> check_number("share", 0, 0, 1, above=True)
    Traceback (most recent call last):
        ...
    wanbench.errors.ParameterError: share is 0; allowed: a number above 0 and up to 1.
    """
    if value is None and optional:
        return value
    kind, plain = Integral if whole else Real, cast("Any", value)
    fits = isinstance(value, kind) and not isinstance(value, bool) and low <= plain <= high
    if not fits or (above and value == low):
        wanted = "a whole number" if whole else "a number"
        raise refusal(name, value, f"{wanted}{_range(low, high, above)}{' or None' if optional else ''}")
    if isinstance(value, Integral):
        return cast("T", int(value))
    return value if isinstance(value, float) else cast("T", float(plain))


def check_choice(name: str, value: T, allowed: Iterable[object], *, optional: bool = False) -> T:
    """
    Check that a value is one of `allowed`, or None if that is `optional`.

    >>> check_choice("value", "loss", ("throughput_bps", "rtt_ms"))
    Traceback (most recent call last):
        ...
    wanbench.errors.ParameterError: value is 'loss'; allowed: 'throughput_bps', 'rtt_ms'.
    """
    allowed = list(allowed)
    if (value is None and optional) or (isinstance(value, Hashable) and value in allowed):
        return value
    raise refusal(name, value, ", ".join(map(repr, allowed)) + (" or None" if optional else ""))


def check_name(name: str, value: object) -> str:
    """Check that a value is one line of text, not empty, and without spaces around it."""
    if not isinstance(value, str) or not value or not value.isprintable() or value != value.strip():
        raise refusal(name, value, "one line of text, without spaces around it")
    return value


def check_flag(name: str, value: T, *, optional: bool = False) -> T:
    """
    Check that a value is True or False (an equal value such as 1 is not allowed), or None if that is `optional`.

    >>> check_flag("drain", 1)
    Traceback (most recent call last):
        ...
    wanbench.errors.ParameterError: drain is 1; allowed: True or False.
    """
    if isinstance(value, bool) or (value is None and optional):
        return value
    raise refusal(name, value, "True, False or None" if optional else "True or False")


def check_fields(
    settings: object, *bounds: tuple[str, float, float], whole: bool = False, optional: Collection[str] = ()
) -> None:
    """
    Check fields of `settings` that hold numbers. Each of `bounds` is a field's name, its minimum and its maximum.

    Only plain int and float are allowed, because settings are stored as JSON; with `whole`, only whole numbers. Fields
    named in `optional` may be None.
    """
    for name, low, high in bounds:
        value, label = getattr(settings, name), f"{type(settings).__name__} {name}"
        check_number(label, value, low, high, whole=whole, optional=name in optional)
        if not isinstance(value, int | float | None):
            raise refusal(label, value, f"a plain Python int{'' if whole else ' or float'}")


def check_level(level: float) -> float:
    """Check that a confidence level is above 0 and below 1; return it as a float."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
        raise refusal("level", level, "a confidence level between 0 and 1, such as 0.95")
    return float(level)


def check_resamples(resamples: int, seed: int) -> None:
    """Check the number of resamples of a bootstrap (at least `FEWEST_RESAMPLES`), and its random seed."""
    check_number("resamples", resamples, FEWEST_RESAMPLES, whole=True)
    check_number("seed", seed, 0, whole=True)


def check_kind(name: str, value: object, kind: type[T]) -> T:
    """Check that a value is an instance of `kind`."""
    if not isinstance(value, kind):
        raise refusal(name, type(value).__name__, kind.__name__)
    return value


def check_columns(table: str, frame: Any, names: Collection[str]) -> Any:
    """
    Check that a table is a DataFrame with these columns.

    >>> import pandas as pd
    >>> check_columns("links", pd.DataFrame({"a": [1]}), ["a", "b"])
    Traceback (most recent call last):
        ...
    wanbench.errors.ParameterError: table links lacks column b; it has a.
    """
    if not hasattr(frame, "columns"):
        raise refusal(f"table {table}", type(frame).__name__, "a DataFrame")
    missing = [str(name) for name in names if not isinstance(name, Hashable) or name not in frame.columns]
    if missing:
        have = ", ".join(map(str, frame.columns)) or "none"
        plural = "s" if len(missing) > 1 else ""
        raise ParameterError(f"table {table} lacks column{plural} {', '.join(missing)}; it has {have}.")
    return frame


def check_table(name: str, tables: Mapping[str, Any]) -> Any:
    """Return the table `name` from a mapping of tables by name."""
    if name not in check_kind("tables", tables, Mapping):
        raise ParameterError(f"table {name} is missing; there are {', '.join(map(str, tables)) or 'none'}.")
    return tables[name]


# The user in an address, and what follows a word such as password in a mapping or in a setting.
SECRETS = re.compile(r"(?i)((?<=://)(?=[^/\s@]+@)|(?:passw|secret|token|jaas)[\w.]*(?:': |=))[^@,}\]]+")


def refusal(name: str, value: Any, allowed: str) -> ParameterError:
    """Return the ParameterError for an invalid value; its message shows at most 200 characters of it, no passwords."""
    given = SECRETS.sub(r"\1…", repr(value.item() if getattr(value, "ndim", None) == 0 else value))  # numpy's: plain
    return ParameterError(f"{name} is {given if len(given) <= 200 else given[:197] + '...'}; allowed: {allowed}.")


def _range(low: float, high: float, above: bool) -> str:
    if low == -inf and high == inf:
        return ""
    lower = f" above {low:.15g}" if above else f" from {low:.15g}"
    if high == inf:
        return lower if above else f" of at least {low:.15g}"
    if low == -inf:
        return f" up to {high:.15g}"
    return f"{lower} and up to {high:.15g}" if above else f"{lower} to {high:.15g}"


def check_injected() -> None:
    """
    Raise ParameterError if papermill was given a parameter that the notebook in this kernel does not declare.

    Papermill itself only warns. It inserts the given values as a cell, which begins with "# Parameters", after the cell
    in which the notebook declares its parameters. Nothing is checked unless the declaring cell is the first code cell
    and holds only assignments.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    cells = shell.user_ns.get("In", ())[1:3] if shell else ()
    if len(cells) < 2 or not cells[1].startswith("# Parameters\n"):
        return
    known, given = (ast.parse(cell).body for cell in cells)
    if all(isinstance(one, ast.Assign | ast.AnnAssign) for one in known):
        names = [ast.unparse(getattr(one, "target", None) or one.targets[0]) for one in known]
        for name in (ast.unparse(one.targets[0]) for one in given):
            if name not in names:
                raise ParameterError(f"unknown parameter {name!r}; this notebook has {', '.join(names) or 'none'}.")
