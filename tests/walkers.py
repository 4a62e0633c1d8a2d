"""Walks along `next` through the pages of a search, while others write."""

import dataclasses
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette

from muniment.database.connections import Database
from muniment.database.transactions import Transactions
from muniment.ground.clock import SECOND, Instant
from muniment.repository.api import routes
from muniment.repository.options import RepositoryOptions
from muniment.repository.search.index.contract import Index
from muniment.repository.store.objects.properties.properties import Given
from tests.clock import Clock
from tests.scenes import InProcess, Loop
from tests.shelf import ADMIN, BORIS, MARTA, Shelf

numbers = itertools.count(1)

QUERIES: dict[str, tuple[str, ...]] = {
    "by score": ("q=valve",),
    "by modification": ("",),
    "sorted by a text": ("q=valve", "sort=title desc no-case"),
    "sorted by two": ("sort=subject,object_name desc",),
    "the oldest first": ("q=valve", "sort=r_modify_date"),
}
"""What is walked through, as a GET says it."""

POSTED = (
    '<search xmlns="urn:muniment:vocab"><sorts><sort ascending="false">subject</sort><sort ascii="true">title</sort>'
    "</sorts><expression-set><expressions><fulltext>valve OR pump</fulltext></expressions></expression-set></search>"
)


class Walkers:
    """A repository behind two applications, as two workers are, and what was written to it."""

    def __init__(
        self, database: Database, folder: Path, now: Instant, name: str, options: RepositoryOptions | None = None
    ) -> None:
        self.options = options or RepositoryOptions()
        self.shelf = Shelf(database, folder, now, name)
        self.clock = Clock(now)
        self.loop = Loop()
        self.readers = [self.shelf.another_reader() for _ in range(2)]
        self.clients = [self._client(reader) for reader in self.readers]
        self.objects: dict[str, str] = {}
        self.contents: dict[str, int] = {}
        self.touched_ids: set[str] = set()

    def _client(self, reader: Index) -> httpx.Client:
        context = self.shelf.context(self.options, lambda _repository: reader, self.clock)
        database = Database(self.shelf.database.engine.url.render_as_string(hide_password=False))
        context = dataclasses.replace(context, transactions=Transactions(database))
        transport = InProcess(Starlette(routes=routes.routes(context)), self.loop)
        return httpx.Client(transport=transport, base_url="http://testserver")

    def add(self, number: int) -> None:
        """Keep an object; some have the same title, some the same text."""
        acl = ("public", "private")[number % 4 == 0]
        owner = (MARTA, BORIS)[number % 3 == 0]
        self.shelf.now += number % 3 * SECOND
        made = self.shelf.add(f"pump {number}", "valve " * (number % 5 + 1) + "gasket " * number, acl, owner)
        self.objects[made] = acl
        self.contents[made] = number
        if number % 2:
            self.change(made, title="AbCaBc"[number % 6 :], subject=str(number % 3), acl_name=acl)

    def change(self, object_id: str, **properties: Given) -> None:
        """Change properties of an object, as the administrator."""
        self.shelf.change(object_id, properties, ADMIN)

    def delete(self, object_id: str) -> None:
        """Delete an object, as the administrator."""
        self.shelf.delete(object_id, ADMIN)

    def write(self, name: str, number: int) -> None:
        """Write something; objects that it changes are touched."""
        self.shelf.now += SECOND
        if name == "add":
            self.add(number)
            self.touched_ids.add(list(self.objects)[-1])
        elif name == "catch up":
            self.shelf.catch_up()
        elif self.objects:
            object_id = list(self.objects)[number % len(self.objects)]
            self.touched_ids.add(object_id)
            if name == "delete":
                self.delete(object_id)
                del self.objects[object_id]
            elif name == "title":
                self.change(object_id, title=f"title {number}", acl_name=self.objects[object_id])
            else:
                self.objects[object_id] = ("public", "private")[number % 2]
                self.change(object_id, acl_name=self.objects[object_id])

    def get(self, caller: str, address: str, worker: int = 0) -> dict[str, Any]:
        """Get a page as JSON."""
        headers = {"Authorization": f"Bearer {caller}", "Accept": "application/json"}
        answer = self.clients[worker % 2].get(address, headers=headers)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def first(self, caller: str, query: str, size: int) -> dict[str, Any]:
        """Get the first page of a query."""
        here = f"/rest/repositories/{self.shelf.repository.name}/search"
        if query != "posted":
            return self.get(caller, f"{here}?{'&'.join((*QUERIES[query], f'items-per-page={size}'))}")
        headers = {"Authorization": f"Bearer {caller}", "Accept": "application/json", "Content-Type": "application/xml"}
        answer = self.clients[0].post(f"{here}?items-per-page={size}", content=POSTED, headers=headers)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def visible(self, caller: str) -> set[str]:
        """Name what the caller may see, as the database says: with one page of everything."""
        self.shelf.catch_up()
        return set(ids(self.get(caller, f"/rest/repositories/{self.shelf.repository.name}/search?items-per-page=1000")))

    def close(self) -> None:
        """Let everything go."""
        for client in self.clients:
            client.close()
        for reader in self.readers:
            reader.close()
        self.shelf.close()
        self.loop.close()


def ids(page: dict[str, Any]) -> list[str]:
    """Name the hits of a page."""
    return [entry["id"] for entry in page["entries"]]


def following(page: dict[str, Any]) -> str | None:
    """Read the link to the next page."""
    return next((link["href"] for link in page["links"] if link["rel"] == "next"), None)


def walk(
    walkers: Walkers, caller: str, query: str, size: int, between: Callable[[int], None], start: str | None = None
) -> list[str]:
    """Walk to the end, from worker to worker; something happens between the pages."""
    page = walkers.first(caller, query, size) if start is None else walkers.get(caller, start)
    seen = ids(page)
    for number in itertools.count():
        address = following(page)
        if address is None:
            return seen
        between(number)
        page = walkers.get(caller, address, number)
        assert len(page["entries"]) <= size
        seen += ids(page)
    raise AssertionError


@contextmanager
def open_walkers(
    database: Database, now: Instant, objects: Sequence[int], options: RepositoryOptions | None = None
) -> Iterator[Walkers]:
    """Make a repository with these objects."""
    with tempfile.TemporaryDirectory() as folder:
        walkers = Walkers(database, Path(folder), now, f"demo{next(numbers)}", options)
        try:
            for number in objects:
                walkers.add(number)
            walkers.shelf.catch_up()
            yield walkers
        finally:
            walkers.close()
