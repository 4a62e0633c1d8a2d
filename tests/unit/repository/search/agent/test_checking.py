"""The checker: it names what is wrong in an index and mends it, beside writers and the agent; nothing else is named."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
import tantivy
from hypothesis import given
from hypothesis import strategies as st

from muniment.repository.search.agent import agent, checking, indexing
from muniment.repository.search.agent.checking import SEARCH_FIELDS, Checker, Course, Difference, Report
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.index.contract import DocumentDigest, Snapshot
from muniment.repository.search.index.document import Document, document
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.tantivy import fields
from muniment.repository.search.index.tantivy.generations import FolderEngine
from muniment.repository.store.change_log import changes
from muniment.repository.store.permissions.principals import Permission
from tests.clock import Clock
from tests.shelf import ADMIN, BORIS, MARTA, Shelf
from tests.waiting import until

STRANGE = "0900000100ffffff"


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of four objects: a few objects fill several."""
    monkeypatch.setattr(indexing, "_OBJECTS_AT_A_TIME", 4)


def held(shelf: Shelf, object_id: str) -> Document:
    """The document that the index holds of an object."""
    (document,) = shelf.index.snapshot().documents([object_id])
    return document


def damage(shelf: Shelf, *documents: Document, gone: tuple[str, ...] = ()) -> None:
    """Write into the index behind the agent's back."""
    shelf.writer.apply(documents, gone, shelf.writer.position)


def double(shelf: Shelf, document: tantivy.Document) -> None:
    """Add a document beside the one there is."""
    writer = shelf.writer._writer
    assert writer is not None
    writer.add_document(document)
    shelf.writer.apply((), (), shelf.writer.position)


def repair(shelf: Shelf) -> Report:
    """Check and repair, while an agent follows the log."""
    clock, stop = Clock(), threading.Event()

    def follow() -> None:
        while not stop.is_set():
            agent.catch_up(shelf.database, shelf.repository, shelf.writer, shelf.now)
            stop.wait(0.02)

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(follow)
        try:
            return checking.check(shelf.database, shelf.repository, shelf.index, clock, repairs=True, patience=20)
        finally:
            stop.set()
            following.result()


def lost(shelf: Shelf, object_id: str) -> Difference:
    damage(shelf, gone=(object_id,))
    return Difference(object_id, "missing")


def other_acl(shelf: Shelf, object_id: str) -> Difference:
    """Everybody may find it."""
    with shelf.database.read() as cx:
        public = cx.execute(sa.text("SELECT id FROM acls WHERE name = 'public'")).scalars().first()
    damage(shelf, msgspec.structs.replace(held(shelf, object_id), acl=int(public or 0)))
    return Difference(object_id, "stale", ("acl",))


def other_owner(shelf: Shelf, object_id: str) -> Difference:
    damage(shelf, msgspec.structs.replace(held(shelf, object_id), owner="boris@demo"))
    return Difference(object_id, "stale", ("owner",))


def other_text_and_name(shelf: Shelf, object_id: str) -> Difference:
    document = held(shelf, object_id)
    values = {**document.values, "object_name": ("another",)}
    damage(shelf, msgspec.structs.replace(document, text="another", values=values))
    return Difference(object_id, "stale", ("text", "object_name"))


def other_counter(shelf: Shelf, object_id: str) -> Difference:
    """It lies in a range far behind the last object."""
    damage(shelf, msgspec.structs.replace(held(shelf, object_id), seq=10**6))
    return Difference(object_id, "stale", ("seq",))


def other_moment(shelf: Shelf, object_id: str) -> Difference:
    damage(shelf, msgspec.structs.replace(held(shelf, object_id), modified=1))
    return Difference(object_id, "stale", ("modified",))


def found_by_another_owner(shelf: Shelf, object_id: str) -> Difference:
    """What the document states is right, but searches do not go by that."""
    document = held(shelf, object_id)
    made = fields.to_tantivy(msgspec.structs.replace(document, owner="boris@demo"), Analyser())
    stated = made.to_dict()
    stated[fields.SOURCE] = [layout.source(document)]
    damage(shelf, gone=(object_id,))
    double(shelf, tantivy.Document.from_dict(stated, fields.SCHEMA))
    return Difference(object_id, "stale", (SEARCH_FIELDS,))


def unreadable(shelf: Shelf, object_id: str) -> Difference:
    document = held(shelf, object_id)
    damage(shelf, gone=(object_id,))
    made = {layout.KEY: object_id, layout.NUMBER: document.seq, fields.SOURCE: b"\xff{"}
    double(shelf, tantivy.Document.from_dict(made, fields.SCHEMA))
    return Difference(object_id, "stale", (SEARCH_FIELDS,))


def doubled(shelf: Shelf, object_id: str) -> Difference:
    double(shelf, fields.to_tantivy(held(shelf, object_id), Analyser()))
    return Difference(object_id, "doubled")


def stray(shelf: Shelf, _object_id: str) -> Difference:
    damage(shelf, Document(STRANGE, 2, shelf.now, "document", 1, "marta@demo", {"object_name": ("x",)}, ""))
    return Difference(STRANGE, "extra")


def stray_behind_the_last(shelf: Shelf, _object_id: str) -> Difference:
    damage(shelf, Document(STRANGE, 2**63 + 5, shelf.now, "document", 1, "marta@demo", {}, "valve"))
    return Difference(STRANGE, "extra")


def stray_before_the_first(shelf: Shelf, _object_id: str) -> Difference:
    damage(shelf, Document(STRANGE, 0, shelf.now, "document", 1, "marta@demo", {}, "valve"))
    return Difference(STRANGE, "extra")


DAMAGES: list[Callable[[Shelf, str], Difference]] = [
    *(lost, other_acl, other_owner, other_text_and_name, other_counter, other_moment, found_by_another_owner),
    *(unreadable, doubled, stray, stray_behind_the_last, stray_before_the_first),
]


@pytest.mark.slow
@pytest.mark.parametrize("hurt", DAMAGES, ids=lambda hurt: hurt.__name__)
def test_each_damage_is_found_named_and_repaired(shelf: Shelf, hurt: Callable[[Shelf, str], Difference]) -> None:
    made = [shelf.add(f"pump {number}", "valve") for number in range(10)]
    shelf.catch_up()
    assert shelf.report().sound
    difference = hurt(shelf, made[5])
    found = shelf.report()
    assert found.differences == (difference,)
    assert (getattr(found, difference.fault), found.remaining, found.sound) == (1, 1, False)
    assert shelf.report().differences == (difference,), "only a repair changes anything"
    repaired = repair(shelf)
    assert repaired.differences == (msgspec.structs.replace(difference, repaired=True),)
    assert (repaired.noted, repaired.repaired, repaired.sound) == (1, 1, True)
    after = shelf.report()
    assert (after.sound, after.objects, after.documents, after.differences) == (True, 10, 10, ())
    assert shelf.find(MARTA, "valve") == made
    assert shelf.find(BORIS, "valve") == []


@pytest.mark.slow
def test_all_damages_at_one_time_are_told_apart(shelf: Shelf) -> None:
    made = [shelf.add(f"pump {number}", "valve") for number in range(30)]
    shelf.catch_up()
    differences = [hurt(shelf, made[2 * at]) for at, hurt in enumerate(DAMAGES[:-2])]
    found = shelf.report()
    assert sorted(found.differences, key=str) == sorted(differences, key=str)
    assert (found.missing, found.extra, found.stale, found.doubled) == (1, 1, 7, 1)
    assert (found.objects, found.documents, found.ranges) == (30, 31, 9)
    assert repair(shelf).sound
    assert shelf.report().differences == ()


@pytest.mark.slow
def test_what_the_index_has_not_seen_is_no_difference_and_is_asked_again(shelf: Shelf) -> None:
    made = [shelf.add(f"pump {number}", "valve") for number in range(6)]
    shelf.catch_up()
    shelf.change(made[1], {"title": "new"})
    shelf.delete(made[2])
    made.append(shelf.add("pump 7"))
    report = shelf.report()
    assert (report.sound, report.waiting, report.differences) == (True, 3, ())
    checker = Checker(shelf.database, shelf.repository, shelf.index, Course(Report(shelf.now)))
    while checker.step(shelf.now):
        pass
    assert set(checker.course.changed) == {made[1], made[2], made[6]}
    shelf.catch_up()
    assert checker.step(shelf.now)
    assert checker.course.over
    report = checker.finish(shelf.now)
    assert (report.sound, report.waiting, report.objects, report.documents) == (True, 0, 6, 6)


@pytest.mark.slow
def test_what_changed_and_is_wrong_still_when_the_index_has_followed_is_a_difference(shelf: Shelf) -> None:
    made = shelf.add("pump", "valve")
    shelf.catch_up()
    shelf.change(made, {"title": "new"})
    checker = Checker(shelf.database, shelf.repository, shelf.index, Course(Report(shelf.now)))
    while checker.step(shelf.now):
        pass
    assert checker.course.changed == [made]
    shelf.catch_up()
    damage(shelf, msgspec.structs.replace(held(shelf, made), text="other"))
    while checker.step(shelf.now):
        pass
    assert checker.finish(shelf.now).differences == (Difference(made, "stale", ("text",)),)


def test_without_an_agent_a_repair_is_noted_and_not_confirmed(shelf: Shelf) -> None:
    made = [shelf.add("pump", "valve") for _ in range(3)]
    shelf.catch_up()
    damage(shelf, gone=(made[1],))
    report = checking.check(shelf.database, shelf.repository, shelf.index, Clock(), repairs=True)
    assert (report.noted, report.repaired, report.sound) == (1, 0, False)
    assert report.differences == (Difference(made[1], "missing"),)
    with shelf.database.read() as cx:
        lines = changes.after(cx, shelf.repository.id, shelf.writer.position, 10)
    assert [(line.object_id, line.kind) for line in lines] == [(made[1], "again")]
    shelf.catch_up()
    assert shelf.report().sound


def test_a_repair_that_does_not_help_is_reported(shelf: Shelf) -> None:
    made = shelf.add("pump", "valve")
    shelf.catch_up()
    damage(shelf, gone=(made,))
    checker = Checker(shelf.database, shelf.repository, shelf.index, Course(Report(shelf.now), repairs=True))
    while checker.step(shelf.now):
        pass
    assert list(checker.course.noted) == [made]
    shelf.catch_up()
    damage(shelf, gone=(made,))
    while checker.step(shelf.now):
        pass
    report = checker.finish(shelf.now)
    assert (report.noted, report.repaired, report.differences) == (1, 0, (Difference(made, "missing"),))


def test_a_document_whose_key_is_no_id_is_named_and_left_to_a_rebuild(shelf: Shelf) -> None:
    shelf.add("pump", "valve")
    shelf.catch_up()
    damage(shelf, Document("no id at all", 5, shelf.now, "document", 1, "marta@demo", {}, ""))
    report = checking.check(shelf.database, shelf.repository, shelf.index, Clock(), repairs=True)
    assert (report.noted, report.differences) == (0, (Difference("no id at all", "extra"),))


def test_an_object_that_cannot_be_indexed_is_counted_and_not_missing(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [shelf.add(f"pump {number}", "valve") for number in range(3)]
    with monkeypatch.context() as patch:
        patch.setattr("muniment.repository.search.agent.indexing.document", _failing_for(made[1]))
        shelf.catch_up()
        report = shelf.report()
    assert (report.unindexed, report.sound, report.documents) == (1, True, 2)
    report = shelf.report()
    assert (report.unindexed, report.sound) == (1, True), "it is recorded, whoever could index it now"


def _failing_for(object_id: str) -> Callable[..., Document]:
    original = document

    def failing(stored: object, *more: object) -> Document:
        if getattr(stored, "id", "") == object_id:
            raise ValueError("no document")
        return original(stored, *more)  # type: ignore[arg-type]

    return failing


def test_a_check_goes_on_where_another_process_left_it(shelf: Shelf) -> None:
    made = [shelf.add(f"pump {number}", "valve") for number in range(12)]
    shelf.catch_up()
    damage(shelf, gone=(made[0], made[11]))
    course = Course(Report(shelf.now))
    while not course.over:
        course = msgspec.json.decode(msgspec.json.encode(course), type=Course)
        checker = Checker(shelf.database, shelf.repository, shelf.index, course)
        assert checker.step(shelf.now)
        course = checker.course
    assert {each.object_id for each in course.report.differences} == {made[0], made[11]}
    assert (course.report.objects, course.report.missing) == (12, 2)


@pytest.mark.slow
def test_many_documents_in_one_range_are_read_some_at_a_time(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "_MOST_DOCUMENTS", 3)
    made = [shelf.add(f"pump {number}", "valve") for number in range(10)]
    shelf.catch_up()
    for number in range(20):
        damage(shelf, Document(f"{number:016x}", 10**6 + number, shelf.now, "document", 1, "marta@demo", {}, ""))
    damage(shelf, gone=(made[4],))
    report = shelf.report()
    assert (report.objects, report.documents, report.extra, report.missing) == (10, 29, 20, 1)
    assert repair(shelf).sound
    assert shelf.report().documents == 10


@pytest.mark.slow
def test_the_open_objects_are_bounded(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "_MOST_OPEN", 5)
    monkeypatch.setattr(checking, "_AT_A_TIME", 2)
    made = [shelf.add(f"pump {number}", "valve") for number in range(20)]
    shelf.catch_up()
    damage(shelf, gone=tuple(made))
    checker = Checker(shelf.database, shelf.repository, shelf.index, Course(Report(shelf.now), repairs=True))
    while not checker.course.over:
        assert len(checker.course.noted) < 5 + 4
        if not checker.step(shelf.now):
            agent.catch_up(shelf.database, shelf.repository, shelf.writer, shelf.now)
    assert (checker.course.report.missing, checker.course.report.repaired) == (20, 20)


@pytest.mark.slow
def test_a_check_opens_no_long_transaction(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        shelf.add(f"pump {number}", "valve")
    shelf.catch_up()
    opened, most = [], []
    rows = indexing.document_batch

    def counted(cx: sa.Connection, *more: object) -> object:
        batch, to = rows(cx, *more)  # type: ignore[arg-type]
        opened.append(cx)
        most.append(len(batch.done_ids))
        return batch, to

    monkeypatch.setattr(indexing, "document_batch", counted)
    shelf.report()
    assert len(opened) == 4
    assert max(most) == 4


digests = st.builds(DocumentDigest, st.integers(0, 12), st.sampled_from("abc"), st.sampled_from([b"1", b"2"]))


@pytest.mark.slow
@given(st.lists(digests), st.lists(digests))
def test_splitting_names_the_counters_that_differ_and_no_others(
    wanted: list[DocumentDigest], kept: list[DocumentDigest]
) -> None:
    wanted, kept = sorted(wanted), sorted(kept)
    differ = {
        counter
        for counter in range(13)
        if [each for each in wanted if each.counter == counter] != [each for each in kept if each.counter == counter]
    }
    expected = {each.key for each in (*wanted, *kept) if each.counter in differ}
    assert checking.differing(wanted, kept) == expected


class Overtaken:
    """An index that moves before each snapshot, and whose database moves after it: the worst that writers can do."""

    def __init__(self, shelf: Shelf, object_ids: list[str]) -> None:
        self._shelf, self._object_ids, self._changes = shelf, object_ids, 0

    def snapshot(self) -> Snapshot:
        """Take a snapshot in between."""
        self._change()
        self._shelf.catch_up()
        taken = self._shelf.index.snapshot()
        self._change()
        return taken

    def close(self) -> None:
        """Nothing is open."""

    def _change(self) -> None:
        for object_id in self._object_ids:
            self._changes += 1
            self._shelf.change(object_id, {"title": str(self._changes)})


@pytest.mark.slow
def test_changes_around_each_snapshot_raise_no_false_alarm(shelf: Shelf) -> None:
    made = [shelf.add(f"pump {number}", "valve") for number in range(6)]
    shelf.catch_up()
    damage(shelf, gone=(made[5],))
    index = Overtaken(shelf, made[1:4])
    report = checking.check(shelf.database, shelf.repository, index, Clock())
    assert (report.differences, report.waiting) == ((Difference(made[5], "missing"),), 3)


@pytest.mark.slow
def test_writers_beside_the_check_raise_no_false_alarm(shelf: Shelf, tmp_path: Path) -> None:
    """Objects are made, changed, opened, closed and deleted all the while, and an agent follows."""
    engine, stop = FolderEngine(tmp_path / "indexes"), threading.Event()
    shelf.permit("open", {"world": Permission.DELETE})
    made = [shelf.add(f"pump {number}", "valve") for number in range(40)]
    rounds = [0]

    def write() -> None:
        dice = random.Random(1)
        while not stop.is_set():
            at = dice.randrange(len(made))
            match dice.randrange(5):
                case 0:
                    made.append(shelf.add("pump", "valve"))
                case 1 if len(made) > 30:
                    shelf.delete(made.pop(at), ADMIN)
                case 2:
                    shelf.change(made[at], {"acl_name": "open"})
                case 3:
                    shelf.change(made[at], {"acl_name": "private"})
                case _:
                    shelf.change(made[at], {"title": str(rounds[0])})
            rounds[0] += 1

    with ThreadPoolExecutor(2) as pool:
        work = [pool.submit(agent.run, shelf.database, engine, stop, Clock()), pool.submit(write)]
        try:
            until(lambda: engine.index(shelf.repository).current() is not None)
            index = engine.index(shelf.repository).reader()
            until(lambda: len(list(index.snapshot().documents())) >= 30)
            before, compared = rounds[0], 0
            while compared < 10 or rounds[0] < before + 60:
                assert not any(each.done() for each in work)
                report = checking.check(shelf.database, shelf.repository, index, Clock(), patience=0.1)
                assert report.differences == ()
                assert report.sound
                compared += 1
        finally:
            stop.set()
        for each in work:
            each.result()
    report = checking.check(shelf.database, shelf.repository, index, Clock())
    assert report.sound
    index.close()
