"""The table of addresses: what stands in it whole comes first, and something answers whatever was asked."""

import asyncio
from urllib.parse import unquote

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Scope

from muniment.ground.refusals import Malformed
from muniment.web.addresses import (
    BINARY,
    TEXT,
    Address,
    Addresses,
    AddressTable,
    AnswerDescription,
    Content,
    CredentialKind,
    ErrorShape,
    Operation,
)
from muniment.web.answers.responses import json_response


def _route(path: str, name: str) -> Route:
    async def said(_request: Request) -> Response:
        return PlainTextResponse(name)

    return Route(path, said)


@pytest.mark.parametrize(
    ("path", "by"), [("/a/b", "whole"), ("/a/c", "open"), ("/x", "rest"), ("*", "rest"), ("", "rest")]
)
def test_the_last_line_answers_whatever_no_other_does(path: str, by: str) -> None:
    table = Addresses([_route("/a/{name}", "open"), _route("/a/b", "whole"), _route("/{rest:path}", "rest")])
    said: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        said.append(message)

    asyncio.run(table({"type": "http", "method": "GET", "path": path, "headers": []}, receive, send))
    assert said[-1]["body"].decode() == by


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ("/a/list/x%2fy", "x/y None"),
        ("/a/list/%2F", "/ None"),
        ("/a/list/x%2Fy.xml", "x/y xml"),
        ("/a/list/x%252Fy", "x%2Fy None"),
        ("/a/list/x%2Fbytes", "x/bytes None"),
        ("/a/list/x%2Fy/bytes", "x/y None"),
        ("/a/list/%C3%2F%A9", "\ufffd/\ufffd None"),
        ("/a%2Flist/x", "rest"),
        ("/a%2Flist", "rest"),
        ("/a/list/x/y", "rest"),
    ],
)
def test_an_encoded_slash_belongs_to_a_name(sent: str, told: str) -> None:
    assert _body(unquote(sent), suffixed=True, raw_path=sent.encode()) == told


def test_a_path_that_the_server_has_changed_is_taken_as_it_says() -> None:
    assert _body("/a/list/x", suffixed=True, raw_path=b"/below/a/list%2Fx") == "x None"


async def _tell(request: Request, _half: str) -> Response:
    name = request.path_params.get("name", "")
    return PlainTextResponse(f"{name} {request.scope.get('muniment.suffix')}")


async def _finder(request: Request, _half: str) -> bool:
    name = request.path_params["name"]
    if name.startswith("secret"):
        raise Malformed("Not for you.")
    return bool(name == "whole.json")


def _table(*, suffixed: bool) -> AddressTable[str]:
    def address(path: str, content: Content) -> Address[str]:
        return Address(path, {"GET": Operation(_tell, answers=(AnswerDescription(200, "It.", content),))})

    return AddressTable(
        "half",
        "/a",
        (
            address("/list", {"application/json": TEXT}),
            address("/list/{name}", {"application/xml": TEXT}),
            address("/list/{name}/bytes", {"*/*": BINARY}),
            address("/ids/{id}", {"application/json": TEXT}),
        ),
        ErrorShape("plain", lambda _request, said, sentence: json_response(sentence, said.status), {}),
        CredentialKind.NONE,
        suffixed=suffixed,
        finders={"name": _finder},
    )


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/a/list", " None"),
        ("/a/list.json", " json"),
        ("/a/list.xml", " xml"),
        ("/a/list.txt", "rest"),
        ("/a/list/x", "x None"),
        ("/a/list/x.xml", "x xml"),
        ("/a/list/x.txt", "x.txt None"),
        ("/a/list/whole.json", "whole.json None"),
        ("/a/list/whole.json.json", "whole.json json"),
        ("/a/list/secret.json", '"Not for you."'),
        ("/a/list/x/bytes", "x None"),
        ("/a/list/x/bytes.json", "rest"),
        ("/a/list/x.json/bytes", "x.json None"),
        ("/a/ids/0b.json", " json"),
    ],
)
def test_a_suffix_is_taken_where_the_answer_is_a_document_and_no_name_ends_so(path: str, told: str) -> None:
    assert _body(path, suffixed=True) == told


@pytest.mark.parametrize(("path", "told"), [("/a/list.json", "rest"), ("/a/list/x.json", "x.json None")])
def test_a_table_may_do_without_suffixes(path: str, told: str) -> None:
    assert _body(path, suffixed=False) == told


def _body(path: str, *, suffixed: bool, raw_path: bytes | None = None) -> str:
    addresses = Addresses([*_table(suffixed=suffixed).routes("half"), _route("/{rest:path}", "rest")])
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": raw_path,
        "headers": [],
        "query_string": b"",
    }
    asyncio.run(addresses(scope, receive, send))
    body: bytes = sent[-1]["body"]
    return body.decode()
