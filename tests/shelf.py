"""A repository with an index on a shelf: its agent runs only when a test tells it to."""

import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from muniment.clock import Instant
from muniment.db import Database
from muniment.repository import repositories
from muniment.repository.aql import keywords
from muniment.repository.aql.tree import Expression, Fulltext, Query, QueryLimits
from muniment.repository.callers.callers import Callers
from muniment.repository.content.contract import StoredContent
from muniment.repository.content.files import FileStore
from muniment.repository.endpoints.context import RepositoryContext
from muniment.repository.extraction import queue
from muniment.repository.index.contract import Index
from muniment.repository.index.tantivy.engine import TantivyIndex, TantivyWriter
from muniment.repository.index_agent import agent
from muniment.repository.objects import creation, object_types, objects
from muniment.repository.objects.properties import Given
from muniment.repository.objects.table import StoredObject
from muniment.repository.objects.view import RepositoryView
from muniment.repository.options import RepositoryOptions
from muniment.repository.permissions import acl_names, acls
from muniment.repository.permissions.principals import Permission, Principals
from muniment.repository.refusals import NotSignedIn, UnknownAcl
from muniment.repository.repositories import Repository
from muniment.repository.search import results
from muniment.repository.search.memory import SearchMemory
from muniment.repository.search.results import HitPage, SearchQuestion
from muniment.web.transactions import Transactions
from tests.clock import Clock

MARTA = Principals("marta@staff", frozenset({"editors@staff"}))
BORIS = Principals("boris@staff")
EDITOR = Principals("edith@staff", frozenset({"editors@staff"}))
ADMINISTRATOR = Principals("root@staff", administrator=True)
_SUFFIX = "ou=P,dc=x"
CALLERS = (MARTA, BORIS, EDITOR, ADMINISTRATOR)


class Shelf:
    """A repository with an index, whose agent runs only when told to."""

    def __init__(
        self, database: Database, folder: Path, now: Instant, name: str = "demo", language: str = "English"
    ) -> None:
        self.database = database
        self.now = now
        with database.begin() as cx:
            self.repository = repositories.add(cx, name, "00000000-0000-4000-8000-000000000000", "", now)
            acls.initialise(cx, self.repository.id, now)
            self.catalogue = object_types.catalogue(cx, self.repository.id)
        self.folder = folder
        self.writer = TantivyWriter(folder, language)
        self.index = TantivyIndex(folder, language)
        self.memory = SearchMemory()
        self.signed_out: set[str] = set()

    def catch_up(self) -> None:
        """Let the agent do all there is to do."""
        while (before := self.writer.position) != agent.catch_up(self.database, self.repository, self.writer, self.now):
            assert self.writer.position > before
        self.writer.apply((), (), self.writer.position)

    def add(self, name: str, said: str = "", acl: str = "private", owner: Principals = MARTA, **values: Given) -> str:
        """Keep a document whose text has been extracted already."""
        given: dict[str, Given] = {"object_name": name, "acl_name": acl, "a_content_type": "text/plain", **values}
        with self.database.begin() as cx:
            made = creation.create(cx, self.view(owner), "document", given, None, self.content(said), self.now)
        self.extract(said)
        return made.id

    def view(self, caller: Principals) -> RepositoryView:
        """The repository as this caller works with it."""
        return RepositoryView(self.repository, self.catalogue, caller)

    def replace(self, object_id: str, said: str) -> None:
        """Replace a document's content; its text is not extracted yet."""
        with self.database.begin() as cx:
            objects.replace_content(
                cx, self.repository, ADMINISTRATOR, object_id, self.content(said), "text/plain", self.now
            )

    def extract(self, said: str) -> None:
        """Finish the text of the one content that waits for it."""
        with self.database.begin() as cx:
            job = queue.take(cx, self.now)
            assert job is not None
            assert queue.finish(cx, job, said, self.now)

    def change(self, object_id: str, **given: Given) -> StoredObject:
        """Change properties as the administrator; an ACL is a built-in one, or Marta's."""
        name = str(given.get("acl_name", acls.PUBLIC))
        if name not in (acls.PRIVATE, acls.PUBLIC) and not acl_names.is_id(name):
            given["acl_name"] = acl_names.write(MARTA.id, name)
        with self.database.begin() as cx:
            return objects.change(cx, self.view(ADMINISTRATOR), object_id, given, self.now)

    def delete(self, object_id: str) -> None:
        """Delete an object."""
        with self.database.begin() as cx:
            objects.delete(cx, self.repository, ADMINISTRATOR, object_id, self.now)

    def acl(self, name: str, **entries: Permission) -> None:
        """Make an ACL of Marta's, or replace the entries of the one there is."""
        spelled = {key.replace("_at_", "@"): permission for key, permission in entries.items()}
        with self.database.begin() as cx:
            try:
                known = acls.find(cx, self.repository.id, name, MARTA)
            except UnknownAcl:
                acls.add(cx, self.repository.id, name, MARTA, spelled, self.now)
            else:
                acls.change(cx, known, ADMINISTRATOR, spelled, self.now)

    def page(self, caller: Principals, asked: str | Expression, items: int = 100, number: int = 1) -> HitPage:
        """Search as a caller, by keywords or by an expression."""
        condition = Fulltext(keywords.read(asked, QueryLimits())) if isinstance(asked, str) else asked
        question = SearchQuestion(Query(condition=condition), number, items, include_total=True)
        snapshot = self.index.snapshot()
        with self.database.read() as cx:
            return results.search(
                cx, snapshot, self.repository, caller, question, self.now, 100_000, memory=self.memory
            )

    def found(self, caller: Principals, asked: str | Expression) -> list[str]:
        """Name what a caller finds, in the order in which the objects were made; the total must agree."""
        page = self.page(caller, asked)
        assert page.total == len(page.hits)
        return self.as_made(found.object_id for found in page.hits)

    def as_made(self, object_ids: Iterable[str]) -> list[str]:
        """Bring ids, each once, into the order in which their objects were made."""
        wanted = list(object_ids)
        with self.database.read() as cx:
            rows = objects.rows(cx, self.repository.id, wanted)
        return sorted(wanted, key=lambda object_id: rows[object_id].seq)

    def restart(self) -> None:
        """Let the writer go and open it again."""
        self.writer.close()
        self.writer = TantivyWriter(self.folder)

    def close(self) -> None:
        """Let the index go."""
        self.writer.close()
        self.index.close()

    def report(self) -> agent.Report:
        """Check the index against the database."""
        return agent.check(self.database, self.repository, self.index.snapshot())

    def content(self, said: str) -> StoredContent:
        """Stand in for stored bytes: nothing here reads them."""
        return StoredContent(uuid.uuid4().hex, len(said), b"\0" * 32)

    def context(
        self,
        folder: Path,
        options: RepositoryOptions,
        indexes: Callable[[Repository], Index] | None = None,
        clock: Clock | None = None,
    ) -> RepositoryContext:
        """What the addresses of this repository stand on, with its own index or another; contents go into the folder.

        A token is the name of Marta, Boris or the administrator ``root``, and may go on after a dot.
        """

        def verify(token: str, _resource_id: str) -> bytes:
            name = token.partition(".")[0]
            if token in self.signed_out or name not in {"marta", "boris", "root"}:
                raise NotSignedIn("no")
            groups = [f"cn=administrators,ou=Root,ou=staff,{_SUFFIX}"] if name == "root" else []
            values = [{"name": "memberOf", "values": groups}]
            return msgspec.json.encode({"user": {"id": f"{name}@staff", "values": values}})

        return RepositoryContext(
            transactions=Transactions(self.database),
            options=options,
            callers=Callers.in_process(verify, ("administrators@staff",), _SUFFIX),
            store=FileStore(folder / "content"),
            indexes=indexes or (lambda _repository: self.index),
            clock=clock or Clock(),
        )
