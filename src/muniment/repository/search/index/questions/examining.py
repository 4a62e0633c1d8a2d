"""What does an index know of one object in one search? What does each word weigh, and where does it stand?

The engine's explanation counts other people's documents, too. Here a query for each word or phrase seeks it in the one
object, with its weight in the whole query.
"""

from collections.abc import Sequence
from typing import NamedTuple, assert_never

from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.analysis.excerpts import Finder
from muniment.repository.search.aql.tree import Phrase, Term, Wild
from muniment.repository.search.aql.values import keyword_values
from muniment.repository.search.index.contract import Examination, Leaf, LeafWeight, Near, Search
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.questions.compile import Compiler
from muniment.repository.search.index.questions.engine import Queries, Query, Searcher
from muniment.repository.search.index.questions.leaves import leaves

MOST_COMPARED = 2_000_000
"""So many characters of metadata are compared, for each word or phrase anew, and so many of the text."""


class ObjectInIndex(NamedTuple):
    """``compiler`` weighs words by all documents."""

    searcher: Searcher
    queries: Queries
    compiler: Compiler
    key: str

    def weight(self, query: Query) -> float | None:
        hits, _ = self.searcher.search(self.compiler.among(query, [self.key]), 1)
        return float(hits[0][0]) if hits else None

    def document(self) -> Document | None:
        hits, _ = self.searcher.search(self.compiler.among(self.queries.every(), [self.key]), 1)
        if not hits or self.key == layout.POSITION:
            return None
        held = self.searcher.read(hits[0][1])
        return layout.as_document(held.source(), held.text())


def examine(
    thing: ObjectInIndex, weighing: Compiler, analyser: Analyser, search: Search, query: Query
) -> Examination | None:
    """``query`` finds the hits; ``weighing`` weighs for the caller, and seeks patterns only in what they may see."""
    document = thing.document()
    if document is None:
        return None
    may_read = search.visible.may_read(document.key, document.acl, document.owner)
    language = analyser.language_of(document.values, document.text)
    metadata_language = analyser.language_of_metadata(document.values)
    has_two = may_read and language != metadata_language

    def weight_of(leaf: Leaf, *, readable: bool) -> float | None:
        found = thing.queries.silent(thing.compiler.leaf(leaf, readable=readable))
        return thing.weight(thing.queries.any_of([found, weighing.leaf(leaf, readable=readable)]))

    query_leaves = list(dict.fromkeys(leaves(search.query.condition, denied=True, choose=analyser.content_words)))
    score = thing.weight(query)
    weights = [(weight_of(leaf, readable=True), weight_of(leaf, readable=False)) for leaf in query_leaves]
    is_in_metadata = [in_metadata is not None for _, in_metadata in weights]
    finder = Finder(analyser, query_leaves)
    if has_two:
        is_in_metadata = [anywhere is not None for anywhere, _ in weights]
    places = _properties(finder, document, is_in_metadata, language if has_two else metadata_language)
    beginning = document.text[: MOST_COMPARED // max(sum(is_in_metadata), 1)]
    in_text = [
        finder.occurs(beginning, at, language) if places[at] != () else weights[at][0] is not None
        for at in range(len(query_leaves))
    ]
    return Examination(
        document,
        may_read,
        score if score is None or any(leaves(search.query.condition)) else 0.0,
        tuple(
            LeafWeight(leaf, shown_term(leaf), anywhere, in_metadata, is_in_text, names)
            for leaf, (anywhere, in_metadata), is_in_text, names in zip(
                query_leaves, weights, in_text, places, strict=True
            )
        ),
        _by_meaning(search.near, document.embedding),
    )


def _by_meaning(near: Near, embedding: int) -> float:
    return near.scores[near.embeddings.index(embedding)] if embedding in near.embeddings else 0.0


def _properties(
    finder: Finder, document: Document, in_metadata: Sequence[bool], language: str
) -> list[tuple[str, ...] | None]:
    """Give no names if a leaf is not in the metadata, None if these are too long to look through."""
    values = list(keyword_values(document.values, document.ids))
    if sum(in_metadata) * sum(len(value) for _, value in values) > MOST_COMPARED:
        return [None if is_found else () for is_found in in_metadata]
    return [
        tuple(dict.fromkeys(name for name, value in values if finder.occurs(value, at, language))) if is_found else ()
        for at, is_found in enumerate(in_metadata)
    ]


def shown_term(leaf: Leaf) -> str:
    match leaf:
        case Phrase() | Wild():
            return leaf.text
        case Term():
            start = next((at for at, character in enumerate(leaf.text) if character.isalnum()), 0)
            return leaf.text[start:]
        case _:
            assert_never(leaf)
