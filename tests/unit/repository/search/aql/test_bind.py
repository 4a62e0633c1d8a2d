"""A query held against the catalogue: types spelled out, values read by kind."""

from collections.abc import Collection
from typing import NamedTuple

import pytest

from muniment.ground.clock import Instant
from muniment.repository.refusals import UnknownProperty, UnknownType, WrongValue
from muniment.repository.search.aql import values
from muniment.repository.search.aql.bind import bind
from muniment.repository.search.aql.conditions import Between, Condition, Like, OneOf
from muniment.repository.search.aql.patterns import Gap, Pattern
from muniment.repository.search.aql.tree import (
    Expression,
    ExpressionSet,
    Fulltext,
    Property,
    PropertyList,
    PropertyRange,
    Query,
    Term,
    Value,
)
from muniment.repository.search.aql.values import Kind

NOW: Instant = 1_000_000_000_000_000


class Definition(NamedTuple):
    kind: Kind


class Catalogue:
    def with_subtypes(self, names: Collection[str]) -> Collection[str]:
        below = {"sysobject": {"document", "report"}, "document": {"report"}, "report": set[str]()}
        if not set(names) <= below.keys():
            raise UnknownType("?")
        return set(names).union(*(below[name] for name in names))

    def searchable(self, name: str) -> Definition:
        kinds: dict[str, Kind] = {"title": "string", "size": "integer", "weight": "double", "draft": "boolean"}
        kinds |= {"made": "date", "place": "id"}
        if name not in kinds:
            raise UnknownProperty("?")
        return Definition(kinds[name])


def bound(condition: Expression) -> Condition | None:
    return bind(Query((), condition), Catalogue(), {}, NOW).condition


def test_types_bring_their_sub_types() -> None:
    assert bind(Query(("document",)), Catalogue(), {}, NOW).types == ("document", "report")
    assert bind(Query(("report",)), Catalogue(), {}, NOW).types == ("report",)
    assert bind(Query(), Catalogue(), {}, NOW).types == ()
    assert bind(Query(("sysobject", "report")), Catalogue(), {}, NOW).types == ()
    with pytest.raises(UnknownType):
        bind(Query(("sysobject", "nothing")), Catalogue(), {}, NOW)


@pytest.mark.parametrize(
    ("name", "spelled", "value"),
    [
        ("title", " a ", " a "),
        ("size", "-12", -12),
        ("size", "99999999999999999999", 99999999999999999999),
        ("weight", "1.5e3", 1500.0),
        ("weight", "7", 7.0),
        ("draft", "T", True),
        ("draft", "0", False),
        ("made", "1970-01-01T00:00:01Z", 1_000_000),
        ("made", "1970-01-01T01:00:01.5+01:00", 1_500_000),
        ("made", "1970-01-01 00:00", 0),
        ("made", "1970-01-01T00:00:00.1234567", 123_000),
        ("made", "1969-12-31T23:59:59-0000", -1_000_000),
    ],
)
def test_values_are_read_by_kind(name: str, spelled: str, value: Value) -> None:
    read = bound(PropertyList(name, "IN", (spelled,)))
    assert read == OneOf(name, (value,))
    assert isinstance(read, OneOf)
    assert type(read.values[0]) is type(value)


def test_a_bare_date_as_the_upper_end_is_the_whole_day() -> None:
    day = bound(PropertyRange("made", "BETWEEN", "1970-01-02", "1970-01-02"))
    assert day == Between("made", 86_400_000_000, 2 * 86_400_000_000 - 1)
    assert bound(PropertyList("made", "IN", ("1970-01-02",))) == day


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        *(("size", text) for text in ("", "a", "1.5", "1e3", "0x10", "١", "1" * 41)),
        *(("weight", text) for text in ("", "nan", "inf", "1e999", "1,5", "1_000")),
        *(("draft", text) for text in ("", "yes", "2")),
        *(("made", text) for text in ("", "yesterday", "1970-13-01", "1970-01-01T25:00", "0001-01-01T00:00:00+99:00")),
    ],
)
def test_a_value_of_another_kind_is_refused(name: str, spelled: str) -> None:
    for condition in (PropertyList(name, "IN", (spelled,)), PropertyRange(name, "BETWEEN", spelled, spelled)):
        with pytest.raises(WrongValue, match=name):
            bound(ExpressionSet("OR", (condition,)))


def test_operators_need_a_fitting_kind() -> None:
    assert bound(Property("title", "BEGINS_WITH", "x")) == Like("title", (Pattern(("x", Gap.RUN)),))
    assert bound(Property("place", "BEGINS_WITH", "09"))
    assert bound(Fulltext(Term("x"))) == Fulltext(Term("x"))
    with pytest.raises(WrongValue, match="BEGINS_WITH does not fit the property 'size' of kind integer"):
        bound(Property("size", "BEGINS_WITH", "1"))
    with pytest.raises(WrongValue, match="BETWEEN needs an order"):
        bound(PropertyRange("draft", "BETWEEN", "false", "true"))
    with pytest.raises(WrongValue, match="longer than 100"):
        bound(PropertyRange("title", "BETWEEN", "a", "b" * 101))
    with pytest.raises(UnknownProperty):
        bound(Property("nothing", "BEGINS_WITH", "x"))


def test_keywords_look_at_what_people_write() -> None:
    looked_at = values.keyword_values(
        {
            "zebra": ["z", 5, ""],
            "r_modifier": ["m"],
            "object_name": ["n"],
            "owner_name": ["o"],
            "title": ["t"],
            "a_x": ["x"],
            "place": ["0900000100000001"],
        },
        ids={"place"},
    )
    assert list(looked_at) == [("title", "t"), ("object_name", "n"), ("zebra", "z")]


def test_a_refusal_says_where_the_document_has_what_it_is_about() -> None:
    with pytest.raises(UnknownProperty, match=r"\(line 7, column 3\)\.$"):
        bound(Property("nothing", "BEGINS_WITH", "a", place="line 7, column 3"))
    with pytest.raises(WrongValue, match=r"\(line 8, column 3\)\.$"):
        bound(PropertyRange("size", "BETWEEN", "one", "2", "line 8, column 3"))
    with pytest.raises(UnknownType, match=r"\(line 2, column 1\)\.$"):
        bind(Query(("nothing",), None, "line 2, column 1"), Catalogue(), {}, NOW)
