"""Compare names, check new ones and what a database can store, and read distinguished names, for both halves."""

import itertools
import math
import re
import unicodedata
from functools import lru_cache

LONGEST_DN = 32_768
MOST_COMPOSITIONS = 256
_FEW_MARKS = 3

_REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ESCAPED = frozenset('"+,;<>\\=#')
_COMPONENT = re.compile(r"(?:[^\\,]+|\\.)*", re.DOTALL)
_PIECE = re.compile(r"((?:\\[0-9A-Fa-f]{2})+)|\\(.)|([^\\]+)", re.DOTALL)
_UNESCAPED = re.compile(r'\\.|(["+;<>])', re.DOTALL)

_REORDERING = "\u202a-\u202e\u2066-\u2069"
_UNSEEN = re.compile(
    f"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2060-\u2065\u206a-\u206f\u2800\u3164"
    f"\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff{_REORDERING}]"
)
_JOINERS = "\u200c\u200d"
_JOINED = frozenset(
    {"ARABIC", "SYRIAC", "MONGOLIAN", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU"}
    | {"KANNADA", "MALAYALAM", "SINHALA", "MYANMAR", "KHMER"}
)
"""The scripts in whose words a joiner changes how letters look."""
_ALIKE = frozenset(
    ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "FULLWIDTH", "MATHEMATICAL")
)
"""The scripts, and the forms of letters, whose letters look like those of another one."""


class MalformedName(ValueError):
    """The text is no distinguished name."""


def fold_name(name: str) -> str:
    """U+FFFD, which no name holds, replaces what ``make_storable`` replaces."""
    if name.isascii():
        return name.lower().replace("\x00", _REPLACEMENT)
    return unicodedata.normalize("NFC", make_storable(unicodedata.normalize("NFC", name).casefold()))


def compositions(name: str) -> set[str]:
    """List the texts that are this name: each letter with its accents composed, decomposed, or composed in part.

    Beyond ``MOST_COMPOSITIONS``, these are the name as it is, wholly composed, and wholly decomposed.
    """
    decomposed = unicodedata.normalize("NFD", name)
    few = {name, unicodedata.normalize("NFC", name), decomposed}
    if name.isascii():
        return few
    of_letters = [_compositions_of(letter) for letter in _letters(decomposed)]
    if math.prod(map(len, of_letters)) > MOST_COMPOSITIONS:
        return few
    return few | set(map("".join, itertools.product(*of_letters)))


def _letters(decomposed: str) -> list[str]:
    """Split a text into letters with the marks that belong to them, and syllables of Hangul."""
    letters: list[str] = []
    for character in decomposed:
        belongs = unicodedata.combining(character) or "\u1161" <= character <= "\u11ff"
        letters = [*letters[:-1], letters[-1] + character] if belongs and letters else [*letters, character]
    return letters


@lru_cache(10_000)
def _compositions_of(letter: str) -> frozenset[str]:
    """List the texts whose decomposition is this letter; of one with many marks, those in their order."""
    base, marks = letter[0], letter[1:]
    orders = map("".join, itertools.permutations(marks)) if len(marks) <= _FEW_MARKS else [marks]
    texts = {letter}
    for order in orders:
        for end in range(len(order) + 1):
            begin = unicodedata.normalize("NFD", base + order[:end])
            composed = (unicodedata.normalize("NFC", begin), *_composed().get(begin, ()))
            texts |= {each + order[end:] for each in composed}
    return frozenset({each for each in texts if unicodedata.normalize("NFD", each) == letter})


@lru_cache(1)
def _composed() -> dict[str, list[str]]:
    """Return the characters by their decomposition: those too, as the sign of the ångström, that no form holds."""
    composed: dict[str, list[str]] = {}
    for character in map(chr, (*range(0xC0, 0x3100), *range(0xF900, 0xFB50))):
        decomposed = unicodedata.normalize("NFD", character)
        if decomposed != character:
            composed.setdefault(decomposed, []).append(character)
    return composed


def is_storable(text: str) -> bool:
    """Whether it holds neither NUL nor half of a surrogate pair."""
    return _UNSTORABLE.search(text) is None


def make_storable(text: str) -> str:
    """Put U+FFFD for each character that some database cannot store."""
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def disguise(name: str) -> str:
    """Say by what a reader would mistake a new name for another, as the end of a sentence; empty for a plain name.

    That is a character that nobody sees or that reorders others, a blank other than U+0020 and U+3000, or a word with
    letters of several scripts that look alike. Joiners may stand where scripts need them.
    """
    if name.isascii():
        return ""
    script = ""
    for at, character in enumerate(name):
        category = unicodedata.category(character)
        if _UNSEEN.match(character) or (character in _JOINERS and not _joins(name, at)):
            return f"the character U+{ord(character):04X}, which nobody sees"
        if category == "Zs" and character not in " \u3000":
            return f"the blank U+{ord(character):04X}, which looks like another one"
        if category[0] not in "LMN" and character not in _JOINERS:
            script = ""
        elif (own := _script(character)) in _ALIKE:
            if script not in ("", own):
                return f"a word with letters of {script.title()} and {own.title()}, which look alike"
            script = own
    return ""


def has_reordering(text: str) -> bool:
    """Whether a character shows others in another order, as in ``invoice\u202efdp.exe``."""
    return re.search(f"[{_REORDERING}]", text) is not None


def without_reordering(text: str) -> str:
    return re.sub(f"[{_REORDERING}]", "", text)


def _joins(name: str, at: int) -> bool:
    return all(0 <= place < len(name) and _script(name[place]) in _JOINED for place in (at - 1, at + 1))


def _script(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]


def read_dn(text: str) -> list[tuple[str, str]]:
    """Types are in lower case, without spaces around them or values.

    Raises MalformedName, also for pairs that ``+`` joins: no entry has them.
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
    """Every ``#``: the RFC demands that only at the beginning, but some readers do everywhere."""
    text = "".join(f"\\{character}" if character in _ESCAPED else character for character in value)
    text = text.replace("\x00", "\\00")
    if text.endswith(" "):
        text = text[:-1] + "\\ "
    if text.startswith(" "):
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
