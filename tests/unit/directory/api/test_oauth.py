"""Who the client of a token request says it is (RFC 6749 2.3.1)."""

import base64

import pytest
from starlette.requests import Request

from muniment.directory.api import oauth
from muniment.directory.refusals import InvalidClient, InvalidTokenRequest


def _request(*headers: str) -> Request:
    return Request({"type": "http", "headers": [(b"authorization", header.encode()) for header in headers]})


def _basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("headers", "asked", "who"),
    [
        ([], {"client_id": "web"}, ("web", None)),
        ([], {"client_id": "web", "client_secret": "s"}, ("web", "s")),
        (["Bearer "], {"client_id": "web"}, ("web", None)),
        (["Bearer stale"], {"client_id": "web"}, ("web", None)),
        ([_basic("web:s")], {}, ("web", "s")),
        ([_basic("web:s")], {"client_id": "web"}, ("web", "s")),
        ([_basic("web:")], {}, ("web", None)),
        ([_basic("a+b%3Ac:p%2Bq:r")], {}, ("a b:c", "p+q:r")),
        (["bAsIc " + _basic("web:s")[6:]], {}, ("web", "s")),
        (["Bearer ", _basic("web:s")], {}, ("web", "s")),
    ],
)
def test_a_client_is_known_by_the_body_or_by_basic(
    headers: list[str], asked: dict[str, str], who: tuple[str, str | None]
) -> None:
    assert oauth.client(_request(*headers), asked) == who


@pytest.mark.parametrize(
    ("headers", "asked"),
    [([_basic("web:s")], {"client_secret": "s"}), ([_basic("web:s")], {"client_id": "other"}), ([], {})],
)
def test_a_client_that_says_two_things_or_nothing_is_an_invalid_request(
    headers: list[str], asked: dict[str, str]
) -> None:
    with pytest.raises(InvalidTokenRequest):
        oauth.client(_request(*headers), asked)


@pytest.mark.parametrize(
    "headers",
    [
        ["Basic"],
        ["Basic !!!"],
        ["Basic //8="],
        [_basic("web")],
        [_basic(":s")],
        [_basic("web:%zz")],
        ["Digest x"],
        [_basic("web:s"), _basic("web:s")],
    ],
)
def test_an_authorization_that_cannot_be_read_is_an_invalid_client(headers: list[str]) -> None:
    with pytest.raises(InvalidClient):
        oauth.client(_request(*headers), {"client_id": "web"})
