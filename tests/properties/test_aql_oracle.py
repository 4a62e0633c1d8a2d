"""An index finds exactly what the plain evaluator finds."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.repository.folding import fold
from muniment.repository.options import RepositoryNames
from muniment.repository.search.analysis.excerpts import Finder
from muniment.repository.search.analysis.text import normal
from muniment.repository.search.aql import bind
from muniment.repository.search.aql.conditions import Between, BoundQuery, ConditionSet
from muniment.repository.search.aql.rewriting import relaxation
from muniment.repository.search.aql.spelling import as_json, as_xml
from muniment.repository.search.aql.tree import AnyWord, Fulltext, Keywords, Phrase, Query, QueryLimits, Term, Value
from muniment.repository.search.index.contract import Visible
from muniment.repository.search.index.questions.leaves import leaves
from muniment.repository.store.permissions.principals import Permission
from tests.properties import shelves, worlds
from tests.properties.lengths import examples
from tests.properties.oracle import evaluate
from tests.properties.shelves import ANALYSER, SLOW, IndexFolder, Row, ask, found_by_oracle
from tests.properties.worlds import Thing, World

EVERYTHING = Visible(everything=True)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexFolder]:
    made = IndexFolder(tmp_path_factory.mktemp("oracle") / "index")
    yield made
    made.close()


@given(shelves.rows(), st.lists(st.tuples(shelves.queries(), shelves.callers()), min_size=20, max_size=20))
@settings(SLOW, max_examples=examples(15, 600))
def test_the_index_finds_what_the_oracle_finds(
    shelf: IndexFolder, rows: list[Row], asked: list[tuple[BoundQuery, Visible]]
) -> None:
    snapshot = shelf.holding([row.document() for row in rows])
    for query, visible in asked:
        answer = ask(snapshot, query, visible)
        expected = found_by_oracle(query, visible, rows)
        assert {hit.object_id for hit in answer.hits} == expected, (query, visible)
        assert answer.total == len(answer.hits) == len(expected)


@given(shelves.rows(), shelves.questions(), shelves.callers())
@settings(SLOW, max_examples=examples(12, 500))
def test_what_has_all_words_of_a_question_comes_first(
    shelf: IndexFolder, rows: list[Row], question: Keywords, visible: Visible
) -> None:
    assert isinstance(question, AnyWord)
    snapshot = shelf.holding([row.document() for row in rows])
    every = found_by_oracle(BoundQuery((), Fulltext(question.first)), visible, rows)
    hits = [hit.object_id for hit in ask(snapshot, BoundQuery((), Fulltext(question)), visible).hits]
    assert set(hits[: len(every)]) == every


@given(shelves.rows(), shelves.queries(), shelves.callers(), st.integers(1, 4))
@settings(SLOW, max_examples=examples(12, 500))
def test_pages_joined_are_the_whole(
    shelf: IndexFolder, rows: list[Row], query: BoundQuery, visible: Visible, size: int
) -> None:
    """failures B13."""
    snapshot = shelf.holding([row.document() for row in rows])
    whole = ask(snapshot, query, visible)
    paged = [hit for offset in range(0, 12, size) for hit in ask(snapshot, query, visible, size, offset).hits]
    assert paged == list(whole.hits)
    by_id, scored = {row.id: row for row in rows}, any(leaves(query.condition))
    order = [(-hit.score if scored else -by_id[hit.object_id].modified, by_id[hit.object_id].seq) for hit in whole.hits]
    assert order == sorted(order)
    assert scored or not any(hit.score for hit in whole.hits)


RANGES: list[tuple[str, list[Value]]] = [
    ("colour", list(shelves.STRINGS)),
    ("size", list(shelves.INTEGERS)),
    ("weight", list(shelves.DOUBLES)),
]


@given(shelves.rows(), st.sampled_from(RANGES), st.data())
@settings(SLOW, max_examples=examples(12, 500))
def test_a_wider_range_never_loses_a_hit(
    shelf: IndexFolder, rows: list[Row], named: tuple[str, list[Value]], data: st.DataObject
) -> None:
    name, values = named
    ends = sorted(data.draw(st.lists(st.sampled_from(values), min_size=4, max_size=4)), key=_key)
    snapshot = shelf.holding([row.document() for row in rows])
    narrow = BoundQuery((), Between(name, ends[1], ends[2]))
    wide = BoundQuery((), Between(name, ends[0], ends[3]))
    found = [{hit.object_id for hit in ask(snapshot, query, EVERYTHING).hits} for query in (narrow, wide)]
    assert found[0] <= found[1]


def _key(value: Value) -> tuple[str, float]:
    return (fold(value), 0) if isinstance(value, str) else ("", float(value))


@given(
    shelves.rows(),
    st.lists(shelves.conditions(), min_size=2, max_size=4)
    .map(lambda parts: ConditionSet("AND", tuple(parts)))
    .filter(shelves.is_affordable),
    shelves.callers(),
)
@settings(SLOW, max_examples=examples(12, 500))
@example([], ConditionSet("AND", (Fulltext(None), Fulltext(Phrase("x")))), EVERYTHING)
def test_dropping_a_part_of_an_and_never_loses_a_hit(
    shelf: IndexFolder, rows: list[Row], every_part: ConditionSet, visible: Visible
) -> None:
    snapshot = shelf.holding([row.document() for row in rows])
    strict = BoundQuery((), every_part)
    loose = BoundQuery((), ConditionSet("AND", every_part.conditions[1:]))
    found = [{hit.object_id for hit in ask(snapshot, query, visible).hits} for query in (strict, loose)]
    assert found[0] <= found[1]


@given(
    shelves.texts(12), st.one_of(st.builds(Term, st.sampled_from(shelves.WORDS)), st.builds(Phrase, shelves.texts(2)))
)
@settings(max_examples=examples(100, 5000))
def test_an_excerpt_is_found_and_marked_exactly_where_a_text_matches(text: str, leaf: Term | Phrase) -> None:
    text = normal(text)
    matches = evaluate(BoundQuery((), Fulltext(leaf)), "document", 1, {}, text, may_read=True, analyser=ANALYSER)
    finder = Finder(ANALYSER, [leaf])
    assert finder.occurs(text, 0) is matches
    excerpt = finder.excerpt(text)
    assert bool(excerpt and finder.marks(excerpt)) is matches


NAMES, LIMITS = RepositoryNames(), QueryLimits()
A_NUMBER_ELSEWHERE = [
    Thing(0, "cabinet", "marta", "private", None, {"object_name": "plan", "keywords": ["12:30"]}, ""),
    Thing(1, "report", "marta", "all browse", None, {"object_name": "red pump"}, ""),
]
FOR_REPORTS = {
    "types": ["report"],
    "expression-set": {
        "expression-type": "expression-set",
        "operator": "AND",
        "expressions": [{"expression-type": "fulltext", "value": "pump 12:30"}],
    },
}


@given(
    worlds.things(),
    st.lists(
        st.tuples(
            worlds.documents(with_facets=False),
            st.sampled_from(sorted(worlds.PEOPLE)),
            st.sampled_from(["all", "any"]),
        ),
        min_size=20,
        max_size=20,
    ),
)
@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=examples(4, 500))
@example(A_NUMBER_ELSEWHERE, [(FOR_REPORTS, "marta", "any"), (FOR_REPORTS, "boris", "any")])
def test_what_is_asked_in_either_spelling_is_what_the_oracle_finds(
    repository_db: Database, now: Instant, things: list[Thing], asked: list[tuple[dict[str, Any], str, str]]
) -> None:
    """Through the addresses, with sorts, locations and rights, on either database: 10,000 queries in a campaign."""
    with worlds.open_worlds(repository_db, now, things) as (world,):
        for document, caller, words in asked:
            written = json.dumps(world.written(document))
            query = as_json.read(written.encode(), NAMES, LIMITS)
            again = as_json.write(as_xml.elements(worlds.to_xml(written).encode(), LIMITS))
            for other in (
                as_xml.read(worlds.to_xml(written).encode(), NAMES, LIMITS),
                as_json.read(again.encode(), NAMES, LIMITS),
            ):
                assert _without_places(other) == _without_places(query)
            # A word with digits is needed if the caller finds anything with it, whatever else the query asks.
            holds = partial(_is_held, world, things, caller, now)
            meant = (relaxation.relax(query, holds) if words == "any" else None) or query
            expected = _found(world, things, caller, meant, world.written(document), now)
            for in_xml in (False, True):
                answer = world.ask(caller, document, {"include-total": "true", "words": words}, in_xml=in_xml)
                if expected is None:
                    assert answer.status_code == 400, (caller, document)
                    continue
                found = world.numbers(answer)
                assert found == expected if query.sorts else sorted(found) == sorted(expected), (caller, document)
                assert answer.json()["total"] == len(expected)


def _found(
    world: World, things: list[Thing], caller: str, query: Query, document: dict[str, Any], now: Instant
) -> list[int] | None:
    """List what a caller finds, plainly; None where the query must be refused."""
    within = worlds.places(world, things, caller, document.get("locations", ()))
    if within is None:
        return None
    acls = {name: number for name, number in world.acls.items() if _knows(caller, name)}
    bound = bind.bind(query, world.shelf.catalogue(), acls, world.clock())
    found = []
    for thing in things:
        level, values = worlds.permission(caller, thing), worlds.plain_values(world, thing, now)
        lies = not query.locations or thing.folder in within
        if lies and level >= Permission.BROWSE:
            read = level >= Permission.READ
            acl, text = world.acls[thing.acl], normal(thing.text)
            if evaluate(bound, thing.type, acl, values, text, read, ANALYSER):
                found.append((thing, values))
    return worlds.in_order(found, document.get("sorts", ()))


def _is_held(world: World, things: list[Thing], caller: str, now: Instant, keywords: Keywords) -> bool:
    return bool(_found(world, things, caller, Query(condition=Fulltext(keywords)), {}, now))


def _knows(caller: str, acl: str) -> bool:
    """Whether a caller may see an ACL: it is built in, or permits them something."""
    stand_in = Thing(0, "document", "nobody", acl, None, {}, "")
    return acl in ("public", "private") or worlds.permission(caller, stand_in) >= Permission.BROWSE


def _without_places(query: Query) -> object:
    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: bare(each) for name, each in value.items() if name not in ("place", "types_place")}
        return [bare(each) for each in value] if isinstance(value, list | tuple) else value

    return bare(msgspec.to_builtins(query))
