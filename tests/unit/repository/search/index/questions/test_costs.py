"""What a query would cost the engine is bounded before the engine is asked."""

import pytest

from muniment.repository.refusals import BadQuery
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.aql import keywords
from muniment.repository.search.aql.conditions import Between, Condition, ConditionSet, Like, Unless
from muniment.repository.search.aql.patterns import read
from muniment.repository.search.aql.tree import Both, Fulltext, QueryLimits, Term
from muniment.repository.search.index.questions import costs

ANALYSER = Analyser()
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def asked(text: str) -> Fulltext:
    return Fulltext(keywords.read(text, QueryLimits(clauses=10_000)))


def either(words: list[str]) -> Condition:
    return asked(" OR ".join(words))


def contains(number: int) -> Condition:
    return ConditionSet("OR", tuple(Like("title", (read(f"*{n}*"),)) for n in range(number)))


CHEAP: dict[str, Condition] = {
    "four words that begin with a wildcard": asked("*a* *b* *c* *d*"),
    "joined words with wildcards": asked("a-*b e-*f"),
    "the beginnings of a long question": either([f"{a}{b}nd*" for a in LETTERS for b in "aeiou"]),
    "a question with marks": asked("what is this? who was there? why?"),
    "texts in values": contains(31),
    "many words": either([f"{a}{b}" for a in LETTERS for b in LETTERS]),
    "ranges of texts": ConditionSet("AND", (Between("title", "a", "b"),) * 100),
}

DEAR: dict[str, Condition] = {
    "five words that begin with a wildcard": asked("*a* *b* *c* *d* ?e"),
    "five of them behind a NOT": asked("pump NOT (*a* OR *b* OR *c* OR *d* OR *e*)"),
    "five of them in several expressions": Unless(
        ConditionSet("OR", tuple(asked(f"*{letter}*") for letter in "abcde"))
    ),
    "beginnings of one letter": either([f"{letter}*" for letter in LETTERS] * 2),
    "beginnings of two letters": either([f"{a}{b}*" for a in LETTERS for b in LETTERS]),
    "joined beginnings": asked("a*-b* c*-d* e*-f*"),
    "fuzzy words by the thousand": Fulltext(Both((Term("pump", fuzzy=True),) * 1_025)),
    "texts in values": contains(40),
    "words by the thousand": Fulltext(Both((Term("pump"),) * 4_097)),
}


@pytest.mark.parametrize("name", CHEAP)
def test_what_people_ask_is_not_refused(name: str) -> None:
    costs.check(CHEAP[name], ANALYSER, 100_000)


@pytest.mark.parametrize("name", DEAR)
def test_what_costs_too_much_is_refused(name: str) -> None:
    with pytest.raises(BadQuery):
        costs.check(DEAR[name], ANALYSER, 0)


def test_the_limit_is_named_and_a_large_index_permits_less_but_never_nothing() -> None:
    for documents, most in ((100_000, 4), (400_000, 2), (400_001, 1), (10**9, 1)):
        costs.check(asked(" ".join(["*a*"] * most)), ANALYSER, documents)
        with pytest.raises(BadQuery, match=f"at most {most} may"):
            costs.check(asked(" ".join(["*a*"] * (most + 1))), ANALYSER, documents)
