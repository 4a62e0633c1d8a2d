"""What does a person learn of how their question was read?"""

import re
from typing import NamedTuple

from muniment.repository.api.endpoints.search.typed_questions import Understood
from muniment.repository.search.answering.results import HitPage
from muniment.repository.search.aql.rewriting import relaxation
from muniment.repository.search.aql.typed import FIELDS, LeftOut, TypedField

_MOST = 6
_SHOWN = 60

_MEANT = {
    **dict.fromkeys(("filetype", "ext", "extension", "mime", "mimetype"), "format"),
    **dict.fromkeys(("from", "author", "by", "creator", "user", "sender"), "owner"),
    **dict.fromkeys(("intitle", "subject", "headline"), "title"),
    **dict.fromkeys(("filename", "file", "inname"), "name"),
    **dict.fromkeys(("folder", "path", "site", "location", "directory"), "in"),
    **dict.fromkeys(("kind", "doctype", "class"), "type"),
    **dict.fromkeys(("until", "older"), "before"),
    **dict.fromkeys(("since", "newer"), "after"),
}


class Hint(NamedTuple):
    """A sentence, and perhaps a question with what the link to it says."""

    sentence: str
    offer: str = ""
    question: str = ""


class _Foreign(NamedTuple):
    """What other search engines write, what to say, and what to write instead."""

    pattern: re.Pattern[str]
    sentence: str
    instead: str


_FOREIGN = (
    _Foreign(
        re.compile(r'"([^"]*)"~\d+'), "A number after a phrase says nothing here: its words follow each other.", r'"\1"'
    ),
    _Foreign(
        re.compile(r"(?<!\S)([^\W_]+)~[\d.]*(?!\S)"), "~ says nothing here: words are corrected by themselves.", r"\1"
    ),
    _Foreign(
        re.compile(r'((?<!\S)[^\W\d_]{3,}|")\^\d+(?:\.\d+)?(?!\S)'), "^ says nothing here: no word has a weight.", r"\1"
    ),
    _Foreign(
        re.compile(r"(?<!\S)\+([^\W\d_]\w*)"),
        "+ says nothing here. A word in quotation marks has to be there.",
        r'"\1"',
    ),
    _Foreign(re.compile(r"(?<!\S)\|{1,2}(?!\S)"), "| says nothing here. OR stands between alternatives.", "OR"),
    _Foreign(re.compile(r"(?<!\S)&&(?!\S)"), "&& says nothing here, because all words are looked for.", "AND"),
    _Foreign(
        re.compile(r"(?<=\S )(?:NEAR|ADJ|WITHIN|W|N)(?:/\d+|(?<=NEAR))(?= \S)"),
        "There are no distances here. Words that stand near each other come first.",
        "",
    ),
    _Foreign(
        re.compile(r"[\[{](\S+) TO (\S+)[\]}]"), "There are no ranges here. Days have after: and before:.", r"\1 \2"
    ),
    _Foreign(re.compile(r"(?<!\S)%?([^\W\d_]{2,})%(?!\S)"), "% says nothing here. * stands for any letters.", r"\1*"),
)


def hints_of(understood: Understood, question: str, page: HitPage) -> list[Hint]:
    translation = understood.translation
    hints = [_left_out(each) for each in translation.left_out]
    hints += [_as_words(each, understood.reasons.get(each, ""), question) for each in translation.words]
    hints += [
        Hint(f"{_shown(each.written)} narrows a whole question: beside OR or in parentheses it is searched as words.")
        for each in translation.misplaced
    ]
    hints += [
        Hint(each.sentence, "Search without it", " ".join(each.pattern.sub(each.instead, question).split()))
        for each in _FOREIGN
        if each.pattern.search(question)
    ]
    if page.left_out:
        others = "one more is" if page.left_out == 1 else f"{page.left_out} more are"
        hints.append(Hint(f"Only the first {relaxation.MOST_WORDS} words were looked for: {others} left out."))
    return list(dict.fromkeys(hints))[:_MOST]


def _left_out(each: LeftOut) -> Hint:
    return Hint(f"Without what has {_shown(each.written)}.", "Search for it as a word", each.as_word)


def _as_words(field: TypedField, reason: str, question: str) -> Hint:
    if field.name in FIELDS:
        why = reason or f"{field.name}: needs a word or a phrase in quotation marks behind it."
        return Hint(f"{why} So {_shown(field.written)} is searched as words.")
    sentence = f"There is no field {field.name[:_SHOWN]}:, so {_shown(field.written)} is searched as words."
    meant = _MEANT.get(field.name, "")
    if not meant:
        return Hint(f"{sentence} The fields are {', '.join(f'{name}:' for name in FIELDS)}.")
    begin = question.lower().find(f"{field.name}:")
    instead = f"{question[:begin]}{meant}:{question[begin + len(field.name) + 1 :]}"
    return Hint(sentence, f"Search with {meant}:", instead)


def _shown(text: str) -> str:
    return f"“{text}”" if len(text) <= _SHOWN else f"“{text[:_SHOWN]}…”"
