"""What is the text of an RTF file? Control words become breaks, blanks, characters or nothing; groups of settings or
pictures are left out.

The rules follow the Rich Text Format Specification 1.9.1. A file without its end is read up to there.
"""

import codecs
import re
from typing import NamedTuple

from muniment.repository.store.extraction.findings import about, separate

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,9})? ?|\\'([0-9a-fA-F]{2})|\\(.)|([{}])|[\r\n]+|([^\\{}\r\n]+)|\\", re.DOTALL
)
_CHARACTERS = {
    **dict.fromkeys(("par", "line", "row", "nestrow", "sect", "page", "column", "softline", "softpage"), "\n"),
    **dict.fromkeys(("tab", "cell", "nestcell", "emspace", "enspace", "qmspace"), " "),
} | {"emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”"}
_SYMBOLS = {b"~": " ", b"_": "-", b"\n": "\n", b"\r": "\n", b"\t": " ", b"\\": "\\", b"{": "{", b"}": "}"}

_NO_TEXT = {
    *("fonttbl", "colortbl", "stylesheet", "pict", "nonshppict", "shprslt", "sp", "fldinst", "objdata"),
    *("xe", "tc", "listtext", "pntext", "nonesttables", "template", "datafield", "themedata", "filetbl"),
    *("ftnsep", "ftnsepc", "ftncn", "aftnsep", "aftnsepc", "aftncn"),
}
_ABOUT = {"title": "title", "subject": "subject", "author": "authors", "keywords": "keywords"}

_STARRED_TEXT = {"shpinst", "shptxt", "footnote", "annotation", "nesttableprops"}
"""Destinations with text despite their ``\\*``, which lets older readers skip them."""

_ON_THEIR_OWN = {
    *("footnote", "annotation", "shptxt", "header", "headerl", "headerr", "headerf"),
    *("footer", "footerl", "footerr", "footerf"),
}

# The code pages by their numbers in a table of fonts.
_CHARSETS = {
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "cp936",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    254: "cp437",
    255: "cp850",
}


class _Group(NamedTuple):
    """The settings until the end of a group in braces. ``about`` is empty, `info`, or the property that the text is."""

    reads: bool = True
    fonts: bool = False
    apart: bool = False
    deleted: bool = False
    about: str = ""
    substitutes: int = 1
    font: int = -1


class _Reader:
    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._about: dict[str, list[str]] = {}
        self._bytes = bytearray()
        self._group = _Group()
        self._outer: list[_Group] = []
        self._charset = "cp1252"
        self._fonts: dict[int, str] = {}
        self._defined_font = -1
        self._begun = self._starred = False
        self._left_out = 0

    def read(self, content: bytes) -> tuple[str, dict[str, list[str]]]:
        place = 0
        while token := _TOKEN.match(content, place):
            place = token.end()
            word, number, code, symbol, brace, text = token.groups()
            if word == b"bin":
                place += max(0, int(number or 0))
            elif word:
                self._word(word.decode("ascii"), None if number is None else int(number))
            elif brace:
                self._brace(brace == b"{")
            elif symbol == b"*":
                # Anywhere but at the beginning of a group it means nothing.
                self._starred = self._begun
            elif code or symbol:
                self._add_symbol(bytes.fromhex(code.decode("ascii")) if code else b"", symbol)
            elif text:
                tail = text[self._left_out :]
                self._left_out = max(0, self._left_out - len(text))
                self._add_bytes(tail)
        self._flush()
        title, subject, authors, keywords = (_joined(self._about.get(name, [])) for name in _ABOUT.values())
        return _joined(self._pieces), about(title, subject, separate(authors), separate(keywords))

    def _brace(self, opens: bool) -> None:
        self._flush()
        self._left_out = 0
        self._starred, self._begun = False, opens
        if opens:
            self._outer.append(self._group)
            self._group = self._group._replace(apart=False)
        elif self._outer:
            if self._group.apart:
                self._add("\n")
            self._group = self._outer.pop()

    def _add_symbol(self, byte: bytes, symbol: bytes | None) -> None:
        if self._left_out:
            self._left_out -= 1
        elif symbol:
            self._add(_SYMBOLS.get(symbol, ""))
        else:
            self._add_bytes(byte)

    def _word(self, word: str, number: int | None) -> None:
        starred, self._starred, self._begun = self._starred, False, False
        if (starred and word not in _STARRED_TEXT) or word in _NO_TEXT:
            self._group = self._group._replace(reads=False, fonts=word == "fonttbl")
        elif word == "info":
            self._group = self._group._replace(reads=False, about="info")
        elif self._group.about == "info":
            self._group = self._group._replace(about=_ABOUT.get(word, ""))
        elif word in _ON_THEIR_OWN:
            self._add("\n")
            self._group = self._group._replace(apart=True)
        elif word in _CHARACTERS:
            self._add(_CHARACTERS[word])
        elif word == "u" and number is not None:
            self._add(chr(number & 0xFFFF))
            self._left_out = self._group.substitutes
        elif word == "uc":
            self._group = self._group._replace(substitutes=max(0, number or 0))
        elif word == "deleted":
            self._group = self._group._replace(deleted=number != 0)
        else:
            self._characters_of(word, number or 0)

    def _characters_of(self, word: str, number: int) -> None:
        if word == "ansicpg":
            self._charset = _codec(f"cp{number}") or self._charset
        elif word in {"mac", "pc", "pca"}:
            self._charset = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}[word]
        elif word == "f" and self._group.fonts:
            self._defined_font = number
        elif word == "fcharset" and self._group.fonts and number in _CHARSETS:
            self._fonts[self._defined_font] = _CHARSETS[number]
        elif word in {"f", "plain"}:
            self._flush()
            self._group = self._group._replace(font=number if word == "f" else -1)

    def _add_bytes(self, content: bytes) -> None:
        self._begun = False
        if (self._group.reads or self._group.about) and not self._group.deleted:
            self._bytes += content

    def _add(self, text: str) -> None:
        self._begun = False
        self._flush()
        if (self._group.reads or self._group.about) and not self._group.deleted:
            self._keep(text)

    def _flush(self) -> None:
        if self._bytes:
            charset = self._fonts.get(self._group.font, self._charset)
            self._keep(self._bytes.decode(charset, "replace"))
            self._bytes.clear()

    def _keep(self, text: str) -> None:
        place = self._about.setdefault(self._group.about, []) if self._group.about else self._pieces
        place.append(text)


def read(content: bytes) -> tuple[str, dict[str, list[str]]]:
    return _Reader().read(content)


def _joined(pieces: list[str]) -> str:
    # A character beyond U+FFFF is written as two surrogates.
    return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _codec(name: str) -> str:
    try:
        return codecs.lookup("utf-8" if name == "cp65001" else name).name
    except LookupError:
        return ""
