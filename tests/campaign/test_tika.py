"""A real Tika server reads the old and foreign formats, and neither its death nor a frozen one costs a file.

The documents are those that Tika's own tests ship (Apache-2.0).
"""

import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.database.connections import Database
from muniment.ground.clock import SECOND, Instant
from muniment.repository.extraction_options import ExtractionOptions
from muniment.repository.options import RepositoryOptions
from muniment.repository.store import repositories
from muniment.repository.store.extraction import queue
from muniment.repository.store.extraction.tika import tika
from muniment.repository.store.objects import found_properties
from tests.environments import FETCH_SECONDS, NoJar, maven_jar
from tests.tika import TikaProcess, running_tika
from tests.unit.repository import sample_files as made
from tests.unit.repository.store.extraction.draining import drain
from tests.unit.repository.store.extraction.test_extractor import Folder, keep

pytestmark = [pytest.mark.campaign, pytest.mark.only("sqlite"), pytest.mark.timeout(3 * FETCH_SECONDS)]

RELEASE = "3.3.1"
MODULES = {
    "microsoft": "caa3b81618a51a1b9fa0ecd02be05a27d1b40ff8483b8d4477cb02894edcaafe",
    "miscoffice": "595d4bb0a07ce3838b62e3d44a8032e8bb8db0df3c5d2152976853bcdcc2a03f",
    "apple": "edf614a2d37741ea1cae63c6577f8c56a8b3bdc3312bb0d3ff3ee6af3897d7c4",
    "pkg": "944f541bae4f7ecef221f1b15b5451bb9be38bc6a132fea5e77dfd9186ab5a3d",
}
"""The modules whose test documents are used, and the digests of their archives."""

FILES = {
    "testWORD.doc": "Sample Word Document Title",
    "testEXCEL.xls": "Numbers and their Squares",
    "testPPT.ppt": "Sample Powerpoint Slide",
    "testMSG.msg": "MIME registry use cases",
    "testVISIO.vsd": "Some random text, on a page",
    "testVISIO.vsdx": "Nothing fancy",
    "testOneNote2016.one": "This is one note 2016",
    "testPages.pages": "Some plain text to parse",
    "testWordPerfect.wpd": "On or about the test",
    "testChm.chm": "Associative links",
    "testWINMAIL.dat": "The quick brown fox jumps over the lazy dog",
    "test-documents.7z": "Sample Powerpoint Slide",
}
LOCKED = "testWORD_protected_passtika.doc"


@pytest.fixture(scope="module")
def documents() -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    try:
        for module, digest in MODULES.items():
            jar = maven_jar(f"org.apache.tika:tika-parser-{module}-module:{RELEASE}:jar:tests", digest)
            with zipfile.ZipFile(jar) as archive:
                for name in (*FILES, LOCKED):
                    if f"test-documents/{name}" in archive.namelist():
                        found[name] = archive.read(f"test-documents/{name}")
    except NoJar as missing:
        pytest.skip(str(missing))
    return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TikaProcess]:
    try:
        with running_tika(tmp_path) as running:
            yield running
    except NoJar as missing:
        pytest.skip(str(missing))


@pytest.fixture
def repository_id(repository_db: Database, now: Instant) -> int:
    with repository_db.begin() as cx:
        return repositories.add(cx, "archive", "00000000-0000-4000-8000-000000000001", "", now).id


def options(server: TikaProcess, seconds: int = 120) -> RepositoryOptions:
    return RepositoryOptions(extraction=ExtractionOptions(tika=server.address, tika_seconds=seconds))


def test_a_real_server_reads_what_our_own_readers_do_not(
    repository_db: Database,
    repository_id: int,
    now: Instant,
    tmp_path: Path,
    server: TikaProcess,
    documents: dict[str, bytes],
) -> None:
    store = Folder(tmp_path)
    bare = {f"file {number}": content for number, content in enumerate(documents[name] for name in FILES)}
    files = {
        **documents,
        **bare,
        "packed.zip": made.pack({"testWORD.doc": documents["testWORD.doc"], "own.txt": "own words"}),
        "mail.eml": made.eml("body", attached=("testMSG.msg", documents["testMSG.msg"])),
    }
    ids = dict(zip(files, keep(repository_db, store, repository_id, files, now), strict=True))
    drain(repository_db, store, options(server), found_properties.keep_found_properties, lambda: now + 100 * SECOND)
    with repository_db.read() as cx:
        texts = queue.text_of(cx, list(ids.values()))
        locked = queue.status(cx, ids[LOCKED])
    found = {name: " ".join(texts.get(object_id, "").split()) for name, object_id in ids.items()}
    assert {name: words for name, words in FILES.items() if words not in found[name]} == {}
    # Most are known by their bytes alone.
    unnamed = [name for number, (name, words) in enumerate(FILES.items()) if words not in found[f"file {number}"]]
    assert unnamed == []
    assert (locked.state, locked.reason) == ("failed", "The file is encrypted: it opens with a password only.")
    assert "own words" in found["packed.zip"]
    assert FILES["testWORD.doc"] in found["packed.zip"]
    assert FILES["testMSG.msg"] in found["mail.eml"]


def test_a_server_that_is_frozen_or_killed_costs_no_file(
    repository_db: Database,
    repository_id: int,
    now: Instant,
    tmp_path: Path,
    server: TikaProcess,
    documents: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tika, "BAD_SECONDS", 0.0)
    store = Folder(tmp_path)
    files = {"a.doc": documents["testWORD.doc"], "b.docx": made.docx("own words")}
    old, own = keep(repository_db, store, repository_id, files, now)

    def status(object_id: str) -> queue.IndexStatus:
        with repository_db.read() as cx:
            return queue.status(cx, object_id)

    server.send(signal.SIGSTOP)
    drain(repository_db, store, options(server, 5), found_properties.keep_found_properties, lambda: now + 100 * SECOND)
    assert (status(old).state, status(own).state) == ("waiting", "done")
    server.send(signal.SIGCONT)
    server.kill()
    drain(repository_db, store, options(server), found_properties.keep_found_properties, lambda: now + 2000 * SECOND)
    assert status(old).reason == queue.WAITS_FOR_TIKA
    server.start()
    drain(repository_db, store, options(server), found_properties.keep_found_properties, lambda: now + 4000 * SECOND)
    assert (status(old).state, status(old).attempts) == ("done", 0)
