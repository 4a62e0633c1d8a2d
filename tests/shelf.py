"""A repository alone, for its decisions; with an index, and behind its addresses, when a test asks for them."""

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path

import msgspec
from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.database.transactions import Transactions
from muniment.ground.clock import Instant
from muniment.repository.api.callers.callers import Callers
from muniment.repository.api.context import RepositoryContext
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import NotSignedIn, UnknownAcl
from muniment.repository.search.agent import agent, checking
from muniment.repository.search.answering import results
from muniment.repository.search.answering.cache import SearchCache
from muniment.repository.search.answering.inquiry import Inquiry, SearchQuestion
from muniment.repository.search.answering.results import HitPage
from muniment.repository.search.aql import keywords
from muniment.repository.search.aql.tree import Expression, Fulltext, Query, QueryLimits
from muniment.repository.search.index.contract import Index, Snapshot
from muniment.repository.search.index.tantivy.engine import TantivyIndex, TantivyWriter
from muniment.repository.store import repositories
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.content.files import FileStore
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects import inventory, objects
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import Given
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.objects.types import object_types
from muniment.repository.store.objects.types.object_types import Catalogue
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.repositories import Repository
from tests.clock import Clock

MARTA = Principals("Marta@demo", frozenset({"staff@demo"}))
EDITH = Principals("edith@demo", frozenset({"staff@demo"}))
JON = Principals("jon@demo", frozenset({"guests@demo"}))
BORIS = Principals("boris@demo")
ADMIN = Principals("root@demo", administrator=True)
CALLERS = (MARTA, BORIS, EDITH, ADMIN)

_SUFFIX = "ou=P,dc=x"
_BEARERS = {caller.id.partition("@")[0].lower(): caller for caller in (MARTA, JON, BORIS, ADMIN)}


class Shelf:
    """A repository in a database, with a content store and an index in a folder.

    The index is made when a test first asks for it. Its agent runs only when a test tells it to.
    """

    def __init__(
        self, database: Database, folder: Path, now: Instant, name: str = "demo", language: str = "English"
    ) -> None:
        self.database, self.now = database, now
        self.folder, self.language = folder, language
        self.store = FileStore(folder / "content")
        self.memory = SearchCache()
        self.signed_out: set[str] = set()
        with database.begin() as cx:
            self.repository = repositories.add(cx, name, "00000000-0000-4000-8000-000000000000", "", now)
            acls.initialise(cx, self.repository.id, now)

    def close(self) -> None:
        """Let the index go, if there is one."""
        for opened in ("writer", "index"):
            if opened in vars(self):
                vars(self).pop(opened).close()

    def files(self) -> list[Path]:
        """The files of the content store."""
        return [
            path for path in (self.folder / "content").rglob("*") if path.is_file() and path.name != "removals.lock"
        ]

    # Decisions

    def catalogue(self) -> Catalogue:
        """The types as they are now."""
        with self.database.read() as cx:
            return object_types.catalogue(cx, self.repository.id)

    def view(self, principals: Principals) -> RepositoryView:
        """The repository as this caller works with it now."""
        with self.database.read() as cx:
            return RepositoryView.read(cx, self.repository, principals)

    def create(
        self,
        given: Mapping[str, Given],
        principals: Principals = MARTA,
        type_name: str = "document",
        folder_id: str | None = None,
        content: StoredContent | None = None,
    ) -> StoredObject:
        """Make an object."""
        view = self.view(principals)
        with self.database.begin() as cx:
            return creation.create(cx, view, type_name, given, folder_id, content, self.now)

    def change(self, object_id: str, given: Mapping[str, Given], principals: Principals = MARTA) -> StoredObject:
        """Change an object."""
        view = self.view(principals)
        with self.database.begin() as cx:
            return objects.change(cx, view, object_id, given, self.now + 1)

    def read(self, object_id: str, principals: Principals = MARTA) -> tuple[StoredObject, Permission]:
        """Read an object."""
        with self.database.read() as cx:
            return objects.read(cx, self.repository, object_id, principals)

    def delete(self, object_id: str, principals: Principals = MARTA) -> StoredObject:
        """Delete an object."""
        with self.database.begin() as cx:
            return objects.delete(cx, self.repository, principals, object_id, self.now)

    def acl(self, name: str, entries: Mapping[str, Permission], principals: Principals = MARTA) -> acls.Acl:
        """Make an ACL."""
        with self.database.begin() as cx:
            return acls.add(cx, self.repository.id, name, principals, entries, self.now)

    def permit(self, name: str, entries: Mapping[str, Permission]) -> None:
        """Make an ACL of Marta's, or replace the entries of the one there is."""
        with self.database.begin() as cx:
            try:
                known = acls.find(cx, self.repository.id, name, MARTA)
            except UnknownAcl:
                acls.add(cx, self.repository.id, name, MARTA, entries, self.now)
            else:
                acls.change(cx, known, ADMIN, entries, self.now)

    # Texts

    def add(self, name: str, said: str = "", acl: str = "private", owner: Principals = MARTA, **values: Given) -> str:
        """Keep a document whose text has been extracted already."""
        given: dict[str, Given] = {"object_name": name, "acl_name": acl, "a_content_type": "text/plain", **values}
        made = self.create(given, owner, content=self.content(said))
        self.extract(said)
        return made.id

    def content(self, said: str) -> StoredContent:
        """Stand in for stored bytes: nothing reads them."""
        return StoredContent(uuid.uuid4().hex, len(said), hashlib.sha256(said.encode()).digest())

    def replace(self, object_id: str, said: str) -> None:
        """Replace a document's content; its text is not extracted yet."""
        with self.database.begin() as cx:
            objects.replace_content(cx, self.repository, ADMIN, object_id, self.content(said), "text/plain", self.now)

    def extract(self, said: str) -> None:
        """Finish the text of the one content that waits for it."""
        with self.database.begin() as cx:
            job = queue.take(cx, self.now)
            assert job is not None
            assert queue.finish(cx, job, said, self.now)

    # The index

    @cached_property
    def writer(self) -> TantivyWriter:
        """The one writer of the index."""
        return TantivyWriter(self.folder / "index", self.language)

    @cached_property
    def index(self) -> TantivyIndex:
        """The index, for reading; the writer makes it if there is none yet."""
        assert (self.folder / "index").exists() or self.writer
        return TantivyIndex(self.folder / "index")

    def another_reader(self) -> Index:
        """The index as another process reads it, whether there is one yet or not."""
        return TantivyIndex(self.folder / "index")

    def catch_up(self) -> None:
        """Let the agent do all there is to do."""
        while agent.catch_up(self.database, self.repository, self.writer, self.now):
            pass
        self.writer.apply((), (), self.writer.position)

    def restart(self) -> None:
        """Let the writer go; the next one who asks opens it again."""
        self.writer.close()
        del self.writer

    def report(self) -> checking.Report:
        """Check the index against the database."""
        return checking.check(self.database, self.repository, self.index, Clock())

    def page(self, caller: Principals, asked: str | Expression, items: int = 100, number: int = 1) -> HitPage:
        """Search as a caller, by keywords or by an expression."""
        condition = Fulltext(keywords.read(asked, QueryLimits())) if isinstance(asked, str) else asked
        question = SearchQuestion(Query(condition=condition), number, items, include_total=True)
        snapshot = self.index.snapshot()
        with self.database.read() as cx:
            return results.search(self.inquiry(cx, caller, question, snapshot))

    def inquiry(
        self,
        cx: Connection,
        caller: Principals,
        question: SearchQuestion,
        snapshot: Snapshot | None = None,
        options: RepositoryOptions = RepositoryOptions(),  # noqa: B008 - it never changes
    ) -> Inquiry:
        """What a caller asks, of a snapshot that was taken before, or of the present one."""
        snapshot = snapshot or self.index.snapshot()
        return Inquiry(cx, snapshot, self.repository, caller, self.now, options, self.memory, question)

    def find(self, caller: Principals, asked: str | Expression) -> list[str]:
        """Name what a caller finds, in the order in which the objects were made; the total must agree."""
        page = self.page(caller, asked)
        assert page.total == len(page.hits)
        return self.as_made(found.object_id for found in page.hits)

    def as_made(self, object_ids: Iterable[str]) -> list[str]:
        """Bring ids, each once, into the order in which their objects were made."""
        wanted = list(object_ids)
        with self.database.read() as cx:
            rows = inventory.rows(cx, self.repository.id, wanted)
        return sorted(wanted, key=lambda object_id: rows[object_id].seq)

    # Addresses

    def context(
        self,
        options: RepositoryOptions,
        indexes: Callable[[Repository], Index] | None = None,
        clock: Clock | None = None,
    ) -> RepositoryContext:
        """What the addresses of this repository stand on, with its own index or another.

        A token is the short name of Marta, Jon, Boris or the administrator ``root``, and may go on after a dot.
        """

        def verify(token: str, _resource_id: str) -> bytes:
            bearer = _BEARERS.get(token.partition(".")[0])
            if bearer is None or token in self.signed_out:
                raise NotSignedIn("no")
            groups = bearer.groups | ({"administrators@demo"} if bearer.administrator else set())
            locations = [f"cn={group.partition('@')[0]},ou=Root,ou=demo,{_SUFFIX}" for group in groups]
            values = [{"name": "memberOf", "values": locations}]
            return msgspec.json.encode({"user": {"id": bearer.id.lower(), "values": values}})

        return RepositoryContext(
            transactions=Transactions(self.database),
            options=options,
            callers=Callers.in_process(verify, ("administrators@demo",), _SUFFIX),
            store=self.store,
            indexes=indexes or (lambda _repository: self.index),
            clock=clock or Clock(),
        )
