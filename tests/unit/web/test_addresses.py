"""The table of addresses: what stands in it whole comes first, and something answers whatever was asked."""

import asyncio

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message

from muniment.web.addresses import Addresses


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
