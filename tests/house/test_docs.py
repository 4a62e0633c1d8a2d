"""What the docs promise is there: every setting, every address, every refusal with its status."""

import os
import re
from typing import Any

import pytest
from starlette.routing import Route

from bench import page
from muniment.directory import refusals as directory_refusals
from muniment.directory.api import routes as directory_routes
from muniment.directory.context import Directory
from muniment.directory.options import DirectoryOptions
from muniment.ground import refusals as web_refusals
from muniment.installation import settings
from muniment.repository import refusals as repository_refusals
from muniment.repository.api import routes as repository_routes
from muniment.repository.api.context import RepositoryContext
from muniment.repository.api.wire.codes import ENTERING
from muniment.repository.options import RepositoryOptions
from muniment.repository.page import routes as search_page_routes
from muniment.web.answers.responses import SHARED, Endpoint, Table
from tests.house.sources import ROOT

INTERFACE = ROOT / "docs" / "interface.md"

NOT_OVER_HTTP = {
    directory_refusals.SignsTokens,
    directory_refusals.StillGuards,
    directory_refusals.UnknownClient,
    directory_refusals.UnknownSession,
    directory_refusals.WrongSecret,
    directory_refusals.AuthorizationRefused,
    directory_refusals.WrongUserCode,
    repository_refusals.BadExport,
    repository_refusals.BadTypesFile,
}
"""Refusals that only the command line meets: sessions are listed and ended there, and exports imported. Two are told in
another way: by the answer to a client, and on the page for the code of a device.
"""


def _nothing() -> Any:
    return None


def routes() -> list[Route]:
    """Every address of both halves, the search page included, without spellings with a suffix."""
    directory = Directory(_nothing(), DirectoryOptions(), _nothing(), _nothing(), _nothing(), "")
    repository = RepositoryContext(_nothing(), RepositoryOptions(), _nothing(), _nothing(), _nothing(), _nothing())
    of_page = search_page_routes.table().routes(repository)
    every = [*directory_routes.routes(directory), *repository_routes.routes(repository), *of_page]
    return [route for route in every if route.include_in_schema]


def endpoint(route: Route) -> "Endpoint[Any] | None":
    """What answers at an address."""
    return route.app if isinstance(route.app, Endpoint) else None


def table_of(found: "Endpoint[Any]") -> Table:
    """The address's own rows: without those of every address, and of every address of a repository."""
    own = {kind: said for kind, said in found._table.items() if SHARED.get(kind) != said}
    return {kind: own[kind] for kind in own if kind not in ENTERING or not ENTERING.items() <= own.items()}


def tables() -> dict[str, str]:
    """The tables of refusals as docs/interface.md prints them: the shared ones, then the addresses'."""

    def rows(table: Table) -> list[str]:
        ordered = sorted(table.items(), key=lambda row: (row[1].status, row[0].__name__))
        return [f"| `{kind.__name__}` | {said.status} | `{said.code}` |" for kind, said in ordered]

    head = ["| Refusal | Status | Code |", "|---|---|---|"]
    groups: dict[tuple[str, ...], list[str]] = {}
    for route in routes():
        found = endpoint(route)
        if found is not None:
            own = tuple(rows(table_of(found)))
            groups.setdefault(own, []).append(f"`{' '.join(sorted(found._methods))} {route.path}`")
    printed = []
    for own, addresses in groups.items():
        printed += [", ".join(addresses) + ":", "", *(head + list(own) if own else ["Nothing of its own."]), ""]
    return {
        "shared refusals": "\n".join([*head, *rows(SHARED)]),
        "repository refusals": "\n".join([*head, *rows(ENTERING)]),
        "refusals": "\n".join(printed).rstrip(),
    }


def test_the_tables_of_refusals_are_in_the_interface() -> None:
    text = INTERFACE.read_text("utf-8")
    written = text
    for name, table in tables().items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, after = written.partition(begin)[0], written.partition(end)[2]
        written = f"{before}{begin}\n{table}\n{end}{after}"
    if os.environ.get("MUNIMENT_WRITE_DOCS"):
        INTERFACE.write_text(written, "utf-8")
    assert written == text, "run MUNIMENT_WRITE_DOCS=1 pytest tests/house/test_docs.py"


@pytest.mark.parametrize("refusals", [web_refusals, directory_refusals, repository_refusals])
def test_every_refusal_is_answered_by_some_address(refusals: Any) -> None:
    answered = {kind for route in routes() if (found := endpoint(route)) for kind in found._table}
    missing = [
        name
        for name, kind in vars(refusals).items()
        if isinstance(kind, type)
        and issubclass(kind, web_refusals.Refusal)
        and kind is not web_refusals.Refusal
        and kind not in answered
        and kind not in NOT_OVER_HTTP
    ]
    assert not missing


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted({route.path for route in routes() if endpoint(route)}))
def test_every_address_is_in_the_docs(path: str) -> None:
    docs = "\n".join(file.read_text("utf-8") for file in (ROOT / "docs").glob("*.md"))
    assert path in docs


def test_the_settings_are_in_the_docs_as_they_are() -> None:
    assert (ROOT / "docs" / "settings.md").read_text("utf-8").strip() == settings.markdown().strip()


def test_every_setting_says_what_it_is_for() -> None:
    assert [setting.key for setting in settings.table() if not setting.meaning.strip().endswith((".", ")"))] == []


def test_the_settings_of_the_field_are_settings() -> None:
    settings.read(ROOT / "examples" / "names-of-the-field.toml", {}, file_must_exist=True)


def test_every_clause_has_a_test_that_names_it() -> None:
    named = {
        match[1].replace("_", ".")
        for file in (ROOT / "tests" / "interface").glob("test_*.py")
        for match in re.finditer(r"def test_(\d+(?:_\d+)?)_", file.read_text("utf-8"))
    }
    clauses = {"2.1", "2.2", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "3", "4.1", "4.2", "4.3", "4.4", "4.5"}
    clauses |= {"4.6", "5", "5.1", "5.2", "5.3", "5.4", "5.5", "5.6", "5.7", "7"}
    assert clauses <= named


def test_rows_of_a_commit_before_the_newest_tag_are_marked_stale() -> None:
    measured = page.runs_and_rows(page.PAGE.read_text())
    assert measured
    assert all(measured.values())
    unmarked = [row for when, rows in measured.items() if page.is_stale(when) for row in rows if ", stale)" not in row]
    assert not unmarked, "make bench measures them anew, or marks them: make bench ARGS=--stale"
