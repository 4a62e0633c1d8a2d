"""Relative dates: each operator, each unit, ends of months, and numbers that lead out of the calendar."""

from datetime import UTC, datetime

import pytest

from muniment.ground.clock import Instant
from muniment.repository.refusals import WrongValue
from muniment.repository.search.aql.bind import bind
from muniment.repository.search.aql.conditions import Between, Condition
from muniment.repository.search.aql.tree import AgeOperator, Query, RelativeDate, TimeUnit
from muniment.repository.store.objects.types.object_types import Catalogue

NAME = "r_modify_date"


def instant(text: str) -> Instant:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


def relative(operator: AgeOperator, amount: int, unit: TimeUnit, now: str = "2024-03-31T12:34:56") -> Condition | None:
    return bind(Query((), RelativeDate(NAME, operator, amount, unit)), Catalogue(()), {}, instant(now)).condition


@pytest.mark.parametrize(
    ("unit", "amount", "now", "moment"),
    [
        ("MINUTE", -5, "2024-03-31T12:34:56", "2024-03-31T12:29:56"),
        ("HOUR", 13, "2024-03-31T12:34:56", "2024-04-01T01:34:56"),
        ("DAY", -31, "2024-03-31T12:34:56", "2024-02-29T12:34:56"),
        ("WEEK", -1, "2024-03-31T12:34:56", "2024-03-24T12:34:56"),
        ("MONTH", -1, "2024-03-31T12:34:56", "2024-02-29T12:34:56"),
        ("MONTH", 11, "2024-03-31T12:34:56", "2025-02-28T12:34:56"),
        ("MONTH", -3, "2024-03-31T12:34:56", "2023-12-31T12:34:56"),
        ("YEAR", 1, "2024-02-29T00:00:00", "2025-02-28T00:00:00"),
        ("YEAR", -4, "2024-02-29T00:00:00", "2020-02-29T00:00:00"),
    ],
)
def test_so_many_units_from_now(unit: TimeUnit, amount: int, now: str, moment: str) -> None:
    assert relative("GREATER_EQUAL", amount, unit, now) == Between(NAME, instant(moment), None)


def test_each_operator() -> None:
    now = instant("2024-03-31T12:34:56")
    assert relative("GREATER_THAN", 0, "DAY") == Between(NAME, now, None, low_open=True)
    assert relative("GREATER_EQUAL", 0, "DAY") == Between(NAME, now, None)
    assert relative("LESS_THAN", 0, "DAY") == Between(NAME, None, now, high_open=True)
    assert relative("LESS_EQUAL", 0, "DAY") == Between(NAME, None, now)


@pytest.mark.parametrize(
    ("unit", "first", "last"),
    [
        ("MINUTE", "2024-03-31T12:34:00", "2024-03-31T12:35:00"),
        ("HOUR", "2024-03-31T12:00:00", "2024-03-31T13:00:00"),
        ("DAY", "2024-03-31T00:00:00", "2024-04-01T00:00:00"),
        ("WEEK", "2024-03-25T00:00:00", "2024-04-01T00:00:00"),
        ("MONTH", "2024-03-01T00:00:00", "2024-04-01T00:00:00"),
        ("YEAR", "2024-01-01T00:00:00", "2025-01-01T00:00:00"),
    ],
)
def test_equal_means_the_whole_unit(unit: TimeUnit, first: str, last: str) -> None:
    assert relative("EQUAL", 0, unit) == Between(NAME, instant(first), instant(last), high_open=True)


@pytest.mark.parametrize("unit", ["MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"])
@pytest.mark.parametrize("amount", [10**10, -(10**10)])
def test_a_number_that_leads_out_of_the_calendar_is_refused(unit: TimeUnit, amount: int) -> None:
    with pytest.raises(WrongValue, match="is no date"):
        relative("EQUAL", amount, unit)


def test_the_last_year_of_the_calendar_has_no_end() -> None:
    with pytest.raises(WrongValue, match="is no date"):
        relative("EQUAL", 0, "YEAR", "9999-06-01T00:00:00")


def test_it_fits_dates_alone() -> None:
    with pytest.raises(WrongValue, match="compares dates"):
        bind(Query((), RelativeDate("title", "EQUAL", 0, "DAY")), Catalogue(()), {}, 0)
