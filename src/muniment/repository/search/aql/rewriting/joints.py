"""Which words are one word in two spellings? e-mail is email, U.S.A. is USA, and 1234-5678 is 12345678.

Groups of a long number may have blanks and other signs between, as in +49 (30) 1234567 or DE00 1234 5678: letters and
digits decide. A blank may also stand between a name and its number, or a number and its unit: iPhone 15, 10 mm.

Source: docs/aql.md, "Variants"; decision 0094.
"""

import functools
import itertools
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
_LONGEST_NUMBER = 2 * LONGEST
"""A number is no longer with the signs and blanks between its groups."""

FEW_WORDS = 5
"""More words than this are a sentence, in which a word and the number beside it are two words."""

_LONG_GROUP = 5
_APOSTROPHES = "'\u2018\u2019"

HYPHENS = "\u2010\u2011\u2012\u2013\u2212"
"""The hyphens and dashes that join the parts of a word or number beside that of ASCII. The em dash is none of them."""

_SIGNS = f"{_APOSTROPHES}\\-{HYPHENS}\u05be\u00b7\u200c"
_LETTER = f"(?:(?![{UNSPACED}\uac00-\ud7a3])[^\\W_]|[\u0900-\u0963\u0981-\u0df3])"
_SIGN = re.compile(f"[{_SIGNS}](?:(?<=\\w.)|(?<=[\u0900-\u0df3].))(?=\\w)")
_ASCII_SIGN = re.compile("['-](?<=[A-Za-z0-9].)(?=[A-Za-z0-9])")
_MAY_BE_JOINED = re.compile("['.-](?<=[A-Za-z0-9].)(?=[A-Za-z0-9])|[0-9]")
"""Only a text in ASCII that has this has joined words."""

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
_AREA = re.compile(
    "(?<![A-Za-z0-9])(?<![A-Za-z0-9][-/.,:])"
    f"(?:\\(?0[1-9][0-9]{{1,4}}|(?<=\\+)[1-9][0-9]{{0,2}}{_BLANK}?(?:\\(0\\){_BLANK}?)?\\(?[1-9][0-9]{{1,4}})\\)?\\Z"
)
_LONGEST_AREA, _MOST_DIGITS = 16, 15
_LOCAL = re.compile(f"[0-9]++(?:(?:[-/{HYPHENS}]|{_BLANK})[0-9]++)*+{_ENDS}")
_TRUNK = "(0)"
"""A digit of a telephone number that is left out after the code of the country."""

_TYPED_TRUNK = re.compile(f"(\\+[1-9][0-9]{{0,2}}){_BLANK}?\\(?0\\)?{_BLANK}(?=[1-9])")
_CODE = re.compile("(?![AI] )[A-Z]{1,5} [0-9][A-Za-z0-9]*(?:[-/][A-Za-z0-9]+)*")
_UNIT = (
    "(?:(?i:[ckmdnµμ]?m[23²³]?|km/h|m/s|[kmµμ]?g|[cdhm]?l|t|lbs?|oz|ft|yd|mi|h|min|[km]?v|[vk]?va|ma|m?ah|[vka]?[vd]c|"
    "[kmg]?wh?|[kmg]?hz|k?n|nm|[km]?j|[kmh]?pa|m?bar|psi|db|[kmgtp]?b(?:it)?(?:/s)?|rpm|dpi|px|pt|ppm|ha|k?cal|mol|lm|lx|"
    "eur|usd|chf|gbp)|°?[CFK]|A)"
)
_SEPARATOR = "[.,'_\u2018\u2019\u202f]"
_MEASURE = re.compile(f"(?P<number>[0-9]+(?:{_SEPARATOR}[0-9]+)*){_BLANK}?(?P<unit>{_UNIT})")
_FROM_DIGIT = re.compile(
    f"[0-9](?:(?P<apart>\\)?(?:{_BLANK}[-/{HYPHENS}]{_BLANK}?|[-/{HYPHENS}]{_BLANK})(?=[0-9]))"
    f"|(?P<measure>(?<![A-Za-z0-9].)(?<![0-9]{_SEPARATOR}.)[0-9]{{0,2}}(?P<sign>{_SEPARATOR})[0-9]{{3}}"
    f"(?:(?P=sign)[0-9]{{3}})*{_BLANK}{_UNIT}(?![A-Za-z0-9]))"
    f"|(?P<iban>(?<=[a-z]{{2}}.)(?<![A-Za-z0-9]...)[0-9](?:{_BLANK}[a-z0-9]{{4}}){{2,7}}(?:{_BLANK}[a-z0-9]{{1,3}})?{_ENDS}))"
)
_NAMED = re.compile(
    r"(?:[^\W\d_]{1,5} (?!0)|(?P<long>[^\W\d_]+ ))(?!(?:1[5-9]|20)[0-9]{2}$)[0-9][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*"
)
_MIXED = re.compile(r"([0-9]+(?:[.,][0-9]+)?)([^\W\d_].*)|([^\W\d_]+)([0-9].*)")
_WORD_AND_PHONE = re.compile(r"(?=.*[a-z])[^\W\d_]+ \(?[+0]")
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
    if text.isascii() and not _MAY_BE_JOINED.search(text):
        return
    done = 0
    for sign in (_ASCII_SIGN if text.isascii() else _SIGN).finditer(text):
        if (at := sign.start()) >= done:
            one = _around(text, at)
            done = max(one.end, at) + 2
            if one.word:
                yield one
    yield from _initials(text)
    if _DIGITS.search(text):
        yield from _numbers(text)


def _numbers(text: str) -> Iterator[Joined]:
    for pattern in (_NUMBER, _IBAN):
        for number in pattern.finditer(text):
            yield from _spellings(text, *number.span())
    for found in _FROM_DIGIT.finditer(text):
        if found["apart"]:
            yield from _after_area(text, found)
        elif found["measure"]:
            yield Joined("".join(_GROUPS.findall(found[0])), *found.span())
        else:
            yield from _spellings(text, found.start() - 2, found.end())


def as_one(text: str) -> str:
    """Return an empty text for no word or number with signs or blanks between its parts."""
    if measure := _MEASURE.fullmatch(text):
        return measure["number"] + measure["unit"].lstrip("°")
    if number := _number_as_one(text):
        return number
    is_code = _CODE.fullmatch(text) or _WITH_SIGN.fullmatch(text) or _NAMED.fullmatch(text)
    return "".join(_WORDS.findall(text)) if is_code else ""


def taken_apart(word: str) -> str:
    """Put a blank between a name and its number, or a number and its unit."""
    mixed = _MIXED.fullmatch(word)
    return word if mixed is None else " ".join([part for part in mixed.groups() if part])


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

    A number has many digits, or it is a code: a word of few capitals before its digits, as in ISO 9001. Where the parts
    are few, it may also be any word before digits, or digits before a unit. Groups that may be several numbers also
    count apart.
    """
    at, few = 0, len(parts) <= FEW_WORDS
    while at < len(parts):
        terms = _take_terms(parts[at : at + MOST_GROUPS])
        end = _end_of_number([term.text for term in terms], few=few)
        if end > 1:
            one = Term(" ".join(term.text for term in terms[:end]))
            yield Either((Both(terms[:end]), one)) if _may_stand_apart(terms[:end]) else one
        else:
            yield parts[at]
        at += end


def with_groups(text: str) -> list[str]:
    """Split a text at its blanks, but not between the groups of a number."""
    grouped = with_grouped_numbers([Term(word) for word in text.split()])
    words = (part.parts[-1] if isinstance(part, Either) else part for part in grouped)
    return [word.text for word in words if isinstance(word, Term)]


def may_be_apart(text: str) -> bool:
    """Return whether neighbours that ``with_grouped_numbers`` has put together are words by themselves, too."""
    return " " in text and not _may_be_number(text)


def _fulltext(fulltext: Fulltext) -> Fulltext:
    if fulltext.keywords is None:
        return fulltext
    sequence = fulltext.sequence
    if sequence is not None and not _may_be_sequence(with_groups(sequence.text)):
        sequence = None
    return msgspec.structs.replace(fulltext, keywords=_keywords(fulltext.keywords), sequence=sequence)


def _may_be_sequence(words: Sequence[str]) -> bool:
    """Return false for a number alone, of which its groups tell no more, and beside a long one, which may have any."""
    return len(words) > 1 and not any(len(_DIGITS.findall(word)) >= LEAST_DIGITS for word in words)


def _keywords(keywords: Keywords) -> Keywords:
    match keywords:
        case Both():
            parts = tuple(with_grouped_numbers([_keywords(part) for part in keywords.parts]))
            return parts[0] if len(parts) == 1 else msgspec.structs.replace(keywords, parts=parts)
        case _:
            return with_parts(keywords, _keywords)


def _end_of_number(words: Sequence[str], *, few: bool) -> int:
    """Return how many of the words are the groups of one number, or 1."""
    if not any(map(str.isdigit, "".join(words))):
        return 1
    texts = list(itertools.accumulate(words, "{} {}".format))
    end = next((end for end in range(len(words), 1, -1) if _may_be_number(texts[end - 1])), 1)
    if end > 1 or len(words) < 2 or not few:
        return end
    return 2 if _MEASURE.fullmatch(texts[1]) or (_is_named(texts[1]) and not _begins_with_number(words[1:])) else 1


def _begins_with_number(words: Sequence[str]) -> bool:
    """Return whether the digits belong to what follows, as in "pipe 10 mm" or "fax 089 123456"."""
    return _MEASURE.fullmatch(words[0]) is not None or _end_of_number(words, few=True) > 1


def _is_named(text: str) -> bool:
    named = _NAMED.fullmatch(text)
    return named is not None and (named["long"] is None or len(_DIGITS.findall(text)) < LEAST_DIGITS)


def _may_be_number(text: str) -> bool:
    return _CODE.fullmatch(text) is not None or (len(text) <= _LONGEST_NUMBER and _is_long_number(text))


@functools.lru_cache(maxsize=2000)
def _is_long_number(text: str) -> bool:
    """A question's words are looked at several times."""
    if sum(map(str.isdigit, text)) < LEAST_DIGITS or _YEARS.fullmatch(text) or _WORD_AND_PHONE.match(text):
        return False
    return _number_as_one(text) != ""


def _may_stand_apart(groups: Sequence[Term]) -> bool:
    """Return false for groups that another number may have, too: equal ones, or several short ones of digits."""
    texts = [group.text for group in groups]
    if len(set(texts)) < len(texts):
        return False
    return len(texts) == 2 or all(len(text) >= _LONG_GROUP or any(map(str.isalpha, text)) for text in texts[1:])


def _number_as_one(text: str) -> str:
    text = _TYPED_TRUNK.sub(r"\1 ", text)
    upper = text.upper() if text.isascii() else text
    sought = _letters(text)
    found = [*joined(text), *(joined(upper) if upper != text else ())]
    return next((one.word for one in found if _letters(one.word) == sought), "")


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


def _spellings(text: str, start: int, end: int) -> Iterator[Joined]:
    number = text[start:end]
    if len(number) <= LEAST_DIGITS or len(_DIGITS.findall(number)) < LEAST_DIGITS:
        return
    trunk = number.find(_TRUNK) if text.startswith("+", start - 1) else -1
    groups = [group for group in _GROUPS.finditer(number) if trunk < 0 or group.start() != trunk + 1]
    if len(groups) > MOST_GROUPS:
        return
    first = next(at for at, group in enumerate(groups) if _DIGITS.search(group[0]))
    for at in range(min(first + 1, len(groups) - 1)):
        word = "".join(group[0] for group in groups[at:])
        if len(word) <= LONGEST:
            yield Joined(word, start + groups[at].start(), end)


def _after_area(text: str, sign: re.Match[str]) -> Iterator[Joined]:
    """Yield a telephone number with a sign and blanks after the code of its area."""
    end = sign.start() + (2 if ")" in sign[0] else 1)
    area, local = _AREA.search(text, max(0, end - _LONGEST_AREA), end), _LOCAL.match(text, sign.end())
    if area is not None and local is not None:
        word = "".join(_DIGITS.findall(area[0].replace(_TRUNK, "") + local[0]))
        if LEAST_DIGITS <= len(word) <= _MOST_DIGITS:
            yield Joined(word, area.start(), local.end())
