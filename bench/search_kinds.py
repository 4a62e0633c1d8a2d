"""The kinds of search that are measured, a record each: what we, the bare engine and OpenSearch are asked.

A new kind is one more record in ``KINDS``: ``python -m bench --only NAME`` then measures it on the same documents, and
so does the whole run. Everything else about a search is the same for all kinds: type, ACL, range of sizes, total, 20
entries with excerpts.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import tantivy

from bench.ours import MEMBER, PERSON
from bench.page import Target, at_least, at_most
from bench.passages import queries

CLIENTS = (1, 8)
"""How many clients search at one time, in rounds of their own."""


@dataclass(frozen=True)
class Kind:
    """One kind of search. ``asked`` chooses the words of its queries from the texts.

    ``ours`` writes the words as an expression of AQL, ``engine`` as a query of tantivy, ``theirs`` as one of
    OpenSearch. ``p50`` are the targets beside the bare engine, ``throughput`` those beside OpenSearch, by clients.
    Each side counts its hits by the properties ``facets``, and orders them by ``sorts``; the engine alone uses only the
    first of these. ``person`` asks our server. ``needed`` tells our server how many of the words a hit needs.
    """

    row: str
    work: str
    asked: Callable[[Sequence[str]], list[list[str]]]
    ours: Callable[[Sequence[str]], str]
    engine: Callable[[tantivy.Index, Sequence[str]], tantivy.Query]
    theirs: Callable[[Sequence[str]], dict[str, Any]]
    p50: Mapping[int, Target] = field(default_factory=dict)
    throughput: Mapping[int, Target] = field(default_factory=dict)
    about: str = ""
    facets: tuple[str, ...] = ()
    sorts: tuple[str, ...] = ()
    person: str = PERSON
    needed: str = "all"

    @property
    def more(self) -> str:
        """The elements of our query document that stand beside its expressions."""
        counted = "".join(
            f'<facet-definition id="by_{name}"><attributes><attribute>{name}</attribute></attributes>'
            "<sort>FREQUENCY</sort></facet-definition>"
            for name in self.facets
        )
        ordered = "".join(f'<sort ascending="false">{name}</sort>' for name in self.sorts)
        facets = f"<facet-definitions>{counted}</facet-definitions>" if counted else ""
        return facets + (f"<sorts>{ordered}</sorts>" if ordered else "")


def phrases(texts: Sequence[str]) -> list[list[str]]:
    """Choose words with those that follow them most often, and often enough for every caller, from rare to common."""
    followers: dict[str, Counter[str]] = {word: Counter() for (word,) in singles(texts)}
    for text in texts:
        for first, second in pairwise(text.lower().split()):
            if first in followers and _PLAIN.fullmatch(second):
                followers[first][second] += 1
    common = {first: seconds.most_common(1) for first, seconds in followers.items()}
    return [[first, second] for first, found in common.items() for second, times in found if times >= _OFTEN]


def beginnings(texts: Sequence[str]) -> list[list[str]]:
    """Choose the first five letters of words."""
    return [[start] for start in dict.fromkeys(words[0][:5] for words in queries(texts) if len(words[0]) > 5)]


def gaps(texts: Sequence[str]) -> list[list[str]]:
    """Choose words without their middle: how they begin and how they end."""
    return [[word[:3], word[-2:]] for word in dict.fromkeys(words[0] for words in queries(texts)) if len(word) > 6]


def questions(texts: Sequence[str]) -> list[list[str]]:
    """Choose eight words that follow each other in a text, as somebody who remembers a sentence types them."""
    found = []
    for text in texts[:: max(1, len(texts) // 200)]:
        words = re.findall(r"[A-Za-z]+", text)[4:12]
        if len(words) == _TYPED and sum(len(word) > 4 for word in words) > 3:
            found.append([word.lower() for word in words])
    return found[:50]


def singles(texts: Sequence[str]) -> list[list[str]]:
    """Choose single words."""
    return [words for words in queries(texts) if len(words) == 1]


def common(texts: Sequence[str]) -> list[list[str]]:
    """Choose single words that many passages hold, so that each list of subjects leaves some."""
    return singles(texts)[8:]


def _all_words(index: tantivy.Index, words: Sequence[str]) -> tantivy.Query:
    return index.parse_query(" AND ".join(words), ["body"])


def _in_list(index: tantivy.Index, words: Sequence[str]) -> tantivy.Query:
    subjects = tantivy.Query.term_set_query(index.schema, "subject", list(LISTED))
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, _all_words(index, words)), (tantivy.Occur.Must, subjects)])


def _their_words(words: Sequence[str]) -> dict[str, Any]:
    return {"match": {"body": {"query": " ".join(words), "operator": "and"}}}


def _fulltext(words: Sequence[str]) -> str:
    return f"<fulltext>{' '.join(words)}</fulltext>"


LISTED = ("subject-1", "subject-4", "subject-7")
"""The subjects of a query with a list: three of the ten there are."""

_OFTEN = 8
_TYPED = 8
_PLAIN = re.compile(r"[a-z]{4,14}")
_LATER_P50 = dict.fromkeys(CLIENTS, at_most(2))
_LATER_RATE = dict.fromkeys(CLIENTS, at_least(1))

WORDS = Kind(
    row="search",
    work="AQL search",
    asked=queries,
    ours=_fulltext,
    engine=_all_words,
    theirs=_their_words,
    p50={1: at_most(1.7, 1.2), 8: at_most(1, 0.8)},
    throughput={1: at_least(1.2, 2), 8: at_least(1.4, 2)},
    about="of one and two words",
)

PHRASE = Kind(
    row="search-phrase",
    work="AQL search for a phrase",
    asked=phrases,
    ours=lambda words: f"<fulltext>&quot;{' '.join(words)}&quot;</fulltext>",
    engine=lambda index, words: index.parse_query(f'"{" ".join(words)}"', ["plain"]),
    theirs=lambda words: {"match_phrase": {"body.plain": " ".join(words)}},
    p50=_LATER_P50,
    throughput=_LATER_RATE,
    about="each a phrase of two words",
)

PREFIX = Kind(
    row="search-prefix",
    work="AQL search for a prefix",
    asked=beginnings,
    ours=lambda words: f"<fulltext>{words[0]}*</fulltext>",
    engine=lambda index, words: tantivy.Query.fuzzy_term_query(index.schema, "plain", words[0], 0, True, True),
    theirs=lambda words: {"prefix": {"body.plain": words[0]}},
    p50=_LATER_P50,
    throughput=_LATER_RATE,
    about="each the first five letters of a word",
)

WILDCARD = Kind(
    row="search-wildcard",
    work="AQL search for a word with a gap",
    asked=gaps,
    ours=lambda words: f"<fulltext>{'*'.join(words)}</fulltext>",
    engine=lambda index, words: tantivy.Query.regex_query(index.schema, "plain", ".*".join(words)),
    theirs=lambda words: {"wildcard": {"body.plain": "*".join(words)}},
    p50=_LATER_P50,
    throughput=_LATER_RATE,
    about="each a word whose middle is a wildcard",
)

FILTERED = Kind(
    row="search-list",
    work="AQL search for a word AND a range AND a list",
    asked=common,
    ours=lambda words: (
        f'{_fulltext(words)}<property-list name="subject" operator="IN"><values>'
        f"{''.join(f'<value>{subject}</value>' for subject in LISTED)}</values></property-list>"
    ),
    engine=_in_list,
    theirs=lambda words: {"bool": {"must": [_their_words(words)], "filter": [{"terms": {"subject": LISTED}}]}},
    p50=_LATER_P50,
    throughput=_LATER_RATE,
    about="of one common word, in three of ten subjects",
)

FACETS = Kind(
    row="search-facets",
    work="AQL search with three facets",
    asked=singles,
    ours=_fulltext,
    engine=_all_words,
    theirs=_their_words,
    p50=_LATER_P50,
    throughput=_LATER_RATE,
    about="of one word, counted by ten subjects, forty titles and one type",
    facets=("subject", "title", "r_object_type"),
)

SORTS = Kind(
    row="search-sorts",
    work="AQL search with two sorts",
    asked=singles,
    ours=_fulltext,
    engine=_all_words,
    theirs=_their_words,
    p50=_LATER_P50,
    throughput=_LATER_RATE,
    about="of one word; the engine alone orders by the first of the two",
    sorts=("subject", "title"),
)

GROUPS = Kind(
    row="search-groups",
    work="AQL search of a caller in 1,000 groups",
    asked=queries,
    ours=_fulltext,
    engine=_all_words,
    theirs=_their_words,
    p50=_LATER_P50,
    throughput=_LATER_RATE,
    about="of one and two words",
    person=MEMBER,
)

QUESTION = Kind(
    row="question",
    work="typed question of eight words",
    asked=questions,
    ours=_fulltext,
    engine=lambda index, words: index.parse_query(" ".join(words), ["body"]),
    theirs=lambda words: {"match": {"body": " ".join(words)}},
    p50=_LATER_P50,
    throughput=_LATER_RATE,
    about="each of eight words that follow each other in a text, any of which is enough; we look for all of them first",
    needed="auto",
)

KINDS = (WORDS, PHRASE, PREFIX, WILDCARD, FILTERED, FACETS, SORTS, GROUPS, QUESTION)
