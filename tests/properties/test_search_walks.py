"""A walk along `next` shows each object that does not change exactly once, whatever is written between its pages."""

import itertools
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette

from muniment.clock import SECOND, Instant
from muniment.db import Database
from muniment.repository.endpoints import routes
from muniment.repository.index.tantivy.engine import TantivyIndex
from muniment.repository.options import RepositoryOptions
from tests.clock import Clock
from tests.properties.lengths import examples
from tests.scenes import InProcess, Loop
from tests.shelf import BORIS, MARTA, Shelf

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

writes = st.tuples(
    st.sampled_from(["add", "add", "title", "acl", "delete", "delete", "read acl", "catch up", "catch up"]),
    st.integers(0, 30),
)


class Walkers:
    """A repository behind two applications, as two workers are, and what was written to it."""

    def __init__(self, database: Database, folder: Path, now: Instant, name: str) -> None:
        self.shelf = Shelf(database, folder / "index", now, name)
        self.clock = Clock(now)
        self.loop = Loop()
        self.readers = [TantivyIndex(folder / "index") for _ in range(2)]
        self.clients = [self._client(reader, folder) for reader in self.readers]
        self.objects: dict[str, str] = {}
        self.touched: set[str] = set()

    def _client(self, reader: TantivyIndex, folder: Path) -> httpx.Client:
        context = self.shelf.context(folder, RepositoryOptions(), lambda _repository: reader, self.clock)
        transport = InProcess(Starlette(routes=routes.routes(context)), self.loop)
        return httpx.Client(transport=transport, base_url="http://testserver")

    def add(self, number: int) -> None:
        """Keep an object; some have the same title, some the same text."""
        acl = ("public", "private")[number % 4 == 0]
        owner = (MARTA, BORIS)[number % 3 == 0]
        self.shelf.now += number % 3 * SECOND
        made = self.shelf.add(f"pump {number}", "valve " * (number % 5 + 1) + "gasket " * number, acl, owner)
        self.objects[made] = acl
        if number % 2:
            self.shelf.change(made, title="AbCaBc"[number % 6 :], subject=str(number % 3), acl_name=acl)

    def write(self, name: str, number: int) -> None:
        """Write something; objects that it changes are touched."""
        self.shelf.now += SECOND
        if name == "add":
            self.add(number)
            self.touched.add(list(self.objects)[-1])
        elif name == "catch up":
            self.shelf.catch_up()
        elif self.objects:
            object_id = list(self.objects)[number % len(self.objects)]
            self.touched.add(object_id)
            if name == "delete":
                self.shelf.delete(object_id)
                del self.objects[object_id]
            elif name == "title":
                self.shelf.change(object_id, title=f"title {number}", acl_name=self.objects[object_id])
            else:
                self.objects[object_id] = ("public", "private")[number % 2]
                self.shelf.change(object_id, acl_name=self.objects[object_id])

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
def made(database: Database, now: Instant, objects: Sequence[int]) -> Iterator[Walkers]:
    """Make a repository with these objects."""
    with tempfile.TemporaryDirectory() as folder:
        walkers = Walkers(database, Path(folder), now, f"demo{next(numbers)}")
        for number in objects:
            walkers.add(number)
        walkers.shelf.catch_up()
        yield walkers
        walkers.close()


@settings(max_examples=examples(20, 400), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    objects=st.lists(st.integers(0, 30), min_size=3, max_size=14),
    query=st.sampled_from([*QUERIES, "posted"]),
    caller=st.sampled_from(["marta", "boris", "root"]),
    size=st.integers(1, 4),
    steps=st.lists(st.lists(writes, max_size=4), max_size=8),
)
def test_a_walk_shows_each_unchanged_object_exactly_once(
    repository_db: Database,
    now: Instant,
    objects: list[int],
    query: str,
    caller: str,
    size: int,
    steps: list[list[tuple[str, int]]],
) -> None:
    """failures B13"""
    with made(repository_db, now, objects) as walkers:
        seen_before = walkers.visible(caller)

        def between(number: int) -> None:
            for name, argument in steps[number] if number < len(steps) else ():
                walkers.write(name, argument)

        seen = Counter(walk(walkers, caller, query, size, between))
        unchanged = seen_before - walkers.touched
        assert unchanged <= walkers.visible(caller)
        for object_id in unchanged:
            assert seen[object_id] == 1, (query, caller, object_id)
        assert seen.keys() <= seen_before | walkers.touched
        assert set(seen.values()) <= {1}


@settings(max_examples=examples(8, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    objects=st.lists(st.integers(0, 30), min_size=8, max_size=16),
    query=st.sampled_from(["by modification", "sorted by two"]),
    start=st.integers(2, 3),
    steps=st.lists(st.tuples(st.sampled_from(["add", "delete", "catch up"]), st.integers(0, 30)), max_size=3),
)
@example(list(range(1, 11)), "by modification", 3, [("add", 1), ("add", 2), ("add", 4), ("catch up", 0)])
@example(list(range(1, 11)), "by modification", 3, [("delete", 9), ("delete", 8), ("delete", 7)])
def test_a_walk_from_a_page_further_down_goes_on_behind_it(
    repository_db: Database, now: Instant, objects: list[int], query: str, start: int, steps: list[tuple[str, int]]
) -> None:
    """Whatever comes, and whatever goes elsewhere, no unchanged object behind that page is missed or doubled."""
    size = 2
    with made(repository_db, now, objects) as walkers:
        whole = walk(walkers, "root", query, size, lambda _number: None)
        here = f"/rest/repositories/{walkers.shelf.repository.name}/search"
        address = f"{here}?{'&'.join((*QUERIES[query], f'items-per-page={size}'))}&page={start}"
        on_page = whole[(start - 1) * size : start * size]

        def between(number: int) -> None:
            for name, argument in steps if number == 0 else ():
                target = list(walkers.objects)[argument % len(walkers.objects)]
                if name != "delete" or target not in on_page:
                    walkers.write(name, argument)

        seen = Counter(walk(walkers, "root", query, size, between, address))
        behind = [object_id for object_id in whole[(start - 1) * size :] if object_id not in walkers.touched]
        assert all(seen[object_id] == 1 for object_id in behind)
        assert not set(whole[: (start - 1) * size]) & seen.keys()
