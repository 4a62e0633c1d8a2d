"""What a search page shows while somebody types: completions, and a correction (docs/interface.md, ours 6)."""

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.repository.aql.tree import QueryLimits
from muniment.repository.endpoints import collections, parameters, positions, spelling
from muniment.repository.endpoints.context import RepositoryContext, enter
from muniment.repository.endpoints.search import search_requests
from muniment.repository.endpoints.spelling import Written
from muniment.repository.index.contract import Snapshot
from muniment.repository.permissions.principals import Principals
from muniment.repository.repositories import Repository
from muniment.repository.search import suggestions
from muniment.repository.search.suggestions import Suggestion, Suggestions, Typist

_DEFAULT, _MOST = 10, 50


async def suggest(request: Request, context: RepositoryContext) -> Response:
    """Complete and correct what somebody is typing."""
    caller = await enter(request, context)
    media_type = context.thing_type(request)
    query, options = parameters.read(request), context.options
    limit = min(collections.whole_number(query, "limit", _DEFAULT, 1), _MOST)

    def write_suggestions(cx: Connection, snapshot: Snapshot, principals: Principals) -> tuple[bytes, str]:
        typed = search_requests.default_words(options) != "all"
        typist = typist_of(cx, context, snapshot, caller.repository, principals, typed=typed)
        document = document_of(suggestions.suggest(typist, query.get("q", ""), limit))
        return spelling.answer(media_type, "suggestions", document, options.names), caller.spell(
            principals, snapshot.position
        )

    body, position = await caller.search(context.indexes(caller.repository), write_suggestions)
    return Response(body, headers={"Content-Type": media_type, positions.HEADER: position, **spelling.PRIVATE})


def typist_of(
    cx: Connection,
    context: RepositoryContext,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    *,
    typed: bool,
) -> Typist:
    """Return the ``Typist`` for whom ``search.suggestions`` finds suggestions."""
    limits, options = QueryLimits.of(context.options), context.options
    who = (cx, snapshot, repository, principals, context.clock(), limits, options.max_pending_changes)
    return Typist(*who, context.memory, typed)


def document_of(answer: Suggestions) -> dict[str, Written]:
    """Return the document of suggestions."""
    document: dict[str, Written] = {"completions": [_suggestion_document(each) for each in answer.completions]}
    if answer.correction is not None:
        document["correction"] = _suggestion_document(answer.correction)
    return document


def _suggestion_document(suggestion: Suggestion) -> dict[str, Written]:
    return {"text": suggestion.text, "hits": suggestion.hits}
