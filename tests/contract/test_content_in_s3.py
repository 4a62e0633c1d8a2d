"""A content store in the network against a real server of S3: bounds, faults, locks, and what a crash leaves."""

import hashlib
import http.server
import multiprocessing
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import structlog

from muniment.database.connections import Database
from muniment.ground import certificates
from muniment.ground.clock import SECOND, now
from muniment.ground.refusals import TooLarge
from muniment.repository.content_options import PART_BYTES, S3Options
from muniment.repository.refusals import ContentDamaged, StoreUnavailable
from muniment.repository.store.content.contract import PIECE, StoredContent
from muniment.repository.store.content.removals import RemovalLock
from muniment.repository.store.content.s3.bucket import ContentBucket, MissingObject
from muniment.repository.store.content.s3.store import S3Store
from tests.s3 import S3Server, running_s3
from tests.waiting import until

EVER = 2**60


@pytest.fixture
def options(s3: S3Server) -> S3Options:
    return s3.options()


@pytest.fixture
def store(s3: S3Server, options: S3Options, tmp_path: Path) -> S3Store:
    return s3.store(tmp_path / "s3", options)


def pieces(size: int) -> Iterator[bytes]:
    """Bytes that differ from block to block."""
    for place in range(0, size, PIECE):
        yield place.to_bytes(8, "big") * (min(PIECE, size - place) // 8)


@pytest.mark.parametrize("size", [0, 8, PART_BYTES - 8, PART_BYTES, PART_BYTES + 8, 3 * PART_BYTES + 1000 * 8])
def test_every_size_comes_back_whole_and_in_parts(store: S3Store, options: S3Options, s3: S3Server, size: int) -> None:
    whole = b"".join(pieces(size))
    kept = store.put(pieces(size))
    assert (kept.size, kept.sha256) == (size, hashlib.sha256(whole).digest())
    assert b"".join(store.read(kept)) == whole
    assert b"".join(store.read(kept, size // 3, 100_000)) == whole[size // 3 : size // 3 + 100_000]
    assert b"".join(store.read(kept, max(0, size - 3))) == whole[-3:]
    assert b"".join(store.read(kept, size, 10)) == b""
    assert store.verify(kept.key, kept.sha256)
    assert not store.verify(kept.key, bytes(32))
    with store.local(kept.key) as file:
        assert file.read() == whole
    assert [file.name for file in s3.files(options)] == [kept.key]


def test_damage_is_never_returned_whole(store: S3Store, options: S3Options, s3: S3Server) -> None:
    kept = store.put(pieces(3 * PART_BYTES))
    (file,) = s3.files(options)
    with file.open("r+b") as stored:
        stored.seek(PART_BYTES)
        stored.write(b"altered")
    got = list[bytes]()
    with pytest.raises(ContentDamaged, match="digest"):
        got.extend(store.read(kept))
    assert len(b"".join(got)) < kept.size
    assert not store.verify(kept.key, kept.sha256)
    os.truncate(file, 1000)
    for damaged in (store.read(kept), store.read(kept, 5, 5), store.read(kept, kept.size, 0)):
        with pytest.raises(ContentDamaged, match="size"):
            next(damaged)
    file.unlink()
    with pytest.raises(ContentDamaged, match="missing"):
        next(store.read(kept))
    strange = StoredContent("../owner", 5, bytes(32))
    assert not store.remove(strange.key)
    with pytest.raises(ContentDamaged), store.local(strange.key):
        pass


def test_an_upload_that_is_given_up_leaves_nothing(store: S3Store, options: S3Options, s3: S3Server) -> None:
    def broken() -> Iterator[bytes]:
        yield from pieces(2 * PART_BYTES)
        raise ConnectionResetError

    bucket = ContentBucket(options, now)
    for what in (broken(), iter([b"x", 1])):
        with pytest.raises((ConnectionResetError, TypeError)):
            store.put(what)  # type: ignore[arg-type]
    until(lambda: not list(bucket.uploads("content/")))
    lost = StoredContent("0" * 32, 1, bytes(32))
    assert not store.adopt(lost, store.read(lost))
    assert s3.files(options) == []


def _upload_until_killed(options: S3Options, folder: Path) -> None:
    writer = S3Store(ContentBucket(options, now), None, lambda: "tests", folder, 1).writer()  # type: ignore[arg-type]
    for piece in pieces(1 << 40):
        writer.write(piece)


def test_what_a_killed_upload_leaves_is_dropped_later(store: S3Store, options: S3Options, tmp_path: Path) -> None:
    bucket = ContentBucket(options, now)
    process = multiprocessing.get_context("spawn").Process(target=_upload_until_killed, args=(options, tmp_path))
    process.start()
    assert process.pid is not None
    until(lambda: list(bucket.uploads("content/")))
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert list(store.older_than(now() - 3600 * SECOND)) == []
    assert len(list(bucket.uploads("content/"))) == 1, "it may still be under way"
    assert list(store.older_than(EVER)) == []
    assert list(bucket.uploads("content/")) == []


def test_memory_does_not_grow_with_the_content(store: S3Store) -> None:
    store.verify(store.put(pieces(2 * PART_BYTES)).key, b"")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kept = store.put(pieces(25 * PART_BYTES))
    assert store.verify(kept.key, kept.sha256)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 6 * PART_BYTES // 1024


def test_what_is_too_large_gets_no_copy_here(store: S3Store) -> None:
    kept = store.put(pieces(65 << 20))
    with pytest.raises(TooLarge), store.local(kept.key):
        pass


# Faults


def refused(store: S3Store, sentence: str) -> None:
    """Assert that every kind of question is refused with this sentence, and never holds anybody for long."""
    kept = StoredContent("a" * 32, 5, bytes(32))
    writer = store.writer()
    began = time.monotonic()
    for ask in (
        lambda: store.put([b"x"]),
        lambda: store.put_all([b"x", b"y"]),
        lambda: writer.finish(),
        lambda: next(store.read(kept)),
        lambda: store.verify(kept.key, bytes(32)),
        lambda: store.adopt(kept, [b"x"]),
        lambda: next(store.older_than(EVER)),
        lambda: store.local(kept.key).__enter__(),
    ):
        with pytest.raises(StoreUnavailable, match=sentence):
            ask()
    writer.abort()
    assert not store.remove(kept.key)
    assert time.monotonic() - began < 60


def test_who_has_the_wrong_secret_is_refused(s3: S3Server, tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as lines:
        refused(s3.store(tmp_path / "s3", s3.options(access_secret="not the secret")), "does not let this server in")
    assert "not the secret" not in str(lines)


def test_a_missing_bucket_is_told(s3: S3Server, tmp_path: Path) -> None:
    refused(s3.store(tmp_path / "s3", s3.options(bucket="missing")), "does not have the bucket")


def test_a_server_that_is_no_s3_store_does_not_call_content_missing(s3: S3Server, tmp_path: Path) -> None:
    """Its 404 says nothing about the object."""

    class NoStore(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    for method in ("DELETE", "HEAD", "PUT"):
        setattr(NoStore, f"do_{method}", NoStore.do_GET)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), NoStore) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = s3.options(endpoint=f"http://127.0.0.1:{server.server_address[1]}")
        with pytest.raises(StoreUnavailable):
            ContentBucket(options, now).remove("anything")
        refused(s3.store(tmp_path / "s3", options), "does not answer")
        server.shutdown()


def test_a_secret_file_that_is_not_there_is_told(s3: S3Server, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    options = s3.options(access_secret="", access_secret_file=str(secret))
    refused(s3.store(tmp_path / "s3", options), "cannot be read: No such file")
    secret.write_text("a secret of tests\n")
    assert s3.store(tmp_path / "s3", options).put([b"x"]).size == 1


def test_a_dead_store_refuses_at_once_and_serves_again(s3: S3Server, tmp_path: Path) -> None:
    store = s3.store(tmp_path / "s3")
    kept = store.put([b"kept"])
    s3.kill()
    try:
        refused(store, "does not answer")
    finally:
        s3.start()
    assert b"".join(store.read(kept)) == b"kept"
    assert store.put([b"more"]).size == 4


def test_a_frozen_store_holds_nobody_for_long(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One caller waits for the limit of a request; those who come meanwhile and after are refused at once."""
    monkeypatch.setattr("muniment.repository.store.content.s3.bucket._REQUEST_SECONDS", 3)
    monkeypatch.setattr("muniment.repository.store.content.s3.bucket._PAUSE_SECONDS", 1.0)
    store = s3.store(tmp_path / "s3")
    kept = store.put([b"kept"])
    with s3.frozen():
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="does not answer"):
            store.put([b"x"])
        assert 2 < time.monotonic() - began < 15
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="moments ago"):
            next(store.read(kept))
        assert time.monotonic() - began < 1
        until(lambda: time.monotonic() - began > 1.5)
        waiting, quick = list[int](), list[int]()

        def ask() -> None:
            at = time.monotonic()
            with suppress(StoreUnavailable):
                store.verify(kept.key, kept.sha256)
            (waiting if time.monotonic() - at > 2 else quick).append(1)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(waiting), len(quick)) == (1, 7)
    until(lambda: _reads(store, kept))


def _reads(store: S3Store, kept: StoredContent) -> bool:
    with suppress(StoreUnavailable):
        return store.verify(kept.key, kept.sha256)
    return False


def test_two_installations_never_share_a_place(s3: S3Server, options: S3Options, tmp_path: Path) -> None:
    """Each would sweep what the other has written."""
    first, second = s3.store(tmp_path / "1", options), s3.store(tmp_path / "2", options, owner="somebody else")
    kept = first.put([b"first"])
    for ask in (lambda: second.put([b"x"]), lambda: second.put_all([b"x"]), lambda: next(second.older_than(EVER))):
        with pytest.raises(StoreUnavailable, match="another installation"):
            ask()
    assert list(first.older_than(EVER)) == [kept.key]


def test_the_environment_of_other_programs_changes_nothing(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
        "AWS_SESSION_TOKEN": "other",
        "AWS_ACCESS_KEY_ID": "other",
        "AWS_SKIP_SIGNATURE": "true",
        "AWS_REGION": "eu-west-1",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true",
    }.items():
        monkeypatch.setenv(name, value)
    assert s3.store(tmp_path / "s3").put([b"x"]).size == 1


def test_only_a_store_whose_ca_is_named_is_trusted(s3: S3Server, tmp_path: Path) -> None:
    """``s3`` has built the server."""
    tls = certificates.ensure(tmp_path / "tls", ["127.0.0.1"], now())
    (tmp_path / "server").mkdir()
    with running_s3(tmp_path / "server", tls) as server:
        with pytest.raises(StoreUnavailable):
            server.store(tmp_path / "s3").put([b"x"])
        options = server.options(ca_file=str(tls.ca_file))
        store = server.store(tmp_path / "s3", options)
        kept = store.put([b"x"])
        assert list(ContentBucket(options, now).uploads("content/")) == []
        assert list(store.older_than(EVER)) == [kept.key]
        bundle = tmp_path / "bundle.pem"
        bundle.write_bytes("# Prüfstelle\n".encode() + tls.ca_file.read_bytes())
        assert server.store(tmp_path / "s3", server.options(ca_file=str(bundle))).put([b"y"])
        bundle.write_bytes(b"")
        with pytest.raises(StoreUnavailable, match="CA certificates"):
            server.store(tmp_path / "s3", server.options(ca_file=str(bundle))).put([b"z"])


# The lock, on both databases


@pytest.mark.campaign_on("sqlite")
def test_a_keeping_block_of_another_process_forbids_removals(database_url: str, tmp_path: Path) -> None:
    """It ends with the process that holds it, and waits for a removal that is under way."""
    context = multiprocessing.get_context("spawn")
    keeps = context.Event()
    database = Database(database_url)
    lock = RemovalLock(lambda: database, tmp_path / "removals.lock")
    process = context.Process(target=_keep, args=(database_url, tmp_path / "removals.lock", keeps))
    with lock.removing() as may_remove, lock.removing() as another_may:
        assert (may_remove, another_may) == (True, True)
        process.start()
        assert not keeps.wait(2), "it waits for the removal"
    assert keeps.wait(60)
    with lock.removing() as may_remove:
        assert not may_remove
    process.kill()
    process.join()

    def removes() -> bool:
        with lock.removing() as may_remove:
            return may_remove

    until(removes)
    database.close()


def _keep(url: str, file: Path, keeps: "multiprocessing.synchronize.Event") -> None:
    database = Database(url)
    with RemovalLock(lambda: database, file).keeping():
        keeps.set()
        time.sleep(600)


def test_a_lost_database_forbids_a_removal(s3: S3Server, options: S3Options, tmp_path: Path) -> None:
    gone = Database(f"postgresql+psycopg://nobody@127.0.0.1:1/{'x'}", busy_seconds=1)
    store = s3.store(tmp_path / "s3", options)
    kept = store.put([b"x"])
    broken = S3Store(
        ContentBucket(options, now), RemovalLock(lambda: gone, tmp_path / "lock"), lambda: "tests", tmp_path, 10
    )
    assert not broken.remove(kept.key)
    assert store.verify(kept.key, kept.sha256)


def test_a_bucket_tells_what_is_missing(options: S3Options) -> None:
    bucket = ContentBucket(options, now)
    for ask in (lambda: bucket.head("nothing"), lambda: bucket.get("nothing", 0, 1), lambda: bucket.read("nothing", 5)):
        with pytest.raises(MissingObject):
            ask()
    bucket.put("five", b"12345")
    with pytest.raises(MissingObject):
        bucket.get("five", 5, 6)
    bucket.create("five", b"other")
    assert bucket.read("five", 100) == b"12345"
