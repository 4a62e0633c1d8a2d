"""List, make and remove saved searches on the page."""

import msgspec
from msgspec.structs import replace
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.ground.refusals import Malformed
from muniment.repository.api.context import RepositoryContext
from muniment.repository.page import frame, searching, sign_in
from muniment.repository.page.asking import questions, sessions
from muniment.repository.page.asking.editing import ShownSearch
from muniment.repository.page.asking.questions import PageQuestion
from muniment.repository.refusals import BadQuery
from muniment.repository.search.answering.kept import saved_documents
from muniment.repository.search.aql.tree import QueryLimits
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository
from muniment.repository.store.saved import saved_searches
from muniment.repository.store.saved.saved_searches import SavedSearchQuota, SearchChange
from muniment.web.requests import bodies

_LISTED = 50


class ShownSearches(msgspec.Struct, frozen=True):
    """A page of saved searches."""

    user_id: str
    searches: list[ShownSearch]
    has_more: bool


async def show(request: Request, context: RepositoryContext) -> Response:
    """List the saved searches."""
    asked, session, caller = await sessions.begin(request, context)
    listed = await caller.read_long(lambda cx, principals: _listed(cx, caller.repository, principals, asked.page))
    values = await searching.around(request, context, session, caller, asked)
    done = searching.DONE.get(searching.done(request), "")
    values |= {"listed": listed, "user_id": listed.user_id, "done": done, "section": "saved"}
    return frame.draw(request, "saved.html", values)


@events.tells()
async def change(request: Request, context: RepositoryContext) -> Response:
    """Save a search, change a saved one, or remove it."""
    form = await bodies.form(request)
    action = form.get("action")
    address = form.get("address", "")
    asked = questions.read(bodies.pairs(address.removeprefix("?").encode(), "The page"))
    request.scope["muniment.search_page"] = "/saved" if action == "remove" else asked.address()
    session = await sessions.read(request, context)
    await sign_in.check_mark(request, context, form)
    caller = await sessions.enter(request, context, session, asked.repository)
    if action == "remove":
        search_id = form.get("search", "")[:40].lower()
        await caller.write(
            lambda cx, principals: saved_searches.remove(cx, caller.repository.id, "search", search_id, principals)
        )
        return frame.redirect(request, "/saved" + _with(PageQuestion(repository=caller.repository.name), "removed"))
    if action not in ("save", "change") or (action == "change" and not asked.edited):
        raise Malformed("The form says neither save nor change nor remove, or not what to change.")
    wanted = SearchChange(form.get("name", "").strip(), form.get("description", ""), form.get("public") == "yes")
    saved_id = await caller.write(
        lambda cx, principals: _save(
            cx, context, caller.repository, principals, asked, wanted, changes=action == "change"
        )
    )
    kept = PageQuestion(repository=caller.repository.name, saved=saved_id)
    return frame.redirect(request, _with(kept, "changed" if action == "change" else "saved"))


def _with(asked: PageQuestion, done: str) -> str:
    return f"{asked.address()}&done={done}"


def _listed(cx: Connection, repository: Repository, principals: Principals, page: int) -> ShownSearches:
    stretch = Stretch(None, (page - 1) * _LISTED, _LISTED + 1)
    found = [one.search for one in saved_searches.saved_page(cx, repository.id, "search", principals, stretch)]
    searches = [ShownSearch(one, saved_searches.may_change(one, principals)) for one in found[:_LISTED]]
    return ShownSearches(principals.id, searches, len(found) > _LISTED)


def _save(
    cx: Connection,
    context: RepositoryContext,
    repository: Repository,
    principals: Principals,
    asked: PageQuestion,
    wanted: SearchChange,
    *,
    changes: bool,
) -> str:
    options, now = context.options, context.clock()
    limits = QueryLimits.of(options)
    view = RepositoryView.read(cx, repository, principals)
    page_query = searching.question_query(cx, view, options, asked)
    element = searching.document(options, asked, page_query)
    if element is None:
        raise BadQuery(
            "The saved search to which this question adds was stored under other names: save it again first."
        )
    document = saved_documents.nested(element, options.names, limits)
    if not asked.saved:
        question = replace(asked, repository="", edited="").address()
        document = replace(document, question=question)
    saved_documents.check(cx, view, document, options, now)
    quota = SavedSearchQuota(options.max_saved_searches, options.max_saved_search_bytes)
    if changes:
        changed = replace(wanted, document=document)
        saved_searches.change(cx, repository.id, asked.edited, changed, principals, quota, now)
        return asked.edited
    return saved_searches.add(cx, repository.id, "search", wanted, document, principals, quota, now).id
