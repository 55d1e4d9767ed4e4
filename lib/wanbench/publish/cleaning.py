"""Sanitise the HTML of cell outputs: harmless elements stay, all others are shown as text."""

from __future__ import annotations

import re

from nbconvert.preprocessors.sanitize import SanitizeHTML

TEXT_TAGS = """
    a abbr b blockquote br caption code col colgroup dd del details div dl dt em h2 h3 h4 h5 h6 hr i ins kbd
    li mark ol p pre q s samp small span strong sub summary sup table tbody td tfoot th thead time tr u ul var
"""
FORMULA_TAGS = """
    math mfrac mi mn mo mover mpadded mphantom mroot mrow mspace msqrt mstyle msub msubsup msup mtable mtd
    mtext mtr munder munderover
"""
ATTRIBUTES = {
    "*": ["class", "title", "lang", "dir", "style"],
    "a": ["href"],
    "col": ["span"],
    "details": ["open"],
    "li": ["value"],
    "math": ["display", "xmlns"],
    "mi": ["mathvariant"],
    "mo": ["stretchy", "fence", "form", "separator", "lspace", "rspace"],
    "mspace": ["width", "linebreak"],
    "mtable": ["displaystyle", "rowspacing", "columnspacing"],
    "mtd": ["columnalign"],
    "ol": ["start"],
    "td": ["colspan", "rowspan", "headers"],
    "th": ["colspan", "rowspan", "headers", "scope"],
    "time": ["datetime"],
}
STYLE_ELEMENT = re.compile(r"<style\b[^>]*>.*?</style\s*>", re.DOTALL | re.IGNORECASE)

EMPTY_BODY = re.compile(r"<tbody>\s*</tbody>")
NUMBER_CELL = re.compile(r"<td>(-?[0-9][0-9,]*(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?|NaN)</td>")

_cleaner = SanitizeHTML(tags=[*TEXT_TAGS.split(), *FORMULA_TAGS.split()], attributes=ATTRIBUTES)


def clean(html: str) -> str:
    """
    HTML with harmless elements only. Style elements (pandas adds them to tables) are dropped.

    >>> clean('<b>4 ms</b><script>alert()</script>')
    '<b>4 ms</b>&lt;script&gt;alert()&lt;/script&gt;'

    Table cells that hold a number alone are marked, so that they align.

    >>> clean('<table><tbody><tr><td>3.2</td><td>aws</td></tr></tbody></table>')
    '<table><tbody><tr><td class="number">3.2</td><td>aws</td></tr></tbody></table>'

    A table without rows says so.

    >>> clean('<table><tbody></tbody></table>')
    '<table><tbody><tr><td colspan="99">none</td></tr></tbody></table>'
    """
    harmless = _cleaner.sanitize_html_tags(STYLE_ELEMENT.sub("", html))
    numbered = NUMBER_CELL.sub(r'<td class="number">\1</td>', harmless)
    return EMPTY_BODY.sub('<tbody><tr><td colspan="99">none</td></tr></tbody>', numbered)
