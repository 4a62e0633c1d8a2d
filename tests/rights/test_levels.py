"""None, Browse, Read, Relate, Version, Write, Delete: each operation on an object takes its own, and none takes less.

The addresses come from the table that serves them: a new one that names an object fails here until it says which
permission each of its methods takes. Source: docs/interface.md, ours 4.
"""

import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import httpx
import pytest

from muniment.repository.api import routes
from muniment.repository.api.operations import BELOW
from muniment.repository.options import RepositoryNames
from muniment.repository.store.permissions.principals import Permission
from tests.scenes import Site

pytestmark = pytest.mark.campaign_on("postgresql")

BROWSE, READ, RELATE, VERSION, WRITE, DELETE = (Permission(level) for level in range(2, 8))
OWNER = None
"""What only the owner and administrators may do, whatever the ACL permits."""

numbers = itertools.count(1)


class Room:
    """Objects of the writer, whose permissions for the reader a test sets."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.open = site.cabinet("open to the reader")
        self.permit(self.open, DELETE)

    def send(self, method: str, path: str, *, owner: bool = False, **options: Any) -> httpx.Response:
        site = self.site
        headers = site.bearer(site.world.writer if owner else site.world.reader)
        headers |= {"Accept": "application/json"} | options.pop("headers", {})
        return site.http.request(method, f"{site.repository}{path}", headers=headers, **options)

    def permit(self, object_id: str, level: Permission) -> None:
        entry = {"accessor": self.site.world.reader.id, "basic-permission": level.name.capitalize()}
        own = {"accessor": self.site.type("owner"), "basic-permission": "Delete"}
        body = {"permitted": [entry, own]}
        answer = self.send("PUT", f"/objects/{object_id}/permission-set", owner=True, json=body)
        assert answer.status_code == 200, answer.text

    def make(self, kind: str) -> str:
        """A new object of the writer, with a text unless it is a folder; the reader may delete it for now."""
        name = f"{kind} {next(numbers)}"
        if kind == "cabinet":
            made = self.send("POST", "/cabinets", owner=True, json={"properties": {"object_name": name}})
        elif kind == "folder":
            path = f"/folders/{self.open}/folders"
            made = self.send("POST", path, owner=True, json={"properties": {"object_name": name}})
        else:
            path = f"/folders/{self.open}/documents?object-name={name.replace(' ', '+')}"
            made = self.send("POST", path, owner=True, content=b"some words", headers={"Content-Type": "text/plain"})
        assert made.status_code == 201, made.text
        object_id: str = made.json()["properties"]["r_object_id"]
        self.permit(object_id, DELETE)
        return object_id


class Use(NamedTuple):
    """What a method takes of the object that the address names or leads to, and how it is asked.

    ``kind`` is that of the object, ``before`` what the reader does with it while they may do everything: it returns
    parts of the address.
    """

    least: Permission | None
    kind: str = "document"
    body: Callable[[Room], Mapping[str, Any]] = lambda _: {}
    before: Callable[[Room, str], Mapping[str, str]] = lambda _room, _id: {}
    query: str = ""


def _properties(**values: str) -> Callable[[Room], Mapping[str, Any]]:
    return lambda _: {"json": {"properties": values}}


def _text(_room: Room) -> Mapping[str, Any]:
    return {"content": b"other words", "headers": {"Content-Type": "text/plain"}}


def _reference(kind: str) -> Callable[[Room], Mapping[str, Any]]:
    def body(room: Room) -> Mapping[str, Any]:
        target = room.make(kind)
        return {"json": {"href": f"{room.site.base}{room.site.repository}/{kind}s/{target}"}}

    return body


def _unfiled(room: Room, object_id: str) -> Mapping[str, str]:
    assert room.send("DELETE", f"/objects/{object_id}/parent-links/{room.open}").status_code == 204
    return {}


def _filed(room: Room, _object_id: str) -> Mapping[str, str]:
    return {"other": room.open}


def _member(room: Room, object_id: str) -> Mapping[str, str]:
    return {"id": room.open, "other": object_id}


def _unfiled_document(room: Room) -> Mapping[str, Any]:
    target = room.make("document")
    _unfiled(room, target)
    return {"json": {"href": f"{room.site.base}{room.site.repository}/documents/{target}"}}


def _checked_out(room: Room, object_id: str) -> Mapping[str, str]:
    assert room.send("PUT", f"/objects/{object_id}/lock").status_code == 200
    return {}


def _commented(room: Room, object_id: str) -> Mapping[str, str]:
    made = room.send("POST", f"/objects/{object_id}/comments", json={"properties": {"content": "a remark"}})
    return {"id": made.headers["Location"].rpartition("/")[2]}


def _related(room: Room, object_id: str) -> Mapping[str, str]:
    made = room.send("POST", "/relations", json=_relation(room, object_id))
    return {"id": made.headers["Location"].rpartition("/")[2]}


def _relation(room: Room, object_id: str) -> Mapping[str, Any]:
    values = {
        "relation_name": room.site.type("peer"),
        "parent_id": object_id,
        "child_id": room.make("document"),
    }
    return {"properties": values}


_SINGLE = {
    ("GET", f"{BELOW}/{kind}s/{{id}}"): Use(BROWSE, "document" if kind == "object" else kind)
    for kind in ("object", "document", "folder", "cabinet")
}
_COMMENT = _properties(content="a remark")

USES: dict[tuple[str, str], Use] = {
    **_SINGLE,
    **{("POST", path): use._replace(least=WRITE, body=_properties(title="t")) for (_, path), use in _SINGLE.items()},
    **{("DELETE", path): use._replace(least=DELETE) for (_, path), use in _SINGLE.items()},
    **{
        ("GET", f"{BELOW}/folders/{{id}}/{name}"): Use(BROWSE, "folder")
        for name in ("folders", "documents", "objects", "child-links", "default-permission-set")
    },
    **{
        ("POST", f"{BELOW}/folders/{{id}}/{name}"): Use(WRITE, "folder", _properties(object_name="new"))
        for name in ("folders", "documents", "objects")
    },
    ("POST", f"{BELOW}/folders/{{id}}/child-links"): Use(WRITE, "cabinet", _unfiled_document),
    ("GET", f"{BELOW}/folders/{{id}}/child-links/{{other}}"): Use(BROWSE, before=_member),
    ("DELETE", f"{BELOW}/folders/{{id}}/child-links/{{other}}"): Use(WRITE, before=_member),
    ("PUT", f"{BELOW}/folders/{{id}}/default-permission-set"): Use(
        OWNER, "folder", lambda _: {"json": {"acl-name": "public"}}
    ),
    ("DELETE", f"{BELOW}/folders/{{id}}/default-permission-set"): Use(OWNER, "folder"),
    ("GET", f"{BELOW}/objects/{{id}}/parent-links"): Use(BROWSE),
    ("POST", f"{BELOW}/objects/{{id}}/parent-links"): Use(WRITE, body=_reference("cabinet"), before=_unfiled),
    ("GET", f"{BELOW}/objects/{{id}}/parent-links/{{other}}"): Use(BROWSE, before=_filed),
    ("PUT", f"{BELOW}/objects/{{id}}/parent-links/{{other}}"): Use(WRITE, body=_reference("cabinet"), before=_filed),
    ("DELETE", f"{BELOW}/objects/{{id}}/parent-links/{{other}}"): Use(WRITE, before=_filed),
    ("GET", f"{BELOW}/objects/{{id}}/contents"): Use(READ),
    ("POST", f"{BELOW}/objects/{{id}}/contents"): Use(WRITE, body=_text),
    ("GET", f"{BELOW}/objects/{{id}}/contents/content"): Use(READ),
    ("POST", f"{BELOW}/objects/{{id}}/contents/content"): Use(WRITE, body=_text),
    ("DELETE", f"{BELOW}/objects/{{id}}/contents/content"): Use(WRITE),
    ("GET", f"{BELOW}/objects/{{id}}/content-media"): Use(READ),
    ("GET", f"{BELOW}/objects/{{id}}/index-status"): Use(READ),
    ("GET", f"{BELOW}/objects/{{id}}/similar"): Use(READ),
    ("PUT", f"{BELOW}/objects/{{id}}/lock"): Use(VERSION),
    ("DELETE", f"{BELOW}/objects/{{id}}/lock"): Use(VERSION, before=_checked_out),
    ("GET", f"{BELOW}/objects/{{id}}/versions"): Use(BROWSE),
    ("POST", f"{BELOW}/objects/{{id}}/versions"): Use(VERSION, before=_checked_out),
    ("GET", f"{BELOW}/objects/{{id}}/versions/current"): Use(BROWSE),
    ("GET", f"{BELOW}/objects/{{id}}/permissions"): Use(BROWSE),
    ("GET", f"{BELOW}/objects/{{id}}/permission-set"): Use(BROWSE),
    ("PUT", f"{BELOW}/objects/{{id}}/permission-set"): Use(OWNER, body=lambda _: {"json": {"acl-name": "public"}}),
    ("GET", f"{BELOW}/objects/{{id}}/comments"): Use(READ),
    ("POST", f"{BELOW}/objects/{{id}}/comments"): Use(RELATE, body=_COMMENT),
    ("GET", f"{BELOW}/comments/{{id}}"): Use(READ, before=_commented),
    ("POST", f"{BELOW}/comments/{{id}}"): Use(RELATE, body=_COMMENT, before=_commented),
    ("DELETE", f"{BELOW}/comments/{{id}}"): Use(READ, before=_commented),
    ("GET", f"{BELOW}/comments/{{id}}/replies"): Use(READ, before=_commented),
    ("POST", f"{BELOW}/comments/{{id}}/replies"): Use(RELATE, body=_COMMENT, before=_commented),
    ("GET", f"{BELOW}/relations/{{id}}"): Use(BROWSE, before=_related),
    ("DELETE", f"{BELOW}/relations/{{id}}"): Use(RELATE, before=_related),
    ("GET", f"{BELOW}/objects/{{id}}/aspects"): Use(BROWSE),
}

NEVER = {("POST", f"{BELOW}/objects/{{id}}/aspects")}
"""What nobody may do."""

DELETED = {
    ("GET", f"{BELOW}/wastebasket/{{id}}"),
    ("DELETE", f"{BELOW}/wastebasket/{{id}}"),
    ("POST", f"{BELOW}/wastebasket/{{id}}/restore"),
}
"""What only the owner and whoever deleted the object may do, once it is deleted: the tests of ours 18 ask it."""


@pytest.fixture(scope="module")
def room(site: Site) -> Room:
    return Room(site)


def test_every_method_of_an_address_of_an_object_says_what_it_takes() -> None:
    addresses = routes.table(RepositoryNames()).addresses
    methods = {
        (method, address.path) for address in addresses if "/{id}" in address.path for method in address.operations
    }
    assert methods - NEVER - DELETED == USES.keys()


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.campaign)], ids=["edges", "every level"])
@pytest.mark.parametrize(("method", "path"), sorted(USES), ids=lambda part: str(part).removeprefix(BELOW))
def test_it_takes_just_that(room: Room, method: str, path: str, every: bool) -> None:
    """The edges are no permission, the least there is, and either side of what the operation takes."""
    use = USES[method, path]
    edges = {BROWSE - 1, BROWSE, DELETE, *(() if use.least is OWNER else (use.least - 1, use.least))}
    for level in Permission:
        if not every and level not in edges:
            continue
        object_id = room.make(use.kind)
        parts = {"id": object_id, **use.before(room, object_id)}
        body = use.body(room)
        room.permit(object_id, level)
        address = path.removeprefix(BELOW).format(**parts)
        answer = room.send(method, f"{address}{use.query}", **body)
        if level < BROWSE or (level < READ and path.startswith(f"{BELOW}/comments")):
            assert answer.status_code in (403, 404), (level, answer.status_code, answer.text)
            assert answer.status_code == 404 or level >= BROWSE, (level, answer.text)
        elif use.least is OWNER or level < use.least:
            assert answer.status_code == 403, (level, answer.status_code, answer.text)
        else:
            assert answer.status_code < 300, (level, answer.status_code, answer.text)
