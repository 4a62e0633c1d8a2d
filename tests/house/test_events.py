"""No address and no command that changes something is without its security event, and the docs list every kind."""

import pytest
import typer

from muniment.cli import commands
from muniment.ground import events
from tests.house.sources import ROOT
from tests.house.test_docs import endpoint, routes

_CHANGING = {"POST", "PUT", "PATCH", "DELETE"}
_UNRECORDED = {
    "acl list", "agent", "client list", "client sessions", "client show", "completion", "content check", "demo",
    "group list",
    "group members", "index check", "index report", "index status", "key list", "object get",
    "object list", "object show",
    "partition list", "repository list", "repository usage", "resource list", "resource members", "search",
    "serve", "settings", "system list", "tour", "type list", "unit content", "unit list", "user list",
    "user sessions", "user show", "wastebasket list",
}  # fmt: skip


def changing_addresses() -> list[tuple[str, str, object]]:
    return [
        (method, route.path, getattr(answering, "func", answering))
        for route in routes()
        if (found := endpoint(route))
        for method, answering in found._methods.items()
        if method in _CHANGING
    ]


def _case(part: object) -> str:
    return part if isinstance(part, str) else ""


@pytest.mark.parametrize(("method", "path", "answering"), changing_addresses(), ids=_case)
def test_every_address_that_changes_something_says_which_events_it_leaves(
    method: str, path: str, answering: object
) -> None:
    assert hasattr(answering, "events"), f"mark what answers {method} {path} with events.tells(...)"
    assert set(answering.events) <= events.KINDS.keys()


def test_every_kind_of_event_is_left_by_an_address_or_by_the_command_line() -> None:
    left = {kind for *_, answering in changing_addresses() for kind in getattr(answering, "events", ())}
    assert left | {"command"} == events.KINDS.keys()


def registered(group: typer.Typer, before: str = "") -> list[tuple[str, bool]]:
    """Every command by its path, and whether it is told of."""
    found = [
        (f"{before} {one.name}".strip(), getattr(one.callback, "__wrapped__", None) is not None)
        for one in group.registered_commands
    ]
    for one in group.registered_groups:
        assert one.typer_instance is not None
        found += registered(one.typer_instance, f"{before} {one.name}".strip())
    return found


def test_every_command_is_told_of_unless_it_is_listed_as_one_that_only_reads() -> None:
    paths = registered(commands.program())
    assert len(paths) > 50
    assert {path for path, told in paths if not told} == _UNRECORDED
    assert not [path for path, _ in paths if "None" in path]


def test_the_docs_list_every_kind_of_event_and_every_field() -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    for name, meaning in [*events.KINDS.items(), *events.FIELDS.items()]:
        assert f"| `{name}` | {meaning} |" in page
    table = page.partition("<!-- events: begin -->")[2].partition("<!-- events: end -->")[0]
    assert table.count("\n| `") == len(events.KINDS) + len(events.FIELDS)
