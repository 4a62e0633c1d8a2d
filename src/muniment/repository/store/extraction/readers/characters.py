"""How do bytes of any encoding become characters, and how does a reader's text become text that can be stored?"""

import codecs
import re
import unicodedata
from collections import Counter
from typing import NamedTuple

import chardet

from muniment.repository.store.extraction.findings import Unsupported

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1b")) + b"\x7f"
_HIGH_RUNS = re.compile(rb"[\x80-\xff]+")
_SHIFT = re.compile(rb"\x1b\$(?:[@AB]|\([A-Z]|\)[A-G])|\x1b\([IJ]")
"""What switches characters in ISO-2022-JP and ISO-2022-KR, where no byte is beyond ASCII."""

_LABEL = re.compile(r"[a-z0-9][a-z0-9._:-]*[a-z0-9]")
_LABEL_CHANGES = (("x-", ""), ("cs", ""), ("win-", "windows-"), ("x-mac-", "mac-"), ("8859-", "iso-8859-"))
"""Programs give charsets such beginnings; known names have these."""

_SUPERSETS = {
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "big5": "cp950",
    "iso2022_jp": "iso2022_jp_ext",
    "tis-620": "cp874",
}
"""Files use the first beyond their bounds, and really have the second (WHATWG Encoding, 4.2)."""

_SAMPLE = 200_000
_FEW_BYTES = 8
_SURE = 0.25
_EAST = re.compile("[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
_LAST_LATIN = 0x24F
_KANA = re.compile("[\u3041-\u30fa]")

_SOFT_BREAK = re.compile("\u00ad[ \t]*\r?\n?|\r?\n[ \t]*\u00ad")
_LINE_HYPHEN = re.compile(r"(?<![\w-])([^\W\d_]\w*(?:-\w+){0,4})-\n([^\W\d_]\w*)")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ASCII_BLANKS = "\t"
_BLANKS = (
    "\t\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


class Decoded(NamedTuple):
    """``note`` names the charset if it is not certain."""

    text: str
    note: str = ""


def decode(content: bytes, charset_name: str = "") -> Decoded:
    """Decode bytes by their byte order mark, the declared charset, or their looks.

    What cannot be decoded becomes replacement characters. Raises Unsupported for bytes that are not text.
    """
    if known := decode_if_certain(content):
        return Decoded(known)
    charset = _charset(charset_name)
    if wide := _wide(content, charset):
        return Decoded(content.decode(wide, "replace"))
    is_shifted = bool(_SHIFT.search(content, 0, _SAMPLE)) and b"\0" not in content[:_SAMPLE]
    if not is_shifted and _is_binary(content):
        if _is_wide_text(content, found := _detect(content)[0]):
            return Decoded(content.decode(found, "replace"))
        raise Unsupported("The file holds binary data, not text.")
    if charset not in {"", "utf-8", "ascii"} and (not is_shifted or charset.startswith(("iso2022", "hz"))):
        for name in (_SUPERSETS.get(charset, charset), charset):
            try:
                return Decoded(content.decode(name))
            except UnicodeError:
                pass
    if not is_shifted and _is_mostly_utf_8(content):
        return Decoded(content.decode("utf-8", "replace"))
    encoding, confidence = _of_seven_bits(content) if is_shifted else _detect(content)
    note = f"No charset is declared. The text was read as {encoding}, which is not certain."
    return Decoded(content.decode(encoding, "replace"), note if confidence < _SURE else "")


def decode_if_certain(content: bytes) -> str:
    """Return an empty text unless the bytes have a byte order mark, or are UTF-8 without controls."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    may_be_shifted = text.isascii() and _SHIFT.search(content) is not None
    return "" if may_be_shifted or _is_binary(content) else text


def tidy(text: str, limit: int) -> str:
    """Drop characters that XML 1.0 forbids, join words that a line's end divides, and shorten runs of blanks.

    Nobody knows whether a hyphen at the end of a line belongs to its word: the word comes with it and then, on the same
    line, without it.
    """
    text = _SOFT_BREAK.sub("", text[: 4 * limit])
    text = _FORBIDDEN.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    for blank in _ASCII_BLANKS if text.isascii() else _BLANKS:
        text = text.replace(blank, " ")
    text = _shorten_runs(text, "  ", " ").replace(" \n", "\n").replace("\n ", "\n").replace("\u2010\n", "-\n")
    if "-\n" in text:
        text = _LINE_HYPHEN.sub(r"\1-\2 \1\2", text)
    return _shorten_runs(text, "\n\n\n", "\n\n").strip()[:limit]


def _shorten_runs(text: str, run: str, replacement: str) -> str:
    # Each round shortens every run by at least a third, so a run of a million characters takes about thirty rounds.
    while run in text:
        text = text.replace(run, replacement)
    return text


def _wide(content: bytes, charset: str) -> str:
    """Return the encoding of UTF-16 or UTF-32 without a byte order mark, else an empty text.

    A ``charset`` that says so is believed. Otherwise it is UTF-16 if, at the beginning, most bytes at even positions
    are zero and hardly any at odd positions, or the other way round.
    """
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


def _is_wide_text(content: bytes, encoding: str) -> bool:
    if not encoding.startswith(("utf-16", "utf-32")):
        return False
    try:
        text = content[: _SAMPLE - _SAMPLE % 4].decode(encoding)
    except UnicodeDecodeError:
        return False
    if any(unicodedata.category(character) in {"Cc", "Cn", "Co"} for character in set(text) - set("\t\r\n")):
        return False
    letters = (character for character in text if character.isalpha() and ord(character) > _LAST_LATIN)
    scripts = Counter("east" if _EAST.match(letter) else ord(letter) >> 8 for letter in letters)
    return bool(scripts) and scripts.most_common(1)[0][1] > 0.9 * scripts.total()


def _is_binary(content: bytes) -> bool:
    head = content[: 1 << 20]
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return head.count(0) > len(head) // 1000 or controls > len(head) // 50


def _charset(charset_name: str) -> str:
    label = _LABEL.search(charset_name.lower())
    names = [label[0], re.sub(r"-[ie]$", "", label[0])] if label else []
    names += [right + names[0][len(wrong) :] for wrong, right in _LABEL_CHANGES if names and names[0].startswith(wrong)]
    for name in names:
        try:
            codec = codecs.lookup(name)
        except (LookupError, ValueError):
            continue
        # A name such as `hex` or `rot13` is a codec too, but no charset.
        if getattr(codec, "_is_text_encoding", True):
            return codec.name
    return ""


def _is_mostly_utf_8(content: bytes) -> bool:
    """Check most runs of bytes beyond ASCII: a text may have a few damaged places."""
    good = bad = 0
    for run in _HIGH_RUNS.finditer(content[: 1 << 20]):
        try:
            run[0].decode("utf-8")
            good += 1
        except UnicodeDecodeError:
            bad += 1
    return good > bad or not bad


def _of_seven_bits(content: bytes) -> tuple[str, float]:
    for encoding in ("iso2022_jp_ext", "iso2022_jp_2004", "iso2022_kr"):
        try:
            content.decode(encoding)
        except UnicodeError:
            continue
        return encoding, 1.0
    return "iso2022_jp_ext", 0.0


def _detect(content: bytes) -> tuple[str, float]:
    sample = content[:_SAMPLE]
    is_little = len(sample) - len(sample.translate(None, bytes(range(128, 256)))) < _FEW_BYTES
    era = chardet.EncodingEra.MODERN_WEB if is_little else chardet.EncodingEra.ALL
    found = chardet.detect(sample, encoding_era=era, compat_names=False, max_bytes=_SAMPLE)
    encoding = found["encoding"] or "cp1252"
    encoding = "cp1252" if encoding in {"ascii", "utf-8", "utf-7"} else _SUPERSETS.get(encoding, encoding)
    if encoding == "gb18030" and _KANA.search(sample.decode("gb18030", "replace")):
        # Chinese texts hardly hold kana, which have the same bytes in both.
        try:
            sample[: len(sample) - len(sample) % 2].decode("euc_jis_2004")
        except UnicodeDecodeError:
            pass
        else:
            encoding = "euc_jis_2004"
    return encoding, found["confidence"]
