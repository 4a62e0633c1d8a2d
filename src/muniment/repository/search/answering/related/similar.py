"""Which documents are like this one? Those that hold any of the words that say most about its text, best first.

A word says much if it is often in the text, and in few of the objects that the caller may see: so what is hidden
changes neither words nor documents. Scores depend on the average length of all texts (docs/decisions/0062), which may
decide about a document near the floor.

Source: docs/aql.md, "Similar documents"; docs/decisions/0102.
"""

import msgspec

from muniment.repository.search.answering import results
from muniment.repository.search.answering.inquiry import Inquiry, SearchQuestion
from muniment.repository.search.aql.tree import Either, ExpressionSet, Fulltext, Property, PropertyOperator, Query, Term
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects import objects

MOST_WORDS = 12

FLOOR = 0.2
"""A similar document scores this part of the object's own score, at least."""

_COUNTED = 500

_READ = 64_000


def find(inquiry: Inquiry, object_id: str) -> results.HitPage:
    """The question has no query; it says how many documents are wanted, and how shown.

    The object itself is left out, and so is what scores less than ``FLOOR`` of it; an object without text has none.

    Raises UnknownObject, NotPermitted, IndexBehind, IndexUnavailable.
    """
    cx, snapshot, question = inquiry.cx, inquiry.snapshot, inquiry.question
    stored = objects.readable(cx, inquiry.repository, object_id, inquiry.principals)
    text = queue.text_of(cx, [stored.id]).get(stored.id, "")[:_READ]
    everything, limit = results.prepare(inquiry), question.items_per_page
    words = snapshot.telling_words(everything.visible, stored.id, text, MOST_WORDS) if text else []
    if not words:
        total = 0 if question.include_total else None
        return results.HitPage((), 1, limit, total, has_more=False, position=snapshot.position)
    terms = tuple(map(Term, words))
    keywords = Fulltext(terms[0] if len(terms) == 1 else Either(terms))

    def search(operator: PropertyOperator, most: int, *, bare: bool) -> results.HitPage:
        this = Property("r_object_id", operator, stored.id)
        query = Query(condition=ExpressionSet("AND", (keywords, this)))
        return results.search(inquiry.asking(SearchQuestion(query, 1, most, bare=bare)))

    own = search("EQUAL", 1, bare=True).hits
    # An object that the index does not hold with this text yet cannot be compared.
    least = FLOOR * own[0].score if own else float("inf")
    page = search("NOT_EQUAL", limit, bare=question.bare)
    hits = tuple(hit for hit in page.hits if hit.score >= least)
    total = None
    if question.include_total:
        counted = search("NOT_EQUAL", _COUNTED, bare=True) if page.has_more and len(hits) == limit else page
        total = sum(hit.score >= least for hit in counted.hits)
    return msgspec.structs.replace(page, hits=hits, total=total, has_more=False)
