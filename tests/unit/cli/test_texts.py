"""What of an import was not read, and how old is it? Commands name the files, and objects keep the dates of files."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from muniment.cli.repository import importing
from muniment.ground.clock import read_timestamp
from muniment.repository.bulk.importing.report import ImportReport
from muniment.repository.options import RepositoryOptions
from muniment.repository.store import repositories
from muniment.repository.store.content.files import FileStore
from muniment.repository.store.objects import found_properties, objects
from tests.unit.cli.test_importing import BOSS, Place
from tests.unit.repository.store.extraction.draining import drain

PICTURE = "\x89PNG"
OLD = "1999-12-31T23:00:00.123Z"


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str], initialise: Callable[[Path], Path]) -> Place:
    return Place(tmp_path, capsys, initialise)


def date(file: Path, text: str) -> None:
    nanoseconds = read_timestamp(text) * 1000 + 999
    os.utime(file, ns=(nanoseconds, nanoseconds))


@pytest.mark.slow
def test_what_was_not_read_is_counted_by_reason_and_listed_by_name(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, said in {"a.txt": "words", "deep/b.png": PICTURE, "deep/c.png": PICTURE, "d.txt": " "}.items():
        place.write(name, "").write_bytes(said.encode("latin-1"))
    place.load()
    assert "  2 waiting\n" in place("index", "report")
    drain(
        place.database, FileStore(place.data / "content"), RepositoryOptions(), found_properties.keep_found_properties
    )
    tree = place.tree()
    why = "The file is a picture; such files are not read."
    listed = {
        f"  /Papers/deep/b.png ({tree['Papers/deep/b.png'].id}) not read: {why}",
        f"  /Papers/deep/c.png ({tree['Papers/deep/c.png'].id}) not read: {why}",
        f"  /Papers/d.txt ({tree['Papers/d.txt'].id}) no text: No text was found in the file.",
    }
    counted = "Text: 1 read, 1 without any, 2 unsupported, 0 failed, 0 waiting"
    printed = place("index", "report", "--files").splitlines()
    assert counted in printed
    assert printed.index(f"  2 not read: {why}") < printed.index("  1 no text: No text was found in the file.")
    assert listed == {line for line in printed if "/Papers/" in line}
    assert not [line for line in place("index", "report").splitlines() if "/Papers/" in line]
    (document,) = json.loads(place("index", "report", "--files", "--json"))
    assert document["texts"]["counts"]["unsupported"] == 2
    assert [(each["status"], each["files"]) for each in document["texts"]["reasons"]] == [
        ("unsupported", 2),
        ("no-text", 1),
    ]
    assert {each["path"] for each in document["texts"]["files"]} == {line.split()[0] for line in listed}

    monkeypatch.setattr(importing, "_MOST_NAMED", 2)
    with place.database.read() as cx:
        repository = repositories.find(cx, "main")
    importing.print_texts(place.database, repository, ImportReport(object_ids=[one.id for one in tree.values()]))
    ended = capsys.readouterr().out.splitlines()
    assert ended[0] == counted
    assert len([line for line in ended if "/Papers/" in line]) == 2
    assert ended[-1] == "  and 1 more: 'muniment index report --files -r main' lists all"


@pytest.mark.slow
def test_a_document_keeps_the_date_of_its_file(place: Place) -> None:
    old, kept = place.write("old.txt", "one"), place.write("kept.txt", "two")
    date(old, OLD)
    date(kept, OLD)
    place.load()
    first = place.tree()["Papers/old.txt"]
    assert first.content_date == read_timestamp(OLD)
    assert first.modified > read_timestamp("2020-01-01"), "the date of the object is the repository's"
    old.write_text("replaced")
    date(old, "2001-01-01T00:00:00Z")
    with place.database.begin() as cx:
        repository = repositories.find(cx, "main")
    content = FileStore(place.data / "content").put([b"other words"])
    with place.database.begin() as cx:
        of_kept = place.tree()["Papers/kept.txt"].id
        objects.replace_content(cx, repository, BOSS, of_kept, content, "text/plain", read_timestamp("2002-01-01"))
    date(kept, "2003-01-01T00:00:00Z")
    assert "1 replaced, 1 unchanged" in place.load()
    tree = place.tree()
    assert tree["Papers/old.txt"].content_date == read_timestamp("2001-01-01T00:00:00Z")
    assert tree["Papers/kept.txt"].content_date == read_timestamp("2002-01-01"), "it is not the file's any more"
