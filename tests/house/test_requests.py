"""docs/requests.md prints a request for every method of every address; tests/e2e/test_requests.py asks them all."""

import re
import shlex
from typing import Any, NamedTuple

import pytest
from starlette.routing import compile_path

from muniment.directory.api import routes as directory_routes
from muniment.directory.options import DirectoryNames
from muniment.front import routes as front_routes
from muniment.repository.api import routes as repository_routes
from muniment.repository.options import RepositoryNames
from muniment.repository.page import routes as search_page_routes
from muniment.web.addresses import AddressTable, CredentialKind
from tests.e2e.pages import BLOCK, COMMAND
from tests.house.sources import ROOT

PAGE = ROOT / "docs" / "requests.md"

BY_TOKEN = '-H "Authorization: Bearer $TOKEN"'
BY_PASSWORD = '-u "anna@staff:$PASSWORD"'

TABLES: tuple[AddressTable[Any], ...] = (
    front_routes.table(),
    directory_routes.table(DirectoryNames()),
    directory_routes.root_table(DirectoryNames(), "https://127.0.0.1:8443/dirws"),
    repository_routes.table(RepositoryNames()),
    repository_routes.metadata_table(RepositoryNames(), ""),
    search_page_routes.table(),
)
"""Every address there is, with its neutral names."""


class Printed(NamedTuple):
    """A command of the page with what the page prints below it."""

    command: str
    answer: str

    @property
    def operation(self) -> tuple[str, str]:
        """The method and the path that curl is told, without the base address and the query."""
        words = iter(shlex.split(self.command.replace("\\\n", "")))
        method, sent, url = "", False, ""
        for word in words:
            if word in {"-H", "-u", "-X", "-d", "-F", "--data-urlencode"}:
                argument = next(words)
                method = argument if word == "-X" else method
                sent |= word not in {"-H", "-u", "-X"}
            elif word.startswith(("$BASE", "$REPO")):
                url = word.replace("$REPO", "/rest/repositories/demo").removeprefix("$BASE").partition("?")[0]
        return method or ("POST" if sent else "GET"), url


def printed(page: str) -> list[Printed]:
    """Every command of the page, in order."""
    return [Printed(*found) for block in BLOCK.findall(page) for found in COMMAND.findall(block)]


def requests(page: str) -> list[Printed]:
    """Every request of the page, in order."""
    return [one for one in printed(page) if one.command.startswith("curl ")]


def operations() -> dict[tuple[str, str], CredentialKind]:
    """Every method and address of the tables, with the credentials that it expects."""
    return {
        (method, table.prefix + address.path): table.credentials_of(address, operation)
        for table in TABLES
        for address in table.addresses
        for method, operation in address.operations.items()
    }


def addressed(request: Printed) -> tuple[str, str]:
    """The method and the address that a request meets: of several the one without an open part, else the first."""
    method, path = request.operation
    for address in sorted({address for _, address in operations()}, key=lambda address: "{" in address):
        if compile_path(address)[0].match(path):
            return method, address
    raise AssertionError(f"there is no address {path}")


@pytest.mark.slow
def test_every_address_has_a_request() -> None:
    met = {addressed(request) for request in requests(PAGE.read_text("utf-8"))}
    assert met == operations().keys(), "print a request in docs/requests.md for each method of each address"


@pytest.mark.slow
def test_a_request_shows_a_token_where_the_password_may_stand() -> None:
    """An address of the repository takes either, so that the test with the password asks each of them."""
    for request in requests(PAGE.read_text("utf-8")):
        takes_either = operations()[addressed(request)] is CredentialKind.CALLER
        assert (BY_TOKEN in request.command) == takes_either, request.command


@pytest.mark.slow
def test_every_request_stands_below_its_address() -> None:
    page = PAGE.read_text("utf-8")
    for heading, text in re.findall(r"^### `(?:[A-Z]+ )?(\S+)`\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL):
        met = [addressed(request)[1] for request in requests(text)]
        assert heading in met, heading
