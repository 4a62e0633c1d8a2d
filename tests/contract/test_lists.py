"""Every list there is fetches one page of rows and one more, on its first page and however deep, hidden rows or not.

The lists are those of the table of addresses: each address that is read is asked, and one that answers with a feed and
is not known here fails. failures C2.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import Database, TookTooLong
from muniment.directory.entries import editing, entries, memberships
from muniment.ground.clock import Instant
from muniment.repository.api.shapes import collections
from muniment.repository.store import repositories
from muniment.repository.store.filters import pages, reader
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.decisions import checkins, checkouts, creation
from muniment.repository.store.objects.decisions.checkins import CheckIn
from muniment.repository.store.objects.decisions.creation import NewObject
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import Given, PropertyDefinition
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.object_types import ObjectType
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.repositories import Repository
from tests.house.test_docs import routes
from tests.scenes import Loop, Site, World
from tests.servers import Postgres, Sqlite

pytestmark = pytest.mark.campaign_on("postgresql")

SIZE = 5
CHILDREN = 400
SEEN = 10
"""Every so many of the children may be seen by the reader."""

LISTS = {
    "/rest/repositories": "repositories",
    "/rest/repositories/{repository}/search": "objects",
    "/rest/repositories/{repository}/cabinets": "objects",
    "/rest/repositories/{repository}/folders/{id}/folders": "objects",
    "/rest/repositories/{repository}/folders/{id}/documents": "objects",
    "/rest/repositories/{repository}/folders/{id}/objects": "objects",
    "/rest/repositories/{repository}/folders/{id}/child-links": "objects",
    "/rest/repositories/{repository}/objects/{id}/contents": "objects",
    "/rest/repositories/{repository}/objects/{id}/parent-links": "objects",
    "/rest/repositories/{repository}/objects/{id}/similar": "objects",
    "/rest/repositories/{repository}/objects/{id}/versions": "objects",
    "/rest/repositories/{repository}/checked-out-objects": "objects",
    "/rest/repositories/{repository}/relations": "relations",
    "/rest/repositories/{repository}/relation-types": "relation_types",
    "/rest/repositories/{repository}/objects/{id}/comments": "comments",
    "/rest/repositories/{repository}/comments/{id}/replies": "comments",
    "/rest/repositories/{repository}/objects/{id}/aspects": "members",
    "/rest/repositories/{repository}/wastebasket": "wastebasket",
    "/rest/repositories/{repository}/acls": "acls",
    "/rest/repositories/{repository}/acls/{acl}/associations": "objects",
    "/rest/repositories/{repository}/types": "object_types",
    "/rest/repositories/{repository}/supported-facets": "type_properties",
    "/rest/repositories/{repository}/formats": "members",
    "/rest/repositories/{repository}/aspect-types": "members",
    "/rest/repositories/{repository}/lifecycles": "members",
    "/rest/repositories/{repository}/network-locations": "members",
    "/rest/repositories/{repository}/saved-searches": "saved_searches",
    "/rest/repositories/{repository}/saved-searches/{search}/execution": "objects",
    "/rest/repositories/{repository}/saved-searches/{search}/results": "objects",
    "/rest/repositories/{repository}/search-templates": "saved_searches",
}
"""Each list with the table its members are in."""

SHORT = {
    "/rest/repositories/{repository}/objects/{id}/contents",
    "/rest/repositories/{repository}/objects/{id}/parent-links",
    "/rest/repositories/{repository}/objects/{id}/similar",
    "/rest/repositories/{repository}/objects/{id}/aspects",
    "/rest/repositories/{repository}/relation-types",
    *(f"/rest/repositories/{{repository}}/{name}" for name in ("aspect-types", "lifecycles", "network-locations")),
}
"""An object has one content, and lies in one folder. What is like it is one page. Some lists have no members."""

ORDERED = {
    "/rest/repositories/{repository}/search",
    "/rest/repositories/{repository}/saved-searches/{search}/execution",
    "/rest/repositories/{repository}/saved-searches/{search}/results",
}
"""What is found has an order of its own, and a query in the place of a filter."""

PEOPLE = {f"/rest/repositories/{{repository}}/{path}" for path in ("users", "groups")}
PEOPLE |= {f"/rest/repositories/{{repository}}/groups/{{person}}/{path}" for path in ("users", "groups")}
"""Lists of the directory: who asks is one of its rows as well, so their rows are compared, not counted."""


def _with_property(number: int) -> ObjectType:
    return ObjectType(f"type_{number:03}", "document", (PropertyDefinition(f"own_{number:03}", "string"),))


_FROM = re.compile(r"\b(?:FROM|UPDATE|INTO) +\(?(?:SELECT .*? FROM +)?([a-z_]+)", re.DOTALL)


class Asked(NamedTuple):
    """What one request took: statements, and how many rows each table's gave."""

    statements: int
    rows: Counter[str]
    document: dict[str, Any]


class Large:
    """A world with many of everything, and what each request takes of its repository's database."""

    def __init__(self, world: World, loop: Loop) -> None:
        self.world = world
        self._fill()
        self.site = Site(world, "neutral", loop)
        self.http = self.site.http
        self.searches = {kind: self._save(kind) for kind in ("saved-searches", "search-templates")}
        self.comment = self._relate()
        stored = self.http.put(
            f"{self.site.repository}/saved-searches/{self.searches['saved-searches']}/results",
            headers=self.site.bearer(world.reader),
        )
        assert stored.status_code == 200, stored.text

    def address(self, template: str) -> str:
        folder = {"folders": self.tree, "documents": self.folder, "objects": self.folder}
        kind = template.rpartition("/")[2]
        chosen = self.document if "/objects/{id}" in template or kind == "{id}" else folder.get(kind, self.folder)
        if template.endswith(("folders/{id}", "cabinets/{id}")):
            chosen = self.folder
        if "/comments/{id}" in template:
            chosen = self.comment
        return template.format(
            repository=self.world.repository,
            id=chosen,
            name="document",
            format="pdf",
            acl="public",
            other=self.tree,
            person="everyone@demo",
            member="listed 001@demo",
            relation_type="peer",
            location="local",
            search=self.searches["saved-searches"],
            template=self.searches["search-templates"],
        )

    def ask(self, address: str, **parameters: str) -> Asked:
        with counted() as (statements, rows):
            answer = self.http.get(
                address,
                params=parameters or None,
                headers=self.site.bearer(self.world.reader) | {"Accept": "application/json"},
            )
        document = answer.json() if answer.headers["content-type"].endswith("json") else {}
        return Asked(len(statements), rows, document | {"status": answer.status_code})

    def _save(self, kind: str) -> str:
        """Save many searches of one kind, of which the reader may see some; give the id of one that is theirs."""
        expression = {"expression-type": "fulltext", "value": "same", "template": True}
        document = {"types": ["document"], "expression-set": {"expressions": [expression]}}
        name = "query-document" if kind == "saved-searches" else "query-document-template"
        for number in range(4 * SEEN):
            person = self.world.reader if number % 2 else self.world.writer
            properties = {"object_name": f"search {number:03}", "r_is_public": number % 4 == 0}
            answer = self.http.post(
                f"{self.site.repository}/{kind}",
                json={"properties": properties, name: document},
                headers=self.site.bearer(person),
            )
            assert answer.status_code == 201, answer.text
        search_id: str = answer.json()["properties"]["r_object_id"]
        return search_id

    def _relate(self) -> str:
        """Relate objects, add types of relations, and comment on the document; give the id of a comment."""
        site, comment = self.site, ""
        writer = site.bearer()

        def post(path: str, **properties: Any) -> str:
            made = self.http.post(f"{site.repository}/{path}", json={"properties": properties}, headers=writer)
            assert made.status_code == 201, made.text
            return made.headers["Location"].rpartition("/")[2]

        for number in range(4 * SIZE):
            post("relations", relation_name="peer", parent_id=self.document, child_id=self.folder)
            comment = post(f"objects/{self.document}/comments", content=f"remark {number}")
        for number in range(4 * SIZE):
            post(f"comments/{comment}/replies", content=f"answer {number}")
        return comment

    def _fill(self) -> None:
        world = self.world
        boss, now = Principals(world.writer.id, administrator=True), world.clock()
        with world.repository_db.begin() as cx:
            repository = repositories.find(cx, world.repository)
            acls.initialise(cx, repository.id, now)
            for number in range(60):
                repositories.add(cx, f"other {number:03}", world.resource_id, "", now)
                type_editing.add_type(cx, repository.id, _with_property(number), now)
                shown = {world.reader.id: Permission.READ} if number % SEEN == 0 else {}
                for kind in range(SEEN):
                    acls.add(cx, repository.id, f"acl {number:03} {kind}", boss, shown if kind == 0 else {}, now)
            view = RepositoryView.read(cx, repository, boss)

            def make(kind: str, name: str, folder_id: str | None, shown: bool) -> NewObject:
                given = {"object_name": name, "acl_name": "public" if shown else "private"}
                return NewObject(kind, given, folder_id, None, None)

            def keep(wanted: list[NewObject]) -> list[str]:
                kept = creation.create_all(cx, view, wanted, now)
                return [one.id for one in kept]

            self.folder, self.tree = keep([make("cabinet", name, None, True) for name in ("a folder", "a tree")])
            keep([make("cabinet", f"cabinet {number:04}", None, number % SEEN == 0) for number in range(CHILDREN)])
            # All of one name, so that a page must go on within the name.
            keep([make("document", "same", self.folder, number % SEEN == 0) for number in range(CHILDREN)])
            keep([make("folder", f"folder {number:04}", self.tree, number % SEEN == 0) for number in range(CHILDREN)])
            self._discard(cx, repository, view, now)
            self.document = last = keep([make("document", "one", None, True)])[0]
            reader = Principals(world.reader.id, administrator=True)
            for object_id in keep([make("document", "held", None, number % SEEN == 0) for number in range(8 * SEEN)]):
                checkouts.check_out(cx, repository, reader, object_id, now)
            checkouts.check_out(cx, repository, boss, last, now)
            for number in range(8 * SEEN):
                given: Mapping[str, Given] = {"acl_name": "public" if number % SEEN == 0 else "private"}
                last = checkins.check_in(cx, view, last, CheckIn("next-minor", given, retain_lock=True), now).id
        world.catch_up()
        with world.directory_db.begin() as cx:
            partition = entries.find_partition(cx, world.names, world.partition)
            everyone = entries.find_group(cx, world.names, f"everyone@{world.partition}")
            for number in range(4 * SIZE):
                user = editing.add_user(cx, partition, f"listed {number:03}", now)
                group = editing.add_group(cx, partition, f"group {number:03}", now)
                for member in (user, group):
                    memberships.add_member(cx, everyone, member)

    def _discard(self, cx: Connection, repository: Repository, view: RepositoryView, now: Instant) -> None:
        """Delete many objects of others and a few of the reader's, each alone, into the wastebasket."""
        deleter = Principals("deleter@demo", administrator=True)
        for number in range(CHILDREN):
            owner = self.world.reader.id if number % SEEN == 0 else self.world.writer.id
            given = {"object_name": f"deleted {number % 7}", "acl_name": "private", "owner_name": owner}
            made = creation.create_all(cx, view, [NewObject("document", given, None, None, None)], now)[0]
            objects.delete(cx, repository, deleter, made.id, now, keep_days=30)


@contextmanager
def counted() -> Iterator[tuple[list[str], Counter[str]]]:
    """Count the statements that SQLAlchemy sends, and the rows that the driver gives for them."""
    statements: list[str] = []
    rows: Counter[str] = Counter()

    def note(_cx: Any, cursor: Any, statement: str, _parameters: Any, _context: Any, _many: bool) -> None:
        statements.append(statement)
        table = _FROM.search(statement)
        name = table[1] if table else statement[:40]

        def row_of(values: Any) -> Any:
            rows[name] += 1
            return tuple(values)

        if type(cursor).__module__.startswith("psycopg"):
            cursor.row_factory = lambda _cursor: row_of
        else:
            cursor.row_factory = lambda _cursor, values: row_of(values)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield statements, rows
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


@pytest.fixture(scope="module")
def large(engine: Sqlite | Postgres, loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Large]:
    folder = tmp_path_factory.mktemp("large")
    folder.chmod(0o700)
    world = World(folder, engine.fresh("directory"), engine.fresh("repository"))
    made = Large(world, loop)
    yield made
    made.site.close()
    world.close()


def test_no_list_is_forgotten(large: Large) -> None:
    lists = set()
    for template in {route.path for route in routes() if route.path.startswith("/rest/")}:
        answered = large.ask(large.address(template))
        if answered.document["status"] == 200 and "entries" in answered.document:
            lists.add(template)
    assert lists == set(LISTS) | PEOPLE


@pytest.mark.parametrize("template", sorted(PEOPLE))
def test_a_list_of_people_fetches_a_row_for_each_member_of_a_page_and_one_more(large: Large, template: str) -> None:
    address = large.address(template)
    large.ask(address)  # what a process reads once
    small, large_page = (large.ask(address, **{"items-per-page": str(size)}) for size in (SIZE, SIZE + 5))
    assert len(large_page.document["entries"]) == SIZE + 5
    assert sum(large_page.rows.values()) - sum(small.rows.values()) == 5
    assert large_page.statements == small.statements


@pytest.mark.parametrize("template", sorted(LISTS.keys() - SHORT))
def test_a_list_fetches_one_page_of_rows_and_one_more_however_deep(large: Large, template: str) -> None:
    table = LISTS[template]
    first, total = _first_page(large, template)
    seen, page = [], first
    while True:
        seen += [entry["id"] for entry in page.document["entries"]]
        following = [link["href"] for link in page.document["links"] if link["rel"] == "next"]
        if not following:
            break
        page = large.ask(following[0])
        _check_rows(page, table)
        # One for the members of the same name; one more where the repository's own row is read anew. A search keeps its
        # walk, beside what its caller keeps already, and may drop what is too old.
        assert page.statements <= first.statements + 4
    assert len(seen) == len(set(seen)) == total
    assert len(seen) > SIZE


def test_a_search_of_several_repositories_fetches_no_more_of_one_than_its_own_search(large: Large) -> None:
    asked = {"repositories": large.world.repository, "limit": str(SIZE), "include-total": "true"}
    large.ask("/rest/search", **asked)
    for start in ("0", str(SIZE), "100"):
        answer = large.ask("/rest/search", **asked, start=start)
        assert len(answer.document["entries"]) == SIZE
        _check_rows(answer, "objects")
    refused = large.ask("/rest/search").document
    assert (refused["status"], refused["code"]) == (400, "E_MALFORMED_REQUEST")
    assert "more than 20 repositories" in refused["message"]


@pytest.mark.parametrize("template", sorted(SHORT))
def test_a_list_of_one_page_fetches_no_more_rows_than_one(large: Large, template: str) -> None:
    _first_page(large, template)


def _first_page(large: Large, template: str) -> tuple[Asked, int]:
    """Ask for a list's first page, without the total and with it; both fetch few rows."""
    address, paged = large.address(template), {"items-per-page": str(SIZE)}
    large.ask(address, **paged)  # what a process reads once
    first = large.ask(address, **paged)
    counting = large.ask(address, **paged, **{"include-total": "true"})
    assert first.document["status"] == 200
    _check_rows(first, LISTS[template])
    _check_rows(counting, LISTS[template])
    total: int = counting.document["total"]
    return first, total


SELECTIONS = {
    "objects": {"filter": "object_name >= 'a' and not(contains(title,'b'))", "sort": "subject desc,object_name desc"},
    "repositories": {"filter": "name > 'other 0'", "sort": "name desc"},
    "acls": {"filter": "starts-with(name,'acl') or owner=''", "sort": "r_modify_date, name desc"},
    "object_types": {"filter": "type_category=1", "sort": "name desc"},
    "type_properties": {"filter": "kind='string'", "sort": "name desc"},
    "members": {"filter": "mime_type!='image/gif' and name>'a'", "sort": "mime_type desc,name desc"},
    "relations": {"filter": "relation_name='peer'", "sort": "relation_name desc"},
    "comments": {"filter": "owner_name!='x'", "sort": "r_creation_date desc"},
    "wastebasket": {"filter": "object_name >= 'a' and deleter!='nobody'", "sort": "owner_name,r_object_id desc"},
    "saved_searches": {"filter": "r_is_public=false or owner_name!='x'", "sort": "r_is_public,object_name desc"},
}
"""For each table a filter and a sort, most of them by what no database index follows."""


@pytest.mark.parametrize("template", sorted(set(LISTS) - SHORT - ORDERED))
def test_a_filtered_and_sorted_list_fetches_no_more(large: Large, template: str) -> None:
    table, address = LISTS[template], large.address(template)
    asked = {**SELECTIONS[table], "items-per-page": str(SIZE), "include-total": "true"}
    large.ask(address, **asked)
    first = page = large.ask(address, **asked)
    assert first.document["status"] == 200, first.document
    seen: list[str] = []
    while len(seen) < 5 * SIZE:
        _check_rows(page, table)
        assert page.statements <= first.statements + 2
        seen += [entry["id"] for entry in page.document["entries"]]
        following = [link["href"] for link in page.document["links"] if link["rel"] == "next"]
        if not following:
            break
        page = large.ask(following[0])
    assert len(seen) == len(set(seen)) == min(5 * SIZE, first.document["total"])
    assert len(seen) > SIZE


@pytest.mark.parametrize(
    "asked", [{"sort": "title desc,object_name"}, {"facet": "object_name"}, {"locations": "/a tree"}]
)
def test_a_search_fetches_no_more_rows_for_its_order_its_facets_or_its_locations(
    large: Large, asked: dict[str, str]
) -> None:
    address = large.address("/rest/repositories/{repository}/search")
    asked = {**asked, "q": "same OR folder", "items-per-page": str(SIZE), "include-total": "true"}
    large.ask(address, **asked)  # what a process reads once
    page = large.ask(address, **asked)
    assert page.document["status"] == 200, page.document
    assert page.document["total"] >= CHILDREN // SEEN
    # A location names its folders by their ids, and the caller's 120 folders below it are read for that.
    folders = 2 + CHILDREN // SEEN if "locations" in asked else 0
    assert page.rows["objects"] <= SIZE + 1 + 2 + folders, page.rows
    following = next(link["href"] for link in page.document["links"] if link["rel"] == "next")
    # A walk asks where its hits lie, and the total where they lie now.
    assert large.ask(following).rows["objects"] <= SIZE + 1 + 2 + 2 * folders


def test_inlined_things_take_as_many_statements_however_many_they_are(large: Large) -> None:
    listed = ("folders/{id}/documents", "acls", "saved-searches", "search-templates", "saved-searches/{search}/results")
    for template in (f"/rest/repositories/{{repository}}/{path}" for path in listed):
        asked = [
            large.ask(large.address(template), **{"items-per-page": size, "inline": "true"}) for size in ("1", "1", "8")
        ]
        assert [len(one.document["entries"]) for one in asked] == [1, 1, 8]
        assert asked[1].statements == asked[2].statements
        assert all("src" not in entry["content"] for entry in asked[2].document["entries"])


def _check_rows(asked: Asked, table: str) -> None:
    # One row more for the folder itself, one for a total.
    assert asked.rows[table] <= SIZE + 1 + 2, asked.rows
    others = {name: count for name, count in asked.rows.items() if name not in {table, "object_types"}}
    assert sum(others.values()) <= 5 * (SIZE + 1), asked.rows


def test_a_cursor_is_good_for_one_caller_one_list_and_one_page(large: Large) -> None:
    site, address = large.site, f"{large.site.repository}/folders/{large.folder}/documents"
    page = large.ask(address, **{"items-per-page": "3"})
    following = next(link["href"] for link in page.document["links"] if link["rel"] == "next")
    own = site.bearer(large.world.reader)
    assert site.http.get(following, headers=own).status_code == 200
    strangers = [
        (following, site.bearer(large.world.writer)),
        (following.replace("/documents", "/objects"), own),
        (following.replace("page=2", "page=3").replace("per-page=3", "per-page=2"), own),
        (following.replace(large.folder, large.tree), own),
        (following[:-3] + "AAA", own),
        (following + "A" * 9000, own),
    ]
    for other, bearer in strangers:
        refused = site.http.get(other, headers=bearer | {"Accept": "application/json"})
        assert refused.status_code == 400, other
        assert refused.json()["code"] == "E_MALFORMED_REQUEST"


def test_two_cursors_of_one_place_are_never_alike(large: Large) -> None:
    address = f"{large.site.repository}/folders/{large.folder}/documents"
    pages = [large.ask(address, **{"items-per-page": "3"}) for _ in range(5)]
    cursors = {link["href"] for page in pages for link in page.document["links"] if link["rel"] == "next"}
    assert len(cursors) == 5
    assert len({len(cursor) for cursor in cursors}) == 1


def test_a_bare_page_is_bounded_and_next_is_not(large: Large) -> None:
    address = f"{large.site.repository}/folders/{large.folder}/documents"
    refused = large.ask(address, page="9000", **{"items-per-page": "100"})
    assert refused.document["status"] == 400
    assert "follow 'next'" in refused.document["message"]


_SORTED = {path for path, table in LISTS.items() if table in {"objects", "acls", "saved_searches"}}
LONG_LISTS = sorted(_SORTED - SHORT - ORDERED | PEOPLE)


@pytest.mark.only("sqlite", "The database's answer is made up.")
@pytest.mark.parametrize("template", LONG_LISTS)
def test_a_list_too_long_for_its_sort_or_filter_is_refused_by_name(
    large: Large, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shorter list, and one that is read in its own order, was only unlucky: asking again helps."""
    fetch = pages.fetch

    def stopped(
        cx: Connection, members: Any, properties: Any, order: Any, stretch: Stretch, selection: Any, *further: Any
    ) -> Any:
        if stretch.offset == 0:
            raise TookTooLong("Stopped.")
        return fetch(cx, members, properties, order, stretch, selection, *further)

    monkeypatch.setattr(pages, "fetch", stopped)
    name = (
        "user_name" if template.endswith("users") else "group_name" if template.endswith("groups") else "r_modify_date"
    )
    for long, parameters, said in (
        (1, {"sort": f"{name} desc"}, (400, "E_BAD_SORT", f"the sort by {name!r}")),
        (1, {"filter": f"{name} != '2024-01-31'"}, (400, "E_BAD_FILTER", "the filter takes")),
        (1, {"filter": f"{name} != '2024-01-31'", "sort": name}, (400, "E_BAD_SORT", "the filter and the sort by")),
        (1, {}, (503, "E_OVERLOADED", "Stopped.")),
        (10_000, {"sort": name}, (503, "E_OVERLOADED", "Stopped.")),
    ):
        monkeypatch.setattr(collections, "LONG", long)
        answer = large.ask(large.address(template), **parameters).document
        assert (answer["status"], answer["code"]) == said[:2], answer
        assert said[2] in answer["message"]


def test_a_filter_of_many_comparisons_is_for_shorter_lists(large: Large, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of up to ``LONG`` members takes any filter."""
    assert pages.MOST_COMPARED == reader.MAX_COMPARISONS * collections.LONG
    monkeypatch.setattr(pages, "MOST_COMPARED", 30 * (CHILDREN // SEEN - 20))
    address = f"{large.site.repository}/folders/{large.folder}/documents"
    for number, status in ((10, 200), (40, 400)):
        condition = " or ".join(f"object_name = 'nothing {each}'" for each in range(number))
        listed = large.ask(address, filter=condition)
        selected = large.ask(large.site.repository, dql=f"select object_name from document where {condition}")
        counted = large.ask(address, filter=condition, **{"include-total": "true"})
        for answer in (listed, selected, counted):
            assert answer.document.get("status", 200) == status, answer.document
            assert status == 200 or f"{number} comparisons" in answer.document["message"]


@pytest.mark.only("sqlite", "The list may be done within the shortest timeout of PostgreSQL.")
def test_a_list_that_takes_the_database_too_long_is_refused(large: Large, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Database.read

    def at_once(self: Database, *, within: float | None = None, is_over: Callable[[], bool] | None = None) -> Any:
        return read(self, within=None if within is None else 0.0, is_over=is_over and (lambda: True))

    monkeypatch.setattr(Database, "read", at_once)
    monkeypatch.setattr("muniment.database.connections._STEPS_BETWEEN_LOOKS", 1)
    address = f"{large.site.repository}/folders/{large.folder}/documents"
    answer = large.site.http.get(address, headers=large.site.bearer(large.world.reader))
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.json()["code"] == "E_OVERLOADED"
