"""How is a request put to the cluster, and what do its errors mean?"""

import base64
import http.client
import os
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
import structlog

from muniment.database import budgets
from muniment.ground import renewal
from muniment.ground.renewal import Renewable
from muniment.repository.index_options import OpenSearchOptions
from muniment.repository.refusals import BadQuery, IndexUnavailable
from muniment.repository.search.index.contract import EngineAway

RELEASE = "3"
"""The first part of the version: other releases were not tried."""

_SECONDS, _LEAST_SECONDS = 30.0, 0.01
_IDLE = 16
_LOOK_SECONDS = 60.0
"""The version of the cluster is looked at again after so many seconds."""

_WAITS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Pauses before a request that the cluster was too busy for is sent again."""

_PATIENCE = 3.0
"""Searches wait only so long in all."""

_DEPTH = 10

_ENDINGS = "Too many words begin as the parts of a joined word do: write more of them."
_WORDS = "The query has more words and spellings than the engine takes."
_VALUES = "The facets of this search have too many values to be counted: narrow the search."
_WILDCARDS = "A text is too long to be sought by a part of it, or has too many wildcards."
_SHARDS = "OpenSearch has as many shards as it may: raise cluster.max_shards_per_node, or add a node."

log = structlog.get_logger("muniment.repository.index")


class ClusterAway(EngineAway):
    """The cluster does not do the work now."""


class Missing(ClusterAway):
    """There is no such index, document or point in time."""


class Foreign(ClusterAway):
    """What has our name is not ours."""


class Conflict(ClusterAway):
    """Another writer was there first."""


class ClusterBusy(ClusterAway):
    """It has too much to do."""


class Refused(ValueError):
    """The cluster refuses the request itself, as it would again. The message quotes no query and no text."""


_REFUSALS = {
    "too_many_nested_clauses": (BadQuery, _WORDS),
    "too_many_clauses": (BadQuery, _WORDS),
    "too many nested clauses": (BadQuery, _WORDS),
    "maxClauseCount": (BadQuery, _ENDINGS),
    "too_many_buckets": (BadQuery, _VALUES),
    "too_complex_to_determinize": (BadQuery, _WILDCARDS),
    "Determinizing": (BadQuery, _WILDCARDS),
    "max_regex_length": (BadQuery, _WILDCARDS),
    "Validation Failed: 1: this action would add [": (Refused, _SHARDS),
}
"""What an answer says, and the refusal that this is."""


class Cluster:
    """One cluster; each process opens its own connections."""

    def __init__(self, options: OpenSearchOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._headers: Mapping[str, str] | None = None
        self._process = 0
        self._looked = 0.0

    def get(self, path: str, **parameters: object) -> Any:
        return self.ask("GET", path, None, parameters)

    def post(self, path: str, body: object, **parameters: object) -> Any:
        return self.ask("POST", path, body, parameters)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        parameters: Mapping[str, object] = {},
        *,
        patience: float = _PATIENCE,
    ) -> Any:
        """Return the answer's JSON. Bytes in ``body`` are lines of JSON.

        A request that is refused because the cluster is busy is sent again for ``patience`` seconds.

        Raises ClusterAway, Missing, Conflict, ClusterBusy, Refused, and TookTooLong where the caller's time is spent.
        """
        content = body if isinstance(body, bytes) else msgspec.json.encode(body) if body is not None else None
        kind = "application/x-ndjson" if isinstance(body, bytes) else "application/json"
        headers = {"Content-Type": kind} if content is not None else {}
        given_up = time.monotonic() + patience
        for wait in (*_WAITS, *[_WAITS[-1]] * 1000):
            budgets.check()
            self._look_in_time()
            status, answer = self._send(method, path, content, parameters, headers)
            if status != 429 or b'"PERMANENT"' in answer:
                break
            if time.monotonic() + wait > given_up:
                raise ClusterBusy("OpenSearch has too much to do.")
            time.sleep(wait)
        return _read(status, answer)

    def _look_in_time(self) -> None:
        """Look at the cluster's release, at first and from time to time. Raises ClusterAway."""
        with self._lock:
            if self._process != os.getpid():
                self._idle, self._headers, self._process, self._looked = [], None, os.getpid(), 0.0
            is_due = time.monotonic() - self._looked > _LOOK_SECONDS
        if not is_due:
            return
        about = _read(*self._send("GET", "/", None, {}, {}))
        version = about.get("version", {}) if isinstance(about, dict) else {}
        number = str(version.get("number", "?"))[:20]
        if version.get("distribution") != "opensearch":
            raise ClusterAway("What answers at the address of the index is no OpenSearch.")
        if number.partition(".")[0] != RELEASE:
            raise ClusterAway(f"The index needs an OpenSearch of release {RELEASE}, and this one is {number}.")
        self._looked = time.monotonic()

    def _send(
        self,
        method: str,
        path: str,
        content: bytes | None,
        parameters: Mapping[str, object],
        headers: Mapping[str, str],
    ) -> tuple[int, bytes]:
        """A password that is refused is read again: its file may hold another by now."""
        signed_in = self._sign_in()
        status, answer = self._exchange(method, path, content, parameters, {**signed_in, **headers})
        if status == 401:
            self._headers = None
            if (renewed := self._sign_in()) != signed_in:
                return self._exchange(method, path, content, parameters, {**renewed, **headers})
        return status, answer

    def _exchange(
        self,
        method: str,
        path: str,
        content: bytes | None,
        parameters: Mapping[str, object],
        headers: Mapping[str, str],
    ) -> tuple[int, bytes]:
        """A connection that was idle may have been closed by the other side: then another is tried."""
        address = f"{path}?{urlencode(parameters)}" if parameters else path
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            is_new = connection is None
            try:
                connection = connection or self._open()
                connection.timeout = max(_LEAST_SECONDS, min(_SECONDS, budgets.left()))
                if connection.sock is not None:
                    connection.sock.settimeout(connection.timeout)
                # Who refuses a long request may answer before its end.
                with suppress(BrokenPipeError, ConnectionResetError):
                    connection.request(method, address, content, headers)
                response = connection.getresponse()
                answer = response.status, response.read()
            except TimeoutError as error:
                if connection is not None:
                    connection.close()
                budgets.check()
                raise ClusterAway("OpenSearch does not answer in time.") from error
            except (OSError, http.client.HTTPException) as error:
                if connection is not None:
                    connection.close()
                if is_new or isinstance(error, ClusterAway):
                    self._looked = 0.0
                    raise (
                        error if isinstance(error, ClusterAway) else ClusterAway("OpenSearch cannot be reached.")
                    ) from error
                continue
            with self._lock:
                if len(self._idle) < _IDLE and not response.will_close:
                    self._idle.append(connection)
                    return answer
            connection.close()
            return answer

    def _open(self) -> http.client.HTTPConnection:
        address = urlsplit(self._options.address)
        if address.hostname is None:
            raise ClusterAway("The setting 'repository.opensearch.address' names no OpenSearch.")
        if address.scheme == "https":
            try:
                context = self._trust.newest()
            except OSError as error:
                raise ClusterAway(
                    "The file of 'repository.opensearch.ca_file' holds no readable certificates."
                ) from error
            return http.client.HTTPSConnection(address.hostname, address.port, timeout=_SECONDS, context=context)
        return http.client.HTTPConnection(address.hostname, address.port, timeout=_SECONDS)

    @cached_property
    def _trust(self) -> Renewable[ssl.SSLContext]:
        return renewal.renewable_trust(self._options.ca_file)

    def _sign_in(self) -> Mapping[str, str]:
        if self._headers is None:
            options, headers = self._options, dict[str, str]()
            if options.name:
                password = options.password
                if options.password_file:
                    try:
                        password = Path(options.password_file).read_text(encoding="utf-8").strip()
                    except (OSError, UnicodeDecodeError) as error:
                        raise ClusterAway(
                            "The file of 'repository.opensearch.password_file' cannot be read."
                        ) from error
                pair = base64.b64encode(f"{options.name}:{password}".encode()).decode()
                headers = {"Authorization": f"Basic {pair}"}
            self._headers = headers
        return self._headers


def _read(status: int, answer: bytes) -> Any:
    if status < 300:
        try:
            return msgspec.json.decode(answer) if answer else None
        except msgspec.DecodeError as error:
            raise ClusterAway("What answers at the address of the index is no OpenSearch.") from error
    if status in (401, 403):
        raise ClusterAway("OpenSearch refuses the name and password, or they permit too little.")
    if status == 404:
        raise Missing("OpenSearch has no such index.")
    if status == 409:
        raise Conflict("Another index agent has taken over.")
    if status in (413, 429):
        raise Refused("This is more than OpenSearch takes at a time.")
    reason = answer[:2000].decode("utf-8", "replace")
    for sign, (refusal, sentence) in _REFUSALS.items():
        if sign in reason:
            raise refusal(sentence)
    if status == 400:
        raise Refused(f"OpenSearch refuses the request: {kinds(answer)}.")
    raise ClusterAway(f"OpenSearch answers {status}: {kinds(answer)}.")


def kinds(error: object) -> str:
    """Name the types in an error, and its index. Its reasons may quote what was asked or written."""
    if isinstance(error, bytes):
        try:
            error = msgspec.json.decode(error)
        except msgspec.DecodeError:
            error = None
    found = dict.fromkeys(_kinds(error, _DEPTH))
    return ", ".join(found)[:300] or "without a word"


def _kinds(error: object, depth: int) -> Iterator[str]:
    if isinstance(error, dict):
        yield from (error[key][:100] for key in ("type", "index") if isinstance(error.get(key), str))
        inner = [error.get(key) for key in ("error", "root_cause", "caused_by")] if depth else []
    else:
        inner = error[:_DEPTH] if isinstance(error, list) and depth else []
    for each in inner:
        yield from _kinds(each, depth - 1)


@contextmanager
def as_refusals(what: str) -> Iterator[None]:
    """Raise IndexUnavailable for what a reader of an index cannot mend."""
    try:
        yield
    except ClusterAway as error:
        raise IndexUnavailable(f"The search index is not available: {error}") from error
    except (ValueError, KeyError, OSError) as error:
        log.exception("index engine failed", what=what)
        raise IndexUnavailable(f"The search index is not available: {what}.") from error


def lines(several: Sequence[object]) -> bytes:
    """Write lines of JSON."""
    return b"".join(msgspec.json.encode(each) + b"\n" for each in several)
