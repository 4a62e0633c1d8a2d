"""Objects of a released folder keep their ids; no new id is one of them, and their index is made again by itself."""

import itertools
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest
import sqlalchemy as sa
import tantivy
from alembic import command
from sqlalchemy.engine import Connection

from muniment import schema
from muniment.clock import SECOND, Instant
from muniment.db import Database
from muniment.repository import repositories
from muniment.repository.aql.tree import Fulltext, Query, Term
from muniment.repository.change_log import changes
from muniment.repository.extraction import queue as texts
from muniment.repository.index.document import Document
from muniment.repository.index.tantivy import fields, generations
from muniment.repository.index.tantivy.analysis import Analyser
from muniment.repository.index.tantivy.engine import TantivyIndex, TantivyWriter
from muniment.repository.index.tantivy.generations import FolderEngine, FollowingIndex
from muniment.repository.index_agent import agent, checking
from muniment.repository.objects import inventory, object_ids, objects, usage
from muniment.repository.objects.decisions import creation
from muniment.repository.objects.types.object_types import BUILT_IN_TYPES, Catalogue
from muniment.repository.objects.usage import Amount
from muniment.repository.objects.view import RepositoryView
from muniment.repository.permissions import acls
from muniment.repository.repositories import Repository
from muniment.repository.search import results
from tests.clock import Clock
from tests.conftest import Fresh
from tests.shelf import MARTA
from tests.waiting import until

FORMAT = 2
KINDS = ("cabinet", "folder", "document", "sysobject")
PUMP = Fulltext(Term("pump"))


def former_id(_cx: Connection, catalogue: Catalogue, type_name: str, counter: int) -> str:
    """Spell an id as the releases before did, in the first repository."""
    digits = {"cabinet": "0c", "folder": "0b", "document": "09"}
    kind = next((kind for kind in digits if catalogue.is_a(type_name, kind)), "")
    return f"{digits.get(kind, '08')}000001{counter:08x}"


def former_fields() -> tantivy.Schema:
    """Make the schema of an index as the releases before did."""
    builder = tantivy.SchemaBuilder()
    for name in ("key", "type", "acl", "owner"):
        builder.add_text_field(name, stored=name == "key", tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("number", indexed=True, fast=True)
    builder.add_bytes_field("source", stored=True)
    builder.add_json_field("properties", fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("metadata", tokenizer_name="stems")
    builder.add_text_field("metadata_exact", tokenizer_name="words")
    builder.add_text_field("content", stored=True, tokenizer_name="stems")
    builder.add_text_field("content_exact", tokenizer_name="words")
    return builder.build()


def former_document(document: Document, _analyser: Analyser) -> tantivy.Document:
    """Fill those fields."""
    source = {"key": document.key, "type": document.type, "acl": document.acl, "owner": document.owner}
    words = [str(value) for value in document.values["object_name"]]
    return tantivy.Document.from_dict(
        {
            "key": document.key,
            "number": int(document.key, 16),
            "source": msgspec.json.encode(source | {"values": document.values}),
            "type": document.type,
            "acl": str(document.acl),
            "owner": document.owner,
            "metadata": words,
            "metadata_exact": words,
        },
        former_fields(),
    )


class Folder:
    """A released folder's database, at the schema before this one, with objects of each kind."""

    def __init__(self, url: str, now: Instant) -> None:
        self.database, self.now = Database(url), now
        config = schema._alembic("repository")
        with self.database.engine.connect() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "0008")
            connection.commit()
        self.cabinet: str | None = None
        self._alter(
            "repositories", "ADD COLUMN language VARCHAR(20) NOT NULL DEFAULT ''"
        )  # while it is made with today's code
        with self.database.begin() as cx:
            self.repository: Repository = repositories.add(cx, "main", "11111111-1111-1111-1111-111111111111", "", now)
            acls.initialise(cx, self.repository.id, now)
        self._alter("repositories", "DROP COLUMN language")
        self.made = [self._insert(KINDS[number % 4]) for number in range(12)]

    def _insert(self, type_name: str) -> str:
        """Insert the row of an object as the releases before did, a second after the one before."""
        self.now += SECOND
        row = (
            "INSERT INTO objects (id, repository_id, type, name, owner, owner_key, acl_id, folder_id, created, creator,"
            " modified, modifier, version, properties, media_type, content_size) VALUES (:id, :repository, :type,"
            " 'pump', :owner, :key, :acl, :folder, :now, :owner, :now, :owner, 1, '{}', '', 0)"
        )
        with self.database.begin() as cx:
            count: int = cx.execute(sa.text("SELECT count(*) FROM objects")).scalar_one()
            object_id = former_id(cx, BUILT_IN_TYPES, type_name, count + 1)
            values = {"id": object_id, "repository": self.repository.id, "type": type_name, "owner": MARTA.id}
            values |= {"key": MARTA.key, "acl": acls.built_in(cx, self.repository.id, acls.PRIVATE, self.now)}
            folder = self.cabinet if type_name == "folder" else None
            cx.execute(sa.text(row), values | {"folder": folder, "now": self.now})
            usage.count(cx, {MARTA.key: Amount(1, 0)}, None)
            changes.note_all(cx, self.repository.id, [object_id], "created", self.now)
        self.cabinet = self.cabinet or object_id
        return object_id

    def make(self, type_name: str = "document") -> str:
        """Make an object without content, a second after the one before."""
        self.now += SECOND
        with self.database.begin() as cx:
            view = RepositoryView.read(cx, self.repository, MARTA)
            given, place = {"object_name": "pump"}, self.cabinet if type_name == "folder" else None
            made = creation.create(cx, view, type_name, given, place, None, self.now)
        self.cabinet = self.cabinet or made.id
        return made.id

    def _alter(self, table: str, how: str) -> None:
        with self.database.begin() as cx:
            cx.execute(sa.text(f"ALTER TABLE {table} {how}"))

    def wait_for_text(self, object_ids: list[str]) -> None:
        """Let files of these objects wait to be read, all due at one time, as the releases before noted it."""
        row = (
            "INSERT INTO texts (object_id, repository_id, owner_key, content_key, media_type, file_name, state, reason,"
            " attempts, losses, lease, due, text) VALUES (:id, :repository, 'marta@staff', :id, '', '', 'waiting', '',"
            " 0, 0, NULL, :now, '')"
        )
        with self.database.begin() as cx:
            rows = [{"id": each, "repository": self.repository.id, "now": self.now} for each in object_ids]
            cx.execute(sa.text(row), rows)
            cx.execute(sa.text("INSERT INTO turns (owner_key, turn) VALUES ('marta@staff', 1)"))


@pytest.fixture
def folder(fresh: Fresh, now: Instant) -> Iterator[Folder]:
    made = Folder(fresh(), now)
    yield made
    made.database.close()


def test_ids_of_a_released_folder_stay_and_no_new_one_equals_one_of_them(folder: Folder) -> None:
    assert folder.made[:2] == ["0c00000100000001", "0b00000100000002"]
    schema.migrate(folder.database, "repository")
    new = [folder.make(KINDS[number % 4]) for number in range(40)]
    assert not any(each.startswith("00", 2) for each in new), "the former ids of up to 65,535 repositories begin so"
    with folder.database.read() as cx:
        for each, kind in zip(folder.made + new, itertools.cycle(("cabinet", "folder", "document", "object"))):
            stored, _ = objects.read(cx, folder.repository, each.upper(), MARTA, kind)
            assert (stored.id, object_ids.kind_of(each)) == (each, kind)
            assert re.fullmatch("0[89bc][0-9a-f]{14}", each)
        every = inventory.every(cx, folder.repository.id, 0, 100)
    assert [stored.id for stored in every] == folder.made + new
    assert [stored.seq for stored in every] == list(range(1, 53))
    with folder.database.begin() as cx:
        changed = objects.change(
            cx, RepositoryView.read(cx, folder.repository, MARTA), folder.made[0], {"title": "t"}, folder.now
        )
    assert changed.id == folder.made[0]


def test_files_that_wait_in_a_released_folder_are_read_in_the_order_of_their_objects(folder: Folder) -> None:
    waiting = folder.made[2::4] + folder.made[3::4]  # documents and others: by id the others would be first
    folder.wait_for_text(waiting)
    schema.migrate(folder.database, "repository")
    taken = []
    with folder.database.begin() as cx:
        while job := texts.take(cx, folder.now):
            taken.append(job.object_id)
            assert texts.finish(cx, job, "words", folder.now)
    assert taken == [each for each in folder.made if each in waiting]


def former_index(folder: Folder, place: Path) -> None:
    """Make a generation as the release before would have left it."""
    with (
        patch.object(fields, "FORMAT", FORMAT),
        patch.object(fields, "schema", former_fields),
        patch.object(fields, "to_tantivy", former_document),
    ):
        agent.rebuild(folder.database, folder.repository, FolderEngine(place), Clock())


@contextmanager
def running(database: Database, place: Path, opening: Callable[[Path, str], TantivyWriter]) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=agent.run, args=(database, FolderEngine(place, opening), stop, Clock()))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)
        assert not thread.is_alive()


def found(folder: Folder, index: FollowingIndex, condition: Fulltext | None = None, number: int = 1) -> list[str]:
    question = results.SearchQuestion(Query((), condition), number, 5, include_total=True)
    snapshot = index.snapshot()
    with folder.database.read() as cx:
        page = results.search(cx, snapshot, folder.repository, MARTA, question, 0, 1000)
    return [each.object_id for each in page.hits]


def paged(folder: Folder, index: FollowingIndex, condition: Fulltext | None = None) -> list[str]:
    return [each for number in (1, 2, 3, 4) for each in found(folder, index, condition, number)]


def test_an_index_of_the_format_before_is_searched_until_it_has_been_made_again(folder: Folder, tmp_path: Path) -> None:
    schema.migrate(folder.database, "repository")
    former_index(folder, tmp_path)
    own = tmp_path / str(folder.repository.id)
    old, index = generations.current(own), FollowingIndex(own, TantivyIndex)
    assert paged(folder, index) == sorted(folder.made), "in the order that it knows"
    assert sorted(paged(folder, index, PUMP)) == sorted(folder.made)
    searched = []

    def opened(generation: Path, language: str) -> TantivyWriter:
        searched.append(paged(folder, index) == sorted(folder.made))
        return TantivyWriter(generation, language)

    added = folder.make()
    with running(folder.database, tmp_path, opened):
        until(lambda: generations.current(own) != old and reached(folder, index))
    assert searched[:2] == [True, True], "searches went on"
    assert paged(folder, index) == [added, *reversed(folder.made)]
    assert sorted(paged(folder, index, PUMP)) == sorted([*folder.made, added])
    report = checking.check(folder.database, folder.repository, index, Clock())
    assert report.sound, report
    assert (report.objects, report.documents) == (13, 13)


def reached(folder: Folder, index: FollowingIndex) -> bool:
    with folder.database.read() as cx:
        return index.snapshot().position == changes.latest(cx, folder.repository.id)
