"""What the client makes of answers that are no success."""

import base64
import http.client
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from muniment.database.budgets import Budget
from muniment.database.connections import TookTooLong
from muniment.repository.index_options import OpenSearchOptions
from muniment.repository.search.index.opensearch.client import Cluster, ClusterAway, Refused
from tests.unit.repository.search.index.opensearch.scripted import Scripted

SECRET = "the secret text"
MAPPER = {
    "error": {
        "root_cause": [
            {"type": "mapper_parsing_exception", "reason": f"failed on '{SECRET}'", "index": "muniment-7-1"}
        ],
        "type": "mapper_parsing_exception",
        "reason": f"failed on '{SECRET}'",
        "caused_by": {"type": "number_format_exception", "reason": f'For input string: "{SECRET}"'},
    },
    "status": 400,
}


def breaking(durability: str) -> dict[str, object]:
    return {"error": {"type": "circuit_breaking_exception", "reason": "[parent]", "durability": durability}}


@pytest.mark.parametrize(("status", "answer"), [(413, {}), (429, breaking("PERMANENT"))])
def test_what_is_too_large_is_refused_and_not_sent_again(status: int, answer: object) -> None:
    cluster = Scripted({"POST /i/_bulk": (status, answer)})
    with pytest.raises(Refused, match="more than OpenSearch takes"):
        cluster.post("/i/_bulk", {})
    assert cluster.count("POST /i/_bulk") == 1


def test_who_is_busy_for_now_may_take_it_later() -> None:
    cluster = Scripted({"POST /i/_bulk": (429, breaking("TRANSIENT"))})
    with pytest.raises(ClusterAway, match="too much to do"):
        cluster.ask("POST", "/i/_bulk", {}, patience=0.0)


@pytest.mark.parametrize(("status", "error"), [(400, Refused), (500, ClusterAway)])
def test_a_refusal_names_types_and_quotes_no_text(status: int, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        Scripted({"POST /i/_search": (status, MAPPER)}).post("/i/_search", {})
    assert "mapper_parsing_exception, muniment-7-1, number_format_exception" in str(raised.value)
    assert SECRET not in str(raised.value)


def test_who_has_too_many_shards_is_told_what_to_do() -> None:
    reason = "Validation Failed: 1: this action would add [6] total LOCAL_ONLY shards, but this cluster currently has "
    reason += "[996]/[1000] maximum LOCAL_ONLY shards open;"
    answer = {"error": {"type": "validation_exception", "reason": reason}, "status": 400}
    with pytest.raises(Refused, match=r"raise cluster\.max_shards_per_node"):
        Scripted({"PUT /i": (400, answer)}).ask("PUT", "/i", {})


class Paired(Cluster):
    """Its other side does what ``behave`` does."""

    def __init__(self, behave: Callable[[socket.socket], None]) -> None:
        super().__init__(OpenSearchOptions())
        self._behave = behave

    def _look_in_time(self) -> None:
        """It is an OpenSearch."""

    def _open(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("cluster")
        connection.sock, other = socket.socketpair()
        threading.Thread(target=self._behave, args=(other,)).start()
        return connection


def refuse_before_the_end(other: socket.socket) -> None:
    with other:
        other.recv(1000)
        other.sendall(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")


def say_nothing(other: socket.socket) -> None:
    with other:
        while other.recv(1000):
            pass


def test_a_refusal_that_comes_before_the_end_of_the_request_is_read() -> None:
    with pytest.raises(Refused, match="more than OpenSearch takes"):
        Paired(refuse_before_the_end).ask("POST", "/i/_bulk", b"x" * 20_000_000)


def test_a_request_waits_no_longer_than_its_caller_may() -> None:
    cluster = Paired(say_nothing)
    with pytest.raises(TookTooLong):
        Budget(0.05).spend(lambda: cluster.get("/i/_search"))


def test_a_password_that_is_refused_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("former\n")
    options = OpenSearchOptions(address="https://cluster", name="us", password_file=str(file))
    cluster = Scripted({"GET /i": (401, {})}, options)
    with pytest.raises(ClusterAway, match="refuses the name and password"):
        cluster.get("/i")
    file.write_text("another\n")
    with pytest.raises(ClusterAway, match="refuses the name and password"):
        cluster.get("/i")
    former, another = (f"Basic {base64.b64encode(f'us:{each}'.encode()).decode()}" for each in ("former", "another"))
    assert cluster.signed_in == [former, former, former, another]  # the first asked for the release


@pytest.mark.parametrize("key", ["password_file", "ca_file"])
@pytest.mark.parametrize("content", [None, b"\xff"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, key: str, content: bytes | None) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    options = OpenSearchOptions(address="https://cluster", name="us")
    with pytest.raises(ClusterAway, match=f"repository.opensearch.{key}"):
        Cluster(msgspec.structs.replace(options, **{key: str(file)})).get("/i")
