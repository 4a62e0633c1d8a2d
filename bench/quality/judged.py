"""Judged sets: texts, queries, and which text people found relevant for which query.

A set is a folder of three files in UTF-8. In the two of JSON, each line is an object:

- ``docs.jsonl``: ``id``, ``text``, and perhaps ``title`` and ``author``. All are texts. Other keys have no effect.
- ``queries.jsonl``: ``id`` and ``text``.
- ``qrels.tsv``: in each line the id of a query, that of a document and the relevance, a whole number, between tabs.
  The greater, the more relevant. What has none, zero or less is not relevant.

An id may occur once.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

DOCUMENTS, QUERIES, JUDGEMENTS = "docs.jsonl", "queries.jsonl", "qrels.tsv"

Words = Annotated[str, msgspec.Meta(pattern=r"\S")]


class BadSet(Exception):
    """A folder is no judged set. The sentence names the file and the line."""


class Document(msgspec.Struct, frozen=True):
    """A text to find. All but the id may be empty."""

    id: Words
    text: str
    title: str = ""
    author: str = ""


class Query(msgspec.Struct, frozen=True):
    """What a person typed."""

    id: Words
    text: Words


class JudgedSet(msgspec.Struct, frozen=True):
    """A set as it was read. ``relevance`` is by query and document, and holds what is more than zero.

    ``queries`` are those for which at least one document is relevant; ``unjudged`` counts the others.
    """

    name: str
    documents: Sequence[Document]
    queries: Sequence[Query]
    relevance: Mapping[str, Mapping[str, int]]
    unjudged: int = 0

    def part(self, queries: int, documents: int) -> "JudgedSet":
        """Take the first queries, with so many of the first documents and all that are relevant for these queries."""
        asked = self.queries[:queries]
        relevance = {query.id: self.relevance[query.id] for query in asked}
        relevant = {document for of_one in relevance.values() for document in of_one}
        some = [one for at, one in enumerate(self.documents) if at < documents or one.id in relevant]
        return JudgedSet(self.name, some, asked, relevance)


def read_all(folder: Path) -> list[JudgedSet]:
    """Read every set in a folder, in the order of their names. Raises BadSet."""
    if not folder.is_dir():
        raise BadSet(f"{folder} is no folder.")
    found = sorted(path.parent for path in folder.glob(f"*/{DOCUMENTS}"))
    if not found:
        raise BadSet(f"{folder} holds no judged set: a set is a folder in it with {DOCUMENTS}.")
    return [read(one) for one in found]


def read(folder: Path) -> JudgedSet:
    """Read one set. Raises BadSet."""
    documents = _objects(folder / DOCUMENTS, Document)
    queries = _objects(folder / QUERIES, Query)
    relevance: dict[str, dict[str, int]] = {query: {} for query in queries}
    judged: set[tuple[str, str]] = set()
    for place, line in _lines(folder / JUDGEMENTS):
        fields = line.split("\t")
        if len(fields) != 3:
            raise BadSet(f"{place}: a query, a document and a relevance are needed, between tabs.")
        query, document, number = fields
        if query not in queries:
            raise BadSet(f"{place}: {QUERIES} has no query {query!r}.")
        if document not in documents:
            raise BadSet(f"{place}: {DOCUMENTS} has no document {document!r}.")
        if (query, document) in judged:
            raise BadSet(f"{place}: the document {document!r} was judged for the query {query!r} before.")
        judged.add((query, document))
        try:
            relevant = int(number)
        except ValueError:
            raise BadSet(f"{place}: the relevance {number!r} is no whole number.") from None
        if relevant > 0:
            relevance[query][document] = relevant
    some = [query for query in queries.values() if relevance[query.id]]
    if not some:
        raise BadSet(f"{folder / JUDGEMENTS}: no document is relevant for any query.")
    kept = {query.id: relevance[query.id] for query in some}
    return JudgedSet(folder.name, list(documents.values()), some, kept, len(queries) - len(some))


Line = TypeVar("Line", Document, Query)


def _objects(path: Path, kind: type[Line]) -> dict[str, Line]:
    decoder = msgspec.json.Decoder(kind)
    found: dict[str, Line] = {}
    for place, line in _lines(path):
        try:
            one = decoder.decode(line)
        except msgspec.DecodeError as error:
            raise BadSet(f"{place}: {error}") from error
        if one.id in found:
            raise BadSet(f"{place}: the id {one.id!r} occurred before.")
        found[one.id] = one
    return found


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file with their places. Raises BadSet for a file that is missing or not in UTF-8."""
    number = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                yield f"{path}:{number}", line.decode().rstrip("\r\n")
    except OSError as error:
        raise BadSet(f"{path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise BadSet(f"{path}:{number}: this is not in UTF-8.") from error
