"""What every index promises, however it came about: just built, opened again, rebuilt from its own documents."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from muniment.repository.folding import fold
from muniment.repository.search.aql.conditions import Between, BoundQuery, Like
from muniment.repository.search.aql.patterns import Gap, Pattern
from muniment.repository.search.aql.tree import Fulltext, Term, Value
from muniment.repository.search.index.contract import Index, IndexWriter, Search, Snapshot, Visible
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.tantivy.engine import TantivyIndex, TantivyWriter
from muniment.repository.store.change_log.changes import Position
from tests.waiting import until

POSITION = Position(3, 14)
NAMES = ("0900000100000001", "0900000100000002", "0b00000100000003")


def beginning(name: str, text: str) -> Like:
    return Like(name, (Pattern((fold(text), Gap.RUN)),))


def documents() -> list[Document]:
    def of(at: int, kind: str, text: str, **values: Value) -> Document:
        several: dict[str, tuple[Value, ...]] = {name: (value,) for name, value in values.items()}
        return Document(NAMES[at], at + 1, 100 + at, kind, at + 1, "marta@staff", several, text)

    return [
        of(0, "document", "The pump runs.", title="Harbour", size=5),
        of(1, "report", "Pumps and valves.", title="harbours", size=50),
        of(2, "folder", "", title="Empty"),
    ]


class Subject:
    """An index with three documents, open for reading and writing."""

    def __init__(self, index: Index, writer: IndexWriter) -> None:
        self.index = index
        self.writer = writer

    def find(self, query: BoundQuery, visible: Visible | None = None) -> list[str]:
        search = Search(query, visible or Visible(everything=True), 0, 10, total=True)
        answer = self.index.snapshot().search(search)
        assert answer.total == len(answer.hits)
        return sorted(hit.object_id for hit in answer.hits)


def just_built(folder: Path) -> Subject:
    writer = TantivyWriter(folder)
    writer.apply(documents(), (), POSITION)
    return Subject(TantivyIndex(folder), writer)


def opened_again(folder: Path) -> Subject:
    just_built(folder).writer.close()
    return Subject(TantivyIndex(folder), TantivyWriter(folder))


def rebuilt(folder: Path) -> Subject:
    first = opened_again(folder / "first")
    writer = TantivyWriter(folder / "second")
    for each in first.index.snapshot().documents():
        writer.apply([each], (), POSITION)
    first.writer.close()
    return Subject(TantivyIndex(folder / "second"), writer)


def replaced(folder: Path) -> Subject:
    writer = TantivyWriter(folder)
    for round_ in range(3):
        writer.apply(
            [Document(name, 9, 9, "document", 9, "x@y", {}, f"old pump {round_}") for name in NAMES], (), Position(0, 1)
        )
    writer.apply(documents(), ("0900000100000009",), POSITION)
    return Subject(TantivyIndex(folder), writer)


@pytest.fixture(params=[just_built, opened_again, rebuilt, replaced])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    make: Callable[[Path], Subject] = request.param
    made = make(tmp_path / "index")
    yield made
    made.writer.close()
    made.index.close()


def test_it_is_true_to_its_position(subject: Subject) -> None:
    snapshot: Snapshot = subject.index.snapshot()
    assert snapshot.position == subject.writer.position == POSITION


def test_it_holds_each_document_once(subject: Subject) -> None:
    held = list(subject.index.snapshot().documents())
    assert sorted(held, key=lambda each: each.key) == documents()


def test_it_finds(subject: Subject) -> None:
    assert subject.find(BoundQuery()) == list(NAMES)
    assert subject.find(BoundQuery(("report", "folder"))) == list(NAMES[1:])
    assert subject.find(BoundQuery((), Fulltext(Term("pumping")))) == list(NAMES[:2])
    assert subject.find(BoundQuery((), beginning("title", "HARB"))) == list(NAMES[:2])
    assert subject.find(BoundQuery((), Between("size", 5, 49))) == [NAMES[0]]


def test_it_obeys_what_the_caller_may_see(subject: Subject) -> None:
    """failures B4: every way into the index takes what the caller may see."""
    pump = BoundQuery((), Fulltext(Term("pump")))
    assert subject.find(pump, Visible()) == []
    assert subject.find(pump, Visible(owner="marta@staff")) == list(NAMES[:2])
    browse, read = frozenset({1, 2, 3}), frozenset({2})
    assert subject.find(pump, Visible(browse_acls=browse, read_acls=read)) == [NAMES[1]]
    assert subject.find(BoundQuery(), Visible(browse_acls=browse, read_acls=read)) == list(NAMES)
    assert subject.find(BoundQuery(), Visible(everything=True, hidden=frozenset(NAMES[:2]))) == [NAMES[2]]
    decided = Visible(browse_acls=browse, decided=frozenset(NAMES[:2]), browse=frozenset(NAMES[:1]))
    assert subject.find(BoundQuery(), decided) == [NAMES[0], NAMES[2]]
    assert subject.find(pump, decided) == []


@pytest.mark.parametrize("acls", [99, 100, 101, 20_000])
def test_it_obeys_however_many_acls_the_caller_has(subject: Subject, acls: int) -> None:
    many = frozenset(range(3, 3 + acls))
    assert subject.find(BoundQuery(), Visible(browse_acls=many, read_acls=many)) == [NAMES[2]]
    assert subject.find(BoundQuery(), Visible(everything=True, hidden=frozenset(f"{at:016x}" for at in many))) == list(
        NAMES
    )


def test_a_change_and_a_new_property_are_found_at_once(subject: Subject) -> None:
    before = subject.index.snapshot()
    assert subject.find(BoundQuery((), Between("added", 1.0, 2.0))) == []
    changed = Document(NAMES[0], 1, 200, "document", 1, "marta@staff", {"added": (1.5, 9.0)}, "Other words.")
    subject.writer.apply([changed], [NAMES[2]], Position(4, 1))
    assert subject.find(BoundQuery((), Between("added", 1.0, 2.0))) == [NAMES[0]]
    assert subject.find(BoundQuery((), Fulltext(Term("pump")))) == [NAMES[1]]
    assert subject.find(BoundQuery()) == list(NAMES[:2])
    assert subject.index.snapshot().position == Position(4, 1)
    assert before.position == POSITION
    assert len(list(before.documents())) == 3


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells which files a process holds")
def test_a_writer_holds_no_file_that_was_merged_away(tmp_path: Path) -> None:
    writer = opened_again(tmp_path).writer
    for step in range(20):
        writer.apply(documents(), (), Position(4, step))
    until(lambda: not deleted(tmp_path), lambda: f"it holds {deleted(tmp_path)}")
    writer.close()


def deleted(folder: Path) -> list[str]:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return [line for line in lines if str(folder) in line and line.endswith("(deleted)")]
