"""How are texts in properties compared? By their folded forms, which ignore case and compatibility forms of letters.

A database folds short ASCII texts (``is_plain``); of others, the folded form made here is stored, so that every
database compares alike.

Source: docs/decisions/0079.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence

COMPARED = 1000

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def fold(text: str) -> str:
    """Remove case and compatibility forms, but no accents. Control characters become blanks; only ``COMPARED``
    characters are returned.
    """
    text = text[: COMPARED * 4]
    if text.isascii():
        text = text[:COMPARED].lower()
        # Of the ASCII characters, exactly the control characters are not printable.
        return text if text.isprintable() else _CONTROL.sub(" ", text)
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    text = text.encode("utf-8", "replace").decode()
    return _CONTROL.sub(" ", text.casefold()[:COMPARED])


def is_plain(text: str) -> bool:
    return len(text) <= COMPARED and text.isascii() and text.isprintable()


def folded_forms(texts: Mapping[str, Sequence[object]]) -> dict[str, list[str]]:
    forms: dict[str, list[str]] = {}
    for name, values in texts.items():
        for value in values:
            if isinstance(value, str) and not is_plain(value):
                forms[name] = [fold(str(each)) for each in values]
                break
    return forms
