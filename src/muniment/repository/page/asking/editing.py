"""A saved search is opened as a question of the page, with its words in the box, and can then be changed.

That works if the page can ask the same; a search saved on the page keeps its question as typed. Any other stays a base
to which a question adds.
"""

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.refusals import Refusal
from muniment.ground.xml import Element
from muniment.repository.api.context import Caller, RepositoryContext
from muniment.repository.api.endpoints.search import typed_questions
from muniment.repository.options import RepositoryNames
from muniment.repository.page.asking import questions
from muniment.repository.page.asking.questions import PageQuestion
from muniment.repository.refusals import UnknownSavedSearch
from muniment.repository.search.answering.kept import saved_documents
from muniment.repository.search.aql.tree import QueryLimits
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository
from muniment.repository.store.saved import saved_searches
from muniment.repository.store.saved.saved_searches import SavedSearch, SearchSummary
from muniment.web.requests import bodies


class ShownSearch(msgspec.Struct, frozen=True):
    """A saved search; the caller may change and remove their ``own``."""

    search: SearchSummary
    own: bool


async def reopened(context: RepositoryContext, caller: Caller, asked: PageQuestion) -> PageQuestion | None:
    """Return the question of a saved search that is ``asked`` alone, if the page can ask it.

    Raises what ``Caller.read_long`` raises.
    """
    alone = PageQuestion(repository=asked.repository, saved=asked.saved)
    if not asked.saved or asked != alone:
        return None
    limits, names, repository = QueryLimits.of(context.options), context.names, caller.repository

    def read(cx: Connection, principals: Principals) -> PageQuestion | None:
        saved = _seen(cx, repository, principals, asked.saved)
        if saved is None:
            return None
        try:
            root = saved_documents.elements(saved.document, limits)
            question = _typed(cx, repository, principals, names, saved, root) or questions.of_document(root, names)
        except Refusal:
            return None
        return question and msgspec.structs.replace(question, repository=asked.repository, edited=saved.id)

    return await caller.read_long(read)


async def edited(caller: Caller, asked: PageQuestion) -> ShownSearch | None:
    if not asked.edited:
        return None

    def read(cx: Connection, principals: Principals) -> ShownSearch | None:
        saved = _seen(cx, caller.repository, principals, asked.edited)
        return None if saved is None else ShownSearch(saved, saved_searches.may_change(saved, principals))

    return await caller.read_long(read)


def _seen(cx: Connection, repository: Repository, principals: Principals, search_id: str) -> SavedSearch | None:
    try:
        return saved_searches.find(cx, repository.id, "search", search_id, principals)
    except UnknownSavedSearch:
        return None


def _typed(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    names: RepositoryNames,
    saved: SavedSearch,
    document: Element,
) -> PageQuestion | None:
    """Return the question kept with a search; None without one, or if it does not mean this document. Its type or
    folder may be gone, or not be the caller's to see.
    """
    if not saved.document.question:
        return None
    address = saved.document.question.removeprefix("?").encode()
    question = questions.read(bodies.pairs(address, "The saved question"))
    view = RepositoryView.read(cx, repository, principals)
    understood = typed_questions.understand(cx, view, names, question.words or "")
    return question if question.means(document, names, understood) else None
