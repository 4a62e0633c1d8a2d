"""How is a part of a text shown?"""

import re

from muniment.repository.search.analysis.text import BREAK

LENGTH = 200
"""The approximate length of a part, in characters."""

MORE = "…"
"""Stands where the text goes on."""

_BEFORE = 60
_NARROW_BLANKS = "\u00a0\u2007\u2009\u202f"
_ANY_NARROW = re.compile(f"[{_NARROW_BLANKS}]")
_NOISE = re.compile(
    r"(?m)([=\-_*#~+.·•─━═—–])(?:[ \t]*\1){3,}|^[ \t]*([=\-_*~])\2\2[ \t]*$"
    r"|^[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?)?[ \t]*$"
    r"|^[ \t]*#{1,6}[ \t]+(?=\S)|(?<![\w*])\*\*(?=\w|$)|(?<=[\w.,;:!?)])\*\*(?![\w*])"
)
"""Rules, and the marks of Markdown: headings, bold words, the line below the head of a table."""

_MAY_BE_NOISE = re.compile(
    r"(?m)([=\-_*#~+.·•─━═—–])"
    r"(?:(?:[ \t]*\1){3}|(?<=[=\-_*~])\1\1[ \t]*$|(?<=-):?[ \t]*\||(?<=#)[ \t]|(?<=\*)\*)"
)
"""A part of whatever ``_NOISE`` matches, found in a tenth of the time."""
_WHITE = re.compile(rf"[^\S{_NARROW_BLANKS}]+")
_SENTENCE_END = re.compile(
    r"""[.!?\u3002\uff01\uff1f](?:(?<=[.!?])["')\]\u201d]*\s+(?=["'(\[\u201c]?[^\W\da-z_])|(?<=[^.!?]))"""
)


def beginning(text: str) -> str:
    return cut(text, 0, 0)


def cut(text: str, first: int, last: int) -> str:
    """Cut out the part of a text from a little before ``first`` to a little after ``last``, both counted in characters.

    The part begins and ends at the edge of a sentence if one is near, otherwise at the edge of a word.
    """
    # White space is rare enough that most texts need no more than the shorter piece.
    text_before = _collapse(text[max(0, first - 2 * _BEFORE) : first]) if first else ""
    if len(text_before) <= _BEFORE and first > 2 * _BEFORE:
        text_before = _collapse(text[max(0, first - 4 * _BEFORE) : first])
    gap = " " if first and text[first - 1].isspace() and text_before else ""
    if len(text_before) > _BEFORE:
        near = text_before[-_BEFORE:] + gap
        sentence = _SENTENCE_END.search(near + text[first])
        if sentence is not None and sentence.end() <= len(near):
            text_before, gap = near[sentence.end() :], ""
        else:
            near = near[: len(near) - len(gap)]
            text_before = MORE + near[near.find(" ") + 1 :]
    elif first > 4 * _BEFORE:
        text_before = MORE + text_before
    room = LENGTH - len(text_before)
    after = _collapse(text[first : first + room + _BEFORE])
    if len(after) <= room:
        after = _collapse(text[first : first + 4 * LENGTH])
    if len(after) > room:
        after = _ending(after, max(last - first, room // 2), room)
    elif len(text) > first + 4 * LENGTH and text[first + 4 * LENGTH :][:4096].strip():
        after += MORE
    return (text_before + gap + after).replace(BREAK, "")


def _collapse(text: str) -> str:
    if _MAY_BE_NOISE.search(text):
        text = _NOISE.sub(lambda noise: " " if noise[0][0] != "*" or len(noise[0]) > 2 else "", text)
    if text.isascii() or _ANY_NARROW.search(text) is None:
        return " ".join(text.split())
    return _WHITE.sub(" ", text).strip()


def _ending(text: str, least: int, most: int) -> str:
    ends = [match.end() for match in _SENTENCE_END.finditer(text, least, most + 2) if match.end() <= most]
    if ends:
        return text[: ends[-1]].rstrip()
    text = text[:most]
    return text[: text.rfind(" ")] + MORE if " " in text else text + MORE
