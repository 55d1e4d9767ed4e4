"""The corner cell of a matrix: whether its rows are the regions that send, or the regions that answer."""

from __future__ import annotations

import re
from html import unescape

_SENDS = ("from", "source", "src", "origin", "sender", "sending")
_ANSWERS = ("to", "destination", "dest", "dst", "target", "receiver", "receiving")
_NOUNS = re.compile(
    r"regions?|hosts?|zones?|locations?|cit(?:y|ies)|nodes?|sites?|clouds?|servers?|clients?|dcs?"
)
_MEASURE = re.compile(
    r"\b(?:latency|latencies|rtts?|pings?|round[ -]trips?|times?|delays?|ms|msec|milliseconds|"
    r"min|mean|avg|average|median|max|p\d\d)\b"
)
_SIDE_WORDS = r"rows?|down|vertical(?:ly)?"
_TOP_WORDS = r"columns?|cols?|across|horizontal(?:ly)?"
_SIDE = re.compile(rf"[(\[]?\b(?:{_SIDE_WORDS})\b[)\]]?")
_TOP = re.compile(rf"[(\[]?\b(?:{_TOP_WORDS})\b[)\]]?")
_AXIS_OF_NAME = re.compile(
    rf"\b((?:{'|'.join(_SENDS + _ANSWERS)})(?:[ _](?:{_NOUNS.pattern}))?[*_`]{{0,3}})\s*[:=–—-]\s*"
    rf"(?=[(\[*_`]{{0,3}}(?:{_SIDE_WORDS}|{_TOP_WORDS})\b(?!\s*[:=]))"
)
"""A sign between a name and the word for its axis ("From: rows"); it does not separate two names."""
_BRACKETED = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_TOKEN = re.compile(
    r"(?P<word>[^\W_]+)"
    r"|(?P<both><[-=]+>|[↔⇔⟷])"
    r"|(?P<across>[-=–—~]+>|<[-=–—~]+|[<>»›«‹→⇒⟶⟹➔➙➜➝➞➡⇨⇾►▶▸←⇐⟵⟸⬅⇦◄◀])"
    r"|(?P<down>[↓⇓⬇⇩▼▾↑⇑⬆⇧▲▴])"
    r"|(?P<blank>[^\S\n]|[_*`'\"\ufe0e\ufe0f])"
    r"|(?P<separator>\n|.)"
)
MAX_LENGTH = 200
"""Characters of a corner that are read: a longer one is a text, not a label."""


def is_transposed(corner: str) -> bool:
    """
    Whether a corner says that the regions down the side answer the pings.

    The first of two names labels the side: "Source → Destination", "From / To", "From to To". An arrow along an axis
    overrules this order: an arrow down, an arrow that another sign separates from one of the names ("From → / To"), or
    the words row and column.

    >>> is_transposed("To \\\\ From"), is_transposed("Source → Dest"), is_transposed("From → / To ↓")
    (True, False, True)
    """
    signs, names = _parts(corner)
    if len(names) == 1:
        axis = (signs[0] + signs[1])[-1:] if "down" not in signs[0] + signs[1] else ["down"]
        return names[0] != (axis == ["across"])
    if len(names) != 2:
        return False
    first, second = _axes(*signs)
    second_is_side = second == "down" or (first == "across" and second != "across")
    return names[1] if second_is_side and first != "down" else names[0]


def _parts(corner: str) -> tuple[list[list[str]], list[bool]]:
    """The signs before, between and after the names, and for each name whether it means the regions that answer."""
    text = unescape(corner[:MAX_LENGTH]).lower()
    text = _AXIS_OF_NAME.sub(r"\1 ", text)
    text = _TOP.sub("→", _SIDE.sub("↓", text))
    text = _MEASURE.sub(" ", _BRACKETED.sub(" ", text)).strip(" \t\r\n:;,.-")
    signs: list[list[str]] = [[]]
    names: list[bool] = []
    for token in _TOKEN.finditer(text):
        kind, word = token.lastgroup, token[0]
        if kind == "blank" or (kind == "word" and names and not signs[-1] and _NOUNS.fullmatch(word)):
            continue
        if kind != "word":
            signs[-1].append("separator" if kind == "both" else kind)
        elif word not in _SENDS + _ANSWERS:
            return [[]], []
        elif not names or signs[-1] or names[-1] != (word in _ANSWERS):
            names.append(word in _ANSWERS)
            signs.append([])
    return signs, names


def _axes(before: list[str], between: list[str], after: list[str]) -> tuple[str, str]:
    """The axis of each of two names, "across", "down" or "", from the signs around them."""
    if _arrows(before):
        return _arrows(before)[-1], (_arrows(between) or [""])[-1]
    if "separator" in between:
        at = between.index("separator")
        first, second = _arrows(between[:at]), _arrows(between[at:]) + _arrows(after)
    else:
        first, second = _arrows(between), _arrows(after)
        if len(first) > 1:
            first, second = first[:1], first[1:]
        if "down" not in first + second and not second:
            return "", ""
    return (first or [""])[0], (second or [""])[0]


def _arrows(signs: list[str]) -> list[str]:
    return [sign for sign in signs if sign != "separator"]
