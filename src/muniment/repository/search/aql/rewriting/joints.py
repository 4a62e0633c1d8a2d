"""Which words are one word in two spellings? e-mail is email, U.S.A. is USA, and 1234-5678 is 12345678.

Groups of a long number may have blanks and other signs between, as in +49 (30) 1234567 or DE00 1234 5678: letters and
digits decide.

Source: docs/aql.md, "Variants"; decision 0094.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from muniment.repository.search.aql.keywords import UNSPACED
from muniment.repository.search.aql.tree import (
    Both,
    Either,
    Fulltext,
    Keywords,
    Query,
    Term,
    with_fulltexts,
    with_parts,
)

LONGEST = 60

MOST_GROUPS = 10
"""A longer row of numbers is taken for a table."""

LEAST_DIGITS = 7

_LONG_GROUP = 5
_APOSTROPHES = "'\u2018\u2019"

HYPHENS = "\u2010\u2011\u2012\u2013\u2212"
"""The hyphens and dashes that join the parts of a word or number beside that of ASCII. The em dash is none of them."""

_SIGNS = f"{_APOSTROPHES}\\-{HYPHENS}\u05be\u00b7\u200c"
_LETTER = f"(?:(?![{UNSPACED}\uac00-\ud7a3])[^\\W_]|[\u0900-\u0963\u0981-\u0df3])"
_SIGN = re.compile(f"[{_SIGNS}](?:(?<=\\w.)|(?<=[\u0900-\u0df3].))(?=\\w)")
_ASCII_SIGN = re.compile("['-](?<=[A-Za-z0-9].)(?=[A-Za-z0-9])")
_ASCII_PARTS = re.compile("[A-Za-z0-9]+(?:['-][A-Za-z0-9]+)*")
_ALSO_IN_WORDS = frozenset(_SIGNS.replace("\\", "")) | frozenset(map(chr, range(0x900, 0xDF4)))
_WITHOUT_SIGNS = dict.fromkeys(map(ord, _SIGNS.replace("\\", "")))
_PARTS = re.compile(f"{_LETTER}+(?:[{_SIGNS}]{_LETTER}+)*")
_INITIALS = re.compile(r"\.(?<![^\W_]{2}\.)(?<=[^\W\d_]\.)(?=[^\W\d_](?![^\W_]))")

_BLANKS = " \u00a0\u2007\u2009\u202f"
_BLANK = f"[{_BLANKS}]"
_BEGINS = "(?<![A-Za-z0-9].)(?<![A-Za-z0-9][-/.,:].)"
_ENDS = "(?![A-Za-z0-9]|[-/.,:][A-Za-z0-9])"
_GROUP = "[A-Z]{0,4}[0-9][A-Za-z0-9]*+"
_BETWEEN = f"(?:[-/{HYPHENS}]|{_BLANK}?\\(|\\)[{_BLANKS}-]?|{_BLANK})"
_NUMBER = re.compile(
    f"[A-Z0-9](?=[A-Z0-9 (/.\u00a0-\u2013\u2212-]){_BEGINS}"
    f"(?:(?:(?<=[A-Z])[A-Z]{{0,4}}{_BETWEEN}(?:[A-Z]{{1,5}}{_BETWEEN})?)?+{_GROUP}"
    "|[A-Za-z0-9]*+(?<=[0-9])|(?<=[0-9])[A-Za-z0-9]*+)"
    f"(?:(?:{_BETWEEN}{_GROUP})++|(?:\\.{_GROUP})++){_ENDS}"
)
_IBAN = re.compile(
    f"[A-Z](?=[A-Z][0-9])(?<![A-Za-z0-9].)[A-Z][0-9]{{2}}(?:{_BLANK}[A-Z0-9]{{4}}){{2,7}}(?:{_BLANK}[A-Z0-9]{{1,3}})?{_ENDS}"
)
_CODE = re.compile("(?![AI] )[A-Z]{1,5} [0-9][A-Za-z0-9]*(?:[-/][A-Za-z0-9]+)*")
_WITH_SIGN = re.compile("[A-Za-z]+[/_.][0-9]+")
_GROUPS = re.compile("[A-Za-z0-9]+")
_WORDS = re.compile("[^\\W_]")
_YEARS = re.compile("(?:(?:1[5-9]|20)[0-9]{2} ?)+")
_DIGITS = re.compile("[0-9]")


class Joined(NamedTuple):
    """A word without signs and blanks, and what it stands for."""

    word: str
    start: int
    end: int


def joined(text: str) -> Iterator[Joined]:
    done = 0
    for sign in (_ASCII_SIGN if text.isascii() else _SIGN).finditer(text):
        if (at := sign.start()) >= done:
            one = _around(text, at)
            done = max(one.end, at) + 2
            if one.word:
                yield one
    yield from _initials(text)
    for pattern in (_NUMBER, _IBAN):
        for number in pattern.finditer(text):
            yield from _spellings(number)


def as_one(text: str) -> str:
    """Return an empty text for no word or number with signs or blanks between its parts."""
    upper = text.upper() if text.isascii() else text
    sought = _letters(text)
    found = [*joined(text), *(joined(upper) if upper != text else ())]
    code = sought if _CODE.fullmatch(text) or _WITH_SIGN.fullmatch(text) else ""
    return next((one.word for one in found if _letters(one.word) == sought), code)


def widen(query: Query) -> Query:
    """Let neighbours that may be groups of a number also find it as one word."""
    return with_fulltexts(query, _fulltext)


def is_number(keywords: Either) -> bool:
    """Return whether keywords are the groups of a number, or the number as one word, as ``grouped`` makes them."""
    *groups, number = keywords.parts
    return (
        len(groups) == 1
        and isinstance(groups[0], Both)
        and isinstance(number, Term)
        and number.text == " ".join(part.text for part in groups[0].parts if isinstance(part, Term))
    )


def with_grouped_numbers(parts: Sequence[Keywords]) -> Iterator[Keywords]:
    """Put neighbours together that may be the groups of a number, so that they also find it as one word.

    A number has many digits, or it is a code: a word of few capitals before its digits, as in ISO 9001. Groups that
    may be several numbers also count apart.
    """
    at = 0
    while at < len(parts):
        terms = _take_terms(parts[at : at + MOST_GROUPS])
        for end in range(len(terms), 1, -1):
            if _may_be_number(text := " ".join(term.text for term in terms[:end])):
                yield Either((Both(terms[:end]), Term(text))) if _may_stand_apart(terms[:end]) else Term(text)
                at += end
                break
        else:
            yield parts[at]
            at += 1


def _fulltext(fulltext: Fulltext) -> Fulltext:
    if fulltext.keywords is None:
        return fulltext
    # The groups of a number are no sequence that tells more than the number as one word.
    is_number = fulltext.sequence is not None and as_one(fulltext.sequence.text) != ""
    sequence = None if is_number else fulltext.sequence
    return msgspec.structs.replace(fulltext, keywords=_keywords(fulltext.keywords), sequence=sequence)


def _keywords(keywords: Keywords) -> Keywords:
    match keywords:
        case Both():
            parts = tuple(with_grouped_numbers([_keywords(part) for part in keywords.parts]))
            return parts[0] if len(parts) == 1 else msgspec.structs.replace(keywords, parts=parts)
        case _:
            return with_parts(keywords, _keywords)


def _may_be_number(text: str) -> bool:
    if _CODE.fullmatch(text):
        return True
    return sum(map(str.isdigit, text)) >= LEAST_DIGITS and not _YEARS.fullmatch(text) and as_one(text) != ""


def _may_stand_apart(groups: Sequence[Term]) -> bool:
    """Return false for groups that another number may have, too: equal ones, or several short ones of digits."""
    texts = [group.text for group in groups]
    if len(set(texts)) < len(texts):
        return False
    return len(texts) == 2 or all(len(text) >= _LONG_GROUP or any(map(str.isalpha, text)) for text in texts[1:])


def _letters(text: str) -> str:
    return "".join(_WORDS.findall(text.upper()))


def _take_terms(parts: Iterable[Keywords]) -> tuple[Term, ...]:
    terms = []
    for part in parts:
        if not isinstance(part, Term) or part.fuzzy or not any(map(str.isalnum, part.text)):
            break
        terms.append(part)
    return tuple(terms)


def _around(text: str, sign: int) -> Joined:
    start, least = sign, max(0, sign - LONGEST)
    while start > least and (text[start - 1].isalnum() or text[start - 1] in _ALSO_IN_WORDS):
        start -= 1
    found = (_ASCII_PARTS if text.isascii() else _PARTS).search(text, start, sign + LONGEST)
    if found is None or not found.start() < sign < found.end() or found.start() == least > 0:
        return Joined("", sign, sign)
    word, end = found[0], found.end()
    if word[-1] in "sS" and word[-2] in _APOSTROPHES:
        word, end = word[:-2], end - 2  # the genitive
    without = word.translate(_WITHOUT_SIGNS)
    return Joined(without if len(without) < len(word) <= LONGEST else "", found.start(), end)


def _initials(text: str) -> Iterator[Joined]:
    start = end = -1
    for stop in _INITIALS.finditer(text):
        if stop.start() != end:
            if start >= 0:
                yield Joined(text[start:end].replace(".", ""), start, end)
            start = stop.start() - 1
        end = stop.end() + 1
    if start >= 0:
        yield Joined(text[start:end].replace(".", ""), start, end)


def _spellings(number: re.Match[str]) -> Iterator[Joined]:
    if len(number[0]) <= LEAST_DIGITS or len(_DIGITS.findall(number[0])) < LEAST_DIGITS:
        return
    groups = list(_GROUPS.finditer(number[0]))
    if len(groups) > MOST_GROUPS:
        return
    first = next(at for at, group in enumerate(groups) if _DIGITS.search(group[0]))
    for start in range(min(first + 1, len(groups) - 1)):
        word = "".join(group[0] for group in groups[start:])
        if len(word) <= LONGEST:
            yield Joined(word, number.start() + groups[start].start(), number.end())
