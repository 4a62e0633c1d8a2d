"""What a caller would rather have, by RFC 9110 12.5.1."""

import pytest
from starlette.requests import Request

from muniment.web.requests import accept

BROWSERS = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
    "text/html, */*",
    "text/html",
    "TEXT/HTML",
    "application/json;q=0.2, text/html",
    "text/*, application/json;q=0.9",
)
PROGRAMS = (
    "",
    "*/*",
    "application/json",
    "application/json, text/plain, */*",
    "application/json, text/html;q=0.9",
    "application/json, text/html",
    "text/html, application/json",
    "text/html;q=0, */*",
    "text/html;q=0.1, */*;q=0.5",
    "text/html;q=high",
    "image/png",
    ",;,",
)


def _request(*headers: str) -> Request:
    written = [(b"accept", header.encode()) for header in headers]
    return Request({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": written})


@pytest.mark.parametrize("header", BROWSERS)
def test_a_browser_reads_pages(header: str) -> None:
    assert accept.prefers_page(_request(header))


@pytest.mark.parametrize("header", PROGRAMS)
def test_a_program_reads_json(header: str) -> None:
    assert not accept.prefers_page(_request(header))


def test_who_says_nothing_reads_json() -> None:
    assert not accept.prefers_page(_request())


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        ("", "a/one"),
        ("*/*", "a/one"),
        ("a/*", "a/one"),
        ("b/two", "b/two"),
        ("a/one;q=0.5, b/two;q=0.6", "b/two"),
        ("a/one;q=0, */*", "b/two"),
        ("c/three", None),
    ],
)
def test_the_best_liked_is_chosen_and_of_equals_the_first(header: str, chosen: str | None) -> None:
    assert accept.best_media_type(_request(header), ("a/one", "b/two")) == chosen


def test_several_headers_are_one_list() -> None:
    assert accept.best_media_type(_request("a/one;q=0.5", "b/two"), ("a/one", "b/two")) == "b/two"
