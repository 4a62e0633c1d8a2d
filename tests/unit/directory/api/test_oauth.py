"""Who the client of a token request says it is (RFC 6749 2.3.1)."""

import base64

import pytest
from starlette.requests import Request

from muniment.directory.api import client_authentication
from muniment.directory.oauth.clients import ClientProof
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
    proof = client_authentication.read(_request(*headers), asked)
    assert (proof.client_id, proof.secret) == who


def test_basic_is_form_decoded_first_and_taken_as_sent_only_if_the_text_differs() -> None:
    """A client that does not form-encode its secret is known, too."""
    proof = client_authentication.read(_request(_basic("web:p+q")), {})
    assert proof == ClientProof("web", "p q", raw=ClientProof("web", "p+q"))
    assert client_authentication.read(_request(_basic("web:p%20q")), {}).raw == ClientProof("web", "p%20q")
    assert client_authentication.read(_request(_basic("web:pq")), {}).raw is None
    assert client_authentication.read(_request(_basic("web:%zz")), {}) == ClientProof("web", "%zz")
    named = client_authentication.read(_request(_basic("a+b:s")), {"client_id": "a+b"})
    assert named == ClientProof("a+b", "s")


@pytest.mark.parametrize(
    ("headers", "asked"),
    [([_basic("web:s")], {"client_secret": "s"}), ([_basic("web:s")], {"client_id": "other"}), ([], {})],
)
def test_a_client_that_says_two_things_or_nothing_is_an_invalid_request(
    headers: list[str], asked: dict[str, str]
) -> None:
    with pytest.raises(InvalidTokenRequest):
        client_authentication.read(_request(*headers), asked)


@pytest.mark.parametrize(
    "headers",
    [
        ["Basic"],
        ["Basic !!!"],
        ["Basic //8="],
        [_basic("web")],
        [_basic(":s")],
        ["Digest x"],
        [_basic("web:s"), _basic("web:s")],
    ],
)
def test_an_authorization_that_cannot_be_read_is_an_invalid_client(headers: list[str]) -> None:
    with pytest.raises(InvalidClient):
        client_authentication.read(_request(*headers), {"client_id": "web"})
