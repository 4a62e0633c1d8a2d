"""A set goes to the server and is asked for there: by one person with several connections, over TLS."""

import json
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

import httpx

from bench.ours import Site
from bench.quality.judged import Document

_CONNECTIONS = 6
_PATIENCE = 600.0
"""Seconds that the server may take to read one text, or to bring the index to its end."""

A, B = TypeVar("A"), TypeVar("B")


class Unreadable(Exception):
    """The server did not make the texts searchable."""


class Hit(NamedTuple):
    """A document of the set that was found, and the excerpt that the server shows of it."""

    document: str
    excerpt: str


class Callers:
    """A person's connections to a server."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._threads = ThreadPoolExecutor(_CONNECTIONS)
        self._local = threading.local()
        self._connections: list[httpx.Client] = []
        self._trust = ssl.create_default_context(cafile=site.ca_file)
        self._token = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        for connection in self._connections:
            connection.close()

    def upload(self, documents: Sequence[Document]) -> dict[str, str]:
        """Upload documents and wait until all of their texts can be found: their ids, by the ids that the server gives.

        The text becomes the content; title and author become properties. Raises Unreadable, HTTPStatusError.
        """
        self._sign_in()
        made = list(self._threads.map(self._make, range(len(documents)), documents))
        self._sign_in()
        for made_id in reversed(made):  # the last is about the last to be read, and nearly all others are read by then
            self._wait_for_text(made_id)
        # Every text has been read and noted before this object goes. So whoever sees it gone sees all texts.
        last = self._ask("POST", "objects", json={"properties": {"object_name": "last"}}).headers["location"]
        position = self._ask("DELETE", last).headers["muniment-position"]
        self._until(lambda: self._is_indexed(position), "The index did not come to its end.")
        return {made_id: document.id for made_id, document in zip(made, documents, strict=True)}

    def ask(self, queries: Sequence[str], ids: dict[str, str], most: int) -> list[list[Hit]]:
        """Search by keywords as any caller does, and follow the pages: so many hits of each query at most.

        ``ids`` are those that ``upload`` gave. Raises HTTPStatusError.
        """
        self._sign_in()
        return list(self._threads.map(partial(self._search, ids, most), queries))

    def _search(self, ids: dict[str, str], most: int, query: str) -> list[Hit]:
        hits: list[Hit] = []
        address = str(httpx.URL(f"{self._site.repository}/search", params={"q": query}))
        while address and len(hits) < most:
            feed = self._ask("GET", address).json()
            hits += [Hit(ids[entry["id"]], entry.get("summary", "")) for entry in feed["entries"]]
            address = next((link["href"] for link in feed["links"] if link["rel"] == "next"), "")
        return hits[:most]

    def _make(self, number: int, document: Document) -> str:
        # No query holds this name, so that it is found by nothing.
        properties: dict[str, Any] = {"object_name": f"judged{number}", "r_object_type": "document"}
        if document.title:
            properties["title"] = document.title
        if document.author:
            properties["authors"] = [document.author]
        metadata = json.dumps({"properties": properties})
        parts = {
            "object": (None, metadata.encode(), "application/json"),
            "content": (f"judged{number}.txt", document.text.encode(), "text/plain; charset=utf-8"),
        }
        made_id: str = self._ask("POST", "objects", files=parts).json()["properties"]["r_object_id"]
        return made_id

    def _wait_for_text(self, made_id: str) -> None:
        def state() -> str:
            status: dict[str, str] = self._ask("GET", f"objects/{made_id}/index-status").json()
            if status["state"] not in ("waiting", "done", "empty"):
                raise Unreadable(f"The text of a document was not read: {status['state']}, {status['reason']}")
            return status["state"]

        self._until(lambda: state() != "waiting", "The text of a document was not read in time.")

    def _is_indexed(self, position: str) -> bool:
        answer = self._connection().get(f"{self._site.repository}/search", params={"wait-for": position})
        if answer.status_code == 503:  # the index is behind
            return False
        answer.raise_for_status()
        return True

    def _until(self, happens: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not happens():
            if time.monotonic() > deadline:
                raise Unreadable(otherwise)
            time.sleep(0.2)

    def _sign_in(self) -> None:
        self._token = self._site.signed_in()["access_token"]

    def _ask(self, method: str, address: str, **request: Any) -> httpx.Response:
        address = address if address.startswith("https:") else f"{self._site.repository}/{address}"
        return self._connection().request(method, address, **request).raise_for_status()

    def _connection(self) -> httpx.Client:
        connection: httpx.Client | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = httpx.Client(verify=self._trust, timeout=60, trust_env=False)
            connection.headers["Accept"] = "application/json"
            self._local.connection = connection
            self._connections.append(connection)
        connection.headers["Authorization"] = f"Bearer {self._token}"
        return connection
