"""A set goes to the server and is asked for there: by one person with several connections, over TLS."""

import json
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

import httpx

from bench import ours, processes
from bench.ours import Site
from bench.quality.judged import Document

_CONNECTIONS = 6
_PATIENCE = 1_800.0
"""Seconds after the last upload until all texts must be searchable."""
_BETWEEN_LOOKS = 10.0
"""Seconds between two questions of how far it is: each starts a command, which takes time from what it asks about."""

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

        The text becomes the content; title and author become properties. The index is made anew at the end: until then
        its statistics also count documents without their texts, and how many of them is up to chance.
        Raises Unreadable, HTTPStatusError.
        """
        self._sign_in()
        made = list(self._threads.map(self._make, range(len(documents)), documents))
        self._wait_until_searchable()
        processes.run(ours.command(self._site.data, "index", "rebuild"))
        self._wait_until_searchable()
        return {made_id: document.id for made_id, document in zip(made, documents, strict=True)}

    def wait(self) -> None:
        """Wait until every text can be found, by meaning as well where the server does so. Raises Unreadable."""
        self._wait_until_searchable()

    def ask(
        self, queries: Sequence[str], ids: dict[str, str], most: int, more: Mapping[str, str] = {}
    ) -> list[list[Hit]]:
        """Search by keywords as any caller does, and follow the pages: so many hits of each query at most.

        ``ids`` are those that ``upload`` gave, ``more`` further parameters of the searches. Raises HTTPStatusError.
        """
        self._sign_in()
        return list(self._threads.map(partial(self._search, ids, most, more), queries))

    def _search(self, ids: dict[str, str], most: int, more: Mapping[str, str], query: str) -> list[Hit]:
        hits: list[Hit] = []
        address = str(httpx.URL(f"{self._site.repository}/search", params={"q": query, **more}))
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
        made_id: str = self._ask("POST", f"{self._site.repository}/objects", files=parts).json()["properties"][
            "r_object_id"
        ]
        return made_id

    def _wait_until_searchable(self) -> None:
        """Ask the command of an operator, which tells of all files at once."""
        command = ours.command(self._site.data, "index", "status", "--json")
        deadline = time.monotonic() + _PATIENCE
        while True:
            (status,) = json.loads(processes.run(command))
            if status["failed"] or status["unsupported"]:
                raise Unreadable(f"Some texts were not read: {status}")
            if status["index"] == "current" and not status["waiting"] and status["embedding"] != "behind":
                return
            if time.monotonic() > deadline:
                raise Unreadable(f"Not all texts can be found after {_PATIENCE:.0f} s: {status}")
            time.sleep(_BETWEEN_LOOKS)

    def _sign_in(self) -> None:
        self._token = self._site.signed_in()["access_token"]

    def _ask(self, method: str, address: str, **request: Any) -> httpx.Response:
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
