"""Random repositories behind their addresses, twins of them, and random searches in either spelling."""

import itertools
import json
import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import sqlalchemy as sa
from hypothesis import strategies as st
from starlette.applications import Starlette

from muniment.database.connections import Database
from muniment.ground.clock import SECOND, Instant, read_timestamp
from muniment.repository.api import routes
from muniment.repository.folding import fold
from muniment.repository.options import RepositoryNames, RepositoryOptions
from muniment.repository.search.aql.bind import FITTING
from muniment.repository.search.aql.spelling import as_json, as_xml
from muniment.repository.search.aql.tree import QueryLimits
from muniment.repository.store.objects.properties.properties import PropertyDefinition
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.object_types import ObjectType
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import WORLD, Permission, Principals
from tests.clock import Clock
from tests.scenes import InProcess, Loop
from tests.shelf import ADMIN, BORIS, JON, MARTA, Shelf

JSON = {"Accept": "application/json", "Content-Type": "application/json"}
XML = {"Accept": "application/json", "Content-Type": "application/xml"}

PEOPLE = {"marta": MARTA, "boris": BORIS, "jon": JON, "root": ADMIN}
ACLS = {
    "staff read": {"staff@demo": Permission.READ},
    "all browse": {WORLD: Permission.BROWSE},
    "boris reads": {"boris@demo": Permission.READ, WORLD: Permission.BROWSE},
    "guests browse": {"guests@demo": Permission.BROWSE},
    "public": {WORLD: Permission.READ},
    "private": {},
}
TYPE = ObjectType(
    "report",
    "document",
    (
        PropertyDefinition("colour", "string", True),
        PropertyDefinition("size", "integer", True),
        PropertyDefinition("weight", "double", True),
        PropertyDefinition("draft", "boolean"),
        PropertyDefinition("day", "date", True),
    ),
)
WORDS = ["pump", "pumps", "valve", "gasket", "red", "École", "12:30", "happy", "happiness", "日本"]
NAMES = ["red pump", "Valve 7", "plan", "Plan", "a*b", "École", "pump-station"]
TITLES = ["", "A", "b", "B", "Éa", "red valve", "what?"]
COLOURS = ["red", "Red", "green", "blue", "é", "x" * 120]
SIZES = [-5, 0, 1, 999, 1000, 2**53]
WEIGHTS = [-1.5, 0.0, 0.25, 3.25, 1e9]
DAYS = ["2024-03-30T23:30:00Z", "2024-03-31T01:30:00Z", "2024-10-27", "2025-01-01", "1999-12-31"]
DAYS += ["1969-12-31T23:59:59.999Z", "1970-01-01"]
VALUES: dict[str, tuple[str, Sequence[str]]] = {
    "object_name": ("string", NAMES),
    "title": ("string", TITLES[1:]),
    "colour": ("string", COLOURS),
    "keywords": ("string", WORDS),
    "owner_name": ("string", ["marta@demo", "Boris@demo", "jon@demo", "nobody@demo"]),
    "r_object_type": ("string", ["report", "document", "folder"]),
    "size": ("integer", list(map(str, SIZES))),
    "r_full_content_size": ("integer", ["0", "10", "30", "100"]),
    "weight": ("double", list(map(str, WEIGHTS))),
    "draft": ("boolean", ["true", "false"]),
    "day": ("date", DAYS),
    "r_modify_date": ("date", ["2026-11-21T12:00:04Z", "2026-11-21", "2026-11-20"]),
}
"""What can be compared, with its kind and values."""

_ALIKE = {"EQUAL", "NOT_EQUAL"}
_numbers = itertools.count(1)
_PUT = sa.text("UPDATE objects SET folder_id = :folder, type = :type, acl_id = :acl WHERE id = :id")
_PLACEHOLDER = re.compile(r"\{id:(\d+)\}")


class Thing(msgspec.Struct, frozen=True):
    """An object: its type, its owner, its ACL, the number of its folder, its properties and its text."""

    number: int
    type: str
    owner: str
    acl: str
    folder: int | None
    values: dict[str, Any]
    text: str

    @property
    def is_folder(self) -> bool:
        """Whether others may lie in it."""
        return self.type in ("folder", "cabinet")


def permission(caller: str, thing: Thing) -> Permission:
    """Say what a caller may do with an object, plainly."""
    person = PEOPLE[caller]
    if person.administrator or thing.owner == caller:
        return Permission.DELETE
    names = {person.id.lower(), *person.groups, WORLD}
    return max((level for name, level in ACLS[thing.acl].items() if name in names), default=Permission.NONE)


def twin(things: Sequence[Thing], caller: str) -> list[Thing]:
    """List what a caller may see: without the texts that they may not read.

    A hidden folder in which something visible lies is an empty name of the administrator's there: the property of
    what lies in it tells that there is one.
    """
    seen = {thing.number for thing in things if permission(caller, thing) >= Permission.BROWSE}
    needed = {thing.folder for thing in things if thing.number in seen and thing.folder is not None} - seen
    made = []
    for thing in things:
        if thing.number in seen:
            read = permission(caller, thing) >= Permission.READ
            made.append(thing if read else msgspec.structs.replace(thing, text="\0" * len(thing.text)))
        elif thing.number in needed:
            made.append(Thing(thing.number, thing.type, "root", "private", None, {"object_name": "?"}, ""))
    return made


class World:
    """A repository with these things, behind its addresses."""

    def __init__(self, database: Database, folder: Path, now: Instant, loop: Loop, things: Sequence[Thing]) -> None:
        self.shelf = Shelf(database, folder, now, f"world{next(_numbers)}")
        self.clock = Clock(now + 60 * SECOND)
        self.ids: dict[int, str] = {}
        self.things = {thing.number: thing for thing in things}
        repository = self.shelf.repository
        with database.begin() as cx:
            type_editing.add_type(cx, repository.id, TYPE, now)
            self.acls = {name: acls.built_in(cx, repository.id, name, now) for name in ("public", "private")}
        for name, entries in ACLS.items():
            if name not in self.acls:
                self.acls[name] = self.shelf.acl(name, entries, ADMIN).id
        for thing in things:
            self._add(thing, now)
        self.shelf.catch_up()
        self.names = {object_id: str(number) for number, object_id in self.ids.items()}
        context = self.shelf.context(RepositoryOptions(), clock=self.clock)
        application = Starlette(routes=routes.routes(context))
        self.http = httpx.Client(transport=InProcess(application, loop), base_url="http://testserver")
        self.root_path = f"/rest/repositories/{repository.name}"

    def _add(self, thing: Thing, now: Instant) -> None:
        shelf, owner = self.shelf, PEOPLE[thing.owner]
        # Some have been modified at one moment.
        shelf.now = now + thing.number // 2 * SECOND
        given = {**thing.values, "acl_name": "private"}
        if thing.is_folder:
            made = shelf.create(given, owner, "cabinet")
        else:
            content = shelf.content("x" * len(thing.text))
            made = shelf.create({**given, "a_content_type": "text/plain"}, owner, thing.type, content=content)
            shelf.extract(thing.text.replace("\0", ""))
        self.ids[thing.number] = made.id
        folder = None if thing.folder is None else self.ids[thing.folder]
        with shelf.database.begin() as cx:
            # Where its owner could not put it, and with an ACL that they could not give it.
            cx.execute(_PUT, {"id": made.id, "type": thing.type, "folder": folder, "acl": self.acls[thing.acl]})

    def written(self, document: dict[str, Any]) -> dict[str, Any]:
        """Write the ids of this world into a document."""

        def of_number(found: re.Match[str]) -> str:
            return self.ids.get(int(found[1]), "0900000100abcdef")

        made: dict[str, Any] = json.loads(_PLACEHOLDER.sub(of_number, json.dumps(document)))
        return made

    def send(self, caller: str, method: str, address: str, **more: Any) -> httpx.Response:
        """Send a request."""
        headers = {"Authorization": f"Bearer {caller}", **(more.pop("headers", None) or JSON)}
        address = address if address.startswith("http") else self.root_path + address
        return self.http.request(method, address, headers=headers, **more)

    def ask(
        self,
        caller: str,
        document: dict[str, Any],
        parameters: dict[str, str] | None = None,
        *,
        in_xml: bool = False,
    ) -> httpx.Response:
        """Search by a document, in JSON or in XML."""
        body = json.dumps(self.written(document))
        if in_xml:
            body = to_xml(body)
        headers = XML if in_xml else JSON
        return self.send(caller, "POST", "/search", content=body.encode(), headers=headers, params=parameters)

    def summary(self, answer: httpx.Response, *, in_order: bool = True) -> object:
        """Tell all that an answer says but scores, times and addresses, with numbers in the place of ids."""
        if answer.status_code != 200:
            return answer.status_code, answer.json().get("code")
        page = answer.json()
        entries = [
            [self._with_numbers(entry.get(name)) for name in ("id", "title", "author", "summary", "updated", "terms")]
            for entry in page["entries"]
        ]
        facets = self._with_numbers(_without_links(page.get("facets", [])))
        for facet in facets:
            if facet["facet-id"] == "folder":  # ids have no order that two worlds could share
                facet["facet-value"].sort(key=str)
        return entries if in_order else sorted(entries, key=str), page.get("total"), facets

    def numbers(self, answer: httpx.Response) -> list[int]:
        """Name the hits of a page."""
        assert answer.status_code == 200, (answer.text, answer.request.url, answer.request.content)
        return [int(self.names[entry["id"]]) for entry in answer.json()["entries"]]

    def walk(self, caller: str, answer: httpx.Response) -> Iterator[httpx.Response]:
        """Follow `next` from this page on. Only the first page may be refused."""
        yield from () if answer.status_code != 200 else self._pages(caller, answer)

    def _pages(self, caller: str, answer: httpx.Response) -> Iterator[httpx.Response]:
        while True:
            assert answer.status_code == 200, answer.text
            yield answer
            following = [link["href"] for link in answer.json()["links"] if link["rel"] == "next"]
            if not following:
                return
            answer = self.send(caller, "GET", following[0])

    def _with_numbers(self, told: Any) -> Any:
        text = json.dumps(told, sort_keys=True).replace(self.root_path, "/here")
        for object_id, number in self.names.items():
            text = text.replace(object_id, f"#{number}")
        return json.loads(text)

    def close(self) -> None:
        """Let it go."""
        self.http.close()
        self.shelf.close()


def _without_links(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: _without_links(value) for name, value in told.items() if name not in ("link", "links", "href")}
    return [_without_links(each) for each in told] if isinstance(told, list) else told


@contextmanager
def open_worlds(database: Database, now: Instant, *several: Sequence[Thing]) -> Iterator[list[World]]:
    """Make worlds with these things."""
    with tempfile.TemporaryDirectory() as folder:
        loop, worlds = Loop(), list[World]()
        try:
            for number, things in enumerate(several):
                worlds.append(World(database, Path(folder) / str(number), now, loop, things))
            yield worlds
        finally:
            for world in worlds:
                world.close()
            loop.close()
            # All worlds have the same callers, whose quotas count walks, links and saved searches. Each world begins at
            # the same time. So what the next world keeps would be the oldest, and would be dropped first.
            with database.begin() as cx:
                for table in ("walks", "links", "saved_results", "saved_searches"):
                    cx.execute(sa.text(f"DELETE FROM {table}"))


def to_xml(body: str) -> str:
    """Write a search document of JSON in XML."""
    return as_xml.write(as_json.elements(body.encode(), RepositoryNames(), QueryLimits()))


@st.composite
def things(draw: st.DrawFn, most: int = 9) -> list[Thing]:
    """Objects, of which the first ones are folders."""
    made: list[Thing] = []
    count = draw(st.integers(4, most))
    folders = draw(st.integers(1, 3))
    for number in range(count):
        kind = "folder" if number < folders else draw(st.sampled_from(["report", "report", "document"]))
        folder = draw(st.sampled_from([None, *range(min(number, folders))]))
        names = NAMES[:3] if kind == "folder" else NAMES
        values: dict[str, Any] = {"object_name": draw(st.sampled_from(names)), "title": draw(st.sampled_from(TITLES))}
        values["keywords"] = draw(st.lists(st.sampled_from(WORDS), max_size=2))
        if kind == "report":
            values |= {
                "colour": draw(st.lists(st.sampled_from(COLOURS), max_size=2)),
                "size": draw(st.lists(st.sampled_from(SIZES), max_size=2)),
                "weight": draw(st.lists(st.sampled_from(WEIGHTS), max_size=2)),
                "draft": draw(st.sampled_from([None, True, False])),
                "day": draw(st.lists(st.sampled_from(DAYS), max_size=2)),
            }
        text = "" if kind == "folder" else " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=8)))
        if kind == "folder":
            kind = "cabinet" if folder is None else "folder"
        owner = draw(st.sampled_from(["marta", "boris", "jon"]))
        made.append(Thing(number, kind, owner, draw(st.sampled_from(sorted(ACLS))), folder, values, text))
    return made


def keywords() -> st.SearchStrategy[str]:
    """What a person types."""
    words = st.sampled_from([*WORDS, '"red pump"', "pum*", "*ump", "p?mp", "well-kn*", "nothing", "!", "pump-st*"])
    return st.recursive(
        words,
        lambda inner: st.one_of(
            st.builds("{} {}".format, inner, inner),
            st.builds("{} OR {}".format, inner, inner),
            st.builds("NOT {}".format, inner),
            st.builds("({})".format, inner),
        ),
        max_leaves=4,
    )


@st.composite
def _property(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from(sorted(VALUES)))
    kind, values = VALUES[name]
    operator = draw(st.sampled_from(FITTING[kind]))  # type: ignore[index]
    value = draw(st.sampled_from(values))
    if kind == "string":
        cut = draw(st.integers(0, len(value)))
        value = draw(st.sampled_from([value, value[:cut] or value, f"{value[:cut]}*", f"{value[:cut]}?{value[cut:]}"]))
        value = value[:90]
    flags = draw(st.sampled_from([{}, {}, {"exact-match": True}, {"fuzzy": True}, {"case-sensitive": True}]))
    return {"expression-type": "property", "name": name, "operator": operator, "value": value, **flags}


@st.composite
def _several(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from(sorted(VALUES)))
    values = draw(st.lists(st.sampled_from(VALUES[name][1]), min_size=1, max_size=3))
    return {"expression-type": "property-list", "name": name, "operator": draw(st.sampled_from(["IN", "NOT_IN"]))} | {
        "values": values
    }


@st.composite
def _range(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from(sorted(name for name, (kind, _) in VALUES.items() if kind != "boolean")))
    low, high = (draw(st.sampled_from(VALUES[name][1]))[:90] for _ in range(2))
    return {"expression-type": "property-range", "name": name, "operator": "BETWEEN", "from": low, "to": high}


def expressions(*, with_ids: bool = True) -> st.SearchStrategy[dict[str, Any]]:
    """Conditions of every kind."""
    ids = st.builds(
        lambda name, operator, number: {
            "expression-type": "property",
            "name": name,
            "operator": operator,
            "value": f"{{id:{number}}}",
        },
        st.sampled_from(["i_folder_id", "r_object_id"]),
        st.sampled_from(sorted(_ALIKE)),
        st.integers(0, 9),
    )
    acls = st.builds(
        lambda operator, name: {
            "expression-type": "property",
            "name": "acl_name",
            "operator": operator,
            "value": name,
        },
        st.sampled_from(sorted(_ALIKE)),
        st.sampled_from([*ACLS, "nowhere"]),
    )
    ages = st.builds(
        lambda name, operator, unit, amount: {
            "expression-type": "relative-date",
            "name": name,
            "operator": operator,
            "time-unit": unit,
            "value": amount,
        },
        st.sampled_from(["day", "r_modify_date"]),
        st.sampled_from(["EQUAL", "GREATER_THAN", "LESS_THAN", "GREATER_EQUAL", "LESS_EQUAL"]),
        st.sampled_from(["MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"]),
        st.integers(-40, 2),
    )
    words = st.builds(
        lambda value, fuzzy: {"expression-type": "fulltext", "value": value, "fuzzy": fuzzy}, keywords(), st.booleans()
    )
    leaves = [words, words, _property(), _property(), _several(), _range(), ages]
    return st.recursive(
        st.one_of(*leaves, *([ids, acls] if with_ids else [])),
        lambda inner: st.builds(
            lambda operator, parts: {"expression-type": "expression-set", "operator": operator, "expressions": parts},
            st.sampled_from(["AND", "OR"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        max_leaves=4,
    )


SORTS = ["title", "object_name", "r_modify_date", "r_full_content_size", "owner_name", "draft", "r_object_type"]


def sorts() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Orders by one to three properties."""
    one = st.builds(
        lambda name, ascending, code: {"property": name, "ascending": ascending, "ascii": code},
        st.sampled_from(SORTS),
        st.booleans(),
        st.booleans(),
    )
    return st.lists(one, min_size=1, max_size=3, unique_by=lambda sort: sort["property"])


PATHS = ["/", *(f"/{name}" for name in NAMES[:3]), "/red pump/plan", "/plan/plan"]


def locations() -> st.SearchStrategy[list[dict[str, Any]]]:
    """One or two places."""
    paths = st.builds(
        lambda path, below: {"location-type": "path-location", "path": path, "descendent": below},
        st.sampled_from(PATHS),
        st.booleans(),
    )
    ids = st.builds(
        lambda number, below: {"location-type": "id-location", "id": f"{{id:{number}}}", "descendent": below},
        st.integers(0, 3),
        st.booleans(),
    )
    return st.lists(paths | ids, min_size=1, max_size=2)


FACETS: list[dict[str, Any]] = [
    {"id": "by type", "attributes": ["r_object_type"], "max-values": -1}
    | {"facet-definition": {"id": "by owner", "attributes": ["owner_name"]}},
    {"id": "colour", "attributes": ["colour"], "properties": {"nullValueFacet": "true"}},
    {"id": "keywords", "attributes": ["keywords"], "max-values": 2},
    {"id": "size", "attributes": ["size"], "group-by": "range", "properties": {"range": ":0,0:1000,1000:"}},
    {"id": "name", "attributes": ["object_name"], "group-by": "alpharange", "properties": {"range": "a:m,n:z"}},
    {"id": "day", "attributes": ["day"], "group-by": "week", "properties": {"timezone": "Europe/Berlin"}},
    {"id": "made", "attributes": ["r_modify_date"], "group-by": "relativeDate"},
    {"id": "folder", "attributes": ["i_folder_id"], "sort": "FREQUENCY", "properties": {"nullValueFacet": "true"}},
]


def documents(*, with_facets: bool = True) -> st.SearchStrategy[dict[str, Any]]:
    """Search documents with every part."""

    def document(
        types: list[str], some: list[dict[str, Any]], order: Any, places: Any, counted: Collection[int]
    ) -> dict[str, Any]:
        made: dict[str, Any] = {"types": types} if types else {}
        if some:
            made["expression-set"] = {"expression-type": "expression-set", "operator": "AND", "expressions": some}
        parts = {"sorts": order, "locations": places, "facet-definitions": [FACETS[at] for at in sorted(counted)]}
        return made | {name: part for name, part in parts.items() if part}

    return st.builds(
        document,
        st.lists(st.sampled_from(["report", "document", "folder", "sysobject"]), max_size=1),
        st.lists(expressions(), max_size=2),
        st.none() | sorts(),
        st.none() | locations(),
        st.frozensets(st.integers(0, len(FACETS) - 1), max_size=3) if with_facets else st.just(()),
    )


def places(world: World, things: Sequence[Thing], caller: str, wanted: Any) -> set[int | None] | None:
    """List the folders that locations name for a caller, None for the root; no set where one names nothing."""
    seen = {each.number: each for each in things if each.is_folder and permission(caller, each) >= Permission.BROWSE}
    named: set[int | None] = set()
    for location in wanted:
        found: set[int | None] = {None}
        if "id" in location:
            found = {number for number in seen if world.ids[number] == location["id"]}
        else:
            for name in filter(None, location["path"].split("/")):
                inside = [each for each in seen.values() if each.folder in found]
                found = {each.number for each in inside if each.values["object_name"] == name}
        if not found:
            return None
        if location["descendent"]:
            if None in found:
                return {None, *(thing.number for thing in things)}
            for _ in things:
                found |= {number for number, each in seen.items() if each.folder in found}
        named |= found
    return named


def in_order(found: list[tuple[Thing, dict[str, list[Any]]]], sorts: Sequence[dict[str, Any]]) -> list[int]:
    """Order objects by sorts: those without a value come last, equal ones as they were made."""
    ordered = sorted(found, key=lambda each: each[0].number)
    for sort in reversed(sorts):

        def key(each: tuple[Thing, dict[str, list[Any]]], sort: dict[str, Any] = sort) -> Any:
            value = each[1][sort["property"]][0]
            return (value if sort["ascii"] else fold(value))[:255] if isinstance(value, str) else value

        having = [each for each in ordered if each[1].get(sort["property"])]
        without = [each for each in ordered if not each[1].get(sort["property"])]
        ordered = sorted(having, key=key, reverse=not sort["ascending"]) + without
    return [thing.number for thing, _ in ordered]


def plain_values(world: World, thing: Thing, now: Instant) -> dict[str, list[Any]]:
    """List the values of an object as its maker knows them, with those that the repository writes."""
    moment = now + thing.number // 2 * SECOND
    given = {name: value if isinstance(value, list) else [value] for name, value in thing.values.items()}
    values = {name: [each for each in several if each not in (None, "")] for name, several in given.items()}
    values["day"] = [read_timestamp(day) for day in values.get("day", [])]
    person: Principals = PEOPLE[thing.owner]
    values |= {
        "owner_name": [person.id],
        "r_object_type": [thing.type],
        "r_object_id": [world.ids[thing.number]],
        "r_modify_date": [moment],
        "r_creation_date": [moment],
        "r_full_content_size": [len(thing.text)],
    }
    if thing.folder is not None:
        values["i_folder_id"] = [world.ids[thing.folder]]
    return values
