"""When does a day, week, month, quarter or year begin in a time zone? Periods follow each other without a gap.

A week begins on Monday, a period at the first moment when a clock of the zone shows its first day; but periods cover
exactly the years 1 to 9999 of UTC.
"""

from collections.abc import Iterator, Mapping
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta, tzinfo
from typing import Literal, NamedTuple, TypeAlias, assert_never

from muniment.ground.clock import Instant
from muniment.repository.refusals import WrongValue

Unit: TypeAlias = Literal["day", "week", "month", "quarter", "year"]

DAY: Instant = 86_400_000_000

MOST = 20_000

_DAYS: Mapping[Unit, int] = {"day": 1, "week": 7, "month": 31, "quarter": 93, "year": 366}
"""So many days lead from a first day to the next, or at least into its first month."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BEGINNING: Instant = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_END: Instant = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1) + DAY


class Period(NamedTuple):
    """It ends before ``high``, and has a name as ``2024-03-31``, ``2024-W13``, ``2024-03``, ``2024-Q1`` or ``2024``."""

    name: str
    low: Instant
    high: Instant


def at(unit: Unit, day: date, zone: tzinfo) -> Period:
    first = first_day(unit, day)
    return Period(_name(unit, first), _start(first, zone), _start(following(unit, first), zone))


def by_name(unit: Unit, name: str, zone: tzinfo) -> Period:
    """Raises WrongValue."""
    try:
        period = at(unit, _first_of(unit, name), zone)
    except (ValueError, OverflowError) as error:
        raise WrongValue(f"There is no {unit} {name[:40]!r}.") from error
    if period.name != name:
        raise WrongValue(f"There is no {unit} {name[:40]!r}.")
    return period


def years(low: Instant, high: Instant, zone: tzinfo) -> Iterator[Period]:
    """List the years of ``low`` to ``high``, within 1 to 9999."""
    first, last = _local_year(low, zone), _local_year(high, zone)
    return (at("year", date(year, 1, 1), zone) for year in range(first, last + 1))


def within(unit: Unit, year: int, zone: tzinfo) -> Iterator[Period]:
    return _list(unit, first_day(unit, date(year, 1, 1)), date(year, 12, 31), zone)


def between(unit: Unit, first: str, last: str, zone: tzinfo) -> Iterator[Period]:
    """Raises ValueError if no period has such a name."""
    return _list(unit, _first_of(unit, first), _first_of(unit, last), zone)


def local_day(instant: Instant, zone: tzinfo) -> date:
    return (_EPOCH + timedelta(microseconds=instant)).astimezone(zone).date()


def first_day(unit: Unit, day: date) -> date:
    match unit:
        case "day":
            return day
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "year":
            return day.replace(month=1, day=1)
        case _:
            assert_never(unit)


def following(unit: Unit, first: date) -> date | None:
    """Return None after the year 9999."""
    if (date.max - first).days < _DAYS[unit]:
        return None
    day = first + timedelta(days=_DAYS[unit])
    return day if unit in ("day", "week") else day.replace(day=1)


def _name(unit: Unit, first: date) -> str:
    match unit:
        case "day":
            return first.isoformat()
        case "week":
            year, week, _ = first.isocalendar()
            return f"{year:04}-W{week:02}"
        case "month":
            return f"{first.year:04}-{first.month:02}"
        case "quarter":
            return f"{first.year:04}-Q{(first.month + 2) // 3}"
        case "year":
            return f"{first.year:04}"
        case _:
            assert_never(unit)


def _first_of(unit: Unit, name: str) -> date:
    year, _, rest = name.partition("-")
    if not (name.isascii() and MINYEAR <= int(year) <= MAXYEAR):
        raise ValueError(name)
    match unit:
        case "day":
            return date.fromisoformat(name)
        case "week":
            return date.fromisocalendar(int(year), int(rest.removeprefix("W")), 1)
        case "month":
            return date(int(year), int(rest), 1)
        case "quarter":
            return date(int(year), 3 * int(rest.removeprefix("Q")) - 2, 1)
        case "year":
            return date(int(year), 1, 1)
        case _:
            assert_never(unit)


def _list(unit: Unit, first: date, last: date, zone: tzinfo) -> Iterator[Period]:
    day: date | None = first
    while day is not None and day <= last:
        yield at(unit, day, zone)
        day = following(unit, day)


def _start(day: date | None, zone: tzinfo) -> Instant:
    if day is None:
        return _END
    if day == date.min:
        return _BEGINNING
    # If clocks skip midnight, the day begins when they skip it. If they repeat it, the day begins with the first one.
    return (datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


def _local_year(instant: Instant, zone: tzinfo) -> int:
    try:
        return local_day(instant, zone).year
    except OverflowError:
        return MINYEAR if instant < 0 else MAXYEAR
