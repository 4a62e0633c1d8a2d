"""How does the agent write a generation, so that none who lost the right to write can undo it?

Each writer takes a higher term in the document of the position, by compare and set: a writer that finds another term
there ends. Each document has the version (term, batch), which the engine keeps from falling: what an earlier writer
sends late is refused. For the same end, a removed document stays as a tombstone for a day
(docs/decisions/0116).
"""

import itertools
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from muniment.ground.clock import SECOND, Instant
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.index.contract import OtherFormat
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.opensearch import fields
from muniment.repository.search.index.opensearch.client import (
    Cluster,
    ClusterAway,
    ClusterBusy,
    Conflict,
    Missing,
    Refused,
    kinds,
    lines,
)
from muniment.repository.search.index.opensearch.generation import About, Site
from muniment.repository.search.index.opensearch.searching import checked
from muniment.repository.store.change_log.changes import START, Position

TOMBSTONE_AGE: Instant = 86_400 * SECOND

_BULK_BYTES = 2_000_000
_LARGEST_BYTES = 100_000_000
"""A document with more is not sent, however much this cluster would take."""

_PATIENCE = 60.0
"""So many seconds a bulk waits for a cluster that has too much to do."""

_BATCHES = 1 << 32
_TRIES = 10
_SWEPT = 1000
_STARTED = ("STARTED", "RELOCATING")


class _Held(NamedTuple):
    """The document of the position, and its version for compare and set."""

    position: Position
    term: int
    version: Mapping[str, int]


class OpenSearchWriter:
    """One generation, open for writing (an IndexWriter), made if missing.

    Raises OtherFormat, ClusterAway, IndexUnavailable.
    """

    def __init__(self, site: Site, generation: str, wanted: About) -> None:
        self._cluster, self._clock = site.cluster, site.clock
        self._index, self._alias = site.index_of(generation), site.written_as(generation)
        try:
            about, mapping = site.about(self._index)
        except Missing:
            site.make(generation, wanted)
            about, mapping = site.about(self._index)
        if (about.language, about.others) != (wanted.language, wanted.others):
            raise OtherFormat(
                f"The repository's index is in {about.languages}, and its texts are in {wanted.languages} now."
            )
        if about.compounds < wanted.compounds:
            raise OtherFormat("The repository's index does not take compound words apart as this release does.")
        self._known = fields.known_properties(mapping)
        self._analyser: Analyser = site.analyser(self._index, about)
        self._held = self._take()
        self._batch = 0

    @property
    def position(self) -> Position:
        return self._held.position

    def apply(self, documents: Iterable[Document], keys_to_remove: Collection[str], position: Position) -> None:
        """The position moves last, when searches find the documents. If this raises, they may find some of them.

        Raises ClusterAway, Conflict when another writer has taken over, and Refused for a document.
        """
        documents = list(documents)
        self._batch += 1
        version = self._held.term * _BATCHES + self._batch
        kept = {document.key for document in documents}
        removed = [key for key in keys_to_remove if key not in kept]
        if documents or removed:
            self._extend(documents)
            self._write(documents, removed, version)
            self._refresh()
        self._held = self._put(position, self._held.term, **self._held.version)

    def close(self) -> None:
        """Nothing is kept open."""

    def _take(self) -> _Held:
        for _ in range(_TRIES):
            try:
                held = held_position(self._cluster, self._alias)
                how: Mapping[str, object] = held.version if held else {"op_type": "create"}
                return self._put(held.position if held else START, held.term + 1 if held else 1, **how)
            except Conflict:
                continue
        raise ClusterAway("Several index agents take the index from each other.")

    def _put(self, position: Position, term: int, **how: object) -> _Held:
        stated = {"position": str(position), "term": term, "at": self._clock()}
        path = f"/{self._alias}/_doc/{fields.POSITION}"
        answer = self._cluster.ask("PUT", path, stated, {**how, "require_alias": "true"})
        return _Held(position, term, _version(answer))

    def _extend(self, documents: Sequence[Document]) -> None:
        needed = set[tuple[str, str]]().union(*map(fields.properties_of, documents)) - self._known
        if needed:
            self._cluster.ask("PUT", f"/{self._alias}/_mapping", fields.mapping_of(needed))
            self._known |= needed

    def _refresh(self) -> None:
        """Copies that are nowhere cannot be refreshed: then every copy that is somewhere has to be."""
        shards = self._cluster.post(f"/{self._alias}/_refresh", None)["_shards"]
        if not shards["failed"] and shards["successful"] == shards["total"]:
            return
        groups = self._cluster.get(f"/{self._alias}/_search_shards")["shards"]
        started = [sum(copy["state"] in _STARTED for copy in copies) for copies in groups]
        if shards["failed"] or not all(started) or shards["successful"] < sum(started):
            raise ClusterAway("A part of the index does not answer.")

    def _write(self, documents: Iterable[Document], removed: Iterable[str], version: int) -> None:
        """Make the next part while the cluster writes the one before."""
        now = self._clock()
        made = (_operation(each.key, version, fields.to_engine(each, self._analyser)) for each in documents)
        gone = (_operation(key, version, fields.tombstone(key, now)) for key in removed)
        with ThreadPoolExecutor(1) as sender:
            sent: Future[None] | None = None
            for part in _parts(itertools.chain(made, gone)):
                if sent is not None:
                    sent.result()
                sent = sender.submit(self._bulk, part)
            if sent is not None:
                sent.result()

    def _bulk(self, operations: Sequence[bytes]) -> None:
        """Send again what the cluster had no room for: a repeated operation with the same version does nothing."""
        pause = _Pause()
        try:
            while operations := self._send(operations):
                pause.wait()
        except ClusterBusy as error:
            if len(operations) == 1 and len(operations[0]) > _BULK_BYTES:
                raise Refused("OpenSearch has never room for this document, which is large.") from error
            raise

    def _send(self, operations: Sequence[bytes]) -> list[bytes]:
        """Return those that the cluster had no room for."""
        parameters = {"require_alias": "true", "filter_path": "items.*.status,items.*.error"}
        body = b"".join(operations)
        answer = self._cluster.ask("POST", f"/{self._alias}/_bulk", body, parameters, patience=_PATIENCE)
        busy = list[bytes]()
        for operation, item in zip(operations, answer["items"], strict=True):
            outcome = next(iter(item.values()))
            match int(outcome["status"]):
                case 429:
                    busy.append(operation)
                case 409:
                    raise Conflict("Another index agent has taken over.")
                case 404:
                    raise Missing("The index is gone.")
                case status if status >= 500:
                    raise ClusterAway(f"OpenSearch cannot write: {kinds(outcome['error'])}.")
                case status if status >= 400:
                    raise Refused(f"OpenSearch refuses a document: {kinds(outcome['error'])}.")
        return busy


class _Pause:
    """Pauses that grow, for ``_PATIENCE`` seconds together."""

    def __init__(self) -> None:
        self._seconds, self._waited = 0.1, 0.0

    def wait(self) -> None:
        """Raises ClusterBusy."""
        if self._waited > _PATIENCE:
            raise ClusterBusy("OpenSearch has too much to do.")
        time.sleep(self._seconds)
        self._waited += self._seconds
        self._seconds = min(2 * self._seconds, 10.0)


def held_position(cluster: Cluster, name: str) -> _Held | None:
    """Raises Missing without an index."""
    try:
        answer = cluster.get(f"/{name}/_doc/{fields.POSITION}")
    except Missing:
        cluster.get(f"/{name}/_alias")
        return None
    stated = answer["_source"]
    return _Held(Position.parse(stated["position"]), int(stated["term"]), _version(answer))


def sweep(cluster: Cluster, index: str, now: Instant) -> None:
    """Remove old tombstones; one that has become a document again is left."""
    query = {"range": {fields.GONE_AT: {"lt": now - TOMBSTONE_AGE}}}
    body = {"query": query, "size": _SWEPT, "version": True, "_source": False}
    hits = checked(cluster.post(f"/{index}/_search", body, allow_partial_search_results="false"))["hits"]["hits"]
    if hits:
        operations = [
            {"delete": {"_id": hit["_id"], "version": hit["_version"], "version_type": "external_gte"}} for hit in hits
        ]
        cluster.ask("POST", f"/{index}/_bulk", lines(operations))


def _parts(operations: Iterable[bytes]) -> Iterator[list[bytes]]:
    part, size = list[bytes](), 0
    for operation in operations:
        if part and size + len(operation) > _BULK_BYTES:
            yield part
            part, size = [], 0
        part.append(operation)
        size += len(operation)
    if part:
        yield part


def _operation(key: str, version: int, document: Mapping[str, object]) -> bytes:
    """Raises Refused."""
    made = lines([{"index": {"_id": key, "version": version, "version_type": "external_gte"}}, document])
    if len(made) > _LARGEST_BYTES:
        raise Refused(f"The index takes documents of {_LARGEST_BYTES:,} bytes at most, with their words.")
    return made


def _version(answer: Any) -> Mapping[str, int]:
    return {"if_seq_no": int(answer["_seq_no"]), "if_primary_term": int(answer["_primary_term"])}
