"""Who may do what at the directory's addresses by REST? Every method of every address, in both dialects, is asked."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import pytest

from muniment.directory.api.rest.addresses import ROWS
from muniment.directory.api.rest.callers import RequiredRight
from muniment.directory.api.rest.calls import Row
from muniment.directory.entries import entries, memberships
from muniment.integration.directory_dependencies import RepositoryDependencies
from tests.interface.by_rest import header, ticket
from tests.scenes import Person, Site

_BODY = b'{"newPassword": "a new one"}'

MARKS: Mapping[str, Sequence[pytest.MarkDecorator]] = {"rest": (), "v1": (pytest.mark.campaign,)}
"""Both dialects' addresses are made from one row."""

ASKED = [
    pytest.param(dialect, row, verb, id=f"{verb} /{dialect}{row.path}", marks=MARKS[dialect])
    for dialect, row in itertools.product(("rest", "v1"), ROWS)
    for verb, method in row.methods.items()
    if method.right is not RequiredRight.OPEN
]


def ask(site: Site, dialect: str, row: Row, verb: str, headers: Mapping[str, str] = {}) -> httpx.Response:
    """Send an object that every address can read. What the path names does not exist."""
    path = re.sub(r"\{(\w+)\}", lambda part: "0" * 8 if part[1] == "resource_id" else "nothing@nowhere", row.path)
    sent = {**headers, "Content-Type": "application/json"}
    answer = site.http.request(
        verb, f"{site.directory}/{dialect}{path}", content=b'{"newPassword": "a new one"}', headers=sent
    )
    assert answer.status_code == 204 or isinstance(answer.json(), dict)
    return answer


def shown(site: Site, person: Person, resource_id: str = "", *, seconds: int = 600) -> dict[str, str]:
    """Give the header with a ticket of a program, for the directory unless a resource is named."""
    return {header(site): ticket(site, person, resource_id, seconds=seconds)}


@pytest.mark.parametrize(("dialect", "row", "verb"), ASKED)
def test_each_method_asks_who_calls(site: Site, dialect: str, row: Row, verb: str) -> None:
    world = site.world
    administrator = world.admin(site.directory_names)
    wants_administrator = row.methods[verb].right is RequiredRight.ADMINISTRATOR
    statuses = {
        "nobody": ask(site, dialect, row, verb),
        "an empty token": ask(site, dialect, row, verb, {"Authorization": "Bearer "}),
        "garbage": ask(site, dialect, row, verb, {"Authorization": "Bearer garbage"}),
        "a token for another resource": ask(site, dialect, row, verb, site.bearer()),
        "an ended ticket": ask(site, dialect, row, verb, shown(site, administrator, seconds=-1)),
        "a ticket of another resource": ask(site, dialect, row, verb, shown(site, administrator, world.resource_id)),
        "a user": ask(site, dialect, row, verb, shown(site, world.reader)),
        "an administrator": ask(site, dialect, row, verb, shown(site, administrator)),
    }
    codes = {who: answer.status_code for who, answer in statuses.items()}
    assert (
        codes["nobody"] == codes["an empty token"] == codes["garbage"] == codes["a ticket of another resource"] == 401
    )
    assert codes["a token for another resource"] == 403
    assert (codes["an ended ticket"], statuses["an ended ticket"].json()["status"]) == (400, 1034)
    assert statuses["an ended ticket"].json()["error"] == site.directory_names.expired_ticket
    assert codes["a user"] == 403 if wants_administrator else codes["a user"] != 401
    assert codes["an administrator"] not in {401, 403}


def test_a_removal_asks_again_in_the_transaction_that_removes(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    world, remove = site.world, RepositoryDependencies.remove_person
    person, victim = world.person(), world.person()
    with world.directory_db.begin() as cx:
        memberships.add_member(cx, entries.administrators(cx), world.entry(person))

    def late(*args: Any) -> None:
        with world.directory_db.begin() as cx:
            memberships.remove_members(cx, entries.administrators(cx), [world.entry(person)])
        remove(*args)

    monkeypatch.setattr(RepositoryDependencies, "remove_person", late)
    answer = site.http.delete(f"{site.directory}/rest/users/{victim.id}", headers=shown(site, person))
    assert answer.status_code == 403
    assert world.entry(victim).live
