"""A real server: it starts, answers over TLS, refuses in one line what it cannot do, and stops dropping nobody."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from muniment.installation.exit_codes import Exit
from tests.e2e.processes import Server, alive, initialised, muniment
from tests.servers import free_port
from tests.waiting import until


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("serve") / "data"
    initialised(data)
    return data


@pytest.fixture
def data(made: Path, tmp_path: Path) -> Path:
    copied = tmp_path / "data"
    shutil.copytree(made, copied)
    copied.chmod(0o700)
    return copied


@pytest.fixture(scope="module")
def plain_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def running(made: Path, plain_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    copied = tmp_path_factory.mktemp("running") / "data"
    shutil.copytree(made, copied)
    given = ("--set", "web.header_seconds=2", "--set", f"web.http_port={plain_port}")
    with Server(copied, free_port(), *given) as server:
        yield server


@contextmanager
def secured(server: Server, client: str = "127.0.0.1") -> Iterator[ssl.SSLSocket]:
    trust = ssl.create_default_context(cafile=str(server.data / "tls" / "ca.pem"))
    trust.verify_flags |= ssl.VERIFY_X509_STRICT
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=20, source_address=(client, 0)) as plain,
        trust.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        yield connection


def test_it_serves_both_halves_over_tls_and_links_everything(running: Server) -> None:
    with running.client() as http:
        page = http.get("/")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        for linked in ("/search/sign-in", "/search?in=main", "/health/ready", "/docs/settings"):
            assert f'href="{running.base}{linked}"' in page.text
        assert http.get("/docs/settings.md").text.startswith("# Settings")
        assert http.get("/style.css").headers["content-type"].startswith("text/css")
        # On a new data folder the agent makes the index meanwhile.
        until(lambda: http.get("/health/ready").status_code == 200)
        ready = http.get("/health/ready").json()
        assert ready["status"] == "ready"
        assert set(ready["indexes"]) == {"main"}
        assert http.get("/health/live").json() == {"status": "alive"}


@pytest.mark.parametrize("address", ["/nothing", "/docs/../db.py", "/docs/%2e%2e/%2e%2e/etc/passwd", "/docs/none.md"])
def test_what_is_not_there_is_not_found(running: Server, address: str) -> None:
    with running.client() as http:
        answer = http.get(address)
    assert answer.status_code == 404
    assert set(answer.json()) == {"status", "code", "message"}


def test_the_certificate_convinces_strict_verification(running: Server) -> None:
    with secured(running) as connection:
        assert connection.version() in {"TLSv1.2", "TLSv1.3"}


def test_a_head_that_never_ends_is_cut_off(running: Server) -> None:
    for sent in (b"", b"GET / HTTP/1.1\r\nHost: lo"):
        with secured(running) as connection:
            connection.sendall(sent)
            assert connection.recv(100) == b""


def send_for_long(connection: ssl.SSLSocket) -> None:
    for _ in range(200):
        connection.sendall(b"x")
        time.sleep(0.5)


def test_a_body_that_nobody_waits_for_any_more_is_cut_off(running: Server) -> None:
    head = b"POST /dirws/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n"
    with secured(running) as connection:
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 404")
        with pytest.raises((BrokenPipeError, ConnectionResetError, ssl.SSLError)):
            send_for_long(connection)
    assert "Exception" not in running.log_text


def test_a_head_without_bounds_is_refused(running: Server) -> None:
    answer = b""
    with secured(running) as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n")
        with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
            for _ in range(100):
                connection.sendall(b"X-Long: " + b"a" * 8000 + b"\r\n")
            connection.sendall(b"\r\n")
            answer = connection.recv(100)
    assert not answer.startswith(b"HTTP/1.1 200")


def spoken(server: Server, sent: bytes) -> bytes:
    """Say this over a connection of its own; give all that comes back until it ends."""
    answer = b""
    with secured(server) as connection:
        connection.sendall(sent)
        with suppress(ConnectionResetError, ssl.SSLError):
            while piece := connection.recv(65_536):
                answer += piece
    return answer


@pytest.mark.parametrize(
    "sent", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n"]
)
def test_what_is_no_http_is_refused_with_a_sentence(running: Server, sent: bytes) -> None:
    head, _, body = spoken(running, sent).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    lines = head.decode().lower().split("\r\n")
    for header in ("x-content-type-options: nosniff", "cache-control: no-store", "connection: close"):
        assert header in lines
    assert f"content-length: {len(body)}" in lines
    assert b"cannot be read" in body


CODINGS = (
    "gzip",
    "gzip, chunked",
    "identity",
    "deflate, chunked",
    "chunked;q=1",
    "x",
    "gzip\r\nTransfer-Encoding: chunked",
)
LOGIN = b"POST /dirws/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
CHUNKS = b"3\r\na=b\r\n0\r\n\r\n"


def answers_in(spoken: bytes) -> int:
    """Count the answers in what came back."""
    return len(re.findall(rb"HTTP/1\.1 [1-5][0-9]{2} ", spoken))


@pytest.mark.parametrize("coding", CODINGS)
def test_a_transfer_coding_other_than_chunked_is_not_implemented(running: Server, coding: str) -> None:
    """RFC 9112 section 6.1. What follows the head is read neither as a body nor as a request."""
    head = LOGIN + b"Transfer-Encoding: " + coding.encode() + b"\r\n\r\n"
    for body in (CHUNKS, b"", CHUNKS + b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        answer = spoken(running, head + body)
        assert answer.startswith(b"HTTP/1.1 501 Not Implemented\r\n"), answer[:200]
        assert answers_in(answer) == 1
        assert b"connection: close" in answer.lower()


def test_such_a_coding_behind_a_request_does_not_spoil_its_answer(running: Server) -> None:
    first = b"GET /docs/settings.md HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = spoken(running, first + LOGIN + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKS)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answers_in(answer) == 1


@pytest.mark.parametrize("header", ["Transfer-Encoding: chunked", "Transfer-Encoding: Chunked ", "TE: gzip, trailers"])
def test_chunked_is_read_and_the_header_te_is_harmless(running: Server, header: str) -> None:
    body = CHUNKS if header.startswith("Transfer") else b""
    length = b"" if body else b"Content-Length: 0\r\n"
    answer = spoken(running, LOGIN + header.encode() + b"\r\n" + length + b"Connection: close\r\n\r\n" + body)
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b'"error":"invalid_request"' in answer or b'"error":"unsupported_grant_type"' in answer, answer


@pytest.mark.parametrize(
    "framing",
    [
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 3",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, gzip",
        "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: 3, 3",
        "Content-Length: +3",
        "Transfer-Encoding : chunked",
        "Host: other.example.org\r\nContent-Length: 3",
    ],
)
def test_a_body_or_an_authority_that_two_readers_could_see_otherwise_is_refused(running: Server, framing: str) -> None:
    """RFC 9112 sections 3.2, 5.1 and 6.3: what a proxy in front takes for a body must not become a request here."""
    answer = spoken(running, LOGIN + framing.encode() + b"\r\nConnection: close\r\n\r\n" + b"a=b")
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n"), answer[:200]
    assert answers_in(answer) == 1


def test_nonsense_behind_a_request_spoils_neither_its_answer_nor_the_log(running: Server) -> None:
    page = spoken(running, b"GET /docs/settings.md HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n\r\n" * 3)
    assert page.startswith(b"HTTP/1.1 200")
    assert page.count(b"HTTP/1.1 ") == 1
    broken = b"POST /dirws/login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    broken += b"Content-Type: application/x-www-form-urlencoded\r\n\r\n3\r\na=b\r\nnonsense\r\n"
    for _ in range(20):
        assert spoken(running, broken).startswith(b"HTTP/1.1 400")
    assert "Traceback" not in running.log_text
    assert '"bug"' not in running.log_text


def test_a_request_that_cannot_be_read_is_logged_once_with_its_address(running: Server) -> None:
    before = len(running.log_text)
    assert spoken(running, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
    until(lambda: '"unreadable request"' in running.log_text[before:])
    lines = [json.loads(line) for line in running.log_text[before:].splitlines()]
    (line,) = [line for line in lines if line["logger"].startswith(("muniment.protocol", "uvicorn"))]
    assert (line["client"], line["event"]) == ("127.0.0.1", "unreadable request")


UNFINISHED = (
    b"POST /dirws/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 100\r\n\r\na"
)


def test_a_worker_with_too_many_connections_says_when_to_try_again(data: Path) -> None:
    with Server(data, free_port(), "--set", "web.max_connections=10") as server, contextlib.ExitStack() as held:
        for number in range(10):
            held.enter_context(secured(server, f"127.0.0.{1 + number // 5}")).sendall(UNFINISHED)
        with server.client() as http:
            answer = http.get("/health/live")
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "1"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "try again" in answer.text
        until(lambda: '"too many connections"' in server.log_text)


def test_the_log_is_json_and_names_requests(running: Server) -> None:
    with running.client() as http:
        http.get("/health/live", headers={"X-Request-ID": "walk-17"})
    until(lambda: "walk-17" in running.log_text)
    requests = [json.loads(line) for line in running.log_text.splitlines() if '"request"' in line]
    assert any(line.get("caller_request_id") == "walk-17" and line["path"] == "/health/live" for line in requests)
    assert all(line["request_id"] != "walk-17" for line in requests)


def test_a_folder_in_use_is_one_line_that_says_what_to_do(running: Server) -> None:
    refused = muniment(running.data, "serve", "--port", str(free_port()))
    assert refused.returncode == 4
    assert refused.stderr.count("\n") == 1
    assert f"process {running.process.pid}" in refused.stderr
    assert muniment(running.data, "migrate").returncode == 4


def test_a_busy_port_is_one_line_that_says_what_to_do(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = muniment(data, "serve", "--port", str(port))
    assert refused.returncode == 4
    assert refused.stderr.count("\n") == 1
    assert f"Port {port}" in refused.stderr
    assert "--port" in refused.stderr


def test_a_folder_that_was_not_initialised_is_not_served(tmp_path: Path) -> None:
    for data in (tmp_path / "none", tmp_path):
        refused = muniment(data, "serve", "--port", str(free_port()))
        assert refused.returncode == 5
        assert "init" in refused.stderr


def test_an_unreadable_certificate_is_named(data: Path) -> None:
    given = ["--set", "web.certificate_file=/none.pem", "--set", "web.key_file=/none.key"]
    refused = muniment(data, *given, "serve", "--port", str(free_port()))
    assert refused.returncode == Exit.REFUSED
    assert "web.certificate_file" in refused.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.campaign)])
def test_a_stop_lets_requests_under_way_finish(data: Path, number: int) -> None:
    with Server(data, free_port()) as server:
        with secured(server) as connection:
            body = b"grant_type=password&client_id=none"
            head = b"POST /dirws/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n" % len(body)
            head += b"Content-Type: application/x-www-form-urlencoded\r\nExpect: 100-continue\r\n\r\n"
            connection.sendall(head + body[:5])
            assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n", "the body is being read"
            server.process.send_signal(number)
            until(lambda: server.has_logged("stopping"))
            connection.sendall(body[5:])
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 400"), answer
        assert b"invalid_request" in answer
        assert server.process.wait(30) == 0
        assert "stopped by force" not in server.log_text


def test_workers_share_a_port_a_fallen_one_is_started_again_and_a_stop_closes_idle_connections(
    data: Path,
) -> None:
    # A stop that waits for an idle connection takes longer than a server is waited for.
    with Server(data, free_port(), "--workers", "3", "--set", "web.stop_seconds=600") as server:
        workers = [pid for pid, files in server.children().items() if any("directory.db" in file for file in files)]
        assert len(workers) == 3
        before = len(server.children())
        os.kill(workers[0], signal.SIGKILL)
        until(lambda: len(server.children()) == before and workers[0] not in server.children())
        for _ in range(20):
            with server.client() as http:
                assert http.get("/health/live").status_code == 200
        assert "process failed" in server.log_text
        with server.client() as http:
            http.get("/health/live")
            assert server.stop() == 0


def test_children_do_not_outlive_their_supervisor(data: Path) -> None:
    with Server(data, free_port()) as server:
        children = list(server.children())
        assert len(children) >= 3
        server.process.kill()
        server.process.wait(10)
        until(lambda: not any(alive(child) for child in children))
        again = Server(data, server.port)
        again.wait_ready()
        assert again.stop() == 0


def test_a_child_that_cannot_start_ends_the_server(data: Path) -> None:
    (data / "content").rmdir() if (data / "content").exists() else None
    (data / "gate").unlink(missing_ok=True) if (data / "gate").is_file() else shutil.rmtree(data / "gate", True)
    (data / "gate").write_text("not a folder")
    refused = muniment(data, "serve", "--port", str(free_port()), own_process=True)
    assert refused.returncode == 1
    assert "could not start" in refused.stderr


@pytest.mark.usefixtures("running")
def test_plain_http_is_off_unless_a_setting_opens_it_and_then_refuses_the_directory(plain_port: int) -> None:
    """failures A30."""
    base = f"http://127.0.0.1:{plain_port}"
    assert httpx.get(f"{base}/health/live").status_code == 200
    refused = httpx.post(f"{base}/dirws/login", data={"grant_type": "password"})
    assert refused.status_code == 403
    assert refused.json()["error"] == "invalid_request"
    assert httpx.get(f"{base}/rest/repositories", headers={"Authorization": "Bearer x"}).status_code == 403


@pytest.mark.parametrize(
    ("directory", "repository", "said"),
    [("9999", "9999", "9999"), ("directory_0006", "0029", "with the commit tagged 'before-light' first")],
    ids=["newer", "from before the first migration"],
)
def test_a_folder_of_another_schema_is_refused_and_left_as_it_is(
    data: Path, directory: str, repository: str, said: str
) -> None:
    for half, revision in (("directory", directory), ("repository", repository)):
        with closing(sqlite3.connect(data / f"{half}.db")) as cx:
            cx.execute(f"UPDATE {half}_schema SET version_num = '{revision}'")
            cx.commit()
    before = {file.name: file.read_bytes() for file in data.glob("*.db")}
    for command in (["serve", "--port", str(free_port())], ["migrate"], ["init"], ["index", "check"]):
        refused = muniment(data, *command)
        assert refused.returncode in {4, 5}, (command, refused.stderr)
        assert refused.stderr.count("\n") == 1, refused.stderr
        assert said in refused.stderr
    assert {file.name: file.read_bytes() for file in data.glob("*.db")} == before
