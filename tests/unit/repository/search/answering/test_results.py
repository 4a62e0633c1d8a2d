"""What a caller may see of an index that is behind, and how a page is put together."""

import itertools
from collections.abc import Collection, Iterator, Sequence

import pytest
from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import BadQuery, UnknownProperty
from muniment.repository.search.answering import results
from muniment.repository.search.answering.inquiry import Inquiry, SearchQuestion
from muniment.repository.search.answering.scope import visibility
from muniment.repository.search.aql.conditions import BoundQuery, Carries, ConditionSet, OneOf, Unless
from muniment.repository.search.aql.tree import Fulltext, PropertyList, Query, Term, Value
from muniment.repository.search.index.contract import (
    Answer,
    Correction,
    DocumentDigest,
    Examination,
    IndexHit,
    Marker,
    Order,
    Search,
    SortedBy,
    Visible,
    WordCount,
)
from muniment.repository.search.index.document import Document
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.change_log.changes import Kind, Position
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.objects.types import object_types
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository

OWNER = Principals("marta@staff")
OTHER = Principals("boris@staff")
ADMINISTRATOR = Principals("root@staff", administrator=True)
KINDS: tuple[Kind, ...] = ("created", "properties", "owner", "acl", "content", "text", "deleted")


class Given:
    """A snapshot that answers what a test tells it to, and remembers what it was asked."""

    def __init__(self, position: Position, *hits: str, total: int | None = None, more: bool = False) -> None:
        self.position = position
        self.answer = Answer(tuple(IndexHit(hit, 1.0, "", ()) for hit in hits), total, more=more)
        self.asked: list[Search] = []

    def search(self, search: Search) -> Answer:
        """Answer."""
        self.asked.append(search)
        return self.answer

    @property
    def numbered(self) -> bool:
        """Know counters."""
        return True

    def lacks(self, names: Collection[str]) -> bool:
        """Hold the values of all properties."""
        return False

    def search_sorted(self, search: Search, sorts: Sequence[SortedBy]) -> None:
        """Know no order by values."""

    def counters(self, search: Search, order: Order) -> list[int]:
        """Have no hit in any order."""
        raise NotImplementedError((search, order))

    def embeddings(self, search: Search) -> Sequence[int]:
        """Hold no embedding."""
        raise NotImplementedError(search)

    def examine(self, search: Search, key: str) -> Examination | None:
        """Hold no object."""
        raise NotImplementedError((search, key))

    def completions(self, search: Search, beginning: str, limit: int) -> list[WordCount]:
        """Complete nothing."""
        raise NotImplementedError((search, beginning, limit))

    def corrections(self, visible: Visible, word: str) -> list[Correction]:
        """Correct nothing."""
        raise NotImplementedError((visible, word))

    def telling_words(self, visible: Visible, key: str, text: str, limit: int) -> list[str]:
        """Tell nothing."""
        raise NotImplementedError((visible, key, text, limit))

    def marker(self, search: Search) -> Marker:
        """Mark nothing."""
        raise NotImplementedError(search)

    def documents(self, keys: Collection[str] | None = None) -> Iterator[Document]:
        """Hold nothing."""
        return iter(())

    def digests(self, after: int, to: int | None, limit: int) -> list[DocumentDigest]:
        """Hold nothing."""
        return []

    def digests_of(self, keys: Collection[str]) -> list[DocumentDigest]:
        """Hold nothing."""
        return []

    def digest(self, document: Document) -> DocumentDigest:
        """Hold nothing."""
        raise NotImplementedError(document)


class Scene:
    """A repository with documents of one owner, public and private."""

    def __init__(self, database: Database, now: Instant) -> None:
        self.database = database
        self.now = now
        with database.begin() as cx:
            self.repository: Repository = repositories.add(cx, "demo", "00000000-0000-4000-8000-000000000000", "", now)
            acls.initialise(cx, self.repository.id, now)
            self.catalogue = object_types.catalogue(cx, self.repository.id)
            self.public, self.private = (self.make(cx, name) for name in ("public", "private"))
            self.position = changes.latest(cx, self.repository.id)

    def make(self, cx: Connection, acl: str) -> StoredObject:
        """Keep a document."""
        given: dict[str, Value] = {"object_name": f"a {acl} one", "acl_name": acl}
        return creation.create(
            cx, RepositoryView(self.repository, self.catalogue, OWNER), "document", given, None, None, self.now
        )

    def note(self, object_id: str, kinds: Collection[Kind]) -> None:
        """Write lines of the log that the index has not seen."""
        with self.database.begin() as cx:
            for kind in kinds:
                changes.note(cx, self.repository.id, object_id, kind, self.now)

    def visible(self, caller: Principals, query: BoundQuery | None = None) -> Visible:
        """Say what the caller may see."""
        with self.database.read() as cx:
            inquiry = self.inquiry(cx, Given(self.position), caller, SearchQuestion())
            return visibility.visible(inquiry, query or BoundQuery())

    def inquiry(self, cx: Connection, given: Given, caller: Principals, question: SearchQuestion) -> Inquiry:
        """What a caller asks."""
        options = RepositoryOptions(max_page_offset=1000)
        return Inquiry(cx, given, self.repository, caller, self.now, options, question=question)

    def page(self, given: Given, caller: Principals, items: int = 10, number: int = 1) -> results.HitPage:
        """Ask for a page."""
        question = SearchQuestion(Query(), number, items, include_total=True)
        with self.database.read() as cx:
            return results.search(self.inquiry(cx, given, caller, question))


@pytest.fixture
def scene(repository_db: Database, now: Instant) -> Scene:
    return Scene(repository_db, now)


def seen(visible: Visible, stored: StoredObject) -> bool:
    """Say what an index makes of it, for an object that it holds with its present owner and ACL."""
    if stored.id in visible.hidden:
        return False
    if visible.everything:
        return True
    if stored.id in visible.decided:
        return stored.id in visible.browse
    return stored.acl_id in visible.browse_acls or visible.owner == stored.owner


@pytest.mark.slow
@pytest.mark.parametrize("caller", [OWNER, OTHER, ADMINISTRATOR], ids=["owner", "other", "administrator"])
def test_every_combination_of_changes_hides_or_shows_as_it_must(scene: Scene, caller: Principals) -> None:
    for size in range(4):
        for kinds in itertools.combinations(KINDS, size):
            with scene.database.begin() as cx:
                public = scene.make(cx, "public")
                private = scene.make(cx, "private")
                scene.position = changes.latest(cx, scene.repository.id)
            scene.note(public.id, kinds)
            scene.note(private.id, kinds)
            visible = scene.visible(caller)
            replaced = {"owner", "content", "deleted"} & set(kinds)
            former_values = "properties" in kinds and caller is OTHER
            assert seen(visible, public) is not bool(replaced or former_values), kinds
            assert seen(visible, private) is (not replaced and caller is not OTHER), kinds


def test_a_decided_object_is_browsed_and_read_as_its_present_acl_says(scene: Scene) -> None:
    scene.note(scene.public.id, ["acl"])
    scene.note(scene.private.id, ["acl"])
    visible = scene.visible(OTHER)
    assert visible.decided == {scene.public.id, scene.private.id}
    assert visible.browse == visible.read == {scene.public.id}
    assert not visible.hidden


def test_a_query_for_what_moves_with_the_acl_does_not_see_objects_whose_acl_moved(scene: Scene) -> None:
    scene.note(scene.public.id, ["acl"])
    condition = Carries((1,))
    nested = ConditionSet("OR", (Fulltext(Term("x")), ConditionSet("AND", (Unless(condition),))))
    for query in (BoundQuery((), condition), BoundQuery((), nested)):
        assert scene.visible(OTHER, query).hidden == {scene.public.id}
    assert not scene.visible(OTHER, BoundQuery((), OneOf("title", ("x",)))).hidden


def test_a_page_has_the_hits_of_the_answer_and_says_whether_others_follow(scene: Scene) -> None:
    given = Given(scene.position, scene.public.id, total=2, more=True)
    page = scene.page(given, OWNER, items=1, number=2)
    assert (given.asked[0].offset, given.asked[0].limit) == (1, 1)
    assert [found.object_id for found in page.hits] == [scene.public.id]
    assert (page.has_more, page.total, page.position) == (True, 2, scene.position)
    assert (page.hits[0].title, page.hits[0].owner) == ("a public one", OWNER.id)
    assert page.hits[0].summary == "a public one"


def test_a_hit_that_the_database_does_not_vouch_for_is_dropped(scene: Scene) -> None:
    given = Given(scene.position, scene.private.id, "0900000100ffffff", scene.public.id, total=3)
    page = scene.page(given, OTHER)
    assert [found.object_id for found in page.hits] == [scene.public.id]
    assert page.total == 1


def test_a_page_beyond_the_reach_of_paging_is_refused(scene: Scene) -> None:
    given = Given(scene.position)
    assert scene.page(given, OWNER, items=10, number=100).hits == ()
    with pytest.raises(BadQuery, match="hit 1000"):
        scene.page(given, OWNER, items=10, number=101)


def test_a_query_is_checked_against_the_catalogue(scene: Scene) -> None:
    query = Query((), PropertyList("unheard_of", "IN", ("x",)))
    with scene.database.read() as cx, pytest.raises(UnknownProperty):
        results.search(scene.inquiry(cx, Given(scene.position), OWNER, SearchQuestion(query, 1, 10)))
