"""Facets count as plain Python counts over the visible rows, and a narrowed search finds what a value counted."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.ground.clock import Instant, read_timestamp, timestamp
from muniment.repository.folding import fold
from muniment.repository.search.aql.conditions import BoundQuery, ConditionSet
from muniment.repository.search.aql.rewriting.narrowing import Narrowing
from muniment.repository.search.aql.spelling import facets
from muniment.repository.search.aql.spelling.facets import FacetBinder, FacetLimits
from muniment.repository.search.aql.tree import FacetDefinition, Value
from muniment.repository.search.index.contract import FacetCounts, Search, Visible
from muniment.repository.store.objects.properties.properties import PropertyDefinition
from muniment.repository.store.objects.types.object_types import Catalogue, ObjectType
from tests import runs
from tests.properties import shelves
from tests.properties.lengths import examples
from tests.properties.shelves import SLOW, IndexFolder, Row, found_by_oracle

KINDS = {"colour": "string", "size": "integer", "weight": "double", "draft": "boolean", "place": "id", "day": "date"}
CATALOGUE = Catalogue(
    [ObjectType("thing", "document", tuple(PropertyDefinition(name, kind, True) for name, kind in KINDS.items()))]  # type: ignore[arg-type]
)
ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"]
UNITS = ["day", "week", "month", "quarter", "year"]
HOUR = 3_600_000_000
NOW = 1_711_900_000_000_000
"""Late on 31 March 2024, the day on which clocks changed in Europe."""

_CHANGES = [
    datetime(1970, 1, 1, tzinfo=UTC),
    *(datetime(2024, *day, tzinfo=UTC) for day in [(3, 10), (3, 31), (4, 6), (10, 5), (10, 27), (11, 3), (12, 31)]),
]
MOMENTS: list[Value] = [
    *(int(day.timestamp()) * 1_000_000 + hours * HOUR // 2 for day in _CHANGES for hours in (-9, -2, 0, 1, 7, 47)),
    *(NOW - days * 24 * HOUR for days in (0, 1, 8, 31, 366, 3000)),
]
RANGES = {"size": "-1000:0, 0:5,5:, :", "weight": ":0,0:1.5,1.5:3.25,-1e300:1e300"}
LETTERS = "a:b,C:z,é:日,~:~"


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexFolder]:
    made = IndexFolder(tmp_path_factory.mktemp("facets") / "index")
    yield made
    made.close()


def moment(value: Instant, zone: str) -> datetime:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)).astimezone(ZoneInfo(zone))


def period(value: Instant, unit: str, zone: str) -> str:
    at = moment(value, zone)
    year, week, _ = at.isocalendar()
    return {
        "day": f"{at:%Y-%m-%d}",
        "week": f"{year}-W{week:02}",
        "month": f"{at:%Y-%m}",
        "quarter": f"{at.year}-Q{-(-at.month // 3)}",
        "year": f"{at.year}",
    }[unit]


def relative(value: Instant, zone: str) -> set[str]:
    now, at = moment(NOW, zone).date(), moment(value, zone).date()
    monday, of = now - timedelta(days=now.weekday()), at - timedelta(days=at.weekday())
    months = 12 * (now.year - at.year) + now.month - at.month
    tests = {
        "today": at == now,
        "yesterday": at == now - timedelta(days=1),
        "this week": of == monday,
        "last week": of == monday - timedelta(days=7),
        "this month": months == 0,
        "last month": months == 1,
        "this year": at.year == now.year,
        "last year": at.year == now.year - 1,
        "older": at.year < now.year - 1,
    }
    return {name for name, holds in tests.items() if holds}


def groups(definition: FacetDefinition, row: Row) -> set[str | None]:  # noqa: C901 - a case for each group-by
    """The groups in which plain Python puts an object."""
    values = row.document().values.get(definition.attributes[0], ())
    options, found = dict(definition.properties), set[str | None]()
    zone = options.get("timezone", "UTC")
    for value in values:
        match definition.group_by.lower():
            case "string" if isinstance(value, str):
                found.add(fold(value) if options.get("caseInsensitive") == "true" else value)
            case "string" if isinstance(value, bool):
                found.add(str(value).lower())
            case "string":
                found.add(timestamp(int(value)) if definition.attributes == ("day",) else str(value + 0))  # type: ignore[operator]
            case "range":
                for part in (each.strip() for each in options["range"].split(",")):
                    low, high = part.split(":")
                    if (not low or value >= float(low)) and (not high or value < float(high)):  # type: ignore[operator]
                        found.add(part)
            case "alpharange":
                first = fold(str(value))[:1]
                found |= {part for part in options["range"].split(",") if fold(part[0]) <= first <= fold(part[2])}
            case "relativedate":
                found |= relative(int(value), zone)
            case unit:
                found.add(period(int(value), unit, zone))
    if not values and options.get("nullValueFacet") == "true":
        found.add(None)
    return found


def definitions() -> st.SearchStrategy[FacetDefinition]:
    sorts = st.sampled_from([None, "FREQUENCY", "VALUE_ASCENDING", "VALUE_DESCENDING", "NONE"])
    limits = st.sampled_from([0, 1, 3, 10, -1])
    truths = st.sampled_from(["true", "false"])

    def made(name: str, group_by: str, **options: st.SearchStrategy[str]) -> st.SearchStrategy[FacetDefinition]:
        properties = st.fixed_dictionaries(options).map(lambda chosen: tuple(chosen.items()))
        return st.builds(FacetDefinition, st.just("f"), st.just((name,)), st.just(group_by), sorts, properties, limits)

    zones = st.sampled_from(ZONES)
    return st.one_of(
        *(made(name, "String", nullValueFacet=truths, caseInsensitive=truths) for name in KINDS),
        *(made(name, "range", range=st.just(text)) for name, text in RANGES.items()),
        made("colour", "alpharange", range=st.just(LETTERS)),
        made("day", "relativeDate", timezone=zones),
        *(made("day", unit, timezone=zones) for unit in UNITS),
    )


@st.composite
def nested(draw: st.DrawFn) -> FacetDefinition:
    outer = draw(definitions().filter(lambda each: each.group_by != "relativeDate" and each.max_values >= 0))
    inner = draw(definitions())
    return FacetDefinition("o", outer.attributes, outer.group_by, outer.sort, outer.properties, outer.max_values, inner)


@st.composite
def dated_rows(draw: st.DrawFn) -> list[Row]:
    return [
        Row(row.id, row.seq, row.modified, row.type, row.owner, row.acl_id, {**row.values, "day": days}, row.text)
        for row in draw(shelves.rows(least=4))
        if (days := draw(st.lists(st.sampled_from(MOMENTS), max_size=3))) is not None
    ]


@given(
    dated_rows(),
    st.lists(st.one_of(definitions(), nested()), min_size=6, max_size=6),
    shelves.queries(),
    shelves.callers(),
)
@settings(SLOW, max_examples=examples(15, 1500))
def test_counts_are_those_of_plain_python(
    shelf: IndexFolder, rows: list[Row], asked: list[FacetDefinition], query: BoundQuery, visible: Visible
) -> None:
    """failures B1, failures B17"""
    snapshot = shelf.holding([row.document() for row in rows])
    seen = [row for row in rows if row.id in found_by_oracle(query, visible, rows)]
    for definition in asked:
        bound = FacetBinder(CATALOGUE, NOW, FacetLimits()).bind([definition])
        answer = snapshot.search(Search(query, visible, 0, 1, facets=bound))
        check(answer.facets[0], definition, seen)
        for value in answer.facets[0].values[:3]:
            narrowed = facets.narrowing_condition(bound, [Narrowing(definition.id, ((value.constraint,),))])
            assert narrowed is not None
            both = narrowed if query.condition is None else ConditionSet("AND", (query.condition, narrowed))
            found = snapshot.search(Search(BoundQuery(query.types, both), visible, 0, 100, total=True))
            assert found.total == value.count, (definition, value)


@pytest.mark.parametrize("unit", UNITS)
def test_periods_on_both_sides_of_1970_are_counted(shelf: IndexFolder, unit: str) -> None:
    moments = [-366 * 24 * HOUR, -100 * 24 * HOUR, -HOUR, -1000, 0, HOUR]
    rows = [Row(f"{at:016x}", at, 0, "thing", "eve", 1, {"day": [moment]}, "") for at, moment in enumerate(moments, 1)]
    snapshot, everything = shelf.holding([row.document() for row in rows]), Visible(everything=True)
    for zone in ZONES:
        definition = FacetDefinition("f", ("day",), unit, "NONE", (("timezone", zone),), 10)
        bound = FacetBinder(CATALOGUE, NOW, FacetLimits()).bind([definition])
        check(snapshot.search(Search(BoundQuery(), everything, 0, 1, facets=bound)).facets[0], definition, rows)


def test_a_period_without_a_hit_has_no_nested_value_and_costs_no_question(shelf: IndexFolder) -> None:
    """Two dates 124 years apart make 1,489 months. If each asked for nested values, the facet would be refused."""
    moments = {"red": -70 * 365 * 24 * HOUR, "blue": 54 * 365 * 24 * HOUR}
    rows = [
        Row(f"{at:016x}", at, 0, "thing", "eve", 1, {"day": [moment], "colour": [colour]}, "")
        for at, (colour, moment) in enumerate(moments.items(), 1)
    ]
    letters = FacetDefinition("i", ("colour",), "alpharange", "NONE", (("range", LETTERS),), 10)
    months = FacetDefinition("o", ("day",), "month", "NONE", (("skipEmptyValues", "false"),), -1, letters)
    bound = FacetBinder(CATALOGUE, NOW, FacetLimits(values=100_000)).bind([months])
    snapshot = shelf.holding([row.document() for row in rows])
    counts = snapshot.search(Search(BoundQuery(), Visible(everything=True), 0, 1, facets=bound)).facets[0]
    assert len(counts.values) > 1400
    nested_counts = [value.nested for value in counts.values if value.nested and value.nested.id == "i"]
    assert len(nested_counts) == len(counts.values)
    assert [each.values[0].count for each in nested_counts if each.values] == [1, 1]


EDGES = {
    "day": ("0001-01-01", "9999-12-31"),
    "week": ("0001-W01", "9999-W52"),
    "month": ("0001-01", "9999-12"),
    "quarter": ("0001-Q1", "9999-Q4"),
    "year": ("0001", "9999"),
}


@pytest.mark.parametrize("unit", ["day", *(pytest.param(each, marks=pytest.mark.campaign) for each in UNITS[1:])])
def test_the_first_and_the_last_dates_are_counted_in_every_zone(shelf: IndexFolder, unit: str) -> None:
    edges = map(read_timestamp, ("0001-01-01", "9999-12-31T23:00:00Z", "9999-12-31T23:59:59.999Z"))
    rows = [Row(f"{at:016x}", at, 0, "thing", "eve", 1, {"day": [edge]}, "") for at, edge in enumerate(edges, 1)]
    snapshot, everything = shelf.holding([row.document() for row in rows]), Visible(everything=True)
    for zone in (*(ZONES if runs.of_campaign() else ZONES[:1]), "GMT+14", "GMT-14"):
        definition = FacetDefinition("f", ("day",), unit, "NONE", (("timezone", zone),), 10)
        bound = FacetBinder(CATALOGUE, NOW, FacetLimits()).bind([definition])
        (counts,) = snapshot.search(Search(BoundQuery(), everything, 0, 1, facets=bound)).facets
        first, last = EDGES[unit]
        assert [(value.name, value.count) for value in counts.values] == [(first, 1), (last, 2)], zone
        for value in counts.values:
            narrowed = facets.narrowing_condition(bound, [Narrowing("f", ((value.constraint,),))])
            found = snapshot.search(Search(BoundQuery((), narrowed), everything, 0, 100, total=True))
            assert found.total == value.count, zone
        in_utc = msgspec.structs.replace(bound[0], in_utc=True)
        (counts,) = snapshot.search(Search(BoundQuery(), everything, 0, 1, facets=(in_utc,))).facets
        assert counts.values[0].name == "0001-01-01T00:00:00.000Z"


def check(counts: FacetCounts, definition: FacetDefinition, seen: list[Row]) -> None:
    of_rows = [(row, groups(definition, row)) for row in seen]
    expected = Counter(group for _, in_groups in of_rows for group in in_groups)
    counted = {None if value.constraint == "\\N" else value.name: value.count for value in counts.values}
    limit = definition.max_values
    if limit < 0 or limit >= len(expected):
        assert counted == expected, definition
    else:
        assert len(counts.values) == limit
        assert counted.items() <= expected.items(), definition
    in_order = [value.count for value in counts.values]
    if (definition.sort or ("VALUE_ASCENDING" if limit < 0 else "FREQUENCY")) == "FREQUENCY" and (
        definition.sort or definition.group_by != "relativeDate"
    ):
        assert in_order == sorted(expected.values(), reverse=True)[: len(in_order)]
    elif definition.attributes == ("size",) and definition.group_by == "String":
        numbers = [int(value.name) for value in counts.values if value.constraint != "\\N"]
        assert numbers == sorted(numbers, reverse=definition.sort == "VALUE_DESCENDING")
    if definition.nested is not None:
        for value in counts.values:
            assert value.nested is not None
            group = None if value.constraint == "\\N" else value.name
            check(value.nested, definition.nested, [row for row, in_groups in of_rows if group in in_groups])
