"""The kinds of search that are measured, a record each: what we, the bare engine and OpenSearch are asked.

A new kind is one more record in ``KINDS``: ``python -m bench --only NAME`` then measures it on the same documents, and
so does the whole run. Everything else about a search is the same for all kinds: type, ACL, range of sizes, total, 20
entries with excerpts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tantivy

from bench.page import Target, at_least, at_most
from bench.passages import queries

CLIENTS = (1, 8)
"""How many clients search at one time, in rounds of their own."""


@dataclass(frozen=True)
class Kind:
    """One kind of search. ``asked`` chooses the words of its queries from the texts.

    ``ours`` writes the words as an expression of AQL, ``engine`` as a query of tantivy, ``theirs`` as one of
    OpenSearch. ``p50`` are the targets beside the bare engine, ``throughput`` those beside OpenSearch, by clients.
    """

    row: str
    work: str
    asked: Callable[[Sequence[str]], list[list[str]]]
    ours: Callable[[Sequence[str]], str]
    engine: Callable[[tantivy.Index, Sequence[str]], tantivy.Query]
    theirs: Callable[[Sequence[str]], dict[str, Any]]
    p50: Mapping[int, Target] = field(default_factory=dict)
    throughput: Mapping[int, Target] = field(default_factory=dict)
    about: str = ""


WORDS = Kind(
    row="search",
    work="AQL search",
    asked=queries,
    ours=lambda words: f"<fulltext>{' '.join(words)}</fulltext>",
    engine=lambda index, words: index.parse_query(" AND ".join(words), ["body"]),
    theirs=lambda words: {"match": {"body": {"query": " ".join(words), "operator": "and"}}},
    p50={1: at_most(1.7, 1.2), 8: at_most(1, 0.8)},
    throughput={1: at_least(1.2, 2), 8: at_least(1.4, 2)},
    about="of one and two words",
)

KINDS = (WORDS,)
