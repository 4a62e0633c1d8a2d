"""A saved search is opened as a question of the page, with its words in the box, and can then be changed.

That works if the page can ask what the saved search asks. Any other saved search stays a base to which a question adds.
"""

import msgspec
from sqlalchemy.engine import Connection

from muniment.repository.aql.tree import QueryLimits
from muniment.repository.endpoints.context import Caller, RepositoryContext
from muniment.repository.permissions.principals import Principals
from muniment.repository.refusals import UnknownSavedSearch
from muniment.repository.repositories import Repository
from muniment.repository.saved import saved_searches
from muniment.repository.saved.saved_searches import SearchSummary
from muniment.repository.search import saved_documents
from muniment.repository.search_page import questions
from muniment.repository.search_page.questions import PageQuestion
from muniment.web.refusals import Refusal


class ShownSearch(msgspec.Struct, frozen=True):
    """A saved search, and whether the caller may change and remove it."""

    search: SearchSummary
    own: bool


async def reopened(context: RepositoryContext, caller: Caller, asked: PageQuestion) -> PageQuestion | None:
    """Return the question of a saved search, if ``asked`` is the saved search alone and the page can ask its question.

    Raises UnknownSavedSearch, and what ``Caller.read_long`` raises.
    """
    alone = PageQuestion(repository=asked.repository, saved=asked.saved)
    if not asked.saved or asked != alone:
        return None
    limits, repository = QueryLimits.of(context.options), caller.repository

    def read(cx: Connection, principals: Principals) -> PageQuestion | None:
        saved = saved_searches.find(cx, repository.id, "search", asked.saved, principals)
        try:
            root = saved_documents.elements(saved.document, limits)
        except Refusal:
            return None
        question = questions.of_document(root, context.options.names)
        return question and msgspec.structs.replace(question, repository=asked.repository, edited=saved.id)

    return await caller.read_long(read)


async def edited(caller: Caller, asked: PageQuestion) -> ShownSearch | None:
    """Return the saved search that a question may replace; None without one, or if it cannot be seen."""
    if not asked.edited:
        return None
    return await caller.read_long(lambda cx, principals: _seen(cx, caller.repository, principals, asked.edited))


def _seen(cx: Connection, repository: Repository, principals: Principals, search_id: str) -> ShownSearch | None:
    try:
        search = saved_searches.find(cx, repository.id, "search", search_id, principals)
    except UnknownSavedSearch:
        return None
    return ShownSearch(search, saved_searches.may_change(search, principals))
