"""What our own readers do not read is handed to a Tika server, within limits; while it is away, only its files wait."""

import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from msgspec.structs import replace

from muniment.database.connections import Database
from muniment.ground import certificates
from muniment.ground.clock import SECOND, Instant
from muniment.repository.extraction_options import ExtractionOptions
from muniment.repository.options import RepositoryOptions
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.extraction import extractor, queue
from muniment.repository.store.extraction.confined import handing_over
from muniment.repository.store.extraction.findings import Poisoned, Stopped, Unreadable, Unsupported
from muniment.repository.store.extraction.tika import tika
from muniment.repository.store.extraction.tika.tika import Away, TikaServer
from muniment.repository.store.objects import found_properties
from tests.servers import free_port
from tests.tika import StandIn, answer, json, stand_in
from tests.unit.repository import sample_files as made
from tests.unit.repository.store.extraction.draining import drain
from tests.unit.repository.store.extraction.test_extractor import Folder, keep, states
from tests.waiting import until

pytestmark = pytest.mark.only("sqlite")

OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
NAME = 'Łódź"\r\nX-Other: 1.DOC'


@pytest.fixture
def server() -> Iterator[StandIn]:
    with stand_in() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def repository_id(repository_db: Database, now: Instant) -> int:
    with repository_db.begin() as cx:
        return repositories.add(cx, "archive", "00000000-0000-4000-8000-000000000001", "", now).id


def options(address: str, **more: object) -> RepositoryOptions:
    tika_options = replace(ExtractionOptions(tika=address), **more)
    return RepositoryOptions(extraction=tika_options, extraction_memory_mib=512, extraction_characters=1000)


def client(address: str, **more: object) -> TikaServer:
    return TikaServer(options(address, **more).extraction, 1000)


def ask(server: TikaServer, content: bytes = OLD, name: str = "a.doc", seconds: float = 20) -> bytes:
    with server.read(content, name, seconds, lambda: True) as found:
        return found.read()


def texts(database: Database, ids: list[str]) -> list[str]:
    with database.read() as cx:
        found = queue.text_of(cx, ids)
        return [found.get(each, queue.status(cx, each).reason) for each in ids]


def test_what_our_own_readers_do_not_read_the_tika_server_reads(
    repository_db: Database, store: Folder, repository_id: int, now: Instant, server: StandIn
) -> None:
    files = {
        "old.doc": OLD,
        "scan.pdf": made.pdf(picture=True),
        "own.docx": made.docx("own"),
        "a.zip": made.pack({"in.msg": OLD + b"in", "b.txt": b"plain"}),
        "a.eml": made.eml("body", attached=("attached.xls", OLD + b"attached")),
    }
    ids = keep(repository_db, store, repository_id, files, now)
    drain(repository_db, store, options(server.address), found_properties.keep_found_properties, lambda: now + 100)
    old, scan, own, packed, mail = texts(repository_db, ids)
    assert (old, scan, own) == (server.words, server.words, "own")
    assert packed.splitlines() == ["in.msg", "b.txt", "plain", server.words]
    assert "body" in mail
    assert mail.endswith(server.words)
    # It got these files and no other, and of a member only the member.
    assert [body for _, body in server.requests] == [OLD, made.pdf(picture=True), OLD + b"in", OLD + b"attached"]


def test_the_server_learns_the_secret_and_the_suffix_but_no_name(server: StandIn, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("Bearer of-a-file\n")
    for more in ({"tika_secret": "Bearer x"}, {"tika_header": "X-Key", "tika_secret_file": str(tmp_path / "secret")}):
        assert ask(client(server.address, **more), name=NAME) == json(server.words)
    (first, _), (second, _) = server.requests
    assert (first["Authorization"], second["X-Key"]) == ("Bearer x", "Bearer of-a-file")
    assert first["Content-Disposition"] == 'attachment; filename="file.DOC"'
    # A declared media type would make Tika read it as that.
    assert not {"X-Other", "Content-Type"} & first.keys()


def test_over_tls_only_a_server_with_an_accepted_certificate_gets_files(tmp_path: Path, now: Instant) -> None:
    ours = certificates.ensure(tmp_path, ["127.0.0.1"], now)
    with stand_in(tls=ours) as server:
        assert ask(client(server.address, tika_ca_file=str(ours.ca_file))) == json(server.words)
        with pytest.raises(Away, match="certificate is not accepted"):
            ask(client(server.address))
        with pytest.raises(Away, match="No secure connection"):
            ask(client(server.address, tika_ca_file=str(tmp_path / "none")))
        assert len(server.requests) == 1


def test_while_the_server_is_away_its_files_wait_and_all_others_are_read(
    repository_db: Database, store: Folder, repository_id: int, now: Instant
) -> None:
    port = free_port()
    chosen = options(f"http://127.0.0.1:{port}")
    files = {"old.doc": OLD, "a.zip": made.pack({"in.doc": OLD, "b.txt": b"plain"}), "own.docx": made.docx("own")}
    ids = keep(repository_db, store, repository_id, files, now)
    drain(repository_db, store, chosen, found_properties.keep_found_properties, lambda: now + 100)
    drain(repository_db, store, chosen, found_properties.keep_found_properties, lambda: now + 100)
    assert states(repository_db, ids) == ["waiting", "done", "done"]
    with repository_db.read() as cx:
        status = queue.status(cx, ids[0])
        assert (status.reason, status.attempts) == (queue.WAITS_FOR_TIKA, 0)
        assert queue.status(cx, ids[1]).reason == queue.WAITS_FOR_TIKA
        assert queue.count_of_tika(cx, repository_id) == 1
        position = changes.latest(cx, repository_id)
    assert texts(repository_db, ids)[1:] == ["in.doc\nb.txt\nplain", "own"]
    with stand_in(port) as server:
        drain(repository_db, store, chosen, found_properties.keep_found_properties, lambda: now + 200)
    assert texts(repository_db, ids) == [server.words, f"in.doc\nb.txt\nplain\n{server.words}", "own"]
    with repository_db.read() as cx:
        assert not queue.waiting_for_tika(cx)
        noted = [each.object_id for each in changes.after(cx, repository_id, position, 100)]
        assert set(noted) == set(ids[:2])


def test_a_running_extractor_notices_that_the_server_is_back(
    repository_db: Database, store: Folder, repository_id: int, now: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((handing_over, "LOOK_SECONDS"), (tika, "BAD_SECONDS"), (extractor, "_LOOK_SECONDS")):
        monkeypatch.setattr(module, name, 0.01)
    port, stop = free_port(), threading.Event()
    ids = keep(repository_db, store, repository_id, {"old.doc": OLD}, now)
    work = threading.Thread(
        target=extractor.run,
        args=(
            repository_db,
            store,
            options(f"http://127.0.0.1:{port}"),
            stop,
            found_properties.keep_found_properties,
            lambda: now + 100,
        ),
    )
    work.start()
    try:
        until(lambda: texts(repository_db, ids) == [queue.WAITS_FOR_TIKA])
        with stand_in(port) as server:
            until(lambda: texts(repository_db, ids) == [server.words])
    finally:
        stop.set()
        work.join()


@pytest.mark.parametrize("status", [302, 401, 403, 404, 503])
def test_a_server_that_refuses_everybody_is_away(server: StandIn, status: int) -> None:
    asking = client(server.address)
    assert ask(asking) == json(server.words)
    server.refuses = status
    with pytest.raises(Away, match=f"It answers {status}"):
        ask(asking)
    assert client(server.address).fault() == f"It answers {status}."


@pytest.mark.parametrize(
    ("status", "raised"), [(413, Unreadable), (415, Unsupported), (422, Unreadable), (500, Poisoned)]
)
def test_other_refusals_are_about_the_file(server: StandIn, status: int, raised: type[Exception]) -> None:
    server.behaviour = lambda handler, _: answer(handler, b"no", status)
    with pytest.raises(raised):
        ask(client(server.address))


def endless(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(bytes(1 << 20))


def drip(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
    """Send a byte before any time limit of a single read would end."""
    handler.send_response(200)
    handler.end_headers()
    while not threading.Event().wait(0.05):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def cut_off(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"[{")
    handler.close_connection = True


def flood(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
    for _ in range(100):
        handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X-Y: z\r\n" * 5000 + b"\r\n")
    handler.close_connection = True


@pytest.mark.parametrize(
    ("behaviour", "raised", "reason"),
    [
        (endless, Unreadable, "more bytes than is allowed"),
        (drip, Poisoned, "longer than"),
        (cut_off, Poisoned, "broke off"),
        (flood, Poisoned, "broke off"),
    ],
)
def test_an_answer_without_end_ends(
    server: StandIn,
    monkeypatch: pytest.MonkeyPatch,
    behaviour: Callable[[BaseHTTPRequestHandler, bytes], None],
    raised: type[Exception],
    reason: str,
) -> None:
    monkeypatch.setattr(tika, "_BESIDE_TEXT", 1 << 20)
    monkeypatch.setattr(server, "handle_error", lambda *_: None)
    server.behaviour = behaviour
    with pytest.raises(raised, match=reason):
        ask(client(server.address), seconds=0.4 if behaviour is drip else 20)


def test_a_server_that_takes_connections_and_answers_nothing_is_away_not_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tika, "LOOK_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        server = client(f"http://127.0.0.1:{frozen.getsockname()[1]}")
        assert server.fault() == "It does not answer in time."
        with pytest.raises(Away):
            ask(server)


def test_an_extractor_that_stops_does_not_wait_for_the_server(server: StandIn) -> None:
    server.behaviour = drip
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    with pytest.raises(Stopped):
        client(server.address).read(OLD, "a.doc", 600, lambda: not server.requests)


def test_a_file_that_is_too_large_for_the_server_is_not_sent(server: StandIn) -> None:
    with pytest.raises(Unreadable, match="601 bytes; Tika gets files of up to"):
        ask(client(server.address, tika_bytes=600), OLD[:601])
    assert not server.requests


@pytest.mark.parametrize(
    ("body", "state", "said"),
    [
        (b"no JSON", "failed", "cannot be understood"),
        (b"[" * 100_000, "failed", "cannot be understood"),
        (b'{"X-TIKA:content": 1}', "failed", "cannot be understood"),
        (b"[]", "no-text", "Tika found no text in it."),
        (json(" \n"), "no-text", "Tika found no text in it."),
        (json("", **{"X-Parsed-By": "org.apache.tika.parser.EmptyParser"}), "unsupported", "does not read such"),
        (json("", **{"X-TIKA:EXCEPTION:runtime": "x.EncryptedDocumentException: y"}), "failed", "is encrypted"),
        (json("", **{"X-TIKA:EXCEPTION:container_exception": "x.TikaException: y"}), "failed", "could not read it"),
        (json("part", **{"X-TIKA:EXCEPTION:container_exception": "x"}), "done", "Tika could not read all of it."),
        (json("a" * 5000), "done", "Only the first 1000 characters were kept."),
    ],
)
def test_what_the_server_says_becomes_the_state_of_the_text(
    repository_db: Database,
    store: Folder,
    repository_id: int,
    now: Instant,
    server: StandIn,
    body: bytes,
    state: str,
    said: str,
) -> None:
    server.behaviour = lambda handler, _: answer(handler, body)
    (one,) = keep(repository_db, store, repository_id, {"old.doc": OLD}, now)
    drain(repository_db, store, options(server.address), found_properties.keep_found_properties, lambda: now + 100)
    with repository_db.read() as cx:
        status = queue.status(cx, one)
    assert (status.state, said in status.reason) == (state, True), status


def test_a_file_that_breaks_the_server_is_tried_three_times(
    repository_db: Database, store: Folder, repository_id: int, now: Instant, server: StandIn
) -> None:
    server.behaviour = cut_off
    (one,) = keep(repository_db, store, repository_id, {"old.doc": OLD}, now)
    for later in range(5):
        drain(
            repository_db,
            store,
            options(server.address),
            found_properties.keep_found_properties,
            itertools.repeat(now + later * 10 * SECOND).__next__,
        )
    with repository_db.read() as cx:
        status = queue.status(cx, one)
    assert (status.state, status.attempts, len(server.requests)) == ("failed", 3, 3)


def test_files_that_were_not_read_can_be_read_again(
    repository_db: Database, store: Folder, repository_id: int, now: Instant, server: StandIn
) -> None:
    ids = keep(repository_db, store, repository_id, {"old.doc": OLD, "own.txt": b"own"}, now)
    drain(repository_db, store, RepositoryOptions(), found_properties.keep_found_properties, lambda: now + 100)
    assert states(repository_db, ids) == ["unsupported", "done"]
    with repository_db.begin() as cx:
        count, last = queue.read_again(cx, repository_id, -1, now + 200)
        assert (count, queue.read_again(cx, repository_id, last, now + 200)) == (1, (0, last))
    drain(repository_db, store, options(server.address), found_properties.keep_found_properties, lambda: now + 200)
    assert texts(repository_db, ids) == [server.words, "own"]
