"""Which form does a text have before an index splits it into words? It is the same for every engine."""

import re
import unicodedata

from muniment.repository.aql.keywords import UNSPACED

BREAK = "\u200b"
"""The zero-width space. ``normal`` puts it between words that no blank separates."""

NARROW_BLANK = "\u202f"
"""The narrow blank that does not break. ``normal`` puts it in place of thin or unbreakable blanks between thousands."""

_SOFT_HYPHEN = "\u00ad"
_UNSPACED = re.compile(f"[{UNSPACED}]")
_BLANK_IN_NUMBER = re.compile(r"(?<=[0-9])[\u00a0\u2007\u2009\u202f](?=[0-9]{3}(?![0-9]))")
_BOUNDARY = re.compile(rf"(?<=[{UNSPACED}])(?=\w)|(?<=\w)(?=[{UNSPACED}])")


def normal(text: str) -> str:
    """Return the text in the form that is split into words.

    That is Unicode NFKC without lone surrogates and soft hyphens. In scripts without blanks between words, a BREAK
    separates each character from its neighbours. Between the thousands of a number, a blank that is thin or does not
    break becomes a NARROW_BLANK.
    """
    if text.isascii():
        return text
    parts = _BLANK_IN_NUMBER.split(whole(text))
    text = NARROW_BLANK.join([unicodedata.normalize("NFKC", part) for part in parts]).replace(_SOFT_HYPHEN, "")
    return _BOUNDARY.sub(BREAK, text) if _UNSPACED.search(text) else text


def whole(text: str) -> str:
    """Return the text with a question mark in place of each lone surrogate, which UTF-8 cannot encode."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
