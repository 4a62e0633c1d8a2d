"""How do bytes of any encoding become characters, and how does a reader's text become text that can be stored?"""

import codecs
import re

from muniment.repository.extraction.findings import Unsupported

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1b")) + b"\x7f"
_HIGH_RUNS = re.compile(rb"[\x80-\xff]+")
_SOFT_BREAK = re.compile("[\u00ad\ufffe\x02][ \t]*\r?\n?")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ASCII_BLANKS = "\t"
_BLANKS = (
    "\t\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


def decode(content: bytes, charset_name: str = "") -> str:
    """Decode bytes by their byte order mark, by the declared charset, or as the encoding that they look like.

    What cannot be decoded becomes replacement characters. Raises Unsupported for bytes that are not text.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace")
    if wide := _wide(content, charset_name):
        return content.decode(wide, "replace")
    if _is_binary(content):
        raise Unsupported("The file holds binary data, not text.")
    if (encoding := _charset(charset_name)) and encoding != "utf-8":
        try:
            return content.decode(encoding)
        except UnicodeError:
            pass
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode(_likelier(content), "replace")


def tidy(text: str, limit: int) -> str:
    """Drop characters that XML 1.0 forbids, join words that a soft hyphen divides, and shorten runs of blanks.

    Returns at most ``limit`` characters.
    """
    text = _SOFT_BREAK.sub("", text[: 4 * limit])
    text = _FORBIDDEN.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    for blank in _ASCII_BLANKS if text.isascii() else _BLANKS:
        text = text.replace(blank, " ")
    text = _shorten_runs(text, "  ", " ").replace(" \n", "\n").replace("\n ", "\n")
    return _shorten_runs(text, "\n\n\n", "\n\n").strip()[:limit]


def _shorten_runs(text: str, run: str, replacement: str) -> str:
    # Each round shortens every run by at least a third, so a run of a million characters takes about thirty rounds.
    while run in text:
        text = text.replace(run, replacement)
    return text


def _wide(content: bytes, charset_name: str) -> str:
    """Return the encoding of bytes in UTF-16 or UTF-32 without a byte order mark, and an empty text for other bytes.

    If ``charset_name`` declares such an encoding, it is believed. Otherwise the bytes are UTF-16 if, at the beginning,
    most bytes at even positions are zero and hardly any at odd positions, or the other way round.
    """
    charset = _charset(charset_name)
    if charset.startswith(("utf-16", "utf-32")):
        return charset if charset[6:] else f"{charset}-be"
    head = content[:1024]
    half = len(head) // 2
    if half >= 4:
        if head[1::2].count(0) > 0.7 * half and head[::2].count(0) < 0.1 * half:
            return "utf-16-le"
        if head[::2].count(0) > 0.7 * half and head[1::2].count(0) < 0.1 * half:
            return "utf-16-be"
    return ""


def _is_binary(content: bytes) -> bool:
    head = content[: 1 << 20]
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return head.count(0) > len(head) // 1000 or controls > len(head) // 50


def _charset(charset_name: str) -> str:
    try:
        codec = codecs.lookup(charset_name.strip(" \"'")) if charset_name else None
    except (LookupError, ValueError):
        return ""
    # A name such as `hex` or `rot13` is a codec too, but no charset.
    return codec.name if codec and getattr(codec, "_is_text_encoding", True) else ""


def _likelier(content: bytes) -> str:
    """Return UTF-8 if most runs of bytes beyond ASCII are valid UTF-8, else windows-1252."""
    good = bad = 0
    for run in _HIGH_RUNS.finditer(content[: 1 << 20]):
        try:
            run[0].decode("utf-8")
            good += 1
        except UnicodeDecodeError:
            bad += 1
    return "utf-8" if good > bad else "windows-1252"
