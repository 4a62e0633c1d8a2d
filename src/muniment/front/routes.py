"""Every address of the front door on one page, and the description of all addresses of this process."""

from importlib import metadata
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muniment.directory.api import routes as directory_routes
from muniment.front import health, pages
from muniment.front.halves import Halves
from muniment.repository.api import routes as repository_routes
from muniment.repository.api.callers.credentials import TOKEN_PARAMETER
from muniment.repository.page import frame as search_page_frame
from muniment.repository.page import routes as search_page_routes
from muniment.web import openapi
from muniment.web.addresses import (
    BINARY,
    TEXT,
    Address,
    AddressTable,
    AnswerDescription,
    Answering,
    Content,
    CredentialKind,
    ErrorShape,
    Operation,
    Parameter,
)

_PAGE = {"text/html": TEXT}
_DOCUMENT = {**_PAGE, "text/markdown": TEXT, "text/plain": TEXT, "image/png": BINARY}
_STATUS = {"application/json": {"type": "object", "description": "What is well, part by part."}}


async def describe(request: Request, halves: Halves) -> Response:
    """Describe every address of this process in OpenAPI 3.1."""
    base = request.scope["muniment.base"]
    if base not in halves.descriptions:
        cookie = halves.installation.settings.directory.names.ticket_cookie or "__Host-muniment_ticket"
        callers = _caller_credentials(halves)
        description = openapi.document(tables(halves), base, metadata.version("muniment"), cookie, callers)
        halves.descriptions[base] = msgspec.json.encode(description)
    return Response(halves.descriptions[base], headers={"Cache-Control": "max-age=300"}, media_type="application/json")


def _caller_credentials(halves: Halves) -> openapi.CallerCredentials:
    if halves.repository is None:
        return openapi.CallerCredentials()
    callers, options = halves.repository.callers, halves.repository.options
    return openapi.CallerCredentials(
        basic=callers.pairs is not None,
        ticket="" if callers.tickets is None else callers.tickets.names.header,
        csrf=f"{options.names.csrf_prefix}-Token",
        address_token=TOKEN_PARAMETER if options.token_in_address else "",
        search_page="" if callers.page is None else search_page_frame.COOKIE,
    )


def table() -> AddressTable[Halves]:
    return AddressTable(
        "front door",
        "",
        (
            Address("/health/live", {"GET": _reading(health.live, _STATUS)}),
            Address(
                "/health/ready",
                {
                    "GET": Operation(
                        health.ready,
                        answers=(
                            AnswerDescription(200, "It can.", _STATUS),
                            AnswerDescription(503, "It cannot. `Retry-After` says when to ask again.", _STATUS),
                        ),
                    )
                },
            ),
            Address("/", {"GET": _reading(pages.front_page, _PAGE)}),
            Address("/openapi.json", {"GET": _reading(describe, {"application/json": {"type": "object"}})}),
            Address("/style.css", {"GET": _reading(pages.asset, {"text/css": BINARY})}),
            Address("/icon.svg", {"GET": _reading(pages.asset, {"image/svg+xml": BINARY})}),
            Address("/docs", {"GET": _reading(pages.contents, _PAGE)}),
            Address("/docs/{page:path}", {"GET": _reading(pages.document, _DOCUMENT)}),
        ),
        ErrorShape(
            "front-door",
            pages.plain,
            {"application/json": pages.PlainError, **_PAGE},
            lambda error_code: error_code.code,
        ),
        CredentialKind.NONE,
        (
            Parameter(
                "page",
                "Name of a page of the documentation, of its file (.md), or of one of its pictures.",
                place="path",
            ),
        ),
    )


def tables(halves: Halves) -> list[AddressTable[Any]]:
    address_tables: list[AddressTable[Any]] = [table()]
    if halves.directory is not None:
        names, issuer = halves.directory.options.names, halves.directory.issuer
        address_tables += [directory_routes.table(names), directory_routes.older_table(names)]
        address_tables.append(directory_routes.root_table(names, issuer))
    if halves.repository is not None:
        own = halves.repository.options.names
        address_tables += [
            repository_routes.table(own),
            repository_routes.metadata_table(own, halves.repository.root),
        ]
        if halves.repository.callers.page is not None:
            address_tables.append(search_page_routes.table())
    return address_tables


def routes(halves: Halves) -> list[Route]:
    return table().routes(halves)


def _reading(endpoint: Answering[Halves], content: Content) -> Operation[Halves]:
    return Operation(endpoint, answers=(AnswerDescription(200, "It is here.", content),))
