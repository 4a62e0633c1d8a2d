"""Equal bytes are kept once: the counts are right, whatever is written at one time, and nothing wanted is removed."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import NamedTuple

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import Busy, repository_tables
from muniment.repository.refusals import (
    ContentDamaged,
    ContentExists,
    NoContent,
    UnknownObject,
    VersionConflict,
    WrongValue,
)
from muniment.repository.search.agent import agent
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.objects import inventory, objects
from muniment.repository.store.objects.contents import content_references, stored_contents
from muniment.repository.store.objects.contents.usage import Amount
from muniment.repository.store.objects.decisions import contents, creation
from muniment.repository.store.objects.decisions.contents import WantedContent
from muniment.repository.store.objects.decisions.creation import NewObject
from muniment.repository.store.objects.table import StoredObject
from tests import contents as disk
from tests.shelf import MARTA, Shelf

EVER = 2**52
PAGE = WantedContent(page=1, primary=True)
PDF = WantedContent("application/pdf", primary=False)


class Deduplicated(NamedTuple):
    """A shelf whose uploads go the way that the addresses take: what is spare or freed is removed after the commit."""

    shelf: Shelf

    def _after(self, uploaded: list[StoredContent], named: list[StoredContent], freed: tuple[str, ...]) -> None:
        content_references.drop_spares(self.shelf.database, self.shelf.store, uploaded, named)
        for key in freed:
            self.shelf.store.remove(key)

    def make(self, *texts: bytes) -> list[StoredObject]:
        """Make a document of each text, in one transaction."""
        uploaded, view = self.shelf.store.put_all(texts), self.shelf.view(MARTA)
        new = [NewObject("document", {"object_name": "x"}, None, each) for each in uploaded]
        with self.shelf.database.begin() as cx:
            made = creation.create_all(cx, view, new, self.shelf.now)
        self._after(uploaded, [each.content for each in made if each.content], ())
        return made

    def put(self, object_id: str, text: bytes, place: WantedContent = PAGE) -> None:
        """Give an object a content."""
        uploaded = self.shelf.store.put([text])
        with self.shelf.database.begin() as cx:
            outcome = contents.put(
                cx,
                self.shelf.repository,
                MARTA,
                object_id,
                contents.place_of(place),
                uploaded,
                place.media_type or "text/plain",
                self.shelf.now,
            )
        self._after([uploaded], [outcome.content.content], outcome.stored.freed)

    def delete(self, object_id: str) -> None:
        """Delete a document."""
        self._after([], [], self.shelf.delete(object_id).freed)

    def kept(self) -> list[bytes]:
        """What lies in the store."""
        return sorted(disk.contents(self.shelf.folder / "content"))

    def check(self) -> dict[str, int]:
        """Check that the counts are those of the rows, and that every content that is counted is whole."""
        with self.shelf.database.read() as cx:
            counted, present = disk.counted_uses(cx), disk.counted_rows(cx)
            every = list(stored_contents.all_stored_contents(cx))
        assert counted == present
        assert all(self.shelf.store.verify(content.key, content.sha256) for content in every)
        return counted


@pytest.fixture
def house(shelf: Shelf) -> Deduplicated:
    return Deduplicated(shelf)


def test_equal_bytes_are_kept_once_until_the_last_object_goes(house: Deduplicated) -> None:
    first, second = house.make(b"words")[0], house.make(b"words")[0]
    assert first.content == second.content
    assert house.kept() == [b"words"]
    with house.shelf.database.read() as cx:
        assert inventory.amounts_by_owner(cx)[MARTA.key] == Amount(2, 10), "each owner counts the whole size"
    house.delete(first.id)
    assert house.kept() == [b"words"]
    assert list(house.check().values()) == [1]
    house.delete(second.id)
    assert (house.kept(), house.check()) == ([], {})
    assert house.make(b"words")[0].content != first.content, "a key is never used again"


def test_many_objects_of_one_transaction_share_equal_bytes(house: Deduplicated) -> None:
    house.make(b"one")
    made = house.make(b"one", b"two", b"one", b"two", b"three", b"")
    assert house.kept() == [b"", b"one", b"three", b"two"]
    assert sorted(house.check().values()) == [1, 1, 2, 3]
    assert [b"".join(house.shelf.store.read(each.content)) for each in made if each.content] == [
        *(b"one", b"two", b"one", b"two", b"three", b"")
    ]


def test_replacing_a_content_by_itself_changes_nothing(house: Deduplicated) -> None:
    (made,) = house.make(b"words")
    for place in (contents.PRIMARY, PAGE, PDF):
        house.put(made.id, b"words", place)
        house.put(made.id, b"words", place)
    assert house.kept() == [b"words"]
    assert list(house.check().values()) == [3]
    house.put(made.id, b"other", contents.PRIMARY)
    assert house.kept() == [b"other", b"words"]
    house.delete(made.id)
    assert house.kept() == []


def test_a_failed_transaction_counts_nothing(house: Deduplicated) -> None:
    (made,) = house.make(b"words")
    before = house.check()
    upload = house.shelf.store.put([b"words"])

    def keep_and_fail() -> None:
        with house.shelf.database.begin() as cx:
            stored_contents.keep_contents(cx, [upload])
            objects.read(cx, house.shelf.repository, "09" + "0" * 14, MARTA)

    def put(cx: Connection) -> None:
        about = (contents.place_of(contents.PRIMARY), upload, "text/plain", house.shelf.now)
        contents.put(cx, house.shelf.repository, MARTA, made.id, *about, overwrite=False)

    with pytest.raises(UnknownObject):
        keep_and_fail()
    with house.shelf.database.begin() as cx, pytest.raises(ContentExists):
        put(cx)
    assert house.check() == before


def test_a_content_whose_last_use_is_gone_is_not_shared_again(house: Deduplicated) -> None:
    (made,) = house.make(b"words")
    house.delete(made.id)
    assert made.content is not None
    with house.shelf.database.begin() as cx, pytest.raises(VersionConflict):
        stored_contents.share(cx, [made.content])


@pytest.mark.slow
def test_the_sweep_removes_what_no_row_names_and_nothing_else(house: Deduplicated) -> None:
    (made,) = house.make(b"words")
    house.put(made.id, b"page")
    house.put(made.id, b"%PDF", PDF)
    house.shelf.store.put([b"orphan"])
    assert sum(agent._sweep(house.shelf.database, house.shelf.store, EVER)) == 1
    assert house.kept() == [b"%PDF", b"page", b"words"]
    house.check()


def test_an_upload_of_the_same_bytes_mends_damaged_ones_for_everybody(house: Deduplicated) -> None:
    first, second = house.make(b"words"), house.make(b"words")
    house.put(second[0].id, b"words")
    disk.spoil(house.shelf.folder / "content", b"words")
    (third,) = house.make(b"words")
    for object_id in (first[0].id, second[0].id, third.id):
        content = house.shelf.read(object_id)[0].content
        assert content is not None
        assert b"".join(house.shelf.store.read(content)) == b"words"
    assert house.kept() == [b"words"]
    assert list(house.check().values()) == [4]


def test_what_is_missing_is_mended_too(house: Deduplicated) -> None:
    house.make(b"words")
    disk.lose(house.shelf.folder / "content", b"words")
    house.make(b"words")
    assert house.kept() == [b"words"]
    house.check()


def test_contents_that_were_equal_before_stay_double_until_they_go(house: Deduplicated) -> None:
    """A migrated database may hold equal contents under two keys; only one of them is offered to uploads."""
    (made,) = house.make(b"words")
    double = house.shelf.store.put([b"words"])
    table = stored_contents.stored_contents
    with house.shelf.database.begin() as cx:
        row = {"key": double.key, "size": 5, "sha256": double.sha256, "uses": 1, "offered": False}
        cx.execute(table.insert().values(**row))
        (other,) = creation.create_all(
            cx, house.shelf.view(MARTA), [NewObject("document", {"object_name": "y"})], house.shelf.now
        )
        cx.execute(
            sa.update(repository_tables.tables["objects"])
            .where(sa.column("id") == other.id)
            .values(content_key=double.key, content_size=5, content_sha256=double.sha256)
        )
    assert house.make(b"words")[0].content == made.content
    house.delete(other.id)
    assert house.kept() == [b"words"]
    house.check()


def test_a_content_has_a_place_of_its_own(house: Deduplicated) -> None:
    (made,) = house.make(b"words")
    house.put(made.id, b"page")
    house.put(made.id, b"%PDF", PDF)
    with house.shelf.database.read() as cx:
        found = [contents.find(cx, house.shelf.read(made.id)[0], wanted).content.size for wanted in (PAGE, PDF)]
        assert found == [4, 4]
        for nowhere in (WantedContent(page=2), WantedContent("text/html"), WantedContent(modifier="m")):
            with pytest.raises(NoContent):
                contents.find(cx, house.shelf.read(made.id)[0], nowhere)
    with pytest.raises(WrongValue):
        contents.place_of(WantedContent(modifier="m"))
    with house.shelf.database.begin() as cx:
        gone = contents.remove(cx, house.shelf.repository, MARTA, made.id, contents.PRIMARY, house.shelf.now)
    assert (gone.content, gone.media_type, len(gone.freed)) == (None, "", 1)
    with house.shelf.database.read() as cx:
        assert inventory.amounts_by_owner(cx)[MARTA.key] == Amount(1, 8)


def test_the_contents_in_the_wastebasket_are_listed_in_portions(
    house: Deduplicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_references, "_AT_A_TIME", 2)
    made = house.make(b"a", b"b", b"c", b"d", b"e")
    house.put(made[0].id, b"page of a")
    house.put(made[2].id, b"%PDF of c", PDF)
    (bare,) = house.make(b"none")
    with house.shelf.database.begin() as cx:
        contents.remove(cx, house.shelf.repository, MARTA, bare.id, contents.PRIMARY, house.shelf.now)
    with house.shelf.database.begin() as cx:
        for at, each in enumerate([*reversed(made), bare]):
            objects.delete(cx, house.shelf.repository, MARTA, each.id, house.shelf.now + at // 3, keep_days=30)

    def listed(repository_id: int) -> list[tuple[str, bytes]]:
        every = content_references.of_wastebasket(house.shelf.database, repository_id)
        return [(object_id, b"".join(house.shelf.store.read(content))) for object_id, content in every]

    own = listed(house.shelf.repository.id)
    letters = {each.id: letter for each, letter in zip(made, "abcde", strict=True)}
    in_order = [(letters[object_id], text) for object_id, text in own if len(text) == 1]
    assert in_order == [("c", b"c"), ("d", b"d"), ("e", b"e"), ("a", b"a"), ("b", b"b")]
    assert {(letters[object_id], text) for object_id, text in own if len(text) > 1} == {
        ("a", b"page of a"),
        ("c", b"%PDF of c"),
    }
    assert (len(own), listed(house.shelf.repository.id + 1)) == (7, [])


def test_every_column_that_names_a_content_is_known_to_the_garbage_collection() -> None:
    own = {stored_contents.stored_contents.name, "texts"}
    named = {
        table
        for table in repository_tables.sorted_tables
        if table.name not in own and any(column.name.endswith("content_key") for column in table.columns)
    }
    assert named == set(content_references.TABLES)
    assert all(any(index.columns.keys()[0] == "content_key" for index in table.indexes) for table in named)


def write_a_while(house: Deduplicated, seed: int) -> None:
    """Make, change and delete documents of a few contents. A database that is busy has written nothing."""
    chance, own, texts = random.Random(seed), list[str](), [b"a", b"b", b"c"]
    for _ in range(25):
        with suppress(Busy):
            if not own or chance.random() < 0.5:
                own += [each.id for each in house.make(*chance.choices(texts, k=chance.choice([1, 3])))]
            elif chance.random() < 0.4:
                place = chance.choice([contents.PRIMARY, PAGE, PDF])
                house.put(chance.choice(own), chance.choice(texts), place)
            else:
                house.delete(own.pop(chance.randrange(len(own))))


def move_a_while(house: Deduplicated, seed: int, ended: threading.Event) -> None:
    """Give rows copies of the bytes that they name, as the compaction does."""
    chance, store = random.Random(seed), house.shelf.store
    while not ended.is_set():
        with house.shelf.database.read() as cx:
            every = list(stored_contents.all_stored_contents(cx))
        with suppress(Busy, ContentDamaged):  # its last use may be gone by now
            original = chance.choice(every) if every else None
            copy = store.put(store.read(original)) if original else None
            if original and copy and content_references.replace(house.shelf.database, original, copy):
                store.remove(original.key)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.campaign)])
def test_threads_that_write_delete_and_move_equal_bytes_at_one_time_lose_nothing(
    house: Deduplicated, seed: int
) -> None:
    ended = threading.Event()
    with ThreadPoolExecutor(5) as threads:
        moving = threads.submit(move_a_while, house, seed, ended)
        writers = [threads.submit(write_a_while, house, 100 * seed + number) for number in range(4)]
        wait(writers)
        ended.set()
    for each in (*writers, moving):
        each.result()
    house.check()
    sum(agent._sweep(house.shelf.database, house.shelf.store, EVER))
    with house.shelf.database.read() as cx:
        assert inventory.amounts_by_owner(cx)[MARTA.key].bytes == sum(house.check().values())
    assert len(house.kept()) == len(house.check())


@pytest.mark.slow
def test_a_database_takes_them_all(house: Deduplicated) -> None:
    """More contents than one statement takes."""
    made = house.make(*(b"%d" % (number % 700) for number in range(1400)))
    assert len(house.kept()) == 700
    with house.shelf.database.begin() as cx:
        freed = objects.remove(cx, made, MARTA, house.shelf.now)
    assert sum(len(each.freed) for each in freed) == 700
    assert house.check() == {}
