"""Each folder here is a case: `objects/*.json`, `searches.json` (with the AQL files they name), perhaps a `world.json`.

A search says what a person would expect, as the names of the object files. It runs over the whole path: objects with
their text and ACLs in a repository, the index agent, the search as a caller whose groups the directory has looked up.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from muniment.database.connections import Database
from muniment.directory.entries import editing, entries, memberships
from muniment.directory.options import DirectoryNames
from muniment.ground.clock import Instant
from muniment.repository.options import RepositoryNames
from muniment.repository.search.answering import results
from muniment.repository.search.answering.inquiry import SearchQuestion
from muniment.repository.search.answering.results import HitPage
from muniment.repository.search.aql import keywords
from muniment.repository.search.aql.spelling import as_xml
from muniment.repository.search.aql.tree import Fulltext, Query, QueryLimits
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.properties.properties import Given, PropertyDefinition, PropertyKind
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.object_types import ObjectType
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission, Principals
from tests.shelf import ADMIN, Shelf

pytestmark = pytest.mark.campaign_on("postgresql")

HERE = Path(__file__).parent
CASES = sorted(folder.parent.name for folder in HERE.glob("*/objects"))


class Kept(msgspec.Struct, forbid_unknown_fields=True):
    """An object file: without a text it has no content; a size stands for a content of that many bytes."""

    properties: dict[str, str | int | float | bool | list[str | int | float | bool]] = {}
    text: str | None = None
    type: str = "document"
    owner: str = "marta@staff"
    acl: str = "public"
    size: int | None = None


class Expected(msgspec.Struct, forbid_unknown_fields=True):
    """A search: by keywords (``q``) or by an AQL file, and what it finds; terms and excerpts are named by object."""

    says: str
    found: list[str]
    q: str = ""
    aql: str = ""
    type: str = ""
    caller: str = "reader@staff"
    in_order: bool = False
    terms: dict[str, list[str]] = {}
    excerpts: dict[str, str] = {}


class WorldFile(msgspec.Struct, forbid_unknown_fields=True):
    """What a case needs beside objects: types (a kind in a list repeats), ACLs, groups with their members."""

    language: str = "English"
    types: dict[str, dict[str, PropertyKind | list[PropertyKind]]] = {}
    acls: dict[str, dict[str, str]] = {}
    groups: dict[str, list[str]] = {}


@pytest.mark.parametrize("case", CASES)
def test_a_search_finds_what_a_person_would_expect(case: str, database: Database, tmp_path: Path, now: Instant) -> None:
    """failures B20"""
    folder, file = HERE / case, HERE / case / "world.json"
    world = msgspec.json.decode(file.read_bytes(), type=WorldFile) if file.exists() else WorldFile()
    shelf = Shelf(database, tmp_path, now, language=world.language)
    try:
        furnish(shelf, world)
        ids = {
            each.stem: keep(shelf, each.name, msgspec.json.decode(each.read_bytes(), type=Kept))
            for each in sorted((folder / "objects").glob("*.json"))
        }
        shelf.catch_up()
        callers = looked_up(database, world.groups, now)
        searches = msgspec.json.decode((folder / "searches.json").read_bytes(), type=list[Expected])
        wrong = [said for search in searches for said in differences(shelf, folder, ids, callers, search)]
    finally:
        shelf.close()
    assert not wrong, "\n".join(["", *wrong])


def differences(
    shelf: Shelf, folder: Path, ids: Mapping[str, str], callers: Mapping[str, Principals], search: Expected
) -> list[str]:
    """Say how the answer differs from what is expected."""
    caller = callers.get(search.caller, ADMIN if search.caller == "administrator" else Principals(search.caller))
    page, named = answered(shelf, folder, caller, search), {object_id: name for name, object_id in ids.items()}
    hits = {named[hit.object_id]: hit for hit in page.hits}
    found, wanted = list(hits), search.found
    said = []
    if (found if search.in_order else sorted(found)) != (wanted if search.in_order else sorted(wanted)):
        said.append(f"found {found}, not {wanted}")
    if page.total != len(found):
        said.append(f"the total is {page.total}")
    said += [
        f"terms of {name}: {hits[name].terms}"
        for name, terms in search.terms.items()
        if name in hits and list(hits[name].terms) != terms
    ]
    said += [
        f"excerpt of {name}: {hits[name].summary!r}"
        for name, piece in search.excerpts.items()
        if name in hits and piece not in hits[name].summary
    ]
    return [f"{search.says} ({search.aql or search.q}): {each}" for each in said]


def answered(shelf: Shelf, folder: Path, caller: Principals, search: Expected) -> HitPage:
    """Ask as the search service does: no keywords at all ask for everything."""
    if search.aql:
        query = as_xml.read((folder / search.aql).read_bytes(), RepositoryNames(), QueryLimits())
    else:
        condition = Fulltext(keywords.read(search.q, QueryLimits())) if search.q.strip() else None
        query = Query((search.type,) if search.type else (), condition)
    question = SearchQuestion(query, 1, 1000, include_total=True)
    snapshot = shelf.index.snapshot()
    with shelf.database.read() as cx:
        return results.search(shelf.inquiry(cx, caller, question, snapshot))


def furnish(shelf: Shelf, world: WorldFile) -> None:
    """Make the types and ACLs."""
    with shelf.database.begin() as cx:
        for spelled, properties in world.types.items():
            name, _, parent = spelled.partition(" < ")
            kinds = {each: kind if isinstance(kind, list) else [kind] for each, kind in properties.items()}
            definitions = tuple(
                PropertyDefinition(each, kind[0], repeating=isinstance(properties[each], list))
                for each, kind in kinds.items()
            )
            type_editing.add_type(
                cx, shelf.repository.id, ObjectType(name, parent or "document", definitions), shelf.now
            )
        for name, listed in world.acls.items():
            permissions = {accessor: Permission[permission] for accessor, permission in listed.items()}
            acls.add(cx, shelf.repository.id, name, ADMIN, permissions, shelf.now)


def keep(shelf: Shelf, name: str, kept: Kept) -> str:
    """Make an object whose text has been extracted already; give its id."""
    given: dict[str, Given] = {"object_name": name.removesuffix(".json"), **kept.properties}
    given |= {"owner_name": kept.owner, "acl_name": kept.acl}
    content, said = None, kept.text or ""
    if kept.text is not None or kept.size is not None:
        key = hashlib.sha256(f"{name}\n{said}".encode()).hexdigest()[:32]
        content = StoredContent(key, len(said.encode()) if kept.size is None else kept.size, b"\0" * 32)
    with shelf.database.begin() as cx:
        made = creation.create(cx, shelf.view(ADMIN), kept.type, given, None, content, shelf.now)
    if content is not None:
        shelf.extract(said)
    return made.id


def looked_up(database: Database, groups: Mapping[str, list[str]], now: Instant) -> dict[str, Principals]:
    """Make the groups and their members in a directory; give each user with all groups he is in."""
    names = DirectoryNames()
    everyone = sorted({*groups, *(member for members in groups.values() for member in members)})
    with database.begin() as cx:
        places = {
            place: editing.add_partition(cx, names, place, now) for place in {one.partition("@")[2] for one in everyone}
        }
        made = {}
        for one in everyone:
            name, _, place = one.partition("@")
            add = editing.add_group if one in groups else editing.add_user
            made[one] = add(cx, places[place], name, now)
        for group, members in groups.items():
            for member in members:
                memberships.add_member(cx, made[group], made[member])
        return {
            one: Principals(
                one, frozenset(entries.shown_id(names, group) for group in memberships.groups_of(cx, entry.id))
            )
            for one, entry in made.items()
            if one not in groups
        }
