"""What might somebody mean who is typing a question? Its last word completed, and words corrected that find nothing.

Words come from what the caller may see; counts are those of the search that they suggest.
Source: docs/interface.md, ours 6; docs/aql.md, "While somebody types".
"""

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.repository.aql import keywords, relaxation
from muniment.repository.aql.tree import Fulltext, Query, QueryLimits
from muniment.repository.index.contract import Search, Snapshot
from muniment.repository.permissions.principals import Principals
from muniment.repository.repositories import Repository
from muniment.repository.search import results
from muniment.repository.search.memory import SearchMemory
from muniment.repository.search.results import MAX_PENDING, SearchQuestion

MOST_WORDS = 16
"""How many words a question may have to be completed or corrected."""


class Suggestion(msgspec.Struct, frozen=True):
    """A question, and how many objects the caller finds by all of its words."""

    text: str
    hits: int


class Suggestions(msgspec.Struct, frozen=True):
    """Questions that go on as the caller has begun, and the one that they may have meant, if theirs finds nothing."""

    completions: tuple[Suggestion, ...] = ()
    correction: Suggestion | None = None


def suggest(
    cx: Connection,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    text: str,
    limit: int,
    now: Instant,
    limits: QueryLimits,
    max_pending: int = MAX_PENDING,
    memory: SearchMemory | None = None,
) -> Suggestions:
    """Complete and correct what has been typed, in plain words; keywords with operators get no suggestion.

    ``cx`` must be a read that began after the snapshot was taken. Raises BadQuery, IndexBehind, IndexUnavailable.
    """
    words = text.split()
    typed = keywords.read(text, limits) if 0 < len(words) <= MOST_WORDS else None
    if typed is None or not relaxation.plain_words(typed):
        return Suggestions()

    def search_for(asked: str) -> Search:
        query = Query(condition=Fulltext(keywords.read(asked, limits)) if asked else None)
        question = SearchQuestion(query, 1, 1, include_total=True, bare=True)
        return results.prepared(
            cx, snapshot, repository, principals, question, now, max_pending, memory or SearchMemory()
        )

    *before, beginning = words
    completions = [] if text[-1].isspace() else snapshot.completions(search_for(" ".join(before)), beginning, limit)
    if completions:
        return Suggestions(tuple(Suggestion(" ".join((*before, each.word)), each.hits) for each in completions))
    visible = search_for("").visible
    corrected = " ".join(snapshot.correction(visible, word) or word for word in words)
    hits = snapshot.search(search_for(corrected)).total if corrected != " ".join(words) else None
    return Suggestions(correction=Suggestion(corrected, hits) if hits else None)
