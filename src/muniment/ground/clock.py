"""Tell the time, and write and read moments."""

import re
import time
from datetime import UTC, datetime, timedelta

Instant = int
"""A moment, or a length of time, in microseconds: moments since 1970 UTC."""

SECOND: Instant = 1_000_000

EARLIEST, LATEST = -62_135_596_800 * SECOND, 253_402_300_800 * SECOND - 1
"""What can be written: from the year 1 to the end of the year 9999."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_START = _EPOCH.replace(tzinfo=None)
_DATE = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}([Tt ][0-9:.,]+([Zz]|[+-][0-9:]+)?)?")


def now() -> Instant:
    """Decisions get it as an argument."""
    return time.time_ns() // 1000


def to_datetime(instant: Instant) -> datetime:
    """Raises OverflowError after the year 9999."""
    return _EPOCH + timedelta(microseconds=instant)


def timestamp(instant: Instant, *, utc: str = "Z", precision: str = "milliseconds") -> str:
    """Write ISO 8601 (given 2.6, 2.9): ``utc`` is the spelling of the offset, ``precision`` the ``timespec`` of
    ``datetime.isoformat``.
    """
    return (_START + timedelta(microseconds=instant)).isoformat(timespec=precision) + utc


def read_timestamp(text: str) -> Instant:
    """A time without an offset is in UTC. Raises ValueError."""
    if not _DATE.fullmatch(text.strip()):
        raise ValueError("That is no date as ISO 8601 writes it.")
    try:
        moment = datetime.fromisoformat(text.strip().upper())
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    except OverflowError as error:
        raise ValueError("That date lies outside of the years 1 to 9999.") from error
