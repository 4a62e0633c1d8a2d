"""What a search page shows while somebody types: completions, and a correction (docs/interface.md, ours 6)."""

from starlette.requests import Request
from starlette.responses import Response

from muniment.repository.api.context import RepositoryContext, enter_for_thing
from muniment.repository.api.endpoints.search import search_requests
from muniment.repository.api.shapes import collections
from muniment.repository.api.wire import parameters, positions, spelling
from muniment.repository.api.wire.spelling import Written
from muniment.repository.search.answering.inquiry import Inquiry
from muniment.repository.search.answering.related import suggestions
from muniment.repository.search.answering.related.suggestions import Suggestion, Suggestions

_DEFAULT, _MOST = 10, 50


async def suggest(request: Request, context: RepositoryContext) -> Response:
    """Complete and correct what somebody is typing."""
    caller, media_type = await enter_for_thing(request, context)
    query, options = parameters.read(request), context.options
    limit = min(collections.whole_number(query, "limit", _DEFAULT, 1), _MOST)

    def write_suggestions(inquiry: Inquiry) -> tuple[bytes, str]:
        inquiry = inquiry.changed(typed=search_requests.default_words(options) != "all")
        document = document_of(suggestions.suggest(inquiry, query.get("q", ""), limit))
        written = spelling.document_answer(media_type, "suggestions", document, options.names)
        return written, caller.spell(inquiry.principals, inquiry.snapshot.position)

    body, position = await caller.search(write_suggestions)
    return Response(body, headers={"Content-Type": media_type, positions.HEADER: position, **spelling.PRIVATE})


def document_of(answer: Suggestions) -> dict[str, Written]:
    document: dict[str, Written] = {"completions": [_suggestion_document(each) for each in answer.completions]}
    if answer.correction is not None:
        document["correction"] = _suggestion_document(answer.correction)
    return document


def _suggestion_document(suggestion: Suggestion) -> dict[str, Written]:
    return {"text": suggestion.text, "hits": suggestion.hits}
