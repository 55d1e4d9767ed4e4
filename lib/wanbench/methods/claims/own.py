"""
Audit an article of your own: its claims in YAML, with formulas over the numbers that it prints.

`docs/own-claims.md` has an example and all keys. The library pint checks units. A verdict allows for the rounding of
every printed number, as for the articles that this project audits.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import pint

from wanbench.errors import ParameterError
from wanbench.methods.claims.ledger import NOT_HERE, SETTING, Article, Audit, Claim
from wanbench.plain_yaml import read_yaml

PRINTED = re.compile(r"([-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\d,.-])\s*(.*)")
WORDS = {"x": 1, "times": 1, "thousand": 1e3, "million": 1e6, "billion": 1e9}  # words for numbers, as articles use them
KEYS = {"article": Article.__dataclass_fields__, "claim": ("says", "section", "value", "formula", "name", "is", "why")}
COMPARISONS = ("equal", "at least", "at most")
FUNCTIONS = {"min": min, "max": max}
NODES = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, ast.Constant, ast.Call)
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub)
MOST_NAMES = 10  # in one formula, because every combination of their rounding is computed
LARGEST_POWER = 4  # enough for areas and volumes; nested powers could take for ever


def check_claims(path: Path | str) -> Audit:
    """
    Read claims of your own and test each that has a formula.

    Raises ParameterError: the file is not YAML; a key is missing or unknown; a value is not "<number> <unit>"; a
    formula is not arithmetic or uses an unknown name; or a formula's result and its claim differ in dimension.
    """
    content = _mapping(read_yaml(path, "file of claims"), f"{path}", ("article", "units", "inputs", "claims"))
    article = Article(
        **{k: str(v) for k, v in _mapping(content.get("article"), f"{path}: article", KEYS["article"]).items()}
    )
    units = pint.UnitRegistry(on_redefinition="ignore")
    units.define("bit = [information]")  # pint treats bits as plain numbers, and would add them to anything
    units.define("USD = [currency]")
    for word, number in WORDS.items():
        units.define(f"{word} = {number}")
    for word in content.get("units", ()):
        units.define(f"{word} = [{word}]")
    rows = _inputs(content.get("inputs", {}), f"{path}: inputs") + _claims(content.get("claims"), f"{path}: claims")
    names = [row.claim.claim for row in rows]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ParameterError(f"{path}: {twice!r} names two numbers; allowed: a name each.")
    quantities = {row.claim.claim: row.quantity(units) for row in rows if row.claim.value}
    audit = Audit(Path(path).stem, {row.claim.claim: row.claim for row in rows}, article=article)
    for row in rows:
        if row.formula:
            row.test(audit, quantities)
    return audit.only(*(row.claim.claim for row in rows if row.claim.tested_by != SETTING))


@dataclass(frozen=True)
class _Row:
    claim: Claim
    formula: str
    comparison: str
    place: str

    def quantity(self, units: pint.UnitRegistry[Any]):
        try:
            return units.Quantity(self.claim.number, self.claim.unit)
        except (pint.PintError, ValueError, TypeError, AttributeError) as error:
            message = f"{self.place}: the unit {self.claim.unit!r} is not known: {error}"
            raise ParameterError(
                f"{message}; list it under units if it counts something (bytes: B, kB, KiB)."
            ) from None

    def test(self, audit: Audit, quantities: Mapping[str, Any]) -> None:
        names, computed = _formula(self.formula, quantities, self.place)
        of = {name: quantities[name].units for name in names}
        wanted = quantities[self.claim.claim].units

        def function(*values: float) -> float:
            result = computed({name: value * unit for (name, unit), value in zip(of.items(), values, strict=True)})
            try:
                return float(
                    (result if isinstance(result, pint.Quantity) else result * wanted / wanted).to(wanted).magnitude
                )
            except pint.PintError as error:
                raise ParameterError(f"{self.place}: {self.formula!r}: {error}.") from None

        if len(names) > MOST_NAMES:
            raise ParameterError(f"{self.place}: {len(names)} names in one formula; allowed: {MOST_NAMES}.")
        found = audit.from_printed(function, *names, unit=self.claim.unit)
        working = f"{self.formula}."
        if self.comparison == "equal":
            audit.compare(self.claim.claim, found, working)
            return
        sign = 1 if self.comparison == "at least" else -1
        low, high = sorted((sign * found.low, sign * found.high))
        least = sign * self.claim.number - self.claim.half_step
        holds = True if low >= least else False if high < least else None
        audit.judge(self.claim.claim, holds, f"{working} {found.sentence}")


def _formula(text: str, quantities: Mapping[str, Any], place: str):
    """Return the names in a formula, and a function that computes it from their quantities."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ParameterError(f"{place}: {text!r} is not a formula, such as 'window / rtt_avg'.") from None
    names = []
    for node in ast.walk(tree):
        power = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) else None
        exponent = power.value if isinstance(power, ast.Constant) else None
        large = power and not (isinstance(exponent, int | float) and abs(exponent) <= LARGEST_POWER)
        called = isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS)
        strange = isinstance(node, ast.Constant) and not isinstance(node.value, int | float)
        if not isinstance(node, NODES + OPERATORS) or large or called or strange:
            allowed = f"names, numbers, + - * /, ** (powers up to {LARGEST_POWER}), {', '.join(FUNCTIONS)}"
            raise ParameterError(f"{place}: formula {text!r} has more than arithmetic; allowed: {allowed}.")
        if isinstance(node, ast.Name) and node.id not in FUNCTIONS:
            if node.id not in quantities:
                raise ParameterError(f"{place}: {text!r} uses {node.id!r}; there are: {', '.join(quantities)}.")
            names.append(node.id)
    code = compile(tree, place, "eval")

    def computed(values: Mapping[str, Any]):
        try:
            # The tree holds arithmetic alone.
            return eval(code, {"__builtins__": {}} | FUNCTIONS, dict(values))  # nosec B307
        except (pint.PintError, ArithmeticError, TypeError, ValueError) as error:
            raise ParameterError(f"{place}: {text!r}: {error}.") from None

    return list(dict.fromkeys(names)), computed


def _mapping(value: object, place: str, allowed: Collection[str]) -> dict[str, Any]:
    strange = [key for key in value if key not in allowed] if isinstance(value, dict) else [value]
    if not isinstance(value, dict) or strange:
        given = strange[0]
        hint = "" if re.fullmatch("[A-Za-z]*", str(given)) else " Within braces, quote a value that has commas."
        wrong = "it is missing" if given is None else f"{given!r} is not allowed"
        raise ParameterError(f"{place}: {wrong}; allowed are the keys {', '.join(allowed)}.{hint}")
    return value


def _inputs(inputs: object, place: str) -> list[_Row]:
    if not isinstance(inputs, dict):
        raise ParameterError(f"{place}: {inputs!r} is not a mapping of names to numbers with units.")
    if strange := next((name for name in map(str, inputs) if not name.isidentifier()), None):
        raise ParameterError(f"{place}: {strange!r} is not a name; allowed: letters, digits and _, a letter first.")
    return [
        _row({"says": name, "value": value}, f"{place}: {name}", str(name), SETTING) for name, value in inputs.items()
    ]


def _claims(claims: object, place: str) -> list[_Row]:
    if not isinstance(claims, list) or not claims:
        raise ParameterError(f"{place}: {claims!r} is not a list of claims.")
    rows = []
    for number, given in enumerate(claims, 1):
        where = f"{place}: number {number}"
        given = _mapping(given, where, KEYS["claim"])
        if "says" not in given or ("formula" in given) == ("why" in given) or ("formula" in given) > ("value" in given):
            message = f"{where}: a claim has 'says', and either 'value' and 'formula', or 'why' it is not tested."
            raise ParameterError(message)
        if given.get("is", "equal") not in COMPARISONS:
            raise ParameterError(f"{where}: key 'is' has {given['is']!r}; allowed: {', '.join(COMPARISONS)}.")
        rows.append(_row(given, where, f"claim_{number}", "own numbers" if "formula" in given else NOT_HERE))
    return rows


def _row(given: Mapping[str, Any], place: str, name: str, tested_by: str) -> _Row:
    printed = PRINTED.fullmatch(str(given.get("value", "")).strip())
    value, unit = (printed[1].replace(",", ""), printed[2].strip()) if printed else ("", "")
    if "value" in given and not (value and isfinite(float(value))):
        allowed = '"66 Mbit/s", "1,450,000 record/s", "1.5x" or "5 USD"'
        raise ParameterError(f"{place}: value {given['value']!r} is not a number with a unit, such as {allowed}.")
    texts = {key: str(given.get(key, "")) for key in ("section", "says", "why")}
    claim = Claim(
        str(given.get("name", name)), texts["section"], texts["says"], value, unit, "", tested_by, texts["why"]
    )
    return _Row(claim, str(given.get("formula", "")), given.get("is", "equal"), place)
