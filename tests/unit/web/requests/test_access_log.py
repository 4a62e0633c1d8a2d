"""Lines of the access log wait for each other, but not for long, and not where something went wrong."""

import asyncio
from collections.abc import Sequence

import structlog
from structlog.testing import capture_logs

from muniment.web.requests import access_log
from muniment.web.requests.access_log import AccessLine, AccessLog


def line(status: int | None = 200, path: str = "/x", caller: str | None = None) -> AccessLine:
    return AccessLine("ours", caller, "GET", path, status, 12, 1.0, 1.0125, "https", "203.0.113.9")


class Written:
    """What was written, in the batches in which it came."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def __call__(self, lines: Sequence[AccessLine]) -> None:
        self.batches.append([one.path for one in lines])


def test_lines_of_requests_that_went_well_are_written_together_a_moment_later() -> None:
    written = Written()

    async def work() -> None:
        log = AccessLog(written, seconds=0.01)
        for number in range(3):
            log.note(line(path=f"/{number}"))
        assert not written.batches
        while not written.batches:
            await asyncio.sleep(0)
        log.note(line(path="/3"))
        while len(written.batches) < 2:
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(work(), 30))
    assert written.batches == [["/0", "/1", "/2"], ["/3"]]


def test_no_line_waits_longer_than_it_may() -> None:
    assert access_log.LATE_SECONDS <= 0.05


def test_a_line_of_a_refusal_an_error_or_a_lost_caller_waits_for_nothing_and_takes_the_others_along() -> None:
    async def work(status: int | None) -> list[list[str]]:
        written = Written()
        log = AccessLog(written, seconds=3600)
        log.note(line(path="/before"))
        log.note(line(status, "/now"))
        return written.batches

    for status in (400, 401, 404, 503, None):
        assert asyncio.run(work(status)) == [["/before", "/now"]]


def test_only_so_many_lines_wait() -> None:
    written = Written()

    async def work() -> None:
        log = AccessLog(written, seconds=3600)
        for _ in range(2 * access_log.MOST_LINES + 1):
            log.note(line())
        assert [len(batch) for batch in written.batches] == [access_log.MOST_LINES] * 2
        log.flush()
        log.flush()

    asyncio.run(work())
    assert [len(batch) for batch in written.batches] == [access_log.MOST_LINES] * 2 + [1]


def test_without_a_wait_each_line_is_written_at_once() -> None:
    with capture_logs() as lines:
        AccessLog().note(line(caller="order-66"))
    assert lines == [
        {
            "event": "request",
            "log_level": "info",
            "request_id": "ours",
            "caller_request_id": "order-66",
            "method": "GET",
            "path": "/x",
            "status": 200,
            "bytes": 12,
            "ms": 12.5,
            "scheme": "https",
            "client": "203.0.113.9",
        }
    ]


def test_a_line_that_waits_says_nothing_of_the_request_that_made_it_wait() -> None:
    seen: list[dict[str, object]] = []

    async def work() -> None:
        log = AccessLog(lambda _lines: seen.append(dict(structlog.contextvars.get_contextvars())), seconds=0.001)
        structlog.contextvars.bind_contextvars(caller_request_id="order-66")
        log.note(line())
        while not seen:
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(work(), 30))
    assert seen == [{}]
