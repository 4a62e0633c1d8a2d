"""Which fields does the built-in index have, and how does a document fill them?

All properties are in one JSON field with a sub-object for each kind of value, so a new property of a type needs no new
schema. ``s`` holds strings as compared, ``v`` as written; the marker before both keeps the engine from reading a time.
``i`` holds whole numbers and instants, ``f`` doubles, encoded as integers in the same order, ``b`` truth values as 0
and 1.

Who may read an object searches ``anywhere``: title and name, ``HEADING_WEIGHT`` times, then other metadata, then the
text; who may only browse it, ``metadata``, the same without the text. A gap keeps phrases from reaching from one value
to the next.

Variants of words (``variants``) are further stems behind all others, so completions and quoted phrases never see them.
"""

import itertools
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import tantivy

from muniment.ground.clock import Instant
from muniment.repository.folding import COMPARED, fold
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.analysis.text import normal
from muniment.repository.search.aql.patterns import JOINED
from muniment.repository.search.aql.tree import Value
from muniment.repository.search.aql.values import keyword_values
from muniment.repository.search.index.document import Document
from muniment.repository.store.change_log.changes import START, Position

FORMAT = 11
"""Raise it with every change of fields or their content, so that agents rebuild indexes."""

KEY, SOURCE, TYPE, ACL, OWNER, PROPERTIES = "key", "source", "type", "acl", "owner", "properties"
NUMBER, MODIFIED, EMBEDDING = "number", "modified", "embedding"

FORMER, IS_FORMER = "former", "1"
"""Other objects lack the field."""

TEXT = "text"

HEADINGS = ("title", "object_name")

HEADING_WEIGHT = 3
"""A heading is written so often: it outranks one match in a text, unless that has fewer than about a third of the
words.
"""

POSITION = "\0position"
NOTHING = "\0nothing"
MARKER = "="

VALUE_KINDS = ("s", "i", "f", "b")
"""All of PROPERTIES except ``v``, whose values are in ``s``, too."""


class WordFields(NamedTuple):
    """Fields of stems, and of words as they are."""

    stems: str
    words: str


ANYWHERE = WordFields("anywhere", "anywhere_exact")
METADATA = WordFields("metadata", "metadata_exact")
EXACT = frozenset({ANYWHERE.words, METADATA.words})

LEAST, MOST = -(2**63), 2**63 - 1


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """A document without its text. ``language`` is a further one of the index."""

    key: str
    type: str
    acl: int
    owner: str
    values: dict[str, tuple[Value, ...]]
    ids: tuple[str, ...] = ()
    seq: int = 0
    modified: Instant = 0
    embedding: int = 0
    language: str = ""
    former: bool = False


class FoundBy(msgspec.Struct, frozen=True):
    """Copies of unstored fields by which searches find a document."""

    key: str
    type: str
    acl: int
    owner: str
    former: bool = False


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Source)
_found_by_decoder = msgspec.json.Decoder(FoundBy)


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name in (KEY, TYPE, ACL, OWNER):
        builder.add_text_field(name, stored=name == KEY, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field(NUMBER, indexed=True, fast=True)
    builder.add_bytes_field(SOURCE, stored=True)
    builder.add_json_field(PROPERTIES, fast=True, tokenizer_name="raw", index_option="basic")
    for pair in (METADATA, ANYWHERE):
        builder.add_text_field(pair.stems, tokenizer_name="stems")
        builder.add_text_field(pair.words, tokenizer_name="words")
    builder.add_bytes_field(TEXT, stored=True)
    builder.add_integer_field(MODIFIED, indexed=True, fast=True)
    builder.add_unsigned_field(EMBEDDING, indexed=True, fast=True)
    builder.add_text_field(FORMER, tokenizer_name="raw", index_option="basic")
    return builder.build()


SCHEMA = _schema()
"""A field is stored only if hits, excerpts or the checker need it."""


def register(index: tantivy.Index, analyser: Analyser) -> None:
    """This must happen before a document is written."""
    index.register_tokenizer("words", analyser.exact_words)
    index.register_tokenizer("stems", analyser.stems)


def to_tantivy(document: Document, analyser: Analyser) -> tantivy.Document:
    """Add field by field: a third of the time of ``from_dict``, which compares each with the schema."""
    engine_document = tantivy.Document()
    engine_document.add_text(KEY, document.key)
    engine_document.add_unsigned(NUMBER, document.seq)
    engine_document.add_integer(MODIFIED, document.modified)
    language = analyser.language_of(document.values, document.text)
    engine_document.add_bytes(SOURCE, source(document, language))
    if document.embedding:
        engine_document.add_unsigned(EMBEDDING, document.embedding)
    engine_document.add_text(TYPE, document.type)
    engine_document.add_text(ACL, str(document.acl))
    engine_document.add_text(OWNER, document.owner)
    if document.former:
        engine_document.add_text(FORMER, IS_FORMER)
    engine_document.add_json(PROPERTIES, _by_kind(document.values))
    metadata = list(map(analyser.form, _weighted_texts(document)))
    metadata_language = analyser.language_of_metadata(document.values)
    joined = [analyser.joined(text) for text in metadata]
    spellings = list(map(analyser.spellings, metadata, joined, itertools.repeat(metadata_language)))
    _add_words(engine_document, METADATA, metadata, spellings, joined)
    if language != metadata_language:
        spellings = list(map(analyser.spellings, metadata, joined, itertools.repeat(language)))
    text = analyser.form(document.text)
    metadata.append(text)
    joined.append(analyser.joined(text))
    spellings.append(analyser.spellings(text, joined[-1], language))
    _add_words(engine_document, ANYWHERE, metadata, spellings, joined)
    engine_document.add_bytes(TEXT, document.text.encode())
    return engine_document


def _add_words(
    engine_document: tantivy.Document,
    pair: WordFields,
    texts: Sequence[str],
    spellings: Sequence[Sequence[str]],
    joined: Sequence[Sequence[str]],
) -> None:
    """``words`` gets the texts, then joined words with their mark; ``stems`` the first spellings, then variants."""
    for text, (stemmed, *_) in zip(texts, spellings, strict=True):
        engine_document.add_text(pair.stems, stemmed)
        engine_document.add_text(pair.words, text)
    for variant in itertools.chain.from_iterable(variants for _, *variants in spellings):
        engine_document.add_text(pair.stems, variant)
    for word in itertools.chain.from_iterable(joined):
        engine_document.add_text(pair.words, word + JOINED)


def _weighted_texts(document: Document) -> Iterator[str]:
    headings, others = dict[str, None](), []
    for name, value in keyword_values(document.values, document.ids):
        if name in HEADINGS:
            headings[normal(value)] = None
        else:
            others.append(value)
    for heading in headings:
        yield from itertools.repeat(heading, HEADING_WEIGHT)
    yield from others


def source(document: Document, language: str = "") -> bytes:
    stored = msgspec.structs.asdict(document)
    del stored["text"]
    return _encoder.encode(Source(**stored, language=language))


def position_document(position: Position) -> tantivy.Document:
    """No search finds this document."""
    return tantivy.Document.from_dict({KEY: POSITION, NUMBER: 0, SOURCE: str(position).encode()}, SCHEMA)


def read_position(searcher: tantivy.Searcher) -> Position:
    hits = searcher.search(tantivy.Query.term_query(SCHEMA, KEY, POSITION, "basic"), 1, count=False).hits
    if not hits:
        return START
    return Position.parse(bytes(searcher.doc(hits[0][1])[SOURCE][0]).decode())


def read_key(stored: tantivy.Document) -> str:
    return str(stored.get_first(KEY))


def read_source_bytes(stored: tantivy.Document) -> bytes:
    return bytes(stored[SOURCE][0])


def read_source(stored: tantivy.Document) -> Source:
    return _decoder.decode(read_source_bytes(stored))


def read_found_by(source: bytes) -> FoundBy:
    return _found_by_decoder.decode(source)


def read_text(stored: tantivy.Document) -> str:
    text = stored.get_first(TEXT)
    return text.decode() if isinstance(text, bytes) else ""


def read_document(stored: tantivy.Document) -> Document:
    source = msgspec.structs.asdict(read_source(stored))
    del source["language"]
    return Document(**source, text=read_text(stored))


def as_written(value: str) -> str:
    """Take the first ``COMPARED`` characters, unfolded."""
    return value[:COMPARED]


def sortable(value: float) -> int:
    """Keep the order of doubles in integers."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else -(bits & MOST)


def double(encoded: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", abs(encoded)))[0]
    return value if encoded >= 0 else -value


def whole_number(value: int) -> int:
    """Return the nearest that the index can hold."""
    return min(max(value, LEAST), MOST)


def path(kind: str, name: str) -> str:
    return f"{PROPERTIES}.{kind}.{name}"


def as_indexed(value: Value) -> list[tuple[str, str | int]]:
    """Return what the index holds, by sub-object of PROPERTIES."""
    if isinstance(value, str):
        return [("s", MARKER + fold(value)), ("v", MARKER + as_written(value))]
    if isinstance(value, bool):
        return [("b", int(value))]
    return [("i", whole_number(value)) if isinstance(value, int) else ("f", sortable(value))]


def _by_kind(values: dict[str, tuple[Value, ...]]) -> dict[str, dict[str, list[Any]]]:
    by_kind: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for name, of_name in values.items():
        for kind, held in itertools.chain.from_iterable(map(as_indexed, of_name)):
            by_kind[kind][name].append(held)
    return by_kind
