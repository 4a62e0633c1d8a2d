"""What the caller may not see takes the statements, the rows and the answer of what is not there, at every address."""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from sqlalchemy.engine import Connection

from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.decisions.creation import NewObject
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.lists import Folder
from muniment.repository.store.objects.properties.properties import Given
from muniment.repository.store.permissions.principals import Principals
from tests.counting import cost
from tests.house.test_docs import endpoint, routes
from tests.plans import steps, work
from tests.shelf import ADMIN, JON, MARTA, Shelf
from tests.unit.repository.api.test_objects import Site

ABSENT = "fffffff0"
NOWHERE = "0c000000" + ABSENT
"""The number of an object that is not there."""

BELOW = "/rest/repositories/{repository}"
PLAIN = {"Content_Type": "text/plain"}

BODIES: Mapping[tuple[str, str], Any] = {
    ("POST", "contents"): b"some text",
    ("PUT", "permission-set"): {"acl-name": "public"},
    ("PUT", "default-permission-set"): {"acl-name": "public"},
    ("POST", "restore"): {},
    ("POST", "folders"): {"properties": {"object_name": "x", "r_object_type": "folder"}},
    ("POST", "documents"): {"properties": {"object_name": "x"}},
    ("POST", "objects"): {"properties": {"object_name": "x"}},
    ("POST", "{id}"): {"properties": {"title": "t"}},
    ("POST", "/comments/{id}"): {"properties": {"content": "x"}},
    ("POST", "parent-links"): {"href": "https://muniment.test/rest/repositories/demo/folders/{target}"},
    ("PUT", "{other}"): {"href": "https://muniment.test/rest/repositories/demo/folders/{target}"},
    ("POST", "comments"): {"properties": {"content": "x"}},
    ("POST", "replies"): {"properties": {"content": "x"}},
    ("POST", "child-links"): {"href": "https://muniment.test/rest/repositories/demo/objects/{target}"},
}
"""What is sent, by the method and the address, or the last word of the address."""

_TIMEOUT = re.compile(r"(?<=statement_timeout = )[0-9]+")

Asked = tuple[str, str, Any]


def requests() -> list[Asked]:
    """Every method of every address that holds an object's id, with a body that is good for an object to be seen."""
    made: list[Asked] = []
    for route in routes():
        found = endpoint(route)
        if found is None or not route.path.startswith(BELOW) or "/{id}" not in route.path:
            continue
        path = route.path.removeprefix(BELOW)
        body = {method: BODIES.get((method, path.rpartition("/")[2])) for method in found._methods}
        made += [(method, path, BODIES.get((method, path), body[method])) for method in sorted(found._methods)]
        if "POST" in found._methods and path in {"/folders/{id}/documents", "/folders/{id}/objects"}:
            made.append(("POST", f"{path}?object-name=x", b"some text"))
    return made


class Taken(NamedTuple):
    """What a request took, and its answer without the id."""

    status: int
    spent: tuple[list[str], int]
    body: bytes
    headers: dict[str, str]


def ask(
    site: Site, asked: Asked, object_id: str, who: str = "jon", other: str = NOWHERE, target: str = NOWHERE
) -> Taken:
    """Send a request; ``other`` stands at the other end of a link in the address, ``target`` in that of the body."""
    method, path, body = asked
    sort = PLAIN if isinstance(body, bytes) else {}
    if isinstance(body, dict) and "href" in body:
        body = {"href": body["href"].format(target=target)}
    while True:
        with cost(site.shelf.database) as spent:
            answer = site(method, path.format(id=object_id, other=other), body, who, **sort)
        # Once a second the next request, whosever it is, reads the repository's own row anew.
        if answer.status_code < 400 or not any("repositories.name = " in one for one in spent.statements):
            break
    statements = [_TIMEOUT.sub("", one) for one in spent.statements]
    headers = {name: value for name, value in answer.headers.items() if name not in {"x-request-id", "date"}}
    answered = answer.content.replace(object_id.encode(), b"ID")
    return Taken(answer.status_code, (statements, spent.rows), answered, headers)


@pytest.fixture
def site(shelf: Shelf) -> Iterator[Site]:
    made = Site(shelf)
    yield made
    made.half.transactions._threads.shutdown()


def hidden_ids(site: Site) -> list[str]:
    """Make what Jon may not see: by an ACL that does not name him, that bars him, and that names many others."""
    barred = [{"accessor": "guests@demo", "basic-permission": "None"}]
    crowd = [{"accessor": f"person-{number}@demo", "basic-permission": "Read"} for number in range(100)]
    own = {"accessor": "owner", "basic-permission": "Delete"}
    for name, permitted in (("barred", barred), ("crowded", crowd)):
        assert site("POST", "/acls", {"name": name, "permitted": [own, *permitted]}).status_code == 201
    ids = [site.make(acl_name=name) for name in ("private", "barred", "crowded")]
    made = site("POST", "/cabinets", {"properties": {"object_name": "c", "acl_name": "crowded"}})
    ids.append(made.json()["properties"]["r_object_id"])
    made = site("POST", f"/folders/{ids[-1]}/folders", {"properties": {"object_name": "f", "acl_name": "barred"}})
    ids.append(made.json()["properties"]["r_object_id"])
    site("POST", f"/folders/{ids[-1]}/documents", {"properties": {"object_name": "d"}})
    return ids


def discarded(site: Site) -> str:
    """Make a document and put it into the wastebasket."""
    object_id, shelf = site.make(), site.shelf
    with shelf.database.begin() as cx:
        objects.delete(cx, shelf.repository, ADMIN, object_id, shelf.now, keep_days=30)
    return object_id


def attached(site: Site, kind: str, object_id: str) -> str:
    """Relate an object to itself, or comment on it, as an administrator; give the id."""
    path, properties = {
        "relations": ("/relations", {"relation_name": "peer", "parent_id": object_id, "child_id": object_id}),
        "comments": (f"/objects/{object_id}/comments", {"content": "x"}),
    }[kind]
    made = site("POST", path, {"properties": properties}, "root")
    made_id: str = made.json()["properties"]["r_object_id"]
    return made_id


@pytest.mark.slow
def test_every_address_takes_for_a_hidden_object_what_it_takes_for_an_absent_one(site: Site) -> None:
    ids, every = hidden_ids(site), requests()
    assert {method for method, _, _ in every} == {"GET", "POST", "PUT", "DELETE"}
    assert len({path for _, path, _ in every}) >= 11
    of_kind = {kind: [attached(site, kind, each) for each in ids] for kind in ("relations", "comments")}
    for asked in every:
        for hidden in of_kind.get(asked[1].split("/")[1], ids):
            absent = hidden[:-8] + ABSENT
            ask(site, asked, absent)  # what a process reads once
            seen, unseen = ask(site, asked, hidden), ask(site, asked, absent)
            assert seen == unseen, (asked, hidden)
            assert seen.status == 404, (asked, hidden, seen.body)


@pytest.mark.slow
def test_each_of_those_requests_does_something_for_who_may(site: Site) -> None:
    """The requests above are refused for the object alone."""
    for asked in requests():
        document = site.make()
        cabinet, target = (
            site("POST", "/cabinets", {"properties": {"object_name": name}}).json()["properties"]["r_object_id"]
            for name in "ct"
        )
        made = site("POST", f"/folders/{cabinet}/documents", {"properties": {"object_name": "filed"}})
        filed = made.json()["properties"]["r_object_id"]
        site("POST", f"/objects/{document}/contents", b"kept", **PLAIN)
        ends = {"parent-links": [(document, "", cabinet), (filed, cabinet, target)]}
        ends["child-links"] = [(cabinet, filed, document)]
        ways = next((ways for links, ways in ends.items() if links in asked[1]), [(document, "", ""), (target, "", "")])
        if (kind := asked[1].split("/")[1]) in {"relations", "comments"}:
            ways = [(attached(site, kind, site.make()), "", "")]
        if asked[:2] in {("DELETE", "/objects/{id}/lock"), ("POST", "/objects/{id}/versions")}:
            assert site("PUT", f"/objects/{document}/lock").status_code == 200
        if kind == "wastebasket":
            ways = [(discarded(site), "", "")]
        if asked[:2] == ("POST", "/objects/{id}/aspects"):
            continue  # nobody may
        who = "root" if asked[1] == "/comments/{id}" else "marta"
        statuses = {ask(site, asked, one, who, other, target).status for one, other, target in ways}
        assert statuses & {200, 201, 204}, (asked, statuses)


def test_an_object_is_looked_up_in_one_statement_of_one_row_whoever_asks(shelf: Shelf) -> None:
    stored = shelf.create({"object_name": "x", "acl_name": "public"})
    for caller in (MARTA, JON, ADMIN):
        with cost(shelf.database) as spent:
            shelf.read(stored.id, caller)
        assert len([one for one in spent.statements if "objects" in one or "acl_entries" in one]) == 1
        assert spent.rows == 1


def folder_for_jon(site: Site, *children: str) -> str:
    """Make a cabinet that Jon may delete, with children of these ACLs."""
    cabinet = site("POST", "/cabinets", {"properties": {"object_name": "c", "acl_name": "theirs"}}, "root")
    object_id: str = cabinet.json()["properties"]["r_object_id"]
    for acl_name in children:
        body: dict[str, object] = {"properties": {"object_name": "x", "acl_name": acl_name}}
        assert site("POST", f"/folders/{object_id}/documents", body, "root").status_code == 201
    return object_id


def test_a_folder_that_is_not_empty_does_not_tell_whether_its_children_are_hidden(site: Site) -> None:
    entries = [{"accessor": "guests@demo", "basic-permission": "Delete"}]
    assert site("POST", "/acls", {"name": "theirs", "permitted": entries}, "root").status_code == 201
    delete = ("DELETE", "/folders/{id}", None)
    kinds = {
        "seen": folder_for_jon(site, "public", "public", "public"),
        "hidden": folder_for_jon(site, "private", "private", "private"),
        "one hidden": folder_for_jon(site, "private"),
        "both": folder_for_jon(site, "private", "public"),
    }
    ask(site, delete, kinds["seen"])
    answers = {kind: ask(site, delete, folder) for kind, folder in kinds.items()}
    assert all(answer == answers["seen"] for answer in answers.values()), answers
    assert answers["seen"].status == 409
    assert b"private" not in answers["seen"].body
    assert ask(site, delete, folder_for_jon(site)).status == 204


def test_nothing_tells_a_hidden_folder_named_in_a_body_from_an_absent_one(site: Site) -> None:
    ids = hidden_ids(site)
    own = site.make("jon")
    for folder in ids[-2:]:
        for path in (f"/objects/{own}", "/objects", f"/folders/{own}/objects"):
            answers = []
            for one in (folder[:-8] + ABSENT, folder, folder[:-8] + ABSENT):
                taken = ask(site, ("POST", path, {"properties": {"object_name": "x", "i_folder_id": one}}), own)
                answers.append(taken._replace(body=taken.body.replace(one.encode(), b"FOLDER")))
            assert answers[1] == answers[2]
            assert answers[1].status in {400, 404}


@pytest.mark.slow
def test_a_list_passes_over_hidden_children_in_the_database_by_its_index(shelf: Shelf) -> None:
    """Of 1,000 children one may be seen: as many rows are fetched, and the others take a few steps each, in order."""
    views, count = {caller.id: shelf.view(caller) for caller in (MARTA, JON)}, 3000
    cabinet = shelf.create({"object_name": "c", "acl_name": "public"}, type_name="cabinet")

    def child(number: int) -> NewObject:
        acl_name = "public" if number % 1000 == 0 else "private"
        given: dict[str, Given] = {"object_name": f"{number:04}", "acl_name": acl_name}
        return NewObject("document", given, cabinet.id, None, None)

    with shelf.database.begin() as cx:
        for begin in range(0, count, 500):
            wanted = [child(number) for number in range(begin, begin + 500)]
            creation.create_all(cx, views[MARTA.id], wanted, shelf.now)

    def listed(caller: Principals) -> Callable[[Connection], list[str]]:
        part = Stretch(limit=2, offset=0, after=None)
        return lambda cx: [
            one.stored.name for one in lists.object_page(cx, Folder(views[caller.id], cabinet.id, "document"), part)
        ]

    with cost(shelf.database) as spent, shelf.database.read() as cx:
        assert listed(JON)(cx) == ["0000", "1000"]
    assert (len([one for one in spent.statements if "FROM objects" in one]), spent.rows) == (1, 2)
    assert work(shelf.database, listed(MARTA)) < 1000
    assert work(shelf.database, listed(JON)) < 40 * count
    if shelf.database.dialect == "sqlite":
        ((_, plan),) = steps(shelf.database, listed(JON))
        assert any("ix_objects_folder" in step for step in plan), plan
        # Each half of the list is read in the order of its index; only the few rows of both are sorted.
        sorted_behind = [before for before, step in pairwise(plan) if "ORDER BY" in step]
        assert all(step.startswith("SCAN anon_") for step in sorted_behind), plan
