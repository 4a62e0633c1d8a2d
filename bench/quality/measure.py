"""What a set shows: its texts are uploaded, its queries asked, and the order of hits compared with the judgements."""

import re
import time
from collections.abc import Iterable, Sequence

import msgspec
import tantivy

from bench.ours import Site
from bench.quality.callers import Callers
from bench.quality.judged import Document, JudgedSet
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.aql.tree import Term

HITS = 1_000
"""How many hits of a query are taken at most."""

TOP = 10
"""Of how many hits of a query the excerpts are read."""

SETTINGS = ("web.workers=2", "repository.extraction_processes=2")
"""Settings of the server that is measured. They make it faster and change no order."""

TYPED, JOINED, BARE = "as typed", "words joined by OR", "BM25 of the bare engine"
MEANT, BOTH = "as typed, with meaning", "with OR and meaning"
"""The ways in which the queries are asked."""

_HEAP = 128_000_000
_OPERATORS = frozenset({"and", "or", "not"})
_WORD = re.compile(r"[^\W_]+")


BY_MEANING = "repository.meaning=true"
"""The setting of the second server, which also finds what is near in meaning."""


class Scores(msgspec.Struct, frozen=True):
    """Means over queries, from 0 to 1: nDCG of ten hits, mean average precision, recall of a hundred hits."""

    ndcg: float
    map: float
    recall: float


class Asked(msgspec.Struct, frozen=True):
    """What all queries of a set gave when asked in one ``way``.

    The queries are halved by turns: ``odd`` are the first, the third and so on, ``even`` the others. ``nothing`` counts
    the queries without a hit. ``excerpts`` counts those of the first ten hits of each query, ``wordless`` those of them
    without a content word of their query.
    """

    way: str
    whole: Scores
    odd: Scores
    even: Scores
    nothing: int
    excerpts: int = 0
    wordless: int = 0


class SetMeasured(msgspec.Struct, frozen=True):
    """The figures of a set."""

    name: str
    documents: int
    queries: int
    ways: list[Asked]


def measured(site: Site, judged: JudgedSet) -> tuple[SetMeasured, dict[str, str]]:
    """Measure a set on a server that holds nothing else; also returns the documents by the ids that the server gave.

    Raises what ``Callers`` raise.
    """
    began = time.monotonic()
    queries = [query.text for query in judged.queries]
    with Callers(site) as callers:
        ids = callers.upload(judged.documents)
        print(f"    {len(ids):,} documents are searchable after {time.monotonic() - began:.0f} s", flush=True)
        typed = callers.ask(queries, ids, HITS)
        joined = callers.ask([joined_by_or(query) for query in queries], ids, HITS)
    print(f"    {len(queries)} queries are answered in two ways after {time.monotonic() - began:.0f} s", flush=True)
    excerpts = [(query, hit.excerpt) for query, hits in zip(queries, typed, strict=True) for hit in hits[:TOP]]
    wordless = sum(not holds_content_word(excerpt, query) for query, excerpt in excerpts)
    ours = [[hit.document for hit in hits] for hits in typed]
    ways = [
        asked(TYPED, judged, ours, len(excerpts), wordless),
        asked(JOINED, judged, [[hit.document for hit in hits] for hits in joined]),
        asked(BARE, judged, bare(judged.documents, queries)),
    ]
    return SetMeasured(judged.name, len(judged.documents), len(queries), ways), ids


def by_meaning(site: Site, judged: JudgedSet, ids: dict[str, str]) -> list[Asked]:
    """Ask the queries of a set of a server that also finds what is near in meaning. Raises what ``Callers`` raise."""
    began = time.monotonic()
    queries = [query.text for query in judged.queries]
    with Callers(site) as callers:
        callers.wait()
        print(f"    {len(ids):,} documents are embedded after {time.monotonic() - began:.0f} s", flush=True)
        typed = callers.ask(queries, ids, HITS)
        joined = callers.ask([joined_by_or(query) for query in queries], ids, HITS, {"meaning": "true"})
    print(f"    {len(queries)} queries are answered by meaning after {time.monotonic() - began:.0f} s", flush=True)
    return [
        asked(MEANT, judged, [[hit.document for hit in hits] for hits in typed]),
        asked(BOTH, judged, [[hit.document for hit in hits] for hits in joined]),
    ]


def asked(way: str, judged: JudgedSet, found: Sequence[Sequence[str]], excerpts: int = 0, wordless: int = 0) -> Asked:
    """Score what was found for each query: the ids of documents, best first."""
    ranked = {query.id: hits for query, hits in zip(judged.queries, found, strict=True)}
    halves = (list(ranked), list(ranked)[::2], list(ranked)[1::2])
    whole, odd, even = (scores(judged, {query: ranked[query] for query in half}) for half in halves)
    return Asked(way, whole, odd, even, sum(not hits for hits in found), excerpts, wordless)


def scores(judged: JudgedSet, ranked: dict[str, Sequence[str]]) -> Scores:
    """Compute the means over some queries; of no query they are 0. A query without a hit counts as 0."""
    import ir_measures  # only here: not every machine that runs the tests has it
    from ir_measures import AP, R, nDCG

    relevance = {query: dict(judged.relevance[query]) for query in ranked}
    # The order alone counts: the measures would order documents of one score by their ids.
    run = {query: {one: float(-place) for place, one in enumerate(hits)} for query, hits in ranked.items()}
    if not run:
        return Scores(0, 0, 0)
    means = ir_measures.calc_aggregate([nDCG @ 10, AP, R @ 100], relevance, run)
    return Scores(means[nDCG @ 10], means[AP], means[R @ 100])


def joined_by_or(query: str) -> str:
    """Write the words of a query with OR between them. Those that are operators themselves are left out."""
    words = _WORD.findall(query)
    return " OR ".join([word for word in words if word.lower() not in _OPERATORS] or words)


def holds_content_word(excerpt: str, query: str) -> bool:
    """Say whether an excerpt holds a word of the query, in any form, that is no stop word."""
    words = _ANALYSER.content_words([Term(word) for _, word in _ANALYSER.exact(query)])
    stems = {stem for word in words for _, stem in _ANALYSER.stem(word.text)}
    return not stems.isdisjoint(stem for _, stem in _ANALYSER.stem(excerpt))


_ANALYSER = Analyser()


def bare(documents: Iterable[Document], queries: Iterable[str]) -> list[list[str]]:
    """Ask the engine alone, with any of the words of each query: the ids of what it finds, best first.

    It holds title and text as one text, with English stems.
    """
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("body", tokenizer_name="en_stem")
    index = tantivy.Index(builder.build())
    writer = index.writer(_HEAP, 1)
    for document in documents:
        writer.add_document(tantivy.Document(id=document.id, body=f"{document.title}\n{document.text}"))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    found = []
    for query in queries:
        words = " ".join(_WORD.findall(query)).lower()  # in small letters no word is an operator
        hits = searcher.search(index.parse_query(words, ["body"]), HITS).hits if words else []
        found.append([str(searcher.doc(place)["id"][0]) for _, place in hits])
    return found
