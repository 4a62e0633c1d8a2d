"""How are names compared, which text can be stored, and what does a distinguished name say?

Both halves compare names by one folding and read distinguished names by one reader: rights of groups hang on it.
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
_BARE = re.compile(r'\\.|(["+;<>])', re.DOTALL)


class MalformedName(ValueError):
    """The text is no distinguished name; the sentence says why."""


def fold_name(name: str) -> str:
    """Fold a name to what it is compared by: names that differ in case or in Unicode composition only are the same.

    What no database can store becomes U+FFFD, which no name holds.
    """
    if name.isascii():
        return name.lower().replace("\x00", _REPLACEMENT)
    return unicodedata.normalize("NFC", make_storable(unicodedata.normalize("NFC", name).casefold()))


def is_storable(text: str) -> bool:
    """Say whether every database can store the text: it holds neither NUL nor half of a surrogate pair."""
    return _UNSTORABLE.search(text) is None


def make_storable(text: str) -> str:
    """Put U+FFFD in the place of each character that some database cannot store."""
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def read_dn(text: str) -> list[tuple[str, str]]:
    """Read a distinguished name into (type in lower case, value) pairs, in its order (RFC 4514 section 3).

    Blanks around a type and a value are passed over. Raises MalformedName, also for several pairs joined by ``+`` in
    one component: no location of a directory entry has them.
    """
    if len(text) > LONGEST_DN:
        raise MalformedName(f"A distinguished name may have at most {LONGEST_DN} characters.")
    pairs = []
    at = 0
    while True:
        component = _COMPONENT.match(text, at)
        end = component.end() if component else at
        if end < len(text) and text[end] == "\\":
            raise MalformedName("A distinguished name ends in the middle of an escape.")
        pairs.append(_read_component(text[at:end]))
        if end == len(text):
            return pairs
        at = end + 1


def escape(value: str) -> str:
    """Escape a value for a distinguished name (RFC 4514 section 2.4)."""
    escaped = "".join(f"\\{character}" if character in _ESCAPED else character for character in value)
    escaped = escaped.replace("\x00", "\\00")
    if escaped.endswith(" "):
        escaped = escaped[:-1] + "\\ "
    if escaped.startswith((" ", "#")):
        escaped = "\\" + escaped
    return escaped


def _read_component(written: str) -> tuple[str, str]:
    kind, equals, value = written.partition("=")
    if not (equals and kind.strip()):
        raise MalformedName("A distinguished name is made of <type>=<value> parts.")
    value = _trim(value)
    if value.startswith("#"):
        raise MalformedName("A value in hexadecimal digits (#...) cannot be read.")
    bare = next((found[1] for found in _BARE.finditer(value) if found[1]), None)
    if bare:
        raise MalformedName(f"In a value of a distinguished name, {bare} is written \\{bare}.")
    return kind.strip().lower(), _unescape(value)


def _trim(value: str) -> str:
    value = value.lstrip(" ")
    bare = value.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if backslashes % 2 and len(bare) < len(value) else bare


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
