"""What a request shows to prove who calls, as RFC 6750 and RFC 7617 spell it."""

import base64
from typing import Any

import pytest
from starlette.requests import Request

from muniment.repository.api.callers import credentials
from muniment.repository.api.callers.credentials import RequestCredentials, TicketNames
from muniment.repository.options import RepositoryOptions

TICKETS = TicketNames("The-Ticket", lambda request: request.cookies.get("ticket", ""))


def read(
    headers: dict[str, str],
    options: RepositoryOptions | None = None,
    method: str = "GET",
    parameters: dict[str, str] | None = None,
) -> RequestCredentials:
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    scope: dict[str, Any] = {"type": "http", "method": method, "headers": raw, "client": ("203.0.113.9", 1)}
    if parameters is not None:
        scope["muniment.credentials"] = parameters
    return credentials.read(Request(scope), options or RepositoryOptions(), TICKETS)


def basic(text: str | bytes) -> dict[str, str]:
    encoded = base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()
    return {"Authorization": f"Basic {encoded}"}


@pytest.mark.parametrize("header", ["Bearer abc", "bearer abc", "BEARER  abc", "Bearer abc "])
def test_the_scheme_is_read_in_any_case(header: str) -> None:
    assert read({"Authorization": header}).token == "abc"


@pytest.mark.parametrize(
    "header", ["abc", "Bearer a b", "Bearer ä", "Bearer abc, Bearer x", "Token x", "Negotiate abc"]
)
def test_what_is_no_token_is_said_to_be_none(header: str) -> None:
    shown = read({"Authorization": header})
    assert (shown.token, shown.pair) == ("", None)
    assert shown.trouble


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "bearer"])
def test_an_empty_header_is_no_header(header: str) -> None:
    shown = read({"Authorization": header})
    assert (shown.token, shown.pair, shown.trouble) == ("", None, "")


@pytest.mark.parametrize(
    ("text", "account", "password"),
    [
        ("marta@staff:secret", "marta@staff", "secret"),
        ("marta@staff:a:b:", "marta@staff", "a:b:"),
        ("müller@staff:päßwörd 文字", "müller@staff", "päßwörd 文字"),
        ("x@y.com@staff:secret", "x@y.com@staff", "secret"),
        ("marta: secret ", "marta@people", " secret "),
    ],
)
def test_a_name_and_a_password_are_read(text: str, account: str, password: str) -> None:
    pair = read(basic(text), RepositoryOptions(default_partition="people")).pair
    assert pair is not None
    assert (pair.account, pair.password) == (account, password)


def test_without_a_default_partition_a_bare_name_stays_bare() -> None:
    pair = read(basic("marta:secret")).pair
    assert pair is not None
    assert pair.account == "marta"


@pytest.mark.parametrize(
    "header",
    [
        basic("no colon"),
        basic(":secret"),
        basic("marta@staff:"),
        basic("marta@staff:se\ncret"),
        basic("mar\x00ta@staff:secret"),
        basic("marta@staff:secret\x7f"),
        basic(b"marta@staff:\xff\xfe"),
        basic("marta@staff:" + "x" * 4000),
        {"Authorization": "Basic"},
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic bWFydGE6c2VjcmV0 bWFydGE6c2VjcmV0"},
        {"Authorization": "Basic ünreadable"},
    ],
)
def test_what_is_no_name_and_password_is_said_to_be_none(header: dict[str, str]) -> None:
    shown = read(header)
    assert shown.pair is None
    assert shown.trouble


def test_a_ticket_is_read_from_its_header_and_its_cookie() -> None:
    shown = read({"the-ticket": "t1", "Cookie": "other=x; ticket=t2"})
    assert (shown.ticket, shown.cookie_ticket, shown.token) == ("t1", "t2", "")
    assert shown.outlives_guards
    assert not read({"Authorization": "Bearer abc"}).outlives_guards


@pytest.mark.parametrize(("method", "safe"), [("GET", True), ("HEAD", True), ("POST", False), ("PUT", False)])
def test_a_method_is_safe_that_changes_nothing(method: str, *, safe: bool) -> None:
    assert read({}, method=method).safe is safe


def test_a_token_in_the_address_counts_where_a_setting_allows_it() -> None:
    shown = {"access_token": "abc"}
    assert read({}, parameters=shown).address_token == ""
    allowed = RepositoryOptions(token_in_address=True)
    assert read({}, allowed, parameters=shown).address_token == "abc"
    assert read({}, allowed, parameters={"access_token": "a b"}).address_token == ""
    assert credentials.parameters(allowed) == ("csrf-token", "access_token")
    assert credentials.parameters(RepositoryOptions()) == ("csrf-token",)


def test_the_csrf_token_comes_in_a_header_or_in_the_address() -> None:
    assert read({"Muniment-CSRF-Token": "x"}).csrf == "x"
    assert read({}, parameters={"csrf-token": "y"}).csrf == "y"


def test_nothing_that_is_shown_can_be_printed() -> None:
    shown = read({**basic("marta@staff:secret"), "the-ticket": "ticket-value"})
    assert "secret" not in repr(shown) + repr(shown.pair)
    assert "ticket-value" not in repr(shown)
