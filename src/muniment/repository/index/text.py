"""The form of text that an index splits into words, whatever its engine."""

import re
import unicodedata

from muniment.repository.aql.keywords import UNSPACED

BREAK = "\u200b"
"""The zero-width space: where ``normal`` ends a word that no blank ends."""

_SOFT_HYPHEN = "\u00ad"
_UNSPACED = re.compile(f"[{UNSPACED}]")
_BOUNDARY = re.compile(rf"(?<=[{UNSPACED}])(?=\w)|(?<=\w)(?=[{UNSPACED}])")


def normal(text: str) -> str:
    """Bring text to the form that is split into words: Unicode NFKC, no half characters, no soft hyphens, and breaks
    around each character of a script without blanks."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", whole(text)).replace(_SOFT_HYPHEN, "")
    return _BOUNDARY.sub(BREAK, text) if _UNSPACED.search(text) else text


def whole(text: str) -> str:
    """Replace halves of characters (lone surrogates), which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
