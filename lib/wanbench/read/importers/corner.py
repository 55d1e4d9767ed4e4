"""The corner cell of a matrix: whether its rows are the regions that send, or the regions that answer."""

from __future__ import annotations

import re
from html import unescape

SENDS = (
    "from", "source", "src", "origin", "originator", "sender", "sending", "transmitter", "tx", "initiator", "requester",
    "pinger", "prober", "client", "probe", "local", "start", "producer",
)  # fmt: skip
ANSWERS = (
    "to", "destination", "dest", "dst", "target", "receiver", "receiving", "recipient", "rx", "reflector", "responder",
    "replier", "listener", "sink", "pinged", "server", "anchor", "remote", "end", "consumer",
)  # fmt: skip
LOOSE = ("client", "probe", "local", "start", "producer", "server", "anchor", "remote", "end", "consumer")
"""Roles whose names may stand for any host, so that one of them alone, or an arrow against them, decides nothing."""
_NOUNS = re.compile(
    r"(?:regions?|hosts?|zones?|locations?|cit(?:y|ies)|nodes?|sites?|clouds?|servers?|clients?|dcs?|names?|codes?|"
    r"countr(?:y|ies)|places?|instances?|vms?|machines?|data|cent(?:er|re)s?|datacent(?:er|re)s?|providers?|areas?|"
    r"aws|azure|gcp|google|ibm|amazon|\d+)"
)
_MEASURE = re.compile(
    r"\b(?:latency|latencies|rtts?|pings?|round[ -]trips?|times?|delays?|ms|msec|milliseconds|"
    r"min|mean|avg|average|median|max|p\d\d|is|are|in|on|the|at|of)\b"
)
_SIDE_WORDS = r"rows?|down|vertical(?:ly)?"
_TOP_WORDS = r"columns?|cols?|across|horizontal(?:ly)?"
_OTHER_WORDS = (
    (re.compile(r"\b(?:(?:first|left(?:most)?) col(?:umn)?|left|y[ -]axis)\b"), "row"),
    (re.compile(r"\b(?:(?:first|top) (?:row|line)|top|header|x[ -]axis)\b"), "column"),
)
"""Other words for the side and the top."""
_SIDE = re.compile(rf"[(\[]?\b(?:{_SIDE_WORDS})\b[)\]]?")
_TOP = re.compile(rf"[(\[]?\b(?:{_TOP_WORDS})\b[)\]]?")
_RIGHT, _LEFT = r"[-=–—~]+>|[>»›→⇒⟶⟹➔➙➜➝➞➡⇨⇾►▶▸]", r"<[-=–—~]+|[<«‹←⇐⟵⟸⬅⇦◄◀]"
_BETWEEN_AXES = re.compile(
    rf"\b(?:(?P<top>{_TOP_WORDS})|{_SIDE_WORDS}) ?(?:to|pings?|{_RIGHT}|(?P<left>{_LEFT})) ?"
    rf"(?:{_SIDE_WORDS}|{_TOP_WORDS})\b"
)
"""One axis to the other, without the name of a role: "columns → rows"."""
_AXIS_OF_NAME = re.compile(
    rf"\b((?:{'|'.join(SENDS + ANSWERS)})s?(?:[ _](?:{_NOUNS.pattern}))?[*_`]{{0,3}})\s*[:=–—-]\s*"
    rf"(?=[(\[*_`]{{0,3}}(?:{_SIDE_WORDS}|{_TOP_WORDS})\b(?!\s*[:=]))"
)
"""A sign between a name and the word for its axis ("From: rows"); it does not separate two names."""
_BRACKETED = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_TOKEN = re.compile(
    r"(?P<word>[^\W_]+)"
    r"|(?P<both><[-=]+>|[↔⇔⟷])"
    rf"|(?P<across>{_RIGHT}|{_LEFT})"
    r"|(?P<down>[↓⇓⬇⇩▼▾↑⇑⬆⇧▲▴])"
    r"|(?P<blank>[^\S\n]|[_*`'\"\ufe0e\ufe0f])"
    r"|(?P<separator>\n|.)"
)
_BETWEEN_LABELS = re.compile(r"[/\\]")
MAX_LENGTH = 200
"""Characters of a corner that are read: a longer one is a text, not a label."""


def is_transposed(corner: str) -> bool | None:
    """
    Whether a corner says that the regions down the side answer the pings; None if it names both axes, or who answers,
    in words that leave this open.

    The first of two names labels the side: "Source → Destination", "From / To", "From to To". An arrow along an axis
    overrules this order: an arrow down, an arrow that another sign separates from one of the names ("From → / To"), or
    the words row and column. An arrow between two other names points at the regions that answer.

    >>> is_transposed("To \\\\ From"), is_transposed("Source → Dest"), is_transposed("From → / To ↓")
    (True, False, True)
    >>> is_transposed("Latency (ms)"), is_transposed("Server"), is_transposed("nach / von")
    (False, None, None)
    """
    text = _plain(corner)
    if axes := _BETWEEN_AXES.search(text):
        return bool(axes["top"]) != bool(axes["left"])
    text = _TOP.sub("→", _SIDE.sub("↓", text))
    text = _MEASURE.sub(" ", _BRACKETED.sub(" ", text)).strip(" \t\r\n:;,.-")
    signs, names, words, unknown = _parts(text)
    flow = _flow(text, signs, words)
    roles = {name for name in names if name is not None}
    loose = any(word in LOOSE for word in words)
    if not roles or (loose and len(names) == 2 and names[0] == names[1]):  # only an arrow can tell
        return None if flow is None and unknown and _BETWEEN_LABELS.search(text) else bool(flow)
    if len(names) > 2 or (len(names) == 2 and names[0] == names[1]):
        return None
    answer = _side_answers(signs, names)
    alone = answer and len(roles) == 1 and (loose or unknown)
    against_arrow = loose and flow is not None and flow != answer
    return None if alone or against_arrow else answer


def _side_answers(signs: list[list[str]], names: list[bool | None]) -> bool:
    """Whether the name of the side means the regions that answer; of a name without a role, the other one decides."""
    if len(names) == 1:
        axis = (signs[0] + signs[1])[-1:] if "down" not in signs[0] + signs[1] else ["down"]
        return names[0] != (axis == ["across"])
    first, second = _axes(*signs)
    second_is_side = second == "down" or (first == "across" and second != "across")
    side, top = (1, 0) if second_is_side and first != "down" else (0, 1)
    return not names[top] if names[side] is None else names[side]


def _flow(text: str, signs: list[list[str]], words: list[str]) -> bool | None:
    """Whether an arrow, or a "to", between two names leads to the side; None without one, or with arrows of axes."""
    arrows = [sign for part in signs for sign in part if sign in ("across", "down")]
    if len(signs) == 3 and arrows == ["across"] and "across" in signs[1]:
        return re.search(_LEFT, text) is not None
    return False if not arrows and "to" in words[1:-1] else None


def _plain(corner: str) -> str:
    text = unescape(corner[:MAX_LENGTH]).lower()
    for words, instead in _OTHER_WORDS:
        text = words.sub(instead, text)
    return _AXIS_OF_NAME.sub(r"\1 ", text)


def _parts(text: str) -> tuple[list[list[str]], list[bool | None], list[str], bool]:
    """
    The signs before, between and after the names; for each name whether it means the regions that answer, None for a
    name without a role; the words of roles; and whether a word is unknown.
    """
    signs: list[list[str]] = [[]]
    names: list[bool | None] = []
    words: list[str] = []
    unknown = False
    for token in _TOKEN.finditer(text):
        kind, word = token.lastgroup, token[0]
        if kind == "blank" or (kind == "word" and names and not signs[-1] and _NOUNS.fullmatch(word)):
            continue
        if kind != "word":
            signs[-1].append("separator" if kind == "both" else kind)
            continue
        role = next((each for each in (word, word.removesuffix("s")) if each in SENDS + ANSWERS), None)
        name = None if role is None else role in ANSWERS
        words += [role] if role else []
        unknown |= role is None and not _NOUNS.fullmatch(word)
        if role and names and names[-1] == name and (words[-2] in ("from", "to") or not signs[-1]):
            signs[-1] = []  # "from source", "-to-dest": one name
        elif not names or signs[-1] or (role and (names[-1] is not None or role in ("from", "to"))):
            names.append(name)
            signs.append([])
        elif role:
            names[-1] = name
    return signs, names, words, unknown


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
