"""Which fields does an index in OpenSearch have, and how does a document fill them?

We split texts into words; the engine gets them with blanks between, and a sign for each gap, which a filter of the
index takes out again, so that the words behind it keep their places. ``listed_*`` hold each exact word once, in
columns: by them words are counted.

A property has a column and a dictionary of its own for each kind of value, below ``p``. The mapping takes no field that
it does not know: the writer adds those of a new property first.

Scores are BM25 without the rarity of words, which is the caller's; the average length is fixed.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from muniment.repository.index_options import OpenSearchOptions
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.questions import layout

FORMAT = 1
"""Raise it with every change of fields or their content, so that agents rebuild indexes."""

LIVE, SOURCE, TEXT, GONE_AT, BLOB = "live", "source", "text", "gone_at", "blob"
PROPERTIES = "p"

POSITION = "position"
"""The id of the document that holds the position, and who may write."""

FORMER = "former"
"""The id of the document that says when a generation ceased to be current."""

LISTED = {layout.ANYWHERE.words: "listed_anywhere", layout.METADATA.words: "listed_metadata"}

GAP = "\U000187f5"
"""A letter of Tangut, which no text holds by itself often, stands for a place without a word."""

VALUE_KINDS = ("s", "i", "f", "b")
"""All kinds of properties except ``v``, whose values are in ``s``, too."""

LONGEST_REGEX = 20_000

WINDOW = 10_000
"""So many hits can be passed over by number; behind them, pages are walked."""

_AVERAGE = {"anywhere": 200.0, "metadata": 12.0}
_SIMILARITY = "double f = doc.freq; return query.boost * 2.2 * f / (f + 1.2 * (0.25 + 0.75 * doc.length / {average}));"
_LONG = 128
_LONG_RUN = re.compile(rf"\S{{{_LONG}}}")
"""A shorter word has less bytes than ``analysis.LONGEST_WORD``."""


def path(kind: str, name: str) -> str:
    return f"{PROPERTIES}.{kind}.{name}"


def index_body(options: OpenSearchOptions, about: Mapping[str, object], alias: str) -> dict[str, object]:
    """``about`` is kept beside the mapping; writers use the alias, so that a bulk never makes an index by itself."""
    keyword, number = {"type": "keyword"}, {"type": "long"}
    listed, unsought = {"type": "keyword", "index": False}, {"type": "long", "index": False}
    kept = {"type": "keyword", "index": False, "doc_values": False}
    texts: dict[str, object] = {}
    for name, pair in (("anywhere", layout.ANYWHERE), ("metadata", layout.METADATA)):
        texts |= {field: {"type": "text", "analyzer": "words", "similarity": name} for field in pair}
    return {
        "aliases": {alias: {}},
        "settings": {
            "number_of_shards": options.shards,
            "number_of_replicas": options.replicas,
            "refresh_interval": "-1",
            "max_result_window": WINDOW,
            "max_regex_length": LONGEST_REGEX,
            "max_terms_count": 1_000_000,
            "mapping.total_fields.limit": 20_000,
            "analysis": {
                "tokenizer": {"blanks": {"type": "whitespace", "max_token_length": 1024}},
                "filter": {"gaps": {"type": "stop", "stopwords": [GAP]}},
                "analyzer": {"words": {"type": "custom", "tokenizer": "blanks", "filter": ["gaps"]}},
            },
            "similarity": {
                name: {"type": "scripted", "script": {"source": _SIMILARITY.format(average=average)}}
                for name, average in _AVERAGE.items()
            },
        },
        "mappings": {
            "dynamic": "strict",
            "_meta": dict(about),
            "_source": {"includes": [SOURCE, TEXT, BLOB, GONE_AT, "position", "term", "at"]},
            "properties": {
                LIVE: {"type": "boolean"},
                **dict.fromkeys((layout.KEY, layout.TYPE, layout.OWNER, layout.FORMER), keyword),
                layout.ACL: {"type": "integer"},
                **dict.fromkeys((layout.NUMBER, layout.MODIFIED, layout.EMBEDDING, GONE_AT), number),
                **texts,
                **dict.fromkeys(LISTED.values(), listed),
                PROPERTIES: {
                    "dynamic": "strict",
                    "properties": {kind: {"dynamic": "strict", "type": "object"} for kind in (*VALUE_KINDS, "v")},
                },
                **dict.fromkeys((SOURCE, TEXT, BLOB, "position"), kept),
                **dict.fromkeys(("term", "at"), unsought),
            },
        },
    }


def mapping_of(properties: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Return what is to be added to a mapping for properties, by kind and name."""
    by_kind: dict[str, dict[str, object]] = defaultdict(dict)
    for kind, name in properties:
        by_kind[kind][name] = {"type": "keyword" if kind in ("s", "v") else "long"}
    return {
        "properties": {PROPERTIES: {"properties": {kind: {"properties": named} for kind, named in by_kind.items()}}}
    }


def known_properties(mapping: Mapping[str, Any]) -> set[tuple[str, str]]:
    by_kind = mapping.get("properties", {}).get(PROPERTIES, {}).get("properties", {})
    return {(kind, name) for kind, of in by_kind.items() for name in of.get("properties", {})}


def properties_of(document: Document) -> set[tuple[str, str]]:
    return {
        (kind, name)
        for name, values in document.values.items()
        for kind, _ in itertools.chain.from_iterable(map(layout.as_indexed, values))
    }


def to_engine(document: Document, analyser: Analyser) -> dict[str, object]:
    language = analyser.language_of(document.values, document.text)
    made: dict[str, object] = {
        LIVE: True,
        layout.KEY: document.key,
        layout.NUMBER: document.seq,
        layout.MODIFIED: document.modified,
        layout.TYPE: document.type,
        layout.ACL: document.acl,
        layout.OWNER: document.owner,
        PROPERTIES: _by_kind(document),
        SOURCE: layout.source(document, language).decode(),
        TEXT: document.text,
    }
    if document.embedding:
        made[layout.EMBEDDING] = document.embedding
    if document.former:
        made[layout.FORMER] = layout.IS_FORMER
    pairs = (layout.METADATA, layout.ANYWHERE)
    for pair, words in zip(pairs, layout.words_of(document, analyser, language), strict=True):
        made[pair.stems], _ = _words(words.stems, analyser, stemmed=True)
        made[pair.words], made[LISTED[pair.words]] = _words(words.words, analyser, stemmed=False)
    return made


def tombstone(key: str, gone_at: int) -> dict[str, object]:
    return {layout.KEY: key, GONE_AT: gone_at}


def _words(texts: Sequence[str], analyser: Analyser, *, stemmed: bool) -> tuple[str, list[str]]:
    """Return the words with signs for gaps, one between two texts, and each word once."""
    splitter = analyser.stems if stemmed else analyser.exact_words
    words: list[str] = []
    for at, text in enumerate(texts):
        if at:
            words.append(GAP)
        if len(text) < _LONG or _LONG_RUN.search(text) is None:
            words += splitter.analyze(text)
        else:  # a word that is too long leaves a gap
            words += _in_places((each.position, each.text) for each in splitter.pre_tokenize(text).tokens)
    distinct = {*words}
    if "" in distinct:
        words = [word or GAP for word in words]
    return " ".join(words), [] if stemmed else sorted(distinct - {GAP, ""})


def in_places(words: Sequence[tuple[int, str]]) -> str:
    """Write words, from the first, with signs for gaps."""
    first_place = words[0][0]
    return " ".join(_in_places((place - first_place, word) for place, word in words))


def _in_places(words: Iterable[tuple[int, str]]) -> Iterator[str]:
    following = 0
    for place, word in words:
        yield from itertools.repeat(GAP, place - following)
        yield word
        following = place + 1


def _by_kind(document: Document) -> dict[str, dict[str, list[str | int]]]:
    by_kind: dict[str, dict[str, list[str | int]]] = defaultdict(lambda: defaultdict(list))
    for name, values in document.values.items():
        for kind, held in itertools.chain.from_iterable(map(layout.as_indexed, values)):
            by_kind[kind][name].append(held)
    return by_kind
