"""Which moment is it, and how is a moment written and read? Every moment is an Instant, handed in as ``now``."""

import re
import time
from datetime import UTC, datetime, timedelta

Instant = int
"""A moment: microseconds since 1970 UTC. A length of time is also counted in microseconds."""

SECOND: Instant = 1_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}([Tt ][0-9:.,]+([Zz]|[+-][0-9:]+)?)?")


def now() -> Instant:
    """Read the clock. Whoever starts a process or a command reads it; decisions are told the time."""
    return time.time_ns() // 1000


def to_datetime(instant: Instant) -> datetime:
    """Return the moment as a datetime in UTC. Raises OverflowError after the year 9999."""
    return _EPOCH + timedelta(microseconds=instant)


def timestamp(instant: Instant, *, utc: str = "Z", precision: str = "milliseconds") -> str:
    """Write a moment in ISO 8601 (given 2.6, 2.9).

    ``utc`` spells the offset, ``Z`` or ``+00:00``; ``precision`` is what ``datetime.isoformat`` calls ``timespec``.
    """
    return to_datetime(instant).replace(tzinfo=None).isoformat(timespec=precision) + utc


def read_timestamp(text: str) -> Instant:
    """Read an ISO 8601 date, or date and time, taken as UTC when it names no offset. Raises ValueError."""
    if not _DATE.fullmatch(text.strip()):
        raise ValueError("That is no date as ISO 8601 writes it.")
    try:
        moment = datetime.fromisoformat(text.strip().upper())
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    except OverflowError as error:
        raise ValueError("That date lies outside of the years 1 to 9999.") from error
