"""Compare names, check which text a database can store, and read distinguished names.

Both halves use these functions. If the halves read a group's name in different ways, the group's members would get
wrong rights.
"""

import re
import unicodedata

LONGEST_DN = 32_768
"""How many characters a distinguished name may have."""

_REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ESCAPED = frozenset('"+,;<>\\=')
_COMPONENT = re.compile(r"(?:[^\\,]+|\\.)*", re.DOTALL)
_PIECE = re.compile(r"((?:\\[0-9A-Fa-f]{2})+)|\\(.)|([^\\]+)", re.DOTALL)
_UNESCAPED = re.compile(r'\\.|(["+;<>])', re.DOTALL)


class MalformedName(ValueError):
    """The text is no distinguished name. The message says why."""


def fold_name(name: str) -> str:
    """Return the key by which a name is compared. Names that differ only in case or Unicode composition have one key.

    U+FFFD, which no name holds, replaces each character that some database cannot store.
    """
    if name.isascii():
        return name.lower().replace("\x00", _REPLACEMENT)
    return unicodedata.normalize("NFC", make_storable(unicodedata.normalize("NFC", name).casefold()))


def is_storable(text: str) -> bool:
    """Return whether every database can store the text: it holds neither NUL nor half of a surrogate pair."""
    return _UNSTORABLE.search(text) is None


def make_storable(text: str) -> str:
    """Return the text with U+FFFD for each character that some database cannot store."""
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def read_dn(text: str) -> list[tuple[str, str]]:
    """Read a distinguished name, and return its (type, value) pairs in their order (RFC 4514 section 3).

    Types are in lower case. Spaces around a type or a value are left out. Raises MalformedName, also for pairs that
    ``+`` joins in one component: no location of a directory entry has such a component.
    """
    if len(text) > LONGEST_DN:
        raise MalformedName(f"A distinguished name may have at most {LONGEST_DN} characters.")
    pairs = []
    start = 0
    while True:
        component = _COMPONENT.match(text, start)
        end = component.end() if component else start
        if end < len(text) and text[end] == "\\":
            raise MalformedName("A distinguished name ends in the middle of an escape.")
        pairs.append(_read_component(text[start:end]))
        if end == len(text):
            return pairs
        start = end + 1


def escape(value: str) -> str:
    """Escape a value for a distinguished name (RFC 4514 section 2.4)."""
    text = "".join(f"\\{character}" if character in _ESCAPED else character for character in value)
    text = text.replace("\x00", "\\00")
    if text.endswith(" "):
        text = text[:-1] + "\\ "
    if text.startswith((" ", "#")):
        text = "\\" + text
    return text


def _read_component(text: str) -> tuple[str, str]:
    kind, equals, value = text.partition("=")
    if not (equals and kind.strip()):
        raise MalformedName("A distinguished name is made of <type>=<value> parts.")
    value = _trim(value)
    if value.startswith("#"):
        raise MalformedName("A value in hexadecimal digits (#...) cannot be read.")
    character = next((match[1] for match in _UNESCAPED.finditer(value) if match[1]), None)
    if character:
        raise MalformedName(f"In a value of a distinguished name, {character} is written \\{character}.")
    return kind.strip().lower(), _unescape(value)


def _trim(value: str) -> str:
    value = value.lstrip(" ")
    text = value.rstrip(" ")
    backslashes = len(text) - len(text.rstrip("\\"))
    return text + " " if backslashes % 2 and len(text) < len(value) else text


def _unescape(value: str) -> str:
    if "\\" not in value:
        return value
    try:
        return "".join(
            bytes.fromhex(piece[1].replace("\\", "")).decode() if piece[1] else piece[2] or piece[3]
            for piece in _PIECE.finditer(value)
        )
    except UnicodeDecodeError as error:
        raise MalformedName("A distinguished name holds escapes that are no UTF-8.") from error
